/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The generator against the engine, without an agent between: what was made is encoded, decoded,
 * aggregated and sealed, the rows are put in the form of the query API, and the check must pass.
 * So every endpoint and status is one row, by every protocol, and quantiles keep their bound.
 */
#include "cli/send_check.h"
#include "cli/send_encode.h"
#include "t.h"

#include <stdlib.h>
#include <string.h>
#include <weir/decode.h>
#include <weir/stats.h>

#define END_NS INT64_C(1796051777000000000)
#define ENV "send-0123456789"
#define BATCH 1000
#define BATCHES 20

struct engine {
    struct send_workload *workload;
    struct send_ledger *ledger;
    struct weir_stats *stats;
    struct weir_producer *producer;
    struct weir_decoder *decoder;
    char *text[SEND_QUESTIONS];
    size_t text_bytes[SEND_QUESTIONS];
    FILE *to[SEND_QUESTIONS];
    bool any;
};

static int add_span(void *ctx, const struct weir_span *span)
{
    return weir_stats_add(ctx, span);
}

static int end_trace(void *ctx)
{
    return weir_stats_trace_end(ctx);
}

static void aggregate(struct engine *g, enum send_protocol protocol, struct weir_bytes body)
{
    const struct weir_source source = {.now_ns = END_NS};
    const struct weir_span_sink sink = {
        .ctx = g->producer, .span = add_span, .trace_end = end_trace};
    struct weir_decode_result result;
    weir_stats_begin(g->producer, &source);
    switch (protocol) {
    case SEND_V04:
        T_OK(weir_decode_dd_v04(g->decoder, body.ptr, body.len, &sink, &result, NULL));
        break;
    case SEND_V05:
        T_OK(weir_decode_dd_v05(g->decoder, body.ptr, body.len, &sink, &result, NULL));
        break;
    case SEND_OTLP:
        T_OK(weir_decode_otlp_traces(g->decoder, body.ptr, body.len, &sink, &result, NULL));
        break;
    }
    T_EQ_U64(result.spans, BATCH);
    T_EQ_U64(result.refused, 0);
    weir_stats_commit(g->producer);
    (void)weir_stats_poll(g->stats, END_NS, END_NS);
}

static void send_all(struct engine *g, enum send_protocol protocol)
{
    const struct send_encoder_opts eo = {
        .protocol = protocol, .env = ENV, .runtime_id = "00000000-0000-4000-8000-000000000000"};
    struct send_encoder *e = NULL;
    T_OK(cli_send_encoder_new(&eo, g->workload, &e));
    for (int i = 0; i < BATCHES; i++) {
        struct send_span spans[BATCH];
        cli_send_encoder_begin(e, END_NS);
        for (size_t n = 0; n < BATCH;) {
            const size_t count = cli_send_workload_trace(g->workload, spans + n, BATCH - n);
            T_OK(cli_send_encoder_add(e, spans + n, count));
            n += count;
        }
        struct weir_bytes body;
        T_OK(cli_send_encoder_finish(e, &body));
        aggregate(g, protocol, body);
        T_OK(cli_send_ledger_add(g->ledger, spans, BATCH));
    }
    cli_send_encoder_free(e);
}

static struct weir_bytes label(const struct weir_label *l, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++) {
        if (l[i].name.len == strlen(name) && memcmp(l[i].name.ptr, name, l[i].name.len) == 0)
            return l[i].value;
    }
    return (struct weir_bytes){.ptr = "", .len = 0};
}

/* One series of the answer to each question. */
static void put_series(struct engine *g, const struct weir_label *l, size_t n,
                       const struct weir_sketch *sk, const char *status)
{
    static const double quantiles[] = {
        [SEND_ASK_P50] = 0.5, [SEND_ASK_P95] = 0.95, [SEND_ASK_P99] = 0.99};
    if (!sk || weir_sketch_weight(sk) == 0)
        return;
    double v[SEND_QUESTIONS];
    v[SEND_ASK_CALLS] = (double)(weir_sketch_weight(sk) / WEIR_WEIGHT_ONE);
    T_OK(weir_sketch_max(sk, &v[SEND_ASK_MAX]));
    for (int q = SEND_ASK_P50; q < SEND_QUESTIONS; q++)
        T_OK(weir_sketch_quantile(sk, quantiles[q], &v[q]));
    const struct weir_bytes service = label(l, n, "service_name");
    const struct weir_bytes resource = label(l, n, "span_name");
    for (int q = 0; q < SEND_QUESTIONS; q++)
        (void)fprintf(g->to[q],
                      "%s{\"metric\":{\"service_name\":\"%.*s\",\"span_name\":\"%.*s\","
                      "\"status_code\":\"STATUS_CODE_%s\"},\"value\":[0,\"%.17g\"]}",
                      g->any ? "," : "", (int)service.len, service.ptr, (int)resource.len,
                      resource.ptr, status, v[q]);
    g->any = true;
}

