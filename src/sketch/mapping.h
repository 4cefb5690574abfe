/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WR_SKETCH_MAPPING_H
#define WR_SKETCH_MAPPING_H
/*
 * mapping: from a value to the index of its bin, and from an index to bounds and the answer.
 *
 * Bin i is (g^i, g^(i+1)] with g = 2^(1/64). Inside an octave [2^e, 2^(e+1)) the bounds are the
 * same 64 fractions whatever e is, so an index is 64 e plus the number of those fractions below
 * the value's own. The top 7 bits of the fraction name a cell; a cell is narrower than any bin,
 * so it has one bound inside at most. The table entry of a cell is
 *
 *     (bounds below the cell) << 52  +  (2^52 - 1 - the bound inside)
 *
 * and adding the fraction carries into bit 52 exactly when the fraction is above that bound. One
 * load, one add, one shift; no logarithm and no division, so the same on every CPU and compiler.
 * What lies on a bound is not above it: bins include their upper bound.
 *
 * The nanosecond grid has its own cells, of the bounds 10^9 g^i, so that bins are of seconds.
 *
 * Tables: bounds.inc, written by tools/gen-bounds.py from exact integers. A coarser scale is this
 * index shifted right; a finer one needs its own tables.
 */
#include <stdatomic.h>
#include <weir/mapping.h>
#include "base/alloc.h"
#include "base/bits.h"

#define WR_MAPPING_SCALE 6
#define WR_MAPPING_SUB (1 << WR_MAPPING_SCALE) /* bins an octave */
#define WR_MAPPING_CELL_BITS (WR_MAPPING_SCALE + 1)
#define WR_MAPPING_NS_FIRST (-1913) /* the lowest i with 10^9 g^i >= 1 */

/* Values whose magnitude is not above this are zeros: subnormals have too few bits for a bin. */
#define WR_MAPPING_ZERO_MAX 0x1p-1022
/* Every index lies in these: of 1 and INT64_MAX ns; just above ZERO_MAX and of DBL_MAX. */
#define WR_MAPPING_NS_MIN (WR_MAPPING_NS_FIRST - 1)
#define WR_MAPPING_NS_MAX (62 * WR_MAPPING_SUB + WR_MAPPING_NS_FIRST + WR_MAPPING_SUB - 1)
#define WR_MAPPING_VALUE_MIN (-1022 * WR_MAPPING_SUB)
#define WR_MAPPING_VALUE_MAX (1023 * WR_MAPPING_SUB + WR_MAPPING_SUB - 1)

extern const uint64_t wr_mapping_value_cells[1 << WR_MAPPING_CELL_BITS];
extern const uint64_t wr_mapping_ns_cells[1 << WR_MAPPING_CELL_BITS];

/* How many of the octave's bounds lie below this 52-bit fraction: 0..64. */
WR_INLINE int32_t wr_mapping_below(const uint64_t *cells, uint64_t fraction)
{
    return (int32_t)((fraction + cells[fraction >> (52 - WR_MAPPING_CELL_BITS)]) >> 52);
}

/* The bin of a duration, in seconds. duration_ns > 0; above 2^53 it is rounded down to a double. */
WR_INLINE int32_t wr_mapping_index_ns(int64_t duration_ns)
{
    const unsigned zeros = wr_clz64((uint64_t)duration_ns);
    const uint64_t fraction = ((uint64_t)duration_ns << zeros << 1) >> 12;
    const int32_t octave = (int32_t)(63 - zeros);
    return octave * WR_MAPPING_SUB + (WR_MAPPING_NS_FIRST - 1) +
           wr_mapping_below(wr_mapping_ns_cells, fraction);
}

/* The bin of a value: finite, above WR_MAPPING_ZERO_MAX. */
WR_INLINE int32_t wr_mapping_index_value(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    const int32_t octave = (int32_t)(bits >> 52) - 1023;
    return octave * WR_MAPPING_SUB - 1 +
           wr_mapping_below(wr_mapping_value_cells, bits & (((uint64_t)1 << 52) - 1));
}

struct weir_mapping {
    uint32_t kind;
    int32_t scale; /* of BASE2 */
    double gamma;
    double offset;
    double multiplier; /* indices an e-fold (LOG) or an octave (the interpolated ones) */
    double accuracy;
    struct weir_alloc alloc;
    _Atomic uint32_t refs;
    bool fixed; /* static: not counted, never freed */
};

/* Base 2 at scale 6: what sketches have by default. */
extern const struct weir_mapping wr_mapping_default;

/* The bin of a magnitude: finite, above WR_MAPPING_ZERO_MAX. */
int32_t wr_mapping_index(const struct weir_mapping *m, double value);
/* The bin of a duration above 0: of seconds for BASE2, of nanoseconds for another kind. */
int32_t wr_mapping_index_duration(const struct weir_mapping *m, int64_t duration_ns);
#endif
