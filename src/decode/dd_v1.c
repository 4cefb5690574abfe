/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dd_v1: Datadog v1.0: MessagePack maps with numbers for keys, and a streaming string table.
 *
 *   { 2..9 names of the tracer, 7 env; 10 attributes; 11 chunks [
 *       { 1 priority, 2 origin, 3 attributes, 4 spans [ { 1..16 } ], 6 trace id, 7 mechanism } ] }
 *
 * Idea: a string is text where it first stands and takes the next number (0 is ""), and is that
 * number from then on, so a key costs one load, as in v0.5 (dict.h).
 *
 * What a span needs stands behind it: tracers write the trace id after the spans. The first spans
 * of a chunk are therefore filled where they can wait, and handed over when the chunk has ended;
 * what follows them waits packed (dd_v1_kept.c). A chunk longer than that is read to its end, and
 * its further spans are then read again, with the strings known. Likewise the whole chunks, should
 * the payload's map go on behind them.
 *
 * Strings inside unknown members take numbers too, so these are read for them. A text that stands
 * there twice takes two numbers; "" takes none. No tracer writes either.
 *
 * Lenient: members in any order, unknown members, nil for an absent value, numbers of every form.
 * Refused: a number past the table, an attribute of unknown type or whose form is not its type's, a
 * trace id of other than 16 bytes, chunks or spans twice, and what v0.4 refuses.
 *
 * Threads, memory: see decoder.h; the table is dict.h's.
 */
#include "decode/dd_v1.h"

enum payload_key {
    PAYLOAD_STRINGS = 1, /* texts that take numbers; before all others */
    PAYLOAD_CONTAINER,
    PAYLOAD_LANGUAGE,
    PAYLOAD_LANGUAGE_VERSION,
    PAYLOAD_TRACER_VERSION,
    PAYLOAD_RUNTIME_ID,
    PAYLOAD_ENV,
    PAYLOAD_HOSTNAME,
    PAYLOAD_APP_VERSION,
    PAYLOAD_ATTRIBUTES,
    PAYLOAD_CHUNKS
};

enum chunk_key {
    CHUNK_PRIORITY = 1,
    CHUNK_ORIGIN,
    CHUNK_ATTRIBUTES,
    CHUNK_SPANS,
    CHUNK_DROPPED,
    CHUNK_TRACE_ID,
    CHUNK_MECHANISM
};

enum span_key {
    SPAN_SERVICE = 1,
    SPAN_NAME,
    SPAN_RESOURCE,
    SPAN_ID,
    SPAN_PARENT_ID,
    SPAN_START,
    SPAN_DURATION,
    SPAN_ERROR,
    SPAN_ATTRIBUTES,
    SPAN_TYPE,
    SPAN_LINKS,
    SPAN_EVENTS,
    SPAN_ENV,
    SPAN_VERSION,
    SPAN_COMPONENT,
    SPAN_KIND
};

/* What v0.4 has as text where v1.0 has a number. */
static const struct {
    char word[9];
    uint8_t len;
} kind_words[] = {{"", 0},       {"internal", 8}, {"server", 6},
                  {"client", 6}, {"producer", 8}, {"consumer", 8}};

struct chunk {
    struct weir_bytes origin;
    uint64_t trace_id_hi;
    uint64_t trace_id;
    uint32_t held; /* spans that wait */
    uint32_t kept; /* those behind them that wait in a row */
    uint32_t rest; /* and behind these: to be read again */
    const uint8_t *rest_at;
    bool saw_spans;
};

/* Spans. */

typedef const uint8_t *pass_fn(struct wr_v1 *v, const uint8_t *at);

/* There are nearly never any. */
WR_INLINE const uint8_t *pass_maps(struct wr_v1 *v, const uint8_t *at, pass_fn *pass)
{
    if (WR_LIKELY(at < v->dd.m.end && at[0] == 0x90))
        return at + 1;
    return pass(v, at);
}

/* A member that is an attribute in the other formats. Absent ones are "" here. */
WR_INLINE const uint8_t *read_tag(struct wr_v1 *v, const uint8_t *at,
                                  const struct weir_tag_match *match, struct wr_held *h)
{
    struct weir_bytes text;
    at = wr_v1_string(v, at, &text);
    if (at && match && text.len) {
        const struct weir_value value = wr_value_bytes(text.ptr, text.len);
        wr_put(v->dd.walk.decoder->tags, match, WEIR_IN_DD_META, &value, h->slots,
               &h->span.present);
    }
    return at;
}

