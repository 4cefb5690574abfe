/* SPDX-License-Identifier: Apache-2.0 */
#ifndef AGENT_CLI_RECEIVE_METRICS_H
#define AGENT_CLI_RECEIVE_METRICS_H
/* receive_metrics: the receivers' counters as families of /metrics. Threads: none inside. */
#include "receive/receive.h"
#include "self/text.h"

void cli_receive_metrics(const struct receive_counts *counts, struct self_text *t);
#endif
