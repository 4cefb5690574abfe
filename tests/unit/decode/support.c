/* SPDX-License-Identifier: Apache-2.0 */
/* support: see support.h. */
#include "support.h"

#include <stdlib.h>
#include <string.h>

static uint64_t mix(uint64_t digest, const void *bytes, size_t n)
{
    const uint8_t *const p = bytes;
    for (size_t i = 0; i < n; i++)
        digest = (digest ^ p[i]) * UINT64_C(0x100000001b3);
    return (digest ^ n) * UINT64_C(0x100000001b3);
}

static uint64_t mix_u64(uint64_t digest, uint64_t v)
{
    return mix(digest, &v, sizeof v);
}

static uint64_t mix_value(uint64_t digest, const struct weir_value *v)
{
    digest = mix_u64(digest, (uint64_t)v->type << 8 | v->rank);
    if (v->type == WEIR_VALUE_BYTES)
        return mix(digest, v->v.ptr, v->len);
    uint64_t bits;
    memcpy(&bits, &v->v, sizeof bits);
    return mix_u64(digest, bits);
}

static uint64_t mix_span(uint64_t digest, const struct weir_span *s)
{
    digest = mix(digest, s->service.ptr, s->service.len);
    digest = mix(digest, s->name.ptr, s->name.len);
    digest = mix(digest, s->resource.ptr, s->resource.len);
    digest = mix(digest, s->type.ptr, s->type.len);
    const uint64_t numbers[] = {s->trace_id_hi,
                                s->trace_id,
                                s->span_id,
                                s->parent_id,
                                (uint64_t)s->start_ns,
                                (uint64_t)s->duration_ns,
                                s->weight,
                                s->kind,
                                s->flags,
                                s->present,
                                s->raw_offset,
                                s->raw_bytes};
    digest = mix(digest, numbers, sizeof numbers);
    for (unsigned i = 0; i < WEIR_TAG_SLOTS_MAX; i++)
        if (s->present >> i & 1)
            digest = mix_value(digest, &s->slots[i]);
    return digest;
}

static int keep_span(void *ctx, const struct weir_span *span)
{
    struct t_spans *const s = ctx;
    if (s->fail_with)
        return s->fail_with;
    if (s->count == s->cap) {
        s->cap = s->cap ? 2 * s->cap : 16;
        s->kept = realloc(s->kept, s->cap * sizeof *s->kept);
        T_TRUE(s->kept != NULL);
    }
    struct t_kept *const k = &s->kept[s->count++];
    k->span = *span;
    for (unsigned i = 0; i < WEIR_TAG_SLOTS_MAX; i++)
        if (span->present >> i & 1)
            k->values[i] = span->slots[i];
    s->errors += (span->flags & WEIR_SPAN_ERROR) != 0;
    s->digest = mix_span(s->digest, span);
    return WEIR_OK;
}

static int keep_trace_end(void *ctx)
{
    struct t_spans *const s = ctx;
    s->traces++;
    s->digest = mix_u64(s->digest, 1);
    return WEIR_OK;
}

static void keep_refused(void *ctx, enum weir_refusal reason)
{
    struct t_spans *const s = ctx;
    s->refused[reason]++;
}

struct weir_span_sink t_sink(struct t_spans *spans)
{
    return (struct weir_span_sink){
        .ctx = spans, .span = keep_span, .trace_end = keep_trace_end, .refused = keep_refused};
}

void t_spans_free(struct t_spans *spans)
{
    free(spans->kept);
    *spans = (struct t_spans){.kept = NULL};
}

t_decode_fn *t_route(const char *route)
{
    if (strcmp(route, "/v0.3/traces") == 0 || strcmp(route, "/v0.4/traces") == 0)
        return weir_decode_dd_v04;
    if (strcmp(route, "/v0.5/traces") == 0)
        return weir_decode_dd_v05;
    if (strcmp(route, "/v0.7/traces") == 0)
        return weir_decode_dd_v07;
    if (strcmp(route, "/v1.0/traces") == 0)
        return weir_decode_dd_v1;
    if (strcmp(route, "/v1/traces") == 0)
        return weir_decode_otlp_traces;
    return NULL;
}

