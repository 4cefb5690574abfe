/* SPDX-License-Identifier: Apache-2.0 */
/*
 * read: a read connection, its transaction, and the scan.
 *
 * The series are read at each scan, in the order of their ids; those that match stay in memory to
 * the end of the transaction. A scan goes over the batches of its time range. The rows of a batch
 * are in the order of their series too, so matching is a merge; where few series match, each is
 * sought instead.
 */
#include "store/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A row sought costs about as much as so many rows passed over. */
#define ROWS_A_SEEK 16

#define READER_STMT_MAP(X)                                                                         \
    X(BEGIN, "BEGIN")                                                                              \
    X(COMMIT, "COMMIT")                                                                            \
    X(LAST, "SELECT value FROM meta WHERE key = 'last_number'")                                    \
    X(SERIES, "SELECT id, created_ns, labels FROM series WHERE first_number <= ?1 ORDER BY id")    \
    X(TOTAL, "SELECT hits, errors, top_level, ok, error FROM totals WHERE series_id = ?1")         \
    X(HOURS, "SELECT end_ns, upto_number FROM hours WHERE next_series IS NULL "                    \
             "AND end_ns > ?1 AND end_ns <= ?2 AND upto_number <= ?3 ORDER BY end_ns")             \
    X(ROLLS, "SELECT series_id, hits, errors, top_level, ok, error FROM rolls WHERE end_ns = ?1 "  \
             "ORDER BY series_id")                                                                 \
    X(ROLL, "SELECT series_id, hits, errors, top_level, ok, error FROM rolls "                     \
            "WHERE end_ns = ?1 AND series_id = ?2")                                                \
    X(BATCHES, "SELECT number, start_ns, end_ns, rows FROM batches INDEXED BY batches_end "        \
               "WHERE end_ns > ?1 AND end_ns <= ?2 AND number <= ?3 AND number > ?4")              \
    X(WINDOWS, "SELECT series_id, hits, errors, top_level, ok, error FROM windows "                \
               "WHERE number = ?1 ORDER BY series_id")                                             \
    X(WINDOW, "SELECT series_id, hits, errors, top_level, ok, error FROM windows "                 \
              "WHERE number = ?1 AND series_id = ?2")

enum reader_stmt {
#define READER_STMT_ENUM(name, sql) READ_##name,
    READER_STMT_MAP(READER_STMT_ENUM)
#undef READER_STMT_ENUM
        READ_COUNT
};

static const char *const sql_of[READ_COUNT] = {
#define READER_STMT_SQL(name, sql) [READ_##name] = (sql),
    READER_STMT_MAP(READER_STMT_SQL)
#undef READER_STMT_SQL
};

struct block {
    struct block *next;
    size_t used;
    size_t cap;
    _Alignas(max_align_t) char bytes[];
};

/* One that the scan's visitor wants. */
struct series {
    struct query_series shown;
    int64_t created_ns;
};

struct store_reader {
    struct store *store;
    unsigned generation;
    sqlite3 *db;
    sqlite3_stmt *stmts[READ_COUNT];
    uint64_t max_number;
    bool in_transaction;
    struct series *series; /* of the scan, in the order of their ids */
    size_t series_count;
    size_t series_cap;
    size_t series_seen;   /* how many there were to choose from */
    struct block *blocks; /* labels of the transaction's scans */
    struct weir_sketch *ok;
    struct weir_sketch *error;
};

static void close_db(struct store_reader *r)
{
    for (size_t i = 0; i < READ_COUNT; i++) {
        (void)sqlite3_finalize(r->stmts[i]);
        r->stmts[i] = NULL;
    }
    (void)sqlite3_close(r->db);
    r->db = NULL;
}

