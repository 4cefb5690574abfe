/* SPDX-License-Identifier: Apache-2.0 */
/* convert: bins that nest, bins that move, the bound that stays with them, what is refused. */
#include "t_sketch.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>
#include "sketch/bins.h"
#include "sketch/state.h"

static struct weir_sketch *sketch_of(struct weir_mapping *m, uint32_t grid, uint32_t max_bins)
{
    const struct weir_sketch_opts o = {
        .struct_size = sizeof o, .grid = grid, .max_bins = max_bins, .mapping = m};
    struct weir_sketch *sk;
    T_OK(weir_sketch_new(&o, &sk));
    weir_mapping_unref(m); /* the sketch holds it */
    return sk;
}

static struct weir_mapping *base2(int32_t scale)
{
    struct weir_mapping *m;
    T_OK(weir_mapping_base2(NULL, scale, &m));
    return m;
}

static struct weir_mapping *mapping(uint32_t kind, double gamma, double offset)
{
    struct weir_mapping *m;
    T_OK(weir_mapping_new(NULL, kind, gamma, offset, &m));
    return m;
}

static void expect_same_bins(const struct weir_sketch *a, const struct weir_sketch *b,
                             enum wr_bins_sign sign)
{
    int32_t lo[2] = {0, 0};
    int32_t hi[2] = {0, 0};
    T_EQ_U64(wr_bins_range(a, sign, &lo[0], &hi[0]), wr_bins_range(b, sign, &lo[1], &hi[1]));
    T_EQ_I64(lo[0], lo[1]);
    T_EQ_I64(hi[0], hi[1]);
    for (int32_t i = lo[0]; i <= hi[0]; i++) {
        uint64_t w[2];
        wr_bins_read(a, sign, i, 1, &w[0]);
        wr_bins_read(b, sign, i, 1, &w[1]);
        if (w[0] != w[1])
            T_FAIL("bin %" PRId32 ": %" PRIu64 " and %" PRIu64, i, w[0], w[1]);
    }
}

static void expect_same(const struct weir_sketch *a, const struct weir_sketch *b)
{
    T_TRUE(wr_sketch_check(a));
    expect_same_bins(a, b, WR_BINS_POSITIVE);
    expect_same_bins(a, b, WR_BINS_NEGATIVE);
    T_EQ_U64(wr_bins_zero(a), wr_bins_zero(b));
    T_EQ_U64(weir_sketch_weight(a), weir_sketch_weight(b));
    T_NEAR(weir_sketch_sum(a), weir_sketch_sum(b), 1e-14);
    double x[2] = {0, 0};
    T_OK(weir_sketch_min(a, &x[0]));
    T_OK(weir_sketch_min(b, &x[1]));
    T_EQ_DBL(x[0], x[1]);
    T_OK(weir_sketch_max(a, &x[0]));
    T_OK(weir_sketch_max(b, &x[1]));
    T_EQ_DBL(x[0], x[1]);
}

/* Both signs, zeros, weights that are fractions; the same values for the same seed. */
static void fill(struct weir_sketch *sk, uint64_t seed)
{
    struct t_rng rng = t_rng(seed);
    for (int i = 0; i < 3000; i++) {
        double v = exp(8 * (t_unit(&rng) - 0.5));
        if (t_below(&rng, 4) == 0)
            v = t_below(&rng, 10) ? -v : 0;
        T_OK(weir_sketch_add(sk, v, t_below(&rng, 3) ? 0 : 1 + t_below(&rng, 3000000)));
    }
}

static void fill_ns(struct weir_sketch *sk, uint64_t seed)
{
    struct t_rng rng = t_rng(seed);
    for (int i = 0; i < 3000; i++)
        T_OK(weir_sketch_add_ns(sk, (int64_t)(t_next(&rng) >> (20 + t_below(&rng, 30))), 0));
}

