/* SPDX-License-Identifier: Apache-2.0 */
/* key: see key.h. The order of the calls in wr_key_build is the order of the fields. */
#include "stats/key_put.h"

WR_NOINLINE size_t wr_key_put_slow(struct wr_key_notes *notes, char *dst, const char *text,
                                   size_t len, size_t limit)
{
    bool bad;
    bool cut;
    const size_t written = wr_text_repair(dst, text, len, limit, &bad, &cut);
    notes->repaired += bad;
    notes->truncated += cut;
    return written;
}

/* Digits of v at the end of text; returns where they begin. */
static const char *decimal(char text[WR_NUMBER_MAX], int64_t v)
{
    char *at = text + WR_NUMBER_MAX;
    uint64_t rest = v < 0 ? 0 - (uint64_t)v : (uint64_t)v;
    do {
        *--at = (char)('0' + rest % 10);
        rest /= 10;
    } while (rest > 0);
    if (v < 0)
        *--at = '-';
    return at;
}

void wr_key_put_number(struct wr_key_writer *w, enum wr_field field, int64_t v)
{
    char text[WR_NUMBER_MAX];
    const char *const digits = decimal(text, v);
    wr_key_put(w, field, digits, (size_t)(text + WR_NUMBER_MAX - digits), WR_NUMBER_MAX);
}

WR_NOINLINE void wr_key_put_other(struct wr_key_writer *w, enum wr_field field,
                                  const struct weir_value *v)
{
    switch ((enum weir_value_type)v->type) {
    case WEIR_VALUE_BYTES:
        break;
    case WEIR_VALUE_INT:
        wr_key_put_number(w, field, v->v.i);
        break;
    case WEIR_VALUE_DOUBLE: {
        const int64_t whole = wr_i64_from_double(v->v.d);
        if ((double)whole - v->v.d == 0.0)
            wr_key_put_number(w, field, whole);
        break;
    }
    case WEIR_VALUE_BOOL:
        if (v->v.i)
            wr_key_put(w, field, "true", 4, 5);
        else
            wr_key_put(w, field, "false", 5, 5);
        break;
    case WEIR_VALUE_NONE:
        break;
    }
}

int wr_key_code(const struct weir_value *v, int (*parse)(const char *, size_t))
{
    char text[WR_NUMBER_MAX];
    int64_t number = -1;
    if (v->type == WEIR_VALUE_BYTES)
        return v->len ? parse(v->v.ptr, v->len) : -1;
    if (v->type == WEIR_VALUE_INT)
        number = v->v.i;
    else if (v->type == WEIR_VALUE_DOUBLE && v->v.d >= 0.0 && v->v.d <= 1000.0)
        number = (int64_t)v->v.d;
    if (number < 0 || number > 1000)
        return -1;
    const char *const digits = decimal(text, number);
    return parse(digits, (size_t)(text + WR_NUMBER_MAX - digits));
}

WR_NOINLINE void wr_key_put_http_status_slow(struct wr_key_writer *w, enum wr_field field,
                                             const struct weir_value *v)
{
    const int code = wr_key_code(v, wr_text_http_status);
    if (code >= 0 && v->type == WEIR_VALUE_BYTES)
        wr_key_put(w, field, v->v.ptr, v->len, 3); /* its text is its one spelling */
    else if (code >= 0)
        wr_key_put_number(w, field, code);
    else
        w->notes->bad_status++;
}

static WR_NOINLINE void put_grpc_status(struct wr_key_writer *w, enum wr_field field,
                                        const struct weir_value *v)
{
    const int code = wr_key_code(v, wr_text_grpc_status);
    if (code >= 0)
        wr_key_put_number(w, field, code);
}

static const char unnamed[] = "unnamed-";
static const char service_word[] = "service";

/* Of a span that has none. */
static WR_NOINLINE struct wr_key_writer put_unnamed(struct wr_key_writer w, struct weir_bytes lang)
{
    char text[WR_SHORT_MAX];
    size_t n = sizeof unnamed - 1;
    memcpy(text, unnamed, n);
    if (lang.len > 0) {
        const size_t room = sizeof text - n - sizeof service_word;
        const size_t take = lang.len < room ? lang.len : room;
        memcpy(text + n, lang.ptr, take);
        n += take;
        text[n++] = '-';
    }
    memcpy(text + n, service_word, sizeof service_word - 1);
    wr_key_put(&w, WR_FIELD_SERVICE, text, n + sizeof service_word - 1, WR_SHORT_MAX);
    return w;
}

