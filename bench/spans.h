/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BENCH_SPANS_H
#define BENCH_SPANS_H
/* spans: label sets as a tracer has them, 10 labels of some 120 bytes, for the engine's benches. */
#include "bench.h"

#include <weir/stats.h>

struct bench_labels {
    char service[16];
    char resource[48];
    char route[40];
    char peer[24];
    char env[8];
    struct weir_value slots[24]; /* as far as they are used: a set should not fill the cache */
    uint64_t present;
};

/* count label sets, all different; freed with free(). */
struct bench_labels *bench_labels_new(const struct weir_stats *st, size_t count);
/* What differs from span to span. Peers draw the same from the same seed, in this order. */
struct bench_draw {
    size_t set;
    int64_t duration_ns;
    bool error; /* one in eight */
};
struct bench_draw bench_draw(struct bench_rng *rng, size_t sets);
/* A span of that set, ending at end_ns. */
struct weir_span bench_span(const struct bench_labels *l, int64_t end_ns, int64_t duration_ns,
                            bool error);
#endif
