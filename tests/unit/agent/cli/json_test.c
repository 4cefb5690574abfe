/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/json.h"
#include "t.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static struct cli_json *parse(const char *text)
{
    struct cli_json *j = NULL;
    T_OK(cli_json_parse(text, strlen(text), &j, NULL));
    return j;
}

TEST(an_answer_of_the_query_api_is_walked_in_order)
{
    struct cli_json *const j =
        parse(" {\"status\":\"success\",\"data\":{\"resultType\":\"vector\",\"result\":["
              "{\"metric\":{\"a\":\"x\"},\"value\":[1796051777.183,\"1.5\"]},"
              "{\"metric\":{},\"value\":[0,\"NaN\"]}]}} \n");
    const struct cli_json_value *const result =
        cli_json_get(cli_json_get(cli_json_root(j), "data"), "result");
    T_EQ_U64(result->v.count, 2);
    const struct cli_json_value *row = cli_json_first(result);
    T_TRUE(cli_json_text_is(cli_json_get(cli_json_get(row, "metric"), "a"), "x"));
    double v = 0;
    T_TRUE(cli_json_number(cli_json_at(cli_json_get(row, "value"), 1), &v));
    T_EQ_DBL(v, 1.5);
    T_TRUE(cli_json_number(cli_json_at(cli_json_get(row, "value"), 0), &v));
    T_EQ_DBL(v, 1796051777.183);
    row = cli_json_next(result, row);
    T_TRUE(cli_json_number(cli_json_at(cli_json_get(row, "value"), 1), &v) && v != v);
    T_TRUE(!cli_json_first(cli_json_get(row, "metric")));
    T_TRUE(!cli_json_next(result, row));
    T_TRUE(!cli_json_get(row, "nothing"));
    T_TRUE(!cli_json_at(result, 2));
    cli_json_free(j);
}

TEST(texts_are_decoded)
{
    struct cli_json *const j =
        parse("[\"a\\n\\u00e9\\ud83d\\ude10\\/\\u0000z\",\"\xc3\xa9\xf0\x9f\x98\x90\",\"\"]");
    const struct cli_json_value *const a = cli_json_root(j);
    const struct weir_bytes first = cli_json_text(cli_json_at(a, 0));
    T_EQ_BYTES(first.ptr, first.len, "a\n\xc3\xa9\xf0\x9f\x98\x90/\0z", 11);
    T_TRUE(cli_json_text_is(cli_json_at(a, 1), "\xc3\xa9\xf0\x9f\x98\x90"));
    T_TRUE(cli_json_text_is(cli_json_at(a, 2), ""));
    cli_json_free(j);
}

TEST(only_samples_texts_are_numbers)
{
    struct cli_json *const j = parse("[\"+Inf\",\"-Inf\",\"1e3\",\"0x10\",\" 1\",\"\",\"1 \","
                                     "\"inf\",true,-0.5E-2]");
    const struct cli_json_value *const a = cli_json_root(j);
    double v = 0;
    T_TRUE(cli_json_number(cli_json_at(a, 0), &v) && v > 0 && isinf(v));
    T_TRUE(cli_json_number(cli_json_at(a, 1), &v) && v < 0 && isinf(v));
    T_TRUE(cli_json_number(cli_json_at(a, 2), &v));
    T_EQ_DBL(v, 1000);
    for (size_t i = 3; i < 9; i++)
        T_TRUE(!cli_json_number(cli_json_at(a, i), &v));
    T_TRUE(cli_json_number(cli_json_at(a, 9), &v));
    T_EQ_DBL(v, -0.005);
    T_TRUE(!cli_json_number(NULL, &v));
    cli_json_free(j);
}

