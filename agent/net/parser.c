/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parser: see parser.h.
 *
 * The idea: one static function a state. Each takes a run of bytes as long as it can and returns
 * the next state; a short loop in net_parser_feed drives them until one reports an event. Nothing
 * looks ahead or back, so a split between any two bytes changes nothing.
 */
#include "net/parser.h"

#include "net/text.h"

#include <stdlib.h>
#include <string.h>

enum {
    BLANK_LINES_MAX = 4,       /* before a request: RFC 9112 §2.2 asks for at least one */
    METHOD_MAX = 32,           /* no method is longer: noise is refused early */
    EXTENSIONS_MAX = 16 * 1024 /* bytes of chunk extensions in one message */
};

struct cursor {
    const char *at;
    const char *end;
};
typedef enum net_parse_state state_fn(struct net_parser *p, struct cursor *in);

static bool is_token(unsigned char c)
{
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'))
        return true;
    return c != 0 && strchr("!#$%&'*+-.^_`|~", c) != NULL; /* RFC 9110 §5.6.2 */
}

static bool is_visible(unsigned char c)
{
    return c > 0x20 && c < 0x7f;
}

static bool is_value(unsigned char c)
{
    return c == '\t' || (c >= 0x20 && c != 0x7f); /* field-vchar, obs-text, blanks between */
}

static enum net_parse_state fail(struct net_parser *p, enum net_refusal refusal, int status)
{
    p->refusal = refusal;
    p->status = status;
    p->event = NET_EVENT_FAILED;
    return NET_PARSE_FAILED;
}

static enum net_parse_state bad(struct net_parser *p)
{
    return fail(p, NET_REFUSED_BAD_REQUEST, 400);
}

/* Append a run that began at from; the state goes on, or fails for want of memory. */
static enum net_parse_state keep(struct net_parser *p, const char *from, const char *to,
                                 enum net_parse_state state)
{
    if (from == to || net_head_append(p->head, from, (size_t)(to - from)))
        return state;
    return fail(p, NET_REFUSED_MEMORY, 503);
}

/* What the fields of a complete head mean for its framing; sums over repeated fields. */
struct framing {
    unsigned hosts;
    unsigned lengths;
    unsigned codings;
    bool old; /* HTTP/1.0 */
    bool close;
    bool broken;
};

static bool digits_to_u64(struct weir_bytes text, uint64_t *ret_value)
{
    uint64_t value = 0;
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] < '0' || text.ptr[i] > '9')
            return false;
        if (__builtin_mul_overflow(value, 10u, &value) ||
            __builtin_add_overflow(value, (uint64_t)(text.ptr[i] - '0'), &value))
            return false;
    }
    *ret_value = value;
    return text.len > 0;
}

static void note_field(struct net_head *h, struct framing *fr, const struct net_field *f)
{
    const struct weir_bytes name = net_head_name(h, f);
    struct weir_bytes value = net_head_value(h, f);
    if (net_text_is(name, "host")) {
        fr->hosts++;
    } else if (net_text_is(name, "content-length")) {
        fr->lengths++;
        fr->broken |= !digits_to_u64(value, &h->content_length);
    } else if (net_text_is(name, "transfer-encoding")) {
        fr->codings++;
        fr->broken |= !net_text_is(value, "chunked");
    } else if (net_text_is(name, "connection")) {
        struct weir_bytes element;
        while (net_text_next(&value, &element))
            fr->close |= net_text_is(element, "close");
    } else if (net_text_is(name, "expect")) {
        h->expect = net_text_is(value, "100-continue") ? NET_EXPECT_CONTINUE : NET_EXPECT_OTHER;
    }
}

