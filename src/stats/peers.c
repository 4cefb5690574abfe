/* SPDX-License-Identifier: Apache-2.0 */
/* peers: peer tags that change while producers publish; see schemas.h. */
#include "base/hash.h"
#include "stats/stats.h"

int weir_stats_set_peer_tags(struct weir_stats *stats, const char *const *names, size_t count)
{
    (void)wr_stats_generation(stats);
    return wr_schemas_set(&stats->schemas, names, count);
}

void wr_producer_unpin(struct weir_producer *p)
{
    if (p->schema != &p->stats->schema)
        wr_schemas_unpin(&p->stats->schemas, p->schema);
    p->schema = &p->stats->schema;
}

static WR_NOINLINE void take_current(struct weir_producer *p)
{
    const struct wr_schema *const was = p->schema;
    p->schema = wr_schemas_pin(&p->stats->schemas);
    if (was != &p->stats->schema)
        wr_schemas_unpin(&p->stats->schemas, was);
    if (p->schema == &p->stats->schema) /* which stays without */
        wr_schemas_unpin(&p->stats->schemas, p->schema);
}

const struct weir_tags *weir_producer_tags(struct weir_producer *producer)
{
    struct weir_producer *const p = producer;
    wr_producer_check(p);
    const bool open = p->trace_count > 0 || p->ring->at != p->ring->tail_own;
    /* acquire: what stands in the schema is read after its number. */
    if (WR_UNLIKELY(!open && atomic_load_explicit(&p->stats->schemas.current,
                                                  memory_order_acquire) != p->schema->number))
        take_current(p);
    return p->schema->tags;
}

/* Its peer tags are those of the current schema; while it has spans in open windows, those of
 * before. */
static void renew_overflow(struct weir_stats *st)
{
    char key[WR_KEY_OVERFLOW_MAX];
    const struct wr_schema *const schema = wr_schemas_pin(&st->schemas);
    const size_t bytes = wr_key_overflow(schema, key, sizeof key);
    struct wr_entry *const e = st->shard.overflow;
    if (wr_key_epoch(key, bytes) != wr_key_epoch(wr_entry_key(e), e->key_bytes))
        WR_IGNORE(wr_shard_set_overflow(&st->shard, key, bytes, wr_hash_key(key, bytes, st->seed)));
    wr_schemas_unpin(&st->schemas, schema);
}

void wr_stats_free_schemas(struct weir_stats *st, const struct wr_idle_schemas *idle)
{
    struct wr_shard *const s = &st->shard;
    const bool one = atomic_load_explicit(&st->schemas.count, memory_order_relaxed) <= 1;
    if (one || s->totals.sealed_batches == st->seals_swept)
        return;
    st->seals_swept = s->totals.sealed_batches;
    renew_overflow(st);
    if (!idle->set)
        return;
    const uint32_t freed = wr_schemas_free_idle(&st->schemas, idle, wr_shard_epochs(s));
    wr_limits_forget(&st->limits, freed);
    wr_shard_forget_names(s, freed);
}
