/* SPDX-License-Identifier: Apache-2.0 */
/*
 * decode: payload bytes to aggregated rows, in one thread: walk, key, hash, hand-over, table,
 * sketch. Payloads are those of `weir send`: 14 tags a Datadog span, 20 attributes an OTLP span,
 * 512 resources, a hundred spans or so a payload. No socket, no HTTP, no seal.
 *   *_walk: the decoder alone, with a callback that does nothing
 */
#include "spans.h"

#include <stdlib.h>
#include <string.h>
#include <weir/decode.h>

#include "cli/send_encode.h"

enum { PAYLOADS = 64, SPANS_A_PAYLOAD = 100, REPEAT = 30 };

typedef int decode_fn(struct weir_decoder *, const void *, size_t, const struct weir_span_sink *,
                      struct weir_decode_result *, struct weir_where *);

struct payload {
    char *bytes;
    size_t len;
    size_t spans;
};

struct format {
    const char *name;
    const char *walk_name;
    enum send_protocol protocol;
    decode_fn *decode;
};

static const struct format formats[] = {
    {"dd_v04", "dd_v04_walk", SEND_V04, weir_decode_dd_v04},
    {"dd_v05", "dd_v05_walk", SEND_V05, weir_decode_dd_v05},
    {"otlp_http", "otlp_http_walk", SEND_OTLP, weir_decode_otlp_traces},
};

static const int64_t t0 = INT64_C(1800000000) * 1000000000;

static void need(bool ok)
{
    if (!ok)
        abort();
}

static struct payload *payloads_make(enum send_protocol protocol)
{
    const struct send_workload_opts wo = {.preset = SEND_PRESET_SIMPLE,
                                          .services = 32,
                                          .resources = 16,
                                          .spans_per_trace = 5,
                                          .error_ratio = 0.05,
                                          .seed = 3};
    struct send_workload *w;
    struct send_encoder *e;
    need(cli_send_workload_new(&wo, &w) == WEIR_OK);
    const struct send_encoder_opts eo = {
        .protocol = protocol, .env = "bench", .runtime_id = "00000000-0000-4000-8000-000000000000"};
    need(cli_send_encoder_new(&eo, w, &e) == WEIR_OK);
    struct payload *const p = calloc(PAYLOADS, sizeof *p);
    need(p != NULL);
    for (size_t i = 0; i < PAYLOADS; i++) {
        cli_send_encoder_begin(e, t0);
        while (p[i].spans < SPANS_A_PAYLOAD) {
            struct send_span spans[SEND_TRACE_SPANS_MAX];
            const size_t n = cli_send_workload_trace(w, spans, SPANS_A_PAYLOAD - p[i].spans);
            need(cli_send_encoder_add(e, spans, n) == WEIR_OK);
            p[i].spans += n;
        }
        struct weir_bytes body;
        need(cli_send_encoder_finish(e, &body) == WEIR_OK);
        p[i].bytes = malloc(body.len);
        need(p[i].bytes != NULL);
        memcpy(p[i].bytes, body.ptr, body.len);
        p[i].len = body.len;
    }
    cli_send_encoder_free(e);
    cli_send_workload_free(w);
    return p;
}

static int add_span(void *ctx, const struct weir_span *span)
{
    return weir_stats_add(ctx, span);
}

static int end_trace(void *ctx)
{
    return weir_stats_trace_end(ctx);
}

static int look(void *ctx, const struct weir_span *span)
{
    *(uint64_t *)ctx += span->present;
    return WEIR_OK;
}

static int no_end(void *ctx)
{
    (void)ctx;
    return WEIR_OK;
}

struct run {
    struct weir_stats *st;
    struct weir_producer *p;
    struct weir_decoder *d;
    struct payload *payloads;
    const struct format *format;
    uint64_t seen;
};

static double round_of(struct run *r, bool walk_only)
{
    const struct weir_source source = {.now_ns = t0 + 1};
    const struct weir_span_sink whole = {.ctx = r->p, .span = add_span, .trace_end = end_trace};
    const struct weir_span_sink walk = {.ctx = &r->seen, .span = look, .trace_end = no_end};
    uint64_t spans = 0;
    const int64_t from = bench_now_ns();
    for (size_t k = 0; k < REPEAT; k++) {
        for (size_t i = 0; i < PAYLOADS; i++) {
            const struct payload *const p = &r->payloads[i];
            if (!walk_only)
                weir_stats_begin(r->p, &source);
            need(r->format->decode(r->d, p->bytes, p->len, walk_only ? &walk : &whole, NULL,
                                   NULL) == WEIR_OK);
            if (!walk_only) {
                weir_stats_commit(r->p);
                (void)weir_stats_poll(r->st, t0 + 1, 1);
            }
            spans += p->spans;
        }
    }
    return (double)(bench_now_ns() - from) / (double)spans;
}

static void bench_format(const struct bench *b, const struct format *f)
{
    struct bench_heap heap = {0};
    const struct weir_stats_opts o = {.struct_size = sizeof o, .alloc = bench_alloc(&heap)};
    struct run r = {.format = f, .payloads = payloads_make(f->protocol)};
    need(weir_stats_new(&o, &r.st) == WEIR_OK);
    need(weir_producer_new(r.st, 0, WEIR_PRODUCER_OWNER, &r.p) == WEIR_OK);
    need(weir_decoder_new(&o.alloc, weir_stats_tags(r.st), &r.d) == WEIR_OK);
    double values[1000];
    double walks[1000];
    (void)round_of(&r, false);
    const uint64_t before = heap.allocations;
    for (int i = 0; i < b->rounds; i++) {
        values[i] = round_of(&r, false);
        walks[i] = round_of(&r, true);
    }
    const uint64_t allocations = heap.allocations - before;
    double bytes = 0;
    for (size_t i = 0; i < PAYLOADS; i++)
        bytes += (double)r.payloads[i].len / (double)r.payloads[i].spans / PAYLOADS;
    bench_report(b, f->name, "ns_per_span", "ns", BENCH_LOWER, values, (size_t)b->rounds);
    bench_report(b, f->walk_name, "ns_per_span", "ns", BENCH_LOWER, walks, (size_t)b->rounds);
    bench_report_one(b, f->name, "allocations", "count", (double)allocations);
    bench_report_one(b, f->name, "bytes_per_span", "B", bytes);
    for (size_t i = 0; i < PAYLOADS; i++)
        free(r.payloads[i].bytes);
    free(r.payloads);
    weir_decoder_free(r.d);
    weir_producer_free(r.p);
    weir_stats_free(r.st);
}

int main(int argc, char **argv)
{
    struct bench b;
    bench_begin(&b, "decode", "Payload bytes to aggregated rows, one thread.", argc, argv);
    bench_pin(0);
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        bench_format(&b, &formats[i]);
    return 0;
}
