/* SPDX-License-Identifier: Apache-2.0 */
/* The whole: spans in, the store thread, views, bounds, the end. */
#include "pipeline/internal.h"

#include "../store/rows_fixture.h"
#include "plat/plat.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct rig {
    struct fx_folder f;
    struct store *s;
    uv_loop_t loop;
    struct pipeline *p;
    uint64_t published;
};

static void rig_start(struct rig *r, size_t pending_max_bytes)
{
    r->s = fx_open(&r->f);
    T_OK(uv_loop_init(&r->loop));
    const struct pipeline_opts o = {
        .loop = &r->loop,
        .store = r->s,
        .stats = {.struct_size = sizeof(struct weir_stats_opts), .seed = 7},
        .pending_max_bytes = pending_max_bytes,
    };
    T_OK(pipeline_new(&o, &r->p));
}

static struct rig *rig_new(size_t pending_max_bytes)
{
    struct rig *const r = calloc(1, sizeof *r);
    T_TRUE(r);
    r->f = fx_folder_new();
    rig_start(r, pending_max_bytes);
    return r;
}

static void rig_end(struct rig *r)
{
    pipeline_free(r->p);
    T_OK(uv_run(&r->loop, UV_RUN_DEFAULT));
    T_OK(uv_loop_close(&r->loop));
    store_close(r->s);
}

static void rig_free(struct rig *r)
{
    rig_end(r);
    fx_folder_free(&r->f);
    free(r);
}

static void hook_set(struct rig *r, void (*hook)(void *, enum writer_stage, uint64_t), void *ctx)
{
    struct writer *const w = r->p->writer;
    (void)pthread_mutex_lock(&w->lock);
    w->hook = hook;
    w->hook_ctx = ctx;
    (void)pthread_mutex_unlock(&w->lock);
}

static void publish(struct rig *r, const char *service, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        const int64_t now = plat_wall_ns();
        const struct weir_source source = {.now_ns = now};
        const struct weir_span span = {.service = {service, strlen(service)},
                                       .name = {"op", 2},
                                       .resource = {"GET /", 5},
                                       .trace_id = 1,
                                       .span_id = ++r->published,
                                       .start_ns = now - 1000000,
                                       .duration_ns = 1000000};
        T_OK(weir_stats_publish(pipeline_producer(r->p), &source, &span, 1));
    }
    pipeline_poll(r->p);
}

static void seal(struct rig *r)
{
    weir_stats_seal_all(pipeline_stats(r->p), plat_wall_ns(), plat_mono_ns());
    pipeline_poll(r->p);
}

static struct pipeline_health health(const struct rig *r)
{
    struct pipeline_health h;
    pipeline_get_health(r->p, &h);
    return h;
}

/* Run the loop until nothing waits. */
static void settle(struct rig *r)
{
    for (int i = 0; i < 5000 && health(r).batches_pending; i++) {
        (void)uv_run(&r->loop, UV_RUN_NOWAIT);
        (void)usleep(1000);
    }
    T_EQ_U64(health(r).batches_pending, 0);
    (void)uv_run(&r->loop, UV_RUN_NOWAIT);
}

struct scanning {
    struct pipeline_view *view;
    struct fx_view seen;
    int result;
};

static void *scan_on_thread(void *arg)
{
    struct scanning *const s = arg;
    const struct query_source *const source = pipeline_view_source(s->view);
    const struct query_visitor visitor = fx_visitor(&s->seen);
    s->result = source->scan(source->ctx, &fx_all, &visitor);
    return NULL;
}

/* The spans that a view shows, scanned on another thread. */
static uint64_t spans_in(struct pipeline_view *view)
{
    struct scanning s = {.view = view};
    pthread_t thread;
    T_OK(pthread_create(&thread, NULL, scan_on_thread, &s));
    T_OK(pthread_join(thread, NULL));
    T_OK(s.result);
    uint64_t hits = 0;
    for (size_t i = 0; i < s.seen.count; i++)
        hits += fx_running(&s.seen.seen[i]);
    fx_view_clear(&s.seen);
    T_EQ_U64(hits % WEIR_WEIGHT_ONE, 0);
    return hits / WEIR_WEIGHT_ONE;
}

