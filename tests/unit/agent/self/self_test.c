/* SPDX-License-Identifier: Apache-2.0 */
#include "self/figures.h"
#include "self/metrics.h"
#include "self/reconcile.h"
#include "self/text.h"
#include "t.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

/* The text with a NUL, freed by the caller; t is done. */
static char *text_of(struct self_text *t)
{
    T_TRUE(!t->failed);
    self_text_put(t, "", 1);
    char *const text = t->ptr;
    t->ptr = NULL;
    self_text_done(t);
    return text;
}

TEST(a_sample_escapes_its_label_values)
{
    struct self_text t = {.ptr = NULL};
    metrics_family(&t, "a_total", METRICS_COUNTER, "Back\\slash, \"quotes\"\nand lines.");
    metrics_u64(&t, "a_total", UINT64_MAX, "x", "q\"\\\n", "y", "", (const char *)NULL);
    metrics_u64(&t, "a_total", 0, (const char *)NULL);
    char *const text = text_of(&t);
    T_EQ_STR(text, "# HELP a_total Back\\\\slash, \"quotes\"\\nand lines.\n"
                   "# TYPE a_total counter\n"
                   "a_total{x=\"q\\\"\\\\\\n\",y=\"\"} 18446744073709551615\n"
                   "a_total 0\n");
    free(text);
}

TEST(a_double_is_written_so_that_it_reads_back)
{
    struct self_text t = {.ptr = NULL};
    metrics_double(&t, "g", 0.1, (const char *)NULL);
    metrics_double(&t, "g", (double)NAN, (const char *)NULL);
    metrics_double(&t, "g", (double)INFINITY, (const char *)NULL);
    metrics_double(&t, "g", -(double)INFINITY, (const char *)NULL);
    char *const text = text_of(&t);
    T_EQ_DBL(strtod(text + 2, NULL), 0.1);
    T_TRUE(strstr(text, "g NaN\ng +Inf\ng -Inf\n"));
    free(text);
}

TEST(a_text_past_its_maximum_fails_and_stays_failed)
{
    struct self_text t = {.ptr = NULL};
    char block[4096];
    memset(block, 'x', sizeof block);
    for (size_t i = 0; i < SELF_TEXT_MAX_BYTES / sizeof block; i++)
        self_text_put(&t, block, sizeof block);
    T_TRUE(!t.failed);
    self_text_puts(&t, "y");
    T_TRUE(t.failed);
    T_EQ_U64(t.len, SELF_TEXT_MAX_BYTES);
    self_text_puts(&t, "");
    T_TRUE(t.failed);
    self_text_done(&t);
}

static void fill(struct self_figures *f)
{
    memset(f, 0, sizeof *f);
    f->pipeline.stats.received = 1001;
    f->pipeline.stats.dropped[WEIR_DROP_INBOX_FULL] = 17;
    f->pipeline.store_ok = true;
    f->pipeline.pending_bytes = 12;
    f->pipeline.store.oldest_start_ns = 1500000000;
    f->server_names[0] = "web";
    f->server_names[1] = "datadog";
    f->server_count = 2;
    f->servers[1].responses[2] = 5;
    f->servers[1].refused[NET_REFUSED_TIMEOUT] = 6;
    self_figures_process(f);
}

static char *metrics(void)
{
    struct self_figures f;
    struct self_text t = {.ptr = NULL};
    fill(&f);
    self_figures_write(&f, &t);
    return text_of(&t);
}

