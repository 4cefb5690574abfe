/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BENCH_BENCH_H
#define BENCH_BENCH_H
/*
 * bench: the harness. A bench is a program that runs its cases in interleaved rounds and reports
 * medians; with --json a line an object:
 *   {"bench","case","metric","value","unit","peer","peer_value","ratio"}
 * peer fields null where there is none; ratio above 1 is ahead of the peer.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <weir/base.h>

enum bench_better { BENCH_LOWER = 0, BENCH_HIGHER };

struct bench {
    const char *name;
    bool json;
    int rounds;
};

/* Reads --json, --rounds N, --help; exits on anything else. */
void bench_begin(struct bench *b, const char *name, const char *about, int argc, char **argv);
/* values of all rounds; the median is reported, the spread beside it in the table. */
void bench_report(const struct bench *b, const char *c, const char *metric, const char *unit,
                  enum bench_better better, const double *values, size_t count);
void bench_report_one(const struct bench *b, const char *c, const char *metric, const char *unit,
                      double value);

int64_t bench_now_ns(void);
int64_t bench_thread_cpu_ns(void);
void bench_pin(int cpu); /* this thread; on a machine with fewer cores: nothing */

/* An allocator that counts calls that allocate. */
struct bench_heap {
    _Atomic uint64_t allocations;
    _Atomic int64_t live_bytes;
};
struct weir_alloc bench_alloc(struct bench_heap *h);

/* SplitMix64. */
struct bench_rng {
    uint64_t s;
};
uint64_t bench_next(struct bench_rng *r);
/* Log-normal nanoseconds around 5 ms, sigma 1; the normal part is a sum of twelve uniforms. */
int64_t bench_latency_ns(struct bench_rng *r);
#endif
