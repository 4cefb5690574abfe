/* SPDX-License-Identifier: Apache-2.0 */
/* dd_v1: numbers of strings, attributes by type, what stands behind the spans, refusals. */
#include "support.h"

#include <stdlib.h>
#include <string.h>

/* A payload whose header is { 7 env "prod" } (string 1) and which has one chunk, its members given;
 * or a whole payload, where chunk is NULL. */
static int decode_chunk(const char *chunk_hex, struct t_spans *spans, struct t_buf *ret_payload,
                        struct weir_where *ret_where)
{
    struct t_buf b = {.at = NULL};
    t_put_hex(&b, "82 07a470726f64 0b91");
    t_put_hex(&b, chunk_hex);
    *ret_payload = b;
    return t_decode(weir_decode_dd_v1, b.at, b.len, spans, NULL, ret_where);
}

/* A chunk of one span with an id and a start, and the members given as so many pairs. */
static int decode_span(unsigned pairs, const char *members_hex, struct t_spans *spans,
                       struct t_buf *ret_payload, struct weir_where *ret_where)
{
    char hex[4096];
    (void)snprintf(hex, sizeof hex, "82 0491 8%x 0402 06cf0de0b6b3a7640000 %s 06c410 %032x",
                   pairs + 2, members_hex, 7);
    return decode_chunk(hex, spans, ret_payload, ret_where);
}

TEST(the_payload_of_the_java_tracer_reads_as_its_makers_say)
{
    struct t_buf b = t_golden("sample.v1.hex");
    struct t_spans spans = {.kept = NULL};
    T_OK(t_decode(weir_decode_dd_v1, b.at, b.len, &spans, NULL, NULL));
    T_EQ_U64(spans.count, 2);
    T_EQ_U64(spans.traces, 1);
    const struct weir_span *const s = &spans.kept[0].span;
    T_EQ_U64(s->trace_id, 0x075bcd15);
    T_EQ_U64(s->trace_id_hi, 0);
    T_EQ_U64(s->span_id, 123);
    T_EQ_U64(s->parent_id, 0);
    T_EQ_I64(s->start_ns, INT64_C(1700000000000000000));
    T_EQ_I64(s->duration_ns, 3000000);
    T_TRUE(t_bytes_are(s->service, "smoke-test-java-app") && t_bytes_are(s->name, "netty.request"));
    T_TRUE(t_bytes_are(s->resource, "GET /hello") && t_bytes_are(s->type, "web"));
    T_EQ_U64(s->kind, WEIR_KIND_INTERNAL);
    T_EQ_U64(s->flags, WEIR_SPAN_DD);
    T_EQ_STR(t_slot(&spans.kept[0], WEIR_TAG_HTTP_STATUS), "200");
    T_EQ_STR(t_slot(&spans.kept[0], SLOT_COMPONENT), "netty");
    T_EQ_STR(t_slot(&spans.kept[0], WEIR_TAG_ENV), "-");
    T_EQ_STR(t_slot(&spans.kept[0], SLOT_VERSION), "-");
    const struct t_kept *const child = &spans.kept[1];
    T_EQ_U64(child->span.span_id, 456);
    T_EQ_U64(child->span.parent_id, 123);
    T_EQ_U64(child->span.trace_id, 0x075bcd15);
    T_TRUE(t_bytes_are(child->span.name, "WebController.hello"));
    T_EQ_STR(t_slot(child, WEIR_TAG_MEASURED), "1");
    T_EQ_STR(t_slot(child, SLOT_COMPONENT), "spring-webflux-controller");
    t_buf_free(&b);
    t_spans_free(&spans);
}

