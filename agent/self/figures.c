/* SPDX-License-Identifier: Apache-2.0 */
/* figures: see figures.h. A new counter is one row here. */
#include "self/figures.h"

#include "plat/plat.h"
#include "self/metrics.h"

#define COUNT_OF(a) (sizeof(a) / sizeof *(a))
#define COUNTER(owner, field, name_text, help_text)                                                \
    {                                                                                              \
        .name = (name_text), .type = METRICS_COUNTER, .help = (help_text),                         \
        .offset = offsetof(struct owner, field)                                                    \
    }
#define GAUGE(owner, field, name_text, help_text)                                                  \
    {                                                                                              \
        .name = (name_text), .type = METRICS_GAUGE, .help = (help_text),                           \
        .offset = offsetof(struct owner, field)                                                    \
    }

static const struct metrics_row stats_rows[] = {
    COUNTER(weir_stats_health, received, "weir_spans_received_total",
            "Spans that receivers handed over, or dropped for want of room."),
    COUNTER(weir_stats_health, aggregated, "weir_spans_aggregated_total",
            "Spans counted in a row."),
    COUNTER(weir_stats_health, ineligible, "weir_spans_ineligible_total",
            "Spans that the profile does not count."),
    COUNTER(weir_stats_health, partial, "weir_spans_partial_total",
            "Snapshots of unfinished spans, which are not counted."),
    COUNTER(weir_stats_health, late, "weir_spans_late_total",
            "Aggregated spans that ended before the oldest open window."),
    COUNTER(weir_stats_health, future, "weir_spans_future_total",
            "Aggregated spans that ended after the current window."),
    COUNTER(weir_stats_health, overflow, "weir_spans_overflow_total",
            "Aggregated spans booked in the overflow row, past the limit of keys."),
    COUNTER(weir_stats_health, negative_duration, "weir_spans_negative_duration_total",
            "Spans whose duration was negative and became zero."),
    COUNTER(weir_stats_health, time_missing, "weir_spans_time_missing_total",
            "Spans without a start or an end."),
    COUNTER(weir_stats_health, before_2000, "weir_spans_before_2000_total",
            "Spans of Datadog tracers whose start lay before the year 2000."),
    COUNTER(weir_stats_health, utf8_repaired, "weir_fields_repaired_total",
            "Fields with bytes that were not UTF-8."),
    COUNTER(weir_stats_health, truncated, "weir_fields_truncated_total",
            "Fields that were cut to their limit."),
    COUNTER(weir_stats_health, weight_capped, "weir_weights_capped_total",
            "Weights past their limit."),
    COUNTER(weir_stats_health, bad_status, "weir_bad_http_status_total",
            "HTTP status codes outside 100 to 599, left empty."),
    COUNTER(weir_stats_health, duplicate_ids, "weir_spans_duplicate_ids_total",
            "Spans with the id of another span of their trace, counted all the same."),
    COUNTER(weir_stats_health, clock_steps, "weir_clock_steps_total",
            "Steps of the wall clock by more than a window."),
    COUNTER(weir_stats_health, snapshot_failed, "weir_snapshots_failed_total",
            "Open windows left out of an answer for want of memory."),
    COUNTER(weir_stats_health, expunged, "weir_keys_expunged_total",
            "Keys that went for want of spans."),
    COUNTER(weir_stats_health, displaced, "weir_keys_displaced_total",
            "Keys that were folded into the overflow row, their place given to heavier ones."),
    GAUGE(weir_stats_health, keys, "weir_keys", "Keys in memory."),
    GAUGE(weir_stats_health, max_keys, "weir_keys_limit", "The most keys in memory."),
    GAUGE(weir_stats_health, newcomers, "weir_keys_newcomers",
          "Keys that found the table full, in the newest window that had any: an estimate."),
    GAUGE(weir_stats_health, open_windows, "weir_windows_open", "Windows that are not sealed."),
    GAUGE(weir_stats_health, table_bytes, "weir_table_bytes", "Memory of the table of keys."),
    GAUGE(weir_stats_health, pool_sketches, "weir_sketches_spare", "Sketches in the pool."),
    GAUGE(weir_stats_health, inbox_bytes, "weir_inbox_bytes",
          "Bytes handed over and not yet aggregated."),
};

/* By the names that the Datadog tracers' own health metrics have. */
static const struct metrics_row client_rows[] = {
    COUNTER(weir_stats_health, traces_in, "weir_stats_traces_in_total",
            "Traces published by a tracer's own statistics."),
    COUNTER(weir_stats_health, spans_in, "weir_stats_spans_in_total",
            "Spans of these that counted."),
    COUNTER(weir_stats_health, dropped_p0_traces, "weir_stats_dropped_p0_traces_total",
            "Traces of these that need not be kept."),
    COUNTER(weir_stats_health, dropped_p0_spans, "weir_stats_dropped_p0_spans_total",
            "Spans of traces that need not be kept."),
    COUNTER(weir_stats_health, dimensions_ignored, "weir_stats_dimensions_ignored_total",
            "Configured dimensions that were left out."),
    COUNTER(weir_stats_health, bad_rate, "weir_weights_unknown_total",
            "Sampling rates that made no sense; their spans count as one."),
};

