/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WR_AGGREGATE_DISPLACE_H
#define WR_AGGREGATE_DISPLACE_H
/*
 * displace: at a table full of live keys, who may have the coldest key's place. An entry's heat is
 * the most it was hit in one open window, and for one that was given its place in the current one
 * what it was hit before that besides. When a newcomer's lower bound passes the least heat, that
 * entry's slots are folded into the overflow entry's, counts and sketches, and its place is free.
 *
 * The coldest are found by a walk over the table that keeps the 256 coldest; a walk is paid for by
 * the overflow records since the last, four entries a record, so it is O(1) a record.
 *
 * Threads: owner.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct wr_shard;
struct wr_entry;

enum { WR_COLD_MAX = 256 };

struct wr_cold {
    struct wr_cold_entry {
        struct wr_entry *entry; /* may be gone: asked of the table before it is looked at */
        uint64_t hash;
        uint64_t heat; /* at the walk */
    } at[WR_COLD_MAX]; /* coldest first */
    size_t next;
    size_t count;
    uint64_t floor;  /* nothing was colder at the last walk, and within a window nothing cools */
    uint64_t credit; /* entries that may be walked; eight buckets count as one */
};

/* Entries are cooler than they were: a window has turned, or was sealed. */
void wr_cold_reset(struct wr_shard *s);
/* Free the place of an entry that was hit less than bound; false: none, or no memory to fold it.
 * On true exactly one entry is idle. */
bool wr_displace(struct wr_shard *s, uint64_t bound);
#endif
