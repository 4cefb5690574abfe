/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WR_WIRE_PB_READ_H
#define WR_WIRE_PB_READ_H
/*
 * pb_read: a cursor over protobuf bytes, field by field. It knows the wire format and no schema.
 *
 * Idea: the position travels by value, as in mp_read.h; a message is the range [at, end), and a
 * nested message is the range of a length-delimited field, which was checked against its parent
 * when the field was read. One call reads a tag and its value, bounds checked.
 *
 *   while (at < end) {
 *       struct wr_pb_field f;
 *       at = wr_pb_field(pb, at, end, &f);
 *       if (!at)
 *           return NULL;
 *       switch (f.tag) {
 *       case WR_PB_TAG(1, WR_PB_LEN): ...        another wire type for field 1 is an unknown field
 *       }
 *   }
 *
 * Refused: field number 0 or past 2^29 - 1, varints of more than 10 bytes or 64 bits, lengths past
 * the parent, wire types 6 and 7, and groups (wire types 3 and 4): no message read here has
 * any, and without them nothing nests that is not a length-delimited range.
 *
 * Threads: one thread uses a cursor at a time. Memory: none.
 * Source: protobuf.dev, "Encoding".
 */
#include "base/bits.h"

#include <weir/base.h>

enum wr_pb_wire { WR_PB_VARINT = 0, WR_PB_FIXED64 = 1, WR_PB_LEN = 2, WR_PB_FIXED32 = 5 };

#define WR_PB_TAG(number, wire) ((uint32_t)(number) << 3 | (uint32_t)(wire))

struct wr_pb {
    const uint8_t *begin;
    const uint8_t *end; /* of the outermost message */
    /* Of the first refusal; bad is the first byte of the field that was refused. */
    const uint8_t *bad;
    const char *reason;
    int err;
};

struct wr_pb_field {
    uint32_t tag;       /* WR_PB_TAG(number, wire) */
    uint64_t u;         /* varint, fixed64, fixed32; of WR_PB_LEN the length */
    const uint8_t *ptr; /* WR_PB_LEN: the bytes */
};

/* bytes may be NULL when size is 0. */
struct wr_pb wr_pb_init(const void *bytes, size_t size);

/* Note a refusal at bad and return NULL; an earlier one stands. */
const uint8_t *wr_pb_fail(struct wr_pb *pb, const uint8_t *bad, int err, const char *reason);

/* What wr_pb_field falls back to: tags and lengths of several bytes, fixed32, every refusal. */
const uint8_t *wr_pb_field_any(struct wr_pb *pb, const uint8_t *at, const uint8_t *end,
                               struct wr_pb_field *ret);

/*
 * The field at `at`, at < end. Returns the position behind it.
 * Errors (in pb->err): WEIR_ETRUNCATED (past the end of the outermost message), WEIR_EFORMAT.
 */
WR_INLINE const uint8_t *wr_pb_field(struct wr_pb *pb, const uint8_t *at, const uint8_t *end,
                                     struct wr_pb_field *ret)
{
    const size_t left = (size_t)(end - at);
    /* Field numbers 1..15 in one byte. */
    if (WR_LIKELY(left >= 2 && at[0] >= 8 && at[0] < 0x80)) {
        const uint8_t wire = at[0] & 7;
        if (WR_LIKELY(wire == WR_PB_LEN && at[1] < 0x80)) {
            const size_t len = at[1];
            if (WR_LIKELY(len + 2 <= left)) {
                ret->tag = at[0];
                ret->u = len;
                ret->ptr = at + 2;
                return at + 2 + len;
            }
        } else if (wire == WR_PB_VARINT && at[1] < 0x80) {
            ret->tag = at[0];
            ret->u = at[1];
            ret->ptr = NULL;
            return at + 2;
        } else if (wire == WR_PB_FIXED64 && left >= 9) {
            ret->tag = at[0];
            ret->u = wr_load64le(at + 1);
            ret->ptr = NULL;
            return at + 9;
        }
    }
    return wr_pb_field_any(pb, at, end, ret);
}
#endif
