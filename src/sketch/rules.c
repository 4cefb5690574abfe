/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rules: quantiles as others define them, over the same bins.
 *
 * A rule is a rank, the bin it falls into, and what of the bin is answered. Others compute in
 * doubles, so these do too, step by step as they do: where 0.29 * 100 is less than 29, so is the
 * rank.
 *
 * Threads: any, while nobody writes. Memory: none.
 */
#include "sketch/quantile.h"

#include <float.h>

/* A weight as others count it. */
static double count_of(uint64_t weight)
{
    return (double)weight * 0x1p-20;
}

/* count in units of weight, rounded down, in [0, weight]. */
static uint64_t units_of(double count, uint64_t weight)
{
    const double units = count * 0x1p20;
    if (!(units > 0))
        return 0;
    return units < (double)weight ? (uint64_t)units : weight;
}

/* q (n - 1), in doubles; a total below 1 has rank 0. */
static double rank_in(const struct weir_sketch *sk, double q)
{
    const double n = count_of(sk->weight);
    return n > 1 ? q * (n - 1) : 0;
}

/* The first bin whose cumulative weight is above rank. */
static void first_above(const struct weir_sketch *sk, double rank, struct wr_spot *ret_spot)
{
    const uint64_t units = units_of(rank, sk->weight);
    wr_spot_of_rank(sk, units < sk->weight ? units : sk->weight - 1, ret_spot);
}

static double by_java(const struct weir_sketch *sk, double q)
{
    struct wr_spot spot;
    first_above(sk, rank_in(sk, q), &spot);
    return wr_spot_value(sk, &spot);
}

/* Negative values are searched by magnitude, from zero on: of two between which a fractional rank
 * lies, the one nearer to zero is taken. */
static double by_go(const struct weir_sketch *sk, double q)
{
    struct wr_run run;
    wr_view_counters(sk, WR_NEGATIVE, WR_END_LOW, &run);
    const uint64_t negatives = wr_run_weight(&run);
    const double rank = rank_in(sk, q);
    if (!(rank < count_of(negatives)))
        return by_java(sk, q);
    struct wr_walk w = {.run = run};
    struct wr_hit hit;
    wr_walk_from_low(&w);
    const uint64_t above = units_of(count_of(negatives) - 1 - rank, negatives);
    if (!wr_walk_up(&w, above < negatives ? above + 1 : negatives, &hit))
        return wr_view_min(sk); /* never: negatives is what the walk counts */
    return -wr_view_value(sk, hit.index);
}

static double round_half_even(double v)
{
    const double down = floor(v);
    const double rest = v - down;
    if (rest != 0.5)
        return rest > 0.5 ? down + 1 : down;
    return fmod(down, 2) == 0 ? down : down + 1;
}

/*
 * The Agent's keys are rounded to the nearest, and read as if rounded down: its bins begin half a
 * bin higher than ours of the same number. Negative ones are read from zero outwards, against the
 * order of ranks: that is its own.
 */
static void agent_ends(const struct weir_sketch *sk, int32_t index, double *low, double *high)
{
    const double lower = wr_view_lower(sk, index);
    const double upper = wr_view_upper(sk, index);
    if (!(lower > 0)) { /* foreign bins can lie below the least double */
        *low = 0;
        *high = upper;
        return;
    }
    const double growth = upper / lower;
    *low = fmin(lower * sqrt(growth), DBL_MAX);
    *high = fmin(*low * growth, DBL_MAX);
}

static double by_agent(const struct weir_sketch *sk, double q)
{
    const double min = wr_view_min(sk);
    const double max = wr_view_max(sk);
    if (q <= 0)
        return min;
    if (q >= 1)
        return max;
    const double rank = round_half_even(rank_in(sk, q));
    struct wr_spot spot;
    first_above(sk, rank, &spot);
    double low = 0;
    double high = 0;
    if (spot.sign != WR_ZERO)
        agent_ends(sk, spot.index, &low, &high);
    if (spot.sign == WR_NEGATIVE) {
        low = -low;
        high = -high;
    }
    if (!spot.below)
        low = min;
    const double part = (count_of(spot.below + spot.weight) - rank) / count_of(spot.weight);
    return fmin(fmax(low * part + high * (1 - part), min), max);
}

/* lower and upper of a bin of positive values, at a fraction of the way on a logarithmic scale. */
static double between(double lower, double upper, double fraction)
{
    if (!(lower > 0)) /* foreign bins can lie below the least double */
        return upper * fraction;
    const double from = log2(lower);
    return fmin(exp2(from + (log2(upper) - from) * fraction), DBL_MAX);
}

/* Ranks are counted from the nearer end, and interpolated in the bin. */
static double by_prometheus(const struct weir_sketch *sk, double q)
{
    const bool low = q < 0.5;
    const double n = count_of(sk->weight);
    const double rank = (low ? q : 1 - q) * n;
    /* the least weight that is not less than rank; the first bin that is not empty at least */
    uint64_t need = units_of(rank, sk->weight);
    need += (double)need < rank * 0x1p20 && need < sk->weight;
    struct wr_pass p;
    struct wr_spot spot;
    struct wr_view_room room;
    room.used = false;
    wr_pass_begin(&p, sk, low ? WR_END_LOW : WR_END_HIGH, &room);
    wr_pass_find(&p, need ? need : 1, &spot);
    if (spot.sign == WR_ZERO)
        return 0;
    const uint64_t before = low ? spot.below : sk->weight - spot.below - spot.weight;
    const double upto = count_of(before + spot.weight);
    const double weight = count_of(spot.weight);
    const double fraction = (low ? rank - (upto - weight) : upto - rank) / weight;
    const double lower = wr_view_lower(sk, spot.index);
    const double upper = wr_view_upper(sk, spot.index);
    if (spot.sign == WR_POSITIVE)
        return between(lower, upper, fraction);
    return -between(lower, upper, 1 - fraction);
}

int weir_sketch_quantile_by(const struct weir_sketch *sk, uint32_t rule, double q,
                            double *ret_value)
{
    static double (*const rules[])(const struct weir_sketch *sk,
                                   double q) = {[WEIR_QUANTILE_JAVA] = by_java,
                                                [WEIR_QUANTILE_GO] = by_go,
                                                [WEIR_QUANTILE_AGENT] = by_agent,
                                                [WEIR_QUANTILE_PROMETHEUS] = by_prometheus};
    if (rule == WEIR_QUANTILE_DEFAULT)
        return weir_sketch_quantile(sk, q, ret_value);
    if (rule >= sizeof rules / sizeof rules[0] || !(q >= 0 && q <= 1))
        return WEIR_EINVAL;
    if (!sk->weight)
        return WEIR_EEMPTY;
    *ret_value = rules[rule](sk, q);
    return WEIR_OK;
}
