/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WR_CLIENT_SPLIT_H
#define WR_CLIENT_SPLIT_H
/* split: a payload of traces that was too large, as two. */
#include "queue.h"

/*
 * Two items of half the traces each, in their order, made of item, which stays. v0.4 is cut where
 * it is; v0.5 has its dictionary in both; in v1.0 the second half would miss the strings of the
 * first: false. So it is for a single trace, for bytes that are no payload, and without memory.
 */
bool wr_split(const struct weir_alloc *alloc, const struct wr_item *item,
              struct wr_item *ret_halves[2]);
#endif
