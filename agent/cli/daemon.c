/* SPDX-License-Identifier: Apache-2.0 */
/*
 * daemon: see daemon.h.
 *
 * The stop is a chain of callbacks: receivers, then the pipeline and the store, then the web,
 * then the queries still under way. A start that fails half way goes down the same chain, so
 * there is one way to take things apart. A timer bounds it.
 *
 * Threads: main. Memory: one struct daemon on the stack of daemon_run.
 */
#include "cli/daemon.h"

#include "cli/api.h"
#include "cli/banner.h"
#include "cli/receive_metrics.h"
#include "cli/reserve.h"
#include "cli/stats_opts.h"
#include "log/log.h"
#include "net/http.h"
#include "pipeline/pipeline.h"
#include "plat/plat.h"
#include "receive/receive.h"
#include "self/web.h"
#include "store/store.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <uv.h>

#define SECOND_NS INT64_C(1000000000)
/* Ten seconds in all (contracts: clients, exit codes), of which requests in progress get two. */
#define STOP_FOR_NS (10 * SECOND_NS)
#define RECEIVERS_GRACE_NS (2 * SECOND_NS)
#define WEB_GRACE_NS (1 * SECOND_NS)
#define DATADOG_SOCKET "/var/run/datadog/apm.socket"
#define DATADOG_FOLDER "/var/run/datadog"

enum { DATADOG = 0, OTLP, GRPC, WEB, SERVER_COUNT };
enum { SIGNAL_COUNT = 2 };

struct daemon {
    const struct config *config;
    uv_loop_t loop;
    uv_signal_t signals[SIGNAL_COUNT];
    struct reserve reserve;
    uv_timer_t guard; /* ends the loop when the stop takes too long */
    struct store *store;
    struct pipeline *pipeline;
    struct receive *receive;
    struct api *api;
    struct web *web;
    struct net_server *servers[SERVER_COUNT];
    struct banner banner;
    int64_t stop_mono_ns; /* when the stop began; 0 before */
    size_t stopping;      /* receivers that have not stopped yet */
    bool web_stopped;
    bool guard_fired;
    int status;
};

static const char *const server_names[SERVER_COUNT] = {"datadog", "otlp", "otlp_grpc", "web"};

__attribute__((format(printf, 1, 2))) static int fail(const char *format, ...)
{
    char text[1024];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    (void)fprintf(stderr, "weir agent: %s\n", text);
    return -1;
}

/* The stop. */

static void end_if_idle(void *ctx)
{
    struct daemon *const d = ctx;
    if (d->web_stopped && (!d->api || api_pending(d->api) == 0))
        uv_stop(&d->loop);
}

static void on_web_stopped(void *ctx)
{
    struct daemon *const d = ctx;
    d->web_stopped = true;
    end_if_idle(d);
}

static void stop_pipeline_and_web(struct daemon *d)
{
    if (d->pipeline) {
        const int64_t left = STOP_FOR_NS - WEB_GRACE_NS - (plat_mono_ns() - d->stop_mono_ns);
        const int r = pipeline_stop(d->pipeline, left > SECOND_NS ? left : SECOND_NS);
        if (r != 0) {
            LOG_ERROR("agent", "stop_incomplete", "err", plat_strerror(-r));
            d->status = 1;
        }
    }
    if (d->servers[WEB])
        net_server_stop(d->servers[WEB], WEB_GRACE_NS, on_web_stopped, d);
    else
        on_web_stopped(d);
}

static void on_receiver_stopped(void *ctx)
{
    struct daemon *const d = ctx;
    if (--d->stopping == 0)
        stop_pipeline_and_web(d);
}

static void on_guard(uv_timer_t *timer)
{
    struct daemon *const d = timer->data;
    d->guard_fired = true;
    uv_stop(&d->loop);
}

