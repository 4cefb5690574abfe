# SPDX-License-Identifier: Apache-2.0
"""The client library in a program under load, while the agent goes away and comes back.

Statistics go to an agent of our own here, which knows what a repeat is, for Weir's does not take statistics; traces
go to Weir's. T_OUTAGE: seconds an agent is away; 60 is what is promised, the default keeps the suite short.
"""
import contextlib
import http.server
import json
import os
import random
import shutil
import signal
import socketserver
import subprocess
import tempfile
import threading
import time
import unittest

from weirtest import run, spans
from weirtest.agent import Agent, free_port, wait_until

OUTAGE = float(os.environ.get("T_OUTAGE", "5"))
LOAD = os.path.join(os.path.dirname(run.PROGRAM), "tests", "e2e", "client_load")
INFO = {"version": "7.65.0", "endpoints": ["/v0.4/traces", "/v0.5/traces", "/v1.0/traces", "/v0.6/stats"],
        "client_drop_p0s": True, "peer_tags": []}


class Ledger:
    """What agents at one address took in, over their restarts."""

    def __init__(self):
        self.bodies = {}   # (RuntimeID, Sequence): body
        self.hits = 0
        self.repeats = 0
        self.wrong = []
        self.lose_answers = 0.0  # part of the bodies that are taken in without an answer
        self.random = random.Random(20261201)

    def take(self, body, key):
        payload = spans.unpack(body)
        name = (payload["RuntimeID"], payload["Sequence"])
        if key != "%s-%d" % name:
            self.wrong.append("the key is %r, the body says %r" % (key, name))
        if name in self.bodies:
            self.repeats += 1
            if self.bodies[name] != body:
                self.wrong.append("another body as %r" % (name,))
            return
        self.bodies[name] = body
        self.hits += sum(g["Hits"] for bucket in payload["Stats"] for g in bucket["Stats"])


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self, body, status=200):
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Datadog-Agent-State", "state")
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        self.answer(json.dumps(INFO).encode())

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        ledger = self.server.ledger
        if self.path == "/v0.6/stats":
            ledger.take(body, self.headers["Idempotency-Key"])
            if ledger.random.random() < ledger.lose_answers:
                self.connection.close()
                self.close_connection = True
                return
        self.answer(b"{}")

    do_PUT = do_POST

    def log_message(self, *_):
        pass

    def address_string(self):
        return "client"


class Tcp(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True
    allow_reuse_address = True

    def process_request(self, request, client_address):
        self.connections.append(request)
        super().process_request(request, client_address)

    def handle_error(self, request, client_address):
        pass  # a connection that broke off, as it is meant to


class Unix(Tcp):
    address_family = socketserver.socket.AF_UNIX

    def server_bind(self):
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = "localhost", 0


class FakeAgent:
    def __init__(self, address):
        self.address = address
        self.ledger = Ledger()
        self.server = None

    def start(self):
        unix = isinstance(self.address, str)
        if unix:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self.address)
        self.server = (Unix if unix else Tcp)(self.address, Handler, bind_and_activate=False)
        self.server.connections = []
        self.server.ledger = self.ledger
        self.server.server_bind()
        self.server.server_activate()
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()

    def stop(self):
        self.server.shutdown()
        self.server.server_close()
        for connection in self.server.connections:
            with contextlib.suppress(OSError):
                connection.shutdown(socketserver.socket.SHUT_RDWR)


class Load:
    def __init__(self, url, seconds, version=4, spool=None):
        self.process = subprocess.Popen([LOAD, url, str(seconds), str(version)] + ([spool] if spool else []),
                                        stdout=subprocess.PIPE, text=True)

    def result(self):
        out, _ = self.process.communicate(timeout=120)
        if self.process.returncode != 0:
            raise AssertionError("client_load ended with %d" % self.process.returncode)
        rows = [line.split() for line in out.splitlines()]
        found = {r[0]: int(r[1]) for r in rows if len(r) == 2}
        found["stats_dropped"] = {r[0]: int(r[1]) for r in rows if len(r) == 3 and r[1] != "0"}
        found["spans_dropped"] = {r[0]: int(r[2]) for r in rows if len(r) == 3 and r[2] != "0"}
        return found


