/* SPDX-License-Identifier: Apache-2.0 */
/*
 * varfloats: see varfloats.h.
 *
 * A count plus one is exact as a float of 32 bits, and what a varfloat is made of lies in it as in
 * a double: less the bits of 1, the top 7 of 29 bits are the first byte, the next 7 the second, the
 * next 7 the third, and what is below is 0. So lanes of 32 bits are converted by the processor, and
 * bytes moved by a shuffle that the lengths of four counts choose.
 *
 * Reading finds the last bytes of 64 at once, as bits. From then on only a table stands between the
 * place of four counts and that of the next four, and not a load of what is there.
 *
 * Threads: any. Memory: none.
 */
#include "codec/varfloats.h"

#if defined(__x86_64__)
#include <immintrin.h>
#define AVX2 __attribute__((target("avx2,popcnt")))
#include "codec/varfloat_lanes.inc"
#endif

enum { FOUR_MOST = 12, BLOCK = 64 };

const uint32_t wr_varfloat_table[WR_VARFLOAT_TABLED] = {
#include "codec/varfloat.inc"
};

uint8_t *wr_varfloats_put_scalar(uint8_t *at, const uint16_t *counts, size_t n)
{
    size_t i = 0;
    while (i < n) {
        while (i + 1 < n && (counts[i] | counts[i + 1]) < WR_VARFLOAT_TABLED) {
            at = wr_varfloat_put_short(at, wr_varfloat_table[counts[i]]);
            at = wr_varfloat_put_short(at, wr_varfloat_table[counts[i + 1]]);
            i += 2;
        }
        if (i == n)
            break;
        at = counts[i] < WR_VARFLOAT_SHORT ? wr_varfloat_put_short(at, wr_varfloat_short(counts[i]))
                                           : wr_varfloat_put(at, counts[i]); /* one byte */
        i++;
    }
    return at;
}

/*
 * A count of three bytes at most, the highest of word, with zeros below: its groups of 7 bits go
 * where a double has them, with 20 more in the exponent, so that less 2^20 it is the weight. It has
 * at most 15 bits of fraction, so the weight is whole.
 */
WR_INLINE uint64_t short_bits(uint64_t word)
{
    return ((word & (UINT64_C(0x7f) << 56)) >> 5 | (word & (UINT64_C(0x7f) << 48)) >> 4 |
            (word & (UINT64_C(0x7f) << 40)) >> 3) +
           WR_VARFLOAT_ONE + (UINT64_C(20) << 52);
}

/* Bits of 2^20 * 2^43: below it a weight fits 64 bits with a sign. */
#define SHORT_END (WR_VARFLOAT_ONE + (UINT64_C(63) << 52))

WR_INLINE uint64_t short_weight(uint64_t bits)
{
    double v;
    memcpy(&v, &bits, sizeof v);
    return (uint64_t)(int64_t)(v - 0x1p20);
}

/* A weight that is a count of 16 bits. */
WR_INLINE bool is_count(uint64_t weight)
{
    return (weight & ~(UINT64_C(0xffff) << 20)) == 0;
}

/* Two out of each eight bytes. */
size_t wr_varfloats_get_scalar(const uint8_t **at, const uint8_t *end, uint16_t *counts, size_t n)
{
    size_t i = 0;
    while (i + 1 < n && end - *at >= 8) {
        const uint64_t word = wr_load64le(*at);
        const uint64_t lasts = ~word & UINT64_C(0x8080808080808080);
        const uint64_t behind = lasts & (lasts - 1);
        if (WR_UNLIKELY(!behind))
            break;
        const unsigned first = (unsigned)__builtin_ctzll(lasts) + 1; /* bits */
        const unsigned both = (unsigned)__builtin_ctzll(behind) + 1;
        if (WR_UNLIKELY(first > 24 || both - first > 24))
            break;
        const uint64_t high = __builtin_bswap64(word);
        const uint64_t a = short_bits(high & ~(UINT64_MAX >> first));
        const uint64_t b = short_bits((high & ~(UINT64_MAX >> both)) << first);
        if (WR_UNLIKELY(a >= SHORT_END || b >= SHORT_END))
            break;
        const uint64_t weights[2] = {short_weight(a), short_weight(b)};
        if (WR_UNLIKELY(!is_count(weights[0]) || !is_count(weights[1])))
            break;
        counts[i] = (uint16_t)(weights[0] >> 20);
        counts[i + 1] = (uint16_t)(weights[1] >> 20);
        *at += both / 8;
        i += 2;
    }
    return i;
}

#if defined(__x86_64__)
/* Four lanes of which these have a second and a third byte. */
AVX2 static inline uint8_t *put_four(uint8_t *at, __m128i lanes, unsigned longer)
{
    const __m128i order = _mm_loadu_si128((const __m128i *)(const void *)close_up[longer]);
    _mm_storeu_si128((__m128i *)(void *)at, _mm_shuffle_epi8(lanes, order));
    return at + 4 + __builtin_popcount(longer);
}