static const uint8_t *read_kind(struct wr_v1 *v, const uint8_t *at, struct wr_held *h)
{
    uint64_t kind;
    at = wr_mp_u64(&v->dd.m, at, &kind);
    if (at && kind >= WEIR_KIND_INTERNAL && kind <= WEIR_KIND_CONSUMER) {
        const struct weir_value value = wr_value_bytes(kind_words[kind].word, kind_words[kind].len);
        wr_put(v->dd.walk.decoder->tags, v->kind_match, WEIR_IN_DD_META, &value, h->slots,
               &h->span.present);
        h->span.kind = (uint8_t)kind;
    }
    return at;
}

static const uint8_t *read_error(struct wr_v1 *v, const uint8_t *at, struct wr_held *h)
{
    bool error = false;
    at = wr_v1_bool(v, at, &error);
    if (error)
        h->span.flags |= WEIR_SPAN_ERROR;
    else
        h->span.flags &= (uint8_t)~WEIR_SPAN_ERROR;
    return at;
}

static const uint8_t *read_span_member(struct wr_v1 *v, const uint8_t *at, uint64_t key,
                                       struct wr_held *h)
{
    switch (key) {
    case SPAN_SERVICE:
        return wr_v1_string(v, at, &h->span.service);
    case SPAN_NAME:
        return wr_v1_string(v, at, &h->span.name);
    case SPAN_RESOURCE:
        return wr_v1_string(v, at, &h->span.resource);
    case SPAN_ID:
        return wr_mp_u64(&v->dd.m, at, &h->span.span_id);
    case SPAN_PARENT_ID:
        return wr_mp_u64(&v->dd.m, at, &h->span.parent_id);
    case SPAN_START:
        return wr_mp_i64(&v->dd.m, at, &h->span.start_ns);
    case SPAN_DURATION:
        return wr_mp_i64(&v->dd.m, at, &h->span.duration_ns);
    case SPAN_ERROR:
        return read_error(v, at, h);
    case SPAN_ATTRIBUTES:
        return wr_v1_attributes(v, at, h);
    case SPAN_TYPE:
        return wr_v1_string(v, at, &h->span.type);
    case SPAN_LINKS:
        return pass_maps(v, at, wr_v1_pass_links);
    case SPAN_EVENTS:
        return pass_maps(v, at, wr_v1_pass_events);
    case SPAN_ENV:
        return read_tag(v, at, v->env_match, h);
    case SPAN_VERSION:
        return read_tag(v, at, v->version_match, h);
    case SPAN_COMPONENT:
        return read_tag(v, at, v->component_match, h);
    case SPAN_KIND:
        return read_kind(v, at, h);
    default:
        return wr_v1_pass_unknown(v, at, WR_V1_SPAN_DEPTH);
    }
}

/* The kind by what its slot holds: a member's word, or text among the attributes. */
static void settle_kind(struct wr_held *h)
{
    struct weir_span *const span = &h->span;
    if (!(span->present & (uint64_t)1 << WEIR_TAG_KIND)) {
        span->kind = WEIR_KIND_NONE;
        return;
    }
    const struct weir_value *const slot = &h->slots[WEIR_TAG_KIND];
    if (slot->type != WEIR_VALUE_BYTES || slot->v.ptr != kind_words[span->kind].word)
        span->kind = (uint8_t)wr_dd_kind(slot);
}

static const uint8_t *read_span(struct wr_v1 *v, const uint8_t *at, struct wr_held *h)
{
    const uint8_t *const begin = at;
    uint32_t pairs;
    wr_span_clear(&h->span, h->slots);
    h->span.flags = WEIR_SPAN_DD;
    if (wr_v1_is_nil(&v->dd.m, at))
        return wr_mp_fail(&v->dd.m, at, WEIR_EFORMAT, "a span that is nil");
    at = wr_v1_map(v, at, &pairs);
    for (uint32_t i = 0; at && i < pairs; i++) {
        uint64_t key;
        at = wr_v1_key(v, at, &key);
        if (at)
            at = read_span_member(v, at, key, h);
    }
    if (!at)
        return NULL;
    settle_kind(h);
    h->span.raw_offset = (size_t)(begin - v->dd.m.begin);
    h->span.raw_bytes = (size_t)(at - begin);
    return at;
}

/* Chunks. */

