/* SPDX-License-Identifier: Apache-2.0 */
/* dd_v05: the dictionary, its bounds, keys by index and by string, refusals. */
#include "support.h"

#include <stdlib.h>
#include <string.h>

/* [strings, [[span]]] with the dictionary 0 "", 1 "s", 2 "env", 3 "prod", 4 "span.kind",
 * 5 "client", 6 "_dd.measured"; the span's meta, metrics and type are given. */
static int decode_span(const char *tail_hex, struct t_spans *spans, struct t_buf *ret_payload,
                       struct weir_where *ret_where)
{
    static const char *const strings[] = {"",          "s",      "env",         "prod",
                                          "span.kind", "client", "_dd.measured"};
    struct t_buf b = {.at = NULL};
    t_put_hex(&b, "9297");
    for (size_t i = 0; i < sizeof strings / sizeof *strings; i++)
        t_put_str(&b, strings[i]);
    t_put_hex(&b, "91919c 010001 cf8000000000000001 02 00 cf0de0b6b3a7640000 0a 01");
    t_put_hex(&b, tail_hex);
    *ret_payload = b;
    return t_decode(weir_decode_dd_v05, b.at, b.len, spans, NULL, ret_where);
}

TEST(indices_become_strings_and_tags)
{
    struct t_spans spans = {.kept = NULL};
    struct t_buf payload;
    T_OK(decode_span("82 0203 0405 81 0601 00", &spans, &payload, NULL));
    T_EQ_U64(spans.count, 1);
    const struct t_kept *const k = &spans.kept[0];
    T_TRUE(t_bytes_are(k->span.service, "s") && t_bytes_are(k->span.resource, "s"));
    T_TRUE(k->span.name.len == 0 && k->span.type.len == 0);
    T_EQ_U64(k->span.trace_id, UINT64_C(0x8000000000000001));
    T_EQ_I64(k->span.duration_ns, 10);
    T_EQ_U64(k->span.kind, WEIR_KIND_CLIENT);
    T_EQ_U64(k->span.flags, WEIR_SPAN_ERROR | WEIR_SPAN_DD);
    T_EQ_STR(t_slot(k, WEIR_TAG_ENV), "prod");
    T_EQ_STR(t_slot(k, WEIR_TAG_MEASURED), "1");
    t_buf_free(&payload);
    t_spans_free(&spans);
}

TEST(a_key_may_be_a_string_as_one_tracer_writes_it)
{
    struct t_spans spans = {.kept = NULL};
    struct t_buf payload;
    /* "_dd.partial_version": 1 */
    T_OK(decode_span("80 81 b35f64642e7061727469616c5f76657273696f6e 01 00", &spans, &payload,
                     NULL));
    T_EQ_STR(t_slot(&spans.kept[0], WEIR_TAG_PARTIAL), "1");
    t_buf_free(&payload);
    t_spans_free(&spans);
}

TEST(indices_past_the_dictionary_and_other_shapes_are_refused)
{
    static const struct {
        const char *tail;
        const char *reason;
    } rows[] = {
        {"81 0703 80 00", "dictionary index out of range"},
        {"81 0207 80 00", "dictionary index out of range"},
        {"80 81 0701 00", "dictionary index out of range"},
        {"80 80 07", "dictionary index out of range"},
        {"80 80 cfffffffffffffffff", "dictionary index out of range"},
        {"80 80 ff", "not an unsigned integer"},
        {"80 80 c0", "a dictionary index that is nil"},
        {"80 80 a0", "not an unsigned integer"},
        {"90 80 00", "not a map"},
        {"80 81 0606 00 00", "bytes after the payload"},
        {"80 81 06a0 00", "a metric that is not a number"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct t_buf payload;
        struct weir_where where;
        T_ERR(decode_span(rows[i].tail, NULL, &payload, &where), WEIR_EFORMAT);
        T_EQ_STR(where.reason, rows[i].reason);
        t_buf_free(&payload);
    }
}

TEST(the_outer_array_has_two_elements_and_a_span_twelve)
{
    static const char *const bad[] = {
        "91 90",       "93 90 90 90",       "90",
        "c0",          "92 80 90",          "92 91 a0 91 91 9b 00000001020304000a8080",
        "92 91 05 90", "92 91 a0 91 91 80", "92 90 91 91 9c00"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        uint8_t *bytes = NULL;
        T_TRUE(t_decode_hex(weir_decode_dd_v05, bad[i], NULL, &bytes) != WEIR_OK);
        free(bytes);
    }
    struct t_spans spans = {.kept = NULL};
    uint8_t *bytes = NULL;
    T_OK(t_decode_hex(weir_decode_dd_v05, "92 90 92 90 90", &spans, &bytes));
    T_EQ_U64(spans.traces, 2);
    T_EQ_U64(spans.count, 0);
    free(bytes);
    t_spans_free(&spans);
}

/* A dictionary of n empty strings and no traces. */
static int decode_strings(struct weir_decoder *decoder, uint32_t n, struct weir_where *ret_where)
{
    const uint8_t head[] = {
        0x92, 0xdd, (uint8_t)(n >> 24), (uint8_t)(n >> 16), (uint8_t)(n >> 8), (uint8_t)n};
    uint8_t *const bytes = malloc(sizeof head + n + 1);
    T_TRUE(bytes != NULL);
    memcpy(bytes, head, sizeof head);
    memset(bytes + sizeof head, 0xa0, n);
    bytes[sizeof head + n] = 0x90;
    const int r = weir_decode_dd_v05(decoder, bytes, sizeof head + n + 1, NULL, NULL, ret_where);
    free(bytes);
    return r;
}

TEST(the_dictionary_is_bounded_and_a_large_one_is_given_back)
{
    struct t_heap h = {.fail_at = -1};
    const struct weir_alloc a = {t_heap_fn, &h};
    struct weir_tags *const tags = t_tags();
    struct weir_decoder *decoder = NULL;
    struct weir_where where;
    T_OK(weir_decoder_new(&a, tags, &decoder));
    const long long bare = h.live;
    T_OK(decode_strings(decoder, 1000, &where));
    T_TRUE(h.live - bare <= 1024 * 16);
    const long seen = h.seen;
    T_OK(decode_strings(decoder, 1000, &where));
    T_EQ_I64(h.seen, seen);
    T_OK(decode_strings(decoder, 1u << 20, &where));
    T_EQ_I64(h.live, bare);
    T_ERR(decode_strings(decoder, (1u << 20) + 1, &where), WEIR_EFORMAT);
    T_EQ_STR(where.reason, "more than 2^20 dictionary strings");
    /* The claim alone allocates nothing. */
    const uint8_t claim[] = {0x92, 0xdd, 0, 0x10, 0, 0, 0xa1, 'a'};
    const long before = h.seen;
    T_ERR(weir_decode_dd_v05(decoder, claim, sizeof claim, NULL, NULL, NULL), WEIR_ETRUNCATED);
    T_EQ_I64(h.seen, before);
    weir_decoder_free(decoder);
    T_EQ_I64(h.live, 0);
    weir_tags_free(tags);
}
