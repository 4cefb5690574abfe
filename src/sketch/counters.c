/* SPDX-License-Identifier: Apache-2.0 */
/*
 * counters: see counters.h.
 *
 * What depends on widths is written once, with the widths as constants that the compiler sees, and
 * chosen once a call.
 *
 * Threads: any. Memory: none.
 */
#include "sketch/counters.h"

#include "sketch/lanes.h"
#include "sketch/store.h"

#if defined(WR_COUNTERS_AVX2)
#include <immintrin.h>
#define AVX2 __attribute__((target("avx2")))
#endif

/* ret = f(p, dst width, src width), compiled for each pair of them. */
#define CASE_WIDTHS(d, s, ret, f, p)                                                               \
    case WR_WIDTHS(d, s):                                                                          \
        (ret) = f(p, d, s);                                                                        \
        break;
#define BY_WIDTHS(ret, f, p)                                                                       \
    switch (WR_WIDTHS((p)->dst_width, (p)->src_width)) {                                           \
        WR_EACH_WIDTHS(CASE_WIDTHS, ret, f, p)                                                     \
    default: /* narrowing: no caller does */                                                       \
        WR_ASSERT(false);                                                                          \
    }

/* The counters from number i on, one by one. false: a sum did not fit. */
WR_INLINE bool add_rest(const struct wr_counters_pair *p, uint8_t dst_width, uint8_t src_width,
                        size_t i)
{
    uint64_t over = 0;
    for (; i < p->n; i++) {
        const uint64_t c = wr_counter_get(p->src, src_width, i) << p->scale;
        const uint64_t sum = wr_counter_get(p->dst, dst_width, i) + c;
        over |= sum;
        wr_counter_put(p->dst, dst_width, i, sum);
    }
    return dst_width == 3 || !(over >> (8u << dst_width));
}

/* What was added is taken off again: sums that wrapped come back too. */
static WR_NOINLINE void take_off(const struct wr_counters_pair *p)
{
    for (size_t i = 0; i < p->n; i++) {
        const uint64_t c = wr_counter_get(p->src, p->src_width, i) << p->scale;
        wr_counter_put(p->dst, p->dst_width, i, wr_counter_get(p->dst, p->dst_width, i) - c);
    }
}

WR_INLINE bool fit_rest(const struct wr_counters_pair *p, uint8_t dst_width, uint8_t src_width,
                        size_t i)
{
    uint64_t over = 0;
    for (; i < p->n; i++) {
        const uint64_t c = wr_counter_get(p->src, src_width, i) << p->scale;
        over |= wr_counter_get(p->dst, dst_width, i) + c;
    }
    return dst_width == 3 || !(over >> (8u << dst_width));
}

/* Counters of one width from number i on, words first. */
WR_INLINE bool add_lanes(const struct wr_counters_pair *p, uint8_t width, size_t i)
{
    const uint64_t tops = wr_lanes_tops(width);
    const size_t step = 8u >> width;
    uint64_t over = 0;
    for (; i + step <= p->n; i += step) {
        uint64_t a;
        uint64_t b;
        memcpy(&a, p->dst + (i << width), sizeof a);
        memcpy(&b, p->src + (i << width), sizeof b);
        const uint64_t sum = wr_lanes_add(a, b, tops);
        over |= wr_lanes_over(a, b, sum, tops);
        memcpy(p->dst + (i << width), &sum, sizeof sum);
    }
    const bool fit = add_rest(p, width, width, i);
    return fit && (width == 3 || !over);
}

WR_INLINE bool fit_lanes(const struct wr_counters_pair *p, uint8_t width)
{
    const uint64_t tops = wr_lanes_tops(width);
    const size_t step = 8u >> width;
    uint64_t over = 0;
    size_t i = 0;
    for (; i + step <= p->n; i += step) {
        uint64_t a;
        uint64_t b;
        memcpy(&a, p->dst + (i << width), sizeof a);
        memcpy(&b, p->src + (i << width), sizeof b);
        over |= wr_lanes_over(a, b, wr_lanes_add(a, b, tops), tops);
    }
    return !over && fit_rest(p, width, width, i);
}

