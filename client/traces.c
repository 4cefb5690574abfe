/* SPDX-License-Identifier: Apache-2.0 */
/*
 * traces: two open payloads, of traces that are kept and of those of low priority, each encoded as
 * its traces come; full or old ones go to the queue.
 *
 * A payload belongs to one version and to one state of the statistics, for both are said once a
 * payload: when either changes the open ones are closed.
 *
 * Threads: any, one at a time (trace_lock).
 */
#include "client.h"

#include <string.h>

enum { LOW, KEPT, LEAST_PAYLOAD_BYTES = 64 << 10 };

static uint32_t encoder_version(uint32_t version)
{
    return version == WR_VERSION_V03 ? WEIR_TRACE_V04 : version;
}

uint32_t weir_client_trace_version(struct weir_client *client)
{
    wr_client_enter(client);
    return encoder_version(atomic_load(&client->version));
}

/* Made on the first trace: a client that sends none has no payload open. */
static int need_encoder(struct weir_client *c, size_t which)
{
    struct wr_client_traces *const t = &c->traces;
    if (t->encoders[which])
        return WEIR_OK;
    memset(&t->header, 0, sizeof t->header);
    if (c->opts.header)
        t->header = *c->opts.header;
    t->header.runtime_id = weir_str_c(c->runtime_id);
    const struct weir_trace_opts opts = {.struct_size = sizeof opts,
                                         .alloc = c->alloc,
                                         .version = t->version,
                                         .max_bytes = c->opts.payload_bytes,
                                         .header = &t->header};
    return weir_trace_encoder_new(&opts, &t->encoders[which]);
}

static void drop_traces(struct weir_client *c, enum weir_client_drop reason, uint64_t traces,
                        uint64_t spans)
{
    (void)pthread_mutex_lock(&c->lock);
    c->health.traces_dropped[reason] += traces;
    c->health.spans_dropped[reason] += spans;
    (void)pthread_mutex_unlock(&c->lock);
}

/* Close one payload. trace_lock is held. What it held is queued, or dropped and counted. */
static int close_payload(struct weir_client *c, size_t which)
{
    struct weir_trace_encoder *const encoder = c->traces.encoders[which];
    struct weir_trace_counts counts;
    struct weir_bytes payload;
    if (!encoder)
        return WEIR_OK;
    weir_trace_get_counts(encoder, &counts);
    if (counts.traces == 0)
        return WEIR_OK;
    int err = weir_trace_payload(encoder, &payload);
    struct wr_item *const item = err ? NULL : wr_item_new(&c->alloc, payload);
    weir_trace_clear(encoder);
    if (!item) {
        drop_traces(c, WEIR_CLIENT_DROP_MEMORY, counts.traces, counts.spans);
        return WEIR_ENOMEM;
    }
    item->version = c->traces.version;
    item->low = which == LOW;
    item->computed = c->traces.computed;
    item->traces = counts.traces;
    item->spans = counts.spans;
    return wr_client_queue(c, item);
}

static void close_all(struct weir_client *c)
{
    WR_IGNORE(close_payload(c, KEPT)); /* counted */
    WR_IGNORE(close_payload(c, LOW));
    c->traces.opened_ns = INT64_MAX;
}

/* trace_lock is held. */
static void settle_state(struct weir_client *c)
{
    struct wr_client_traces *const t = &c->traces;
    const uint32_t version = encoder_version(atomic_load(&c->version));
    const bool computed = atomic_load(&c->stats.on);
    if (version == t->version && computed == t->computed)
        return;
    close_all(c);
    t->computed = computed;
    if (version == t->version)
        return;
    t->version = version;
    for (size_t i = 0; i < 2; i++) {
        if (t->encoders[i])
            WR_IGNORE(weir_trace_begin(t->encoders[i], version)); /* a version it knows */
    }
}

/* trace_lock is held. */
static int encode(struct weir_client *c, const struct weir_trace *trace, size_t which)
{
    int err = need_encoder(c, which);
    if (err)
        return err;
    err = weir_trace_add(c->traces.encoders[which], trace);
    if (err != WEIR_EFULL)
        return err;
    struct weir_trace_counts counts;
    weir_trace_get_counts(c->traces.encoders[which], &counts);
    if (counts.traces == 0)
        return err;
    WR_IGNORE(close_payload(c, which)); /* counted */
    return weir_trace_add(c->traces.encoders[which], trace);
}

static int add(struct weir_client *c, const struct weir_trace *trace, size_t which)
{
    const int err = encode(c, trace, which);
    if (err) {
        drop_traces(c, err == WEIR_EFULL ? WEIR_CLIENT_DROP_TOO_LARGE : WEIR_CLIENT_DROP_MEMORY, 1,
                    trace->span_count);
        return err;
    }
    if (c->traces.opened_ns == INT64_MAX) {
        int64_t wall_ns;
        c->opts.clock(c->opts.clock_ctx, &wall_ns, &c->traces.opened_ns);
        (void)pthread_mutex_lock(&c->lock);
        wr_client_wake(c); /* it sleeps by what was open before */
        (void)pthread_mutex_unlock(&c->lock);
    }
    return WEIR_OK;
}

