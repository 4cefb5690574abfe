/* SPDX-License-Identifier: Apache-2.0 */
#ifndef AGENT_CLI_SEND_LEDGER_H
#define AGENT_CLI_SEND_LEDGER_H
/*
 * send_ledger: exactly what was taken: for each endpoint and status the count, sum, least and
 * greatest duration, and, when asked to, every duration.
 *
 * A span enters when the request that carried it was answered 2xx, not before.
 *
 * Threads: one at a time. Memory: 16 bytes a sample at most while it grows, up to max_samples.
 */
#include "cli/send_workload.h"

enum send_status { SEND_UNSET = 0, SEND_ERROR = 1, SEND_STATUSES };

struct send_cell {
    uint64_t count;
    int64_t sum_ns; /* at most 2^63 / SEND_DURATION_MAX_NS spans of the longest kind fit */
    int64_t min_ns;
    int64_t max_ns;
    int64_t *samples; /* count of them, if they are kept */
    size_t cap;
};

struct send_ledger;

/* max_samples 0: no samples are kept. Errors: WEIR_ENOMEM. */
WEIR_NODISCARD int cli_send_ledger_new(size_t endpoints, uint64_t max_samples,
                                       struct send_ledger **ret_ledger);
void cli_send_ledger_free(struct send_ledger *ledger);
/* Errors: WEIR_EFULL (more than max_samples), WEIR_ENOMEM; the ledger is then incomplete. */
WEIR_NODISCARD int cli_send_ledger_add(struct send_ledger *ledger, const struct send_span *spans,
                                       size_t count);
size_t cli_send_ledger_endpoints(const struct send_ledger *ledger);
uint64_t cli_send_ledger_spans(const struct send_ledger *ledger);
const struct send_cell *cli_send_ledger_cell(const struct send_ledger *ledger, size_t endpoint,
                                             enum send_status status);
/* Sort all samples; cli_send_cell_rank needs it, until the next add. */
void cli_send_ledger_sort(struct send_ledger *ledger);
/*
 * The sample of 0-based rank floor(q * (count - 1)). Where that product lies within rounding of the
 * next whole number, *ret_next_ns is the sample of that one, else the same sample.
 * count > 0, samples kept and sorted, q in [0, 1].
 */
int64_t cli_send_cell_rank(const struct send_cell *cell, double q, int64_t *ret_next_ns);
#endif
