#!/bin/sh
# check-symbols.sh [--update] [BUILD]: every global of libweir.a is weir_* or wr_*, and the shared library
# exports exactly tools/weir.symbols. BUILD is a build folder; default build/dev, else build/release.
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

wrong=$(nm -A -g --defined-only "$build/src/libweir.a" | awk 'NF >= 3 && $NF !~ /^(weir|wr)_/')
[ -z "$wrong" ] || {
    echo "symbols: globals of $build/src/libweir.a that are neither weir_* nor wr_*:" >&2
    echo "$wrong" >&2
    exit 1
}

exports=$(nm -D --defined-only "$build/src/libweir.so" | awk '{ print $NF }' | LC_ALL=C sort)
if [ -n "$update" ]; then
    echo "$exports" >tools/weir.symbols
elif ! echo "$exports" | diff -u tools/weir.symbols -; then
    echo "symbols: $build/src/libweir.so exports something else than tools/weir.symbols;" \
        "if that is meant: tools/check-symbols.sh --update" >&2
    exit 1
fi
echo "symbols: $(echo "$exports" | wc -l) exported by $build/src/libweir.so"
