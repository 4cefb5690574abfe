/* SPDX-License-Identifier: Apache-2.0 */
/*
 * send_encode: see send_encode.h. Datadog traces go straight into the library's encoder. OTLP
 * groups spans by resource, and a trace crosses services: so a batch's spans are kept, chained by
 * service, and written when the batch is finished.
 */
#include "cli/send_encode.h"

#include <libdeflate.h>
#include <stdlib.h>
#include <string.h>

#include "cli/send_encode_dd.h"
#include "cli/send_encode_otlp.h"

#define NONE UINT32_MAX
#define GZIP_LEVEL 1 /* what an exporter in a hurry uses */

struct kept_span {
    struct send_span span;
    uint32_t next; /* of the same service; NONE: the last */
};

struct service {
    const char *name;
    uint32_t first; /* kept span; NONE: no span in this batch */
    uint32_t last;
};

struct send_encoder {
    struct send_encoder_opts opts;
    const struct send_workload *workload;
    int64_t end_ns;
    uint64_t traces;
    /* Datadog */
    struct weir_trace_encoder *dd;
    struct send_dd_span *dd_tags; /* of one trace */
    struct weir_trace_span *dd_spans;
    /* OTLP */
    uint32_t *service_of; /* endpoint -> service */
    struct service *services;
    size_t service_count;
    struct kept_span *kept; /* SEND_BATCH_SPANS_MAX */
    size_t kept_count;
    struct wr_out out;
    /* gzip */
    struct libdeflate_compressor *gzip;
    char *packed;
    size_t packed_cap;
};

static int new_dd(struct send_encoder *e)
{
    e->dd_tags = calloc(SEND_TRACE_SPANS_MAX, sizeof *e->dd_tags);
    e->dd_spans = calloc(SEND_TRACE_SPANS_MAX, sizeof *e->dd_spans);
    if (!e->dd_tags || !e->dd_spans)
        return WEIR_ENOMEM;
    const struct weir_trace_opts o = {
        .struct_size = sizeof o,
        .version = e->opts.protocol == SEND_V05 ? WEIR_TRACE_V05 : WEIR_TRACE_V04,
        .max_bytes = SEND_BODY_MAX,
    };
    return weir_trace_encoder_new(&o, &e->dd);
}

static int service_order(const void *a, const void *b, void *ctx)
{
    const struct send_encoder *const e = ctx;
    const uint32_t *const ia = a;
    const uint32_t *const ib = b;
    return strcmp(cli_send_workload_endpoint(e->workload, *ia)->service,
                  cli_send_workload_endpoint(e->workload, *ib)->service);
}

/* Number the services: sort the endpoints by service, count the changes. */
static int new_services(struct send_encoder *e)
{
    const size_t n = cli_send_workload_endpoints(e->workload);
    uint32_t *const order = calloc(n, sizeof *order);
    e->service_of = calloc(n, sizeof *e->service_of);
    e->services = calloc(n, sizeof *e->services);
    if (!order || !e->service_of || !e->services) {
        free(order);
        return WEIR_ENOMEM;
    }
    for (size_t i = 0; i < n; i++)
        order[i] = (uint32_t)i;
    qsort_r(order, n, sizeof *order, service_order, e);
    for (size_t i = 0; i < n; i++) {
        const char *const name = cli_send_workload_endpoint(e->workload, order[i])->service;
        if (i == 0 || strcmp(e->services[e->service_count - 1].name, name) != 0)
            e->services[e->service_count++] =
                (struct service){.name = name, .first = NONE, .last = NONE};
        e->service_of[order[i]] = (uint32_t)e->service_count - 1;
    }
    free(order);
    return WEIR_OK;
}

static int new_otlp(struct send_encoder *e)
{
    e->kept = calloc(SEND_BATCH_SPANS_MAX, sizeof *e->kept);
    return e->kept ? new_services(e) : WEIR_ENOMEM;
}

int cli_send_encoder_new(const struct send_encoder_opts *opts, const struct send_workload *workload,
                         struct send_encoder **ret_encoder)
{
    struct send_encoder *const e = calloc(1, sizeof *e);
    if (!e)
        return WEIR_ENOMEM;
    e->opts = *opts;
    e->workload = workload;
    wr_out_init(&e->out, NULL, SEND_BODY_MAX);
    int err = opts->protocol == SEND_OTLP ? new_otlp(e) : new_dd(e);
    if (!err && opts->gzip) {
        e->gzip = libdeflate_alloc_compressor(GZIP_LEVEL);
        err = e->gzip ? WEIR_OK : WEIR_ENOMEM;
    }
    if (err) {
        cli_send_encoder_free(e);
        return err;
    }
    *ret_encoder = e;
    return WEIR_OK;
}

