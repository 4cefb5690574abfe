/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_SKETCH_H
#define WEIR_SKETCH_H
/*
 * sketch: mergeable quantiles with bounded relative error.
 *
 * A DDSketch (Masson, Rim, Lee, VLDB 2019) over the exact base-2 logarithmic mapping of
 * OpenTelemetry exponential histograms: bin i holds (g^i, g^(i+1)] with g = 2^(2^-scale). The index
 * comes from a table of bounds, so it is the same on every CPU and compiler. A quantile is
 * answered by 2 g^(i+1) / (g + 1), within a = (g - 1) / (g + 1) of everything in the bin: 0.5415 %
 * at the default scale 6.
 *
 * Two grids. WEIR_GRID_VALUE bins a double as it is. WEIR_GRID_NS takes integer nanoseconds and
 * bins seconds: bounds are 10^9 g^i ns, so the bins are those of the value in seconds, without a
 * division. Count, sum, min and max are exact beside the bins: the sum of a WEIR_GRID_NS sketch is
 * a 128-bit integer of nanoseconds times weight, that of WEIR_GRID_VALUE a compensated double.
 *
 * Weights are unsigned fixed point, units of 2^-20 (WEIR_WEIGHT_ONE is 1). Bins count whole units
 * in 8, then 16, 32, 64 bits; a fractional weight turns them to units of 2^-20. So merging is
 * commutative and associative to the byte, but for the sum of doubles, which is commutative to the
 * byte and associative to its compensated rounding.
 *
 * Threads: one thread may use a sketch at a time; const functions may run in parallel.
 * Memory:  a header of at most 128 bytes, then bins for the range seen: at most max_bins a sign.
 */
#include <weir/mapping.h>

WEIR_BEGIN_DECLS

struct weir_sketch;

enum weir_grid {
    WEIR_GRID_VALUE = 0, /* doubles, binned in their own unit */
    WEIR_GRID_NS = 1     /* integer nanoseconds, binned in seconds */
};

#define WEIR_SKETCH_SCALE_DEFAULT 6
#define WEIR_SKETCH_BINS_DEFAULT 2048u

/* Zero in any field means its default. Fields are only ever appended. */
struct weir_sketch_opts {
    size_t struct_size;      /* sizeof(struct weir_sketch_opts) */
    struct weir_alloc alloc; /* copied */
    uint32_t grid;           /* enum weir_grid */
    uint32_t max_bins;       /* per sign, 2..65536; default 2048; past it the lowest collapse */
    const struct weir_mapping
        *mapping; /* NULL: base 2, scale 6. The sketch holds it. A WEIR_GRID_NS
                     sketch of another kind than BASE2 bins nanoseconds */
};

/* Errors: WEIR_ENOMEM, WEIR_EINVAL. opts NULL means all defaults. Never more than one allocation.
 */
WEIR_API WEIR_NODISCARD int weir_sketch_new(const struct weir_sketch_opts *opts,
                                            struct weir_sketch **ret_sketch);
WEIR_API void weir_sketch_free(struct weir_sketch *sk); /* NULL is allowed */

/* Empty it, capacity kept: a refilled sketch equals a fresh one to the byte. O(bins in use). */
WEIR_API void weir_sketch_clear(struct weir_sketch *sk);

/*
 * Record a duration in a WEIR_GRID_NS sketch. Negative counts as 0. weight 0 means one.
 * Cost: O(1); allocates only when the range of bins grows or a counter needs more bits.
 * Errors: WEIR_ENOMEM (unchanged), WEIR_EINVAL (wrong grid), WEIR_ERANGE (the total weight would
 * pass 64 bits; unchanged).
 */
WEIR_API WEIR_NODISCARD int weir_sketch_add_ns(struct weir_sketch *sk, int64_t duration_ns,
                                               uint64_t weight);
/*
 * Record a value in a WEIR_GRID_VALUE sketch. weight 0 means one.
 * Magnitudes up to 2^-1022 are zeros. The sum stays at DBL_MAX once it gets there.
 * Errors: WEIR_ENOMEM (unchanged), WEIR_EINVAL (wrong grid), WEIR_ERANGE (NaN or infinite, or the
 * total weight would pass 64 bits; unchanged).
 */
WEIR_API WEIR_NODISCARD int weir_sketch_add(struct weir_sketch *sk, double value, uint64_t weight);

