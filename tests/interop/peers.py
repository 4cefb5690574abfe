# SPDX-License-Identifier: Apache-2.0
"""The peers that more than one test asks: built or installed once, started, asked, ended."""
import json
import os
import re
import shutil
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request

from weirtest import packages, run, spans
from weirtest.agent import free_port

HERE = os.path.dirname(os.path.abspath(__file__))
CHECKS = "trace_count_header,meta_tracer_version_header,trace_content_length,meta_events_is_valid_json"


# Differences of rule

def named_differences(heading):
    """The first column of the table under a heading of docs/internals/stats-differences.md."""
    with open(os.path.join(run.SOURCE, "docs", "internals", "stats-differences.md")) as f:
        section = f.read().split("\n## %s\n" % heading)[1].split("\n## ")[0]
    rows = [line.split("|")[1].strip() for line in section.splitlines() if line.startswith("|")]
    return rows[2:]


class Differences:
    """For a test of a peer whose rules differ in what a table says; HEADING and DIFFERENCES are its own.

    DIFFERENCES are (what, spans, rows of ours, rows of theirs), each row by those of its fields that matter."""

    def check_differences(self, ours_of, theirs_of):
        """Each is the one that is named, it is one, and the table of the page has these and no others."""
        self.assertEqual([d[0] for d in self.DIFFERENCES], named_differences(self.HEADING))
        self.check_each(self.DIFFERENCES, ours_of, theirs_of)

    def check_each(self, differences, ours_of, theirs_of):
        for what, made, our, their in differences:
            with self.subTest(what):
                self.assertNotEqual(sorted(map(repr, our)), sorted(map(repr, their)))
                for rows, want in ((ours_of(made), our), (theirs_of(made), their)):
                    fields = (our + their)[0].keys()
                    got = [{k: r[k] for k in fields} for r in rows]
                    self.assertEqual(sorted(got, key=repr), sorted(want, key=repr))
        print("%s: %d differences, each as its table says" % (self.HEADING, len(differences)), flush=True)


# libdatadog

RUST = (1, 91)  # of its manifests


def cargo_version():
    """(0, 0): there is none."""
    if not shutil.which("cargo"):
        return 0, 0
    done = subprocess.run(["cargo", "--version"], capture_output=True, text=True)
    found = re.match(r"cargo (\d+)\.(\d+)", done.stdout)
    return tuple(map(int, found.groups())) if found else (0, 0)


def libdatadog():
    """The peer of the benches, built by bench/peers/build.sh where it is not there yet or is older than its sources."""
    program = os.path.join(run.SOURCE, "build", "peers", "bin", "libdatadog")
    source = os.path.join(run.SOURCE, "bench", "peers", "libdatadog")
    texts = [os.path.join(source, "Cargo.toml")] + [os.path.join(source, "src", f)
                                                    for f in os.listdir(os.path.join(source, "src"))]
    with packages.lock("libdatadog"):
        if not os.path.exists(program) or os.path.getmtime(program) < max(map(os.path.getmtime, texts)):
            found = cargo_version()
            if found < RUST:
                run.skip("cargo %d.%d or later, which rustup brings and which builds libdatadog (on the PATH: %s)," % (
                    RUST + ("%d.%d" % found if found > (0, 0) else "none",)))
            packages.step([os.path.join(run.SOURCE, "bench", "peers", "build.sh"), "decode"], run.SOURCE, "libdatadog")
            if os.path.exists(program):
                os.utime(program)
    if not os.path.exists(program):
        run.skip("libdatadog, whose build failed (build/peers/libdatadog.log says why),")
    return program


# Datadog's test agent

def test_agent_folder():
    lock = os.path.join(HERE, "test-agent", "requirements.txt")
    return packages.installed("test-agent", [lock],
                              lambda at: packages.venv(at, "ddapm-test-agent", "--requirement", lock))


def use_packages_of_test_agent():
    """It brings PyPI's msgpack."""
    folder = test_agent_folder()
    sys.path.append(os.path.join(folder, "lib", "python%d.%d" % sys.version_info[:2], "site-packages"))


