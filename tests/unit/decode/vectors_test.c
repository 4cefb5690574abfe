/* SPDX-License-Identifier: Apache-2.0 */
/* vectors: hostile rows, golden rows, truncation at every byte, recorded clients' totals. */
#include "support.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

static struct t_buf gunzip(const struct t_buf *in)
{
    struct t_buf out = {.at = NULL};
    z_stream z = {.next_in = in->at, .avail_in = (uInt)in->len};
    uint8_t chunk[16384];
    int r = inflateInit2(&z, 16 + 15);
    T_EQ_I64(r, Z_OK);
    while (r == Z_OK) {
        z.next_out = chunk;
        z.avail_out = sizeof chunk;
        r = inflate(&z, Z_NO_FLUSH);
        t_put(&out, chunk, sizeof chunk - z.avail_out);
    }
    T_EQ_I64(r, Z_STREAM_END);
    (void)inflateEnd(&z);
    return out;
}

struct totals {
    size_t bodies;
    size_t spans;
    size_t errors;
    size_t servers;
    size_t clients;
    size_t status_500;
    size_t named; /* of the name asked for */
    size_t named_errors;
};

static void add_totals(struct totals *t, const struct t_spans *s, const char *name)
{
    t->bodies++;
    t->spans += s->count;
    t->errors += s->errors;
    for (size_t i = 0; i < s->count; i++) {
        const struct t_kept *const k = &s->kept[i];
        t->servers += k->span.kind == WEIR_KIND_SERVER;
        t->clients += k->span.kind == WEIR_KIND_CLIENT;
        t->status_500 += strcmp(t_slot(k, WEIR_TAG_HTTP_STATUS), "500") == 0;
        if (name && t_bytes_are(k->span.name, name)) {
            t->named++;
            t->named_errors += (k->span.flags & WEIR_SPAN_ERROR) != 0;
        }
        if (name)
            T_EQ_STR(t_slot(k, WEIR_TAG_ENV), "test");
    }
}

/* The decoder of a recorded request line. */
static t_decode_fn *request_route(const char *request)
{
    if (strstr(request, " /v0.4/traces "))
        return weir_decode_dd_v04;
    if (strstr(request, " /v0.5/traces "))
        return weir_decode_dd_v05;
    if (strstr(request, " /v0.7/traces "))
        return weir_decode_dd_v07;
    if (strstr(request, " /v1.0/traces "))
        return weir_decode_dd_v1;
    if (strstr(request, " /v1/traces ") || strstr(request, "TraceService/Export "))
        return weir_decode_otlp_traces;
    return NULL;
}

/* Decode one recorded body into *t. False: the file is not of its recorded size. */
static bool add_body(struct totals *t, const char *folder, const char *file, const char *size,
                     t_decode_fn *decode, const char *name)
{
    char path[512];
    (void)snprintf(path, sizeof path, "file:%s/%s", folder, file);
    struct t_buf b = t_body(path, T_SHARED_DIR "/vectors/clients");
    if (b.len != strtoul(size, NULL, 10)) {
        t_buf_free(&b);
        return false;
    }
    if (strstr(file, ".gz")) {
        struct t_buf plain = gunzip(&b);
        t_buf_free(&b);
        b = plain;
    }
    struct t_spans spans = {.kept = NULL};
    struct weir_where where;
    const int r = t_decode(decode, b.at, b.len, &spans, NULL, &where);
    if (r != WEIR_OK)
        T_FAIL("%s: %s at %zu", path, where.reason, where.offset);
    add_totals(t, &spans, name);
    t_spans_free(&spans);
    t_buf_free(&b);
    return true;
}