TEST(metrics_show_the_counters_under_their_names)
{
    char *const text = metrics();
    T_TRUE(strstr(text, "\nweir_build_info{version=\"0.1.0\"} 1\n"));
    T_TRUE(strstr(text, "\nweir_spans_received_total 1001\n"));
    T_TRUE(strstr(text, "\nweir_spans_dropped_total{reason=\"inbox_full\"} 17\n"));
    T_TRUE(strstr(text, "\nweir_spans_dropped_total{reason=\"memory\"} 0\n"));
    T_TRUE(strstr(text, "\nweir_batches_pending_bytes 12\n"));
    T_TRUE(strstr(text, "\nweir_store_up 1\n"));
    T_TRUE(strstr(text, "\nweir_store_oldest_timestamp_seconds 1.5\n"));
    T_TRUE(strstr(text, "\nweir_http_responses_total{server=\"datadog\",class=\"2xx\"} 5\n"));
    T_TRUE(strstr(text, "\nweir_http_refused_total{server=\"datadog\",reason=\"timeout\"} 6\n"));
    T_TRUE(strstr(text, "\nweir_http_requests_total{server=\"web\"} 0\n"));
    const char *const fds = strstr(text, "\nprocess_open_fds ");
    T_TRUE(fds && strtoul(fds + 18, NULL, 10) >= 3);
    const char *const rss = strstr(text, "\nprocess_resident_memory_bytes ");
    T_TRUE(rss && strtoull(rss + 31, NULL, 10) > 100000);
    free(text);
}

/* The health counters of the contract (span-stats §1.14) by their names there. Those of sending
 * (flush_payloads, flush_errors, agent_downgrades) are of the library that sends, weir/client.h. */
TEST(each_health_counter_of_the_contract_is_in_the_health_and_in_the_metrics)
{
#define AT(field) offsetof(struct weir_stats_health, field)
#define COLLAPSED(limit) AT(collapsed) + sizeof(uint64_t) * WEIR_LIMIT_##limit
#define DROPPED(reason) AT(dropped) + sizeof(uint64_t) * WEIR_DROP_##reason
    static const struct {
        const char *name;
        const char *sample;
        size_t offset;
    } rows[] = {
        {"stats.traces_in", "weir_stats_traces_in_total", AT(traces_in)},
        {"stats.spans_in", "weir_stats_spans_in_total", AT(spans_in)},
        {"stats.dropped_p0_traces", "weir_stats_dropped_p0_traces_total", AT(dropped_p0_traces)},
        {"stats.dropped_p0_spans", "weir_stats_dropped_p0_spans_total", AT(dropped_p0_spans)},
        {"stats.dropped_aggregates", "weir_stats_dropped_aggregates_total{reason=\"lru_eviction\"}",
         DROPPED(TABLE_FULL)},
        {"stats.dropped_aggregates", "weir_stats_dropped_aggregates_total{reason=\"inbox_full\"}",
         DROPPED(INBOX_FULL)},
        {"stats.collapsed_spans", "weir_stats_collapsed_spans_total{collapsed=\"resource\"}",
         COLLAPSED(RESOURCE)},
        {"stats.collapsed_spans", "weir_stats_collapsed_spans_total{collapsed=\"service\"}",
         COLLAPSED(SERVICE)},
        {"stats.collapsed_spans", "weir_stats_collapsed_spans_total{collapsed=\"name\"}",
         COLLAPSED(OPERATION)},
        {"stats.collapsed_spans", "weir_stats_collapsed_spans_total{collapsed=\"service_source\"}",
         COLLAPSED(SERVICE_SOURCE)},
        {"stats.collapsed_spans", "weir_stats_collapsed_spans_total{collapsed=\"type\"}",
         COLLAPSED(TYPE)},
        {"stats.collapsed_spans", "weir_stats_collapsed_spans_total{collapsed=\"span_kind\"}",
         COLLAPSED(KIND)},
        {"stats.collapsed_spans", "weir_stats_collapsed_spans_total{collapsed=\"http_method\"}",
         COLLAPSED(HTTP_METHOD)},
        {"stats.collapsed_spans", "weir_stats_collapsed_spans_total{collapsed=\"http_endpoint\"}",
         COLLAPSED(HTTP_ENDPOINT)},
        {"stats.collapsed_spans",
         "weir_stats_collapsed_spans_total{collapsed=\"grpc_status_code\"}",
         COLLAPSED(GRPC_STATUS)},
        {"stats.collapsed_spans", "weir_stats_collapsed_spans_total{collapsed=\"peer_tags\"}",
         COLLAPSED(PEER_TAGS)},
        {"stats.collapsed_spans",
         "weir_stats_collapsed_spans_total{collapsed=\"additional_metric_tags\"}",
         COLLAPSED(ADDITIONAL)},
        {"stats.collapsed_spans", "weir_stats_collapsed_spans_total{collapsed=\"whole_key\"}",
         AT(overflow)},
        {"stats.collapsed_spans",
         "weir_stats_collapsed_spans_total{oversized=\"additional_metric_tags\"}", AT(oversized)},
    };
    enum { ROWS = sizeof rows / sizeof *rows };
    struct self_figures f;
    struct self_text t = {.ptr = NULL};
    fill(&f);
    for (size_t i = 0; i < ROWS; i++) {
        const uint64_t value = 1000 + i;
        memcpy((char *)&f.pipeline.stats + rows[i].offset, &value, sizeof value);
    }
    self_figures_write(&f, &t);
    char *const text = text_of(&t);
    for (size_t i = 0; i < ROWS; i++) {
        char want[160];
        (void)snprintf(want, sizeof want, "\n%s %zu\n", rows[i].sample, 1000 + i);
        if (!strstr(text, want))
            T_FAIL("%s is not there as %s", rows[i].name, rows[i].sample);
    }
    free(text);
}

