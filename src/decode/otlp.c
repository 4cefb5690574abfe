/* SPDX-License-Identifier: Apache-2.0 */
/*
 * otlp: ExportTraceServiceRequest, protobuf.
 *
 *   request 1 ResourceSpans { 1 resource { 1 attributes }, 2 ScopeSpans { 1 scope, 2 Span } }
 *
 * Idea: fields may come in any order, so each ResourceSpans is walked twice on its top level
 * (two or three fields): first for its resource, whose wanted attributes are kept as the base of
 * every span under it, then for its spans. A span's attributes go straight to their slots, so
 * nothing depends on kind or times having been seen. A span attribute stands against a resource
 * attribute for the same slot, by rank: the base's ranks begin at 128.
 *
 * Every message is proved well formed, also what nobody wants (events, links, scope, unwanted
 * attribute values), because AnyValue may nest without end: text, numbers and booleans, which are
 * nearly all values, by a glance; the rest by check(), whose recursion ends at the depth limit.
 * Unknown fields are skipped by their length; they have no known inside.
 *
 * A known field number with another wire type is an unknown field, as protobuf has it. Scalars that
 * repeat: the last wins; messages that repeat add up.
 *
 * Threads, memory: see decoder.h.
 * Source: opentelemetry-proto 1.7, trace/v1, common/v1, resource/v1.
 */
#include "decode/decoder.h"
#include "wire/pb_read.h"

#define LEN(number) WR_PB_TAG(number, WR_PB_LEN)
#define VARINT(number) WR_PB_TAG(number, WR_PB_VARINT)
#define FIXED64(number) WR_PB_TAG(number, WR_PB_FIXED64)

#define RESOURCE_RANK 128u

/* Depth of the messages, the request being 1. */
#define RESOURCE_DEPTH 3u
#define SCOPE_DEPTH 4u
#define SPAN_DEPTH 4u

struct otlp {
    struct wr_pb pb;
    struct wr_walk walk;
};

/* A span while it is read: what settles only at its end. */
struct open_span {
    const uint8_t *trace_id;
    const uint8_t *span_id;
    uint64_t trace_id_len;
    uint64_t span_id_len;
    uint64_t start;
    uint64_t end;
    uint64_t status;
    struct weir_bytes name;
};

enum message {
    MSG_ANY,
    MSG_ARRAY,
    MSG_KEY_VALUES,
    MSG_KEY_VALUE,
    MSG_EVENT,
    MSG_LINK,
    MSG_SCOPE,
    MSG_LEAF /* no message inside */
};

/* What is in a length-delimited field of a message, as far as it nests. */
static enum message inside(enum message message, uint32_t tag)
{
    switch (message) {
    case MSG_ANY:
        return tag == LEN(5) ? MSG_ARRAY : tag == LEN(6) ? MSG_KEY_VALUES : MSG_LEAF;
    case MSG_ARRAY:
        return tag == LEN(1) ? MSG_ANY : MSG_LEAF;
    case MSG_KEY_VALUES:
        return tag == LEN(1) ? MSG_KEY_VALUE : MSG_LEAF;
    case MSG_KEY_VALUE:
        return tag == LEN(2) ? MSG_ANY : MSG_LEAF;
    case MSG_EVENT:
    case MSG_SCOPE:
        return tag == LEN(3) ? MSG_KEY_VALUE : MSG_LEAF;
    case MSG_LINK:
        return tag == LEN(4) ? MSG_KEY_VALUE : MSG_LEAF;
    case MSG_LEAF:
        break;
    }
    return MSG_LEAF;
}

/* Prove a message of no interest well formed. Recursion is bounded by the depth limit. */
static const uint8_t *check(struct wr_pb *pb, enum message message, const uint8_t *at,
                            const uint8_t *end, unsigned depth)
{
    if (depth > WEIR_DECODE_DEPTH_MAX)
        return wr_pb_fail(pb, at, WEIR_EFORMAT, "nested too deep");
    while (at < end) {
        struct wr_pb_field f;
        at = wr_pb_field(pb, at, end, &f);
        if (!at)
            return NULL;
        const enum message nested = inside(message, f.tag);
        if (nested != MSG_LEAF && !check(pb, nested, f.ptr, at, depth + 1))
            return NULL;
    }
    return end;
}

