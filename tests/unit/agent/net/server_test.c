/* SPDX-License-Identifier: Apache-2.0 */
/* server: the HTTP server over real sockets, with a small service behind it. */
#include "http_client.h"
#include "net/http.h"
#include "net/conn.h"

#include <libdeflate.h>
#include <malloc.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include <zlib.h>

#define RAW_TSV T_SOURCE_DIR "/tests/golden/http/raw-http.tsv"
#define MS ((int64_t)1000000)

struct world {
    uv_loop_t loop;
    struct net_server *server;
    int port;
    bool stopped;
    struct net_request *waiting; /* of /later */
    unsigned refusals;
    uint64_t last_wire_bytes;
};

static bool path_is(const struct net_request *req, const char *path)
{
    const struct weir_bytes p = net_request_path(req);
    return p.len == strlen(path) && memcmp(p.ptr, path, p.len) == 0;
}

static void on_route(void *ctx, const struct net_request *req, struct net_route *route)
{
    (void)ctx;
    const enum net_method m = net_request_method(req);
    const struct weir_bytes site = net_request_header(req, "sec-fetch-site");
    if (m == NET_OTHER) {
        route->refuse_status = 501;
    } else if (site.len == 10 && memcmp(site.ptr, "cross-site", 10) == 0) {
        route->refuse_status = 403;
    } else if (path_is(req, "/drain")) {
        route->body = NET_BODY_DRAIN;
    } else if (path_is(req, "/small")) {
        route->max_body_bytes = 100;
    } else if (path_is(req, "/info") || path_is(req, "/echo") || path_is(req, "/later")) {
        route->body = NET_BODY_TAKE;
    } else if (!path_is(req, "/v0.4/traces")) {
        route->refuse_status = 404;
    } else if (m != NET_POST && m != NET_PUT) {
        route->refuse_status = 405;
    }
    if (route->refuse_status)
        route->refuse_text = "no\n";
}

static void on_handle(void *ctx, struct net_request *req)
{
    struct world *const w = ctx;
    const struct weir_bytes body = net_request_body(req);
    w->last_wire_bytes = net_request_wire_bytes(req);
    if (path_is(req, "/later")) {
        w->waiting = req;
        return;
    }
    if (path_is(req, "/v0.4/traces") && body.len == 0) {
        net_respond(req, 400, "text/plain", "empty", 5, NULL, 0);
        return;
    }
    const struct net_header extra[] = {{"X-One", "1"}, {"X-Two", "two"}};
    net_respond(req, 200, "application/octet-stream", body.ptr, body.len, extra, 2);
}

static void on_refused(void *ctx, const struct net_request *req, enum net_refusal reason)
{
    (void)req;
    (void)reason;
    ((struct world *)ctx)->refusals++;
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
        .ctx = w, .route = on_route, .handle = on_handle, .refused = on_refused};
    T_OK(net_server_new(&w->loop, &service, limits, &w->server));
    T_OK(net_server_listen_tcp(w->server, "localhost", 0, &w->port));
    T_TRUE(w->port > 0);
    return w;
}

static void world_free(struct world *w)
{
    net_server_stop(w->server, 0, on_stopped, w);
    T_OK(uv_run(&w->loop, UV_RUN_DEFAULT));
    T_TRUE(w->stopped);
    struct net_counts counts;
    net_server_get_counts(w->server, &counts);
    T_EQ_U64(counts.buffered_bytes, 0);
    T_EQ_U64(counts.connections_open, 0);
    net_server_free(w->server);
    T_OK(uv_loop_close(&w->loop));
    free(w);
}

static struct net_counts counts_of(const struct world *w)
{
    struct net_counts counts;
    net_server_get_counts(w->server, &counts);
    return counts;
}

#define POST_ECHO "POST /echo HTTP/1.1\r\nHost: a\r\n"
#define GET_INFO "GET /info HTTP/1.1\r\nHost: a\r\n\r\n"

