/* SPDX-License-Identifier: Apache-2.0 */
/*
 * v1: maps with integer keys; a string inline where it comes first, an index later (contracts
 * trace-encoding §2.4). The payload's header is written once a payload, before any chunk.
 */
#include "trace/put.h"

#define V WEIR_TRACE_V1

/* Types of attributes. */
enum { AS_STR = 1, AS_BOOL = 2, AS_DOUBLE = 3, AS_INT = 4, AS_BYTES = 5, AS_ARRAY = 6 };

WR_INLINE char *put_str(struct weir_trace_encoder *e, char *at, struct weir_str s)
{
    return WR_LIKELY(s.ptr) ? wr_put_str(e, at, s, V) : wr_mp_raw_byte(at, 0);
}

WR_INLINE char *put_field(struct weir_trace_encoder *e, char *at, unsigned field, struct weir_str s)
{
    return put_str(e, wr_mp_raw_byte(at, field), s);
}

static inline char *put_double(char *at, double v)
{
    at = wr_mp_raw_byte(at, AS_DOUBLE);
    return wr_mp_raw_double(at, v);
}

/* A span's and a chunk's attributes: every number is a double. */
WR_INLINE char *put_attribute(struct weir_trace_encoder *e, char *at,
                              const struct weir_trace_tag *tag)
{
    at = put_str(e, at, tag->key);
    switch (tag->value.type) {
    case WEIR_TRACE_BOOL:
        at = wr_mp_raw_byte(at, AS_BOOL);
        return wr_mp_raw_byte(at, tag->value.v.i ? 0xc3 : 0xc2);
    case WEIR_TRACE_INT:
        return put_double(at, (double)tag->value.v.i);
    case WEIR_TRACE_DOUBLE:
        return put_double(at, tag->value.v.d);
    default:
        at = wr_mp_raw_byte(at, AS_STR);
        return put_str(e, at, tag->value.v.str);
    }
}

/* Links' and events' attributes: integers stay integers, and there are arrays. */
static char *put_typed(struct weir_trace_encoder *e, char *at, const struct weir_trace_value *v)
{
    switch (v->type) {
    case WEIR_TRACE_BOOL:
        at = wr_mp_raw_byte(at, AS_BOOL);
        return wr_mp_raw_byte(at, v->v.i ? 0xc3 : 0xc2);
    case WEIR_TRACE_INT:
        at = wr_mp_raw_byte(at, AS_INT);
        return wr_mp_raw_int(at, v->v.i);
    case WEIR_TRACE_DOUBLE:
        return put_double(at, v->v.d);
    default:
        at = wr_mp_raw_byte(at, AS_STR);
        return put_str(e, at, v->v.str);
    }
}

static char *put_typed_list(struct weir_trace_encoder *e, char *at,
                            const struct weir_trace_tag *tags, size_t count)
{
    at = wr_mp_raw_array(at, (uint32_t)(3 * count));
    for (size_t i = 0; i < count; i++) {
        const struct weir_trace_value *const v = &tags[i].value;
        at = put_str(e, at, tags[i].key);
        if (v->type != WEIR_TRACE_ARRAY) {
            at = put_typed(e, at, v);
            continue;
        }
        at = wr_mp_raw_byte(at, AS_ARRAY);
        at = wr_mp_raw_array(at, 2 * v->count);
        for (uint32_t k = 0; k < v->count; k++)
            at = put_typed(e, at, &v->v.items[k]);
    }
    return at;
}

static char *put_trace_id(char *at, uint64_t hi, uint64_t lo)
{
    at = WR_PUT(at, "\xc4\x10"); /* 16 bytes */
    wr_store64be(at, hi);
    wr_store64be(at + 8, lo);
    return at + 16;
}

