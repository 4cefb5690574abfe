/* SPDX-License-Identifier: Apache-2.0 */
/* receive: routes, answers, headers, counts; payloads larger than the ring. */
#include "world.h"

#include <openssl/sha.h>
#include <stdlib.h>
#include <string.h>

/* PUT and POST of /v0.4/traces, one trace of one span, as an older tracer writes it. */
static const char one_span[] =
    "91918ca773657276696365a173a46e616d65a16ea87265736f75726365a172a874726163655f696409a77370616e"
    "5f696402a9706172656e745f696400a57374617274cf0de0b6b3a7640000a86475726174696f6e0aa474797065a3"
    "776562a56572726f7200a76d65747269637381ad5f64642e746f705f6c6576656ccb3ff0000000000000a46d6574"
    "6181a161a162";

static size_t one_span_bytes(uint8_t *dst, size_t cap)
{
    return t_unhex(one_span, dst, cap);
}

static struct http_answer post_one(struct http_client *c, const char *path, const char *fields)
{
    uint8_t body[256];
    const size_t n = one_span_bytes(body, sizeof body);
    return world_post(c, path, fields, body, n);
}

TEST(each_traces_route_counts_and_answers_in_its_way)
{
    struct world *const w = world_new(0);
    struct http_client c = world_datadog(w);
    struct http_answer a = post_one(&c, "/v0.3/traces", MSGPACK);
    T_EQ_U64(a.status, 200);
    T_EQ_STR(a.body, "OK\n");
    a = post_one(&c, "/v0.4/traces?x=1", "content-TYPE: Application/MsgPack; a=b\r\n");
    T_EQ_U64(a.status, 200);
    T_EQ_STR(a.body, "{\"rate_by_service\":{\"service:,env:\":1}}");
    T_EQ_STR(http_field(&a, "Content-Type"), "application/json");
    T_TRUE(!http_field(&a, "Datadog-Rates-Payload-Version"));
    uint8_t v05[64];
    const size_t n = t_unhex("9294a173a16ea172a0 91919c 00 01 02 01 02 00 cf0de0b6b3a7640000 0a 00 "
                             "80 80 03",
                             v05, sizeof v05);
    a = world_post(&c, "/v0.5/traces", "", v05, n); /* without a type it is taken for msgpack */
    T_EQ_U64(a.status, 200);
    T_EQ_STR(a.body, "{\"rate_by_service\":{\"service:,env:\":1}}");
    uint8_t body[128];
    const size_t v07_bytes =
        t_unhex("81 a66368756e6b73 91 81 a57370616e73 91 84 a773657276696365 a173 "
                "a874726163655f6964 01 a77370616e5f6964 02 a57374617274 "
                "cf0de0b6b3a7640000",
                body, sizeof body);
    a = world_post(&c, "/v0.7/traces", MSGPACK "X-Datadog-Trace-Count: 1\r\n", body, v07_bytes);
    T_EQ_U64(a.status, 200);
    T_EQ_STR(a.body, "{\"rate_by_service\":{\"service:,env:\":1}}");
    const size_t v1_bytes = t_unhex("81 0b91 82 0491 83 01a173 0402 06cf0de0b6b3a7640000 "
                                    "06c410 00000000000000000000000000000001",
                                    body, sizeof body);
    a = world_post(&c, "/v1.0/traces", MSGPACK "X-Datadog-Trace-Count: 1\r\n", body, v1_bytes);
    T_EQ_U64(a.status, 200);
    T_EQ_STR(a.body, "{\"rate_by_service\":{\"service:,env:\":1}}");
    T_EQ_U64(world_seal(w).hits, 5);
    const struct receive_counts counts = world_counts(w);
    T_EQ_U64(counts.routes[RECEIVE_DD_V03].payloads, 1);
    T_EQ_U64(counts.routes[RECEIVE_DD_V04].spans, 1);
    T_EQ_U64(counts.routes[RECEIVE_DD_V05].spans, 1);
    T_EQ_U64(counts.routes[RECEIVE_DD_V05].bytes, n);
    T_EQ_U64(counts.routes[RECEIVE_DD_V07].spans, 1);
    T_EQ_U64(counts.routes[RECEIVE_DD_V07].bytes, v07_bytes);
    T_EQ_U64(counts.routes[RECEIVE_DD_V1].spans, 1);
    T_EQ_U64(counts.routes[RECEIVE_DD_V1].bytes, v1_bytes);
    T_EQ_U64(counts.count_mismatches, 0);
    http_close(&c);
    world_free(w);
}

