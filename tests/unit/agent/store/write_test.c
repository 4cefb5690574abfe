/* SPDX-License-Identifier: Apache-2.0 */
/* Writing and reading: what goes in comes out, once. */
#include "rows_fixture.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char web[] = "service_name=web span_name=GET";
static const char db[] = "service_name=db span_name=SELECT";

TEST(rows_come_back_as_they_were_written)
{
    const struct fx_folder f = fx_folder_new();
    struct store *const s = fx_open(&f);
    struct fx_batch *const b = fx_batch_new(3);
    fx_add(b, web, 7, 2, 1500000);
    fx_add(b, db, 1, 0, 90);
    fx_write(s, b, 1);

    struct fx_view v = {0};
    fx_scan_all(s, &v);
    T_EQ_U64(v.count, 2);
    const struct fx_seen *const n = fx_find(&v, web);
    T_TRUE(n);
    T_TRUE(n->id >= 1 && n->id < STORE_SERIES_ID_END);
    T_EQ_U64(n->hits, 9 * WEIR_WEIGHT_ONE);
    T_EQ_U64(n->errors, 2 * WEIR_WEIGHT_ONE);
    T_EQ_U64(n->top_level, 7 * WEIR_WEIGHT_ONE);
    T_EQ_U64(n->windows, 1);
    T_EQ_I64(n->last_start_ns, b->info.start_ns);
    T_EQ_I64(n->last_end_ns, b->info.start_ns + 10 * FX_SECOND);
    T_EQ_U64(n->bases, 1);
    T_EQ_I64(n->created_ns, b->info.start_ns);
    T_EQ_U64(n->base_hits.lo, 0);
    T_TRUE(fx_same_sketch(n->ok, b->rows[0].ok));
    T_TRUE(fx_same_sketch(n->error, b->rows[0].error));
    T_EQ_U64(weir_sketch_weight(fx_find(&v, db)->error), 0);
    fx_view_clear(&v);
    fx_batch_free(b);
    store_close(s);
    fx_folder_free(&f);
}

TEST(values_of_all_64_bits_come_back)
{
    const struct fx_folder f = fx_folder_new();
    struct store *const s = fx_open(&f);
    struct fx_batch *const b = fx_batch_new(0);
    fx_add(b, web, 0, 0, 0);
    b->rows[0].row.hits = UINT64_MAX;
    b->rows[0].row.errors = UINT64_C(1) << 63;
    b->info.counts.received = UINT64_MAX - 1;
    fx_write(s, b, 1);
    struct fx_view v = {0};
    fx_scan_all(s, &v);
    T_EQ_U64(fx_find(&v, web)->hits, UINT64_MAX);
    T_EQ_U64(fx_find(&v, web)->errors, UINT64_C(1) << 63);
    struct store_recent recent;
    T_EQ_I64(store_get_recent(s, INT64_MIN, &recent, 1), 1);
    T_EQ_U64(recent.info.counts.received, UINT64_MAX - 1);
    fx_view_clear(&v);
    fx_batch_free(b);
    store_close(s);
    fx_folder_free(&f);
}

TEST(batches_of_one_window_and_equal_labels_in_one_batch_add_up)
{
    const struct fx_folder f = fx_folder_new();
    struct store *const s = fx_open(&f);
    struct fx_batch *const b = fx_batch_new(0);
    fx_add(b, web, 1, 0, 1000);
    fx_add(b, db, 5, 0, 1000);
    fx_add(b, web, 2, 1, 1000); /* two keys may differ where their labels do not */
    fx_write(s, b, 1);
    fx_write(s, b, 2);
    struct fx_view v = {0};
    fx_scan_all(s, &v);
    T_EQ_U64(v.count, 2);
    T_EQ_U64(fx_find(&v, web)->hits, 2 * 4 * WEIR_WEIGHT_ONE);
    T_EQ_U64(fx_find(&v, web)->errors, 2 * WEIR_WEIGHT_ONE);
    T_EQ_U64(fx_find(&v, web)->windows, 4);
    T_EQ_U64(fx_find(&v, db)->hits, 10 * WEIR_WEIGHT_ONE);
    struct store_counts c;
    store_get_counts(s, &c);
    T_EQ_U64(c.series, 2);
    T_EQ_U64(c.windows_written, 6);
    fx_view_clear(&v);
    fx_batch_free(b);
    store_close(s);
    fx_folder_free(&f);
}

