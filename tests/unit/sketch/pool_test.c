/* SPDX-License-Identifier: Apache-2.0 */
/* pool: spares come back empty, of the right kind, within the limit. */
#include "t_sketch.h"

#include <math.h>

#define SPANS 200

static struct weir_sketch_pool *make(struct t_heap *h, uint32_t grid, uint32_t max_bins, size_t max)
{
    const struct weir_sketch_opts o = {
        .struct_size = sizeof o, .alloc = {t_heap_fn, h}, .grid = grid, .max_bins = max_bins};
    struct weir_sketch_pool *pool;
    T_OK(weir_sketch_pool_new(&o, max, &pool));
    T_EQ_U64(weir_sketch_pool_spares(pool), 0);
    return pool;
}

TEST(bad_options_are_refused)
{
    struct weir_sketch_pool *pool = NULL;
    const struct weir_sketch_opts o = {.struct_size = sizeof o, .max_bins = 1};
    T_ERR(weir_sketch_pool_new(&o, 4, &pool), WEIR_EINVAL);
    T_TRUE(pool == NULL);
    weir_sketch_pool_free(NULL);
}

TEST(from_the_second_window_on_nothing_is_allocated)
{
    struct t_heap h = {.fail_at = -1};
    struct weir_sketch_pool *const pool = make(&h, WEIR_GRID_NS, 0, 64);
    struct t_rng rng = t_rng(t_seed());
    int64_t spans[SPANS];
    for (int i = 0; i < SPANS; i++)
        spans[i] = i % 3 ? (int64_t)(t_next(&rng) >> (30 + t_below(&rng, 20))) : 5000000;
    struct weir_sketch *open[16];
    long after_first = 0;
    for (int window = 0; window < 4; window++) {
        for (int k = 0; k < 16; k++) {
            open[k] = weir_sketch_pool_get(pool, 0);
            for (int round = 0; round < 10; round++)
                for (int i = 0; i < SPANS; i++)
                    T_OK(wr_sketch_add_ns(open[k], spans[i], ONE));
            T_EQ_U64(weir_sketch_weight(open[k]), 10 * SPANS * ONE);
        }
        for (int k = 0; k < 16; k++)
            weir_sketch_pool_put(pool, open[k]);
        T_EQ_U64(weir_sketch_pool_spares(pool), 16);
        if (window == 0)
            after_first = h.seen;
    }
    T_EQ_I64(h.seen, after_first);
    weir_sketch_pool_free(pool);
    T_EQ_I64(h.live, 0);
}

TEST(a_recycled_sketch_equals_a_fresh_one)
{
    struct t_heap h = {.fail_at = -1};
    struct weir_sketch_pool *const pool = make(&h, WEIR_GRID_VALUE, 0, 4);
    struct weir_sketch *sk = weir_sketch_pool_get(pool, 0);
    for (int i = 0; i < 1000; i++)
        T_OK(weir_sketch_add(sk, 1e6 - i * 3e3, 0));
    weir_sketch_pool_put(pool, sk);
    struct weir_sketch *const again = weir_sketch_pool_get(pool, 0);
    T_TRUE(again == sk);
    T_OK(weir_sketch_add(again, 1e-3, 0));
    struct weir_sketch *const fresh = t_sketch(WEIR_GRID_VALUE, 0);
    T_OK(weir_sketch_add(fresh, 1e-3, 0));
    t_sketch_same(again, fresh);
    weir_sketch_free(fresh);
    weir_sketch_pool_put(pool, again);
    weir_sketch_pool_free(pool);
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
    struct weir_sketch_pool *const pool = make(&h, WEIR_GRID_NS, 0, 4);
    struct weir_sketch *const sk = weir_sketch_pool_get(pool, 0);
    T_TRUE(!POISONED(sk));
    weir_sketch_pool_put(pool, sk);
    T_TRUE(POISONED(sk) == SEES_POISON);
    T_TRUE(weir_sketch_pool_get(pool, 0) == sk);
    T_TRUE(!POISONED(sk));
    T_OK(wr_sketch_add_ns(sk, 1, ONE));
    weir_sketch_free(sk);
    weir_sketch_pool_free(pool);
    T_EQ_I64(h.live, 0);
}

