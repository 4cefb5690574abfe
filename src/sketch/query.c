/* SPDX-License-Identifier: Apache-2.0 */
/*
 * query: what a sketch answers at once: totals, extremes, its bins. Quantiles: see quantile.c.
 *
 * Threads: any, while nobody writes. Memory: none.
 */
#include "sketch/record.h"
#include "sketch/view.h"

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

const struct wr_store *wr_sketch_positive(const struct weir_sketch *sk, struct wr_spread *spread)
{
    if (!(sk->flags & WR_SK_LIST)) {
        spread->store = wr_sketch_take(sk);
        return &spread->store;
    }
    uint8_t *const counters = (uint8_t *)spread->counters;
    int32_t lo;
    int32_t hi;
    spread->store = (struct wr_store){.bins = counters, .shift = WR_STORE_SHIFT};
    if (!wr_list_range(sk, &lo, &hi))
        return &spread->store;
    const uint32_t less = (uint32_t)lo - (uint32_t)sk->base;
    spread->store.base = lo;
    spread->store.cap = (uint32_t)hi - (uint32_t)lo + 1;
    spread->store.bytes = (spread->store.cap + 7) / 8 * 8;
    memset(counters, 0, spread->store.bytes);
    for (size_t k = 0; k < sk->cap; k++)
        counters[wr_list_at(sk, k) - less]++;
    return &spread->store;
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
    double lo = 0; /* exact also where values have cancelled and the rest is the greater part */
    const double hi = wr_two_sum(sk->sum.value.sum, sk->sum.value.rest, &lo);
    const bool finite = fabs(hi) <= DBL_MAX;
    *ret_hi = finite ? hi : copysign(DBL_MAX, hi);
    *ret_lo = finite ? lo : 0;
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

int weir_sketch_min(const struct weir_sketch *sk, double *ret_value)
{
    if (!sk->weight)
        return WEIR_EEMPTY;
    *ret_value = wr_view_min(sk);
    return WEIR_OK;
}

int weir_sketch_max(const struct weir_sketch *sk, double *ret_value)
{
    if (!sk->weight)
        return WEIR_EEMPTY;
    *ret_value = wr_view_max(sk);
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
    struct wr_spread spread;
    const struct wr_store *const pos = wr_sketch_positive(sk, &spread);
    int32_t lo;
    int32_t hi;
    if (wr_sketch_neg_range(sk, &lo, &hi)) {
        for (int64_t i = hi; i >= lo; i--) { /* foreign bins may be the last there are */
            const int32_t index = (int32_t)i;
            const uint64_t weight = wr_store_weight_at(wr_sketch_negative(sk), index);
            if (weight)
                fn(ctx, -wr_view_upper(sk, index), -wr_view_lower(sk, index), weight);
        }
    }
    if (wr_sketch_zero(sk))
        fn(ctx, 0, 0, wr_sketch_zero(sk));
    if (wr_sketch_pos_range(sk, pos, &lo, &hi)) {
        for (int64_t i = lo; i <= hi; i++) {
            const int32_t index = (int32_t)i;
            const uint64_t weight = wr_store_weight_at(pos, index);
            if (weight)
                fn(ctx, wr_view_lower(sk, index), wr_view_upper(sk, index), weight);
        }
    }
}
