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
    if (wr_sketch_grid(sk) == WEIR_GRID_NS) {
        if (x->ns <= 0)
            return WR_ZERO;
        *ret_index = wr_sketch_index_ns(sk, x->ns);
        return WR_POSITIVE;
    }
    const double magnitude = fabs(x->value);
    if (!(magnitude > WR_MAPPING_ZERO_MAX))
        return WR_ZERO;
    *ret_index = wr_index_value(wr_sketch_mapping(sk), magnitude);
    return x->value > 0 ? WR_POSITIVE : WR_NEGATIVE;
}

const struct wr_store *wr_sketch_positive(const struct weir_sketch *sk, struct wr_view *view)
{
    if (!(sk->flags & WR_SK_LIST)) {
        view->store = wr_sketch_take(sk);
        return &view->store;
    }
    uint8_t *const counters = (uint8_t *)view->counters;
    int32_t lo;
    int32_t hi;
    view->store = (struct wr_store){.bins = counters, .shift = WR_STORE_SHIFT};
    if (!wr_list_range(sk, &lo, &hi))
        return &view->store;
    const uint32_t less = (uint32_t)lo - (uint32_t)sk->base;
    view->store.base = lo;
    view->store.cap = (uint32_t)hi - (uint32_t)lo + 1;
    view->store.bytes = (view->store.cap + 7) / 8 * 8;
    memset(counters, 0, view->store.bytes);
    for (size_t k = 0; k < sk->cap; k++)
        counters[wr_list_at(sk, k) - less]++;
    return &view->store;
}

bool wr_sketch_pos_range(const struct weir_sketch *sk, const struct wr_store *pos, int32_t *ret_lo,
                         int32_t *ret_hi)
{
    if (sk->flags & (WR_SK_LOOSE | WR_SK_LIST))
        return wr_store_used(pos, ret_lo, ret_hi);
    if (!sk->weight || wr_sketch_place(sk, &sk->max, ret_hi) != WR_POSITIVE)
        return false;
    int32_t lo;
    *ret_lo = pos->base;
    if (wr_sketch_place(sk, &sk->min, &lo) == WR_POSITIVE && lo > *ret_lo)
        *ret_lo = lo;
    return true;
}

bool wr_sketch_neg_range(const struct weir_sketch *sk, int32_t *ret_lo, int32_t *ret_hi)
{
    const struct wr_store *const neg = wr_sketch_negative(sk);
    if (!neg || sk->flags & WR_SK_LOOSE)
        return neg && wr_store_used(neg, ret_lo, ret_hi);
    if (!sk->weight || wr_sketch_place(sk, &sk->min, ret_hi) != WR_NEGATIVE)
        return false;
    int32_t lo;
    *ret_lo = neg->base;
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
    const struct wr_store *const neg = wr_sketch_negative(sk);
    const uint64_t others = wr_sketch_zero(sk) + (neg ? wr_store_weight(neg) : 0);
    if (sk->flags & WR_SK_LIST)
        return others + sk->cap * (uint64_t)WEIR_WEIGHT_ONE;
    const struct wr_store pos = wr_sketch_take(sk);
    return others + wr_store_weight(&pos);
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
    if (wr_sketch_grid(sk) != WEIR_GRID_NS) {
        double hi;
        double lo;
        wr_sketch_sum_split(sk, &hi, &lo);
        return hi;
    }
    return (double)sk->sum.ns * 0x1p-20 / 1e9;
}

struct weir_u128 weir_sketch_sum_ns(const struct weir_sketch *sk)
{
    if (wr_sketch_grid(sk) != WEIR_GRID_NS)
        return (struct weir_u128){0, 0};
    return (struct weir_u128){.lo = (uint64_t)sk->sum.ns, .hi = (uint64_t)(sk->sum.ns >> 64)};
}

static double answer_of(const struct weir_sketch *sk, const union wr_extreme *x)
{
    return wr_sketch_grid(sk) == WEIR_GRID_NS ? (double)x->ns / 1e9 : x->value;
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
    return wr_sketch_grid(sk) == WEIR_GRID_NS && wr_sketch_mapping(sk)->kind != WEIR_MAPPING_BASE2
               ? v / 1e9
               : v;
}

