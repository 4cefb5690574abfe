#!/bin/sh
# examples_test.sh BUILD LANGUAGE [COMPILER]: examples/ do what they say, against the library of BUILD. Without
# the language's runtime the test is skipped.
set -eu
cd "$(dirname "$0")/../.."
build=$1
language=$2
compiler=${3:-}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
library=$build/src/libweir.so

skip() {
    echo "examples: skipped: $1" >&2
    exit 77
}

case $language in
c)
    "$compiler" -std=c99 -Wall -Wextra -Werror -Wno-missing-field-initializers -Iinclude examples/stats.c \
        "$build/src/libweir.a" -lm -pthread -o "$work/stats"
    set -- "$work/stats"
    ;;
cpp)
    command -v "$compiler" >/dev/null || skip "no $compiler"
    "$compiler" -std=c++17 -Wall -Wextra -Werror -Iinclude examples/stats.cpp "$build/src/libweir.a" -lm -pthread \
        -o "$work/stats"
    set -- "$work/stats"
    ;;
python)
    set -- python3 examples/stats.py "$library"
    ;;
php)
    command -v php >/dev/null || skip 'no php (Debian: php-cli)'
    [ "$(php -r 'echo class_exists("FFI") ? 1 : 0;')" = 1 ] || skip 'php without its FFI extension'
    set -- php examples/stats.php "$library"
    ;;
client)
    [ -e "$build/client/libweir-client.a" ] || skip 'built without the client'
    "$compiler" -std=c99 -Wall -Wextra -Werror -Wno-missing-field-initializers -Iinclude examples/client.c \
        "$build/client/libweir-client.a" "$build/src/libweir.a" -lcurl -lm -pthread -o "$work/client"
    "$work/client" --offline | sort >"$work/out"
    diff - "$work/out" <<'OUT'
1 of statistics sent, 3 spans sent, 0 left
rate of service:shop,env:: 0.5
OUT
    exit 0
    ;;
esac
"$@" >"$work/out"
diff - "$work/out" <<'OUT'
GET /users: 3 spans, 1 errors
GET /orders: 5 spans, 0 errors
OUT
