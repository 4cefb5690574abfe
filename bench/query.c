/* SPDX-License-Identifier: Apache-2.0 */
/*
 * query: quantile_over_time over five minutes of a store: 691 series, 30 windows of 10 s, written
 * by the writer in 30 transactions, asked through the function behind the HTTP API, from the
 * request's text to the body. p99_10_spans    10 spans a series and window: 1 a second
 *   p99_100_spans   100
 * Nearly every row has one sketch: no span is an error.
 */
#include "spans.h"

#include "query/api.h"
#include "store/store.h"

#include <ftw.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SERIES = 691, WINDOWS = 30, TRACE = 8, SEED = 5, EVALUATIONS = 8 };

#define SECOND_NS (INT64_C(1000) * 1000 * 1000)
#define WINDOW_NS (10 * SECOND_NS)
#define T0_S INT64_C(1800000000)

static uint64_t allocations;

/* The linker puts these in front of the program's own calls, those of the SQLite library stay. */
void *__real_malloc(size_t bytes);
void *__real_calloc(size_t n, size_t bytes);
void *__real_realloc(void *old, size_t bytes);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t n, size_t bytes);
void *__wrap_realloc(void *old, size_t bytes);

void *__wrap_malloc(size_t bytes)
{
    allocations++;
    return __real_malloc(bytes);
}

void *__wrap_calloc(size_t n, size_t bytes)
{
    allocations++;
    return __real_calloc(n, bytes);
}

void *__wrap_realloc(void *old, size_t bytes)
{
    allocations++;
    return __real_realloc(old, bytes);
}

static void need(bool good, const char *what)
{
    if (good)
        return;
    fprintf(stderr, "bench: query: %s\n", what);
    exit(1);
}

/* --- a store ---------------------------------------------------------------------------------- */

struct stored {
    char dir[64];
    struct store *store;
    struct store_reader *reader;
    int64_t until_s;
};

/* One window's spans: every series has as many. */
static void publish(struct weir_stats *st, struct weir_producer *p,
                    const struct bench_labels *labels, struct bench_rng *rng, int64_t end_ns,
                    size_t spans_each)
{
    const struct weir_source source = {.now_ns = end_ns};
    (void)weir_stats_poll(st, end_ns, end_ns - T0_S * SECOND_NS);
    for (size_t i = 0; i < SERIES * spans_each; i += TRACE) {
        struct weir_span spans[TRACE];
        size_t n = 0;
        for (; n < TRACE && i + n < SERIES * spans_each; n++)
            spans[n] = bench_span(&labels[(i + n) % SERIES], end_ns, bench_latency_ns(rng), false);
        need(weir_stats_publish(p, &source, spans, n) == WEIR_OK, "a publish was refused");
        (void)weir_stats_poll(st, end_ns, end_ns - T0_S * SECOND_NS);
    }
}

static void write_window(struct stored *s, struct weir_stats *st, int64_t now_ns, uint64_t number)
{
    struct store_error error;
    weir_stats_seal_all(st, now_ns, now_ns - T0_S * SECOND_NS);
    struct weir_batch *const batch = weir_stats_take_batch(st);
    struct weir_batch_info info;
    need(batch != NULL, "no batch");
    weir_batch_get_info(batch, &info);
    need(info.rows == SERIES, "a batch of another size");
    need(store_write(s->store, batch, number, &error) == 0, "the store cannot be written");
    weir_batch_release(batch);
}

static void fill(struct stored *s, size_t spans_each)
{
    const struct weir_stats_opts o = {.struct_size = sizeof o,
                                      .profile = WEIR_PROFILE_ALL,
                                      .limits = {[WEIR_LIMIT_RESOURCE] = WEIR_LIMIT_OFF}};
    struct weir_stats *st;
    struct weir_producer *p;
    need(weir_stats_new(&o, &st) == WEIR_OK &&
             weir_producer_new(st, 0, WEIR_PRODUCER_OWNER, &p) == WEIR_OK,
         "no memory");
    struct bench_labels *const labels = bench_labels_new(st, SERIES);
    struct bench_rng rng = {.s = SEED};
    for (int64_t w = 0; w < WINDOWS; w++) {
        const int64_t end_ns = T0_S * SECOND_NS + w * WINDOW_NS + WINDOW_NS / 2;
        publish(st, p, labels, &rng, end_ns, spans_each);
        write_window(s, st, end_ns, (uint64_t)w + 1);
    }
    free(labels);
    weir_producer_free(p);
    weir_stats_free(st);
}

