/* SPDX-License-Identifier: Apache-2.0 */
/* The table full of live keys: who keeps a row, what goes to overflow, and that nothing is lost. */
#include "fixture.h"

#include <stdlib.h>

enum { LIMIT = 1000 };

static void open_capped(struct fixture *f, uint32_t max_keys, uint32_t cap)
{
    struct weir_stats_opts o = f_opts(f);
    o.max_keys = max_keys;
    o.cap = cap;
    f->wall_minus_mono = f_wall_minus_mono;
    f_open(f, &o);
}

static void hit(struct fixture *f, const char *resource, uint64_t times)
{
    const struct weir_source source = {.now_ns = f->now};
    const struct weir_span s = f_span("svc", resource, f->now, 1000);
    struct weir_stats_identity *id;
    T_OK(weir_stats_identity_new(f->st, &source, &s, &id));
    for (uint64_t i = 0; i < times; i++) {
        T_OK(weir_stats_publish_identity(f->p, id, f->now, 1000, 0, 0));
        if (i % 1000 == 999)
            (void)weir_stats_poll(f->st, f->now, f->now - f->wall_minus_mono);
    }
    weir_stats_identity_free(id);
    f_poll(f);
}

static void flood(struct fixture *f, int from, int to)
{
    const struct weir_source source = {.now_ns = f->now};
    for (int i = from; i < to; i++) {
        char name[24];
        (void)snprintf(name, sizeof name, "noise-%d", i);
        const struct weir_span s = f_span("svc", name, f->now, 1000);
        T_OK(weir_stats_publish(f->p, &source, &s, 1));
        if (i % 500 == 499)
            (void)weir_stats_poll(f->st, f->now, f->now - f->wall_minus_mono);
    }
    f_poll(f);
}

/* Hits of the row of that resource, in whole spans; 0: there is none. */
static uint64_t hits_of(const struct weir_batch *b, const struct weir_batch_info *info,
                        const char *resource)
{
    uint64_t hits = 0;
    for (size_t i = 0; i < info->rows; i++) {
        struct weir_row row;
        weir_batch_get_row(b, i, &row);
        if (f_has(b, i, "span_name", resource))
            hits += row.hits;
    }
    return hits / WEIR_WEIGHT_ONE;
}

static struct weir_stats_health health_of(const struct fixture *f)
{
    struct weir_stats_health h;
    weir_stats_get_health(f->st, &h);
    return h;
}

TEST(C15_a_key_with_a_million_hits_has_its_row_though_noise_came_first)
{
    struct fixture f;
    open_capped(&f, LIMIT, WEIR_CAP_HEAVY);
    flood(&f, 0, 2 * LIMIT);
    hit(&f, "K", 1000000);
    f_seal(&f);
    struct weir_batch_info info;
    struct weir_batch *const b = f_take(&f, &info);
    T_EQ_U64(info.counts.rows_weight / WEIR_WEIGHT_ONE, 1000000 + 2 * LIMIT);
    T_EQ_U64(info.rows, LIMIT + 1);
    /* Its second hit was surely more than the one hit of the coldest: one is in overflow, and so is
     * the one that had its place. */
    T_EQ_U64(hits_of(b, &info, "K"), 999999);
    T_EQ_U64(hits_of(b, &info, "tracer_blocked_value"), LIMIT + 1 + 1);
    const struct weir_stats_health h = health_of(&f);
    T_EQ_U64(h.displaced, 1);
    T_EQ_U64(h.overflow, LIMIT + 1);
    weir_batch_release(b);
    f_close(&f);
}

TEST(C15_first_come_keeps_the_noise)
{
    struct fixture f;
    open_capped(&f, LIMIT, WEIR_CAP_FIRST);
    flood(&f, 0, 2 * LIMIT);
    hit(&f, "K", 1000);
    f_seal(&f);
    struct weir_batch_info info;
    struct weir_batch *const b = f_take(&f, &info);
    T_EQ_U64(hits_of(b, &info, "K"), 0);
    T_EQ_U64(hits_of(b, &info, "tracer_blocked_value"), LIMIT + 1000);
    T_EQ_U64(health_of(&f).displaced, 0);
    weir_batch_release(b);
    f_close(&f);
}

