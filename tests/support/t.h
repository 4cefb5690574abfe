/* SPDX-License-Identifier: Apache-2.0 */
#ifndef T_T_H
#define T_T_H
/*
 * t: typed checks and self-registering tests over cmocka.
 *
 *   TEST(a_value_on_an_edge_falls_in_the_lower_bucket)
 *   {
 *       T_EQ_U64(bin_of(1.0), 0);
 *   }
 *
 * A test's name states the rule. Checks print both values; bytes fail with the first difference
 * in hex; t_seed() is printed when a test fails and can be set by T_SEED in the environment.
 * main() is in t.c; a binary's tests run in the order of the source.
 */
#include <stdarg.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>
#include <weir/base.h>

struct t_case {
    const char *name;
    void (*fn)(void **state);
    struct t_case *next;
};
void t_register(struct t_case *c);

#define TEST(test_name)                                                                            \
    static void test_name(void **state_);                                                          \
    static struct t_case case_##test_name = {.name = #test_name, .fn = test_name, .next = NULL};   \
    __attribute__((constructor)) static void register_##test_name(void)                            \
    {                                                                                              \
        t_register(&case_##test_name);                                                             \
    }                                                                                              \
    static void test_name(void **state_ __attribute__((unused)))

/* Stop the test: skipped. Under CI (environment CI set) a skip for missing shared data fails. */
#define T_SKIP_MISSING(what) t_skip_missing((what), __FILE__, __LINE__)
void t_skip_missing(const char *what, const char *file, int line);

#define T_FAIL(...) t_fail(__FILE__, __LINE__, __VA_ARGS__)
void t_fail(const char *file, int line, const char *format, ...)
    __attribute__((format(printf, 3, 4), noreturn));

#define T_TRUE(x)                                                                                  \
    do {                                                                                           \
        if (!(x))                                                                                  \
            T_FAIL("not true: %s", #x);                                                            \
    } while (0)
#define T_OK(x)                                                                                    \
    do {                                                                                           \
        const int t_r_ = (x);                                                                      \
        if (t_r_ != 0)                                                                             \
            T_FAIL("%s gave %d (%s)", #x, t_r_, weir_strerror(t_r_));                              \
    } while (0)
#define T_ERR(x, want)                                                                             \
    do {                                                                                           \
        const int t_r_ = (x);                                                                      \
        const int t_w_ = (want);                                                                   \
        if (t_r_ != t_w_)                                                                          \
            T_FAIL("%s gave %d (%s), want %d (%s)", #x, t_r_, weir_strerror(t_r_), t_w_,           \
                   weir_strerror(t_w_));                                                           \
    } while (0)
#define T_EQ_U64(a, b) t_eq_u64((uint64_t)(a), (uint64_t)(b), #a, #b, __FILE__, __LINE__)
#define T_EQ_I64(a, b) t_eq_i64((int64_t)(a), (int64_t)(b), #a, #b, __FILE__, __LINE__)
#define T_EQ_DBL(a, b) t_eq_dbl((a), (b), 0.0, #a, #b, __FILE__, __LINE__)
/* |a - b| <= rel * max(|a|, |b|) */
#define T_NEAR(a, b, rel) t_eq_dbl((a), (b), (rel), #a, #b, __FILE__, __LINE__)
#define T_EQ_STR(a, b) t_eq_str((a), (b), #a, #b, __FILE__, __LINE__)
#define T_EQ_BYTES(a, na, b, nb) t_eq_bytes((a), (na), (b), (nb), __FILE__, __LINE__)
void t_eq_u64(uint64_t a, uint64_t b, const char *ea, const char *eb, const char *file, int line);
void t_eq_i64(int64_t a, int64_t b, const char *ea, const char *eb, const char *file, int line);
void t_eq_dbl(double a, double b, double rel, const char *ea, const char *eb, const char *file,
              int line);
void t_eq_str(const char *a, const char *b, const char *ea, const char *eb, const char *file,
              int line);
void t_eq_bytes(const void *a, size_t na, const void *b, size_t nb, const char *file, int line);

/* Seeded generator (SplitMix64); the same seed gives the same numbers everywhere. */
struct t_rng {
    uint64_t s;
};
uint64_t t_seed(void); /* T_SEED, or a fixed default */
struct t_rng t_rng(uint64_t seed);
uint64_t t_next(struct t_rng *r);
uint64_t t_below(struct t_rng *r, uint64_t n); /* 0..n-1; n > 0 */
double t_unit(struct t_rng *r);                /* [0, 1) */

/* Hex text (blanks allowed) to bytes; fails the test on a bad digit. Returns the count. */
size_t t_unhex(const char *hex, uint8_t *dst, size_t cap);
/* A whole file, freed with free(); NULL if it cannot be read. */
uint8_t *t_read_file(const char *path, size_t *ret_bytes);

/* heap.c: an allocator that fails on demand and knows what is live. */
struct t_heap {
    long fail_at;   /* the allocation with this 0-based number fails; -1: none */
    int sticky;     /* and all after it */
    long seen;      /* allocations asked for so far */
    long long live; /* bytes not freed */
};
void *t_heap_fn(void *ctx, void *ptr, size_t old_size, size_t new_size);
/* body returns what the call under test returned, and frees what it made. Fails the test if any
 * failure leaks, gives another error than WEIR_ENOMEM, or the full run does not succeed. */
typedef int t_oom_fn(const struct weir_alloc *alloc, void *ctx);
void t_each_oom(t_oom_fn *body, void *ctx);

/* guard.c: a copy of bytes that ends flush against a page no one may read. */
struct t_guard {
    void *map;
    size_t map_bytes;
    const uint8_t *ptr;
};
struct t_guard t_guard_new(const void *bytes, size_t n);
void t_guard_free(struct t_guard *g);
#endif
