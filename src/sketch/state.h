/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WR_SKETCH_STATE_H
#define WR_SKETCH_STATE_H
/*
 * state: what is inside a struct weir_sketch; for the files of this folder.
 *
 * The first 64 bytes are what recording a duration touches, besides one counter. The second 64
 * hold the rest and the first block of counters: a sketch that has seen few values in few bins
 * is this header and nothing else.
 *
 * Invariants (wr_sketch_check): weight = zero + sum of the counters of both stores; the highest
 * used bin of the store that has the maximum is the maximum's own, and likewise the minimum for
 * negatives; min and max are of what was recorded, so the used bins lie within their bins.
 */
#include "sketch/mapping.h"
#include "sketch/sketch.h"
#include "sketch/store.h"

__extension__ typedef unsigned __int128 wr_uint128;

/* A minimum or maximum: exact, in the unit recorded. */
union wr_extreme {
    int64_t ns;
    double value;
};

struct weir_sketch {
    struct wr_store pos;
    uint64_t weight; /* units of 2^-20 */
    union {
        wr_uint128 ns; /* sum of duration * weight, units of 2^-20 ns */
        struct {
            double sum;  /* of value * weight, in whole weights */
            double rest; /* what rounding took from sum (Neumaier) */
        } value;
    } sum;
    union wr_extreme min; /* the greatest of the type while empty, so that one compare is enough */
    union wr_extreme max;

    uint64_t zero; /* weight of the zero bin */
    struct weir_alloc alloc;
    struct wr_store *neg;               /* of magnitudes; NULL until a negative value comes */
    const struct weir_mapping *mapping; /* held */
    uint32_t max_bins;
    uint8_t grid;
    bool loose;   /* the extremes came with foreign bins, and may lie outside them */
    bool derived; /* sum, minimum or maximum is derived from bins */
    uint8_t inline_bins[WR_STORE_INLINE];
};

_Static_assert(sizeof(struct weir_sketch) <= 128, "weir/sketch.h promises this");
_Static_assert(offsetof(struct weir_sketch, zero) == 64, "the record path is one line");

/* The bin of a duration above 0. */
WR_INLINE int32_t wr_sketch_index_ns(const struct weir_sketch *sk, int64_t duration_ns)
{
    if (WR_LIKELY(sk->mapping == &wr_mapping_default))
        return wr_mapping_index_ns(duration_ns);
    return wr_mapping_index_duration(sk->mapping, duration_ns);
}

/* The options with defaults filled in. WEIR_OK or WEIR_EINVAL. opts may be NULL. */
int wr_sketch_opts_read(const struct weir_sketch_opts *opts, struct weir_sketch_opts *ret_opts);

/* The exact sum of a WEIR_GRID_VALUE sketch as hi + lo, |lo| at most half an ulp of hi. Equal sums
 * give equal bits. Finite: past DBL_MAX it stays there. */
void wr_sketch_sum_split(const struct weir_sketch *sk, double *ret_hi, double *ret_lo);

/* Magnitude classes of an extreme: which store, which bin. */
enum wr_sign { WR_NEGATIVE, WR_ZERO, WR_POSITIVE };
enum wr_sign wr_sketch_place(const struct weir_sketch *sk, const union wr_extreme *x,
                             int32_t *ret_index);
/* An interval that holds every used bin of the store; false: none is used. */
bool wr_sketch_pos_range(const struct weir_sketch *sk, int32_t *ret_lo, int32_t *ret_hi);
bool wr_sketch_neg_range(const struct weir_sketch *sk, int32_t *ret_lo, int32_t *ret_hi);
/* The negative store, made on first need; NULL: no memory. */
struct wr_store *wr_sketch_neg(struct weir_sketch *sk);
#endif
