/* SPDX-License-Identifier: Apache-2.0 */
/*
 * thread: the calling thread's producer, by a key of the instance. The key's destructor closes it
 * when its thread ends; the list frees it. What the destructor finds is the instance's, which must
 * not be freed while threads that used it are ending.
 */
#include "stats/stats.h"

static void on_thread_end(void *value)
{
    weir_producer_free(value);
}

void wr_thread_producers_init(struct weir_stats *st)
{
    st->has_producer_key = pthread_key_create(&st->producer_key, on_thread_end) == 0;
}

int weir_stats_producer(struct weir_stats *stats, struct weir_producer **ret_producer)
{
    if (!stats->has_producer_key)
        return WEIR_EFULL;
    struct weir_producer *p = pthread_getspecific(stats->producer_key);
    if (!p) {
        int r = weir_producer_new(stats, 0, 0, &p);
        if (r != WEIR_OK)
            return r;
        if (pthread_setspecific(stats->producer_key, p) != 0) {
            weir_producer_free(p);
            return WEIR_ENOMEM;
        }
        p->automatic = true;
        WR_IGNORE(wr_registry_claim(&stats->producers, UINT32_MAX));
        wr_registry_push(&stats->producers, &p->listed);
    }
    *ret_producer = p;
    return WEIR_OK;
}

static void release(struct weir_stats *st, struct wr_listed *list, bool alive)
{
    while (list) {
        struct weir_producer *const p = (struct weir_producer *)(void *)list;
        list = list->next;
        /* Its thread lives on, or died in a fork; the ring of the latter is in no inbox. */
        if (alive && !atomic_load_explicit(&p->listed.dead, memory_order_acquire)) {
            if (p->generation == st->generation) {
                wr_free(&st->alloc, p->trace, p->trace_cap * sizeof *p->trace);
                wr_free(&st->alloc, p->parents, p->parents_cap * sizeof *p->parents);
            } else {
                wr_ring_discard(&st->shard.inbox, p->ring);
            }
        }
        wr_free(&st->alloc, p, sizeof *p);
    }
}

void wr_thread_producers_sweep(struct weir_stats *st)
{
    if (wr_registry_is_due(&st->producers, UINT32_MAX))
        release(st, wr_registry_sweep(&st->producers), false);
}

void wr_thread_producers_done(struct weir_stats *st)
{
    if (st->has_producer_key)
        (void)pthread_key_delete(st->producer_key);
    release(st, atomic_load_explicit(&st->producers.first, memory_order_acquire), true);
}
