/* SPDX-License-Identifier: Apache-2.0 */
/*
 * query: an instant query over stored windows, as the HTTP API answers it: text in, JSON out. 691
 * series, 30 windows of 10 s, 100 spans each, in a SQLite store that the agent's own code wrote.
 *   quantile_5m   quantile_over_time(0.99, m[5m]): a sketch a series of 30
 *   merged_5m     histogram_quantile over the sum of all series: one sketch of 20,730
 *   rate_5m       rate of the calls, which needs no sketch
 */
#include "query/api.h"
#include "spans.h"
#include "store/store.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SERIES = 691, WINDOWS = 30, SPANS_A_WINDOW = 100, TRACE = 10, SEED = 7 };

static const int64_t window_ns = INT64_C(10) * 1000000000;
static const int64_t t0 = INT64_C(1800000000) * 1000000000;

static struct weir_stats *open_stats(struct bench_heap *heap)
{
    static const char *const peers[] = {"peer.service"};
    const struct weir_stats_opts o = {.struct_size = sizeof o,
                                      .alloc = bench_alloc(heap),
                                      .profile = WEIR_PROFILE_ALL,
                                      .lateness_for_ns = window_ns,
                                      .peer_tags = peers,
                                      .peer_tag_count = 1};
    struct weir_stats *st;
    if (weir_stats_new(&o, &st))
        abort();
    return st;
}

static void write_sealed(struct weir_stats *st, struct store *store, uint64_t *number)
{
    struct weir_batch *batch;
    struct store_error error;
    while ((batch = weir_stats_take_batch(st))) {
        if (store_write(store, batch, ++*number, &error)) {
            (void)fprintf(stderr, "bench_query: %s\n", error.text);
            exit(1);
        }
        weir_batch_release(batch);
    }
}

static void fill_window(struct weir_stats *st, struct weir_producer *p,
                        const struct bench_labels *labels, struct bench_rng *rng, int64_t start_ns)
{
    const struct weir_source source = {.now_ns = start_ns + 1};
    (void)weir_stats_poll(st, start_ns + 1, start_ns + 1 - t0);
    for (size_t i = 0; i < (size_t)SERIES * SPANS_A_WINDOW; i += TRACE) {
        struct weir_span spans[TRACE];
        for (size_t k = 0; k < TRACE; k++)
            spans[k] =
                bench_span(&labels[(i + k) % SERIES], start_ns + 1, bench_latency_ns(rng), false);
        if (weir_stats_publish(p, &source, spans, TRACE) != WEIR_OK)
            abort();
        (void)weir_stats_poll(st, start_ns + 1, start_ns + 1 - t0);
    }
}

static void fill(struct store *store)
{
    struct bench_heap heap = {0};
    struct weir_stats *const st = open_stats(&heap);
    struct weir_producer *p;
    uint64_t number = 0;
    if (weir_producer_new(st, 0, WEIR_PRODUCER_OWNER, &p))
        abort();
    struct bench_labels *const labels = bench_labels_new(st, SERIES);
    struct bench_rng rng = {.s = SEED};
    for (int64_t w = 0; w < WINDOWS; w++) {
        fill_window(st, p, labels, &rng, t0 + w * window_ns);
        write_sealed(st, store, &number);
    }
    weir_stats_seal_all(st, t0 + WINDOWS * window_ns, WINDOWS * window_ns);
    write_sealed(st, store, &number);
    weir_producer_free(p);
    free(labels);
    weir_stats_free(st);
}

static int scan(void *ctx, const struct query_select *select, const struct query_visitor *visitor)
{
    return store_reader_scan(ctx, select, visitor);
}

/* One answer; how many series are in it. */
static size_t ask(struct store_reader *reader, const char *form)
{
    static const char path[] = "/api/v1/query";
    const struct query_source source = {.ctx = reader, .scan = scan};
    const struct query_api_request request = {.method = "GET",
                                              .path = {path, sizeof path - 1},
                                              .query = {form, strlen(form)},
                                              .now_ns = t0 + WINDOWS * window_ns};
    struct query_buf body;
    int status = 0;
    uint64_t last;
    size_t series = 0;
    if (store_reader_begin(reader, UINT64_MAX, &last) ||
        query_api_handle(&request, &source, &body, &status) || status != 200) {
        (void)fprintf(stderr, "bench_query: %s was answered %d\n", form, status);
        exit(1);
    }
    store_reader_end(reader);
    for (const char *at = body.ptr, *end = at + body.len;
         (at = memmem(at, (size_t)(end - at), "\"metric\"", 8)); at += 8)
        series++;
    query_buf_done(&body);
    return series;
}

struct test_case {
    const char *name;
    const char *form;
    size_t series; /* in the answer */
};

static void run(const struct bench *b, struct store_reader *reader, const struct test_case *c)
{
    double values[1000];
    if (ask(reader, c->form) != c->series) {
        (void)fprintf(stderr, "bench_query: %s: not %zu series\n", c->name, c->series);
        exit(1);
    }
    for (int i = 0; i < b->rounds; i++) {
        const int64_t from = bench_now_ns();
        (void)ask(reader, c->form);
        values[i] = (double)(bench_now_ns() - from) / 1e6;
    }
    bench_report(b, c->name, "ms", "ms", BENCH_LOWER, values, (size_t)b->rounds);
    bench_report_one(b, c->name, "series", "count", (double)c->series);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        {"quantile_5m", "query=quantile_over_time(0.99,traces_span_metrics_duration_seconds[5m])",
         SERIES},
        {"merged_5m",
         "query=histogram_quantile(0.99,sum(increase(traces_span_metrics_duration_seconds[5m])))",
         1},
        {"rate_5m", "query=rate(traces_span_metrics_calls_total[5m])", SERIES}};
    struct bench b;
    char folder[] = "/tmp/weir-bench-XXXXXX";
    struct store *store;
    struct store_reader *reader;
    struct store_error error;
    bool replaced;
    bench_begin(&b, "query", "Milliseconds of an instant query over 691 series of 30 windows.",
                argc, argv);
    bench_pin(0);
    if (!mkdtemp(folder))
        abort();
    const struct store_opts opts = {.path = folder};
    if (store_open(&opts, &store, &replaced, &error) != 0) {
        (void)fprintf(stderr, "bench_query: %s\n", error.text);
        return 1;
    }
    fill(store);
    if (store_reader_open(store, &reader, &error) != 0)
        abort();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        run(&b, reader, &cases[i]);
    store_reader_close(reader);
    store_close(store);
    char command[64];
    (void)snprintf(command, sizeof command, "rm -r %s", folder);
    return system(command) ? 1 : 0;
}