TEST(the_payload_of_the_go_tracer_reads_as_the_program_made_it)
{
    struct t_buf b = t_golden("dd-go-01.v1.hex");
    struct t_spans spans = {.kept = NULL};
    T_OK(t_decode(weir_decode_dd_v1, b.at, b.len, &spans, NULL, NULL));
    T_EQ_U64(spans.count, 30);
    T_EQ_U64(spans.traces, 10);
    T_EQ_U64(spans.errors, 1);
    for (size_t i = 0; i < 30; i++) {
        static const char *const names[] = {"web.request", "db.query", "internal.work"};
        static const enum weir_kind kinds[] = {WEIR_KIND_SERVER, WEIR_KIND_CLIENT, WEIR_KIND_NONE};
        const struct t_kept *const k = &spans.kept[i];
        const struct t_kept *const root = &spans.kept[i / 3 * 3];
        T_TRUE(t_bytes_are(k->span.name, names[i % 3]));
        T_TRUE(t_bytes_are(k->span.service, "probe-go"));
        T_EQ_U64(k->span.kind, kinds[i % 3]);
        T_EQ_U64(k->span.trace_id, root->span.span_id); /* its low half is the root's id */
        T_TRUE(k->span.trace_id_hi != 0);
        T_EQ_U64(k->span.parent_id, i % 3 ? root->span.span_id : 0);
        T_TRUE(k->span.duration_ns > 2000000 && k->span.duration_ns < INT64_C(1000000000));
        T_EQ_STR(t_slot(k, WEIR_TAG_ENV), "test");
        T_EQ_STR(t_slot(k, SLOT_VERSION), "1.2.3");
        T_EQ_STR(t_slot(k, WEIR_TAG_TOP_LEVEL), i % 3 ? "-" : "1");
        T_EQ_STR(t_slot(k, WEIR_TAG_HTTP_METHOD), i % 3 ? "-" : "GET");
        T_EQ_STR(t_slot(k, WEIR_TAG_HTTP_STATUS), i % 3 ? "-" : i == 27 ? "500" : "200");
        T_EQ_STR(t_slot(k, SLOT_PEER), i % 3 == 1 ? "db.example.test" : "-");
    }
    t_buf_free(&b);
    t_spans_free(&spans);
}

TEST(a_string_takes_the_next_number_where_it_first_stands)
{
    struct t_spans spans = {.kept = NULL};
    struct t_buf payload;
    /* 2 service "s", 3 name "n", then by number; resource 0 is the empty string. */
    T_OK(decode_span(4, "01a173 02a16e 0300 0a02", &spans, &payload, NULL));
    const struct weir_span *const s = &spans.kept[0].span;
    T_TRUE(t_bytes_are(s->service, "s") && t_bytes_are(s->name, "n"));
    T_TRUE(t_bytes_are(s->resource, "") && t_bytes_are(s->type, "s"));
    t_buf_free(&payload);
    t_spans_free(&spans);
    /* Numbers of every width; the same text twice takes two numbers; "" takes none; nil is "". */
    T_OK(decode_span(5, "01a173 02a173 18a0 03cc03 0ace00000003", &spans, &payload, NULL));
    T_TRUE(t_bytes_are(spans.kept[0].span.resource, "s"));
    t_buf_free(&payload);
    t_spans_free(&spans);
    T_OK(decode_span(4, "01c0 02a16e 03cf0000000000000002 0acd0002", &spans, &payload, NULL));
    T_TRUE(spans.kept[0].span.service.len == 0 && t_bytes_are(spans.kept[0].span.resource, "n"));
    t_buf_free(&payload);
    t_spans_free(&spans);
}

TEST(strings_inside_unknown_members_and_links_and_events_take_numbers_too)
{
    struct t_spans spans = {.kept = NULL};
    struct t_buf payload;
    /* 77 [{"a": ["b", bin, "c", 1]}]: 2, 3, 4; then name 3, resource 4. */
    T_OK(decode_span(3, "4d 91 81 a161 94 a162 c40161 a163 01 0203 0304", &spans, &payload, NULL));
    T_TRUE(t_bytes_are(spans.kept[0].span.name, "b"));
    T_TRUE(t_bytes_are(spans.kept[0].span.resource, "c"));
    t_buf_free(&payload);
    t_spans_free(&spans);
    /* links: state "x" (2), attribute "k" (3) = "v" (4); events: name "e" (5), k = [1.5, "w" (6)],
     * an unknown "u" (7). */
    T_OK(decode_span(6,
                     "0b91 85 01c41000000000000000000000000000000001 02cf8000000000000000 04a178"
                     "0501 0393 a16b 01 a176"
                     "0c92 83 0101 02a165 0393 03 06 94 03cb3ff8000000000000 01a177 81 09a175"
                     "0104 0205 0306 0a07",
                     &spans, &payload, NULL));
    T_TRUE(t_bytes_are(spans.kept[0].span.service, "v"));
    T_TRUE(t_bytes_are(spans.kept[0].span.name, "e"));
    T_TRUE(t_bytes_are(spans.kept[0].span.resource, "w"));
    T_TRUE(t_bytes_are(spans.kept[0].span.type, "u"));
    t_buf_free(&payload);
    t_spans_free(&spans);
}

