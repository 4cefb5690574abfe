# SPDX-License-Identifier: Apache-2.0
"""Readers of trace bodies, written from the public formats, and the rows such spans must become.

Small on purpose: they read what well-behaved clients send, and raise on everything else.
"""
import math
import struct
from collections import Counter, namedtuple

# kind: server, client, producer, consumer, internal or "". status: the HTTP status as text or "".
Span = namedtuple("Span", "service operation resource kind status error env start duration")

# The stated relative accuracy of a quantile: (g - 1) / (g + 1), g = 2^(1/64).
ALPHA = (2 ** (1 / 64) - 1) / (2 ** (1 / 64) + 1)


# MessagePack

def unpack(data):
    value, at = _unpack(data, 0)
    if at != len(data):
        raise ValueError("%d bytes after the message" % (len(data) - at))
    return value


_NUMBERS = {0xCA: ">f", 0xCB: ">d", 0xCC: ">B", 0xCD: ">H", 0xCE: ">I", 0xCF: ">Q",
            0xD0: ">b", 0xD1: ">h", 0xD2: ">i", 0xD3: ">q"}
_LENGTHS = {0xC4: ("bin", ">B"), 0xC5: ("bin", ">H"), 0xC6: ("bin", ">I"),
            0xD9: ("str", ">B"), 0xDA: ("str", ">H"), 0xDB: ("str", ">I"),
            0xDC: ("array", ">H"), 0xDD: ("array", ">I"), 0xDE: ("map", ">H"), 0xDF: ("map", ">I")}


def _unpack(data, at):
    tag = data[at]
    at += 1
    if tag < 0x80:
        return tag, at
    if tag >= 0xE0:
        return tag - 0x100, at
    if tag < 0x90:
        return _unpack_many(data, at, "map", tag & 0x0F)
    if tag < 0xA0:
        return _unpack_many(data, at, "array", tag & 0x0F)
    if tag < 0xC0:
        return _unpack_many(data, at, "str", tag & 0x1F)
    if tag in (0xC0, 0xC2, 0xC3):
        return {0xC0: None, 0xC2: False, 0xC3: True}[tag], at
    if tag in _NUMBERS:
        form = _NUMBERS[tag]
        return struct.unpack_from(form, data, at)[0], at + struct.calcsize(form)
    what, form = _LENGTHS[tag]
    return _unpack_many(data, at + struct.calcsize(form), what, struct.unpack_from(form, data, at)[0])


def _unpack_many(data, at, what, count):
    if what in ("str", "bin"):
        raw = data[at:at + count]
        if len(raw) != count:
            raise ValueError("cut short")
        return (raw.decode("utf-8", "replace") if what == "str" else raw), at + count
    if what == "array":
        items = []
        for _ in range(count):
            item, at = _unpack(data, at)
            items.append(item)
        return items, at
    pairs = {}
    for _ in range(count):
        key, at = _unpack(data, at)
        pairs[key], at = _unpack(data, at)
    return pairs, at


def pack(value):
    """The MessagePack of None, bool, int, float, str, bytes, list and dict, in minimal widths."""
    if value is None or isinstance(value, bool):
        return {None: b"\xc0", False: b"\xc2", True: b"\xc3"}[value]
    if isinstance(value, int):
        if -32 <= value < 128:
            return struct.pack("b", value) if value < 0 else struct.pack("B", value)
        forms = ((0xCC, ">B"), (0xCD, ">H"), (0xCE, ">I"), (0xCF, ">Q")) if value > 0 else (
            (0xD0, ">b"), (0xD1, ">h"), (0xD2, ">i"), (0xD3, ">q"))
        for tag, form in forms:
            try:
                return bytes([tag]) + struct.pack(form, value)
            except struct.error:
                continue
        raise ValueError("too large")
    if isinstance(value, float):
        return b"\xcb" + struct.pack(">d", value)
    if isinstance(value, str):
        raw = value.encode()
        head = bytes([0xA0 | len(raw)]) if len(raw) < 32 else b"\xdb" + struct.pack(">I", len(raw))
        return head + raw
    if isinstance(value, bytes):
        return b"\xc6" + struct.pack(">I", len(value)) + value
    if isinstance(value, (list, tuple)):
        return b"\xdd" + struct.pack(">I", len(value)) + b"".join(map(pack, value))
    return b"\xdf" + struct.pack(">I", len(value)) + b"".join(pack(k) + pack(v) for k, v in value.items())


