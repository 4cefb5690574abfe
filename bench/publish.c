/* SPDX-License-Identifier: Apache-2.0 */
/*
 * publish: what a producer pays for one span: labels copied, hashed, handed over.
 *   one_producer     the owner's own thread; draining is not in the figure. Peer: the Java tracer's
 *                    accepted publish, its inbox emptied off the clock as well
 *   prepared         the same by prepared identities: no copy of labels, no hash
 *   eight_producers  eight threads into their own rings, one owner aggregating; thread CPU time of
 *                    the producers over the spans that were taken, waits for room included
 */
#include "spans.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

enum { SETS = 2048, SPANS = 1 << 19, TRACE = 8, PRODUCERS = 8 };

static const int64_t t0 = INT64_C(1800000000) * 1000000000;

struct input {
    struct bench_labels *labels;
    uint32_t *order;
    int64_t *durations;
};

static struct input input_make(const struct weir_stats *st)
{
    struct input in = {.labels = bench_labels_new(st, SETS),
                       .order = malloc(SPANS * sizeof *in.order),
                       .durations = malloc(SPANS * sizeof *in.durations)};
    struct bench_rng rng = {.s = 1};
    for (size_t i = 0; i < SPANS; i++) {
        in.order[i] = (uint32_t)(bench_next(&rng) % SETS);
        in.durations[i] = bench_latency_ns(&rng);
    }
    return in;
}

static void input_free(struct input *in)
{
    free(in->labels);
    free(in->order);
    free(in->durations);
}

/* A trace of TRACE spans, made beforehand: making it is the host's work. */
static void trace_make(const struct input *in, size_t at, struct weir_span *trace)
{
    for (size_t k = 0; k < TRACE; k++) {
        const size_t i = (at + k) % SPANS;
        trace[k] = bench_span(&in->labels[in->order[i]], t0 + 1, in->durations[i], i % 8 == 0);
    }
}

static void drain(struct weir_stats *st)
{
    (void)weir_stats_poll(st, t0 + 1, 1);
}

/* Each round is a window of the same spans: a steady state, in which nothing is allocated. */
static void round_end(struct weir_stats *st)
{
    weir_stats_seal_all(st, t0 + 1, 1);
    for (struct weir_batch *b; (b = weir_stats_take_batch(st)) != NULL;)
        weir_batch_release(b);
}

/* Rounds until every key's sketches have met their ranges. */
enum { WARM_UP = 3 };

static void report_allocations(const struct bench *b, const char *name, uint64_t allocations)
{
    bench_report_one(b, name, "allocations", "count", (double)allocations);
    if (allocations) {
        (void)fprintf(stderr, "%s: the record path allocated\n", name);
        exit(1);
    }
}

static double one_round(struct weir_stats *st, struct weir_producer *p, const struct input *in)
{
    enum { BURST = 128 }; /* spans between drains */
    struct weir_span spans[BURST];
    const struct weir_source source = {.now_ns = t0};
    int64_t spent = 0;
    for (size_t at = 0; at < SPANS; at += BURST) {
        for (size_t k = 0; k < BURST; k += TRACE)
            trace_make(in, at + k, spans + k);
        const int64_t from = bench_now_ns();
        for (size_t k = 0; k < BURST; k += TRACE) {
            if (weir_stats_publish(p, &source, spans + k, TRACE) != WEIR_OK)
                abort();
        }
        spent += bench_now_ns() - from;
        drain(st);
    }
    round_end(st);
    return (double)spent / SPANS;
}

static void one_producer(const struct bench *b)
{
    struct bench_heap heap = {0};
    const struct weir_stats_opts o = {.struct_size = sizeof o, .alloc = bench_alloc(&heap)};
    struct weir_stats *st;
    struct weir_producer *p;
    if (weir_stats_new(&o, &st) || weir_producer_new(st, 0, WEIR_PRODUCER_OWNER, &p))
        abort();
    struct input in = input_make(st);
    double values[1000];
    static struct bench_peer java = {.name = "java"};
    struct bench_answerer jvm;
    char verb[] = "publish";
    char *argv[] = {NULL, verb, NULL};
    bench_answerer_start(&jvm, "java_stats", argv);
    bench_peer_ask(&java, &jvm, "", "ns_per_span"); /* warms up before it answers */
    java.count = 0;
    for (int r = 0; r < WARM_UP; r++)
        (void)one_round(st, p, &in);
    const uint64_t before = heap.allocations;
    for (int r = 0; r < b->rounds; r++) {
        values[r] = one_round(st, p, &in);
        bench_peer_ask(&java, &jvm, "", "ns_per_span");
    }
    const uint64_t allocations = heap.allocations - before;
    bench_answerer_stop(&jvm);
    bench_report_peer(b, "one_producer", "ns_per_span", "ns", BENCH_LOWER, values,
                      (size_t)b->rounds, &java);
    report_allocations(b, "one_producer", allocations);
    input_free(&in);
    weir_producer_free(p);
    weir_stats_free(st);
}

