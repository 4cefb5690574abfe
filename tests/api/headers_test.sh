#!/bin/sh
# headers_test.sh COMPILER STANDARD...: each public header compiles alone, twice, in each standard.
set -eu
compiler=$1
shift
include=$(cd "$(dirname "$0")/../../include" && pwd)
command -v "$compiler" >/dev/null || {
    echo "skipped: no $compiler"
    [ -n "${CI:-}" ] && exit 1
    exit 77
}
count=0
for standard in "$@"; do
    language=c
    case $standard in c++*) language=c++ ;; esac
    for header in "$include"/weir/*.h; do
        name=weir/${header##*/}
        printf '#include <%s>\n#include <%s>\n' "$name" "$name" |
            "$compiler" -std="$standard" -Wall -Wextra -Wpedantic -Wshadow -Wundef -Werror \
                -fsyntax-only -x $language -I "$include" - || {
            echo "$name does not compile alone as $standard"
            exit 1
        }
        count=$((count + 1))
    done
done
[ $count -gt 0 ]
echo "$count compilations of single headers"
