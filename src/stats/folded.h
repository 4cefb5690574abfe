/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WR_STATS_FOLDED_H
#define WR_STATS_FOLDED_H
/*
 * folded: of a field whose limit was reached, which values became the sentinel: the most frequent
 * by name, and how many there were. A space-saving summary of 64 counters: an unknown value takes
 * the least counter and its count, which is then what it may be over by; so a value that was hit
 * more often than 1/64 of all is surely there. The number is a HyperLogLog of 1,024 registers: 3 %
 * standard error.
 *
 * It is of one cycle, the newest that folded any. O(1) a value: the counters are found by an index
 * of their hashes, and the least is looked for once for all that have the same count.
 *
 * Threads: owner.
 */
#include <stddef.h>
#include <stdint.h>

enum {
    WR_FOLDED_SLOTS = 64,
    WR_FOLDED_INDEX = 256, /* a power of two */
    WR_FOLDED_TEXT_MAX = 200,
    WR_FOLDED_BITS = 10
};

struct wr_folded_value {
    uint64_t hash;
    uint64_t count; /* units of 2^-20: hit at most so much */
    uint64_t over;  /* and at least so much less */
    uint16_t bytes;
    uint8_t field;
    uint8_t epoch; /* of the key it was in */
    char text[WR_FOLDED_TEXT_MAX];
};

struct wr_folded_values {
    struct wr_folded_value at[WR_FOLDED_SLOTS];
    uint64_t counts[WR_FOLDED_SLOTS]; /* those of at, side by side */
    uint8_t index[WR_FOLDED_INDEX];   /* by hash: 1 + which; 0: free */
    size_t used;
    uint64_t least;
    size_t cursor; /* none before it has the least count */
    uint8_t registers[1 << WR_FOLDED_BITS];
    int ended; /* the cycle it is of */
};

/* One more hit of a value of a field, which stands in a key of that epoch. */
void wr_folded_add(struct wr_folded_values *v, uint64_t hash, unsigned epoch, size_t field,
                   const char *text, size_t len, uint64_t weight);
/* The cycle has ended; what is known stays until the next that folds any. */
void wr_folded_cycle(struct wr_folded_values *v);
uint64_t wr_folded_distinct(const struct wr_folded_values *v);
/* The rank-th by what it was hit at least, 0 first; NULL past the last. */
const struct wr_folded_value *wr_folded_top(const struct wr_folded_values *v, size_t rank);
#endif
