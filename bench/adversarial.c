/* SPDX-License-Identifier: Apache-2.0 */
/*
 * adversarial, resource, peer, additional: one source, a program for each workload of flood.h.
 * Eight threads on two cores, each building the labels of a span and publishing it as a trace of
 * its own, as fast as they can, into an instance that has limits and its own thread; what finds no
 * room is refused and not tried again. Every batch is encoded as a body and thrown away.
 *
 * Spans taken count where they arrive, in the hits of the rows; after each round what was published
 * must be what the rows have and what was dropped, or the bench fails.
 *
 * Threads: producers meet the main one at two barriers a round; between them only counters of
 * their own are written. What belongs to the shard's thread is read after a flush.
 */
#include "flood.h"

#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <weir/payload.h>

enum {
    PRODUCERS = 8,
    CORES = 2,
    ROUNDS = 3,
    SECONDS = 5,
    WARM_ROUNDS = 6, /* of a second: a window each, until the table has had all it can hold */
    SAMPLES = 1000,
    LABELS = 1 << 20,
    CLOCK_EVERY = 64 /* spans */
};

static const int64_t second_ns = INT64_C(1000000000);

struct producer {
    _Alignas(128) atomic_uint_fast64_t published; /* by this thread alone */
    atomic_uint_fast64_t refused;
    struct flood *flood;
    size_t index;
    pthread_t thread;
};

struct flood {
    const struct flood_workload *w;
    struct weir_stats *st;
    struct weir_payload *payload;
    struct bench_heap heap;
    struct producer producers[PRODUCERS];
    pthread_barrier_t start;
    pthread_barrier_t end;
    atomic_bool stop;
    bool done; /* between barriers */
    /* Of the shard's thread until a flush. */
    struct weir_stats_health health;
    uint64_t hits;
    uint64_t rows;
    uint64_t body_bytes;
};

static _Noreturn void fail(const char *what)
{
    fprintf(stderr, "bench: %s\n", what);
    exit(1);
}

static int64_t wall_ns(void)
{
    struct timespec ts;
    (void)clock_gettime(CLOCK_REALTIME, &ts);
    return (int64_t)ts.tv_sec * second_ns + ts.tv_nsec;
}

static void take_batch(void *ctx, struct weir_batch *batch)
{
    struct flood *const f = ctx;
    struct weir_batch_info info;
    weir_batch_get_info(batch, &info);
    uint64_t units = 0;
    for (size_t i = 0; i < info.rows; i++) {
        struct weir_row row;
        weir_batch_get_row(batch, i, &row);
        units += row.hits;
    }
    f->hits += units / WEIR_WEIGHT_ONE;
    f->rows += info.rows;
    struct weir_bytes body;
    const int r = weir_payload_encode(f->payload, batch, wall_ns(), &body);
    if (r == WEIR_OK)
        f->body_bytes += body.len;
    else if (r != WEIR_EEMPTY)
        fail("a batch could not be encoded");
    weir_batch_release(batch);
}

static void take_health(void *ctx, const struct weir_stats_health *health)
{
    ((struct flood *)ctx)->health = *health;
}

static void count(atomic_uint_fast64_t *counter)
{
    const uint64_t n = atomic_load_explicit(counter, memory_order_relaxed);
    atomic_store_explicit(counter, n + 1, memory_order_relaxed);
}

static void publish_until_stop(struct producer *me, struct weir_producer *p, struct flood_span *s,
                               uint32_t *number, struct bench_rng *rng)
{
    const struct flood *const f = me->flood;
    struct weir_source source = {.flags = WEIR_SOURCE_TOP_LEVEL_COMPUTED};
    while (!atomic_load_explicit(&f->stop, memory_order_relaxed)) {
        if (*number % CLOCK_EVERY == 0)
            source.now_ns = wall_ns();
        flood_next(s, f->w, (*number)++, rng);
        const int r = weir_stats_publish(p, &source, &s->span, 1);
        count(&me->published);
        if (r == WEIR_EFULL)
            count(&me->refused);
        else if (r != WEIR_OK)
            fail("a publish failed");
    }
}

