/* SPDX-License-Identifier: Apache-2.0 */
#ifndef AGENT_NET_HTTP_H
#define AGENT_NET_HTTP_H
/*
 * http: an HTTP/1.1 or HTTP/2 server on libuv, over TCP and unix sockets. Protocol only: it knows
 * no route.
 *
 * A service is asked twice: route when the head of a request is complete, which says what may come
 * and what to do with the body; handle when the whole body is there (de-chunked, decompressed) or
 * drained. The answer may be given at once or later, on the loop's thread, exactly once.
 *
 * Bounded: connections, head bytes, header count, body bytes (as sent and decoded), time for a
 * head, for a body, and idle. What passes a bound is answered 408, 413, 431 or 503 and counted.
 *
 * gRPC. A request over HTTP/2 whose Content-Type is application/grpc is a unary call (see grpc.h):
 * its path is the method, its body the one message, decompressed. An answer with status 200 is the
 * reply; any other is the status that net_grpc_code_of gives, with the body's text as message.
 *
 * Threads: all of it on the loop's thread.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>
#include <weir/base.h>

/* Every one has a counter; names go into weir_http_refused_total{reason}. Append only. */
#define NET_REFUSAL_MAP(X)                                                                         \
    X(BAD_REQUEST, "bad_request")       /* 400: not HTTP/1.1 as RFC 9112 has it */                 \
    X(TIMEOUT, "timeout")               /* 408: head or body too slow */                           \
    X(TOO_LARGE, "too_large")           /* 413: body past its limit, as sent or decoded */         \
    X(BAD_ENCODING, "bad_encoding")     /* 400: broken gzip or deflate */                          \
    X(ENCODING, "unsupported_encoding") /* 415: unknown Content-Encoding */                        \
    X(HEAD_TOO_LARGE, "head_too_large") /* 431 */                                                  \
    X(VERSION, "http_version")          /* 505 */                                                  \
    X(CONNECTIONS, "connections")       /* 503: the connection limit is reached */                 \
    X(TRUNCATED, "truncated")           /* the peer left in the middle of a request */             \
    X(MEMORY, "memory")                 /* 503: no memory for the body */                          \
    X(EVICTED, "evicted")               /* closed while it waited: room for a newcomer */          \
    X(FLOOD, "flood")                   /* HTTP/2: resets or control frames without end */
enum net_refusal {
#define NET_REFUSAL_ENUM(name, text) NET_REFUSED_##name,
    NET_REFUSAL_MAP(NET_REFUSAL_ENUM)
#undef NET_REFUSAL_ENUM
        NET_REFUSAL_COUNT
};
const char *net_refusal_name(enum net_refusal reason);

/* CONNECT never gets here: its target is refused 400. NET_OTHER deserves a 501. */
enum net_method { NET_GET = 1, NET_HEAD, NET_POST, NET_PUT, NET_DELETE, NET_OPTIONS, NET_OTHER };

enum net_body {
    NET_BODY_TAKE = 0, /* collect and decode, up to max_body_bytes */
    NET_BODY_DRAIN     /* read and forget, up to max_body_bytes as sent */
};

struct net_request; /* opaque; lives until it was answered */

/* Borrowed until the request is answered, also when its connection or the server goes before. Names
 * are found in any case. The path of "OPTIONS *" is "*"; of an absolute target, what follows the
 * authority. */
enum net_method net_request_method(const struct net_request *req);
struct weir_bytes net_request_path(const struct net_request *req);  /* without the query, as sent */
struct weir_bytes net_request_query(const struct net_request *req); /* after '?', as sent */
/* {NULL, 0} when absent. Of several, the first. */
struct weir_bytes net_request_header(const struct net_request *req, const char *name);
struct weir_bytes net_request_body(const struct net_request *req); /* decoded; empty if drained */
uint64_t net_request_wire_bytes(const struct net_request *req);    /* of the body, as sent */

