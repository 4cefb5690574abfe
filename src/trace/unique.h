/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WR_TRACE_UNIQUE_H
#define WR_TRACE_UNIQUE_H
/*
 * unique: which of a span's tags to write when keys repeat: of equal keys the last one, since a
 * map reader keeps the last value and a list reader the first (cases K16).
 *
 * A cheap hash of every key is marked in a bitmap of 1,024 bits. No mark met twice: no key
 * repeats, which is nearly always so, and nothing else is done. Else, or with many tags, an exact
 * set is built from the last tag to the first: O(count), however the keys were chosen.
 *
 * Threads: one at a time. Memory: 9 bytes a tag of the largest span that needed the exact set.
 */
#include <weir/trace.h>

struct wr_trace_unique {
    struct weir_alloc alloc;
    uint64_t seed;
    uint32_t *slots; /* index + 1 */
    size_t slot_count;
    unsigned char *drop;
    size_t drop_cap;
};

void wr_trace_unique_init(struct wr_trace_unique *u, const struct weir_alloc *alloc, uint64_t seed);
void wr_trace_unique_done(struct wr_trace_unique *u);

/*
 * *ret_drop: NULL when all are kept, else count bytes, 1 for a tag to leave out; borrowed until the
 * next call. No key is UTF-16. count <= UINT32_MAX. Errors: WEIR_ENOMEM.
 */
int wr_trace_unique_scan(struct wr_trace_unique *u, const struct weir_trace_tag *tags, size_t count,
                         const unsigned char **ret_drop);
#endif
