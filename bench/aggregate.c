/* SPDX-License-Identifier: Apache-2.0 */
/*
 * aggregate: what the owner does with records that lie in its ring: find the entry, count, add to
 * the sketch. hot_N: N keys, all live, in random order. Publishing is not in the figure, sealing
 * once a round is.
 *   span_N           the same spans, both halves: published 8 at a time, taken in by the same
 *                    thread, no seal. This is what a synchronous concentrator does; the peer.
 *   span_prepared_N  the same spans by prepared identities, beside the same peer.
 */
#include "spans.h"

#include <stdlib.h>

enum { ROUND = 1 << 20, BURST = 512, SEED = 2 };
/* A peer takes ten times as long a span, and it starts anew every round: it warms up first. */
enum { BOTH_BURST = 128, TRACE = 8, PEER_SPANS = 1 << 18 };

static const int64_t t0 = INT64_C(1800000000) * 1000000000;

struct run {
    struct weir_stats *st;
    struct weir_producer *p;
    struct bench_labels *labels;
    struct weir_stats_identity **ids; /* where spans are published by identity */
    size_t sets;
    struct bench_rng rng;
    int64_t now;
};

static struct weir_span next_span(struct run *r)
{
    const struct bench_draw d = bench_draw(&r->rng, r->sets);
    return bench_span(&r->labels[d.set], r->now, d.duration_ns, d.error);
}

static double round_of(struct run *r)
{
    int64_t spent = 0;
    r->rng.s = SEED; /* every window holds the same spans: a steady state */
    const struct weir_source source = {.now_ns = r->now};
    for (size_t at = 0; at < ROUND; at += BURST) {
        for (size_t k = 0; k < BURST; k++) {
            const struct weir_span s = next_span(r);
            if (weir_stats_publish(r->p, &source, &s, 1) != WEIR_OK)
                abort();
        }
        const int64_t from = bench_now_ns();
        (void)weir_stats_poll(r->st, r->now, r->now - t0);
        spent += bench_now_ns() - from;
    }
    r->now += INT64_C(10) * 1000000000;
    const int64_t from = bench_now_ns();
    (void)weir_stats_poll(r->st, r->now, r->now - t0);
    for (struct weir_batch *b; (b = weir_stats_take_batch(r->st)) != NULL;)
        weir_batch_release(b);
    spent += bench_now_ns() - from;
    return ROUND / ((double)spent / 1e9);
}

static void run_begin(struct run *r, struct bench_heap *heap, size_t sets)
{
    const struct weir_stats_opts o = {.struct_size = sizeof o, .alloc = bench_alloc(heap)};
    *r = (struct run){.sets = sets, .now = t0 + 1};
    if (weir_stats_new(&o, &r->st) || weir_producer_new(r->st, 0, WEIR_PRODUCER_OWNER, &r->p))
        abort();
    r->labels = bench_labels_new(r->st, sets);
    (void)weir_stats_poll(r->st, r->now, r->now - t0);
}

static void run_end(struct run *r)
{
    free(r->labels);
    free(r->ids);
    weir_producer_free(r->p);
    weir_stats_free(r->st);
}

static uint64_t dropped(const struct run *r)
{
    struct weir_stats_health h;
    weir_stats_get_health(r->st, &h);
    uint64_t sum = h.overflow;
    for (size_t i = 0; i < WEIR_DROP_COUNT; i++)
        sum += h.dropped[i];
    return sum;
}

static void hot(const struct bench *b, const char *name, size_t sets)
{
    struct bench_heap heap = {0};
    struct run r;
    run_begin(&r, &heap, sets);
    double values[1000];
    for (int i = 0; i < 6;
         i++) /* all open windows have had their turn, and sketches have met their ranges */
        (void)round_of(&r);
    const uint64_t before = heap.allocations;
    for (int i = 0; i < b->rounds; i++)
        values[i] = round_of(&r);
    const uint64_t allocations = heap.allocations - before;
    bench_report(b, name, "spans_per_s", "spans/s", BENCH_HIGHER, values, (size_t)b->rounds);
    bench_report_one(b, name, "dropped", "spans", (double)dropped(&r));
    bench_report_one(b, name, "allocations", "count", (double)allocations);
    run_end(&r);
}

