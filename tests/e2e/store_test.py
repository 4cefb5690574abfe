# SPDX-License-Identifier: Apache-2.0
"""What was sealed is there after every kind of end; what cannot be used as a store is refused."""
import os
import shutil
import signal
import subprocess
import time
import unittest

from weirtest import run, spans
from weirtest.agent import Agent, wait_until
from weirtest.http import request

SHORT = ("--aggregation.window=1s", "--aggregation.lateness=0s")


def trace(number, duration_ms, service="shop", resource="GET /", error=0):
    now = time.time_ns()
    return [{"service": service, "name": "web.request", "resource": resource, "trace_id": number,
             "span_id": number, "parent_id": 0, "start": now - duration_ms * 1000000,
             "duration": duration_ms * 1000000, "error": int(error),
             "meta": {"span.kind": "server", "http.status_code": "500" if error else "200"}, "metrics": {}}]


def send(agent, traces):
    answer = request(agent.datadog, "PUT", "/v0.4/traces", spans.pack(traces),
                     [("Content-Type", "application/msgpack"), ("X-Datadog-Trace-Count", str(len(traces)))])
    assert answer.status == 200, answer


def quantiles(agent):
    """What a user would look at, in full digits."""
    merged = "sum by (span_name) (increase(traces_span_metrics_duration_seconds[1h]))"
    found = {}
    for expression in ("histogram_count(%s)" % merged, "histogram_sum(%s)" % merged,
                       "histogram_quantile(0.5, %s)" % merged, "histogram_quantile(0.99, %s)" % merged,
                       "max by (span_name) (max_over_time(traces_span_metrics_duration_seconds[1h]))"):
        for labels, value in agent.query(expression, include_open=False):
            found[expression, labels["span_name"]] = value
    return found


class Survival(unittest.TestCase):
    def test_a_kill_loses_nothing_that_was_sealed(self):
        with Agent(*SHORT) as agent:
            for burst in range(3):
                send(agent, [trace(1 + burst * 100 + i, 1 + i, resource="GET /%d" % (i % 3), error=i % 10 == 0)
                             for i in range(100)])
                time.sleep(0.7)
            self.assertTrue(wait_until(lambda: agent.total_calls(include_open=False) == 300),
                            "sealed: %d of 300" % agent.total_calls(include_open=False))
            calls = spans.rows_of_answer(agent.calls(include_open=False))
            before = quantiles(agent)
            self.assertEqual(len(before), 5 * 3)
            self.assertEqual(agent.restart(signal.SIGKILL), -signal.SIGKILL)
            self.assertEqual(spans.rows_of_answer(agent.calls(include_open=False)), calls)
            self.assertEqual(quantiles(agent), before)
            send(agent, [trace(5000 + i, 5) for i in range(10)])
            self.assertTrue(wait_until(lambda: agent.total_calls(include_open=False) == 310))

    def test_a_term_seals_the_open_windows(self):
        with Agent() as agent:  # windows of 10 s and 20 s of lateness: nothing is sealed yet
            send(agent, [trace(1 + i, 1 + i) for i in range(50)])
            self.assertEqual(agent.total_calls(), 50)
            self.assertEqual(agent.total_calls(include_open=False), 0)
            self.assertEqual(agent.restart(), 0)
            self.assertEqual(agent.total_calls(), 50)
            send(agent, [trace(100 + i, 1 + i) for i in range(7)])  # the same window again, perhaps
            self.assertEqual(agent.total_calls(), 57)
            self.assertEqual(agent.restart(), 0)
            self.assertEqual(agent.total_calls(), 57)

    def test_killed_in_the_midst_of_sending_it_starts_again_with_whole_windows(self):
        with Agent(*SHORT) as agent:
            number = 1
            for _ in range(3):
                deadline = time.monotonic() + 1.3
                while time.monotonic() < deadline:
                    send(agent, [trace(number + i, 3) for i in range(20)])
                    number += 20
                agent.restart(signal.SIGKILL)
                stored = agent.total_calls(include_open=False)
                self.assertEqual(stored % 20, 0, "a payload was torn")
                self.assertLessEqual(stored, number - 1)
                self.assertTrue(agent.reconcile()["balanced"])
            self.assertGreater(agent.total_calls(include_open=False), 0)


class Refusal(unittest.TestCase):
    def test_a_store_that_another_agent_holds_ends_the_start(self):
        with Agent() as holder:
            other = Agent(start=False)
            with other:
                other.store = holder.store
                done = subprocess.run(other.command(), capture_output=True, text=True, timeout=30)
                self.assertEqual(done.returncode, 1, done.stderr)
                self.assertIn(holder.store, done.stderr)
            send(holder, [trace(1, 1)])
            self.assertEqual(holder.total_calls(), 1)

    def test_a_path_that_is_no_folder_ends_the_start(self):
        agent = Agent(start=False)
        with agent:
            with open(agent.store, "w") as f:
                f.write("not a folder\n")
            done = subprocess.run(agent.command(), capture_output=True, text=True, timeout=30)
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertIn(agent.store, done.stderr)

    def test_a_corrupt_file_is_set_aside_and_said(self):
        with Agent(*SHORT) as agent:
            send(agent, [trace(1, 1)])
            agent.stop()
            path = os.path.join(agent.store, "weir.db")
            with open(path, "r+b") as f:
                f.write(b"this is no database" * 300)
            agent.start()
            self.assertEqual(agent.total_calls(), 0)
            send(agent, [trace(2, 1)])
            self.assertEqual(agent.total_calls(), 1)
            kept = [f for f in os.listdir(agent.store) if f.startswith("weir.db") and "corrupt" in f]
            self.assertTrue(kept, os.listdir(agent.store))
            self.assertIn("corrupt", agent.log())

    def test_the_store_can_be_copied_away_and_used_elsewhere(self):
        with Agent(*SHORT) as agent:
            send(agent, [trace(1 + i, 1 + i) for i in range(30)])
            agent.stop()
            moved = Agent(start=False)
            with moved:
                shutil.copytree(agent.store, moved.store)
                moved.start()
                self.assertEqual(moved.total_calls(), 30)


if __name__ == "__main__":
    run.main()
