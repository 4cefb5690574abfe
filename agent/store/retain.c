/* SPDX-License-Identifier: Apache-2.0 */
/*
 * retain: what is past the bounds goes, oldest windows first, and adds to its series' totals in
 * the same transaction, so a running total is the same before and after.
 *
 * By bytes, pages in use count: the file keeps free pages for the next windows, and gives them
 * back to the file system only while it is longer than the bound.
 */
#include "store/internal.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

static int get_number(sqlite3_stmt *stmt, int64_t *ret_value)
{
    const int rc = sqlite3_step(stmt);
    if (rc == SQLITE_ROW)
        *ret_value = sqlite3_column_int64(stmt, 0);
    const int end = sqlite3_reset(stmt);
    return rc == SQLITE_ROW || rc == SQLITE_DONE ? SQLITE_OK : end;
}

/* Pages of the file and those of them that are free. */
static int get_pages(struct store *s, int64_t *ret_pages, int64_t *ret_free)
{
    const int rc = get_number(s->stmts[STORE_PAGE_COUNT], ret_pages);
    return rc == SQLITE_OK ? get_number(s->stmts[STORE_FREE_COUNT], ret_free) : rc;
}

static int is_over_bytes(struct store *s, bool *ret_over)
{
    *ret_over = false;
    if (!s->opts.retention_bytes)
        return SQLITE_OK;
    int64_t pages = 0;
    int64_t spare = 0;
    const int rc = get_pages(s, &pages, &spare);
    *ret_over =
        rc == SQLITE_OK && (uint64_t)((pages - spare) * s->page_bytes) > s->opts.retention_bytes;
    return rc;
}

struct total {
    struct weir_u128 hits;
    struct weir_u128 errors;
    struct weir_u128 top_level;
};

static struct weir_bytes column_bytes(sqlite3_stmt *row, int at)
{
    /* The order is SQLite's: the blob first, then its size. */
    const char *const ptr = sqlite3_column_blob(row, at);
    return (struct weir_bytes){ptr, (size_t)sqlite3_column_bytes(row, at)};
}

static struct weir_u128 column_u128(sqlite3_stmt *row, int at)
{
    const struct weir_bytes b = column_bytes(row, at);
    return store_u128_get(b.ptr, b.len);
}

static struct weir_u128 column_u64(sqlite3_stmt *row, int at)
{
    return (struct weir_u128){(uint64_t)sqlite3_column_int64(row, at), 0};
}

/* Merge an encoded sketch into another, both optional, and leave the result encoded in out
 * (out->len 0: none). What cannot be merged is counted and left out: the counters still add up. */
static int merge_blobs(struct store *s, struct weir_bytes total, struct weir_bytes part,
                       struct store_buf *out)
{
    out->len = 0;
    weir_sketch_clear(s->total);
    int r = total.len ? weir_sketch_decode(s->total, total.ptr, total.len) : WEIR_OK;
    if (r == WEIR_OK && part.len)
        r = weir_sketch_merge_encoded(s->total, part.ptr, part.len);
    if (r == WEIR_ENOMEM)
        return -ENOMEM;
    if (r != WEIR_OK)
        s->counts.totals_failed++;
    if (!total.len && !part.len)
        return 0;
    return store_sketch_encode(s->total, out);
}

static void bind_blob_or_null(sqlite3_stmt *stmt, int at, const struct store_buf *buf)
{
    if (buf->len)
        (void)sqlite3_bind_blob(stmt, at, buf->ptr, (int)buf->len, SQLITE_STATIC);
    else
        (void)sqlite3_bind_null(stmt, at);
}

