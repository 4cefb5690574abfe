/* SPDX-License-Identifier: Apache-2.0 */
#ifndef AGENT_CLI_SEND_TRANSPORT_H
#define AGENT_CLI_SEND_TRANSPORT_H
/*
 * send_transport: requests over one kept connection, by TCP or a unix socket (libcurl).
 *
 * Nothing is sent twice on purpose, and proxies of the environment are not used. What matters to
 * a checker is told apart: a request that was answered, one that surely never arrived, and one
 * whose fate is unknown.
 *
 * Threads: one at a time. Memory: heap; an answer is kept up to max_answer bytes.
 */
#include <stdbool.h>
#include <weir/base.h>

#include "cli/send_encode.h"

enum send_outcome {
    SEND_TAKEN,   /* answered 2xx */
    SEND_REFUSED, /* answered otherwise */
    SEND_NEVER,   /* no connection: nothing was sent */
    SEND_UNKNOWN  /* sent in part or whole, no whole answer */
};

#define SEND_ERROR_TEXT 256

struct send_answer {
    enum send_outcome outcome;
    long status;                 /* HTTP; 0: none */
    struct weir_bytes body;      /* borrowed until the next request */
    char error[SEND_ERROR_TEXT]; /* English, "" when taken */
};

struct send_transport_opts {
    const char *base_url;    /* without a path */
    const char *unix_socket; /* NULL: by TCP */
    bool chunked;            /* Transfer-Encoding: chunked in place of Content-Length */
    size_t max_answer;       /* bytes; a longer answer is SEND_UNKNOWN */
    int64_t timeout_ns;      /* of a whole request */
};

struct send_transport;

/* Load libcurl; once a process, before any thread. Says on stderr what is missing.
 * Errors: WEIR_ENOMEM, WEIR_EVERSION (no libcurl.so.4). */
WEIR_NODISCARD int cli_send_transport_global(void);
/* Texts are copied. Errors: WEIR_ENOMEM. */
WEIR_NODISCARD int cli_send_transport_new(const struct send_transport_opts *opts,
                                          struct send_transport **ret_transport);
void cli_send_transport_free(struct send_transport *transport);

struct send_request {
    const char *method; /* "PUT", "POST", "GET" */
    const char *path;
    const char *content_type;   /* NULL: none */
    const char *const *headers; /* "Name: value", NULL at the end; may be NULL */
    struct weir_bytes body;
    bool gzipped;
};
void cli_send_transport_do(struct send_transport *transport, const struct send_request *request,
                           struct send_answer *ret_answer);
#endif
