/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conn: one connection: bytes in, events of the parser, answers out. See conn.h.
 *
 * A request that is refused early is still read to its end where that is cheap, so that the
 * connection can go on; else it is answered at once and the connection lingers: its writing side
 * is closed and what comes is thrown away for a while, because closing with unread bytes would
 * reset the connection under the answer.
 */
#include "net/conn.h"

#include "net/h2.h"
#include "net/text.h"
#include "plat/plat.h"

#include <stdlib.h>
#include <string.h>

#define SMALL_BODY_BYTES ((uint64_t)1024 * 1024) /* of a refused request: read to keep alive */
#define LINGER_FOR_NS ((int64_t)2 * 1000000000)  /* for an answer to arrive */
#define UNREAD_FOR_NS ((int64_t)30 * 1000000000) /* a peer that takes no byte of an answer */
#define BUSY_ANSWER "weir: too many connections\n"

struct write {
    uv_write_t req;
    char *block;
};

static void conn_run(struct conn *c);

void conn_set_phase(struct conn *c, enum conn_phase phase)
{
    if (c->phase == phase)
        return;
    c->phase = phase;
    c->since_ns = c->moved_ns = plat_mono_ns();
    conn_wait_follow(c);
}

/* Reading. */

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
    (void)suggested;
    struct net_server *const s = ((struct conn *)handle->data)->server;
    if (!s->read_buf)
        s->read_buf = malloc(NET_READ_BYTES);
    *buf = uv_buf_init(s->read_buf, s->read_buf ? (unsigned)NET_READ_BYTES : 0);
}

void conn_refused(struct conn *c, enum net_refusal reason)
{
    server_refused(c->server, c->req, reason);
}

static bool in_request(const struct conn *c)
{
    return c->req || net_parser_in_head(&c->parser);
}

static void on_read(uv_stream_t *stream, ssize_t got, const uv_buf_t *buf)
{
    struct conn *const c = stream->data;
    if (got == 0 || c->closing)
        return;
    if (got < 0 && c->h2) {
        conn_close(c);
        return;
    }
    if (got < 0) {
        if (got == UV_EOF && c->phase != CONN_LINGERING) {
            c->ended = true;
            conn_run(c);
            return;
        }
        if (c->phase != CONN_LINGERING && in_request(c))
            conn_refused(c, NET_REFUSED_TRUNCATED);
        conn_close(c);
        return;
    }
    c->server->counts.received_bytes += (uint64_t)got;
    c->moved_ns = plat_mono_ns();
    if (c->phase == CONN_LINGERING)
        return;
    if (c->h2) {
        h2_read(c, buf->base, (size_t)got);
        return;
    }
    c->in = buf->base;
    c->in_at = 0;
    c->in_len = (size_t)got;
    conn_run(c);
}

void conn_read_go(struct conn *c)
{
    if (!c->reading && !c->ended && uv_read_start(&c->h.stream, on_alloc, on_read) == 0)
        c->reading = true;
}

void conn_read_pause(struct conn *c)
{
    if (c->reading)
        (void)uv_read_stop(&c->h.stream);
    c->reading = false;
}

/* The bytes being parsed. */

static void let_go(struct conn *c)
{
    if (c->held)
        net_body_pool_give(&c->server->pool, NET_READ_BYTES);
    free(c->held);
    c->held = NULL;
    c->in = "";
    c->in_at = c->in_len = 0;
}

static bool is_borrowing(const struct conn *c)
{
    return c->req && c->req->body.borrowed.len;
}

/* Bytes must stay readable over a wait: keep the buffer they are in. False past the bound. */
static bool hold(struct conn *c)
{
    struct net_server *const s = c->server;
    const bool needed = c->in_at < c->in_len || is_borrowing(c);
    if (c->held || c->in_len == 0 || !needed)
        return true;
    if (!net_body_pool_take(&s->pool, NET_READ_BYTES))
        return false;
    c->held = s->read_buf;
    s->read_buf = NULL;
    return true;
}

/* Closing. */

static void on_closed(uv_handle_t *handle)
{
    struct conn *const c = handle->data;
    struct net_server *const s = c->server;
    free(c);
    server_handle_closed(s);
}

/* A request that a service still holds outlives its connection, and perhaps the server: it takes
 * along what its body stands in, and nothing of it counts any more. */
