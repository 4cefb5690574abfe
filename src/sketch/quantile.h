/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WR_SKETCH_QUANTILE_H
#define WR_SKETCH_QUANTILE_H
/*
 * quantile: the bin of a rank, over both signs and zero, in the order of values.
 *
 * Threads: any, while nobody writes. Memory: none.
 */
#include "sketch/view.h"

/* The bin where a rank falls. */
struct wr_spot {
    enum wr_sign sign;
    int32_t index;   /* of the magnitude; of WR_ZERO nothing */
    uint64_t below;  /* weight of the bins whose values are lower */
    uint64_t weight; /* of the bin */
};

/* A pass over the bins from one end of the values, which stops where it is asked to. */
struct wr_pass {
    const struct weir_sketch *sk;
    enum wr_end from;
    unsigned part;       /* 0: the sign at that end, 1: zero, 2: the other sign, 3: past the end */
    uint64_t before;     /* weight of the parts before */
    struct wr_walk walk; /* in parts 0 and 2 */
    struct wr_view_room *room;
};
/* room: for passes over sk alone, and as long as they last; its used is false at first. */
void wr_pass_begin(struct wr_pass *p, const struct weir_sketch *sk, enum wr_end from,
                   struct wr_view_room *room);
/*
 * The first bin with which the weight passed is at least need: 1..weight of the sketch, not less
 * than the last time. From the low end that is the first bin whose cumulative weight is above
 * need - 1; from the high end the same bin is that of need = weight - rank.
 */
void wr_pass_find(struct wr_pass *p, uint64_t need, struct wr_spot *ret_spot);

/* The bin that holds the unit of weight number rank (from 0), from the nearer end. */
void wr_spot_of_rank(const struct weir_sketch *sk, uint64_t rank, struct wr_spot *ret_spot);
/* What the bin answers, unclamped. */
double wr_spot_value(const struct weir_sketch *sk, const struct wr_spot *spot);
/* The rank of q, 0 < q < 1, that weir_sketch_quantile means. */
uint64_t wr_rank_of(uint64_t weight, double q);
#endif
