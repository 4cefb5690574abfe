/* SPDX-License-Identifier: Apache-2.0 */
#ifndef AGENT_SELF_FIGURES_H
#define AGENT_SELF_FIGURES_H
/*
 * figures: every counter of the agent that /metrics shows, taken at one moment, and their text.
 * Threads: none inside.
 */
#include "net/http.h"
#include "pipeline/pipeline.h"
#include "self/text.h"

#define SELF_SERVERS_MAX 4

struct self_figures {
    struct pipeline_health pipeline;
    const char *server_names[SELF_SERVERS_MAX];
    struct net_counts servers[SELF_SERVERS_MAX];
    size_t server_count;
    int64_t cpu_ns;
    uint64_t rss_bytes;
    uint64_t open_fds;
    uint64_t max_fds;
    int64_t start_wall_ns;
};

void self_figures_process(struct self_figures *f); /* fill what the kernel says of the process */
void self_figures_write(const struct self_figures *f, struct self_text *t);
#endif
