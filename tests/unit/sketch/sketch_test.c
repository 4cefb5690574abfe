/* SPDX-License-Identifier: Apache-2.0 */
/* sketch: recording, merging, answers; each claim of <weir/sketch.h> beside its refusals. */
#include "t_sketch.h"

#include <float.h>
#include <math.h>
#include <string.h>

static void add_all(struct weir_sketch *sk, const double *values, size_t n)
{
    for (size_t i = 0; i < n; i++)
        T_OK(weir_sketch_add(sk, values[i], 0));
    T_TRUE(wr_sketch_check(sk));
}

static struct weir_sketch *of(const double *values, size_t n)
{
    struct weir_sketch *const sk = t_sketch(WEIR_GRID_VALUE, 0);
    add_all(sk, values, n);
    return sk;
}
#define OF(...)                                                                                    \
    of((const double[]){__VA_ARGS__}, sizeof((const double[]){__VA_ARGS__}) / sizeof(double))

TEST(options_default_and_refuse)
{
    struct weir_sketch *sk;
    T_OK(weir_sketch_new(NULL, &sk));
    T_EQ_U64(weir_sketch_grid(sk), WEIR_GRID_VALUE);
    T_TRUE(wr_sketch_check(sk));
    weir_sketch_free(sk);

    struct weir_sketch_opts o = {.struct_size = sizeof o, .max_bins = 2};
    T_OK(weir_sketch_new(&o, &sk));
    weir_sketch_free(sk);
    o.max_bins = 32768;
    o.grid = WEIR_GRID_NS;
    T_OK(weir_sketch_new(&o, &sk));
    T_EQ_U64(weir_sketch_grid(sk), WEIR_GRID_NS);
    weir_sketch_free(sk);

    sk = NULL;
    o.max_bins = 1;
    T_ERR(weir_sketch_new(&o, &sk), WEIR_EINVAL);
    o.max_bins = 32769;
    T_ERR(weir_sketch_new(&o, &sk), WEIR_EINVAL);
    o.max_bins = 0;
    o.grid = 2;
    T_ERR(weir_sketch_new(&o, &sk), WEIR_EINVAL);
    T_TRUE(sk == NULL);
    weir_sketch_free(NULL);
}

TEST(options_of_an_older_caller_are_shorter)
{
    struct weir_sketch_opts o = {.grid = WEIR_GRID_NS, .max_bins = 1};
    o.struct_size = offsetof(struct weir_sketch_opts, max_bins); /* the bad limit is not his */
    struct weir_sketch *sk;
    T_OK(weir_sketch_new(&o, &sk));
    T_EQ_U64(weir_sketch_grid(sk), WEIR_GRID_NS);
    weir_sketch_free(sk);
}

TEST(an_empty_sketch_has_no_extremes_and_no_quantiles)
{
    struct weir_sketch *const sk = t_sketch(WEIR_GRID_NS, 0);
    double v = 7;
    T_ERR(weir_sketch_min(sk, &v), WEIR_EEMPTY);
    T_ERR(weir_sketch_max(sk, &v), WEIR_EEMPTY);
    T_ERR(weir_sketch_quantile(sk, 0.5, &v), WEIR_EEMPTY);
    T_ERR(weir_sketch_quantile(sk, 2, &v), WEIR_EINVAL);
    T_EQ_DBL(v, 7.0);
    T_EQ_DBL(weir_sketch_sum(sk), 0.0);
    T_EQ_U64(weir_sketch_weight(sk), 0);
    T_EQ_U64(weir_sketch_bins_weight(sk), 0);
    weir_sketch_free(sk);
}

TEST(a_quantile_outside_0_to_1_is_refused)
{
    struct weir_sketch *const sk = OF(1, 2);
    double v = 7;
    T_ERR(weir_sketch_quantile(sk, -0x1p-1074, &v), WEIR_EINVAL);
    T_ERR(weir_sketch_quantile(sk, 1 + DBL_EPSILON, &v), WEIR_EINVAL);
    T_ERR(weir_sketch_quantile(sk, nan(""), &v), WEIR_EINVAL);
    T_EQ_DBL(v, 7.0);
    T_OK(weir_sketch_quantile(sk, 0x1p-1074, &v));
    T_EQ_DBL(v, 1.0);
    weir_sketch_free(sk);
}