TEST(rates_are_not_sent_again_to_who_has_them)
{
    struct world *const w = world_new(0);
    struct http_client c = world_datadog(w);
    struct http_answer a =
        post_one(&c, "/v0.4/traces", MSGPACK "Datadog-Rates-Payload-Version: old\r\n");
    T_EQ_STR(a.body, "{\"rate_by_service\":{\"service:,env:\":1}}");
    char field[128];
    (void)snprintf(field, sizeof field, MSGPACK "Datadog-Rates-Payload-Version: %s\r\n",
                   http_field(&a, "Datadog-Rates-Payload-Version"));
    a = post_one(&c, "/v0.4/traces", field);
    T_EQ_STR(a.body, "{}");
    T_TRUE(http_field(&a, "Datadog-Rates-Payload-Version") != NULL);
    http_close(&c);
    world_free(w);
}

TEST(info_lists_what_is_served_and_every_other_answer_carries_its_hash)
{
    struct world *const w = world_new(0);
    struct http_client c = world_datadog(w);
    const struct http_answer info = http_ask(&c, "GET /info HTTP/1.1\r\nHost: a\r\n\r\n");
    T_EQ_U64(info.status, 200);
    T_TRUE(strncmp(http_field(&info, "Content-Type"), "text/plain", 10) == 0);
    T_TRUE(!http_field(&info, "Datadog-Agent-Version"));
    T_TRUE(!http_field(&info, "Datadog-Agent-State"));
    T_EQ_STR(info.body,
             "{\"version\":\"7.65.0\",\"weir_version\":\"" WEIR_VERSION_STRING
             "\",\"git_commit\":\"\",\"endpoints\":[\"/v0.3/traces\",\"/v0.4/traces\","
             "\"/v0.5/traces\",\"/v0.7/traces\",\"/v1.0/"
             "traces\"],\"feature_flags\":[],\"client_drop_p0s\":false,"
             "\"span_meta_structs\":false,\"long_running_spans\":false,\"span_events\":false,"
             "\"evp_proxy_allowed_headers\":[],\"config\":{\"max_request_bytes\":26214400,"
             "\"receiver_port\":8126,\"receiver_socket\":\"/run/a \\\"b\\\".socket\"},"
             "\"peer_tags\":[],\"span_kinds_stats_computed\":[]}");
    unsigned char digest[SHA256_DIGEST_LENGTH];
    (void)SHA256((const unsigned char *)info.body, info.body_bytes, digest);
    char hex[2 * sizeof digest + 1];
    for (size_t i = 0; i < sizeof digest; i++)
        (void)snprintf(hex + 2 * i, 3, "%02x", digest[i]);
    const char *const asks[] = {
        "GET /no HTTP/1.1\r\nHost: a\r\n\r\n", "GET /v0.4/traces HTTP/1.1\r\nHost: a\r\n\r\n",
        "POST /v0.7/config HTTP/1.1\r\nHost: a\r\n\r\n",
        "POST /v0.4/traces HTTP/1.1\r\nHost: a\r\n\r\n", "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n"};
    for (size_t i = 0; i < sizeof asks / sizeof *asks; i++) {
        const struct http_answer a = http_ask(&c, asks[i]);
        T_TRUE(a.status >= 200);
        T_EQ_STR(http_field(&a, "Datadog-Agent-State"), hex);
        T_EQ_STR(http_field(&a, "Datadog-Agent-Version"), "7.65.0");
    }
    http_close(&c);
    world_free(w);
}