TEST(every_row_of_raw_http_is_answered_as_it_says)
{
    struct world *const w = world_new(NULL);
    const struct http_replay replay = http_replay_raw(&w->loop, w->port, RAW_TSV);
    print_message("raw-http.tsv: %u rows, %u wrong\n", replay.rows, replay.wrong);
    T_EQ_U64(replay.wrong, 0);
    T_TRUE(replay.rows >= 99);
    world_free(w);
}

/* Mutated rows in random pieces: whatever comes of each, the next request is served, and no byte
 * stays accounted (world_free looks). */
TEST(noise_is_answered_or_closed_and_leaves_nothing_behind)
{
    struct http_rows rows;
    if (!http_rows_open(&rows, RAW_TSV))
        T_FAIL("cannot read %s", RAW_TSV);
    struct world *const w = world_new(NULL);
    struct t_rng r = t_rng(t_seed());
    char *columns[8];
    while (http_rows_next(&rows, columns)) {
        size_t len = 0;
        uint8_t *const bytes = http_expand(columns[1], ".", &len);
        for (int round = 0; round < 5; round++) {
            struct http_client c = http_tcp(&w->loop, w->port);
            for (uint64_t n = t_below(&r, 3); n > 0; n--)
                bytes[t_below(&r, len)] = (uint8_t)t_below(&r, 256);
            const size_t cut = t_below(&r, len + 1);
            http_send(&c, bytes, cut);
            http_wait(&c, 1);
            http_send(&c, bytes + cut, len - cut);
            http_end(&c);
            T_TRUE(http_closed(&c, 5000));
            http_close(&c);
        }
        struct http_client next = http_tcp(&w->loop, w->port);
        T_EQ_U64(http_ask(&next, GET_INFO).status, 200);
        http_close(&next);
        free(bytes);
    }
    http_rows_close(&rows);
    world_free(w);
}

TEST(a_peer_that_does_not_read_is_not_worked_for)
{
    struct world *const w = world_new(NULL);
    struct http_client c = http_tcp(&w->loop, w->port);
    const size_t n = 1000 * 1000;
    char *const block = calloc(1, n);
    for (int i = 0; i < 100; i++) { /* 100 MB to send back, none of it read */
        char head[128];
        const int len = snprintf(head, sizeof head, POST_ECHO "Content-Length: %zu\r\n\r\n", n);
        if (send(c.fd, head, (size_t)len, MSG_NOSIGNAL) < 0)
            break;
        size_t at = 0;
        for (int turns = 0; at < n && turns < 50; turns++) {
            const ssize_t sent = send(c.fd, block + at, n - at, MSG_NOSIGNAL);
            at += sent > 0 ? (size_t)sent : 0;
            (void)uv_run(&w->loop, UV_RUN_NOWAIT);
        }
        if (at < n)
            break;
    }
    const struct net_counts counts = counts_of(w);
    T_TRUE(counts.responses[2] < 90);
    T_TRUE(counts.buffered_bytes < 3 * n);
    free(block);
    http_close(&c);
    world_free(w);
}

TEST(an_answer_has_its_fields_and_its_body)
{
    struct world *const w = world_new(NULL);
    struct http_client c = http_tcp(&w->loop, w->port);
    const struct http_answer a = http_ask(&c, POST_ECHO "Content-Length: 5\r\n\r\nhello");
    T_EQ_U64(a.status, 200);
    T_EQ_STR(a.body, "hello");
    T_EQ_STR(http_field(&a, "X-One"), "1");
    T_EQ_STR(http_field(&a, "Content-Type"), "application/octet-stream");
    T_TRUE(!http_field(&a, "Connection"));
    const struct http_answer head = http_ask(&c, "HEAD /info HTTP/1.1\r\nHost: a\r\n\r\n");
    T_EQ_U64(head.status, 200);
    T_EQ_U64(c.len, 0);
    const struct net_counts counts = counts_of(w);
    T_EQ_U64(counts.requests, 2);
    T_EQ_U64(counts.responses[2], 2);
    http_close(&c);
    world_free(w);
}

