/* SPDX-License-Identifier: Apache-2.0 */
/*
 * h2: HTTP/2 and unary gRPC over real sockets, with nghttp2's client on the other side and a small
 * service behind.
 */
#include "http_client.h"
#include "net/grpc.h"
#include "net/h2.h"

#include <libdeflate.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MS ((int64_t)1000000)

struct world {
    uv_loop_t loop;
    struct net_server *server;
    int port;
    bool stopped;
    struct net_request *waiting; /* of /later */
    unsigned handled;
    uint64_t wire_bytes;
};

static bool path_is(const struct net_request *req, const char *path)
{
    const struct weir_bytes p = net_request_path(req);
    return p.len == strlen(path) && memcmp(p.ptr, path, p.len) == 0;
}

static void on_route(void *ctx, const struct net_request *req, struct net_route *route)
{
    (void)ctx;
    if (path_is(req, "/small"))
        route->max_body_bytes = 100;
    if (path_is(req, "/drain"))
        route->body = NET_BODY_DRAIN;
    if (path_is(req, "/refused")) {
        route->refuse_status = 404;
        route->refuse_text = "no\n";
    }
}

static void on_handle(void *ctx, struct net_request *req)
{
    struct world *const w = ctx;
    const struct weir_bytes body = net_request_body(req);
    w->handled++;
    w->wire_bytes = net_request_wire_bytes(req);
    if (path_is(req, "/later")) {
        w->waiting = req;
        return;
    }
    const struct net_header extra[] = {{"X-One", "1"}};
    net_respond(req, 200, "application/octet-stream", body.ptr, body.len, extra, 1);
}

static void on_stopped(void *ctx)
{
    ((struct world *)ctx)->stopped = true;
}

static struct world *world_new(const struct net_limits *limits)
{
    struct world *const w = calloc(1, sizeof *w);
    T_OK(uv_loop_init(&w->loop));
    const struct net_service service = {
        .ctx = w, .route = on_route, .handle = on_handle, .http2 = true};
    T_OK(net_server_new(&w->loop, &service, limits, &w->server));
    T_OK(net_server_listen_tcp(w->server, "localhost", 0, &w->port));
    return w;
}

static struct net_counts counts_of(const struct world *w)
{
    struct net_counts counts;
    net_server_get_counts(w->server, &counts);
    return counts;
}

static void world_free(struct world *w)
{
    net_server_stop(w->server, 0, on_stopped, w);
    T_OK(uv_run(&w->loop, UV_RUN_DEFAULT));
    T_TRUE(w->stopped);
    T_EQ_U64(counts_of(w).buffered_bytes, 0);
    T_EQ_U64(counts_of(w).connections_open, 0);
    net_server_free(w->server);
    T_OK(uv_loop_close(&w->loop));
    free(w);
}

/* The client. */

enum { REPLIES_MAX = 512 };

struct reply {
    int status; /* :status */
    int code;   /* grpc-status; -1: none */
    char message[128];
    char accept[64]; /* grpc-accept-encoding */
    char *body;
    size_t len;
    bool closed;
    uint32_t error; /* it was closed with */
};

struct peer {
    struct http_client http;
    nghttp2_session *session;
    struct reply replies[REPLIES_MAX]; /* by stream id / 2 */
    size_t piece;                      /* bytes sent at once; 0: all */
    uint32_t goaway;                   /* UINT32_MAX: none came */
};

static struct reply *reply_of(struct peer *p, int32_t id)
{
    T_TRUE(id > 0 && id / 2 < REPLIES_MAX);
    return &p->replies[id / 2];
}

static void take_text(char *dst, size_t cap, const uint8_t *value, size_t len)
{
    const size_t n = len < cap - 1 ? len : cap - 1;
    memcpy(dst, value, n);
    dst[n] = 0;
}

