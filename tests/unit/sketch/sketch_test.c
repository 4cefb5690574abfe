/* SPDX-License-Identifier: Apache-2.0 */
/* sketch: recording, merging, answers; each claim of <weir/sketch.h> beside its refusals. */
#include "t.h"

#include <float.h>
#include <math.h>
#include <string.h>
#include "sketch/sketch.h"

#define ONE WEIR_WEIGHT_ONE

static struct weir_sketch *make(uint32_t grid, uint32_t max_bins)
{
    const struct weir_sketch_opts o = {.struct_size = sizeof o, .grid = grid, .max_bins = max_bins};
    struct weir_sketch *sk;
    T_OK(weir_sketch_new(&o, &sk));
    return sk;
}

static void add_all(struct weir_sketch *sk, const double *values, size_t n)
{
    for (size_t i = 0; i < n; i++)
        T_OK(weir_sketch_add(sk, values[i], 0));
    T_TRUE(wr_sketch_check(sk));
}

static struct weir_sketch *of(const double *values, size_t n)
{
    struct weir_sketch *const sk = make(WEIR_GRID_VALUE, 0);
    add_all(sk, values, n);
    return sk;
}
#define OF(...)                                                                                    \
    of((const double[]){__VA_ARGS__}, sizeof((const double[]){__VA_ARGS__}) / sizeof(double))

static double quantile(const struct weir_sketch *sk, double q)
{
    double v;
    T_OK(weir_sketch_quantile(sk, q, &v));
    return v;
}

static double min_of(const struct weir_sketch *sk)
{
    double v;
    T_OK(weir_sketch_min(sk, &v));
    return v;
}

static double max_of(const struct weir_sketch *sk)
{
    double v;
    T_OK(weir_sketch_max(sk, &v));
    return v;
}

/* Both encode to the same bytes. */
static void same(const struct weir_sketch *a, const struct weir_sketch *b)
{
    static uint8_t bytes[2][1 << 20];
    size_t n[2];
    T_OK(weir_sketch_encode(a, bytes[0], sizeof bytes[0], &n[0]));
    T_OK(weir_sketch_encode(b, bytes[1], sizeof bytes[1], &n[1]));
    T_EQ_BYTES(bytes[0], n[0], bytes[1], n[1]);
}

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
    o.max_bins = 65536;
    o.grid = WEIR_GRID_NS;
    T_OK(weir_sketch_new(&o, &sk));
    T_EQ_U64(weir_sketch_grid(sk), WEIR_GRID_NS);
    weir_sketch_free(sk);

    sk = NULL;
    o.max_bins = 1;
    T_ERR(weir_sketch_new(&o, &sk), WEIR_EINVAL);
    o.max_bins = 65537;
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
    struct weir_sketch *const sk = make(WEIR_GRID_NS, 0);
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
    T_ERR(weir_sketch_quantile(sk, NAN, &v), WEIR_EINVAL);
    T_EQ_DBL(v, 7.0);
    T_OK(weir_sketch_quantile(sk, 0x1p-1074, &v));
    T_EQ_DBL(v, 1.0);
    weir_sketch_free(sk);
}

TEST(the_wrong_grid_is_refused)
{
    struct weir_sketch *const ns = make(WEIR_GRID_NS, 0);
    struct weir_sketch *const value = make(WEIR_GRID_VALUE, 0);
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
    T_ERR(weir_sketch_add(sk, NAN, 0), WEIR_ERANGE);
    T_ERR(weir_sketch_add(sk, INFINITY, 0), WEIR_ERANGE);
    T_ERR(weir_sketch_add(sk, -INFINITY, ONE), WEIR_ERANGE);
    same(sk, want);
    T_EQ_DBL(weir_sketch_sum(sk), 1.0);
    weir_sketch_free(sk);
    weir_sketch_free(want);
}

TEST(weight_0_means_one)
{
    struct weir_sketch *const a = make(WEIR_GRID_NS, 0);
    struct weir_sketch *const b = make(WEIR_GRID_NS, 0);
    T_OK(weir_sketch_add_ns(a, 1000, 0));
    T_OK(weir_sketch_add_ns(b, 1000, ONE));
    T_EQ_U64(weir_sketch_weight(a), ONE);
    same(a, b);
    weir_sketch_free(a);
    weir_sketch_free(b);
}

/* A span that ends before it starts, or says -5 ns, is a hit with duration 0. */
TEST(a_negative_duration_counts_as_zero)
{
    struct weir_sketch *const sk = make(WEIR_GRID_NS, 0);
    T_OK(weir_sketch_add_ns(sk, -5, 0));
    T_OK(weir_sketch_add_ns(sk, INT64_MIN, 0));
    T_OK(weir_sketch_add_ns(sk, 0, 0));
    T_EQ_U64(weir_sketch_weight(sk), 3 * ONE);
    T_EQ_U64(weir_sketch_sum_ns(sk).lo, 0);
    T_EQ_DBL(min_of(sk), 0.0);
    T_EQ_DBL(max_of(sk), 0.0);
    T_EQ_DBL(quantile(sk, 0.5), 0.0);
    T_TRUE(wr_sketch_check(sk));
    weir_sketch_free(sk);
}

TEST(the_total_weight_never_wraps)
{
    struct weir_sketch *const sk = make(WEIR_GRID_NS, 0);
    T_OK(weir_sketch_add_ns(sk, INT64_MAX, UINT64_MAX));
    T_ERR(weir_sketch_add_ns(sk, 5, 1), WEIR_ERANGE);
    T_ERR(weir_sketch_add_ns(sk, 0, 1), WEIR_ERANGE);
    struct weir_sketch *const other = make(WEIR_GRID_NS, 0);
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

    struct weir_sketch *const value = make(WEIR_GRID_VALUE, 0);
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
    T_EQ_DBL(quantile(a, 0), -2.0);
    T_EQ_DBL(quantile(a, 1), 2.0);
    T_EQ_DBL(quantile(a, 0.5), 0.0);
    T_NEAR(quantile(a, 0.2), -1.0, weir_sketch_accuracy(a));
    T_NEAR(quantile(a, 0.8), 1.0, weir_sketch_accuracy(a));
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
    T_EQ_DBL(min_of(a), -5.0);
    T_EQ_DBL(max_of(a), -3.0);
    T_EQ_U64(weir_sketch_weight(a), 3 * ONE);
    T_NEAR(quantile(a, 0.5), -4.0, weir_sketch_accuracy(a));
    T_TRUE(wr_sketch_check(a));
    weir_sketch_free(a);
    weir_sketch_free(b);
}

/* otel-js#4450: an empty side of a merge. */
TEST(merging_with_an_empty_sketch_is_a_copy)
{
    struct weir_sketch *const a = OF(1, 2, 4);
    struct weir_sketch *const want = OF(1, 2, 4);
    struct weir_sketch *const empty = make(WEIR_GRID_VALUE, 0);
    struct weir_sketch *const copy = make(WEIR_GRID_VALUE, 0);
    T_OK(weir_sketch_merge(a, empty));
    same(a, want);
    T_OK(weir_sketch_merge(copy, want));
    same(copy, want);
    weir_sketch_free(a);
    weir_sketch_free(want);
    weir_sketch_free(empty);
    weir_sketch_free(copy);
}