TEST(the_wrong_grid_is_refused)
{
    struct weir_sketch *const ns = t_sketch(WEIR_GRID_NS, 0);
    struct weir_sketch *const value = t_sketch(WEIR_GRID_VALUE, 0);
    T_ERR(weir_sketch_add(ns, 1, 0), WEIR_EINVAL);
    T_ERR(weir_sketch_add_ns(value, 1, 0), WEIR_EINVAL);
    T_ERR(weir_sketch_merge(ns, value), WEIR_EVERSION);
    T_ERR(weir_sketch_merge(ns, ns), WEIR_EINVAL);
    T_EQ_U64(weir_sketch_weight(ns), 0);
    weir_sketch_free(ns);
    weir_sketch_free(value);
}

TEST(nan_and_infinity_change_nothing)
{
    struct weir_sketch *const sk = OF(1);
    struct weir_sketch *const want = OF(1);
    T_ERR(weir_sketch_add(sk, nan(""), 0), WEIR_ERANGE);
    T_ERR(weir_sketch_add(sk, HUGE_VAL, 0), WEIR_ERANGE);
    T_ERR(weir_sketch_add(sk, -HUGE_VAL, ONE), WEIR_ERANGE);
    t_sketch_same(sk, want);
    T_EQ_DBL(weir_sketch_sum(sk), 1.0);
    weir_sketch_free(sk);
    weir_sketch_free(want);
}

TEST(weight_0_means_one)
{
    struct weir_sketch *const a = t_sketch(WEIR_GRID_NS, 0);
    struct weir_sketch *const b = t_sketch(WEIR_GRID_NS, 0);
    T_OK(weir_sketch_add_ns(a, 1000, 0));
    T_OK(weir_sketch_add_ns(b, 1000, ONE));
    T_EQ_U64(weir_sketch_weight(a), ONE);
    t_sketch_same(a, b);
    weir_sketch_free(a);
    weir_sketch_free(b);
}

/* A span that ends before it starts, or says -5 ns, is a hit with duration 0. */
TEST(a_negative_duration_counts_as_zero)
{
    struct weir_sketch *const sk = t_sketch(WEIR_GRID_NS, 0);
    T_OK(weir_sketch_add_ns(sk, -5, 0));
    T_OK(weir_sketch_add_ns(sk, INT64_MIN, 0));
    T_OK(weir_sketch_add_ns(sk, 0, 0));
    T_EQ_U64(weir_sketch_weight(sk), 3 * ONE);
    T_EQ_U64(weir_sketch_sum_ns(sk).lo, 0);
    T_EQ_DBL(t_sketch_min(sk), 0.0);
    T_EQ_DBL(t_sketch_max(sk), 0.0);
    T_EQ_DBL(t_sketch_q(sk, 0.5), 0.0);
    T_TRUE(wr_sketch_check(sk));
    weir_sketch_free(sk);
}

TEST(the_total_weight_never_wraps)
{
    struct weir_sketch *const sk = t_sketch(WEIR_GRID_NS, 0);
    T_OK(weir_sketch_add_ns(sk, INT64_MAX, UINT64_MAX));
    T_ERR(weir_sketch_add_ns(sk, 5, 1), WEIR_ERANGE);
    T_ERR(weir_sketch_add_ns(sk, 0, 1), WEIR_ERANGE);
    struct weir_sketch *const other = t_sketch(WEIR_GRID_NS, 0);
    T_OK(weir_sketch_add_ns(other, 5, 1));
    T_ERR(weir_sketch_merge(sk, other), WEIR_ERANGE);
    T_EQ_U64(weir_sketch_weight(sk), UINT64_MAX);
    T_EQ_U64(weir_sketch_bins_weight(sk), UINT64_MAX);
    /* (2^63 - 1) (2^64 - 1) */
    T_EQ_U64(weir_sketch_sum_ns(sk).lo, UINT64_C(0x8000000000000001));
    T_EQ_U64(weir_sketch_sum_ns(sk).hi, UINT64_C(0x7ffffffffffffffe));
    T_TRUE(wr_sketch_check(sk));
    weir_sketch_free(other);
    weir_sketch_free(sk);

    struct weir_sketch *const value = t_sketch(WEIR_GRID_VALUE, 0);
    T_OK(weir_sketch_add(value, 1, UINT64_MAX));
    T_ERR(weir_sketch_add(value, 1, 1), WEIR_ERANGE);
    weir_sketch_free(value);
}