/* Eight parameters: nghttp2's. */
/* NOLINTNEXTLINE(readability-function-size) */
static int client_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
                         size_t name_len, const uint8_t *value, size_t value_len, uint8_t flags,
                         void *user)
{
    (void)session;
    (void)flags;
    struct reply *const r = reply_of(user, frame->hd.stream_id);
    char number[16];
    take_text(number, sizeof number, value, value_len);
    if (name_len == 7 && memcmp(name, ":status", 7) == 0)
        r->status = (int)strtol(number, NULL, 10);
    if (name_len == 11 && memcmp(name, "grpc-status", 11) == 0)
        r->code = (int)strtol(number, NULL, 10);
    if (name_len == 12 && memcmp(name, "grpc-message", 12) == 0)
        take_text(r->message, sizeof r->message, value, value_len);
    if (name_len == 20 && memcmp(name, "grpc-accept-encoding", 20) == 0)
        take_text(r->accept, sizeof r->accept, value, value_len);
    return 0;
}

static int client_data(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *data,
                       size_t len, void *user)
{
    (void)session;
    (void)flags;
    struct reply *const r = reply_of(user, id);
    r->body = realloc(r->body, r->len + len + 1);
    memcpy(r->body + r->len, data, len);
    r->len += len;
    return 0;
}

static int client_frame(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
    (void)session;
    if (frame->hd.type == NGHTTP2_GOAWAY)
        ((struct peer *)user)->goaway = frame->goaway.error_code;
    return 0;
}

static int client_closed(nghttp2_session *session, int32_t id, uint32_t error, void *user)
{
    (void)session;
    struct reply *const r = reply_of(user, id);
    r->closed = true;
    r->error = error;
    return 0;
}

