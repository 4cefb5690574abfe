/* SPDX-License-Identifier: Apache-2.0 */
#ifndef AGENT_CLI_SHOW_H
#define AGENT_CLI_SHOW_H
/*
 * show: what verbs print for people: durations in three digits, times, and texts of strangers,
 * which must not steer the terminal.
 *
 * Threads: none inside. Memory: none.
 */
#include "query/buf.h"

/* Control characters, C1 ones too, as '?'. Returns the code points put. */
size_t cli_show_plain(struct query_buf *out, const char *text, size_t len);
/* In double quotes; control characters, quotes and bytes that are not UTF-8 as escapes. */
void cli_show_quoted(struct query_buf *out, struct weir_bytes text);
/* Three digits and a unit, as 1.23ms; - for NaN. */
void cli_show_seconds(double seconds, char text[32]);
/* 2026-11-30T19:45:40.123456789Z; the fraction is left out when it is 0. */
void cli_show_time(struct query_buf *out, int64_t since_epoch_ns);
#endif
