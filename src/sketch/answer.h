/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WR_SKETCH_ANSWER_H
#define WR_SKETCH_ANSWER_H
/*
 * answer: what an answer needs of a sketch: where its counters lie, its extremes in the unit of
 * answers, what its bins stand for. The files that answer reach the state through this alone.
 *
 * Threads: any, while nobody writes. Memory: none.
 */
#include <math.h>
#include "sketch/state.h"
#include "sketch/walk.h"

enum wr_end { WR_END_LOW, WR_END_HIGH };

/* The extreme that lies in the highest bin of a sign, or in the lowest. */
WR_INLINE const union wr_extreme *wr_answer_extreme(const struct weir_sketch *sk, enum wr_sign sign,
                                                    enum wr_end end)
{
    return (sign == WR_POSITIVE) == (end == WR_END_HIGH) ? &sk->max : &sk->min;
}

/* Whether an extreme is of a sign. */
WR_INLINE bool wr_answer_is(const struct weir_sketch *sk, const union wr_extreme *x,
                            enum wr_sign sign)
{
    if (sk->grid == WEIR_GRID_NS)
        return sign == WR_POSITIVE && x->ns > 0;
    return (sign == WR_POSITIVE ? x->value : -x->value) > WR_MAPPING_ZERO_MAX;
}

/* From the line of an extreme's bin on, if that is in the block. */
WR_INLINE void wr_answer_narrow(const struct weir_sketch *sk, const union wr_extreme *x,
                                enum wr_end end, struct wr_run *run)
{
    const int32_t index = sk->grid == WEIR_GRID_NS ? wr_mapping_index_ns(x->ns)
                                                   : wr_mapping_index_value(fabs(x->value));
    const uint32_t byte = (uint32_t)(index - run->base) << run->width;
    const uint32_t line = byte & ~(WR_WALK_LINE - 1);
    if (index < run->base || byte >= run->end || run->end - line < WR_WALK_LINE)
        return;
    if (end == WR_END_HIGH)
        run->end = line + WR_WALK_LINE;
    else
        run->begin = line;
}

/* Where the counters of a sign lie, for a walk from that end: narrowed to the extreme where that
 * costs no logarithm. No bin of it used: no bytes. */
WR_INLINE void wr_answer_run(const struct weir_sketch *sk, enum wr_sign sign, enum wr_end from,
                             struct wr_run *ret)
{
    const struct wr_store *const st = sign == WR_POSITIVE ? &sk->pos : sk->neg;
    ret->bins = NULL;
    ret->base = 0;
    ret->begin = 0;
    ret->end = 0;
    ret->width = 0;
    ret->shift = 0;
    if (!st || !(sk->loose || wr_answer_is(sk, wr_answer_extreme(sk, sign, WR_END_HIGH), sign)))
        return;
    ret->bins = st->bins;
    ret->base = st->base;
    ret->end = st->bytes;
    ret->width = st->width;
    ret->shift = st->shift;
    const union wr_extreme *const x = wr_answer_extreme(sk, sign, from);
    if (!sk->loose && sk->mapping == &wr_mapping_default && wr_answer_is(sk, x, sign))
        wr_answer_narrow(sk, x, from, ret);
}
/* The bin that holds what a collapse moved up, of a sign that is used; false: none can be. */
bool wr_answer_floor(const struct weir_sketch *sk, enum wr_sign sign, int32_t *ret_index);

WR_INLINE uint64_t wr_answer_zero(const struct weir_sketch *sk)
{
    return sk->zero;
}

/* Extremes of a sketch that is not empty. */
double wr_answer_min(const struct weir_sketch *sk);
double wr_answer_max(const struct weir_sketch *sk);
/* A bound, and the answer, of a bin of positive values. */
double wr_answer_lower(const struct weir_sketch *sk, int32_t index);
double wr_answer_value(const struct weir_sketch *sk, int32_t index);
/* How far the answer of a bin may be from what is in it, relatively, collapse apart. */
double wr_answer_error(const struct weir_sketch *sk);
/* The bin of v, in the unit of answers and between the extremes. */
enum wr_sign wr_answer_place(const struct weir_sketch *sk, double v, int32_t *ret_index);
#endif
