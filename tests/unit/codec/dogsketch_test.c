/* SPDX-License-Identifier: Apache-2.0 */
/* dogsketch: the agent's sketches, in its payloads and one by one. */
#include "support.h"
#include "wire/pb_read.h"

#include <math.h>

static struct weir_mapping *agent_mapping(void)
{
    return t_mapping(WEIR_MAPPING_LOG, 1.015625, 1338.5);
}

/* The Dogsketch messages of a SketchPayload (1 sketches: 7 dogsketches), one after the other into
 * read: how many were taken, and how many refused. */
struct payload {
    unsigned kept;
    unsigned refused;
    unsigned empty;
};

static struct payload walk_payload(const struct t_bytes *b, struct weir_sketch *last)
{
    struct payload p = {.kept = 0};
    struct wr_pb pb = wr_pb_init(b->at, b->n);
    struct weir_sketch *const sk = t_sketch_of(NULL, 0);
    const uint8_t *at = pb.begin;
    while (at && at < pb.end) {
        struct wr_pb_field series;
        const uint8_t *const end = wr_pb_field(&pb, at, pb.end, &series);
        T_TRUE(end != NULL && series.tag == WR_PB_TAG(1, WR_PB_LEN));
        for (at = series.ptr; at && at < end;) {
            struct wr_pb_field f;
            at = wr_pb_field(&pb, at, end, &f);
            T_TRUE(at != NULL);
            if (f.tag != WR_PB_TAG(7, WR_PB_LEN))
                continue;
            if (weir_codec_decode(WEIR_CODEC_DOGSKETCH, NULL, f.ptr, f.u, sk, NULL) != WEIR_OK) {
                p.refused++;
                continue;
            }
            T_TRUE(wr_sketch_check(sk));
            p.kept++;
            p.empty += weir_sketch_weight(sk) == 0;
            T_OK(weir_codec_decode(WEIR_CODEC_DOGSKETCH, NULL, f.ptr, f.u, last, NULL));
        }
        at = end;
    }
    weir_sketch_free(sk);
    return p;
}

static double count_of(const struct weir_sketch *sk)
{
    return (double)weir_sketch_weight(sk) / (double)ONE;
}

static void expect_payload(void *ctx, char *cells[T_CELLS])
{
    (void)ctx;
    static const struct {
        const char *id;
        unsigned kept;
        unsigned refused;
        double count; /* of the last one that is kept */
        double sum;
        double min;
        double max;
        bool exact;
    } rows[] = {
        {"one-sample", 1, 0, 1, 1, 1, 1, true},
        {"70000-in-one-bin", 1, 0, 70000, 70000, 1, 1, true},
        {"duplicate-keys", 1, 0, 70000, 70000, 1, 1, true},
        {"negative-zero-positive", 1, 0, 4, 0, -10, 10, true},
        /* the bins are trusted: 3 of them, about 1 each */
        {"sum-n-not-cnt", 1, 0, 3, 3, 1, 1, false},
        {"lengths-differ", 1, 1, 1, 1, 1, 1, true},
        {"key-40000", 0, 1, 0, 0, 0, 0, true},
        {"key-32767-inf", 1, 0, 1, 1, 1, 1, true},
        {"timestamp-int64-max", 1, 0, 1, 1, 1, 1, true},
        {"count-3e9", 1, 0, 3e9, 3e9, 1, 1, true},
        {"nan-sum", 1, 0, 1, 1, 1, 1, false},
        {"empty-bins", 1, 0, 0, 0, 0, 0, true},
    };
    size_t i = 0;
    while (i < sizeof rows / sizeof rows[0] && strcmp(rows[i].id, cells[0]) != 0)
        i++;
    T_TRUE(i < sizeof rows / sizeof rows[0]);
    struct t_bytes b = t_bytes(cells[2]);
    struct weir_sketch *const sk = t_sketch_of(NULL, 0);
    const struct payload p = walk_payload(&b, sk);
    T_EQ_U64(p.kept, rows[i].kept);
    T_EQ_U64(p.refused, rows[i].refused);
    T_EQ_DBL(count_of(sk), rows[i].count);
    T_TRUE(weir_sketch_is_exact(sk) == rows[i].exact);
    if (rows[i].exact)
        T_EQ_DBL(weir_sketch_sum(sk), rows[i].sum);
    else
        T_NEAR(weir_sketch_sum(sk), rows[i].sum, 0.008);
    if (rows[i].count > 0) {
        T_NEAR(t_sketch_min(sk), rows[i].min, 0.008);
        T_NEAR(t_sketch_max(sk), rows[i].max, 0.008);
        T_TRUE(t_sketch_q(sk, 0.5) >= t_sketch_min(sk) && t_sketch_q(sk, 0.5) <= t_sketch_max(sk));
    }
    weir_sketch_free(sk);
    free(b.at);
}

