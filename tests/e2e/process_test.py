# SPDX-License-Identifier: Apache-2.0
"""How the program starts, refuses to start, and stops."""
import os
import re
import signal
import socket
import subprocess
import tempfile
import time
import unittest

from weirtest import run
from weirtest.agent import Agent
from weirtest.http import request


def weir(*arguments, environment=None, timeout=20):
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("WEIR_", "DD_"))}
    kept.update(environment or {})
    return subprocess.run([run.PROGRAM] + list(arguments), stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, timeout=timeout, env=kept)


class Verbs(unittest.TestCase):
    def test_version_and_help_succeed(self):
        for arguments in (["--version"], ["version"]):
            done = weir(*arguments)
            self.assertEqual(done.returncode, 0)
            self.assertRegex(done.stdout, r"\d+\.\d+\.\d+")
        for arguments in (["--help"], ["help"], ["agent", "--help"], ["send", "--help"], ["query", "--help"]):
            done = weir(*arguments)
            self.assertEqual((done.returncode, done.stderr), (0, ""), arguments)
            self.assertIn("usage", done.stdout.lower(), arguments)

    def test_an_unknown_verb_or_none_is_wrong_usage(self):
        self.assertEqual(weir("frobnicate").returncode, 2)
        self.assertIn("frobnicate", weir("frobnicate").stderr)
        self.assertEqual(weir().returncode, 2)

    def test_a_query_without_an_agent_fails_and_says_where_it_looked(self):
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))  # taken, and nobody listens
            url = "http://127.0.0.1:%d" % s.getsockname()[1]
            done = weir("query", "--url", url)
        self.assertEqual(done.returncode, 1)
        self.assertIn(url, done.stderr)


class Options(unittest.TestCase):
    def refused(self, *arguments, environment=None):
        done = weir("agent", *arguments, environment=environment)
        self.assertEqual(done.returncode, 2, "%r: %s%s" % (arguments, done.stdout, done.stderr))
        return done.stderr

    def test_a_bad_flag_is_refused_by_name(self):
        self.assertIn("aggregation.windw", self.refused("--aggregation.windw=10s"))
        self.assertIn("aggregation.window", self.refused("--aggregation.windw=10s"))  # the nearest name
        self.assertIn("aggregation.window", self.refused("--aggregation.window=0s"))
        self.assertIn("aggregation.window", self.refused("--aggregation.window=10sx"))
        self.assertIn("aggregation.late", self.refused("--aggregation.late=never"))
        self.assertIn("web.listen-address", self.refused("--web.listen-address=127.0.0.1:65536"))
        self.assertIn("aggregation.max-keys",
                      self.refused("--aggregation.max-keys=100", "--aggregation.max-keys=200"))
        self.assertIn("WEIR_AGGREGATION_MAX_KEYS",
                      self.refused(environment={"WEIR_AGGREGATION_MAX_KEYS": "many"}))

    def test_a_bad_file_is_refused_with_its_place(self):
        for text, place in (("log:\n  level: info\nagregation:\n  window: 10s\n", ":3"),
                            ("aggregation:\n  window: 10s\n  window: 20s\n", ":3"),
                            ("aggregation:\n  window: soon\n", ":2"),
                            ("aggregation: {window: 10s\n", ":")):
            with tempfile.NamedTemporaryFile("w", suffix=".yaml") as f:
                f.write(text)
                f.flush()
                self.assertIn(f.name + place, self.refused("--config.file=" + f.name))
        self.assertIn("/nowhere/weir.yaml", self.refused("--config.file=/nowhere/weir.yaml"))

    def test_a_flag_wins_over_the_environment_over_the_file(self):
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as f:
            f.write("aggregation:\n  window: 11s\n  lateness: 12s\n  max-keys: 1234\n")
            f.flush()
            done = weir("agent", "--print-config", "--config.file=" + f.name, "--aggregation.window=15s",
                        environment={"WEIR_AGGREGATION_WINDOW": "14s", "WEIR_AGGREGATION_LATENESS": "13s"})
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, r"window: *\"?15s")
        self.assertRegex(done.stdout, r"lateness: *\"?13s")
        self.assertRegex(done.stdout, r"max-keys: *\"?1234")


