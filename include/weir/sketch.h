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
 * Memory:  a header of 64 bytes (and 48 for options of its own, outside a pool), then 16 bits a
 *          sample while there are at most 128, all of weight one, then counters for the range seen:
 *          at most max_bins a sign. Zeros and negatives take 56 bytes more.
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
    uint32_t max_bins;       /* per sign, 2..32768; default 2048; past it the lowest collapse */
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
 * Record n values of weight one: the sketch is the one that weir_sketch_add makes of them, to the
 * byte. NaN, infinite ones, and those past 64 bits of weight are left out, and counted in
 * *ret_refused (may be NULL). Errors: WEIR_EINVAL (wrong grid), WEIR_ENOMEM: a part is recorded,
 * the first values of the array, and weir_sketch_weight tells how many.
 */
WEIR_API WEIR_NODISCARD int weir_sketch_add_many(struct weir_sketch *sk, const double *values,
                                                 size_t n, size_t *ret_refused);
/*
 * The same for values of many sketches in any order: memory is asked for ahead, so that sketches
 * that are not in a cache cost a fraction of one call each. A sketch of another grid than
 * WEIR_GRID_VALUE is refused too. Errors: WEIR_ENOMEM: those that needed memory are left out and
 * counted with the refused, the others are recorded.
 */
struct weir_sketch_pair {
    struct weir_sketch *sketch;
    double value;
};
WEIR_API WEIR_NODISCARD int weir_sketch_add_pairs(const struct weir_sketch_pair *pairs, size_t n,
                                                  size_t *ret_refused);

/*
 * Add all of src to dst. O(bins).
 * Errors, dst unchanged: WEIR_EINVAL (src is dst), WEIR_EVERSION (another grid or scale),
 * WEIR_ENOMEM, WEIR_ERANGE (the total weight would pass 64 bits).
 */
WEIR_API WEIR_NODISCARD int weir_sketch_merge(struct weir_sketch *dst,
                                              const struct weir_sketch *src);

/*
 * Add all of src to dst, under dst's mapping. Where each bin of src lies in one of dst (a coarser
 * scale of base 2; a base that is a power of src's, with bounds that meet) this is a merge into
 * wider bins: two bins of accuracy a become one of 2a / (1 + a^2), which is dst's own. Else each
 * bin goes whole to the bin of its answer: what comes out is within (1 + a)(1 + b) - 1 of what went
 * in, a being src's accuracy and b dst's, and weir_sketch_error_bound says so from then on. Sum,
 * minimum and maximum are added as they are. A WEIR_GRID_NS sketch goes into one of values as
 * seconds. O(bins); allocates and gives back a sketch besides. Errors, dst unchanged: WEIR_EINVAL
 * (src is dst), WEIR_EVERSION (values into WEIR_GRID_NS), WEIR_ENOMEM, WEIR_ERANGE (the total
 * weight would pass 64 bits).
 */
WEIR_API WEIR_NODISCARD int weir_sketch_convert(struct weir_sketch *dst,
                                                const struct weir_sketch *src);
/* Merge n sketches into dst, one by one. The first error ends it; those before it are merged. */
WEIR_API WEIR_NODISCARD int weir_sketch_merge_many(struct weir_sketch *dst,
                                                   const struct weir_sketch *const *src, size_t n);
/* Make dst equal to src, dst's own limit of bins kept. Errors as of weir_sketch_merge; dst is then
 * empty, but for WEIR_EINVAL and WEIR_EVERSION, which change nothing. */
WEIR_API WEIR_NODISCARD int weir_sketch_copy(struct weir_sketch *dst,
                                             const struct weir_sketch *src);
/* The same grid, mapping (weir_mapping_equal), bins, sum, minimum and maximum, whatever the
 * history. Sums of doubles are compared bit by bit. */
WEIR_API bool weir_sketch_equal(const struct weir_sketch *a, const struct weir_sketch *b);

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

/*
 * Quantiles as others define them, from the same bins; n is the total weight.
 *
 *   WEIR_QUANTILE_DEFAULT     weir_sketch_quantile
 *   WEIR_QUANTILE_JAVA        sketches-java: rank q (n - 1), the first bin, in the order of values,
 *                             with more than that up to it; its answer, not clamped: the ends are
 *                             bins as well
 *   WEIR_QUANTILE_GO          sketches-go: the same, but negative values are searched from zero:
 *                             of two between which a fractional rank lies, the nearer to zero
 *   WEIR_QUANTILE_AGENT       the Datadog Agent: that rank rounded to the nearest whole, half to
 *                             even, and between the ends of the bin by where in it the rank is.
 *                             Its bins begin half a bin higher than ours (its keys are rounded,
 *                             and read as if rounded down), the first one at the minimum; within
 *                             minimum and maximum, which answer 0 and 1. So it may be wrong by a
 *                             bin and a half: g^1.5 - 1
 *   WEIR_QUANTILE_PROMETHEUS  histogram_quantile of native histograms since Prometheus 3.0: rank
 *                             q n from the nearer end, interpolated in the bin on a logarithmic
 *                             scale; not clamped
 *
 * Ranks of the last four are computed in doubles, as there. All of them refuse what
 * weir_sketch_quantile refuses, where some of the others answer an end or infinity.
 * Errors: those of weir_sketch_quantile; WEIR_EINVAL for another rule too.
 */
