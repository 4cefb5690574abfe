/* SPDX-License-Identifier: Apache-2.0 */
/*
 * decode: payload bytes to aggregated rows, in one thread: walk, key, hash, hand-over, table,
 * sketch. Payloads are those of `weir send`: 14 tags a Datadog span, 20 attributes an OTLP span,
 * 512 resources, a hundred spans or so a payload. No socket, no HTTP, no seal. Those of v0.7 and
 * v1.0 are the v0.4 ones written again (tests/support/transcode.h).
 *   *_walk: the decoder alone, with a callback that does nothing; the peer, a decoder too, is
 *           given the same payloads in files
 */
#include "spans.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <weir/decode.h>

#include "cli/send_encode.h"
#include "transcode.h"

enum { PAYLOADS = 64, SPANS_A_PAYLOAD = 100, REPEAT = 30 };

typedef int decode_fn(struct weir_decoder *, const void *, size_t, const struct weir_span_sink *,
                      struct weir_decode_result *, struct weir_where *);

typedef bool transcode_fn(struct weir_bytes v04, struct wr_out *out);

struct payload {
    char *bytes;
    size_t len;
    size_t spans;
};

struct format {
    const char *name;
    const char *walk_name;
    const char *peer_form; /* NULL: no peer */
    enum send_protocol protocol;
    transcode_fn *transcode; /* NULL: as it was sent */
    decode_fn *decode;
};

static const struct format formats[] = {
    {"dd_v04", "dd_v04_walk", "v04", SEND_V04, NULL, weir_decode_dd_v04},
    {"dd_v05", "dd_v05_walk", "v05", SEND_V05, NULL, weir_decode_dd_v05},
    {"dd_v07", "dd_v07_walk", NULL, SEND_V04, t_transcode_v07, weir_decode_dd_v07},
    {"dd_v1", "dd_v1_walk", "v1", SEND_V04, t_transcode_v1, weir_decode_dd_v1},
    {"otlp_http", "otlp_http_walk", NULL, SEND_OTLP, NULL, weir_decode_otlp_traces},
};

static const int64_t t0 = INT64_C(1800000000) * 1000000000;

static void need(bool ok)
{
    if (!ok)
        abort();
}

/* Keep a body, in the format's own form. */
static void payload_keep(struct payload *p, const struct format *f, struct weir_bytes body)
{
    struct wr_out out;
    wr_out_init(&out, NULL, (size_t)1 << 24);
    if (f->transcode) {
        need(f->transcode(body, &out));
        body = (struct weir_bytes){.ptr = out.ptr, .len = out.len};
    }
    p->bytes = malloc(body.len);
    need(p->bytes != NULL);
    memcpy(p->bytes, body.ptr, body.len);
    p->len = body.len;
    wr_out_done(&out);
}

static struct payload *payloads_make(const struct format *f)
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
    const struct send_encoder_opts eo = {.protocol = f->protocol,
                                         .env = "bench",
                                         .runtime_id = "00000000-0000-4000-8000-000000000000"};
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
        payload_keep(&p[i], f, body);
    }
    cli_send_encoder_free(e);
    cli_send_workload_free(w);
    return p;
}

struct files {
    char dir[32];
};

static void file_path(const struct files *f, size_t i, char *dst, size_t cap)
{
    (void)snprintf(dst, cap, "%s/%02zu", f->dir, i);
}

static void files_write(struct files *f, const struct payload *p)
{
    (void)snprintf(f->dir, sizeof f->dir, "/tmp/weir-bench-XXXXXX");
    need(mkdtemp(f->dir) != NULL);
    for (size_t i = 0; i < PAYLOADS; i++) {
        char path[64];
        file_path(f, i, path, sizeof path);
        FILE *const out = fopen(path, "we");
        need(out && fwrite(p[i].bytes, 1, p[i].len, out) == p[i].len && fclose(out) == 0);
    }
}

static void files_remove(const struct files *f)
{
    for (size_t i = 0; i < PAYLOADS; i++) {
        char path[64];
        file_path(f, i, path, sizeof path);
        (void)unlink(path);
    }
    (void)rmdir(f->dir);
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
    struct bench_heap heap;
    uint64_t allocations; /* in the measured rounds */
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
    const double took = (double)(bench_now_ns() - from) / (double)spans;
    /* The next round fills a window of its own, as in a steady state. */
    weir_stats_seal_all(r->st, t0 + 1, 1);
    for (struct weir_batch *b; (b = weir_stats_take_batch(r->st)) != NULL;)
        weir_batch_release(b);
    return took;
}

static size_t spans_in(const struct payload *p)
{
    size_t sum = 0;
    for (size_t i = 0; i < PAYLOADS; i++)
        sum += p[i].spans;
    return sum;
}

static void report(const struct bench *b, const struct run *r, const double *values,
                   const double *walks, const struct bench_peer *peer)
{
    double bytes = 0;
    for (size_t i = 0; i < PAYLOADS; i++)
        bytes += (double)r->payloads[i].len / (double)r->payloads[i].spans / PAYLOADS;
    const struct format *const f = r->format;
    const size_t n = (size_t)b->rounds;
    bench_report(b, f->name, "ns_per_span", "ns", BENCH_LOWER, values, n);
    bench_report_peer(b, f->walk_name, "ns_per_span", "ns", BENCH_LOWER, walks, n,
                      f->peer_form ? peer : NULL);
    bench_report_one(b, f->name, "allocations", "count", (double)r->allocations);
    bench_report_one(b, f->name, "bytes_per_span", "B", bytes);
}

static void rounds(const struct bench *b, struct run *r)
{
    static struct bench_peer peer;
    static double values[1000];
    static double walks[1000];
    bench_peer_init(&peer, "libdatadog", "libdatadog");
    struct files files;
    files_write(&files, r->payloads);
    char verb[] = "decode";
    char form[8];
    (void)snprintf(form, sizeof form, "%s", r->format->peer_form ? r->format->peer_form : "");
    char times[8];
    (void)snprintf(times, sizeof times, "%d", REPEAT);
    char count[24]; /* what it must find, or it fails */
    (void)snprintf(count, sizeof count, "%zu", spans_in(r->payloads));
    char *argv[] = {NULL, verb, form, files.dir, times, count, NULL};
    for (int i = 0; i < 3; i++) /* entries come to know what their sketches need */
        (void)round_of(r, false);
    const uint64_t before = r->heap.allocations;
    for (int i = 0; i < b->rounds; i++) {
        values[i] = round_of(r, false);
        walks[i] = round_of(r, true);
        if (r->format->peer_form)
            bench_peer_run(&peer, argv, "ns_per_span");
    }
    r->allocations = r->heap.allocations - before;
    files_remove(&files);
    report(b, r, values, walks, &peer);
}

static void bench_format(const struct bench *b, const struct format *f)
{
    struct run r = {.format = f, .payloads = payloads_make(f)};
    const struct weir_stats_opts o = {.struct_size = sizeof o, .alloc = bench_alloc(&r.heap)};
    need(weir_stats_new(&o, &r.st) == WEIR_OK);
    need(weir_producer_new(r.st, 0, WEIR_PRODUCER_OWNER, &r.p) == WEIR_OK);
    need(weir_decoder_new(&o.alloc, weir_stats_tags(r.st), &r.d) == WEIR_OK);
    rounds(b, &r);
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
