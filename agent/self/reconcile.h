/* SPDX-License-Identifier: Apache-2.0 */
#ifndef AGENT_SELF_RECONCILE_H
#define AGENT_SELF_RECONCILE_H
/*
 * reconcile: where every span went, as JSON: the equation of the process, and the two of each
 * window, each with all of its terms and whether it holds (contracts: rows §1).
 * Threads: none inside.
 */
#include "pipeline/pipeline.h"
#include "self/text.h"

/* windows: sealed (stored or waiting) and open ones, newest first. */
void reconcile_write(const struct pipeline_health *health, const struct pipeline_window *windows,
                     size_t count, struct self_text *t);

/* received = aggregated + ineligible + partial + sum of dropped. */
bool reconcile_spans_balanced(const struct weir_window_counts *counts);
/* rows_weight = sketch_weight = admitted_weight. */
bool reconcile_weight_balanced(const struct weir_window_counts *counts);
#endif
