/* SPDX-License-Identifier: Apache-2.0 */
/* dd_v04: fields and tags of span maps, leniency, refusals and where they point. */
#include "support.h"

#include <stdlib.h>
#include <string.h>

/* One trace of one span with the pairs in body, which are `pairs` of them. */
static struct t_buf one_span(unsigned pairs, const struct t_buf *body)
{
    const uint8_t head[] = {0x91, 0x91, 0xde, 0, (uint8_t)pairs};
    struct t_buf b = {.at = NULL};
    t_put(&b, head, sizeof head);
    t_put(&b, body->at, body->len);
    return b;
}

static int decode_body(unsigned pairs, struct t_buf *body, struct t_spans *spans,
                       struct t_buf *ret_payload, struct weir_where *ret_where)
{
    *ret_payload = one_span(pairs, body);
    t_buf_free(body);
    return t_decode(weir_decode_dd_v04, ret_payload->at, ret_payload->len, spans, NULL, ret_where);
}

static void put_meta(struct t_buf *b, const char *key, const char *value)
{
    t_put_str(b, key);
    t_put_str(b, value);
}

TEST(the_fields_of_a_span_arrive_as_sent)
{
    struct t_buf body = {.at = NULL};
    struct t_buf payload;
    struct t_spans spans = {.kept = NULL};
    put_meta(&body, "resource", "GET /");
    put_meta(&body, "type", "web");
    put_meta(&body, "service", "shop");
    put_meta(&body, "name", "web.request");
    t_put_str(&body, "trace_id");
    t_put_hex(&body, "cf8000000000000001");
    t_put_str(&body, "span_id");
    t_put_hex(&body, "ce00010000");
    t_put_str(&body, "parent_id");
    t_put_hex(&body, "07");
    t_put_str(&body, "start");
    t_put_hex(&body, "d30de0b6b3a7640000");
    t_put_str(&body, "duration");
    t_put_hex(&body, "d200000100");
    t_put_str(&body, "error");
    t_put_hex(&body, "01");
    T_OK(decode_body(10, &body, &spans, &payload, NULL));
    T_EQ_U64(spans.count, 1);
    T_EQ_U64(spans.traces, 1);
    const struct weir_span *const s = &spans.kept[0].span;
    T_TRUE(t_bytes_are(s->service, "shop") && t_bytes_are(s->name, "web.request"));
    T_TRUE(t_bytes_are(s->resource, "GET /") && t_bytes_are(s->type, "web"));
    T_EQ_U64(s->trace_id, UINT64_C(0x8000000000000001));
    T_EQ_U64(s->trace_id_hi, 0);
    T_EQ_U64(s->span_id, 65536);
    T_EQ_U64(s->parent_id, 7);
    T_EQ_I64(s->start_ns, INT64_C(1000000000000000000));
    T_EQ_I64(s->duration_ns, 256);
    T_EQ_U64(s->flags, WEIR_SPAN_ERROR | WEIR_SPAN_DD);
    T_EQ_U64(s->raw_offset, 2);
    T_EQ_U64(s->raw_bytes, payload.len - 2);
    t_buf_free(&payload);
    t_spans_free(&spans);
}

TEST(what_is_missing_or_nil_is_empty_and_unknown_keys_are_skipped)
{
    struct t_buf body = {.at = NULL};
    struct t_buf payload;
    struct t_spans spans = {.kept = NULL};
    t_put_str(&body, "service");
    t_put_hex(&body, "c0");
    t_put_str(&body, "meta");
    t_put_hex(&body, "c0");
    t_put_str(&body, "metrics");
    t_put_hex(&body, "c0");
    t_put_str(&body, "parent_id");
    t_put_hex(&body, "c0");
    t_put_str(&body, "meta_struct");
    t_put_hex(&body, "81a161c403010203");
    t_put_str(&body, "span_links");
    t_put_hex(&body, "9182a161 9201c0 a162 81 a163 cb3ff0000000000000");
    t_put_str(&body, "name");
    t_put_hex(&body, "c4026162");
    T_OK(decode_body(7, &body, &spans, &payload, NULL));
    const struct weir_span *const s = &spans.kept[0].span;
    T_TRUE(s->service.len == 0 && s->resource.len == 0 && s->type.len == 0);
    T_TRUE(t_bytes_are(s->name, "ab"));
    T_EQ_U64(s->parent_id, 0);
    T_EQ_U64(s->present, 0);
    T_EQ_U64(s->flags, WEIR_SPAN_DD);
    T_EQ_U64(s->kind, WEIR_KIND_NONE);
    t_buf_free(&payload);
    t_spans_free(&spans);
}