# Datadog

def _dd_span(service, operation, resource, start, duration, error, meta, metrics):
    partial = metrics.get("_dd.partial_version")
    if partial is not None and partial >= 0:
        return None
    status = meta.get("http.status_code", metrics.get("http.status_code", ""))
    kind = (meta.get("span.kind") or "").lower()
    return Span(service, operation, resource or operation,
                kind if kind in ("server", "client", "producer", "consumer", "internal") else "",
                "" if status == "" else str(int(float(status))), bool(error), meta.get("env", ""), start,
                max(duration, 0))


def _v04_fields(s, meta):
    return _dd_span(s.get("service") or "", s.get("name") or "", s.get("resource") or "", s.get("start") or 0,
                    s.get("duration") or 0, s.get("error") or 0, meta, s.get("metrics") or {})


def read_v04(body):
    for trace in unpack(body):
        for s in trace:
            yield _v04_fields(s, s.get("meta") or {})


def read_v05(body):
    strings, traces = unpack(body)
    for trace in traces:
        for s in trace:
            meta = {strings[k]: strings[v] for k, v in s[9].items()}
            metrics = {strings[k]: v for k, v in s[10].items()}
            yield _dd_span(strings[s[0]], strings[s[1]], strings[s[2]], s[6], s[7], s[8], meta, metrics)


def read_v07(body):
    payload = unpack(body)
    for chunk in payload.get("chunks", []):
        for s in chunk.get("spans", []):
            yield _v04_fields(s, dict({"env": payload.get("env", "")}, **(s.get("meta") or {})))


class _V1:
    """v1.0: a string stands as text once, and is its number from then on; so the order of reading matters."""

    KINDS = {1: "internal", 2: "server", 3: "client", 4: "producer", 5: "consumer"}

    def __init__(self, payload):
        self.strings = [""]
        self.env, self.spans = "", []
        for key, value in payload.items():  # in the order of the bytes
            if key == 7:
                self.env = self.text(value)
            elif key == 10:
                self.attributes(value)
            elif key == 11:
                self.chunks(value)
            else:
                self.text(value)

    def text(self, value):
        if isinstance(value, int):
            return self.strings[value]
        self.strings.append(value)
        return value

    def attribute(self, kind, value):
        if kind == 1:
            return self.text(value)
        if kind == 6:
            return [self.attribute(*value[i:i + 2]) for i in range(0, len(value), 2)]
        return self.attributes(value) if kind == 7 else value

    def attributes(self, flat):
        found = {}
        for i in range(0, len(flat), 3):
            key = self.text(flat[i])
            found[key] = self.attribute(*flat[i + 1:i + 3])
        return found

    def chunks(self, chunks):
        for chunk in chunks:
            for key, value in chunk.items():
                if key == 2:
                    self.text(value)
                elif key == 3:
                    self.attributes(value)
                elif key == 4:
                    self.spans += [self.span(s) for s in value]

    def span(self, members):
        found = {}
        for key, value in members.items():
            if key in (1, 2, 3, 10, 13, 14, 15):
                value = self.text(value)
            elif key == 9:
                value = self.attributes(value)
            elif key in (11, 12) and value:
                raise ValueError("links and events are not read here")
            found[key] = value
        return found


def read_v1(body):
    payload = _V1(unpack(body))
    for s in payload.spans:
        both = s.get(9, {})
        meta = {k: v for k, v in both.items() if isinstance(v, str)}
        metrics = {k: v for k, v in both.items() if isinstance(v, (int, float)) and not isinstance(v, bool)}
        meta["env"] = s.get(13) or meta.get("env") or payload.env
        meta["span.kind"] = _V1.KINDS.get(s.get(16), meta.get("span.kind", ""))
        yield _dd_span(s.get(1, ""), s.get(2, ""), s.get(3, ""), s.get(6, 0), s.get(7, 0), s.get(8, False), meta, metrics)


