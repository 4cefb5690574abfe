/* SPDX-License-Identifier: Apache-2.0 */
/* otlp: fields in any order, resource and span attributes, ids, times, nesting. */
#include "support.h"

#include <stdlib.h>
#include <string.h>

static const uint8_t ids[16] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};

static struct t_buf any_text(const char *text)
{
    struct t_buf any = {.at = NULL};
    t_put_text(&any, 1, text);
    return any;
}

static struct t_buf any_int(uint64_t v)
{
    struct t_buf any = {.at = NULL};
    t_put_int(&any, 3, v);
    return any;
}

/* A KeyValue into field `number` of b; any is emptied. */
static void put_attribute(struct t_buf *b, unsigned number, const char *key, struct t_buf any)
{
    struct t_buf kv = {.at = NULL};
    t_put_text(&kv, 1, key);
    t_put_message(&kv, 2, &any);
    t_put_message(b, number, &kv);
}

static void put_ids(struct t_buf *span)
{
    t_put_field(span, 1, ids, 16);
    t_put_field(span, 2, ids, 8);
}

/* The request: resource, if any, behind the spans when last. Both are emptied. */
static struct t_buf request_of(struct t_buf *resource, struct t_buf *span, bool last)
{
    struct t_buf scope = {.at = NULL};
    struct t_buf rs = {.at = NULL};
    struct t_buf request = {.at = NULL};
    t_put_message(&scope, 2, span);
    if (resource && !last)
        t_put_message(&rs, 1, resource);
    t_put_message(&rs, 2, &scope);
    if (resource && last)
        t_put_message(&rs, 1, resource);
    t_put_message(&request, 1, &rs);
    return request;
}

static int decode_request(struct t_buf *request, struct t_spans *spans,
                          struct weir_decode_result *ret_result, struct weir_where *ret_where)
{
    return t_decode(weir_decode_otlp_traces, request->at, request->len, spans, ret_result,
                    ret_where);
}

TEST(a_span_has_its_fields_its_resource_and_its_attributes_in_whatever_order)
{
    for (int last = 0; last < 2; last++) {
        struct t_buf resource = {.at = NULL};
        struct t_buf span = {.at = NULL};
        struct t_buf status = {.at = NULL};
        struct t_spans spans = {.kept = NULL};
        put_attribute(&resource, 1, "deployment.environment", any_text("old"));
        put_attribute(&resource, 1, "service.name", any_text("shop"));
        put_attribute(&resource, 1, "deployment.environment.name", any_text("prod"));
        put_attribute(&resource, 1, "region", any_text("eu"));
        put_attribute(&span, 9, "http.status_code", any_int(404));
        put_attribute(&span, 9, "http.response.status_code", any_int(500));
        put_attribute(&span, 9, "zone", any_text("z1"));
        put_attribute(&span, 9, "http.route", any_text("/a"));
        put_attribute(&span, 9, "operation.name", any_text("op"));
        put_attribute(&span, 9, "span.type", any_text("web"));
        t_put_fixed64(&span, 8, 3000);
        t_put_fixed64(&span, 7, 1000);
        t_put_int(&status, 3, 2);
        t_put_message(&span, 15, &status);
        t_put_int(&span, 6, 3);
        t_put_text(&span, 5, "GET /a");
        t_put_field(&span, 4, ids + 8, 8);
        put_ids(&span);
        struct t_buf request = request_of(&resource, &span, last);
        struct weir_decode_result result;
        T_OK(decode_request(&request, &spans, &result, NULL));
        T_EQ_U64(result.spans, 1);
        T_EQ_U64(result.traces, 0);
        T_EQ_U64(spans.traces, 1);
        const struct t_kept *const k = &spans.kept[0];
        const struct weir_span *const s = &k->span;
        T_TRUE(t_bytes_are(s->service, "shop") && t_bytes_are(s->name, "op"));
        T_TRUE(t_bytes_are(s->resource, "GET /a") && t_bytes_are(s->type, "web"));
        T_EQ_U64(s->trace_id_hi, UINT64_C(0x0102030405060708));
        T_EQ_U64(s->trace_id, UINT64_C(0x090a0b0c0d0e0f10));
        T_EQ_U64(s->span_id, UINT64_C(0x0102030405060708));
        T_EQ_U64(s->parent_id, UINT64_C(0x090a0b0c0d0e0f10));
        T_EQ_I64(s->start_ns, 1000);
        T_EQ_I64(s->duration_ns, 2000);
        T_EQ_U64(s->kind, WEIR_KIND_CLIENT);
        T_EQ_U64(s->flags, WEIR_SPAN_ERROR | WEIR_SPAN_LOOSE);
        T_EQ_STR(t_slot(k, WEIR_TAG_ENV), "prod");
        T_EQ_STR(t_slot(k, WEIR_TAG_HTTP_STATUS), "500");
        /* Any span attribute stands against the resource's, whatever its rank. */
        T_EQ_STR(t_slot(k, SLOT_DIM), "z1");
        T_EQ_STR(t_slot(k, SLOT_TWICE), "/a");
        T_EQ_STR(t_slot(k, WEIR_TAG_KIND), "-");
        t_buf_free(&request);
        t_spans_free(&spans);
    }
}