/* Contracts: span-stats §2: "synthetics" and what begins with it, by case. */
static bool is_synthetic(const struct weir_span *span)
{
    static const char word[] = "synthetics";
    const struct weir_value *const v = wr_key_slot(span, WEIR_TAG_ORIGIN);
    return v && v->type == WEIR_VALUE_BYTES && v->len >= sizeof word - 1 &&
           memcmp(v->v.ptr, word, sizeof word - 1) == 0;
}

WR_INLINE void put_peer(struct wr_key_writer *w, enum wr_field field, const struct weir_value *v)
{
    static const char blocked[] = "blocked-ip-address"; /* contracts: wire §2.9 */
    if (v->type == WEIR_VALUE_BYTES && v->len && wr_text_may_be_ip(v->v.ptr[0]) &&
        wr_text_is_ip(v->v.ptr, v->len))
        wr_key_put(w, field, blocked, sizeof blocked - 1, WR_TAG_MAX);
    else
        wr_key_put_value(w, field, v, WR_TAG_MAX);
}

WR_INLINE void put_added(struct wr_key_writer *w, const struct wr_schema *schema,
                         const struct weir_span *span)
{
    const bool outgoing = span->kind == WEIR_KIND_CLIENT || span->kind == WEIR_KIND_PRODUCER ||
                          span->kind == WEIR_KIND_CONSUMER;
    uint64_t left = span->present >> WEIR_TAG_FIXED;
    while (left) {
        const size_t i = (size_t)__builtin_ctzll(left);
        left &= left - 1;
        const enum wr_field field = (enum wr_field)(WR_FIELD_FIXED + i);
        const struct weir_value *const v = &span->slots[WEIR_TAG_FIXED + i];
        if (i >= schema->peers)
            wr_key_put_value(w, field, v, WR_TAG_MAX);
        else if (outgoing)
            put_peer(w, field, v);
    }
}

/* What the URL says of the route; see wr_key_put_aside. */
WR_INLINE bool put_endpoint(struct wr_key_writer *w, const struct wr_schema *schema,
                            const struct weir_span *span)
{
    struct wr_key_writer aside = *w;
    const bool is_put = wr_key_put_inferred(&aside, WR_FIELD_HTTP_ROUTE, schema, span);
    *w = aside;
    return is_put;
}

/* The first of the two that is not empty. */
static struct weir_bytes either(struct weir_bytes a, struct weir_bytes b)
{
    return a.len ? a : b;
}

size_t wr_key_build(const struct wr_schema *schema, const struct weir_span *span,
                    struct weir_bytes lang, char *dst, struct weir_bytes *ret_service,
                    struct wr_key_notes *notes)
{
    struct wr_key_writer w = {.at = dst + 8, .notes = notes};
    wr_key_put_slot(&w, WR_FIELD_ENV, span, WEIR_TAG_ENV, WR_TAG_MAX);
    const char *const service = w.at + 2;
    if (WR_LIKELY(span->service.len > 0))
        wr_key_put_bytes(&w, WR_FIELD_SERVICE, span->service, WR_SHORT_MAX);
    else
        w = put_unnamed(w, lang);
    *ret_service = (struct weir_bytes){.ptr = service, .len = (size_t)(w.at - service)};
    wr_key_put_bytes(&w, WR_FIELD_OPERATION, span->name, WR_SHORT_MAX);
    wr_key_put_bytes(&w, WR_FIELD_RESOURCE, either(span->resource, span->name), WR_RESOURCE_MAX);
    wr_key_put_bytes(&w, WR_FIELD_TYPE, span->type, WR_SHORT_MAX);
    if (span->kind > WEIR_KIND_NONE && span->kind <= WEIR_KIND_CONSUMER) {
        const char kind = (char)('0' + span->kind);
        wr_key_put(&w, WR_FIELD_KIND, &kind, 1, 1);
    }
    if (span->present) {
        wr_key_put_http_status(&w, span);
        wr_key_put_slot(&w, WR_FIELD_HTTP_METHOD, span, WEIR_TAG_HTTP_METHOD, WR_TAG_MAX);
        if (WR_LIKELY(!(span->present >> WEIR_TAG_HTTP_URL & 1)) || !put_endpoint(&w, schema, span))
            wr_key_put_slot(&w, WR_FIELD_HTTP_ROUTE, span, WEIR_TAG_HTTP_ROUTE, WR_RESOURCE_MAX);
        if (WR_UNLIKELY(span->present >> WEIR_TAG_GRPC_STATUS & 1))
            wr_key_put_aside(&w, WR_FIELD_GRPC_STATUS, &span->slots[WEIR_TAG_GRPC_STATUS],
                             put_grpc_status);
        if (is_synthetic(span))
            wr_key_put(&w, WR_FIELD_SYNTHETIC, "true", 4, 4);
        if (span->kind == WEIR_KIND_NONE || span->kind == WEIR_KIND_INTERNAL)
            wr_key_put_slot(&w, WR_FIELD_BASE_SERVICE, span, WEIR_TAG_BASE_SERVICE, WR_TAG_MAX);
        put_added(&w, schema, span);
    }
    wr_store64le(dst, wr_key_marked(schema, w.present));
    return (size_t)(w.at - dst);
}

