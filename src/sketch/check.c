/* SPDX-License-Identifier: Apache-2.0 */
/*
 * check: every invariant of a sketch, for tests and development builds. See state.h, store.h.
 * Threads: any, while nobody writes. Memory: none.
 */
#include "sketch/state.h"

/* The used bins of st lie in [lo, hi] and hi is used; with none used, any must be false. */
static bool used_within(const struct wr_store *st, bool any, int32_t lo, int32_t hi)
{
    int32_t used_lo;
    int32_t used_hi;
    if (!st || !wr_store_used(st, &used_lo, &used_hi))
        return !any;
    return any && used_lo >= lo && used_hi == hi;
}

static bool check_extremes(const struct weir_sketch *sk)
{
    if (wr_sketch_grid(sk) == WEIR_GRID_NS)
        return sk->min.ns >= 0 && sk->min.ns <= sk->max.ns;
    return sk->min.value <= sk->max.value;
}

static bool check_shapes(const struct weir_sketch *sk)
{
    const struct wr_kind *const kind = wr_sketch_kind(sk);
    const struct wr_store *const neg = wr_sketch_negative(sk);
    if (neg && !wr_store_check(neg, kind))
        return false;
    if (sk->flags & WR_SK_LIST)
        return wr_list_check(sk);
    const struct wr_store pos = wr_sketch_take(sk);
    return wr_store_check(&pos, kind);
}

bool wr_sketch_check(const struct weir_sketch *sk)
{
    if (!check_shapes(sk) || weir_sketch_bins_weight(sk) != sk->weight)
        return false;
    if (sk->weight && !check_extremes(sk))
        return false;
    struct wr_spread spread;
    const struct wr_store *const store = wr_sketch_positive(sk, &spread);
    int32_t lo = 0;
    int32_t hi = 0;
    const bool pos = wr_sketch_pos_range(sk, store, &lo, &hi);
    if (!used_within(store, pos, lo, hi))
        return false;
    const bool neg = wr_sketch_neg_range(sk, &lo, &hi);
    return used_within(wr_sketch_negative(sk), neg, lo, hi);
}
