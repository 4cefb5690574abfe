/* SPDX-License-Identifier: Apache-2.0 */
/* codec: what holds for all encodings of the DDSketch family: mappings, units, statistics, counts.
 */
#include "codec/codec.h"
#include "codec/dd_compact.h"
#include "codec/dd_proto.h"
#include "codec/varfloats.h"
#include "support.h"

#include <float.h>
#include <math.h>

#define GAMMA_1 (1.01 / 0.99)

static const uint32_t family[] = {WEIR_CODEC_DD_PROTO, WEIR_CODEC_DD_COMPACT};

static struct weir_codec_opts with_flags(uint32_t flags)
{
    return (struct weir_codec_opts){.struct_size = sizeof(struct weir_codec_opts), .flags = flags};
}

static int decode_hex(uint32_t codec, const struct weir_codec_opts *opts, const char *hex,
                      struct weir_sketch *sk)
{
    struct t_bytes b = t_bytes(hex);
    struct t_guard g = t_guard_new(b.at, b.n);
    const int r = weir_codec_decode(codec, opts, g.ptr, b.n, sk, NULL);
    T_TRUE(wr_sketch_check(sk));
    t_guard_free(&g);
    free(b.at);
    return r;
}

static uint64_t weight_at(const struct weir_sketch *sk, enum wr_bins_sign sign, int32_t index)
{
    uint64_t weight;
    wr_bins_read(sk, sign, index, 1, &weight);
    return weight;
}

TEST(names_are_those_of_the_header_and_no_others)
{
    T_EQ_STR(weir_codec_name(WEIR_CODEC_WEIR), "weir");
    T_EQ_STR(weir_codec_name(WEIR_CODEC_DD_PROTO), "dd_proto");
    T_EQ_STR(weir_codec_name(WEIR_CODEC_DD_COMPACT), "dd_compact");
    T_EQ_STR(weir_codec_name(WEIR_CODEC_DOGSKETCH), "dogsketch");
    T_TRUE(weir_codec_name(UINT32_MAX) == NULL);
}

TEST(counts_are_the_same_doubles_with_and_without_vectors)
{
    enum { COUNTS = UINT16_MAX + 1 };
    uint16_t *const counts = malloc(COUNTS * sizeof *counts);
    for (size_t i = 0; i < COUNTS; i++)
        counts[i] = (uint16_t)i;
    /* every length around those of a vector, and every count */
    static const size_t lengths[] = {0, 1, 7, 8, 9, 15, 16, 17, 23, COUNTS};
    for (size_t k = 0; k < sizeof lengths / sizeof lengths[0]; k++) {
        const size_t n = lengths[k];
        const uint16_t *const from = counts + COUNTS - n;
        uint8_t *const got = malloc(8 * n + 1);
        uint8_t *const scalar = malloc(8 * n + 1);
        got[8 * n] = 0xa5;
        wr_dd_proto_put_counts(got, from, n);
        wr_dd_proto_put_counts_scalar(scalar, from, n);
        T_EQ_BYTES(got, 8 * n, scalar, 8 * n);
        T_EQ_U64(got[8 * n], 0xa5);
        for (size_t i = 0; i < n; i++) {
            const double want = from[i];
            uint64_t bits;
            memcpy(&bits, &want, sizeof bits);
            T_EQ_U64(wr_load64le(got + 8 * i), bits);
        }
        free(got);
        free(scalar);
    }
    free(counts);
}

/* Where a varfloat of n counts from *at on ends without vectors. */
static uint8_t *varfloats_of(const uint16_t *counts, size_t n, uint8_t *at)
{
    for (size_t i = 0; i < n; i++)
        at = wr_varfloat_put(at, counts[i]);
    return at;
}

TEST(varfloats_are_the_same_bytes_with_and_without_vectors)
{
    enum { COUNTS = UINT16_MAX + 1 };
    uint16_t *const counts = malloc(COUNTS * sizeof *counts);
    struct t_rng rng = t_rng(0x7fa1);
    for (size_t i = 0; i < COUNTS; i++)
        counts[i] = (uint16_t)i;
    for (size_t i = COUNTS - 1; i > 0; i--) { /* lengths of neighbours in any combination */
        const size_t k = t_below(&rng, i + 1);
        const uint16_t c = counts[i];
        counts[i] = counts[k];
        counts[k] = c;
    }
    static const size_t lengths[] = {0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 100, COUNTS};
    for (size_t k = 0; k < sizeof lengths / sizeof lengths[0]; k++) {
        const size_t n = lengths[k];
        uint8_t *const want = malloc(9 * n + 1);
        uint8_t *const got = malloc(4 * n + 1);
        uint16_t *const back = malloc((n + 1) * sizeof *back);
        const size_t bytes = (size_t)(varfloats_of(counts, n, want) - want);
        T_EQ_BYTES(got, (size_t)(wr_varfloats_put(got, counts, n) - got), want, bytes);
        T_EQ_BYTES(got, (size_t)(wr_varfloats_put_scalar(got, counts, n) - got), want, bytes);
        uint8_t *const exact = malloc(bytes + 1);
        memcpy(exact, want, bytes);
        for (size_t way = 0; way < 2; way++) {
            const uint8_t *at = exact;
            back[n] = 0xa5a5;
            const size_t m = way ? wr_varfloats_get(&at, exact + bytes, back, n)
                                 : wr_varfloats_get_scalar(&at, exact + bytes, back, n);
            T_TRUE(n - m < 8); /* the last ones may be left to one by one */
            T_EQ_BYTES(back, m * sizeof *back, counts, m * sizeof *back);
            T_EQ_U64(back[n], 0xa5a5);
            T_EQ_U64((size_t)(varfloats_of(counts, m, want) - want), (size_t)(at - exact));
        }
        free(want);
        free(got);
        free(back);
        free(exact);
    }
    free(counts);
}

