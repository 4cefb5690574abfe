/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_http: the parser of HTTP requests and the collector of bodies. Cut anywhere, a stream of
 * bytes gives the same requests, the same bodies and the same refusal; a body that was compressed
 * here comes back as it was.
 *
 * Input: 1 byte what to do, 2 bytes limits, 1 byte how many cuts, 2 bytes each where; then bytes.
 */
#include "fuzz.h"

#include "net/body.h"
#include "net/parser.h"

#include <stdlib.h>
#include <string.h>

enum { CUTS_MAX = 8, POOL_BYTES = 64 * 1024 * 1024 };

struct limits {
    size_t head_bytes;
    size_t headers;
    size_t body_bytes;
};

/* Pieces of the input, each in memory of its own, alive until the end. */
struct pieces {
    uint8_t *at[CUTS_MAX + 1];
    size_t len[CUTS_MAX + 1];
    size_t count;
};

static struct pieces cut(const uint8_t *bytes, size_t n, const size_t *cuts, size_t cut_count)
{
    struct pieces p = {.count = 0};
    size_t from = 0;
    for (size_t i = 0; i <= cut_count; i++) {
        const size_t to = i < cut_count ? cuts[i] : n;
        p.len[p.count] = to - from;
        p.at[p.count++] = fz_copy(bytes + from, to - from);
        from = to;
    }
    return p;
}

static void pieces_done(struct pieces *p)
{
    for (size_t i = 0; i < p->count; i++)
        free(p->at[i]);
}

/* Where to cut, in ascending order. */
static size_t take_cuts(struct fz_in *in, size_t cuts[CUTS_MAX])
{
    const size_t count = fz_below(in, CUTS_MAX + 1);
    uint16_t raw[CUTS_MAX];
    for (size_t i = 0; i < count; i++)
        raw[i] = fz_u16(in);
    for (size_t i = 0; i < count; i++) {
        size_t at = i;
        const size_t here = in->left ? raw[i] % (in->left + 1) : 0;
        for (; at > 0 && cuts[at - 1] > here; at--)
            cuts[at] = cuts[at - 1];
        cuts[at] = here;
    }
    return count;
}

/* What a connection would see. */
struct story {
    uint64_t digest;
    uint64_t requests;
    struct net_body_pool pool;
    struct net_collector body;
    bool open;  /* a body is being collected */
    int result; /* of the body so far */
    size_t fed; /* all bytes */
    int status; /* of a failure; 0 */
    enum net_refusal refusal;
    struct limits limits;
};

static void tell(struct story *s, const void *bytes, size_t n)
{
    s->digest = fz_digest(s->digest, bytes, n);
}

static void tell_number(struct story *s, uint64_t v)
{
    s->digest = fz_digest_u64(s->digest, v);
}

static bool inside(const struct net_head *h, const char *p, size_t n)
{
    return n == 0 || (p >= h->bytes && n <= h->len && (size_t)(p - h->bytes) <= h->len - n);
}

static void tell_head(struct story *s, const struct net_head *h)
{
    FZ_CHECK(h->len <= s->limits.head_bytes && h->count <= s->limits.headers);
    FZ_CHECK(inside(h, h->path.ptr, h->path.len) || h->path.len == 1);
    FZ_CHECK(inside(h, h->query.ptr, h->query.len));
    FZ_CHECK(!h->chunked || h->content_length == 0);
    tell(s, h->bytes, h->len);
    tell(s, h->path.ptr, h->path.len);
    tell(s, h->query.ptr, h->query.len);
    tell(s, h->fields, h->count * sizeof *h->fields);
    tell_number(s, h->method);
    tell_number(s, h->expect);
    tell_number(s, (uint64_t)h->keep_alive << 1 | h->chunked);
    tell_number(s, h->content_length);
    for (uint32_t i = 0; i < h->count; i++) {
        const struct net_field *const f = &h->fields[i];
        FZ_CHECK(f->name_len > 0 && f->name_at <= h->len && f->name_len <= h->len - f->name_at);
        FZ_CHECK(f->value_at <= h->len && f->value_len <= h->len - f->value_at);
        FZ_CHECK(!memchr(h->bytes + f->value_at, '\n', f->value_len));
        FZ_CHECK(!memchr(h->bytes + f->value_at, '\r', f->value_len));
        FZ_CHECK(!memchr(h->bytes + f->value_at, '\0', f->value_len));
    }
}

static enum net_coding coding_of(const struct net_head *h)
{
    const struct net_field *const f = net_head_find(h, "content-encoding");
    if (!f)
        return NET_CODING_IDENTITY;
    return net_coding_of((struct weir_bytes){h->bytes + f->value_at, f->value_len});
}

