/* SPDX-License-Identifier: Apache-2.0 */
/*
 * batch: many values at once.
 *
 * Into one sketch: sum and extremes stay in registers, the weight is written once, and the loop is
 * compiled for each width of counter. Whatever a fast loop cannot do (a zero, a negative, a new
 * range, a wider counter) it leaves to the way one value takes, and goes on behind it.
 *
 * Into many: the header of a sketch is asked for 128 pairs ahead, and the line of its bins that
 * will be written 64 ahead, when the header is there.
 *
 * Threads: owner. Memory: that of the sketches.
 */
#include "sketch/state.h"

#include <float.h>

/* What the fast loops keep out of memory. */
struct running {
    double sum;
    double rest;
    double min;
    double max;
};

/*
 * Record values from the first on while it takes no change of shape: how many. Compiled once for
 * each width. Every counter stands for whole weights.
 */
WR_INLINE size_t count_loop(struct weir_sketch *sk, const struct weir_mapping *m, unsigned width,
                            const double *values, size_t n, struct running *run)
{
    struct running r = *run;
    uint8_t *const bins = sk->bins;
    const uint32_t base = (uint32_t)sk->base;
    const uint32_t cap = sk->cap;
    size_t i = 0;
    for (; i < n; i++) {
        const double v = values[i];
        if (WR_UNLIKELY(!(v > WR_MAPPING_ZERO_MAX && v <= DBL_MAX)))
            break;
        const uint32_t at = (uint32_t)wr_index_value(m, v) - base;
        if (WR_UNLIKELY(at >= cap))
            break;
        const uint64_t count = wr_counter_get(bins, (uint8_t)width, at) + 1;
        if (WR_UNLIKELY(width < 3 && count >> (8u << width)))
            break;
        const double sum = r.sum + v;
        if (WR_UNLIKELY(!(sum <= DBL_MAX)))
            break;
        wr_counter_put(bins, (uint8_t)width, at, count);
        const double part = sum - r.sum;
        r.rest += (r.sum - (sum - part)) + (v - part);
        r.sum = sum;
        r.min = v < r.min ? v : r.min;
        r.max = v > r.max ? v : r.max;
    }
    *run = r;
    return i;
}

static WR_NOINLINE size_t count_8(struct weir_sketch *sk, const struct weir_mapping *m,
                                  const double *values, size_t n, struct running *run)
{
    return m == &wr_mapping_default ? count_loop(sk, &wr_mapping_default, 0, values, n, run)
                                    : count_loop(sk, m, 0, values, n, run);
}

static WR_NOINLINE size_t count_16(struct weir_sketch *sk, const struct weir_mapping *m,
                                   const double *values, size_t n, struct running *run)
{
    return m == &wr_mapping_default ? count_loop(sk, &wr_mapping_default, 1, values, n, run)
                                    : count_loop(sk, m, 1, values, n, run);
}

static WR_NOINLINE size_t count_32(struct weir_sketch *sk, const struct weir_mapping *m,
                                   const double *values, size_t n, struct running *run)
{
    return m == &wr_mapping_default ? count_loop(sk, &wr_mapping_default, 2, values, n, run)
                                    : count_loop(sk, m, 2, values, n, run);
}

/* As count_loop, with the state of sk before and after. Its total cannot overflow. */
static size_t count_run(struct weir_sketch *sk, const double *values, size_t n)
{
    const struct weir_mapping *const m = wr_sketch_mapping(sk);
    struct running run = {.sum = sk->sum.value.sum,
                          .rest = sk->sum.value.rest,
                          .min = sk->min.value,
                          .max = sk->max.value};
    size_t done;
    switch (sk->flags & WR_SK_SHAPE) {
    case 0:
        done = count_8(sk, m, values, n, &run);
        break;
    case 1:
        done = count_16(sk, m, values, n, &run);
        break;
    case 2:
        done = count_32(sk, m, values, n, &run);
        break;
    default: /* a list, fractions, 64 bits: one by one */
        return 0;
    }
    sk->sum.value.sum = run.sum;
    sk->sum.value.rest = run.rest;
    sk->min.value = run.min;
    sk->max.value = run.max;
    sk->weight += done * (uint64_t)WEIR_WEIGHT_ONE;
    return done;
}

