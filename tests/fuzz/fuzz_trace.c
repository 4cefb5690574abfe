/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_trace: spans to payloads and back. The same spans are encoded three times: from UTF-16, from
 * UTF-8 and from texts. The payloads are the same bytes, and decoded they give the spans that were
 * taken, whatever was refused for want of space meanwhile.
 *
 * Input: 1 byte the version, 2 the size of a payload, then traces: 1 byte of spans, and for each
 * its fields and tags, strings by number or as units of their own.
 */
#include "decode.h"

#include <stdlib.h>
#include <string.h>

#include "trace/utf.h"

enum { KINDS = 3, STRINGS = 64, UNITS = 80, SPANS = 4, TAGS = 12, TRACES = 24 };

/* One string in its three shapes. */
struct string {
    uint16_t *units;
    uint32_t count;
    char *utf8;
    uint32_t len;
    struct weir_text *text;
};

struct work {
    struct string strings[STRINGS];
    size_t string_count;
    struct weir_trace_encoder *encoders[KINDS];
    uint32_t version;
    uint64_t taken; /* digest of the spans in the payload */
    struct weir_tags *tags;
};

static const char *const names[] = {"env",       "region",  "peer.service",     "_dd.top_level",
                                    "span.kind", "version", "http.status_code", "thread.name"};

/* The number of a string: one of those there are, or a new one of units from the input. */
static size_t draw_string(struct work *w, struct fz_in *in)
{
    const uint8_t pick = fz_u8(in);
    if (w->string_count > 0 && (pick < 160 || w->string_count == STRINGS))
        return pick % w->string_count;
    struct string *const s = &w->strings[w->string_count];
    s->count = fz_below(in, UNITS);
    s->units = fz_alloc((s->count + 1) * sizeof *s->units);
    const bool ascii = pick & 1;
    for (uint32_t i = 0; i < s->count; i++)
        s->units[i] = ascii ? fz_u8(in) & 0x7f : fz_u16(in);
    s->utf8 = fz_alloc(3 * (size_t)s->count + 1);
    uint64_t mended = 0;
    s->len = (uint32_t)(wr_utf16_to_utf8_scalar(s->utf8, s->units, s->count, &mended) - s->utf8);
    FZ_CHECK(weir_text_from_utf16(NULL, s->units, s->count, &s->text) == WEIR_OK);
    return w->string_count++;
}

static struct weir_str as(const struct work *w, size_t number, size_t kind)
{
    const struct string *const s = &w->strings[number];
    return kind == 0   ? weir_str_utf16(s->units, s->count)
           : kind == 1 ? weir_str_utf8(s->utf8, s->len)
                       : weir_str_text(s->text);
}

struct drawn_tag {
    const char *name; /* NULL: the string */
    size_t key;
    uint32_t type;
    uint64_t bits;
};

struct drawn_span {
    size_t fields[4];
    uint64_t ids[3];
    int64_t start_ns;
    int64_t duration_ns;
    uint8_t flags;
    uint8_t error;
    struct drawn_tag tags[TAGS];
    size_t tag_count;
};

static struct drawn_span draw_span(struct work *w, struct fz_in *in, uint64_t trace_id)
{
    struct drawn_span s = {.ids = {trace_id, fz_any(in), fz_any(in)}};
    for (size_t i = 0; i < 4; i++)
        s.fields[i] = draw_string(w, in);
    s.start_ns = (int64_t)(fz_any(in) >> 1);
    s.duration_ns = (int64_t)fz_any(in);
    s.flags = fz_u8(in);
    s.error = fz_u8(in) & 1;
    s.tag_count = fz_below(in, TAGS);
    for (size_t i = 0; i < s.tag_count; i++) {
        const uint32_t pick = fz_below(in, 16);
        s.tags[i] = (struct drawn_tag){.name = pick < 8 ? names[pick] : NULL,
                                       .key = draw_string(w, in),
                                       .type = fz_below(in, 4)};
        s.tags[i].bits = s.tags[i].type == WEIR_TRACE_STR ? draw_string(w, in) : fz_any(in);
    }
    return s;
}

