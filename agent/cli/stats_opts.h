/* SPDX-License-Identifier: Apache-2.0 */
#ifndef AGENT_CLI_STATS_OPTS_H
#define AGENT_CLI_STATS_OPTS_H
/* stats_opts: the library's options of a configuration. Threads: none inside. */
#include "config/config.h"

#include <weir/stats.h>

/* opts borrows the rest of the struct. */
struct cli_stats_opts {
    struct weir_stats_opts opts;
    char **peer_tags;
    char **dimensions;
};

/* Fills; -1 for want of memory. Free with _done in either case. */
int cli_stats_opts_init(const struct config *config, struct cli_stats_opts *ret_opts);
void cli_stats_opts_done(struct cli_stats_opts *o);

/* Would the library take them? WEIR_OK or its error. */
int cli_stats_opts_check(const struct config *config);
#endif
