/* SPDX-License-Identifier: Apache-2.0 */
#ifndef AGENT_CLI_SEND_RUN_H
#define AGENT_CLI_SEND_RUN_H
/*
 * send_run: the run itself: make a batch when it is due, send it, book what became of it.
 *
 * Due is rate times time since the start, on the monotonic clock: a run that was held up catches
 * up, past the end of its time too, for a tenth of it but a second at least; what is still due then
 * is reported as behind.
 *
 * Threads: one. Memory: heap; see the parts.
 */
#include <signal.h>

#include "cli/send_ledger.h"
#include "cli/send_opts.h"
#include "cli/send_transport.h"

struct send_totals {
    uint64_t spans; /* taken; as in the ledger */
    uint64_t traces;
    uint64_t requests;
    uint64_t bytes;         /* of bodies as sent */
    uint64_t refused_spans; /* answered, and not with 2xx */
    uint64_t refused_requests;
    uint64_t never_spans; /* no connection */
    uint64_t never_requests;
    uint64_t unknown_spans;
    uint64_t unknown_requests;
    uint64_t behind_spans; /* were due and not sent */
    int64_t begin_ns;      /* wall clock */
    int64_t took_ns;       /* monotonic */
    bool stopped;          /* by a signal */
    bool at_max_samples;   /* flat out, and --check-max-samples was reached */
    char first_error[SEND_ERROR_TEXT];
};

struct send_run {
    const struct send_opts *opts;
    struct send_workload *workload;
    struct send_ledger *ledger;
    struct send_encoder *encoder;
    struct send_transport *transport;
    struct send_span *spans; /* SEND_BATCH_SPANS_MAX */
    const volatile sig_atomic_t *stop;
    FILE *progress; /* NULL: none */
    bool progress_is_terminal;
    struct send_totals totals;
};

/* Fills run->totals. Errors: WEIR_ENOMEM, WEIR_EFULL (of an encoder); the run ends then. */
WEIR_NODISCARD int cli_send_run(struct send_run *run);

/* Spans rejected by an ExportTraceServiceResponse; 0 too when it is none. */
uint64_t cli_send_otlp_rejected(struct weir_bytes body);
#endif
