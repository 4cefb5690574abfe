/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WR_SKETCH_MAPPING_H
#define WR_SKETCH_MAPPING_H
/*
 * mapping: from a value to the index of its bin, and from an index to bounds and the answer.
 *
 * Two shapes of table, both read by one load, one add and one shift; no logarithm and no division,
 * so the bins are the same on every CPU and compiler.
 *
 * BASE2. Bin i is (g^i, g^(i+1)] with g = 2^(1/64) at scale 6. Inside an octave [2^e, 2^(e+1)) the
 * bounds are the same 64 fractions whatever e is, so an index is 64 e plus the number of those
 * fractions below the value's own. The top 7 bits of the fraction name a cell; a cell is narrower
 * than any bin, so it has one bound inside at most. The table entry of a cell is
 *
 *     (bounds below the cell) << 52  +  (2^52 - 1 - the bound inside)
 *
 * and adding the fraction carries into bit 52 exactly when the fraction is above that bound. What
 * lies on a bound is not above it: bins include their upper bound. For doubles at scale 6 the same
 * is also there in 64ths of an octave, to be added to all bits of a value at once, its exponent
 * included. The nanosecond grid has its own
 * cells, of the bounds 10^9 g^i, so that bins are of seconds. Scale 8 has its own tables of 256
 * bounds, and a coarser scale is the index of scale 6 or 8 shifted right.
 * Tables: bounds.inc, written by tools/gen-bounds.py from exact integers.
 *
 * Any other kind. Octaves differ, so the cell's number is the exponent and the top k bits of the
 * fraction, for the octaves that values of programs lie in. With s = 52 - k and cell = bits >> s,
 * the entry is
 *
 *     (index at the start - first - cell) << s  +  (2^s - (the bound inside - the start))
 *
 * and (bits + entry) >> s is index - first. Bins include their lower bound. See log_table.c. What
 * the table does not cover, and a mapping without one, take the way of formula.h. The bounds that
 * the table was made of lie behind it, so that the way back is one load as well.
 */
#include <float.h>
#include <stdatomic.h>
#include <weir/mapping.h>
#include "base/alloc.h"
#include "base/bits.h"
#include "sketch/exp2.h"

#define WR_MAPPING_SCALE 6
#define WR_MAPPING_SUB (1 << WR_MAPPING_SCALE) /* bins an octave */
#define WR_MAPPING_CELL_BITS (WR_MAPPING_SCALE + 1)
#define WR_MAPPING_NS_FIRST (-1913) /* the lowest i with 10^9 g^i >= 1 */

/* The finest: scale 8, and 7 from its tables. */
#define WR_MAPPING_FINE_SCALE 8
#define WR_MAPPING_FINE_SUB (1 << WR_MAPPING_FINE_SCALE)
#define WR_MAPPING_FINE_CELL_BITS (WR_MAPPING_FINE_SCALE + 1)
#define WR_MAPPING_FINE_NS_FIRST (-7653)

/* Values whose magnitude is not above this are zeros: subnormals have too few bits for a bin. */
#define WR_MAPPING_ZERO_MAX 0x1p-1022
/* At scale 6 every index lies in these: of 1 and INT64_MAX ns; just above ZERO_MAX and of DBL_MAX.
 * Those of another mapping: wr_mapping_limits. */
#define WR_MAPPING_NS_MIN (WR_MAPPING_NS_FIRST - 1)
#define WR_MAPPING_NS_MAX (62 * WR_MAPPING_SUB + WR_MAPPING_NS_FIRST + WR_MAPPING_SUB - 1)
#define WR_MAPPING_VALUE_MIN (-1022 * WR_MAPPING_SUB)
#define WR_MAPPING_VALUE_MAX (1023 * WR_MAPPING_SUB + WR_MAPPING_SUB - 1)
/* What wr_mapping_index_many says of a value that has no bin. No bin has this number. */
#define WR_MAPPING_NO_BIN INT32_MIN

/* Answers of the bins of the octave of 1, scale 6. */
extern WR_HIDDEN const double wr_mapping_values[WR_MAPPING_SUB];
extern WR_HIDDEN const uint64_t wr_mapping_value_cells[1 << WR_MAPPING_CELL_BITS];
extern WR_HIDDEN const uint64_t wr_mapping_value_steps[1 << WR_MAPPING_CELL_BITS];
extern WR_HIDDEN const uint64_t wr_mapping_ns_cells[1 << WR_MAPPING_CELL_BITS];
extern WR_HIDDEN const uint64_t wr_mapping_fine_value_cells[1 << WR_MAPPING_FINE_CELL_BITS];
extern WR_HIDDEN const uint64_t wr_mapping_fine_ns_cells[1 << WR_MAPPING_FINE_CELL_BITS];

