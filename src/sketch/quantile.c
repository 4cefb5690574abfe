/* SPDX-License-Identifier: Apache-2.0 */
/*
 * quantile: the value of a rank, one or many in a pass.
 *
 * A rank is a weight in units of 2^-20, computed from q in integers, so that no total is too big
 * for it. Bins are counted from the nearer end of the values: many quantiles are two passes, one
 * from each end, which meet nowhere.
 *
 * Threads: any, while nobody writes. Memory: none.
 */
#include "sketch/quantile.h"

#define AT_ONCE 64u

/*
 * q * (weight - 1) to the nearest unit of 2^-20. Nearest, not down: 0.99 of 101 samples means rank
 * 99, although the double nearest 0.99 is less than it.
 */
uint64_t wr_rank_of(uint64_t weight, double q)
{
    uint64_t bits;
    memcpy(&bits, &q, sizeof bits);
    const unsigned down = 1075 - (unsigned)(bits >> 52); /* q = mantissa * 2^-down */
    if (weight <= WEIR_WEIGHT_ONE || down > 118)
        return 0; /* the product has 117 bits */
    const uint64_t mantissa = (bits & (((uint64_t)1 << 52) - 1)) | ((uint64_t)1 << 52);
    const wr_uint128 product = (wr_uint128)mantissa * (weight - WEIR_WEIGHT_ONE);
    return (uint64_t)((product + ((wr_uint128)1 << (down - 1))) >> down);
}

/* The sign that a part is of: bins are numbered by magnitude, so that part 0 is walked from its
 * highest bin and part 2 from its lowest, whichever end the pass is from. */
WR_INLINE enum wr_sign sign_of(const struct wr_pass *p)
{
    return (p->part == 0) == (p->from == WR_END_HIGH) ? WR_POSITIVE : WR_NEGATIVE;
}

WR_INLINE void enter(struct wr_pass *p)
{
    const enum wr_end end = p->part == 0 ? WR_END_HIGH : WR_END_LOW;
    wr_view_run(p->sk, sign_of(p), end, p->room, &p->walk.run);
    if (p->part == 0)
        wr_walk_from_high(&p->walk);
    else
        wr_walk_from_low(&p->walk);
}

void wr_pass_begin(struct wr_pass *p, const struct weir_sketch *sk, enum wr_end from,
                   struct wr_view_room *room)
{
    p->room = room;
    p->sk = sk;
    p->from = from;
    p->part = 0;
    p->before = 0;
    enter(p);
}

/* In the part where the pass stands, or else over it. */
WR_INLINE bool find_in_part(struct wr_pass *p, uint64_t need, struct wr_spot *spot)
{
    struct wr_hit hit = {.weight = wr_sketch_zero(p->sk)};
    bool found;
    if (p->part == 0)
        found = wr_walk_down(&p->walk, need - p->before, &hit);
    else if (p->part == 2)
        found = wr_walk_up(&p->walk, need - p->before, &hit);
    else
        found = need - p->before <= hit.weight;
    if (!found) {
        p->before += p->part == 1 ? hit.weight : hit.before;
        if (++p->part == 2)
            enter(p);
        return false;
    }
    const uint64_t before = p->before + hit.before;
    spot->sign = p->part == 1 ? WR_ZERO : sign_of(p);
    spot->index = hit.index;
    spot->below = p->from == WR_END_LOW ? before : p->sk->weight - before - hit.weight;
    spot->weight = hit.weight;
    return true;
}

void wr_pass_find(struct wr_pass *p, uint64_t need, struct wr_spot *ret_spot)
{
    WR_ASSERT(need > 0 && need <= p->sk->weight);
    ret_spot->sign = WR_ZERO;
    while (!find_in_part(p, need, ret_spot) && p->part <= 2)
        continue;
}

static bool is_nearer_low(uint64_t weight, uint64_t rank)
{
    return rank < weight / 2;
}

void wr_spot_of_rank(const struct weir_sketch *sk, uint64_t rank, struct wr_spot *ret_spot)
{
    const bool low = is_nearer_low(sk->weight, rank);
    struct wr_pass p;
    struct wr_view_room room;
    room.used = false;
    wr_pass_begin(&p, sk, low ? WR_END_LOW : WR_END_HIGH, &room);
    wr_pass_find(&p, low ? rank + 1 : sk->weight - rank, ret_spot);
}

