# SPDX-License-Identifier: Apache-2.0
"""weir send holds the agent to what it sent, by every protocol and framing; weir query shows it."""
import json
import os
import subprocess
import unittest

from weirtest import run
from weirtest.agent import Agent


def weir(*arguments, timeout=60):
    kept = {k: v for k, v in os.environ.items() if not k.startswith("WEIR_")}
    return subprocess.run([run.PROGRAM] + list(arguments), stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, timeout=timeout, env=kept)


class Send(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.agent = Agent("--aggregation.window=1s", "--aggregation.lateness=1s")
        cls.query_url = "http://127.0.0.1:%d" % cls.agent.web[1]
        cls.sent = 0

    @classmethod
    def tearDownClass(cls):
        cls.agent.__exit__(None, None, None)

    def check(self, *arguments):
        """One run: its own checks pass, and the agent's books have exactly its spans more."""
        before = self.agent.reconcile()["process"]
        done = weir("send", "--check", "--json", "--quiet", "--query-url", self.query_url, *arguments)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        report = json.loads(done.stdout)
        after = self.agent.reconcile()
        self.assertTrue(after["balanced"])
        self.assertGreater(report["spans"], 0)
        self.assertEqual(after["process"]["received"] - before["received"], report["spans"])
        self.assertEqual(after["process"]["aggregated"] - before["aggregated"], report["spans"])
        Send.sent += report["spans"]
        return report

    def datadog(self):
        return "--url=http://127.0.0.1:%d" % self.agent.datadog[1]

    def otlp(self):
        return "--url=http://127.0.0.1:%d" % self.agent.otlp[1]

    def test_v04_over_tcp(self):
        report = self.check("--protocol", "v0.4", self.datadog(), "--rate", "2000", "--for", "2s")
        self.assertEqual(report["spans"], 4000)

    def test_v05_over_tcp(self):
        self.check("--protocol", "v0.5", self.datadog(), "--rate", "2000", "--for", "2s")

    def test_v04_and_v05_over_a_unix_socket(self):
        self.check("--protocol", "v0.4", "--unix-socket", self.agent.socket, "--rate", "1000", "--for", "1s")
        self.check("--protocol", "v0.5", "--unix-socket", self.agent.socket, "--rate", "1000", "--for", "1s")

    def test_otlp_plain_chunked_and_gzip(self):
        for more in ([], ["--chunked"], ["--gzip"], ["--gzip", "--chunked"]):
            self.check("--protocol", "otlp", self.otlp(), "--rate", "1000", "--for", "1s", *more)

    def test_flat_out_with_many_keys_and_errors(self):
        report = self.check("--protocol", "v0.4", self.datadog(), "--services", "20", "--resources", "25",
                            "--error-ratio", "0.1", "--latency", "lognormal:20ms:1.2", "--rate", "0",
                            "--count", "50000", "--seed", "7")
        self.assertEqual(report["spans"], 50000)

    def test_a_wrong_command_line_is_said_before_anything_is_sent(self):
        before = self.agent.reconcile()["process"]["received"]
        for wrong in (["--protocol", "v0.6"], ["--rate", "-1"], ["--error-ratio", "1.5"], ["--frob"],
                      ["--latency", "lognormal:fast"], ["--for", "10"]):
            done = weir("send", self.datadog(), *wrong)
            self.assertEqual(done.returncode, 2, wrong)
            self.assertTrue(done.stderr)
        self.assertEqual(self.agent.reconcile()["process"]["received"], before)

    def test_nobody_there_is_a_failure(self):
        done = weir("send", "--url", "http://127.0.0.1:1", "--count", "10", "--quiet")
        self.assertEqual(done.returncode, 1)
        self.assertIn("127.0.0.1:1", done.stdout + done.stderr)

    def test_weir_query_prints_a_row_for_each_service_and_resource(self):
        self.check("--protocol", "v0.4", self.datadog(), "--services", "2", "--resources", "3", "--count", "600",
                   "--rate", "0")
        done = weir("query", "--url", self.query_url)
        self.assertEqual(done.returncode, 0, done.stderr)
        head = done.stdout.splitlines()[0].lower()
        for column in ("service", "operation", "resource", "rate", "errors", "p50", "p95", "p99", "max"):
            self.assertIn(column, head)
        self.assertGreaterEqual(len(done.stdout.splitlines()), 1 + 6)


class WrongAnswers(unittest.TestCase):
    def test_check_fails_when_the_agent_was_told_to_drop_spans(self):
        """The check is no formality: an agent with too few keys gives other rows."""
        with Agent("--aggregation.max-keys=16") as agent:
            done = weir("send", "--check", "--check-wait", "1s", "--quiet", "--count", "2000", "--rate", "0",
                        "--services", "10", "--resources", "10", "--url", "http://127.0.0.1:%d" % agent.datadog[1],
                        "--query-url", "http://127.0.0.1:%d" % agent.web[1])
            self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
            self.assertTrue(agent.reconcile()["balanced"])


if __name__ == "__main__":
    run.main()
