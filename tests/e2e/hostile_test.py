# SPDX-License-Identifier: Apache-2.0
"""Hostile bodies and hostile HTTP over real sockets: every row of vectors/http is answered and counted as
hostile_rows.tsv and raw_rows.tsv say, costs what it may, and leaves an agent that serves the next client and
shows nothing but valid text. Cases S07, S10, S13, S14; T19 and T21 as far as sampling rates are read."""
import contextlib
import csv
import gzip
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import time
import unittest

from weirtest import process, run, spans
from weirtest.agent import Agent, wait_until
from weirtest.http import Connection, read_exactly, read_head_of_response, request

HERE = os.path.dirname(os.path.abspath(__file__))
VECTORS = run.need_vectors("http") if __name__ == "__main__" else ""
MSGPACK = ("Content-Type", "application/msgpack")
PROTOBUF = ("Content-Type", "application/x-protobuf")
LIMIT = 25 << 20  # of a body, as sent and decoded
SLACK = 12 << 20  # rows and sketches of what was counted, and what the heap keeps
WEIGHT_UNIT = 1 << 20
TRIES = 4
SENDS = 20

# Counters of /metrics that a request may move, by the short name that the tables use.
WATCHED = (
    (re.compile(r'weir_receive_refused_total\{reason="(\w+)"\}'), "refused:%s"),
    (re.compile(r'weir_http_refused_total\{server="(?:datadog|otlp)",reason="(\w+)"\}'), "http:%s"),
    (re.compile(r'weir_receive_rejected_spans_total\{reason="(\w+)"\}'), "rejected:%s"),
    (re.compile(r"weir_(fields_\w+)_total"), "%s"),
    (re.compile(r"weir_spans_(negative_duration|time_missing|before_2000|partial|ineligible|future|overflow)_total"),
     "%s"),
    (re.compile(r"weir_(weights_capped|bad_http_status)_total"), "%s"),
)


def read_table(path):
    with open(path, newline="") as f:
        return [r for r in csv.reader(f, delimiter="\t", quoting=csv.QUOTE_NONE) if not r[0].startswith("#")]


def vectors(name):
    return read_table(os.path.join(VECTORS, name))


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


class Rules:
    """The committed table of what a row does now. A row that none fits is an error; so is a rule that is the
    best of no row, or an exception that is none."""

    def __init__(self, name):
        self.rules = {r[0]: r for r in read_table(os.path.join(HERE, name))}
        self.used = set()

    def of(self, row):
        fits = [r for r in self.rules if r == row or (r.endswith("*") and row.startswith(r[:-1]))]
        if not fits:
            raise AssertionError("no rule fits the row " + row)
        best = max(fits, key=lambda r: (r == row, len(r)))
        self.used.add(best)
        return self.rules[best]

    def unused(self):
        return sorted(set(self.rules) - self.used)


def statuses(rule, said):
    """Those that are right now."""
    allowed = {int(s) for s in re.findall(r"\b\d{3}\b", said)}
    if rule[1] == "=":
        return allowed
    now = int(rule[1])
    assert now not in allowed or not said[:1].isdigit(), "%s: %s is no exception from %s" % (rule[0], now, said)
    return {now}


def valid_span(n):
    return spans.pack([[{"service": "valid", "name": "n", "resource": "r", "trace_id": 1, "span_id": n,
                         "start": time.time_ns(), "duration": 1000, "meta": {}, "metrics": {}}]])


def ask(connection, row, raw):
    """The request of a row of hostile.tsv."""
    headers = [("Content-Type", row[2])] if row[2] != "-" else []
    headers += [("Content-Encoding", row[3])] if row[3] != "-" else []
    return connection.request("POST", row[1], raw, headers + [("Content-Length", str(len(raw)))])


def refuse_constant(text):
    raise AssertionError("%s is not JSON" % text)


def strict_json(raw):
    return json.loads(raw.decode("utf-8", "strict"), parse_constant=refuse_constant)


