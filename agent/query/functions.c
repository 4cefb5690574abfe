/* SPDX-License-Identifier: Apache-2.0 */
/*
 * functions: one row a function, sorted by name, found by bisection. The set is that of
 * Prometheus 3, experimental ones included.
 *
 * Threads: any. Memory: none.
 */
#include "functions.h"

#include <string.h>

#define V QUERY_TYPE_VECTOR
#define S QUERY_TYPE_SCALAR
#define NO QUERY_ACTION_NONE
#define ROW(name_, args_, variadic_, returns_, action_)                                            \
    {                                                                                              \
        .name = (name_), .args = (args_), .variadic = (variadic_), .returns = (returns_),          \
        .action = (action_)                                                                        \
    }

static const struct query_function functions[] = {
    ROW("abs", "v", 0, V, NO),
    ROW("absent", "v", 0, V, NO),
    ROW("absent_over_time", "m", 0, V, NO),
    ROW("acos", "v", 0, V, NO),
    ROW("acosh", "v", 0, V, NO),
    ROW("asin", "v", 0, V, NO),
    ROW("asinh", "v", 0, V, NO),
    ROW("atan", "v", 0, V, NO),
    ROW("atanh", "v", 0, V, NO),
    ROW("avg_over_time", "m", 0, V, NO),
    ROW("ceil", "v", 0, V, NO),
    ROW("changes", "m", 0, V, NO),
    ROW("clamp", "vss", 0, V, NO),
    ROW("clamp_max", "vs", 0, V, NO),
    ROW("clamp_min", "vs", 0, V, NO),
    ROW("cos", "v", 0, V, NO),
    ROW("cosh", "v", 0, V, NO),
    ROW("count_over_time", "m", 0, V, NO),
    ROW("day_of_month", "v", 1, V, NO),
    ROW("day_of_week", "v", 1, V, NO),
    ROW("day_of_year", "v", 1, V, NO),
    ROW("days_in_month", "v", 1, V, NO),
    ROW("deg", "v", 0, V, NO),
    ROW("delta", "m", 0, V, NO),
    ROW("deriv", "m", 0, V, NO),
    ROW("double_exponential_smoothing", "mss", 0, V, NO),
    ROW("end", "", 0, S, NO),
    ROW("exp", "v", 0, V, NO),
    ROW("first_over_time", "m", 0, V, NO),
    ROW("floor", "v", 0, V, NO),
    ROW("histogram_avg", "v", 0, V, QUERY_ACTION_HISTOGRAM_AVG),
    ROW("histogram_count", "v", 0, V, QUERY_ACTION_HISTOGRAM_COUNT),
    ROW("histogram_fraction", "ssv", 0, V, NO),
    ROW("histogram_quantile", "sv", 0, V, QUERY_ACTION_HISTOGRAM_QUANTILE),
    ROW("histogram_quantiles", "vSs", 10, V, NO),
    ROW("histogram_stddev", "v", 0, V, NO),
    ROW("histogram_stdvar", "v", 0, V, NO),
    ROW("histogram_sum", "v", 0, V, QUERY_ACTION_HISTOGRAM_SUM),
    ROW("hour", "v", 1, V, NO),
    ROW("idelta", "m", 0, V, NO),
    ROW("increase", "m", 0, V, QUERY_ACTION_INCREASE),
    ROW("info", "vv", 1, V, NO),
    ROW("integral", "ms", 1, V, NO),
    ROW("irate", "m", 0, V, NO),
    ROW("label_join", "vSSS", -1, V, NO),
    ROW("label_replace", "vSSSS", 0, V, NO),
    ROW("last_over_time", "m", 0, V, NO),
    ROW("ln", "v", 0, V, NO),
    ROW("log10", "v", 0, V, NO),
    ROW("log2", "v", 0, V, NO),
    ROW("mad_over_time", "m", 0, V, NO),
    ROW("max_of", "ss", 0, S, NO),
    ROW("max_over_time", "m", 0, V, QUERY_ACTION_MAX_OVER_TIME),
    ROW("min_of", "ss", 0, S, NO),
    ROW("min_over_time", "m", 0, V, QUERY_ACTION_MIN_OVER_TIME),
    ROW("minute", "v", 1, V, NO),
    ROW("month", "v", 1, V, NO),
    ROW("pi", "", 0, S, NO),
    ROW("predict_linear", "ms", 0, V, NO),
    ROW("present_over_time", "m", 0, V, NO),
    ROW("quantile_over_time", "sm", 0, V, QUERY_ACTION_QUANTILE_OVER_TIME),
    ROW("rad", "v", 0, V, NO),
    ROW("range", "", 0, S, NO),
    ROW("rate", "m", 0, V, QUERY_ACTION_RATE),
    ROW("resets", "m", 0, V, NO),
    ROW("round", "vs", 1, V, NO),
    ROW("scalar", "v", 0, S, NO),
    ROW("sgn", "v", 0, V, NO),
    ROW("sin", "v", 0, V, NO),
    ROW("sinh", "v", 0, V, NO),
    ROW("sort", "v", 0, V, NO),
    ROW("sort_by_label", "vS", -1, V, NO),
    ROW("sort_by_label_desc", "vS", -1, V, NO),
    ROW("sort_desc", "v", 0, V, NO),
    ROW("sqrt", "v", 0, V, NO),
    ROW("start", "", 0, S, NO),
    ROW("start_timestamp", "v", 0, V, NO),
    ROW("stddev_over_time", "m", 0, V, NO),
    ROW("stdvar_over_time", "m", 0, V, NO),
    ROW("step", "", 0, S, NO),
    ROW("sum_over_time", "m", 0, V, NO),
    ROW("tan", "v", 0, V, NO),
    ROW("tanh", "v", 0, V, NO),
    ROW("time", "", 0, S, NO),
    ROW("timestamp", "v", 0, V, NO),
    ROW("ts_of_first_over_time", "m", 0, V, NO),
    ROW("ts_of_last_over_time", "m", 0, V, NO),
    ROW("ts_of_max_over_time", "m", 0, V, NO),
    ROW("ts_of_min_over_time", "m", 0, V, NO),
    ROW("vector", "s", 0, V, NO),
    ROW("year", "v", 1, V, NO),
};

static int compare(const char *name, size_t len, const char *row)
{
    const size_t row_len = strlen(row);
    const int order = memcmp(name, row, len < row_len ? len : row_len);
    if (order)
        return order;
    return (len > row_len) - (len < row_len);
}

const struct query_function *query_function_find(const char *name, size_t len)
{
    size_t low = 0;
    size_t high = sizeof functions / sizeof *functions;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        const int order = compare(name, len, functions[middle].name);
        if (order == 0)
            return &functions[middle];
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}

enum query_type query_type_of_letter(char letter)
{
    switch (letter) {
    case 'v':
        return QUERY_TYPE_VECTOR;
    case 'm':
        return QUERY_TYPE_RANGE;
    case 's':
        return QUERY_TYPE_SCALAR;
    case 'S':
        return QUERY_TYPE_STRING;
    default:
        return QUERY_TYPE_NONE;
    }
}

const char *query_type_name(enum query_type type)
{
    switch (type) {
    case QUERY_TYPE_SCALAR:
        return "scalar";
    case QUERY_TYPE_STRING:
        return "string";
    case QUERY_TYPE_VECTOR:
        return "instant vector";
    case QUERY_TYPE_RANGE:
        return "range vector";
    case QUERY_TYPE_NONE:
        break;
    }
    return "none";
}
