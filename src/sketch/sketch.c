/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sketch: making, recording, merging, clearing.
 *
 * Recording has a fast path, inlined here: the bin is inside the array and its counter has room.
 * Anything else (zeros, a new range, a wider counter, a fractional weight, overflow) is the slow
 * path, kept out of line so that the fast one stays short.
 *
 * Threads: owner. Memory: see state.h.
 */
#include "sketch/state.h"

#include <float.h>

#define MAX_BINS_LEAST 2u
#define MAX_BINS_MOST 65536u

static void reset(struct weir_sketch *sk)
{
    sk->weight = 0;
    sk->zero = 0;
    sk->loose = false;
    sk->derived = false;
    if (sk->grid == WEIR_GRID_NS) {
        sk->sum.ns = 0;
        sk->min.ns = INT64_MAX;
        sk->max.ns = INT64_MIN;
    } else {
        sk->sum.value.sum = 0;
        sk->sum.value.rest = 0;
        sk->min.value = HUGE_VAL;
        sk->max.value = -HUGE_VAL;
    }
}

/* Options of an older caller are shorter, of a newer one longer. */
int wr_sketch_opts_read(const struct weir_sketch_opts *opts, struct weir_sketch_opts *ret_opts)
{
    struct weir_sketch_opts o;
    memset(&o, 0, sizeof o);
    if (opts)
        memcpy(&o, opts,
               opts->struct_size && opts->struct_size < sizeof o ? opts->struct_size : sizeof o);
    if (!o.max_bins)
        o.max_bins = WEIR_SKETCH_BINS_DEFAULT;
    if (o.grid > WEIR_GRID_NS || o.max_bins < MAX_BINS_LEAST || o.max_bins > MAX_BINS_MOST)
        return WEIR_EINVAL;
    o.alloc = wr_alloc_or_default(&o.alloc);
    if (!o.mapping)
        o.mapping = &wr_mapping_default;
    o.struct_size = sizeof o;
    *ret_opts = o;
    return WEIR_OK;
}

int weir_sketch_new(const struct weir_sketch_opts *opts, struct weir_sketch **ret_sketch)
{
    struct weir_sketch_opts o;
    const int r = wr_sketch_opts_read(opts, &o);
    if (r != WEIR_OK)
        return r;
    struct weir_sketch *const sk = wr_alloc_zero(&o.alloc, sizeof *sk);
    if (!sk)
        return WEIR_ENOMEM;
    sk->alloc = o.alloc;
    sk->max_bins = o.max_bins;
    sk->grid = (uint8_t)o.grid;
    sk->mapping = weir_mapping_ref(o.mapping);
    sk->pos = (struct wr_store){.bins = sk->inline_bins, .bytes = WR_STORE_INLINE};
    wr_store_clear(&sk->pos, sk->max_bins, 0, -1);
    reset(sk);
    *ret_sketch = sk;
    return WEIR_OK;
}

void weir_sketch_free(struct weir_sketch *sk)
{
    if (!sk)
        return;
    const struct weir_alloc a = sk->alloc;
    wr_store_done(&sk->pos, &a);
    if (sk->neg) {
        wr_store_done(sk->neg, &a);
        wr_free(&a, sk->neg, sizeof *sk->neg);
    }
    weir_mapping_unref(sk->mapping);
    wr_free(&a, sk, sizeof *sk);
}

void weir_sketch_clear(struct weir_sketch *sk)
{
    int32_t lo = 0;
    int32_t hi = -1;
    if (!wr_sketch_pos_range(sk, &lo, &hi))
        hi = lo - 1;
    wr_store_clear(&sk->pos, sk->max_bins, lo, hi);
    if (sk->neg) {
        if (!wr_sketch_neg_range(sk, &lo, &hi))
            hi = lo - 1;
        wr_store_clear(sk->neg, sk->max_bins, lo, hi);
    }
    reset(sk);
}

struct wr_store *wr_sketch_neg(struct weir_sketch *sk)
{
    if (!sk->neg) {
        sk->neg = wr_alloc_zero(&sk->alloc, sizeof *sk->neg);
        if (sk->neg)
            sk->neg->shift = WR_STORE_SHIFT;
    }
    return sk->neg;
}

/* The counters have it: now the exact numbers. */
WR_INLINE void account_ns(struct weir_sketch *sk, int64_t duration_ns, uint64_t weight,
                          uint64_t total)
{
    sk->weight = total;
    sk->sum.ns += (wr_uint128)(uint64_t)duration_ns * weight;
    if (duration_ns < sk->min.ns)
        sk->min.ns = duration_ns;
    if (duration_ns > sk->max.ns)
        sk->max.ns = duration_ns;
}

static WR_NOINLINE int add_ns_slow(struct weir_sketch *sk, int64_t duration_ns, uint64_t weight)
{
    uint64_t total;
    if (__builtin_add_overflow(sk->weight, weight, &total))
        return WEIR_ERANGE;
    if (duration_ns <= 0) {
        duration_ns = 0;
        sk->zero += weight;
    } else {
        const int r = wr_store_add(&sk->pos, &sk->alloc, sk->max_bins,
                                   wr_sketch_index_ns(sk, duration_ns), weight);
        if (r != WEIR_OK)
            return r;
    }
    account_ns(sk, duration_ns, weight, total);
    return WEIR_OK;
}

