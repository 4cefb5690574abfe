/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the encoder writes by itself and where (contracts trace-encoding §2.2-2.4), the rows 14 to
 * 23 of the cases on trace encoding, and the list under them. Cases are named where they have a
 * number.
 */
#include "trace_fixture.h"

#include <stdlib.h>
#include <string.h>

/* A text as MessagePack, in hex. */
static const char *framed(const char *s)
{
    static char ring[8][512];
    static int next;
    char *const out = ring[next++ & 7];
    const size_t n = strlen(s);
    T_TRUE(n < 200);
    int at = n < 16 ? snprintf(out, 512, "%02zx", 0xa0 | n) : snprintf(out, 512, "d9%02zx", n);
    for (size_t i = 0; i < n; i++)
        at += snprintf(out + at, 512 - (size_t)at, "%02x", (unsigned char)s[i]);
    return out;
}

static size_t times(const char *hex, const char *part)
{
    size_t n = 0;
    for (const char *at = hex; (at = strstr(at, part)) != NULL; at += strlen(part))
        n++;
    return n;
}

/* Fails unless key, then value, stand in hex. */
static void says(const char *hex, const char *key, const char *value_hex)
{
    char pair[2048];
    (void)snprintf(pair, sizeof pair, "%s%s", framed(key), value_hex);
    if (!strstr(hex, pair))
        T_FAIL("no %s = %s in %s", key, value_hex, hex);
}

static const char *encode(uint32_t version, const struct weir_trace *t)
{
    struct weir_trace_encoder *const e = fixture_encoder(version, 0);
    T_OK(weir_trace_add(e, t));
    const char *const hex = fixture_hex(e);
    weir_trace_encoder_free(e);
    return hex;
}

static const char *encode_span(uint32_t version, const struct weir_trace_span *s)
{
    const struct weir_trace t = {.spans = s, .span_count = 1};
    return encode(version, &t);
}

static void check_file(const char *hex, const char *file)
{
    char path[512];
    (void)snprintf(path, sizeof path, "%s/tests/golden/trace/%s", T_SOURCE_DIR, file);
    size_t n = 0;
    char *const text = (char *)t_read_file(path, &n);
    T_TRUE(text);
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) {
        if (text[i] > ' ')
            text[kept++] = text[i];
    }
    T_EQ_BYTES(hex, strlen(hex), text, kept);
    free(text);
}

/* The annotated bytes of a page of docs/formats: the first columns of its last block. */
static const char *page_hex(const char *page)
{
    enum { COLUMNS = 40 };
    static char hex[8192];
    char path[512];
    size_t n = 0;
    (void)snprintf(path, sizeof path, "%s/docs/formats/%s", T_SOURCE_DIR, page);
    char *const text = (char *)t_read_file(path, &n);
    T_TRUE(text);
    const char *at = memmem(text, n, "## Annotated", 12);
    at = at ? memmem(at, n - (size_t)(at - text), "```\n", 4) : NULL;
    T_TRUE(at);
    size_t len = 0;
    for (at += 4; *at != '`'; at = (const char *)memchr(at, '\n', n - (size_t)(at - text)) + 1) {
        for (size_t i = 0; i < COLUMNS && at[i] > ' '; i++)
            hex[len++] = at[i];
        T_TRUE(len < sizeof hex - COLUMNS);
    }
    hex[len] = 0;
    free(text);
    return hex;
}

TEST(the_pages_show_the_golden_bytes)
{
    check_file(page_hex("trace-v04.md"), "v04-java-one-span.hex");
    check_file(page_hex("trace-v05.md"), "v05-java-one-span.hex");
    check_file(page_hex("trace-v1.md"), "v1-java-two-spans.hex");
}

/* 14: ids of 64 bits are never negative. */
TEST(ids_from_2_to_the_63_on_are_unsigned)
{
    const struct weir_trace_span s = {.trace_id = (UINT64_C(1) << 63) + 1, .span_id = UINT64_MAX};
    const char *hex = encode_span(WEIR_TRACE_V04, &s);
    says(hex, "trace_id", "cf8000000000000001");
    says(hex, "span_id", "cfffffffffffffffff");
    hex = encode_span(WEIR_TRACE_V05, &s);
    T_TRUE(strstr(hex, "cf8000000000000001cfffffffffffffffff"));
    hex = encode_span(WEIR_TRACE_V1, &s);
    T_TRUE(strstr(hex, "04cfffffffffffffffff0500"));
    T_TRUE(strstr(hex, "06c41000000000000000008000000000000001"));
}