TEST(a_body_is_the_same_however_the_bytes_are_split)
{
    struct world *const w = world_new(NULL);
    static const char text[] = POST_ECHO "Transfer-Encoding: chunked\r\n\r\n"
                                         "3\r\nabc\r\nA;x=y\r\n0123456789\r\n0\r\nT: 1\r\n\r\n";
    for (size_t cut = 1; cut < sizeof text - 1; cut++) {
        struct http_client c = http_tcp(&w->loop, w->port);
        http_send(&c, text, cut);
        http_wait(&c, 1);
        http_send(&c, text + cut, sizeof text - 1 - cut);
        const struct http_answer a = http_read(&c, false);
        T_EQ_U64(a.status, 200);
        T_EQ_STR(a.body, "abc0123456789");
        http_close(&c);
    }
    world_free(w);
}

TEST(a_client_that_expects_100_is_asked_for_its_body_and_not_when_it_would_be_refused)
{
    struct world *const w = world_new(NULL);
    struct http_client c = http_tcp(&w->loop, w->port);
    const struct http_answer interim =
        http_ask(&c, POST_ECHO "Expect: 100-Continue\r\nContent-Length: 2\r\n\r\n");
    T_EQ_U64(interim.status, 100);
    const struct http_answer a = http_ask(&c, "ok");
    T_EQ_U64(a.status, 200);
    T_EQ_STR(a.body, "ok");
    const struct http_answer no = http_ask(
        &c, "POST /no HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n");
    T_EQ_U64(no.status, 404);
    T_TRUE(http_closed(&c, 3000));
    http_close(&c);
    world_free(w);
}

/* Case K04: a GET with a body of 447 bytes, then another request on the connection. */
TEST(a_get_with_a_body_leaves_the_connection_in_step)
{
    struct world *const w = world_new(NULL);
    struct http_client c = http_tcp(&w->loop, w->port);
    char text[1024];
    const int n = snprintf(text, sizeof text,
                           "GET /drain HTTP/1.1\r\nHost: a\r\nContent-Length: 447\r\n\r\n");
    memset(text + n, '{', 447);
    http_send(&c, text, (size_t)n + 447);
    T_EQ_U64(http_read(&c, false).status, 200);
    T_EQ_U64(w->last_wire_bytes, 447);
    T_EQ_U64(http_ask(&c, GET_INFO).status, 200);
    http_close(&c);
    world_free(w);
}

static size_t gzip_of(const char *text, size_t len, uint8_t *dst, size_t cap)
{
    z_stream z = {0};
    T_OK(deflateInit2(&z, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY));
    z.next_in = (z_const Bytef *)(uintptr_t)text;
    z.avail_in = (uInt)len;
    z.next_out = dst;
    z.avail_out = (uInt)cap;
    T_EQ_I64(deflate(&z, Z_FINISH), Z_STREAM_END);
    const size_t made = cap - z.avail_out;
    (void)deflateEnd(&z);
    return made;
}

/* Case K09: gzip in two chunks of which the first has 10 bytes, the header alone. */
TEST(gzip_in_two_chunks_the_first_of_ten_bytes_is_decoded)
{
    struct world *const w = world_new(NULL);
    uint8_t zipped[256];
    const size_t n = gzip_of("hello, hello, hello", 19, zipped, sizeof zipped);
    struct http_client c = http_tcp(&w->loop, w->port);
    http_send_text(&c,
                   POST_ECHO "Content-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\na\r\n");
    http_send(&c, zipped, 10);
    http_wait(&c, 5);
    char size[32];
    (void)snprintf(size, sizeof size, "\r\n%zx\r\n", n - 10);
    http_send_text(&c, size);
    http_send(&c, zipped + 10, n - 10);
    http_wait(&c, 5);
    http_send_text(&c, "\r\n0\r\n\r\n");
    const struct http_answer a = http_read(&c, false);
    T_EQ_U64(a.status, 200);
    T_EQ_STR(a.body, "hello, hello, hello");
    http_close(&c);
    world_free(w);
}

