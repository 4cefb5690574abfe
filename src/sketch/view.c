/* SPDX-License-Identifier: Apache-2.0 */
/*
 * view: see view.h.
 *
 * Threads: any, while nobody writes. Memory: none.
 */
#include "sketch/view.h"

#include <math.h>

_Static_assert(WR_WALK_SPAN == WR_LIST_SPAN, "a walk takes every list");

/* Nanoseconds that are binned as such are answered in seconds. */
static double to_answer(const struct weir_sketch *sk, double v)
{
    return wr_sketch_grid(sk) == WEIR_GRID_NS && wr_sketch_mapping(sk)->kind != WEIR_MAPPING_BASE2
               ? v / 1e9
               : v;
}

double wr_view_value(const struct weir_sketch *sk, int32_t index)
{
    return to_answer(sk, weir_mapping_value(wr_sketch_mapping(sk), index));
}

double wr_view_lower(const struct weir_sketch *sk, int32_t index)
{
    return to_answer(sk, weir_mapping_lower(wr_sketch_mapping(sk), index));
}

static double answer_of(const struct weir_sketch *sk, const union wr_extreme *x)
{
    return wr_sketch_grid(sk) == WEIR_GRID_NS ? (double)x->ns / 1e9 : x->value;
}

double wr_view_min(const struct weir_sketch *sk)
{
    return answer_of(sk, &sk->min);
}

double wr_view_max(const struct weir_sketch *sk)
{
    return answer_of(sk, &sk->max);
}

/* The extreme that lies in the highest bin of a sign, or in the lowest. */
static const union wr_extreme *extreme_at(const struct weir_sketch *sk, enum wr_sign sign,
                                          enum wr_end end)
{
    return (sign == WR_POSITIVE) == (end == WR_END_HIGH) ? &sk->max : &sk->min;
}

/* Whether the extreme in the highest bin is of that sign at all. */
static bool is_used(const struct weir_sketch *sk, enum wr_sign sign)
{
    const union wr_extreme *const x = extreme_at(sk, sign, WR_END_HIGH);
    if (wr_sketch_grid(sk) == WEIR_GRID_NS)
        return sign == WR_POSITIVE && x->ns > 0;
    return (sign == WR_POSITIVE ? x->value : -x->value) > WR_MAPPING_ZERO_MAX;
}

/* The line of an extreme's bin; the end of the block when it is not in it. */
static void narrow(const struct weir_sketch *sk, enum wr_sign sign, enum wr_end end,
                   struct wr_run *run)
{
    int32_t index;
    if (wr_sketch_place(sk, extreme_at(sk, sign, end), &index) != sign || index < run->base)
        return;
    const uint64_t line = ((uint64_t)(uint32_t)(index - run->base) << run->width) / WR_WALK_LINE;
    const uint64_t from = line * WR_WALK_LINE;
    if (from + WR_WALK_LINE > run->end)
        return;
    if (end == WR_END_HIGH)
        run->end = (uint32_t)from + WR_WALK_LINE;
    else
        run->begin = (uint32_t)from;
}

static struct wr_run run_of_store(const struct wr_store *st)
{
    return (struct wr_run){.bins = st->bins,
                           .base = st->base,
                           .end = st->bytes,
                           .width = st->width,
                           .shift = st->shift};
}

bool wr_view_run(const struct weir_sketch *sk, enum wr_sign sign, enum wr_end from,
                 struct wr_run *ret)
{
    if (sign == WR_POSITIVE && sk->flags & WR_SK_LIST) {
        *ret = (struct wr_run){
            .bins = sk->bins, .base = sk->base, .listed = sk->cap, .shift = WR_STORE_SHIFT};
        return sk->cap != 0;
    }
    const bool loose = (sk->flags & WR_SK_LOOSE) != 0;
    const struct wr_store pos = wr_sketch_take(sk);
    const struct wr_store *const st = sign == WR_POSITIVE ? &pos : wr_sketch_negative(sk);
    if (!st || (!loose && !is_used(sk, sign)))
        return false;
    *ret = run_of_store(st);
    if (!loose && wr_sketch_mapping(sk)->kind == WEIR_MAPPING_BASE2)
        narrow(sk, sign, from, ret);
    return true;
}

bool wr_view_floor(const struct weir_sketch *sk, enum wr_sign sign, int32_t *ret_index)
{
    if (sign == WR_POSITIVE && sk->flags & WR_SK_LIST)
        return false;
    const struct wr_store pos = wr_sketch_take(sk);
    const struct wr_store *const st = sign == WR_POSITIVE ? &pos : wr_sketch_negative(sk);
    int32_t hi;
    return st && st->collapsed && wr_store_used(st, ret_index, &hi);
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

enum wr_sign wr_view_place(const struct weir_sketch *sk, double v, int32_t *ret_index)
{
    const union wr_extreme x = wr_sketch_grid(sk) == WEIR_GRID_NS
                                   ? (union wr_extreme){.ns = whole_ns(v)}
                                   : (union wr_extreme){.value = v};
    return wr_sketch_place(sk, &x, ret_index);
}