/* 15, 16, 17: a boolean is text before v1.0; numbers are float64, and in metrics alone. */
TEST(each_type_of_value_has_its_form)
{
    const struct weir_trace_tag tags[] = {
        {.key = weir_str_c("ok"), .value = {.type = WEIR_TRACE_BOOL, .v = {.i = 1}}},
        {.key = weir_str_c("f"), .value = {.type = WEIR_TRACE_DOUBLE, .v = {.d = 1.5}}},
        {.key = weir_str_c("dec"), .value = {.type = WEIR_TRACE_DOUBLE, .v = {.d = 12.5}}},
        {.key = weir_str_c("i"), .value = {.type = WEIR_TRACE_INT, .v = {.i = -40}}},
    };
    const struct weir_trace_span s = {.tags = tags, .tag_count = 4};
    const char *hex = encode_span(WEIR_TRACE_V04, &s);
    says(hex, "ok", framed("true"));
    says(hex, "f", "cb3ff8000000000000");
    says(hex, "dec", "cb4029000000000000");
    says(hex, "i", "d0d8");
    T_EQ_U64(times(hex, framed("dec")), 1);
    hex = encode_span(WEIR_TRACE_V1, &s);
    says(hex, "ok", "02c3");
    says(hex, "f", "03cb3ff8000000000000");
    says(hex, "i", "03cbc044000000000000");
}

/* 18: in two chunks of one trace. */
TEST(the_traces_own_tags_are_on_the_first_span_of_each_chunk_and_priority_on_the_ends)
{
    const struct weir_trace_tag own[] = {fixture_text("_dd.p.dm", "-4")};
    struct weir_trace_span spans[4] = {
        {.span_id = 1}, {.span_id = 2}, {.span_id = 3}, {.span_id = 4}};
    spans[2].flags = WEIR_TRACE_TOP_LEVEL;
    const struct weir_trace t = {.spans = spans,
                                 .span_count = 4,
                                 .priority = -1,
                                 .flags = WEIR_TRACE_PRIORITY,
                                 .trace_id_hi = 0x0123456789abcdef,
                                 .origin = weir_str_c("rum"),
                                 .tags = own,
                                 .tag_count = 1};
    struct weir_trace_encoder *e = fixture_encoder(WEIR_TRACE_V04, 0);
    T_OK(weir_trace_add(e, &t));
    T_OK(weir_trace_add(e, &t));
    const char *hex = fixture_hex(e);
    T_EQ_U64(times(hex, framed("_dd.p.dm")), 2);
    says(hex, "_dd.p.dm", framed("-4"));
    T_EQ_U64(times(hex, framed("_dd.p.tid")), 2);
    says(hex, "_dd.p.tid", framed("0123456789abcdef"));
    says(hex, "_sampling_priority_v1", "ff");
    T_EQ_U64(times(hex, framed("_sampling_priority_v1")), 6); /* first, top level, last; twice */
    T_EQ_U64(times(hex, framed("_dd.origin")), 8);
    weir_trace_encoder_free(e);
    e = fixture_encoder(WEIR_TRACE_V1, 0);
    T_OK(weir_trace_add(e, &t));
    hex = fixture_hex(e);
    T_TRUE(strstr(hex, "8601ff02a372756d"));                           /* priority, origin */
    T_TRUE(strstr(hex, "06c4100123456789abcdef00000000000000000704")); /* id, mechanism */
    T_EQ_U64(times(hex, framed("_dd.p.dm")), 1);
    weir_trace_encoder_free(e);
}

TEST(the_mechanism_is_the_number_after_the_last_hyphen)
{
    static const struct {
        const char *dm;
        const char *hex;
    } rows[] = {
        {"-4", "0704"}, {"934086a686-11", "070b"}, {"3", "0703"}, {"-x", "0700"}, {"", "0700"}};
    const struct weir_trace_span s = {.span_id = 1};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct weir_trace_tag own = fixture_text("_dd.p.dm", rows[i].dm);
        const struct weir_trace t = {.spans = &s, .span_count = 1, .tags = &own, .tag_count = 1};
        const char *const hex = encode(WEIR_TRACE_V1, &t);
        T_EQ_STR(hex + strlen(hex) - 4, rows[i].hex);
    }
}

