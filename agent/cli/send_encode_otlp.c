/* SPDX-License-Identifier: Apache-2.0 */
/*
 * send_encode_otlp: see send_encode_otlp.h. Field numbers: opentelemetry-proto 1.3, trace.proto,
 * common.proto and resource.proto. Attribute names: OpenTelemetry semantic conventions 1.27.
 */
#include "cli/send_encode_otlp.h"

#include <stdio.h>
#include <string.h>

enum {
    RESOURCE_SPANS_RESOURCE = 1,
    RESOURCE_ATTRIBUTES = 1,
    SCOPE_SPANS_SCOPE = 1,
    SCOPE_SPANS_SPANS = 2,
    SCOPE_NAME = 1,
    SCOPE_VERSION = 2,
    SPAN_TRACE_ID = 1,
    SPAN_SPAN_ID = 2,
    SPAN_PARENT_SPAN_ID = 4,
    SPAN_NAME = 5,
    SPAN_KIND = 6,
    SPAN_START = 7,
    SPAN_END = 8,
    SPAN_ATTRIBUTES = 9,
    SPAN_STATUS = 15,
    STATUS_MESSAGE = 2,
    STATUS_CODE = 3,
    KEY_VALUE_KEY = 1,
    KEY_VALUE_VALUE = 2,
    ANY_STRING = 1,
    ANY_INT = 3
};
#define STATUS_CODE_ERROR 2

static void put_text(struct wr_out *out, uint32_t field, const char *key, const char *value)
{
    const size_t pair = wr_pb_begin(out, field);
    wr_pb_put_cstr(out, KEY_VALUE_KEY, key);
    const size_t any = wr_pb_begin(out, KEY_VALUE_VALUE);
    wr_pb_put_cstr(out, ANY_STRING, value);
    wr_pb_end(out, any);
    wr_pb_end(out, pair);
}

static void put_int(struct wr_out *out, uint32_t field, const char *key, int64_t value)
{
    const size_t pair = wr_pb_begin(out, field);
    wr_pb_put_cstr(out, KEY_VALUE_KEY, key);
    const size_t any = wr_pb_begin(out, KEY_VALUE_VALUE);
    wr_pb_put_int(out, ANY_INT, value);
    wr_pb_end(out, any);
    wr_pb_end(out, pair);
}

static void text(struct wr_out *out, const char *key, const char *value)
{
    put_text(out, SPAN_ATTRIBUTES, key, value);
}

static void number(struct wr_out *out, const char *key, int64_t value)
{
    put_int(out, SPAN_ATTRIBUTES, key, value);
}

void cli_send_otlp_resource(struct wr_out *out, const struct send_encoder_opts *o,
                            const char *service)
{
    const size_t m = wr_pb_begin(out, RESOURCE_SPANS_RESOURCE);
    put_text(out, RESOURCE_ATTRIBUTES, "service.name", service);
    put_text(out, RESOURCE_ATTRIBUTES, "service.version", "1.4.2");
    put_text(out, RESOURCE_ATTRIBUTES, "service.instance.id", o->runtime_id);
    put_text(out, RESOURCE_ATTRIBUTES, "deployment.environment.name", o->env);
    put_text(out, RESOURCE_ATTRIBUTES, "host.name", "shop-node-1");
    put_int(out, RESOURCE_ATTRIBUTES, "process.pid", 4242);
    put_text(out, RESOURCE_ATTRIBUTES, "telemetry.sdk.name", "weir-send");
    put_text(out, RESOURCE_ATTRIBUTES, "telemetry.sdk.language", "c");
    put_text(out, RESOURCE_ATTRIBUTES, "telemetry.sdk.version", weir_version());
    wr_pb_end(out, m);
}

void cli_send_otlp_scope(struct wr_out *out)
{
    const size_t m = wr_pb_begin(out, SCOPE_SPANS_SCOPE);
    wr_pb_put_cstr(out, SCOPE_NAME, "weir/send");
    wr_pb_put_cstr(out, SCOPE_VERSION, weir_version());
    wr_pb_end(out, m);
}

static void common_attributes(struct wr_out *out, const struct send_endpoint *e, uint32_t salt)
{
    text(out, "thread.name", "worker-pool-1");
    number(out, "thread.id", 17 + (salt & 7));
    text(out, "code.function.name", e->operation);
    text(out, "code.file.path", "/srv/app/src/handlers.c");
    number(out, "code.line.number", 118);
    text(out, "server.address", e->host);
    number(out, "server.port", 8443);
    number(out, "network.peer.port", 32768 + (salt >> 8 & 0x3fff));
    text(out, "network.protocol.version", "1.1");
}

