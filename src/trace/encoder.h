/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WR_TRACE_ENCODER_H
#define WR_TRACE_ENCODER_H
/*
 * encoder: what the files of trace/ share. See weir/trace.h.
 *
 * A span is written in two steps. plan.c looks at it once: which tags repeat, which keys are the
 * encoder's own to write, how many entries there are. Then one function a version (v04.c, v05.c,
 * v1.c) stores it through a bare pointer.
 *
 * The space for that is not computed beforehand: so many bytes are reserved that every string of
 * the span may be WR_SHORT_MAX bytes, as nearly all are, and a longer one takes what it needs more
 * from extra, which is what else the buffer has. Where that is not enough, or something must be
 * mended and grows, the span is undone, its true bound computed, and the span written once more.
 */
#include <weir/trace.h>

#include "trace/dict.h"
#include "trace/unique.h"
#include "wire/mp_write.h"

/* Bytes of what every piece may hold besides tags and long strings; copying may go past its end. */
#define WR_PIECE_FIXED ((size_t)1024)
#define WR_SHORT_MAX ((size_t)32) /* framed or not, and its header */
/* Two short strings with their headers, a type and a number. */
#define WR_TAG_FIXED (2 * (WR_SHORT_MAX + WR_MP_HEAD_MAX) + 1 + WR_MP_INT_MAX)

/* Own entries of the two maps of v0.4 and v0.5, and of the attributes of v1.0. */
#define WR_OWN_METRICS                                                                             \
    (WR_KNOWN_BIT(PRIORITY) | WR_KNOWN_BIT(MEASURED) | WR_KNOWN_BIT(TOP_LEVEL) |                   \
     WR_KNOWN_BIT(PARTIAL) | WR_KNOWN_BIT(WAS_LONG) | WR_KNOWN_BIT(THREAD_ID))
#define WR_OWN_META                                                                                \
    (WR_KNOWN_BIT(P_TID) | WR_KNOWN_BIT(THREAD_NAME) | WR_KNOWN_BIT(HTTP_STATUS) |                 \
     WR_KNOWN_BIT(ORIGIN) | WR_KNOWN_BIT(SPAN_KIND) | WR_KNOWN_BIT(LINKS) | WR_KNOWN_BIT(EVENTS))
#define WR_OWN_V1                                                                                  \
    (WR_KNOWN_BIT(THREAD_ID) | WR_KNOWN_BIT(THREAD_NAME) | WR_KNOWN_BIT(HTTP_STATUS) |             \
     WR_KNOWN_BIT(TOP_LEVEL))

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
    size_t bound;              /* of the bytes: of a span only after wr_trace_bound_span */
    size_t more;               /* bytes of links, events and blobs at most */
    struct weir_str links;     /* before v1.0: JSON */
    struct weir_str events;
    struct weir_bytes events_json; /* v1.0: a tag that holds them; ptr NULL: none */
    const struct weir_trace_tag *found[WR_KNOWN_KEYS]; /* valid where seen */
};

typedef char *wr_piece_fn(struct weir_trace_encoder *e, const struct wr_trace_plan *p, char *at);

struct weir_trace_encoder {
    struct weir_alloc alloc;
    uint32_t version;
    bool narrow;  /* the piece that is being written needs more space, and is to be undone */
    bool wide;    /* there is as much as mending can take */
    int err;      /* of that piece */
    size_t extra; /* space for its long strings */
    uint32_t counted_own; /* the last span's; how many they were in each list: */
    uint32_t own_metrics;
    uint32_t own_meta;
    uint32_t own_v1;
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

/* plan.c. Errors as weir_trace_add. bound_span is for a plan that was made, and checks strings. */
int wr_trace_bound_span(struct wr_trace_plan *p);
int wr_trace_plan_span(struct weir_trace_encoder *e, const struct weir_trace *t, size_t i,
                       struct wr_trace_plan *p);
int wr_trace_plan_chunk(struct weir_trace_encoder *e, const struct weir_trace *t,
                        struct wr_trace_plan *p);
int wr_trace_plan_header(struct weir_trace_encoder *e, struct wr_trace_plan *p);

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

/* True where a string of n bytes has space; else the piece is to be undone. */
static inline bool wr_trace_has_room(struct weir_trace_encoder *e, size_t n)
{
    if (WR_LIKELY(n <= WR_SHORT_MAX))
        return true;
    if (WR_UNLIKELY(n > e->extra)) {
        e->narrow = true;
        return false;
    }
    e->extra -= n;
    return true;
}

/* put.c: strings that are no struct weir_text. Each writes nothing once e->err or e->narrow is. */
char *wr_trace_put_plain(struct weir_trace_encoder *e, char *at, struct weir_str s);
/* The index of s, which *ret_fresh says is new. 0 with e->err or e->narrow set. */
uint32_t wr_trace_index(struct weir_trace_encoder *e, struct weir_str s, bool *ret_fresh);
/* s as well-formed UTF-8: borrowed until the next call. Empty with e->err set. */
struct weir_bytes wr_trace_utf8(struct weir_trace_encoder *e, struct weir_str s);
#endif
