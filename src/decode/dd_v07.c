/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dd_v07: Datadog v0.7: a MessagePack map of the tracer's names and its chunks, each a map with
 * what holds for a whole trace and its spans, which are v0.4's.
 *
 *   { language_name, …, chunks [ { priority, origin, spans [ v0.4 span ], tags, dropped_trace } ],
 *     tags, env, hostname, app_version }
 *
 * Idea: env stands behind the chunks, yet spans without one of their own have it. So the payload is
 * passed over once by structure alone, which finds env and the chunks, and then its chunks are
 * walked. Where a chunk's origin stands behind its spans too, chunks are passed over likewise.
 *
 * Lenient: as v0.4; members in any order, unknown members. Refused beside what v0.4 refuses: chunks
 * or spans twice, a chunk that is nil.
 *
 * Threads, memory: see decoder.h. Nothing is allocated.
 */
#include "decode/dd.h"

/* Containers around a value: of the payload, of a chunk, of a span. */
enum { PAYLOAD_DEPTH = 1, CHUNK_DEPTH = 3, SPAN_DEPTH = 5 };

struct v07 {
    struct wr_dd dd; /* first: readers of spans are given its address */
    const struct weir_tag_match *env_match;
    const struct weir_tag_match *origin_match;
    struct weir_bytes env;
    struct weir_bytes origin;
    const uint8_t *chunks; /* NULL: none seen */
    const uint8_t *spans;  /* of the chunk; NULL: none seen */
    bool walks;            /* spans are handed over where they stand; else only passed over */
    bool late_origin;      /* some chunk has its origin behind its spans */
};

static bool key_is(const struct weir_bytes *key, const char *name)
{
    return key->len == strlen(name) && memcmp(key->ptr, name, key->len) == 0;
}

static const uint8_t *read_key(struct wr_mp *m, const uint8_t *at, struct weir_bytes *ret)
{
    const uint8_t *const next = wr_mp_str(m, at, ret);
    if (next && !ret->ptr)
        return wr_mp_fail(m, at, WEIR_EFORMAT, "a key that is nil");
    return next;
}

static const uint8_t *read_span(struct wr_dd *dd, const uint8_t *at)
{
    const struct v07 *const v = (const struct v07 *)dd;
    struct weir_decoder *const d = dd->walk.decoder;
    at = wr_dd_v04_span(dd, at);
    if (at && v->env.len)
        wr_dd_put_absent(d->tags, v->env_match, v->env, d->slots, &d->span.present);
    if (at && v->origin.len)
        wr_dd_put_absent(d->tags, v->origin_match, v->origin, d->slots, &d->span.present);
    return at;
}

static const uint8_t *read_spans(struct v07 *v, const uint8_t *at)
{
    if (v->spans)
        return wr_mp_fail(&v->dd.m, at, WEIR_EFORMAT, "spans of a chunk twice");
    v->spans = at;
    return v->walks ? wr_dd_trace(&v->dd, at, read_span)
                    : wr_mp_skip(&v->dd.m, at, WEIR_DECODE_DEPTH_MAX - CHUNK_DEPTH);
}

static const uint8_t *read_member(struct v07 *v, const uint8_t *at)
{
    struct wr_mp *const m = &v->dd.m;
    struct weir_bytes key;
    at = read_key(m, at, &key);
    if (!at)
        return NULL;
    if (key_is(&key, "spans"))
        return read_spans(v, at);
    if (key_is(&key, "origin")) {
        v->late_origin |= v->spans != NULL;
        return wr_mp_str(m, at, &v->origin);
    }
    return wr_mp_skip(m, at, WEIR_DECODE_DEPTH_MAX - CHUNK_DEPTH);
}