TEST(past_its_limit_a_pool_frees)
{
    struct t_heap h = {.fail_at = -1};
    struct weir_sketch_pool *const pool = make(&h, WEIR_GRID_NS, 0, 2);
    struct weir_sketch *sk[3];
    for (int i = 0; i < 3; i++)
        sk[i] = weir_sketch_pool_get(pool, 0);
    for (int i = 0; i < 3; i++)
        weir_sketch_pool_put(pool, sk[i]);
    weir_sketch_pool_put(pool, NULL);
    T_EQ_U64(weir_sketch_pool_spares(pool), 2);
    T_TRUE(weir_sketch_pool_get(pool, 0) == sk[1]); /* last in, first out */
    weir_sketch_free(sk[1]);
    weir_sketch_pool_free(pool);
    T_EQ_I64(h.live, 0);

    struct weir_sketch_pool *const none = make(&h, WEIR_GRID_NS, 0, 0);
    weir_sketch_pool_put(none, weir_sketch_pool_get(none, 0));
    T_EQ_U64(weir_sketch_pool_spares(none), 0);
    weir_sketch_pool_free(none);
    T_EQ_I64(h.live, 0);
}

TEST(a_pool_never_hands_out_another_kind)
{
    struct t_heap h = {.fail_at = -1};
    struct weir_sketch_pool *const pool = make(&h, WEIR_GRID_NS, 2048, 8);
    struct weir_sketch_pool *const values = make(&h, WEIR_GRID_VALUE, 2048, 8);
    struct weir_sketch_pool *const narrow = make(&h, WEIR_GRID_NS, 64, 8);
    weir_sketch_pool_put(pool, weir_sketch_pool_get(values, 0));
    weir_sketch_pool_put(pool, weir_sketch_pool_get(narrow, 0));
    weir_sketch_pool_put(pool, t_sketch(WEIR_GRID_NS, 2048)); /* of another heap */
    T_EQ_U64(weir_sketch_pool_spares(pool), 0);
    struct weir_sketch *const sk = weir_sketch_pool_get(pool, 0);
    T_EQ_U64(weir_sketch_grid(sk), WEIR_GRID_NS);
    weir_sketch_pool_put(pool, sk);
    T_EQ_U64(weir_sketch_pool_spares(pool), 1);
    weir_sketch_pool_free(pool);
    weir_sketch_pool_free(values);
    weir_sketch_pool_free(narrow);
    T_EQ_I64(h.live, 0);
}

TEST(a_trim_frees_half_of_what_was_not_needed)
{
    struct t_heap h = {.fail_at = -1};
    struct weir_sketch_pool *const pool = make(&h, WEIR_GRID_NS, 0, 100);
    struct weir_sketch *sk[20];
    for (int i = 0; i < 20; i++)
        sk[i] = weir_sketch_pool_get(pool, 0);
    for (int i = 0; i < 20; i++)
        weir_sketch_pool_put(pool, sk[i]);
    weir_sketch_pool_trim(pool); /* all 20 were needed since the pool was made */
    T_EQ_U64(weir_sketch_pool_spares(pool), 20);
    for (int i = 0; i < 12; i++)
        sk[i] = weir_sketch_pool_get(pool, 0);
    for (int i = 0; i < 12; i++)
        weir_sketch_pool_put(pool, sk[i]);
    weir_sketch_pool_trim(pool); /* 8 were not */
    T_EQ_U64(weir_sketch_pool_spares(pool), 16);
    weir_sketch_pool_trim(pool);
    T_EQ_U64(weir_sketch_pool_spares(pool), 8);
    for (int i = 0; i < 8; i++)
        weir_sketch_pool_trim(pool);
    T_EQ_U64(weir_sketch_pool_spares(pool), 0);
    weir_sketch_pool_free(pool);
    T_EQ_I64(h.live, 0);
}

TEST(a_copy_has_the_contents_and_stands_alone)
{
    struct t_heap h = {.fail_at = -1};
    struct weir_sketch_pool *const pool = make(&h, WEIR_GRID_NS, 0, 4);
    struct weir_sketch *const sk = weir_sketch_pool_get(pool, 0);
    for (int i = 0; i < 1000; i++)
        T_OK(wr_sketch_add_ns(sk, i * INT64_C(1000003), ONE));
    struct weir_sketch *const copy = wr_sketch_pool_copy(pool, sk);
    t_sketch_same(copy, sk);
    T_OK(wr_sketch_add_ns(sk, 5, ONE));
    T_EQ_U64(weir_sketch_weight(copy), 1000 * ONE);
    weir_sketch_pool_put(pool, copy);
    weir_sketch_pool_put(pool, sk);
    weir_sketch_pool_free(pool);
    T_EQ_I64(h.live, 0);
}

