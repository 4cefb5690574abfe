# SPDX-License-Identifier: Apache-2.0
"""weir sketch: numbers in, quantiles out, against the sorted numbers; weir inspect reads back what --to writes."""
import json
import math
import random
import subprocess
import unittest

from weirtest import run

ACCURACY = math.tanh(math.log(2) / 128)  # base 2, scale 6


def weir(*args, text=b""):
    if isinstance(text, str):
        text = text.encode()
    return subprocess.run([run.PROGRAM] + list(args), input=text, capture_output=True, timeout=60, env={"PATH": "/usr/bin:/bin"})


def sketch(*args, text=""):
    done = weir("sketch", "--json", *args, text=text)
    return done.returncode, json.loads(done.stdout) if done.stdout else None, done.stderr.decode()


def quantiles(answer):
    return {q["q"]: q["value"] for q in answer["quantiles"]}


def rank(numbers, q):
    return sorted(numbers)[math.floor(q * (len(numbers) - 1) + 1e-6)]


class Numbers(unittest.TestCase):
    def test_quantiles_of_many_numbers_hold_their_bound(self):
        seed = random.randrange(1 << 32)
        print("seed", seed)
        r = random.Random(seed)
        numbers = [r.choice([1, 1, 1, -1]) * r.lognormvariate(3, 1) for _ in range(20001)] + [0.0] * 100
        status, answer, said = sketch(text="\n".join(map(repr, numbers)))
        self.assertEqual((status, said), (0, ""))
        self.assertEqual(answer["count"], len(numbers))
        self.assertEqual((answer["min"], answer["max"]), (min(numbers), max(numbers)))
        self.assertAlmostEqual(answer["sum"], math.fsum(numbers), delta=abs(math.fsum(numbers)) * 1e-14)
        self.assertEqual(sum(b[2] for b in answer["bins"]), len(numbers))
        for q in answer["quantiles"]:
            true = rank(numbers, q["q"])
            self.assertLessEqual(q["bound"], ACCURACY * 1.000001)
            self.assertLessEqual(abs(q["value"] - true), abs(true) * q["bound"] * 1.000001)

    def test_another_mapping(self):
        numbers = list(range(1, 1001))
        for args, accuracy in ((["--alpha", "0.01"], 0.01), (["--scale", "3"], math.tanh(math.log(2) / 16))):
            status, answer, _ = sketch(*args, text="\n".join(map(str, numbers)))
            self.assertEqual(status, 0)
            self.assertAlmostEqual(answer["mapping"]["accuracy"], accuracy, places=12)
            for q in answer["quantiles"]:
                self.assertLessEqual(abs(q["value"] - rank(numbers, q["q"])), rank(numbers, q["q"]) * accuracy * 1.000001)

    def test_a_thousand_ones_and_one_giant(self):
        _, answer, _ = sketch("--quantiles", "0.99,1", text="1\n" * 1000 + "10000000\n")
        self.assertEqual((answer["max"], quantiles(answer)[1]), (1e7, 1e7))
        self.assertAlmostEqual(quantiles(answer)[0.99], 1, delta=ACCURACY)

    def test_nothing_is_an_answer_too(self):
        status, answer, said = sketch()
        self.assertEqual((status, said), (0, ""))
        self.assertEqual((answer["count"], answer["min"], answer["quantiles"], answer["bins"]), (0, None, [], []))

    def test_bins_that_collapse_show_in_the_bound(self):
        numbers = [10 ** (i / 100) for i in range(-900, 900)]
        _, answer, _ = sketch("--max-bins", "64", "--quantiles", "0.01,0.999", text="\n".join(map(repr, numbers)))
        low, high = answer["quantiles"]
        self.assertGreater(low["bound"], 1)
        self.assertLessEqual(high["bound"], ACCURACY * 1.000001)
        self.assertEqual(sum(b[2] for b in answer["bins"]), len(numbers))


class Columns(unittest.TestCase):
    def test_weights_count_as_that_many_samples(self):
        status, answer, _ = sketch("--weight-column", "2", "--quantiles", "0.5", text="value,weight\n3,4\n2,1\n1,2\n")
        self.assertEqual(status, 0)
        self.assertEqual((answer["count"], answer["sum"], answer["passed_over"]), (7, 16, 1))
        self.assertAlmostEqual(quantiles(answer)[0.5], 3, delta=3 * ACCURACY)

    def test_fractional_weights_add_up(self):
        _, answer, _ = sketch("--weight-column", "1", "--column", "2", text="0.25 10\n" * 4 + "2.5;20\n0 30\n")
        self.assertEqual((answer["count"], answer["sum"], answer["max"], answer["passed_over"]), (3.5, 60, 20, 1))

    def test_a_delimiter_of_ones_own(self):
        _, answer, _ = sketch("--delimiter", "|", "--column", "3", text="a b|x|1\na,b||2\n")
        self.assertEqual((answer["count"], answer["sum"]), (2, 3))
        _, answer, _ = sketch("--delimiter", "\\t", "--column", "2", text="a b\t5\r\n")
        self.assertEqual((answer["count"], answer["sum"]), (1, 5))

    def test_a_file_by_name_and_one_that_is_not_there(self):
        status, answer, _ = sketch(__file__, "--column", "1000")
        self.assertEqual((status, answer["count"]), (1, 0))
        status, _, said = sketch("/nowhere/numbers")
        self.assertEqual(status, 1)
        self.assertIn("/nowhere/numbers: No such file", said)


