/* SPDX-License-Identifier: Apache-2.0 */
/* batch: many values at once make the sketch that one by one makes; copy, equality, merging many.
 */
#include "t_sketch.h"

#include <float.h>
#include <math.h>
#include <string.h>

#define N 5000

static double value_of(struct t_rng *r, unsigned shape)
{
    switch (shape) {
    case 0:
        return 5.0;
    case 1:
        return exp((t_unit(r) + t_unit(r) + t_unit(r) - 1.5) * 3);
    case 2: /* both signs, zeros, far apart */
        return t_below(r, 9) ? ldexp(t_unit(r) - 0.5, (int)t_below(r, 200) - 100) : 0.0;
    default: /* now and then what is refused */
        return t_below(r, 50) ? 1 + t_unit(r) : t_below(r, 2) ? nan("") : -HUGE_VAL;
    }
}

static void expect_as_one_by_one(const struct weir_sketch_opts *o, unsigned shape, size_t n)
{
    struct t_rng r = t_rng(t_seed() + shape + n);
    double *const values = malloc((n + 1) * sizeof *values);
    struct weir_sketch *one;
    struct weir_sketch *many;
    T_OK(weir_sketch_new(o, &one));
    T_OK(weir_sketch_new(o, &many));
    size_t want = 0;
    for (size_t i = 0; i < n; i++) {
        values[i] = value_of(&r, shape);
        const int err = weir_sketch_add(one, values[i], 0);
        want += err == WEIR_ERANGE;
    }
    size_t total = 0;
    for (size_t i = 0; i < n;) {
        const size_t part = 1 + t_below(&r, n - i);
        size_t refused = 77;
        T_OK(weir_sketch_add_many(many, values + i, part, &refused));
        total += refused;
        i += part;
    }
    T_EQ_U64(total, want);
    t_sketch_same(one, many);
    T_TRUE(weir_sketch_equal(one, many));
    weir_sketch_free(one);
    weir_sketch_free(many);
    free(values);
}

TEST(a_batch_makes_the_sketch_that_one_value_after_the_other_makes)
{
    struct weir_mapping *log1;
    struct weir_mapping *coarse;
    T_OK(weir_mapping_log(NULL, 0.01, &log1));
    T_OK(weir_mapping_base2(NULL, 2, &coarse));
    const struct weir_mapping *const mappings[] = {NULL, log1, coarse};
    static const uint32_t limits[] = {0, 32768, 64};
    static const size_t sizes[] = {0, 1, 32, 33, 128, 129, 300, N, 70000};
    for (size_t c = 0; c < 3 * 3 * 4; c++) {
        const struct weir_sketch_opts o = {
            .struct_size = sizeof o, .mapping = mappings[c % 3], .max_bins = limits[c / 3 % 3]};
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
            if (sizes[i] <= N || c / 9 == 0)
                expect_as_one_by_one(&o, (unsigned)(c / 9), sizes[i]);
    }
    weir_mapping_unref(log1);
    weir_mapping_unref(coarse);
}

TEST(a_batch_ends_at_64_bits_of_weight_and_at_the_greatest_sum)
{
    struct weir_sketch *const sk = t_sketch(WEIR_GRID_VALUE, 0);
    T_OK(weir_sketch_add(sk, 1, UINT64_MAX - 3 * ONE - 5));
    const double ones[5] = {1, 1, 1, 1, 1};
    size_t refused;
    T_OK(weir_sketch_add_many(sk, ones, 5, &refused));
    T_EQ_U64(refused, 2);
    T_EQ_U64(weir_sketch_weight(sk), UINT64_MAX - 5);
    T_TRUE(wr_sketch_check(sk));
    weir_sketch_clear(sk);
    const double most[4] = {DBL_MAX, DBL_MAX, 1, DBL_MAX};
    T_OK(weir_sketch_add_many(sk, most, 4, NULL));
    T_EQ_U64(weir_sketch_weight(sk), 4 * ONE);
    T_TRUE(isfinite(weir_sketch_sum(sk)));
    weir_sketch_free(sk);
    struct weir_sketch *const ns = t_sketch(WEIR_GRID_NS, 0);
    refused = 9;
    T_ERR(weir_sketch_add_many(ns, ones, 5, &refused), WEIR_EINVAL);
    T_EQ_U64(refused, 0);
    T_EQ_U64(weir_sketch_weight(ns), 0);
    weir_sketch_free(ns);
}

