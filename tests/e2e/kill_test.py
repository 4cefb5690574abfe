# SPDX-License-Identifier: Apache-2.0
"""kill -9 at random moments under load: what was stored stays, once; the store opens without a complaint."""
import contextlib
import os
import random
import signal
import sqlite3
import threading
import time
import unittest
from collections import Counter

from weirtest import run
from weirtest.agent import Agent
from weirtest.load import Load

KILLS = int(os.environ.get("T_KILLS", "200"))
SEED = int(os.environ.get("T_SEED", "20261130"))
AGENTS = 6  # at once: a window lasts a second at least, and only its end is interesting
SHORT = ("--aggregation.window=1s", "--aggregation.lateness=0s", "--log.level=info")


def batches_of(answer, state):
    """Each batch as what is told of it: how many there are of each."""
    return Counter((w["start_ns"], w["rows"], w["spans"]["received"], w["spans"]["aggregated"], w["weight"]["rows"],
                    w["early"]) for w in answer["windows"] if w["state"] == state)


class Victim:
    """One agent, started and killed again and again."""

    def __init__(self, number, rounds):
        self.random = random.Random(SEED * 1000 + number)
        self.number = number
        self.rounds = rounds
        self.kills = 0
        self.stored_spans = 0
        self.known = Counter()  # batches that were seen stored
        self.by_round = {}      # service: calls found after the kill
        self.error = None

    def moment(self):
        """Seconds until the kill: half of them about the end of a window, when batches are written."""
        if self.random.random() < 0.5:
            return self.random.uniform(0.02, 1.0)
        return 1 - time.time() % 1 + self.random.uniform(-0.005, 0.060)

    def one_round(self, agent, number):
        service = "round-%d" % number
        load = Load(agent.datadog, service)
        deadline = time.monotonic() + self.moment()
        seen = Counter()
        while time.monotonic() < deadline:
            seen = batches_of(agent.reconcile(), "stored")
            time.sleep(max(0, min(0.1, deadline - time.monotonic())))
        agent.stop(signal.SIGKILL)
        self.kills += 1
        load.stop()
        agent.start()
        self.check(agent, service, seen, load)

    def check(self, agent, service, seen, load):
        answer = agent.reconcile()
        assert answer["balanced"], answer
        stored = batches_of(answer, "stored")
        assert not seen - stored, "stored before the kill and gone after it: %r" % (seen - stored)
        assert not self.known - stored, "gone since an earlier round: %r" % (self.known - stored)
        self.known = stored
        calls = {labels["service_name"]: int(v) for labels, v in agent.query(
            "sum by (service_name) (traces_span_metrics_calls_total)", include_open=False)}
        mine = calls.pop(service, 0)
        assert mine % load.spans_a_body == 0, "a payload was torn: %d" % mine
        assert mine <= load.sent, "%d spans of %d" % (mine, load.sent)
        assert calls == self.by_round, "%r has become %r" % (self.by_round, calls)
        if mine:
            self.by_round[service] = mine
        self.stored_spans = sum(self.by_round.values())
        in_batches = sum(key[3] * n for key, n in stored.items())
        assert in_batches == self.stored_spans, "%d in batches, %d in rows" % (in_batches, self.stored_spans)

    def run(self):
        try:
            with Agent(*SHORT) as agent:
                for number in range(self.rounds):
                    self.one_round(agent, number)
                agent.stop()
                for line in agent.log().splitlines():
                    assert "level=error" not in line and "level=warn" not in line, line
                assert not [f for f in os.listdir(agent.store) if "corrupt" in f]
                with contextlib.closing(sqlite3.connect(os.path.join(agent.store, "weir.db"))) as db:
                    assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        except Exception as e:  # shown by the test's own thread
            self.error = e


class Kill(unittest.TestCase):
    def test_a_kill_at_any_moment_loses_nothing_that_was_stored_and_doubles_nothing(self):
        print("T_SEED=%d T_KILLS=%d" % (SEED, KILLS), flush=True)
        share = [KILLS // AGENTS + (i < KILLS % AGENTS) for i in range(AGENTS)]
        victims = [Victim(i, rounds) for i, rounds in enumerate(share)]
        threads = [threading.Thread(target=v.run) for v in victims]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        for v in victims:
            if v.error:
                raise AssertionError("agent %d, kill %d" % (v.number, v.kills)) from v.error
        self.assertEqual(sum(v.kills for v in victims), KILLS)
        batches = sum(sum(v.known.values()) for v in victims)
        print("%d kills, %d batches and %d spans stored" % (KILLS, batches, sum(v.stored_spans for v in victims)))
        self.assertGreater(batches, KILLS // 4)


if __name__ == "__main__":
    run.main()
