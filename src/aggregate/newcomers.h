/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WR_AGGREGATE_NEWCOMERS_H
#define WR_AGGREGATE_NEWCOMERS_H
/*
 * newcomers: what is known, in bounded room, of the keys that found the table full: a lower bound
 * of each frequent one's hits, the ten largest by name, and how many there are.
 *
 * The bounds are a frequent-items summary: counters by hash; when they are used up, the median of
 * them is taken off each and those that reach nothing go. What is left of a counter was hit at
 * least so much, and at most by what was taken off (error) more. A purge frees half, so it is O(1)
 * a record. Two keys of one hash are one here; they meet only by chance (the hash is seeded).
 * The number of keys is a HyperLogLog of 1,024 registers: 3 % standard error.
 *
 * Threads: owner.
 */
#include "base/alloc.h"
#include "base/bits.h"

enum {
    WR_HEAVY_SLOTS = 4096, /* a power of two */
    WR_HEAVY_MAX = WR_HEAVY_SLOTS / 4 * 3,
    WR_DISTINCT_BITS = 10,
    WR_TOP_MAX = 10,
    WR_TOP_KEY_MAX = 1024 /* longer keys are not listed */
};

struct wr_heavy {
    uint64_t hash;
    uint64_t weight; /* hit at least so much; 0: free */
};

struct wr_top {
    uint64_t hash;
    uint64_t weight; /* hit at least so much */
    size_t key_bytes;
    char key[WR_TOP_KEY_MAX];
};

struct wr_newcomers {
    struct wr_heavy slots[WR_HEAVY_SLOTS];
    struct wr_heavy spare[WR_HEAVY_SLOTS]; /* where a purge moves what is left */
    size_t used;
    uint64_t error; /* taken off since the last reset */
    uint8_t registers[1 << WR_DISTINCT_BITS];
    struct wr_top top[WR_TOP_MAX]; /* in no order */
    size_t top_count;
    uint64_t top_least; /* of a full top, the least weight */
};

/* One more record of that key. Returns the key's lower bound, the record in it. */
uint64_t wr_newcomers_add(struct wr_newcomers *n, uint64_t hash, const char *key, size_t key_bytes,
                          uint64_t weight);
/* A key that was in the table comes with what it had there. */
void wr_newcomers_lower(struct wr_newcomers *n, uint64_t hash, uint64_t weight);
/* The key has a place now. */
void wr_newcomers_forget(struct wr_newcomers *n, uint64_t hash);
/* A window has turned: bounds are of one window. What is known by name, and the number, stay until
 * the first newcomer of the next that has any. */
void wr_newcomers_turn(struct wr_newcomers *n);
uint64_t wr_newcomers_distinct(const struct wr_newcomers *n);
/* The rank-th largest, 0 first; NULL past the last. */
const struct wr_top *wr_newcomers_top(const struct wr_newcomers *n, size_t rank);
#endif
