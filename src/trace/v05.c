/* SPDX-License-Identifier: Apache-2.0 */
/*
 * v05: one span as an array of twelve, strings as dictionary indices that are given out in the
 * order of the fields: meta before metrics, type last (contracts trace-encoding §2.3).
 */
#include "trace/encoder.h"

/* The array header, three indices, five integers and the error. */
#define FIXED_MAX (1 + 3 * WR_MP_HEAD_MAX + 6 * WR_MP_INT_MAX)
_Static_assert(FIXED_MAX < WR_TRACE_SLACK, "bounds of one span fit the slack");

/* The index of s at at; NULL with *err set when the dictionary refused. */
static char *put_index(struct weir_trace_encoder *e, char *at, struct weir_bytes s, int *err)
{
    uint32_t index = 0;
    *err = wr_trace_dict_index(&e->dict, s, &index);
    return *err ? NULL : wr_mp_raw_uint(at, index);
}

static int put_fields(struct weir_trace_encoder *e, const struct weir_trace_span *s)
{
    char *at = wr_out_reserve(&e->body, FIXED_MAX);
    if (!at)
        return e->body.err;
    at = wr_mp_raw_array(at, 12);
    const struct weir_bytes names[] = {s->service, s->name, s->resource};
    for (size_t i = 0; i < 3; i++) {
        int err;
        at = put_index(e, at, names[i], &err);
        if (!at)
            return err;
    }
    at = wr_mp_raw_uint(at, s->trace_id);
    at = wr_mp_raw_uint(at, s->span_id);
    at = wr_mp_raw_uint(at, s->parent_id);
    at = wr_mp_raw_int(at, s->start_ns);
    at = wr_mp_raw_int(at, s->duration_ns);
    at = wr_mp_raw_int(at, s->error);
    wr_out_commit(&e->body, at);
    return WEIR_OK;
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
    wr_mp_put_map(&e->body, kept);
    for (size_t i = 0; i < s->meta_count; i++) {
        if (drop && drop[i])
            continue;
        char *at = wr_out_reserve(&e->body, 2 * WR_MP_HEAD_MAX);
        if (!at)
            break;
        int err;
        at = put_index(e, at, s->meta[i].key, &err);
        if (at)
            at = put_index(e, at, s->meta[i].value, &err);
        if (!at)
            return err;
        wr_out_commit(&e->body, at);
    }
    return e->body.err;
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
    wr_mp_put_map(&e->body, kept);
    for (size_t i = 0; i < s->metric_count; i++) {
        if (drop && drop[i])
            continue;
        char *at = wr_out_reserve(&e->body, WR_MP_HEAD_MAX + WR_MP_INT_MAX);
        if (!at)
            break;
        int err;
        at = put_index(e, at, s->metrics[i].key, &err);
        if (!at)
            return err;
        wr_out_commit(&e->body, wr_trace_raw_metric(at, &s->metrics[i]));
    }
    return e->body.err;
}

int wr_trace_span_v05(struct weir_trace_encoder *e, const struct weir_trace_span *s)
{
    int err = put_fields(e, s);
    if (!err)
        err = put_meta(e, s);
    if (!err)
        err = put_metrics(e, s);
    if (err)
        return err;
    char *at = wr_out_reserve(&e->body, WR_MP_HEAD_MAX);
    if (!at)
        return e->body.err;
    at = put_index(e, at, s->type, &err);
    if (at)
        wr_out_commit(&e->body, at);
    return err;
}
