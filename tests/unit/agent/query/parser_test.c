/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lexer, the parser and the type checker: what PromQL takes, what it refuses, with which words
 * and where; every expression of Prometheus' own test scripts; and no crash on spoilt ones.
 *
 * The refusals' texts are what Debian's Prometheus 2.42 answered, but for those of the grammar
 * that 3.x changed (durations are expressions, quoted names), which follow 3.x.
 */
#include "t.h"

#include "query/ast.h"

#include <stdlib.h>
#include <string.h>

/* The refusal of text with its position, "" when it is taken. */
static void refusal(const char *text, size_t len, char out[512])
{
    struct query_arena arena;
    query_arena_init(&arena, (size_t)64 * 1024 * 1024);
    struct query_error error = {0};
    const struct weir_bytes query = {.ptr = text, .len = len};
    struct query_node *const root = query_parse(&arena, query, &error);
    if (root)
        (void)query_check(root, &error);
    T_TRUE(root != NULL || error.fault != QUERY_FAULT_NONE);
    struct query_buf buf;
    query_buf_init(&buf, 4096);
    if (error.fault != QUERY_FAULT_NONE)
        query_error_put(&error, query, &buf);
    const size_t kept = buf.len < 511 ? buf.len : 511;
    if (kept)
        memcpy(out, buf.ptr, kept);
    out[kept] = '\0';
    query_buf_done(&buf);
    query_arena_done(&arena);
}

struct row {
    const char *query;
    const char *refusal;
};

static void expect_rows(const struct row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        /* Flush against a page no one may read. */
        struct t_guard guard = t_guard_new(rows[i].query, strlen(rows[i].query));
        char got[512];
        refusal((const char *)guard.ptr, strlen(rows[i].query), got);
        t_guard_free(&guard);
        if (strcmp(got, rows[i].refusal) != 0)
            T_FAIL("%s\n  gave: %s\n  want: %s", rows[i].query, got, rows[i].refusal);
    }
}
#define EXPECT(rows) expect_rows((rows), sizeof(rows) / sizeof *(rows))

