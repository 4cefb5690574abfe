/* SPDX-License-Identifier: Apache-2.0 */
/* The cursor over JSON: what it takes, and what it refuses. */
#include "fake.h"

#include "json.h"

static bool skips(const char *text)
{
    struct t_guard g = t_guard_new(text, strlen(text));
    struct wr_json j = wr_json_begin((struct weir_bytes){(const char *)g.ptr, strlen(text)});
    const bool ok = wr_json_skip(&j) && wr_json_done(&j);
    t_guard_free(&g);
    return ok;
}

TEST(any_value_is_skipped_and_what_is_none_is_refused)
{
    static const char *const good[] = {
        "{}",          "[]",
        " [ 1 , 2 ] ", "\"a\\n\\u0041\"",
        "-0.5e-3",     "{\"a\":{\"b\":[true,false,null]},\"c\":\"\"}",
        "0",           "1E9"};
    static const char *const bad[] = {"",
                                      "{",
                                      "[",
                                      "[1",
                                      "[1,]",
                                      "{\"a\"}",
                                      "{\"a\":}",
                                      "{a:1}",
                                      "{\"a\":1,}",
                                      "\"a",
                                      "\"\\x\"",
                                      "\"\\u12\"",
                                      "\"\\ud83d\\u1\"",
                                      "01",
                                      "-",
                                      "1.",
                                      "1e",
                                      "tru",
                                      "nul",
                                      "[1 2]",
                                      "{\"a\" 1}",
                                      "]",
                                      "1 1",
                                      "\"\n\"",
                                      "+1",
                                      ".5",
                                      "{\"a\":1 \"b\":2}"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        T_TRUE(skips(good[i]));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        if (skips(bad[i]))
            T_FAIL("taken: %s", bad[i]);
    }
}

TEST(depth_is_bounded)
{
    char text[2 * WR_JSON_DEPTH_MAX + 3];
    memset(text, '[', WR_JSON_DEPTH_MAX);
    memset(text + WR_JSON_DEPTH_MAX, ']', WR_JSON_DEPTH_MAX);
    text[2 * WR_JSON_DEPTH_MAX] = 0;
    T_TRUE(skips(text));
    memset(text, '[', WR_JSON_DEPTH_MAX + 1);
    memset(text + WR_JSON_DEPTH_MAX + 1, ']', WR_JSON_DEPTH_MAX + 1);
    text[2 * WR_JSON_DEPTH_MAX + 2] = 0;
    T_TRUE(!skips(text));
}

TEST(numbers_are_the_nearest_doubles)
{
    static const struct {
        const char *text;
        double want;
    } cases[] = {{"0.1", 0.1},     {"1", 1},        {"0.30000000000000004", 0.30000000000000004},
                 {"-2.5e2", -250}, {"1e-3", 0.001}, {"0.25", 0.25},
                 {"0e5", 0},       {"1E+2", 100}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct wr_json j = wr_json_begin((struct weir_bytes){cases[i].text, strlen(cases[i].text)});
        double got = -1;
        T_TRUE(wr_json_number(&j, &got) && wr_json_done(&j));
        T_NEAR(got, cases[i].want, 1e-15);
    }
}

TEST(strings_are_decoded_and_too_long_ones_are_empty)
{
    static const char text[] = "\"\\u00e9\\ud83d\\ude00\\\"\\/\\ud800x\"";
    struct wr_json j = wr_json_begin((struct weir_bytes){text, sizeof text - 1});
    char out[32];
    size_t len;
    T_TRUE(wr_json_string(&j, out, sizeof out, &len));
    T_EQ_STR(out, "\xc3\xa9\xf0\x9f\x98\x80\"/\xef\xbf\xbdx");
    j = wr_json_begin((struct weir_bytes){"\"abcd\"", 6});
    T_TRUE(wr_json_string(&j, out, 4, &len));
    T_EQ_U64(len, 0);
    j = wr_json_begin((struct weir_bytes){"\"abcd\"", 6});
    T_TRUE(wr_json_string(&j, out, 5, &len));
    T_EQ_U64(len, 4);
}
