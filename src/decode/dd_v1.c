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
 * of a chunk are therefore filled where they can wait, and handed over when the chunk has ended; a
 * longer chunk is read to its end, and its further spans are then read again, with the strings
 * known. Likewise the whole chunks, should the payload's map go on behind them.
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
#include "decode/dd.h"
#include "decode/dict.h"

/* Containers around a value: of the payload, of a chunk, of a span. */
enum { PAYLOAD_DEPTH = 1, CHUNK_DEPTH = 3, SPAN_DEPTH = 5, LINK_DEPTH = 7 };

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

enum link_key { LINK_TRACE_ID = 1, LINK_SPAN_ID, LINK_ATTRIBUTES, LINK_STATE, LINK_FLAGS };
enum event_key { EVENT_TIME = 1, EVENT_NAME, EVENT_ATTRIBUTES };

enum attribute_type {
    ATTRIBUTE_TEXT = 1,
    ATTRIBUTE_BOOL,
    ATTRIBUTE_DOUBLE,
    ATTRIBUTE_INT,
    ATTRIBUTE_BYTES,
    ATTRIBUTE_ARRAY, /* flat: type, value, … */
    ATTRIBUTE_LIST   /* flat: key, type, value, … */
};

/* What v0.4 has as text where v1.0 has a number or a boolean. */
static const struct {
    char word[9];
    uint8_t len;
} kind_words[] = {{"", 0},       {"internal", 8}, {"server", 6},
                  {"client", 6}, {"producer", 8}, {"consumer", 8}};
static const char bool_words[][6] = {"false", "true"};

struct v1 {
    struct wr_dd dd;
    struct weir_bytes env; /* of the payload */
    /* What the members of a span are as attributes. */
    const struct weir_tag_match *env_match;
    const struct weir_tag_match *version_match;
    const struct weir_tag_match *component_match;
    const struct weir_tag_match *kind_match;
    const struct weir_tag_match *origin_match;
    bool again;      /* read before: the table has all strings */
    bool hands_over; /* spans go to the sink */
    bool saw_chunks;
};

struct chunk {
    struct weir_bytes origin;
    uint64_t trace_id_hi;
    uint64_t trace_id;
    uint32_t held; /* spans that wait */
    uint32_t rest; /* spans behind them */
    const uint8_t *rest_at;
    bool saw_spans;
};

/* Strings. */

WR_INLINE const uint8_t *add_text(struct v1 *v, const uint8_t *at, const uint8_t *next,
                                  struct weir_bytes text)
{
    struct weir_decoder *const d = v->dd.walk.decoder;
    if (v->again || text.len == 0)
        return next;
    if (d->dict_count == WR_DICT_MAX)
        return wr_mp_fail(&v->dd.m, at, WEIR_EFORMAT, "more than 2^20 strings");
    if (wr_dict_add(d, text) != WEIR_OK)
        return wr_mp_fail(&v->dd.m, at, WEIR_ENOMEM, NULL);
    return next;
}

static bool is_text(const struct wr_mp *m, const uint8_t *at)
{
    return at < m->end && ((at[0] & 0xe0) == 0xa0 || (at[0] >= 0xd9 && at[0] <= 0xdb));
}

/* Every form of a string; *ret_entry is NULL where it has no number. */
static const uint8_t *read_string_any(struct v1 *v, const uint8_t *at, struct weir_bytes *ret,
                                      struct wr_dict_entry **ret_entry)
{
    struct weir_decoder *const d = v->dd.walk.decoder;
    *ret_entry = NULL;
    if (is_text(&v->dd.m, at)) {
        const size_t before = d->dict_count;
        const uint8_t *const behind = wr_mp_str(&v->dd.m, at, ret);
        if (!behind || !add_text(v, at, behind, *ret))
            return NULL;
        if (d->dict_count != before)
            *ret_entry = &d->dict[before];
        return behind;
    }
    struct wr_mp_item item;
    const uint8_t *const next = wr_mp_item(&v->dd.m, at, &item);
    if (!next)
        return NULL;
    if (item.type == WR_MP_NIL) {
        *ret = (struct weir_bytes){.ptr = NULL, .len = 0};
        return next;
    }
    if (item.type != WR_MP_UINT)
        return wr_mp_fail(&v->dd.m, at, WEIR_EFORMAT, "not a string, nor the number of one");
    if (item.v.u >= d->dict_count)
        return wr_mp_fail(&v->dd.m, at, WEIR_EFORMAT, "string number out of range");
    struct wr_dict_entry *const e = &d->dict[item.v.u];
    *ret = (struct weir_bytes){.ptr = e->ptr, .len = e->len};
    *ret_entry = e;
    return next;
}

