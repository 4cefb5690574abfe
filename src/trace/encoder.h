/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WR_TRACE_ENCODER_H
#define WR_TRACE_ENCODER_H
/* encoder: what the files of trace/ share. See weir/trace.h. */
#include <weir/trace.h>

#include "trace/dict.h"
#include "trace/unique.h"
#include "wire/mp_write.h"

/*
 * Space past max_bytes in which a span may be written before its exact size is looked at: upper
 * bounds of headers and integers are reserved, what was really written is compared.
 */
#define WR_TRACE_SLACK 256

struct weir_trace_encoder {
    struct weir_alloc alloc;
    uint32_t version;
    size_t max_bytes;
    uint64_t traces;
    uint64_t spans;
    struct wr_out body; /* v0.4: behind a gap of WR_MP_HEAD_MAX for the count of traces */
    struct wr_trace_dict dict;
    struct wr_trace_unique unique;
};

/* Append one span. Errors as weir_trace_add; what was appended then is the caller's to undo. */
int wr_trace_span_v04(struct weir_trace_encoder *e, const struct weir_trace_span *s);
int wr_trace_span_v05(struct weir_trace_encoder *e, const struct weir_trace_span *s);

/* A metric's value, at most WR_MP_INT_MAX bytes; integral values were checked. */
char *wr_trace_raw_metric(char *at, const struct weir_trace_metric *m);
#endif