static struct weir_trace_value value_of(const struct work *w, const struct drawn_tag *t,
                                        size_t kind)
{
    struct weir_trace_value v = {.type = t->type};
    if (t->type == WEIR_TRACE_STR)
        v.v.str = as(w, t->bits, kind);
    else if (t->type == WEIR_TRACE_DOUBLE)
        memcpy(&v.v.d, &t->bits, sizeof v.v.d);
    else
        v.v.i = t->type == WEIR_TRACE_BOOL ? (int64_t)(t->bits & 1) : (int64_t)t->bits;
    return v;
}

static struct weir_trace_span span_of(const struct work *w, const struct drawn_span *d, size_t kind,
                                      struct weir_trace_tag *tags)
{
    for (size_t i = 0; i < d->tag_count; i++) {
        const struct drawn_tag *const t = &d->tags[i];
        tags[i] =
            (struct weir_trace_tag){.key = t->name ? weir_str_c(t->name) : as(w, t->key, kind),
                                    .value = value_of(w, t, kind)};
    }
    return (struct weir_trace_span){.service = as(w, d->fields[0], kind),
                                    .name = as(w, d->fields[1], kind),
                                    .resource = as(w, d->fields[2], kind),
                                    .type = as(w, d->fields[3], kind),
                                    .trace_id = d->ids[0],
                                    .span_id = d->ids[1],
                                    .parent_id = d->ids[2],
                                    .start_ns = d->start_ns,
                                    .duration_ns = d->duration_ns,
                                    .error = d->error,
                                    .flags = d->flags & 7,
                                    .tags = tags,
                                    .tag_count = d->tag_count};
}

static uint64_t mix_number(uint64_t digest, uint64_t v)
{
    return fz_digest_u64(digest, v);
}

/* The last tag with the key region, in any shape. */
static const struct drawn_tag *region_of(const struct work *w, const struct drawn_span *d)
{
    for (size_t i = d->tag_count; i-- > 0;) {
        const struct drawn_tag *const t = &d->tags[i];
        const struct string *const key = &w->strings[t->key];
        const bool is = t->name ? strcmp(t->name, "region") == 0
                                : key->len == 6 && memcmp(key->utf8, "region", 6) == 0;
        if (is)
            return t;
    }
    return NULL;
}

static uint64_t mix_drawn(uint64_t digest, const struct work *w, const struct drawn_span *d)
{
    for (size_t i = 0; i < 4; i++)
        digest = fz_digest(digest, w->strings[d->fields[i]].utf8, w->strings[d->fields[i]].len);
    for (size_t i = 0; i < 3; i++)
        digest = mix_number(digest, d->ids[i]);
    /* v1.0 has no times below 0. */
    const bool cut = w->version == WEIR_TRACE_V1;
    digest = mix_number(digest, cut && d->start_ns < 0 ? 0 : (uint64_t)d->start_ns);
    digest = mix_number(digest, cut && d->duration_ns < 0 ? 0 : (uint64_t)d->duration_ns);
    digest = mix_number(digest, d->error);
    /* The text that its slot must have. */
    const struct drawn_tag *const region = region_of(w, d);
    if (region && region->type == WEIR_TRACE_STR)
        return fz_digest(digest, w->strings[region->bits].utf8, w->strings[region->bits].len);
    if (region && region->type == WEIR_TRACE_BOOL)
        return region->bits & 1 ? fz_digest(digest, "true", 4) : fz_digest(digest, "false", 5);
    return digest;
}

static uint64_t mix_bytes(uint64_t digest, struct weir_bytes b)
{
    return fz_digest(digest, b.ptr, b.len);
}

static int see_span(void *ctx, const struct weir_span *s)
{
    uint64_t *const digest = ctx;
    *digest = mix_bytes(*digest, s->service);
    *digest = mix_bytes(*digest, s->name);
    *digest = mix_bytes(*digest, s->resource);
    *digest = mix_bytes(*digest, s->type);
    *digest = mix_number(*digest, s->trace_id);
    *digest = mix_number(*digest, s->span_id);
    *digest = mix_number(*digest, s->parent_id);
    *digest = mix_number(*digest, (uint64_t)s->start_ns);
    *digest = mix_number(*digest, (uint64_t)s->duration_ns);
    *digest = mix_number(*digest, s->flags & (uint64_t)WEIR_SPAN_ERROR);
    enum { REGION = WEIR_TAG_FIXED + 1 }; /* fz_tags() */
    const struct weir_value *const v = &s->slots[REGION];
    if (s->present >> REGION & 1 && v->rank == 0 && v->type == WEIR_VALUE_BYTES)
        *digest = fz_digest(*digest, v->v.ptr, v->len);
    return WEIR_OK;
}