TEST(varfloats_end_before_what_is_no_count_of_16_bits)
{
    static const double others[] = {0.5, 1.25, 65536, 131071, 1e9, 0x1p40, 0x1p52, 1e300, HUGE_VAL};
    enum { COUNTS = 256 };
    for (size_t k = 0; k < sizeof others / sizeof others[0]; k++) {
        for (size_t bad = 0; bad < 80; bad++) {
            uint8_t bytes[COUNTS * WR_VARFLOAT_MAX];
            uint16_t back[COUNTS];
            uint8_t *end = bytes;
            uint8_t *stop = NULL;
            for (size_t i = 0; i < COUNTS; i++) {
                stop = i == bad ? end : stop;
                end = wr_varfloat_put(end, i == bad ? others[k] : (double)(i % 3 * 1000));
            }
            const uint8_t *at = bytes;
            memset(back, 0, sizeof back);
            const size_t n = wr_varfloats_get(&at, end, back, COUNTS);
            T_TRUE(n <= bad && bad - n < 4);
            T_TRUE(at <= stop);
            for (size_t i = 0; i < COUNTS; i++)
                T_EQ_U64(back[i], i < n ? i % 3 * 1000 : 0);
        }
    }
}

TEST(counts_of_any_size_in_one_run_come_back_as_they_were)
{
    struct t_rng rng = t_rng(0x3157);
    for (size_t round = 0; round < 200; round++) {
        struct weir_sketch *const sk = t_sketch_of(NULL, 2048);
        struct weir_sketch *const back = t_sketch_of(NULL, 2048);
        const size_t bins = 9 + t_below(&rng, 400);
        const uint64_t odd = 1 + t_below(&rng, 64); /* one in so many is no small count */
        for (size_t i = 0; i < bins; i++) {
            static const uint64_t others[] = {1 << 18, 3 << 17, 65536ull << 20, 70000ull << 20};
            const uint64_t weight =
                t_below(&rng, odd + 1) ? (1 + t_below(&rng, 3000)) << 20 : others[t_below(&rng, 4)];
            T_OK(weir_sketch_add(sk, exp2(((double)i + 0.5) / 64), weight));
        }
        uint8_t bytes[8192];
        size_t n;
        T_OK(weir_codec_encode(WEIR_CODEC_DD_COMPACT, NULL, sk, bytes, sizeof bytes, &n));
        T_OK(weir_codec_decode(WEIR_CODEC_DD_COMPACT, NULL, bytes, n, back, NULL));
        t_same_bins(sk, back);
        weir_sketch_free(sk);
        weir_sketch_free(back);
    }
}

/* Bins of a density and of counts that differ from one sketch to the next. */
static struct weir_sketch *some_bins(struct t_rng *rng)
{
    struct weir_sketch *const sk = t_sketch_of(NULL, 0);
    const bool listed = t_below(rng, 3) == 0; /* samples of weight one, some side by side */
    const uint64_t bins = 1 + t_below(rng, listed ? 100 : 700);
    const uint64_t spacing = 1 + t_below(rng, 9);
    const uint64_t most = listed            ? 1
                          : t_below(rng, 4) ? 1 + t_below(rng, 5)
                                            : 1 + t_below(rng, 20000);
    int32_t index = (int32_t)t_below(rng, 400) - 200;
    for (uint64_t i = 0; i < bins && index < 1800; i++) {
        const double v = weir_mapping_value(weir_sketch_mapping(sk), index);
        T_OK(weir_sketch_add(sk, listed || t_below(rng, 8) ? v : -v,
                             (1 + t_below(rng, most)) * (uint64_t)WEIR_WEIGHT_ONE));
        if (listed && t_below(rng, 3) == 0)
            continue; /* the same bin again */
        index += 1 + (int32_t)t_below(rng, spacing);
        if (!t_below(rng, 60))
            index += (int32_t)t_below(rng, 200); /* deltas of two bytes */
    }
    return sk;
}

static size_t compact_by(enum wr_compact_way way, uint32_t flags, const struct weir_sketch *sk,
                         uint8_t *dst, size_t cap)
{
    const struct weir_codec_opts opts = with_flags(flags);
    struct wr_codec_out out = {.at = dst, .end = dst + cap};
    T_OK(wr_dd_compact_encode_by(way, &opts, sk, &out));
    return out.full ? 0 : (size_t)(out.at - dst);
}

TEST(gathered_counts_take_the_same_compact_bytes_as_any_weights)
{
    enum { CAP = 1 << 16 };
    struct t_rng rng = t_rng(t_seed());
    uint8_t *const any = malloc(CAP);
    for (int n = 0; n < 1500; n++) {
        struct weir_sketch *const sk = some_bins(&rng);
        const uint32_t flags = n % 3 ? 0 : WEIR_CODEC_ONE_BLOCK;
        const size_t bytes = compact_by(WR_COMPACT_ANY, flags, sk, any, CAP);
        T_TRUE(bytes > 0);
        uint8_t *const exact = malloc(bytes); /* a byte behind it is found by ASan */
        T_EQ_U64(compact_by(WR_COMPACT_GATHERED, flags, sk, exact, bytes), bytes);
        T_EQ_BYTES(exact, bytes, any, bytes);
        T_EQ_U64(compact_by(WR_COMPACT_GATHERED, flags, sk, exact, bytes - 1), 0);
        free(exact);
        weir_sketch_free(sk);
    }
    free(any);
}

