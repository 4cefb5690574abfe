/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dd_v04: Datadog v0.3 and v0.4: MessagePack array of traces of span maps.
 *
 * Idea: spans of one tracer have the same keys at the same places. The framed bytes of each key are
 * compared with those of the key at that place in the previous span, before anything is parsed
 * (contracts: engine §2.11: a walk of 143 ns went to 121); a miss parses, looks up, remembers.
 *
 * What is lenient: any key order, unknown keys (skipped by structure), nil for absent, str or bin,
 * every integer form, keys that repeat (maps add up, of scalars the last wins). What is refused: a
 * known key with another type, negative ids, times past int64, bytes after the payload.
 *
 * Threads, memory: see decoder.h.
 */
#include "decode/dd.h"

/* Containers around a value of a span map: traces, trace, span. */
#define SPAN_DEPTH 3u

enum field {
    FIELD_UNKNOWN = 0,
    FIELD_SERVICE,
    FIELD_NAME,
    FIELD_RESOURCE,
    FIELD_TYPE,
    FIELD_TRACE_ID,
    FIELD_SPAN_ID,
    FIELD_PARENT_ID,
    FIELD_START,
    FIELD_DURATION,
    FIELD_ERROR,
    FIELD_META,
    FIELD_METRICS
};

static enum field field_of(const struct weir_bytes *key)
{
    static const struct {
        char name[10];
        uint8_t len;
        uint8_t field;
    } fields[] = {
        {"service", 7, FIELD_SERVICE},   {"name", 4, FIELD_NAME},
        {"resource", 8, FIELD_RESOURCE}, {"type", 4, FIELD_TYPE},
        {"trace_id", 8, FIELD_TRACE_ID}, {"span_id", 7, FIELD_SPAN_ID},
        {"start", 5, FIELD_START},       {"duration", 8, FIELD_DURATION},
        {"error", 5, FIELD_ERROR},       {"meta", 4, FIELD_META},
        {"metrics", 7, FIELD_METRICS},   {"parent_id", 9, FIELD_PARENT_ID},
    };
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++)
        if (key->len == fields[i].len && memcmp(key->ptr, fields[i].name, fields[i].len) == 0)
            return (enum field)fields[i].field;
    return FIELD_UNKNOWN;
}

/* Is the key at `at` the remembered one? */
WR_INLINE bool shape_hit(const struct wr_shape *s, const uint8_t *at, const uint8_t *end)
{
    if ((size_t)(end - at) < s->need || ((wr_load64le(at) ^ s->head) & s->mask))
        return false;
    return s->len <= 8 ||
           (wr_load64le(at + s->len - 8) == s->tail && wr_same_middle(at, s->framed, s->len));
}

static void shape_learn(struct wr_shape *s, const uint8_t *at, size_t len, const uint8_t *end)
{
    s->len = len;
    s->need = len < 8 ? 8 : len;
    s->framed = at;
    if ((size_t)(end - at) < 8) {
        s->need = SIZE_MAX; /* the payload ends here: nothing to predict */
        return;
    }
    s->head = wr_load64le(at);
    s->mask = len < 8 ? ((uint64_t)1 << (8 * len)) - 1 : UINT64_MAX;
    s->tail = len > 8 ? wr_load64le(at + len - 8) : 0;
}

/* The framed keys are borrowed from the payload: none may outlive it. */
void wr_dd_v04_forget(struct weir_decoder *d)
{
    for (size_t i = 0; i < WR_SHAPE_FIELDS; i++)
        d->shape_fields[i].need = SIZE_MAX;
    for (size_t i = 0; i < WR_SHAPE_META; i++)
        d->shape_meta[i].need = SIZE_MAX;
    for (size_t i = 0; i < WR_SHAPE_METRICS; i++)
        d->shape_metrics[i].need = SIZE_MAX;
}

static const uint8_t *read_key_bytes(struct wr_mp *m, const uint8_t *at, struct weir_bytes *ret)
{
    const uint8_t *const next = wr_mp_str(m, at, ret);
    if (next && !ret->ptr)
        return wr_mp_fail(m, at, WEIR_EFORMAT, "a key that is nil");
    return next;
}

/* The key of a meta or metrics map. s NULL: past the remembered ones. */
WR_INLINE const uint8_t *read_tag_key(struct wr_dd *dd, const uint8_t *at, struct wr_shape *s,
                                      const struct weir_tag_match **ret)
{
    if (WR_LIKELY(s && shape_hit(s, at, dd->m.end))) {
        *ret = s->is.match;
        return at + s->len;
    }
    struct weir_bytes key;
    const uint8_t *const next = read_key_bytes(&dd->m, at, &key);
    if (!next)
        return NULL;
    *ret = wr_tags_find(dd->walk.decoder->tags, key.ptr, key.len);
    if (s) {
        shape_learn(s, at, (size_t)(next - at), dd->m.end);
        s->is.match = *ret;
    }
    return next;
}

