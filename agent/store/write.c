/* SPDX-License-Identifier: Apache-2.0 */
/*
 * write: one batch, one transaction.
 *
 * First the series of each row is found or made, then the rows go in sorted by series, so that the
 * clustered table only ever grows at its right edge. Without the memory to sort them all that is
 * done a stretch at a time: slower, but a batch that waits for memory may be what holds it. A
 * failure rolls everything back, series made on the way included, so a batch can be tried again as
 * it is.
 */
#include "store/internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char *const drop_names[WEIR_DROP_COUNT] = {
#define STORE_DROP_NAME(name, text) [WEIR_DROP_##name] = (text),
    WEIR_DROP_MAP(STORE_DROP_NAME)
#undef STORE_DROP_NAME
};

int store_step_done(sqlite3_stmt *stmt)
{
    const int rc = sqlite3_step(stmt);
    const int end = sqlite3_reset(stmt);
    return rc == SQLITE_DONE || rc == SQLITE_ROW ? SQLITE_OK : end;
}

int store_commit(struct store *s)
{
    return store_step_done(s->stmts[STORE_COMMIT]);
}

void store_rollback(struct store *s)
{
    /* Some failures have rolled back already. */
    if (sqlite3_get_autocommit(s->db) == 0)
        (void)store_step_done(s->stmts[STORE_ROLLBACK]);
}

/* A u64 in SQLite's 64-bit integer: the same bits. */
static void bind_u64(sqlite3_stmt *stmt, int at, uint64_t v)
{
    (void)sqlite3_bind_int64(stmt, at, (int64_t)v);
}

static int add_batch_row(struct store *s, const struct weir_batch_info *info, uint64_t number)
{
    const struct weir_window_counts *const c = &info->counts;
    sqlite3_stmt *const add = s->stmts[STORE_BATCH_ADD];
    bind_u64(add, 1, number);
    (void)sqlite3_bind_int64(add, 2, info->start_ns);
    (void)sqlite3_bind_int64(add, 3, info->start_ns + info->for_ns);
    const uint64_t rest[] = {info->shard,    info->flags,      info->rows, c->received,
                             c->aggregated,  c->ineligible,    c->partial, c->admitted_weight,
                             c->rows_weight, c->sketch_weight, c->late,    c->future,
                             c->overflow};
    for (size_t i = 0; i < sizeof rest / sizeof *rest; i++)
        bind_u64(add, 4 + (int)i, rest[i]);
    int rc = store_step_done(add);
    sqlite3_stmt *const drop = s->stmts[STORE_DROP_ADD];
    for (size_t i = 0; i < WEIR_DROP_COUNT && rc == SQLITE_OK; i++) {
        if (!c->dropped[i])
            continue;
        bind_u64(drop, 1, number);
        (void)sqlite3_bind_text(drop, 2, drop_names[i], -1, SQLITE_STATIC);
        bind_u64(drop, 3, c->dropped[i]);
        rc = store_step_done(drop);
    }
    return rc;
}

static int add_series(struct store *s, uint64_t hash, int64_t start_ns, uint64_t number,
                      int64_t *ret_id)
{
    sqlite3_stmt *const add = s->stmts[STORE_SERIES_ADD];
    bind_u64(add, 1, hash);
    (void)sqlite3_bind_blob(add, 2, s->form.ptr, (int)s->form.len, SQLITE_STATIC);
    (void)sqlite3_bind_int64(add, 3, start_ns);
    bind_u64(add, 4, number);
    const int rc = store_step_done(add);
    if (rc == SQLITE_OK)
        *ret_id = sqlite3_last_insert_rowid(s->db);
    return rc;
}

/* The series whose canonical labels are in s->form. A correction may move its beginning back. */
static int find_or_add_series(struct store *s, int64_t start_ns, uint64_t number, int64_t *ret_id,
                              bool *ret_added)
{
    const uint64_t hash = store_labels_hash((struct weir_bytes){s->form.ptr, s->form.len});
    sqlite3_stmt *const find = s->stmts[STORE_SERIES_FIND];
    bind_u64(find, 1, hash);
    (void)sqlite3_bind_blob(find, 2, s->form.ptr, (int)s->form.len, SQLITE_STATIC);
    const int rc = sqlite3_step(find);
    int64_t created_ns = start_ns;
    if (rc == SQLITE_ROW) {
        *ret_id = sqlite3_column_int64(find, 0);
        created_ns = sqlite3_column_int64(find, 1);
    }
    const int end = sqlite3_reset(find);
    if (rc == SQLITE_DONE) {
        *ret_added = true;
        return add_series(s, hash, start_ns, number, ret_id);
    }
    if (rc != SQLITE_ROW || created_ns <= start_ns)
        return end;
    sqlite3_stmt *const began = s->stmts[STORE_SERIES_BEGAN];
    (void)sqlite3_bind_int64(began, 1, *ret_id);
    (void)sqlite3_bind_int64(began, 2, start_ns);
    return store_step_done(began);
}

