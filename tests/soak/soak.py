#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""soak: ./dev soak [--minutes N] [--rate N] [--library-spans N] [--agent-spans N]

Three long things, each with its verdict on a line:
  library  random spans against a naive model (tests/prop/engine_prop.c): both equations, every window
  agent    spans at a rate for N minutes with churning keys: every run of `weir send --check` exact,
           /debug/reconcile balanced, resident memory flat: at the end at most 1 % or 512 KiB above
           what it was after a third of the time
  flat out the rest of --agent-spans as fast as they go, checked the same way
Results go to standard output; exit 0 when all hold. Standard library only.
"""
import argparse
import json
import os
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from weirtest import run  # noqa: E402
from weirtest.agent import Agent  # noqa: E402

KEYS_A_RUN = ("--services=40", "--resources=25")  # new rows each minute: each run has its own env


def rss_kib(pid):
    with open("/proc/%d/status" % pid) as f:
        return next(int(line.split()[1]) for line in f if line.startswith("VmRSS:"))


def library(spans):
    """The four runs of the property test, a quarter of the spans each."""
    begun = time.monotonic()
    program = os.path.join(run.BUILD, "tests", "prop", "test_prop_engine")
    done = subprocess.run([program], env=dict(os.environ, T_SPANS=str(spans // 4)), capture_output=True, text=True)
    ok = done.returncode == 0
    print("library: %s: %d spans, %.0f s" % ("ok" if ok else "FAILED", spans, time.monotonic() - begun), flush=True)
    if not ok:
        print(done.stdout[-2000:] + done.stderr[-2000:])
    return ok


def send(agent, *options):
    done = subprocess.run([run.PROGRAM, "send", "--url=http://127.0.0.1:%d" % agent.datadog[1],
                           "--query-url=http://127.0.0.1:%d" % agent.web[1], "--check", "--json", "--quiet", *options],
                          capture_output=True, text=True)
    if done.returncode != 0:
        print("send %s: exit %d\n%s%s" % (" ".join(options), done.returncode, done.stdout[-1500:], done.stderr[-1500:]))
        return 0
    return int(json.loads(done.stdout)["spans"])


def balanced(agent):
    return json.loads(agent.get("/debug/reconcile").body)["balanced"]


def at_rate(agent, minutes, rate):
    """Runs of a minute until the time is over; (spans, all exact, RSS readings by second). All runs are
    of one length, so that as many keys are live at each reading."""
    begun = time.monotonic()
    spans, exact, readings = 0, True, []
    run_for = min(60, int(minutes * 60))
    while exact and time.monotonic() - begun < minutes * 60:
        got = send(agent, "--preset=simple", *KEYS_A_RUN, "--rate=%d" % rate, "--for=%ds" % run_for)
        exact = got > 0 and balanced(agent)
        spans += got
        readings.append((time.monotonic() - begun, rss_kib(agent.process.pid)))
        print("agent: %4.1f min, %d spans, RSS %d KiB" % (readings[-1][0] / 60, spans, readings[-1][1]), flush=True)
    return spans, exact, readings


def flat(readings, minutes):
    """The last reading against the first one after a third of the time."""
    third = next((r for t, r in readings if t >= minutes * 20), readings[0][1])
    last = readings[-1][1]
    allowed = max(third // 100, 512)
    print("agent: RSS %d KiB after a third, %d KiB at the end, %+d allowed %d: %s" %
          (third, last, last - third, allowed, "flat" if last - third <= allowed else "NOT flat"), flush=True)
    return last - third <= allowed


def agent_soak(options):
    with Agent() as agent:
        spans, exact, readings = at_rate(agent, options.minutes, options.rate)
        ok = exact and flat(readings, options.minutes)
        print("agent: %s: %d spans at %d/s, every check exact, balanced" %
              ("ok" if ok else "FAILED", spans, options.rate), flush=True)
        rest = options.agent_spans - spans
        sent = 0
        while ok and sent < rest:
            got = send(agent, "--preset=simple", *KEYS_A_RUN, "--rate=0", "--count=%d" % min(2000000, rest - sent))
            ok = got > 0 and balanced(agent)
            sent += got
        if rest > 0:
            print("flat out: %s: %d spans more" % ("ok" if ok else "FAILED", sent), flush=True)
        return agent.stop(signal.SIGTERM) == 0 and ok


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--rate", type=int, default=20000)
    parser.add_argument("--library-spans", type=int, default=10**8)
    parser.add_argument("--agent-spans", type=int, default=10**7)
    options = parser.parse_args()
    ok = library(options.library_spans)
    ok = agent_soak(options) and ok
    print("soak: " + ("ok" if ok else "FAILED"))
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
