/* SPDX-License-Identifier: Apache-2.0 */
/*
 * datadog: the routes of the trace-agent that tracers call: traces, /info, and the calls that are
 * read, answered and forgotten (contracts: wire §2, clients §3).
 *
 * Datadog-Client-Computed-Stats is not looked at while /v0.6/stats is not served: the spans are
 * counted whatever it says (contracts: rows §3).
 */
#include "receive/sha256.h"
#include "receive/internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define AGENT_VERSION "7.65.0" /* tracers compare it */
#define RATES_BODY "{\"rate_by_service\":{\"service:,env:\":1}}"
#define RATES_VERSION "1" /* of RATES_BODY, which never changes */
enum { HEADERS_MAX = 3 };

static void answer(const struct receive *r, struct net_request *req, int status, const char *type,
                   const char *text, const struct net_header *extra)
{
    const struct receive_side *const side = &r->datadog;
    struct net_header headers[HEADERS_MAX];
    size_t count = 0;
    while (count < side->header_count) {
        headers[count] = side->headers[count];
        count++;
    }
    if (extra)
        headers[count++] = *extra;
    net_respond(req, status, type, text, strlen(text), headers, count);
}

static void refuse(struct receive *r, struct net_request *req, int status, const char *text,
                   const struct net_header *extra)
{
    answer(r, req, status, status == 204 ? NULL : "text/plain; charset=utf-8", text, extra);
}

/* A header is true unless it is absent, empty or one of these (contracts: wire §2.3). */
static bool is_true(struct weir_bytes value)
{
    static const char *const no[] = {"0", "f", "F", "FALSE", "False", "false"};
    for (size_t i = 0; i < sizeof no / sizeof *no; i++)
        if (value.len == strlen(no[i]) && memcmp(value.ptr, no[i], value.len) == 0)
            return false;
    return value.len > 0;
}

static bool is_msgpack(struct weir_bytes media_type)
{
    return media_type.len == 0 || net_text_is(media_type, "application/msgpack") ||
           net_text_is(media_type, "application/x-msgpack");
}

/* A count that is absent is no mismatch; one that is no number is. */
static bool count_matches(struct weir_bytes text, uint64_t traces)
{
    if (!text.ptr)
        return true;
    char want[24];
    const int n = snprintf(want, sizeof want, "%llu", (unsigned long long)traces);
    return text.len == (size_t)n && memcmp(text.ptr, want, text.len) == 0;
}

static void answer_rates(const struct receive *r, struct net_request *req)
{
    const struct weir_bytes known = net_request_header(req, "datadog-rates-payload-version");
    const struct net_header version = {"Datadog-Rates-Payload-Version", RATES_VERSION};
    const bool is_current = net_text_is(known, RATES_VERSION);
    answer(r, req, 200, "application/json", is_current ? "{}" : RATES_BODY,
           known.ptr ? &version : NULL);
}

static receive_decode_fn *decoder_of(enum receive_route route)
{
    if (route == RECEIVE_DD_V05)
        return weir_decode_dd_v05;
    if (route == RECEIVE_DD_V07)
        return weir_decode_dd_v07;
    return route == RECEIVE_DD_V1 ? weir_decode_dd_v1 : weir_decode_dd_v04;
}

static void on_traces(struct receive *r, const struct receive_def *def, struct net_request *req)
{
    struct receive_payload p = {.decode = decoder_of(def->route)};
    p.source.lang = net_request_header(req, "datadog-meta-lang");
    if (is_true(net_request_header(req, "datadog-client-computed-top-level")))
        p.source.flags |= WEIR_SOURCE_TOP_LEVEL_COMPUTED;
    if (!receive_take(&r->datadog, def, req, &p))
        return;
    if (!count_matches(net_request_header(req, "x-datadog-trace-count"), p.result.traces))
        r->counts.count_mismatches++;
    if (def->route == RECEIVE_DD_V03)
        answer(r, req, 200, "text/plain; charset=utf-8", "OK\n", NULL);
    else
        answer_rates(r, req);
}

static void on_info(struct receive *r, const struct receive_def *def, struct net_request *req)
{
    (void)def;
    net_respond(req, 200, "text/plain; charset=utf-8", r->info, r->info_bytes, NULL, 0);
}

static void on_config(struct receive *r, const struct receive_def *def, struct net_request *req)
{
    r->counts.routes[def->route].drained++;
    answer(r, req, 200, "application/json", "{}", NULL);
}

static void on_drained(struct receive *r, const struct receive_def *def, struct net_request *req)
{
    r->counts.routes[def->route].drained++;
    answer(r, req, def->route == RECEIVE_DD_TELEMETRY ? 202 : 200, "application/json", "{}", NULL);
}

#define TRACES(id, p)                                                                              \
    {                                                                                              \
        .path = (p), .methods = RECEIVE_POST | RECEIVE_PUT, .route = (id), .body = NET_BODY_TAKE,  \
        .accepts = is_msgpack, .handle = on_traces                                                 \
    }
