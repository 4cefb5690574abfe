/* SPDX-License-Identifier: Apache-2.0 */
/* Texts, their table, and what transcoding makes of UTF-16. */
#include "trace/text.h"
#include "trace/utf.h"
#include "trace_fixture.h"

#include <stdlib.h>
#include <string.h>

TEST(every_known_key_is_found_and_nothing_else_is)
{
    static const char *const keys[] = {
#define ROW(name, text) [WR_KNOWN_##name] = (text),
        WR_KNOWN_MAP(ROW)
#undef ROW
    };
    for (uint32_t i = 1; i < WR_KNOWN_KEYS; i++)
        T_EQ_U64(wr_known_find(keys[i], strlen(keys[i])), i);
    T_EQ_U64(wr_known_find("", 0), 0);
    T_EQ_U64(wr_known_find("thread.ix", 9), 0);
    T_EQ_U64(wr_known_find("_sampling_priority_v10", 22), 0);
    T_EQ_U64(wr_known_find("service", 7), 0);
}

static const struct {
    const char *bytes;
    size_t len;
    const char *mended; /* NULL: well-formed */
} utf8_rows[] = {
    {"", 0, NULL},
    {"plain ascii of some length", 26, NULL},
    {"\xc2\x80\xdf\xbf", 4, NULL},
    {"\xe0\xa0\x80\xed\x9f\xbf\xee\x80\x80\xef\xbf\xbf", 12, NULL},
    {"\xf0\x90\x80\x80\xf4\x8f\xbf\xbf", 8, NULL},
    {"\x80", 1, "\xef\xbf\xbd"},
    {"a\xc2", 2, "a\xef\xbf\xbd"},
    {"\xc1\xbf", 2, "\xef\xbf\xbd\xef\xbf\xbd"},                                 /* overlong */
    {"\xe0\x9f\xbf", 3, "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},                 /* overlong */
    {"\xed\xa0\x80", 3, "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},                 /* a surrogate */
    {"\xf4\x90\x80\x80", 4, "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"}, /* past the end */
    {"\xf5", 1, "\xef\xbf\xbd"},
    {"\xe2\x82z", 3, "\xef\xbf\xbd\xef\xbf\xbdz"},
};

TEST(utf8_is_told_from_what_is_not_and_mended_byte_by_byte)
{
    for (size_t i = 0; i < sizeof utf8_rows / sizeof *utf8_rows; i++) {
        struct t_guard g = t_guard_new(utf8_rows[i].bytes, utf8_rows[i].len);
        T_EQ_U64(wr_utf8_ok((const char *)g.ptr, utf8_rows[i].len), !utf8_rows[i].mended);
        const char *const want = utf8_rows[i].mended ? utf8_rows[i].mended : utf8_rows[i].bytes;
        char got[64];
        const size_t n = (size_t)(wr_utf8_mend(got, (const char *)g.ptr, utf8_rows[i].len) - got);
        T_EQ_BYTES(got, n, want, strlen(want));
        T_EQ_U64(wr_utf8_mended_len((const char *)g.ptr, utf8_rows[i].len), n);
        t_guard_free(&g);
    }
}

/* Units of every class, in runs, so that each path begins and ends everywhere. */
static void random_units(struct t_rng *r, uint16_t *units, size_t n)
{
    size_t i = 0;
    while (i < n) {
        const size_t run = 1 + t_below(r, t_below(r, 4) ? 6 : 70);
        const uint64_t class = t_below(r, 6);
        for (size_t k = 0; k < run && i < n; k++, i++) {
            const uint16_t any = (uint16_t)t_next(r);
            units[i] = class < 3    ? any & 0x7f
                       : class == 3 ? 0x80 | (any & 0x7ff)
                       : class == 4 ? any
                                    : (uint16_t)(0xd800 | (any & 0x7ff));
        }
    }
}

TEST(transcoding_by_simd_gives_the_bytes_of_the_scalar_loop)
{
    enum { MAX = 300 };
    struct t_rng r = t_rng(t_seed());
    for (int round = 0; round < 4000; round++) {
        const size_t n = t_below(&r, MAX);
        uint16_t units[MAX];
        random_units(&r, units, n);
        /* Read to the byte against a guard page; written to the byte, which ASan sees. */
        struct t_guard in = t_guard_new(units, n * sizeof *units);
        char *const out = malloc(3 * n + 1);
        T_TRUE(out);
        char want[3 * MAX];
        uint64_t mended = 0;
        uint64_t want_mended = 0;
        const size_t len = (size_t)(wr_utf16_to_utf8(out, in.ptr, n, &mended) - out);
        const size_t want_len =
            (size_t)(wr_utf16_to_utf8_scalar(want, units, n, &want_mended) - want);
        T_EQ_BYTES(out, len, want, want_len);
        T_EQ_U64(mended, want_mended);
        T_EQ_U64(wr_utf16_len(units, n), want_len);
        T_TRUE(wr_utf8_ok(want, want_len));
        t_guard_free(&in);
        free(out);
    }
}

TEST(every_code_point_comes_through_utf16)
{
    for (uint32_t point = 0; point < 0x110000; point += point < 0x800 ? 1 : 97) {
        if (point >= 0xd800 && point < 0xe000)
            continue;
        uint16_t units[2] = {(uint16_t)point};
        size_t n = 1;
        if (point >= 0x10000) {
            units[0] = (uint16_t)(0xd800 + ((point - 0x10000) >> 10));
            units[1] = (uint16_t)(0xdc00 + ((point - 0x10000) & 0x3ff));
            n = 2;
        }
        char utf8[8];
        uint64_t mended = 0;
        const size_t len = (size_t)(wr_utf16_to_utf8(utf8, units, n, &mended) - utf8);
        T_EQ_U64(mended, 0);
        const unsigned char *const u = (const unsigned char *)utf8;
        const uint32_t back =
            len == 1   ? u[0]
            : len == 2 ? (u[0] & 0x1fu) << 6 | (u[1] & 0x3fu)
            : len == 3
                ? (u[0] & 0xfu) << 12 | (u[1] & 0x3fu) << 6 | (u[2] & 0x3fu)
                : (u[0] & 7u) << 18 | (u[1] & 0x3fu) << 12 | (u[2] & 0x3fu) << 6 | (u[3] & 0x3fu);
        T_EQ_U64(back, point);
    }
}

TEST(a_text_is_what_it_was_made_of)
{
    struct weir_text *t = NULL;
    static char long_text[70000];
    memset(long_text, 'x', sizeof long_text);
    static const size_t lens[] = {0, 1, 15, 16, 31, 32, 255, 256, 65535, 65536};
    for (size_t i = 0; i < sizeof lens / sizeof *lens; i++) {
        T_OK(weir_text_new(NULL, long_text, lens[i], &t));
        const struct weir_bytes b = weir_text_get_bytes(t);
        T_EQ_BYTES(b.ptr, b.len, long_text, lens[i]);
        const struct weir_trace_span s = {.name = weir_str_text(t)};
        const struct weir_trace_span plain = {.name = weir_str_utf8(long_text, (uint32_t)lens[i])};
        struct weir_trace_encoder *e = fixture_encoder(WEIR_TRACE_V04, 0);
        T_OK(fixture_add(e, &s, 1));
        T_OK(fixture_add(e, &plain, 1));
        struct weir_bytes p;
        T_OK(weir_trace_payload(e, &p));
        T_EQ_U64(p.len % 2, 1);
        T_EQ_BYTES(p.ptr + 1, p.len / 2, p.ptr + 1 + p.len / 2, p.len / 2);
        weir_trace_encoder_free(e);
        weir_text_free(t);
    }
    T_ERR(weir_text_new(NULL, NULL, 1, &t), WEIR_EINVAL);
    T_ERR(weir_text_new(NULL, "x", 1, NULL), WEIR_EINVAL);
    T_ERR(weir_text_new(NULL, "x", (size_t)2 << 30, &t), WEIR_ERANGE);
    T_ERR(weir_text_from_utf16(NULL, NULL, 1, &t), WEIR_EINVAL);
    weir_text_free(NULL);
}

TEST(a_text_that_is_not_well_formed_is_mended)
{
    struct weir_text *t = NULL;
    T_OK(weir_text_new(NULL, "a\xff", 2, &t));
    struct weir_bytes b = weir_text_get_bytes(t);
    T_EQ_BYTES(b.ptr, b.len, "a\xef\xbf\xbd", 4);
    weir_text_free(t);
    static const uint16_t units[] = {0xdc00, 'a'};
    T_OK(weir_text_from_utf16(NULL, units, 2, &t));
    b = weir_text_get_bytes(t);
    T_EQ_BYTES(b.ptr, b.len,
               "\xef\xbf\xbd"
               "a",
               4);
    weir_text_free(t);
}

/* Two encoders share texts, one of which is made anew at each payload: no index may be mistaken. */
TEST(texts_shared_by_encoders_keep_apart_through_rewinds_and_clears)
{
    enum { TEXTS = 40, ENCODERS = 3 };
    static const uint32_t versions[ENCODERS] = {WEIR_TRACE_V05, WEIR_TRACE_V1, WEIR_TRACE_V05};
    struct t_rng r = t_rng(t_seed());
    struct weir_text *texts[TEXTS];
    char names[TEXTS][16];
    for (size_t i = 0; i < TEXTS; i++) {
        (void)snprintf(names[i], sizeof names[i], "name-%zu", i % 30); /* some are equal */
        T_OK(weir_text_new(NULL, names[i], strlen(names[i]), &texts[i]));
    }
    struct weir_trace_encoder *e[ENCODERS];
    static struct weir_trace_span sent[ENCODERS][64];
    size_t count[ENCODERS] = {0};
    for (size_t i = 0; i < ENCODERS; i++)
        e[i] = fixture_encoder(versions[i], 900);
    for (int step = 0; step < 6000; step++) {
        const size_t k = t_below(&r, ENCODERS);
        const size_t a = t_below(&r, TEXTS);
        const size_t b = t_below(&r, TEXTS);
        const struct weir_trace_span span = {.service = weir_str_text(texts[a]),
                                             .name = weir_str_text(texts[b]),
                                             .resource = weir_str_c(names[a])};
        const int err = count[k] < 64 ? fixture_add(e[k], &span, 1) : WEIR_EFULL;
        if (!err) {
            sent[k][count[k]++] = (struct weir_trace_span){.service = weir_str_c(names[a]),
                                                           .name = weir_str_c(names[b]),
                                                           .resource = weir_str_c(names[a])};
            continue;
        }
        T_ERR(err, WEIR_EFULL);
        struct weir_bytes p;
        T_OK(weir_trace_payload(e[k], &p));
        fixture_check(versions[k], p, sent[k], count[k], 1);
        weir_trace_clear(e[k]);
        count[k] = 0;
    }
    for (size_t i = 0; i < ENCODERS; i++)
        weir_trace_encoder_free(e[i]);
    for (size_t i = 0; i < TEXTS; i++)
        weir_text_free(texts[i]);
}

TEST(the_table_takes_a_string_in_at_its_second_sight_and_keeps_its_bound)
{
    const struct weir_texts_opts o = {.struct_size = sizeof o, .max_texts = 4, .max_len_bytes = 8};
    struct weir_texts *t = NULL;
    T_OK(weir_texts_new(&o, &t));
    const struct weir_str s = weir_str_c("tag");
    T_EQ_U64(weir_texts_intern(t, s).kind, WEIR_STR_UTF8);
    const struct weir_str text = weir_texts_intern(t, s);
    T_EQ_U64(text.kind, WEIR_STR_TEXT);
    T_TRUE(weir_texts_intern(t, s).ptr == text.ptr);
    static const uint16_t units[] = {'t', 'a', 'g'};
    T_TRUE(weir_texts_intern(t, weir_str_utf16(units, 3)).ptr == text.ptr);
    for (int i = 0; i < 3; i++)
        T_EQ_U64(weir_texts_intern(t, weir_str_c("123456789")).kind, WEIR_STR_UTF8); /* too long */
    for (int i = 0; i < 3; i++)
        T_EQ_U64(weir_texts_intern(t, weir_str_c("\xff")).kind, WEIR_STR_UTF8);
    T_TRUE(weir_texts_intern(t, text).ptr == text.ptr);
    T_TRUE(weir_texts_intern(t, weir_str_c(NULL)).ptr == NULL);
    T_EQ_U64(weir_texts_count(t), 1);
    for (int i = 0; i < 100; i++) {
        char name[8];
        (void)snprintf(name, sizeof name, "n%d", i);
        (void)weir_texts_intern(t, weir_str_c(name));
        (void)weir_texts_intern(t, weir_str_c(name));
    }
    T_EQ_U64(weir_texts_count(t), 4);
    weir_texts_free(t);
    weir_texts_free(NULL);
}

TEST(options_of_the_table_outside_their_range_are_refused)
{
    struct weir_texts *t = NULL;
    struct weir_texts_opts o = {.struct_size = sizeof o, .max_texts = (1 << 20) + 1};
    T_ERR(weir_texts_new(&o, &t), WEIR_EINVAL);
    o.max_texts = 1;
    o.max_len_bytes = UINT32_MAX;
    T_ERR(weir_texts_new(&o, &t), WEIR_EINVAL);
    o.struct_size = 1;
    T_ERR(weir_texts_new(&o, &t), WEIR_EINVAL);
    T_ERR(weir_texts_new(NULL, NULL), WEIR_EINVAL);
}

/* Against a naive model: which texts are in, and which were asked for since the last age. */
TEST(aging_forgets_what_was_not_asked_for_and_nothing_else)
{
    enum { NAMES = 200, ROOM = 64 };
    const struct weir_texts_opts o = {.struct_size = sizeof o, .max_texts = ROOM};
    struct t_rng r = t_rng(t_seed());
    struct weir_texts *t = NULL;
    T_OK(weir_texts_new(&o, &t));
    bool in[NAMES] = {0};
    bool used[NAMES] = {0};
    for (int step = 0; step < 20000; step++) {
        if (t_below(&r, 200) == 0) {
            weir_texts_age(t);
            for (size_t i = 0; i < NAMES; i++) {
                in[i] = in[i] && used[i];
                used[i] = false;
            }
        }
        const size_t i = t_below(&r, 1 + t_below(&r, NAMES));
        char name[16];
        const int n = snprintf(name, sizeof name, "value-%zu", i);
        const struct weir_str got = weir_texts_intern(t, weir_str_utf8(name, (uint32_t)n));
        if (in[i])
            T_EQ_U64(got.kind, WEIR_STR_TEXT);
        if (got.kind == WEIR_STR_TEXT) {
            const struct weir_bytes b = weir_text_get_bytes(got.ptr);
            T_EQ_BYTES(b.ptr, b.len, name, (size_t)n);
            in[i] = used[i] = true;
        }
        size_t count = 0;
        for (size_t k = 0; k < NAMES; k++)
            count += in[k];
        T_EQ_U64(weir_texts_count(t), count);
        T_TRUE(count <= ROOM);
    }
    weir_texts_free(t);
}

static int make_texts(const struct weir_alloc *a, void *ctx)
{
    (void)ctx;
    struct weir_text *text = NULL;
    struct weir_text *from16 = NULL;
    struct weir_texts *t = NULL;
    static const uint16_t units[] = {'a', 0x4e00};
    const struct weir_texts_opts o = {.struct_size = sizeof o, .alloc = *a};
    int err = weir_text_new(a, "abc", 3, &text);
    if (!err)
        err = weir_text_from_utf16(a, units, 2, &from16);
    if (!err)
        err = weir_texts_new(&o, &t);
    if (!err) {
        /* Without memory a string stays what it is, and that is no error. */
        for (int i = 0; i < 3; i++)
            T_TRUE(weir_texts_intern(t, weir_str_utf16(units, 2)).ptr != NULL);
    }
    weir_texts_free(t);
    weir_text_free(from16);
    weir_text_free(text);
    return err;
}

TEST(texts_survive_each_refused_allocation)
{
    t_each_oom(make_texts, NULL);
}
