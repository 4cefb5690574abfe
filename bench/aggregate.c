/* SPDX-License-Identifier: Apache-2.0 */
/*
 * aggregate: what the owner does with records that lie in its ring: find the entry, count, add to
 * the sketch. hot_N: N keys, all live, in random order. Publishing is not in the figure, sealing
 * once a round is.
 */
#include "spans.h"

#include <stdlib.h>

enum { ROUND = 1 << 20, BURST = 512 };

static const int64_t t0 = INT64_C(1800000000) * 1000000000;

struct run {
    struct weir_stats *st;
    struct weir_producer *p;
    struct bench_labels *labels;
    size_t sets;
    struct bench_rng rng;
    int64_t now;
};

static double round_of(struct run *r)
{
    int64_t spent = 0;
    r->rng.s = 2; /* every window holds the same spans: a steady state */
    const struct weir_source source = {.now_ns = r->now};
    for (size_t at = 0; at < ROUND; at += BURST) {
        for (size_t k = 0; k < BURST; k++) {
            const struct weir_span s =
                bench_span(&r->labels[bench_next(&r->rng) % r->sets], r->now,
                           bench_latency_ns(&r->rng), bench_next(&r->rng) % 8 == 0);
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

static void hot(const struct bench *b, const char *name, size_t sets)
{
    struct bench_heap heap = {0};
    const struct weir_stats_opts o = {.struct_size = sizeof o, .alloc = bench_alloc(&heap)};
    struct run r = {.sets = sets, .now = t0 + 1};
    if (weir_stats_new(&o, &r.st) || weir_producer_new(r.st, 0, WEIR_PRODUCER_OWNER, &r.p))
        abort();
    r.labels = bench_labels_new(r.st, sets);
    (void)weir_stats_poll(r.st, r.now, r.now - t0);
    double values[1000];
    for (int i = 0; i < 6;
         i++) /* all open windows have had their turn, and sketches have met their ranges */
        (void)round_of(&r);
    const uint64_t before = heap.allocations;
    for (int i = 0; i < b->rounds; i++)
        values[i] = round_of(&r);
    const uint64_t allocations = heap.allocations - before;
    struct weir_stats_health h;
    weir_stats_get_health(r.st, &h);
    uint64_t dropped = h.overflow;
    for (size_t i = 0; i < WEIR_DROP_COUNT; i++)
        dropped += h.dropped[i];
    bench_report(b, name, "spans_per_s", "spans/s", BENCH_HIGHER, values, (size_t)b->rounds);
    bench_report_one(b, name, "dropped", "spans", (double)dropped);
    bench_report_one(b, name, "allocations", "count", (double)allocations);
    free(r.labels);
    weir_producer_free(r.p);
    weir_stats_free(r.st);
}

int main(int argc, char **argv)
{
    struct bench b;
    bench_begin(&b, "aggregate", "Spans a second that one shard aggregates.", argc, argv);
    bench_pin(0);
    hot(&b, "hot_512", 512);
    hot(&b, "hot_2048", 2048);
    return 0;
}
