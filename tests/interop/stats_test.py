# SPDX-License-Identifier: Apache-2.0
"""stats_test.py PROGRAM PEER: bodies of /v0.6/stats of the library's profile client, read and made by others.

Spans of many shapes go as one v0.4 body to PROGRAM (stats.c), which counts them and writes a body. Then, by PEER:
  trace-agent  the trace-agent's own package decodes it: each field, count and quantile is what the spans say
  libdatadog   its concentrator, given the same spans, has the same rows but for the differences named here
  test-agent   Datadog's test agent takes it and holds what was sent
Packages come from the Go, Rust and Python registries, once, into build/; a peer that cannot be had skips the test.
"""
import json
import math
import os
import random
import subprocess
import sys
import time
import unittest

import peers
from weirtest import packages, run, spans

HERE = os.path.dirname(os.path.abspath(__file__))
NOW_NS = 1800000003 * 10**9
ACCURACY = {False: 0.005416, True: 0.007813}  # of base 2^(1/64), logarithmic and linearly interpolated
KEY = ("name", "service", "resource", "type", "kind", "status", "synthetics", "root", "peer_tags", "more", "source",
       "method", "endpoint", "grpc")
NUMBERS = ("hits", "errors", "top", "duration")


def span(resource, duration=1000, kind="client", error=0, parent=0, top=1, type="web", meta=(), metrics=()):
    return {"service": "svc", "name": "op", "resource": resource, "type": type, "trace_id": 7, "span_id": 8,
            "parent_id": parent, "start": NOW_NS - duration, "duration": duration, "error": error,
            "meta": dict(meta, **({"span.kind": kind} if kind else {})),
            "metrics": dict(metrics, **({"_top_level": 1.0} if top else {}))}


def plain_spans():
    """Spans on which the rules of all agree."""
    rng = random.Random(20260830)
    made = []
    for i in range(3000):
        kind = rng.choice(("client", "producer", "consumer", "server", "internal"))
        meta = {}
        if rng.random() < 0.7:
            meta["http.status_code"] = rng.choice(("200", "404", "503"))
        if rng.random() < 0.5:
            meta.update({"http.method": rng.choice(("GET", "POST")), "http.endpoint": "/users/{param:int}"})
        if rng.random() < 0.5:
            meta["peer.hostname"] = rng.choice(("db-1", "db-2", "caf\u00e9"))
        if rng.random() < 0.3:
            meta["peer.service"] = "orders"
        if rng.random() < 0.3:
            meta["_dd.base_service"] = "base"
        if rng.random() < 0.3:
            meta["region"] = rng.choice(("eu", "us"))
        if rng.random() < 0.2:
            meta["_dd.svc_src"] = "kafka"
        if rng.random() < 0.1:
            meta["_dd.origin"] = "synthetics"
        if kind == "internal" and "region" in meta:
            meta["_dd.base_service"] = "base"
        type = rng.choice(("web", "db"))
        if rng.random() < 0.2:
            type = "rpc"
            meta["rpc.grpc.status_code"] = rng.choice(("0", "5"))
        made.append(span("GET /%d" % rng.randrange(4), duration=1 + int(math.exp(rng.gauss(14, 3))), kind=kind,
                         error=int(rng.random() < 0.2), parent=rng.choice((0, 5)), top=int(rng.random() < 0.5),
                         type=type, meta=meta))
    # Others that do not count: not measured, not top level, of no kind; and one that is not finished.
    made += [span("none", kind=None, top=0), span("none", kind="broker", top=0),
             span("none", metrics={"_dd.partial_version": 3.0})]
    made.append(span("measured", kind="internal", top=0, metrics={"_dd.measured": 1.0}))
    return made


def model(made):
    """Rows by key, as the rules of the tracer say (contract: 1.2, 1.7), from spans on which all agree."""
    rows = {}
    for s in made:
        meta, metrics = s["meta"], s["metrics"]
        kind = meta.get("span.kind", "")
        eligible = (metrics.get("_top_level") or metrics.get("_dd.measured") or
                    kind in ("server", "client", "producer", "consumer")) and "_dd.partial_version" not in metrics
        if not eligible:
            continue
        peers = []
        if kind in ("client", "producer", "consumer"):
            peers = ["%s:%s" % (k, meta[k]) for k in ("peer.hostname", "peer.service") if k in meta]
        elif kind == "internal" and "_dd.base_service" in meta:
            peers = ["_dd.base_service:" + meta["_dd.base_service"]]
        key = (s["name"], s["service"], s["resource"], s["type"], kind, int(meta.get("http.status_code", 0)),
               meta.get("_dd.origin") == "synthetics", 1 if s["parent_id"] == 0 else 2, tuple(peers),
               tuple("region:" + meta[k] for k in ("region",) if k in meta), meta.get("_dd.svc_src", ""),
               meta.get("http.method", ""), meta.get("http.endpoint", ""),
               meta.get("rpc.grpc.status_code", "") if s["type"] == "rpc" else "")
        row = rows.setdefault(key, {"hits": 0, "errors": 0, "top": 0, "duration": 0, "ok": [], "error": []})
        row["hits"] += 1
        row["errors"] += s["error"]
        row["top"] += int(metrics.get("_top_level", 0))
        row["duration"] += s["duration"]
        row["error" if s["error"] else "ok"].append(s["duration"])
    return rows


