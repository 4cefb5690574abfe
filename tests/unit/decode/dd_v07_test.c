/* SPDX-License-Identifier: Apache-2.0 */
/* dd_v07: the header's env, a chunk's origin, orders of members, refusals. */
#include "support.h"

#include <stdlib.h>
#include <string.h>

/* MessagePack for the tests below. */
#define CHUNKS "a66368756e6b73"
#define ENV_PROD "a3656e76 a470726f64"
#define ORIGIN_O "a66f726967696e a16f"
#define SPANS "a57370616e73"
#define SERVICE_S "a773657276696365 a173"
#define META_ENV_E "a46d657461 82 a3656e76 a165 aa5f64642e6f726967696e a178"

TEST(env_and_origin_are_for_spans_without_their_own_wherever_they_stand)
{
    static const char *const payloads[] = {
        "82" ENV_PROD CHUNKS "91 82" ORIGIN_O SPANS "92 81" META_ENV_E "81" SERVICE_S,
        "82" CHUNKS "91 82" ORIGIN_O SPANS "92 81" META_ENV_E "81" SERVICE_S ENV_PROD,
        "82" CHUNKS "91 82" SPANS "92 81" META_ENV_E "81" SERVICE_S ORIGIN_O ENV_PROD,
        "83" CHUNKS "91 83 a178 9180" SPANS "92 81" META_ENV_E "81" SERVICE_S ORIGIN_O "a179 81 "
        "01c0" ENV_PROD,
    };
    for (size_t i = 0; i < sizeof payloads / sizeof *payloads; i++) {
        struct t_spans spans = {.kept = NULL};
        uint8_t *bytes = NULL;
        T_OK(t_decode_hex(weir_decode_dd_v07, payloads[i], &spans, &bytes));
        T_EQ_U64(spans.count, 2);
        T_EQ_U64(spans.traces, 1);
        T_EQ_STR(t_slot(&spans.kept[0], WEIR_TAG_ENV), "e");
        T_EQ_STR(t_slot(&spans.kept[0], WEIR_TAG_ORIGIN), "x");
        T_EQ_STR(t_slot(&spans.kept[1], WEIR_TAG_ENV), "prod");
        T_EQ_STR(t_slot(&spans.kept[1], WEIR_TAG_ORIGIN), "o");
        T_TRUE(t_bytes_are(spans.kept[1].span.service, "s"));
        free(bytes);
        t_spans_free(&spans);
    }
}

TEST(a_chunk_without_origin_has_not_that_of_the_one_before)
{
    struct t_spans spans = {.kept = NULL};
    uint8_t *bytes = NULL;
    T_OK(t_decode_hex(weir_decode_dd_v07,
                      "81" CHUNKS "93 82" ORIGIN_O SPANS "91 81" SERVICE_S "81" SPANS
                      "91 81" SERVICE_S "80",
                      &spans, &bytes));
    T_EQ_U64(spans.count, 2);
    T_EQ_U64(spans.traces, 3);
    T_EQ_STR(t_slot(&spans.kept[0], WEIR_TAG_ORIGIN), "o");
    T_EQ_STR(t_slot(&spans.kept[1], WEIR_TAG_ORIGIN), "-");
    free(bytes);
    t_spans_free(&spans);
}

TEST(payloads_without_spans_are_accepted)
{
    static const char *const payloads[] = {"80", "81" CHUNKS "90", "82" CHUNKS "90" ENV_PROD,
                                           "81" CHUNKS "91 81" SPANS "90"};
    for (size_t i = 0; i < sizeof payloads / sizeof *payloads; i++) {
        struct t_spans spans = {.kept = NULL};
        uint8_t *bytes = NULL;
        T_OK(t_decode_hex(weir_decode_dd_v07, payloads[i], &spans, &bytes));
        T_EQ_U64(spans.count, 0);
        T_EQ_U64(spans.traces, i == 3);
        free(bytes);
        t_spans_free(&spans);
    }
}

