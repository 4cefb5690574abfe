/* SPDX-License-Identifier: Apache-2.0 */
/* Opening: folders, locks, versions, damage; and what a killed process leaves behind. */
#include "rows_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static const char web[] = "service_name=web span_name=GET";

static int try_open(const char *path, struct store **ret_store, bool *ret_replaced,
                    struct store_error *ret_error)
{
    const struct store_opts o = {.path = path};
    return store_open(&o, ret_store, ret_replaced, ret_error);
}

static void file_of(const struct fx_folder *f, const char *name, char *dst, size_t cap)
{
    (void)snprintf(dst, cap, "%s/%s", f->path, name);
}

static void put_file(const char *path, const void *bytes, size_t n, off_t at)
{
    const int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    T_TRUE(fd >= 0);
    T_EQ_I64(pwrite(fd, bytes, n, at), (int64_t)n);
    T_TRUE(close(fd) == 0);
}

static void write_one(struct store *s, uint64_t number)
{
    struct fx_batch *const b = fx_batch_new((int64_t)number);
    fx_add(b, web, 1, 0, 1000);
    fx_write(s, b, number);
    fx_batch_free(b);
}

TEST(the_default_folder_follows_the_order_of_the_rule)
{
    const struct fx_folder f = fx_folder_new();
    char sys[256];
    char dst[256];
    file_of(&f, "weir", sys, sizeof sys);
    /* It may not exist yet: it can be made. */
    T_OK(store_default_path_of("/run/a:/run/b", sys, "/x", "/h", dst, sizeof dst));
    T_EQ_STR(dst, "/run/a");
    T_OK(store_default_path_of("", sys, "/x", "/h", dst, sizeof dst));
    T_EQ_STR(dst, sys);
    T_OK(store_default_path_of(NULL, "/nowhere/at/all", "/x", "/h", dst, sizeof dst));
    T_EQ_STR(dst, "/x/weir");
    T_OK(store_default_path_of(NULL, "/nowhere/at/all", "relative", "/h", dst, sizeof dst));
    T_EQ_STR(dst, "/h/.local/state/weir");
    T_ERR(store_default_path_of(NULL, "/nowhere/at/all", NULL, NULL, dst, sizeof dst), -ENOENT);
    T_ERR(store_default_path_of("/run/a", sys, NULL, NULL, dst, 6), -ENAMETOOLONG);
    put_file(sys, "x", 1, 0); /* a file is no folder */
    T_OK(store_default_path_of(NULL, sys, NULL, "/h", dst, sizeof dst));
    T_EQ_STR(dst, "/h/.local/state/weir");
    T_TRUE(setenv("STATE_DIRECTORY", "/run/from-environment", 1) == 0);
    T_OK(store_default_path(dst, sizeof dst));
    T_EQ_STR(dst, "/run/from-environment");
    T_TRUE(unsetenv("STATE_DIRECTORY") == 0);
    fx_folder_free(&f);
}

TEST(a_folder_is_made_with_its_parents)
{
    const struct fx_folder f = fx_folder_new();
    char dir[256];
    file_of(&f, "a/b", dir, sizeof dir);
    struct store *s = NULL;
    bool replaced = true;
    T_OK(try_open(dir, &s, &replaced, NULL));
    T_TRUE(!replaced && fx_exists(&f, "a/b/weir.db") && fx_exists(&f, "a/b/weir.lock"));
    struct stat st;
    (void)snprintf(dir, sizeof dir, "%s/a/b/weir.db", f.path);
    T_TRUE(stat(dir, &st) == 0 && (st.st_mode & 07) == 0); /* not for others to read */
    store_close(s);
    static const char *const gone[] = {"a/b/weir.db", "a/b/weir.lock", "a/b", "a"};
    for (size_t i = 0; i < sizeof gone / sizeof *gone; i++) {
        file_of(&f, gone[i], dir, sizeof dir);
        T_TRUE(remove(dir) == 0);
    }
    fx_folder_free(&f);
}

