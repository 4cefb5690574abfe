/* SPDX-License-Identifier: Apache-2.0 */
/* Checksums of pages: every flipped bit is found, and other programs do not get in their way. */
#include "rows_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char web[] = "service_name=web span_name=GET";

static void path_of(const struct fx_folder *f, char *dst, size_t cap)
{
    (void)snprintf(dst, cap, "%s/" STORE_FILE, f->path);
}

static void write_some(struct store *s, uint64_t from, uint64_t to)
{
    for (uint64_t number = from; number <= to; number++) {
        struct fx_batch *const b = fx_batch_new((int64_t)number);
        char labels[64];
        fx_add(b, web, 3, 1, 1000);
        for (unsigned i = 0; i < 40; i++) {
            (void)snprintf(labels, sizeof labels, "service_name=s%02u", i);
            fx_add(b, labels, 1 + i, i % 2, (int64_t)1000 << (i % 20));
        }
        fx_write(s, b, number);
        fx_batch_free(b);
    }
}

/* A store of some pages, closed: all of it is in weir.db. */
static struct fx_folder store_of_pages(void)
{
    const struct fx_folder f = fx_folder_new();
    struct store *const s = fx_open(&f);
    write_some(s, 1, 10);
    store_close(s);
    return f;
}

static void flip(const char *path, off_t at, unsigned bit)
{
    const int fd = open(path, O_RDWR | O_CLOEXEC);
    T_TRUE(fd >= 0);
    uint8_t byte;
    T_EQ_I64(pread(fd, &byte, 1, at), 1);
    byte ^= (uint8_t)(1U << bit);
    T_EQ_I64(pwrite(fd, &byte, 1, at), 1);
    T_TRUE(close(fd) == 0);
}

/* What walking the whole file through a VFS gives. */
static int walk(const char *path, const char *vfs)
{
    sqlite3 *db = NULL;
    int rc = sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, vfs);
    sqlite3_stmt *stmt = NULL;
    if (rc == SQLITE_OK)
        rc = sqlite3_prepare_v2(db, "PRAGMA integrity_check", -1, &stmt, NULL);
    if (rc == SQLITE_OK && (rc = sqlite3_step(stmt)) == SQLITE_ROW)
        rc = strcmp((const char *)sqlite3_column_text(stmt, 0), "ok") == 0 ? SQLITE_OK
                                                                           : SQLITE_CORRUPT;
    (void)sqlite3_finalize(stmt);
    (void)sqlite3_close(db);
    return rc;
}

TEST(a_flipped_bit_anywhere_in_a_page_is_found_when_the_page_is_read)
{
    const struct fx_folder f = store_of_pages();
    char path[256];
    path_of(&f, path, sizeof path);
    size_t bytes = 0;
    free(t_read_file(path, &bytes));
    T_ERR(walk(path, STORE_VFS), SQLITE_OK);
    T_ERR(walk(path, NULL), SQLITE_OK); /* the form is SQLite's own: any program reads it */
    struct t_rng rng = t_rng(t_seed());
    unsigned unseen = 0;
    for (size_t page = 0; page < bytes / 8192; page++) {
        for (int i = 0; i < 10; i++) {
            const off_t at = (off_t)(page * 8192 + t_below(&rng, 8192));
            const unsigned bit = (unsigned)t_below(&rng, 8);
            flip(path, at, bit);
            if (walk(path, STORE_VFS) != SQLITE_CORRUPT && walk(path, STORE_VFS) != SQLITE_NOTADB)
                T_FAIL("bit %u of byte %lld was not found", bit, (long long)at);
            unseen += walk(path, NULL) == SQLITE_OK;
            flip(path, at, bit);
        }
    }
    T_TRUE(unseen > 0); /* else SQLite's own checks would do */
    T_ERR(walk(path, STORE_VFS), SQLITE_OK);
    fx_folder_free(&f);
}

enum { PART_BYTES = 300, PART_AT = 8192 * 3 + 1000 };

