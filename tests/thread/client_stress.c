/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A tracer's statistics under way: eight producers with prepared identities and whole traces, over
 * limits and the cap of keys, while other threads clear and flush and windows turn.
 * What was published is what is in rows, dropped by reason, or did not count.
 */
#include "t.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <weir/stats.h>

enum { PRODUCERS = 8, TRACES = 4000, SPANS = 3, SIGNALS = 40 };

static const int64_t t0 = INT64_C(1800000000) * 1000000000;

struct shared {
    struct weir_stats *st;
    atomic_int_fast64_t time_ns;
    atomic_int producing;
    atomic_int signals_done;
    atomic_int faults;
    atomic_uint_fast64_t received;
    atomic_uint_fast64_t aggregated;
    atomic_uint_fast64_t ineligible;
    atomic_uint_fast64_t dropped[WEIR_DROP_COUNT];
    atomic_uint_fast64_t rows_weight;
    atomic_uint_fast64_t admitted_weight;
    atomic_uint_fast64_t overflow;
};

static void on_batch(void *ctx, struct weir_batch *batch)
{
    struct shared *const t = ctx;
    struct weir_batch_info info;
    weir_batch_get_info(batch, &info);
    const struct weir_window_counts *const c = &info.counts;
    atomic_fetch_add(&t->received, c->received);
    atomic_fetch_add(&t->aggregated, c->aggregated);
    atomic_fetch_add(&t->ineligible, c->ineligible);
    atomic_fetch_add(&t->overflow, c->overflow);
    for (size_t i = 0; i < WEIR_DROP_COUNT; i++)
        atomic_fetch_add(&t->dropped[i], c->dropped[i]);
    atomic_fetch_add(&t->admitted_weight, c->admitted_weight);
    uint64_t hits = 0;
    for (size_t i = 0; i < info.rows; i++) {
        struct weir_row row;
        weir_batch_get_row(batch, i, &row);
        hits += row.hits;
    }
    atomic_fetch_add(&t->rows_weight, hits);
    weir_batch_release(batch);
}

static void quick_clock(void *ctx, int64_t *ret_wall_ns, int64_t *ret_mono_ns)
{
    struct shared *const t = ctx;
    const int64_t now = atomic_fetch_add(&t->time_ns, 100000000);
    *ret_wall_ns = t0 + now;
    *ret_mono_ns = now;
}

struct worker {
    struct shared *t;
    pthread_t thread;
    unsigned number;
    uint64_t spans;
    uint64_t refused;
    uint64_t kept; /* traces that must be kept */
};

static struct weir_bytes text(const char *s)
{
    return (struct weir_bytes){.ptr = s, .len = strlen(s)};
}

/* A server span, a client span below it, and an internal one that does not count. */
static void trace(struct worker *w, struct weir_producer *p, int i)
{
    char name[24];
    struct weir_value slots[WEIR_TAG_SLOTS_MAX];
    slots[WEIR_TAG_FIXED] = (struct weir_value){.type = WEIR_VALUE_BYTES};
    (void)snprintf(name, sizeof name, "res-%u-%d", w->number, i % 97);
    const struct weir_source source = {.now_ns = t0 + atomic_load(&w->t->time_ns)};
    struct weir_span s[SPANS];
    for (unsigned k = 0; k < SPANS; k++)
        s[k] = (struct weir_span){.service = text("svc"),
                                  .name = text("op"),
                                  .resource = text(name),
                                  .kind = k == 0   ? WEIR_KIND_SERVER
                                          : k == 1 ? WEIR_KIND_CLIENT
                                                   : WEIR_KIND_INTERNAL,
                                  .trace_id = 1,
                                  .span_id = k + 1,
                                  .parent_id = k,
                                  .start_ns = source.now_ns,
                                  .duration_ns = 1 + i,
                                  .slots = slots};
    slots[WEIR_TAG_FIXED].v.ptr = name;
    slots[WEIR_TAG_FIXED].len = (uint32_t)strlen(name);
    s[1].present = UINT64_C(1) << WEIR_TAG_FIXED;
    s[1].flags = i % 10 == 0 ? WEIR_SPAN_ERROR : 0;
    s[1].weight = WEIR_WEIGHT_ONE * 3 / 2;
    if (weir_stats_publish(p, &source, s, SPANS) != WEIR_OK)
        w->refused += SPANS;
    w->spans += SPANS;
    w->kept += weir_stats_must_keep(p);
}

