/* SPDX-License-Identifier: Apache-2.0 */
/* list: few samples kept one by one; every way out of it, and that nobody can tell from outside. */
#include "sketch/state.h"
#include "t_sketch.h"

#include <math.h>
#include <string.h>

static bool is_list(const struct weir_sketch *sk)
{
    return (sk->flags & WR_SK_LIST) != 0;
}

/* The same sketch made so that it is counters from the first value on. */
static struct weir_sketch *counted(const double *values, size_t n)
{
    struct weir_sketch *const sk = t_sketch(WEIR_GRID_VALUE, 0);
    T_OK(wr_list_spread(sk));
    for (size_t i = 0; i < n; i++)
        T_OK(weir_sketch_add(sk, values[i], 0));
    T_TRUE(!is_list(sk) && wr_sketch_check(sk));
    return sk;
}

static double spread_value(size_t i)
{
    return exp2((double)(i * 37 % 401) / 40.0);
}

TEST(a_list_grows_by_lines_and_answers_as_counters_do)
{
    double values[WR_LIST_MAX + 1];
    struct weir_sketch *const sk = t_sketch(WEIR_GRID_VALUE, 0);
    for (size_t n = 1; n <= WR_LIST_MAX; n++) {
        values[n - 1] = spread_value(n);
        T_OK(weir_sketch_add(sk, values[n - 1], 0));
        T_TRUE(is_list(sk));
        T_EQ_U64(weir_sketch_bytes(sk), 64 + (n + 31) / 32 * 64);
        struct weir_sketch *const want = counted(values, n);
        t_sketch_same(sk, want);
        T_TRUE(weir_sketch_equal(sk, want) && weir_sketch_equal(want, sk));
        for (int q = 0; q <= 20; q++)
            T_EQ_DBL(t_sketch_q(sk, q / 20.0), t_sketch_q(want, q / 20.0));
        weir_sketch_free(want);
    }
    values[WR_LIST_MAX] = spread_value(1000);
    T_OK(weir_sketch_add(sk, values[WR_LIST_MAX], 0));
    T_TRUE(!is_list(sk)); /* full */
    struct weir_sketch *const want = counted(values, WR_LIST_MAX + 1);
    t_sketch_same(sk, want);
    weir_sketch_free(want);
    weir_sketch_clear(sk);
    T_TRUE(is_list(sk) && wr_sketch_check(sk));
    weir_sketch_free(sk);
}

TEST(samples_that_lie_close_become_counters_once_those_are_no_larger)
{
    struct weir_sketch *const sk = t_sketch(WEIR_GRID_VALUE, 0);
    for (int i = 0; i < 33; i++) {
        T_TRUE(is_list(sk));
        T_OK(weir_sketch_add(sk, 5, 0));
    }
    T_TRUE(!is_list(sk));
    T_EQ_U64(weir_sketch_bytes(sk), 128);
    T_EQ_U64(weir_sketch_bins_weight(sk), 33 * ONE);
    T_TRUE(wr_sketch_check(sk));
    weir_sketch_free(sk);
}

TEST(another_weight_than_one_ends_the_list)
{
    static const uint64_t weights[] = {2 * ONE, 1, ONE + 1, 300 * ONE};
    for (size_t i = 0; i < 4; i++) {
        struct weir_sketch *const sk = t_sketch(WEIR_GRID_VALUE, 0);
        T_OK(weir_sketch_add(sk, 1, 0));
        T_OK(weir_sketch_add(sk, 100, weights[i]));
        T_TRUE(!is_list(sk) && wr_sketch_check(sk));
        T_EQ_U64(weir_sketch_bins_weight(sk), ONE + weights[i]);
        weir_sketch_free(sk);
    }
}

TEST(zeros_and_negatives_leave_the_list_as_it_is)
{
    struct weir_sketch *const sk = t_sketch(WEIR_GRID_VALUE, 0);
    const double values[] = {1, 0, -3, 2, -0.0, -500};
    for (size_t i = 0; i < 6; i++)
        T_OK(weir_sketch_add(sk, values[i], 0));
    T_TRUE(is_list(sk) && sk->cap == 2 && wr_sketch_check(sk));
    struct weir_sketch *const want = counted(values, 6);
    t_sketch_same(sk, want);
    weir_sketch_free(want);
    weir_sketch_free(sk);
}