static int read_part(const char *path, sqlite3_int64 at, uint8_t dst[PART_BYTES])
{
    sqlite3 *db = NULL;
    sqlite3_file *file = NULL;
    T_ERR(sqlite3_open_v2(path, &db, SQLITE_OPEN_READONLY, STORE_VFS), SQLITE_OK);
    T_ERR(sqlite3_file_control(db, "main", SQLITE_FCNTL_FILE_POINTER, &file), SQLITE_OK);
    const int rc = file->pMethods->xRead(file, dst, PART_BYTES, at);
    T_ERR(sqlite3_close(db), SQLITE_OK);
    return rc;
}

TEST(a_part_of_a_page_is_checked_too)
{
    const struct fx_folder f = store_of_pages();
    char path[256];
    path_of(&f, path, sizeof path);
    size_t bytes = 0;
    uint8_t *const whole = t_read_file(path, &bytes);
    uint8_t part[PART_BYTES];
    T_ERR(read_part(path, PART_AT, part), SQLITE_OK);
    T_EQ_BYTES(part, sizeof part, whole + PART_AT, sizeof part);
    T_ERR(read_part(path, (sqlite3_int64)bytes - 100, part), SQLITE_IOERR_SHORT_READ);
    flip(path, 8192 * 3 + 5000, 1); /* elsewhere in that page */
    T_ERR(read_part(path, PART_AT, part), SQLITE_CORRUPT);
    free(whole);
    fx_folder_free(&f);
}

TEST(a_page_at_another_pages_place_is_found)
{
    const struct fx_folder f = store_of_pages();
    char path[256];
    path_of(&f, path, sizeof path);
    const int fd = open(path, O_RDWR | O_CLOEXEC);
    T_TRUE(fd >= 0);
    static uint8_t page[8192];
    T_EQ_I64(pread(fd, page, sizeof page, 8192 * 6), 8192);
    T_EQ_I64(pwrite(fd, page, sizeof page, 8192 * 5), 8192);
    T_TRUE(close(fd) == 0);
    T_ERR(walk(path, STORE_VFS), SQLITE_CORRUPT);
    fx_folder_free(&f);
}