TEST(tags_land_in_their_slots_by_rank_and_of_a_repeated_key_the_last_wins)
{
    struct t_buf body = {.at = NULL};
    struct t_buf payload;
    struct t_spans spans = {.kept = NULL};
    t_put_str(&body, "metrics");
    t_put_hex(&body, "86");
    t_put_str(&body, "http.status_code");
    t_put_hex(&body, "cd01f4");
    t_put_str(&body, "grpc.code");
    t_put_hex(&body, "07");
    t_put_str(&body, "_dd.top_level");
    t_put_hex(&body, "cb3ff0000000000000");
    t_put_str(&body, "_dd.measured");
    t_put_hex(&body, "ca3f800000");
    t_put_str(&body, "_dd.partial_version");
    t_put_hex(&body, "ff");
    t_put_str(&body, "region");
    t_put_hex(&body, "cfffffffffffffffff");
    t_put_str(&body, "meta");
    t_put_hex(&body, "de000d");
    put_meta(&body, "http.request.method", "PUT");
    put_meta(&body, "http.method", "GET");
    put_meta(&body, "http.endpoint", "/never");
    put_meta(&body, "http.route", "/first");
    put_meta(&body, "http.route", "/last");
    put_meta(&body, "http.endpoint", "/never either");
    put_meta(&body, "span.kind", "SeRvEr");
    put_meta(&body, "http.status_code", "200");
    put_meta(&body, "grpc.status.code", "StatusCode.OK");
    put_meta(&body, "out.host", "db");
    put_meta(&body, "_dd.origin", "synthetics");
    put_meta(&body, "env", "prod");
    t_put_str(&body, "env");
    t_put_hex(&body, "c0");
    T_OK(decode_body(2, &body, &spans, &payload, NULL));
    const struct t_kept *const k = &spans.kept[0];
    T_EQ_STR(t_slot(k, WEIR_TAG_HTTP_METHOD), "GET");
    T_EQ_STR(t_slot(k, WEIR_TAG_HTTP_ROUTE), "/last");
    T_EQ_STR(t_slot(k, SLOT_TWICE), "/last");
    T_EQ_STR(t_slot(k, WEIR_TAG_HTTP_STATUS), "200");
    T_EQ_STR(t_slot(k, WEIR_TAG_GRPC_STATUS), "StatusCode.OK");
    T_EQ_STR(t_slot(k, SLOT_PEER), "db");
    T_EQ_STR(t_slot(k, WEIR_TAG_ORIGIN), "synthetics");
    T_EQ_STR(t_slot(k, WEIR_TAG_ENV), "prod");
    T_EQ_STR(t_slot(k, WEIR_TAG_TOP_LEVEL), "1");
    T_EQ_STR(t_slot(k, WEIR_TAG_MEASURED), "1");
    T_EQ_STR(t_slot(k, WEIR_TAG_PARTIAL), "-1");
    T_EQ_STR(t_slot(k, SLOT_DIM), "1.84467e+19");
    T_EQ_STR(t_slot(k, WEIR_TAG_BASE_SERVICE), "-");
    T_EQ_U64(k->span.kind, WEIR_KIND_SERVER);
    t_buf_free(&payload);
    t_spans_free(&spans);
}

