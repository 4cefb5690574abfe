/* SPDX-License-Identifier: Apache-2.0 */
/* What the encoders write. Golden bytes: see tests/golden/trace/MANIFEST.md. */
#include "trace_fixture.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define VERSIONS 3
static const uint32_t versions[VERSIONS] = {WEIR_TRACE_V04, WEIR_TRACE_V05, WEIR_TRACE_V1};

static uint64_t traces_in(const struct weir_trace_encoder *e)
{
    struct weir_trace_counts c;
    weir_trace_get_counts(e, &c);
    return c.traces;
}

static void check_golden(uint32_t version, const char *file)
{
    size_t hex_bytes = 0;
    char path[512];
    (void)snprintf(path, sizeof path, "%s/tests/golden/trace/%s", T_SOURCE_DIR, file);
    uint8_t *const hex = t_read_file(path, &hex_bytes);
    T_TRUE(hex);
    uint8_t want[512];
    const size_t n = t_unhex((const char *)hex, want, sizeof want);
    free(hex);
    struct weir_trace_encoder *const e = fixture_encoder(version, 0);
    struct fixture_span f;
    struct weir_trace t;
    fixture_golden(&f, &t);
    T_OK(weir_trace_add(e, &t));
    struct weir_bytes p;
    T_OK(weir_trace_payload(e, &p));
    T_EQ_BYTES(p.ptr, p.len, want, n);
    /* And once more: asking changes nothing, and a cleared encoder begins anew. */
    T_OK(weir_trace_payload(e, &p));
    T_EQ_BYTES(p.ptr, p.len, want, n);
    weir_trace_clear(e);
    T_EQ_U64(traces_in(e), 0);
    T_OK(weir_trace_add(e, &t));
    T_OK(weir_trace_payload(e, &p));
    T_EQ_BYTES(p.ptr, p.len, want, n);
    weir_trace_encoder_free(e);
}

TEST(one_span_in_v04_is_the_reference_tracers_bytes)
{
    check_golden(WEIR_TRACE_V04, "v04-java-one-span.hex");
}

TEST(one_span_in_v05_is_the_reference_tracers_bytes)
{
    check_golden(WEIR_TRACE_V05, "v05-java-one-span.hex");
}

static void check_empty(uint32_t version, const char *none, const char *one_empty_trace)
{
    struct weir_trace_encoder *const e = fixture_encoder(version, 0);
    uint8_t want[32];
    struct weir_bytes p;
    T_OK(weir_trace_payload(e, &p));
    T_EQ_BYTES(p.ptr, p.len, want, t_unhex(none, want, sizeof want));
    T_OK(fixture_add(e, NULL, 0));
    T_OK(weir_trace_payload(e, &p));
    T_EQ_BYTES(p.ptr, p.len, want, t_unhex(one_empty_trace, want, sizeof want));
    struct weir_trace_counts c;
    weir_trace_get_counts(e, &c);
    T_EQ_U64(c.traces, version != WEIR_TRACE_V1);
    T_EQ_U64(c.spans, 0);
    weir_trace_encoder_free(e);
}

TEST(an_encoder_without_traces_gives_the_empty_payload)
{
    check_empty(WEIR_TRACE_V04, "90", "9190");
    check_empty(WEIR_TRACE_V05, "929090", "92909190");
    check_empty(WEIR_TRACE_V1, "8a020003000400050006000700080009000a900b90",
                "8a020003000400050006000700080009000a900b90");
}

static void check_random(uint32_t version, struct t_rng *r, size_t tags_max, bool repeats)
{
    struct fixture_span *const f = calloc(FIXTURE_SPANS_MAX, sizeof *f);
    struct weir_trace_span spans[FIXTURE_SPANS_MAX];
    struct weir_trace_encoder *const e = fixture_encoder(version, 0);
    const size_t per_trace = 1 + t_below(r, 4);
    const size_t traces = t_below(r, FIXTURE_SPANS_MAX / per_trace + 1);
    for (size_t i = 0; i < traces * per_trace; i++) {
        fixture_random(r, &f[i], tags_max, repeats);
        spans[i] = f[i].span;
    }
    struct weir_bytes p;
    for (size_t i = 0; i < traces; i++) {
        T_OK(fixture_add(e, spans + i * per_trace, per_trace));
        if (t_below(r, 8) == 0) /* between two traces a look must leave no trace */
            T_OK(weir_trace_payload(e, &p));
    }
    struct weir_trace_counts c;
    weir_trace_get_counts(e, &c);
    T_EQ_U64(c.traces, traces);
    T_EQ_U64(c.spans, traces * per_trace);
    T_OK(weir_trace_payload(e, &p));
    fixture_check(version, p, spans, traces, per_trace);
    weir_trace_encoder_free(e);
    free(f);
}

