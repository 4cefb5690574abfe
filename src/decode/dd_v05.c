/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dd_v05: Datadog v0.5: MessagePack [strings, traces], a span an array of twelve.
 *
 * Idea: a key is an index into the dictionary (dict.h), so it costs one load.
 *
 * Lenient: a key of meta or metrics may be a string instead of an index. dd-trace-java 1.68.1 so
 * writes _dd.partial_version and _dd.was_long_running (contracts: trace-encoding §2.3), and a
 * refusal would lose every payload with a long-running span. Refused: an index out of range, a
 * span of other than twelve elements.
 *
 * Threads, memory: see decoder.h.
 */
#include "decode/dd.h"
#include "decode/dict.h"

#define SPAN_ELEMENTS 12u

static const uint8_t *read_dict(struct wr_dd *dd, const uint8_t *at)
{
    struct weir_decoder *const d = dd->walk.decoder;
    uint32_t count;
    const uint8_t *const begin = at;
    d->dict_count = 0;
    at = wr_mp_array(&dd->m, at, &count);
    if (at && count > WR_DICT_MAX)
        return wr_mp_fail(&dd->m, begin, WEIR_EFORMAT, "more than 2^20 dictionary strings");
    for (uint32_t i = 0; at && i < count; i++) {
        struct weir_bytes text;
        at = wr_mp_str(&dd->m, at, &text);
        if (!at)
            return NULL;
        if (wr_dict_add(d, text) != WEIR_OK)
            return wr_mp_fail(&dd->m, begin, WEIR_ENOMEM, NULL);
    }
    return at;
}

/* Every form of an index. */
static const uint8_t *read_index(struct wr_dd *dd, const uint8_t *at, struct wr_dict_entry **ret)
{
    struct weir_decoder *const d = dd->walk.decoder;
    uint64_t index;
    if (at < dd->m.end && at[0] == 0xc0)
        return wr_mp_fail(&dd->m, at, WEIR_EFORMAT, "a dictionary index that is nil");
    const uint8_t *const next = wr_mp_u64(&dd->m, at, &index);
    if (!next)
        return NULL;
    if (index >= d->dict_count)
        return wr_mp_fail(&dd->m, at, WEIR_EFORMAT, "dictionary index out of range");
    *ret = &d->dict[index];
    return next;
}

WR_INLINE const uint8_t *read_string(struct wr_dd *dd, const uint8_t *at, struct weir_bytes *ret)
{
    const struct weir_decoder *const d = dd->walk.decoder;
    size_t number;
    const uint8_t *const fast = wr_dict_number(&dd->m, at, &number);
    if (WR_LIKELY(fast != at && number < d->dict_count)) {
        *ret = (struct weir_bytes){.ptr = d->dict[number].ptr, .len = d->dict[number].len};
        return fast;
    }
    struct wr_dict_entry *e = NULL;
    at = read_index(dd, at, &e);
    if (at && e)
        *ret = (struct weir_bytes){.ptr = e->ptr, .len = e->len};
    return at;
}

static bool is_string(const struct wr_mp *m, const uint8_t *at)
{
    return at < m->end && ((at[0] & 0xe0) == 0xa0 || (at[0] >= 0xd9 && at[0] <= 0xdb));
}

WR_INLINE const uint8_t *read_key(struct wr_dd *dd, const uint8_t *at,
                                  const struct weir_tag_match **ret)
{
    struct weir_decoder *const d = dd->walk.decoder;
    const struct weir_tags *const tags = d->tags;
    size_t number;
    const uint8_t *const fast = wr_dict_number(&dd->m, at, &number);
    if (WR_LIKELY(fast != at && number < d->dict_count)) {
        *ret = wr_dict_match(tags, &d->dict[number]);
        return fast;
    }
    if (WR_UNLIKELY(is_string(&dd->m, at))) {
        struct weir_bytes key;
        at = wr_mp_str(&dd->m, at, &key);
        if (at)
            *ret = wr_tags_find(tags, key.ptr, key.len);
        return at;
    }
    struct wr_dict_entry *e = NULL;
    at = read_index(dd, at, &e);
    if (at && e)
        *ret = wr_dict_match(tags, e);
    return at;
}

