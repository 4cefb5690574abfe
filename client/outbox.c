/* SPDX-License-Identifier: Apache-2.0 */
/*
 * outbox: the two queues as the client uses them: what is counted when something is dropped, and
 * how room is made. All under c->lock.
 */
#include "client.h"

static bool is_stats(const struct wr_item *item)
{
    return item->version == 0;
}

static struct wr_queue *queue_of(struct weir_client *c, const struct wr_item *item)
{
    return is_stats(item) ? &c->stats_queue : &c->trace_queue;
}

void wr_client_drop(struct weir_client *c, struct wr_item *item, enum weir_client_drop reason)
{
    if (is_stats(item)) {
        c->health.stats_dropped[reason]++;
        wr_spool_remove(&c->spool, item);
    } else {
        c->health.traces_dropped[reason] += item->traces;
        c->health.spans_dropped[reason] += item->spans;
        /* The next payload says it in its place. */
        c->p0_traces += item->p0_traces;
        c->p0_spans += item->p0_spans;
    }
    wr_item_free(&c->alloc, item);
}

void wr_client_drop_all(struct weir_client *c, struct wr_queue *q, enum weir_client_drop reason)
{
    struct wr_item *item;
    while ((item = wr_queue_pop(q)) != NULL)
        wr_client_drop(c, item, reason);
}

static bool spool_one(struct weir_client *c, struct wr_item *item)
{
    if (item->spool_id)
        return true;
    if (c->spool.folder < 0)
        return false;
    const bool written = wr_spool_write(&c->spool, item);
    c->health.spool_written += written;
    c->health.spool_failed += !written;
    return written;
}

void wr_client_spool_all(struct weir_client *c)
{
    if (c->spool.folder < 0)
        return;
    for (struct wr_item *item = c->stats_queue.first; item && spool_one(c, item);)
        item = item->next;
}

/* Give memory back until the queue is within its bounds; whether item is still in it. */
static bool make_room(struct weir_client *c, struct wr_queue *q, const struct wr_item *item)
{
    bool kept = true;
    while (wr_queue_is_over(q)) {
        struct wr_item *const oldest = wr_queue_oldest_in_memory(q);
        if (oldest && is_stats(oldest) && spool_one(c, oldest)) {
            wr_queue_drop_body(q, oldest);
            continue;
        }
        struct wr_item *const victim = wr_queue_pop_victim(q);
        if (!victim)
            break;
        kept = kept && victim != item;
        wr_client_drop(c, victim, WEIR_CLIENT_DROP_QUEUE_FULL);
    }
    return kept;
}

void wr_client_wake(struct weir_client *c)
{
    c->woken = true;
    (void)pthread_cond_signal(&c->wake);
}

int wr_client_queue(struct weir_client *c, struct wr_item *item)
{
    struct wr_queue *const q = queue_of(c, item);
    (void)pthread_mutex_lock(&c->lock);
    wr_queue_push(q, item);
    const bool kept = make_room(c, q, item);
    wr_client_wake(c);
    (void)pthread_mutex_unlock(&c->lock);
    return kept ? WEIR_OK : WEIR_EFULL;
}

void wr_client_requeue(struct weir_client *c, struct wr_item *item)
{
    struct wr_queue *const q = queue_of(c, item);
    (void)pthread_mutex_lock(&c->lock);
    wr_queue_push_back(q, item);
    if (is_stats(item))
        wr_client_spool_all(c);
    (void)make_room(c, q, item);
    (void)pthread_mutex_unlock(&c->lock);
}