TEST(every_sample_stands_below_its_own_help_and_type)
{
    char *const text = metrics();
    char family[128] = "";
    size_t samples = 0;
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
        if (strncmp(line, "# HELP ", 7) == 0) {
            (void)snprintf(family, sizeof family, "%.*s", (int)strcspn(line + 7, " "), line + 7);
            T_TRUE(strlen(line) > 7 + strlen(family) + 4);
            char *const type = strtok(NULL, "\n");
            char want[160];
            (void)snprintf(want, sizeof want, "# TYPE %s ", family);
            T_TRUE(type && strncmp(type, want, strlen(want)) == 0);
            /* A counter, and nothing else, is a total. */
            const size_t n = strlen(family);
            const bool total = n > 6 && strcmp(family + n - 6, "_total") == 0;
            T_TRUE(total == (strcmp(type + strlen(want), "counter") == 0));
            continue;
        }
        T_TRUE(strncmp(line, family, strlen(family)) == 0);
        T_TRUE(line[strlen(family)] == ' ' || line[strlen(family)] == '{');
        samples++;
    }
    T_TRUE(samples > 80);
    free(text);
}

TEST(promtool_finds_nothing_to_complain_of)
{
    if (system("command -v promtool >/dev/null 2>&1") != 0)
        T_SKIP_MISSING("promtool");
    FILE *const f = popen("promtool check metrics", "w");
    T_TRUE(f);
    char *const text = metrics();
    T_TRUE(fputs(text, f) >= 0);
    const int status = pclose(f);
    T_TRUE(WIFEXITED(status));
    T_EQ_I64(WEXITSTATUS(status), 0);
    free(text);
}

static struct pipeline_window balanced_window(void)
{
    struct pipeline_window w;
    memset(&w, 0, sizeof w);
    w.info.start_ns = 1764496800000000000;
    w.info.for_ns = 10000000000;
    w.info.rows = 3;
    w.info.counts.received = 10;
    w.info.counts.aggregated = 4;
    w.info.counts.ineligible = 3;
    w.info.counts.partial = 2;
    w.info.counts.dropped[WEIR_DROP_ID_ZERO] = 1;
    w.info.counts.admitted_weight = 4 * WEIR_WEIGHT_ONE;
    w.info.counts.rows_weight = 4 * WEIR_WEIGHT_ONE;
    w.info.counts.sketch_weight = 4 * WEIR_WEIGHT_ONE;
    return w;
}

