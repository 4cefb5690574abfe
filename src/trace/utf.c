/* SPDX-License-Identifier: Apache-2.0 */
/* utf: see utf.h. */
#include "trace/utf.h"

#include "base/bits.h"

#if defined(__x86_64__)
#include <immintrin.h>
#define HAVE_SSE2 1
#else
#define HAVE_SSE2 0
#endif

#define HIGH_BITS UINT64_C(0x8080808080808080)
#define UNITS_A_BLOCK 8
/* Shorter texts are done before a call could pay. */
#define AVX2_MIN_UNITS 64

/* Bytes of the well-formed sequence at s, 0: there is none. Unicode 15, table 3-7. n > 0. */
static size_t sequence(const unsigned char *s, size_t n)
{
    const unsigned b = s[0];
    if (b < 0x80)
        return 1;
    if (b < 0xc2 || b > 0xf4)
        return 0;
    const size_t len = b < 0xe0 ? 2 : b < 0xf0 ? 3 : 4;
    if (len > n)
        return 0;
    const unsigned low = b == 0xe0 ? 0xa0 : b == 0xf0 ? 0x90 : 0x80;
    const unsigned high = b == 0xed ? 0x9f : b == 0xf4 ? 0x8f : 0xbf;
    if (s[1] < low || s[1] > high)
        return 0;
    for (size_t i = 2; i < len; i++) {
        if ((s[i] & 0xc0) != 0x80)
            return 0;
    }
    return len;
}

bool wr_utf8_ok(const char *text, size_t n)
{
    const unsigned char *const s = (const unsigned char *)text;
    for (size_t i = 0; i < n;) {
        if (n - i >= 8 && !(wr_load64le(s + i) & HIGH_BITS)) {
            i += 8;
            continue;
        }
        const size_t len = sequence(s + i, n - i);
        if (!len)
            return false;
        i += len;
    }
    return true;
}

static char *put_replacement(char *dst)
{
    memcpy(dst, "\xef\xbf\xbd", 3); /* U+FFFD */
    return dst + 3;
}

char *wr_utf8_mend(char *dst, const char *text, size_t n)
{
    const unsigned char *const s = (const unsigned char *)text;
    for (size_t i = 0; i < n;) {
        const size_t len = sequence(s + i, n - i);
        if (len) {
            memcpy(dst, s + i, len);
            dst += len;
            i += len;
        } else {
            dst = put_replacement(dst);
            i++;
        }
    }
    return dst;
}

size_t wr_utf8_mended_len(const char *text, size_t n)
{
    size_t mended = 0;
    for (size_t i = 0; i < n;) {
        const size_t len = sequence((const unsigned char *)text + i, n - i);
        mended += len ? len : 3;
        i += len ? len : 1;
    }
    return mended;
}

static inline unsigned unit_at(const void *src, size_t i)
{
    uint16_t u;
    memcpy(&u, (const char *)src + 2 * i, sizeof u);
    return u;
}

static char *put_byte(char *dst, unsigned byte)
{
    *dst = (char)(unsigned char)byte;
    return dst + 1;
}

/* One code point from unit *at on, which is moved past it. */
static inline char *put_point(char *dst, const void *src, size_t n, size_t *at, uint64_t *mended)
{
    const unsigned u = unit_at(src, *at);
    (*at)++;
    if (u < 0x80)
        return put_byte(dst, u);
    if (u < 0x800) {
        dst = put_byte(dst, 0xc0 | u >> 6);
        return put_byte(dst, 0x80 | (u & 0x3f));
    }
    if (u < 0xd800 || u > 0xdfff) {
        dst = put_byte(dst, 0xe0 | u >> 12);
        dst = put_byte(dst, 0x80 | (u >> 6 & 0x3f));
        return put_byte(dst, 0x80 | (u & 0x3f));
    }
    const unsigned low = u < 0xdc00 && *at < n ? unit_at(src, *at) : 0;
    if (low < 0xdc00 || low > 0xdfff) {
        (*mended)++;
        return put_replacement(dst);
    }
    (*at)++;
    const unsigned point = 0x10000 + ((u & 0x3ff) << 10 | (low & 0x3ff));
    dst = put_byte(dst, 0xf0 | point >> 18);
    dst = put_byte(dst, 0x80 | (point >> 12 & 0x3f));
    dst = put_byte(dst, 0x80 | (point >> 6 & 0x3f));
    return put_byte(dst, 0x80 | (point & 0x3f));
}

char *wr_utf16_to_utf8_scalar(char *dst, const void *src, size_t n, uint64_t *mended)
{
    for (size_t i = 0; i < n;)
        dst = put_point(dst, src, n, &i, mended);
    return dst;
}

#if HAVE_SSE2
static inline __m128i load_block(const void *src, size_t i)
{
    return _mm_loadu_si128((const void *)((const char *)src + 2 * i));
}

