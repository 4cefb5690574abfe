/* SPDX-License-Identifier: Apache-2.0 */
#ifndef AGENT_CLI_SEND_CHECK_H
#define AGENT_CLI_SEND_CHECK_H
/*
 * send_check: the agent's answers against what was taken (contracts: rows §6).
 *
 * For each endpoint and status: calls and max must be equal, p50, p95 and p99 within alpha of the
 * sample of that rank. A row that nothing was sent for is a failure too, and so is a window that
 * /debug/reconcile calls unbalanced. This file compares; who asks is send_ask.
 *
 * Threads: one. Memory: heap, proportional to the endpoints.
 */
#include <stdio.h>

#include "cli/send_ledger.h"

enum send_question {
    SEND_ASK_CALLS,
    SEND_ASK_MAX,
    SEND_ASK_P50,
    SEND_ASK_P95,
    SEND_ASK_P99,
    SEND_QUESTIONS
};

/* (g - 1) / (g + 1) with g = 2^(1/64): the bound of scale-6 bins read at their middle. */
#define SEND_ALPHA 0.0054151594159025773

struct send_answers;

/* Both are borrowed until free. Errors: WEIR_ENOMEM. */
WEIR_NODISCARD int cli_send_answers_new(const struct send_workload *workload,
                                        const struct send_ledger *ledger,
                                        struct send_answers **ret_answers);
void cli_send_answers_free(struct send_answers *answers);

/*
 * The PromQL of a question about the spans of env in the last range_s seconds; dst of size bytes
 * is large enough when it holds 256.
 */
void cli_send_question(enum send_question question, const char *env, uint64_t range_s, char *dst,
                       size_t size);

/*
 * Take in the answer of /api/v1/query to a question. Errors: WEIR_EFORMAT (no JSON of that form, or
 * "status" is not success; *ret_reason says so in static text), WEIR_ENOMEM.
 */
WEIR_NODISCARD int cli_send_answers_add(struct send_answers *answers, enum send_question question,
                                        const char *json, size_t n, const char **ret_reason);

/*
 * Take in the answer of /debug/reconcile. *ret_balanced: it says "balanced": true and nothing in it
 * says false. Errors: WEIR_EFORMAT (no JSON, or no such member), WEIR_ENOMEM.
 */
WEIR_NODISCARD int cli_send_reconcile(const char *json, size_t n, bool *ret_balanced);

/* What the comparison found; failures counts those that were not listed too. */
struct send_verdict {
    uint64_t rows; /* endpoints and statuses compared */
    uint64_t failures;
    double worst_ratio; /* largest relative error of a quantile, over all rows */
};
/* Compare all; the first max_listed failures are printed to list, one a line, with a head. The
 * ledger must be sorted. */
struct send_verdict cli_send_compare(const struct send_answers *answers, FILE *list,
                                     uint64_t max_listed);
#endif