static struct peer *peer_new(struct world *w)
{
    struct peer *const p = calloc(1, sizeof *p);
    nghttp2_session_callbacks *calls;
    p->http = http_tcp(&w->loop, w->port);
    p->goaway = UINT32_MAX;
    for (size_t i = 0; i < REPLIES_MAX; i++)
        p->replies[i].code = -1;
    T_OK(nghttp2_session_callbacks_new(&calls));
    nghttp2_session_callbacks_set_on_header_callback(calls, client_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(calls, client_data);
    nghttp2_session_callbacks_set_on_frame_recv_callback(calls, client_frame);
    nghttp2_session_callbacks_set_on_stream_close_callback(calls, client_closed);
    T_OK(nghttp2_session_client_new(&p->session, calls, p));
    nghttp2_session_callbacks_del(calls);
    T_OK(nghttp2_submit_settings(p->session, 0, NULL, 0));
    return p;
}

static void peer_free(struct peer *p)
{
    nghttp2_session_del(p->session);
    http_close(&p->http);
    for (size_t i = 0; i < REPLIES_MAX; i++)
        free(p->replies[i].body);
    free(p);
}

static void peer_send(struct peer *p)
{
    const uint8_t *bytes;
    ssize_t n;
    while ((n = nghttp2_session_mem_send(p->session, &bytes)) > 0) {
        const size_t piece = p->piece ? p->piece : (size_t)n;
        for (size_t at = 0; at < (size_t)n; at += piece) {
            const size_t left = (size_t)n - at;
            http_send(&p->http, bytes + at, left < piece ? left : piece);
            if (p->piece)
                http_wait(&p->http, 0);
        }
    }
    T_TRUE(n == 0);
}

/* Send and take in, for so long at least. */
static void peer_pump(struct peer *p, int ms)
{
    for (int waited = 0; waited <= ms; waited += 5) {
        peer_send(p);
        http_wait(&p->http, 5);
        if (p->http.len) {
            T_TRUE(nghttp2_session_mem_recv(p->session, (const uint8_t *)p->http.in, p->http.len) >=
                   0);
            p->http.len = 0;
        }
        if (p->http.ended)
            break;
    }
    if (!p->http.ended)
        peer_send(p);
}

/* Until that stream is closed, or two seconds. */
static struct reply *peer_wait(struct peer *p, int32_t id)
{
    struct reply *const r = reply_of(p, id);
    for (int i = 0; i < 400 && !r->closed && !p->http.ended; i++)
        peer_pump(p, 0);
    return r;
}

struct upload {
    const char *bytes;
    size_t len;
    size_t at;
    size_t held; /* of the end: never sent */
};

/* NOLINTNEXTLINE(readability-function-size) */
static ssize_t read_upload(nghttp2_session *session, int32_t id, uint8_t *buf, size_t cap,
                           uint32_t *flags, nghttp2_data_source *source, void *user)
{
    (void)session;
    (void)id;
    (void)user;
    struct upload *const u = source->ptr;
    const size_t left = u->len - u->held - u->at;
    const size_t n = left < cap ? left : cap;
    if (n == 0 && u->held)
        return NGHTTP2_ERR_DEFERRED;
    memcpy(buf, u->bytes + u->at, n);
    u->at += n;
    if (u->at == u->len)
        *flags |= NGHTTP2_DATA_FLAG_EOF;
    return (ssize_t)n;
}

#define NV(n, v)                                                                                   \
    {                                                                                              \
        (uint8_t *)(uintptr_t)(n), (uint8_t *)(uintptr_t)(v), strlen(n), strlen(v), 0              \
    }

/* A request with up to two more fields; upload NULL: no body. */
static int32_t ask(struct peer *p, const char *method, const char *path, struct upload *u,
                   const char *const fields[2][2])
{
    nghttp2_nv nv[8] = {NV(":method", method), NV(":scheme", "http"), NV(":authority", "a"),
                        NV(":path", path)};
    size_t n = 4;
    for (size_t i = 0; i < 2 && fields[i][0]; i++)
        nv[n++] = (nghttp2_nv)NV(fields[i][0], fields[i][1]);
    const nghttp2_data_provider provider = {.source.ptr = u, .read_callback = read_upload};
    const int32_t id = nghttp2_submit_request(p->session, NULL, nv, n, u ? &provider : NULL, NULL);
    T_TRUE(id > 0);
    return id;
}

static int32_t call(struct peer *p, const char *path, struct upload *u, const char *field,
                    const char *value)
{
    const char *const fields[2][2] = {{"content-type", "application/grpc"}, {field, value}};
    return ask(p, "POST", path, u, fields);
}

/* One message, framed; on the heap. */
static struct upload framed(bool compressed, const void *message, size_t len)
{
    char *const bytes = malloc(NET_GRPC_FRAME_BYTES + len);
    net_grpc_frame(bytes, len);
    bytes[0] = compressed;
    if (len)
        memcpy(bytes + NET_GRPC_FRAME_BYTES, message, len);
    return (struct upload){.bytes = bytes, .len = NET_GRPC_FRAME_BYTES + len};
}

static void upload_free(struct upload *u)
{
    free((char *)(uintptr_t)u->bytes);
}

static struct upload gzipped(const void *message, size_t len)
{
    struct libdeflate_compressor *const z = libdeflate_alloc_compressor(6);
    const size_t room = libdeflate_gzip_compress_bound(z, len);
    void *const out = malloc(room);
    const size_t n = libdeflate_gzip_compress(z, message, len, out, room);
    libdeflate_free_compressor(z);
    const struct upload u = framed(true, out, n);
    free(out);
    return u;
}

static void check_echo(const struct reply *r, const void *message, size_t len)
{
    T_EQ_I64(r->status, 200);
    T_EQ_I64(r->code, NET_GRPC_OK);
    T_TRUE(r->closed && r->error == NGHTTP2_NO_ERROR);
    T_EQ_U64(r->len, NET_GRPC_FRAME_BYTES + len);
    bool compressed;
    struct weir_bytes got;
    T_TRUE(net_grpc_unframe((struct weir_bytes){r->body, r->len}, &compressed, &got));
    T_TRUE(!compressed && got.len == len && memcmp(got.ptr, message, len) == 0);
}

static void check_refused(const struct reply *r, enum net_grpc_code code)
{
    T_EQ_I64(r->status, 200);
    T_EQ_I64(r->code, code);
    T_TRUE(r->closed);
    T_EQ_U64(r->len, 0);
}

/* After anything, the connection still serves. */
static void check_serves(struct peer *p)
{
    struct upload u = framed(false, "ping", 4);
    check_echo(peer_wait(p, call(p, "/echo", &u, NULL, NULL)), "ping", 4);
    upload_free(&u);
}

TEST(a_call_is_answered_by_a_message_and_a_status)
{
    struct world *const w = world_new(NULL);
    struct peer *const p = peer_new(w);
    struct upload u = framed(false, "hello", 5);
    check_echo(peer_wait(p, call(p, "/echo", &u, NULL, NULL)), "hello", 5);
    T_EQ_U64(w->wire_bytes, NET_GRPC_FRAME_BYTES + 5);
    u.at = 0;
    check_echo(peer_wait(p, call(p, "/echo?with=query", &u, "grpc-timeout", "5S")), "hello", 5);
    upload_free(&u);
    u = framed(false, "", 0);
    check_echo(peer_wait(p, call(p, "/echo", &u, NULL, NULL)), "", 0);
    upload_free(&u);
    T_EQ_U64(counts_of(w).requests, 3);
    T_EQ_U64(counts_of(w).responses[2], 3);
    peer_free(p);
    world_free(w);
}

TEST(bytes_may_come_one_by_one)
{
    struct world *const w = world_new(NULL);
    struct peer *const p = peer_new(w);
    p->piece = 1;
    struct upload u = gzipped("hello, hello, hello", 19);
    check_echo(peer_wait(p, call(p, "/echo", &u, "grpc-encoding", "gzip")), "hello, hello, hello",
               19);
    upload_free(&u);
    peer_free(p);
    world_free(w);
}

TEST(a_large_message_comes_through_both_ways)
{
    const size_t len = 3 * 1024 * 1024 + 7;
    char *const large = malloc(len);
    for (size_t i = 0; i < len; i++)
        large[i] = (char)(i * 2654435761u >> 13);
    struct world *const w = world_new(NULL);
    struct peer *const p = peer_new(w);
    struct upload u = framed(false, large, len);
    check_echo(peer_wait(p, call(p, "/echo", &u, NULL, NULL)), large, len);
    upload_free(&u);
    u = gzipped(large, len);
    check_echo(peer_wait(p, call(p, "/echo", &u, "grpc-encoding", "gzip")), large, len);
    upload_free(&u);
    free(large);
    peer_free(p);
    world_free(w);
}

TEST(what_is_not_one_message_is_refused_and_the_connection_goes_on)
{
    static const struct {
        const char *bytes;
        size_t len;
        const char *encoding;
        enum net_grpc_code code;
    } rows[] = {{"", 0, NULL, NET_GRPC_INVALID_ARGUMENT},
                {"\0\0\0\0", 4, NULL, NET_GRPC_INVALID_ARGUMENT},
                {"\0\0\0\0\2x", 6, NULL, NET_GRPC_INVALID_ARGUMENT},
                {"\0\0\0\0\0\0\0\0\0\0", 10, NULL, NET_GRPC_INVALID_ARGUMENT},
                {"\7\0\0\0\1x", 6, NULL, NET_GRPC_INVALID_ARGUMENT},
                {"\1\0\0\0\1x", 6, NULL, NET_GRPC_INTERNAL},
                {"\1\0\0\0\1x", 6, "gzip", NET_GRPC_INVALID_ARGUMENT},
                {"\1\0\0\0\1x", 6, "snappy", NET_GRPC_UNIMPLEMENTED}};
    struct world *const w = world_new(NULL);
    struct peer *const p = peer_new(w);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct upload u = {.bytes = rows[i].bytes, .len = rows[i].len};
        const struct reply *const r = peer_wait(
            p, call(p, "/echo", &u, rows[i].encoding ? "grpc-encoding" : NULL, rows[i].encoding));
        check_refused(r, rows[i].code);
        if (rows[i].code == NET_GRPC_UNIMPLEMENTED)
            T_EQ_STR(r->accept, "identity,gzip,deflate");
        check_serves(p);
    }
    T_EQ_U64(w->handled, sizeof rows / sizeof *rows);
    peer_free(p);
    world_free(w);
}

