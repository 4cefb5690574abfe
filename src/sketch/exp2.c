/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exp2: see exp2.h.
 *
 * A power is a table of 256 mantissas and the series of e^y for what is left, y < 2^-8.5, in
 * fixed point of 63 bits. A logarithm is found bit by bit: squaring a mantissa doubles its
 * logarithm, and the integer part that appears is the next bit.
 *
 * Threads: any. Memory: none.
 */
#include "sketch/exp2.h"

#include <float.h>

extern const uint64_t wr_exp2_mantissas[256]; /* 2^63 * 2^(k/256), rounded down; bounds.inc */

#define LN2 UINT64_C(0xB17217F7D1CF79AB) /* ln 2 in units of 2^-64, rounded down */

static uint64_t mul_high(uint64_t a, uint64_t b)
{
    return (uint64_t)((wr_uint128)a * b >> 64);
}

/* The top half of the product. */
static wr_uint128 mul_high128(wr_uint128 a, wr_uint128 b)
{
    const uint64_t a1 = (uint64_t)(a >> 64);
    const uint64_t a0 = (uint64_t)a;
    const uint64_t b1 = (uint64_t)(b >> 64);
    const uint64_t b0 = (uint64_t)b;
    const wr_uint128 m1 = (wr_uint128)a1 * b0;
    const wr_uint128 m2 = (wr_uint128)a0 * b1;
    const wr_uint128 low = (wr_uint128)(uint64_t)m1 + (uint64_t)m2 + mul_high(a0, b0);
    return (wr_uint128)a1 * b1 + (m1 >> 64) + (m2 >> 64) + (low >> 64);
}

wr_uint128 wr_log2(double v)
{
    uint64_t bits;
    memcpy(&bits, &v, sizeof bits);
    const uint64_t mantissa = (bits & (((uint64_t)1 << 52) - 1)) | (uint64_t)1 << 52;
    wr_uint128 log2 = (bits >> 52) - 1023; /* v >= 1 */
    wr_uint128 x = (wr_uint128)mantissa << 75;
    for (int i = 0; i < WR_LOG2_BITS; i++) {
        x = mul_high128(x, x);
        const bool is_two = x >> 127;
        log2 = log2 << 1 | is_two;
        if (!is_two)
            x <<= 1;
    }
    return log2;
}

double wr_log2_double(wr_uint128 log2)
{
    return (double)log2 * 0x1p-112;
}

static double power_of_two(int64_t e) /* a normal one */
{
    const uint64_t bits = (uint64_t)(e + 1023) << 52;
    double v;
    memcpy(&v, &bits, sizeof v);
    return v;
}

double wr_exp2(int64_t whole, uint64_t fraction)
{
    if (whole > DBL_MAX_EXP - 1)
        return DBL_MAX;
    if (whole < DBL_MIN_EXP - DBL_MANT_DIG - 1)
        return 0;
    const uint64_t top = wr_exp2_mantissas[fraction >> 56];
    const uint64_t y = mul_high(fraction & (((uint64_t)1 << 56) - 1), LN2);
    const uint64_t one = (uint64_t)1 << 63;
    uint64_t p = one + mul_high(y, one) / 7; /* 1 + y/7, in units of 2^-63; then from inside out */
    for (unsigned n = 6; n > 1; n--)
        p = one + mul_high(y, p) / n;
    const uint64_t above_one = mul_high(y, p) << 8; /* (e^y - 1) 2^71 */
    const double mantissa = (double)(top + (mul_high(top, above_one) >> 7)) * 0x1p-63;
    if (whole < DBL_MIN_EXP - 1)
        return mantissa * power_of_two(whole + 100) * 0x1p-100;
    return mantissa * power_of_two(whole) > DBL_MAX ? DBL_MAX : mantissa * power_of_two(whole);
}

/* x as a whole number and units of 2^-64 above it. */
static int64_t split(double x, uint64_t *ret_fraction)
{
    const double whole = floor(x);
    const double rest = x - whole; /* of a tiny negative x it rounds to 1 */
    *ret_fraction = rest < 1 ? (uint64_t)(rest * 0x1p64) : UINT64_MAX;
    return wr_i64_from_double(whole);
}

double wr_exp2_double(double x)
{
    uint64_t fraction;
    const int64_t whole = split(x, &fraction);
    return wr_exp2(whole, fraction);
}

double wr_exp2_scaled(wr_uint128 log2, int64_t i, double offset)
{
    /* i - offset in units of 2^-64: sign and magnitude */
    uint64_t part;
    const int64_t whole = i - split(offset, &part);
    const bool negative = whole <= 0;
    const wr_uint128 distance = negative ? ((wr_uint128)(uint64_t)-whole << 64) + part
                                         : ((wr_uint128)(uint64_t)whole << 64) - part;
    /* times log2, in units of 2^-64. distance < 2^99, log2 < 2^122. */
    const uint64_t d1 = (uint64_t)(distance >> 64);
    const uint64_t d0 = (uint64_t)distance;
    const uint64_t g1 = (uint64_t)(log2 >> 64);
    const uint64_t g0 = (uint64_t)log2;
    const wr_uint128 middle = (wr_uint128)d1 * g0 + (wr_uint128)d0 * g1 + mul_high(d0, g0);
    const wr_uint128 x =
        ((wr_uint128)d1 * g1 << (128 - WR_LOG2_BITS)) + (middle >> (WR_LOG2_BITS - 64));
    if (!negative)
        return wr_exp2((int64_t)(x >> 64), (uint64_t)x);
    const uint64_t fraction = (uint64_t)x;
    return wr_exp2(-(int64_t)(x >> 64) - (fraction ? 1 : 0), -fraction);
}
