/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WR_WIRE_PB_WRITE_H
#define WR_WIRE_PB_WRITE_H
/*
 * pb_write: protobuf fields appended to a struct wr_out (sticky error).
 *
 * Nothing is left out: a caller that wants proto3's "a default is absent" does not call. Field
 * numbers are 1..2^29-1. Nested messages: begin stores the tag and one byte for the length, end
 * puts the length there and moves the content up when it takes more than that byte; so the
 * encoding is the shortest one and the message is written once, without measuring it first.
 *
 * Threads: any, on separate outputs. Memory: none of its own.
 */
#include "wire/out.h"

#define WR_PB_VARINT_MAX 10

/* At most WR_PB_VARINT_MAX bytes. */
static inline char *wr_pb_raw_varint(char *at, uint64_t v)
{
    while (v >= 0x80) {
        *at++ = (char)(unsigned char)(v | 0x80);
        v >>= 7;
    }
    *at++ = (char)(unsigned char)v;
    return at;
}

void wr_pb_put_varint(struct wr_out *out, uint64_t v); /* bare, without a tag */
void wr_pb_put_uint(struct wr_out *out, uint32_t field, uint64_t v);
void wr_pb_put_int(struct wr_out *out, uint32_t field, int64_t v);  /* int32, int64, enum */
void wr_pb_put_sint(struct wr_out *out, uint32_t field, int64_t v); /* zigzag */
void wr_pb_put_bool(struct wr_out *out, uint32_t field, bool v);
void wr_pb_put_fixed64(struct wr_out *out, uint32_t field, uint64_t v);
void wr_pb_put_fixed32(struct wr_out *out, uint32_t field, uint32_t v);
void wr_pb_put_double(struct wr_out *out, uint32_t field, double v);
void wr_pb_put_bytes(struct wr_out *out, uint32_t field, struct weir_bytes b);
void wr_pb_put_cstr(struct wr_out *out, uint32_t field, const char *s);

/* The mark that end wants. Messages end in the reverse order of their beginning. */
size_t wr_pb_begin(struct wr_out *out, uint32_t field);
void wr_pb_end(struct wr_out *out, size_t mark);
#endif