static bool settle_framing(struct net_parser *p, struct net_head *h)
{
    struct framing fr = {.old = p->version[7] == '0'};
    for (uint32_t i = 0; i < h->count; i++)
        note_field(h, &fr, &h->fields[i]);
    if (fr.broken || fr.lengths > 1 || fr.codings > 1 || fr.hosts > 1)
        return false;
    if (fr.codings && (fr.lengths || fr.old))
        return false;
    if (!fr.old && fr.hosts != 1)
        return false;
    if (fr.old)
        h->expect = NET_EXPECT_NOTHING; /* RFC 9110 §10.1.1 */
    h->chunked = fr.codings == 1;
    h->keep_alive = !fr.old && !fr.close;
    return true;
}

/* Offsets of method and target, kept in the first, nameless field until the head is complete. */
static bool settle_head(struct net_parser *p)
{
    struct net_head *const h = p->head;
    const struct net_field line = h->fields[0];
    h->count--;
    memmove(h->fields, h->fields + 1, h->count * sizeof *h->fields);
    h->method = net_method_of(net_head_name(h, &line));
    return net_head_settle_target(h, h->bytes + line.value_at, line.value_len) &&
           settle_framing(p, h);
}

/* States of the head. */

static enum net_parse_state in_start(struct net_parser *p, struct cursor *in)
{
    const unsigned char c = (unsigned char)*in->at;
    if (c == '\r') {
        in->at++;
        return ++p->blanks > BLANK_LINES_MAX ? bad(p) : NET_PARSE_START_LF;
    }
    if (!is_token(c))
        return bad(p);
    p->head = calloc(1, sizeof *p->head);
    if (!p->head || !net_head_add(p->head))
        return fail(p, NET_REFUSED_MEMORY, 503);
    return NET_PARSE_METHOD;
}

static enum net_parse_state expect_lf(struct net_parser *p, struct cursor *in,
                                      enum net_parse_state next)
{
    return *in->at++ == '\n' ? next : bad(p);
}

static enum net_parse_state in_start_lf(struct net_parser *p, struct cursor *in)
{
    return expect_lf(p, in, NET_PARSE_START);
}

static enum net_parse_state in_method(struct net_parser *p, struct cursor *in)
{
    const char *const from = in->at;
    while (in->at < in->end && is_token((unsigned char)*in->at))
        in->at++;
    struct net_head *const h = p->head;
    if (h->len + (size_t)(in->at - from) > METHOD_MAX)
        return bad(p);
    const enum net_parse_state state = keep(p, from, in->at, NET_PARSE_METHOD);
    if (in->at == in->end || state == NET_PARSE_FAILED)
        return state;
    if (*in->at++ != ' ')
        return bad(p);
    h->fields[0].name_len = h->len;
    h->fields[0].value_at = h->len;
    return NET_PARSE_TARGET;
}

static enum net_parse_state in_target(struct net_parser *p, struct cursor *in)
{
    const char *const from = in->at;
    while (in->at < in->end && is_visible((unsigned char)*in->at))
        in->at++;
    const enum net_parse_state state = keep(p, from, in->at, NET_PARSE_TARGET);
    if (in->at == in->end || state == NET_PARSE_FAILED)
        return state;
    struct net_head *const h = p->head;
    h->fields[0].value_len = h->len - h->fields[0].value_at;
    if (*in->at++ != ' ' || h->fields[0].value_len == 0)
        return bad(p);
    p->digits = 0;
    return NET_PARSE_VERSION;
}

static enum net_parse_state in_version(struct net_parser *p, struct cursor *in)
{
    while (p->digits < sizeof p->version && in->at < in->end && *in->at != '\r')
        p->version[p->digits++] = *in->at++;
    if (in->at == in->end)
        return NET_PARSE_VERSION;
    const char *const v = p->version;
    if (*in->at++ != '\r' || p->digits != sizeof p->version || memcmp(v, "HTTP/", 5) != 0)
        return bad(p);
    if (v[5] < '0' || v[5] > '9' || v[6] != '.' || v[7] < '0' || v[7] > '9')
        return bad(p);
    if (v[5] != '1')
        return fail(p, NET_REFUSED_VERSION, 505);
    return NET_PARSE_LINE_LF;
}