TEST(an_unknown_codec_and_a_sketch_of_nanoseconds_are_refused)
{
    struct weir_sketch *const sk = t_sketch_of(NULL, 0);
    struct weir_sketch *const ns = t_sketch(WEIR_GRID_NS, 0);
    uint8_t bytes[8];
    size_t n;
    struct weir_where where = {.reason = NULL};
    T_ERR(weir_codec_decode(99, NULL, bytes, 0, sk, &where), WEIR_EINVAL);
    T_TRUE(where.reason != NULL);
    T_ERR(weir_codec_encode(99, NULL, sk, bytes, sizeof bytes, &n), WEIR_EINVAL);
    T_EQ_U64(weir_codec_encode_bound(99, NULL, sk), 0);
    T_OK(weir_sketch_add_ns(ns, 5, 0));
    T_ERR(weir_codec_decode(WEIR_CODEC_DD_PROTO, NULL, bytes, 0, ns, NULL), WEIR_EINVAL);
    T_EQ_U64(weir_sketch_weight(ns), 0);
    weir_sketch_free(ns);
    weir_sketch_free(sk);
}

TEST(weir_form_goes_through_the_same_door)
{
    struct weir_sketch *const a = t_sketch(WEIR_GRID_NS, 0);
    struct weir_sketch *const b = t_sketch(WEIR_GRID_NS, 0);
    T_OK(weir_sketch_add_ns(a, 1234567, 3 * ONE));
    struct t_bytes bytes = t_encode(WEIR_CODEC_WEIR, NULL, a);
    T_EQ_U64(bytes.n, weir_codec_encode_bound(WEIR_CODEC_WEIR, NULL, a));
    T_OK(weir_codec_decode(WEIR_CODEC_WEIR, NULL, bytes.at, bytes.n, b, NULL));
    t_sketch_same(a, b);
    free(bytes.at);
    weir_sketch_free(b);
    weir_sketch_free(a);
}

/* Base 2 */

TEST(base_2_is_written_as_a_logarithm_and_read_back_bin_for_bin)
{
    for (int32_t scale = WEIR_SCALE_MIN; scale <= WEIR_SCALE_MAX; scale++)
        for (size_t c = 0; c < 2; c++) {
            struct weir_mapping *m;
            T_OK(weir_mapping_base2(NULL, scale, &m));
            struct weir_sketch *const a = t_sketch_of(m, 0);
            struct weir_sketch *const b = t_sketch_of(m, 0);
            struct weir_sketch *const other = t_sketch_of(NULL, 0);
            T_OK(weir_sketch_add(a, 0.3, 0));
            T_OK(weir_sketch_add(a, 5, 7 * ONE));
            T_OK(weir_sketch_add(a, -12345, 0));
            T_OK(weir_sketch_add(a, 0, 2 * ONE));
            struct t_bytes bytes = t_encode(family[c], NULL, a);
            T_OK(weir_codec_decode(family[c], NULL, bytes.at, bytes.n, b, NULL));
            t_same_bins(a, b);
            T_OK(weir_codec_decode(family[c], NULL, bytes.at, bytes.n, other, NULL));
            T_EQ_U64(weir_mapping_kind(weir_sketch_mapping(other)),
                     scale == WEIR_SKETCH_SCALE_DEFAULT ? WEIR_MAPPING_BASE2 : WEIR_MAPPING_LOG);
            free(bytes.at);
            weir_sketch_free(other);
            weir_sketch_free(b);
            weir_sketch_free(a);
            weir_mapping_unref(m);
        }
}

TEST(a_whole_offset_of_base_2_is_taken_from_the_index)
{
    struct weir_mapping *const m = t_mapping(WEIR_MAPPING_LOG, exp2(1.0 / 64), -1000);
    struct weir_mapping *const half = t_mapping(WEIR_MAPPING_LOG, exp2(1.0 / 64), 0.5);
    struct weir_sketch *const a = t_sketch_of(m, 0);
    struct weir_sketch *const b = t_sketch_of(NULL, 0);
    T_OK(weir_sketch_add(a, 5, 0));
    struct t_bytes bytes = t_encode(WEIR_CODEC_DD_COMPACT, NULL, a);
    T_OK(weir_codec_decode(WEIR_CODEC_DD_COMPACT, NULL, bytes.at, bytes.n, b, NULL));
    T_EQ_U64(weir_mapping_kind(weir_sketch_mapping(b)), WEIR_MAPPING_BASE2);
    T_EQ_U64(weight_at(b, WR_BINS_POSITIVE, 148), ONE); /* 64 log2 5 = 148.6 */
    free(bytes.at);
    struct weir_sketch *const c = t_sketch_of(half, 0);
    T_OK(weir_sketch_add(c, 5, 0));
    bytes = t_encode(WEIR_CODEC_DD_COMPACT, NULL, c);
    T_OK(weir_codec_decode(WEIR_CODEC_DD_COMPACT, NULL, bytes.at, bytes.n, b, NULL));
    T_EQ_U64(weir_mapping_kind(weir_sketch_mapping(b)), WEIR_MAPPING_LOG);
    t_same_bins(b, c);
    free(bytes.at);
    weir_sketch_free(c);
    weir_sketch_free(b);
    weir_sketch_free(a);
    weir_mapping_unref(half);
    weir_mapping_unref(m);
}