class Life(unittest.TestCase):
    def test_it_is_healthy_and_ends_by_signal_with_status_0(self):
        for how in (signal.SIGTERM, signal.SIGINT):
            with Agent() as agent:
                self.assertEqual(agent.get("/-/healthy").status, 200)
                self.assertEqual(agent.get("/-/ready").status, 200)
                begun = time.monotonic()
                self.assertEqual(agent.stop(how), 0)
                self.assertLess(time.monotonic() - begun, 10)
                with self.assertRaises(OSError):
                    request(agent.web, "GET", "/-/healthy")
                self.assertFalse(os.path.exists(agent.socket), "the unix socket was left behind")

    def test_a_port_that_is_taken_ends_the_start_naming_option_and_port(self):
        for option, attribute in (("receivers.datadog.listen-address", "datadog"),
                                  ("receivers.otlp.http-listen-address", "otlp"),
                                  ("receivers.otlp.grpc-listen-address", "grpc"), ("web.listen-address", "web")):
            agent = Agent(start=False)
            with agent, socket.socket() as taken:
                taken.bind(getattr(agent, attribute))
                taken.listen()
                done = subprocess.run(agent.command(), capture_output=True, text=True, timeout=20)
                self.assertEqual(done.returncode, 1, done.stderr)
                self.assertIn(option, done.stderr)
                self.assertIn(str(getattr(agent, attribute)[1]), done.stderr)

    def test_port_0_picks_one_and_prints_it(self):
        agent = Agent(start=False)
        with agent:
            command = [re.sub(r":\d+$", ":0", a) if "listen-address" in a else a for a in agent.command()]
            process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
            try:
                ports = []
                while len(ports) < 4:
                    line = process.stdout.readline()
                    self.assertTrue(line, "it ended before it said where it listens: %r" % ports)
                    ports += [int(p) for p in re.findall(r"127\.0\.0\.1:(\d+)", line)]
                self.assertNotIn(0, ports)
                self.assertEqual(len(set(ports)), 4)
                answers = [request(("127.0.0.1", ports[i]), "GET", "/-/healthy").status for i in (0, 1, 3)]
                self.assertIn(200, answers)
            finally:
                process.terminate()
                self.assertEqual(process.wait(15), 0)
                process.stdout.close()

    def test_a_listener_that_is_off_is_not_there(self):
        agent = Agent(start=False)
        with agent:
            agent.command = lambda inner=agent.command(): [
                "--receivers.otlp.http-listen-address=" if "otlp.http" in a else a for a in inner]
            agent.start()
            with self.assertRaises(OSError):
                request(agent.otlp, "POST", "/v1/traces")
            self.assertEqual(request(agent.datadog, "GET", "/info").status, 200)

    def test_another_agent_s_socket_is_left_alone_and_a_stale_one_replaced(self):
        with Agent() as agent:
            self.assertEqual(request(agent.socket, "GET", "/info").status, 200)
            agent.stop(signal.SIGKILL)
            self.assertTrue(os.path.exists(agent.socket))
            agent.start()  # over the stale socket
            self.assertEqual(request(agent.socket, "GET", "/info").status, 200)
            other = Agent(start=False)
            with other:
                other.socket = agent.socket
                done = subprocess.run(other.command(), capture_output=True, text=True, timeout=20)
                self.assertEqual(done.returncode, 1, done.stderr)
                self.assertIn("receivers.datadog.socket", done.stderr)
            self.assertEqual(request(agent.socket, "GET", "/info").status, 200)


if __name__ == "__main__":
    run.main()
