/* SPDX-License-Identifier: Apache-2.0 */
#ifndef AGENT_CLI_INSPECT_SKETCH_H
#define AGENT_CLI_INSPECT_SKETCH_H
/* inspect_sketch: the body of weir inspect where it is one sketch. Threads: one. Memory: heap. */
#include "cli/inspect_body.h"
#include "query/buf.h"

/* The exit status: 1 when the bytes are refused. */
int cli_inspect_sketch(const struct inspect_opts *opts, const struct inspect_body *body,
                       struct query_buf *out, FILE *err);
#endif
