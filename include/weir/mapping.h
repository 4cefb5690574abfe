/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_MAPPING_H
#define WEIR_MAPPING_H
/*
 * mapping: which bin of a sketch a value falls into, and what a bin answers.
 *
 * A mapping cuts the positive numbers into bins, each narrow enough that its answer is within the
 * mapping's accuracy a of everything in it. Bins are numbered; negative values use the bins of
 * their magnitude.
 *
 *   WEIR_MAPPING_BASE2     bin i is (g^i, g^(i+1)], g = 2^(2^-scale): those of OpenTelemetry
 *                          exponential histograms of that scale; Prometheus native ones are
 *                          numbered one higher
 *   WEIR_MAPPING_LOG       bin i is [g^(i-offset), g^(i+1-offset)): those of DDSketch
 *   WEIR_MAPPING_LINEAR    as LOG, with the logarithm of base 2 interpolated between powers of two
 *   WEIR_MAPPING_QUADRATIC by a polynomial of degree 1, 2, 3 or 4 in the mantissa (sketches-go,
 *   WEIR_MAPPING_CUBIC     sketches-java). LINEAR of g = 2^(2^-k) and a whole offset is what the
 *   WEIR_MAPPING_QUARTIC   Java tracer calls bitwise linear: the top k bits of the mantissa
 *
 * A mapping is immutable and counted; sketches that were given it hold it.
 *
 * The same value is in the same bin on every CPU, compiler and C library.
 *
 * Threads: any. Memory: none for BASE2. Another kind is one block from the allocator given: 47 KiB
 * at an accuracy of 1 %, at most 377 KiB; finer than 0.1 % it has no table, and recording is
 * slower.
 */
#include <stdbool.h>
#include <weir/base.h>

WEIR_BEGIN_DECLS

struct weir_mapping;

enum weir_mapping_kind {
    WEIR_MAPPING_BASE2 = 0,
    WEIR_MAPPING_LOG = 1,
    WEIR_MAPPING_LINEAR = 2,
    WEIR_MAPPING_QUADRATIC = 3,
    WEIR_MAPPING_CUBIC = 4,
    WEIR_MAPPING_QUARTIC = 5
};

#define WEIR_SCALE_MIN (-10)
#define WEIR_SCALE_MAX 8

/*
 * Base 2 at a scale of WEIR_SCALE_MIN..WEIR_SCALE_MAX; a = (g - 1) / (g + 1): 0.5415 % at 6. Where
 * g passes DBL_MAX (scale -10) weir_mapping_gamma says DBL_MAX. These are there already: nothing is
 * allocated, and alloc, which may be NULL, not used. Errors: WEIR_EINVAL.
 */
WEIR_API WEIR_NODISCARD int weir_mapping_base2(const struct weir_alloc *alloc, int32_t scale,
                                               struct weir_mapping **ret_mapping);
/*
 * Logarithmic of accuracy alpha, 1e-5..0.5, without offset: g = (1 + alpha) / (1 - alpha).
 * alloc NULL: the C library's.
 * Errors: WEIR_ENOMEM, WEIR_EINVAL.
 */
WEIR_API WEIR_NODISCARD int weir_mapping_log(const struct weir_alloc *alloc, double alpha,
                                             struct weir_mapping **ret_mapping);
/*
 * As DDSketch writes a mapping: kind (not BASE2), gamma > 1 and offset, both finite. gamma is that
 * of the interpolated logarithm, so (g^c - 1) / (g^c + 1) is the accuracy, c the kind's correction.
 * Errors: WEIR_ENOMEM, WEIR_EINVAL, WEIR_ERANGE (so fine or so far off that indices would pass 32
 * bits).
 */
WEIR_API WEIR_NODISCARD int weir_mapping_new(const struct weir_alloc *alloc, uint32_t kind,
                                             double gamma, double offset,
                                             struct weir_mapping **ret_mapping);
/* One more holder, and one less; NULL is allowed. The same pointer is returned. */
WEIR_API const struct weir_mapping *weir_mapping_ref(const struct weir_mapping *m);
WEIR_API void weir_mapping_unref(const struct weir_mapping *m);

/* The same bins: kind alike, gamma and offset within 1e-12 of each other, relatively. Never bit by
 * bit: two makers of the same mapping differ in the last ones. */
WEIR_API bool weir_mapping_equal(const struct weir_mapping *a, const struct weir_mapping *b);
WEIR_API uint32_t weir_mapping_kind(const struct weir_mapping *m); /* enum weir_mapping_kind */
WEIR_API int32_t weir_mapping_scale(const struct weir_mapping *m); /* of BASE2, else 0 */
WEIR_API double weir_mapping_gamma(const struct weir_mapping *m);
WEIR_API double weir_mapping_offset(const struct weir_mapping *m);
WEIR_API double weir_mapping_accuracy(const struct weir_mapping *m);
/*
 * The bin of a magnitude. Errors: WEIR_ERANGE (NaN, infinite, or not above 2^-1022: a zero).
 * lower is the bound between bin index - 1 and index; value is what bin index answers. Both are
 * finite: past DBL_MAX they are DBL_MAX.
 */
WEIR_API WEIR_NODISCARD int weir_mapping_index(const struct weir_mapping *m, double value,
                                               int32_t *ret_index);
WEIR_API double weir_mapping_lower(const struct weir_mapping *m, int32_t index);
WEIR_API double weir_mapping_value(const struct weir_mapping *m, int32_t index);

WEIR_END_DECLS
#endif