static const uint8_t *read_spans(struct wr_v1 *v, const uint8_t *at, struct chunk *c)
{
    struct weir_decoder *const d = v->dd.walk.decoder;
    if (c->saw_spans)
        return wr_mp_fail(&v->dd.m, at, WEIR_EFORMAT, "spans of a chunk twice");
    c->saw_spans = true;
    uint32_t spans;
    at = wr_v1_array(v, at, &spans);
    if (!at)
        return NULL;
    c->held = spans < WR_HELD_SPANS ? spans : WR_HELD_SPANS;
    c->rest = spans - c->held;
    wr_v1_clear_kept(d);
    for (uint32_t i = 0; at && i < c->held; i++)
        at = read_span(v, at, &d->held[i]);
    bool waits = v->hands_over;
    c->rest_at = at;
    for (uint32_t i = c->rest; at && i > 0; i--) {
        at = read_span(v, at, &d->held[WR_HELD_SPANS]);
        waits = waits && at && wr_v1_keep(d, &d->held[WR_HELD_SPANS]);
        if (waits) {
            c->kept++;
            c->rest--;
            c->rest_at = at;
        }
    }
    return at;
}

static const uint8_t *read_trace_id(struct wr_v1 *v, const uint8_t *at, struct chunk *c)
{
    struct weir_bytes id;
    if (wr_v1_is_nil(&v->dd.m, at))
        return at + 1;
    const uint8_t *const next = wr_v1_bytes(v, at, &id);
    if (next && id.len != 16)
        return wr_mp_fail(&v->dd.m, at, WEIR_EFORMAT, "a trace id of other than 16 bytes");
    if (next) {
        c->trace_id_hi = wr_load64be(id.ptr);
        c->trace_id = wr_load64be(id.ptr + 8);
    }
    return next;
}

static const uint8_t *read_chunk_member(struct wr_v1 *v, const uint8_t *at, uint64_t key,
                                        struct chunk *c)
{
    int64_t priority;
    bool dropped;
    switch (key) {
    case CHUNK_PRIORITY:
        return wr_mp_i64(&v->dd.m, at, &priority);
    case CHUNK_ORIGIN:
        return wr_v1_string(v, at, &c->origin);
    case CHUNK_ATTRIBUTES:
        return wr_v1_pass_attributes(v, at, WR_V1_CHUNK_DEPTH);
    case CHUNK_SPANS:
        return read_spans(v, at, c);
    case CHUNK_DROPPED:
        return wr_v1_bool(v, at, &dropped);
    case CHUNK_TRACE_ID:
        return read_trace_id(v, at, c);
    case CHUNK_MECHANISM:
        return wr_v1_pass_u64(v, at);
    default:
        return wr_v1_pass_unknown(v, at, WR_V1_CHUNK_DEPTH);
    }
}

/* Give a span what its chunk and payload say, and the sink the span. */
static int hand_over(struct wr_v1 *v, const struct chunk *c, struct wr_held *h)
{
    const struct weir_tags *const tags = v->dd.walk.decoder->tags;
    h->span.trace_id_hi = c->trace_id_hi;
    h->span.trace_id = c->trace_id;
    if (v->env.len)
        wr_dd_put_absent(tags, v->env_match, v->env, h->slots, &h->span.present);
    if (c->origin.len)
        wr_dd_put_absent(tags, v->origin_match, c->origin, h->slots, &h->span.present);
    v->dd.walk.result.spans++;
    return v->dd.walk.sink ? v->dd.walk.sink->span(v->dd.walk.sink->ctx, &h->span) : WEIR_OK;
}

/* All spans of a chunk that has been read. */
static int hand_over_all(struct wr_v1 *v, const struct chunk *c)
{
    struct weir_decoder *const d = v->dd.walk.decoder;
    int r = WEIR_OK;
    for (uint32_t i = 0; r == WEIR_OK && i < c->held; i++)
        r = hand_over(v, c, &d->held[i]);
    struct wr_held *const last = &d->held[WR_HELD_SPANS];
    size_t kept_at = 0;
    for (uint32_t i = 0; r == WEIR_OK && i < c->kept; i++) {
        wr_v1_take_kept(d, &kept_at, last);
        r = hand_over(v, c, last);
    }
    const bool again = v->again;
    const uint8_t *at = c->rest_at;
    v->again = true;
    for (uint32_t i = 0; r == WEIR_OK && i < c->rest; i++) {
        at = read_span(v, at, last);
        WR_ASSERT(at);
        r = hand_over(v, c, last);
    }
    v->again = again;
    if (r != WEIR_OK)
        return r;
    v->dd.walk.result.traces++;
    return wr_trace_end(&v->dd.walk);
}

static const uint8_t *read_chunk(struct wr_v1 *v, const uint8_t *at)
{
    const uint8_t *const begin = at;
    struct chunk c = {.held = 0};
    uint32_t pairs;
    if (wr_v1_is_nil(&v->dd.m, at))
        return wr_mp_fail(&v->dd.m, at, WEIR_EFORMAT, "a chunk that is nil");
    at = wr_mp_map(&v->dd.m, at, &pairs);
    for (uint32_t i = 0; at && i < pairs; i++) {
        uint64_t key;
        at = wr_v1_key(v, at, &key);
        if (at)
            at = read_chunk_member(v, at, key, &c);
    }
    if (at && v->hands_over) {
        const int r = hand_over_all(v, &c);
        if (r != WEIR_OK)
            return wr_mp_fail(&v->dd.m, begin, r, NULL);
    }
    return at;
}