/* The window of indices moves with the samples as long as all of them fit into one. */
TEST(a_list_moves_to_where_its_samples_are_and_ends_where_they_do_not_fit)
{
    for (int sign = -1; sign <= 1; sign += 2) {
        struct weir_sketch *const sk = t_sketch(WEIR_GRID_VALUE, 0);
        double values[40];
        size_t n = 0;
        for (int octave = 0; octave < 32; octave++) {
            values[n] = exp2(sign * octave);
            T_OK(weir_sketch_add(sk, values[n++], 0));
            T_TRUE(wr_sketch_check(sk));
            T_TRUE(is_list(sk));
        }
        values[n] = exp2(sign * 32);
        T_OK(weir_sketch_add(sk, values[n++], 0));
        T_TRUE(!is_list(sk));
        T_TRUE(sk->flags & WR_SK_COLLAPSED);
        struct weir_sketch *const want = counted(values, n);
        t_sketch_same(sk, want);
        weir_sketch_free(want);
        weir_sketch_free(sk);
    }
}

/* A cleared list keeps its base: near it, far from it, and after counters, it is as a fresh one. */
TEST(a_cleared_list_takes_samples_near_its_base_and_far_from_it)
{
    struct weir_mapping *m;
    T_OK(weir_mapping_new(NULL, WEIR_MAPPING_LOG, 1.01, 1e6, &m));
    const struct weir_sketch_opts o = {.struct_size = sizeof o, .mapping = m};
    static const double firsts[] = {1, 1.5, 1e-6, 1e9, 1e12, 2};
    struct weir_sketch *sk;
    T_OK(weir_sketch_new(&o, &sk));
    for (size_t i = 0; i < sizeof firsts / sizeof firsts[0]; i++) {
        struct weir_sketch *fresh;
        T_OK(weir_sketch_new(&o, &fresh));
        const int samples = i % 2 ? 300 : 40; /* counters, a list */
        for (int k = 0; k < samples; k++) {
            T_OK(weir_sketch_add(sk, firsts[i] * (1 + k * 0.1), 0));
            T_OK(weir_sketch_add(fresh, firsts[i] * (1 + k * 0.1), 0));
            T_TRUE(wr_sketch_check(sk));
        }
        t_sketch_same(sk, fresh);
        weir_sketch_free(fresh);
        weir_sketch_clear(sk);
        T_TRUE(wr_sketch_check(sk));
    }
    weir_sketch_free(sk);
    weir_mapping_unref(m);
}

TEST(a_list_at_either_end_of_the_indices_stays_inside)
{
    struct weir_sketch *const sk = t_sketch(WEIR_GRID_VALUE, 0);
    static const int32_t ends[] = {INT32_MIN, INT32_MIN + 5, INT32_MAX - 5, INT32_MAX};
    for (size_t i = 0; i < 4; i++) {
        weir_sketch_clear(sk);
        sk->flags |= WR_SK_LOOSE;
        T_OK(wr_sketch_count(sk, ends[i], ONE));
        T_OK(wr_sketch_count(sk, ends[i] < 0 ? ends[i] + 7 : ends[i] - 7, ONE));
        T_TRUE(is_list(sk));
        for (int k = 0; k < 300; k++)
            T_OK(wr_sketch_count(sk, ends[i], ONE));
        T_TRUE(!is_list(sk));
        T_EQ_U64(weir_sketch_bins_weight(sk), 302 * ONE);
        T_OK(wr_sketch_count(sk, ends[(i + 2) % 4], ONE)); /* 2^32 bins away: a collapse */
        T_EQ_U64(weir_sketch_bins_weight(sk), 303 * ONE);
        T_TRUE(weir_sketch_bytes(sk) <= 64 + 2 * 2048);
    }
    weir_sketch_clear(sk);
    T_TRUE(wr_sketch_check(sk));
    weir_sketch_free(sk);
}

