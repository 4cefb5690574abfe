/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fork: what a forked child makes of a client that it inherits. The fork may have caught every
 * other thread in the middle of anything, so nothing of theirs is read or freed: locks are made
 * anew, queues, encoders and connection are forgotten, and the client has another name, for the
 * parent's RuntimeID and Sequence go on counting in the parent.
 *
 * Threads: any; the first that comes by in the child does the work.
 */
#include "client.h"

#include <sched.h>
#include <string.h>

static const uint64_t cleaning = UINT64_MAX;

int wr_client_init_locks(struct weir_client *c)
{
    pthread_condattr_t attr;
    if (pthread_condattr_init(&attr) != 0)
        return WEIR_ENOMEM;
    (void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    const bool made =
        pthread_mutex_init(&c->lock, NULL) == 0 && pthread_mutex_init(&c->stats_lock, NULL) == 0 &&
        pthread_mutex_init(&c->trace_lock, NULL) == 0 && pthread_cond_init(&c->wake, &attr) == 0;
    (void)pthread_condattr_destroy(&attr);
    return made ? WEIR_OK : WEIR_ENOMEM;
}

static void forget_queue(struct wr_queue *q)
{
    q->first = NULL;
    q->last = NULL;
    q->count = 0;
    q->stored = 0;
    q->bytes = 0;
}

static void forget(struct weir_client *c)
{
    WR_IGNORE(wr_client_init_locks(c)); /* cannot fail where it did not the first time */
    forget_queue(&c->stats_queue);
    forget_queue(&c->trace_queue);
    wr_spool_forget(&c->spool);
    c->health = (struct weir_client_health){0};
    c->agent = (struct weir_client_agent){0};
    c->p0_traces = 0;
    c->p0_spans = 0;
    c->want_info = true;
    c->want_flush = false;
    atomic_store(&c->version, WEIR_TRACE_V04);
    c->running = false;
    c->hosted = false;
    c->stop = false;
    c->downgrade = false;
    c->tags_pending = false;
    c->rates.last = NULL;
    c->rates.last_len = 0;
    c->rates.version[0] = 0;
    c->info_retry.failures = 0;
    c->stats_retry.failures = 0;
    c->trace_retry.failures = 0;
    memset(c->info, 0, sizeof *c->info);
    c->traces.encoders[0] = NULL;
    c->traces.encoders[1] = NULL;
    c->traces.opened_ns = INT64_MAX;
    struct wr_client_stats *const s = &c->stats;
    const bool on = s->engine && (c->opts.flags & WEIR_CLIENT_OPTIMISTIC) != 0;
    s->payload = NULL;
    s->sequence = 0;
    s->started = false;
    s->clear_pending = false;
    s->wanted = on;
    atomic_store(&s->on, on);
    wr_client_uuid(c->runtime_id);
    s->identity.runtime_id =
        (struct weir_bytes){.ptr = c->runtime_id, .len = strlen(c->runtime_id)};
    s->identity.sequence = 0;
    if (c->transport.forked)
        c->transport.forked(c->transport.ctx);
}

void wr_client_enter(struct weir_client *c)
{
    for (;;) {
        /* acquire: who finds a generation finds what the cleaning did. */
        uint64_t now = atomic_load_explicit(&c->fork_page->value, memory_order_acquire);
        if (now != 0 && now != cleaning)
            return;
        if (now == 0 &&
            atomic_compare_exchange_strong_explicit(&c->fork_page->value, &now, cleaning,
                                                    memory_order_acquire, memory_order_relaxed)) {
            forget(c);
            c->generation++;
            /* release: pairs with the acquire above. */
            atomic_store_explicit(&c->fork_page->value, c->generation, memory_order_release);
            continue;
        }
        (void)sched_yield();
    }
}