static const uint8_t *read_meta(struct wr_dd *dd, const uint8_t *at)
{
    uint32_t pairs;
    at = wr_mp_map(&dd->m, at, &pairs);
    for (uint32_t i = 0; at && i < pairs; i++) {
        const struct weir_tag_match *match = NULL;
        struct weir_bytes text = {.ptr = NULL, .len = 0};
        at = read_key(dd, at, &match);
        if (!at)
            return NULL;
        at = read_string(dd, at, &text);
        if (at && match && text.ptr) {
            const struct weir_value value = wr_value_bytes(text.ptr, text.len);
            wr_dd_put(dd, match, WEIR_IN_DD_META, &value);
        }
    }
    return at;
}

static const uint8_t *read_metrics(struct wr_dd *dd, const uint8_t *at)
{
    uint32_t pairs;
    at = wr_mp_map(&dd->m, at, &pairs);
    for (uint32_t i = 0; at && i < pairs; i++) {
        const struct weir_tag_match *match = NULL;
        struct weir_value value;
        at = read_key(dd, at, &match);
        if (!at)
            return NULL;
        at = wr_dd_number(&dd->m, at, &value);
        if (at && match && value.type != WEIR_VALUE_NONE)
            wr_dd_put(dd, match, WEIR_IN_DD_METRICS, &value);
    }
    return at;
}

/* Elements 3..8: trace, span and parent id, start, duration, error. */
static const uint8_t *read_numbers(struct wr_dd *dd, const uint8_t *at)
{
    struct weir_span *const span = &dd->walk.decoder->span;
    struct wr_mp *const m = &dd->m;
    int64_t error = 0;
    at = wr_mp_u64(m, at, &span->trace_id);
    if (at)
        at = wr_mp_u64(m, at, &span->span_id);
    if (at)
        at = wr_mp_u64(m, at, &span->parent_id);
    if (at)
        at = wr_mp_i64(m, at, &span->start_ns);
    if (at)
        at = wr_mp_i64(m, at, &span->duration_ns);
    if (at)
        at = wr_mp_i64(m, at, &error);
    if (at && error != 0)
        span->flags |= WEIR_SPAN_ERROR;
    return at;
}

static const uint8_t *read_span(struct wr_dd *dd, const uint8_t *at)
{
    struct weir_span *const span = &dd->walk.decoder->span;
    const uint8_t *const begin = at;
    uint32_t elements;
    at = wr_mp_array(&dd->m, at, &elements);
    if (at && elements != SPAN_ELEMENTS)
        return wr_mp_fail(&dd->m, begin, WEIR_EFORMAT, "a span of other than 12 elements");
    if (at)
        at = read_string(dd, at, &span->service);
    if (at)
        at = read_string(dd, at, &span->name);
    if (at)
        at = read_string(dd, at, &span->resource);
    if (at)
        at = read_numbers(dd, at);
    if (at)
        at = read_meta(dd, at);
    if (at)
        at = read_metrics(dd, at);
    if (at)
        at = read_string(dd, at, &span->type);
    return at;
}

int weir_decode_dd_v05(struct weir_decoder *decoder, const void *payload, size_t bytes,
                       const struct weir_span_sink *sink, struct weir_decode_result *ret_result,
                       struct weir_where *ret_where)
{
    struct wr_dd dd = {.m = wr_mp_init(payload, bytes), .walk = {.decoder = decoder, .sink = sink}};
    uint32_t elements;
    const uint8_t *at = wr_mp_array(&dd.m, dd.m.begin, &elements);
    if (at && elements != 2)
        at = wr_mp_fail(&dd.m, dd.m.begin, WEIR_EFORMAT, "not [strings, traces]");
    if (at)
        at = read_dict(&dd, at);
    if (at)
        at = wr_dd_traces(&dd, at, read_span);
    wr_dict_trim(decoder);
    return wr_dd_end(&dd, at, ret_result, ret_where);
}