TEST(a_partial_span_in_v04_is_the_reference_tracers_bytes)
{
    struct fixture_span f;
    struct weir_trace t;
    fixture_golden(&f, &t);
    f.span.long_running_version = 3;
    check_file(encode(WEIR_TRACE_V04, &t), "v04-java-partial.hex");
}

/* The list under the rows: the reference writes these keys of v0.5 as raw strings. */
TEST(marks_of_long_running_spans_are_indices_in_v05)
{
    struct fixture_span f;
    struct weir_trace t;
    fixture_golden(&f, &t);
    f.span.long_running_version = 3;
    const char *hex = encode(WEIR_TRACE_V05, &t);
    T_TRUE(strstr(hex, framed("_dd.partial_version")));
    T_TRUE(strstr(hex, "8407010801"
                       "0903"
                       "0a07"
                       "0b")); /* metrics: 4 pairs of index and number */
    f.span.long_running_version = -7;
    hex = encode(WEIR_TRACE_V04, &t);
    says(hex, "_dd.was_long_running", "01");
}

static const struct weir_trace_tag process = {
    .value = {.type = WEIR_TRACE_STR},
};

static struct weir_trace_encoder *with_header(uint32_t version, const struct weir_trace_header *h)
{
    const struct weir_trace_opts o = {.struct_size = sizeof o, .version = version, .header = h};
    struct weir_trace_encoder *e = NULL;
    T_OK(weir_trace_encoder_new(&o, &e));
    return e;
}

TEST(two_spans_in_v1_are_the_reference_tracers_bytes)
{
    struct weir_trace_tag tags[] = {process};
    tags[0] = fixture_text(
        "_dd.tags.process",
        "entrypoint.name:org.gradle.launcher.daemon.bootstrap.gradledaemon,entrypoint.type:class,"
        "entrypoint.workdir:dd-trace-java,svc.auto:org.gradle.launcher.daemon.bootstrap."
        "gradledaemon");
    const struct weir_trace_header h = {
        .language = weir_str_c("java"),
        .language_version = weir_str_c("21"),
        .tracer_version = weir_str_c("0.0.0"),
        .runtime_id = weir_str_c("a7f91a05-87e7-439a-a5bc-64038006d200"),
        .env = weir_str_c(""),
        .hostname = weir_str_c("host-0000000001"),
        .tags = tags,
        .tag_count = 1,
    };
    const struct weir_trace_tag first[] = {
        fixture_text("component", "netty"),
        {.key = weir_str_c("_dd.agent_psr"), .value = {.type = WEIR_TRACE_DOUBLE, .v = {.d = 1}}},
    };
    const struct weir_trace_tag second[] = {
        {.key = weir_str_c("_dd.measured"), .value = {.type = WEIR_TRACE_INT, .v = {.i = 1}}},
        fixture_text("component", "spring-webflux-controller"),
    };
    const struct weir_trace_span spans[] = {
        {.service = weir_str_c("smoke-test-java-app"),
         .name = weir_str_c("netty.request"),
         .resource = weir_str_c("GET /hello"),
         .type = weir_str_c("web"),
         .trace_id = 123456789,
         .span_id = 123,
         .start_ns = INT64_C(1700000000000000000),
         .duration_ns = 3000000,
         .http_status = 200,
         .kind = 1,
         .tags = first,
         .tag_count = 2},
        {.service = weir_str_c("smoke-test-java-app"),
         .name = weir_str_c("WebController.hello"),
         .resource = weir_str_c("WebController.hello"),
         .type = weir_str_c("web"),
         .trace_id = 123456789,
         .span_id = 456,
         .parent_id = 123,
         .start_ns = INT64_C(1700000000001000000),
         .duration_ns = 1500000,
         .http_status = 200,
         .kind = 1,
         .tags = second,
         .tag_count = 2},
    };
    const struct weir_trace t = {
        .spans = spans, .span_count = 2, .priority = 1, .flags = WEIR_TRACE_PRIORITY};
    struct weir_trace_encoder *const e = with_header(WEIR_TRACE_V1, &h);
    T_OK(weir_trace_add(e, &t));
    check_file(fixture_hex(e), "v1-java-two-spans.hex");
    /* What the header made known holds in the next payload too, and no more than that. */
    weir_trace_clear(e);
    T_OK(weir_trace_add(e, &t));
    check_file(fixture_hex(e), "v1-java-two-spans.hex");
    weir_trace_encoder_free(e);
}