/* Units */

TEST(nanoseconds_are_written_in_seconds_or_as_another_offset)
{
    for (size_t c = 0; c < 2; c++) {
        struct weir_sketch *const ns = t_sketch(WEIR_GRID_NS, 0);
        struct weir_sketch *const read = t_sketch_of(NULL, 0);
        T_OK(weir_sketch_add_ns(ns, 5000000, 0));
        T_OK(weir_sketch_add_ns(ns, 7000000, 0));
        struct t_bytes bytes = t_encode(family[c], NULL, ns);
        T_OK(weir_codec_decode(family[c], NULL, bytes.at, bytes.n, read, NULL));
        T_EQ_U64(weir_mapping_kind(weir_sketch_mapping(read)), WEIR_MAPPING_BASE2);
        T_NEAR(t_sketch_q(read, 0), 0.005, 0.0055);
        t_same_bins(ns, read);
        free(bytes.at);
        const struct weir_codec_opts o = with_flags(WEIR_CODEC_NANOSECONDS);
        bytes = t_encode(family[c], &o, ns);
        T_OK(weir_codec_decode(family[c], NULL, bytes.at, bytes.n, read, NULL));
        T_EQ_U64(weir_mapping_kind(weir_sketch_mapping(read)), WEIR_MAPPING_LOG);
        T_NEAR(weir_mapping_offset(weir_sketch_mapping(read)), -64 * log2(1e9), 1e-15);
        T_NEAR(t_sketch_q(read, 0), 5e6, 0.0055);
        T_NEAR(t_sketch_q(read, 1), 7e6, 0.0055);
        T_NEAR(weir_sketch_sum(read), 12e6, 0.0055);
        T_TRUE(weir_sketch_is_exact(read) == (family[c] == WEIR_CODEC_DD_COMPACT));
        if (weir_sketch_is_exact(read)) {
            T_NEAR(weir_sketch_sum(read), 12e6, 1e-15);
            T_NEAR(t_sketch_min(read), 5e6, 1e-15);
            T_NEAR(t_sketch_max(read), 7e6, 1e-15);
        }
        free(bytes.at);
        weir_sketch_free(read);
        weir_sketch_free(ns);
    }
}

TEST(bins_of_nanoseconds_become_those_of_seconds_by_the_offset)
{
    struct weir_mapping *const m = t_mapping(WEIR_MAPPING_LOG, 1.015625, 1.8761281912861705);
    struct weir_mapping *const cubic = t_mapping(WEIR_MAPPING_CUBIC, 1.02, 0);
    struct weir_sketch_opts o = {.struct_size = sizeof o, .grid = WEIR_GRID_NS, .mapping = m};
    struct weir_sketch *ns;
    T_OK(weir_sketch_new(&o, &ns));
    struct weir_sketch *const read = t_sketch_of(NULL, 0);
    T_OK(weir_sketch_add_ns(ns, 2000000000, 0));
    struct t_bytes bytes = t_encode(WEIR_CODEC_DD_PROTO, NULL, ns);
    T_OK(weir_codec_decode(WEIR_CODEC_DD_PROTO, NULL, bytes.at, bytes.n, read, NULL));
    T_NEAR(weir_mapping_offset(weir_sketch_mapping(read)), 1338.5, 1e-12);
    T_NEAR(t_sketch_q(read, 0.5), 2, 0.008);
    free(bytes.at);
    weir_sketch_free(ns);
    /* of an interpolated logarithm another unit is not another offset */
    o.mapping = cubic;
    T_OK(weir_sketch_new(&o, &ns));
    T_OK(weir_sketch_add_ns(ns, 2000000000, 0));
    uint8_t dst[200];
    size_t n;
    T_ERR(weir_codec_encode(WEIR_CODEC_DD_PROTO, NULL, ns, dst, sizeof dst, &n), WEIR_EVERSION);
    const struct weir_codec_opts as_ns = with_flags(WEIR_CODEC_NANOSECONDS);
    T_OK(weir_codec_encode(WEIR_CODEC_DD_PROTO, &as_ns, ns, dst, sizeof dst, &n));
    weir_sketch_free(ns);
    weir_sketch_free(read);
    weir_mapping_unref(cubic);
    weir_mapping_unref(m);
}

/* Mappings */

TEST(bins_of_the_ceil_family_are_one_lower)
{
    /* {1} of the JavaScript library: key 0 is (1/g, 1] */
    const char *const hex = "0a0909fd4a815abf52f03f120d0a0b080011000000000000f03f1a00";
    struct weir_mapping *m;
    T_OK(weir_mapping_log(NULL, 0.01, &m));
    struct weir_sketch *const sk = t_sketch_of(m, 0);
    const struct weir_codec_opts o = with_flags(WEIR_CODEC_CEIL);
    T_OK(decode_hex(WEIR_CODEC_DD_PROTO, &o, hex, sk));
    T_TRUE(weir_sketch_mapping(sk) == m);
    T_EQ_U64(weight_at(sk, WR_BINS_POSITIVE, -1), ONE);
    T_TRUE(t_java_quantile(sk, 0.5) <= 1);
    T_OK(decode_hex(WEIR_CODEC_DD_PROTO, NULL, hex, sk));
    T_EQ_U64(weight_at(sk, WR_BINS_POSITIVE, 0), ONE);
    /* the lowest index has none below it */
    T_ERR(decode_hex(WEIR_CODEC_DD_PROTO, &o,
                     "0a0909fd4a815abf52f03f12110a0f08ffffffff0f11000000000000f03f", sk),
          WEIR_EFORMAT);
    /* the interpolated ones of that family are no one else's */
    T_ERR(decode_hex(WEIR_CODEC_DD_PROTO, &o,
                     "0a0b09c2f1e7e9ed51f03f1803120d0a0b080011000000000000f03f1a00", sk),
          WEIR_EVERSION);
    T_TRUE(weir_sketch_mapping(sk) == m);
    weir_sketch_free(sk);
    weir_mapping_unref(m);
}

