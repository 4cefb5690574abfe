/* SPDX-License-Identifier: Apache-2.0 */
#ifndef AGENT_STORE_STORE_H
#define AGENT_STORE_STORE_H
/*
 * store: SQLite in WAL mode: series, windows with their sketches, totals of what retention removed.
 * One transaction a batch. docs/formats/store.md has the schema.
 *
 * Durability: synchronous=FULL. A commit is on the disk when store_write returns, so neither
 * kill -9 nor a power cut loses a committed batch. There is about one commit in ten seconds, so
 * the fsync costs nothing that matters.
 *
 * Threads: a struct store (the writer) belongs to one thread at a time; each struct store_reader
 * has its own connection and belongs to one thread at a time.
 */
#include "query/source.h"
#include "store/rows.h"

#include <weir/batch.h>

#define STORE_SCHEMA_VERSION 2
#define STORE_RETENTION_FOR_NS_DEFAULT (INT64_C(15) * 86400 * 1000000000)
#define STORE_RETENTION_BYTES_DEFAULT (UINT64_C(2) << 30)

struct store;
struct store_reader;

struct store_opts {
    const char *path;         /* folder, made if absent; holds weir.db */
    int64_t retention_for_ns; /* STORE_RETENTION_FOR_NS_DEFAULT; 0: no limit by age */
    uint64_t retention_bytes; /* STORE_RETENTION_BYTES_DEFAULT; 0: no limit by bytes */
};

/* Filled on failure: one line that names the file and the remedy. */
struct store_error {
    int code; /* -errno, or WEIR_EVERSION for a newer schema, WEIR_EBUSY when another holds it */
    char text[512];
};

/*
 * Where a store goes when nothing names a folder (contracts: rows §4): the first folder of
 * $STATE_DIRECTORY, else /var/lib/weir if it can be written (or made), else $XDG_STATE_HOME/weir,
 * else ~/.local/state/weir. 0, -ENAMETOOLONG (cap), -ENOENT (no home either).
 */
int store_default_path(char *dst, size_t cap);

/*
 * Opens, migrates an older schema, refuses a newer one, takes the lock that keeps a second agent
 * out (weir.lock, held until store_close). A corrupt file is renamed to weir.db.corrupt-<time> and
 * replaced; ret_replaced says so. 0 or an error's code.
 */
int store_open(const struct store_opts *opts, struct store **ret_store, bool *ret_replaced,
               struct store_error *ret_error);
/* Its readers must have been closed. NULL is allowed. */
void store_close(struct store *store);

/*
 * One transaction: all of the batch or nothing. number is stored as the highest committed and must
 * be above every number before it (-EEXIST). 0 or -errno (-ENOSPC, -EIO, -EBUSY, ...): then the
 * store is as it was and the call may be repeated. A file found corrupt here is renamed and
 * replaced, as at open, and the batch is written to the fresh one; store_counts.replaced tells. So
 * is one that a reader found corrupt before.
 */
int store_write(struct store *store, const struct weir_batch *batch, uint64_t number,
                struct store_error *ret_error);
/* As store_write, of rows that need not be a batch. */
int store_write_rows(struct store *store, const struct store_rows *rows, uint64_t number,
                     struct store_error *ret_error);
/* The highest number ever committed; 0 in a fresh store. */
uint64_t store_last_number(const struct store *store);

/*
 * Remove what is past the retention at now_ns, the oldest first, at most max_rows rows in one
 * transaction; their totals stay with the series. Past the bound by bytes the oldest windows go
 * until what is in use fits, and the file gives pages back. Returns how many rows went (a batch's
 * own row counts as one), so 0 means done; or -errno.
 */
int64_t store_retain(struct store *store, int64_t now_ns, size_t max_rows,
                     struct store_error *ret_error);

/*
 * Sum what is complete of an hour into one row a series, so that long ranges and running totals
 * need not read every window (query_select.coarse_until_ns). An hour is complete 20 minutes after
 * its end; later batches of it are read beside the sum. One step of about max_rows rows, in one
 * transaction. Returns how many rows it read plus 1, so 0 means nothing to do; or -errno.
 */
int64_t store_roll(struct store *store, int64_t now_ns, size_t max_rows,
                   struct store_error *ret_error);

/*
 * If a reader found the file corrupt, or an earlier replacement failed: set the file aside and go
 * on with a fresh one, as at open; store_write and store_retain do so first. 0 or an error's code.
 */
int store_mend(struct store *store, struct store_error *ret_error);

struct store_recent {
    uint64_t number;
    struct weir_batch_info info;
};
/* The newest batches held that start at after_ns or later, the highest number first. Fills up to
 * cap; returns how many, or -errno. Writer's thread. */
int64_t store_get_recent(struct store *store, int64_t after_ns, struct store_recent *recent,
                         size_t cap);

struct store_counts {
    uint64_t series;
    uint64_t windows_written; /* rows, by this process */
    uint64_t rows_removed;    /* by retention, in this process */
    uint64_t totals_failed;   /* sketches that could not be merged into a total or a sum */
    uint64_t replaced;        /* corrupt files set aside by this process */
    uint64_t file_bytes;      /* weir.db and its write-ahead log */
    int64_t oldest_start_ns;  /* of a window held; 0 when none */
    int64_t newest_start_ns;
    bool over_bytes; /* retention has work for want of room */
};
void store_get_counts(struct store *store, struct store_counts *ret_counts); /* writer's thread */

/* Read connections may be opened from any thread while the store is open. */
int store_reader_open(struct store *store, struct store_reader **ret_reader,
                      struct store_error *ret_error);
void store_reader_close(struct store_reader *reader);
/*
 * Begin a read transaction that shows batches up to max_number (UINT64_MAX: all);
 * *ret_last_number is the highest batch number inside it, hidden ones included. 0 or -errno.
 */
int store_reader_begin(struct store_reader *reader, uint64_t max_number, uint64_t *ret_last_number);
void store_reader_end(struct store_reader *reader);
/*
 * The contract of query_source.scan over what is stored. Inside begin..end. 0 or -errno, or what
 * a callback returned. Series ids are the store's: 1 or more, below STORE_SERIES_ID_END. base is
 * called with created_ns also where nothing was removed.
 */
#define STORE_SERIES_ID_END (UINT64_C(1) << 62)
int store_reader_scan(struct store_reader *reader, const struct query_select *select,
                      const struct query_visitor *visitor);
#endif
