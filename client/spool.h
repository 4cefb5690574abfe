/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WR_CLIENT_SPOOL_H
#define WR_CLIENT_SPOOL_H
/*
 * spool: bodies of statistics in a folder, a file each, named by a number that counts up.
 *
 * A file is written beside its name, made durable, and then named: a process that is killed in the
 * middle leaves a file without a number, which the next one removes. Its sum tells a file that was
 * damaged. One process uses a folder at a time: it holds a lock on the file "lock" in it.
 *
 * Threads: the caller's lock. Memory: one buffer while a file is written.
 */
#include <weir/base.h>

#include "base.h"
#include "queue.h"

struct wr_spool {
    const struct weir_alloc *alloc;
    int folder;  /* -1: there is none */
    int lock_fd; /* -1: not locked */
    uint64_t next_id;
    uint64_t bytes;
    uint64_t max_bytes;
};

/* Errors: WEIR_EBUSY (another process has it), WEIR_ERANGE (cannot be made or used). */
int wr_spool_open(struct wr_spool *s, const char *path);
void wr_spool_close(struct wr_spool *s);
/* Forget the folder, as a child of a fork does: the parent has it. */
void wr_spool_forget(struct wr_spool *s);
/* Queue what an earlier process left, oldest first; returns how many. *ret_bad: files that were
 * damaged and are removed. Errors: WEIR_ENOMEM. */
int wr_spool_load(struct wr_spool *s, struct wr_queue *q, size_t *ret_count, size_t *ret_bad);
/* false: no folder, no room, or the system's refusal. */
bool wr_spool_write(struct wr_spool *s, struct wr_item *item);
/* Read the body back. false: it cannot be read, or is not what was written. */
bool wr_spool_read(struct wr_spool *s, struct wr_item *item);
void wr_spool_remove(struct wr_spool *s, struct wr_item *item);
#endif
