/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WR_WIRE_MP_READ_H
#define WR_WIRE_MP_READ_H
/*
 * mp_read: a cursor over MessagePack bytes. It knows the encoding and nothing of what is carried.
 *
 * Idea: the position travels by value. Every reader takes it and returns the position behind what
 * it read, or NULL after noting in the struct wr_mp what was wrong and where; so the position stays
 * in a register, and the common forms are a compare and an add, inlined. Bounds are checked once an
 * item. Nothing is allocated and no tree is built: strings are borrowed from the input.
 *
 * Counts and lengths are claims of a stranger: an element needs at least one byte, so a container
 * that claims more elements than bytes are left is refused before anything loops over it.
 *
 * Threads: one thread uses a cursor at a time. Memory: none.
 * Source: the MessagePack specification, revision of 2017 (with str8, bin and ext).
 */
#include "base/bits.h"

#include <weir/base.h>

struct wr_mp {
    const uint8_t *begin;
    const uint8_t *end;
    /* Of the first refusal; bad is the first byte of the item that was refused. */
    const uint8_t *bad;
    const char *reason;
    int err;
};

enum wr_mp_type {
    WR_MP_NIL = 0,
    WR_MP_BOOL,  /* v.u 0 or 1 */
    WR_MP_UINT,  /* any integer >= 0, whatever its form: v.u */
    WR_MP_INT,   /* an integer < 0: v.i */
    WR_MP_FLOAT, /* v.d */
    WR_MP_STR,   /* v.ptr, len bytes; UTF-8 is not checked */
    WR_MP_BIN,   /* v.ptr, len bytes */
    WR_MP_EXT,   /* v.ptr, len bytes, ext_type */
    WR_MP_ARRAY, /* len elements follow */
    WR_MP_MAP,   /* len pairs follow */
    WR_MP_BAD    /* the reserved byte 0xc1; never handed out */
};

struct wr_mp_item {
    uint8_t type; /* enum wr_mp_type */
    int8_t ext_type;
    uint32_t len;
    union {
        uint64_t u;
        int64_t i;
        double d;
        const uint8_t *ptr;
    } v;
};

/* bytes may be NULL when size is 0. */
struct wr_mp wr_mp_init(const void *bytes, size_t size);

/* Note a refusal of the item at bad and return NULL; an earlier one stands. */
const uint8_t *wr_mp_fail(struct wr_mp *m, const uint8_t *bad, int err, const char *reason);

/*
 * Any item: a whole scalar or string, or the header of an array or map, whose claim has been
 * checked against the bytes that are left.
 * Errors (in m->err): WEIR_ETRUNCATED, WEIR_EFORMAT (0xc1).
 */
const uint8_t *wr_mp_item(struct wr_mp *m, const uint8_t *at, struct wr_mp_item *ret);

/* Skip one whole item that nests at most depth containers, without recursion. depth <= 64.
 * Errors: as wr_mp_item, and WEIR_EFORMAT when it nests deeper. */
const uint8_t *wr_mp_skip(struct wr_mp *m, const uint8_t *at, unsigned depth);

/* What the inlined readers below fall back to for every less common form. */
const uint8_t *wr_mp_str_any(struct wr_mp *m, const uint8_t *at, struct weir_bytes *ret);
const uint8_t *wr_mp_u64_any(struct wr_mp *m, const uint8_t *at, uint64_t *ret);
const uint8_t *wr_mp_i64_any(struct wr_mp *m, const uint8_t *at, int64_t *ret);
const uint8_t *wr_mp_array_any(struct wr_mp *m, const uint8_t *at, uint32_t *ret);
const uint8_t *wr_mp_map_any(struct wr_mp *m, const uint8_t *at, uint32_t *ret);

/* A string, str or bin; nil gives ptr NULL (an empty string has a ptr).
 * Errors: those of wr_mp_item, WEIR_EFORMAT for another type. */
