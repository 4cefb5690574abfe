/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weir query: its command line, the expressions of its table (which must be ones the agent
 * answers), and what it prints of answers.
 */
#include "t.h"

#include "cli/query_rows.h"
#include "query/eval.h"

#include <stdlib.h>
#include <string.h>

static bool parse(const char *const *args, size_t count, struct query_opts *opts, char err[256])
{
    char *argv[12] = {NULL};
    for (size_t i = 0; i < count; i++)
        argv[i] = strdup(args[i]);
    FILE *const to = fmemopen(err, 256, "w");
    T_TRUE(to != NULL);
    const bool ok = cli_query_opts_parse((int)count, argv, opts, to);
    (void)fclose(to);
    /* Texts are borrowed from argv: what a test looks at is compared before. */
    if (ok && opts->last && strcmp(opts->last, "5m") != 0)
        T_EQ_STR(opts->last, "1h30m");
    if (ok && opts->expr)
        T_EQ_STR(opts->expr, "1 + 1");
    for (size_t i = 0; i < count; i++)
        free(argv[i]);
    return ok;
}

TEST(options_are_taken_with_and_without_an_equals_sign)
{
    struct query_opts opts;
    char err[256] = "";
    static const char *const args[] = {"query", "--last=1h30m", "--sort", "p99", "--limit",
                                       "5",     "--json",       "1 + 1"};
    T_TRUE(parse(args, 8, &opts, err));
    T_EQ_U64(opts.sort, QUERY_SORT_P99);
    T_EQ_U64(opts.limit, 5);
    T_TRUE(opts.json);
    static const char *const behind[] = {"query", "--", "1 + 1"};
    T_TRUE(parse(behind, 3, &opts, err));
    static const char *const none[] = {"query"};
    T_TRUE(parse(none, 1, &opts, err));
    T_TRUE(opts.expr == NULL && !opts.json && opts.limit == 0);
}

TEST(an_interval_of_watching_may_stand_behind_it_and_is_two_seconds_otherwise)
{
    static const struct {
        const char *args[4];
        size_t count;
        int64_t want_ns;
        bool has_expr;
    } rows[] = {
        {{"query"}, 1, 0, false},
        {{"query", "--watch"}, 2, 2000000000, false},
        {{"query", "--watch=500ms"}, 2, 500000000, false},
        {{"query", "--watch", "10s"}, 3, 10000000000, false},
        {{"query", "--watch", "1 + 1"}, 3, 2000000000, true},
        {{"query", "--watch", "10s", "1 + 1"}, 4, 10000000000, true},
        {{"query", "--watch", "--json"}, 3, 2000000000, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct query_opts opts;
        char err[256] = "";
        T_TRUE(parse(rows[i].args, rows[i].count, &opts, err));
        T_EQ_I64(opts.watch_ns, rows[i].want_ns);
        T_TRUE(!!opts.expr == rows[i].has_expr);
    }
    static const char *const refused[] = {"--watch=0s", "--watch=99ms", "--watch=2d", "--watch=x"};
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        const char *const args[] = {"query", refused[i]};
        struct query_opts opts;
        char err[256] = "";
        T_TRUE(!parse(args, 2, &opts, err));
        T_TRUE(strstr(err, "wanted: ask again") != NULL);
    }
}

