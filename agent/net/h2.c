/* SPDX-License-Identifier: Apache-2.0 */
/*
 * h2: the session of a connection: bytes in, frames told to streams, frames out. See h2.h.
 *
 * nghttp2 calls back from inside of taking bytes and of giving them. Streams are answered there,
 * which only queues frames; what is queued goes out when nghttp2 has returned.
 */
#include "net/h2.h"

#include "plat/plat.h"

#include <stdlib.h>
#include <string.h>

#define RESETS_FOR_NS ((int64_t)10 * 1000000000)

enum { OUT_BYTES = 32 * 1024 }; /* gathered for one write; a frame of ours has up to 16 KiB */

/* Streams come and go. */

static void link_stream(struct h2 *h2, struct h2_stream *st)
{
    st->next = h2->streams;
    if (st->next)
        st->next->prev = st;
    h2->streams = st;
    conn_set_phase(h2->conn, CONN_HANDLING);
}

static void unlink_stream(struct h2 *h2, struct h2_stream *st)
{
    if (st->prev)
        st->prev->next = st->next;
    else
        h2->streams = st->next;
    if (st->next)
        st->next->prev = st->prev;
    st->prev = st->next = NULL;
}

static void drop_stream(struct h2 *h2, struct h2_stream *st)
{
    if (st->phase == H2_HEAD || st->phase == H2_BODY)
        conn_refused(h2->conn, NET_REFUSED_TRUNCATED);
    unlink_stream(h2, st);
    h2_stream_free(st);
}

/* What nghttp2 tells. */

static int on_begin_headers(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
    struct h2 *const h2 = user;
    if (frame->hd.type != NGHTTP2_HEADERS || frame->headers.cat != NGHTTP2_HCAT_REQUEST)
        return 0;
    struct h2_stream *const st = h2_stream_new(h2, frame->hd.stream_id);
    if (!st || nghttp2_session_set_stream_user_data(session, frame->hd.stream_id, st) != 0) {
        conn_refused(h2->conn, NET_REFUSED_MEMORY);
        if (st)
            h2_stream_free(st);
        return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    }
    link_stream(h2, st);
    return 0;
}

/* Eight parameters: nghttp2's. */
/* NOLINTNEXTLINE(readability-function-size) */
static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
                     size_t name_len, const uint8_t *value, size_t value_len, uint8_t flags,
                     void *user)
{
    (void)flags;
    (void)user;
    struct h2_stream *const st = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);
    if (st && frame->hd.type == NGHTTP2_HEADERS && frame->headers.cat == NGHTTP2_HCAT_REQUEST)
        h2_stream_field(st, (struct weir_bytes){(const char *)name, name_len},
                        (struct weir_bytes){(const char *)value, value_len});
    return 0; /* trailers are read and forgotten */
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *data,
                   size_t len, void *user)
{
    (void)flags;
    (void)user;
    struct h2_stream *const st = nghttp2_session_get_stream_user_data(session, id);
    if (st)
        h2_stream_data(st, (struct weir_bytes){(const char *)data, len});
    return 0;
}

static void count_reset(struct h2 *h2)
{
    const int64_t now_ns = plat_mono_ns();
    if (now_ns - h2->resets_since_ns > RESETS_FOR_NS) {
        h2->resets = 0;
        h2->resets_since_ns = now_ns;
    }
    if (++h2->resets != H2_RESETS_MAX)
        return;
    conn_refused(h2->conn, NET_REFUSED_FLOOD);
    (void)nghttp2_session_terminate_session(h2->session, NGHTTP2_ENHANCE_YOUR_CALM);
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
    struct h2 *const h2 = user;
    if (frame->hd.type == NGHTTP2_RST_STREAM)
        count_reset(h2);
    if (frame->hd.type != NGHTTP2_HEADERS && frame->hd.type != NGHTTP2_DATA)
        return 0;
    struct h2_stream *const st = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);
    if (!st)
        return 0;
    if (frame->hd.type == NGHTTP2_HEADERS && frame->headers.cat == NGHTTP2_HCAT_REQUEST)
        h2_stream_head_done(st);
    if (frame->hd.flags & NGHTTP2_FLAG_END_STREAM)
        h2_stream_end(st);
    return 0;
}

