/* SPDX-License-Identifier: Apache-2.0 */
#ifndef AGENT_STORE_INTERNAL_H
#define AGENT_STORE_INTERNAL_H
/*
 * internal: what the files of store share, and what its tests may reach into.
 */
#include "store/labels.h"
#include "store/store.h"

#include <sqlite3.h>
#include <stdatomic.h>

#define STORE_FILE "weir.db"
#define STORE_LOCK "weir.lock"
#define STORE_VFS "weir-checked"        /* checksum.c */
#define STORE_APPLICATION_ID 0x57454952 /* "WEIR", PRAGMA application_id */
#define STORE_WRITER_BUSY_MS 5000       /* someone's sqlite3 session may hold the write lock */
#define STORE_READER_BUSY_MS 1000
#define STORE_KEYS_MIN 1024        /* rows that can be written whatever memory there is */
#define STORE_PARTS_MAX 1000000000 /* rows of one series in one batch */

/* The writer's statements. WINDOW_RANGE reads part of a batch, in key order. */
#define STORE_STMT_MAP(X)                                                                          \
    X(BEGIN, "BEGIN IMMEDIATE")                                                                    \
    X(COMMIT, "COMMIT")                                                                            \
    X(ROLLBACK, "ROLLBACK")                                                                        \
    X(SET_LAST, "UPDATE meta SET value = ?1 WHERE key = 'last_number'")                            \
    X(SERIES_FIND, "SELECT id, created_ns FROM series WHERE hash = ?1 AND labels = ?2")            \
    X(SERIES_ADD, "INSERT INTO series(hash, labels, created_ns, first_number) "                    \
                  "VALUES(?1, ?2, ?3, ?4)")                                                        \
    X(SERIES_BEGAN, "UPDATE series SET created_ns = ?2 WHERE id = ?1")                             \
    X(BATCH_ADD, "INSERT INTO batches(number, start_ns, end_ns, shard, flags, rows, received, "    \
                 "aggregated, ineligible, partial, admitted_weight, rows_weight, "                 \
                 "sketch_weight, late, future, overflow) "                                         \
                 "VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14,?15,?16)")                 \
    X(DROP_ADD, "INSERT INTO drops(number, reason, spans) VALUES(?1, ?2, ?3)")                     \
    X(WINDOW_ADD, "INSERT INTO windows(number, series_id, part, hits, errors, top_level, ok, "     \
                  "error) VALUES(?1,?2,?3,?4,?5,?6,?7,?8)")                                        \
    X(BATCH_OLDEST, "SELECT number, start_ns, end_ns FROM batches ORDER BY end_ns, number LIMIT "  \
                    "1")                                                                           \
    X(BATCH_NEWEST, "SELECT start_ns FROM batches ORDER BY end_ns DESC LIMIT 1")                   \
    X(BATCH_RECENT, "SELECT number, start_ns, end_ns, shard, flags, rows, received, aggregated, "  \
                    "ineligible, partial, admitted_weight, rows_weight, sketch_weight, late, "     \
                    "future, overflow FROM batches WHERE start_ns >= ?1 ORDER BY number DESC "     \
                    "LIMIT ?2")                                                                    \
    X(BATCH_DROPS, "SELECT reason, spans FROM drops WHERE number = ?1")                            \
    X(BATCH_REMOVE, "DELETE FROM batches WHERE number = ?1")                                       \
    X(DROPS_REMOVE, "DELETE FROM drops WHERE number = ?1")                                         \
    X(WINDOW_RANGE, "SELECT series_id, part, hits, errors, top_level, ok, error FROM windows "     \
                    "WHERE number = ?1 ORDER BY series_id, part LIMIT ?2")                         \
    X(WINDOW_REMOVE, "DELETE FROM windows WHERE number = ?1 AND (series_id, part) <= (?2, ?3)")    \
    X(TOTAL_GET, "SELECT hits, errors, top_level, ok, error FROM totals WHERE series_id = ?1")     \
    X(TOTAL_SET, "INSERT OR REPLACE INTO totals(series_id, hits, errors, top_level, ok, error) "   \
                 "VALUES(?1,?2,?3,?4,?5,?6)")                                                      \
    X(ROLLED_UNTIL, "SELECT value FROM meta WHERE key = 'rolled_until'")                           \
    X(SET_ROLLED, "UPDATE meta SET value = ?1 WHERE key = 'rolled_until'")                         \
    X(BATCH_NEXT, "SELECT end_ns FROM batches WHERE end_ns > ?1 ORDER BY end_ns LIMIT 1")          \
    X(BATCH_NUMBERS, "SELECT number FROM batches INDEXED BY batches_end WHERE end_ns > ?1 AND "    \
                     "end_ns <= ?2 AND number <= ?3")                                              \
    X(HOUR_UNDER_WAY, "SELECT end_ns, upto_number, next_series FROM hours WHERE next_series IS "   \
                      "NOT NULL LIMIT 1")                                                          \
    X(HOUR_ADD, "INSERT INTO hours(end_ns, upto_number, next_series) VALUES(?1, ?2, 0)")           \
    X(HOUR_SET, "UPDATE hours SET next_series = ?2 WHERE end_ns = ?1")                             \
    X(HOUR_REMOVE, "DELETE FROM hours WHERE end_ns = ?1")                                          \
    X(SERIES_NEXT, "SELECT id FROM series WHERE id > ?1 ORDER BY id LIMIT ?2")                     \
    X(WINDOW_PART, "SELECT series_id, hits, errors, top_level, ok, error FROM windows "            \
                   "WHERE number = ?1 AND series_id > ?2 AND series_id <= ?3 ORDER BY series_id")  \
    X(ROLL_ADD, "INSERT INTO rolls(end_ns, series_id, hits, errors, top_level, ok, error) "        \
                "VALUES(?1,?2,?3,?4,?5,?6,?7)")                                                    \
    X(ROLLS_REMOVE, "DELETE FROM rolls WHERE end_ns = ?1")                                         \
    X(PAGE_COUNT, "PRAGMA page_count")                                                             \
    X(FREE_COUNT, "PRAGMA freelist_count")                                                         \
    X(VACUUM, "PRAGMA incremental_vacuum(2048)")