/* Bit 2k and 2k + 1: unit k is ASCII. */
static inline unsigned ascii_mask(__m128i v)
{
    const __m128i wide = _mm_and_si128(v, _mm_set1_epi16((short)0xff80));
    return (unsigned)_mm_movemask_epi8(_mm_cmpeq_epi16(wide, _mm_setzero_si128()));
}

static inline bool has_wide(__m128i v)
{
    return ascii_mask(v) != 0xffff;
}

static inline void store_narrow(char *dst, __m128i v)
{
    _mm_storel_epi64((void *)dst, _mm_packus_epi16(v, v));
}

/* How many of the first units were ASCII and were narrowed: a multiple of 32, or where it ended. */
__attribute__((target("avx2"))) static size_t ascii_avx2(char *dst, const void *src, size_t n)
{
    const __m256i mask = _mm256_set1_epi16((short)0xff80);
    size_t i = 0;
    for (; n - i >= 32; i += 32) {
        const char *const at = (const char *)src + 2 * i;
        const __m256i a = _mm256_loadu_si256((const void *)at);
        const __m256i b = _mm256_loadu_si256((const void *)(at + 32));
        if (!_mm256_testz_si256(_mm256_or_si256(a, b), mask))
            break;
        /* The pack works in halves of 128 bits: quarters 0 and 2 are of a, 1 and 3 of b. */
        const __m256i packed = _mm256_permute4x64_epi64(_mm256_packus_epi16(a, b), 0xd8);
        _mm256_storeu_si256((void *)(dst + i), packed);
    }
    return i;
}

/* The four units at src where they are ASCII: as the four bytes of *ret. */
static inline bool narrow4(const char *src, uint32_t *ret)
{
    uint64_t v;
    memcpy(&v, src, sizeof v);
    const __m128i wide = _mm_cvtsi64_si128((long long)v);
    *ret = (uint32_t)_mm_cvtsi128_si32(_mm_packus_epi16(wide, wide));
    return (v & UINT64_C(0xff80ff80ff80ff80)) == 0;
}

/* Four to seven units, all ASCII: else false and nothing said of dst. */
static inline bool ascii_few(char *dst, const char *src, size_t n)
{
    uint32_t first;
    uint32_t last;
    if (!narrow4(src, &first) || !narrow4(src + 2 * (n - 4), &last))
        return false;
    memcpy(dst, &first, sizeof first);
    memcpy(dst + n - 4, &last, sizeof last);
    return true;
}

/* How many units from the start were ASCII and were narrowed. The last block may overlap. */
static inline size_t ascii_prefix(char *dst, const void *src, size_t n)
{
    if (n < UNITS_A_BLOCK)
        return n >= 4 && ascii_few(dst, src, n) ? n : 0;
    size_t i = n >= AVX2_MIN_UNITS && __builtin_cpu_supports("avx2") ? ascii_avx2(dst, src, n) : 0;
    for (; n - i >= UNITS_A_BLOCK; i += UNITS_A_BLOCK) {
        const __m128i v = load_block(src, i);
        if (has_wide(v))
            return i;
        store_narrow(dst + i, v);
    }
    if (i == n)
        return n;
    const __m128i last = load_block(src, n - UNITS_A_BLOCK);
    if (has_wide(last))
        return i;
    store_narrow(dst + n - UNITS_A_BLOCK, last);
    return n;
}

/* The ASCII units of the block at i, which begins with one: there are at least 8 left. */
static inline size_t ascii_run(char *dst, const void *src, size_t i)
{
    const __m128i v = load_block(src, i);
    store_narrow(dst, v); /* what is not ASCII is written over */
    return (size_t)__builtin_ctz(~ascii_mask(v)) / 2;
}
#else
static inline size_t ascii_prefix(char *dst, const void *src, size_t n)
{
    size_t i = 0;
    for (; i < n && unit_at(src, i) < 0x80; i++)
        dst[i] = (char)unit_at(src, i);
    return i;
}

static inline size_t ascii_run(char *dst, const void *src, size_t i)
{
    return ascii_prefix(dst, (const char *)src + 2 * i, UNITS_A_BLOCK);
}
#endif

char *wr_utf16_to_utf8(char *dst, const void *src, size_t n, uint64_t *mended)
{
    size_t i = ascii_prefix(dst, src, n);
    dst += i;
    while (i < n) {
        if (n - i >= UNITS_A_BLOCK && unit_at(src, i) < 0x80) {
            const size_t run = ascii_run(dst, src, i);
            dst += run;
            i += run;
        } else {
            dst = put_point(dst, src, n, &i, mended);
        }
    }
    return dst;
}

size_t wr_utf16_len(const void *src, size_t n)
{
    size_t len = 0;
    for (size_t i = 0; i < n; i++) {
        const unsigned u = unit_at(src, i);
        len += u < 0x80 ? 1 : u < 0x800 ? 2 : 3;
        if (u >= 0xd800 && u < 0xdc00 && i + 1 < n && (unit_at(src, i + 1) & 0xfc00) == 0xdc00) {
            len++; /* a pair takes 4 */
            i++;
        }
    }
    return len;
}
