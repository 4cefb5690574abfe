/* SPDX-License-Identifier: Apache-2.0 */
/*
 * walk: see walk.h.
 *
 * What depends on the width of counters is written once, with the width as a constant the
 * compiler sees, and chosen once a call.
 *
 * Threads: any, while nobody writes. Memory: none.
 */
#include "sketch/walk.h"

#include "sketch/lanes.h"

#if defined(WR_WALK_AVX2)
#include <immintrin.h>
#define AVX2 __attribute__((target("avx2")))
#endif

#define LINE WR_WALK_LINE
#define WORD 8u

WR_INLINE uint64_t load_word(const uint8_t *p)
{
    uint64_t word;
    memcpy(&word, p, sizeof word);
    return word;
}

/* Lanes are folded once a line: 16 of 255 fit 16 bits, 8 pairs of 65535 fit 32. */
WR_INLINE uint64_t line_by_words(const uint8_t *p, uint8_t width)
{
    static const uint64_t even[3] = {UINT64_C(0x00ff00ff00ff00ff), UINT64_C(0x0000ffff0000ffff),
                                     UINT32_MAX};
    uint64_t sum = 0;
    for (unsigned i = 0; i < LINE; i += WORD) {
        const uint64_t word = load_word(p + i);
        sum += width == 3 ? word : (word & even[width]) + ((word >> (8u << width)) & even[width]);
    }
    return width < 2 ? wr_lanes_sum(sum, (uint8_t)(width + 1)) : sum;
}

WR_INLINE uint32_t up_by_words(const struct wr_run *run, uint32_t at, uint64_t wanted,
                               uint64_t *sum, uint8_t width)
{
    for (; run->end - at >= LINE; at += LINE) {
        const uint64_t next = *sum + line_by_words(run->bins + at, width);
        if (next >= wanted)
            break;
        *sum = next;
    }
    return at;
}

WR_INLINE uint32_t down_by_words(const struct wr_run *run, uint32_t at, uint64_t wanted,
                                 uint64_t *sum, uint8_t width)
{
    for (; at - run->begin >= LINE; at -= LINE) {
        const uint64_t next = *sum + line_by_words(run->bins + at - LINE, width);
        if (next >= wanted)
            break;
        *sum = next;
    }
    return at;
}

/* The body of a function with a width: call(..., width) with it as a constant. */
#define BY_WIDTH(width, call, ...)                                                                 \
    ((width) == 0   ? call(__VA_ARGS__, 0)                                                         \
     : (width) == 1 ? call(__VA_ARGS__, 1)                                                         \
     : (width) == 2 ? call(__VA_ARGS__, 2)                                                         \
                    : call(__VA_ARGS__, 3))

uint32_t wr_skip_up_words(const struct wr_run *run, uint32_t at, uint64_t wanted, uint64_t *sum)
{
    return BY_WIDTH(run->width, up_by_words, run, at, wanted, sum);
}

uint32_t wr_skip_down_words(const struct wr_run *run, uint32_t at, uint64_t wanted, uint64_t *sum)
{
    return BY_WIDTH(run->width, down_by_words, run, at, wanted, sum);
}

#if defined(WR_WALK_AVX2)

/* Four 64-bit sums of what is in half a line. */
AVX2 WR_INLINE __m256i quarter_sums(__m256i v, uint8_t width)
{
    const __m256i zero = _mm256_setzero_si256();
    if (width == 0)
        return _mm256_sad_epu8(v, zero);
    if (width == 1)
        v = _mm256_add_epi32(_mm256_and_si256(v, _mm256_set1_epi32(0xffff)),
                             _mm256_srli_epi32(v, 16));
    if (width <= 2)
        v = _mm256_add_epi64(_mm256_blend_epi32(v, zero, 0xaa), _mm256_srli_epi64(v, 32));
    return v;
}