TEST(what_promql_has_is_taken)
{
    static const char *const taken[] = {
        "1",
        "-1",
        "+1",
        "1.5e3",
        ".5",
        "5.",
        "0x1F",
        "017",
        "1_000",
        "Inf",
        "-inf",
        "NaN",
        "1m",
        "1h0m0s",
        "1d12h30m10s5ms",
        "\"a\\n\\x41\\u00e9\\101\"",
        "'it\\'s'",
        "`raw \\ text`",
        "(1)",
        "1 + 2 * 3 ^ 4 % 5 - -6",
        "2 ^ -1",
        "foo",
        "foo:bar:baz",
        "foo{}",
        "foo{a=\"b\"}",
        "foo{a=\"b\",}",
        "foo{ a != 'b' , c =~ `d.*` , e !~ \"f\" }",
        "{a=\"b\"}",
        "{\"a.metric\"}",
        "a.metric{a.label=\"b\"}",
        "sum by (a.label) (Inf.total)",
        "Bj\xC3\xB6rn{r\xC3\xA9gion=\"eu\"}",
        "{\"a.metric\", \"a.label\"=\"b\"}",
        "{__name__=~\"a|b\"}",
        "foo[5m]",
        "foo[1m0s]",
        "foo[300]",
        "foo[ 5m ]",
        "foo[5m:1m]",
        "foo[5m:]",
        "foo[5m+1m:10s*2]",
        "foo[step()]",
        "foo[max_of(step(), 1m)]",
        "foo offset 5m",
        "foo offset -5m",
        "foo offset (1m + 30s)",
        "foo[5m] offset 1h",
        "foo @ 1.5",
        "foo @ -1",
        "foo @ start()",
        "foo[5m] @ end() offset 1m",
        "foo offset 1m @ 5",
        "foo[1m] anchored",
        "foo smoothed",
        "rate(foo[5m])",
        "rate(foo{a=\"b\",}[1m0s])",
        "sum(foo)",
        "SUM BY (a) (foo)",
        "sum(foo) without (a, b,)",
        "sum by () (foo)",
        "sum by (\"a.b\", by, on) (foo)",
        "topk(3, foo)",
        "count_values(\"v\", foo)",
        "quantile(0.9, foo)",
        "sum",
        "sum + by + offset",
        "step + range + start + end",
        "fill + fill",
        "foo + bar",
        "foo == bool 1",
        "foo == bool bar",
        "foo and bar or baz unless qux",
        "foo atan2 bar",
        "foo / on(a) bar",
        "foo / ignoring(a,b) group_left(c) bar",
        "foo * on() group_right bar",
        "foo + fill(0) bar",
        "foo + on(a) fill_left(-1) fill_right(2) bar",
        "foo </ 5",
        "foo >/ bar",
        "-foo",
        "--foo",
        "-foo ^ 2",
        "time()",
        "round(foo)",
        "round(foo, 5)",
        "hour()",
        "label_replace(foo, \"a\", \"$1\", \"b\", \"(.*)\")",
        "label_join(foo, \"a\", \",\")",
        "sort_by_label(foo, \"a\", \"b\")",
        "histogram_quantile(0.9, sum by (le) (rate(foo[5m])))",
        "foo # a comment\n + bar",
        "foo{ # inside\n a=\"b\"}",
        "min_over_time(rate(foo[5m])[1h:1m] offset 1d)",
        "start() + end() + step() + range()",
        "sum(rate(C{service_name =~ \"a|b\", span_kind =~ \"SERVER\",}[10m])) by (service_name)",
    };
    for (size_t i = 0; i < sizeof taken / sizeof *taken; i++) {
        char got[512];
        refusal(taken[i], strlen(taken[i]), got);
        if (*got)
            T_FAIL("%s\n  was refused: %s", taken[i], got);
    }
}

TEST(a_refusal_of_the_grammar_names_what_was_met_and_where)
{
    static const struct row rows[] = {
        {"", "1:1: parse error: no expression found in input"},
        {"  ", "1:1: parse error: no expression found in input"},
        {"# c", "1:1: parse error: no expression found in input"},
        {"1 +", "1:4: parse error: unexpected end of input"},
        {"+", "1:2: parse error: unexpected end of input"},
        {"1 1", "1:3: parse error: unexpected number \"1\""},
        {"foo bar", "1:5: parse error: unexpected identifier \"bar\""},
        {"foo\n\n  bar", "3:3: parse error: unexpected identifier \"bar\""},
        {"unless foo", "1:8: parse error: unexpected identifier \"foo\""},
        {"foo or", "1:7: parse error: unexpected end of input"},
        {"foo == bool", "1:12: parse error: unexpected end of input"},
        {"on", "1:1: parse error: unexpected <on>"},
        {"bool", "1:1: parse error: unexpected <bool>"},
        {"offset 5m", "1:8: parse error: unexpected duration \"5m\""},
        {"\"abcdefghijklmn\" 1", "1:18: parse error: unexpected number \"1\""},
        {"1 \"abcdefghijklmn\"", "1:3: parse error: unexpected string \"\\\"abcdefghi\"..."},
        {"1:2", "1:2: parse error: unexpected metric identifier \":2\""},
        {"a:b(foo)", "1:4: parse error: unexpected \"(\""},
        {"foo=1", "1:4: parse error: unexpected \"=\""},
        {"sum(foo) by (a) by (b)", "1:17: parse error: unexpected <by>"},
        {"sum 5", "1:5: parse error: unexpected number \"5\""},
        {"sum by (a)", "1:11: parse error: unexpected end of input in aggregation"},
        {"sum by foo",
         "1:8: parse error: unexpected identifier \"foo\" in grouping opts, expected \"(\""},
        {"sum by (1) (foo)",
         "1:9: parse error: unexpected number \"1\" in grouping opts, expected label"},
        {"sum by (a b) (foo)", "1:11: parse error: unexpected identifier \"b\" in grouping opts, "
                               "expected \",\" or \")\""},
        {"sum(foo) by",
         "1:12: parse error: unexpected end of input in grouping opts, expected \"(\""},
        {"foo + on group_left bar",
         "1:10: parse error: unexpected <group_left> in grouping opts, expected \"(\""},
        {"sum()", "1:1: parse error: no arguments for aggregate expression provided"},
        {"sum(foo, bar)", "1:1: parse error: wrong number of arguments for aggregate expression "
                          "provided, expected 1, got 2"},
        {"topk(foo)", "1:1: parse error: wrong number of arguments for aggregate expression "
                      "provided, expected 2, got 1"},
        {"nope(foo)", "1:1: parse error: unknown function with name \"nope\""},
        {"ABS(foo)", "1:1: parse error: unknown function with name \"ABS\""},
        {"abs(foo,)", "1:8: parse error: trailing commas not allowed in function call args"},
    };
    EXPECT(rows);
}

