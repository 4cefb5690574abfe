/* SPDX-License-Identifier: Apache-2.0 */
#include "fixture.h"

static void one(struct fixture *f, int64_t end_ns)
{
    const struct weir_span s = f_span("a", "r", end_ns, 1000);
    f_publish(f, &s, 1);
}

static void at(struct fixture *f, int64_t seconds)
{
    f->now = f_t0 + seconds * f_second;
    f_poll(f);
}

/* The next batch must be of that window and hold that many hits. */
static struct weir_batch_info expect(struct fixture *f, int64_t start_s, uint64_t hits)
{
    struct weir_batch_info info;
    struct weir_batch *const b = f_take(f, &info);
    if (!b)
        T_FAIL("no batch, want the window at %lld s", (long long)start_s);
    T_EQ_I64(info.start_ns, f_t0 + start_s * f_second);
    T_EQ_U64(info.counts.rows_weight, hits * WEIR_WEIGHT_ONE);
    weir_batch_release(b);
    return info;
}

static void expect_none(struct fixture *f)
{
    T_TRUE(!weir_stats_take_batch(f->st));
}

TEST(a_window_holds_its_start_and_not_its_end)
{
    struct fixture f;
    const struct weir_stats_opts o = f_opts(&f);
    f_open(&f, &o);
    at(&f, 25);
    one(&f, f_t0 + 10 * f_second);     /* the start of the second */
    one(&f, f_t0 + 10 * f_second - 1); /* the last of the first */
    at(&f, 60);
    (void)expect(&f, 0, 1);
    (void)expect(&f, 10, 1);
    expect_none(&f);
    f_close(&f);
}

TEST(a_window_is_sealed_at_its_end_and_lateness)
{
    struct fixture f;
    const struct weir_stats_opts o = f_opts(&f);
    f_open(&f, &o);
    one(&f, f_t0 + 1);
    f.now = f_t0 + 30 * f_second - 1;
    f_poll(&f);
    expect_none(&f);
    T_EQ_I64(weir_stats_next_seal_for_ns(f.st, f.now - f.wall_minus_mono), 1);
    at(&f, 30);
    (void)expect(&f, 0, 1);
    f_close(&f);
}

TEST(late_spans_go_by_the_policy)
{
    for (uint32_t policy = WEIR_LATE_FOLD; policy <= WEIR_LATE_CORRECT; policy++) {
        struct fixture f;
        struct weir_stats_opts o = f_opts(&f);
        o.late = policy;
        f_open(&f, &o);
        at(&f, 100);
        one(&f, f_t0 + 80 * f_second); /* the oldest open window: in time */
        one(&f, f_t0 + 79 * f_second); /* late */
        one(&f, f_t0 + 41 * f_second); /* later */
        at(&f, 110);
        if (policy == WEIR_LATE_CORRECT) {
            const struct weir_batch_info info = expect(&f, 40, 1);
            T_EQ_U64(info.flags, WEIR_BATCH_CORRECTION);
            T_EQ_U64(info.counts.late, 1);
            (void)expect(&f, 70, 1);
        }
        const struct weir_batch_info info = expect(&f, 80, policy == WEIR_LATE_FOLD ? 3 : 1);
        T_EQ_U64(info.counts.late, policy == WEIR_LATE_FOLD ? 2 : 0);
        T_EQ_U64(info.counts.dropped[WEIR_DROP_LATE], policy == WEIR_LATE_DROP ? 2 : 0);
        expect_none(&f);
        struct weir_stats_health h;
        weir_stats_get_health(f.st, &h);
        T_EQ_U64(h.late, policy == WEIR_LATE_DROP ? 0 : 2);
        f_close(&f);
    }
}

TEST(a_window_that_is_due_but_not_sealed_yet_still_takes_its_own)
{
    for (uint32_t policy = WEIR_LATE_FOLD; policy <= WEIR_LATE_CORRECT; policy++) {
        struct fixture f;
        struct weir_stats_opts o = f_opts(&f);
        o.late = policy;
        f_open(&f, &o);
        one(&f, f_t0);
        /* Published before the poll that finds the window due: drained first, sealed then. */
        const struct weir_span s = f_span("a", "r", f_t0 + 1, 1000);
        const struct weir_source source = {.now_ns = f.now};
        T_OK(weir_stats_publish(f.p, &source, &s, 1));
        at(&f, 30);
        T_EQ_U64(expect(&f, 0, 2).counts.late, 0);
        expect_none(&f);
        f_close(&f);
    }
}

