/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WR_SKETCH_SKETCH_H
#define WR_SKETCH_SKETCH_H
/*
 * sketch, the inside: what aggregate needs beside <weir/sketch.h>: the fast way to add, and the
 * pool.
 */
#include <stdbool.h>
#include <weir/sketch.h>

/*
 * As weir_sketch_add_ns for a WEIR_GRID_NS sketch, without the argument checks: the record path.
 * weight in units of 2^-20, not 0. WEIR_OK; or, unchanged, WEIR_ENOMEM, or WEIR_ERANGE (the total
 * weight would pass 64 bits).
 */
int wr_sketch_add_ns(struct weir_sketch *sk, int64_t duration_ns, uint64_t weight);
/* Prefetch the cache lines that wr_sketch_add_ns(sk, duration_ns) will touch. sk's header line
 * should be there already. */
void wr_sketch_prefetch_ns(const struct weir_sketch *sk, int64_t duration_ns);
/* Check every invariant; WEIR_DEV and tests. */
bool wr_sketch_check(const struct weir_sketch *sk);

/*
 * pool: cleared sketches of one grid and bin limit, last in first out, capacity kept.
 * Single owner. Spares are poisoned under ASan. Low-water trim: at each trim call half of
 * the spares that were never needed since the last one go.
 */
struct wr_sketch_pool;
int wr_sketch_pool_new(const struct weir_sketch_opts *opts, size_t spare_max,
                       struct wr_sketch_pool **ret_pool);
void wr_sketch_pool_free(struct wr_sketch_pool *pool); /* frees the spares; NULL is allowed */
/* An empty sketch; NULL: no memory. size is what wr_sketch_size said of the one that served the
 * same purpose before, 0 when unknown: a spare of that size is taken where there is one. */
struct weir_sketch *wr_sketch_pool_get(struct wr_sketch_pool *pool, uint8_t size);
/* How much room what is in sk takes, as a class of sizes: < 32. O(bins). */
uint8_t wr_sketch_size(const struct weir_sketch *sk);
/* Takes sk (NULL is allowed), clears it; past spare_max it is freed. */
void wr_sketch_pool_put(struct wr_sketch_pool *pool, struct weir_sketch *sk);
void wr_sketch_pool_trim(struct wr_sketch_pool *pool);
size_t wr_sketch_pool_spares(const struct wr_sketch_pool *pool);
/* A copy of src from the pool; NULL: no memory. */
struct weir_sketch *wr_sketch_pool_copy(struct wr_sketch_pool *pool, const struct weir_sketch *src);
#endif
