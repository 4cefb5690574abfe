/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BENCH_SKETCH_CASES_H
#define BENCH_SKETCH_CASES_H
/*
 * sketch_cases: our side of the bench `sketch`. A case is a function that runs it once, warm, and
 * returns ns a value or a call: CPU time of this thread.
 *
 * Sketches are "full" when each holds more samples than the list of a small one does, so that they
 * count in bytes, and "fresh" when they were cleared and are lists.
 */
#include <weir/sketch.h>

#include "sketch_data.h"

enum { BENCH_CLEARED = 256, BENCH_ENCODED_CAP = 1 << 17 };

struct bench_ours {
    const struct bench_data *data;
    const char *mapping; /* base2 or log1 */
    struct weir_sketch_opts opts;
    struct weir_sketch *hot;
    struct weir_sketch *full; /* all values */
    struct weir_sketch *into; /* merged into, again and again */
    struct weir_sketch *back; /* decoded into */
    struct weir_sketch *cleared[BENCH_CLEARED];
    struct weir_sketch_pool *pool;
    struct weir_sketch **many; /* count of them, of the pool; NULL: none */
    size_t count;
    const uint32_t *series;
    size_t pass;
    uint8_t *bytes; /* encoded, len of BENCH_ENCODED_CAP */
    size_t len;
    double sink;
};

typedef double bench_case_fn(struct bench_ours *o);

/* mapping: base2 or log1. Exits where a sketch cannot be had. */
void bench_ours_begin(struct bench_ours *o, const struct bench_data *data, const char *mapping);
void bench_ours_end(struct bench_ours *o);

/* On one sketch. */
bench_case_fn bench_insert_hot;
bench_case_fn bench_insert_batch;
bench_case_fn bench_merge;
bench_case_fn bench_p99;
bench_case_fn bench_quantiles_4;
bench_case_fn bench_clear;
bench_case_fn bench_encode_compact;
bench_case_fn bench_decode_compact;
bench_case_fn bench_encode_proto;

/* On a random one of many, made full or fresh beforehand. */
void bench_many_full(struct bench_ours *o, size_t count);
void bench_many_fresh(struct bench_ours *o, size_t count);
void bench_many_clear(struct bench_ours *o);
void bench_many_free(struct bench_ours *o);
double bench_many_bytes(const struct bench_ours *o); /* held, a sketch */
bench_case_fn bench_insert_random;
bench_case_fn bench_insert_random_batch;

struct bench_sizes {
    double held;    /* in memory, its header included */
    double compact; /* DDSketch's compact encoding without its mapping */
    double proto;   /* DDSketch's message */
};
/* Of a sketch of that many values. */
void bench_sizes_of(struct bench_ours *o, size_t samples, struct bench_sizes *ret_sizes);
#endif