static void prepared(struct worker *w, struct weir_producer *p, int i)
{
    const struct weir_source source = {.now_ns = t0 + atomic_load(&w->t->time_ns)};
    char name[24];
    (void)snprintf(name, sizeof name, "id-%d", i % 11);
    const struct weir_span s = {.service = text("svc"), .name = text("op"), .resource = text(name)};
    struct weir_stats_identity *id;
    if (weir_stats_identity_new(w->t->st, &source, &s, &id) != WEIR_OK) {
        atomic_fetch_add(&w->t->faults, 1);
        return;
    }
    for (int k = 0; k < 4; k++)
        w->refused += weir_stats_publish_identity(p, id, source.now_ns, 10, WEIR_IDENTITY_TOP_LEVEL,
                                                  0) != WEIR_OK;
    w->spans += 4;
    weir_stats_identity_free(id);
}

static void *produce(void *arg)
{
    struct worker *const w = arg;
    struct weir_producer *p;
    if (weir_stats_producer(w->t->st, &p) != WEIR_OK) {
        atomic_fetch_add(&w->t->faults, 1);
        return NULL;
    }
    for (int i = 0; i < TRACES; i++) {
        if (i % 50 == 7)
            prepared(w, p, i);
        else
            trace(w, p, i);
        if (i % 1000 == 500 && weir_stats_flush(w->t->st) != WEIR_OK)
            atomic_fetch_add(&w->t->faults, 1);
    }
    atomic_fetch_sub(&w->t->producing, 1);
    return NULL;
}

static void signal_done(struct weir_signal_node *node)
{
    struct shared *const t = node->ctx;
    atomic_fetch_add(&t->signals_done, 1);
}

/* REPORT and CLEAR in turn, as many as are done one after the other while the others publish. */
static void *signals(void *arg)
{
    struct worker *const w = arg;
    struct weir_signal_node node[SIGNALS];
    for (int i = 0; i < SIGNALS; i++) {
        node[i] =
            (struct weir_signal_node){.kind = i % 4 == 3 ? WEIR_SIGNAL_CLEAR : WEIR_SIGNAL_REPORT,
                                      .done = signal_done,
                                      .ctx = w->t};
        weir_stats_signal(w->t->st, &node[i]);
        while (atomic_load(&w->t->signals_done) <= i) /* the node is the owner's until then */
            (void)sched_yield();
    }
    return NULL;
}

TEST(eight_producers_with_limits_reports_clears_and_flushes_lose_nothing_uncounted)
{
    static const char *const peers[] = {"peer.service"};
    struct shared t = {.producing = PRODUCERS};
    const struct weir_stats_opts o = {
        .struct_size = sizeof o,
        .profile = WEIR_PROFILE_CLIENT,
        .max_keys = 200,
        .peer_tags = peers,
        .peer_tag_count = 1,
        .limits = {[WEIR_LIMIT_RESOURCE] = 300, [WEIR_LIMIT_PEER_TAGS] = 20}};
    T_OK(weir_stats_new(&o, &t.st));
    const struct weir_stats_start_opts start = {.struct_size = sizeof start,
                                                .ctx = &t,
                                                .batch = on_batch,
                                                .clock = quick_clock,
                                                .clock_ctx = &t,
                                                .poll_for_ns = 200000};
    T_OK(weir_stats_start(t.st, &start));
    struct worker w[PRODUCERS + 1];
    for (unsigned i = 0; i < PRODUCERS + 1; i++) {
        w[i] = (struct worker){.t = &t, .number = i};
        T_EQ_I64(pthread_create(&w[i].thread, NULL, i < PRODUCERS ? produce : signals, &w[i]), 0);
    }
    uint64_t spans = 0;
    uint64_t refused = 0;
    uint64_t kept = 0;
    for (size_t i = 0; i < PRODUCERS + 1; i++) {
        (void)pthread_join(w[i].thread, NULL);
        spans += w[i].spans;
        refused += w[i].refused;
        kept += w[i].kept;
    }
    weir_stats_stop(t.st);
    T_EQ_I64(t.faults, 0);
    T_EQ_I64(t.signals_done, SIGNALS);
    uint64_t terms = t.aggregated + t.ineligible;
    for (size_t i = 0; i < WEIR_DROP_COUNT; i++)
        terms += t.dropped[i];
    T_EQ_U64(t.received, spans);
    T_EQ_U64(terms, spans);
    T_EQ_U64(t.dropped[WEIR_DROP_INBOX_FULL], refused);
    T_EQ_U64(t.rows_weight, t.admitted_weight);
    struct weir_stats_health h;
    weir_stats_get_health(t.st, &h);
    T_EQ_U64(h.received, spans);
    T_EQ_U64(h.aggregated, t.aggregated);
    T_EQ_U64(h.overflow, t.overflow);
    T_EQ_U64(h.traces_in - h.dropped_p0_traces, kept);
    T_TRUE(kept >= PRODUCERS * TRACES / 10 - PRODUCERS);
    T_TRUE(h.collapsed[WEIR_LIMIT_PEER_TAGS] > 0 && t.ineligible > 0);
    weir_stats_free(t.st);
}
