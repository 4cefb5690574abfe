/* SPDX-License-Identifier: Apache-2.0 */
/* pb_read: see pb_read.h. */
#include "wire/pb_read.h"

#define FIELD_NUMBER_MAX ((1u << 29) - 1)

struct wr_pb wr_pb_init(const void *bytes, size_t size)
{
    static const uint8_t none[1] = {0};
    const uint8_t *const begin = bytes ? bytes : none;
    return (struct wr_pb){.begin = begin, .end = begin + (bytes ? size : 0)};
}

const uint8_t *wr_pb_fail(struct wr_pb *pb, const uint8_t *bad, int err, const char *reason)
{
    if (pb->err == WEIR_OK) {
        pb->err = err;
        pb->bad = bad;
        pb->reason = reason;
    }
    return NULL;
}

/* The bytes of a field at bad end too early: at the end of the input, or only of its parent. */
static const uint8_t *cut(struct wr_pb *pb, const uint8_t *bad, const uint8_t *end)
{
    if (end == pb->end)
        return wr_pb_fail(pb, bad, WEIR_ETRUNCATED, "a field reaches past the end of the bytes");
    return wr_pb_fail(pb, bad, WEIR_EFORMAT, "a field reaches past the end of its message");
}

/* A varint at `at`, part of the field at bad. */
static const uint8_t *varint(struct wr_pb *pb, const uint8_t *bad, const uint8_t *at,
                             const uint8_t *end, uint64_t *ret)
{
    uint64_t value = 0;
    for (unsigned i = 0; i < 10; i++) {
        if (at >= end)
            return cut(pb, bad, end);
        const uint8_t b = *at++;
        if (i == 9 && b > 1)
            return wr_pb_fail(pb, bad, WEIR_EFORMAT, "varint of more than 64 bits");
        value |= (uint64_t)(b & 0x7fu) << (7 * i);
        if (b < 0x80) {
            *ret = value;
            return at;
        }
    }
    /* Not reached: the tenth byte is at most 1, so it ends the varint. */
    return wr_pb_fail(pb, bad, WEIR_EFORMAT, "varint of more than 64 bits");
}

static const uint8_t *fixed(struct wr_pb *pb, const uint8_t *bad, const uint8_t *at,
                            const uint8_t *end, struct wr_pb_field *ret)
{
    const size_t bytes = (ret->tag & 7) == WR_PB_FIXED64 ? 8 : 4;
    if ((size_t)(end - at) < bytes)
        return cut(pb, bad, end);
    ret->u = bytes == 8 ? wr_load64le(at) : wr_load32le(at);
    return at + bytes;
}

static const uint8_t *delimited(struct wr_pb *pb, const uint8_t *bad, const uint8_t *at,
                                const uint8_t *end, struct wr_pb_field *ret)
{
    at = varint(pb, bad, at, end, &ret->u);
    if (!at)
        return NULL;
    if (ret->u > (size_t)(end - at))
        return cut(pb, bad, end);
    ret->ptr = at;
    return at + ret->u;
}

const uint8_t *wr_pb_field_any(struct wr_pb *pb, const uint8_t *at, const uint8_t *end,
                               struct wr_pb_field *ret)
{
    const uint8_t *const bad = at;
    uint64_t tag;
    at = varint(pb, bad, at, end, &tag);
    if (!at)
        return NULL;
    if (tag >> 3 == 0)
        return wr_pb_fail(pb, bad, WEIR_EFORMAT, "field number 0");
    if (tag >> 3 > FIELD_NUMBER_MAX)
        return wr_pb_fail(pb, bad, WEIR_EFORMAT, "field number past 2^29 - 1");
    *ret = (struct wr_pb_field){.tag = (uint32_t)tag};
    switch (tag & 7) {
    case WR_PB_VARINT:
        return varint(pb, bad, at, end, &ret->u);
    case WR_PB_FIXED64:
    case WR_PB_FIXED32:
        return fixed(pb, bad, at, end, ret);
    case WR_PB_LEN:
        return delimited(pb, bad, at, end, ret);
    case 3:
    case 4:
        return wr_pb_fail(pb, bad, WEIR_EFORMAT, "a group, which no message here has");
    default:
        return wr_pb_fail(pb, bad, WEIR_EFORMAT, "wire type 6 or 7");
    }
}
