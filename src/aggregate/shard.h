/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WR_AGGREGATE_SHARD_H
#define WR_AGGREGATE_SHARD_H
/*
 * shard: the engine: one owner thread drains the inbox into the table, keeps the open windows, and
 * seals them into batches. It knows keys as bytes and records as durations; what the bytes mean is
 * told by two things its maker gives: the overflow key, and a function from key to labels.
 *
 * Time (contracts: rows §4). A record belongs to the window [k w, (k+1) w) of its end. Open are the
 * current window and those whose end + lateness lies ahead. A window object exists from its first
 * record on. Later than the oldest open window: the late policy. At or past the current window's
 * end: booked in the current one.
 *
 * Threads: all functions are the owner's, but wr_batch_give (any) and the inbox's.
 */
#include "aggregate/displace.h"
#include "aggregate/epoch.h"
#include "aggregate/inbox.h"
#include "aggregate/newcomers.h"
#include "aggregate/table.h"

#include <weir/batch.h>
#include <weir/stats.h>

struct wr_window {
    int64_t start_ns;
    uint32_t flags; /* of the batch to be */
    struct weir_window_counts counts;
    struct wr_entry **touched; /* entries with a slot in this window */
    size_t touched_count;
    size_t touched_cap;
    size_t key_bytes; /* sum over touched */
};

/* A growing array of windows sorted by start. */
struct wr_windows {
    struct wr_window **at;
    size_t count;
    size_t cap;
};

/*
 * Asked once for each entry and window, before its first record there: whether the key is taken as
 * it is (0), or is to be booked under another one (1: written at dst, *ret_bytes long, with its
 * hash); WEIR_ENOMEM: neither. dst is the callee's. weight is the record's.
 */
struct wr_folded {
    const char *key;
    size_t key_bytes;
    uint64_t hash;
};
typedef int wr_admit_fn(void *ctx, const char *key, size_t key_bytes, uint64_t weight,
                        struct wr_folded *ret_folded);
/* The current window has turned, or was reported. */
typedef void wr_cycle_fn(void *ctx);

typedef size_t wr_labels_fn(const void *ctx, const char *key, size_t key_bytes,
                            struct weir_label *labels, size_t cap);

struct wr_shard_opts {
    struct weir_alloc alloc;
    int64_t window_for_ns;
    int64_t lateness_for_ns; /* a multiple of window_for_ns */
    enum weir_late late;
    enum weir_cap cap;
    size_t max_keys;
    size_t max_corrections;
    uint32_t idle_windows;
    uint32_t number;
    const char *overflow_key; /* copied */
    size_t overflow_key_bytes;
    uint64_t overflow_hash;
    wr_labels_fn *labels;
    const void *labels_ctx;
    wr_admit_fn *admit; /* NULL: every key is taken */
    wr_cycle_fn *cycle;
    void *admit_ctx;
    const struct weir_mapping *mapping; /* of sketches; NULL: the default */
    uint32_t max_bins;
    bool unweighted; /* WR_CLASS_UNWEIGHTED occurs: the weight of sketches is not that of rows */
};

/* Totals of the owner's side; the rest of weir_stats_health comes from the producers. */
struct wr_shard_totals {
    struct weir_window_counts sum; /* received, aggregated, ... over all windows */
    uint64_t clock_steps;
    uint64_t snapshot_failed;
    uint64_t sealed_batches;
    uint64_t seal_failed;
    uint64_t expunged;
    uint64_t displaced;
};

