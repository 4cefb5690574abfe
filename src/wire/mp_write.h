/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WR_WIRE_MP_WRITE_H
#define WR_WIRE_MP_WRITE_H
/*
 * mp_write: MessagePack, written in the narrowest form of each value (contracts trace-encoding
 * §2.1): a positive integer never takes an int form, a float is always float64. One form is wider
 * than it must be, because the reference's payloads are matched to the byte: a string of 16 to 31
 * bytes takes str8, not fixstr.
 *
 * Two levels. wr_mp_put_*() append to a struct wr_out (sticky error). wr_mp_raw_*() store at a
 * pointer into space that was reserved, and return the place behind; each names its upper bound.
 *
 * Threads: any, on separate outputs. Memory: none of its own.
 */
#include "wire/out.h"

#define WR_MP_NIL 0xc0
#define WR_MP_HEAD_MAX 5 /* of array, map, str and bin headers */
#define WR_MP_INT_MAX 9  /* of an integer or a float64 */

static inline char *wr_mp_raw_byte(char *at, unsigned byte)
{
    *at = (char)(unsigned char)byte;
    return at + 1;
}

/* At most WR_MP_INT_MAX bytes. */
static inline char *wr_mp_raw_uint(char *at, uint64_t v)
{
    if (v <= 0x7f)
        return wr_mp_raw_byte(at, (unsigned)v);
    if (v <= 0xff) {
        at = wr_mp_raw_byte(at, 0xcc);
        return wr_mp_raw_byte(at, (unsigned)v);
    }
    if (v <= 0xffff) {
        *at = (char)0xcd;
        wr_store16be(at + 1, (uint16_t)v);
        return at + 3;
    }
    if (v <= 0xffffffffu) {
        *at = (char)0xce;
        wr_store32be(at + 1, (uint32_t)v);
        return at + 5;
    }
    *at = (char)0xcf;
    wr_store64be(at + 1, v);
    return at + 9;
}

/* At most WR_MP_INT_MAX bytes. */
static inline char *wr_mp_raw_int(char *at, int64_t v)
{
    if (v >= 0)
        return wr_mp_raw_uint(at, (uint64_t)v);
    if (v >= -32)
        return wr_mp_raw_byte(at, (unsigned)(v & 0xff));
    if (v >= INT8_MIN) {
        at = wr_mp_raw_byte(at, 0xd0);
        return wr_mp_raw_byte(at, (unsigned)(v & 0xff));
    }
    if (v >= INT16_MIN) {
        *at = (char)0xd1;
        wr_store16be(at + 1, (uint16_t)v);
        return at + 3;
    }
    if (v >= INT32_MIN) {
        *at = (char)0xd2;
        wr_store32be(at + 1, (uint32_t)v);
        return at + 5;
    }
    *at = (char)0xd3;
    wr_store64be(at + 1, (uint64_t)v);
    return at + 9;
}

/* 9 bytes. */
static inline char *wr_mp_raw_double(char *at, double v)
{
    uint64_t bits;
    memcpy(&bits, &v, sizeof bits);
    *at = (char)0xcb;
    wr_store64be(at + 1, bits);
    return at + 9;
}

/* At most WR_MP_HEAD_MAX bytes; fix is 0x90 for an array and 0x80 for a map. */
static inline char *wr_mp_raw_count(char *at, uint32_t count, unsigned fix, unsigned code16)
{
    if (count <= 15)
        return wr_mp_raw_byte(at, fix | count);
    if (count <= 0xffff) {
        *at = (char)(unsigned char)code16;
        wr_store16be(at + 1, (uint16_t)count);
        return at + 3;
    }
    *at = (char)(unsigned char)(code16 + 1);
    wr_store32be(at + 1, count);
    return at + 5;
}
static inline char *wr_mp_raw_array(char *at, uint32_t count)
{
    return wr_mp_raw_count(at, count, 0x90, 0xdc);
}
static inline char *wr_mp_raw_map(char *at, uint32_t count)
{
    return wr_mp_raw_count(at, count, 0x80, 0xde);
}

