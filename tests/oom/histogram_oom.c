/* SPDX-License-Identifier: Apache-2.0 */
/* codec: every allocation refused in turn while histograms and ASAP's sketches are read; what fails
 * leaves the sketch empty, with the mapping that it had. */
#include <math.h>
#include <string.h>
#include <weir/codec.h>

#include "t_sketch.h"

struct encoded {
    uint32_t codec;
    const struct weir_mapping *mapping;
    uint8_t bytes[65536];
    size_t n;
};

static int decode_once(const struct weir_alloc *alloc, void *ctx)
{
    const struct encoded *const e = ctx;
    const struct weir_sketch_opts o = {.struct_size = sizeof o, .alloc = *alloc};
    const struct weir_codec_opts opts = {.struct_size = sizeof opts, .mapping = e->mapping};
    struct weir_sketch *sk;
    int r = weir_sketch_new(&o, &sk);
    if (r != WEIR_OK)
        return r;
    const struct weir_mapping *const had = weir_sketch_mapping(sk);
    r = weir_codec_decode(e->codec, &opts, e->bytes, e->n, sk, NULL);
    T_TRUE(wr_sketch_check(sk));
    if (r != WEIR_OK) {
        T_EQ_U64(weir_sketch_weight(sk), 0);
        T_TRUE(weir_sketch_mapping(sk) == had);
    }
    weir_sketch_free(sk);
    return r;
}

static void fill(struct weir_sketch *sk, bool with_signs)
{
    for (int i = 0; i < 200; i++)
        T_OK(weir_sketch_add(sk, exp(i / 9.0 - 9) * (with_signs && i % 3 == 0 ? -1 : 1),
                             (i == 7 ? 100000 : 1) * ONE));
    if (with_signs)
        T_OK(weir_sketch_add(sk, 0, 0));
}

static void each(uint32_t codec, struct weir_mapping *mapping, bool with_signs)
{
    const struct weir_sketch_opts o = {.struct_size = sizeof o, .mapping = mapping};
    struct weir_sketch *sk;
    static struct encoded e;
    T_OK(weir_sketch_new(&o, &sk));
    fill(sk, with_signs);
    e.codec = codec;
    e.mapping = mapping;
    T_OK(weir_codec_encode(codec, NULL, sk, e.bytes, sizeof e.bytes, &e.n));
    t_each_oom(decode_once, &e);
    weir_sketch_free(sk);
}

TEST(exponential_histograms_that_find_no_memory_leave_an_empty_sketch)
{
    struct weir_mapping *m;
    T_OK(weir_mapping_base2(NULL, 4, &m));
    each(WEIR_CODEC_OTLP_EXP, m, true);
    each(WEIR_CODEC_PROMETHEUS, m, true);
    weir_mapping_unref(m);
}

TEST(sketches_of_asap_that_find_no_memory_leave_an_empty_sketch)
{
    struct weir_mapping *m;
    T_OK(weir_mapping_log(NULL, 0.02, &m));
    each(WEIR_CODEC_ASAPV1, m, true);
    each(WEIR_CODEC_SKETCHLIB, m, false);
    each(WEIR_CODEC_SKETCHLIB_DELTA, m, false);
    weir_mapping_unref(m);
}

TEST(a_histogram_with_bounds_that_finds_no_memory_leaves_an_empty_sketch)
{
    /* bounds -1, 1, 100; counts 5, 70000, 9, 1; sum 20000 */
    static const char hex[] = "21771101000000000029000000000088d340"
                              "3220050000000000000070110100000000000900000000000000"
                              "0100000000000000"
                              "3a18000000000000f0bf000000000000f03f0000000000005940";
    static struct encoded e = {.codec = WEIR_CODEC_OTLP_HISTOGRAM};
    e.n = t_unhex(hex, e.bytes, sizeof e.bytes);
    e.bytes[1] = 0x7f; /* count: 70015 */
    t_each_oom(decode_once, &e);
}
