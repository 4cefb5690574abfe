# SPDX-License-Identifier: Apache-2.0
"""trace_test.py ENCODER STATS PEER: what the encoder of weir/trace.h writes, in each version, read by others.

Traces of many shapes are told to ENCODER (trace.c), which writes a payload. Then, by PEER:
  recorded     the traces are those that stock tracers sent: read back they are the same
  msgpack      Python's msgpack: the bytes are one message of the types that the formats name
  libdatadog   its decoders (libdd-trace-utils) give the spans back
  test-agent   Datadog's test agent takes them, its checks pass, and it holds the same spans
  trace-agent  the whole trace-agent takes them, and the rows that it counts are those that STATS (stats.c) counts
  weir         our own agent takes them, and its rows are what the spans say
What a span is in each version is written here once more, from docs/formats/, in before_v1() and of_v1().
"""
import json
import math
import os
import random
import struct
import subprocess
import sys
import time
import unittest

import peers
from weirtest import packages, run, spans
from weirtest.agent import Agent, wait_until
from weirtest.http import request

VERSIONS = {"v0.4": 4, "v0.5": 5, "v1.0": 10}
KINDS = ("", "internal", "server", "client", "producer", "consumer")
MEASURED, TOP_LEVEL, THREAD = 1, 2, 4
HEADER = ["container", "c", "17", "0.1.0", "runtime", "interop", "host", "1.2.3", [["_dd.tags.process", "a:b"]]]
FIELDS = ("service", "name", "resource", "type", "trace_id", "span_id", "parent_id", "start", "duration", "error",
          "flags", "running", "status", "kind", "thread_id", "thread_name", "tags", "links", "events", "blobs")


# What is sent. A span is a dict of FIELDS; texts are str, or Utf16 where they go to the encoder as UTF-16.

class Utf16(str):
    """A text that a host has in UTF-16; lone surrogates are allowed and become U+FFFD."""


def told(value):
    """As trace.c reads it."""
    if isinstance(value, Utf16):
        return value.encode("utf-16-" + sys.byteorder[:1] + "e", "surrogatepass")
    if isinstance(value, (list, tuple)):
        return [told(v) for v in value]
    return value


def plain(value):
    """As it must be read."""
    return "".join("\ufffd" if 0xD800 <= ord(c) < 0xE000 else c for c in value) if isinstance(value, str) else value


def pack_traces(header, traces):
    own = ("hi", "priority", "origin", "service", "tags")
    listed = [[[[s[f] for f in FIELDS] for s in t["spans"]]] + [t[k] for k in own]
              for t in traces]
    return spans.pack(told([header, listed]))


def encoded(traces, version, header=HEADER):
    done = subprocess.run([ENCODER, str(VERSIONS[version])], input=pack_traces(header, traces), stdout=subprocess.PIPE,
                          timeout=120)
    if done.returncode != 0:
        raise AssertionError("%s ended with %d" % (ENCODER, done.returncode))
    return done.stdout


def span(**fields):
    made = dict.fromkeys(FIELDS, 0)
    made.update(type=None, service="svc", name="op", resource="res", thread_name=None, tags=[], links=[], events=[],
                blobs=[], duration=1000)
    made.update(fields)
    return made


def trace(made, hi=0, priority=None, origin=None, service=None, tags=()):
    return {"spans": made, "hi": hi, "priority": priority, "origin": origin, "service": service, "tags": list(tags)}


def any_text(rng):
    letters = "abcdefgh /:{}\"\\\n\u00e9\u4e2d\U0001f600"
    text = "".join(rng.choice(letters) for _ in range(rng.choice((1, 3, 15, 16, 31, 32, 70, 300))))
    if rng.random() < 0.4:
        return Utf16(text + ("\ud800x" if rng.random() < 0.3 else ""))
    return text


def any_number(rng):
    return rng.choice((0, 1, -1, 127, 128, -32, -33, 2**31, -2**31 - 1, 2**53, -2**53, 0.0, 1.0, -2.5, 1e300,
                       rng.randrange(-10**6, 10**6), rng.random()))


def any_tags(rng, keys, most):
    made = []
    for _ in range(rng.randrange(most)):
        value = any_text(rng) if rng.random() < 0.5 else rng.choice((any_number(rng), rng.random() < 0.5))
        made.append([rng.choice(keys), value])
    return made


def any_id(rng):
    return rng.choice((rng.randrange(1, 2**64), rng.randrange(1, 200), 2**63, 2**64 - 1))


def any_link(rng):
    values = [[k, rng.choice(("v", any_text(rng)))] for k in rng.sample(("la", "lb", "lc"), rng.randrange(3))]
    return [any_id(rng), any_id(rng), any_id(rng), rng.choice((None, "dd=s:1")), rng.choice((0, 1, 255)), values]