TEST(process_tags_are_on_the_first_span_of_a_payload_before_v1)
{
    struct weir_trace_tag tags[] = {process};
    tags[0] = fixture_text("_dd.tags.process", "a:b");
    const struct weir_trace_header h = {.tags = tags, .tag_count = 1};
    const struct weir_trace_span spans[2] = {{.span_id = 1}, {.span_id = 2}};
    const struct weir_trace t = {.spans = spans, .span_count = 2};
    struct weir_trace_encoder *const e = with_header(WEIR_TRACE_V04, &h);
    for (int payload = 0; payload < 2; payload++) {
        T_OK(weir_trace_add(e, &t));
        T_OK(weir_trace_add(e, &t));
        T_EQ_U64(times(fixture_hex(e), framed("_dd.tags.process")), 1);
        weir_trace_clear(e);
    }
    weir_trace_encoder_free(e);
}

/* Case K16, across the two maps and the encoder's own keys. */
TEST(a_tag_has_precedence_over_what_the_encoder_would_write)
{
    const struct weir_trace_tag tags[] = {
        fixture_int("_dd.top_level", 5),
        fixture_text("http.status_code", "404"),
        fixture_int("k", 1),
        fixture_text("k", "last"),
    };
    const struct weir_trace_span s = {
        .flags = WEIR_TRACE_TOP_LEVEL, .http_status = 200, .tags = tags, .tag_count = 4};
    for (uint32_t version = WEIR_TRACE_V04; version <= WEIR_TRACE_V1; version += 6) {
        const char *const hex = encode_span(version, &s);
        T_EQ_U64(times(hex, framed("_dd.top_level")), 1);
        T_EQ_U64(times(hex, framed("http.status_code")), 1);
        T_TRUE(strstr(hex, framed("404")) && !strstr(hex, framed("200")));
        T_EQ_U64(times(hex, framed("k")), 1);
        T_TRUE(strstr(hex, framed("last")));
    }
}

/* 22: a header in bytes, and every byte of what is not ASCII. */
TEST(han_and_emoji_are_utf8_to_the_byte_from_every_kind_of_string)
{
    static const char utf8[] = "\xe6\x97\xa5\xe6\x9c\xac\xe8\xaa\x9e\xf0\x9f\x98\x80";
    static const uint16_t utf16[] = {0x65e5, 0x672c, 0x8a9e, 0xd83d, 0xde00};
    struct weir_text *text = NULL;
    T_OK(weir_text_from_utf16(NULL, utf16, 5, &text));
    const struct weir_str from[] = {weir_str_c(utf8), weir_str_utf16(utf16, 5),
                                    weir_str_text(text)};
    for (size_t i = 0; i < 3; i++) {
        const struct weir_trace_span s = {.resource = from[i]};
        says(encode_span(WEIR_TRACE_V04, &s), "resource", "ade697a5e69cace8aa9ef09f9880");
        T_TRUE(strstr(encode_span(WEIR_TRACE_V05, &s), "ade697a5e69cace8aa9ef09f9880"));
        T_TRUE(strstr(encode_span(WEIR_TRACE_V1, &s), "03ade697a5e69cace8aa9ef09f9880"));
    }
    weir_text_free(text);
}

TEST(what_is_not_well_formed_is_mended_and_counted)
{
    static const uint16_t alone[] = {'a', 0xd800, 'b'};
    static const uint32_t versions[] = {WEIR_TRACE_V04, WEIR_TRACE_V05, WEIR_TRACE_V1};
    const struct weir_trace_tag tags[] = {
        {.key = weir_str_c("k\xff"), .value = {.v = {.str = weir_str_utf16(alone, 3)}}}};
    const struct weir_trace_span s = {.service = weir_str_c("\xc0\x80"),
                                      .name = weir_str_c("\xed\xa0\x80x"),
                                      .tags = tags,
                                      .tag_count = 1};
    const struct weir_trace t = {.spans = &s, .span_count = 1};
    for (size_t i = 0; i < 3; i++) {
        struct weir_trace_encoder *const e = fixture_encoder(versions[i], 0);
        T_OK(weir_trace_add(e, &t));
        const char *const hex = fixture_hex(e);
        T_TRUE(strstr(hex, "a6efbfbdefbfbd"));
        T_TRUE(strstr(hex, "aaefbfbdefbfbdefbfbd78"));
        T_TRUE(strstr(hex, "a46befbfbd"));
        T_TRUE(strstr(hex, "a561efbfbd62"));
        struct weir_trace_counts c;
        weir_trace_get_counts(e, &c);
        /* v1.0 says the service once more, in the chunk. */
        T_EQ_U64(c.texts_mended, versions[i] == WEIR_TRACE_V1 ? 5 : 4);
        weir_trace_encoder_free(e);
    }
}

