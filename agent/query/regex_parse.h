/* SPDX-License-Identifier: Apache-2.0 */
#ifndef AGENT_QUERY_REGEX_PARSE_H
#define AGENT_QUERY_REGEX_PARSE_H
/*
 * regex_parse: a regular expression's text to its syntax tree; seen by regex.c alone.
 */
#include "regex.h"

struct regex_range {
    int32_t first;
    int32_t last;
};

enum regex_kind {
    REGEX_EMPTY,
    REGEX_RANGES, /* one code point out of sorted ranges that do not touch */
    REGEX_ASSERT, /* min says which */
    REGEX_CONCAT,
    REGEX_ALTERNATE,
    REGEX_REPEAT
};

enum regex_assert {
    REGEX_AT_BEGIN,
    REGEX_AT_END,
    REGEX_AT_LINE_BEGIN,
    REGEX_AT_LINE_END,
    REGEX_AT_WORD,
    REGEX_NOT_AT_WORD
};

#define REGEX_UNBOUNDED UINT32_MAX

struct regex_node {
    enum regex_kind kind;
    struct regex_node *next;  /* the next part or way of the parent */
    struct regex_node *first; /* parts, ways, or the body of a repeat */
    uint32_t min;
    uint32_t max;
    const struct regex_range *ranges;
    size_t range_count;
};

bool regex_parse(struct query_arena *arena, struct weir_bytes pattern, size_t at,
                 struct regex_node **ret_root, struct query_error *error);
#endif