static int open_db(struct store_reader *r, struct store_error *ret_error)
{
    const char *const file = r->store->file;
    r->generation = atomic_load(&r->store->generation);
    const int flags = SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;
    int rc = sqlite3_open_v2(file, &r->db, flags, STORE_VFS);
    if (rc == SQLITE_OK) {
        (void)sqlite3_busy_timeout(r->db, STORE_READER_BUSY_MS);
        rc = sqlite3_exec(r->db, "PRAGMA cache_size = -2048; PRAGMA trusted_schema = OFF;", NULL,
                          NULL, NULL);
    }
    for (size_t i = 0; i < READ_COUNT && rc == SQLITE_OK; i++)
        rc =
            sqlite3_prepare_v3(r->db, sql_of[i], -1, SQLITE_PREPARE_PERSISTENT, &r->stmts[i], NULL);
    if (rc == SQLITE_OK)
        return 0;
    const int code = store_fail_db(ret_error, r->db, rc, file, "opening to read");
    close_db(r);
    return store_note(r->store, r->generation, code);
}

int store_reader_open(struct store *store, struct store_reader **ret_reader,
                      struct store_error *ret_error)
{
    struct store_reader *const r = calloc(1, sizeof *r);
    if (!r)
        return store_fail(ret_error, -ENOMEM, "%s: no memory", store->file);
    r->store = store;
    const struct weir_sketch_opts o = {.struct_size = sizeof o, .grid = WEIR_GRID_NS};
    int code = 0;
    if (weir_sketch_new(&o, &r->ok) != WEIR_OK || weir_sketch_new(&o, &r->error) != WEIR_OK)
        code = store_fail(ret_error, -ENOMEM, "%s: no memory", store->file);
    if (code == 0)
        code = open_db(r, ret_error);
    if (code) {
        store_reader_close(r);
        return code;
    }
    *ret_reader = r;
    return 0;
}

void store_reader_close(struct store_reader *r)
{
    if (!r)
        return;
    store_reader_end(r);
    close_db(r);
    weir_sketch_free(r->ok);
    weir_sketch_free(r->error);
    free(r->series);
    free(r);
}

static int begin(struct store_reader *r, uint64_t *ret_last_number)
{
    int rc = store_step_done(r->stmts[READ_BEGIN]);
    if (rc != SQLITE_OK)
        return rc;
    r->in_transaction = true;
    rc = sqlite3_step(r->stmts[READ_LAST]);
    if (rc == SQLITE_ROW)
        *ret_last_number = (uint64_t)sqlite3_column_int64(r->stmts[READ_LAST], 0);
    const int end = sqlite3_reset(r->stmts[READ_LAST]);
    if (rc == SQLITE_ROW)
        return SQLITE_OK;
    return rc == SQLITE_DONE ? SQLITE_CORRUPT : end;
}

int store_reader_begin(struct store_reader *r, uint64_t max_number, uint64_t *ret_last_number)
{
    if (!r->db || r->generation != atomic_load(&r->store->generation)) {
        close_db(r);
        const int code = open_db(r, NULL);
        if (code)
            return code;
    }
    r->max_number = max_number < INT64_MAX ? max_number : INT64_MAX;
    const int rc = begin(r, ret_last_number);
    if (rc == SQLITE_OK)
        return 0;
    const int code = store_errno_of(r->db, rc);
    store_reader_end(r);
    return store_note(r->store, r->generation, code);
}

void store_reader_end(struct store_reader *r)
{
    if (r->in_transaction)
        (void)store_step_done(r->stmts[READ_COMMIT]);
    r->in_transaction = false;
    r->series_count = 0;
    for (struct block *b = r->blocks; b;) {
        struct block *const next = b->next;
        free(b);
        b = next;
    }
    r->blocks = NULL;
}

#define BLOCK_BYTES ((size_t)256 << 10)

/* Aligned for anything; lives to the end of the transaction. */
static void *take_memory(struct store_reader *r, size_t bytes)
{
    const size_t align = _Alignof(max_align_t);
    const size_t need = (bytes + align - 1) / align * align;
    struct block *b = r->blocks;
    if (!b || b->cap - b->used < need) {
        const size_t cap = need > BLOCK_BYTES ? need : BLOCK_BYTES;
        b = malloc(sizeof *b + cap);
        if (!b)
            return NULL;
        b->next = r->blocks;
        b->used = 0;
        b->cap = cap;
        r->blocks = b;
    }
    void *const p = b->bytes + b->used;
    b->used += need;
    return p;
}

