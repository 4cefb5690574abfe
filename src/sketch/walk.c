/* SPDX-License-Identifier: Apache-2.0 */
/*
 * walk: see walk.h.
 *
 * What depends on the width of counters, and on the direction, is written once, with both as
 * constants the compiler sees. In the line where the weight is reached nothing branches on the
 * counters: where it happens differs from one sketch to the next, and a wrong guess costs more
 * than the few words that need not have been looked at.
 *
 * Threads: any, while nobody writes. Memory: none.
 */
#include "sketch/walk.h"

#include "sketch/lanes.h"
#include "sketch/store.h"

#if defined(WR_WALK_AVX2)
#include <immintrin.h>
#define AVX2 __attribute__((target("avx2")))
#endif

#define LINE WR_WALK_LINE
#define WORD 8u
#define WORDS (LINE / WORD)

enum way { UP, DOWN };

WR_INLINE uint64_t load_word(const uint8_t *p)
{
    uint64_t word;
    memcpy(&word, p, sizeof word);
    return word;
}

/* How far the way leads from at, and the line that comes next. */
WR_INLINE uint32_t left(const struct wr_run *run, uint32_t at, enum way way)
{
    return way == UP ? run->end - at : at - run->begin;
}

WR_INLINE const uint8_t *next_line(const struct wr_run *run, uint32_t at, enum way way)
{
    return run->bins + (way == UP ? at : at - LINE);
}

WR_INLINE uint32_t step(uint32_t at, uint32_t bytes, enum way way)
{
    return way == UP ? at + bytes : at - bytes;
}

/* need in units of the counters, rounded up. */
WR_INLINE uint64_t in_units(const struct wr_run *run, uint64_t need)
{
    const uint64_t rest = need & (((uint64_t)1 << run->shift) - 1);
    return (need >> run->shift) + (rest != 0);
}

/* How many of eight parts, in the order of the way, are walked before wanted is reached; *sum grows
 * by them. */
WR_INLINE uint32_t parts_before(const uint64_t *parts, uint64_t wanted, uint64_t *sum, enum way way)
{
#define PART(i) parts[way == UP ? (i) : 7 - (i)]
    uint64_t upto[9];
    upto[0] = *sum;
    upto[1] = upto[0] + PART(0);
    upto[2] = upto[1] + PART(1);
    upto[3] = upto[2] + PART(2);
    upto[4] = upto[3] + PART(3);
    upto[5] = upto[4] + PART(4);
    upto[6] = upto[5] + PART(5);
    upto[7] = upto[6] + PART(6);
    upto[8] = upto[7] + PART(7);
#undef PART
    const uint32_t before = (uint32_t)(upto[1] < wanted) + (uint32_t)(upto[2] < wanted) +
                            (uint32_t)(upto[3] < wanted) + (uint32_t)(upto[4] < wanted) +
                            (uint32_t)(upto[5] < wanted) + (uint32_t)(upto[6] < wanted) +
                            (uint32_t)(upto[7] < wanted) + (uint32_t)(upto[8] < wanted);
    *sum = upto[before];
    return before;
}

/* As parts_before, for the eight bytes of a word, the first one on the way being the lowest: their
 * running sums, in two words of four lanes. less: what is wanted beyond what was walked, and is
 * reached in the word. */
WR_INLINE uint32_t bytes_before(uint64_t word, uint64_t less, uint64_t *sum)
{
    const uint64_t lanes = UINT64_C(0x0001000100010001);
    const uint64_t even = word & (lanes * 0xff);
    const uint64_t odd = (word >> 8) & (lanes * 0xff);
    const uint64_t upto_odd = (even + odd) * lanes;
    const uint64_t upto_even = upto_odd - odd;
    /* the top bit of a lane that is not below less: sums are at most 2040 */
    const uint64_t tops = lanes * 0x8000;
    const uint64_t even_not = ((upto_even + (tops - lanes * less)) & tops) >> 15;
    const uint64_t odd_not = ((upto_odd + (tops - lanes * less)) & tops) >> 15;
    const uint32_t before = 8 - (uint32_t)((even_not + odd_not) * lanes >> 48);
    const uint64_t upto = before % 2 ? upto_even : upto_odd << 16;
    *sum += upto >> (before / 2 * 16) & 0xffff;
    return before;
}

/* In the word that comes next. */
WR_INLINE bool find_in_word(const struct wr_run *run, uint32_t at, uint64_t wanted, uint64_t sum,
                            struct wr_hit *ret, uint8_t width, enum way way)
{
    const uint32_t n = WORD >> width;
    const uint32_t word = way == UP ? at : at - WORD;
    const uint8_t *const p = run->bins + word;
    uint32_t before = 0;
    if (width == 0) {
        const uint64_t v = wr_load64le(p);
        before = bytes_before(way == UP ? v : __builtin_bswap64(v), wanted - sum, &sum);
    }
    for (; width > 0 && before + 1 < n; before++) {
        const uint64_t next = sum + wr_counter_get(p, width, way == UP ? before : n - 1 - before);
        if (next >= wanted)
            break;
        sum = next;
    }
    const uint32_t i = way == UP ? before : n - 1 - before;
    ret->index = run->base + (int32_t)((word >> width) + i);
    ret->before = sum << run->shift;
    ret->weight = wr_counter_get(p, width, i) << run->shift;
    return true;
}

