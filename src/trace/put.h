/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WR_TRACE_PUT_H
#define WR_TRACE_PUT_H
/*
 * put: values as each version writes them. version is a constant at every call, so that the
 * compiler keeps one branch of each function; what all versions share is written once.
 *
 * The space was reserved by a plan's bound; a framed text may be copied past its end.
 */
#include "trace/encoder.h"

/* Literal bytes, MessagePack headers included. */
#define WR_PUT(at, literal) wr_put_literal((at), (literal), sizeof(literal) - 1)
WR_INLINE char *wr_put_literal(char *at, const char *literal, size_t n)
{
    memcpy(at, literal, n);
    return at + n;
}

WR_INLINE char *wr_put_framed(struct weir_trace_encoder *e, char *at, const struct weir_text *t)
{
    const size_t n = t->framed_len;
    memcpy(at, t->framed, WR_TEXT_STEP);
    if (WR_UNLIKELY(n > WR_TEXT_STEP)) {
        if (!wr_trace_has_room(e, n))
            return at;
        memcpy(at + WR_TEXT_STEP, t->framed + WR_TEXT_STEP, n - WR_TEXT_STEP);
    }
    return at + n;
}

/* v1.0: the string itself where it is new. */
WR_INLINE char *wr_put_stream(struct weir_trace_encoder *e, char *at, uint32_t index, bool fresh)
{
    if (WR_LIKELY(!fresh))
        return wr_mp_raw_uint(at, index);
    const struct wr_trace_dict_entry *const entry = &e->dict.entries[index];
    if (!wr_trace_has_room(e, entry->len))
        return at;
    return wr_mp_raw_str(at, e->dict.text.ptr + entry->offset, entry->len);
}

WR_INLINE char *wr_put_str(struct weir_trace_encoder *e, char *at, struct weir_str s,
                           const uint32_t version)
{
    if (version == WEIR_TRACE_V04) {
        if (WR_LIKELY(s.kind == WEIR_STR_TEXT))
            return wr_put_framed(e, at, wr_text_of(s));
        return wr_trace_put_plain(e, at, s);
    }
    uint32_t index;
    if (WR_LIKELY(s.kind == WEIR_STR_TEXT) && wr_trace_dict_has(&e->dict, wr_text_of(s), &index))
        return wr_mp_raw_uint(at, index);
    bool fresh;
    index = wr_trace_index(e, s, &fresh);
    return wr_put_stream(e, at, index, version == WEIR_TRACE_V1 && fresh);
}

/* Bytes of each, framed. */
static const uint8_t wr_known_framed[WR_KNOWN_COUNT] = {
#define WR_KNOWN_FRAMED(name, text) (uint8_t)(sizeof(text) - 1 + (sizeof(text) - 1 < 16 ? 1 : 2)),
    WR_KNOWN_MAP(WR_KNOWN_FRAMED)
#undef WR_KNOWN_FRAMED
};

WR_INLINE char *wr_put_known(struct weir_trace_encoder *e, char *at, enum wr_known known,
                             const uint32_t version)
{
    if (version == WEIR_TRACE_V04) {
        memcpy(at, e->framed[known], WR_TEXT_STEP);
        return at + wr_known_framed[known];
    }
    return wr_put_str(e, at, weir_str_text(&e->known[known]), version);
}

/* Nanoseconds since 1970: nearly always 64 bits. */
WR_INLINE char *wr_put_time(char *at, int64_t v)
{
    if (WR_UNLIKELY(v <= UINT32_MAX))
        return wr_mp_raw_int(at, v);
    *at = (char)0xcf;
    wr_store64be(at + 1, (uint64_t)v);
    return at + 9;
}

/* Times of v1.0: its agents read them as unsigned, and refuse a payload with one below 0 as a
 * whole. */
WR_INLINE int64_t wr_trace_unsigned(int64_t v)
{
    return v < 0 ? 0 : v;
}

/* Nearly always below 128. */
WR_INLINE char *wr_put_small(char *at, int64_t v)
{
    return WR_LIKELY((uint64_t)v < 128) ? wr_mp_raw_byte(at, (unsigned)v) : wr_mp_raw_int(at, v);
}

WR_INLINE char *wr_put_number(char *at, const struct weir_trace_value *v)
{
    return v->type == WEIR_TRACE_INT ? wr_mp_raw_int(at, v->v.i) : wr_mp_raw_double(at, v->v.d);
}

/* A status as text: three digits, as http_status was checked. */
static inline struct weir_str wr_status_text(uint32_t status, char digits[3])
{
    digits[0] = (char)('0' + status / 100);
    digits[1] = (char)('0' + status / 10 % 10);
    digits[2] = (char)('0' + status % 10);
    return weir_str_utf8(digits, 3);
}

/*
 * The two maps of a span in v0.4 and v0.5: first what the encoder writes itself, then the tags.
 * Written without their names, which only v0.4 has.
 */
