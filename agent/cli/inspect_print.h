/* SPDX-License-Identifier: Apache-2.0 */
#ifndef AGENT_CLI_INSPECT_PRINT_H
#define AGENT_CLI_INSPECT_PRINT_H
/*
 * inspect_print: what weir inspect prints of a walk: text for people, or one JSON object.
 *
 * Threads: one. Memory: none but out's.
 */
#include "cli/inspect_body.h"
#include "cli/inspect_walk.h"
#include "query/buf.h"

struct inspect_title {
    const char *path;
    const struct inspect_body *body;
    const char *how; /* the format is known by; NULL: it was given */
};

void cli_inspect_print_text(const struct inspect *x, const struct inspect_title *title,
                            struct query_buf *out);
void cli_inspect_print_json(const struct inspect *x, const struct inspect_title *title,
                            struct query_buf *out);
/* 32 bytes around offset, 16 a line, with a caret under the one at offset. */
void cli_inspect_print_dump(struct weir_bytes body, size_t offset, struct query_buf *out);

/* Of the slots of a walk's spans: "env", ..., then the names of the settings. */
struct weir_bytes cli_inspect_slot_name(const struct config *config, unsigned slot);

/* What a row comes to; NaN where nothing was recorded. Calls and errors may be fractions. */
struct inspect_figures {
    double calls;
    double errors;
    double p50;
    double p99;
    double max;
};
struct inspect_figures cli_inspect_figures(const struct weir_row *row);

/* The counters of an engine that are not 0, in the order of the table, with what they mean. */
struct inspect_count {
    uint64_t value;
    const char *name;
    const char *text;
};
enum { INSPECT_MENDED_COUNT = 10 };
void cli_inspect_mended(const struct weir_stats_health *health,
                        struct inspect_count counts[INSPECT_MENDED_COUNT]);
const char *cli_inspect_refusal_name(enum weir_refusal reason);
#endif
