/* SPDX-License-Identifier: Apache-2.0 */
/* parser: requests in any splits; shapes that two readers could understand differently. */
#include "net/parser.h"
#include "net/body.h"
#include "t.h"

#include <stdlib.h>
#include <string.h>

/* What a feed of all bytes reports, as text, with the runs of a body put together. */
struct story {
    char text[8192];
    size_t len;
    int status; /* of a failure */
};

static void tell(struct story *s, const char *bytes, size_t len)
{
    if (len > sizeof s->text - 1 - s->len)
        len = sizeof s->text - 1 - s->len;
    memcpy(s->text + s->len, bytes, len);
    s->len += len;
    s->text[s->len] = 0;
}

static void tell_text(struct story *s, const char *text)
{
    tell(s, text, strlen(text));
}

static void tell_head(struct story *s, const struct net_head *h)
{
    char line[128];
    (void)snprintf(line, sizeof line, "[method %d expect %d keep %d chunked %d length %llu ",
                   (int)h->method, (int)h->expect, h->keep_alive, h->chunked,
                   (unsigned long long)h->content_length);
    tell_text(s, line);
    tell(s, h->path.ptr, h->path.len);
    tell_text(s, "?");
    if (h->query.len)
        tell(s, h->query.ptr, h->query.len);
    for (uint32_t i = 0; i < h->count; i++) {
        tell_text(s, "|");
        tell(s, h->bytes + h->fields[i].name_at, h->fields[i].name_len);
        tell_text(s, "=");
        tell(s, h->bytes + h->fields[i].value_at, h->fields[i].value_len);
    }
    tell_text(s, "]");
}

static bool step(struct net_parser *p, struct story *s, const char *bytes, size_t len,
                 size_t *taken)
{
    switch (net_parser_feed(p, bytes, len, taken)) {
    case NET_EVENT_MORE:
        return false;
    case NET_EVENT_HEAD: {
        struct net_head *const h = net_parser_take_head(p);
        tell_head(s, h);
        net_head_free(h);
        p->body_limit = 1000;
        return true;
    }
    case NET_EVENT_BODY:
        tell(s, p->data.ptr, p->data.len);
        return true;
    case NET_EVENT_END:
        tell_text(s, "[end]");
        net_parser_next(p);
        return true;
    case NET_EVENT_FAILED:
        s->status = p->status;
        tell_text(s, "[failed]");
        return false;
    }
    return false;
}

/* Each piece stands against a guard page: a parser that looks ahead faults. */
static void feed(struct net_parser *p, struct story *s, const char *bytes, size_t len)
{
    const struct t_guard g = t_guard_new(bytes, len);
    struct t_guard guard = g;
    size_t at = 0;
    while (!s->status) {
        size_t taken = 0;
        const bool more = step(p, s, (const char *)g.ptr + at, len - at, &taken);
        at += taken;
        if (!more)
            break;
    }
    if (!s->status)
        T_EQ_U64(at, len);
    t_guard_free(&guard);
}

static struct story story_of(const char *text, size_t len, size_t cut)
{
    struct net_parser p;
    net_parser_init(&p, 4096, 20);
    struct story s = {.len = 0};
    feed(&p, &s, text, cut);
    if (!s.status && cut < len)
        feed(&p, &s, text + cut, len - cut);
    net_parser_done(&p);
    return s;
}

static const char *const good[] = {
    "GET / HTTP/1.1\r\nHost: a\r\n\r\n",
    "\r\n\r\nGET /x?y=%20&z HTTP/1.1\r\nhOsT: \t a b \t\r\nEmpty:\r\nX-Y: caf\xc3\xa9\r\n\r\n",
    "PUT /v0.4/traces HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhelloGET / "
    "HTTP/1.1\r\nHost: b\r\nConnection: x, Close\r\n\r\n",
    "POST http://a:1/v1 HTTP/1.1\r\nHost: a:1\r\nTransfer-Encoding: Chunked\r\nExpect: "
    "100-continue\r\n\r\n003\r\nabc\r\nB;q=\"\t;\"\r\n0123456789x\r\n0\r\nTrail: er\r\n\r\n",
    "OPTIONS * HTTP/1.0\r\n\r\n",
    "HEAD http://a HTTP/1.1\r\nHost: a\r\nExpect: magic\r\n\r\n",
};