/* sketches-js#22, #18: the negative store and the zeros must survive a merge. */
TEST(a_merge_keeps_negatives_and_zeros)
{
    struct weir_sketch *const a = OF(-1, 0, 1);
    struct weir_sketch *const b = OF(-2, 0, 2);
    T_OK(weir_sketch_merge(a, b));
    T_EQ_U64(weir_sketch_weight(a), 6 * ONE);
    T_EQ_DBL(t_sketch_q(a, 0), -2.0);
    T_EQ_DBL(t_sketch_q(a, 1), 2.0);
    T_EQ_DBL(t_sketch_q(a, 0.5), 0.0);
    T_NEAR(t_sketch_q(a, 0.2), -1.0, weir_sketch_accuracy(a));
    T_NEAR(t_sketch_q(a, 0.8), 1.0, weir_sketch_accuracy(a));
    T_TRUE(wr_sketch_check(a));
    weir_sketch_free(a);
    weir_sketch_free(b);
}

/* rust-sketches-ddsketch#16: extremes of sketches that hold negatives only. */
TEST(negatives_alone_have_the_right_extremes)
{
    struct weir_sketch *const a = OF(-5, -3);
    struct weir_sketch *const b = OF(-4);
    T_OK(weir_sketch_merge(a, b));
    T_EQ_DBL(t_sketch_min(a), -5.0);
    T_EQ_DBL(t_sketch_max(a), -3.0);
    T_EQ_U64(weir_sketch_weight(a), 3 * ONE);
    T_NEAR(t_sketch_q(a, 0.5), -4.0, weir_sketch_accuracy(a));
    T_TRUE(wr_sketch_check(a));
    weir_sketch_free(a);
    weir_sketch_free(b);
}

/* otel-js#4450: an empty side of a merge. */
TEST(merging_with_an_empty_sketch_is_a_copy)
{
    struct weir_sketch *const a = OF(1, 2, 4);
    struct weir_sketch *const want = OF(1, 2, 4);
    struct weir_sketch *const empty = t_sketch(WEIR_GRID_VALUE, 0);
    struct weir_sketch *const copy = t_sketch(WEIR_GRID_VALUE, 0);
    T_OK(weir_sketch_merge(a, empty));
    t_sketch_same(a, want);
    T_OK(weir_sketch_merge(copy, want));
    t_sketch_same(copy, want);
    weir_sketch_free(a);
    weir_sketch_free(want);
    weir_sketch_free(empty);
    weir_sketch_free(copy);
}

/* statsite#180 */
TEST(one_outlier_in_a_thousand_moves_the_maximum_alone)
{
    struct weir_sketch *const sk = t_sketch(WEIR_GRID_VALUE, 0);
    for (int i = 0; i < 1000; i++)
        T_OK(weir_sketch_add(sk, 1, 0));
    T_OK(weir_sketch_add(sk, 10000000, 0));
    T_NEAR(t_sketch_q(sk, 0.99), 1.0, weir_sketch_accuracy(sk));
    T_EQ_DBL(t_sketch_max(sk), 10000000.0);
    weir_sketch_free(sk);
}

