/* SPDX-License-Identifier: Apache-2.0 */
#ifndef AGENT_CLI_SEND_ENCODE_DD_H
#define AGENT_CLI_SEND_ENCODE_DD_H
/* send_encode_dd: one generated span as the library's trace encoder takes it. */
#include <weir/trace.h>

#include "cli/send_encode.h"

#define SEND_DD_TAGS_MAX 16
#define SEND_DD_TEXT 96

/* Storage of one span's tags; filled anew for each. */
struct send_dd_span {
    struct weir_trace_tag tags[SEND_DD_TAGS_MAX];
    char text[SEND_DD_TEXT]; /* the value that differs from span to span */
};

/* *ret points into storage and into the texts of opts and endpoint. */
void cli_send_dd_fill(const struct send_encoder_opts *opts, const struct send_endpoint *endpoint,
                      const struct send_span *span, int64_t end_ns, struct send_dd_span *storage,
                      struct weir_trace_span *ret);
#endif