def any_event(rng):
    some = (lambda: "text", lambda: True, lambda: 7, lambda: -2.5, lambda: ["a", "b"], lambda: [1, -2], lambda: [])
    values = [[k, rng.choice(some)()] for k in rng.sample(("ea", "eb", "ec"), rng.randrange(4))]
    return [rng.randrange(1, 2**62), rng.choice(("thrown", any_text(rng))), values]


def any_span(rng, trace_id):
    keys = ["t%d" % i for i in range(20)] + ["env", "version", "component", "http.method", "http.url", "language"]
    rare = rng.random() < 0.1
    return span(service=any_text(rng), name=any_text(rng), resource=any_text(rng), type=rng.choice((None, "web", "db")),
                trace_id=trace_id, span_id=any_id(rng), parent_id=rng.choice((0, any_id(rng))),
                start=rng.randrange(10**18, 2 * 10**18),
                duration=rng.choice((0, 1, 127, 128, -5, 2**40, rng.randrange(10**9))),
                error=rng.choice((0, 0, 1)), flags=rng.randrange(8), running=rng.choice((0, 0, 0, 3, -1)),
                status=rng.choice((0, 0, 200, 503)), kind=rng.randrange(6), thread_id=rng.randrange(10**6),
                thread_name=rng.choice((None, "main")), tags=any_tags(rng, keys, 15),
                links=[any_link(rng) for _ in range(rng.randrange(4))] if rare else [],
                events=[any_event(rng) for _ in range(rng.randrange(4))] if rare else [],
                blobs=[["blob", spans.pack({"k": [1, "x"]})]] if rare else [])


def any_traces(count):
    rng = random.Random(20261201)
    made = []
    for _ in range(count):
        trace_id = any_id(rng)
        listed = [any_span(rng, trace_id) for _ in range(rng.choice((1, 2, 3, 9)))]
        tags = rng.choice(([], [["_dd.p.dm", "-4"]], [["_dd.p.dm", "0123abcd-3"], ["_dd.p.x", "y"]]))
        made.append(trace(listed, rng.choice((0, 2**60 + 5)), rng.choice((None, -1, 0, 1, 2)),
                          rng.choice((None, "synthetics", "rum")), rng.choice((None, "root")), tags))
    return made


# What must come back, by version: what docs/formats/trace-*.md say.

def text_of(value):
    """A boolean before v1.0 is text."""
    return {True: "true", False: "false"}[value] if isinstance(value, bool) else plain(value)


def last_of(pairs):
    """Of pairs with one key the last."""
    return {plain(k): plain(v) if isinstance(v, str) else v for k, v in pairs}


def links_of(s):
    return [{"trace_id": "%016x%016x" % (hi, lo), "span_id": of, "tracestate": plain(state or ""), "flags": flags & 255,
             "attributes": last_of(tags)} for hi, lo, of, state, flags, tags in s["links"]]


def events_of(s):
    return [{"time": at, "name": plain(name), "attributes": last_of(tags)} for at, name, tags in s["events"]]


def shown(s):
    return {**{k: plain(s[k] or "") for k in ("service", "name", "resource", "type")},
            "span_id": s["span_id"], "parent_id": s["parent_id"], "start": s["start"],
            "duration": s["duration"], "blobs": {k: v.hex() for k, v in s["blobs"]}}


def own_of(s, t, place, first):
    """What the encoder adds to meta and metrics before v1.0."""
    meta, metrics = {}, {}
    if t["priority"] is not None and (place in (0, len(t["spans"]) - 1) or s["flags"] & TOP_LEVEL):
        metrics["_sampling_priority_v1"] = t["priority"]
    for bit, key in ((MEASURED, "_dd.measured"), (TOP_LEVEL, "_dd.top_level")):
        if s["flags"] & bit:
            metrics[key] = 1
    if s["running"]:
        metrics["_dd.partial_version" if s["running"] > 0 else "_dd.was_long_running"] = max(s["running"], 1)
    if s["flags"] & THREAD:
        metrics["thread.id"] = s["thread_id"]
    if s["thread_name"]:
        meta["thread.name"] = s["thread_name"]
    if place == 0:
        meta.update({"_dd.p.tid": "%016x" % t["hi"]} if t["hi"] else {})
        meta.update(t["tags"])
    if s["status"]:
        meta["http.status_code"] = str(s["status"])
    if s["kind"]:
        meta["span.kind"] = KINDS[s["kind"]]
    if t["origin"]:
        meta["_dd.origin"] = t["origin"]
    if first:
        meta.update(HEADER[8])
    return meta, metrics