/* statsite#297, Kamon#721: 3 four times, 2 once, 1 twice. */
TEST(weights_weigh_in_quantiles)
{
    struct weir_sketch *const sk = t_sketch(WEIR_GRID_VALUE, 0);
    T_OK(weir_sketch_add(sk, 3, 4 * ONE));
    T_OK(weir_sketch_add(sk, 2, ONE));
    T_OK(weir_sketch_add(sk, 1, 2 * ONE));
    T_EQ_U64(weir_sketch_weight(sk), 7 * ONE);
    T_EQ_DBL(weir_sketch_sum(sk), 16.0);
    T_NEAR(t_sketch_q(sk, 0.5), 3.0, weir_sketch_accuracy(sk));
    T_NEAR(t_sketch_q(sk, 0.4), 2.0, weir_sketch_accuracy(sk));
    T_NEAR(t_sketch_q(sk, 0.2), 1.0, weir_sketch_accuracy(sk));
    weir_sketch_free(sk);
}

/* Counters must not stop at 65,535. */
TEST(a_hundred_thousand_values_are_all_counted)
{
    struct weir_sketch *const sk = t_sketch(WEIR_GRID_VALUE, 0);
    for (int i = 1; i <= 100000; i++)
        T_OK(weir_sketch_add(sk, i, 0));
    T_EQ_U64(weir_sketch_weight(sk), 100000 * ONE);
    T_EQ_U64(weir_sketch_bins_weight(sk), 100000 * ONE);
    T_NEAR(t_sketch_q(sk, 0.99), 99000.0, weir_sketch_accuracy(sk) + 1e-5);
    T_EQ_DBL(weir_sketch_sum(sk), 5000050000.0);
    T_TRUE(wr_sketch_check(sk));
    weir_sketch_free(sk);
}

/* The rank is q (n - 1): 1, 2, 3, 4 change over at thirds. */
TEST(the_rank_is_q_times_n_minus_1)
{
    struct weir_sketch *const sk = OF(1, 2, 3, 4);
    struct weir_sketch *const neg = OF(-1, -2, -3, -4);
    const double a = weir_sketch_accuracy(sk);
    for (int p = 0; p <= 100; p++) {
        const double v = 1 + p * 3 / 100;
        T_NEAR(t_sketch_q(sk, p / 100.0), v, a);
        T_NEAR(t_sketch_q(neg, p / 100.0), v - 5, a);
    }
    weir_sketch_free(sk);
    weir_sketch_free(neg);
}

/* 0.99 is not a double; of 101 samples it still means the one of rank 99. */
TEST(a_decimal_q_means_the_decimal_rank)
{
    struct weir_sketch *const sk = t_sketch(WEIR_GRID_VALUE, 0);
    for (int i = 0; i <= 100; i++)
        T_OK(weir_sketch_add(sk, exp2(i / 4.0), 0));
    for (int p = 0; p <= 100; p++)
        T_NEAR(t_sketch_q(sk, p / 100.0), exp2(p / 4.0), weir_sketch_accuracy(sk));
    weir_sketch_free(sk);
}

/* A rank is exact to one unit of weight, from either end of the bins. */
TEST(a_rank_on_the_edge_of_a_bin_is_exact_to_a_unit)
{
    for (uint64_t extra = 0; extra < 2; extra++) {
        struct weir_sketch *const sk = t_sketch(WEIR_GRID_VALUE, 0);
        T_OK(weir_sketch_add(sk, 1, 9 * ONE + extra));
        T_OK(weir_sketch_add(sk, 2, 4 * ONE - extra));
        T_EQ_U64(t_sketch_q(sk, 0.75) < 1.5, extra); /* the rank is 9 */
        T_OK(weir_sketch_add(sk, 8, 24 * ONE));
        T_EQ_U64(t_sketch_q(sk, 0.25) < 1.5, extra); /* of 37: 9 again, from below */
        weir_sketch_free(sk);
    }
}

