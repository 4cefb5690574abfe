/* SPDX-License-Identifier: Apache-2.0 */
/* key: see key.h. The order of the calls in wr_key_build is the order of the fields. */
#include "stats/key.h"

#include "base/bytes.h"
#include "stats/text.h"

/* Enough for any number as text. */
enum { NUMBER_MAX = 24 };

struct writer {
    char *at;
    uint64_t present;
    struct wr_key_notes *notes;
};

static WR_NOINLINE size_t put_slow(struct writer *w, const char *text, size_t len, size_t limit)
{
    bool bad;
    bool cut;
    const size_t written = wr_text_repair(w->at + 2, text, len, limit, &bad, &cut);
    w->notes->repaired += bad;
    w->notes->truncated += cut;
    return written;
}

WR_INLINE void put(struct writer *w, enum wr_field field, const char *text, size_t len,
                   size_t limit)
{
    if (len == 0)
        return;
    size_t written = len;
    if (WR_UNLIKELY(len > limit) || WR_UNLIKELY(wr_copy_ascii(w->at + 2, text, len) != 0)) {
        written = put_slow(w, text, len, limit);
        if (written == 0)
            return;
    }
    wr_store16le(w->at, (uint16_t)written);
    w->at += 2 + written;
    w->present |= UINT64_C(1) << field;
}

static void put_bytes(struct writer *w, enum wr_field field, struct weir_bytes b, size_t limit)
{
    put(w, field, b.ptr, b.len, limit);
}

/* Digits of v at the end of text; returns where they begin. */
static const char *decimal(char text[NUMBER_MAX], int64_t v)
{
    char *at = text + NUMBER_MAX;
    uint64_t rest = v < 0 ? 0 - (uint64_t)v : (uint64_t)v;
    do {
        *--at = (char)('0' + rest % 10);
        rest /= 10;
    } while (rest > 0);
    if (v < 0)
        *--at = '-';
    return at;
}

static void put_number(struct writer *w, enum wr_field field, int64_t v)
{
    char text[NUMBER_MAX];
    const char *const digits = decimal(text, v);
    put(w, field, digits, (size_t)(text + NUMBER_MAX - digits), NUMBER_MAX);
}

/* Any value as label text: whole doubles as integers, others not at all (no text is exact and short
 * at once, and no label of the table is a fraction). */
static WR_NOINLINE void put_other(struct writer *w, enum wr_field field, const struct weir_value *v)
{
    switch ((enum weir_value_type)v->type) {
    case WEIR_VALUE_BYTES:
        break;
    case WEIR_VALUE_INT:
        put_number(w, field, v->v.i);
        break;
    case WEIR_VALUE_DOUBLE: {
        const int64_t whole = wr_i64_from_double(v->v.d);
        if ((double)whole - v->v.d == 0.0)
            put_number(w, field, whole);
        break;
    }
    case WEIR_VALUE_BOOL:
        if (v->v.i)
            put(w, field, "true", 4, 5);
        else
            put(w, field, "false", 5, 5);
        break;
    case WEIR_VALUE_NONE:
        break;
    }
}

WR_INLINE void put_value(struct writer *w, enum wr_field field, const struct weir_value *v,
                         size_t limit)
{
    if (WR_LIKELY(v->type == WEIR_VALUE_BYTES))
        put(w, field, v->v.ptr, v->len, limit);
    else
        put_other(w, field, v);
}

static const struct weir_value *slot_of(const struct weir_span *span, size_t slot)
{
    return span->present >> slot & 1 ? &span->slots[slot] : NULL;
}

static void put_slot(struct writer *w, enum wr_field field, const struct weir_span *span,
                     size_t slot, size_t limit)
{
    const struct weir_value *const v = slot_of(span, slot);
    if (v)
        put_value(w, field, v, limit);
}

/* A number in a slot, or what parse makes of its text; -1: neither. */
static int code_of(const struct weir_value *v, int (*parse)(const char *, size_t))
{
    char text[NUMBER_MAX];
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
    return parse(digits, (size_t)(text + NUMBER_MAX - digits));
}

static void put_http_status(struct writer *w, const struct weir_span *span)
{
    const struct weir_value *const v = slot_of(span, WEIR_TAG_HTTP_STATUS);
    if (!v)
        return;
    const int code = code_of(v, wr_text_http_status);
    if (code >= 0 && v->type == WEIR_VALUE_BYTES)
        put(w, WR_FIELD_HTTP_STATUS, v->v.ptr, v->len, 3); /* its text is its one spelling */
    else if (code >= 0)
        put_number(w, WR_FIELD_HTTP_STATUS, code);
    else
        w->notes->bad_status++;
}

static void put_grpc_status(struct writer *w, const struct weir_span *span)
{
    const struct weir_value *const v = slot_of(span, WEIR_TAG_GRPC_STATUS);
    const int code = v ? code_of(v, wr_text_grpc_status) : -1;
    if (code >= 0)
        put_number(w, WR_FIELD_GRPC_STATUS, code);
}

static const char unnamed[] = "unnamed-";
static const char service_word[] = "service";

