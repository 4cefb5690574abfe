#!/bin/sh
# corpus_test.sh: the way from files to a corpus and back keeps every byte and what was put there by
# hand; corpora are bounded; tools/fuzz.sh refuses what is not there by name.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
failed=0
fail() {
    echo "FAIL: $*"
    failed=1
}

printf '# a finding\n00ff\n# minimised\n77\n' >"$dir/a.hex"
mkdir "$dir/found"
printf '\000\377' >"$dir/found/known"
printf 'abc' >"$dir/found/new"
"$here/corpus.py" pack "$dir/found" "$dir/a.hex"
printf '# a finding\n00ff\n# minimised\n616263\n' | cmp - "$dir/a.hex" || fail "pack: $(cat "$dir/a.hex")"
"$here/corpus.py" unpack "$dir/a.hex" "$dir/out"
[ "$(cat "$dir"/out/* | od -An -tx1 | tr -d ' \n' | wc -c)" = 10 ] || fail "unpack: $(ls "$dir/out")"
[ "$("$here/corpus.py" line "$dir/found/new")" = 616263 ] || fail "line"
if "$here/corpus.py" frobnicate 2>/dev/null; then fail "an unknown verb was taken"; fi

for corpus in "$here"/corpus/*.hex; do
    name=$(basename "$corpus" .hex)
    [ -f "$here/fuzz_$name.c" ] || fail "$name has a corpus and no target"
    [ "$(grep -vc '^#' "$corpus")" -le 200 ] || fail "$name has more than 200 inputs"
done
status=0
said=$("$here/../../tools/fuzz.sh" frobnicate 2>&1) || status=$?
case "$status $said" in "2 fuzz: no target 'frobnicate'"*) ;; *) fail "$status $said" ;; esac
exit $failed