TEST(the_future_is_booked_now_and_makes_no_window)
{
    struct fixture f;
    const struct weir_stats_opts o = f_opts(&f);
    f_open(&f, &o);
    for (int64_t i = 0; i < 1000; i++) /* case C10 */
        one(&f, f_t0 + i * 10 * f_second);
    one(&f, INT64_MAX);
    struct weir_stats_health h;
    weir_stats_get_health(f.st, &h);
    T_EQ_U64(h.open_windows, 1);
    T_EQ_U64(h.future, 1000);
    at(&f, 40);
    (void)expect(&f, 0, 1001);
    f_close(&f);
}

TEST(a_backlog_replayed_gets_its_true_windows_when_asked)
{
    struct fixture f; /* case D07: an hour in one go */
    struct weir_stats_opts o = f_opts(&f);
    o.lateness_for_ns = 600 * f_second;
    o.late = WEIR_LATE_CORRECT;
    f_open(&f, &o);
    at(&f, 3600);
    for (int64_t s = 0; s < 3600; s++)
        one(&f, f_t0 + s * f_second);
    at(&f, 4300);
    for (int64_t w = 0; w < 360; w++)
        (void)expect(&f, w * 10, 10);
    expect_none(&f);
    f_close(&f);
}

TEST(past_the_bound_of_corrections_late_spans_are_folded)
{
    struct fixture f;
    struct weir_stats_opts o = f_opts(&f);
    o.late = WEIR_LATE_CORRECT;
    o.max_corrections = 2;
    f_open(&f, &o);
    at(&f, 100);
    for (int64_t w = 1; w <= 4; w++)
        one(&f, f_t0 + w * 10 * f_second);
    at(&f, 140);
    (void)expect(&f, 10, 1);
    (void)expect(&f, 20, 1);
    (void)expect(&f, 80, 2);
    f_close(&f);
}

TEST(a_step_of_the_wall_clock_seals_and_goes_on)
{
    struct fixture f;
    const struct weir_stats_opts o = f_opts(&f);
    f_open(&f, &o);
    for (int64_t step = 3600; step >= -3600; step -= 7200) {
        const int64_t start = (f.now - f_t0) / f_second;
        one(&f, f.now);
        f.now += step * f_second;
        f.wall_minus_mono += step * f_second;
        f_poll(&f);
        T_EQ_U64(expect(&f, start, 1).flags, WEIR_BATCH_EARLY);
        /* The new time goes on as any other. */
        one(&f, f.now);
        f.now += 40 * f_second;
        f_poll(&f);
        T_EQ_U64(expect(&f, start + step, 1).flags, 0);
        expect_none(&f);
    }
    struct weir_stats_health h;
    weir_stats_get_health(f.st, &h);
    T_EQ_U64(h.clock_steps, 2);
    f_close(&f);
}

TEST(a_small_step_back_reopens_nothing)
{
    struct fixture f;
    const struct weir_stats_opts o = f_opts(&f);
    f_open(&f, &o);
    at(&f, 31);
    one(&f, f_t0 + 31 * f_second);
    at(&f, 29);
    one(&f, f_t0 + 29 * f_second);
    at(&f, 100);
    (void)expect(&f, 20, 1);
    (void)expect(&f, 30, 1);
    f_close(&f);
}

