/* SPDX-License-Identifier: Apache-2.0 */
#ifndef AGENT_QUERY_FUNCTIONS_H
#define AGENT_QUERY_FUNCTIONS_H
/*
 * functions: the functions of PromQL by name, with the types they take and give. A function that
 * is not answered yet is in the table too: its use is checked, then refused by name.
 *
 * Threads: any; the table is constant.
 */
#include <stddef.h>

enum query_type {
    QUERY_TYPE_NONE = 0,
    QUERY_TYPE_SCALAR,
    QUERY_TYPE_STRING,
    QUERY_TYPE_VECTOR,
    QUERY_TYPE_RANGE
};
const char *query_type_name(enum query_type type); /* "instant vector" */

/* What the evaluator does for a function; NONE: refused as not supported yet. */
enum query_action {
    QUERY_ACTION_NONE = 0,
    QUERY_ACTION_INCREASE,
    QUERY_ACTION_RATE,
    QUERY_ACTION_QUANTILE_OVER_TIME,
    QUERY_ACTION_MIN_OVER_TIME,
    QUERY_ACTION_MAX_OVER_TIME,
    QUERY_ACTION_HISTOGRAM_COUNT,
    QUERY_ACTION_HISTOGRAM_SUM,
    QUERY_ACTION_HISTOGRAM_AVG,
    QUERY_ACTION_HISTOGRAM_QUANTILE
};

struct query_function {
    const char *name;
    const char *args; /* a letter each: v instant vector, m range vector, s scalar, S string */
    int variadic;     /* 0: exactly these; n: the last may be left out and repeated, so that there
                         are at most n more than one less; -1: at least one less */
    enum query_type returns;
    enum query_action action;
};
const struct query_function *query_function_find(const char *name, size_t len); /* may be NULL */
enum query_type query_type_of_letter(char letter);
#endif
