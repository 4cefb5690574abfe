/* SPDX-License-Identifier: Apache-2.0 */
#ifndef T_TRACE_FIXTURE_H
#define T_TRACE_FIXTURE_H
/*
 * Random spans, and a reader of both versions on libmsgpack that compares a payload with the spans
 * it was made of (equal keys: the last one).
 */
#include "t.h"
#include <weir/trace.h>

#define FIXTURE_TAGS_MAX 200
#define FIXTURE_SPANS_MAX 32

struct fixture_span {
    struct weir_trace_span span;
    struct weir_trace_meta meta[FIXTURE_TAGS_MAX];
    struct weir_trace_metric metrics[FIXTURE_TAGS_MAX];
};

struct weir_bytes fixture_bytes(const char *s);
/* The span of the golden vectors of trace-encoding §2.2 and §2.3. */
void fixture_golden(struct fixture_span *f);
/* repeats: keys come from a small set, so that they repeat. */
void fixture_random(struct t_rng *r, struct fixture_span *f, size_t tags_max, bool repeats);
struct weir_trace_encoder *fixture_encoder(uint32_t version, size_t max_bytes);
/* Fails the test unless payload carries exactly these traces, each of per_trace spans. */
void fixture_check(uint32_t version, struct weir_bytes payload, const struct weir_trace_span *spans,
                   size_t traces, size_t per_trace);
#endif