TEST(limits_are_a_call_s_not_a_connection_s)
{
    char *const large = calloc(1, 4 * 1024 * 1024);
    struct world *const w = world_new(&(struct net_limits){.max_body_bytes = 1024 * 1024});
    struct peer *const p = peer_new(w);
    struct upload u = framed(false, large, 4 * 1024 * 1024);
    check_refused(peer_wait(p, call(p, "/echo", &u, NULL, NULL)), NET_GRPC_RESOURCE_EXHAUSTED);
    check_serves(p);
    upload_free(&u);
    u = framed(false, large, 1024 * 1024); /* the frame is not counted */
    check_echo(peer_wait(p, call(p, "/echo", &u, NULL, NULL)), large, 1024 * 1024);
    upload_free(&u);
    u = framed(false, large, 101);
    check_refused(peer_wait(p, call(p, "/small", &u, NULL, NULL)), NET_GRPC_RESOURCE_EXHAUSTED);
    upload_free(&u);
    u = gzipped(large, 4 * 1024 * 1024); /* a bomb, as small things go */
    check_refused(peer_wait(p, call(p, "/echo", &u, "grpc-encoding", "gzip")),
                  NET_GRPC_RESOURCE_EXHAUSTED);
    upload_free(&u);
    u = framed(false, "x", 1);
    check_refused(peer_wait(p, call(p, "/refused", &u, NULL, NULL)), NET_GRPC_UNIMPLEMENTED);
    upload_free(&u);
    char *const field = calloc(1, 40 * 1024);
    memset(field, 'v', 40 * 1024 - 1);
    u = framed(false, "x", 1);
    check_refused(peer_wait(p, call(p, "/echo", &u, "x-long", field)), NET_GRPC_RESOURCE_EXHAUSTED);
    upload_free(&u);
    free(field);
    check_serves(p);
    T_EQ_U64(counts_of(w).refused[NET_REFUSED_TOO_LARGE], 3);
    T_EQ_U64(counts_of(w).refused[NET_REFUSED_HEAD_TOO_LARGE], 1);
    free(large);
    peer_free(p);
    world_free(w);
}