TEST(a_folder_that_cannot_be_made_is_refused_by_name_with_the_remedy)
{
    const struct fx_folder f = fx_folder_new();
    char file[256];
    char under[300];
    file_of(&f, "file", file, sizeof file);
    put_file(file, "x", 1, 0);
    (void)snprintf(under, sizeof under, "%s/store", file);
    struct store *s = NULL;
    bool replaced;
    struct store_error error = {0};
    T_ERR(try_open(under, &s, &replaced, &error), -ENOTDIR);
    T_EQ_I64(error.code, -ENOTDIR);
    T_TRUE(strstr(error.text, under) && strstr(error.text, "--store.path"));
    T_ERR(try_open(file, &s, &replaced, &error), -ENOTDIR);
    T_ERR(try_open("", &s, &replaced, &error), -ENOENT);
    T_TRUE(!s);
    fx_folder_free(&f);
}

/* As another user, since root may write anywhere. Returns the code and fills text. */
static int open_as_nobody(const char *path, char *text, size_t cap)
{
    int ends[2];
    T_TRUE(pipe(ends) == 0);
    const pid_t pid = fork();
    T_TRUE(pid >= 0);
    if (pid == 0) {
        struct store *s = NULL;
        bool replaced;
        struct store_error error = {0};
        int code = -1;
        if (geteuid() != 0 || (setgid(65534) == 0 && setuid(65534) == 0))
            code = try_open(path, &s, &replaced, &error);
        error.code = code;
        const ssize_t n = write(ends[1], &error, sizeof error);
        _exit(n == (ssize_t)sizeof error ? 0 : 1);
    }
    struct store_error error;
    T_EQ_I64(read(ends[0], &error, sizeof error), (int64_t)sizeof error);
    int status;
    T_TRUE(waitpid(pid, &status, 0) == pid && status == 0);
    (void)close(ends[0]);
    (void)close(ends[1]);
    (void)snprintf(text, cap, "%s", error.text);
    return error.code;
}

TEST(a_folder_or_a_file_that_cannot_be_written_is_refused_by_name_with_the_remedy)
{
    const struct fx_folder f = fx_folder_new();
    char text[512];
    T_TRUE(chmod(f.path, 0555) == 0);
    T_ERR(open_as_nobody(f.path, text, sizeof text), -EACCES);
    T_TRUE(strstr(text, f.path) && strstr(text, "--store.path"));
    T_TRUE(chmod(f.path, 0777) == 0);
    struct store *const s = fx_open(&f);
    write_one(s, 1);
    store_close(s);
    char path[256];
    file_of(&f, "weir.lock", path, sizeof path);
    T_TRUE(chmod(path, 0666) == 0);
    file_of(&f, "weir.db", path, sizeof path);
    T_TRUE(chmod(path, 0444) == 0);
    T_ERR(open_as_nobody(f.path, text, sizeof text), -EROFS);
    T_TRUE(strstr(text, path) && strstr(text, "--store.path"));
    T_TRUE(chmod(f.path, 0700) == 0);
    fx_folder_free(&f);
}

TEST(a_second_agent_is_refused_by_name_while_the_first_runs)
{
    const struct fx_folder f = fx_folder_new();
    struct store *const first = fx_open(&f);
    write_one(first, 1);
    struct store *second = NULL;
    bool replaced;
    struct store_error error = {0};
    T_ERR(try_open(f.path, &second, &replaced, &error), WEIR_EBUSY);
    char want[64];
    (void)snprintf(want, sizeof want, "(pid %ld)", (long)getpid());
    T_TRUE(strstr(error.text, f.path) && strstr(error.text, "weir.lock"));
    T_TRUE(strstr(error.text, want) && strstr(error.text, "--store.path"));
    write_one(first, 2); /* and the first is not disturbed */
    store_close(first);
    T_OK(try_open(f.path, &second, &replaced, &error));
    T_EQ_U64(store_last_number(second), 2);
    store_close(second);
    fx_folder_free(&f);
}

static int64_t number_of(sqlite3 *db, const char *sql)
{
    int64_t v = -1;
    T_ERR(store_db_number(db, sql, &v), SQLITE_OK);
    return v;
}

