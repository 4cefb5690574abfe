# SPDX-License-Identifier: Apache-2.0
"""ddsketch_test.py PROGRAM: the library's DDSketch codecs against sketches-go, both ways.

What sketches-go writes, the library reads as sketches-go itself does; what the library writes, sketches-go reads as
the library does: bin by bin, and with the exact statistics where they come along. ddsketch-go is built once, into
build/interop/; without a Go toolchain that can, the test is skipped.
"""
import os
import random
import sys
import unittest

from weirtest import packages

MAPPINGS = {
    "log": ("log", "1.0202020202020203", "0"),
    "linear": ("linear", "1.0139599483670221", "49.998333288886478"),
    "bitwise": ("linear", repr(2 ** (1 / 64)), "0"),
    "cubic": ("cubic", "1.0200022828058628", "0"),
    "agent": ("log", "1.015625", "1338.5"),
    "agent-ns": ("log", "1.015625", "1.8761281912861705"),
    "scale6": ("log", repr(2 ** (1 / 64)), "0"),
}
FORMATS = ("proto", "stream", "compact", "exact")
STORES = ("dense", "paginated", "sparse", "collapsing")


def contents(rng):
    """VALUE:WEIGHT words of many shapes; weights are multiples of 1/4, which both hold exactly."""
    n = rng.choice((0, 1, 2, 10, 100, 2000))
    spread = rng.choice((0.3, 1, 6))
    words = []
    for _ in range(n):
        v = rng.choice((1, 1, 1, -1)) * rng.lognormvariate(3, spread)
        if rng.random() < 0.02:
            v = 0
        words.append("%r:%r" % (v, rng.choice((1, 1, 1, 1, 2, 300, 0.25, 70000))))
    if rng.random() < 0.5:
        words = [w.split(":")[0].lstrip("-") + ":1" for w in words]
    return " ".join(words)


class SketchesGo(unittest.TestCase):
    def setUp(self):
        self.rng = random.Random(20261130)

    def expect(self, read_format, encoded, cases):
        ours = packages.ask(OURS, ["read %s %s" % (f, h) for f, h in zip(read_format, encoded)])
        theirs = packages.ask(THEIRS, ["read %s %s" % (f, h) for f, h in zip(read_format, encoded)])
        for case, a, b in zip(cases, ours, theirs):
            a, b = a.split(), b.split()
            if a[0] == "exact":  # their sum may be rounded where it is added up
                self.assertEqual(b[0], "exact", case[:200])
                self.assertAlmostEqual(float(a[1]), float(b[1]), delta=1e-12 * abs(float(b[1])), msg=case[:200])
                a, b = a[2:], b[2:]
            self.assertEqual(sorted(a), sorted(b), case[:200])

    def test_what_sketches_go_writes_is_read_as_it_reads_it(self):
        cases, formats = [], []
        for mapping in MAPPINGS.values():
            for store in STORES:
                for form in FORMATS:
                    words = contents(self.rng)
                    if store == "paginated" and form != "proto":
                        words = " ".join(w.split(":")[0] + ":1" for w in words.split())
                    cases.append("write %s %s %s %s %s %s" % ((form,) + mapping + (store, words)))
                    formats.append(form)
        self.expect(formats, packages.ask(THEIRS, cases), cases)

    def test_what_the_library_writes_sketches_go_reads_as_the_library_does(self):
        cases, formats = [], []
        for mapping in list(MAPPINGS.values()) + [("base2", "0", "0")]:
            for blocks in ("cut", "one"):
                for form in ("proto", "compact", "exact"):
                    for _ in range(3):
                        cases.append("write %s %s %s %s %s %s" % ((form,) + mapping + (blocks, contents(self.rng))))
                        formats.append(form)
        self.expect(formats, packages.ask(OURS, cases), cases)


if __name__ == "__main__":
    OURS = os.path.abspath(sys.argv.pop(1))
    THEIRS = packages.go_built("ddsketch-go", "sketches-go")
    unittest.main()