static uint64_t spans_now(struct rig *r, bool include_open)
{
    struct pipeline_view *const v = pipeline_view_open(r->p, include_open);
    T_TRUE(v);
    const uint64_t n = spans_in(v);
    pipeline_view_close(v);
    return n;
}

TEST(sealed_spans_reach_the_store_and_are_there_after_a_restart)
{
    struct rig *const r = rig_new(0);
    publish(r, "web", 5);
    publish(r, "db", 3);
    seal(r);
    settle(r);
    struct pipeline_health h = health(r);
    T_TRUE(h.batches_sealed >= 1 && h.store_ok);
    T_EQ_U64(h.batches_stored, h.batches_sealed);
    T_EQ_U64(h.pending_bytes, 0);
    T_EQ_U64(h.store.series, 2);
    const uint64_t last = h.batches_sealed;
    publish(r, "web", 4); /* open at the stop: sealed and written by it */
    T_OK(pipeline_stop(r->p, 10 * FX_SECOND));
    h = health(r);
    T_EQ_U64(h.batches_lost, 0);
    T_EQ_U64(h.batches_stored, h.batches_sealed);
    T_TRUE(store_last_number(r->s) > last);
    rig_end(r);

    rig_start(r, 0);
    T_EQ_U64(spans_now(r, false), 12);
    struct pipeline_window w[8];
    const size_t n = pipeline_recent(r->p, w, 8); /* the last hour's are loaded */
    T_TRUE(n >= 2);
    uint64_t spans = 0;
    for (size_t i = 0; i < n; i++) {
        T_TRUE(w[i].stored && !w[i].lost);
        spans += w[i].info.counts.aggregated;
    }
    T_EQ_U64(spans, 12);
    const uint64_t before = store_last_number(r->s);
    publish(r, "web", 1);
    T_OK(pipeline_stop(r->p, 10 * FX_SECOND));
    T_TRUE(store_last_number(r->s) > before);
    T_EQ_U64(spans_now(r, true), 13); /* a view after the stop reads the store */
    rig_free(r);
}

/* As spans_now, of a query at the time now. */
static uint64_t spans_until(struct rig *r, bool include_open, int64_t until_ns)
{
    struct pipeline_view *const v = pipeline_view_open(r->p, include_open);
    T_TRUE(v);
    const struct query_source *const source = pipeline_view_source(v);
    const struct query_select select = {.after_ns = INT64_MIN, .until_ns = until_ns};
    struct fx_view seen = {0};
    const struct query_visitor visitor = fx_visitor(&seen);
    T_OK(source->scan(source->ctx, &select, &visitor));
    uint64_t hits = 0;
    for (size_t i = 0; i < seen.count; i++)
        hits += fx_running(&seen.seen[i]);
    fx_view_clear(&seen);
    pipeline_view_close(v);
    return hits / WEIR_WEIGHT_ONE;
}

TEST(a_window_that_a_stop_sealed_early_is_shown_with_the_open_ones_until_its_end)
{
    struct rig *const r = rig_new(0);
    /* All of the test within one window of ten seconds. */
    while (plat_wall_ns() % (10 * FX_SECOND) > 7 * FX_SECOND)
        (void)usleep(100000);
    publish(r, "web", 5);
    T_OK(pipeline_stop(r->p, 10 * FX_SECOND));
    rig_end(r);
    rig_start(r, 0);
    publish(r, "web", 2);
    const int64_t now = plat_wall_ns();
    T_EQ_U64(spans_until(r, false, now), 0);
    T_EQ_U64(spans_until(r, true, now), 7);
    T_EQ_U64(spans_until(r, true, now - 20 * FX_SECOND), 0);
    seal(r); /* waiting or stored: the same */
    T_EQ_U64(spans_until(r, true, now), 7);
    settle(r);
    T_EQ_U64(spans_until(r, true, now), 7);
    T_EQ_U64(spans_until(r, false, now), 0);
    T_OK(pipeline_stop(r->p, 10 * FX_SECOND));
    rig_free(r);
}

