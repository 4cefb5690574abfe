/* SPDX-License-Identifier: Apache-2.0 */
/*
 * flush: a sealed window as the body of a POST to /v0.6/stats: 2,048 rows of some 20 spans, one in
 * eight with an error, so nearly all have both sketches.
 *   encode_2048         our mapping
 *   encode_2048_linear  the Java tracer's, as long runs of doubles
 *   publish_p999_ratio  what a producer on another core waits for one publish of eight spans, one
 *                       in a thousand, while 2,048 rows are sealed, encoded and released, over the
 *                       same between flushes
 */
#include "spans.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>
#include <weir/payload.h>

enum { KEYS = 2048, SPANS_A_KEY = 20, TRACE = 8, SEED = 3 };

static const int64_t t0 = INT64_C(1800000000) * 1000000000;

static struct weir_stats *open_stats(struct bench_heap *heap, const struct weir_mapping *mapping)
{
    static const char *const peers[] = {"peer.service"};
    const struct weir_stats_opts o = {.struct_size = sizeof o,
                                      .alloc = bench_alloc(heap),
                                      .profile = WEIR_PROFILE_CLIENT,
                                      .peer_tags = peers,
                                      .peer_tag_count = 1,
                                      .flags = WEIR_STATS_ENDPOINTS,
                                      .limits = {[WEIR_LIMIT_RESOURCE] = WEIR_LIMIT_OFF},
                                      .mapping = mapping,
                                      .max_bins = mapping ? 1024 : 0};
    struct weir_stats *st;
    if (weir_stats_new(&o, &st))
        abort();
    return st;
}

/* One window of the load. */
static struct weir_batch *fill(struct weir_stats *st)
{
    struct weir_producer *p;
    if (weir_producer_new(st, 0, WEIR_PRODUCER_OWNER, &p))
        abort();
    struct bench_labels *const labels = bench_labels_new(st, KEYS);
    struct bench_rng rng = {.s = SEED};
    const struct weir_source source = {.now_ns = t0 + 1};
    (void)weir_stats_poll(st, t0 + 1, 1);
    for (size_t i = 0; i < KEYS * SPANS_A_KEY; i += TRACE) {
        struct weir_span spans[TRACE];
        for (size_t k = 0; k < TRACE; k++) {
            const struct bench_draw d = bench_draw(&rng, KEYS);
            spans[k] = bench_span(&labels[(i + k) % KEYS], t0 + 1, d.duration_ns, d.error);
        }
        if (weir_stats_publish(p, &source, spans, TRACE) != WEIR_OK)
            abort();
        (void)weir_stats_poll(st, t0 + 1, 1);
    }
    weir_stats_seal_all(st, t0 + 1, 1);
    weir_producer_free(p);
    free(labels);
    return weir_stats_take_batch(st);
}

static void encode(const struct bench *b, const char *name, const struct weir_mapping *mapping)
{
    struct bench_heap heap = {0};
    struct weir_stats *const st = open_stats(&heap, mapping);
    struct weir_batch *const batch = fill(st);
    struct weir_payload *p;
    struct weir_bytes body;
    if (!batch || weir_payload_new(st, NULL, &p) ||
        weir_payload_encode(p, batch, t0, &body)) /* the buffer has grown */
        abort();
    struct weir_batch_info info;
    weir_batch_get_info(batch, &info);
    double values[1000];
    const uint64_t before = heap.allocations;
    for (int i = 0; i < b->rounds; i++) {
        const int64_t from = bench_now_ns();
        if (weir_payload_encode(p, batch, t0, &body))
            abort();
        values[i] = (double)(bench_now_ns() - from) / 1e6;
    }
    const uint64_t allocations = heap.allocations - before;
    bench_report(b, name, "ms", "ms", BENCH_LOWER, values, (size_t)b->rounds);
    bench_report_one(b, name, "rows", "count", (double)info.rows);
    bench_report_one(b, name, "bytes_per_row", "B", (double)body.len / (double)info.rows);
    bench_report_one(b, name, "allocations", "count", (double)allocations);
    weir_payload_free(p);
    weir_batch_release(batch);
    weir_stats_free(st);
}

/* Delays of 10 ns each; the last place is for all that is longer. */
enum { PLACES = 100000, PLACE_NS = 10, FLUSHES = 300, PACE_NS = 4000 };
static const int64_t between_ns = 5000000;

struct delays {
    uint32_t at[PLACES];
    uint64_t count;
};

static void delays_add(struct delays *d, int64_t ns)
{
    const int64_t place = ns / PLACE_NS;
    d->at[place < PLACES ? place : PLACES - 1]++;
    d->count++;
}

static double delays_p999(const struct delays *d)
{
    uint64_t left = d->count / 1000;
    size_t i = PLACES - 1;
    for (; i > 0 && left >= d->at[i]; i--)
        left -= d->at[i];
    return (double)(i * PLACE_NS);
}