TEST(a_resource_holds_for_its_own_spans_only_and_a_span_does_not_change_it)
{
    struct t_buf request = {.at = NULL};
    for (int i = 0; i < 3; i++) {
        struct t_buf rs = {.at = NULL};
        struct t_buf scope = {.at = NULL};
        struct t_buf resource = {.at = NULL};
        put_attribute(&resource, 1, "region", any_text("eu"));
        for (int j = 0; j < 2; j++) {
            struct t_buf span = {.at = NULL};
            put_ids(&span);
            if (j == 0)
                put_attribute(&span, 9, "region", any_text("us"));
            t_put_message(&scope, 2, &span);
        }
        t_put_message(&rs, 2, &scope);
        if (i != 1)
            t_put_message(&rs, 1, &resource);
        t_buf_free(&resource);
        t_put_message(&request, 1, &rs);
    }
    struct t_spans spans = {.kept = NULL};
    static const char *const want[] = {"us", "eu", "us", "-", "us", "eu"};
    T_OK(decode_request(&request, &spans, NULL, NULL));
    T_EQ_U64(spans.count, 6);
    for (size_t i = 0; i < 6; i++)
        T_EQ_STR(t_slot(&spans.kept[i], SLOT_DIM), want[i]);
    t_buf_free(&request);
    t_spans_free(&spans);
}

/* One span with the KeyValue bytes of hex; the slot of "region". */
static void check_attribute(const char *kv_hex, const char *want)
{
    struct t_buf span = {.at = NULL};
    struct t_buf kv = {.at = NULL};
    struct t_spans spans = {.kept = NULL};
    put_ids(&span);
    t_put_hex(&kv, kv_hex);
    t_put_message(&span, 9, &kv);
    struct t_buf request = request_of(NULL, &span, false);
    T_OK(decode_request(&request, &spans, NULL, NULL));
    T_EQ_U64(spans.count, 1);
    T_EQ_STR(t_slot(&spans.kept[0], SLOT_DIM), want);
    t_buf_free(&request);
    t_spans_free(&spans);
}

#define REGION "0a06726567696f6e"

TEST(attribute_values_of_every_type_and_shape_are_read)
{
    check_attribute(REGION "12030a0165", "e");
    check_attribute(REGION "12021001", "true");
    check_attribute(REGION "12021807", "7");
    check_attribute(REGION "120b18ffffffffffffffffff01", "-1");
    check_attribute(REGION "120921000000000000f83f", "1.5");
    check_attribute(REGION "12022a00", "-");   /* array */
    check_attribute(REGION "12023200", "-");   /* key-value list */
    check_attribute(REGION "12033a0161", "-"); /* bytes */
    check_attribute(REGION "1200", "-");       /* empty AnyValue */
    check_attribute(REGION, "-");              /* no value */
    check_attribute("12030a0165", "-");        /* no key */
    check_attribute("", "-");
    check_attribute("12030a0165" REGION, "e");     /* value first */
    check_attribute(REGION "12050a01651807", "7"); /* two: the last wins */
    check_attribute(REGION "120518070a0165", "e");
    check_attribute(REGION "12050a01657801", "e"); /* unknown field in the AnyValue */
    check_attribute(REGION "12030a0165"
                           "1801",
                    "e");                               /* unknown field in the KeyValue */
    check_attribute("0a0161" REGION "12030a0165", "e"); /* key twice: the last */
    check_attribute(REGION "1005", "-");                /* value with another wire type */
}