/* Add the row that range stands on to its series' total. */
static int add_to_total(struct store *s, sqlite3_stmt *range, int *ret_rc)
{
    sqlite3_stmt *const get = s->stmts[STORE_TOTAL_GET];
    struct total t = {{0, 0}, {0, 0}, {0, 0}};
    struct weir_bytes ok = {NULL, 0};
    struct weir_bytes error = {NULL, 0};
    (void)sqlite3_bind_int64(get, 1, sqlite3_column_int64(range, 0));
    *ret_rc = sqlite3_step(get);
    if (*ret_rc == SQLITE_ROW) {
        t = (struct total){column_u128(get, 0), column_u128(get, 1), column_u128(get, 2)};
        ok = column_bytes(get, 3);
        error = column_bytes(get, 4);
    } else if (*ret_rc != SQLITE_DONE) {
        (void)sqlite3_reset(get);
        return store_errno_of(s->db, *ret_rc);
    }
    *ret_rc = SQLITE_OK;
    int r = merge_blobs(s, ok, column_bytes(range, 5), &s->blob[0]);
    if (r == 0)
        r = merge_blobs(s, error, column_bytes(range, 6), &s->blob[1]);
    (void)sqlite3_reset(get);
    if (r)
        return r;
    uint8_t blobs[3][16];
    store_u128_put(store_u128_add(t.hits, column_u64(range, 2)), blobs[0]);
    store_u128_put(store_u128_add(t.errors, column_u64(range, 3)), blobs[1]);
    store_u128_put(store_u128_add(t.top_level, column_u64(range, 4)), blobs[2]);
    sqlite3_stmt *const set = s->stmts[STORE_TOTAL_SET];
    (void)sqlite3_bind_int64(set, 1, sqlite3_column_int64(range, 0));
    for (int i = 0; i < 3; i++)
        (void)sqlite3_bind_blob(set, 2 + i, blobs[i], 16, SQLITE_STATIC);
    bind_blob_or_null(set, 5, &s->blob[0]);
    bind_blob_or_null(set, 6, &s->blob[1]);
    *ret_rc = store_step_done(set);
    return store_errno_of(s->db, *ret_rc);
}

static int remove_up_to(struct store *s, int64_t number, int64_t series_id, int64_t part)
{
    sqlite3_stmt *const del = s->stmts[STORE_WINDOW_REMOVE];
    (void)sqlite3_bind_int64(del, 1, number);
    (void)sqlite3_bind_int64(del, 2, series_id);
    (void)sqlite3_bind_int64(del, 3, part);
    return store_step_done(del);
}

static int remove_batch_row(struct store *s, int64_t number)
{
    (void)sqlite3_bind_int64(s->stmts[STORE_DROPS_REMOVE], 1, number);
    (void)sqlite3_bind_int64(s->stmts[STORE_BATCH_REMOVE], 1, number);
    const int rc = store_step_done(s->stmts[STORE_DROPS_REMOVE]);
    return rc == SQLITE_OK ? store_step_done(s->stmts[STORE_BATCH_REMOVE]) : rc;
}

/* One call of store_retain. */
struct removal {
    size_t left;    /* rows it may still remove */
    size_t windows; /* rows of windows it removed */
    int rc;         /* the last result of SQLite; SQLITE_OK when a failure is not its */
};

/* Remove rows of a batch, and the batch once it has none. */
static int remove_from_batch(struct store *s, int64_t number, int64_t end_ns, struct removal *rm)
{
    rm->rc = store_unroll(s, end_ns); /* what goes to the totals must not be in a sum as well */
    if (rm->rc != SQLITE_OK)
        return store_errno_of(s->db, rm->rc);
    sqlite3_stmt *const range = s->stmts[STORE_WINDOW_RANGE];
    (void)sqlite3_bind_int64(range, 1, number);
    (void)sqlite3_bind_int64(range, 2, (int64_t)rm->left);
    int64_t series_id = 0;
    int64_t part = 0;
    int r = 0;
    size_t n = 0;
    while (r == 0 && (rm->rc = sqlite3_step(range)) == SQLITE_ROW) {
        series_id = sqlite3_column_int64(range, 0);
        part = sqlite3_column_int64(range, 1);
        r = add_to_total(s, range, &rm->rc);
        n++;
    }
    (void)sqlite3_reset(range);
    if (r)
        return r;
    if (rm->rc == SQLITE_DONE)
        rm->rc = n ? remove_up_to(s, number, series_id, part) : SQLITE_OK;
    rm->left -= n;
    rm->windows += n;
    if (rm->rc == SQLITE_OK && rm->left > 0) {
        rm->rc = remove_batch_row(s, number);
        rm->left--;
    }
    return store_errno_of(s->db, rm->rc);
}

