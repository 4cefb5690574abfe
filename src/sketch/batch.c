/* SPDX-License-Identifier: Apache-2.0 */
/*
 * batch: many values at once.
 *
 * Into one sketch: sum and extremes stay in registers, the weight is written once, and the loop is
 * compiled for each width of counter. Whatever a fast loop cannot do (a zero, a negative, a new
 * range, a wider counter) it leaves to the way one value takes, and goes on behind it.
 *
 * Into many: the header of a sketch is asked for 128 pairs ahead. 64 ahead, when it is there, the
 * bin of the value is found, and the line that will be written is asked for.
 *
 * Threads: owner. Memory: that of the sketches.
 */
#include "sketch/record.h"

/* What the fast loops keep out of memory. */
struct running {
    double sum;
    double rest;
    double min;
    double max;
};

/* Whether every value in the bins of the array is moderate and positive: what is neither is then
 * outside it, and need not be asked for. */
static bool is_plain(const struct weir_sketch *sk)
{
    return sk->base >= WR_MAPPING_VALUE_MIN &&
           sk->base <= WR_MODERATE_OCTAVE * WR_MAPPING_SUB - (int32_t)sk->cap;
}

/* Add one to a counter; roomy: none can be full. */
WR_INLINE bool count_one(uint8_t *bins, unsigned width, size_t at, bool roomy)
{
    if (!roomy)
        return wr_counter_try_add(bins, width, at, 1);
    ((uint32_t *)(void *)bins)[at]++;
    return true;
}

/*
 * Record values from the first on while it takes no change of shape: how many. Compiled once for
 * each width and way. Every counter stands for whole weights. roomy: all of the sketch in one
 * counter of 32 bits would not fill it.
 */
WR_INLINE size_t count_loop(struct weir_sketch *sk, unsigned width, enum wr_fast way, bool roomy,
                            const double *values, size_t n, struct running *run)
{
    const struct wr_kind_head head = *sk->of.head; /* or it is read again after each counter */
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
        if (way == WR_FAST_VALUE)
            index = wr_mapping_index_value(v);
        else if (WR_UNLIKELY(!wr_index_moderate(WR_FAST_TABLE, &head, v, &index)))
            break;
        const uint32_t at = (uint32_t)index - base;
        if (WR_UNLIKELY(at >= cap || !count_one(bins, width, at, roomy)))
            break;
        sum = wr_two_sum(sum, v, &rest);
        min = min < v ? min : v; /* in this order it is one instruction */
        max = max > v ? max : v;
    }
    run->sum = sum;
    run->rest = rest;
    run->min = min;
    run->max = max;
    return i;
}

#define LOOPS(bits, width, roomy)                                                                  \
    static WR_NOINLINE size_t count_##bits(struct weir_sketch *sk, enum wr_fast way,               \
                                           const double *values, size_t n, struct running *run)    \
    {                                                                                              \
        return way == WR_FAST_VALUE ? count_loop(sk, width, WR_FAST_VALUE, roomy, values, n, run)  \
                                    : count_loop(sk, width, WR_FAST_TABLE, roomy, values, n, run); \
    }
LOOPS(8, 0, false)
LOOPS(16, 1, false)
LOOPS(32, 2, false)
LOOPS(32_roomy, 2, true)
#undef LOOPS

/* As count_loop, with the state of sk before and after. Its total cannot overflow. */
static size_t count_run(struct weir_sketch *sk, const double *values, size_t n)
{
    const enum wr_fast way = (enum wr_fast)sk->of.head->fast;
    struct running run = {.sum = sk->sum.value.sum,
                          .rest = sk->sum.value.rest,
                          .min = sk->min.value,
                          .max = sk->max.value};
    size_t done;
    if (way != WR_FAST_TABLE && (way != WR_FAST_VALUE || !is_plain(sk)))
        return 0;
    switch (sk->flags & WR_SK_SHAPE) {
    case 0:
        done = count_8(sk, way, values, n, &run);
        break;
    case 1:
        done = count_16(sk, way, values, n, &run);
        break;
    case 2:
        if ((sk->weight >> WR_STORE_SHIFT) + n <= UINT32_MAX)
            done = count_32_roomy(sk, way, values, n, &run);
        else
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

#define AHEAD_HEADER 128u
#define AHEAD_BINS 64u /* a power of two */

/* The bin of a pair's value, where the fast way will do; its sketch's header should be there. Asks
 * for the line that it will be counted in. */
WR_INLINE int32_t look_ahead(const struct weir_sketch_pair *p)
{
    const struct weir_sketch *const sk = p->sketch;
    const struct wr_kind_head *const head = sk->of.head;
    int32_t index = WR_MAPPING_NO_BIN;
    if (head->fast == WR_FAST_VALUE)
        (void)wr_index_moderate(WR_FAST_VALUE, head, p->value, &index);
    else if (head->fast == WR_FAST_TABLE)
        (void)wr_index_moderate(WR_FAST_TABLE, head, p->value, &index);
    const uint32_t at = (uint32_t)index - (uint32_t)sk->base;
    const uint32_t cap = sk->cap;
    const uint32_t counter = at < cap ? at << (sk->flags & WR_SK_WIDTH) : 0;
    /* a number: what has no block yet is at none */
    const uintptr_t line = (uintptr_t)sk->bins + (sk->flags & WR_SK_LIST ? cap * 2 : counter);
    WR_PREFETCH_W((const void *)line);
    return index;
}

WR_INLINE bool add_at(struct weir_sketch *sk, double value, int32_t index)
{
    uint64_t total;
    if (WR_UNLIKELY(index == WR_MAPPING_NO_BIN ||
                    __builtin_add_overflow(sk->weight, WEIR_WEIGHT_ONE, &total) ||
                    !wr_sketch_try_count(sk, index, WEIR_WEIGHT_ONE)))
        return false;
    wr_account_moderate(sk, value, total);
    return true;
}

int weir_sketch_add_pairs(const struct weir_sketch_pair *pairs, size_t n, size_t *ret_refused)
{
    size_t refused = 0;
    int first_error = WEIR_OK;
    int32_t indices[AHEAD_BINS];
    for (size_t i = 0; i < n && i < AHEAD_HEADER; i++)
        WR_PREFETCH_W(pairs[i].sketch);
    for (size_t i = 0; i < n && i < AHEAD_BINS; i++)
        indices[i] = look_ahead(&pairs[i]);
    for (size_t i = 0; i < n; i++) {
        const int32_t index = indices[i % AHEAD_BINS];
        if (WR_LIKELY(n - i > AHEAD_HEADER))
            WR_PREFETCH_W(pairs[i + AHEAD_HEADER].sketch);
        if (WR_LIKELY(n - i > AHEAD_BINS))
            indices[i % AHEAD_BINS] = look_ahead(&pairs[i + AHEAD_BINS]);
        if (WR_LIKELY(add_at(pairs[i].sketch, pairs[i].value, index)))
            continue;
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
