/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mapping: the tables, and the way back from an index. See mapping.h.
 * Threads: any. Memory: none.
 */
#include "sketch/mapping.h"

#include <float.h>

extern const double wr_mapping_bounds[WR_MAPPING_SUB + 1];
extern const double wr_mapping_values[WR_MAPPING_SUB];

#include "sketch/bounds.inc"

/* NOLINTBEGIN(misc-redundant-expression): two files have to say the same */
_Static_assert(BOUNDS_SCALE == WR_MAPPING_SCALE, "bounds.inc is of another scale");
_Static_assert(BOUNDS_CELL_BITS == WR_MAPPING_CELL_BITS, "bounds.inc has other cells");
_Static_assert(!BOUNDS_VALUE_FIRST, "an octave of values starts at a bound");
_Static_assert(BOUNDS_NS_FIRST == WR_MAPPING_NS_FIRST, "bounds.inc is of another grid");
/* NOLINTEND(misc-redundant-expression) */

/* floor(index / 64), also below zero. */
static int32_t octave_of(int32_t index)
{
    return (index - (int32_t)((uint32_t)index % WR_MAPPING_SUB)) / WR_MAPPING_SUB;
}

/* 2^e for a normal exponent. */
static double power_of_two(int32_t e)
{
    const uint64_t bits = (uint64_t)(e + 1023) << 52;
    double v;
    memcpy(&v, &bits, sizeof v);
    return v;
}

double wr_mapping_value(int32_t index)
{
    return wr_mapping_values[(uint32_t)index % WR_MAPPING_SUB] * power_of_two(octave_of(index));
}

double wr_mapping_lower(int32_t index)
{
    if (index > WR_MAPPING_VALUE_MAX)
        return DBL_MAX;
    return wr_mapping_bounds[(uint32_t)index % WR_MAPPING_SUB] * power_of_two(octave_of(index));
}

double wr_mapping_accuracy(void)
{
    return BOUNDS_ACCURACY;
}