TEST(a_split_at_any_byte_gives_the_same_events)
{
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        const size_t len = strlen(good[i]);
        const struct story whole = story_of(good[i], len, len);
        T_EQ_I64(whole.status, 0);
        for (size_t cut = 0; cut <= len; cut++) {
            const struct story s = story_of(good[i], len, cut);
            T_EQ_STR(s.text, whole.text);
        }
    }
}

TEST(a_byte_at_a_time_gives_the_same_events)
{
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        const size_t len = strlen(good[i]);
        struct net_parser p;
        net_parser_init(&p, 4096, 20);
        struct story s = {.len = 0};
        for (size_t at = 0; at < len; at++)
            feed(&p, &s, good[i] + at, 1);
        feed(&p, &s, "", 0);
        T_EQ_STR(s.text, story_of(good[i], len, len).text);
        net_parser_done(&p);
    }
}

TEST(a_head_says_what_was_sent)
{
    const struct story s = story_of(good[3], strlen(good[3]), 40);
    T_EQ_STR(s.text, "[method 3 expect 1 keep 1 chunked 1 length 0 /v1?|Host=a:1"
                     "|Transfer-Encoding=Chunked|Expect=100-continue]abc0123456789x[end]");
    const struct story t = story_of(good[1], strlen(good[1]), 3);
    T_EQ_STR(t.text, "[method 1 expect 0 keep 1 chunked 0 length 0 /x?y=%20&z|hOsT=a b|Empty="
                     "|X-Y=caf\xc3\xa9][end]");
    const struct story u = story_of(good[2], strlen(good[2]), 1);
    T_EQ_STR(u.text, "[method 4 expect 0 keep 1 chunked 0 length 5 /v0.4/traces?|Host=a"
                     "|Content-Length=5]hello[end]"
                     "[method 1 expect 0 keep 0 chunked 0 length 0 /?|Host=b"
                     "|Connection=x, Close][end]");
}

#define LINE "POST / HTTP/1.1\r\n"
#define HOST "Host: a\r\n"
#define CHUNKED LINE HOST "Transfer-Encoding: chunked\r\n\r\n"

static const struct {
    const char *text;
    int status;
} bad[] = {
    {" GET / HTTP/1.1\r\n", 400},
    {"\nGET / HTTP/1.1\r\n", 400},
    {"\r\n\r\n\r\n\r\n\r\n", 400},
    {"GET  / HTTP/1.1\r\n", 400},
    {"GET / HTTP/1.1\n", 400},
    {"GET / HTTP/1.1 \r\n", 400},
    {"GET /\r\n", 400},
    {"GET / http/1.1\r\n", 400},
    {"GET / HTTP/2.0\r\n", 505},
    {"GET / HTTP/1.10\r\n", 400},
    {"GET /\x7f HTTP/1.1\r\n", 400},
    {"GET x HTTP/1.1\r\nHost: a\r\n\r\n", 400},
    {"GET * HTTP/1.1\r\nHost: a\r\n\r\n", 400},
    {"CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n", 400},
    {"GET http:///x HTTP/1.1\r\nHost: a\r\n\r\n", 400},
    {"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", 400},
    {LINE "\r\n", 400}, /* no Host */
    {LINE HOST HOST "\r\n", 400},
    {LINE HOST " folded: 1\r\n", 400},
    {LINE HOST "A: b\r\n c\r\n\r\n", 400},
    {LINE HOST "A : b\r\n\r\n", 400},
    {LINE HOST ": b\r\n\r\n", 400},
    {LINE HOST "A\r\n\r\n", 400},
    {LINE HOST "A: b\rc\r\n\r\n", 400},
    {LINE HOST "A: b\n\r\n", 400},
    {LINE HOST "A: b\x01\r\n\r\n", 400},
    {LINE HOST "Content-Length: 1\r\nContent-Length: 1\r\n\r\n", 400},
    {LINE HOST "Content-Length: 1, 1\r\n\r\n", 400},
    {LINE HOST "Content-Length: +1\r\n\r\n", 400},
    {LINE HOST "Content-Length:\r\n\r\n", 400},
    {LINE HOST "Content-Length: 18446744073709551616\r\n\r\n", 400},
    {LINE HOST "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", 400},
    {LINE HOST "Transfer-Encoding: gzip, chunked\r\n\r\n", 400},
    {LINE HOST "Transfer-Encoding: chunked, gzip\r\n\r\n", 400},
    {LINE HOST "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n", 400},
    {LINE HOST "Transfer-Encoding: identity\r\n\r\n", 400},
    {"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", 400},
    {CHUNKED "\r\n", 400},
    {CHUNKED "x\r\n", 400},
    {CHUNKED "-1\r\n", 400},
    {CHUNKED "1 \r\n", 400},
    {CHUNKED "1\n", 400},
    {CHUNKED "00000000000000001\r\n", 400}, /* 17 digits */
    {CHUNKED "1\r\nab", 400},
    {CHUNKED "1\r\na\n", 400},
    {CHUNKED "1;\x01\r\n", 400},
    {CHUNKED "3e9\r\n", 413}, /* 1001 */
    {CHUNKED "ffffffffffffffff\r\n", 413},
    {CHUNKED "0\r\n: x\r\n\r\n", 400},
    {CHUNKED "0\r\nA: \x7f\r\n\r\n", 400},
};