static int compare_keys(const void *pa, const void *pb)
{
    const struct store_row_key *const a = pa;
    const struct store_row_key *const b = pb;
    if (a->series_id != b->series_id)
        return a->series_id < b->series_id ? -1 : 1;
    return (a->row > b->row) - (a->row < b->row);
}

int store_reserve_keys(struct store *s, size_t rows)
{
    if (rows <= s->key_cap)
        return 0;
    if (rows > SIZE_MAX / 2 / sizeof *s->keys)
        return -ENOMEM;
    struct store_row_key *const keys = realloc(s->keys, rows * sizeof *keys);
    if (!keys)
        return -ENOMEM;
    s->keys = keys;
    s->key_cap = rows;
    return 0;
}

/* Rows of a batch: all, or as many as there are keys for. */
struct stretch {
    size_t from;
    size_t count;
};

/* Fill s->keys, sorted. 0 or -errno with *ret_rc; SQLITE_OK there means the failure is not the
 * database's. */
static int find_all_series(struct store *s, const struct store_rows *rows, struct stretch of,
                           uint64_t number, uint64_t *ret_added, int *ret_rc)
{
    struct weir_label labels[WEIR_LABELS_MAX];
    for (size_t i = 0; i < of.count; i++) {
        size_t count = rows->labels(rows->ctx, of.from + i, labels, WEIR_LABELS_MAX);
        if (count > WEIR_LABELS_MAX)
            count = WEIR_LABELS_MAX;
        const int r = store_labels_encode(&s->form, labels, count);
        if (r)
            return r;
        bool added = false;
        s->keys[i].row = of.from + i;
        *ret_rc = find_or_add_series(s, rows->info.start_ns, number, &s->keys[i].series_id, &added);
        if (*ret_rc != SQLITE_OK)
            return store_errno_of(s->db, *ret_rc);
        *ret_added += added;
    }
    if (of.count > 1)
        qsort(s->keys, of.count, sizeof *s->keys, compare_keys);
    return 0;
}

static int bind_sketch(sqlite3_stmt *stmt, int at, const struct weir_sketch *sk,
                       struct store_buf *buf)
{
    if (!sk) {
        (void)sqlite3_bind_null(stmt, at);
        return 0;
    }
    const int r = store_sketch_encode(sk, buf);
    if (r)
        return r;
    (void)sqlite3_bind_blob(stmt, at, buf->ptr, (int)buf->len, SQLITE_STATIC);
    return 0;
}

/* The next free part: an earlier stretch may have had rows of the series. */
static int add_window(sqlite3_stmt *add, int64_t *part)
{
    int rc;
    do {
        (void)sqlite3_bind_int64(add, 3, *part);
        rc = store_step_done(add);
    } while (rc == SQLITE_CONSTRAINT_PRIMARYKEY && ++*part < STORE_PARTS_MAX);
    return rc;
}

static int add_windows(struct store *s, const struct store_rows *rows, struct stretch of,
                       uint64_t number, int *ret_rc)
{
    sqlite3_stmt *const add = s->stmts[STORE_WINDOW_ADD];
    int64_t part = 0;
    for (size_t i = 0; i < of.count; i++) {
        const int64_t id = s->keys[i].series_id;
        part = i > 0 && s->keys[i - 1].series_id == id ? part + 1 : 0;
        struct weir_row row;
        rows->row(rows->ctx, s->keys[i].row, &row);
        bind_u64(add, 1, number);
        (void)sqlite3_bind_int64(add, 2, id);
        bind_u64(add, 4, row.hits);
        bind_u64(add, 5, row.errors);
        bind_u64(add, 6, row.top_level);
        int r = bind_sketch(add, 7, row.ok, &s->blob[0]);
        if (r == 0)
            r = bind_sketch(add, 8, row.error, &s->blob[1]);
        if (r)
            return r;
        *ret_rc = add_window(add, &part);
        if (*ret_rc != SQLITE_OK)
            return store_errno_of(s->db, *ret_rc);
    }
    return 0;
}

static int write_in_transaction(struct store *s, const struct store_rows *rows, uint64_t number,
                                uint64_t *ret_added, int *ret_rc)
{
    const size_t all = rows->info.rows;
    *ret_rc = add_batch_row(s, &rows->info, number);
    int r = store_errno_of(s->db, *ret_rc);
    for (size_t from = 0; from < all && r == 0; from += s->key_cap) {
        const size_t left = all - from;
        const struct stretch of = {.from = from, .count = left < s->key_cap ? left : s->key_cap};
        r = find_all_series(s, rows, of, number, ret_added, ret_rc);
        if (r == 0)
            r = add_windows(s, rows, of, number, ret_rc);
    }
    if (r)
        return r;
    bind_u64(s->stmts[STORE_SET_LAST], 1, number);
    *ret_rc = store_step_done(s->stmts[STORE_SET_LAST]);
    if (*ret_rc == SQLITE_OK)
        *ret_rc = store_commit(s);
    return store_errno_of(s->db, *ret_rc);
}