TEST(the_equation_of_spans_has_all_its_terms)
{
    const struct pipeline_window good = balanced_window();
    T_TRUE(reconcile_spans_balanced(&good.info.counts));
    for (size_t i = 0; i < 4 + WEIR_DROP_COUNT; i++) {
        struct weir_window_counts c = good.info.counts;
        uint64_t *const terms[4] = {&c.received, &c.aggregated, &c.ineligible, &c.partial};
        (*(i < 4 ? terms[i] : &c.dropped[i - 4]))++;
        T_TRUE(!reconcile_spans_balanced(&c));
    }
    /* Late, future and overflow are of the aggregated: they are in no sum. */
    struct weir_window_counts c = good.info.counts;
    c.late = c.future = c.overflow = 4;
    T_TRUE(reconcile_spans_balanced(&c));
    /* A sum that wraps is no balance. */
    c = (struct weir_window_counts){.received = 0, .aggregated = UINT64_MAX, .partial = 1};
    T_TRUE(!reconcile_spans_balanced(&c));
}

TEST(the_equation_of_weight_has_three_sides)
{
    const struct pipeline_window good = balanced_window();
    T_TRUE(reconcile_weight_balanced(&good.info.counts));
    for (size_t i = 0; i < 3; i++) {
        struct weir_window_counts c = good.info.counts;
        uint64_t *const sides[3] = {&c.admitted_weight, &c.rows_weight, &c.sketch_weight};
        (*sides[i])--;
        T_TRUE(!reconcile_weight_balanced(&c));
    }
}

static char *reconciled(const struct pipeline_health *h, const struct pipeline_window *w, size_t n)
{
    struct self_text t = {.ptr = NULL};
    reconcile_write(h, w, n, &t);
    return text_of(&t);
}

TEST(reconcile_prints_every_term_and_says_which_equation_fails)
{
    struct pipeline_health h;
    struct pipeline_window w[3] = {balanced_window(), balanced_window(), balanced_window()};
    memset(&h, 0, sizeof h);
    h.stats.received = 30;
    h.stats.aggregated = 29;
    h.stats.dropped[WEIR_DROP_CLEARED] = 1;
    w[0].info.flags = WEIR_BATCH_OPEN;
    w[1].info.flags = WEIR_BATCH_EARLY | WEIR_BATCH_CORRECTION;
    w[2].stored = true;
    char *text = reconciled(&h, w, 3);
    T_TRUE(strncmp(text, "{\"balanced\":true,", 17) == 0);
    T_TRUE(strstr(text, "\"process\":{\"received\":30,\"aggregated\":29,\"ineligible\":0,"
                        "\"partial\":0,\"dropped\":{\"inbox_full\":0,"));
    T_TRUE(strstr(text, "\"cleared\":1,\"table_full\":0},\"late\":0,\"future\":0,\"overflow\":0,"
                        "\"balanced\":true}"));
    T_TRUE(strstr(text, "{\"start_ns\":1764496800000000000,\"for_ns\":10000000000,\"shard\":0,"
                        "\"state\":\"open\",\"early\":false,\"correction\":false,"
                        "\"cleared\":false,\"rows\":3,\"spans\":{\"received\":10,"));
    T_TRUE(strstr(text, "\"state\":\"sealed\",\"early\":true,\"correction\":true,"));
    T_TRUE(strstr(text, "\"state\":\"stored\",\"early\":false,"));
    T_TRUE(strstr(text, "\"weight\":{\"admitted\":4194304,\"rows\":4194304,\"sketches\":4194304,"
                        "\"balanced\":true}}"));
    T_TRUE(!strstr(text, "\"balanced\":false"));
    free(text);

    w[1].info.counts.sketch_weight--;
    w[0].info.flags = 0;
    w[0].lost = true;
    text = reconciled(&h, w, 3);
    T_TRUE(strstr(text, "\"state\":\"lost\""));
    T_TRUE(strncmp(text, "{\"balanced\":false,", 18) == 0);
    T_TRUE(strstr(text, "\"sketches\":4194303,\"balanced\":false}}"));
    free(text);
    h.stats.received++;
    text = reconciled(&h, w, 0);
    T_TRUE(strncmp(text, "{\"balanced\":false,", 18) == 0);
    T_TRUE(strstr(text, "\"windows\":[]}"));
    free(text);
}
