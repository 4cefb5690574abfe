/* SPDX-License-Identifier: Apache-2.0 */
/* mp_read: see mp_read.h. The general reader, driven by a table of the forms 0xc0..0xdf. */
#include "wire/mp_read.h"

#define SKIP_DEPTH_MAX 64u

/* A form with a first byte of 0xc0..0xdf: how many bytes of length or count follow the first, and
 * how many bytes of body when there is no length. */
struct form {
    uint8_t type;
    uint8_t len_bytes;
    uint8_t body;
};

static const struct form forms[32] = {
    [0x00] = {WR_MP_NIL, 0, 0},  [0x01] = {WR_MP_BAD, 0, 0},   [0x02] = {WR_MP_BOOL, 0, 0},
    [0x03] = {WR_MP_BOOL, 0, 0}, [0x04] = {WR_MP_BIN, 1, 0},   [0x05] = {WR_MP_BIN, 2, 0},
    [0x06] = {WR_MP_BIN, 4, 0},  [0x07] = {WR_MP_EXT, 1, 0},   [0x08] = {WR_MP_EXT, 2, 0},
    [0x09] = {WR_MP_EXT, 4, 0},  [0x0a] = {WR_MP_FLOAT, 0, 4}, [0x0b] = {WR_MP_FLOAT, 0, 8},
    [0x0c] = {WR_MP_UINT, 0, 1}, [0x0d] = {WR_MP_UINT, 0, 2},  [0x0e] = {WR_MP_UINT, 0, 4},
    [0x0f] = {WR_MP_UINT, 0, 8}, [0x10] = {WR_MP_INT, 0, 1},   [0x11] = {WR_MP_INT, 0, 2},
    [0x12] = {WR_MP_INT, 0, 4},  [0x13] = {WR_MP_INT, 0, 8},   [0x14] = {WR_MP_EXT, 0, 1},
    [0x15] = {WR_MP_EXT, 0, 2},  [0x16] = {WR_MP_EXT, 0, 4},   [0x17] = {WR_MP_EXT, 0, 8},
    [0x18] = {WR_MP_EXT, 0, 16}, [0x19] = {WR_MP_STR, 1, 0},   [0x1a] = {WR_MP_STR, 2, 0},
    [0x1b] = {WR_MP_STR, 4, 0},  [0x1c] = {WR_MP_ARRAY, 2, 0}, [0x1d] = {WR_MP_ARRAY, 4, 0},
    [0x1e] = {WR_MP_MAP, 2, 0},  [0x1f] = {WR_MP_MAP, 4, 0},
};

static const char cut_reason[] = "the bytes end inside an item";
static const char claim_reason[] = "a container claims more elements than bytes are left";

struct wr_mp wr_mp_init(const void *bytes, size_t size)
{
    static const uint8_t none[1] = {0};
    const uint8_t *const begin = bytes ? bytes : none;
    return (struct wr_mp){.begin = begin, .end = begin + (bytes ? size : 0)};
}

const uint8_t *wr_mp_fail(struct wr_mp *m, const uint8_t *bad, int err, const char *reason)
{
    if (m->err == WEIR_OK) {
        m->err = err;
        m->bad = bad;
        m->reason = reason;
    }
    return NULL;
}

static uint64_t load_be(const uint8_t *at, unsigned bytes)
{
    switch (bytes) {
    case 1:
        return at[0];
    case 2:
        return wr_load16be(at);
    case 4:
        return wr_load32be(at);
    default:
        return wr_load64be(at);
    }
}

static void set_int(struct wr_mp_item *item, const uint8_t *at, unsigned bytes)
{
    const uint64_t raw = load_be(at, bytes);
    const unsigned shift = 64 - 8 * bytes;
    /* Sign extension; right shift of a negative value is arithmetic in gcc and clang. */
    const int64_t value = (int64_t)(raw << shift) >> shift;
    if (value >= 0) {
        item->type = WR_MP_UINT;
        item->v.u = (uint64_t)value;
    } else {
        item->type = WR_MP_INT;
        item->v.i = value;
    }
}

static double load_float(const uint8_t *at, unsigned bytes)
{
    if (bytes == 4) {
        const uint32_t bits = wr_load32be(at);
        float f;
        memcpy(&f, &bits, sizeof f);
        return (double)f;
    }
    const uint64_t bits = wr_load64be(at);
    double d;
    memcpy(&d, &bits, sizeof d);
    return d;
}

