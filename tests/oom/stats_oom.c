/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stats: every allocation refused in turn, in one whole life of an engine: options of its own,
 * traces long enough for a table of parents, keys past the cap, each late policy, snapshots,
 * signals and forced seals. A refusal is a result of the call, or a count; both equations hold.
 */
#include "t.h"

#include <string.h>
#include <weir/stats.h>

enum { TRACE_SPANS = 40, ROUNDS = 6, SECOND = 1000000000 };

static const int64_t begin_ns = INT64_C(1800000000) * SECOND;

static struct weir_bytes text(const char *s)
{
    return (struct weir_bytes){s, strlen(s)};
}

static void fill_trace(struct weir_span *spans, char (*names)[16], int round, int64_t now_ns)
{
    for (int i = 0; i < TRACE_SPANS; i++) {
        (void)snprintf(names[i], sizeof names[i], "r%d", (round * 7 + i) % 30);
        spans[i] = (struct weir_span){
            .service = text(i % 3 ? "web" : "db"),
            .name = text("op"),
            .resource = text(names[i]),
            .type = text("web"),
            .trace_id = (uint64_t)round + 1,
            .span_id = (uint64_t)i + 1,
            .parent_id = (uint64_t)i / 2,
            .start_ns = now_ns - (int64_t)(i % 6) * 12 * SECOND,
            .duration_ns = INT64_C(1) << (i % 40),
            .flags = i % 5 ? 0 : WEIR_SPAN_ERROR,
        };
    }
}

struct life {
    enum weir_late late;
    struct weir_stats *st;
    struct weir_producer *p;
    int64_t now_ns;
    unsigned signalled;
    uint64_t published;
    bool refused; /* some call said so */
};

static void on_signal(struct weir_signal_node *node)
{
    ((struct life *)node->ctx)->signalled++;
}

/* Both equations of every batch. */
static void take_all(struct life *l)
{
    for (struct weir_batch *b; (b = weir_stats_take_batch(l->st));) {
        struct weir_batch_info info;
        weir_batch_get_info(b, &info);
        uint64_t terms = info.counts.aggregated + info.counts.ineligible + info.counts.partial;
        for (size_t i = 0; i < WEIR_DROP_COUNT; i++)
            terms += info.counts.dropped[i];
        T_EQ_U64(info.counts.received, terms);
        T_EQ_U64(info.counts.rows_weight, info.counts.admitted_weight);
        T_EQ_U64(info.counts.sketch_weight, info.counts.admitted_weight);
        weir_batch_release(b);
    }
}

static void publish_one(struct life *l, int round)
{
    static struct weir_span spans[TRACE_SPANS];
    static char names[TRACE_SPANS][16];
    fill_trace(spans, names, round, l->now_ns);
    const struct weir_source source = {.now_ns = l->now_ns};
    /* By hand and by the convenience in turn: whole or not at all. */
    if (round % 2) {
        const int e = weir_stats_publish(l->p, &source, spans, TRACE_SPANS);
        l->published += TRACE_SPANS; /* a refused trace is counted as dropped */
        l->refused |= e != WEIR_OK;
        return;
    }
    weir_stats_begin(l->p, &source);
    int e = WEIR_OK;
    for (int i = 0; i < TRACE_SPANS && e == WEIR_OK; i++)
        e = weir_stats_add(l->p, &spans[i]);
    if (e == WEIR_OK)
        e = weir_stats_trace_end(l->p);
    if (e == WEIR_OK) {
        weir_stats_commit(l->p);
        l->published += TRACE_SPANS;
    } else {
        weir_stats_abandon(l->p);
        l->refused = true;
    }
}

static void run_life(struct life *l)
{
    struct weir_signal_node nodes[3];
    const enum weir_signal kinds[3] = {WEIR_SIGNAL_REPORT, WEIR_SIGNAL_CLEAR, WEIR_SIGNAL_STOP};
    for (int round = 0; round < ROUNDS; round++) {
        publish_one(l, round);
        if (round % 2 == 1) {
            nodes[round / 2] =
                (struct weir_signal_node){.kind = kinds[round / 2], .done = on_signal, .ctx = l};
            weir_stats_signal(l->st, &nodes[round / 2]);
        }
        (void)weir_stats_poll(l->st, l->now_ns, l->now_ns - begin_ns);
        struct weir_batch *open[16];
        const size_t n = weir_stats_snapshot(l->st, open, 16);
        for (size_t i = 0; i < n; i++)
            weir_batch_release(open[i]);
        take_all(l);
        l->now_ns += 10 * (int64_t)SECOND;
    }
    weir_stats_seal_all(l->st, l->now_ns, l->now_ns - begin_ns);
    take_all(l);
    T_EQ_U64(l->signalled, 3);
}

static int live(const struct weir_alloc *alloc, struct life *l)
{
    static const char *const peers[] = {"peer.service", "server.address,net.peer.name"};
    static const char *const dimensions[] = {"version"};
    const struct weir_stats_opts o = {.struct_size = sizeof o,
                                      .alloc = *alloc,
                                      .late = (uint32_t)l->late,
                                      .max_keys = 24,
                                      .max_corrections = 3,
                                      .peer_tags = peers,
                                      .peer_tag_count = 2,
                                      .dimensions = dimensions,
                                      .dimension_count = 1};
    int r = weir_stats_new(&o, &l->st);
    if (r != WEIR_OK)
        return r;
    r = weir_producer_new(l->st, 64 << 10, WEIR_PRODUCER_OWNER, &l->p);
    if (r == WEIR_OK) {
        l->now_ns = begin_ns;
        (void)weir_stats_poll(l->st, l->now_ns, 0);
        run_life(l);
        struct weir_stats_health h;
        weir_stats_get_health(l->st, &h);
        uint64_t terms = h.aggregated + h.ineligible + h.partial;
        for (size_t i = 0; i < WEIR_DROP_COUNT; i++)
            terms += h.dropped[i];
        T_EQ_U64(h.received, l->published);
        T_EQ_U64(h.received, terms);
        weir_producer_free(l->p);
    }
    weir_stats_free(l->st);
    return r;
}

static void sweep(enum weir_late late)
{
    for (int sticky = 0; sticky < 2; sticky++) {
        for (long n = 0;; n++) {
            struct t_heap h = {.fail_at = n, .sticky = sticky};
            const struct weir_alloc a = {t_heap_fn, &h};
            struct life l = {.late = late};
            const int r = live(&a, &l);
            if (r != WEIR_OK)
                T_ERR(r, WEIR_ENOMEM);
            T_EQ_I64(h.live, 0);
            if (h.seen > n)
                continue;
            T_TRUE(r == WEIR_OK && !l.refused); /* with memory everything succeeds */
            break;
        }
    }
}

TEST(no_memory_anywhere_with_late_spans_folded)
{
    sweep(WEIR_LATE_FOLD);
}

TEST(no_memory_anywhere_with_late_spans_dropped)
{
    sweep(WEIR_LATE_DROP);
}

TEST(no_memory_anywhere_with_late_spans_in_corrections)
{
    sweep(WEIR_LATE_CORRECT);
}
