#!/bin/sh
# build.sh [BENCH]: builds the peers of a bench, or of all, as far as their toolchains are there,
# into build/peers/bin; for the others build/peers/PROGRAM.why says why not, and so do the benches.
# Peers come through cargo and go, at the exact versions of their manifests; lock files are left
# under build/. A first build takes minutes and some GB there and in the toolchains' caches.
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

bench=${1:-all}
case $bench in aggregate | decode | all) with_cargo libdatadog ;; esac
case $bench in
agent | all)
    with_go trace_agent
    with_go otelcol
    ;;
esac
