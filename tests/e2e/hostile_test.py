# SPDX-License-Identifier: Apache-2.0
"""Hostile bodies and hostile HTTP over real sockets: the answer of each row, nothing of what was refused
counted, memory bounded, and the next client served."""
import contextlib
import csv
import io
import os
import socket
import sys
import time
import unittest

from weirtest import run, spans
from weirtest.agent import Agent
from weirtest.http import Connection, read_exactly, read_head_of_response, request

VECTORS = run.need_vectors("http") if __name__ == "__main__" else ""
SERVED = ("/v0.3/traces", "/v0.4/traces", "/v0.5/traces", "/v1/traces")
MSGPACK = ("Content-Type", "application/msgpack")
LIMIT = 25 << 20  # of a body, as sent and decoded


def rows(name):
    with open(os.path.join(VECTORS, name), newline="") as f:
        return [r for r in csv.reader(f, delimiter="\t", quoting=csv.QUOTE_NONE) if not r[0].startswith("#")]


def expand(expression):
    """Parts joined by +: hex, or N*hex, or file:NAME; '-' is nothing."""
    if expression == "-":
        return b""
    parts = []
    for part in expression.split("+"):
        if part.startswith("file:"):
            with open(os.path.join(VECTORS, part[5:]), "rb") as f:
                parts.append(f.read())
        elif "*" in part:
            count, text = part.split("*")
            parts.append(int(count) * bytes.fromhex(text))
        else:
            parts.append(bytes.fromhex(part))
    return b"".join(parts)