TEST(a_call_that_is_late_or_stands_still_is_ended_and_others_go_on)
{
    struct world *const w = world_new(
        &(struct net_limits){.stall_timeout_ns = 120 * MS, .idle_timeout_ns = 10000 * MS});
    struct peer *const p = peer_new(w);
    struct upload u = framed(false, "hello", 5);
    u.held = 2;
    const int32_t stalled = call(p, "/echo", &u, NULL, NULL);
    struct upload v = framed(false, "hello", 5);
    v.held = 1;
    const int32_t late = call(p, "/echo", &v, "grpc-timeout", "20m");
    check_serves(p);
    const struct reply *const r = peer_wait(p, late);
    check_refused(r, NET_GRPC_DEADLINE_EXCEEDED);
    check_refused(peer_wait(p, stalled), NET_GRPC_DEADLINE_EXCEEDED);
    check_serves(p);
    T_EQ_U64(counts_of(w).refused[NET_REFUSED_TIMEOUT], 2);
    upload_free(&u);
    upload_free(&v);
    peer_free(p);
    world_free(w);
}

TEST(an_idle_connection_is_left_politely)
{
    struct world *const w = world_new(&(struct net_limits){.idle_timeout_ns = 80 * MS});
    struct peer *const p = peer_new(w);
    check_serves(p);
    peer_pump(p, 400);
    T_EQ_U64(p->goaway, NGHTTP2_NO_ERROR);
    T_TRUE(p->http.ended);
    peer_free(p);
    world_free(w);
}