static const struct weir_trace_value lines[] = {
    {.type = WEIR_TRACE_INT, .v = {.i = 1}},
    {.type = WEIR_TRACE_DOUBLE, .v = {.d = 2.5}},
};
/* The key of an event's attribute: what is static cannot be made by a function. */
#define KEY(s)                                                                                     \
    {                                                                                              \
        .ptr = (s), .len = sizeof(s) - 1                                                           \
    }
static const struct weir_trace_tag attributes[] = {
    {.key = KEY("k"), .value = {.type = WEIR_TRACE_ARRAY, .count = 2, .v = {.items = lines}}},
    {.key = KEY("s"), .value = {.v = {.str = KEY("a\"\n\\")}}},
    {.key = KEY("b"), .value = {.type = WEIR_TRACE_BOOL}},
};
static const struct weir_trace_event events[] = {
    {.time_ns = 1, .name = KEY("e"), .attributes = attributes, .attribute_count = 3},
    {.time_ns = -2, .name = KEY("f")},
};

/* Forms as in libdatadog's v05_links_events_as_meta. */
TEST(links_and_events_are_json_before_v1)
{
    const struct weir_trace_tag name = fixture_text("link.name", "Job #123");
    const struct weir_trace_link links[] = {
        {.trace_id = UINT64_C(0xc151df7d6ee5e2d6),
         .span_id = UINT64_C(0xa3978fb9b92502a8),
         .attributes = &name,
         .attribute_count = 1},
        {.trace_id_hi = UINT64_C(0x527ccbd68a74d57e),
         .trace_id = UINT64_C(0xa918bf567eec151d),
         .span_id = UINT64_C(0xc08c967f0e5e7b0a),
         .tracestate = weir_str_c("dd=1"),
         .flags = 0x101},
    };
    const struct weir_trace_extra x = {
        .links = links, .link_count = 2, .events = events, .event_count = 2};
    const struct weir_trace_span s = {.extra = &x};
    const struct weir_trace t = {.spans = &s, .span_count = 1};
    static const char links_json[] =
        "[{\"trace_id\":\"0000000000000000c151df7d6ee5e2d6\",\"span_id\":\"a3978fb9b92502a8\","
        "\"attributes\":{\"link.name\":\"Job "
        "#123\"}},{\"trace_id\":\"527ccbd68a74d57ea918bf567eec151d\","
        "\"span_id\":\"c08c967f0e5e7b0a\",\"tracestate\":\"dd=1\",\"flags\":1}]";
    static const char events_json[] =
        "[{\"time_unix_nano\":1,\"name\":\"e\",\"attributes\":{\"k\":[1,2.5],\"s\":"
        "\"a\\\"\\u000a\\\\\","
        "\"b\":false}},{\"time_unix_nano\":-2,\"name\":\"f\",\"attributes\":{}}]";
    static const uint32_t versions[] = {WEIR_TRACE_V04, WEIR_TRACE_V05};
    for (size_t i = 0; i < 2; i++) {
        struct weir_trace_encoder *const e = fixture_encoder(versions[i], 0);
        T_OK(weir_trace_add(e, &t));
        struct weir_bytes p;
        T_OK(weir_trace_payload(e, &p));
        T_TRUE(memmem(p.ptr, p.len, links_json, sizeof links_json - 1) != NULL);
        T_TRUE(memmem(p.ptr, p.len, events_json, sizeof events_json - 1) != NULL);
        weir_trace_encoder_free(e);
    }
}