TEST(a_single_value_is_answered_exactly)
{
    struct weir_sketch *const sk = OF(1234);
    T_EQ_DBL(t_sketch_q(sk, 0), 1234.0);
    T_EQ_DBL(t_sketch_q(sk, 0.5), 1234.0);
    T_EQ_DBL(t_sketch_q(sk, 1), 1234.0);
    weir_sketch_free(sk);
    struct weir_sketch *const ns = t_sketch(WEIR_GRID_NS, 0);
    T_OK(weir_sketch_add_ns(ns, 1234, 0));
    T_EQ_DBL(t_sketch_q(ns, 0.5), 1234 / 1e9);
    T_EQ_DBL(weir_sketch_sum(ns), 1234 / 1e9);
    T_EQ_U64(weir_sketch_sum_ns(ns).lo, 1234 * ONE);
    T_EQ_U64(weir_sketch_sum_ns(ns).hi, 0);
    weir_sketch_free(ns);
}

TEST(a_sum_of_doubles_keeps_what_rounding_takes)
{
    struct weir_sketch *const sk = OF(1e16, 1, -1e16);
    T_EQ_DBL(weir_sketch_sum(sk), 1.0);
    weir_sketch_free(sk);
    struct weir_sketch *const tenths = t_sketch(WEIR_GRID_VALUE, 0);
    for (int i = 0; i < 1000; i++)
        T_OK(weir_sketch_add(tenths, 0.1, 0));
    T_EQ_DBL(weir_sketch_sum(tenths), 100.0);
    weir_sketch_free(tenths);
}

TEST(a_sum_past_the_greatest_double_stays_there)
{
    struct weir_sketch *const sk = OF(DBL_MAX, DBL_MAX, -DBL_MAX);
    const double sum = weir_sketch_sum(sk);
    T_TRUE(isfinite(sum));
    T_TRUE(isfinite(t_sketch_q(sk, 0.7)));
    T_EQ_DBL(t_sketch_q(sk, 1), DBL_MAX);
    weir_sketch_free(sk);
}

TEST(zeros_and_subnormals_share_the_zero_bin)
{
    struct weir_sketch *const sk = OF(0, -0.0, 5e-324, -5e-324, DBL_MIN, -DBL_MIN);
    T_EQ_U64(weir_sketch_weight(sk), 6 * ONE);
    T_EQ_DBL(t_sketch_q(sk, 0.5), 0.0);
    T_EQ_DBL(t_sketch_min(sk), -DBL_MIN);
    T_EQ_DBL(t_sketch_max(sk), DBL_MIN);
    weir_sketch_free(sk);
    struct weir_sketch *const minus = OF(-0.0);
    T_TRUE(!signbit(t_sketch_min(minus)));
    weir_sketch_free(minus);
}

struct seen {
    size_t n;
    double lower[8];
    double upper[8];
    uint64_t weight[8];
};

static void see(void *ctx, double lower, double upper, uint64_t weight)
{
    struct seen *const s = ctx;
    T_TRUE(s->n < 8);
    s->lower[s->n] = lower;
    s->upper[s->n] = upper;
    s->weight[s->n++] = weight;
}

TEST(bins_are_visited_in_ascending_order_with_their_bounds)
{
    struct weir_sketch *const sk = OF(2, -1, 0, 0, -3, 2, 1);
    struct seen s = {0};
    weir_sketch_bins(sk, see, &s);
    T_EQ_U64(s.n, 5);
    const double at[5] = {-3, -1, 0, 1, 2};
    const uint64_t weight[5] = {1, 1, 2, 1, 2};
    for (int i = 0; i < 5; i++) {
        T_EQ_U64(s.weight[i], weight[i] * ONE);
        T_TRUE(at[i] < 0    ? s.lower[i] <= at[i] && at[i] < s.upper[i]
               : at[i] == 0 ? s.lower[i] == 0 && s.upper[i] == 0
                            : s.lower[i] < at[i] && at[i] <= s.upper[i]);
    }
    T_EQ_DBL(s.upper[3], 1.0); /* bounds are upper-inclusive: 1 ends a bin */
    T_EQ_DBL(s.upper[4], 2.0);
    T_EQ_DBL(s.lower[1], -1.0);
    weir_sketch_free(sk);
    struct weir_sketch *const top = OF(DBL_MAX);
    s.n = 0;
    weir_sketch_bins(top, see, &s);
    T_EQ_DBL(s.upper[0], DBL_MAX);
    T_TRUE(s.lower[0] < DBL_MAX);
    weir_sketch_free(top);
}

