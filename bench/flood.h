/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BENCH_FLOOD_H
#define BENCH_FLOOD_H
/*
 * flood: the workloads in which nearly every span has labels not seen before, span by span. The
 * peers make the same ones (peers/libdatadog, peers/java_stats).
 */
#include "spans.h"

struct flood_workload {
    const char *name; /* of the bench, too */
    const char *about;
    const char *peer_tags[1];
    size_t peer_tag_count;
    const char *dimensions[2];
    size_t dimension_count;
    bool service;    /* varies: service and operation as well as resource and host */
    bool resource;   /* varies */
    bool host;       /* varies */
    bool additional; /* region and tenant_id vary; every span top level, none with an error */
};
/* NULL: no such workload. */
const struct flood_workload *flood_find(const char *name);

/* One span and the memory of its labels; a thread has its own. */
struct flood_span {
    char service[16];
    char operation[16];
    char resource[16];
    char first[24];  /* host, or region */
    char second[24]; /* tenant_id */
    struct weir_value slots[WEIR_TAG_SLOTS_MAX];
    size_t first_slot;
    size_t second_slot;
    struct weir_span span;
};
void flood_span_init(struct flood_span *f, const struct flood_workload *w,
                     const struct weir_stats *st);
/* The span of that number: its labels written out, its duration random. */
void flood_next(struct flood_span *f, const struct flood_workload *w, uint32_t number,
                struct bench_rng *rng);
#endif