TEST(a_mapping_that_was_left_out_comes_from_the_options)
{
    struct weir_mapping *m;
    T_OK(weir_mapping_log(NULL, 0.01, &m));
    struct weir_codec_opts o = with_flags(WEIR_CODEC_NO_MAPPING);
    struct weir_sketch *const a = t_sketch_of(m, 0);
    struct weir_sketch *const b = t_sketch_of(NULL, 0);
    struct t_bytes none = t_encode(WEIR_CODEC_DD_COMPACT, &o, a);
    T_EQ_U64(none.n, 0);
    T_ERR(weir_codec_decode(WEIR_CODEC_DD_COMPACT, &o, none.at, 0, b, NULL), WEIR_EFORMAT);
    T_OK(weir_sketch_add(a, 3, 0));
    T_OK(weir_sketch_add(a, -4, 0));
    struct t_bytes bytes = t_encode(WEIR_CODEC_DD_COMPACT, &o, a);
    T_ERR(weir_codec_decode(WEIR_CODEC_DD_COMPACT, NULL, bytes.at, bytes.n, b, NULL), WEIR_EFORMAT);
    o.mapping = m;
    T_OK(weir_codec_decode(WEIR_CODEC_DD_COMPACT, &o, bytes.at, bytes.n, b, NULL));
    T_TRUE(weir_sketch_mapping(b) == m || weir_mapping_equal(weir_sketch_mapping(b), m));
    t_same_bins(a, b);
    T_OK(weir_codec_decode(WEIR_CODEC_DD_COMPACT, &o, none.at, 0, b, NULL));
    T_EQ_U64(weir_sketch_weight(b), 0);
    free(bytes.at);
    free(none.at);
    weir_sketch_free(b);
    weir_sketch_free(a);
    weir_mapping_unref(m);
}

TEST(a_mapping_behind_the_bins_stands_before_that_of_the_options)
{
    struct weir_mapping *const m = t_mapping(WEIR_MAPPING_LOG, 1.5, 0);
    struct weir_codec_opts o = with_flags(0);
    o.mapping = m;
    struct weir_sketch *const sk = t_sketch_of(NULL, 0);
    const char *const hex = "0502440244020403"
                            "02fd4a815abf52f03f0000000000000000"
                            "070144028400000000000000008c000000000000f87f";
    for (int given = 0; given < 2; given++) {
        T_OK(decode_hex(WEIR_CODEC_DD_COMPACT, given ? &o : NULL, hex, sk));
        T_NEAR(weir_mapping_gamma(weir_sketch_mapping(sk)), GAMMA_1, 1e-15);
        T_EQ_U64(weir_sketch_weight(sk), 5 * ONE);
        T_EQ_U64(wr_bins_zero(sk), 2 * ONE);
        T_EQ_U64(weight_at(sk, WR_BINS_POSITIVE, 34), ONE);
        T_EQ_U64(weight_at(sk, WR_BINS_POSITIVE, 68), ONE);
        T_EQ_U64(weight_at(sk, WR_BINS_NEGATIVE, 34), ONE);
    }
    weir_sketch_free(sk);
    weir_mapping_unref(m);
}

TEST(a_second_mapping_may_only_repeat_the_first)
{
    struct weir_sketch *const sk = t_sketch_of(NULL, 0);
    T_OK(decode_hex(WEIR_CODEC_DD_COMPACT, NULL,
                    "0ec2f1e7e9ed51f03f00000000000000000ec3f1e7e9ed51f03f0000000000000000", sk));
    T_ERR(decode_hex(WEIR_CODEC_DD_COMPACT, NULL,
                     "02fd4a815abf52f03f000000000000000002000000000000f07f0000000000000000", sk),
          WEIR_EFORMAT);
    T_ERR(decode_hex(WEIR_CODEC_DD_COMPACT, NULL,
                     "02fd4a815abf52f03f000000000000000002000000000040f03f0000000000ea9440", sk),
          WEIR_EFORMAT);
    T_ERR(decode_hex(WEIR_CODEC_DD_COMPACT, NULL, "16fd4a815abf52f03f0000000000000000", sk),
          WEIR_EVERSION);
    weir_sketch_free(sk);
}

TEST(an_equal_mapping_is_kept_and_a_refusal_gives_the_old_one_back)
{
    struct weir_mapping *m;
    T_OK(weir_mapping_log(NULL, 0.01, &m));
    struct weir_sketch *const sk = t_sketch_of(m, 0);
    T_OK(decode_hex(WEIR_CODEC_DD_COMPACT, NULL, "02fe4a815abf52f03f000000000000000005010002", sk));
    T_TRUE(weir_sketch_mapping(sk) == m);
    T_ERR(decode_hex(WEIR_CODEC_DD_COMPACT, NULL, "02000000000040f03f0000000000ea9440050100", sk),
          WEIR_ETRUNCATED);
    T_TRUE(weir_sketch_mapping(sk) == m || weir_mapping_equal(weir_sketch_mapping(sk), m));
    T_EQ_U64(weir_sketch_weight(sk), 0);
    weir_sketch_free(sk);
    weir_mapping_unref(m);
}