static unsigned windows_in(struct store *s, int64_t after_ns, int64_t until_ns)
{
    struct store_reader *r = NULL;
    T_OK(store_reader_open(s, &r, NULL));
    uint64_t last;
    T_OK(store_reader_begin(r, UINT64_MAX, &last));
    struct fx_view v = {0};
    const struct query_visitor visitor = fx_visitor(&v);
    const struct query_select select = {.after_ns = after_ns, .until_ns = until_ns};
    T_OK(store_reader_scan(r, &select, &visitor));
    const unsigned n = v.count ? v.seen[0].windows : 0;
    T_EQ_U64(v.seen[0].bases, 0); /* no totals asked for */
    fx_view_clear(&v);
    store_reader_close(r);
    return n;
}

TEST(a_range_is_open_on_the_left_and_closed_on_the_right_at_window_ends)
{
    const struct fx_folder f = fx_folder_new();
    struct store *const s = fx_open(&f);
    for (int i = 0; i < 3; i++) {
        struct fx_batch *const b = fx_batch_new(i);
        fx_add(b, web, 1, 0, 1000);
        fx_write(s, b, (uint64_t)i + 1);
        fx_batch_free(b);
    }
    const int64_t end = FX_T0 + 10 * FX_SECOND; /* of the first */
    T_EQ_U64(windows_in(s, end, end + 20 * FX_SECOND), 2);
    T_EQ_U64(windows_in(s, end - 1, end + 20 * FX_SECOND), 3);
    T_EQ_U64(windows_in(s, end - 1, end + 20 * FX_SECOND - 1), 2);
    T_EQ_U64(windows_in(s, end - 1, end), 1);
    T_EQ_U64(windows_in(s, end, end), 0);
    store_close(s);
    fx_folder_free(&f);
}

TEST(numbers_go_on_after_a_restart_and_only_upwards)
{
    const struct fx_folder f = fx_folder_new();
    struct store *s = fx_open(&f);
    T_EQ_U64(store_last_number(s), 0);
    struct fx_batch *const b = fx_batch_new(0);
    fx_add(b, web, 1, 0, 1000);
    fx_write(s, b, 41);
    store_close(s);
    s = fx_open(&f);
    T_EQ_U64(store_last_number(s), 41);
    const struct store_rows rows = fx_rows(b);
    struct store_error error = {0};
    T_ERR(store_write_rows(s, &rows, 41, &error), -EEXIST);
    T_ERR(store_write_rows(s, &rows, 7, &error), -EEXIST);
    T_TRUE(strstr(error.text, "number 7 is not above 41"));
    T_ERR(store_write_rows(s, &rows, UINT64_MAX, &error), -EEXIST);
    fx_write(s, b, 42);
    struct fx_view v = {0};
    fx_scan_all(s, &v);
    T_EQ_U64(v.count, 1); /* the series is found again */
    T_EQ_U64(fx_find(&v, web)->windows, 2);
    fx_view_clear(&v);
    fx_batch_free(b);
    store_close(s);
    fx_folder_free(&f);
}