WR_INLINE const uint8_t *read_string(struct v1 *v, const uint8_t *at, struct weir_bytes *ret)
{
    const struct weir_decoder *const d = v->dd.walk.decoder;
    size_t number;
    const uint8_t *const next = wr_dict_number(&v->dd.m, at, &number);
    if (WR_LIKELY(next != at && number < d->dict_count)) {
        *ret = (struct weir_bytes){.ptr = d->dict[number].ptr, .len = d->dict[number].len};
        return next;
    }
    struct wr_dict_entry *e;
    return read_string_any(v, at, ret, &e);
}

/* A string that is read for its number only. */
static const uint8_t *pass_string(struct v1 *v, const uint8_t *at)
{
    struct weir_bytes text;
    return read_string(v, at, &text);
}

/* The key of an attribute: what it means. */
WR_INLINE const uint8_t *read_name(struct v1 *v, const uint8_t *at,
                                   const struct weir_tag_match **ret)
{
    struct weir_decoder *const d = v->dd.walk.decoder;
    size_t number;
    const uint8_t *next = wr_dict_number(&v->dd.m, at, &number);
    if (WR_LIKELY(next != at && number < d->dict_count)) {
        *ret = wr_dict_match(d->tags, &d->dict[number]);
        return next;
    }
    struct weir_bytes text = {.ptr = NULL, .len = 0};
    struct wr_dict_entry *e;
    next = read_string_any(v, at, &text, &e);
    if (!next)
        return NULL;
    if (e)
        *ret = wr_dict_match(d->tags, e);
    else /* nil, or read again */
        *ret = text.len ? wr_tags_find(d->tags, text.ptr, text.len) : NULL;
    return next;
}

/* An unknown member: its strings take numbers. depth: the containers around it. */
static const uint8_t *pass_unknown(struct v1 *v, const uint8_t *at, unsigned depth)
{
    const uint8_t *const end = wr_mp_skip(&v->dd.m, at, WEIR_DECODE_DEPTH_MAX - depth);
    /* Items stand one behind the other, however they nest. */
    while (end && at && at < end) {
        struct wr_mp_item item;
        const uint8_t *const next = wr_mp_item(&v->dd.m, at, &item);
        const struct weir_bytes text = {.ptr = (const char *)item.v.ptr, .len = item.len};
        at = next && item.type == WR_MP_STR ? add_text(v, at, next, text) : next;
    }
    return at ? end : NULL;
}

/* Values. */

/* The key of a member, or the type of an attribute: nearly always one byte. */
WR_INLINE const uint8_t *read_key(struct v1 *v, const uint8_t *at, uint64_t *ret)
{
    if (WR_LIKELY(at < v->dd.m.end && at[0] < 0x80)) {
        *ret = at[0];
        return at + 1;
    }
    return wr_mp_u64_any(&v->dd.m, at, ret);
}

static bool is_nil(const struct wr_mp *m, const uint8_t *at)
{
    return at < m->end && at[0] == 0xc0;
}

/* nil is an array of nothing. */
WR_INLINE const uint8_t *read_array(struct v1 *v, const uint8_t *at, uint32_t *ret)
{
    const size_t left = (size_t)(v->dd.m.end - at);
    if (left > 3 && at[0] == 0xdc) { /* more than five attributes */
        *ret = wr_load16be(at + 1);
        if (WR_LIKELY(*ret <= left - 3))
            return at + 3;
    }
    if (WR_UNLIKELY(is_nil(&v->dd.m, at))) {
        *ret = 0;
        return at + 1;
    }
    return wr_mp_array(&v->dd.m, at, ret);
}

/* Tracers write a span's 16 members in the wider form. */
WR_INLINE const uint8_t *read_map(struct v1 *v, const uint8_t *at, uint32_t *ret)
{
    const size_t left = (size_t)(v->dd.m.end - at);
    if (left > 3 && at[0] == 0xde) {
        *ret = wr_load16be(at + 1);
        if (WR_LIKELY(2 * (size_t)*ret <= left - 3))
            return at + 3;
    }
    return wr_mp_map(&v->dd.m, at, ret);
}

