# SPDX-License-Identifier: Apache-2.0
"""ddsketch_test.py PROGRAM: the library's DDSketch codecs against sketches-go, both ways.

What sketches-go writes, the library reads as sketches-go itself does; what the library writes, sketches-go reads as
the library does: bin by bin, and with the exact statistics where they come along. ddsketch-go is built once, into
build/interop/; without a Go toolchain that can, the test is skipped.
"""
import os
import random
import shutil
import subprocess
import sys
import unittest

from weirtest import run

HERE = os.path.dirname(os.path.abspath(__file__))
CACHE = os.path.join(run.SOURCE, "build", "interop", "ddsketch-go")
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


def build():
    go = shutil.which("go") or next((p for p in ("/usr/local/go/bin/go", "/usr/lib/go/bin/go") if os.path.exists(p)),
                                    None)
    if not go:
        run.skip("no Go toolchain")
    os.makedirs(CACHE, exist_ok=True)
    program = os.path.join(CACHE, "ddsketch-go")
    done = subprocess.run([go, "build", "-o", program, "."], cwd=os.path.join(HERE, "ddsketch-go"),
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        print(done.stdout[-2000:])
        run.skip("a Go toolchain that builds sketches-go (too old, or its modules could not be fetched)")
    return program


def ask(program, cases):
    done = subprocess.run([program], input="\n".join(cases) + "\n", stdout=subprocess.PIPE, text=True, timeout=300)
    answers = done.stdout.splitlines()
    if done.returncode != 0 or len(answers) != len(cases):
        raise AssertionError("%s answered %d of %d cases" % (program, len(answers), len(cases)))
    return answers


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
        ours = ask(OURS, ["read %s %s" % (f, h) for f, h in zip(read_format, encoded)])
        theirs = ask(THEIRS, ["read %s %s" % (f, h) for f, h in zip(read_format, encoded)])
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
        self.expect(formats, ask(THEIRS, cases), cases)

    def test_what_the_library_writes_sketches_go_reads_as_the_library_does(self):
        cases, formats = [], []
        for mapping in list(MAPPINGS.values()) + [("base2", "0", "0")]:
            for blocks in ("cut", "one"):
                for form in ("proto", "compact", "exact"):
                    for _ in range(3):
                        cases.append("write %s %s %s %s %s %s" % ((form,) + mapping + (blocks, contents(self.rng))))
                        formats.append(form)
        self.expect(formats, ask(OURS, cases), cases)


if __name__ == "__main__":
    OURS = os.path.abspath(sys.argv.pop(1))
    THEIRS = build()
    unittest.main()