TEST(payloads_of_agents_are_read_and_their_broken_sketches_refused_one_by_one)
{
    T_EQ_U64(t_rows(CODEC_GOLDEN "dogsketch.tsv", expect_payload, NULL), 12);
}

static void expect_cuts(void *ctx, char *cells[T_CELLS])
{
    (void)ctx;
    struct t_bytes b = t_bytes(cells[2]);
    struct weir_sketch *const sk = t_sketch_of(NULL, 0);
    for (size_t from = 0; from < b.n; from++)
        for (size_t n = 0; n <= b.n - from; n += 1 + from % 7) {
            struct t_guard g = t_guard_new(b.at + from, n);
            const int r = weir_codec_decode(WEIR_CODEC_DOGSKETCH, NULL, g.ptr, n, sk, NULL);
            T_TRUE(wr_sketch_check(sk));
            T_TRUE(r == WEIR_OK || weir_sketch_weight(sk) == 0);
            t_guard_free(&g);
        }
    weir_sketch_free(sk);
    free(b.at);
}

TEST(any_part_of_a_payload_is_a_sketch_or_refused_and_never_read_past)
{
    T_EQ_U64(t_rows(CODEC_GOLDEN "dogsketch.tsv", expect_cuts, NULL), 12);
}

static int decode_hex(const char *hex, struct weir_sketch *sk)
{
    struct t_bytes b = t_bytes(hex);
    const int r = weir_codec_decode(WEIR_CODEC_DOGSKETCH, NULL, b.at, b.n, sk, NULL);
    free(b.at);
    return r;
}

TEST(keys_and_counts_come_in_pieces_packed_or_not_and_in_any_order)
{
    struct weir_sketch *const a = t_sketch_of(NULL, 0);
    struct weir_sketch *const b = t_sketch_of(NULL, 0);
    T_OK(decode_hex("3a06f414ce17f014"
                    "4203010203",
                    a));
    T_OK(decode_hex("4001"
                    "3a04f414ce17"
                    "42020203"
                    "38f014",
                    b));
    t_same_bins(a, b);
    T_EQ_DBL(count_of(a), 6);
    /* more keys than counts, and fewer; a varint that is cut, or has 11 bytes */
    T_ERR(decode_hex("3a04f414ce17"
                     "420102",
                     a),
          WEIR_EFORMAT);
    T_ERR(decode_hex("3a02f414"
                     "42020201",
                     a),
          WEIR_EFORMAT);
    T_ERR(decode_hex("3a01f4"
                     "420102",
                     a),
          WEIR_EFORMAT);
    T_ERR(decode_hex("3a0bffffffffffffffffffff01"
                     "420102",
                     a),
          WEIR_EFORMAT);
    T_ERR(decode_hex("3a02f414"
                     "4205ffffffff10",
                     a),
          WEIR_EFORMAT); /* 2^32 and more */
    T_ERR(decode_hex("3a7f", a), WEIR_ETRUNCATED);
    weir_sketch_free(b);
    weir_sketch_free(a);
}

TEST(the_greatest_keys_are_the_last_finite_bin_and_beyond_is_refused)
{
    struct weir_sketch *const sk = t_sketch_of(NULL, 0);
    int32_t lo;
    int32_t hi;
    T_OK(decode_hex("3a07feff03fdff0302"
                    "4203010203",
                    sk)); /* 32767, -32767, 1 */
    T_TRUE(wr_bins_range(sk, WR_BINS_POSITIVE, &lo, &hi));
    T_EQ_I64(hi, 32766);
    T_TRUE(wr_bins_range(sk, WR_BINS_NEGATIVE, &lo, &hi));
    T_EQ_I64(hi, 32766);
    T_TRUE(isfinite(t_sketch_q(sk, 0)) && isfinite(t_sketch_q(sk, 1)));
    T_ERR(decode_hex("3a03808004"
                     "420101",
                     sk),
          WEIR_EFORMAT); /* 32768 */
    T_ERR(decode_hex("3a03818004"
                     "420101",
                     sk),
          WEIR_EFORMAT); /* -32769 */
    weir_sketch_free(sk);
}