TEST(what_is_not_json_is_refused_with_its_place)
{
    static const struct {
        const char *text;
        int err;
        size_t offset;
    } rows[] = {
        {.text = "", .err = WEIR_ETRUNCATED, .offset = 0},
        {.text = "[1,", .err = WEIR_ETRUNCATED, .offset = 3},
        {.text = "[1,]", .err = WEIR_EFORMAT, .offset = 3},
        {.text = "[1 2]", .err = WEIR_EFORMAT, .offset = 3},
        {.text = "{\"a\":1,}", .err = WEIR_EFORMAT, .offset = 7},
        {.text = "{\"a\" 1}", .err = WEIR_EFORMAT, .offset = 5},
        {.text = "{a:1}", .err = WEIR_EFORMAT, .offset = 1},
        {.text = "{\"a\":", .err = WEIR_ETRUNCATED, .offset = 5},
        {.text = "01", .err = WEIR_EFORMAT, .offset = 2},
        {.text = "-", .err = WEIR_ETRUNCATED, .offset = 1},
        {.text = "1.", .err = WEIR_ETRUNCATED, .offset = 2},
        {.text = "1.x", .err = WEIR_EFORMAT, .offset = 2},
        {.text = "1e+", .err = WEIR_ETRUNCATED, .offset = 3},
        {.text = "+1", .err = WEIR_EFORMAT, .offset = 0},
        {.text = "tru", .err = WEIR_ETRUNCATED, .offset = 0},
        {.text = "trux", .err = WEIR_EFORMAT, .offset = 0},
        {.text = "nan", .err = WEIR_EFORMAT, .offset = 0},
        {.text = "1 2", .err = WEIR_EFORMAT, .offset = 2},
        {.text = "\"a", .err = WEIR_ETRUNCATED, .offset = 2},
        {.text = "\"\\", .err = WEIR_ETRUNCATED, .offset = 2},
        {.text = "\"\\x\"", .err = WEIR_EFORMAT, .offset = 2},
        {.text = "\"\\u12\"", .err = WEIR_EFORMAT, .offset = 3},
        {.text = "\"\\ud800\"", .err = WEIR_EUTF8, .offset = 7},
        {.text = "\"\\udc00\"", .err = WEIR_EUTF8, .offset = 7},
        {.text = "\"\\ud800\\u0041\"", .err = WEIR_EUTF8, .offset = 13},
        {.text = "\"\xff\"", .err = WEIR_EUTF8, .offset = 1},
        {.text = "\"\xc0\x80\"", .err = WEIR_EUTF8, .offset = 1},
        {.text = "\"\xed\xa0\x80\"", .err = WEIR_EUTF8, .offset = 1},
        {.text = "\"\xf4\x90\x80\x80\"", .err = WEIR_EUTF8, .offset = 1},
        {.text = "\"\xe2\x82\"", .err = WEIR_EUTF8, .offset = 1},
        {.text = "\"\n\"", .err = WEIR_EFORMAT, .offset = 1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct cli_json *j = NULL;
        struct weir_where where = {.offset = 999, .reason = NULL};
        const int err = cli_json_parse(rows[i].text, strlen(rows[i].text), &j, &where);
        if (err != rows[i].err || where.offset != rows[i].offset || !where.reason || j)
            T_FAIL("%s gave %s at %zu", rows[i].text, weir_strerror(err), where.offset);
    }
}

TEST(nesting_is_bounded)
{
    char text[2 * CLI_JSON_DEPTH_MAX + 3];
    memset(text, '[', CLI_JSON_DEPTH_MAX);
    memset(text + CLI_JSON_DEPTH_MAX, ']', CLI_JSON_DEPTH_MAX);
    struct cli_json *j = NULL;
    T_OK(cli_json_parse(text, 2 * CLI_JSON_DEPTH_MAX, &j, NULL));
    cli_json_free(j);
    memset(text, '[', CLI_JSON_DEPTH_MAX + 1);
    memset(text + CLI_JSON_DEPTH_MAX + 1, ']', CLI_JSON_DEPTH_MAX + 1);
    T_ERR(cli_json_parse(text, 2 * CLI_JSON_DEPTH_MAX + 2, &j, NULL), WEIR_EFULL);
}

TEST(random_damage_is_refused_or_read_never_worse)
{
    static const char good[] = "{\"a\":[1,2.5e3,\"x\\u00e9\\ud83d\\ude10\",{\"b\":null}],"
                               "\"c\":true,\"d\":{\"e\":[[],{}]}}";
    struct t_rng r = t_rng(t_seed());
    for (int i = 0; i < 20000; i++) {
        char text[sizeof good];
        memcpy(text, good, sizeof good);
        const size_t n = t_below(&r, 3) ? sizeof good - 1 : t_below(&r, sizeof good);
        for (uint64_t k = t_below(&r, 4); k > 0; k--)
            text[t_below(&r, sizeof good - 1)] = (char)t_next(&r);
        struct t_guard g = t_guard_new(text, n);
        struct cli_json *j = NULL;
        const int err = cli_json_parse((const char *)g.ptr, n, &j, NULL);
        T_TRUE((err == WEIR_OK) == (j != NULL));
        if (j)
            T_TRUE(cli_json_root(j)->span >= 1);
        cli_json_free(j);
        t_guard_free(&g);
    }
}
