# SPDX-License-Identifier: Apache-2.0
"""Recorded requests of stock clients, replayed as they came: route, headers, framing, chunk sizes.

The expected counts are those that the recording's own MANIFEST states. K numbers are the cases they pin.
"""
import csv
import gzip
import json
import os
import socket
import sys
import unittest
from collections import Counter

from weirtest import run, spans
from weirtest.agent import Agent
from weirtest.http import Connection, request

RECORDED = run.need_vectors("clients") if __name__ == "__main__" else ""
SERVER_OK, SERVER_FAILED = ("SPAN_KIND_SERVER", "200", "STATUS_CODE_UNSET"), ("SPAN_KIND_SERVER", "500", "STATUS_CODE_ERROR")


class Recorded:
    def __init__(self, row):
        self.folder, self.file, request_line, self.framing = row[0], row[1], row[2], row[3]
        self.method, self.path = request_line.split(" ")[:2]
        self.headers = [tuple(h) for h in json.loads(row[6])]
        with open(os.path.join(RECORDED, self.folder, self.file), "rb") as f:
            self.body = f.read()
        self.whole = len(self.body) == int(row[5])
        self.chunks = json.loads(self.framing[len("chunked"):] or "null") if self.framing.startswith("chunked") else None

    def decoded(self):
        return gzip.decompress(self.body) if self.file.endswith(".gz") else self.body

    def is_traces(self):
        return self.path in ("/v0.4/traces", "/v0.5/traces", "/v1/traces") and not self.file.endswith(".json")


def recorded(prefix):
    with open(os.path.join(RECORDED, "requests.tsv"), newline="") as f:
        rows = [r for r in csv.reader(f, delimiter="\t", quoting=csv.QUOTE_NONE) if not r[0].startswith("#")]
    found = [Recorded(r) for r in rows if r[1].startswith(prefix)]
    if not found:
        raise AssertionError("no recording begins with " + prefix)
    damaged = [one.file for one in found if not one.whole]
    if damaged:
        raise AssertionError("not of their recorded size: " + ", ".join(damaged))
    return found


