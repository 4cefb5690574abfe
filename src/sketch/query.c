/* SPDX-License-Identifier: Apache-2.0 */
/*
 * query: what a sketch answers: totals, extremes, quantiles, its bins.
 *
 * A rank is a weight in units of 2^-20, computed from q in integers, so that no total is too big
 * for it. Bins are counted from the nearer end.
 *
 * Threads: any, while nobody writes. Memory: none.
 */
#include "sketch/lanes.h"
#include "sketch/state.h"

#include <float.h>

enum wr_sign wr_sketch_place(const struct weir_sketch *sk, const union wr_extreme *x,
                             int32_t *ret_index)
{
    if (sk->grid == WEIR_GRID_NS) {
        if (x->ns <= 0)
            return WR_ZERO;
        *ret_index = wr_sketch_index_ns(sk, x->ns);
        return WR_POSITIVE;
    }
    const double magnitude = fabs(x->value);
    if (!(magnitude > WR_MAPPING_ZERO_MAX))
        return WR_ZERO;
    *ret_index = wr_mapping_index(sk->mapping, magnitude);
    return x->value > 0 ? WR_POSITIVE : WR_NEGATIVE;
}

bool wr_sketch_pos_range(const struct weir_sketch *sk, int32_t *ret_lo, int32_t *ret_hi)
{
    if (sk->loose)
        return wr_store_used(&sk->pos, ret_lo, ret_hi);
    if (!sk->weight || wr_sketch_place(sk, &sk->max, ret_hi) != WR_POSITIVE)
        return false;
    int32_t lo;
    *ret_lo = sk->pos.base;
    if (wr_sketch_place(sk, &sk->min, &lo) == WR_POSITIVE && lo > *ret_lo)
        *ret_lo = lo;
    return true;
}

bool wr_sketch_neg_range(const struct weir_sketch *sk, int32_t *ret_lo, int32_t *ret_hi)
{
    if (sk->loose)
        return sk->neg && wr_store_used(sk->neg, ret_lo, ret_hi);
    if (!sk->weight || wr_sketch_place(sk, &sk->min, ret_hi) != WR_NEGATIVE)
        return false;
    int32_t lo;
    *ret_lo = sk->neg->base;
    if (wr_sketch_place(sk, &sk->max, &lo) == WR_NEGATIVE && lo > *ret_lo)
        *ret_lo = lo;
    return true;
}

uint64_t weir_sketch_weight(const struct weir_sketch *sk)
{
    return sk->weight;
}

uint64_t weir_sketch_bins_weight(const struct weir_sketch *sk)
{
    return sk->zero + wr_store_weight(&sk->pos) + (sk->neg ? wr_store_weight(sk->neg) : 0);
}

void wr_sketch_sum_split(const struct weir_sketch *sk, double *ret_hi, double *ret_lo)
{
    const double hi = sk->sum.value.sum + sk->sum.value.rest;
    const bool finite = fabs(hi) <= DBL_MAX;
    *ret_hi = finite ? hi : copysign(DBL_MAX, hi);
    *ret_lo = finite ? (sk->sum.value.sum - hi) + sk->sum.value.rest : 0;
}

double weir_sketch_sum(const struct weir_sketch *sk)
{
    if (sk->grid != WEIR_GRID_NS) {
        double hi;
        double lo;
        wr_sketch_sum_split(sk, &hi, &lo);
        return hi;
    }
    return (double)sk->sum.ns * 0x1p-20 / 1e9;
}

struct weir_u128 weir_sketch_sum_ns(const struct weir_sketch *sk)
{
    if (sk->grid != WEIR_GRID_NS)
        return (struct weir_u128){0, 0};
    return (struct weir_u128){.lo = (uint64_t)sk->sum.ns, .hi = (uint64_t)(sk->sum.ns >> 64)};
}

static double answer_of(const struct weir_sketch *sk, const union wr_extreme *x)
{
    return sk->grid == WEIR_GRID_NS ? (double)x->ns / 1e9 : x->value;
}