TEST(the_newest_windows_come_first_and_say_whether_they_are_stored)
{
    struct rig *const r = rig_new(0);
    publish(r, "web", 1);
    seal(r);
    settle(r);
    publish(r, "web", 2);
    seal(r);
    struct pipeline_window w[4];
    const size_t n = pipeline_recent(r->p, w, 4);
    T_TRUE(n >= 2);
    T_EQ_U64(w[0].info.counts.aggregated, 2);
    T_TRUE(!w[0].stored); /* the loop has not heard of it yet */
    T_EQ_U64(w[n - 1].info.counts.aggregated, 1);
    T_TRUE(w[n - 1].stored);
    T_EQ_U64(pipeline_recent(r->p, w, 1), 1);
    T_EQ_U64(w[0].info.counts.aggregated, 2);
    settle(r);
    T_TRUE(pipeline_recent(r->p, w, 4) >= 2 && w[0].stored);
    T_OK(pipeline_stop(r->p, 10 * FX_SECOND));
    rig_free(r);
}

/* Holds the store thread before or after a commit until it is let go. */
struct gate {
    atomic_int stage; /* enum writer_stage to stop at; -1: none */
    atomic_bool is_held;
};

static void gate_hook(void *ctx, enum writer_stage stage, uint64_t number)
{
    struct gate *const g = ctx;
    (void)number;
    while (atomic_load(&g->stage) == (int)stage) {
        atomic_store(&g->is_held, true);
        (void)usleep(200);
    }
}

static void gate_wait(struct gate *g)
{
    for (int i = 0; i < 20000 && !atomic_load(&g->is_held); i++)
        (void)usleep(200);
    T_TRUE(atomic_load(&g->is_held));
}

TEST(a_batch_is_seen_once_before_during_and_after_its_commit)
{
    struct rig *const r = rig_new(0);
    struct gate g = {.stage = WRITER_BEFORE_COMMIT};
    hook_set(r, gate_hook, &g);
    publish(r, "web", 5);
    T_EQ_U64(spans_now(r, false), 0); /* open */
    T_EQ_U64(spans_now(r, true), 5);
    seal(r);
    gate_wait(&g);
    struct pipeline_view *const early = pipeline_view_open(r->p, true);
    struct pipeline_view *const scanned = pipeline_view_open(r->p, false);
    T_EQ_U64(spans_in(scanned), 5); /* waiting: from memory */
    publish(r, "web", 2);
    T_EQ_U64(spans_now(r, false), 5);
    T_EQ_U64(spans_now(r, true), 7);
    struct pipeline_view *const with_open = pipeline_view_open(r->p, true);

    atomic_store(&g.is_held, false);
    atomic_store(&g.stage, WRITER_AFTER_COMMIT);
    gate_wait(&g); /* committed, and still in the queue */
    T_EQ_U64(spans_now(r, false), 5);
    T_EQ_U64(spans_now(r, true), 7);
    T_EQ_U64(spans_in(early), 5);
    T_EQ_U64(spans_in(scanned), 5); /* its transaction began before the commit */
    atomic_store(&g.stage, -1);
    settle(r);
    seal(r); /* what was open for with_open is sealed and stored now */
    settle(r);
    T_EQ_U64(spans_in(with_open), 7);
    T_EQ_U64(spans_in(with_open), 7);
    T_EQ_U64(spans_now(r, false), 7);
    pipeline_view_close(early);
    pipeline_view_close(scanned);
    pipeline_view_close(with_open);
    T_OK(pipeline_stop(r->p, 10 * FX_SECOND));
    rig_free(r);
}

static void slow_hook(void *ctx, enum writer_stage stage, uint64_t number)
{
    atomic_uint *const calls = ctx;
    const unsigned n = atomic_fetch_add(calls, 1);
    (void)usleep((useconds_t)((n * 2654435761u + (unsigned)stage + (unsigned)number) % 3000));
}

struct held {
    struct pipeline_view *view;
    uint64_t want;
};

static void held_check(struct held *h)
{
    T_EQ_U64(spans_in(h->view), h->want);
    pipeline_view_close(h->view);
    *h = (struct held){0};
}