TEST(with_the_policy_to_drop_a_newcomer_is_dropped_and_counted_and_there_is_no_overflow_row)
{
    struct fixture f;
    open_capped(&f, 10, WEIR_CAP_DROP);
    flood(&f, 0, 25);
    f_seal(&f);
    struct weir_batch_info info;
    struct weir_batch *const b = f_take(&f, &info);
    T_EQ_U64(info.rows, 10);
    T_EQ_U64(info.counts.aggregated, 10);
    T_EQ_U64(info.counts.dropped[WEIR_DROP_TABLE_FULL], 15);
    T_EQ_STR(weir_drop_name(WEIR_DROP_TABLE_FULL), "table_full");
    weir_batch_release(b);
    f_close(&f);
    struct weir_stats *st;
    const struct weir_stats_opts o = {.struct_size = sizeof o, .cap = WEIR_CAP_DROP + 1};
    T_ERR(weir_stats_new(&o, &st), WEIR_EINVAL);
}

TEST(an_entry_that_was_hit_more_is_not_displaced_and_an_equal_one_is_not_either)
{
    struct fixture f;
    open_capped(&f, 2, WEIR_CAP_HEAVY);
    hit(&f, "a", 5);
    hit(&f, "b", 9);
    hit(&f, "c", 5);
    T_EQ_U64(health_of(&f).displaced, 0);
    hit(&f, "c", 1);
    T_EQ_U64(health_of(&f).displaced, 1);
    /* What c was hit in overflow protects its place: d has to pass that. */
    hit(&f, "d", 6);
    T_EQ_U64(health_of(&f).displaced, 1);
    f_seal(&f);
    struct weir_batch_info info;
    struct weir_batch *const b = f_take(&f, &info);
    T_EQ_U64(hits_of(b, &info, "a"), 0);
    T_EQ_U64(hits_of(b, &info, "b"), 9);
    T_EQ_U64(hits_of(b, &info, "c"), 1);
    T_EQ_U64(hits_of(b, &info, "tracer_blocked_value"), 5 + 5 + 6);
    weir_batch_release(b);
    f_close(&f);
}

TEST(what_gives_its_place_is_folded_in_every_open_window_with_errors_and_sketches)
{
    struct fixture f;
    open_capped(&f, 1, WEIR_CAP_HEAVY);
    uint64_t sum_ns = 0;
    for (int i = 0; i < 6; i++) { /* two windows of "old" */
        struct weir_span s = f_span("svc", "old", f.now - (i % 2) * 10 * f_second, 1000 * (i + 1));
        s.flags = i % 3 ? 0 : WEIR_SPAN_ERROR;
        sum_ns += 1000u * (unsigned)(i + 1);
        f_publish(&f, &s, 1);
    }
    hit(&f, "new", 4); /* passes the three of either window with its fourth */
    T_EQ_U64(health_of(&f).displaced, 1);
    T_EQ_U64(health_of(&f).keys, 1);
    f_seal(&f);
    uint64_t hits = 0;
    uint64_t errors = 0;
    uint64_t top = 0;
    uint64_t got_ns = 0;
    struct weir_batch_info info;
    for (struct weir_batch *b; (b = f_take(&f, &info)) != NULL;) {
        for (size_t i = 0; i < info.rows; i++) {
            struct weir_row row;
            weir_batch_get_row(b, i, &row);
            T_TRUE(!f_has(b, i, "span_name", "old"));
            if (f_has(b, i, "span_name", "new"))
                continue;
            hits += row.hits / WEIR_WEIGHT_ONE;
            errors += row.errors / WEIR_WEIGHT_ONE;
            top += row.top_level / WEIR_WEIGHT_ONE;
            got_ns += row.ok ? weir_sketch_sum_ns(row.ok).lo >> 20 : 0;
            got_ns += row.error ? weir_sketch_sum_ns(row.error).lo >> 20 : 0;
        }
        weir_batch_release(b);
    }
    T_EQ_U64(hits, 6 + 3);
    T_EQ_U64(errors, 2);
    T_EQ_U64(top, 6);
    T_EQ_U64(got_ns, sum_ns + 3 * 1000);
    f_close(&f);
}

