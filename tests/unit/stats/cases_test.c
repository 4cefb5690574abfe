/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Public faults of other systems that do this job, as inputs with right answers: the rows of the
 * case list that concern the engine, each by its id. Others are where their matter is: C06, S07,
 * S10..S22 in tests/e2e and tests/unit/agent, T14 in tests/e2e/store_test.py, H-rows in
 * tests/unit/sketch, K-rows in tests/e2e/clients_test.py, D07 and C10 in window_test.c beside.
 * Client statistics have theirs in client_test.c, limits_test.c and payload_test.c beside; rows
 * about exporters and metrics come with these.
 */
#include "fixture.h"

static void one(struct fixture *f, int64_t end_ns, int64_t duration_ns)
{
    const struct weir_span s = f_span("a", "r", end_ns, duration_ns);
    f_publish(f, &s, 1);
}

static void at(struct fixture *f, int64_t seconds)
{
    f->now = f_t0 + seconds * f_second;
    f_poll(f);
}

static struct weir_batch_info take(struct fixture *f)
{
    struct weir_batch_info info;
    struct weir_batch *const b = f_take(f, &info);
    T_TRUE(b != NULL);
    weir_batch_release(b);
    return info;
}

static struct weir_stats_health health(const struct fixture *f)
{
    struct weir_stats_health h;
    weir_stats_get_health(f->st, &h);
    return h;
}

TEST(C01_C03_a_series_that_is_touched_no_more_leaves_the_table_and_others_stay)
{
    struct fixture f;
    const struct weir_stats_opts o = f_opts(&f);
    f_open(&f, &o);
    const struct weir_span a = f_span("a", "once", f.now, 10);
    f_publish(&f, &a, 1);
    for (int64_t s = 10; s <= 120; s += 10) {
        at(&f, s);
        const struct weir_span b = f_span("b", "always", f.now, 10);
        f_publish(&f, &b, 1);
        struct weir_batch_info info;
        for (struct weir_batch *batch; (batch = f_take(&f, &info));)
            weir_batch_release(batch);
    }
    T_EQ_U64(health(&f).keys, 1);
    T_EQ_U64(health(&f).expunged, 1);
    f_close(&f);
}

TEST(C11_an_inbox_that_nobody_drains_is_bounded_and_its_refusals_are_exact)
{
    struct fixture f;
    const struct weir_stats_opts o = f_opts(&f);
    f_open(&f, &o);
    struct weir_producer *slow;
    T_OK(weir_producer_new(f.st, 4096, 0, &slow));
    const int64_t live = f.heap.live;
    const struct weir_source source = {.now_ns = f.now};
    const struct weir_span s = f_span("a", "r", f.now, 10);
    uint64_t taken = 0;
    for (int i = 0; i < 100000; i++)
        taken += weir_stats_publish(slow, &source, &s, 1) == WEIR_OK;
    T_TRUE(f.heap.live - live < 64 * 1024);
    f_poll(&f);
    f_seal(&f);
    const struct weir_batch_info info = take(&f);
    T_EQ_U64(info.counts.aggregated, taken);
    T_EQ_U64(info.counts.dropped[WEIR_DROP_INBOX_FULL], 100000 - taken);
    weir_producer_free(slow);
    f_close(&f);
}

TEST(C13_what_a_flood_of_series_took_is_given_back)
{
    struct fixture f;
    const struct weir_stats_opts o = f_opts(&f);
    f_open(&f, &o);
    const long long before = f.heap.live;
    char name[24];
    const struct weir_source source = {.now_ns = f.now};
    for (int i = 0; i < 50000; i++) {
        (void)snprintf(name, sizeof name, "series-%d", i);
        const struct weir_span s = f_span("a", name, f.now, 10);
        if (weir_stats_publish(f.p, &source, &s, 1) != WEIR_OK)
            f_poll(&f);
        (void)weir_stats_poll(f.st, f.now, f.now - f.wall_minus_mono);
    }
    const long long full = f.heap.live;
    T_TRUE(full - before > 50000 * 100);
    for (int64_t s = 40; s <= 400; s += 10) {
        at(&f, s);
        struct weir_batch_info info;
        for (struct weir_batch *b; (b = f_take(&f, &info));)
            weir_batch_release(b);
    }
    T_EQ_U64(health(&f).keys, 0);
    /* Buckets and a batch of that size are kept for the next time; entries and sketches are not. */
    T_TRUE(f.heap.live - before < (full - before) / 2);
    f_close(&f);
}

