/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Span statistics in a C program: the library's thread aggregates, the batches come to a callback.
 *
 *   cc stats.c $(pkg-config --cflags --libs weir) -o stats && ./stats
 */
#include <stdio.h>
#include <string.h>
#include <weir/stats.h>

static struct weir_bytes text(const char *s)
{
    struct weir_bytes b = {s, strlen(s)};
    return b;
}

/* On the library's thread. A tracer would encode the batch and send it. */
static void on_batch(void *ctx, struct weir_batch *batch)
{
    struct weir_batch_info info;
    size_t i;
    (void)ctx;
    weir_batch_get_info(batch, &info);
    for (i = 0; i < info.rows; i++) {
        struct weir_row row;
        struct weir_label labels[WEIR_LABELS_MAX];
        const size_t n = weir_batch_get_labels(batch, i, labels, WEIR_LABELS_MAX);
        size_t k;
        weir_batch_get_row(batch, i, &row);
        for (k = 0; k < n; k++) {
            if (labels[k].name.len == 9 && memcmp(labels[k].name.ptr, "span_name", 9) == 0)
                printf("%.*s: %llu spans, %llu errors\n", (int)labels[k].value.len,
                       labels[k].value.ptr, (unsigned long long)(row.hits / WEIR_WEIGHT_ONE),
                       (unsigned long long)(row.errors / WEIR_WEIGHT_ONE));
        }
    }
    weir_batch_release(batch);
}

int main(void)
{
    struct weir_stats_opts opts = {sizeof opts};
    struct weir_stats_start_opts start = {sizeof start};
    struct weir_stats *stats;
    struct weir_producer *producer;
    struct weir_stats_identity *orders;
    struct weir_source source = {{NULL, 0}, 0, 0};
    struct weir_span span;
    int i;

    source.now_ns = INT64_C(1800000000) * 1000000000;
    start.batch = on_batch;
    if (weir_stats_new(&opts, &stats) || weir_stats_start(stats, &start) ||
        weir_stats_producer(stats, &producer))
        return 1;

    /* By labels: a finished trace of three spans. */
    memset(&span, 0, sizeof span);
    span.service = text("shop");
    span.name = text("http.request");
    span.resource = text("GET /users");
    span.trace_id = 1;
    span.span_id = 1;
    span.kind = WEIR_KIND_SERVER;
    span.start_ns = source.now_ns;
    span.duration_ns = 3000000;
    for (i = 0; i < 3; i++) {
        span.flags = i == 2 ? WEIR_SPAN_ERROR : 0;
        if (weir_stats_publish(producer, &source, &span, 1))
            return 1;
    }

    /* By a label set prepared once. */
    span.resource = text("GET /orders");
    if (weir_stats_identity_new(stats, &source, &span, &orders))
        return 1;
    for (i = 0; i < 5; i++) {
        if (weir_stats_publish_identity(producer, orders, source.now_ns, 2000000, 0, 0))
            return 1;
    }
    weir_stats_identity_free(orders);

    weir_stats_stop(stats); /* seals what is open, and hands it over */
    weir_stats_free(stats);
    return 0;
}
