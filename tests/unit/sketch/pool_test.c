/* SPDX-License-Identifier: Apache-2.0 */
/* pool: spares come back empty, of the right kind, within the limit. */
#include "t_sketch.h"

#define SPANS 200

static struct wr_sketch_pool *make(struct t_heap *h, uint32_t grid, uint32_t max_bins, size_t max)
{
    const struct weir_sketch_opts o = {
        .struct_size = sizeof o, .alloc = {t_heap_fn, h}, .grid = grid, .max_bins = max_bins};
    struct wr_sketch_pool *pool;
    T_OK(wr_sketch_pool_new(&o, max, &pool));
    T_EQ_U64(wr_sketch_pool_spares(pool), 0);
    return pool;
}

TEST(bad_options_are_refused)
{
    struct wr_sketch_pool *pool = NULL;
    const struct weir_sketch_opts o = {.struct_size = sizeof o, .max_bins = 1};
    T_ERR(wr_sketch_pool_new(&o, 4, &pool), WEIR_EINVAL);
    T_TRUE(pool == NULL);
    wr_sketch_pool_free(NULL);
}

TEST(from_the_second_window_on_nothing_is_allocated)
{
    struct t_heap h = {.fail_at = -1};
    struct wr_sketch_pool *const pool = make(&h, WEIR_GRID_NS, 0, 64);
    struct t_rng rng = t_rng(t_seed());
    int64_t spans[SPANS];
    for (int i = 0; i < SPANS; i++)
        spans[i] = i % 3 ? (int64_t)(t_next(&rng) >> (30 + t_below(&rng, 20))) : 5000000;
    struct weir_sketch *open[16];
    long after_first = 0;
    for (int window = 0; window < 4; window++) {
        for (int k = 0; k < 16; k++) {
            open[k] = wr_sketch_pool_get(pool, 0);
            for (int round = 0; round < 10; round++)
                for (int i = 0; i < SPANS; i++)
                    T_OK(wr_sketch_add_ns(open[k], spans[i], ONE));
            T_EQ_U64(weir_sketch_weight(open[k]), 10 * SPANS * ONE);
        }
        for (int k = 0; k < 16; k++)
            wr_sketch_pool_put(pool, open[k]);
        T_EQ_U64(wr_sketch_pool_spares(pool), 16);
        if (window == 0)
            after_first = h.seen;
    }
    T_EQ_I64(h.seen, after_first);
    wr_sketch_pool_free(pool);
    T_EQ_I64(h.live, 0);
}

TEST(a_recycled_sketch_equals_a_fresh_one)
{
    struct t_heap h = {.fail_at = -1};
    struct wr_sketch_pool *const pool = make(&h, WEIR_GRID_VALUE, 0, 4);
    struct weir_sketch *sk = wr_sketch_pool_get(pool, 0);
    for (int i = 0; i < 1000; i++)
        T_OK(weir_sketch_add(sk, 1e6 - i * 3e3, 0));
    wr_sketch_pool_put(pool, sk);
    struct weir_sketch *const again = wr_sketch_pool_get(pool, 0);
    T_TRUE(again == sk);
    T_OK(weir_sketch_add(again, 1e-3, 0));
    struct weir_sketch *const fresh = t_sketch(WEIR_GRID_VALUE, 0);
    T_OK(weir_sketch_add(fresh, 1e-3, 0));
    t_sketch_same(again, fresh);
    weir_sketch_free(fresh);
    wr_sketch_pool_put(pool, again);
    wr_sketch_pool_free(pool);
    T_EQ_I64(h.live, 0);
}

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#define POISONED(p) (__asan_address_is_poisoned(p) != 0)
#define SEES_POISON true
#else
#define POISONED(p) ((void)(p), false)
#define SEES_POISON false
#endif

TEST(under_asan_a_spare_is_poisoned_and_what_comes_out_is_not)
{
    struct t_heap h = {.fail_at = -1};
    struct wr_sketch_pool *const pool = make(&h, WEIR_GRID_NS, 0, 4);
    struct weir_sketch *const sk = wr_sketch_pool_get(pool, 0);
    T_TRUE(!POISONED(sk));
    wr_sketch_pool_put(pool, sk);
    T_TRUE(POISONED(sk) == SEES_POISON);
    T_TRUE(wr_sketch_pool_get(pool, 0) == sk);
    T_TRUE(!POISONED(sk));
    T_OK(wr_sketch_add_ns(sk, 1, ONE));
    weir_sketch_free(sk);
    wr_sketch_pool_free(pool);
    T_EQ_I64(h.live, 0);
}

TEST(past_its_limit_a_pool_frees)
{
    struct t_heap h = {.fail_at = -1};
    struct wr_sketch_pool *const pool = make(&h, WEIR_GRID_NS, 0, 2);
    struct weir_sketch *sk[3];
    for (int i = 0; i < 3; i++)
        sk[i] = wr_sketch_pool_get(pool, 0);
    for (int i = 0; i < 3; i++)
        wr_sketch_pool_put(pool, sk[i]);
    wr_sketch_pool_put(pool, NULL);
    T_EQ_U64(wr_sketch_pool_spares(pool), 2);
    T_TRUE(wr_sketch_pool_get(pool, 0) == sk[1]); /* last in, first out */
    weir_sketch_free(sk[1]);
    wr_sketch_pool_free(pool);
    T_EQ_I64(h.live, 0);

    struct wr_sketch_pool *const none = make(&h, WEIR_GRID_NS, 0, 0);
    wr_sketch_pool_put(none, wr_sketch_pool_get(none, 0));
    T_EQ_U64(wr_sketch_pool_spares(none), 0);
    wr_sketch_pool_free(none);
    T_EQ_I64(h.live, 0);
}