static void orphan(struct conn *c)
{
    struct net_request *const req = c->req;
    if (!req)
        return;
    if (c->phase != CONN_HANDLING) {
        c->req = NULL;
        request_free(req);
        return;
    }
    if (is_borrowing(c)) {
        char **const buffer = c->held ? &c->held : &c->server->read_buf;
        if (c->held)
            net_body_pool_give(&c->server->pool, NET_READ_BYTES);
        req->kept = *buffer;
        *buffer = NULL;
    }
    net_collector_detach(&req->body);
    req->conn = NULL;
    c->req = NULL;
}

void conn_close(struct conn *c)
{
    if (c->closing)
        return;
    c->closing = true;
    struct net_server *const s = c->server;
    if (c->prev)
        c->prev->next = c->next;
    else
        s->conns = c->next;
    if (c->next)
        c->next->prev = c->prev;
    s->counts.connections_open--;
    conn_wait_follow(c);
    orphan(c);
    h2_done(c);
    net_parser_done(&c->parser);
    if (!c->running) /* else conn_run stops, and lets the bytes go */
        let_go(c);
    uv_close(&c->h.handle, on_closed);
}

static void on_shutdown(uv_shutdown_t *req, int status)
{
    (void)req;
    (void)status;
}

static void linger(struct conn *c)
{
    if (c->closing || c->phase == CONN_LINGERING)
        return;
    if (c->ended) {
        conn_close(c);
        return;
    }
    conn_set_phase(c, CONN_LINGERING);
    if (uv_shutdown(&c->shutdown, &c->h.stream, on_shutdown) != 0) {
        conn_close(c);
        return;
    }
    conn_read_go(c);
}

/* Writing. */

static void flushed(struct conn *c)
{
    if (c->closing || c->unwritten)
        return;
    if (c->h2)
        h2_flush(c);
    else if (c->close_after && !c->req)
        linger(c);
    else if (!c->running)
        conn_run(c);
}

static void on_written(uv_write_t *req, int status)
{
    struct write *const w = (struct write *)req;
    struct conn *const c = req->handle->data;
    c->unwritten--;
    free(w->block);
    free(w);
    if (status < 0)
        conn_close(c);
    else
        flushed(c);
}

static bool write_rest(struct conn *c, char *block, size_t done, size_t bytes)
{
    struct write *const w = malloc(sizeof *w);
    if (!w)
        return false;
    w->block = block;
    const uv_buf_t rest = uv_buf_init(block + done, (unsigned)(bytes - done));
    if (uv_write(&w->req, &c->h.stream, &rest, 1, on_written) != 0) {
        free(w);
        return false;
    }
    c->unwritten++;
    return true;
}

void conn_write(struct conn *c, char *block, size_t bytes)
{
    const uv_buf_t buf = uv_buf_init(block, (unsigned)bytes);
    const int sent = uv_try_write(&c->h.stream, &buf, 1);
    if (sent < 0 && sent != UV_EAGAIN) {
        free(block);
        conn_close(c);
        return;
    }
    const size_t done = sent < 0 ? 0 : (size_t)sent;
    c->server->counts.sent_bytes += bytes;
    c->moved_ns = plat_mono_ns();
    if (done == bytes) {
        free(block);
    } else if (!write_rest(c, block, done, bytes)) {
        free(block);
        conn_close(c);
    }
}

/* The answer to the open request, or to a head that never became one. */
static void conn_answer(struct conn *c, struct answer *a)
{
    struct net_server *const s = c->server;
    a->close |= c->close_after || s->stopping;
    size_t bytes;
    char *const block = answer_new(a, &bytes);
    s->counts.responses[a->status / 100 < 6 ? a->status / 100 : 5]++;
    request_free(c->req);
    c->req = NULL;
    if (!block) {
        conn_refused(c, NET_REFUSED_MEMORY);
        conn_close(c);
        return;
    }
    c->close_after = a->close;
    c->served = true;
    conn_set_phase(c, CONN_FLUSHING);
    conn_write(c, block, bytes);
    if (c->closing)
        return;
    net_parser_next(&c->parser);
    flushed(c);
}

static void conn_say(struct conn *c, int status, const char *text, bool close)
{
    struct answer a = answer_text(c->server, status, text);
    a.close = close;
    a.head_only = c->req && c->req->head->method == NET_HEAD;
    conn_answer(c, &a);
}