TEST(gzip_of_known_length_is_decoded_and_a_broken_one_leaves_the_connection_usable)
{
    struct world *const w = world_new(NULL);
    uint8_t zipped[256];
    const size_t n = gzip_of("hello, hello, hello", 19, zipped, sizeof zipped);
    struct http_client c = http_tcp(&w->loop, w->port);
    char head[128];
    (void)snprintf(head, sizeof head,
                   POST_ECHO "Content-Encoding: gzip\r\nContent-Length: %zu\r\n\r\n", n);
    http_send_text(&c, head);
    http_send(&c, zipped, n);
    T_EQ_STR(http_read(&c, false).body, "hello, hello, hello");
    zipped[n - 6] ^= 1; /* the CRC */
    http_send_text(&c, head);
    http_send(&c, zipped, n);
    T_EQ_U64(http_read(&c, false).status, 400);
    T_EQ_U64(http_ask(&c, GET_INFO).status, 200);
    T_EQ_U64(counts_of(w).refused[NET_REFUSED_BAD_ENCODING], 1);
    T_EQ_U64(w->refusals, 1);
    http_close(&c);
    world_free(w);
}

TEST(an_unknown_encoding_is_refused_415_and_the_connection_lives)
{
    struct world *const w = world_new(NULL);
    struct http_client c = http_tcp(&w->loop, w->port);
    const struct http_answer a =
        http_ask(&c, POST_ECHO "Content-Encoding: br\r\nContent-Length: 3\r\n\r\nabc");
    T_EQ_U64(a.status, 415);
    T_EQ_U64(http_ask(&c, GET_INFO).status, 200);
    T_EQ_U64(counts_of(w).refused[NET_REFUSED_ENCODING], 1);
    http_close(&c);
    world_free(w);
}

TEST(a_body_past_the_route_limit_is_413_announced_chunked_or_decoded)
{
    struct world *const w = world_new(NULL);
    struct http_client c = http_tcp(&w->loop, w->port);
    T_EQ_U64(http_ask(&c, "POST /small HTTP/1.1\r\nHost: a\r\nContent-Length: 101\r\n\r\n").status,
             413);
    T_TRUE(http_closed(&c, 3000));
    http_close(&c);

    c = http_tcp(&w->loop, w->port);
    T_EQ_U64(http_ask(&c, "POST /small HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: "
                          "chunked\r\n\r\n65\r\n")
                 .status,
             413);
    http_close(&c);

    char text[101];
    memset(text, 'x', sizeof text);
    uint8_t zipped[256];
    const size_t n = gzip_of(text, sizeof text, zipped, sizeof zipped);
    c = http_tcp(&w->loop, w->port);
    char head[128];
    (void)snprintf(head, sizeof head,
                   "POST /small HTTP/1.1\r\nHost: a\r\nContent-Encoding: gzip\r\n"
                   "Content-Length: %zu\r\n\r\n",
                   n);
    http_send_text(&c, head);
    http_send(&c, zipped, n);
    T_EQ_U64(http_read(&c, false).status, 413);
    T_EQ_U64(http_ask(&c, GET_INFO).status, 200);
    T_EQ_U64(counts_of(w).refused[NET_REFUSED_TOO_LARGE], 3);
    http_close(&c);
    world_free(w);
}

TEST(what_all_bodies_may_hold_together_is_bounded)
{
    const struct net_limits limits = {.max_buffered_bytes = 200 * 1024};
    struct world *const w = world_new(&limits);
    struct http_client c = http_tcp(&w->loop, w->port);
    http_send_text(&c, POST_ECHO "Content-Length: 1000000\r\n\r\n");
    char *const block = calloc(1, 1000000);
    http_send(&c, block, 1000000);
    T_EQ_U64(http_read(&c, false).status, 503);
    T_EQ_U64(http_ask(&c, GET_INFO).status, 200);
    T_EQ_U64(counts_of(w).refused[NET_REFUSED_MEMORY], 1);
    T_EQ_U64(counts_of(w).buffered_bytes, 0);
    free(block);
    http_close(&c);
    world_free(w);
}

