/* SPDX-License-Identifier: Apache-2.0 */
/*
 * list: the positive bins of a sketch with few samples, one by one. See state.h.
 *
 * While the list is the smallest that the samples can be, it grows by a line of 32. It becomes
 * counters when those take no more lines, when it is full, when a sample lies too far from the
 * others, or when one has another weight than one.
 *
 * Threads: owner; reading, any. Memory: the block.
 */
#include "sketch/state.h"

#define LISTABLE(kind) ((kind)->head.max_bins >= WR_LIST_SPAN)

bool wr_list_range(const struct weir_sketch *sk, int32_t *ret_lo, int32_t *ret_hi)
{
    uint32_t lo = UINT16_MAX;
    uint32_t hi = 0;
    for (size_t k = 0; k < sk->cap; k++) {
        const uint32_t at = wr_list_at(sk, k);
        lo = at < lo ? at : lo;
        hi = at > hi ? at : hi;
    }
    *ret_lo = (int32_t)((uint32_t)sk->base + lo);
    *ret_hi = (int32_t)((uint32_t)sk->base + hi);
    return sk->cap != 0;
}

/* Count from another base, which leaves every sample within the span. */
static void rebase(struct weir_sketch *sk, int32_t base)
{
    const uint32_t less = (uint32_t)base - (uint32_t)sk->base;
    for (size_t k = 0; k < sk->cap; k++) {
        const uint16_t at = (uint16_t)(wr_list_at(sk, k) - less);
        memcpy(sk->bins + k * 2, &at, sizeof at);
    }
    sk->base = base;
}

/* A base around [lo, hi], such that base + WR_LIST_SPAN - 1 is an index. */
static int32_t base_around(int32_t lo, int32_t hi)
{
    const uint32_t spare = WR_LIST_SPAN - 1 - ((uint32_t)hi - (uint32_t)lo);
    int64_t base = (int64_t)lo - spare / 2;
    if (base < INT32_MIN)
        base = INT32_MIN;
    if (base > INT32_MAX - (int64_t)WR_LIST_SPAN + 1)
        base = INT32_MAX - (int64_t)WR_LIST_SPAN + 1;
    return (int32_t)base;
}

/* A longer block with the same samples; false: no memory. */
static bool grow(struct weir_sketch *sk, uint32_t bytes)
{
    const struct wr_kind *const kind = wr_sketch_kind(sk);
    if (kind->roomy)
        bytes = bytes <= WR_STORE_LINE       ? WR_STORE_LINE
                : bytes <= 2 * WR_STORE_LINE ? bytes
                                             : WR_LIST_MAX * 2;
    const uint8_t size = wr_store_size(bytes);
    uint8_t *const block = wr_alloc_zero(&kind->alloc, wr_store_bytes(size));
    if (!block)
        return false;
    if (sk->size)
        memcpy(block, sk->bins, (size_t)sk->cap * 2);
    wr_free(&kind->alloc, sk->bins, wr_store_bytes(sk->size));
    sk->bins = block;
    sk->size = size;
    return true;
}

int wr_list_room(struct weir_sketch *sk, int32_t index)
{
    const struct wr_kind *const kind = wr_sketch_kind(sk);
    const bool near = sk->cap && (uint32_t)index - (uint32_t)sk->base < WR_LIST_SPAN;
    if (near && sk->cap < WR_LIST_MAX && (sk->cap + 1u) * 2 <= wr_store_bytes(sk->size))
        return WEIR_OK;
    int32_t lo = index;
    int32_t hi = index;
    if (wr_list_range(sk, &lo, &hi)) {
        lo = index < lo ? index : lo;
        hi = index > hi ? index : hi;
    } else {
        lo = index;
        hi = index;
    }
    const uint32_t span = (uint32_t)hi - (uint32_t)lo + 1;
    if (!LISTABLE(kind) || span == 0 || span > WR_LIST_SPAN || sk->cap >= WR_LIST_MAX)
        return wr_list_spread(sk);
    const uint32_t bytes = (sk->cap + 1u) * 2;
    if (bytes > wr_store_bytes(sk->size)) {
        if (sk->cap && wr_store_size(span) <= wr_store_size(bytes))
            return wr_list_spread(sk);
        if (!grow(sk, bytes))
            return WEIR_ENOMEM;
    }
    if (!near)
        rebase(sk, base_around(lo, hi));
    return WEIR_OK;
}