TEST(a_coarser_scale_has_the_bins_it_would_have_recorded)
{
    for (int32_t from = WEIR_SCALE_MAX; from > 0; from -= 1) {
        for (int32_t to = from - 1; to >= WEIR_SCALE_MIN; to -= 3) {
            struct weir_sketch *const src = sketch_of(base2(from), WEIR_GRID_VALUE, 20000);
            struct weir_sketch *const dst = sketch_of(base2(to), WEIR_GRID_VALUE, 20000);
            struct weir_sketch *const direct = sketch_of(base2(to), WEIR_GRID_VALUE, 20000);
            fill(src, 7);
            fill(direct, 7);
            T_OK(weir_sketch_convert(dst, src));
            expect_same(dst, direct);
            T_EQ_DBL(wr_sketch_inherited(dst), 0.0);
            weir_sketch_free(src);
            weir_sketch_free(dst);
            weir_sketch_free(direct);
        }
    }
}

TEST(nanoseconds_become_seconds_bin_for_bin)
{
    struct weir_sketch *const src = sketch_of(base2(6), WEIR_GRID_NS, 20000);
    struct weir_sketch *const finer = sketch_of(base2(8), WEIR_GRID_NS, 20000);
    struct weir_sketch *const dst = sketch_of(base2(6), WEIR_GRID_VALUE, 20000);
    struct weir_sketch *const dst2 = sketch_of(base2(6), WEIR_GRID_VALUE, 20000);
    fill_ns(src, 3);
    fill_ns(finer, 3);
    T_OK(weir_sketch_convert(dst, src));
    expect_same(dst, src);
    T_OK(weir_sketch_convert(dst2, finer));
    expect_same(dst2, src);
    T_EQ_DBL(wr_sketch_inherited(dst2), 0.0);
    weir_sketch_free(src);
    weir_sketch_free(finer);
    weir_sketch_free(dst);
    weir_sketch_free(dst2);
}

/* datadog-agent#8681: the offset of nanoseconds is that of seconds, less log_g 1e9. */
TEST(the_agents_nanoseconds_become_its_seconds_bin_for_bin)
{
    struct weir_sketch *const src =
        sketch_of(mapping(WEIR_MAPPING_LOG, 1.015625, 1.8761281912861705), WEIR_GRID_NS, 0);
    struct weir_sketch *const dst =
        sketch_of(mapping(WEIR_MAPPING_LOG, 1.015625, 1338.5), WEIR_GRID_VALUE, 0);
    fill_ns(src, 4);
    T_OK(weir_sketch_convert(dst, src));
    expect_same(dst, src);
    T_EQ_DBL(wr_sketch_inherited(dst), 0.0);
    weir_sketch_free(src);
    weir_sketch_free(dst);
}

/* UDDSketch's collapse: pairs of bins, accuracy 2a / (1 + a^2). */
TEST(a_base_that_is_a_power_of_the_other_nests_for_every_kind)
{
    static const double factors[] = {2, 3, 16};
    for (uint32_t kind = WEIR_MAPPING_LOG; kind <= WEIR_MAPPING_QUARTIC; kind++) {
        for (size_t f = 0; f < 3; f++) {
            const double n = factors[f];
            const double gamma = 1.0202020202020203;
            struct weir_mapping *const coarse = mapping(kind, pow(gamma, n), 7 + 5 / n);
            struct weir_sketch *const src =
                sketch_of(mapping(kind, gamma, 5), WEIR_GRID_VALUE, 20000);
            struct weir_sketch *const direct =
                sketch_of(mapping(kind, pow(gamma, n), 7 + 5 / n), WEIR_GRID_VALUE, 20000);
            struct weir_sketch *const dst = sketch_of(coarse, WEIR_GRID_VALUE, 20000);
            fill(src, 5);
            fill(direct, 5);
            T_OK(weir_sketch_convert(dst, src));
            expect_same(dst, direct);
            T_EQ_DBL(wr_sketch_inherited(dst), 0.0);
            const double a = weir_sketch_accuracy(src);
            if (f == 0)
                T_NEAR(weir_sketch_accuracy(dst), 2 * a / (1 + a * a), 1e-9);
            weir_sketch_free(src);
            weir_sketch_free(dst);
            weir_sketch_free(direct);
        }
    }
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a;
    const double y = *(const double *)b;
    return (x > y) - (x < y);
}

#define SAMPLES 1000

