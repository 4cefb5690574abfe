/* SPDX-License-Identifier: Apache-2.0 */
/* body: see body.h. */
#include "net/body.h"

#include "net/text.h"

#include <libdeflate.h>
#include <stdlib.h>
#include <string.h>

enum {
    FIRST_BYTES = 64 * 1024,         /* what a Content-Length alone may make us allocate */
    STREAM_BYTES = 48 * 1024,        /* zlib's window and state, for the account */
    WHOLE_MAX_BYTES = 1024 * 1024,   /* longer compressed bodies stream: both copies would live */
    DEFLATE_RATIO_MAX = 1032,        /* of deflate: zlib technical details, maximum compression */
    GZIP_SMALLEST_BYTES = 10 + 2 + 8 /* header, empty block, trailer */
};

/* The pool: an account of bytes, and the one decompressor. */

void net_body_pool_done(struct net_body_pool *pool)
{
    libdeflate_free_decompressor(pool->fast);
    pool->fast = NULL;
}

bool net_body_pool_take(struct net_body_pool *pool, size_t bytes)
{
    if (bytes > pool->max_bytes - pool->used_bytes)
        return false;
    pool->used_bytes += bytes;
    return true;
}

void net_body_pool_give(struct net_body_pool *pool, size_t bytes)
{
    pool->used_bytes -= bytes;
}

static bool buf_resize(struct net_body_pool *pool, struct net_body_buf *b, size_t cap)
{
    if (!net_body_pool_take(pool, cap - b->cap))
        return false;
    /* cap is not 0, which the analyser does not see: it takes 2 * cap for one that wraps. */
    /* NOLINTNEXTLINE(clang-analyzer-optin.portability.UnixAPI) */
    char *const grown = realloc(b->bytes, cap);
    if (!grown) {
        net_body_pool_give(pool, cap - b->cap);
        return false;
    }
    b->bytes = grown;
    b->cap = cap;
    return true;
}

/* Room for more bytes, at most limit in all: the double of what is there, and no claim counts. */
static bool buf_grow(struct net_body_pool *pool, struct net_body_buf *b, size_t more, size_t limit)
{
    if (more <= b->cap - b->len)
        return true;
    size_t cap = b->cap > FIRST_BYTES / 2 ? 2 * b->cap : FIRST_BYTES;
    if (cap > limit)
        cap = limit;
    if (cap < b->len + more)
        cap = b->len + more;
    return buf_resize(pool, b, cap);
}

static void buf_done(struct net_body_pool *pool, struct net_body_buf *b)
{
    free(b->bytes);
    if (pool)
        net_body_pool_give(pool, b->cap);
    memset(b, 0, sizeof *b);
}

enum net_coding net_coding_of(struct weir_bytes value)
{
    const struct weir_bytes v = net_text_trim(value);
    if (v.len == 0 || net_text_is(v, "identity"))
        return NET_CODING_IDENTITY;
    if (net_text_is(v, "gzip") || net_text_is(v, "x-gzip"))
        return NET_CODING_GZIP;
    return net_text_is(v, "deflate") ? NET_CODING_DEFLATE : NET_CODING_UNKNOWN;
}

void net_collector_init(struct net_collector *c, struct net_body_pool *pool, enum net_coding coding,
                        uint64_t known_bytes, size_t max_bytes)
{
    *c = (struct net_collector){
        .pool = pool, .coding = coding, .known_bytes = known_bytes, .max_bytes = max_bytes};
}

/* Streaming. */

static bool stream_open(struct net_collector *c)
{
    if (c->stream)
        return true;
    if (!net_body_pool_take(c->pool, STREAM_BYTES))
        return false;
    c->stream = calloc(1, sizeof *c->stream);
    const int window_bits = c->coding == NET_CODING_GZIP ? 15 + 16 : 15;
    if (c->stream && inflateInit2(c->stream, window_bits) == Z_OK)
        return true;
    free(c->stream);
    c->stream = NULL;
    net_body_pool_give(c->pool, STREAM_BYTES);
    return false;
}