/* The oldest batch if it is past a bound; *ret_number is 0 when none is. */
static int find_due(struct store *s, int64_t now_ns, int64_t *ret_number, int64_t *ret_end_ns)
{
    *ret_number = 0;
    sqlite3_stmt *const oldest = s->stmts[STORE_BATCH_OLDEST];
    const int rc = sqlite3_step(oldest);
    const int64_t number = rc == SQLITE_ROW ? sqlite3_column_int64(oldest, 0) : 0;
    const int64_t end_ns = rc == SQLITE_ROW ? sqlite3_column_int64(oldest, 2) : 0;
    const int end = sqlite3_reset(oldest);
    *ret_end_ns = end_ns;
    if (rc != SQLITE_ROW)
        return rc == SQLITE_DONE ? SQLITE_OK : end;
    int64_t cutoff_ns;
    if (s->opts.retention_for_ns > 0 &&
        !__builtin_sub_overflow(now_ns, s->opts.retention_for_ns, &cutoff_ns) &&
        end_ns <= cutoff_ns) {
        *ret_number = number;
        return SQLITE_OK;
    }
    bool is_over = false;
    const int got = is_over_bytes(s, &is_over);
    if (is_over)
        *ret_number = number;
    return got;
}

static int remove_due(struct store *s, int64_t now_ns, struct removal *rm)
{
    while (rm->left > 0) {
        int64_t number = 0;
        int64_t end_ns = 0;
        rm->rc = find_due(s, now_ns, &number, &end_ns);
        if (rm->rc != SQLITE_OK)
            return store_errno_of(s->db, rm->rc);
        if (!number)
            return 0;
        const int r = remove_from_batch(s, number, end_ns, rm);
        if (r)
            return r;
    }
    return 0;
}

static int retain_in_transaction(struct store *s, int64_t now_ns, struct removal *rm)
{
    rm->rc = store_step_done(s->stmts[STORE_BEGIN]);
    if (rm->rc != SQLITE_OK)
        return store_errno_of(s->db, rm->rc);
    const int r = remove_due(s, now_ns, rm);
    if (r)
        return r;
    rm->rc = store_commit(s);
    return store_errno_of(s->db, rm->rc);
}

/* A step of at most 2048 pages; the next call goes on. */
static void shrink_file(struct store *s)
{
    int64_t pages = 0;
    int64_t spare = 0;
    if (!s->opts.retention_bytes || get_pages(s, &pages, &spare) != SQLITE_OK || spare == 0 ||
        (uint64_t)(pages * s->page_bytes) <= s->opts.retention_bytes)
        return;
    sqlite3_stmt *const vacuum = s->stmts[STORE_VACUUM];
    while (sqlite3_step(vacuum) == SQLITE_ROW) {
    }
    (void)sqlite3_reset(
        vacuum); /* a failure here costs only space, and the next call tries again */
}

int64_t store_retain(struct store *s, int64_t now_ns, size_t max_rows,
                     struct store_error *ret_error)
{
    int r = store_mend(s, ret_error);
    if (r)
        return r;
    struct removal rm = {.left = max_rows};
    int64_t due = 0;
    int64_t end_ns = 0;
    rm.rc = find_due(s, now_ns, &due, &end_ns);
    r = store_errno_of(s->db, rm.rc);
    if (r == 0 && !due) {
        shrink_file(s);
        return 0;
    }
    if (r == 0)
        r = retain_in_transaction(s, now_ns, &rm);
    if (r == 0) {
        s->counts.rows_removed += rm.windows;
        return (int64_t)(max_rows - rm.left);
    }
    if (rm.rc != SQLITE_OK)
        (void)store_fail_db(ret_error, s->db, rm.rc, s->file, "removing old windows");
    else
        (void)store_fail(ret_error, r, "%s: removing old windows: %s", s->file,
                         strerrordesc_np(-r));
    store_rollback(s);
    if (store_is_corrupt(rm.rc))
        (void)store_replace(s, NULL); /* if that fails, the next write tries again */
    return r;
}

static uint64_t file_bytes(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && st.st_size > 0 ? (uint64_t)st.st_size : 0;
}

void store_get_counts(struct store *s, struct store_counts *ret_counts)
{
    struct store_counts c = s->counts;
    if (s->db) {
        (void)is_over_bytes(s, &c.over_bytes);
        sqlite3_stmt *const oldest = s->stmts[STORE_BATCH_OLDEST];
        if (sqlite3_step(oldest) == SQLITE_ROW)
            c.oldest_start_ns = sqlite3_column_int64(oldest, 1);
        (void)sqlite3_reset(oldest);
        (void)get_number(s->stmts[STORE_BATCH_NEWEST], &c.newest_start_ns);
        c.file_bytes = file_bytes(s->file);
        const char *const wal = sqlite3_filename_wal(sqlite3_db_filename(s->db, "main"));
        if (wal)
            c.file_bytes += file_bytes(wal);
    }
    *ret_counts = c;
}