/* A sketch whose block is as large as that many bins need: heavier than a list takes. */
static struct weir_sketch *sized(struct weir_sketch_pool *pool, int doublings)
{
    struct weir_sketch *const sk = weir_sketch_pool_get(pool, 0);
    for (int i = 0; i <= doublings; i++)
        T_OK(wr_sketch_add_ns(sk, INT64_C(1000) << i, 2 * ONE));
    return sk;
}

TEST(a_spare_of_the_size_asked_for_comes_first)
{
    struct t_heap h = {.fail_at = -1};
    struct weir_sketch_pool *const pool = make(&h, WEIR_GRID_NS, 0, 8);
    struct weir_sketch *const small = sized(pool, 0);
    struct weir_sketch *const middle = sized(pool, 3);
    struct weir_sketch *const large = sized(pool, 14);
    const uint8_t sizes[] = {weir_sketch_size(small), weir_sketch_size(middle),
                             weir_sketch_size(large)};
    T_TRUE(sizes[0] < sizes[1] && sizes[1] < sizes[2]);
    weir_sketch_pool_put(pool, small);
    weir_sketch_pool_put(pool, large);
    weir_sketch_pool_put(pool, middle);
    T_TRUE(weir_sketch_pool_get(pool, sizes[2]) == large);
    T_TRUE(weir_sketch_pool_get(pool, sizes[0]) == small);
    /* What is not there: the next larger, then what there is, then a new one. */
    T_TRUE(weir_sketch_pool_get(pool, sizes[0]) == middle);
    weir_sketch_pool_put(pool, small);
    T_TRUE(weir_sketch_pool_get(pool, sizes[2]) == small);
    struct weir_sketch *const fresh = weir_sketch_pool_get(pool, 255);
    T_TRUE(fresh && fresh != small && fresh != middle && fresh != large);
    T_EQ_U64(weir_sketch_size(fresh), 0);
    weir_sketch_free(small);
    weir_sketch_free(middle);
    weir_sketch_free(large);
    weir_sketch_free(fresh);
    weir_sketch_pool_free(pool);
    T_EQ_I64(h.live, 0);
}

/* A window of keys that all go through the pool, in the order given by step. */
static void window(struct weir_sketch_pool *pool, uint8_t *sizes, int step, int samples)
{
    struct weir_sketch *open[31];
    for (int k = 0; k < 31; k++) {
        const int key = k * step % 31;
        open[key] = weir_sketch_pool_get(pool, sizes[key]);
        for (int i = 0; i < samples * (key + 1); i++)
            T_OK(weir_sketch_add(open[key], exp2((i * 37 % 400) / 30.0) + key, 0));
        T_OK(weir_sketch_add(open[key], key % 3 ? 1.0 : -1.0, 0));
        T_OK(weir_sketch_add(open[key], 0, 0));
    }
    for (int k = 0; k < 31; k++) {
        sizes[k] = weir_sketch_size(open[k]);
        weir_sketch_pool_put(pool, open[k]);
    }
}

TEST(T1_a_cleared_sketch_filled_elsewhere_has_the_bytes_of_a_fresh_one)
{
    struct weir_sketch *const sk = t_sketch(WEIR_GRID_VALUE, 0);
    struct weir_sketch *const fresh = t_sketch(WEIR_GRID_VALUE, 0);
    T_OK(weir_sketch_add(fresh, 1e-3, 0));
    for (int many = 0; many < 2; many++) {
        for (int i = 0; i < (many ? 1000 : 1); i++)
            T_OK(weir_sketch_add(sk, 1e6 + i * 1e4, 0));
        weir_sketch_clear(sk);
        T_OK(weir_sketch_add(sk, 1e-3, 0));
        t_sketch_same(sk, fresh);
        T_TRUE(weir_sketch_equal(sk, fresh));
        weir_sketch_clear(sk);
    }
    weir_sketch_free(sk);
    weir_sketch_free(fresh);
}

