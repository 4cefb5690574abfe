/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WR_DECODE_DECODER_H
#define WR_DECODE_DECODER_H
/*
 * decoder: what the walks share: the span being filled, its slots, and how a tag gets into
 * them. See weir/decode.h.
 *
 * The slot array lives in the decoder and is reused from span to span; only the present bits are
 * cleared, so a span costs what it carries.
 *
 * Threads: one at a time. Memory: the decoder, the table of strings (dict.h), and at most 512 KiB
 * of spans that wait (dd_v1_kept.c).
 */
#include "base/bits.h"
#include "decode/tags.h"

#include <weir/decode.h>

/* v0.4: how many keys of each map are remembered for the next span. Later ones are looked up. */
#define WR_SHAPE_FIELDS 16u
#define WR_SHAPE_META 48u
#define WR_SHAPE_METRICS 24u

/*
 * A key at one position of a map of the previous span, framed as it stood in the payload. Equal
 * framed bytes are the same key, so a hit needs neither parsing nor look-up.
 */
struct wr_shape {
    size_t need; /* bytes that must be left to compare: max(len, 8); SIZE_MAX: empty */
    uint64_t head;
    uint64_t mask; /* of head: the first min(len, 8) bytes */
    uint64_t tail; /* the last eight bytes, when len > 8 */
    const uint8_t *framed;
    size_t len;
    union {
        const struct weir_tag_match *match; /* of a meta or metrics map; NULL: not wanted */
        unsigned field;                     /* of a span map */
    } is;
};

/* v1.0: how many spans of a chunk can wait for what stands behind them. Traces are seldom longer.
 */
#define WR_HELD_SPANS 32u

struct wr_held {
    struct weir_span span;
    struct weir_value slots[WEIR_TAG_SLOTS_MAX];
};

/* v0.5, v1.0: a string of the table, and what its look-up gave once it was used as a key. */
struct wr_dict_entry {
    const char *ptr;
    uint32_t len;
    uint32_t match; /* WR_DICT_UNKNOWN, WR_DICT_UNWANTED, or an index + WR_DICT_MATCH */
};
enum { WR_DICT_UNKNOWN = 0, WR_DICT_UNWANTED = 1, WR_DICT_MATCH = 2 };

struct weir_decoder {
    struct weir_alloc alloc;
    const struct weir_tags *tags;
    struct wr_dict_entry *dict;
    size_t dict_cap;
    size_t dict_count;
    struct weir_span span;
    struct weir_value slots[WEIR_TAG_SLOTS_MAX];
    /* OTLP: what the resource filled, copied under every span of it. */
    struct weir_value resource_slots[WEIR_TAG_SLOTS_MAX];
    uint64_t resource_present;
    struct wr_shape shape_fields[WR_SHAPE_FIELDS];
    struct wr_shape shape_meta[WR_SHAPE_META];
    struct wr_shape shape_metrics[WR_SHAPE_METRICS];
    struct wr_held held[WR_HELD_SPANS + 1]; /* the last one: of the spans behind them */
    char *kept;                             /* those: see dd_v1_kept.c */
    size_t kept_cap;
    size_t kept_len;
};

/* One walk of one payload. */
struct wr_walk {
    struct weir_decoder *decoder;
    const struct weir_span_sink *sink; /* NULL: validate only */
    struct weir_decode_result result;
};

/* Results of a walk, to whoever called: err, bad and reason are the cursor's. */
int wr_walk_end(const struct wr_walk *walk, int err, size_t bad_offset, const char *reason,
                struct weir_decode_result *ret_result, struct weir_where *ret_where);

/* Everything empty. Field by field: compilers make one store loop of an assignment of the whole,
 * which costs more than all the fields (8% of v1.0's walk). */
WR_INLINE void wr_span_clear(struct weir_span *span, const struct weir_value *slots)
{
    const struct weir_bytes none = {.ptr = NULL, .len = 0};
    span->service = none;
    span->name = none;
    span->resource = none;
    span->type = none;
    span->trace_id_hi = 0;
    span->trace_id = 0;
    span->span_id = 0;
    span->parent_id = 0;
    span->start_ns = 0;
    span->duration_ns = 0;
    span->weight = 0;
    span->kind = WEIR_KIND_NONE;
    span->flags = 0;
    span->present = 0;
    span->slots = slots;
    span->raw_offset = 0;
    span->raw_bytes = 0;
}

/* Begin a span. */
WR_INLINE void wr_span_begin(struct weir_decoder *d)
{
    wr_span_clear(&d->span, d->slots);
}

/* Hand the span over. What the sink returned. */
WR_INLINE int wr_span_end(struct wr_walk *walk)
{
    walk->result.spans++;
    return walk->sink ? walk->sink->span(walk->sink->ctx, &walk->decoder->span) : WEIR_OK;
}

WR_INLINE int wr_trace_end(struct wr_walk *walk)
{
    return walk->sink ? walk->sink->trace_end(walk->sink->ctx) : WEIR_OK;
}

/*
 * Put a value into every slot that its name fills at this place: a lower rank stands against a
 * higher one, an equal rank is replaced, so of a repeated key the last value wins.
 */
WR_INLINE void wr_put(const struct weir_tags *tags, const struct weir_tag_match *match,
                      unsigned where, const struct weir_value *value, struct weir_value *slots,
                      uint64_t *present)
{
    for (; match; match = wr_tags_next(tags, match)) {
        if (!(match->where & where))
            continue;
        const uint64_t bit = (uint64_t)1 << match->slot;
        struct weir_value *const slot = &slots[match->slot];
        if ((*present & bit) && slot->rank < match->rank)
            continue;
        *present |= bit;
        *slot = *value;
        slot->rank = match->rank;
    }
}

WR_INLINE struct weir_value wr_value_bytes(const char *ptr, size_t len)
{
    return (struct weir_value){.type = WEIR_VALUE_BYTES, .len = (uint32_t)len, .v.ptr = ptr};
}
#endif