/* A whole payload in hex. */
static int decode_payload(const char *hex, struct t_spans *spans, uint8_t **ret_bytes)
{
    return t_decode_hex(weir_decode_dd_v1, hex, spans, ret_bytes);
}

TEST(a_payload_may_begin_with_its_strings)
{
    struct t_spans spans = {.kept = NULL};
    uint8_t *bytes = NULL;
    T_OK(decode_payload("82 01 93 a161 a0 a162 0b91 81 0491 82 0101 0202", &spans, &bytes));
    T_TRUE(t_bytes_are(spans.kept[0].span.service, "a"));
    T_TRUE(t_bytes_are(spans.kept[0].span.name, "b"));
    free(bytes);
    t_spans_free(&spans);
    T_ERR(decode_payload("82 07a161 01 91 a162", NULL, &bytes), WEIR_EFORMAT);
    free(bytes);
}

TEST(attributes_fill_the_slots_that_they_fill_in_v04)
{
    static const struct {
        const char *attributes; /* of two attributes */
        unsigned slot;
        const char *value;
    } rows[] = {
        {"b0687474702e7374617475735f636f6465 01 a3323030 a178 03 01", WEIR_TAG_HTTP_STATUS, "200"},
        {"b0687474702e7374617475735f636f6465 04 cd01f4 a178 03 01", WEIR_TAG_HTTP_STATUS, "500"},
        {"b0687474702e7374617475735f636f6465 03 cb407f400000000000 a178 03 01",
         WEIR_TAG_HTTP_STATUS, "500"},
        /* text stands before a number, in either order */
        {"b0687474702e7374617475735f636f6465 01 a3323030 02 04 05", WEIR_TAG_HTTP_STATUS, "200"},
        {"b0687474702e7374617475735f636f6465 04 05 02 01 a3323030", WEIR_TAG_HTTP_STATUS, "200"},
        {"ac5f64642e6d65617375726564 03 cb3ff0000000000000 a178 05 c40161", WEIR_TAG_MEASURED, "1"},
        /* a boolean is the word that v0.4 has */
        {"a6726567696f6e 02 c3 a178 02 c2", SLOT_DIM, "true"},
        {"a6726567696f6e 02 c2 a178 02 c3", SLOT_DIM, "false"},
        {"a6726567696f6e 02 c0 a178 01 c0", SLOT_DIM, "-"},
        {"a6726567696f6e 05 c403616263 a178 03 c0", SLOT_DIM, "-"},
        {"a6726567696f6e 06 92 01 a161 a178 07 93 a16b 01 a176", SLOT_DIM, "-"},
        {"a3656e76 01 a474657374 a178 04 d0ff", WEIR_TAG_ENV, "test"},
        {"a3656e76 03 01 a178 04 d0ff", WEIR_TAG_ENV, "prod"}, /* a number is no env */
        {"a6726567696f6e 01 a161 02 01 a162", SLOT_DIM, "b"},  /* the last wins */
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct t_spans spans = {.kept = NULL};
        struct t_buf payload;
        char hex[256];
        (void)snprintf(hex, sizeof hex, "09 96 %s", rows[i].attributes);
        T_OK(decode_span(1, hex, &spans, &payload, NULL));
        T_EQ_STR(t_slot(&spans.kept[0], rows[i].slot), rows[i].value);
        t_buf_free(&payload);
        t_spans_free(&spans);
    }
}