static struct weir_bytes column_bytes(sqlite3_stmt *row, int at)
{
    const char *const ptr = sqlite3_column_blob(row, at);
    return (struct weir_bytes){ptr, (size_t)sqlite3_column_bytes(row, at)};
}

static int keep_series(struct store_reader *r, const struct series *one)
{
    if (r->series_count == r->series_cap) {
        const size_t cap = r->series_cap ? r->series_cap * 2 : 256;
        struct series *const series = realloc(r->series, cap * sizeof *series);
        if (!series)
            return -ENOMEM;
        r->series = series;
        r->series_cap = cap;
    }
    r->series[r->series_count++] = *one;
    return 0;
}

/* The labels of a row, in memory that lasts: a visitor may keep what it was shown. */
static int read_labels(struct store_reader *r, sqlite3_stmt *row, struct series *ret_one)
{
    const struct weir_bytes stored = column_bytes(row, 2);
    struct weir_label labels[WEIR_LABELS_MAX];
    size_t count = 0;
    char *const text = take_memory(r, stored.len + 1);
    if (!text)
        return -ENOMEM;
    if (stored.len)
        memcpy(text, stored.ptr, stored.len);
    if (store_labels_decode((struct weir_bytes){text, stored.len}, labels, WEIR_LABELS_MAX, &count))
        return -EUCLEAN;
    struct weir_label *const kept = take_memory(r, (count + 1) * sizeof *kept);
    if (!kept)
        return -ENOMEM;
    memcpy(kept, labels, count * sizeof *kept);
    *ret_one = (struct series){
        .shown = {.id = (uint64_t)sqlite3_column_int64(row, 0),
                  .labels = kept,
                  .label_count = count},
        .created_ns = sqlite3_column_int64(row, 1),
    };
    return 0;
}

/* The memory of a series that nobody wants is used again, so that what is held follows what is
 * asked for and not what is stored. */
static int offer_series(struct store_reader *r, sqlite3_stmt *row,
                        const struct query_visitor *visitor)
{
    struct block *const block = r->blocks;
    const size_t used = block ? block->used : 0;
    struct series one;
    const int code = read_labels(r, row, &one);
    if (code)
        return code;
    r->series_seen++;
    if (visitor->match(visitor->ctx, &one.shown))
        return keep_series(r, &one);
    if (block && r->blocks == block)
        block->used = used;
    return 0;
}

static int match_series(struct store_reader *r, const struct query_visitor *visitor)
{
    sqlite3_stmt *const get = r->stmts[READ_SERIES];
    (void)sqlite3_bind_int64(get, 1, (int64_t)r->max_number);
    r->series_count = 0;
    r->series_seen = 0;
    int rc = SQLITE_DONE;
    int code = 0;
    while (code == 0 && (rc = sqlite3_step(get)) == SQLITE_ROW)
        code = offer_series(r, get, visitor);
    (void)sqlite3_reset(get);
    if (code == 0 && rc != SQLITE_DONE)
        code = store_errno_of(r->db, rc);
    return code;
}

static int decode(struct weir_sketch *sk, struct weir_bytes blob, const struct weir_sketch **ret_sk)
{
    *ret_sk = NULL;
    if (!blob.len)
        return 0;
    const int r = weir_sketch_decode(sk, blob.ptr, blob.len);
    if (r != WEIR_OK)
        return r == WEIR_ENOMEM ? -ENOMEM : -EIO;
    *ret_sk = sk;
    return 0;
}

/* A scan, and where it stands: at a batch, or at the sum of an hour. */
struct scan {
    struct store_reader *r;
    const struct query_visitor *visitor;
    bool counts_only;
    int64_t key; /* a batch's number, or the hour's end */
    int64_t start_ns;
    int64_t end_ns;
};