static const uint8_t *read_bool_any(struct v1 *v, const uint8_t *at, bool *ret)
{
    struct wr_mp_item item;
    const uint8_t *const next = wr_mp_item(&v->dd.m, at, &item);
    if (!next)
        return NULL;
    *ret = item.type == WR_MP_BOOL && item.v.u;
    if (item.type == WR_MP_BOOL || item.type == WR_MP_NIL)
        return next;
    return wr_mp_fail(&v->dd.m, at, WEIR_EFORMAT, "not a boolean");
}

WR_INLINE const uint8_t *read_bool(struct v1 *v, const uint8_t *at, bool *ret)
{
    if (WR_LIKELY(at < v->dd.m.end && (at[0] & 0xfe) == 0xc2)) {
        *ret = at[0] & 1;
        return at + 1;
    }
    return read_bool_any(v, at, ret);
}

static const uint8_t *read_bytes(struct v1 *v, const uint8_t *at, struct weir_bytes *ret)
{
    struct wr_mp_item item;
    const uint8_t *const next = wr_mp_item(&v->dd.m, at, &item);
    if (!next)
        return NULL;
    *ret = (struct weir_bytes){.ptr = (const char *)item.v.ptr, .len = item.len};
    if (item.type == WR_MP_BIN)
        return next;
    return wr_mp_fail(&v->dd.m, at, WEIR_EFORMAT, "not bytes");
}

static const uint8_t *pass_u64(struct v1 *v, const uint8_t *at)
{
    uint64_t number;
    return wr_mp_u64(&v->dd.m, at, &number);
}

static const uint8_t *pass_bytes(struct v1 *v, const uint8_t *at)
{
    struct weir_bytes bytes;
    return read_bytes(v, at, &bytes);
}

/* Attributes. depth counts the containers around the item. */

static const uint8_t *pass_attributes(struct v1 *v, const uint8_t *at, unsigned depth);
static const uint8_t *pass_values(struct v1 *v, const uint8_t *at, unsigned depth);

static const uint8_t *read_value_any(struct v1 *v, const uint8_t *at, uint64_t type, unsigned depth,
                                     struct weir_value *ret)
{
    bool truth = false;
    switch (type) {
    case ATTRIBUTE_BOOL:
        if (!is_nil(&v->dd.m, at))
            *ret = wr_value_bytes(bool_words[0], strlen(bool_words[0]));
        at = read_bool(v, at, &truth);
        if (truth)
            *ret = wr_value_bytes(bool_words[1], strlen(bool_words[1]));
        return at;
    case ATTRIBUTE_BYTES:
        return pass_bytes(v, at);
    case ATTRIBUTE_ARRAY:
        return pass_values(v, at, depth);
    case ATTRIBUTE_LIST:
        return pass_attributes(v, at, depth);
    default:
        return wr_mp_fail(&v->dd.m, at, WEIR_EFORMAT, "an attribute of unknown type");
    }
}

/* A type and a value; what is neither text nor number gives WEIR_VALUE_NONE. */
WR_INLINE const uint8_t *read_value(struct v1 *v, const uint8_t *at, unsigned depth,
                                    struct weir_value *ret)
{
    uint64_t type;
    at = read_key(v, at, &type);
    if (!at)
        return NULL;
    ret->type = WEIR_VALUE_NONE;
    if (WR_LIKELY(type == ATTRIBUTE_TEXT)) {
        struct weir_bytes text;
        at = read_string(v, at, &text);
        if (at && text.ptr)
            *ret = wr_value_bytes(text.ptr, text.len);
        return at;
    }
    if (WR_LIKELY(type == ATTRIBUTE_DOUBLE || type == ATTRIBUTE_INT))
        return wr_dd_number(&v->dd.m, at, ret);
    return read_value_any(v, at, type, depth, ret);
}

static const uint8_t *pass_values(struct v1 *v, const uint8_t *at, unsigned depth)
{
    const uint8_t *const begin = at;
    uint32_t items;
    at = read_array(v, at, &items);
    if (at && items % 2 != 0)
        return wr_mp_fail(&v->dd.m, begin, WEIR_EFORMAT, "an array of values not in pairs");
    if (at && depth >= WEIR_DECODE_DEPTH_MAX)
        return wr_mp_fail(&v->dd.m, begin, WEIR_EFORMAT, "nested too deep");
    for (uint32_t i = 0; at && i < items; i += 2) {
        struct weir_value value;
        at = read_value(v, at, depth + 1, &value);
    }
    return at;
}

