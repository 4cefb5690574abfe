/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pool: cleared sketches, last in first out. See sketch.h.
 *
 * The list of spares is an array outside them, so that a spare can be poisoned whole: a write
 * through a stale pointer is then seen by ASan, which a recycler otherwise hides from it.
 *
 * Threads: owner. Memory: the spares, and one pointer each.
 */
#include "sketch/state.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define POOL_ASAN 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(POOL_ASAN)
#include <sanitizer/asan_interface.h>
#define POISON(p, n) ASAN_POISON_MEMORY_REGION((p), (n))
#define UNPOISON(p, n) ASAN_UNPOISON_MEMORY_REGION((p), (n))
#else
#define POISON(p, n) ((void)(p), (void)(n))
#define UNPOISON(p, n) ((void)(p), (void)(n))
#endif

#define SPARES_FIRST 16u

struct wr_sketch_pool {
    struct weir_sketch **spares;
    size_t count;
    size_t cap;
    size_t max;
    size_t low;                   /* the fewest spares there were since the last trim */
    struct weir_sketch_opts opts; /* defaults filled in */
};

static void poison(struct weir_sketch *sk)
{
    if (sk->neg) {
        if (sk->neg->bytes)
            POISON(sk->neg->bins, sk->neg->bytes);
        POISON(sk->neg, sizeof *sk->neg);
    }
    if (sk->pos.bytes != WR_STORE_INLINE)
        POISON(sk->pos.bins, sk->pos.bytes);
    POISON(sk, sizeof *sk);
}

static void unpoison(struct weir_sketch *sk)
{
    UNPOISON(sk, sizeof *sk);
    if (sk->pos.bytes != WR_STORE_INLINE)
        UNPOISON(sk->pos.bins, sk->pos.bytes);
    if (sk->neg) {
        UNPOISON(sk->neg, sizeof *sk->neg);
        if (sk->neg->bytes)
            UNPOISON(sk->neg->bins, sk->neg->bytes);
    }
}

int wr_sketch_pool_new(const struct weir_sketch_opts *opts, size_t spare_max,
                       struct wr_sketch_pool **ret_pool)
{
    struct weir_sketch_opts o;
    const int r = wr_sketch_opts_read(opts, &o);
    if (r != WEIR_OK)
        return r;
    struct wr_sketch_pool *const pool = wr_alloc_zero(&o.alloc, sizeof *pool);
    if (!pool)
        return WEIR_ENOMEM;
    pool->opts = o;
    pool->max = spare_max;
    *ret_pool = pool;
    return WEIR_OK;
}

void wr_sketch_pool_free(struct wr_sketch_pool *pool)
{
    if (!pool)
        return;
    for (size_t i = 0; i < pool->count; i++) {
        unpoison(pool->spares[i]);
        weir_sketch_free(pool->spares[i]);
    }
    const struct weir_alloc a = pool->opts.alloc;
    wr_free(&a, pool->spares, pool->cap * sizeof(struct weir_sketch *));
    wr_free(&a, pool, sizeof *pool);
}

struct weir_sketch *wr_sketch_pool_get(struct wr_sketch_pool *pool)
{
    struct weir_sketch *sk;
    if (!pool->count) {
        pool->low = 0;
        return weir_sketch_new(&pool->opts, &sk) == WEIR_OK ? sk : NULL;
    }
    sk = pool->spares[--pool->count];
    if (pool->count < pool->low)
        pool->low = pool->count;
    unpoison(sk);
    WR_ASSERT(sk->weight == 0 && wr_sketch_check(sk));
    return sk;
}

static bool room_for_one(struct wr_sketch_pool *pool)
{
    if (pool->count >= pool->max)
        return false;
    if (pool->count < pool->cap)
        return true;
    const size_t cap = pool->cap ? pool->cap * 2 : SPARES_FIRST;
    size_t bytes;
    if (cap < pool->cap || wr_mul_size(cap, sizeof(struct weir_sketch *), &bytes))
        return false;
    struct weir_sketch **const spares = wr_realloc(&pool->opts.alloc, pool->spares,
                                                   pool->cap * sizeof(struct weir_sketch *), bytes);
    if (!spares)
        return false;
    pool->spares = spares;
    pool->cap = cap;
    return true;
}

void wr_sketch_pool_put(struct wr_sketch_pool *pool, struct weir_sketch *sk)
{
    if (!sk)
        return;
    /* a stranger's sketch must never come out again as one of this pool's */
    const bool ours = sk->grid == pool->opts.grid && sk->max_bins == pool->opts.max_bins &&
                      sk->alloc.fn == pool->opts.alloc.fn && sk->alloc.ctx == pool->opts.alloc.ctx;
    if (!ours || !room_for_one(pool)) {
        weir_sketch_free(sk);
        return;
    }
    weir_sketch_clear(sk);
    poison(sk);
    pool->spares[pool->count++] = sk;
}

/* The spares at the bottom are those that were not needed; half of them go. */
void wr_sketch_pool_trim(struct wr_sketch_pool *pool)
{
    const size_t gone = pool->low - pool->low / 2;
    for (size_t i = 0; i < gone; i++) {
        unpoison(pool->spares[i]);
        weir_sketch_free(pool->spares[i]);
    }
    pool->count -= gone;
    if (gone)
        memmove(pool->spares, pool->spares + gone, pool->count * sizeof(struct weir_sketch *));
    pool->low = pool->count;
}

size_t wr_sketch_pool_spares(const struct wr_sketch_pool *pool)
{
    return pool->count;
}

struct weir_sketch *wr_sketch_pool_copy(struct wr_sketch_pool *pool, const struct weir_sketch *src)
{
    struct weir_sketch *const sk = wr_sketch_pool_get(pool);
    if (!sk)
        return NULL;
    if (weir_sketch_merge(sk, src) != WEIR_OK) {
        wr_sketch_pool_put(pool, sk);
        return NULL;
    }
    return sk;
}