int wr_list_spread(struct weir_sketch *sk)
{
    const struct wr_kind *const kind = wr_sketch_kind(sk);
    const uint32_t bytes = wr_store_bytes(sk->size);
    uint16_t samples[WR_LIST_MAX];
    const size_t n = sk->cap;
    const int32_t base = sk->base;
    struct wr_store st = {.bins = sk->bins,
                          .bytes = bytes,
                          .cap = bytes < kind->head.max_bins ? bytes : kind->head.max_bins,
                          .shift = WR_STORE_SHIFT};
    if (n) {
        int32_t lo;
        int32_t hi;
        (void)wr_list_range(sk, &lo, &hi);
        memcpy(samples, sk->bins, n * sizeof samples[0]);
        memset(sk->bins, 0, n * sizeof samples[0]);
        const int r = wr_store_reserve(&st, kind, lo, hi, n, WR_STORE_SHIFT);
        if (r != WEIR_OK) {
            memcpy(sk->bins, samples, n * sizeof samples[0]);
            return r;
        }
        for (size_t k = 0; k < n; k++)
            st.bins[(uint32_t)base + samples[k] - (uint32_t)st.base]++;
    }
    sk->flags &= (uint8_t)~WR_SK_LIST;
    wr_sketch_put(sk, &st);
    return WEIR_OK;
}

bool wr_list_join(struct weir_sketch *dst, const struct weir_sketch *src)
{
    int32_t lo;
    int32_t hi;
    int32_t other_lo;
    int32_t other_hi;
    const uint32_t n = (uint32_t)dst->cap + src->cap;
    if (n > WR_LIST_MAX || !LISTABLE(wr_sketch_kind(dst)))
        return false;
    if (!wr_list_range(src, &other_lo, &other_hi))
        return true;
    if (!wr_list_range(dst, &lo, &hi)) {
        lo = other_lo;
        hi = other_hi;
    }
    lo = other_lo < lo ? other_lo : lo;
    hi = other_hi > hi ? other_hi : hi;
    const uint32_t span = (uint32_t)hi - (uint32_t)lo;
    if (span >= WR_LIST_SPAN)
        return false;
    if (n * 2 > wr_store_bytes(dst->size) && !grow(dst, n * 2))
        return false;
    rebase(dst, base_around(lo, hi));
    const uint32_t more = (uint32_t)src->base - (uint32_t)dst->base;
    for (size_t k = 0; k < src->cap; k++) {
        const uint16_t at = (uint16_t)(wr_list_at(src, k) + more);
        memcpy(dst->bins + (dst->cap + k) * 2, &at, sizeof at);
    }
    dst->cap = (uint16_t)n;
    return true;
}

bool wr_list_check(const struct weir_sketch *sk)
{
    const uint32_t bytes = wr_store_bytes(sk->size);
    if (sk->flags & (WR_SK_WIDTH | WR_SK_FINE | WR_SK_COLLAPSED) || sk->cap > WR_LIST_MAX ||
        sk->cap * 2u > bytes || !LISTABLE(wr_sketch_kind(sk)))
        return false;
    for (size_t k = 0; k < sk->cap; k++)
        if (wr_list_at(sk, k) >= WR_LIST_SPAN)
            return false;
    for (uint32_t at = sk->cap * 2u; at < bytes; at++)
        if (sk->bins[at])
            return false;
    return true;
}

/* One more in each bin of the first n samples; how many were done when one was full. */
WR_INLINE size_t count_up(uint8_t *bins, uint8_t width, const uint8_t *list, size_t n,
                          uint32_t below)
{
    for (size_t k = 0; k < n; k++) {
        uint16_t at;
        memcpy(&at, list + k * 2, sizeof at);
        const size_t bin = (uint32_t)at - below;
        const uint64_t count = wr_counter_get(bins, width, bin);
        if (count == UINT64_MAX >> (64 - (8u << width)))
            return k;
        wr_counter_put(bins, width, bin, count + 1);
    }
    return n;
}

static size_t count_up_by(uint8_t *bins, uint8_t width, const uint8_t *list, size_t n,
                          uint32_t below)
{
    switch (width) {
    case 0:
        return count_up(bins, 0, list, n, below);
    case 1:
        return count_up(bins, 1, list, n, below);
    case 2:
        return count_up(bins, 2, list, n, below);
    default:
        return count_up(bins, 3, list, n, below);
    }
}

bool wr_list_merge_inside(struct weir_sketch *dst, const struct weir_sketch *src)
{
    int32_t lo;
    int32_t hi;
    if (dst->flags & WR_SK_FINE || !dst->cap || !wr_list_range(src, &lo, &hi))
        return false;
    const uint32_t from = (uint32_t)lo - (uint32_t)dst->base;
    const uint32_t to = (uint32_t)hi - (uint32_t)dst->base;
    if (lo < dst->base || to >= dst->cap || from > to)
        return false;
    const uint8_t width = dst->flags & WR_SK_WIDTH;
    const uint32_t below = (uint32_t)dst->base - (uint32_t)src->base;
    const size_t n = src->cap;
    size_t k = count_up_by(dst->bins, width, src->bins, n, below);
    if (k == n)
        return true;
    while (k-- > 0) { /* one is full, once in the life of a width: all off again */
        const size_t bin = wr_list_at(src, k) - below;
        wr_counter_put(dst->bins, width, bin, wr_counter_get(dst->bins, width, bin) - 1);
    }
    return false;
}