static void stream_close(struct net_collector *c)
{
    if (!c->stream)
        return;
    (void)inflateEnd(c->stream);
    free(c->stream);
    c->stream = NULL;
    net_body_pool_give(c->pool, STREAM_BYTES);
}

/* One byte past the limit is room enough to see that there is more. */
static int stream_room(struct net_collector *c)
{
    if (c->out.len > c->max_bytes)
        return NET_REFUSED_TOO_LARGE;
    return buf_grow(c->pool, &c->out, 1, c->max_bytes + 1) ? NET_BODY_OK : NET_REFUSED_MEMORY;
}

/* A stream may have ended with bytes left: for gzip another member follows (RFC 1952 §2.2). */
static int stream_member(struct net_collector *c)
{
    if (c->member_open)
        return NET_BODY_OK;
    if (c->at_least_one) {
        if (c->coding != NET_CODING_GZIP || inflateReset(c->stream) != Z_OK)
            return NET_REFUSED_BAD_ENCODING;
    }
    c->member_open = true;
    c->at_least_one = true;
    return NET_BODY_OK;
}

static int stream_step(struct net_collector *c)
{
    int r = stream_member(c);
    if (r == NET_BODY_OK)
        r = stream_room(c);
    if (r != NET_BODY_OK)
        return r;
    z_stream *const z = c->stream;
    const size_t room = c->out.cap - c->out.len;
    z->next_out = (Bytef *)c->out.bytes + c->out.len;
    z->avail_out = room > UINT32_MAX ? UINT32_MAX : (uInt)room;
    const uInt before = z->avail_out;
    const int state = inflate(z, Z_NO_FLUSH);
    c->out.len += before - z->avail_out;
    if (state == Z_STREAM_END) {
        c->member_open = false;
        return NET_BODY_OK;
    }
    if (state == Z_MEM_ERROR)
        return NET_REFUSED_MEMORY;
    /* Z_BUF_ERROR: no progress for want of input or room, which the caller looks after. */
    return state == Z_OK || state == Z_BUF_ERROR ? NET_BODY_OK : NET_REFUSED_BAD_ENCODING;
}

static int stream_add(struct net_collector *c, struct weir_bytes run)
{
    if (!stream_open(c))
        return NET_REFUSED_MEMORY;
    while (run.len) {
        z_stream *const z = c->stream;
        const uInt part = run.len > UINT32_MAX ? UINT32_MAX : (uInt)run.len;
        z->next_in = (const Bytef *)run.ptr;
        z->avail_in = part;
        do {
            const int r = stream_step(c);
            if (r != NET_BODY_OK)
                return r;
        } while (z->avail_in || (c->member_open && z->avail_out == 0));
        run.ptr += part;
        run.len -= part;
    }
    return c->out.len > c->max_bytes ? NET_REFUSED_TOO_LARGE : NET_BODY_OK;
}

static int stream_finish(struct net_collector *c, struct weir_bytes *ret_body)
{
    stream_close(c);
    if (c->member_open)
        return NET_REFUSED_BAD_ENCODING; /* cut */
    *ret_body = (struct weir_bytes){c->out.bytes, c->out.len};
    return NET_BODY_OK;
}

/* Whole. */

/* The size that the trailer of the last member claims for it; 0 for what is no gzip. */
static size_t claim_of(struct weir_bytes sent)
{
    static const unsigned char magic[] = {0x1f, 0x8b, 8}; /* RFC 1952 §2.3.1: deflate */
    if (sent.len < GZIP_SMALLEST_BYTES || memcmp(sent.ptr, magic, sizeof magic) != 0)
        return 0;
    const unsigned char *const t = (const unsigned char *)sent.ptr + sent.len - 4;
    return (size_t)t[0] | (size_t)t[1] << 8 | (size_t)t[2] << 16 | (size_t)t[3] << 24;
}

/* True for a body that is too large, or else broken, by what its own end says. Decoding a bomb up
 * to the limit to know which would cost what the bomb is meant to cost. */
