# SPDX-License-Identifier: Apache-2.0
"""weir agent --check-config and --print-config: where each value comes from, and that what is printed is itself a
file that says the same."""
import os
import re
import subprocess
import sys
import tempfile
import unittest

from weirtest import run

DEFAULT = "# default"


def agent(*arguments, **environment):
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("WEIR_", "DD_"))}
    kept.update(environment)
    return subprocess.run([run.PROGRAM.encode(), b"agent"] + [os.fsencode(a) for a in arguments],
                          stdin=subprocess.DEVNULL, capture_output=True, timeout=20, env=kept)


def values_of(text):
    """{dotted name: (value as printed, origin)} of what --print-config prints."""
    found, path = {}, []
    for line in text.split("\n"):
        if not line or line.startswith("#"):
            continue
        depth = (len(line) - len(line.lstrip())) // 2
        name, _, rest = line.strip().partition(":")
        path = path[:depth] + [name]
        if rest:
            value, _, origin = rest.strip().rpartition("  #")
            found[".".join(path)] = (value, origin.strip())
    return found


class Printed(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def file(self, text, name="weir.yaml"):
        path = os.path.join(self.folder.name, name)
        with open(path, "wb") as f:
            f.write(text)
        return path

    def printed(self, *arguments, **environment):
        done = agent("--print-config", *arguments, **environment)
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        return done.stdout

    def check_reads_back(self, *arguments, **environment):
        first = self.printed(*arguments, **environment)
        again = self.printed("--config.file=" + self.file(first, "again.yaml"))
        one, two = values_of(first.decode()), values_of(again.decode())
        self.assertGreater(len(one), 20)
        self.assertEqual({k: v for k, (v, _) in one.items()}, {k: v for k, (v, _) in two.items()})
        for name, (_, origin) in two.items():
            self.assertRegex(origin, r"again\.yaml:\d+:\d+$", name)
        # And a third time to the byte: nothing drifts.
        self.assertEqual(self.printed("--config.file=" + self.file(first, "again.yaml")), again)
        return one

    def test_each_value_names_its_origin(self):
        path = self.file(b"log:\n  level: warn\naggregation:\n  lateness: 12s\n  window: 11s\n")
        found = self.check_reads_back("--config.file=" + path, "--aggregation.max-keys=4321",
                                      WEIR_AGGREGATION_WINDOW="14s", WEIR_AGGREGATION_MAX_KEYS="1234")
        self.assertEqual(found["log.level"], ("warn", path + ":2:3"))
        self.assertEqual(found["aggregation.lateness"], ("12s", path + ":4:3"))
        self.assertEqual(found["aggregation.window"], ("14s", "environment WEIR_AGGREGATION_WINDOW"))
        self.assertEqual(found["aggregation.max-keys"], ("4321", "--aggregation.max-keys"))
        self.assertEqual(found["aggregation.late"], ("fold", "default"))
        checked = agent("--check-config", "--config.file=" + path, "--aggregation.max-keys=4321",
                        WEIR_AGGREGATION_WINDOW="14s")
        self.assertEqual(checked.returncode, 0)
        text = checked.stdout.decode()
        self.assertIn("The configuration is valid. File: " + path, text)
        self.assertIn('log.level = "warn"  (%s:2:3)\n' % path, text)
        self.assertIn('aggregation.window = "14s"  (environment WEIR_AGGREGATION_WINDOW)\n', text)
        self.assertIn('aggregation.max-keys = "4321"  (flag)\n', text)
        self.assertNotIn("aggregation.late ", text)

    def test_values_that_need_care_read_back(self):
        for arguments in ([], ["--store.path=a\\b\"c: {#} 'd'"], ["--store.path= # no comment "], ["--store.path=ünï\u0085\u2028"],
                          ["--store.path=- ~"], ["--web.listen-address="], ["--web.listen-address=[::1]:0"],
                          ["--aggregation.dimensions="], ["--aggregation.dimensions=\"a\",b|c\\,yes,~,1"],
                          ["--aggregation.peer-tags=" + ",".join(chr(97 + i % 26) * 190 + str(i) for i in range(35))],
                          ["--store.retention.time=1y2w3d", "--store.retention.size=1000", "--http.max-head-size=1025"],
                          ["--receivers.datadog.socket="]):
            with self.subTest(arguments=arguments):
                self.check_reads_back(*arguments)

    def test_what_could_not_read_back_is_refused(self):
        for value in (b"a\nb", b"a\tb", b"\x7f", b"a\xffb", b"\xc3", b"\xed\xa0\x80"):
            for option in ("--check-config", "--print-config"):
                done = agent(option, b"--store.path=" + value)
                self.assertEqual((done.returncode, done.stdout), (2, b""), value)
                self.assertIn(b"store.path", done.stderr)
        done = agent("--check-config", b"--aggregation.dimensions=a\xff")
        self.assertEqual(done.returncode, 2)
        self.assertIn(b"aggregation.dimensions", done.stderr)

    def test_what_is_wrong_ends_with_2_and_its_place_and_prints_nothing(self):
        path = self.file(b"log:\n  level: loud\n")
        for option in ("--check-config", "--print-config"):
            done = agent(option, "--config.file=" + path)
            self.assertEqual((done.returncode, done.stdout), (2, b""))
            self.assertIn((path + ":2:").encode(), done.stderr)
            done = agent(option, WEIR_LOG_LEVEL="loud")
            self.assertEqual((done.returncode, done.stdout), (2, b""))
            self.assertIn(b"WEIR_LOG_LEVEL", done.stderr)
            done = agent(option, "--log.level=loud")
            self.assertEqual((done.returncode, done.stdout), (2, b""))
            self.assertIn(b"--log.level", done.stderr)

    def test_an_output_that_is_full_is_a_failure(self):
        for option in ("--check-config", "--print-config"):
            with open("/dev/full", "wb") as full:
                done = subprocess.run([run.PROGRAM, "agent", option], stdout=full, stderr=subprocess.PIPE, timeout=20)
            self.assertEqual(done.returncode, 1)

    def test_every_setting_is_printed(self):
        helped = re.findall(r"^  --([a-z0-9.-]+)=", agent("--help").stdout.decode(), re.M)
        self.assertEqual(set(values_of(self.printed().decode())), set(helped) - {"config.file"})


if __name__ == "__main__":
    sys.exit(run.main())
