# SPDX-License-Identifier: Apache-2.0
"""The agent with 32 MiB of address space above what it has when idle: it refuses, counts, and lives."""
import contextlib
import gzip
import os
import resource
import socket
import struct
import threading
import time
import unittest
import urllib.parse
import zlib

from weirtest import run, spans
from weirtest.agent import Agent, wait_until
from weirtest.http import Connection, request
from weirtest.load import HEADERS, at, body

ROOM = 32 << 20
MSGPACK = ("Content-Type", "application/msgpack")


def size_of(pid, what="VmSize"):
    with open("/proc/%d/status" % pid) as f:
        for line in f:
            if line.startswith(what + ":"):
                return int(line.split()[1]) * 1024
    raise AssertionError(what)


class Tight(unittest.TestCase):
    def setUp(self):
        self.agent = Agent("--aggregation.window=1s", "--aggregation.lateness=1s")
        self.addCleanup(self.agent.__exit__, None, None, None)
        pid = self.agent.process.pid
        self.idle = size_of(pid)
        resource.prlimit(pid, resource.RLIMIT_AS, (self.idle + ROOM, self.idle + ROOM))
        self.served = 0
        self.serve_one_more()

    def tearDown(self):
        self.assertIsNone(self.agent.process.poll(), "it died")
        print("idle %d KiB, peak %d KiB; %s" % (
            self.idle >> 10, size_of(self.agent.process.pid, "VmPeak") >> 10, ", ".join(
                "%s=%d" % (k, v) for k, v in sorted(self.figures().items())
                if v and ("refused" in k or "memory" in k and "weir" in k or "snapshot_failed" in k))), flush=True)
        self.assertTrue(self.agent.reconcile()["balanced"])
        self.assertEqual(self.agent.stop(), 0)

    def figures(self):
        """/metrics, which itself may have to wait for memory: meanwhile 503, or a connection that ends."""
        found = {}

        def answered():
            try:
                found.update(self.agent.metrics())
            except (OSError, EOFError, AssertionError):
                pass
            return found
        self.assertTrue(wait_until(answered, 30), "no figures within 30 s")
        return found

    def serve_one_more(self):
        """A client with nothing special is served."""
        def accepted():
            raw = at(body("normal", 10, 5), time.time_ns())
            return request(self.agent.datadog, "PUT", "/v0.4/traces", raw, HEADERS).status == 200
        # What is free is looked at once a second; a tracer sends again after a 503.
        self.assertTrue(wait_until(accepted, 20, 0.2), "still refused")
        self.served += 10

    def served_again(self):
        """Once the flood is over."""
        self.assertIsNone(self.agent.process.poll(), "it died")
        self.serve_one_more()
        self.assertTrue(wait_until(lambda: self.agent.total_calls('service_name="normal"') == self.served, 15))
        self.assertEqual(self.agent.get("/-/ready").status, 200)

    def flood(self, count, what):
        """what(number) in count threads at once; the statuses, None where the connection was cut."""
        found = []

        def one(number):
            status = None
            with contextlib.suppress(OSError, EOFError):
                status = what(number)
            found.append(status)

        threads = [threading.Thread(target=one, args=(n,)) for n in range(count)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual(len(found), count)
        return found

    def put(self, raw, *headers):
        with Connection(self.agent.datadog, timeout=30) as c:
            try:
                c.send(b"PUT /v0.4/traces HTTP/1.1\r\nHost: a\r\nContent-Type: application/msgpack\r\n"
                       + b"".join(("%s: %s\r\n" % h).encode() for h in headers)
                       + b"Content-Length: %d\r\n\r\n" % len(raw) + raw)
            except (BrokenPipeError, ConnectionResetError):
                pass  # it answered before it had all
            return c.read_response().status

    def refused(self, reason):
        return sum(v for k, v in self.agent.metrics().items() if "refused" in k and 'reason="%s"' % reason in k)

    def test_large_bodies_at_once(self):
        raw = body("large", 40000, 200)
        self.assertGreater(len(raw), 6 << 20)
        found = self.flood(12, lambda n: self.put(raw))
        self.assertIn(503, found)
        self.assertTrue(set(found) <= {200, 503, None}, found)
        self.assertGreaterEqual(self.refused("memory"), found.count(503))
        self.served_again()

    def test_bombs(self):
        bomb = gzip.compress(b"\xdd\x00\x0f\xff\xff" + bytes(24 << 20), 9)
        found = self.flood(8, lambda n: self.put(bomb, ("Content-Encoding", "gzip")))
        self.assertTrue(set(found) <= {400, 413, 503}, found)
        huge = zlib.compress(bytes(100 << 20), 9)
        found = self.flood(4, lambda n: self.put(huge, ("Content-Encoding", "deflate")))
        self.assertTrue(set(found) <= {413, 503}, found)
        self.served_again()

    def test_many_keys(self):
        before = self.figures()
        sent = 0
        bodies = [body("key-%d-" % n + 90 * "k", 1000, 1000) for n in range(100)]  # 100,000 long keys
        for packed in bodies:
            raw = at(packed, time.time_ns())
            status = self.put(raw)
            self.assertIn(status, (200, 503))
            sent += 1000 if status == 200 else 0
        figures = self.figures()
        self.assertEqual(figures["weir_spans_received_total"] - before["weir_spans_received_total"], sent)
        self.assertGreater(figures['weir_spans_dropped_total{reason="memory"}'] + self.refused("memory"), 0)
        # Keys that are not seen again go, and with them their memory; what they counted is on the disk.
        self.assertTrue(wait_until(lambda: self.figures()["weir_keys"] < 1000, 30, 0.5))
        self.serve_one_more()
        self.assertEqual(self.agent.get("/-/ready").status, 200)
        # A query over so many series may be more than there is memory for: then it is refused, not wrong.
        answer = self.agent.get("/api/v1/query?query=sum(traces_span_metrics_calls_total)")
        self.assertIn(answer.status, (200, 422, 500, 503))
        aggregated = self.figures()["weir_spans_aggregated_total"]
        self.agent.restart()  # without the limit
        self.assertEqual(self.agent.total_calls(), aggregated)

    def test_queries_of_much(self):
        for n in range(4):
            self.put(at(body("many-%d" % n, 2000, 2000), time.time_ns()))
            time.sleep(0.3)
        time.sleep(2.2)
        now = time.time()
        path = ("/api/v1/query?query=%s" % urllib.parse.quote("histogram_quantile(0.9,rate(traces_span_metrics_duration_seconds[1m]))")
                + "&include_open=1&time=%f" % now)
        print(request(self.agent.web, "GET", path))
        found = self.flood(8, lambda n: request(self.agent.web, "GET", path).status)
        self.assertTrue(set(found) <= {200, 422, 503, 500, None}, found)
        self.served_again()

    def test_many_connections(self):
        held = []
        with contextlib.suppress(OSError):
            for n in range(1500):
                s = socket.create_connection(self.agent.datadog, timeout=5)
                held.append(s)
                s.sendall(b"PUT /v0.4/traces HTTP/1.1\r\nHost: a\r\nX: " + b"x" * 20000)
        self.assertGreater(len(held), 100)
        for s in held:
            s.close()
        self.assertTrue(wait_until(lambda: self.agent.metrics()['weir_http_connections_open{server="datadog"}'] == 0, 20))
        self.served_again()


if __name__ == "__main__":
    run.main()
