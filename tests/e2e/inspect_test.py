# SPDX-License-Identifier: Apache-2.0
"""weir inspect: what it makes of recorded bodies is what another reader, and a running agent, make of them."""
import gzip
import json
import subprocess
import sys
import unittest
from collections import Counter

import clients_test
from clients_test import recorded
from weirtest import run, spans
from weirtest.agent import Agent
from weirtest.http import request


def inspect(body, *options):
    done = subprocess.run([run.PROGRAM, "inspect", "--json", "--spans"] + list(options) + ["-"], input=body,
                          capture_output=True, timeout=20, env={"PATH": "/usr/bin:/bin"})
    return done.returncode, json.loads(done.stdout) if done.stdout else None, done.stderr.decode()


def rows_of(answer):
    """(service, operation, resource, kind, HTTP status): calls and errors, over all windows."""
    calls, errors = Counter(), Counter()
    for window in answer["windows"]:
        for row in window["rows"]:
            labels = row["labels"]
            key = (labels["service_name"], labels.get("operation_name", ""), labels.get("span_name", ""),
                   labels["span_kind"], labels.get("http_response_status_code", ""))
            calls[key] += row["calls"]
            errors[key] += row["errors"]
    return calls, +errors


class Bodies(unittest.TestCase):
    def check(self, one):
        status, answer, said = inspect(one.body)
        self.assertEqual(status, 0, said)
        read = list(spans.read_body(one.path, one.decoded()))
        self.assertEqual(answer["format"], {"/v0.4/traces": "v0.4", "/v0.5/traces": "v0.5", "/v1/traces": "otlp"}[one.path])
        self.assertEqual((answer["sent_bytes"], answer["bytes"]), (len(one.body), len(one.decoded())))
        calls, errors = Counter(), Counter()
        for s in read:
            key = spans.key_of(s)[:5]
            calls[key] += 1
            errors[key] += s.error
        self.assertEqual(rows_of(answer), (calls, +errors))
        self.assertEqual((answer["spans"], answer["span_errors"]), (len(read), sum(s.error for s in read)))
        self.assertEqual([(s["start_ns"], max(s["duration_ns"], 0), s["error"]) for s in answer["span_list"]],
                         [(s.start, s.duration, s.error) for s in read])
        for s in answer["span_list"]:
            self.assertLessEqual(s["offset"] + s["bytes"], answer["bytes"])
        counts = answer["counts"]
        self.assertEqual(counts["received"],
                         counts["aggregated"] + counts["ineligible"] + counts["partial"] + sum(answer["dropped"].values()))

    def test_every_recorded_body_of_traces(self):
        seen = Counter()
        for one in recorded(""):
            if one.is_traces():
                with self.subTest(one.file):
                    self.check(one)
                    seen[one.path] += 1
        self.assertEqual(set(seen), {"/v0.4/traces", "/v0.5/traces", "/v1/traces"})

    def test_other_recorded_bodies_are_not_taken_for_traces(self):
        tried = 0
        for one in recorded(""):
            if one.path == "/v0.6/stats" or one.file.endswith(".json"):
                status, answer, said = inspect(one.body)
                self.assertEqual((status, answer), (1, None), one.file)
                self.assertIn("the format is not known", said)
                tried += 1
        self.assertGreater(tried, 0)


class Refusals(unittest.TestCase):
    def test_it_refuses_what_an_agent_refuses_at_the_same_byte(self):
        bodies = [next(one for one in recorded(prefix) if one.is_traces())
                  for prefix in ("dd-v04-stats-", "dd-v05-", "pyotel-proto-")]
        with Agent() as agent:
            for one in bodies:
                for broken in (one.body[:-1], one.body[:len(one.body) // 3], one.body + b"\xc1"):
                    status, answer, _ = inspect(broken)
                    self.assertEqual(status, 1, one.file)
                    at = answer["error"]["offset"]
                    to = agent.otlp if one.path.startswith("/v1/") else agent.datadog
                    said = request(to, "POST", one.path, broken, [h for h in one.headers if h[0].lower() == "content-type"])
                    self.assertEqual(said.status, 400)
                    self.assertIn(b"at byte %d: " % at, said.body)
                    self.assertIn(answer["error"]["reason"].encode(), said.body)

    def test_a_gzip_bomb_ends_at_the_limit(self):
        status, answer, said = inspect(gzip.compress(bytes(100 << 20)))
        self.assertEqual((status, answer), (1, None))
        self.assertIn("http.max-body-size", said)

    def test_a_lost_reader_is_a_failure(self):
        body = recorded("pyotel-proto-")[0].body
        done = subprocess.run("%s inspect --spans - >/dev/full" % run.PROGRAM, shell=True, input=body,
                              capture_output=True, timeout=20)
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"standard output cannot be written", done.stderr)


if __name__ == "__main__":
    clients_test.RECORDED = run.need_vectors("clients")
    sys.exit(run.main())
