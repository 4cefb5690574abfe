/* SPDX-License-Identifier: Apache-2.0 */
/* Sketches as other libraries write them: see tests/golden/codec/MANIFEST.md. */
#include "codec/varfloat.h"
#include "support.h"

#include <math.h>

static uint32_t codec_of(const char *name)
{
    if (strncmp(name, "compact", 7) == 0)
        return WEIR_CODEC_DD_COMPACT;
    T_TRUE(strncmp(name, "proto", 5) == 0);
    return WEIR_CODEC_DD_PROTO;
}

/* The number behind key in text, which has it; fails the test otherwise. */
static double number_of(const char *text, const char *key)
{
    const char *const at = strstr(text, key);
    if (!at)
        T_FAIL("no %s in %s", key, text);
    return strtod(at + strlen(key), NULL);
}

static void expect_quantiles(const struct weir_sketch *sk, const char *text)
{
    for (const char *at = text; *at == 'q';) {
        char *end;
        const double q = strtod(at + 1, &end);
        T_TRUE(*end == '=');
        const double want = strtod(end + 1, &end);
        T_NEAR(t_java_quantile(sk, q), want, 1e-9);
        at = *end == ' ' ? end + 1 : end;
    }
}

static void expect_stats(const struct weir_sketch *sk, const char *text)
{
    const char *const exact = strstr(text, "| exact");
    T_TRUE(weir_sketch_is_exact(sk) == (exact != NULL || weir_sketch_weight(sk) == 0));
    if (exact) {
        T_EQ_DBL(weir_sketch_sum(sk), number_of(exact, "sum="));
        T_EQ_DBL(t_sketch_min(sk), number_of(exact, "min="));
        T_EQ_DBL(t_sketch_max(sk), number_of(exact, "max="));
        T_EQ_DBL(t_sketch_q(sk, 0), t_sketch_min(sk)); /* our own rule keeps to what is known */
        T_EQ_DBL(t_sketch_q(sk, 1), t_sketch_max(sk));
    }
    if (strstr(text, "approx_sum="))
        T_NEAR(weir_sketch_sum(sk), number_of(text, "approx_sum="), 1e-9);
}

static void expect_row(void *ctx, char *cells[T_CELLS])
{
    (void)ctx;
    struct t_bytes b = t_bytes(cells[2]);
    struct t_guard g = t_guard_new(b.at, b.n);
    struct weir_sketch *const sk = t_sketch_of(NULL, 0);
    struct weir_where where = {.reason = ""};
    const int r = weir_codec_decode(codec_of(cells[0]), NULL, g.ptr, b.n, sk, &where);
    if (r != WEIR_OK)
        T_FAIL("%s: %s at %zu: %s", cells[0], weir_strerror(r), where.offset, where.reason);
    T_TRUE(wr_sketch_check(sk));
    const double count = strtod(cells[3], NULL);
    T_NEAR((double)weir_sketch_weight(sk) / (double)ONE, count, 1e-5); /* rows have six digits */
    expect_quantiles(sk, cells[4]);
    expect_stats(sk, cells[4]);
    if (count == 0)
        T_EQ_U64(weir_sketch_weight(sk), 0);
    weir_sketch_free(sk);
    t_guard_free(&g);
    free(b.at);
}

TEST(every_sketch_of_another_library_has_its_count_quantiles_and_statistics)
{
    T_EQ_U64(t_rows(CODEC_GOLDEN "ddsketch.tsv", expect_row, NULL), 65);
}

static void expect_cuts(void *ctx, char *cells[T_CELLS])
{
    (void)ctx;
    struct t_bytes b = t_bytes(cells[2]);
    for (size_t n = 0; n < b.n; n++) {
        struct t_guard g = t_guard_new(b.at, n);
        struct weir_sketch *const sk = t_sketch_of(NULL, 0);
        const int r = weir_codec_decode(codec_of(cells[0]), NULL, g.ptr, n, sk, NULL);
        T_TRUE(wr_sketch_check(sk));
        if (r != WEIR_OK) { /* a cut at a border is a shorter sketch */
            T_TRUE(r == WEIR_ETRUNCATED || r == WEIR_EFORMAT);
            T_EQ_U64(weir_sketch_weight(sk), 0);
            T_EQ_U64(weir_mapping_kind(weir_sketch_mapping(sk)), WEIR_MAPPING_BASE2);
        }
        weir_sketch_free(sk);
        t_guard_free(&g);
    }
    free(b.at);
}

TEST(a_cut_at_any_byte_is_refused_or_a_shorter_sketch_and_never_read_past)
{
    T_EQ_U64(t_rows(CODEC_GOLDEN "ddsketch.tsv", expect_cuts, NULL), 65);
}

