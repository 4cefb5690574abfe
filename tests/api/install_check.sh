#!/bin/sh
# install_check.sh: build the release preset and try its installed tree; the leg "install" of ./dev check.
set -eu
cd "$(dirname "$0")/../.."
cmake --preset release --log-level=WARNING
cmake --build --preset release -j "${DEV_JOBS:-$(nproc)}"
exec tests/api/install_test.sh build/release gcc