class Refusals(unittest.TestCase):
    def test_a_bad_line_is_named_and_its_neighbours_stand(self):
        text = b"ms\n# comment\n\n1\nx1\n2\nnan\n3 \ninf\n4\n1e999\n5\x00\n" + b"6" * 70000 + b"\n7"
        status, answer, said = sketch(text=text)
        self.assertEqual((status, answer["count"], answer["sum"], answer["lines"]), (1, 5, 17, 14))
        self.assertEqual(answer["refused"], {"column": 0, "number": 2, "finite": 3, "weight": 0, "total": 0, "long": 1})
        self.assertIn("line 5 is not a number, nor is 1 more taken", said)
        self.assertIn("line 7 is not finite, nor is 2 more taken", said)
        self.assertIn("line 13 is longer than 65535 bytes", said)

    def test_weights_that_are_none(self):
        status, answer, said = sketch("--weight-column", "2", text="1 1\n2 -1\n3 nan\n4\n5 1e30\n")
        self.assertEqual((status, answer["count"], answer["refused"]["weight"]), (1, 1, 4))
        self.assertIn("line 2 has no weight between 0 and", said)

    def test_wrong_lines_of_command(self):
        for args, text in ((["--weight-colum", "2"], "weight-column"), (["--alpha", "1e-9"], "--alpha"), (["--scale", "9"], "--scale"),
                           (["--quantiles", "0.5,2"], "--quantiles"), (["--to", "xml"], "--to"), (["--hex"], "--hex goes with --to"),
                           (["a", "b"], "more than one file"), (["--column", "0"], "--column"), (["--max-bins", "1"], "--max-bins")):
            done = weir("sketch", *args)
            self.assertEqual(done.returncode, 2, args)
            self.assertIn(text, done.stderr.decode())
            self.assertIn("weir sketch --help says more.", done.stderr.decode())


class Text(unittest.TestCase):
    def test_what_people_see(self):
        done = weir("sketch", "--rows", "4", text="\n".join(map(str, range(-50, 51))))
        lines = done.stdout.decode().splitlines()
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(lines[:4], ["count     101", "sum       0", "min       -50", "max       50"])
        self.assertTrue(lines[4].startswith("mapping   base 2, scale 6, accuracy 0.5415 %, "), lines[4])
        self.assertTrue(lines[5].startswith("p50 ") and "within" in lines[5], lines[5])
        rows = [line.split() for line in lines[lines.index("") + 1:]]
        self.assertEqual(sum(int(row[3]) for row in rows), 101)
        self.assertLessEqual(len(rows), 5)


class Encodings(unittest.TestCase):
    NAMES = ("weir", "dd_proto", "dd_compact", "dogsketch", "otlp_exp", "prometheus", "sketchlib", "asapv1")

    def test_inspect_reads_back_what_is_written(self):
        numbers = "\n".join(str(n * n / 8) for n in range(1, 301))
        for name in self.NAMES:
            args = ["--scale", "5"] if name in ("otlp_exp", "prometheus") else ["--alpha", "0.01"]
            if name == "dogsketch":
                args = ["--scale", "4"]
            with self.subTest(name):
                status, first, _ = sketch(*args, text=numbers)
                wrote = weir("sketch", "--to", name, *args, text=numbers)
                if name == "dogsketch":  # has a mapping of its own
                    self.assertEqual((wrote.returncode, wrote.stdout), (1, b""))
                    continue
                self.assertEqual(wrote.returncode, 0, wrote.stderr)
                hexed = weir("sketch", "--to", name, "--hex", *args, text=numbers)
                self.assertEqual(bytes.fromhex(hexed.stdout.decode()), wrote.stdout)
                read = weir("inspect", "--json", "--format", name, "-", text=wrote.stdout)
                self.assertEqual(read.returncode, 0, read.stderr)
                second = json.loads(read.stdout)
                self.assertEqual(second["format"], name)
                self.assertEqual(second["count"], first["count"])
                self.assertAlmostEqual(second["mapping"]["accuracy"], first["mapping"]["accuracy"], places=9)
                self.assertEqual([b[2] for b in second["bins"]], [b[2] for b in first["bins"]])
                if second["exact"]:
                    self.assertEqual((second["sum"], second["min"], second["max"]), (first["sum"], first["min"], first["max"]))

    def test_bytes_of_another_maker(self):
        """A sketch of 1 to 5 by sketches-java, dense store; and one of ten numbers by sketches-go, without its mapping."""
        one = weir("inspect", "--json", "--hex", "--format", "dd_compact", "-",
                   text="02fd4a815abf52f03f0000000000000000 05050002440228021e021602")
        self.assertEqual(one.returncode, 0, one.stderr)
        answer = json.loads(one.stdout)
        self.assertEqual((answer["count"], answer["exact"], answer["mapping"]["kind"]), (5, False, "log"))
        self.assertAlmostEqual(quantiles(answer)[0.5], 3, delta=0.03)
        bare = "050a0002440228021e021602120210020c020c020c02"
        self.assertEqual(weir("inspect", "--hex", "--format", "dd_compact", "-", text=bare).returncode, 1)
        two = weir("inspect", "--json", "--hex", "--format", "dd_compact", "--alpha", "0.01", "-", text=bare)
        self.assertAlmostEqual(quantiles(json.loads(two.stdout))[0.5], 5.002829575110703, delta=1e-9)

    def test_refused_bytes_are_named_by_place_and_reason(self):
        done = weir("inspect", "--hex", "--format", "dd_compact", "-", text="02000000000000f03f0000000000000000")
        self.assertEqual((done.returncode, done.stdout), (1, b""))
        self.assertRegex(done.stderr.decode(), r"weir inspect: refused at byte \d+: ")


if __name__ == "__main__":
    unittest.main()