TEST(what_is_written_is_read_again_bin_for_bin_with_its_statistics)
{
    struct weir_mapping *const m = agent_mapping();
    struct t_rng rng = t_rng(t_seed());
    for (int i = 0; i < 100; i++) {
        struct weir_sketch *const a = t_sketch_of(m, 4096);
        struct weir_sketch *const b = t_sketch_of(m, 4096);
        const unsigned n = (unsigned)t_below(&rng, 500);
        for (unsigned k = 0; k < n; k++) {
            const double v = exp((t_unit(&rng) - 0.5) * 30); /* above 3e-7 */
            T_OK(weir_sketch_add(a,
                                 t_below(&rng, 3)   ? v
                                 : t_below(&rng, 2) ? -v
                                                    : 0,
                                 ONE << t_below(&rng, 36)));
        }
        struct t_bytes bytes = t_encode(WEIR_CODEC_DOGSKETCH, NULL, a);
        T_OK(weir_codec_decode(WEIR_CODEC_DOGSKETCH, NULL, bytes.at, bytes.n, b, NULL));
        t_same_bins(a, b);
        if (n) {
            T_TRUE(weir_sketch_is_exact(b));
            T_EQ_DBL(weir_sketch_sum(a), weir_sketch_sum(b));
            T_EQ_DBL(t_sketch_min(a), t_sketch_min(b));
            T_EQ_DBL(t_sketch_max(a), t_sketch_max(b));
        } else {
            T_EQ_U64(bytes.n, 0);
        }
        free(bytes.at);
        weir_sketch_free(b);
        weir_sketch_free(a);
    }
    weir_mapping_unref(m);
}

TEST(fractions_are_rounded_so_that_the_total_is_the_rounded_total)
{
    struct weir_mapping *const m = agent_mapping();
    struct t_rng rng = t_rng(t_seed());
    for (int i = 0; i < 50; i++) {
        struct weir_sketch *const a = t_sketch_of(m, 0);
        struct weir_sketch *const b = t_sketch_of(m, 0);
        for (unsigned k = 0; k < 200; k++)
            T_OK(weir_sketch_add(a, exp(t_unit(&rng) * 5), 1 + t_below(&rng, 2 * ONE)));
        struct t_bytes bytes = t_encode(WEIR_CODEC_DOGSKETCH, NULL, a);
        T_OK(weir_codec_decode(WEIR_CODEC_DOGSKETCH, NULL, bytes.at, bytes.n, b, NULL));
        T_EQ_U64(weir_sketch_weight(b), (weir_sketch_weight(a) + ONE / 2) / ONE * ONE);
        int64_t ahead = 0; /* up to each key no more than half a value */
        for (int32_t k = 1; k < 2000; k++) {
            uint64_t weights[2];
            wr_bins_read(a, WR_BINS_POSITIVE, k, 1, &weights[0]);
            wr_bins_read(b, WR_BINS_POSITIVE, k, 1, &weights[1]);
            ahead += (int64_t)weights[1] - (int64_t)weights[0];
            T_TRUE(ahead <= (int64_t)ONE / 2 && ahead >= -(int64_t)ONE / 2);
        }
        free(bytes.at);
        weir_sketch_free(b);
        weir_sketch_free(a);
    }
    weir_mapping_unref(m);
}

TEST(magnitudes_below_the_first_key_are_zeros_and_those_past_the_last_are_refused)
{
    struct weir_mapping *const m = agent_mapping();
    struct weir_sketch *const a = t_sketch_of(m, 0);
    struct weir_sketch *const b = t_sketch_of(m, 0);
    T_OK(weir_sketch_add(a, 1e-9, 0));
    T_OK(weir_sketch_add(a, 1e-12, 2 * ONE));
    T_OK(weir_sketch_add(a, -1e-10, 3 * ONE));
    T_OK(weir_sketch_add(a, 0, 4 * ONE));
    struct t_bytes bytes = t_encode(WEIR_CODEC_DOGSKETCH, NULL, a);
    T_OK(weir_codec_decode(WEIR_CODEC_DOGSKETCH, NULL, bytes.at, bytes.n, b, NULL));
    T_EQ_U64(wr_bins_zero(b), 9 * ONE);
    T_EQ_U64(weir_sketch_weight(b), 10 * ONE);
    free(bytes.at);
    weir_sketch_clear(a);
    T_OK(weir_sketch_add(a, 1e300, 0));
    uint8_t dst[256];
    size_t n;
    T_ERR(weir_codec_encode(WEIR_CODEC_DOGSKETCH, NULL, a, dst, sizeof dst, &n), WEIR_ERANGE);
    weir_sketch_free(b);
    weir_sketch_free(a);
    weir_mapping_unref(m);
}

