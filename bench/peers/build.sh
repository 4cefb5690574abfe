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

# One class beside the jars of its pom. One collector, so that bytes held can be counted.
java_build() { # DIR PROGRAM CLASS
    (cd "$1" && mvn -q -B dependency:copy-dependencies -DoutputDirectory=lib &&
        javac -d classes -cp 'lib/*' "$3.java") || return 1
    cat >"$out/bin/$2" <<SCRIPT
#!/bin/sh
exec java -Xmx4g -XX:+UseSerialGC -XX:MarkSweepAlwaysCompactCount=1 -XX:+UseTransparentHugePages \\
    -cp '$1/classes:$1/lib/*' $3 "\$@"
SCRIPT
    chmod +x "$out/bin/$2"
}

with_mvn() { # PROGRAM CLASS
    for tool in mvn javac; do
        command -v "$tool" >/dev/null 2>&1 || {
            absent "$1" "no $tool"
            return 0
        }
    done
    copy "$1"
    status=0
    java_build "$out/src/$1" "$1" "$2" >"$out/$1.log" 2>&1 || status=$?
    built "$1" "$status"
}

bench=${1:-all}
case $bench in aggregate | decode | encode | all) with_cargo libdatadog ;; esac
case $bench in
sketch | all)
    with_npm hdr_c
    with_go sketches_go
    with_cargo sketches_rust
    with_mvn sketches_java SketchesJava
    ;;
esac
case $bench in
agent | all)
    with_go trace_agent
    with_go otelcol
    ;;
esac