static int show_base(const struct scan *sc, const struct series *s)
{
    struct store_reader *const r = sc->r;
    struct query_base base = {.created_ns = s->created_ns};
    sqlite3_stmt *const get = r->stmts[READ_TOTAL];
    (void)sqlite3_bind_int64(get, 1, (int64_t)s->shown.id);
    const int rc = sqlite3_step(get);
    int code = 0;
    if (rc == SQLITE_ROW) {
        struct weir_bytes b[3];
        for (int i = 0; i < 3; i++)
            b[i] = column_bytes(get, i);
        base.hits = store_u128_get(b[0].ptr, b[0].len);
        base.errors = store_u128_get(b[1].ptr, b[1].len);
        base.row.hits = store_u128_clamp(base.hits);
        base.row.errors = store_u128_clamp(base.errors);
        base.row.top_level = store_u128_clamp(store_u128_get(b[2].ptr, b[2].len));
        if (!sc->counts_only)
            code = decode(r->ok, column_bytes(get, 3), &base.row.ok);
        if (code == 0 && !sc->counts_only)
            code = decode(r->error, column_bytes(get, 4), &base.row.error);
    } else if (rc != SQLITE_DONE) {
        code = store_errno_of(r->db, rc);
    }
    if (code == 0)
        code = sc->visitor->base(sc->visitor->ctx, &s->shown, &base);
    (void)sqlite3_reset(get);
    return code;
}

static int show_window(const struct scan *sc, const struct series *s, sqlite3_stmt *row)
{
    struct query_window w = {
        .start_ns = sc->start_ns,
        .end_ns = sc->end_ns,
        .row = {.hits = (uint64_t)sqlite3_column_int64(row, 1),
                .errors = (uint64_t)sqlite3_column_int64(row, 2),
                .top_level = (uint64_t)sqlite3_column_int64(row, 3)},
    };
    if (!sc->counts_only) {
        w.ok_form = column_bytes(row, 4);
        w.error_form = column_bytes(row, 5);
    }
    return sc->visitor->window(sc->visitor->ctx, &s->shown, &w);
}

static int scan_merge(const struct scan *sc, sqlite3_stmt *get)
{
    struct store_reader *const r = sc->r;
    (void)sqlite3_bind_int64(get, 1, sc->key);
    size_t at = 0;
    int rc = SQLITE_DONE;
    int code = 0;
    while (code == 0 && (rc = sqlite3_step(get)) == SQLITE_ROW) {
        const uint64_t id = (uint64_t)sqlite3_column_int64(get, 0);
        while (at < r->series_count && r->series[at].shown.id < id)
            at++;
        if (at == r->series_count)
            break;
        if (r->series[at].shown.id == id)
            code = show_window(sc, &r->series[at], get);
    }
    (void)sqlite3_reset(get);
    if (code == 0 && rc != SQLITE_DONE && rc != SQLITE_ROW)
        code = store_errno_of(r->db, rc);
    return code;
}

static int scan_seek(const struct scan *sc, sqlite3_stmt *get)
{
    struct store_reader *const r = sc->r;
    (void)sqlite3_bind_int64(get, 1, sc->key);
    int code = 0;
    for (size_t i = 0; i < r->series_count && code == 0; i++) {
        (void)sqlite3_bind_int64(get, 2, (int64_t)r->series[i].shown.id);
        int rc = SQLITE_DONE;
        while (code == 0 && (rc = sqlite3_step(get)) == SQLITE_ROW)
            code = show_window(sc, &r->series[i], get);
        (void)sqlite3_reset(get);
        if (code == 0 && rc != SQLITE_DONE)
            code = store_errno_of(r->db, rc);
    }
    return code;
}

