/* SPDX-License-Identifier: Apache-2.0 */
/*
 * web: see web.h. One row a page; route picks the row by path, handle answers by it.
 *
 * Threads: loop. Memory: each answer's text for as long as it is copied.
 */
#include "self/web.h"

#include "plat/plat.h"
#include "self/metrics.h"
#include "self/newcomers.h"
#include "self/reconcile.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define API_MAX_BODY_BYTES ((size_t)1 << 20)
#define PAGE_MAX_BODY_BYTES ((size_t)64 << 10)
#define WINDOWS_MAX PIPELINE_RECENT_MAX /* of sealed ones, and as many open ones */
#define TEXT "text/plain; charset=utf-8"

struct web {
    struct web_opts opts;
    enum web_phase phase;
};

struct page {
    const char *path;
    void (*answer)(struct web *web, struct net_request *req);
};

static void answer_text(struct net_request *req, int status, const char *text)
{
    net_respond(req, status, TEXT, text, strlen(text), NULL, 0);
}

/* Takes the text. */
static void answer_built(struct net_request *req, struct self_text *text, const char *content_type)
{
    if (text->failed)
        answer_text(req, 503, "no memory for the answer\n");
    else
        net_respond(req, 200, content_type, text->ptr, text->len, NULL, 0);
    self_text_done(text);
}

static void answer_healthy(struct web *web, struct net_request *req)
{
    (void)web;
    answer_text(req, 200, "weir is healthy.\n");
}

static void answer_ready(struct web *web, struct net_request *req)
{
    struct pipeline_health health;
    if (web->phase == WEB_STARTING) {
        answer_text(req, 503, "not ready: starting\n");
        return;
    }
    if (web->phase == WEB_STOPPING) {
        answer_text(req, 503, "not ready: stopping\n");
        return;
    }
    pipeline_get_health(web->opts.pipeline, &health);
    if (!health.store_ok && health.batches_pending > 0) {
        struct self_text t = {.ptr = NULL};
        self_text_puts(&t, "not ready: ");
        self_text_u64(&t, health.batches_pending);
        self_text_puts(&t, " sealed windows wait for the store, which cannot be written: ");
        self_text_puts(&t, plat_strerror(-health.store_code));
        self_text_puts(&t, "\n");
        if (t.failed)
            answer_text(req, 503, "not ready: the store cannot be written\n");
        else
            net_respond(req, 503, TEXT, t.ptr, t.len, NULL, 0);
        self_text_done(&t);
        return;
    }
    answer_text(req, 200, "weir is ready.\n");
}

static void answer_metrics(struct web *web, struct net_request *req)
{
    struct self_figures f;
    struct self_text t = {.ptr = NULL};
    memset(&f, 0, sizeof f);
    pipeline_get_health(web->opts.pipeline, &f.pipeline);
    web->opts.fill(web->opts.ctx, &f);
    self_figures_process(&f);
    self_figures_write(&f, &t);
    if (web->opts.more)
        web->opts.more(web->opts.ctx, &t);
    answer_built(req, &t, METRICS_CONTENT_TYPE);
}

/* Counts of open windows, newest first: the library's snapshot has the oldest first. */
static size_t open_windows(struct pipeline *p, struct pipeline_window *windows, size_t cap)
{
    struct weir_batch *batches[WINDOWS_MAX];
    const size_t count = weir_stats_snapshot(pipeline_stats(p), batches, WINDOWS_MAX);
    size_t n = 0;
    for (size_t i = count; i > 0; i--) {
        if (n < cap) {
            windows[n] = (struct pipeline_window){.stored = false, .lost = false};
            weir_batch_get_info(batches[i - 1], &windows[n].info);
            n++;
        }
        weir_batch_release(batches[i - 1]);
    }
    return n;
}

