/* SPDX-License-Identifier: Apache-2.0 */
#ifndef AGENT_CLI_SKETCH_H
#define AGENT_CLI_SKETCH_H
/* sketch: weir sketch, numbers in, quantiles out. See weir-sketch(1). Threads: one. */
#include "cli/sketch_opts.h"
#include "query/buf.h"

int cli_sketch(int argc, char **argv);

/* The verb without its printing: what goes to standard output is put in out. in is read where
 * opts->path is "-". progress may be NULL. */
int cli_sketch_run(const struct sketch_opts *opts, FILE *in, struct query_buf *out, FILE *err,
                   FILE *progress);
#endif
