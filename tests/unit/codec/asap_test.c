/* SPDX-License-Identifier: Apache-2.0 */
/* DDSketches of ASAPv1 and of sketchlib.v1 (tests/golden/asap): read, written byte for byte, and
 * the sketches of other kinds refused by name. */
#include "foreign.h"

#include <math.h>

#define ASAP WEIR_CODEC_ASAPV1
#define LIB WEIR_CODEC_SKETCHLIB
#define DELTA WEIR_CODEC_SKETCHLIB_DELTA
#define GOLDEN T_SOURCE_DIR "/tests/golden/asap/"

static struct weir_mapping *one_percent(void)
{
    struct weir_mapping *m;
    T_OK(weir_mapping_log(NULL, 0.01, &m));
    return m;
}

static void expect_bytes(uint32_t codec, const struct weir_sketch *sk, const struct t_bytes *want)
{
    struct t_bytes have = t_encode(codec, NULL, sk);
    T_EQ_BYTES(have.at, have.n, want->at, want->n);
    free(have.at);
}

/* Cut text at " | ". */
static void split(char *text, char *parts[4])
{
    for (int i = 0; i < 4; i++) {
        char *const bar = strstr(text, " | ");
        parts[i] = text;
        if (bar)
            *bar = '\0';
        text = bar ? bar + 3 : text + strlen(text);
    }
}

static void asap_row(void *ctx, char *cells[T_CELLS])
{
    (void)ctx;
    struct t_bytes b = t_bytes(cells[1]);
    struct weir_sketch *sk;
    if (strcmp(cells[2], "refused") == 0) {
        struct weir_where where;
        T_ERR(t_decode_only(ASAP, NULL, b.at, b.n, &where), WEIR_EVERSION);
        T_TRUE(strstr(where.reason, ", not a DDSketch") != NULL);
        free(b.at);
        return;
    }
    char *parts[4];
    split(cells[2], parts);
    T_OK(t_decode(ASAP, NULL, b.at, b.n, &sk));
    t_expect_bins(sk, WR_BINS_POSITIVE, parts[0], 0);
    t_expect_bins(sk, WR_BINS_NEGATIVE, parts[1], 0);
    T_EQ_U64(wr_bins_zero(sk), strtoull(parts[2], NULL, 10) * ONE);
    t_expect_stats(sk, parts[3]);
    T_TRUE(weir_sketch_is_exact(sk));
    expect_bytes(ASAP, sk, &b);
    for (size_t i = 0; i < b.n; i++) {
        const int r = t_decode_only(ASAP, NULL, b.at, i, NULL);
        T_TRUE(r == WEIR_ETRUNCATED || (i == 0 && r != WEIR_OK));
    }
    t_expect_hardy(ASAP, NULL, b.at, b.n);
    free(b.at);
    weir_sketch_free(sk);
}

TEST(envelopes_are_read_and_written_byte_for_byte)
{
    T_EQ_U64(t_rows(GOLDEN "asapv1.tsv", asap_row, NULL), 14);
}

TEST(answers_do_not_pass_the_maximum)
{
    struct t_bytes b = t_bytes(
        "41534150763101020500000000220000003582b06d657461646174615f76657273696f6e01a5616c706861cb3f"
        "847ae147ae147b959701007fcc80cd012cce00010000cf0000000100000000d0d8cb41e0401013000000cb3fdd"
        "000000000000cb3fe0400000000000");
    struct weir_sketch *sk;
    T_OK(t_decode(ASAP, NULL, b.at, b.n, &sk));
    T_EQ_U64(weir_sketch_weight(sk), UINT64_C(4295033388) * ONE);
    T_EQ_DBL(t_sketch_q(sk, 0.1), 0.5078125); /* the highest bin answers 0.515 */
    T_EQ_DBL(t_sketch_q(sk, 0.99), 0.5078125);
    free(b.at);
    weir_sketch_free(sk);
}

TEST(a_sketch_of_signs_answers_as_its_writer_does)
{
    struct t_bytes b = t_bytes(
        "41534150763101020500000000220000002a82b06d657461646174615f76657273696f6e02a5616c706861cb3f"
        "847ae147ae147b9893030002cd0136cb40a3b7d000000000cbbf90624dd2f1a9fccb4080180000000000920501"
        "d1ff3007");
    struct weir_sketch *sk;
    T_OK(t_decode(ASAP, NULL, b.at, b.n, &sk));
    T_EQ_U64(weir_sketch_weight(sk), 18 * ONE);
    T_EQ_DBL(t_sketch_q(sk, 0.5), 0);
    T_NEAR(t_sketch_q(sk, 0.1), -0.0157614476290745, 1e-12);
    T_EQ_DBL(t_sketch_q(sk, 1), 515);
    free(b.at);
    weir_sketch_free(sk);
}