def before_v1(traces, version):
    """The spans of v0.4 and v0.5, one list."""
    wanted = []
    for t in traces:
        for place, s in enumerate(t["spans"]):
            meta, metrics = own_of(s, t, place, not wanted)
            for key, value in last_of(s["tags"]).items():
                meta.pop(key, None)
                metrics.pop(key, None)
                if isinstance(value, (str, bool)):
                    meta[key] = text_of(value)
                else:
                    metrics[key] = value
            wanted.append(dict(shown(s), trace_id=s["trace_id"], error=s["error"], meta=meta, metrics=metrics,
                               links=links_of(s), events=events_of(s)))
            if version == "v0.5":
                wanted[-1]["blobs"] = {}
    return wanted


def of_v1(traces):
    wanted = []
    for t in traces:
        mechanism = int(dict(t["tags"]).get("_dd.p.dm", "0").rsplit("-", 1)[-1])
        for place, s in enumerate(t["spans"]):
            own = dict(t["tags"] if place == 0 else [])
            if s["flags"] & THREAD:
                own["thread.id"] = float(s["thread_id"])
            if s["thread_name"]:
                own["thread.name"] = s["thread_name"]
            if s["status"]:
                own["http.status_code"] = str(s["status"])
            if s["flags"] & TOP_LEVEL:
                own["_dd.top_level"] = 1.0
            tags = last_of(s["tags"])
            own.update({k: v if isinstance(v, (str, bool)) else float(v) for k, v in tags.items()})
            wanted.append(dict(shown(s), duration=max(s["duration"], 0), error=s["error"] != 0,
                               trace_id="%016x%016x" % (t["hi"], s["trace_id"]),
                               priority=-128 if t["priority"] is None else t["priority"], origin=t["origin"] or "",
                               mechanism=mechanism, chunk={"service": plain(t["service"] or t["spans"][0]["service"])},
                               kind=s["kind"], attributes=own, links=links_of(s), events=events_of(s),
                               **{k: tags.get(k, "") if isinstance(tags.get(k), str) else ""
                                  for k in ("env", "version", "component")}))
    return wanted


def same(got, want):
    """Equal, and of equal types: 1, 1.0 and True are three things."""
    if isinstance(want, dict):
        return isinstance(got, dict) and got.keys() == want.keys() and all(same(got[k], want[k]) for k in want)
    if isinstance(want, list):
        return isinstance(got, list) and len(got) == len(want) and all(map(same, got, want))
    return type(got) is type(want) and got == want


class Case(unittest.TestCase):
    maxDiff = 4000

    def check(self, got, want, what):
        self.assertEqual(len(got), len(want), what)
        for i, (g, w) in enumerate(zip(got, want)):
            if not same(g, w):
                for k in w:
                    self.assertTrue(same(g.get(k), w[k]),
                                    "%s: span %d, %s:\n%r\nwanted\n%r" % (what, i, k, g.get(k), w[k]))
                self.assertEqual(g, w, what)
        print("%s: %d spans the same" % (what, len(got)), flush=True)


def json_of_meta(meta):
    """Take links and events, which are JSON before v1.0, out of meta."""
    links = [dict(x, tracestate=x.get("tracestate", ""), flags=x.get("flags", 0), attributes=x.get("attributes", {}),
                  span_id=int(x["span_id"], 16)) for x in json.loads(meta.pop("_dd.span_links", "[]"))]
    events = [{"time": x["time_unix_nano"], "name": x["name"], "attributes": x.get("attributes", {})}
              for x in json.loads(meta.pop("events", "[]"))]
    return links, events


def read_v04(message):
    got = []
    for s in (s for listed in message for s in listed):
        s = dict(s, blobs={k: v.hex() for k, v in s.get("meta_struct", {}).items()}, meta=dict(s["meta"]))
        s.pop("meta_struct", None)
        s["links"], s["events"] = json_of_meta(s["meta"])
        got.append(dict(s, **{k: s[k] or "" for k in ("service", "name", "resource", "type")}))
    return got


def read_v05(message):
    dictionary, chunks = message
    got = []
    names = ("service", "name", "resource", "trace_id", "span_id", "parent_id", "start", "duration", "error", "meta",
             "metrics", "type")
    for s in (s for listed in chunks for s in listed):
        s = dict(zip(names, s, strict=True), blobs={})
        for key in ("service", "name", "resource", "type"):
            s[key] = dictionary[s[key]]
        s["meta"] = {dictionary[k]: dictionary[v] for k, v in s["meta"].items()}
        s["metrics"] = {dictionary[k]: v for k, v in s["metrics"].items()}
        s["links"], s["events"] = json_of_meta(s["meta"])
        got.append(s)
    return got