TEST(a_correction_moves_the_beginning_of_its_series_back)
{
    const struct fx_folder f = fx_folder_new();
    struct store *const s = fx_open(&f);
    for (int i = 0; i < 3; i++) {
        static const int64_t at[] = {5, 2, 9};
        struct fx_batch *const b = fx_batch_new(at[i]);
        fx_add(b, web, 1, 0, 1000);
        fx_write(s, b, (uint64_t)i + 1);
        fx_batch_free(b);
    }
    struct fx_view v = {0};
    fx_scan_all(s, &v);
    T_EQ_I64(fx_find(&v, web)->created_ns, FX_T0 + 20 * FX_SECOND);
    fx_view_clear(&v);
    store_close(s);
    fx_folder_free(&f);
}

TEST(the_counts_of_a_window_are_kept_with_its_drops)
{
    const struct fx_folder f = fx_folder_new();
    struct store *const s = fx_open(&f);
    for (int i = 0; i < 4; i++) {
        struct fx_batch *const b = fx_batch_new(i);
        b->info.shard = 3;
        b->info.flags = WEIR_BATCH_EARLY;
        b->info.counts = (struct weir_window_counts){.received = 100,
                                                     .aggregated = 90,
                                                     .ineligible = 3,
                                                     .partial = 2,
                                                     .admitted_weight = 11,
                                                     .rows_weight = 12,
                                                     .sketch_weight = 13,
                                                     .late = 4,
                                                     .future = 5,
                                                     .overflow = 6};
        b->info.counts.dropped[WEIR_DROP_LATE] = (uint64_t)i;
        b->info.counts.dropped[WEIR_DROP_CLEARED] = 5;
        fx_write(s, b, (uint64_t)i + 1); /* counts without rows are a batch too */
        fx_batch_free(b);
    }
    struct store_recent recent[8];
    T_EQ_I64(store_get_recent(s, FX_T0 + 10 * FX_SECOND, recent, 8), 3);
    T_EQ_I64(store_get_recent(s, FX_T0 + 10 * FX_SECOND, recent, 2), 2);
    T_EQ_U64(recent[0].number, 4);
    T_EQ_U64(recent[1].number, 3);
    const struct weir_batch_info *const info = &recent[0].info;
    T_EQ_I64(info->start_ns, FX_T0 + 30 * FX_SECOND);
    T_EQ_I64(info->for_ns, 10 * FX_SECOND);
    T_EQ_U64(info->shard, 3);
    T_EQ_U64(info->flags, WEIR_BATCH_EARLY);
    T_EQ_U64(info->rows, 0);
    const struct weir_window_counts *const c = &info->counts;
    const uint64_t got[] = {c->received,        c->aggregated,  c->ineligible,    c->partial,
                            c->admitted_weight, c->rows_weight, c->sketch_weight, c->late,
                            c->future,          c->overflow};
    const uint64_t want[] = {100, 90, 3, 2, 11, 12, 13, 4, 5, 6};
    for (size_t i = 0; i < sizeof want / sizeof *want; i++)
        T_EQ_U64(got[i], want[i]);
    T_EQ_U64(c->dropped[WEIR_DROP_LATE], 3);
    T_EQ_U64(c->dropped[WEIR_DROP_CLEARED], 5);
    T_EQ_U64(c->dropped[WEIR_DROP_MEMORY], 0);
    store_close(s);
    fx_folder_free(&f);
}

TEST(a_reader_sees_the_store_as_it_was_when_it_began)
{
    const struct fx_folder f = fx_folder_new();
    struct store *const s = fx_open(&f);
    struct fx_batch *const b = fx_batch_new(0);
    fx_add(b, web, 1, 0, 1000);
    fx_write(s, b, 1);
    struct store_reader *r = NULL;
    T_OK(store_reader_open(s, &r, NULL));
    uint64_t last = 0;
    T_OK(store_reader_begin(r, UINT64_MAX, &last));
    T_EQ_U64(last, 1);
    fx_write(s, b, 2);
    struct fx_view v = {0};
    struct query_visitor visitor = fx_visitor(&v);
    T_OK(store_reader_scan(r, &fx_all, &visitor));
    T_EQ_U64(fx_find(&v, web)->windows, 1);
    const uint64_t id = fx_find(&v, web)->id;
    store_reader_end(r);
    T_OK(store_reader_begin(r, UINT64_MAX, &last));
    T_EQ_U64(last, 2);
    fx_view_clear(&v);
    visitor = fx_visitor(&v);
    T_OK(store_reader_scan(r, &fx_all, &visitor));
    T_EQ_U64(fx_find(&v, web)->windows, 2);
    T_EQ_U64(fx_find(&v, web)->id, id);
    fx_view_clear(&v);
    store_reader_close(r);
    fx_batch_free(b);
    store_close(s);
    fx_folder_free(&f);
}