static void *produce(void *arg)
{
    struct producer *const me = arg;
    struct flood *const f = me->flood;
    struct weir_producer *p;
    struct flood_span s;
    struct bench_rng rng = {.s = me->index};
    uint32_t number = 0; /* all threads walk the same sequence */
    if (weir_producer_new(f->st, 0, 0, &p))
        fail("no producer");
    flood_span_init(&s, f->w, f->st);
    for (;;) {
        (void)pthread_barrier_wait(&f->start);
        if (f->done)
            break;
        publish_until_stop(me, p, &s, &number, &rng);
        (void)pthread_barrier_wait(&f->end);
    }
    weir_producer_free(p);
    return NULL;
}

struct totals {
    uint64_t published;
    uint64_t refused;
    uint64_t taken; /* by the inbox; rows have them after a flush */
};

static struct totals totals_of(struct flood *f)
{
    struct totals t = {0};
    for (size_t i = 0; i < PRODUCERS; i++) {
        t.published += atomic_load_explicit(&f->producers[i].published, memory_order_relaxed);
        t.refused += atomic_load_explicit(&f->producers[i].refused, memory_order_relaxed);
    }
    t.taken = t.published - t.refused;
    return t;
}

static uint64_t dropped_sum(const struct weir_stats_health *h)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < WEIR_DROP_COUNT; i++)
        sum += h->dropped[i];
    return sum;
}

/* All of what was ever published: in a row, the overflow row included, or dropped for a reason. */
static void account(struct flood *f)
{
    if (weir_stats_flush(f->st))
        fail("no flush");
    const struct totals t = totals_of(f);
    const struct weir_stats_health *const h = &f->health;
    const uint64_t dropped = dropped_sum(h);
    if (h->received == t.published && h->aggregated == f->hits &&
        h->dropped[WEIR_DROP_INBOX_FULL] == t.refused && t.published == f->hits + dropped)
        return;
    fprintf(stderr,
            "bench: published %" PRIu64 ", received %" PRIu64 ", in rows %" PRIu64
            " (aggregated %" PRIu64 "), dropped %" PRIu64 ": not all is accounted for\n",
            t.published, h->received, f->hits, h->aggregated, dropped);
    exit(1);
}

static double flatness_of(const double *values, size_t n)
{
    double least = values[0];
    for (size_t i = 1; i < n; i++)
        least = values[i] < least ? values[i] : least;
    return least / bench_median(values, n);
}

static void sleep_until(int64_t due_ns)
{
    for (int64_t left; (left = due_ns - bench_now_ns()) > 0;)
        (void)nanosleep(&(struct timespec){.tv_sec = left / second_ns, .tv_nsec = left % second_ns},
                        NULL);
}

/* Lets them run: spans a second that found room, a value a second, the least over the median. */
static double sample(struct flood *f, int seconds)
{
    static double taken[SAMPLES];
    size_t n = 0;
    const int64_t from = bench_now_ns();
    int64_t at = from;
    uint64_t before = totals_of(f).taken;
    for (int i = 1; i <= seconds; i++) {
        sleep_until(from + i * second_ns);
        const int64_t now = bench_now_ns();
        const uint64_t sum = totals_of(f).taken;
        if (n < SAMPLES)
            taken[n++] = (double)(sum - before) * 1e9 / (double)(now - at);
        before = sum;
        at = now;
    }
    return flatness_of(taken, n);
}

static double process_cpu_ns(void)
{
    struct rusage u;
    (void)getrusage(RUSAGE_SELF, &u);
    return ((double)u.ru_utime.tv_sec + (double)u.ru_stime.tv_sec) * 1e9 +
           ((double)u.ru_utime.tv_usec + (double)u.ru_stime.tv_usec) * 1e3;
}

struct figures {
    double taken[1000];
    double published[1000];
    double cpu_ns[1000];
    double labels_ns[1000];
    double dropped[1000]; /* of what was published */
    double flatness[1000];
    /* As they were before the first round. */
    struct weir_stats_health before;
    uint64_t allocations;
};

