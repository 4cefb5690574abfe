/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pool: cleared sketches, last in first out. See sketch.h.
 *
 * Headers come from slabs, a line each; what comes and goes more often are their blocks. Spares lie
 * on shelves by the size of their block, and a caller that knows how much its last sketch came to
 * need asks for that size: so a steady set of keys, however their windows overlap, soon allocates
 * nothing, without every block growing to the size of the largest.
 *
 * The lists of spares and of headers that have nothing are arrays outside them, so that both can be
 * poisoned whole: a write through a stale pointer is then seen by ASan, which a recycler otherwise
 * hides from it.
 *
 * Threads: owner. Memory: a line and a pointer a header, in slabs, which go when a trim finds
 * nothing of them in use; the blocks of the spares.
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
#define SLAB_FIRST 16u /* headers */
#define SLAB_MOST 1023u
#define SHELVES 256u

/* Sketches, last in first out. */
struct stack {
    struct weir_sketch **at;
    size_t count;
    size_t cap;
};

/* Spares of one size of block. */
struct shelf {
    struct stack spares;
    size_t low;  /* the fewest there were since the last trim */
    size_t high; /* the most */
};

struct slab {
    struct weir_sketch *first;
    size_t headers;
    size_t bare; /* of those, when a trim has counted */
    void *block; /* what the allocator gave */
    size_t block_bytes;
};

struct weir_sketch_pool {
    struct shelf shelves[SHELVES]; /* by size of the block */
    uint64_t filled[SHELVES / 64]; /* which of them have a spare */
    size_t count;                  /* over all shelves */
    size_t max;
    struct slab *slabs; /* by address */
    size_t slab_count;
    size_t slab_cap;
    size_t headers;    /* in all slabs */
    struct stack bare; /* headers that have nothing; room for all there are */
    struct wr_kind kind;
};

static void poison(struct weir_sketch *sk)
{
    if (sk->flags & WR_SK_REST) {
        struct wr_rest *const rest = sk->of.rest;
        if (rest->neg.bytes)
            POISON(rest->neg.bins, rest->neg.bytes);
        POISON(rest, sizeof *rest);
    }
    if (sk->size)
        POISON(sk->bins, wr_store_bytes(sk->size));
    POISON(sk, sizeof *sk);
}

static void unpoison(struct weir_sketch *sk)
{
    UNPOISON(sk, sizeof *sk);
    if (sk->size)
        UNPOISON(sk->bins, wr_store_bytes(sk->size));
    if (sk->flags & WR_SK_REST) {
        struct wr_rest *const rest = sk->of.rest;
        UNPOISON(rest, sizeof *rest);
        if (rest->neg.bytes)
            UNPOISON(rest->neg.bins, rest->neg.bytes);
    }
}

/* Room for least pointers; false: no memory. */
static bool stack_room(const struct weir_alloc *a, struct stack *s, size_t least)
{
    if (least <= s->cap)
        return true;
    size_t cap = s->cap ? s->cap : SPARES_FIRST;
    while (cap < least)
        cap *= 2;
    size_t bytes;
    if (wr_mul_size(cap, sizeof(struct weir_sketch *), &bytes))
        return false;
    struct weir_sketch **const at =
        wr_realloc(a, s->at, s->cap * sizeof(struct weir_sketch *), bytes);
    if (!at)
        return false;
    s->at = at;
    s->cap = cap;
    return true;
}

/* Give back most of what is far more than least pointers need. */
static void stack_shrink(const struct weir_alloc *a, struct stack *s, size_t least)
{
    size_t cap = s->cap;
    while (cap > SPARES_FIRST && cap / 4 >= least)
        cap /= 2;
    if (cap == s->cap)
        return;
    struct weir_sketch **const at = wr_realloc(a, s->at, s->cap * sizeof(struct weir_sketch *),
                                               cap * sizeof(struct weir_sketch *));
    if (!at)
        return; /* it stands as it was */
    s->at = at;
    s->cap = cap;
}

static void stack_done(const struct weir_alloc *a, struct stack *s)
{
    wr_free(a, s->at, s->cap * sizeof(struct weir_sketch *));
}

int wr_sketch_pool_new(const struct weir_sketch_opts *opts, size_t spare_max, bool roomy,
                       struct weir_sketch_pool **ret_pool)
{
    struct weir_sketch_opts o;
    const int r = wr_sketch_opts_read(opts, &o);
    if (r != WEIR_OK)
        return r;
    struct weir_sketch_pool *const pool = wr_alloc_zero(&o.alloc, sizeof *pool);
    if (!pool)
        return WEIR_ENOMEM;
    pool->kind =
        (struct wr_kind){.head = wr_kind_head_of(weir_mapping_ref(o.mapping), o.max_bins, o.grid),
                         .alloc = o.alloc,
                         .pool = pool,
                         .home = WR_KIND_POOL,
                         .roomy = roomy};
    pool->max = spare_max;
    *ret_pool = pool;
    return WEIR_OK;
}