/* A scalar or fixext of form f at `at`; the body is known to be there. */
static void set_fixed(struct wr_mp_item *item, const uint8_t *at, const struct form *f)
{
    switch ((enum wr_mp_type)f->type) {
    case WR_MP_BOOL:
        item->v.u = at[0] & 1u;
        break;
    case WR_MP_UINT:
        item->v.u = load_be(at + 1, f->body);
        break;
    case WR_MP_INT:
        set_int(item, at + 1, f->body);
        break;
    case WR_MP_FLOAT:
        item->v.d = load_float(at + 1, f->body);
        break;
    case WR_MP_EXT:
        item->ext_type = (int8_t)at[1];
        item->len = f->body;
        item->v.ptr = at + 2;
        break;
    case WR_MP_NIL:
    case WR_MP_STR:
    case WR_MP_BIN:
    case WR_MP_ARRAY:
    case WR_MP_MAP:
    case WR_MP_BAD:
        break;
    }
}

/* The elements of a container of len behind `at`, one byte each at least. */
static const uint8_t *claimed(struct wr_mp *m, const uint8_t *item_at, const uint8_t *at,
                              const struct wr_mp_item *item)
{
    const uint64_t least = item->type == WR_MP_MAP ? 2 * (uint64_t)item->len : item->len;
    if (least > (size_t)(m->end - at))
        return wr_mp_fail(m, item_at, WEIR_ETRUNCATED, claim_reason);
    return at;
}

/* len bytes of a string, bin or ext at `at`. */
static const uint8_t *body(struct wr_mp *m, const uint8_t *item_at, const uint8_t *at,
                           struct wr_mp_item *item)
{
    if (item->len > (size_t)(m->end - at))
        return wr_mp_fail(m, item_at, WEIR_ETRUNCATED, cut_reason);
    item->v.ptr = at;
    return at + item->len;
}

/* A form of 0xc0..0xdf. */
static const uint8_t *item_by_form(struct wr_mp *m, const uint8_t *at, struct wr_mp_item *ret)
{
    const struct form *const f = &forms[at[0] & 0x1f];
    const size_t left = (size_t)(m->end - at) - 1;
    ret->type = f->type;
    if (f->type == WR_MP_BAD)
        return wr_mp_fail(m, at, WEIR_EFORMAT, "reserved byte 0xc1");
    const size_t ext = f->type == WR_MP_EXT;
    if (left < f->len_bytes + ext + f->body)
        return wr_mp_fail(m, at, WEIR_ETRUNCATED, cut_reason);
    if (f->len_bytes == 0) {
        set_fixed(ret, at, f);
        return at + 1 + ext + f->body;
    }
    ret->len = (uint32_t)load_be(at + 1, f->len_bytes);
    const uint8_t *const next = at + 1 + f->len_bytes + ext;
    if (f->type == WR_MP_ARRAY || f->type == WR_MP_MAP)
        return claimed(m, at, next, ret);
    if (ext)
        ret->ext_type = (int8_t)next[-1];
    return body(m, at, next, ret);
}

const uint8_t *wr_mp_item(struct wr_mp *m, const uint8_t *at, struct wr_mp_item *ret)
{
    *ret = (struct wr_mp_item){.type = WR_MP_NIL};
    if (at >= m->end)
        return wr_mp_fail(m, at, WEIR_ETRUNCATED, "the bytes end where an item should begin");
    const uint8_t b = at[0];
    if (b < 0x80) {
        ret->type = WR_MP_UINT;
        ret->v.u = b;
        return at + 1;
    }
    if (b >= 0xe0) {
        ret->type = WR_MP_INT;
        ret->v.i = (int64_t)b - 256;
        return at + 1;
    }
    if (b >= 0xc0)
        return item_by_form(m, at, ret);
    if (b >= 0xa0) {
        ret->type = WR_MP_STR;
        ret->len = b & 0x1fu;
        return body(m, at, at + 1, ret);
    }
    ret->type = b >= 0x90 ? WR_MP_ARRAY : WR_MP_MAP;
    ret->len = b & 0x0fu;
    return claimed(m, at, at + 1, ret);
}

/* Pass over at most *count items of the frequent forms without insides: small integers, strings of
 * up to 255 bytes, 64-bit numbers. Stops at any other; *count is what is left. */
