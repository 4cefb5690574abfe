/* SPDX-License-Identifier: Apache-2.0 */
/* send_report: see send_report.h. */
#include "cli/send_report.h"

#include <string.h>

/* For %llu, which reads better in long formats than the words of inttypes.h. */
static unsigned long long ull(uint64_t v)
{
    return v;
}

static const char *const status_names[] = {[SEND_UNSET] = "UNSET", [SEND_ERROR] = "ERROR"};
static const char *const protocol_names[] = {
    [SEND_V04] = "v0.4", [SEND_V05] = "v0.5", [SEND_OTLP] = "otlp"};

static void table(const struct send_run *run, FILE *to)
{
    (void)fprintf(to, "%-16s %-36s %-6s %12s %12s %12s %12s\n", "service", "resource", "status",
                  "spans", "mean", "min", "max");
    for (size_t i = 0; i < cli_send_ledger_endpoints(run->ledger); i++) {
        const struct send_endpoint *const e = cli_send_workload_endpoint(run->workload, i);
        for (int s = 0; s < SEND_STATUSES; s++) {
            const struct send_cell *const c =
                cli_send_ledger_cell(run->ledger, i, (enum send_status)s);
            if (c->count == 0)
                continue;
            char mean[SEND_DURATION_TEXT];
            char min[SEND_DURATION_TEXT];
            char max[SEND_DURATION_TEXT];
            (void)fprintf(to, "%-16s %-36s %-6s %12llu %12s %12s %12s\n", e->service, e->resource,
                          status_names[s], ull(c->count),
                          cli_send_duration_text(c->sum_ns / (int64_t)c->count, mean),
                          cli_send_duration_text(c->min_ns, min),
                          cli_send_duration_text(c->max_ns, max));
        }
    }
}

static void not_taken(const struct send_totals *t, FILE *to)
{
    if (t->refused_requests)
        (void)fprintf(to, "refused: %llu spans in %llu requests\n", ull(t->refused_spans),
                      ull(t->refused_requests));
    if (t->never_requests)
        (void)fprintf(to, "not sent, no connection: %llu spans in %llu requests\n",
                      ull(t->never_spans), ull(t->never_requests));
    if (t->unknown_requests)
        (void)fprintf(to, "fate unknown: %llu spans in %llu requests\n", ull(t->unknown_spans),
                      ull(t->unknown_requests));
    if (t->behind_spans)
        (void)fprintf(to, "behind the rate at the end: %llu spans were due and not sent\n",
                      ull(t->behind_spans));
    if (t->first_error[0])
        (void)fprintf(to, "the first error: %s\n", t->first_error);
    if (t->at_max_samples)
        (void)fputs("stopped at --check-max-samples\n", to);
    if (t->stopped)
        (void)fputs("stopped by a signal\n", to);
}

static void check_text(const struct send_check_result *c, bool passed, FILE *to)
{
    if (!c->asked) {
        (void)fprintf(to, "check: FAILED: %s\n", c->error);
        return;
    }
    (void)fprintf(to,
                  "check: %s: %llu rows, %llu differences, worst quantile off by %.4f %% "
                  "(%.4f %% allowed), windows %s\n",
                  passed ? "passed" : "FAILED", ull(c->verdict.rows), ull(c->verdict.failures),
                  c->verdict.worst_ratio * 100, SEND_ALPHA * 100,
                  c->balanced ? "balanced" : "NOT balanced");
}

void cli_send_report_text(const struct send_report *r, FILE *to)
{
    const struct send_totals *const t = &r->run->totals;
    const double s = (double)t->took_ns * 1e-9;
    if (!r->run->opts->quiet)
        table(r->run, to);
    (void)fprintf(to,
                  "sent %llu spans in %llu traces, %llu requests, %llu bytes, %.1f s "
                  "(%.0f spans/s), env %s\n",
                  ull(t->spans), ull(t->traces), ull(t->requests), ull(t->bytes), s,
                  s > 0 ? (double)t->spans / s : 0, r->env);
    not_taken(t, to);
    if (r->check)
        check_text(r->check, r->passed, to);
}