TEST(batches_above_the_readers_number_are_hidden_with_their_series)
{
    const struct fx_folder f = fx_folder_new();
    struct store *const s = fx_open(&f);
    for (int i = 0; i < 3; i++) {
        struct fx_batch *const b = fx_batch_new(i);
        fx_add(b, web, 1, 0, 1000);
        if (i == 2)
            fx_add(b, db, 1, 0, 1000);
        fx_write(s, b, (uint64_t)i + 1);
        fx_batch_free(b);
    }
    struct store_reader *r = NULL;
    T_OK(store_reader_open(s, &r, NULL));
    uint64_t last = 0;
    T_OK(store_reader_begin(r, 2, &last));
    T_EQ_U64(last, 3);
    struct fx_view v = {0};
    const struct query_visitor visitor = fx_visitor(&v);
    T_OK(store_reader_scan(r, &fx_all, &visitor));
    T_EQ_U64(v.asked, 1);
    T_EQ_U64(fx_find(&v, web)->windows, 2);
    fx_view_clear(&v);
    store_reader_close(r);
    store_close(s);
    fx_folder_free(&f);
}

TEST(a_scan_of_counts_only_leaves_the_sketches_out)
{
    const struct fx_folder f = fx_folder_new();
    struct store *const s = fx_open(&f);
    struct fx_batch *const b = fx_batch_new(0);
    fx_add(b, web, 3, 1, 1000);
    fx_write(s, b, 1);
    struct store_reader *r = NULL;
    T_OK(store_reader_open(s, &r, NULL));
    uint64_t last;
    T_OK(store_reader_begin(r, UINT64_MAX, &last));
    struct fx_view v = {0};
    const struct query_visitor visitor = fx_visitor(&v);
    struct query_select select = fx_all;
    select.counts_only = true;
    T_OK(store_reader_scan(r, &select, &visitor));
    T_EQ_U64(v.seen[0].hits, 4 * WEIR_WEIGHT_ONE);
    T_EQ_U64(v.seen[0].errors, WEIR_WEIGHT_ONE);
    T_EQ_U64(weir_sketch_weight(v.seen[0].ok), 0);
    fx_view_clear(&v);
    store_reader_close(r);
    fx_batch_free(b);
    store_close(s);
    fx_folder_free(&f);
}

TEST(a_sketch_wider_than_the_first_try_is_stored_whole)
{
    const struct fx_folder f = fx_folder_new();
    struct store *const s = fx_open(&f);
    struct fx_batch *const b = fx_batch_new(0);
    fx_add(b, web, 1, 0, 1);
    for (double ns = 1; ns < 1e18; ns *= 1.02)
        T_OK(weir_sketch_add_ns(b->rows[0].ok, (int64_t)ns, WEIR_WEIGHT_ONE * 1000000 + 1));
    T_TRUE(weir_sketch_encoded_bytes(b->rows[0].ok) > 4096);
    fx_write(s, b, 1);
    struct fx_view v = {0};
    fx_scan_all(s, &v);
    T_TRUE(fx_same_sketch(v.seen[0].ok, b->rows[0].ok));
    fx_view_clear(&v);
    fx_batch_free(b);
    store_close(s);
    fx_folder_free(&f);
}