/* Is the AnyValue of len bytes one string, boolean, integer or double and nothing else? */
WR_INLINE bool is_plain(const uint8_t *at, size_t len)
{
    if (WR_LIKELY(len >= 2 && at[0] == LEN(1) && at[1] < 0x80))
        return len == (size_t)at[1] + 2;
    if (len == 2)
        return (at[0] == VARINT(2) || at[0] == VARINT(3)) && at[1] < 0x80;
    return len == 9 && at[0] == FIXED64(4);
}

/* Add what an AnyValue holds to *ret: of several, the last; another type ends it as NONE. */
static const uint8_t *read_any(struct wr_pb *pb, const uint8_t *at, const uint8_t *end,
                               unsigned depth, struct weir_value *ret)
{
    while (at < end) {
        struct wr_pb_field f;
        at = wr_pb_field(pb, at, end, &f);
        if (!at)
            return NULL;
        switch (f.tag) {
        case LEN(1):
            *ret = wr_value_bytes((const char *)f.ptr, (size_t)f.u);
            break;
        case VARINT(2):
            *ret = (struct weir_value){.type = WEIR_VALUE_BOOL, .v.i = f.u != 0};
            break;
        case VARINT(3):
            *ret = (struct weir_value){.type = WEIR_VALUE_INT, .v.i = (int64_t)f.u};
            break;
        case FIXED64(4):
            *ret = (struct weir_value){.type = WEIR_VALUE_DOUBLE};
            memcpy(&ret->v.d, &f.u, sizeof f.u);
            break;
        case LEN(5):
        case LEN(6):
            if (!check(pb, f.tag == LEN(5) ? MSG_ARRAY : MSG_KEY_VALUES, f.ptr, at, depth + 1))
                return NULL;
            *ret = (struct weir_value){.type = WEIR_VALUE_NONE};
            break;
        case LEN(7):
            *ret = (struct weir_value){.type = WEIR_VALUE_NONE};
            break;
        default:
            break;
        }
    }
    return end;
}

/* The value of an attribute: kept if wanted, else only proved well formed. */
WR_INLINE const uint8_t *attribute_value(struct otlp *o, const uint8_t *at, size_t len,
                                         unsigned depth, bool wanted, struct weir_value *value)
{
    if (WR_LIKELY(is_plain(at, len))) {
        if (!wanted)
            return at;
        if (at[0] == LEN(1)) {
            *value = wr_value_bytes((const char *)at + 2, len - 2);
            return at;
        }
    }
    return read_any(&o->pb, at, at + len, depth, value);
}

struct target {
    struct weir_value *slots;
    uint64_t *present;
    unsigned where;
};

/*
 * A KeyValue whose parts are not key, then value: value first, one of them missing or twice.
 */
static const uint8_t *read_odd_attribute(struct otlp *o, const uint8_t *begin, const uint8_t *end,
                                         unsigned depth, const struct target *target)
{
    struct weir_value value = {.type = WEIR_VALUE_NONE};
    struct weir_bytes key = {.ptr = "", .len = 0};
    for (const uint8_t *at = begin; at < end;) {
        struct wr_pb_field f;
        at = wr_pb_field(&o->pb, at, end, &f);
        if (!at)
            return NULL;
        if (f.tag == LEN(1))
            key = (struct weir_bytes){.ptr = (const char *)f.ptr, .len = (size_t)f.u};
        else if (f.tag == LEN(2) && !read_any(&o->pb, f.ptr, at, depth + 1, &value))
            return NULL;
    }
    const struct weir_tags *const tags = o->walk.decoder->tags;
    const struct weir_tag_match *const match = wr_tags_find(tags, key.ptr, key.len);
    if (match && value.type != WEIR_VALUE_NONE)
        wr_put(tags, match, target->where, &value, target->slots, target->present);
    return end;
}

