/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Peer tags are set by two threads while eight producers publish and the library's thread seals:
 * each span's tag is in a row by the name it was published with, and nothing is lost.
 */
#include "t.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <weir/stats.h>

enum { PRODUCERS = 8, TRACES = 3000, SETS = 20 };

static const int64_t t0 = INT64_C(1800000000) * 1000000000;

struct shared {
    struct weir_stats *st;
    atomic_int_fast64_t time_ns;
    atomic_int producing;
    atomic_uint_fast64_t by_set[SETS]; /* hits of rows that have the set's tag with its own value */
    atomic_uint_fast64_t untagged;
    atomic_uint_fast64_t strange;
    atomic_uint_fast64_t swaps;
};

static void row_seen(struct shared *t, const struct weir_batch *b, size_t row)
{
    struct weir_label l[WEIR_LABELS_MAX];
    struct weir_row r;
    weir_batch_get_row(b, row, &r);
    const uint64_t hits = r.hits / WEIR_WEIGHT_ONE;
    const size_t n = weir_batch_get_labels(b, row, l, WEIR_LABELS_MAX);
    bool tagged = false;
    for (size_t i = 0; i < n; i++) {
        if (l[i].name.len < 4 || memcmp(l[i].name.ptr, "tag_", 4) != 0)
            continue;
        unsigned set = 0;
        for (size_t k = 4; k < l[i].name.len; k++)
            set = set * 10 + (unsigned)(l[i].name.ptr[k] - '0');
        tagged = true;
        const bool same = set < SETS && l[i].value.len == l[i].name.len &&
                          memcmp(l[i].value.ptr, l[i].name.ptr, l[i].value.len) == 0;
        atomic_fetch_add(same ? &t->by_set[set] : &t->strange, hits);
    }
    if (!tagged)
        atomic_fetch_add(&t->untagged, hits);
}

static void on_batch(void *ctx, struct weir_batch *batch)
{
    struct weir_batch_info info;
    weir_batch_get_info(batch, &info);
    for (size_t i = 0; i < info.rows; i++)
        row_seen(ctx, batch, i);
    weir_batch_release(batch);
}

/* A window passes about every 50 polls. */
static void quick_clock(void *ctx, int64_t *ret_wall_ns, int64_t *ret_mono_ns)
{
    struct shared *const t = ctx;
    const int64_t now = atomic_fetch_add(&t->time_ns, 200000000);
    *ret_wall_ns = t0 + now;
    *ret_mono_ns = now;
}

struct worker {
    struct shared *t;
    pthread_t thread;
    unsigned number;
    uint64_t by_set[SETS];
    uint64_t untagged;
};

static void publish(struct worker *w, struct weir_producer *p)
{
    struct weir_value slots[WEIR_TAG_SLOTS_MAX];
    struct weir_span s = {.service = {.ptr = "svc", .len = 3},
                          .name = {.ptr = "op", .len = 2},
                          .kind = WEIR_KIND_CLIENT,
                          .trace_id = 1,
                          .span_id = 1,
                          .start_ns = t0,
                          .duration_ns = 1000,
                          .slots = slots};
    const struct weir_tags *const tags = weir_producer_tags(p);
    char value[SETS][16];
    bool has[SETS] = {false};
    for (unsigned i = 0; i < SETS; i++) {
        char name[16];
        const int len = snprintf(name, sizeof name, "tag.%u", i);
        (void)snprintf(value[i], sizeof value[i], "tag_%u", i);
        const struct weir_tag_match *const m = weir_tags_find(tags, name, (size_t)len);
        if (!m)
            continue;
        has[i] = true;
        slots[m->slot] = (struct weir_value){
            .type = WEIR_VALUE_BYTES, .len = (uint32_t)len, .v = {.ptr = value[i]}};
        s.present |= UINT64_C(1) << m->slot;
    }
    const struct weir_source source = {.now_ns = t0 + atomic_load(&w->t->time_ns)};
    if (weir_stats_publish(p, &source, &s, 1) != WEIR_OK)
        return; /* counted by the health */
    w->untagged += s.present == 0;
    for (unsigned i = 0; i < SETS; i++)
        w->by_set[i] += has[i];
}

static void *produce(void *arg)
{
    struct worker *const w = arg;
    struct weir_producer *p;
    if (weir_stats_producer(w->t->st, &p) != WEIR_OK)
        return NULL;
    for (int i = 0; i < TRACES; i++)
        publish(w, p);
    atomic_fetch_sub(&w->t->producing, 1);
    return NULL;
}

static void *swap(void *arg)
{
    struct worker *const w = arg;
    for (unsigned i = w->number; atomic_load(&w->t->producing) > 0; i += 3) {
        char a[16];
        char b[16];
        (void)snprintf(a, sizeof a, "tag.%u", i % SETS);
        (void)snprintf(b, sizeof b, "tag.%u", (i * 7 + 1) % SETS);
        const char *const names[] = {a, b};
        const int r = weir_stats_set_peer_tags(w->t->st, names, i % 2 + 1);
        if (r == WEIR_OK)
            atomic_fetch_add(&w->t->swaps, 1);
        else if (r != WEIR_EBUSY)
            atomic_fetch_add(&w->t->strange, 1);
    }
    return NULL;
}

TEST(eight_producers_publish_while_peer_tags_are_set_and_each_span_has_its_own)
{
    struct shared t = {.producing = PRODUCERS};
    const struct weir_stats_opts o = {.struct_size = sizeof o, .profile = WEIR_PROFILE_CLIENT};
    T_OK(weir_stats_new(&o, &t.st));
    const struct weir_stats_start_opts start = {.struct_size = sizeof start,
                                                .ctx = &t,
                                                .batch = on_batch,
                                                .clock = quick_clock,
                                                .clock_ctx = &t,
                                                .poll_for_ns = 200000};
    T_OK(weir_stats_start(t.st, &start));
    struct worker w[PRODUCERS + 2];
    for (unsigned i = 0; i < PRODUCERS + 2; i++) {
        w[i] = (struct worker){.t = &t, .number = i};
        T_EQ_I64(pthread_create(&w[i].thread, NULL, i < PRODUCERS ? produce : swap, &w[i]), 0);
    }
    for (size_t i = 0; i < PRODUCERS + 2; i++)
        (void)pthread_join(w[i].thread, NULL);
    weir_stats_stop(t.st);
    struct weir_stats_health h;
    weir_stats_get_health(t.st, &h);
    T_EQ_U64(h.received, PRODUCERS * TRACES);
    T_EQ_U64(h.overflow, 0);
    T_TRUE(t.swaps > 10);
    T_EQ_U64(t.strange, 0);
    uint64_t untagged = 0;
    for (size_t i = 0; i < PRODUCERS; i++)
        untagged += w[i].untagged;
    T_EQ_U64(t.untagged, untagged);
    for (size_t s = 0; s < SETS; s++) {
        uint64_t sent = 0;
        for (size_t i = 0; i < PRODUCERS; i++)
            sent += w[i].by_set[s];
        T_EQ_U64(t.by_set[s], sent);
    }
    weir_stats_free(t.st);
}