TEST(random_traces_are_read_back_by_libmsgpack)
{
    struct t_rng r = t_rng(t_seed());
    for (int i = 0; i < 60; i++) {
        for (size_t v = 0; v < VERSIONS; v++)
            check_random(versions[v], &r, 20, false);
    }
}

TEST(of_equal_keys_the_last_value_is_written_once)
{
    struct t_rng r = t_rng(t_seed() + 1);
    for (int i = 0; i < 60; i++) {
        for (size_t v = 0; v < VERSIONS; v++)
            check_random(versions[v], &r, 1 + t_below(&r, 60), true);
    }
}

TEST(more_tags_than_the_bitmap_takes_are_still_told_apart)
{
    struct t_rng r = t_rng(t_seed() + 2);
    for (int i = 0; i < 4; i++) {
        for (size_t v = 0; v < VERSIONS; v++)
            check_random(versions[v], &r, FIXTURE_TAGS_MAX, i & 1);
    }
}

TEST(a_hundred_thousand_tags_of_one_cheap_mark_take_no_quadratic_time)
{
    /* Equal length, first and last eight bytes: only the exact set tells them apart. */
    enum { COUNT = 100000, LEN = 24 };
    char *const text = malloc((size_t)COUNT * LEN + 1);
    struct weir_trace_tag *const tags = calloc(COUNT, sizeof *tags);
    T_TRUE(text && tags);
    for (size_t i = 0; i < COUNT; i++) {
        (void)snprintf(text + i * LEN, LEN + 1, "aaaaaaaa%08zubbbbbbbb", i);
        tags[i] = fixture_text("", "v");
        tags[i].key = weir_str_utf8(text + i * LEN, LEN);
    }
    const struct weir_trace_span s = {.tags = tags, .tag_count = COUNT};
    for (size_t v = 0; v < VERSIONS; v++) {
        struct weir_trace_encoder *const e = fixture_encoder(versions[v], 0);
        T_OK(fixture_add(e, &s, 1));
        struct weir_bytes p;
        T_OK(weir_trace_payload(e, &p));
        T_TRUE(p.len > (size_t)COUNT * LEN);
        weir_trace_encoder_free(e);
    }
    free(tags);
    free(text);
}

TEST(integers_reach_both_ends_of_64_bits)
{
    static const struct {
        int64_t v;
        const char *hex;
    } rows[] = {
        {.v = INT64_MAX, .hex = "cf7fffffffffffffff"},
        {.v = INT64_MIN, .hex = "d38000000000000000"},
        {.v = 0, .hex = "00"},
        {.v = -32, .hex = "e0"},
        {.v = -33, .hex = "d0df"},
        {.v = 128, .hex = "cc80"},
        {.v = 65536, .hex = "ce00010000"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct weir_trace_encoder *const e = fixture_encoder(WEIR_TRACE_V05, 0);
        const struct weir_trace_tag m = fixture_int("k", rows[i].v);
        const struct weir_trace_span s = {.tags = &m, .tag_count = 1};
        T_OK(fixture_add(e, &s, 1));
        struct weir_bytes p;
        T_OK(weir_trace_payload(e, &p));
        uint8_t want[16];
        const size_t n = t_unhex(rows[i].hex, want, sizeof want);
        T_TRUE(p.len > n + 1);
        T_EQ_BYTES(p.ptr + p.len - 1 - n, n, want, n); /* the type's index is the last byte */
        weir_trace_encoder_free(e);
    }
}
