/* SPDX-License-Identifier: Apache-2.0 */
#ifndef AGENT_CLI_INSPECT_WALK_H
#define AGENT_CLI_INSPECT_WALK_H
/*
 * inspect_walk: a payload through the library's decoder and engine, as an agent takes it.
 *
 * It is walked once to learn whether it is well formed and what is in it, and then, if it is, once
 * more into an engine with the agent's options and a ring of the agent's size, so that what would
 * not fit there does not fit here. The clock stands still at the time of arrival.
 *
 * Threads: one. Memory: heap: that of an engine, and its batches.
 */
#include "cli/inspect_opts.h"
#include "cli/stats_opts.h"

#include <weir/decode.h>
#include <weir/stats.h>

#define INSPECT_REFUSALS_MAX 100

/* An OTLP span that was refused while the rest stands. */
struct inspect_refusal {
    uint64_t number; /* among the payload's spans, from 0 */
    size_t offset;   /* of the span's message, as weir_span.raw_offset */
    size_t bytes;
    enum weir_refusal reason;
};

struct inspect_window {
    struct weir_batch *batch;
    struct weir_batch_info info;
    size_t *order; /* its rows, those with the most calls first, then by their labels */
};

struct inspect {
    const struct inspect_opts *opts;
    const struct config *config;
    enum inspect_format format; /* never AUTO */
    struct weir_bytes body;

    /* Of the first walk. With err, what was there before where. */
    int err;
    struct weir_where where;
    uint64_t traces;
    uint64_t spans;
    uint64_t errors;
    uint64_t refused[WEIR_REFUSAL_COUNT];
    struct inspect_refusal refusals[INSPECT_REFUSALS_MAX];
    size_t refusal_count; /* of those kept */
    int64_t last_end_ns;
    int64_t now_ns; /* when it arrives */

    /* Of the second; only without err. */
    struct inspect_window *windows;
    size_t window_count;
    struct weir_stats_health health;

    /* Inside. */
    struct cli_stats_opts stats_opts;
    struct weir_stats *stats;
    struct weir_producer *producer;
    struct weir_decoder *decoder;
};

/*
 * Walk body, which must outlive x, as opts and config. A payload that is refused is no failure: it
 * is in x->err. Errors: WEIR_ENOMEM, WEIR_EINVAL, WEIR_EFULL (aggregation.* together are more
 * than the library takes). Free with _done in any case.
 */
WEIR_NODISCARD int cli_inspect_walk(struct inspect *x, const struct inspect_opts *opts,
                                    const struct config *config, enum inspect_format format,
                                    struct weir_bytes body, int64_t wall_ns);
void cli_inspect_done(struct inspect *x);

/* The payload's decoder. A sink may be handed to it as to weir_decode_*. */
WEIR_NODISCARD int cli_inspect_decode(const struct inspect *x, const struct weir_span_sink *sink,
                                      struct weir_where *ret_where);
#endif
