/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bins: see bins.h.
 *
 * Threads: see bins.h. Memory: that of the stores.
 */
#include "sketch/bins.h"

#include "sketch/state.h"

#include <float.h>
#include <math.h>

bool wr_bins_range(const struct weir_sketch *sk, enum wr_bins_sign sign, int32_t *ret_lo,
                   int32_t *ret_hi)
{
    const struct wr_store *const st = sign == WR_BINS_POSITIVE ? &sk->pos : sk->neg;
    return st && wr_store_used(st, ret_lo, ret_hi);
}

void wr_bins_read(const struct weir_sketch *sk, enum wr_bins_sign sign, int32_t lo, size_t n,
                  uint64_t *ret_weights)
{
    const struct wr_store *const st = sign == WR_BINS_POSITIVE ? &sk->pos : sk->neg;
    for (size_t i = 0; i < n; i++)
        ret_weights[i] = st ? wr_store_weight_at(st, lo + (int32_t)i) : 0;
}

uint64_t wr_bins_zero(const struct weir_sketch *sk)
{
    return sk->zero;
}

void wr_bins_begin(struct weir_sketch *sk, const struct weir_mapping *mapping)
{
    WR_ASSERT(sk->grid == WEIR_GRID_VALUE);
    weir_sketch_clear(sk);
    sk->loose = true; /* until end there are no extremes: clear has to look at the bins */
    if (weir_mapping_equal(sk->mapping, mapping))
        return;
    const struct weir_mapping *const old = sk->mapping;
    sk->mapping = weir_mapping_ref(mapping);
    weir_mapping_unref(old);
}

int wr_bins_add_zero(struct weir_sketch *sk, uint64_t weight)
{
    uint64_t total;
    if (__builtin_add_overflow(sk->weight, weight, &total))
        return WEIR_ERANGE;
    sk->weight = total;
    sk->zero += weight;
    return WEIR_OK;
}

int wr_bins_add(struct weir_sketch *sk, enum wr_bins_sign sign, int32_t index, uint64_t weight)
{
    uint64_t total;
    if (!weight)
        return WEIR_OK;
    if (__builtin_add_overflow(sk->weight, weight, &total))
        return WEIR_ERANGE;
    struct wr_store *const st = sign == WR_BINS_POSITIVE ? &sk->pos : wr_sketch_neg(sk);
    const int r = st ? wr_store_add(st, &sk->alloc, sk->max_bins, index, weight) : WEIR_ENOMEM;
    if (r == WEIR_OK)
        sk->weight = total;
    return r;
}

static double derived_sum(const struct weir_sketch *sk, enum wr_bins_sign sign)
{
    double sum = 0;
    int32_t lo;
    int32_t hi;
    if (!wr_bins_range(sk, sign, &lo, &hi))
        return 0;
    for (int32_t i = lo;; i++) {
        uint64_t weight;
        wr_bins_read(sk, sign, i, 1, &weight);
        if (weight)
            sum += weir_mapping_value(sk->mapping, i) * ((double)weight * 0x1p-20);
        if (i == hi)
            break;
    }
    return fmin(sum, DBL_MAX);
}

/* The least or greatest bin's answer. */
static double derived_min(const struct weir_sketch *sk)
{
    int32_t lo;
    int32_t hi;
    if (wr_bins_range(sk, WR_BINS_NEGATIVE, &lo, &hi))
        return -weir_mapping_value(sk->mapping, hi);
    if (sk->zero || !wr_bins_range(sk, WR_BINS_POSITIVE, &lo, &hi))
        return 0;
    return weir_mapping_value(sk->mapping, lo);
}

static double derived_max(const struct weir_sketch *sk)
{
    int32_t lo;
    int32_t hi;
    if (wr_bins_range(sk, WR_BINS_POSITIVE, &lo, &hi))
        return weir_mapping_value(sk->mapping, hi);
    if (sk->zero || !wr_bins_range(sk, WR_BINS_NEGATIVE, &lo, &hi))
        return 0;
    return -weir_mapping_value(sk->mapping, lo);
}

int wr_bins_end(struct weir_sketch *sk, const struct wr_bins_stats *stats)
{
    sk->loose = sk->weight != 0;
    if (!sk->weight)
        return WEIR_OK; /* empty says no extremes */
    /* what is derived does not contradict what is known */
    const double min = stats->has_min   ? stats->min
                       : stats->has_max ? fmin(derived_min(sk), stats->max)
                                        : derived_min(sk);
    const double max = stats->has_max   ? stats->max
                       : stats->has_min ? fmax(derived_max(sk), stats->min)
                                        : derived_max(sk);
    const double sum = stats->has_sum
                           ? stats->sum
                           : derived_sum(sk, WR_BINS_POSITIVE) - derived_sum(sk, WR_BINS_NEGATIVE);
    if (!(fabs(sum) <= DBL_MAX && fabs(min) <= DBL_MAX && fabs(max) <= DBL_MAX && min <= max))
        return WEIR_EFORMAT;
    sk->min.value = min;
    sk->max.value = max;
    sk->sum.value.sum = sum;
    sk->sum.value.rest = 0;
    sk->loose = true;
    sk->derived = !stats->has_sum || !stats->has_min || !stats->has_max;
    return WEIR_OK;
}

const struct weir_alloc *wr_bins_alloc(const struct weir_sketch *sk)
{
    return &sk->alloc;
}