TEST(whatever_the_interleaving_a_view_shows_every_span_once)
{
    enum { STEPS = 400, HELD = 5 };
    struct t_rng rng = t_rng(t_seed());
    struct rig *const r = rig_new(0);
    atomic_uint calls = 0;
    hook_set(r, slow_hook, &calls);
    struct held held[HELD] = {{0}};
    uint64_t sealed = 0;
    static const char *const services[] = {"a", "b", "c", "d"};
    for (int i = 0; i < STEPS; i++) {
        switch (t_below(&rng, 6)) {
        case 0:
        case 1:
            publish(r, services[t_below(&rng, 4)], 1 + (unsigned)t_below(&rng, 4));
            break;
        case 2:
            seal(r);
            sealed = r->published;
            break;
        case 3:
            (void)uv_run(&r->loop, UV_RUN_NOWAIT);
            (void)usleep((useconds_t)t_below(&rng, 2000));
            break;
        default: {
            struct held *const h = &held[t_below(&rng, HELD)];
            if (h->view) {
                if (t_below(&rng, 2))
                    T_EQ_U64(spans_in(h->view), h->want); /* and once more at its end */
                held_check(h);
                break;
            }
            h->view = pipeline_view_open(r->p, true);
            T_TRUE(h->view);
            h->want = r->published;
            break;
        }
        }
        if (t_below(&rng, 8) == 0) {
            /* A window may have come due besides what was sealed here. */
            const uint64_t n = spans_now(r, false);
            T_TRUE(n >= sealed && n <= r->published);
        }
    }
    for (int i = 0; i < HELD; i++) {
        if (held[i].view)
            held_check(&held[i]);
    }
    T_OK(pipeline_stop(r->p, 20 * FX_SECOND));
    T_EQ_U64(spans_now(r, false), r->published);
    const struct pipeline_health h = health(r);
    T_EQ_U64(h.batches_lost, 0);
    T_EQ_U64(h.batches_stored, h.batches_sealed);
    rig_free(r);
}

TEST(past_the_bound_the_oldest_waiting_batches_are_lost_and_counted)
{
    struct rig *const r = rig_new(1); /* everything is past it: one stays besides the one written */
    struct gate g = {.stage = WRITER_BEFORE_COMMIT};
    hook_set(r, gate_hook, &g);
    publish(r, "web", 1);
    seal(r);
    gate_wait(&g);
    struct pipeline_view *view = NULL;
    for (unsigned i = 0; i < 4; i++) {
        publish(r, "web", 10);
        seal(r);
        if (i == 0)
            view = pipeline_view_open(r->p, false);
    }
    struct pipeline_health h = health(r);
    T_EQ_U64(h.batches_pending, 2);
    T_TRUE(h.batches_lost >= 3);
    T_EQ_U64(h.lost_spans, 30);
    T_EQ_U64(h.lost_weight, 30 * WEIR_WEIGHT_ONE);
    T_EQ_U64(spans_now(r, false), 11);
    T_EQ_U64(spans_in(view), 11); /* it holds on to what was pushed out since */
    pipeline_view_close(view);
    struct pipeline_window w[16];
    const size_t n = pipeline_recent(r->p, w, 16);
    uint64_t lost = 0;
    for (size_t i = 0; i < n; i++)
        lost += w[i].lost ? w[i].info.counts.aggregated : 0;
    T_EQ_U64(lost, 30);
    atomic_store(&g.stage, -1);
    T_OK(pipeline_stop(r->p, 10 * FX_SECOND));
    T_EQ_U64(spans_now(r, false), 11);
    h = health(r);
    T_EQ_U64(h.batches_stored + h.batches_lost, h.batches_sealed);
    rig_free(r);
}

/* The store thread's hook may touch the store: it is that thread's. */
struct disk {
    struct store *s;
    atomic_bool is_full;
};

static void disk_hook(void *ctx, enum writer_stage stage, uint64_t number)
{
    struct disk *const d = ctx;
    (void)number;
    if (stage == WRITER_BEFORE_COMMIT)
        (void)sqlite3_exec(d->s->db,
                           atomic_load(&d->is_full) ? "PRAGMA max_page_count = 1"
                                                    : "PRAGMA max_page_count = 1000000",
                           NULL, NULL, NULL);
}

/* So many series that the file must grow. */
static void publish_many(struct rig *r)
{
    char service[300];
    for (int i = 0; i < 60; i++) {
        (void)snprintf(service, sizeof service, "service-%060d", i);
        publish(r, service, 1);
    }
}

