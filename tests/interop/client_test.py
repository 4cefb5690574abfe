# SPDX-License-Identifier: Apache-2.0
"""client_test.py CLIENT_LOAD PEER: the client library, in a program under load, against agents of others.

What an agent says of itself at /info decides what is sent. By PEER:
  test-agent   Datadog's own, its checks on: it holds the spans and the hits that the program says it sent
  trace-agent  the whole of it: its rows are those of the program's statistics, and none are made of its traces
"""
import os
import subprocess
import sys
import unittest

import peers
from weirtest import packages

TOKEN = "t"  # which client_load sends


class Case(unittest.TestCase):
    def load(self, version):
        """What the program says in the end: {name: numbers}; nothing was dropped."""
        done = subprocess.run([LOAD, "http://127.0.0.1:%d" % self.agent.port, "3", str(version)],
                              stdout=subprocess.PIPE, text=True, timeout=120)
        self.assertEqual(done.returncode, 0)
        seen = {r[0]: [int(n) for n in r[1:]] for r in (line.split() for line in done.stdout.splitlines())}
        self.assertEqual({name: n for name, n in seen.items() if len(n) == 2 and any(n)}, {})
        self.assertEqual(seen["spans_sent"], seen["published"])
        self.assertGreater(seen["stats_sent"][0], 0)
        return seen


class TestAgent(Case):
    def check(self, version, path):
        self.agent = peers.TestAgent()
        self.addCleanup(self.agent.stop)
        self.agent.start_session(TOKEN)
        seen = self.load(version)
        payloads = self.agent.get("/test/session/stats", TOKEN)
        hits = sum(g["Hits"] for p in payloads for bucket in p["Stats"] for g in bucket["Stats"])
        self.assertEqual(hits, seen["published"][0])
        requests = self.agent.get("/test/session/requests", TOKEN)
        urls = [r["url"].split("?")[0].split(":%d" % self.agent.port)[1] for r in requests]
        self.assertIn(path, urls)
        traces = self.agent.get("/test/session/traces", TOKEN)
        self.assertEqual(sum(len(t) for t in traces), seen["published"][0])
        for r, url in zip(requests, urls):
            if url.endswith("/traces"):
                self.assertEqual(r["headers"].get("Datadog-Client-Computed-Stats"), "true")
        self.agent.check_failures(TOKEN)

    def test_v04(self):
        self.check(4, "/v0.4/traces")

    def test_v05(self):
        self.check(5, "/v0.5/traces")

    def test_v1(self):
        self.check(10, "/v1.0/traces")


class TraceAgent(Case):
    def test_its_rows_are_those_of_the_statistics(self):
        self.agent = peers.TraceAgent()
        try:
            seen = self.load(4)
        finally:
            rows = self.agent.stop()
        self.assertTrue(all(r["client"] for r in rows))
        self.assertEqual(sum(r["hits"] for r in rows), seen["published"][0])
        self.assertEqual({r["kind"] for r in rows}, {"server", "client"})


PEERS = {"test-agent": TestAgent, "trace-agent": TraceAgent}

if __name__ == "__main__":
    LOAD, peer = sys.argv[1:3]
    os.makedirs(packages.CACHE, exist_ok=True)
    suite = unittest.defaultTestLoader.loadTestsFromTestCase(PEERS[peer])
    sys.exit(not unittest.TextTestRunner(verbosity=2).run(suite).wasSuccessful())
