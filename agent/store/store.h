/* SPDX-License-Identifier: Apache-2.0 */
#ifndef AGENT_STORE_STORE_H
#define AGENT_STORE_STORE_H
/*
 * store: SQLite in WAL mode: series, windows with their sketches, totals of what retention removed.
 * One transaction a batch. docs/formats/store.md has the schema.
 *
 * Threads: a struct store (the writer) belongs to one thread at a time; each struct store_reader
 * has its own connection and belongs to one thread at a time.
 */
#include "query/source.h"

#include <weir/batch.h>

#define STORE_SCHEMA_VERSION 1

struct store;
struct store_reader;

struct store_opts {
    const char *path;         /* folder, made if absent; holds weir.db */
    int64_t retention_for_ns; /* default 15 d */
    uint64_t retention_bytes; /* default 2 GiB; 0: no limit by bytes */
};

/* Filled on failure: one line that names the file and the remedy. */
struct store_error {
    int code; /* -errno, or WEIR_EVERSION for a newer schema, WEIR_EBUSY when another holds it */
    char text[512];
};

/* Opens, migrates an older schema, refuses a newer one, takes the lock that keeps a second agent
 * out. A corrupt file is renamed and replaced; ret_replaced says so. 0 or an error's code. */
int store_open(const struct store_opts *opts, struct store **ret_store, bool *ret_replaced,
               struct store_error *ret_error);
void store_close(struct store *store); /* NULL is allowed */

/* One transaction. number is stored as the highest committed. 0 or -errno (-ENOSPC, -EIO, ...). */
int store_write(struct store *store, const struct weir_batch *batch, uint64_t number,
                struct store_error *ret_error);
/* The highest number ever committed; 0 in a fresh store. */
uint64_t store_last_number(const struct store *store);
/* Remove what is older than the retention before now_ns, in bounded steps: at most max_windows
 * rows a call; their totals stay with the series. Returns the rows removed, or -errno. */
int64_t store_retain(struct store *store, int64_t now_ns, size_t max_rows,
                     struct store_error *ret_error);

struct store_counts {
    uint64_t series;
    uint64_t windows_written; /* rows, by this process */
    uint64_t rows_removed;
    uint64_t file_bytes;
    int64_t oldest_start_ns; /* of a window held; 0 when none */
    int64_t newest_start_ns;
};
void store_get_counts(struct store *store, struct store_counts *ret_counts); /* writer's thread */

/* Read connections may be opened from any thread while the store is open. */
int store_reader_open(const struct store *store, struct store_reader **ret_reader,
                      struct store_error *ret_error);
void store_reader_close(struct store_reader *reader);
/* Begin a read transaction; *ret_last_number is the highest batch number inside it. */
int store_reader_begin(struct store_reader *reader, uint64_t *ret_last_number);
void store_reader_end(struct store_reader *reader);
/* The contract of query_source.scan over what is stored. Inside begin..end. 0 or -errno, or what
 * a callback returned. Series ids are the store's. */
int store_reader_scan(struct store_reader *reader, const struct query_select *select,
                      const struct query_visitor *visitor);
#endif
