/* SPDX-License-Identifier: Apache-2.0 */
/* send_check: see send_check.h. */
#include "cli/send_check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/json.h"

/* What the agent said of one endpoint and status. */
struct said {
    double value[SEND_QUESTIONS];
    uint32_t rows[SEND_QUESTIONS];
};

struct send_answers {
    const struct send_workload *workload;
    const struct send_ledger *ledger;
    struct said *said;     /* endpoint * SEND_STATUSES + status */
    uint64_t strange_rows; /* of services, resources or statuses that were never sent */
    char strange[160];     /* the first of them */
};

static const char *const question_names[] = {
    [SEND_ASK_CALLS] = "count", [SEND_ASK_MAX] = "max", [SEND_ASK_P50] = "p50",
    [SEND_ASK_P95] = "p95",     [SEND_ASK_P99] = "p99",
};
static const char *const status_names[] = {
    [SEND_UNSET] = "STATUS_CODE_UNSET",
    [SEND_ERROR] = "STATUS_CODE_ERROR",
};
static const double quantiles[] = {
    [SEND_ASK_P50] = 0.5, [SEND_ASK_P95] = 0.95, [SEND_ASK_P99] = 0.99};

int cli_send_answers_new(const struct send_workload *workload, const struct send_ledger *ledger,
                         struct send_answers **ret_answers)
{
    struct send_answers *const a = calloc(1, sizeof *a);
    struct said *const said =
        calloc(cli_send_workload_endpoints(workload), SEND_STATUSES * sizeof *said);
    if (!a || !said) {
        free(a);
        free(said);
        return WEIR_ENOMEM;
    }
    a->workload = workload;
    a->ledger = ledger;
    a->said = said;
    *ret_answers = a;
    return WEIR_OK;
}

void cli_send_answers_free(struct send_answers *a)
{
    if (!a)
        return;
    free(a->said);
    free(a);
}

void cli_send_question(enum send_question question, const char *env, uint64_t range_s, char *dst,
                       size_t size)
{
    static const char by[] = "by (service_name, span_name, status_code)";
    static const char durations[] = "traces_span_metrics_duration_seconds";
    const unsigned long long s = range_s;
    if (question == SEND_ASK_CALLS)
        (void)snprintf(dst, size,
                       "sum %s (increase(traces_span_metrics_calls_total{env=\"%s\"}[%llus]))", by,
                       env, s);
    else if (question == SEND_ASK_MAX)
        (void)snprintf(dst, size, "max %s (max_over_time(%s{env=\"%s\"}[%llus]))", by, durations,
                       env, s);
    else
        (void)snprintf(dst, size, "quantile_over_time(%g, %s{env=\"%s\"}[%llus])",
                       quantiles[question], durations, env, s);
}

static void note_strange(struct send_answers *a, struct weir_bytes service,
                         struct weir_bytes resource, struct weir_bytes status)
{
    if (a->strange_rows++ > 0)
        return;
    (void)snprintf(a->strange, sizeof a->strange, "%.*s / %.*s / %.*s",
                   (int)(service.len < 40 ? service.len : 40), service.ptr ? service.ptr : "",
                   (int)(resource.len < 60 ? resource.len : 60), resource.ptr ? resource.ptr : "",
                   (int)(status.len < 30 ? status.len : 30), status.ptr ? status.ptr : "");
}

static int status_of(const struct cli_json_value *v)
{
    for (int i = 0; i < SEND_STATUSES; i++) {
        if (cli_json_text_is(v, status_names[i]))
            return i;
    }
    return -1;
}

