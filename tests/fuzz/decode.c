/* SPDX-License-Identifier: Apache-2.0 */
/* decode: see decode.h. */
#include "decode.h"
#include "trace/utf.h"

#include <stdlib.h>
#include <string.h>

enum { SLOT_PEER = WEIR_TAG_FIXED, SLOT_DIM, SLOT_TWICE };

struct weir_tags *fz_tags(void)
{
    static const struct weir_tag_name names[] = {
        {"peer.service", SLOT_PEER, 0, WEIR_IN_DD_META | WEIR_IN_OTLP_SPAN},
        {"out.host", SLOT_PEER, 1, WEIR_IN_DD_META | WEIR_IN_OTLP_SPAN},
        {"region", SLOT_DIM, 0,
         WEIR_IN_DD_META | WEIR_IN_DD_METRICS | WEIR_IN_OTLP_SPAN | WEIR_IN_OTLP_RESOURCE},
        {"zone", SLOT_DIM, 1, WEIR_IN_OTLP_SPAN | WEIR_IN_OTLP_RESOURCE},
        {"http.route", SLOT_TWICE, 0, WEIR_IN_DD_META | WEIR_IN_OTLP_SPAN},
    };
    struct weir_tags *tags = NULL;
    FZ_CHECK(weir_tags_new(NULL, names, sizeof names / sizeof *names, &tags) == WEIR_OK);
    return tags;
}

struct walker {
    struct fz_walk *walk;
    const char *begin;
    const char *end;
};

/* Borrowed from the payload, or static text of its own; every byte is read here. */
static uint64_t mix_text(uint64_t digest, struct weir_bytes text)
{
    FZ_CHECK(text.ptr != NULL || text.len == 0);
    return fz_digest(digest, text.ptr, text.len);
}

static uint64_t mix_value(uint64_t digest, const struct weir_value *v)
{
    FZ_CHECK(v->type > WEIR_VALUE_NONE && v->type <= WEIR_VALUE_BOOL);
    digest = fz_digest_u64(digest, (uint64_t)v->type << 8 | v->rank);
    if (v->type == WEIR_VALUE_BYTES)
        return mix_text(digest, (struct weir_bytes){v->v.ptr, v->len});
    uint64_t bits;
    memcpy(&bits, &v->v, sizeof bits);
    return fz_digest_u64(digest, bits);
}

static uint64_t mix_span(const struct weir_span *s)
{
    uint64_t digest = mix_text(FZ_DIGEST_EMPTY, s->service);
    digest = mix_text(digest, s->name);
    digest = mix_text(digest, s->resource);
    digest = mix_text(digest, s->type);
    const uint64_t numbers[] = {
        s->trace_id_hi,           s->trace_id, s->span_id, s->parent_id, (uint64_t)s->start_ns,
        (uint64_t)s->duration_ns, s->weight,   s->kind,    s->flags,     s->present};
    digest = fz_digest(digest, numbers, sizeof numbers);
    for (unsigned i = 0; i < WEIR_TAG_SLOTS_MAX; i++) {
        if (s->present >> i & 1)
            digest = mix_value(digest, &s->slots[i]);
    }
    return digest;
}

static int see_span(void *ctx, const struct weir_span *span)
{
    const struct walker *const w = ctx;
    const uint64_t one = mix_span(span);
    w->walk->content = fz_digest_u64(w->walk->content, one);
    w->walk->digest = fz_digest_u64(w->walk->digest, one);
    w->walk->digest = fz_digest_u64(w->walk->digest, span->raw_offset);
    w->walk->digest = fz_digest_u64(w->walk->digest, span->raw_bytes);
    w->walk->spans++;
    const size_t n = (size_t)(w->end - w->begin);
    FZ_CHECK(span->raw_offset <= n && span->raw_bytes <= n - span->raw_offset);
    FZ_CHECK(span->kind <= WEIR_KIND_CONSUMER);
    FZ_CHECK(span->weight == 0 || span->weight >= WEIR_WEIGHT_ONE);
    return WEIR_OK;
}

static int see_trace_end(void *ctx)
{
    const struct walker *const w = ctx;
    w->walk->traces++;
    w->walk->digest = fz_digest_u64(w->walk->digest, UINT64_MAX);
    return WEIR_OK;
}