class Statistics(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="weir-client-")
        self.addCleanup(shutil.rmtree, self.folder)

    def outage(self, address, url, lose_answers):
        agent = FakeAgent(address)
        agent.ledger.lose_answers = lose_answers
        agent.start()
        load = Load(url, OUTAGE + 5)
        time.sleep(2.5)
        agent.stop()
        time.sleep(OUTAGE)
        agent.start()
        seen = load.result()
        agent.stop()
        self.assertEqual(agent.ledger.wrong, [])
        self.assertEqual(agent.ledger.hits, seen["published"])
        self.assertEqual(seen["stats_dropped"], {})
        self.assertEqual(seen["downgrades"], 0)
        self.assertGreater(seen["stats_retried"], 0)
        self.assertGreater(seen["unreached"] + seen["unknown"], 0)
        return agent.ledger

    def test_an_agent_that_is_away_by_tcp_loses_nothing(self):
        port = free_port()
        self.outage(("127.0.0.1", port), "http://127.0.0.1:%d" % port, 0)

    def test_an_agent_that_is_away_by_unix_socket_and_loses_answers_counts_each_once(self):
        path = os.path.join(self.folder, "apm.socket")
        ledger = self.outage(path, "unix://" + path, 0.4)
        self.assertGreater(ledger.repeats, 0)

    def test_what_a_killed_program_spooled_is_sent_by_the_next_one(self):
        port = free_port()
        spool = os.path.join(self.folder, "spool")
        url = "http://127.0.0.1:%d" % port
        load = Load(url, 60, spool=spool)  # nobody there: nothing can be sent
        agent = FakeAgent(("127.0.0.1", port))
        agent.start()
        self.assertTrue(wait_until(lambda: agent.ledger.hits > 0))
        agent.stop()
        self.assertTrue(wait_until(lambda: sum(f.endswith(".stats") for f in os.listdir(spool)) >= 3))
        load.process.kill()
        load.process.wait()
        load.process.stdout.close()
        before = agent.ledger.hits
        count = sum(f.endswith(".stats") for f in os.listdir(spool))
        agent.start()
        seen = Load(url, 1, spool=spool).result()
        agent.stop()
        self.assertEqual(seen["spool_loaded"], count)
        self.assertEqual(agent.ledger.wrong, [])
        self.assertGreater(agent.ledger.hits - before, seen["published"])
        self.assertEqual(len({name[0] for name in agent.ledger.bodies}), 2)
        self.assertEqual([f for f in os.listdir(spool) if f.endswith(".stats")], [])


class Traces(unittest.TestCase):
    def outage(self, url_of, version):
        with Agent("--aggregation.window=1s", "--aggregation.lateness=0s") as agent:
            load = Load(url_of(agent), OUTAGE + 4, version)
            self.assertTrue(wait_until(lambda: agent.total_calls('service_name="load"') > 0))
            self.assertEqual(agent.stop(signal.SIGTERM), 0)
            time.sleep(OUTAGE)
            agent.start()
            seen = load.result()
            self.assertEqual(seen["spans_in"], seen["published"])
            self.assertEqual(seen["spans_dropped"], {})
            self.assertEqual(seen["spans_sent"], seen["published"])
            self.assertGreater(seen["unreached"], 0)
            calls = 'service_name="load"'
            self.assertTrue(wait_until(lambda: agent.total_calls(calls) >= seen["spans_sent"]))
            self.assertEqual(agent.total_calls(calls), seen["spans_sent"])
            totals = agent.reconcile()
            self.assertTrue(totals["balanced"])

    def test_v04_by_tcp(self):
        self.outage(lambda a: "http://127.0.0.1:%d" % a.datadog[1], 4)

    def test_v1_by_unix_socket(self):
        self.outage(lambda a: "unix://" + a.socket, 10)


if __name__ == "__main__":
    run.main()
