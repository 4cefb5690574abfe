/* SPDX-License-Identifier: Apache-2.0 */
#ifndef AGENT_NET_CONN_H
#define AGENT_NET_CONN_H
/*
 * conn: what the files of this room share: the server, a connection, an open request.
 *
 *            first byte        head complete      body complete        answered
 *   IDLE ------------> HEAD ------------> BODY ------------> HANDLING ---------> IDLE
 *     |                  |                  |                               \--> FLUSHING -> IDLE
 *     |                  +---- refused -----+---- refused ----+                     |
 *     v                                                       v                     v
 *   closed <------------------------------------------ LINGERING <--- close after the answer
 *
 * One request is open on a connection at a time; while it is being handled, or while an answer has
 * not gone out whole, nothing more is read or parsed, so that pipelined requests are answered in
 * order and a peer that does not read is not worked for.
 *
 * Memory: an idle connection is a struct conn and nothing else. All connections read into one
 * buffer of the server; where bytes of it must stay (a pipelined request that waits, a borrowed
 * body whose answer comes later) the connection keeps that buffer and the server makes another.
 *
 * Threads: the loop's.
 */
#include "net/body.h"
#include "net/http.h"
#include "net/parser.h"

enum conn_phase {
    CONN_IDLE = 0,
    CONN_HEAD,
    CONN_BODY,
    CONN_HANDLING,
    CONN_FLUSHING,
    CONN_LINGERING
};

/* What a connection waits for that may be closed to make room; each kind is a list. */
enum conn_wait {
    CONN_WAIT_NONE = 0,
    CONN_WAIT_FRESH, /* for its first request */
    CONN_WAIT_HEAD,  /* for the rest of a head */
    CONN_WAIT_NEXT,  /* for another request */
    CONN_WAIT_COUNT
};

struct conn {
    union {
        uv_handle_t handle;
        uv_stream_t stream;
        uv_tcp_t tcp;
        uv_pipe_t pipe;
    } h;
    struct net_server *server;
    struct conn *prev;
    struct conn *next;
    enum conn_wait wait;
    struct conn *wait_prev;
    struct conn *wait_next;
    struct net_parser parser;
    struct net_request *req; /* from its head to its answer; of HTTP/2 see h2.h */
    struct h2 *h2;           /* the connection speaks HTTP/2: all below up to unwritten is unused */
    const char *in;          /* the bytes being parsed: the server's buffer, or held */
    size_t in_len;
    size_t in_at;
    char *held;       /* a reading buffer kept over a wait; in points into it */
    size_t unwritten; /* answers handed to libuv and not finished */
    size_t queued;    /* bytes in its queue when the sweep last looked */
    enum conn_phase phase;
    bool running; /* inside conn_run */
    bool reading;
    bool closing;
    bool ended;       /* the peer closed its side */
    bool close_after; /* the next answer is the last */
    bool served;      /* a request of it was answered */
    int64_t since_ns; /* the phase began */
    int64_t moved_ns; /* bytes last came or went */
    uv_shutdown_t shutdown;
};

struct net_request {
    struct conn *conn; /* NULL once the connection is gone */
    struct net_head *head;
    struct net_route route;
    struct net_collector body;
    bool drain;
    int refuse_status;
    const char *refuse_text;
    uint64_t drain_left; /* of a refused request: more than this is not waited for */
    char *kept;          /* the reading buffer a borrowed body is in, once conn is gone */
    struct weir_bytes decoded;
    uint64_t wire_bytes;
    bool is_stream; /* of HTTP/2: it begins a struct h2_stream */
};

struct listener;

struct net_server {
    uv_loop_t *loop;
    struct net_service service;
    struct net_limits limits;
    struct net_counts counts;
    struct net_body_pool pool;
    struct conn *conns;
    struct {
        struct conn *first; /* waits longest */
        struct conn *last;
    } waits[CONN_WAIT_COUNT];
    struct listener *listeners;
    char *read_buf; /* shared; NULL after a connection kept it */
    uv_timer_t sweep;
    bool sweeping;
    bool stopping;
    int64_t stop_at_ns;
    size_t open_handles; /* listeners, connections and the timer */
    void (*done)(void *ctx);
    void *done_ctx;
};

#define NET_READ_BYTES ((size_t)64 * 1024)

/* conn.c */
/* Take the waiting connection of a listener, or turn it away. False, for want of memory: it still
 * waits, and libuv tells of no other until it is taken. */
bool conn_accept(struct net_server *server, uv_stream_t *listener, bool is_tcp);
void conn_close(struct conn *c);
/* What is late is answered 408 or closed. */
void conn_sweep(struct conn *c, int64_t now_ns);
void conn_refused(struct conn *c,
                  enum net_refusal reason); /* of its open request, if there is one */
void conn_set_phase(struct conn *c, enum conn_phase phase);
/* Takes block, which is on the heap. The connection may be closing after it. */
void conn_write(struct conn *c, char *block, size_t bytes);
void conn_read_go(struct conn *c);
void conn_read_pause(struct conn *c);
/* What is said with a status when a request is refused here. */
const char *conn_refusal_text(int status);

/* evict.c */
/* The phase of c has changed, or it is being closed. */
void conn_wait_follow(struct conn *c);
/* Close one connection that waits, to make room. False when none has waited long enough. */
bool conn_evict(struct net_server *server);

/* request.c */
/* Takes head. NULL for want of memory (head is then freed). */
struct net_request *request_new(struct conn *c, struct net_head *head);
void request_free(struct net_request *req);

/* answer.c */
/* An answer as bytes on the heap; NULL for want of memory. */
struct answer {
    int status;
    const char *content_type;
    const void *body;
    size_t body_bytes;
    const struct net_header *headers;
    size_t header_count;
    bool close;
    bool head_only;
};
char *answer_new(const struct answer *a, size_t *ret_bytes);
const char *answer_reason(int status);
/* An answer that the server makes by itself; text is borrowed. */
struct answer answer_text(const struct net_server *server, int status, const char *text);

/* server.c */
void server_handle_closed(struct net_server *server);
/* Count a refusal and tell the service; req may be NULL. */
void server_refused(struct net_server *server, const struct net_request *req,
                    enum net_refusal reason);
void server_watch(struct net_server *server); /* there is a connection to sweep */

/* listen.c */
void listeners_close(struct net_server *server);
/* Try again to take what could not be taken; false when some still waits. */
bool listeners_retry(struct net_server *server);
#endif