static void see_refused(void *ctx, enum weir_refusal reason)
{
    const struct walker *const w = ctx;
    FZ_CHECK(reason < WEIR_REFUSAL_COUNT);
    w->walk->refused++;
}

struct fz_walk fz_decode(fz_decode_fn *decode, struct weir_decoder *decoder, const uint8_t *bytes,
                         size_t n)
{
    struct fz_walk walk = {.digest = FZ_DIGEST_EMPTY, .content = FZ_DIGEST_EMPTY};
    struct walker w = {&walk, (const char *)bytes, (const char *)bytes + n};
    const struct weir_span_sink sink = {
        .ctx = &w, .span = see_span, .trace_end = see_trace_end, .refused = see_refused};
    walk.result = decode(decoder, bytes, n, &sink, &walk.counts, &walk.where);
    if (walk.result == WEIR_OK) {
        FZ_CHECK(walk.counts.spans == walk.spans && walk.counts.refused == walk.refused);
        FZ_CHECK(walk.where.reason == NULL);
    } else {
        FZ_CHECK(walk.result == WEIR_EFORMAT || walk.result == WEIR_ETRUNCATED);
        FZ_CHECK(walk.where.reason != NULL && walk.where.offset <= n);
        FZ_CHECK(walk.counts.spans == 0 && walk.counts.traces == 0 && walk.counts.refused == 0);
    }
    return walk;
}

static void expect_same(const struct fz_walk *a, const struct fz_walk *b)
{
    FZ_CHECK(a->result == b->result);
    FZ_CHECK(a->digest == b->digest && a->spans == b->spans && a->traces == b->traces);
    FZ_CHECK(a->refused == b->refused && a->where.offset == b->where.offset);
    FZ_CHECK(a->where.reason == b->where.reason);
}

/* Stops at the span whose number is in ctx. */
struct stop {
    uint64_t left;
};

static int stop_span(void *ctx, const struct weir_span *span)
{
    struct stop *const s = ctx;
    (void)span;
    return s->left-- == 0 ? WEIR_EBUSY : WEIR_OK;
}

static int stop_trace_end(void *ctx)
{
    (void)ctx;
    return WEIR_OK;
}

static void expect_stop(fz_decode_fn *decode, struct weir_decoder *decoder, const uint8_t *bytes,
                        size_t n, uint64_t at)
{
    struct stop stop = {at};
    const struct weir_span_sink sink = {
        .ctx = &stop, .span = stop_span, .trace_end = stop_trace_end};
    FZ_CHECK(decode(decoder, bytes, n, &sink, NULL, NULL) == WEIR_EBUSY);
}

static struct weir_decoder *new_decoder(const struct weir_tags *tags)
{
    struct weir_decoder *decoder = NULL;
    FZ_CHECK(weir_decoder_new(NULL, tags, &decoder) == WEIR_OK);
    return decoder;
}

struct fz_walk fz_decode_input(fz_decode_fn *decode, struct fz_in *in)
{
    const uint8_t stop_at = fz_u8(in);
    const uint16_t cut = fz_u16(in);
    const size_t n = in->left;
    uint8_t *const bytes = fz_copy(in->at, n);
    struct weir_tags *const tags = fz_tags();
    struct weir_decoder *const decoder = new_decoder(tags);
    const struct fz_walk first = fz_decode(decode, decoder, bytes, n);
    FZ_CHECK(decode(decoder, bytes, n, NULL, NULL, NULL) == first.result);
    if (first.spans > 0)
        expect_stop(decode, decoder, bytes, n, stop_at % first.spans);
    if (n > 0) {
        uint8_t *const part = fz_copy(bytes, cut % n);
        const struct fz_walk less = fz_decode(decode, decoder, part, cut % n);
        FZ_CHECK(less.spans <= first.spans);
        if (decode != weir_decode_otlp_traces && first.result == WEIR_OK)
            FZ_CHECK(less.result != WEIR_OK);
        free(part);
    }
    const struct fz_walk used = fz_decode(decode, decoder, bytes, n);
    expect_same(&first, &used);
    weir_decoder_free(decoder);
    weir_tags_free(tags);
    free(bytes);
    return first;
}

/* Round trip. */

struct copier {
    struct weir_trace_encoder *encoder;
    struct weir_trace_span *spans; /* of the open trace */
    size_t count;
    size_t cap;
    uint64_t in_trace;
    uint64_t digest;
};

