/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WR_SKETCH_VIEW_H
#define WR_SKETCH_VIEW_H
/*
 * view: what an answer needs of a sketch: where its counters lie, its extremes in the unit of
 * answers, what its bins stand for. The files that answer reach the state through this alone.
 *
 * Threads: any, while nobody writes. Memory: none.
 */
#include <math.h>
#include "sketch/state.h"
#include "sketch/walk.h"

enum wr_end { WR_END_LOW, WR_END_HIGH };

/* The extreme that lies in the highest bin of a sign, or in the lowest. */
WR_INLINE const union wr_extreme *wr_view_extreme(const struct weir_sketch *sk, enum wr_sign sign,
                                                  enum wr_end end)
{
    return (sign == WR_POSITIVE) == (end == WR_END_HIGH) ? &sk->max : &sk->min;
}

/* Whether an extreme is of a sign. */
WR_INLINE bool wr_view_is(const struct weir_sketch *sk, const union wr_extreme *x,
                          enum wr_sign sign)
{
    if (wr_sketch_grid(sk) == WEIR_GRID_NS)
        return sign == WR_POSITIVE && x->ns > 0;
    return (sign == WR_POSITIVE ? x->value : -x->value) > WR_MAPPING_ZERO_MAX;
}

/* From the line of an extreme's bin on, if that is in the block. For the default mapping. */
WR_INLINE void wr_view_narrow(const struct weir_sketch *sk, const union wr_extreme *x,
                              enum wr_end end, struct wr_run *run)
{
    const int32_t index = wr_sketch_grid(sk) == WEIR_GRID_NS
                              ? wr_mapping_index_ns(x->ns)
                              : wr_mapping_index_value(fabs(x->value));
    const uint32_t at = (uint32_t)index - (uint32_t)run->base;
    const uint32_t byte = at << run->width;
    const uint32_t line = byte & ~(WR_WALK_LINE - 1);
    if (index < run->base || at >= run->end >> run->width || run->end - line < WR_WALK_LINE)
        return;
    if (end == WR_END_HIGH)
        run->end = line + WR_WALK_LINE;
    else
        run->begin = line;
}

/* Memory to spread a list out in, once for all who look. */
struct wr_view_room {
    bool used; /* false before its first use */
    struct wr_run run;
    uint64_t counters[WR_LIST_SPAN / sizeof(uint64_t)]; /* whole lines */
};
void wr_view_spread(const struct weir_sketch *sk, struct wr_view_room *room);

/*
 * Where the counters of a sign lie, for a walk from that end: narrowed to the extreme where that
 * costs no logarithm. No bin of it used: no bytes. Not for the positive ones of a list.
 */
WR_INLINE void wr_view_counters(const struct weir_sketch *sk, enum wr_sign sign, enum wr_end from,
                                struct wr_run *ret)
{
    const bool loose = (sk->flags & WR_SK_LOOSE) != 0;
    ret->bins = NULL;
    ret->base = 0;
    ret->begin = 0;
    ret->end = 0;
    ret->width = 0;
    ret->shift = WR_STORE_SHIFT;
    if (!loose && !wr_view_is(sk, wr_view_extreme(sk, sign, WR_END_HIGH), sign))
        return;
    if (sign == WR_POSITIVE) {
        ret->bins = sk->bins;
        ret->base = sk->base;
        ret->end = wr_store_bytes(sk->size);
        ret->width = sk->flags & WR_SK_WIDTH;
        ret->shift = sk->flags & WR_SK_FINE ? 0 : WR_STORE_SHIFT;
    } else {
        const struct wr_store *const neg = wr_sketch_negative(sk);
        if (!neg)
            return;
        ret->bins = neg->bins;
        ret->base = neg->base;
        ret->end = neg->bytes;
        ret->width = neg->width;
        ret->shift = neg->shift;
    }
    const union wr_extreme *const x = wr_view_extreme(sk, sign, from);
    if (!loose && wr_sketch_mapping(sk) == &wr_mapping_default && wr_view_is(sk, x, sign))
        wr_view_narrow(sk, x, from, ret);
}

/* The same of any sketch; room is for a list. */
WR_INLINE void wr_view_run(const struct weir_sketch *sk, enum wr_sign sign, enum wr_end from,
                           struct wr_view_room *room, struct wr_run *ret)
{
    if (sign != WR_POSITIVE || !(sk->flags & WR_SK_LIST)) {
        wr_view_counters(sk, sign, from, ret);
        return;
    }
    if (!room->used)
        wr_view_spread(sk, room);
    *ret = room->run;
}

/* The bin that holds what a collapse moved up, of a sign that is used; false: none can be. */
bool wr_view_floor(const struct weir_sketch *sk, enum wr_sign sign, int32_t *ret_index);

/* Extremes of a sketch that is not empty. */
double wr_view_min(const struct weir_sketch *sk);
double wr_view_max(const struct weir_sketch *sk);
/* A value of the mapping's in the unit of answers: nanoseconds that are binned as such are answered
 * in seconds. */
WR_INLINE double wr_view_answer(const struct weir_sketch *sk, double v)
{
    return wr_sketch_grid(sk) == WEIR_GRID_NS && wr_sketch_mapping(sk)->kind != WEIR_MAPPING_BASE2
               ? v / 1e9
               : v;
}
/* The bounds, and the answer, of a bin of positive values. */
double wr_view_lower(const struct weir_sketch *sk, int32_t index);
double wr_view_upper(const struct weir_sketch *sk, int32_t index);
WR_INLINE double wr_view_value(const struct weir_sketch *sk, int32_t index)
{
    return wr_view_answer(sk, wr_mapping_value(wr_sketch_mapping(sk), index));
}
/* How far the answer of a bin may be from what is in it, relatively, collapse apart. */
double wr_view_error(const struct weir_sketch *sk);
/* The bin of v, in the unit of answers and between the extremes. */
enum wr_sign wr_view_place(const struct weir_sketch *sk, double v, int32_t *ret_index);
#endif