TEST(at_the_cap_newcomers_overflow_and_idle_entries_make_room)
{
    struct fixture f;
    struct weir_stats_opts o = f_opts(&f);
    o.max_keys = 10;
    f_open(&f, &o);
    char name[16];
    for (int i = 0; i < 25; i++) {
        (void)snprintf(name, sizeof name, "r%d", i);
        const struct weir_span s = f_span("a", name, f.now, 1000);
        f_publish(&f, &s, 1);
    }
    at(&f, 40);
    struct weir_batch_info info;
    struct weir_batch *const b = f_take(&f, &info);
    T_EQ_U64(info.rows, 11);
    T_EQ_U64(info.counts.overflow, 15);
    bool seen = false;
    for (size_t i = 0; i < info.rows; i++) {
        if (!f_has(b, i, "span_name", "tracer_blocked_value"))
            continue;
        struct weir_row r;
        weir_batch_get_row(b, i, &r);
        T_EQ_U64(r.hits, 15 * WEIR_WEIGHT_ONE);
        seen = true;
    }
    T_TRUE(seen);
    weir_batch_release(b);
    /* All ten are idle now: ten new names find room, none overflows. */
    for (int i = 100; i < 110; i++) {
        (void)snprintf(name, sizeof name, "r%d", i);
        const struct weir_span s = f_span("a", name, f.now, 1000);
        f_publish(&f, &s, 1);
    }
    struct weir_stats_health h;
    weir_stats_get_health(f.st, &h);
    T_EQ_U64(h.overflow, 15);
    T_EQ_U64(h.keys, 10);
    f_close(&f);
}

/* Case C06: 100,000 names in ten seconds, under a limit of 1,000. */
TEST(a_flood_of_names_stays_within_the_limit_and_overflows_to_the_span)
{
    enum { NAMES = 100000, LIMIT = 1000, BATCH = 100 };
    struct fixture f;
    struct weir_stats_opts o = f_opts(&f);
    o.max_keys = LIMIT;
    f_open(&f, &o);
    static char names[BATCH][16];
    static struct weir_span spans[BATCH];
    long long at_limit = 0;
    for (int i = 0; i < NAMES; i += BATCH) {
        for (int k = 0; k < BATCH; k++) {
            (void)snprintf(names[k], sizeof names[k], "r%d", i + k);
            spans[k] = f_span("a", names[k], f.now, 1000);
        }
        f_publish(&f, spans, BATCH);
        if (i == LIMIT)
            at_limit = f.heap.live;
    }
    T_TRUE(f.heap.live <= at_limit);
    struct weir_stats_health h;
    weir_stats_get_health(f.st, &h);
    T_EQ_U64(h.keys, LIMIT);
    T_EQ_U64(h.overflow, NAMES - LIMIT);
    at(&f, 40);
    struct weir_batch_info info;
    struct weir_batch *const b = f_take(&f, &info);
    T_EQ_U64(info.rows, LIMIT + 1);
    T_EQ_U64(info.counts.aggregated, NAMES);
    T_EQ_U64(info.counts.overflow, NAMES - LIMIT);
    weir_batch_release(b);
    f_close(&f);
}

TEST(entries_go_when_they_were_idle_for_long)
{
    struct fixture f;
    struct weir_stats_opts o = f_opts(&f);
    o.idle_windows = 5;
    f_open(&f, &o);
    one(&f, f_t0);
    struct weir_stats_health h;
    for (int64_t s = 10; s <= 50; s += 10) {
        at(&f, s);
        weir_stats_get_health(f.st, &h);
        T_EQ_U64(h.keys, 1);
    }
    at(&f, 60);
    weir_stats_get_health(f.st, &h);
    T_EQ_U64(h.keys, 0);
    T_EQ_U64(h.expunged, 1);
    f_close(&f);
}

TEST(an_abandoned_payload_leaves_no_trace)
{
    struct fixture f;
    const struct weir_stats_opts o = f_opts(&f);
    f_open(&f, &o);
    const struct weir_source source = {.now_ns = f.now};
    struct weir_span s = f_span("a", "r\xff", f.now, 1000);
    s.duration_ns = -1;
    weir_stats_begin(f.p, &source);
    T_OK(weir_stats_add(f.p, &s));
    T_OK(weir_stats_trace_end(f.p));
    T_OK(weir_stats_add(f.p, &s));
    f_poll(&f);
    weir_stats_abandon(f.p);
    f_poll(&f);
    f_seal(&f);
    expect_none(&f);
    struct weir_stats_health h;
    weir_stats_get_health(f.st, &h);
    T_EQ_U64(h.received, 0);
    T_EQ_U64(h.utf8_repaired, 0);
    T_EQ_U64(h.negative_duration, 0);
    f_close(&f);
}

