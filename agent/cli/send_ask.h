/* SPDX-License-Identifier: Apache-2.0 */
#ifndef AGENT_CLI_SEND_ASK_H
#define AGENT_CLI_SEND_ASK_H
/*
 * send_ask: put the questions of send_check to an agent, again and again for a while when its
 * answers differ from what was sent (an agent may still be taking the last batch in).
 *
 * Threads: one. Memory: heap; an answer is bounded by SEND_ANSWER_MAX.
 */
#include "cli/send_check.h"

#define SEND_ANSWER_MAX ((size_t)256 << 20)

struct send_ask_opts {
    const char *query_url;
    const char *env;
    int64_t begin_ns; /* of the run, wall clock */
    int64_t wait_ns;  /* how long to ask again */
    int64_t timeout_ns;
    uint64_t max_listed;
};

struct send_check_result {
    bool asked;    /* all questions were answered in the right form */
    bool balanced; /* what /debug/reconcile says */
    struct send_verdict verdict;
    char error[256]; /* why not asked, or "" */
};

/*
 * Ask, compare, and print the differences of the last round to list. The ledger is sorted by it.
 * Errors: WEIR_ENOMEM; whatever goes wrong with the agent is in *ret_result.
 */
WEIR_NODISCARD int cli_send_check(const struct send_ask_opts *opts,
                                  const struct send_workload *workload, struct send_ledger *ledger,
                                  FILE *list, struct send_check_result *ret_result);
static inline bool cli_send_check_passed(const struct send_check_result *r)
{
    return r->asked && r->balanced && r->verdict.failures == 0;
}
#endif