TEST(an_ambiguous_or_broken_request_is_refused_at_any_split)
{
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        const size_t len = strlen(bad[i].text);
        for (size_t cut = 0; cut <= len; cut++) {
            const struct story s = story_of(bad[i].text, len, cut);
            if (s.status != bad[i].status)
                T_FAIL("case %zu cut at %zu: %d, want %d", i, cut, s.status, bad[i].status);
        }
    }
}

static struct story story_of_run(const char *before, char fill, size_t times, const char *after)
{
    const size_t len = strlen(before) + times + strlen(after);
    char *const text = malloc(len + 1);
    memcpy(text, before, strlen(before));
    memset(text + strlen(before), fill, times);
    memcpy(text + strlen(before) + times, after, strlen(after) + 1);
    const struct story s = story_of(text, len, len);
    free(text);
    return s;
}

TEST(what_passes_a_bound_is_refused_and_what_reaches_it_is_not)
{
    const size_t rest = strlen("GET / HTTP/1.1\r\nHost: a\r\nX: \r\n\r\n");
    const char *const before = "GET / HTTP/1.1\r\nHost: a\r\nX: ";
    T_EQ_I64(story_of_run(before, 'x', 4096 - rest, "\r\n\r\n").status, 0);
    T_EQ_I64(story_of_run(before, 'x', 4097 - rest, "\r\n\r\n").status, 431);
    T_EQ_I64(story_of_run("GET /", 'x', 5000, " HTTP/1.1\r\n").status, 414);
    T_EQ_I64(story_of_run(CHUNKED "1;", 'x', 17000, "\r\n").status, 400);
    T_EQ_I64(story_of_run(CHUNKED "0\r\nA: ", 'x', 5000, "\r\n\r\n").status, 431);
    T_EQ_I64(story_of_run(CHUNKED "3e8\r\n", 'x', 1000, "\r\n0\r\n\r\n").status, 0);
    T_EQ_I64(story_of_run(CHUNKED "3e8\r\n", 'x', 1000, "\r\n1\r\n").status, 413);
}

TEST(fields_are_counted)
{
    char text[1024] = "GET / HTTP/1.1\r\nHost: a\r\n";
    for (int i = 0; i < 19; i++)
        strcat(text, "A: b\r\n");
    char more[1100];
    (void)snprintf(more, sizeof more, "%s\r\n", text);
    T_EQ_I64(story_of(more, strlen(more), 10).status, 0);
    (void)snprintf(more, sizeof more, "%sA: b\r\n\r\n", text);
    T_EQ_I64(story_of(more, strlen(more), 10).status, 431);
}

/* Noise: mutations of right requests never fault, and never take more than was fed. */
TEST(mutated_requests_are_parsed_or_refused)
{
    struct t_rng r = t_rng(t_seed());
    unsigned refused = 0;
    for (int round = 0; round < 20000; round++) {
        const char *const from = good[t_below(&r, sizeof good / sizeof *good)];
        char text[512];
        const size_t len = strlen(from);
        memcpy(text, from, len);
        for (uint64_t n = t_below(&r, 4); n > 0; n--)
            text[t_below(&r, len)] = (char)t_below(&r, 256);
        struct net_parser p;
        net_parser_init(&p, 4096, 20);
        struct story s = {.len = 0};
        const size_t cut = t_below(&r, len + 1);
        size_t at = 0;
        while (at < len && !s.status) {
            size_t taken = 0;
            const size_t end = at < cut ? cut : len;
            const bool more = step(&p, &s, text + at, end - at, &taken);
            T_TRUE(taken <= end - at);
            at += taken;
            if (!more && !s.status)
                T_EQ_U64(at, end);
        }
        refused += s.status != 0;
        net_parser_done(&p);
    }
    T_TRUE(refused > 1000 && refused < 19000);
}

