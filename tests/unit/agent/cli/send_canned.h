/* SPDX-License-Identifier: Apache-2.0 */
#ifndef T_SEND_CANNED_H
#define T_SEND_CANNED_H
/* send_canned: the answers a right agent would give for a ledger, as JSON text to be spoiled. */
#include "cli/send_check.h"

/* The answer to a question, freed by the caller. Quantiles are off by off * alpha. The ledger is
 * sorted. */
char *canned_answer(const struct send_workload *workload, const struct send_ledger *ledger,
                    enum send_question question, double off);
#endif