TEST(a_limit_below_the_span_of_a_list_means_counters_from_the_start)
{
    struct weir_sketch *const sk = t_sketch(WEIR_GRID_VALUE, WR_LIST_SPAN - 1);
    T_TRUE(!is_list(sk));
    T_OK(weir_sketch_add(sk, 1, 0));
    T_TRUE(!is_list(sk) && wr_sketch_check(sk));
    weir_sketch_clear(sk);
    T_TRUE(!is_list(sk) && wr_sketch_check(sk));
    weir_sketch_free(sk);
}

static struct weir_sketch *of(size_t first, size_t n, double scale, bool spread)
{
    struct weir_sketch *const sk = t_sketch(WEIR_GRID_VALUE, 0);
    if (spread)
        T_OK(wr_list_spread(sk));
    for (size_t i = 0; i < n; i++)
        T_OK(weir_sketch_add(sk, spread_value(first + i) * scale, 0));
    return sk;
}

/* Lists and counters in all four roles, with sizes about the limits. */
TEST(merging_does_not_depend_on_which_side_is_a_list)
{
    static const size_t sizes[] = {0, 1, 31, 64, 100, 128};
    static const double scales[] = {1, 0x1p14, 0x1p-25, 0x1p40};
    for (size_t c = 0; c < 6 * 6 * 4; c++) {
        struct weir_sketch *want = NULL;
        for (int way = 0; way < 4; way++) {
            struct weir_sketch *const a = of(1, sizes[c % 6], 1, way & 1);
            struct weir_sketch *const b = of(500, sizes[c / 6 % 6], scales[c / 36], way & 2);
            T_OK(weir_sketch_merge(a, b));
            T_TRUE(wr_sketch_check(a));
            T_EQ_U64(weir_sketch_bins_weight(a), (sizes[c % 6] + sizes[c / 6 % 6]) * ONE);
            weir_sketch_free(b);
            if (!want) {
                want = a;
                continue;
            }
            t_sketch_same(a, want);
            T_TRUE(weir_sketch_equal(a, want));
            weir_sketch_free(a);
        }
        weir_sketch_free(want);
    }
}

TEST(two_short_lists_merge_into_a_list)
{
    struct weir_sketch *const a = of(1, 40, 1, false);
    struct weir_sketch *const b = of(100, 50, 1, false);
    T_OK(weir_sketch_merge(a, b));
    T_TRUE(is_list(a) && a->cap == 90);
    T_EQ_U64(weir_sketch_bytes(a), 256);
    weir_sketch_free(a);
    weir_sketch_free(b);
}

/* What contracts of size promise for latencies that are log-normal with sigma 1. */
TEST(bytes_of_log_normal_latencies_are_those_promised)
{
    static const struct {
        size_t n;
        size_t base2;
        size_t log1;
    } promised[] = {{96, 256, 256}, {1000, 640, 576}, {1000000, 3840, 2112}};
    struct weir_mapping *log1;
    T_OK(weir_mapping_log(NULL, 0.01, &log1));
    for (int which = 0; which < 2; which++) {
        const struct weir_sketch_opts o = {.struct_size = sizeof o, .mapping = which ? log1 : NULL};
        struct weir_sketch_pool *pool;
        T_OK(weir_sketch_pool_new(&o, 4, &pool));
        struct weir_sketch *const sk = weir_sketch_pool_get(pool, 0);
        struct t_rng r = t_rng(1);
        size_t at = 0;
        for (size_t n = 1; n <= 1000000; n++) {
            const double u = 1 - t_unit(&r); /* Box and Muller */
            const double normal = sqrt(-2 * log(u)) * cos(6.283185307179586 * t_unit(&r));
            T_OK(weir_sketch_add(sk, 5e6 * exp(normal), 0));
            if (n <= 96)
                T_TRUE(weir_sketch_bytes(sk) <= 256);
            if (n == promised[at].n) {
                T_TRUE(weir_sketch_bytes(sk) <= (which ? promised[at].log1 : promised[at].base2));
                at++;
            }
        }
        T_TRUE(wr_sketch_check(sk));
        weir_sketch_free(sk);
        weir_sketch_pool_free(pool);
    }
    weir_mapping_unref(log1);
}