TEST(calls_that_are_not_served_are_drained_answered_and_counted)
{
    static const struct {
        const char *path;
        enum receive_route route;
        int status;
    } calls[] = {{"/telemetry/proxy/api/v2/apmtelemetry", RECEIVE_DD_TELEMETRY, 202},
                 {"/v0.7/config", RECEIVE_DD_CONFIG, 200},
                 {"/evp_proxy/v4/api/v2/citestcycle", RECEIVE_DD_EVP_PROXY, 200},
                 {"/profiling/v1/input", RECEIVE_DD_PROFILING, 200},
                 {"/dogstatsd/v1/proxy", RECEIVE_DD_DOGSTATSD_V1, 200},
                 {"/dogstatsd/v2/proxy", RECEIVE_DD_DOGSTATSD_V2, 200},
                 {"/v0.1/pipeline_stats", RECEIVE_DD_PIPELINE_STATS, 200},
                 {"/debugger/v1/input", RECEIVE_DD_DEBUGGER, 200},
                 {"/symdb/v1/input", RECEIVE_DD_SYMDB, 200},
                 {"/tracer_flare/v1", RECEIVE_DD_TRACER_FLARE, 200}};
    struct world *const w = world_new(0);
    struct http_client c = world_datadog(w);
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        const struct http_answer a =
            world_post(&c, calls[i].path,
                       "Content-Type: application/json\r\nContent-Encoding: br\r\n", "abc", 3);
        T_EQ_U64(a.status, calls[i].status);
        T_EQ_STR(a.body, "{}");
        T_EQ_U64(world_counts(w).routes[calls[i].route].drained, 1);
    }
    T_EQ_U64(world_post(&c, "/v0.6/stats", MSGPACK, "\x80", 1).status, 404);
    T_EQ_U64(world_post(&c, "/v2.0/traces", MSGPACK, "\x80", 1).status, 404);
    T_EQ_U64(world_post(&c, "/telemetry/prox", "", "x", 1).status, 404);
    T_EQ_U64(world_counts(w).refused[RECEIVE_REFUSED_UNKNOWN], 3);
    http_close(&c);
    world_free(w);
}

/* Cases K04, K06, K07, K08 and the headers of wire §2.3. */
TEST(what_stock_tracers_do_is_taken)
{
    struct world *const w = world_new(0);
    struct http_client c = world_datadog(w);
    char text[1024];
    const int n = snprintf(text, sizeof text,
                           "GET /v0.7/config HTTP/1.1\r\nHost: a\r\nContent-Length: 447\r\n\r\n");
    memset(text + n, '{', 447);
    http_send(&c, text, (size_t)n + 447);
    T_EQ_U64(http_read(&c, false).status, 200); /* K04 */
    T_EQ_U64(post_one(&c, "/v0.4/traces", MSGPACK "Datadog-Client-Computed-Stats:\r\n").status,
             200); /* K06 */
    T_EQ_U64(world_seal(w).hits, 1);

    http_send_text(&c, "POST /telemetry/proxy/api/v2/apmtelemetry HTTP/1.1\r\nHost: a\r\n"
                       "Transfer-Encoding: chunked\r\n\r\n14ff0\r\n");
    char *const body = calloc(1, 0x14ff0);
    http_send(&c, body, 0x14ff0);
    free(body);
    http_send_text(&c, "\r\n0\r\n\r\n");
    T_EQ_U64(http_read(&c, false).status, 202); /* K07 */

    http_send_text(&c, "PUT /v0.4/traces HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\n");
    http_send(&c, "\xdc\0\0", 3);
    const struct http_answer a = http_read(&c, false);
    T_EQ_U64(a.status, 200); /* K08 */
    T_TRUE(strstr(a.body, "rate_by_service") != NULL);

    T_EQ_U64(post_one(&c, "/v0.4/traces", MSGPACK "X-Datadog-Trace-Count: 1\r\n").status, 200);
    T_EQ_U64(world_counts(w).count_mismatches, 0);
    T_EQ_U64(post_one(&c, "/v0.4/traces", MSGPACK "X-Datadog-Trace-Count: 7\r\n").status, 200);
    T_EQ_U64(world_counts(w).count_mismatches, 1);
    T_EQ_U64(world_seal(w).hits, 2);
    http_close(&c);
    world_free(w);
}

