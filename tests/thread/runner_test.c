/* SPDX-License-Identifier: Apache-2.0 */
/* The owner on a thread of its own, and producers that are found by their threads. */
#include "t.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <weir/stats.h>

enum { PRODUCERS = 8, TRACES = 4000 };

static const int64_t t0 = INT64_C(1800000000) * 1000000000;

struct taker {
    struct weir_stats *st;
    atomic_uint_fast64_t hits;
    atomic_uint_fast64_t dropped;
    atomic_uint_fast64_t received;
    atomic_uint_fast64_t rows;
    atomic_uint_fast64_t health_received;
    atomic_int health_calls;
    atomic_int_fast64_t time_ns;
    int from_callback; /* what flush says there */
};

static struct weir_bytes text(const char *s)
{
    return (struct weir_bytes){.ptr = s, .len = strlen(s)};
}

static void on_batch(void *ctx, struct weir_batch *batch)
{
    struct taker *const t = ctx;
    struct weir_batch_info info;
    weir_batch_get_info(batch, &info);
    atomic_fetch_add(&t->hits, info.counts.rows_weight / WEIR_WEIGHT_ONE);
    atomic_fetch_add(&t->dropped, info.counts.dropped[WEIR_DROP_INBOX_FULL]);
    atomic_fetch_add(&t->received, info.counts.received);
    atomic_fetch_add(&t->rows, info.rows);
    t->from_callback = weir_stats_flush(t->st);
    weir_batch_release(batch);
}

static void on_health(void *ctx, const struct weir_stats_health *health)
{
    struct taker *const t = ctx;
    atomic_store(&t->health_received, health->received);
    atomic_fetch_add(&t->health_calls, 1);
}

static void steady_clock(void *ctx, int64_t *ret_wall_ns, int64_t *ret_mono_ns)
{
    struct taker *const t = ctx;
    const int64_t now = atomic_fetch_add(&t->time_ns, 1000);
    *ret_wall_ns = t0 + now;
    *ret_mono_ns = now;
}

static struct weir_stats_start_opts start_opts(struct taker *t)
{
    return (struct weir_stats_start_opts){.struct_size = sizeof(struct weir_stats_start_opts),
                                          .ctx = t,
                                          .batch = on_batch,
                                          .health = on_health,
                                          .clock = steady_clock,
                                          .clock_ctx = t,
                                          .poll_for_ns = 1000000};
}

static void open_taker(struct taker *t)
{
    memset(t, 0, sizeof *t);
    const struct weir_stats_opts o = {.struct_size = sizeof o, .max_keys = 200};
    T_OK(weir_stats_new(&o, &t->st));
}

static int publish(struct weir_stats *st, const char *resource)
{
    struct weir_producer *p;
    const int r = weir_stats_producer(st, &p);
    if (r != WEIR_OK)
        return r;
    const struct weir_source source = {.now_ns = t0};
    const struct weir_span s = {.service = text("svc"),
                                .name = text("op"),
                                .resource = text(resource),
                                .trace_id = 1,
                                .span_id = 1,
                                .start_ns = t0};
    return weir_stats_publish(p, &source, &s, 1);
}

struct worker {
    struct weir_stats *st;
    uint64_t taken;
    uint64_t refused;
    pthread_t thread;
};

static void *produce(void *arg)
{
    struct worker *const w = arg;
    char name[24];
    for (int i = 0; i < TRACES; i++) {
        (void)snprintf(name, sizeof name, "r%d", i % 300);
        if (publish(w->st, name) == WEIR_OK)
            w->taken++;
        else
            w->refused++;
        if (i == TRACES / 2 && weir_stats_flush(w->st) != WEIR_OK)
            w->taken = 0;
    }
    return NULL;
}

TEST(eight_threads_find_their_producers_and_the_librarys_thread_takes_all_in)
{
    struct taker t;
    open_taker(&t);
    const struct weir_stats_start_opts o = start_opts(&t);
    T_OK(weir_stats_start(t.st, &o));
    T_ERR(weir_stats_start(t.st, &o), WEIR_EBUSY);
    uint64_t taken = 0;
    uint64_t refused = 0;
    for (int round = 0; round < 10; round++) { /* 80 threads in all, more than there are rings */
        struct worker w[PRODUCERS];
        for (size_t i = 0; i < PRODUCERS; i++) {
            w[i] = (struct worker){.st = t.st};
            T_EQ_I64(pthread_create(&w[i].thread, NULL, produce, &w[i]), 0);
        }
        for (size_t i = 0; i < PRODUCERS; i++) {
            (void)pthread_join(w[i].thread, NULL);
            T_TRUE(w[i].taken > 0);
            taken += w[i].taken;
            refused += w[i].refused;
        }
    }
    weir_stats_stop(t.st);
    T_EQ_U64(taken + refused, 10 * PRODUCERS * TRACES);
    T_EQ_U64(t.hits, taken);
    T_EQ_U64(t.dropped, refused);
    T_EQ_U64(t.received, taken + refused);
    T_EQ_U64(t.health_received, taken + refused);
    T_TRUE(t.health_calls > 1);
    T_ERR(t.from_callback, WEIR_EINVAL);
    weir_stats_free(t.st);
}