TEST(times_that_are_missing_reversed_or_out_of_range_are_settled)
{
    static const struct {
        uint64_t start;
        uint64_t end;
        int64_t start_ns;
        int64_t duration_ns;
        unsigned flags;
    } rows[] = {
        {100, 99, 100, -1, 0},
        {100, 100, 100, 0, 0},
        {0, 50, 50, 0, WEIR_SPAN_NO_START},
        {50, 0, 50, 0, WEIR_SPAN_NO_END},
        {0, 0, 0, 0, WEIR_SPAN_NO_START | WEIR_SPAN_NO_END},
        {1, UINT64_MAX, 1, INT64_MAX, 0},
        {UINT64_MAX, 1, INT64_MAX, -INT64_MAX, 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct t_buf span = {.at = NULL};
        struct t_spans spans = {.kept = NULL};
        put_ids(&span);
        t_put_fixed64(&span, 7, rows[i].start);
        t_put_fixed64(&span, 8, rows[i].end);
        struct t_buf request = request_of(NULL, &span, false);
        T_OK(decode_request(&request, &spans, NULL, NULL));
        T_EQ_I64(spans.kept[0].span.start_ns, rows[i].start_ns);
        T_EQ_I64(spans.kept[0].span.duration_ns, rows[i].duration_ns);
        T_EQ_U64(spans.kept[0].span.flags, rows[i].flags | WEIR_SPAN_LOOSE);
        t_buf_free(&request);
        t_spans_free(&spans);
    }
}

TEST(a_bad_id_refuses_its_span_and_a_bad_parent_is_no_parent)
{
    static const uint8_t zero[16] = {0};
    static const struct {
        const uint8_t *trace;
        size_t trace_len;
        const uint8_t *span;
        size_t span_len;
        size_t parent_len;
        int refused; /* -1: stands */
    } rows[] = {
        {ids, 16, ids, 8, 0, -1},
        {ids, 16, ids, 8, 8, -1},
        {ids, 16, ids, 8, 7, -1},
        {ids, 15, ids, 8, 0, WEIR_REFUSED_TRACE_ID},
        {ids, 0, ids, 8, 0, WEIR_REFUSED_TRACE_ID},
        {zero, 16, ids, 8, 0, WEIR_REFUSED_TRACE_ID},
        {ids, 16, ids, 9, 0, WEIR_REFUSED_SPAN_ID},
        {ids, 16, zero, 8, 0, WEIR_REFUSED_SPAN_ID},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct t_buf span = {.at = NULL};
        struct t_spans spans = {.kept = NULL};
        struct weir_decode_result result;
        t_put_field(&span, 1, rows[i].trace, rows[i].trace_len);
        t_put_field(&span, 2, rows[i].span, rows[i].span_len);
        t_put_field(&span, 4, ids, rows[i].parent_len);
        struct t_buf request = request_of(NULL, &span, false);
        T_OK(decode_request(&request, &spans, &result, NULL));
        T_EQ_U64(result.refused, rows[i].refused >= 0);
        T_EQ_U64(spans.count, rows[i].refused < 0);
        if (rows[i].refused >= 0)
            T_TRUE(spans.refused[rows[i].refused] > 0);
        else
            T_EQ_U64(spans.kept[0].span.parent_id != 0, rows[i].parent_len == 8);
        t_buf_free(&request);
        t_spans_free(&spans);
    }
}

TEST(kinds_past_the_known_ones_are_none_and_the_last_scalar_wins)
{
    static const uint64_t kinds[] = {0, 1, 5, 6, 99, UINT64_MAX};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        struct t_buf span = {.at = NULL};
        struct t_buf status = {.at = NULL};
        struct t_spans spans = {.kept = NULL};
        put_ids(&span);
        t_put_int(&span, 6, 2);
        t_put_int(&span, 6, kinds[i]);
        t_put_int(&status, 3, 2);
        t_put_int(&status, 3, 1);
        t_put_message(&span, 15, &status);
        struct t_buf request = request_of(NULL, &span, false);
        T_OK(decode_request(&request, &spans, NULL, NULL));
        T_EQ_U64(spans.kept[0].span.kind, kinds[i] <= 5 ? kinds[i] : 0);
        T_EQ_U64(spans.errors, 0);
        t_buf_free(&request);
        t_spans_free(&spans);
    }
}