TEST(requests_that_are_no_calls_are_plain_http)
{
    static const char *const none[2][2] = {{NULL}};
    struct world *const w = world_new(NULL);
    struct peer *const p = peer_new(w);
    const struct reply *r = peer_wait(p, ask(p, "GET", "/echo", NULL, none));
    T_EQ_I64(r->status, 200);
    T_EQ_U64(r->len, 0);
    struct upload u = {.bytes = "abc", .len = 3};
    r = peer_wait(p, ask(p, "PUT", "/echo", &u, none));
    T_EQ_I64(r->status, 200);
    T_EQ_I64(r->code, -1);
    T_TRUE(r->len == 3 && memcmp(r->body, "abc", 3) == 0);
    r = peer_wait(p, ask(p, "GET", "/refused", NULL, none));
    T_EQ_I64(r->status, 404);
    u.at = 0;
    const char *const coded[2][2] = {{"content-encoding", "br"}};
    r = peer_wait(p, ask(p, "POST", "/echo", &u, coded));
    T_EQ_I64(r->status, 415);
    u.at = 0;
    r = peer_wait(p, ask(p, "POST", "/drain", &u, none));
    T_EQ_I64(r->status, 200);
    T_EQ_U64(r->len, 0);
    T_EQ_U64(w->wire_bytes, 3);
    peer_free(p);
    world_free(w);
}

TEST(more_calls_than_a_connection_may_have_open_are_all_answered)
{
    enum { CALLS = 250 };
    struct world *const w = world_new(NULL);
    struct peer *const p = peer_new(w);
    struct upload u[CALLS];
    int32_t ids[CALLS];
    for (int i = 0; i < CALLS; i++) {
        u[i] = framed(false, &i, sizeof i);
        ids[i] = call(p, "/echo", &u[i], NULL, NULL);
    }
    for (int i = 0; i < CALLS; i++) {
        check_echo(peer_wait(p, ids[i]), &i, sizeof i);
        upload_free(&u[i]);
    }
    T_EQ_U64(w->handled, CALLS);
    peer_free(p);
    world_free(w);
}

TEST(resets_without_end_end_the_connection)
{
    struct world *const w = world_new(NULL);
    struct peer *const p = peer_new(w);
    peer_pump(p, 10); /* settings both ways, so that the client does not hold requests back */
    int calls = 0;
    while (p->goaway == UINT32_MAX && !p->http.ended && calls < REPLIES_MAX / 2 - 2) {
        struct upload u = framed(false, "x", 1);
        u.held = 1;
        const int32_t id = call(p, "/echo", &u, NULL, NULL);
        peer_send(p);
        T_OK(nghttp2_submit_rst_stream(p->session, 0, id, NGHTTP2_CANCEL));
        peer_pump(p, 0);
        upload_free(&u);
        calls++;
    }
    T_EQ_U64(p->goaway, NGHTTP2_ENHANCE_YOUR_CALM);
    T_TRUE(calls >= H2_RESETS_MAX);
    T_EQ_U64(counts_of(w).refused[NET_REFUSED_FLOOD], 1);
    T_EQ_U64(w->handled, 0);
    peer_free(p);
    world_free(w);
}

TEST(what_is_not_http2_is_closed_and_counted)
{
    struct world *const w = world_new(NULL);
    struct http_client c = http_tcp(&w->loop, w->port);
    http_send_text(&c, "GET /info HTTP/1.1\r\nHost: a\r\n\r\n");
    T_TRUE(http_closed(&c, 1000));
    http_close(&c);
    T_EQ_U64(counts_of(w).refused[NET_REFUSED_BAD_REQUEST], 1);
    world_free(w);
}

