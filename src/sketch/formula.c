/* SPDX-License-Identifier: Apache-2.0 */
/*
 * formula: see formula.h.
 *
 * The interpolated kinds replace the logarithm of a mantissa 1 + s by a polynomial p(s), p(0) = 0
 * and p(1) = 1, so l(2^e (1 + s)) = e + p(s). Evaluated in the order that sketches-java and
 * sketches-go use, without contraction: the result is then theirs, but for a multiplier that
 * differs in its last bits.
 *
 * Threads: any. Memory: none.
 */
#include "sketch/formula.h"

#include <float.h>

#define FRACTION (((uint64_t)1 << 52) - 1)
#define ONE_BITS ((uint64_t)1023 << 52)

/* p(s) = of[0] s + of[1] s^2 + of[2] s^3 + of[3] s^4; and its accuracy is that of base
 * gamma^correction: 1 / (ln 2 * the least l'(ln v)). */
struct polynomial {
    double of[4];
    double start; /* p^-1(y) is near y - start * y (1 - y) */
    double correction;
};

static const struct polynomial polynomials[] = {
    [WEIR_MAPPING_LINEAR] = {.of = {1, 0, 0, 0}, .start = 0, .correction = 0x1.71547652b82fep+0},
    [WEIR_MAPPING_QUADRATIC] = {.of = {4.0 / 3, -1.0 / 3, 0, 0},
                                .start = 0.28,
                                .correction = 0x1.14ff58be0a23fp+0}, /* 3 / (4 ln 2) */
    [WEIR_MAPPING_CUBIC] = {.of = {10.0 / 7, -3.0 / 5, 6.0 / 35, 0},
                            .start = 0.33,
                            .correction = 0x1.0287ec6d1a87fp+0}, /* 7 / (10 ln 2) */
    [WEIR_MAPPING_QUARTIC] = {.of = {36.0 / 25, -17.0 / 25, 8.0 / 25, -2.0 / 25},
                              .start = 0.34,
                              .correction = 0x1.007aa7808e214p+0}, /* 25 / (36 ln 2) */
};

static double from_bits(uint64_t bits)
{
    double v;
    memcpy(&v, &bits, sizeof v);
    return v;
}

/* e + p(s), s = fraction 2^-52; fraction may be 2^52: the next octave. */
static double log_like(uint32_t kind, double e, uint64_t fraction)
{
    const double s = (double)fraction * 0x1p-52;
    if (fraction > FRACTION)
        return e + 1;
    switch (kind) {
    case WEIR_MAPPING_QUADRATIC:
        return e - (s - 4) * s / 3;
    case WEIR_MAPPING_CUBIC:
        return e + ((6.0 / 35 * s - 3.0 / 5) * s + 10.0 / 7) * s;
    case WEIR_MAPPING_QUARTIC:
        return e + (((-2.0 / 25 * s + 8.0 / 25) * s - 17.0 / 25) * s + 36.0 / 25) * s;
    default:
        return e + s;
    }
}

/* The index before rounding down. */
static double real_index(const struct weir_mapping *m, double e, uint64_t fraction)
{
    return m->multiplier * log_like(m->kind, e, fraction) + m->offset;
}

/* s with p(s) = y, to some units of the last place; y in [0, 1]. Steps of Newton's from a start
 * within 0.02. */
static double inverse(const struct polynomial *p, double y)
{
    const double *const c = p->of;
    double s = y - p->start * y * (1 - y);
    for (int i = 0; i < 3; i++) {
        const double at = (((c[3] * s + c[2]) * s + c[1]) * s + c[0]) * s;
        const double slope = ((4 * c[3] * s + 3 * c[2]) * s + 2 * c[1]) * s + c[0];
        s -= (at - y) / slope;
    }
    return s < 0 ? 0 : s > 1 ? 1 : s;
}

/* 2^e (1 + fraction 2^-52); fraction may be 2^52. */
static double build(int64_t e, uint64_t fraction)
{
    const double mantissa = 1 + (double)fraction * 0x1p-52;
    if (e > DBL_MAX_EXP - 1)
        return DBL_MAX;
    if (e < DBL_MIN_EXP - DBL_MANT_DIG - 1)
        return 0;
    if (e < DBL_MIN_EXP - 1)
        return mantissa * from_bits((uint64_t)(e + 100 + 1023) << 52) * 0x1p-100;
    const double v = mantissa * from_bits((uint64_t)(e + 1023) << 52);
    return v > DBL_MAX ? DBL_MAX : v;
}

/* The octave that bound i lies in: it is above 2^e, or e's own. */
static int64_t octave_of_bound(const struct weir_mapping *m, double i)
{
    int64_t e = wr_i64_from_double(floor((i - m->offset) / m->multiplier));
    while (real_index(m, (double)e, 0) >= i)
        e--;
    while (real_index(m, (double)(e + 1), 0) < i)
        e++;
    return e;
}

/* Where real_index reaches i, between the fractions 0 (below it) and 2^52 (not below it) of an
 * octave: around the guess, in steps that grow, then by halving. */
