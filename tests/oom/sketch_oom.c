/* SPDX-License-Identifier: Apache-2.0 */
/* sketch: every allocation refused in turn; what fails has changed nothing and leaks nothing. */
#include "t_sketch.h"

#include <math.h>
#include <string.h>

static struct weir_sketch_opts opts(const struct weir_alloc *alloc, uint32_t grid)
{
    return (struct weir_sketch_opts){
        .struct_size = sizeof(struct weir_sketch_opts), .alloc = *alloc, .grid = grid};
}

/* sk is still what the bytes say. */
static void expect_form(const struct weir_sketch *sk, const uint8_t *form, size_t n)
{
    T_TRUE(wr_sketch_check(sk));
    size_t m;
    uint8_t *const now = t_sketch_form(sk, &m);
    T_EQ_BYTES(now, m, form, n);
    free(now);
}

/* Durations that grow the range both ways, widen counters to 64 bits and change the unit. */
static int add_durations(const struct weir_alloc *alloc, void *ctx)
{
    (void)ctx;
    const struct weir_sketch_opts o = opts(alloc, WEIR_GRID_NS);
    struct weir_sketch *sk;
    int r = weir_sketch_new(&o, &sk);
    if (r != WEIR_OK)
        return r;
    for (int i = 0; i < 400 && r == WEIR_OK; i++) {
        const int64_t ns = i < 300 ? 5000000 : INT64_C(1) << (i % 60);
        const uint64_t weight = i == 350   ? 70000 * ONE
                                : i == 360 ? (uint64_t)ONE << 33
                                : i == 370 ? 1
                                           : ONE;
        size_t n;
        uint8_t *const before = t_sketch_form(sk, &n);
        r = weir_sketch_add_ns(sk, ns, weight);
        if (r != WEIR_OK)
            expect_form(sk, before, n);
        free(before);
    }
    weir_sketch_free(sk);
    return r;
}

TEST(adding_durations_fails_without_a_trace)
{
    t_each_oom(add_durations, NULL);
}

static int fill_values(struct weir_sketch *sk, int seed)
{
    int r = WEIR_OK;
    for (int i = 0; i < 200 && r == WEIR_OK; i++) {
        const double v = exp((i * 37 + seed) % 200 / 10.0 - 5);
        size_t n;
        uint8_t *const before = t_sketch_form(sk, &n);
        r = weir_sketch_add(sk, i % 3 ? v : -v, i == 150 ? 3 : 300 * ONE);
        if (r != WEIR_OK)
            expect_form(sk, before, n);
        free(before);
    }
    return r;
}

static int add_values(const struct weir_alloc *alloc, void *ctx)
{
    (void)ctx;
    const struct weir_sketch_opts o = opts(alloc, WEIR_GRID_VALUE);
    struct weir_sketch *sk;
    int r = weir_sketch_new(&o, &sk);
    if (r != WEIR_OK)
        return r;
    r = fill_values(sk, 1);
    weir_sketch_free(sk);
    return r;
}

TEST(adding_values_fails_without_a_trace)
{
    t_each_oom(add_values, NULL);
}

static int merge_once(const struct weir_alloc *alloc, void *ctx)
{
    const struct weir_sketch *const src = ctx;
    struct weir_sketch_opts o = opts(alloc, WEIR_GRID_VALUE);
    o.max_bins = 500; /* collapses */
    struct weir_sketch *dst;
    int r = weir_sketch_new(&o, &dst);
    if (r != WEIR_OK)
        return r;
    r = weir_sketch_add(dst, 1e-3, 0);
    if (r == WEIR_OK)
        r = weir_sketch_add(dst, -1e-3, 0);
    for (int times = 0; times < 2 && r == WEIR_OK; times++) {
        size_t n;
        uint8_t *const before = t_sketch_form(dst, &n);
        r = weir_sketch_merge(dst, src);
        if (r != WEIR_OK)
            expect_form(dst, before, n);
        free(before);
    }
    weir_sketch_free(dst);
    return r;
}

TEST(a_merge_fails_without_a_trace)
{
    struct weir_sketch *const src = t_sketch(WEIR_GRID_VALUE, 0);
    T_OK(fill_values(src, 2));
    t_each_oom(merge_once, src);
    weir_sketch_free(src);
}