/* Top level by the rule of a trace (no flag in the span), unless the client says it has marked. */
TEST(computed_top_level_is_a_boolean_header)
{
    static const struct {
        const char *field;
        uint64_t top_level;
    } cases[] = {{"", 1},
                 {"Datadog-Client-Computed-Top-Level: yes\r\n", 0},
                 {"Datadog-Client-Computed-Top-Level: 1\r\n", 0},
                 {"Datadog-Client-Computed-Top-Level: false\r\n", 1},
                 {"Datadog-Client-Computed-Top-Level: 0\r\n", 1},
                 {"Datadog-Client-Computed-Top-Level:\r\n", 1}};
    struct world *const w = world_new(0);
    struct http_client c = world_datadog(w);
    struct pack p = pack_traces(1, 1, "r");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        T_EQ_U64(world_post(&c, "/v0.4/traces", cases[i].field, p.bytes, p.len).status, 200);
        const struct world_rows rows = world_seal(w);
        T_EQ_U64(rows.hits, 1);
        T_EQ_U64(rows.top_level, cases[i].top_level);
    }
    free(p.bytes);
    http_close(&c);
    world_free(w);
}

TEST(a_broken_payload_counts_nothing_and_the_answer_says_where_it_broke)
{
    struct world *const w = world_new(0);
    struct http_client c = world_datadog(w);
    struct pack p = pack_traces(3, 2, "r");
    p.bytes[p.len - 9] = 0xc1; /* the type of the last duration */
    const struct http_answer a = world_post(&c, "/v0.4/traces", MSGPACK, p.bytes, p.len);
    T_EQ_U64(a.status, 400);
    char want[128];
    (void)snprintf(want, sizeof want,
                   "weir: cannot decode /v0.4/traces payload at byte %zu: ", p.len - 9);
    T_TRUE(strncmp(a.body, want, strlen(want)) == 0 && strlen(a.body) > strlen(want) + 3);
    T_EQ_U64(world_health(w).received, 0);
    T_EQ_U64(world_counts(w).refused[RECEIVE_REFUSED_DECODE], 1);
    T_EQ_U64(world_counts(w).routes[RECEIVE_DD_V04].payloads, 0);
    const struct http_answer b =
        world_post(&c, "/v1.0/traces", MSGPACK, "\x81\x0b\x91\x81\x04\x91\x81\x01\x07", 9);
    T_EQ_U64(b.status, 400);
    T_EQ_STR(b.body, "weir: cannot decode /v1.0/traces payload at byte 8: string number out of "
                     "range\n");
    T_EQ_U64(world_counts(w).refused[RECEIVE_REFUSED_DECODE], 2);
    T_EQ_U64(post_one(&c, "/v0.4/traces", MSGPACK).status, 200);
    T_EQ_U64(world_seal(w).hits, 1);
    free(p.bytes);
    http_close(&c);
    world_free(w);
}