class Msgpack(Case):
    """The implementation of PyPI's msgpack."""

    @classmethod
    def setUpClass(cls):
        peers.use_packages_of_test_agent()

    def read(self, body):
        import msgpack
        unpacker = msgpack.Unpacker(strict_map_key=False, raw=False)
        unpacker.feed(body)
        value = unpacker.unpack()
        self.assertEqual(unpacker.tell(), len(body), "one message, and nothing behind it")
        return value

    def test_v04(self):
        traces = any_traces(300)
        message = self.read(encoded(traces, "v0.4"))
        for s in (s for listed in message for s in listed):
            self.assertEqual(list(s)[:12], ["service", "name", "resource", "trace_id", "span_id", "parent_id", "start",
                                            "duration", "type", "error", "metrics", "meta"])
        self.check(read_v04(message), before_v1(traces, "v0.4"), "v0.4 by msgpack")

    def test_v05(self):
        traces = any_traces(300)
        message = self.read(encoded(traces, "v0.5"))
        self.assertEqual(len(set(message[0])), len(message[0]), "each content once")
        self.check(read_v05(message), before_v1(traces, "v0.5"), "v0.5 by msgpack")

    def test_v1(self):
        traces = any_traces(300)
        reader = peers.V1(self.read(encoded(traces, "v1.0")))
        self.assertEqual(reader.header, HEADER[:8])
        self.assertEqual(reader.own, dict(HEADER[8]))
        self.check(reader.spans, of_v1(traces), "v1.0 by msgpack")

    def test_ids_are_unsigned_and_doubles_are_of_64_bits(self):
        one = trace([span(trace_id=2**63, span_id=2**64 - 1, parent_id=2**63 + 1, start=1, duration=5,
                          tags=[["d", 1.5], ["whole", 3.0]])])
        body = encoded([one], "v0.4")
        for key, value in (("trace_id", 2**63), ("span_id", 2**64 - 1), ("parent_id", 2**63 + 1)):
            self.assertIn(key.encode() + b"\xcf" + struct.pack(">Q", value), body)
        self.assertIn(b"\xa1d\xcb" + struct.pack(">d", 1.5), body)
        self.assertIn(b"\xa5whole\xcb" + struct.pack(">d", 3.0), body)


class Libdatadog(Case):
    """libdd-trace-utils 16.0.0."""

    @classmethod
    def setUpClass(cls):
        cls.program = peers.libdatadog()

    def read(self, body, version):
        path = os.path.join(packages.CACHE, "trace.%d" % os.getpid())
        with open(path, "wb") as f:
            f.write(body)
        try:
            done = subprocess.run([self.program, "spans", version, path], stdout=subprocess.PIPE, text=True,
                                  timeout=120)
        finally:
            os.unlink(path)
        self.assertEqual(done.returncode, 0)
        return [json.loads(line) for line in done.stdout.splitlines()]

    def test_v04_and_v05(self):
        for version, name in (("v0.4", "v04"), ("v0.5", "v05")):
            traces = any_traces(300)
            got = []
            for s in self.read(encoded(traces, version), name):
                self.assertEqual((s.pop("links"), s.pop("events")), (0, 0), "they are text in this version")
                s["links"], s["events"] = json_of_meta(s["meta"])
                s["blobs"] = s.pop("meta_struct")
                s.pop("trace")
                got.append(s)
            want = before_v1(traces, version)
            for s in want:  # all its metrics are float64
                s["metrics"] = {k: float(v) for k, v in s["metrics"].items()}
            self.check(got, want, version + " by libdatadog")

    def test_v1(self):
        traces = any_traces(300)
        head, *got = self.read(encoded(traces, "v1.0"), "v1")
        self.assertEqual(head, {"header": HEADER[:8], "attributes": dict(HEADER[8])})
        for s in got:
            s["kind"] = KINDS.index(s["kind"])
            s["blobs"] = {k: v["bytes"] for k, v in s["attributes"].items() if isinstance(v, dict)}
            s["attributes"] = {k: v for k, v in s["attributes"].items() if not isinstance(v, dict)}
            s.pop("trace")
        want = of_v1(traces)
        for s in want:
            s["kind"] = s["kind"] or 1  # its kinds have no "none"
        self.check(got, want, "v1.0 by libdatadog")


