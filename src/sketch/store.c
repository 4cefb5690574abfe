/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store: growing, widening, collapsing, merging. See store.h.
 *
 * Everything that changes the shape goes through one routine, relayout: it copies the used
 * counters, in ascending order, to where they belong in a new block or in the same one. In the
 * same block they are first moved to its end; as widths only widen, writing from the start then
 * never overtakes reading.
 */
#include "sketch/store.h"

#include "sketch/counters.h"
#include "sketch/lanes.h"

#define LINE WR_STORE_LINE

static uint32_t min_u32(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

static int32_t min32(int32_t a, int32_t b)
{
    return a < b ? a : b;
}

static int32_t max32(int32_t a, int32_t b)
{
    return a > b ? a : b;
}

/* The lowest bin that is kept when hi is the highest. */
static int32_t floor_of(int32_t hi, uint32_t max_bins)
{
    const int64_t floor = (int64_t)hi - max_bins + 1;
    return (int32_t)(floor < INT32_MIN ? INT32_MIN : floor);
}

static uint8_t width_for(uint64_t count)
{
    if (count <= UINT8_MAX)
        return 0;
    if (count <= UINT16_MAX)
        return 1;
    return count <= UINT32_MAX ? 2 : 3;
}

/* How far hi is above lo; right for any two indices that are in order. */
static uint32_t above(int32_t hi, int32_t lo)
{
    return (uint32_t)hi - (uint32_t)lo;
}

/* Where the counter of a bin is that the array covers. */
static uint8_t *counter_of(const struct wr_store *st, int32_t index)
{
    return st->bins + ((size_t)above(index, st->base) << st->width);
}

static uint64_t get(const struct wr_store *st, int32_t index)
{
    const uint32_t at = above(index, st->base);
    return at < st->cap ? wr_counter_get(st->bins, st->width, at) : 0;
}

bool wr_store_used(const struct wr_store *st, int32_t *ret_lo, int32_t *ret_hi)
{
    const size_t bytes = (size_t)st->cap << st->width;
    size_t first = 0;
    for (uint64_t word; first + 8 <= bytes; first += 8) {
        memcpy(&word, st->bins + first, sizeof word);
        if (word)
            break;
    }
    while (first < bytes && !st->bins[first])
        first++;
    if (first == bytes)
        return false;
    size_t last = bytes;
    for (uint64_t word; last >= 8; last -= 8) {
        memcpy(&word, st->bins + last - 8, sizeof word);
        if (word)
            break;
    }
    while (!st->bins[last - 1])
        last--;
    *ret_lo = st->base + (int32_t)(first >> st->width);
    *ret_hi = st->base + (int32_t)((last - 1) >> st->width);
    return true;
}

uint64_t wr_store_weight_at(const struct wr_store *st, int32_t index)
{
    return get(st, index) << st->shift;
}

uint64_t wr_store_weight(const struct wr_store *st)
{
    uint64_t sum = 0;
    const size_t bytes = (size_t)st->cap << st->width;
    size_t at = 0;
    for (uint64_t word; at + 8 <= bytes; at += 8) {
        memcpy(&word, st->bins + at, sizeof word);
        sum += wr_lanes_sum(word, st->width);
    }
    for (at >>= st->width; at < st->cap; at++)
        sum += wr_counter_get(st->bins, st->width, at);
    return sum << st->shift;
}

/* dst[i] = src[i] << scale. dst may lie before src in the same block. */
WR_INLINE void widen_loop(uint8_t *dst, uint8_t dst_width, const uint8_t *src, uint8_t src_width,
                          size_t n, unsigned scale)
{
    for (size_t i = 0; i < n; i++)
        wr_counter_put(dst, dst_width, i, wr_counter_get(src, src_width, i) << scale);
}

static void widen(uint8_t *dst, uint8_t dst_width, const uint8_t *src, uint8_t src_width, size_t n,
                  unsigned scale)
{
    if (dst_width == src_width && !scale) {
        memmove(dst, src, n << dst_width);
        return;
    }
    switch (WR_WIDTHS(dst_width, src_width)) {
#define X(d, s, ...)                                                                               \
    case WR_WIDTHS(d, s):                                                                          \
        widen_loop(dst, d, src, s, n, scale);                                                      \
        return;
        WR_EACH_WIDTHS(X, )
#undef X
    default: /* narrowing: no caller does */
        WR_ASSERT(false);
    }
}

uint8_t wr_store_size(uint32_t bytes)
{
    const uint32_t lines = (bytes + LINE - 1) / LINE;
    if (lines <= WR_STORE_SIZE_FINE)
        return (uint8_t)lines;
    return (uint8_t)(WR_STORE_SIZE_FINE + (lines - WR_STORE_SIZE_FINE + 63) / 64);
}

#define ROOMY_LINES 8u

uint8_t wr_store_size_for(const struct wr_kind *kind, uint32_t bytes)
{
    uint32_t lines = (bytes + LINE - 1) / LINE;
    if (kind->roomy && lines > ROOMY_LINES) {
        uint32_t roomy = ROOMY_LINES;
        while (roomy < lines)
            roomy += (roomy + 1) / 2;
        lines = roomy;
    }
    return wr_store_size(lines * LINE);
}

/* Where the spare counters of a new shape go. */
enum room { ROOM_BELOW, ROOM_ABOVE, ROOM_AROUND };

/* Pay for an array of [lo, hi], at most max_bins wide, with counters of that width. */
static int prepare(const struct wr_store *st, const struct wr_kind *kind, int32_t lo, int32_t hi,
                   enum room room, struct wr_store_change *ch)
{
    const uint32_t need = (uint32_t)hi - (uint32_t)lo + 1;
    const uint32_t need_bytes = need << ch->width;
    ch->block = NULL;
    ch->bytes = st->bytes;
    if (need_bytes > st->bytes) {
        const uint8_t most = wr_store_size(kind->head.max_bins << ch->width);
        const uint8_t size = wr_store_size_for(kind, need_bytes);
        ch->bytes = wr_store_bytes(size < most ? size : most);
        ch->block = wr_alloc_zero(&kind->alloc, ch->bytes);
        if (!ch->block)
            return WEIR_ENOMEM;
    }
    ch->cap = min_u32(ch->bytes >> ch->width, kind->head.max_bins);
    const uint32_t spare = ch->cap - need;
    const int64_t below = room == ROOM_BELOW ? spare : room == ROOM_AROUND ? spare / 2 : 0;
    /* the array stays among the indices there are */
    int64_t base = lo - below;
    if (base > (int64_t)INT32_MAX - (ch->cap - 1))
        base = (int64_t)INT32_MAX - (ch->cap - 1);
    ch->base = (int32_t)(base < INT32_MIN ? INT32_MIN : base);
    return WEIR_OK;
}

/* Copy n counters from src (of st's width, the first one being of bin lo) into dst. */
static void copy_counters(const struct wr_store *st, const struct wr_store_change *ch, uint8_t *dst,
                          const uint8_t *src, int32_t lo, uint32_t n)
{
    const unsigned scale = (unsigned)st->shift - ch->shift;
    const uint32_t folds = lo <= ch->floor ? min_u32(above(ch->floor, lo) + 1, n) : 0;
    uint64_t low = 0;
    for (uint32_t at = 0; at < folds; at++)
        low += wr_counter_get(src, st->width, at) << scale;
    if (folds)
        wr_counter_put(dst, ch->width, above(max32(lo, ch->floor), ch->base), low);
    if (folds < n)
        widen(dst + ((size_t)(above(lo, ch->base) + folds) << ch->width), ch->width,
              src + ((size_t)folds << st->width), st->width, n - folds, scale);
}

/* Give st the shape that was prepared, with what it holds. */
static void relayout(struct wr_store *st, const struct wr_kind *kind,
                     const struct wr_store_change *ch)
{
    int32_t lo;
    int32_t hi;
    size_t head = 0; /* the used bytes of the new array */
    size_t tail = 0;
    uint8_t *const dst = ch->block ? ch->block : st->bins;
    if (wr_store_used(st, &lo, &hi)) {
        const uint32_t n = above(hi, lo) + 1;
        const uint8_t *src = counter_of(st, lo);
        if (!ch->block) {
            uint8_t *const end = st->bins + st->bytes - ((size_t)n << st->width);
            memmove(end, src, (size_t)n << st->width);
            src = end;
        }
        copy_counters(st, ch, dst, src, lo, n);
        head = (size_t)above(max32(lo, ch->floor), ch->base) << ch->width;
        tail = ((size_t)above(max32(hi, ch->floor), ch->base) + 1) << ch->width;
    }
    if (ch->block) {
        wr_free(&kind->alloc, st->bins, st->bytes);
    } else if (st->bytes) {
        memset(dst, 0, head);
        memset(dst + tail, 0, st->bytes - tail);
    }
    *st = (struct wr_store){.bins = dst,
                            .base = ch->base,
                            .cap = ch->cap,
                            .bytes = ch->bytes,
                            .width = ch->width,
                            .shift = ch->shift,
                            .collapsed = st->collapsed || ch->collapsed};
}

/* The greatest counter that st, taken alone, has after a change of unit and a collapse; the
 * weight that ends in the floor bin is added to *low. */
static uint64_t peak_of(const struct wr_store *st, int32_t lo, int32_t hi, int32_t floor,
                        unsigned scale, uint64_t *low)
{
    uint64_t peak = 0;
    const uint8_t *const bins = counter_of(st, lo);
    const size_t n = (size_t)above(hi, lo) + 1;
    const size_t folds = lo <= floor ? (size_t)above(floor, lo) + 1 : 0;
    for (size_t at = 0; at < n; at++) {
        const uint64_t c = wr_counter_get(bins, st->width, at) << scale;
        if (at < folds)
            *low += c;
        else if (c > peak)
            peak = c;
    }
    return peak > *low ? peak : *low;
}

int wr_store_add(struct wr_store *st, const struct wr_kind *kind, int32_t index, uint64_t weight)
{
    if (wr_store_try_add(st, index, weight))
        return WEIR_OK;
    struct wr_store_change ch = {.shift = st->shift};
    if (weight & (WEIR_WEIGHT_ONE - 1))
        ch.shift = 0;
    const unsigned scale = (unsigned)st->shift - ch.shift;
    const uint64_t n = weight >> ch.shift;

    int32_t lo = index;
    int32_t hi = index;
    const bool any = wr_store_used(st, &lo, &hi);
    ch.floor = floor_of(max32(hi, index), kind->head.max_bins);
    const int32_t target = max32(index, ch.floor);
    ch.collapsed = index < ch.floor || lo < ch.floor;
    uint64_t low = 0;
    uint64_t peak = 0;
    if (any && (scale || lo < ch.floor))
        peak = peak_of(st, lo, hi, ch.floor, scale, &low);
    /* low counts what is at or under the floor; else the bin itself says what it has */
    const uint64_t have = target == ch.floor && low ? low : get(st, target) << scale;
    if (have + n > peak)
        peak = have + n;
    ch.width = width_for(peak);
    if (ch.width < st->width && any)
        ch.width = st->width;

    const enum room room = !any ? ROOM_AROUND : target < lo ? ROOM_BELOW : ROOM_ABOVE;
    const int r =
        prepare(st, kind, max32(min32(lo, target), ch.floor), max32(hi, target), room, &ch);
    if (r != WEIR_OK)
        return r;
    relayout(st, kind, &ch);
    wr_counter_put(st->bins, st->width, above(target, st->base), have + n);
    return WEIR_OK;
}

int wr_store_reserve(struct wr_store *st, const struct wr_kind *kind, int32_t lo, int32_t hi,
                     uint64_t peak, uint8_t shift)
{
    struct wr_store_change ch = {.width = width_for(peak), .shift = shift};
    ch.floor = floor_of(hi, kind->head.max_bins);
    const int r = prepare(st, kind, max32(lo, ch.floor), hi, ROOM_AROUND, &ch);
    if (r != WEIR_OK)
        return r;
    if (ch.block)
        wr_free(&kind->alloc, st->bins, st->bytes);
    *st = (struct wr_store){.bins = ch.block ? ch.block : st->bins,
                            .base = ch.base,
                            .cap = ch.cap,
                            .bytes = ch.bytes,
                            .width = ch.width,
                            .shift = ch.shift,
                            .collapsed = st->collapsed};
    return WEIR_OK;
}

/* The greatest counter of dst + src. */
static uint64_t merged_peak(const struct wr_store *dst, bool any, int32_t dst_lo, int32_t dst_hi,
                            const struct wr_store *src, const struct wr_store_change *ch)
{
    const int32_t src_lo = ch->src_lo;
    const int32_t src_hi = ch->src_hi;
    const unsigned dst_scale = (unsigned)dst->shift - ch->shift;
    const unsigned src_scale = (unsigned)src->shift - ch->shift;
    uint64_t low = 0;
    uint64_t peak = 0;
    if (any && (dst_scale || dst_lo < ch->floor))
        peak = peak_of(dst, dst_lo, dst_hi, ch->floor, dst_scale, &low);
    else if (any && dst_lo == ch->floor)
        low = get(dst, dst_lo) << dst_scale;
    const uint8_t *const bins = counter_of(src, src_lo);
    const uint32_t n = above(src_hi, src_lo) + 1;
    for (uint32_t at = 0; at < n; at++) {
        const int32_t i = (int32_t)((uint32_t)src_lo + at);
        const uint64_t c = wr_counter_get(bins, src->width, at) << src_scale;
        if (i <= ch->floor) {
            low += c;
            continue;
        }
        const uint64_t sum = c + (get(dst, i) << dst_scale);
        if (sum > peak)
            peak = sum;
    }
    return peak > low ? peak : low;
}

/* The counters of src's bins [lo, hi], and those of dst, which covers them. */
static struct wr_counters_pair pair_of(const struct wr_store *dst, const struct wr_store *src,
                                       int32_t lo, int32_t hi)
{
    return (struct wr_counters_pair){.dst = counter_of(dst, lo),
                                     .src = counter_of(src, lo),
                                     .n = (size_t)above(hi, lo) + 1,
                                     .dst_width = dst->width,
                                     .src_width = src->width,
                                     .scale = (uint8_t)(src->shift - dst->shift)};
}

/* dst as it is can take src, whose used bins are [lo, hi]. total: of the weight of both. */
static bool takes(const struct wr_store *dst, const struct wr_store *src, int32_t lo, int32_t hi,
                  uint64_t total)
{
    if (!dst->cap || dst->width < src->width || dst->shift > src->shift || lo < dst->base ||
        hi > dst->base + (int32_t)(dst->cap - 1))
        return false;
    if (dst->width == 3 || !(total >> dst->shift >> (8u << dst->width)))
        return true; /* not even all in one bin would be too much */
    const struct wr_counters_pair p = pair_of(dst, src, lo, hi);
    return wr_counters_fit(&p);
}

/* No counter from number from to number to is used. */
static bool none_used(const struct wr_store *st, size_t from, size_t to)
{
    to <<= st->width;
    uint64_t any = 0;
    size_t at = from << st->width;
    for (uint64_t word; at + 8 <= to; at += 8) {
        memcpy(&word, st->bins + at, sizeof word);
        any |= word;
    }
    for (; at < to; at++)
        any |= st->bins[at];
    return !any;
}

bool wr_store_merge_inside(const struct wr_store *dst, const struct wr_store *src)
{
    if (dst->width < src->width || dst->shift > src->shift)
        return false;
    /* where both arrays are; what src has elsewhere must be unused */
    const int64_t ahead = (int64_t)dst->base - src->base;
    const int64_t from = ahead > 0 ? ahead : 0;
    const int64_t end = ahead + dst->cap;
    const int64_t to = end < src->cap ? end : src->cap;
    if (from >= to || !none_used(src, 0, (size_t)from) || !none_used(src, (size_t)to, src->cap))
        return false;
    const struct wr_counters_pair p = {.dst = dst->bins + ((size_t)(from - ahead) << dst->width),
                                       .src = src->bins + ((size_t)from << src->width),
                                       .n = (size_t)(to - from),
                                       .dst_width = dst->width,
                                       .src_width = src->width,
                                       .scale = (uint8_t)(src->shift - dst->shift)};
    return wr_counters_add(&p);
}

int wr_store_merge_prepare(const struct wr_store *dst, const struct wr_kind *kind,
                           const struct wr_store *src, uint64_t total,
                           struct wr_store_change *ret_change)
{
    struct wr_store_change ch = {.none = true, .floor = INT32_MIN};
    int32_t src_lo;
    int32_t src_hi;
    ch.any = src && wr_store_used(src, &src_lo, &src_hi);
    ch.src_lo = ch.any ? src_lo : 0;
    ch.src_hi = ch.any ? src_hi : 0;
    if (!ch.any || takes(dst, src, src_lo, src_hi, total)) {
        *ret_change = ch; /* inside the array nothing is below the floor */
        return WEIR_OK;
    }
    int32_t lo = src_lo;
    int32_t hi = src_hi;
    const bool any = wr_store_used(dst, &lo, &hi);
    const int32_t dst_lo = lo;
    const int32_t dst_hi = hi;
    hi = max32(hi, src_hi);
    ch.floor = floor_of(hi, kind->head.max_bins);
    lo = min32(lo, src_lo);
    ch.collapsed = lo < ch.floor;
    lo = max32(lo, ch.floor);
    ch.shift = any && dst->shift < src->shift ? dst->shift : src->shift;
    if (!any && src_lo >= ch.floor)
        ch.width = src->width; /* a copy */
    else
        ch.width = width_for(merged_peak(dst, any, dst_lo, dst_hi, src, &ch));
    if (ch.width < dst->width && any)
        ch.width = dst->width;
    if (ch.width < src->width)
        ch.width = src->width; /* the loops widen, never narrow */
    ch.none = false;
    const enum room room = !any ? ROOM_AROUND : lo < dst_lo ? ROOM_BELOW : ROOM_ABOVE;
    const int r = prepare(dst, kind, lo, hi, room, &ch);
    if (r == WEIR_OK)
        *ret_change = ch;
    return r;
}

void wr_store_merge_commit(struct wr_store *dst, const struct wr_kind *kind,
                           const struct wr_store *src, const struct wr_store_change *change)
{
    int32_t lo = change->src_lo;
    const int32_t hi = change->src_hi;
    if (!change->any)
        return;
    if (!change->none)
        relayout(dst, kind, change);
    dst->collapsed |= src->collapsed;
    const unsigned scale = (unsigned)src->shift - dst->shift;
    const size_t n = (size_t)above(hi, lo) + 1;
    const size_t folds = lo >= change->floor             ? 0
                         : above(change->floor, lo) >= n ? n
                                                         : above(change->floor, lo);
    if (folds) {
        uint64_t low = 0;
        for (size_t at = 0; at < folds; at++)
            low += wr_counter_get(counter_of(src, lo), src->width, at) << scale;
        const size_t at = above(change->floor, dst->base);
        wr_counter_put(dst->bins, dst->width, at, wr_counter_get(dst->bins, dst->width, at) + low);
    }
    if (folds == n)
        return;
    lo = (int32_t)((uint32_t)lo + (uint32_t)folds);
    const struct wr_counters_pair p = pair_of(dst, src, lo, hi);
    (void)wr_counters_add(&p); /* it was seen to fit */
}

void wr_store_change_drop(const struct wr_kind *kind, struct wr_store_change *change)
{
    wr_free(&kind->alloc, change->block, change->bytes);
    change->block = NULL;
}

void wr_store_clear(struct wr_store *st, const struct wr_kind *kind, int32_t lo, int32_t hi)
{
    lo = max32(lo, st->base);
    if (st->cap)
        hi = min32(hi, st->base + (int32_t)(st->cap - 1));
    if (st->cap && lo <= hi)
        memset(counter_of(st, lo), 0, ((size_t)above(hi, lo) + 1) << st->width);
    *st = (struct wr_store){.bins = st->bins,
                            .cap = min_u32(st->bytes, kind->head.max_bins),
                            .bytes = st->bytes,
                            .shift = WR_STORE_SHIFT};
}

void wr_store_done(struct wr_store *st, const struct wr_kind *kind)
{
    wr_free(&kind->alloc, st->bins, st->bytes);
    *st = (struct wr_store){.shift = WR_STORE_SHIFT};
}

bool wr_store_check(const struct wr_store *st, const struct wr_kind *kind)
{
    if (st->width > 3 || (st->shift != 0 && st->shift != WR_STORE_SHIFT))
        return false;
    if (st->cap > kind->head.max_bins || (uint64_t)st->cap << st->width > st->bytes)
        return false;
    if (st->bytes != wr_store_bytes(wr_store_size(st->bytes)))
        return false;
    if (st->cap && (int64_t)st->base + st->cap - 1 > INT32_MAX)
        return false;
    for (uint32_t at = st->cap << st->width; at < st->bytes; at++)
        if (st->bins[at])
            return false;
    return true;
}
