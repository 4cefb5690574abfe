/* SPDX-License-Identifier: Apache-2.0 */
/* receive_metrics: see receive_metrics.h. It is here because self/ does not know receive/. */
#include "cli/receive_metrics.h"

#include "self/metrics.h"

#define COUNT_OF(a) (sizeof(a) / sizeof *(a))

static const struct metrics_row route_rows[] = {
    {.name = "weir_receive_payloads_total",
     .type = METRICS_COUNTER,
     .help = "Payloads whose spans were all handed over.",
     .offset = offsetof(struct receive_route_counts, payloads)},
    {.name = "weir_receive_spans_total",
     .type = METRICS_COUNTER,
     .help = "Spans of these payloads.",
     .offset = offsetof(struct receive_route_counts, spans)},
    {.name = "weir_receive_payload_bytes_total",
     .type = METRICS_COUNTER,
     .help = "Bytes of these payloads, as sent.",
     .offset = offsetof(struct receive_route_counts, bytes)},
    {.name = "weir_receive_drained_total",
     .type = METRICS_COUNTER,
     .help = "Requests that were read, answered and forgotten.",
     .offset = offsetof(struct receive_route_counts, drained)},
};
static const struct metrics_row total_rows[] = {
    {.name = "weir_receive_dropped_spans_total",
     .type = METRICS_COUNTER,
     .help = "Spans of single traces that are larger than the room for them.",
     .offset = offsetof(struct receive_counts, dropped_spans)},
    {.name = "weir_receive_large_payloads_total",
     .type = METRICS_COUNTER,
     .help = "Payloads that were walked twice, as they are larger than the room for them.",
     .offset = offsetof(struct receive_counts, large_payloads)},
    {.name = "weir_receive_count_mismatches_total",
     .type = METRICS_COUNTER,
     .help = "Payloads whose header says another count of traces.",
     .offset = offsetof(struct receive_counts, count_mismatches)},
};

void cli_receive_metrics(const struct receive_counts *counts, struct self_text *t)
{
    static const char refused[] = "weir_receive_refused_total";
    static const char rejected[] = "weir_receive_rejected_spans_total";
    static const char *const rejected_names[WEIR_REFUSAL_COUNT] = {
        [WEIR_REFUSED_TRACE_ID] = "trace_id", [WEIR_REFUSED_SPAN_ID] = "span_id"};
    const char *paths[RECEIVE_ROUTE_COUNT];
    for (int i = 0; i < RECEIVE_ROUTE_COUNT; i++)
        paths[i] = receive_route_path((enum receive_route)i);
    const struct metrics_set set = {.label = "route",
                                    .values = paths,
                                    .from = counts->routes,
                                    .stride = sizeof counts->routes[0],
                                    .count = RECEIVE_ROUTE_COUNT};
    metrics_table_set(t, route_rows, COUNT_OF(route_rows), &set);
    metrics_table(t, total_rows, COUNT_OF(total_rows), counts);
    metrics_family(t, refused, METRICS_COUNTER, "Requests that receivers refused, by reason.");
    for (int i = 0; i < RECEIVE_REFUSAL_COUNT; i++)
        metrics_u64(t, refused, counts->refused[i], "reason",
                    receive_refusal_name((enum receive_refusal)i), (const char *)NULL);
    metrics_family(t, rejected, METRICS_COUNTER,
                   "OTLP spans refused while the rest of their payload was counted, by reason.");
    for (int i = 0; i < WEIR_REFUSAL_COUNT; i++)
        metrics_u64(t, rejected, counts->rejected_spans[i], "reason", rejected_names[i],
                    (const char *)NULL);
}