static void put_service(struct writer *w, const struct weir_span *span, struct weir_bytes lang)
{
    if (WR_LIKELY(span->service.len > 0)) {
        put_bytes(w, WR_FIELD_SERVICE, span->service, WR_SHORT_MAX);
        return;
    }
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
    put(w, WR_FIELD_SERVICE, text, n + sizeof service_word - 1, WR_SHORT_MAX);
}

/* Contracts: span-stats §2: "synthetics" and what begins with it, by case. */
static bool is_synthetic(const struct weir_span *span)
{
    static const char word[] = "synthetics";
    const struct weir_value *const v = slot_of(span, WEIR_TAG_ORIGIN);
    return v && v->type == WEIR_VALUE_BYTES && v->len >= sizeof word - 1 &&
           memcmp(v->v.ptr, word, sizeof word - 1) == 0;
}

static void put_peer(struct writer *w, enum wr_field field, const struct weir_value *v)
{
    static const char blocked[] = "blocked-ip-address"; /* contracts: wire §2.9 */
    if (v->type == WEIR_VALUE_BYTES && wr_text_is_ip(v->v.ptr, v->len))
        put(w, field, blocked, sizeof blocked - 1, WR_TAG_MAX);
    else
        put_value(w, field, v, WR_TAG_MAX);
}

static void put_added(struct writer *w, const struct wr_schema *schema,
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
            put_value(w, field, v, WR_TAG_MAX);
        else if (outgoing)
            put_peer(w, field, v);
    }
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
    struct writer w = {.at = dst + 8, .notes = notes};
    put_slot(&w, WR_FIELD_ENV, span, WEIR_TAG_ENV, WR_TAG_MAX);
    const char *const service = w.at + 2;
    put_service(&w, span, lang);
    *ret_service = (struct weir_bytes){.ptr = service, .len = (size_t)(w.at - service)};
    put_bytes(&w, WR_FIELD_OPERATION, span->name, WR_SHORT_MAX);
    put_bytes(&w, WR_FIELD_RESOURCE, either(span->resource, span->name), WR_RESOURCE_MAX);
    put_bytes(&w, WR_FIELD_TYPE, span->type, WR_SHORT_MAX);
    if (span->kind > WEIR_KIND_NONE && span->kind <= WEIR_KIND_CONSUMER) {
        const char kind = (char)('0' + span->kind);
        put(&w, WR_FIELD_KIND, &kind, 1, 1);
    }
    if (span->present) {
        put_http_status(&w, span);
        put_slot(&w, WR_FIELD_HTTP_METHOD, span, WEIR_TAG_HTTP_METHOD, WR_TAG_MAX);
        put_slot(&w, WR_FIELD_HTTP_ROUTE, span, WEIR_TAG_HTTP_ROUTE, WR_RESOURCE_MAX);
        put_grpc_status(&w, span);
        if (is_synthetic(span))
            put(&w, WR_FIELD_SYNTHETIC, "true", 4, 4);
        if (span->kind == WEIR_KIND_NONE || span->kind == WEIR_KIND_INTERNAL)
            put_slot(&w, WR_FIELD_BASE_SERVICE, span, WEIR_TAG_BASE_SERVICE, WR_TAG_MAX);
        put_added(&w, schema, span);
    }
    wr_store64le(dst, w.present);
    return (size_t)(w.at - dst);
}

static size_t value_bound(const struct weir_value *v, size_t limit)
{
    return v->type == WEIR_VALUE_BYTES ? 2 + wr_text_bound(v->len, limit) : 2 + NUMBER_MAX;
}

size_t wr_key_bound(const struct weir_span *span)
{
    /* An unnamed service is shorter than the limit of a service. */
    size_t n = 8 + 2 + WR_SHORT_MAX + 2 + wr_text_bound(span->name.len, WR_SHORT_MAX) + 2 +
               wr_text_bound(either(span->resource, span->name).len, WR_RESOURCE_MAX) + 2 +
               wr_text_bound(span->type.len, WR_SHORT_MAX) + 3;
    uint64_t left = span->present;
    while (left) {
        const size_t i = (size_t)__builtin_ctzll(left);
        left &= left - 1;
        n += value_bound(&span->slots[i], i == WEIR_TAG_HTTP_ROUTE ? WR_RESOURCE_MAX : WR_TAG_MAX);
    }
    return n;
}

size_t wr_key_overflow(const struct wr_schema *schema, char *dst, size_t cap)
{
    static const char blocked[] = "tracer_blocked_value"; /* contracts: span-stats §1.6 */
    struct wr_key_notes notes = {0};
    struct writer w = {.at = dst + 8, .notes = &notes};
    WR_ASSERT(cap >= WR_KEY_OVERFLOW_MAX);
    (void)cap;
    for (size_t i = 0; i < schema->fields; i++) {
        if (i == WR_FIELD_KIND || i == WR_FIELD_HTTP_STATUS || i == WR_FIELD_GRPC_STATUS ||
            i == WR_FIELD_SYNTHETIC)
            continue;
        put(&w, (enum wr_field)i, blocked, sizeof blocked - 1, WR_TAG_MAX);
    }
    wr_store64le(dst, w.present);
    return (size_t)(w.at - dst);
}