/* contracts: a count of 2^53 and ten more by units. */
TEST(counts_past_2_to_the_53_are_exact)
{
    struct weir_sketch *const sk = t_sketch(WEIR_GRID_VALUE, 0);
    T_OK(weir_sketch_add(sk, 7, (UINT64_C(1) << 43) * ONE));
    for (int i = 0; i < 10; i++)
        T_OK(weir_sketch_add(sk, 7, 0));
    T_EQ_U64(weir_sketch_weight(sk), ((UINT64_C(1) << 43) + 10) * ONE);
    T_EQ_U64(weir_sketch_bins_weight(sk), weir_sketch_weight(sk));
    weir_sketch_clear(sk);
    T_OK(weir_sketch_add(sk, 7, UINT64_C(1) << 53)); /* in units of 2^-20 */
    for (int i = 0; i < 10; i++)
        T_OK(weir_sketch_add(sk, 7, 1));
    T_EQ_U64(weir_sketch_bins_weight(sk), (UINT64_C(1) << 53) + 10);
    weir_sketch_free(sk);
}

#define SKETCHES 50

TEST(pairs_are_the_same_as_single_calls)
{
    struct t_rng r = t_rng(t_seed() + 5);
    struct weir_sketch *one[SKETCHES];
    struct weir_sketch *many[SKETCHES];
    for (int i = 0; i < SKETCHES; i++) {
        one[i] = t_sketch(WEIR_GRID_VALUE, 0);
        many[i] = t_sketch(WEIR_GRID_VALUE, 0);
    }
    struct weir_sketch_pair *const pairs = malloc(N * sizeof *pairs);
    static const size_t sizes[] = {0, 1, 63, 64, 65, 127, 128, 129, 192, N};
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
        size_t want = 0;
        for (size_t i = 0; i < sizes[s]; i++) {
            const size_t k = t_below(&r, SKETCHES);
            pairs[i] = (struct weir_sketch_pair){many[k], value_of(&r, (unsigned)(k % 4))};
            want += weir_sketch_add(one[k], pairs[i].value, 0) != WEIR_OK;
        }
        size_t refused = 1;
        T_OK(weir_sketch_add_pairs(pairs, sizes[s], &refused));
        T_EQ_U64(refused, want);
        for (int i = 0; i < SKETCHES; i++)
            t_sketch_same(one[i], many[i]);
    }
    /* another grid is refused, and the rest goes on */
    struct weir_sketch *const ns = t_sketch(WEIR_GRID_NS, 0);
    pairs[0] = (struct weir_sketch_pair){ns, 1};
    pairs[1] = (struct weir_sketch_pair){many[0], 1};
    size_t refused;
    T_OK(weir_sketch_add_pairs(pairs, 2, &refused));
    T_EQ_U64(refused, 1);
    T_EQ_U64(weir_sketch_weight(ns), 0);
    weir_sketch_free(ns);
    for (int i = 0; i < SKETCHES; i++) {
        weir_sketch_free(one[i]);
        weir_sketch_free(many[i]);
    }
    free(pairs);
}

/* Of so great a sum, and of values on both sides of what the fast way takes, each way makes the
 * same finite one. */
TEST(a_sum_at_the_greatest_double_stays_there_in_each_way_to_record)
{
    static const double values[] = {
        0x1p959, 0x1.fffffffffffffp959, 0x1p960, 0x1p969, 0x1p970, 1, DBL_MAX, 0x1p950, 0x1p971,
        DBL_MAX};
    const size_t n = sizeof values / sizeof values[0];
    struct weir_sketch *sk[3];
    struct weir_sketch_pair pairs[10];
    for (size_t k = 0; k < 3; k++) {
        sk[k] = t_sketch(WEIR_GRID_VALUE, 32768);
        T_OK(weir_sketch_add(sk[k], DBL_MAX, 0));
        for (int i = 0; i < 200; i++) /* not a list */
            T_OK(weir_sketch_add(sk[k], ldexp(1.5, 900 + i % 100), 0));
    }
    for (size_t i = 0; i < n; i++) {
        T_OK(weir_sketch_add(sk[0], values[i], 0));
        pairs[i] = (struct weir_sketch_pair){sk[2], values[i]};
    }
    T_OK(weir_sketch_add_many(sk[1], values, n, NULL));
    T_OK(weir_sketch_add_pairs(pairs, n, NULL));
    T_EQ_DBL(weir_sketch_sum(sk[0]), DBL_MAX);
    T_EQ_U64(weir_sketch_weight(sk[0]), (201 + n) * ONE);
    t_sketch_same(sk[0], sk[1]);
    t_sketch_same(sk[0], sk[2]);
    for (size_t k = 0; k < 3; k++)
        weir_sketch_free(sk[k]);
}

/* After a cancellation what rounding took is the greater part of the sum; the form must say both.
 */