/* The host's share: the same spans, handed to nobody. */
static double labels_alone(struct flood *f)
{
    struct flood_span s;
    struct bench_rng rng = {.s = 1};
    flood_span_init(&s, f->w, f->st);
    uint64_t sink = 0;
    const int64_t from = bench_thread_cpu_ns();
    for (uint32_t i = 0; i < LABELS; i++) {
        flood_next(&s, f->w, i, &rng);
        sink += s.span.service.len + s.span.resource.len + s.span.present;
        __asm__ volatile("" : : "r"(&s), "r"(sink) : "memory"); /* somebody might read them */
    }
    return (double)(bench_thread_cpu_ns() - from) / LABELS;
}

static void round_of(struct flood *f, int seconds, struct figures *ret, size_t at)
{
    ret->labels_ns[at] = labels_alone(f);
    const struct totals before = totals_of(f);
    const uint64_t hits = f->hits;
    const double cpu = process_cpu_ns();
    atomic_store(&f->stop, false);
    const int64_t from = bench_now_ns();
    (void)pthread_barrier_wait(&f->start);
    ret->flatness[at] = sample(f, seconds);
    atomic_store(&f->stop, true);
    (void)pthread_barrier_wait(&f->end);
    const double spent = (double)(bench_now_ns() - from) / 1e9;
    account(f);
    const double taken = (double)(f->hits - hits);
    const double published = (double)(totals_of(f).published - before.published);
    ret->taken[at] = taken / spent;
    ret->published[at] = published / spent;
    ret->dropped[at] = 1 - taken / published;
    ret->cpu_ns[at] = (process_cpu_ns() - cpu) / taken;
}

static void flood_begin(struct flood *f, const struct flood_workload *w)
{
    f->w = w;
    const struct weir_stats_opts o = {.struct_size = sizeof o,
                                      .alloc = bench_alloc(&f->heap),
                                      .profile = WEIR_PROFILE_CLIENT,
                                      .peer_tags = w->peer_tags,
                                      .peer_tag_count = w->peer_tag_count,
                                      .dimensions = w->dimensions,
                                      .dimension_count = w->dimension_count};
    const struct weir_stats_start_opts start = {
        .struct_size = sizeof start, .ctx = f, .batch = take_batch, .health = take_health};
    if (weir_stats_new(&o, &f->st) || weir_payload_new(f->st, NULL, &f->payload) ||
        weir_stats_start(f->st, &start) || pthread_barrier_init(&f->start, NULL, PRODUCERS + 1) ||
        pthread_barrier_init(&f->end, NULL, PRODUCERS + 1))
        fail("no instance");
    for (size_t i = 0; i < PRODUCERS; i++) {
        f->producers[i].flood = f;
        f->producers[i].index = i;
        if (pthread_create(&f->producers[i].thread, NULL, produce, &f->producers[i]))
            fail("no thread");
    }
}

static void flood_end(struct flood *f)
{
    f->done = true;
    (void)pthread_barrier_wait(&f->start);
    for (size_t i = 0; i < PRODUCERS; i++)
        (void)pthread_join(f->producers[i].thread, NULL);
    weir_stats_stop(f->st);
    weir_payload_free(f->payload);
    weir_stats_free(f->st);
    (void)pthread_barrier_destroy(&f->start);
    (void)pthread_barrier_destroy(&f->end);
}

/* What a peer says of its rounds. */
enum { TAKEN = 0, PUBLISHED, DROPPED, LABELS_NS, FLATNESS, METRICS };
static const char *const metric_names[METRICS] = {
    [TAKEN] = "spans_per_s",   [PUBLISHED] = "published_per_s", [DROPPED] = "dropped_share",
    [LABELS_NS] = "labels_ns", [FLATNESS] = "flatness",
};

struct peer {
    const char *name;
    const char *program;
    struct bench_answerer a;
    struct bench_peer metrics[METRICS];
};

static void peer_start(struct peer *p, const char *workload)
{
    char verb[] = "flood";
    char name[16];
    (void)snprintf(name, sizeof name, "%s", workload);
    char *argv[] = {NULL, verb, name, NULL};
    bench_answerer_start(&p->a, p->program, argv);
    for (size_t m = 0; m < METRICS; m++)
        p->metrics[m].name = p->name;
}