/* In what is left, which is less than a line. */
WR_INLINE bool find_in_rest(const struct wr_walk *w, uint64_t wanted, struct wr_hit *ret,
                            uint8_t width, enum way way)
{
    uint64_t sum = w->sum;
    uint32_t at = w->at;
    for (; left(&w->run, at, way); at = step(at, WORD, way)) {
        const uint8_t *const word = w->run.bins + (way == UP ? at : at - WORD);
        const uint64_t next = sum + wr_lanes_sum(load_word(word), width);
        if (next >= wanted)
            return find_in_word(&w->run, at, wanted, sum, ret, width, way);
        sum = next;
    }
    ret->before = sum << w->run.shift;
    return false;
}

/* Lanes are folded once a line: 16 of 255 fit 16 bits, 16 of 65535 fit 32. */
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

WR_INLINE bool walk_by_words(struct wr_walk *w, uint64_t need, struct wr_hit *ret, uint8_t width,
                             enum way way)
{
    const uint64_t wanted = in_units(&w->run, need);
    for (; left(&w->run, w->at, way) >= LINE; w->at = step(w->at, LINE, way)) {
        const uint8_t *const line = next_line(&w->run, w->at, way);
        const uint64_t next = w->sum + line_by_words(line, width);
        if (next >= wanted) {
            uint64_t words[WORDS];
            for (unsigned i = 0; i < WORDS; i++)
                words[i] = wr_lanes_sum(load_word(line + i * WORD), width);
            uint64_t sum = w->sum;
            const uint32_t before = parts_before(words, wanted, &sum, way);
            return find_in_word(&w->run, step(w->at, before * WORD, way), wanted, sum, ret, width,
                                way);
        }
        w->sum = next;
    }
    return find_in_rest(w, wanted, ret, width, way);
}

/* Call walk(w, need, ret, width, way) with the width as a constant; wide is for 64 bits. */
#define BY_WIDTH(walk, wide, w, need, ret, way)                                                    \
    ((w)->run.width == 0   ? walk((w), (need), (ret), 0, (way))                                    \
     : (w)->run.width == 1 ? walk((w), (need), (ret), 1, (way))                                    \
     : (w)->run.width == 2 ? walk((w), (need), (ret), 2, (way))                                    \
                           : wide((w), (need), (ret), 3, (way)))

bool wr_walk_up_words(struct wr_walk *w, uint64_t need, struct wr_hit *ret)
{
    return BY_WIDTH(walk_by_words, walk_by_words, w, need, ret, UP);
}

bool wr_walk_down_words(struct wr_walk *w, uint64_t need, struct wr_hit *ret)
{
    return BY_WIDTH(walk_by_words, walk_by_words, w, need, ret, DOWN);
}

#if defined(WR_WALK_AVX2)

/* Sums of the four words of half a line. */
AVX2 WR_INLINE __m256i half_line(const uint8_t *p, uint8_t width)
{
    const __m256i zero = _mm256_setzero_si256();
    __m256i v = _mm256_loadu_si256((const __m256i *)(const void *)p);
    if (width == 0)
        return _mm256_sad_epu8(v, zero);
    if (width == 1)
        v = _mm256_add_epi32(_mm256_blend_epi16(v, zero, 0xaa), _mm256_srli_epi32(v, 16));
    if (width <= 2)
        v = _mm256_add_epi64(_mm256_blend_epi32(v, zero, 0xaa), _mm256_srli_epi64(v, 32));
    return v;
}

/* A bit for each of four 64-bit lanes that is all ones. */
AVX2 WR_INLINE uint32_t bits_of(__m256i lanes)
{
    return (uint32_t)_mm256_movemask_pd(_mm256_castsi256_pd(lanes));
}