const char *conn_refusal_text(int status)
{
    switch (status) {
    case 400:
        return "weir: not a well-formed HTTP/1.1 request\n";
    case 408:
        return "weir: the request came too slowly\n";
    case 413:
        return "weir: the body is larger than the limit\n";
    case 414:
        return "weir: the request target is too long\n";
    case 415:
        return "weir: unsupported content encoding\n";
    case 417:
        return "weir: unknown expectation\n";
    case 431:
        return "weir: the request head is larger than the limit\n";
    case 505:
        return "weir: only HTTP/1.1 and HTTP/1.0 are spoken here\n";
    default:
        return "weir: no memory for the request\n";
    }
}

/* Refuse in the middle of a request: answer now, and close. */
static void refuse_now(struct conn *c, enum net_refusal reason, int status, const char *text)
{
    conn_refused(c, reason);
    conn_say(c, status, text ? text : conn_refusal_text(status), true);
}

/* Events. */

/* Refuse, but read a small rest first, so that the connection can be used again. */
static void refuse_after_body(struct conn *c, int status, const char *text)
{
    struct net_request *const req = c->req;
    req->refuse_status = status;
    req->refuse_text = text;
    req->drain = true;
    req->drain_left = SMALL_BODY_BYTES;
    const struct net_head *const h = req->head;
    const bool asked = h->expect == NET_EXPECT_CONTINUE && req->wire_bytes == 0 &&
                       (h->chunked || h->content_length);
    if (asked || (!h->chunked && h->content_length - req->wire_bytes > SMALL_BODY_BYTES))
        conn_say(c, status, text, true);
}

static void body_failed(struct conn *c, enum net_refusal reason)
{
    conn_refused(c, reason);
    if (reason == NET_REFUSED_TOO_LARGE)
        refuse_after_body(c, 413, conn_refusal_text(413));
    else if (reason == NET_REFUSED_BAD_ENCODING)
        refuse_after_body(c, 400, "weir: the body is not what its Content-Encoding says\n");
    else
        refuse_after_body(c, 503, conn_refusal_text(503));
}

static void send_continue(struct conn *c)
{
    static const char text[] = "HTTP/1.1 100 Continue\r\n\r\n";
    char *const block = malloc(sizeof text - 1);
    if (!block)
        return; /* a client waits a while, then sends anyway */
    memcpy(block, text, sizeof text - 1);
    conn_write(c, block, sizeof text - 1);
}

/* Decide what happens to the body. The head is whole, nothing of the body has been looked at. */
static void open_body(struct conn *c, struct net_request *req)
{
    struct net_server *const s = c->server;
    const struct net_head *const h = req->head;
    const size_t limit =
        req->route.max_body_bytes ? req->route.max_body_bytes : s->limits.max_body_bytes;
    c->parser.body_limit = limit;
    if (req->route.refuse_status) {
        refuse_after_body(c, req->route.refuse_status,
                          req->route.refuse_text ? req->route.refuse_text : "");
        return;
    }
    if (h->content_length > limit) {
        refuse_now(c, NET_REFUSED_TOO_LARGE, 413, NULL);
        return;
    }
    if (req->route.body == NET_BODY_DRAIN) {
        req->drain = true;
        req->drain_left = UINT64_MAX; /* the parser keeps to the limit */
        return;
    }
    const enum net_coding coding = net_coding_of(net_request_header(req, "content-encoding"));
    if (coding == NET_CODING_UNKNOWN) {
        conn_refused(c, NET_REFUSED_ENCODING);
        refuse_after_body(c, 415, conn_refusal_text(415));
        return;
    }
    net_collector_init(&req->body, &s->pool, coding, h->chunked ? UINT64_MAX : h->content_length,
                       limit);
}

static void on_head(struct conn *c)
{
    struct net_server *const s = c->server;
    struct net_request *const req = request_new(c, net_parser_take_head(&c->parser));
    if (!req) {
        refuse_now(c, NET_REFUSED_MEMORY, 503, NULL);
        return;
    }
    c->req = req;
    c->close_after |= !req->head->keep_alive;
    s->counts.requests++;
    conn_set_phase(c, CONN_BODY);
    if (req->head->expect == NET_EXPECT_OTHER) {
        refuse_now(c, NET_REFUSED_BAD_REQUEST, 417, NULL);
        return;
    }
    s->service.route(s->service.ctx, req, &req->route);
    open_body(c, req);
    const bool body_comes = req == c->req && (req->head->chunked || req->head->content_length);
    if (body_comes && req->head->expect == NET_EXPECT_CONTINUE && c->in_at == c->in_len)
        send_continue(c);
}

