/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server: making, sweeping, stopping. See http.h.
 *
 * One timer a server looks at every connection some times within the shortest limit; it runs only
 * while there is a connection, so an agent nobody talks to does not wake up.
 */
#include "net/h2.h"

#include "plat/plat.h"

#include <signal.h>
#include <stdlib.h>

#define MS ((int64_t)1000000)
#define SECOND ((int64_t)1000000000)
#define MIB ((size_t)1024 * 1024)

static size_t size_or(size_t value, size_t otherwise)
{
    return value ? value : otherwise;
}

static int64_t time_or(int64_t value, int64_t otherwise)
{
    return value > 0 ? value : otherwise;
}

static struct net_limits with_defaults(const struct net_limits *given)
{
    const struct net_limits none = {0};
    const struct net_limits *const l = given ? given : &none;
    return (struct net_limits){
        .max_connections = size_or(l->max_connections, 2000),
        .max_head_bytes = size_or(l->max_head_bytes, 32 * (size_t)1024),
        .max_headers = size_or(l->max_headers, 100),
        .max_body_bytes = size_or(l->max_body_bytes, 25 * MIB),
        .max_buffered_bytes = size_or(l->max_buffered_bytes, 256 * MIB),
        .head_timeout_ns = time_or(l->head_timeout_ns, 10 * SECOND),
        .body_timeout_ns = time_or(l->body_timeout_ns, 30 * SECOND),
        .stall_timeout_ns = time_or(l->stall_timeout_ns, 5 * SECOND),
        .idle_timeout_ns = time_or(l->idle_timeout_ns, 75 * SECOND),
    };
}

/* A write to a connection that was reset must be an error, not the end of the process. */
static void ignore_sigpipe(void)
{
    struct sigaction now;
    if (sigaction(SIGPIPE, NULL, &now) == 0 && now.sa_handler == SIG_DFL)
        (void)signal(SIGPIPE, SIG_IGN);
}

int net_server_new(uv_loop_t *loop, const struct net_service *service,
                   const struct net_limits *limits, struct net_server **ret_server)
{
    struct net_server *const s = calloc(1, sizeof *s);
    if (!s)
        return -ENOMEM;
    s->loop = loop;
    s->service = *service;
    s->limits = with_defaults(limits);
    s->pool.max_bytes = s->limits.max_buffered_bytes;
    const int r = uv_timer_init(loop, &s->sweep);
    if (r != 0) {
        free(s);
        return r;
    }
    s->sweep.data = s;
    s->open_handles = 1;
    ignore_sigpipe();
    *ret_server = s;
    return 0;
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static uint64_t sweep_every_ms(const struct net_limits *l)
{
    const int64_t shortest = least(least(l->head_timeout_ns, l->body_timeout_ns),
                                   least(l->stall_timeout_ns, l->idle_timeout_ns));
    const int64_t ms = least(shortest / 4 / MS, 500);
    return ms < 5 ? 5 : (uint64_t)ms;
}

static void close_all(struct net_server *s)
{
    while (s->conns)
        conn_close(s->conns);
}

static void on_timer_closed(uv_handle_t *handle)
{
    server_handle_closed(handle->data);
}

/* The timer goes last: it watches over the connections that may still finish. */
void server_handle_closed(struct net_server *server)
{
    server->open_handles--;
    if (!server->stopping)
        return;
    uv_handle_t *const timer = (uv_handle_t *)&server->sweep;
    if (server->open_handles == 1 && !uv_is_closing(timer))
        uv_close(timer, on_timer_closed);
    else if (server->open_handles == 0 && server->done)
        server->done(server->done_ctx);
}

static void on_sweep(uv_timer_t *timer)
{
    struct net_server *const s = timer->data;
    const int64_t now_ns = plat_mono_ns();
    struct conn *next;
    for (struct conn *c = s->conns; c; c = next) {
        next = c->next; /* a sweep closes c alone */
        conn_sweep(c, now_ns);
    }
    if (s->stopping && now_ns >= s->stop_at_ns)
        close_all(s);
    const bool all_taken = listeners_retry(s);
    if (!s->conns && all_taken && !s->stopping) {
        (void)uv_timer_stop(timer);
        s->sweeping = false;
    }
}

void server_watch(struct net_server *server)
{
    if (server->sweeping)
        return;
    const uint64_t every_ms = sweep_every_ms(&server->limits);
    server->sweeping = uv_timer_start(&server->sweep, on_sweep, every_ms, every_ms) == 0;
}

void server_refused(struct net_server *server, const struct net_request *req,
                    enum net_refusal reason)
{
    server->counts.refused[reason]++;
    if (server->service.refused)
        server->service.refused(server->service.ctx, req, reason);
}

void net_server_get_counts(const struct net_server *server, struct net_counts *ret_counts)
{
    *ret_counts = server->counts;
    ret_counts->buffered_bytes = server->pool.used_bytes;
}

static void close_idle(struct net_server *s)
{
    struct conn *next;
    for (struct conn *c = s->conns; c; c = next) {
        next = c->next;
        if (c->h2)
            h2_stop(c);
        else if (c->phase == CONN_IDLE)
            conn_close(c);
    }
}

void net_server_stop(struct net_server *server, int64_t grace_ns, void (*done)(void *ctx),
                     void *ctx)
{
    server->stopping = true;
    server->stop_at_ns = plat_mono_ns() + grace_ns;
    server->done = done;
    server->done_ctx = ctx;
    listeners_close(server);
    close_idle(server);
    if (grace_ns <= 0)
        close_all(server);
    else
        server_watch(server);
    if (server->open_handles == 1) /* only the timer: nothing else will close */
        uv_close((uv_handle_t *)&server->sweep, on_timer_closed);
}

void net_server_free(struct net_server *server)
{
    if (!server)
        return;
    net_body_pool_done(&server->pool);
    free(server->read_buf);
    free(server);
}