/* {"metric":{...},"value":[time,"v"]}. false: it is of another form. */
static bool add_row(struct send_answers *a, enum send_question q, const struct cli_json_value *row)
{
    const struct cli_json_value *const metric = cli_json_get(row, "metric");
    double value = 0;
    if (!metric || !cli_json_number(cli_json_at(cli_json_get(row, "value"), 1), &value))
        return false;
    /* Rows that say "nothing": a series of which this run has only the other status. */
    if (isnan(value) || (q == SEND_ASK_CALLS && value == 0))
        return true;
    const struct weir_bytes service = cli_json_text(cli_json_get(metric, "service_name"));
    const struct weir_bytes resource = cli_json_text(cli_json_get(metric, "span_name"));
    const struct cli_json_value *const code = cli_json_get(metric, "status_code");
    const int status = status_of(code);
    const size_t endpoint = service.ptr && resource.ptr && status >= 0
                                ? cli_send_workload_find(a->workload, service, resource)
                                : SIZE_MAX;
    if (endpoint == SIZE_MAX) {
        note_strange(a, service, resource, cli_json_text(code));
        return true;
    }
    struct said *const said = &a->said[endpoint * SEND_STATUSES + (size_t)status];
    said->value[q] = value;
    said->rows[q]++;
    return true;
}

static int add_rows(struct send_answers *a, enum send_question q, const struct cli_json_value *root,
                    const char **ret_reason)
{
    if (!cli_json_text_is(cli_json_get(root, "status"), "success")) {
        *ret_reason = "the status is not success";
        return WEIR_EFORMAT;
    }
    const struct cli_json_value *const data = cli_json_get(root, "data");
    const struct cli_json_value *const result = cli_json_get(data, "result");
    if (!cli_json_text_is(cli_json_get(data, "resultType"), "vector") || !result ||
        result->type != CLI_JSON_ARRAY) {
        *ret_reason = "not a vector";
        return WEIR_EFORMAT;
    }
    for (const struct cli_json_value *row = cli_json_first(result); row;
         row = cli_json_next(result, row)) {
        if (!add_row(a, q, row)) {
            *ret_reason = "a row without metric and value";
            return WEIR_EFORMAT;
        }
    }
    return WEIR_OK;
}

int cli_send_answers_add(struct send_answers *a, enum send_question q, const char *json, size_t n,
                         const char **ret_reason)
{
    struct cli_json *j = NULL;
    int err = cli_json_parse(json, n, &j, NULL);
    if (err == WEIR_ENOMEM)
        return err;
    if (err) {
        *ret_reason = "not JSON";
        return WEIR_EFORMAT;
    }
    err = add_rows(a, q, cli_json_root(j), ret_reason);
    cli_json_free(j);
    return err;
}

/* All values stand in one array, names before their values: no walk down is needed. */
static bool says_unbalanced(const struct cli_json_value *root)
{
    for (uint32_t i = 0; i + 1 < root->span; i++) {
        if (cli_json_text_is(&root[i], "balanced") && root[i + 1].type == CLI_JSON_FALSE)
            return true;
    }
    return false;
}

int cli_send_reconcile(const char *json, size_t n, bool *ret_balanced)
{
    struct cli_json *j = NULL;
    const int err = cli_json_parse(json, n, &j, NULL);
    if (err)
        return err == WEIR_ENOMEM ? err : WEIR_EFORMAT;
    const struct cli_json_value *const root = cli_json_root(j);
    const struct cli_json_value *const member = cli_json_get(root, "balanced");
    const bool known = member && (member->type == CLI_JSON_TRUE || member->type == CLI_JSON_FALSE);
    if (known)
        *ret_balanced = !says_unbalanced(root);
    cli_json_free(j);
    return known ? WEIR_OK : WEIR_EFORMAT;
}

struct comparing {
    const struct send_answers *answers;
    struct send_verdict verdict;
    FILE *list;
    uint64_t max_listed;
};

static void report(struct comparing *c, size_t endpoint, enum send_status status,
                   enum send_question q, const char *sent, const char *got)
{
    if (c->verdict.failures++ >= c->max_listed)
        return;
    const struct send_endpoint *const e =
        cli_send_workload_endpoint(c->answers->workload, endpoint);
    if (c->verdict.failures == 1)
        (void)fprintf(c->list, "%-16s %-32s %-6s %-6s %-24s %s\n", "service", "resource", "status",
                      "what", "sent", "answered");
    (void)fprintf(c->list, "%-16s %-32s %-6s %-6s %-24s %s\n", e->service, e->resource,
                  status_names[status] + strlen("STATUS_CODE_"), question_names[q], sent, got);
}

