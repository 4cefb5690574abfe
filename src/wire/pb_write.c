/* SPDX-License-Identifier: Apache-2.0 */
/* pb_write: see pb_write.h. Encoding: protobuf.dev, "Encoding", wire types 0, 1, 2 and 5. */
#include "wire/pb_write.h"

enum wire_type { WIRE_VARINT = 0, WIRE_I64 = 1, WIRE_LEN = 2, WIRE_I32 = 5 };

#define FIELD_MAX (((uint32_t)1 << 29) - 1)

static char *raw_tag(char *at, uint32_t field, enum wire_type type)
{
    WR_ASSERT(field >= 1 && field <= FIELD_MAX);
    return wr_pb_raw_varint(at, (uint64_t)field << 3 | (uint64_t)type);
}

void wr_pb_put_varint(struct wr_out *out, uint64_t v)
{
    char b[WR_PB_VARINT_MAX];
    wr_out_put(out, b, (size_t)(wr_pb_raw_varint(b, v) - b));
}

void wr_pb_put_uint(struct wr_out *out, uint32_t field, uint64_t v)
{
    char b[2 * WR_PB_VARINT_MAX];
    char *const at = raw_tag(b, field, WIRE_VARINT);
    wr_out_put(out, b, (size_t)(wr_pb_raw_varint(at, v) - b));
}

void wr_pb_put_int(struct wr_out *out, uint32_t field, int64_t v)
{
    wr_pb_put_uint(out, field, (uint64_t)v);
}

void wr_pb_put_sint(struct wr_out *out, uint32_t field, int64_t v)
{
    const uint64_t twice = (uint64_t)v << 1;
    wr_pb_put_uint(out, field, v < 0 ? ~twice : twice);
}

void wr_pb_put_bool(struct wr_out *out, uint32_t field, bool v)
{
    wr_pb_put_uint(out, field, v ? 1 : 0);
}

void wr_pb_put_fixed64(struct wr_out *out, uint32_t field, uint64_t v)
{
    char b[WR_PB_VARINT_MAX + sizeof v];
    char *const at = raw_tag(b, field, WIRE_I64);
    wr_store64le(at, v);
    wr_out_put(out, b, (size_t)(at - b) + sizeof v);
}

void wr_pb_put_fixed32(struct wr_out *out, uint32_t field, uint32_t v)
{
    char b[WR_PB_VARINT_MAX + sizeof v];
    char *const at = raw_tag(b, field, WIRE_I32);
    wr_store32le(at, v);
    wr_out_put(out, b, (size_t)(at - b) + sizeof v);
}

void wr_pb_put_double(struct wr_out *out, uint32_t field, double v)
{
    uint64_t bits;
    memcpy(&bits, &v, sizeof bits);
    wr_pb_put_fixed64(out, field, bits);
}

void wr_pb_put_bytes(struct wr_out *out, uint32_t field, struct weir_bytes b)
{
    char head[2 * WR_PB_VARINT_MAX];
    char *const at = raw_tag(head, field, WIRE_LEN);
    wr_out_put(out, head, (size_t)(wr_pb_raw_varint(at, b.len) - head));
    wr_out_put(out, b.ptr, b.len);
}

void wr_pb_put_cstr(struct wr_out *out, uint32_t field, const char *s)
{
    wr_pb_put_bytes(out, field, (struct weir_bytes){.ptr = s, .len = strlen(s)});
}

size_t wr_pb_begin(struct wr_out *out, uint32_t field)
{
    char b[WR_PB_VARINT_MAX + 1];
    char *const at = raw_tag(b, field, WIRE_LEN);
    *at = 0;
    wr_out_put(out, b, (size_t)(at - b) + 1);
    return out->len;
}

void wr_pb_end(struct wr_out *out, size_t mark)
{
    if (out->err)
        return;
    WR_ASSERT(mark >= 2 && mark <= out->len);
    const size_t len = out->len - mark;
    char head[WR_PB_VARINT_MAX];
    const size_t width = (size_t)(wr_pb_raw_varint(head, len) - head);
    if (width > 1) {
        if (!wr_out_reserve(out, width - 1))
            return;
        memmove(out->ptr + mark + width - 1, out->ptr + mark, len);
        out->len += width - 1;
    }
    memcpy(out->ptr + mark - 1, head, width);
}
