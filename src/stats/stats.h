/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WR_STATS_STATS_H
#define WR_STATS_STATS_H
/* stats, the inside: a schema over a shard, and the producers. */
#include "aggregate/shard.h"
#include "stats/ignored.h"
#include "stats/key.h"
#include "stats/limits.h"

struct weir_stats {
    struct weir_alloc alloc;
    enum weir_profile profile;
    uint64_t seed;
    struct wr_schema schema;
    struct wr_limits limits;
    struct wr_ignored ignored;
    const struct weir_mapping *mapping; /* held; NULL: the default */
    uint32_t max_bins;
    struct wr_shard shard;
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
    struct weir_stats *stats;
    struct wr_ring *ring;
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
};

/* trace.c: top level and eligibility of the open trace, written into its records. */
int wr_trace_settle(struct weir_producer *p);
#endif