WR_INLINE char *wr_put_metrics(struct weir_trace_encoder *e, const struct wr_trace_plan *p,
                               char *at, const uint32_t version)
{
    const struct weir_trace_span *const s = p->span;
    const uint32_t own = p->own & WR_OWN_METRICS;
    at = wr_mp_raw_map(at, p->metrics + e->own_metrics);
    if (own & WR_KNOWN_BIT(PRIORITY)) {
        at = wr_put_known(e, at, WR_KNOWN_PRIORITY, version);
        at = wr_put_small(at, p->trace->priority);
    }
    if (own & WR_KNOWN_BIT(MEASURED)) {
        at = wr_put_known(e, at, WR_KNOWN_MEASURED, version);
        at = wr_mp_raw_byte(at, 1);
    }
    if (own & WR_KNOWN_BIT(TOP_LEVEL)) {
        at = wr_put_known(e, at, WR_KNOWN_TOP_LEVEL, version);
        at = wr_mp_raw_byte(at, 1);
    }
    if (WR_UNLIKELY(own & (WR_KNOWN_BIT(PARTIAL) | WR_KNOWN_BIT(WAS_LONG)))) {
        const bool partial = own & WR_KNOWN_BIT(PARTIAL);
        at = wr_put_known(e, at, partial ? WR_KNOWN_PARTIAL : WR_KNOWN_WAS_LONG, version);
        at = wr_mp_raw_int(at, partial ? s->long_running_version : 1);
    }
    if (own & WR_KNOWN_BIT(THREAD_ID)) {
        at = wr_put_known(e, at, WR_KNOWN_THREAD_ID, version);
        at = wr_put_small(at, s->thread_id);
    }
    if (!p->metrics)
        return at;
    /* Copies: the compiler takes every byte stored for one that could change *p. */
    const struct weir_trace_tag *const tags = p->tags;
    const unsigned char *const drop = p->drop;
    const size_t count = p->tag_count;
    for (size_t i = 0; i < count; i++) {
        const struct weir_trace_tag *const tag = &tags[i];
        if (tag->value.type < WEIR_TRACE_INT || WR_UNLIKELY(drop && drop[i]))
            continue;
        at = wr_put_str(e, at, tag->key, version);
        at = wr_put_number(at, &tag->value);
    }
    return at;
}

WR_INLINE char *wr_put_texts(struct weir_trace_encoder *e, const struct wr_trace_plan *p, char *at,
                             size_t from, size_t to, const uint32_t version)
{
    const struct weir_trace_tag *const tags = p->tags;
    const unsigned char *const drop = p->drop;
    for (size_t i = from; i < to; i++) {
        const struct weir_trace_tag *const tag = &tags[i];
        if (tag->value.type >= WEIR_TRACE_INT || WR_UNLIKELY(drop && drop[i]))
            continue;
        at = wr_put_str(e, at, tag->key, version);
        if (tag->value.type == WEIR_TRACE_BOOL)
            at = wr_put_known(e, at, tag->value.v.i ? WR_KNOWN_TRUE : WR_KNOWN_FALSE, version);
        else
            at = wr_put_str(e, at, tag->value.v.str, version);
    }
    return at;
}

/* Own entries that few spans have: apart, as they need stack that is guarded. */
static WR_NOINLINE char *wr_put_rare_meta(struct weir_trace_encoder *e,
                                          const struct wr_trace_plan *p, char *at, uint32_t own,
                                          const uint32_t version)
{
    if (own & WR_KNOWN_BIT(HTTP_STATUS)) {
        char digits[3];
        at = wr_put_known(e, at, WR_KNOWN_HTTP_STATUS, version);
        at = wr_put_str(e, at, wr_status_text(p->span->http_status, digits), version);
    }
    if (own & WR_KNOWN_BIT(SPAN_KIND)) {
        at = wr_put_known(e, at, WR_KNOWN_SPAN_KIND, version);
        at = wr_put_known(e, at, (enum wr_known)(WR_KNOWN_INTERNAL + p->span->kind - 1), version);
    }
    if (own & WR_KNOWN_BIT(LINKS)) {
        at = wr_put_known(e, at, WR_KNOWN_LINKS, version);
        at = wr_put_str(e, at, p->links, version);
    }
    if (own & WR_KNOWN_BIT(EVENTS)) {
        at = wr_put_known(e, at, WR_KNOWN_EVENTS, version);
        at = wr_put_str(e, at, p->events, version);
    }
    return at;
}

static inline struct weir_str wr_hex_text(uint64_t v, char hex[16])
{
    for (int i = 0; i < 16; i++)
        hex[i] = "0123456789abcdef"[v >> (60 - 4 * i) & 15];
    return weir_str_utf8(hex, 16);
}

static WR_NOINLINE char *wr_put_tid(struct weir_trace_encoder *e, const struct wr_trace_plan *p,
                                    char *at, const uint32_t version)
{
    char hex[16];
    at = wr_put_known(e, at, WR_KNOWN_P_TID, version);
    return wr_put_str(e, at, wr_hex_text(p->trace->trace_id_hi, hex), version);
}

WR_INLINE char *wr_put_meta(struct weir_trace_encoder *e, const struct wr_trace_plan *p, char *at,
                            const uint32_t version)
{
    const uint32_t own = p->own & WR_OWN_META;
    at = wr_mp_raw_map(at, p->meta + e->own_meta);
    if (WR_UNLIKELY(own & WR_KNOWN_BIT(P_TID)))
        at = wr_put_tid(e, p, at, version);
    if (WR_UNLIKELY(p->lead))
        at = wr_put_texts(e, p, at, 0, p->lead, version);
    if (own & WR_KNOWN_BIT(THREAD_NAME)) {
        at = wr_put_known(e, at, WR_KNOWN_THREAD_NAME, version);
        at = wr_put_str(e, at, p->span->thread_name, version);
    }
    const uint32_t rare = own & ~(WR_KNOWN_BIT(THREAD_NAME) | WR_KNOWN_BIT(ORIGIN));
    if (WR_UNLIKELY(rare))
        at = wr_put_rare_meta(e, p, at, rare, version);
    if (own & WR_KNOWN_BIT(ORIGIN)) {
        at = wr_put_known(e, at, WR_KNOWN_ORIGIN, version);
        at = wr_put_str(e, at, p->trace->origin, version);
    }
    return p->meta ? wr_put_texts(e, p, at, p->lead, p->tag_count, version) : at;
}
#endif