static const struct metrics_row pipeline_rows[] = {
    COUNTER(pipeline_health, batches_sealed, "weir_batches_sealed_total", "Windows sealed."),
    COUNTER(pipeline_health, batches_stored, "weir_batches_stored_total",
            "Sealed windows that the store has."),
    COUNTER(pipeline_health, batches_lost, "weir_batches_lost_total",
            "Sealed windows given up while the store could not be written."),
    COUNTER(pipeline_health, lost_spans, "weir_spans_lost_total", "Spans of windows given up."),
    COUNTER(pipeline_health, store_errors, "weir_store_errors_total",
            "Attempts to write to the store that failed."),
    GAUGE(pipeline_health, batches_pending, "weir_batches_pending",
          "Sealed windows that wait for the store."),
    GAUGE(pipeline_health, pending_bytes, "weir_batches_pending_bytes",
          "Memory of sealed windows that wait for the store."),
};

static const struct metrics_row store_rows[] = {
    COUNTER(store_counts, windows_written, "weir_store_rows_written_total",
            "Rows written to the store by this process."),
    COUNTER(store_counts, rows_removed, "weir_store_rows_removed_total",
            "Rows that retention removed."),
    COUNTER(store_counts, totals_failed, "weir_store_totals_failed_total",
            "Sketches that could not be merged into the total of what retention removed."),
    COUNTER(store_counts, replaced, "weir_store_replaced_total",
            "Corrupt files of the store that were set aside."),
    GAUGE(store_counts, series, "weir_store_series", "Series in the store."),
    GAUGE(store_counts, file_bytes, "weir_store_size_bytes", "Bytes of the store on disk."),
};

static const struct metrics_row net_rows[] = {
    COUNTER(net_counts, connections_accepted, "weir_http_connections_accepted_total",
            "Connections accepted."),
    COUNTER(net_counts, requests, "weir_http_requests_total", "Requests whose head was complete."),
    COUNTER(net_counts, received_bytes, "weir_http_received_bytes_total", "Bytes received."),
    COUNTER(net_counts, sent_bytes, "weir_http_sent_bytes_total", "Bytes sent."),
    GAUGE(net_counts, connections_open, "weir_http_connections_open", "Connections open."),
    GAUGE(net_counts, buffered_bytes, "weir_http_buffered_bytes", "Bytes of bodies in memory."),
};

void self_figures_process(struct self_figures *f)
{
    f->cpu_ns = plat_cpu_ns();
    f->rss_bytes = plat_rss_bytes();
    f->open_fds = plat_open_fds();
    f->max_fds = plat_max_fds();
    f->start_wall_ns = plat_start_wall_ns();
}

static void write_drops(const struct self_figures *f, struct self_text *t)
{
    static const char name[] = "weir_spans_dropped_total";
    metrics_family(t, name, METRICS_COUNTER, "Spans that are in no row, by reason.");
    for (int i = 0; i < WEIR_DROP_COUNT; i++)
        metrics_u64(t, name, f->pipeline.stats.dropped[i], "reason",
                    weir_drop_name((enum weir_drop)i), (const char *)NULL);
}

static void write_collapsed(const struct self_figures *f, struct self_text *t)
{
    static const char spans[] = "weir_stats_collapsed_spans_total";
    static const char dropped[] = "weir_stats_dropped_aggregates_total";
    static const char values[] = "weir_limit_folded_values";
    static const char limits[] = "weir_limit_values";
    const struct weir_stats_health *const h = &f->pipeline.stats;
    metrics_family(t, spans, METRICS_COUNTER,
                   "Values written as tracer_blocked_value, by field; whole_key: spans booked in "
                   "the overflow row.");
    for (int i = 0; i < WEIR_LIMIT_COUNT; i++)
        metrics_u64(t, spans, h->collapsed[i], "collapsed", weir_limit_name((enum weir_limit)i),
                    (const char *)NULL);
    metrics_u64(t, spans, h->overflow, "collapsed", "whole_key", (const char *)NULL);
    metrics_u64(t, spans, h->oversized, "oversized", "additional_metric_tags", (const char *)NULL);
    metrics_family(t, dropped, METRICS_COUNTER,
                   "Spans for which there was no row, as the Datadog tracers count them.");
    metrics_u64(t, dropped, h->dropped[WEIR_DROP_TABLE_FULL], "reason", "lru_eviction",
                (const char *)NULL);
    metrics_u64(t, dropped, h->dropped[WEIR_DROP_INBOX_FULL], "reason", "inbox_full",
                (const char *)NULL);
    metrics_family(t, limits, METRICS_GAUGE, "Distinct values that a field may have in a window.");
    for (int i = 0; i < WEIR_LIMIT_COUNT; i++) {
        if (h->limits[i] != WEIR_LIMIT_OFF)
            metrics_u64(t, limits, h->limits[i], "field", weir_limit_name((enum weir_limit)i),
                        (const char *)NULL);
    }
    metrics_family(t, values, METRICS_GAUGE,
                   "Distinct values past a field's limit, in the newest window that had any: an "
                   "estimate.");
    for (int i = 0; i < WEIR_LIMIT_COUNT; i++) {
        if (h->limits[i] != WEIR_LIMIT_OFF)
            metrics_u64(t, values, h->folded[i], "field", weir_limit_name((enum weir_limit)i),
                        (const char *)NULL);
    }
}