TEST(T2_a_cleared_sketch_is_empty_and_keeps_its_capacity)
{
    struct weir_sketch *const sk = t_sketch(WEIR_GRID_VALUE, 0);
    for (int i = 0; i < 1000; i++)
        T_OK(weir_sketch_add(sk, i - 100, 0));
    const size_t bytes = weir_sketch_bytes(sk);
    weir_sketch_clear(sk);
    double v;
    T_EQ_U64(weir_sketch_weight(sk), 0);
    T_EQ_U64(weir_sketch_bins_weight(sk), 0);
    T_EQ_DBL(weir_sketch_sum(sk), 0.0);
    T_ERR(weir_sketch_min(sk, &v), WEIR_EEMPTY);
    T_ERR(weir_sketch_max(sk, &v), WEIR_EEMPTY);
    T_EQ_U64(weir_sketch_bytes(sk), bytes);
    T_EQ_U64(weir_sketch_size(sk), 0);
    T_TRUE(wr_sketch_check(sk));
    weir_sketch_free(sk);
}

TEST(T3_the_same_keys_in_any_order_allocate_nothing_after_the_first_window)
{
    struct t_heap h = {.fail_at = -1};
    struct weir_sketch_pool *const pool = make(&h, WEIR_GRID_VALUE, 0, 64);
    uint8_t sizes[31] = {0};
    window(pool, sizes, 1, 20);
    const long after_first = h.seen;
    static const int steps[] = {1, 30, 7, 12, 3};
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        window(pool, sizes, steps[i], 20);
        weir_sketch_pool_trim(pool);
        T_EQ_I64(h.seen, after_first);
    }
    weir_sketch_pool_free(pool);
    T_EQ_I64(h.live, 0);
}

enum closed { CLOSED_WRITTEN, CLOSED_EMPTY, CLOSED_UNWRITTEN, CLOSED_WAYS };

/* Write a series of one window and give its sketch back, as a sink does once it has been read. */
static void close_series(struct weir_sketch_pool *pool, struct weir_sketch *sk, enum closed way)
{
    uint8_t bytes[512];
    size_t n;
    const size_t whole = weir_sketch_encoded_bytes(sk);
    const uint64_t weight = weir_sketch_weight(sk);
    T_TRUE(whole <= sizeof bytes);
    if (way == CLOSED_UNWRITTEN)
        T_ERR(weir_sketch_encode(sk, bytes, whole - 1, &n), WEIR_EFULL);
    else
        T_OK(weir_sketch_encode(sk, bytes, sizeof bytes, &n));
    T_EQ_U64(weir_sketch_weight(sk), weight); /* writing it, or not, left it as it was */
    const size_t spares = weir_sketch_pool_spares(pool);
    weir_sketch_pool_put(pool, sk);
    T_EQ_U64(weir_sketch_pool_spares(pool), spares + 1);
}

TEST(T4_each_closed_series_returns_once_after_it_was_written_be_it_empty_or_unwritable)
{
    struct t_heap h = {.fail_at = -1};
    struct weir_sketch_pool *const pool = make(&h, WEIR_GRID_VALUE, 0, 64);
    struct weir_sketch *const fresh = t_sketch(WEIR_GRID_VALUE, 0);
    struct weir_sketch *open[3 * CLOSED_WAYS];
    const size_t series = sizeof open / sizeof open[0];
    uint8_t sizes[sizeof open / sizeof open[0]] = {0};
    long after_first = 0;
    for (int window = 0; window < 3; window++) {
        for (size_t k = 0; k < series; k++) {
            open[k] = weir_sketch_pool_get(pool, sizes[k]);
            t_sketch_same(open[k], fresh); /* nothing of the window before */
            for (size_t other = 0; other < k; other++)
                T_TRUE(open[other] != open[k]); /* it did not return twice */
            for (int i = 0; k % CLOSED_WAYS != CLOSED_EMPTY && i < 20; i++)
                T_OK(weir_sketch_add(open[k], 1 + i * 0.5, 0));
        }
        T_EQ_U64(weir_sketch_pool_spares(pool), 0);
        for (size_t k = 0; k < series; k++)
            sizes[k] = weir_sketch_size(open[k]);
        for (size_t k = 0; k < series; k++)
            close_series(pool, open[k], (enum closed)(k % CLOSED_WAYS));
        T_EQ_U64(weir_sketch_pool_spares(pool), series);
        if (window == 0)
            after_first = h.seen;
    }
    T_EQ_I64(h.seen, after_first);
    weir_sketch_free(fresh);
    weir_sketch_pool_free(pool);
    T_EQ_I64(h.live, 0);
}