/* Any program that opens the store after a crash of ours folds the log into the file. */
TEST(what_another_program_folded_in_is_no_damage)
{
    const struct fx_folder f = fx_folder_new();
    const struct fx_folder copy = fx_folder_new();
    struct store *s = fx_open(&f);
    write_some(s, 1, 10);
    static const char *const names[] = {STORE_FILE, STORE_FILE "-wal"};
    for (size_t i = 0; i < 2; i++) { /* as kill -9 would leave it */
        char from[256];
        char to[256];
        (void)snprintf(from, sizeof from, "%s/%s", f.path, names[i]);
        (void)snprintf(to, sizeof to, "%s/%s", copy.path, names[i]);
        size_t n = 0;
        uint8_t *const bytes = t_read_file(from, &n);
        T_TRUE(bytes && n > 0);
        const int fd = open(to, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        T_EQ_I64(write(fd, bytes, n), (int64_t)n);
        T_TRUE(close(fd) == 0);
        free(bytes);
    }
    store_close(s);
    char path[256];
    path_of(&copy, path, sizeof path);
    T_ERR(walk(path, NULL), SQLITE_OK); /* plain sqlite3 */
    T_TRUE(!fx_exists(&copy, STORE_FILE "-wal"));
    s = fx_open(&copy);
    T_EQ_U64(s->counts.replaced, 0);
    T_EQ_U64(store_last_number(s), 10);
    write_some(s, 11, 20);
    struct fx_view v = {0};
    fx_scan_all(s, &v);
    T_EQ_U64(fx_find(&v, web)->windows, 20);
    fx_view_clear(&v);
    store_close(s);
    T_ERR(walk(path, STORE_VFS), SQLITE_OK);
    fx_folder_free(&copy);
    fx_folder_free(&f);
}

TEST(a_file_without_checksums_of_an_older_weir_is_read_and_written)
{
    const struct fx_folder f = fx_folder_new();
    char path[256];
    path_of(&f, path, sizeof path);
    sqlite3 *db = NULL;
    int rc = SQLITE_OK;
    T_ERR(sqlite3_open(path, &db), SQLITE_OK);
    T_OK(store_migrate(db, path, store_steps, STORE_SCHEMA_VERSION, &rc, NULL));
    T_ERR(sqlite3_close(db), SQLITE_OK);
    struct store *const s = fx_open(&f);
    T_EQ_U64(s->counts.replaced, 0);
    write_some(s, 1, 3);
    struct fx_view v = {0};
    fx_scan_all(s, &v);
    T_EQ_U64(fx_find(&v, web)->windows, 3);
    fx_view_clear(&v);
    store_close(s);
    T_ERR(walk(path, NULL), SQLITE_OK);
    fx_folder_free(&f);
}

TEST(a_header_that_lost_the_mark_of_the_checksums_is_found)
{
    const struct fx_folder f = store_of_pages();
    char path[256];
    path_of(&f, path, sizeof path);
    for (unsigned bit = 0; bit < 8; bit++) {
        flip(path, 20, bit);
        T_ERR(walk(path, STORE_VFS), SQLITE_CORRUPT);
        flip(path, 20, bit);
    }
    T_ERR(walk(path, STORE_VFS), SQLITE_OK);
    fx_folder_free(&f);
}

TEST(damage_found_by_reading_is_mended_by_the_writer_without_a_batch)
{
    const struct fx_folder f = store_of_pages();
    char path[256];
    path_of(&f, path, sizeof path);
    struct store *s = fx_open(&f);
    int64_t page = 0;
    T_ERR(
        store_db_number(s->db, "SELECT rootpage FROM sqlite_schema WHERE name = 'windows'", &page),
        SQLITE_OK);
    store_close(s);
    flip(path, (page - 1) * 8192 + 8000, 3);
    s = fx_open(&f); /* windows are not walked at the start */
    T_EQ_U64(s->counts.replaced, 0);
    T_OK(store_mend(s, NULL)); /* nothing is known yet */
    T_EQ_U64(s->counts.replaced, 0);
    struct store_reader *r = NULL;
    uint64_t last = 0;
    T_OK(store_reader_open(s, &r, NULL));
    T_OK(store_reader_begin(r, UINT64_MAX, &last));
    struct fx_view v = {0};
    const struct query_visitor visitor = fx_visitor(&v);
    T_ERR(store_reader_scan(r, &fx_all, &visitor), -EUCLEAN);
    store_reader_end(r);
    fx_view_clear(&v);
    T_EQ_I64(store_retain(s, FX_T0, 100, NULL), 0); /* upkeep mends first */
    T_EQ_U64(s->counts.replaced, 1);
    T_EQ_U64(store_last_number(s), 10);
    T_OK(store_mend(s, NULL)); /* once */
    T_EQ_U64(s->counts.replaced, 1);
    T_OK(store_reader_begin(r, UINT64_MAX, &last));
    T_EQ_U64(last, 10);
    store_reader_close(r);
    store_close(s);
    T_EQ_U64(fx_count(&f, "weir.db.corrupt-", NULL, 0), 1);
    fx_folder_free(&f);
}

TEST(a_page_that_is_there_in_part_is_found)
{
    const struct fx_folder f = store_of_pages();
    char path[256];
    path_of(&f, path, sizeof path);
    size_t bytes = 0;
    free(t_read_file(path, &bytes));
    T_TRUE(truncate(path, (off_t)bytes - 1) == 0);
    T_ERR(walk(path, STORE_VFS), SQLITE_CORRUPT);
    T_TRUE(truncate(path, (off_t)bytes - 4000) == 0);
    T_ERR(walk(path, STORE_VFS), SQLITE_CORRUPT);
    T_TRUE(truncate(path, (off_t)bytes - 8192) ==
           0); /* SQLite's to find: the header counts pages */
    T_ERR(walk(path, STORE_VFS), SQLITE_CORRUPT);
    fx_folder_free(&f);
}