static void http_attributes(struct wr_out *out, const struct send_endpoint *e,
                            const struct send_span *s)
{
    char path[24];
    char url[96];
    (void)snprintf(path, sizeof path, "/r/%08x", (unsigned)s->salt);
    (void)snprintf(url, sizeof url, "https://%s%s?ref=front", e->host, path);
    text(out, "http.request.method", e->method);
    text(out, "http.route", e->route);
    number(out, "http.response.status_code", s->error ? e->error_status : e->ok_status);
    text(out, "url.full", url);
    text(out, "url.path", path);
    text(out, "url.scheme", "https");
    text(out, "client.address", "203.0.113.27");
    text(out, "network.peer.address", "10.1.4.19");
    text(out, "user_agent.original",
         "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0");
    number(out, "http.request.body.size", s->salt & 0xfff);
    number(out, "http.response.body.size", s->salt >> 4 & 0xffff);
}

static void db_attributes(struct wr_out *out, const struct send_endpoint *e,
                          const struct send_span *s)
{
    char id[24];
    (void)snprintf(id, sizeof id, "connection-%04x", (unsigned)s->salt & 0xffff);
    text(out, "db.system.name", e->system);
    text(out, "db.namespace", e->route);
    text(out, "db.operation.name", e->method);
    text(out, "db.query.summary", e->resource);
    text(out, "db.query.text", e->resource);
    text(out, "db.client.connection.pool.name", "orders-primary-pool");
    text(out, "db.connection", id);
    number(out, "db.response.returned_rows", s->salt & 0x3f);
    text(out, "network.peer.address", "10.1.7.3");
    text(out, "network.transport", "tcp");
    text(out, "db.user", "shop-application");
}

static void queue_attributes(struct wr_out *out, const struct send_endpoint *e,
                             const struct send_span *s)
{
    char id[24];
    (void)snprintf(id, sizeof id, "message-%08x", (unsigned)s->salt);
    text(out, "messaging.system", e->system);
    text(out, "messaging.destination.name", e->route);
    text(out, "messaging.operation.name", e->method);
    text(out, "messaging.operation.type", e->method);
    text(out, "messaging.message.id", id);
    text(out, "messaging.client.id", "shop-queue-client-3");
    text(out, "messaging.consumer.group.name", "order-workers");
    text(out, "messaging.destination.partition.id", "3");
    number(out, "messaging.message.body.size", s->salt & 0xfff);
    number(out, "messaging.kafka.offset", s->salt);
    text(out, "network.peer.address", "10.1.9.12");
}

static void work_attributes(struct wr_out *out, const struct send_endpoint *e,
                            const struct send_span *s)
{
    char id[24];
    (void)snprintf(id, sizeof id, "job-%08x", (unsigned)s->salt);
    text(out, "job.id", id);
    text(out, "job.name", e->resource);
    text(out, "job.queue", "default");
    text(out, "job.priority", "normal");
    number(out, "job.attempt", 1);
    number(out, "job.input.size", s->salt & 0xffff);
    text(out, "job.template", "invoice-a4-portrait");
    text(out, "job.locale", "en-GB");
    text(out, "job.scheduler", "shop-scheduler-1");
    text(out, "job.output.bucket", "invoices-2026");
    text(out, "job.output.format", "application/pdf");
}

static void put_ids(struct wr_out *out, const struct send_span *s)
{
    char id[16];
    /* The high half only has to be one of its own for the trace. */
    struct send_rng high = {.state = s->trace_id};
    wr_store64be(id, cli_send_rng_next(&high));
    wr_store64be(id + 8, s->trace_id);
    wr_pb_put_bytes(out, SPAN_TRACE_ID, (struct weir_bytes){.ptr = id, .len = 16});
    wr_store64be(id, s->span_id);
    wr_pb_put_bytes(out, SPAN_SPAN_ID, (struct weir_bytes){.ptr = id, .len = 8});
    if (s->parent_id) {
        wr_store64be(id, s->parent_id);
        wr_pb_put_bytes(out, SPAN_PARENT_SPAN_ID, (struct weir_bytes){.ptr = id, .len = 8});
    }
}

void cli_send_otlp_span(struct wr_out *out, const struct send_endpoint *e,
                        const struct send_span *s, int64_t end_ns)
{
    const size_t m = wr_pb_begin(out, SCOPE_SPANS_SPANS);
    put_ids(out, s);
    wr_pb_put_cstr(out, SPAN_NAME, e->resource);
    wr_pb_put_uint(out, SPAN_KIND, (uint64_t)e->kind);
    wr_pb_put_fixed64(out, SPAN_START, (uint64_t)(end_ns - s->duration_ns));
    wr_pb_put_fixed64(out, SPAN_END, (uint64_t)end_ns);
    common_attributes(out, e, s->salt);
    switch (e->shape) {
    case SEND_HTTP:
        http_attributes(out, e, s);
        break;
    case SEND_DB:
        db_attributes(out, e, s);
        break;
    case SEND_QUEUE:
        queue_attributes(out, e, s);
        break;
    case SEND_WORK:
        work_attributes(out, e, s);
        break;
    }
    if (s->error) {
        const size_t status = wr_pb_begin(out, SPAN_STATUS);
        wr_pb_put_cstr(out, STATUS_MESSAGE, "upstream failed");
        wr_pb_put_uint(out, STATUS_CODE, STATUS_CODE_ERROR);
        wr_pb_end(out, status);
    }
    wr_pb_end(out, m);
}
