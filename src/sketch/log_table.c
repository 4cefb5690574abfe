/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log_table: see log_table.h.
 *
 * One walk over the cells in ascending order, with the bin that the cell starts in and the next
 * bound as a double's bits (bits of positive doubles are in the order of the doubles).
 *
 * Threads: owner. Memory: the caller's.
 */
#include "sketch/log_table.h"

#include "sketch/formula.h"

#define OCTAVE_FIRST (-30)
#define OCTAVES 94u
/* 2^9 cells an octave are 385 KiB: more would not stay in a cache with what is recorded. */
#define CELL_BITS_MAX 9

/* Cells an octave, as a power of two: a cell is narrower than any bin, so it holds one bound. */
static int cell_bits(const struct weir_mapping *m)
{
    const double narrowest = wr_formula_narrowest(m) * (1 - 0x1p-20);
    int k = 0;
    while (k <= CELL_BITS_MAX && ldexp(1, -k) >= narrowest)
        k++;
    return k;
}

uint32_t wr_log_table_cells(const struct weir_mapping *m)
{
    const int k = cell_bits(m);
    return k > CELL_BITS_MAX ? 0 : OCTAVES << k;
}

static int64_t first_index(const struct weir_mapping *m)
{
    return wr_formula_index(m, ldexp(1, OCTAVE_FIRST));
}

uint32_t wr_log_table_bounds(const struct weir_mapping *m)
{
    const int64_t last = wr_formula_index(m, ldexp(1, OCTAVE_FIRST + (int)OCTAVES));
    return (uint32_t)(last - first_index(m)) + 2; /* the upper bound of that one too */
}

void wr_log_table_fill(struct weir_mapping *m, uint64_t *cells, uint32_t cell_count,
                       uint32_t bound_count)
{
    const uint32_t shift = (uint32_t)(52 - cell_bits(m));
    const uint64_t first = wr_mapping_bits(ldexp(1, OCTAVE_FIRST)) >> shift;
    double *const bounds = (void *)(cells + cell_count);
    m->index_first = (int32_t)first_index(m);
    for (uint32_t i = 0; i < bound_count; i++)
        bounds[i] = wr_formula_bound(m, (int64_t)m->index_first + i);
    uint32_t at = 0;
    for (uint32_t i = 0; i < cell_count; i++) {
        const uint64_t cell = first + i;
        const uint64_t start = cell << shift;
        const uint64_t end = (cell + 1) << shift;
        while (wr_mapping_bits(bounds[at + 1]) <= start)
            at++;
        const uint64_t next = wr_mapping_bits(bounds[at + 1]);
        const uint64_t carry = next < end ? end - next : 0;
        cells[i] = (((uint64_t)at - cell) << shift) + carry;
    }
    m->cells = cells;
    m->cell_first = first;
    m->cell_count = cell_count;
    m->cell_shift = shift;
    m->bounds = bounds;
    m->bound_count = bound_count;
}
