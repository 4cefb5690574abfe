#!/bin/sh
# build.sh [BENCH]: builds the peers of a bench, or of all, as far as their toolchains are there,
# into build/peers/bin; for the others build/peers/PROGRAM.why says why not, and so do the benches.
# Peers come through cargo, go, npm and mvn, at the exact versions of their manifests, or of this
# file; lock files and what is fetched are left under build/. A first build takes minutes and some GB
# there and in the toolchains' caches.
set -eu
cd "$(dirname "$0")/../.."
jobs=${DEV_JOBS:-$(nproc)}
out=$PWD/build/peers
mkdir -p "$out/bin" "$out/src"

absent() { # PROGRAM WHY
    rm -f "$out/bin/$1"
    echo "$2" >"$out/$1.why"
    echo "peer $1: $2" >&2
}

# Built from a copy, so that what the toolchains write down stays out of the sources.
copy() { # PROGRAM
    mkdir -p "$out/src/$1"
    cp -Rpu "bench/peers/$1/." "$out/src/$1"
}

built() { # PROGRAM STATUS
    if [ "$2" = 0 ]; then
        rm -f "$out/$1.why"
        echo "peer $1: built" >&2
    else
        absent "$1" "its build failed, see build/peers/$1.log"
    fi
}

with_cargo() { # PROGRAM
    command -v cargo >/dev/null 2>&1 || {
        absent "$1" "no cargo"
        return 0
    }
    copy "$1"
    status=0
    { (cd "$out/src/$1" && cargo build --release -j "$jobs" --target-dir "$out/cargo") &&
        cp -p "$out/cargo/release/$1" "$out/bin/$1"; } >"$out/$1.log" 2>&1 || status=$?
    built "$1" "$status"
}

with_go() { # PROGRAM
    command -v go >/dev/null 2>&1 || {
        absent "$1" "no go"
        return 0
    }
    copy "$1"
    status=0
    # -mod=mod: sums and indirect versions follow from the pinned ones and are not in the sources.
    (cd "$out/src/$1" && go build -mod=mod -buildvcs=false -trimpath -p "$jobs" -o "$out/bin/$1" .) \
        >"$out/$1.log" 2>&1 || status=$?
    built "$1" "$status"
}

# HdrHistogram_c: its sources lie in a package of npm, nothing of which is run.
hdr_package=native-hdr-histogram@1.0.0
hdr_build() { # DIR
    if [ ! -d "$1/package" ]; then
        (cd "$1" && npm pack --silent "$hdr_package" && tar xzf native-hdr-histogram-*.tgz) || return 1
    fi
    hdr=$1/package/HdrHistogram_c/src
    "${CC:-cc}" -std=gnu17 -O3 -DNDEBUG -w -I"$hdr" -o "$out/bin/hdr_c" "$1/main.c" \
        "$hdr/hdr_histogram.c" "$hdr/hdr_histogram_log.c" "$hdr/hdr_encoding.c" "$hdr/hdr_time.c" -lz -lm
}

with_npm() { # PROGRAM
    for tool in npm "${CC:-cc}"; do
        command -v "$tool" >/dev/null 2>&1 || {
            absent "$1" "no $tool"
            return 0
        }
    done
    copy "$1"
    status=0
    hdr_build "$out/src/$1" >"$out/$1.log" 2>&1 || status=$?
    built "$1" "$status"
}

# A script that finds what it runs beside itself, so that the folder can be moved.
java_script() { # PROGRAM CLASS-PATH CLASS OPTIONS
    cat >"$out/bin/$1" <<SCRIPT
#!/bin/sh
here=\$(cd "\$(dirname "\$0")/.." && pwd)
exec java $4 -cp "$2" $3 "\$@"
SCRIPT
    chmod +x "$out/bin/$1"
}

with_java() { # PROGRAM BUILD
    for tool in mvn javac java; do
        command -v "$tool" >/dev/null 2>&1 || {
            absent "$1" "no $tool"
            return 0
        }
    done
    rm -rf "$out/src/$1" # or what an interrupted build left is taken for built
    copy "$1"
    status=0
    "$2" >"$out/$1.log" 2>&1 || status=$?
    built "$1" "$status"
}

jars_of() { # FOLDER: those of its pom, into lib
    (cd "$out/src/$1" && mvn -q -B dependency:copy-dependencies -DoutputDirectory=lib)
}

# One class beside the jars of its pom. One collector, so that bytes held can be counted.
sketches_java() {
    jars_of sketches_java &&
        (cd "$out/src/sketches_java" && javac -d classes -cp 'lib/*' SketchesJava.java) &&
        java_script sketches_java "\$here/src/sketches_java/classes:\$here/src/sketches_java/lib/*" \
            SketchesJava "-Xmx4g -XX:+UseSerialGC -XX:MarkSweepAlwaysCompactCount=1 \\
    -XX:+UseTransparentHugePages"
}

# The tracer's classes lie hidden in its agent's jar: unpacked once, into build/peers/java_agent.
java_agent() {
    [ ! -e "$out/java_agent/done" ] || return 0
    copy java_agent
    rm -rf "$out/java_agent"
    jars_of java_agent &&
        (cd "$out/src/java_agent" && java Unpack.java lib/dd-java-agent-*.jar "$out/java_agent") &&
        : >"$out/java_agent/done"
}

# The heap is touched beforehand: a page's first touch is the kernel's time, not the tracer's.
java_stats() {
    java_agent &&
        (cd "$out/src/java_stats" && javac -nowarn -proc:none -d classes -cp "$out/java_agent" ./*.java) &&
        java_script java_stats "\$here/src/java_stats/classes:\$here/java_agent" \
            datadog.trace.agent.common.metrics.JavaStats "-Xms2g -Xmx2g -XX:+AlwaysPreTouch"
}

bench=${1:-all}
case $bench in
aggregate | decode | encode | adversarial | resource | peer | additional | all) with_cargo libdatadog ;;
esac
case $bench in
publish | adversarial | resource | peer | additional | all) with_java java_stats java_stats ;;
esac
case $bench in
sketch | all)
    with_npm hdr_c
    with_go sketches_go
    with_cargo sketches_rust
    with_java sketches_java sketches_java
    ;;
esac
case $bench in
agent | all)
    with_go trace_agent
    with_go otelcol
    ;;
esac
