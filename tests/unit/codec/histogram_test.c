/* SPDX-License-Identifier: Apache-2.0 */
/* Exponential histograms of OpenTelemetry and native ones of Prometheus, as their own writers
 * write them (tests/golden/histogram), and what is between them and a sketch: nothing is lost. */
#include "codec/codec.h"
#include "foreign.h"
#include "wire/pb_read.h"

#include <float.h>
#include <math.h>

#define OTLP WEIR_CODEC_OTLP_EXP
#define PROM WEIR_CODEC_PROMETHEUS
#define GOLDEN T_SOURCE_DIR "/tests/golden/histogram/"

static struct weir_sketch *decoded(uint32_t codec, const char *hex)
{
    struct t_bytes b = t_bytes(hex);
    struct weir_sketch *sk;
    T_OK(t_decode(codec, NULL, b.at, b.n, &sk));
    free(b.at);
    return sk;
}

static void expect_bytes(uint32_t codec, const struct weir_sketch *sk, const char *hex)
{
    struct t_bytes want = t_bytes(hex);
    struct t_bytes have = t_encode(codec, NULL, sk);
    T_EQ_BYTES(have.at, have.n, want.at, want.n);
    free(want.at);
    free(have.at);
}

static void otlp_row(void *ctx, char *cells[T_CELLS])
{
    (void)ctx;
    struct weir_sketch *const sk = decoded(OTLP, cells[1]);
    const int scale = (int)strtol(cells[2], NULL, 10);
    const unsigned shift = scale > WEIR_SCALE_MAX ? (unsigned)(scale - WEIR_SCALE_MAX) : 0;
    T_EQ_U64(weir_mapping_kind(weir_sketch_mapping(sk)), WEIR_MAPPING_BASE2);
    T_EQ_I64(weir_mapping_scale(weir_sketch_mapping(sk)), scale - (int)shift);
    T_EQ_U64(weir_sketch_weight(sk), strtoull(cells[3], NULL, 10) * ONE);
    T_EQ_U64(wr_bins_zero(sk), strtoull(cells[4], NULL, 10) * ONE);
    t_expect_bins(sk, WR_BINS_POSITIVE, cells[5], shift);
    t_expect_bins(sk, WR_BINS_NEGATIVE, cells[6], shift);
    t_expect_stats(sk, cells[7]);
    if (strncmp(cells[0], "py-", 3) != 0 && strcmp(cells[0], "many") != 0)
        expect_bytes(OTLP, sk, cells[1]);
    t_expect_round(OTLP, NULL, sk);
    weir_sketch_free(sk);
}

TEST(points_of_opentelemetry_are_read_bin_for_bin_and_written_byte_for_byte)
{
    T_EQ_U64(t_rows(GOLDEN "otlp_exp.tsv", otlp_row, NULL), 10);
}

static void otlp_hostile(void *ctx, char *cells[T_CELLS])
{
    (void)ctx;
    struct t_bytes b = t_bytes(cells[1]);
    t_expect_hardy(OTLP, NULL, b.at, b.n);
    free(b.at);
}

TEST(no_damage_to_a_point_does_harm)
{
    t_rows(GOLDEN "otlp_exp.tsv", otlp_hostile, NULL);
}