/* Texts here come from our tables, options and libcurl: bytes past ASCII become '?'. */
static void json_text(const char *text, FILE *to)
{
    (void)fputc('"', to);
    for (const char *p = text; *p; p++) {
        const unsigned char c = (unsigned char)*p;
        if (c == '"' || c == '\\')
            (void)fprintf(to, "\\%c", c);
        else if (c < 0x20)
            (void)fprintf(to, "\\u%04x", c);
        else
            (void)fputc(c < 0x7f ? c : '?', to);
    }
    (void)fputc('"', to);
}

static void json_member(const char *name, const char *text, FILE *to)
{
    (void)fprintf(to, "\"%s\":", name);
    json_text(text, to);
}

static void json_rows(const struct send_run *run, FILE *to)
{
    const char *between = "";
    (void)fputs(",\"rows\":[", to);
    for (size_t i = 0; i < cli_send_ledger_endpoints(run->ledger); i++) {
        const struct send_endpoint *const e = cli_send_workload_endpoint(run->workload, i);
        for (int s = 0; s < SEND_STATUSES; s++) {
            const struct send_cell *const c =
                cli_send_ledger_cell(run->ledger, i, (enum send_status)s);
            if (c->count == 0)
                continue;
            (void)fprintf(to, "%s\n{", between);
            json_member("service", e->service, to);
            (void)fputc(',', to);
            json_member("resource", e->resource, to);
            (void)fprintf(to,
                          ",\"status\":\"%s\",\"spans\":%llu,\"sum_ns\":%lld,\"min_ns\":%lld,"
                          "\"max_ns\":%lld}",
                          status_names[s], ull(c->count), (long long)c->sum_ns,
                          (long long)c->min_ns, (long long)c->max_ns);
            between = ",";
        }
    }
    (void)fputs("]", to);
}

static void json_check(const struct send_check_result *c, FILE *to)
{
    (void)fprintf(to,
                  ",\n\"check\":{\"asked\":%s,\"balanced\":%s,\"rows\":%llu,\"differences\":%llu,"
                  "\"worst_ratio\":%.9g,",
                  c->asked ? "true" : "false", c->balanced ? "true" : "false", ull(c->verdict.rows),
                  ull(c->verdict.failures), c->verdict.worst_ratio);
    json_member("error", c->error, to);
    (void)fputs("}", to);
}

void cli_send_report_json(const struct send_report *r, FILE *to)
{
    const struct send_totals *const t = &r->run->totals;
    (void)fputs("{", to);
    json_member("env", r->env, to);
    (void)fputs(",", to);
    json_member("protocol", protocol_names[r->run->opts->protocol], to);
    (void)fprintf(to,
                  ",\"passed\":%s,\"spans\":%llu,\"traces\":%llu,\"requests\":%llu,"
                  "\"bytes\":%llu,\"begin_ns\":%lld,\"took_ns\":%lld",
                  r->passed ? "true" : "false", ull(t->spans), ull(t->traces), ull(t->requests),
                  ull(t->bytes), (long long)t->begin_ns, (long long)t->took_ns);
    (void)fprintf(to,
                  ",\"refused_spans\":%llu,\"refused_requests\":%llu,\"never_spans\":%llu,"
                  "\"never_requests\":%llu,\"unknown_spans\":%llu,\"unknown_requests\":%llu,"
                  "\"behind_spans\":%llu,",
                  ull(t->refused_spans), ull(t->refused_requests), ull(t->never_spans),
                  ull(t->never_requests), ull(t->unknown_spans), ull(t->unknown_requests),
                  ull(t->behind_spans));
    json_member("first_error", t->first_error, to);
    json_rows(r->run, to);
    if (r->check)
        json_check(r->check, to);
    (void)fputs("}\n", to);
}
