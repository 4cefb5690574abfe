/* SPDX-License-Identifier: Apache-2.0 */
/*
 * call: the functions that are answered, one small function each.
 *
 * increase is the exact sum of the windows in range, rate that over the range's seconds: neither
 * extrapolates. quantile_over_time and its like answer from the observations in range, where
 * Prometheus, for histograms, answers nothing.
 *
 * Threads: see eval.h. Memory: see eval.h.
 */
#include "eval.h"

#include <math.h>

static bool eval_increase(struct query_eval *eval, const struct query_node *node, bool per_second,
                          struct query_vector *vector)
{
    double seconds;
    if (!query_select_range(eval, query_unwrap(node->u.call.args), vector, &seconds))
        return false;
    for (size_t i = 0; per_second && i < vector->count; i++) {
        vector->samples[i].value /= seconds;
        vector->samples[i].over *= seconds;
    }
    return query_vector_drop_names(eval, vector);
}

/* q of a sketch as histogram_quantile has it: infinite outside [0, 1]. */
static double quantile_of(const struct weir_sketch *sketch, double q)
{
    if (isnan(q))
        return (double)NAN;
    if (q < 0)
        return -HUGE_VAL;
    if (q > 1)
        return HUGE_VAL;
    double value;
    return weir_sketch_quantile(sketch, q, &value) == WEIR_OK ? value : (double)NAN;
}

static bool eval_quantile_arg(struct query_eval *eval, const struct query_node *arg, double *ret_q)
{
    struct query_value value;
    if (!query_eval_node(eval, arg, &value))
        return false;
    *ret_q = value.scalar;
    if (!(value.scalar >= 0 && value.scalar <= 1)) {
        struct query_buf shown;
        query_buf_init(&shown, 64);
        query_buf_put_double(&shown, value.scalar);
        query_eval_note(eval, true, arg->at, "quantile value should be between 0 and 1, got %.*s",
                        (int)shown.len, shown.ptr ? shown.ptr : "");
        query_buf_done(&shown);
    }
    return true;
}

static double over_time_value(enum query_action action, const struct weir_sketch *sketch, double q)
{
    double value = (double)NAN;
    int r = WEIR_OK;
    if (action == QUERY_ACTION_MIN_OVER_TIME)
        r = weir_sketch_min(sketch, &value);
    else if (action == QUERY_ACTION_MAX_OVER_TIME)
        r = weir_sketch_max(sketch, &value);
    else
        value = quantile_of(sketch, q);
    return r == WEIR_OK ? value : (double)NAN;
}

static bool eval_over_time(struct query_eval *eval, const struct query_node *node,
                           struct query_vector *vector)
{
    const enum query_action action = node->u.call.function->action;
    const struct query_node *range = node->u.call.args;
    double q = 0;
    if (action == QUERY_ACTION_QUANTILE_OVER_TIME) {
        if (!eval_quantile_arg(eval, range, &q))
            return false;
        range = range->next;
    }
    double seconds;
    if (!query_select_range(eval, query_unwrap(range), vector, &seconds))
        return false;
    for (size_t i = 0; i < vector->count; i++) {
        struct query_sample *const sample = &vector->samples[i];
        sample->value = over_time_value(action, sample->sketch, q);
        sample->sketch = NULL;
    }
    return query_vector_drop_names(eval, vector);
}

/* A histogram scaled by a factor that is not above 0 has no quantiles. */
static double histogram_value(enum query_action action, const struct query_sample *sample, double q)
{
    const double count = query_weight(weir_sketch_weight(sample->sketch));
    const double sum = weir_sketch_sum(sample->sketch);
    switch (action) {
    case QUERY_ACTION_HISTOGRAM_COUNT:
        return query_scaled(sample, count);
    case QUERY_ACTION_HISTOGRAM_SUM:
        return query_scaled(sample, sum);
    case QUERY_ACTION_HISTOGRAM_AVG:
        return query_divide(sum, count);
    case QUERY_ACTION_HISTOGRAM_QUANTILE:
        return query_scaled(sample, 1) > 0 ? quantile_of(sample->sketch, q) : (double)NAN;
    case QUERY_ACTION_NONE:
    case QUERY_ACTION_INCREASE:
    case QUERY_ACTION_RATE:
    case QUERY_ACTION_QUANTILE_OVER_TIME:
    case QUERY_ACTION_MIN_OVER_TIME:
    case QUERY_ACTION_MAX_OVER_TIME:
        break;
    }
    return (double)NAN;
}

static bool eval_histogram(struct query_eval *eval, const struct query_node *node,
                           struct query_vector *vector)
{
    const enum query_action action = node->u.call.function->action;
    const struct query_node *arg = node->u.call.args;
    double q = 0;
    const bool quantile = action == QUERY_ACTION_HISTOGRAM_QUANTILE;
    if (quantile) {
        if (!eval_quantile_arg(eval, arg, &q))
            return false;
        arg = arg->next;
    }
    struct query_value value;
    if (!query_eval_node(eval, arg, &value))
        return false;
    size_t kept = 0;
    for (size_t i = 0; i < value.vector.count; i++) {
        struct query_sample sample = value.vector.samples[i];
        if (!sample.sketch) {
            if (quantile)
                query_eval_note(eval, true, arg->at,
                                "bucket label \"le\" is missing or has a malformed value of \"\"");
            continue;
        }
        sample.value = histogram_value(action, &sample, q);
        sample.sketch = NULL;
        value.vector.samples[kept++] = sample;
    }
    value.vector.count = kept;
    *vector = value.vector;
    return query_vector_drop_names(eval, vector);
}

bool query_eval_call(struct query_eval *eval, const struct query_node *node,
                     struct query_value *ret_value)
{
    struct query_vector *const vector = &ret_value->vector;
    switch (node->u.call.function->action) {
    case QUERY_ACTION_INCREASE:
        return eval_increase(eval, node, false, vector);
    case QUERY_ACTION_RATE:
        return eval_increase(eval, node, true, vector);
    case QUERY_ACTION_QUANTILE_OVER_TIME:
    case QUERY_ACTION_MIN_OVER_TIME:
    case QUERY_ACTION_MAX_OVER_TIME:
        return eval_over_time(eval, node, vector);
    case QUERY_ACTION_HISTOGRAM_COUNT:
    case QUERY_ACTION_HISTOGRAM_SUM:
    case QUERY_ACTION_HISTOGRAM_AVG:
    case QUERY_ACTION_HISTOGRAM_QUANTILE:
        return eval_histogram(eval, node, vector);
    case QUERY_ACTION_NONE:
        break;
    }
    return query_fail(&eval->error, QUERY_FAULT_INTERNAL, node->at, "function without an action");
}