static void malformed_row(void *ctx, char *cells[T_CELLS])
{
    size_t *const refused = ctx;
    struct t_bytes b = t_bytes(cells[1]);
    struct weir_where where;
    const int r = t_decode_only(ASAP, NULL, b.at, b.n, &where);
    if (strcmp(cells[2], "refuse") == 0 && r == WEIR_OK)
        T_FAIL("%s was accepted", cells[0]);
    if (strcmp(cells[2], "accept") == 0 && r != WEIR_OK)
        T_FAIL("%s was refused: %s", cells[0], where.reason);
    *refused += r != WEIR_OK;
    free(b.at);
}

TEST(malformed_envelopes_are_refused)
{
    size_t refused = 0;
    T_EQ_U64(t_rows(GOLDEN "asapv1-malformed.tsv", malformed_row, &refused), 64);
    T_EQ_U64(refused, 60); /* accepted: ok-small, and three whose numbers are not minimal */
}

TEST(other_kinds_have_names)
{
    static const struct {
        unsigned kind;
        const char *reason;
    } rows[] = {
        {0x0101, "an HLL (classic), not a DDSketch"},
        {0x0103, "an HLL (HIP), not a DDSketch"},
        {0x0200, "a CMS, not a DDSketch"},
        {0x0600, "a KLL, not a DDSketch"},
        {0x1900, "a CountL2HH, not a DDSketch"},
        {0xffff, "an unknown kind of sketch"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        uint8_t head[18] = {'A', 'S', 'A', 'P', 'v', '1', 1, 2};
        struct weir_where where;
        head[8] = (uint8_t)(rows[i].kind >> 8);
        head[9] = (uint8_t)rows[i].kind;
        T_ERR(t_decode_only(ASAP, NULL, head, sizeof head, &where), WEIR_EVERSION);
        T_EQ_STR(where.reason, rows[i].reason);
        T_EQ_U64(where.offset, 8);
    }
}

static void lib_row(void *ctx, char *cells[T_CELLS])
{
    const struct weir_codec_opts opts = {.struct_size = sizeof opts, .mapping = ctx};
    const bool delta = strstr(cells[1], "delta") != NULL;
    const uint32_t codec = delta ? DELTA : LIB;
    struct t_bytes b = t_bytes(cells[2]);
    struct weir_sketch *sk;
    if (strncmp(cells[1], "refused", 7) == 0) {
        struct weir_where where;
        const int r = t_decode_only(codec, &opts, b.at, b.n, &where);
        T_TRUE(r == WEIR_EVERSION || r == WEIR_EFORMAT);
        T_TRUE(strstr(where.reason, "not ") != NULL);
        free(b.at);
        return;
    }
    T_OK(t_decode(codec, &opts, b.at, b.n, &sk));
    T_TRUE(weir_mapping_equal(weir_sketch_mapping(sk), ctx));
    t_expect_bins(sk, WR_BINS_POSITIVE, cells[3], 0);
    T_TRUE(!weir_sketch_is_exact(sk) || !weir_sketch_weight(sk));
    if (strcmp(cells[1], "read") != 0) /* that one has room for bins that are not used */
        expect_bytes(codec, sk, &b);
    t_expect_round(codec, &opts, sk);
    t_expect_hardy(codec, &opts, b.at, b.n);
    free(b.at);
    weir_sketch_free(sk);
}

TEST(states_and_deltas_of_sketchlib_are_read_and_written)
{
    struct weir_mapping *const m = one_percent();
    T_EQ_U64(t_rows(GOLDEN "sketchlib.tsv", lib_row, m), 12);
    weir_mapping_unref(m);
}

static void fill_1_to_50(void *ctx, char *cells[T_CELLS])
{
    if (strcmp(cells[0], "1_50_trimmed") != 0)
        return;
    struct t_bytes want = t_bytes(cells[2]);
    struct weir_sketch *const sk = t_sketch_of(ctx, 0);
    for (int i = 1; i <= 50; i++)
        T_OK(weir_sketch_add(sk, i, 0));
    expect_bytes(LIB, sk, &want);
    T_NEAR(t_sketch_q(sk, 0.5), 24.7805, 0.03);
    free(want.at);
    weir_sketch_free(sk);
}

TEST(one_to_fifty_recorded_here_is_what_sketchlib_has)
{
    struct weir_mapping *const m = one_percent();
    t_rows(GOLDEN "sketchlib.tsv", fill_1_to_50, m);
    weir_mapping_unref(m);
}

TEST(envelopes_that_cannot_be_are_refused)
{
    static const struct {
        const char *hex;
        int want;
        const char *reason;
    } rows[] = {
        {"0802720c096214ae47e17a843f120101", WEIR_EVERSION, "a format version other than 1"},
        {"720c096214ae47e17a843f120101", WEIR_EVERSION, "a format version other than 1"},
        {"0801", WEIR_EFORMAT, "no sketch"},
        {"080121000000000000e03f720c096214ae47e17a843f120101", WEIR_EVERSION, "a sampled sketch"},
        {"08017203120101", WEIR_EFORMAT, "alpha is not between 0 and 1"},
        {"0801720c09000000000000f03f120101", WEIR_EFORMAT, "alpha is not between 0 and 1"},
        {"0801720c09000000000000f87f120101", WEIR_EFORMAT, "alpha is not between 0 and 1"},
        {"0801720c0900000000000000 80120101", WEIR_EFORMAT, "alpha is not between 0 and 1"},
        /* alpha 1e-12: indices of more than 32 bits */
        {"0801720c0911ea2d819997713d120101", WEIR_EVERSION, "an alpha that is not supported here"},
        {"0801720c096214ae47e17a843f1201017200", WEIR_EVERSION, "more than one sketch"},
        {"08017200 5a00", WEIR_EVERSION, "a CountSketch, not a DDSketch"},
        {"08016200", WEIR_EVERSION, "an HLL, not a DDSketch"},
        {"08016a00", WEIR_EVERSION, "a KLL, not a DDSketch"},
        {"0801720e096214ae47e17a843f1201014001", WEIR_EVERSION, "a DDSketch with unknown fields"},
        {"0801720e096214ae47e17a843f1201011880", WEIR_ETRUNCATED,
         "a field reaches past the end of the bytes"},
        {"08017212096214ae47e17a843f12010118feffffff0f", WEIR_EFORMAT,
         "a bin past the range of doubles, or counts past 2^44"},
        {"08017215096214ae47e17a843f120affffffffffffffffff01", WEIR_ERANGE,
         "a bin past the range of doubles, or counts past 2^44"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct weir_where where;
        T_ERR(t_decode_hex(LIB, NULL, rows[i].hex, &where), rows[i].want);
        T_EQ_STR(where.reason, rows[i].reason);
    }
}

TEST(a_delta_needs_a_mapping_that_deltas_are_of)
{
    struct weir_mapping *const cubic = t_mapping(WEIR_MAPPING_CUBIC, 1.02, 0);
    struct weir_mapping *const off = t_mapping(WEIR_MAPPING_LOG, 1.015625, 1338.5);
    struct weir_mapping *const whole = t_mapping(WEIR_MAPPING_LOG, 1.015625, 1000);
    const char *const hex = "0a0408021001"; /* bin 1 */
    struct weir_where where;
    T_ERR(t_decode_hex(DELTA, NULL, hex, &where), WEIR_EFORMAT);
    T_EQ_STR(where.reason, "a delta says no mapping, and none was given");
    struct weir_codec_opts opts = {.struct_size = sizeof opts, .mapping = cubic};
    T_ERR(t_decode_hex(DELTA, &opts, hex, NULL), WEIR_EVERSION);
    opts.mapping = off;
    T_ERR(t_decode_hex(DELTA, &opts, hex, NULL), WEIR_EVERSION);
    opts.mapping = whole;
    struct t_bytes b = t_bytes(hex);
    struct weir_sketch *sk;
    T_OK(t_decode(DELTA, &opts, b.at, b.n, &sk));
    t_expect_bins(sk, WR_BINS_POSITIVE, "1001:1", 0);
    expect_bytes(DELTA, sk, &b);
    free(b.at);
    weir_sketch_free(sk);
    weir_mapping_unref(cubic);
    weir_mapping_unref(off);
    weir_mapping_unref(whole);
}

TEST(what_a_format_cannot_say_is_not_written)
{
    struct weir_mapping *const m = one_percent();
    struct weir_mapping *const cubic = t_mapping(WEIR_MAPPING_CUBIC, 1.02, 0);
    struct weir_sketch *const zero = t_sketch_of(m, 0);
    struct weir_sketch *const negative = t_sketch_of(m, 0);
    struct weir_sketch *const other = t_sketch_of(cubic, 0);
    T_OK(weir_sketch_add(zero, 0, 0));
    T_OK(weir_sketch_add(negative, -1, 0));
    T_OK(weir_sketch_add(other, 1, 0));
    uint8_t bytes[256];
    size_t n;
    T_ERR(weir_codec_encode(LIB, NULL, zero, bytes, sizeof bytes, &n), WEIR_ERANGE);
    T_ERR(weir_codec_encode(LIB, NULL, negative, bytes, sizeof bytes, &n), WEIR_ERANGE);
    T_ERR(weir_codec_encode(DELTA, NULL, negative, bytes, sizeof bytes, &n), WEIR_ERANGE);
    T_OK(weir_codec_encode(ASAP, NULL, zero, bytes, sizeof bytes, &n));
    T_ERR(weir_codec_encode(LIB, NULL, other, bytes, sizeof bytes, &n), WEIR_EVERSION);
    T_ERR(weir_codec_encode(DELTA, NULL, other, bytes, sizeof bytes, &n), WEIR_EVERSION);
    T_ERR(weir_codec_encode(ASAP, NULL, other, bytes, sizeof bytes, &n), WEIR_EVERSION);
    weir_sketch_free(zero);
    weir_sketch_free(negative);
    weir_sketch_free(other);
    weir_mapping_unref(m);
    weir_mapping_unref(cubic);
}

TEST(sketches_of_base_2_come_back_as_that)
{
    struct t_rng rng = t_rng(t_seed());
    for (int i = 0; i < 20; i++) {
        struct weir_sketch *const sk = t_random_sketch(&rng, WEIR_SKETCH_SCALE_DEFAULT, i % 2);
        t_expect_round(ASAP, NULL, sk); /* into a sketch of base 2 */
        if (i % 2 == 0)
            t_expect_round(LIB, NULL, sk);
        weir_sketch_free(sk);
    }
}

TEST(durations_are_written_in_the_unit_of_their_bins)
{
    struct weir_mapping *const m = one_percent();
    const struct weir_sketch_opts o = {.struct_size = sizeof o, .grid = WEIR_GRID_NS, .mapping = m};
    struct weir_sketch *sk;
    T_OK(weir_sketch_new(&o, &sk));
    T_OK(weir_sketch_add_ns(sk, 1500000007, 0));
    T_OK(weir_sketch_add_ns(sk, 250, 0));
    uint8_t bytes[65536];
    size_t n;
    T_ERR(weir_codec_encode(ASAP, NULL, sk, bytes, sizeof bytes, &n), WEIR_EVERSION);
    const struct weir_codec_opts ns = {.struct_size = sizeof ns, .flags = WEIR_CODEC_NANOSECONDS};
    T_OK(weir_codec_encode(ASAP, &ns, sk, bytes, sizeof bytes, &n));
    struct weir_sketch *again;
    T_OK(t_decode(ASAP, NULL, bytes, n, &again));
    T_EQ_DBL(weir_sketch_sum(again), 1500000257);
    T_EQ_DBL(t_sketch_min(again), 250);
    T_EQ_DBL(t_sketch_max(again), 1500000007);
    weir_sketch_free(again);
    weir_sketch_free(sk);
    weir_mapping_unref(m);
}

static void expect_alpha(double alpha)
{
    struct weir_mapping *m;
    T_OK(weir_mapping_new(NULL, WEIR_MAPPING_LOG, (1 + alpha) / (1 - alpha), 0, &m));
    struct weir_sketch *const sk = t_sketch_of(m, 0);
    T_OK(weir_sketch_add(sk, 1, 0));
    for (int i = 0; i < 2; i++) {
        struct t_bytes b = t_encode(i ? ASAP : LIB, NULL, sk);
        struct weir_sketch *again;
        T_OK(t_decode(i ? ASAP : LIB, NULL, b.at, b.n, &again));
        T_EQ_DBL(weir_mapping_gamma(weir_sketch_mapping(again)), weir_mapping_gamma(m));
        free(b.at);
        weir_sketch_free(again);
    }
    weir_sketch_free(sk);
    weir_mapping_unref(m);
}

TEST(an_alpha_comes_back_as_the_same_gamma)
{
    struct t_rng rng = t_rng(t_seed());
    expect_alpha(0.01);
    expect_alpha(0x1.17a5147aee37bp-1);
    for (int i = 0; i < 300; i++)
        expect_alpha(exp(-t_unit(&rng) * 9) * 0.95);
}