static void stored_open(struct stored *s, size_t spans_each)
{
    struct store_error error;
    bool replaced;
    const char *const tmp = getenv("TMPDIR");
    need(snprintf(s->dir, sizeof s->dir, "%s/weir-bench-XXXXXX", tmp ? tmp : "/tmp") <
             (int)sizeof s->dir,
         "TMPDIR is too long");
    need(mkdtemp(s->dir) != NULL, "no temporary folder");
    const struct store_opts o = {.path = s->dir,
                                 .retention_for_ns = STORE_RETENTION_FOR_NS_DEFAULT,
                                 .retention_bytes = STORE_RETENTION_BYTES_DEFAULT};
    need(store_open(&o, &s->store, &replaced, &error) == 0, "the store cannot be opened");
    fill(s, spans_each);
    need(store_reader_open(s->store, &s->reader, &error) == 0, "the store cannot be read");
    s->until_s = T0_S + WINDOWS * (WINDOW_NS / SECOND_NS);
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *ftw)
{
    (void)st;
    (void)kind;
    (void)ftw;
    return remove(path);
}

static void stored_close(struct stored *s)
{
    store_reader_close(s->reader);
    store_close(s->store);
    (void)nftw(s->dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

/* --- asking ----------------------------------------------------------------------------------- */

static int scan(void *ctx, const struct query_select *select, const struct query_visitor *visitor)
{
    return store_reader_scan(ctx, select, visitor);
}

/* A request as the server gives it; how many series came. */
static size_t evaluate(struct stored *s)
{
    char query[256];
    const int len = snprintf(query, sizeof query,
                             "time=%lld&query=quantile_over_time(0.99,"
                             "traces_span_metrics_duration_seconds%%5B5m%%5D)",
                             (long long)s->until_s);
    const struct query_api_request request = {.method = "GET",
                                              .path = {"/api/v1/query", strlen("/api/v1/query")},
                                              .query = {query, (size_t)len},
                                              .now_ns = s->until_s * SECOND_NS};
    const struct query_source source = {.ctx = s->reader, .scan = scan};
    uint64_t last;
    struct query_buf body;
    int status;
    need(store_reader_begin(s->reader, UINT64_MAX, &last) == 0, "no transaction");
    need(query_api_handle(&request, &source, &body, &status) == WEIR_OK && status == 200,
         "the query failed");
    store_reader_end(s->reader);
    size_t series = 0;
    for (const char *at = body.ptr;
         (at = memmem(at, (size_t)(body.ptr + body.len - at), "\"metric\"", 8)); at++)
        series++;
    query_buf_done(&body);
    return series;
}

static void run(const struct bench *b, const char *name, size_t spans_each)
{
    struct stored s = {.dir = ""};
    double values[1000];
    stored_open(&s, spans_each);
    const size_t series = evaluate(&s);
    need(series == SERIES, "another number of series");
    const uint64_t before = allocations;
    for (int i = 0; i < b->rounds; i++) {
        const int64_t from = bench_thread_cpu_ns();
        for (int k = 0; k < EVALUATIONS; k++)
            (void)evaluate(&s);
        values[i] = (double)(bench_thread_cpu_ns() - from) / 1e6 / EVALUATIONS;
    }
    const double each = (double)(allocations - before) / (b->rounds * EVALUATIONS);
    bench_report(b, name, "ms", "ms", BENCH_LOWER, values, (size_t)b->rounds);
    bench_report_one(b, name, "series", "count", (double)series);
    bench_report_one(b, name, "windows", "count", SERIES * WINDOWS);
    bench_report_one(b, name, "allocations", "count", each);
    stored_close(&s);
}

int main(int argc, char **argv)
{
    struct bench b;
    bench_begin(&b, "query", "Milliseconds of a quantile_over_time over five minutes of a store.",
                argc, argv);
    bench_pin(0);
    run(&b, "p99_10_spans", 10);
    run(&b, "p99_100_spans", 100);
    return 0;
}