TEST(members_are_the_tags_that_they_are_in_v04)
{
    static const struct {
        unsigned pairs;
        const char *members;
        unsigned slot;
        const char *value;
        unsigned kind;
    } rows[] = {
        {1, "0da474657374", WEIR_TAG_ENV, "test", 0},
        {1, "0ea331", SLOT_VERSION, NULL, 0}, /* cut: refused */
        {1, "0ea3312e30", SLOT_VERSION, "1.0", 0},
        {1, "0e00", SLOT_VERSION, "-", 0},
        {1, "0fa36e6574", SLOT_COMPONENT, "net", 0},
        {1, "1001", WEIR_TAG_KIND, "internal", WEIR_KIND_INTERNAL},
        {1, "1002", WEIR_TAG_KIND, "server", WEIR_KIND_SERVER},
        {1, "1003", WEIR_TAG_KIND, "client", WEIR_KIND_CLIENT},
        {1, "1004", WEIR_TAG_KIND, "producer", WEIR_KIND_PRODUCER},
        {1, "1005", WEIR_TAG_KIND, "consumer", WEIR_KIND_CONSUMER},
        {1, "1000", WEIR_TAG_KIND, "-", WEIR_KIND_NONE},
        {1, "1006", WEIR_TAG_KIND, "-", WEIR_KIND_NONE},
        {1, "10cfffffffffffffffff", WEIR_TAG_KIND, "-", WEIR_KIND_NONE},
        /* as an attribute, alone and with the member: what stands last */
        {1, "0993 a97370616e2e6b696e64 01 a6434c49454e54", WEIR_TAG_KIND, "CLIENT",
         WEIR_KIND_CLIENT},
        {2, "0993 a97370616e2e6b696e64 01 a6636c69656e74 1002", WEIR_TAG_KIND, "server",
         WEIR_KIND_SERVER},
        {2, "1002 0993 a97370616e2e6b696e64 01 a6636c69656e74", WEIR_TAG_KIND, "client",
         WEIR_KIND_CLIENT},
        {2, "1002 0993 a97370616e2e6b696e64 01 a36f6464", WEIR_TAG_KIND, "odd", WEIR_KIND_NONE},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct t_spans spans = {.kept = NULL};
        struct t_buf payload;
        const int r = decode_span(rows[i].pairs, rows[i].members, &spans, &payload, NULL);
        if (rows[i].value) {
            T_OK(r);
            T_EQ_STR(t_slot(&spans.kept[0], rows[i].slot), rows[i].value);
            T_EQ_U64(spans.kept[0].span.kind, rows[i].kind);
        } else {
            T_TRUE(r != WEIR_OK);
        }
        t_buf_free(&payload);
        t_spans_free(&spans);
    }
}

TEST(env_of_the_payload_and_origin_of_the_chunk_are_for_spans_without_their_own)
{
    /* Two spans, the first with env "e" and origin "o"; members in the usual and in other orders.
     */
    static const char *const payloads[] = {
        "82 07a470726f64 0b91 83 02a7737974682d6f6e 0492"
        " 82 0da165 0993 aa5f64642e6f726967696e 01 a16f 80 06c41000000000000000010000000000000002",
        "82 07a470726f64 0b91 83 0492 82 0da165 0993 aa5f64642e6f726967696e 01 a16f 80"
        " 02a7737974682d6f6e 06c41000000000000000010000000000000002",
        "82 0b91 83 06c41000000000000000010000000000000002 0492 82 0da165"
        " 0993 aa5f64642e6f726967696e 01 a16f 80 02a7737974682d6f6e 07a470726f64",
    };
    for (size_t i = 0; i < sizeof payloads / sizeof *payloads; i++) {
        struct t_spans spans = {.kept = NULL};
        uint8_t *bytes = NULL;
        T_OK(decode_payload(payloads[i], &spans, &bytes));
        T_EQ_U64(spans.count, 2);
        T_EQ_U64(spans.traces, 1);
        T_EQ_STR(t_slot(&spans.kept[0], WEIR_TAG_ENV), "e");
        T_EQ_STR(t_slot(&spans.kept[0], WEIR_TAG_ORIGIN), "o");
        T_EQ_STR(t_slot(&spans.kept[1], WEIR_TAG_ENV), "prod");
        T_EQ_STR(t_slot(&spans.kept[1], WEIR_TAG_ORIGIN), "syth-on");
        for (size_t k = 0; k < 2; k++) {
            T_EQ_U64(spans.kept[k].span.trace_id_hi, 1);
            T_EQ_U64(spans.kept[k].span.trace_id, 2);
        }
        free(bytes);
        t_spans_free(&spans);
    }
}

