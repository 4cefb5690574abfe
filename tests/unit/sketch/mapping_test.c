/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mapping: every bin's edges against exact integers. A value v lies above the bound u 2^(i/64)
 * exactly when v^64 > u^64 2^i; both sides are computed in full, so nothing here rounds.
 */
#include "t.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "sketch/mapping.h"

/* Unsigned integers of up to 64 + 64 words, little end first: enough for (2^64)^64. */
#define WORDS 136
struct big {
    size_t n;
    uint32_t w[WORDS];
};

static struct big big_mul(const struct big *a, const struct big *b)
{
    struct big r = {.n = a->n + b->n};
    T_TRUE(r.n <= WORDS);
    for (size_t i = 0; i < a->n; i++) {
        uint64_t carry = 0;
        for (size_t j = 0; j < b->n; j++) {
            carry += (uint64_t)a->w[i] * b->w[j] + r.w[i + j];
            r.w[i + j] = (uint32_t)carry;
            carry >>= 32;
        }
        r.w[i + b->n] = (uint32_t)carry;
    }
    while (r.n && !r.w[r.n - 1])
        r.n--;
    return r;
}

/* v^64 */
static struct big big_power(uint64_t v)
{
    struct big r = {.n = v >> 32 ? 2 : 1, .w = {(uint32_t)v, (uint32_t)(v >> 32)}};
    for (int i = 0; i < 6; i++)
        r = big_mul(&r, &r);
    return r;
}

/* Bit number i from the bottom of a 2^shift; 0 outside. */
static uint32_t big_word(const struct big *a, int64_t bit)
{
    uint64_t v = 0;
    for (int half = 1; half >= 0; half--) {
        const int64_t at = (bit >= 0 ? bit / 32 : -((31 - bit) / 32)) + half;
        v = v << 32 | (at >= 0 && (size_t)at < a->n ? a->w[at] : 0);
    }
    const int64_t within = bit - (bit >= 0 ? bit / 32 : -((31 - bit) / 32)) * 32;
    return (uint32_t)(v >> within);
}

/* a > b 2^shift, for any sign of shift. */
static bool big_above(const struct big *a, const struct big *b, int64_t shift)
{
    if (shift < 0) /* a 2^-shift > b: b shifted down is enough, plus what falls off */
        for (int64_t i = WORDS - 1; i >= -8 - (int64_t)WORDS; i--) {
            const uint32_t x = i >= 0 && (size_t)i < a->n ? a->w[i] : 0;
            const uint32_t y = big_word(b, i * 32 - shift);
            if (x != y)
                return x > y;
        }
    else
        for (int64_t i = 2 * WORDS; i >= 0; i--) {
            const uint32_t x = (size_t)i < a->n ? a->w[i] : 0;
            const uint32_t y = big_word(b, i * 32 - shift);
            if (x != y)
                return x > y;
        }
    return false;
}

/* v is in bin i of bounds unit 2^(i/64): above the lower one, not above the upper one. */
static void expect_in_bin(uint64_t v, const struct big *unit, int64_t i)
{
    const struct big power = big_power(v);
    if (!big_above(&power, unit, i))
        T_FAIL("%" PRIu64 " is not above the lower bound of bin %" PRId64, v, i);
    if (big_above(&power, unit, i + 1))
        T_FAIL("%" PRIu64 " is above the upper bound of bin %" PRId64, v, i);
}

TEST(the_exact_comparison_is_itself_right)
{
    const struct big one = big_power(1);
    const struct big two = big_power(2);
    T_TRUE(!big_above(&two, &one, 64)); /* 2^64 > 2^64 */
    T_TRUE(big_above(&two, &one, 63));
    T_TRUE(!big_above(&one, &two, -64));
    T_TRUE(big_above(&one, &two, -65));
    const struct big big = big_power(UINT64_MAX);
    T_TRUE(big_above(&big, &one, 4095));
    T_TRUE(!big_above(&big, &one, 4096));
    const struct big three = big_power(3); /* 3^64 is 2^101.4 */
    T_TRUE(big_above(&three, &one, 101));
    T_TRUE(!big_above(&three, &one, 102));
    T_TRUE(big_above(&one, &three, -102));
    T_TRUE(!big_above(&one, &three, -101));
}

/* The first duration in [lo, hi] whose index is at least i. */
static int64_t first_at_least(int64_t lo, int64_t hi, int32_t i)
{
    while (lo < hi) {
        const int64_t mid = lo + (hi - lo) / 2;
        if (wr_mapping_index_ns(mid) >= i)
            hi = mid;
        else
            lo = mid + 1;
    }
    return lo;
}

TEST(both_edges_of_every_bin_of_nanoseconds_are_exact)
{
    const struct big unit = big_power(1000000000);
    const int64_t exact = INT64_C(1) << 53;
    int edges = 0;
    int64_t at = 1;
    for (int32_t i = WR_MAPPING_NS_MIN; at < exact; i = wr_mapping_index_ns(at) + 1, edges++) {
        at = first_at_least(at, exact, i);
        expect_in_bin((uint64_t)at, &unit, wr_mapping_index_ns(at));
        if (at > 1)
            expect_in_bin((uint64_t)at - 1, &unit, wr_mapping_index_ns(at - 1));
    }
    T_TRUE(edges > 53 * 64 - 400); /* the first nanoseconds are bins apart */
    T_EQ_I64(wr_mapping_index_ns(1), WR_MAPPING_NS_MIN);
    T_EQ_I64(wr_mapping_index_ns(INT64_MAX), WR_MAPPING_NS_MAX);
}

