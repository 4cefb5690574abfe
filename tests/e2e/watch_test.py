# SPDX-License-Identifier: Apache-2.0
"""weir query --watch, on a terminal (a pty of our own) and where standard output is none."""
import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
import unittest

from weirtest import run, spans
from weirtest.agent import Agent, wait_until
from weirtest.http import request

ENTER = b"\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[H\x1b[2J"
LEAVE = b"\x1b[?7h\x1b[?25h\x1b[?1049l"
HOME = b"\x1b[H"
AWAY = "asking again"


def send(agent, services):
    now = time.time_ns()
    body = [[{"service": s, "name": "op", "resource": "GET /", "trace_id": i + 1, "span_id": i + 1, "parent_id": 0,
              "start": now - 10**6, "duration": 10**6, "error": 0, "meta": {}, "metrics": {}}]
            for i, s in enumerate(services)]
    answer = request(agent.datadog, "PUT", "/v0.4/traces", spans.pack(body), [("Content-Type", "application/msgpack")])
    if answer.status != 200:
        raise AssertionError("%r" % answer)


class Terminal:
    """The program on a pty that is its controlling terminal."""

    def __init__(self, url, *arguments, rows=12, columns=100):
        self.seen = b""
        self.status = None
        self.pid, self.master = pty.fork()
        if self.pid == 0:
            os.environ["TERM"] = "xterm"
            # The parent's window size is there before the program starts.
            os.read(0, 1)
            os.execv(run.PROGRAM, [run.PROGRAM, "query", "--url", url] + list(arguments))
        self.resize(rows, columns)
        os.write(self.master, b"\n")

    def resize(self, rows, columns):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def read(self, seconds):
        """What comes within that time."""
        deadline = time.monotonic() + seconds
        while select.select([self.master], [], [], max(deadline - time.monotonic(), 0))[0]:
            try:
                got = os.read(self.master, 65536)
            except OSError:  # the other side is closed
                return
            if not got:
                return
            self.seen += got

    def frames(self):
        """Each as the lines that it leaves on the screen."""
        painted = self.seen.split(HOME)[1:]
        return [[re.sub(rb"\x1b\[[?0-9]*[A-Za-z]", b"", line).decode().rstrip("\r") for line in f.split(b"\n")]
                for f in painted]

    def wait_for(self, what, seconds=15):
        """The first later frame of which it is true."""
        begun = len(self.frames())
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            self.read(0.1)
            for frame in self.frames()[max(begun - 1, 0):-1] + self.frames()[-1:]:
                if what(frame):
                    return frame
        raise AssertionError("no such frame; the last: %r" % self.frames()[-1:])

    def end(self, seconds=10):
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            self.read(0.05)
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.status = os.waitstatus_to_exitcode(status)
                self.read(0.05)
                return self.status
        raise AssertionError("it did not end")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.status is None:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        os.close(self.master)


def url_of(agent):
    return "http://127.0.0.1:%d" % agent.web[1]


def has(text):
    return lambda frame: any(text in line for line in frame)


