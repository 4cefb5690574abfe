/* SPDX-License-Identifier: Apache-2.0 */
#ifndef AGENT_QUERY_API_H
#define AGENT_QUERY_API_H
/*
 * api: Prometheus' HTTP API as a function from a request to a body and a status.
 *
 *   GET, POST /api/v1/query              query, time, timeout, limit, lookback_delta, include_open
 *   GET       /api/v1/status/buildinfo
 *
 * Any other path is 404, another method 405, both plain text. Errors have Prometheus' JSON: 400
 * bad_data (a parameter, a parse error, what is not supported yet), 422 execution (a limit, or
 * series that clash), 500 internal (the store).
 *
 * Threads: any; one request at a time uses a source. Memory: bounded by eval.h's limits and
 * QUERY_ANSWER_MAX_BYTES, all given back at return but the body.
 */
#include "buf.h"
#include "source.h"

#include <stdbool.h>
#include <stdint.h>

#define QUERY_ANSWER_MAX_BYTES ((size_t)64 * 1024 * 1024)
/* The version of Prometheus whose API and semantics are followed: clients choose by it. */
#define QUERY_API_VERSION "3.0.0"

/* All borrowed during the call. */
struct query_api_request {
    const char *method;             /* "GET" */
    struct weir_bytes path;         /* without the query, as sent */
    struct weir_bytes query;        /* behind '?', as sent */
    struct weir_bytes body;         /* read when content_type is that of a form */
    struct weir_bytes content_type; /* may be empty */
    int64_t now_ns;                 /* the time of evaluation when none is given */
    int64_t lookback_ns;            /* the look-back when none is given; 0: QUERY_LOOKBACK_NS */
};

/* Will the request read a source? With false, handle may be given NULL. */
bool query_api_needs_source(const struct query_api_request *request);
/* Does it ask for the open windows (include_open=1)? The source is to include them then. */
bool query_api_wants_open(const struct query_api_request *request);

/*
 * Fill ret_body (initialised by the callee; the caller calls query_buf_done) and ret_status.
 * Errors: WEIR_ENOMEM (no memory even for an error's body; ret_status is 500, ret_body empty).
 */
int query_api_handle(const struct query_api_request *request, const struct query_source *source,
                     struct query_buf *ret_body, int *ret_status);
/* Of the body that came with the status. */
const char *query_api_content_type(int status);
#endif
