/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WR_DECODE_DD_V1_H
#define WR_DECODE_DD_V1_H
/*
 * dd_v1: strings, values and attributes of Datadog v1.0, for dd_v1.c. What nearly every item is, is
 * inline here; the rest is in dd_v1_value.c. All return where the next item begins, or NULL with
 * the reason in dd.m. depth counts the containers around the item.
 */
#include "decode/dd.h"
#include "decode/dict.h"

/* Containers around a value: of the payload, of a chunk, of a span. */
enum { PAYLOAD_DEPTH = 1, CHUNK_DEPTH = 3, SPAN_DEPTH = 5, LINK_DEPTH = 7 };

enum attribute_type {
    ATTRIBUTE_TEXT = 1,
    ATTRIBUTE_BOOL,
    ATTRIBUTE_DOUBLE,
    ATTRIBUTE_INT,
    ATTRIBUTE_BYTES,
    ATTRIBUTE_ARRAY, /* flat: type, value, … */
    ATTRIBUTE_LIST   /* flat: key, type, value, … */
};

struct wr_v1 {
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

/* dd_v1_value.c */
/* Every form of a string; *ret_entry is NULL where it has no number. */
const uint8_t *wr_v1_read_string_any(struct wr_v1 *v, const uint8_t *at, struct weir_bytes *ret,
                                     struct wr_dict_entry **ret_entry);
/* A string that is read for its number only. */
const uint8_t *wr_v1_pass_string(struct wr_v1 *v, const uint8_t *at);
/* An unknown member: its strings take numbers. depth: the containers around it. */
const uint8_t *wr_v1_pass_unknown(struct wr_v1 *v, const uint8_t *at, unsigned depth);
const uint8_t *wr_v1_read_bool_any(struct wr_v1 *v, const uint8_t *at, bool *ret);
const uint8_t *wr_v1_read_bytes(struct wr_v1 *v, const uint8_t *at, struct weir_bytes *ret);
const uint8_t *wr_v1_pass_u64(struct wr_v1 *v, const uint8_t *at);
const uint8_t *wr_v1_pass_bytes(struct wr_v1 *v, const uint8_t *at);
const uint8_t *wr_v1_read_value_any(struct wr_v1 *v, const uint8_t *at, uint64_t type,
                                    unsigned depth, struct weir_value *ret);
const uint8_t *wr_v1_pass_values(struct wr_v1 *v, const uint8_t *at, unsigned depth);
const uint8_t *wr_v1_pass_attributes(struct wr_v1 *v, const uint8_t *at, unsigned depth);

WR_INLINE bool wr_v1_is_nil(const struct wr_mp *m, const uint8_t *at)
{
    return at < m->end && at[0] == 0xc0;
}

/* Strings. */

WR_INLINE const uint8_t *wr_v1_add_text(struct wr_v1 *v, const uint8_t *at, const uint8_t *next,
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

WR_INLINE const uint8_t *wr_v1_read_string(struct wr_v1 *v, const uint8_t *at,
                                           struct weir_bytes *ret)
{
    const struct weir_decoder *const d = v->dd.walk.decoder;
    size_t number;
    const uint8_t *const next = wr_dict_number(&v->dd.m, at, &number);
    if (WR_LIKELY(next != at && number < d->dict_count)) {
        *ret = (struct weir_bytes){.ptr = d->dict[number].ptr, .len = d->dict[number].len};
        return next;
    }
    struct wr_dict_entry *e;
    return wr_v1_read_string_any(v, at, ret, &e);
}

/* The key of an attribute: what it means. */
WR_INLINE const uint8_t *wr_v1_read_name(struct wr_v1 *v, const uint8_t *at,
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
    next = wr_v1_read_string_any(v, at, &text, &e);
    if (!next)
        return NULL;
    if (e)
        *ret = wr_dict_match(d->tags, e);
    else /* nil, or read again */
        *ret = text.len ? wr_tags_find(d->tags, text.ptr, text.len) : NULL;
    return next;
}

/* Values. */

/* The key of a member, or the type of an attribute: nearly always one byte. */
WR_INLINE const uint8_t *wr_v1_read_key(struct wr_v1 *v, const uint8_t *at, uint64_t *ret)
{
    if (WR_LIKELY(at < v->dd.m.end && at[0] < 0x80)) {
        *ret = at[0];
        return at + 1;
    }
    return wr_mp_u64_any(&v->dd.m, at, ret);
}

/* nil is an array of nothing. */
WR_INLINE const uint8_t *wr_v1_read_array(struct wr_v1 *v, const uint8_t *at, uint32_t *ret)
{
    const size_t left = (size_t)(v->dd.m.end - at);
    if (left > 3 && at[0] == 0xdc) { /* more than five attributes */
        *ret = wr_load16be(at + 1);
        if (WR_LIKELY(*ret <= left - 3))
            return at + 3;
    }
    if (WR_UNLIKELY(wr_v1_is_nil(&v->dd.m, at))) {
        *ret = 0;
        return at + 1;
    }
    return wr_mp_array(&v->dd.m, at, ret);
}

/* Tracers write a span's 16 members in the wider form. */
WR_INLINE const uint8_t *wr_v1_read_map(struct wr_v1 *v, const uint8_t *at, uint32_t *ret)
{
    const size_t left = (size_t)(v->dd.m.end - at);
    if (left > 3 && at[0] == 0xde) {
        *ret = wr_load16be(at + 1);
        if (WR_LIKELY(2 * (size_t)*ret <= left - 3))
            return at + 3;
    }
    return wr_mp_map(&v->dd.m, at, ret);
}

WR_INLINE const uint8_t *wr_v1_read_bool(struct wr_v1 *v, const uint8_t *at, bool *ret)
{
    if (WR_LIKELY(at < v->dd.m.end && (at[0] & 0xfe) == 0xc2)) {
        *ret = at[0] & 1;
        return at + 1;
    }
    return wr_v1_read_bool_any(v, at, ret);
}

/* Attributes. depth counts the containers around the item. */

/* A type and a value; what is neither text nor number gives WEIR_VALUE_NONE. */
WR_INLINE const uint8_t *wr_v1_read_value(struct wr_v1 *v, const uint8_t *at, unsigned depth,
                                          struct weir_value *ret)
{
    uint64_t type;
    at = wr_v1_read_key(v, at, &type);
    if (!at)
        return NULL;
    ret->type = WEIR_VALUE_NONE;
    if (WR_LIKELY(type == ATTRIBUTE_TEXT)) {
        struct weir_bytes text;
        at = wr_v1_read_string(v, at, &text);
        if (at && text.ptr)
            *ret = wr_value_bytes(text.ptr, text.len);
        return at;
    }
    if (WR_LIKELY(type == ATTRIBUTE_DOUBLE || type == ATTRIBUTE_INT))
        return wr_dd_number(&v->dd.m, at, ret);
    return wr_v1_read_value_any(v, at, type, depth, ret);
}

WR_INLINE const uint8_t *wr_v1_read_attribute_count(struct wr_v1 *v, const uint8_t *at,
                                                    unsigned depth, uint32_t *ret)
{
    const uint8_t *const begin = at;
    at = wr_v1_read_array(v, at, ret);
    if (at && *ret % 3 != 0)
        return wr_mp_fail(&v->dd.m, begin, WEIR_EFORMAT, "attributes not in threes");
    if (at && depth >= WEIR_DECODE_DEPTH_MAX)
        return wr_mp_fail(&v->dd.m, begin, WEIR_EFORMAT, "nested too deep");
    return at;
}

WR_INLINE const uint8_t *wr_v1_read_attributes(struct wr_v1 *v, const uint8_t *at,
                                               struct wr_held *h)
{
    const struct weir_tags *const tags = v->dd.walk.decoder->tags;
    uint32_t items;
    at = wr_v1_read_attribute_count(v, at, SPAN_DEPTH, &items);
    for (uint32_t i = 0; at && i < items; i += 3) {
        const struct weir_tag_match *match;
        struct weir_value value;
        at = wr_v1_read_name(v, at, &match);
        if (!at)
            return NULL;
        at = wr_v1_read_value(v, at, SPAN_DEPTH + 1, &value);
        if (at && match && value.type != WEIR_VALUE_NONE)
            wr_put(tags, match,
                   value.type == WEIR_VALUE_BYTES ? WEIR_IN_DD_META : WEIR_IN_DD_METRICS, &value,
                   h->slots, &h->span.present);
    }
    return at;
}

#endif