class Hostile(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.agent = Agent()
        cls.number = 0

    @classmethod
    def tearDownClass(cls):
        if sys.exc_info()[0]:
            print(cls.agent.log()[-4000:])
        cls.agent.__exit__(None, None, None)

    def received(self):
        return sum(v for k, v in self.agent.metrics().items() if k.split("{")[0] == "weir_spans_received_total")

    def rss(self):
        with open("/proc/%d/statm" % self.agent.process.pid) as f:
            return int(f.read().split()[1]) * os.sysconf("SC_PAGESIZE")

    def serve_one_more(self, connection=None):
        """A valid request still works and counts one."""
        Hostile.number += 1
        body = spans.pack([[{"service": "valid", "name": "n", "resource": "r", "trace_id": 1, "span_id": 1,
                             "start": time.time_ns(), "duration": 1000, "meta": {}, "metrics": {}}]])
        before = self.received()
        if connection:
            answer = connection.request("PUT", "/v0.4/traces", body, [MSGPACK])
        else:
            answer = request(self.agent.datadog, "PUT", "/v0.4/traces", body, [MSGPACK])
        self.assertEqual(answer.status, 200)
        self.assertEqual(self.received(), before + 1)

    def test_bodies(self):
        self.serve_one_more()
        base = self.rss()
        done = 0
        for name, path, content_type, coding, body, status, expected in rows("hostile.tsv"):
            if path not in SERVED:
                continue
            allowed = {int(s) for s in status.split("|")}
            if content_type.startswith("application/json"):
                allowed = {400, 415}  # JSON is not taken in
            headers = [("Content-Type", content_type)] if content_type != "-" else []
            headers += [("Content-Encoding", coding)] if coding != "-" else []
            raw = expand(body)
            if "Content-Length" not in headers:
                headers.append(("Content-Length", str(len(raw))))
            with self.subTest(name, expected=expected):
                before = self.received()
                target = self.agent.otlp if path.startswith("/v1/") else self.agent.datadog
                with Connection(target) as connection:
                    answer = None
                    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                        answer = connection.request("POST", path, raw, headers)
                    if answer is None:  # it was told 413 before it had sent all
                        self.assertIn(413, allowed)
                    else:
                        self.assertIn(answer.status, allowed, answer)
                        if answer.status >= 400:
                            self.assertEqual(self.received(), before, "spans of a refused body were counted")
                            self.assertTrue(answer.body, "a refusal gives its reason")
                        if answer.headers.get("connection", "").lower() != "close" and not path.startswith("/v1/"):
                            self.serve_one_more(connection)
                self.serve_one_more()
                self.assertLess(self.rss() - base, LIMIT + (48 << 20), "memory after " + name)
                done += 1
        self.assertGreater(done, 200)
        self.assertIsNone(self.agent.process.poll())
        self.assertTrue(self.agent.reconcile()["balanced"])

    def exchange(self, raw, keep, count):
        """Statuses of count answers; for keep, the connection then serves one more request."""
        found = []
        with Connection(self.agent.datadog) as connection:
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                connection.send(raw)
                if not keep:
                    connection.sock.shutdown(socket.SHUT_WR)
            with contextlib.suppress(EOFError, ConnectionResetError, OSError):
                while len(found) < count:
                    status, headers = read_head_of_response(connection.file)
                    if status == 100:
                        continue
                    found.append(status)
                    if not raw.startswith(b"HEAD"):
                        read_exactly(connection.file, int(headers.get("content-length", 0)))
            if keep and len(found) == count:
                self.assertEqual(connection.request("GET", "/info").status, 200, "the connection is usable")
            elif found and "close" in str(keep):
                self.assertEqual(connection.file.read(), b"", "closed after the answer")
        return found

    def test_raw_requests(self):
        done = 0
        for name, raw, status, connection, expected in rows("raw-http.tsv"):
            if name in ("h2-preface", "h2c-upgrade"):
                continue  # HTTP/2 is not served
            with self.subTest(name, expected=expected):
                before = self.received()
                count = 100 if status == "100 x 200" else len([s for s in status.split(" ") if s != "100"])
                allowed = {200} if " " in status else {int(s) for s in status.split("|")}
                data = expand(raw)
                found = self.exchange(data, connection == "keep", count)
                counted = self.received() - before
                if not found and len(data) > 60000:
                    pass  # closed in the middle of a flood: nobody is owed an answer
                else:
                    self.assertEqual(len(found), count, "answers: %r" % found)
                    self.assertTrue(set(found) <= allowed, "%r is not of %r" % (found, allowed))
                if all(s >= 400 for s in found):
                    self.assertEqual(counted, 0, "a refused request was counted")
                elif name.startswith(("ok-po", "ok-pu", "ok-chunked", "dd-")):
                    self.assertEqual(counted, len(found))
                done += 1
        self.assertGreater(done, 90)
        self.serve_one_more()
        self.assertIsNone(self.agent.process.poll())
        self.assertTrue(self.agent.reconcile()["balanced"])

    def test_a_slow_head_is_ended(self):
        agent = Agent("--http.head-timeout=300ms", "--http.body-timeout=600ms", "--http.stall-timeout=300ms")
        with agent:
            for first, want in ((b"PUT /v0.4/traces HTT", {408}),
                                (b"PUT /v0.4/traces HTTP/1.1\r\nHost: a\r\nContent-Type: application/msgpack\r\n"
                                 b"Content-Length: 100\r\n\r\n\x91", {408})):
                with Connection(agent.datadog) as connection:
                    connection.send(first)
                    begun = time.monotonic()
                    data = connection.file.read()
                    self.assertLess(time.monotonic() - begun, 5)
                    if data:
                        self.assertIn(read_head_of_response(io.BytesIO(data))[0], want)

    def test_connections_have_a_limit_and_come_back(self):
        with Agent("--http.max-connections=10") as agent:
            held = [Connection(agent.datadog) for _ in range(10)]
            for connection in held:
                self.assertEqual(connection.request("GET", "/info").status, 200)
            with contextlib.suppress(OSError, EOFError):
                with Connection(agent.datadog) as extra:
                    self.assertEqual(extra.request("GET", "/info").status, 503)
            for connection in held:
                connection.close()
            deadline = time.monotonic() + 5
            status = None
            while status != 200 and time.monotonic() < deadline:
                with contextlib.suppress(OSError, EOFError):
                    status = request(agent.datadog, "GET", "/info").status
            self.assertEqual(status, 200)


if __name__ == "__main__":
    run.main()
