# SPDX-License-Identifier: Apache-2.0
"""histogram_test.py PROGRAM: the library's histogram codecs against client_golang and OpenTelemetry's SDK.

What they record and write, the library reads with the same bins; what the library writes, their messages read with
the bins that the library has. histogram-go is built once, into build/interop/; without a Go toolchain that can, the
test is skipped.
"""
import os
import random
import sys
import unittest

from weirtest import packages


class Histograms(unittest.TestCase):
    def setUp(self):
        self.rng = random.Random(20261130)

    def contents(self):
        words = []
        for _ in range(self.rng.choice((0, 1, 2, 30, 500))):
            v = self.rng.choice((1, 1, 1, -1)) * self.rng.lognormvariate(3, self.rng.choice((0.3, 1, 6)))
            v = 0 if self.rng.random() < 0.03 else v
            words.append("%r:%d" % (v, self.rng.choice((1, 1, 1, 2, 40))))
        return " ".join(words)

    def expect(self, formats, encoded):
        reads = ["read %s %s" % (f, h or "-") for f, h in zip(formats, encoded)]
        for case, ours, theirs in zip(reads, packages.ask(OURS, reads), packages.ask(THEIRS, reads)):
            self.assertEqual(sorted(ours.split()), sorted(theirs.split()), case[:300])

    def test_what_others_record_is_read_bin_for_bin(self):
        cases = ["write prometheus %s %s" % (factor, self.contents())
                 for factor in ("1.0028", "1.01", "1.05", "1.1", "2", "65536") for _ in range(8)]
        cases += ["write otlp_exp %d %s" % (scale, self.contents()) for scale in (8, 6, 3, 0, -3) for _ in range(8)]
        self.expect([c.split()[1] for c in cases], packages.ask(THEIRS, cases))

    def test_what_the_library_writes_is_read_bin_for_bin(self):
        cases = ["write %s base2 0 0 cut %s" % (form, self.contents())
                 for form in ("prometheus", "otlp_exp") for _ in range(24)]
        self.expect([c.split()[1] for c in cases], packages.ask(OURS, cases))


if __name__ == "__main__":
    OURS = os.path.abspath(sys.argv.pop(1))
    THEIRS = packages.go_built("histogram-go", "client_golang and OpenTelemetry's SDK")
    unittest.main()