AVX2 static uint8_t *put_avx2(uint8_t *at, const uint16_t *counts, size_t n)
{
    const __m256i zero = _mm256_setzero_si256();
    const __m256i one = _mm256_set1_epi32(1);
    const __m256i bits_of_one = _mm256_set1_epi32(0x3f800000);
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        const __m128i eight = _mm_loadu_si128((const __m128i *)(const void *)(counts + i));
        const __m256i v = _mm256_add_epi32(_mm256_cvtepu16_epi32(eight), one);
        const __m256i bits =
            _mm256_sub_epi32(_mm256_castps_si256(_mm256_cvtepi32_ps(v)), bits_of_one);
        const __m256i first = _mm256_srli_epi32(bits, 22);
        const __m256i second =
            _mm256_and_si256(_mm256_srli_epi32(bits, 7), _mm256_set1_epi32(0x7f00));
        const __m256i third =
            _mm256_and_si256(_mm256_slli_epi32(bits, 8), _mm256_set1_epi32(0x7f0000));
        const __m256i rest = _mm256_or_si256(second, third);
        const __m256i has_second = _mm256_cmpgt_epi32(rest, zero);
        const __m256i has_third = _mm256_cmpgt_epi32(third, zero);
        const __m256i more =
            _mm256_or_si256(_mm256_and_si256(has_second, _mm256_set1_epi32(0x80)),
                            _mm256_and_si256(has_third, _mm256_set1_epi32(0x8000)));
        const __m256i lanes = _mm256_or_si256(_mm256_or_si256(first, rest), more);
        const unsigned seconds = (unsigned)_mm256_movemask_ps(_mm256_castsi256_ps(has_second));
        const unsigned thirds = (unsigned)_mm256_movemask_ps(_mm256_castsi256_ps(has_third));
        at = put_four(at, _mm256_castsi256_si128(lanes), (seconds & 15) | (thirds & 15) << 4);
        at = put_four(at, _mm256_extracti128_si256(lanes, 1), seconds >> 4 | (thirds & 0xf0));
    }
    return wr_varfloats_put_scalar(at, counts + i, n - i);
}

/* Four counts whose bytes are in this order; false: one is not a count of 16 bits, and none is
 * stored. */
AVX2 static inline bool get_four(__m128i bytes, __m128i order, uint16_t *counts)
{
    const __m128i lanes = _mm_shuffle_epi8(bytes, order);
    const __m128i first = _mm_srli_epi32(_mm_and_si128(lanes, _mm_set1_epi32(0x7f000000)), 2);
    const __m128i second = _mm_srli_epi32(_mm_and_si128(lanes, _mm_set1_epi32(0x7f0000)), 1);
    const __m128i third = _mm_and_si128(lanes, _mm_set1_epi32(0x7f00));
    const __m128i bits =
        _mm_add_epi32(_mm_or_si128(_mm_or_si128(first, second), third), _mm_set1_epi32(0x3f800000));
    const __m128 v = _mm_castsi128_ps(bits);
    const __m128i whole = _mm_cvttps_epi32(v);
    const __m128i count = _mm_sub_epi32(whole, _mm_set1_epi32(1));
    const __m128i exact = _mm_castps_si128(_mm_cmpeq_ps(_mm_cvtepi32_ps(whole), v));
    const __m128i bad =
        _mm_or_si128(_mm_srli_epi32(count, 16), _mm_xor_si128(exact, _mm_set1_epi32(-1)));
    if (WR_UNLIKELY(!_mm_testz_si128(bad, bad)))
        return false;
    _mm_storel_epi64((__m128i *)(void *)counts, _mm_packus_epi32(count, count));
    return true;
}

/* Of BLOCK bytes those below 0x80. */
AVX2 static inline uint64_t last_bytes(const uint8_t *at)
{
    const __m256i low = _mm256_loadu_si256((const __m256i *)(const void *)at);
    const __m256i high = _mm256_loadu_si256((const __m256i *)(const void *)(at + 32));
    return ~((uint64_t)(uint32_t)_mm256_movemask_epi8(low) |
             (uint64_t)(uint32_t)_mm256_movemask_epi8(high) << 32);
}

AVX2 static size_t get_avx2(const uint8_t **at, const uint8_t *end, uint16_t *counts, size_t n)
{
    const uint8_t *from = *at;
    size_t i = 0;
    bool good = true;
    while (good && i + 4 <= n && end - from >= BLOCK + 16) {
        uint64_t lasts = last_bytes(from);
        const uint8_t *const last = from + BLOCK - FOUR_MOST;
        while (from <= last && i + 4 <= n) {
            const uint8_t *const entry = ends[lasts & 0xfff];
            const __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)from);
            const __m128i order = _mm_loadu_si128((const __m128i *)(const void *)spread[entry[0]]);
            good = entry[1] && get_four(bytes, order, counts + i);
            if (WR_UNLIKELY(!good))
                break;
            lasts >>= entry[1];
            from += entry[1];
            i += 4;
        }
    }
    *at = from;
    return i + wr_varfloats_get_scalar(at, end, counts + i, n - i);
}
#endif

uint8_t *wr_varfloats_put(uint8_t *at, const uint16_t *counts, size_t n)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2"))
        return put_avx2(at, counts, n);
#endif
    return wr_varfloats_put_scalar(at, counts, n);
}

size_t wr_varfloats_get(const uint8_t **at, const uint8_t *end, uint16_t *counts, size_t n)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2"))
        return get_avx2(at, end, counts, n);
#endif
    return wr_varfloats_get_scalar(at, end, counts, n);
}