static const uint8_t *read_meta(struct wr_dd *dd, const uint8_t *at)
{
    struct wr_shape *const shapes = dd->walk.decoder->shape_meta;
    uint32_t pairs;
    at = wr_mp_map(&dd->m, at, &pairs);
    for (uint32_t i = 0; at && i < pairs; i++) {
        const struct weir_tag_match *match;
        struct weir_bytes text;
        at = read_tag_key(dd, at, i < WR_SHAPE_META ? &shapes[i] : NULL, &match);
        if (!at)
            return NULL;
        at = wr_mp_str(&dd->m, at, &text);
        if (at && match && text.ptr) {
            const struct weir_value value = wr_value_bytes(text.ptr, text.len);
            wr_dd_put(dd, match, WEIR_IN_DD_META, &value);
        }
    }
    return at;
}

static const uint8_t *read_metrics(struct wr_dd *dd, const uint8_t *at)
{
    struct wr_shape *const shapes = dd->walk.decoder->shape_metrics;
    uint32_t pairs;
    at = wr_mp_map(&dd->m, at, &pairs);
    for (uint32_t i = 0; at && i < pairs; i++) {
        const struct weir_tag_match *match;
        struct weir_value value;
        at = read_tag_key(dd, at, i < WR_SHAPE_METRICS ? &shapes[i] : NULL, &match);
        if (!at)
            return NULL;
        at = wr_dd_number(&dd->m, at, &value);
        if (at && match && value.type != WEIR_VALUE_NONE)
            wr_dd_put(dd, match, WEIR_IN_DD_METRICS, &value);
    }
    return at;
}

static const uint8_t *read_error(struct wr_dd *dd, const uint8_t *at)
{
    int64_t error;
    at = wr_mp_i64(&dd->m, at, &error);
    if (!at)
        return NULL;
    struct weir_span *const span = &dd->walk.decoder->span;
    if (error != 0)
        span->flags |= WEIR_SPAN_ERROR;
    else
        span->flags &= (uint8_t)~WEIR_SPAN_ERROR;
    return at;
}

static const uint8_t *read_value(struct wr_dd *dd, const uint8_t *at, enum field field)
{
    struct wr_mp *const m = &dd->m;
    struct weir_span *const span = &dd->walk.decoder->span;
    switch (field) {
    case FIELD_SERVICE:
        return wr_mp_str(m, at, &span->service);
    case FIELD_NAME:
        return wr_mp_str(m, at, &span->name);
    case FIELD_RESOURCE:
        return wr_mp_str(m, at, &span->resource);
    case FIELD_TYPE:
        return wr_mp_str(m, at, &span->type);
    case FIELD_TRACE_ID:
        return wr_mp_u64(m, at, &span->trace_id);
    case FIELD_SPAN_ID:
        return wr_mp_u64(m, at, &span->span_id);
    case FIELD_PARENT_ID:
        return wr_mp_u64(m, at, &span->parent_id);
    case FIELD_START:
        return wr_mp_i64(m, at, &span->start_ns);
    case FIELD_DURATION:
        return wr_mp_i64(m, at, &span->duration_ns);
    case FIELD_ERROR:
        return read_error(dd, at);
    case FIELD_META:
        return read_meta(dd, at);
    case FIELD_METRICS:
        return read_metrics(dd, at);
    case FIELD_UNKNOWN:
        break;
    }
    return wr_mp_skip(m, at, WEIR_DECODE_DEPTH_MAX - dd->span_depth);
}

static const uint8_t *read_field_key(struct wr_dd *dd, const uint8_t *at, struct wr_shape *s,
                                     enum field *ret)
{
    if (WR_LIKELY(s && shape_hit(s, at, dd->m.end))) {
        *ret = (enum field)s->is.field;
        return at + s->len;
    }
    struct weir_bytes key;
    const uint8_t *const next = read_key_bytes(&dd->m, at, &key);
    if (!next)
        return NULL;
    *ret = field_of(&key);
    if (s) {
        shape_learn(s, at, (size_t)(next - at), dd->m.end);
        s->is.field = *ret;
    }
    return next;
}

const uint8_t *wr_dd_v04_span(struct wr_dd *dd, const uint8_t *at)
{
    struct wr_shape *const shapes = dd->walk.decoder->shape_fields;
    uint32_t pairs;
    if (at < dd->m.end && at[0] == 0xc0)
        return wr_mp_fail(&dd->m, at, WEIR_EFORMAT, "a span that is nil");
    at = wr_mp_map(&dd->m, at, &pairs);
    for (uint32_t i = 0; at && i < pairs; i++) {
        enum field field;
        at = read_field_key(dd, at, i < WR_SHAPE_FIELDS ? &shapes[i] : NULL, &field);
        if (!at)
            return NULL;
        at = read_value(dd, at, field);
    }
    return at;
}

int weir_decode_dd_v04(struct weir_decoder *decoder, const void *payload, size_t bytes,
                       const struct weir_span_sink *sink, struct weir_decode_result *ret_result,
                       struct weir_where *ret_where)
{
    struct wr_dd dd = {.m = wr_mp_init(payload, bytes),
                       .walk = {.decoder = decoder, .sink = sink},
                       .span_depth = SPAN_DEPTH};
    wr_dd_v04_forget(decoder);
    const uint8_t *const at = wr_dd_traces(&dd, dd.m.begin, wr_dd_v04_span);
    return wr_dd_end(&dd, at, ret_result, ret_where);
}