TEST(a_refusal_inside_braces_says_what_was_expected)
{
    static const struct row rows[] = {
        {"foo{", "1:5: parse error: unexpected end of input inside braces"},
        {"foo{a", "1:6: parse error: unexpected end of input inside braces"},
        {"foo{a=", "1:7: parse error: unexpected end of input inside braces"},
        {"foo{a=\"b\"", "1:10: parse error: unexpected end of input inside braces"},
        {"foo{a=\"b\" c", "1:11: parse error: unexpected identifier \"c\" in label matching, "
                          "expected \",\" or \"}\""},
        {"foo{a=\"b\",,}", "1:11: parse error: unexpected \",\" in label matching, expected "
                           "identifier or \"}\""},
        {"foo{,}",
         "1:5: parse error: unexpected \",\" in label matching, expected identifier or \"}\""},
        {"foo{a=b}",
         "1:7: parse error: unexpected identifier \"b\" in label matching, expected string"},
        {"foo{a}", "1:6: parse error: unexpected \"}\" in label matching, expected label "
                   "matching operator"},
        {"foo{a>\"b\"}", "1:6: parse error: unexpected character inside braces: '>'"},
        {"foo{1=\"b\"}", "1:5: parse error: unexpected character inside braces: '1'"},
        {"foo{a!\"b\"}", "1:6: parse error: unexpected character after '!' inside braces: '\"'"},
        {"foo{{", "1:5: parse error: unexpected left brace '{'"},
        {"{}", "1:1: parse error: vector selector must contain at least one non-empty matcher"},
        {"1 + {a=\"\"}",
         "1:5: parse error: vector selector must contain at least one non-empty matcher"},
        {"{a=~\".*\"}",
         "1:1: parse error: vector selector must contain at least one non-empty matcher"},
        {"{a!=\"b\"}",
         "1:1: parse error: vector selector must contain at least one non-empty matcher"},
        {"foo{__name__=\"bar\"}",
         "1:1: parse error: metric name must not be set twice: \"foo\" or \"bar\""},
        {"foo{\"bar\"}", "1:1: parse error: metric name must not be set twice: \"foo\" or \"bar\""},
        {"foo{a=~\"[\"}", "1:5: parse error: error parsing regexp: missing closing ]: `[`"},
        {"foo{a=~\"(?=x)\"}", "1:5: parse error: error parsing regexp: invalid or unsupported "
                              "Perl syntax: `(?=`"},
    };
    EXPECT(rows);
}

