/* SPDX-License-Identifier: Apache-2.0 */
/* h2_stream: one request over HTTP/2, from its head to the service. See h2.h. */
#include "net/grpc.h"
#include "net/h2.h"
#include "net/text.h"
#include "plat/plat.h"

#include <stdlib.h>
#include <string.h>

enum { FIELD_OVERHEAD = 32 }; /* of a field in a header list: RFC 9113 §6.5.2 */

struct h2_stream *h2_stream_new(struct h2 *h2, int32_t id)
{
    struct h2_stream *const st = calloc(1, sizeof *st);
    struct net_head *const head = calloc(1, sizeof *head);
    if (!st || !head) {
        free(st);
        free(head);
        return NULL;
    }
    st->req.conn = h2->conn;
    st->req.head = head;
    st->req.is_stream = true;
    net_collector_init(&st->req.body, &h2->conn->server->pool, NET_CODING_IDENTITY, UINT64_MAX, 0);
    net_collector_init(&st->message, &h2->conn->server->pool, NET_CODING_IDENTITY, UINT64_MAX, 0);
    st->h2 = h2;
    st->id = id;
    st->since_ns = st->moved_ns = plat_mono_ns();
    st->deadline_ns = INT64_MAX;
    return st;
}

void h2_stream_free(struct h2_stream *st)
{
    st->h2 = NULL;
    if (st->phase == H2_HANDLING && st->req.conn) { /* a service holds it: net_respond frees it */
        net_collector_detach(&st->req.body);
        net_collector_detach(&st->message);
        st->req.conn = NULL;
        return;
    }
    net_collector_done(&st->message);
    free(st->answer);
    request_free(&st->req);
}

static void say(struct h2_stream *st, int status, const char *text)
{
    struct answer a = answer_text(st->req.conn->server, status, text);
    a.head_only = st->req.head->method == NET_HEAD;
    h2_stream_answer(st, &a);
}

static void refuse(struct h2_stream *st, enum net_refusal reason, int status, const char *text)
{
    server_refused(st->req.conn->server, &st->req, reason);
    say(st, status, text ? text : conn_refusal_text(status));
}

/* The head. */

static bool add_field(struct net_head *h, struct weir_bytes name, struct weir_bytes value)
{
    struct net_field *const f = net_head_add(h);
    if (!f)
        return false;
    f->name_at = h->len;
    f->name_len = (uint32_t)name.len;
    f->value_at = h->len + f->name_len;
    f->value_len = (uint32_t)value.len;
    return net_head_append(h, name.ptr, name.len) && net_head_append(h, value.ptr, value.len);
}

/* nghttp2 has seen to it that they are there, once each, and before the others. */
static bool add_pseudo(struct h2_stream *st, struct weir_bytes name, struct weir_bytes value)
{
    struct net_head *const h = st->req.head;
    if (net_text_is(name, ":method")) {
        h->method = net_method_of(value);
    } else if (net_text_is(name, ":path")) {
        st->target_at = h->len;
        st->target_len = value.len;
        return net_head_append(h, value.ptr, value.len);
    } else if (net_text_is(name, ":authority")) {
        return add_field(h, (struct weir_bytes){"host", 4}, value);
    }
    return true;
}

void h2_stream_field(struct h2_stream *st, struct weir_bytes name, struct weir_bytes value)
{
    const struct net_limits *const lim = &st->h2->conn->server->limits;
    struct net_head *const h = st->req.head;
    if (st->head_status)
        return;
    st->head_bytes += name.len + value.len + FIELD_OVERHEAD;
    if (st->head_bytes > lim->max_head_bytes || h->count >= lim->max_headers) {
        st->head_status = 431;
        return;
    }
    const bool pseudo = name.len && name.ptr[0] == ':';
    if (!(pseudo ? add_pseudo(st, name, value) : add_field(h, name, value)))
        st->head_status = 503;
}

static bool header_number(const struct net_request *req, const char *name, uint64_t *ret_value)
{
    const struct weir_bytes text = net_request_header(req, name);
    uint64_t n = 0;
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] < '0' || text.ptr[i] > '9' || n > UINT64_MAX / 10 - 1)
            return false;
        n = 10 * n + (uint64_t)(text.ptr[i] - '0');
    }
    *ret_value = n;
    return text.len != 0;
}

static size_t body_limit(const struct h2_stream *st)
{
    const size_t given = st->req.route.max_body_bytes;
    const size_t limit = given ? given : st->req.conn->server->limits.max_body_bytes;
    return st->is_grpc ? limit + NET_GRPC_FRAME_BYTES : limit;
}

static void open_body(struct h2_stream *st)
{
    struct net_request *const req = &st->req;
    const size_t limit = body_limit(st);
    uint64_t announced;
    if (req->route.refuse_status) {
        say(st, req->route.refuse_status, req->route.refuse_text ? req->route.refuse_text : "");
        return;
    }
    if (header_number(req, "content-length", &announced) && announced > limit) {
        refuse(st, NET_REFUSED_TOO_LARGE, 413, NULL);
        return;
    }
    req->drain = req->route.body == NET_BODY_DRAIN;
    req->drain_left = limit;
    const enum net_coding coding = st->is_grpc
                                       ? NET_CODING_IDENTITY
                                       : net_coding_of(net_request_header(req, "content-encoding"));
    if (!req->drain && coding == NET_CODING_UNKNOWN)
        refuse(st, NET_REFUSED_ENCODING, 415, NULL);
    else /* of unknown length: a run is not kept by nghttp2, so it must not be borrowed */
        net_collector_init(&req->body, &req->conn->server->pool, coding, UINT64_MAX, limit);
}