TEST(a_wrong_line_says_what_was_meant)
{
    static const struct {
        const char *args[3];
        size_t count;
        const char *want;
    } rows[] = {
        {{"query", "--sevice=x"},
         2,
         "weir query: unknown option --sevice; did you mean --service?\n"},
        {{"query", "--lasst"}, 2, "weir query: unknown option --lasst; did you mean --last?\n"},
        {{"query", "--last"}, 2, "weir query: --last needs a value\n"},
        {{"query", "--json=1"}, 2, "weir query: --json takes no value\n"},
        {{"query", "1", "2"},
         3,
         "weir query: more than one expression; quote it as one argument\n"},
        {{"query", "--limit", "-1"},
         3,
         "weir query: --limit -1: wanted: print at most so many rows, 0 for all (default 0)\n"},
        {{"query", "--last=5"},
         2,
         "weir query: --last 5: wanted: how far back, as 30s, 5m or 1h30m (default 5m)\n"},
        {{"query", "--last=0s"},
         2,
         "weir query: --last 0s: wanted: how far back, as 30s, 5m or 1h30m (default 5m)\n"},
        {{"query", "--last=5m}"},
         2,
         "weir query: --last 5m}: wanted: how far back, as 30s, 5m or 1h30m (default 5m)\n"},
        {{"query", "--sort=nope"},
         2,
         "weir query: --sort nope: wanted: rate, errors, p50, p95, p99, max, service, operation "
         "or resource (rate)\n"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct query_opts opts;
        char err[256] = "";
        T_TRUE(!parse(rows[i].args, rows[i].count, &opts, err));
        T_EQ_STR(err, rows[i].want);
    }
}

TEST(the_tables_questions_are_ones_the_agent_answers)
{
    const struct query_opts opts = {.last = "5m", .env = "a\"b\x01", .service = "\xC3\xA9\\"};
    for (int c = 0; c < QUERY_COLUMN_COUNT; c++) {
        struct query_buf expr;
        query_buf_init(&expr, 4096);
        cli_query_question((enum query_column)c, &opts, &expr);
        struct query_arena arena;
        query_arena_init(&arena, (size_t)1024 * 1024);
        struct query_error error = {0};
        const struct weir_bytes text = {.ptr = expr.ptr, .len = expr.len};
        struct query_node *const root = query_parse(&arena, text, &error);
        struct query_eval eval;
        struct query_value value;
        query_eval_init(&eval, &arena, NULL, text, 60000);
        if (!root || !query_check(root, &error) || !query_eval_run(&eval, root, &value))
            T_FAIL("%.*s: %s%s", (int)expr.len, expr.ptr, error.text, eval.error.text);
        query_eval_done(&eval);
        query_arena_done(&arena);
        query_buf_done(&expr);
    }
}

#define LABELS(service, operation, resource)                                                       \
    "{\"service_name\":\"" service "\",\"operation_name\":\"" operation                            \
    "\",\"span_name\":\"" resource "\"}"

static void add(struct query_rows *rows, enum query_column column, const char *result, int want)
{
    char text[2048];
    (void)snprintf(text, sizeof text, "{\"resultType\":\"vector\",\"result\":%s}", result);
    struct cli_json *json;
    T_OK(cli_json_parse(text, strlen(text), &json, NULL));
    T_ERR(cli_query_rows_add(rows, column, cli_json_root(json)), want);
    cli_json_free(json);
}

static void expect_print(struct query_rows *rows, const struct query_opts *opts, const char *want)
{
    struct query_buf out;
    query_buf_init(&out, 65536);
    cli_query_rows_print(rows, opts, &out);
    query_buf_put_char(&out, '\0');
    T_EQ_STR(out.ptr, want);
    query_buf_done(&out);
}

TEST(answers_become_rows_sorted_and_printed)
{
    struct query_rows *rows;
    T_OK(cli_query_rows_new(&rows));
    const char *const web = LABELS("web", "http.request", "GET /\\u001b[2J");
    const char *const db = "{\"service_name\":\"db\",\"span_name\":\"select\"}";
    char text[1024];
    static const struct {
        enum query_column column;
        const char *web;
        const char *db;
    } values[] = {
        {QUERY_COLUMN_CALLS, "1000", "50"},     {QUERY_COLUMN_RATE, "3.3333333333333335", "0.166"},
        {QUERY_COLUMN_ERRORS, "12", NULL},      {QUERY_COLUMN_P50, "0.00123456", "2.5"},
        {QUERY_COLUMN_P95, "0.0456", "12.5"},   {QUERY_COLUMN_P99, "0.9999", "125"},
        {QUERY_COLUMN_MAX, "0.000000789", "0"},
    };
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        int n = snprintf(text, sizeof text, "[{\"metric\":%s,\"value\":[1,\"%s\"]}", web,
                         values[i].web);
        if (values[i].db)
            n += snprintf(text + n, sizeof text - (size_t)n,
                          ",{\"metric\":%s,\"value\":[1,\"%s\"]}", db, values[i].db);
        (void)snprintf(text + n, sizeof text - (size_t)n, "]");
        add(rows, values[i].column, text, WEIR_OK);
    }
    struct query_opts opts = {.last = "5m"};
    expect_print(rows, &opts,
                 "SERVICE  OPERATION     RESOURCE        RATE    ERRORS       "
                 "P50       P95       P99       MAX\n"
                 "web      http.request  GET /?[2J      3.3/s     1.20%    1.2"
                 "3ms    45.6ms     1.00s     789ns\n"
                 "db       -             select       0.166/s     0.00%     2."
                 "50s     12.5s      125s       0ns\n");
    opts.sort = QUERY_SORT_P99;
    opts.limit = 1;
    opts.json = true;
    expect_print(rows, &opts,
                 "[{\"service\":\"db\",\"operation\":\"\",\"resource\":\"select\",\"calls\":50,"
                 "\"rate\":0.166,\"errors\":0,\"p50\":2.5,\"p95\":12.5,\"p99\":125,\"max\":0}]\n");
    cli_query_rows_free(rows);
}