/* Every answer is within the bound that dst states. true: some are not within its own accuracy. */
static bool expect_answers(const struct weir_sketch *dst, double *samples)
{
    qsort(samples, SAMPLES, sizeof samples[0], compare);
    const double own = weir_sketch_accuracy(dst);
    bool is_worse = false;
    for (int i = 0; i < SAMPLES; i++) {
        double v = 0;
        double bound = 0;
        T_OK(weir_sketch_quantile(dst, i / (SAMPLES - 1.0), &v));
        T_OK(weir_sketch_error_bound(dst, i / (SAMPLES - 1.0), &bound));
        T_TRUE(bound < 0.1); /* and it says something */
        const double error = fabs(v - samples[i]) / fabs(samples[i]);
        if (!(error <= bound))
            T_FAIL("%.17g for %.17g: off by %g, bound %g", v, samples[i], error, bound);
        is_worse |= error > own;
    }
    return is_worse;
}

/* client sketch 1.015625 into 1.0202: 1.78 %, and never 1 %. */
TEST(bins_that_move_keep_the_error_they_came_with)
{
    struct t_rng rng = t_rng(t_seed());
    static const struct {
        uint32_t kind;
        double gamma;
        double offset;
    } of[] = {{WEIR_MAPPING_LOG, 1.015625, 1338.5},
              {WEIR_MAPPING_LOG, 1.0202020202020203, 0},
              {WEIR_MAPPING_CUBIC, 1.02, 0},
              {WEIR_MAPPING_LINEAR, 1.0108892860517005, 0},
              {WEIR_MAPPING_QUADRATIC, 1.019, 0.25},
              {WEIR_MAPPING_QUARTIC, 1.03, -3},
              {WEIR_MAPPING_BASE2, 5, 0}};
    bool some_worse = false;
    for (size_t i = 0; i < 7; i++) {
        for (size_t k = 0; k < 7; k++) {
            if (i == k)
                continue;
            struct weir_mapping *const from =
                of[i].kind ? mapping(of[i].kind, of[i].gamma, of[i].offset) : base2(5);
            struct weir_mapping *const to =
                of[k].kind ? mapping(of[k].kind, of[k].gamma, of[k].offset) : base2(5);
            struct weir_sketch *const src = sketch_of(from, WEIR_GRID_VALUE, 0);
            struct weir_sketch *const dst = sketch_of(to, WEIR_GRID_VALUE, 0);
            double samples[SAMPLES];
            for (int n = 0; n < SAMPLES; n++) {
                samples[n] = exp(6 * t_unit(&rng)) * (t_below(&rng, 3) ? 1 : -1);
                T_OK(weir_sketch_add(src, samples[n], 0));
            }
            T_OK(weir_sketch_convert(dst, src));
            T_TRUE(wr_sketch_check(dst));
            T_NEAR(wr_sketch_inherited(dst), weir_sketch_accuracy(src), 1e-12);
            T_EQ_U64(weir_sketch_bins_weight(dst), SAMPLES * (uint64_t)ONE);
            T_EQ_DBL(weir_sketch_sum(dst), weir_sketch_sum(src));
            some_worse |= expect_answers(dst, samples);
            weir_sketch_free(src);
            weir_sketch_free(dst);
        }
    }
    T_TRUE(some_worse); /* so the accuracy of dst alone would have been a lie */
}

TEST(errors_add_up_along_a_chain_and_a_merge_takes_the_greater)
{
    struct weir_sketch *const a =
        sketch_of(mapping(WEIR_MAPPING_LOG, 1.015625, 1338.5), WEIR_GRID_VALUE, 0);
    struct weir_sketch *const b =
        sketch_of(mapping(WEIR_MAPPING_LOG, 1.0202020202020203, 0), WEIR_GRID_VALUE, 0);
    struct weir_sketch *const c = sketch_of(base2(6), WEIR_GRID_VALUE, 0);
    struct weir_sketch *const d = sketch_of(base2(5), WEIR_GRID_VALUE, 0);
    struct weir_sketch *const plain = sketch_of(base2(5), WEIR_GRID_VALUE, 0);
    fill(a, 9);
    T_OK(weir_sketch_convert(b, a));
    T_NEAR(wr_sketch_inherited(b), 1.0 / 129, 1e-12);
    T_OK(weir_sketch_convert(c, b));
    T_NEAR(wr_sketch_inherited(c), (1 + 1.0 / 129) * 1.01 - 1, 1e-12); /* 1.78 % */
    T_OK(weir_sketch_convert(d, c));                                   /* nests: nothing is added */
    T_EQ_DBL(wr_sketch_inherited(d), wr_sketch_inherited(c));
    fill(plain, 2);
    T_OK(weir_sketch_merge(plain, d));
    T_EQ_DBL(wr_sketch_inherited(plain), wr_sketch_inherited(d));
    T_OK(weir_sketch_convert(plain, d)); /* the same mapping: a merge */
    T_EQ_DBL(wr_sketch_inherited(plain), wr_sketch_inherited(d));
    T_EQ_U64(weir_sketch_bins_weight(plain), weir_sketch_weight(plain));
    weir_sketch_free(a);
    weir_sketch_free(b);
    weir_sketch_free(c);
    weir_sketch_free(d);
    weir_sketch_free(plain);
}

