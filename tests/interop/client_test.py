# SPDX-License-Identifier: Apache-2.0
"""client_test.py CLIENT_LOAD: the client library, in a program under load, against Datadog's own test agent.

What it says of itself at /info decides what is sent; its checks are on, and what it holds in the end is what the
program says it sent: spans of each version, and the hits of the statistics.
"""
import json
import subprocess
import sys
import unittest

import stats_test
from weirtest import run


class Client(stats_test.TestAgent):
    test_it_takes_the_body_and_holds_the_rows = None  # of the base

    def load(self, version):
        done = subprocess.run([LOAD, "http://127.0.0.1:%d" % self.port, "3", str(version)], stdout=subprocess.PIPE,
                              text=True, timeout=120)
        self.assertEqual(done.returncode, 0)
        return {r[0]: [int(n) for n in r[1:]] for r in (line.split() for line in done.stdout.splitlines())}

    def check(self, version, path):
        seen = self.load(version)
        self.assertEqual(seen["spans_sent"], seen["published"])
        self.assertEqual({name: n for name, n in seen.items() if len(n) == 2 and any(n)}, {})
        self.assertGreater(seen["stats_sent"][0], 0)
        payloads = json.loads(self.ask("/test/session/stats")[1])
        hits = sum(g["Hits"] for p in payloads for bucket in p["Stats"] for g in bucket["Stats"])
        self.assertEqual(hits, seen["published"][0])
        requests = json.loads(self.ask("/test/session/requests")[1])
        urls = {r["url"].split("?")[0].split(":%d" % self.port)[1] for r in requests}
        self.assertIn(path, urls)
        traces = json.loads(self.ask("/test/session/traces")[1])
        self.assertEqual(sum(len(t) for t in traces), seen["published"][0])
        for r in requests:
            if r["url"].endswith("/traces"):
                self.assertEqual(r["headers"].get("Datadog-Client-Computed-Stats"), "true")
        self.ask("/test/trace_check/failures")  # 400 where one failed

    def test_v04(self):
        self.check(4, "/v0.4/traces")

    def test_v05(self):
        self.check(5, "/v0.5/traces")

    def test_v1(self):
        self.check(10, "/v1.0/traces")


del stats_test.TestAgent  # the loader would run it, too

if __name__ == "__main__":
    LOAD = sys.argv.pop(1)
    run.main()