struct weir_mapping {
    uint32_t kind;
    int32_t scale; /* of BASE2 */
    /* The table; cell_count 0: there is none. */
    const uint64_t *cells; /* behind this struct, in its block */
    uint64_t cell_first;   /* bits >> cell_shift of the first one */
    uint32_t cell_count;
    int32_t index_first; /* what entries count from */
    uint32_t cell_shift;
    uint32_t bound_count;
    const double *bounds;  /* of index_first and on: behind the cells; none without a table */
    int32_t mantissa_bits; /* LINEAR that is the top bits of the mantissa: how many; else -1 */
    double gamma;
    double offset;
    double multiplier; /* bins an octave */
    double accuracy;
    wr_uint128 log2_gamma; /* units of 2^-112 */
    struct weir_alloc alloc;
    size_t bytes; /* of the block */
    _Atomic uint32_t refs;
    bool fixed; /* static: not counted, never freed */
};

/* Every scale of base 2; they are fixed. */
extern WR_HIDDEN const struct weir_mapping wr_mapping_base2s[WEIR_SCALE_MAX - WEIR_SCALE_MIN + 1];
/* Base 2 at scale 6: what sketches have by default. */
#define wr_mapping_default (wr_mapping_base2s[WR_MAPPING_SCALE - WEIR_SCALE_MIN])

