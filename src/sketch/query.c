/* SPDX-License-Identifier: Apache-2.0 */
/*
 * query: what a sketch answers at once: totals, extremes, its bins. Quantiles: see quantile.c.
 *
 * Threads: any, while nobody writes. Memory: none.
 */
#include "sketch/view.h"

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
                fn(ctx, -wr_view_lower(sk, i + 1), -wr_view_lower(sk, i), weight);
        }
    }
    if (sk->zero)
        fn(ctx, 0, 0, sk->zero);
    if (wr_sketch_pos_range(sk, &lo, &hi)) {
        for (int32_t i = lo; i <= hi; i++) {
            const uint64_t weight = wr_store_weight_at(&sk->pos, i);
            if (weight)
                fn(ctx, wr_view_lower(sk, i), wr_view_lower(sk, i + 1), weight);
        }
    }
}