/* As the encoder sends it: mended. */
static uint64_t mix_mended(uint64_t digest, struct weir_bytes s)
{
    if (wr_utf8_ok(s.ptr, s.len))
        return mix_text(digest, s);
    char *const text = malloc(3 * s.len);
    FZ_CHECK(text != NULL);
    const size_t len = (size_t)(wr_utf8_mend(text, s.ptr, s.len) - text);
    digest = mix_text(digest, (struct weir_bytes){.ptr = text, .len = len});
    free(text);
    return digest;
}

static uint64_t mix_fields(uint64_t digest, const struct weir_span *s)
{
    digest = mix_mended(digest, s->service);
    digest = mix_mended(digest, s->name);
    digest = mix_mended(digest, s->resource);
    digest = mix_mended(digest, s->type);
    const uint64_t numbers[] = {s->trace_id,
                                s->span_id,
                                s->parent_id,
                                (uint64_t)s->start_ns,
                                (uint64_t)s->duration_ns,
                                s->flags & (uint64_t)WEIR_SPAN_ERROR};
    return fz_digest(digest, numbers, sizeof numbers);
}

static struct weir_str str(struct weir_bytes b)
{
    return weir_str_utf8(b.ptr, (uint32_t)b.len);
}

static int copy_span(void *ctx, const struct weir_span *span)
{
    struct copier *const c = ctx;
    c->digest = mix_fields(c->digest, span);
    c->in_trace++;
    if (!c->encoder)
        return WEIR_OK;
    if (c->count == c->cap) {
        c->cap = c->cap ? 2 * c->cap : 16;
        struct weir_trace_span *const grown = realloc(c->spans, c->cap * sizeof *grown);
        FZ_CHECK(grown != NULL);
        c->spans = grown;
    }
    c->spans[c->count++] = (struct weir_trace_span){.service = str(span->service),
                                                    .name = str(span->name),
                                                    .resource = str(span->resource),
                                                    .type = str(span->type),
                                                    .trace_id = span->trace_id,
                                                    .span_id = span->span_id,
                                                    .parent_id = span->parent_id,
                                                    .start_ns = span->start_ns,
                                                    .duration_ns = span->duration_ns,
                                                    .error = span->flags & WEIR_SPAN_ERROR};
    return WEIR_OK;
}

static int copy_trace_end(void *ctx)
{
    struct copier *const c = ctx;
    if (c->in_trace > 0) /* v1.0 has no empty traces */
        c->digest = fz_digest_u64(c->digest, UINT64_MAX);
    c->in_trace = 0;
    if (c->encoder)
        FZ_CHECK(weir_trace_add(c->encoder,
                                &(struct weir_trace){.spans = c->spans, .span_count = c->count}) ==
                 WEIR_OK);
    c->count = 0;
    return WEIR_OK;
}

static uint64_t copy_walk(fz_decode_fn *decode, const struct weir_tags *tags, const uint8_t *bytes,
                          size_t n, struct weir_trace_encoder *encoder)
{
    struct weir_decoder *const decoder = new_decoder(tags);
    struct copier c = {.encoder = encoder, .digest = FZ_DIGEST_EMPTY};
    const struct weir_span_sink sink = {.ctx = &c, .span = copy_span, .trace_end = copy_trace_end};
    FZ_CHECK(decode(decoder, bytes, n, &sink, NULL, NULL) == WEIR_OK);
    weir_decoder_free(decoder);
    free(c.spans);
    return c.digest;
}

void fz_decode_round_trip(fz_decode_fn *decode, fz_decode_fn *again,
                          enum weir_trace_version version, const uint8_t *bytes, size_t n)
{
    struct weir_tags *const tags = fz_tags();
    const struct weir_trace_opts opts = {.struct_size = sizeof opts, .version = version};
    struct weir_trace_encoder *encoder = NULL;
    FZ_CHECK(weir_trace_encoder_new(&opts, &encoder) == WEIR_OK);
    const uint64_t digest = copy_walk(decode, tags, bytes, n, encoder);
    struct weir_bytes payload;
    FZ_CHECK(weir_trace_payload(encoder, &payload) == WEIR_OK);
    uint8_t *const exact = fz_copy(payload.ptr, payload.len);
    FZ_CHECK(copy_walk(again, tags, exact, payload.len, NULL) == digest);
    free(exact);
    weir_trace_encoder_free(encoder);
    weir_tags_free(tags);
}