TEST(T11_a_delayed_span_is_counted_in_its_own_window)
{
    struct fixture f;
    const struct weir_stats_opts o = f_opts(&f);
    f_open(&f, &o);
    f.now = f_t0 + 105 * f_second / 10;
    one(&f, f_t0 + 99 * f_second / 10, 10); /* of t = 9.9, arriving at 10.5 */
    at(&f, 60);
    const struct weir_batch_info info = take(&f);
    T_EQ_I64(info.start_ns, f_t0);
    T_EQ_U64(info.counts.late, 0);
    f_close(&f);
}

TEST(D01_an_end_before_the_start_is_a_hit_of_zero_in_the_window_of_its_end)
{
    struct fixture f;
    const struct weir_stats_opts o = f_opts(&f);
    f_open(&f, &o);
    at(&f, 20);
    struct weir_span s = f_span("a", "r", f_t0, 0);
    s.start_ns = f_t0 + 10 * f_second;
    s.duration_ns = -1 * f_second; /* its end is in the window before */
    f_publish(&f, &s, 1);
    at(&f, 60);
    const struct weir_batch_info info = take(&f);
    T_EQ_I64(info.start_ns, f_t0);
    T_EQ_U64(info.counts.sketch_weight, WEIR_WEIGHT_ONE);
    T_EQ_U64(health(&f).negative_duration, 1);
    f_close(&f);
}

TEST(D03_K12_a_negative_duration_of_a_tracer_neither_wraps_nor_vanishes)
{
    struct fixture f;
    const struct weir_stats_opts o = f_opts(&f);
    f_open(&f, &o);
    struct weir_span s = f_span("a", "r", f.now, 0);
    s.flags = WEIR_SPAN_DD;
    s.duration_ns = -5;
    f_publish(&f, &s, 1);
    f_seal(&f);
    struct weir_batch_info info;
    struct weir_batch *const b = f_take(&f, &info);
    struct weir_row r;
    weir_batch_get_row(b, 0, &r);
    const struct weir_u128 sum = weir_sketch_sum_ns(r.ok);
    T_EQ_U64(r.hits, WEIR_WEIGHT_ONE);
    T_EQ_U64(weir_sketch_weight(r.ok), WEIR_WEIGHT_ONE);
    T_TRUE(sum.lo == 0 && sum.hi == 0);
    weir_batch_release(b);
    f_close(&f);
}

TEST(D05_a_span_five_minutes_late_goes_to_the_oldest_open_window_or_its_own)
{
    for (int correct = 0; correct < 2; correct++) {
        struct fixture f;
        struct weir_stats_opts o = f_opts(&f);
        o.late = correct ? WEIR_LATE_CORRECT : WEIR_LATE_FOLD;
        f_open(&f, &o);
        at(&f, 600);
        one(&f, f.now - 300 * f_second, 10);
        at(&f, 640);
        const struct weir_batch_info info = take(&f);
        T_EQ_I64(info.start_ns, f_t0 + (correct ? 300 : 580) * f_second);
        T_EQ_U64(info.counts.late, 1);
        f_close(&f);
    }
}

TEST(D06_a_delay_of_45_s_loses_nothing_and_has_its_window_when_lateness_allows)
{
    for (int allowed = 0; allowed < 2; allowed++) {
        struct fixture f;
        struct weir_stats_opts o = f_opts(&f);
        if (allowed) {
            o.lateness_for_ns = 600 * f_second;
            o.late = WEIR_LATE_CORRECT;
        }
        f_open(&f, &o);
        at(&f, 100);
        one(&f, f.now - 45 * f_second, 10);
        f_seal(&f);
        const struct weir_batch_info info = take(&f);
        T_EQ_U64(info.counts.aggregated, 1);
        T_EQ_U64(info.counts.late, !allowed);
        T_EQ_I64(info.start_ns, f_t0 + (allowed ? 50 : 80) * f_second);
        f_close(&f);
    }
}

TEST(D07_by_default_a_backlog_of_an_hour_goes_to_the_oldest_open_window_counted)
{
    struct fixture f;
    const struct weir_stats_opts o = f_opts(&f);
    f_open(&f, &o);
    at(&f, 3600);
    for (int64_t s = 0; s < 3570; s += 10)
        one(&f, f_t0 + s * f_second, 10);
    f_seal(&f);
    const struct weir_batch_info info = take(&f);
    T_EQ_I64(info.start_ns, f_t0 + 3580 * f_second);
    T_EQ_U64(info.counts.late, 357);
    T_TRUE(!weir_stats_take_batch(f.st));
    f_close(&f);
}