TEST(a_payload_larger_than_the_ring_goes_in_pieces)
{
    struct fixture f;
    struct weir_stats_opts o = f_opts(&f);
    T_OK(weir_stats_new(&o, &f.st));
    T_OK(weir_producer_new(f.st, 4096, WEIR_PRODUCER_OWNER, &f.p));
    f.now = f_t0;
    f.wall_minus_mono = f_wall_minus_mono;
    f_poll(&f);
    const struct weir_source source = {.now_ns = f.now};
    const struct weir_span s = f_span("a", "r", f.now, 1000);
    weir_stats_begin(f.p, &source);
    int full = 0;
    for (int i = 0; i < 1000; i++) {
        int r = weir_stats_add(f.p, &s);
        if (r == WEIR_EFULL) {
            full++;
            weir_stats_commit(f.p);
            f_poll(&f);
            r = weir_stats_add(f.p, &s);
        }
        T_OK(r);
        if (i % 3 == 2)
            T_OK(weir_stats_trace_end(f.p));
    }
    T_OK(weir_stats_trace_end(f.p));
    weir_stats_commit(f.p);
    f_poll(&f);
    T_TRUE(full > 5);
    f_seal(&f);
    (void)expect(&f, 0, 1000);
    f_close(&f);
}

TEST(a_full_inbox_drops_whole_traces_and_counts_them)
{
    struct fixture f;
    struct weir_stats_opts o = f_opts(&f);
    T_OK(weir_stats_new(&o, &f.st));
    T_OK(weir_producer_new(f.st, 4096, 0, &f.p));
    f.now = f_t0;
    f.wall_minus_mono = f_wall_minus_mono;
    f_poll(&f);
    const struct weir_source source = {.now_ns = f.now};
    struct weir_span s[3] = {f_span("a", "r", f.now, 1), f_span("a", "r", f.now, 2),
                             f_span("a", "r", f.now, 3)};
    uint64_t ok = 0;
    for (int i = 0; i < 100; i++)
        ok += weir_stats_publish(f.p, &source, s, 3) == WEIR_OK;
    T_TRUE(ok > 3 && ok < 100);
    f_poll(&f);
    f_seal(&f);
    const struct weir_batch_info info = expect(&f, 0, ok * 3);
    T_EQ_U64(info.counts.received, 300);
    T_EQ_U64(info.counts.dropped[WEIR_DROP_INBOX_FULL], 300 - ok * 3);
    f_close(&f);
}

TEST(after_a_refusal_a_shorter_trace_is_tried_and_after_a_poll_every_one)
{
    struct fixture f;
    struct weir_stats_opts o = f_opts(&f);
    T_OK(weir_stats_new(&o, &f.st));
    T_OK(weir_producer_new(f.st, 4096, 0, &f.p));
    f.now = f_t0;
    f.wall_minus_mono = f_wall_minus_mono;
    f_poll(&f);
    const struct weir_source source = {.now_ns = f.now};
    enum { LONG = 16 };
    struct weir_span s[LONG];
    for (int i = 0; i < LONG; i++)
        s[i] = f_span("a", "r", f.now, i);
    uint64_t taken = 0;
    uint64_t refused = 0;
    for (int round = 0; round < 3; round++) {
        uint64_t singles = 0;
        T_OK(weir_stats_publish(f.p, &source, s, LONG));
        taken += LONG;
        while (weir_stats_publish(f.p, &source, s, LONG) == WEIR_OK)
            taken += LONG;
        while (weir_stats_publish(f.p, &source, s, 1) == WEIR_OK)
            singles++;
        T_TRUE(singles > 0);
        for (int again = 0; again < 2; again++) {
            T_ERR(weir_stats_publish(f.p, &source, s, 1), WEIR_EFULL);
            T_ERR(weir_stats_publish(f.p, &source, s, LONG), WEIR_EFULL);
        }
        taken += singles;
        refused += LONG + 1 + 2 * (1 + LONG);
        f_poll(&f);
    }
    f_seal(&f);
    const struct weir_batch_info info = expect(&f, 0, taken);
    T_EQ_U64(info.counts.received, taken + refused);
    T_EQ_U64(info.counts.dropped[WEIR_DROP_INBOX_FULL], refused);
    f_close(&f);
}