static void prometheus_row(void *ctx, char *cells[T_CELLS])
{
    (void)ctx;
    struct weir_sketch *const sk = decoded(PROM, cells[1]);
    const bool infinite = strcmp(cells[0], "go-infinite") == 0;
    const bool nan = strcmp(cells[0], "go-nan") == 0;
    T_EQ_I64(weir_mapping_scale(weir_sketch_mapping(sk)), strtol(cells[2], NULL, 10));
    /* what is no number, or infinite, is left out of the count */
    const double count = infinite || nan ? 1 : strtod(cells[3], NULL);
    T_EQ_U64(weir_sketch_weight(sk), (uint64_t)(count * (double)ONE));
    T_EQ_U64(wr_bins_zero(sk), (uint64_t)(strtod(cells[4], NULL) * (double)ONE));
    t_expect_bins(sk, WR_BINS_POSITIVE, infinite ? "-1:1" : cells[5], 0);
    t_expect_bins(sk, WR_BINS_NEGATIVE, infinite ? "-" : cells[6], 0);
    if (infinite || nan)
        T_NEAR(weir_sketch_sum(sk), 1, 0.05);
    else
        T_EQ_DBL(weir_sketch_sum(sk), strtod(cells[7], NULL));
    T_TRUE(!weir_sketch_is_exact(sk) || !weir_sketch_weight(sk));
    if (strncmp(cells[0], "same-", 5) == 0)
        expect_bytes(PROM, sk, cells[1]);
    if (strcmp(cells[0], "float") != 0)
        t_expect_round(PROM, NULL, sk);
    weir_sketch_free(sk);
}

TEST(histograms_of_prometheus_are_read_bin_for_bin_and_written_byte_for_byte)
{
    T_EQ_U64(t_rows(GOLDEN "prometheus.tsv", prometheus_row, NULL), 12);
}

static void prometheus_hostile(void *ctx, char *cells[T_CELLS])
{
    (void)ctx;
    struct t_bytes b = t_bytes(cells[1]);
    t_expect_hardy(PROM, NULL, b.at, b.n);
    free(b.at);
}

TEST(no_damage_to_a_native_histogram_does_harm)
{
    t_rows(GOLDEN "prometheus.tsv", prometheus_hostile, NULL);
}

/* ---- OTLP to Prometheus as Prometheus' own converter lays it out */

/* An ExponentialHistogramDataPoint of positive counts "4 3 2 1". */
static size_t put_point(uint8_t *at, int64_t scale, int64_t offset, const char *counts)
{
    uint8_t packed[64];
    size_t n = 0;
    uint64_t total = 0;
    for (const char *c = counts; *c && *c != '-';) {
        char *end;
        packed[n] = (uint8_t)strtoul(c, &end, 10);
        total += packed[n++];
        c = *end ? end + 1 : end;
    }
    uint8_t *const begin = at;
    *at++ = 4 << 3 | 1;
    wr_store64le(at, total);
    at += 8;
    *at++ = 6 << 3;
    *at++ = (uint8_t)(scale * 2);
    *at++ = 8 << 3 | 2;
    *at++ = (uint8_t)(4 + n);
    *at++ = 1 << 3;
    *at++ = (uint8_t)wr_codec_zigzag(offset);
    *at++ = 2 << 3 | 2;
    *at++ = (uint8_t)n;
    memcpy(at, packed, n);
    return (size_t)(at + n - begin);
}

/* What the spans and deltas of a histogram say, as the table has it: "1,4" and "4 -1 -1 -1". */
struct layout {
    char spans[128];
    char deltas[256];
    size_t ns;
    size_t nd;
};

static void see_field(struct layout *l, const struct wr_pb_field *f)
{
    if (f->tag == WR_PB_TAG(12, WR_PB_LEN)) {
        T_EQ_U64(f->u, 4); /* small numbers: two fields of two bytes */
        l->ns +=
            (size_t)snprintf(l->spans + l->ns, sizeof l->spans - l->ns, "%s%lld,%u",
                             l->ns ? " " : "", (long long)wr_codec_unzigzag(f->ptr[1]), f->ptr[3]);
    }
    if (f->tag == WR_PB_TAG(13, WR_PB_VARINT))
        l->nd += (size_t)snprintf(l->deltas + l->nd, sizeof l->deltas - l->nd, "%s%lld",
                                  l->nd ? " " : "", (long long)wr_codec_unzigzag(f->u));
}

