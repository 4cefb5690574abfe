/* SPDX-License-Identifier: Apache-2.0 */
/* codec: every allocation refused in turn while the encodings of others are read. */
#include "t_sketch.h"

#include <math.h>
#include <weir/codec.h>

struct encoded {
    uint32_t codec;
    uint8_t bytes[16384];
    size_t n;
};

/* A sketch with a mapping that is not the default: both signs, zeros, fractions, a wide range. */
static struct encoded encoded(uint32_t codec)
{
    struct weir_mapping *m;
    T_OK(weir_mapping_new(NULL, WEIR_MAPPING_LOG, 1.015625, 1338.5, &m));
    const struct weir_sketch_opts o = {.struct_size = sizeof o, .mapping = m};
    struct weir_sketch *sk;
    T_OK(weir_sketch_new(&o, &sk));
    for (int i = 0; i < 200; i++) {
        const double v = exp((i * 37) % 200 / 10.0 - 5);
        T_OK(weir_sketch_add(sk, i % 3 ? v : -v, i == 150 ? 3 * ONE / 2 : 300 * ONE));
    }
    T_OK(weir_sketch_add(sk, 0, 70000 * ONE));
    struct encoded e = {.codec = codec};
    T_OK(weir_codec_encode(codec, NULL, sk, e.bytes, sizeof e.bytes, &e.n));
    weir_sketch_free(sk);
    weir_mapping_unref(m);
    return e;
}

static int decode_twice(const struct weir_alloc *alloc, void *ctx)
{
    const struct encoded *const e = ctx;
    const struct weir_sketch_opts o = {.struct_size = sizeof o, .alloc = *alloc};
    struct weir_sketch *sk;
    int r = weir_sketch_new(&o, &sk);
    if (r != WEIR_OK)
        return r;
    for (int i = 0; i < 2 && r == WEIR_OK; i++) {
        r = weir_codec_decode(e->codec, NULL, e->bytes, e->n, sk, NULL);
        T_TRUE(wr_sketch_check(sk));
        const uint32_t kind = weir_mapping_kind(weir_sketch_mapping(sk));
        if (r == WEIR_OK) {
            T_TRUE(weir_sketch_weight(sk) > 100000 * ONE);
            T_EQ_U64(kind, WEIR_MAPPING_LOG);
        } else {
            T_EQ_U64(weir_sketch_weight(sk), 0);
            T_EQ_U64(kind, i ? WEIR_MAPPING_LOG : WEIR_MAPPING_BASE2);
        }
    }
    weir_sketch_free(sk);
    return r;
}

TEST(reading_that_fails_leaves_an_empty_sketch_with_the_mapping_it_had)
{
    for (uint32_t codec = WEIR_CODEC_DD_PROTO; codec <= WEIR_CODEC_DOGSKETCH; codec++) {
        struct encoded e = encoded(codec);
        t_each_oom(decode_twice, &e);
    }
}
