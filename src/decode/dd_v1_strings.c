/* SPDX-License-Identifier: Apache-2.0 */
/* dd_v1_strings: the streaming table of v1.0, and values without more to them. See dd_v1.h. */
#include "decode/dd_v1.h"

const uint8_t *wr_v1_add_text(struct wr_v1 *v, const uint8_t *at, const uint8_t *next,
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
const uint8_t *wr_v1_string_any(struct wr_v1 *v, const uint8_t *at, struct weir_bytes *ret,
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

/* A string that is read for its number only. */
const uint8_t *wr_v1_pass_string(struct wr_v1 *v, const uint8_t *at)
{
    struct weir_bytes text;
    return wr_v1_string(v, at, &text);
}

/* An unknown member: its strings take numbers. depth: the containers around it. */
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

const uint8_t *wr_v1_bool_any(struct wr_v1 *v, const uint8_t *at, bool *ret)
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

const uint8_t *wr_v1_bytes(struct wr_v1 *v, const uint8_t *at, struct weir_bytes *ret)
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
    return wr_v1_bytes(v, at, &bytes);
}
