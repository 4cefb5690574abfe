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

/* What the fast loops keep out of memory. Apart from each other, or else compilers pair them in
 * vectors, and a sum then waits for what is done to its partner. */
struct running {
    _Alignas(16) double sum;
    _Alignas(16) double rest;
    _Alignas(16) double min;
    _Alignas(16) double max;
};

/*
 * What a loop need not ask of each value when all that the array, or the table, covers is of that
 * kind: so small that no sum of them comes near DBL_MAX; with the default mapping also bins that
 * only positive values have (negative ones and what is no number would be above, zeros below).
 */
#define PLAIN_EXPONENT 512
static bool is_plain(const struct weir_sketch *sk, enum wr_way way)
{
    const struct weir_mapping *const m = wr_sketch_mapping(sk);
    if (!(fabs(sk->sum.value.sum) <= 0x1p900))
        return false;
    if (way == WR_WAY_TABLE)
        return (m->cell_first + m->cell_count) << m->cell_shift <= (uint64_t)(1023 + PLAIN_EXPONENT)
                                                                       << 52;
    return way == WR_WAY_DEFAULT && sk->base >= WR_MAPPING_VALUE_MIN &&
           sk->base <= PLAIN_EXPONENT * WR_MAPPING_SUB - (int32_t)sk->cap;
}

/* Of a mapping's table, what would else be read again after each counter is written. */
struct cells {
    const uint64_t *at;
    uint64_t first;
    uint64_t count;
    uint32_t shift;
    int32_t index_first;
};

WR_INLINE bool index_in(const struct cells *c, double v, int32_t *ret_index)
{
    const uint64_t bits = wr_mapping_bits(v);
    const uint64_t cell = (bits >> c->shift) - c->first;
    if (WR_UNLIKELY(cell >= c->count))
        return false;
    *ret_index = c->index_first + (int32_t)((bits + c->at[cell]) >> c->shift);
    return true;
}

/*
 * Record values from the first on while it takes no change of shape: how many. Compiled once for
 * each width and way. Every counter stands for whole weights.
 */
WR_INLINE size_t count_loop(struct weir_sketch *sk, unsigned width, enum wr_way way, bool plain,
                            const double *values, size_t n, struct running *run)
{
    const struct weir_mapping *const m = wr_sketch_mapping(sk);
    const struct cells cells = {m->cells, m->cell_first, m->cell_count, m->cell_shift,
                                m->index_first};
    uint8_t *const bins = sk->bins;
    const uint32_t base = (uint32_t)sk->base;
    const uint32_t cap = sk->cap;
    double sum = run->sum;
    double rest = run->rest;
    double min = run->min;
    double max = run->max;
    size_t i = 0;
    for (; i < n; i++) {
        const double v = values[i];
        int32_t index;
        if (plain && way == WR_WAY_DEFAULT)
            index = wr_mapping_index_value(v);
        else if (WR_UNLIKELY(plain ? !index_in(&cells, v, &index)
                                   : !wr_index_by(way, m, v, &index)))
            break;
        const uint32_t at = (uint32_t)index - base;
        const double next = sum + v;
        if (WR_UNLIKELY(at >= cap || (!plain && !(next <= DBL_MAX)) ||
                        !wr_counter_try_add(bins, width, at, 1)))
            break;
        const double part = next - sum; /* as in sum_add */
        rest += (sum - (next - part)) + (v - part);
        sum = next;
        min = min < v ? min : v; /* in this order it is one instruction */
        max = max > v ? max : v;
    }
    run->sum = sum;
    run->rest = rest;
    run->min = min;
    run->max = max;
    return i;
}

#define LOOPS(bits, width)                                                                         \
    static WR_NOINLINE size_t plain_##bits(struct weir_sketch *sk, enum wr_way way,                \
                                           const double *values, size_t n, struct running *run)    \
    {                                                                                              \
        return way == WR_WAY_DEFAULT ? count_loop(sk, width, WR_WAY_DEFAULT, true, values, n, run) \
                                     : count_loop(sk, width, WR_WAY_TABLE, true, values, n, run);  \
    }                                                                                              \
    static WR_NOINLINE size_t count_##bits(struct weir_sketch *sk, enum wr_way way,                \
                                           const double *values, size_t n, struct running *run)    \
    {                                                                                              \
        return is_plain(sk, way) ? plain_##bits(sk, way, values, n, run)                           \
                                 : count_loop(sk, width, WR_WAY_ANY, false, values, n, run);       \
    }
LOOPS(8, 0)
LOOPS(16, 1)
LOOPS(32, 2)
#undef LOOPS

/* As count_loop, with the state of sk before and after. Its total cannot overflow. */
static size_t count_run(struct weir_sketch *sk, const double *values, size_t n)
{
    const enum wr_way way = wr_way_of(wr_sketch_mapping(sk));
    struct running run = {.sum = sk->sum.value.sum,
                          .rest = sk->sum.value.rest,
                          .min = sk->min.value,
                          .max = sk->max.value};
    size_t done;
    switch (sk->flags & WR_SK_SHAPE) {
    case 0:
        done = count_8(sk, way, values, n, &run);
        break;
    case 1:
        done = count_16(sk, way, values, n, &run);
        break;
    case 2:
        done = count_32(sk, way, values, n, &run);
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
    if (!sk->bins)
        return;
    if (sk->flags & WR_SK_LIST) {
        WR_PREFETCH_W(sk->bins + (size_t)sk->cap * 2);
        return;
    }
    if (!wr_is_positive(wr_mapping_bits(value)))
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
