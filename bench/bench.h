/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BENCH_BENCH_H
#define BENCH_BENCH_H
/*
 * bench: the harness. A bench is a program that runs its cases in interleaved rounds and reports
 * medians; with --json a line an object:
 *   {"bench","case","metric","value","unit","peer","peer_value","ratio"}
 * peer fields null where there is none; ratio above 1 is ahead of the peer. Where a peer could not
 * run, its value and the ratio are null and a member "why" follows; where it does less than
 * ours, a member "note" says what is missing. A bench that runs a case with
 * several mappings names the one in a member "mapping" behind "case". A row for which goals.tsv has
 * a goal ends with the members "goal" and, where it can be told, "met".
 *
 * A peer is a program that bench/peers/build.sh made. What runs once a round prints one JSON line;
 * what serves takes a port, and at SIGTERM may print one; what answers reads the name of a case a
 * line, and prints a JSON line for each.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>
#include <weir/base.h>

enum bench_better { BENCH_LOWER = 0, BENCH_HIGHER };

struct bench {
    const char *name;
    const char *mapping; /* of what is reported next; NULL: there are none */
    bool json;
    bool rounds_given;
    int rounds;
    int seconds; /* a round, of benches that run for a time; 0: as the bench likes */
};

/* Reads --json, --rounds N, --seconds N, --help; exits on anything else. */
void bench_begin(struct bench *b, const char *name, const char *about, int argc, char **argv);
/* values of all rounds; the median is reported, the spread beside it in the table. */
void bench_report(const struct bench *b, const char *c, const char *metric, const char *unit,
                  enum bench_better better, const double *values, size_t count);

/* A program that does the same work, and what it said of it, a value a round. */
struct bench_peer {
    const char *name;
    const char
        *note; /* what it leaves out that ours does, printed beside its ratio; NULL: nothing */
    char program[256];
    char why[96]; /* why there are no values; empty: it runs */
    size_t count;
    double values[1000];
};
/* program: its file in build/peers/bin. */
void bench_peer_init(struct bench_peer *p, const char *name, const char *program);
/*
 * One round: run it with argv[1..] (argv[0] is set here) and keep the number behind "key": in its
 * output. A peer that fails says so on stderr, gets a why, and is not run again.
 */
void bench_peer_run(struct bench_peer *p, char **argv, const char *key);

/* Keep a value of a round that somebody else asked for; below 0: it failed. */
void bench_peer_add(struct bench_peer *p, double value);

/* A peer that answers: one process for the whole bench, so it warms up once. */
struct bench_answerer {
    char program[256];
    char why[96]; /* why it does not answer; empty: it does */
    char answer[4096];
    pid_t pid;
    FILE *in;
    FILE *out;
};
/* Starts program with argv[1..] (argv[0] is set here), if it is built. */
void bench_answerer_start(struct bench_answerer *a, const char *program, char **argv);
/*
 * Asks it for a case; its line is in answer then. False: it does not answer. One that ends says so
 * on stderr, gets a why, and is not asked again.
 */
bool bench_answerer_ask(struct bench_answerer *a, const char *question);
/* Asks it and keeps the number behind "key": in its answer; where there is none the peer has its
 * why. */
void bench_peer_ask(struct bench_peer *p, struct bench_answerer *a, const char *question,
                    const char *key);
/* Closes its input and waits for its end. */
void bench_answerer_stop(struct bench_answerer *a);
/* Where peers are built, and may be given files. */
const char *bench_peers_dir(void);

void bench_report_peer(const struct bench *b, const char *c, const char *metric, const char *unit,
                       enum bench_better better, const double *values, size_t count,
                       const struct bench_peer *peer);
void bench_report_one(const struct bench *b, const char *c, const char *metric, const char *unit,
                      double value);

double bench_median(const double *values, size_t count); /* at most 1000 */

int64_t bench_now_ns(void);
int64_t bench_thread_cpu_ns(void);
void bench_pin(int cpu);            /* this thread; on a machine with fewer cores: nothing */
void bench_pin_to_first(int cores); /* this thread and what it starts, programs included */

/*
 * Start a program on a core (-1: where this thread may run) with its output in *ret_out. Its own
 * errors go to stderr. Exits when that cannot be done.
 */
pid_t bench_spawn(const char *program, char **argv, int cpu, FILE **ret_out);
/* The number behind "key": in text, or -1. */
double bench_json_number(const char *text, const char *key);

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
