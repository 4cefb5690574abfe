/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WR_SKETCH_SKETCH_H
#define WR_SKETCH_SKETCH_H
/*
 * sketch, the inside: what aggregate needs beside <weir/sketch.h>: the fast way to add, and a
 * pool that grows as it likes.
 */
#include <stdbool.h>
#include <weir/sketch.h>

/*
 * As weir_sketch_add_ns for a WEIR_GRID_NS sketch, without the argument checks: the record path.
 * weight in units of 2^-20, not 0. WEIR_OK; or, unchanged, WEIR_ENOMEM, or WEIR_ERANGE (the total
 * weight would pass 64 bits).
 */
int wr_sketch_add_ns(struct weir_sketch *sk, int64_t duration_ns, uint64_t weight);
/* The same with one in the bins, whatever the weight: it is that of the sum alone. */
int wr_sketch_add_ns_once(struct weir_sketch *sk, int64_t duration_ns, uint64_t weight);
/* Prefetch the cache lines that wr_sketch_add_ns(sk, duration_ns) will touch. sk's header line
 * should be there already. */
void wr_sketch_prefetch_ns(const struct weir_sketch *sk, int64_t duration_ns);
/* Check every invariant; WEIR_DEV and tests. */
bool wr_sketch_check(const struct weir_sketch *sk);

/* weir_sketch_pool_new, for blocks that grow by half and more instead of to what is needed: a
 * steady set of keys then allocates nothing although new extremes come now and then. */
int wr_sketch_pool_new(const struct weir_sketch_opts *opts, size_t spare_max, bool roomy,
                       struct weir_sketch_pool **ret_pool);
/* A copy of src from the pool; NULL: no memory. */
struct weir_sketch *wr_sketch_pool_copy(struct weir_sketch_pool *pool,
                                        const struct weir_sketch *src);
#endif