/* Each count at max(i, top - max_bins + 1), in any order of arrival. */
TEST(past_max_bins_the_lowest_bins_collapse)
{
    static const int orders[3] = {1, 20, 40}; /* steps through 41 bins, coprime with 41 */
    for (int o = 0; o < 3; o++) {
        struct weir_sketch *const sk = t_sketch(WEIR_GRID_VALUE, 8);
        for (int k = 0; k < 41; k++) {
            const int i = k * orders[o] % 41 - 20;
            T_OK(weir_sketch_add(sk, exp2((i + 0.5) / 64), 0));
            T_TRUE(wr_sketch_check(sk));
        }
        struct seen s = {0};
        weir_sketch_bins(sk, see, &s);
        T_EQ_U64(s.n, 8);
        T_EQ_U64(s.weight[0], 34 * ONE);
        for (int i = 1; i < 8; i++)
            T_EQ_U64(s.weight[i], ONE);
        T_EQ_DBL(s.lower[1], exp2(14 / 64.0));
        T_EQ_U64(weir_sketch_bins_weight(sk), 41 * ONE);
        weir_sketch_free(sk);
    }
}

/* saluki#2596: a far value must not lose one of those it displaces. */
TEST(a_collapse_keeps_every_count)
{
    struct weir_sketch *const sk = t_sketch(WEIR_GRID_VALUE, 2);
    for (int i = 0; i < 100; i++)
        T_OK(weir_sketch_add(sk, 1, 0));
    T_OK(weir_sketch_add(sk, 1073741823, 0));
    T_EQ_U64(weir_sketch_bins_weight(sk), 101 * ONE);
    T_EQ_DBL(t_sketch_q(sk, 1), 1073741823.0);
    T_EQ_DBL(t_sketch_q(sk, 0), 1.0);
    T_TRUE(wr_sketch_check(sk));
    weir_sketch_free(sk);
}

TEST(merging_ranges_far_apart_allocates_within_the_limit)
{
    struct weir_sketch *const a = OF(1e-300, -1e-300);
    struct weir_sketch *const b = OF(1e300, -1e300);
    T_OK(weir_sketch_merge(a, b));
    T_EQ_U64(weir_sketch_bins_weight(a), 4 * ONE);
    T_TRUE(weir_sketch_bytes(a) <= 128 + 24 + 2 * WEIR_SKETCH_BINS_DEFAULT);
    T_TRUE(wr_sketch_check(a));
    weir_sketch_free(a);
    weir_sketch_free(b);
}

TEST(a_fractional_weight_counts_exactly)
{
    struct weir_sketch *const sk = t_sketch(WEIR_GRID_NS, 0);
    for (int i = 0; i < 300; i++)
        T_OK(weir_sketch_add_ns(sk, 1000, 0));
    T_OK(weir_sketch_add_ns(sk, 1000, 1)); /* 2^-20 of a span */
    T_OK(weir_sketch_add_ns(sk, 9000, ONE / 2));
    T_EQ_U64(weir_sketch_weight(sk), 300 * ONE + 1 + ONE / 2);
    T_EQ_U64(weir_sketch_bins_weight(sk), 300 * ONE + 1 + ONE / 2);
    T_EQ_U64(weir_sketch_sum_ns(sk).lo, 300000 * ONE + 1000 + 9000 * (ONE / 2));
    T_TRUE(wr_sketch_check(sk));
    weir_sketch_free(sk);
}