static enum net_parse_state in_line_lf(struct net_parser *p, struct cursor *in)
{
    return expect_lf(p, in, NET_PARSE_FIELD);
}

static enum net_parse_state in_field(struct net_parser *p, struct cursor *in)
{
    if (*in->at == '\r') {
        in->at++;
        return NET_PARSE_HEAD_LF;
    }
    if (!is_token((unsigned char)*in->at)) /* a blank here is a folded line */
        return bad(p);
    if (p->head->count > p->max_headers)
        return fail(p, NET_REFUSED_HEAD_TOO_LARGE, 431);
    struct net_field *const f = net_head_add(p->head);
    if (!f)
        return fail(p, NET_REFUSED_MEMORY, 503);
    f->name_at = p->head->len;
    return NET_PARSE_NAME;
}

static struct net_field *last_field(struct net_parser *p)
{
    return &p->head->fields[p->head->count - 1];
}

static enum net_parse_state in_name(struct net_parser *p, struct cursor *in)
{
    const char *const from = in->at;
    while (in->at < in->end && is_token((unsigned char)*in->at))
        in->at++;
    const enum net_parse_state state = keep(p, from, in->at, NET_PARSE_NAME);
    if (in->at == in->end || state == NET_PARSE_FAILED)
        return state;
    if (*in->at++ != ':')
        return bad(p);
    struct net_field *const f = last_field(p);
    f->name_len = p->head->len - f->name_at;
    f->value_at = p->head->len;
    return NET_PARSE_BLANK;
}

static enum net_parse_state in_blank(struct net_parser *p, struct cursor *in)
{
    (void)p;
    while (in->at < in->end && (*in->at == ' ' || *in->at == '\t'))
        in->at++;
    return in->at == in->end ? NET_PARSE_BLANK : NET_PARSE_VALUE;
}

static enum net_parse_state in_value(struct net_parser *p, struct cursor *in)
{
    const char *const from = in->at;
    while (in->at < in->end && is_value((unsigned char)*in->at))
        in->at++;
    const enum net_parse_state state = keep(p, from, in->at, NET_PARSE_VALUE);
    if (in->at == in->end || state == NET_PARSE_FAILED)
        return state;
    if (*in->at++ != '\r')
        return bad(p);
    struct net_field *const f = last_field(p);
    const struct weir_bytes value = {p->head->bytes + f->value_at, p->head->len - f->value_at};
    f->value_len = (uint32_t)net_text_trim(value).len; /* there are none in front */
    return NET_PARSE_VALUE_LF;
}

static enum net_parse_state in_value_lf(struct net_parser *p, struct cursor *in)
{
    return expect_lf(p, in, NET_PARSE_FIELD);
}

static enum net_parse_state in_head_lf(struct net_parser *p, struct cursor *in)
{
    if (*in->at++ != '\n' || !settle_head(p))
        return bad(p);
    p->event = NET_EVENT_HEAD;
    p->taken = 0;
    p->chunked = p->head->chunked;
    p->remaining = p->head->content_length;
    if (p->chunked) {
        p->digits = 0;
        p->remaining = 0;
        return NET_PARSE_SIZE;
    }
    return p->remaining ? NET_PARSE_FIXED : NET_PARSE_END;
}

/* States of the body. */

static void take_run(struct net_parser *p, struct cursor *in)
{
    size_t len = (size_t)(in->end - in->at);
    if (len > p->remaining)
        len = (size_t)p->remaining;
    p->data = (struct weir_bytes){in->at, len};
    in->at += len;
    p->remaining -= len;
    p->body_bytes += len;
    p->event = NET_EVENT_BODY;
}

static enum net_parse_state in_fixed(struct net_parser *p, struct cursor *in)
{
    take_run(p, in);
    return p->remaining ? NET_PARSE_FIXED : NET_PARSE_END;
}