TEST(a_refusal_of_the_lexer_points_at_the_character)
{
    static const struct row rows[] = {
        {"sum(", "1:5: parse error: unclosed left parenthesis"},
        {"sum)", "1:5: parse error: unexpected right parenthesis ')'"},
        {"(", "1:2: parse error: unclosed left parenthesis"},
        {")", "1:2: parse error: unexpected right parenthesis ')'"},
        {"rate(foo[5m]", "1:13: parse error: unclosed left parenthesis"},
        {"foo[5m", "1:7: parse error: unclosed left bracket"},
        {"foo[1m:", "1:8: parse error: unclosed left bracket"},
        {"foo[5m:1m:1m]", "1:10: parse error: unexpected colon ':'"},
        {"]", "1:1: parse error: unexpected right bracket ']'"},
        {"}", "1:1: parse error: unexpected character: '}'"},
        {"foo$", "1:4: parse error: unexpected character: '$'"},
        {"foo{a=\xE2\x80\x9C"
         "b",
         "1:7: parse error: unexpected character inside braces: "
         "'\xE2\x80\x9C'"},
        {"\xC2\xA0"
         "1",
         "1:1: parse error: unexpected character: '\xC2\xA0'"},
        {".foo", "1:1: parse error: unexpected character: '.'"},
        {"foo!1", "1:4: parse error: unexpected character after '!': '1'"},
        {"foo=~\"x\"", "1:4: parse error: unexpected character after '=': '~'"},
        {"\"abc", "1:1: parse error: unterminated quoted string"},
        {"\"a\nb\"", "1:1: parse error: unterminated quoted string"},
        {"'abc", "1:1: parse error: unterminated quoted string"},
        {"`abc", "1:1: parse error: unterminated raw string"},
        {"\"\\q\"", "1:1: parse error: unknown escape sequence U+0071 'q'"},
        {"\"\\x\"", "1:1: parse error: illegal character U+0022 '\"' in escape sequence"},
        {"\"\\", "1:1: parse error: escape sequence not terminated"},
        {"\"\\400\"", "1:1: parse error: escape sequence is an invalid Unicode code point"},
        {"\"\\ud800\"", "1:1: parse error: escape sequence is an invalid Unicode code point"},
        {"\"\xff\"", "1:1: parse error: invalid UTF-8 rune"},
        {"\xff", "1:1: parse error: unexpected character: '\xEF\xBF\xBD'"},
        {"0x", "1:1: parse error: error parsing number: strconv.ParseFloat: parsing \"0x\": "
               "invalid syntax"},
        {"1e", "1:1: parse error: error parsing number: strconv.ParseFloat: parsing \"1e\": "
               "invalid syntax"},
        {"1e999", "1:1: parse error: error parsing number: strconv.ParseFloat: parsing "
                  "\"1e999\": value out of range"},
        {"1__0", "1:1: parse error: error parsing number: strconv.ParseFloat: parsing "
                 "\"1__0\": invalid syntax"},
        {"1x", "1:1: parse error: bad number or duration syntax: \"1\""},
        {"5mm", "1:1: parse error: bad number or duration syntax: \"5mm\""},
    };
    EXPECT(rows);
}