/* Two halves are one: the history of units is not in the contents. */
TEST(halves_that_add_up_equal_a_whole)
{
    struct weir_sketch *const halves = t_sketch(WEIR_GRID_NS, 0);
    struct weir_sketch *const whole = t_sketch(WEIR_GRID_NS, 0);
    T_OK(weir_sketch_add_ns(halves, 1000, ONE / 2));
    T_OK(weir_sketch_add_ns(halves, 1000, ONE / 2));
    T_OK(weir_sketch_add_ns(whole, 1000, ONE));
    t_sketch_same(halves, whole);
    weir_sketch_free(halves);
    weir_sketch_free(whole);
}

TEST(a_cleared_sketch_refills_to_the_same_bytes_and_keeps_its_memory)
{
    static const double sets[3][4] = {{1e6, 1e6, 3e6, 8e6}, {1e-3, 2e-3, -7, 0}, {5, 5, 5, 5}};
    struct weir_sketch *const sk = t_sketch(WEIR_GRID_VALUE, 0);
    weir_sketch_clear(sk); /* of an empty one: nothing */
    for (int i = 0; i < 9; i++) {
        add_all(sk, sets[i % 3], 4);
        struct weir_sketch *const fresh = of(sets[i % 3], 4);
        t_sketch_same(sk, fresh);
        weir_sketch_free(fresh);
        const size_t bytes = weir_sketch_bytes(sk);
        weir_sketch_clear(sk);
        T_EQ_U64(weir_sketch_bytes(sk), bytes);
        T_EQ_U64(weir_sketch_weight(sk), 0);
        T_EQ_DBL(weir_sketch_sum(sk), 0.0);
        struct weir_sketch *const empty = t_sketch(WEIR_GRID_VALUE, 0);
        t_sketch_same(sk, empty);
        weir_sketch_free(empty);
    }
    weir_sketch_free(sk);
}

TEST(a_cold_sketch_is_its_header_and_65_spans_stay_small)
{
    struct weir_sketch *const sk = t_sketch(WEIR_GRID_NS, 0);
    for (int i = 0; i < 20; i++)
        T_OK(weir_sketch_add_ns(sk, 5000000 + i * 20000, 0));
    T_EQ_U64(weir_sketch_bytes(sk), 128);
    struct t_rng rng = t_rng(t_seed());
    for (int i = 20; i < 65; i++) /* three octaves */
        T_OK(weir_sketch_add_ns(sk, INT64_C(2000000) << t_below(&rng, 3), 0));
    T_TRUE(weir_sketch_bytes(sk) <= 128 + 256);
    weir_sketch_free(sk);
}

TEST(prefetching_changes_nothing)
{
    struct weir_sketch *const sk = t_sketch(WEIR_GRID_NS, 0);
    wr_sketch_prefetch_ns(sk, 1000);
    T_OK(wr_sketch_add_ns(sk, 1000, ONE));
    wr_sketch_prefetch_ns(sk, 1000);
    wr_sketch_prefetch_ns(sk, -1);
    wr_sketch_prefetch_ns(sk, INT64_MAX);
    T_EQ_U64(weir_sketch_weight(sk), ONE);
    T_TRUE(wr_sketch_check(sk));
    weir_sketch_free(sk);
}

static struct weir_sketch *with_log(double alpha, uint32_t max_bins)
{
    struct weir_mapping *m;
    T_OK(weir_mapping_log(NULL, alpha, &m));
    const struct weir_sketch_opts o = {.struct_size = sizeof o, .mapping = m, .max_bins = max_bins};
    struct weir_sketch *sk;
    T_OK(weir_sketch_new(&o, &sk));
    weir_mapping_unref(m);
    return sk;
}

