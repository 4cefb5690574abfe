/* SPDX-License-Identifier: Apache-2.0 */
/*
 * identity: a label set prepared once: the key bytes and their hash. A record published by it
 * carries a pointer to the key instead of a copy, so an identity that was freed stays until the
 * owner has drained what its holders committed before. It points into no table: the owner finds
 * the entry by hash and key as it does for any record, in each window and after recycling.
 *
 * Threads: an identity is immutable; any number of threads publish by it, each with a producer of
 * its own.
 */
#include "base/hash.h"
#include "stats/stats.h"

struct weir_stats_identity {
    struct wr_listed listed; /* first */
    struct weir_stats *stats;
    const struct wr_schema *schema; /* pinned */
    uint64_t hash;
    uint64_t number;           /* see struct wr_prepared */
    size_t bytes;              /* of the block */
    struct wr_key_notes notes; /* what the labels' repair had to do, each time anew */
    bool special;              /* publishing by it is not the common way */
    bool ignored;              /* of profile client: its resource is */
    uint8_t klass[2];          /* enum wr_class of its records: not top level, and top level */
    uint16_t key_bytes;
    char key[];
};

static enum wr_class class_of(const struct weir_stats *st, unsigned marks, bool top_level)
{
    if (marks & WR_MARK_PARTIAL)
        return WR_CLASS_PARTIAL;
    return wr_is_eligible(st->profile, marks, top_level) ? WR_CLASS_COUNTED : WR_CLASS_INELIGIBLE;
}

static bool is_ignored(const struct weir_stats *st, const struct weir_stats_identity *id)
{
    return st->ignored.count && wr_ignored_has(&st->ignored, wr_key_resource(id->key));
}

static int identity_new(struct weir_stats *stats, const struct wr_schema *schema,
                        const struct weir_source *source, const struct weir_span *span,
                        struct weir_stats_identity **ret_identity)
{
    if (wr_registry_claim(&stats->identities, stats->max_identities) != WEIR_OK)
        return WEIR_EFULL;
    const size_t most = sizeof(struct weir_stats_identity) + wr_key_bound(span);
    struct weir_stats_identity *id = wr_alloc(&stats->alloc, most);
    if (!id) {
        wr_registry_unclaim(&stats->identities);
        return WEIR_ENOMEM;
    }
    memset(id, 0, sizeof *id);
    struct weir_bytes service;
    id->key_bytes =
        (uint16_t)(schema->client
                       ? wr_key_build_client(schema, span, id->key, &service, &id->notes)
                       : wr_key_build(schema, span, source->lang, id->key, &service, &id->notes));
    id->bytes = sizeof *id + id->key_bytes;
    struct weir_stats_identity *const small = wr_realloc(&stats->alloc, id, most, id->bytes);
    if (small)
        id = small;
    else
        id->bytes = most; /* a heap that cannot shrink a block keeps it */
    id->stats = stats;
    id->schema = schema;
    wr_schemas_pin_more(&stats->schemas, schema);
    id->number = atomic_fetch_add_explicit(&stats->identity_numbers, 1, memory_order_relaxed) + 1;
    id->hash = wr_hash_key(id->key, id->key_bytes, stats->seed);
    const unsigned marks = schema->client ? wr_marks_of_client(span) : wr_marks_of(span);
    for (int top = 0; top < 2; top++)
        id->klass[top] = (uint8_t)class_of(stats, marks, top != 0);
    id->ignored = schema->client && is_ignored(stats, id);
    id->special = schema->client || (schema->flags & WEIR_STATS_UNWEIGHTED_SKETCHES) ||
                  id->notes.repaired || id->notes.truncated || id->notes.bad_status;
    wr_registry_push(&stats->identities, &id->listed);
    *ret_identity = id;
    return WEIR_OK;
}

int weir_stats_identity_new(struct weir_stats *stats, const struct weir_source *source,
                            const struct weir_span *span, struct weir_stats_identity **ret_identity)
{
    return identity_new(stats, &stats->schema, source, span, ret_identity);
}

int weir_producer_identity_new(struct weir_producer *producer, const struct weir_source *source,
                               const struct weir_span *span,
                               struct weir_stats_identity **ret_identity)
{
    wr_producer_check(producer);
    return identity_new(producer->stats, producer->schema, source, span, ret_identity);
}

void weir_stats_identity_free(struct weir_stats_identity *identity)
{
    if (identity)
        wr_registry_mark(&identity->stats->identities, &identity->listed);
}

struct wr_listed *wr_identities_collect(struct weir_stats *st)
{
    return wr_registry_is_due(&st->identities, st->max_identities)
               ? wr_registry_sweep(&st->identities)
               : NULL;
}

void wr_identities_release(struct weir_stats *st, struct wr_listed *dead)
{
    while (dead) {
        struct weir_stats_identity *const id = (struct weir_stats_identity *)(void *)dead;
        dead = dead->next;
        wr_schemas_unpin(&st->schemas, id->schema);
        wr_free(&st->alloc, id, id->bytes);
    }
}

void wr_identities_done(struct weir_stats *st)
{
    wr_identities_release(st, atomic_load_explicit(&st->identities.first, memory_order_acquire));
}

enum { RECORD_BYTES = sizeof(struct wr_record) + sizeof(struct wr_prepared) };
_Static_assert(RECORD_BYTES % 8 == 0, "records begin on 8-byte boundaries");