struct weir_tags *t_tags(void)
{
    static const struct weir_tag_name names[] = {
        {"peer.service", SLOT_PEER, 0, WEIR_IN_DD_META | WEIR_IN_OTLP_SPAN},
        {"out.host", SLOT_PEER, 1, WEIR_IN_DD_META | WEIR_IN_OTLP_SPAN},
        {"region", SLOT_DIM, 0,
         WEIR_IN_DD_META | WEIR_IN_DD_METRICS | WEIR_IN_OTLP_SPAN | WEIR_IN_OTLP_RESOURCE},
        {"zone", SLOT_DIM, 1, WEIR_IN_OTLP_SPAN | WEIR_IN_OTLP_RESOURCE},
        {"http.route", SLOT_TWICE, 0, WEIR_IN_DD_META | WEIR_IN_OTLP_SPAN},
        {"version", SLOT_VERSION, 0, WEIR_IN_DD_META},
        {"component", SLOT_COMPONENT, 0, WEIR_IN_DD_META},
    };
    struct weir_tags *tags = NULL;
    T_OK(weir_tags_new(NULL, names, sizeof names / sizeof *names, &tags));
    return tags;
}

int t_decode(t_decode_fn *decode, const uint8_t *bytes, size_t n, struct t_spans *spans,
             struct weir_decode_result *ret_result, struct weir_where *ret_where)
{
    struct weir_tags *const tags = t_tags();
    struct weir_decoder *decoder = NULL;
    T_OK(weir_decoder_new(NULL, tags, &decoder));
    struct t_spans guarded = {.kept = NULL};
    struct t_spans plain = {.kept = NULL};
    struct t_spans *const kept = spans ? spans : &plain;
    struct weir_span_sink sink = t_sink(&guarded);
    struct weir_where where = {.offset = SIZE_MAX};
    struct weir_where again = {.offset = SIZE_MAX};
    struct weir_decode_result result = {.spans = 0};
    struct t_guard g = t_guard_new(bytes, n);
    const int r = decode(decoder, g.ptr, n, &sink, &result, &where);
    T_ERR(decode(decoder, g.ptr, n, NULL, NULL, NULL), r);
    t_guard_free(&g);
    sink = t_sink(kept);
    T_ERR(decode(decoder, bytes, n, &sink, NULL, &again), r);
    T_EQ_U64(guarded.digest, kept->digest);
    T_EQ_U64(where.offset, again.offset);
    T_TRUE((r == WEIR_OK) == (where.reason == NULL));
    if (r == WEIR_OK)
        T_EQ_U64(result.spans, kept->count);
    else
        T_TRUE(where.offset <= n);
    if (ret_result)
        *ret_result = result;
    if (ret_where)
        *ret_where = where;
    t_spans_free(&guarded);
    t_spans_free(&plain);
    weir_decoder_free(decoder);
    weir_tags_free(tags);
    return r;
}

int t_decode_hex(t_decode_fn *decode, const char *hex, struct t_spans *spans, uint8_t **ret_bytes)
{
    const size_t cap = strlen(hex) / 2 + 1;
    *ret_bytes = malloc(cap);
    T_TRUE(*ret_bytes != NULL);
    return t_decode(decode, *ret_bytes, t_unhex(hex, *ret_bytes, cap), spans, NULL, NULL);
}

const char *t_slot(const struct t_kept *k, unsigned slot)
{
    static char text[256];
    if (!(k->span.present >> slot & 1))
        return "-";
    const struct weir_value *const v = &k->values[slot];
    switch ((enum weir_value_type)v->type) {
    case WEIR_VALUE_BYTES:
        (void)snprintf(text, sizeof text, "%.*s", (int)v->len, v->v.ptr);
        break;
    case WEIR_VALUE_INT:
        (void)snprintf(text, sizeof text, "%lld", (long long)v->v.i);
        break;
    case WEIR_VALUE_DOUBLE:
        (void)snprintf(text, sizeof text, "%g", v->v.d);
        break;
    case WEIR_VALUE_BOOL:
        (void)snprintf(text, sizeof text, "%s", v->v.i ? "true" : "false");
        break;
    case WEIR_VALUE_NONE:
        (void)snprintf(text, sizeof text, "none");
        break;
    }
    return text;
}

int t_bytes_are(struct weir_bytes b, const char *text)
{
    return b.len == strlen(text) && (b.len == 0 || memcmp(b.ptr, text, b.len) == 0);
}

void t_buf_free(struct t_buf *b)
{
    free(b->at);
    *b = (struct t_buf){.at = NULL};
}

