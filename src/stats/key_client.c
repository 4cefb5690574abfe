/* SPDX-License-Identifier: Apache-2.0 */
/*
 * key_client: the key a tracer's own statistics have (contracts: span-stats §1.2, §1.3, §1.7).
 * Texts are what the tracer has, not normalised; empty is absent, but for peer tags and dimensions,
 * which say their name then. The order of the calls is the order of the fields.
 */
#include "stats/key_put.h"

struct weir_bytes wr_kind_text(enum weir_kind kind)
{
    static const char *const texts[] = {"", "internal", "server", "client", "producer", "consumer"};
    const char *const t = (unsigned)kind <= WEIR_KIND_CONSUMER ? texts[kind] : texts[0];
    return (struct weir_bytes){.ptr = t, .len = strlen(t)};
}

static bool is_text(const struct weir_value *v, struct weir_bytes t)
{
    return v->type == WEIR_VALUE_BYTES && v->len == t.len && memcmp(v->v.ptr, t.ptr, t.len) == 0;
}

enum weir_kind wr_key_client_kind(const struct weir_span *span)
{
    const struct weir_value *const v = wr_key_slot(span, WEIR_TAG_KIND);
    if (!v)
        return span->kind <= WEIR_KIND_CONSUMER ? (enum weir_kind)span->kind : WEIR_KIND_NONE;
    for (int k = WEIR_KIND_INTERNAL; k <= WEIR_KIND_CONSUMER; k++) {
        if (is_text(v, wr_kind_text((enum weir_kind)k)))
            return (enum weir_kind)k;
    }
    return WEIR_KIND_NONE;
}

static void put_kind(struct wr_key_writer *w, const struct weir_span *span)
{
    const struct weir_value *const v = wr_key_slot(span, WEIR_TAG_KIND);
    if (v)
        wr_key_put_value(w, WR_FIELD_KIND, v, WR_SHORT_MAX);
    else
        wr_key_put_bytes(w, WR_FIELD_KIND, wr_kind_text(wr_key_client_kind(span)), WR_SHORT_MAX);
}

/* An empty text is captured too. */
static void put_tag(struct wr_key_writer *w, enum wr_field field, const struct weir_value *v,
                    size_t limit)
{
    if (v->type == WEIR_VALUE_BYTES && v->len == 0) {
        wr_store16le(w->at, 0);
        w->at += 2;
        w->present |= UINT64_C(1) << field;
        return;
    }
    wr_key_put_value(w, field, v, limit);
}

/* UTF-16 units of well-formed UTF-8: characters, and one more for each of four bytes. */
static size_t utf16_units(const char *text, size_t len)
{
    size_t n = 0;
    for (size_t i = 0; i < len; i++) {
        const unsigned char c = (unsigned char)text[i];
        n += (c & 0xc0) != 0x80;
        n += c >= 0xf0;
    }
    return n;
}

static void put_dimension(struct wr_key_writer *w, enum wr_field field, const struct weir_value *v)
{
    static const struct weir_value sentinel = {
        .type = WEIR_VALUE_BYTES, .len = sizeof WR_SENTINEL - 1, .v = {.ptr = WR_SENTINEL}};
    if (v->type == WEIR_VALUE_BYTES && v->len > WR_DIMENSION_UNITS &&
        utf16_units(v->v.ptr, v->len) > WR_DIMENSION_UNITS) {
        w->notes->oversized++;
        v = &sentinel;
    }
    put_tag(w, field, v, WR_DIMENSION_MAX);
}

static void put_added(struct wr_key_writer *w, const struct wr_schema *schema,
                      const struct weir_span *span, enum weir_kind kind)
{
    const bool outgoing =
        kind == WEIR_KIND_CLIENT || kind == WEIR_KIND_PRODUCER || kind == WEIR_KIND_CONSUMER;
    uint64_t left = span->present >> WEIR_TAG_FIXED;
    while (left) {
        const size_t i = (size_t)__builtin_ctzll(left);
        left &= left - 1;
        const enum wr_field field = (enum wr_field)(WR_FIELD_FIXED + i);
        const struct weir_value *const v = &span->slots[WEIR_TAG_FIXED + i];
        if (field >= schema->fields)
            return; /* slots that this table has not */
        if (i >= schema->peers)
            put_dimension(w, field, v);
        else if (outgoing)
            put_tag(w, field, v, WR_TAG_MAX);
    }
}