static void begin_stop(struct daemon *d)
{
    d->stop_mono_ns = plat_mono_ns();
    d->stopping = 1; /* ours: the chain does not run ahead while it is started */
    if (d->web)
        web_set_phase(d->web, WEB_STOPPING);
    (void)uv_timer_start(&d->guard, on_guard, STOP_FOR_NS / 1000000, 0);
    for (size_t i = 0; i < WEB; i++) {
        if (d->servers[i]) {
            d->stopping++;
            net_server_stop(d->servers[i], RECEIVERS_GRACE_NS, on_receiver_stopped, d);
        }
    }
    on_receiver_stopped(d);
}

static void end_at_once(int number)
{
    (void)number;
    _exit(1);
}

static void on_signal(uv_signal_t *handle, int number)
{
    struct daemon *const d = handle->data;
    if (d->stop_mono_ns)
        return;
    /* The loop is about to be blocked by the writes: a second signal must not wait for it. */
    for (size_t i = 0; i < SIGNAL_COUNT; i++)
        (void)uv_signal_stop(&d->signals[i]);
    const struct sigaction action = {.sa_handler = end_at_once};
    (void)sigaction(SIGINT, &action, NULL);
    (void)sigaction(SIGTERM, &action, NULL);
    LOG_INFO("agent", "stopping", "signal", number == SIGINT ? "SIGINT" : "SIGTERM");
    begin_stop(d);
}

/* The start. */

static int start_loop(struct daemon *d)
{
    static const int numbers[SIGNAL_COUNT] = {SIGINT, SIGTERM};
    const struct sigaction ignore = {.sa_handler = SIG_IGN};
    /* A peer that left, and a file at its size limit, are errors of the call. */
    (void)sigaction(SIGPIPE, &ignore, NULL);
    (void)sigaction(SIGXFSZ, &ignore, NULL);
    int r = uv_loop_init(&d->loop);
    if (r != 0)
        return fail("cannot make an event loop: %s", uv_strerror(r));
    (void)uv_timer_init(&d->loop, &d->guard);
    d->guard.data = d;
    for (size_t i = 0; i < SIGNAL_COUNT; i++) {
        (void)uv_signal_init(&d->loop, &d->signals[i]);
        d->signals[i].data = d;
    }
    for (size_t i = 0; r == 0 && i < SIGNAL_COUNT; i++)
        r = uv_signal_start(&d->signals[i], on_signal, numbers[i]);
    return r == 0 ? 0 : fail("cannot take signals: %s", uv_strerror(r));
}

/* Connections are bounded by their option; the default of 1,024 descriptors lies below it. */
static void raise_fd_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == limit.rlim_max)
        return;
    limit.rlim_cur = limit.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &limit);
}

static int take_reserve(struct daemon *d)
{
    const size_t fds = SERVER_COUNT * (size_t)d->config->http_max_connections + 64;
    const int r = reserve_take(&d->reserve, &d->loop, fds);
    return r == 0 ? 0 : fail("cannot make ready for want of memory: %s", uv_strerror(r));
}

static int open_store(struct daemon *d)
{
    const struct config *const c = d->config;
    struct store_error error = {.code = 0};
    bool replaced = false;
    char path[4096];
    if (strcmp(c->store_path, CONFIG_AUTO) == 0) {
        const int r = store_default_path(path, sizeof path);
        if (r != 0)
            return fail("store.path: no folder to keep the store in: %s", plat_strerror(-r));
    } else {
        (void)snprintf(path, sizeof path, "%s", c->store_path);
    }
    const struct store_opts opts = {.path = path,
                                    .retention_for_ns = c->store_retention_time,
                                    .retention_bytes = (uint64_t)c->store_retention_size};
    if (store_open(&opts, &d->store, &replaced, &error) != 0)
        return fail("store.path: %s", error.text);
    if (replaced)
        LOG_ERROR("store", "corrupt_store_replaced", "folder", path);
    banner_set_store(&d->banner, path);
    return 0;
}

