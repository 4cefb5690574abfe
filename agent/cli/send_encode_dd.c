/* SPDX-License-Identifier: Apache-2.0 */
/* send_encode_dd: see send_encode_dd.h. */
#include "cli/send_encode_dd.h"

#include <stdio.h>

#define AGENT_TEXT "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0"

struct filling {
    struct send_dd_span *storage;
    struct weir_trace_span *span;
};

static void meta(struct filling *f, const char *key, const char *value)
{
    f->storage->tags[f->span->tag_count++] = (struct weir_trace_tag){
        .key = weir_str_c(key), .value = {.type = WEIR_TRACE_STR, .v = {.str = weir_str_c(value)}}};
}

static void metric(struct filling *f, const char *key, int64_t value)
{
    f->storage->tags[f->span->tag_count++] = (struct weir_trace_tag){
        .key = weir_str_c(key), .value = {.type = WEIR_TRACE_INT, .v = {.i = value}}};
}

static const char *kind_text(enum weir_kind kind)
{
    switch (kind) {
    case WEIR_KIND_SERVER:
        return "server";
    case WEIR_KIND_CLIENT:
        return "client";
    case WEIR_KIND_PRODUCER:
        return "producer";
    case WEIR_KIND_CONSUMER:
        return "consumer";
    case WEIR_KIND_INTERNAL:
    case WEIR_KIND_NONE:
        break;
    }
    return "internal";
}

/* Statuses are three digits: no formatting on the way. */
static void status_text(uint16_t status, char dst[4])
{
    dst[0] = (char)('0' + status / 100 % 10);
    dst[1] = (char)('0' + status / 10 % 10);
    dst[2] = (char)('0' + status % 10);
    dst[3] = 0;
}

static void http_tags(struct filling *f, const struct send_endpoint *e, const struct send_span *s)
{
    char *const status = f->storage->text;
    char *const url = status + 4;
    status_text(s->error ? e->error_status : e->ok_status, status);
    (void)snprintf(url, SEND_DD_TEXT - 4, "https://%s/r/%08x", e->host, (unsigned)s->salt);
    meta(f, "http.method", e->method);
    meta(f, "http.route", e->route);
    meta(f, "http.status_code", status);
    meta(f, "http.url", url);
    meta(f, "http.useragent", AGENT_TEXT);
}

static void db_tags(struct filling *f, const struct send_endpoint *e, const struct send_span *s)
{
    (void)snprintf(f->storage->text, SEND_DD_TEXT, "connection-%04x", (unsigned)s->salt & 0xffff);
    meta(f, "db.system", e->system);
    meta(f, "db.name", e->route);
    meta(f, "db.operation", e->method);
    meta(f, "db.connection", f->storage->text);
    meta(f, "out.host", e->host);
}

static void queue_tags(struct filling *f, const struct send_endpoint *e, const struct send_span *s)
{
    (void)snprintf(f->storage->text, SEND_DD_TEXT, "%08x-%s", (unsigned)s->salt, e->route);
    meta(f, "messaging.system", e->system);
    meta(f, "messaging.destination.name", e->route);
    meta(f, "messaging.operation", e->method);
    meta(f, "messaging.message.id", f->storage->text);
    meta(f, "out.host", e->host);
}

static void work_tags(struct filling *f, const struct send_endpoint *e, const struct send_span *s)
{
    (void)snprintf(f->storage->text, SEND_DD_TEXT, "job-%08x", (unsigned)s->salt);
    meta(f, "job.id", f->storage->text);
    meta(f, "job.queue", "default");
    meta(f, "job.priority", "normal");
    meta(f, "worker.host", e->host);
    meta(f, "thread.name", "worker-1");
}

void cli_send_dd_fill(const struct send_encoder_opts *o, const struct send_endpoint *e,
                      const struct send_span *s, int64_t end_ns, struct send_dd_span *storage,
                      struct weir_trace_span *ret)
{
    *ret = (struct weir_trace_span){
        .service = weir_str_c(e->service),
        .name = weir_str_c(e->operation),
        .resource = weir_str_c(e->resource),
        .type = weir_str_c(e->type),
        .trace_id = s->trace_id,
        .span_id = s->span_id,
        .parent_id = s->parent_id,
        .start_ns = end_ns - s->duration_ns,
        .duration_ns = s->duration_ns,
        .error = s->error ? 1 : 0,
        .tags = storage->tags,
    };
    struct filling f = {.storage = storage, .span = ret};
    meta(&f, "env", o->env);
    meta(&f, "version", "1.4.2");
    meta(&f, "span.kind", kind_text(e->kind));
    meta(&f, "component", e->component);
    meta(&f, "language", "c");
    meta(&f, "runtime-id", o->runtime_id);
    switch (e->shape) {
    case SEND_HTTP:
        http_tags(&f, e, s);
        break;
    case SEND_DB:
        db_tags(&f, e, s);
        break;
    case SEND_QUEUE:
        queue_tags(&f, e, s);
        break;
    case SEND_WORK:
        work_tags(&f, e, s);
        break;
    }
    metric(&f, "_sampling_priority_v1", 1);
    metric(&f, s->top_level ? "_dd.top_level" : "_dd.measured", 1);
    metric(&f, "process_id", 4242);
}