static int see_end(void *ctx)
{
    (void)ctx;
    return WEIR_OK;
}

/* Compare the payloads, decode one, and begin anew. */
static void finish_payload(struct work *w)
{
    struct weir_bytes p[KINDS];
    for (size_t k = 0; k < KINDS; k++)
        FZ_CHECK(weir_trace_payload(w->encoders[k], &p[k]) == WEIR_OK);
    FZ_CHECK(fz_same(p[0].ptr, p[0].len, p[1].ptr, p[1].len));
    FZ_CHECK(fz_same(p[0].ptr, p[0].len, p[2].ptr, p[2].len));
    uint8_t *const exact = fz_copy(p[0].ptr, p[0].len);
    struct weir_decoder *decoder = NULL;
    FZ_CHECK(weir_decoder_new(NULL, w->tags, &decoder) == WEIR_OK);
    uint64_t digest = FZ_DIGEST_EMPTY;
    const struct weir_span_sink sink = {.ctx = &digest, .span = see_span, .trace_end = see_end};
    fz_decode_fn *const decode = w->version == WEIR_TRACE_V04   ? weir_decode_dd_v04
                                 : w->version == WEIR_TRACE_V05 ? weir_decode_dd_v05
                                                                : weir_decode_dd_v1;
    FZ_CHECK(decode(decoder, exact, p[0].len, &sink, NULL, NULL) == WEIR_OK);
    FZ_CHECK(digest == w->taken);
    weir_decoder_free(decoder);
    free(exact);
    w->taken = FZ_DIGEST_EMPTY;
    for (size_t k = 0; k < KINDS; k++)
        weir_trace_clear(w->encoders[k]);
}

/* What one encoder takes all do. */
static int add_all(struct work *w, const struct drawn_span *drawn, size_t count)
{
    int first = WEIR_OK;
    for (size_t k = 0; k < KINDS; k++) {
        struct weir_trace_span spans[SPANS];
        struct weir_trace_tag tags[SPANS][TAGS];
        for (size_t i = 0; i < count; i++)
            spans[i] = span_of(w, &drawn[i], k, tags[i]);
        const struct weir_trace t = {.spans = spans, .span_count = count};
        const int err = weir_trace_add(w->encoders[k], &t);
        FZ_CHECK(k == 0 || err == first);
        first = err;
    }
    FZ_CHECK(first == WEIR_OK || first == WEIR_EFULL);
    return first;
}

static void add_trace(struct work *w, struct fz_in *in)
{
    struct drawn_span drawn[SPANS];
    const size_t count = 1 + fz_below(in, SPANS - 1);
    const uint64_t trace_id = fz_any(in);
    for (size_t i = 0; i < count; i++)
        drawn[i] = draw_span(w, in, trace_id);
    int err = add_all(w, drawn, count);
    if (err) {
        finish_payload(w);
        err = add_all(w, drawn, count);
    }
    for (size_t i = 0; i < count && !err; i++)
        w->taken = mix_drawn(w->taken, w, &drawn[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const uint32_t versions[] = {WEIR_TRACE_V04, WEIR_TRACE_V05, WEIR_TRACE_V1};
    struct fz_in in = fz_in(data, size);
    struct work w = {.version = versions[fz_below(&in, 3)], .taken = FZ_DIGEST_EMPTY};
    const struct weir_trace_opts o = {
        .struct_size = sizeof o, .version = w.version, .max_bytes = 64u + fz_u16(&in) % 4096u};
    for (size_t k = 0; k < KINDS; k++)
        FZ_CHECK(weir_trace_encoder_new(&o, &w.encoders[k]) == WEIR_OK);
    w.tags = fz_tags();
    for (size_t i = 0; i < TRACES && in.left > 0; i++)
        add_trace(&w, &in);
    finish_payload(&w);
    for (size_t k = 0; k < KINDS; k++)
        weir_trace_encoder_free(w.encoders[k]);
    for (size_t i = 0; i < w.string_count; i++) {
        free(w.strings[i].units);
        free(w.strings[i].utf8);
        weir_text_free(w.strings[i].text);
    }
    weir_tags_free(w.tags);
    return 0;
}