/* All trace bodies of a run; JSON is not decoded here. */
static struct totals run_totals(const char *run, const char *name)
{
    struct totals t = {.bodies = 0};
    size_t n = 0;
    char *const text = (char *)t_read_file(T_SHARED_DIR "/vectors/clients/requests.tsv", &n);
    if (!text)
        T_SKIP_MISSING("vectors/clients/requests.tsv");
    char *save = NULL;
    for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        const char *const folder = t_cell(&line);
        const char *const file = t_cell(&line);
        const char *const request = t_cell(&line);
        (void)t_cell(&line);
        (void)t_cell(&line);
        const char *const size = t_cell(&line);
        if (!size || strncmp(file, run, strlen(run)) != 0 || strstr(file, ".json"))
            continue;
        t_decode_fn *const decode = request_route(request);
        if (decode && !add_body(&t, folder, file, size, decode, name))
            T_FAIL("%s/%s is not of its recorded size", folder, file);
    }
    free(text);
    T_TRUE(t.bodies > 0);
    return t;
}

TEST(dd_trace_js_sent_402_spans_by_v04_and_v05)
{
    static const char *const runs[] = {"dd-v04-stats-", "dd-v05-"};
    for (size_t i = 0; i < 2; i++) {
        struct totals t = run_totals(runs[i], "web.request");
        T_EQ_U64(t.spans, 402);
        T_EQ_U64(t.errors, 10);
        T_EQ_U64(t.named, 200);
        T_EQ_U64(t.named_errors, 10);
        T_EQ_U64(t.servers, 200);
        T_EQ_U64(t.status_500, 20);
        t = run_totals(runs[i], "http.request");
        T_EQ_U64(t.named, 200);
        T_EQ_U64(t.named_errors, 0);
        t = run_totals(runs[i], "dns.lookup");
        T_EQ_U64(t.named, 1);
    }
}

TEST(ddtrace_py_sent_1800_spans_by_v04_and_v05)
{
    static const char *const runs[] = {"py-stats-", "py-v04-"};
    for (size_t i = 0; i < 2; i++) {
        struct totals t = run_totals(runs[i], "flask.request");
        T_EQ_U64(t.spans, 1800);
        T_EQ_U64(t.errors, 10);
        T_EQ_U64(t.named, 200);
        T_EQ_U64(t.named_errors, 10);
        T_EQ_U64(t.servers, 200);
        T_EQ_U64(t.status_500, 10);
        t = run_totals(runs[i], "__main__.ok");
        T_EQ_U64(t.named, 190);
        t = run_totals(runs[i], "__main__.fail");
        T_EQ_U64(t.named, 10);
        T_EQ_U64(t.named_errors, 0);
    }
}

TEST(otel_js_sent_400_spans_by_http_grpc_and_gzip)
{
    static const char *const runs[] = {"otel223-proto-", "otel223-grpc-",
                                       "otel223-expo-delta-gzip-"};
    for (size_t i = 0; i < 3; i++) {
        const struct totals t = run_totals(runs[i], NULL);
        T_EQ_U64(t.spans, 400);
        T_EQ_U64(t.errors, 20);
        T_EQ_U64(t.servers, 200);
        T_EQ_U64(t.clients, 200);
        T_EQ_U64(t.status_500, 20);
    }
}

TEST(otel_python_and_rust_sent_200_server_spans)
{
    static const char *const runs[] = {"pyotel-proto-", "pyotel-grpc-", "rust-proto-"};
    for (size_t i = 0; i < 3; i++) {
        const struct totals t = run_totals(runs[i], NULL);
        T_EQ_U64(t.spans, 200);
        T_EQ_U64(t.errors, 10);
        T_EQ_U64(t.servers, 200);
        T_EQ_U64(t.status_500, 10);
    }
}

TEST(telemetrygen_sent_50_client_and_150_server_spans_all_errors)
{
    const struct totals t = run_totals("tg-", NULL);
    T_EQ_U64(t.spans, 200); /* two bodies of 100 */
    T_EQ_U64(t.errors, 200);
    T_EQ_U64(t.clients, 50);
    T_EQ_U64(t.servers, 150);
}