class Replay(unittest.TestCase):
    def replay(self, prefix, traces_only=False):
        """Send a whole run over one keep-alive connection; the rows, and what was answered by route."""
        run_of_client = recorded(prefix)
        answers = Counter()
        with Agent() as agent:
            target = agent.otlp if run_of_client[0].path.startswith("/v1/") else agent.datadog
            with Connection(target) as connection:
                for one in run_of_client:
                    if traces_only and not one.is_traces():
                        continue
                    answer = connection.request(one.method, one.path, one.body, one.headers, one.chunks)
                    answers[one.path, answer.status] += 1
                    if one.is_traces():
                        self.assertEqual(answer.status, 200, "%s: %r" % (one.file, answer))
            rows = spans.rows_of_answer(agent.calls())
            sent = [s for one in run_of_client if one.is_traces() for s in spans.read_body(one.path, one.decoded())]
            self.assertEqual(rows, spans.rows_of(sent))
            self.assertTrue(agent.reconcile()["balanced"])
            for q in (0.5, 0.99):
                exact = spans.exact_quantile([s.duration for s in sent], q)
                got = agent.number("histogram_quantile(%g, sum(increase(traces_span_metrics_duration_seconds[1h])))" % q)
                self.assertLessEqual(abs(got - exact), spans.ALPHA * exact * (1 + 1e-9))
        return rows, answers

    @staticmethod
    def servers(rows):
        found = Counter()
        for (_, _, _, kind, status, code), calls in rows.items():
            if kind == "SPAN_KIND_SERVER":
                found[kind, status, code] += calls
        return found

    def test_dd_trace_js_by_v04(self):
        rows, answers = self.replay("dd-v04-stats-")
        self.assertEqual(sum(rows.values()), 402)
        self.assertEqual(self.servers(rows), {SERVER_OK: 190, SERVER_FAILED: 10})
        # The caller's own 500 is no error to this tracer.
        self.assertEqual(rows["shop", "http.request", "GET", "SPAN_KIND_CLIENT", "500", "STATUS_CODE_UNSET"], 10)
        self.assertEqual(answers["/v0.7/config", 200], 2)

    def test_dd_trace_js_by_v05(self):
        rows, _ = self.replay("dd-v05-")
        self.assertEqual(sum(rows.values()), 402)
        self.assertEqual(self.servers(rows), {SERVER_OK: 190, SERVER_FAILED: 10})

    def test_ddtrace_py_by_v05_K01(self):
        rows, _ = self.replay("py-stats-")
        self.assertEqual(sum(rows.values()), 1800)
        self.assertEqual(sum(n for k, n in rows.items() if k[5] == "STATUS_CODE_ERROR"), 10)
        self.assertEqual(self.servers(rows), {SERVER_OK: 190, SERVER_FAILED: 10})

    def test_ddtrace_py_by_v04_without_zero_fields_K02(self):
        rows, _ = self.replay("py-v04-")
        self.assertEqual(sum(rows.values()), 1800)
        self.assertEqual(self.servers(rows), {SERVER_OK: 190, SERVER_FAILED: 10})

    def test_otel_js_chunked(self):
        rows, _ = self.replay("otel223-proto-")
        self.assertEqual(sum(rows.values()), 400)
        self.assertEqual(self.servers(rows), {SERVER_OK: 190, SERVER_FAILED: 10})
        self.assertEqual(sum(n for k, n in rows.items() if k[3] == "SPAN_KIND_CLIENT" and k[5] == "STATUS_CODE_ERROR"), 10)

    def test_otel_js_gzip_whose_first_chunk_is_its_header_K09(self):
        self.assertIn([10], [one.chunks[:1] for one in recorded("otel223-expo-delta-gzip-")])
        rows, _ = self.replay("otel223-expo-delta-gzip-")
        self.assertEqual(sum(rows.values()), 400)
        self.assertEqual(self.servers(rows), {SERVER_OK: 190, SERVER_FAILED: 10})

    def test_otel_python(self):
        rows, _ = self.replay("pyotel-proto-")
        self.assertEqual(sum(rows.values()), 200)
        self.assertEqual(self.servers(rows), {SERVER_OK: 190, SERVER_FAILED: 10})

    def test_otel_rust(self):
        rows, _ = self.replay("rust-proto-")
        self.assertEqual(sum(rows.values()), 200)
        self.assertEqual(sum(n for k, n in rows.items() if k[5] == "STATUS_CODE_ERROR"), 10)

    def test_telemetrygen(self):
        rows, _ = self.replay("tg-")
        by_kind = Counter()
        for (_, _, _, kind, _, code), calls in rows.items():
            by_kind[kind, code] += calls
        self.assertEqual(by_kind, {("SPAN_KIND_CLIENT", "STATUS_CODE_ERROR"): 50,
                                   ("SPAN_KIND_SERVER", "STATUS_CODE_ERROR"): 150})