TEST(types_methods_and_other_sites_are_refused_by_reason)
{
    struct world *const w = world_new(0);
    struct http_client c = world_datadog(w);
    T_EQ_U64(post_one(&c, "/v0.4/traces", "Content-Type: application/json\r\n").status, 415);
    T_EQ_U64(post_one(&c, "/v1.0/traces", "Content-Type: application/x-protobuf\r\n").status, 415);
    T_EQ_U64(post_one(&c, "/v0.4/traces", "Sec-Fetch-Site: cross-site\r\n").status, 403);
    T_EQ_U64(post_one(&c, "/v0.4/traces", MSGPACK "Content-Encoding: zstd\r\n").status, 415);
    const struct http_answer a = post_one(&c, "/info", "");
    T_EQ_U64(a.status, 405);
    T_EQ_STR(http_field(&a, "Allow"), "GET, HEAD, OPTIONS");
    const struct http_answer b = http_ask(&c, "GET /v0.5/traces HTTP/1.1\r\nHost: a\r\n\r\n");
    T_EQ_U64(b.status, 405);
    T_EQ_STR(http_field(&b, "Allow"), "POST, PUT, OPTIONS");
    T_EQ_U64(http_ask(&c, "BREW /info HTTP/1.1\r\nHost: a\r\n\r\n").status, 501);
    const struct receive_counts counts = world_counts(w);
    T_EQ_U64(counts.refused[RECEIVE_REFUSED_TYPE], 2);
    T_EQ_U64(counts.refused[RECEIVE_REFUSED_CROSS_SITE], 1);
    T_EQ_U64(counts.refused[RECEIVE_REFUSED_ENCODING], 1);
    T_EQ_U64(counts.refused[RECEIVE_REFUSED_METHOD], 3);
    T_EQ_U64(world_health(w).received, 0);
    http_close(&c);
    world_free(w);
}

TEST(a_body_past_25_mib_is_413_and_counted)
{
    struct world *const w = world_new(0);
    struct http_client c = world_datadog(w);
    const struct http_answer a =
        http_ask(&c, "POST /v0.4/traces HTTP/1.1\r\nHost: a\r\nContent-Length: 26214401\r\n\r\n");
    T_EQ_U64(a.status, 413);
    T_EQ_STR(http_field(&a, "Datadog-Agent-Version"), "7.65.0");
    T_EQ_U64(world_counts(w).refused[RECEIVE_REFUSED_TOO_LARGE], 1);
    http_close(&c);
    world_free(w);
}

/* Payloads that do not fit the ring of 4 KiB. */

TEST(a_payload_larger_than_the_ring_is_counted_whole)
{
    struct world *const w = world_new(4096);
    struct http_client c = world_datadog(w);
    struct pack p = pack_traces(500, 3, "GET /items");
    const struct http_answer a = world_post(&c, "/v0.4/traces", MSGPACK, p.bytes, p.len);
    T_EQ_U64(a.status, 200);
    T_EQ_U64(world_counts(w).large_payloads, 1);
    T_EQ_U64(world_counts(w).dropped_spans, 0);
    T_EQ_U64(world_counts(w).routes[RECEIVE_DD_V04].spans, 1500);
    const struct world_rows rows = world_seal(w);
    T_EQ_U64(rows.hits, 1500);
    T_EQ_U64(rows.top_level, 500);
    T_EQ_U64(world_health(w).received, 1500);
    free(p.bytes);
    http_close(&c);
    world_free(w);
}

TEST(a_large_payload_that_is_broken_at_its_end_counts_nothing)
{
    struct world *const w = world_new(4096);
    struct http_client c = world_datadog(w);
    struct pack p = pack_traces(500, 3, "GET /items");
    T_EQ_U64(world_post(&c, "/v0.4/traces", MSGPACK, p.bytes, p.len - 1).status, 400);
    T_EQ_U64(world_health(w).received, 0);
    T_EQ_U64(world_seal(w).hits, 0);
    free(p.bytes);
    http_close(&c);
    world_free(w);
}

TEST(a_single_trace_larger_than_the_ring_is_dropped_and_its_neighbours_counted)
{
    struct world *const w = world_new(4096);
    struct http_client c = world_datadog(w);
    struct pack p = {0};
    pack_array(&p, 3);
    const size_t sizes[] = {2, 200, 3};
    for (uint64_t t = 0; t < 3; t++) {
        pack_array(&p, sizes[t]);
        for (uint64_t s = 1; s <= sizes[t]; s++)
            pack_span(&p, t + 1, t * 1000 + s, s == 1 ? 0 : t * 1000 + 1, "shop", "r");
    }
    T_EQ_U64(world_post(&c, "/v0.4/traces", MSGPACK, p.bytes, p.len).status, 200);
    T_EQ_U64(world_counts(w).dropped_spans, 200);
    T_EQ_U64(world_counts(w).routes[RECEIVE_DD_V04].spans, 205);
    T_EQ_U64(world_seal(w).hits, 5);
    const struct weir_stats_health health = world_health(w);
    T_EQ_U64(health.received, 205);
    T_EQ_U64(health.dropped[WEIR_DROP_INBOX_FULL], 200);
    free(p.bytes);
    http_close(&c);
    world_free(w);
}