static const struct {
    const char *name;
    t_decode_fn *decode;
    size_t spans; /* 0: compared by the oracle test */
    size_t errors;
    const char *service;
} goldens[] = {
    {"py-v04-12.v04.hex", weir_decode_dd_v04, 0, 0, "shop"},
    {"py-stats-20.v05.hex", weir_decode_dd_v05, 0, 0, "shop"},
    {"dd-v05-04.v05.hex", weir_decode_dd_v05, 0, 0, "shop"},
    {"webflux.v04.hex", weir_decode_dd_v04, 2, 0, "smoke-test-java-app"},
    {"greeting.v05.hex", weir_decode_dd_v05, 2, 0, "smoke-test-java-app"},
    {"v04-java-one-span.v04.hex", weir_decode_dd_v04, 1, 0, "s"},
    {"v05-java-one-span.v05.hex", weir_decode_dd_v05, 1, 0, "s"},
    {"py-v04-12.v07.hex", weir_decode_dd_v07, 27, 0, "shop"},
    {"py-v04-12.v1.hex", weir_decode_dd_v1, 27, 0, "shop"},
    {"dd-go-01.v1.hex", weir_decode_dd_v1, 30, 1, "probe-go"},
    {"sample.v1.hex", weir_decode_dd_v1, 2, 0, "smoke-test-java-app"},
    {"pyotel-proto-08.otlp.hex", weir_decode_otlp_traces, 24, 2, "shop"},
    {"otel223-expo-delta-gzip-02.otlp.gz.hex", weir_decode_otlp_traces, 48, 2,
     "unknown_service:node"},
    {"trace.otlp.hex", weir_decode_otlp_traces, 1, 0, "my.service"},
};
#define GOLDENS (sizeof goldens / sizeof *goldens)

static struct t_buf golden(size_t i)
{
    struct t_buf b = t_golden(goldens[i].name);
    if (!strstr(goldens[i].name, ".gz"))
        return b;
    struct t_buf plain = gunzip(&b);
    t_buf_free(&b);
    return plain;
}

TEST(golden_bodies_have_the_spans_that_other_readers_count)
{
    for (size_t i = 0; i < GOLDENS; i++) {
        struct t_buf b = golden(i);
        struct t_spans spans = {.kept = NULL};
        T_OK(t_decode(goldens[i].decode, b.at, b.len, &spans, NULL, NULL));
        if (goldens[i].spans) {
            T_EQ_U64(spans.count, goldens[i].spans);
            T_EQ_U64(spans.errors, goldens[i].errors);
        }
        for (size_t j = 0; j < spans.count; j++)
            if (!t_bytes_are(spans.kept[j].span.service, goldens[i].service))
                T_FAIL("%s: span %zu is of %.*s", goldens[i].name, j,
                       (int)spans.kept[j].span.service.len, spans.kept[j].span.service.ptr);
        t_spans_free(&spans);
        t_buf_free(&b);
    }
}

TEST(the_otlp_example_reads_as_its_text_says)
{
    struct t_buf b = t_golden("trace.otlp.hex");
    struct t_spans spans = {.kept = NULL};
    T_OK(t_decode(weir_decode_otlp_traces, b.at, b.len, &spans, NULL, NULL));
    const struct weir_span *const s = &spans.kept[0].span;
    T_TRUE(t_bytes_are(s->resource, "I'm a server span"));
    T_EQ_U64(s->trace_id_hi, UINT64_C(0x5b8efff798038103));
    T_EQ_U64(s->trace_id, UINT64_C(0xd269b633813fc60c));
    T_EQ_U64(s->span_id, UINT64_C(0xeee19b7ec3c1b174));
    T_EQ_U64(s->parent_id, UINT64_C(0xeee19b7ec3c1b173));
    T_EQ_I64(s->duration_ns, 1000000000);
    T_EQ_U64(s->kind, WEIR_KIND_SERVER);
    t_spans_free(&spans);
    t_buf_free(&b);
}

/* A cut between two fields of an OTLP request leaves a request: only cuts inside one are wrong. */
static bool cut_is_legal(size_t i, const struct t_buf *b, size_t cut)
{
    if (goldens[i].decode != weir_decode_otlp_traces)
        return false;
    size_t at = 0;
    while (at < cut) {
        size_t len = 0;
        unsigned shift = 0;
        at++; /* the tag of field 1 */
        do {
            len |= (size_t)(b->at[at] & 0x7f) << shift;
            shift += 7;
        } while (b->at[at++] & 0x80);
        at += len;
    }
    return at == cut;
}