def body_of(program, made, java, now_ns=NOW_NS):
    done = subprocess.run([program] + (["--java"] if java else []) + [str(now_ns)], input=spans.pack([made]),
                          stdout=subprocess.PIPE, timeout=120)
    if done.returncode != 0:
        raise AssertionError("%s ended with %d" % (program, done.returncode))
    return done.stdout


def key_of(row):
    return tuple(tuple(row[k] or ()) if k in ("peer_tags", "more") else row[k] for k in KEY)


def rows_of_body(body):
    """The rows of a body by key, read by our own reader."""
    names = {"Name": "name", "Service": "service", "Resource": "resource", "Type": "type", "SpanKind": "kind",
             "HTTPStatusCode": "status", "Synthetics": "synthetics", "IsTraceRoot": "root", "PeerTags": "peer_tags",
             "AdditionalMetricTags": "more", "srv_src": "source", "HTTPMethod": "method", "HTTPEndpoint": "endpoint",
             "GRPCStatusCode": "grpc", "Hits": "hits", "Errors": "errors", "TopLevelHits": "top",
             "Duration": "duration", "OkSummary": "ok", "ErrorSummary": "error"}
    rows = {}
    for group in spans.unpack(body)["Stats"][0]["Stats"]:
        row = dict({"source": "", "method": "", "endpoint": "", "grpc": ""},
                   **{names[k]: v for k, v in group.items()})
        if key_of(row) in rows:
            raise AssertionError("two rows of one key")
        rows[key_of(row)] = row
    return rows


class TraceAgent(unittest.TestCase):
    """pkg/proto 0.85.4 and sketches-go 1.4.8, both of the agent."""

    @classmethod
    def setUpClass(cls):
        cls.go = packages.go_built("stats-go", "the trace-agent's packages")

    def decode(self, body):
        done = subprocess.run([self.go], input=body, stdout=subprocess.PIPE, timeout=120)
        self.assertEqual(done.returncode, 0)
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        return lines[0], {key_of(r): r for r in lines[1:]}

    def check(self, java):
        made = plain_spans()
        want = model(made)
        head, rows = self.decode(body_of(PROGRAM, made, java))
        self.assertEqual(head, {"runtime_id": "runtime", "sequence": 0, "hostname": "host", "service": "svc",
                                "env": "test", "version": "1.2.3", "process_tags": "a:b",
                                "git_commit_sha": "0123abcd", "buckets": 1, "start": NOW_NS,
                                "duration": 10 * 10**9})
        self.assertEqual(set(rows), set(want))
        for key, row in rows.items():
            for name in NUMBERS:
                self.assertEqual(row[name], want[key][name], (key, name))
            for name in ("ok", "error"):
                self.check_sketch(row[name], sorted(want[key][name]), java, key)
        return len(rows)

    def check_sketch(self, got, durations, java, key):
        self.assertEqual(got[0], len(durations), key)
        for q, value in zip((0.5, 0.9, 0.99), got[1:]):
            exact = durations[int(q * (len(durations) - 1))]
            if java and exact < durations[-1] / 2**15:
                continue  # its 1,024 bins are 16 octaves: what lies below shares the lowest one
            self.assertLessEqual(abs(value - exact), ACCURACY[java] * exact + 1e-9, (key, q))

    def test_our_mapping(self):
        self.assertGreater(self.check(java=False), 500)

    def test_the_mapping_of_the_java_tracer(self):
        self.assertGreater(self.check(java=True), 500)

    def test_our_own_reader_sees_the_same(self):
        body = body_of(PROGRAM, plain_spans(), False)
        _, rows = self.decode(body)
        own = rows_of_body(body)
        self.assertEqual(set(own), set(rows))
        for key, row in own.items():
            self.assertEqual([row[n] for n in NUMBERS], [rows[key][n] for n in NUMBERS])
            self.assertEqual(row["ok"].hex(), rows[key]["ok_hex"])


