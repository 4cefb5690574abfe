/* SPDX-License-Identifier: Apache-2.0 */
/* Retention: the oldest windows go, running totals stay. */
#include "rows_fixture.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char web[] = "service_name=web span_name=GET";
static const char db[] = "service_name=db span_name=SELECT";

static struct store *open_with(const struct fx_folder *f, int64_t for_ns, uint64_t bytes)
{
    const struct store_opts o = {
        .path = f->path, .retention_for_ns = for_ns, .retention_bytes = bytes};
    struct store *s = NULL;
    bool replaced;
    struct store_error error = {0};
    if (store_open(&o, &s, &replaced, &error))
        T_FAIL("%s", error.text);
    return s;
}

static void write_pair(struct store *s, uint64_t number)
{
    struct fx_batch *const b = fx_batch_new((int64_t)number - 1);
    b->info.counts.dropped[WEIR_DROP_LATE] = 1;
    fx_add(b, web, 3, 1, 1000000 * (int64_t)number);
    if (number % 2)
        fx_add(b, db, 1, 0, 50);
    fx_write(s, b, number);
    fx_batch_free(b);
}

static int64_t number_of(struct store *s, const char *sql)
{
    int64_t v = -1;
    T_ERR(store_db_number(s->db, sql, &v), SQLITE_OK);
    return v;
}

TEST(running_totals_do_not_change_while_windows_go_a_few_rows_at_a_time)
{
    const struct fx_folder f = fx_folder_new();
    struct store *s = open_with(&f, 100 * FX_SECOND, 0);
    for (uint64_t i = 1; i <= 30; i++)
        write_pair(s, i);
    struct fx_view before = {0};
    fx_scan_all(s, &before);
    const struct fx_seen *const was = fx_find(&before, web);
    T_EQ_U64(fx_running(was), 30 * 4 * WEIR_WEIGHT_ONE);

    /* At T0 + 300 s all windows have ended; those that ended by T0 + 200 s are past 100 s. */
    const int64_t now = FX_T0 + 300 * FX_SECOND;
    struct fx_view v = {0};
    int64_t removed = 0;
    for (;;) {
        const int64_t n = store_retain(s, now, 2, NULL);
        T_TRUE(n >= 0 && n <= 2);
        removed += n;
        fx_scan_all(s, &v);
        const struct fx_seen *const is = fx_find(&v, web);
        T_EQ_U64(fx_running(is), fx_running(was));
        T_EQ_U64(is->base_errors.lo + is->errors, 30 * WEIR_WEIGHT_ONE);
        T_EQ_I64(is->created_ns, FX_T0);
        T_TRUE(fx_same_sketch(is->ok, was->ok));
        T_TRUE(fx_same_sketch(is->error, was->error));
        T_EQ_U64(fx_running(fx_find(&v, db)), 15 * WEIR_WEIGHT_ONE);
        if (!n)
            break;
    }
    T_EQ_I64(removed, 20 + 30); /* 20 batches, 20 + 10 rows in them */
    T_EQ_U64(fx_find(&v, web)->windows, 10);
    T_EQ_U64(fx_find(&v, web)->base_hits.lo, 20 * 4 * WEIR_WEIGHT_ONE);
    T_EQ_I64(number_of(s, "SELECT count(*) FROM batches"), 10);
    T_EQ_I64(number_of(s, "SELECT count(*) FROM drops"), 10);
    struct store_counts c;
    store_get_counts(s, &c);
    T_EQ_U64(c.rows_removed, 30);
    T_EQ_U64(c.totals_failed, 0);
    T_EQ_I64(c.oldest_start_ns, FX_T0 + 200 * FX_SECOND);
    T_EQ_I64(c.newest_start_ns, FX_T0 + 290 * FX_SECOND);

    store_close(s);
    s = open_with(&f, 100 * FX_SECOND, 0); /* totals are in the file */
    fx_scan_all(s, &v);
    T_EQ_U64(fx_running(fx_find(&v, web)), fx_running(was));
    fx_view_clear(&v);
    fx_view_clear(&before);
    store_close(s);
    fx_folder_free(&f);
}

TEST(a_window_goes_when_its_end_is_as_old_as_the_retention_and_not_before)
{
    const struct fx_folder f = fx_folder_new();
    struct store *const s = open_with(&f, 100 * FX_SECOND, 0);
    write_pair(s, 1);
    const int64_t due = FX_T0 + 110 * FX_SECOND;
    T_EQ_I64(store_retain(s, due - 1, 100, NULL), 0);
    T_EQ_I64(store_retain(s, due, 100, NULL), 3);
    T_EQ_I64(store_retain(s, due, 100, NULL), 0);
    store_close(s);
    fx_folder_free(&f);
}

TEST(no_bounds_remove_nothing)
{
    const struct fx_folder f = fx_folder_new();
    struct store *const s = open_with(&f, 0, 0);
    write_pair(s, 1);
    T_EQ_I64(store_retain(s, INT64_MAX, 100, NULL), 0);
    store_close(s);
    fx_folder_free(&f);
}

