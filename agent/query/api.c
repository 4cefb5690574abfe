/* SPDX-License-Identifier: Apache-2.0 */
/*
 * api: a table of routes; /api/v1/query reads its parameters, parses, checks, evaluates, answers.
 *
 * timeout is checked and not used: the limits of eval.h bound the work, and no clock is read here.
 *
 * Threads: see the header. Memory: see the header.
 */
#include "api.h"
#include "answer.h"
#include "form.h"

#include <math.h>
#include <string.h>
#include <strings.h>

struct request { /* one /api/v1/query being answered */
    const struct query_api_request *http;
    struct query_arena *arena;
    struct query_buf *body;
    int status;
    struct weir_bytes query;
    int64_t time_ms;
    int64_t lookback_ns;
    size_t limit;
};

static bool bytes_are(struct weir_bytes bytes, const char *text)
{
    return bytes.len == strlen(text) && memcmp(bytes.ptr, text, bytes.len) == 0;
}

static bool is_form(const struct query_api_request *http)
{
    static const char form[] = "application/x-www-form-urlencoded";
    const size_t len = sizeof form - 1;
    const struct weir_bytes type = http->content_type;
    return strcmp(http->method, "POST") == 0 && type.len >= len &&
           strncasecmp(type.ptr, form, len) == 0 &&
           (type.len == len || type.ptr[len] == ';' || type.ptr[len] == ' ');
}

/* The body's value first, then the query's; as query_form_find. */
static int find_param(const struct query_api_request *http, struct query_arena *arena,
                      const char *name, struct weir_bytes *ret_value)
{
    const int found = is_form(http) ? query_form_find(arena, http->body, name, ret_value) : 0;
    return found ? found : query_form_find(arena, http->query, name, ret_value);
}

/* --- failing --------------------------------------------------------------------------------- */

static bool fail_text(struct request *r, enum query_error_type type, const struct query_buf *text)
{
    query_buf_clear(r->body);
    query_answer_put_error(type, text->ptr ? text->ptr : "", text->len, r->body);
    r->status = query_error_status(type);
    return false;
}

/* A parameter's fault: before, the value quoted, after. */
static bool fail_param(struct request *r, const char *before, struct weir_bytes value,
                       const char *after)
{
    struct query_buf text;
    query_buf_init(&text, (size_t)1024 * 1024);
    query_buf_put_text(&text, before);
    query_buf_put_quoted(&text, value.ptr, value.len < 200 ? value.len : 200);
    query_buf_put_text(&text, after);
    (void)fail_text(r, QUERY_ERROR_BAD_DATA, &text);
    query_buf_done(&text);
    return false;
}

static bool fail_query(struct request *r, const struct query_error *error)
{
    struct query_buf text;
    query_buf_init(&text, 8192);
    enum query_error_type type = QUERY_ERROR_BAD_DATA;
    if (error->fault == QUERY_FAULT_EXECUTION)
        type = QUERY_ERROR_EXECUTION;
    else if (error->fault == QUERY_FAULT_INTERNAL)
        type = QUERY_ERROR_INTERNAL;
    else
        query_buf_put_text(&text, "invalid parameter \"query\": ");
    query_error_put(error, r->query, &text);
    (void)fail_text(r, type, &text);
    query_buf_done(&text);
    return false;
}

static bool fail_memory(struct request *r)
{
    struct query_error error = {.fault = QUERY_FAULT_NONE};
    (void)query_fail_memory(&error);
    return fail_query(r, &error);
}

/* --- parameters ------------------------------------------------------------------------------ */

/* *ret_found false: the parameter is not given. False: refused. */
static bool read_param(struct request *r, const char *name, struct weir_bytes *ret_value,
                       bool *ret_found)
{
    const int found = find_param(r->http, r->arena, name, ret_value);
    *ret_found = found == 1;
    if (found == -2)
        return fail_memory(r);
    if (found == -1)
        return fail_param(r, "error parsing form values: invalid URL escape ", *ret_value, "");
    return true;
}

static bool read_limit(struct request *r)
{
    struct weir_bytes value;
    bool found;
    if (!read_param(r, "limit", &value, &found))
        return false;
    if (!found || value.len == 0)
        return true;
    size_t limit = 0;
    for (size_t i = 0; i < value.len; i++) {
        const char c = value.ptr[i];
        if (c < '0' || c > '9' || __builtin_mul_overflow(limit, (size_t)10, &limit) ||
            __builtin_add_overflow(limit, (size_t)(c - '0'), &limit))
            return fail_param(r, "invalid parameter \"limit\": cannot parse ", value,
                              " to a whole number from 0");
    }
    r->limit = limit;
    return true;
}

static bool read_time(struct request *r)
{
    struct weir_bytes value;
    bool found;
    if (!read_param(r, "time", &value, &found))
        return false;
    r->time_ms = r->http->now_ns / 1000000;
    if (!found || value.len == 0)
        return true;
    return query_form_time(value, &r->time_ms) ||
           fail_param(r, "invalid parameter \"time\": cannot parse ", value,
                      " to a valid timestamp");
}