WR_INLINE bool add_by_words(const struct wr_counters_pair *p, uint8_t dst_width, uint8_t src_width,
                            size_t i)
{
    if (dst_width == src_width && !p->scale)
        return add_lanes(p, dst_width, i);
    return add_rest(p, dst_width, src_width, i);
}

WR_INLINE bool add_words(const struct wr_counters_pair *p, uint8_t dst_width, uint8_t src_width)
{
    return add_by_words(p, dst_width, src_width, 0);
}

WR_INLINE bool fit_by_words(const struct wr_counters_pair *p, uint8_t dst_width, uint8_t src_width)
{
    if (dst_width == src_width && !p->scale && dst_width < 3)
        return fit_lanes(p, dst_width);
    return fit_rest(p, dst_width, src_width, 0);
}

bool wr_counters_add_words(const struct wr_counters_pair *p)
{
    bool fit = false;
    BY_WIDTHS(fit, add_words, p);
    if (WR_UNLIKELY(!fit))
        take_off(p);
    return fit;
}

bool wr_counters_fit_words(const struct wr_counters_pair *p)
{
    bool fit = false;
    BY_WIDTHS(fit, fit_by_words, p);
    return fit;
}

#if defined(WR_COUNTERS_AVX2)

bool wr_counters_has_avx2(void)
{
    return __builtin_cpu_supports("avx2") != 0;
}

/* 32 bytes of counters of dst_width, made of those of src_width from number i on. */
AVX2 WR_INLINE __m256i load_wide(const uint8_t *src, uint8_t dst_width, uint8_t src_width, size_t i)
{
    const uint8_t *const at = src + (i << src_width);
    if (dst_width == src_width)
        return _mm256_loadu_si256((const __m256i *)(const void *)at);
    if (dst_width - src_width == 2) /* 8 to 32 bits; 16 to 64 */
        return src_width == 0
                   ? _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)at))
                   : _mm256_cvtepu16_epi64(_mm_loadl_epi64((const __m128i *)(const void *)at));
    if (dst_width - src_width == 3) {
        int32_t four;
        memcpy(&four, at, sizeof four);
        return _mm256_cvtepu8_epi64(_mm_cvtsi32_si128(four));
    }
    const __m128i half = _mm_loadu_si128((const __m128i *)(const void *)at);
    return src_width == 0   ? _mm256_cvtepu8_epi16(half)
           : src_width == 1 ? _mm256_cvtepu16_epi32(half)
                            : _mm256_cvtepu32_epi64(half);
}

AVX2 WR_INLINE __m256i add_wide(__m256i a, __m256i b, uint8_t width)
{
    return width == 0   ? _mm256_add_epi8(a, b)
           : width == 1 ? _mm256_add_epi16(a, b)
           : width == 2 ? _mm256_add_epi32(a, b)
                        : _mm256_add_epi64(a, b);
}

/* All ones in the lanes of a where a sum did not wrap; widths below 64 bits. */
AVX2 WR_INLINE __m256i lanes_fit(__m256i a, __m256i b, uint8_t width)
{
    const __m256i sum = add_wide(a, b, width);
    return width == 0   ? _mm256_cmpeq_epi8(sum, _mm256_adds_epu8(a, b))
           : width == 1 ? _mm256_cmpeq_epi16(sum, _mm256_adds_epu16(a, b))
                        : _mm256_cmpeq_epi32(sum, _mm256_max_epu32(sum, a));
}

/* Not 0 in the lanes of a where a sum wrapped; of a narrower b, only the top bit counts. */
AVX2 WR_INLINE __m256i lanes_over(__m256i a, __m256i b, __m256i sum, uint8_t dst_width,
                                  uint8_t src_width)
{
    if (dst_width == 3)
        return _mm256_setzero_si256(); /* the total would not fit before */
    if (src_width < dst_width)
        return _mm256_andnot_si256(sum, a); /* b has no top bit that could be the carry's */
    return _mm256_xor_si256(sum, dst_width == 0   ? _mm256_adds_epu8(a, b)
                                 : dst_width == 1 ? _mm256_adds_epu16(a, b)
                                                  : _mm256_max_epu32(sum, a));
}

