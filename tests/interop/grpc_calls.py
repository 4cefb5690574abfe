# SPDX-License-Identifier: Apache-2.0
"""Calls of gRPC C-core by generated code, against an agent: grpc_calls.py HOST:PORT. Says what it sent, as JSON."""
import collections
import concurrent.futures
import json
import os
import sys
import time

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2_grpc
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

TRACES = "opentelemetry.proto.collector.trace.v1.TraceService"


def request(service, spans, failed_every=5, span_id=None):
    r = ExportTraceServiceRequest()
    resource = r.resource_spans.add()
    attribute = resource.resource.attributes.add()
    attribute.key, attribute.value.string_value = "service.name", service
    scope = resource.scope_spans.add()
    now = time.time_ns()
    for i in range(spans):
        s = scope.spans.add(trace_id=os.urandom(16), span_id=os.urandom(8) if span_id is None else span_id,
                            name="GET /ok", kind=2, start_time_unix_nano=now - 1000000 * (i + 1),
                            end_time_unix_nano=now)
        if i % failed_every == 0:
            s.status.code = 2
    return r


def code_of(call):
    try:
        call()
    except grpc.RpcError as error:
        return error.code().name
    return "OK"


def main(target):
    said = {}
    large = [("grpc.max_send_message_length", -1), ("grpc.max_receive_message_length", -1)]
    channel = grpc.insecure_channel(target, options=large)
    export = trace_service_pb2_grpc.TraceServiceStub(channel).Export
    health = health_pb2_grpc.HealthStub(channel).Check
    said["health"] = [code_of(lambda: health(health_pb2.HealthCheckRequest(service=s), timeout=5))
                      for s in ("", TRACES, "nobody")]
    said["serving"] = health(health_pb2.HealthCheckRequest(), timeout=5).status
    codes = collections.Counter()
    for compression in (grpc.Compression.NoCompression, grpc.Compression.Gzip, grpc.Compression.Deflate):
        for spans in (1, 50, 1000):
            codes[code_of(lambda: export(request("one", spans), timeout=10, compression=compression))] += 1
    codes[code_of(lambda: export(ExportTraceServiceRequest(), timeout=10))] += 1
    with concurrent.futures.ThreadPoolExecutor(16) as pool:  # many streams of one connection
        for code in pool.map(lambda _: code_of(lambda: export(request("many", 40), timeout=20)), range(200)):
            codes[code] += 1
    said["codes"] = codes
    partial = export(request("partial", 3, span_id=b"short"), timeout=5).partial_success
    said["partial"] = [partial.rejected_spans, bool(partial.error_message)]
    raw = channel.unary_unary("/%s/Export" % TRACES)
    said["bad"] = code_of(lambda: raw(b"\xff\xff\xff", timeout=5))
    said["large"] = code_of(lambda: raw(bytes(30 * 1024 * 1024), timeout=20))
    said["bomb"] = code_of(lambda: raw(bytes(200 * 1024 * 1024), timeout=60, compression=grpc.Compression.Gzip))
    said["unknown"] = code_of(lambda: channel.unary_unary("/%s/Nothing" % TRACES)(b"", timeout=5))
    said["after"] = code_of(lambda: export(request("one", 10), timeout=10))
    print(json.dumps(said))


main(sys.argv[1])