class TestAgent(Case):
    """ddapm-test-agent 1.69.1, its checks on."""

    @classmethod
    def setUpClass(cls):
        cls.agent = peers.TestAgent()
        cls.addClassCleanup(cls.agent.stop)

    def round(self, version, traces):
        token = version.replace(".", "")
        self.agent.start_session(token)
        status = self.agent.put("/%s/traces" % version, encoded(traces, version), token,
                                {"X-Datadog-Trace-Count": str(len(traces))})
        self.assertEqual(status, 200)
        self.agent.check_failures(token)
        passed = self.agent.checks_run(token)
        self.assertGreater(min(passed[c] for c in peers.CHECKS.split(",")), 0, passed)
        print("%s: checks passed: %r" % (version, passed), flush=True)
        held = [s for listed in self.agent.get("/test/session/traces", token) for s in listed]
        by_id = {s["span_id"]: s for s in held}
        self.assertEqual(len(by_id), len(held))
        return by_id

    def traces(self):
        """With ids of their own, since the test agent files spans by them."""
        made = any_traces(200)
        number = 1
        for i, t in enumerate(made):
            for s in t["spans"]:
                s.update(trace_id=i + 1, span_id=number, start=10**18 + number)
                number += 1
        return made

    def test_v04_and_v05(self):
        for version in ("v0.4", "v0.5"):
            traces = self.traces()
            held = self.round(version, traces)
            want = before_v1(traces, version)
            got = []
            for w in want:
                s = held[w["span_id"]]
                links, events = json_of_meta(s["meta"])
                got.append({**{k: s.get(k) or "" for k in ("service", "name", "resource", "type")},
                            **{k: s[k] for k in ("trace_id", "span_id", "parent_id", "start", "duration", "error",
                                                 "meta", "metrics")}, "links": links, "events": events})
                w.pop("blobs")
            self.check(got, want, version + " by the test agent")

    def test_v1(self):
        traces = self.traces()
        held = self.round("v1.0", traces)
        want, got = [], []
        for w in of_v1(traces):
            s = held[w["span_id"]]
            meta = {k: v for k, v in w["attributes"].items() if isinstance(v, str)}
            metrics = {k: int(v) if isinstance(v, bool) else v
                       for k, v in w["attributes"].items() if not isinstance(v, str)}
            meta.update({k: w[k] for k in ("env", "version", "component") if w[k]})
            if "_dd.p.dm" in meta:
                meta["_dd.p.dm"] = "-%d" % w["mechanism"]  # it writes the chunk's mechanism over it
            meta.update({"span.kind": KINDS[w["kind"]]} if w["kind"] else {})
            want.append({**{k: w[k] for k in ("service", "name", "resource", "type", "span_id", "parent_id", "start",
                                              "duration")},
                         "error": int(w["error"]), "trace_id": int(w["trace_id"][16:], 16), "links": len(w["links"]),
                         "events": [(e["time"], e["name"]) for e in w["events"]], "meta": meta, "metrics": metrics})
            # What it adds of the chunk and of the payload is not the span's.
            for own in ("_sampling_priority_v1",):
                s["metrics"].pop(own, None)
            for own in ("_dd.tags.process", "_dd.p.tid", "_dd.origin", "service"):
                s["meta"].pop(own, None)
            got.append({**{k: s[k] for k in ("service", "name", "resource", "type", "span_id", "parent_id", "start",
                                             "duration", "trace_id", "meta", "metrics")},
                        "error": int(s["error"]), "links": len(s.get("span_links") or []),
                        "events": [(e["time_unix_nano"], e["name"]) for e in s.get("span_events") or []]})
        self.check(got, want, "v1.0 by the test agent")



# Spans as services have them, for those who count.

PEER_TAGS = ("_dd.base_service", "db.name", "peer.hostname", "peer.service")
TOP_LEVEL_COMPUTED = {"Datadog-Client-Computed-Top-Level": "yes"}


def service_span(rng, now_ns, number, trace_id):
    kind = rng.randrange(1, 6)
    tags = [["env", "interop"], ["noise", any_text(rng)]]
    if rng.random() < 0.5:
        tags += [["http.method", rng.choice(("GET", "POST"))], ["http.endpoint", "/users/{param:int}"]]
    for key, of in (("peer.hostname", ("db-1", "caf\u00e9")), ("peer.service", ("orders",)),
                    ("_dd.base_service", ("base",))):
        if rng.random() < 0.4:
            tags.append([key, Utf16(rng.choice(of))])
    type = rng.choice(("web", "worker", "rpc"))
    if type == "rpc":
        tags.append(["rpc.grpc.status_code", rng.choice(("0", "5"))])
    duration = 1 + int(math.exp(rng.gauss(12, 2)))
    return span(resource="GET /%d" % rng.randrange(4), type=type, trace_id=trace_id, span_id=number,
                parent_id=rng.choice((0, 5)), start=now_ns - duration, duration=duration, error=int(rng.random() < 0.2),
                flags=rng.choice((0, TOP_LEVEL, MEASURED)), status=rng.choice((0, 200, 404, 503)), kind=kind, tags=tags)


def service_traces(now_ns, count=400):
    rng = random.Random(20261202)
    made, number = [], 1
    for i in range(count):
        listed = []
        for _ in range(rng.randrange(1, 9)):
            listed.append(service_span(rng, now_ns, number, 2**63 + i))
            number += 1
        made.append(trace(listed, 7, 1, rng.choice((None, "synthetics")), None, [["_dd.p.dm", "-1"]]))
    return made