TEST(a_large_body_comes_through_whole_and_its_memory_goes)
{
    struct world *const w = world_new(NULL);
    struct http_client c = http_tcp(&w->loop, w->port);
    const size_t n = 3 * 1000 * 1000;
    char *const block = malloc(n);
    for (size_t i = 0; i < n; i++)
        block[i] = (char)('a' + i % 26);
    http_send_text(&c, POST_ECHO "Content-Length: 3000000\r\n\r\n");
    http_send(&c, block, n);
    const struct http_answer a = http_read(&c, false);
    T_EQ_U64(a.status, 200);
    T_EQ_U64(a.body_bytes, n);
    T_EQ_BYTES(a.body, 4096, block, 4096);
    T_EQ_U64(counts_of(w).buffered_bytes, 0);
    free(block);
    http_close(&c);
    world_free(w);
}

TEST(a_slow_head_a_slow_body_and_a_stalled_one_are_answered_408)
{
    const struct net_limits limits = {.head_timeout_ns = 60 * MS,
                                      .body_timeout_ns = 200 * MS,
                                      .stall_timeout_ns = 80 * MS,
                                      .idle_timeout_ns = 60 * MS};
    struct world *const w = world_new(&limits);
    struct http_client c = http_tcp(&w->loop, w->port);
    for (int i = 0; i < 20 && !c.len; i++) { /* a byte now and then does not help */
        http_send_text(&c, i ? "x" : "GET /info HTTP/1.1\r\nX: ");
        http_wait(&c, 10);
    }
    T_EQ_U64(http_read(&c, false).status, 408);
    http_close(&c);

    c = http_tcp(&w->loop, w->port);
    http_send_text(&c, POST_ECHO "Content-Length: 1000\r\n\r\nx");
    T_EQ_U64(http_read(&c, false).status, 408); /* stalled */
    http_close(&c);

    c = http_tcp(&w->loop, w->port);
    http_send_text(&c, POST_ECHO "Content-Length: 1000\r\n\r\n");
    for (int i = 0; i < 60 && !c.len; i++) {
        http_send_text(&c, "x");
        http_wait(&c, 10);
    }
    T_EQ_U64(http_read(&c, false).status, 408); /* drips */
    T_EQ_U64(counts_of(w).refused[NET_REFUSED_TIMEOUT], 3);
    http_close(&c);

    c = http_tcp(&w->loop, w->port);
    T_EQ_U64(http_ask(&c, GET_INFO).status, 200);
    T_TRUE(http_closed(&c, 2000)); /* idle: closed without a word */
    T_EQ_U64(c.len, 0);
    http_close(&c);
    world_free(w);
}

TEST(a_later_answer_keeps_the_borrowed_body_and_the_pipelined_request_behind_it)
{
    struct world *const w = world_new(NULL);
    struct http_client c = http_tcp(&w->loop, w->port);
    http_send_text(&c, "POST /later HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nfirst" POST_ECHO
                       "Content-Length: 6\r\n\r\nsecond");
    http_wait(&c, 20);
    T_TRUE(w->waiting && c.len == 0);
    struct http_client other = http_tcp(&w->loop, w->port); /* the reading buffer is used again */
    T_EQ_STR(http_ask(&other, POST_ECHO "Content-Length: 5\r\n\r\nXXXXX").body, "XXXXX");
    http_close(&other);
    const struct weir_bytes body = net_request_body(w->waiting);
    T_EQ_BYTES(body.ptr, body.len, "first", 5);
    net_respond(w->waiting, 202, NULL, "1", 1, NULL, 0);
    T_EQ_U64(http_read(&c, false).status, 202);
    T_EQ_STR(http_read(&c, false).body, "second");
    http_close(&c);
    world_free(w);
}