struct form {
    uint8_t *bytes;
    size_t n;
};

static int decode_once(const struct weir_alloc *alloc, void *ctx)
{
    const struct form *const f = ctx;
    const struct weir_sketch_opts o = opts(alloc, WEIR_GRID_VALUE);
    struct weir_sketch *sk;
    int r = weir_sketch_new(&o, &sk);
    if (r != WEIR_OK)
        return r;
    r = weir_sketch_decode(sk, f->bytes, f->n);
    T_TRUE(wr_sketch_check(sk));
    if (r != WEIR_OK)
        T_EQ_U64(weir_sketch_weight(sk), 0);
    else
        expect_form(sk, f->bytes, f->n);
    weir_sketch_free(sk);
    return r;
}

TEST(decoding_that_fails_leaves_an_empty_sketch)
{
    struct weir_sketch *const src = t_sketch(WEIR_GRID_VALUE, 0);
    T_OK(fill_values(src, 3));
    struct form f;
    f.bytes = t_sketch_form(src, &f.n);
    t_each_oom(decode_once, &f);
    free(f.bytes);
    weir_sketch_free(src);
}

static int use_pool(const struct weir_alloc *alloc, void *ctx)
{
    (void)ctx;
    const struct weir_sketch_opts o = opts(alloc, WEIR_GRID_NS);
    struct weir_sketch_pool *pool;
    int r = weir_sketch_pool_new(&o, 100, &pool);
    if (r != WEIR_OK)
        return r;
    struct weir_sketch *out[40];
    int n = 0;
    for (; n < 40; n++) {
        out[n] = n % 4 == 3 ? wr_sketch_pool_copy(pool, out[n - 1]) : weir_sketch_pool_get(pool, 0);
        r = out[n] ? weir_sketch_add_ns(out[n], INT64_C(1000) << n, 300 * ONE) : WEIR_ENOMEM;
        if (r == WEIR_OK)
            r = weir_sketch_add_ns(out[n], INT64_C(9000) << n, ONE);
        if (r != WEIR_OK)
            break;
    }
    if (n < 40)
        weir_sketch_pool_put(pool, out[n]);
    for (int i = 0; i < n; i++)
        weir_sketch_pool_put(pool, out[i]); /* cannot fail: without room it frees */
    weir_sketch_pool_trim(pool);
    weir_sketch_pool_free(pool);
    return r;
}

TEST(a_pool_without_memory_says_so_and_leaks_nothing)
{
    t_each_oom(use_pool, NULL);
}

#define BATCH 600

static double batch_value(int i)
{
    return exp((i * 37) % 200 / 10.0 - 5);
}

/* What an array leaves behind when memory ends is a part of it, from the start. */
static int add_batch(const struct weir_alloc *alloc, void *ctx)
{
    (void)ctx;
    const struct weir_sketch_opts o = opts(alloc, WEIR_GRID_VALUE);
    struct weir_sketch *sk;
    int r = weir_sketch_new(&o, &sk);
    if (r != WEIR_OK)
        return r;
    double values[BATCH];
    for (int i = 0; i < BATCH; i++)
        values[i] = i % 50 == 7 ? -batch_value(i) : batch_value(i);
    size_t refused = 1;
    r = weir_sketch_add_many(sk, values, BATCH, &refused);
    T_EQ_U64(refused, 0);
    const size_t done = (size_t)(weir_sketch_weight(sk) / ONE);
    T_TRUE(r != WEIR_OK || done == BATCH);
    struct weir_sketch *const want = t_sketch(WEIR_GRID_VALUE, 0);
    T_OK(weir_sketch_add_many(want, values, done, NULL));
    t_sketch_same(sk, want);
    weir_sketch_free(want);
    weir_sketch_free(sk);
    return r;
}

TEST(a_batch_without_memory_records_its_start)
{
    t_each_oom(add_batch, NULL);
}

#define PAIRED 5

