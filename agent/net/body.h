/* SPDX-License-Identifier: Apache-2.0 */
#ifndef AGENT_NET_BODY_H
#define AGENT_NET_BODY_H
/*
 * body: the body of a request, collected and decoded under limits.
 *
 * Memory follows what has really come: nothing is allocated by a Content-Length beyond its first
 * 64 KiB, nor by the size a gzip trailer claims beyond what deflate can make of the bytes that are
 * there. A body that comes whole in one piece is not copied. gzip of a moderate size is kept until
 * its end and then inflated at once by libdeflate, or refused undecoded where its trailer says
 * that it is too large; everything else, and whatever libdeflate refuses, streams through zlib.
 *
 * Threads: none inside. All bodies of a server share one net_body_pool.
 */
#include "net/http.h"

#define ZLIB_CONST
#include <zlib.h>

struct libdeflate_decompressor;

struct net_body_pool {
    size_t used_bytes;
    size_t max_bytes;
    struct libdeflate_decompressor *fast; /* made at first use */
};
void net_body_pool_done(struct net_body_pool *pool);
/* The account: false past max_bytes. */
bool net_body_pool_take(struct net_body_pool *pool, size_t bytes);
void net_body_pool_give(struct net_body_pool *pool, size_t bytes);

enum net_coding {
    NET_CODING_IDENTITY = 0,
    NET_CODING_GZIP,
    NET_CODING_DEFLATE, /* the zlib format: RFC 9110 §8.4.1.2 */
    NET_CODING_UNKNOWN
};
/* Of a Content-Encoding value; empty is identity. Several codings at once are not supported. */
enum net_coding net_coding_of(struct weir_bytes value);

#define NET_BODY_OK (-1)
/* A result is NET_BODY_OK or an enum net_refusal: TOO_LARGE, BAD_ENCODING, MEMORY. */

struct net_body_buf {
    char *bytes;
    size_t len;
    size_t cap;
};

struct net_collector {
    struct net_body_pool *pool; /* NULL once detached */
    enum net_coding coding;
    size_t max_bytes;       /* decoded */
    uint64_t known_bytes;   /* as sent; UINT64_MAX when not announced */
    struct net_body_buf in; /* as sent, where it is kept */
    struct net_body_buf out;
    struct weir_bytes borrowed; /* the whole body as sent, when it came in one piece */
    z_stream *stream;
    bool member_open; /* in the middle of a gzip member or zlib stream */
    bool at_least_one;
};

void net_collector_init(struct net_collector *c, struct net_body_pool *pool, enum net_coding coding,
                        uint64_t known_bytes, size_t max_bytes);
/* A run of the body as sent. It must stay readable until net_collector_done if it is the whole. */
int net_collector_add(struct net_collector *c, struct weir_bytes run);
/* After the last run: *ret_body is the decoded body, borrowed until net_collector_done. */
int net_collector_finish(struct net_collector *c, struct weir_bytes *ret_body);
void net_collector_done(struct net_collector *c);
/* After finish: the body stays readable, but the pool may go before it. */
void net_collector_detach(struct net_collector *c);
#endif