/* Counts */

TEST(counts_finer_than_weights_are_carried_so_that_the_total_holds)
{
    struct weir_sketch *const sk = t_sketch_of(NULL, 0);
    struct wr_codec_bins b;
    const struct weir_codec_opts o = with_flags(0);
    const struct wr_codec_mapping m = {.kind = WEIR_MAPPING_LOG, .gamma = GAMMA_1};
    T_OK(wr_codec_begin(&b, sk, &o, &m));
    double total = 0;
    struct t_rng rng = t_rng(t_seed());
    for (int i = 0; i < 1000; i++) {
        const double count = t_unit(&rng) * (i % 3 ? 1e-6 : 3);
        T_OK(wr_codec_add(&b, WR_BINS_POSITIVE, i, count));
        total += count;
    }
    const struct wr_bins_stats none = {.has_sum = false};
    T_OK(wr_codec_end(&b, &none));
    T_TRUE(fabs((double)weir_sketch_weight(sk) - total * (double)ONE) <= 0.6);
    weir_sketch_free(sk);
}

TEST(counts_beyond_64_bits_are_refused_one_by_one_and_in_all)
{
    struct weir_sketch *const sk = t_sketch_of(NULL, 0);
    /* 2^44 and a little; 2^43 three times in one bin, in ones and in a run */
    T_ERR(decode_hex(WEIR_CODEC_DD_COMPACT, NULL,
                     "02fd4a815abf52f03f0000000000000000050100d88080808020", sk),
          WEIR_ERANGE);
    T_ERR(decode_hex(WEIR_CODEC_DD_COMPACT, NULL,
                     "02fd4a815abf52f03f00000000000000000d030000585858", sk),
          WEIR_ERANGE);
    T_ERR(decode_hex(WEIR_CODEC_DD_PROTO, NULL,
                     "0a0909fd4a815abf52f03f12121210000000000000a042000000000000a042", sk),
          WEIR_ERANGE);
    T_OK(decode_hex(WEIR_CODEC_DD_PROTO, NULL, "0a0909fd4a815abf52f03f120a1208000000000000a042",
                    sk));
    T_EQ_U64(weir_sketch_weight(sk), (uint64_t)1 << 63);
    T_ERR(decode_hex(WEIR_CODEC_DD_PROTO, NULL,
                     "0a0909fd4a815abf52f03f120a1208000000000000a04221000000000000a042", sk),
          WEIR_ERANGE);
    weir_sketch_free(sk);
}

/* Statistics */

TEST(statistics_of_other_bins_or_not_finite_are_left_out)
{
    struct weir_sketch *const sk = t_sketch_of(NULL, 0);
#define BINS "02fd4a815abf52f03f000000000000000005036c021e021602"
    static const char *const inexact[] = {
        BINS,
        /* a total of 5, not 3 */
        "a0058800000000000008408c0000000000001440840000000000002840" BINS,
        /* no total */
        "8800000000000008408c0000000000001440840000000000002840" BINS,
        /* minimum above the maximum; a minimum that is not a number; no maximum */
        "a0048800000000000014408c0000000000000840840000000000002840" BINS,
        "a00488000000000000f87f8c0000000000001440840000000000002840" BINS,
        "a004880000000000000840840000000000002840" BINS,
        /* a sum beyond three times the maximum, and not finite */
        "a0048800000000000008408c0000000000001440840000000000003840" BINS,
        "a0048800000000000008408c000000000000144084000000000000f07f" BINS,
    };
    for (size_t i = 0; i < sizeof inexact / sizeof inexact[0]; i++) {
        T_OK(decode_hex(WEIR_CODEC_DD_COMPACT, NULL, inexact[i], sk));
        T_TRUE(!weir_sketch_is_exact(sk));
        T_EQ_U64(weir_sketch_weight(sk), 3 * ONE);
        T_NEAR(weir_sketch_sum(sk), 12, 0.01);
        T_NEAR(t_sketch_min(sk), 3, 0.01);
        T_NEAR(t_sketch_max(sk), 5, 0.01);
    }
    /* one behind the other they add up */
    T_OK(decode_hex(WEIR_CODEC_DD_COMPACT, NULL,
                    "a0048800000000000008408c0000000000001440840000000000002840" BINS
                    "a0048800000000000008408c0000000000001840840000000000002840" BINS,
                    sk));
    T_TRUE(weir_sketch_is_exact(sk));
    T_EQ_U64(weir_sketch_weight(sk), 6 * ONE);
    T_EQ_DBL(weir_sketch_sum(sk), 24);
    T_EQ_DBL(t_sketch_max(sk), 6);
#undef BINS
    weir_sketch_free(sk);
}

TEST(a_sketch_that_is_not_exact_is_written_without_statistics)
{
    struct weir_sketch *const sk = t_sketch_of(NULL, 0);
    T_OK(decode_hex(WEIR_CODEC_DD_COMPACT, NULL, "02fd4a815abf52f03f0000000000000000090100", sk));
    struct t_bytes bytes = t_encode(WEIR_CODEC_DD_COMPACT, NULL, sk);
    T_EQ_U64(bytes.n, 17 + 3);
    free(bytes.at);
    weir_sketch_free(sk);
}

