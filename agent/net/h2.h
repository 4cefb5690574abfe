/* SPDX-License-Identifier: Apache-2.0 */
#ifndef AGENT_NET_H2_H
#define AGENT_NET_H2_H
/*
 * h2: HTTP/2 on a connection of conn.h, by nghttp2; its streams are requests like any other.
 *
 *   HEADERS            DATA, END_STREAM          net_respond             closed by both
 *   ------> HEAD ------> BODY ----------> HANDLING ---------> ANSWERED ----------> gone
 *                 \--- refused: answered at once; what still comes is dropped, the stream reset
 *
 * The connection keeps accepting, eviction, writing and closing to conn.c. What is bounded there a
 * connection is bounded here a stream: head, body and time; besides, the streams of a connection
 * and how often a peer may open and reset one. Bodies of all streams share the server's pool.
 *
 * Threads: the loop's. Memory: the session, and a struct h2_stream a stream.
 */
#include "net/conn.h"

#include <nghttp2/nghttp2.h>

enum {
    H2_STREAMS_MAX = 100,             /* at once on a connection */
    H2_SESSION_BYTES = 16 * 1024,     /* a session with its tables, for the account */
    H2_STREAM_WINDOW = 1024 * 1024,   /* what a peer may send ahead */
    H2_CONN_WINDOW = 4 * 1024 * 1024, /* on all streams together */
    H2_FRAME_MAX = 256 * 1024,        /* taken in as it comes, never kept */
    H2_RESETS_MAX = 200               /* in ten seconds */
};

enum h2_phase { H2_HEAD = 0, H2_BODY, H2_HANDLING, H2_ANSWERED };

struct h2_stream {
    struct net_request req; /* first: a struct net_request with is_stream is one of these */
    struct h2 *h2;          /* NULL once it is gone */
    struct h2_stream *prev;
    struct h2_stream *next;
    int32_t id;
    enum h2_phase phase;
    bool ended;        /* the peer has said all */
    bool is_grpc;      /* a unary call */
    int head_status;   /* not 0: the head is refused with this */
    size_t head_bytes; /* as the limit counts them */
    size_t target_at;  /* of the path, in head->bytes; len 0: none yet */
    size_t target_len;
    struct net_collector message; /* of a call: its message, where it was compressed */
    int64_t since_ns;
    int64_t moved_ns;
    int64_t deadline_ns; /* grpc-timeout; INT64_MAX: none */
    char *answer;        /* its body */
    size_t answer_bytes;
    size_t answer_at;
};

struct h2 {
    struct conn *conn;
    nghttp2_session *session;
    struct h2_stream *streams;
    bool inside;  /* nghttp2 is calling back: it may not be freed, nor asked to send */
    bool leaving; /* GOAWAY is sent: closed when the last stream is */
    uint32_t resets;
    int64_t resets_since_ns;
};

/* For conn.c and server.c. */
bool h2_open(struct conn *c); /* false: no memory */
void h2_read(struct conn *c, const char *bytes, size_t len);
void h2_flush(struct conn *c); /* what is to be sent, as far as the socket takes it */
void h2_sweep(struct conn *c, int64_t now_ns);
void h2_stop(struct conn *c); /* no new streams; close when the open ones are answered */
void h2_done(struct conn *c); /* its connection is closing; nothing for one of HTTP/1.1 */
void h2_answer(struct net_request *req, const struct answer *a); /* of a stream */

/* h2_stream.c: what a stream is told by the session. */
struct h2_stream *h2_stream_new(struct h2 *h2, int32_t id);
void h2_stream_free(struct h2_stream *st); /* it is gone; a service may still hold its request */
void h2_stream_field(struct h2_stream *st, struct weir_bytes name, struct weir_bytes value);
void h2_stream_head_done(struct h2_stream *st);
void h2_stream_data(struct h2_stream *st, struct weir_bytes run);
void h2_stream_end(struct h2_stream *st);
/* Late, at this time? Then it is answered so. */
void h2_stream_sweep(struct h2_stream *st, int64_t now_ns);
/* h2_answer.c */
void h2_stream_answer(struct h2_stream *st, const struct answer *a);
#endif