/* Answered before the peer had said all: the rest is not wanted (RFC 9113 §8.1). */
static void reset_rest(struct h2 *h2, const nghttp2_frame *frame)
{
    const struct h2_stream *const st =
        nghttp2_session_get_stream_user_data(h2->session, frame->hd.stream_id);
    if (st && !st->ended)
        (void)nghttp2_submit_rst_stream(h2->session, NGHTTP2_FLAG_NONE, frame->hd.stream_id,
                                        NGHTTP2_NO_ERROR);
}

static int on_sent(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
    (void)session;
    struct h2 *const h2 = user;
    const uint8_t type = frame->hd.type;
    if ((type == NGHTTP2_HEADERS || type == NGHTTP2_DATA) &&
        (frame->hd.flags & NGHTTP2_FLAG_END_STREAM))
        reset_rest(h2, frame);
    if (type == NGHTTP2_GOAWAY) {
        h2->leaving = true;
        if (frame->goaway.error_code != NGHTTP2_NO_ERROR &&
            frame->goaway.error_code != NGHTTP2_ENHANCE_YOUR_CALM)
            conn_refused(h2->conn, NET_REFUSED_BAD_REQUEST);
    }
    return 0;
}

static int on_stream_close(nghttp2_session *session, int32_t id, uint32_t error, void *user)
{
    (void)error;
    struct h2 *const h2 = user;
    struct h2_stream *const st = nghttp2_session_get_stream_user_data(session, id);
    if (st)
        drop_stream(h2, st);
    return 0;
}

/* Making and freeing. */