# A span each on which libdatadog's rules and ours differ: what one has and the other, by field; None: no row.
# docs/internals/aggregate.md has the same table in words.
DIFFERENCES = [
    ("an origin that begins with synthetics", span("d1", meta={"_dd.origin": "synthetics-browser"}),
     {"synthetics": False}, {"synthetics": True}),
    ("a gRPC status of another type than rpc", span("d2", meta={"rpc.grpc.status_code": "5"}),
     {"grpc": ""}, {"grpc": "5"}),
    ("a gRPC status by its name", span("d3", type="rpc", meta={"rpc.grpc.status_code": "NOT_FOUND"}),
     {"grpc": "NOT_FOUND"}, {"grpc": "5"}),
    ("a route without an endpoint", span("d4", meta={"http.method": "GET", "http.route": "/a"}),
     {"endpoint": ""}, {"endpoint": "/a"}),
    ("a base service of a span without kind", span("d5", kind=None, meta={"_dd.base_service": "base"}),
     {"peer_tags": []}, {"peer_tags": ["_dd.base_service:base"]}),
    ("an address as a peer", span("d6", meta={"peer.hostname": "10.0.0.1"}),
     {"peer_tags": ["peer.hostname:10.0.0.1"]}, {"peer_tags": ["peer.hostname:blocked-ip-address"]}),
    ("a dimension that is empty", span("d7", meta={"region": ""}), {"more": ["region:"]}, {"more": []}),
    ("a kind in capitals", span("d8", kind="CLIENT", top=0), None, {"kind": "CLIENT"}),
    ("a duration of 0", span("d9", duration=0), None, {"duration": 0}),
    ("a version of a snapshot that is 0", span("d10", metrics={"_dd.partial_version": 0.0}), {"hits": 1}, None),
]


class Libdatadog(unittest.TestCase):
    """libdd-trace-stats 13.0.0."""

    @classmethod
    def setUpClass(cls):
        cls.peer = peers.libdatadog()

    def theirs(self, made):
        path = os.path.join(packages.CACHE, "stats-spans.%d" % os.getpid())
        with open(path, "wb") as f:
            f.write(spans.pack([made]))
        try:
            done = subprocess.run([self.peer, "rows", path], stdout=subprocess.PIPE, text=True, timeout=120)
        finally:
            os.unlink(path)
        self.assertEqual(done.returncode, 0)
        rows = [json.loads(line) for line in done.stdout.splitlines()]
        return {key_of(r): r for r in rows}

    def test_row_by_row(self):
        made = plain_spans()
        ours = rows_of_body(body_of(PROGRAM, made, False))
        theirs = self.theirs(made)
        self.assertEqual(set(ours), set(theirs))
        for key, row in ours.items():
            self.assertEqual([row[n] for n in NUMBERS], [theirs[key][n] for n in NUMBERS], key)

    def test_each_difference_is_the_one_that_is_named(self):
        for what, one, our, their in DIFFERENCES:
            keep = span("keep")
            ours = self.row_of(rows_of_body(body_of(PROGRAM, [keep, one], False)), one)
            theirs = self.row_of(self.theirs([keep, one]), one)
            for got, want in ((ours, our), (theirs, their)):
                self.assertEqual(got is None, want is None, what)
                if want is not None:
                    self.assertEqual({k: got[k] for k in want}, want, what)

    @staticmethod
    def row_of(rows, one):
        found = [r for r in rows.values() if r["resource"] == one["resource"]]
        return found[0] if found else None


class TestAgent(unittest.TestCase):
    """ddapm-test-agent 1.69.1."""

    @classmethod
    def setUpClass(cls):
        cls.agent = peers.TestAgent()
        cls.addClassCleanup(cls.agent.stop)

    def test_it_takes_the_body_and_holds_the_rows(self):
        made = plain_spans()
        want = model(made)
        self.agent.start_session("t")
        for java in (False, True):
            self.assertEqual(self.agent.put("/v0.6/stats", body_of(PROGRAM, made, java), "t"), 200)
        payloads = self.agent.get("/test/session/stats", "t")
        self.assertEqual(len(payloads), 2)
        for payload in payloads:
            groups = payload["Stats"][0]["Stats"]
            self.assertEqual(len(groups), len(want))
            for name, ours in (("Hits", "hits"), ("Errors", "errors"), ("TopLevelHits", "top"),
                               ("Duration", "duration")):
                self.assertEqual(sum(g[name] for g in groups), sum(r[ours] for r in want.values()))
        self.agent.check_failures("t")


PEERS = {"trace-agent": TraceAgent, "libdatadog": Libdatadog, "test-agent": TestAgent}

if __name__ == "__main__":
    PROGRAM, peer = sys.argv[1:3]
    del sys.argv[1:3]
    os.makedirs(packages.CACHE, exist_ok=True)
    suite = unittest.defaultTestLoader.loadTestsFromTestCase(PEERS[peer])
    sys.exit(not unittest.TextTestRunner(verbosity=2).run(suite).wasSuccessful())
