/* SPDX-License-Identifier: Apache-2.0 */
/*
 * router: which route a request is for, and what is said when it is for none. See receive.h.
 *
 * Everything that is refused here has its body read and forgotten first, so that the connection
 * stays usable: some tracers send the same again at once over the same one.
 */
#include "pipeline/pipeline.h"
#include "receive/internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *receive_route_protocol(enum receive_route route)
{
    static const char *const protocols[] = {
#define RECEIVE_ROUTE_PROTOCOL(name, protocol, path) [RECEIVE_##name] = (protocol),
        RECEIVE_ROUTE_MAP(RECEIVE_ROUTE_PROTOCOL)
#undef RECEIVE_ROUTE_PROTOCOL
    };
    return (unsigned)route < RECEIVE_ROUTE_COUNT ? protocols[route] : "unknown";
}

const char *receive_route_path(enum receive_route route)
{
    static const char *const paths[] = {
#define RECEIVE_ROUTE_PATH(name, protocol, path) [RECEIVE_##name] = (path),
        RECEIVE_ROUTE_MAP(RECEIVE_ROUTE_PATH)
#undef RECEIVE_ROUTE_PATH
    };
    return (unsigned)route < RECEIVE_ROUTE_COUNT ? paths[route] : "unknown";
}

const char *receive_refusal_name(enum receive_refusal reason)
{
    static const char *const names[] = {
#define RECEIVE_REFUSAL_NAME(name, text) [RECEIVE_REFUSED_##name] = (text),
        RECEIVE_REFUSAL_MAP(RECEIVE_REFUSAL_NAME)
#undef RECEIVE_REFUSAL_NAME
    };
    return (unsigned)reason < RECEIVE_REFUSAL_COUNT ? names[reason] : "unknown";
}

void receive_refuse(struct receive_side *side, struct net_request *req, enum receive_refusal reason,
                    int status, const char *text, const struct net_header *extra)
{
    side->receive->counts.refused[reason]++;
    side->refuse(side->receive, req, status, text, extra);
}

static unsigned method_bit(enum net_method method)
{
    switch (method) {
    case NET_GET:
    case NET_HEAD:
        return RECEIVE_GET;
    case NET_POST:
        return RECEIVE_POST;
    case NET_PUT:
        return RECEIVE_PUT;
    case NET_DELETE:
    case NET_OPTIONS:
    case NET_OTHER:
        break;
    }
    return 0;
}

static bool is_allowed(const struct receive_def *def, enum net_method method)
{
    return (def->methods & RECEIVE_ANY) || (def->methods & method_bit(method));
}

static bool path_matches(const struct receive_def *def, struct weir_bytes path)
{
    const size_t len = strlen(def->path);
    const bool prefix = def->path[len - 1] == '/';
    if (prefix ? path.len < len : path.len != len)
        return false;
    return memcmp(path.ptr, def->path, len) == 0;
}

static const struct receive_def *find(const struct receive_side *side, struct weir_bytes path)
{
    for (size_t i = 0; i < side->def_count; i++)
        if (path_matches(&side->defs[i], path))
            return &side->defs[i];
    return NULL;
}

/* Decided again when the body is in: cheaper than keeping it, and always the same. */
enum verdict { SERVE = 0, CROSS_SITE, NOT_FOUND, OPTIONS, NO_METHOD, NOT_ALLOWED, BAD_TYPE };

static enum verdict judge(const struct receive_side *side, const struct net_request *req,
                          const struct receive_def **ret_def)
{
    const enum net_method method = net_request_method(req);
    *ret_def = find(side, net_request_path(req));
    /* A page of another site, in a browser on this machine (contracts: wire §2.1). */
    if (net_text_is(net_request_header(req, "sec-fetch-site"), "cross-site"))
        return CROSS_SITE;
    if (method == NET_OTHER)
        return NO_METHOD;
    if (method == NET_OPTIONS)
        return OPTIONS;
    const struct receive_def *const def = *ret_def;
    if (!def)
        return NOT_FOUND;
    if (!is_allowed(def, method))
        return NOT_ALLOWED;
    if (def->accepts && !def->accepts(net_text_media_type(net_request_header(req, "content-type"))))
        return BAD_TYPE;
    return SERVE;
}

static void on_route(void *ctx, const struct net_request *req, struct net_route *ret_route)
{
    const struct receive_side *const side = ctx;
    const struct receive_def *def;
    const enum verdict verdict = judge(side, req, &def);
    ret_route->body = verdict == SERVE ? def->body : NET_BODY_DRAIN;
    ret_route->max_body_bytes = side->receive->opts.max_body_bytes;
}

