/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The router against a request and a pipeline made by hand, over a real instance of the library.
 * The functions of net/ and pipeline/ that self/ calls are defined here; the linker then takes
 * none of the archive's.
 */
#include "self/web.h"
#include "t.h"

#include <stdlib.h>
#include <string.h>

struct net_request {
    enum net_method method;
    const char *path;
    const char *site;
    int status;
    char *body;
    const char *content_type;
    char allow[32];
};

static struct weir_bytes bytes_of(const char *text)
{
    return (struct weir_bytes){.ptr = text, .len = text ? strlen(text) : 0};
}

enum net_method net_request_method(const struct net_request *req)
{
    return req->method;
}

struct weir_bytes net_request_path(const struct net_request *req)
{
    return bytes_of(req->path);
}

struct weir_bytes net_request_header(const struct net_request *req, const char *name)
{
    return bytes_of(strcmp(name, "Sec-Fetch-Site") == 0 ? req->site : NULL);
}

void net_respond(struct net_request *req, int status, const char *content_type, const void *body,
                 size_t body_bytes, const struct net_header *headers, size_t header_count)
{
    T_EQ_I64(req->status, 0); /* exactly once */
    req->status = status;
    req->content_type = content_type;
    req->body = strndup(body, body_bytes);
    for (size_t i = 0; i < header_count; i++) {
        T_EQ_STR(headers[i].name, "Allow");
        (void)snprintf(req->allow, sizeof req->allow, "%s", headers[i].value);
    }
}

const char *net_refusal_name(enum net_refusal reason)
{
    static const char *const names[] = {
#define NAME(name, text) text,
        NET_REFUSAL_MAP(NAME)
#undef NAME
    };
    return names[reason];
}

struct pipeline {
    struct weir_stats *stats;
    struct weir_producer *producer;
    uint64_t pending;
    bool store_ok;
    size_t polls;
};

struct weir_stats *pipeline_stats(struct pipeline *p)
{
    return p->stats;
}

#define T0_NS INT64_C(1764496805000000000)

void pipeline_poll(struct pipeline *p)
{
    p->polls++;
    (void)weir_stats_poll(p->stats, T0_NS, 1);
}

size_t pipeline_recent(const struct pipeline *p, struct pipeline_window *windows, size_t cap)
{
    (void)p;
    (void)windows;
    (void)cap;
    return 0;
}

void pipeline_get_health(const struct pipeline *p, struct pipeline_health *ret_health)
{
    memset(ret_health, 0, sizeof *ret_health);
    weir_stats_get_health(p->stats, &ret_health->stats);
    ret_health->batches_pending = p->pending;
    ret_health->store_ok = p->store_ok;
}

static void api(void *ctx, struct net_request *req)
{
    (void)ctx;
    net_respond(req, 200, "application/json", "{}", 2, NULL, 0);
}

static void fill_nothing(void *ctx, struct self_figures *f)
{
    (void)ctx;
    f->server_count = 0;
}

static void more(void *ctx, struct self_text *t)
{
    (void)ctx;
    self_text_puts(t, "# more\n");
}

struct room {
    struct pipeline pipeline;
    struct web *web;
};

static struct room room_new(void)
{
    struct room r;
    memset(&r, 0, sizeof r);
    r.pipeline.store_ok = true;
    T_OK(weir_stats_new(NULL, &r.pipeline.stats));
    T_OK(weir_producer_new(r.pipeline.stats, 0, WEIR_PRODUCER_OWNER, &r.pipeline.producer));
    return r;
}

static void room_open(struct room *r)
{
    const struct web_opts opts = {
        .pipeline = &r->pipeline, .ctx = NULL, .api = api, .fill = fill_nothing, .more = more};
    T_EQ_I64(web_new(&opts, &r->web), 0);
    web_set_phase(r->web, WEB_SERVING);
}

