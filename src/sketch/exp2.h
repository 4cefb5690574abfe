/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WR_SKETCH_EXP2_H
#define WR_SKETCH_EXP2_H
/*
 * exp2: powers and logarithms of base 2 in integers, for what decides a bin. Nothing here depends
 * on a C library or a floating-point unit: the same bits everywhere.
 *
 * Threads: any. Memory: none.
 */
#include "base/bits.h"

__extension__ typedef unsigned __int128 wr_uint128;

#define WR_LOG2_BITS 112 /* of a fraction */

/* log2 v, in units of 2^-112, at most 2^-110 below the true one. v in [1, DBL_MAX]. */
wr_uint128 wr_log2(double v);
/* The same as a double, to one rounding. */
double wr_log2_double(wr_uint128 log2);
/* The double nearest to 2^(whole + fraction 2^-64) (but for one case in some hundreds, where it is
 * the second nearest). Past DBL_MAX it is DBL_MAX; it underflows to subnormals and 0. */
double wr_exp2(int64_t whole, uint64_t fraction);
/* 2^x for a double. */
double wr_exp2_double(double x);
/* base^(i - offset), log2 being that of the base. |offset| < 2^32. */
double wr_exp2_scaled(wr_uint128 log2, int64_t i, double offset);
#endif