static bool read_durations(struct request *r)
{
    struct weir_bytes value;
    bool found;
    double seconds;
    if (!read_param(r, "timeout", &value, &found))
        return false;
    if (found && value.len && !query_form_duration(value, &seconds))
        return fail_param(r, "invalid parameter \"timeout\": cannot parse ", value,
                          " to a valid duration");
    if (!read_param(r, "lookback_delta", &value, &found))
        return false;
    r->lookback_ns = r->http->lookback_ns > 0 ? r->http->lookback_ns : QUERY_LOOKBACK_NS;
    if (!found || value.len == 0)
        return true;
    if (!query_form_duration(value, &seconds) || seconds < 0)
        return fail_param(r, "error parsing lookback delta duration: cannot parse ", value,
                          " to a valid duration");
    if (seconds > 0)
        r->lookback_ns = (int64_t)llround(seconds * 1000) * 1000000;
    return true;
}

/* --- routes ---------------------------------------------------------------------------------- */

static bool answer_query(struct request *r, const struct query_source *source)
{
    struct query_error error = {.fault = QUERY_FAULT_NONE};
    struct query_node *const root = query_parse(r->arena, r->query, &error);
    if (!root || !query_check(root, &error))
        return fail_query(r, &error);
    struct query_eval eval;
    query_eval_init(&eval, r->arena, source, r->query, r->time_ms);
    eval.lookback_ns = r->lookback_ns;
    struct query_value value;
    bool ok = query_eval_run(&eval, root, &value);
    if (ok)
        query_answer_put(&eval, &value, r->limit, r->body);
    if (ok && r->body->err) {
        ok = query_fail(&eval.error, QUERY_FAULT_EXECUTION, QUERY_NOWHERE,
                        r->body->err == WEIR_EFULL ? "the answer would be larger than %zu bytes"
                                                   : "no memory for an answer of up to %zu bytes",
                        QUERY_ANSWER_MAX_BYTES);
    }
    const bool done = ok || fail_query(r, &eval.error);
    query_eval_done(&eval);
    return done;
}

static void handle_query(const struct query_api_request *http, const struct query_source *source,
                         struct query_buf *body, int *ret_status)
{
    struct query_arena arena;
    query_arena_init(&arena, QUERY_ARENA_MAX_BYTES);
    struct request r = {.http = http, .arena = &arena, .body = body, .status = 200};
    r.query = (struct weir_bytes){.ptr = "", .len = 0};
    bool found;
    if (read_limit(&r) && read_time(&r) && read_durations(&r) &&
        read_param(&r, "query", &r.query, &found))
        (void)answer_query(&r, source);
    *ret_status = r.status;
    query_arena_done(&arena);
}

static void handle_buildinfo(const struct query_api_request *http,
                             const struct query_source *source, struct query_buf *body,
                             int *ret_status)
{
    (void)http;
    (void)source;
    query_buf_put_format(body,
                         "{\"status\":\"success\",\"data\":{\"version\":\"%s\",\"revision\":\"\","
                         "\"branch\":\"\",\"buildUser\":\"\",\"buildDate\":\"\",\"goVersion\":\"\","
                         "\"weirVersion\":\"%s\"}}",
                         QUERY_API_VERSION, weir_version());
    *ret_status = 200;
}

struct route {
    const char *path;
    bool post;
    bool source;
    void (*handle)(const struct query_api_request *http, const struct query_source *source,
                   struct query_buf *body, int *ret_status);
};
static const struct route routes[] = {
    {.path = "/api/v1/query", .post = true, .source = true, .handle = handle_query},
    {.path = "/api/v1/status/buildinfo", .handle = handle_buildinfo},
};

static const struct route *find_route(const struct query_api_request *request)
{
    for (size_t i = 0; i < sizeof routes / sizeof *routes; i++) {
        if (bytes_are(request->path, routes[i].path))
            return &routes[i];
    }
    return NULL;
}

static bool takes_method(const struct route *route, const char *method)
{
    return strcmp(method, "GET") == 0 || strcmp(method, "HEAD") == 0 ||
           (route->post && strcmp(method, "POST") == 0);
}

bool query_api_needs_source(const struct query_api_request *request)
{
    const struct route *const route = find_route(request);
    return route && route->source && takes_method(route, request->method);
}

bool query_api_wants_open(const struct query_api_request *request)
{
    struct query_arena arena;
    query_arena_init(&arena, (size_t)1024 * 1024);
    struct weir_bytes value;
    const bool wants = find_param(request, &arena, "include_open", &value) == 1 &&
                       (bytes_are(value, "1") || bytes_are(value, "true"));
    query_arena_done(&arena);
    return wants;
}

int query_api_handle(const struct query_api_request *request, const struct query_source *source,
                     struct query_buf *ret_body, int *ret_status)
{
    query_buf_init(ret_body, QUERY_ANSWER_MAX_BYTES);
    const struct route *const route = find_route(request);
    if (!route) {
        query_buf_put_text(ret_body, "404 page not found\n");
        *ret_status = 404;
    } else if (!takes_method(route, request->method)) {
        query_buf_put_text(ret_body, "Method Not Allowed\n");
        *ret_status = 405;
    } else {
        route->handle(request, source, ret_body, ret_status);
    }
    if (!ret_body->err)
        return WEIR_OK;
    query_buf_done(ret_body);
    *ret_status = 500;
    return WEIR_ENOMEM;
}

const char *query_api_content_type(int status)
{
    return status == 404 || status == 405 ? "text/plain; charset=utf-8" : "application/json";
}