TEST(the_kind_is_read_in_any_case_and_other_words_are_none)
{
    static const struct {
        const char *word;
        enum weir_kind kind;
    } rows[] = {
        {"server", WEIR_KIND_SERVER},     {"CLIENT", WEIR_KIND_CLIENT},
        {"Producer", WEIR_KIND_PRODUCER}, {"consumer", WEIR_KIND_CONSUMER},
        {"internal", WEIR_KIND_INTERNAL}, {"", WEIR_KIND_NONE},
        {"servers", WEIR_KIND_NONE},      {"unknown", WEIR_KIND_NONE},
        {"3erver", WEIR_KIND_NONE},       {"s\x05rver", WEIR_KIND_NONE},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct t_buf body = {.at = NULL};
        struct t_buf payload;
        struct t_spans spans = {.kept = NULL};
        t_put_str(&body, "meta");
        t_put_hex(&body, "81");
        put_meta(&body, "span.kind", rows[i].word);
        T_OK(decode_body(1, &body, &spans, &payload, NULL));
        T_EQ_U64(spans.kept[0].span.kind, rows[i].kind);
        t_buf_free(&payload);
        t_spans_free(&spans);
    }
}

/* Spans whose keys differ in order, number and length, so that remembered keys hit and miss. */
TEST(a_key_that_differs_from_the_one_before_at_its_place_is_read_for_what_it_is)
{
    static const char *const keys[][3] = {
        {"http.route", "http.method", "env"},      {"http.method", "http.route", "env"},
        {"http.routf", "http.methoe", "enw"},      {"http.route", "http.method", "env"},
        {"http.route.but.longer", "http.m", "en"}, {"env", "http.route", "http.method"},
    };
    struct t_buf b = {.at = NULL};
    t_put_hex(&b, "9196");
    for (size_t i = 0; i < 6; i++) {
        t_put_hex(&b, "81");
        t_put_str(&b, "meta");
        t_put_hex(&b, "83");
        for (size_t j = 0; j < 3; j++)
            put_meta(&b, keys[i][j], keys[i][j]);
    }
    struct t_spans spans = {.kept = NULL};
    T_OK(t_decode(weir_decode_dd_v04, b.at, b.len, &spans, NULL, NULL));
    T_EQ_U64(spans.count, 6);
    for (size_t i = 0; i < 6; i++) {
        const bool wanted = i != 2 && i != 4;
        T_EQ_STR(t_slot(&spans.kept[i], WEIR_TAG_HTTP_ROUTE), wanted ? "http.route" : "-");
        T_EQ_STR(t_slot(&spans.kept[i], WEIR_TAG_HTTP_METHOD), wanted ? "http.method" : "-");
        T_EQ_STR(t_slot(&spans.kept[i], WEIR_TAG_ENV), wanted ? "env" : "-");
    }
    t_buf_free(&b);
    t_spans_free(&spans);
}

TEST(more_keys_than_are_remembered_are_all_read)
{
    struct t_buf b = {.at = NULL};
    t_put_hex(&b, "9192");
    for (unsigned i = 0; i < 2; i++) {
        t_put_hex(&b, "81");
        t_put_str(&b, "meta");
        t_put_hex(&b, "de0065");
        for (unsigned j = 0; j < 100; j++) {
            char key[8];
            (void)snprintf(key, sizeof key, "key%u", j);
            put_meta(&b, key, "v");
        }
        put_meta(&b, "env", i ? "second" : "first");
    }
    struct t_spans spans = {.kept = NULL};
    T_OK(t_decode(weir_decode_dd_v04, b.at, b.len, &spans, NULL, NULL));
    T_EQ_STR(t_slot(&spans.kept[0], WEIR_TAG_ENV), "first");
    T_EQ_STR(t_slot(&spans.kept[1], WEIR_TAG_ENV), "second");
    t_buf_free(&b);
    t_spans_free(&spans);
}