/* As conn.c: what is announced too large, or coded in an unknown way, is read and forgotten. */
static void on_head(struct story *s, struct net_parser *parser)
{
    struct net_head *const h = net_parser_take_head(parser);
    tell_head(s, h);
    parser->body_limit = s->limits.body_bytes;
    const enum net_coding coding = coding_of(h);
    tell_number(s, coding);
    s->open = coding != NET_CODING_UNKNOWN && h->content_length <= s->limits.body_bytes;
    s->result = NET_BODY_OK;
    if (s->open)
        net_collector_init(&s->body, &s->pool, coding, h->chunked ? UINT64_MAX : h->content_length,
                           s->limits.body_bytes);
    s->requests++;
    net_head_free(h);
}

static void on_end(struct story *s)
{
    if (s->open) {
        struct weir_bytes body = {NULL, 0};
        if (s->result == NET_BODY_OK)
            s->result = net_collector_finish(&s->body, &body);
        tell_number(s, (uint64_t)s->result);
        if (s->result == NET_BODY_OK) {
            FZ_CHECK(body.len <= s->limits.body_bytes);
            tell(s, body.ptr, body.len);
        }
        net_collector_done(&s->body);
        s->open = false;
    }
    FZ_CHECK(s->pool.used_bytes == 0);
}

static bool step(struct story *s, struct net_parser *parser, const char *bytes, size_t n,
                 size_t *taken)
{
    switch (net_parser_feed(parser, bytes, n, taken)) {
    case NET_EVENT_MORE:
        FZ_CHECK(*taken == n);
        return false;
    case NET_EVENT_HEAD:
        on_head(s, parser);
        return true;
    case NET_EVENT_BODY:
        FZ_CHECK(parser->data.len > 0 && parser->data.ptr >= bytes);
        FZ_CHECK(parser->data.ptr + parser->data.len <= bytes + n);
        if (s->open && s->result == NET_BODY_OK)
            s->result = net_collector_add(&s->body, parser->data);
        return true;
    case NET_EVENT_END:
        on_end(s);
        tell_number(s, s->fed + *taken);
        net_parser_next(parser);
        return true;
    case NET_EVENT_FAILED:
        s->status = parser->status;
        s->refusal = parser->refusal;
        FZ_CHECK(s->status >= 400 && s->status < 600 && s->refusal < NET_REFUSAL_COUNT);
        return false;
    }
    return false;
}

static void feed(struct story *s, struct net_parser *parser, const uint8_t *bytes, size_t n)
{
    size_t at = 0;
    while (!s->status) {
        size_t taken = 0;
        const bool more = step(s, parser, (const char *)bytes + at, n - at, &taken);
        FZ_CHECK(taken <= n - at);
        at += taken;
        s->fed += taken;
        if (!more)
            break;
    }
}

static struct story story_of(const struct pieces *p, const struct limits *limits)
{
    struct story s = {
        .digest = FZ_DIGEST_EMPTY, .pool = {.max_bytes = POOL_BYTES}, .limits = *limits};
    struct net_parser parser;
    net_parser_init(&parser, limits->head_bytes, limits->headers);
    for (size_t i = 0; i < p->count && !s.status; i++)
        feed(&s, &parser, p->at[i], p->len[i]);
    tell_number(&s, (uint64_t)s.status << 32 | s.refusal);
    tell_number(&s, (uint64_t)net_parser_is_idle(&parser) << 1 | net_parser_in_head(&parser));
    net_parser_done(&parser);
    if (s.open)
        net_collector_done(&s.body);
    FZ_CHECK(s.pool.used_bytes == 0);
    net_body_pool_done(&s.pool);
    return s;
}

static void parse(struct fz_in *in, const struct limits *limits, const size_t *cuts, size_t count)
{
    struct pieces whole = cut(in->at, in->left, NULL, 0);
    struct pieces parts = cut(in->at, in->left, cuts, count);
    const struct story a = story_of(&whole, limits);
    const struct story b = story_of(&parts, limits);
    FZ_CHECK(a.status == b.status && a.refusal == b.refusal);
    FZ_CHECK(a.requests == b.requests && a.digest == b.digest);
    pieces_done(&whole);
    pieces_done(&parts);
}

/* Bodies alone. */

struct collected {
    int result;
    uint8_t *bytes;
    size_t len;
};

