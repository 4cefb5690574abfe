/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WR_TRACE_ENCODER_H
#define WR_TRACE_ENCODER_H
/*
 * encoder: what the files of trace/ share. See weir/trace.h.
 *
 * A span is written in two steps. plan.c looks at it once: is it valid, which tags repeat, which
 * keys are the encoder's own to write, and how many bytes can it take at most. Then one function a
 * version (v04.c, v05.c, v1.c) stores it through a bare pointer into that much space.
 */
#include <weir/trace.h>

#include "trace/dict.h"
#include "trace/unique.h"
#include "wire/mp_write.h"

/* Bytes of what every piece may hold besides strings and tags; and copying may go past its end. */
#define WR_PIECE_FIXED ((size_t)1024)

struct wr_trace_plan {
    const struct weir_trace *trace;
    const struct weir_trace_span *span;
    const struct weir_trace_tag *tags; /* of the trace, the payload and the span: lead, rest */
    size_t tag_count;
    size_t lead;               /* how many are the trace's */
    const unsigned char *drop; /* NULL: none */
    uint32_t metrics;          /* tags that are numbers, and are kept */
    uint32_t meta;             /* the others */
    uint32_t own;              /* bit set of enum wr_known: keys to write without a tag */
    uint32_t seen;             /* keys that tags have */
    size_t bound;              /* of the bytes */
    struct weir_str links;     /* before v1.0: JSON */
    struct weir_str events;
    struct weir_bytes events_json; /* v1.0: a tag that holds them; ptr NULL: none */
    const struct weir_trace_tag *found[WR_KNOWN_KEYS]; /* valid where seen */
};

typedef char *wr_piece_fn(struct weir_trace_encoder *e, const struct wr_trace_plan *p, char *at);

struct weir_trace_encoder {
    struct weir_alloc alloc;
    uint32_t version;
    bool narrow; /* text was found that must be mended, and there is no room for that */
    bool wide;   /* there is */
    int err;     /* of the piece that is being written */
    wr_piece_fn *span_fn;
    size_t max_bytes;
    void *buffer; /* the caller's; NULL: none */
    size_t buffer_bytes;
    const struct weir_trace_header *header;
    weir_trace_full_fn *full;
    void *full_ctx;
    struct weir_trace_counts counts;
    struct wr_out body;    /* traces; but in v0.5 behind gap bytes for the payload's head */
    struct wr_out head;    /* v1.0: the fields before the number of chunks */
    struct wr_out spill;   /* a piece whose bound does not fit the body, though it may */
    struct wr_out scratch; /* one string, transcoded or mended */
    struct wr_out json;    /* a span's links and events, or the tag that holds them */
    struct wr_out events;  /* a string of that tag, without its escapes */
    struct wr_out tags;    /* gathered: struct weir_trace_tag */
    struct wr_out keys;    /* of them, transcoded */
    struct wr_trace_dict dict;
    struct wr_trace_unique unique;
    struct weir_text known[WR_KNOWN_COUNT];
    char framed[WR_KNOWN_COUNT][WR_TEXT_STEP];
};

wr_piece_fn wr_trace_span_v04;
wr_piece_fn wr_trace_span_v05;
wr_piece_fn wr_trace_span_v1;
wr_piece_fn wr_trace_chunk_begin_v1;
wr_piece_fn wr_trace_chunk_end_v1;
wr_piece_fn wr_trace_header_v1;

/* plan.c. Errors as weir_trace_add. */
int wr_trace_plan_span(struct weir_trace_encoder *e, const struct weir_trace *t, size_t i,
                       struct wr_trace_plan *ret_plan);
int wr_trace_plan_chunk(struct weir_trace_encoder *e, const struct weir_trace *t,
                        struct wr_trace_plan *ret_plan);
int wr_trace_plan_header(struct weir_trace_encoder *e, struct wr_trace_plan *ret_plan);

/* json.c: append to e->json, whose error is to be looked at. */
void wr_trace_json_links(struct weir_trace_encoder *e, const struct weir_trace_extra *x);
void wr_trace_json_events(struct weir_trace_encoder *e, const struct weir_trace_extra *x);

/*
 * events.c: events that a tag holds as JSON, as v1.0 has them. 0 events or more when it is an array
 * of them; entries without time or name are left out. false: it is no such JSON.
 */
bool wr_trace_events_ok(struct weir_bytes json);
char *wr_trace_events_put(struct weir_trace_encoder *e, struct weir_bytes json, char *at);
/* At most so many bytes a byte of JSON: a digit becomes a type and a float64. */
#define WR_EVENTS_GROWTH 10

/* put.c: strings that are no struct weir_text. Each writes nothing once e->err or e->narrow is. */
char *wr_trace_put_plain(struct weir_trace_encoder *e, char *at, struct weir_str s);
/* The index of s, which *ret_fresh says is new. 0 with e->err or e->narrow set. */
uint32_t wr_trace_index(struct weir_trace_encoder *e, struct weir_str s, bool *ret_fresh);
/* s as well-formed UTF-8: borrowed until the next call. Empty with e->err set. */
struct weir_bytes wr_trace_utf8(struct weir_trace_encoder *e, struct weir_str s);
#endif