int weir_sketch_min(const struct weir_sketch *sk, double *ret_value)
{
    if (!sk->weight)
        return WEIR_EEMPTY;
    *ret_value = answer_of(sk, &sk->min);
    return WEIR_OK;
}

int weir_sketch_max(const struct weir_sketch *sk, double *ret_value)
{
    if (!sk->weight)
        return WEIR_EEMPTY;
    *ret_value = answer_of(sk, &sk->max);
    return WEIR_OK;
}

/*
 * q * (weight - 1) to the nearest unit of 2^-20. Nearest, not down: 0.99 of 101 samples means rank
 * 99, although the double nearest 0.99 is less than it. 0 < q < 1.
 */
static uint64_t rank_of(uint64_t weight, double q)
{
    if (weight <= WEIR_WEIGHT_ONE)
        return 0;
    int exponent;
    const uint64_t mantissa = (uint64_t)(frexp(q, &exponent) * 0x1p53);
    const int down = 53 - exponent;
    if (down > 118)
        return 0; /* the product has 117 bits */
    const wr_uint128 product = (wr_uint128)mantissa * (weight - WEIR_WEIGHT_ONE);
    return (uint64_t)((product + ((wr_uint128)1 << (down - 1))) >> down);
}

/* need in units of the store's counters, rounded up. */
static uint64_t in_units(const struct wr_store *st, uint64_t need)
{
    const uint64_t rest = need & (((uint64_t)1 << st->shift) - 1);
    return (need >> st->shift) + (rest != 0);
}

/*
 * Walk from bin lo up, or from hi down, until the weight walked reaches *need: a word of counters
 * at a time, then one by one in the word where it happens. true: *ret_index is the bin where.
 * false: *need is less by the whole store.
 */
static bool walk_up(const struct wr_store *st, int32_t lo, int32_t hi, uint64_t *need,
                    int32_t *ret_index)
{
    const uint64_t wanted = in_units(st, *need);
    const size_t step = 8u >> st->width;
    size_t at = (size_t)(lo - st->base);
    const size_t end = (size_t)(hi - st->base) + 1;
    uint64_t sum = 0;
    for (; at + step <= end; at += step) {
        uint64_t word;
        memcpy(&word, st->bins + (at << st->width), sizeof word);
        const uint64_t next = sum + wr_lanes_sum(word, st->width);
        if (next >= wanted)
            break;
        sum = next;
    }
    for (; at < end; at++) {
        sum += wr_counter_get(st->bins, st->width, at);
        if (sum >= wanted) {
            *ret_index = st->base + (int32_t)at;
            return true;
        }
    }
    *need -= sum << st->shift;
    return false;
}

static bool walk_down(const struct wr_store *st, int32_t lo, int32_t hi, uint64_t *need,
                      int32_t *ret_index)
{
    const uint64_t wanted = in_units(st, *need);
    const size_t step = 8u >> st->width;
    const size_t start = (size_t)(lo - st->base);
    size_t end = (size_t)(hi - st->base) + 1;
    uint64_t sum = 0;
    for (; end >= start + step; end -= step) {
        uint64_t word;
        memcpy(&word, st->bins + ((end - step) << st->width), sizeof word);
        const uint64_t next = sum + wr_lanes_sum(word, st->width);
        if (next >= wanted)
            break;
        sum = next;
    }
    for (; end > start; end--) {
        sum += wr_counter_get(st->bins, st->width, end - 1);
        if (sum >= wanted) {
            *ret_index = st->base + (int32_t)(end - 1);
            return true;
        }
    }
    *need -= sum << st->shift;
    return false;
}

/* Nanoseconds that are binned as such are answered in seconds. */
static double to_answer(const struct weir_sketch *sk, double v)
{
    return sk->grid == WEIR_GRID_NS && sk->mapping->kind != WEIR_MAPPING_BASE2 ? v / 1e9 : v;
}

static double bin_value(const struct weir_sketch *sk, int32_t index)
{
    return to_answer(sk, weir_mapping_value(sk->mapping, index));
}