TEST(what_a_callback_returns_ends_the_scan)
{
    const struct fx_folder f = fx_folder_new();
    struct store *const s = fx_open(&f);
    struct fx_batch *const b = fx_batch_new(0);
    fx_add(b, web, 1, 0, 1000);
    for (uint64_t i = 1; i <= 5; i++)
        fx_write(s, b, i);
    struct store_reader *r = NULL;
    T_OK(store_reader_open(s, &r, NULL));
    uint64_t last;
    T_OK(store_reader_begin(r, UINT64_MAX, &last));
    struct fx_view v = {.fail_after = 2};
    const struct query_visitor visitor = fx_visitor(&v);
    T_ERR(store_reader_scan(r, &fx_all, &visitor), -ECANCELED);
    T_EQ_U64(v.seen[0].windows, 2);
    fx_view_clear(&v);
    store_reader_close(r);
    fx_batch_free(b);
    store_close(s);
    fx_folder_free(&f);
}

/* Many matching (merged) or few (sought): both must show what a plain sum says. */
TEST(scans_of_many_and_of_few_series_equal_a_naive_model)
{
    enum { SERIES = 200, BATCHES = 12 };
    struct t_rng rng = t_rng(t_seed());
    const struct fx_folder f = fx_folder_new();
    struct store *const s = fx_open(&f);
    static uint64_t hits[SERIES];
    static unsigned windows[SERIES];
    memset(hits, 0, sizeof hits);
    memset(windows, 0, sizeof windows);
    char labels[64];
    for (int i = 0; i < BATCHES; i++) {
        struct fx_batch *const b = fx_batch_new((int64_t)t_below(&rng, 6));
        for (int j = 0; j < SERIES; j++) {
            const size_t n = t_below(&rng, SERIES);
            const unsigned count = 1 + (unsigned)t_below(&rng, 3);
            (void)snprintf(labels, sizeof labels, "service_name=s%03zu-", n);
            fx_add(b, labels, count, 0, 1000);
            hits[n] += count * WEIR_WEIGHT_ONE;
            windows[n]++;
        }
        fx_write(s, b, (uint64_t)i + 1);
        fx_batch_free(b);
    }
    static const char *const only[] = {NULL, "s007-", "s1", "9-", "none"};
    for (size_t i = 0; i < sizeof only / sizeof *only; i++) {
        struct fx_view v = {.only = only[i]};
        fx_scan_all(s, &v);
        for (size_t n = 0; n < SERIES; n++) {
            (void)snprintf(labels, sizeof labels, "service_name=s%03zu-", n);
            const struct fx_seen *const seen = fx_find(&v, labels);
            T_TRUE(!seen == (!windows[n] || (only[i] && !strstr(labels, only[i]))));
            if (!seen)
                continue;
            T_EQ_U64(seen->hits, hits[n]);
            T_EQ_U64(seen->windows, windows[n]);
            T_EQ_U64(weir_sketch_weight(seen->ok), hits[n]);
        }
        fx_view_clear(&v);
    }
    store_close(s);
    fx_folder_free(&f);
}

