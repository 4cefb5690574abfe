#!/bin/sh
# check-layers.sh: every #include "module/file.h" goes along an edge of tools/layers.txt. A module may
# only name modules that stand above it there, so that two can never need each other.
# With a folder as argument it reads that tree instead of this one (the test of this script).
set -eu
cd "${1:-$(dirname "$0")/..}"
# shellcheck disable=SC2046 # a list of words
awk '
    function module_of(path, n, part) { # src/wire/x.c -> wire, client/x.c -> client, agent/net/x.c -> agent/net, agent/x.c -> agent
        n = split(path, part, "/")
        return part[1] == "src" ? part[2] : part[1] == "client" ? "client" : n > 2 ? "agent/" part[2] : "agent"
    }
    function fail(text) { print "layers: " text > "/dev/stderr"; bad = 1 }
    BEGIN {
        while ((getline line < "tools/layers.txt") > 0) {
            if (line ~ /^#/ || split(line, part, ":") < 2) continue
            known[part[1]] = 1
            for (i = split(part[2], seen, " "); i > 0; i--) {
                if (!(seen[i] in known)) fail("tools/layers.txt: " part[1] " names " seen[i] ", which does not stand above it")
                if (part[1] ~ /^agent/ && seen[i] !~ /^agent/ && seen[i] != "wire")
                    fail("tools/layers.txt: of the inside of the library the agent may see wire alone, not " seen[i])
                edge[part[1], seen[i]] = 1
            }
        }
    }
    FNR == 1 { from = module_of(FILENAME); if (!(from in known)) fail(FILENAME ": module " from " is not in tools/layers.txt") }
    /^[ \t]*#[ \t]*include[ \t]*"/ {
        edges++
        split($0, quoted, "\"")
        if (split(quoted[2], part, "/") < 2) next # a file of the same folder
        to = from ~ /^agent/ && ("agent/" part[1]) in known ? "agent/" part[1] : part[1]
        if (to != from && !((from, to) in edge)) fail(FILENAME ":" FNR ": " from " may not include " quoted[2])
    }
    END { if (bad) exit 1; print "layers: " edges " includes, all along the edges" }' $(find src client agent -name '*.[ch]' 2>/dev/null | LC_ALL=C sort)