int wr_sketch_add_ns(struct weir_sketch *sk, int64_t duration_ns, uint64_t weight)
{
    uint64_t total;
    if (WR_UNLIKELY(duration_ns <= 0 || __builtin_add_overflow(sk->weight, weight, &total) ||
                    !wr_store_try_add(&sk->pos, wr_sketch_index_ns(sk, duration_ns), weight)))
        return add_ns_slow(sk, duration_ns, weight);
    account_ns(sk, duration_ns, weight, total);
    return WEIR_OK;
}

void wr_sketch_prefetch_ns(const struct weir_sketch *sk, int64_t duration_ns)
{
    if (duration_ns <= 0)
        return;
    const uint32_t at = (uint32_t)(wr_sketch_index_ns(sk, duration_ns) - sk->pos.base);
    if (at < sk->pos.cap)
        WR_PREFETCH_W(sk->pos.bins + ((size_t)at << sk->pos.width));
}

int weir_sketch_add_ns(struct weir_sketch *sk, int64_t duration_ns, uint64_t weight)
{
    if (sk->grid != WEIR_GRID_NS)
        return WEIR_EINVAL;
    return wr_sketch_add_ns(sk, duration_ns, weight ? weight : WEIR_WEIGHT_ONE);
}

/* Past DBL_MAX the sum stays there: never infinite, so never NaN. */
static void sum_add(struct weir_sketch *sk, double v, double rest)
{
    const double sum = sk->sum.value.sum;
    const double next = sum + v;
    if (!(fabs(next) <= DBL_MAX)) {
        sk->sum.value.sum = next > 0 ? DBL_MAX : -DBL_MAX;
        sk->sum.value.rest = 0;
        return;
    }
    const double lost = fabs(sum) >= fabs(v) ? (sum - next) + v : (v - next) + sum;
    sk->sum.value.sum = next;
    sk->sum.value.rest = (sk->sum.value.rest + rest) + lost;
}

/* value * weight, within DBL_MAX. */
static double weighted(double value, uint64_t weight)
{
    const double v = value * ((double)weight * 0x1p-20);
    return fabs(v) <= DBL_MAX ? v : copysign(DBL_MAX, value);
}

int weir_sketch_add(struct weir_sketch *sk, double value, uint64_t weight)
{
    if (sk->grid != WEIR_GRID_VALUE)
        return WEIR_EINVAL;
    uint64_t total;
    if (!weight)
        weight = WEIR_WEIGHT_ONE;
    const double magnitude = fabs(value);
    if (!(magnitude <= DBL_MAX) || __builtin_add_overflow(sk->weight, weight, &total))
        return WEIR_ERANGE;
    if (magnitude <= WR_MAPPING_ZERO_MAX) {
        sk->zero += weight;
        value += 0.0; /* -0 would make the answer depend on the order */
    } else {
        struct wr_store *const st = value > 0 ? &sk->pos : wr_sketch_neg(sk);
        const int r = st ? wr_store_add(st, &sk->alloc, sk->max_bins,
                                        wr_mapping_index(sk->mapping, magnitude), weight)
                         : WEIR_ENOMEM;
        if (r != WEIR_OK)
            return r;
    }
    sk->weight = total;
    sum_add(sk, weighted(value, weight), 0);
    if (value < sk->min.value)
        sk->min.value = value;
    if (value > sk->max.value)
        sk->max.value = value;
    return WEIR_OK;
}

static void merge_exact(struct weir_sketch *dst, const struct weir_sketch *src)
{
    if (dst->grid == WEIR_GRID_NS) {
        dst->sum.ns += src->sum.ns;
        if (src->min.ns < dst->min.ns)
            dst->min.ns = src->min.ns;
        if (src->max.ns > dst->max.ns)
            dst->max.ns = src->max.ns;
        return;
    }
    sum_add(dst, src->sum.value.sum, src->sum.value.rest);
    if (src->min.value < dst->min.value)
        dst->min.value = src->min.value;
    if (src->max.value > dst->max.value)
        dst->max.value = src->max.value;
}

int weir_sketch_merge(struct weir_sketch *dst, const struct weir_sketch *src)
{
    if (dst == src)
        return WEIR_EINVAL;
    if (dst->grid != src->grid || !weir_mapping_equal(dst->mapping, src->mapping))
        return WEIR_EVERSION;
    uint64_t total;
    if (__builtin_add_overflow(dst->weight, src->weight, &total))
        return WEIR_ERANGE;
    if (src->neg && !wr_sketch_neg(dst))
        return WEIR_ENOMEM;
    struct wr_store_change pos;
    struct wr_store_change neg;
    int r = wr_store_merge_prepare(&dst->pos, &dst->alloc, dst->max_bins, &src->pos, &pos);
    if (r != WEIR_OK)
        return r;
    if (src->neg) {
        r = wr_store_merge_prepare(dst->neg, &dst->alloc, dst->max_bins, src->neg, &neg);
        if (r != WEIR_OK) {
            wr_store_change_drop(&dst->alloc, &pos);
            return r;
        }
        wr_store_merge_commit(dst->neg, &dst->alloc, src->neg, &neg);
    }
    wr_store_merge_commit(&dst->pos, &dst->alloc, &src->pos, &pos);
    dst->weight = total;
    dst->zero += src->zero;
    dst->loose |= src->loose;
    dst->derived |= src->derived;
    merge_exact(dst, src);
    return WEIR_OK;
}