WR_INLINE const uint8_t *read_attribute_count(struct v1 *v, const uint8_t *at, unsigned depth,
                                              uint32_t *ret)
{
    const uint8_t *const begin = at;
    at = read_array(v, at, ret);
    if (at && *ret % 3 != 0)
        return wr_mp_fail(&v->dd.m, begin, WEIR_EFORMAT, "attributes not in threes");
    if (at && depth >= WEIR_DECODE_DEPTH_MAX)
        return wr_mp_fail(&v->dd.m, begin, WEIR_EFORMAT, "nested too deep");
    return at;
}

static const uint8_t *pass_attributes(struct v1 *v, const uint8_t *at, unsigned depth)
{
    uint32_t items;
    at = read_attribute_count(v, at, depth, &items);
    for (uint32_t i = 0; at && i < items; i += 3) {
        struct weir_value value;
        at = pass_string(v, at);
        if (at)
            at = read_value(v, at, depth + 1, &value);
    }
    return at;
}

WR_INLINE const uint8_t *read_attributes(struct v1 *v, const uint8_t *at, struct wr_held *h)
{
    const struct weir_tags *const tags = v->dd.walk.decoder->tags;
    uint32_t items;
    at = read_attribute_count(v, at, SPAN_DEPTH, &items);
    for (uint32_t i = 0; at && i < items; i += 3) {
        const struct weir_tag_match *match;
        struct weir_value value;
        at = read_name(v, at, &match);
        if (!at)
            return NULL;
        at = read_value(v, at, SPAN_DEPTH + 1, &value);
        if (at && match && value.type != WEIR_VALUE_NONE)
            wr_put(tags, match,
                   value.type == WEIR_VALUE_BYTES ? WEIR_IN_DD_META : WEIR_IN_DD_METRICS, &value,
                   h->slots, &h->span.present);
    }
    return at;
}

/* Links and events: nothing is wanted of them, but they must be well formed. */

static const uint8_t *pass_link_member(struct v1 *v, const uint8_t *at, uint64_t key)
{
    switch (key) {
    case LINK_TRACE_ID:
        return pass_bytes(v, at);
    case LINK_SPAN_ID:
    case LINK_FLAGS:
        return pass_u64(v, at);
    case LINK_ATTRIBUTES:
        return pass_attributes(v, at, LINK_DEPTH);
    case LINK_STATE:
        return pass_string(v, at);
    default:
        return pass_unknown(v, at, LINK_DEPTH);
    }
}

static const uint8_t *pass_event_member(struct v1 *v, const uint8_t *at, uint64_t key)
{
    switch (key) {
    case EVENT_TIME:
        return pass_u64(v, at);
    case EVENT_NAME:
        return pass_string(v, at);
    case EVENT_ATTRIBUTES:
        return pass_attributes(v, at, LINK_DEPTH);
    default:
        return pass_unknown(v, at, LINK_DEPTH);
    }
}

typedef const uint8_t *member_fn(struct v1 *v, const uint8_t *at, uint64_t key);

static const uint8_t *pass_each_map(struct v1 *v, const uint8_t *at, member_fn *member)
{
    uint32_t maps;
    at = read_array(v, at, &maps);
    for (uint32_t i = 0; at && i < maps; i++) {
        uint32_t pairs;
        at = wr_mp_map(&v->dd.m, at, &pairs);
        for (uint32_t k = 0; at && k < pairs; k++) {
            uint64_t key;
            at = read_key(v, at, &key);
            if (at)
                at = member(v, at, key);
        }
    }
    return at;
}

/* There are nearly never any. */
WR_INLINE const uint8_t *pass_maps(struct v1 *v, const uint8_t *at, member_fn *member)
{
    if (WR_LIKELY(at < v->dd.m.end && at[0] == 0x90))
        return at + 1;
    return pass_each_map(v, at, member);
}

/* Spans. */

/* A member that is an attribute in the other formats. Absent ones are "" here. */
WR_INLINE const uint8_t *read_tag(struct v1 *v, const uint8_t *at,
                                  const struct weir_tag_match *match, struct wr_held *h)
{
    struct weir_bytes text;
    at = read_string(v, at, &text);
    if (at && match && text.len) {
        const struct weir_value value = wr_value_bytes(text.ptr, text.len);
        wr_put(v->dd.walk.decoder->tags, match, WEIR_IN_DD_META, &value, h->slots,
               &h->span.present);
    }
    return at;
}