static int write_once(struct store *s, const struct store_rows *rows, uint64_t number, int *ret_rc,
                      struct store_error *ret_error)
{
    uint64_t added = 0;
    *ret_rc = store_step_done(s->stmts[STORE_BEGIN]);
    int r = store_errno_of(s->db, *ret_rc);
    if (r == 0)
        r = write_in_transaction(s, rows, number, &added, ret_rc);
    if (r) {
        if (*ret_rc != SQLITE_OK)
            (void)store_fail_db(ret_error, s->db, *ret_rc, s->file, "writing a batch");
        else
            (void)store_fail(ret_error, r, "%s: writing a batch: %s", s->file, strerrordesc_np(-r));
        store_rollback(s);
        if (r == -ENOMEM) { /* the next attempt makes do with little */
            (void)sqlite3_db_release_memory(s->db);
            (void)sqlite3_exec(s->db, "PRAGMA cache_size = -1024", NULL, NULL, NULL);
        }
        return r;
    }
    s->last_number = number;
    s->counts.series += added;
    s->counts.windows_written += rows->info.rows;
    return 0;
}

int store_write_rows(struct store *s, const struct store_rows *rows, uint64_t number,
                     struct store_error *ret_error)
{
    if (number <= s->last_number || number > INT64_MAX)
        return store_fail(ret_error, -EEXIST, "%s: batch number %llu is not above %llu", s->file,
                          (unsigned long long)number, (unsigned long long)s->last_number);
    (void)store_reserve_keys(s, rows->info.rows); /* else what there is serves */
    int r = store_mend(s, ret_error);
    if (r)
        return r;
    int rc = SQLITE_OK;
    r = write_once(s, rows, number, &rc, ret_error);
    if (r && store_is_corrupt(rc)) {
        r = store_replace(s, ret_error);
        if (r == 0)
            r = write_once(s, rows, number, &rc, ret_error);
    }
    return r;
}

uint64_t store_last_number(const struct store *s)
{
    return s->last_number;
}

void store_read_info(sqlite3_stmt *row, struct weir_batch_info *ret_info)
{
    struct weir_batch_info info = {
        .start_ns = sqlite3_column_int64(row, 1),
        .for_ns = sqlite3_column_int64(row, 2) - sqlite3_column_int64(row, 1),
        .shard = (uint32_t)sqlite3_column_int64(row, 3),
        .flags = (uint32_t)sqlite3_column_int64(row, 4),
        .rows = (size_t)sqlite3_column_int64(row, 5),
    };
    struct weir_window_counts *const c = &info.counts;
    uint64_t *const rest[] = {&c->received,        &c->aggregated,  &c->ineligible,    &c->partial,
                              &c->admitted_weight, &c->rows_weight, &c->sketch_weight, &c->late,
                              &c->future,          &c->overflow};
    for (size_t i = 0; i < sizeof rest / sizeof *rest; i++)
        *rest[i] = (uint64_t)sqlite3_column_int64(row, 6 + (int)i);
    *ret_info = info;
}

static int read_drops(struct store *s, uint64_t number, struct weir_window_counts *counts)
{
    sqlite3_stmt *const get = s->stmts[STORE_BATCH_DROPS];
    bind_u64(get, 1, number);
    int rc;
    while ((rc = sqlite3_step(get)) == SQLITE_ROW) {
        const char *const reason = (const char *)sqlite3_column_text(get, 0);
        for (size_t i = 0; i < WEIR_DROP_COUNT; i++) {
            if (reason && sqlite3_stricmp(reason, drop_names[i]) == 0)
                counts->dropped[i] = (uint64_t)sqlite3_column_int64(get, 1);
        }
    }
    (void)sqlite3_reset(get);
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

int64_t store_get_recent(struct store *s, int64_t after_ns, struct store_recent *recent, size_t cap)
{
    sqlite3_stmt *const get = s->stmts[STORE_BATCH_RECENT];
    (void)sqlite3_bind_int64(get, 1, after_ns);
    (void)sqlite3_bind_int64(get, 2, cap < INT64_MAX ? (int64_t)cap : INT64_MAX);
    size_t n = 0;
    int rc;
    while ((rc = sqlite3_step(get)) == SQLITE_ROW && n < cap) {
        recent[n].number = (uint64_t)sqlite3_column_int64(get, 0);
        store_read_info(get, &recent[n].info);
        n++;
    }
    (void)sqlite3_reset(get);
    for (size_t i = 0; i < n && (rc == SQLITE_DONE || rc == SQLITE_ROW); i++) {
        const int r = read_drops(s, recent[i].number, &recent[i].info.counts);
        rc = r == SQLITE_OK ? SQLITE_DONE : r;
    }
    if (rc == SQLITE_DONE || rc == SQLITE_ROW)
        return (int64_t)n;
    return store_note(s, atomic_load(&s->generation), store_errno_of(s->db, rc));
}
