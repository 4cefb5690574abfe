/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WR_SKETCH_FORMULA_H
#define WR_SKETCH_FORMULA_H
/*
 * formula: the bins of the logarithmic and the interpolated mappings, without a table.
 *
 * A kind is defined by its bounds: bound i is a double, and the bin of a value is the greatest i
 * whose bound is not above it. LOG's bound is base^(i - offset) in integers (exp2.h). That of an
 * interpolated kind is where multiplier * l(v) + offset, computed in doubles as the other makers of
 * these sketches do, reaches i. Logarithms of the C library only guess, and wherever a guess could
 * be wrong the bound itself is asked; so the same bins come out of any C library, and of the table,
 * which is made of the same bounds.
 *
 * Threads: any. Memory: none.
 */
#include "sketch/mapping.h"

/* The least double that is in bin i or above, past DBL_MAX: DBL_MAX; it underflows to 0. */
double wr_formula_bound(const struct weir_mapping *m, int64_t i);
/* The bin of a value: finite, above WR_MAPPING_ZERO_MAX. */
int32_t wr_formula_index(const struct weir_mapping *m, double value);
/* Fill multiplier, accuracy, log2_gamma and mantissa_bits from kind, gamma and offset. WEIR_OK, or
 * WEIR_ERANGE: the index of some double would pass 32 bits. */
int wr_formula_init(struct weir_mapping *m);
/* The narrowest bin, as a part of the octave it lies in: (0, 1], or more. */
double wr_formula_narrowest(const struct weir_mapping *m);
#endif