static char *put_links(struct weir_trace_encoder *e, char *at, const struct weir_trace_extra *x)
{
    at = wr_mp_raw_array(at, (uint32_t)x->link_count);
    for (size_t i = 0; i < x->link_count; i++) {
        const struct weir_trace_link *const l = &x->links[i];
        at = WR_PUT(at, "\x85\x01");
        at = put_trace_id(at, l->trace_id_hi, l->trace_id);
        at = wr_mp_raw_byte(at, 2);
        at = wr_mp_raw_uint(at, l->span_id);
        at = wr_mp_raw_byte(at, 3);
        at = put_typed_list(e, at, l->attributes, l->attribute_count);
        at = put_field(e, at, 4, l->tracestate);
        at = wr_mp_raw_byte(at, 5);
        at = wr_mp_raw_uint(at, l->flags & 0xff);
    }
    return at;
}

static char *put_events(struct weir_trace_encoder *e, char *at, const struct weir_trace_extra *x)
{
    at = wr_mp_raw_array(at, (uint32_t)x->event_count);
    for (size_t i = 0; i < x->event_count; i++) {
        const struct weir_trace_event *const event = &x->events[i];
        at = WR_PUT(at, "\x83\x01");
        at = wr_mp_raw_int(at, wr_trace_unsigned(event->time_ns));
        at = put_field(e, at, 2, event->name);
        at = wr_mp_raw_byte(at, 3);
        at = put_typed_list(e, at, event->attributes, event->attribute_count);
    }
    return at;
}

static WR_NOINLINE char *put_blobs(struct weir_trace_encoder *e, const struct weir_trace_extra *x,
                                   char *at)
{
    for (size_t i = 0; i < x->blob_count; i++) {
        at = put_str(e, at, x->blobs[i].key);
        at = wr_mp_raw_byte(at, AS_BYTES);
        at = wr_mp_raw_bin(at, x->blobs[i].value);
    }
    return at;
}

static WR_NOINLINE char *put_status(struct weir_trace_encoder *e, const struct wr_trace_plan *p,
                                    char *at)
{
    char digits[3];
    at = wr_put_known(e, at, WR_KNOWN_HTTP_STATUS, V);
    at = wr_mp_raw_byte(at, AS_STR);
    return wr_put_str(e, at, wr_status_text(p->span->http_status, digits), V);
}

WR_INLINE char *put_attributes(struct weir_trace_encoder *e, const struct wr_trace_plan *p,
                               char *at)
{
    const uint32_t own = p->own & WR_OWN_V1;
    const size_t blobs = p->span->extra ? p->span->extra->blob_count : 0;
    const size_t count = p->metrics + p->meta + e->own_v1 + blobs;
    at = wr_mp_raw_array(at, (uint32_t)(3 * count));
    if (own & WR_KNOWN_BIT(THREAD_ID)) {
        at = wr_put_known(e, at, WR_KNOWN_THREAD_ID, V);
        at = put_double(at, (double)p->span->thread_id);
    }
    if (own & WR_KNOWN_BIT(THREAD_NAME)) {
        at = wr_put_known(e, at, WR_KNOWN_THREAD_NAME, V);
        at = wr_mp_raw_byte(at, AS_STR);
        at = put_str(e, at, p->span->thread_name);
    }
    const struct weir_trace_tag *const events =
        p->events_json.ptr ? p->found[WR_KNOWN_EVENTS] : NULL;
    for (size_t i = 0; i < p->tag_count; i++) {
        if (!(p->drop && p->drop[i]) && &p->tags[i] != events)
            at = put_attribute(e, at, &p->tags[i]);
    }
    if (WR_UNLIKELY(own & WR_KNOWN_BIT(HTTP_STATUS)))
        at = put_status(e, p, at);
    if (own & WR_KNOWN_BIT(TOP_LEVEL)) {
        at = wr_put_known(e, at, WR_KNOWN_TOP_LEVEL, V);
        at = put_double(at, 1);
    }
    return WR_UNLIKELY(blobs) ? put_blobs(e, p->span->extra, at) : at;
}