static void take_deadline(struct h2_stream *st)
{
    int64_t for_ns;
    if (st->is_grpc && net_grpc_timeout(net_request_header(&st->req, "grpc-timeout"), &for_ns))
        st->deadline_ns = st->since_ns + for_ns;
}

void h2_stream_head_done(struct h2_stream *st)
{
    struct net_server *const s = st->h2->conn->server;
    struct net_request *const req = &st->req;
    s->counts.requests++;
    st->phase = H2_BODY;
    st->is_grpc = net_grpc_is(net_request_header(req, "content-type"));
    if (st->head_status == 431) {
        refuse(st, NET_REFUSED_HEAD_TOO_LARGE, 431, NULL);
        return;
    }
    if (st->head_status) {
        refuse(st, NET_REFUSED_MEMORY, 503, NULL);
        return;
    }
    if (st->target_len == 0 ||
        !net_head_settle_target(req->head, req->head->bytes + st->target_at, st->target_len)) {
        refuse(st, NET_REFUSED_BAD_REQUEST, 400, NULL);
        return;
    }
    take_deadline(st);
    s->service.route(s->service.ctx, req, &req->route);
    open_body(st);
}

/* The body. */

static void body_failed(struct h2_stream *st, enum net_refusal reason)
{
    if (reason == NET_REFUSED_TOO_LARGE)
        refuse(st, reason, 413, NULL);
    else if (reason == NET_REFUSED_BAD_ENCODING)
        refuse(st, reason, 400, "weir: the body is not what its encoding says\n");
    else
        refuse(st, reason, 503, NULL);
}

void h2_stream_data(struct h2_stream *st, struct weir_bytes run)
{
    struct net_request *const req = &st->req;
    if (st->phase != H2_BODY)
        return;
    req->wire_bytes += run.len;
    st->moved_ns = plat_mono_ns();
    int r = NET_BODY_OK;
    if (!req->drain)
        r = net_collector_add(&req->body, run);
    else if (req->wire_bytes > req->drain_left)
        r = NET_REFUSED_TOO_LARGE;
    if (r != NET_BODY_OK)
        body_failed(st, (enum net_refusal)r);
}

static void unknown_encoding(struct h2_stream *st)
{
    refuse(st, NET_REFUSED_ENCODING, 415,
           "weir: unsupported grpc-encoding: identity, gzip and deflate are taken\n");
}

/* Of a call: the message in the body takes the body's place. */
static void open_message(struct h2_stream *st)
{
    struct net_request *const req = &st->req;
    struct weir_bytes message;
    bool compressed;
    if (!net_grpc_unframe(req->decoded, &compressed, &message)) {
        refuse(st, NET_REFUSED_BAD_REQUEST, 400, "weir: the call is not exactly one message\n");
        return;
    }
    req->decoded = message;
    if (!compressed)
        return;
    const enum net_coding coding = net_coding_of(net_request_header(req, "grpc-encoding"));
    if (coding == NET_CODING_IDENTITY) {
        refuse(st, NET_REFUSED_BAD_ENCODING, 500,
               "weir: a compressed message without a grpc-encoding\n");
        return;
    }
    if (coding == NET_CODING_UNKNOWN) {
        unknown_encoding(st);
        return;
    }
    net_collector_init(&st->message, &req->conn->server->pool, coding, message.len,
                       body_limit(st) - NET_GRPC_FRAME_BYTES);
    int r = message.len ? net_collector_add(&st->message, message) : NET_BODY_OK;
    if (r == NET_BODY_OK)
        r = net_collector_finish(&st->message, &req->decoded);
    if (r != NET_BODY_OK)
        body_failed(st, (enum net_refusal)r);
}

void h2_stream_end(struct h2_stream *st)
{
    struct net_request *const req = &st->req;
    st->ended = true;
    if (st->phase != H2_BODY)
        return;
    if (!req->drain) {
        const int r = net_collector_finish(&req->body, &req->decoded);
        if (r != NET_BODY_OK)
            body_failed(st, (enum net_refusal)r);
        else if (st->is_grpc)
            open_message(st);
    }
    if (st->phase != H2_BODY)
        return;
    st->phase = H2_HANDLING;
    req->conn->server->service.handle(req->conn->server->service.ctx, req);
}

void h2_stream_sweep(struct h2_stream *st, int64_t now_ns)
{
    const struct net_limits *const lim = &st->h2->conn->server->limits;
    if (st->phase != H2_BODY && st->phase != H2_HEAD)
        return;
    const bool late = now_ns - st->since_ns > lim->body_timeout_ns ||
                      now_ns - st->moved_ns > lim->stall_timeout_ns || now_ns > st->deadline_ns;
    if (!late)
        return;
    if (st->phase == H2_BODY)
        refuse(st, NET_REFUSED_TIMEOUT, 408, NULL);
    else /* a head that does not end: there is nothing yet to be answered */
        (void)nghttp2_session_terminate_session(st->h2->session, NGHTTP2_ENHANCE_YOUR_CALM);
}