TEST(a_count_of_more_than_32_bits_is_several_of_one_key)
{
    struct weir_mapping *const m = agent_mapping();
    struct weir_sketch *const a = t_sketch_of(m, 0);
    struct weir_sketch *const b = t_sketch_of(m, 0);
    T_OK(weir_sketch_add(a, 1, ((uint64_t)UINT32_MAX * 3 + 7) * ONE));
    struct t_bytes bytes = t_encode(WEIR_CODEC_DOGSKETCH, NULL, a);
    T_OK(weir_codec_decode(WEIR_CODEC_DOGSKETCH, NULL, bytes.at, bytes.n, b, NULL));
    t_same_bins(a, b);
    free(bytes.at);
    weir_sketch_free(b);
    weir_sketch_free(a);
    weir_mapping_unref(m);
}

TEST(only_the_agents_bins_are_written_also_from_nanoseconds_or_whole_bins_off)
{
    struct weir_mapping *const ns = t_mapping(WEIR_MAPPING_LOG, 1.015625, 1.8761281912861705);
    struct weir_mapping *const off = t_mapping(WEIR_MAPPING_LOG, 1.015625, 1336.5);
    struct weir_mapping *const half = t_mapping(WEIR_MAPPING_LOG, 1.015625, 1338);
    uint8_t dst[256];
    size_t n;
    struct weir_sketch *const plain = t_sketch_of(NULL, 0);
    T_OK(weir_sketch_add(plain, 1, 0));
    T_ERR(weir_codec_encode(WEIR_CODEC_DOGSKETCH, NULL, plain, dst, sizeof dst, &n), WEIR_EVERSION);
    struct weir_sketch *sk = t_sketch_of(half, 0);
    T_ERR(weir_codec_encode(WEIR_CODEC_DOGSKETCH, NULL, sk, dst, sizeof dst, &n), WEIR_EVERSION);
    weir_sketch_free(sk);
    sk = t_sketch_of(off, 0);
    T_OK(weir_sketch_add(sk, 1, 0));
    T_OK(weir_codec_encode(WEIR_CODEC_DOGSKETCH, NULL, sk, dst, sizeof dst, &n));
    T_OK(weir_codec_decode(WEIR_CODEC_DOGSKETCH, NULL, dst, n, plain, NULL));
    uint64_t weight;
    wr_bins_read(plain, WR_BINS_POSITIVE, 1338, 1, &weight);
    T_EQ_U64(weight, ONE);
    weir_sketch_free(sk);
    const struct weir_sketch_opts o = {
        .struct_size = sizeof o, .grid = WEIR_GRID_NS, .mapping = ns};
    T_OK(weir_sketch_new(&o, &sk));
    T_OK(weir_sketch_add_ns(sk, 1000000000, 0));
    T_OK(weir_codec_encode(WEIR_CODEC_DOGSKETCH, NULL, sk, dst, sizeof dst, &n));
    T_OK(weir_codec_decode(WEIR_CODEC_DOGSKETCH, NULL, dst, n, plain, NULL));
    wr_bins_read(plain, WR_BINS_POSITIVE, 1338, 1, &weight);
    T_EQ_U64(weight, ONE);
    T_EQ_DBL(weir_sketch_sum(plain), 1);
    weir_sketch_free(sk);
    weir_sketch_free(plain);
    weir_mapping_unref(half);
    weir_mapping_unref(off);
    weir_mapping_unref(ns);
}

TEST(three_and_two_thousand_million_values_are_five)
{
    struct weir_sketch *const a = t_sketch_of(NULL, 0);
    struct weir_sketch *const b = t_sketch_of(NULL, 0);
    T_OK(decode_hex("3a02f414"
                    "420580bcc1960b",
                    a)); /* vector#26135: a count of 32 bits wraps */
    T_OK(decode_hex("3a02f414"
                    "420580a8d6b907",
                    b));
    T_OK(weir_sketch_merge(a, b));
    T_EQ_DBL(count_of(a), 5e9);
    weir_sketch_free(b);
    weir_sketch_free(a);
}
