/* SPDX-License-Identifier: Apache-2.0 */
/* foreign: see foreign.h. */
#include "foreign.h"

#include <math.h>

void t_expect_bins(const struct weir_sketch *sk, enum wr_bins_sign sign, const char *text,
                   unsigned shift)
{
    uint64_t total = 0;
    uint64_t sum = 0;
    uint64_t here = 0;
    int64_t before = INT64_MIN;
    int32_t lo;
    int32_t hi;
    for (const char *at = text; *at && strcmp(text, "-") != 0;) {
        char *end;
        const long long index = strtoll(at, &end, 10);
        T_TRUE(*end == ':');
        const double count = strtod(end + 1, &end);
        const int64_t own = (int64_t)floor(ldexp((double)index, -(int)shift));
        here = own == before ? here : 0;
        here += (uint64_t)(count * (double)ONE + 0.5);
        total += (uint64_t)(count * (double)ONE + 0.5);
        before = own;
        at = *end ? end + 1 : end;
        const bool last =
            !*at || (int64_t)floor(ldexp((double)strtoll(at, NULL, 10), -(int)shift)) != own;
        uint64_t weight;
        wr_bins_read(sk, sign, (int32_t)own, 1, &weight);
        if (last)
            T_EQ_U64(weight, here);
    }
    if (wr_bins_range(sk, sign, &lo, &hi))
        for (int64_t i = lo; i <= hi; i++) {
            uint64_t weight;
            wr_bins_read(sk, sign, (int32_t)i, 1, &weight);
            sum += weight;
        }
    T_EQ_U64(sum, total);
}

void t_expect_stats(const struct weir_sketch *sk, const char *text)
{
    double have[3] = {weir_sketch_sum(sk), 0, 0};
    if (weir_sketch_weight(sk)) {
        have[1] = t_sketch_min(sk);
        have[2] = t_sketch_max(sk);
    }
    for (int i = 0; i < 3 && *text; i++) {
        char *end;
        if (*text == '-' && (text[1] == ' ' || !text[1])) {
            text += text[1] ? 2 : 1;
            continue;
        }
        T_EQ_DBL(have[i], strtod(text, &end));
        text = *end ? end + 1 : end;
    }
}

int t_decode(uint32_t codec, const struct weir_codec_opts *opts, const void *bytes, size_t n,
             struct weir_sketch **ret)
{
    struct t_guard guard = t_guard_new(bytes, n);
    struct weir_sketch *const sk = t_sketch_of(NULL, 32768);
    T_OK(weir_sketch_add(sk, 3, 0));
    struct weir_where where = {.offset = SIZE_MAX, .reason = NULL};
    const int r = weir_codec_decode(codec, opts, guard.ptr, n, sk, &where);
    T_TRUE(wr_sketch_check(sk));
    if (r != WEIR_OK) {
        T_EQ_U64(weir_sketch_weight(sk), 0);
        T_EQ_U64(weir_sketch_bins_weight(sk), 0);
        T_TRUE(where.reason != NULL && where.offset <= n);
    }
    t_guard_free(&guard);
    *ret = sk;
    return r;
}

int t_decode_only(uint32_t codec, const struct weir_codec_opts *opts, const void *bytes, size_t n,
                  struct weir_where *ret_where)
{
    struct weir_sketch *sk;
    const int r = t_decode(codec, opts, bytes, n, &sk);
    if (r != WEIR_OK && ret_where)
        T_ERR(weir_codec_decode(codec, opts, bytes, n, sk, ret_where), r);
    weir_sketch_free(sk);
    return r;
}

int t_decode_hex(uint32_t codec, const struct weir_codec_opts *opts, const char *hex,
                 struct weir_where *ret_where)
{
    struct t_bytes b = t_bytes(hex);
    const int r = t_decode_only(codec, opts, b.at, b.n, ret_where);
    free(b.at);
    return r;
}

static void try_one(uint32_t codec, const struct weir_codec_opts *opts, const uint8_t *bytes,
                    size_t n)
{
    struct weir_sketch *sk;
    const int r = t_decode(codec, opts, bytes, n, &sk);
    T_TRUE(r == WEIR_OK || r == WEIR_EFORMAT || r == WEIR_ETRUNCATED || r == WEIR_EVERSION ||
           r == WEIR_ERANGE || r == WEIR_EEMPTY);
    if (r == WEIR_OK && weir_sketch_weight(sk))
        T_TRUE(isfinite(t_sketch_q(sk, 0.5)) && isfinite(weir_sketch_sum(sk)));
    weir_sketch_free(sk);
}

void t_expect_hardy(uint32_t codec, const struct weir_codec_opts *opts, const uint8_t *bytes,
                    size_t n)
{
    static const uint8_t values[] = {0, 1, 0x7f, 0x80, 0xff, 0xdd, 0xcf, 0xf0};
    const size_t most = n < 72 ? n : 72;
    uint8_t *const copy = malloc(n + 1);
    T_TRUE(copy != NULL);
    for (size_t i = 0; i < n; i++)
        try_one(codec, opts, bytes, i);
    for (size_t i = 0; i < most; i++) {
        for (size_t k = 0; k < sizeof values; k++) {
            memcpy(copy, bytes, n);
            copy[i] = values[k];
            try_one(codec, opts, copy, n);
        }
        memcpy(copy, bytes, i + 1);
        memcpy(copy + i + 1, bytes + i, n - i); /* doubled */
        try_one(codec, opts, copy, n + 1);
        memcpy(copy + i, bytes + i + 1, n - i - 1); /* left out */
        try_one(codec, opts, copy, n - 1);
    }
    free(copy);
}

void t_expect_round(uint32_t codec, const struct weir_codec_opts *opts,
                    const struct weir_sketch *sk)
{
    struct t_bytes b = t_encode(codec, opts, sk);
    struct weir_sketch *again;
    T_OK(t_decode(codec, opts, b.at, b.n, &again));
    t_same_bins(sk, again);
    struct t_bytes c = t_encode(codec, opts, again);
    T_EQ_BYTES(c.at, c.n, b.at, b.n);
    free(b.at);
    free(c.at);
    weir_sketch_free(again);
}

struct weir_sketch *t_random_sketch(struct t_rng *rng, int32_t scale, bool with_signs)
{
    struct weir_mapping *m;
    T_OK(weir_mapping_base2(NULL, scale, &m));
    struct weir_sketch *const sk = t_sketch_of(m, 32768);
    weir_mapping_unref(m);
    const uint64_t n = t_below(rng, 400) + 1;
    for (uint64_t i = 0; i < n; i++) {
        const double v = exp((t_unit(rng) - 0.5) * (t_below(rng, 400) ? 20 : 600));
        const uint64_t weight = ONE * (t_below(rng, 9) ? 1 : 1 + t_below(rng, 1 << 20));
        const uint64_t kind = with_signs ? t_below(rng, 8) : 0;
        T_OK(weir_sketch_add(sk, kind == 1 ? -v : kind == 2 ? 0 : v, weight));
    }
    return sk;
}
