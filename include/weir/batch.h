/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_BATCH_H
#define WEIR_BATCH_H
/*
 * batch: one shard's part of one window, sealed: immutable rows with their sketches.
 *
 * A batch comes from weir_stats_take_batch (sealed) or weir_stats_snapshot (a copy of windows that
 * are still open). It belongs to whoever took it until weir_batch_release gives it back; then
 * its sketches return, cleared, to the pool they came from. Several batches may carry the same
 * window: they add up.
 *
 * Threads: any number of threads may read a batch; release is called once, from any thread, when
 * the last has finished (the agent counts references).
 */
#include <weir/base.h>
#include <weir/sketch.h>

WEIR_BEGIN_DECLS

struct weir_batch;

/* Why a record that was received is not in a row. Append only. */
#define WEIR_DROP_MAP(X)                                                                           \
    X(INBOX_FULL, "inbox_full")       /* the hand-over had no room */                              \
    X(LATE, "late")                   /* late policy drop */                                       \
    X(ID_ZERO, "id_zero")             /* trace or span id 0: the whole trace goes */               \
    X(FOREIGN_TRACE, "foreign_trace") /* a span of another trace in the group: all of it goes */   \
    X(MEMORY, "memory")               /* no memory for entry, slot or sketch */                    \
    X(CLEARED, "cleared")             /* CLEAR threw the open windows away */

enum weir_drop {
#define WEIR_DROP_ENUM(name, text) WEIR_DROP_##name,
    WEIR_DROP_MAP(WEIR_DROP_ENUM)
#undef WEIR_DROP_ENUM
        WEIR_DROP_COUNT
};
WEIR_API const char *weir_drop_name(enum weir_drop reason); /* "inbox_full", ... */

/*
 * What a window took in. Two equations hold exactly in every sealed batch:
 *   received = aggregated + ineligible + partial + sum of dropped[]
 *   rows_weight = sketch_weight = admitted_weight
 * but for WEIR_STATS_UNWEIGHTED_SKETCHES, where sketch_weight is one a span.
 * Each side is counted on its own: rows_weight and sketch_weight by walking the rows at the seal.
 */
struct weir_window_counts {
    uint64_t received;
    uint64_t aggregated;
    uint64_t ineligible;
    uint64_t partial;
    uint64_t dropped[WEIR_DROP_COUNT];
    uint64_t admitted_weight; /* units of 2^-20 */
    uint64_t rows_weight;
    uint64_t sketch_weight;
    /* Of the aggregated: not drops. */
    uint64_t late;     /* folded into this window from before it */
    uint64_t future;   /* clamped into this window from after it */
    uint64_t overflow; /* booked in the overflow row */
};

enum weir_batch_flag {
    WEIR_BATCH_OPEN = 1 << 0,       /* a snapshot: the window is not sealed yet */
    WEIR_BATCH_EARLY = 1 << 1,      /* sealed before its time: stop, clock step */
    WEIR_BATCH_CORRECTION = 1 << 2, /* late records under their true window */
    WEIR_BATCH_CLEARED = 1 << 3     /* what CLEAR threw away: counts without rows */
};

struct weir_batch_info {
    int64_t start_ns; /* of the window, since the Unix epoch; the window is [start, start + for) */
    int64_t for_ns;
    uint32_t shard;
    uint32_t flags; /* enum weir_batch_flag */
    size_t rows;
    struct weir_window_counts counts;
};
WEIR_API void weir_batch_get_info(const struct weir_batch *batch, struct weir_batch_info *ret_info);

/* Everything is borrowed until the batch is released. */
struct weir_row {
    uint64_t hits;                   /* units of 2^-20; errors included */
    uint64_t errors;                 /* units of 2^-20 */
    uint64_t top_level;              /* units of 2^-20 */
    const struct weir_sketch *ok;    /* durations without error; NULL when none */
    const struct weir_sketch *error; /* durations with error; NULL when none */
};
/* row < info.rows */
WEIR_API void weir_batch_get_row(const struct weir_batch *batch, size_t row,
                                 struct weir_row *ret_row);

struct weir_label {
    struct weir_bytes name;
    struct weir_bytes value; /* valid UTF-8, never empty */
};
#define WEIR_LABELS_MAX 64
/*
 * Fill labels with the labels of a row (contracts: rows §2), sorted by name, without status_code:
 * a row answers as two series, STATUS_CODE_ERROR from its errors and STATUS_CODE_UNSET from
 * the rest. Returns how many there are; at most cap are written. Cost: O(labels).
 */
WEIR_API size_t weir_batch_get_labels(const struct weir_batch *batch, size_t row,
                                      struct weir_label *labels, size_t cap);

/* Give the batch back. NULL is allowed. Threads: any. Must come before weir_stats_free. */
WEIR_API void weir_batch_release(struct weir_batch *batch);

WEIR_END_DECLS
#endif
