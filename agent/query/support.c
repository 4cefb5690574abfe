/* SPDX-License-Identifier: Apache-2.0 */
/*
 * support: refuses, by name and place, what PromQL has and the evaluator does not answer yet.
 *
 * It walks the tree before anything is read: whether a query is answered does not depend on data.
 *
 * Threads: see eval.h. Memory: none.
 */
#include "eval.h"

static bool refuse(struct query_eval *eval, size_t at, const char *what, const char *name)
{
    return query_fail(&eval->error, QUERY_FAULT_UNSUPPORTED, at, "%s%s%s%s is not supported yet",
                      what, *name ? " \"" : "", name, *name ? "\"" : "");
}

static bool duration_supported(struct query_eval *eval, const struct query_duration *duration)
{
    if (duration->given && duration->dynamic)
        return refuse(eval, duration->at, "step() or range() in a duration", "");
    return true;
}

static bool selector_supported(struct query_eval *eval, const struct query_node *node)
{
    const struct query_selector *const selector = &node->u.selector;
    if (selector->extend == QUERY_EXTEND_ANCHORED)
        return refuse(eval, selector->extend_at, "modifier", "anchored");
    if (selector->extend == QUERY_EXTEND_SMOOTHED)
        return refuse(eval, selector->extend_at, "modifier", "smoothed");
    return duration_supported(eval, &selector->shift.offset);
}

static bool subquery_refused(struct query_eval *eval, const struct query_node *node)
{
    return refuse(eval, node->u.subquery.span.at, "subquery", "");
}

static bool range_supported(struct query_eval *eval, const struct query_node *node)
{
    if (node->kind == QUERY_NODE_SUBQUERY)
        return subquery_refused(eval, node);
    return duration_supported(eval, &node->u.range.span) &&
           selector_supported(eval, node->u.range.selector);
}

/* Over observations these functions answer; over the running total of a counter they do not yet. */
static bool is_over_time(enum query_action action)
{
    return action == QUERY_ACTION_QUANTILE_OVER_TIME || action == QUERY_ACTION_MIN_OVER_TIME ||
           action == QUERY_ACTION_MAX_OVER_TIME;
}

static bool node_supported(struct query_eval *eval, const struct query_node *node);

static bool call_supported(struct query_eval *eval, const struct query_node *node)
{
    const struct query_function *const f = node->u.call.function;
    if (f->action == QUERY_ACTION_NONE)
        return refuse(eval, node->at, "function", f->name);
    for (const struct query_node *arg = node->u.call.args; arg; arg = arg->next) {
        const struct query_node *const inner = query_unwrap(arg);
        if (inner->type != QUERY_TYPE_RANGE) {
            if (!node_supported(eval, inner))
                return false;
            continue;
        }
        if (!range_supported(eval, inner))
            return false;
        if (is_over_time(f->action) &&
            query_selects_metric(eval, inner->u.range.selector, QUERY_CALLS_NAME))
            return query_fail(&eval->error, QUERY_FAULT_UNSUPPORTED, inner->at,
                              "function \"%s\" over the counter %s is not supported yet", f->name,
                              QUERY_CALLS_NAME);
    }
    return eval->error.fault == QUERY_FAULT_NONE;
}

static bool binary_supported(struct query_eval *eval, const struct query_node *node)
{
    const struct query_binary *const binary = &node->u.binary;
    const char *const op = query_token_text(binary->op);
    if (binary->op == QUERY_TOKEN_TRIM_LOWER || binary->op == QUERY_TOKEN_TRIM_UPPER)
        return refuse(eval, binary->op_at, "operator", op);
    if (!node_supported(eval, binary->left))
        return false;
    if (binary->left->type == QUERY_TYPE_VECTOR && binary->right->type == QUERY_TYPE_VECTOR)
        return query_fail(&eval->error, QUERY_FAULT_UNSUPPORTED, binary->op_at,
                          "operator \"%s\" between two instant vectors is not supported yet", op);
    return node_supported(eval, binary->right);
}

static bool node_supported(struct query_eval *eval, const struct query_node *node)
{
    switch (node->kind) {
    case QUERY_NODE_NUMBER:
    case QUERY_NODE_STRING:
        return true;
    case QUERY_NODE_SELECTOR:
        return selector_supported(eval, node);
    case QUERY_NODE_RANGE:
        return refuse(eval, node->u.range.span.at, "range vector as an answer", "");
    case QUERY_NODE_SUBQUERY:
        return subquery_refused(eval, node);
    case QUERY_NODE_CALL:
        return call_supported(eval, node);
    case QUERY_NODE_AGGREGATE:
        if (node->u.aggregate.op != QUERY_TOKEN_SUM && node->u.aggregate.op != QUERY_TOKEN_MAX)
            return refuse(eval, node->at, "aggregation", query_token_text(node->u.aggregate.op));
        return node_supported(eval, node->u.aggregate.inner);
    case QUERY_NODE_BINARY:
        return binary_supported(eval, node);
    case QUERY_NODE_UNARY:
        return node_supported(eval, node->u.unary.inner);
    case QUERY_NODE_PAREN:
        return node_supported(eval, node->u.paren);
    }
    return false;
}

bool query_supported(struct query_eval *eval, const struct query_node *root)
{
    return node_supported(eval, root);
}