static bool is_bomb(const struct net_collector *c, struct weir_bytes sent)
{
    const size_t claim = claim_of(sent);
    return claim > c->max_bytes && claim <= DEFLATE_RATIO_MAX * sent.len;
}

/* True when libdeflate made exactly one member of all the bytes; else zlib decides what is wrong.
 */
static bool inflate_whole(struct net_collector *c, struct weir_bytes sent)
{
    const size_t claim = claim_of(sent);
    if (claim > c->max_bytes || claim > DEFLATE_RATIO_MAX * sent.len)
        return false;
    if (!c->pool->fast)
        c->pool->fast = libdeflate_alloc_decompressor();
    if (!c->pool->fast || !buf_grow(c->pool, &c->out, claim + 1, claim + 1))
        return false;
    size_t taken = 0;
    size_t made = 0;
    const enum libdeflate_result r = libdeflate_gzip_decompress_ex(
        c->pool->fast, sent.ptr, sent.len, c->out.bytes, claim, &taken, &made);
    if (r != LIBDEFLATE_SUCCESS || taken != sent.len)
        return false;
    c->out.len = made;
    return true;
}

static bool is_streaming(const struct net_collector *c)
{
    if (c->coding != NET_CODING_GZIP)
        return c->coding == NET_CODING_DEFLATE;
    return c->stream || (c->known_bytes > WHOLE_MAX_BYTES && c->known_bytes != UINT64_MAX);
}

/* A gzip body of unknown length is more than is kept. */
static int stream_from_here(struct net_collector *c, struct weir_bytes run)
{
    int r = stream_add(c, (struct weir_bytes){c->in.bytes, c->in.len});
    buf_done(c->pool, &c->in);
    if (r == NET_BODY_OK)
        r = stream_add(c, run);
    return r;
}

int net_collector_add(struct net_collector *c, struct weir_bytes run)
{
    if (is_streaming(c))
        return stream_add(c, run);
    if (run.len == c->known_bytes) {
        c->borrowed = run;
        return NET_BODY_OK;
    }
    if (c->coding == NET_CODING_IDENTITY && run.len > c->max_bytes - c->in.len)
        return NET_REFUSED_TOO_LARGE;
    if (c->coding == NET_CODING_GZIP && run.len > WHOLE_MAX_BYTES - c->in.len)
        return stream_from_here(c, run);
    const size_t limit = c->known_bytes < SIZE_MAX ? (size_t)c->known_bytes : SIZE_MAX;
    if (!buf_grow(c->pool, &c->in, run.len, limit))
        return NET_REFUSED_MEMORY;
    memcpy(c->in.bytes + c->in.len, run.ptr, run.len);
    c->in.len += run.len;
    return NET_BODY_OK;
}

int net_collector_finish(struct net_collector *c, struct weir_bytes *ret_body)
{
    if (is_streaming(c))
        return stream_finish(c, ret_body);
    const struct weir_bytes sent =
        c->borrowed.len ? c->borrowed : (struct weir_bytes){c->in.bytes, c->in.len};
    if (c->coding == NET_CODING_IDENTITY) {
        *ret_body = sent;
        return sent.len > c->max_bytes ? NET_REFUSED_TOO_LARGE : NET_BODY_OK;
    }
    if (is_bomb(c, sent))
        return NET_REFUSED_TOO_LARGE;
    if (inflate_whole(c, sent)) {
        *ret_body = (struct weir_bytes){c->out.bytes, c->out.len};
        return NET_BODY_OK;
    }
    const int r = stream_add(c, sent);
    return r == NET_BODY_OK ? stream_finish(c, ret_body) : r;
}

void net_collector_done(struct net_collector *c)
{
    stream_close(c);
    buf_done(c->pool, &c->in);
    buf_done(c->pool, &c->out);
    c->borrowed = (struct weir_bytes){NULL, 0};
}

void net_collector_detach(struct net_collector *c)
{
    net_body_pool_give(c->pool, c->in.cap + c->out.cap);
    c->pool = NULL; /* no stream is open after finish */
}
