/* SPDX-License-Identifier: Apache-2.0 */
/* Hours summed: a coarse scan says what a fine one says. */
#include "rows_fixture.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char web[] = "service_name=web span_name=GET";
#define HOUR (INT64_C(3600) * FX_SECOND)
#define WINDOWS_AN_HOUR 360

static int64_t number_of(struct store *s, const char *sql)
{
    int64_t v = -1;
    T_ERR(store_db_number(s->db, sql, &v), SQLITE_OK);
    return v;
}

static void roll_all(struct store *s, int64_t now_ns)
{
    int64_t n;
    int steps = 0;
    struct store_error error = {0};
    while ((n = store_roll(s, now_ns, 1000, &error)) > 0)
        T_TRUE(++steps < 10000);
    if (n < 0)
        T_FAIL("%s", error.text);
}

static void write_web(struct store *s, int64_t window, uint64_t number)
{
    struct fx_batch *const b = fx_batch_new(window);
    fx_add(b, web, 2, 1, 1000 * (window % 50 + 1));
    fx_write(s, b, number);
    fx_batch_free(b);
}

static void scan(struct store *s, uint64_t max_number, const struct query_select *select,
                 struct fx_view *v)
{
    fx_view_clear(v);
    struct store_reader *r = NULL;
    T_OK(store_reader_open(s, &r, NULL));
    uint64_t last;
    T_OK(store_reader_begin(r, max_number, &last));
    const struct query_visitor visitor = fx_visitor(v);
    T_OK(store_reader_scan(r, select, &visitor));
    store_reader_close(r);
}

TEST(an_hour_ends_on_its_edge_and_holds_the_windows_that_end_in_it)
{
    T_EQ_I64(store_hour_of(FX_T0), FX_T0);
    T_EQ_I64(store_hour_of(FX_T0 + 1), FX_T0 + HOUR);
    T_EQ_I64(store_hour_of(FX_T0 + HOUR), FX_T0 + HOUR);
    T_EQ_I64(store_hour_of(0), 0);
    T_EQ_I64(store_hour_of(-1), 0);
    T_EQ_I64(store_hour_of(-HOUR), -HOUR);
    T_EQ_I64(store_hour_of(INT64_MAX), INT64_MAX);
}

