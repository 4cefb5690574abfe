/* SPDX-License-Identifier: Apache-2.0 */
#include "send_canned.h"
#include "t.h"

#include <stdlib.h>
#include <string.h>

struct scene {
    struct send_workload *workload;
    struct send_ledger *ledger;
    struct send_answers *answers;
    char *text[SEND_QUESTIONS];
    char *list; /* what was printed */
    struct send_verdict verdict;
};

static void scene_begin(struct scene *s, double off)
{
    memset(s, 0, sizeof *s);
    const struct send_workload_opts o = {
        .preset = SEND_PRESET_SHOP, .error_ratio = 0.2, .seed = t_seed()};
    T_OK(cli_send_workload_new(&o, &s->workload));
    T_OK(cli_send_ledger_new(cli_send_workload_endpoints(s->workload), 100000, &s->ledger));
    struct send_span spans[64];
    for (int i = 0; i < 2000; i++) {
        const size_t n = cli_send_workload_trace(s->workload, spans, 64);
        T_OK(cli_send_ledger_add(s->ledger, spans, n));
    }
    cli_send_ledger_sort(s->ledger);
    T_OK(cli_send_answers_new(s->workload, s->ledger, &s->answers));
    for (int q = 0; q < SEND_QUESTIONS; q++)
        s->text[q] = canned_answer(s->workload, s->ledger, (enum send_question)q, off);
}

/* Take the texts in and compare. */
static void scene_compare(struct scene *s)
{
    for (int q = 0; q < SEND_QUESTIONS; q++) {
        const char *reason = NULL;
        T_OK(cli_send_answers_add(s->answers, (enum send_question)q, s->text[q], strlen(s->text[q]),
                                  &reason));
    }
    size_t n = 0;
    FILE *const f = open_memstream(&s->list, &n);
    T_TRUE(f);
    s->verdict = cli_send_compare(s->answers, f, 20);
    (void)fclose(f);
}

static void scene_end(struct scene *s)
{
    for (int q = 0; q < SEND_QUESTIONS; q++)
        free(s->text[q]);
    free(s->list);
    cli_send_answers_free(s->answers);
    cli_send_ledger_free(s->ledger);
    cli_send_workload_free(s->workload);
}

/* Replace the first what in an answer; what must be there. */
static void spoil(struct scene *s, enum send_question q, const char *what, const char *by)
{
    char *const old = s->text[q];
    char *const at = strstr(old, what);
    T_TRUE(at);
    const size_t size = strlen(old) + strlen(by) + 1;
    char *const text = malloc(size);
    T_TRUE(text);
    (void)snprintf(text, size, "%.*s%s%s", (int)(at - old), old, by, at + strlen(what));
    free(old);
    s->text[q] = text;
}

TEST(right_answers_pass_up_to_the_bound_on_both_sides)
{
    static const double offs[] = {0, 0.999, -0.999};
    for (size_t i = 0; i < 3; i++) {
        struct scene s;
        scene_begin(&s, offs[i]);
        scene_compare(&s);
        if (s.verdict.failures)
            T_FAIL("%s", s.list);
        T_EQ_U64(s.verdict.rows, 40);
        T_EQ_STR(s.list, "");
        T_TRUE(s.verdict.worst_ratio <= SEND_ALPHA);
        scene_end(&s);
    }
}

TEST(quantiles_past_the_bound_fail_each_of_them)
{
    static const double offs[] = {1.01, -1.01};
    for (size_t i = 0; i < 2; i++) {
        struct scene s;
        scene_begin(&s, offs[i]);
        scene_compare(&s);
        T_EQ_U64(s.verdict.failures, 3 * s.verdict.rows);
        T_TRUE(strstr(s.list, "p99"));
        /* 20 are listed, and a head. */
        size_t lines = 0;
        for (const char *at = strchr(s.list, '\n'); at; at = strchr(at + 1, '\n'))
            lines++;
        T_EQ_U64(lines, 21);
        scene_end(&s);
    }
}

TEST(a_count_off_by_one_fails_and_is_named)
{
    struct scene s;
    scene_begin(&s, 0);
    char have[64];
    char more[64];
    const uint64_t n = cli_send_ledger_cell(s.ledger, 0, SEND_UNSET)->count;
    (void)snprintf(have, sizeof have, "\"%llu\"", (unsigned long long)n);
    (void)snprintf(more, sizeof more, "\"%llu\"", (unsigned long long)n + 1);
    spoil(&s, SEND_ASK_CALLS, have, more);
    scene_compare(&s);
    T_EQ_U64(s.verdict.failures, 1);
    T_TRUE(strstr(s.list, "GET / ") && strstr(s.list, "UNSET") && strstr(s.list, "count"));
    scene_end(&s);
}

TEST(a_max_off_by_one_nanosecond_fails)
{
    struct scene s;
    scene_begin(&s, 0);
    char have[64];
    char more[64];
    const int64_t max_ns = cli_send_ledger_cell(s.ledger, 0, SEND_UNSET)->max_ns;
    (void)snprintf(have, sizeof have, "\"%.17g\"", (double)max_ns / 1e9);
    (void)snprintf(more, sizeof more, "\"%.17g\"", (double)(max_ns + 1) / 1e9);
    spoil(&s, SEND_ASK_MAX, have, more);
    scene_compare(&s);
    T_EQ_U64(s.verdict.failures, 1);
    T_TRUE(strstr(s.list, "max"));
    scene_end(&s);
}