/* A producer of one trace every PACE_NS, which times each publish. */
struct paced {
    struct weir_stats *st;
    atomic_bool flushing;
    atomic_bool stop;
    atomic_size_t spans; /* published so far */
    struct delays in[2]; /* between flushes, during one */
    uint64_t refused;
};

static void *publish_paced(void *arg)
{
    struct paced *const w = arg;
    struct weir_producer *p;
    bench_pin(1);
    if (weir_producer_new(w->st, 4 << 20, 0, &p))
        abort();
    struct bench_labels *const labels = bench_labels_new(w->st, KEYS);
    struct bench_rng rng = {.s = SEED};
    const struct weir_source source = {.now_ns = t0 + 1};
    int64_t next = bench_now_ns();
    for (size_t i = 0; !atomic_load(&w->stop); i += TRACE) {
        struct weir_span spans[TRACE];
        for (size_t k = 0; k < TRACE; k++) {
            const struct bench_draw d = bench_draw(&rng, KEYS);
            spans[k] = bench_span(&labels[(i + k) % KEYS], t0 + 1, d.duration_ns, d.error);
        }
        while (bench_now_ns() < next)
            continue;
        const bool before = atomic_load(&w->flushing);
        const int64_t from = bench_now_ns();
        const int r = weir_stats_publish(p, &source, spans, TRACE);
        const int64_t to = bench_now_ns();
        w->refused += r != WEIR_OK;
        delays_add(&w->in[before || atomic_load(&w->flushing)], to - from);
        atomic_store(&w->spans, i + TRACE);
        next = to + PACE_NS;
    }
    weir_producer_free(p);
    free(labels);
    return NULL;
}

/* One flush: returns how many rows it had. */
static uint64_t flush_once(struct weir_stats *st, struct weir_payload *p)
{
    uint64_t rows = 0;
    weir_stats_seal_all(st, t0 + 1, 1);
    for (struct weir_batch *batch; (batch = weir_stats_take_batch(st)) != NULL;) {
        struct weir_batch_info info;
        struct weir_bytes body;
        weir_batch_get_info(batch, &info);
        rows += info.rows;
        if (weir_payload_encode(p, batch, t0, &body))
            abort();
        weir_batch_release(batch);
    }
    return rows;
}

/* Until the next flush, when all keys were hit anew. */
static void fill_again(struct paced *w)
{
    const int64_t until = bench_now_ns() + between_ns;
    const size_t all = atomic_load(&w->spans) + KEYS + TRACE;
    while (bench_now_ns() < until || atomic_load(&w->spans) < all) {
        const struct timespec nap = {.tv_nsec = 100000};
        (void)weir_stats_poll(w->st, t0 + 1, 1);
        (void)nanosleep(&nap, NULL);
    }
    (void)weir_stats_poll(w->st, t0 + 1, 1);
}

static void producer_delay(const struct bench *b)
{
    static const char name[] = "publish_p999_ratio";
    static struct paced w;
    struct bench_heap heap = {0};
    struct weir_payload *p;
    pthread_t thread;
    w.st = open_stats(&heap, NULL);
    (void)weir_stats_poll(w.st, t0 + 1, 1);
    if (weir_payload_new(w.st, NULL, &p) || pthread_create(&thread, NULL, publish_paced, &w))
        abort();
    uint64_t rows = 0;
    for (int i = 0; i < FLUSHES; i++) {
        fill_again(&w);
        atomic_store(&w.flushing, true);
        rows += flush_once(w.st, p);
        atomic_store(&w.flushing, false);
    }
    atomic_store(&w.stop, true);
    (void)pthread_join(thread, NULL);
    (void)weir_stats_poll(w.st, t0 + 1, 1);
    (void)flush_once(w.st, p);
    const double outside = delays_p999(&w.in[0]);
    const double during = delays_p999(&w.in[1]);
    bench_report_one(b, name, "ratio", "", during / outside);
    bench_report_one(b, name, "during_ns", "ns", during);
    bench_report_one(b, name, "outside_ns", "ns", outside);
    bench_report_one(b, name, "publishes_during", "count", (double)w.in[1].count);
    bench_report_one(b, name, "rows", "count", (double)rows / FLUSHES);
    bench_report_one(b, name, "refused", "count", (double)w.refused);
    weir_payload_free(p);
    weir_stats_free(w.st);
}

int main(int argc, char **argv)
{
    struct bench b;
    struct weir_mapping *linear;
    bench_begin(&b, "flush", "Milliseconds from a sealed window to the bytes of a body.", argc,
                argv);
    bench_pin(0);
    if (weir_mapping_new(NULL, WEIR_MAPPING_LINEAR, exp2(1.0 / 64), 0, &linear))
        abort();
    encode(&b, "encode_2048", NULL);
    encode(&b, "encode_2048_linear", linear);
    producer_delay(&b);
    weir_mapping_unref(linear);
    return 0;
}