static void native_row(void *ctx, char *cells[T_CELLS])
{
    (void)ctx;
    uint8_t bytes[128];
    const int64_t down = strtoll(cells[3], NULL, 10);
    const size_t n = put_point(bytes, WEIR_SCALE_MAX + down, strtoll(cells[1], NULL, 10), cells[2]);
    struct weir_sketch *sk;
    T_OK(t_decode(OTLP, NULL, bytes, n, &sk));
    struct t_bytes b = t_encode(PROM, NULL, sk);
    struct wr_pb pb = wr_pb_init(b.at, b.n);
    struct layout l = {.spans = "-", .deltas = "-"};
    for (const uint8_t *at = pb.begin; at < pb.end;) {
        struct wr_pb_field f;
        at = wr_pb_field(&pb, at, pb.end, &f);
        T_TRUE(at != NULL);
        see_field(&l, &f);
    }
    T_EQ_STR(l.spans, cells[4]);
    T_EQ_STR(l.deltas, cells[5]);
    free(b.at);
    weir_sketch_free(sk);
}

TEST(spans_and_deltas_are_those_of_the_converter_of_prometheus)
{
    T_EQ_U64(t_rows(GOLDEN "otlp-to-native.tsv", native_row, NULL), 24);
}

/* ---- Lossless */

static void expect_all_three(struct t_rng *rng, int32_t scale)
{
    struct weir_sketch *const sk = t_random_sketch(rng, scale, true);
    struct t_bytes otlp = t_encode(OTLP, NULL, sk);
    struct weir_sketch *a;
    T_OK(t_decode(OTLP, NULL, otlp.at, otlp.n, &a));
    t_same_bins(sk, a);
    T_EQ_DBL(t_sketch_min(a), weir_sketch_is_exact(a) ? t_sketch_min(sk) : t_sketch_min(a));
    if (scale >= -4) {
        struct t_bytes prom = t_encode(PROM, NULL, a);
        struct weir_sketch *b;
        T_OK(t_decode(PROM, NULL, prom.at, prom.n, &b));
        t_same_bins(sk, b);
        struct t_bytes back = t_encode(OTLP, NULL, b);
        struct weir_sketch *c;
        T_OK(t_decode(OTLP, NULL, back.at, back.n, &c));
        t_same_bins(sk, c);
        free(prom.at);
        free(back.at);
        weir_sketch_free(b);
        weir_sketch_free(c);
    } else {
        uint8_t none[8];
        size_t n;
        T_ERR(weir_codec_encode(PROM, NULL, a, none, sizeof none, &n), WEIR_EVERSION);
    }
    free(otlp.at);
    weir_sketch_free(a);
    weir_sketch_free(sk);
}

TEST(base_2_otlp_and_prometheus_are_each_other_bin_for_bin)
{
    struct t_rng rng = t_rng(t_seed());
    for (int i = 0; i < 4; i++)
        for (int32_t scale = WEIR_SCALE_MIN; scale <= WEIR_SCALE_MAX; scale++)
            expect_all_three(&rng, scale);
}

TEST(statistics_come_back_as_they_were)
{
    struct weir_sketch *const sk = t_sketch_of(NULL, 0);
    for (int i = 1; i <= 1000; i++)
        T_OK(weir_sketch_add(sk, i * 0.37, 0));
    struct t_bytes b = t_encode(OTLP, NULL, sk);
    struct weir_sketch *again;
    T_OK(t_decode(OTLP, NULL, b.at, b.n, &again));
    t_same_bins(sk, again);
    T_TRUE(weir_sketch_is_exact(again));
    T_EQ_DBL(weir_sketch_sum(again), weir_sketch_sum(sk));
    T_EQ_DBL(t_sketch_min(again), 0.37);
    T_EQ_DBL(t_sketch_max(again), 370);
    for (int q = 0; q <= 100; q++)
        T_EQ_DBL(t_sketch_q(again, q / 100.0), t_sketch_q(sk, q / 100.0));
    free(b.at);
    weir_sketch_free(again);
    weir_sketch_free(sk);
}