WR_INLINE uint64_t wr_mapping_bits(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* How many of the octave's bounds lie below this 52-bit fraction. */
WR_INLINE int32_t wr_mapping_below(const uint64_t *cells, unsigned cell_bits, uint64_t fraction)
{
    return (int32_t)((fraction + cells[fraction >> (52 - cell_bits)]) >> 52);
}

/* The index at a scale of the bin that an index of a finer scale lies in: rounded down. */
WR_INLINE int32_t wr_mapping_coarser(int32_t index, uint32_t down)
{
    /* unsigned from 2^31 up: shifting a negative number right is left to the compiler in C */
    const uint32_t up = UINT32_C(1) << 31;
    return (int32_t)((((uint32_t)index + up) >> down) - (up >> down));
}

/* Scale 6: the bin of a duration, in seconds. duration_ns > 0; above 2^53 it is rounded down to a
 * double. */
WR_INLINE int32_t wr_mapping_index_ns(int64_t duration_ns)
{
    const unsigned zeros = wr_clz64((uint64_t)duration_ns);
    const uint64_t fraction = ((uint64_t)duration_ns << zeros << 1) >> 12;
    const int32_t octave = (int32_t)(63 ^ zeros); /* 63 - zeros: what CPUs count */
    return octave * WR_MAPPING_SUB + (WR_MAPPING_NS_FIRST - 1) +
           wr_mapping_below(wr_mapping_ns_cells, WR_MAPPING_CELL_BITS, fraction);
}

/* Scale 6: the bin of a value: finite, above WR_MAPPING_ZERO_MAX. */
WR_INLINE int32_t wr_mapping_index_value(double value)
{
    const uint64_t bits = wr_mapping_bits(value);
    const unsigned low = 52 - WR_MAPPING_SCALE;
    const uint64_t cell = bits >> (52 - WR_MAPPING_CELL_BITS) & ((1 << WR_MAPPING_CELL_BITS) - 1);
    return (int32_t)((bits + wr_mapping_value_steps[cell]) >> low) - (1023 * WR_MAPPING_SUB + 1);
}

/* As the two above, scale 8. */
int32_t wr_mapping_index_fine_ns(int64_t duration_ns);
int32_t wr_mapping_index_fine_value(double value);
/* Outside of the table: the way of formula.h. */
int32_t wr_mapping_index_slow(const struct weir_mapping *m, double value);

/* The bin of a magnitude: finite, above WR_MAPPING_ZERO_MAX. */
WR_INLINE int32_t wr_mapping_index(const struct weir_mapping *m, double value)
{
    if (m->kind == WEIR_MAPPING_BASE2) {
        if (WR_LIKELY(m->scale <= WR_MAPPING_SCALE))
            return wr_mapping_coarser(wr_mapping_index_value(value),
                                      (uint32_t)(WR_MAPPING_SCALE - m->scale));
        return wr_mapping_coarser(wr_mapping_index_fine_value(value),
                                  (uint32_t)(WR_MAPPING_FINE_SCALE - m->scale));
    }
    const uint64_t bits = wr_mapping_bits(value);
    const uint64_t at = (bits >> m->cell_shift) - m->cell_first;
    if (WR_LIKELY(at < m->cell_count))
        return m->index_first + (int32_t)((bits + m->cells[at]) >> m->cell_shift);
    return wr_mapping_index_slow(m, value);
}

/* The bin of a duration above 0: of seconds for BASE2, of nanoseconds for another kind. */
WR_INLINE int32_t wr_mapping_index_duration(const struct weir_mapping *m, int64_t duration_ns)
{
    if (m->kind == WEIR_MAPPING_BASE2) {
        if (WR_LIKELY(m->scale <= WR_MAPPING_SCALE))
            return wr_mapping_coarser(wr_mapping_index_ns(duration_ns),
                                      (uint32_t)(WR_MAPPING_SCALE - m->scale));
        return wr_mapping_coarser(wr_mapping_index_fine_ns(duration_ns),
                                  (uint32_t)(WR_MAPPING_FINE_SCALE - m->scale));
    }
    return wr_mapping_index(m, (double)duration_ns);
}

/* As weir_mapping_lower and weir_mapping_value, for what neither lies in a table nor is the
 * default's. */
double wr_mapping_lower_slow(const struct weir_mapping *m, int32_t index);
double wr_mapping_value_slow(const struct weir_mapping *m, int32_t index);

/* The lower bound of a bin. */
WR_INLINE double wr_mapping_lower(const struct weir_mapping *m, int32_t index)
{
    const uint32_t at = (uint32_t)index - (uint32_t)m->index_first;
    return WR_LIKELY(at < m->bound_count) ? m->bounds[at] : wr_mapping_lower_slow(m, index);
}

/* What a bin answers. */
WR_INLINE double wr_mapping_value(const struct weir_mapping *m, int32_t index)
{
    const uint32_t biased = (uint32_t)index - (uint32_t)WR_MAPPING_VALUE_MIN;
    if (m == &wr_mapping_default &&
        biased <= (uint32_t)(WR_MAPPING_VALUE_MAX - WR_MAPPING_VALUE_MIN)) {
        const uint64_t bits = (uint64_t)(biased / WR_MAPPING_SUB + 1) << 52;
        double octave;
        memcpy(&octave, &bits, sizeof octave);
        return wr_mapping_values[biased % WR_MAPPING_SUB] * octave;
    }
    const uint32_t at = (uint32_t)index - (uint32_t)m->index_first;
    if (at < m->bound_count) {
        const double v = m->bounds[at] * (1 + m->accuracy);
        return v < DBL_MAX ? v : DBL_MAX;
    }
    return wr_mapping_value_slow(m, index);
}

/* The bins of the magnitudes of n values; WR_MAPPING_NO_BIN for zeros (up to WR_MAPPING_ZERO_MAX),
 * NaN and infinities. The same numbers as wr_mapping_index, faster. */
void wr_mapping_index_many(const struct weir_mapping *m, const double *values, size_t n,
                           int32_t *ret_indices);
/* The same without vector instructions, for comparison. */
void wr_mapping_index_many_scalar(const struct weir_mapping *m, const double *values, size_t n,
                                  int32_t *ret_indices);

/* The bins of the least and the greatest that is not a zero: of values, or of durations. */
void wr_mapping_limits(const struct weir_mapping *m, bool durations, int32_t *ret_min,
                       int32_t *ret_max);

/* As weir_mapping_new, without the table: for reading, a few hundred bytes and a microsecond.
 * Recording with it is right, and slow. */
WEIR_NODISCARD int wr_mapping_read_only(const struct weir_alloc *alloc, uint32_t kind, double gamma,
                                        double offset, struct weir_mapping **ret_mapping);
/* Is it the one that these would make? Nothing is allocated. kind may be BASE2: never. */
bool wr_mapping_is(const struct weir_mapping *m, uint32_t kind, double gamma, double offset);
#endif