static void peer_round(struct peer *p, int seconds, bool keep)
{
    char question[16];
    (void)snprintf(question, sizeof question, "%d", seconds);
    if (!bench_answerer_ask(&p->a, question)) {
        for (size_t m = 0; m < METRICS; m++)
            memcpy(p->metrics[m].why, p->a.why, sizeof p->a.why);
    } else if (keep) {
        for (size_t m = 0; m < METRICS; m++)
            bench_peer_add(&p->metrics[m], bench_json_number(p->a.answer, metric_names[m]));
    }
}

static void report_dropped(const struct bench *b, const struct flood *f,
                           const struct weir_stats_health *before)
{
    bench_report_one(b, "flood", "dropped", "spans",
                     (double)(dropped_sum(&f->health) - dropped_sum(before)));
    for (size_t i = 0; i < WEIR_DROP_COUNT; i++) {
        char metric[40];
        (void)snprintf(metric, sizeof metric, "dropped_%s", weir_drop_name((enum weir_drop)i));
        const uint64_t n = f->health.dropped[i] - before->dropped[i];
        if (n > 0)
            bench_report_one(b, "flood", metric, "spans", (double)n);
    }
    bench_report_one(b, "flood", "overflow", "spans",
                     (double)(f->health.overflow - before->overflow));
}

static void report(const struct bench *b, const struct flood *f, const struct figures *figures,
                   const struct peer *peers, size_t peer_count)
{
    const size_t rounds = (size_t)b->rounds;
    for (size_t i = 0; i < peer_count; i++) {
        const struct bench_peer *const m = peers[i].metrics;
        bench_report_peer(b, "flood", "spans_per_s", "spans/s", BENCH_HIGHER, figures->taken,
                          rounds, &m[TAKEN]);
        bench_report_peer(b, "flood", "published_per_s", "ops/s", BENCH_HIGHER, figures->published,
                          rounds, &m[PUBLISHED]);
        bench_report_peer(b, "flood", "labels_ns", "ns", BENCH_LOWER, figures->labels_ns, rounds,
                          &m[LABELS_NS]);
        bench_report_peer(b, "flood", "dropped_share", "ratio", BENCH_LOWER, figures->dropped,
                          rounds, &m[DROPPED]);
        bench_report_peer(b, "flood", "flatness", "ratio", BENCH_HIGHER, figures->flatness, rounds,
                          &m[FLATNESS]);
    }
    bench_report(b, "flood", "cpu_ns_per_span", "ns", BENCH_LOWER, figures->cpu_ns, rounds);
    report_dropped(b, f, &figures->before);
    bench_report_one(b, "flood", "allocations", "count",
                     (double)(f->heap.allocations - figures->allocations));
}

int main(int argc, char **argv)
{
    static struct flood f;
    static struct figures figures;
    static struct peer peers[] = {{.name = "java", .program = "java_stats"},
                                  {.name = "libdatadog", .program = "libdatadog"}};
    enum { PEERS = sizeof peers / sizeof *peers };
    const struct flood_workload *const w = flood_find(BENCH_WORKLOAD);
    struct bench b;
    bench_begin(&b, w->name, w->about, argc, argv);
    if (!b.rounds_given)
        b.rounds = ROUNDS;
    const int seconds = b.seconds ? b.seconds : SECONDS;
    bench_pin_to_first(CORES);
    for (size_t i = 0; i < PEERS; i++)
        peer_start(&peers[i], w->name);
    flood_begin(&f, w);
    for (int i = 0; i < WARM_ROUNDS; i++)
        round_of(&f, 1, &figures, 0);
    for (size_t i = 0; i < PEERS; i++)
        peer_round(&peers[i], 1, false);
    figures.before = f.health;
    figures.allocations = f.heap.allocations;
    for (int r = 0; r < b.rounds; r++) {
        round_of(&f, seconds, &figures, (size_t)r);
        for (size_t i = 0; i < PEERS; i++)
            peer_round(&peers[i], seconds, true);
    }
    for (size_t i = 0; i < PEERS; i++)
        bench_answerer_stop(&peers[i].a);
    report(&b, &f, &figures, peers, PEERS);
    flood_end(&f);
    return 0;
}