TEST(a_snapshot_shows_open_windows_and_disturbs_nothing)
{
    struct fixture f;
    const struct weir_stats_opts o = f_opts(&f);
    f_open(&f, &o);
    at(&f, 15);
    one(&f, f_t0 + 5 * f_second);
    one(&f, f_t0 + 15 * f_second);
    one(&f, f_t0 + 16 * f_second);
    struct weir_batch *b[4];
    T_EQ_U64(weir_stats_snapshot(f.st, b, 4), 2);
    struct weir_batch_info info;
    weir_batch_get_info(b[1], &info);
    T_EQ_I64(info.start_ns, f_t0 + 10 * f_second);
    T_EQ_U64(info.flags, WEIR_BATCH_OPEN);
    T_EQ_U64(info.counts.sketch_weight, 2 * WEIR_WEIGHT_ONE);
    T_TRUE(f_has(b[1], 0, "service_name", "a"));
    weir_batch_release(b[0]);
    weir_batch_release(b[1]);
    at(&f, 60);
    (void)expect(&f, 0, 1);
    (void)expect(&f, 10, 2);
    f_close(&f);
}

static void done(struct weir_signal_node *node)
{
    ++*(int *)node->ctx;
}

TEST(clear_throws_open_windows_away_and_counts_what_was_in_them)
{
    struct fixture f;
    const struct weir_stats_opts o = f_opts(&f);
    f_open(&f, &o);
    one(&f, f.now);
    one(&f, f.now);
    int called = 0;
    struct weir_signal_node clear = {.kind = WEIR_SIGNAL_CLEAR, .done = done, .ctx = &called};
    struct weir_signal_node report = {.kind = WEIR_SIGNAL_REPORT, .done = done, .ctx = &called};
    weir_stats_signal(f.st, &clear);
    f_poll(&f);
    const struct weir_batch_info info = expect(&f, 0, 0);
    T_EQ_U64(info.counts.dropped[WEIR_DROP_CLEARED], 2);
    T_TRUE(info.flags & WEIR_BATCH_CLEARED);
    one(&f, f.now);
    weir_stats_signal(f.st, &report);
    f_poll(&f);
    T_EQ_U64(expect(&f, 0, 1).flags, WEIR_BATCH_EARLY);
    T_EQ_I64(called, 2);
    f_close(&f);
}

TEST(after_stop_what_comes_is_refused_and_counted)
{
    struct fixture f;
    const struct weir_stats_opts o = f_opts(&f);
    f_open(&f, &o);
    one(&f, f.now);
    struct weir_signal_node stop = {.kind = WEIR_SIGNAL_STOP};
    weir_stats_signal(f.st, &stop);
    f_poll(&f);
    (void)expect(&f, 0, 1);
    one(&f, f.now);
    f_seal(&f);
    const struct weir_batch_info info = expect(&f, 0, 0);
    T_EQ_U64(info.counts.dropped[WEIR_DROP_INBOX_FULL], 1);
    f_close(&f);
}

TEST(from_the_second_round_on_a_steady_set_allocates_nothing)
{
    struct fixture f;
    const struct weir_stats_opts o = f_opts(&f);
    f_open(&f, &o);
    char names[50][8];
    long after_warm_up = 0;
    for (int64_t w = 0; w < 20; w++) {
        for (int k = 0; k < 50; k++) {
            (void)snprintf(names[k], sizeof names[k], "r%d", k);
            for (int n = 0; n < 20; n++) {
                const struct weir_span s = f_span("a", names[k], f.now, 1000 * (1 + n * (k + 1)));
                f_publish(&f, &s, 1);
            }
        }
        at(&f, (w + 1) * 10);
        struct weir_batch_info info;
        for (struct weir_batch *b; (b = f_take(&f, &info));)
            weir_batch_release(b);
        if (w == 9)
            after_warm_up = f.heap.seen;
    }
    T_EQ_I64(f.heap.seen, after_warm_up);
    f_close(&f);
}