TEST(D09_a_machine_that_slept_eight_hours_flushes_once)
{
    struct fixture f;
    const struct weir_stats_opts o = f_opts(&f);
    f_open(&f, &o);
    one(&f, f.now, 10);
    /* The monotonic clock stands still in sleep; the wall clock has gone on. */
    f.now += 8 * 3600 * f_second;
    f.wall_minus_mono += 8 * 3600 * f_second;
    f_poll(&f);
    T_EQ_U64(take(&f).counts.aggregated, 1);
    T_TRUE(!weir_stats_take_batch(f.st));
    T_EQ_U64(health(&f).clock_steps, 1);
    T_EQ_U64(health(&f).sealed_batches, 1);
    f_close(&f);
}

TEST(D11_an_end_on_the_edge_belongs_to_the_window_that_begins_there)
{
    struct fixture f;
    const struct weir_stats_opts o = f_opts(&f);
    f_open(&f, &o);
    at(&f, 15);
    one(&f, f_t0 + 10 * f_second, 5);
    one(&f, f_t0 + 10 * f_second, 0); /* zero long, on the edge */
    at(&f, 60);
    const struct weir_batch_info info = take(&f);
    T_EQ_I64(info.start_ns, f_t0 + 10 * f_second);
    T_EQ_U64(info.counts.aggregated, 2);
    f_close(&f);
}

TEST(S04_client_and_server_of_one_name_are_two_rows)
{
    struct fixture f;
    const struct weir_stats_opts o = f_opts(&f);
    f_open(&f, &o);
    struct weir_span s[2] = {f_span("a", "r", f.now, 10), f_span("a", "r", f.now, 10)};
    s[0].kind = WEIR_KIND_CLIENT;
    s[1].kind = WEIR_KIND_SERVER;
    s[1].span_id = 9;
    f_publish(&f, s, 2);
    f_seal(&f);
    T_EQ_U64(take(&f).rows, 2);
    f_close(&f);
}

TEST(K13_late_and_future_spans_open_no_more_windows_than_there_are)
{
    struct fixture f;
    const struct weir_stats_opts o = f_opts(&f);
    f_open(&f, &o);
    at(&f, 100);
    one(&f, f.now - 60 * f_second, 10);
    one(&f, f.now + 3600 * f_second, 10);
    for (int64_t s = 0; s < 60; s++)
        one(&f, f.now + (s - 30) * 60 * f_second, 10);
    const struct weir_stats_health h = health(&f);
    T_TRUE(h.open_windows <= 3);
    T_EQ_U64(h.late + h.future + 1, 62);
    f_close(&f);
}

TEST(K14_a_base_service_is_a_label_only_for_internal_or_no_kind)
{
    for (uint8_t kind = WEIR_KIND_NONE; kind <= WEIR_KIND_CONSUMER; kind++) {
        struct fixture f;
        const struct weir_stats_opts o = f_opts(&f);
        f_open(&f, &o);
        struct weir_value slots[WEIR_TAG_SLOTS_MAX];
        slots[WEIR_TAG_BASE_SERVICE] =
            (struct weir_value){.type = WEIR_VALUE_BYTES, .len = 4, .v = {.ptr = "base"}};
        struct weir_span s = f_span("a", "r", f.now, 10);
        s.kind = kind;
        s.slots = slots;
        s.present = 1u << WEIR_TAG_BASE_SERVICE;
        f_publish(&f, &s, 1);
        f_seal(&f);
        struct weir_batch_info info;
        struct weir_batch *const b = f_take(&f, &info);
        const bool wanted = kind == WEIR_KIND_NONE || kind == WEIR_KIND_INTERNAL;
        T_TRUE(f_has(b, 0, "_dd_base_service", wanted ? "base" : NULL));
        weir_batch_release(b);
        f_close(&f);
    }
}

TEST(K17_newcomers_at_a_table_full_of_live_keys_go_to_overflow_and_cost_no_search)
{
    struct fixture f;
    struct weir_stats_opts o = f_opts(&f);
    o.max_keys = 2048;
    f_open(&f, &o);
    char name[24];
    const struct weir_source source = {.now_ns = f.now};
    for (int i = 0; i < 100000; i++) {
        (void)snprintf(name, sizeof name, "key-%d", i);
        const struct weir_span s = f_span("a", name, f.now, 10);
        T_OK(weir_stats_publish(f.p, &source, &s, 1));
        (void)weir_stats_poll(f.st, f.now, f.now - f.wall_minus_mono);
    }
    f_seal(&f);
    const struct weir_batch_info info = take(&f);
    T_EQ_U64(info.rows, 2049);
    T_EQ_U64(info.counts.overflow, 100000 - 2048);
    T_EQ_U64(info.counts.aggregated, 100000);
    f_close(&f);
}