TEST(durations_are_written_in_seconds)
{
    struct weir_sketch *const sk = t_sketch(WEIR_GRID_NS, 0);
    T_OK(weir_sketch_add_ns(sk, 1500000000, 0));
    T_OK(weir_sketch_add_ns(sk, 2000000, 0));
    struct t_bytes b = t_encode(OTLP, NULL, sk);
    struct weir_sketch *again;
    T_OK(t_decode(OTLP, NULL, b.at, b.n, &again));
    T_EQ_DBL(weir_sketch_sum(again), 1.502);
    T_EQ_DBL(t_sketch_max(again), 1.5);
    T_NEAR(t_sketch_q(again, 0), 0.002, 0.0055);
    const struct weir_codec_opts ns = {.struct_size = sizeof ns, .flags = WEIR_CODEC_NANOSECONDS};
    size_t n;
    T_ERR(weir_codec_encode(OTLP, &ns, sk, b.at, b.n, &n), WEIR_EVERSION);
    T_ERR(weir_codec_encode(PROM, &ns, sk, b.at, b.n, &n), WEIR_EVERSION);
    free(b.at);
    weir_sketch_free(again);
    weir_sketch_free(sk);
}

TEST(a_logarithm_of_base_2_is_written_another_one_is_refused)
{
    struct weir_mapping *const base2 = t_mapping(WEIR_MAPPING_LOG, exp2(1 / 32.0), 7);
    struct weir_mapping *const other = t_mapping(WEIR_MAPPING_LOG, 1.01 / 0.99, 0);
    struct weir_mapping *const half = t_mapping(WEIR_MAPPING_LOG, exp2(1 / 32.0), 0.5);
    struct weir_sketch *const a = t_sketch_of(base2, 0);
    struct weir_sketch *const b = t_sketch_of(other, 0);
    struct weir_sketch *const c = t_sketch_of(half, 0);
    T_OK(weir_sketch_add(a, 3, 0));
    T_OK(weir_sketch_add(b, 3, 0));
    T_OK(weir_sketch_add(c, 3, 0));
    struct t_bytes bytes = t_encode(OTLP, NULL, a);
    struct weir_sketch *again;
    T_OK(t_decode(OTLP, NULL, bytes.at, bytes.n, &again));
    T_EQ_I64(weir_mapping_scale(weir_sketch_mapping(again)), 5);
    t_expect_bins(again, WR_BINS_POSITIVE, "50:1", 0); /* floor(32 log2 3) */
    size_t n;
    T_ERR(weir_codec_encode(OTLP, NULL, b, bytes.at, bytes.n, &n), WEIR_EVERSION);
    T_ERR(weir_codec_encode(PROM, NULL, b, bytes.at, bytes.n, &n), WEIR_EVERSION);
    T_ERR(weir_codec_encode(OTLP, NULL, c, bytes.at, bytes.n, &n), WEIR_EVERSION);
    free(bytes.at);
    weir_sketch_free(a);
    weir_sketch_free(b);
    weir_sketch_free(c);
    weir_sketch_free(again);
    weir_mapping_unref(base2);
    weir_mapping_unref(other);
    weir_mapping_unref(half);
}

TEST(fractions_of_weights_are_rounded_so_that_the_total_is_right)
{
    struct weir_sketch *const sk = t_sketch_of(NULL, 0);
    for (int i = 0; i < 300; i++)
        T_OK(weir_sketch_add(sk, exp(i / 20.0) * (i % 3 ? 1 : -1), ONE / 3 + 1));
    T_OK(weir_sketch_add(sk, 0, ONE / 4));
    for (int which = 0; which < 2; which++) {
        const uint32_t codec = which ? PROM : OTLP;
        struct t_bytes b = t_encode(codec, NULL, sk);
        struct weir_sketch *again;
        T_OK(t_decode(codec, NULL, b.at, b.n, &again));
        T_EQ_U64(weir_sketch_weight(again), 100 * ONE); /* 100.25 */
        free(b.at);
        weir_sketch_free(again);
    }
    weir_sketch_free(sk);
}

/* ---- Refusals */