/* At most WR_MP_HEAD_MAX bytes. */
static inline char *wr_mp_raw_str_head(char *at, uint32_t len)
{
    if (len < 16)
        return wr_mp_raw_byte(at, 0xa0 | len);
    if (len <= 0xff) {
        at = wr_mp_raw_byte(at, 0xd9);
        return wr_mp_raw_byte(at, len);
    }
    if (len <= 0xffff) {
        *at = (char)0xda;
        wr_store16be(at + 1, (uint16_t)len);
        return at + 3;
    }
    *at = (char)0xdb;
    wr_store32be(at + 1, len);
    return at + 5;
}

/*
 * memcpy for texts that are mostly short: up to 32 bytes as two loads and two stores that overlap,
 * without the call (v0.4 spans of contracts trace-encoding §2.7: 10 to 14 million a second).
 */
static inline void wr_mp_raw_copy(char *at, const char *from, size_t n)
{
    if (n > 32) {
        memcpy(at, from, n);
    } else if (n >= 16) {
        uint64_t v[4];
        memcpy(v, from, 16);
        memcpy(v + 2, from + n - 16, 16);
        memcpy(at, v, 16);
        memcpy(at + n - 16, v + 2, 16);
    } else if (n >= 8) {
        const uint64_t first = wr_load64le(from);
        const uint64_t last = wr_load64le(from + n - 8);
        wr_store64le(at, first);
        wr_store64le(at + n - 8, last);
    } else if (n >= 4) {
        const uint32_t first = wr_load32le(from);
        const uint32_t last = wr_load32le(from + n - 4);
        wr_store32le(at, first);
        wr_store32le(at + n - 4, last);
    } else if (n > 0) { /* 1, 2 or 3: the first, the middle and the last, which may be one */
        const char middle = from[n / 2];
        const char last = from[n - 1];
        at[0] = from[0];
        at[n / 2] = middle;
        at[n - 1] = last;
    }
}

/* At most WR_MP_HEAD_MAX + len bytes. */
static inline char *wr_mp_raw_str(char *at, const char *ptr, uint32_t len)
{
    at = wr_mp_raw_str_head(at, len);
    wr_mp_raw_copy(at, ptr, len);
    return at + len;
}

/* At most WR_MP_HEAD_MAX bytes. */
static inline char *wr_mp_raw_bin_head(char *at, uint32_t len)
{
    if (len <= 0xff) {
        at = wr_mp_raw_byte(at, 0xc4);
        return wr_mp_raw_byte(at, len);
    }
    if (len <= 0xffff) {
        *at = (char)0xc5;
        wr_store16be(at + 1, (uint16_t)len);
        return at + 3;
    }
    *at = (char)0xc6;
    wr_store32be(at + 1, len);
    return at + 5;
}

/* At most WR_MP_HEAD_MAX + b.len bytes. */
static inline char *wr_mp_raw_bin(char *at, struct weir_bytes b)
{
    at = wr_mp_raw_bin_head(at, (uint32_t)b.len);
    wr_mp_raw_copy(at, b.ptr, b.len);
    return at + b.len;
}

void wr_mp_put_nil(struct wr_out *out);
void wr_mp_put_bool(struct wr_out *out, bool v);
void wr_mp_put_uint(struct wr_out *out, uint64_t v);
void wr_mp_put_int(struct wr_out *out, int64_t v);
void wr_mp_put_double(struct wr_out *out, double v);
/* More than 2^32 - 1 of something sets WEIR_ERANGE. */
void wr_mp_put_array(struct wr_out *out, size_t count);
void wr_mp_put_map(struct wr_out *out, size_t pairs);
void wr_mp_put_str(struct wr_out *out, struct weir_bytes s);
void wr_mp_put_cstr(struct wr_out *out, const char *s);
void wr_mp_put_bin(struct wr_out *out, struct weir_bytes b);
#endif