TEST(a_sum_whose_rest_is_greater_is_told_exactly)
{
    static const double values[] = {1, 0x1p300, 1, -0x1p300, 0x1p-60, -0x1.8p-61};
    struct weir_sketch *const sk = t_sketch(WEIR_GRID_VALUE, 32768);
    struct weir_sketch *const back = t_sketch(WEIR_GRID_VALUE, 32768);
    T_OK(weir_sketch_add_many(sk, values, sizeof values / sizeof values[0], NULL));
    T_EQ_DBL(weir_sketch_sum(sk), 2);
    uint8_t form[512];
    size_t n;
    T_OK(weir_sketch_encode(sk, form, sizeof form, &n));
    T_OK(weir_sketch_decode(back, form, n));
    t_sketch_same(sk, back);
    T_OK(weir_sketch_add(back, -2, 0));
    T_EQ_DBL(weir_sketch_sum(back), 0x1p-60 - 0x1.8p-61);
    weir_sketch_free(sk);
    weir_sketch_free(back);
}

TEST(merging_many_is_merging_each)
{
    struct t_rng r = t_rng(t_seed() + 6);
    struct weir_sketch *part[9];
    struct weir_sketch *const want = t_sketch(WEIR_GRID_VALUE, 0);
    struct weir_sketch *const got = t_sketch(WEIR_GRID_VALUE, 0);
    for (size_t i = 0; i < 9; i++) {
        part[i] = t_sketch(WEIR_GRID_VALUE, 0);
        for (size_t k = 0; k < i * 40; k++)
            T_OK(weir_sketch_add(part[i], value_of(&r, (unsigned)(i % 3)), 0));
        T_OK(weir_sketch_merge(want, part[i]));
    }
    T_OK(weir_sketch_merge_many(got, (const struct weir_sketch *const *)part, 9));
    t_sketch_same(got, want);
    T_OK(weir_sketch_merge_many(got, NULL, 0));
    t_sketch_same(got, want);
    /* the first that cannot be merged ends it */
    struct weir_sketch *const ns = t_sketch(WEIR_GRID_NS, 0);
    const struct weir_sketch *const mixed[] = {part[3], ns, part[4]};
    T_OK(weir_sketch_merge(want, part[3]));
    T_ERR(weir_sketch_merge_many(got, mixed, 3), WEIR_EVERSION);
    t_sketch_same(got, want);
    weir_sketch_free(ns);
    for (size_t i = 0; i < 9; i++)
        weir_sketch_free(part[i]);
    weir_sketch_free(want);
    weir_sketch_free(got);
}

TEST(a_copy_replaces_what_was_there)
{
    struct weir_sketch *const src = t_sketch(WEIR_GRID_VALUE, 0);
    struct weir_sketch *const dst = t_sketch(WEIR_GRID_VALUE, 0);
    struct weir_sketch *const ns = t_sketch(WEIR_GRID_NS, 0);
    for (int i = -200; i < 200; i++) {
        T_OK(weir_sketch_add(src, i, 0));
        T_OK(weir_sketch_add(dst, i * 1e9, 3));
    }
    T_OK(weir_sketch_copy(dst, src));
    t_sketch_same(dst, src);
    T_TRUE(weir_sketch_equal(dst, src));
    T_ERR(weir_sketch_copy(dst, dst), WEIR_EINVAL);
    T_ERR(weir_sketch_copy(dst, ns), WEIR_EVERSION);
    t_sketch_same(dst, src);
    weir_sketch_free(src);
    weir_sketch_free(dst);
    weir_sketch_free(ns);
}

TEST(sketches_that_differ_in_anything_are_not_equal)
{
    struct weir_sketch *const a = t_sketch(WEIR_GRID_VALUE, 0);
    struct weir_sketch *const b = t_sketch(WEIR_GRID_VALUE, 0);
    struct weir_sketch *const ns = t_sketch(WEIR_GRID_NS, 0);
    T_TRUE(weir_sketch_equal(a, a) && weir_sketch_equal(a, b));
    T_TRUE(!weir_sketch_equal(a, ns));
    struct weir_mapping *log1;
    T_OK(weir_mapping_log(NULL, 0.01, &log1));
    const struct weir_sketch_opts o = {.struct_size = sizeof o, .mapping = log1};
    struct weir_sketch *other;
    T_OK(weir_sketch_new(&o, &other));
    T_TRUE(!weir_sketch_equal(a, other));
    weir_sketch_free(other);
    weir_mapping_unref(log1);

    static const double differ[][2] = {{1, 1.5}, {0, 1}, {-1, 1}, {-1, -2}, {1, 1 + DBL_EPSILON}};
    for (size_t i = 0; i < sizeof differ / sizeof differ[0]; i++) {
        weir_sketch_clear(a);
        weir_sketch_clear(b);
        T_OK(weir_sketch_add(a, 3, 0));
        T_OK(weir_sketch_add(b, 3, 0));
        T_OK(weir_sketch_add(a, differ[i][0], 0));
        T_TRUE(!weir_sketch_equal(a, b));
        T_OK(weir_sketch_add(b, differ[i][1], 0));
        T_TRUE(!weir_sketch_equal(a, b) && !weir_sketch_equal(b, a));
    }
    weir_sketch_free(a);
    weir_sketch_free(b);
    weir_sketch_free(ns);
}