/* One vector of sums from number i on; the lanes that wrapped are added to *over. */
AVX2 WR_INLINE void add_vector(const struct wr_counters_pair *p, uint8_t dst_width,
                               uint8_t src_width, size_t i, __m256i *over)
{
    __m256i *const at = (__m256i *)(void *)(p->dst + (i << dst_width));
    const __m256i a = _mm256_loadu_si256(at);
    const __m256i b = load_wide(p->src, dst_width, src_width, i);
    const __m256i sum = add_wide(a, b, dst_width);
    *over = _mm256_or_si256(*over, lanes_over(a, b, sum, dst_width, src_width));
    _mm256_storeu_si256(at, sum);
}

AVX2 WR_INLINE bool add_by_avx2(const struct wr_counters_pair *p, uint8_t dst_width,
                                uint8_t src_width)
{
    const size_t lanes = 32u >> dst_width;
    const struct wr_counters_pair q = *p; /* what is written could be *p to a compiler */
    __m256i over = _mm256_setzero_si256();
    size_t i = 0;
    for (; i + 4 * lanes <= q.n; i += 4 * lanes) {
        add_vector(&q, dst_width, src_width, i, &over);
        add_vector(&q, dst_width, src_width, i + lanes, &over);
        add_vector(&q, dst_width, src_width, i + 2 * lanes, &over);
        add_vector(&q, dst_width, src_width, i + 3 * lanes, &over);
    }
    for (; i + lanes <= q.n; i += lanes)
        add_vector(&q, dst_width, src_width, i, &over);
    const __m256i counts = src_width < dst_width
                               ? _mm256_set1_epi64x((int64_t)wr_lanes_tops(dst_width))
                               : _mm256_set1_epi8(-1);
    const bool fit = add_by_words(&q, dst_width, src_width, i);
    return fit && _mm256_testz_si256(over, counts);
}

AVX2 WR_INLINE bool fit_by_avx2(const struct wr_counters_pair *p, uint8_t dst_width,
                                uint8_t src_width)
{
    if (dst_width == 3)
        return true;
    const size_t lanes = 32u >> dst_width;
    __m256i fit = _mm256_set1_epi8(-1);
    size_t i = 0;
    for (; i + lanes <= p->n; i += lanes) {
        const __m256i a =
            _mm256_loadu_si256((const __m256i *)(const void *)(p->dst + (i << dst_width)));
        fit = _mm256_and_si256(fit,
                               lanes_fit(a, load_wide(p->src, dst_width, src_width, i), dst_width));
    }
    return _mm256_movemask_epi8(fit) == -1 && fit_rest(p, dst_width, src_width, i);
}

AVX2 bool wr_counters_add_avx2(const struct wr_counters_pair *p)
{
    bool fit = false;
    BY_WIDTHS(fit, add_by_avx2, p);
    if (WR_UNLIKELY(!fit))
        take_off(p);
    return fit;
}

AVX2 bool wr_counters_fit_avx2(const struct wr_counters_pair *p)
{
    bool fit = false;
    BY_WIDTHS(fit, fit_by_avx2, p);
    return fit;
}

#endif

bool wr_counters_add(const struct wr_counters_pair *p)
{
#if defined(WR_COUNTERS_AVX2)
    if (!p->scale && wr_counters_has_avx2())
        return wr_counters_add_avx2(p);
#endif
    return wr_counters_add_words(p);
}

bool wr_counters_fit(const struct wr_counters_pair *p)
{
#if defined(WR_COUNTERS_AVX2)
    if (!p->scale && wr_counters_has_avx2())
        return wr_counters_fit_avx2(p);
#endif
    return wr_counters_fit_words(p);
}