static const uint8_t *read_chunk(struct v07 *v, const uint8_t *at)
{
    struct wr_mp *const m = &v->dd.m;
    uint32_t pairs;
    v->spans = NULL;
    v->origin = (struct weir_bytes){.ptr = NULL, .len = 0};
    if (at < m->end && at[0] == 0xc0)
        return wr_mp_fail(m, at, WEIR_EFORMAT, "a chunk that is nil");
    at = wr_mp_map(m, at, &pairs);
    for (uint32_t i = 0; at && i < pairs; i++)
        at = read_member(v, at);
    return at;
}

/* A chunk without spans is a trace without spans. */
static const uint8_t *end_empty_trace(struct v07 *v, const uint8_t *at)
{
    v->dd.walk.result.traces++;
    const int r = wr_trace_end(&v->dd.walk);
    return r == WEIR_OK ? at : wr_mp_fail(&v->dd.m, at, r, NULL);
}

static const uint8_t *walk_chunk(struct v07 *v, const uint8_t *at)
{
    v->walks = !v->late_origin;
    const uint8_t *const next = read_chunk(v, at);
    if (!next)
        return NULL;
    if (!v->spans)
        return end_empty_trace(v, next);
    if (!v->walks && !wr_dd_trace(&v->dd, v->spans, read_span))
        return NULL;
    return next;
}

typedef const uint8_t *chunk_fn(struct v07 *v, const uint8_t *at);

static const uint8_t *each_chunk(struct v07 *v, const uint8_t *at, chunk_fn *chunk)
{
    uint32_t chunks;
    at = wr_mp_array(&v->dd.m, at, &chunks);
    for (uint32_t i = 0; at && i < chunks; i++)
        at = chunk(v, at);
    return at;
}

static bool is_text(const struct weir_bytes *key)
{
    static const char names[][18] = {"container_id",   "language_name", "language_version",
                                     "tracer_version", "runtime_id",    "hostname",
                                     "app_version"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (key_is(key, names[i]))
            return true;
    return false;
}

static const uint8_t *read_header(struct v07 *v, const uint8_t *at)
{
    struct wr_mp *const m = &v->dd.m;
    struct weir_bytes key;
    struct weir_bytes unused;
    at = read_key(m, at, &key);
    if (!at)
        return NULL;
    if (key_is(&key, "env"))
        return wr_mp_str(m, at, &v->env);
    if (is_text(&key))
        return wr_mp_str(m, at, &unused);
    if (!key_is(&key, "chunks"))
        return wr_mp_skip(m, at, WEIR_DECODE_DEPTH_MAX - PAYLOAD_DEPTH);
    if (v->chunks)
        return wr_mp_fail(m, at, WEIR_EFORMAT, "chunks twice");
    v->chunks = at;
    return each_chunk(v, at, read_chunk);
}

static const uint8_t *read_payload(struct v07 *v, const uint8_t *at)
{
    struct wr_mp *const m = &v->dd.m;
    uint32_t pairs;
    if (at < m->end && at[0] == 0xc0)
        return wr_mp_fail(m, at, WEIR_EFORMAT, "a payload that is nil");
    at = wr_mp_map(m, at, &pairs);
    for (uint32_t i = 0; at && i < pairs; i++)
        at = read_header(v, at);
    if (at && v->chunks && !each_chunk(v, v->chunks, walk_chunk))
        return NULL;
    return at;
}

int weir_decode_dd_v07(struct weir_decoder *decoder, const void *payload, size_t bytes,
                       const struct weir_span_sink *sink, struct weir_decode_result *ret_result,
                       struct weir_where *ret_where)
{
    const struct weir_tags *const tags = decoder->tags;
    struct v07 v = {.dd = {.m = wr_mp_init(payload, bytes),
                           .walk = {.decoder = decoder, .sink = sink},
                           .span_depth = SPAN_DEPTH},
                    .env_match = weir_tags_find(tags, "env", 3),
                    .origin_match = weir_tags_find(tags, "_dd.origin", 10)};
    wr_dd_v04_forget(decoder);
    const uint8_t *const at = read_payload(&v, v.dd.m.begin);
    return wr_dd_end(&v.dd, at, ret_result, ret_where);
}