/* Indices far apart */

TEST(indices_2_30_apart_collapse_and_take_no_more_than_the_limit)
{
    struct t_heap heap = {.fail_at = -1};
    const struct weir_sketch_opts o = {.struct_size = sizeof o,
                                       .alloc = {.fn = t_heap_fn, .ctx = &heap}};
    struct weir_sketch *sk;
    T_OK(weir_sketch_new(&o, &sk));
    /* pairs at -2^30 and 2^30 - 1; ones there; a run of step 2^29; keys of a map */
    static const char *const compact[] = {
        "02fd4a815abf52f03f00000000000000000502ffffffff0702feffffff0f02",
        "02fd4a815abf52f03f00000000000000000902ffffffff07feffffff0f",
        "02fd4a815abf52f03f00000000000000000d02ffffffff07feffffff0f0202",
    };
    for (size_t i = 0; i < 3; i++) {
        T_OK(decode_hex(WEIR_CODEC_DD_COMPACT, NULL, compact[i], sk));
        T_EQ_U64(weir_sketch_weight(sk), 2 * ONE);
        T_EQ_U64(weir_sketch_bins_weight(sk), 2 * ONE);
        T_TRUE(heap.live < 64 * 1024);
        T_TRUE(isfinite(t_sketch_q(sk, 0)) && isfinite(t_sketch_q(sk, 1)));
    }
    T_OK(decode_hex(WEIR_CODEC_DD_PROTO, NULL,
                    "0a0909fd4a815abf52f03f1222"
                    "0a0f08ffffffff0711000000000000f03f0a0f08feffffff0711000000000000f03f",
                    sk));
    T_EQ_U64(weir_sketch_bins_weight(sk), 2 * ONE);
    T_TRUE(heap.live < 64 * 1024);
    weir_sketch_free(sk);
    T_EQ_I64(heap.live, 0);
}

/* Any sketch */

static struct weir_sketch *any_sketch(struct t_rng *rng, const struct weir_mapping *m)
{
    struct weir_sketch *const sk = t_sketch_of(m, t_below(rng, 4) ? 0 : 40);
    static const unsigned sizes[] = {0, 1, 3, 30, 300, 3000};
    const unsigned n = sizes[t_below(rng, 6)];
    const double spread = t_below(rng, 2) ? 3 : 30;
    const uint64_t signs = t_below(rng, 3); /* positive, both, negative */
    const uint64_t weights = t_below(rng, 4);
    for (unsigned i = 0; i < n; i++) {
        double v = exp((t_unit(rng) + t_unit(rng) + t_unit(rng) - 1.5) * spread);
        v = t_below(rng, 50) ? v : 0;
        v = signs == 2 || (signs && t_below(rng, 2)) ? -v : v;
        const uint64_t weight = weights == 0   ? ONE
                                : weights == 1 ? ONE * (1 + t_below(rng, 5))
                                : weights == 2 ? 1 + t_below(rng, 8 * ONE)
                                               : ONE << t_below(rng, 30);
        T_OK(weir_sketch_add(sk, v, weight));
    }
    return sk;
}

static const struct weir_mapping *any_mapping(struct t_rng *rng)
{
    switch (t_below(rng, 4)) {
    case 0:
        return weir_mapping_ref(NULL); /* the default */
    case 1:
        return t_mapping(WEIR_MAPPING_LOG, GAMMA_1, 0);
    case 2:
        return t_mapping(WEIR_MAPPING_LOG, 1.015625, 1338.5);
    default:
        return t_mapping((uint32_t)(WEIR_MAPPING_LINEAR + t_below(rng, 4)), 1.02, 0);
    }
}

static void expect_round_trip(uint32_t codec, uint32_t flags, const struct weir_sketch *sk)
{
    struct weir_codec_opts o = with_flags(flags);
    o.mapping = weir_sketch_mapping(sk);
    struct t_bytes bytes = t_encode(codec, &o, sk);
    struct t_guard g = t_guard_new(bytes.at, bytes.n);
    struct weir_sketch *const back = t_sketch_of(weir_sketch_mapping(sk), 0);
    T_OK(weir_codec_decode(codec, &o, g.ptr, bytes.n, back, NULL));
    T_TRUE(wr_sketch_check(back));
    t_same_bins(sk, back);
    const bool stats = codec == WEIR_CODEC_DD_COMPACT && !(flags & WEIR_CODEC_NO_STATS);
    T_TRUE(weir_sketch_is_exact(back) == (stats || weir_sketch_weight(sk) == 0));
    if (stats && weir_sketch_weight(sk)) {
        T_EQ_DBL(weir_sketch_sum(back), weir_sketch_sum(sk));
        T_EQ_DBL(t_sketch_min(back), t_sketch_min(sk));
        T_EQ_DBL(t_sketch_max(back), t_sketch_max(sk));
    }
    weir_sketch_free(back);
    t_guard_free(&g);
    free(bytes.at);
}

TEST(any_sketch_comes_back_bin_for_bin)
{
    struct t_rng rng = t_rng(t_seed());
    for (int i = 0; i < 300; i++) {
        const struct weir_mapping *const m = any_mapping(&rng);
        struct weir_sketch *const sk = any_sketch(&rng, m);
        expect_round_trip(WEIR_CODEC_DD_PROTO, 0, sk);
        expect_round_trip(WEIR_CODEC_DD_COMPACT, 0, sk);
        expect_round_trip(WEIR_CODEC_DD_COMPACT, WEIR_CODEC_NO_STATS | WEIR_CODEC_NO_MAPPING, sk);
        expect_round_trip(WEIR_CODEC_DD_COMPACT, WEIR_CODEC_ONE_BLOCK, sk);
        weir_sketch_free(sk);
        weir_mapping_unref(m);
    }
}