TEST(totals_past_64_bits_stay_exact)
{
    const struct fx_folder f = fx_folder_new();
    struct store *const s = open_with(&f, FX_SECOND, 0);
    for (uint64_t i = 1; i <= 3; i++) {
        struct fx_batch *const b = fx_batch_new(0);
        fx_add(b, web, 0, 0, 0);
        b->rows[0].row.hits = UINT64_MAX;
        fx_write(s, b, i);
        fx_batch_free(b);
    }
    T_EQ_I64(store_retain(s, INT64_MAX, 100, NULL), 6);
    struct fx_view v = {0};
    fx_scan_all(s, &v);
    const struct fx_seen *const is = fx_find(&v, web);
    T_EQ_U64(is->base_hits.hi, 2);
    T_EQ_U64(is->base_hits.lo, UINT64_MAX - 2);
    T_EQ_U64(is->windows, 0);
    fx_view_clear(&v);
    store_close(s);
    fx_folder_free(&f);
}

TEST(a_total_that_does_not_decode_is_counted_and_the_counters_still_add_up)
{
    const struct fx_folder f = fx_folder_new();
    struct store *const s = open_with(&f, FX_SECOND, 0);
    write_pair(s, 1);
    T_ERR(sqlite3_exec(s->db, "UPDATE windows SET ok = x'ff00ff'", NULL, NULL, NULL), SQLITE_OK);
    T_EQ_I64(store_retain(s, INT64_MAX, 100, NULL), 3);
    struct store_counts c;
    store_get_counts(s, &c);
    T_EQ_U64(c.totals_failed, 2);
    struct fx_view v = {0};
    fx_scan_all(s, &v);
    T_EQ_U64(fx_running(fx_find(&v, web)), 4 * WEIR_WEIGHT_ONE);
    T_EQ_U64(weir_sketch_weight(fx_find(&v, web)->error), WEIR_WEIGHT_ONE);
    fx_view_clear(&v);
    store_close(s);
    fx_folder_free(&f);
}

TEST(past_the_bound_by_bytes_the_oldest_windows_go_and_the_file_shrinks)
{
    const struct fx_folder f = fx_folder_new();
    struct store *s = open_with(&f, 0, 0);
    char labels[64];
    for (uint64_t i = 1; i <= 60; i++) {
        struct fx_batch *const b = fx_batch_new((int64_t)i);
        for (int j = 0; j < 300; j++) {
            (void)snprintf(labels, sizeof labels, "service_name=s%d", j);
            fx_add(b, labels, 2, 1, 1000 + j * 100000);
        }
        fx_write(s, b, i);
        fx_batch_free(b);
    }
    const int64_t whole = number_of(s, "PRAGMA page_count") * s->page_bytes;
    store_close(s);
    const uint64_t bound = (uint64_t)whole / 2;
    s = open_with(&f, 0, bound);
    int64_t n;
    while ((n = store_retain(s, FX_T0, 500, NULL)) > 0) {
    }
    T_EQ_I64(n, 0);
    for (int i = 0; i < 20; i++) /* pages are given back in steps */
        T_EQ_I64(store_retain(s, FX_T0, 500, NULL), 0);
    T_TRUE((uint64_t)(number_of(s, "PRAGMA page_count") * s->page_bytes) <= bound);
    const int64_t oldest = number_of(s, "SELECT min(number) FROM batches");
    const int64_t held = number_of(s, "SELECT count(*) FROM batches");
    T_TRUE(held > 0 && held < 60);
    T_EQ_I64(oldest, 60 - held + 1);
    struct fx_view v = {.only = "s299"};
    fx_scan_all(s, &v);
    T_EQ_U64(fx_running(&v.seen[0]), 60 * 3 * WEIR_WEIGHT_ONE);
    fx_view_clear(&v);
    store_close(s);
    fx_folder_free(&f);
}

TEST(a_failed_step_of_retention_changes_nothing)
{
    const struct fx_folder f = fx_folder_new();
    struct store *const s = open_with(&f, FX_SECOND, 0);
    write_pair(s, 1);
    sqlite3 *other = NULL;
    T_ERR(sqlite3_open(s->file, &other), SQLITE_OK);
    T_ERR(sqlite3_exec(other, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
    (void)sqlite3_busy_timeout(s->db, 20);
    struct store_error error = {0};
    T_EQ_I64(store_retain(s, INT64_MAX, 100, &error), -EBUSY);
    T_TRUE(strstr(error.text, f.path));
    T_ERR(sqlite3_exec(other, "COMMIT", NULL, NULL, NULL), SQLITE_OK);
    (void)sqlite3_close(other);
    struct fx_view v = {0};
    fx_scan_all(s, &v);
    T_EQ_U64(fx_find(&v, web)->windows, 1);
    T_EQ_U64(fx_find(&v, web)->base_hits.lo, 0);
    T_EQ_I64(store_retain(s, INT64_MAX, 100, &error), 3);
    fx_view_clear(&v);
    store_close(s);
    fx_folder_free(&f);
}
