/* SPDX-License-Identifier: Apache-2.0 */
#ifndef T_TRACE_FIXTURE_H
#define T_TRACE_FIXTURE_H
/*
 * Random spans, and a reader of all versions on libmsgpack that compares a payload with the spans
 * it was made of (equal keys: the last one).
 */
#include "t.h"
#include <weir/trace.h>

#define FIXTURE_TAGS_MAX 200
#define FIXTURE_SPANS_MAX 32

struct fixture_span {
    struct weir_trace_span span;
    struct weir_trace_tag tags[FIXTURE_TAGS_MAX];
};

struct weir_trace_tag fixture_text(const char *key, const char *value);
struct weir_trace_tag fixture_int(const char *key, int64_t value);
/* The span of the golden vectors of trace-encoding §2.2 and §2.3, and its trace. */
void fixture_golden(struct fixture_span *f, struct weir_trace *ret_trace);
/* repeats: keys come from a small set, so that they repeat. */
void fixture_random(struct t_rng *r, struct fixture_span *f, size_t tags_max, bool repeats);
struct weir_trace_encoder *fixture_encoder(uint32_t version, size_t max_bytes);
/* weir_trace_add of a trace that is nothing but these spans. */
int fixture_add(struct weir_trace_encoder *e, const struct weir_trace_span *spans, size_t count);
/* The payload as hex, in storage of its own: the last one. */
const char *fixture_hex(struct weir_trace_encoder *e);
/* Fails the test unless payload carries exactly these traces, each of per_trace spans. */
void fixture_check(uint32_t version, struct weir_bytes payload, const struct weir_trace_span *spans,
                   size_t traces, size_t per_trace);
#endif
