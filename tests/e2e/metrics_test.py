# SPDX-License-Identifier: Apache-2.0
"""Prometheus' own tool as the client of /metrics and of the query interface."""
import json
import re
import subprocess
import time
import unittest

from weirtest import run, spans
from weirtest.agent import Agent
from weirtest.http import request


def promtool(*arguments, stdin=None):
    return subprocess.run(["promtool"] + list(arguments), input=stdin, capture_output=True, text=True, timeout=60)


class Promtool(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.agent = Agent("--aggregation.window=1s", "--aggregation.lateness=0s")
        cls.url = "http://127.0.0.1:%d" % cls.agent.web[1]
        now = time.time_ns()
        traces = [[{"service": "shop", "name": "web.request", "resource": "GET /\"quoted\"\\ü", "trace_id": i,
                    "span_id": i, "parent_id": 0, "start": now - i * 1000000, "duration": i * 1000000,
                    "error": 1 if i % 10 == 0 else 0, "meta": {"span.kind": "server"}, "metrics": {}}]
                  for i in range(1, 101)]
        cls.sent = len(traces)
        answer = request(cls.agent.datadog, "POST", "/v0.4/traces", spans.pack(traces),
                         [("Content-Type", "application/msgpack")])
        assert answer.status == 200, answer
        deadline = time.monotonic() + 20
        while cls.agent.total_calls(include_open=False) < cls.sent and time.monotonic() < deadline:
            time.sleep(0.1)

    @classmethod
    def tearDownClass(cls):
        cls.agent.__exit__(None, None, None)

    def test_check_metrics_finds_nothing_to_say(self):
        text = self.agent.get("/metrics").body.decode()
        done = promtool("check", "metrics", stdin=text)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))
        self.assertIn("weir_spans_received_total %d" % self.sent, re.sub(r"\{[^}]*\}", "", text))
        self.assertIn("# EOF" if "openmetrics" in text else "# HELP", text)

    def test_query_instant_prints_what_was_sent(self):
        done = promtool("query", "instant", self.url, "sum by (status_code) (traces_span_metrics_calls_total)")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(sorted(re.findall(r'status_code="(\w+)"} => (\d+)', done.stdout)),
                         [("STATUS_CODE_ERROR", "10"), ("STATUS_CODE_UNSET", "90")])
        quoted = promtool("query", "instant", self.url, 'traces_span_metrics_calls_total{status_code="STATUS_CODE_ERROR"}')
        self.assertIn(r'span_name="GET /\"quoted\"\\ü"', quoted.stdout)

    def test_query_instant_of_a_quantile_is_within_the_bound(self):
        done = promtool("query", "instant", self.url,
                        "histogram_quantile(0.9, sum(increase(traces_span_metrics_duration_seconds[5m])))")
        self.assertEqual(done.returncode, 0, done.stderr)
        got = float(re.search(r"=> ([0-9.e-]+)", done.stdout).group(1))
        self.assertAlmostEqual(got, 0.090, delta=0.090 * spans.ALPHA)

    def test_a_wrong_query_fails_with_the_position(self):
        done = promtool("query", "instant", self.url, "sum(")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("parse error", done.stderr)

    def test_grafana_s_first_question_is_answered(self):
        answer = request(self.agent.web, "POST", "/api/v1/query", b"query=1%2B1&time=4",
                         [("Content-Type", "application/x-www-form-urlencoded")])
        self.assertEqual(answer.status, 200)
        self.assertEqual(json.loads(answer.body)["data"], {"resultType": "scalar", "result": [4, "2"]})


if __name__ == "__main__":
    run.need_command("promtool")
    run.main()