enum store_stmt {
#define STORE_STMT_ENUM(name, sql) STORE_##name,
    STORE_STMT_MAP(STORE_STMT_ENUM)
#undef STORE_STMT_ENUM
        STORE_STMT_COUNT
};

struct store {
    struct store_opts opts;
    char *dir;
    char *file;
    int lock_fd;
    sqlite3 *db;
    sqlite3_stmt *stmts[STORE_STMT_COUNT];
    uint64_t last_number;
    int64_t page_bytes;
    struct store_counts counts;
    atomic_uint generation; /* moves when the file is replaced: readers open again */
    atomic_uint damaged;    /* 1 + the generation that was found corrupt by reading; else 0 */
    struct store_buf form;
    struct store_buf blob[2];
    struct store_row_key *keys; /* of the batch being written */
    size_t key_cap;
    struct weir_sketch *total; /* scratch of retention */
    struct store_sum *sums;    /* scratch of rolling */
    size_t sum_cap;
};

#define STORE_HOUR_FOR_NS (INT64_C(3600) * 1000000000)
/* The end of the hour, by window ends, that end_ns falls in: (hour - 1 h, hour]. */
int64_t store_hour_of(int64_t end_ns);

/* A row of a batch and the series it belongs to. */
struct store_row_key {
    int64_t series_id;
    size_t row;
};

/* error.c */
int store_fail(struct store_error *ret_error, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* The errno of a result of SQLite; *ret_error gets what SQLite says, the file and a remedy. */
int store_fail_db(struct store_error *ret_error, sqlite3 *db, int rc, const char *file,
                  const char *doing);
int store_errno_of(sqlite3 *db, int rc);
bool store_is_corrupt(int rc);

/* schema.c: one row a version. sql takes a database of version i to version i + 1. */
struct store_step {
    const char *sql;
};
extern const struct store_step store_steps[STORE_SCHEMA_VERSION];
/* Run what is missing, each step with its version number in one transaction. 0, WEIR_EVERSION
 * (newer than count), or -errno. *ret_rc is the result of SQLite. */
int store_migrate(sqlite3 *db, const char *file, const struct store_step *steps, int count,
                  int *ret_rc, struct store_error *ret_error);
/* A number that a statement gives, e.g. a pragma. SQLITE_OK, or a result of SQLite. */
int store_db_number(sqlite3 *db, const char *sql, int64_t *ret_value);

/* path.c */
int store_default_path_of(const char *state_dirs, const char *system_dir, const char *xdg_home,
                          const char *home, char *dst, size_t cap);
int store_make_folder(const char *dir, struct store_error *ret_error);
/* The descriptor that holds the lock, or an error's code. */
int store_lock(const char *dir, struct store_error *ret_error);

/* checksum.c: make STORE_VFS known to SQLite, once a process. 0 or -ENOMEM. */
int store_checksum_init(void);
/* Room for checksums in the pages of a file that is still empty. A result of SQLite. */
int store_checksum_reserve(sqlite3 *db);

/* open.c */
/* Reading the file of this generation gave code: if that is -EUCLEAN, remember it for the writer.
 * Gives code back. Threads: any. */
int store_note(struct store *store, unsigned generation, int code);
/* Set the corrupt file aside, if it is open, and go on with a fresh one that continues the numbers.
 * After a failure the store has no database (db NULL), and the call may be repeated. */
int store_replace(struct store *store, struct store_error *ret_error);

/* sketch.c: encode into buf, grown as need be. 0, -ENOMEM, -EIO. */
int store_sketch_encode(const struct weir_sketch *sk, struct store_buf *buf);

/* roll.c */
void store_sums_free(struct store *store);
/* Forget the sum of the hour that a window's end falls in. SQLITE_OK, or a result of SQLite. */
int store_unroll(struct store *store, int64_t end_ns);

/* write.c: keys for so many rows at once. 0 or -ENOMEM. */
int store_reserve_keys(struct store *store, size_t rows);
/* Run a statement to its end and reset it. SQLITE_DONE becomes SQLITE_OK. */
int store_step_done(sqlite3_stmt *stmt);
int store_commit(struct store *store);
void store_rollback(struct store *store);
/* The columns of a batch from number on, in the order of BATCH_RECENT. */
void store_read_info(sqlite3_stmt *row, struct weir_batch_info *ret_info);

/* u128.c */
struct weir_u128 store_u128_add(struct weir_u128 a, struct weir_u128 b); /* saturates */
uint64_t store_u128_clamp(struct weir_u128 v);
void store_u128_put(struct weir_u128 v, uint8_t dst[16]);
/* Fewer or more bytes than 16 read as 0. */
struct weir_u128 store_u128_get(const void *src, size_t bytes);
#endif