TEST(an_hour_is_summed_20_minutes_after_its_end_and_only_once)
{
    const struct fx_folder f = fx_folder_new();
    struct store *const s = fx_open(&f);
    for (int i = 0; i < 6; i++)
        write_web(s, i, (uint64_t)i + 1);
    const int64_t due = FX_T0 + HOUR + 1200 * FX_SECOND;
    T_EQ_I64(store_roll(s, due - 1, 1000, NULL), 0);
    T_TRUE(store_roll(s, due, 1000, NULL) > 0);
    roll_all(s, due);
    T_EQ_I64(number_of(s, "SELECT count(*) FROM rolls"), 1);
    T_EQ_I64(number_of(s, "SELECT hits / 1048576 FROM rolls"), 18);
    T_EQ_I64(store_roll(s, due + HOUR, 1000, NULL), 0);

    const int64_t end = FX_T0 + HOUR;
    const struct {
        int64_t after;
        int64_t until;
        int64_t coarse;
        unsigned windows;
    } cases[] = {
        {INT64_MIN, INT64_MAX, 0, 6},
        {INT64_MIN, INT64_MAX, INT64_MAX, 1},
        {INT64_MIN, INT64_MAX, end, 1},
        {INT64_MIN, INT64_MAX, end - 1, 6},
        {FX_T0, end, end, 1},
        {FX_T0 + 1, end, end, 6}, /* the hour is not whole in the range */
        {FX_T0, end - 1, INT64_MAX, 6},
        {FX_T0 + 20 * FX_SECOND, end, end, 4},
        {INT64_MAX, INT64_MAX, INT64_MAX, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct query_select select = {.after_ns = cases[i].after,
                                            .until_ns = cases[i].until,
                                            .coarse_until_ns = cases[i].coarse};
        struct fx_view v = {0};
        scan(s, UINT64_MAX, &select, &v);
        T_EQ_U64(v.seen[0].windows, cases[i].windows);
        fx_view_clear(&v);
    }
    store_close(s);
    fx_folder_free(&f);
}

TEST(an_hour_under_way_is_not_read_and_batches_come_between_its_steps)
{
    const struct fx_folder f = fx_folder_new();
    struct store *s = fx_open(&f);
    uint64_t number = 0;
    char labels[64];
    for (int i = 0; i < 4; i++) {
        struct fx_batch *const b = fx_batch_new(i);
        for (int j = 0; j < 40; j++) {
            (void)snprintf(labels, sizeof labels, "service_name=s%02d", j);
            fx_add(b, labels, 1, 0, 1000);
        }
        fx_write(s, b, ++number);
        fx_batch_free(b);
    }
    const int64_t now = FX_T0 + 2 * HOUR;
    const struct query_select coarse = {
        .after_ns = INT64_MIN, .until_ns = INT64_MAX, .coarse_until_ns = INT64_MAX};
    int steps = 0;
    unsigned late = 0;
    int64_t n;
    while ((n = store_roll(s, now, 40, NULL)) > 0) {
        T_TRUE(n <= 50); /* about what was asked for */
        struct fx_view v = {0};
        scan(s, UINT64_MAX, &coarse, &v);
        const struct fx_seen *const seen = fx_find(&v, "service_name=s39");
        T_EQ_U64(seen->hits, (4 + late) * WEIR_WEIGHT_ONE);
        fx_view_clear(&v);
        struct fx_batch *const b = fx_batch_new(1); /* late, into the same hour */
        fx_add(b, "service_name=s39", 1, 0, 1000);
        fx_write(s, b, ++number);
        fx_batch_free(b);
        late++;
        if (++steps == 2) { /* a restart in the middle goes on where it was */
            store_close(s);
            s = fx_open(&f);
        }
    }
    T_EQ_I64(n, 0);
    T_TRUE(steps >= 4);
    struct fx_view v = {0};
    scan(s, UINT64_MAX, &coarse, &v);
    const struct fx_seen *const seen = fx_find(&v, "service_name=s39");
    T_EQ_U64(seen->hits, (4 + late) * WEIR_WEIGHT_ONE);
    T_EQ_U64(seen->windows, 1 + late);
    fx_view_clear(&v);
    store_close(s);
    fx_folder_free(&f);
}

TEST(a_sum_that_holds_hidden_batches_is_not_shown)
{
    const struct fx_folder f = fx_folder_new();
    struct store *const s = fx_open(&f);
    for (int i = 0; i < 4; i++)
        write_web(s, i, (uint64_t)i + 1);
    roll_all(s, FX_T0 + 2 * HOUR);
    const struct query_select coarse = {
        .after_ns = INT64_MIN, .until_ns = INT64_MAX, .coarse_until_ns = INT64_MAX};
    struct fx_view v = {0};
    scan(s, 3, &coarse, &v);
    T_EQ_U64(v.seen[0].windows, 3);
    scan(s, 4, &coarse, &v);
    T_EQ_U64(v.seen[0].windows, 1);
    T_EQ_U64(v.seen[0].hits, 12 * WEIR_WEIGHT_ONE);
    fx_view_clear(&v);
    store_close(s);
    fx_folder_free(&f);
}

TEST(an_hour_with_a_sketch_that_does_not_decode_is_left_as_it_is)
{
    const struct fx_folder f = fx_folder_new();
    struct store *const s = fx_open(&f);
    write_web(s, 0, 1);
    write_web(s, WINDOWS_AN_HOUR, 2);
    T_ERR(
        sqlite3_exec(s->db, "UPDATE windows SET error = x'77' WHERE number = 1", NULL, NULL, NULL),
        SQLITE_OK);
    roll_all(s, FX_T0 + 4 * HOUR);
    T_EQ_I64(number_of(s, "SELECT count(*) FROM hours"), 1);
    T_EQ_I64(number_of(s, "SELECT end_ns FROM rolls"), FX_T0 + 2 * HOUR);
    struct store_counts c;
    store_get_counts(s, &c);
    T_EQ_U64(c.totals_failed, 1);
    store_close(s);
    fx_folder_free(&f);
}

static bool same_seen(const struct fx_seen *a, const struct fx_seen *b)
{
    return a->hits == b->hits && a->errors == b->errors && a->top_level == b->top_level &&
           a->base_hits.lo == b->base_hits.lo && a->base_errors.lo == b->base_errors.lo &&
           a->created_ns == b->created_ns && fx_same_sketch(a->ok, b->ok) &&
           fx_same_sketch(a->error, b->error);
}

static void compare_scans(struct store *s, struct t_rng *rng, const char *only)
{
    const int64_t span = 4 * HOUR;
    struct query_select select = {.after_ns =
                                      FX_T0 + (int64_t)t_below(rng, (uint64_t)span) - HOUR / 2,
                                  .until_ns = FX_T0 + (int64_t)t_below(rng, (uint64_t)span),
                                  .totals = true};
    if (t_below(rng, 3) == 0)
        select.after_ns = INT64_MIN;
    if (t_below(rng, 2)) /* on an edge of the hours */
        select.until_ns = FX_T0 + (int64_t)t_below(rng, 5) * HOUR;
    const uint64_t last = store_last_number(s);
    const uint64_t max_number =
        t_below(rng, 3) ? UINT64_MAX : last - t_below(rng, last < 20 ? last : 20);
    struct fx_view fine = {.only = only};
    struct fx_view coarse = {.only = only};
    scan(s, max_number, &select, &fine);
    select.coarse_until_ns = select.until_ns - (int64_t)t_below(rng, 2) * HOUR;
    scan(s, max_number, &select, &coarse);
    T_EQ_U64(fine.count, coarse.count);
    for (size_t i = 0; i < fine.count; i++) {
        const struct fx_seen *const c = fx_find(&coarse, fine.seen[i].labels);
        T_TRUE(c && same_seen(&fine.seen[i], c));
        T_TRUE(c->windows <= fine.seen[i].windows);
    }
    fx_view_clear(&fine);
    fx_view_clear(&coarse);
}

TEST(coarse_scans_equal_fine_ones_while_batches_corrections_sums_and_retention_go_on)
{
    enum { SERIES = 40, STEPS = 300 };
    struct t_rng rng = t_rng(t_seed());
    const struct fx_folder f = fx_folder_new();
    const struct store_opts o = {.path = f.path, .retention_for_ns = 2 * HOUR};
    struct store *s = NULL;
    bool replaced;
    T_OK(store_open(&o, &s, &replaced, NULL));
    (void)sqlite3_exec(s->db, "PRAGMA synchronous = OFF", NULL, NULL, NULL); /* only for speed */
    uint64_t number = 0;
    uint64_t written = 0;
    int rolled = 0; /* steps with some sum there */
    char labels[64];
    for (int i = 0; i < STEPS; i++) {
        const int64_t window =
            (int64_t)i * 4 - (int64_t)(t_below(&rng, 4) == 0) * (int64_t)t_below(&rng, 500);
        struct fx_batch *const b = fx_batch_new(window < 0 ? 0 : window);
        for (int j = 0; j < 6; j++) {
            (void)snprintf(labels, sizeof labels, "service_name=s%02u",
                           (unsigned)t_below(&rng, SERIES));
            fx_add(b, labels, 1 + (unsigned)t_below(&rng, 3), (unsigned)t_below(&rng, 2), 1000 + i);
        }
        written += b->info.counts.aggregated;
        fx_write(s, b, ++number);
        const int64_t now = FX_T0 + (int64_t)i * 40 * FX_SECOND;
        fx_batch_free(b);
        if (t_below(&rng, 4) == 0)
            T_TRUE(store_roll(s, now, 20 + t_below(&rng, 400), NULL) >= 0);
        if (t_below(&rng, 6) == 0)
            T_TRUE(store_retain(s, now, 1 + t_below(&rng, 60), NULL) >= 0);
        rolled += number_of(s, "SELECT count(*) FROM rolls") > 0;
        if (i % 3 == 0)
            compare_scans(s, &rng, t_below(&rng, 2) ? NULL : "s07");
    }
    T_TRUE(rolled > STEPS / 4);
    T_TRUE(number_of(s, "SELECT count(*) FROM totals") > 0);
    struct query_select all = fx_all;
    all.coarse_until_ns = INT64_MAX;
    struct fx_view v = {0};
    scan(s, UINT64_MAX, &all, &v);
    uint64_t sum = 0;
    for (size_t i = 0; i < v.count; i++)
        sum += fx_running(&v.seen[i]);
    T_EQ_U64(sum, written * WEIR_WEIGHT_ONE);
    fx_view_clear(&v);
    store_close(s);
    fx_folder_free(&f);
}

TEST(a_store_of_version_1_is_migrated_with_what_it_holds)
{
    const struct fx_folder f = fx_folder_new();
    struct store *s = fx_open(&f);
    for (int i = 0; i < 3; i++)
        write_web(s, i, (uint64_t)i + 1);
    T_ERR(sqlite3_exec(s->db,
                       "DROP TABLE rolls; DROP TABLE hours; DELETE FROM meta WHERE key = "
                       "'rolled_until'; PRAGMA user_version = 1",
                       NULL, NULL, NULL),
          SQLITE_OK);
    store_close(s);
    s = fx_open(&f);
    T_EQ_I64(number_of(s, "PRAGMA user_version"), STORE_SCHEMA_VERSION);
    T_EQ_U64(store_last_number(s), 3);
    roll_all(s, FX_T0 + 2 * HOUR);
    struct fx_view v = {0};
    fx_scan_all(s, &v);
    T_EQ_U64(fx_find(&v, web)->windows, 3);
    T_EQ_I64(number_of(s, "SELECT count(*) FROM rolls"), 1);
    fx_view_clear(&v);
    store_close(s);
    fx_folder_free(&f);
}