AVX2 WR_INLINE uint64_t line_by_avx2(const uint8_t *p, uint8_t width)
{
    const __m256i low = _mm256_loadu_si256((const __m256i *)(const void *)p);
    const __m256i high = _mm256_loadu_si256((const __m256i *)(const void *)(p + LINE / 2));
    const __m256i four = _mm256_add_epi64(quarter_sums(low, width), quarter_sums(high, width));
    const __m128i two =
        _mm_add_epi64(_mm256_castsi256_si128(four), _mm256_extracti128_si256(four, 1));
    return (uint64_t)_mm_cvtsi128_si64(_mm_add_epi64(two, _mm_unpackhi_epi64(two, two)));
}

AVX2 WR_INLINE uint32_t up_by_avx2(const struct wr_run *run, uint32_t at, uint64_t wanted,
                                   uint64_t *sum, uint8_t width)
{
    for (; run->end - at >= LINE; at += LINE) {
        const uint64_t next = *sum + line_by_avx2(run->bins + at, width);
        if (next >= wanted)
            break;
        *sum = next;
    }
    return at;
}

AVX2 WR_INLINE uint32_t down_by_avx2(const struct wr_run *run, uint32_t at, uint64_t wanted,
                                     uint64_t *sum, uint8_t width)
{
    for (; at - run->begin >= LINE; at -= LINE) {
        const uint64_t next = *sum + line_by_avx2(run->bins + at - LINE, width);
        if (next >= wanted)
            break;
        *sum = next;
    }
    return at;
}

AVX2 uint32_t wr_skip_up_avx2(const struct wr_run *run, uint32_t at, uint64_t wanted, uint64_t *sum)
{
    return BY_WIDTH(run->width, up_by_avx2, run, at, wanted, sum);
}

AVX2 uint32_t wr_skip_down_avx2(const struct wr_run *run, uint32_t at, uint64_t wanted,
                                uint64_t *sum)
{
    return BY_WIDTH(run->width, down_by_avx2, run, at, wanted, sum);
}
#endif

static uint32_t skip_up(const struct wr_run *run, uint32_t at, uint64_t wanted, uint64_t *sum)
{
#if defined(WR_WALK_AVX2)
    if (__builtin_cpu_supports("avx2"))
        return wr_skip_up_avx2(run, at, wanted, sum);
#endif
    return wr_skip_up_words(run, at, wanted, sum);
}

static uint32_t skip_down(const struct wr_run *run, uint32_t at, uint64_t wanted, uint64_t *sum)
{
#if defined(WR_WALK_AVX2)
    if (__builtin_cpu_supports("avx2"))
        return wr_skip_down_avx2(run, at, wanted, sum);
#endif
    return wr_skip_down_words(run, at, wanted, sum);
}

struct wr_walk wr_walk_from_low(const struct wr_run *run)
{
    return (struct wr_walk){.run = *run, .at = run->begin};
}

struct wr_walk wr_walk_from_high(const struct wr_run *run)
{
    return (struct wr_walk){.run = *run, .at = run->end};
}

/* need in units of the counters, rounded up. */
WR_INLINE uint64_t in_units(const struct wr_run *run, uint64_t need)
{
    const uint64_t rest = need & (((uint64_t)1 << run->shift) - 1);
    return (need >> run->shift) + (rest != 0);
}

WR_INLINE uint64_t counter(const uint8_t *bins, uint8_t width, uint32_t at)
{
    uint64_t v = 0;
    if (width == 0)
        return bins[at];
    if (width == 1) {
        uint16_t c;
        memcpy(&c, bins + at, sizeof c);
        v = c;
    } else if (width == 2) {
        uint32_t c;
        memcpy(&c, bins + at, sizeof c);
        v = c;
    } else {
        memcpy(&v, bins + at, sizeof v);
    }
    return v;
}

/* A bin by where its counter is, in bytes. */
WR_INLINE bool hit(const struct wr_run *run, uint32_t at, uint64_t before, uint8_t width,
                   struct wr_hit *ret)
{
    ret->index = run->base + (int32_t)(at >> width);
    ret->before = before << run->shift;
    ret->weight = counter(run->bins, width, at) << run->shift;
    return true;
}