/*
 * Add all of src to dst. O(bins).
 * Errors, dst unchanged: WEIR_EINVAL (src is dst), WEIR_EVERSION (another grid or scale),
 * WEIR_ENOMEM, WEIR_ERANGE (the total weight would pass 64 bits).
 */
WEIR_API WEIR_NODISCARD int weir_sketch_merge(struct weir_sketch *dst,
                                              const struct weir_sketch *src);

/* Total weight in units of 2^-20. */
WEIR_API uint64_t weir_sketch_weight(const struct weir_sketch *sk);
/* Σ over the bins, zeros and negatives counted one by one: equals weir_sketch_weight always; the
 * conservation check calls it. O(bins). */
WEIR_API uint64_t weir_sketch_bins_weight(const struct weir_sketch *sk);
/* Sum in the unit of answers: seconds for WEIR_GRID_NS. 0 when empty. */
WEIR_API double weir_sketch_sum(const struct weir_sketch *sk);
/* Exact Σ duration_ns * weight of a WEIR_GRID_NS sketch, units of 2^-20 ns; 0 for another grid. */
WEIR_API struct weir_u128 weir_sketch_sum_ns(const struct weir_sketch *sk);
/* Errors: WEIR_EEMPTY. The unit is that of answers. */
WEIR_API WEIR_NODISCARD int weir_sketch_min(const struct weir_sketch *sk, double *ret_value);
WEIR_API WEIR_NODISCARD int weir_sketch_max(const struct weir_sketch *sk, double *ret_value);

/*
 * The value of rank q * max(n - 1, 0), n the total weight, clamped to [min, max]: within
 * weir_sketch_accuracy of the sample of that rank. Seconds for WEIR_GRID_NS. O(bins), never
 * allocates. Errors: WEIR_EINVAL (q outside [0, 1] or NaN), WEIR_EEMPTY.
 */
WEIR_API WEIR_NODISCARD int weir_sketch_quantile(const struct weir_sketch *sk, double q,
                                                 double *ret_value);
/*
 * n quantiles at once, in any order: each is what weir_sketch_quantile gives, to the bit, but all
 * of up to 64 cost one pass over the bins. ret_values may be qs.
 * Errors, ret_values untouched: those of weir_sketch_quantile.
 */
WEIR_API WEIR_NODISCARD int weir_sketch_quantiles(const struct weir_sketch *sk, const double *qs,
                                                  size_t n, double *ret_values);
/* Of its mapping. */
WEIR_API const struct weir_mapping *weir_sketch_mapping(const struct weir_sketch *sk);
WEIR_API double weir_sketch_accuracy(const struct weir_sketch *sk);
WEIR_API uint32_t weir_sketch_grid(const struct weir_sketch *sk); /* enum weir_grid */
/* Sum, minimum and maximum were recorded, or came with the bytes; false: one of them is derived
 * from bins, and as accurate as they are. */
WEIR_API bool weir_sketch_is_exact(const struct weir_sketch *sk);
/* Bytes held, header included. */
WEIR_API size_t weir_sketch_bytes(const struct weir_sketch *sk);

/*
 * Visit the bins in ascending order of value: negative bins (from the most negative), the zero
 * bin, positive bins. lower and upper bound the bin (lower < v <= upper for positive ones; both 0
 * for zeros), in the unit of answers; empty bins are left out.
 */
typedef void weir_sketch_bin_fn(void *ctx, double lower, double upper, uint64_t weight);
WEIR_API void weir_sketch_bins(const struct weir_sketch *sk, weir_sketch_bin_fn *fn, void *ctx);

/*
 * The compact form, version 1 (docs/formats/sketch.md): deterministic, self-contained.
 * encoded_bytes is the exact size. encode fills at most cap bytes.
 * Errors: WEIR_EFULL (cap too small, nothing is promised about dst).
 */
WEIR_API size_t weir_sketch_encoded_bytes(const struct weir_sketch *sk);
WEIR_API WEIR_NODISCARD int weir_sketch_encode(const struct weir_sketch *sk, void *dst, size_t cap,
                                               size_t *ret_bytes);
/*
 * Replace the contents of sk by those encoded; sk's grid must be the encoded one.
 * Never allocates by a claimed size. Errors: WEIR_EFORMAT, WEIR_ETRUNCATED, WEIR_EVERSION,
 * WEIR_ENOMEM; sk is then cleared.
 */
WEIR_API WEIR_NODISCARD int weir_sketch_decode(struct weir_sketch *sk, const void *src,
                                               size_t bytes);

WEIR_END_DECLS
#endif