TEST(heavy_keys_keep_their_rows_under_a_flood_of_keys_that_are_hit_once)
{
    enum { HEAVY = 20, STEPS = 200000, KEYS = 100 };
    struct fixture f;
    open_capped(&f, KEYS, WEIR_CAP_HEAVY);
    struct t_rng rng = t_rng(t_seed());
    const struct weir_source source = {.now_ns = f.now};
    uint64_t sent[HEAVY] = {0};
    flood(&f, 0, KEYS); /* no place is left for any of them */
    for (int i = 0; i < STEPS; i++) {
        char name[32];
        const size_t k = (size_t)t_below(&rng, HEAVY * 2);
        if (k < HEAVY) {
            sent[k]++;
            (void)snprintf(name, sizeof name, "heavy-%zu", k);
        } else {
            (void)snprintf(name, sizeof name, "once-%d", i);
        }
        const struct weir_span s = f_span("svc", name, f.now, 1000);
        T_OK(weir_stats_publish(f.p, &source, &s, 1));
        if (i % 300 == 299)
            (void)weir_stats_poll(f.st, f.now, f.now - f.wall_minus_mono);
    }
    f_poll(&f);
    const struct weir_stats_health h = health_of(&f);
    T_EQ_U64(h.keys, KEYS);
    T_NEAR((double)h.newcomers, (double)STEPS / 2, 0.1);
    f_seal(&f);
    struct weir_batch_info info;
    struct weir_batch *const b = f_take(&f, &info);
    T_EQ_U64(info.counts.rows_weight / WEIR_WEIGHT_ONE, KEYS + STEPS);
    for (size_t k = 0; k < HEAVY; k++) {
        char name[32];
        (void)snprintf(name, sizeof name, "heavy-%zu", k);
        const uint64_t hits = hits_of(b, &info, name);
        T_TRUE(hits <= sent[k] && hits * 100 >= sent[k] * 99);
    }
    weir_batch_release(b);
    f_close(&f);
}

TEST(the_newcomers_are_told_by_name_the_most_hit_first)
{
    struct fixture f;
    open_capped(&f, 3, WEIR_CAP_FIRST);
    uint64_t hits = 1;
    struct weir_label l[WEIR_LABELS_MAX];
    T_EQ_U64(weir_stats_get_newcomer(f.st, 0, &hits, l, WEIR_LABELS_MAX), 0);
    T_EQ_U64(hits, 1);
    flood(&f, 0, 200);
    hit(&f, "second", 30);
    hit(&f, "first", 40);
    static const char *const want[] = {"first", "second"};
    for (size_t r = 0; r < 2; r++) {
        const size_t n = weir_stats_get_newcomer(f.st, r, &hits, l, WEIR_LABELS_MAX);
        bool there = false;
        for (size_t i = 0; i < n; i++)
            there |= l[i].value.len == strlen(want[r]) &&
                     memcmp(l[i].value.ptr, want[r], l[i].value.len) == 0;
        T_TRUE(there);
        T_EQ_U64(hits / WEIR_WEIGHT_ONE, r == 0 ? 40 : 30);
    }
    T_TRUE(weir_stats_get_newcomer(f.st, 9, &hits, l, WEIR_LABELS_MAX) > 0);
    T_EQ_U64(weir_stats_get_newcomer(f.st, WEIR_NEWCOMERS_TOP, &hits, l, WEIR_LABELS_MAX), 0);
    T_NEAR((double)health_of(&f).newcomers, 199.0, 0.05);
    f_close(&f);
}

static uint64_t life(const struct weir_alloc *alloc)
{
    const struct weir_stats_opts o = {.struct_size = sizeof o, .alloc = *alloc, .max_keys = 3};
    struct fixture f = {.now = f_t0, .wall_minus_mono = f_wall_minus_mono};
    if (weir_stats_new(&o, &f.st) != WEIR_OK)
        return 0;
    uint64_t displaced = 0;
    if (weir_producer_new(f.st, 4096, WEIR_PRODUCER_OWNER, &f.p) == WEIR_OK) {
        const struct weir_source source = {.now_ns = f.now};
        f_poll(&f);
        for (int i = 0; i < 60; i++) {
            char name[16];
            (void)snprintf(name, sizeof name, "r%d", i / 6);
            struct weir_span s = f_span("a", name, f.now - (i % 2) * 10 * f_second, 1 << (i % 30));
            s.flags = i % 3 ? 0 : WEIR_SPAN_ERROR;
            s.weight = WEIR_WEIGHT_ONE * (1u + (unsigned)i / 6);
            WR_IGNORE(weir_stats_publish(f.p, &source, &s, 1));
            f_poll(&f);
        }
        f_seal(&f);
        struct weir_batch_info info;
        for (struct weir_batch *b; (b = f_take(&f, &info)) != NULL;)
            weir_batch_release(b);
        displaced = health_of(&f).displaced;
    }
    weir_producer_free(f.p);
    weir_stats_free(f.st);
    return displaced;
}

TEST(wherever_memory_runs_out_while_places_are_given_nothing_is_lost)
{
    for (int sticky = 0; sticky < 2; sticky++) {
        for (long n = 0;; n++) {
            struct t_heap h = {.fail_at = n, .sticky = sticky};
            const struct weir_alloc a = {t_heap_fn, &h};
            const uint64_t displaced = life(&a);
            T_EQ_I64(h.live, 0);
            if (h.seen <= n) {
                T_TRUE(displaced > 2);
                break;
            }
        }
    }
}