static void expect_malformed(void *ctx, char *cells[T_CELLS])
{
    (void)ctx;
    struct t_bytes b = t_bytes(cells[2]);
    struct t_guard g = t_guard_new(b.at, b.n);
    struct t_heap heap = {.fail_at = -1};
    const struct weir_sketch_opts o = {.struct_size = sizeof o,
                                       .alloc = {.fn = t_heap_fn, .ctx = &heap}};
    struct weir_sketch *sk;
    T_OK(weir_sketch_new(&o, &sk));
    struct weir_where where = {.reason = NULL};
    const int r = weir_codec_decode(codec_of(cells[1]), NULL, g.ptr, b.n, sk, &where);
    if (strcmp(cells[3], "refuse") == 0 && r == WEIR_OK)
        T_FAIL("%s is accepted", cells[0]);
    if (strcmp(cells[3], "accept") == 0 && r != WEIR_OK)
        T_FAIL("%s is refused: %s", cells[0], where.reason);
    T_TRUE(wr_sketch_check(sk));
    T_TRUE(heap.live < 128 * 1024); /* two signs of 2,048 bins of 8 bytes, a mapping */
    if (r != WEIR_OK) {
        T_EQ_U64(weir_sketch_weight(sk), 0);
        T_TRUE(where.reason != NULL && where.offset <= b.n);
    } else if (weir_sketch_weight(sk)) {
        T_TRUE(isfinite(t_sketch_q(sk, 0)) && isfinite(t_sketch_q(sk, 1)));
        T_TRUE(isfinite(weir_sketch_sum(sk)));
    }
    weir_sketch_free(sk);
    T_EQ_I64(heap.live, 0);
    t_guard_free(&g);
    free(b.at);
}

TEST(hostile_bytes_are_refused_and_take_no_memory_by_what_they_claim)
{
    T_EQ_U64(t_rows(CODEC_GOLDEN "ddsketch-malformed.tsv", expect_malformed, NULL), 96);
}

/* One byte in ten is another: ClickHouse#92393 and the like. */
static void expect_corrupted(void *ctx, char *cells[T_CELLS])
{
    struct t_rng *const rng = ctx;
    struct t_bytes b = t_bytes(cells[2]);
    struct weir_sketch *const sk = t_sketch_of(NULL, 0);
    for (int i = 0; i < 40 && b.n; i++) {
        uint8_t *const bytes = malloc(b.n);
        T_TRUE(bytes != NULL);
        memcpy(bytes, b.at, b.n);
        for (size_t k = 0; k <= b.n / 10; k++)
            bytes[t_below(rng, b.n)] = (uint8_t)t_next(rng);
        const int r = weir_codec_decode(codec_of(cells[0]), NULL, bytes, b.n, sk, NULL);
        T_TRUE(wr_sketch_check(sk));
        T_EQ_U64(weir_sketch_bins_weight(sk), weir_sketch_weight(sk));
        T_TRUE(r == WEIR_OK || weir_sketch_weight(sk) == 0);
        if (weir_sketch_weight(sk))
            T_TRUE(isfinite(t_sketch_q(sk, 0.5)) && isfinite(weir_sketch_sum(sk)));
        free(bytes);
    }
    weir_sketch_free(sk);
    free(b.at);
}

TEST(corrupted_bytes_are_another_sketch_or_refused)
{
    struct t_rng rng = t_rng(t_seed());
    T_EQ_U64(t_rows(CODEC_GOLDEN "ddsketch.tsv", expect_corrupted, &rng), 65);
}

/* The numbers of the compact encoding. */

static void expect_uvarint(const struct t_bytes *b, bool has_value, uint64_t value)
{
    uint64_t v;
    const uint8_t *const end = wr_uvarint9_get(b->at, b->at + b->n, &v);
    T_TRUE((end != NULL) == has_value);
    if (!has_value)
        return;
    T_TRUE(end == b->at + b->n);
    T_EQ_U64(v, value);
    uint8_t again[9];
    T_EQ_BYTES(again, (size_t)(wr_uvarint9_put(again, v) - again), b->at, b->n);
    T_EQ_U64(wr_uvarint9_bytes(v), b->n);
}

static void expect_varfloat(const struct t_bytes *b, const char *value, const char *expect)
{
    double v = 0;
    const uint8_t *const end = wr_varfloat_get(b->at, b->at + b->n, &v);
    T_TRUE((end != NULL) == (strcmp(value, "-") != 0));
    if (!end)
        return;
    T_TRUE(end == b->at + b->n);
    const double sent = strtod(value, NULL);
    const char *const to = strstr(expect, "decodes to ");
    const double want = to ? strtod(to + strlen("decodes to "), NULL) : sent;
    if (!isfinite(want))
        T_TRUE(isnan(want) ? isnan(v) : v == want);
    else
        T_EQ_DBL(v, want);
    if (!isfinite(sent))
        return;
    uint8_t again[9];
    T_EQ_BYTES(again, (size_t)(wr_varfloat_put(again, sent) - again), b->at, b->n);
    T_EQ_U64(wr_varfloat_bytes(sent), b->n);
    if (sent >= 0 && sent < (double)WR_VARFLOAT_SHORT && sent == floor(sent)) {
        const uint32_t bytes = wr_varfloat_short((uint32_t)sent);
        wr_store32le(again, bytes);
        T_EQ_BYTES(again, bytes >> 24, b->at, b->n);
    }
}

