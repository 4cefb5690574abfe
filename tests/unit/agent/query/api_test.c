/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The HTTP API over a source of arrays: the bytes of its answers, its parameters, its refusals;
 * and the evaluator against sums and sorted samples made the plain way.
 */
#include "source_fake.h"
#include "t.h"

#include "query/api.h"
#include "query/eval.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define CALLS "traces_span_metrics_calls_total"
#define DURATION "traces_span_metrics_duration_seconds"
#define ONE WEIR_WEIGHT_ONE
#define MS ((int64_t)1000000)

/* Percent-encode everything but letters and digits. */
static size_t encode(const char *text, char *out)
{
    static const char hex[] = "0123456789ABCDEF";
    size_t n = 0;
    for (; *text; text++) {
        const unsigned char c = (unsigned char)*text;
        if ((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) {
            out[n++] = (char)c;
        } else {
            out[n++] = '%';
            out[n++] = hex[c >> 4];
            out[n++] = hex[c & 15];
        }
    }
    return n;
}

/* GET path?params; the body as text that the caller frees. */
static char *get(const struct fake *f, const char *method, const char *path, const char *params,
                 const char *form, int want_status)
{
    const struct query_api_request request = {
        .method = method,
        .path = {.ptr = path, .len = strlen(path)},
        .query = {.ptr = params, .len = strlen(params)},
        .body = {.ptr = form, .len = strlen(form)},
        .content_type = {.ptr = "application/x-www-form-urlencoded", .len = *form ? 33 : 0},
        .now_ns = (int64_t)1000 * 1000000000};
    struct query_buf body;
    int status = 0;
    T_OK(query_api_handle(&request, f ? &f->source : NULL, &body, &status));
    char *const text = malloc(body.len + 1);
    if (!text)
        T_FAIL("no memory");
    if (body.len)
        memcpy(text, body.ptr, body.len);
    text[body.len] = '\0';
    query_buf_done(&body);
    if (status != want_status)
        T_FAIL("%s?%s gave %d, want %d: %s", path, params, status, want_status, text);
    return text;
}

static char *ask(const struct fake *f, const char *expr, const char *more, int want_status)
{
    char params[4096] = "query=";
    size_t n = 6 + encode(expr, params + 6);
    memcpy(params + n, more, strlen(more) + 1);
    return get(f, "GET", "/api/v1/query", params, "", want_status);
}

static void expect_answer(const struct fake *f, const char *expr, const char *more,
                          const char *data)
{
    char *const got = ask(f, expr, more, 200);
    char want[4096];
    (void)snprintf(want, sizeof want, "{\"status\":\"success\",\"data\":%s}", data);
    if (strcmp(got, want) != 0)
        T_FAIL("%s\n  gave %s\n  want %s", expr, got, want);
    free(got);
}

static void expect_error(const struct fake *f, const char *expr, int status, const char *type,
                         const char *text)
{
    char *const got = ask(f, expr, "&time=60", status);
    char want[1024];
    (void)snprintf(want, sizeof want,
                   "{\"status\":\"error\",\"errorType\":\"%s\",\"error\":\"%s\"}", type, text);
    if (strcmp(got, want) != 0)
        T_FAIL("%s\n  gave %s\n  want %s", expr, got, want);
    free(got);
}

TEST(scalars_and_strings_answer_at_the_time_given)
{
    expect_answer(NULL, "1+1", "&time=4", "{\"resultType\":\"scalar\",\"result\":[4,\"2\"]}");
    expect_answer(NULL, "1", "", "{\"resultType\":\"scalar\",\"result\":[1000,\"1\"]}");
    expect_answer(NULL, "1", "&time=1796051777.183",
                  "{\"resultType\":\"scalar\",\"result\":[1796051777.183,\"1\"]}");
    expect_answer(NULL, "1", "&time=0.05", "{\"resultType\":\"scalar\",\"result\":[0.050,\"1\"]}");
    expect_answer(NULL, "1", "&time=-1.5", "{\"resultType\":\"scalar\",\"result\":[-1.500,\"1\"]}");
    expect_answer(NULL, "1", "&time=1970-01-01T00:01:40Z",
                  "{\"resultType\":\"scalar\",\"result\":[100,\"1\"]}");
    expect_answer(NULL, "1", "&time=2024-02-29T12:30:00.25%2B02:00",
                  "{\"resultType\":\"scalar\",\"result\":[1709202600.250,\"1\"]}");
    expect_answer(NULL, "\"a\\\"b\\n\\x01\\xff\xC3\xA9\"", "&time=4",
                  "{\"resultType\":\"string\",\"result\":[4,\"a\\\"b\\n\\u0001\xEF\xBF\xBD"
                  "\xC3\xA9\"]}");
}

TEST(scalar_arithmetic_follows_ieee_and_numbers_are_shortest)
{
    static const struct {
        const char *expr;
        const char *want;
    } rows[] = {
        {"0.1+0.2", "0.30000000000000004"},
        {"1/3", "0.3333333333333333"},
        {"2^3^2", "512"},
        {"-2^2", "-4"},
        {"(-2)^2", "4"},
        {"7 % 4", "3"},
        {"-7 % 4", "-3"},
        {"1 - 2 - 3", "-4"},
        {"1/0", "+Inf"},
        {"-1/0", "-Inf"},
        {"1/-0", "-Inf"},
        {"0/0", "NaN"},
        {"5 % 0", "NaN"},
        {"NaN", "NaN"},
        {"1e21", "1000000000000000000000"},
        {"1e20", "100000000000000000000"},
        {"0.000001", "0.000001"},
        {"0.0000001", "0.0000001"},
        {"1.25e-9", "0.00000000125"},
        {"123456789.123", "123456789.123"},
        {"9007199254740993", "9007199254740992"},
        {"100", "100"},
        {"0.5", "0.5"},
        {"1 == bool 1", "1"},
        {"1 > bool 2", "0"},
        {"1h30m", "5400"},
        {"0x1F", "31"},
        {"017", "15"},
        {"1_000", "1000"},
        {"2 * (3 + 4)", "14"},
        {"1 atan2 1", "0.7853981633974483"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char want[256];
        (void)snprintf(want, sizeof want, "{\"resultType\":\"scalar\",\"result\":[4,\"%s\"]}",
                       rows[i].want);
        expect_answer(NULL, rows[i].expr, "&time=4", want);
    }
}

TEST(samples_take_an_exponent_where_scalars_do_not)
{
    static const struct {
        double value;
        const char *want;
    } rows[] = {
        {1e21, "1e+21"},
        {1e20, "100000000000000000000"},
        {-1.5e300, "-1.5e+300"},
        {1e-6, "0.000001"},
        {1e-7, "1e-07"},
        {1.25e-9, "1.25e-09"},
        {5e-324, "5e-324"},
        {2.2250738585072014e-308, "2.2250738585072014e-308"},
        {1.7976931348623157e308, "1.7976931348623157e+308"},
        {-0.0, "-0"},
        {0.1, "0.1"},
        {123456789012345680, "123456789012345680"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct query_buf buf;
        query_buf_init(&buf, 1024);
        query_buf_put_double(&buf, rows[i].value);
        query_buf_put_char(&buf, '\0');
        T_EQ_STR(buf.ptr, rows[i].want);
        query_buf_done(&buf);
    }
    struct t_rng r = t_rng(t_seed());
    for (int i = 0; i < 20000; i++) {
        const uint64_t bits = t_next(&r);
        double value;
        memcpy(&value, &bits, sizeof value);
        if (i % 4 == 0)
            value = (double)(bits >> (bits % 64)); /* whole numbers have a way of their own */
        if (!isfinite(value))
            continue;
        struct query_buf buf;
        query_buf_init(&buf, 1024);
        query_buf_put_double(&buf, value);
        query_buf_put_char(&buf, '\0');
        T_EQ_DBL(strtod(buf.ptr, NULL), value);
        query_buf_done(&buf);
    }
}

/* Two services in 10 s windows that end at 10..60 s; "db" errs now and then. */
static void fill(struct fake *f)
{
    fake_init(f);
    const size_t web =
        fake_add_series(f, "env=prod,service_name=web,span_kind=SPAN_KIND_SERVER,span_name=GET /");
    const size_t db =
        fake_add_series(f, "env=prod,service_name=db,span_kind=SPAN_KIND_CLIENT,span_name=select");
    for (int64_t end = 10; end <= 60; end += 10) {
        struct fake_window *const w = fake_add_window(f, web, end - 10, end);
        for (int64_t i = 0; i < end / 10; i++)
            fake_hit(w, 1000 * MS, false, ONE);
        struct fake_window *const d = fake_add_window(f, db, end - 10, end);
        fake_hit(d, 250 * MS, false, ONE);
        if (end % 20 == 0)
            fake_hit(d, 2000 * MS, true, ONE);
    }
    struct fake_window *const open = fake_add_window(f, web, 60, 70);
    open->open = true;
    fake_hit(open, 1000 * MS, false, ONE / 2);
}

#define WEB                                                                                        \
    "\"env\":\"prod\",\"service_name\":\"web\",\"span_kind\":\"SPAN_KIND_SERVER\","                \
    "\"span_name\":\"GET /\",\"status_code\":\"STATUS_CODE_UNSET\""
#define DB(status)                                                                                 \
    "\"env\":\"prod\",\"service_name\":\"db\",\"span_kind\":\"SPAN_KIND_CLIENT\","                 \
    "\"span_name\":\"select\",\"status_code\":\"STATUS_CODE_" status "\""
#define VECTOR(samples) "{\"resultType\":\"vector\",\"result\":[" samples "]}"
#define SAMPLE(labels, time, value) "{\"metric\":{" labels "},\"value\":[" time ",\"" value "\"]}"

TEST(increase_is_the_exact_sum_of_the_windows_that_ended_in_range)
{
    struct fake f;
    fill(&f);
    expect_answer(&f, "increase(" CALLS "[30s])", "&time=60",
                  VECTOR(SAMPLE(DB("ERROR"), "60", "2") "," SAMPLE(
                      DB("UNSET"), "60", "3") "," SAMPLE(WEB, "60", "15")));
    /* Left-open: the window that ended at 30 is out at 60, in at 59.999. */
    expect_answer(&f, "increase(" CALLS "{service_name=\"web\"}[30s])", "&time=59.999",
                  VECTOR(SAMPLE(WEB, "59.999", "12")));
    expect_answer(&f, "rate(" CALLS "{service_name=\"web\"}[30s])", "&time=60",
                  VECTOR(SAMPLE(WEB, "60", "0.5")));
    expect_answer(&f, "increase(" CALLS "{service_name=\"web\"}[30s] offset 30s)", "&time=60",
                  VECTOR(SAMPLE(WEB, "60", "6")));
    expect_answer(&f, "increase(" CALLS "{service_name=\"web\"}[30s] @ 30)", "&time=60",
                  VECTOR(SAMPLE(WEB, "60", "6")));
    expect_answer(&f, "increase(" CALLS "[5s])", "&time=5", VECTOR(""));
    expect_answer(&f, "increase(other_metric[5m])", "&time=60", VECTOR(""));
    fake_done(&f);
}

TEST(open_windows_count_only_when_the_source_includes_them)
{
    struct fake f;
    fill(&f);
    const char *const expr = "increase(" CALLS "{service_name=\"web\"}[5s])";
    expect_answer(&f, expr, "&time=65", VECTOR(""));
    f.include_open = true;
    expect_answer(&f, expr, "&time=65", VECTOR(SAMPLE(WEB, "65", "0.5")));
    expect_answer(&f, expr, "&time=60", VECTOR(SAMPLE(WEB, "60", "6")));
    fake_done(&f);
}

TEST(a_running_total_is_shown_while_its_row_had_a_window_in_the_look_back)
{
    struct fake f;
    fill(&f);
    const char *const web = CALLS "{service_name=\"web\"}";
    expect_answer(&f, web, "&time=60",
                  VECTOR(SAMPLE("\"__name__\":\"" CALLS "\"," WEB, "60", "21")));
    expect_answer(&f, web, "&time=25",
                  VECTOR(SAMPLE("\"__name__\":\"" CALLS "\"," WEB, "25", "3")));
    expect_answer(&f, web, "&time=359.999",
                  VECTOR(SAMPLE("\"__name__\":\"" CALLS "\"," WEB, "359.999", "21")));
    expect_answer(&f, web, "&time=360", VECTOR(""));
    expect_answer(&f, web, "&time=80&lookback_delta=10s", VECTOR(""));
    expect_answer(&f, web, "&time=69&lookback_delta=10",
                  VECTOR(SAMPLE("\"__name__\":\"" CALLS "\"," WEB, "69", "21")));
    /* The error status stays, though the last window had none. */
    expect_answer(&f, CALLS "{status_code=\"STATUS_CODE_ERROR\"}", "&time=50&lookback_delta=5s",
                  VECTOR(SAMPLE("\"__name__\":\"" CALLS "\"," DB("ERROR"), "50", "2")));
    /* What retention removed still counts. */
    fake_set_base(&f, 0, 1000 * MS, 1000);
    expect_answer(&f, web, "&time=60",
                  VECTOR(SAMPLE("\"__name__\":\"" CALLS "\"," WEB, "60", "1021")));
    fake_done(&f);
}

TEST(a_histogram_has_count_sum_and_buckets)
{
    struct fake f;
    fill(&f);
    /* One second is the upper bound of its bin: (2^(-1/64), 1]. */
    expect_answer(&f, "increase(" DURATION "{service_name=\"web\"}[20s])", "&time=20.5",
                  VECTOR("{\"metric\":{" WEB
                         "},\"histogram\":[20.500,{\"count\":\"3\",\"sum\":\"3\","
                         "\"buckets\":[[0,\"0.9892280131939755\",\"1\",\"3\"]]}]}"));
    expect_answer(&f, "rate(" DURATION "{service_name=\"web\"}[20s]) * 2", "&time=20.5",
                  VECTOR("{\"metric\":{" WEB "},\"histogram\":[20.500,{\"count\":\"0.3\",\"sum\":"
                         "\"0.3\",\"buckets\":[[0,\"0.9892280131939755\",\"1\",\"0.3\"]]}]}"));
    expect_answer(&f, DURATION "{service_name=\"web\"}", "&time=20.5",
                  VECTOR("{\"metric\":{\"__name__\":\"" DURATION "\"," WEB
                         "},\"histogram\":[20.500,{\"count\":\"3\",\"sum\":\"3\",\"buckets\":[[0,"
                         "\"0.9892280131939755\",\"1\",\"3\"]]}]}"));
    struct fake zero;
    fake_init(&zero);
    (void)fake_add_series(&zero, "service_name=z");
    fake_hit(fake_add_window(&zero, 0, 0, 10), 0, false, ONE);
    expect_answer(&zero, "sum(increase(" DURATION "[10s]))", "&time=10",
                  VECTOR("{\"metric\":{},\"histogram\":[10,{\"count\":\"1\",\"sum\":\"0\","
                         "\"buckets\":[[3,\"0\",\"0\",\"1\"]]}]}"));
    fake_done(&zero);
    fake_done(&f);
}

TEST(each_bucket_has_its_own_bounds)
{
    struct fake f;
    fake_init(&f);
    (void)fake_add_series(&f, "service_name=z");
    struct fake_window *const w = fake_add_window(&f, 0, 0, 10);
    /* Two bins that touch, and one far off: (2^(-1/64), 1], (1, 2^(1/64)], (2, 2 * 2^(1/64)]. */
    fake_hit(w, 995 * MS, false, ONE);
    fake_hit(w, 1005 * MS, false, ONE);
    fake_hit(w, 2010 * MS, false, ONE);
    expect_answer(
        &f, "sum(increase(" DURATION "[10s]))", "&time=10",
        VECTOR("{\"metric\":{},\"histogram\":[10,{\"count\":\"3\",\"sum\":\"4.01\","
               "\"buckets\":[[0,\"0.9892280131939755\",\"1\",\"1\"],[0,\"1\","
               "\"1.0108892860517005\",\"1\"],[0,\"2\",\"2.021778572103401\",\"1\"]]}]}"));
    fake_done(&f);
}

TEST(histogram_functions_read_the_merged_sketch)
{
    struct fake f;
    fill(&f);
    expect_answer(&f, "histogram_count(increase(" DURATION "[1m]))", "&time=60",
                  VECTOR(SAMPLE(DB("ERROR"), "60", "3") "," SAMPLE(
                      DB("UNSET"), "60", "6") "," SAMPLE(WEB, "60", "21")));
    expect_answer(&f, "histogram_sum(rate(" DURATION "{service_name=\"db\"}[1m]))", "&time=60",
                  VECTOR(SAMPLE(DB("ERROR"), "60", "0.1") "," SAMPLE(DB("UNSET"), "60", "0.025")));
    expect_answer(&f, "histogram_avg(sum by (service_name) (rate(" DURATION "[1m])))", "&time=60",
                  VECTOR(SAMPLE("\"service_name\":\"db\"", "60", "0.8333333333333334") "," SAMPLE(
                      "\"service_name\":\"web\"", "60", "1")));
    expect_answer(&f, "histogram_quantile(1, sum by (service_name) (rate(" DURATION "[1m])))",
                  "&time=60",
                  VECTOR(SAMPLE("\"service_name\":\"db\"", "60",
                                "2") "," SAMPLE("\"service_name\":\"web\"", "60", "1")));
    expect_answer(&f, "quantile_over_time(0, " DURATION "{service_name=\"db\"}[1m])", "&time=60",
                  VECTOR(SAMPLE(DB("ERROR"), "60", "2") "," SAMPLE(DB("UNSET"), "60", "0.25")));
    expect_answer(&f, "max_over_time(" DURATION "{service_name=\"db\"}[1m])", "&time=60",
                  VECTOR(SAMPLE(DB("ERROR"), "60", "2") "," SAMPLE(DB("UNSET"), "60", "0.25")));
    expect_answer(&f, "min_over_time((" DURATION "{service_name=\"web\"}[1m]))", "&time=60",
                  VECTOR(SAMPLE(WEB, "60", "1")));
    expect_answer(&f, "histogram_quantile(0.5, -rate(" DURATION "{service_name=\"web\"}[1m]))",
                  "&time=60", VECTOR(SAMPLE(WEB, "60", "NaN")));
    fake_done(&f);
}

TEST(aggregations_group_by_and_without)
{
    struct fake f;
    fill(&f);
    const char *const all = "increase(" CALLS "[1m])";
    char expr[256];
    static const struct {
        const char *head;
        const char *want;
    } rows[] = {
        {"sum", VECTOR(SAMPLE("", "60", "30"))},
        {"max", VECTOR(SAMPLE("", "60", "21"))},
        {"sum by (env)", VECTOR(SAMPLE("\"env\":\"prod\"", "60", "30"))},
        {"sum by (nope)", VECTOR(SAMPLE("", "60", "30"))},
        {"max by (service_name)", VECTOR(SAMPLE("\"service_name\":\"db\"", "60", "6") "," SAMPLE(
                                      "\"service_name\":\"web\"", "60", "21"))},
        {"sum without (status_code, span_name, env, span_kind)",
         VECTOR(SAMPLE("\"service_name\":\"db\"", "60", "9") "," SAMPLE("\"service_name\":\"web\"",
                                                                        "60", "21"))},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        (void)snprintf(expr, sizeof expr, "%s (%s)", rows[i].head, all);
        expect_answer(&f, expr, "&time=60", rows[i].want);
    }
    expect_answer(&f, "sum by (__name__) (" CALLS ")", "&time=60",
                  VECTOR(SAMPLE("\"__name__\":\"" CALLS "\"", "60", "30")));
    expect_answer(&f, "sum(other)", "&time=60", VECTOR(""));
    fake_done(&f);
}

TEST(a_scalar_beside_a_vector_calculates_or_filters)
{
    struct fake f;
    fill(&f);
    const char *const web = "increase(" CALLS "{service_name=\"web\"}[1m])";
    char expr[256];
    (void)snprintf(expr, sizeof expr, "100 - %s * 2", web);
    expect_answer(&f, expr, "&time=60", VECTOR(SAMPLE(WEB, "60", "58")));
    (void)snprintf(expr, sizeof expr, "-%s", web);
    expect_answer(&f, expr, "&time=60", VECTOR(SAMPLE(WEB, "60", "-21")));
    (void)snprintf(expr, sizeof expr, "%s > 20", web);
    expect_answer(&f, expr, "&time=60", VECTOR(SAMPLE(WEB, "60", "21")));
    (void)snprintf(expr, sizeof expr, "%s > 21", web);
    expect_answer(&f, expr, "&time=60", VECTOR(""));
    (void)snprintf(expr, sizeof expr, "21 < bool %s", web);
    expect_answer(&f, expr, "&time=60", VECTOR(SAMPLE(WEB, "60", "0")));
    expect_answer(&f, CALLS "{service_name=\"web\"} > 20", "&time=60",
                  VECTOR(SAMPLE("\"__name__\":\"" CALLS "\"," WEB, "60", "21")));
    expect_answer(&f, CALLS "{service_name=\"web\"} + 0", "&time=60",
                  VECTOR(SAMPLE(WEB, "60", "21")));
    fake_done(&f);
}

TEST(matchers_take_a_missing_label_as_empty_and_regexes_as_whole)
{
    struct fake f;
    fill(&f);
    static const struct {
        const char *matchers;
        const char *sum; /* "" for nothing */
    } rows[] = {
        {"service_name=\"web\"", "21"},
        {"service_name!=\"web\"", "9"},
        {"service_name=~\"w.b|nope\"", "21"},
        {"service_name=~\"we\"", ""},
        {"service_name!~\"w.*\"", "9"},
        {"service_name=~\"web|db\"", "30"},
        {"http_route=\"\"", "30"},
        {"http_route!=\"\"", ""},
        {"http_route=~\".*\"", "30"},
        {"http_route=~\".+\"", ""},
        {"status_code=\"STATUS_CODE_ERROR\"", "3"},
        {"status_code!~\".*ERROR\"", "27"},
        {"status_code=\"nope\"", ""},
        {"service_name=\"db\",status_code=\"STATUS_CODE_UNSET\",", "6"},
        {"span_name=\"GET /\"", "21"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char expr[256];
        char want[256] = VECTOR("");
        (void)snprintf(expr, sizeof expr, "sum(increase(" CALLS "{%s}[1m]))", rows[i].matchers);
        if (*rows[i].sum)
            (void)snprintf(want, sizeof want, VECTOR("{\"metric\":{},\"value\":[60,\"%s\"]}"),
                           rows[i].sum);
        expect_answer(&f, expr, "&time=60", want);
    }
    expect_answer(&f, "histogram_count({__name__=~\"traces_.*\",service_name=\"web\"})", "&time=60",
                  VECTOR(SAMPLE(WEB, "60", "21")));
    fake_done(&f);
}

TEST(notes_stand_beside_the_data)
{
    struct fake f;
    fill(&f);
    static const struct {
        const char *expr;
        const char *tail;
    } rows[] = {
        {"max(increase(" DURATION "[1m]))",
         "[]},\"infos\":[\"PromQL info: ignored histogram in max aggregation (1:5)\"]}"},
        {"increase(" DURATION "[1m]) > 5",
         "[]},\"infos\":[\"PromQL info: incompatible sample types encountered for binary operator "
         "\\\">\\\": histogram > float (1:1)\"]}"},
        {"sum({service_name=\"web\"})",
         "[]},\"warnings\":[\"PromQL warning: encountered a mix of histograms and floats for "
         "aggregation (1:5)\"]}"},
        {"histogram_quantile(2, increase(" DURATION "{service_name=\"web\"}[1m]))",
         "[60,\"+Inf\"]}]},\"warnings\":[\"PromQL warning: quantile value should be between 0 and "
         "1, got 2 (1:20)\"]}"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char *const got = ask(&f, rows[i].expr, "&time=60", 200);
        const size_t len = strlen(got);
        const size_t tail = strlen(rows[i].tail);
        if (len < tail || strcmp(got + len - tail, rows[i].tail) != 0)
            T_FAIL("%s\n  gave %s\n  want ...%s", rows[i].expr, got, rows[i].tail);
        free(got);
    }
    char *const cut = ask(&f, "increase(" CALLS "[1m])", "&time=60&limit=1", 200);
    T_TRUE(strstr(cut, "\"warnings\":[\"results truncated due to limit\"]") != NULL);
    T_TRUE(strstr(cut, "web") == NULL);
    free(cut);
    fake_done(&f);
}

TEST(what_is_not_answered_yet_is_refused_by_name_and_column)
{
    static const struct {
        const char *expr;
        const char *text;
    } rows[] = {
        {"1 + irate(foo[5m])", "1:5: function \\\"irate\\\" is not supported yet"},
        {"time()", "1:1: function \\\"time\\\" is not supported yet"},
        {"topk(3, foo)", "1:1: aggregation \\\"topk\\\" is not supported yet"},
        {"sum(avg by (a) (foo))", "1:5: aggregation \\\"avg\\\" is not supported yet"},
        {"foo / bar", "1:5: operator \\\"/\\\" between two instant vectors is not supported yet"},
        {"foo and bar",
         "1:5: operator \\\"and\\\" between two instant vectors is not supported yet"},
        {"foo </ 5", "1:5: operator \\\"</\\\" is not supported yet"},
        {"foo[5m]", "1:5: range vector as an answer is not supported yet"},
        {"foo[5m:1m]", "1:5: subquery is not supported yet"},
        {"max_over_time(rate(foo[1m])[5m:])", "1:29: subquery is not supported yet"},
        {"rate(foo[5m] anchored)", "1:14: modifier \\\"anchored\\\" is not supported yet"},
        {"foo smoothed", "1:5: modifier \\\"smoothed\\\" is not supported yet"},
        {"rate(foo[step()])", "1:10: step() or range() in a duration is not supported yet"},
        {"max_over_time(" CALLS "[5m])",
         "1:15: function \\\"max_over_time\\\" over the counter " CALLS " is not supported yet"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char want[300];
        (void)snprintf(want, sizeof want, "invalid parameter \\\"query\\\": %s", rows[i].text);
        expect_error(NULL, rows[i].expr, 400, "bad_data", want);
    }
}

TEST(errors_have_prometheus_types_and_codes)
{
    struct fake f;
    fill(&f);
    expect_error(&f, "foo{", 400, "bad_data",
                 "invalid parameter \\\"query\\\": 1:5: parse error: unexpected end of input "
                 "inside braces");
    expect_error(&f, "", 400, "bad_data",
                 "invalid parameter \\\"query\\\": 1:1: parse error: no expression found in input");
    expect_error(&f, "rate({service_name=\"web\"}[1m])", 422, "execution",
                 "vector cannot contain metrics with the same labelset");
    fake_done(&f);
}

TEST(parameters_are_refused_by_name)
{
    static const struct {
        const char *params;
        const char *text;
    } rows[] = {
        {"query=1&time=foo",
         "invalid parameter \\\"time\\\": cannot parse \\\"foo\\\" to a valid timestamp"},
        {"query=1&time=NaN",
         "invalid parameter \\\"time\\\": cannot parse \\\"NaN\\\" to a valid timestamp"},
        {"query=1&time=2023-02-29T00:00:00Z", "invalid parameter \\\"time\\\": cannot parse "
                                              "\\\"2023-02-29T00:00:00Z\\\" to a valid timestamp"},
        {"query=1&time=2023-02-28T00:00:00",
         "invalid parameter \\\"time\\\": cannot parse \\\"2023-02-28T00:00:00\\\" to a valid "
         "timestamp"},
        {"query=1&timeout=1x",
         "invalid parameter \\\"timeout\\\": cannot parse \\\"1x\\\" to a valid duration"},
        {"query=1&lookback_delta=m", "error parsing lookback delta duration: cannot parse "
                                     "\\\"m\\\" to a valid duration"},
        {"query=1&limit=-1", "invalid parameter \\\"limit\\\": cannot parse \\\"-1\\\" to a whole "
                             "number from 0"},
        {"query=%zz", "error parsing form values: invalid URL escape \\\"%zz\\\""},
        {"query=1%2", "error parsing form values: invalid URL escape \\\"%2\\\""},
        {"", "invalid parameter \\\"query\\\": 1:1: parse error: no expression found in input"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char *const got = get(NULL, "GET", "/api/v1/query", rows[i].params, "", 400);
        char want[512];
        (void)snprintf(want, sizeof want,
                       "{\"status\":\"error\",\"errorType\":\"bad_data\",\"error\":\"%s\"}",
                       rows[i].text);
        T_EQ_STR(got, want);
        free(got);
    }
}

static void expect_body(const char *method, const char *path, const char *params, const char *form,
                        int status, const char *want)
{
    char *const got = get(NULL, method, path, params, form, status);
    T_EQ_STR(got, want);
    free(got);
}

TEST(posted_forms_paths_and_methods)
{
    const char *const two = "{\"status\":\"success\",\"data\":{\"resultType\":\"scalar\","
                            "\"result\":[4,\"2\"]}}";
    expect_body("POST", "/api/v1/query", "", "query=1%2B1&time=4", 200, two);
    expect_body("POST", "/api/v1/query", "time=4", "query=1+%2B+1", 200, two);
    expect_body("POST", "/api/v1/query", "query=5&time=9", "query=2&time=4", 200, two);
    expect_body("GET", "/api/v1/status/buildinfo", "", "", 200,
                "{\"status\":\"success\",\"data\":{\"version\":\"3.0.0\",\"revision\":\"\","
                "\"branch\":\"\",\"buildUser\":\"\",\"buildDate\":\"\",\"goVersion\":\"\","
                "\"weirVersion\":\"" WEIR_VERSION_STRING "\"}}");
    expect_body("GET", "/api/v1/nope", "", "", 404, "404 page not found\n");
    expect_body("GET", "/api/v1/query/", "", "", 404, "404 page not found\n");
    expect_body("PUT", "/api/v1/query", "query=1", "", 405, "Method Not Allowed\n");
    expect_body("POST", "/api/v1/status/buildinfo", "", "a=b", 405, "Method Not Allowed\n");
    T_EQ_STR(query_api_content_type(404), "text/plain; charset=utf-8");
    T_EQ_STR(query_api_content_type(400), "application/json");
}

TEST(open_windows_are_asked_for_in_query_or_form)
{
    struct query_api_request r = {.method = "GET", .path = {.ptr = "/api/v1/query", .len = 13}};
    T_TRUE(query_api_needs_source(&r));
    T_TRUE(!query_api_wants_open(&r));
    r.query = (struct weir_bytes){.ptr = "query=1&include_open=1", .len = 22};
    T_TRUE(query_api_wants_open(&r));
    r.query = (struct weir_bytes){.ptr = "include_open=0", .len = 14};
    T_TRUE(!query_api_wants_open(&r));
    r.method = "POST";
    r.query.len = 0;
    r.body = (struct weir_bytes){.ptr = "include_open=true", .len = 17};
    T_TRUE(!query_api_wants_open(&r));
    r.content_type =
        (struct weir_bytes){.ptr = "application/x-www-form-urlencoded; charset=utf-8", .len = 48};
    T_TRUE(query_api_wants_open(&r));
    r.path = (struct weir_bytes){.ptr = "/api/v1/status/buildinfo", .len = 24};
    T_TRUE(!query_api_needs_source(&r));
}

TEST(a_source_that_fails_is_an_internal_error)
{
    struct fake f;
    fill(&f);
    f.fail_with = -5;
    expect_error(&f, CALLS, 500, "internal", "reading the store failed: Input/output error");
    f.fail_with = 0;
    expect_error(&f, "-{service_name=\"web\"}", 422, "execution",
                 "vector cannot contain metrics with the same labelset");
    fake_done(&f);
}

/* --- the evaluator against plain sums and sorted samples -------------------------------------- */

struct observed {
    int64_t end_s;
    int64_t duration_ns;
};

static int compare_i64(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a;
    const int64_t y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* The only sample's value. */
static double value_of(const struct fake *f, const char *expr, const char *more)
{
    char *const got = ask(f, expr, more, 200);
    const char *const value = strstr(got, "\"value\":[");
    if (!value)
        T_FAIL("%s gave %s", expr, got);
    const char *const comma = strchr(value, ',');
    const double v = strtod(comma + 2, NULL);
    free(got);
    return v;
}

TEST(sums_and_quantiles_agree_with_the_samples)
{
    struct t_rng r = t_rng(t_seed());
    for (int round = 0; round < 60; round++) {
        struct fake f;
        fake_init(&f);
        (void)fake_add_series(&f, "service_name=a");
        (void)fake_add_series(&f, "service_name=b");
        struct observed seen[600];
        size_t count = 0;
        for (int w = 0; w < 40; w++) {
            const int64_t end = 10 * (1 + (int64_t)t_below(&r, 30));
            struct fake_window *const window =
                fake_add_window(&f, (size_t)t_below(&r, 2), end - 10, end);
            const uint64_t hits = 1 + t_below(&r, 12);
            for (uint64_t i = 0; i < hits; i++) {
                const int64_t ns = (int64_t)exp(t_unit(&r) * 20);
                fake_hit(window, ns, false, ONE);
                seen[count++] = (struct observed){.end_s = end, .duration_ns = ns};
            }
        }
        const int64_t at = 100 + (int64_t)t_below(&r, 200);
        const int64_t span = 90 + (int64_t)t_below(&r, 200);
        int64_t in[600];
        size_t n = 0;
        int64_t sum_ns = 0;
        for (size_t i = 0; i < count; i++) {
            if (seen[i].end_s > at - span && seen[i].end_s <= at) {
                in[n++] = seen[i].duration_ns;
                sum_ns += seen[i].duration_ns;
            }
        }
        if (n == 0) {
            fake_done(&f);
            continue;
        }
        qsort(in, n, sizeof *in, compare_i64);
        char more[64];
        char expr[256];
        (void)snprintf(more, sizeof more, "&time=%lld", (long long)at);
        (void)snprintf(expr, sizeof expr, "sum(increase(" CALLS "[%llds]))", (long long)span);
        T_EQ_DBL(value_of(&f, expr, more), (double)n);
        (void)snprintf(expr, sizeof expr, "sum(rate(" CALLS "[%llds]))", (long long)span);
        T_NEAR(value_of(&f, expr, more), (double)n / (double)span, 1e-12);
        (void)snprintf(expr, sizeof expr, "histogram_sum(sum(increase(" DURATION "[%llds])))",
                       (long long)span);
        T_NEAR(value_of(&f, expr, more), (double)sum_ns / 1e9, 1e-12);
        static const double qs[] = {0, 0.25, 0.5, 0.9, 0.99, 1};
        for (size_t k = 0; k < sizeof qs / sizeof *qs; k++) {
            (void)snprintf(expr, sizeof expr,
                           "histogram_quantile(%g, sum without (service_name, status_code) "
                           "(rate(" DURATION "[%llds])))",
                           qs[k], (long long)span);
            const double rank = qs[k] * (double)(n - 1);
            const double low = (double)in[(size_t)floor(rank)] / 1e9;
            const double high = (double)in[(size_t)ceil(rank)] / 1e9;
            const double got = value_of(&f, expr, more);
            if (got < low * (1 - 0.00542) || got > high * (1 + 0.00542))
                T_FAIL("q %g of %zu: got %.17g, samples %.17g..%.17g", qs[k], n, got, low, high);
        }
        fake_done(&f);
    }
}

TEST(an_exhausted_arena_refuses_and_never_crashes)
{
    struct fake f;
    fill(&f);
    static const char *const exprs[] = {
        "histogram_quantile(0.99, sum by (service_name) (rate(" DURATION "[1m])))",
        "max(increase(" CALLS "{service_name=~\"(w|d).*b?\"}[1m])) * -2 > bool 1"};
    size_t refused = 0;
    for (size_t e = 0; e < sizeof exprs / sizeof *exprs; e++) {
        for (size_t max = 1; max < 1024 * 1024; max = max * 3 / 2 + 7) {
            struct query_arena arena;
            query_arena_init(&arena, max);
            struct query_error error = {0};
            const struct weir_bytes text = {.ptr = exprs[e], .len = strlen(exprs[e])};
            struct query_node *const root = query_parse(&arena, text, &error);
            struct query_eval eval;
            struct query_value value;
            query_eval_init(&eval, &arena, &f.source, text, 60000);
            eval.heap.max_bytes = max;
            const bool ok =
                root && query_check(root, &error) && query_eval_run(&eval, root, &value);
            T_TRUE(ok || error.fault != QUERY_FAULT_NONE || eval.error.fault != QUERY_FAULT_NONE);
            refused += ok ? 0 : 1;
            query_eval_done(&eval);
            T_EQ_U64(eval.heap.used_bytes, 0);
            query_arena_done(&arena);
        }
    }
    T_TRUE(refused > 10);
    fake_done(&f);
}

/* --- what Prometheus 3.16 answered to its own scripts ------------------------------------------
 */

/* Between before and after in line, copied; false when they do not stand there. */
static bool cut_out(const char *line, const char *before, const char *after, char *out, size_t cap)
{
    const char *const from = strstr(line, before);
    const char *const to = from ? strstr(from + strlen(before), after) : NULL;
    const size_t len = to ? (size_t)(to - from) - strlen(before) : 0;
    if (!to || len >= cap)
        return false;
    memcpy(out, from + strlen(before), len);
    out[len] = '\0';
    return true;
}

/* The file's writer escaped & as \u0026. */
static void unescape_ampersands(char *text)
{
    char *to = text;
    for (const char *from = text; *from; to++) {
        const bool amp = strncmp(from, "\\u0026", 6) == 0;
        *to = amp ? '&' : *from;
        from += amp ? 6 : 1;
    }
    *to = '\0';
}

struct oracle_counts {
    size_t evals;
    size_t compared;
};

static void compare_eval(const char *line, struct oracle_counts *counts)
{
    char params[8192];
    if (!cut_out(line, "\"request\":\"/api/v1/query?", "\"", params, sizeof params) &&
        !cut_out(line, "\"request\":\"/api/v1/query_range?", "\"", params, sizeof params))
        return;
    unescape_ampersands(params);
    counts->evals++;
    const struct query_api_request request = {.method = "GET",
                                              .path = {.ptr = "/api/v1/query", .len = 13},
                                              .query = {.ptr = params, .len = strlen(params)}};
    struct query_buf body;
    int status;
    T_OK(query_api_handle(&request, NULL, &body, &status));
    query_buf_put_char(&body, '\0');
    if (strstr(body.ptr, "parse error"))
        T_FAIL("%s\n  gave %s", params, body.ptr);
    char want[4096];
    /* Without a selector an answer does not depend on what was loaded. */
    const bool plain =
        strstr(line, "\"resultType\":\"scalar\"") || strstr(line, "\"resultType\":\"string\"");
    if (plain && status == 200 && cut_out(line, "{\"body\":", ",\"cmd\"", want, sizeof want)) {
        T_EQ_STR(body.ptr, want);
        counts->compared++;
    }
    query_buf_done(&body);
}

TEST(golden_constants_answer_the_bytes_of_prometheus)
{
    size_t bytes;
    uint8_t *const data = t_read_file(T_SOURCE_DIR "/tests/golden/promql/constants.tsv", &bytes);
    T_TRUE(data != NULL && bytes > 0 && data[bytes - 1] == '\n');
    data[bytes - 1] = '\0';
    size_t count = 0;
    char *save = NULL;
    for (char *line = strtok_r((char *)data, "\n", &save); line;
         line = strtok_r(NULL, "\n", &save)) {
        char *const tab = strchr(line, '\t');
        T_TRUE(tab != NULL);
        *tab = '\0';
        char *const got = get(NULL, "GET", "/api/v1/query", line, "", 200);
        T_EQ_STR(got, tab + 1);
        free(got);
        count++;
    }
    T_TRUE(count >= 30);
    free(data);
}

TEST(every_expression_of_the_3_16_scripts_parses_and_constant_ones_agree)
{
    const char *const path = T_SHARED_DIR "/vectors/promqltest/expanded-3.16.0.jsonl";
    size_t bytes;
    uint8_t *const data = t_read_file(path, &bytes);
    if (!data) {
        T_SKIP_MISSING(path);
        return;
    }
    struct oracle_counts counts = {0};
    char *line = (char *)data;
    const char *const end = line + bytes;
    while (line < end) {
        char *const newline = memchr(line, '\n', (size_t)(end - line));
        if (!newline)
            break;
        *newline = '\0';
        compare_eval(line, &counts);
        line = newline + 1;
    }
    free(data);
    if (counts.evals < 2400 || counts.compared < 32)
        T_FAIL("%zu expressions, %zu answers compared", counts.evals, counts.compared);
}

/* --- no input crashes ------------------------------------------------------------------------- */

static void expect_json_or_text(const struct query_buf *body, int status)
{
    static const int known[] = {200, 400, 422};
    bool found = false;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        found = found || known[i] == status;
    if (!found || body->len < 20 || body->ptr[0] != '{' || body->ptr[body->len - 1] != '}')
        T_FAIL("status %d: %.*s", status, (int)body->len, body->ptr ? body->ptr : "");
    for (size_t i = 0; i < body->len;) {
        size_t step;
        if (query_utf8_next(body->ptr + i, body->len - i, &step) < 0x20)
            T_FAIL("the answer holds a raw control character or no UTF-8 at %zu", i);
        i += step;
    }
}

TEST(spoilt_requests_get_an_answer_in_json)
{
    static const char *const seeds[] = {
        "query=histogram_quantile(0.9,sum+by(service_name)(rate(" DURATION
        "{service_name=~\"w.*|db\"}[1m])))&time=60&limit=3",
        "query=max(increase(" CALLS "[30s]+offset+10s))*2+>+bool+3&time=60.5",
        "query=quantile_over_time(0.5," DURATION "{env!=\"%22%5Cx01\"}[1m+@+60])&lookback_delta=5m",
        "query={service_name%3D\"web\"}+%25+7&time=1970-01-01T00:01:00%2B00:00&timeout=1s",
    };
    static const char noise[] = "%&=+()[]{}\"'\\,.:@~!<>*^-#0159azE \x01\x80\xff\xc3";
    struct fake f;
    fill(&f);
    struct t_rng r = t_rng(t_seed());
    size_t answered = 0;
    for (int round = 0; round < 6000; round++) {
        char text[512];
        const char *const seed = seeds[t_below(&r, sizeof seeds / sizeof *seeds)];
        size_t len = strlen(seed);
        memcpy(text, seed, len);
        const uint64_t edits = t_below(&r, 4);
        for (uint64_t i = 0; i < edits; i++) {
            const size_t at = (size_t)t_below(&r, len);
            if (t_below(&r, 2)) {
                text[at] = noise[t_below(&r, sizeof noise - 1)];
            } else {
                memmove(text + at, text + at + 1, len - at - 1);
                len--;
            }
        }
        struct t_guard guard = t_guard_new(text, len);
        const struct query_api_request request = {
            .method = "GET",
            .path = {.ptr = "/api/v1/query", .len = 13},
            .query = {.ptr = (const char *)guard.ptr, .len = len},
            .now_ns = (int64_t)60 * 1000000000};
        struct query_buf body;
        int status = 0;
        T_OK(query_api_handle(&request, &f.source, &body, &status));
        expect_json_or_text(&body, status);
        answered += status == 200 ? 1 : 0;
        query_buf_done(&body);
        t_guard_free(&guard);
    }
    fake_done(&f);
    T_TRUE(answered > 1000 && answered < 6000);
}