/* OTLP. */

static void pb_field(struct pack *p, unsigned tag, const struct pack *inner)
{
    pack_byte(p, tag);
    size_t len = inner->len;
    for (; len > 0x7f; len >>= 7)
        pack_byte(p, (unsigned)(len & 0x7f) | 0x80);
    pack_byte(p, (unsigned)len);
    for (size_t i = 0; i < inner->len; i++)
        pack_byte(p, inner->bytes[i]);
}

/* An ExportTraceServiceRequest of good spans, and spans whose trace id has 15 bytes. */
static struct pack otlp_request(unsigned good, unsigned bad)
{
    struct pack scope = {0};
    for (unsigned i = 0; i < good + bad; i++) {
        struct pack span = {0};
        const unsigned id_bytes = i < good ? 16 : 15;
        pack_byte(&span, 0x0a);
        pack_byte(&span, id_bytes);
        for (unsigned b = 0; b < id_bytes; b++)
            pack_byte(&span, 7);
        pack_byte(&span, 0x12);
        pack_byte(&span, 8);
        for (unsigned b = 0; b < 8; b++)
            pack_byte(&span, b < 4 ? i >> (8 * b) & 0xff : 1);
        pack_byte(&span, 0x2a);
        pack_byte(&span, 1);
        pack_byte(&span, 'n');
        pb_field(&scope, 0x12, &span);
        free(span.bytes);
    }
    struct pack resource = {0};
    pb_field(&resource, 0x12, &scope);
    struct pack request = {0};
    pb_field(&request, 0x0a, &resource);
    free(scope.bytes);
    free(resource.bytes);
    return request;
}

TEST(otlp_spans_are_counted_and_the_answer_is_an_empty_message)
{
    struct world *const w = world_new(0);
    struct http_client c = world_otlp(w);
    struct pack p = otlp_request(3, 0);
    const struct http_answer a = world_post(
        &c, "/v1/traces", "Content-Type: application/X-Protobuf; x=y\r\n", p.bytes, p.len);
    T_EQ_U64(a.status, 200);
    T_EQ_U64(a.body_bytes, 0);
    T_EQ_STR(http_field(&a, "Content-Type"), "application/x-protobuf");
    T_TRUE(!http_field(&a, "Datadog-Agent-Version"));
    T_EQ_U64(world_seal(w).hits, 3);
    T_EQ_U64(world_counts(w).routes[RECEIVE_OTLP_TRACES].spans, 3);
    free(p.bytes);
    http_close(&c);
    world_free(w);
}

TEST(otlp_spans_with_bad_ids_are_rejected_in_partial_success)
{
    struct world *const w = world_new(0);
    struct http_client c = world_otlp(w);
    struct pack p = otlp_request(2, 300);
    const struct http_answer a = world_post(&c, "/v1/traces", PROTOBUF_FIELD, p.bytes, p.len);
    T_EQ_U64(a.status, 200);
    static const char text[] = "weir: spans refused: 300 without a valid trace_id, 0 without a "
                               "valid span_id";
    uint8_t want[128] = {0x0a, sizeof text - 1 + 5, 0x08, 0xac, 0x02, 0x12, sizeof text - 1};
    memcpy(want + 7, text, sizeof text - 1);
    T_EQ_BYTES(a.body, a.body_bytes, want, 7 + sizeof text - 1);
    T_EQ_U64(world_seal(w).hits, 2);
    T_EQ_U64(world_counts(w).rejected_spans[WEIR_REFUSED_TRACE_ID], 300);
    T_EQ_U64(world_counts(w).rejected_spans[WEIR_REFUSED_SPAN_ID], 0);
    free(p.bytes);
    http_close(&c);
    world_free(w);
}

