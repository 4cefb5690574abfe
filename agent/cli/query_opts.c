/* SPDX-License-Identifier: Apache-2.0 */
/*
 * query_opts: see the header. The table below is what is parsed and what --help prints.
 *
 * Threads: one. Memory: none.
 */
#include "cli/query_opts.h"

#include "cli/flags.h"
#include "query/literal.h"

#include <string.h>

#define WATCH_SECONDS 2.0
#define WATCH_SECONDS_MIN 0.1
#define WATCH_SECONDS_MAX 86400.0

enum option_kind {
    OPTION_URL,
    OPTION_LAST,
    OPTION_ENV,
    OPTION_SERVICE,
    OPTION_SORT,
    OPTION_LIMIT,
    OPTION_WATCH,
    OPTION_JSON,
    OPTION_HELP
};

static const struct cli_flag options[] = {
    [OPTION_URL] = {"url", "URL", "the agent (default $WEIR_URL, else http://127.0.0.1:9099)"},
    [OPTION_LAST] = {"last", "DURATION", "how far back, as 30s, 5m or 1h30m (default 5m)"},
    [OPTION_ENV] = {"env", "NAME", "only this environment"},
    [OPTION_SERVICE] = {"service", "NAME", "only this service"},
    [OPTION_SORT] = {"sort", "COLUMN",
                     "rate, errors, p50, p95, p99, max, service, operation or resource (rate)"},
    [OPTION_LIMIT] = {"limit", "ROWS", "print at most so many rows, 0 for all (default 0)"},
    [OPTION_WATCH] = {"watch", "[EVERY]",
                      "ask again and again, as often as 500ms or 10s says (2s), until Ctrl-C"},
    [OPTION_JSON] = {"json", NULL, "print JSON; of an expression the API's answer as it came"},
    [OPTION_HELP] = {"help", NULL, "print this"},
};
static const struct cli_flags flags = {.verb = "query",
                                       .at = options,
                                       .stride = sizeof *options,
                                       .count = sizeof options / sizeof *options};

static const char *const sorts[] = {
    [QUERY_SORT_RATE] = "rate",         [QUERY_SORT_ERRORS] = "errors",
    [QUERY_SORT_P50] = "p50",           [QUERY_SORT_P95] = "p95",
    [QUERY_SORT_P99] = "p99",           [QUERY_SORT_MAX] = "max",
    [QUERY_SORT_SERVICE] = "service",   [QUERY_SORT_OPERATION] = "operation",
    [QUERY_SORT_RESOURCE] = "resource",
};
#define SORT_COUNT (sizeof sorts / sizeof *sorts)

static bool set_sort(const char *value, enum query_sort *ret_sort)
{
    for (size_t i = 0; i < SORT_COUNT; i++) {
        if (strcmp(sorts[i], value) == 0) {
            *ret_sort = (enum query_sort)i;
            return true;
        }
    }
    return false;
}

static bool set_limit(const char *value, uint64_t *ret_limit)
{
    uint64_t limit = 0;
    for (const char *p = value; *p; p++) {
        if (*p < '0' || *p > '9' || limit > 100 * 1000 * 1000)
            return false;
        limit = limit * 10 + (uint64_t)(*p - '0');
    }
    *ret_limit = limit;
    return *value != '\0';
}

/* A PromQL duration above 0: it goes into the expressions as it stands. */
static bool is_duration(const char *value)
{
    struct query_error error = {.fault = QUERY_FAULT_NONE};
    const struct weir_bytes text = {.ptr = value, .len = strlen(value)};
    double seconds;
    return query_read_duration(text, 0, &seconds, &error) && seconds > 0;
}

/* "" is the default. */
static bool set_watch(const char *value, int64_t *ret_watch_ns)
{
    struct query_error error = {.fault = QUERY_FAULT_NONE};
    const struct weir_bytes text = {.ptr = value, .len = strlen(value)};
    double seconds = WATCH_SECONDS;
    const bool ok = text.len == 0 || query_read_duration(text, 0, &seconds, &error);
    if (!ok || !(seconds >= WATCH_SECONDS_MIN && seconds <= WATCH_SECONDS_MAX))
        return false;
    *ret_watch_ns = (int64_t)(seconds * 1e9);
    return true;
}

static bool set_value(enum option_kind kind, const char *value, struct query_opts *opts)
{
    switch (kind) {
    case OPTION_URL:
        opts->url = value;
        return *value != '\0';
    case OPTION_LAST:
        opts->last = value;
        return is_duration(value);
    case OPTION_ENV:
        opts->env = value;
        return true;
    case OPTION_SERVICE:
        opts->service = value;
        return true;
    case OPTION_SORT:
        return set_sort(value, &opts->sort);
    case OPTION_LIMIT:
        return set_limit(value, &opts->limit);
    case OPTION_WATCH:
        return set_watch(value, &opts->watch_ns);
    case OPTION_JSON:
        opts->json = true;
        return true;
    case OPTION_HELP:
        opts->help = true;
        return true;
    }
    return false;
}

static bool parse_option(void *ctx, int argc, char **argv, int *at, FILE *err)
{
    struct query_opts *const opts = ctx;
    const char *value = NULL;
    const size_t kind = cli_flags_read(&flags, argc, argv, at, &value, err);
    if (kind == SIZE_MAX)
        return false;
    /* A bare duration is no question that anybody asks twice: it is the interval. */
    if (kind == OPTION_WATCH && !value && *at + 1 < argc && is_duration(argv[*at + 1]))
        value = argv[++*at];
    return set_value((enum option_kind)kind, value ? value : "", opts) ||
           cli_flags_refuse(&flags, kind, value, err);
}

static bool parse_expr(void *ctx, const char *arg, FILE *err)
{
    struct query_opts *const opts = ctx;
    if (opts->expr) {
        (void)fprintf(err, "weir query: more than one expression; quote it as one argument\n");
        return false;
    }
    opts->expr = arg;
    return true;
}

bool cli_query_opts_parse(int argc, char **argv, struct query_opts *ret_opts, FILE *err)
{
    struct query_opts opts = {.last = "5m"};
    const struct cli_line line = {
        .opts = &opts, .help = &opts.help, .option = parse_option, .argument = parse_expr};
    if (!cli_flags_line(&line, argc, argv, err))
        return false;
    *ret_opts = opts;
    return true;
}

void cli_query_opts_help(FILE *to)
{
    (void)fputs("usage: weir query [OPTION]... [EXPRESSION]\n\n"
                "Print what went through an agent: a row for each service, operation and\n"
                "resource, or the answer to a PromQL expression. Open windows are included.\n\n",
                to);
    cli_flags_help(&flags, 17, to);
    (void)fputs("\nErrors are in percent of the calls; times are of all calls, failed ones too.\n"
                "Exit status: 0, 1 when there is no answer, 2 when the line is wrong.\n",
                to);
}