def all_spans(traces):
    return [s for t in traces for s in t["spans"]]


STATS_KEY = ("name", "service", "resource", "type", "kind", "status", "synthetics", "root", "peer_tags", "source",
             "grpc")
NUMBERS = ("hits", "errors", "top", "duration")


def stats_key(row):
    return tuple(tuple(row[k] or ()) if k == "peer_tags" else row[k] for k in STATS_KEY)


def added_up(rows):
    """Rows of one key as one: of several windows, and of several HTTP methods and endpoints, which are not compared."""
    found = {}
    for row in rows:
        kept = found.setdefault(stats_key(row), dict.fromkeys(NUMBERS, 0))
        for name in NUMBERS:
            kept[name] += row[name]
    return found


def our_rows(body, version, now_ns):
    form = {"v0.4": "v04", "v0.5": "v05", "v1.0": "v1"}[version]
    done = subprocess.run([STATS, "--peers", ",".join(PEER_TAGS), "--body", form, str(now_ns)], input=body,
                          stdout=subprocess.PIPE, timeout=120)
    if done.returncode == 3:
        return []
    if done.returncode != 0:
        raise AssertionError("%s ended with %d" % (STATS, done.returncode))
    return peers.rows_of_stats(done.stdout)


def odd(origin=None, **fields):
    """A trace of one span, for a difference."""
    base = dict(trace_id=9, span_id=1, parent_id=5, kind=3, flags=TOP_LEVEL, type="web")
    return trace([span(**dict(base, **fields))], priority=1, origin=origin)


