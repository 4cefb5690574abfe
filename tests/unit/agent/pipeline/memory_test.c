/* SPDX-License-Identifier: Apache-2.0 */
/* Rows in memory beside the store's: one source. */
#include "pipeline/memory.h"

#include "../store/rows_fixture.h"

#include <errno.h>

static const char web[] = "service_name=web span_name=GET";
static const char db[] = "service_name=db span_name=SELECT";
static const char job[] = "service_name=job";

struct both {
    struct fx_folder f;
    struct store *s;
    struct store_reader *r;
    struct memory *m;
};

/* web and db are in the store, in window 5. */
static struct both both_open(void)
{
    struct both b = {.f = fx_folder_new()};
    b.s = fx_open(&b.f);
    struct fx_batch *const first = fx_batch_new(5);
    fx_add(first, web, 1, 0, 1000);
    fx_add(first, db, 2, 0, 1000);
    fx_write(b.s, first, 1);
    fx_batch_free(first);
    T_OK(store_reader_open(b.s, &b.r, NULL));
    uint64_t last;
    T_OK(store_reader_begin(b.r, UINT64_MAX, &last));
    T_OK(memory_new(&b.m));
    return b;
}

static void both_close(struct both *b)
{
    memory_free(b->m);
    store_reader_close(b->r);
    store_close(b->s);
    fx_folder_free(&b->f);
}

static void add(struct both *b, const struct fx_batch *batch, enum memory_kind kind)
{
    const struct store_rows rows = fx_rows(batch);
    T_OK(memory_add(b->m, &rows, kind));
}

static void scan(struct both *b, struct fx_view *v, const struct query_select *select)
{
    fx_view_clear(v);
    const struct query_visitor visitor = fx_visitor(v);
    T_OK(memory_scan(b->m, b->r, select, &visitor));
}

TEST(a_series_in_the_store_and_in_memory_is_one_series)
{
    struct both b = both_open();
    struct fx_batch *const one = fx_batch_new(6);
    fx_add(one, job, 7, 0, 1000);
    fx_add(one, web, 3, 1, 1000);
    struct fx_batch *const two = fx_batch_new(7);
    fx_add(two, web, 1, 0, 1000);
    fx_add(two, job, 1, 0, 1000);
    fx_add(two, job, 1, 0, 1000);
    add(&b, one, MEMORY_SEALED);
    add(&b, two, MEMORY_OPEN);
    struct fx_view v = {0};
    scan(&b, &v, &fx_all); /* fx_view fails when it is asked twice about the same labels */
    T_EQ_U64(v.count, 3);
    T_EQ_U64(fx_find(&v, web)->hits, 6 * WEIR_WEIGHT_ONE);
    T_EQ_U64(fx_find(&v, web)->windows, 3);
    T_TRUE(fx_find(&v, web)->id < STORE_SERIES_ID_END);
    T_EQ_U64(fx_find(&v, db)->hits, 2 * WEIR_WEIGHT_ONE);
    T_EQ_U64(fx_find(&v, job)->hits, 9 * WEIR_WEIGHT_ONE);
    T_TRUE(fx_find(&v, job)->id >= STORE_SERIES_ID_END);
    T_EQ_U64(fx_find(&v, job)->bases, 1);
    T_EQ_I64(fx_find(&v, job)->created_ns, one->info.start_ns);
    const uint64_t id = fx_find(&v, job)->id;
    v.only = "job";
    scan(&b, &v, &fx_all);
    T_EQ_U64(v.count, 1);
    T_EQ_U64(v.asked, 3);
    T_EQ_U64(v.seen[0].id, id); /* the same for each scan */
    T_EQ_U64(v.seen[0].hits, 9 * WEIR_WEIGHT_ONE);
    v.only = NULL;
    fx_view_clear(&v);
    fx_batch_free(one);
    fx_batch_free(two);
    both_close(&b);
}

TEST(a_correction_in_memory_moves_the_beginning_back)
{
    struct both b = both_open();
    struct fx_batch *const late = fx_batch_new(2);
    fx_add(late, web, 1, 0, 1000);
    add(&b, late, MEMORY_SEALED);
    struct fx_view v = {0};
    scan(&b, &v, &fx_all);
    T_EQ_I64(fx_find(&v, web)->created_ns, late->info.start_ns);
    T_EQ_I64(fx_find(&v, db)->created_ns, FX_T0 + 50 * FX_SECOND);
    fx_view_clear(&v);
    fx_batch_free(late);
    both_close(&b);
}

TEST(sealed_windows_in_memory_obey_the_range)
{
    struct both b = both_open();
    struct fx_batch *const one = fx_batch_new(6);
    fx_add(one, job, 1, 0, 1000);
    add(&b, one, MEMORY_SEALED);
    const int64_t end = FX_T0 + 70 * FX_SECOND;
    const struct {
        int64_t after;
        int64_t until;
        unsigned windows;
    } cases[] = {{end - 1, end, 1}, {end, end + 5, 0}, {end - 5, end - 1, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct query_select select = {.after_ns = cases[i].after, .until_ns = cases[i].until};
        struct fx_view v = {0};
        scan(&b, &v, &select);
        T_EQ_U64(fx_find(&v, job)->windows, cases[i].windows);
        T_EQ_U64(fx_find(&v, job)->bases, 0);
        fx_view_clear(&v);
    }
    fx_batch_free(one);
    both_close(&b);
}

TEST(an_open_window_ends_at_the_end_of_the_range_unless_its_end_is_past)
{
    struct both b = both_open();
    struct fx_batch *const one = fx_batch_new(6);
    fx_add(one, job, 1, 0, 1000);
    add(&b, one, MEMORY_OPEN);
    const int64_t start = FX_T0 + 60 * FX_SECOND;
    const int64_t end = start + 10 * FX_SECOND;
    const struct {
        int64_t after;
        int64_t until;
        unsigned windows;
        int64_t shown_end;
    } cases[] = {
        {start - 100, start + 1, 1, start + 1},
        {start - 100, start, 0, 0}, /* begins at the end of the range: not in it */
        {start + 2, start + 5, 1, start + 5},
        {start - 100, end, 1, end},
        {start - 100, end + 50, 1, end}, /* late, not yet sealed: its own end */
        {end, end + 50, 0, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct query_select select = {.after_ns = cases[i].after, .until_ns = cases[i].until};
        struct fx_view v = {0};
        scan(&b, &v, &select);
        T_EQ_U64(fx_find(&v, job)->windows, cases[i].windows);
        T_EQ_I64(fx_find(&v, job)->last_end_ns, cases[i].shown_end);
        fx_view_clear(&v);
    }
    fx_batch_free(one);
    both_close(&b);
}

TEST(what_a_callback_returns_ends_the_scan_in_memory_too)
{
    struct both b = both_open();
    struct fx_batch *const one = fx_batch_new(6);
    fx_add(one, job, 1, 0, 1000);
    fx_add(one, web, 1, 0, 1000);
    add(&b, one, MEMORY_SEALED);
    struct fx_view v = {.fail_after = 3}; /* two are the store's */
    const struct query_visitor visitor = fx_visitor(&v);
    T_ERR(memory_scan(b.m, b.r, &fx_all, &visitor), -ECANCELED);
    T_EQ_I64(v.windows, 3);
    fx_view_clear(&v);
    fx_batch_free(one);
    both_close(&b);
}
