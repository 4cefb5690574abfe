/* SPDX-License-Identifier: Apache-2.0 */
#ifndef AGENT_QUERY_ERROR_H
#define AGENT_QUERY_ERROR_H
/*
 * error: what went wrong with a query, where in its text, in one line. The first one stands.
 *
 * Threads: none inside. Memory: none; a text that does not fit is cut.
 */
#include "buf.h"

#include <stdbool.h>
#include <stddef.h>
#include <weir/base.h>

enum query_fault {
    QUERY_FAULT_NONE = 0,
    QUERY_FAULT_PARSE,       /* the text is not PromQL: "1:5: parse error: ..." */
    QUERY_FAULT_UNSUPPORTED, /* it is, but not (yet) answered: "1:5: ... is not supported yet" */
    QUERY_FAULT_EXECUTION,   /* valid, and failed on this data or at a limit */
    QUERY_FAULT_INTERNAL     /* the store failed, or there was no memory */
};

#define QUERY_NOWHERE ((size_t)-1)

struct query_error {
    enum query_fault fault;
    size_t at; /* offset in the query's text, or QUERY_NOWHERE */
    char text[768];
};

/* Keep the first error. Always returns false, so that callers can return what it returns. */
bool query_fail(struct query_error *error, enum query_fault fault, size_t at, const char *format,
                ...) __attribute__((format(printf, 4, 5)));
bool query_fail_memory(struct query_error *error);

/* "LINE:COL: parse error: TEXT" and the other forms; line and column count from 1, in bytes. */
void query_error_put(const struct query_error *error, struct weir_bytes query,
                     struct query_buf *buf);
void query_put_position(struct weir_bytes query, size_t at, struct query_buf *buf);

/* Go's %q of a piece of the query, in storage that lives as long as the caller's block. */
struct query_quoted {
    char text[256];
};
const char *query_quote(struct query_quoted *quoted, const char *bytes, size_t len);
#define QUERY_QUOTE(bytes, len) query_quote(&(struct query_quoted){{0}}, (bytes), (len))
#endif