/* Bodies, without a socket. */

static int collect(enum net_coding coding, const uint8_t *sent, size_t len, size_t piece,
                   bool known, size_t max, size_t *ret_len)
{
    struct net_body_pool pool = {.max_bytes = 64 << 20};
    struct net_collector c;
    net_collector_init(&c, &pool, coding, known ? len : UINT64_MAX, max);
    int r = NET_BODY_OK;
    for (size_t at = 0; at < len && r == NET_BODY_OK; at += piece) {
        const size_t n = len - at < piece ? len - at : piece;
        r = net_collector_add(&c, (struct weir_bytes){(const char *)sent + at, n});
    }
    struct weir_bytes body = {NULL, 0};
    if (r == NET_BODY_OK)
        r = net_collector_finish(&c, &body);
    *ret_len = body.len;
    net_collector_done(&c);
    T_EQ_U64(pool.used_bytes, 0);
    net_body_pool_done(&pool);
    return r;
}

static size_t zip(int window_bits, size_t len, uint8_t *dst, size_t cap)
{
    uint8_t *const zeros = calloc(1, len + 1);
    z_stream z = {0};
    T_OK(deflateInit2(&z, 6, Z_DEFLATED, window_bits, 8, Z_DEFAULT_STRATEGY));
    z.next_in = zeros;
    z.avail_in = (uInt)len;
    z.next_out = dst;
    z.avail_out = (uInt)cap;
    T_EQ_I64(deflate(&z, Z_FINISH), Z_STREAM_END);
    (void)deflateEnd(&z);
    free(zeros);
    return cap - z.avail_out;
}

TEST(the_decoded_limit_holds_to_the_byte_streamed_or_whole)
{
    uint8_t zipped[4096];
    const size_t n = zip(15 + 16, 100000, zipped, sizeof zipped);
    size_t len;
    for (int known = 0; known < 2; known++)
        for (size_t piece = 1; piece <= n; piece += piece < 20 ? 1 : 50) {
            T_EQ_I64(collect(NET_CODING_GZIP, zipped, n, piece, known, 100000, &len), NET_BODY_OK);
            T_EQ_U64(len, 100000);
            T_EQ_I64(collect(NET_CODING_GZIP, zipped, n, piece, known, 99999, &len),
                     NET_REFUSED_TOO_LARGE);
        }
}

TEST(a_cut_or_doubled_stream_is_judged_alike_streamed_or_whole)
{
    uint8_t zipped[8192];
    const size_t n = zip(15 + 16, 1000, zipped, 4096);
    memcpy(zipped + n, zipped, n);
    size_t len;
    for (int known = 0; known < 2; known++) {
        T_EQ_I64(collect(NET_CODING_GZIP, zipped, 2 * n, 7, known, 5000, &len), NET_BODY_OK);
        T_EQ_U64(len, 2000); /* two members */
        for (size_t cut = 1; cut < n; cut++)
            T_EQ_I64(collect(NET_CODING_GZIP, zipped, cut, 7, known, 5000, &len),
                     NET_REFUSED_BAD_ENCODING);
        T_EQ_I64(collect(NET_CODING_GZIP, zipped, 0, 7, known, 5000, &len), NET_BODY_OK);
        T_EQ_U64(len, 0);
    }
    const size_t m = zip(15, 1000, zipped, 4096);
    T_EQ_I64(collect(NET_CODING_DEFLATE, zipped, m, 5, true, 5000, &len), NET_BODY_OK);
    T_EQ_U64(len, 1000);
    zipped[m] = 0;
    T_EQ_I64(collect(NET_CODING_DEFLATE, zipped, m + 1, 5, true, 5000, &len),
             NET_REFUSED_BAD_ENCODING); /* only gzip has members */
}