static void take_rows(struct engine *g)
{
    weir_stats_seal_all(g->stats, END_NS, END_NS);
    struct weir_batch *const b = weir_stats_take_batch(g->stats);
    T_TRUE(b);
    struct weir_batch_info info;
    weir_batch_get_info(b, &info);
    T_EQ_U64(info.counts.received, BATCH * BATCHES);
    T_EQ_U64(info.counts.aggregated, BATCH * BATCHES);
    T_EQ_U64(info.counts.rows_weight, info.counts.sketch_weight);
    for (size_t i = 0; i < info.rows; i++) {
        struct weir_label l[WEIR_LABELS_MAX];
        const size_t n = weir_batch_get_labels(b, i, l, WEIR_LABELS_MAX);
        const struct weir_bytes env = label(l, n, "env");
        T_EQ_BYTES(env.ptr, env.len, ENV, strlen(ENV));
        struct weir_row row;
        weir_batch_get_row(b, i, &row);
        put_series(g, l, n, row.ok, "UNSET");
        put_series(g, l, n, row.error, "ERROR");
    }
    weir_batch_release(b);
    T_TRUE(!weir_stats_take_batch(g->stats));
}

static void engine_begin(struct engine *g, const struct send_workload_opts *o)
{
    memset(g, 0, sizeof *g);
    T_OK(cli_send_workload_new(o, &g->workload));
    T_OK(
        cli_send_ledger_new(cli_send_workload_endpoints(g->workload), BATCH * BATCHES, &g->ledger));
    const struct weir_stats_opts so = {.struct_size = sizeof so};
    T_OK(weir_stats_new(&so, &g->stats));
    T_OK(weir_producer_new(g->stats, 4 << 20, WEIR_PRODUCER_OWNER, &g->producer));
    T_OK(weir_decoder_new(NULL, weir_stats_tags(g->stats), &g->decoder));
    (void)weir_stats_poll(g->stats, END_NS, END_NS);
    for (int q = 0; q < SEND_QUESTIONS; q++) {
        g->to[q] = open_memstream(&g->text[q], &g->text_bytes[q]);
        T_TRUE(g->to[q]);
        (void)fputs("{\"status\":\"success\",\"data\":{\"resultType\":\"vector\",\"result\":[",
                    g->to[q]);
    }
}

static void engine_end(struct engine *g)
{
    for (int q = 0; q < SEND_QUESTIONS; q++)
        free(g->text[q]);
    weir_decoder_free(g->decoder);
    weir_producer_free(g->producer);
    weir_stats_free(g->stats);
    cli_send_ledger_free(g->ledger);
    cli_send_workload_free(g->workload);
}

static void check_passes(enum send_protocol protocol, const struct send_workload_opts *o)
{
    struct engine g;
    engine_begin(&g, o);
    send_all(&g, protocol);
    take_rows(&g);
    cli_send_ledger_sort(g.ledger);
    struct send_answers *answers = NULL;
    T_OK(cli_send_answers_new(g.workload, g.ledger, &answers));
    for (int q = 0; q < SEND_QUESTIONS; q++) {
        (void)fputs("]}}", g.to[q]);
        (void)fclose(g.to[q]);
        const char *reason = NULL;
        T_OK(cli_send_answers_add(answers, (enum send_question)q, g.text[q], g.text_bytes[q],
                                  &reason));
    }
    const struct send_verdict v = cli_send_compare(answers, stderr, 20);
    T_EQ_U64(v.failures, 0);
    T_TRUE(v.rows >= 40 && v.worst_ratio > 0 && v.worst_ratio <= SEND_ALPHA * (1 + 1e-9));
    cli_send_answers_free(answers);
    engine_end(&g);
}

TEST(what_the_shop_sends_is_what_the_engine_counts_by_every_protocol)
{
    const struct send_workload_opts o = {
        .preset = SEND_PRESET_SHOP, .error_ratio = 0.1, .seed = t_seed()};
    for (int p = SEND_V04; p <= SEND_OTLP; p++)
        check_passes((enum send_protocol)p, &o);
}

TEST(what_generated_services_send_is_what_the_engine_counts)
{
    struct send_latency latency;
    T_TRUE(cli_send_latency_parse("uniform:0:1h", &latency));
    const struct send_workload_opts o = {.preset = SEND_PRESET_SIMPLE,
                                         .services = 8,
                                         .resources = 40,
                                         .spans_per_trace = 7,
                                         .error_ratio = 0.5,
                                         .latency = &latency,
                                         .seed = t_seed()};
    for (int p = SEND_V04; p <= SEND_OTLP; p++)
        check_passes((enum send_protocol)p, &o);
}
