/* SPDX-License-Identifier: Apache-2.0 */
#ifndef AGENT_CLI_QUERY_ROWS_H
#define AGENT_CLI_QUERY_ROWS_H
/*
 * query_rows: what weir query prints: the questions its table asks, the rows their answers make,
 * and the lines for an expression's answer.
 *
 * Text from the agent is printed without control characters: a span's name must not steer the
 * terminal.
 *
 * Threads: one. Memory: heap.
 */
#include "cli/json.h"
#include "cli/query_opts.h"
#include "query/buf.h"

#include <weir/base.h>

enum query_column {
    QUERY_COLUMN_CALLS, /* asked, not shown */
    QUERY_COLUMN_RATE,
    QUERY_COLUMN_ERRORS, /* a count; shown in percent of the calls */
    QUERY_COLUMN_P50,
    QUERY_COLUMN_P95,
    QUERY_COLUMN_P99,
    QUERY_COLUMN_MAX,
    QUERY_COLUMN_COUNT
};

struct query_rows;

/* The expression whose answer fills the column. */
void cli_query_question(enum query_column column, const struct query_opts *opts,
                        struct query_buf *expr);

WEIR_NODISCARD int cli_query_rows_new(struct query_rows **ret_rows);
void cli_query_rows_free(struct query_rows *rows); /* NULL is allowed */
/* data of an answer. Errors: WEIR_ENOMEM, WEIR_EFORMAT (no vector of floats). */
WEIR_NODISCARD int cli_query_rows_add(struct query_rows *rows, enum query_column column,
                                      const struct cli_json_value *data);
/* Sorts, and prints by opts->sort, limit, columns and json. */
void cli_query_rows_print(struct query_rows *rows, const struct query_opts *opts,
                          struct query_buf *out);

/* data of an expression's answer, a line a series. Errors: WEIR_EFORMAT. */
WEIR_NODISCARD int cli_query_print_data(const struct cli_json_value *data, struct query_buf *out);
#endif