int weir_sketch_add_many(struct weir_sketch *sk, const double *values, size_t n,
                         size_t *ret_refused)
{
    size_t refused = 0;
    int r = WEIR_OK;
    if (ret_refused)
        *ret_refused = 0;
    if (wr_sketch_grid(sk) != WEIR_GRID_VALUE)
        return WEIR_EINVAL;
    for (size_t i = 0; i < n;) {
        const uint64_t room = (UINT64_MAX - sk->weight) / WEIR_WEIGHT_ONE;
        i += count_run(sk, values + i, n - i < room ? n - i : (size_t)room);
        if (i == n)
            break;
        r = weir_sketch_add(sk, values[i++], 0);
        if (r == WEIR_ERANGE)
            refused++;
        else if (r != WEIR_OK)
            break;
    }
    if (ret_refused)
        *ret_refused = refused;
    return r == WEIR_ERANGE ? WEIR_OK : r;
}

#define AHEAD_HEADER 128
#define AHEAD_BINS 64

/* Ask for what recording value will write; sk's header should be there. */
static void prefetch_bins(const struct weir_sketch *sk, double value)
{
    if (sk->flags & WR_SK_LIST) {
        WR_PREFETCH_W(sk->bins + (size_t)sk->cap * 2);
        return;
    }
    if (!(value > WR_MAPPING_ZERO_MAX && value <= DBL_MAX))
        return;
    const uint32_t at = (uint32_t)wr_index_value(wr_sketch_mapping(sk), value) - (uint32_t)sk->base;
    if (at < sk->cap)
        WR_PREFETCH_W(sk->bins + ((size_t)at << (sk->flags & WR_SK_WIDTH)));
}

int weir_sketch_add_pairs(const struct weir_sketch_pair *pairs, size_t n, size_t *ret_refused)
{
    size_t refused = 0;
    int first_error = WEIR_OK;
    for (size_t i = 0; i < n && i < AHEAD_HEADER; i++)
        WR_PREFETCH_W(pairs[i].sketch);
    for (size_t i = 0; i < n && i < AHEAD_BINS; i++)
        prefetch_bins(pairs[i].sketch, pairs[i].value);
    for (size_t i = 0; i < n; i++) {
        if (n - i > AHEAD_HEADER)
            WR_PREFETCH_W(pairs[i + AHEAD_HEADER].sketch);
        if (n - i > AHEAD_BINS)
            prefetch_bins(pairs[i + AHEAD_BINS].sketch, pairs[i + AHEAD_BINS].value);
        const int r = weir_sketch_add(pairs[i].sketch, pairs[i].value, 0);
        refused += r != WEIR_OK;
        if (r == WEIR_ENOMEM)
            first_error = r;
    }
    if (ret_refused)
        *ret_refused = refused;
    return first_error;
}

int weir_sketch_merge_many(struct weir_sketch *dst, const struct weir_sketch *const *src, size_t n)
{
    int r = WEIR_OK;
    for (size_t i = 0; i < n && r == WEIR_OK; i++)
        r = weir_sketch_merge(dst, src[i]);
    return r;
}

int weir_sketch_copy(struct weir_sketch *dst, const struct weir_sketch *src)
{
    if (dst == src)
        return WEIR_EINVAL;
    if (wr_sketch_grid(dst) != wr_sketch_grid(src) ||
        !weir_mapping_equal(wr_sketch_mapping(dst), wr_sketch_mapping(src)))
        return WEIR_EVERSION;
    weir_sketch_clear(dst);
    return weir_sketch_merge(dst, src);
}
