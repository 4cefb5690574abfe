/* SPDX-License-Identifier: Apache-2.0 */
/*
 * payload: from a body to counted spans, whole or not at all.
 *
 *   fits the ring:   begin, decode (add, trace_end), commit, poll
 *   does not fit:    abandon, decode without a sink; then begin, decode: at each full ring commit
 *                    the traces that are complete, poll, go on; commit, poll
 *
 * In the second form the payload is already proved well formed, so showing its beginning before
 * its end breaks nothing. A single trace larger than the drained ring is dropped and counted
 * inbox_full; loose OTLP spans are cut into parts instead, since they are no trace anyway: only a
 * child whose parent is in another part may then miss its top-level mark.
 */
#include "pipeline/pipeline.h"
#include "plat/plat.h"
#include "receive/internal.h"

#include <stdio.h>

struct walk {
    struct receive *r;
    struct receive_payload *p;
    struct weir_producer *producer;
    uint64_t in_trace; /* spans of the open trace */
    bool skipping;     /* the open trace is too large */
    uint64_t dropped;
};

static void on_refused(void *ctx, enum weir_refusal reason)
{
    struct walk *const w = ctx;
    w->p->rejected[reason]++;
}

/* The payload fits. */

static int on_span(void *ctx, const struct weir_span *span)
{
    return weir_stats_add(((struct walk *)ctx)->producer, span);
}

static int on_trace_end(void *ctx)
{
    return weir_stats_trace_end(((struct walk *)ctx)->producer);
}

/* The payload does not. */

static void make_room(struct walk *w)
{
    weir_stats_commit(w->producer);
    pipeline_poll(w->r->opts.pipeline);
}

/* Forget the spans of the open trace, and say so; the traces before it are whole and stay. */
static void drop_open(struct walk *w)
{
    weir_stats_commit(w->producer);
    weir_stats_abandon(w->producer);
    weir_stats_begin(w->producer, &w->p->source);
    weir_stats_drop(w->producer, w->in_trace);
    w->dropped += w->in_trace;
    w->in_trace = 0;
}

/* Loose spans may be cut anywhere. */
static void end_part(struct walk *w)
{
    if (weir_stats_trace_end(w->producer) != WEIR_OK)
        drop_open(w);
    w->in_trace = 0;
}

static int on_large_span(void *ctx, const struct weir_span *span)
{
    struct walk *const w = ctx;
    bool added = !w->skipping && weir_stats_add(w->producer, span) == WEIR_OK;
    if (!added && !w->skipping) {
        if (w->p->loose)
            end_part(w);
        make_room(w);
        added = weir_stats_add(w->producer, span) == WEIR_OK;
    }
    w->in_trace++;
    if (!added && w->p->loose)
        drop_open(w); /* this span alone */
    else
        w->skipping = !added;
    return WEIR_OK;
}

static int on_large_trace_end(void *ctx)
{
    struct walk *const w = ctx;
    if (w->skipping || weir_stats_trace_end(w->producer) != WEIR_OK)
        drop_open(w);
    w->skipping = false;
    w->in_trace = 0;
    return WEIR_OK;
}

static int count_large(struct walk *w, struct receive_payload *p)
{
    struct weir_decoder *const d = w->r->decoder;
    int r = p->decode(d, p->bytes.ptr, p->bytes.len, NULL, NULL, &p->where);
    if (r != WEIR_OK)
        return r;
    const struct weir_span_sink sink = {
        .ctx = w, .span = on_large_span, .trace_end = on_large_trace_end, .refused = on_refused};
    weir_stats_begin(w->producer, &p->source);
    r = p->decode(d, p->bytes.ptr, p->bytes.len, &sink, &p->result, &p->where);
    w->r->counts.large_payloads++;
    w->r->counts.dropped_spans += w->dropped;
    return r;
}

int receive_payload_count(struct receive *r, struct receive_payload *p)
{
    struct walk w = {.r = r, .p = p, .producer = pipeline_producer(r->opts.pipeline)};
    const struct weir_span_sink sink = {
        .ctx = &w, .span = on_span, .trace_end = on_trace_end, .refused = on_refused};
    weir_stats_begin(w.producer, &p->source);
    int err = p->decode(r->decoder, p->bytes.ptr, p->bytes.len, &sink, &p->result, &p->where);
    if (err == WEIR_EFULL) {
        weir_stats_abandon(w.producer);
        for (int i = 0; i < WEIR_REFUSAL_COUNT; i++)
            p->rejected[i] = 0;
        err = count_large(&w, p);
    }
    if (err == WEIR_OK)
        weir_stats_commit(w.producer);
    else
        weir_stats_abandon(w.producer);
    pipeline_poll(r->opts.pipeline);
    return err;
}

static void refuse_memory(struct receive_side *side, struct net_request *req)
{
    const struct net_header retry = {"Retry-After", "1"};
    receive_refuse(side, req, RECEIVE_REFUSED_MEMORY, 503, "weir: no memory for the payload\n",
                   &retry);
}

static void refuse_payload(struct receive_side *side, const struct receive_def *def,
                           struct net_request *req, int err, const struct weir_where *where)
{
    if (err != WEIR_EFORMAT && err != WEIR_ETRUNCATED) {
        refuse_memory(side, req);
        return;
    }
    char text[256];
    (void)snprintf(text, sizeof text, "weir: cannot decode %s payload at byte %zu: %s\n", def->path,
                   where->offset, where->reason ? where->reason : weir_strerror(err));
    receive_refuse(side, req, RECEIVE_REFUSED_DECODE, 400, text, NULL);
}

bool receive_take(struct receive_side *side, const struct receive_def *def, struct net_request *req,
                  struct receive_payload *p)
{
    struct receive *const r = side->receive;
    if (pipeline_is_short(r->opts.pipeline)) {
        refuse_memory(side, req);
        return false;
    }
    p->bytes = net_request_body(req);
    p->source.now_ns = plat_wall_ns();
    const int err = receive_payload_count(r, p);
    if (err != WEIR_OK) {
        refuse_payload(side, def, req, err, &p->where);
        return false;
    }
    struct receive_route_counts *const c = &r->counts.routes[def->route];
    c->payloads++;
    c->spans += p->result.spans;
    c->bytes += net_request_wire_bytes(req);
    for (int i = 0; i < WEIR_REFUSAL_COUNT; i++)
        r->counts.rejected_spans[i] += p->rejected[i];
    return true;
}