static int open_pipeline(struct daemon *d)
{
    struct cli_stats_opts stats;
    int r = WEIR_ENOMEM;
    if (cli_stats_opts_init(d->config, &stats) == 0) {
        const struct pipeline_opts opts = {.loop = &d->loop,
                                           .store = d->store,
                                           .stats = stats.opts,
                                           .pending_max_bytes =
                                               (size_t)d->config->store_max_pending_size};
        r = pipeline_new(&opts, &d->pipeline);
    }
    cli_stats_opts_done(&stats);
    if (r == 0)
        return 0;
    return fail("cannot start the pipeline: %s", r > -1000 ? plat_strerror(-r) : weir_strerror(r));
}

static void fill_figures(void *ctx, struct self_figures *f)
{
    struct daemon *const d = ctx;
    for (size_t i = 0; i < SERVER_COUNT; i++) {
        if (!d->servers[i])
            continue;
        f->server_names[f->server_count] = server_names[i];
        net_server_get_counts(d->servers[i], &f->servers[f->server_count]);
        f->server_count++;
    }
}

static void more_figures(void *ctx, struct self_text *t)
{
    struct daemon *const d = ctx;
    struct receive_counts counts;
    receive_get_counts(d->receive, &counts);
    cli_receive_metrics(&counts, t);
}

static void answer_api(void *ctx, struct net_request *req)
{
    struct daemon *const d = ctx;
    api_answer(d->api, req);
}

static int open_rooms(struct daemon *d)
{
    const struct config *const c = d->config;
    const char *const socket = banner_socket(&d->banner);
    const struct receive_opts receive = {.pipeline = d->pipeline,
                                         .datadog_port = c->receivers_datadog_listen_address.port,
                                         .socket_path = socket,
                                         .max_body_bytes = (size_t)c->http_max_body_size};
    const struct api_opts api = {
        .loop = &d->loop, .pipeline = d->pipeline, .config = c, .idle = end_if_idle, .ctx = d};
    const struct web_opts web = {.pipeline = d->pipeline,
                                 .ctx = d,
                                 .api = answer_api,
                                 .fill = fill_figures,
                                 .more = more_figures};
    if (receive_new(&receive, &d->receive) != 0 || api_new(&api, &d->api) != 0 ||
        web_new(&web, &d->web) != 0)
        return fail("out of memory");
    return 0;
}

static int listen_tcp(struct daemon *d, size_t server, size_t option,
                      const struct config_address *address)
{
    int port = 0;
    if (!address->host)
        return 0;
    const int r = net_server_listen_tcp(d->servers[server], address->host, address->port, &port);
    const char *const name = config_options[option].name;
    if (r == -EADDRINUSE)
        return fail("--%s: port %d of %s is taken", name, address->port, address->host);
    if (r != 0)
        return fail("--%s: cannot listen on port %d of %s: %s", name, address->port, address->host,
                    plat_strerror(-r));
    banner_set_address(&d->banner, (enum banner_address)server, address->host, port);
    return 0;
}

static int open_server(struct daemon *d, size_t server, struct net_service service)
{
    const struct config *const c = d->config;
    const struct net_limits limits = {.max_connections = (size_t)c->http_max_connections,
                                      .max_head_bytes = (size_t)c->http_max_head_size,
                                      .max_headers = (size_t)c->http_max_headers,
                                      .max_body_bytes = (size_t)c->http_max_body_size,
                                      .max_buffered_bytes = (size_t)c->http_max_buffered_size,
                                      .head_timeout_ns = c->http_head_timeout,
                                      .body_timeout_ns = c->http_body_timeout,
                                      .stall_timeout_ns = c->http_stall_timeout,
                                      .idle_timeout_ns = c->http_idle_timeout};
    const int r = net_server_new(&d->loop, &service, &limits, &d->servers[server]);
    return r == 0 ? 0 : fail("cannot make a server: %s", plat_strerror(-r));
}

