/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_sketch_form: bytes as the compact form of a sketch. What is accepted encodes to the same
 * bytes (the form is canonical), answers in order, merges to twice its weight, and as bytes into a
 * sketch as by way of another one; what is refused leaves an empty sketch, and one merged into as
 * it was.
 *
 * Input: 1 byte the bin limit, then the form; its second byte says the grid.
 */
#include "fuzz.h"

#include "sketch/state.h"

#include <math.h>
#include <stdlib.h>

static struct weir_sketch *new_like(uint32_t grid, uint32_t max_bins, const struct weir_mapping *m)
{
    const struct weir_sketch_opts o = {
        .struct_size = sizeof o, .grid = grid, .max_bins = max_bins, .mapping = m};
    struct weir_sketch *sk = NULL;
    FZ_CHECK(weir_sketch_new(&o, &sk) == WEIR_OK);
    return sk;
}

static struct weir_sketch *new_sketch(uint32_t grid, uint32_t max_bins)
{
    return new_like(grid, max_bins, NULL);
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
    struct weir_sketch *const twice = new_like(grid, max_bins, weir_sketch_mapping(sk));
    FZ_CHECK(weir_sketch_merge(twice, sk) == WEIR_OK);
    const int r = weir_sketch_merge(twice, sk);
    FZ_CHECK(r == (weight > UINT64_MAX / 2 ? WEIR_ERANGE : WEIR_OK));
    FZ_CHECK(weir_sketch_weight(twice) == (r == WEIR_OK ? 2 * weight : weight));
    FZ_CHECK(wr_sketch_check(twice));
    expect_answers(twice);
    weir_sketch_free(twice);
}

/* The form added to a sketch that has something: as bytes, and by way of sk. */
static void expect_merged(const struct weir_sketch *sk, uint32_t grid, uint32_t max_bins,
                          const uint8_t *bytes, size_t n)
{
    struct weir_sketch *into[2];
    for (int i = 0; i < 2; i++) {
        into[i] = new_like(grid, max_bins, weir_sketch_mapping(sk));
        for (int k = 0; k < (n % 3 ? 7 : 200); k++)
            FZ_CHECK((grid == WEIR_GRID_NS ? weir_sketch_add_ns(into[i], 1000000 + k * 7777, 0)
                                           : weir_sketch_add(into[i], 1 + k, 0)) == WEIR_OK);
    }
    struct weir_sketch *const between = new_like(grid, max_bins, weir_sketch_mapping(sk));
    FZ_CHECK(weir_sketch_decode(between, bytes, n) == WEIR_OK);
    const int want = weir_sketch_merge(into[0], between);
    FZ_CHECK(weir_sketch_merge_encoded(into[1], bytes, n) == want);
    FZ_CHECK(wr_sketch_check(into[1]));
    FZ_CHECK(weir_sketch_weight(into[0]) == weir_sketch_weight(into[1]));
    /* in between, what is below the limit may collapse, and then say so */
    FZ_CHECK(weir_sketch_equal(into[0], into[1]) || (between->flags & WR_SK_COLLAPSED));
    weir_sketch_free(between);
    weir_sketch_free(into[0]);
    weir_sketch_free(into[1]);
}

static bool is_collapsed(const struct weir_sketch *sk)
{
    const struct wr_store *const neg = wr_sketch_negative(sk);
    return sk->flags & WR_SK_COLLAPSED || (neg && neg->collapsed);
}

static void expect_accepted(struct weir_sketch *sk, uint32_t grid, uint32_t max_bins,
                            const uint8_t *bytes, size_t n)
{
    size_t m;
    uint8_t *const form = form_of(sk, &m);
    if (max_bins == 32768 && !is_collapsed(sk))
        FZ_CHECK(fz_same(form, m, bytes, n));
    expect_answers(sk);
    expect_double(sk, grid, max_bins);
    expect_merged(sk, grid, max_bins, bytes, n);
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
    const int merged = weir_sketch_merge_encoded(sk, bytes, n);
    FZ_CHECK(wr_sketch_check(sk) && (merged == WEIR_OK || weir_sketch_weight(sk) == 0));
    const int r = weir_sketch_decode(sk, bytes, n);
    FZ_CHECK(wr_sketch_check(sk));
    FZ_CHECK(merged == r || merged == WEIR_EVERSION);
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
