/* SPDX-License-Identifier: Apache-2.0 */
#ifndef T_T_SKETCH_H
#define T_T_SKETCH_H
/* t_sketch: what tests of sketches share: making, comparing by bytes, reading answers. */
#include <stdlib.h>
#include "sketch/sketch.h"
#include "t.h"

#define ONE WEIR_WEIGHT_ONE

static inline struct weir_sketch *t_sketch(uint32_t grid, uint32_t max_bins)
{
    const struct weir_sketch_opts o = {.struct_size = sizeof o, .grid = grid, .max_bins = max_bins};
    struct weir_sketch *sk;
    T_OK(weir_sketch_new(&o, &sk));
    return sk;
}

/* The compact form, in memory that ends where it ends; freed with free(). */
static inline uint8_t *t_sketch_form(const struct weir_sketch *sk, size_t *ret_bytes)
{
    const size_t cap = weir_sketch_encoded_bytes(sk);
    uint8_t *const bytes = malloc(cap);
    T_OK(weir_sketch_encode(sk, bytes, cap, ret_bytes));
    T_EQ_U64(*ret_bytes, cap);
    return bytes;
}

/* Both are sound and have the same contents, to the byte. */
static inline void t_sketch_same(const struct weir_sketch *a, const struct weir_sketch *b)
{
    T_TRUE(wr_sketch_check(a));
    T_TRUE(wr_sketch_check(b));
    size_t na;
    size_t nb;
    uint8_t *const fa = t_sketch_form(a, &na);
    uint8_t *const fb = t_sketch_form(b, &nb);
    T_EQ_BYTES(fa, na, fb, nb);
    free(fa);
    free(fb);
}

static inline double t_sketch_q(const struct weir_sketch *sk, double q)
{
    double v;
    T_OK(weir_sketch_quantile(sk, q, &v));
    return v;
}

static inline double t_sketch_min(const struct weir_sketch *sk)
{
    double v;
    T_OK(weir_sketch_min(sk, &v));
    return v;
}

static inline double t_sketch_max(const struct weir_sketch *sk)
{
    double v;
    T_OK(weir_sketch_max(sk, &v));
    return v;
}
#endif