static int hex(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

static enum net_parse_state in_size(struct net_parser *p, struct cursor *in)
{
    for (; in->at < in->end; in->at++) {
        const int digit = hex(*in->at);
        if (digit < 0)
            break;
        if (++p->digits > 16) /* 64 bits */
            return bad(p);
        p->remaining = p->remaining << 4 | (uint64_t)digit;
    }
    if (in->at == in->end)
        return NET_PARSE_SIZE;
    const char c = *in->at++;
    if (p->digits == 0)
        return bad(p);
    if (p->remaining > p->body_limit || p->body_bytes > p->body_limit - p->remaining)
        return fail(p, NET_REFUSED_TOO_LARGE, 413);
    if (c == ';')
        return NET_PARSE_EXTENSION;
    return c == '\r' ? NET_PARSE_SIZE_LF : bad(p);
}

static enum net_parse_state in_extension(struct net_parser *p, struct cursor *in)
{
    const char *const from = in->at;
    while (in->at < in->end && is_value((unsigned char)*in->at))
        in->at++;
    p->taken += (size_t)(in->at - from);
    if (p->taken > EXTENSIONS_MAX)
        return bad(p);
    if (in->at == in->end)
        return NET_PARSE_EXTENSION;
    return *in->at++ == '\r' ? NET_PARSE_SIZE_LF : bad(p);
}

static enum net_parse_state in_size_lf(struct net_parser *p, struct cursor *in)
{
    return expect_lf(p, in, p->remaining ? NET_PARSE_DATA : NET_PARSE_TRAILER);
}

static enum net_parse_state in_data(struct net_parser *p, struct cursor *in)
{
    take_run(p, in);
    return p->remaining ? NET_PARSE_DATA : NET_PARSE_DATA_CR;
}

static enum net_parse_state in_data_cr(struct net_parser *p, struct cursor *in)
{
    return *in->at++ == '\r' ? NET_PARSE_DATA_LF : bad(p);
}

static enum net_parse_state in_data_lf(struct net_parser *p, struct cursor *in)
{
    p->digits = 0;
    return expect_lf(p, in, NET_PARSE_SIZE);
}

/* Trailers are read and forgotten: nothing here asks for one. */
static enum net_parse_state in_trailer(struct net_parser *p, struct cursor *in)
{
    if (*in->at == '\r') {
        in->at++;
        return NET_PARSE_LAST_LF;
    }
    return is_token((unsigned char)*in->at) ? NET_PARSE_TRAILER_LINE : bad(p);
}

static enum net_parse_state in_trailer_line(struct net_parser *p, struct cursor *in)
{
    const char *const from = in->at;
    while (in->at < in->end && is_value((unsigned char)*in->at))
        in->at++;
    p->taken += (size_t)(in->at - from);
    if (p->taken > p->max_head_bytes)
        return fail(p, NET_REFUSED_HEAD_TOO_LARGE, 431);
    if (in->at == in->end)
        return NET_PARSE_TRAILER_LINE;
    return *in->at++ == '\r' ? NET_PARSE_TRAILER_LF : bad(p);
}

static enum net_parse_state in_trailer_lf(struct net_parser *p, struct cursor *in)
{
    return expect_lf(p, in, NET_PARSE_TRAILER);
}

static enum net_parse_state in_last_lf(struct net_parser *p, struct cursor *in)
{
    return expect_lf(p, in, NET_PARSE_END);
}

static enum net_parse_state in_end(struct net_parser *p, struct cursor *in)
{
    (void)in;
    p->event = NET_EVENT_END;
    return NET_PARSE_DONE;
}

static state_fn *const states[] = {
    [NET_PARSE_START] = in_start,
    [NET_PARSE_START_LF] = in_start_lf,
    [NET_PARSE_METHOD] = in_method,
    [NET_PARSE_TARGET] = in_target,
    [NET_PARSE_VERSION] = in_version,
    [NET_PARSE_LINE_LF] = in_line_lf,
    [NET_PARSE_FIELD] = in_field,
    [NET_PARSE_NAME] = in_name,
    [NET_PARSE_BLANK] = in_blank,
    [NET_PARSE_VALUE] = in_value,
    [NET_PARSE_VALUE_LF] = in_value_lf,
    [NET_PARSE_HEAD_LF] = in_head_lf,
    [NET_PARSE_FIXED] = in_fixed,
    [NET_PARSE_SIZE] = in_size,
    [NET_PARSE_EXTENSION] = in_extension,
    [NET_PARSE_SIZE_LF] = in_size_lf,
    [NET_PARSE_DATA] = in_data,
    [NET_PARSE_DATA_CR] = in_data_cr,
    [NET_PARSE_DATA_LF] = in_data_lf,
    [NET_PARSE_TRAILER] = in_trailer,
    [NET_PARSE_TRAILER_LINE] = in_trailer_line,
    [NET_PARSE_TRAILER_LF] = in_trailer_lf,
    [NET_PARSE_LAST_LF] = in_last_lf,
    [NET_PARSE_END] = in_end,
};

/* The machine. */

void net_parser_init(struct net_parser *parser, size_t max_head_bytes, size_t max_headers)
{
    memset(parser, 0, sizeof *parser);
    parser->max_head_bytes = max_head_bytes;
    parser->max_headers = max_headers;
    parser->body_limit = UINT64_MAX;
}

void net_parser_done(struct net_parser *parser)
{
    net_head_free(parser->head);
    parser->head = NULL;
}

void net_parser_next(struct net_parser *parser)
{
    net_parser_done(parser);
    net_parser_init(parser, parser->max_head_bytes, parser->max_headers);
}

struct net_head *net_parser_take_head(struct net_parser *parser)
{
    struct net_head *const head = parser->head;
    parser->head = NULL;
    return head;
}

bool net_parser_is_idle(const struct net_parser *parser)
{
    return parser->state == NET_PARSE_START && parser->blanks == 0;
}

bool net_parser_in_head(const struct net_parser *parser)
{
    return parser->state <= NET_PARSE_HEAD_LF && !net_parser_is_idle(parser);
}

/* A step of a head sees no more bytes than the head may still have: a long run of one state must
 * not be copied whole before it is refused. */
static bool clip_head(struct net_parser *p, struct cursor *window)
{
    const size_t left = p->max_head_bytes - p->taken;
    if ((size_t)(window->end - window->at) > left)
        window->end = window->at + left;
    return left > 0;
}

static enum net_parse_state step(struct net_parser *p, struct cursor *in)
{
    if (p->state > NET_PARSE_HEAD_LF)
        return states[p->state](p, in);
    struct cursor window = *in;
    if (!clip_head(p, &window)) /* 414 is the answer to a long request line: RFC 9110 §15.5.15 */
        return fail(p, NET_REFUSED_HEAD_TOO_LARGE, p->state <= NET_PARSE_VERSION ? 414 : 431);
    const enum net_parse_state next = states[p->state](p, &window);
    if (next <= NET_PARSE_HEAD_LF)
        p->taken += (size_t)(window.at - in->at);
    in->at = window.at;
    return next;
}

enum net_event net_parser_feed(struct net_parser *parser, const char *bytes, size_t len,
                               size_t *ret_taken)
{
    if (len == 0)
        bytes = ""; /* arithmetic on NULL is undefined */
    struct cursor in = {bytes, bytes + len};
    *ret_taken = 0;
    if (parser->state == NET_PARSE_FAILED)
        return NET_EVENT_FAILED;
    parser->event = NET_EVENT_MORE;
    while (parser->event == NET_EVENT_MORE && parser->state < NET_PARSE_DONE &&
           (in.at < in.end || parser->state == NET_PARSE_END))
        parser->state = step(parser, &in);
    *ret_taken = (size_t)(in.at - bytes);
    return parser->event;
}
