/* SPDX-License-Identifier: Apache-2.0 */
/* One trace by v0.4, v0.5, v0.7, v1.0 and OTLP gives the same rows (contracts: rows §2; case K11).
 */
#include "t.h"
#include "transcode.h"
#include "wire/pb_write.h"

#include <string.h>
#include <weir/decode.h>
#include <weir/stats.h>
#include <weir/trace.h>

enum { PROTOCOLS = 6, SPANS = 4 };

static const int64_t now = INT64_C(1800000000) * 1000000000;

struct sent {
    const char *service;
    const char *operation;
    const char *resource;
    const char *type;
    const char *kind; /* Datadog's word; NULL: none */
    int otlp_kind;
    const char *status; /* HTTP */
    bool error;
    int64_t duration_ns;
};

static const struct sent sent[SPANS] = {
    {"shop", "web.request", "GET /", "web", "server", 2, "200", false, 1000000},
    {"shop", "db.query", "SELECT", "sql", "client", 3, NULL, false, 20000},
    {"shop", "render", "page", NULL, NULL, 0, NULL, false, 3000}, /* K11: no kind at all */
    {"pay", "web.request", "POST /pay", "web", "server", 2, "500", true, 70000000},
};

static struct weir_trace_tag tag(const char *key, const char *value)
{
    return (struct weir_trace_tag){.key = weir_str_c(key),
                                   .value = {.v = {.str = weir_str_c(value)}}};
}

static size_t encode_dd(uint32_t version, uint8_t *dst, size_t cap)
{
    const struct weir_trace_opts o = {.struct_size = sizeof o, .version = version};
    struct weir_trace_encoder *e;
    T_OK(weir_trace_encoder_new(&o, &e));
    for (size_t i = 0; i < SPANS; i++) {
        struct weir_trace_tag tags[3] = {tag("env", "prod")};
        size_t n = 1;
        if (sent[i].kind)
            tags[n++] = tag("span.kind", sent[i].kind);
        if (sent[i].status)
            tags[n++] = tag("http.status_code", sent[i].status);
        const struct weir_trace_span s = {.service = weir_str_c(sent[i].service),
                                          .name = weir_str_c(sent[i].operation),
                                          .resource = weir_str_c(sent[i].resource),
                                          .type = weir_str_c(sent[i].type),
                                          .trace_id = i + 1,
                                          .span_id = i + 1,
                                          .start_ns = now - sent[i].duration_ns,
                                          .duration_ns = sent[i].duration_ns,
                                          .error = sent[i].error,
                                          .tags = tags,
                                          .tag_count = n};
        const struct weir_trace t = {.spans = &s, .span_count = 1};
        T_OK(weir_trace_add(e, &t));
    }
    struct weir_bytes payload;
    T_OK(weir_trace_payload(e, &payload));
    T_TRUE(payload.len <= cap);
    memcpy(dst, payload.ptr, payload.len);
    const size_t n = payload.len;
    weir_trace_encoder_free(e);
    return n;
}

/* opentelemetry-proto 1.7: KeyValue{1 key, 2 value{1 string}}. */
static void put_attribute(struct wr_out *out, uint32_t field, const char *key, const char *value)
{
    const size_t kv = wr_pb_begin(out, field);
    wr_pb_put_cstr(out, 1, key);
    const size_t any = wr_pb_begin(out, 2);
    wr_pb_put_cstr(out, 1, value);
    wr_pb_end(out, any);
    wr_pb_end(out, kv);
}

static void put_span(struct wr_out *out, const struct sent *s, uint8_t id)
{
    char ids[16] = {0};
    ids[15] = (char)id;
    const size_t span = wr_pb_begin(out, 2);
    wr_pb_put_bytes(out, 1, (struct weir_bytes){ids, 16});
    wr_pb_put_bytes(out, 2, (struct weir_bytes){ids + 8, 8});
    wr_pb_put_cstr(out, 5, s->resource);
    put_attribute(out, 9, "operation.name", s->operation);
    if (s->type)
        put_attribute(out, 9, "span.type", s->type);
    if (s->status)
        put_attribute(out, 9, "http.response.status_code", s->status);
    wr_pb_put_uint(out, 6, (uint64_t)s->otlp_kind);
    wr_pb_put_fixed64(out, 7, (uint64_t)(now - s->duration_ns));
    wr_pb_put_fixed64(out, 8, (uint64_t)now);
    if (s->error) {
        const size_t status = wr_pb_begin(out, 15);
        wr_pb_put_uint(out, 3, 2);
        wr_pb_end(out, status);
    }
    wr_pb_end(out, span);
}

static size_t encode_otlp(uint8_t *dst, size_t cap)
{
    struct wr_out out;
    wr_out_init(&out, NULL, cap);
    for (size_t i = 0; i < SPANS; i++) {
        const size_t resource_spans = wr_pb_begin(&out, 1);
        const size_t resource = wr_pb_begin(&out, 1);
        put_attribute(&out, 1, "service.name", sent[i].service);
        put_attribute(&out, 1, "deployment.environment", "prod");
        wr_pb_end(&out, resource);
        const size_t scope = wr_pb_begin(&out, 2);
        put_span(&out, &sent[i], (uint8_t)(i + 1));
        wr_pb_end(&out, scope);
        wr_pb_end(&out, resource_spans);
    }
    T_OK(out.err);
    memcpy(dst, out.ptr, out.len);
    const size_t n = out.len;
    wr_out_done(&out);
    return n;
}

