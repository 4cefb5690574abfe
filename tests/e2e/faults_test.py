# SPDX-License-Identifier: Apache-2.0
"""The store's faults from outside: no room, no right to write, damage, a second agent, a bound by bytes."""
import contextlib
import os
import random
import resource
import shutil
import signal
import sqlite3
import subprocess
import tempfile
import time
import unittest

from weirtest import run
from weirtest.agent import Agent, wait_until
from weirtest.http import request
from weirtest.load import HEADERS, Load, at, body

SEED = int(os.environ.get("T_SEED", "20261130"))
SHORT = ("--aggregation.window=1s", "--aggregation.lateness=0s")


def send(agent, packed, end_ns=None):
    answer = request(agent.datadog, "PUT", "/v0.4/traces", at(packed, end_ns or time.time_ns()), HEADERS)
    assert answer.status == 200, answer


def metric(agent, name):
    return agent.metrics().get(name, 0)


def refused(agent, test):
    """It ends at the start with 1; what it said."""
    done = subprocess.run(agent.command(), capture_output=True, text=True, timeout=30)
    test.assertEqual(done.returncode, 1, done.stdout + done.stderr)
    return done.stderr


class NoRoom(unittest.TestCase):
    """Batches wait while the disk is full, and are written when there is room."""

    def out_of_room(self, agent, load, make_room):
        self.assertEqual(agent.get("/-/ready").status, 200)
        self.assertTrue(wait_until(lambda: agent.get("/-/ready").status == 503, 30), "it never ran out of room")
        said = agent.get("/-/ready").body.decode()
        self.assertIn("store", said)
        self.assertRegex(said, "(?i)no space|input/output")
        self.assertTrue(wait_until(lambda: metric(agent, "weir_batches_pending") >= 2, 10))
        load.stop()
        figures = agent.metrics()
        self.assertEqual(figures["weir_store_up"], 0)
        self.assertGreater(figures["weir_store_errors_total"], 1)
        self.assertGreater(figures["weir_batches_pending_bytes"], 0)
        self.assertIn("write_failed", agent.log())
        self.assertEqual(agent.total_calls(), load.acknowledged, "queries see what waits")
        make_room()
        self.assertTrue(wait_until(lambda: agent.get("/-/ready").status == 200, 40, 0.25), "not ready again")
        self.assertTrue(wait_until(lambda: agent.total_calls(include_open=False) == load.acknowledged, 20),
                        "%d of %d" % (agent.total_calls(include_open=False), load.acknowledged))
        figures = agent.metrics()
        self.assertEqual((figures["weir_batches_lost_total"], figures["weir_batches_pending"]), (0, 0))
        self.assertEqual(figures["weir_store_up"], 1)
        self.assertTrue(agent.reconcile()["balanced"])
        agent.restart(signal.SIGKILL)
        self.assertEqual(agent.total_calls(), load.acknowledged)

    def test_a_file_that_may_not_grow_is_waited_out(self):
        """As any user can make it: a limit on the size of files, raised later."""
        with Agent(*SHORT) as agent:
            size = os.path.getsize(os.path.join(agent.store, "weir.db-wal"))
            resource.prlimit(agent.process.pid, resource.RLIMIT_FSIZE, (max(size, 65536) + 100000, resource.RLIM_INFINITY))
            load = Load(agent.datadog, "shop", spans_a_body=100, keys=2000)
            self.out_of_room(agent, load, lambda: resource.prlimit(
                agent.process.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY)))

    def test_a_full_disk_is_waited_out(self):
        """A real one: a small file system in memory, which only root can mount."""
        with tempfile.TemporaryDirectory(prefix="weir-test-") as mount:
            if os.geteuid() != 0 or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "weir-test", mount],
                                                   capture_output=True).returncode != 0:
                self.skipTest("a file system cannot be mounted here (the limit on files stands for it)")
            try:
                agent = Agent(*SHORT, start=False)
                with agent:
                    agent.store = os.path.join(mount, "store")
                    agent.start()
                    load = Load(agent.datadog, "shop", spans_a_body=100, keys=2000)
                    self.out_of_room(agent, load, lambda: subprocess.run(
                        ["mount", "-o", "remount,size=64m", mount], check=True))
            finally:
                subprocess.run(["umount", mount], check=True)

    def test_past_the_bound_of_what_waits_the_oldest_go_counted(self):
        with Agent("--store.max-pending-size=1MiB", *SHORT) as agent:
            resource.prlimit(agent.process.pid, resource.RLIMIT_FSIZE, (100000, resource.RLIM_INFINITY))
            load = Load(agent.datadog, "shop", spans_a_body=100, keys=2000, pause=0)
            self.assertTrue(wait_until(lambda: metric(agent, "weir_batches_lost_total") > 0, 30), "nothing was lost")
            load.stop()
            figures = agent.metrics()
            self.assertLess(figures["weir_batches_pending_bytes"], 4 << 20)
            self.assertIn("batch_lost", agent.log())
            resource.prlimit(agent.process.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
            self.assertTrue(wait_until(lambda: metric(agent, "weir_batches_pending") == 0, 40, 0.25))
            figures = agent.metrics()
            self.assertEqual(agent.total_calls(), load.acknowledged - figures["weir_spans_lost_total"])
            self.assertTrue(agent.reconcile()["balanced"])


class NoRight(unittest.TestCase):
    def test_a_folder_and_a_file_that_cannot_be_written_end_the_start_by_name(self):
        with Agent(*SHORT) as agent:
            send(agent, body("shop", 10, 10))
            agent.stop()
            if os.geteuid() == 0:  # rights do not bind root; a mark of the file system does
                if subprocess.run(["mount", "--bind", agent.store, agent.store], capture_output=True).returncode != 0:
                    self.skipTest("root cannot be kept from writing here")
                try:
                    subprocess.run(["mount", "-o", "remount,ro,bind", agent.store], check=True)
                    self.assertIn(agent.store, refused(agent, self))
                finally:
                    subprocess.run(["umount", agent.store], check=True)
            else:
                for path, mode in ((os.path.join(agent.store, "weir.db"), 0o400), (agent.store, 0o500)):
                    was = os.stat(path).st_mode
                    os.chmod(path, mode)
                    try:
                        self.assertIn(agent.store, refused(agent, self))
                    finally:
                        os.chmod(path, was)
            agent.start()
            self.assertEqual(agent.total_calls(), 10)

    def test_a_second_agent_is_refused_by_the_folder_s_name_and_the_holder_s_pid(self):
        with Agent(*SHORT) as holder:
            other = Agent(start=False)
            with other:
                other.store = holder.store
                said = refused(other, self)
                self.assertIn(holder.store, said)
                self.assertIn(str(holder.process.pid), said)
                send(holder, body("shop", 10, 10))
                self.assertEqual(holder.total_calls(), 10)
                holder.stop(signal.SIGKILL)  # and the lock goes with its holder, however that ends
                other.start()
                other.stop()


class Damage(unittest.TestCase):
    """A damaged file is either sound enough that every answer is right, or set aside, counted and said."""

    @classmethod
    def setUpClass(cls):
        cls.random = random.Random(SEED)
        print("T_SEED=%d" % SEED, flush=True)
        cls.clean = tempfile.mkdtemp(prefix="weir-test-")
        with Agent(*SHORT) as agent:
            for n in range(4):
                send(agent, body("shop-%d" % n, 300, 300))
                time.sleep(0.9)
            assert wait_until(lambda: agent.total_calls(include_open=False) == 1200)
            cls.answers = cls.ask(agent)
            agent.stop(signal.SIGKILL)
            cls.with_log = os.path.join(cls.clean, "with-log")
            shutil.copytree(agent.store, cls.with_log)
            agent.start()
            agent.stop()  # the log is folded in
            cls.whole = os.path.join(cls.clean, "whole")
            shutil.copytree(agent.store, cls.whole)
        assert os.path.getsize(os.path.join(cls.with_log, "weir.db-wal")) > 100000
        cls.size = os.path.getsize(os.path.join(cls.whole, "weir.db"))

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.clean, ignore_errors=True)

    @staticmethod
    def ask(agent):
        """Everything a query can see; None where it is refused."""
        found = []
        for expression in ("traces_span_metrics_calls_total", "increase(traces_span_metrics_calls_total[1h])",
                           "histogram_quantile(0.9, increase(traces_span_metrics_duration_seconds[1h]))"):
            try:
                found.append(sorted((tuple(sorted(labels.items())), v)
                                    for labels, v in agent.query(expression, include_open=False)))
            except AssertionError:
                found.append(None)
        return found

    def damaged(self, what, source, change, lost_allowed=False):
        """Start over a changed copy. Gives whether it was set aside."""
        agent = Agent(*SHORT, start=False)
        with agent, self.subTest(what):
            shutil.copytree(source, agent.store)
            change(agent.store)
            agent.start()
            replaced = metric(agent, "weir_store_replaced_total")
            for answer, right in zip(self.ask(agent), self.answers):
                if answer is None:  # refused, and then dealt with
                    self.assertTrue(wait_until(lambda: metric(agent, "weir_store_replaced_total") > 0),
                                    "a damaged file stays in use")
                elif answer != right:
                    self.assertTrue(lost_allowed or metric(agent, "weir_store_replaced_total") > 0,
                                    "a wrong answer: %d series instead of %d" % (len(answer), len(right)))
                    self.assertTrue(set(answer) <= set(right) or lost_allowed, "a value that never was")
            send(agent, body("after", 20, 20))
            self.assertTrue(wait_until(lambda: agent.total_calls('service_name="after"', include_open=False) == 20))
            replaced = metric(agent, "weir_store_replaced_total")
            aside = [f for f in os.listdir(agent.store) if f.startswith("weir.db.corrupt-") and not f.endswith("-wal")]
            self.assertEqual(len(aside), replaced)
            if replaced:
                self.assertIn("level=error", agent.log())
                self.assertIn("corrupt", agent.log())
            self.assertEqual(agent.stop(), 0)
            with contextlib.closing(sqlite3.connect(os.path.join(agent.store, "weir.db"))) as db:
                self.assertEqual(db.execute("PRAGMA quick_check").fetchall(), [("ok",)])
            return replaced

    def test_a_file_cut_at_any_length(self):
        def cut(length):
            return lambda store: os.truncate(os.path.join(store, "weir.db"), length)
        page = 8192
        for length in (2, 100, 511, 512, page, page + 1, self.size // 2, self.size - page):
            self.assertEqual(self.damaged("cut to %d of %d" % (length, self.size), self.whole, cut(length)), 1, length)
        # The last page may be one that nobody reads; then every answer is right.
        for length in (self.size - 1, self.size - page // 2):
            self.assertIn(self.damaged("cut to %d of %d" % (length, self.size), self.whole, cut(length)), (0, 1))
        # To nothing (or to the one byte SQLite begins with): a store to which nothing was written yet.
        for length in (0, 1):
            self.assertEqual(self.damaged("cut to %d" % length, self.whole, cut(length), lost_allowed=True), 0)

    @staticmethod
    def flip(name, offset, bit):
        def change(store):
            with open(os.path.join(store, name), "r+b") as f:
                f.seek(offset)
                byte = f.read(1)[0]
                f.seek(offset)
                f.write(bytes([byte ^ (1 << bit)]))
        return change

    def test_a_flipped_bit_in_the_header(self):
        for offset in (0, 16, 18, 20, 28, 44, 47, 52, 60, 68, 100, 105):
            self.assertEqual(self.damaged("header, byte %d" % offset, self.whole,
                                          self.flip("weir.db", offset, self.random.randrange(8))), 1)

    def test_a_flipped_bit_anywhere(self):
        replaced = 0
        for _ in range(12):
            offset = self.random.randrange(self.size)
            replaced += self.damaged("byte %d" % offset, self.whole,
                                     self.flip("weir.db", offset, self.random.randrange(8))) or 0
        print("%d of 12 were found" % replaced)  # the rest: pages that are not in use, or not asked for

    def test_a_log_that_is_damaged_or_cut(self):
        size = os.path.getsize(os.path.join(self.with_log, "weir.db-wal"))
        for offset in [0, 20, 40] + [self.random.randrange(size) for _ in range(3)]:
            self.damaged("log, byte %d" % offset, self.with_log, self.flip("weir.db-wal", offset, 3), lost_allowed=True)
        for length in (0, 32, size // 2, size - 1):
            self.damaged("log cut to %d of %d" % (length, size), self.with_log,
                         lambda store, n=length: os.truncate(os.path.join(store, "weir.db-wal"), n), lost_allowed=True)


class Bound(unittest.TestCase):
    def test_a_bound_by_bytes_holds_and_totals_never_fall(self):
        bound = 2 << 20
        with Agent("--store.retention.size=2MiB", *SHORT) as agent:
            load = Load(agent.datadog, "shop", spans_a_body=100, keys=3000, pause=0)
            most = 0
            totals = {}
            begun = time.monotonic()
            while time.monotonic() - begun < 30:
                time.sleep(0.5)
                figures = agent.metrics()
                most = max(most, os.path.getsize(os.path.join(agent.store, "weir.db")))
                for labels, value in agent.calls(include_open=False):
                    key = tuple(sorted(labels.items()))
                    self.assertGreaterEqual(value, totals.get(key, 0), "a total fell: %r" % (labels,))
                    totals[key] = value
                if figures["weir_store_rows_removed_total"] > 30000:
                    break
            load.stop()
            print("the file had %d bytes at most, of %d; %d rows removed" % (
                most, bound, figures["weir_store_rows_removed_total"]))
            self.assertGreater(figures["weir_store_rows_removed_total"], 0, "nothing was removed")
            self.assertLess(most, bound * 1.2)
            agent.restart()
            self.assertEqual(agent.total_calls(), load.acknowledged)


if __name__ == "__main__":
    run.main()
