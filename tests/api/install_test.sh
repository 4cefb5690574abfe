#!/bin/sh
# install_test.sh BUILD CC: install BUILD twice (by --prefix, and into a DESTDIR from which the tree is
# then moved), and build programs of a stranger against both: pkg-config shared and static,
# find_package, and the example of README.md, which is extracted, compiled and run.
set -eu
build=$(cd "$1" && pwd)
cc=$2
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
warnings='-std=c17 -Wall -Wextra -Wpedantic -Werror'
unset PKG_CONFIG_PATH PKG_CONFIG_LIBDIR LD_LIBRARY_PATH DESTDIR || :

try() { # PREFIX: everything that a consumer does
    prefix=$1
    export LD_LIBRARY_PATH="$prefix/lib" PKG_CONFIG_PATH="$prefix/lib/pkgconfig"
    # shellcheck disable=SC2046,SC2086 # lists of words
    {
        "$cc" $warnings "$here/consumer/consumer.c" -o "$dir/shared" $(pkg-config --cflags --libs weir)
        "$dir/shared"
        "$cc" $warnings "$here/consumer/consumer.c" -o "$dir/static" $(pkg-config --cflags weir) \
            "$prefix/lib/libweir.a" $(pkg-config --static --libs-only-other weir) -lm
        LD_LIBRARY_PATH='' "$dir/static"
        "$cc" $warnings "$here/consumer/client.c" -o "$dir/client" $(pkg-config --cflags --libs weir-client)
        "$dir/client"
        "$cc" $warnings "$here/consumer/client.c" -o "$dir/client_static" $(pkg-config --cflags weir-client) \
            "$prefix/lib/libweir-client.a" "$prefix/lib/libweir.a" -lcurl -pthread -lm
        LD_LIBRARY_PATH='' "$dir/client_static"
        "$cc" $warnings "$dir/readme.c" -o "$dir/readme" $(pkg-config --cflags --libs weir)
        "$dir/readme" | tee "$dir/readme.out"
    }
    diff -u "$dir/readme.want" "$dir/readme.out"
    if ldd "$dir/shared" | grep -q curl; then echo "libweir needs libcurl"; exit 1; fi
    ldd "$dir/shared" | grep -q "$prefix/lib/libweir.so.0" || { echo "not linked to the installed library"; exit 1; }
    cmake -G Ninja -S "$here/consumer" -B "$dir/consumer" -DCMAKE_C_COMPILER="$cc" -DCMAKE_PREFIX_PATH="$prefix" >/dev/null
    cmake --build "$dir/consumer" >/dev/null
    "$dir/consumer/with_shared"
    "$dir/consumer/with_static"
    "$dir/consumer/client_with_shared"
    "$dir/consumer/client_with_static"
    rm -r "$dir/consumer"
}

# The first block of C in README.md is the example, the first block marked "text" after it what it prints.
awk '/^```/ { inside = /^```c$/ && !done; done += inside; next } inside' "$root/README.md" >"$dir/readme.c"
awk '/^```c$/ { seen = 1 } /^```/ { inside = seen && /^```text$/ && !done; done += inside; next } inside' \
    "$root/README.md" >"$dir/readme.want"
[ -s "$dir/readme.c" ] && [ -s "$dir/readme.want" ]

cmake --install "$build" --prefix "$dir/prefix" >"$dir/log"
[ ! -e "$build/weir" ] || "$dir/prefix/bin/weir" --version
try "$dir/prefix"

# DESTDIR, then the tree somewhere else: nothing in it may know where it was made.
DESTDIR="$dir/dest" cmake --install "$build" --prefix /opt/weir >"$dir/log"
mv "$dir/dest/opt/weir" "$dir/moved"
try "$dir/moved"
if grep -rlI "$build" "$dir/moved"; then
    echo "these installed files name the build folder"
    exit 1
fi
for page in "$root"/man/*.[1-9]; do
    [ ! -e "$page" ] || [ -e "$dir/moved/share/man/man${page##*.}/${page##*/}" ] || {
        echo "not installed: $page"
        exit 1
    }
done
echo "installed, moved, and used through pkg-config and find_package"