struct net_route {
    enum net_body body;
    size_t max_body_bytes;   /* as sent, and decoded; 0: the server's default */
    int refuse_status;       /* not 0: answer this; a body up to 1 MiB is read first, so that the
                              * connection can go on; before a larger one, or one that waits
                              * for 100 Continue, at once, and the connection closes */
    const char *refuse_text; /* static */
    void *data;              /* for handle: net_request_data */
};

struct net_header {
    const char *name;
    const char *value;
};

struct net_service {
    void *ctx;
    /* Decide by method, path and headers. Must fill ret_route (zeroed before). */
    void (*route)(void *ctx, const struct net_request *req, struct net_route *ret_route);
    void (*handle)(void *ctx, struct net_request *req);
    /* A refusal of this server, for logs or counters of the service; may be NULL. req is NULL when
     * there is no complete head. */
    void (*refused)(void *ctx, const struct net_request *req, enum net_refusal reason);
    /* Fields of every answer that the server makes by itself; borrowed until net_server_free. */
    const struct net_header *headers;
    size_t header_count;
    bool http2; /* connections speak HTTP/2 from their first byte (h2c), and gRPC on it */
};
void *net_request_data(const struct net_request *req);

/*
 * Answer. content_type NULL: none. The body is copied. Extra headers are copied; values must not
 * hold CR or LF. HEAD sends the head alone. Content-Length is set but for 204 and 304; Date is
 * not. Not from inside route. After it req is gone; if its connection went first, nothing is sent.
 */
void net_respond(struct net_request *req, int status, const char *content_type, const void *body,
                 size_t body_bytes, const struct net_header *headers, size_t header_count);

struct net_limits {            /* 0 means the default */
    size_t max_connections;    /* 2000 over all listeners of the server; past it the connection that
                                * waits longest goes (see evict.c), or the newcomer gets a 503 */
    size_t max_head_bytes;     /* 32 KiB */
    size_t max_headers;        /* 100 */
    size_t max_body_bytes;     /* 25 MiB, as sent and decoded */
    size_t max_buffered_bytes; /* 256 MiB over all connections: bodies, and bytes that wait */
    int64_t head_timeout_ns;   /* 10 s from the first byte of a head */
    int64_t body_timeout_ns;   /* 30 s for the whole body, and 5 s without a byte */
    int64_t stall_timeout_ns;  /* 5 s */
    int64_t idle_timeout_ns;   /* 75 s between requests */
};

struct net_counts {
    uint64_t connections_accepted;
    uint64_t connections_open;
    uint64_t requests;
    uint64_t responses[6]; /* by class: [2] is 2xx */
    uint64_t refused[NET_REFUSAL_COUNT];
    uint64_t received_bytes;
    uint64_t sent_bytes;
    uint64_t buffered_bytes; /* now */
};

struct net_server;
/* service is copied; done or free may not be called without stop. Ignores SIGPIPE if nobody else
 * handles it. 0 or -errno. */
int net_server_new(uv_loop_t *loop, const struct net_service *service,
                   const struct net_limits *limits, struct net_server **ret_server);
/* host is an IPv4 or IPv6 address or "localhost"; port 0 picks one. Several listeners may be added.
 * 0 or -errno (-EADDRINUSE). ret_port may be NULL. */
int net_server_listen_tcp(struct net_server *server, const char *host, int port, int *ret_port);
/* A stale socket file is removed only after a connect to it was refused; a live one, or a file that
 * is no socket, is -EADDRINUSE; a path too long -ENAMETOOLONG. Mode 0722 as tracers expect; removed
 * at stop. */
int net_server_listen_unix(struct net_server *server, const char *path);
/* Stop accepting, close what is idle, let requests in progress finish for grace_ns, close the rest;
 * then done on the loop. Requests a service still holds may be answered later, to nobody. */
void net_server_stop(struct net_server *server, int64_t grace_ns, void (*done)(void *ctx),
                     void *ctx);
void net_server_free(struct net_server *server); /* after done */
void net_server_get_counts(const struct net_server *server, struct net_counts *ret_counts);
#endif