/* In the line, or the words, that begin at at. */
WR_INLINE bool up_in_line(const struct wr_run *run, uint32_t at, uint64_t wanted, uint64_t sum,
                          struct wr_hit *ret, uint8_t width)
{
    for (; at < run->end; at += WORD) {
        const uint64_t next = sum + wr_lanes_sum(load_word(run->bins + at), width);
        if (next >= wanted)
            break;
        sum = next;
    }
    for (; at < run->end; at += 1u << width) {
        const uint64_t next = sum + counter(run->bins, width, at);
        if (next >= wanted)
            return hit(run, at, sum, width, ret);
        sum = next;
    }
    ret->before = sum << run->shift;
    return false;
}

WR_INLINE bool down_in_line(const struct wr_run *run, uint32_t at, uint64_t wanted, uint64_t sum,
                            struct wr_hit *ret, uint8_t width)
{
    for (; at > run->begin; at -= WORD) {
        const uint64_t next = sum + wr_lanes_sum(load_word(run->bins + at - WORD), width);
        if (next >= wanted)
            break;
        sum = next;
    }
    for (; at > run->begin; at -= 1u << width) {
        const uint64_t next = sum + counter(run->bins, width, at - (1u << width));
        if (next >= wanted)
            return hit(run, at - (1u << width), sum, width, ret);
        sum = next;
    }
    ret->before = sum << run->shift;
    return false;
}

static bool walk_up(struct wr_walk *w, uint64_t need, struct wr_hit *ret)
{
    const uint64_t wanted = in_units(&w->run, need);
    w->at = skip_up(&w->run, w->at, wanted, &w->sum);
    return BY_WIDTH(w->run.width, up_in_line, &w->run, w->at, wanted, w->sum, ret);
}

static bool walk_down(struct wr_walk *w, uint64_t need, struct wr_hit *ret)
{
    const uint64_t wanted = in_units(&w->run, need);
    w->at = skip_down(&w->run, w->at, wanted, &w->sum);
    return BY_WIDTH(w->run.width, down_in_line, &w->run, w->at, wanted, w->sum, ret);
}

/* The counters of a list, in memory for them. */
static struct wr_run spread(const struct wr_run *list, uint8_t *counters)
{
    uint32_t lo = UINT32_MAX;
    uint32_t hi = 0;
    for (uint32_t k = 0; k < list->listed; k++) {
        const uint32_t at = (uint32_t)counter(list->bins, 1, k * 2);
        lo = at < lo ? at : lo;
        hi = at > hi ? at : hi;
    }
    const uint32_t bytes = (hi - lo + LINE) / LINE * LINE;
    memset(counters, 0, bytes);
    for (uint32_t k = 0; k < list->listed; k++)
        counters[counter(list->bins, 1, k * 2) - lo]++;
    return (struct wr_run){.bins = counters,
                           .base = (int32_t)((uint32_t)list->base + lo),
                           .end = bytes,
                           .shift = list->shift};
}

/* A list is walked from its start each time: that is a few hundred bytes. */
static WR_NOINLINE bool walk_list(const struct wr_run *list, bool up, uint64_t need,
                                  struct wr_hit *ret)
{
    uint64_t counters[WR_WALK_SPAN / sizeof(uint64_t)];
    const struct wr_run run = spread(list, (uint8_t *)counters);
    struct wr_walk w = up ? wr_walk_from_low(&run) : wr_walk_from_high(&run);
    return up ? walk_up(&w, need, ret) : walk_down(&w, need, ret);
}

bool wr_walk_up(struct wr_walk *w, uint64_t need, struct wr_hit *ret)
{
    return w->run.listed ? walk_list(&w->run, true, need, ret) : walk_up(w, need, ret);
}

bool wr_walk_down(struct wr_walk *w, uint64_t need, struct wr_hit *ret)
{
    return w->run.listed ? walk_list(&w->run, false, need, ret) : walk_down(w, need, ret);
}

uint64_t wr_run_weight(const struct wr_run *run)
{
    struct wr_walk w = wr_walk_from_low(run);
    struct wr_hit all;
    if (wr_walk_up(&w, UINT64_MAX, &all))
        return all.before + all.weight; /* it reaches even that */
    return all.before;
}