TEST(an_older_schema_is_migrated_step_by_step)
{
    static const struct store_step steps[] = {
        {"CREATE TABLE t(a INTEGER); INSERT INTO t VALUES(1), (2);"},
        {"ALTER TABLE t ADD COLUMN b INTEGER; UPDATE t SET b = a * 10;"},
    };
    sqlite3 *db = NULL;
    int rc;
    T_ERR(sqlite3_open(":memory:", &db), SQLITE_OK);
    T_EQ_I64(number_of(db, "PRAGMA user_version"), 0);
    T_OK(store_migrate(db, "f", steps, 1, &rc, NULL));
    T_EQ_I64(number_of(db, "PRAGMA user_version"), 1);
    T_ERR(sqlite3_exec(db, "INSERT INTO t VALUES(3)", NULL, NULL, NULL), SQLITE_OK);
    T_OK(store_migrate(db, "f", steps, 2, &rc, NULL));
    T_EQ_I64(number_of(db, "PRAGMA user_version"), 2);
    T_EQ_I64(number_of(db, "SELECT sum(b) FROM t"), 60); /* what was there is kept */
    T_OK(store_migrate(db, "f", steps, 2, &rc, NULL));   /* nothing to do */
    struct store_error error = {0};
    T_ERR(store_migrate(db, "the-file", steps, 1, &rc, &error), WEIR_EVERSION);
    T_TRUE(strstr(error.text, "the-file: schema version 2, this weir knows up to 1"));
    (void)sqlite3_close(db);
}

TEST(a_step_that_fails_changes_nothing)
{
    static const struct store_step steps[] = {
        {"CREATE TABLE t(a INTEGER);"},
        {"INSERT INTO t VALUES(1); INSERT INTO no_such_table VALUES(1);"},
    };
    sqlite3 *db = NULL;
    int rc;
    T_ERR(sqlite3_open(":memory:", &db), SQLITE_OK);
    struct store_error error = {0};
    T_TRUE(store_migrate(db, "f", steps, 2, &rc, &error) < 0);
    T_TRUE(rc == SQLITE_ERROR && strstr(error.text, "no_such_table"));
    T_EQ_I64(number_of(db, "PRAGMA user_version"), 1);
    T_EQ_I64(number_of(db, "SELECT count(*) FROM t"), 0);
    (void)sqlite3_close(db);
}