static int add_pairs(const struct weir_alloc *alloc, void *ctx)
{
    (void)ctx;
    const struct weir_sketch_opts o = opts(alloc, WEIR_GRID_VALUE);
    struct weir_sketch *sk[PAIRED] = {0};
    int r = WEIR_OK;
    for (int i = 0; i < PAIRED && r == WEIR_OK; i++)
        r = weir_sketch_new(&o, &sk[i]);
    if (r == WEIR_OK) {
        struct weir_sketch_pair pairs[BATCH];
        for (int i = 0; i < BATCH; i++)
            pairs[i] = (struct weir_sketch_pair){sk[i % PAIRED], batch_value(i)};
        size_t refused = 0;
        r = weir_sketch_add_pairs(pairs, BATCH, &refused);
        T_TRUE((r == WEIR_OK) == (refused == 0));
        uint64_t weight = 0;
        for (int i = 0; i < PAIRED; i++) {
            T_TRUE(wr_sketch_check(sk[i]));
            weight += weir_sketch_weight(sk[i]);
        }
        T_EQ_U64(weight, (BATCH - refused) * (uint64_t)ONE);
    }
    for (int i = 0; i < PAIRED; i++)
        weir_sketch_free(sk[i]);
    return r;
}

TEST(pairs_without_memory_are_counted)
{
    t_each_oom(add_pairs, NULL);
}

static int merge_and_copy(const struct weir_alloc *alloc, void *ctx)
{
    const struct weir_sketch *const *const src = ctx;
    const struct weir_sketch_opts o = opts(alloc, WEIR_GRID_VALUE);
    struct weir_sketch *dst;
    int r = weir_sketch_new(&o, &dst);
    if (r != WEIR_OK)
        return r;
    r = weir_sketch_merge_many(dst, src, 3);
    T_TRUE(wr_sketch_check(dst));
    if (r == WEIR_OK) {
        T_EQ_U64(weir_sketch_weight(dst), weir_sketch_weight(src[0]) + weir_sketch_weight(src[1]) +
                                              weir_sketch_weight(src[2]));
        weir_sketch_clear(dst);
    } else {
        r = WEIR_OK; /* that is all: now with what memory there is */
    }
    const int copied = weir_sketch_copy(dst, src[1]);
    T_TRUE(copied == WEIR_OK ? weir_sketch_equal(dst, src[1]) : weir_sketch_weight(dst) == 0);
    weir_sketch_free(dst);
    return copied;
}

TEST(merging_many_and_copying_fail_without_a_trace)
{
    struct weir_sketch *src[3];
    for (int i = 0; i < 3; i++) {
        src[i] = t_sketch(WEIR_GRID_VALUE, 0);
        for (int k = 0; k < (i == 1 ? 700 : 20); k++)
            T_OK(weir_sketch_add(src[i], k % 9 ? batch_value(k) : -batch_value(k), 0));
    }
    t_each_oom(merge_and_copy, src);
    for (int i = 0; i < 3; i++)
        weir_sketch_free(src[i]);
}

/* The mapping is made, held by a sketch and a pool, and let go. */
static int use_mapping(const struct weir_alloc *alloc, void *ctx)
{
    (void)ctx;
    struct weir_sketch_opts o = opts(alloc, WEIR_GRID_VALUE);
    struct weir_mapping *m;
    int r = weir_mapping_log(alloc, 0.01, &m);
    if (r != WEIR_OK)
        return r;
    o.mapping = m;
    struct weir_sketch *sk = NULL;
    struct weir_mapping *cubic = NULL;
    r = weir_sketch_new(&o, &sk);
    if (r == WEIR_OK)
        r = weir_sketch_add(sk, 1, 0);
    if (r == WEIR_OK)
        r = weir_mapping_new(alloc, WEIR_MAPPING_CUBIC, 1.02, 0, &cubic);
    weir_mapping_unref(cubic);
    weir_mapping_unref(m);
    weir_sketch_free(sk);
    return r;
}

TEST(a_mapping_without_memory_says_so)
{
    t_each_oom(use_mapping, NULL);
}