TEST(links_that_do_not_fit_25000_bytes_are_dropped_and_counted)
{
    enum { LINKS = 1000 };
    static struct weir_trace_link links[LINKS];
    const struct weir_trace_extra x = {.links = links, .link_count = LINKS};
    const struct weir_trace_span s = {.extra = &x};
    const struct weir_trace t = {.spans = &s, .span_count = 1};
    struct weir_trace_encoder *const e = fixture_encoder(WEIR_TRACE_V04, 0);
    T_OK(weir_trace_add(e, &t));
    struct weir_trace_counts c;
    weir_trace_get_counts(e, &c);
    const size_t one = sizeof "{\"trace_id\":\"\",\"span_id\":\"\"}," - 1 + 48;
    T_EQ_U64(c.links_dropped, LINKS - (25000 - 2) / one);
    struct weir_bytes p;
    T_OK(weir_trace_payload(e, &p));
    T_TRUE(p.len < 25000 + 300);
    weir_trace_encoder_free(e);
}

/* 20, native and as the text of a tag: the same bytes. */
TEST(events_are_native_in_v1_also_from_json)
{
    static const char *const json =
        "[{\"time_unix_nano\":1,\"name\":\"e\",\"attributes\":{\"k\":[1,2.5]}}]";
    static const char want[] = "0c9183010102a1650393a16b06940401"
                               "03cb4004000000000000"
                               "0d";
    const struct weir_trace_tag tag = fixture_text("events", json);
    const struct weir_trace_span s = {.tags = &tag, .tag_count = 1};
    const char *hex = encode_span(WEIR_TRACE_V1, &s);
    T_TRUE(strstr(hex, want));
    T_TRUE(!strstr(hex, framed("events"))); /* no attribute besides */
    const struct weir_trace_event native = {
        .time_ns = 1, .name = weir_str_c("e"), .attributes = attributes, .attribute_count = 1};
    const struct weir_trace_extra x = {.events = &native, .event_count = 1};
    const struct weir_trace_span s2 = {.extra = &x};
    T_TRUE(strstr(encode_span(WEIR_TRACE_V1, &s2), want));
    says(encode_span(WEIR_TRACE_V04, &s), "events", framed(json)); /* sent as it is */
}

/* The trace-agent reads them as unsigned, and refuses a payload with one below 0 as a whole. */
TEST(times_below_0_are_0_in_v1_and_as_they_are_before)
{
    const struct weir_trace_event event = {.time_ns = -3, .name = weir_str_c("e")};
    const struct weir_trace_extra x = {.events = &event, .event_count = 1};
    const struct weir_trace_span s = {.start_ns = -1, .duration_ns = -5, .extra = &x};
    const char *hex = encode_span(WEIR_TRACE_V1, &s);
    T_TRUE(strstr(hex, "0600070008c2")); /* start, duration, error */
    T_TRUE(strstr(hex, "0c9183010002a1650390"));
    const struct weir_trace_tag tag =
        fixture_text("events", "[{\"time_unix_nano\":-3,\"name\":\"e\"}]");
    const struct weir_trace_span text = {.tags = &tag, .tag_count = 1};
    T_TRUE(strstr(encode_span(WEIR_TRACE_V1, &text), "0c9183010002a1650390"));
    hex = encode_span(WEIR_TRACE_V04, &s);
    says(hex, "start", "ff");
    says(hex, "duration", "fb");
}