int weir_sketch_pool_new(const struct weir_sketch_opts *opts, size_t spare_max,
                         struct weir_sketch_pool **ret_pool)
{
    return wr_sketch_pool_new(opts, spare_max, false, ret_pool);
}

/* The blocks of a spare go, its header becomes bare. */
static void drop(struct weir_sketch_pool *pool, struct weir_sketch *sk)
{
    unpoison(sk);
    wr_sketch_strip(sk);
    wr_sketch_pool_take_back(pool, sk);
}

static void slab_free(const struct weir_alloc *a, const struct slab *slab)
{
    UNPOISON(slab->first, slab->headers * sizeof(struct weir_sketch));
    wr_free(a, slab->block, slab->block_bytes);
}

void weir_sketch_pool_free(struct weir_sketch_pool *pool)
{
    if (!pool)
        return;
    const struct weir_alloc a = pool->kind.alloc;
    for (size_t i = 0; i < SHELVES; i++) {
        struct stack *const s = &pool->shelves[i].spares;
        for (size_t k = 0; k < s->count; k++)
            drop(pool, s->at[k]);
        stack_done(&a, s);
    }
    WR_ASSERT(pool->bare.count == pool->headers); /* all that were given out are back */
    stack_done(&a, &pool->bare);
    for (size_t i = 0; i < pool->slab_count; i++)
        slab_free(&a, &pool->slabs[i]);
    wr_free(&a, pool->slabs, pool->slab_cap * sizeof(struct slab));
    weir_mapping_unref(pool->kind.head.mapping);
    wr_free(&a, pool, sizeof *pool);
}

/* The slab in its place; false: no memory. */
static bool slab_keep(struct weir_sketch_pool *pool, const struct slab *slab)
{
    if (pool->slab_count == pool->slab_cap) {
        const size_t cap = pool->slab_cap ? pool->slab_cap * 2 : 4;
        struct slab *const more =
            wr_realloc(&pool->kind.alloc, pool->slabs, pool->slab_cap * sizeof(struct slab),
                       cap * sizeof(struct slab));
        if (!more)
            return false;
        pool->slabs = more;
        pool->slab_cap = cap;
    }
    struct slab *const slabs = pool->slabs;
    size_t at = pool->slab_count++;
    for (; at && slabs[at - 1].first > slab->first; at--)
        slabs[at] = slabs[at - 1];
    slabs[at] = *slab;
    return true;
}

/* More bare headers; false: no memory. */
static bool more_headers(struct weir_sketch_pool *pool)
{
    const struct weir_alloc *const a = &pool->kind.alloc;
    struct slab slab = {.headers = pool->headers < SLAB_FIRST  ? SLAB_FIRST
                                   : pool->headers > SLAB_MOST ? SLAB_MOST
                                                               : pool->headers};
    if (!stack_room(a, &pool->bare, pool->headers + slab.headers))
        return false;
    slab.first = wr_alloc_aligned64(a, slab.headers * sizeof(struct weir_sketch), &slab.block,
                                    &slab.block_bytes);
    if (!slab.first)
        return false;
    if (!slab_keep(pool, &slab)) {
        wr_free(a, slab.block, slab.block_bytes);
        return false;
    }
    pool->headers += slab.headers;
    for (size_t i = slab.headers; i-- > 0;) {
        wr_sketch_init(slab.first + i, &pool->kind);
        wr_sketch_pool_take_back(pool, slab.first + i);
    }
    return true;
}

void wr_sketch_pool_take_back(struct weir_sketch_pool *pool, struct weir_sketch *sk)
{
    WR_ASSERT(pool->bare.count < pool->bare.cap && sk->of.kind == &pool->kind && !sk->size);
    POISON(sk, sizeof *sk);
    pool->bare.at[pool->bare.count++] = sk;
}

static struct weir_sketch *take_bare(struct weir_sketch_pool *pool)
{
    if (!pool->bare.count && !more_headers(pool))
        return NULL;
    struct weir_sketch *const sk = pool->bare.at[--pool->bare.count];
    UNPOISON(sk, sizeof *sk);
    return sk;
}

/* The shelf that serves a wish best: its own size, else the next larger, else the next smaller.
 * There is one that is not empty. */
static size_t shelf_for(const struct weir_sketch_pool *pool, size_t size)
{
    size_t word = size / 64;
    uint64_t bits = pool->filled[word] & UINT64_MAX << size % 64;
    while (!bits && word < SHELVES / 64 - 1)
        bits = pool->filled[++word];
    if (bits)
        return word * 64 + wr_ctz64(bits);
    word = size / 64;
    bits = pool->filled[word];
    while (!bits)
        bits = pool->filled[--word];
    return word * 64 + (63 - wr_clz64(bits));
}