static void room_free(struct room *r)
{
    web_free(r->web);
    weir_producer_free(r->pipeline.producer);
    weir_stats_free(r->pipeline.stats);
}

/* Route, then answer as the server would. Body freed by the caller. */
static struct net_request ask(struct room *r, enum net_method method, const char *path,
                              const char *site)
{
    const struct net_service service = web_service(r->web);
    struct net_request req = {.method = method, .path = path, .site = site};
    struct net_route route;
    memset(&route, 0, sizeof route);
    service.route(service.ctx, &req, &route);
    T_TRUE(route.max_body_bytes > 0 && route.max_body_bytes <= 1 << 20);
    if (route.refuse_status) {
        req.status = route.refuse_status;
        req.body = strdup(route.refuse_text);
        return req;
    }
    service.handle(service.ctx, &req);
    T_TRUE(req.status != 0);
    return req;
}

static void answers(struct room *r, enum net_method method, const char *path, const char *site,
                    int status, const char *part)
{
    struct net_request req = ask(r, method, path, site);
    T_EQ_I64(req.status, status);
    if (!strstr(req.body, part))
        T_FAIL("%s answered %s, want %s in it", path, req.body, part);
    free(req.body);
}

TEST(each_page_is_found_by_its_whole_path)
{
    struct room r = room_new();
    room_open(&r);
    answers(&r, NET_GET, "/-/healthy", NULL, 200, "healthy");
    answers(&r, NET_HEAD, "/-/healthy", NULL, 200, "healthy");
    answers(&r, NET_GET, "/-/ready", NULL, 200, "ready");
    answers(&r, NET_GET, "/metrics", NULL, 200, "# more\n");
    answers(&r, NET_GET, "/debug/reconcile", NULL, 200, "\"balanced\":true");
    answers(&r, NET_GET, "/debug/newcomers", NULL, 200,
            "{\"keys\":0,\"displaced\":0,\"top\":[],\"folded\":{}}");
    answers(&r, NET_POST, "/api/v1/query", NULL, 200, "{}");
    const char *const unknown[] = {"/",       "",         "/metrics/",     "/metric",
                                   "/-/",     "/api/v1/", "/api/v2/query", "/METRICS",
                                   "/api/v1", "//metrics"};
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++)
        answers(&r, NET_GET, unknown[i], NULL, 404, "not found");
    room_free(&r);
}

TEST(other_methods_are_refused_with_those_allowed)
{
    struct room r = room_new();
    room_open(&r);
    struct net_request req = ask(&r, NET_POST, "/metrics", NULL);
    T_EQ_I64(req.status, 405);
    T_EQ_STR(req.allow, "GET, HEAD");
    free(req.body);
    req = ask(&r, NET_DELETE, "/api/v1/query", NULL);
    T_EQ_I64(req.status, 405);
    T_EQ_STR(req.allow, "GET, HEAD, POST");
    free(req.body);
    room_free(&r);
}

TEST(another_sites_request_is_refused_on_every_path)
{
    struct room r = room_new();
    room_open(&r);
    answers(&r, NET_GET, "/metrics", "cross-site", 403, "other sites");
    answers(&r, NET_POST, "/api/v1/query", "cross-site", 403, "other sites");
    answers(&r, NET_GET, "/nowhere", "cross-site", 403, "other sites");
    answers(&r, NET_GET, "/-/healthy", "same-origin", 200, "healthy");
    answers(&r, NET_GET, "/-/healthy", "none", 200, "healthy");
    room_free(&r);
}

