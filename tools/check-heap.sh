#!/bin/sh
# check-heap.sh [BUILD]: what libweir.a, and libweir-client.a where it is built, ask of libc. Only alloc.c may reach the heap, nothing may call
# what is banned (only clock.c may read a clock; seen by the linker, hence through macros too), and there is no mutable static data.
# BUILD is a build folder; default build/release. It must be an optimised one: at -O0 the unused parts of
# xxhash's header stay in the objects, and some of them ask for memory.
set -eu
cd "$(dirname "$0")/.."
build=${1:-build/release}
library=$build/src/libweir.a
[ -e "$library" ] || {
    echo "heap: no $library: build it first (./dev lint does)" >&2
    exit 1
}
# Fortified and renamed forms count as their plain names: __sprintf_chk, __isoc99_sscanf, __isoc23_strtol.
heap='malloc|calloc|realloc|reallocarray|free|aligned_alloc|posix_memalign|memalign|strdup|strndup|asprintf|vasprintf'
banned='strcpy|strcat|sprintf|vsprintf|strncpy|strtok|gets|atoi|atol|strtol|sscanf|gmtime|localtime|ctime|rand|srand'
banned="$banned|printf|vprintf|fprintf|vfprintf|puts|putchar|fputs|exit|abort|getenv|clock_gettime|gettimeofday|time"

refuse() { # WHAT LINES
    [ -z "$2" ] || {
        echo "heap: $1 in $library:" >&2
        echo "$2" >&2
        exit 1
    }
}
check() { # CLOCK: the object that may read one
    undefined=$(nm -A -u "$library" | sed -E 's/__(isoc[0-9]+_)?([a-z]+)_chk$/\2/; s/__isoc[0-9]+_//')
    refuse 'the heap is reached from another file than alloc.c' \
        "$(echo "$undefined" | grep -E " ($heap)\$" | grep -v ':alloc\.c\.o:' || :)"
    refuse 'banned functions' "$(echo "$undefined" | grep -E " ($banned)\$" | grep -v ":$1\\.c\\.o: *U clock_gettime\$" || :)"
    # Constants that hold addresses lie in .data.rel.ro in position-independent code: not mutable.
    refuse 'mutable static data' "$(objdump -t "$library" |
        awk '/file format/ { file = $1 } $0 ~ / O (\.bss|\.data|\.tbss|\.tdata|\*COM\*)/ && $0 !~ /\.data\.rel\.ro/ { print file, $NF }')"
    echo "heap: only alloc.c reaches it, nothing banned, no mutable static data ($library)"
}

check clock
library=$build/client/libweir-client.a
[ ! -e "$library" ] || check base
