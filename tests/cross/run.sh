#!/bin/sh
# run.sh: the same bins on every CPU and compiler: tests/cross/bins.c built by gcc and clang for
# x86-64 (-O0 to -O3, baseline and AVX2) and by gcc for aarch64 and s390x (big endian), run under qemu-user; every
# line printed must be the same. The leg "cross" of ./dev check.
set -eu
cd "$(dirname "$0")/../.."
out=build/cross
mkdir -p "$out"
want=''
try() { # NAME RUNNER COMPILER FLAG...
    name=$1 runner=$2
    shift 2
    "$@" -std=c17 -D_POSIX_C_SOURCE=200809L -ffp-contract=off -Iinclude -Isrc -static \
        tests/cross/bins.c src/sketch/*.c src/base/alloc.c src/base/error.c -lm -o "$out/bins-$name"
    # shellcheck disable=SC2086 # a runner may be empty
    got=$($runner "$out/bins-$name" tests/golden/sketch/index.tsv tests/golden/sketch/form.tsv) || {
        echo "cross: FAILED on $name: $got" >&2
        exit 1
    }
    echo "cross: $name: $got"
    [ -n "$want" ] || want=$got
    [ "$got" = "$want" ] || {
        echo "cross: FAILED: $name differs" >&2
        exit 1
    }
}
try x86-64-gcc '' gcc -O2
try x86-64-gcc-O0 '' gcc -O0
try x86-64-gcc-O3 '' gcc -O3
try x86-64-clang '' clang-14 -O2
if grep -q avx2 /proc/cpuinfo; then
    try x86-64-v3-gcc '' gcc -O3 -march=x86-64-v3
    try x86-64-v3-clang '' clang-14 -O3 -march=x86-64-v3
fi
try aarch64 'qemu-aarch64' aarch64-linux-gnu-gcc -O2
try s390x 'qemu-s390x' s390x-linux-gnu-gcc -O2