static void on_body(struct conn *c)
{
    struct net_request *const req = c->req;
    const struct weir_bytes run = c->parser.data;
    req->wire_bytes += run.len;
    if (req->drain) {
        if (run.len > req->drain_left) {
            conn_say(c, req->refuse_status, req->refuse_text, true);
            return;
        }
        req->drain_left -= run.len;
        return;
    }
    const int r = net_collector_add(&req->body, run);
    if (r != NET_BODY_OK)
        body_failed(c, (enum net_refusal)r);
}

static void on_end(struct conn *c)
{
    struct net_request *const req = c->req;
    if (!req->drain) {
        const int r = net_collector_finish(&req->body, &req->decoded);
        if (r != NET_BODY_OK)
            body_failed(c, (enum net_refusal)r);
    }
    if (c->req != req)
        return;
    if (req->refuse_status) {
        conn_say(c, req->refuse_status, req->refuse_text, false);
        return;
    }
    conn_set_phase(c, CONN_HANDLING);
    c->server->service.handle(c->server->service.ctx, req);
}

static void on_failed(struct conn *c)
{
    const struct net_parser *const p = &c->parser;
    const struct net_request *const req = c->req;
    if (req && req->refuse_status) /* already refused, for another reason; it only got longer */
        conn_say(c, req->refuse_status, req->refuse_text, true);
    else
        refuse_now(c, p->refusal, p->status, NULL);
}

static void on_event(struct conn *c, enum net_event event)
{
    switch (event) {
    case NET_EVENT_HEAD:
        on_head(c);
        break;
    case NET_EVENT_BODY:
        on_body(c);
        break;
    case NET_EVENT_END:
        on_end(c);
        break;
    case NET_EVENT_FAILED:
        on_failed(c);
        break;
    case NET_EVENT_MORE:
        break;
    }
}

/* Nothing may be parsed now: an answer is owed or on its way, or the connection is over. */
static bool is_paused(const struct conn *c)
{
    return c->closing || c->phase == CONN_LINGERING || c->phase == CONN_HANDLING || c->unwritten ||
           (c->close_after && !c->req && c->phase == CONN_FLUSHING);
}

static void after_end(struct conn *c)
{
    if (in_request(c))
        refuse_now(c, NET_REFUSED_TRUNCATED, 400, "weir: the request ends too early\n");
    else
        conn_close(c);
}

/* After the bytes at hand were used up, or cannot be used now. */
static void settle(struct conn *c)
{
    if (c->closing || c->phase == CONN_LINGERING) {
        let_go(c);
        return;
    }
    if (is_paused(c)) {
        conn_read_pause(c);
        if (!hold(c)) {
            conn_refused(c, NET_REFUSED_MEMORY);
            conn_close(c);
        }
        return;
    }
    let_go(c);
    if (c->ended) {
        after_end(c);
        return;
    }
    if (!c->req)
        conn_set_phase(c, net_parser_is_idle(&c->parser) ? CONN_IDLE : CONN_HEAD);
    if (c->server->stopping && c->phase == CONN_IDLE)
        conn_close(c);
    else
        conn_read_go(c);
}

static void conn_run(struct conn *c)
{
    c->running = true;
    while (!is_paused(c)) {
        size_t taken;
        const enum net_event event =
            net_parser_feed(&c->parser, c->in + c->in_at, c->in_len - c->in_at, &taken);
        c->in_at += taken;
        if (event == NET_EVENT_MORE)
            break;
        on_event(c, event);
    }
    c->running = false;
    settle(c);
}

/* Answering. Seven parameters: an answer is written in one call. */

/* NOLINTNEXTLINE(readability-function-size) */
void net_respond(struct net_request *req, int status, const char *content_type, const void *body,
                 size_t body_bytes, const struct net_header *headers, size_t header_count)
{
    struct conn *const c = req->conn;
    if (!c) {
        if (req->is_stream)
            h2_stream_free((struct h2_stream *)req);
        else
            request_free(req);
        return;
    }
    struct answer a = {.status = status,
                       .content_type = content_type,
                       .body = body,
                       .body_bytes = body_bytes,
                       .headers = headers,
                       .header_count = header_count,
                       .head_only = req->head->method == NET_HEAD};
    if (req->is_stream)
        h2_answer(req, &a);
    else
        conn_answer(c, &a);
}