/* What is asked most is above the median and positive: the shortest way there. */
static double value_of_rank(const struct weir_sketch *sk, uint64_t rank)
{
    struct wr_walk w;
    struct wr_hit hit;
    struct wr_spot spot;
    if (!is_nearer_low(sk->weight, rank) && !(sk->flags & WR_SK_LIST)) {
        wr_view_counters(sk, WR_POSITIVE, WR_END_HIGH, &w.run);
        wr_walk_from_high(&w);
        if (wr_walk_down(&w, sk->weight - rank, &hit))
            return wr_view_value(sk, hit.index);
    }
    wr_spot_of_rank(sk, rank, &spot);
    return wr_spot_value(sk, &spot);
}

double wr_spot_value(const struct weir_sketch *sk, const struct wr_spot *spot)
{
    if (spot->sign == WR_ZERO)
        return 0;
    const double v = wr_view_value(sk, spot->index);
    return spot->sign == WR_POSITIVE ? v : -v;
}

static double clamp(double v, double min, double max)
{
    if (v < min)
        return min;
    return v > max ? max : v;
}

int weir_sketch_quantile(const struct weir_sketch *sk, double q, double *ret_value)
{
    if (!(q >= 0 && q <= 1))
        return WEIR_EINVAL;
    if (!sk->weight)
        return WEIR_EEMPTY;
    const double min = wr_view_min(sk);
    const double max = wr_view_max(sk);
    if (q <= 0) {
        *ret_value = min;
    } else if (q >= 1) {
        *ret_value = max;
    } else {
        *ret_value = clamp(value_of_rank(sk, wr_rank_of(sk->weight, q)), min, max);
    }
    return WEIR_OK;
}

/* A quantile that is asked for: its rank, and where its answer goes. */
struct ask {
    uint64_t rank;
    size_t at;
};

/* In the order of rank. Those who ask mostly have them in order. */
static void sort(struct ask *asks, size_t n)
{
    for (size_t i = 1; i < n; i++) {
        const struct ask ask = asks[i];
        size_t at = i;
        for (; at > 0 && asks[at - 1].rank > ask.rank; at--)
            asks[at] = asks[at - 1];
        asks[at] = ask;
    }
}

/* Ranks from the low end while that is nearer, then from the high end down to there. */
static void answer(const struct weir_sketch *sk, const struct ask *asks, size_t n, double *values)
{
    const double min = wr_view_min(sk);
    const double max = wr_view_max(sk);
    size_t low = 0;
    struct wr_view_room room;
    room.used = false;
    if (n && is_nearer_low(sk->weight, asks[0].rank)) {
        struct wr_pass p;
        wr_pass_begin(&p, sk, WR_END_LOW, &room);
        for (; low < n && is_nearer_low(sk->weight, asks[low].rank); low++) {
            struct wr_spot spot;
            wr_pass_find(&p, asks[low].rank + 1, &spot);
            values[asks[low].at] = clamp(wr_spot_value(sk, &spot), min, max);
        }
    }
    if (low == n)
        return;
    struct wr_pass p;
    wr_pass_begin(&p, sk, WR_END_HIGH, &room);
    for (size_t i = n; i > low; i--) {
        struct wr_spot spot;
        wr_pass_find(&p, sk->weight - asks[i - 1].rank, &spot);
        values[asks[i - 1].at] = clamp(wr_spot_value(sk, &spot), min, max);
    }
}

/* n <= AT_ONCE. qs may be values. */
static void answer_some(const struct weir_sketch *sk, const double *qs, size_t n, double *values)
{
    struct ask asks[AT_ONCE];
    size_t asked = 0;
    for (size_t i = 0; i < n; i++) {
        const double q = qs[i];
        if (q <= 0)
            values[i] = wr_view_min(sk);
        else if (q >= 1)
            values[i] = wr_view_max(sk);
        else
            asks[asked++] = (struct ask){.rank = wr_rank_of(sk->weight, q), .at = i};
    }
    sort(asks, asked);
    answer(sk, asks, asked, values);
}

int weir_sketch_quantiles(const struct weir_sketch *sk, const double *qs, size_t n,
                          double *ret_values)
{
    for (size_t i = 0; i < n; i++)
        if (!(qs[i] >= 0 && qs[i] <= 1))
            return WEIR_EINVAL;
    if (!sk->weight)
        return WEIR_EEMPTY;
    for (size_t i = 0; i < n; i += AT_ONCE)
        answer_some(sk, qs + i, n - i < AT_ONCE ? n - i : AT_ONCE, ret_values + i);
    return WEIR_OK;
}
