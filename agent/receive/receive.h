/* SPDX-License-Identifier: Apache-2.0 */
#ifndef AGENT_RECEIVE_RECEIVE_H
#define AGENT_RECEIVE_RECEIVE_H
/*
 * receive: the requests of Datadog tracers and OpenTelemetry SDKs, and their answers, around
 * weir/decode.h and weir/stats.h. Three services for net on one router, so that the same code
 * routes, counts and refuses for all.
 *
 * A payload counts whole or not at all: it is decoded into the producer's ring, which shows
 * nothing before the commit. One that does not fit the ring is walked twice: first only to prove
 * that it is well formed, then trace by trace, the ring being drained whenever it is full.
 *
 * Threads: the loop's. Memory: a decoder, and nothing that a payload's claims could grow.
 */
#include "net/http.h"

#include <weir/decode.h>

struct pipeline;
struct receive;

/* name, label of the protocol, path. A path that ends in '/' stands for all below it. Append only.
 */
#define RECEIVE_ROUTE_MAP(X)                                                                       \
    X(DD_V03, "datadog", "/v0.3/traces")                                                           \
    X(DD_V04, "datadog", "/v0.4/traces")                                                           \
    X(DD_V05, "datadog", "/v0.5/traces")                                                           \
    X(DD_INFO, "datadog", "/info")                                                                 \
    X(DD_TELEMETRY, "datadog", "/telemetry/proxy/")                                                \
    X(DD_CONFIG, "datadog", "/v0.7/config")                                                        \
    X(DD_EVP_PROXY, "datadog", "/evp_proxy/")                                                      \
    X(DD_PROFILING, "datadog", "/profiling/v1/input")                                              \
    X(DD_DOGSTATSD_V1, "datadog", "/dogstatsd/v1/proxy")                                           \
    X(DD_DOGSTATSD_V2, "datadog", "/dogstatsd/v2/proxy")                                           \
    X(DD_PIPELINE_STATS, "datadog", "/v0.1/pipeline_stats")                                        \
    X(DD_DEBUGGER, "datadog", "/debugger/")                                                        \
    X(DD_SYMDB, "datadog", "/symdb/")                                                              \
    X(DD_TRACER_FLARE, "datadog", "/tracer_flare/")                                                \
    X(OTLP_TRACES, "otlp", "/v1/traces")                                                           \
    X(DD_V07, "datadog", "/v0.7/traces")                                                           \
    X(DD_V1, "datadog", "/v1.0/traces")                                                            \
    X(GRPC_TRACES, "otlp_grpc", "/opentelemetry.proto.collector.trace.v1.TraceService/Export")     \
    X(GRPC_HEALTH, "otlp_grpc", "/grpc.health.v1.Health/Check")
enum receive_route {
#define RECEIVE_ROUTE_ENUM(name, protocol, path) RECEIVE_##name,
    RECEIVE_ROUTE_MAP(RECEIVE_ROUTE_ENUM)
#undef RECEIVE_ROUTE_ENUM
        RECEIVE_ROUTE_COUNT
};
const char *receive_route_protocol(enum receive_route route);
const char *receive_route_path(enum receive_route route);

/* Why a request was refused; the last six are net's refusals of requests to these services. */
#define RECEIVE_REFUSAL_MAP(X)                                                                     \
    X(DECODE, "decode_error")           /* 400 */                                                  \
    X(TYPE, "unsupported_type")         /* 415 */                                                  \
    X(METHOD, "method")                 /* 405 or 501 */                                           \
    X(UNKNOWN, "unknown_route")         /* 404 */                                                  \
    X(CROSS_SITE, "cross_site")         /* 403 */                                                  \
    X(MEMORY, "memory")                 /* 503 */                                                  \
    X(TOO_LARGE, "too_large")           /* 413 */                                                  \
    X(TIMEOUT, "timeout")               /* 408 */                                                  \
    X(TRUNCATED, "truncated")           /* 400, or nobody to answer */                             \
    X(BAD_ENCODING, "bad_encoding")     /* 400 */                                                  \
    X(ENCODING, "unsupported_encoding") /* 415 */                                                  \
    X(BAD_REQUEST, "bad_request")       /* 400 and the rest */
enum receive_refusal {
#define RECEIVE_REFUSAL_ENUM(name, text) RECEIVE_REFUSED_##name,
    RECEIVE_REFUSAL_MAP(RECEIVE_REFUSAL_ENUM)
#undef RECEIVE_REFUSAL_ENUM
        RECEIVE_REFUSAL_COUNT
};
const char *receive_refusal_name(enum receive_refusal reason);

struct receive_route_counts {
    uint64_t payloads; /* counted whole */
    uint64_t spans;    /* in them, dropped_spans included */
    uint64_t bytes;    /* of them, as sent */
    uint64_t drained;  /* read, answered and forgotten */
};
struct receive_counts {
    struct receive_route_counts routes[RECEIVE_ROUTE_COUNT];
    uint64_t refused[RECEIVE_REFUSAL_COUNT];     /* requests */
    uint64_t rejected_spans[WEIR_REFUSAL_COUNT]; /* OTLP spans of payloads that were counted */
    uint64_t dropped_spans;    /* of single traces larger than the ring; inbox_full in stats */
    uint64_t large_payloads;   /* walked twice */
    uint64_t count_mismatches; /* X-Datadog-Trace-Count said something else; no error */
};

struct receive_opts {
    struct pipeline *pipeline; /* borrowed; must outlive the receive */
    int datadog_port;          /* said in /info; 0: left out */
    const char *socket_path;   /* said in /info; NULL: left out; copied */
    size_t max_body_bytes;     /* said in /info and kept; 0: 25 MiB */
};
/* WEIR_OK, WEIR_ENOMEM. */
int receive_new(const struct receive_opts *opts, struct receive **ret_receive);
void receive_free(struct receive *r); /* after its servers have stopped; NULL is allowed */

/* For net_server_new; borrow r. */
struct net_service receive_datadog_service(struct receive *r);
struct net_service receive_otlp_service(struct receive *r);
struct net_service receive_grpc_service(struct receive *r); /* OTLP over gRPC, and its health */

void receive_get_counts(const struct receive *r, struct receive_counts *ret_counts);
#endif
