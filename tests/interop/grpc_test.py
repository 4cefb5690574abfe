# SPDX-License-Identifier: Apache-2.0
"""grpc_test.py CLIENT: OTLP over gRPC by stock clients: the OpenTelemetry SDK for Node (grpc-js), plain and gzip,
and gRPC C-core by generated code, with what an exporter must be told when it asks for too much."""
import json
import os
import shutil
import subprocess
import sys
import unittest

from weirtest import packages, run
from weirtest.agent import Agent, wait_until

HERE = os.path.dirname(os.path.abspath(__file__))
VISITS, FAIL_EVERY = 240, 12


def calls(agent, selector):
    labels = ("service_name", "span_kind", "status_code")
    vector = agent.query("sum by (%s) (traces_span_metrics_calls_total{%s})" % (", ".join(labels), selector))
    return {tuple(metric[k] for k in labels): value for metric, value in vector}


class Grpc(unittest.TestCase):
    client = None

    def setUp(self):
        self.agent = Agent()
        self.target = "127.0.0.1:%d" % self.agent.grpc[1]
        self.addCleanup(self.agent.__exit__, None, None, None)

    def test_what_the_client_did_is_in_the_rows(self):
        if self.client == "core":
            self.core()
        else:
            self.node()
        self.assertTrue(self.agent.reconcile()["balanced"])

    def node(self):
        run.need_command("node", "npm")
        source = os.path.join(HERE, "node-otel-grpc")
        locks = [os.path.join(source, f) for f in ("package.json", "package-lock.json")]

        def install(folder):
            for path in locks:
                shutil.copy(path, folder)
            packages.step(["npm", "ci", "--no-audit", "--no-fund", "--loglevel=error"], folder, "node-otel-grpc")
        modules = packages.installed("node-otel-grpc", locks, install)
        result = os.path.join(self.agent.folder, "result.json")
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("DD_", "OTEL_", "NODE_PATH", "WEIR_"))}
        kept.update(OTEL_EXPORTER_OTLP_ENDPOINT="http://" + self.target, OTEL_EXPORTER_OTLP_PROTOCOL="grpc",
                    OTEL_SERVICE_NAME="shop", OTEL_RESOURCE_ATTRIBUTES="deployment.environment.name=interop",
                    NODE_PATH=os.path.join(modules, "node_modules"), RESULT=result,
                    VISITS=str(VISITS), FAIL_EVERY=str(FAIL_EVERY))
        if self.client == "js-gzip":
            kept["OTEL_EXPORTER_OTLP_COMPRESSION"] = "gzip"
        done = subprocess.run(["node", "-r", os.path.join(HERE, "otel.js"), os.path.join(HERE, "app.js")], env=kept,
                              cwd=modules, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, timeout=240)
        self.assertEqual(done.returncode, 0, done.stdout[-4000:])
        with open(result) as f:
            self.assertEqual(json.load(f), {"requests": VISITS, "failed": VISITS // FAIL_EVERY})
        failed, good = VISITS // FAIL_EVERY, VISITS - VISITS // FAIL_EVERY
        self.assertEqual(calls(self.agent, 'env="interop"'),
                         {("shop", "SPAN_KIND_%s" % kind, "STATUS_CODE_%s" % status): n
                          for kind in ("SERVER", "CLIENT") for status, n in (("ERROR", failed), ("UNSET", good))})
        metrics = self.agent.metrics()
        self.assertEqual(metrics['weir_receive_spans_total{route="/opentelemetry.proto.collector.trace.v1.'
                                 'TraceService/Export"}'], 2 * VISITS)

    def core(self):
        lock = os.path.join(HERE, "grpc-requirements.txt")
        venv = packages.installed("grpc-core", [lock], lambda folder: packages.venv(
            folder, "grpcio", "--requirement", lock))
        done = subprocess.run([os.path.join(venv, "bin", "python"), os.path.join(HERE, "grpc_calls.py"), self.target],
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              timeout=240)
        self.assertEqual(done.returncode, 0, done.stderr[-4000:])
        self.assertEqual(json.loads(done.stdout), {
            "health": ["OK", "OK", "NOT_FOUND"], "serving": 1, "codes": {"OK": 3 * 3 + 1 + 200},
            "partial": [3, True], "bad": "INVALID_ARGUMENT", "large": "RESOURCE_EXHAUSTED",
            "bomb": "RESOURCE_EXHAUSTED", "unknown": "UNIMPLEMENTED", "after": "OK"})

        def failed(spans):
            return (spans + 4) // 5
        one = 3 * (1 + 50 + 1000) + 10
        one_failed = 3 * (failed(1) + failed(50) + failed(1000)) + failed(10)
        self.assertEqual(calls(self.agent, ""), {
            ("one", "SPAN_KIND_SERVER", "STATUS_CODE_ERROR"): one_failed,
            ("one", "SPAN_KIND_SERVER", "STATUS_CODE_UNSET"): one - one_failed,
            ("many", "SPAN_KIND_SERVER", "STATUS_CODE_ERROR"): 200 * failed(40),
            ("many", "SPAN_KIND_SERVER", "STATUS_CODE_UNSET"): 200 * (40 - failed(40))})
        metrics = self.agent.metrics()
        self.assertEqual(metrics['weir_receive_rejected_spans_total{reason="span_id"}'], 3)
        self.assertTrue(wait_until(lambda: self.agent.metrics()['weir_http_buffered_bytes{server="otlp_grpc"}'] == 0))


if __name__ == "__main__":
    Grpc.client = sys.argv.pop(1)
    run.main()