static int convert_once(const struct weir_alloc *alloc, void *ctx)
{
    const struct weir_sketch *const src = ctx;
    struct weir_sketch_opts o = opts(alloc, WEIR_GRID_VALUE);
    struct weir_mapping *m;
    int r = weir_mapping_new(alloc, WEIR_MAPPING_QUADRATIC, 1.2, 0.5, &m);
    if (r != WEIR_OK)
        return r;
    o.mapping = m;
    struct weir_sketch *dst;
    r = weir_sketch_new(&o, &dst);
    weir_mapping_unref(m);
    if (r != WEIR_OK)
        return r;
    r = weir_sketch_add(dst, 1e-3, 0);
    for (int times = 0; times < 2 && r == WEIR_OK; times++) {
        struct weir_sketch *before;
        const struct weir_sketch_opts plain = {.struct_size = sizeof plain, .mapping = m};
        T_OK(weir_sketch_new(&plain, &before));
        T_OK(weir_sketch_copy(before, dst));
        r = weir_sketch_convert(dst, src);
        T_TRUE(wr_sketch_check(dst));
        if (r != WEIR_OK)
            T_TRUE(weir_sketch_equal(dst, before));
        weir_sketch_free(before);
    }
    weir_sketch_free(dst);
    return r;
}

TEST(a_conversion_fails_without_a_trace)
{
    struct weir_sketch *const src = t_sketch(WEIR_GRID_VALUE, 0);
    T_OK(fill_values(src, 5));
    t_each_oom(convert_once, src);
    weir_sketch_free(src);
}

/* Forms that are merged by way of the stack, and of a sketch. */
static int merge_form(const struct weir_alloc *alloc, void *ctx)
{
    const struct form *const f = ctx;
    const struct weir_sketch_opts o = opts(alloc, WEIR_GRID_VALUE);
    struct weir_sketch *dst;
    int r = weir_sketch_new(&o, &dst);
    if (r != WEIR_OK)
        return r;
    r = weir_sketch_add(dst, 5, 0);
    for (int times = 0; times < 2 && r == WEIR_OK; times++) {
        size_t n;
        uint8_t *const before = t_sketch_form(dst, &n);
        r = weir_sketch_merge_encoded(dst, f->bytes, f->n);
        if (r != WEIR_OK)
            expect_form(dst, before, n);
        free(before);
    }
    weir_sketch_free(dst);
    return r;
}

TEST(merging_a_form_fails_without_a_trace)
{
    for (int kind = 0; kind < 3; kind++) {
        struct weir_sketch *const src = t_sketch(WEIR_GRID_VALUE, 32768);
        for (int i = 0; i < (kind == 0 ? 90 : 900); i++)
            T_OK(weir_sketch_add(src, kind == 2 ? -batch_value(i) : batch_value(i), 0));
        T_OK(weir_sketch_add(src, 0, 0));
        struct form f;
        f.bytes = t_sketch_form(src, &f.n);
        t_each_oom(merge_form, &f);
        free(f.bytes);
        weir_sketch_free(src);
    }
}

/* A form that brings its mapping. */
static int decode_mapping(const struct weir_alloc *alloc, void *ctx)
{
    const struct form *const f = ctx;
    const struct weir_sketch_opts o = opts(alloc, WEIR_GRID_VALUE);
    struct weir_sketch *sk;
    int r = weir_sketch_new(&o, &sk);
    if (r != WEIR_OK)
        return r;
    r = weir_sketch_decode(sk, f->bytes, f->n);
    T_TRUE(wr_sketch_check(sk));
    if (r == WEIR_OK)
        expect_form(sk, f->bytes, f->n);
    else
        T_EQ_U64(weir_sketch_weight(sk), 0);
    weir_sketch_free(sk);
    return r;
}

TEST(decoding_another_mapping_fails_without_a_trace)
{
    struct weir_mapping *log1;
    T_OK(weir_mapping_log(NULL, 0.01, &log1));
    const struct weir_sketch_opts o = {.struct_size = sizeof o, .mapping = log1};
    struct weir_sketch *src;
    T_OK(weir_sketch_new(&o, &src));
    weir_mapping_unref(log1);
    for (int i = 0; i < 500; i++)
        T_OK(weir_sketch_add(src, i % 3 ? batch_value(i) : -batch_value(i), 0));
    struct form f;
    f.bytes = t_sketch_form(src, &f.n);
    t_each_oom(decode_mapping, &f);
    free(f.bytes);
    weir_sketch_free(src);
}
