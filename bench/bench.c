/* SPDX-License-Identifier: Apache-2.0 */
/* bench: see bench.h. */
#include "bench.h"

#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static void usage(const char *name, const char *about)
{
    printf("usage: bench_%s [--json] [--rounds N]\n\n%s\n", name, about);
}

void bench_begin(struct bench *b, const char *name, const char *about, int argc, char **argv)
{
    *b = (struct bench){.name = name, .rounds = 7};
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--json") == 0) {
            b->json = true;
        } else if (strcmp(argv[i], "--rounds") == 0 && i + 1 < argc) {
            char *end;
            const long n = strtol(argv[++i], &end, 10);
            if (*end || n < 1 || n > 1000) {
                fprintf(stderr, "bench_%s: --rounds takes 1 to 1000\n", name);
                exit(2);
            }
            b->rounds = (int)n;
        } else if (strcmp(argv[i], "--help") == 0) {
            usage(name, about);
            exit(0);
        } else {
            fprintf(stderr, "bench_%s: unknown option %s (try --help)\n", name, argv[i]);
            exit(2);
        }
    }
    if (!b->json)
        printf("%-10s %-22s %-16s %14s %14s %14s  %s\n", "bench", "case", "metric", "median", "min",
               "max", "unit");
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a;
    const double y = *(const double *)b;
    return (x > y) - (x < y);
}

void bench_report(const struct bench *b, const char *c, const char *metric, const char *unit,
                  enum bench_better better, const double *values, size_t count)
{
    double sorted[1000];
    (void)better; /* of peers: none here */
    memcpy(sorted, values, count * sizeof *sorted);
    qsort(sorted, count, sizeof *sorted, by_value);
    const double median = sorted[count / 2];
    if (b->json)
        printf("{\"bench\":\"%s\",\"case\":\"%s\",\"metric\":\"%s\",\"value\":%.6g,\"unit\":\"%s\","
               "\"peer\":null,\"peer_value\":null,\"ratio\":null}\n",
               b->name, c, metric, median, unit);
    else
        printf("%-10s %-22s %-16s %14.6g %14.6g %14.6g  %s\n", b->name, c, metric, median,
               sorted[0], sorted[count - 1], unit);
    (void)fflush(stdout);
}

void bench_report_one(const struct bench *b, const char *c, const char *metric, const char *unit,
                      double value)
{
    bench_report(b, c, metric, unit, BENCH_LOWER, &value, 1);
}

static int64_t clock_ns(clockid_t id)
{
    struct timespec ts;
    (void)clock_gettime(id, &ts);
    return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

int64_t bench_now_ns(void)
{
    return clock_ns(CLOCK_MONOTONIC);
}

int64_t bench_thread_cpu_ns(void)
{
    return clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

void bench_pin(int cpu)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET((size_t)cpu, &set);
    (void)pthread_setaffinity_np(pthread_self(), sizeof set, &set);
}

static void *heap_fn(void *ctx, void *ptr, size_t old_size, size_t new_size)
{
    struct bench_heap *const h = ctx;
    atomic_fetch_add_explicit(&h->live_bytes, (int64_t)new_size - (int64_t)old_size,
                              memory_order_relaxed);
    if (new_size == 0) {
        free(ptr);
        return NULL;
    }
    atomic_fetch_add_explicit(&h->allocations, 1, memory_order_relaxed);
    return realloc(ptr, new_size);
}

struct weir_alloc bench_alloc(struct bench_heap *h)
{
    return (struct weir_alloc){.fn = heap_fn, .ctx = h};
}

uint64_t bench_next(struct bench_rng *r)
{
    r->s += UINT64_C(0x9E3779B97F4A7C15);
    uint64_t z = r->s;
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return z ^ (z >> 31);
}

int64_t bench_latency_ns(struct bench_rng *r)
{
    double normal = -6.0;
    for (int i = 0; i < 12; i++)
        normal += (double)(bench_next(r) >> 11) * 0x1p-53;
    return (int64_t)(5e6 * exp(normal));
}
