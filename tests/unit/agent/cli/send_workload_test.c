/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/send_shop.h"
#include "cli/send_workload.h"
#include "t.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static struct weir_bytes bytes(const char *s)
{
    return (struct weir_bytes){.ptr = s, .len = strlen(s)};
}

static struct send_workload *workload(const struct send_workload_opts *o)
{
    struct send_workload *w = NULL;
    T_OK(cli_send_workload_new(o, &w));
    return w;
}

TEST(durations_are_read_as_prometheus_writes_them)
{
    static const struct {
        const char *text;
        int64_t ns;
    } rows[] = {
        {.text = "0", .ns = 0},
        {.text = "10ns", .ns = 10},
        {.text = "1.5us", .ns = 1500},
        {.text = "250ms", .ns = 250000000},
        {.text = "1h30m", .ns = INT64_C(5400000000000)},
        {.text = "1d", .ns = INT64_C(86400000000000)},
        {.text = "0.1s", .ns = 100000000},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int64_t ns = -1;
        T_TRUE(cli_send_duration_parse(rows[i].text, strlen(rows[i].text), &ns));
        T_EQ_I64(ns, rows[i].ns);
    }
    static const char *const bad[] = {"",      "1",  "s",    "1 s", "-1s",      "1s1s", "1m1h",
                                      "1..5s", ".s", "1e3s", "20y", "9999999d", "1s ",  "+1s"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        int64_t ns = -1;
        if (cli_send_duration_parse(bad[i], strlen(bad[i]), &ns))
            T_FAIL("taken: \"%s\"", bad[i]);
    }
    char text[SEND_DURATION_TEXT];
    T_EQ_STR(cli_send_duration_text(0, text), "0ns");
    T_EQ_STR(cli_send_duration_text(1234567, text), "1.235ms");
    T_EQ_STR(cli_send_duration_text(SEND_DURATION_MAX_NS, text), "8.64e+04s");
}

TEST(latencies_are_drawn_within_their_bounds_and_around_their_median)
{
    struct send_rng rng = {.state = t_seed()};
    struct send_latency l;
    T_TRUE(cli_send_latency_parse("constant:5ms", &l));
    T_EQ_I64(cli_send_latency_draw(&l, &rng), 5000000);
    T_TRUE(cli_send_latency_parse("uniform:1ms:3ms", &l));
    int64_t low = INT64_MAX;
    int64_t high = 0;
    for (int i = 0; i < 20000; i++) {
        const int64_t v = cli_send_latency_draw(&l, &rng);
        low = v < low ? v : low;
        high = v > high ? v : high;
    }
    T_TRUE(low >= 1000000 && low < 1010000 && high <= 3000000 && high > 2990000);
    T_TRUE(cli_send_latency_parse("lognormal:20ms:0.5", &l));
    int below = 0;
    double sum = 0;
    for (int i = 0; i < 20000; i++) {
        const double v = (double)cli_send_latency_draw(&l, &rng);
        below += v < 20e6 ? 1 : 0;
        sum += log(v / 20e6) * log(v / 20e6);
    }
    T_TRUE(below > 9700 && below < 10300); /* 4 standard deviations of a fair coin: 283 */
    T_NEAR(sqrt(sum / 20000), 0.5, 0.03);
    T_TRUE(cli_send_latency_parse("uniform:0:0", &l));
    T_EQ_I64(cli_send_latency_draw(&l, &rng), 0);
    T_TRUE(cli_send_latency_parse("lognormal:24h:4", &l));
    for (int i = 0; i < 1000; i++)
        T_TRUE(cli_send_latency_draw(&l, &rng) <= SEND_DURATION_MAX_NS);
}

TEST(what_is_no_latency_is_refused)
{
    static const char *const bad[] = {"",
                                      "constant",
                                      "constant:",
                                      "constant:5",
                                      "uniform:1s",
                                      "uniform:2s:1s",
                                      "uniform:1s:25h",
                                      "lognormal:1s",
                                      "normal:1s:1",
                                      "lognormal:1s:-1",
                                      "lognormal:1s:5",
                                      "lognormal:1s:0.5:1",
                                      "lognormal:1s:x",
                                      "constant:25h"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct send_latency l;
        if (cli_send_latency_parse(bad[i], &l))
            T_FAIL("taken: %s", bad[i]);
    }
}

TEST(each_endpoint_of_the_shop_is_one_row_an_agent_can_answer_for)
{
    struct send_workload *const w = workload(
        &(struct send_workload_opts){.preset = SEND_PRESET_SHOP, .error_ratio = -1, .seed = 1});
    const size_t n = cli_send_workload_endpoints(w);
    T_EQ_U64(n, cli_send_shop_endpoint_count);
    for (size_t i = 0; i < n; i++) {
        const struct send_endpoint *const e = cli_send_workload_endpoint(w, i);
        /* (service, resource) is found again at its own number: it occurs once. */
        T_EQ_U64(cli_send_workload_find(w, bytes(e->service), bytes(e->resource)), i);
        T_TRUE(e->error_ratio > 0 && e->error_ratio < 0.1);
        T_TRUE((e->shape == SEND_HTTP) == (e->ok_status != 0));
        T_TRUE(e->ok_status == 0 || e->ok_status != e->error_status);
        T_TRUE(e->operation && e->type && e->component && e->host);
        T_TRUE(e->shape == SEND_WORK || (e->method && e->route));
    }
    T_TRUE(cli_send_workload_find(w, bytes("web"), bytes("GET /nothing")) == SIZE_MAX);
    T_TRUE(cli_send_workload_find(w, bytes("we"), bytes("GET /")) == SIZE_MAX);
    T_TRUE(cli_send_workload_find(w, bytes(""), bytes("")) == SIZE_MAX);
    cli_send_workload_free(w);
}

