/* SPDX-License-Identifier: Apache-2.0 */
/*
 * v04: one span as a map of twelve pairs, thirteen with meta_struct, in the order of the reference
 * (contracts trace-encoding §2.2). The pair names are constants that carry their MessagePack header
 * with them.
 */
#include "trace/put.h"

#define V WEIR_TRACE_V04

WR_INLINE char *put_field(struct weir_trace_encoder *e, char *at, struct weir_str s)
{
    return WR_LIKELY(s.ptr) ? wr_put_str(e, at, s, V) : wr_mp_raw_byte(at, WR_MP_NIL);
}

static WR_NOINLINE char *put_blobs(struct weir_trace_encoder *e, const struct weir_trace_extra *x,
                                   char *at)
{
    at = WR_PUT(at, "\xab"
                    "meta_struct");
    at = wr_mp_raw_map(at, (uint32_t)x->blob_count);
    for (size_t i = 0; i < x->blob_count; i++) {
        at = wr_put_str(e, at, x->blobs[i].key, V);
        at = wr_mp_raw_bin(at, x->blobs[i].value);
    }
    return at;
}

char *wr_trace_span_v04(struct weir_trace_encoder *e, const struct wr_trace_plan *p, char *at)
{
    const struct weir_trace_span *const s = p->span;
    const bool blobs = s->extra && s->extra->blob_count;
    at = WR_PUT(at, "\x8c\xa7"
                    "service");
    if (WR_UNLIKELY(blobs))
        at[-9] = (char)0x8d;
    at = put_field(e, at, s->service);
    at = WR_PUT(at, "\xa4"
                    "name");
    at = put_field(e, at, s->name);
    at = WR_PUT(at, "\xa8"
                    "resource");
    at = put_field(e, at, s->resource);
    at = WR_PUT(at, "\xa8"
                    "trace_id");
    at = wr_mp_raw_uint(at, s->trace_id);
    at = WR_PUT(at, "\xa7"
                    "span_id");
    at = wr_mp_raw_uint(at, s->span_id);
    at = WR_PUT(at, "\xa9"
                    "parent_id");
    at = wr_mp_raw_uint(at, s->parent_id);
    at = WR_PUT(at, "\xa5"
                    "start");
    at = wr_put_time(at, s->start_ns);
    at = WR_PUT(at, "\xa8"
                    "duration");
    at = wr_mp_raw_int(at, s->duration_ns);
    at = WR_PUT(at, "\xa4"
                    "type");
    at = put_field(e, at, s->type);
    at = WR_PUT(at, "\xa5"
                    "error");
    at = wr_put_small(at, s->error);
    at = WR_PUT(at, "\xa7"
                    "metrics");
    at = wr_put_metrics(e, p, at, V);
    at = WR_PUT(at, "\xa4"
                    "meta");
    at = wr_put_meta(e, p, at, V);
    return WR_UNLIKELY(blobs) ? put_blobs(e, s->extra, at) : at;
}
