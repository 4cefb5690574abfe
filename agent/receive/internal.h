/* SPDX-License-Identifier: Apache-2.0 */
#ifndef AGENT_RECEIVE_INTERNAL_H
#define AGENT_RECEIVE_INTERNAL_H
/* internal: what the files of this room share. */
#include "net/text.h"
#include "receive/receive.h"

#include <weir/stats.h>

enum receive_method {
    RECEIVE_GET = 1 << 0, /* and HEAD */
    RECEIVE_POST = 1 << 1,
    RECEIVE_PUT = 1 << 2,
    RECEIVE_ANY = 1 << 3
};

/* What a route of a service is. */
struct receive_def {
    const char *path; /* ends in '/': all below it; NULL: not a path but a refusal */
    unsigned methods; /* of enum receive_method */
    enum receive_route route;
    enum net_body body;
    bool (*accepts)(struct weir_bytes media_type); /* NULL: anything */
    void (*handle)(struct receive *r, const struct receive_def *def, struct net_request *req);
};

struct receive_side {
    struct receive *receive;
    const struct receive_def *defs;
    size_t def_count;
    struct net_header headers[2]; /* of every answer */
    size_t header_count;
    /* How this protocol says no. */
    void (*refuse)(struct receive *r, struct net_request *req, int status, const char *text,
                   const struct net_header *extra);
};

struct receive {
    struct receive_opts opts;
    struct weir_decoder *decoder;
    struct receive_counts counts;
    struct receive_side datadog;
    struct receive_side otlp;
    struct receive_side grpc;
    char *socket_path;
    char info[2048];
    size_t info_bytes;
    char info_state[65]; /* sha256 of info, in hex */
};

/* router.c */
struct net_service receive_service_of(struct receive_side *side);
void receive_refuse(struct receive_side *side, struct net_request *req, enum receive_refusal reason,
                    int status, const char *text, const struct net_header *extra);

/* payload.c */
typedef int receive_decode_fn(struct weir_decoder *decoder, const void *payload, size_t bytes,
                              const struct weir_span_sink *sink,
                              struct weir_decode_result *ret_result, struct weir_where *ret_where);
struct receive_payload {
    receive_decode_fn *decode;
    bool loose; /* the spans are not grouped by trace */
    struct weir_bytes bytes;
    struct weir_source source;
    /* Results, of a payload that was counted. */
    struct weir_decode_result result;
    uint64_t rejected[WEIR_REFUSAL_COUNT];
    struct weir_where where; /* of one that was not */
};
/* Count a payload whole, or not at all. WEIR_OK or the decoder's error. */
int receive_payload_count(struct receive *r, struct receive_payload *p);
/* Decode the body of a request and count it for its route; on failure the request is refused. */
bool receive_take(struct receive_side *side, const struct receive_def *def, struct net_request *req,
                  struct receive_payload *p);

/* datadog.c, otlp.c, otlp_grpc.c */
void receive_datadog_init(struct receive *r);
void receive_otlp_init(struct receive *r);
void receive_grpc_init(struct receive *r);
/* Traces as OTLP has them, taken for that side and answered as both of its transports do. */
void receive_otlp_traces(struct receive_side *side, const struct receive_def *def,
                         struct net_request *req);
#endif
