/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WR_SKETCH_VIEW_H
#define WR_SKETCH_VIEW_H
/*
 * view: what an answer needs of a sketch: where its counters lie, its extremes in the unit of
 * answers, what its bins stand for. The files that answer reach the state through this alone.
 *
 * Threads: any, while nobody writes. Memory: none.
 */
#include "sketch/state.h"
#include "sketch/walk.h"

enum wr_end { WR_END_LOW, WR_END_HIGH };

/* Where the counters of a sign lie, for a walk from that end (which is narrowed to the extreme
 * where that costs no logarithm). false: no bin of it is used. */
bool wr_view_run(const struct weir_sketch *sk, enum wr_sign sign, enum wr_end from,
                 struct wr_run *ret);
/* The bin that holds what a collapse moved up, of a sign that is used; false: none can be. */
bool wr_view_floor(const struct weir_sketch *sk, enum wr_sign sign, int32_t *ret_index);

/* Extremes of a sketch that is not empty. */
double wr_view_min(const struct weir_sketch *sk);
double wr_view_max(const struct weir_sketch *sk);
/* A bound, and the answer, of a bin of positive values. */
double wr_view_lower(const struct weir_sketch *sk, int32_t index);
double wr_view_value(const struct weir_sketch *sk, int32_t index);
/* The bin of v, in the unit of answers and between the extremes. */
enum wr_sign wr_view_place(const struct weir_sketch *sk, double v, int32_t *ret_index);
#endif