TEST(a_known_field_of_a_wrong_type_is_refused_where_it_stands)
{
    static const struct {
        const char *hex;
        size_t offset;
        int err;
        const char *reason;
    } rows[] = {
        {"80", 0, WEIR_EFORMAT, "not an array"},
        {"9180", 1, WEIR_EFORMAT, "not an array"},
        {"9191c0", 2, WEIR_EFORMAT, "a span that is nil"},
        {"919105", 2, WEIR_EFORMAT, "not a map"},
        {"9191810102", 3, WEIR_EFORMAT, "not a string"},
        {"919181c002", 3, WEIR_EFORMAT, "a key that is nil"},
        {"919181a46e616d6505", 8, WEIR_EFORMAT, "not a string"},
        {"919181a8747261"
         "63655f6964ff",
         12, WEIR_EFORMAT, "not an unsigned integer"},
        {"919181a57374617274cfffffffffffffffff", 9, WEIR_EFORMAT, "integer past 63 bits"},
        {"919181a57374617274cb3ff0000000000000", 9, WEIR_EFORMAT, "not an integer"},
        {"919181a46d65746181a16101", 11, WEIR_EFORMAT, "not a string"},
        {"919181a76d65747269637381a161a162", 14, WEIR_EFORMAT, "a metric that is not a number"},
        {"919181a76d65747269637381a161c3", 14, WEIR_EFORMAT, "a metric that is not a number"},
        {"9190c0", 2, WEIR_EFORMAT, "bytes after the payload"},
        {"919181a178c1", 5, WEIR_EFORMAT, "reserved byte 0xc1"},
        {"ddffffffff9090909090", 0, WEIR_ETRUNCATED,
         "a container claims more elements than bytes are left"},
        {"", 0, WEIR_ETRUNCATED, "the bytes end where an item should begin"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        uint8_t buf[64];
        struct weir_where where;
        const size_t n = t_unhex(rows[i].hex, buf, sizeof buf);
        T_ERR(t_decode(weir_decode_dd_v04, buf, n, NULL, NULL, &where), rows[i].err);
        T_EQ_STR(where.reason, rows[i].reason);
        T_EQ_U64(where.offset, rows[i].offset);
    }
}

TEST(an_unknown_value_may_nest_up_to_the_limit_and_no_deeper)
{
    for (unsigned levels = 28; levels < 32; levels++) {
        struct t_buf body = {.at = NULL};
        struct t_buf payload;
        t_put_str(&body, "x");
        for (unsigned i = 0; i < levels; i++)
            t_put_hex(&body, "91");
        t_put_hex(&body, "c0");
        /* traces, trace and span are three levels of the 32 */
        T_ERR(decode_body(1, &body, NULL, &payload, NULL),
              levels + 3 <= WEIR_DECODE_DEPTH_MAX ? WEIR_OK : WEIR_EFORMAT);
        t_buf_free(&payload);
    }
}

TEST(what_a_sink_returns_ends_the_walk_and_is_not_the_payloads_fault)
{
    static const uint8_t payload[] = {0x91, 0x92, 0x80, 0x80};
    struct weir_tags *const tags = t_tags();
    struct weir_decoder *decoder = NULL;
    T_OK(weir_decoder_new(NULL, tags, &decoder));
    struct t_spans spans = {.fail_with = WEIR_EFULL};
    const struct weir_span_sink sink = t_sink(&spans);
    struct weir_where where = {.offset = 99};
    struct weir_decode_result result = {.spans = 99};
    T_ERR(weir_decode_dd_v04(decoder, payload, sizeof payload, &sink, &result, &where), WEIR_EFULL);
    T_EQ_U64(where.offset, 99);
    T_EQ_U64(result.spans, 99);
    T_EQ_U64(spans.traces, 0);
    spans.fail_with = WEIR_OK;
    T_OK(weir_decode_dd_v04(decoder, payload, sizeof payload, &sink, &result, &where));
    T_EQ_U64(result.spans, 2);
    T_EQ_U64(result.traces, 1);
    t_spans_free(&spans);
    weir_decoder_free(decoder);
    weir_tags_free(tags);
}
