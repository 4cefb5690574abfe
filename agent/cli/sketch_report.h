/* SPDX-License-Identifier: Apache-2.0 */
#ifndef AGENT_CLI_SKETCH_REPORT_H
#define AGENT_CLI_SKETCH_REPORT_H
/*
 * sketch_report: what a sketch holds, for people and as JSON: of weir sketch and weir inspect.
 *
 * Threads: one. Memory: a copy of the bins while it prints.
 */
#include "query/buf.h"

#include <stdbool.h>
#include <weir/sketch.h>

struct sketch_report {
    const double *quantiles; /* 0 to 1 */
    size_t quantile_count;
    uint32_t rows; /* of the histogram; 0: none */
    bool bins;     /* list them */
};

/* A line each: count, sum, min, max, mapping, quantiles with their bound; then the histogram.
 * WEIR_OK or WEIR_ENOMEM; that of out is in out. */
int cli_sketch_report_text(struct query_buf *out, const struct weir_sketch *sk,
                           const struct sketch_report *what);
/* The members of a JSON object, without its braces. */
int cli_sketch_report_json(struct query_buf *out, const struct weir_sketch *sk,
                           const struct sketch_report *what);
#endif
