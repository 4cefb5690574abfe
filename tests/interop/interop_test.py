# SPDX-License-Identifier: Apache-2.0
"""interop_test.py CLIENT: one stock client in one configuration, seen end to end.

A small traced HTTP service runs in front of a real tracer that sends to the agent through a tee. Then:
  - the service's own count of requests and failures is what the rows of its server spans say;
  - every row of the agent is what the recorded bodies hold, read by readers of our own, and no other;
  - count, sum and maximum of the server spans are exact, p50, p90 and p99 within the stated accuracy;
  - the agent's books balance.
"""
import json
import os
import subprocess
import sys
import unittest

from weirtest import packages, run, spans
from weirtest.agent import Agent, wait_until
from weirtest.http import Tee

HERE = os.path.dirname(os.path.abspath(__file__))
VISITS, FAIL_EVERY = 240, 12


def python_client():
    lock = os.path.join(HERE, "requirements.txt")
    return packages.installed("python-datadog", [lock],
                              lambda folder: packages.venv(folder, "ddtrace for Python", "--requirement", lock))


def client_command(client, folder, tee):
    """(command, environment, working folder) of the service under this client."""
    address = tee.address
    url = "unix://" + address if isinstance(address, str) else "http://127.0.0.1:%d" % address[1]
    version = "0.4" if "v04" in client else "0.5"
    datadog = {"DD_TRACE_AGENT_URL": url, "DD_SERVICE": "shop", "DD_ENV": "interop", "DD_VERSION": "1.2.3"}
    if client.startswith("datadog-js"):
        modules = packages.npm_installed("node-datadog")
        if version == "0.5":
            datadog["DD_TRACE_AGENT_PROTOCOL_VERSION"] = "0.5"
        return ["node", "-r", "dd-trace/init", os.path.join(HERE, "app.js")], datadog, modules
    if client.startswith("datadog-py"):
        venv = python_client()
        if version == "0.4":
            datadog["DD_TRACE_API_VERSION"] = "v0.4"  # v0.5 is what it takes by itself
        program = [os.path.join(venv, "bin", "ddtrace-run"), os.path.join(venv, "bin", "python")]
        return program + [os.path.join(HERE, "app.py")], datadog, folder
    if client.startswith("datadog-go"):
        return [packages.go_built("go-datadog", "dd-trace-go")], datadog, folder  # by what /info offers
    if client.startswith("otel-js"):
        modules = packages.npm_installed("node-otel")
        otel = {"OTEL_EXPORTER_OTLP_ENDPOINT": url, "OTEL_SERVICE_NAME": "shop",
                "OTEL_RESOURCE_ATTRIBUTES": "deployment.environment.name=interop",
                "NODE_PATH": os.path.join(modules, "node_modules")}
        if client.endswith("gzip"):
            otel["OTEL_EXPORTER_OTLP_COMPRESSION"] = "gzip"
        return ["node", "-r", os.path.join(HERE, "otel.js"), os.path.join(HERE, "app.js")], otel, modules
    raise SystemExit("no client '%s'" % client)


def route_of(client):
    if client.startswith("otel"):
        return "/v1/traces"
    if "v1" in client:
        return "/v1.0/traces"
    return "/v0.4/traces" if "v04" in client else "/v0.5/traces"