void t_put(struct t_buf *b, const void *bytes, size_t n)
{
    if (b->cap - b->len < n) {
        b->cap = 2 * (b->len + n) + 64;
        b->at = realloc(b->at, b->cap);
        T_TRUE(b->at != NULL);
    }
    if (n)
        memcpy(b->at + b->len, bytes, n);
    b->len += n;
}

void t_put_hex(struct t_buf *b, const char *hex)
{
    const size_t cap = strlen(hex) / 2 + 1;
    uint8_t *const bytes = malloc(cap);
    T_TRUE(bytes != NULL);
    t_put(b, bytes, t_unhex(hex, bytes, cap));
    free(bytes);
}

void t_put_str(struct t_buf *b, const char *text)
{
    const size_t n = strlen(text);
    const uint8_t head[2] = {0xd9, (uint8_t)n};
    const uint8_t fix = (uint8_t)(0xa0 | n);
    T_TRUE(n < 256);
    if (n < 32)
        t_put(b, &fix, 1);
    else
        t_put(b, head, 2);
    t_put(b, text, n);
}

void t_put_varint(struct t_buf *b, uint64_t v)
{
    do {
        const uint8_t byte = (uint8_t)((v & 0x7f) | (v > 0x7f ? 0x80 : 0));
        t_put(b, &byte, 1);
        v >>= 7;
    } while (v);
}

void t_put_field(struct t_buf *b, unsigned number, const void *bytes, size_t n)
{
    t_put_varint(b, (uint64_t)number << 3 | 2);
    t_put_varint(b, n);
    t_put(b, bytes, n);
}

void t_put_message(struct t_buf *b, unsigned number, struct t_buf *message)
{
    t_put_field(b, number, message->at, message->len);
    t_buf_free(message);
}

void t_put_text(struct t_buf *b, unsigned number, const char *text)
{
    t_put_field(b, number, text, strlen(text));
}

void t_put_fixed64(struct t_buf *b, unsigned number, uint64_t v)
{
    t_put_varint(b, (uint64_t)number << 3 | 1);
    for (unsigned i = 0; i < 8; i++) {
        const uint8_t byte = (uint8_t)(v >> (8 * i));
        t_put(b, &byte, 1);
    }
}

void t_put_int(struct t_buf *b, unsigned number, uint64_t v)
{
    t_put_varint(b, (uint64_t)number << 3);
    t_put_varint(b, v);
}

static void put_part(struct t_buf *b, const char *part, const char *folder)
{
    char *end = NULL;
    const unsigned long times = strtoul(part, &end, 10);
    if (strncmp(part, "file:", 5) == 0) {
        char path[1024];
        size_t n = 0;
        (void)snprintf(path, sizeof path, "%s/%s", folder, part + 5);
        uint8_t *const bytes = t_read_file(path, &n);
        if (!bytes)
            T_FAIL("%s cannot be read", path);
        t_put(b, bytes, n);
        free(bytes);
    } else if (end && *end == '*') {
        for (unsigned long i = 0; i < times; i++)
            t_put_hex(b, end + 1);
    } else {
        t_put_hex(b, part);
    }
}

struct t_buf t_body(const char *expression, const char *folder)
{
    struct t_buf b = {.at = NULL};
    if (strcmp(expression, "-") == 0)
        return b;
    char *const copy = strdup(expression);
    char *save = NULL;
    T_TRUE(copy != NULL);
    for (char *part = strtok_r(copy, "+", &save); part; part = strtok_r(NULL, "+", &save))
        put_part(&b, part, folder);
    free(copy);
    return b;
}

char *t_cell(char **line)
{
    char *const cell = *line;
    if (!cell)
        return NULL;
    char *const tab = strchr(cell, '\t');
    if (tab)
        *tab = '\0';
    *line = tab ? tab + 1 : NULL;
    return cell;
}

struct t_buf t_golden(const char *name)
{
    char path[1024];
    size_t n = 0;
    struct t_buf b = {.at = NULL};
    (void)snprintf(path, sizeof path, "%s/tests/golden/clients/%s", T_SOURCE_DIR, name);
    char *const hex = (char *)t_read_file(path, &n);
    if (!hex)
        T_FAIL("%s cannot be read", path);
    t_put_hex(&b, hex);
    free(hex);
    return b;
}
