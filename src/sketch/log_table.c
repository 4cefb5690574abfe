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

void wr_log_table_fill(struct weir_mapping *m, uint64_t *cells, uint32_t count)
{
    const uint32_t shift = (uint32_t)(52 - cell_bits(m));
    const uint64_t first = wr_mapping_bits(ldexp(1, OCTAVE_FIRST)) >> shift;
    int64_t index = wr_formula_index(m, ldexp(1, OCTAVE_FIRST));
    uint64_t next = wr_mapping_bits(wr_formula_bound(m, index + 1));
    m->index_first = (int32_t)index;
    for (uint32_t i = 0; i < count; i++) {
        const uint64_t cell = first + i;
        const uint64_t start = cell << shift;
        const uint64_t end = (cell + 1) << shift;
        while (next <= start) {
            index++;
            next = wr_mapping_bits(wr_formula_bound(m, index + 1));
        }
        const uint64_t carry = next < end ? end - next : 0;
        cells[i] = (((uint64_t)(index - m->index_first) - cell) << shift) + carry;
    }
    m->cells = cells;
    m->cell_first = first;
    m->cell_count = count;
    m->cell_shift = shift;
}
