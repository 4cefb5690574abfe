/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fork: what a forked child makes of an instance that it inherits. A fork may catch every other
 * thread in the middle of anything, so nothing of theirs is read: the rings are taken off the
 * inbox, and the owner's state is forgotten when an owner first comes. What was so forgotten is not
 * freed: it is pages shared with the parent. A producer of before comes back, its ring empty, when
 * it is next used.
 *
 * Threads: any; the first that comes by in the child does the work.
 */
#include "stats/stats.h"

#include <sched.h>

static const uint64_t cleaning = UINT64_MAX;

static void forget(struct weir_stats *st)
{
    wr_inbox_forget(&st->shard.inbox);
    wr_runner_forget(&st->runner);
    wr_schemas_forget(&st->schemas);
}

uint64_t wr_stats_generation(struct weir_stats *st)
{
    for (;;) {
        /* acquire: who finds a generation finds what the cleaning did. */
        uint64_t now = atomic_load_explicit(&st->fork_word->value, memory_order_acquire);
        if (now != 0 && now != cleaning)
            return now;
        /* Between threads of the child: one cleans, the others wait. */
        if (now == 0 &&
            atomic_compare_exchange_strong_explicit(&st->fork_word->value, &now, cleaning,
                                                    memory_order_acquire, memory_order_relaxed)) {
            forget(st);
            st->generation++;
            /* release: pairs with the acquire above. */
            atomic_store_explicit(&st->fork_word->value, st->generation, memory_order_release);
            continue;
        }
        (void)sched_yield();
    }
}

bool wr_stats_owner_ready(struct weir_stats *st)
{
    const uint64_t now = wr_stats_generation(st);
    return st->shard.generation == now || wr_stats_restart_shard(st, now) == WEIR_OK;
}

int wr_producer_renew(struct weir_producer *p)
{
    struct weir_stats *const st = p->stats;
    const uint64_t now = wr_stats_generation(st);
    /* Another thread may have been using it: its arrays are not trusted, and not freed. */
    p->trace = NULL;
    p->trace_count = 0;
    p->trace_cap = 0;
    p->parents = NULL;
    p->parents_cap = 0;
    p->committable = 0;
    p->notes = (struct wr_notes){0};
    p->kept = (struct wr_kept){0};
    p->keep = false;
    const int r = wr_ring_rejoin(&st->shard.inbox, p->ring);
    p->trace_at = p->ring->at;
    if (r == WEIR_OK)
        p->generation = now;
    return r;
}