class Cases(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.agent = Agent()

    @classmethod
    def tearDownClass(cls):
        cls.agent.__exit__(None, None, None)

    MSGPACK = ("Content-Type", "application/msgpack")

    @staticmethod
    def span(service, number=1, **fields):
        one = {"service": service, "name": "op", "resource": "res", "trace_id": number, "span_id": number,
               "parent_id": 0, "start": 1700000000 * 10**9, "duration": 10**6, "error": 0,
               "meta": {"span.kind": "server"}, "metrics": {}}
        one.update(fields)
        return one

    def rows(self, service):
        return spans.rows_of_answer(self.agent.calls('service_name="%s"' % service))

    def put(self, body, *headers, path="/v0.4/traces"):
        return request(self.agent.datadog, "PUT", path, body, (self.MSGPACK,) + headers)

    def test_signed_forms_of_positive_numbers_are_the_same_numbers_K03(self):
        plain = self.span("k03")
        body = spans.pack([[plain]])
        start, duration = plain["start"], plain["duration"]
        signed = body.replace(b"\xcf" + start.to_bytes(8, "big"), b"\xd3" + start.to_bytes(8, "big"))
        signed = signed.replace(b"\xce" + duration.to_bytes(4, "big"), b"\xd2" + duration.to_bytes(4, "big"))
        self.assertEqual(Counter(signed) - Counter(body), Counter({0xD3: 1, 0xD2: 1}))
        for one in (body, signed):
            self.assertEqual(self.put(one).status, 200)
        self.assertEqual(list(self.rows("k03").values()), [2])
        quantile = 'quantile_over_time(0.5, traces_span_metrics_duration_seconds{service_name="k03",status_code="STATUS_CODE_UNSET"}[1h])'
        self.assertAlmostEqual(self.agent.number(quantile), 0.001, delta=0.001 * spans.ALPHA)

    def test_a_get_with_a_body_is_read_to_its_end_K04(self):
        body = spans.pack([[self.span("k04")]])
        with Connection(self.agent.datadog) as connection:
            answer = connection.request("GET", "/v0.7/config", b"{" + b" " * 445 + b"}",
                                        [("Content-Type", "application/json")])
            self.assertEqual(answer.status, 200)
            answer = connection.request("POST", "/v0.4/traces", body, [self.MSGPACK])
            self.assertEqual(answer.status, 200)
            self.assertIn("rate_by_service", json.loads(answer.body))
        self.assertEqual(sum(self.rows("k04").values()), 1)

    def test_an_empty_computed_stats_header_means_no_K06(self):
        self.assertEqual(self.put(spans.pack([[self.span("k06")]]), ("Datadog-Client-Computed-Stats", "")).status, 200)
        self.assertEqual(sum(self.rows("k06").values()), 1)

    def test_telemetry_is_drained_and_accepted_K07(self):
        body = b"{" + b" " * 86000 + b"}"
        with Connection(self.agent.datadog) as connection:
            for _ in range(3):
                answer = connection.request("POST", "/telemetry/proxy/api/v2/apmtelemetry", body,
                                            [("Content-Type", "application/json")], chunks=[8192] * 10 + [len(body) - 81920])
                self.assertEqual(answer.status, 202)
            self.assertEqual(connection.request("GET", "/info").status, 200)

    def test_a_probe_with_an_empty_array_is_answered_with_rates_K08(self):
        for body in (b"\x90", b"\xdc\x00\x00", b"\xdd\x00\x00\x00\x00"):
            answer = self.put(body)
            self.assertEqual(answer.status, 200)
            self.assertIn("rate_by_service", json.loads(answer.body))

    def test_one_trace_gives_the_same_row_by_every_protocol_K11(self):
        meta, metrics = {"http.status_code": "204"}, {"_sampling_priority_v1": 1.0}
        plain = self.span("k11", meta=meta, metrics=metrics)
        strings = ["", "k11", "op", "res", "http.status_code", "204", "_sampling_priority_v1"]
        v05 = [strings, [[[1, 2, 3, 1, 1, 0, plain["start"], plain["duration"], 0, {4: 5}, {6: 1.0}, 0]]]]
        v07 = {"chunks": [{"priority": 1, "origin": "", "spans": [plain], "tags": {}, "dropped_trace": False}]}
        attributes = ["http.status_code", 1, "204", "_sampling_priority_v1", 3, 1.0]
        v1 = {11: [{4: [{1: "k11", 2: "op", 3: "res", 4: 1, 5: 0, 6: plain["start"], 7: plain["duration"], 8: False,
                         9: attributes}], 6: bytes(15) + b"\1"}]}
        for path, body in (("/v0.3/traces", [[plain]]), ("/v0.4/traces", [[plain]]), ("/v0.5/traces", v05),
                           ("/v0.7/traces", v07), ("/v1.0/traces", v1)):
            self.assertEqual(self.put(spans.pack(body), path=path).status, 200, path)
        self.assertEqual(self.rows("k11"), {("k11", "op", "res", "SPAN_KIND_UNSPECIFIED", "204", "STATUS_CODE_UNSET"): 5})
        labels = [l for l, _ in self.agent.calls('service_name="k11"')]
        self.assertEqual(len(labels), 1, labels)
        self.assertEqual(request(self.agent.otlp, "POST", "/v1/traces", otlp_span("k11", "op", "res", 204),
                                 [("Content-Type", "application/x-protobuf")]).status, 200)
        self.assertEqual(self.rows("k11"), {("k11", "op", "res", "SPAN_KIND_UNSPECIFIED", "204", "STATUS_CODE_UNSET"): 6})

    def test_nothing_of_a_refused_payload_counts_so_nothing_doubles_K22(self):
        good = spans.pack([[self.span("k22", i)] for i in range(1, 51)])
        before = self.agent.metrics()
        for bad in (good[:-1], good + b"\xc1", good[:len(good) // 2]):
            for _ in range(2):  # a stock tracer sends the same bytes again
                self.assertEqual(self.put(bad).status, 400)
        self.assertEqual(sum(self.rows("k22").values()), 0)
        self.assertEqual(self.put(good).status, 200)
        self.assertEqual(sum(self.rows("k22").values()), 50)
        after = self.agent.metrics()
        changed = sum(v - before.get(k, 0) for k, v in after.items() if k.split("{")[0] == "weir_spans_received_total")
        self.assertEqual(changed, 50)

    def test_a_payload_cut_by_the_sender_counts_nothing(self):
        body = spans.pack([[self.span("cut", i)] for i in range(1, 51)])
        with Connection(self.agent.datadog) as connection:
            connection.send(b"PUT /v0.4/traces HTTP/1.1\r\nHost: a\r\nContent-Type: application/msgpack\r\n"
                            b"Content-Length: %d\r\n\r\n" % len(body) + body[:-1])
            connection.sock.shutdown(socket.SHUT_WR)
            connection.sock.recv(4096)
        self.assertEqual(sum(self.rows("cut").values()), 0)

    def test_info_names_the_routes_that_are_served(self):
        answer = request(self.agent.datadog, "GET", "/info")
        self.assertEqual(answer.status, 200)
        info = json.loads(answer.body)
        self.assertEqual(info["version"], "7.65.0")
        self.assertIs(info["client_drop_p0s"], False)
        for route in info["endpoints"]:
            status = request(self.agent.datadog, "POST", route, b"\x90", [self.MSGPACK]).status
            self.assertNotEqual(status, 404, route)
        for route in ("/v0.3/traces", "/v0.4/traces", "/v0.5/traces"):
            self.assertIn(route, info["endpoints"])

    def test_the_books_balance_after_all_of_it(self):
        self.assertTrue(self.agent.reconcile()["balanced"])


def otlp_span(service, operation, name, status):
    """ExportTraceServiceRequest with one span of kind 0."""
    def field(number, content):
        if isinstance(content, int):
            return varint(number << 3) + varint(content)
        return varint(number << 3 | 2) + varint(len(content)) + content

    def fixed64(number, value):
        return varint(number << 3 | 1) + value.to_bytes(8, "little")

    def varint(value):
        out = bytearray()
        while value > 0x7F:
            out.append(value & 0x7F | 0x80)
            value >>= 7
        return bytes(out + bytes([value]))

    def text(key, value):
        return field(1, key.encode()) + field(2, field(1, value.encode()))
    start = 1700000000 * 10**9
    span = (field(1, bytes(15) + b"\1") + field(2, bytes(7) + b"\1") + field(5, name.encode()) + fixed64(7, start) +
            fixed64(8, start + 10**6) + field(9, text("operation.name", operation)) +
            field(9, field(1, b"http.response.status_code") + field(2, field(3, status))))
    resource = field(1, field(1, text("service.name", service)))
    return field(1, resource + field(2, field(2, span)))


if __name__ == "__main__":
    sys.exit(run.main())
