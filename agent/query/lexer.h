/* SPDX-License-Identifier: Apache-2.0 */
#ifndef AGENT_QUERY_LEXER_H
#define AGENT_QUERY_LEXER_H
/*
 * lexer: the tokens of PromQL, one at a time, as views into the query's text.
 *
 * Words are keywords by context only: "sum" or "offset" may be metric names, which the parser
 * decides; inside braces every word is an identifier. Errors are tokens, so that the one met
 * first is the one reported.
 *
 * Threads: none inside. Memory: none.
 */
#include "error.h"

#include <stdbool.h>
#include <stddef.h>
#include <weir/base.h>

/* How a token is named in error texts. */
enum query_token_class {
    QUERY_CLASS_END,
    QUERY_CLASS_ERROR,
    QUERY_CLASS_TEXT,   /* identifier "x", string "\"x\"", number "1" */
    QUERY_CLASS_SYMBOL, /* "(" */
    QUERY_CLASS_OPERATOR,
    QUERY_CLASS_AGGREGATOR,
    QUERY_CLASS_KEYWORD,
    QUERY_CLASS_PREPROCESSOR
};

/* name, class, text (of words in lower case; "" where the text varies) */
#define QUERY_TOKEN_MAP(X)                                                                         \
    X(EOF, END, "end of input")                                                                    \
    X(ERROR, ERROR, "")                                                                            \
    X(IDENTIFIER, TEXT, "identifier")                                                              \
    X(METRIC_IDENTIFIER, TEXT, "metric identifier")                                                \
    X(STRING, TEXT, "string")                                                                      \
    X(NUMBER, TEXT, "number")                                                                      \
    X(DURATION, TEXT, "duration")                                                                  \
    X(LEFT_PAREN, SYMBOL, "(")                                                                     \
    X(RIGHT_PAREN, SYMBOL, ")")                                                                    \
    X(LEFT_BRACE, SYMBOL, "{")                                                                     \
    X(RIGHT_BRACE, SYMBOL, "}")                                                                    \
    X(LEFT_BRACKET, SYMBOL, "[")                                                                   \
    X(RIGHT_BRACKET, SYMBOL, "]")                                                                  \
    X(COMMA, SYMBOL, ",")                                                                          \
    X(COLON, SYMBOL, ":")                                                                          \
    X(EQL, SYMBOL, "=")                                                                            \
    X(EQL_REGEX, OPERATOR, "=~")                                                                   \
    X(NEQ_REGEX, OPERATOR, "!~")                                                                   \
    X(ADD, OPERATOR, "+")                                                                          \
    X(SUB, OPERATOR, "-")                                                                          \
    X(MUL, OPERATOR, "*")                                                                          \
    X(DIV, OPERATOR, "/")                                                                          \
    X(MOD, OPERATOR, "%")                                                                          \
    X(POW, OPERATOR, "^")                                                                          \
    X(EQLC, OPERATOR, "==")                                                                        \
    X(NEQ, OPERATOR, "!=")                                                                         \
    X(LTE, OPERATOR, "<=")                                                                         \
    X(LSS, OPERATOR, "<")                                                                          \
    X(GTE, OPERATOR, ">=")                                                                         \
    X(GTR, OPERATOR, ">")                                                                          \
    X(TRIM_UPPER, OPERATOR, "</")                                                                  \
    X(TRIM_LOWER, OPERATOR, ">/")                                                                  \
    X(AT, OPERATOR, "@")                                                                           \
    X(LAND, OPERATOR, "and")                                                                       \
    X(LOR, OPERATOR, "or")                                                                         \
    X(LUNLESS, OPERATOR, "unless")                                                                 \
    X(ATAN2, OPERATOR, "atan2")                                                                    \
    X(AVG, AGGREGATOR, "avg")                                                                      \
    X(BOTTOMK, AGGREGATOR, "bottomk")                                                              \
    X(COUNT, AGGREGATOR, "count")                                                                  \
    X(COUNT_VALUES, AGGREGATOR, "count_values")                                                    \
    X(GROUP, AGGREGATOR, "group")                                                                  \
    X(LIMITK, AGGREGATOR, "limitk")                                                                \
    X(LIMIT_RATIO, AGGREGATOR, "limit_ratio")                                                      \
    X(MAX, AGGREGATOR, "max")                                                                      \
    X(MIN, AGGREGATOR, "min")                                                                      \
    X(QUANTILE, AGGREGATOR, "quantile")                                                            \
    X(STDDEV, AGGREGATOR, "stddev")                                                                \
    X(STDVAR, AGGREGATOR, "stdvar")                                                                \
    X(SUM, AGGREGATOR, "sum")                                                                      \
    X(TOPK, AGGREGATOR, "topk")                                                                    \
    X(ANCHORED, KEYWORD, "anchored")                                                               \
    X(BOOL, KEYWORD, "bool")                                                                       \
    X(BY, KEYWORD, "by")                                                                           \
    X(FILL, KEYWORD, "fill")                                                                       \
    X(FILL_LEFT, KEYWORD, "fill_left")                                                             \
    X(FILL_RIGHT, KEYWORD, "fill_right")                                                           \
    X(GROUP_LEFT, KEYWORD, "group_left")                                                           \
    X(GROUP_RIGHT, KEYWORD, "group_right")                                                         \
    X(IGNORING, KEYWORD, "ignoring")                                                               \
    X(OFFSET, KEYWORD, "offset")                                                                   \
    X(ON, KEYWORD, "on")                                                                           \
    X(SMOOTHED, KEYWORD, "smoothed")                                                               \
    X(WITHOUT, KEYWORD, "without")                                                                 \
    X(END, PREPROCESSOR, "end")                                                                    \
    X(RANGE, PREPROCESSOR, "range")                                                                \
    X(START, PREPROCESSOR, "start")                                                                \
    X(STEP, PREPROCESSOR, "step")

enum query_token_kind {
#define QUERY_TOKEN_ENUM(name, class, text) QUERY_TOKEN_##name,
    QUERY_TOKEN_MAP(QUERY_TOKEN_ENUM)
#undef QUERY_TOKEN_ENUM
        QUERY_TOKEN_KINDS
};

struct query_token {
    enum query_token_kind kind;
    size_t at;
    size_t len;
};

struct query_lexer {
    struct weir_bytes text;
    size_t at;
    size_t paren_depth;
    bool in_braces;
    bool in_brackets;
    bool got_colon;
    bool failed;
    size_t failed_at; /* of the QUERY_TOKEN_ERROR */
    char error[320];  /* its text */
};

void query_lexer_init(struct query_lexer *lexer, struct weir_bytes text);
/* The next token; after EOF or ERROR the same again. */
struct query_token query_lexer_next(struct query_lexer *lexer);

enum query_token_class query_token_class(enum query_token_kind kind);
const char *query_token_text(enum query_token_kind kind);
/* How error texts name a token: identifier "x", <op:+>, end of input. */
const char *query_token_describe(struct weir_bytes text, struct query_token token,
                                 struct query_quoted *quoted);
#endif