static int add_span(void *ctx, const struct weir_span *span)
{
    return weir_stats_add(ctx, span);
}

static int end_trace(void *ctx)
{
    return weir_stats_trace_end(ctx);
}

/* All labels and counts of all rows, sorted: two runs are equal when these texts are. */
static void describe(const struct weir_batch *b, char *out, size_t cap)
{
    char lines[16][512];
    struct weir_batch_info info;
    weir_batch_get_info(b, &info);
    T_TRUE(info.rows <= 16);
    for (size_t i = 0; i < info.rows; i++) {
        struct weir_label l[WEIR_LABELS_MAX];
        const size_t n = weir_batch_get_labels(b, i, l, WEIR_LABELS_MAX);
        size_t at = 0;
        for (size_t k = 0; k < n; k++)
            at += (size_t)snprintf(lines[i] + at, sizeof lines[i] - at, "%.*s=%.*s ",
                                   (int)l[k].name.len, l[k].name.ptr, (int)l[k].value.len,
                                   l[k].value.ptr);
        struct weir_row r;
        weir_batch_get_row(b, i, &r);
        (void)snprintf(lines[i] + at, sizeof lines[i] - at,
                       "hits=%lu errors=%lu top=%lu sum=%.17g\n", r.hits, r.errors, r.top_level,
                       (r.ok ? weir_sketch_sum(r.ok) : 0) +
                           (r.error ? weir_sketch_sum(r.error) : 0));
    }
    out[0] = 0;
    size_t at = 0;
    for (size_t done = 0; done < info.rows; done++) {
        size_t least = info.rows;
        for (size_t i = 0; i < info.rows; i++) {
            if (lines[i][0] && (least == info.rows || strcmp(lines[i], lines[least]) < 0))
                least = i;
        }
        at += (size_t)snprintf(out + at, cap - at, "%s", lines[least]);
        lines[least][0] = 0;
    }
}

typedef int decode_fn(struct weir_decoder *, const void *, size_t, const struct weir_span_sink *,
                      struct weir_decode_result *, struct weir_where *);

static void run(decode_fn *decode, const uint8_t *payload, size_t bytes, char *out, size_t cap)
{
    struct weir_stats *st;
    struct weir_producer *p;
    struct weir_decoder *d;
    T_OK(weir_stats_new(NULL, &st));
    T_OK(weir_producer_new(st, 0, WEIR_PRODUCER_OWNER, &p));
    T_OK(weir_decoder_new(NULL, weir_stats_tags(st), &d));
    const struct weir_span_sink sink = {.ctx = p, .span = add_span, .trace_end = end_trace};
    const struct weir_source source = {.now_ns = now};
    weir_stats_begin(p, &source);
    T_OK(decode(d, payload, bytes, &sink, NULL, NULL));
    weir_stats_commit(p);
    weir_stats_seal_all(st, now, 1);
    struct weir_batch *const b = weir_stats_take_batch(st);
    T_TRUE(b != NULL);
    describe(b, out, cap);
    weir_batch_release(b);
    weir_decoder_free(d);
    weir_producer_free(p);
    weir_stats_free(st);
}

/* The v0.4 payload by another of Datadog's formats. */
static size_t transcode(bool (*to)(struct weir_bytes, struct wr_out *), uint8_t *payload, size_t n,
                        size_t cap)
{
    struct wr_out out;
    wr_out_init(&out, NULL, cap);
    T_TRUE(to((struct weir_bytes){(const char *)payload, n}, &out));
    memcpy(payload, out.ptr, out.len);
    const size_t len = out.len;
    wr_out_done(&out);
    return len;
}

TEST(one_trace_gives_the_same_rows_by_every_protocol)
{
    static uint8_t payload[16 << 10];
    static char rows[PROTOCOLS][8 << 10];
    size_t n = encode_dd(WEIR_TRACE_V04, payload, sizeof payload);
    run(weir_decode_dd_v04, payload, n, rows[0], sizeof rows[0]);
    n = encode_dd(WEIR_TRACE_V05, payload, sizeof payload);
    run(weir_decode_dd_v05, payload, n, rows[1], sizeof rows[1]);
    n = encode_otlp(payload, sizeof payload);
    run(weir_decode_otlp_traces, payload, n, rows[2], sizeof rows[2]);
    n = encode_dd(WEIR_TRACE_V04, payload, sizeof payload);
    n = transcode(t_transcode_v07, payload, n, sizeof payload);
    run(weir_decode_dd_v07, payload, n, rows[3], sizeof rows[3]);
    n = encode_dd(WEIR_TRACE_V04, payload, sizeof payload);
    n = transcode(t_transcode_v1, payload, n, sizeof payload);
    run(weir_decode_dd_v1, payload, n, rows[4], sizeof rows[4]);
    n = encode_dd(WEIR_TRACE_V1, payload, sizeof payload);
    run(weir_decode_dd_v1, payload, n, rows[5], sizeof rows[5]);
    for (size_t i = 1; i < PROTOCOLS; i++)
        T_EQ_STR(rows[i], rows[0]);
    T_TRUE(strstr(rows[0], "env=prod operation_name=render service_name=shop "
                           "span_kind=SPAN_KIND_UNSPECIFIED span_name=page hits=1048576 errors=0"));
    T_TRUE(strstr(rows[0], "http_response_status_code=500"));
}