static uint64_t crossing(const struct weir_mapping *m, double e, double i, uint64_t guess)
{
    uint64_t lo = 0;
    uint64_t hi = FRACTION + 1;
    for (uint64_t step = 8; step <= FRACTION; step *= 16) {
        const uint64_t below = guess > step ? guess - step : 0;
        const uint64_t above = guess + step > hi ? hi : guess + step;
        const bool low = !below || real_index(m, e, below) < i;
        const bool high = above == hi || real_index(m, e, above) >= i;
        if (low && high) {
            lo = below;
            hi = above;
            break;
        }
    }
    while (hi - lo > 1) {
        const uint64_t middle = lo + (hi - lo) / 2;
        if (real_index(m, e, middle) >= i)
            hi = middle;
        else
            lo = middle;
    }
    return hi;
}

static double interpolated_bound(const struct weir_mapping *m, int64_t index)
{
    const double i = (double)index;
    const double y = (i - m->offset) / m->multiplier;
    if (y > DBL_MAX_EXP)
        return DBL_MAX;
    if (y < DBL_MIN_EXP - DBL_MANT_DIG - 2)
        return 0;
    const int64_t e = octave_of_bound(m, i);
    double part = y - (double)e;
    part = part < 0 ? 0 : part > 1 ? 1 : part;
    const double s = inverse(&polynomials[m->kind], part);
    return build(e, crossing(m, (double)e, i, (uint64_t)(s * 0x1p52)));
}

/* Exact: the mantissa's top bits are the bin. */
static double mantissa_bound(const struct weir_mapping *m, int64_t i)
{
    const int64_t sub = (int64_t)1 << m->mantissa_bits;
    const int64_t at = i - wr_i64_from_double(m->offset);
    int64_t e = at / sub;
    if (e * sub > at)
        e--;
    return build(e, (uint64_t)(at - e * sub) << (52 - m->mantissa_bits));
}

double wr_formula_bound(const struct weir_mapping *m, int64_t i)
{
    if (m->kind == WEIR_MAPPING_LOG)
        return wr_exp2_scaled(m->log2_gamma, i, m->offset);
    return m->mantissa_bits >= 0 ? mantissa_bound(m, i) : interpolated_bound(m, i);
}

int32_t wr_formula_index(const struct weir_mapping *m, double value)
{
    const uint64_t bits = wr_mapping_bits(value);
    if (m->mantissa_bits >= 0) {
        const int64_t top = (int64_t)((bits - ONE_BITS) >> (52 - m->mantissa_bits));
        const int64_t bias = value < 1 ? (int64_t)1 << (12 + m->mantissa_bits) : 0;
        return (int32_t)(top - bias + wr_i64_from_double(m->offset));
    }
    double log2;
    if (m->kind == WEIR_MAPPING_LOG)
        log2 = log(value) * (1 / 0.69314718055994530942);
    else
        log2 = log_like(m->kind, (double)(int64_t)(bits >> 52) - 1023, bits & FRACTION);
    const double real = m->multiplier * log2 + m->offset;
    /* What the guess may be wrong by: some units of the last place of its terms. */
    const double doubt = (m->multiplier * (fabs(log2) + 1) + fabs(m->offset) + 1) * 0x1p-48;
    const double whole = floor(real);
    const int64_t i = wr_i64_from_double(whole);
    if (real - whole < doubt)
        return (int32_t)(value >= wr_formula_bound(m, i) ? i : i - 1);
    if (real - whole > 1 - doubt)
        return (int32_t)(value >= wr_formula_bound(m, i + 1) ? i + 1 : i);
    return (int32_t)i;
}

/* LINEAR of g = 2^(2^-k) and a whole offset: what bitwise linear mappings are written as. */
static int32_t mantissa_bits_of(const struct weir_mapping *m)
{
    if (m->kind != WEIR_MAPPING_LINEAR || m->offset != floor(m->offset))
        return -1;
    for (int32_t k = 0; k <= 20; k++) {
        const double sub = (double)((int64_t)1 << k);
        if (fabs(m->multiplier - sub) <= 1e-12 * sub)
            return k;
    }
    return -1;
}

int wr_formula_init(struct weir_mapping *m)
{
    m->log2_gamma = wr_log2(m->gamma);
    const double log2 = wr_log2_double(m->log2_gamma);
    m->multiplier = 1 / log2;
    /* a double's logarithm is in (-1023, 1024]; one more bin for a bound above the last */
    if (!(m->multiplier * 1024 + fabs(m->offset) < (double)(INT32_MAX - 1)))
        return WEIR_ERANGE;
    m->mantissa_bits = mantissa_bits_of(m);
    if (m->mantissa_bits >= 0)
        m->multiplier = (double)((int64_t)1 << m->mantissa_bits);
    const double base = m->kind == WEIR_MAPPING_LOG
                            ? m->gamma
                            : wr_exp2_double(polynomials[m->kind].correction * log2);
    m->accuracy = base < 0x1p60 ? (base - 1) / (base + 1) : 1;
    return WEIR_OK;
}

double wr_formula_narrowest(const struct weir_mapping *m)
{
    if (m->kind == WEIR_MAPPING_LOG)
        return m->gamma - 1;
    return 1 / (m->multiplier * polynomials[m->kind].of[0]);
}