struct weir_sketch *weir_sketch_pool_get(struct weir_sketch_pool *pool, uint8_t size)
{
    if (!pool->count)
        return take_bare(pool);
    const size_t which = shelf_for(pool, size);
    struct shelf *const s = &pool->shelves[which];
    struct weir_sketch *const sk = s->spares.at[--s->spares.count];
    pool->count--;
    if (s->spares.count < s->low)
        s->low = s->spares.count;
    if (!s->spares.count)
        pool->filled[which / 64] &= ~((uint64_t)1 << which % 64);
    unpoison(sk);
    WR_ASSERT(sk->weight == 0 && wr_sketch_check(sk));
    return sk;
}

void weir_sketch_pool_put(struct weir_sketch_pool *pool, struct weir_sketch *sk)
{
    if (!sk)
        return;
    /* a stranger's sketch must never come out again as one of this pool's */
    const bool ours = wr_sketch_kind(sk) == &pool->kind;
    struct shelf *const s = &pool->shelves[sk->size];
    if (!ours || pool->count >= pool->max ||
        !stack_room(&pool->kind.alloc, &s->spares, s->spares.count + 1)) {
        weir_sketch_free(sk);
        return;
    }
    weir_sketch_clear(sk);
    pool->filled[sk->size / 64] |= (uint64_t)1 << sk->size % 64;
    poison(sk);
    s->spares.at[s->spares.count++] = sk;
    s->high = s->spares.count > s->high ? s->spares.count : s->high;
    pool->count++;
}

/* The spares at the bottom are those that were not needed; half of them go. */
static void shelf_trim(struct weir_sketch_pool *pool, size_t which)
{
    struct shelf *const s = &pool->shelves[which];
    const size_t gone = s->low - s->low / 2;
    for (size_t i = 0; i < gone; i++)
        drop(pool, s->spares.at[i]);
    s->spares.count -= gone;
    pool->count -= gone;
    if (gone)
        memmove(s->spares.at, s->spares.at + gone, s->spares.count * sizeof(struct weir_sketch *));
    s->low = s->spares.count;
    stack_shrink(&pool->kind.alloc, &s->spares, s->high);
    s->high = s->spares.count;
    if (!s->spares.count)
        pool->filled[which / 64] &= ~((uint64_t)1 << which % 64);
}

static struct slab *slab_of(struct weir_sketch_pool *pool, const struct weir_sketch *sk)
{
    size_t lo = 0;
    for (size_t n = pool->slab_count; n > 1;) {
        const size_t half = n / 2;
        if (pool->slabs[lo + half].first <= sk)
            lo += half;
        n -= half;
    }
    return &pool->slabs[lo];
}

/* Give back the slabs of which no header is in use. */
static void slabs_trim(struct weir_sketch_pool *pool)
{
    const struct weir_alloc *const a = &pool->kind.alloc;
    for (size_t i = 0; i < pool->slab_count; i++)
        pool->slabs[i].bare = 0;
    for (size_t i = 0; i < pool->bare.count; i++)
        slab_of(pool, pool->bare.at[i])->bare++;
    size_t kept = 0;
    for (size_t i = 0; i < pool->bare.count; i++) {
        const struct slab *const slab = slab_of(pool, pool->bare.at[i]);
        if (slab->bare < slab->headers)
            pool->bare.at[kept++] = pool->bare.at[i];
    }
    pool->bare.count = kept;
    kept = 0;
    for (size_t i = 0; i < pool->slab_count; i++) {
        if (pool->slabs[i].bare < pool->slabs[i].headers) {
            pool->slabs[kept++] = pool->slabs[i];
            continue;
        }
        pool->headers -= pool->slabs[i].headers;
        slab_free(a, &pool->slabs[i]);
    }
    pool->slab_count = kept;
    stack_shrink(a, &pool->bare, pool->headers);
}

void weir_sketch_pool_trim(struct weir_sketch_pool *pool)
{
    for (size_t i = 0; i < SHELVES; i++)
        shelf_trim(pool, i);
    if (pool->bare.count > pool->headers / 2)
        slabs_trim(pool);
}

size_t weir_sketch_pool_spares(const struct weir_sketch_pool *pool)
{
    return pool->count;
}

uint8_t weir_sketch_size(const struct weir_sketch *sk)
{
    if (sk->flags & WR_SK_LIST)
        return wr_store_size(sk->cap * 2u);
    const struct wr_store pos = wr_sketch_take(sk);
    int32_t lo;
    int32_t hi;
    if (!wr_store_used(&pos, &lo, &hi))
        return 0;
    return wr_store_size(((uint32_t)hi - (uint32_t)lo + 1) << pos.width);
}

struct weir_sketch *wr_sketch_pool_copy(struct weir_sketch_pool *pool,
                                        const struct weir_sketch *src)
{
    struct weir_sketch *const sk = weir_sketch_pool_get(pool, weir_sketch_size(src));
    if (!sk)
        return NULL;
    if (weir_sketch_merge(sk, src) != WEIR_OK) {
        weir_sketch_pool_put(pool, sk);
        return NULL;
    }
    return sk;
}
