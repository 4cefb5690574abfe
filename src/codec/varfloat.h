/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WR_CODEC_VARFLOAT_H
#define WR_CODEC_VARFLOAT_H
/*
 * varfloat: the numbers of DDSketch's compact encoding.
 *
 * An integer goes in groups of 7 bits, the lowest first, at most 9 bytes: the ninth carries 8 bits.
 * Signed ones are folded onto them (0, -1, 1, -2, ...).
 *
 * A count is the double v + 1 as 64 bits, less those of 1, so that small counts have a small
 * exponent and few bits of mantissa; rotated left by 6, which brings the exponent's used bits and
 * the mantissa's first to the top; then in groups of 7 bits, the highest first, until the rest is
 * 0. So 1, 2, 3, 5, 7, 11, 15, ... take one byte, others below 2^16 two or three.
 *
 * Threads: any. Memory: none.
 * Source: sketches-go encoding/encoding.go, sketches-java VarEncodingHelper.
 */
#include "base/bits.h"

#define WR_VARFLOAT_MAX 9u
#define WR_VARFLOAT_ONE UINT64_C(0x3ff0000000000000)
/* Whole counts below this take at most 3 bytes. */
#define WR_VARFLOAT_SHORT UINT64_C(65535)

static inline size_t wr_uvarint9_bytes(uint64_t v)
{
    const size_t n = v ? (70 - wr_clz64(v)) / 7 : 1;
    return n < 9 ? n : 9;
}

/* Store v at `at`, which has room for 9; one past it is returned. */
static inline uint8_t *wr_uvarint9_put(uint8_t *at, uint64_t v)
{
    for (int i = 0; i < 8 && v >= 0x80; i++) {
        *at++ = (uint8_t)(v | 0x80);
        v >>= 7;
    }
    *at++ = (uint8_t)v;
    return at;
}

/* NULL: the bytes end first. */
static inline const uint8_t *wr_uvarint9_get(const uint8_t *at, const uint8_t *end,
                                             uint64_t *ret_value)
{
    uint64_t v = 0;
    for (unsigned shift = 0; at < end; shift += 7) {
        const uint64_t b = *at++;
        if (b < 0x80 || shift == 56) {
            *ret_value = v | b << shift;
            return at;
        }
        v |= (b & 0x7f) << shift;
    }
    return NULL;
}

WR_WRAPS static inline uint64_t wr_varfloat_bits(double count)
{
    const double v = count + 1;
    uint64_t bits;
    memcpy(&bits, &v, sizeof bits);
    bits -= WR_VARFLOAT_ONE;
    return bits << 6 | bits >> 58;
}

static inline size_t wr_varfloat_bytes(double count)
{
    const uint64_t bits = wr_varfloat_bits(count);
    if (!bits)
        return 1;
    const unsigned used = 64 - (unsigned)__builtin_ctzll(bits);
    return used <= 56 ? (used + 6) / 7 : 9;
}

/* `at` has room for 9; one past it is returned. */
static inline uint8_t *wr_varfloat_put(uint8_t *at, double count)
{
    uint64_t bits = wr_varfloat_bits(count);
    for (int i = 0; i < 8; i++) {
        const uint8_t b = (uint8_t)(bits >> 57);
        bits <<= 7;
        if (!bits) {
            *at++ = b;
            return at;
        }
        *at++ = b | 0x80;
    }
    *at++ = (uint8_t)(bits >> 56);
    return at;
}

/* NULL: the bytes end first. Any double may come out, NaN and infinity as well. */
WR_WRAPS static inline const uint8_t *wr_varfloat_get(const uint8_t *at, const uint8_t *end,
                                                      double *ret_count)
{
    uint64_t bits = 0;
    for (unsigned i = 0; at < end; i++) {
        const uint64_t b = *at++;
        bits |= i == 8 ? b : (b & 0x7f) << (57 - 7 * i);
        if (b >= 0x80 && i < 8)
            continue;
        bits = (bits >> 6 | bits << 58) + WR_VARFLOAT_ONE;
        double v;
        memcpy(&v, &bits, sizeof v);
        *ret_count = v - 1;
        return at;
    }
    return NULL;
}

/* A whole count below WR_VARFLOAT_SHORT: its bytes in the low 3 of the result, how many in the high
 * one. */
WR_INLINE uint32_t wr_varfloat_short(uint32_t count)
{
    const uint32_t v = count + 1;
    const uint32_t lead = (uint32_t)__builtin_clz(v);
    const uint32_t mantissa = v << lead << 1; /* the leading one is out; at most 15 bits are used */
    const uint32_t head = (31 - lead) << 1 | mantissa >> 31;
    const uint32_t second = mantissa >> 24 & 0x7f;
    const uint32_t third = mantissa >> 17 & 0x7f;
    if (third)
        return head | second << 8 | third << 16 | 0x03008080;
    return second ? head | second << 8 | 0x02000080 : head | 0x01000000;
}
#endif
