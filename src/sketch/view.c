/* SPDX-License-Identifier: Apache-2.0 */
/*
 * view: see view.h.
 *
 * Threads: any, while nobody writes. Memory: none.
 */
#include "sketch/view.h"

#include <math.h>

double wr_view_lower(const struct weir_sketch *sk, int32_t index)
{
    return wr_view_answer(sk, wr_mapping_lower(wr_sketch_mapping(sk), index));
}

double wr_view_upper(const struct weir_sketch *sk, int32_t index)
{
    return wr_view_lower(sk, index < INT32_MAX ? index + 1 : index); /* that is past all doubles */
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

/* The lowest and highest bin of a list: those of the extremes, where they are its own and cost no
 * logarithm. false: it is empty. */
static bool list_range(const struct weir_sketch *sk, int32_t *ret_lo, int32_t *ret_hi)
{
    if (sk->flags & WR_SK_LOOSE || wr_sketch_mapping(sk) != &wr_mapping_default ||
        !wr_view_is(sk, &sk->min, WR_POSITIVE))
        return wr_list_range(sk, ret_lo, ret_hi);
    return wr_sketch_place(sk, &sk->min, ret_lo) == WR_POSITIVE &&
           wr_sketch_place(sk, &sk->max, ret_hi) == WR_POSITIVE && sk->cap != 0;
}

void wr_view_spread(const struct weir_sketch *sk, struct wr_view_room *room)
{
    uint8_t *const counters = (uint8_t *)room->counters;
    room->used = true;
    room->run = (struct wr_run){.bins = counters, .shift = WR_STORE_SHIFT};
    int32_t lo;
    int32_t hi;
    if (!list_range(sk, &lo, &hi))
        return;
    const uint32_t less = (uint32_t)lo - (uint32_t)sk->base;
    room->run.base = lo;
    room->run.end = ((uint32_t)hi - (uint32_t)lo + WR_WALK_LINE) / WR_WALK_LINE * WR_WALK_LINE;
    memset(counters, 0, room->run.end);
    const uint8_t *const list = sk->bins; /* a counter is a byte: it could be any of sk's */
    const uint32_t n = sk->cap;
    for (uint32_t k = 0; k < n; k++) {
        uint16_t offset;
        memcpy(&offset, list + (size_t)k * 2, sizeof offset);
        counters[offset - less]++;
    }
}

double wr_view_error(const struct weir_sketch *sk)
{
    return (1 + wr_sketch_mapping(sk)->accuracy) * (1 + wr_sketch_inherited(sk)) - 1;
}

/* The extreme nearer to zero lies below all bins of its sign, so that one was collapsed; the bytes
 * that a sketch came from do not say so otherwise. */
static bool is_below(const struct weir_sketch *sk, enum wr_sign sign, int32_t lo)
{
    int32_t least;
    return !(sk->flags & WR_SK_LOOSE) &&
           wr_sketch_place(sk, wr_view_extreme(sk, sign, WR_END_LOW), &least) == sign && least < lo;
}

bool wr_view_floor(const struct weir_sketch *sk, enum wr_sign sign, int32_t *ret_index)
{
    if (sign == WR_POSITIVE && sk->flags & WR_SK_LIST)
        return false;
    const struct wr_store pos = wr_sketch_take(sk);
    const struct wr_store *const st = sign == WR_POSITIVE ? &pos : wr_sketch_negative(sk);
    int32_t lo;
    int32_t hi;
    if (!st || !wr_store_used(st, &lo, &hi) || !(st->collapsed || is_below(sk, sign, lo)))
        return false;
    /* What collapsed here is in the lowest bin. What came from elsewhere can be higher up, but not
     * in the highest bin: the least limit is two. */
    *ret_index = sk->flags & WR_SK_LOOSE && lo < hi ? hi - 1 : lo;
    return true;
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
    union wr_extreme x;
    if (wr_sketch_grid(sk) == WEIR_GRID_NS)
        x.ns = whole_ns(v);
    else
        x.value = v;
    return wr_sketch_place(sk, &x, ret_index);
}
