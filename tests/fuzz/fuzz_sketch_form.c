/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_sketch_form: bytes as the compact form of a sketch. What is accepted encodes to the same
 * bytes (the form is canonical), answers in order, and merges to twice its weight; what is refused
 * leaves an empty sketch.
 *
 * Input: 1 byte the bin limit, then the form; its second byte says the grid.
 */
#include "fuzz.h"

#include "sketch/sketch.h"

#include <math.h>
#include <stdlib.h>

static struct weir_sketch *new_sketch(uint32_t grid, uint32_t max_bins)
{
    const struct weir_sketch_opts o = {.struct_size = sizeof o, .grid = grid, .max_bins = max_bins};
    struct weir_sketch *sk = NULL;
    FZ_CHECK(weir_sketch_new(&o, &sk) == WEIR_OK);
    return sk;
}

static uint8_t *form_of(const struct weir_sketch *sk, size_t *ret_bytes)
{
    const size_t cap = weir_sketch_encoded_bytes(sk);
    uint8_t *const bytes = fz_alloc(cap);
    FZ_CHECK(weir_sketch_encode(sk, bytes, cap, ret_bytes) == WEIR_OK && *ret_bytes == cap);
    size_t none = 0;
    uint8_t *const less = fz_alloc(cap - 1);
    FZ_CHECK(weir_sketch_encode(sk, less, cap - 1, &none) == WEIR_EFULL);
    free(less);
    return bytes;
}

static void expect_answers(const struct weir_sketch *sk)
{
    double before = 0;
    double v = 0;
    if (weir_sketch_weight(sk) == 0) {
        FZ_CHECK(weir_sketch_quantile(sk, 0.5, &v) == WEIR_EEMPTY);
        return;
    }
    double min;
    double max;
    FZ_CHECK(weir_sketch_min(sk, &min) == WEIR_OK && weir_sketch_max(sk, &max) == WEIR_OK);
    FZ_CHECK(min <= max);
    for (int i = 0; i <= 16; i++) {
        FZ_CHECK(weir_sketch_quantile(sk, i / 16.0, &v) == WEIR_OK);
        FZ_CHECK(isfinite(v) && v >= min && v <= max && (i == 0 || v >= before));
        before = v;
    }
    FZ_CHECK(isfinite(weir_sketch_sum(sk)));
    FZ_CHECK(weir_sketch_bins_weight(sk) == weir_sketch_weight(sk));
}

static void expect_double(const struct weir_sketch *sk, uint32_t grid, uint32_t max_bins)
{
    const uint64_t weight = weir_sketch_weight(sk);
    struct weir_sketch *const twice = new_sketch(grid, max_bins);
    FZ_CHECK(weir_sketch_merge(twice, sk) == WEIR_OK);
    const int r = weir_sketch_merge(twice, sk);
    FZ_CHECK(r == (weight > UINT64_MAX / 2 ? WEIR_ERANGE : WEIR_OK));
    FZ_CHECK(weir_sketch_weight(twice) == (r == WEIR_OK ? 2 * weight : weight));
    FZ_CHECK(wr_sketch_check(twice));
    expect_answers(twice);
    weir_sketch_free(twice);
}

static void expect_accepted(struct weir_sketch *sk, uint32_t grid, uint32_t max_bins,
                            const uint8_t *bytes, size_t n)
{
    size_t m;
    uint8_t *const form = form_of(sk, &m);
    if (max_bins == 32768)
        FZ_CHECK(fz_same(form, m, bytes, n));
    expect_answers(sk);
    expect_double(sk, grid, max_bins);
    FZ_CHECK(weir_sketch_decode(sk, form, m) == WEIR_OK); /* over what was in it */
    size_t k;
    uint8_t *const again = form_of(sk, &k);
    FZ_CHECK(fz_same(form, m, again, k));
    free(again);
    free(form);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const uint32_t limits[4] = {32768, 2048, 100, 2};
    struct fz_in in = fz_in(data, size);
    const uint32_t max_bins = limits[fz_u8(&in) % 4];
    const uint32_t grid = in.left > 1 && (in.at[1] & 1) ? WEIR_GRID_NS : WEIR_GRID_VALUE;
    const size_t n = in.left;
    uint8_t *const bytes = fz_copy(in.at, n);
    struct weir_sketch *const sk = new_sketch(grid, max_bins);
    const int r = weir_sketch_decode(sk, bytes, n);
    FZ_CHECK(wr_sketch_check(sk));
    if (r == WEIR_OK) {
        expect_accepted(sk, grid, max_bins, bytes, n);
    } else {
        FZ_CHECK(r == WEIR_EFORMAT || r == WEIR_ETRUNCATED || r == WEIR_EVERSION);
        FZ_CHECK(weir_sketch_weight(sk) == 0);
    }
    FZ_CHECK(wr_sketch_check(sk));
    weir_sketch_free(sk);
    free(bytes);
    return 0;
}