class TestAgent:
    """A running one, its checks on: they come by the environment, since the option takes no value."""

    def __init__(self):
        program = os.path.join(test_agent_folder(), "bin", "ddapm-test-agent")
        self.port = free_port()
        self.log = open(os.path.join(packages.CACHE, "test-agent.log"), "wb")
        self.process = subprocess.Popen(
            [program, "--host", "127.0.0.1", "--port", str(self.port), "--otlp-http-port", str(free_port()),
             "--otlp-grpc-port", str(free_port()), "--pool-trace-check-failures", "true"],
            env=dict(os.environ, ENABLED_CHECKS=CHECKS), stdout=self.log, stderr=self.log)
        try:
            wait_for_answer(self.process, "http://127.0.0.1:%d/info" % self.port)
        except BaseException:
            self.stop()
            raise

    def stop(self):
        end(self.process)
        self.log.close()

    def ask(self, path, token, body=None, headers=()):
        where = "http://127.0.0.1:%d%s?test_session_token=%s" % (self.port, path, token)
        request = urllib.request.Request(where, data=body, method="PUT" if body else "GET", headers=dict(headers))
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, answer.read()

    def start_session(self, token):
        self.ask("/test/session/start", token)

    def put(self, path, body, token, headers=()):
        """The status of the answer."""
        return self.ask(path, token, body, dict(
            {"Content-Type": "application/msgpack", "Datadog-Meta-Lang": "c", "Datadog-Meta-Tracer-Version": "0.1.0",
             "X-Datadog-Test-Session-Token": token}, **dict(headers)))[0]

    def get(self, path, token):
        return json.loads(self.ask(path, token)[1])

    def check_failures(self, token):
        """Raise what its checks say against the session."""
        try:
            self.ask("/test/trace_check/failures", token)
        except urllib.error.HTTPError as e:
            raise AssertionError("the test agent's checks: %s" % e.read().decode()) from None

    def checks_run(self, token):
        """How often each check passed in the session."""
        return {name: counts["Passed_Checks"] for name, counts in
                self.get("/test/trace_check/summary", token).items()}


# Bodies of /v0.6/stats

ROW_NAMES = {"Name": "name", "Service": "service", "Resource": "resource", "Type": "type", "SpanKind": "kind",
             "HTTPStatusCode": "status", "Synthetics": "synthetics", "IsTraceRoot": "root", "PeerTags": "peer_tags",
             "AdditionalMetricTags": "more", "srv_src": "source", "HTTPMethod": "method", "HTTPEndpoint": "endpoint",
             "GRPCStatusCode": "grpc", "Hits": "hits", "Errors": "errors", "TopLevelHits": "top",
             "Duration": "duration", "OkSummary": "ok", "ErrorSummary": "error"}


def rows_of_stats(body):
    """The rows of a body, read by our own reader."""
    absent = {"source": "", "method": "", "endpoint": "", "grpc": ""}
    return [dict(absent, **{ROW_NAMES[k]: v for k, v in group.items()})
            for group in spans.unpack(body)["Stats"][0]["Stats"]]


# The trace-agent

class TraceAgent:
    """The whole of it, running; what it would send on comes as rows at its end."""

    def __init__(self):
        program = packages.go_built("agent-go", "the trace-agent")
        self.port = free_port()
        self.log = open(os.path.join(packages.CACHE, "agent-go.log"), "wb")
        self.out = open(os.path.join(packages.CACHE, "agent-go.%d.out" % os.getpid()), "w+b")
        self.process = subprocess.Popen([program, str(self.port)], stdin=subprocess.PIPE, stdout=self.out,
                                        stderr=self.log)
        try:
            self.info = json.loads(wait_for_answer(self.process, "http://127.0.0.1:%d/info" % self.port))
        except BaseException:
            self.stop()
            raise

    def post(self, path, body, headers=()):
        request = urllib.request.Request(
            "http://127.0.0.1:%d%s" % (self.port, path), data=body, method="POST", headers=dict(
                {"Content-Type": "application/msgpack", "Datadog-Meta-Lang": "c",
                 "Datadog-Meta-Tracer-Version": "0.1.0"}, **dict(headers)))
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status

    def stop(self, traces=0):
        """End it once it has counted as many traces; the rows that it would have sent."""
        if self.out.closed:
            return []
        try:
            self.process.communicate(b"%d\n" % traces, timeout=60)
        finally:
            end(self.process)
        self.out.seek(0)
        rows = [json.loads(line) for line in self.out]
        os.unlink(self.out.name)
        self.out.close()
        self.log.close()
        return rows