/* Stored blocks: as many bytes sent as decoded, so that a body is past what is kept whole. */
static uint8_t *zip_stored(size_t len, size_t *ret_len)
{
    const size_t cap = len + len / 1000 + 1024;
    uint8_t *const dst = malloc(cap);
    uint8_t *const text = malloc(len);
    T_TRUE(dst && text);
    for (size_t i = 0; i < len; i++)
        text[i] = (uint8_t)(i * 2654435761u >> 24);
    z_stream z = {0};
    T_OK(deflateInit2(&z, 0, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY));
    z.next_in = text;
    z.avail_in = (uInt)len;
    z.next_out = dst;
    z.avail_out = (uInt)cap;
    T_EQ_I64(deflate(&z, Z_FINISH), Z_STREAM_END);
    *ret_len = cap - z.avail_out;
    (void)deflateEnd(&z);
    free(text);
    return dst;
}

TEST(gzip_that_turns_out_longer_than_is_kept_whole_streams_on)
{
    const size_t size = 3 << 20;
    size_t n;
    uint8_t *const zipped = zip_stored(size, &n);
    static const size_t pieces[] = {1000, 65536, (1 << 20) + 1, 4 << 20};
    for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
        for (int known = 0; known < 2; known++) {
            size_t len;
            T_EQ_I64(collect(NET_CODING_GZIP, zipped, n, pieces[i], known, size, &len),
                     NET_BODY_OK);
            T_EQ_U64(len, size);
            T_EQ_I64(collect(NET_CODING_GZIP, zipped, n, pieces[i], known, size - 1, &len),
                     NET_REFUSED_TOO_LARGE);
            T_EQ_I64(collect(NET_CODING_GZIP, zipped, n - 1, pieces[i], known, size, &len),
                     NET_REFUSED_BAD_ENCODING);
        }
    }
    free(zipped);
}

/* Case S13: a bomb is refused by what it says of itself, and a claim that cannot be true is not
 * believed in either direction. */
TEST(a_bomb_is_refused_undecoded_and_a_false_claim_is_found_out)
{
    uint8_t zipped[4096];
    size_t len;
    const size_t n = zip(15 + 16, 1000000, zipped, sizeof zipped);
    for (int known = 0; known < 2; known++) {
        const size_t limit = 100000;
        zipped[n / 2] ^= 0xff; /* nobody looks there any more */
        T_EQ_I64(collect(NET_CODING_GZIP, zipped, n, n, known, limit, &len), NET_REFUSED_TOO_LARGE);
        zipped[n / 2] ^= 0xff;
        T_EQ_I64(collect(NET_CODING_GZIP, zipped, n, n, known, 1000000, &len), NET_BODY_OK);
        T_EQ_U64(len, 1000000);
        uint8_t *const claim = zipped + n - 4;
        uint8_t kept[4];
        memcpy(kept, claim, sizeof kept);
        memset(claim, 0xff, sizeof kept); /* 4 GiB, of a thousand bytes */
        T_EQ_I64(collect(NET_CODING_GZIP, zipped, n, n, known, 1000000, &len),
                 NET_REFUSED_BAD_ENCODING);
        memset(claim, 0, sizeof kept);
        T_EQ_I64(collect(NET_CODING_GZIP, zipped, n, n, known, limit, &len), NET_REFUSED_TOO_LARGE);
        T_EQ_I64(collect(NET_CODING_GZIP, zipped, n, n, known, 1000000, &len),
                 NET_REFUSED_BAD_ENCODING);
        memcpy(claim, kept, sizeof kept);
    }
}

TEST(codings_are_known_in_any_case)
{
    T_EQ_U64(net_coding_of((struct weir_bytes){" GZip ", 6}), NET_CODING_GZIP);
    T_EQ_U64(net_coding_of((struct weir_bytes){"identity", 8}), NET_CODING_IDENTITY);
    T_EQ_U64(net_coding_of((struct weir_bytes){NULL, 0}), NET_CODING_IDENTITY);
    T_EQ_U64(net_coding_of((struct weir_bytes){"gzip, gzip", 10}), NET_CODING_UNKNOWN);
    T_EQ_U64(net_coding_of((struct weir_bytes){"br", 2}), NET_CODING_UNKNOWN);
}
