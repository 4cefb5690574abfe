/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WR_SKETCH_LOG_TABLE_H
#define WR_SKETCH_LOG_TABLE_H
/*
 * log_table: the table that a mapping other than BASE2 is recorded with; see mapping.h for its
 * entries.
 *
 * It covers [2^-30, 2^64): a nanosecond to centuries in seconds, and every duration in
 * nanoseconds; of which recording touches what the values need. Threads: owner.
 * Memory: the caller's.
 */
#include "sketch/mapping.h"

/* Cells that a table for m takes; 0: so fine that it has none. m is initialised. */
uint32_t wr_log_table_cells(const struct weir_mapping *m);
/* Bounds that lie in it, with one more on either side; it has cells. */
uint32_t wr_log_table_bounds(const struct weir_mapping *m);
/* Fill as many cells, as many bounds behind them, and m's fields about both. */
void wr_log_table_fill(struct weir_mapping *m, uint64_t *cells, uint32_t cell_count,
                       uint32_t bound_count);
#endif