/* saluki#2596: a hundred ones and 2^30 - 1: the hundred are 2047 bins below. */
TEST(a_far_value_moves_the_others_to_the_lowest_bin_kept)
{
    struct weir_sketch *const sk = with_log(1.0 / 1024, 0);
    for (int i = 0; i < 100; i++)
        T_OK(weir_sketch_add(sk, 1, 0));
    T_OK(weir_sketch_add(sk, 0x1p30 - 1, 0));
    T_EQ_U64(weir_sketch_bins_weight(sk), 101 * ONE);
    T_NEAR(t_sketch_q(sk, 1), 1073741823.0, 1.0 / 1024);
    struct seen s = {0};
    weir_sketch_bins(sk, see, &s);
    T_EQ_U64(s.n, 2);
    T_EQ_U64(s.weight[0], 100 * ONE);
    int32_t top;
    T_OK(weir_mapping_index(weir_sketch_mapping(sk), 0x1p30 - 1, &top));
    T_EQ_DBL(s.lower[0], weir_mapping_lower(weir_sketch_mapping(sk), top - 2047));
    T_TRUE(wr_sketch_check(sk));
    weir_sketch_free(sk);
}

/* rust-sketches-ddsketch#4: three sketches of 32,768 fine bins, merged again and again. */
TEST(fine_sketches_over_many_octaves_merge_again_and_again)
{
    struct weir_sketch *sk[3];
    uint64_t weight[3] = {0};
    for (int i = 0; i < 3; i++)
        sk[i] = with_log(1e-4, 32768);
    for (int64_t v = 0; v < INT64_C(8000000000); v += 9999991) {
        T_OK(weir_sketch_add(sk[v % 3], (double)v, 0));
        weight[v % 3] += ONE;
    }
    for (int i = 0; i < 9; i++) {
        T_OK(weir_sketch_merge(sk[i % 3], sk[(i + 1) % 3]));
        weight[i % 3] += weight[(i + 1) % 3];
        T_EQ_U64(weir_sketch_weight(sk[i % 3]), weight[i % 3]);
        T_EQ_U64(weir_sketch_bins_weight(sk[i % 3]), weight[i % 3]);
        T_TRUE(wr_sketch_check(sk[i % 3]));
    }
    for (int i = 0; i < 3; i++)
        weir_sketch_free(sk[i]);
}

/* rust-sketches-ddsketch#17 */
TEST(extremes_of_a_merge_are_those_of_both_sides_whatever_their_signs)
{
    struct weir_sketch *const a = OF(-1, -5);
    struct weir_sketch *const b = OF(-10, -2);
    T_OK(weir_sketch_merge(a, b));
    T_EQ_DBL(t_sketch_min(a), -10.0);
    T_EQ_DBL(t_sketch_max(a), -1.0);
    struct weir_sketch *const zero = OF(0, 0);
    struct weir_sketch *const positive = OF(3, 7);
    T_OK(weir_sketch_merge(zero, positive));
    T_EQ_DBL(t_sketch_min(zero), 0.0);
    T_EQ_DBL(t_sketch_max(zero), 7.0);
    T_OK(weir_sketch_merge(zero, a));
    T_EQ_DBL(t_sketch_min(zero), -10.0);
    T_TRUE(wr_sketch_check(zero));
    weir_sketch_free(a);
    weir_sketch_free(b);
    weir_sketch_free(zero);
    weir_sketch_free(positive);
}

/* sketchlib-go#72: ranges as far apart as there are take no more memory than the limit allows. */
TEST(merging_ranges_far_apart_collapses_and_stays_small)
{
    struct weir_sketch *const low = with_log(1e-5, 2048);
    struct weir_sketch *const high = with_log(1e-5, 2048);
    for (int i = 0; i < 1000; i++) {
        T_OK(weir_sketch_add(low, 1e-300 * (1 + i * 1e-6), 0));
        T_OK(weir_sketch_add(high, 1e300 * (1 + i * 1e-6), 0));
    }
    T_OK(weir_sketch_merge(low, high));
    T_EQ_U64(weir_sketch_bins_weight(low), 2000 * ONE);
    T_TRUE(weir_sketch_bytes(low) < 2048 * 2 + 512);
    T_EQ_DBL(t_sketch_min(low), 1e-300);
    T_OK(weir_sketch_merge(high, low));
    T_EQ_U64(weir_sketch_bins_weight(high), 3000 * ONE);
    T_TRUE(wr_sketch_check(low) && wr_sketch_check(high));
    weir_sketch_free(low);
    weir_sketch_free(high);
}