TEST(a_request_answered_after_its_connection_is_gone_only_frees)
{
    struct world *const w = world_new(NULL);
    struct http_client c = http_tcp(&w->loop, w->port);
    http_send_text(&c, "POST /later HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nfirst");
    http_wait(&c, 20);
    struct net_request *const req = w->waiting;
    T_TRUE(req != NULL);
    http_close(&c);
    world_free(w); /* closes by force: the service still holds the request */
    const struct weir_bytes body = net_request_body(req);
    T_EQ_BYTES(body.ptr, body.len, "first", 5);
    net_respond(req, 200, NULL, NULL, 0, NULL, 0);
}

TEST(stopping_lets_a_request_finish_and_refuses_new_connections)
{
    struct world *const w = world_new(NULL);
    struct http_client c = http_tcp(&w->loop, w->port);
    struct http_client idle = http_tcp(&w->loop, w->port);
    T_EQ_U64(http_ask(&idle, GET_INFO).status, 200);
    http_send_text(&c, "GET /later HTTP/1.1\r\nHost: a\r\n\r\n");
    http_wait(&c, 20);
    net_server_stop(w->server, 5000 * MS, on_stopped, w);
    T_TRUE(http_closed(&idle, 1000));
    T_TRUE(!w->stopped);
    net_respond(w->waiting, 200, NULL, "x", 1, NULL, 0);
    const struct http_answer a = http_read(&c, false);
    T_EQ_U64(a.status, 200);
    T_EQ_STR(http_field(&a, "Connection"), "close");
    http_close(&c);
    http_close(&idle);
    T_OK(uv_run(&w->loop, UV_RUN_DEFAULT));
    T_TRUE(w->stopped);
    net_server_free(w->server);
    T_OK(uv_loop_close(&w->loop));
    free(w);
}

TEST(a_connection_past_the_limit_is_answered_503_and_room_comes_back)
{
    const struct net_limits limits = {.max_connections = 2};
    struct world *const w = world_new(&limits);
    struct http_client a = http_tcp(&w->loop, w->port);
    struct http_client b = http_tcp(&w->loop, w->port);
    T_EQ_U64(http_ask(&a, GET_INFO).status, 200);
    T_EQ_U64(http_ask(&b, GET_INFO).status, 200);
    struct http_client c = http_tcp(&w->loop, w->port);
    T_EQ_U64(http_read(&c, false).status, 503);
    http_close(&c);
    http_close(&a);
    c = http_tcp(&w->loop, w->port);
    T_EQ_U64(http_ask(&c, GET_INFO).status, 200);
    T_EQ_U64(counts_of(w).refused[NET_REFUSED_CONNECTIONS], 1);
    http_close(&b);
    http_close(&c);
    world_free(w);
}

TEST(at_the_limit_who_never_asked_makes_room_and_who_was_just_served_does_not)
{
    const struct net_limits limits = {.max_connections = 3};
    struct world *const w = world_new(&limits);
    struct http_client served = http_tcp(&w->loop, w->port);
    T_EQ_U64(http_ask(&served, GET_INFO).status, 200);
    struct http_client silent[2] = {http_tcp(&w->loop, w->port), http_tcp(&w->loop, w->port)};
    http_wait(&served, 50);
    struct http_client newcomer = http_tcp(&w->loop, w->port);
    T_EQ_U64(http_ask(&newcomer, GET_INFO).status, 200);
    T_TRUE(http_closed(&silent[0], 1000)); /* the one that came first */
    struct http_client next = http_tcp(&w->loop, w->port);
    T_EQ_U64(http_ask(&next, GET_INFO).status, 200);
    T_TRUE(http_closed(&silent[1], 1000));
    struct http_client last = http_tcp(&w->loop, w->port);
    T_EQ_U64(http_read(&last, false).status, 503);
    T_EQ_U64(http_ask(&served, GET_INFO).status, 200);
    const struct net_counts counts = counts_of(w);
    T_EQ_U64(counts.refused[NET_REFUSED_EVICTED], 2);
    T_EQ_U64(counts.refused[NET_REFUSED_CONNECTIONS], 1);
    T_EQ_U64(counts.connections_open, 3);
    http_close(&silent[0]);
    http_close(&silent[1]);
    http_close(&served);
    http_close(&newcomer);
    http_close(&next);
    http_close(&last);
    world_free(w);
}