/* As parts_before, for the sums of the words of a line, each below 2^60. total: of them all. */
AVX2 WR_INLINE uint32_t words_before(__m256i low, __m256i high, uint64_t total, uint64_t less,
                                     uint64_t *sum, enum way way)
{
    /* running sums within pairs, then within halves, then of both */
    __m256i upto_low = _mm256_add_epi64(low, _mm256_slli_si256(low, 8));
    __m256i upto_high = _mm256_add_epi64(high, _mm256_slli_si256(high, 8));
    const __m256i zero = _mm256_setzero_si256();
    const __m256i pair_low = _mm256_permute4x64_epi64(upto_low, 0x55);
    const __m256i pair_high = _mm256_permute4x64_epi64(upto_high, 0x55);
    upto_low = _mm256_add_epi64(upto_low, _mm256_blend_epi32(zero, pair_low, 0xf0));
    upto_high = _mm256_add_epi64(upto_high, _mm256_blend_epi32(zero, pair_high, 0xf0));
    upto_high = _mm256_add_epi64(upto_high, _mm256_permute4x64_epi64(upto_low, 0xff));
    uint64_t upto[WORDS + 1] = {0};
    _mm256_storeu_si256((__m256i *)(void *)(upto + 1), upto_low);
    _mm256_storeu_si256((__m256i *)(void *)(upto + 1 + WORDS / 2), upto_high);
    if (way == UP) {
        const __m256i bound = _mm256_set1_epi64x((int64_t)less);
        const uint32_t below = bits_of(_mm256_cmpgt_epi64(bound, upto_low)) |
                               bits_of(_mm256_cmpgt_epi64(bound, upto_high)) << 4;
        const uint32_t before = (uint32_t)__builtin_ctz(~below);
        *sum += upto[before];
        return before;
    }
    /* from the top: the words above one, and it, are total less what is below it */
    const __m256i bound = _mm256_set1_epi64x((int64_t)(total - less));
    const uint32_t above = bits_of(_mm256_cmpgt_epi64(_mm256_sub_epi64(upto_low, low), bound)) |
                           bits_of(_mm256_cmpgt_epi64(_mm256_sub_epi64(upto_high, high), bound))
                               << 4;
    const uint32_t words = (uint32_t)__builtin_ctz(above | 1u << WORDS); /* down to it */
    *sum += total - upto[words];
    return WORDS - words;
}

AVX2 WR_INLINE uint64_t sum_of_four(__m256i v)
{
    const __m128i two = _mm_add_epi64(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
    return (uint64_t)_mm_cvtsi128_si64(_mm_add_epi64(two, _mm_unpackhi_epi64(two, two)));
}

/* Not for counters of 64 bits: those are compared as signed. */
AVX2 WR_INLINE bool walk_by_avx2(struct wr_walk *w, uint64_t need, struct wr_hit *ret,
                                 uint8_t width, enum way way)
{
    const uint64_t wanted = in_units(&w->run, need);
    for (; left(&w->run, w->at, way) >= LINE; w->at = step(w->at, LINE, way)) {
        const uint8_t *const line = next_line(&w->run, w->at, way);
        const __m256i low = half_line(line, width);
        const __m256i high = half_line(line + LINE / 2, width);
        const uint64_t total = sum_of_four(_mm256_add_epi64(low, high));
        uint64_t sum = w->sum;
        if (sum + total >= wanted) {
            const uint32_t before = words_before(low, high, total, wanted - sum, &sum, way);
            return find_in_word(&w->run, step(w->at, before * WORD, way), wanted, sum, ret, width,
                                way);
        }
        w->sum = sum + total;
    }
    return find_in_rest(w, wanted, ret, width, way);
}

AVX2 bool wr_walk_up_avx2(struct wr_walk *w, uint64_t need, struct wr_hit *ret)
{
    return BY_WIDTH(walk_by_avx2, walk_by_words, w, need, ret, UP);
}

AVX2 bool wr_walk_down_avx2(struct wr_walk *w, uint64_t need, struct wr_hit *ret)
{
    return BY_WIDTH(walk_by_avx2, walk_by_words, w, need, ret, DOWN);
}
#endif

bool wr_walk_up(struct wr_walk *w, uint64_t need, struct wr_hit *ret)
{
#if defined(WR_WALK_AVX2)
    if (__builtin_cpu_supports("avx2"))
        return wr_walk_up_avx2(w, need, ret);
#endif
    return wr_walk_up_words(w, need, ret);
}

bool wr_walk_down(struct wr_walk *w, uint64_t need, struct wr_hit *ret)
{
#if defined(WR_WALK_AVX2)
    if (__builtin_cpu_supports("avx2"))
        return wr_walk_down_avx2(w, need, ret);
#endif
    return wr_walk_down_words(w, need, ret);
}

uint64_t wr_run_weight(const struct wr_run *run)
{
    struct wr_walk w = {.run = *run};
    struct wr_hit all;
    wr_walk_from_low(&w);
    if (wr_walk_up(&w, UINT64_MAX, &all))
        return all.before + all.weight; /* it reaches even that */
    return all.before;
}

uint64_t wr_run_weight_upto(const struct wr_run *run, int32_t index)
{
    const int64_t wanted = (int64_t)index - run->base + 1; /* counters */
    if (wanted <= (int64_t)(run->begin >> run->width))
        return 0;
    if (wanted >= (int64_t)(run->end >> run->width))
        return wr_run_weight(run);
    const uint32_t end = (uint32_t)wanted << run->width;
    struct wr_run lines = *run;
    lines.end = end - (end - run->begin) % LINE;
    uint64_t rest = 0;
    for (uint32_t at = lines.end; at < end; at += 1u << run->width)
        rest += wr_counter_get(run->bins, run->width, at >> run->width);
    return wr_run_weight(&lines) + (rest << run->shift);
}
