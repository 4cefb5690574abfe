#!/bin/sh
# dev_test.sh: what ./dev says and how it ends, as far as that can be seen without building anything.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
failed=0
expect() { # STATUS TEXT COMMAND...
    want=$1 text=$2
    shift 2
    status=0
    out=$("$@" 2>&1) || status=$?
    case $status:$out in
    "$want":*"$text"*) ;;
    *)
        echo "FAIL: $* ended with $status, not $want, or did not say '$text': $out"
        failed=1
        ;;
    esac
}
expect 0 'usage: ./dev VERB' "$root/dev" help
expect 2 'usage: ./dev VERB' "$root/dev"
expect 2 "unknown verb 'frobnicate'" "$root/dev" frobnicate
for verb in run test check bench lint asan tsan fuzz install help; do
    expect 0 "  $verb" "$root/dev" help
done
expect 1 "no tests in preset 'release'" env DEV_INSTALL=no "$root/dev" test release
expect 1 "unknown option '--frob'" "$root/dev" bench --frob
expect 1 '--rounds takes a number or a name' "$root/dev" bench --rounds
expect 1 '--case takes a number or a name' "$root/dev" bench --case 'a b'
expect 0 'adversarial flood' "$root/dev" bench --list
# A line that is not of this form would be passed over by the benches.
# shellcheck disable=SC2016 # awk's
expect 0 '' awk -F '\t' '/^#/ { next }
    NF != 7 || $6 !~ /^(ratio|least|most|none)$/ || ($6 != "none" && $7 !~ /^[0-9.e+]+$/) {
        print FILENAME ": " $0; bad = 1
    } END { exit bad }' "$root/bench/goals.tsv"

# Where it can install nothing it names what is missing. A PATH with little on it plays that machine.
for tool in sh sed tr dirname nproc; do ln -s "$(command -v $tool)" "$dir/$tool"; done
printf '#!/bin/sh\necho "unknown ok not-installed"\nexit 1\n' >"$dir/dpkg-query"
printf '#!/bin/sh\necho 1000\n' >"$dir/id"
chmod +x "$dir/dpkg-query" "$dir/id"
expect 1 'neither root nor sudo to install them: gcc libc6-dev cmake' env PATH="$dir" "$root/dev" run
rm "$dir/dpkg-query"
expect 1 'not a Debian system: install what tools/deps.txt names' env PATH="$dir" "$root/dev" run

[ $failed = 0 ] && echo "all as documented"
exit $failed
