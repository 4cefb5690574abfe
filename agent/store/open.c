/* SPDX-License-Identifier: Apache-2.0 */
/*
 * open: the writer's connection: lock, open, check, migrate, prepare; a corrupt file set aside.
 *
 * The order matters. The lock comes first, so that nothing is touched that another agent holds.
 * The version is read before the journal mode is set, so that a newer file is refused unchanged.
 */
#include "store/internal.h"

#include "plat/plat.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* 8 KiB: a row of a WITHOUT ROWID table spills past about a quarter of the page, and a wide
 * sketch has up to 2 KB. Both settings hold only while the file is empty. */
static const char sql_fresh[] = "PRAGMA page_size = 8192; PRAGMA auto_vacuum = INCREMENTAL;";

/* The log is folded into the file at 1000 pages (8 MB) and cut back to 64 MiB if a long reader
 * let it grow. */
static const char sql_settings[] = "PRAGMA synchronous = FULL;"
                                   "PRAGMA wal_autocheckpoint = 1000;"
                                   "PRAGMA journal_size_limit = 67108864;"
                                   "PRAGMA cache_size = -4096;"
                                   "PRAGMA temp_store = MEMORY;"
                                   "PRAGMA trusted_schema = OFF;";

static const char *const sql_of[STORE_STMT_COUNT] = {
#define STORE_STMT_SQL(name, sql) [STORE_##name] = (sql),
    STORE_STMT_MAP(STORE_STMT_SQL)
#undef STORE_STMT_SQL
};

static void close_db(struct store *s)
{
    for (size_t i = 0; i < STORE_STMT_COUNT; i++) {
        (void)sqlite3_finalize(s->stmts[i]);
        s->stmts[i] = NULL;
    }
    (void)sqlite3_close(s->db);
    s->db = NULL;
}

static int check_owner(struct store *s, int *ret_rc, struct store_error *ret_error)
{
    int64_t id = 0;
    int64_t tables = 0;
    int rc = store_db_number(s->db, "PRAGMA application_id", &id);
    if (rc == SQLITE_OK)
        rc = store_db_number(s->db, "SELECT count(*) FROM sqlite_schema", &tables);
    *ret_rc = rc;
    if (rc != SQLITE_OK)
        return store_fail_db(ret_error, s->db, rc, s->file, "opening");
    if (id != STORE_APPLICATION_ID && (id != 0 || tables > 0))
        return store_fail(ret_error, -EEXIST,
                          "%s: a database of another program; move it away, or name another folder "
                          "with --store.path",
                          s->file);
    if (sqlite3_db_readonly(s->db, "main") == 1)
        return store_fail(ret_error, -EROFS,
                          "%s: cannot be written; give the agent's user write access, or name "
                          "another folder with --store.path",
                          s->file);
    return 0;
}

