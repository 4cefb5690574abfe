/* SPDX-License-Identifier: Apache-2.0 */
#ifndef AGENT_SELF_NEWCOMERS_H
#define AGENT_SELF_NEWCOMERS_H
/*
 * newcomers: what found the table of keys full, as JSON: how many keys, the ten most hit with their
 * labels, and how many of the table gave their place; then, of each field with a limit, what became
 * tracer_blocked_value: how many spans and values, and the ten surest hit. For who asks; none of it
 * is logged.
 * Threads: the owner's of stats.
 */
#include "self/text.h"

#include <weir/stats.h>

void newcomers_write(const struct weir_stats *stats, struct self_text *t);
#endif