TEST(every_golden_body_cut_at_any_byte_is_refused)
{
    for (size_t i = 0; i < GOLDENS; i++) {
        struct t_buf b = golden(i);
        struct weir_tags *const tags = t_tags();
        struct weir_decoder *decoder = NULL;
        T_OK(weir_decoder_new(NULL, tags, &decoder));
        struct t_guard g = t_guard_new(b.at, b.len);
        for (size_t cut = 0; cut < b.len; cut++) {
            struct weir_where where = {.reason = NULL};
            /* The bytes behind the cut are readable here; the guard page is for the short ones. */
            const int r = goldens[i].decode(decoder, g.ptr, cut, NULL, NULL, &where);
            if (cut_is_legal(i, &b, cut))
                T_OK(r);
            else if (r != WEIR_ETRUNCATED || !where.reason || where.offset > cut)
                T_FAIL("%s cut at %zu: %s", goldens[i].name, cut, weir_strerror(r));
        }
        t_guard_free(&g);
        for (size_t cut = 0; cut < b.len && b.len < 2000; cut++) {
            struct t_guard tight = t_guard_new(b.at, cut);
            const int r = goldens[i].decode(decoder, tight.ptr, cut, NULL, NULL, NULL);
            T_TRUE((r == WEIR_OK) == cut_is_legal(i, &b, cut));
            t_guard_free(&tight);
        }
        weir_decoder_free(decoder);
        weir_tags_free(tags);
        t_buf_free(&b);
    }
}

/* Of the rows whose text says more than a status: what the decoder must have handed over. */
static void check_row(const char *id, const struct t_spans *spans,
                      const struct weir_decode_result *result)
{
    if (strncmp(id, "pb-trace-id-", 12) == 0 || strncmp(id, "pb-span-id-", 11) == 0) {
        T_EQ_U64(result->refused, 1);
        T_EQ_U64(spans->refused[id[3] == 't' ? WEIR_REFUSED_TRACE_ID : WEIR_REFUSED_SPAN_ID], 1);
        T_EQ_U64(spans->count, 1);
    } else if (strcmp(id, "pb-100000-empty-spans") == 0) {
        T_EQ_U64(result->refused, 100000);
        T_EQ_U64(spans->count, 0);
    } else if (strcmp(id, "pb-end-before-start") == 0 || strcmp(id, "pb-times-zero") == 0) {
        T_EQ_U64(result->refused, 0);
        T_EQ_U64(spans->count, 2);
        T_TRUE(spans->kept[0].span.duration_ns <= 0);
    } else if (strncmp(id, "mp-utf8-", 8) == 0 || strncmp(id, "mp-string-", 10) == 0 ||
               strncmp(id, "mp-metric-", 10) == 0 || strncmp(id, "mp-sample-", 10) == 0 ||
               strncmp(id, "pb-utf8-", 8) == 0 || strncmp(id, "pb-attribute-", 13) == 0 ||
               strcmp(id, "pb-anyvalue-empty") == 0 || strcmp(id, "pb-anyvalue-two-oneofs") == 0) {
        T_EQ_U64(spans->count, 1);
    }
}

static void hostile_row(const char *id, t_decode_fn *decode, const char *body, const char *status)
{
    struct t_buf b = t_body(body, T_SHARED_DIR "/vectors/http");
    struct t_spans spans = {.kept = NULL};
    struct weir_decode_result result = {.spans = 0};
    struct weir_where where = {.offset = 0, .reason = NULL};
    const int r = t_decode(decode, b.at, b.len, &spans, &result, &where);
    if (r != WEIR_OK && r != WEIR_EFORMAT && r != WEIR_ETRUNCATED)
        T_FAIL("%s gave %s", id, weir_strerror(r));
    if (!strstr(status, r == WEIR_OK ? "200" : "400"))
        T_FAIL("%s gave %s (%s at %zu), want %s", id, weir_strerror(r),
               where.reason ? where.reason : "-", where.offset, status);
    if (r == WEIR_OK)
        check_row(id, &spans, &result);
    t_spans_free(&spans);
    t_buf_free(&b);
}