class Base(unittest.TestCase):
    maxDiff = None

    ARGUMENTS = ()

    def setUp(self):
        self.agent = Agent(*self.ARGUMENTS)
        self.pid = self.agent.process.pid
        self.sanitized = process.is_sanitized(self.pid)
        self.sent = 0
        self.addCleanup(self.end)

    def end(self):
        log = ""
        status = self.agent.process.poll()
        if status is None:
            status = self.agent.stop()
        if status != 0:
            log = self.agent.log()[-4000:]
        self.agent.__exit__(None, None, None)
        self.assertEqual(status, 0, log)

    def counters(self):
        """Watched counters by short name, and spans."""
        found = {}
        for series, value in self.agent.metrics().items():
            for pattern, name in WATCHED:
                match = pattern.fullmatch(series)
                if match:
                    found[name % match.group(1)] = found.get(name % match.group(1), 0) + int(value)
            if series in ("weir_spans_received_total", "weir_spans_aggregated_total"):
                found[series] = int(value)
        return found

    def judge(self, rule, moves, spans_expected, before):
        """What has moved since before is what the rule says, and nothing else."""
        after = self.counters()
        moved = {k: v - before.get(k, 0) for k, v in after.items() if v != before.get(k, 0)}
        want = {}
        if moves != "-":
            want = {k: int(v) for k, v in (m.split("=") for m in moves.split(" "))}
        if spans_expected:
            want["weir_spans_received_total"] = want["weir_spans_aggregated_total"] = spans_expected
        self.assertEqual(moved, want, "counters, by the rule %s (%s)" % (rule[0], rule[-1]))
        return after

    def serve_one_more(self, connection=None, otlp=None):
        """A valid request is answered 200."""
        self.sent += 1
        path, body, header = "/v0.4/traces", valid_span(self.sent), MSGPACK
        if otlp:
            path, body, header = "/v1/traces", otlp, PROTOBUF
        if connection:
            answer = connection.request("POST", path, body, [header])
        else:
            answer = request(self.agent.datadog, "POST", path, body, [header])
        self.assertEqual(answer.status, 200, "the request after it")

    def check_outputs(self):
        """Everything that the agent shows is valid text and without NaN or Inf; balanced, too."""
        text = self.agent.get("/metrics").body.decode("utf-8", "strict")
        self.assertIsNone(re.search(r"(?i)\b[+-]?(nan|inf)\b", "\n".join(
            line for line in text.splitlines() if not line.startswith("#"))))
        if shutil.which("promtool"):
            check = subprocess.run(["promtool", "check", "metrics"], input=text.encode(), capture_output=True)
            self.assertEqual(check.returncode, 0, check.stdout + check.stderr)
        for path in ("/debug/reconcile", "/api/v1/query?query=traces_span_metrics_calls_total&include_open=1",
                     "/api/v1/query?query=histogram_quantile(0.5,traces_span_metrics_duration_seconds)"
                     "&include_open=1"):
            answer = self.agent.get(path)
            self.assertEqual(answer.status, 200, path)
            strict_json(answer.body)
        with open(self.agent.log_path, "rb") as f:
            f.read().decode("utf-8", "strict")
        self.assertTrue(self.agent.reconcile()["balanced"])