TEST(cut_blocks_never_take_more_bytes_than_one_block)
{
    struct t_rng rng = t_rng(t_seed());
    uint64_t cut_bytes = 0;
    uint64_t one_bytes = 0;
    for (int i = 0; i < 300; i++) {
        struct weir_sketch *const sk = any_sketch(&rng, NULL);
        const struct weir_codec_opts cut = with_flags(WEIR_CODEC_NO_STATS);
        const struct weir_codec_opts one = with_flags(WEIR_CODEC_NO_STATS | WEIR_CODEC_ONE_BLOCK);
        struct t_bytes a = t_encode(WEIR_CODEC_DD_COMPACT, &cut, sk);
        struct t_bytes b = t_encode(WEIR_CODEC_DD_COMPACT, &one, sk);
        if (a.n > b.n)
            T_FAIL("%zu bytes, %zu in one block", a.n, b.n);
        cut_bytes += a.n;
        one_bytes += b.n;
        free(b.at);
        free(a.at);
        weir_sketch_free(sk);
    }
    T_TRUE(cut_bytes < one_bytes);
}

TEST(encodings_one_behind_the_other_are_a_merge)
{
    struct t_rng rng = t_rng(t_seed());
    for (int i = 0; i < 100; i++) {
        struct weir_sketch *const a = any_sketch(&rng, NULL);
        struct weir_sketch *const b = any_sketch(&rng, NULL);
        struct t_bytes x = t_encode(WEIR_CODEC_DD_COMPACT, NULL, a);
        struct t_bytes y = t_encode(WEIR_CODEC_DD_COMPACT, NULL, b);
        uint8_t *const both = malloc(x.n + y.n);
        T_TRUE(both != NULL);
        memcpy(both, x.at, x.n);
        memcpy(both + x.n, y.at, y.n);
        struct weir_sketch *const read = t_sketch_of(NULL, 0);
        struct weir_sketch *const merged = t_sketch_of(NULL, 0);
        T_OK(weir_codec_decode(WEIR_CODEC_DD_COMPACT, NULL, both, x.n + y.n, read, NULL));
        T_OK(weir_sketch_merge(merged, a));
        T_OK(weir_sketch_merge(merged, b));
        t_same_bins(read, merged);
        T_TRUE(weir_sketch_is_exact(read));
        T_NEAR(weir_sketch_sum(read), weir_sketch_sum(merged), 1e-12);
        free(both);
        free(y.at);
        free(x.at);
        weir_sketch_free(merged);
        weir_sketch_free(read);
        weir_sketch_free(b);
        weir_sketch_free(a);
    }
}

/* The latencies that the goals were measured with: log-normal, median 18.7, sigma 1; xoshiro256**
 * seeded by splitmix64 of 42, Box-Muller, both halves. */
struct latencies {
    uint64_t s[4];
    double next;
    bool has_next;
};

static uint64_t rotate(uint64_t x, int k)
{
    return x << k | x >> (64 - k);
}

static double latency_unit(struct latencies *l)
{
    uint64_t *const s = l->s;
    const uint64_t r = rotate(s[1] * 5, 7) * 9;
    const uint64_t t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotate(s[3], 45);
    return ((double)(r >> 11) + 0.5) * 0x1p-53;
}

static double latency(struct latencies *l)
{
    if (l->has_next) {
        l->has_next = false;
        return l->next;
    }
    const double r = sqrt(-2 * log(latency_unit(l)));
    const double a = 6.283185307179586 * latency_unit(l);
    l->next = 18.7 * exp(r * sin(a));
    l->has_next = true;
    return 18.7 * exp(r * cos(a));
}

static size_t compact_bytes(const struct weir_mapping *m, int n)
{
    struct weir_sketch *const sk = t_sketch_of(m, 0);
    struct latencies l = {.has_next = false};
    struct t_rng seed = t_rng(42);
    for (int i = 0; i < 4; i++)
        l.s[i] = t_next(&seed);
    for (int i = 0; i < n; i++)
        T_OK(weir_sketch_add(sk, latency(&l), 0));
    const struct weir_codec_opts o = with_flags(WEIR_CODEC_NO_STATS | WEIR_CODEC_NO_MAPPING);
    struct t_bytes b = t_encode(WEIR_CODEC_DD_COMPACT, &o, sk);
    free(b.at);
    weir_sketch_free(sk);
    return b.n;
}

TEST(latencies_take_no_more_bytes_than_the_goals)
{
    struct weir_mapping *m;
    T_OK(weir_mapping_log(NULL, 0.01, &m));
    static const struct {
        int n;
        size_t log1; /* accuracy 1 % */
        size_t base2;
    } goals[] = {{100, 102, 103}, {1000, 335, 500}, {1000000, 1077, 1897}};
    for (size_t i = 0; i < 3; i++) {
        const size_t log1 = compact_bytes(m, goals[i].n);
        const size_t base2 = compact_bytes(NULL, goals[i].n);
        print_message("%d values: %zu and %zu bytes\n", goals[i].n, log1, base2);
        T_TRUE(log1 <= goals[i].log1);
        T_TRUE(base2 <= goals[i].base2);
    }
    weir_mapping_unref(m);
}