/* Time. */

static void too_slow(struct conn *c)
{
    refuse_now(c, NET_REFUSED_TIMEOUT, 408, NULL);
}

void conn_sweep(struct conn *c, int64_t now_ns)
{
    const struct net_limits *const lim = &c->server->limits;
    const int64_t for_ns = now_ns - c->since_ns;
    const size_t queued = uv_stream_get_write_queue_size(&c->h.stream);
    if (queued != c->queued)
        c->moved_ns = now_ns;
    c->queued = queued;
    const int64_t still_ns = now_ns - c->moved_ns;
    if (c->h2) {
        if (c->unwritten && still_ns > UNREAD_FOR_NS)
            conn_close(c);
        else
            h2_sweep(c, now_ns);
        return;
    }
    switch (c->phase) {
    case CONN_IDLE:
        if (for_ns > lim->idle_timeout_ns)
            conn_close(c);
        break;
    case CONN_HEAD:
        if (for_ns > lim->head_timeout_ns)
            too_slow(c);
        break;
    case CONN_BODY:
        if (for_ns > lim->body_timeout_ns || still_ns > lim->stall_timeout_ns)
            too_slow(c);
        break;
    case CONN_HANDLING:
        break;
    case CONN_FLUSHING:
        if (still_ns > UNREAD_FOR_NS)
            conn_close(c);
        break;
    case CONN_LINGERING:
        if (for_ns > LINGER_FOR_NS)
            conn_close(c);
        break;
    }
}

/* Beginning. */

static void on_turned_away(uv_handle_t *handle)
{
    struct conn *const c = handle->data;
    struct net_server *const s = c->server;
    free(c);
    server_handle_closed(s);
}

static void turn_away(struct conn *c)
{
    struct net_server *const s = c->server;
    s->counts.responses[5]++;
    server_refused(s, NULL, NET_REFUSED_CONNECTIONS);
    size_t bytes;
    struct answer busy = answer_text(s, 503, BUSY_ANSWER);
    busy.close = true;
    char *const block = answer_new(&busy, &bytes);
    if (block && !s->service.http2) { /* there the close alone says it */
        const uv_buf_t buf = uv_buf_init(block, (unsigned)bytes);
        (void)uv_try_write(&c->h.stream, &buf, 1);
    }
    free(block);
    uv_close(&c->h.handle, on_turned_away);
}

static struct conn *conn_new(struct net_server *s, bool is_tcp)
{
    struct conn *const c = calloc(1, sizeof *c);
    if (!c)
        return NULL;
    const int r = is_tcp ? uv_tcp_init(s->loop, &c->h.tcp) : uv_pipe_init(s->loop, &c->h.pipe, 0);
    if (r != 0) {
        free(c);
        return NULL;
    }
    c->h.handle.data = c;
    c->server = s;
    s->open_handles++;
    return c;
}

bool conn_accept(struct net_server *server, uv_stream_t *listener, bool is_tcp)
{
    struct net_server *const s = server;
    struct conn *const c = conn_new(s, is_tcp);
    if (!c)
        return false;
    if (uv_accept(listener, &c->h.stream) != 0) {
        uv_close(&c->h.handle, on_turned_away);
        return true;
    }
    const bool full = s->counts.connections_open >= s->limits.max_connections;
    if (s->stopping || (full && !conn_evict(s))) {
        turn_away(c);
        return true;
    }
    if (is_tcp)
        (void)uv_tcp_nodelay(&c->h.tcp, 1);
    s->counts.connections_accepted++;
    s->counts.connections_open++;
    c->next = s->conns;
    if (c->next)
        c->next->prev = c;
    s->conns = c;
    c->in = "";
    net_parser_init(&c->parser, s->limits.max_head_bytes, s->limits.max_headers);
    c->since_ns = c->moved_ns = plat_mono_ns();
    conn_wait_follow(c);
    server_watch(s);
    if (s->service.http2 && !h2_open(c)) {
        conn_refused(c, NET_REFUSED_MEMORY);
        conn_close(c);
        return true;
    }
    conn_read_go(c);
    return true;
}