class Bodies(Base):
    def check_answer(self, row, rule, answer):
        if answer.status >= 400:
            self.assertTrue(0 < len(answer.body) < 512, "a refusal gives a short reason")
            if row[1].startswith("/v1/traces") and "http:" not in rule[3]:  # google.rpc.Status
                self.assertIn(b"weir: ", dict(spans._fields(answer.body))[2])
            else:
                self.assertIn("weir: ", answer.body.decode("utf-8", "strict"))
        elif row[1].startswith("/v1/"):
            rejected = 0
            for _, partial in spans._fields(answer.body):
                rejected = dict(spans._fields(partial))[1]
            self.assertEqual(rejected, int(rule[3].split("=")[1]) if rule[3].startswith("rejected:") else 0)
        else:
            strict_json(answer.body)

    def check_cost(self, connection, row, rule, raw):
        """The mean of some requests on one connection, in the best of some tries."""
        best = None
        for _ in range(TRIES):
            begun = process.cpu_ms(self.pid)
            for _ in range(SENDS):
                ask(connection, row, raw)
            cost = (process.cpu_ms(self.pid) - begun) / SENDS
            best = cost if best is None else min(best, cost)
            if best < float(rule[4]):
                break
        self.assertLess(best, float(rule[4]), "milliseconds of CPU a request")
        return best

    def test_every_body_is_refused_or_counted_as_its_row_says(self):
        rules = Rules("hostile_rows.tsv")
        rows = vectors("hostile.tsv")
        self.assertGreaterEqual(len(rows), 366)
        otlp = next(expand(r[4]) for r in rows if r[0] == "ce-identity")
        self.serve_one_more()
        process.reset_peak(self.pid)
        idle = process.rss_bytes(self.pid)
        costs = {}
        for row in rows:
            with self.subTest(row[0], expect=row[6]):
                rule = rules.of(row[0])
                raw = expand(row[4])
                before = self.counters()
                to_otlp = row[1].startswith("/v1/")
                with Connection(self.agent.otlp if to_otlp else self.agent.datadog) as connection:
                    answer = ask(connection, row, raw)
                    self.assertIn(answer.status, statuses(rule, row[5]), answer)
                    self.judge(rule, rule[3], int(rule[2]) if answer.status == 200 else 0, before)
                    self.check_answer(row, rule, answer)
                    self.assertNotEqual(answer.headers.get("connection"), "close", "the connection is usable")
                    self.serve_one_more(connection, otlp if to_otlp else None)
                    if rule[4] != "-" and not self.sanitized:
                        costs[row[0]] = self.check_cost(connection, row, rule, raw)
        self.assertEqual(rules.unused(), [], "rules that are the best of no row")
        if costs:
            worst = sorted(costs, key=costs.get)[-6:]
            grown = process.peak_bytes(self.pid) - idle
            print("CPU of a request, ms: " + ", ".join("%s %.3f" % (k, costs[k]) for k in worst))
            print("memory at the peak: %.1f MiB above %.1f MiB" % (grown / 2**20, idle / 2**20))
            self.assertLess(grown, LIMIT + SLACK)
            self.assertLess(process.rss_bytes(self.pid) - idle, SLACK, "memory falls back")
        self.check_outputs()

    def test_a_bomb_costs_and_holds_little_however_it_is_sent(self):
        """Case S13. In chunks, nothing says beforehand how long it is; of more than 1 MiB as sent, it is decoded
        up to the limit."""
        with open(os.path.join(VECTORS, "gzip-bomb-1GB.gz"), "rb") as f:
            bomb = f.read()
        self.serve_one_more()
        headers = [MSGPACK, ("Content-Encoding", "gzip")]
        padded = ("X-Fill", "x" * 32000)  # a head just below its limit
        long = bomb + bomb
        for name, body, more, sizes in (("announced", bomb, [], None), ("with a large head", bomb, [padded], None),
                                        ("in chunks", bomb, [], [4096] * (len(bomb) // 4096) + [len(bomb) % 4096]),
                                        ("two of them", long, [], None),
                                        ("two in chunks", long, [], [65536] * (len(long) // 65536)
                                         + [len(long) % 65536])):
            with self.subTest(name):
                process.reset_peak(self.pid)
                idle = process.rss_bytes(self.pid)
                best = None
                for _ in range(5):
                    begun = process.cpu_ms(self.pid)
                    status = None
                    with Connection(self.agent.datadog) as connection:
                        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                            status = connection.request("POST", "/v0.4/traces", body, headers + more, sizes).status
                        if status is None:  # answered before all was sent
                            status = connection.read_response().status
                    cost = process.cpu_ms(self.pid) - begun
                    best = cost if best is None else min(best, cost)
                    self.assertEqual(status, 413)
                print("a bomb, %s: %.1f ms of CPU" % (name, best))
                if not self.sanitized:
                    self.assertLess(best, 100)
                    self.assertLess(process.peak_bytes(self.pid) - idle, LIMIT + SLACK)
                self.serve_one_more()
        self.assertEqual(self.counters()["weir_spans_received_total"], self.sent)

    def test_a_payload_of_30_mb_is_413_and_the_next_is_served(self):
        """Case S10. Announced, it is refused before it comes; a client that sends it all the same reads the
        answer. In chunks, or decoded, the connection goes on where the rest is small."""
        body = spans.pack([[{"service": "s", "name": "n", "resource": "r" * 1000, "trace_id": 1, "span_id": 1,
                             "start": 1, "duration": 1}] * 30000])
        self.assertGreater(len(body), 30 * 1000 * 1000)
        before = self.counters()
        with Connection(self.agent.datadog) as connection:
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                connection.send(b"POST /v0.4/traces HTTP/1.1\r\nHost: a\r\nContent-Type: application/msgpack\r\n"
                                b"Content-Length: %d\r\n\r\n" % len(body))
                connection.send(body)
            answer = connection.read_response()
            self.assertEqual(answer.status, 413)
            self.assertIn(b"larger than the limit", answer.body)
            self.assertEqual(answer.headers["connection"], "close")
        self.serve_one_more()
        with Connection(self.agent.datadog) as connection:
            packed = gzip.compress(body, 1)
            answer = connection.request("POST", "/v0.4/traces", packed, [MSGPACK, ("Content-Encoding", "gzip")])
            self.assertEqual(answer.status, 413)
            self.serve_one_more(connection)
        after = self.counters()
        self.assertEqual(after["refused:too_large"] - before["refused:too_large"], 2)
        self.assertEqual(after["weir_spans_received_total"] - before["weir_spans_received_total"], 2)

    def test_a_client_that_leaves_in_the_middle_has_nothing_counted(self):
        """Case S14: all or nothing, though whole traces have come."""
        trace = [{"service": "s", "name": "n", "resource": "r", "trace_id": 1, "span_id": 1, "start": 1,
                  "duration": 1}]
        body = spans.pack([trace] * 5000)
        for head, sent in ((b"Content-Length: %d\r\n\r\n" % len(body), body[:len(body) // 2]),
                           (b"Content-Length: %d\r\n\r\n" % len(body), body[:-1]),
                           (b"Transfer-Encoding: chunked\r\n\r\n", b"%x\r\n%s\r\n" % (len(body), body))):
            for reset in (False, True):
                before = self.counters()
                connection = Connection(self.agent.datadog)
                connection.send(b"POST /v0.4/traces HTTP/1.1\r\nHost: a\r\nContent-Type: application/msgpack\r\n"
                                + head + sent)
                if reset:
                    connection.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
                else:
                    connection.sock.shutdown(socket.SHUT_WR)
                    self.assertEqual(connection.read_response().status, 400)
                connection.close()
                deadline = time.monotonic() + 5
                while self.counters()["refused:truncated"] == before["refused:truncated"]:
                    self.assertLess(time.monotonic(), deadline)
                self.judge(("truncated", ""), "refused:truncated=1 http:truncated=1", 0, before)
        self.serve_one_more()

    def test_sampling_rates_and_strange_numbers_weigh_one(self):
        """T19, T21 as long as rates are not read: every span weighs one, whatever its rate says."""
        def weight():
            return sum(w["weight"]["admitted"] for w in self.agent.reconcile()["windows"])
        done = 0
        for row in vectors("hostile.tsv"):
            if row[0].startswith(("mp-sample-rate-", "mp-metric-")) and row[5] == "200":
                before = weight()
                with Connection(self.agent.datadog) as connection:
                    self.assertEqual(ask(connection, row, expand(row[4])).status, 200)
                self.assertEqual(weight() - before, WEIGHT_UNIT, row[0])
                done += 1
        self.assertEqual(done, 7)
        self.check_outputs()

    def test_broken_and_strange_text_is_found_again_by_its_mended_form(self):
        """Case S07: the names of the rows, as another decoder mends them, in JSON answers and as matchers."""
        found = {}
        for row in vectors("hostile.tsv"):
            if not row[0].startswith(("mp-utf8-", "mp-string-")):
                continue
            raw = expand(row[4])
            with Connection(self.agent.datadog) as connection:
                self.assertEqual(ask(connection, row, raw).status, 200)
            name = spans.unpack(raw)[0][0]["name"]  # Python mends by the same rule, for each maximal part
            found[name] = found.get(name, 0) + 1
        self.assertEqual(sum(found.values()), 13)
        self.assertIn("GET \ufffd", found)
        for control in ("\0", "\n", '"', "\\", "\u2028", "\u202e"):
            self.assertTrue(any(control in name for name in found), repr(control))
        calls = {labels["operation_name"]: value for labels, value in self.agent.calls()}
        self.assertEqual(calls, found)
        for name, hits in found.items():
            quoted = '"' + re.sub(r'[\\"\n\x00]', lambda m: "\\x%02x" % ord(m.group()), name) + '"'
            self.assertEqual(self.agent.total_calls("operation_name=" + quoted), hits, name)
        self.check_outputs()


class Restart(Base):
    """Case S11, as far as it applies: there is no journal of payloads, and a histogram without bounds is not taken
    in yet; what was stored of hostile payloads is read back by each start that follows."""

    ARGUMENTS = ("--aggregation.window=1s", "--aggregation.lateness=0s")

    def test_what_strangers_sent_does_not_harm_the_next_start(self):
        for row in vectors("hostile.tsv"):
            with Connection(self.agent.otlp if row[1].startswith("/v1/") else self.agent.datadog) as connection:
                ask(connection, row, expand(row[4]))
        hits = self.agent.reconcile()["process"]["aggregated"]
        self.assertGreater(hits, 50)
        self.assertTrue(wait_until(lambda: self.agent.total_calls(include_open=False) == hits))
        before = sorted((sorted(labels.items()), value) for labels, value in self.agent.calls(include_open=False))
        for how in (signal.SIGKILL, signal.SIGTERM, signal.SIGKILL):
            self.agent.restart(how)
            after = sorted((sorted(labels.items()), value) for labels, value in self.agent.calls(include_open=False))
            self.assertEqual(after, before)
            self.check_outputs()


class RawRequests(Base):
    def exchange(self, raw, connection_after, count):
        """The statuses of count answers; then the connection is as the row says."""
        found = []
        with Connection(self.agent.datadog) as connection:
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                connection.send(raw)
                if connection_after != "keep":
                    connection.sock.shutdown(socket.SHUT_WR)
            with contextlib.suppress(EOFError, ConnectionResetError, OSError):
                while len(found) < count:
                    status, headers = read_head_of_response(connection.file)
                    if status == 100:
                        continue
                    found.append(status)
                    if not raw.startswith(b"HEAD"):
                        read_exactly(connection.file, int(headers.get("content-length", 0)))
            if connection_after == "keep":
                self.assertEqual(connection.request("GET", "/info").status, 200, "the connection is usable")
            else:
                with contextlib.suppress(ConnectionResetError):
                    self.assertEqual(connection.file.read(), b"", "nothing more comes")
        return found

    def test_every_request_is_answered_as_its_row_says(self):
        rules = Rules("raw_rows.tsv")
        rows = vectors("raw-http.tsv")
        self.assertGreaterEqual(len(rows), 99)
        for name, raw, status, connection, expected in rows:
            with self.subTest(name, expected=expected):
                rule = rules.of(name)
                data = expand(raw)
                count = 100 if status == "100 x 200" else 1
                if re.fullmatch(r"(\d{3} )*\d{3}", status):
                    count = len([s for s in status.split(" ") if s != "100"])
                before = self.counters()
                found = self.exchange(data, connection, count)
                if found or len(data) < 60000:  # in the middle of a flood nobody is owed an answer
                    self.assertEqual(len(found), count)
                    self.assertLessEqual(set(found), statuses(rule, status))
                self.judge(rule, rule[3], int(rule[2]), before)
                self.serve_one_more()
        self.assertEqual(rules.unused(), [], "rules that are the best of no row")
        self.check_outputs()


class Splits(Base):
    """A request cut in two at every byte, over a real socket, is the same request: counted once."""

    def check(self, target, path, body, headers, chunked=False, every=1):
        lines = ["POST %s HTTP/1.1" % path, "Host: a"] + ["%s: %s" % h for h in headers]
        if chunked:
            half = len(body) // 2
            lines.append("Transfer-Encoding: chunked")
            body = b"%x;a=b\r\n%s\r\n%X\r\n%s\r\n0\r\nT: 1\r\n\r\n" % (half, body[:half], len(body) - half,
                                                                      body[half:])
        else:
            lines.append("Content-Length: %d" % len(body))
        raw = ("\r\n".join(lines) + "\r\n\r\n").encode() + body
        before = self.counters()
        cuts = range(1, len(raw), every)
        with Connection(target) as connection:
            if connection.sock.family == socket.AF_INET:
                connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for cut in cuts:
                connection.send(raw[:cut])
                time.sleep(0.0005)  # so that it is read by itself
                connection.send(raw[cut:])
                self.assertEqual(connection.read_response().status, 200, "cut at %d" % cut)
            for byte in raw:
                connection.send(bytes([byte]))
            self.assertEqual(connection.read_response().status, 200, "a byte at a time")
        after = self.counters()
        self.assertEqual(after["weir_spans_received_total"] - before["weir_spans_received_total"], len(cuts) + 1)
        self.assertEqual({k: v for k, v in after.items() if k.startswith("refused:")},
                         {k: v for k, v in before.items() if k.startswith("refused:")})

    def test_at_every_byte(self):
        rows = {r[0]: expand(r[4]) for r in vectors("hostile.tsv")}
        otlp = rows["ce-identity"]
        v04 = valid_span(1)
        v05 = spans.pack([["", "s", "n", "r"], [[[1, 2, 3, 1, 1, 0, 1, 1, 0, {}, {}, 0]]]])
        v1 = spans.pack({7: "prod", 11: [{4: [{1: "s", 2: "n", 3: "r", 4: 1, 6: 1, 7: 1, 9: [1, 1, 1]}],
                                          6: bytes(15) + b"\1"}]})
        coded = ("Content-Encoding", "gzip")
        self.check(self.agent.datadog, "/v0.4/traces", v04, [MSGPACK])
        self.check(self.agent.datadog, "/v1.0/traces", v1, [MSGPACK])
        self.check(self.agent.datadog, "/v0.5/traces", v05, [MSGPACK], chunked=True)
        self.check(self.agent.otlp, "/v1/traces", otlp, [PROTOBUF])
        self.check(self.agent.otlp, "/v1/traces", gzip.compress(otlp), [PROTOBUF, coded], chunked=True)
        self.check(self.agent.socket, "/v0.4/traces", gzip.compress(v04), [MSGPACK, coded], every=7)


if __name__ == "__main__":
    run.main()