WR_INLINE void mark(struct wr_record *rec, uint8_t klass, uint32_t flags)
{
    rec->klass = klass;
    rec->flags =
        (uint8_t)((flags & (WEIR_IDENTITY_ERROR | WEIR_IDENTITY_TOP_LEVEL)) | WR_RECORD_PREPARED);
}

/* The record was marked. */
WR_INLINE void put(struct weir_producer *p, struct wr_record *rec,
                   const struct weir_stats_identity *id, int64_t end_ns, int64_t duration_ns,
                   uint64_t weight)
{
    struct wr_ring *const ring = p->ring;
    const uint64_t at = ring->at + RECORD_BYTES;
    rec->bytes = RECORD_BYTES;
    rec->key_bytes = id->key_bytes;
    rec->hash = id->hash;
    rec->end_ns = end_ns;
    rec->duration_ns = duration_ns;
    rec->weight = weight ? weight : WEIR_WEIGHT_ONE;
    *(struct wr_prepared *)(void *)wr_record_key(rec) =
        (struct wr_prepared){.key = id->key, .number = id->number};
    wr_count(&ring->counts.received, 1);
    p->trace_at = at;
    wr_ring_commit_at(ring, at);
}

static uint8_t klass_of(const struct weir_stats_identity *id, uint32_t flags)
{
    return id->klass[(flags & WEIR_IDENTITY_TOP_LEVEL) != 0];
}

/* A trace of one span, as trace.c settles it. */
static uint8_t settle_client(struct weir_producer *p, const struct weir_stats_identity *id,
                             uint8_t klass, int64_t duration_ns, uint32_t flags)
{
    if (klass == WR_CLASS_COUNTED && (duration_ns <= 0 || id->ignored))
        klass = WR_CLASS_INELIGIBLE;
    const bool counted = klass == WR_CLASS_COUNTED;
    p->keep = counted && (flags & WEIR_IDENTITY_ERROR);
    p->kept = (struct wr_kept){
        .traces = 1, .spans = counted, .free_traces = !p->keep, .free_spans = !p->keep};
    wr_producer_count_kept(p);
    return klass;
}

static int refuse(struct weir_producer *p, uint32_t flags)
{
    weir_stats_drop(p, 1);
    if (p->stats->schema.client) {
        p->keep = flags & WEIR_IDENTITY_ERROR;
        p->kept = (struct wr_kept){.traces = 1, .free_traces = !p->keep, .free_spans = !p->keep};
        wr_producer_count_kept(p);
    }
    return WEIR_EFULL;
}

/* A fork was seen, something has to be mended or counted, or a look at the owner's line be taken
 * for room; or the instance does more than the common way. */
static WR_NOINLINE int publish_slow(struct weir_producer *p, const struct weir_stats_identity *id,
                                    int64_t end_ns, int64_t duration_ns, uint32_t flags,
                                    uint64_t weight)
{
    wr_producer_check(p);
    const struct wr_schema *const schema = &p->stats->schema;
    struct wr_producer_counts *const counts = &p->ring->counts;
    struct wr_record *const rec = wr_ring_reserve(p->ring, RECORD_BYTES);
    if (!rec)
        return refuse(p, flags);
    uint8_t klass = klass_of(id, flags);
    if (schema->client)
        klass = settle_client(p, id, klass, duration_ns, flags);
    if (duration_ns < 0) {
        duration_ns = 0;
        wr_count(&counts->negative_duration, 1);
    }
    if (weight == WEIR_WEIGHT_UNKNOWN) {
        weight = WEIR_WEIGHT_ONE;
        wr_count(&counts->bad_rate, 1);
    }
    if (weight > WR_WEIGHT_MAX) {
        weight = WR_WEIGHT_MAX;
        wr_count(&counts->weight_capped, 1);
    }
    if (klass == WR_CLASS_COUNTED && (schema->flags & WEIR_STATS_UNWEIGHTED_SKETCHES) && weight &&
        weight != WEIR_WEIGHT_ONE)
        klass = WR_CLASS_UNWEIGHTED;
    wr_count(&counts->utf8_repaired, id->notes.repaired);
    wr_count(&counts->truncated, id->notes.truncated);
    wr_count(&counts->bad_status, id->notes.bad_status);
    wr_count(&counts->oversized, id->notes.oversized);
    mark(rec, klass, flags);
    put(p, rec, id, end_ns, duration_ns, weight);
    return WEIR_OK;
}

int weir_stats_publish_identity(struct weir_producer *producer,
                                const struct weir_stats_identity *identity, int64_t end_ns,
                                int64_t duration_ns, uint32_t flags, uint64_t weight)
{
    WR_ASSERT(producer->trace_count == 0 && producer->committable == 0);
    struct wr_record *const rec = wr_ring_try_here(producer->ring, RECORD_BYTES);
    if (WR_UNLIKELY(!rec) || WR_UNLIKELY(wr_producer_is_old(producer)) ||
        WR_UNLIKELY(duration_ns < 0) || WR_UNLIKELY(weight > WR_WEIGHT_MAX) ||
        WR_UNLIKELY(identity->special))
        return publish_slow(producer, identity, end_ns, duration_ns, flags, weight);
    mark(rec, klass_of(identity, flags), flags);
    put(producer, rec, identity, end_ns, duration_ns, weight);
    return WEIR_OK;
}
_Static_assert((int)WEIR_IDENTITY_ERROR == (int)WR_RECORD_ERROR &&
                   (int)WEIR_IDENTITY_TOP_LEVEL == (int)WR_RECORD_TOP_LEVEL,
               "a record takes the flags as they are");