enum weir_quantile_rule {
    WEIR_QUANTILE_DEFAULT = 0,
    WEIR_QUANTILE_JAVA = 1,
    WEIR_QUANTILE_GO = 2,
    WEIR_QUANTILE_AGENT = 3,
    WEIR_QUANTILE_PROMETHEUS = 4
};
WEIR_API WEIR_NODISCARD int weir_sketch_quantile_by(const struct weir_sketch *sk, uint32_t rule,
                                                    double q, double *ret_value);

/*
 * The fraction of the weight that is not above value: that of the bins up to its own, which counts
 * whole. So it is exact for some value in the bin of this one, and at the ends for itself: 0 below
 * the minimum, 1 at the maximum and above. Infinite ones are allowed. O(bins).
 * Errors: WEIR_EINVAL (NaN), WEIR_EEMPTY.
 */
WEIR_API WEIR_NODISCARD int weir_sketch_rank(const struct weir_sketch *sk, double value,
                                             double *ret_fraction);
/*
 * How far, relatively, weir_sketch_quantile(sk, q) can be from the sample of that rank:
 * |answer - sample| <= bound * |sample|, the rounding of doubles included. 0 where the answer is
 * exact: the zero bin (magnitudes up to 2^-1022 count as zeros), and the ends when the extremes
 * were recorded. Elsewhere the mapping's accuracy a, and with what a conversion brought, b:
 * (1 + a)(1 + b) - 1. Where bins collapsed, what the minimum (of negatives: the maximum) leaves
 * possible, which is infinity when it tells nothing. Of what was decoded it holds if the bins and
 * extremes held. After merging or converting a collapsed sketch of fewer bins or another mapping,
 * all bins but the highest are taken for collapsed. Bytes do not say that bins collapsed: of those
 * it is seen where the minimum, or of negatives the maximum, is of their sign.
 * O(bins). Errors: those of weir_sketch_quantile.
 */
WEIR_API WEIR_NODISCARD int weir_sketch_error_bound(const struct weir_sketch *sk, double q,
                                                    double *ret_bound);
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
 * The compact form (docs/formats/sketch.md): deterministic, self-contained. Version 1 for a base 2
 * mapping; 2 for another, or when there is more to say: bins collapsed, extremes that came with
 * bins, the error of a conversion. encoded_bytes is the exact size. encode fills at most cap bytes.
 * Errors: WEIR_EFULL (cap too small, nothing is promised about dst).
 */
WEIR_API size_t weir_sketch_encoded_bytes(const struct weir_sketch *sk);
WEIR_API WEIR_NODISCARD int weir_sketch_encode(const struct weir_sketch *sk, void *dst, size_t cap,
                                               size_t *ret_bytes);
/*
 * Replace the contents of sk by those encoded; sk's grid must be the encoded one, and sk takes over
 * the mapping, unless its own is equal.
 * Never allocates by a claimed size. Errors: WEIR_EFORMAT, WEIR_ETRUNCATED, WEIR_ENOMEM,
 * WEIR_EVERSION (another version or grid; another mapping, if sk is of a pool); sk is then cleared.
 */
WEIR_API WEIR_NODISCARD int weir_sketch_decode(struct weir_sketch *sk, const void *src,
                                               size_t bytes);
/*
 * Add what is encoded to dst, as decoding and merging would: without a sketch in between, but for
 * forms with negative bins, or with more than 2048 bins from the lowest to the highest.
 * Errors, dst unchanged: those of weir_sketch_decode (WEIR_EVERSION also for another mapping), and
 * WEIR_ERANGE (the total weight would pass 64 bits).
 */
WEIR_API WEIR_NODISCARD int weir_sketch_merge_encoded(struct weir_sketch *dst, const void *src,
                                                      size_t bytes);

/*
 * pool: cleared sketches of one grid, mapping and limit of bins, capacity kept, last in first out,
 * so that sketches that come and go with windows allocate nothing after the first ones. Headers lie
 * together, a line each, and stay with the pool; spares are poisoned under AddressSanitizer.
 *
 * A sketch of a pool may go back to it, or be freed; either before the pool is freed, and on the
 * thread that owns the pool. It keeps the pool's mapping: bytes of another are refused.
 * Errors of new: WEIR_ENOMEM, WEIR_EINVAL (opts). opts NULL means all defaults. More than spare_max
 * spares are never kept.
 */
struct weir_sketch_pool;
WEIR_API WEIR_NODISCARD int weir_sketch_pool_new(const struct weir_sketch_opts *opts,
                                                 size_t spare_max,
                                                 struct weir_sketch_pool **ret_pool);
/* Frees the spares too; NULL is allowed. */
WEIR_API void weir_sketch_pool_free(struct weir_sketch_pool *pool);
/* An empty sketch; NULL: no memory. size is what weir_sketch_size said of the one that served the
 * same purpose before, 0 when unknown: a spare of that size is taken where there is one. */
WEIR_API struct weir_sketch *weir_sketch_pool_get(struct weir_sketch_pool *pool, uint8_t size);
/* How much room what is in sk takes, as a class of sizes. O(bins). */
WEIR_API uint8_t weir_sketch_size(const struct weir_sketch *sk);
/* Takes sk (NULL is allowed) and clears it; one past spare_max, or of another pool or none, is
 * freed. */
WEIR_API void weir_sketch_pool_put(struct weir_sketch_pool *pool, struct weir_sketch *sk);
/* Of the spares that were never needed since the last trim, half lose their bins. */
WEIR_API void weir_sketch_pool_trim(struct weir_sketch_pool *pool);
WEIR_API size_t weir_sketch_pool_spares(const struct weir_sketch_pool *pool);

WEIR_END_DECLS
#endif