class OnATerminal(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.agent = Agent()
        send(cls.agent, ["shop-%02d" % i for i in range(30)])

    @classmethod
    def tearDownClass(cls):
        cls.agent.__exit__(None, None, None)

    def test_frames_are_painted_over_each_other_and_ctrl_c_ends_it_well(self):
        with Terminal(url_of(self.agent), "--watch=200ms", "--sort=service") as t:
            for _ in range(3):
                t.wait_for(has("shop-00"))
            os.write(t.master, b"\x03")
            self.assertEqual(t.end(), 0)
            self.assertTrue(t.seen.split(ENTER)[1], t.seen[:100])
            self.assertEqual(t.seen.count(ENTER), 1)
            self.assertEqual(t.seen.count(b"\x1b[2J"), 1, "only the first frame may blank the screen")
            self.assertTrue(t.seen.rstrip().endswith(LEAVE), t.seen[-100:])

    def test_sigterm_ends_it_well_too(self):
        with Terminal(url_of(self.agent), "--watch") as t:
            t.wait_for(has("SERVICE"))
            os.kill(t.pid, signal.SIGTERM)
            self.assertEqual(t.end(), 0)
            self.assertTrue(t.seen.endswith(LEAVE))

    def check_size(self, frame, rows, columns):
        self.assertLessEqual(len(frame), rows)
        for line in frame:
            self.assertLessEqual(len(line), columns, line)

    def test_the_window_s_size_is_respected_and_a_new_one_paints_at_once(self):
        with Terminal(url_of(self.agent), "--watch=1h", "--sort=service", rows=12, columns=100) as t:
            first = t.wait_for(has("and 21 more"))
            self.check_size(first, 12, 100)
            self.assertEqual(len(first), 12)
            self.assertIn("MAX", first[1])
            t.resize(8, 92)
            second = t.wait_for(has("and 25 more"))
            self.check_size(second, 8, 92)
            self.assertIn("MAX", second[1])
            t.resize(50, 120)
            third = t.wait_for(has("shop-29"))
            self.check_size(third, 50, 120)
            t.resize(3, 20)
            self.check_size(t.wait_for(has("and 30 more")), 3, 20)

    def test_a_stop_gives_the_terminal_back_for_as_long_as_it_lasts(self):
        with Terminal(url_of(self.agent), "--watch=1h") as t:
            t.wait_for(has("shop-"))
            os.write(t.master, b"\x1a")
            _, status = os.waitpid(t.pid, os.WUNTRACED)
            self.assertTrue(os.WIFSTOPPED(status))
            t.read(0.1)
            self.assertTrue(t.seen.rstrip().endswith(LEAVE), t.seen[-60:])
            before = len(t.frames())
            os.kill(t.pid, signal.SIGCONT)
            self.assertTrue(wait_until(lambda: t.read(0.05) or len(t.frames()) > before + 1))
            self.assertIn(ENTER, t.seen.split(LEAVE)[-1])
            os.write(t.master, b"\x03")
            self.assertEqual(t.end(), 0)

    def test_an_agent_that_is_away_is_said_to_be_and_asked_again(self):
        agent = Agent()
        with agent:
            send(agent, ["kept"])
            with Terminal(url_of(agent), "--watch=100ms") as t:
                t.wait_for(has("kept"))
                agent.stop()
                away = t.wait_for(has(AWAY))
                self.assertTrue(has("kept")(away), away)  # the last answer still stands
                agent.start()
                t.read(0.2)
                t.wait_for(lambda f: has("kept")(f) and not has(AWAY)(f))
                os.write(t.master, b"\x03")
                self.assertEqual(t.end(), 0)

    def test_an_agent_that_does_not_answer_can_be_left(self):
        agent = Agent()
        with agent:
            os.kill(agent.process.pid, signal.SIGSTOP)
            try:
                with Terminal(url_of(agent), "--watch") as t:
                    t.read(0.3)
                    os.write(t.master, b"\x03")
                    self.assertEqual(t.end(2), 0)
            finally:
                os.kill(agent.process.pid, signal.SIGCONT)

    def test_an_expression_is_watched_and_a_wrong_one_ends_it(self):
        with Terminal(url_of(self.agent), "--watch=200ms", "sum(traces_span_metrics_calls_total)") as t:
            t.wait_for(has("{} 30"))
            os.write(t.master, b"\x03")
            self.assertEqual(t.end(), 0)
        with Terminal(url_of(self.agent), "--watch", "sum(") as t:
            self.assertEqual(t.end(), 1)
            self.assertIn(b"parse error", t.seen.split(LEAVE)[-1])


class Elsewhere(unittest.TestCase):
    def start(self, url, *arguments, stdout=subprocess.PIPE):
        return subprocess.Popen([run.PROGRAM, "query", "--url", url] + list(arguments), stdout=stdout,
                                stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)

    def test_frames_follow_each_other_one_write_each(self):
        with Agent() as agent:
            send(agent, ["shop"])
            # A pipe of packets: each read gives what one write put.
            reading, writing = os.pipe2(os.O_DIRECT)
            process = self.start(url_of(agent), "--watch=100ms", stdout=writing)
            os.close(writing)
            packets = [os.read(reading, 65536).decode() for _ in range(3)]
            process.send_signal(signal.SIGINT)
            self.assertEqual(process.wait(5), 0)
            self.assertEqual(process.stderr.read(), b"")
            process.stderr.close()
            os.close(reading)
            for i, packet in enumerate(packets):
                lines = packet.split("\n")
                self.assertNotIn("\x1b", packet)
                self.assertEqual(lines.pop(0) if i else "", "")
                self.assertIn("every 100ms", lines[0])
                self.assertTrue(lines[1].startswith("SERVICE"))
                self.assertTrue(lines[2].startswith("shop "))
                self.assertEqual(lines[3:], [""])

    def test_json_is_nothing_but_answers_and_the_rest_goes_to_standard_error(self):
        agent = Agent()
        with agent:
            send(agent, ["shop"])
            process = self.start(url_of(agent), "--watch=100ms", "--json", "sum(traces_span_metrics_calls_total)")
            self.assertEqual(json.loads(process.stdout.readline())["status"], "success")
            agent.stop()
            self.assertIn(AWAY.encode(), process.stderr.readline())
            process.send_signal(signal.SIGINT)
            out, _ = process.communicate(timeout=5)
            self.assertEqual(process.returncode, 0)
            for line in out.splitlines():
                if line:
                    self.assertEqual(json.loads(line)["status"], "success")

    def test_an_agent_that_never_was_there_is_no_end(self):
        process = self.start("http://127.0.0.1:1", "--watch=100ms")
        lines = [process.stdout.readline().decode() for _ in range(5)]
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=5)
        self.assertEqual(process.returncode, 0)
        self.assertEqual([AWAY in line for line in lines], [False, True, False, False, True])


if __name__ == "__main__":
    sys.exit(run.main())