TEST(an_otlp_request_larger_than_the_ring_is_counted_whole)
{
    struct world *const w = world_new(4096);
    struct http_client c = world_otlp(w);
    struct pack p = otlp_request(2000, 5);
    const struct http_answer a = world_post(&c, "/v1/traces", PROTOBUF_FIELD, p.bytes, p.len);
    T_EQ_U64(a.status, 200);
    T_EQ_U64(world_seal(w).hits, 2000);
    T_EQ_U64(world_health(w).received, 2000);
    T_EQ_U64(world_counts(w).large_payloads, 1);
    T_EQ_U64(world_counts(w).rejected_spans[WEIR_REFUSED_TRACE_ID], 5); /* not twice */
    free(p.bytes);
    http_close(&c);
    world_free(w);
}

TEST(an_otlp_refusal_is_a_status_message_and_counts_nothing)
{
    struct world *const w = world_new(0);
    struct http_client c = world_otlp(w);
    struct pack p = otlp_request(2, 0);
    const struct http_answer a = world_post(&c, "/v1/traces", PROTOBUF_FIELD, p.bytes, p.len - 1);
    T_EQ_U64(a.status, 400);
    static const char text[] = "weir: cannot decode /v1/traces payload at byte ";
    T_EQ_BYTES(a.body, 3, "\x08\x03\x12", 3);
    T_EQ_BYTES(a.body + 4, sizeof text - 1, text, sizeof text - 1);
    T_EQ_U64(a.body[3], a.body_bytes - 4);
    T_EQ_U64(world_health(w).received, 0);
    T_EQ_U64(world_post(&c, "/v1/traces", "Content-Type: application/json\r\n", "{}", 2).status,
             415);
    T_EQ_U64(world_post(&c, "/v1/traces", "", "", 0).status, 415);
    T_EQ_U64(world_post(&c, "/v1/metrics", PROTOBUF_FIELD, "", 0).status, 404);
    const struct http_answer b = http_ask(&c, "GET /v1/traces HTTP/1.1\r\nHost: a\r\n\r\n");
    T_EQ_U64(b.status, 405);
    T_EQ_STR(http_field(&b, "Allow"), "POST, OPTIONS");
    free(p.bytes);
    http_close(&c);
    world_free(w);
}

TEST(routes_and_refusals_have_names_of_their_own)
{
    for (unsigned i = 0; i < RECEIVE_ROUTE_COUNT; i++)
        for (unsigned j = 0; j < i; j++)
            T_TRUE(strcmp(receive_route_path((enum receive_route)i),
                          receive_route_path((enum receive_route)j)) != 0);
    T_EQ_STR(receive_route_protocol(RECEIVE_OTLP_TRACES), "otlp");
    for (unsigned i = 0; i < RECEIVE_REFUSAL_COUNT; i++)
        for (unsigned j = 0; j < i; j++)
            T_TRUE(strcmp(receive_refusal_name((enum receive_refusal)i),
                          receive_refusal_name((enum receive_refusal)j)) != 0);
}

TEST(while_memory_is_short_payloads_are_refused_and_nothing_of_them_is_counted)
{
    struct world *const w = world_new(0);
    struct http_client c = world_datadog(w);
    const uint8_t empty[] = {0x90};
    w->pipeline.is_short = true;
    struct http_answer a = world_post(&c, "/v0.4/traces", MSGPACK, empty, sizeof empty);
    T_EQ_I64(a.status, 503);
    T_EQ_U64(world_counts(w).refused[RECEIVE_REFUSED_MEMORY], 1);
    T_EQ_U64(world_counts(w).routes[RECEIVE_DD_V04].payloads, 0);
    w->pipeline.is_short = false;
    a = world_post(&c, "/v0.4/traces", MSGPACK, empty, sizeof empty);
    T_EQ_I64(a.status, 200);
    T_EQ_U64(world_counts(w).routes[RECEIVE_DD_V04].payloads, 1);
    http_close(&c);
    world_free(w);
}
