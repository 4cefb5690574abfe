/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WR_STATS_STATS_H
#define WR_STATS_STATS_H
/* stats, the inside: a schema over a shard, and the producers. */
#include "aggregate/shard.h"
#include "base/fork.h"
#include "stats/ignored.h"
#include "stats/key.h"
#include "stats/limits.h"
#include "stats/registry.h"
#include "stats/runner.h"
#include "stats/schemas.h"

struct weir_stats {
    struct weir_alloc alloc;
    enum weir_profile profile;
    uint64_t seed;
    struct wr_schema schema; /* the first */
    struct wr_schemas schemas;
    uint64_t seals_swept; /* owner: sealed batches when schemas were last looked through */
    struct wr_limits limits;
    struct wr_ignored ignored;
    const struct weir_mapping *mapping; /* held; NULL: the default */
    uint32_t max_bins;
    uint32_t limit_opts[WEIR_LIMIT_SLOTS]; /* resolved */
    struct wr_shard shard;
    struct wr_registry identities;
    uint32_t max_identities;
    _Atomic uint64_t identity_numbers; /* given so far */
    struct wr_fork_word *fork_word;    /* generation; 0 in a child that nobody cleaned yet */
    uint64_t generation;
    struct wr_registry producers; /* those that belong to threads */
    pthread_key_t producer_key;
    bool has_producer_key;
    struct wr_runner runner;
    void *block; /* the shard wants whole cache lines */
    size_t block_bytes;
};

/* What the end of a trace needs of each of its spans. */
struct wr_traced {
    uint64_t ring_at; /* of its record */
    uint64_t trace_id;
    uint64_t span_id;
    uint64_t parent_id;
    const char *service; /* in the record's key */
    uint32_t service_bytes;
    uint8_t marks;      /* enum wr_mark */
    uint8_t span_flags; /* enum weir_span_flag */
};
enum wr_mark {
    WR_MARK_TOP_LEVEL = 1 << 0, /* said by the span */
    WR_MARK_MEASURED = 1 << 1,
    WR_MARK_KIND = 1 << 2, /* server, client, producer, consumer */
    WR_MARK_PARTIAL = 1 << 3
};

/* What had to be mended in spans that are not committed yet. */
struct wr_notes {
    uint64_t negative_duration;
    uint64_t time_missing;
    uint64_t before_2000;
    uint64_t weight_capped;
    uint64_t bad_rate;
    uint64_t duplicate_ids;
    struct wr_key_notes key;
};

/* Of profile client: traces since the last commit. */
struct wr_kept {
    uint64_t traces;
    uint64_t spans;       /* that count */
    uint64_t free_traces; /* that need not be kept */
    uint64_t free_spans;
};

struct weir_producer {
    struct wr_listed listed; /* first; where it is a thread's own */
    bool automatic;
    uint64_t generation;                  /* of the process that may use ring */
    const struct wr_fork_word *fork_word; /* of stats */
    struct weir_stats *stats;
    struct wr_ring *ring;
    const struct wr_schema *schema; /* pinned: spans are read by it */
    struct weir_source source;
    uint64_t trace_at;       /* ring position where the open trace begins */
    uint64_t committable;    /* spans before trace_at since the last commit */
    struct wr_traced *trace; /* spans of the open trace */
    size_t trace_count;
    size_t trace_cap;
    uint32_t *parents; /* hash table of span ids, see trace.c; a power of two */
    size_t parents_cap;
    struct wr_notes notes;
    struct wr_kept kept;
    bool keep; /* weir_stats_must_keep */
    /* The last trace that found no room: its spans, and where the owner was. 0: none. */
    size_t full_spans;
    uint64_t full_head;
};

#define WR_WEIGHT_MAX (WEIR_WEIGHT_ONE << 20) /* contracts: rows §1 */

/* One writer: load and store are enough, and no locked instruction is paid. */
static inline void wr_count(_Atomic uint64_t *c, uint64_t n)
{
    atomic_store_explicit(c, atomic_load_explicit(c, memory_order_relaxed) + n,
                          memory_order_relaxed);
}

/* Does a span of these marks have a row (contracts: rows §3)? */
static inline bool wr_is_eligible(enum weir_profile profile, unsigned marks, bool top_level)
{
    return profile == WEIR_PROFILE_ALL || top_level ||
           (marks & (WR_MARK_MEASURED | WR_MARK_KIND)) != 0;
}

/* fork.c: the process's generation; a forked child is cleaned first. */
uint64_t wr_stats_generation(struct weir_stats *st);
/* Owner's functions ask first. false: no memory to begin again in a child. */
bool wr_stats_owner_ready(struct weir_stats *st);
/* Bring a producer of before the fork into this process, empty. WEIR_EFULL: too many producers; it
 * is empty all the same, and nobody drains it until it is tried again. */
int wr_producer_renew(struct weir_producer *p);
static inline bool wr_producer_is_old(const struct weir_producer *p)
{
    /* acquire: who finds a generation finds what the cleaning did. */
    return p->generation != atomic_load_explicit(&p->fork_word->value, memory_order_acquire);
}
static inline void wr_producer_check(struct weir_producer *p)
{
    if (WR_UNLIKELY(wr_producer_is_old(p)))
        WR_IGNORE(wr_producer_renew(p));
}

/* peers.c: the schema that was pinned last is not read by any more. */
void wr_producer_unpin(struct weir_producer *p);
/* Owner: what is to be looked for before a drain, and freed after it. */
void wr_stats_free_schemas(struct weir_stats *st, const struct wr_idle_schemas *idle);

/* stats.c */
int wr_stats_restart_shard(struct weir_stats *st, uint64_t generation);

/* thread.c: the producers of threads. */
void wr_thread_producers_init(struct weir_stats *st);
void wr_thread_producers_sweep(struct weir_stats *st);
void wr_thread_producers_done(struct weir_stats *st);

/* producer.c: what a span's attributes say of it. */
unsigned wr_marks_of(const struct weir_span *span);
unsigned wr_marks_of_client(const struct weir_span *span);
/* What p->kept says goes into the counts. */
void wr_producer_count_kept(struct weir_producer *p);

/* identity.c: those that were freed and whose records were drained since. */
struct wr_listed *wr_identities_collect(struct weir_stats *st);
void wr_identities_release(struct weir_stats *st, struct wr_listed *dead);
void wr_identities_done(struct weir_stats *st);

/* trace.c: top level and eligibility of the open trace, written into its records. */
int wr_trace_settle(struct weir_producer *p);
#endif