static int session_new(struct h2 *h2)
{
    nghttp2_session_callbacks *calls;
    int r = nghttp2_session_callbacks_new(&calls);
    if (r != 0)
        return r;
    nghttp2_session_callbacks_set_on_begin_headers_callback(calls, on_begin_headers);
    nghttp2_session_callbacks_set_on_header_callback(calls, on_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(calls, on_data);
    nghttp2_session_callbacks_set_on_frame_recv_callback(calls, on_frame);
    nghttp2_session_callbacks_set_on_frame_send_callback(calls, on_sent);
    nghttp2_session_callbacks_set_on_stream_close_callback(calls, on_stream_close);
    r = nghttp2_session_server_new(&h2->session, calls, h2);
    nghttp2_session_callbacks_del(calls);
    return r;
}

static int submit_settings(const struct h2 *h2)
{
    const struct net_limits *const lim = &h2->conn->server->limits;
    const nghttp2_settings_entry settings[] = {
        {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, H2_STREAMS_MAX},
        {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, H2_STREAM_WINDOW},
        {NGHTTP2_SETTINGS_MAX_FRAME_SIZE, H2_FRAME_MAX},
        {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, (uint32_t)lim->max_head_bytes},
    };
    const int r = nghttp2_submit_settings(h2->session, NGHTTP2_FLAG_NONE, settings,
                                          sizeof settings / sizeof *settings);
    return r != 0 ? r
                  : nghttp2_session_set_local_window_size(h2->session, NGHTTP2_FLAG_NONE, 0,
                                                          H2_CONN_WINDOW);
}

bool h2_open(struct conn *c)
{
    struct net_body_pool *const pool = &c->server->pool;
    if (!net_body_pool_take(pool, H2_SESSION_BYTES))
        return false;
    struct h2 *const h2 = calloc(1, sizeof *h2);
    if (h2)
        h2->conn = c;
    if (!h2 || session_new(h2) != 0) {
        free(h2);
        net_body_pool_give(pool, H2_SESSION_BYTES);
        return false;
    }
    c->h2 = h2;
    if (submit_settings(h2) != 0)
        return false; /* whoever closes the connection frees the session */
    h2_flush(c);
    return true;
}

static void session_free(struct h2 *h2)
{
    nghttp2_session_del(h2->session);
    free(h2);
}

void h2_done(struct conn *c)
{
    struct h2 *const h2 = c->h2;
    if (!h2)
        return;
    while (h2->streams)
        drop_stream(h2, h2->streams);
    net_body_pool_give(&c->server->pool, H2_SESSION_BYTES);
    c->h2 = NULL;
    session_free(h2);
}

/* Bytes. */

static bool write_out(struct conn *c, char *block, size_t len)
{
    if (len == 0) {
        free(block);
        return true;
    }
    conn_write(c, block, len);
    return !c->closing;
}

/* As much as one block holds; false when that was the last, or the connection is over. */
static bool send_some(struct conn *c)
{
    struct h2 *const h2 = c->h2;
    char *const block = malloc(OUT_BYTES);
    if (!block) {
        conn_refused(c, NET_REFUSED_MEMORY);
        conn_close(c);
        return false;
    }
    size_t len = 0;
    ssize_t n = 1;
    while (n > 0 && len <= OUT_BYTES / 2 - 16) {
        const uint8_t *bytes;
        h2->inside = true;
        n = nghttp2_session_mem_send(h2->session, &bytes);
        h2->inside = false;
        if (n > 0) {
            memcpy(block + len, bytes, (size_t)n);
            len += (size_t)n;
        }
    }
    if (!write_out(c, block, len))
        return false;
    if (n < 0) {
        conn_refused(c, NET_REFUSED_MEMORY);
        conn_close(c);
    }
    return n > 0;
}

static bool is_over(const struct h2 *h2)
{
    if (h2->conn->unwritten || h2->streams)
        return false;
    return h2->leaving ||
           (!nghttp2_session_want_read(h2->session) && !nghttp2_session_want_write(h2->session));
}

void h2_flush(struct conn *c)
{
    if (c->closing || c->h2->inside)
        return;
    while (!c->unwritten && nghttp2_session_want_write(c->h2->session) && send_some(c))
        ;
    if (c->closing)
        return;
    if (is_over(c->h2)) {
        conn_close(c);
        return;
    }
    if (!c->h2->streams)
        conn_set_phase(c, CONN_IDLE);
    if (c->unwritten)
        conn_read_pause(c); /* a peer that does not read is not worked for */
    else
        conn_read_go(c);
}

void h2_read(struct conn *c, const char *bytes, size_t len)
{
    struct h2 *const h2 = c->h2;
    h2->inside = true;
    const ssize_t n = nghttp2_session_mem_recv(h2->session, (const uint8_t *)bytes, len);
    h2->inside = false;
    if (n >= 0) {
        h2_flush(c);
        return;
    }
    if (n == NGHTTP2_ERR_FLOODED)
        conn_refused(c, NET_REFUSED_FLOOD);
    else
        conn_refused(c, n == NGHTTP2_ERR_NOMEM ? NET_REFUSED_MEMORY : NET_REFUSED_BAD_REQUEST);
    conn_close(c);
}

/* Time, and the end. */

void h2_stop(struct conn *c)
{
    (void)nghttp2_submit_goaway(c->h2->session, NGHTTP2_FLAG_NONE,
                                nghttp2_session_get_last_proc_stream_id(c->h2->session),
                                NGHTTP2_NO_ERROR, NULL, 0);
    h2_flush(c);
}

void h2_sweep(struct conn *c, int64_t now_ns)
{
    struct h2_stream *next;
    for (struct h2_stream *st = c->h2->streams; st; st = next) {
        next = st->next; /* an answer is only queued here */
        h2_stream_sweep(st, now_ns);
    }
    const int64_t idle_for_ns = now_ns - c->since_ns;
    if (c->phase == CONN_IDLE && idle_for_ns > c->server->limits.idle_timeout_ns)
        h2_stop(c);
    else
        h2_flush(c);
}

void h2_answer(struct net_request *req, const struct answer *a)
{
    struct h2_stream *const st = (struct h2_stream *)req;
    struct conn *const c = req->conn;
    h2_stream_answer(st, a);
    h2_flush(c);
}