/* Spans that single-span sampling keeps of a trace that goes. trace_lock is held. */
static int add_sampled(struct weir_client *c, const struct weir_trace *trace)
{
    uint64_t kept = 0;
    int err = WEIR_OK;
    for (size_t i = 0; i < trace->span_count && c->opts.keep_span; i++) {
        struct weir_trace one = *trace;
        one.spans = &trace->spans[i];
        one.span_count = 1;
        if (!c->opts.keep_span(c->opts.ctx, &trace->spans[i]))
            continue;
        const int r = add(c, &one, KEPT);
        kept += r == WEIR_OK;
        err = err ? err : r;
    }
    (void)pthread_mutex_lock(&c->lock);
    c->health.spans_sampled += kept;
    c->p0_traces++;
    c->p0_spans += trace->span_count - kept;
    c->health.traces_dropped[WEIR_CLIENT_DROP_P0]++;
    c->health.spans_dropped[WEIR_CLIENT_DROP_P0] += trace->span_count - kept;
    (void)pthread_mutex_unlock(&c->lock);
    return err;
}

int weir_client_add_trace(struct weir_client *client, const struct weir_trace *trace,
                          uint32_t flags)
{
    wr_client_enter(client);
    if (!trace || (trace->span_count && !trace->spans))
        return WEIR_EINVAL;
    const bool keep = (flags & WEIR_CLIENT_KEEP) != 0;
    (void)pthread_mutex_lock(&client->lock);
    client->health.traces_in++;
    client->health.spans_in += trace->span_count;
    (void)pthread_mutex_unlock(&client->lock);
    (void)pthread_mutex_lock(&client->trace_lock);
    settle_state(client);
    int err;
    if (!keep && client->traces.computed)
        err = add_sampled(client, trace);
    else
        err = add(client, trace, keep ? KEPT : LOW);
    (void)pthread_mutex_unlock(&client->trace_lock);
    return err;
}

int weir_client_add_payload(struct weir_client *client, uint32_t version, struct weir_bytes payload,
                            uint64_t traces, uint64_t spans, uint32_t flags)
{
    wr_client_enter(client);
    if ((version != WEIR_TRACE_V04 && version != WEIR_TRACE_V05 && version != WEIR_TRACE_V1) ||
        payload.len == 0)
        return WEIR_EINVAL;
    (void)pthread_mutex_lock(&client->lock);
    client->health.traces_in += traces;
    client->health.spans_in += spans;
    (void)pthread_mutex_unlock(&client->lock);
    struct wr_item *const item = wr_item_new(&client->alloc, payload);
    if (!item) {
        drop_traces(client, WEIR_CLIENT_DROP_MEMORY, traces, spans);
        return WEIR_ENOMEM;
    }
    item->version = version;
    item->low = (flags & WEIR_CLIENT_KEEP) == 0;
    item->computed = atomic_load(&client->stats.on);
    item->traces = traces;
    item->spans = spans;
    return wr_client_queue(client, item);
}

void weir_client_flush(struct weir_client *client)
{
    wr_client_enter(client);
    (void)pthread_mutex_lock(&client->lock);
    client->want_flush = true;
    wr_client_wake(client);
    (void)pthread_mutex_unlock(&client->lock);
}

int64_t wr_client_next_flush_ns(struct weir_client *c)
{
    (void)pthread_mutex_lock(&c->trace_lock);
    const int64_t opened_ns = c->traces.opened_ns;
    (void)pthread_mutex_unlock(&c->trace_lock);
    return opened_ns == INT64_MAX ? INT64_MAX : wr_sat_add(opened_ns, c->opts.flush_for_ns);
}

bool wr_client_traces_wait(struct weir_client *c)
{
    (void)pthread_mutex_lock(&c->lock);
    const bool wait = c->trace_retry.failures > 0 && !wr_queue_is_empty(&c->trace_queue);
    (void)pthread_mutex_unlock(&c->lock);
    return wait;
}

void wr_client_flush_due(struct weir_client *c, bool all)
{
    (void)pthread_mutex_lock(&c->lock);
    const bool want = c->want_flush || all;
    c->want_flush = false;
    (void)pthread_mutex_unlock(&c->lock);
    if (!want && (wr_client_traces_wait(c) || wr_client_now(c) < wr_client_next_flush_ns(c)))
        return;
    (void)pthread_mutex_lock(&c->trace_lock);
    close_all(c);
    (void)pthread_mutex_unlock(&c->trace_lock);
}

/* 413: the agent takes less than len. Encoders that are made later keep to it. */
void wr_client_halve_payloads(struct weir_client *c, size_t len)
{
    size_t half = (len < c->opts.payload_bytes ? len : c->opts.payload_bytes) / 2;
    if (half < LEAST_PAYLOAD_BYTES)
        half = LEAST_PAYLOAD_BYTES;
    if (half >= c->opts.payload_bytes)
        return;
    (void)pthread_mutex_lock(&c->trace_lock);
    close_all(c);
    c->opts.payload_bytes = half;
    wr_client_free_traces(c);
    (void)pthread_mutex_unlock(&c->trace_lock);
}

void wr_client_free_traces(struct weir_client *c)
{
    for (size_t i = 0; i < 2; i++) {
        weir_trace_encoder_free(c->traces.encoders[i]);
        c->traces.encoders[i] = NULL;
    }
}