static double bin_lower(const struct weir_sketch *sk, int32_t index)
{
    return to_answer(sk, weir_mapping_lower(sk->mapping, index));
}

/* The first bin, in order of value, whose cumulative weight is above rank. */
static double find_from_bottom(const struct weir_sketch *sk, uint64_t rank)
{
    uint64_t need = rank + 1;
    int32_t lo;
    int32_t hi;
    int32_t index;
    if (wr_sketch_neg_range(sk, &lo, &hi) && walk_down(sk->neg, lo, hi, &need, &index))
        return -bin_value(sk, index);
    if (need <= sk->zero)
        return 0;
    need -= sk->zero;
    if (wr_sketch_pos_range(sk, &lo, &hi) && walk_up(&sk->pos, lo, hi, &need, &index))
        return bin_value(sk, index);
    return answer_of(sk, &sk->max); /* never: rank < weight */
}

/* The same bin, seen from the top: the highest from which weight - rank lie at or above it. */
static double find_from_top(const struct weir_sketch *sk, uint64_t rank)
{
    uint64_t need = sk->weight - rank;
    int32_t lo;
    int32_t hi;
    int32_t index;
    if (wr_sketch_pos_range(sk, &lo, &hi) && walk_down(&sk->pos, lo, hi, &need, &index))
        return bin_value(sk, index);
    if (need <= sk->zero)
        return 0;
    need -= sk->zero;
    if (wr_sketch_neg_range(sk, &lo, &hi) && walk_up(sk->neg, lo, hi, &need, &index))
        return -bin_value(sk, index);
    return answer_of(sk, &sk->min); /* never: rank >= 0 */
}

int weir_sketch_quantile(const struct weir_sketch *sk, double q, double *ret_value)
{
    if (!(q >= 0 && q <= 1))
        return WEIR_EINVAL;
    if (!sk->weight)
        return WEIR_EEMPTY;
    const double min = answer_of(sk, &sk->min);
    const double max = answer_of(sk, &sk->max);
    double v;
    if (q <= 0) {
        v = min;
    } else if (q >= 1) {
        v = max;
    } else {
        const uint64_t rank = rank_of(sk->weight, q);
        v = rank < sk->weight / 2 ? find_from_bottom(sk, rank) : find_from_top(sk, rank);
    }
    if (v < min)
        v = min;
    if (v > max)
        v = max;
    *ret_value = v;
    return WEIR_OK;
}

double weir_sketch_accuracy(const struct weir_sketch *sk)
{
    return sk->mapping->accuracy;
}

const struct weir_mapping *weir_sketch_mapping(const struct weir_sketch *sk)
{
    return sk->mapping;
}

bool weir_sketch_is_exact(const struct weir_sketch *sk)
{
    return !sk->derived;
}

uint32_t weir_sketch_grid(const struct weir_sketch *sk)
{
    return sk->grid;
}

size_t weir_sketch_bytes(const struct weir_sketch *sk)
{
    size_t bytes = sizeof *sk;
    if (sk->pos.bytes != WR_STORE_INLINE)
        bytes += sk->pos.bytes;
    if (sk->neg)
        bytes += sizeof *sk->neg + sk->neg->bytes;
    return bytes;
}

void weir_sketch_bins(const struct weir_sketch *sk, weir_sketch_bin_fn *fn, void *ctx)
{
    int32_t lo;
    int32_t hi;
    if (wr_sketch_neg_range(sk, &lo, &hi)) {
        for (int32_t i = hi; i >= lo; i--) {
            const uint64_t weight = wr_store_weight_at(sk->neg, i);
            if (weight)
                fn(ctx, -bin_lower(sk, i + 1), -bin_lower(sk, i), weight);
        }
    }
    if (sk->zero)
        fn(ctx, 0, 0, sk->zero);
    if (wr_sketch_pos_range(sk, &lo, &hi)) {
        for (int32_t i = lo; i <= hi; i++) {
            const uint64_t weight = wr_store_weight_at(&sk->pos, i);
            if (weight)
                fn(ctx, bin_lower(sk, i), bin_lower(sk, i + 1), weight);
        }
    }
}