TEST(ready_says_why_it_is_not)
{
    struct room r = room_new();
    room_open(&r);
    web_set_phase(r.web, WEB_STARTING);
    answers(&r, NET_GET, "/-/ready", NULL, 503, "starting");
    web_set_phase(r.web, WEB_STOPPING);
    answers(&r, NET_GET, "/-/ready", NULL, 503, "stopping");
    answers(&r, NET_GET, "/-/healthy", NULL, 200, "healthy");
    web_set_phase(r.web, WEB_SERVING);
    r.pipeline.store_ok = false; /* nothing waits: nothing is at stake */
    answers(&r, NET_GET, "/-/ready", NULL, 200, "ready");
    r.pipeline.pending = 3;
    answers(&r, NET_GET, "/-/ready", NULL, 503, "3 sealed windows wait for the store");
    r.pipeline.store_ok = true; /* under way */
    answers(&r, NET_GET, "/-/ready", NULL, 200, "ready");
    room_free(&r);
}

TEST(without_an_api_its_paths_are_not_found)
{
    struct room r = room_new();
    const struct web_opts opts = {.pipeline = &r.pipeline, .fill = fill_nothing};
    T_EQ_I64(web_new(&opts, &r.web), 0);
    answers(&r, NET_GET, "/api/v1/query", NULL, 404, "not found");
    room_free(&r);
}

TEST(open_windows_are_reconciled_with_what_was_just_received)
{
    struct room r = room_new();
    room_open(&r);
    pipeline_poll(&r.pipeline);
    struct weir_span spans[2];
    memset(spans, 0, sizeof spans);
    for (size_t i = 0; i < 2; i++) {
        spans[i].service = bytes_of("s");
        spans[i].name = bytes_of("n");
        spans[i].trace_id = 1;
        spans[i].span_id = i + 1;
        spans[i].start_ns = T0_NS - 2000;
        spans[i].duration_ns = 1000;
    }
    const struct weir_source source = {.now_ns = T0_NS};
    T_OK(weir_stats_publish(r.pipeline.producer, &source, spans, 2));
    struct net_request req = ask(&r, NET_GET, "/debug/reconcile", NULL);
    T_EQ_I64(req.status, 200);
    T_EQ_STR(req.content_type, "application/json");
    T_TRUE(strstr(req.body, "{\"balanced\":true,"));
    T_TRUE(strstr(req.body, "\"process\":{\"received\":2,\"aggregated\":2,"));
    T_TRUE(strstr(req.body, "\"state\":\"open\""));
    T_TRUE(strstr(req.body, "\"spans\":{\"received\":2,\"aggregated\":2,"));
    T_TRUE(strstr(req.body, "\"weight\":{\"admitted\":2097152,\"rows\":2097152,"
                            "\"sketches\":2097152,\"balanced\":true}"));
    free(req.body);
    room_free(&r);
}

TEST(what_found_the_table_full_is_told_by_name_escaped_for_json)
{
    struct room r = room_new();
    weir_producer_free(r.pipeline.producer);
    weir_stats_free(r.pipeline.stats);
    const struct weir_stats_opts o = {.struct_size = sizeof o, .max_keys = 1};
    T_OK(weir_stats_new(&o, &r.pipeline.stats));
    T_OK(weir_producer_new(r.pipeline.stats, 0, WEIR_PRODUCER_OWNER, &r.pipeline.producer));
    room_open(&r);
    const struct weir_source source = {.now_ns = T0_NS};
    const char *const names[] = {"first", "first", "first", "a \"b\" \\ \n", "a \"b\" \\ \n"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const struct weir_span s = {.service = bytes_of("svc"),
                                    .name = bytes_of("op"),
                                    .resource = bytes_of(names[i]),
                                    .trace_id = 1,
                                    .span_id = 1,
                                    .start_ns = T0_NS};
        T_OK(weir_stats_publish(r.pipeline.producer, &source, &s, 1));
    }
    answers(&r, NET_GET, "/debug/newcomers", NULL, 200,
            "{\"keys\":1,\"displaced\":0,\"top\":[{\"hits_at_least\":2,\"labels\":{");
    answers(&r, NET_GET, "/debug/newcomers", NULL, 200,
            "\"span_name\":\"a \\\"b\\\" \\\\ \\u000a\"");
    room_free(&r);
}