static void answer_reconcile(struct web *web, struct net_request *req)
{
    struct pipeline *const p = web->opts.pipeline;
    struct pipeline_health health;
    struct self_text t = {.ptr = NULL};
    struct pipeline_window *const windows = calloc((size_t)2 * WINDOWS_MAX, sizeof *windows);
    if (!windows) {
        answer_text(req, 503, "no memory for the answer\n");
        return;
    }
    /* Poll first: what is in the inbox is received and not yet anywhere else. */
    pipeline_poll(p);
    size_t count = open_windows(p, windows, WINDOWS_MAX);
    count += pipeline_recent(p, windows + count, WINDOWS_MAX);
    pipeline_get_health(p, &health);
    reconcile_write(&health, windows, count, &t);
    free(windows);
    answer_built(req, &t, "application/json");
}

static void answer_newcomers(struct web *web, struct net_request *req)
{
    struct self_text t = {.ptr = NULL};
    pipeline_poll(web->opts.pipeline);
    newcomers_write(pipeline_stats(web->opts.pipeline), &t);
    answer_built(req, &t, "application/json");
}

static void answer_api(struct web *web, struct net_request *req)
{
    web->opts.api(web->opts.ctx, req);
}

static const struct page pages[] = {
    {.path = "/metrics", .answer = answer_metrics},
    {.path = "/-/healthy", .answer = answer_healthy},
    {.path = "/-/ready", .answer = answer_ready},
    {.path = "/debug/reconcile", .answer = answer_reconcile},
    {.path = "/debug/newcomers", .answer = answer_newcomers},
};
static const struct page api_page = {.path = "/api/v1/", .answer = answer_api};

static bool bytes_are(struct weir_bytes b, const char *text)
{
    const size_t n = strlen(text);
    return b.len == n && (n == 0 || memcmp(b.ptr, text, n) == 0);
}

static const struct page *page_of(const struct web *web, struct weir_bytes path)
{
    const size_t n = strlen(api_page.path);
    for (size_t i = 0; i < sizeof pages / sizeof *pages; i++) {
        if (bytes_are(path, pages[i].path))
            return &pages[i];
    }
    return web->opts.api && path.len > n && memcmp(path.ptr, api_page.path, n) == 0 ? &api_page
                                                                                    : NULL;
}

static void web_route(void *ctx, const struct net_request *req, struct net_route *ret_route)
{
    const struct web *const web = ctx;
    const struct page *const page = page_of(web, net_request_path(req));
    ret_route->body = NET_BODY_DRAIN;
    ret_route->max_body_bytes = PAGE_MAX_BODY_BYTES;
    if (bytes_are(net_request_header(req, "Sec-Fetch-Site"), "cross-site")) {
        ret_route->refuse_status = 403;
        ret_route->refuse_text = "requests from other sites are refused\n";
        return;
    }
    if (!page) {
        ret_route->refuse_status = 404;
        ret_route->refuse_text = "not found\n";
        return;
    }
    if (page == &api_page) {
        ret_route->body = NET_BODY_TAKE;
        ret_route->max_body_bytes = API_MAX_BODY_BYTES;
    }
}

static void web_handle(void *ctx, struct net_request *req)
{
    struct web *const web = ctx;
    const struct page *const page = page_of(web, net_request_path(req)); /* again: it is cheap */
    const enum net_method method = net_request_method(req);
    const bool reads = method == NET_GET || method == NET_HEAD;
    if (!reads && !(page == &api_page && method == NET_POST)) {
        const struct net_header allow = {
            .name = "Allow", .value = page == &api_page ? "GET, HEAD, POST" : "GET, HEAD"};
        static const char text[] = "method not allowed\n";
        net_respond(req, 405, TEXT, text, sizeof text - 1, &allow, 1);
        return;
    }
    page->answer(web, req);
}

int web_new(const struct web_opts *opts, struct web **ret_web)
{
    struct web *const web = calloc(1, sizeof *web);
    if (!web)
        return -ENOMEM;
    web->opts = *opts;
    *ret_web = web;
    return 0;
}

void web_free(struct web *web)
{
    free(web);
}

void web_set_phase(struct web *web, enum web_phase phase)
{
    web->phase = phase;
}

struct net_service web_service(struct web *web)
{
    return (struct net_service){
        .ctx = web, .route = web_route, .handle = web_handle, .refused = NULL};
}