class TraceAgent(peers.Differences, Case):
    """The trace-agent 0.85.4 as a whole, in every version that it shares with the encoder."""

    HEADING = "trace-agent 0.85.4"
    # Rows of theirs by version where they are not the same in each; None: there is no difference to see.
    DIFFERENCES = [
        ("an HTTP method and endpoint", odd(tags=[["http.method", "GET"], ["http.endpoint", "/a"]]),
         [{"method": "GET", "endpoint": "/a"}], [{"method": "", "endpoint": ""}]),
        ("an origin that begins with `synthetics`", odd(origin="synthetics-browser"),
         [{"synthetics": False}], [{"synthetics": True}]),
        ("a gRPC status of another type than `rpc`", odd(tags=[["rpc.grpc.status_code", "5"]]),
         [{"grpc": ""}], [{"grpc": "5"}]),
        ("a gRPC status by its name", odd(type="rpc", tags=[["rpc.grpc.status_code", "NOT_FOUND"]]),
         [{"grpc": "NOT_FOUND"}], [{"grpc": "5"}]),
        ("a gRPC status that is neither name nor number", odd(type="rpc", tags=[["rpc.grpc.status_code", "x"]]),
         [{"grpc": "x"}], [{"grpc": ""}]),
        ("no kind", odd(kind=0), [{"kind": ""}],
         {"v0.4": [{"kind": "internal"}], "v0.5": [{"kind": "unknown"}], "v1.0": [{"kind": "unknown"}]}),
        ("a base service of a span without kind", odd(kind=0, tags=[["_dd.base_service", "base"]]), [{"peer_tags": ()}],
         {"v0.4": [{"peer_tags": ("_dd.base_service:base",)}], "v0.5": None, "v1.0": None}),
        ("a kind of another word", odd(kind=0, tags=[["span.kind", "broker"]]), [{"kind": "broker"}],
         {"v0.4": [{"kind": "internal"}], "v0.5": [{"kind": "internal"}], "v1.0": None}),
        ("an address as a peer", odd(tags=[["peer.hostname", "10.0.0.1"]]),
         [{"peer_tags": ("peer.hostname:10.0.0.1",)}], [{"peer_tags": ("peer.hostname:blocked-ip-address",)}]),
        ("a peer that is empty", odd(tags=[["peer.service", ""]]), [{"peer_tags": ("peer.service:",)}],
         {"v0.4": [{"peer_tags": ()}], "v0.5": None, "v1.0": [{"peer_tags": ()}]}),
        ("a span that is its own parent", odd(parent_id=77, span_id=77), [{"root": 2}], [{"root": 1}]),
        ("a duration of 0", odd(duration=0), [], [{"duration": 0}]),
        ("a duration below 0", odd(duration=-5), [], [{"duration": 0}]),
        ("a version of a snapshot that is 0", odd(tags=[["_dd.partial_version", 0]]), [{"hits": 1}], []),
        ("a sampling rate", odd(tags=[["_sample_rate", 0.5]]), [{"hits": 1, "duration": 1000}],
         [{"hits": 2, "duration": 2000}]),
        ("no name", odd(name=""), [{"name": ""}],
         {"v0.4": [{"name": "unnamed_operation"}], "v0.5": None, "v1.0": [{"name": "unnamed_operation"}]}),
        ("no service", odd(service=""), [{"service": ""}],
         {"v0.4": [{"service": "unnamed-c-service"}], "v0.5": None, "v1.0": [{"service": "unnamed-c-service"}]}),
        ("no resource", odd(resource=""), [{"resource": ""}],
         {"v0.4": [{"resource": "op"}], "v0.5": None, "v1.0": [{"resource": "op"}]}),
        ("an empty text in v0.5, behind the dictionary's first place", odd(type=""), [{"type": ""}],
         {"v0.4": None, "v0.5": [{"type": "svc"}], "v1.0": None}),
        ("a name of other characters", odd(name="a b!c"), [{"name": "a b!c"}], [{"name": "a_b_c"}]),
        ("a service of other characters", odd(service="SVC x"), [{"service": "SVC x"}], [{"service": "svc_x"}]),
        ("a statement of SQL as the resource", odd(type="sql", resource="select 1 from t"),
         [{"resource": "select 1 from t"}], [{"resource": "select ? from t"}]),
    ]

    def their_rows(self, bodies, version, traces):
        agent = peers.TraceAgent()
        try:
            self.assertIn("/%s/traces" % version, agent.info["endpoints"])
            self.assertLessEqual(set(PEER_TAGS), set(agent.info["peer_tags"]))
            for body in bodies:
                self.assertEqual(agent.post("/%s/traces" % version, body, TOP_LEVEL_COMPUTED), 200)
        finally:
            rows = agent.stop(traces)
        self.assertFalse(any(r["client"] for r in rows))
        return rows

    def test_rows_are_ours_in_every_version(self):
        for version in VERSIONS:
            now_ns = time.time_ns()
            traces = service_traces(now_ns)
            body = encoded(traces, version)
            ours = added_up(our_rows(body, version, now_ns))
            theirs = added_up(self.their_rows([body], version, len(traces)))
            self.assertEqual(set(ours), set(theirs), version)
            for key, row in ours.items():
                self.assertEqual([row[n] for n in NUMBERS], [theirs[key][n] for n in NUMBERS], (version, key))
            print("%s: %d rows the same, %d hits" % (version, len(ours), sum(r["hits"] for r in ours.values())),
                  flush=True)
            self.assertGreater(len(ours), 500)

    def test_each_difference_is_the_one_that_is_named(self):
        """Told apart by env, and each in a payload of its own: what one has in v0.5's dictionary is not another's."""
        self.assertEqual([d[0] for d in self.DIFFERENCES], peers.named_differences(self.HEADING))
        for version in VERSIONS:
            chosen = [(what, t, our, their[version] if isinstance(their, dict) else their)
                      for what, t, our, their in self.DIFFERENCES]
            chosen = [d for d in chosen if d[3] is not None]
            now_ns = time.time_ns()
            bodies = []
            for i, (_, t, _, _) in enumerate(chosen):
                one = t["spans"][0]
                tags = one["tags"] + [["env", "d%d" % i]]
                made = dict(one, tags=tags, start=now_ns - abs(one["duration"]))
                bodies.append(encoded([dict(t, spans=[made])], version, [""] * 5 + ["d%d" % i, "", "", []]))
            found = [dict(r, peer_tags=tuple(r["peer_tags"] or ()))
                     for r in self.their_rows(bodies, version, len(bodies))]
            self.check_each([(what, i, our, their) for i, (what, _, our, their) in enumerate(chosen)],
                            lambda i: self.our_row(bodies[i], version, now_ns),
                            lambda i: [r for r in found if r["env"] == "d%d" % i])

    @staticmethod
    def our_row(body, version, now_ns):
        return [dict(r, peer_tags=tuple(r["peer_tags"])) for r in our_rows(body, version, now_ns)]