/* A KeyValue { 1 key, 2 value } at [at, end). depth is its own. */
WR_INLINE const uint8_t *read_attribute(struct otlp *o, const uint8_t *at, const uint8_t *end,
                                        unsigned depth, const struct target *target)
{
    const struct weir_tags *const tags = o->walk.decoder->tags;
    struct wr_pb_field key;
    struct wr_pb_field value;
    const uint8_t *next = at < end ? wr_pb_field(&o->pb, at, end, &key) : NULL;
    if (!next || key.tag != LEN(1) || next == end)
        return at < end && !next ? NULL : read_odd_attribute(o, at, end, depth, target);
    next = wr_pb_field(&o->pb, next, end, &value);
    if (!next)
        return NULL;
    if (WR_UNLIKELY(value.tag != LEN(2) || next != end))
        return read_odd_attribute(o, at, end, depth, target);
    const struct weir_tag_match *const match =
        wr_tags_find(tags, (const char *)key.ptr, (size_t)key.u);
    struct weir_value any = {.type = WEIR_VALUE_NONE};
    if (!attribute_value(o, value.ptr, (size_t)value.u, depth + 1, match != NULL, &any))
        return NULL;
    if (match && any.type != WEIR_VALUE_NONE)
        wr_put(tags, match, target->where, &any, target->slots, target->present);
    return end;
}

static const uint8_t *read_resource(struct otlp *o, const uint8_t *at, const uint8_t *end)
{
    struct weir_decoder *const d = o->walk.decoder;
    const struct target target = {.slots = d->resource_slots,
                                  .present = &d->resource_present,
                                  .where = WEIR_IN_OTLP_RESOURCE};
    while (at < end) {
        struct wr_pb_field f;
        at = wr_pb_field(&o->pb, at, end, &f);
        if (!at)
            return NULL;
        if (f.tag == LEN(1) && !read_attribute(o, f.ptr, at, RESOURCE_DEPTH + 1, &target))
            return NULL;
    }
    return end;
}

static const uint8_t *read_status(struct otlp *o, const uint8_t *at, const uint8_t *end,
                                  uint64_t *ret_code)
{
    while (at < end) {
        struct wr_pb_field f;
        at = wr_pb_field(&o->pb, at, end, &f);
        if (!at)
            return NULL;
        if (f.tag == VARINT(3))
            *ret_code = f.u;
    }
    return end;
}

/* The less frequent messages of a span: status, events, links. */
static const uint8_t *read_span_message(struct otlp *o, const struct wr_pb_field *f,
                                        const uint8_t *end, struct open_span *open)
{
    switch (f->tag) {
    case LEN(15):
        return read_status(o, f->ptr, end, &open->status);
    case LEN(11):
        return check(&o->pb, MSG_EVENT, f->ptr, end, SPAN_DEPTH + 1);
    case LEN(13):
        return check(&o->pb, MSG_LINK, f->ptr, end, SPAN_DEPTH + 1);
    default:
        return end;
    }
}