TEST(answers_in_another_form_are_refused)
{
    struct query_rows *rows;
    T_OK(cli_query_rows_new(&rows));
    add(rows, QUERY_COLUMN_RATE, "{}", WEIR_EFORMAT);
    add(rows, QUERY_COLUMN_RATE, "[{\"metric\":{}}]", WEIR_EFORMAT);
    add(rows, QUERY_COLUMN_RATE, "[{\"metric\":{},\"value\":[1,\"x\"]}]", WEIR_EFORMAT);
    add(rows, QUERY_COLUMN_RATE, "[]", WEIR_OK);
    struct query_opts opts = {.last = "5m"};
    expect_print(rows, &opts, "Nothing in the last 5m.\n");
    opts.json = true;
    expect_print(rows, &opts, "[]\n");
    cli_query_rows_free(rows);
}

TEST(many_rows_are_each_found_again)
{
    struct query_rows *rows;
    T_OK(cli_query_rows_new(&rows));
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 500; i++) {
            char text[256];
            (void)snprintf(text, sizeof text,
                           "[{\"metric\":{\"service_name\":\"s%d\"},\"value\":[1,\"%d\"]}]", i, i);
            add(rows, round ? QUERY_COLUMN_MAX : QUERY_COLUMN_RATE, text, WEIR_OK);
        }
    }
    const struct query_opts opts = {.last = "5m", .json = true, .limit = 1};
    expect_print(rows, &opts,
                 "[{\"service\":\"s499\",\"operation\":\"\",\"resource\":\"\",\"calls\":0,\"rate\":"
                 "499,\"errors\":0,\"p50\":null,\"p95\":null,\"p99\":null,\"max\":499}]\n");
    cli_query_rows_free(rows);
}

static void expect_data(const char *data, int want, const char *lines)
{
    struct cli_json *json;
    T_OK(cli_json_parse(data, strlen(data), &json, NULL));
    struct query_buf out;
    query_buf_init(&out, 65536);
    T_ERR(cli_query_print_data(cli_json_root(json), &out), want);
    query_buf_put_char(&out, '\0');
    if (want == WEIR_OK)
        T_EQ_STR(out.ptr, lines);
    query_buf_done(&out);
    cli_json_free(json);
}

TEST(an_expressions_answer_is_a_line_a_series)
{
    expect_data("{\"resultType\":\"scalar\",\"result\":[4,\"2\"]}", WEIR_OK, "2\n");
    expect_data("{\"resultType\":\"string\",\"result\":[4,\"a\\u0007b\"]}", WEIR_OK, "a?b\n");
    expect_data("{\"resultType\":\"vector\",\"result\":[]}", WEIR_OK, "");
    expect_data("{\"resultType\":\"vector\",\"result\":[{\"metric\":{\"__name__\":\"m\",\"a\":"
                "\"b\",\"c\":\"d\"},\"value\":[4,\"1.5\"]},{\"metric\":{},\"histogram\":[4,{"
                "\"count\":\"3\",\"sum\":\"0.5\",\"buckets\":[[0,\"1\",\"2\",\"3\"]]}]}]}",
                WEIR_OK, "m{a=\"b\", c=\"d\"} 1.5\n{} count=3 sum=0.5 buckets=1\n");
    expect_data("{\"resultType\":\"vector\",\"result\":[{\"metric\":{}}]}", WEIR_EFORMAT, "");
    expect_data("{\"resultType\":\"scalar\",\"result\":{}}", WEIR_EFORMAT, "");
    expect_data("{}", WEIR_EFORMAT, "");
}