static void put_endpoint(struct wr_key_writer *w, const struct wr_schema *schema,
                         const struct weir_span *span)
{
    const struct weir_value *const given = wr_key_slot(span, WEIR_TAG_HTTP_ENDPOINT);
    if (given)
        wr_key_put_value(w, WR_FIELD_HTTP_ENDPOINT, given, WR_RESOURCE_MAX);
    else
        (void)wr_key_put_inferred(w, WR_FIELD_HTTP_ENDPOINT, schema, span);
}

static void put_slots(struct wr_key_writer *w, const struct wr_schema *schema,
                      const struct weir_span *span, enum weir_kind kind)
{
    static const struct weir_bytes rpc = {.ptr = "rpc", .len = 3};
    static const struct weir_bytes synthetics = {.ptr = "synthetics", .len = 10};
    const struct weir_value *const origin = wr_key_slot(span, WEIR_TAG_ORIGIN);
    wr_key_put_http_status(w, span);
    if (schema->flags & WEIR_STATS_ENDPOINTS)
        wr_key_put_slot(w, WR_FIELD_HTTP_METHOD, span, WEIR_TAG_HTTP_METHOD, WR_TAG_MAX);
    if (span->type.len == rpc.len && memcmp(span->type.ptr, rpc.ptr, rpc.len) == 0)
        wr_key_put_slot(w, WR_FIELD_GRPC_STATUS, span, WEIR_TAG_GRPC_STATUS, WR_TAG_MAX);
    if (origin && is_text(origin, synthetics))
        wr_key_put(w, WR_FIELD_SYNTHETIC, "true", 4, 4);
    if (kind == WEIR_KIND_INTERNAL) {
        const struct weir_value *const base = wr_key_slot(span, WEIR_TAG_BASE_SERVICE);
        if (base)
            put_tag(w, WR_FIELD_BASE_SERVICE, base, WR_TAG_MAX);
    }
    wr_key_put_slot(w, WR_FIELD_SERVICE_SOURCE, span, WEIR_TAG_SERVICE_SOURCE, WR_SHORT_MAX);
}

size_t wr_key_build_client(const struct wr_schema *schema, const struct weir_span *span, char *dst,
                           struct weir_bytes *ret_service, struct wr_key_notes *notes)
{
    struct wr_key_writer w = {.at = dst + 8, .notes = notes};
    const enum weir_kind kind = wr_key_client_kind(span);
    wr_key_put_bytes(&w, WR_FIELD_SERVICE, span->service, WR_SHORT_MAX);
    *ret_service = (struct weir_bytes){0};
    if (w.present >> WR_FIELD_SERVICE & 1)
        *ret_service =
            (struct weir_bytes){.ptr = dst + 8 + 2, .len = (size_t)(w.at - (dst + 8 + 2))};
    wr_key_put_bytes(&w, WR_FIELD_OPERATION, span->name, WR_SHORT_MAX);
    wr_key_put_bytes(&w, WR_FIELD_RESOURCE, span->resource, WR_RESOURCE_MAX);
    wr_key_put_bytes(&w, WR_FIELD_TYPE, span->type, WR_SHORT_MAX);
    put_kind(&w, span);
    if (span->present)
        put_slots(&w, schema, span, kind);
    if (span->parent_id == 0)
        wr_key_put(&w, WR_FIELD_TRACE_ROOT, "true", 4, 5);
    else
        wr_key_put(&w, WR_FIELD_TRACE_ROOT, "false", 5, 5);
    if (span->present && (schema->flags & WEIR_STATS_ENDPOINTS))
        put_endpoint(&w, schema, span);
    if (span->present)
        put_added(&w, schema, span, kind);
    wr_store64le(dst, wr_key_marked(schema, w.present));
    return (size_t)(w.at - dst);
}
