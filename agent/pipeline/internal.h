/* SPDX-License-Identifier: Apache-2.0 */
#ifndef AGENT_PIPELINE_INTERNAL_H
#define AGENT_PIPELINE_INTERNAL_H
/*
 * internal: what the files of pipeline share: the sealed batches, the store thread, the readers.
 */
#include "pipeline/pipeline.h"
#include "store/store.h"

#include <pthread.h>

/* A sealed batch. refs counts the queue (or the done list) and each view; the loop's thread alone
 * touches it. next is under the writer's lock. */
struct sealed {
    struct sealed *next;
    struct weir_batch *batch;
    uint64_t number;
    size_t bytes;
    unsigned refs;
};

/* When the hook is called, on the store thread. */
enum writer_stage { WRITER_BEFORE_COMMIT, WRITER_AFTER_COMMIT };

/*
 * writer: the store thread and the queue to it.
 *
 * Invariants, under lock: waiting is in ascending order of number; writing is NULL or the first
 * of waiting; everything in done is committed.
 */
struct writer {
    pthread_mutex_t lock;
    pthread_cond_t work;     /* for the store thread: something waits, or stop */
    pthread_cond_t progress; /* for writer_drain: waiting became shorter */
    pthread_t thread;
    bool is_running;
    struct store *store; /* the store thread's while it runs */
    uv_async_t *wake;    /* sent when done is not empty */
    /* Under lock. */
    struct sealed *first;
    struct sealed *last;
    struct sealed *writing;
    struct sealed *done;
    size_t waiting_count;
    size_t waiting_bytes;
    uint64_t stored;
    uint64_t errors;
    bool ok;
    int code;   /* of the last attempt to write; 0 when ok */
    bool mend;  /* a reader found the file corrupt */
    bool hurry; /* do not back off: the process wants to end */
    bool stop;
    struct store_counts counts;
    int64_t chores_every_for_ns;
    void (*hook)(void *ctx, enum writer_stage stage, uint64_t number); /* tests */
    void *hook_ctx;
};

/* Starts the thread. 0 or -errno. */
int writer_new(struct store *store, uv_async_t *wake, struct writer **ret_writer);
/* Ends the thread; what waits stays waiting. */
void writer_stop(struct writer *w);
void writer_free(struct writer *w); /* after writer_stop; NULL is allowed */
void writer_push(struct writer *w, struct sealed *s);
/* The oldest waiting batch that is not being written, or NULL; never the newest. */
struct sealed *writer_evict(struct writer *w);
/* The file is corrupt, a reader found: have it replaced soon. Threads: any. */
void writer_mend(struct writer *w);
/* Wait until nothing waits, or the deadline (plat_mono_ns). False at the deadline. */
bool writer_drain(struct writer *w, int64_t deadline_ns);
/* The committed batches since the last call. */
struct sealed *writer_take_done(struct writer *w);
/* What waits, unlinked from the queue. After writer_stop. */
struct sealed *writer_take_rest(struct writer *w);

/* A trace must fit whole: some 20,000 spans. An owner's ring begins again at its first byte when it
 * was drained, so what small payloads never reach is never touched, nor resident. */
#define PIPELINE_RING_BYTES ((size_t)4 << 20)

#define PIPELINE_READERS_MAX 4

struct readers {
    pthread_mutex_t lock;
    struct store_reader *spare[PIPELINE_READERS_MAX];
    size_t count;
};
/* A reader from the spares, or a new one. 0 or -errno. Threads: any. */
int readers_take(struct readers *r, struct store *store, struct store_reader **ret_reader);
void readers_give(struct readers *r, struct store_reader *reader);
void readers_clear(struct readers *r);

/* The handles outlive the pipeline until the loop has closed them. */
struct handles {
    uv_timer_t timer;
    uv_async_t wake;
    unsigned open;
};

struct recent {
    uint64_t number;
    struct pipeline_window window;
};

#define PIPELINE_RESERVE_PIECES 16

struct pipeline {
    uv_loop_t *loop;
    struct handles *handles;
    struct store *store;
    struct weir_stats *stats;
    struct weir_producer *producer;
    size_t pending_max_bytes;
    int64_t window_for_ns;
    uint64_t next_number;
    uint64_t batches_sealed;
    uint64_t batches_lost;
    uint64_t lost_spans;
    uint64_t lost_weight;
    bool is_stopped;
    /* All there, or, while memory is short, none. Pieces: what is free may lie scattered. */
    void *reserve[PIPELINE_RESERVE_PIECES];
    uint64_t seen_drops; /* for want of memory, as of the last look */
    unsigned views;
    struct recent recent[PIPELINE_RECENT_MAX]; /* a ring */
    size_t recent_at;                          /* where the next goes */
    size_t recent_count;
    struct writer *writer;
    struct readers readers;
};

/* Drop a reference; at the last one the batch goes back to the library. */
void pipeline_unref(struct sealed *s);
#endif