def wait_for_answer(process, where):
    for _ in range(600):
        try:
            with urllib.request.urlopen(where, timeout=10) as answer:
                return answer.read()
        except OSError:
            if process.poll() is not None:
                raise AssertionError("%s ended with %d" % (where, process.poll())) from None
            time.sleep(0.1)
    raise AssertionError("%s does not answer" % where)


def end(process):
    if process.poll() is None:
        process.terminate()
    try:
        process.wait(30)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


# v1.0, as the page of the format has it

class V1:
    """A payload's spans, of the message that another implementation of MessagePack read; all of their members."""

    def __init__(self, payload):
        self.strings = [""]
        self.spans = []
        if list(payload) != list(range(2, 12)):
            raise AssertionError("members of a payload: %r" % list(payload))
        self.header = [self.text(payload[k]) for k in range(2, 10)]
        self.own = self.attributes(payload[10])
        for chunk in payload[11]:
            self.chunk(chunk)

    def text(self, value):
        if isinstance(value, int):
            return self.strings[value]
        if value in self.strings:
            raise AssertionError("%r came twice" % value)
        self.strings.append(value)
        return value

    def value(self, kind, value):
        if kind == 6:
            return [self.value(*value[i:i + 2]) for i in range(0, len(value), 2)]
        form = {1: (int, str), 2: (bool,), 3: (float,), 4: (int,), 5: (bytes,)}[kind]
        if type(value) not in form:
            raise AssertionError("type %d is %r" % (kind, value))
        return self.text(value) if kind == 1 else value

    def attributes(self, flat):
        found = {}
        for i in range(0, len(flat), 3):
            key = self.text(flat[i])
            found[key] = self.value(*flat[i + 1:i + 3])
        return found

    def chunk(self, c):
        if list(c) != [1, 2, 3, 4, 6, 7]:
            raise AssertionError("members of a chunk: %r" % list(c))
        head = {"priority": c[1], "origin": self.text(c[2]), "chunk": self.attributes(c[3])}
        made = [self.span(s) for s in c[4]]
        for s in made:
            s.update(head, trace_id=c[6].hex(), mechanism=c[7])
        self.spans += made

    def span(self, s):
        if list(s) != list(range(1, 17)):
            raise AssertionError("members of a span: %r" % list(s))
        made = {k: self.text(s[n]) for n, k in ((1, "service"), (2, "name"), (3, "resource"))}
        made.update({k: s[n] for n, k in ((4, "span_id"), (5, "parent_id"), (6, "start"), (7, "duration"),
                                          (8, "error"))})
        every = self.attributes(s[9])
        made["attributes"] = {k: v for k, v in every.items() if not isinstance(v, bytes)}
        made["blobs"] = {k: v.hex() for k, v in every.items() if isinstance(v, bytes)}
        made["type"] = self.text(s[10])
        made["links"] = [self.link(x) for x in s[11]]
        made["events"] = [{"time": x[1], "name": self.text(x[2]), "attributes": self.attributes(x[3])} for x in s[12]]
        made.update({k: self.text(s[n]) for n, k in ((13, "env"), (14, "version"), (15, "component"))})
        made["kind"] = s[16]
        return made

    def link(self, x):
        attributes = self.attributes(x[3])
        return {"trace_id": x[1].hex(), "span_id": x[2], "attributes": attributes, "tracestate": self.text(x[4]),
                "flags": x[5]}
