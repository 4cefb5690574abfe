/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rank: the other way round: how much of the weight is not above a value; and how far an answer
 * can be from the truth.
 *
 * Threads: any, while nobody writes. Memory: none.
 */
#include "sketch/quantile.h"

#define LEAST_NS 1e-9 /* the shortest duration that is not 0, in seconds */

/* Weight of the bins of a sign up to index by magnitude. */
static uint64_t weight_upto(const struct weir_sketch *sk, enum wr_sign sign, int32_t index)
{
    struct wr_view_room room;
    struct wr_run run;
    room.used = false;
    wr_view_run(sk, sign, WR_END_LOW, &room, &run);
    return wr_run_weight_upto(&run, index);
}

static uint64_t weight_of(const struct weir_sketch *sk, enum wr_sign sign)
{
    struct wr_view_room room;
    struct wr_run run;
    room.used = false;
    wr_view_run(sk, sign, WR_END_LOW, &room, &run);
    return wr_run_weight(&run);
}

/* The bin where a value of bin index is counted. */
static int32_t counted_at(const struct weir_sketch *sk, enum wr_sign sign, int32_t index)
{
    int32_t floor;
    return wr_view_floor(sk, sign, &floor) && index < floor ? floor : index;
}

/* Weight of the bins that are not above value, its own among them. */
static uint64_t weight_at_most(const struct weir_sketch *sk, double value)
{
    int32_t index;
    switch (wr_view_place(sk, value, &index)) {
    case WR_POSITIVE:
        index = counted_at(sk, WR_POSITIVE, index);
        return weight_of(sk, WR_NEGATIVE) + wr_sketch_zero(sk) +
               weight_upto(sk, WR_POSITIVE, index);
    case WR_ZERO:
        return weight_of(sk, WR_NEGATIVE) + wr_sketch_zero(sk);
    case WR_NEGATIVE:
        index = counted_at(sk, WR_NEGATIVE, index);
        return weight_of(sk, WR_NEGATIVE) - weight_upto(sk, WR_NEGATIVE, index - 1);
    }
    return 0;
}

int weir_sketch_rank(const struct weir_sketch *sk, double value, double *ret_fraction)
{
    if (value != value)
        return WEIR_EINVAL;
    if (!sk->weight)
        return WEIR_EEMPTY;
    if (value < wr_view_min(sk))
        *ret_fraction = 0;
    else if (value >= wr_view_max(sk))
        *ret_fraction = 1;
    else
        *ret_fraction = (double)weight_at_most(sk, value) / (double)sk->weight;
    return WEIR_OK;
}

/*
 * An error as it is told: a millionth more, for what the rounding of logarithms and of answers
 * adds at most.
 */
static double told(double error)
{
    return error * (1 + 0x1p-20);
}

/*
 * What a collapse moved lies between the sample nearest to zero and the bin it came to, so an
 * answer there is too far from zero by a factor of at most answer / nearest. Infinite when nothing
 * is known of the nearest.
 */
static double collapse_error(const struct weir_sketch *sk, enum wr_sign sign, double magnitude)
{
    double nearest = sign == WR_POSITIVE ? wr_view_min(sk) : -wr_view_max(sk);
    if (!weir_sketch_is_exact(sk))
        nearest = 0;
    if (weir_sketch_grid(sk) == WEIR_GRID_NS && nearest < LEAST_NS)
        nearest = LEAST_NS;
    return nearest > 0 ? magnitude / nearest - 1 : HUGE_VAL;
}

/* Of the answer to a rank that is no exact extreme's. */
static double error_at(const struct weir_sketch *sk, double q, uint64_t rank)
{
    struct wr_spot spot;
    wr_spot_of_rank(sk, rank, &spot);
    if (spot.sign == WR_ZERO) /* put there for want of knowing better, if no bound is inherited */
        return isinf(wr_sketch_inherited(sk)) ? (double)INFINITY : 0;
    const double error = wr_view_error(sk);
    int32_t floor;
    if (!wr_view_floor(sk, spot.sign, &floor) || spot.index > floor)
        return error;
    double answer = 0;
    WR_IGNORE(weir_sketch_quantile(sk, q, &answer)); /* it has one: not empty, q in range */
    return fmax(error, collapse_error(sk, spot.sign, fabs(answer)));
}

int weir_sketch_error_bound(const struct weir_sketch *sk, double q, double *ret_bound)
{
    if (!(q >= 0 && q <= 1))
        return WEIR_EINVAL;
    if (!sk->weight)
        return WEIR_EEMPTY;
    const bool inside = q > 0 && q < 1;
    if (!inside && weir_sketch_is_exact(sk)) {
        *ret_bound = 0;
        return WEIR_OK;
    }
    const uint64_t last = sk->weight - 1;
    *ret_bound = told(error_at(sk, q, inside ? wr_rank_of(sk->weight, q) : q > 0 ? last : 0));
    return WEIR_OK;
}