/* A source that has collapsed; to bins so wide that its lowest and its highest become one. */
TEST(what_had_collapsed_is_in_the_bound_of_what_it_became)
{
    for (uint32_t limit = 2; limit < 200; limit = limit * 3 / 2 + 1) {
        for (int32_t scale = 7; scale >= -1; scale--) {
            struct weir_sketch *const src = sketch_of(base2(7), WEIR_GRID_VALUE, limit);
            struct weir_sketch *const dst = sketch_of(base2(scale), WEIR_GRID_VALUE, 20000);
            struct t_rng rng = t_rng(limit);
            double samples[SAMPLES];
            for (int n = 0; n < SAMPLES; n++) {
                const bool is_below = n % 4 < 2; /* lower ones, so that it is not the only bin */
                samples[n] = exp(t_unit(&rng) - (is_below ? 20 : 0)) * (n % 2 ? 1 : -1);
                T_OK(weir_sketch_add(is_below ? dst : src, samples[n], 0));
            }
            T_OK(weir_sketch_convert(dst, src));
            T_TRUE(wr_sketch_check(dst));
            qsort(samples, SAMPLES, sizeof samples[0], compare);
            for (int i = 0; i < SAMPLES; i++) {
                double v = 0;
                double bound = 0;
                T_OK(weir_sketch_quantile(dst, i / (SAMPLES - 1.0), &v));
                T_OK(weir_sketch_error_bound(dst, i / (SAMPLES - 1.0), &bound));
                if (!(fabs(v - samples[i]) <= bound * fabs(samples[i])))
                    T_FAIL("limit %" PRIu32 ", scale %" PRId32 ": %.17g for %.17g, bound %g", limit,
                           scale, v, samples[i], bound);
            }
            weir_sketch_free(src);
            weir_sketch_free(dst);
        }
    }
}

TEST(the_limit_of_bins_holds_and_the_weight_is_kept)
{
    for (uint32_t limit = 2; limit < 300; limit = limit * 3 / 2 + 1) {
        struct weir_sketch *const src = sketch_of(base2(7), WEIR_GRID_VALUE, 0);
        struct weir_sketch *const dst =
            sketch_of(mapping(WEIR_MAPPING_CUBIC, 1.01, 0), WEIR_GRID_VALUE, limit);
        fill(src, limit);
        T_OK(weir_sketch_convert(dst, src));
        T_TRUE(wr_sketch_check(dst));
        T_EQ_U64(weir_sketch_weight(dst), weir_sketch_weight(src));
        int32_t lo;
        int32_t hi;
        T_TRUE(wr_bins_range(dst, WR_BINS_POSITIVE, &lo, &hi));
        T_TRUE((uint32_t)(hi - lo) < limit);
        weir_sketch_free(src);
        weir_sketch_free(dst);
    }
}