TEST(T5_clearing_an_empty_sketch_changes_nothing)
{
    struct weir_sketch *const sk = t_sketch(WEIR_GRID_VALUE, 0);
    struct weir_sketch *const want = t_sketch(WEIR_GRID_VALUE, 0);
    weir_sketch_clear(sk);
    weir_sketch_clear(sk);
    t_sketch_same(sk, want);
    T_EQ_U64(weir_sketch_bytes(sk), weir_sketch_bytes(want));
    weir_sketch_free(sk);
    weir_sketch_free(want);
}

TEST(T6_a_pool_never_hands_out_another_accuracy)
{
    struct t_heap h = {.fail_at = -1};
    struct weir_mapping *one;
    struct weir_mapping *two;
    T_OK(weir_mapping_log(NULL, 0.01, &one));
    T_OK(weir_mapping_log(NULL, 0.02, &two));
    struct weir_sketch_opts o = {.struct_size = sizeof o, .alloc = {t_heap_fn, &h}, .mapping = one};
    struct weir_sketch_pool *a;
    struct weir_sketch_pool *b;
    T_OK(weir_sketch_pool_new(&o, 8, &a));
    o.mapping = two;
    T_OK(weir_sketch_pool_new(&o, 8, &b));
    struct weir_sketch *const sk = weir_sketch_pool_get(a, 0);
    T_TRUE(weir_sketch_mapping(sk) == one);
    weir_sketch_pool_put(b, sk); /* it is freed */
    T_EQ_U64(weir_sketch_pool_spares(b), 0);
    struct weir_sketch *const other = weir_sketch_pool_get(b, 0);
    T_TRUE(weir_sketch_mapping(other) == two);
    T_NEAR(weir_sketch_accuracy(other), 0.02, 1e-12);
    weir_sketch_pool_put(b, other);
    weir_sketch_pool_free(a);
    weir_sketch_pool_free(b);
    weir_mapping_unref(one);
    weir_mapping_unref(two);
    T_EQ_I64(h.live, 0);
}

TEST(a_sketch_of_a_pool_may_be_freed_and_its_header_serves_again)
{
    struct t_heap h = {.fail_at = -1};
    struct weir_sketch_pool *const pool = make(&h, WEIR_GRID_VALUE, 0, 4);
    struct weir_sketch *const sk = weir_sketch_pool_get(pool, 0);
    T_TRUE((uintptr_t)sk % 64 == 0);
    T_OK(weir_sketch_add(sk, -1, 0));
    T_OK(weir_sketch_add(sk, 1, 0));
    weir_sketch_free(sk);
    T_EQ_U64(weir_sketch_pool_spares(pool), 0);
    struct weir_sketch *const again = weir_sketch_pool_get(pool, 0);
    T_TRUE(again == sk);
    T_EQ_U64(weir_sketch_bytes(again), 64);
    weir_sketch_free(again);
    weir_sketch_pool_free(pool);
    T_EQ_I64(h.live, 0);
}

TEST(what_a_flood_took_is_given_back_by_trims)
{
    struct t_heap h = {.fail_at = -1};
    struct weir_sketch_pool *const pool = make(&h, WEIR_GRID_VALUE, 0, 10000);
    static struct weir_sketch *sk[5000];
    const long long before = h.live;
    for (int i = 0; i < 5000; i++) {
        sk[i] = weir_sketch_pool_get(pool, 0);
        T_OK(weir_sketch_add(sk[i], i + 1, 0));
    }
    for (int i = 0; i < 5000; i++)
        weir_sketch_pool_put(pool, sk[i]);
    for (int i = 0; i < 20; i++)
        weir_sketch_pool_trim(pool);
    T_EQ_U64(weir_sketch_pool_spares(pool), 0);
    T_TRUE(h.live - before < 4096);
    sk[0] = weir_sketch_pool_get(pool, 0);
    T_OK(weir_sketch_add(sk[0], 1, 0));
    weir_sketch_pool_put(pool, sk[0]);
    weir_sketch_pool_free(pool);
    T_EQ_I64(h.live, 0);
}
