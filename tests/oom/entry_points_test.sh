#!/bin/sh
# Every public function either asks for no memory or has a sweep; a new one must say which.
set -eu
cd "$(dirname "$0")/../.."
table=tests/oom/entry_points.tsv
tab=$(printf '\t')
status=0
listed=$(grep -v '^#' $table | cut -f 1 | LC_ALL=C sort)
public=$(LC_ALL=C sort tools/weir.symbols tools/weir-client.symbols)
if [ "$listed" != "$public" ]; then
    echo "$table and tools/*.symbols name different functions:" >&2
    echo "$public" | grep -vxF "$listed" | sed 's/^/  not in the table: /' >&2 || true
    echo "$listed" | grep -vxF "$public" | sed 's/^/  not public: /' >&2 || true
    status=1
fi
grep -v '^#' $table >"${TMPDIR:-/tmp}/entry_points.$$"
while IFS="$tab" read -r name sweep; do
    [ "$sweep" != never ] || continue
    if ! grep -q "\<$name(" "$sweep" || ! grep -qE 't_each_oom|fail_at' "$sweep"; then
        echo "$sweep does not sweep $name" >&2
        status=1
    fi
done <"${TMPDIR:-/tmp}/entry_points.$$"
rm -f "${TMPDIR:-/tmp}/entry_points.$$"
exit $status
