/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pool: cleared sketches, last in first out. See sketch.h.
 *
 * Spares lie on shelves by the size of their block, and a caller that knows how much its last
 * sketch came to need asks for that size: so a steady set of keys, however their windows overlap,
 * soon allocates nothing, without every block growing to the size of the largest.
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

/* Spares of one size of block. */
struct shelf {
    struct weir_sketch **spares;
    size_t count;
    size_t cap;
    size_t low; /* the fewest there were since the last trim */
};

struct wr_sketch_pool {
    struct shelf shelves[WR_STORE_SIZES]; /* by wr_store_size of the block */
    size_t count;                         /* over all shelves */
    size_t max;
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
    (void)weir_mapping_ref(o.mapping);
    pool->max = spare_max;
    *ret_pool = pool;
    return WEIR_OK;
}

void wr_sketch_pool_free(struct wr_sketch_pool *pool)
{
    if (!pool)
        return;
    const struct weir_alloc a = pool->opts.alloc;
    weir_mapping_unref(pool->opts.mapping);
    for (size_t i = 0; i < WR_STORE_SIZES; i++) {
        struct shelf *const s = &pool->shelves[i];
        for (size_t k = 0; k < s->count; k++) {
            unpoison(s->spares[k]);
            weir_sketch_free(s->spares[k]);
        }
        wr_free(&a, s->spares, s->cap * sizeof(struct weir_sketch *));
    }
    wr_free(&a, pool, sizeof *pool);
}

/* The shelf that serves a wish best: its own size, else the next larger, else the next smaller.
 * NULL: all are empty. */
static struct shelf *shelf_for(struct wr_sketch_pool *pool, size_t size)
{
    for (size_t i = size; i < WR_STORE_SIZES; i++) {
        if (pool->shelves[i].count)
            return &pool->shelves[i];
        pool->shelves[i].low = 0;
    }
    for (size_t i = size; i-- > 0;) {
        if (pool->shelves[i].count)
            return &pool->shelves[i];
        pool->shelves[i].low = 0;
    }
    return NULL;
}

struct weir_sketch *wr_sketch_pool_get(struct wr_sketch_pool *pool, uint8_t size)
{
    struct weir_sketch *sk;
    WR_ASSERT(size < WR_STORE_SIZES);
    struct shelf *const s = pool->count ? shelf_for(pool, size) : NULL;
    if (!s)
        return weir_sketch_new(&pool->opts, &sk) == WEIR_OK ? sk : NULL;
    sk = s->spares[--s->count];
    pool->count--;
    if (s->count < s->low)
        s->low = s->count;
    unpoison(sk);
    WR_ASSERT(sk->weight == 0 && wr_sketch_check(sk));
    return sk;
}

static bool room_for_one(struct wr_sketch_pool *pool, struct shelf *s)
{
    if (pool->count >= pool->max)
        return false;
    if (s->count < s->cap)
        return true;
    const size_t cap = s->cap ? s->cap * 2 : SPARES_FIRST;
    size_t bytes;
    if (cap < s->cap || wr_mul_size(cap, sizeof(struct weir_sketch *), &bytes))
        return false;
    struct weir_sketch **const spares =
        wr_realloc(&pool->opts.alloc, s->spares, s->cap * sizeof(struct weir_sketch *), bytes);
    if (!spares)
        return false;
    s->spares = spares;
    s->cap = cap;
    return true;
}

void wr_sketch_pool_put(struct wr_sketch_pool *pool, struct weir_sketch *sk)
{
    if (!sk)
        return;
    /* a stranger's sketch must never come out again as one of this pool's */
    const bool ours = sk->grid == pool->opts.grid && sk->max_bins == pool->opts.max_bins &&
                      sk->mapping == pool->opts.mapping && sk->alloc.fn == pool->opts.alloc.fn &&
                      sk->alloc.ctx == pool->opts.alloc.ctx;
    struct shelf *const s = &pool->shelves[wr_store_size(sk->pos.bytes)];
    if (!ours || !room_for_one(pool, s)) {
        weir_sketch_free(sk);
        return;
    }
    weir_sketch_clear(sk);
    poison(sk);
    s->spares[s->count++] = sk;
    pool->count++;
}

/* The spares at the bottom are those that were not needed; half of them go. */
static void shelf_trim(struct wr_sketch_pool *pool, struct shelf *s)
{
    const size_t gone = s->low - s->low / 2;
    for (size_t i = 0; i < gone; i++) {
        unpoison(s->spares[i]);
        weir_sketch_free(s->spares[i]);
    }
    s->count -= gone;
    pool->count -= gone;
    if (gone)
        memmove(s->spares, s->spares + gone, s->count * sizeof(struct weir_sketch *));
    s->low = s->count;
}

void wr_sketch_pool_trim(struct wr_sketch_pool *pool)
{
    for (size_t i = 0; i < WR_STORE_SIZES; i++)
        shelf_trim(pool, &pool->shelves[i]);
}

size_t wr_sketch_pool_spares(const struct wr_sketch_pool *pool)
{
    return pool->count;
}

uint8_t wr_sketch_size(const struct weir_sketch *sk)
{
    int32_t lo;
    int32_t hi;
    if (!wr_store_used(&sk->pos, &lo, &hi))
        return 0;
    return wr_store_size(((uint32_t)(hi - lo) + 1) << sk->pos.width);
}

struct weir_sketch *wr_sketch_pool_copy(struct wr_sketch_pool *pool, const struct weir_sketch *src)
{
    struct weir_sketch *const sk = wr_sketch_pool_get(pool, wr_sketch_size(src));
    if (!sk)
        return NULL;
    if (weir_sketch_merge(sk, src) != WEIR_OK) {
        wr_sketch_pool_put(pool, sk);
        return NULL;
    }
    return sk;
}