static double bin_value(const struct weir_sketch *sk, int32_t index)
{
    return to_answer(sk, weir_mapping_value(wr_sketch_mapping(sk), index));
}

static double bin_lower(const struct weir_sketch *sk, int32_t index)
{
    return to_answer(sk, weir_mapping_lower(wr_sketch_mapping(sk), index));
}

/* The first bin, in order of value, whose cumulative weight is above rank. */
static double find_from_bottom(const struct weir_sketch *sk, const struct wr_store *pos,
                               uint64_t rank)
{
    uint64_t need = rank + 1;
    int32_t lo;
    int32_t hi;
    int32_t index;
    if (wr_sketch_neg_range(sk, &lo, &hi) &&
        walk_down(wr_sketch_negative(sk), lo, hi, &need, &index))
        return -bin_value(sk, index);
    if (need <= wr_sketch_zero(sk))
        return 0;
    need -= wr_sketch_zero(sk);
    if (wr_sketch_pos_range(sk, pos, &lo, &hi) && walk_up(pos, lo, hi, &need, &index))
        return bin_value(sk, index);
    return answer_of(sk, &sk->max); /* never: rank < weight */
}

/* The same bin, seen from the top: the highest from which weight - rank lie at or above it. */
static double find_from_top(const struct weir_sketch *sk, const struct wr_store *pos, uint64_t rank)
{
    uint64_t need = sk->weight - rank;
    int32_t lo;
    int32_t hi;
    int32_t index;
    if (wr_sketch_pos_range(sk, pos, &lo, &hi) && walk_down(pos, lo, hi, &need, &index))
        return bin_value(sk, index);
    if (need <= wr_sketch_zero(sk))
        return 0;
    need -= wr_sketch_zero(sk);
    if (wr_sketch_neg_range(sk, &lo, &hi) && walk_up(wr_sketch_negative(sk), lo, hi, &need, &index))
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
        struct wr_view view;
        const struct wr_store *const pos = wr_sketch_positive(sk, &view);
        v = rank < sk->weight / 2 ? find_from_bottom(sk, pos, rank) : find_from_top(sk, pos, rank);
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
    return wr_sketch_mapping(sk)->accuracy;
}

const struct weir_mapping *weir_sketch_mapping(const struct weir_sketch *sk)
{
    return wr_sketch_mapping(sk);
}

bool weir_sketch_is_exact(const struct weir_sketch *sk)
{
    return !(sk->flags & WR_SK_DERIVED);
}

uint32_t weir_sketch_grid(const struct weir_sketch *sk)
{
    return wr_sketch_grid(sk);
}

size_t weir_sketch_bytes(const struct weir_sketch *sk)
{
    const struct wr_kind *const kind = wr_sketch_kind(sk);
    size_t bytes = sizeof *sk + wr_store_bytes(sk->size);
    if (kind->home == WR_KIND_BEHIND || kind->home == WR_KIND_APART)
        bytes += sizeof *kind;
    if (sk->flags & WR_SK_REST)
        bytes += sizeof *sk->of.rest + sk->of.rest->neg.bytes;
    return bytes;
}

void weir_sketch_bins(const struct weir_sketch *sk, weir_sketch_bin_fn *fn, void *ctx)
{
    struct wr_view view;
    const struct wr_store *const pos = wr_sketch_positive(sk, &view);
    int32_t lo;
    int32_t hi;
    if (wr_sketch_neg_range(sk, &lo, &hi)) {
        for (int32_t i = hi; i >= lo; i--) {
            const uint64_t weight = wr_store_weight_at(wr_sketch_negative(sk), i);
            if (weight)
                fn(ctx, -bin_lower(sk, i + 1), -bin_lower(sk, i), weight);
        }
    }
    if (wr_sketch_zero(sk))
        fn(ctx, 0, 0, wr_sketch_zero(sk));
    if (wr_sketch_pos_range(sk, pos, &lo, &hi)) {
        for (int32_t i = lo; i <= hi; i++) {
            const uint64_t weight = wr_store_weight_at(pos, i);
            if (weight)
                fn(ctx, bin_lower(sk, i), bin_lower(sk, i + 1), weight);
        }
    }
}