TEST(a_flush_returns_when_what_was_published_before_it_is_with_the_taker)
{
    struct taker t;
    open_taker(&t);
    T_ERR(weir_stats_flush(t.st), WEIR_EINVAL); /* not started */
    const struct weir_stats_start_opts o = start_opts(&t);
    T_OK(weir_stats_start(t.st, &o));
    for (uint64_t i = 1; i <= 20; i++) {
        T_OK(publish(t.st, "r"));
        T_OK(weir_stats_flush(t.st));
        T_EQ_U64(t.hits, i);
    }
    weir_stats_free(t.st); /* stops it */
}

TEST(after_a_stop_what_is_published_waits_for_the_next_start)
{
    struct taker t;
    open_taker(&t);
    const struct weir_stats_start_opts o = start_opts(&t);
    weir_stats_stop(t.st); /* nothing was started */
    T_OK(weir_stats_start(t.st, &o));
    T_OK(publish(t.st, "a"));
    weir_stats_stop(t.st);
    T_EQ_U64(t.hits, 1);
    T_OK(publish(t.st, "b"));
    T_EQ_U64(t.hits, 1);
    T_OK(weir_stats_start(t.st, &o));
    weir_stats_stop(t.st);
    T_EQ_U64(t.hits, 2);
    weir_stats_free(t.st);
}

TEST(two_instances_do_not_see_each_other)
{
    struct taker t[2];
    for (size_t i = 0; i < 2; i++) {
        open_taker(&t[i]);
        const struct weir_stats_start_opts o = start_opts(&t[i]);
        T_OK(weir_stats_start(t[i].st, &o));
    }
    struct weir_producer *p[2];
    T_OK(weir_stats_producer(t[0].st, &p[0]));
    T_OK(weir_stats_producer(t[1].st, &p[1]));
    T_TRUE(p[0] != p[1]);
    for (int i = 0; i < 30; i++)
        T_OK(publish(t[0].st, "first"));
    for (int i = 0; i < 7; i++)
        T_OK(publish(t[1].st, "second"));
    T_OK(weir_stats_flush(t[0].st));
    T_EQ_U64(t[0].hits, 30);
    weir_stats_free(t[0].st);
    T_OK(publish(t[1].st, "second"));
    T_OK(weir_stats_flush(t[1].st));
    T_EQ_U64(t[1].hits, 8);
    T_EQ_U64(t[1].rows, 1);
    weir_stats_free(t[1].st);
}

TEST(without_a_clock_of_the_hosts_the_systems_is_read)
{
    struct taker t;
    open_taker(&t);
    struct weir_stats_start_opts o = start_opts(&t);
    o.clock = NULL;
    T_OK(weir_stats_start(t.st, &o));
    T_OK(publish(t.st, "r"));
    weir_stats_stop(t.st);
    T_EQ_U64(t.hits, 1);
    T_EQ_I64(t.time_ns, 0);
    weir_stats_free(t.st);
}

TEST(start_refuses_what_it_cannot_run_with)
{
    struct taker t;
    open_taker(&t);
    struct weir_stats_start_opts o = start_opts(&t);
    T_ERR(weir_stats_start(t.st, NULL), WEIR_EINVAL);
    o.batch = NULL;
    T_ERR(weir_stats_start(t.st, &o), WEIR_EINVAL);
    o = start_opts(&t);
    o.poll_for_ns = 199999;
    T_ERR(weir_stats_start(t.st, &o), WEIR_EINVAL);
    o.poll_for_ns = INT64_C(60000000001);
    T_ERR(weir_stats_start(t.st, &o), WEIR_EINVAL);
    o = start_opts(&t);
    o.struct_size = 1;
    T_ERR(weir_stats_start(t.st, &o), WEIR_EINVAL);
    weir_stats_free(t.st);
}

static int take_a_producer(const struct weir_alloc *alloc, void *ctx)
{
    (void)ctx;
    const struct weir_stats_opts o = {.struct_size = sizeof o, .alloc = *alloc};
    struct weir_stats *st;
    int r = weir_stats_new(&o, &st);
    if (r != WEIR_OK)
        return r;
    struct weir_producer *p;
    r = weir_stats_producer(st, &p);
    struct taker t = {.st = st};
    const struct weir_stats_start_opts so = start_opts(&t);
    if (r == WEIR_OK)
        r = weir_stats_start(st, &so);
    if (r == WEIR_OK)
        r = weir_stats_flush(st);
    weir_stats_free(st);
    return r;
}

TEST(a_thread_for_whose_producer_there_is_no_memory_is_told_so)
{
    t_each_oom(take_a_producer, NULL);
}