/* The text of a tag that is a field in this version; none where it is no text. */
static inline struct weir_str tag_text(const struct wr_trace_plan *p, enum wr_known known)
{
    const bool is = p->seen >> known & 1 && p->found[known]->value.type == WEIR_TRACE_STR;
    return is ? p->found[known]->value.v.str : (struct weir_str){.ptr = NULL};
}

static unsigned kind_of(struct weir_trace_encoder *e, const struct wr_trace_plan *p)
{
    const struct weir_str s = tag_text(p, WR_KNOWN_SPAN_KIND);
    if (!s.ptr)
        return p->seen & WR_KNOWN_BIT(SPAN_KIND) ? 1 : p->span->kind;
    const struct weir_bytes b = wr_trace_utf8(e, s);
    for (unsigned kind = 2; kind <= 5; kind++) {
        const struct weir_text *const word = &e->known[WR_KNOWN_INTERNAL + kind - 1];
        if (word->len == b.len && memcmp(wr_text_content(word), b.ptr, b.len) == 0)
            return kind;
    }
    return 1; /* internal, and any other word */
}

/* Fields 11 to 16 of a span that has some of them. */
static WR_NOINLINE char *put_rest(struct weir_trace_encoder *e, const struct wr_trace_plan *p,
                                  char *at)
{
    const struct weir_trace_extra none = {.links = NULL};
    const struct weir_trace_extra *const x = p->span->extra ? p->span->extra : &none;
    at = put_links(e, wr_mp_raw_byte(at, 11), x);
    at = wr_mp_raw_byte(at, 12);
    at = p->events_json.ptr ? wr_trace_events_put(e, p->events_json, at) : put_events(e, at, x);
    at = put_field(e, at, 13, tag_text(p, WR_KNOWN_ENV));
    at = put_field(e, at, 14, tag_text(p, WR_KNOWN_VERSION));
    at = put_field(e, at, 15, tag_text(p, WR_KNOWN_COMPONENT));
    at = wr_mp_raw_byte(at, 16);
    return wr_mp_raw_byte(at, kind_of(e, p));
}

char *wr_trace_span_v1(struct weir_trace_encoder *e, const struct wr_trace_plan *p, char *at)
{
    const struct weir_trace_span *const s = p->span;
    at = WR_PUT(at, "\xde\x00\x10\x01");
    at = put_str(e, at, s->service);
    at = put_field(e, at, 2, s->name);
    at = put_field(e, at, 3, s->resource);
    at = wr_mp_raw_byte(at, 4);
    at = wr_mp_raw_uint(at, s->span_id);
    at = wr_mp_raw_byte(at, 5);
    at = wr_mp_raw_uint(at, s->parent_id);
    at = wr_mp_raw_byte(at, 6);
    at = wr_put_time(at, wr_trace_unsigned(s->start_ns));
    at = wr_mp_raw_byte(at, 7);
    at = wr_mp_raw_int(at, wr_trace_unsigned(s->duration_ns));
    at = wr_mp_raw_byte(at, 8);
    at = wr_mp_raw_byte(at, s->error ? 0xc3 : 0xc2);
    at = put_attributes(e, p, wr_mp_raw_byte(at, 9));
    at = put_field(e, at, 10, s->type);
    const uint32_t fields = WR_KNOWN_BIT(ENV) | WR_KNOWN_BIT(VERSION) | WR_KNOWN_BIT(COMPONENT) |
                            WR_KNOWN_BIT(SPAN_KIND) | WR_KNOWN_BIT(EVENTS);
    if (WR_UNLIKELY(s->extra || p->seen & fields))
        return put_rest(e, p, at);
    at = WR_PUT(at, "\x0b\x90\x0c\x90\x0d\x00\x0e\x00\x0f\x00\x10");
    return wr_mp_raw_byte(at, s->kind);
}