struct wr_shard {
    struct wr_shard_opts opts;
    struct wr_inbox inbox;
    /* From here on it is the owner's. */
    uint64_t generation; /* of the process, see wr_shard_restart */
    struct wr_table table;
    struct weir_sketch_pool *pool;
    struct wr_windows open;         /* in time */
    struct wr_windows corrections;  /* late: correct */
    struct wr_window *current;      /* in open, or NULL until its first record */
    struct wr_entry *overflow;      /* outside the table */
    struct wr_newcomers *newcomers; /* NULL until the table was full */
    struct wr_cold cold;
    struct wr_old_slot *spare_slots;
    uint32_t epoch_batches[WR_EPOCHS]; /* not given back yet */
    struct wr_windows spare_windows;   /* unsorted; capacity of touched kept */
    bool started;
    bool stopped;
    bool overdue;   /* a window stayed open for want of memory */
    int64_t now_ns; /* wall, of the last poll, never moving back by a small step */
    int64_t current_start_ns;
    int64_t wall_minus_mono_ns;
    struct weir_batch *sealed_first; /* to be taken */
    struct weir_batch *sealed_last;
    struct weir_batch *spare_batches;
    size_t spare_batch_count;
    _Atomic(struct weir_batch *) given_back; /* any thread pushes */
    struct wr_shard_totals totals;
};

int wr_shard_init(struct wr_shard *s, const struct wr_shard_opts *opts);
void wr_shard_done(struct wr_shard *s);
/* What the owner had is forgotten, not freed: a fork may have caught it in the middle of anything.
 * Batches of before belong to nobody. On failure the generation is as it was: try again. */
int wr_shard_restart(struct wr_shard *s, const struct wr_shard_opts *opts, uint64_t generation);

size_t wr_shard_poll(struct wr_shard *s, int64_t wall_ns, int64_t mono_ns);
void wr_shard_seal_all(struct wr_shard *s, int64_t wall_ns, int64_t mono_ns);
size_t wr_shard_snapshot(struct wr_shard *s, struct weir_batch **batches, size_t cap);
struct weir_batch *wr_shard_take_batch(struct wr_shard *s);
int64_t wr_shard_next_seal_for_ns(const struct wr_shard *s, int64_t mono_ns);
bool wr_shard_check(const struct wr_shard *s); /* O(everything) */

/* drain.c: everything committed goes into the table; returns the number of records. */
size_t wr_shard_drain(struct wr_shard *s);

/* seal.c: the windows of list that begin before before_ns become batches, flags added to theirs. */
void wr_shard_seal_list(struct wr_shard *s, struct wr_windows *list, int64_t before_ns,
                        uint32_t flags);
void wr_shard_seal_everything(struct wr_shard *s, uint32_t flags);
/* What the open windows held is dropped, counted; the counts leave as batches without rows. */
void wr_shard_clear(struct wr_shard *s);
/* The same for one window, which stays open. */
void wr_shard_clear_window(struct wr_shard *s, struct wr_window *w);

/* batch.c */
struct wr_row {
    size_t key_at; /* in keys */
    size_t key_bytes;
    uint64_t hits;
    uint64_t errors;
    uint64_t top_level;
    struct weir_sketch *ok;
    struct weir_sketch *error;
};
struct weir_batch {
    struct wr_shard *shard;
    uint64_t generation; /* of the shard that made it */
    struct weir_batch *next;
    struct weir_batch_info info;
    struct wr_row *rows; /* info.rows in use */
    size_t rows_cap;
    char *keys;
    size_t keys_cap;
    size_t keys_used;
    uint8_t epochs; /* of keys */
};
/* An empty batch with room for rows rows and key_bytes of keys; NULL: no memory. */
struct weir_batch *wr_batch_get(struct wr_shard *s, size_t rows, size_t key_bytes);
/* The spare that comes next, as it is, for as many of the last entries as its room is for: from
 * *ret_from on. NULL when that is none. */
struct weir_batch *wr_batch_get_spare(struct wr_shard *s, struct wr_entry *const *entries,
                                      size_t count, size_t *ret_from);
/* Room was made. Copies the key; takes the sketches. */
void wr_batch_add(struct weir_batch *b, struct wr_entry *e, const struct wr_slot *slot);
/* Sketches to the pool, the object to the spares. */
void wr_batch_recycle(struct wr_shard *s, struct weir_batch *b);
void wr_batch_reap(struct wr_shard *s); /* recycle what was given back */
void wr_batch_free(struct wr_shard *s, struct weir_batch *b);
#endif
