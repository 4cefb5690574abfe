/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json: a span's links and events as the text that v0.4 and v0.5 carry in meta (contracts
 * trace-encoding §2.2). Members that say nothing are left out, as the reference does.
 */
#include "trace/encoder.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* Of the tag with the links; what does not fit is dropped whole and counted. */
#define LINKS_MAX_BYTES 25000

static void put(struct wr_out *out, const char *s)
{
    wr_out_put(out, s, strlen(s));
}

static void put_hex(struct wr_out *out, uint64_t v)
{
    char hex[16];
    for (int i = 0; i < 16; i++)
        hex[i] = "0123456789abcdef"[v >> (60 - 4 * i) & 15];
    wr_out_put(out, hex, sizeof hex);
}

static void put_decimal(struct wr_out *out, int64_t v)
{
    char digits[20];
    size_t at = sizeof digits;
    uint64_t left = v < 0 ? 0 - (uint64_t)v : (uint64_t)v;
    do {
        digits[--at] = (char)('0' + left % 10);
        left /= 10;
    } while (left);
    if (v < 0)
        digits[--at] = '-';
    wr_out_put(out, digits + at, sizeof digits - at);
}

/* The shortest text that reads back as v. */
static void put_double(struct wr_out *out, double v)
{
    if (!isfinite(v)) {
        put(out, "null"); /* JSON has no other word for it */
        return;
    }
    char text[32];
    int n = 0;
    for (int digits = 15; digits <= 17; digits++) {
        n = snprintf(text, sizeof text, "%.*g", digits, v);
        if (strtod(text, NULL) == v)
            break;
    }
    bool fraction = false;
    for (int i = 0; i < n; i++) {
        const bool plain = (text[i] >= '0' && text[i] <= '9') || text[i] == '-' || text[i] == '+';
        if (!plain && text[i] != 'e')
            text[i] = '.'; /* whatever the locale's is */
        fraction =
            fraction || !plain; /* or an exponent, which says as well that it is no integer */
    }
    wr_out_put(out, text, (size_t)n);
    if (!fraction)
        put(out, ".0");
}

static void put_escaped(struct wr_out *out, unsigned char c)
{
    char code[6] = {'\\', 'u', '0', '0', 0, 0};
    code[4] = "0123456789abcdef"[c >> 4];
    code[5] = "0123456789abcdef"[c & 15];
    wr_out_put(out, code, sizeof code);
}

static void put_string(struct weir_trace_encoder *e, struct weir_str s)
{
    struct wr_out *const out = &e->json;
    const struct weir_bytes b = wr_trace_utf8(e, s);
    put(out, "\"");
    size_t from = 0;
    for (size_t i = 0; i < b.len; i++) {
        const unsigned char c = (unsigned char)b.ptr[i];
        if (c >= 0x20 && c != '"' && c != '\\')
            continue;
        wr_out_put(out, b.ptr + from, i - from);
        from = i + 1;
        if (c < 0x20)
            put_escaped(out, c);
        else
            put(out, c == '"' ? "\\\"" : "\\\\");
    }
    wr_out_put(out, b.ptr + from, b.len - from);
    put(out, "\"");
}

static void put_value(struct weir_trace_encoder *e, const struct weir_trace_value *v)
{
    switch (v->type) {
    case WEIR_TRACE_BOOL:
        put(&e->json, v->v.i ? "true" : "false");
        return;
    case WEIR_TRACE_INT:
        put_decimal(&e->json, v->v.i);
        return;
    case WEIR_TRACE_DOUBLE:
        put_double(&e->json, v->v.d);
        return;
    default:
        put_string(e, v->v.str);
    }
}

static void put_attributes(struct weir_trace_encoder *e, const struct weir_trace_tag *tags,
                           size_t count)
{
    struct wr_out *const out = &e->json;
    put(out, ",\"attributes\":{");
    for (size_t i = 0; i < count; i++) {
        const struct weir_trace_value *const v = &tags[i].value;
        if (i)
            put(out, ",");
        put_string(e, tags[i].key);
        put(out, ":");
        if (v->type != WEIR_TRACE_ARRAY) {
            put_value(e, v);
            continue;
        }
        put(out, "[");
        for (uint32_t k = 0; k < v->count; k++) {
            if (k)
                put(out, ",");
            put_value(e, &v->v.items[k]);
        }
        put(out, "]");
    }
    put(out, "}");
}

static void put_link(struct weir_trace_encoder *e, const struct weir_trace_link *l)
{
    struct wr_out *const out = &e->json;
    put(out, "{\"trace_id\":\"");
    put_hex(out, l->trace_id_hi);
    put_hex(out, l->trace_id);
    put(out, "\",\"span_id\":\"");
    put_hex(out, l->span_id);
    put(out, "\"");
    if (l->attribute_count)
        put_attributes(e, l->attributes, l->attribute_count);
    if (l->tracestate.ptr) {
        put(out, ",\"tracestate\":");
        put_string(e, l->tracestate);
    }
    if (l->flags & 0xff) {
        put(out, ",\"flags\":");
        put_decimal(out, l->flags & 0xff);
    }
    put(out, "}");
}

void wr_trace_json_links(struct weir_trace_encoder *e, const struct weir_trace_extra *x)
{
    struct wr_out *const out = &e->json;
    const size_t from = out->len;
    put(out, "[");
    for (size_t i = 0; i < x->link_count && !out->err; i++) {
        const size_t mark = out->len;
        if (i)
            put(out, ",");
        put_link(e, &x->links[i]);
        if (!out->err && out->len - from + 1 >= LINKS_MAX_BYTES) { /* with the closing bracket */
            wr_out_rewind(out, mark);
            e->counts.links_dropped += x->link_count - i;
            break;
        }
    }
    put(out, "]");
}

void wr_trace_json_events(struct weir_trace_encoder *e, const struct weir_trace_extra *x)
{
    struct wr_out *const out = &e->json;
    put(out, "[");
    for (size_t i = 0; i < x->event_count && !out->err; i++) {
        const struct weir_trace_event *const event = &x->events[i];
        put(out, i ? ",{\"time_unix_nano\":" : "{\"time_unix_nano\":");
        put_decimal(out, event->time_ns);
        put(out, ",\"name\":");
        put_string(e, event->name);
        put_attributes(e, event->attributes, event->attribute_count);
        put(out, "}");
    }
    put(out, "]");
}
