# SPDX-License-Identifier: Apache-2.0
"""The wall clock steps an hour forward and an hour back while spans come in."""
import os
import struct
import time
import unittest

from weirtest import run
from weirtest.agent import Agent, wait_until
from weirtest.load import Load

HOUR = 3600
SHIFT_LIBRARY = os.path.join(run.BUILD, "tests", "e2e", "libclock_shift.so")
SHORT = ("--aggregation.window=1s", "--aggregation.lateness=1s", "--query.lookback-delta=6h")


class Clock:
    """The wall clock of an agent and of its senders, moved by writing a file."""

    def __init__(self, path):
        self.path = path
        self.shift_ns = 0
        self.step(0)

    def step(self, seconds):
        self.shift_ns += seconds * 1000000000
        # In place, the file is mapped.
        fd = os.open(self.path, os.O_WRONLY | os.O_CREAT)
        os.pwrite(fd, struct.pack("=q", self.shift_ns), 0)
        os.close(fd)

    def now_ns(self):
        return time.time_ns() + self.shift_ns

    def now(self):
        return self.now_ns() / 1e9


class Steps(unittest.TestCase):
    def start(self):
        agent = Agent(*SHORT, start=False)
        clock = Clock(os.path.join(agent.folder, "shift"))
        agent.environment = {"LD_PRELOAD": SHIFT_LIBRARY, "CLOCK_SHIFT_FILE": clock.path}
        agent.start()
        return agent, clock

    def calls_at(self, agent, when, selector=""):
        """Running total at a time, in the sealed windows alone."""
        return int(agent.number("sum(traces_span_metrics_calls_total{%s})" % selector, include_open=False,
                                time_s=when) or 0)

    def step(self, seconds):
        agent, clock = self.start()
        with agent:
            before = Load(agent.datadog, "before", now_ns=clock.now_ns)
            time.sleep(2.5)
            before.stop()  # what is under way has the old time
            self.assertEqual(agent.metrics()["weir_clock_steps_total"], 0)
            old_now = clock.now()
            sealed = agent.metrics()["weir_batches_sealed_total"]
            clock.step(seconds)
            # Seen within a second though nothing comes in; what is open is sealed at once.
            self.assertTrue(wait_until(lambda: agent.metrics()["weir_clock_steps_total"] == 1, 5), "not counted")
            self.assertTrue(wait_until(lambda: self.calls_at(agent, old_now + 2, 'service_name="before"')
                                       == before.acknowledged, 5))
            after = Load(agent.datadog, "after", now_ns=clock.now_ns)
            begun = time.monotonic()
            time.sleep(2.5)
            # Windows go on: those open at the step, and one a second since.
            self.assertTrue(wait_until(lambda: agent.metrics()["weir_batches_sealed_total"] - sealed >= 3, 10),
                            "windows stand still")
            figures = agent.metrics()
            after.stop()
            self.assertLessEqual(figures["weir_batches_sealed_total"] - sealed, 8 + (time.monotonic() - begun),
                                 "a flood of windows")
            self.assertEqual(figures["weir_clock_steps_total"], 1)
            self.assertTrue(wait_until(lambda: self.calls_at(
                agent, clock.now() + 2, 'service_name="after"') == after.acknowledged, 8), "windows stay open")
            answer = agent.reconcile()
            self.assertTrue(answer["balanced"])
            self.assertEqual(answer["process"]["received"], before.acknowledged + after.acknowledged)
            self.assertEqual(sum(answer["process"]["dropped"].values()), 0)
            self.check_times(agent, old_now, clock.now(), before, after)
            agent.restart()  # and the same from the disk alone
            self.check_times(agent, old_now, clock.now(), before, after)

    def check_times(self, agent, old_now, new_now, before, after):
        self.assertEqual(self.calls_at(agent, max(old_now, new_now) + 2), before.acknowledged + after.acknowledged)
        self.assertEqual(self.calls_at(agent, old_now + 2, 'service_name="before"'), before.acknowledged)
        self.assertEqual(self.calls_at(agent, new_now + 2, 'service_name="after"'), after.acknowledged)
        for when, there, absent in ((old_now, before, "after"), (new_now, after, "before")):
            increase = "sum by (service_name) (increase(traces_span_metrics_calls_total[60s]))"
            found = {labels["service_name"]: v for labels, v in agent.query(increase, include_open=False, time_s=when + 2)}
            self.assertEqual(found.pop(absent, 0), 0)
            self.assertEqual(sum(found.values()), there.acknowledged)

    def test_an_hour_forward(self):
        self.step(HOUR)

    def test_an_hour_back(self):
        self.step(-HOUR)

    def test_forward_and_back_under_load_loses_nothing(self):
        """What came in with the step may be booked on either side of it, but once."""
        agent, clock = self.start()
        with agent:
            load = Load(agent.datadog, "shop", pause=0.005, now_ns=clock.now_ns)
            for seconds in (HOUR, -HOUR, -HOUR, HOUR):
                time.sleep(1.2)
                clock.step(seconds)
            time.sleep(1.5)
            load.stop()
            self.assertEqual(load.refused, [])
            self.assertEqual(agent.metrics()["weir_clock_steps_total"], 4)
            everything = "sum(traces_span_metrics_calls_total)"
            self.assertEqual(agent.number(everything, time_s=clock.now() + HOUR + 10), load.acknowledged)
            answer = agent.reconcile()
            self.assertTrue(answer["balanced"])
            self.assertEqual(answer["process"]["aggregated"], load.acknowledged)
            self.assertEqual(agent.restart(), 0)
            self.assertEqual(agent.number(everything, time_s=clock.now() + HOUR + 10, include_open=False),
                             load.acknowledged)


if __name__ == "__main__":
    if not os.path.exists(SHIFT_LIBRARY):
        run.skip("the library that moves the clock (built with the tests)")
    run.main()