WR_INLINE const uint8_t *wr_mp_str(struct wr_mp *m, const uint8_t *at, struct weir_bytes *ret)
{
    const size_t left = (size_t)(m->end - at);
    if (WR_LIKELY(left >= 2)) {
        if (WR_LIKELY((at[0] & 0xe0) == 0xa0)) {
            const size_t len = at[0] & 0x1fu;
            if (WR_LIKELY(len < left)) {
                *ret = (struct weir_bytes){.ptr = (const char *)at + 1, .len = len};
                return at + 1 + len;
            }
        } else if (at[0] == 0xd9) {
            const size_t len = at[1];
            if (WR_LIKELY(len + 1 < left)) {
                *ret = (struct weir_bytes){.ptr = (const char *)at + 2, .len = len};
                return at + 2 + len;
            }
        } else if (at[0] == 0xdb && left >= 5) {
            const size_t len = wr_load32be(at + 1);
            if (WR_LIKELY(len <= left - 5)) {
                *ret = (struct weir_bytes){.ptr = (const char *)at + 5, .len = len};
                return at + 5 + len;
            }
        }
    }
    return wr_mp_str_any(m, at, ret);
}

/* An integer >= 0 of any form, signed ones too; nil gives 0.
 * Errors: those of wr_mp_item, WEIR_EFORMAT for another type or a negative value. */
WR_INLINE const uint8_t *wr_mp_u64(struct wr_mp *m, const uint8_t *at, uint64_t *ret)
{
    const size_t left = (size_t)(m->end - at);
    if (WR_LIKELY(left >= 9 && at[0] == 0xcf)) {
        *ret = wr_load64be(at + 1);
        return at + 9;
    }
    if (WR_LIKELY(left >= 1 && at[0] < 0x80)) {
        *ret = at[0];
        return at + 1;
    }
    /* One tracer writes every index and count in this form. */
    if (left >= 5 && at[0] == 0xce) {
        *ret = wr_load32be(at + 1);
        return at + 5;
    }
    if (left >= 3 && at[0] == 0xcd) {
        *ret = wr_load16be(at + 1);
        return at + 3;
    }
    return wr_mp_u64_any(m, at, ret);
}

/* An integer of any form that fits int64; nil gives 0.
 * Errors: those of wr_mp_item, WEIR_EFORMAT for another type or a value past int64. */
WR_INLINE const uint8_t *wr_mp_i64(struct wr_mp *m, const uint8_t *at, int64_t *ret)
{
    const size_t left = (size_t)(m->end - at);
    if (WR_LIKELY(left >= 9 && at[0] == 0xcf && at[1] < 0x80)) {
        *ret = (int64_t)wr_load64be(at + 1);
        return at + 9;
    }
    if (WR_LIKELY(left >= 1 && at[0] < 0x80)) {
        *ret = at[0];
        return at + 1;
    }
    if (left >= 5 && at[0] == 0xce) { /* nearly all durations */
        *ret = wr_load32be(at + 1);
        return at + 5;
    }
    return wr_mp_i64_any(m, at, ret);
}

/* The header of an array. Errors: those of wr_mp_item, WEIR_EFORMAT for another type, nil too. */
WR_INLINE const uint8_t *wr_mp_array(struct wr_mp *m, const uint8_t *at, uint32_t *ret)
{
    if (WR_LIKELY(at < m->end && (at[0] & 0xf0) == 0x90)) {
        const uint32_t count = at[0] & 0x0fu;
        if (WR_LIKELY(count < (size_t)(m->end - at))) {
            *ret = count;
            return at + 1;
        }
    }
    return wr_mp_array_any(m, at, ret);
}

/* The header of a map; nil gives 0 pairs. Errors: those of wr_mp_item, WEIR_EFORMAT. */
WR_INLINE const uint8_t *wr_mp_map(struct wr_mp *m, const uint8_t *at, uint32_t *ret)
{
    if (WR_LIKELY(at < m->end && (at[0] & 0xf0) == 0x80)) {
        const uint32_t pairs = at[0] & 0x0fu;
        if (WR_LIKELY(2 * (size_t)pairs < (size_t)(m->end - at))) {
            *ret = pairs;
            return at + 1;
        }
    }
    return wr_mp_map_any(m, at, ret);
}
#endif
