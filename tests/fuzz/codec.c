/* SPDX-License-Identifier: Apache-2.0 */
/* codec: see codec.h. */
#include "codec.h"

#include "sketch/sketch.h"

#include <math.h>
#include <stdlib.h>
#include <weir/codec.h>

struct memory {
    size_t live;
    size_t peak;
};

static void *counted(void *ctx, void *ptr, size_t old_size, size_t new_size)
{
    struct memory *const m = ctx;
    m->live += new_size - (ptr ? old_size : 0);
    m->peak = m->live > m->peak ? m->live : m->peak;
    if (!new_size) {
        free(ptr);
        return NULL;
    }
    void *const p = realloc(ptr, new_size);
    FZ_CHECK(p != NULL);
    return p;
}

static struct weir_sketch *new_sketch(struct memory *memory, uint32_t max_bins,
                                      const struct weir_mapping *mapping)
{
    const struct weir_sketch_opts o = {.struct_size = sizeof o,
                                       .alloc = {.fn = counted, .ctx = memory},
                                       .max_bins = max_bins,
                                       .mapping = mapping};
    struct weir_sketch *sk = NULL;
    FZ_CHECK(weir_sketch_new(&o, &sk) == WEIR_OK);
    return sk;
}

static const struct weir_mapping *mapping_of(unsigned which)
{
    struct weir_mapping *m = NULL;
    if (which == 1)
        FZ_CHECK(weir_mapping_log(NULL, 0.01, &m) == WEIR_OK);
    else if (which == 2)
        FZ_CHECK(weir_mapping_new(NULL, WEIR_MAPPING_LOG, 1.015625, 1338.5, &m) == WEIR_OK);
    else if (which == 3)
        FZ_CHECK(weir_mapping_base2(NULL, 3, &m) == WEIR_OK);
    return m;
}

static void expect_answers(const struct weir_sketch *sk)
{
    double before = 0;
    double v = 0;
    double min;
    double max;
    FZ_CHECK(weir_sketch_bins_weight(sk) == weir_sketch_weight(sk));
    if (weir_sketch_weight(sk) == 0)
        return;
    FZ_CHECK(weir_sketch_min(sk, &min) == WEIR_OK && weir_sketch_max(sk, &max) == WEIR_OK);
    FZ_CHECK(min <= max && isfinite(weir_sketch_sum(sk)));
    for (int i = 0; i <= 8; i++) {
        FZ_CHECK(weir_sketch_quantile(sk, i / 8.0, &v) == WEIR_OK);
        FZ_CHECK(isfinite(v) && v >= min && v <= max && (i == 0 || v >= before));
        before = v;
    }
}

/* NULL: this encoding cannot say it. */
static uint8_t *encoded(uint32_t codec, const struct weir_codec_opts *opts,
                        const struct weir_sketch *sk, size_t *ret_bytes)
{
    const size_t bound = weir_codec_encode_bound(codec, opts, sk);
    uint8_t *const bytes = fz_alloc(bound);
    size_t n = 0;
    const int r = weir_codec_encode(codec, opts, sk, bytes, bound, &n);
    if (r != WEIR_OK) {
        FZ_CHECK(codec == WEIR_CODEC_DOGSKETCH && (r == WEIR_EVERSION || r == WEIR_ERANGE));
        free(bytes);
        return NULL;
    }
    FZ_CHECK(n <= bound);
    if (n) {
        uint8_t *const less = fz_alloc(n - 1);
        size_t none = 0;
        FZ_CHECK(weir_codec_encode(codec, opts, sk, less, n - 1, &none) == WEIR_EFULL);
        free(less);
    }
    *ret_bytes = n;
    return bytes;
}

/* sk written and read; the second time nothing may change any more: counts are doubles by then. */
static void expect_again(uint32_t codec, const struct weir_codec_opts *opts, struct weir_sketch *sk)
{
    size_t n = 0;
    uint8_t *before = NULL;
    struct weir_codec_opts o = *opts;
    o.flags &= ~WEIR_CODEC_CEIL;
    for (int i = 0; i < 3; i++) {
        size_t m = 0;
        uint8_t *const bytes = encoded(codec, &o, sk, &m);
        if (!bytes)
            break;
        if (i == 2)
            FZ_CHECK(fz_same(before, n, bytes, m));
        const uint64_t weight = weir_sketch_weight(sk);
        FZ_CHECK(weir_codec_decode(codec, &o, bytes, m, sk, NULL) == WEIR_OK);
        FZ_CHECK(wr_sketch_check(sk));
        FZ_CHECK(fabs((double)weir_sketch_weight(sk) - (double)weight) <=
                 1e-12 * (double)weight + (double)WEIR_WEIGHT_ONE);
        free(before);
        before = bytes;
        n = m;
    }
    free(before);
}

void fz_codec(uint32_t codec, const uint8_t *data, size_t size)
{
    static const uint32_t limits[4] = {2048, 32768, 100, 2};
    struct fz_in in = fz_in(data, size);
    const uint8_t options = fz_u8(&in);
    const uint32_t max_bins = limits[options & 3];
    const struct weir_mapping *const own = mapping_of(options >> 2 & 3);
    struct weir_codec_opts o = {.struct_size = sizeof o,
                                .mapping = options & 0x10 ? mapping_of(1) : NULL,
                                .flags = (options & 0x20 ? WEIR_CODEC_CEIL : 0) |
                                         (options & 0x40 ? WEIR_CODEC_ONE_BLOCK : 0) |
                                         (options & 0x80 ? WEIR_CODEC_NO_STATS : 0)};
    struct memory memory = {.live = 0};
    const size_t n = in.left;
    uint8_t *const bytes = fz_copy(in.at, n);
    struct weir_sketch *const sk = new_sketch(&memory, max_bins, own);
    struct weir_where where = {.reason = NULL};
    const int r = weir_codec_decode(codec, &o, bytes, n, sk, &where);
    FZ_CHECK(wr_sketch_check(sk));
    /* two signs of 8 bytes a bin, old and new while one grows, a mapping's tables */
    FZ_CHECK(memory.peak <= (size_t)64 * max_bins + 256 * 1024);
    if (r == WEIR_OK) {
        expect_answers(sk);
        expect_again(codec, &o, sk);
    } else {
        FZ_CHECK(r == WEIR_EFORMAT || r == WEIR_ETRUNCATED || r == WEIR_EVERSION ||
                 r == WEIR_ERANGE);
        FZ_CHECK(weir_sketch_weight(sk) == 0 && where.reason != NULL && where.offset <= n);
        const struct weir_mapping *const now = weir_sketch_mapping(sk);
        FZ_CHECK(own ? weir_mapping_equal(now, own) : weir_mapping_kind(now) == WEIR_MAPPING_BASE2);
    }
    weir_sketch_free(sk);
    FZ_CHECK(memory.live == 0);
    weir_mapping_unref(o.mapping);
    weir_mapping_unref(own);
    free(bytes);
}
