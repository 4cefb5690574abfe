/* SPDX-License-Identifier: Apache-2.0 */
/*
 * same: the spans of a v0.4 body are the same by v0.7 and v1.0: fields, slots and values, as other
 * programs wrote them and as tests/support/transcode does.
 */
#include "support.h"
#include "transcode.h"

#include <stdlib.h>
#include <string.h>

static void same_text(struct weir_bytes a, struct weir_bytes b)
{
    T_EQ_BYTES(a.ptr, a.len, b.ptr, b.len);
}

static double number_of(const struct weir_value *v)
{
    return v->type == WEIR_VALUE_DOUBLE ? v->v.d : (double)v->v.i;
}

static void same_value(const struct weir_value *a, const struct weir_value *b)
{
    T_EQ_U64(a->rank, b->rank);
    T_EQ_U64(a->type == WEIR_VALUE_BYTES, b->type == WEIR_VALUE_BYTES);
    if (a->type == WEIR_VALUE_BYTES)
        T_EQ_BYTES(a->v.ptr, a->len, b->v.ptr, b->len);
    else
        T_EQ_DBL(number_of(a), number_of(b));
}

static void same_span(const struct t_kept *a, const struct t_kept *b, uint64_t except)
{
    same_text(a->span.service, b->span.service);
    same_text(a->span.name, b->span.name);
    same_text(a->span.resource, b->span.resource);
    same_text(a->span.type, b->span.type);
    T_EQ_U64(a->span.trace_id, b->span.trace_id);
    T_EQ_U64(a->span.span_id, b->span.span_id);
    T_EQ_U64(a->span.parent_id, b->span.parent_id);
    T_EQ_I64(a->span.start_ns, b->span.start_ns);
    T_EQ_I64(a->span.duration_ns, b->span.duration_ns);
    /* One writer makes of no kind internal; its slot is then excepted. */
    if (a->span.kind == WEIR_KIND_NONE && (except & (uint64_t)1 << WEIR_TAG_KIND))
        T_EQ_U64(b->span.kind, WEIR_KIND_INTERNAL);
    else
        T_EQ_U64(a->span.kind, b->span.kind);
    T_EQ_U64(a->span.flags, b->span.flags);
    T_EQ_U64(a->span.present & ~except, b->span.present & ~except);
    for (unsigned i = 0; i < WEIR_TAG_SLOTS_MAX; i++)
        if (a->span.present & ~except & (uint64_t)1 << i)
            same_value(&a->values[i], &b->values[i]);
}

/* except: slots that differ. Returns how many spans there are. */
static size_t same_spans(const struct t_buf *v04, t_decode_fn *decode, struct weir_bytes body,
                         uint64_t except)
{
    struct t_spans a = {.kept = NULL};
    struct t_spans b = {.kept = NULL};
    T_OK(t_decode(weir_decode_dd_v04, v04->at, v04->len, &a, NULL, NULL));
    T_OK(t_decode(decode, (const uint8_t *)body.ptr, body.len, &b, NULL, NULL));
    T_EQ_U64(a.count, b.count);
    T_EQ_U64(a.traces, b.traces);
    for (size_t i = 0; i < a.count; i++)
        same_span(&a.kept[i], &b.kept[i], except);
    const size_t count = a.count;
    t_spans_free(&a);
    t_spans_free(&b);
    return count;
}

static void transcode_and_compare(const struct t_buf *v04, size_t *spans)
{
    static bool (*const transcode[])(struct weir_bytes, struct wr_out *) = {t_transcode_v07,
                                                                            t_transcode_v1};
    t_decode_fn *const decode[] = {weir_decode_dd_v07, weir_decode_dd_v1};
    for (size_t i = 0; i < 2; i++) {
        struct wr_out out;
        wr_out_init(&out, NULL, (size_t)1 << 24);
        T_TRUE(transcode[i]((struct weir_bytes){(const char *)v04->at, v04->len}, &out));
        *spans += same_spans(v04, decode[i], (struct weir_bytes){out.ptr, out.len}, 0);
        wr_out_done(&out);
    }
}

TEST(golden_bodies_give_the_same_spans_by_v07_and_v1)
{
    static const char *const names[] = {"py-v04-12.v04.hex", "webflux.v04.hex",
                                        "v04-java-one-span.v04.hex"};
    size_t spans = 0;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct t_buf b = t_golden(names[i]);
        transcode_and_compare(&b, &spans);
        t_buf_free(&b);
    }
    T_EQ_U64(spans, 2 * (27 + 2 + 1));
}

TEST(every_recorded_v04_body_gives_the_same_spans_by_v07_and_v1)
{
    size_t size = 0;
    char *const text = (char *)t_read_file(T_SHARED_DIR "/vectors/clients/requests.tsv", &size);
    if (!text)
        T_SKIP_MISSING("vectors/clients/requests.tsv");
    size_t spans = 0;
    char *save = NULL;
    for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        const char *const folder = t_cell(&line);
        const char *const file = t_cell(&line);
        const char *const request = t_cell(&line);
        if (!request || !strstr(request, " /v0.4/traces "))
            continue;
        char name[512];
        (void)snprintf(name, sizeof name, "file:%s/%s", folder, file);
        struct t_buf b = t_body(name, T_SHARED_DIR "/vectors/clients");
        transcode_and_compare(&b, &spans);
        t_buf_free(&b);
    }
    free(text);
    T_EQ_U64(spans, 2 * (402 + 1800));
}

/* The trace-agent's own writers of both formats, given the v0.4 body. */
TEST(what_the_trace_agent_writes_of_a_v04_body_gives_the_same_spans)
{
    struct t_buf v04 = t_golden("py-v04-12.v04.hex");
    struct t_buf v07 = t_golden("py-v04-12.v07.hex");
    struct t_buf v1 = t_golden("py-v04-12.v1.hex");
    T_EQ_U64(same_spans(&v04, weir_decode_dd_v1, (struct weir_bytes){(const char *)v1.at, v1.len},
                        (uint64_t)1 << WEIR_TAG_KIND),
             27);
    /* Its env stands in the header, and its chunks have an origin. */
    T_EQ_U64(same_spans(&v04, weir_decode_dd_v07,
                        (struct weir_bytes){(const char *)v07.at, v07.len},
                        (uint64_t)1 << WEIR_TAG_ORIGIN),
             27);
    struct t_spans spans = {.kept = NULL};
    T_OK(t_decode(weir_decode_dd_v07, v07.at, v07.len, &spans, NULL, NULL));
    for (size_t i = 0; i < spans.count; i++)
        T_EQ_STR(t_slot(&spans.kept[i], WEIR_TAG_ORIGIN), "lambda");
    t_spans_free(&spans);
    t_buf_free(&v1);
    t_buf_free(&v07);
    t_buf_free(&v04);
}