TEST(odd_payloads_are_refused_with_their_reason)
{
    static const struct {
        const char *payload;
        const char *reason;
    } rows[] = {
        {"c0", "a payload that is nil"},
        {"91 90", "not a map"},
        {"81 01 90", "not a string"},
        {"81 c0 90", "a key that is nil"},
        {"81" CHUNKS "80", "not an array"},
        {"81" CHUNKS "c0", "not an array"},
        {"82" CHUNKS "90" CHUNKS "90", "chunks twice"},
        {"81" CHUNKS "91 c0", "a chunk that is nil"},
        {"81" CHUNKS "91 90", "not a map"},
        {"81" CHUNKS "91 82" SPANS "90" SPANS "90", "spans of a chunk twice"},
        {"81" CHUNKS "91 81" SPANS "80", "not an array"},
        {"81" CHUNKS "91 81" SPANS "91 c0", "a span that is nil"},
        {"81" CHUNKS "91 81" SPANS "91 90", "not a map"},
        {"81" CHUNKS "91 81" SPANS "91 81 a773657276696365 01", "not a string"},
        {"81" CHUNKS "91 81 a66f726967696e 01", "not a string"},
        {"81 a3656e76 01", "not a string"},
        {"81 a8686f73746e616d65 01", "not a string"},
        {"81 aa72756e74696d655f6964 93 01 02 03", "not a string"},
        {"80 00", "bytes after the payload"},
        {"81" CHUNKS "91 81" SPANS "91 81" SERVICE_S "00", "bytes after the payload"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct weir_where where = {.reason = NULL};
        struct t_buf b = {.at = NULL};
        t_put_hex(&b, rows[i].payload);
        const int r = t_decode(weir_decode_dd_v07, b.at, b.len, NULL, NULL, &where);
        if (r != WEIR_EFORMAT || strcmp(where.reason, rows[i].reason) != 0)
            T_FAIL("%s: %d %s", rows[i].payload, r, where.reason ? where.reason : "accepted");
        t_buf_free(&b);
    }
}

static int decode_nested(const char *open_hex, unsigned depth)
{
    struct t_buf b = {.at = NULL};
    t_put_hex(&b, open_hex);
    for (unsigned i = 0; i < depth; i++)
        t_put_hex(&b, i + 1 < depth ? "91" : "90");
    const int r = t_decode(weir_decode_dd_v07, b.at, b.len, NULL, NULL, NULL);
    t_buf_free(&b);
    return r;
}

TEST(values_may_nest_32_containers_deep_in_all)
{
    static const struct {
        const char *open;
        unsigned around;
    } rows[] = {
        {"81 a178", 1}, {"81" CHUNKS "91 81 a178", 3}, {"81" CHUNKS "91 81" SPANS "91 81 a178", 5}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        T_OK(decode_nested(rows[i].open, 32 - rows[i].around));
        T_ERR(decode_nested(rows[i].open, 33 - rows[i].around), WEIR_EFORMAT);
        T_ERR(decode_nested(rows[i].open, 10000), WEIR_EFORMAT);
    }
}

static int refuse_end(void *ctx)
{
    (*(unsigned *)ctx)++;
    return WEIR_EBUSY;
}

static int any_span(void *ctx, const struct weir_span *span)
{
    (void)ctx;
    (void)span;
    return WEIR_OK;
}

TEST(what_the_sink_says_at_the_end_of_a_trace_ends_the_walk)
{
    static const char *const payloads[] = {"81" CHUNKS "92 80 80",
                                           "81" CHUNKS "92 81" SPANS "90 80"};
    struct weir_tags *const tags = t_tags();
    struct weir_decoder *decoder = NULL;
    T_OK(weir_decoder_new(NULL, tags, &decoder));
    for (size_t i = 0; i < sizeof payloads / sizeof *payloads; i++) {
        unsigned ends = 0;
        const struct weir_span_sink sink = {
            .ctx = &ends, .span = any_span, .trace_end = refuse_end};
        struct t_buf b = {.at = NULL};
        t_put_hex(&b, payloads[i]);
        T_ERR(weir_decode_dd_v07(decoder, b.at, b.len, &sink, NULL, NULL), WEIR_EBUSY);
        T_EQ_U64(ends, 1);
        t_buf_free(&b);
    }
    weir_decoder_free(decoder);
    weir_tags_free(tags);
}