class Weir(Case):
    """Our own agent, every version."""

    def test_rows_are_what_the_spans_say_in_every_version(self):
        for version in VERSIONS:
            traces = service_traces(time.time_ns())
            sent = [spans.Span(s["service"], s["name"], s["resource"], KINDS[s["kind"]], str(s["status"] or ""),
                               bool(s["error"]), "interop", s["start"], s["duration"]) for s in all_spans(traces)]
            with Agent() as agent:
                answer = request(agent.datadog, "POST", "/%s/traces" % version, encoded(traces, version),
                                 [("Content-Type", "application/msgpack")] + list(TOP_LEVEL_COMPUTED.items()))
                self.assertEqual(answer.status, 200)
                self.assertTrue(wait_until(lambda: agent.total_calls('env="interop"') == len(sent)))
                self.assertEqual(spans.rows_of_answer(agent.calls('env="interop"')), spans.rows_of(sent))
                self.check_durations(agent, sent)
                self.assertTrue(agent.reconcile()["balanced"])
                print("%s: %d rows, %d hits, durations to the nanosecond" %
                      (version, len(spans.rows_of(sent)), len(sent)), flush=True)

    def check_durations(self, agent, sent):
        labels = "service_name,operation_name,span_name,span_kind,http_response_status_code,status_code"
        by_key = {}
        for s in sent:
            by_key[spans.key_of(s)] = by_key.get(spans.key_of(s), 0) + s.duration
        answer = agent.query(
            'histogram_sum(sum by (%s) (increase(traces_span_metrics_duration_seconds{env="interop"}[30m])))' % labels)
        self.assertEqual(len(answer), len(by_key))
        for found, value in answer:
            key = tuple(found.get(name, "") for name in ("service_name", "operation_name", "span_name", "span_kind",
                                                         "http_response_status_code", "status_code"))
            self.assertEqual(round(value * 1e9), by_key[key], key)


class Recorded(Case):
    """What stock tracers sent, told to the encoder: each version of it has the tracer's spans."""

    def bodies(self):
        """(file, version, message) of each recorded body of traces."""
        folder = run.need_vectors("clients")
        with open(os.path.join(folder, "requests.tsv")) as f:
            lines = [line.split("\t") for line in f if not line.startswith("#")]
        for line in lines:
            version = [v for v in ("v0.4", "v0.5") if " /%s/traces " % v in line[2]]
            if version and line[1].endswith(".msgpack"):
                with open(os.path.join(folder, line[0], line[1]), "rb") as f:
                    yield line[1], version[0], spans.unpack(f.read())

    @staticmethod
    def traces(version, message):
        """The message's spans, to be told: all that is in meta and metrics are tags."""
        if version == "v0.5":
            lengths = [len(listed) for listed in message[1]]
            listed = read_v05([message[0], message[1]])
        else:
            lengths = [len(listed) for listed in message]
            absent = {"parent_id": 0, "error": 0, "type": "", "meta": {}, "metrics": {}}
            listed = read_v04([[dict(absent, **s) for s in t] for t in message])
        made, at = [], 0
        for length in lengths:
            part = [span(tags=[[k, v] for k, v in list(s["meta"].items()) + list(s["metrics"].items())],
                         **{k: s[k] for k in ("service", "name", "resource", "type", "trace_id", "span_id", "parent_id",
                                              "start", "duration", "error")}) for s in listed[at:at + length]]
            at += length
            made.append(trace(part))
        return listed, [t for t in made if t["spans"]]

    def test_every_version_has_the_spans_that_were_recorded(self):
        counts = dict.fromkeys(VERSIONS, 0)
        files = 0
        for file, came, message in self.bodies():
            listed, traces = self.traces(came, message)
            files += 1
            for version, read in (("v0.4", read_v04), ("v0.5", read_v05)):
                got = read(spans.unpack(encoded(traces, version, [""] * 8 + [[]])))
                self.assertEqual(len(got), len(listed), file)
                for g, s in zip(got, listed):
                    for k in ("service", "name", "resource", "type", "trace_id", "span_id", "parent_id", "start",
                              "duration", "error", "meta", "metrics"):
                        self.assertTrue(same(g[k], s[k]), (file, version, k, g[k], s[k]))
                counts[version] += len(got)
            got = peers.V1(spans.unpack(encoded(traces, "v1.0", [""] * 8 + [[]]))).spans
            for g, s in zip(got, listed, strict=True):
                whole = dict(s["meta"], **{k: float(v) for k, v in s["metrics"].items()})
                self.assertTrue(same(g["attributes"], whole), (file, g["attributes"], whole))
                for k in ("service", "name", "resource", "type", "span_id", "parent_id", "start", "duration"):
                    self.assertTrue(same(g[k], s[k]), (file, k, g[k], s[k]))
                self.assertEqual((int(g["trace_id"][16:], 16), g["error"]), (s["trace_id"], s["error"] != 0))
            counts["v1.0"] += len(got)
        self.assertGreater(files, 20)
        print("%d recorded bodies; spans the same, by version: %r" % (files, counts), flush=True)


PEERS = {"recorded": Recorded, "msgpack": Msgpack, "libdatadog": Libdatadog, "test-agent": TestAgent,
         "trace-agent": TraceAgent, "weir": Weir}

if __name__ == "__main__":
    ENCODER, STATS, peer = sys.argv[1:4]
    del sys.argv[1:4]
    os.makedirs(packages.CACHE, exist_ok=True)
    suite = unittest.defaultTestLoader.loadTestsFromTestCase(PEERS[peer])
    sys.exit(not unittest.TextTestRunner(verbosity=2).run(suite).wasSuccessful())