static const uint8_t *read_chunks(struct wr_v1 *v, const uint8_t *at)
{
    uint32_t chunks;
    at = wr_v1_array(v, at, &chunks);
    for (uint32_t i = 0; at && i < chunks; i++)
        at = read_chunk(v, at);
    return at;
}

/* The payload. */

static const uint8_t *read_strings(struct wr_v1 *v, const uint8_t *at)
{
    uint32_t strings;
    if (v->dd.walk.decoder->dict_count > 1)
        return wr_mp_fail(&v->dd.m, at, WEIR_EFORMAT, "strings behind the first string");
    at = wr_v1_array(v, at, &strings);
    for (uint32_t i = 0; at && i < strings; i++) {
        struct weir_bytes text;
        const uint8_t *const next = wr_mp_str(&v->dd.m, at, &text);
        at = next ? wr_v1_add_text(v, at, next, text) : NULL;
    }
    return at;
}

static const uint8_t *read_header(struct wr_v1 *v, const uint8_t *at, uint64_t key)
{
    switch (key) {
    case PAYLOAD_STRINGS:
        return read_strings(v, at);
    case PAYLOAD_ENV:
        return wr_v1_string(v, at, &v->env);
    case PAYLOAD_CONTAINER:
    case PAYLOAD_LANGUAGE:
    case PAYLOAD_LANGUAGE_VERSION:
    case PAYLOAD_TRACER_VERSION:
    case PAYLOAD_RUNTIME_ID:
    case PAYLOAD_HOSTNAME:
    case PAYLOAD_APP_VERSION:
        return wr_v1_pass_string(v, at);
    case PAYLOAD_ATTRIBUTES:
        return wr_v1_pass_attributes(v, at, WR_V1_PAYLOAD_DEPTH);
    case PAYLOAD_CHUNKS:
        if (v->saw_chunks)
            return wr_mp_fail(&v->dd.m, at, WEIR_EFORMAT, "chunks twice");
        v->saw_chunks = true;
        return read_chunks(v, at);
    default:
        return wr_v1_pass_unknown(v, at, WR_V1_PAYLOAD_DEPTH);
    }
}

static const uint8_t *read_payload(struct wr_v1 *v, const uint8_t *at)
{
    const uint8_t *early = NULL; /* chunks with members behind them */
    uint32_t pairs;
    if (wr_v1_is_nil(&v->dd.m, at))
        return wr_mp_fail(&v->dd.m, at, WEIR_EFORMAT, "a payload that is nil");
    at = wr_mp_map(&v->dd.m, at, &pairs);
    for (uint32_t i = 0; at && i < pairs; i++) {
        uint64_t key;
        at = wr_v1_key(v, at, &key);
        if (!at)
            return NULL;
        v->hands_over = i + 1 == pairs;
        if (key == PAYLOAD_CHUNKS && !v->hands_over && !early)
            early = at;
        at = read_header(v, at, key);
    }
    if (!at || !early)
        return at;
    v->hands_over = true;
    v->again = true;
    return read_chunks(v, early) ? at : NULL;
}

/* Number 0 is the empty string. */
static int begin_table(struct weir_decoder *d)
{
    d->dict_count = 0;
    return wr_dict_add(d, (struct weir_bytes){.ptr = "", .len = 0});
}

int weir_decode_dd_v1(struct weir_decoder *decoder, const void *payload, size_t bytes,
                      const struct weir_span_sink *sink, struct weir_decode_result *ret_result,
                      struct weir_where *ret_where)
{
    const struct weir_tags *const tags = decoder->tags;
    struct wr_v1 v = {
        .dd = {.m = wr_mp_init(payload, bytes), .walk = {.decoder = decoder, .sink = sink}},
        .env_match = weir_tags_find(tags, "env", 3),
        .version_match = weir_tags_find(tags, "version", 7),
        .component_match = weir_tags_find(tags, "component", 9),
        .kind_match = weir_tags_find(tags, "span.kind", 9),
        .origin_match = weir_tags_find(tags, "_dd.origin", 10)};
    if (begin_table(decoder) != WEIR_OK)
        return WEIR_ENOMEM;
    const uint8_t *const at = read_payload(&v, v.dd.m.begin);
    wr_dict_trim(decoder);
    return wr_dd_end(&v.dd, at, ret_result, ret_where);
}
