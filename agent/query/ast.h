/* SPDX-License-Identifier: Apache-2.0 */
#ifndef AGENT_QUERY_AST_H
#define AGENT_QUERY_AST_H
/*
 * ast: the syntax tree of a PromQL expression. Every node knows where in the text it stands.
 *
 * Memory: nodes, names and strings live in the arena of the query that was parsed.
 */
#include "arena.h"
#include "error.h"
#include "functions.h"
#include "lexer.h"
#include "regex.h"

#include <stdbool.h>
#include <stdint.h>

#define QUERY_TEXT_MAX_BYTES ((size_t)64 * 1024)
#define QUERY_DEPTH_MAX 256u
#define QUERY_NODES_MAX 10000u

enum query_node_kind {
    QUERY_NODE_NUMBER,
    QUERY_NODE_STRING,
    QUERY_NODE_SELECTOR, /* an instant vector */
    QUERY_NODE_RANGE,    /* selector[duration] */
    QUERY_NODE_SUBQUERY, /* expression[duration:step] */
    QUERY_NODE_CALL,
    QUERY_NODE_AGGREGATE,
    QUERY_NODE_BINARY,
    QUERY_NODE_UNARY,
    QUERY_NODE_PAREN
};

enum query_match_kind { QUERY_MATCH_EQ, QUERY_MATCH_NE, QUERY_MATCH_RE, QUERY_MATCH_NRE };

struct query_matcher {
    struct query_matcher *next;
    size_t at;
    enum query_match_kind kind;
    struct weir_bytes name;
    struct weir_bytes value;
    struct query_regex *regex; /* of the two regex kinds */
};

struct query_name { /* a label name in by(...), on(...) and their like */
    struct query_name *next;
    struct weir_bytes name;
};

enum query_at_kind { QUERY_AT_NONE = 0, QUERY_AT_TIME, QUERY_AT_START, QUERY_AT_END };

/* offset and @ of a selector, a range or a subquery. A duration expression is folded while it is
 * parsed. */
struct query_duration {
    bool given;
    size_t at;
    double seconds;
    bool dynamic; /* it calls step() or range(); seconds is then worth nothing */
};
struct query_shift {
    struct query_duration offset;
    enum query_at_kind at_kind;
    double at_seconds;
    size_t at_at;
};

enum query_extend { QUERY_EXTEND_NONE = 0, QUERY_EXTEND_ANCHORED, QUERY_EXTEND_SMOOTHED };

struct query_selector {
    struct weir_bytes name; /* before the braces or quoted inside; empty when there is none */
    struct query_matcher *matchers; /* __name__ = name among them */
    bool may_match_empty;           /* all matchers may match a missing label */
    struct query_shift shift;
    enum query_extend extend;
    size_t extend_at;
};

struct query_range {
    struct query_node *selector;
    struct query_duration span;
};

struct query_subquery {
    struct query_node *inner;
    struct query_duration span;
    struct query_duration step; /* not given: the default step */
    struct query_shift shift;
};

struct query_call {
    const struct query_function *function;
    struct query_node *args; /* by next */
    size_t arg_count;
};

enum query_grouping { QUERY_GROUP_NONE = 0, QUERY_GROUP_BY, QUERY_GROUP_WITHOUT };

struct query_aggregate {
    enum query_token_kind op;
    struct query_node *param; /* of topk and its like; NULL */
    struct query_node *inner;
    enum query_grouping grouping;
    struct query_name *names;
};

enum query_card { QUERY_CARD_ONE = 0, QUERY_CARD_MANY_LEFT, QUERY_CARD_MANY_RIGHT };

struct query_binary {
    enum query_token_kind op;
    size_t op_at;
    struct query_node *left;
    struct query_node *right;
    bool returns_bool;
    bool matching; /* on or ignoring was given */
    bool on;
    struct query_name *match_names;
    enum query_card card;
    struct query_name *include;
    bool fills[2]; /* left, right */
    double fill[2];
};

struct query_unary {
    bool minus;
    struct query_node *inner;
};

struct query_node {
    enum query_node_kind kind;
    enum query_type type; /* set by the checker */
    uint32_t depth;
    size_t at;               /* the first byte */
    struct query_node *next; /* the next argument of a call */
    union {
        double number;
        struct weir_bytes string;
        struct query_selector selector;
        struct query_range range;
        struct query_subquery subquery;
        struct query_call call;
        struct query_aggregate aggregate;
        struct query_binary binary;
        struct query_unary unary;
        struct query_node *paren;
    } u;
};

/* == != <= < >= > */
bool query_is_comparison(enum query_token_kind op);

/* Parse without types. Errors: error is filled, NULL returned. */
struct query_node *query_parse(struct query_arena *arena, struct weir_bytes text,
                               struct query_error *error);
/* Give every node its type, or refuse in error. */
bool query_check(struct query_node *root, struct query_error *error);
#endif
