/* SPDX-License-Identifier: Apache-2.0 */
/*
 * events: a tag's JSON, [{"time_unix_nano":..,"name":..,"attributes":{..}}], as the native events
 * of v1.0 (contracts trace-encoding §2.4, case 20).
 *
 * The text is checked whole before anything is written (RFC 8259, nested at most DEPTH_MAX deep).
 * Then each list is walked twice, as its length comes before it: once to count, once to write.
 */
#include "trace/put.h"

#include <stdlib.h>

#define V WEIR_TRACE_V1
#define DEPTH_MAX 32
#define NUMBER_MAX_BYTES 64 /* a longer one is a double to as many digits */

enum { AS_STR = 1, AS_BOOL = 2, AS_DOUBLE = 3, AS_INT = 4, AS_ARRAY = 6 };

struct js {
    const char *at;
    const char *end;
};

static void space(struct js *j)
{
    while (j->at < j->end && (*j->at == ' ' || *j->at == '\t' || *j->at == '\n' || *j->at == '\r'))
        j->at++;
}

static char next_char(const struct js *j)
{
    return j->at < j->end ? *j->at : 0;
}

static bool take(struct js *j, char c)
{
    space(j);
    if (next_char(j) != c)
        return false;
    j->at++;
    return true;
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* The four digits at s as a unit; -1: they are none. */
static int hex4(const char *s, const char *end)
{
    if (end - s < 4)
        return -1;
    int v = 0;
    for (int i = 0; i < 4; i++) {
        const int digit = hex_digit(s[i]);
        if (digit < 0)
            return -1;
        v = v << 4 | digit;
    }
    return v;
}

/* After the backslash. */
static bool skip_escape(struct js *j)
{
    const char c = next_char(j);
    if (c == 'u') {
        if (hex4(j->at + 1, j->end) < 0)
            return false;
        j->at += 5;
        return true;
    }
    j->at++;
    return c && memchr("\"\\/bfnrt", c, 8) != NULL;
}

/* *ret_raw: what stands between the quotes. */
static bool string(struct js *j, struct weir_bytes *ret_raw)
{
    if (!take(j, '"'))
        return false;
    const char *const from = j->at;
    while (j->at < j->end) {
        const unsigned char c = (unsigned char)*j->at++;
        if (c == '"') {
            *ret_raw = (struct weir_bytes){.ptr = from, .len = (size_t)(j->at - 1 - from)};
            return true;
        }
        if (c < 0x20 || (c == '\\' && !skip_escape(j)))
            return false;
    }
    return false;
}

static bool digits(struct js *j)
{
    const char *const from = j->at;
    while (j->at < j->end && *j->at >= '0' && *j->at <= '9')
        j->at++;
    return j->at > from;
}

static bool number(struct js *j, struct weir_bytes *ret_raw)
{
    const char *const from = j->at;
    if (next_char(j) == '-')
        j->at++;
    if (next_char(j) == '0')
        j->at++;
    else if (!digits(j))
        return false;
    if (next_char(j) == '.') {
        j->at++;
        if (!digits(j))
            return false;
    }
    if (next_char(j) == 'e' || next_char(j) == 'E') {
        j->at++;
        if (next_char(j) == '+' || next_char(j) == '-')
            j->at++;
        if (!digits(j))
            return false;
    }
    *ret_raw = (struct weir_bytes){.ptr = from, .len = (size_t)(j->at - from)};
    return true;
}

enum kind { BAD, STRING, NUMBER, TRUE, FALSE, NIL, LIST, MAP };

struct value {
    enum kind kind;
    struct weir_bytes raw; /* strings and numbers; lists and maps from their bracket on */
};

static bool word(struct js *j, const char *w)
{
    const size_t n = strlen(w);
    if ((size_t)(j->end - j->at) < n || memcmp(j->at, w, n) != 0)
        return false;
    j->at += n;
    return true;
}

static struct value scan(struct js *j, int depth);

static bool scan_items(struct js *j, char close, int depth)
{
    if (take(j, close))
        return true;
    do {
        struct weir_bytes key;
        if (close == '}' && !(string(j, &key) && take(j, ':')))
            return false;
        if (scan(j, depth + 1).kind == BAD)
            return false;
    } while (take(j, ','));
    return take(j, close);
}

/* NOLINTNEXTLINE(misc-no-recursion): DEPTH_MAX bounds it */
static struct value scan(struct js *j, int depth)
{
    space(j);
    struct value v = {.kind = BAD, .raw = {.ptr = j->at, .len = 0}};
    bool ok = true;
    switch (next_char(j)) {
    case '"':
        v.kind = STRING;
        ok = string(j, &v.raw);
        break;
    case 't':
        v.kind = TRUE;
        ok = word(j, "true");
        break;
    case 'f':
        v.kind = FALSE;
        ok = word(j, "false");
        break;
    case 'n':
        v.kind = NIL;
        ok = word(j, "null");
        break;
    case '[':
    case '{':
        v.kind = *j->at == '[' ? LIST : MAP;
        ok = depth < DEPTH_MAX && scan_items(j, *j->at++ == '[' ? ']' : '}', depth);
        v.raw.len = (size_t)(j->at - v.raw.ptr);
        break;
    default:
        v.kind = NUMBER;
        ok = number(j, &v.raw);
    }
    if (!ok)
        v.kind = BAD;
    return v;
}

/* Step through a list or a map that was found to be right; false: it is over. */
static bool step(struct js *j, bool map, struct weir_bytes *ret_key, struct value *ret_value)
{
    (void)take(j, ',');
    space(j);
    if (next_char(j) == ']' || next_char(j) == '}' || j->at >= j->end)
        return false;
    if (map && !(string(j, ret_key) && take(j, ':')))
        return false;
    *ret_value = scan(j, 0);
    return ret_value->kind != BAD;
}

static struct js inside(struct weir_bytes raw)
{
    return (struct js){.at = raw.ptr + 1, .end = raw.ptr + raw.len};
}

/* An integer that fits; *ret untouched else. */
static bool integer(struct weir_bytes raw, int64_t *ret)
{
    const bool negative = raw.len > 0 && raw.ptr[0] == '-';
    int64_t v = 0;
    if (raw.len == (negative ? 1U : 0U))
        return false;
    for (size_t i = negative; i < raw.len; i++) {
        const int digit = raw.ptr[i] - '0';
        if (digit < 0 || digit > 9 || __builtin_mul_overflow(v, 10, &v) ||
            __builtin_sub_overflow(v, digit, &v)) /* downwards: the lowest has no counterpart */
            return false;
    }
    if (!negative && v == INT64_MIN)
        return false;
    *ret = negative ? v : -v;
    return true;
}

static double real(struct weir_bytes raw)
{
    /* strtod wants a terminated text and the locale's point. */
    char text[NUMBER_MAX_BYTES + 1];
    const size_t n = raw.len < NUMBER_MAX_BYTES ? raw.len : NUMBER_MAX_BYTES;
    memcpy(text, raw.ptr, n);
    text[n] = 0;
    char *end;
    double v = strtod(text, &end);
    if (*end == '.') {
        *end = ',';
        v = strtod(text, &end);
    }
    return v;
}

struct event {
    int64_t time_ns;
    bool has_time;
    struct value name;
    struct value attributes;
};

static bool is(struct weir_bytes key, const char *name)
{
    return key.len == strlen(name) && memcmp(key.ptr, name, key.len) == 0;
}

/* false: it has no time or no name. */
static bool read_event(const struct value *v, struct event *ret)
{
    *ret = (struct event){.has_time = false};
    if (v->kind != MAP)
        return false;
    struct js j = inside(v->raw);
    struct weir_bytes key;
    struct value member;
    while (step(&j, true, &key, &member)) {
        if (is(key, "name")) {
            ret->name = member;
        } else if (is(key, "attributes")) {
            ret->attributes = member;
        } else if (is(key, "time_unix_nano")) {
            ret->has_time = (member.kind == NUMBER || member.kind == STRING) &&
                            integer(member.raw, &ret->time_ns);
            if (!ret->has_time && member.kind == NUMBER) {
                ret->time_ns = wr_i64_from_double(real(member.raw));
                ret->has_time = true;
            }
        }
    }
    const enum kind k = ret->name.kind;
    return ret->has_time && (k == STRING || k == NUMBER || k == TRUE || k == FALSE);
}

bool wr_trace_events_ok(struct weir_bytes json)
{
    if (!json.len)
        return false;
    struct js j = {.at = json.ptr, .end = json.ptr + json.len};
    const struct value v = scan(&j, 0);
    space(&j);
    return v.kind == LIST && j.at == j.end;
}

static char put_simple_escape(char c)
{
    static const char from[] = "bfnrt";
    static const char to[] = "\b\f\n\r\t";
    const char *const at = memchr(from, c, sizeof from - 1);
    return at ? to[at - from] : c;
}

/* \u and its digits, with the pair that may follow; a lone surrogate becomes U+FFFD. */
static char *put_unit(char *dst, const char **at, const char *end)
{
    uint32_t point = (uint32_t)hex4(*at, end);
    *at += 4;
    if (point >= 0xd800 && point < 0xdc00 && end - *at >= 6 && (*at)[0] == '\\' &&
        (*at)[1] == 'u') {
        const uint32_t low = (uint32_t)hex4(*at + 2, end);
        if (low >= 0xdc00 && low < 0xe000) {
            point = 0x10000 + ((point & 0x3ff) << 10 | (low & 0x3ff));
            *at += 6;
        }
    }
    if (point >= 0xd800 && point < 0xe000)
        point = 0xfffd;
    if (point < 0x80)
        return wr_mp_raw_byte(dst, point);
    if (point < 0x800) {
        dst = wr_mp_raw_byte(dst, 0xc0 | point >> 6);
        return wr_mp_raw_byte(dst, 0x80 | (point & 0x3f));
    }
    if (point < 0x10000) {
        dst = wr_mp_raw_byte(dst, 0xe0 | point >> 12);
    } else {
        dst = wr_mp_raw_byte(dst, 0xf0 | point >> 18);
        dst = wr_mp_raw_byte(dst, 0x80 | (point >> 12 & 0x3f));
    }
    dst = wr_mp_raw_byte(dst, 0x80 | (point >> 6 & 0x3f));
    return wr_mp_raw_byte(dst, 0x80 | (point & 0x3f));
}

/* A string is never longer than with its escapes. */
static char *put_text(struct weir_trace_encoder *e, struct weir_bytes raw, char *at)
{
    if (!raw.len || !memchr(raw.ptr, '\\', raw.len))
        return wr_put_str(e, at, weir_str_utf8(raw.ptr, (uint32_t)raw.len), V);
    wr_out_clear(&e->events);
    char *const text = wr_out_reserve(&e->events, raw.len);
    if (!text) {
        e->err = e->events.err;
        return at;
    }
    char *dst = text;
    const char *const end = raw.ptr + raw.len;
    for (const char *from = raw.ptr; from < end;) {
        if (*from != '\\') {
            *dst++ = *from++;
        } else if (from[1] == 'u') {
            from += 2;
            dst = put_unit(dst, &from, end);
        } else {
            *dst++ = put_simple_escape(from[1]);
            from += 2;
        }
    }
    return wr_put_str(e, at, weir_str_utf8(text, (uint32_t)(dst - text)), V);
}

static bool is_simple(const struct value *v)
{
    return v->kind == STRING || v->kind == NUMBER || v->kind == TRUE || v->kind == FALSE;
}

static char *put_simple(struct weir_trace_encoder *e, const struct value *v, char *at)
{
    int64_t i;
    if (v->kind == STRING)
        return put_text(e, v->raw, wr_mp_raw_byte(at, AS_STR));
    if (v->kind != NUMBER) {
        at = wr_mp_raw_byte(at, AS_BOOL);
        return wr_mp_raw_byte(at, v->kind == TRUE ? 0xc3 : 0xc2);
    }
    if (integer(v->raw, &i)) {
        at = wr_mp_raw_byte(at, AS_INT);
        return wr_mp_raw_int(at, i);
    }
    at = wr_mp_raw_byte(at, AS_DOUBLE);
    return wr_mp_raw_double(at, real(v->raw));
}

static char *put_list(struct weir_trace_encoder *e, const struct value *list, char *at)
{
    struct weir_bytes key;
    struct value item;
    uint32_t count = 0;
    for (struct js j = inside(list->raw); step(&j, false, &key, &item);)
        count += is_simple(&item) ? 1 : 0;
    at = wr_mp_raw_byte(at, AS_ARRAY);
    at = wr_mp_raw_array(at, 2 * count);
    for (struct js j = inside(list->raw); step(&j, false, &key, &item);) {
        if (is_simple(&item))
            at = put_simple(e, &item, at);
    }
    return at;
}

static char *put_attributes(struct weir_trace_encoder *e, const struct value *map, char *at)
{
    if (map->kind != MAP)
        return wr_mp_raw_array(at, 0);
    struct weir_bytes key;
    struct value v;
    uint32_t count = 0;
    for (struct js j = inside(map->raw); step(&j, true, &key, &v);)
        count += is_simple(&v) || v.kind == LIST ? 1 : 0;
    at = wr_mp_raw_array(at, 3 * count);
    for (struct js j = inside(map->raw); step(&j, true, &key, &v);) {
        if (!is_simple(&v) && v.kind != LIST)
            continue;
        at = put_text(e, key, at);
        at = v.kind == LIST ? put_list(e, &v, at) : put_simple(e, &v, at);
    }
    return at;
}

static char *put_name(struct weir_trace_encoder *e, const struct value *name, char *at)
{
    if (name->kind == TRUE || name->kind == FALSE)
        return wr_put_known(e, at, name->kind == TRUE ? WR_KNOWN_TRUE : WR_KNOWN_FALSE, V);
    return put_text(e, name->raw, at);
}

char *wr_trace_events_put(struct weir_trace_encoder *e, struct weir_bytes json, char *at)
{
    struct js list = {.at = json.ptr, .end = json.ptr + json.len};
    (void)take(&list, '[');
    struct weir_bytes key;
    struct value v;
    struct event event;
    uint32_t count = 0;
    for (struct js j = list; step(&j, false, &key, &v);)
        count += read_event(&v, &event) ? 1 : 0;
    at = wr_mp_raw_array(at, count);
    for (struct js j = list; step(&j, false, &key, &v);) {
        if (!read_event(&v, &event))
            continue;
        at = WR_PUT(at, "\x83\x01");
        at = wr_mp_raw_int(at, wr_trace_unsigned(event.time_ns));
        at = put_name(e, &event.name, wr_mp_raw_byte(at, 2));
        at = put_attributes(e, &event.attributes, wr_mp_raw_byte(at, 3));
    }
    return at;
}