# OTLP: protobuf by hand. Field numbers of opentelemetry.proto.trace.v1, resource.v1, common.v1.

def _fields(data):
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        wire = tag & 7
        if wire == 0:
            value, at = _varint(data, at)
        elif wire == 1:
            value, at = struct.unpack_from("<Q", data, at)[0], at + 8
        elif wire == 5:
            value, at = struct.unpack_from("<I", data, at)[0], at + 4
        elif wire == 2:
            size, at = _varint(data, at)
            value, at = data[at:at + size], at + size
            if len(value) != size:
                raise ValueError("cut short")
        else:
            raise ValueError("wire type %d" % wire)
        yield tag >> 3, value


def _varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at


def _attributes(pairs):
    found = {}
    for pair in pairs:
        key, value = "", ""
        for number, content in _fields(pair):
            if number == 1:
                key = content.decode("utf-8", "replace")
            else:
                for form, raw in _fields(content):
                    if form == 1:
                        value = raw.decode("utf-8", "replace")
                    elif form == 3:
                        value = raw - (1 << 64) if raw >> 63 else raw
                    elif form == 4:
                        value = struct.unpack("<d", struct.pack("<Q", raw))[0]
        found[key] = value
    return found


def read_otlp(body):
    kinds = {1: "internal", 2: "server", 3: "client", 4: "producer", 5: "consumer"}
    for _, resource_spans in _fields(body):
        resource, scopes = {}, []
        for number, content in _fields(resource_spans):
            if number == 1:
                resource = _attributes([v for n, v in _fields(content) if n == 1])
            elif number == 2:
                scopes.append(content)
        for scope in scopes:
            for raw in (v for n, v in _fields(scope) if n == 2):
                fields = {}
                attributes = _attributes([v for n, v in _fields(raw) if n == 9])
                for number, value in _fields(raw):
                    fields[number] = value
                code = dict(_fields(fields.get(15, b""))).get(3, 0)
                status = attributes.get("http.response.status_code", attributes.get("http.status_code", ""))
                yield Span(resource.get("service.name") or "unnamed-service",
                           attributes.get("operation.name", ""),
                           attributes.get("resource.name") or fields.get(5, b"").decode("utf-8", "replace"),
                           kinds.get(fields.get(6, 0), ""), str(status), code == 2,
                           resource.get("deployment.environment.name",
                                        resource.get("deployment.environment", "")),
                           fields.get(7, 0), max(fields.get(8, 0) - fields.get(7, 0), 0))


def read_body(path, body):
    """The spans of a request's decoded body; [] where the route is none for traces."""
    for route, reader in (("/v0.3/traces", read_v04), ("/v0.4/traces", read_v04),
                          ("/v0.5/traces", read_v05), ("/v0.7/traces", read_v07), ("/v1.0/traces", read_v1),
                          ("/v1/traces", read_otlp)):
        if path.split("?")[0] == route:
            return [s for s in reader(body) if s is not None]
    return []


# Rows

def key_of(span):
    """What tells rows apart here: (service, operation, resource, kind, HTTP status, status code)."""
    kind = "SPAN_KIND_" + (span.kind.upper() or "UNSPECIFIED")
    return (span.service, span.operation, span.resource, kind, span.status,
            "STATUS_CODE_ERROR" if span.error else "STATUS_CODE_UNSET")


def rows_of(spans):
    return Counter(key_of(s) for s in spans)


def rows_of_answer(vector):
    """The same from an instant answer for traces_span_metrics_calls_total."""
    rows = Counter()
    for labels, value in vector:
        key = (labels["service_name"], labels.get("operation_name", ""), labels.get("span_name", ""),
               labels["span_kind"], labels.get("http_response_status_code", ""), labels["status_code"])
        if value != int(value):
            raise AssertionError("%r has %r calls" % (labels, value))
        rows[key] += int(value)
    return rows


def exact_quantile(durations_ns, q):
    """The recorded duration of 0-based rank floor(q (n - 1)), in seconds."""
    ordered = sorted(durations_ns)
    return ordered[math.floor(q * (len(ordered) - 1))] / 1e9