/* An AnyValue that holds `arrays` arrays, one in the other. */
static struct t_buf any_arrays(unsigned arrays)
{
    struct t_buf any = any_text("x");
    for (unsigned i = 0; i < arrays; i++) {
        struct t_buf array = {.at = NULL};
        t_put_message(&array, 1, &any);
        t_put_message(&any, 5, &array);
    }
    return any;
}

/* The place of an attribute: in a span, an event, a link, a scope, a resource. */
static int decode_nested(unsigned place, const char *key, unsigned arrays)
{
    static const unsigned fields[] = {9, 3, 4, 3, 1};
    struct t_buf holder = {.at = NULL};
    struct t_buf span = {.at = NULL};
    put_ids(&span);
    put_attribute(place == 0 ? &span : &holder, fields[place], key, any_arrays(arrays));
    if (place == 1)
        t_put_message(&span, 11, &holder);
    if (place == 2)
        t_put_message(&span, 13, &holder);
    struct t_buf request = request_of(place == 4 ? &holder : NULL, &span, false);
    if (place == 3) {
        struct t_buf scope_spans = {.at = NULL};
        struct t_buf rs = {.at = NULL};
        t_put_message(&scope_spans, 1, &holder);
        t_put_message(&rs, 2, &scope_spans);
        t_put_message(&request, 1, &rs);
    }
    const int r = decode_request(&request, NULL, NULL, NULL);
    t_buf_free(&request);
    return r;
}

TEST(values_may_nest_up_to_the_limit_and_no_deeper_wanted_or_not)
{
    /* The depth of the AnyValue at each place, the request being 1; an array adds two. */
    static const unsigned depth[] = {6, 7, 7, 6, 5};
    for (unsigned place = 0; place < 5; place++) {
        for (unsigned arrays = 11; arrays < 16; arrays++) {
            const int want =
                depth[place] + 2 * arrays <= WEIR_DECODE_DEPTH_MAX ? WEIR_OK : WEIR_EFORMAT;
            T_ERR(decode_nested(place, "region", arrays), want);
            T_ERR(decode_nested(place, "unwanted", arrays), want);
        }
    }
}

TEST(a_malformed_value_refuses_the_payload_wanted_or_not)
{
    static const char *const bad[] = {REGION "12030a0265",
                                      "0a01781203"
                                      "0a0265",
                                      REGION "12020001",
                                      "0a0178"
                                      "12020001",
                                      REGION "1203"
                                             "0a01",
                                      "0a0178"
                                      "12042a020a05",
                                      "0a0178"
                                      "12027a"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct t_buf span = {.at = NULL};
        struct t_buf kv = {.at = NULL};
        put_ids(&span);
        t_put_hex(&kv, bad[i]);
        t_put_message(&span, 9, &kv);
        struct t_buf request = request_of(NULL, &span, false);
        const int r = decode_request(&request, NULL, NULL, NULL);
        if (r != WEIR_EFORMAT && r != WEIR_ETRUNCATED)
            T_FAIL("%s gave %s", bad[i], weir_strerror(r));
        t_buf_free(&request);
    }
}

TEST(an_empty_payload_is_a_valid_request_without_spans)
{
    struct t_spans spans = {.kept = NULL};
    T_OK(t_decode(weir_decode_otlp_traces, NULL, 0, &spans, NULL, NULL));
    T_EQ_U64(spans.traces, 1);
    T_EQ_U64(spans.count, 0);
    t_spans_free(&spans);
}