/* Which socket, if any: the rule of receivers.datadog.socket. */
static void choose_socket(struct daemon *d)
{
    const char *const path = d->config->receivers_datadog_socket;
    struct stat st;
    if (strcmp(path, CONFIG_AUTO) != 0)
        banner_set_socket(&d->banner, path);
    else if (stat(DATADOG_FOLDER, &st) == 0 && S_ISDIR(st.st_mode) &&
             access(DATADOG_FOLDER, W_OK) == 0)
        banner_set_socket(&d->banner, DATADOG_SOCKET);
}

static int listen_unix(struct daemon *d)
{
    const char *const path = banner_socket(&d->banner);
    if (!path)
        return 0;
    const int r = net_server_listen_unix(d->servers[DATADOG], path);
    if (r == -EADDRINUSE)
        return fail("--receivers.datadog.socket: %s is taken", path);
    return r == 0 ? 0
                  : fail("--receivers.datadog.socket: cannot listen on %s: %s", path,
                         plat_strerror(-r));
}

static int open_listeners(struct daemon *d)
{
    const struct config *const c = d->config;
    if (open_server(d, DATADOG, receive_datadog_service(d->receive)) != 0 ||
        open_server(d, OTLP, receive_otlp_service(d->receive)) != 0 ||
        open_server(d, GRPC, receive_grpc_service(d->receive)) != 0 ||
        open_server(d, WEB, web_service(d->web)) != 0)
        return -1;
    if (listen_tcp(d, WEB, CONFIG_AT_web_listen_address, &c->web_listen_address) != 0 ||
        listen_tcp(d, DATADOG, CONFIG_AT_receivers_datadog_listen_address,
                   &c->receivers_datadog_listen_address) != 0 ||
        listen_tcp(d, OTLP, CONFIG_AT_receivers_otlp_http_listen_address,
                   &c->receivers_otlp_http_listen_address) != 0 ||
        listen_tcp(d, GRPC, CONFIG_AT_receivers_otlp_grpc_listen_address,
                   &c->receivers_otlp_grpc_listen_address) != 0)
        return -1;
    return listen_unix(d);
}

static int start(struct daemon *d)
{
    raise_fd_limit();
    choose_socket(d);
    if (take_reserve(d) != 0 || open_store(d) != 0 || open_pipeline(d) != 0 || open_rooms(d) != 0 ||
        open_listeners(d) != 0)
        return -1;
    web_set_phase(d->web, WEB_SERVING);
    banner_print(&d->banner);
    banner_log(&d->banner);
    return 0;
}

static void on_closed(uv_handle_t *handle)
{
    (void)handle;
}

static void take_apart(struct daemon *d)
{
    for (size_t i = 0; i < SERVER_COUNT; i++)
        net_server_free(d->servers[i]);
    web_free(d->web);
    api_free(d->api);
    receive_free(d->receive);
    pipeline_free(d->pipeline);
    uv_close((uv_handle_t *)&d->guard, on_closed);
    for (size_t i = 0; i < SIGNAL_COUNT; i++)
        uv_close((uv_handle_t *)&d->signals[i], on_closed);
    (void)uv_run(&d->loop, UV_RUN_DEFAULT);
    (void)uv_loop_close(&d->loop);
    store_close(d->store);
}

int daemon_run(const struct config *config)
{
    struct daemon d;
    memset(&d, 0, sizeof d);
    d.config = config;
    plat_heap_init();
    if (start_loop(&d) != 0)
        return 1;
    if (start(&d) != 0) {
        d.status = 1;
        begin_stop(&d);
    }
    (void)uv_run(&d.loop, UV_RUN_DEFAULT);
    LOG_INFO("agent", "stopped", "status", LOG_I64(d.status));
    if (d.guard_fired) {
        /* A query is still running on a worker, which the end of the process would wait for. */
        _exit(1);
    }
    take_apart(&d);
    return d.status;
}
