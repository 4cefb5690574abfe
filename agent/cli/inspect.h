/* SPDX-License-Identifier: Apache-2.0 */
#ifndef AGENT_CLI_INSPECT_H
#define AGENT_CLI_INSPECT_H
/* inspect: weir inspect, what an agent would make of a payload. See weir-inspect(1). Threads: one.
 */
#include "cli/inspect_opts.h"
#include "query/buf.h"

int cli_inspect(int argc, char **argv);

/* The verb without its printing: what goes to standard output is put in out. env as environ. */
int cli_inspect_run(struct inspect_opts *opts, char *const *env, struct query_buf *out, FILE *err);
#endif
