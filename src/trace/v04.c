/* SPDX-License-Identifier: Apache-2.0 */
/*
 * v04: one span as a map of twelve pairs, in the order of the reference (contracts trace-encoding
 * §2.2). The pair names are constants that carry their MessagePack header with them. One
 * reservation covers everything but the tags, and one each tag.
 */
#include "trace/encoder.h"

/* Sum of the literal frames below, map header, nil or string headers and integers. */
#define FIXED_MAX                                                                                  \
    (1 + 8 + 5 + 9 + 9 + 8 + 10 + 6 + 9 + 5 + 6 + 8 + 5 + 4 * WR_MP_HEAD_MAX + 6 * WR_MP_INT_MAX)
_Static_assert(FIXED_MAX < WR_TRACE_SLACK, "bounds of one span fit the slack");

#define PUT(at, frame) put_frame((at), (frame), sizeof(frame) - 1)
static inline char *put_frame(char *at, const char *frame, size_t n)
{
    memcpy(at, frame, n);
    return at + n;
}

static inline char *put_str(char *at, struct weir_bytes s)
{
    return wr_mp_raw_str(at, s.ptr, (uint32_t)s.len);
}

static void put_fields(struct wr_out *out, const struct weir_trace_span *s)
{
    char *at = wr_out_reserve(out, FIXED_MAX + s->service.len + s->name.len + s->resource.len +
                                       s->type.len);
    if (!at)
        return;
    at = PUT(at, "\x8c\xa7"
                 "service");
    at = put_str(at, s->service);
    at = PUT(at, "\xa4"
                 "name");
    at = put_str(at, s->name);
    at = PUT(at, "\xa8"
                 "resource");
    at = put_str(at, s->resource);
    at = PUT(at, "\xa8"
                 "trace_id");
    at = wr_mp_raw_uint(at, s->trace_id);
    at = PUT(at, "\xa7"
                 "span_id");
    at = wr_mp_raw_uint(at, s->span_id);
    at = PUT(at, "\xa9"
                 "parent_id");
    at = wr_mp_raw_uint(at, s->parent_id);
    at = PUT(at, "\xa5"
                 "start");
    at = wr_mp_raw_int(at, s->start_ns);
    at = PUT(at, "\xa8"
                 "duration");
    at = wr_mp_raw_int(at, s->duration_ns);
    at = PUT(at, "\xa4"
                 "type");
    at = s->type.ptr ? put_str(at, s->type) : wr_mp_raw_byte(at, WR_MP_NIL);
    at = PUT(at, "\xa5"
                 "error");
    at = wr_mp_raw_int(at, s->error);
    wr_out_commit(out, at);
}

static int put_metrics(struct weir_trace_encoder *e, const struct weir_trace_span *s)
{
    const unsigned char *drop = NULL;
    size_t kept = 0;
    if (s->metric_count) {
        const int err = wr_trace_unique_scan(&e->unique, &s->metrics->key, sizeof *s->metrics,
                                             s->metric_count, &drop, &kept);
        if (err)
            return err;
    }
    char *head = wr_out_reserve(&e->body, 8 + WR_MP_HEAD_MAX);
    if (!head)
        return e->body.err;
    head = PUT(head, "\xa7"
                     "metrics");
    wr_out_commit(&e->body, wr_mp_raw_map(head, (uint32_t)kept));
    for (size_t i = 0; i < s->metric_count; i++) {
        if (drop && drop[i])
            continue;
        const struct weir_trace_metric *const m = &s->metrics[i];
        char *at = wr_out_reserve(&e->body, WR_MP_HEAD_MAX + m->key.len + WR_MP_INT_MAX);
        if (!at)
            break;
        at = put_str(at, m->key);
        wr_out_commit(&e->body, wr_trace_raw_metric(at, m));
    }
    return e->body.err;
}

static int put_meta(struct weir_trace_encoder *e, const struct weir_trace_span *s)
{
    const unsigned char *drop = NULL;
    size_t kept = 0;
    if (s->meta_count) {
        const int err = wr_trace_unique_scan(&e->unique, &s->meta->key, sizeof *s->meta,
                                             s->meta_count, &drop, &kept);
        if (err)
            return err;
    }
    char *head = wr_out_reserve(&e->body, 5 + WR_MP_HEAD_MAX);
    if (!head)
        return e->body.err;
    head = PUT(head, "\xa4"
                     "meta");
    wr_out_commit(&e->body, wr_mp_raw_map(head, (uint32_t)kept));
    for (size_t i = 0; i < s->meta_count; i++) {
        if (drop && drop[i])
            continue;
        const struct weir_trace_meta *const m = &s->meta[i];
        char *at = wr_out_reserve(&e->body, 2 * WR_MP_HEAD_MAX + m->key.len + m->value.len);
        if (!at)
            break;
        at = put_str(at, m->key);
        wr_out_commit(&e->body, put_str(at, m->value));
    }
    return e->body.err;
}

int wr_trace_span_v04(struct weir_trace_encoder *e, const struct weir_trace_span *s)
{
    put_fields(&e->body, s);
    const int err = put_metrics(e, s);
    return err ? err : put_meta(e, s);
}
