/* SPDX-License-Identifier: Apache-2.0 */
/*
 * equal: whether two sketches hold the same, whatever shape their bins have come to.
 * Threads: any, while nobody writes. Memory: none.
 */
#include "sketch/state.h"

static bool same_bits(double a, double b)
{
    uint64_t bits[2];
    memcpy(&bits[0], &a, sizeof a);
    memcpy(&bits[1], &b, sizeof b);
    return bits[0] == bits[1];
}

static bool same_totals(const struct weir_sketch *a, const struct weir_sketch *b)
{
    if (a->weight != b->weight || wr_sketch_zero(a) != wr_sketch_zero(b))
        return false;
    if (!a->weight)
        return true;
    if (wr_sketch_grid(a) == WEIR_GRID_NS)
        return a->sum.ns == b->sum.ns && a->min.ns == b->min.ns && a->max.ns == b->max.ns;
    double hi[2];
    double lo[2];
    wr_sketch_sum_split(a, &hi[0], &lo[0]);
    wr_sketch_sum_split(b, &hi[1], &lo[1]);
    return same_bits(hi[0], hi[1]) && same_bits(lo[0], lo[1]) &&
           same_bits(a->min.value + 0.0, b->min.value + 0.0) &&
           same_bits(a->max.value + 0.0, b->max.value + 0.0);
}

static bool same_store(const struct wr_store *a, const struct wr_store *b)
{
    int32_t lo[2] = {0};
    int32_t hi[2] = {0};
    const bool any = a && wr_store_used(a, &lo[0], &hi[0]);
    if (any != (b && wr_store_used(b, &lo[1], &hi[1])))
        return false;
    if (!any)
        return true;
    if (lo[0] != lo[1] || hi[0] != hi[1] || a->collapsed != b->collapsed)
        return false;
    const size_t n = (size_t)((uint32_t)hi[0] - (uint32_t)lo[0]) + 1;
    for (size_t i = 0; i < n; i++) {
        const int32_t index = (int32_t)((uint32_t)lo[0] + (uint32_t)i);
        if (wr_store_weight_at(a, index) != wr_store_weight_at(b, index))
            return false;
    }
    return true;
}

bool weir_sketch_equal(const struct weir_sketch *a, const struct weir_sketch *b)
{
    if (a == b)
        return true;
    if (wr_sketch_grid(a) != wr_sketch_grid(b) ||
        !weir_mapping_equal(wr_sketch_mapping(a), wr_sketch_mapping(b)))
        return false;
    if ((a->flags ^ b->flags) & (WR_SK_LOOSE | WR_SK_DERIVED) ||
        !same_bits(wr_sketch_inherited(a), wr_sketch_inherited(b)) || !same_totals(a, b))
        return false;
    struct wr_spread spread[2];
    return same_store(wr_sketch_positive(a, &spread[0]), wr_sketch_positive(b, &spread[1])) &&
           same_store(wr_sketch_negative(a), wr_sketch_negative(b));
}
