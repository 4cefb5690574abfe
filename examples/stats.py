#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Span statistics from Python by ctypes: the host drives the shard with weir_stats_poll.

    python3 stats.py libweir.so
"""
import ctypes as c
import sys

ONE = 1 << 20  # WEIR_WEIGHT_ONE
LABELS_MAX = 64


class Bytes(c.Structure):
    _fields_ = [("ptr", c.c_char_p), ("len", c.c_size_t)]


class Source(c.Structure):
    _fields_ = [("lang", Bytes), ("flags", c.c_uint32), ("now_ns", c.c_int64)]


class Span(c.Structure):
    _fields_ = [
        ("service", Bytes), ("name", Bytes), ("resource", Bytes), ("type", Bytes),
        ("trace_id_hi", c.c_uint64), ("trace_id", c.c_uint64), ("span_id", c.c_uint64),
        ("parent_id", c.c_uint64), ("start_ns", c.c_int64), ("duration_ns", c.c_int64),
        ("weight", c.c_uint64), ("kind", c.c_uint8), ("flags", c.c_uint8),
        ("present", c.c_uint64), ("slots", c.c_void_p), ("raw_offset", c.c_size_t),
        ("raw_bytes", c.c_size_t),
    ]


class Row(c.Structure):
    _fields_ = [("hits", c.c_uint64), ("errors", c.c_uint64), ("top_level", c.c_uint64),
                ("ok", c.c_void_p), ("error", c.c_void_p)]


class View(c.Structure):  # of bytes that are not NUL-terminated
    _fields_ = [("ptr", c.c_void_p), ("len", c.c_size_t)]

    def text(self):
        return c.string_at(self.ptr, self.len).decode() if self.len else ""


class Label(c.Structure):
    _fields_ = [("name", View), ("value", View)]


def load(path):
    lib = c.CDLL(path)
    lib.weir_strerror.restype = c.c_char_p
    lib.weir_stats_take_batch.restype = c.c_void_p
    lib.weir_batch_get_labels.restype = c.c_size_t
    lib.weir_stats_poll.argtypes = [c.c_void_p, c.c_int64, c.c_int64]
    lib.weir_stats_seal_all.argtypes = [c.c_void_p, c.c_int64, c.c_int64]
    lib.weir_stats_publish.argtypes = [c.c_void_p, c.c_void_p, c.c_void_p, c.c_size_t]
    lib.weir_stats_publish_identity.argtypes = [c.c_void_p, c.c_void_p, c.c_int64, c.c_int64,
                                                c.c_uint32, c.c_uint64]
    lib.weir_batch_get_row.argtypes = [c.c_void_p, c.c_size_t, c.c_void_p]
    lib.weir_batch_get_labels.argtypes = [c.c_void_p, c.c_size_t, c.c_void_p, c.c_size_t]
    for name in ("weir_batch_release", "weir_stats_free", "weir_stats_take_batch"):
        getattr(lib, name).argtypes = [c.c_void_p]
    return lib


def text(s):
    raw = s.encode()
    return Bytes(raw, len(raw))


def rows(lib, stats):
    """(labels, hits, errors) of each row that is sealed."""
    while batch := lib.weir_stats_take_batch(stats):
        info = (c.c_uint64 * 64)()  # struct weir_batch_info: start, length, shard and flags, rows
        lib.weir_batch_get_info(c.c_void_p(batch), info)
        for i in range(info[3]):
            row = Row()
            lib.weir_batch_get_row(batch, i, c.byref(row))
            labels = (Label * LABELS_MAX)()
            count = lib.weir_batch_get_labels(batch, i, labels, LABELS_MAX)
            yield ({label.name.text(): label.value.text() for label in labels[:count]},
                   row.hits // ONE, row.errors // ONE)
        lib.weir_batch_release(batch)


def main(path):
    lib = load(path)

    def check(error):
        if error:
            sys.exit("stats: " + lib.weir_strerror(error).decode())

    now = 1800000000 * 10**9
    stats, producer, orders = c.c_void_p(), c.c_void_p(), c.c_void_p()
    check(lib.weir_stats_new(None, c.byref(stats)))
    lib.weir_stats_poll(stats, now, 0)
    check(lib.weir_stats_producer(stats, c.byref(producer)))

    source = Source(now_ns=now)
    span = Span(service=text("shop"), name=text("http.request"), resource=text("GET /users"),
                trace_id=1, span_id=1, kind=2, start_ns=now, duration_ns=3000000)
    for i in range(3):
        span.flags = 1 if i == 2 else 0
        check(lib.weir_stats_publish(producer, c.byref(source), c.byref(span), 1))

    span.resource = text("GET /orders")
    check(lib.weir_stats_identity_new(stats, c.byref(source), c.byref(span), c.byref(orders)))
    for _ in range(5):
        check(lib.weir_stats_publish_identity(producer, orders, now, 2000000, 0, 0))

    lib.weir_stats_seal_all(stats, now, 0)
    for labels, hits, errors in rows(lib, stats):
        print(f"{labels['span_name']}: {hits} spans, {errors} errors")
    lib.weir_stats_free(stats)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "libweir.so.0")
