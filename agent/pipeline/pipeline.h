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
 * Threads: loop, unless said.
 */
#include "query/source.h"

#include <uv.h>
#include <weir/stats.h>

struct store;
struct pipeline;

struct pipeline_opts {
    uv_loop_t *loop;
    struct store *store;          /* borrowed; must outlive the pipeline */
    struct weir_stats_opts stats; /* copied */
    size_t pending_max_bytes;     /* sealed batches waiting for the store; default 256 MiB */
};
/* WEIR_OK or an error of weir_stats_new. */
int pipeline_new(const struct pipeline_opts *opts, struct pipeline **ret_pipeline);
/* After pipeline_stop and when no source is open. */
void pipeline_free(struct pipeline *p);

struct weir_stats *pipeline_stats(struct pipeline *p);
struct weir_producer *pipeline_producer(struct pipeline *p);

/* Poll the engine now (receivers call it after each payload); due batches go to the store. */
void pipeline_poll(struct pipeline *p);
/* Seal everything, write it, and return when the store has it or gave up (deadline). 0 or -errno.
 */
int pipeline_stop(struct pipeline *p, int64_t deadline_for_ns);

/*
 * A stable view for one query. Open on the loop's thread; scan on any one thread; close on the
 * loop's thread. include_open adds open windows by snapshot. NULL for want of memory.
 */
struct pipeline_view;
struct pipeline_view *pipeline_view_open(struct pipeline *p, bool include_open);
const struct query_source *pipeline_view_source(const struct pipeline_view *v);
void pipeline_view_close(struct pipeline_view *v);

/* For /debug/reconcile and /metrics. */
struct pipeline_window {
    struct weir_batch_info info;
    bool stored;
};
/* The newest sealed windows (up to 1024 kept), newest first; returns how many were filled. */
size_t pipeline_recent(const struct pipeline *p, struct pipeline_window *windows, size_t cap);

struct pipeline_health {
    struct weir_stats_health stats;
    uint64_t batches_sealed;
    uint64_t batches_stored;
    uint64_t batches_pending;
    uint64_t pending_bytes;
    uint64_t batches_lost; /* pushed out of the bounded queue: counted, with their weight */
    uint64_t lost_spans;
    uint64_t store_errors; /* failed attempts to write */
    bool store_ok;         /* the last attempt succeeded */
};
void pipeline_get_health(const struct pipeline *p, struct pipeline_health *ret_health);
#endif
