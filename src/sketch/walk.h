/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WR_SKETCH_WALK_H
#define WR_SKETCH_WALK_H
/*
 * walk: from a weight to the bin where it is reached, over the counters of one sign.
 *
 * A walk goes from one end of the counters towards the other: a line of 64 bytes at a time, then
 * a word in the line where it happens, then a counter in the word. It can go on from where it
 * stands to a greater weight, so that several questions cost one pass.
 *
 * Lines are added up by AVX2 where the CPU has it, else by words; the sums are integers, so both
 * give the same.
 *
 * Threads: any, while nobody writes. Memory: none.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WR_WALK_LINE 64u

/* The counters of one sign, as they lie. */
struct wr_run {
    const uint8_t *bins; /* of bin base */
    int32_t base;
    uint32_t begin; /* bytes [begin, end) of bins hold every counter that is not 0; whole lines, */
    uint32_t end;   /* or less than one: then whole words */
    uint8_t width;  /* log2 of the bytes of a counter */
    uint8_t shift;  /* a counter is units of 2^-20 << shift */
};

struct wr_walk {
    struct wr_run run;
    uint32_t at;  /* the lines up to here are in sum */
    uint64_t sum; /* in units of the counters */
};
/* From the lowest bin of w->run, or from the highest. */
static inline void wr_walk_from_low(struct wr_walk *w)
{
    w->at = w->run.begin;
    w->sum = 0;
}
static inline void wr_walk_from_high(struct wr_walk *w)
{
    w->at = w->run.end;
    w->sum = 0;
}

/* Where it was reached; weights in units of 2^-20. */
struct wr_hit {
    int32_t index;
    uint64_t before; /* of the bins walked before this one; when it is not reached: of all */
    uint64_t weight; /* of this one */
};

/*
 * On to the first bin with which the weight walked is at least need; need > 0 and not less than
 * the last time. false: the whole run has less; ret->before says how much.
 */
bool wr_walk_up(struct wr_walk *w, uint64_t need, struct wr_hit *ret);
bool wr_walk_down(struct wr_walk *w, uint64_t need, struct wr_hit *ret);
/* Sum over the counters, units of 2^-20. */
uint64_t wr_run_weight(const struct wr_run *run);
/* The same of the bins up to index. */
uint64_t wr_run_weight_upto(const struct wr_run *run, int32_t index);

/* The same in each of two ways, for tests. */
typedef bool wr_walk_fn(struct wr_walk *w, uint64_t need, struct wr_hit *ret);
wr_walk_fn wr_walk_up_words;
wr_walk_fn wr_walk_down_words;
#if defined(__x86_64__)
#define WR_WALK_AVX2 1
wr_walk_fn wr_walk_up_avx2; /* where the CPU has it */
wr_walk_fn wr_walk_down_avx2;
#endif
#endif