static const char *allow_of(const struct receive_def *def)
{
    if (!def || (def->methods & RECEIVE_ANY))
        return "GET, HEAD, POST, PUT, OPTIONS";
    if (def->methods & RECEIVE_GET)
        return "GET, HEAD, OPTIONS";
    return def->methods & RECEIVE_PUT ? "POST, PUT, OPTIONS" : "POST, OPTIONS";
}

static void on_handle(void *ctx, struct net_request *req)
{
    struct receive_side *const side = ctx;
    const struct receive_def *def;
    const enum verdict verdict = judge(side, req, &def);
    const struct net_header allow = {"Allow", allow_of(def)};
    switch (verdict) {
    case SERVE:
        def->handle(side->receive, def, req);
        break;
    case CROSS_SITE:
        receive_refuse(side, req, RECEIVE_REFUSED_CROSS_SITE, 403,
                       "weir: requests of other sites' pages are not served\n", NULL);
        break;
    case NOT_FOUND:
        receive_refuse(side, req, RECEIVE_REFUSED_UNKNOWN, 404, "weir: no such route\n", NULL);
        break;
    case OPTIONS:
        side->refuse(side->receive, req, 204, "", &allow);
        break;
    case NO_METHOD:
        receive_refuse(side, req, RECEIVE_REFUSED_METHOD, 501, "weir: unknown method\n", NULL);
        break;
    case NOT_ALLOWED:
        receive_refuse(side, req, RECEIVE_REFUSED_METHOD, 405, "weir: method not allowed here\n",
                       &allow);
        break;
    case BAD_TYPE:
        receive_refuse(side, req, RECEIVE_REFUSED_TYPE, 415,
                       "weir: this Content-Type is not taken here\n", NULL);
        break;
    }
}

static enum receive_refusal refusal_of(enum net_refusal reason)
{
    switch (reason) {
    case NET_REFUSED_TIMEOUT:
        return RECEIVE_REFUSED_TIMEOUT;
    case NET_REFUSED_TOO_LARGE:
        return RECEIVE_REFUSED_TOO_LARGE;
    case NET_REFUSED_BAD_ENCODING:
        return RECEIVE_REFUSED_BAD_ENCODING;
    case NET_REFUSED_ENCODING:
        return RECEIVE_REFUSED_ENCODING;
    case NET_REFUSED_TRUNCATED:
        return RECEIVE_REFUSED_TRUNCATED;
    case NET_REFUSED_MEMORY:
        return RECEIVE_REFUSED_MEMORY;
    case NET_REFUSED_BAD_REQUEST:
    case NET_REFUSED_HEAD_TOO_LARGE:
    case NET_REFUSED_VERSION:
    case NET_REFUSED_CONNECTIONS:
    case NET_REFUSED_EVICTED:
    case NET_REFUSED_FLOOD:
    case NET_REFUSAL_COUNT:
        break;
    }
    return RECEIVE_REFUSED_BAD_REQUEST;
}

static void on_refused(void *ctx, const struct net_request *req, enum net_refusal reason)
{
    const struct receive_side *const side = ctx;
    if (req) /* without one it is a matter of connections, counted by net alone */
        side->receive->counts.refused[refusal_of(reason)]++;
}

struct net_service receive_service_of(struct receive_side *side)
{
    return (struct net_service){
        .ctx = side,
        .route = on_route,
        .handle = on_handle,
        .refused = on_refused,
        .headers = side->headers,
        .header_count = side->header_count,
    };
}

struct net_service receive_datadog_service(struct receive *r)
{
    return receive_service_of(&r->datadog);
}

struct net_service receive_otlp_service(struct receive *r)
{
    return receive_service_of(&r->otlp);
}

int receive_new(const struct receive_opts *opts, struct receive **ret_receive)
{
    struct receive *const r = calloc(1, sizeof *r);
    if (!r)
        return WEIR_ENOMEM;
    r->opts = *opts;
    if (r->opts.max_body_bytes == 0)
        r->opts.max_body_bytes = (size_t)25 * 1024 * 1024;
    if (opts->socket_path && !(r->socket_path = strdup(opts->socket_path))) {
        receive_free(r);
        return WEIR_ENOMEM;
    }
    r->opts.socket_path = r->socket_path;
    const struct weir_alloc heap = {NULL, NULL};
    const struct weir_tags *const tags = weir_stats_tags(pipeline_stats(opts->pipeline));
    if (weir_decoder_new(&heap, tags, &r->decoder) != WEIR_OK) {
        receive_free(r);
        return WEIR_ENOMEM;
    }
    receive_datadog_init(r);
    receive_otlp_init(r);
    receive_grpc_init(r);
    *ret_receive = r;
    return WEIR_OK;
}

void receive_free(struct receive *r)
{
    if (!r)
        return;
    weir_decoder_free(r->decoder);
    free(r->socket_path);
    free(r);
}

void receive_get_counts(const struct receive *r, struct receive_counts *ret_counts)
{
    *ret_counts = r->counts;
}
