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
#define WR_WALK_SPAN 2048u

/* The counters of one sign, as they lie. */
struct wr_run {
    const uint8_t *bins; /* of bin base */
    int32_t base;
    uint32_t begin; /* bytes [begin, end) of bins hold every counter that is not 0; whole lines, */
    uint32_t end;   /* or less than one: then whole words */
    uint8_t width;  /* log2 of the bytes of a counter */
    uint8_t shift;  /* a counter is units of 2^-20 << shift */
    /* Not 0: bins are a list of so many samples, each a 16-bit distance from base below
     * WR_WALK_SPAN, in any order; begin, end and width say nothing. */
    uint16_t listed;
};

struct wr_walk {
    struct wr_run run;
    uint32_t at;  /* the lines up to here are in sum */
    uint64_t sum; /* in units of the counters */
};

/* Where it was reached; weights in units of 2^-20. */
struct wr_hit {
    int32_t index;
    uint64_t before; /* of the bins walked before this one; when it is not reached: of all */
    uint64_t weight; /* of this one */
};

/* From the lowest bin up, from the highest down. */
struct wr_walk wr_walk_from_low(const struct wr_run *run);
struct wr_walk wr_walk_from_high(const struct wr_run *run);
/*
 * On to the first bin with which the weight walked is at least need; need > 0 and not less than
 * the last time. false: the whole run has less; *ret says how much.
 */
bool wr_walk_up(struct wr_walk *w, uint64_t need, struct wr_hit *ret);
bool wr_walk_down(struct wr_walk *w, uint64_t need, struct wr_hit *ret);
/* Sum over the counters, units of 2^-20. */
uint64_t wr_run_weight(const struct wr_run *run);

/*
 * The steps that go by lines: from at on until the line with which *sum reaches wanted, where they
 * stop before adding it; the end of the run when none does. Each in two ways, for tests.
 */
typedef uint32_t wr_skip_fn(const struct wr_run *run, uint32_t at, uint64_t wanted, uint64_t *sum);
wr_skip_fn wr_skip_up_words;
wr_skip_fn wr_skip_down_words;
#if defined(__x86_64__)
#define WR_WALK_AVX2 1
wr_skip_fn wr_skip_up_avx2;
wr_skip_fn wr_skip_down_avx2;
#endif
#endif
