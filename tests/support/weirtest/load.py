# SPDX-License-Identifier: Apache-2.0
"""A sender that costs little: bodies packed once, in which only the times change."""
import struct
import threading
import time

from . import spans
from .http import Connection

_START = 0x1122334455667788  # stands for the start of each span until it is sent


def body(service, count, keys, first_key=0):
    """count traces of one span; their resources run through keys names."""
    return spans.pack([[{"service": service, "name": "web.request", "resource": "GET /%d" % ((first_key + i) % keys),
                         "trace_id": i + 1, "span_id": i + 1, "parent_id": 0, "start": _START, "duration": 1000000,
                         "error": int(i % 16 == 0), "meta": {"span.kind": "server"}, "metrics": {}}]
                       for i in range(count)])


def at(packed, end_ns):
    """The body with every span ending at end_ns."""
    return packed.replace(struct.pack(">Q", _START), struct.pack(">Q", end_ns - 1000000))


HEADERS = [("Content-Type", "application/msgpack")]


class Load:
    """A thread that sends to an agent until it is stopped or the agent goes. sent counts the spans of whole
    bodies handed to the kernel, acknowledged those that were answered 200."""

    def __init__(self, target, service, spans_a_body=40, keys=200, pause=0.01, now_ns=time.time_ns):
        self.target = target
        self.spans_a_body = spans_a_body
        self.pause = pause
        self.now_ns = now_ns
        self.bodies = [body(service, spans_a_body, keys, i * spans_a_body) for i in range(keys // spans_a_body)]
        self.sent = 0
        self.acknowledged = 0
        self.refused = []
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self):
        try:
            with Connection(self.target) as c:
                number = 0
                while not self.ended.is_set():
                    self.sent += self.spans_a_body
                    answer = c.request("PUT", "/v0.4/traces", at(self.bodies[number % len(self.bodies)], self.now_ns()),
                                       HEADERS)
                    number += 1
                    if answer.status == 200:
                        self.acknowledged += self.spans_a_body
                    else:
                        self.refused.append(answer.status)
                    self.ended.wait(self.pause)
        except (OSError, EOFError):
            pass

    def stop(self):
        self.ended.set()
        self.thread.join()
