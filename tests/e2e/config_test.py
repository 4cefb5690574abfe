# SPDX-License-Identifier: Apache-2.0
"""weir agent --check-config and --print-config: where each value comes from, and that what is printed is itself a
file that says the same."""
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import unittest

from weirtest import run, spans
from weirtest.agent import Agent
from weirtest.http import request

DEFAULT = "# default"


def agent(*arguments, **environment):
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("WEIR_", "DD_"))}
    kept.update(environment)
    return subprocess.run([run.PROGRAM.encode(), b"agent"] + [os.fsencode(a) for a in arguments],
                          stdin=subprocess.DEVNULL, capture_output=True, timeout=20, env=kept)


def values_of(text):
    """{dotted name: (value as printed, origin)} of what --print-config prints."""
    found, path = {}, []
    for line in text.split("\n"):
        if not line or line.startswith("#"):
            continue
        depth = (len(line) - len(line.lstrip())) // 2
        name, _, rest = line.strip().partition(":")
        path = path[:depth] + [name]
        if rest:
            value, _, origin = rest.strip().rpartition("  #")
            found[".".join(path)] = (value, origin.strip())
    return found


class Printed(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def file(self, text, name="weir.yaml"):
        path = os.path.join(self.folder.name, name)
        with open(path, "wb") as f:
            f.write(text)
        return path

    def printed(self, *arguments, **environment):
        done = agent("--print-config", *arguments, **environment)
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        return done.stdout

    def check_reads_back(self, *arguments, **environment):
        first = self.printed(*arguments, **environment)
        again = self.printed("--config.file=" + self.file(first, "again.yaml"))
        one, two = values_of(first.decode()), values_of(again.decode())
        self.assertGreater(len(one), 20)
        self.assertEqual({k: v for k, (v, _) in one.items()}, {k: v for k, (v, _) in two.items()})
        for name, (_, origin) in two.items():
            self.assertRegex(origin, r"again\.yaml:\d+:\d+$", name)
        # And a third time to the byte: nothing drifts.
        self.assertEqual(self.printed("--config.file=" + self.file(first, "again.yaml")), again)
        return one

    def test_each_value_names_its_origin(self):
        path = self.file(b"log:\n  level: warn\naggregation:\n  lateness: 12s\n  window: 11s\n")
        found = self.check_reads_back("--config.file=" + path, "--aggregation.max-keys=4321",
                                      WEIR_AGGREGATION_WINDOW="14s", WEIR_AGGREGATION_MAX_KEYS="1234")
        self.assertEqual(found["log.level"], ("warn", path + ":2:3"))
        self.assertEqual(found["aggregation.lateness"], ("12s", path + ":4:3"))
        self.assertEqual(found["aggregation.window"], ("14s", "environment WEIR_AGGREGATION_WINDOW"))
        self.assertEqual(found["aggregation.max-keys"], ("4321", "--aggregation.max-keys"))
        self.assertEqual(found["aggregation.late"], ("fold", "default"))
        checked = agent("--check-config", "--config.file=" + path, "--aggregation.max-keys=4321",
                        WEIR_AGGREGATION_WINDOW="14s")
        self.assertEqual(checked.returncode, 0)
        text = checked.stdout.decode()
        self.assertIn("The configuration is valid. File: " + path, text)
        self.assertIn('log.level = "warn"  (%s:2:3)\n' % path, text)
        self.assertIn('aggregation.window = "14s"  (environment WEIR_AGGREGATION_WINDOW)\n', text)
        self.assertIn('aggregation.max-keys = "4321"  (flag)\n', text)
        self.assertNotIn("aggregation.late ", text)

    def test_values_that_need_care_read_back(self):
        for arguments in ([], ["--store.path=a\\b\"c: {#} 'd'"], ["--store.path= # no comment "], ["--store.path=ünï\u0085\u2028"],
                          ["--store.path=- ~"], ["--web.listen-address="], ["--web.listen-address=[::1]:0"],
                          ["--aggregation.dimensions="], ["--aggregation.dimensions=\"a\",b|c\\,yes,~,1"],
                          ["--aggregation.peer-tags=" + ",".join(chr(97 + i % 26) * 190 + str(i) for i in range(35))],
                          ["--store.retention.time=1y2w3d", "--store.retention.size=1000", "--http.max-head-size=1025"],
                          ["--receivers.datadog.socket="]):
            with self.subTest(arguments=arguments):
                self.check_reads_back(*arguments)

    def test_what_could_not_read_back_is_refused(self):
        for value in (b"a\nb", b"a\tb", b"\x7f", b"a\xffb", b"\xc3", b"\xed\xa0\x80"):
            for option in ("--check-config", "--print-config"):
                done = agent(option, b"--store.path=" + value)
                self.assertEqual((done.returncode, done.stdout), (2, b""), value)
                self.assertIn(b"store.path", done.stderr)
        done = agent("--check-config", b"--aggregation.dimensions=a\xff")
        self.assertEqual(done.returncode, 2)
        self.assertIn(b"aggregation.dimensions", done.stderr)

    def test_what_is_wrong_ends_with_2_and_its_place_and_prints_nothing(self):
        path = self.file(b"log:\n  level: loud\n")
        for option in ("--check-config", "--print-config"):
            done = agent(option, "--config.file=" + path)
            self.assertEqual((done.returncode, done.stdout), (2, b""))
            self.assertIn((path + ":2:").encode(), done.stderr)
            done = agent(option, WEIR_LOG_LEVEL="loud")
            self.assertEqual((done.returncode, done.stdout), (2, b""))
            self.assertIn(b"WEIR_LOG_LEVEL", done.stderr)
            done = agent(option, "--log.level=loud")
            self.assertEqual((done.returncode, done.stdout), (2, b""))
            self.assertIn(b"--log.level", done.stderr)

    def test_an_output_that_is_full_is_a_failure(self):
        for option in ("--check-config", "--print-config"):
            with open("/dev/full", "wb") as full:
                done = subprocess.run([run.PROGRAM, "agent", option], stdout=full, stderr=subprocess.PIPE, timeout=20)
            self.assertEqual(done.returncode, 1)

    def test_every_setting_is_printed(self):
        helped = re.findall(r"^  --([a-z0-9.-]+)=", agent("--help").stdout.decode(), re.M)
        self.assertEqual(set(values_of(self.printed().decode())), set(helped) - {"config.file"})


class Limits(unittest.TestCase):
    """The keys of aggregation that bound what is counted by name."""

    def send(self, agent, resources, **meta):
        now = time.time_ns()
        traces = [[{"service": "s", "name": "n", "resource": r, "trace_id": i, "span_id": i, "start": now,
                    "duration": 1000, "meta": meta}] for i, r in enumerate(resources, 1)]
        answer = request(agent.datadog, "POST", "/v0.4/traces", spans.pack(traces),
                         [("Content-Type", "application/msgpack")])
        self.assertEqual(answer.status, 200)

    def metrics(self, agent):
        text = agent.get("/metrics").body.decode()
        return dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))

    def test_a_field_past_its_limit_is_the_sentinel_and_an_operator_sees_what_was_folded(self):
        with Agent("--aggregation.limits.resource=2") as agent:
            self.send(agent, ["a", "b", "c", "c", "c", "d"])
            self.assertEqual(agent.total_calls('span_name="a"'), 1)
            self.assertEqual(agent.total_calls('span_name="c"'), 0)
            self.assertEqual(agent.total_calls('span_name="tracer_blocked_value"'), 4)
            found = json.loads(agent.get("/debug/newcomers").body)["folded"]
            self.assertEqual(found["resource"], {"limit": 2, "spans": 4, "values": 2, "top": [
                {"label": "span_name", "value": "c", "hits_at_least": 3, "hits_at_most": 3},
                {"label": "span_name", "value": "d", "hits_at_least": 1, "hits_at_most": 1}]})
            self.assertEqual(list(found), ["resource"], "fields without a limit are not shown")
            values = self.metrics(agent)
            self.assertEqual(values['weir_stats_collapsed_spans_total{collapsed="resource"}'], "4")
            self.assertEqual(values['weir_stats_collapsed_spans_total{collapsed="service"}'], "0")
            self.assertEqual(values['weir_limit_values{field="resource"}'], "2")
            self.assertEqual(values['weir_limit_folded_values{field="resource"}'], "2")

    def test_a_full_table_drops_or_overflows_as_it_is_told(self):
        many = ["r%d" % i for i in range(40)]
        with Agent("--aggregation.max-keys=16", "--aggregation.overflow=drop") as agent:
            self.send(agent, many)
            self.assertEqual(agent.total_calls(), 16)
            values = self.metrics(agent)
            self.assertEqual(values['weir_stats_dropped_aggregates_total{reason="lru_eviction"}'], "24")
            self.assertEqual(values['weir_spans_dropped_total{reason="table_full"}'], "24")
        with Agent("--aggregation.max-keys=16", "--aggregation.overflow=first") as agent:
            self.send(agent, many)
            self.assertEqual(agent.total_calls(), 40)
            self.assertEqual(agent.total_calls('span_name="tracer_blocked_value"'), 24)
            self.assertEqual(self.metrics(agent)['weir_stats_collapsed_spans_total{collapsed="whole_key"}'], "24")

    def test_endpoints_are_inferred_when_it_is_asked_for(self):
        meta = {"http.method": "GET", "http.url": "http://h/users/1234/x?y=1"}
        for word, route in (("no", ""), ("missing", "/users/{param:int}/x"), ("always", "/users/{param:int}/x")):
            with self.subTest(word=word), Agent("--aggregation.infer-endpoints=" + word) as agent:
                self.send(agent, ["r"], **meta)
                self.assertEqual(agent.total_calls('http_route="%s"' % route), 1)
                self.send(agent, ["given"], **dict(meta, **{"http.route": "/given"}))
                given = route if word == "always" else "/given"
                self.assertEqual(agent.total_calls('span_name="given",http_route="%s"' % given), 1)

    def test_what_is_out_of_range_is_refused_and_what_is_set_is_shown(self):
        for wrong in ("--aggregation.limits.service=65537", "--aggregation.limits.service=-1",
                      "--aggregation.overflow=lru", "--aggregation.infer-endpoints=yes",
                      "--aggregation.limits.host=1"):
            done = agent("--check-config", wrong)
            self.assertEqual((done.returncode, done.stdout), (2, b""), wrong)
            self.assertIn(wrong.split("=")[0].lstrip("-").encode(), done.stderr)
        done = agent("--check-config", "--aggregation.limits.peer-tag=7", "--aggregation.overflow=drop")
        self.assertEqual(done.returncode, 0)
        self.assertIn('aggregation.limits.peer-tag = "7"  (flag)\n', done.stdout.decode())
        self.assertIn('aggregation.overflow = "drop"  (flag)\n', done.stdout.decode())
        done = agent("--check-config", "--aggregation.peer-tags=" + "x" * 201)
        self.assertNotEqual(done.returncode, 0, "a name longer than the library takes")


if __name__ == "__main__":
    sys.exit(run.main())