static void write_servers(const struct self_figures *f, struct self_text *t)
{
    static const char responses[] = "weir_http_responses_total";
    static const char refused[] = "weir_http_refused_total";
    static const char *const classes[6] = {NULL, "1xx", "2xx", "3xx", "4xx", "5xx"};
    const struct metrics_set set = {.label = "server",
                                    .values = f->server_names,
                                    .from = f->servers,
                                    .stride = sizeof *f->servers,
                                    .count = f->server_count};
    metrics_table_set(t, net_rows, COUNT_OF(net_rows), &set);
    metrics_family(t, responses, METRICS_COUNTER, "Answers, by class of status.");
    for (size_t s = 0; s < f->server_count; s++) {
        for (size_t i = 1; i < 6; i++)
            metrics_u64(t, responses, f->servers[s].responses[i], "server", f->server_names[s],
                        "class", classes[i], (const char *)NULL);
    }
    metrics_family(t, refused, METRICS_COUNTER,
                   "Requests and connections that the HTTP server refused, by reason.");
    for (size_t s = 0; s < f->server_count; s++) {
        for (int i = 0; i < NET_REFUSAL_COUNT; i++)
            metrics_u64(t, refused, f->servers[s].refused[i], "server", f->server_names[s],
                        "reason", net_refusal_name((enum net_refusal)i), (const char *)NULL);
    }
}

static void gauge_double(struct self_text *t, const char *name, const char *help, double v)
{
    metrics_family(t, name, METRICS_GAUGE, help);
    metrics_double(t, name, v, (const char *)NULL);
}

static void gauge_u64(struct self_text *t, const char *name, const char *help, uint64_t v)
{
    metrics_family(t, name, METRICS_GAUGE, help);
    metrics_u64(t, name, v, (const char *)NULL);
}

static void write_store(const struct self_figures *f, struct self_text *t)
{
    gauge_u64(t, "weir_store_up", "1 if the last attempt to write to the store succeeded.",
              f->pipeline.store_ok);
    metrics_table(t, store_rows, COUNT_OF(store_rows), &f->pipeline.store);
    gauge_double(t, "weir_store_oldest_timestamp_seconds",
                 "Start of the oldest window in the store; 0 when it is empty.",
                 (double)f->pipeline.store.oldest_start_ns / 1e9);
    gauge_double(t, "weir_store_newest_timestamp_seconds",
                 "Start of the newest window in the store; 0 when it is empty.",
                 (double)f->pipeline.store.newest_start_ns / 1e9);
}

static void write_process(const struct self_figures *f, struct self_text *t)
{
    static const char cpu[] = "process_cpu_seconds_total";
    metrics_family(t, cpu, METRICS_COUNTER, "User and system time of the process.");
    metrics_double(t, cpu, (double)f->cpu_ns / 1e9, (const char *)NULL);
    gauge_u64(t, "process_resident_memory_bytes", "Resident memory of the process.", f->rss_bytes);
    gauge_u64(t, "process_open_fds", "Open file descriptors.", f->open_fds);
    gauge_u64(t, "process_max_fds", "The most open file descriptors.", f->max_fds);
    gauge_double(t, "process_start_time_seconds", "When the process started, since the Unix epoch.",
                 (double)f->start_wall_ns / 1e9);
}

void self_figures_write(const struct self_figures *f, struct self_text *t)
{
    metrics_family(t, "weir_build_info", METRICS_GAUGE, "1, with the version of the program.");
    metrics_u64(t, "weir_build_info", 1, "version", weir_version(), (const char *)NULL);
    metrics_table(t, stats_rows, COUNT_OF(stats_rows), &f->pipeline.stats);
    metrics_table(t, client_rows, COUNT_OF(client_rows), &f->pipeline.stats);
    write_drops(f, t);
    write_collapsed(f, t);
    metrics_table(t, pipeline_rows, COUNT_OF(pipeline_rows), &f->pipeline);
    write_store(f, t);
    write_servers(f, t);
    write_process(f, t);
}