static void expect_number(void *ctx, char *cells[T_CELLS])
{
    (void)ctx;
    struct t_bytes b = t_bytes(cells[2]);
    const bool has = strcmp(cells[1], "-") != 0;
    const int64_t i = strtoll(cells[1], NULL, 10);
    if (strcmp(cells[0], "uvarint64") == 0)
        expect_uvarint(&b, has, strtoull(cells[1], NULL, 10));
    else if (strncmp(cells[0], "varint", 6) == 0)
        expect_uvarint(&b, has, (uint64_t)i << 1 ^ (uint64_t)(i >> 63));
    else if (strcmp(cells[0], "varfloat64") == 0)
        expect_varfloat(&b, cells[1], cells[3]);
    else
        T_EQ_STR(cells[0], "float64le");
    free(b.at);
}

TEST(numbers_of_the_compact_encoding_are_those_of_sketches_go_and_java)
{
    T_EQ_U64(t_rows(CODEC_GOLDEN "varfloat.tsv", expect_number, NULL), 75);
}

TEST(a_short_count_is_written_as_any_double_is)
{
    for (uint32_t count = 0; count < WR_VARFLOAT_SHORT; count++) {
        uint8_t a[9];
        uint8_t b[4];
        const size_t n = (size_t)(wr_varfloat_put(a, count) - a);
        const uint32_t bytes = wr_varfloat_short(count);
        wr_store32le(b, bytes);
        if (bytes >> 24 != n || memcmp(a, b, n) != 0)
            T_FAIL("%u", count);
    }
}

/* Rows that we write ourselves, to the byte. */

struct rewrite {
    const char *id;
    uint32_t flags;
    bool found;
};

static void expect_rewrite(void *ctx, char *cells[T_CELLS])
{
    struct rewrite *const w = ctx;
    if (strcmp(cells[0], w->id) != 0)
        return;
    w->found = true;
    struct t_bytes b = t_bytes(cells[2]);
    struct weir_sketch *const sk = t_sketch_of(NULL, 0);
    const uint32_t codec = codec_of(cells[0]);
    T_OK(weir_codec_decode(codec, NULL, b.at, b.n, sk, NULL));
    const struct weir_codec_opts o = {.struct_size = sizeof o, .flags = w->flags};
    struct t_bytes again = t_encode(codec, &o, sk);
    T_EQ_BYTES(again.at, again.n, b.at, b.n);
    free(again.at);
    free(b.at);
    weir_sketch_free(sk);
}

TEST(what_java_and_go_write_is_written_again_to_the_byte)
{
    static const struct rewrite rows[] = {
        {.id = "compact:mapping-log"},
        {.id = "compact:mapping-linear-java"},
        {.id = "compact:mapping-quadratic"},
        {.id = "compact:mapping-cubic-go"},
        {.id = "compact:mapping-quartic"},
        {.id = "compact:mapping-bitwise-linear"},
        {.id = "compact:mapping-backend"},
        {.id = "compact:mapping-backend-ns"},
        /* dense stores: one block a sign */
        {.id = "compact:one-dense-or-sparse", .flags = WEIR_CODEC_ONE_BLOCK},
        {.id = "compact:1..5-dense", .flags = WEIR_CODEC_ONE_BLOCK},
        {.id = "compact:mixed-half-weight-java", .flags = WEIR_CODEC_ONE_BLOCK},
        {.id = "compact:cubic-100-100-101-103-java", .flags = WEIR_CODEC_ONE_BLOCK},
        {.id = "compact:exact-3-4-5-java", .flags = WEIR_CODEC_ONE_BLOCK},
        {.id = "compact:exact-1..5-java", .flags = WEIR_CODEC_ONE_BLOCK},
        {.id = "compact:exact-42-java", .flags = WEIR_CODEC_ONE_BLOCK},
        {.id = "compact:exact-neg3-neg1-2-5-java", .flags = WEIR_CODEC_ONE_BLOCK},
        {.id = "compact:exact-0-1-2-java", .flags = WEIR_CODEC_ONE_BLOCK},
        {.id = "compact:exact-1..100-java", .flags = WEIR_CODEC_ONE_BLOCK},
        {.id = "compact:go-51..100-contiguous", .flags = WEIR_CODEC_ONE_BLOCK},
        /* the fewest bytes */
        {.id = "compact:one-go-default-store"},
        {.id = "compact:1..5-go-default-store"},
        {.id = "compact:go-50x5"},
        {.id = "proto:empty-java-protobufgo"},
        {.id = "proto:one-java-dense"},
        {.id = "proto:1..5-go-default-store"},
        {.id = "proto:cubic-100-100-101-103-java"},
        {.id = "proto:cubic-100-100-101-103-go"},
        {.id = "proto:bitwise-empty"},
        {.id = "proto:bitwise-100"},
        {.id = "proto:bitwise-1"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct rewrite w = rows[i];
        (void)t_rows(CODEC_GOLDEN "ddsketch.tsv", expect_rewrite, &w);
        if (!w.found)
            T_FAIL("no row %s", w.id);
    }
}
