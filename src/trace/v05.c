/* SPDX-License-Identifier: Apache-2.0 */
/*
 * v05: one span as an array of twelve, strings as dictionary indices that are given out in the
 * order of the fields: meta before metrics, type last (contracts trace-encoding §2.3).
 */
#include "trace/put.h"

#define V WEIR_TRACE_V05

WR_INLINE char *put_field(struct weir_trace_encoder *e, char *at, struct weir_str s)
{
    return WR_LIKELY(s.ptr) ? wr_put_str(e, at, s, V) : wr_put_known(e, at, WR_KNOWN_NONE, V);
}

char *wr_trace_span_v05(struct weir_trace_encoder *e, const struct wr_trace_plan *p, char *at)
{
    const struct weir_trace_span *const s = p->span;
    at = wr_mp_raw_byte(at, 0x9c);
    at = put_field(e, at, s->service);
    at = put_field(e, at, s->name);
    at = put_field(e, at, s->resource);
    at = wr_mp_raw_uint(at, s->trace_id);
    at = wr_mp_raw_uint(at, s->span_id);
    at = wr_mp_raw_uint(at, s->parent_id);
    at = wr_put_time(at, s->start_ns);
    at = wr_mp_raw_int(at, s->duration_ns);
    at = wr_put_small(at, s->error);
    at = wr_put_meta(e, p, at, V);
    at = wr_put_metrics(e, p, at, V);
    return put_field(e, at, s->type);
}