TEST(points_that_contradict_themselves_are_refused)
{
    static const struct {
        const char *hex;
        int want;
        const char *reason;
    } rows[] = {
        {"210200000000000000300c42051201010801", WEIR_EFORMAT, "count is not that of the bins"},
        {"21010000000000000030154205120101080a", WEIR_EVERSION, "a scale below -10"},
        {"210000000000000000300c5001", WEIR_EEMPTY, "a point without a recorded value"},
        /* an offset no double has, the largest and the smallest */
        {"210100000000000000300c420908feffffff0f120101", WEIR_EFORMAT,
         "a bin past the range of doubles, or counts past 2^44"},
        {"210100000000000000300c420908ffffffff0f120101", WEIR_EFORMAT,
         "a bin past the range of doubles, or counts past 2^44"},
        {"210100000000000000300c420a08feffffffff01120101", WEIR_EFORMAT,
         "a scale or offset of more than 32 bits"},
        /* counts that pass 64 bits of weight */
        {"21ffffffffffffffff300c420c120affffffffffffffffff01", WEIR_ERANGE,
         "counts of more than 2^44"},
        {"210100000000000000300c420312010142031201 01", WEIR_EFORMAT,
         "the buckets of one sign twice"},
        {"210100000000000000300c42031201ff", WEIR_EFORMAT,
         "a varint reaches past the end of its field"},
        /* a threshold that is no number */
        {"210100000000000000300c42031201017100000000 0000f87f", WEIR_EFORMAT,
         "the zero threshold is no distance"},
        {"21010000000000000030", WEIR_ETRUNCATED, "a field reaches past the end of the bytes"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct weir_where where;
        T_ERR(t_decode_hex(OTLP, NULL, rows[i].hex, &where), rows[i].want);
        T_EQ_STR(where.reason, rows[i].reason);
    }
}

TEST(statistics_that_are_no_numbers_are_left_out)
{
    /* one value in bin 0, sum NaN, min 5, max 1 */
    struct weir_sketch *const sk =
        decoded(OTLP, "21010000000000000029000000000000f87f300c4203120101"
                      "6100000000000014406900000000 0000f03f");
    T_TRUE(!weir_sketch_is_exact(sk));
    T_NEAR(weir_sketch_sum(sk), 1, 0.012);
    weir_sketch_free(sk);
}

TEST(finer_scales_are_read_by_halving_indices)
{
    /* scale 20: index 613377 (1.5) and index -1 (1), and scale 63: index 0 */
    struct weir_sketch *const sk = decoded(OTLP, "210200000000000000302842071201010882f04a"
                                                 "4a051201010801");
    t_expect_bins(sk, WR_BINS_POSITIVE, "149:1", 0);
    t_expect_bins(sk, WR_BINS_NEGATIVE, "-1:1", 0);
    weir_sketch_free(sk);
    struct weir_sketch *const fine = decoded(OTLP, "210100000000000000307e4203120101");
    t_expect_bins(fine, WR_BINS_POSITIVE, "0:1", 0);
    weir_sketch_free(fine);
}

TEST(scales_merge_when_they_are_aligned)
{
    /* scale 3 index 8 and scale 1 index 2 are near 2: H13 */
    struct weir_sketch *const fine = decoded(OTLP, "21010000000000000030064205120101 0810");
    struct weir_sketch *const coarse = decoded(OTLP, "21010000000000000030024205120101 0804");
    T_ERR(weir_sketch_merge(coarse, fine), WEIR_EVERSION);
    T_NEAR(t_sketch_q(fine, 0.5), 2.09, 0.05);
    T_NEAR(t_sketch_q(coarse, 0.5), 2.4, 0.2);
    weir_sketch_free(fine);
    weir_sketch_free(coarse);
}

TEST(an_empty_point_merges_both_ways)
{
    /* H12 */
    struct weir_sketch *const empty = decoded(OTLP, "300c");
    struct weir_sketch *const three = t_sketch_of(NULL, 0);
    T_OK(weir_sketch_add(three, 1, 0));
    T_OK(weir_sketch_add(three, 2, 0));
    T_OK(weir_sketch_add(three, 4, 0));
    T_OK(weir_sketch_merge(three, empty));
    T_OK(weir_sketch_merge(empty, three));
    t_same_bins(three, empty);
    T_EQ_U64(weir_sketch_weight(empty), 3 * ONE);
    weir_sketch_free(empty);
    weir_sketch_free(three);
}

TEST(other_histograms_of_prometheus_are_refused_by_name)
{
    static const struct {
        const char *hex;
        int want;
        const char *reason;
    } rows[] = {
        {"080111000000000000f03f2869", WEIR_EVERSION, "custom bounds (schema -53)"},
        {"080111000000000000f03f1a0b080111000000000000f03f", WEIR_EVERSION, "a classic histogram"},
        {"080111000000000000f03f", WEIR_EFORMAT, "not a native histogram"},
        {"08012809620408001001 6802", WEIR_EVERSION, "a schema outside -4..8"},
        {"08012812620408001001 6802", WEIR_EVERSION, "a schema outside -4..8"},
        /* a delta less, and one more, than the spans have buckets */
        {"0801280c620408001002 6802", WEIR_EFORMAT, "buckets and counts that do not fit together"},
        {"0802280c620408001001 6802 6800", WEIR_EFORMAT,
         "buckets and counts that do not fit together"},
        /* a span of 2^32 - 1 buckets: nothing is made by it */
        {"0801280c6208080010ffffffff0f 6802", WEIR_EFORMAT,
         "buckets and counts that do not fit together"},
        {"0802280c620408001001 620408011001 6802 6800", WEIR_EFORMAT, "a span that goes back"},
        /* counts below 0 */
        {"0801280c620408001001 6801", WEIR_EFORMAT, "buckets and counts that do not fit together"},
        {"0805280c620408001001 6802", WEIR_EFORMAT, "count is not that of the buckets"},
        {"0801280c620408001001 71000000000000f03f", WEIR_EFORMAT,
         "float counts in a histogram of integers"},
        {"21000000000000f03f280c620408001001 6802", WEIR_EFORMAT,
         "deltas in a histogram of floats"},
        {"21000000000000f03f280c620408001001 71000000000000f0bf", WEIR_EFORMAT,
         "buckets and counts that do not fit together"},
        {"21000000000000f87f280c620408001001 71000000000000f87f", WEIR_EFORMAT,
         "a count that is negative or no number"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct weir_where where;
        T_ERR(t_decode_hex(PROM, NULL, rows[i].hex, &where), rows[i].want);
        T_EQ_STR(where.reason, rows[i].reason);
    }
}

TEST(packed_deltas_and_no_op_spans_are_read)
{
    struct weir_sketch *const sk = decoded(PROM, "0803110000000000000840280c 62040800100162040800"
                                                 "1000620408001001 6a020202");
    t_expect_bins(sk, WR_BINS_POSITIVE, "-1:1 0:2", 0);
    weir_sketch_free(sk);
    struct weir_sketch *const empty = decoded(PROM, "0800280c620408001000");
    T_EQ_U64(weir_sketch_weight(empty), 0);
    weir_sketch_free(empty);
}

TEST(a_sketch_keeps_its_mapping_where_it_is_the_same)
{
    struct weir_sketch *const sk = t_sketch_of(NULL, 0);
    const struct weir_mapping *const own = weir_sketch_mapping(sk);
    struct t_bytes b = t_bytes("21010000000000000029000000000000f03f300c4205080112010161000000"
                               "000000f03f69000000000000f03f");
    T_OK(weir_codec_decode(OTLP, NULL, b.at, b.n, sk, NULL));
    T_TRUE(weir_sketch_mapping(sk) == own);
    T_EQ_DBL(t_sketch_q(sk, 0.5), 1);
    free(b.at);
    weir_sketch_free(sk);
}
