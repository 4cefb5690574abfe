/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WR_SKETCH_BINS_H
#define WR_SKETCH_BINS_H
/*
 * bins: a sketch seen as numbered bins, for those who write it in another format or build it from
 * one.
 *
 * Threads: reading any, building owner. Memory: building makes bins, never more than the sketch's
 * limit.
 */
#include <weir/sketch.h>

enum wr_bins_sign { WR_BINS_POSITIVE, WR_BINS_NEGATIVE /* by magnitude */ };

/* The lowest and highest used bin; false: there is none. O(bins) at worst. */
bool wr_bins_range(const struct weir_sketch *sk, enum wr_bins_sign sign, int32_t *ret_lo,
                   int32_t *ret_hi);
/* Weights of the bins [lo, lo + n), units of 2^-20; 0 for those that are not used. */
void wr_bins_read(const struct weir_sketch *sk, enum wr_bins_sign sign, int32_t lo, size_t n,
                  uint64_t *ret_weights);
/* Counts of the bins [lo, lo + n); false: one of them is not whole, or has more than 16 bits. */
bool wr_bins_read_small(const struct weir_sketch *sk, enum wr_bins_sign sign, int32_t lo, size_t n,
                        uint16_t *ret_counts);
/*
 * The positive bins of a sketch that is a list of samples: a bit a used bin, and its count, both
 * above base; no other count is written. Returns how many samples; 0: it is not such a sketch.
 */
#define WR_BINS_FEW_SPAN 2048u
size_t wr_bins_few(const struct weir_sketch *sk, int32_t *ret_base,
                   uint64_t ret_bits[WR_BINS_FEW_SPAN / 64], uint16_t ret_counts[WR_BINS_FEW_SPAN]);
/* Weight of the zero bin. */
uint64_t wr_bins_zero(const struct weir_sketch *sk);

/* What came with the bins; what did not is derived from them. */
struct wr_bins_stats {
    bool has_sum;
    bool has_min;
    bool has_max;
    double sum;
    double min;
    double max;
};

/*
 * Building replaces the contents of a WEIR_GRID_VALUE sketch: begin, then bins in any order, the
 * same one more than once if need be (they add), then end. Between begin and end nothing else may
 * be done with sk. After a failure clear it.
 *
 * begin takes over the mapping, unless the sketch's own is equal. Errors: WEIR_ENOMEM;
 * WEIR_EVERSION (a sketch of a pool keeps the pool's mapping); sk is then empty. Index range: any
 * int32, the limit of bins collapses the lowest. Errors of add: WEIR_ENOMEM, WEIR_ERANGE (the total
 * would pass 64 bits). weight 0 does nothing. Errors of end: WEIR_EFORMAT (stats not finite, min
 * above max, no bins but stats that say otherwise is not an error).
 */
WEIR_NODISCARD int wr_bins_begin(struct weir_sketch *sk, const struct weir_mapping *mapping);
WEIR_NODISCARD int wr_bins_add(struct weir_sketch *sk, enum wr_bins_sign sign, int32_t index,
                               uint64_t weight);
/* The bins [first, first + n) at once: what add does for each, with one change of shape. Their last
 * is an int32 too. */
WEIR_NODISCARD int wr_bins_add_run(struct weir_sketch *sk, enum wr_bins_sign sign, int32_t first,
                                   const uint64_t *weights, size_t n);
/* The same with whole counts. */
WEIR_NODISCARD int wr_bins_add_counts(struct weir_sketch *sk, enum wr_bins_sign sign, int32_t first,
                                      const uint16_t *counts, size_t n);
WEIR_NODISCARD int wr_bins_add_zero(struct weir_sketch *sk, uint64_t weight);
/*
 * What was added was not where it is: it may be as far as error from there, relatively to where it
 * was (infinite: anywhere). weir_sketch_error_bound says so from then on. Errors: WEIR_ENOMEM.
 */
WEIR_NODISCARD int wr_bins_inherit(struct weir_sketch *sk, double error);
WEIR_NODISCARD int wr_bins_end(struct weir_sketch *sk, const struct wr_bins_stats *stats);

/* What sk takes its memory from: for a mapping that it is to have. */
const struct weir_alloc *wr_bins_alloc(const struct weir_sketch *sk);
#endif