/* Bins that a stranger's bytes may have: past every double, and below. */
TEST(bins_far_out_go_to_the_last_bin_or_to_the_zeros)
{
    struct weir_mapping *const m = mapping(WEIR_MAPPING_CUBIC, 1.02, 0);
    WR_IGNORE(weir_mapping_ref(m) != m);
    struct weir_sketch *const src = sketch_of(m, WEIR_GRID_VALUE, 0);
    struct weir_sketch *const dst = sketch_of(base2(6), WEIR_GRID_VALUE, 0);
    static const struct wr_bins_stats none;
    T_OK(wr_bins_begin(src, m));
    weir_mapping_unref(m);
    T_OK(wr_bins_add(src, WR_BINS_POSITIVE, INT32_MAX, 3 * ONE));
    T_OK(wr_bins_add(src, WR_BINS_NEGATIVE, INT32_MIN, 5 * ONE));
    T_OK(wr_bins_end(src, &none));
    T_TRUE(!weir_sketch_is_exact(src));
    T_OK(weir_sketch_convert(dst, src));
    T_TRUE(!weir_sketch_is_exact(dst));
    T_EQ_U64(wr_bins_zero(dst), 5 * ONE);
    int32_t lo;
    int32_t hi;
    T_TRUE(wr_bins_range(dst, WR_BINS_POSITIVE, &lo, &hi));
    T_EQ_I64(lo, WR_MAPPING_VALUE_MAX);
    T_EQ_I64(hi, WR_MAPPING_VALUE_MAX);
    weir_sketch_free(src);
    weir_sketch_free(dst);
}

TEST(durations_of_one_mapping_go_into_another)
{
    struct weir_sketch *const src = sketch_of(base2(6), WEIR_GRID_NS, 0);
    struct weir_sketch *const dst =
        sketch_of(mapping(WEIR_MAPPING_LOG, 1.0202020202020203, 0), WEIR_GRID_NS, 0);
    struct weir_sketch *const back = sketch_of(base2(5), WEIR_GRID_NS, 0);
    fill_ns(src, 11);
    T_OK(weir_sketch_add_ns(src, 1, 0)); /* whose bin's answer is below it */
    T_OK(weir_sketch_convert(dst, src));
    T_OK(weir_sketch_convert(back, dst));
    const struct weir_u128 a = weir_sketch_sum_ns(src);
    const struct weir_u128 b = weir_sketch_sum_ns(back);
    T_TRUE(a.lo == b.lo && a.hi == b.hi && a.lo);
    for (int i = 0; i <= 100; i++) {
        double want;
        double got;
        T_OK(weir_sketch_quantile(src, i / 100.0, &want));
        T_OK(weir_sketch_quantile(back, i / 100.0, &got));
        T_NEAR(got, want, 0.0055 + 0.0101 + 0.011);
    }
    int32_t lo;
    int32_t hi;
    T_TRUE(wr_bins_range(back, WR_BINS_POSITIVE, &lo, &hi));
    T_TRUE(lo >= wr_mapping_index_duration(weir_sketch_mapping(back), 1));
    weir_sketch_free(src);
    weir_sketch_free(dst);
    weir_sketch_free(back);
}

TEST(a_conversion_that_cannot_be_is_refused_and_changes_nothing)
{
    struct weir_sketch *const value = sketch_of(base2(6), WEIR_GRID_VALUE, 0);
    struct weir_sketch *const ns = sketch_of(base2(6), WEIR_GRID_NS, 0);
    struct weir_sketch *const log =
        sketch_of(mapping(WEIR_MAPPING_LOG, 1.02, 0), WEIR_GRID_VALUE, 0);
    T_ERR(weir_sketch_convert(value, value), WEIR_EINVAL);
    T_ERR(weir_sketch_convert(ns, value), WEIR_EVERSION);
    T_OK(weir_sketch_convert(value, log)); /* of nothing */
    T_EQ_U64(weir_sketch_weight(value), 0);
    T_EQ_DBL(wr_sketch_inherited(value), 0.0);
    T_OK(weir_sketch_add(log, 5, UINT64_MAX - 10));
    T_OK(weir_sketch_add(value, 7, 11));
    size_t n;
    uint8_t *const before = t_sketch_form(value, &n);
    T_ERR(weir_sketch_convert(value, log), WEIR_ERANGE);
    size_t m;
    uint8_t *const after = t_sketch_form(value, &m);
    T_EQ_BYTES(after, m, before, n);
    T_EQ_DBL(wr_sketch_inherited(value), 0.0);
    free(before);
    free(after);
    weir_sketch_free(value);
    weir_sketch_free(ns);
    weir_sketch_free(log);
}
