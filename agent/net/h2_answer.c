/* SPDX-License-Identifier: Apache-2.0 */
/*
 * h2_answer: an answer as the frames of a stream. See h2.h.
 *
 * A call that went well is answered by a message, and its status in trailers; one that did not by
 * the status alone ("Trailers-Only"), whatever its reason, because gRPC clients look at nothing
 * else.
 */
#include "net/grpc.h"
#include "net/h2.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIELDS_MAX = 24, NAME_MAX_BYTES = 64, MESSAGE_MAX = 512 };

struct fields {
    nghttp2_nv at[FIELDS_MAX];
    char names[FIELDS_MAX][NAME_MAX_BYTES];
    size_t count;
};

/* nghttp2 writes to none of them, and says so nowhere. */
static uint8_t *bytes_of(const char *text)
{
    const union {
        const char *in;
        uint8_t *out;
    } cast = {text};
    return cast.out;
}

/* nghttp2 copies both; names are lower case there (RFC 9113 §8.2). */
static void add(struct fields *f, const char *name, const char *value)
{
    const size_t len = strlen(name);
    if (f->count == FIELDS_MAX || len >= NAME_MAX_BYTES)
        return;
    char *const lower = f->names[f->count];
    for (size_t i = 0; i < len; i++)
        lower[i] = (char)(name[i] >= 'A' && name[i] <= 'Z' ? name[i] + ('a' - 'A') : name[i]);
    f->at[f->count++] = (nghttp2_nv){.name = bytes_of(lower),
                                     .value = bytes_of(value),
                                     .namelen = len,
                                     .valuelen = strlen(value),
                                     .flags = NGHTTP2_NV_FLAG_NONE};
}

static void add_extra(struct fields *f, const struct answer *a)
{
    for (size_t i = 0; i < a->header_count; i++)
        add(f, a->headers[i].name, a->headers[i].value);
}

/* The body, and after it the trailers of a call. Eight parameters: nghttp2's. */
/* NOLINTNEXTLINE(readability-function-size) */
static ssize_t read_answer(nghttp2_session *session, int32_t id, uint8_t *buf, size_t cap,
                           uint32_t *flags, nghttp2_data_source *source, void *user)
{
    (void)user;
    struct h2_stream *const st = source->ptr;
    const size_t left = st->answer_bytes - st->answer_at;
    const size_t n = left < cap ? left : cap;
    memcpy(buf, st->answer + st->answer_at, n);
    st->answer_at += n;
    if (st->answer_at < st->answer_bytes)
        return (ssize_t)n;
    *flags |= NGHTTP2_DATA_FLAG_EOF;
    if (st->is_grpc) {
        struct fields f = {.count = 0};
        add(&f, "grpc-status", "0");
        *flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
        if (nghttp2_submit_trailer(session, id, f.at, f.count) != 0)
            return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    }
    return (ssize_t)n;
}

static bool keep_body(struct h2_stream *st, const void *body, size_t bytes)
{
    const size_t front = st->is_grpc ? NET_GRPC_FRAME_BYTES : 0;
    st->answer = malloc(front + bytes + 1);
    if (!st->answer)
        return false;
    if (st->is_grpc)
        net_grpc_frame(st->answer, bytes);
    if (bytes)
        memcpy(st->answer + front, body, bytes);
    st->answer_bytes = front + bytes;
    return true;
}

static int submit(struct h2_stream *st, const struct fields *f, bool body)
{
    const nghttp2_data_provider provider = {.source.ptr = st, .read_callback = read_answer};
    return nghttp2_submit_response(st->h2->session, st->id, f->at, f->count,
                                   body ? &provider : NULL);
}

static int answer_call(struct h2_stream *st, const struct answer *a)
{
    struct fields f = {.count = 0};
    char code[16];
    char text[MESSAGE_MAX];
    add(&f, ":status", "200");
    add(&f, "content-type", "application/grpc");
    if (a->status == 200)
        return keep_body(st, a->body, a->body_bytes) ? submit(st, &f, true) : NGHTTP2_ERR_NOMEM;
    (void)snprintf(code, sizeof code, "%d", (int)net_grpc_code_of(a->status));
    (void)net_grpc_message((struct weir_bytes){a->body, a->body_bytes}, text, sizeof text);
    add(&f, "grpc-status", code);
    add(&f, "grpc-message", text);
    if (a->status == 415)
        add(&f, "grpc-accept-encoding", "identity,gzip,deflate");
    add_extra(&f, a);
    return submit(st, &f, false);
}

static int answer_plain(struct h2_stream *st, const struct answer *a)
{
    struct fields f = {.count = 0};
    char status[16];
    char length[24];
    const bool lengthy = a->status != 204 && a->status != 304;
    (void)snprintf(status, sizeof status, "%d", a->status);
    (void)snprintf(length, sizeof length, "%zu", a->body_bytes);
    add(&f, ":status", status);
    if (a->content_type)
        add(&f, "content-type", a->content_type);
    if (lengthy)
        add(&f, "content-length", length);
    add_extra(&f, a);
    const bool body = lengthy && !a->head_only && a->body_bytes;
    if (body && !keep_body(st, a->body, a->body_bytes))
        return NGHTTP2_ERR_NOMEM;
    return submit(st, &f, body);
}

void h2_stream_answer(struct h2_stream *st, const struct answer *a)
{
    struct h2 *const h2 = st->h2;
    struct net_server *const s = h2->conn->server;
    if (st->phase == H2_ANSWERED)
        return;
    st->phase = H2_ANSWERED;
    s->counts.responses[a->status / 100 < 6 ? a->status / 100 : 5]++;
    h2->conn->served = true;
    const int r = st->is_grpc ? answer_call(st, a) : answer_plain(st, a);
    if (r != 0) {
        server_refused(s, NULL, NET_REFUSED_MEMORY);
        (void)nghttp2_submit_rst_stream(h2->session, NGHTTP2_FLAG_NONE, st->id,
                                        NGHTTP2_INTERNAL_ERROR);
    }
    /* The answer was copied: what the request was made of goes now, not when the peer closes. */
    net_collector_done(&st->message);
    net_collector_done(&st->req.body);
    st->req.decoded = (struct weir_bytes){NULL, 0};
}
