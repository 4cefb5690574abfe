/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Producers on their own threads against one owner, with rings small enough to be full often and
 * signals in between: every span published is in a row or counted as dropped, exactly. Under TSan
 * it also shows that the orders of the inbox suffice.
 */
#include "t.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <weir/stats.h>

enum { PRODUCERS = 4, TRACES = 6000, SPANS_MAX = 5 };

struct shared {
    struct weir_stats *st;
    atomic_int running;
    atomic_int signals_done;
};

struct worker {
    struct shared *shared;
    uint64_t seed;
    uint64_t sent;
    uint64_t refused;
    pthread_t thread;
};

static const int64_t t0 = INT64_C(1800000000) * 1000000000;

static struct weir_bytes text(const char *s)
{
    return (struct weir_bytes){.ptr = s, .len = strlen(s)};
}

static void done(struct weir_signal_node *node)
{
    struct shared *const s = node->ctx;
    atomic_fetch_add(&s->signals_done, 1);
}

static void *produce(void *arg)
{
    struct worker *const w = arg;
    struct weir_producer *p = NULL;
    if (weir_producer_new(w->shared->st, 4096, 0, &p) != WEIR_OK)
        return NULL;
    struct t_rng rng = t_rng(w->seed);
    struct weir_signal_node report = {.kind = WEIR_SIGNAL_REPORT, .done = done, .ctx = w->shared};
    const struct weir_source source = {.now_ns = t0};
    for (int i = 0; i < TRACES; i++) {
        struct weir_span spans[SPANS_MAX];
        char name[SPANS_MAX][24];
        const size_t n = 1 + (size_t)t_below(&rng, SPANS_MAX);
        for (size_t k = 0; k < n; k++) {
            (void)snprintf(name[k], sizeof name[k], "resource-%u", (unsigned)t_below(&rng, 300));
            spans[k] = (struct weir_span){.service = text("svc"),
                                          .name = text("op"),
                                          .resource = text(name[k]),
                                          .trace_id = 1,
                                          .span_id = k + 1,
                                          .start_ns = t0,
                                          .duration_ns = (int64_t)t_below(&rng, 1000000)};
        }
        if (weir_stats_publish(p, &source, spans, n) == WEIR_OK)
            w->sent += n;
        else
            w->refused += n;
        if (i == TRACES / 2)
            weir_stats_signal(w->shared->st, &report);
    }
    weir_producer_free(p);
    /* The node lives on this stack until it was handled. */
    while (atomic_load(&w->shared->signals_done) < PRODUCERS)
        ;
    atomic_fetch_sub(&w->shared->running, 1);
    return NULL;
}

struct sums {
    uint64_t hits;
    uint64_t dropped;
    uint64_t received;
};

static void take_all(struct weir_stats *st, struct sums *sums)
{
    for (struct weir_batch *b; (b = weir_stats_take_batch(st)) != NULL;) {
        struct weir_batch_info info;
        weir_batch_get_info(b, &info);
        T_EQ_U64(info.counts.rows_weight, info.counts.sketch_weight);
        sums->hits += info.counts.rows_weight / WEIR_WEIGHT_ONE;
        sums->dropped += info.counts.dropped[WEIR_DROP_INBOX_FULL];
        sums->received += info.counts.received;
        weir_batch_release(b);
    }
}

TEST(every_span_of_many_producers_is_in_a_row_or_counted_as_dropped)
{
    struct shared shared = {.running = PRODUCERS};
    const struct weir_stats_opts opts = {.struct_size = sizeof opts, .max_keys = 200};
    T_OK(weir_stats_new(&opts, &shared.st));
    struct worker w[PRODUCERS];
    for (size_t i = 0; i < PRODUCERS; i++) {
        w[i] = (struct worker){.shared = &shared, .seed = t_seed() + i};
        T_EQ_I64(pthread_create(&w[i].thread, NULL, produce, &w[i]), 0);
    }
    struct sums sums = {0};
    int64_t tick = 0;
    while (atomic_load(&shared.running) > 0) {
        tick += 10000000;
        (void)weir_stats_poll(shared.st, t0 + tick, tick);
        take_all(shared.st, &sums);
    }
    uint64_t sent = 0;
    uint64_t refused = 0;
    for (size_t i = 0; i < PRODUCERS; i++) {
        (void)pthread_join(w[i].thread, NULL);
        sent += w[i].sent;
        refused += w[i].refused;
    }
    weir_stats_seal_all(shared.st, t0 + tick, tick);
    take_all(shared.st, &sums);
    T_EQ_U64(sums.hits, sent);
    T_EQ_U64(sums.dropped, refused);
    T_EQ_U64(sums.received, sent + refused);
    T_TRUE(sent > 0);
    struct weir_stats_health h;
    weir_stats_get_health(shared.st, &h);
    T_EQ_U64(h.received, sent + refused);
    weir_stats_free(shared.st);
}

static void *release_all(void *arg)
{
    struct weir_batch *const *const b = arg;
    for (size_t i = 0; i < 3; i++) {
        struct weir_batch_info info;
        weir_batch_get_info(b[i], &info);
        weir_batch_release(b[i]);
    }
    return NULL;
}

TEST(batches_come_back_from_other_threads_while_the_owner_works)
{
    struct weir_stats *st;
    T_OK(weir_stats_new(NULL, &st));
    struct weir_producer *p;
    T_OK(weir_producer_new(st, 0, WEIR_PRODUCER_OWNER, &p));
    const struct weir_span s = {.service = text("a"), .trace_id = 1, .span_id = 1, .start_ns = t0};
    const struct weir_source source = {.now_ns = t0};
    for (int round = 0; round < 50; round++) {
        struct weir_batch *b[6];
        for (size_t i = 0; i < 6; i++) {
            T_OK(weir_stats_publish(p, &source, &s, 1));
            weir_stats_seal_all(st, t0, 0);
            b[i] = weir_stats_take_batch(st);
            T_TRUE(b[i] != NULL);
        }
        pthread_t t[2];
        for (size_t i = 0; i < 2; i++)
            T_EQ_I64(pthread_create(&t[i], NULL, release_all, &b[i * 3]), 0);
        (void)weir_stats_poll(st, t0, 0);
        for (size_t i = 0; i < 2; i++)
            (void)pthread_join(t[i], NULL);
    }
    weir_producer_free(p);
    weir_stats_free(st);
}
