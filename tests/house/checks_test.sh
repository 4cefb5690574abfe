#!/bin/sh
# checks_test.sh CC: tools/check-*.sh pass what is right and refuse each seeded fault by name.
set -eu
cc=$1
tools=$(cd "$(dirname "$0")/../../tools" && pwd)
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
failed=0
fail() {
    echo "FAIL: $*"
    failed=1
}
expect() { # STATUS TEXT COMMAND...: the command ends so and prints that
    want=$1 text=$2
    shift 2
    status=0
    out=$("$@" 2>&1) || status=$?
    [ "$status" = "$want" ] || fail "$* ended with $status, not $want: $out"
    case $out in
    *"$text"*) ;;
    *) fail "$* did not say '$text' but: $out" ;;
    esac
}

# Layers: a small tree of its own.
mkdir -p "$dir/tree/tools" "$dir/tree/src/base" "$dir/tree/src/wire" "$dir/tree/agent/net" "$dir/tree/agent/plat"
cat >"$dir/tree/tools/layers.txt" <<'TXT'
# comment: none
base:
wire: base
agent/plat:
agent/net: agent/plat wire
agent: agent/net
TXT
cd "$dir/tree"
echo '#include "base/b.h"' >src/wire/w.c
printf '#include "plat/p.h"\n#include "wire/w.h"\n#include "net.h"\n#include <weir/base.h>\n' >agent/net/n.c
echo '#include "net/n.h"' >agent/main.c
expect 0 'layers: 5 includes' "$tools/check-layers.sh" "$dir/tree"
echo '#include "wire/w.h"' >src/base/b.c
expect 1 'src/base/b.c:1: base may not include wire/w.h' "$tools/check-layers.sh" "$dir/tree"
rm src/base/b.c
echo '#  include "base/b.h"' >agent/plat/p.c
expect 1 'agent/plat may not include base/b.h' "$tools/check-layers.sh" "$dir/tree"
rm agent/plat/p.c
mkdir src/other && echo '/* */' >src/other/o.c
expect 1 'module other is not in tools/layers.txt' "$tools/check-layers.sh" "$dir/tree"
rm -r src/other
echo 'agent/self: base' >>tools/layers.txt
expect 1 'the agent may see wire alone, not base' "$tools/check-layers.sh" "$dir/tree"
printf 'base: wire\nwire: base\n' >tools/layers.txt
expect 1 'base names wire, which does not stand above it' "$tools/check-layers.sh" "$dir/tree"

# Heap, banned and static data: one object a fault.
cd "$dir"
library() { # NAME.c TEXT: lib/src/libweir.a with alloc.c.o and that one object
    rm -rf lib && mkdir -p lib/src
    echo "$2" >"$1"
    echo '#include <stdlib.h>
void *wr_alloc(void); void *wr_alloc(void) { return malloc(1); }' >alloc.c
    for file in alloc.c "$1"; do "$cc" -O2 -fPIC -w -c "$file" -o "lib/src/$file.o"; done
    ar rc lib/src/libweir.a "lib/src/alloc.c.o" "lib/src/$1.o"
    "$cc" -shared -o lib/src/libweir.so "lib/src/alloc.c.o" "lib/src/$1.o"
}
library good.c 'extern int wr_n(const char *); static const char *const names[] = {"a", "b"};
const char *wr_name(int i) { return names[i]; }'
expect 0 'only alloc.c reaches it' "$tools/check-heap.sh" "$dir/lib"
library heap.c '#include <stdlib.h>
void wr_drop(void *p) { free(p); }'
expect 1 'heap.c.o' "$tools/check-heap.sh" "$dir/lib"
library print.c '#include <stdio.h>
void wr_say(char *d, const char *s) { sprintf(d, "<%s>", s); }'
expect 1 'banned functions' "$tools/check-heap.sh" "$dir/lib"
library data.c 'static int calls; int wr_count(void) { return ++calls; }'
expect 1 'mutable static data' "$tools/check-heap.sh" "$dir/lib"
expect 1 'no nowhere/src/libweir.a' "$tools/check-heap.sh" nowhere

# Symbols.
expect 1 'exports something else' "$tools/check-symbols.sh" "$dir/lib"
library loose.c 'int helper(void) { return 1; }'
expect 1 'T helper' "$tools/check-symbols.sh" "$dir/lib"
expect 1 'no libweir in nowhere' "$tools/check-symbols.sh" nowhere

[ $failed = 0 ] && echo "all seeded faults were refused"
exit $failed