/* A chunk of n spans, each with a string of its own, its name the service of the one before. */
static void put_long_chunk(struct t_buf *b, unsigned n)
{
    char hex[128];
    (void)snprintf(hex, sizeof hex, "82 04dc%04x", n);
    t_put_hex(b, hex);
    for (unsigned i = 0; i < n; i++) {
        (void)snprintf(hex, sizeof hex, "84 01a4%02x%02x%02x%02x 02cd%04x 04%02x 07cd%04x",
                       'a' + i % 26, 'a' + i / 26, 'x', 'y', i + 1, 1 + i % 100, i);
        t_put_hex(b, hex);
    }
    t_put_hex(b, "06c410 00000000000000090000000000000008");
}

TEST(a_chunk_longer_than_what_can_wait_is_read_whole_and_in_order)
{
    static const unsigned lengths[] = {0, 1, 31, 32, 33, 34, 500};
    for (size_t l = 0; l < sizeof lengths / sizeof *lengths; l++) {
        struct t_buf b = {.at = NULL};
        struct t_spans spans = {.kept = NULL};
        t_put_hex(&b, "82 07a470726f64 0b92");
        put_long_chunk(&b, lengths[l]);
        t_put_hex(&b, "82 0491 81 0101 06c410 00000000000000000000000000000001");
        T_OK(t_decode(weir_decode_dd_v1, b.at, b.len, &spans, NULL, NULL));
        T_EQ_U64(spans.count, lengths[l] + 1);
        T_EQ_U64(spans.traces, 2);
        for (unsigned i = 0; i < lengths[l]; i++) {
            const struct t_kept *const k = &spans.kept[i];
            T_EQ_I64(k->span.duration_ns, i);
            T_EQ_U64(k->span.trace_id_hi, 9);
            T_EQ_U64(k->span.trace_id, 8);
            T_EQ_U64(k->span.service.len, 4);
            if (i > 0)
                T_EQ_BYTES(k->span.name.ptr, k->span.name.len, spans.kept[i - 1].span.service.ptr,
                           4);
            T_EQ_STR(t_slot(k, WEIR_TAG_ENV), "prod");
        }
        T_TRUE(t_bytes_are(spans.kept[lengths[l]].span.service, "prod"));
        t_buf_free(&b);
        t_spans_free(&spans);
    }
}

