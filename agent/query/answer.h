/* SPDX-License-Identifier: Apache-2.0 */
#ifndef AGENT_QUERY_ANSWER_H
#define AGENT_QUERY_ANSWER_H
/*
 * answer: values and errors in the JSON of Prometheus' HTTP API, byte for byte.
 *
 * Threads: none inside. Memory: the buffer.
 */
#include "eval.h"

/* The whole body of a success; at most limit series (0: all), with a warning when some are cut. */
void query_answer_put(const struct query_eval *eval, const struct query_value *value, size_t limit,
                      struct query_buf *buf);

enum query_error_type {
    QUERY_ERROR_BAD_DATA,  /* 400 */
    QUERY_ERROR_EXECUTION, /* 422 */
    QUERY_ERROR_INTERNAL   /* 500 */
};
int query_error_status(enum query_error_type type);
void query_answer_put_error(enum query_error_type type, const char *text, size_t len,
                            struct query_buf *buf);
#endif
