# SPDX-License-Identifier: Apache-2.0
"""stats_test.py PROGRAM PEER: bodies of /v0.6/stats of the library's profile client, read and made by others.

Spans of many shapes go as one v0.4 body to PROGRAM (stats.c), which counts them and writes a body. Then, by PEER:
  trace-agent  the trace-agent's own package decodes it: each field, count and quantile is what the spans say
  agent        the whole trace-agent takes many bodies, of which it merges rows: counts stay, quantiles within its 1 %
  libdatadog   its concentrator, given the same spans, has the same rows but for the differences named
  node         dd-trace-js's processor of span stats, likewise
  test-agent   Datadog's test agent takes it and holds what was sent
Differences are named in docs/internals/stats-differences.md, each shown here by a span or a few.
Packages come from the Go, Rust, Node and Python registries, once, into build/; a peer that cannot be had skips the
test.
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
    rows = {}
    for row in peers.rows_of_stats(body):
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


class WholeAgent(unittest.TestCase):
    """The trace-agent 0.85.4 as a whole: it takes payloads, merges those of one key and of one 2 s, and sends on."""

    PAYLOADS = 6
    MERGED_ACCURACY = 0.01  # of the mapping that it merges into

    def parts(self, now_ns):
        """The spans, dealt to payloads by chance, so that the same keys come in many; and when each is published: the
        windows of 10 s overlap, three of them begin in the same 2 s, two in another."""
        made = plain_spans()
        for s in made:  # no two rows differ in type alone, see the last test
            s["type"] = "rpc" if "rpc.grpc.status_code" in s["meta"] else "web"
        rng = random.Random(20261201)
        often = made[:200]
        made += [dict(rng.choice(often), duration=1 + int(math.exp(rng.gauss(14, 3)))) for _ in range(12000)]
        dealt = [[] for _ in range(self.PAYLOADS)]
        for s in made:
            rng.choice(dealt).append(s)
        even = now_ns // (2 * 10**9) * (2 * 10**9)
        return list(zip(dealt, (even, even + 1, even + 10**9, even - 2 * 10**9, even - 10**9, even - 6 * 10**9)))

    def sent(self, java):
        agent = peers.TraceAgent()
        try:
            parts = self.parts(time.time_ns())
            for made, at_ns in parts:
                self.assertEqual(agent.post("/v0.6/stats", body_of(PROGRAM, made, java, at_ns)), 200)
        finally:
            rows = agent.stop()
        return parts, rows

    def check(self, java):
        parts, rows = self.sent(java)
        want, payload_rows = {}, 0
        for made, at_ns in parts:
            for key, row in model(made).items():
                payload_rows += 1
                kept = want.setdefault((at_ns // (2 * 10**9), key),
                                       {"from": 0, "ok": [], "error": [], **dict.fromkeys(NUMBERS, 0)})
                kept["from"] += 1
                for name in NUMBERS + ("ok", "error"):
                    kept[name] += row[name]
        got = {}
        for row in rows:
            self.assertTrue(row["client"])
            self.assertNotIn((row["start"] // (2 * 10**9), key_of(row)), got)
            got[row["start"] // (2 * 10**9), key_of(row)] = row
        self.assertEqual(set(got), set(want))
        off = []
        for key, row in got.items():
            self.assertEqual([row[n] for n in NUMBERS], [want[key][n] for n in NUMBERS], key)
            for name in ("ok", "error"):
                off += self.check_sketch(row[name], sorted(want[key][name]), java, want[key]["from"], key)
        merged = sum(w["from"] > 1 for w in want.values())
        self.assertGreater(merged, 300)
        print("%d rows of %d payloads became %d, %d of them merged; hits, errors, durations equal; of %d quantiles"
              " %.1f %% within 1 %%, all within %.3f %%" % (payload_rows, len(parts), len(got), merged, len(off),
                                                    100 * sum(o <= 0.01 for o in off) / len(off), 100 * max(off)),
              flush=True)

    def check_sketch(self, got, durations, java, parts, key):
        """How far each quantile is off. Where it merges it deals what a bin of ours holds to all bins of its own that
        lie across it, so a quantile is within its 1 % of some value in our bin, which the exact one is in. Sums of what
        is dealt are not whole to the last bit: where a rank is, the answer may be the value before."""
        self.assertEqual(round(got[0], 6), len(durations), key)
        off = []
        most = (1 + 2 * ACCURACY[java]) * (1 + self.MERGED_ACCURACY) - 1 if parts > 1 else ACCURACY[java]
        for q, value in zip((0.5, 0.9, 0.99), got[1:]):
            rank = q * (len(durations) - 1)
            exact = durations[int(rank)]
            if java and exact < durations[-1] / 2**15:
                continue  # its 1,024 bins are 16 octaves: what lies below shares the lowest one
            if parts > 1 and rank > 0 and rank == int(rank):
                exact = min(exact, durations[int(rank) - 1], key=lambda d: abs(value - d))
            off.append(abs(value - exact) / exact)
            self.assertLessEqual(off[-1], most + 1e-9, (key, q, value, exact))
        return off

    def test_rows_of_a_payload_that_differ_in_type_alone_are_one_to_it(self):
        agent = peers.TraceAgent()
        try:
            made = [span("r", type="web"), span("r", type="db")]
            agent.post("/v0.6/stats", body_of(PROGRAM, made, False, time.time_ns()))
        finally:
            rows = agent.stop()
        self.assertEqual({"web", "db"}, {r["type"] for r in rows})
        self.assertEqual(sorted((r["hits"], r["duration"], r["top"], r["ok"][0]) for r in rows),
                         [(0, 0, 1, 1), (2, 2000, 1, 1)])

    def test_our_mapping(self):
        self.check(java=False)

    def test_the_mapping_of_the_java_tracer(self):
        self.check(java=True)


KEEP = span("keep")  # beside spans that do not count, since a body without rows is none


def rows_but_keep(rows):
    return [r for r in rows if r["resource"] != "keep"]


class Libdatadog(peers.Differences, unittest.TestCase):
    """libdd-trace-stats 13.0.0."""

    HEADING = "libdatadog 13.0.0"
    DIFFERENCES = [
        ("an origin that begins with `synthetics`", [span("d", meta={"_dd.origin": "synthetics-browser"})],
         [{"synthetics": False}], [{"synthetics": True}]),
        ("a gRPC status of another type than `rpc`", [span("d", meta={"rpc.grpc.status_code": "5"})],
         [{"grpc": ""}], [{"grpc": "5"}]),
        ("a gRPC status by its name", [span("d", type="rpc", meta={"rpc.grpc.status_code": "NOT_FOUND"})],
         [{"grpc": "NOT_FOUND"}], [{"grpc": "5"}]),
        ("a route without an endpoint", [span("d", meta={"http.method": "GET", "http.route": "/a"})],
         [{"endpoint": ""}], [{"endpoint": "/a"}]),
        ("a base service of a span without kind", [span("d", kind=None, meta={"_dd.base_service": "base"})],
         [{"peer_tags": []}], [{"peer_tags": ["_dd.base_service:base"]}]),
        ("an address as a peer", [span("d", meta={"peer.hostname": "10.0.0.1"})],
         [{"peer_tags": ["peer.hostname:10.0.0.1"]}], [{"peer_tags": ["peer.hostname:blocked-ip-address"]}]),
        ("a dimension that is empty", [span("d", meta={"region": ""})], [{"more": ["region:"]}], [{"more": []}]),
        ("a kind in capitals", [span("d", kind="CLIENT", top=0)], [], [{"kind": "CLIENT"}]),
        ("a duration of 0", [span("d", duration=0)], [], [{"duration": 0}]),
        ("a version of a snapshot that is 0", [span("d", metrics={"_dd.partial_version": 0.0})], [{"hits": 1}], []),
        ("an HTTP status outside 100 to 599", [span("d", meta={"http.status_code": "700"})],
         [{"status": 0}], [{"status": 700}]),
    ]

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
        self.check_differences(
            lambda made: rows_but_keep(rows_of_body(body_of(PROGRAM, [KEEP] + made, False)).values()),
            lambda made: rows_but_keep(self.theirs([KEEP] + made).values()))


class Node(peers.Differences, unittest.TestCase):
    """dd-trace 5.132.0 of npm: its span-stats processor."""

    HEADING = "dd-trace-js 5.132.0"
    # What its key has not, and ours has, is not compared row by row: rows of ours are added up.
    KEY = tuple(k for k in KEY if k not in ("root", "peer_tags", "more"))
    ACCURACY = 0.01
    GRPC = {"rpc.grpc.status_code": "5"}
    DIFFERENCES = [
        ("a span that is neither top level nor measured, of a kind that counts", [span("d", top=0)], [{"hits": 1}], []),
        ("spans of one key of which some are top level",
         [span("d"), span("d", top=0, metrics={"_dd.measured": 1.0}), span("d")],
         [{"hits": 3, "top": 2}], [{"hits": 2, "top": 2}, {"hits": 1, "top": 0}]),
        ("roots and others", [span("d", parent=0), span("d", parent=5)], [{"hits": 1}, {"hits": 1}], [{"hits": 2}]),
        ("peers", [span("d", meta={"peer.hostname": "a"}), span("d", meta={"peer.hostname": "b"})],
         [{"hits": 1}, {"hits": 1}], [{"hits": 2}]),
        ("added dimensions", [span("d", meta={"region": "a"}), span("d", meta={"region": "b"})],
         [{"hits": 1}, {"hits": 1}], [{"hits": 2}]),
        ("a route without an endpoint", [span("d", meta={"http.route": "/a"})],
         [{"endpoint": ""}], [{"endpoint": "/a"}]),
        ("a route beside an endpoint", [span("d", meta={"http.route": "/a", "http.endpoint": "/b"})],
         [{"endpoint": "/b"}], [{"endpoint": "/a"}]),
        ("a gRPC status of another type than `rpc`", [span("d", meta=GRPC)], [{"grpc": ""}], [{"grpc": "5"}]),
        ("a gRPC status by its name", [span("d", type="rpc", meta={"rpc.grpc.status_code": "NOT_FOUND"})],
         [{"grpc": "NOT_FOUND"}], [{"grpc": "5"}]),
        ("a gRPC status that is neither name nor number", [span("d", type="rpc", meta={"rpc.grpc.status_code": "x"})],
         [{"grpc": "x"}], [{"grpc": ""}]),
        ("a gRPC status by `rpc.response.status_code`", [span("d", type="rpc", meta={"rpc.response.status_code": "5"})],
         [{"grpc": ""}], [{"grpc": "5"}]),
        ("a duration of 0", [span("d", duration=0)], [], [{"hits": 1}]),
        ("a snapshot of an unfinished span", [span("d", metrics={"_dd.partial_version": 3.0})], [], [{"hits": 1}]),
        ("no name", [dict(span("d"), name="")], [{"name": ""}], [{"name": "unnamed_operation"}]),
        ("no service", [dict(span("d"), service="")], [{"service": ""}], [{"service": "unnamed-service"}]),
        ("fields with commas", [dict(span("d"), name="a,b", service="c"), dict(span("d"), name="a", service="b,c")],
         [{"hits": 1}, {"hits": 1}], [{"hits": 2}]),
        ("an HTTP status outside 100 to 599", [span("d", meta={"http.status_code": "700"})],
         [{"status": 0}], [{"status": 700}]),
    ]

    @classmethod
    def setUpClass(cls):
        folder = packages.npm_installed("node-datadog")
        cls.node = subprocess.Popen(["node", os.path.join(HERE, "span_stats.js"), folder], text=True,
                                    stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    @classmethod
    def tearDownClass(cls):
        cls.node.stdin.close()
        cls.node.wait(10)
        cls.node.stdout.close()

    def theirs(self, made):
        top = {"_dd.top_level": 1}
        formatted = [dict(s, metrics=dict(s["metrics"], **(top if "_top_level" in s["metrics"] else {}))) for s in made]
        self.node.stdin.write(json.dumps(formatted) + "\n")
        self.node.stdin.flush()
        return [dict(r, status=int(r["status"])) for r in json.loads(self.node.stdout.readline())]

    def key(self, row, top):
        return tuple(row[k] for k in self.KEY) + (top,)

    def test_row_by_row(self):
        made = plain_spans()
        for s in made:  # those that are not top level count by a mark, which is their rule
            if "_top_level" not in s["metrics"] and s["resource"] != "none":
                s["metrics"]["_dd.measured"] = 1.0
        made = [s for s in made if s["resource"] != "none"]
        theirs = self.theirs(made)
        self.assertEqual(len({self.key(r, r["top"] > 0) for r in theirs}), len(theirs))
        exact = 0
        for top in (True, False):
            part = [s for s in made if bool(s["metrics"].get("_top_level")) == top]
            durations = {}
            for key, row in model(part).items():
                kept = durations.setdefault(self.key(dict(zip(KEY, key)), top), {"ok": [], "error": []})
                for name in ("ok", "error"):
                    kept[name] += row[name]
            ours = {}
            for row in rows_of_body(body_of(PROGRAM, part, False)).values():
                kept = ours.setdefault(self.key(row, top), dict.fromkeys(NUMBERS, 0))
                for name in NUMBERS:
                    kept[name] += row[name]
            rows = {self.key(r, top): r for r in theirs if (r["top"] > 0) == top}
            self.assertEqual(set(ours), set(rows))
            for key, row in rows.items():
                self.assertEqual([row[n] for n in NUMBERS], [ours[key][n] for n in NUMBERS], key)
                exact += 1
                for name in ("ok", "error"):
                    self.check_sketch(row[name], sorted(durations[key][name]), key)
        self.assertGreater(exact, 300)
        print("dd-trace-js: %d rows the same" % exact, flush=True)

    def check_sketch(self, got, durations, key):
        self.assertEqual(got[0], len(durations), key)
        for q, value in zip((0.5, 0.9, 0.99), got[1:]):
            exact = durations[int(q * (len(durations) - 1))]
            self.assertLessEqual(abs(value - exact), self.ACCURACY * exact + 1e-9, (key, q))

    def test_each_difference_is_the_one_that_is_named(self):
        self.check_differences(
            lambda made: rows_but_keep(rows_of_body(body_of(PROGRAM, [KEEP] + made, False)).values()),
            self.theirs)


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


PEERS = {"trace-agent": TraceAgent, "agent": WholeAgent, "libdatadog": Libdatadog, "node": Node,
         "test-agent": TestAgent}

if __name__ == "__main__":
    PROGRAM, peer = sys.argv[1:3]
    del sys.argv[1:3]
    os.makedirs(packages.CACHE, exist_ok=True)
    suite = unittest.defaultTestLoader.loadTestsFromTestCase(PEERS[peer])
    sys.exit(not unittest.TextTestRunner(verbosity=2).run(suite).wasSuccessful())