/* The batches with after_ns < end_ns <= until_ns and numbers above the given one. */
static int scan_batches(struct scan *sc, int64_t after_ns, int64_t until_ns, int64_t above)
{
    struct store_reader *const r = sc->r;
    sqlite3_stmt *const get = r->stmts[READ_BATCHES];
    (void)sqlite3_bind_int64(get, 1, after_ns);
    (void)sqlite3_bind_int64(get, 2, until_ns);
    (void)sqlite3_bind_int64(get, 3, (int64_t)r->max_number);
    (void)sqlite3_bind_int64(get, 4, above);
    int rc = SQLITE_DONE;
    int code = 0;
    while (code == 0 && (rc = sqlite3_step(get)) == SQLITE_ROW) {
        sc->key = sqlite3_column_int64(get, 0);
        sc->start_ns = sqlite3_column_int64(get, 1);
        sc->end_ns = sqlite3_column_int64(get, 2);
        const uint64_t rows = (uint64_t)sqlite3_column_int64(get, 3);
        code = r->series_count < rows / ROWS_A_SEEK ? scan_seek(sc, r->stmts[READ_WINDOW])
                                                    : scan_merge(sc, r->stmts[READ_WINDOWS]);
    }
    (void)sqlite3_reset(get);
    if (code == 0 && rc != SQLITE_DONE)
        code = store_errno_of(r->db, rc);
    return code;
}

static int scan_hour(struct scan *sc, int64_t hour_ns, int64_t upto_number)
{
    struct store_reader *const r = sc->r;
    sc->key = hour_ns;
    sc->start_ns = hour_ns - STORE_HOUR_FOR_NS;
    sc->end_ns = hour_ns;
    const int code = r->series_count < r->series_seen / ROWS_A_SEEK
                         ? scan_seek(sc, r->stmts[READ_ROLL])
                         : scan_merge(sc, r->stmts[READ_ROLLS]);
    return code ? code : scan_batches(sc, hour_ns - STORE_HOUR_FOR_NS, hour_ns, upto_number);
}

/* Hours that are summed and lie whole in the coarse part of the range, and batches between. */
static int scan_time(struct scan *sc, const struct query_select *select)
{
    struct store_reader *const r = sc->r;
    sqlite3_stmt *const get = r->stmts[READ_HOURS];
    const int64_t coarse_ns =
        select->coarse_until_ns < select->until_ns ? select->coarse_until_ns : select->until_ns;
    int64_t first_ns; /* the first hour ends at or after it */
    if (__builtin_add_overflow(select->after_ns, STORE_HOUR_FOR_NS, &first_ns))
        first_ns = INT64_MAX;
    (void)sqlite3_bind_int64(get, 1, first_ns - 1);
    (void)sqlite3_bind_int64(get, 2, coarse_ns);
    (void)sqlite3_bind_int64(get, 3, (int64_t)r->max_number);
    int64_t at_ns = select->after_ns;
    int rc = SQLITE_DONE;
    int code = 0;
    while (code == 0 && (rc = sqlite3_step(get)) == SQLITE_ROW) {
        const int64_t hour_ns = sqlite3_column_int64(get, 0);
        code = scan_batches(sc, at_ns, hour_ns - STORE_HOUR_FOR_NS, 0);
        if (code == 0)
            code = scan_hour(sc, hour_ns, sqlite3_column_int64(get, 1));
        at_ns = hour_ns;
    }
    (void)sqlite3_reset(get);
    if (code == 0 && rc != SQLITE_DONE)
        code = store_errno_of(r->db, rc);
    return code ? code : scan_batches(sc, at_ns, select->until_ns, 0);
}

static int scan(struct store_reader *r, const struct query_select *select,
                const struct query_visitor *visitor)
{
    int code = match_series(r, visitor);
    const struct scan sc = {.r = r, .visitor = visitor, .counts_only = select->counts_only};
    for (size_t i = 0; i < r->series_count && select->totals && code == 0; i++)
        code = show_base(&sc, &r->series[i]);
    if (code || r->series_count == 0)
        return code;
    struct scan in_time = sc;
    return scan_time(&in_time, select);
}

int store_reader_scan(struct store_reader *r, const struct query_select *select,
                      const struct query_visitor *visitor)
{
    return store_note(r->store, r->generation, scan(r, select, visitor));
}
