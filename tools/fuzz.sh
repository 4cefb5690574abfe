#!/bin/sh
# fuzz.sh [TARGET...] [--for SECONDS]: every fuzz target, or some, two at a time, a line each.
# Called by ./dev fuzz, which has built them. What is found stays in build/fuzz/.
set -eu
cd "$(dirname "$0")/.."
export LC_ALL=C

one() { # SECONDS TARGET
    seconds=$1 target=$2
    program=build/fuzz/tests/fuzz/fuzz_$target
    corpus=build/fuzz/corpus/$target log=build/fuzz/$target.log found=build/fuzz/found/$target-
    mkdir -p build/fuzz/found
    tests/fuzz/corpus.py unpack "tests/fuzz/corpus/$target.hex" "$corpus"
    dict=tests/fuzz/dict/$target.dict
    [ -f "$dict" ] || dict=''
    result=0
    UBSAN_OPTIONS=print_stacktrace=1 "$program" -max_total_time="$seconds" -max_len=2048 -timeout=10 \
        -rss_limit_mb=1024 -print_final_stats=1 -artifact_prefix="$found" ${dict:+-dict="$dict"} \
        "$corpus" >"$log" 2>&1 || result=$?
    runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
    edges=$(sed -n 's/^#.* cov: \([0-9]*\) .*/\1/p' "$log" | tail -n 1)
    if [ "$result" = 0 ]; then
        echo "fuzz: $target: ${runs:-0} runs, ${edges:-0} edges, no crash"
        return 0
    fi
    echo "fuzz: $target: ${runs:-0} runs, ${edges:-0} edges, FAILED; the end of $log:"
    grep -m 4 -E 'not true|runtime error|ERROR|SUMMARY|^ALARM' "$log" || tail -n 5 "$log"
    file=$(sed -n 's/.*Test unit written to //p' "$log" | tail -n 1)
    [ -z "$file" ] || {
        echo "fuzz: the input is $file; the line to add to tests/fuzz/corpus/$target.hex:"
        tests/fuzz/corpus.py line "$file"
    }
    return 1
}

if [ "${1:-}" = --one ]; then
    one "$2" "$3"
    exit
fi

seconds=600 targets=''
while [ $# -gt 0 ]; do
    case $1 in
    --for)
        seconds=${2:?--for wants seconds}
        shift
        ;;
    -*)
        echo "fuzz: unknown option '$1'" >&2
        exit 2
        ;;
    *)
        [ -f "tests/fuzz/corpus/$1.hex" ] || {
            echo "fuzz: no target '$1'; there are: $(cd tests/fuzz/corpus && echo *.hex | sed 's/\.hex//g')" >&2
            exit 2
        }
        targets="$targets $1"
        ;;
    esac
    shift
done
[ -n "$targets" ] || targets=$(cd tests/fuzz/corpus && echo *.hex | sed 's/\.hex//g')
echo "$targets" | xargs -n 1 -P 2 tools/fuzz.sh --one "$seconds"