TEST(odd_spans_are_refused_with_their_reason)
{
    static const struct {
        unsigned pairs;
        const char *members;
        const char *reason;
    } rows[] = {
        {1, "0102", "string number out of range"}, /* the next one, not yet there */
        {1, "017f", "string number out of range"},
        {1, "01ccff", "string number out of range"},
        {1, "01cfffffffffffffffff", "string number out of range"},
        {1, "01ff", "not a string, nor the number of one"},
        {1, "01c3", "not a string, nor the number of one"},
        {1, "01c40161", "not a string, nor the number of one"},
        {1, "0190", "not a string, nor the number of one"},
        {1, "04d0ff", "not an unsigned integer"},
        {1, "05a131", "not an unsigned integer"},
        {1, "06cfffffffffffffffff", NULL},
        {1, "0801", "not a boolean"},
        {1, "0980", "not an array"},
        {1, "0991 01", "attributes not in threes"},
        {1, "0992 0101", "attributes not in threes"},
        {1, "0993 05 01 01", "string number out of range"},
        {1, "0993 01 01 05", "string number out of range"},
        {1, "0993 01 00 01", "an attribute of unknown type"},
        {1, "0993 01 08 01", "an attribute of unknown type"},
        {1, "0993 01 cd0101 01", "an attribute of unknown type"},
        {1, "0993 01 a161 01", "not an unsigned integer"},
        {1, "0993 01 02 01", "not a boolean"},
        {1, "0993 01 03 a161", "a metric that is not a number"},
        {1, "0993 01 05 a161", "not bytes"},
        {1, "0993 01 06 91 01", "an array of values not in pairs"},
        {1, "0993 01 06 92 01 09", "string number out of range"},
        {1, "0993 01 07 92 01 01", "attributes not in threes"},
        {1, "0b91 81 0105", "not bytes"},
        {1, "0b91 81 0493", "not a string, nor the number of one"},
        {1, "0b91 81 0409", "string number out of range"},
        {1, "0b91 81 0391 01", "attributes not in threes"},
        {1, "0b91 01", "not a map"},
        {1, "0c91 81 0209", "string number out of range"},
        {1, "0c91 81 01d0ff", "not an unsigned integer"},
        {1, "0c81", NULL},
        {1, "1090", "not an unsigned integer"},
        {1, "a101 01", "not an unsigned integer"}, /* a key that is text */
        {1, "ff01", "not an unsigned integer"},
        {1, "4dc1", NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct t_buf payload;
        struct weir_where where;
        const int r = decode_span(rows[i].pairs, rows[i].members, NULL, &payload, &where);
        if (r != WEIR_EFORMAT || (rows[i].reason && strcmp(where.reason, rows[i].reason) != 0))
            T_FAIL("%s: %d %s", rows[i].members, r, where.reason ? where.reason : "accepted");
        t_buf_free(&payload);
    }
}

TEST(odd_chunks_and_payloads_are_refused)
{
    static const struct {
        const char *payload;
        const char *reason;
    } rows[] = {
        {"c0", "a payload that is nil"},
        {"90", "not a map"},
        {"81 0b80", "not an array"},
        {"82 0b90 0b90", "chunks twice"},
        {"81 0b91 c0", "a chunk that is nil"},
        {"81 0b91 90", "not a map"},
        {"81 0b91 82 0490 0490", "spans of a chunk twice"},
        {"81 0b91 81 0491 c0", "a span that is nil"},
        {"81 0b91 81 0491 90", "not a map"},
        {"81 0b91 81 06c40f000000000000000000000000000000", "a trace id of other than 16 bytes"},
        {"81 0b91 81 06c400", "a trace id of other than 16 bytes"},
        {"81 0b91 81 0601", "not bytes"},
        {"81 0b91 81 01a131", "not an integer"},
        {"81 0b91 81 0201", "string number out of range"},
        {"81 0b91 81 0391 00", "attributes not in threes"},
        {"81 0b91 81 0501", "not a boolean"},
        {"81 0b91 81 07d0ff", "not an unsigned integer"},
        {"81 0701", "string number out of range"},
        {"81 0a91 00", "attributes not in threes"},
        {"81 0101", "not an array"},
        {"80 00", "bytes after the payload"},
        {"82 0b91 81 0491 81 0101 07a161", "string number out of range"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct weir_where where = {.reason = NULL};
        struct t_buf b = {.at = NULL};
        t_put_hex(&b, rows[i].payload);
        const int r = t_decode(weir_decode_dd_v1, b.at, b.len, NULL, NULL, &where);
        if (r != WEIR_EFORMAT || strcmp(where.reason, rows[i].reason) != 0)
            T_FAIL("%s: %d %s", rows[i].payload, r, where.reason ? where.reason : "accepted");
        t_buf_free(&b);
    }
}

TEST(absent_parts_are_empty)
{
    static const struct {
        const char *payload;
        size_t traces;
        size_t spans;
    } rows[] = {
        {"80", 0, 0},
        {"81 0b90", 0, 0},
        {"81 0bc0", 0, 0},
        {"81 0b92 80 80", 2, 0},
        {"81 0b91 83 0490 06c0 01c0", 1, 0},
        {"81 0b91 81 0491 80", 1, 1},
        {"81 0b91 81 0491 86 01c0 04c0 08c0 09c0 0bc0 0cc0", 1, 1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct t_spans spans = {.kept = NULL};
        uint8_t *bytes = NULL;
        T_OK(decode_payload(rows[i].payload, &spans, &bytes));
        T_EQ_U64(spans.traces, rows[i].traces);
        T_EQ_U64(spans.count, rows[i].spans);
        free(bytes);
        t_spans_free(&spans);
    }
}

/* An attribute, or an unknown member, whose value nests so deep. */
static int decode_nested(const char *open_hex, unsigned depth)
{
    struct t_buf b = {.at = NULL};
    t_put_hex(&b, "81 0b91 81 0491 81");
    t_put_hex(&b, open_hex);
    for (unsigned i = 1; i < depth; i++)
        t_put_hex(&b, strncmp(open_hex, "09", 2) == 0 ? "92 06" : "91");
    t_put_hex(&b, "90");
    struct weir_where where = {.reason = NULL};
    const int r = t_decode(weir_decode_dd_v1, b.at, b.len, NULL, NULL, &where);
    if (r != WEIR_OK)
        T_EQ_STR(where.reason, "nested too deep");
    t_buf_free(&b);
    return r;
}

TEST(values_may_nest_32_containers_deep_in_all)
{
    /* payload, chunks, chunk, spans, span, attributes: 26 arrays are left */
    T_OK(decode_nested("09 93 a161 06", 26));
    T_ERR(decode_nested("09 93 a161 06", 27), WEIR_EFORMAT);
    T_ERR(decode_nested("09 93 a161 06", 10000), WEIR_EFORMAT);
    T_OK(decode_nested("4d", 27));
    T_ERR(decode_nested("4d", 28), WEIR_EFORMAT);
    T_ERR(decode_nested("4d", 10000), WEIR_EFORMAT);
}

static int stop_at_third(void *ctx, const struct weir_span *span)
{
    (void)span;
    return ++*(unsigned *)ctx == 3 ? WEIR_EBUSY : WEIR_OK;
}

static int stop_at_fortieth(void *ctx, const struct weir_span *span)
{
    (void)span;
    return ++*(unsigned *)ctx == 40 ? WEIR_EBUSY : WEIR_OK;
}

static int no_end(void *ctx)
{
    (void)ctx;
    return WEIR_OK;
}

TEST(what_the_sink_says_ends_the_walk)
{
    static const struct {
        int (*span)(void *ctx, const struct weir_span *span);
        unsigned calls;
    } rows[] = {{stop_at_third, 3}, {stop_at_fortieth, 40}};
    struct weir_tags *const tags = t_tags();
    struct weir_decoder *decoder = NULL;
    struct t_buf b = {.at = NULL};
    T_OK(weir_decoder_new(NULL, tags, &decoder));
    t_put_hex(&b, "81 0b91");
    put_long_chunk(&b, 50);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        unsigned calls = 0;
        struct weir_where where = {.offset = 77};
        const struct weir_span_sink sink = {
            .ctx = &calls, .span = rows[i].span, .trace_end = no_end};
        T_ERR(weir_decode_dd_v1(decoder, b.at, b.len, &sink, NULL, &where), WEIR_EBUSY);
        T_EQ_U64(calls, rows[i].calls);
        T_EQ_U64(where.offset, 77);
    }
    t_buf_free(&b);
    weir_decoder_free(decoder);
    weir_tags_free(tags);
}

/* A payload of n strings of two bytes and no chunks. */
static int decode_strings(struct weir_decoder *decoder, uint32_t n, struct weir_where *ret_where)
{
    struct t_buf b = {.at = NULL};
    const uint8_t head[] = {
        0x81, 0x01, 0xdd, (uint8_t)(n >> 24), (uint8_t)(n >> 16), (uint8_t)(n >> 8), (uint8_t)n};
    t_put(&b, head, sizeof head);
    for (uint32_t i = 0; i < n; i++)
        t_put(&b, "\xa1z", 2);
    const int r = weir_decode_dd_v1(decoder, b.at, b.len, NULL, NULL, ret_where);
    t_buf_free(&b);
    return r;
}

TEST(the_table_of_strings_is_bounded_and_a_large_one_is_given_back)
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
    T_OK(decode_strings(decoder, (1u << 20) - 1, &where)); /* and the empty one */
    T_EQ_I64(h.live, bare);
    T_ERR(decode_strings(decoder, 1u << 20, &where), WEIR_EFORMAT);
    T_EQ_STR(where.reason, "more than 2^20 strings");
    T_EQ_I64(h.live, bare);
    weir_decoder_free(decoder);
    T_EQ_I64(h.live, 0);
    weir_tags_free(tags);
}