void cli_send_encoder_free(struct send_encoder *e)
{
    if (!e)
        return;
    weir_trace_encoder_free(e->dd);
    free(e->dd_tags);
    free(e->dd_spans);
    free(e->service_of);
    free(e->services);
    free(e->kept);
    wr_out_done(&e->out);
    if (e->gzip)
        libdeflate_free_compressor(e->gzip);
    free(e->packed);
    free(e);
}

void cli_send_encoder_begin(struct send_encoder *e, int64_t end_ns)
{
    e->end_ns = end_ns;
    e->traces = 0;
    /* A batch that was begun and never finished left its chains. */
    for (size_t i = 0; i < e->kept_count; i++) {
        struct service *const s = &e->services[e->service_of[e->kept[i].span.endpoint]];
        s->first = NONE;
        s->last = NONE;
    }
    e->kept_count = 0;
    if (e->dd)
        weir_trace_clear(e->dd);
}

static int add_dd(struct send_encoder *e, const struct send_span *spans, size_t count)
{
    for (size_t i = 0; i < count; i++)
        cli_send_dd_fill(&e->opts, cli_send_workload_endpoint(e->workload, spans[i].endpoint),
                         &spans[i], e->end_ns, &e->dd_tags[i], &e->dd_spans[i]);
    const struct weir_trace t = {.spans = e->dd_spans, .span_count = count};
    return weir_trace_add(e->dd, &t);
}

static int add_otlp(struct send_encoder *e, const struct send_span *spans, size_t count)
{
    if (count > SEND_BATCH_SPANS_MAX - e->kept_count)
        return WEIR_EFULL;
    for (size_t i = 0; i < count; i++) {
        const uint32_t at = (uint32_t)e->kept_count++;
        e->kept[at] = (struct kept_span){.span = spans[i], .next = NONE};
        struct service *const s = &e->services[e->service_of[spans[i].endpoint]];
        if (s->first == NONE)
            s->first = at;
        else
            e->kept[s->last].next = at;
        s->last = at;
    }
    return WEIR_OK;
}

int cli_send_encoder_add(struct send_encoder *e, const struct send_span *spans, size_t count)
{
    const int err = e->dd ? add_dd(e, spans, count) : add_otlp(e, spans, count);
    if (!err)
        e->traces++;
    return err;
}

static void put_service(struct send_encoder *e, struct service *s)
{
    struct wr_out *const out = &e->out;
    const size_t resource_spans = wr_pb_begin(out, SEND_OTLP_RESOURCE_SPANS);
    cli_send_otlp_resource(out, &e->opts, s->name);
    const size_t scope_spans = wr_pb_begin(out, SEND_OTLP_SCOPE_SPANS);
    cli_send_otlp_scope(out);
    for (uint32_t at = s->first; at != NONE; at = e->kept[at].next) {
        const struct send_span *const span = &e->kept[at].span;
        cli_send_otlp_span(out, cli_send_workload_endpoint(e->workload, span->endpoint), span,
                           e->end_ns);
    }
    wr_pb_end(out, scope_spans);
    wr_pb_end(out, resource_spans);
    s->first = NONE;
    s->last = NONE;
}

/* Services in the order in which the batch met them; each is emptied by the way. */
static int finish_otlp(struct send_encoder *e, struct weir_bytes *ret_body)
{
    wr_out_clear(&e->out);
    for (size_t i = 0; i < e->kept_count; i++) {
        struct service *const s = &e->services[e->service_of[e->kept[i].span.endpoint]];
        if (s->first == i)
            put_service(e, s);
    }
    *ret_body = (struct weir_bytes){.ptr = e->out.ptr, .len = e->out.len};
    return e->out.err;
}

static int pack(struct send_encoder *e, struct weir_bytes *body)
{
    const size_t bound = libdeflate_gzip_compress_bound(e->gzip, body->len);
    if (e->packed_cap < bound) {
        char *const packed = realloc(e->packed, bound);
        if (!packed)
            return WEIR_ENOMEM;
        e->packed = packed;
        e->packed_cap = bound;
    }
    const size_t n =
        libdeflate_gzip_compress(e->gzip, body->ptr, body->len, e->packed, e->packed_cap);
    *body = (struct weir_bytes){.ptr = e->packed, .len = n};
    return n ? WEIR_OK : WEIR_EFULL;
}

int cli_send_encoder_finish(struct send_encoder *e, struct weir_bytes *ret_body)
{
    struct weir_bytes body = {.ptr = NULL, .len = 0};
    int err = e->dd ? weir_trace_payload(e->dd, &body) : finish_otlp(e, &body);
    if (!err && e->gzip)
        err = pack(e, &body);
    if (!err)
        *ret_body = body;
    return err;
}

uint64_t cli_send_encoder_traces(const struct send_encoder *e)
{
    return e->traces;
}