static const uint8_t *pass_plain(const struct wr_mp *m, const uint8_t *at, uint64_t *count)
{
    uint64_t left = *count;
    for (; left > 0 && at < m->end; left--) {
        const unsigned first = at[0];
        size_t size = 1;
        if ((first & 0xe0) == 0xa0)
            size = 1 + (first & 0x1f);
        else if (first == 0xcf || first == 0xcb)
            size = 9;
        else if (first == 0xd9 && m->end - at >= 2)
            size = 2 + (size_t)at[1];
        else if (first >= 0x80 && first < 0xe0)
            break;
        if (WR_UNLIKELY(size > (size_t)(m->end - at)))
            break;
        at += size;
    }
    *count = left;
    return at;
}

const uint8_t *wr_mp_skip(struct wr_mp *m, const uint8_t *at, unsigned depth)
{
    uint64_t left[SKIP_DEPTH_MAX]; /* items still to skip in each open container */
    unsigned open = 0;
    WR_ASSERT(depth <= SKIP_DEPTH_MAX);
    do {
        struct wr_mp_item item;
        const uint8_t *const item_at = at;
        at = wr_mp_item(m, at, &item);
        if (!at)
            return NULL;
        if (item.type == WR_MP_ARRAY || item.type == WR_MP_MAP) {
            if (open >= depth)
                return wr_mp_fail(m, item_at, WEIR_EFORMAT, "nested too deep");
            left[open++] = item.type == WR_MP_MAP ? 2 * (uint64_t)item.len : item.len;
        } else if (open > 0) {
            left[open - 1]--;
        }
        /* A container that is done counts as one item of the one around it. */
        while (open > 0) {
            at = pass_plain(m, at, &left[open - 1]);
            if (left[open - 1] > 0)
                break;
            open--;
            if (open > 0)
                left[open - 1]--;
        }
    } while (open > 0);
    return at;
}

const uint8_t *wr_mp_str_any(struct wr_mp *m, const uint8_t *at, struct weir_bytes *ret)
{
    struct wr_mp_item item;
    const uint8_t *const next = wr_mp_item(m, at, &item);
    if (!next)
        return NULL;
    if (item.type == WR_MP_NIL) {
        *ret = (struct weir_bytes){.ptr = NULL, .len = 0};
        return next;
    }
    if (item.type != WR_MP_STR && item.type != WR_MP_BIN)
        return wr_mp_fail(m, at, WEIR_EFORMAT, "not a string");
    *ret = (struct weir_bytes){.ptr = (const char *)item.v.ptr, .len = item.len};
    return next;
}

const uint8_t *wr_mp_u64_any(struct wr_mp *m, const uint8_t *at, uint64_t *ret)
{
    struct wr_mp_item item;
    const uint8_t *const next = wr_mp_item(m, at, &item);
    if (!next)
        return NULL;
    if (item.type != WR_MP_UINT && item.type != WR_MP_NIL)
        return wr_mp_fail(m, at, WEIR_EFORMAT, "not an unsigned integer");
    *ret = item.type == WR_MP_UINT ? item.v.u : 0;
    return next;
}

const uint8_t *wr_mp_i64_any(struct wr_mp *m, const uint8_t *at, int64_t *ret)
{
    struct wr_mp_item item;
    const uint8_t *const next = wr_mp_item(m, at, &item);
    if (!next)
        return NULL;
    if (item.type == WR_MP_INT) {
        *ret = item.v.i;
        return next;
    }
    if (item.type != WR_MP_UINT && item.type != WR_MP_NIL)
        return wr_mp_fail(m, at, WEIR_EFORMAT, "not an integer");
    const uint64_t value = item.type == WR_MP_UINT ? item.v.u : 0;
    if (value > INT64_MAX)
        return wr_mp_fail(m, at, WEIR_EFORMAT, "integer past 63 bits");
    *ret = (int64_t)value;
    return next;
}

const uint8_t *wr_mp_array_any(struct wr_mp *m, const uint8_t *at, uint32_t *ret)
{
    struct wr_mp_item item;
    const uint8_t *const next = wr_mp_item(m, at, &item);
    if (!next)
        return NULL;
    if (item.type != WR_MP_ARRAY)
        return wr_mp_fail(m, at, WEIR_EFORMAT, "not an array");
    *ret = item.len;
    return next;
}

const uint8_t *wr_mp_map_any(struct wr_mp *m, const uint8_t *at, uint32_t *ret)
{
    struct wr_mp_item item;
    const uint8_t *const next = wr_mp_item(m, at, &item);
    if (!next)
        return NULL;
    if (item.type != WR_MP_MAP && item.type != WR_MP_NIL)
        return wr_mp_fail(m, at, WEIR_EFORMAT, "not a map");
    *ret = item.type == WR_MP_MAP ? item.len : 0;
    return next;
}
