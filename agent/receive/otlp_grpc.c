/* SPDX-License-Identifier: Apache-2.0 */
/*
 * otlp_grpc: OTLP over gRPC, and gRPC's health service (contracts: clients §3.3; the health
 * checking protocol of gRPC, grpc.health.v1).
 *
 * What gRPC is, net knows: here a call is a request whose body is its message, and a status of HTTP
 * stands for one of gRPC (net/grpc.h). A payload that can never be taken is INVALID_ARGUMENT, which
 * exporters drop; want of memory is UNAVAILABLE, which they send again.
 */
#include "net/grpc.h"
#include "receive/internal.h"

#include <string.h>

enum { HEALTH_SERVING = 1 }; /* grpc.health.v1.HealthCheckResponse.ServingStatus */

static const char trace_service[] = "opentelemetry.proto.collector.trace.v1.TraceService";

static void refuse(struct receive *r, struct net_request *req, int status, const char *text,
                   const struct net_header *extra)
{
    (void)r;
    net_respond(req, status, "text/plain; charset=utf-8", text, strlen(text), extra, extra ? 1 : 0);
}

static void on_traces(struct receive *r, const struct receive_def *def, struct net_request *req)
{
    receive_otlp_traces(&r->grpc, def, req);
}

/* HealthCheckRequest{1: string service}: its service, empty when it is not said. False: no such
 * message. One byte is enough for a length here: no service has so long a name. */
static bool service_of(struct weir_bytes message, struct weir_bytes *ret_service)
{
    *ret_service = (struct weir_bytes){"", 0};
    if (message.len == 0)
        return true;
    const unsigned char *const m = (const unsigned char *)message.ptr;
    if (message.len < 2 || m[0] != 0x0a || m[1] > 0x7f || (size_t)m[1] + 2 != message.len)
        return false;
    *ret_service = (struct weir_bytes){message.ptr + 2, m[1]};
    return true;
}

static bool is_served(struct weir_bytes service)
{
    return service.len == 0 || (service.len == sizeof trace_service - 1 &&
                                memcmp(service.ptr, trace_service, service.len) == 0);
}

static void on_health(struct receive *r, const struct receive_def *def, struct net_request *req)
{
    static const unsigned char serving[] = {0x08, HEALTH_SERVING};
    struct weir_bytes service;
    if (!service_of(net_request_body(req), &service)) {
        receive_refuse(&r->grpc, req, RECEIVE_REFUSED_DECODE, 400,
                       "weir: not a HealthCheckRequest\n", NULL);
        return;
    }
    if (!is_served(service)) {
        receive_refuse(&r->grpc, req, RECEIVE_REFUSED_UNKNOWN, 410, "weir: no such service\n",
                       NULL);
        return;
    }
    r->counts.routes[def->route].drained++;
    net_respond(req, 200, NULL, serving, sizeof serving, NULL, 0);
}

static const struct receive_def defs[] = {
    {.path = "/opentelemetry.proto.collector.trace.v1.TraceService/Export",
     .methods = RECEIVE_POST,
     .route = RECEIVE_GRPC_TRACES,
     .body = NET_BODY_TAKE,
     .accepts = net_grpc_is,
     .handle = on_traces},
    {.path = "/grpc.health.v1.Health/Check",
     .methods = RECEIVE_POST,
     .route = RECEIVE_GRPC_HEALTH,
     .body = NET_BODY_TAKE,
     .accepts = net_grpc_is,
     .handle = on_health},
};

void receive_grpc_init(struct receive *r)
{
    r->grpc = (struct receive_side){
        .receive = r, .defs = defs, .def_count = sizeof defs / sizeof *defs, .refuse = refuse};
}

struct net_service receive_grpc_service(struct receive *r)
{
    struct net_service service = receive_service_of(&r->grpc);
    service.http2 = true;
    return service;
}
