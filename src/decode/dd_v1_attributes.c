/* SPDX-License-Identifier: Apache-2.0 */
/* dd_v1_attributes: flat arrays of keys, types and values; links and events. See dd_v1.h. */
#include "decode/dd_v1.h"

/* Containers around a value of a link or an event. */
enum { LINK_DEPTH = 7 };

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

/* What v0.4 has as text where v1.0 has a boolean. */
static const char bool_words[][6] = {"false", "true"};

/* The key of an attribute: what it means. */
WR_INLINE const uint8_t *read_name(struct wr_v1 *v, const uint8_t *at,
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
    next = wr_v1_string_any(v, at, &text, &e);
    if (!next)
        return NULL;
    if (e)
        *ret = wr_dict_match(d->tags, e);
    else /* nil, or read again */
        *ret = text.len ? wr_tags_find(d->tags, text.ptr, text.len) : NULL;
    return next;
}

/* Attributes. depth counts the containers around the item. */

static const uint8_t *pass_values(struct wr_v1 *v, const uint8_t *at, unsigned depth);

static const uint8_t *read_value_any(struct wr_v1 *v, const uint8_t *at, uint64_t type,
                                     unsigned depth, struct weir_value *ret)
{
    bool truth = false;
    switch (type) {
    case ATTRIBUTE_BOOL:
        if (!wr_v1_is_nil(&v->dd.m, at))
            *ret = wr_value_bytes(bool_words[0], strlen(bool_words[0]));
        at = wr_v1_bool(v, at, &truth);
        if (truth)
            *ret = wr_value_bytes(bool_words[1], strlen(bool_words[1]));
        return at;
    case ATTRIBUTE_BYTES:
        return wr_v1_pass_bytes(v, at);
    case ATTRIBUTE_ARRAY:
        return pass_values(v, at, depth);
    case ATTRIBUTE_LIST:
        return wr_v1_pass_attributes(v, at, depth);
    default:
        return wr_mp_fail(&v->dd.m, at, WEIR_EFORMAT, "an attribute of unknown type");
    }
}

/* A type and a value; what is neither text nor number gives WEIR_VALUE_NONE. */
WR_INLINE const uint8_t *read_value(struct wr_v1 *v, const uint8_t *at, unsigned depth,
                                    struct weir_value *ret)
{
    uint64_t type;
    at = wr_v1_key(v, at, &type);
    if (!at)
        return NULL;
    ret->type = WEIR_VALUE_NONE;
    if (WR_LIKELY(type == ATTRIBUTE_TEXT)) {
        struct weir_bytes text;
        at = wr_v1_string(v, at, &text);
        if (at && text.ptr)
            *ret = wr_value_bytes(text.ptr, text.len);
        return at;
    }
    if (WR_LIKELY(type == ATTRIBUTE_DOUBLE || type == ATTRIBUTE_INT))
        return wr_dd_number(&v->dd.m, at, ret);
    return read_value_any(v, at, type, depth, ret);
}

static const uint8_t *pass_values(struct wr_v1 *v, const uint8_t *at, unsigned depth)
{
    const uint8_t *const begin = at;
    uint32_t items;
    at = wr_v1_array(v, at, &items);
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

WR_INLINE const uint8_t *read_attribute_count(struct wr_v1 *v, const uint8_t *at, unsigned depth,
                                              uint32_t *ret)
{
    const uint8_t *const begin = at;
    at = wr_v1_array(v, at, ret);
    if (at && *ret % 3 != 0)
        return wr_mp_fail(&v->dd.m, begin, WEIR_EFORMAT, "attributes not in threes");
    if (at && depth >= WEIR_DECODE_DEPTH_MAX)
        return wr_mp_fail(&v->dd.m, begin, WEIR_EFORMAT, "nested too deep");
    return at;
}

const uint8_t *wr_v1_pass_attributes(struct wr_v1 *v, const uint8_t *at, unsigned depth)
{
    uint32_t items;
    at = read_attribute_count(v, at, depth, &items);
    for (uint32_t i = 0; at && i < items; i += 3) {
        struct weir_value value;
        at = wr_v1_pass_string(v, at);
        if (at)
            at = read_value(v, at, depth + 1, &value);
    }
    return at;
}

const uint8_t *wr_v1_attributes(struct wr_v1 *v, const uint8_t *at, struct wr_held *h)
{
    const struct weir_tags *const tags = v->dd.walk.decoder->tags;
    uint32_t items;
    at = read_attribute_count(v, at, WR_V1_SPAN_DEPTH, &items);
    for (uint32_t i = 0; at && i < items; i += 3) {
        const struct weir_tag_match *match;
        struct weir_value value;
        at = read_name(v, at, &match);
        if (!at)
            return NULL;
        at = read_value(v, at, WR_V1_SPAN_DEPTH + 1, &value);
        if (at && match && value.type != WEIR_VALUE_NONE)
            wr_put(tags, match,
                   value.type == WEIR_VALUE_BYTES ? WEIR_IN_DD_META : WEIR_IN_DD_METRICS, &value,
                   h->slots, &h->span.present);
    }
    return at;
}

/* Links and events: nothing is wanted of them, but they must be well formed. */

static const uint8_t *pass_link_member(struct wr_v1 *v, const uint8_t *at, uint64_t key)
{
    switch (key) {
    case LINK_TRACE_ID:
        return wr_v1_pass_bytes(v, at);
    case LINK_SPAN_ID:
    case LINK_FLAGS:
        return wr_v1_pass_u64(v, at);
    case LINK_ATTRIBUTES:
        return wr_v1_pass_attributes(v, at, LINK_DEPTH);
    case LINK_STATE:
        return wr_v1_pass_string(v, at);
    default:
        return wr_v1_pass_unknown(v, at, LINK_DEPTH);
    }
}

static const uint8_t *pass_event_member(struct wr_v1 *v, const uint8_t *at, uint64_t key)
{
    switch (key) {
    case EVENT_TIME:
        return wr_v1_pass_u64(v, at);
    case EVENT_NAME:
        return wr_v1_pass_string(v, at);
    case EVENT_ATTRIBUTES:
        return wr_v1_pass_attributes(v, at, LINK_DEPTH);
    default:
        return wr_v1_pass_unknown(v, at, LINK_DEPTH);
    }
}

typedef const uint8_t *member_fn(struct wr_v1 *v, const uint8_t *at, uint64_t key);

static const uint8_t *pass_each_map(struct wr_v1 *v, const uint8_t *at, member_fn *member)
{
    uint32_t maps;
    at = wr_v1_array(v, at, &maps);
    for (uint32_t i = 0; at && i < maps; i++) {
        uint32_t pairs;
        at = wr_mp_map(&v->dd.m, at, &pairs);
        for (uint32_t k = 0; at && k < pairs; k++) {
            uint64_t key;
            at = wr_v1_key(v, at, &key);
            if (at)
                at = member(v, at, key);
        }
    }
    return at;
}

const uint8_t *wr_v1_pass_links(struct wr_v1 *v, const uint8_t *at)
{
    return pass_each_map(v, at, pass_link_member);
}

const uint8_t *wr_v1_pass_events(struct wr_v1 *v, const uint8_t *at)
{
    return pass_each_map(v, at, pass_event_member);
}