static const uint8_t *read_span_fields(struct otlp *o, const uint8_t *at, const uint8_t *end,
                                       struct open_span *open)
{
    struct weir_decoder *const d = o->walk.decoder;
    struct weir_span *const span = &d->span;
    const struct target target = {
        .slots = d->slots, .present = &span->present, .where = WEIR_IN_OTLP_SPAN};
    while (at < end) {
        struct wr_pb_field f;
        at = wr_pb_field(&o->pb, at, end, &f);
        if (!at)
            return NULL;
        switch (f.tag) {
        case LEN(9):
            if (!read_attribute(o, f.ptr, at, SPAN_DEPTH + 1, &target))
                return NULL;
            break;
        case LEN(1):
            open->trace_id = f.ptr;
            open->trace_id_len = f.u;
            break;
        case LEN(2):
            open->span_id = f.ptr;
            open->span_id_len = f.u;
            break;
        case LEN(4):
            /* No row speaks of other lengths than 0 and 8: the span stands, without a parent. */
            span->parent_id = f.u == 8 ? wr_load64be(f.ptr) : 0;
            break;
        case LEN(5):
            open->name = (struct weir_bytes){.ptr = (const char *)f.ptr, .len = (size_t)f.u};
            break;
        case VARINT(6):
            span->kind = f.u <= WEIR_KIND_CONSUMER ? (uint8_t)f.u : WEIR_KIND_NONE;
            break;
        case FIXED64(7):
            open->start = f.u;
            break;
        case FIXED64(8):
            open->end = f.u;
            break;
        default:
            if (!read_span_message(o, &f, at, open))
                return NULL;
            break;
        }
    }
    return end;
}

static int64_t clamp_i64(uint64_t v)
{
    return v > INT64_MAX ? INT64_MAX : (int64_t)v;
}

static void settle_times(struct weir_span *span, uint64_t start, uint64_t end)
{
    if (start == 0)
        span->flags |= WEIR_SPAN_NO_START;
    if (end == 0)
        span->flags |= WEIR_SPAN_NO_END;
    span->start_ns = clamp_i64(start != 0 ? start : end);
    if (start == 0 || end == 0)
        span->duration_ns = 0;
    else
        span->duration_ns = end >= start ? clamp_i64(end - start) : -clamp_i64(start - end);
}

static struct weir_bytes text_of(const struct weir_decoder *d, enum weir_tag tag,
                                 struct weir_bytes otherwise)
{
    const struct weir_value *const v = &d->slots[tag];
    if (!(d->span.present & (uint64_t)1 << tag) || v->type != WEIR_VALUE_BYTES || v->len == 0)
        return otherwise;
    return (struct weir_bytes){.ptr = v->v.ptr, .len = v->len};
}

static void settle_fields(struct weir_decoder *d, const struct open_span *open)
{
    const struct weir_bytes nothing = {.ptr = NULL, .len = 0};
    struct weir_span *const span = &d->span;
    span->flags |= WEIR_SPAN_LOOSE;
    if (open->status == 2)
        span->flags |= WEIR_SPAN_ERROR;
    settle_times(span, open->start, open->end);
    span->service = text_of(d, WEIR_TAG_SERVICE, nothing);
    span->name = text_of(d, WEIR_TAG_OPERATION, nothing);
    span->resource = text_of(d, WEIR_TAG_RESOURCE, open->name);
    span->type = text_of(d, WEIR_TAG_TYPE, nothing);
}

/* Are the ids of the lengths they must have, and not zero? */
static bool ids_ok(struct weir_span *span, const struct open_span *open, enum weir_refusal *ret)
{
    *ret = WEIR_REFUSED_TRACE_ID;
    if (open->trace_id_len != 16)
        return false;
    span->trace_id_hi = wr_load64be(open->trace_id);
    span->trace_id = wr_load64be(open->trace_id + 8);
    if ((span->trace_id_hi | span->trace_id) == 0)
        return false;
    *ret = WEIR_REFUSED_SPAN_ID;
    if (open->span_id_len != 8)
        return false;
    span->span_id = wr_load64be(open->span_id);
    return span->span_id != 0;
}

static void copy_resource(struct weir_decoder *d)
{
    uint64_t left = d->resource_present;
    d->span.present = left;
    while (left) {
        const unsigned slot = (unsigned)__builtin_ctzll(left);
        d->slots[slot] = d->resource_slots[slot];
        left &= left - 1;
    }
}

