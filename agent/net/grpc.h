/* SPDX-License-Identifier: Apache-2.0 */
#ifndef AGENT_NET_GRPC_H
#define AGENT_NET_GRPC_H
/*
 * grpc: what unary gRPC adds to HTTP/2: one message a request in a frame of five bytes, a status in
 * the trailers, a deadline (the gRPC protocol over HTTP/2). Pure: bytes to bytes.
 * Threads: any.
 */
#include "net/http.h"

enum { NET_GRPC_FRAME_BYTES = 5 }; /* compressed or not; the length, big-endian */

/* Status codes of gRPC; those that are said here. */
enum net_grpc_code {
    NET_GRPC_OK = 0,
    NET_GRPC_UNKNOWN = 2,
    NET_GRPC_INVALID_ARGUMENT = 3,
    NET_GRPC_DEADLINE_EXCEEDED = 4,
    NET_GRPC_NOT_FOUND = 5,
    NET_GRPC_PERMISSION_DENIED = 7,
    NET_GRPC_RESOURCE_EXHAUSTED = 8,
    NET_GRPC_UNIMPLEMENTED = 12,
    NET_GRPC_INTERNAL = 13,
    NET_GRPC_UNAVAILABLE = 14
};
/* What stands for an HTTP status: 200 OK; 400 INVALID_ARGUMENT; 403 PERMISSION_DENIED; 404, 405,
 * 415 and 501 UNIMPLEMENTED; 408 DEADLINE_EXCEEDED; 410 NOT_FOUND; 413 and 431 RESOURCE_EXHAUSTED;
 * 500 INTERNAL; 503 UNAVAILABLE; the rest UNKNOWN. */
enum net_grpc_code net_grpc_code_of(int status);

/* Is it a call, by its Content-Type: application/grpc, or that with +proto. */
bool net_grpc_is(struct weir_bytes content_type);
/* The one message of a body: false when it is not exactly one. */
bool net_grpc_unframe(struct weir_bytes body, bool *ret_compressed, struct weir_bytes *ret_message);
void net_grpc_frame(char dst[NET_GRPC_FRAME_BYTES], size_t message_bytes);
/* grpc-timeout: one to eight digits and H, M, S, m, u or n. False: no such thing. */
bool net_grpc_timeout(struct weir_bytes value, int64_t *ret_timeout_for_ns);
/* grpc-message: percent-encoded, without line ends at its end, cut to cap - 1 bytes. Returns its
 * length; dst is terminated. */
size_t net_grpc_message(struct weir_bytes text, char *dst, size_t cap);
#endif
