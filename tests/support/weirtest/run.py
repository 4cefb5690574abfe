# SPDX-License-Identifier: Apache-2.0
"""Skips and main for the tests of the running program: ctest reads exit code 77 as skipped."""
import os
import shutil
import sys
import unittest

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
# ctest says which build; by hand it is the one for development.
BUILD = os.environ.get("WEIR_BUILD", os.path.join(SOURCE, "build", "dev"))
PROGRAM = os.path.join(BUILD, "weir")
# Recorded bodies lie beside the source tree; a user's clone may not have them.
VECTORS = os.environ.get("WEIR_VECTORS", os.path.join(os.path.dirname(SOURCE), "shared", "vectors"))


def is_ci():
    return os.environ.get("CI", "") not in ("", "0", "false")


def is_optimised():
    """Of a build for debugging, times say little."""
    with open(os.path.join(BUILD, "CMakeCache.txt")) as f:
        return "CMAKE_BUILD_TYPE:STRING=Debug" not in f.read()


def skip(what):
    """End this test program: skipped by name, or failed where CI is set."""
    if is_ci():
        print("FAILED: %s is missing, and CI must have it" % what, flush=True)
        sys.exit(1)
    print("SKIPPED: %s is missing" % what, flush=True)
    sys.exit(77)


def need_command(*names):
    for name in names:
        if not shutil.which(name):
            skip(name)


def need_vectors(*parts):
    path = os.path.join(VECTORS, *parts)
    if not os.path.exists(path):
        skip("the folder of recorded bodies (%s)" % "/".join(("vectors",) + parts))
    return path


def main():
    if not os.path.exists(PROGRAM):
        print("FAILED: no program at %s: build it first" % PROGRAM)
        sys.exit(1)
    unittest.main(module="__main__", verbosity=2, failfast=False)