TEST(hostile_bodies_are_refused_or_read_as_their_rows_say)
{
    size_t n = 0;
    char *const text = (char *)t_read_file(T_SHARED_DIR "/vectors/http/hostile.tsv", &n);
    if (!text)
        T_SKIP_MISSING("vectors/http/hostile.tsv");
    size_t rows = 0;
    char *save = NULL;
    for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        const char *const id = t_cell(&line);
        const char *const route = t_cell(&line);
        if (!route || (strncmp(id, "mp-", 3) != 0 && strncmp(id, "pb-", 3) != 0))
            continue;
        t_decode_fn *const decode = t_route(route);
        if (!decode)
            continue;
        (void)t_cell(&line);
        (void)t_cell(&line);
        const char *const body = t_cell(&line);
        const char *const status = t_cell(&line);
        T_TRUE(body && status);
        hostile_row(id, decode, body, status);
        rows++;
    }
    free(text);
    print_message("%zu rows\n", rows);
    T_TRUE(rows >= 150);
}

/* What a golden row says of spans, as a number after a word, or -1. */
static long said(const char *expected, const char *word)
{
    const char *const at = strstr(expected, word);
    char *end = NULL;
    const long number = at ? strtol(at + strlen(word), &end, 10) : -1;
    return end == at + strlen(word) ? -1 : number; /* a list of spans is no number */
}

TEST(golden_rows_of_the_trace_routes_are_read_as_they_say)
{
    size_t n = 0;
    char *const text = (char *)t_read_file(T_SHARED_DIR "/vectors/datadog/golden.tsv", &n);
    if (!text)
        T_SKIP_MISSING("vectors/datadog/golden.tsv");
    size_t rows = 0;
    char *save = NULL;
    for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        const char *const id = t_cell(&line);
        const char *const route = t_cell(&line);
        const char *const hex = t_cell(&line);
        const char *const expected = t_cell(&line);
        t_decode_fn *const decode = route ? t_route(route) : NULL;
        if (!decode)
            continue;
        struct t_spans spans = {.kept = NULL};
        uint8_t *bytes = NULL;
        const int r = t_decode_hex(decode, hex, &spans, &bytes);
        rows++;
        if (said(expected, "\"status\":") == 400) {
            T_ERR(r, WEIR_EFORMAT);
        } else if (r != WEIR_OK) {
            T_FAIL("%s: %s", id, weir_strerror(r));
        } else if (said(expected, "\"spans\":") >= 0) {
            T_EQ_U64(spans.count, said(expected, "\"spans\":"));
        } else if (strstr(expected, "\"trace_id\":9223372036854775809")) {
            const struct t_kept *const k = &spans.kept[0];
            T_EQ_U64(spans.count, 1);
            T_EQ_U64(k->span.trace_id, UINT64_C(9223372036854775809));
            T_EQ_U64(k->span.span_id, 2);
            T_EQ_U64(k->span.parent_id, 0);
            T_EQ_I64(k->span.start_ns, INT64_C(1000000000000000000));
            T_EQ_I64(k->span.duration_ns, 10);
            T_TRUE(t_bytes_are(k->span.service, "s") && t_bytes_are(k->span.name, "n"));
            T_TRUE(t_bytes_are(k->span.resource, "r") && t_bytes_are(k->span.type, "web"));
            T_EQ_STR(t_slot(k, WEIR_TAG_TOP_LEVEL), "1");
            const bool v07 = strcmp(id, "v07-one-chunk") == 0;
            T_EQ_STR(t_slot(k, WEIR_TAG_ENV), v07 ? "e" : "-");
            T_EQ_STR(t_slot(k, WEIR_TAG_ORIGIN), v07 ? "lambda" : "-");
        } else if (strcmp(id, "v04-negative-duration") == 0) {
            T_EQ_I64(spans.kept[0].span.duration_ns, -5);
        } else if (strcmp(id, "v04-duplicate-span-ids") == 0) {
            T_EQ_U64(spans.count, 2);
            T_EQ_U64(spans.kept[0].span.span_id, spans.kept[1].span.span_id);
        } else {
            T_TRUE(spans.count >= 1);
        }
        free(bytes);
        t_spans_free(&spans);
    }
    free(text);
    T_EQ_U64(rows, 15);
}