TEST(ranges_offsets_and_times_are_refused_where_they_do_not_belong)
{
    static const struct row rows[] = {
        {"foo[]", "1:5: parse error: unexpected \"]\" in subquery or range selector, expected "
                  "number, duration, step(), or range()"},
        {"foo[bar]", "1:5: parse error: unexpected identifier \"bar\" in subquery or range "
                     "selector, expected number, duration, step(), or range()"},
        {"foo[0s]", "1:5: parse error: duration must be greater than 0"},
        {"foo[-5m]", "1:5: parse error: duration must be greater than 0"},
        {"foo[1m-1m]", "1:5: parse error: duration must be greater than 0"},
        {"foo[1m/0]", "1:5: parse error: duration out of range"},
        {"foo[1m5h]", "1:5: parse error: not a valid duration string: \"1m5h\""},
        {"foo[1.5m]", "1:5: parse error: not a valid duration string: \"1.5m\""},
        {"foo[99999999999y]", "1:5: parse error: duration out of range"},
        {"1[5m]", "1:2: parse error: ranges only allowed for vector selectors"},
        {"(foo)[5m]", "1:6: parse error: ranges only allowed for vector selectors"},
        {"foo[5m][5m]", "1:8: parse error: ranges only allowed for vector selectors"},
        {"rate(foo[5m])[5m]", "1:14: parse error: ranges only allowed for vector selectors"},
        {"foo offset 5m[5m]", "1:14: parse error: no offset modifiers allowed before range"},
        {"foo @ 5[5m]", "1:8: parse error: no @ modifiers allowed before range"},
        {"foo offset", "1:11: parse error: unexpected end of input in offset, expected number, "
                       "duration, step(), or range()"},
        {"1 offset 5m", "1:1: parse error: offset modifier must be preceded by an instant "
                        "vector selector or range vector selector or a subquery"},
        {"foo offset 5m offset 5m", "1:1: parse error: offset may not be set multiple times"},
        {"foo @", "1:6: parse error: unexpected end of input in @, expected timestamp"},
        {"foo @ bar", "1:7: parse error: unexpected identifier \"bar\" in @, expected timestamp"},
        {"foo @ start", "1:12: parse error: unexpected end of input in @, expected timestamp"},
        {"foo @ 1 @ 2", "1:1: parse error: @ <timestamp> may not be set multiple times"},
        {"foo @ Inf", "1:7: parse error: timestamp out of bounds for @ modifier: inf"},
        {"1 @ 2", "1:1: parse error: @ modifier must be preceded by an instant vector selector "
                  "or range vector selector or a subquery"},
        {"1 anchored", "1:1: parse error: anchored modifier must be preceded by an instant "
                       "vector selector or range vector selector"},
    };
    EXPECT(rows);
}

TEST(types_are_checked_in_prometheus_words)
{
    static const struct row rows[] = {
        {"\"a\" + 1", "1:1: parse error: binary expression must contain only scalar and instant "
                      "vector types"},
        {"1 + \"a\"", "1:5: parse error: binary expression must contain only scalar and instant "
                      "vector types"},
        {"foo[5m] + 1", "1:1: parse error: binary expression must contain only scalar and "
                        "instant vector types"},
        {"1 == 1", "1:3: parse error: comparisons between scalars must use BOOL modifier"},
        {"1 and 1", "1:1: parse error: set operator \"and\" not allowed in binary scalar "
                    "expression"},
        {"foo and 1", "1:1: parse error: set operator \"and\" not allowed in binary scalar "
                      "expression"},
        {"foo + bool 1",
         "1:5: parse error: bool modifier can only be used on comparison operators"},
        {"foo + on(a) group_left(a) bar",
         "1:5: parse error: label \"a\" must not occur in ON and GROUP clause at once"},
        {"foo and on(a) group_left bar",
         "1:1: parse error: no grouping allowed for \"and\" operation"},
        {"1 + on(a) foo", "1:1: parse error: vector matching only allowed between instant vectors"},
        {"topk(\"a\", foo)",
         "1:6: parse error: expected type scalar in aggregation parameter, got string"},
        {"sum(1)", "1:5: parse error: expected type instant vector in aggregation expression, "
                   "got scalar"},
        {"rate(foo)", "1:6: parse error: expected type range vector in call to function "
                      "\"rate\", got instant vector"},
        {"rate()", "1:1: parse error: expected 1 argument(s) in call to \"rate\", got 0"},
        {"rate(foo[5m], 1)", "1:1: parse error: expected 1 argument(s) in call to \"rate\", got 2"},
        {"round()",
         "1:1: parse error: expected at least 1 argument(s) in call to \"round\", got 0"},
        {"round(foo, 1, 2)",
         "1:1: parse error: expected at most 2 argument(s) in call to \"round\", got 3"},
        {"histogram_quantile(foo, foo)", "1:20: parse error: expected type scalar in call to "
                                         "function \"histogram_quantile\", got instant vector"},
        {"-\"a\"", "1:1: parse error: unary expression only allowed on expressions of type "
                   "scalar or instant vector, got \"string\""},
        {"-foo[5m]", "1:1: parse error: unary expression only allowed on expressions of type "
                     "scalar or instant vector, got \"range vector\""},
        {"1[5m:1m]",
         "1:1: parse error: subquery is only allowed on instant vector, got scalar instead"},
    };
    EXPECT(rows);
}