TEST(a_full_disk_refuses_a_batch_whole_and_takes_it_later)
{
    const struct fx_folder f = fx_folder_new();
    struct store *const s = fx_open(&f);
    struct fx_batch *const b = fx_batch_new(0);
    char labels[64];
    for (int i = 0; i < 2000; i++) {
        (void)snprintf(labels, sizeof labels, "service_name=s%d", i);
        fx_add(b, labels, 3, 1, 1000 + i);
    }
    struct fx_batch *const small = fx_batch_new(1);
    fx_add(small, web, 1, 0, 1000);
    fx_write(s, small, 1);
    T_ERR(sqlite3_exec(s->db, "PRAGMA max_page_count = 20", NULL, NULL, NULL), SQLITE_OK);
    const struct store_rows rows = fx_rows(b);
    struct store_error error = {0};
    for (int attempt = 0; attempt < 3; attempt++) {
        T_ERR(store_write_rows(s, &rows, 2, &error), -ENOSPC);
        T_TRUE(strstr(error.text, f.path) && strstr(error.text, "free disk space"));
        T_EQ_U64(store_last_number(s), 1);
    }
    struct fx_view v = {0};
    fx_scan_all(s, &v);
    T_EQ_U64(v.count, 1); /* no series of the refused batch either */
    T_ERR(sqlite3_exec(s->db, "PRAGMA max_page_count = 100000", NULL, NULL, NULL), SQLITE_OK);
    fx_write(s, b, 2);
    fx_scan_all(s, &v);
    T_EQ_U64(v.count, 2001);
    T_EQ_U64(fx_find(&v, "service_name=s1999")->hits, 4 * WEIR_WEIGHT_ONE);
    struct store_counts c;
    store_get_counts(s, &c);
    T_EQ_U64(c.series, 2001);
    fx_view_clear(&v);
    fx_batch_free(small);
    fx_batch_free(b);
    store_close(s);
    fx_folder_free(&f);
}

static size_t long_labels(const void *ctx, size_t row, struct weir_label *labels, size_t cap)
{
    const struct weir_bytes *const values = ctx;
    T_TRUE(cap > 0);
    labels[0] = (struct weir_label){{"n", 1}, values[row]};
    return 1;
}

static void no_row(const void *ctx, size_t row, struct weir_row *ret_row)
{
    (void)ctx;
    (void)row;
    *ret_row = (struct weir_row){0};
}

TEST(a_batch_with_a_row_that_cannot_be_stored_is_refused_whole)
{
    const struct fx_folder f = fx_folder_new();
    struct store *const s = fx_open(&f);
    char *const text = calloc(1, STORE_LABELS_BYTES_MAX + 1);
    T_TRUE(text);
    const struct weir_bytes values[] = {{"good", 4}, {text, STORE_LABELS_BYTES_MAX + 1}};
    const struct store_rows rows = {
        .ctx = values, .info = {.rows = 2}, .labels = long_labels, .row = no_row};
    struct store_error error = {0};
    T_ERR(store_write_rows(s, &rows, 1, &error), -E2BIG);
    T_TRUE(strstr(error.text, f.path));
    T_EQ_I64(sqlite3_get_autocommit(s->db), 1); /* no transaction stays open */
    struct fx_view v = {0};
    fx_scan_all(s, &v);
    T_EQ_U64(v.count, 0);
    struct fx_batch *const b = fx_batch_new(0);
    fx_add(b, web, 1, 0, 1000);
    fx_write(s, b, 1);
    fx_scan_all(s, &v);
    T_EQ_U64(v.count, 1);
    fx_view_clear(&v);
    fx_batch_free(b);
    free(text);
    store_close(s);
    fx_folder_free(&f);
}

TEST(a_write_transaction_of_another_program_is_waited_for_and_then_busy)
{
    const struct fx_folder f = fx_folder_new();
    struct store *const s = fx_open(&f);
    sqlite3 *other = NULL;
    T_ERR(sqlite3_open(s->file, &other), SQLITE_OK);
    T_ERR(sqlite3_exec(other, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
    (void)sqlite3_busy_timeout(s->db, 20);
    struct fx_batch *const b = fx_batch_new(0);
    fx_add(b, web, 1, 0, 1000);
    const struct store_rows rows = fx_rows(b);
    struct store_error error = {0};
    T_ERR(store_write_rows(s, &rows, 1, &error), -EBUSY);
    T_TRUE(strstr(error.text, "another program holds it"));
    T_ERR(sqlite3_exec(other, "COMMIT", NULL, NULL, NULL), SQLITE_OK);
    fx_write(s, b, 1);
    (void)sqlite3_close(other);
    fx_batch_free(b);
    store_close(s);
    fx_folder_free(&f);
}
