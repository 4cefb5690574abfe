/* SPDX-License-Identifier: Apache-2.0 */
/* dd_v1_value: what is rare among the strings and values of v1.0. See dd_v1.h. */
#include "decode/dd_v1.h"

static const char bool_words[][6] = {"false", "true"};

/* Strings. */

static bool is_text(const struct wr_mp *m, const uint8_t *at)
{
    return at < m->end && ((at[0] & 0xe0) == 0xa0 || (at[0] >= 0xd9 && at[0] <= 0xdb));
}

const uint8_t *wr_v1_read_string_any(struct wr_v1 *v, const uint8_t *at, struct weir_bytes *ret,
                                     struct wr_dict_entry **ret_entry)
{
    struct weir_decoder *const d = v->dd.walk.decoder;
    *ret_entry = NULL;
    if (is_text(&v->dd.m, at)) {
        const size_t before = d->dict_count;
        const uint8_t *const behind = wr_mp_str(&v->dd.m, at, ret);
        if (!behind || !wr_v1_add_text(v, at, behind, *ret))
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

const uint8_t *wr_v1_pass_string(struct wr_v1 *v, const uint8_t *at)
{
    struct weir_bytes text;
    return wr_v1_read_string(v, at, &text);
}

const uint8_t *wr_v1_pass_unknown(struct wr_v1 *v, const uint8_t *at, unsigned depth)
{
    const uint8_t *const end = wr_mp_skip(&v->dd.m, at, WEIR_DECODE_DEPTH_MAX - depth);
    /* Items stand one behind the other, however they nest. */
    while (end && at && at < end) {
        struct wr_mp_item item;
        const uint8_t *const next = wr_mp_item(&v->dd.m, at, &item);
        const struct weir_bytes text = {.ptr = (const char *)item.v.ptr, .len = item.len};
        at = next && item.type == WR_MP_STR ? wr_v1_add_text(v, at, next, text) : next;
    }
    return at ? end : NULL;
}

/* Values. */

const uint8_t *wr_v1_read_bool_any(struct wr_v1 *v, const uint8_t *at, bool *ret)
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

const uint8_t *wr_v1_read_bytes(struct wr_v1 *v, const uint8_t *at, struct weir_bytes *ret)
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

const uint8_t *wr_v1_pass_u64(struct wr_v1 *v, const uint8_t *at)
{
    uint64_t number;
    return wr_mp_u64(&v->dd.m, at, &number);
}

const uint8_t *wr_v1_pass_bytes(struct wr_v1 *v, const uint8_t *at)
{
    struct weir_bytes bytes;
    return wr_v1_read_bytes(v, at, &bytes);
}

/* Attributes. depth counts the containers around the item. */

const uint8_t *wr_v1_read_value_any(struct wr_v1 *v, const uint8_t *at, uint64_t type,
                                    unsigned depth, struct weir_value *ret)
{
    bool truth = false;
    switch (type) {
    case ATTRIBUTE_BOOL:
        if (!wr_v1_is_nil(&v->dd.m, at))
            *ret = wr_value_bytes(bool_words[0], strlen(bool_words[0]));
        at = wr_v1_read_bool(v, at, &truth);
        if (truth)
            *ret = wr_value_bytes(bool_words[1], strlen(bool_words[1]));
        return at;
    case ATTRIBUTE_BYTES:
        return wr_v1_pass_bytes(v, at);
    case ATTRIBUTE_ARRAY:
        return wr_v1_pass_values(v, at, depth);
    case ATTRIBUTE_LIST:
        return wr_v1_pass_attributes(v, at, depth);
    default:
        return wr_mp_fail(&v->dd.m, at, WEIR_EFORMAT, "an attribute of unknown type");
    }
}

const uint8_t *wr_v1_pass_values(struct wr_v1 *v, const uint8_t *at, unsigned depth)
{
    const uint8_t *const begin = at;
    uint32_t items;
    at = wr_v1_read_array(v, at, &items);
    if (at && items % 2 != 0)
        return wr_mp_fail(&v->dd.m, begin, WEIR_EFORMAT, "an array of values not in pairs");
    if (at && depth >= WEIR_DECODE_DEPTH_MAX)
        return wr_mp_fail(&v->dd.m, begin, WEIR_EFORMAT, "nested too deep");
    for (uint32_t i = 0; at && i < items; i += 2) {
        struct weir_value value;
        at = wr_v1_read_value(v, at, depth + 1, &value);
    }
    return at;
}

const uint8_t *wr_v1_pass_attributes(struct wr_v1 *v, const uint8_t *at, unsigned depth)
{
    uint32_t items;
    at = wr_v1_read_attribute_count(v, at, depth, &items);
    for (uint32_t i = 0; at && i < items; i += 3) {
        struct weir_value value;
        at = wr_v1_pass_string(v, at);
        if (at)
            at = wr_v1_read_value(v, at, depth + 1, &value);
    }
    return at;
}