static char *repeat(const char *piece, size_t times, const char *end)
{
    const size_t len = strlen(piece);
    char *const text = malloc(len * times + strlen(end) + 1);
    if (!text)
        T_FAIL("no memory");
    for (size_t i = 0; i < times; i++)
        memcpy(text + i * len, piece, len);
    memcpy(text + len * times, end, strlen(end) + 1);
    return text;
}

TEST(depth_size_and_length_are_bounded)
{
    static const struct {
        const char *piece;
        size_t times;
        const char *end;
        const char *want;
    } rows[] = {
        {"(", 60000, "", "nested more than 256 deep"},
        {"-", 60000, "a", "nested more than 256 deep"},
        {"1^", 30000, "1", "nested more than 256 deep"},
        {"1+", 30000, "1", "nested more than 256 deep"},
        {"abs(", 10000, "", "nested more than 256 deep"},
        {"foo[(", 1, "1", "unclosed left parenthesis"},
        {"a,", 12000, "a", "unexpected \",\""},
        {"1", 70000, "", "longer than 65536 bytes"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char *const text = repeat(rows[i].piece, rows[i].times, rows[i].end);
        char got[512];
        refusal(text, strlen(text), got);
        if (!strstr(got, rows[i].want))
            T_FAIL("%.10s... gave: %s\n  want: %s", text, got, rows[i].want);
        free(text);
    }
    char *const ok = repeat("1+", 200, "1");
    char got[512];
    refusal(ok, strlen(ok), got);
    T_EQ_STR(got, "");
    free(ok);
    char *const wide = repeat("a,", 10001, "a)");
    char *const call = malloc(strlen(wide) + 16);
    if (!call)
        T_FAIL("no memory");
    memcpy(call, "absent(", 7);
    memcpy(call + 7, wide, strlen(wide) + 1);
    refusal(call, strlen(call), got);
    if (!strstr(got, "more than 10000 parts"))
        T_FAIL("gave: %s", got);
    free(call);
    free(wide);
}

/* Names listed in the skip file stand for expressions that are not taken; it may only shrink. */
static bool is_skipped(const char *list, const char *query)
{
    const size_t len = strlen(query);
    for (const char *line = list; line && *line;) {
        const char *const end = strchr(line, '\n');
        const size_t line_len = end ? (size_t)(end - line) : strlen(line);
        if (line[0] != '#' && line_len == len && memcmp(line, query, len) == 0)
            return true;
        line = end ? end + 1 : NULL;
    }
    return false;
}

static char *read_text(const char *path)
{
    size_t bytes;
    uint8_t *const data = t_read_file(path, &bytes);
    if (!data)
        return NULL;
    char *const text = malloc(bytes + 1);
    if (!text)
        T_FAIL("no memory");
    memcpy(text, data, bytes);
    text[bytes] = '\0';
    free(data);
    return text;
}

static void for_each_case(void (*fn)(const char *query, void *ctx), void *ctx)
{
    const char *const path = T_SHARED_DIR "/vectors/promqltest/cases.tsv";
    char *const text = read_text(path);
    if (!text) {
        T_SKIP_MISSING(path);
        return;
    }
    char *save = NULL;
    for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        const char *const query = strrchr(line, '\t');
        if (line[0] != '#' && query)
            fn(query + 1, ctx);
    }
    free(text);
}