TEST(a_pool_never_hands_out_another_kind)
{
    struct t_heap h = {.fail_at = -1};
    struct wr_sketch_pool *const pool = make(&h, WEIR_GRID_NS, 2048, 8);
    struct wr_sketch_pool *const values = make(&h, WEIR_GRID_VALUE, 2048, 8);
    struct wr_sketch_pool *const narrow = make(&h, WEIR_GRID_NS, 64, 8);
    wr_sketch_pool_put(pool, wr_sketch_pool_get(values, 0));
    wr_sketch_pool_put(pool, wr_sketch_pool_get(narrow, 0));
    wr_sketch_pool_put(pool, t_sketch(WEIR_GRID_NS, 2048)); /* of another heap */
    T_EQ_U64(wr_sketch_pool_spares(pool), 0);
    struct weir_sketch *const sk = wr_sketch_pool_get(pool, 0);
    T_EQ_U64(weir_sketch_grid(sk), WEIR_GRID_NS);
    wr_sketch_pool_put(pool, sk);
    T_EQ_U64(wr_sketch_pool_spares(pool), 1);
    wr_sketch_pool_free(pool);
    wr_sketch_pool_free(values);
    wr_sketch_pool_free(narrow);
    T_EQ_I64(h.live, 0);
}

TEST(a_trim_frees_half_of_what_was_not_needed)
{
    struct t_heap h = {.fail_at = -1};
    struct wr_sketch_pool *const pool = make(&h, WEIR_GRID_NS, 0, 100);
    struct weir_sketch *sk[20];
    for (int i = 0; i < 20; i++)
        sk[i] = wr_sketch_pool_get(pool, 0);
    for (int i = 0; i < 20; i++)
        wr_sketch_pool_put(pool, sk[i]);
    wr_sketch_pool_trim(pool); /* all 20 were needed since the pool was made */
    T_EQ_U64(wr_sketch_pool_spares(pool), 20);
    for (int i = 0; i < 12; i++)
        sk[i] = wr_sketch_pool_get(pool, 0);
    for (int i = 0; i < 12; i++)
        wr_sketch_pool_put(pool, sk[i]);
    wr_sketch_pool_trim(pool); /* 8 were not */
    T_EQ_U64(wr_sketch_pool_spares(pool), 16);
    wr_sketch_pool_trim(pool);
    T_EQ_U64(wr_sketch_pool_spares(pool), 8);
    for (int i = 0; i < 8; i++)
        wr_sketch_pool_trim(pool);
    T_EQ_U64(wr_sketch_pool_spares(pool), 0);
    wr_sketch_pool_free(pool);
    T_EQ_I64(h.live, 0);
}

TEST(a_copy_has_the_contents_and_stands_alone)
{
    struct t_heap h = {.fail_at = -1};
    struct wr_sketch_pool *const pool = make(&h, WEIR_GRID_NS, 0, 4);
    struct weir_sketch *const sk = wr_sketch_pool_get(pool, 0);
    for (int i = 0; i < 1000; i++)
        T_OK(wr_sketch_add_ns(sk, i * INT64_C(1000003), ONE));
    struct weir_sketch *const copy = wr_sketch_pool_copy(pool, sk);
    t_sketch_same(copy, sk);
    T_OK(wr_sketch_add_ns(sk, 5, ONE));
    T_EQ_U64(weir_sketch_weight(copy), 1000 * ONE);
    wr_sketch_pool_put(pool, copy);
    wr_sketch_pool_put(pool, sk);
    wr_sketch_pool_free(pool);
    T_EQ_I64(h.live, 0);
}

/* A sketch whose block is as large as that many bins need. */
static struct weir_sketch *sized(struct wr_sketch_pool *pool, int doublings)
{
    struct weir_sketch *const sk = wr_sketch_pool_get(pool, 0);
    for (int i = 0; i <= doublings; i++)
        T_OK(wr_sketch_add_ns(sk, INT64_C(1000) << i, ONE));
    return sk;
}

TEST(a_spare_of_the_size_asked_for_comes_first)
{
    struct t_heap h = {.fail_at = -1};
    struct wr_sketch_pool *const pool = make(&h, WEIR_GRID_NS, 0, 8);
    struct weir_sketch *const small = sized(pool, 0);
    struct weir_sketch *const middle = sized(pool, 3);
    struct weir_sketch *const large = sized(pool, 14);
    const uint8_t sizes[] = {wr_sketch_size(small), wr_sketch_size(middle), wr_sketch_size(large)};
    T_TRUE(sizes[0] < sizes[1] && sizes[1] < sizes[2] && sizes[2] < 32);
    wr_sketch_pool_put(pool, small);
    wr_sketch_pool_put(pool, large);
    wr_sketch_pool_put(pool, middle);
    T_TRUE(wr_sketch_pool_get(pool, sizes[2]) == large);
    T_TRUE(wr_sketch_pool_get(pool, sizes[0]) == small);
    /* What is not there: the next larger, then what there is, then a new one. */
    T_TRUE(wr_sketch_pool_get(pool, sizes[0]) == middle);
    wr_sketch_pool_put(pool, small);
    T_TRUE(wr_sketch_pool_get(pool, sizes[2]) == small);
    struct weir_sketch *const fresh = wr_sketch_pool_get(pool, 31);
    T_TRUE(fresh && fresh != small && fresh != middle && fresh != large);
    T_EQ_U64(wr_sketch_size(fresh), 0);
    weir_sketch_free(small);
    weir_sketch_free(middle);
    weir_sketch_free(large);
    weir_sketch_free(fresh);
    wr_sketch_pool_free(pool);
    T_EQ_I64(h.live, 0);
}