class Interop(unittest.TestCase):
    client = None

    def run_service(self, agent, tee):
        command, settings, folder = client_command(self.client, agent.folder, tee)
        result = os.path.join(agent.folder, "result.json")
        kept = {k: v for k, v in os.environ.items()
                if not k.startswith(("DD_", "OTEL_", "NODE_PATH", "PYTHONPATH", "WEIR_"))}
        kept.update(settings, VISITS=str(VISITS), FAIL_EVERY=str(FAIL_EVERY), RESULT=result)
        done = subprocess.run(command, env=kept, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=240)
        self.assertEqual(done.returncode, 0, done.stdout[-4000:])
        with open(result) as f:
            return json.load(f), done.stdout

    def test_what_the_service_did_is_in_the_rows(self):
        with Agent() as agent:
            server = agent.otlp if self.client.startswith("otel") else agent.datadog
            unix = os.path.join(agent.folder, "tee.socket") if self.client.endswith("unix") else None
            tee = Tee(agent.socket if unix else server, unix)
            try:
                did, output = self.run_service(agent, tee)
                self.assertEqual(did, {"requests": VISITS, "failed": VISITS // FAIL_EVERY})
                sent = self.wait_for_bodies(tee)
                self.check_rows(agent, did, sent, output)
                self.check_durations(agent, [s for s in sent if s.kind == "server"])
                self.check_books(agent, len(sent))
            finally:
                tee.close()

    def wait_for_bodies(self, tee):
        route = route_of(self.client)

        def answered():
            found = [r for r in tee.requests() if r.path.split("?")[0] == route]
            return found if found and all(r.status is not None for r in found) else None
        bodies = wait_until(answered)
        self.assertTrue(bodies, "nothing came by %s: %r" % (route, [(r.path, r.status) for r in tee.requests()]))
        self.assertEqual({r.status for r in bodies}, {200})
        if self.client.endswith("gzip"):
            self.assertEqual({r.headers.get("content-encoding") for r in bodies}, {"gzip"})
        other = [r for r in tee.requests() if "traces" in r.path and r.path.split("?")[0] != route]
        self.assertEqual([r.path for r in other if r.body not in (b"\x90", b"\xdd\0\0\0\0")], [])
        return [s for r in bodies for s in spans.read_body(r.path, r.decoded())]

    def check_rows(self, agent, did, sent, output):
        rows = spans.rows_of_answer(agent.calls('env="interop"'))
        self.assertEqual(rows, spans.rows_of(sent))
        servers = {}
        for (service, _, _, kind, status, code), calls in rows.items():
            if kind == "SPAN_KIND_SERVER":
                self.assertEqual(service, "shop")
                servers[status, code] = servers.get((status, code), 0) + calls
        self.assertEqual(servers, {("200", "STATUS_CODE_UNSET"): did["requests"] - did["failed"],
                                   ("500", "STATUS_CODE_ERROR"): did["failed"]}, output)
        # dd-trace-js leaves its client spans of a 500 without an error; OpenTelemetry marks both sides.
        failed_clients = sum(n for k, n in rows.items() if k[3] == "SPAN_KIND_CLIENT" and k[5] == "STATUS_CODE_ERROR")
        self.assertEqual(failed_clients, did["failed"] if self.client.startswith("otel") else 0)

    def check_durations(self, agent, servers):
        everything = 'traces_span_metrics_duration_seconds{env="interop",span_kind="SPAN_KIND_SERVER"%s}[30m]'
        merged = "sum(increase(%s))" % everything
        for selector, chosen in (("", servers), (',status_code="STATUS_CODE_ERROR"', [s for s in servers if s.error])):
            durations = [s.duration for s in chosen]
            self.assertEqual(agent.number("histogram_count(%s)" % (merged % selector)), len(durations))
            self.assertAlmostEqual(agent.number("histogram_sum(%s)" % (merged % selector)), sum(durations) / 1e9,
                                   delta=sum(durations) * 1e-21 + 1e-12)
            self.assertAlmostEqual(agent.number("max(max_over_time(%s))" % (everything % selector)),
                                   max(durations) / 1e9, delta=1e-12)
            for q in (0.5, 0.9, 0.99):
                exact = spans.exact_quantile(durations, q)
                got = agent.number("histogram_quantile(%g, %s)" % (q, merged % selector))
                self.assertLessEqual(abs(got - exact), spans.ALPHA * exact * (1 + 1e-9),
                                     "q %g: %r against %r" % (q, got, exact))
                print("%s%s: p%g %.6f s, exactly %.6f s, off by %+.4f %%" %
                      (self.client, selector, q * 100, got, exact, (got / exact - 1) * 100), flush=True)

    def check_books(self, agent, sent):
        metrics = agent.metrics()
        received = sum(v for k, v in metrics.items() if k.split("{")[0] == "weir_spans_received_total")
        self.assertEqual(received, sent)
        self.assertTrue(agent.reconcile()["balanced"])


if __name__ == "__main__":
    Interop.client = sys.argv.pop(1)
    run.main()