TEST(a_connection_whose_bytes_have_come_makes_no_room)
{
    const struct net_limits limits = {.max_connections = 1};
    struct world *const w = world_new(&limits);
    struct http_client first = http_tcp(&w->loop, w->port);
    http_wait(&first, 20);
    /* Both are there before the loop runs again, the newcomer first. */
    const struct sockaddr_in addr = {.sin_family = AF_INET,
                                     .sin_port = htons((uint16_t)w->port),
                                     .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const int newcomer = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    T_OK(connect(newcomer, (const struct sockaddr *)&addr, sizeof addr));
    T_EQ_I64(write(first.fd, GET_INFO, strlen(GET_INFO)), (int64_t)strlen(GET_INFO));
    T_EQ_U64(http_read(&first, false).status, 200);
    T_EQ_U64(counts_of(w).refused[NET_REFUSED_EVICTED], 0);
    T_EQ_U64(counts_of(w).refused[NET_REFUSED_CONNECTIONS], 1);
    (void)close(newcomer);
    http_close(&first);
    world_free(w);
}

TEST(after_a_second_a_slow_head_makes_room_and_then_the_longest_idle)
{
    const struct net_limits limits = {.max_connections = 3};
    struct world *const w = world_new(&limits);
    struct http_client idle = http_tcp(&w->loop, w->port);
    T_EQ_U64(http_ask(&idle, GET_INFO).status, 200);
    struct http_client busy = http_tcp(&w->loop, w->port);
    http_send_text(&busy, POST_ECHO "Content-Length: 10\r\n\r\nabc");
    struct http_client slow = http_tcp(&w->loop, w->port);
    http_send_text(&slow, "GET /in");
    http_wait(&slow, 1100);
    struct http_client first = http_tcp(&w->loop, w->port);
    T_EQ_U64(http_ask(&first, GET_INFO).status, 200);
    T_TRUE(http_closed(&slow, 1000));
    struct http_client second = http_tcp(&w->loop, w->port);
    T_EQ_U64(http_ask(&second, GET_INFO).status, 200);
    T_TRUE(http_closed(&idle, 1000));
    http_send_text(&busy, "defghij");
    T_EQ_U64(http_read(&busy, false).status, 200); /* who sends a body is let finish */
    T_EQ_U64(counts_of(w).refused[NET_REFUSED_EVICTED], 2);
    http_close(&idle);
    http_close(&busy);
    http_close(&slow);
    http_close(&first);
    http_close(&second);
    world_free(w);
}

TEST(a_request_that_ends_early_counts_as_truncated)
{
    struct world *const w = world_new(NULL);
    struct http_client c = http_tcp(&w->loop, w->port);
    http_send_text(&c, POST_ECHO "Content-Length: 10\r\n\r\nabc");
    http_end(&c);
    T_EQ_U64(http_read(&c, false).status, 400);
    T_TRUE(http_closed(&c, 1000));
    T_EQ_U64(counts_of(w).refused[NET_REFUSED_TRUNCATED], 1);
    http_close(&c);
    world_free(w);
}

TEST(an_idle_connection_costs_less_than_2_kib)
{
    struct world *const w = world_new(NULL);
    enum { COUNT = 200 };
    struct http_client *const c = calloc(COUNT, sizeof *c);
    c[0] = http_tcp(&w->loop, w->port);
    T_EQ_U64(http_ask(&c[0], GET_INFO).status, 200);
    const size_t before = mallinfo2().uordblks;
    size_t clients = 0;
    for (int i = 1; i < COUNT; i++) {
        c[i] = http_tcp(&w->loop, w->port);
        T_EQ_U64(http_ask(&c[i], GET_INFO).status, 200);
        clients += c[i].cap + 16;
    }
    const size_t after = mallinfo2().uordblks;
    const size_t each = after > before + clients ? (after - before - clients) / (COUNT - 1) : 0;
    print_message("an idle connection: %zu bytes (struct conn %zu)\n", each, sizeof(struct conn));
    T_TRUE(each < 2048);
    T_TRUE(sizeof(struct conn) < 1024);
    for (int i = 0; i < COUNT; i++)
        http_close(&c[i]);
    free(c);
    world_free(w);
}

static void socket_path(char *dst, size_t cap)
{
    (void)snprintf(dst, cap, "/tmp/weir-net-test-%d.sock", (int)getpid());
    (void)unlink(dst);
}

TEST(a_unix_socket_has_mode_0722_serves_and_goes_when_the_server_stops)
{
    struct world *const w = world_new(NULL);
    char path[100];
    socket_path(path, sizeof path);
    T_OK(net_server_listen_unix(w->server, path));
    struct stat st;
    T_OK(stat(path, &st));
    T_EQ_U64(st.st_mode & 0777, 0722);
    struct http_client c = http_unix(&w->loop, path);
    T_EQ_U64(http_ask(&c, "GET /info HTTP/1.1\r\nHost: localhost\r\n\r\n").status, 200);
    http_close(&c);
    world_free(w);
    T_TRUE(stat(path, &st) != 0);
}

TEST(a_stale_socket_file_is_replaced_and_a_live_one_or_another_file_is_not)
{
    struct world *const w = world_new(NULL);
    char path[100];
    socket_path(path, sizeof path);
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    (void)snprintf(addr.sun_path, sizeof addr.sun_path, "%s", path);
    const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    T_OK(bind(fd, (const struct sockaddr *)&addr, sizeof addr));
    T_OK(listen(fd, 1));
    T_EQ_I64(net_server_listen_unix(w->server, path), -EADDRINUSE); /* alive */
    (void)close(fd);
    T_OK(net_server_listen_unix(w->server, path));                  /* stale */
    T_EQ_I64(net_server_listen_unix(w->server, path), -EADDRINUSE); /* our own */
    world_free(w);

    struct world *const other = world_new(NULL);
    FILE *const f = fopen(path, "w");
    (void)fclose(f);
    T_EQ_I64(net_server_listen_unix(other->server, path), -EADDRINUSE);
    T_OK(unlink(path)); /* it is still there */
    char longer[200];
    memset(longer, 'x', sizeof longer - 1);
    longer[sizeof longer - 1] = 0;
    T_EQ_I64(net_server_listen_unix(other->server, longer), -ENAMETOOLONG);
    world_free(other);
}

TEST(a_taken_port_and_a_bad_address_are_errors)
{
    struct world *const w = world_new(NULL);
    int port = 0;
    T_EQ_I64(net_server_listen_tcp(w->server, "127.0.0.1", w->port, &port), -EADDRINUSE);
    T_EQ_I64(net_server_listen_tcp(w->server, "no.such.host", 0, &port), -EINVAL);
    T_EQ_I64(net_server_listen_tcp(w->server, "127.0.0.1", 65536, &port), -EINVAL);
    T_EQ_I64(port, 0);
    world_free(w);
}

TEST(every_refusal_has_a_name_of_its_own)
{
    for (unsigned i = 0; i < NET_REFUSAL_COUNT; i++)
        for (unsigned j = 0; j < i; j++)
            T_TRUE(strcmp(net_refusal_name((enum net_refusal)i),
                          net_refusal_name((enum net_refusal)j)) != 0);
    T_EQ_STR(net_refusal_name(NET_REFUSED_TOO_LARGE), "too_large");
}
