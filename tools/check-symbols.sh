#!/bin/sh
# check-symbols.sh [--update] [BUILD]: every global of libweir.a is weir_* or wr_*, and the shared library
# exports exactly tools/weir.symbols; the same of libweir-client and tools/weir-client.symbols, where it is
# built. BUILD is a build folder; default build/dev, else build/release.
set -eu
cd "$(dirname "$0")/.."
update=''
[ "${1:-}" != --update ] || { update=yes && shift; }
build=${1:-}
[ -n "$build" ] || for build in build/dev build/release; do [ ! -e "$build/src/libweir.so" ] || break; done
if [ ! -e "$build/src/libweir.a" ] || [ ! -e "$build/src/libweir.so" ]; then
    echo "symbols: no libweir in $build: build it first (./dev lint does)" >&2
    exit 1
fi

check() { # LIBRARY, without its ending, and LIST
    wrong=$(nm -A -g --defined-only "$1.a" | awk 'NF >= 3 && $NF !~ /^(weir|wr)_/')
    [ -z "$wrong" ] || {
        echo "symbols: globals of $1.a that are neither weir_* nor wr_*:" >&2
        echo "$wrong" >&2
        exit 1
    }
    exports=$(nm -D --defined-only "$1.so" | awk '{ print $NF }' | LC_ALL=C sort)
    if [ -n "$update" ]; then
        echo "$exports" >"$2"
    elif ! echo "$exports" | diff -u "$2" -; then
        echo "symbols: $1.so exports something else than $2; if that is meant: tools/check-symbols.sh --update" >&2
        exit 1
    fi
    echo "symbols: $(echo "$exports" | wc -l) exported by $1.so"
}

check "$build/src/libweir" tools/weir.symbols
[ ! -e "$build/client/libweir-client.so" ] || check "$build/client/libweir-client" tools/weir-client.symbols