/* Drawing the spans is the host's work, and outside the figure in the peer too. */
static double both_round(struct run *r)
{
    struct weir_span spans[BOTH_BURST];
    const struct weir_source source = {.now_ns = r->now};
    int64_t spent = 0;
    r->rng.s = SEED;
    for (size_t at = 0; at < ROUND; at += BOTH_BURST) {
        for (size_t k = 0; k < BOTH_BURST; k++)
            spans[k] = next_span(r);
        const int64_t from = bench_now_ns();
        for (size_t k = 0; k < BOTH_BURST; k += TRACE) {
            if (weir_stats_publish(r->p, &source, spans + k, TRACE) != WEIR_OK)
                abort();
        }
        (void)weir_stats_poll(r->st, r->now, r->now - t0);
        spent += bench_now_ns() - from;
    }
    return (double)spent / ROUND;
}

static double prepared_round(struct run *r)
{
    struct bench_draw draws[BOTH_BURST];
    int64_t spent = 0;
    r->rng.s = SEED;
    for (size_t at = 0; at < ROUND; at += BOTH_BURST) {
        for (size_t k = 0; k < BOTH_BURST; k++)
            draws[k] = bench_draw(&r->rng, r->sets);
        const int64_t from = bench_now_ns();
        for (size_t k = 0; k < BOTH_BURST; k++) {
            if (weir_stats_publish_identity(r->p, r->ids[draws[k].set], r->now,
                                            draws[k].duration_ns, draws[k].error, 0) != WEIR_OK)
                abort();
        }
        (void)weir_stats_poll(r->st, r->now, r->now - t0);
        spent += bench_now_ns() - from;
    }
    return (double)spent / ROUND;
}

static void prepare(struct run *r)
{
    r->ids = malloc(r->sets * sizeof *r->ids);
    const struct weir_source source = {.now_ns = r->now};
    for (size_t i = 0; i < r->sets; i++) {
        const struct weir_span s = bench_span(&r->labels[i], r->now, 1, false);
        if (!r->ids || weir_stats_identity_new(r->st, &source, &s, &r->ids[i]) != WEIR_OK)
            abort();
    }
}

static void both(const struct bench *b, const char *name, size_t sets, bool prepared)
{
    struct bench_heap heap = {0};
    struct run r;
    run_begin(&r, &heap, sets);
    if (prepared)
        prepare(&r);
    double (*const round)(struct run *) = prepared ? prepared_round : both_round;
    static struct bench_peer peer;
    bench_peer_init(&peer, "libdatadog", "libdatadog");
    char arg[3][24];
    (void)snprintf(arg[0], sizeof arg[0], "%zu", sets);
    (void)snprintf(arg[1], sizeof arg[1], "%d", SEED);
    (void)snprintf(arg[2], sizeof arg[2], "%d", PEER_SPANS);
    char verb[] = "hot";
    char *argv[] = {NULL, verb, arg[0], arg[1], arg[2], NULL};
    double values[1000];
    for (int i = 0; i < 6; i++) /* the rarest keys' sketches have turned to counters too */
        (void)round(&r);
    const uint64_t before = heap.allocations;
    for (int i = 0; i < b->rounds; i++) {
        values[i] = round(&r);
        bench_peer_run(&peer, argv, "ns_per_span");
    }
    const uint64_t allocations = heap.allocations - before;
    bench_report_peer(b, name, "ns_per_span", "ns", BENCH_LOWER, values, (size_t)b->rounds, &peer);
    bench_report_one(b, name, "dropped", "spans", (double)dropped(&r));
    bench_report_one(b, name, "allocations", "count", (double)allocations);
    run_end(&r);
}

int main(int argc, char **argv)
{
    struct bench b;
    bench_begin(&b, "aggregate", "Spans a second that one shard aggregates.", argc, argv);
    bench_pin(0);
    hot(&b, "hot_512", 512);
    hot(&b, "hot_2048", 2048);
    hot(&b, "hot_32768", 32768);
    both(&b, "span_512", 512, false);
    both(&b, "span_2048", 2048, false);
    both(&b, "span_prepared_512", 512, true);
    return 0;
}
