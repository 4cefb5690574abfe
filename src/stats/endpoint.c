/* SPDX-License-Identifier: Apache-2.0 */
/*
 * endpoint: a path with its parameters named by their form, from a URL (contracts: span-stats
 * §1.4). A segment that is left as it is has at most 19 bytes, a replaced one at most 14: so eight
 * of them fit in WR_ENDPOINT_MAX. Pure functions.
 */
#include "stats/key_put.h"

enum { SEGMENTS = 8, SEGMENT_LONG = 20 };

/* What a segment is made of; all of the rules ask no more. */
struct shape {
    size_t len;
    bool digit;       /* one at least */
    bool digits;      /* all */
    bool digits_dots; /* [0-9._-] */
    bool hex;
    bool hex_dots; /* [A-Fa-f0-9._-] */
    bool special;  /* one of %&'()*+,:=@ */
};

static struct shape shape_of(const char *s, size_t len)
{
    struct shape f = {
        .len = len, .digits = true, .digits_dots = true, .hex = true, .hex_dots = true};
    for (size_t i = 0; i < len; i++) {
        const char c = s[i];
        const bool digit = c >= '0' && c <= '9';
        const bool hex = digit || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
        const bool dot = c == '.' || c == '_' || c == '-';
        f.digit |= digit;
        f.digits &= digit;
        f.digits_dots &= digit || dot;
        f.hex &= hex;
        f.hex_dots &= hex || dot;
        f.special |= c && strchr("%&'()*+,:=@", c);
    }
    return f;
}

/* The first rule that holds; NULL: the segment stays. */
static const char *parameter(const char *s, size_t len)
{
    const struct shape f = shape_of(s, len);
    if (f.digits && len >= 2 && s[0] != '0')
        return "{param:int}";
    if (f.digit && f.digits_dots && len >= 3)
        return "{param:int_id}";
    if (f.digit && f.hex && len >= 6)
        return "{param:hex}";
    if (f.digit && f.hex_dots && len >= 6)
        return "{param:hex_id}";
    if (len >= SEGMENT_LONG || f.special)
        return "{param:str}";
    return NULL;
}

/* Behind scheme and authority, when there are any. */
static const char *path_of(const char *url, const char *end)
{
    const char *at = url;
    while (at < end &&
           ((*at >= 'a' && *at <= 'z') || (*at >= 'A' && *at <= 'Z') ||
            (at > url && ((*at >= '0' && *at <= '9') || *at == '+' || *at == '-' || *at == '.'))))
        at++;
    if (at == url || end - at < 3 || memcmp(at, "://", 3) != 0)
        return url;
    at += 3;
    while (at < end && *at != '/')
        at++;
    return at;
}

size_t wr_endpoint_of_url(char *dst, const char *url, size_t len)
{
    const char *const query = len ? memchr(url, '?', len) : NULL;
    const char *const end = len ? (query ? query : url + len) : url;
    const char *at = len ? path_of(url, end) : url;
    char *out = dst;
    for (size_t segments = 0; segments < SEGMENTS && at < end;) {
        const char *const begin = at;
        while (at < end && *at != '/')
            at++;
        const size_t n = (size_t)(at - begin);
        at += at < end;
        if (n == 0)
            continue;
        const char *const name = parameter(begin, n);
        const size_t bytes = name ? strlen(name) : n;
        *out++ = '/';
        memcpy(out, name ? name : begin, bytes);
        out += bytes;
        segments++;
    }
    if (out == dst)
        *out++ = '/';
    return (size_t)(out - dst);
}

static bool is_route(const struct weir_value *v)
{
    if (!v || v->type != WEIR_VALUE_BYTES || v->len == 0)
        return false;
    const bool star = v->len == 1 && v->v.ptr[0] == '*';
    return !star && !(v->len == 3 && memcmp(v->v.ptr, "*/*", 3) == 0);
}

bool wr_key_put_inferred(struct wr_key_writer *w, enum wr_field field,
                         const struct wr_schema *schema, const struct weir_span *span)
{
    const bool always = schema->flags & WEIR_STATS_SIMPLIFY_ENDPOINT;
    if (!always && !(schema->flags & WEIR_STATS_INFER_ENDPOINT))
        return false;
    if (!wr_key_slot(span, WEIR_TAG_HTTP_METHOD) ||
        (!always && is_route(wr_key_slot(span, WEIR_TAG_HTTP_ROUTE))))
        return false;
    char text[WR_ENDPOINT_MAX];
    const struct weir_value *const url = wr_key_slot(span, WEIR_TAG_HTTP_URL);
    const bool has = url && url->type == WEIR_VALUE_BYTES;
    wr_key_put(w, field, text, wr_endpoint_of_url(text, has ? url->v.ptr : "", has ? url->len : 0),
               WR_ENDPOINT_MAX);
    return true;
}