TEST(a_stop_lets_an_open_call_finish)
{
    struct world *const w = world_new(NULL);
    struct peer *const p = peer_new(w);
    struct upload u = framed(false, "late", 4);
    const int32_t id = call(p, "/later", &u, NULL, NULL);
    peer_pump(p, 20);
    T_TRUE(w->waiting != NULL);
    net_server_stop(w->server, 2000 * MS, on_stopped, w);
    peer_pump(p, 20);
    T_EQ_U64(p->goaway, NGHTTP2_NO_ERROR);
    T_TRUE(!w->stopped);
    net_respond(w->waiting, 200, NULL, "late", 4, NULL, 0);
    check_echo(peer_wait(p, id), "late", 4);
    peer_pump(p, 50);
    T_TRUE(p->http.ended);
    upload_free(&u);
    peer_free(p);
    T_OK(uv_run(&w->loop, UV_RUN_DEFAULT));
    T_TRUE(w->stopped);
    T_EQ_U64(counts_of(w).buffered_bytes, 0);
    net_server_free(w->server);
    T_OK(uv_loop_close(&w->loop));
    free(w);
}

/* The peer takes back its call, or leaves, while a service works on it: the answer goes nowhere. */
TEST(an_answer_may_come_after_its_stream_or_connection)
{
    for (int leave = 0; leave < 2; leave++) {
        struct world *const w = world_new(NULL);
        struct peer *const p = peer_new(w);
        char *const body = calloc(1, 200000);
        struct upload u = framed(false, body, 200000);
        const int32_t id = call(p, "/later", &u, NULL, NULL);
        for (int i = 0; i < 100 && !w->waiting; i++)
            peer_pump(p, 5);
        T_TRUE(w->waiting != NULL);
        if (leave) {
            http_end(&p->http);
            (void)http_closed(&p->http, 500);
        } else {
            T_OK(nghttp2_submit_rst_stream(p->session, 0, id, NGHTTP2_CANCEL));
            peer_pump(p, 20);
        }
        T_EQ_U64(net_request_body(w->waiting).len, 200000);
        net_respond(w->waiting, 200, NULL, "late", 4, NULL, 0);
        if (!leave)
            check_serves(p);
        upload_free(&u);
        free(body);
        peer_free(p);
        world_free(w);
    }
}

/* A good conversation with some bytes changed, in pieces: whatever comes of it, the next is served
 * and no byte stays accounted. */
TEST(noise_is_answered_or_closed_and_leaves_nothing_behind)
{
    struct world *const w = world_new(&(struct net_limits){.idle_timeout_ns = 3000 * MS});
    uint8_t good[4096];
    size_t len = 0;
    struct peer *const p = peer_new(w);
    struct upload u = framed(false, "hello", 5);
    for (int i = 0; i < 3; i++) {
        u.at = 0;
        (void)call(p, i == 1 ? "/small" : "/echo", &u, "x-field", "value");
        const uint8_t *bytes;
        ssize_t n;
        while ((n = nghttp2_session_mem_send(p->session, &bytes)) > 0) {
            T_TRUE(len + (size_t)n <= sizeof good);
            memcpy(good + len, bytes, (size_t)n);
            len += (size_t)n;
        }
    }
    peer_free(p);
    struct t_rng rng = t_rng(t_seed());
    for (int round = 0; round < 400; round++) {
        uint8_t bad[sizeof good];
        memcpy(bad, good, len);
        const uint64_t changes = 1 + t_below(&rng, 4);
        for (uint64_t i = 0; i < changes; i++) /* after the preface: that one has a test */
            bad[24 + t_below(&rng, len - 24)] = (uint8_t)t_below(&rng, 256);
        const size_t cut = 1 + (size_t)t_below(&rng, len);
        struct http_client c = http_tcp(&w->loop, w->port);
        http_send(&c, bad, cut);
        http_send(&c, bad + cut, len - cut);
        http_wait(&c, 0);
        http_close(&c);
    }
    struct peer *const q = peer_new(w);
    check_serves(q);
    peer_free(q);
    upload_free(&u);
    world_free(w);
}