static const uint8_t *read_kind(struct v1 *v, const uint8_t *at, struct wr_held *h)
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

static const uint8_t *read_error(struct v1 *v, const uint8_t *at, struct wr_held *h)
{
    bool error = false;
    at = read_bool(v, at, &error);
    if (error)
        h->span.flags |= WEIR_SPAN_ERROR;
    else
        h->span.flags &= (uint8_t)~WEIR_SPAN_ERROR;
    return at;
}

static const uint8_t *read_span_member(struct v1 *v, const uint8_t *at, uint64_t key,
                                       struct wr_held *h)
{
    switch (key) {
    case SPAN_SERVICE:
        return read_string(v, at, &h->span.service);
    case SPAN_NAME:
        return read_string(v, at, &h->span.name);
    case SPAN_RESOURCE:
        return read_string(v, at, &h->span.resource);
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
        return read_attributes(v, at, h);
    case SPAN_TYPE:
        return read_string(v, at, &h->span.type);
    case SPAN_LINKS:
        return pass_maps(v, at, pass_link_member);
    case SPAN_EVENTS:
        return pass_maps(v, at, pass_event_member);
    case SPAN_ENV:
        return read_tag(v, at, v->env_match, h);
    case SPAN_VERSION:
        return read_tag(v, at, v->version_match, h);
    case SPAN_COMPONENT:
        return read_tag(v, at, v->component_match, h);
    case SPAN_KIND:
        return read_kind(v, at, h);
    default:
        return pass_unknown(v, at, SPAN_DEPTH);
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

static const uint8_t *read_span(struct v1 *v, const uint8_t *at, struct wr_held *h)
{
    const uint8_t *const begin = at;
    uint32_t pairs;
    wr_span_clear(&h->span, h->slots);
    h->span.flags = WEIR_SPAN_DD;
    if (is_nil(&v->dd.m, at))
        return wr_mp_fail(&v->dd.m, at, WEIR_EFORMAT, "a span that is nil");
    at = read_map(v, at, &pairs);
    for (uint32_t i = 0; at && i < pairs; i++) {
        uint64_t key;
        at = read_key(v, at, &key);
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

static const uint8_t *read_spans(struct v1 *v, const uint8_t *at, struct chunk *c)
{
    struct weir_decoder *const d = v->dd.walk.decoder;
    if (c->saw_spans)
        return wr_mp_fail(&v->dd.m, at, WEIR_EFORMAT, "spans of a chunk twice");
    c->saw_spans = true;
    uint32_t spans;
    at = read_array(v, at, &spans);
    if (!at)
        return NULL;
    c->held = spans < WR_HELD_SPANS ? spans : WR_HELD_SPANS;
    c->rest = spans - c->held;
    for (uint32_t i = 0; at && i < c->held; i++)
        at = read_span(v, at, &d->held[i]);
    c->rest_at = at;
    for (uint32_t i = 0; at && i < c->rest; i++)
        at = read_span(v, at, &d->held[WR_HELD_SPANS]);
    return at;
}

static const uint8_t *read_trace_id(struct v1 *v, const uint8_t *at, struct chunk *c)
{
    struct weir_bytes id;
    if (is_nil(&v->dd.m, at))
        return at + 1;
    const uint8_t *const next = read_bytes(v, at, &id);
    if (next && id.len != 16)
        return wr_mp_fail(&v->dd.m, at, WEIR_EFORMAT, "a trace id of other than 16 bytes");
    if (next) {
        c->trace_id_hi = wr_load64be(id.ptr);
        c->trace_id = wr_load64be(id.ptr + 8);
    }
    return next;
}

static const uint8_t *read_chunk_member(struct v1 *v, const uint8_t *at, uint64_t key,
                                        struct chunk *c)
{
    int64_t priority;
    bool dropped;
    switch (key) {
    case CHUNK_PRIORITY:
        return wr_mp_i64(&v->dd.m, at, &priority);
    case CHUNK_ORIGIN:
        return read_string(v, at, &c->origin);
    case CHUNK_ATTRIBUTES:
        return pass_attributes(v, at, CHUNK_DEPTH);
    case CHUNK_SPANS:
        return read_spans(v, at, c);
    case CHUNK_DROPPED:
        return read_bool(v, at, &dropped);
    case CHUNK_TRACE_ID:
        return read_trace_id(v, at, c);
    case CHUNK_MECHANISM:
        return pass_u64(v, at);
    default:
        return pass_unknown(v, at, CHUNK_DEPTH);
    }
}

/* Give a span what its chunk and payload say, and the sink the span. */
static int hand_over(struct v1 *v, const struct chunk *c, struct wr_held *h)
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
static int hand_over_all(struct v1 *v, const struct chunk *c)
{
    struct weir_decoder *const d = v->dd.walk.decoder;
    int r = WEIR_OK;
    for (uint32_t i = 0; r == WEIR_OK && i < c->held; i++)
        r = hand_over(v, c, &d->held[i]);
    const bool again = v->again;
    const uint8_t *at = c->rest_at;
    v->again = true;
    for (uint32_t i = 0; r == WEIR_OK && i < c->rest; i++) {
        at = read_span(v, at, &d->held[WR_HELD_SPANS]);
        WR_ASSERT(at);
        r = hand_over(v, c, &d->held[WR_HELD_SPANS]);
    }
    v->again = again;
    if (r != WEIR_OK)
        return r;
    v->dd.walk.result.traces++;
    return wr_trace_end(&v->dd.walk);
}

static const uint8_t *read_chunk(struct v1 *v, const uint8_t *at)
{
    const uint8_t *const begin = at;
    struct chunk c = {.held = 0};
    uint32_t pairs;
    if (is_nil(&v->dd.m, at))
        return wr_mp_fail(&v->dd.m, at, WEIR_EFORMAT, "a chunk that is nil");
    at = wr_mp_map(&v->dd.m, at, &pairs);
    for (uint32_t i = 0; at && i < pairs; i++) {
        uint64_t key;
        at = read_key(v, at, &key);
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

static const uint8_t *read_chunks(struct v1 *v, const uint8_t *at)
{
    uint32_t chunks;
    at = read_array(v, at, &chunks);
    for (uint32_t i = 0; at && i < chunks; i++)
        at = read_chunk(v, at);
    return at;
}

/* The payload. */

static const uint8_t *read_strings(struct v1 *v, const uint8_t *at)
{
    uint32_t strings;
    if (v->dd.walk.decoder->dict_count > 1)
        return wr_mp_fail(&v->dd.m, at, WEIR_EFORMAT, "strings behind the first string");
    at = read_array(v, at, &strings);
    for (uint32_t i = 0; at && i < strings; i++) {
        struct weir_bytes text;
        const uint8_t *const next = wr_mp_str(&v->dd.m, at, &text);
        at = next ? add_text(v, at, next, text) : NULL;
    }
    return at;
}

static const uint8_t *read_header(struct v1 *v, const uint8_t *at, uint64_t key)
{
    switch (key) {
    case PAYLOAD_STRINGS:
        return read_strings(v, at);
    case PAYLOAD_ENV:
        return read_string(v, at, &v->env);
    case PAYLOAD_CONTAINER:
    case PAYLOAD_LANGUAGE:
    case PAYLOAD_LANGUAGE_VERSION:
    case PAYLOAD_TRACER_VERSION:
    case PAYLOAD_RUNTIME_ID:
    case PAYLOAD_HOSTNAME:
    case PAYLOAD_APP_VERSION:
        return pass_string(v, at);
    case PAYLOAD_ATTRIBUTES:
        return pass_attributes(v, at, PAYLOAD_DEPTH);
    case PAYLOAD_CHUNKS:
        if (v->saw_chunks)
            return wr_mp_fail(&v->dd.m, at, WEIR_EFORMAT, "chunks twice");
        v->saw_chunks = true;
        return read_chunks(v, at);
    default:
        return pass_unknown(v, at, PAYLOAD_DEPTH);
    }
}

static const uint8_t *read_payload(struct v1 *v, const uint8_t *at)
{
    const uint8_t *early = NULL; /* chunks with members behind them */
    uint32_t pairs;
    if (is_nil(&v->dd.m, at))
        return wr_mp_fail(&v->dd.m, at, WEIR_EFORMAT, "a payload that is nil");
    at = wr_mp_map(&v->dd.m, at, &pairs);
    for (uint32_t i = 0; at && i < pairs; i++) {
        uint64_t key;
        at = read_key(v, at, &key);
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
    struct v1 v = {
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