static struct collected collect(const struct pieces *p, enum net_coding coding, uint64_t known,
                                size_t max_bytes, size_t pool_bytes)
{
    struct net_body_pool pool = {.max_bytes = pool_bytes};
    struct net_collector c;
    net_collector_init(&c, &pool, coding, known, max_bytes);
    struct collected r = {.result = NET_BODY_OK};
    for (size_t i = 0; i < p->count && r.result == NET_BODY_OK; i++) {
        if (p->len[i])
            r.result =
                net_collector_add(&c, (struct weir_bytes){(const char *)p->at[i], p->len[i]});
        FZ_CHECK(pool.used_bytes <= pool_bytes);
    }
    struct weir_bytes body = {NULL, 0};
    if (r.result == NET_BODY_OK)
        r.result = net_collector_finish(&c, &body);
    FZ_CHECK(pool.used_bytes <= pool_bytes);
    if (r.result == NET_BODY_OK) {
        FZ_CHECK(body.len <= max_bytes);
        if (known == UINT64_MAX) { /* the body stays when the pool goes */
            net_collector_detach(&c);
            FZ_CHECK(pool.used_bytes == 0);
        }
        r.bytes = fz_copy(body.ptr, body.len);
        r.len = body.len;
    } else {
        FZ_CHECK(r.result == NET_REFUSED_TOO_LARGE || r.result == NET_REFUSED_BAD_ENCODING ||
                 r.result == NET_REFUSED_MEMORY);
    }
    net_collector_done(&c);
    FZ_CHECK(pool.used_bytes == 0);
    net_body_pool_done(&pool);
    return r;
}

static void expect_same(const struct collected *a, const struct collected *b)
{
    FZ_CHECK(a->result == b->result);
    FZ_CHECK(fz_same(a->bytes, a->len, b->bytes, b->len));
}

/* Whole or in parts, its length known before or not: the same body or the same refusal. */
static struct collected body_of(const uint8_t *bytes, size_t n, enum net_coding coding,
                                size_t max_bytes, const size_t *cuts, size_t count)
{
    struct pieces whole = cut(bytes, n, NULL, 0);
    struct pieces parts = cut(bytes, n, cuts, count);
    const struct collected a = collect(&whole, coding, n, max_bytes, POOL_BYTES);
    const struct collected b = collect(&parts, coding, n, max_bytes, POOL_BYTES);
    const struct collected c = collect(&parts, coding, UINT64_MAX, max_bytes, POOL_BYTES);
    const struct collected poor = collect(&parts, coding, UINT64_MAX, max_bytes, 128 * 1024);
    expect_same(&a, &b);
    expect_same(&a, &c);
    FZ_CHECK(poor.result == a.result || poor.result == NET_REFUSED_MEMORY);
    free(b.bytes);
    free(c.bytes);
    free(poor.bytes);
    pieces_done(&whole);
    pieces_done(&parts);
    return a;
}

static uint8_t *compress_as(enum net_coding coding, const uint8_t *bytes, size_t n, size_t *ret_len)
{
    z_stream z = {0};
    const int window_bits = coding == NET_CODING_GZIP ? 15 + 16 : 15;
    FZ_CHECK(deflateInit2(&z, 6, Z_DEFLATED, window_bits, 8, Z_DEFAULT_STRATEGY) == Z_OK);
    const size_t cap = deflateBound(&z, n);
    uint8_t *const out = fz_alloc(cap);
    z.next_in = bytes;
    z.avail_in = (uInt)n;
    z.next_out = out;
    z.avail_out = (uInt)cap;
    FZ_CHECK(deflate(&z, Z_FINISH) == Z_STREAM_END);
    *ret_len = z.total_out;
    (void)deflateEnd(&z);
    return out;
}

static void round_trip(struct fz_in *in, enum net_coding coding, size_t max_bytes, size_t *cuts,
                       size_t count)
{
    size_t n;
    uint8_t *const packed = compress_as(coding, in->at, in->left, &n);
    for (size_t i = 0; i < count; i++)
        cuts[i] = cuts[i] < n ? cuts[i] : n;
    const struct collected c = body_of(packed, n, coding, max_bytes, cuts, count);
    if (in->left <= max_bytes)
        FZ_CHECK(c.result == NET_BODY_OK && fz_same(c.bytes, c.len, in->at, in->left));
    else
        FZ_CHECK(c.result == NET_REFUSED_TOO_LARGE);
    free(c.bytes);
    free(packed);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fz_in in = fz_in(data, size);
    const uint8_t what = fz_u8(&in);
    const uint8_t head = fz_u8(&in);
    const uint8_t body = fz_u8(&in);
    const struct limits limits = {.head_bytes = 64 + (size_t)(head & 0x1f) * 128,
                                  .headers = 1 + ((size_t)head >> 5),
                                  .body_bytes = (size_t)body * body};
    size_t cuts[CUTS_MAX];
    const size_t count = take_cuts(&in, cuts);
    const enum net_coding coding = (enum net_coding)(what >> 2 & 1) + NET_CODING_GZIP;
    switch (what & 3) {
    case 2:
        free(body_of(in.at, in.left, coding, limits.body_bytes, cuts, count).bytes);
        break;
    case 3:
        round_trip(&in, coding, limits.body_bytes, cuts, count);
        break;
    default:
        parse(&in, &limits, cuts, count);
        break;
    }
    return 0;
}
