/* SPDX-License-Identifier: Apache-2.0 */
#ifndef AGENT_CLI_SEND_WORKLOAD_H
#define AGENT_CLI_SEND_WORKLOAD_H
/*
 * send_workload: what weir send sends: endpoints (a service and one of its resources), and traces
 * over them.
 *
 * For the sake of --check an endpoint has one kind, and each of its two statuses one HTTP status:
 * so the agent keeps one row for each endpoint and status, whose quantiles can be asked for.
 *
 * Threads: one at a time. Memory: heap; bounded by the options' bounds.
 */
#include <weir/span.h>

#include "cli/send_latency.h"

#define SEND_TRACE_SPANS_MAX 1000
#define SEND_ENDPOINTS_MAX 100000

enum send_shape { SEND_HTTP, SEND_DB, SEND_QUEUE, SEND_WORK };

/* Texts are NUL-terminated; those that a shape has no use for are NULL. */
struct send_endpoint {
    const char *service;
    const char *resource;
    const char *operation;
    const char *type;
    const char *component;
    const char *method; /* SEND_HTTP: method; SEND_DB: operation; SEND_QUEUE: operation */
    const char *route;  /* SEND_HTTP: route; SEND_DB: database; SEND_QUEUE: destination */
    const char *system; /* SEND_DB, SEND_QUEUE */
    const char *host;
    enum send_shape shape;
    enum weir_kind kind;
    uint16_t ok_status; /* HTTP; 0: none */
    uint16_t error_status;
    double error_ratio;
    struct send_latency latency;
};

struct send_span {
    uint32_t endpoint;
    bool error;
    bool top_level; /* a root, or its parent has another service */
    int64_t duration_ns;
    uint64_t trace_id;
    uint64_t span_id;
    uint64_t parent_id;
    uint32_t salt; /* for what differs between spans of an endpoint: paths, ports, sizes */
};

enum send_preset { SEND_PRESET_SHOP, SEND_PRESET_SIMPLE };

struct send_workload_opts {
    enum send_preset preset;
    size_t services;        /* simple: 1.. */
    size_t resources;       /* simple: 1.. a service; services * resources <= SEND_ENDPOINTS_MAX */
    size_t spans_per_trace; /* 0: as the preset has it; else 1..SEND_TRACE_SPANS_MAX */
    double error_ratio;     /* < 0: as the preset has it */
    const struct send_latency *latency; /* NULL: as the preset has it */
    uint64_t seed;
};

struct send_workload;

/* Errors: WEIR_EINVAL, WEIR_ENOMEM. */
WEIR_NODISCARD int cli_send_workload_new(const struct send_workload_opts *opts,
                                         struct send_workload **ret_workload);
void cli_send_workload_free(struct send_workload *workload);

size_t cli_send_workload_endpoints(const struct send_workload *workload);
const struct send_endpoint *cli_send_workload_endpoint(const struct send_workload *workload,
                                                       size_t i);
/* Its number, or SIZE_MAX. Cost: O(log n). */
size_t cli_send_workload_find(const struct send_workload *workload, struct weir_bytes service,
                              struct weir_bytes resource);

/* The next trace, root first, cut to max spans (1..). Returns its spans. */
size_t cli_send_workload_trace(struct send_workload *workload, struct send_span *spans, size_t max);
#endif