static size_t value_bound(const struct weir_value *v, size_t limit)
{
    return v->type == WEIR_VALUE_BYTES ? 2 + wr_text_bound(v->len, limit) : 2 + WR_NUMBER_MAX;
}

size_t wr_key_bound(const struct weir_span *span)
{
    /* An unnamed service is shorter than the limit of a service. What a client's key has besides:
     * a trace root, a kind by its name, an endpoint of an URL. */
    size_t n = (2 + 5) + WR_SHORT_MAX + (2 + WR_ENDPOINT_MAX) + 8 + 2 + WR_SHORT_MAX + 2 +
               wr_text_bound(span->name.len, WR_SHORT_MAX) + 2 +
               wr_text_bound(either(span->resource, span->name).len, WR_RESOURCE_MAX) + 2 +
               wr_text_bound(span->type.len, WR_SHORT_MAX) + 3;
    uint64_t left = span->present;
    while (left) {
        const size_t i = (size_t)__builtin_ctzll(left);
        left &= left - 1;
        const size_t limit = i == WEIR_TAG_HTTP_ROUTE || i == WEIR_TAG_HTTP_ENDPOINT
                                 ? WR_RESOURCE_MAX
                                 : (i >= WEIR_TAG_FIXED ? WR_DIMENSION_MAX : WR_TAG_MAX);
        n += value_bound(&span->slots[i], limit);
    }
    return n;
}

/* Which fields are the sentinel: those that are texts, flags stay away. */
static bool agent_text(size_t field)
{
    return field != WR_FIELD_KIND && field != WR_FIELD_HTTP_STATUS &&
           field != WR_FIELD_GRPC_STATUS && field != WR_FIELD_SYNTHETIC &&
           field != WR_FIELD_SERVICE_SOURCE && field != WR_FIELD_TRACE_ROOT &&
           field != WR_FIELD_HTTP_ENDPOINT;
}

static bool client_text(const struct wr_schema *schema, size_t field)
{
    if (field == WR_FIELD_HTTP_METHOD || field == WR_FIELD_HTTP_ENDPOINT)
        return schema->flags & WEIR_STATS_ENDPOINTS;
    return field != WR_FIELD_ENV && field != WR_FIELD_HTTP_STATUS && field != WR_FIELD_HTTP_ROUTE &&
           field != WR_FIELD_SYNTHETIC && field != WR_FIELD_BASE_SERVICE &&
           field != WR_FIELD_TRACE_ROOT;
}

size_t wr_key_overflow(const struct wr_schema *schema, char *dst, size_t cap)
{
    static const char blocked[] = WR_SENTINEL;
    struct wr_key_notes notes = {0};
    struct wr_key_writer w = {.at = dst + 8, .notes = &notes};
    WR_ASSERT(cap >= WR_KEY_OVERFLOW_MAX);
    (void)cap;
    for (size_t i = 0; i < schema->fields; i++) {
        if (schema->client ? !client_text(schema, i) : !agent_text(i))
            continue;
        wr_key_put(&w, (enum wr_field)i, blocked, sizeof blocked - 1, WR_TAG_MAX);
    }
    wr_store64le(dst, wr_key_marked(schema, w.present));
    return (size_t)(w.at - dst);
}

struct weir_bytes wr_key_resource(const char *key)
{
    const uint64_t present = wr_load64le(key);
    key += 8;
    for (size_t i = 0; i < WR_FIELD_RESOURCE; i++)
        key += present >> i & 1 ? 2 + wr_load16le(key) : 0;
    if (!(present >> WR_FIELD_RESOURCE & 1))
        return (struct weir_bytes){0};
    return (struct weir_bytes){.ptr = key + 2, .len = wr_load16le(key)};
}
