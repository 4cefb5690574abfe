/* SPDX-License-Identifier: Apache-2.0 */
/*
 * answer: see answer.h.
 *
 * Threads: any, while nobody writes. Memory: none.
 */
#include "sketch/answer.h"

#include <math.h>

/* Nanoseconds that are binned as such are answered in seconds. */
static double to_answer(const struct weir_sketch *sk, double v)
{
    return sk->grid == WEIR_GRID_NS && sk->mapping->kind != WEIR_MAPPING_BASE2 ? v / 1e9 : v;
}

double wr_answer_value(const struct weir_sketch *sk, int32_t index)
{
    return to_answer(sk, weir_mapping_value(sk->mapping, index));
}

double wr_answer_lower(const struct weir_sketch *sk, int32_t index)
{
    return to_answer(sk, weir_mapping_lower(sk->mapping, index));
}

static double answer_of(const struct weir_sketch *sk, const union wr_extreme *x)
{
    return sk->grid == WEIR_GRID_NS ? (double)x->ns / 1e9 : x->value;
}

double wr_answer_min(const struct weir_sketch *sk)
{
    return answer_of(sk, &sk->min);
}

double wr_answer_max(const struct weir_sketch *sk)
{
    return answer_of(sk, &sk->max);
}

double wr_answer_error(const struct weir_sketch *sk)
{
    return sk->mapping->accuracy;
}

bool wr_answer_floor(const struct weir_sketch *sk, enum wr_sign sign, int32_t *ret_index)
{
    const struct wr_store *const st = sign == WR_POSITIVE ? &sk->pos : sk->neg;
    int32_t lo;
    int32_t hi;
    if (!st || !wr_store_used(st, &lo, &hi))
        return false;
    *ret_index = lo;
    int32_t least;
    if (!sk->loose && wr_sketch_place(sk, wr_answer_extreme(sk, sign, WR_END_LOW), &least) == sign)
        return least < lo;
    return (uint32_t)(hi - lo) + 1 >= sk->max_bins;
}

/*
 * The whole nanoseconds in v seconds. What is a double's rounding away from a whole number is that
 * number: 3e-9 means 3, although its double times 10^9 is not.
 */
static int64_t whole_ns(double v)
{
    const double ns = v * 1e9;
    const double near = nearbyint(ns);
    const double whole = fabs(ns - near) <= near * 0x1p-51 ? near : floor(ns);
    return whole < 0x1p63 ? (int64_t)whole : INT64_MAX;
}

enum wr_sign wr_answer_place(const struct weir_sketch *sk, double v, int32_t *ret_index)
{
    const union wr_extreme x = sk->grid == WEIR_GRID_NS ? (union wr_extreme){.ns = whole_ns(v)}
                                                        : (union wr_extreme){.value = v};
    return wr_sketch_place(sk, &x, ret_index);
}