TEST(batches_wait_out_a_full_disk_and_are_written_when_there_is_room)
{
    struct rig *const r = rig_new(0);
    struct disk d = {.s = r->s, .is_full = true};
    hook_set(r, disk_hook, &d);
    publish_many(r);
    seal(r);
    for (int i = 0; i < 10000 && health(r).store_errors < 2; i++)
        (void)usleep(1000);
    struct pipeline_health h = health(r);
    T_TRUE(h.store_errors >= 2 && !h.store_ok && h.batches_pending >= 1 && h.pending_bytes > 0);
    T_EQ_U64(h.batches_lost, 0);
    T_EQ_U64(spans_now(r, false), 60); /* answered from memory meanwhile */
    atomic_store(&d.is_full, false);
    settle(r);
    h = health(r);
    T_TRUE(h.store_ok);
    T_EQ_U64(h.batches_stored, h.batches_sealed);
    T_EQ_U64(spans_now(r, false), 60);
    T_OK(pipeline_stop(r->p, 10 * FX_SECOND));
    rig_free(r);
}

TEST(a_stop_gives_up_at_its_deadline_and_says_what_was_lost)
{
    struct rig *const r = rig_new(0);
    struct disk d = {.s = r->s, .is_full = true};
    hook_set(r, disk_hook, &d);
    publish_many(r);
    const int64_t before = plat_mono_ns();
    T_ERR(pipeline_stop(r->p, FX_SECOND / 5), -ETIMEDOUT);
    const int64_t took = plat_mono_ns() - before;
    T_TRUE(took >= FX_SECOND / 5 && took < 10 * FX_SECOND);
    const struct pipeline_health h = health(r);
    T_EQ_U64(h.lost_spans, 60);
    T_EQ_U64(h.batches_pending, 0);
    T_EQ_U64(h.batches_lost, h.batches_sealed);
    T_TRUE(h.store_errors >= 2);          /* it tried more than once in that time */
    T_OK(pipeline_stop(r->p, FX_SECOND)); /* a second time is nothing */
    publish(r, "late", 1);                /* polled no more */
    T_EQ_U64(spans_now(r, true), 0);
    rig_free(r);
}

TEST(the_timer_seals_without_any_poll)
{
    struct fx_folder f = fx_folder_new();
    struct store *const s = fx_open(&f);
    uv_loop_t loop;
    T_OK(uv_loop_init(&loop));
    const struct pipeline_opts o = {.loop = &loop,
                                    .store = s,
                                    .stats = {.struct_size = sizeof(struct weir_stats_opts),
                                              .window_for_ns = FX_SECOND,
                                              .lateness_for_ns = -1}};
    struct rig r = {.published = 0};
    T_OK(pipeline_new(&o, &r.p));
    publish(&r, "web", 1);
    for (int i = 0; i < 500 && health(&r).batches_stored == 0; i++) {
        (void)uv_run(&loop, UV_RUN_NOWAIT);
        (void)usleep(10000);
    }
    T_TRUE(health(&r).batches_stored >= 1);
    T_OK(pipeline_stop(r.p, 10 * FX_SECOND));
    pipeline_free(r.p);
    T_OK(uv_run(&loop, UV_RUN_DEFAULT));
    T_OK(uv_loop_close(&loop));
    store_close(s);
    fx_folder_free(&f);
}

TEST(wrong_options_of_the_engine_are_refused_and_leave_nothing_behind)
{
    struct fx_folder f = fx_folder_new();
    struct store *const s = fx_open(&f);
    uv_loop_t loop;
    T_OK(uv_loop_init(&loop));
    const struct pipeline_opts o = {
        .loop = &loop,
        .store = s,
        .stats = {.struct_size = sizeof(struct weir_stats_opts), .window_for_ns = 5}};
    struct pipeline *p = NULL;
    T_ERR(pipeline_new(&o, &p), WEIR_EINVAL);
    T_TRUE(!p);
    T_OK(uv_run(&loop, UV_RUN_DEFAULT));
    T_OK(uv_loop_close(&loop));
    store_close(s);
    fx_folder_free(&f);
}