TEST(a_duration_past_2_53_is_that_of_the_double_below)
{
    struct t_rng rng = t_rng(t_seed());
    for (int k = 0; k < 2000; k++) {
        const int64_t ns = (int64_t)(t_next(&rng) >> 1) | INT64_C(1) << 62;
        const int64_t down = ns >> 10 << 10;
        T_EQ_I64(wr_mapping_index_ns(ns), wr_mapping_index_ns(down));
        /* and a double's octave is the duration's, 2^n times up */
        T_EQ_I64(wr_mapping_index_ns(down), wr_mapping_index_ns(down >> 10) + 640);
    }
}

TEST(both_edges_of_every_bin_of_an_octave_of_doubles_are_exact)
{
    const struct big unit = big_power(1);
    for (int32_t k = 0; k < 64; k++) {
        uint64_t lo = UINT64_C(1) << 52;
        uint64_t hi = (UINT64_C(1) << 53) - 1;
        while (lo < hi) { /* the first mantissa at or above bin k */
            const uint64_t mid = lo + (hi - lo) / 2;
            if (wr_mapping_index_value((double)mid * 0x1p-52) >= k)
                hi = mid;
            else
                lo = mid + 1;
        }
        expect_in_bin(lo, &unit, k + 52 * 64);
        expect_in_bin(lo - 1, &unit, k - 1 + 52 * 64);
        T_EQ_I64(wr_mapping_index_value((double)lo * 0x1p-52), k);
        /* every octave is the same one */
        for (int e = -1022; e <= 1023; e++) {
            T_EQ_I64(wr_mapping_index_value(ldexp((double)lo, e - 52)), k + 64 * e);
            if (e > -1022)
                T_EQ_I64(wr_mapping_index_value(ldexp((double)(lo - 1), e - 52)), k - 1 + 64 * e);
        }
    }
    T_EQ_I64(wr_mapping_index_value(DBL_MAX), WR_MAPPING_VALUE_MAX);
    T_EQ_I64(wr_mapping_index_value(nextafter(WR_MAPPING_ZERO_MAX, 1)), WR_MAPPING_VALUE_MIN);
}

/* asap_sketchlib#70: at both edges of each bin, not in its middle only. */
TEST(the_answer_of_a_bin_is_within_the_accuracy_of_both_its_edges)
{
    const double a = weir_mapping_accuracy(&wr_mapping_default) + 2 * DBL_EPSILON;
    const double step = 0x1p-1073; /* differences near 2^-1022 have no more bits */
    T_NEAR(weir_mapping_accuracy(&wr_mapping_default), tanh(log(2) / 128), 1e-14);
    for (int32_t i = WR_MAPPING_VALUE_MIN; i < WR_MAPPING_VALUE_MAX; i++) {
        const double v = weir_mapping_value(&wr_mapping_default, i);
        const double lower = weir_mapping_lower(&wr_mapping_default, i);
        const double upper = weir_mapping_lower(&wr_mapping_default, i + 1);
        T_TRUE(lower < v && v < upper);
        if (!(v - lower <= a * lower + step) || !(upper - v <= a * upper + step))
            T_FAIL("bin %" PRId32 ": %.17g in (%.17g, %.17g]", i, v, lower, upper);
    }
    T_TRUE(isfinite(weir_mapping_value(&wr_mapping_default, WR_MAPPING_VALUE_MAX)));
    T_EQ_DBL(weir_mapping_lower(&wr_mapping_default, WR_MAPPING_VALUE_MAX + 1), DBL_MAX);
}

/* bounds as doubles: the double nearest 2^(i/64) squared 64-fold lies around 2^i. */
TEST(bounds_are_the_doubles_that_the_index_takes_them_for)
{
    for (int32_t i = -640; i < 640; i++) {
        const double bound = weir_mapping_lower(&wr_mapping_default, i);
        const int32_t at = wr_mapping_index_value(bound);
        T_TRUE(at == i - 1 || at == i); /* rounded down, or up past it */
        T_EQ_I64(wr_mapping_index_value(nextafter(bound, 0)), i - 1);
        T_EQ_I64(wr_mapping_index_value(nextafter(bound, HUGE_VAL)), i);
    }
    T_EQ_DBL(weir_mapping_lower(&wr_mapping_default, 0), 1.0);
    T_EQ_DBL(weir_mapping_lower(&wr_mapping_default, -64), 0.5);
    T_EQ_DBL(weir_mapping_lower(&wr_mapping_default, 32), sqrt(2));
}

TEST(indices_are_those_of_the_golden_file)
{
    size_t n;
    char *const text = (char *)t_read_file(T_SOURCE_DIR "/tests/golden/sketch/index.tsv", &n);
    T_TRUE(text != NULL);
    int rows = 0;
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
        char *at = strchr(line, '\t') + 1;
        char *end;
        int32_t got;
        if (line[0] == '#')
            continue;
        if (line[0] == 'n')
            got = wr_mapping_index_ns(strtoll(at, &end, 10));
        else
            got = wr_mapping_index_value(strtod(at, &end));
        const long want = strtol(end, NULL, 10);
        if (got != want)
            T_FAIL("%s gives %" PRId32, line, got);
        rows++;
    }
    T_EQ_U64(rows, 191);
    free(text);
}