static double prepared_round(struct weir_stats *st, struct weir_producer *p, const struct input *in,
                             struct weir_stats_identity *const *ids)
{
    enum { BURST = 128 };
    int64_t spent = 0;
    for (size_t at = 0; at < SPANS; at += BURST) {
        const int64_t from = bench_now_ns();
        for (size_t k = at; k < at + BURST; k++) {
            if (weir_stats_publish_identity(p, ids[in->order[k]], t0 + 1, in->durations[k],
                                            k % 8 == 0, 0) != WEIR_OK)
                abort();
        }
        spent += bench_now_ns() - from;
        drain(st);
    }
    round_end(st);
    return (double)spent / SPANS;
}

static void prepared(const struct bench *b)
{
    struct bench_heap heap = {0};
    const struct weir_stats_opts o = {.struct_size = sizeof o, .alloc = bench_alloc(&heap)};
    struct weir_stats *st;
    struct weir_producer *p;
    if (weir_stats_new(&o, &st) || weir_producer_new(st, 0, WEIR_PRODUCER_OWNER, &p))
        abort();
    struct input in = input_make(st);
    struct weir_stats_identity *ids[SETS];
    const struct weir_source source = {.now_ns = t0};
    for (size_t i = 0; i < SETS; i++) {
        const struct weir_span s = bench_span(&in.labels[i], t0 + 1, 1, false);
        if (weir_stats_identity_new(st, &source, &s, &ids[i]) != WEIR_OK)
            abort();
    }
    double values[1000];
    for (int r = 0; r < WARM_UP; r++)
        (void)prepared_round(st, p, &in, ids);
    const uint64_t before = heap.allocations;
    for (int r = 0; r < b->rounds; r++)
        values[r] = prepared_round(st, p, &in, ids);
    const uint64_t allocations = heap.allocations - before;
    bench_report(b, "prepared", "ns_per_span", "ns", BENCH_LOWER, values, (size_t)b->rounds);
    report_allocations(b, "prepared", allocations);
    input_free(&in);
    weir_producer_free(p);
    weir_stats_free(st);
}

struct worker {
    struct weir_stats *st;
    const struct input *in;
    size_t from;
    int64_t cpu_ns;
    uint64_t taken;
    uint64_t waits;
    atomic_int *running;
    pthread_t thread;
};

static void *work(void *arg)
{
    struct worker *const w = arg;
    struct weir_producer *p;
    if (weir_producer_new(w->st, 64 << 10, 0, &p))
        abort();
    const struct weir_source source = {.now_ns = t0};
    struct weir_span trace[TRACE];
    const int64_t from = bench_thread_cpu_ns();
    int64_t making = 0;
    for (size_t at = 0; at < SPANS / 4; at += TRACE) {
        const int64_t m = bench_now_ns();
        trace_make(w->in, w->from + at, trace);
        making += bench_now_ns() - m;
        weir_stats_begin(p, &source);
        for (size_t k = 0; k < TRACE; k++) {
            while (weir_stats_add(p, &trace[k]) != WEIR_OK) {
                w->waits++;
                (void)sched_yield();
            }
        }
        if (weir_stats_trace_end(p) != WEIR_OK)
            abort();
        weir_stats_commit(p);
        w->taken += TRACE;
    }
    w->cpu_ns = bench_thread_cpu_ns() - from - making;
    weir_producer_free(p);
    atomic_fetch_sub(w->running, 1);
    return NULL;
}

static double eight_round(struct weir_stats *st, const struct input *in, uint64_t *waits)
{
    struct worker w[PRODUCERS];
    atomic_int running = PRODUCERS;
    for (size_t i = 0; i < PRODUCERS; i++) {
        w[i] = (struct worker){.st = st, .in = in, .from = i * 1000, .running = &running};
        if (pthread_create(&w[i].thread, NULL, work, &w[i]) != 0)
            abort();
    }
    while (atomic_load(&running) > 0) {
        drain(st);
        (void)sched_yield();
    }
    int64_t cpu = 0;
    uint64_t taken = 0;
    for (size_t i = 0; i < PRODUCERS; i++) {
        (void)pthread_join(w[i].thread, NULL);
        cpu += w[i].cpu_ns;
        taken += w[i].taken;
        *waits += w[i].waits;
    }
    drain(st);
    round_end(st);
    return (double)cpu / (double)taken;
}

static void eight_producers(const struct bench *b)
{
    const struct weir_stats_opts o = {.struct_size = sizeof o};
    struct weir_stats *st;
    if (weir_stats_new(&o, &st))
        abort();
    drain(st);
    struct input in = input_make(st);
    double values[1000];
    uint64_t waits = 0;
    (void)eight_round(st, &in, &waits);
    waits = 0;
    for (int r = 0; r < b->rounds; r++)
        values[r] = eight_round(st, &in, &waits);
    bench_report(b, "eight_producers", "ns_per_span", "ns", BENCH_LOWER, values, (size_t)b->rounds);
    bench_report_one(b, "eight_producers", "waits", "count", (double)waits);
    struct weir_stats_health h;
    weir_stats_get_health(st, &h);
    bench_report_one(b, "eight_producers", "dropped", "spans",
                     (double)h.dropped[WEIR_DROP_INBOX_FULL]);
    input_free(&in);
    weir_stats_free(st);
}

int main(int argc, char **argv)
{
    struct bench b;
    bench_begin(&b, "publish", "What a producer pays for one span of 10 labels.", argc, argv);
    one_producer(&b);
    prepared(&b);
    eight_producers(&b);
    return 0;
}