static const uint8_t *read_span(struct otlp *o, const uint8_t *at, const uint8_t *end)
{
    struct weir_decoder *const d = o->walk.decoder;
    const uint8_t *const begin = at;
    struct open_span open = {.trace_id_len = 0};
    enum weir_refusal refusal;
    wr_span_begin(d);
    copy_resource(d);
    if (!read_span_fields(o, at, end, &open))
        return NULL;
    if (!ids_ok(&d->span, &open, &refusal)) {
        o->walk.result.refused++;
        if (o->walk.sink && o->walk.sink->refused)
            o->walk.sink->refused(o->walk.sink->ctx, refusal);
        return end;
    }
    settle_fields(d, &open);
    d->span.raw_offset = (size_t)(begin - o->pb.begin);
    d->span.raw_bytes = (size_t)(end - begin);
    const int r = wr_span_end(&o->walk);
    if (r != WEIR_OK)
        return wr_pb_fail(&o->pb, begin, r, NULL);
    return end;
}

static const uint8_t *read_scope_spans(struct otlp *o, const uint8_t *at, const uint8_t *end)
{
    while (at < end) {
        struct wr_pb_field f;
        at = wr_pb_field(&o->pb, at, end, &f);
        if (!at)
            return NULL;
        if (f.tag == LEN(2)) {
            if (!read_span(o, f.ptr, at))
                return NULL;
        } else if (f.tag == LEN(1)) {
            if (!check(&o->pb, MSG_SCOPE, f.ptr, at, SCOPE_DEPTH))
                return NULL;
        }
    }
    return end;
}

/* First pass over a ResourceSpans: its resource, wherever it stands. */
static const uint8_t *find_resource(struct otlp *o, const uint8_t *at, const uint8_t *end)
{
    struct weir_decoder *const d = o->walk.decoder;
    d->resource_present = 0;
    while (at < end) {
        struct wr_pb_field f;
        at = wr_pb_field(&o->pb, at, end, &f);
        if (!at)
            return NULL;
        if (f.tag == LEN(1) && !read_resource(o, f.ptr, at))
            return NULL;
    }
    for (unsigned slot = 0; slot < WEIR_TAG_SLOTS_MAX; slot++)
        if (d->resource_present & (uint64_t)1 << slot)
            d->resource_slots[slot].rank |= RESOURCE_RANK;
    return end;
}

static const uint8_t *read_resource_spans(struct otlp *o, const uint8_t *at, const uint8_t *end)
{
    if (!find_resource(o, at, end))
        return NULL;
    while (at < end) {
        struct wr_pb_field f;
        at = wr_pb_field(&o->pb, at, end, &f);
        if (!at || (f.tag == LEN(2) && !read_scope_spans(o, f.ptr, at)))
            return NULL;
    }
    return end;
}

static const uint8_t *read_request(struct otlp *o)
{
    const uint8_t *at = o->pb.begin;
    while (at < o->pb.end) {
        struct wr_pb_field f;
        at = wr_pb_field(&o->pb, at, o->pb.end, &f);
        if (!at || (f.tag == LEN(1) && !read_resource_spans(o, f.ptr, at)))
            return NULL;
    }
    const int r = wr_trace_end(&o->walk);
    return r == WEIR_OK ? at : wr_pb_fail(&o->pb, at, r, NULL);
}

int weir_decode_otlp_traces(struct weir_decoder *decoder, const void *payload, size_t bytes,
                            const struct weir_span_sink *sink,
                            struct weir_decode_result *ret_result, struct weir_where *ret_where)
{
    struct otlp o = {.pb = wr_pb_init(payload, bytes), .walk = {.decoder = decoder, .sink = sink}};
    if (bytes > UINT32_MAX)
        WR_IGNORE(wr_pb_fail(&o.pb, o.pb.begin, WEIR_EFORMAT, "more than 4 GiB") != NULL);
    else
        WR_IGNORE(read_request(&o) != NULL);
    const size_t bad = o.pb.bad ? (size_t)(o.pb.bad - o.pb.begin) : 0;
    return wr_walk_end(&o.walk, o.pb.err, bad, o.pb.reason, ret_result, ret_where);
}