char *wr_trace_chunk_begin_v1(struct weir_trace_encoder *e, const struct wr_trace_plan *p, char *at)
{
    const struct weir_trace *const t = p->trace;
    at = WR_PUT(at, "\x86\x01");
    at = wr_mp_raw_int(at, t->flags & WEIR_TRACE_PRIORITY ? t->priority
                                                          : -128); /* none: as the reference */
    at = put_field(e, at, 2, t->origin);
    at = wr_mp_raw_byte(at, 3);
    const struct weir_str service = t->service.ptr ? t->service : t->spans[0].service;
    if (service.ptr) {
        at = wr_mp_raw_byte(at, 0x93);
        at = wr_put_known(e, at, WR_KNOWN_SERVICE, V);
        at = wr_mp_raw_byte(at, AS_STR);
        at = put_str(e, at, service);
    } else {
        at = wr_mp_raw_byte(at, 0x90);
    }
    at = wr_mp_raw_byte(at, 4);
    return wr_mp_raw_array(at, (uint32_t)t->span_count);
}

/* _dd.p.dm is "-4" or "<service hash>-4": the number after the last hyphen. */
static uint32_t mechanism_of(struct weir_bytes s)
{
    uint32_t value = 0;
    size_t i = s.len;
    while (i > 0 && s.ptr[i - 1] != '-')
        i--;
    for (; i < s.len; i++) {
        const unsigned digit = (unsigned)(unsigned char)s.ptr[i] - '0';
        if (digit > 9 || value > UINT32_MAX / 10 - 1)
            return 0;
        value = value * 10 + digit;
    }
    return value;
}

static uint32_t mechanism(struct weir_trace_encoder *e, const struct weir_trace *t)
{
    for (size_t i = t->tag_count; i-- > 0;) {
        const struct weir_trace_tag *const tag = &t->tags[i];
        const struct weir_bytes key = wr_trace_utf8(e, tag->key);
        if (wr_known_find(key.ptr, key.len) != WR_KNOWN_P_DM)
            continue;
        if (tag->value.type == WEIR_TRACE_STR)
            return mechanism_of(wr_trace_utf8(e, tag->value.v.str));
        if (tag->value.type == WEIR_TRACE_INT && tag->value.v.i > -1000 && tag->value.v.i < 1000)
            return (uint32_t)(tag->value.v.i < 0 ? -tag->value.v.i : tag->value.v.i);
    }
    return 0;
}

char *wr_trace_chunk_end_v1(struct weir_trace_encoder *e, const struct wr_trace_plan *p, char *at)
{
    const struct weir_trace *const t = p->trace;
    at = wr_mp_raw_byte(at, 6);
    at = put_trace_id(at, t->trace_id_hi, t->spans[0].trace_id);
    at = wr_mp_raw_byte(at, 7);
    return wr_mp_raw_uint(at, mechanism(e, t));
}

char *wr_trace_header_v1(struct weir_trace_encoder *e, const struct wr_trace_plan *p, char *at)
{
    const struct weir_trace_header none = {.language = {.ptr = NULL}};
    const struct weir_trace_header *const h = e->header ? e->header : &none;
    at = WR_PUT(at, "\x8a");
    at = put_field(e, at, 2, h->container_id);
    at = put_field(e, at, 3, h->language);
    at = put_field(e, at, 4, h->language_version);
    at = put_field(e, at, 5, h->tracer_version);
    at = put_field(e, at, 6, h->runtime_id);
    at = put_field(e, at, 7, h->env);
    at = put_field(e, at, 8, h->hostname);
    at = put_field(e, at, 9, h->app_version);
    at = wr_mp_raw_byte(at, 10);
    at = wr_mp_raw_array(at, (uint32_t)(3 * p->tag_count));
    for (size_t i = 0; i < p->tag_count; i++)
        at = put_attribute(e, at, &p->tags[i]);
    return wr_mp_raw_byte(at, 11);
}
