# SPDX-License-Identifier: Apache-2.0
"""A running agent: free ports on the loopback, a store of its own, started and ended by the test."""
import itertools
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import urllib.parse

from . import http, run


FIRST_PORT = random.randrange(10240, 32000)  # tests run side by side
ports = itertools.cycle([*range(FIRST_PORT, 32000), *range(10240, FIRST_PORT)])


def free_port():
    """A port that is free now and stays so: none twice, and below the range the kernel gives to
    connections that go out (32768 on), where one that is let go of for a restart may be gone a
    moment later."""
    for port in ports:
        with socket.socket() as s:
            try:
                s.bind(("127.0.0.1", port))
                return port
            except OSError:
                pass


class Agent:
    """with Agent(aggregation_window="1s") as agent: ... An option's dots and dashes are given as in
    the flag, with _ for dots: the names in `names` below, or a raw list in `arguments`."""

    def __init__(self, *arguments, folder=None, start=True):
        self.own_folder = folder is None
        self.folder = folder or tempfile.mkdtemp(prefix="weir-test-")
        self.datadog = ("127.0.0.1", free_port())
        self.otlp = ("127.0.0.1", free_port())
        self.grpc = ("127.0.0.1", free_port())
        self.web = ("127.0.0.1", free_port())
        self.socket = os.path.join(self.folder, "apm.socket")
        self.store = os.path.join(self.folder, "store")
        self.log_path = os.path.join(self.folder, "log")
        self.arguments = list(arguments)
        self.environment = {}  # what is added to it
        self.process = None
        if start:
            self.start()

    def command(self):
        return [run.PROGRAM, "agent",
                "--receivers.datadog.listen-address=127.0.0.1:%d" % self.datadog[1],
                "--receivers.datadog.socket=" + self.socket,
                "--receivers.otlp.http-listen-address=127.0.0.1:%d" % self.otlp[1],
                "--receivers.otlp.grpc-listen-address=127.0.0.1:%d" % self.grpc[1],
                "--web.listen-address=127.0.0.1:%d" % self.web[1],
                "--store.path=" + self.store] + self.arguments

    def start(self):
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(self.command(), stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                            env={**{k: v for k, v in os.environ.items()
                                                    if not k.startswith(("WEIR_", "DD_"))}, **self.environment})
        deadline = time.monotonic() + 20
        while True:
            try:
                if http.request(self.web, "GET", "/-/ready").status == 200:
                    return self
            except OSError:
                pass
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise AssertionError("the agent did not become ready (exit %s):\n%s" %
                                     (self.process.poll(), self.log()))
            time.sleep(0.02)

    def log(self):
        with open(self.log_path, "r", errors="replace") as f:
            return f.read()

    def stop(self, how=signal.SIGTERM, timeout=15):
        """End it and give its exit status."""
        if self.process is None:
            return None
        if self.process.poll() is None:
            self.process.send_signal(how)
        status = self.process.wait(timeout)
        self.process = None
        return status

    def restart(self, how=signal.SIGTERM):
        status = self.stop(how)
        self.start()
        return status

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        try:
            if kind is not None and os.path.exists(self.log_path):
                print("--- the agent's log:\n%s---" % self.log()[-4000:], flush=True)
            self.stop()
        finally:
            if self.process is not None:
                self.process.kill()
                self.process.wait()
            if self.own_folder:
                shutil.rmtree(self.folder, ignore_errors=True)

    # Questions

    def get(self, path):
        return http.request(self.web, "GET", path)

    def api(self, path, **parameters):
        answer = self.get(path + "?" + urllib.parse.urlencode(parameters))
        body = json.loads(answer.body)
        if answer.status != 200 or body.get("status") != "success":
            raise AssertionError("%s %r was answered %r" % (path, parameters, answer))
        return body["data"]

    def query(self, expression, include_open=True, time_s=None):
        """An instant query: [(labels, value)]. Sent as a form, as Grafana does."""
        form = {"query": expression}
        if include_open:
            form["include_open"] = "1"
        if time_s is not None:
            form["time"] = repr(time_s)
        answer = http.request(self.web, "POST", "/api/v1/query", urllib.parse.urlencode(form).encode(),
                              [("Content-Type", "application/x-www-form-urlencoded")])
        body = json.loads(answer.body)
        if answer.status != 200 or body.get("status") != "success":
            raise AssertionError("%s was answered %r" % (expression, answer))
        data = body["data"]
        if data["resultType"] == "scalar":
            return [({}, float(data["result"][1]))]
        if data["resultType"] != "vector":
            raise AssertionError("%s gave a %s" % (expression, data["resultType"]))
        return [(r["metric"], float(r["value"][1])) for r in data["result"]]

    def number(self, expression, **options):
        """The single value of an instant query; None where there is none."""
        vector = self.query(expression, **options)
        if not vector:
            return None
        if len(vector) != 1:
            raise AssertionError("%s gave %d series" % (expression, len(vector)))
        return vector[0][1]

    def calls(self, selector="", include_open=True):
        return self.query("traces_span_metrics_calls_total{%s}" % selector, include_open)

    def total_calls(self, selector="", include_open=True):
        return int(self.number("sum(traces_span_metrics_calls_total{%s})" % selector,
                               include_open=include_open) or 0)

    def reconcile(self):
        answer = self.get("/debug/reconcile")
        if answer.status != 200:
            raise AssertionError("/debug/reconcile was answered %r" % answer)
        return json.loads(answer.body)

    def metrics(self):
        """{series as written: value} of /metrics."""
        found = {}
        answer = self.get("/metrics")
        if answer.status != 200:
            raise AssertionError("/metrics was answered %r" % answer)
        for line in answer.body.decode().splitlines():
            if line and not line.startswith("#"):
                name, _, value = line.rpartition(" ")
                found[name] = float(value)
        return found


def wait_until(what, seconds=15, every=0.1):
    """Ask until it is true; its last value."""
    deadline = time.monotonic() + seconds
    while True:
        value = what()
        if value or time.monotonic() > deadline:
            return value
        time.sleep(every)
