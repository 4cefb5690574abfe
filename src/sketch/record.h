/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WR_SKETCH_RECORD_H
#define WR_SKETCH_RECORD_H
/*
 * record: the exact numbers of a sketch of values, once its bins have a value. For one call a value
 * and for many at once.
 *
 * Threads: owner. Memory: none.
 */
#include <float.h>
#include "sketch/state.h"

/* sum += v, and *rest what rounding took from it, exactly (Knuth's two-sum). */
WR_INLINE double wr_two_sum(double sum, double v, double *rest)
{
    const double next = sum + v;
    const double part = next - sum;
    *rest += (sum - (next - part)) + (v - part);
    return next;
}

/* Past DBL_MAX the sum stays there: never infinite, so never NaN. */
WR_INLINE void wr_sum_add(struct weir_sketch *sk, double v)
{
    const double sum = sk->sum.value.sum;
    const double next = sum + v;
    if (WR_UNLIKELY(fabs(next) > DBL_MAX)) {
        sk->sum.value.sum = next > 0 ? DBL_MAX : -DBL_MAX;
        sk->sum.value.rest = 0;
        return;
    }
    sk->sum.value.sum = wr_two_sum(sum, v, &sk->sum.value.rest);
}

/*
 * Values below this are moderate: half of the last place of DBL_MAX is more, so that adding one to
 * a finite sum rounds to a finite one.
 */
#define WR_MODERATE_OCTAVE 960

/* Finite, above WR_MAPPING_ZERO_MAX and moderate, from the bits of it. */
WR_INLINE bool wr_is_moderate(uint64_t bits)
{
    const uint64_t first = UINT64_C(0x0010000000000001);
    return bits - first < ((uint64_t)(1023 + WR_MODERATE_OCTAVE) << 52) - first;
}

/*
 * A moderate value of weight one. Extremes are written whether they change or not: of few samples
 * every third is a new one, which no branch foretells, and a wrong guess is not known before the
 * sketch has come from memory.
 */
WR_INLINE void wr_account_moderate(struct weir_sketch *sk, double value, uint64_t total)
{
    double rest = sk->sum.value.rest;
    sk->weight = total;
    sk->sum.value.sum = wr_two_sum(sk->sum.value.sum, value, &rest);
    sk->sum.value.rest = rest;
    sk->min.value = value < sk->min.value ? value : sk->min.value;
    sk->max.value = value > sk->max.value ? value : sk->max.value;
}

/*
 * The way a call for one value takes mostly: moderate, of weight one, and no change of shape.
 * false: nothing has changed, and it is for the slow way. Tables hold moderate values alone, so
 * that what is not one is past every cell.
 */
WR_INLINE bool wr_index_moderate(enum wr_fast way, const struct wr_kind_head *head, double value,
                                 int32_t *ret_index)
{
    const uint64_t bits = wr_mapping_bits(value);
    if (way == WR_FAST_TABLE) {
        const uint64_t cell = (bits >> head->cell_shift) - head->cell_first;
        if (WR_UNLIKELY(cell >= head->cell_count))
            return false;
        *ret_index = head->index_first + (int32_t)((bits + head->cells[cell]) >> head->cell_shift);
        return true;
    }
    if (WR_UNLIKELY(!wr_is_moderate(bits)))
        return false;
    *ret_index = wr_mapping_index_value(value);
    return true;
}
#endif