#define DRAINED(id, p, fn)                                                                         \
    {                                                                                              \
        .path = (p), .methods = RECEIVE_ANY, .route = (id), .body = NET_BODY_DRAIN, .handle = (fn) \
    }
static const struct receive_def defs[] = {
    TRACES(RECEIVE_DD_V03, "/v0.3/traces"),
    TRACES(RECEIVE_DD_V04, "/v0.4/traces"),
    TRACES(RECEIVE_DD_V05, "/v0.5/traces"),
    TRACES(RECEIVE_DD_V07, "/v0.7/traces"),
    TRACES(RECEIVE_DD_V1, "/v1.0/traces"),
    {.path = "/info",
     .methods = RECEIVE_GET,
     .route = RECEIVE_DD_INFO,
     .body = NET_BODY_DRAIN,
     .handle = on_info},
    DRAINED(RECEIVE_DD_TELEMETRY, "/telemetry/proxy/", on_drained),
    DRAINED(RECEIVE_DD_CONFIG, "/v0.7/config", on_config),
    DRAINED(RECEIVE_DD_EVP_PROXY, "/evp_proxy/", on_drained),
    DRAINED(RECEIVE_DD_PROFILING, "/profiling/v1/input", on_drained),
    DRAINED(RECEIVE_DD_DOGSTATSD_V1, "/dogstatsd/v1/proxy", on_drained),
    DRAINED(RECEIVE_DD_DOGSTATSD_V2, "/dogstatsd/v2/proxy", on_drained),
    DRAINED(RECEIVE_DD_PIPELINE_STATS, "/v0.1/pipeline_stats", on_drained),
    DRAINED(RECEIVE_DD_DEBUGGER, "/debugger/", on_drained),
    DRAINED(RECEIVE_DD_SYMDB, "/symdb/", on_drained),
    DRAINED(RECEIVE_DD_TRACER_FLARE, "/tracer_flare/", on_drained),
};

/* /info (contracts: wire §2.4): only what is served. Its order is fixed, so its hash is too. */

struct text {
    char *at;
    char *end;
};

__attribute__((format(printf, 2, 3))) static void put(struct text *t, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const int n = vsnprintf(t->at, (size_t)(t->end - t->at), format, args);
    va_end(args);
    if (n > 0 && n < t->end - t->at)
        t->at += n;
}

static void put_json(struct text *t, const char *value)
{
    put(t, "\"");
    for (const char *c = value; *c; c++) {
        if (*c == '"' || *c == '\\')
            put(t, "\\%c", *c);
        else if ((unsigned char)*c >= 0x20)
            put(t, "%c", *c);
    }
    put(t, "\"");
}

static void put_config(struct text *t, const struct receive *r)
{
    put(t, "\"config\":{\"max_request_bytes\":%zu", r->opts.max_body_bytes);
    if (r->opts.datadog_port > 0)
        put(t, ",\"receiver_port\":%d", r->opts.datadog_port);
    if (r->opts.socket_path) {
        put(t, ",\"receiver_socket\":");
        put_json(t, r->opts.socket_path);
    }
    put(t, "}");
}

static void put_endpoints(struct text *t)
{
    put(t, "\"endpoints\":[");
    bool first = true;
    for (size_t i = 0; i < sizeof defs / sizeof *defs; i++) {
        if (defs[i].handle != on_traces)
            continue;
        put(t, "%s\"%s\"", first ? "" : ",", defs[i].path);
        first = false;
    }
    put(t, "]");
}

static void make_info(struct receive *r)
{
    struct text t = {r->info, r->info + sizeof r->info};
    put(&t, "{\"version\":\"" AGENT_VERSION "\",\"weir_version\":\"%s\",\"git_commit\":\"\",",
        weir_version());
    put_endpoints(&t);
    put(&t, ",\"feature_flags\":[],\"client_drop_p0s\":false,\"span_meta_structs\":false,"
            "\"long_running_spans\":false,\"span_events\":false,\"evp_proxy_allowed_headers\":[],");
    put_config(&t, r);
    put(&t, ",\"peer_tags\":[],\"span_kinds_stats_computed\":[]}");
    r->info_bytes = (size_t)(t.at - r->info);
}

void receive_datadog_init(struct receive *r)
{
    make_info(r);
    unsigned char digest[SHA256_BYTES];
    receive_sha256(r->info, r->info_bytes, digest);
    for (size_t i = 0; i < sizeof digest; i++)
        (void)snprintf(r->info_state + 2 * i, 3, "%02x", digest[i]);
    r->datadog = (struct receive_side){
        .receive = r,
        .defs = defs,
        .def_count = sizeof defs / sizeof *defs,
        .refuse = refuse,
        /* Not of /info's own answer: a tracer reads /info again when the state is another. */
        .headers = {{"Datadog-Agent-Version", AGENT_VERSION},
                    {"Datadog-Agent-State", r->info_state}},
        .header_count = 2,
    };
}
