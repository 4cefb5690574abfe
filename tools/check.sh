#!/bin/sh
# check.sh: the legs of ./dev check, one after the other, each with its seconds; the first that fails
# ends it with its name. Called by ./dev check, which has installed the packages.
set -eu
cd "$(dirname "$0")/.."
now() { date +%s; }
begun=$(now)
summary=''

leg() { # NAME COMMAND...
    name=$1
    shift
    echo "check: $name: $*"
    leg_begun=$(now)
    "$@" || {
        echo "check: FAILED in leg $name after $(($(now) - leg_begun)) s: $*" >&2
        exit 1
    }
    summary="$summary $name $(($(now) - leg_begun)) s,"
    echo "check: $name: passed in $(($(now) - leg_begun)) s"
}

leg lint ./dev lint
leg install tests/api/install_check.sh
leg clang ./dev test clang -- -LE 'e2e|interop|api'
leg asan ./dev asan
leg tsan ./dev tsan
leg msan ./dev msan
leg cross ./dev cross
if command -v clang-19 >/dev/null 2>&1; then
    leg clang19 ./dev test clang19 -- -LE 'e2e|interop|api'
fi
# 200 seconds for all targets, two at a time
leg fuzz ./dev fuzz --for $((400 / $(find tests/fuzz/corpus -name '*.hex' | wc -l)))
leg dev ./dev test dev
echo "check: all legs passed in $(($(now) - begun)) s:${summary%,}"