TEST(journeys_walk_earlier_steps_of_the_services_they_name)
{
    bool met[64] = {false};
    for (size_t i = 0; i < cli_send_shop_journey_count; i++) {
        const struct send_journey *const j = &cli_send_shop_journeys[i];
        T_TRUE(j->weight > 0 && j->count > 1);
        T_EQ_STR(cli_send_shop_endpoints[j->steps[0].endpoint].service, "web");
        for (size_t k = 0; k < j->count; k++) {
            T_TRUE(j->steps[k].endpoint < cli_send_shop_endpoint_count);
            T_TRUE(k == 0 || j->steps[k].parent < k);
            met[j->steps[k].endpoint] = true;
        }
    }
    for (size_t i = 0; i < cli_send_shop_endpoint_count; i++)
        T_TRUE(met[i]);
    const struct send_step *const last = &cli_send_shop_journeys[4].steps[9];
    T_EQ_STR(cli_send_shop_endpoints[last->endpoint].resource, "render invoice");
}

/* Ids are never 0, parents stand before, one trace id; the root alone has no parent. */
static void check_trace(const struct send_workload *w, const struct send_span *s, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        T_TRUE(s[i].span_id != 0 && s[i].trace_id != 0 && s[i].trace_id == s[0].trace_id);
        T_TRUE(s[i].endpoint < cli_send_workload_endpoints(w));
        size_t parent = 0;
        while (parent < i && s[parent].span_id != s[i].parent_id)
            parent++;
        T_TRUE(i == 0 ? s[i].parent_id == 0 && s[i].top_level : parent < i);
        if (i > 0) {
            const char *const a = cli_send_workload_endpoint(w, s[i].endpoint)->service;
            const char *const b = cli_send_workload_endpoint(w, s[parent].endpoint)->service;
            T_EQ_U64(s[i].top_level, strcmp(a, b) != 0);
        }
    }
}

static void check_same(const struct send_span *a, const struct send_span *b)
{
    T_EQ_U64(a->endpoint, b->endpoint);
    T_EQ_U64(a->error, b->error);
    T_EQ_I64(a->duration_ns, b->duration_ns);
    T_EQ_U64(a->trace_id, b->trace_id);
    T_EQ_U64(a->span_id, b->span_id);
    T_EQ_U64(a->parent_id, b->parent_id);
    T_EQ_U64(a->salt, b->salt);
}

TEST(traces_are_trees_of_the_wanted_size_and_the_same_for_a_seed)
{
    static const size_t sizes[] = {0, 1, 2, 7, 40};
    for (int preset = SEND_PRESET_SHOP; preset <= SEND_PRESET_SIMPLE; preset++) {
        for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
            const struct send_workload_opts o = {.preset = (enum send_preset)preset,
                                                 .services = 3,
                                                 .resources = 5,
                                                 .spans_per_trace = sizes[k],
                                                 .error_ratio = -1,
                                                 .seed = 9};
            struct send_workload *const w = workload(&o);
            struct send_workload *const again = workload(&o);
            struct send_span a[64];
            struct send_span b[64];
            for (int i = 0; i < 200; i++) {
                const size_t n = cli_send_workload_trace(w, a, 64);
                T_EQ_U64(cli_send_workload_trace(again, b, 64), n);
                for (size_t j = 0; j < n; j++)
                    check_same(&a[j], &b[j]);
                T_TRUE(sizes[k] ? n == sizes[k] : n >= 1 && n <= 10);
                check_trace(w, a, n);
            }
            T_EQ_U64(cli_send_workload_trace(w, a, 1), 1); /* cut */
            cli_send_workload_free(w);
            cli_send_workload_free(again);
        }
    }
}

TEST(error_ratio_and_latency_replace_those_of_the_preset)
{
    const struct send_latency constant = {.kind = SEND_CONSTANT, .a_ns = 77};
    struct send_workload *const w = workload(&(struct send_workload_opts){
        .preset = SEND_PRESET_SHOP, .error_ratio = 1, .latency = &constant, .seed = 3});
    struct send_span s[64];
    const size_t n = cli_send_workload_trace(w, s, 64);
    for (size_t i = 0; i < n; i++)
        T_TRUE(s[i].error && s[i].duration_ns == 77);
    cli_send_workload_free(w);
}

TEST(workloads_out_of_bounds_are_refused)
{
    struct send_workload *w = NULL;
    struct send_workload_opts o = {.preset = SEND_PRESET_SIMPLE, .services = 0, .resources = 1};
    T_ERR(cli_send_workload_new(&o, &w), WEIR_EINVAL);
    o.services = 1000;
    o.resources = 101;
    T_ERR(cli_send_workload_new(&o, &w), WEIR_EINVAL);
    o.resources = 1;
    o.spans_per_trace = SEND_TRACE_SPANS_MAX + 1;
    T_ERR(cli_send_workload_new(&o, &w), WEIR_EINVAL);
    o.spans_per_trace = 1;
    o.error_ratio = 1.5;
    T_ERR(cli_send_workload_new(&o, &w), WEIR_EINVAL);
    T_TRUE(!w);
}
