/* SPDX-License-Identifier: Apache-2.0 */
#ifndef AGENT_PIPELINE_PIPELINE_H
#define AGENT_PIPELINE_PIPELINE_H
/*
 * pipeline: one shard, owned by the loop's thread: the engine, the producer of the receivers, the
 * sealed batches on their way to the store, and what queries may see of all of it.
 *
 * Batches are reference counted here (the library has take and release). A sealed batch waits in
 * the queue of the store thread; it leaves when it is committed. While it waits, queries read it
 * from memory: a batch carries a number, the store keeps the highest number committed, and a
 * query inside one read transaction skips waiting batches that are already in.
 *
 * The store thread commits batches in the order they were sealed. After a failure it tries again,
 * backing off to 30 s; past pending_max_bytes the oldest waiting batch is given up, counted and
 * logged. Once a minute it also runs retention and sums hours, in steps between commits.
 * docs/internals/pipeline.md has the states of a batch and why a view shows each exactly once.
 *
 * Threads: loop, unless said.
 */
#include "query/source.h"
#include "store/store.h"

#include <uv.h>
#include <weir/stats.h>

struct pipeline;

#define PIPELINE_PENDING_BYTES_DEFAULT ((size_t)256 << 20)
#define PIPELINE_RECENT_MAX 1024

struct pipeline_opts {
    uv_loop_t *loop;
    struct store *store;          /* borrowed; the store thread's from new to stop */
    struct weir_stats_opts stats; /* copied */
    size_t pending_max_bytes;     /* sealed batches waiting for the store; default 256 MiB */
};
/* WEIR_OK, an error of weir_stats_new, or -errno (threads, handles). */
int pipeline_new(const struct pipeline_opts *opts, struct pipeline **ret_pipeline);
/* After pipeline_stop (else it stops without waiting) and when no view is open. The loop must run
 * once more before it is closed: its handles close there. NULL is allowed. */
void pipeline_free(struct pipeline *p);

struct weir_stats *pipeline_stats(struct pipeline *p);
struct weir_producer *pipeline_producer(struct pipeline *p);

/* Poll the engine now (receivers call it after each payload); due batches go to the store. A timer
 * does the same when a window is due, and once a second. Nothing after pipeline_stop. */
void pipeline_poll(struct pipeline *p);
/*
 * Memory is short: the engine or the store was refused some. Then a reserve was given up, so that
 * batches can be written and questions answered, and receivers refuse payloads until it can be
 * taken again.
 */
bool pipeline_is_short(const struct pipeline *p);
/*
 * Seal everything, write it, and return when the store has it or deadline_for_ns is over and the
 * attempt in progress has ended. What is not written then is lost, counted and logged. The store
 * is the caller's again. 0, or -ETIMEDOUT when something was lost. Blocks the loop.
 */
int pipeline_stop(struct pipeline *p, int64_t deadline_for_ns);

/*
 * A stable view for one query: everything sealed by now, exactly once, wherever it is. Open on the
 * loop's thread; scan on any one thread at a time; close on the loop's thread. include_open adds
 * open windows by snapshot. NULL for want of memory. A window not yet sealed whose end is past
 * keeps its end; one that is still running, or was sealed before its end, ends at until_ns. scan
 * gives 0, what a callback returned, or -errno when the store cannot be read.
 */
struct pipeline_view;
struct pipeline_view *pipeline_view_open(struct pipeline *p, bool include_open);
const struct query_source *pipeline_view_source(const struct pipeline_view *v);
void pipeline_view_close(struct pipeline_view *v); /* NULL is allowed */

/* For /debug/reconcile and /metrics. */
struct pipeline_window {
    struct weir_batch_info info;
    bool stored;
    bool lost;
};
/* The newest sealed batches, newest first, those of the last hour before the start included;
 * returns how many were filled. At most PIPELINE_RECENT_MAX are kept. */
size_t pipeline_recent(const struct pipeline *p, struct pipeline_window *windows, size_t cap);

struct pipeline_health {
    struct weir_stats_health stats;
    struct store_counts store; /* as of the store thread's last work */
    uint64_t batches_sealed;
    uint64_t batches_stored;
    uint64_t batches_pending;
    uint64_t pending_bytes;
    uint64_t batches_lost; /* pushed out of the bounded queue, or left at the stop */
    uint64_t lost_spans;   /* aggregated spans of lost batches */
    uint64_t lost_weight;  /* units of 2^-20 */
    uint64_t store_errors; /* failed attempts to write or retain */
    bool store_ok;         /* the last attempt succeeded */
    int store_code;        /* -errno of the last attempt; 0 when it succeeded */
};
void pipeline_get_health(const struct pipeline *p, struct pipeline_health *ret_health);
#endif