TEST(a_missing_row_fails_every_question_it_is_missing_from)
{
    struct scene s;
    scene_begin(&s, 0);
    spoil(&s, SEND_ASK_CALLS, "STATUS_CODE_UNSET", "STATUS_CODE_OK");
    scene_compare(&s);
    T_EQ_U64(s.verdict.failures, 2); /* the row that is missing, and the one that is strange */
    T_TRUE(strstr(s.list, "nothing") && strstr(s.list, "web / GET / / STATUS_CODE_OK"));
    scene_end(&s);
}

TEST(two_rows_for_one_endpoint_are_no_quantile)
{
    struct scene s;
    scene_begin(&s, 0);
    spoil(&s, SEND_ASK_P50, "\"result\":[",
          "\"result\":[{\"metric\":{\"service_name\":\"web\",\"span_name\":\"GET /\","
          "\"status_code\":\"STATUS_CODE_UNSET\"},\"value\":[0,\"1\"]},");
    scene_compare(&s);
    T_EQ_U64(s.verdict.failures, 1);
    T_TRUE(strstr(s.list, "2 rows"));
    scene_end(&s);
}

TEST(rows_that_say_nothing_are_no_rows)
{
    struct scene s;
    scene_begin(&s, 0);
    static const char nan_row[] =
        "\"result\":[{\"metric\":{\"service_name\":\"web\",\"span_name\":\"GET /\","
        "\"status_code\":\"STATUS_CODE_UNSET\"},\"value\":[0,\"NaN\"]},";
    static const char zero_row[] =
        "\"result\":[{\"metric\":{\"service_name\":\"other\",\"span_name\":\"x\","
        "\"status_code\":\"STATUS_CODE_UNSET\"},\"value\":[0,\"0\"]},";
    spoil(&s, SEND_ASK_P50, "\"result\":[", nan_row);
    spoil(&s, SEND_ASK_CALLS, "\"result\":[", zero_row);
    scene_compare(&s);
    T_EQ_U64(s.verdict.failures, 0);
    scene_end(&s);
}

TEST(a_service_that_was_never_sent_fails)
{
    struct scene s;
    scene_begin(&s, 0);
    spoil(&s, SEND_ASK_CALLS, "\"result\":[",
          "\"result\":[{\"metric\":{\"service_name\":\"other\",\"span_name\":\"x\","
          "\"status_code\":\"STATUS_CODE_UNSET\"},\"value\":[0,\"5\"]},");
    scene_compare(&s);
    T_EQ_U64(s.verdict.failures, 1);
    T_TRUE(strstr(s.list, "never sent, the first: other / x"));
    scene_end(&s);
}

TEST(an_answer_of_another_form_is_refused)
{
    static const char *const bad[] = {
        "",
        "{",
        "[]",
        "{\"status\":\"error\",\"error\":\"x\"}",
        "{\"status\":\"success\"}",
        "{\"status\":\"success\",\"data\":{\"resultType\":\"matrix\",\"result\":[]}}",
        "{\"status\":\"success\",\"data\":{\"resultType\":\"vector\",\"result\":{}}}",
        "{\"status\":\"success\",\"data\":{\"resultType\":\"vector\",\"result\":[{}]}}",
        "{\"status\":\"success\",\"data\":{\"resultType\":\"vector\",\"result\":[{\"metric\":{},"
        "\"value\":[1]}]}}",
        "{\"status\":\"success\",\"data\":{\"resultType\":\"vector\",\"result\":[{\"metric\":{},"
        "\"value\":[1,\"x\"]}]}}",
    };
    struct scene s;
    scene_begin(&s, 0);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        const char *reason = NULL;
        T_ERR(cli_send_answers_add(s.answers, SEND_ASK_CALLS, bad[i], strlen(bad[i]), &reason),
              WEIR_EFORMAT);
        T_TRUE(reason);
    }
    scene_end(&s);
}

TEST(reconcile_is_balanced_when_nothing_in_it_says_otherwise)
{
    static const struct {
        const char *text;
        int err;
        bool balanced;
    } rows[] = {
        {.text = "{\"balanced\":true}", .err = 0, .balanced = true},
        {.text = "{\"windows\":[{\"balanced\":true}],\"balanced\":true}",
         .err = 0,
         .balanced = true},
        {.text = "{\"balanced\":false}", .err = 0, .balanced = false},
        {.text = "{\"balanced\":true,\"windows\":[{\"balanced\":false}]}",
         .err = 0,
         .balanced = false},
        {.text = "{}", .err = WEIR_EFORMAT, .balanced = false},
        {.text = "{\"balanced\":1}", .err = WEIR_EFORMAT, .balanced = false},
        {.text = "{\"windows\":[{\"balanced\":true}]}", .err = WEIR_EFORMAT, .balanced = false},
        {.text = "balanced", .err = WEIR_EFORMAT, .balanced = false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        bool balanced = false;
        T_ERR(cli_send_reconcile(rows[i].text, strlen(rows[i].text), &balanced), rows[i].err);
        T_EQ_U64(balanced, rows[i].balanced);
    }
}

TEST(the_questions_are_those_of_the_contract)
{
    char q[256];
    cli_send_question(SEND_ASK_CALLS, "send-1f", 120, q, sizeof q);
    T_EQ_STR(q, "sum by (service_name, span_name, status_code) "
                "(increase(traces_span_metrics_calls_total{env=\"send-1f\"}[120s]))");
    cli_send_question(SEND_ASK_MAX, "send-1f", 120, q, sizeof q);
    T_EQ_STR(q, "max by (service_name, span_name, status_code) "
                "(max_over_time(traces_span_metrics_duration_seconds{env=\"send-1f\"}[120s]))");
    cli_send_question(SEND_ASK_P95, "send-1f", 120, q, sizeof q);
    T_EQ_STR(q, "quantile_over_time(0.95, "
                "traces_span_metrics_duration_seconds{env=\"send-1f\"}[120s])");
}