struct corpus {
    char *skips;
    size_t count;
    size_t skipped;
};

/* All 2,214 parse in Prometheus: those that fail there fail while they are evaluated. */
static void expect_case(const char *query, void *ctx)
{
    struct corpus *const corpus = ctx;
    corpus->count++;
    char got[512];
    refusal(query, strlen(query), got);
    const bool skip = is_skipped(corpus->skips, query);
    corpus->skipped += skip ? 1 : 0;
    if (*got && !skip)
        T_FAIL("%s\n  was refused: %s", query, got);
    if (!*got && skip)
        T_FAIL("%s\n  is taken now: take it out of the skip list", query);
}

TEST(every_expression_of_the_promqltest_scripts_is_taken)
{
    struct corpus corpus = {
        .skips = read_text(T_SOURCE_DIR "/tests/unit/agent/query/promqltest_skips.txt")};
    T_TRUE(corpus.skips != NULL);
    for_each_case(expect_case, &corpus);
    free(corpus.skips);
    if (corpus.count < 2000)
        T_FAIL("only %zu cases were found", corpus.count);
}

static const char *const spice[] = {"(", ")",    "{",    "}",    "[",     "]",  "\"",  "'",
                                    "`", ",",    ":",    "=~",   "!~",    "by", "on",  "offset",
                                    "@", "bool", "5m",   "0x",   "1e",    "\\", "sum", "rate",
                                    "-", "^",    "\xff", "\xc3", "fill(", "#",  "\n"};

static void spoil(struct t_rng *r, char *text, size_t *len, size_t cap)
{
    const char *const piece = spice[t_below(r, sizeof spice / sizeof *spice)];
    const size_t piece_len = strlen(piece);
    const size_t at = (size_t)t_below(r, *len + 1);
    if (t_below(r, 3) == 0 && *len) {
        const size_t cut = (size_t)t_below(r, *len - (at < *len ? at : 0)) + 1;
        const size_t from = at < *len ? at : 0;
        const size_t gone = cut < *len - from ? cut : *len - from;
        memmove(text + from, text + from + gone, *len - from - gone);
        *len -= gone;
    } else if (*len + piece_len <= cap) {
        memmove(text + at + piece_len, text + at, *len - at);
        memcpy(text + at, piece, piece_len);
        *len += piece_len;
    }
}

TEST(spoilt_expressions_never_crash_the_parser)
{
    static const char *const seeds[] = {
        "histogram_quantile(0.99, sum by (x) (rate(d{a=\"b\",c=~\"d|e\"}[5m] offset 1h)))",
        "sum without(a, b) (foo) / on(x) group_left(y) fill(0) bar{z!~`[a-z]+(\\d|x)*`} > bool 2",
        "-max_over_time(foo[1h30m:10s] @ end()) ^ 2 + 'str\\x41\\u00e9' # comment",
        "{\"quoted.name\", \"l\"=\"v\"} offset (step() * 2) smoothed or count_values(\"v\", x)",
    };
    struct t_rng r = t_rng(t_seed());
    size_t refused = 0;
    for (int round = 0; round < 20000; round++) {
        char text[512];
        const char *const seed = seeds[t_below(&r, sizeof seeds / sizeof *seeds)];
        size_t len = strlen(seed);
        memcpy(text, seed, len);
        const uint64_t edits = 1 + t_below(&r, 6);
        for (uint64_t i = 0; i < edits; i++)
            spoil(&r, text, &len, sizeof text);
        char got[512];
        refusal(text, len, got);
        refused += *got ? 1 : 0;
        /* A refusal always says where, in the text or right behind it. */
        if (*got && strstr(got, "unknown position"))
            T_FAIL("%.*s\n  gave %s", (int)len, text, got);
    }
    T_TRUE(refused > 10000);
    T_TRUE(refused < 20000);
}