static void report_number(struct comparing *c, size_t endpoint, enum send_status status,
                          enum send_question q, double sent, double got)
{
    char s[40];
    char g[40];
    (void)snprintf(s, sizeof s, "%.17g", sent);
    (void)snprintf(g, sizeof g, "%.17g", got);
    report(c, endpoint, status, q, s, g);
}

/* One answer, and just one. */
static bool answered_once(struct comparing *c, size_t endpoint, enum send_status status,
                          enum send_question q, const struct said *said)
{
    if (said->rows[q] == 1)
        return true;
    char got[40] = "nothing";
    if (said->rows[q] > 1)
        (void)snprintf(got, sizeof got, "%u rows", (unsigned)said->rows[q]);
    report(c, endpoint, status, q, "one row", got);
    return false;
}

static void compare_quantile(struct comparing *c, size_t endpoint, enum send_status status,
                             enum send_question q, const struct said *said,
                             const struct send_cell *cell)
{
    int64_t next_ns = 0;
    const int64_t want_ns = cli_send_cell_rank(cell, quantiles[q], &next_ns);
    const double got_ns = said->value[q] * 1e9;
    const double want[] = {(double)want_ns, (double)next_ns};
    double best = (double)INFINITY;
    for (int i = 0; i < 2; i++) {
        const double off = fabs(got_ns - want[i]);
        const double ratio = off == 0 ? 0 : off / want[i];
        best = ratio < best ? ratio : best;
    }
    if (best <= SEND_ALPHA * (1 + 1e-9)) { /* a value on the bound itself may round past it */
        c->verdict.worst_ratio = best > c->verdict.worst_ratio ? best : c->verdict.worst_ratio;
        return;
    }
    report_number(c, endpoint, status, q, want[0] / 1e9, said->value[q]);
}

static void compare_cell(struct comparing *c, size_t endpoint, enum send_status status)
{
    const struct send_cell *const cell = cli_send_ledger_cell(c->answers->ledger, endpoint, status);
    const struct said *const said = &c->answers->said[endpoint * SEND_STATUSES + (size_t)status];
    if (cell->count == 0) {
        if (said->rows[SEND_ASK_CALLS] > 0)
            report_number(c, endpoint, status, SEND_ASK_CALLS, 0, said->value[SEND_ASK_CALLS]);
        return;
    }
    c->verdict.rows++;
    if (answered_once(c, endpoint, status, SEND_ASK_CALLS, said) &&
        said->value[SEND_ASK_CALLS] != (double)cell->count)
        report_number(c, endpoint, status, SEND_ASK_CALLS, (double)cell->count,
                      said->value[SEND_ASK_CALLS]);
    /* Equal in ns: seconds as a double come back to the same ns for any allowed duration. */
    if (answered_once(c, endpoint, status, SEND_ASK_MAX, said) &&
        round(said->value[SEND_ASK_MAX] * 1e9) != (double)cell->max_ns)
        report_number(c, endpoint, status, SEND_ASK_MAX, (double)cell->max_ns / 1e9,
                      said->value[SEND_ASK_MAX]);
    for (int q = SEND_ASK_P50; q < SEND_QUESTIONS; q++) {
        if (answered_once(c, endpoint, status, (enum send_question)q, said))
            compare_quantile(c, endpoint, status, (enum send_question)q, said, cell);
    }
}

struct send_verdict cli_send_compare(const struct send_answers *a, FILE *list, uint64_t max_listed)
{
    struct comparing c = {.answers = a, .list = list, .max_listed = max_listed};
    const size_t n = cli_send_workload_endpoints(a->workload);
    for (size_t i = 0; i < n; i++) {
        compare_cell(&c, i, SEND_UNSET);
        compare_cell(&c, i, SEND_ERROR);
    }
    if (a->strange_rows > 0) {
        c.verdict.failures += a->strange_rows;
        (void)fprintf(list, "%llu rows that were never sent, the first: %s\n",
                      (unsigned long long)a->strange_rows, a->strange);
    }
    return c.verdict;
}
