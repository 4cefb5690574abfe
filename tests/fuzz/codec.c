/* SPDX-License-Identifier: Apache-2.0 */
/* codec: see codec.h. */
#include "codec.h"

#include <math.h>
#include <stdlib.h>

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
                                       .alloc = {.fn = memory ? counted : NULL, .ctx = memory},
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
    double min;
    double max;
    double v = 0;
    FZ_CHECK(weir_sketch_bins_weight(sk) == weir_sketch_weight(sk));
    if (!weir_sketch_weight(sk)) {
        FZ_CHECK(weir_sketch_quantile(sk, 0.5, &v) == WEIR_EEMPTY);
        return;
    }
    FZ_CHECK(weir_sketch_min(sk, &min) == WEIR_OK && weir_sketch_max(sk, &max) == WEIR_OK);
    FZ_CHECK(min <= max && isfinite(weir_sketch_sum(sk)));
    for (int i = 0; i <= 16; i++) {
        FZ_CHECK(weir_sketch_quantile(sk, i / 16.0, &v) == WEIR_OK);
        FZ_CHECK(isfinite(v) && v >= min && v <= max && (i == 0 || v >= before));
        before = v;
    }
}

/* NULL: the encoding cannot say it. */
static uint8_t *encoded(uint32_t codec, const struct weir_codec_opts *opts,
                        const struct weir_sketch *sk, size_t *ret_bytes)
{
    const size_t bound = weir_codec_encode_bound(codec, opts, sk);
    uint8_t *const bytes = fz_alloc(bound);
    const int r = weir_codec_encode(codec, opts, sk, bytes, bound, ret_bytes);
    FZ_CHECK(r == WEIR_OK || r == WEIR_EVERSION || r == WEIR_ERANGE);
    if (r != WEIR_OK) {
        free(bytes);
        return NULL;
    }
    FZ_CHECK(*ret_bytes <= bound);
    if (*ret_bytes) {
        size_t none = 0;
        uint8_t *const less = fz_alloc(*ret_bytes - 1);
        FZ_CHECK(weir_codec_encode(codec, opts, sk, less, *ret_bytes - 1, &none) == WEIR_EFULL);
        free(less);
    }
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
        FZ_CHECK(bytes || codec == WEIR_CODEC_DOGSKETCH);
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

static uint64_t digest;
static void digest_bin(void *ctx, double lower, double upper, uint64_t weight)
{
    (void)ctx;
    digest = fz_digest(digest, &lower, sizeof lower);
    digest = fz_digest(digest, &upper, sizeof upper);
    digest = fz_digest_u64(digest, weight);
}

static uint64_t bins_of(const struct weir_sketch *sk)
{
    digest = FZ_DIGEST_EMPTY;
    weir_sketch_bins(sk, digest_bin, NULL);
    return digest;
}

static uint64_t digest_of(const struct weir_sketch *sk)
{
    const double sum = weir_sketch_sum(sk);
    return fz_digest(bins_of(sk), &sum, sizeof sum);
}

/* What sk is written as, read again into a sketch of its own. NULL: it cannot be written. */
static struct weir_sketch *reread(uint32_t codec, const struct weir_codec_opts *opts,
                                  uint32_t max_bins, const struct weir_sketch *sk,
                                  uint8_t **ret_bytes, size_t *ret_n)
{
    *ret_bytes = encoded(codec, opts, sk, ret_n);
    if (!*ret_bytes)
        return NULL;
    struct weir_sketch *const again = new_sketch(NULL, max_bins, NULL);
    FZ_CHECK(weir_codec_decode(codec, opts, *ret_bytes, *ret_n, again, NULL) == WEIR_OK);
    FZ_CHECK(wr_sketch_check(again));
    return again;
}

/* Statistics that contradict each other settle in one round; counts and bins are there at once. */
static void expect_round(uint32_t codec, const struct weir_codec_opts *opts, uint32_t max_bins,
                         const struct weir_sketch *sk)
{
    uint8_t *bytes[3];
    size_t n[3];
    struct weir_sketch *const once = reread(codec, opts, max_bins, sk, &bytes[0], &n[0]);
    if (!once)
        return;
    struct weir_sketch *const twice = reread(codec, opts, max_bins, once, &bytes[1], &n[1]);
    FZ_CHECK(twice && bins_of(once) == bins_of(twice));
    bytes[2] = encoded(codec, opts, twice, &n[2]);
    FZ_CHECK(bytes[2] && fz_same(bytes[1], n[1], bytes[2], n[2]));
    for (int i = 0; i < 3; i++)
        free(bytes[i]);
    weir_sketch_free(once);
    weir_sketch_free(twice);
}

void fz_foreign(uint32_t codec, uint32_t written, const struct weir_codec_opts *opts,
                uint32_t max_bins, const uint8_t *bytes, size_t n)
{
    struct weir_sketch *const sk = new_sketch(NULL, max_bins, NULL);
    struct weir_where where = {.offset = SIZE_MAX, .reason = NULL};
    uint8_t *const copy = fz_copy(bytes, n);
    const int r = weir_codec_decode(codec, opts, copy, n, sk, &where);
    FZ_CHECK(wr_sketch_check(sk));
    if (r == WEIR_OK) {
        expect_answers(sk);
        const uint64_t once = digest_of(sk);
        expect_round(written, opts, max_bins, sk);
        FZ_CHECK(weir_codec_decode(codec, opts, copy, n, sk, NULL) == WEIR_OK);
        FZ_CHECK(digest_of(sk) == once);
    } else {
        FZ_CHECK(r == WEIR_EFORMAT || r == WEIR_ETRUNCATED || r == WEIR_EVERSION ||
                 r == WEIR_ERANGE || r == WEIR_EEMPTY);
        FZ_CHECK(where.reason && where.offset <= n);
        FZ_CHECK(weir_sketch_weight(sk) == 0 && weir_sketch_bins_weight(sk) == 0);
    }
    weir_sketch_free(sk);
    free(copy);
}

uint32_t fz_max_bins(struct fz_in *in)
{
    static const uint32_t limits[4] = {32768, 2048, 100, 2};
    return limits[fz_u8(in) % 4];
}
