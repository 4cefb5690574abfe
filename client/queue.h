/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WR_CLIENT_QUEUE_H
#define WR_CLIENT_QUEUE_H
/*
 * queue: bodies that wait to be sent, oldest first, under a bound of bytes and of number.
 *
 * When there is no room the oldest of the lowest priority goes; one whose body lies in the spool
 * as well gives its copy in memory instead. The item that is being sent is not in the queue.
 *
 * Threads: the caller's lock. Memory: an item and its body, of the client's hook.
 */
#include <weir/client.h>

#include "base.h"

enum { WR_KEY_BYTES = 88 }; /* RuntimeID, '-', Sequence, NUL */

struct wr_item {
    struct wr_item *next;
    char *body; /* NULL: in the spool alone */
    size_t len;
    uint64_t spool_id; /* 0: not in the spool */
    uint64_t traces;
    uint64_t spans;
    uint64_t p0_traces; /* said to the agent with this payload */
    uint64_t p0_spans;
    uint32_t attempts; /* answers that did not take it */
    uint32_t tries;    /* times it was sent */
    uint32_t version;  /* of traces; 0: statistics */
    bool low;          /* of low priority */
    bool computed;     /* statistics were on when its traces came */
    bool p0_taken;
    char key[WR_KEY_BYTES]; /* Idempotency-Key of statistics */
};

struct wr_queue {
    const struct weir_alloc *alloc;
    struct wr_item *first;
    struct wr_item *last;
    size_t count;  /* with a body in memory */
    size_t stored; /* without one */
    size_t bytes;  /* in memory */
    size_t max_count;
    size_t max_bytes;
};

/* Takes nothing; body is copied. NULL: no memory. */
struct wr_item *wr_item_new(const struct weir_alloc *alloc, struct weir_bytes body);
void wr_item_drop_body(const struct weir_alloc *alloc, struct wr_item *item);
void wr_item_free(const struct weir_alloc *alloc, struct wr_item *item);

bool wr_queue_is_empty(const struct wr_queue *q);
bool wr_queue_is_over(const struct wr_queue *q);
void wr_queue_push(struct wr_queue *q, struct wr_item *item);
/* Before all others: it was being sent. */
void wr_queue_push_back(struct wr_queue *q, struct wr_item *item);
struct wr_item *wr_queue_pop(struct wr_queue *q);
/* What goes when there is no room: the oldest of low priority, else the oldest, of those with a
 * body in memory; taken out. NULL: there is none. */
struct wr_item *wr_queue_pop_victim(struct wr_queue *q);
/* The oldest with a body in memory; stays. */
struct wr_item *wr_queue_oldest_in_memory(const struct wr_queue *q);
void wr_queue_drop_body(struct wr_queue *q, struct wr_item *item);
#endif