static int set_journal(struct store *s, int *ret_rc, struct store_error *ret_error)
{
    sqlite3_stmt *stmt = NULL;
    int rc = sqlite3_prepare_v2(s->db, "PRAGMA journal_mode = WAL", -1, &stmt, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_step(stmt);
    const bool is_wal =
        rc == SQLITE_ROW && strcmp((const char *)sqlite3_column_text(stmt, 0), "wal") == 0;
    const int end = sqlite3_finalize(stmt);
    *ret_rc = rc == SQLITE_ROW ? end : rc;
    if (*ret_rc != SQLITE_OK)
        return store_fail_db(ret_error, s->db, *ret_rc, s->file, "setting up the log");
    if (!is_wal)
        return store_fail(ret_error, -ENOTSUP,
                          "%s: its file system lacks what a write-ahead log needs (shared memory "
                          "and locks); name a local folder with --store.path",
                          s->file);
    return 0;
}

/* The small tables only: windows may hold gigabytes, and what is wrong there shows when read. */
static int check_tables(struct store *s)
{
    static const char *const checks[] = {"PRAGMA quick_check('meta')",
                                         "PRAGMA quick_check('series')",
                                         "PRAGMA quick_check('batches')"};
    for (size_t i = 0; i < sizeof checks / sizeof *checks; i++) {
        sqlite3_stmt *stmt = NULL;
        int rc = sqlite3_prepare_v2(s->db, checks[i], -1, &stmt, NULL);
        if (rc == SQLITE_OK)
            rc = sqlite3_step(stmt);
        const bool ok =
            rc == SQLITE_ROW && strcmp((const char *)sqlite3_column_text(stmt, 0), "ok") == 0;
        const int end = sqlite3_finalize(stmt);
        if (rc != SQLITE_ROW)
            return rc;
        if (!ok)
            return end == SQLITE_OK ? SQLITE_CORRUPT : end;
    }
    return SQLITE_OK;
}

static int prepare_all(struct store *s)
{
    for (size_t i = 0; i < STORE_STMT_COUNT; i++) {
        const int rc =
            sqlite3_prepare_v3(s->db, sql_of[i], -1, SQLITE_PREPARE_PERSISTENT, &s->stmts[i], NULL);
        if (rc != SQLITE_OK)
            return rc;
    }
    return SQLITE_OK;
}

static int load_state(struct store *s)
{
    int64_t last = 0;
    int64_t series = 0;
    int rc = store_db_number(s->db, "SELECT value FROM meta WHERE key = 'last_number'", &last);
    if (rc == SQLITE_EMPTY)
        rc = SQLITE_CORRUPT;
    if (rc == SQLITE_OK)
        rc = store_db_number(s->db, "SELECT count(*) FROM series", &series);
    if (rc == SQLITE_OK)
        rc = store_db_number(s->db, "PRAGMA page_size", &s->page_bytes);
    if (rc != SQLITE_OK)
        return rc;
    s->last_number = (uint64_t)last;
    s->counts.series = (uint64_t)series;
    return SQLITE_OK;
}

static int set_up(struct store *s)
{
    int rc = sqlite3_exec(s->db, sql_settings, NULL, NULL, NULL);
    if (rc == SQLITE_OK)
        rc = check_tables(s);
    if (rc == SQLITE_OK)
        rc = prepare_all(s);
    if (rc == SQLITE_OK)
        rc = load_state(s);
    return rc;
}

static int refuse_newer(struct store *s, int *ret_rc, struct store_error *ret_error)
{
    /* No step runs: only the version is looked at. */
    int64_t version = 0;
    *ret_rc = store_db_number(s->db, "PRAGMA user_version", &version);
    if (*ret_rc == SQLITE_OK && version <= STORE_SCHEMA_VERSION)
        return 0;
    return store_migrate(s->db, s->file, store_steps, STORE_SCHEMA_VERSION, ret_rc, ret_error);
}

/* What it holds is for its owner and group; SQLite gives the log and the index the same mode. A
 * file that is there is not opened: closing it would let go of the locks of our own readers. */
static void make_file(const char *file)
{
    const int fd = open(file, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0640);
    if (fd >= 0)
        (void)close(fd); /* a failure is SQLite's to name */
}

/* Opens s->file. On failure *ret_rc says whether the file is corrupt. */
static int open_db(struct store *s, int *ret_rc, struct store_error *ret_error)
{
    *ret_rc = SQLITE_OK;
    make_file(s->file);
    const int flags =
        SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;
    int rc = sqlite3_open_v2(s->file, &s->db, flags, STORE_VFS);
    int r = rc == SQLITE_OK ? 0 : store_fail_db(ret_error, s->db, rc, s->file, "opening");
    *ret_rc = rc;
    if (r)
        return r;
    (void)sqlite3_busy_timeout(s->db, STORE_WRITER_BUSY_MS);
    r = check_owner(s, ret_rc, ret_error);
    if (r == 0)
        r = refuse_newer(s, ret_rc, ret_error);
    if (r)
        return r;
    rc = store_checksum_reserve(s->db);
    if (rc == SQLITE_OK)
        rc = sqlite3_exec(s->db, sql_fresh, NULL, NULL, NULL);
    *ret_rc = rc;
    if (rc != SQLITE_OK)
        return store_fail_db(ret_error, s->db, rc, s->file, "opening");
    r = set_journal(s, ret_rc, ret_error);
    if (r == 0)
        r = store_migrate(s->db, s->file, store_steps, STORE_SCHEMA_VERSION, ret_rc, ret_error);
    if (r)
        return r;
    rc = set_up(s);
    *ret_rc = rc;
    return rc == SQLITE_OK ? 0 : store_fail_db(ret_error, s->db, rc, s->file, "opening");
}

/* weir.db and its log keep one another's name, so that sqlite3 can still open what is set aside. */
static int set_aside(const struct store *s, struct store_error *ret_error)
{
    struct tm tm;
    const time_t now = (time_t)(plat_wall_ns() / 1000000000);
    (void)gmtime_r(&now, &tm);
    char stamp[32];
    (void)strftime(stamp, sizeof stamp, "%Y%m%dT%H%M%SZ", &tm);
    char from[4200];
    char to[4200];
    for (int twin = 0; twin < 1000; twin++) {
        char more[8] = "";
        if (twin)
            (void)snprintf(more, sizeof more, ".%d", twin);
        (void)snprintf(to, sizeof to, "%s.corrupt-%s%s", s->file, stamp, more);
        if (access(to, F_OK) != 0)
            break;
    }
    if (rename(s->file, to) != 0) {
        const int err = errno;
        return store_fail(ret_error, -err, "%s: damaged, and cannot be renamed: %s; move it away",
                          s->file, strerrordesc_np(err));
    }
    const size_t to_len = strlen(to);
    (void)snprintf(from, sizeof from, "%s-wal", s->file);
    (void)snprintf(to + to_len, sizeof to - to_len, "-wal");
    (void)rename(from, to); /* there may be none */
    (void)snprintf(from, sizeof from, "%s-shm", s->file);
    (void)unlink(from);
    return 0;
}

/* A failure leaves nothing half open. */
static int open_whole(struct store *s, int *ret_rc, struct store_error *ret_error)
{
    const int r = open_db(s, ret_rc, ret_error);
    if (r)
        close_db(s);
    return r;
}

static int open_or_replace(struct store *s, struct store_error *ret_error)
{
    int rc = SQLITE_OK;
    int r = open_whole(s, &rc, ret_error);
    if (r == 0 || !store_is_corrupt(rc))
        return r;
    r = set_aside(s, ret_error);
    if (r)
        return r;
    s->counts.replaced++;
    return open_whole(s, &rc, ret_error);
}

int store_replace(struct store *s, struct store_error *ret_error)
{
    const uint64_t last = s->last_number;
    int r = 0;
    if (s->db) {
        close_db(s);
        r = set_aside(s, ret_error);
        s->counts.replaced += r == 0;
    }
    if (r == 0)
        r = open_or_replace(s, ret_error);
    atomic_fetch_add(&s->generation, 1);
    if (r || s->last_number >= last)
        return r;
    /* Numbers go on: batches that wait are told from stored ones by them. */
    s->last_number = last;
    sqlite3_stmt *const set = s->stmts[STORE_SET_LAST];
    (void)sqlite3_bind_int64(set, 1, (int64_t)last);
    const int rc = store_step_done(set);
    return rc == SQLITE_OK ? 0 : store_fail_db(ret_error, s->db, rc, s->file, "writing");
}

int store_note(struct store *s, unsigned generation, int code)
{
    if (code == -EUCLEAN)
        atomic_store(&s->damaged, generation + 1);
    return code;
}

int store_mend(struct store *s, struct store_error *ret_error)
{
    if (s->db && atomic_load(&s->damaged) != atomic_load(&s->generation) + 1)
        return 0;
    return store_replace(s, ret_error);
}

static int new_sketches(struct store *s)
{
    const struct weir_sketch_opts o = {.struct_size = sizeof o, .grid = WEIR_GRID_NS};
    if (weir_sketch_new(&o, &s->total) != WEIR_OK)
        return -ENOMEM;
    return 0;
}

static struct store *new_store(const struct store_opts *opts)
{
    struct store *const s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    s->lock_fd = -1;
    s->opts = *opts;
    s->dir = strdup(opts->path);
    const size_t cap = strlen(opts->path) + sizeof "/" STORE_FILE;
    s->file = malloc(cap);
    if (!s->dir || !s->file || new_sketches(s) || store_reserve_keys(s, STORE_KEYS_MIN)) {
        store_close(s);
        return NULL;
    }
    s->opts.path = s->dir;
    (void)snprintf(s->file, cap, "%s/" STORE_FILE, opts->path);
    return s;
}

int store_open(const struct store_opts *opts, struct store **ret_store, bool *ret_replaced,
               struct store_error *ret_error)
{
    struct store *const s = new_store(opts);
    if (!s || store_checksum_init()) {
        store_close(s);
        return store_fail(ret_error, -ENOMEM, "%s: no memory", opts->path);
    }
    int r = store_make_folder(s->dir, ret_error);
    if (r == 0) {
        r = store_lock(s->dir, ret_error);
        s->lock_fd = r < 0 ? -1 : r;
        r = r < 0 ? r : 0;
    }
    if (r == 0)
        r = open_or_replace(s, ret_error);
    if (r) {
        store_close(s);
        return r;
    }
    *ret_store = s;
    *ret_replaced = s->counts.replaced > 0;
    return 0;
}

void store_close(struct store *s)
{
    if (!s)
        return;
    close_db(s);
    if (s->lock_fd >= 0)
        (void)close(s->lock_fd);
    store_buf_done(&s->form);
    store_buf_done(&s->blob[0]);
    store_buf_done(&s->blob[1]);
    store_sums_free(s);
    weir_sketch_free(s->total);
    free(s->keys);
    free(s->dir);
    free(s->file);
    free(s);
}