static void change_file(const struct fx_folder *f, const char *sql)
{
    char path[256];
    file_of(f, "weir.db", path, sizeof path);
    sqlite3 *db = NULL;
    T_ERR(sqlite3_open(path, &db), SQLITE_OK);
    T_ERR(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    (void)sqlite3_close(db);
}

TEST(a_newer_schema_and_anothers_database_are_refused_and_left_as_they_are)
{
    static const struct {
        const char *sql;
        int code;
        const char *says;
    } cases[] = {
        {"PRAGMA application_id = 1464158546; PRAGMA user_version = 99", WEIR_EVERSION,
         "schema version 99"},
        {"PRAGMA user_version = 3; CREATE TABLE theirs(a)", -EEXIST, "another program"},
        {"PRAGMA application_id = 5", -EEXIST, "another program"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct fx_folder f = fx_folder_new();
        change_file(&f, cases[i].sql);
        char path[256];
        file_of(&f, "weir.db", path, sizeof path);
        size_t before_n;
        size_t after_n;
        uint8_t *const before = t_read_file(path, &before_n);
        struct store *s = NULL;
        bool replaced;
        struct store_error error = {0};
        T_ERR(try_open(f.path, &s, &replaced, &error), cases[i].code);
        T_TRUE(strstr(error.text, path) && strstr(error.text, cases[i].says));
        uint8_t *const after = t_read_file(path, &after_n);
        T_EQ_BYTES(after, after_n, before, before_n);
        T_EQ_U64(fx_count(&f, "weir.db.corrupt", NULL, 0), 0);
        free(before);
        free(after);
        fx_folder_free(&f);
    }
}

TEST(a_file_that_is_no_database_is_set_aside_and_replaced)
{
    const struct fx_folder f = fx_folder_new();
    char path[256];
    file_of(&f, "weir.db", path, sizeof path);
    char junk[5000];
    memset(junk, 'j', sizeof junk);
    put_file(path, junk, sizeof junk, 0);
    struct store *s = NULL;
    bool replaced = false;
    T_OK(try_open(f.path, &s, &replaced, NULL));
    T_TRUE(replaced);
    write_one(s, 1);
    struct store_counts c;
    store_get_counts(s, &c);
    T_EQ_U64(c.replaced, 1);
    store_close(s);
    char name[128];
    T_EQ_U64(fx_count(&f, "weir.db.corrupt-", name, sizeof name), 1);
    file_of(&f, name, path, sizeof path);
    size_t n;
    uint8_t *const kept = t_read_file(path, &n);
    T_EQ_BYTES(kept, n, junk, sizeof junk);
    free(kept);
    T_OK(try_open(f.path, &s, &replaced, NULL)); /* and the fresh one is sound */
    T_TRUE(!replaced);
    T_EQ_U64(store_last_number(s), 1);
    store_close(s);
    fx_folder_free(&f);
}

TEST(damage_in_a_small_table_is_found_at_the_start)
{
    const struct fx_folder f = fx_folder_new();
    struct store *s = fx_open(&f);
    const int64_t page = number_of(s->db, "SELECT rootpage FROM sqlite_schema WHERE name = "
                                          "'series'");
    write_one(s, 1);
    const int64_t page_bytes = s->page_bytes;
    store_close(s);
    char path[256];
    file_of(&f, "weir.db", path, sizeof path);
    char junk[64];
    memset(junk, 0xee, sizeof junk);
    put_file(path, junk, sizeof junk, (page - 1) * page_bytes);
    bool replaced = false;
    T_OK(try_open(f.path, &s, &replaced, NULL));
    T_TRUE(replaced);
    T_EQ_U64(store_last_number(s), 0);
    store_close(s);
    T_EQ_U64(fx_count(&f, "weir.db.corrupt-", NULL, 0), 1);
    fx_folder_free(&f);
}

TEST(damage_found_while_writing_replaces_the_file_and_numbers_and_readers_go_on)
{
    const struct fx_folder f = fx_folder_new();
    struct store *s = fx_open(&f);
    const int64_t page = number_of(s->db, "SELECT rootpage FROM sqlite_schema WHERE name = "
                                          "'windows'");
    write_one(s, 1);
    const int64_t page_bytes = s->page_bytes;
    store_close(s);
    char path[256];
    file_of(&f, "weir.db", path, sizeof path);
    char junk[64];
    memset(junk, 0xee, sizeof junk);
    put_file(path, junk, sizeof junk, (page - 1) * page_bytes);
    s = fx_open(&f); /* large tables are not walked at the start */
    struct store_reader *r = NULL;
    T_OK(store_reader_open(s, &r, NULL));
    uint64_t last = 0;
    T_OK(store_reader_begin(r, UINT64_MAX, &last));
    struct fx_view v = {0};
    struct query_visitor visitor = fx_visitor(&v);
    T_ERR(store_reader_scan(r, &fx_all, &visitor), -EUCLEAN);
    store_reader_end(r);
    fx_view_clear(&v);

    write_one(s, 2);
    struct store_counts c;
    store_get_counts(s, &c);
    T_EQ_U64(c.replaced, 1);
    T_EQ_U64(c.series, 1);
    T_EQ_U64(store_last_number(s), 2);
    T_EQ_U64(fx_count(&f, "weir.db.corrupt-", NULL, 0), 1);
    T_OK(store_reader_begin(r, UINT64_MAX, &last)); /* the same reader, on the fresh file */
    T_EQ_U64(last, 2);
    visitor = fx_visitor(&v);
    T_OK(store_reader_scan(r, &fx_all, &visitor));
    T_EQ_U64(fx_find(&v, web)->windows, 1);
    fx_view_clear(&v);
    store_reader_close(r);
    store_close(s);
    fx_folder_free(&f);
}

/* Writes batches of 50 rows until it is killed; says each number once it is committed. */
static void write_for_ever(const char *path, int to)
{
    struct store *s = NULL;
    bool replaced;
    if (try_open(path, &s, &replaced, NULL))
        _exit(1);
    for (uint64_t number = store_last_number(s) + 1;; number++) {
        struct fx_batch *const b = fx_batch_new((int64_t)number);
        char labels[64];
        for (unsigned i = 0; i < 50; i++) {
            (void)snprintf(labels, sizeof labels, "service_name=s%u run=%u", i,
                           (unsigned)(number / 7));
            fx_add(b, labels, 1 + i % 3, i % 2, 1000);
        }
        const struct store_rows rows = fx_rows(b);
        if (store_write_rows(s, &rows, number, NULL) ||
            write(to, &number, sizeof number) != (ssize_t)sizeof number)
            _exit(1);
        fx_batch_free(b);
    }
}

TEST(kill_9_in_the_middle_of_writing_loses_nothing_committed_and_leaves_no_half_batch)
{
    struct t_rng rng = t_rng(t_seed());
    const struct fx_folder f = fx_folder_new();
    uint64_t said = 0;
    for (int round = 0; round < 6; round++) {
        int ends[2];
        T_TRUE(pipe(ends) == 0);
        const pid_t pid = fork();
        T_TRUE(pid >= 0);
        if (pid == 0)
            write_for_ever(f.path, ends[1]);
        (void)close(ends[1]);
        const uint64_t until = said + 3 + t_below(&rng, 10);
        uint64_t number = 0;
        while (number < until)
            T_EQ_I64(read(ends[0], &number, sizeof number), (int64_t)sizeof number);
        (void)usleep((useconds_t)t_below(&rng, 3000)); /* somewhere inside a transaction */
        T_TRUE(kill(pid, SIGKILL) == 0);
        int status;
        T_TRUE(waitpid(pid, &status, 0) == pid && WIFSIGNALED(status));
        while (read(ends[0], &number, sizeof number) == (ssize_t)sizeof number) {
        }
        (void)close(ends[0]);
        said = number;

        struct store *const s = fx_open(&f);
        const uint64_t last = store_last_number(s);
        T_TRUE(last == said || last == said + 1); /* killed between commit and word */
        said = last;
        T_EQ_I64(number_of(s->db, "SELECT count(*) FROM batches"), (int64_t)last);
        T_EQ_I64(number_of(s->db, "SELECT count(*) FROM windows"), (int64_t)last * 50);
        T_EQ_I64(number_of(s->db, "SELECT count(*) FROM windows WHERE series_id NOT IN "
                                  "(SELECT id FROM series)"),
                 0);
        store_close(s);
    }
    fx_folder_free(&f);
}

TEST(a_file_system_without_room_is_waited_out)
{
    const struct fx_folder f = fx_folder_new();
    if (mount("tmpfs", f.path, "tmpfs", 0, "size=600k") != 0) {
        fx_folder_free(&f);
        print_message("skipped: a small file system needs the right to mount\n");
        skip();
    }
    struct store *const s = fx_open(&f);
    write_one(s, 1);
    char path[256];
    file_of(&f, "filler", path, sizeof path);
    const int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    T_TRUE(fd >= 0);
    char block[4096] = {0};
    while (write(fd, block, sizeof block) > 0) {
    }
    (void)close(fd);
    struct fx_batch *const b = fx_batch_new(2);
    char labels[64];
    for (int i = 0; i < 300; i++) {
        (void)snprintf(labels, sizeof labels, "service_name=s%d", i);
        fx_add(b, labels, 3, 1, 1000 + i);
    }
    const struct store_rows rows = fx_rows(b);
    struct store_error error = {0};
    T_ERR(store_write_rows(s, &rows, 2, &error), -ENOSPC);
    T_TRUE(unlink(path) == 0);
    T_OK(store_write_rows(s, &rows, 2, &error));
    struct fx_view v = {0};
    fx_scan_all(s, &v);
    T_EQ_U64(v.count, 301);
    fx_view_clear(&v);
    fx_batch_free(b);
    store_close(s);
    T_TRUE(umount(f.path) == 0);
    fx_folder_free(&f);
}
