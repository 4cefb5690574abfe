/* SPDX-License-Identifier: Apache-2.0 */
/* Traces of a stock tracer through decoder and engine, against the rows a trace-agent makes. */
#include "t.h"

#include <stdlib.h>
#include <string.h>
#include <weir/decode.h>
#include <weir/stats.h>

enum { ROWS_MAX = 64, KEY_MAX = 256, PAYLOAD_MAX = 64 << 10 };

struct row {
    char key[KEY_MAX]; /* name, resource, service, type, status, synthetics by tabs */
    uint64_t hits;
    uint64_t top_level;
    uint64_t duration_ns;
    uint64_t errors;
};

struct rows {
    struct row at[ROWS_MAX];
    size_t count;
};

static struct row *row_of(struct rows *rows, const char *key)
{
    for (size_t i = 0; i < rows->count; i++) {
        if (strcmp(rows->at[i].key, key) == 0)
            return &rows->at[i];
    }
    T_TRUE(rows->count < ROWS_MAX);
    struct row *const r = &rows->at[rows->count++];
    memset(r, 0, sizeof *r);
    (void)snprintf(r->key, sizeof r->key, "%s", key);
    return r;
}

static void read_expected(const char *path, struct rows *rows)
{
    size_t bytes = 0;
    char *const text = (char *)t_read_file(path, &bytes);
    T_TRUE(text != NULL);
    char *save = NULL;
    for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        if (line[0] == '#')
            continue;
        char *at = line;
        for (int tabs = 0; tabs < 6; tabs++)
            at = strchr(at, '\t') + 1;
        at[-1] = 0;
        struct row *const r = row_of(rows, line);
        const int n =
            sscanf(at, "%lu\t%lu\t%lu\t%lu", &r->hits, &r->top_level, &r->duration_ns, &r->errors);
        T_EQ_I64(n, 4);
    }
    free(text);
}

static const char *label(const struct weir_batch *b, size_t row, const char *name,
                         const char *absent, char out[64])
{
    struct weir_label l[WEIR_LABELS_MAX];
    const size_t n = weir_batch_get_labels(b, row, l, WEIR_LABELS_MAX);
    for (size_t i = 0; i < n; i++) {
        if (l[i].name.len == strlen(name) && memcmp(l[i].name.ptr, name, l[i].name.len) == 0) {
            (void)snprintf(out, 64, "%.*s", (int)l[i].value.len, l[i].value.ptr);
            return out;
        }
    }
    return absent;
}

static void take(struct weir_stats *st, struct rows *rows)
{
    for (struct weir_batch *b; (b = weir_stats_take_batch(st)) != NULL;) {
        struct weir_batch_info info;
        weir_batch_get_info(b, &info);
        T_EQ_U64(info.counts.rows_weight, info.counts.sketch_weight);
        for (size_t i = 0; i < info.rows; i++) {
            char v[6][64];
            char key[KEY_MAX];
            (void)snprintf(
                key, sizeof key, "%s\t%s\t%s\t%s\t%s\t%s", label(b, i, "operation_name", "-", v[0]),
                label(b, i, "span_name", "-", v[1]), label(b, i, "service_name", "-", v[2]),
                label(b, i, "span_type", "-", v[3]),
                label(b, i, "http_response_status_code", "0", v[4]),
                label(b, i, "synthetic", "false", v[5]));
            struct weir_row w;
            weir_batch_get_row(b, i, &w);
            struct row *const r = row_of(rows, key);
            r->hits += w.hits / WEIR_WEIGHT_ONE;
            r->top_level += w.top_level / WEIR_WEIGHT_ONE;
            r->errors += w.errors / WEIR_WEIGHT_ONE;
            const struct weir_sketch *const s[] = {w.ok, w.error};
            for (size_t k = 0; k < 2; k++) {
                const struct weir_u128 sum =
                    s[k] ? weir_sketch_sum_ns(s[k]) : (struct weir_u128){0};
                r->duration_ns += sum.lo >> 20 | sum.hi << 44;
            }
        }
        weir_batch_release(b);
    }
}

static int add_span(void *ctx, const struct weir_span *span)
{
    return weir_stats_add(ctx, span);
}

static int end_trace(void *ctx)
{
    return weir_stats_trace_end(ctx);
}

static void run(const uint8_t *payload, size_t bytes, struct rows *rows)
{
    const int64_t now = INT64_C(1800000000) * 1000000000;
    const struct weir_stats_opts o = {.struct_size = sizeof o, .profile = WEIR_PROFILE_DATADOG};
    struct weir_stats *st;
    struct weir_producer *p;
    struct weir_decoder *d;
    T_OK(weir_stats_new(&o, &st));
    T_OK(weir_producer_new(st, 0, WEIR_PRODUCER_OWNER, &p));
    T_OK(weir_decoder_new(NULL, weir_stats_tags(st), &d));
    const struct weir_span_sink sink = {.ctx = p, .span = add_span, .trace_end = end_trace};
    const struct weir_source source = {.now_ns = now};
    weir_stats_begin(p, &source);
    T_OK(weir_decode_dd_v04(d, payload, bytes, &sink, NULL, NULL));
    weir_stats_commit(p);
    weir_stats_seal_all(st, now, 1);
    take(st, rows);
    weir_decoder_free(d);
    weir_producer_free(p);
    weir_stats_free(st);
}

TEST(the_rows_of_recorded_traces_are_those_of_a_trace_agent)
{
    static const char *const names[] = {"measured_span", "sampling_rate_0", "stats_30",
                                        "stats_aggrs",   "stats_errors",    "top_level"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        static struct rows want;
        static struct rows got;
        memset(&want, 0, sizeof want);
        memset(&got, 0, sizeof got);
        char path[512];
        (void)snprintf(path, sizeof path, T_SOURCE_DIR "/tests/golden/stats_pairs/%s.tsv",
                       names[i]);
        read_expected(path, &want);
        (void)snprintf(path, sizeof path, T_SOURCE_DIR "/tests/golden/stats_pairs/%s.hex",
                       names[i]);
        size_t hex_bytes = 0;
        char *const hex = (char *)t_read_file(path, &hex_bytes);
        T_TRUE(hex != NULL);
        static uint8_t payload[PAYLOAD_MAX];
        run(payload, t_unhex(hex, payload, sizeof payload), &got);
        free(hex);
        T_EQ_U64(got.count, want.count);
        for (size_t k = 0; k < want.count; k++) {
            const struct row *const w = &want.at[k];
            const struct row *const g = row_of(&got, w->key);
            T_EQ_U64(g->hits, w->hits);
            T_EQ_U64(g->top_level, w->top_level);
            T_EQ_U64(g->duration_ns, w->duration_ns);
            T_EQ_U64(g->errors, w->errors);
        }
    }
}