TEST(events_without_time_or_name_are_left_out_and_what_is_no_json_stays_a_tag)
{
    static const struct {
        const char *json;
        const char *part; /* NULL: it stays a tag */
    } rows[] = {
        {" [ ] ", "0c900d"},
        {"[{\"name\":\"x\"},{\"time_unix_nano\":2},7,null,[],{\"time_unix_nano\":\"3\",\"name\":"
         "\"y\"}]",
         "0c9183010302a1790390"},
        {"[{\"time_unix_nano\":1.0e3,\"name\":true,\"attributes\":{\"n\":null,\"o\":{},\"e\":"
         "\"\\u00e9\\ud83d\\ude00\\ud800\"}}]",
         "0c918301cd03e802a474727565"
         "0393a16501a9c3a9f09f9880efbfbd"},
        {"[{\"time_unix_nano\":9223372036854775808,\"name\":\"m\"}]", "cf7fffffffffffffff"},
        {"[{\"time_unix_nano\":1,\"name\":\"e\"}", NULL},
        {"[1,]", NULL},
        {"[01]", NULL},
        {"[\"\\x\"]", NULL},
        {"[] x", NULL},
        {"{}", NULL},
        {"", NULL},
        {"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]", NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct weir_trace_tag tag = fixture_text("events", rows[i].json);
        const struct weir_trace_span s = {.tags = &tag, .tag_count = 1};
        const char *const hex = encode_span(WEIR_TRACE_V1, &s);
        if (rows[i].part ? !strstr(hex, rows[i].part) : !strstr(hex, framed("events")))
            T_FAIL("row %zu: %s", i, hex);
    }
}

TEST(v1_takes_fields_out_of_tags_and_kind_from_its_word)
{
    static const struct {
        const char *word;
        const char *hex;
    } rows[] = {{"server", "1002"},   {"client", "1003"},   {"producer", "1004"},
                {"consumer", "1005"}, {"internal", "1001"}, {"other", "1001"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct weir_trace_tag tags[] = {fixture_text("env", "prod"),
                                              fixture_text("version", "1"),
                                              fixture_text("span.kind", rows[i].word)};
        const struct weir_trace_span s = {.tags = tags, .tag_count = 3};
        const char *const hex = encode_span(WEIR_TRACE_V1, &s);
        char want[64];
        /* 1 env, 2 prod, 3 version, 4 "1": indices of what the attributes introduced. */
        (void)snprintf(want, sizeof want, "0d020e040f00%s", rows[i].hex);
        T_TRUE(strstr(hex, want));
    }
}

TEST(meta_struct_is_a_map_in_v04_attributes_in_v1_and_nothing_in_v05)
{
    const struct weir_trace_blob blob = {.key = weir_str_c("appsec"),
                                         .value = {"\x81\xa1"
                                                   "a\x01",
                                                   4}};
    const struct weir_trace_extra x = {.blobs = &blob, .blob_count = 1};
    const struct weir_trace_span s = {.extra = &x};
    const char *hex = encode_span(WEIR_TRACE_V04, &s);
    T_TRUE(strstr(hex, "91918d"));
    says(hex, "meta_struct", "81a6617070736563c40481a16101");
    hex = encode_span(WEIR_TRACE_V1, &s);
    T_TRUE(strstr(hex, "0993a661707073656305c40481a16101"));
    hex = encode_span(WEIR_TRACE_V05, &s);
    T_TRUE(!strstr(hex, framed("appsec")));
}

TEST(a_kind_and_a_status_without_a_tag_become_meta)
{
    const struct weir_trace_span s = {.kind = 3, .http_status = 503};
    const char *const hex = encode_span(WEIR_TRACE_V04, &s);
    says(hex, "span.kind", framed("client"));
    says(hex, "http.status_code", framed("503"));
    T_TRUE(strstr(encode_span(WEIR_TRACE_V1, &s), "1003"));
}

struct taken {
    uint64_t payloads;
    uint64_t traces;
    size_t largest;
};

static void take(void *ctx, uint32_t version, struct weir_bytes p, uint64_t traces, uint64_t spans)
{
    struct taken *const t = ctx;
    T_TRUE(version == WEIR_TRACE_V04 && traces == spans);
    t->payloads++;
    t->traces += traces;
    t->largest = p.len > t->largest ? p.len : t->largest;
}

TEST(a_full_payload_is_handed_over_and_a_trace_that_fits_none_is_counted)
{
    static char buffer[1000];
    struct taken taken = {0};
    const struct weir_trace_opts o = {.struct_size = sizeof o,
                                      .buffer = buffer,
                                      .max_bytes = sizeof buffer,
                                      .full = take,
                                      .full_ctx = &taken};
    struct weir_trace_encoder *e = NULL;
    T_OK(weir_trace_encoder_new(&o, &e));
    static char long_name[2000];
    memset(long_name, 'n', sizeof long_name - 1);
    const struct weir_trace_span s = {.name = weir_str_c("op"), .span_id = 7};
    const struct weir_trace_span huge = {.name = weir_str_c(long_name)};
    uint64_t refused = 0;
    for (int i = 0; i < 100; i++) {
        T_OK(fixture_add(e, &s, 1));
        if (i % 10 == 9) { /* it pushes out what is there, and is refused */
            T_ERR(fixture_add(e, &huge, 1), WEIR_EFULL);
            refused++;
        }
    }
    struct weir_bytes p;
    T_OK(weir_trace_payload(e, &p));
    T_TRUE(p.ptr >= buffer && p.ptr + p.len <= buffer + sizeof buffer);
    struct weir_trace_counts c;
    weir_trace_get_counts(e, &c);
    T_EQ_U64(taken.traces + c.traces, 100);
    T_EQ_U64(c.payloads_full, taken.payloads);
    T_EQ_U64(c.traces_refused, refused);
    T_EQ_U64(c.spans_refused, refused);
    T_TRUE(taken.largest <= sizeof buffer);
    weir_trace_encoder_free(e);
}

TEST(one_encoder_writes_every_version_in_turn_into_one_buffer)
{
    static char buffer[4096];
    static const uint32_t versions[] = {WEIR_TRACE_V04, WEIR_TRACE_V05, WEIR_TRACE_V1};
    const struct weir_trace_opts o = {
        .struct_size = sizeof o, .buffer = buffer, .max_bytes = sizeof buffer};
    struct weir_trace_encoder *e = NULL;
    T_OK(weir_trace_encoder_new(&o, &e));
    struct t_rng r = t_rng(t_seed());
    static struct fixture_span f;
    for (int round = 0; round < 60; round++) {
        const uint32_t version = versions[t_below(&r, 3)];
        T_OK(weir_trace_begin(e, version));
        fixture_random(&r, &f, 3, false);
        const int err = fixture_add(e, &f.span, 1);
        if (err) {
            T_ERR(err, WEIR_EFULL);
            continue;
        }
        struct weir_bytes p;
        T_OK(weir_trace_payload(e, &p));
        T_TRUE(p.ptr >= buffer && p.ptr + p.len <= buffer + sizeof buffer);
        fixture_check(version, p, &f.span, 1, 1);
    }
    T_ERR(weir_trace_begin(e, 6), WEIR_EINVAL);
    weir_trace_encoder_free(e);
}

/* A trace that needs every scratch buffer there is. */
static int encode_rich(const struct weir_alloc *a, void *ctx)
{
    static const uint16_t key[] = {'c', 'l', 0xe9};
    const uint32_t *const version = ctx;
    const struct weir_trace_tag chunk_tag = fixture_text("_dd.p.dm", "-4");
    const struct weir_trace_tag tags[] = {
        {.key = weir_str_utf16(key, 3), .value = {.v = {.str = weir_str_utf16(key, 3)}}},
        fixture_text("bad", "\xff"),
        fixture_text("k", "1"),
        fixture_text("k", "2"),
        fixture_text("events", "[{\"time_unix_nano\":1,\"name\":\"a\\u0062\"}]"),
    };
    const struct weir_trace_link link = {.span_id = 1, .tracestate = weir_str_c("\xfe")};
    const struct weir_trace_extra x = {
        .links = &link, .link_count = 1, .events = events, .event_count = 2};
    const struct weir_trace_span spans[] = {{.name = weir_str_c("n"), .extra = &x},
                                            {.tags = tags, .tag_count = 5, .extra = &x},
                                            {.tags = tags, .tag_count = 4}};
    const struct weir_trace t = {
        .spans = spans, .span_count = 3, .tags = &chunk_tag, .tag_count = 1};
    const struct weir_trace_header h = {.tags = &chunk_tag, .tag_count = 1};
    const struct weir_trace_opts o = {
        .struct_size = sizeof o, .alloc = *a, .version = *version, .header = &h};
    struct weir_trace_encoder *e = NULL;
    int err = weir_trace_encoder_new(&o, &e);
    if (err)
        return err;
    int first = WEIR_OK;
    uint64_t taken = 0;
    for (int i = 0; i < 3; i++) {
        err = weir_trace_add(e, &t);
        taken += !err;
        first = first ? first : err;
    }
    struct weir_trace_counts c;
    weir_trace_get_counts(e, &c);
    T_EQ_U64(c.traces, taken);
    T_EQ_U64(c.traces_refused, 0);
    struct weir_bytes p;
    err = weir_trace_payload(e, &p);
    weir_trace_encoder_free(e);
    return first ? first : err;
}

TEST(a_trace_that_needs_every_buffer_survives_each_refused_allocation)
{
    static uint32_t versions[] = {WEIR_TRACE_V04, WEIR_TRACE_V05, WEIR_TRACE_V1};
    for (size_t i = 0; i < 3; i++)
        t_each_oom(encode_rich, &versions[i]);
}
