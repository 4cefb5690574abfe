/* SPDX-License-Identifier: Apache-2.0 */
/*
 * check: gives every node its type, bottom up, and refuses what PromQL's typing rules refuse, in
 * Prometheus' wording. One function a kind of node.
 *
 * Threads: none inside. Memory: none. The recursion is as deep as the tree (QUERY_DEPTH_MAX).
 */
#include "ast.h"

#include <string.h>

struct checker {
    struct query_error *error;
};

static bool check(const struct checker *c, struct query_node *node);

static bool refuse(const struct checker *c, size_t at, const char *text)
{
    return query_fail(c->error, QUERY_FAULT_PARSE, at, "%s", text);
}

static bool expect_type(const struct checker *c, const struct query_node *node,
                        enum query_type want, const char *context)
{
    if (node->type == want)
        return true;
    return query_fail(c->error, QUERY_FAULT_PARSE, node->at, "expected type %s in %s, got %s",
                      query_type_name(want), context, query_type_name(node->type));
}

static bool matches_empty(const struct query_matcher *matcher)
{
    uint64_t budget = UINT64_MAX;
    const struct weir_bytes empty = {.ptr = "", .len = 0};
    switch (matcher->kind) {
    case QUERY_MATCH_EQ:
        return matcher->value.len == 0;
    case QUERY_MATCH_NE:
        return matcher->value.len != 0;
    case QUERY_MATCH_RE:
        return query_regex_match(matcher->regex, empty, &budget) == 1;
    case QUERY_MATCH_NRE:
        return query_regex_match(matcher->regex, empty, &budget) == 0;
    }
    return false;
}

static bool is_name_label(const struct query_matcher *matcher)
{
    return matcher->name.len == 8 && memcmp(matcher->name.ptr, "__name__", 8) == 0;
}

static bool check_selector(const struct checker *c, struct query_node *node)
{
    node->type = QUERY_TYPE_VECTOR;
    const struct query_selector *const selector = &node->u.selector;
    bool some = false;
    bool named = false;
    for (const struct query_matcher *m = selector->matchers; m; m = m->next) {
        some = some || !matches_empty(m);
        const bool by_name = m->value.ptr == selector->name.ptr && is_name_label(m);
        if (selector->name.ptr && is_name_label(m) && (!by_name || named))
            return query_fail(c->error, QUERY_FAULT_PARSE, node->at,
                              "metric name must not be set twice: %s or %s",
                              QUERY_QUOTE(selector->name.ptr, selector->name.len),
                              QUERY_QUOTE(m->value.ptr, m->value.len));
        named = named || by_name;
    }
    if (!some && !selector->may_match_empty)
        return refuse(c, node->at, "vector selector must contain at least one non-empty matcher");
    return true;
}

static bool check_subquery(const struct checker *c, struct query_node *node)
{
    node->type = QUERY_TYPE_RANGE;
    const struct query_node *const inner = node->u.subquery.inner;
    if (!check(c, node->u.subquery.inner))
        return false;
    if (inner->type != QUERY_TYPE_VECTOR)
        return query_fail(c->error, QUERY_FAULT_PARSE, node->at,
                          "subquery is only allowed on instant vector, got %s instead",
                          query_type_name(inner->type));
    return true;
}

static bool check_arg_count(const struct checker *c, const struct query_node *node)
{
    const struct query_function *const f = node->u.call.function;
    const size_t count = node->u.call.arg_count;
    const size_t full = strlen(f->args);
    if (f->variadic == 0) {
        if (count == full)
            return true;
        return query_fail(c->error, QUERY_FAULT_PARSE, node->at,
                          "expected %zu argument(s) in call to \"%s\", got %zu", full, f->name,
                          count);
    }
    if (count < full - 1)
        return query_fail(c->error, QUERY_FAULT_PARSE, node->at,
                          "expected at least %zu argument(s) in call to \"%s\", got %zu", full - 1,
                          f->name, count);
    if (f->variadic > 0 && count > full - 1 + (size_t)f->variadic)
        return query_fail(c->error, QUERY_FAULT_PARSE, node->at,
                          "expected at most %zu argument(s) in call to \"%s\", got %zu",
                          full - 1 + (size_t)f->variadic, f->name, count);
    return true;
}

static bool check_call(const struct checker *c, struct query_node *node)
{
    const struct query_function *const f = node->u.call.function;
    node->type = f->returns;
    if (!check_arg_count(c, node))
        return false;
    char context[80] = "call to function \"";
    const size_t prefix = strlen(context);
    const size_t len = strlen(f->name);
    if (prefix + len + 2 <= sizeof context) {
        memcpy(context + prefix, f->name, len);
        context[prefix + len] = '"';
    }
    /* The second argument of info() selects labels, not series. */
    struct query_node *const second = node->u.call.args ? node->u.call.args->next : NULL;
    if (second && second->kind == QUERY_NODE_SELECTOR && strcmp(f->name, "info") == 0)
        second->u.selector.may_match_empty = true;
    const char *letter = f->args;
    for (struct query_node *arg = node->u.call.args; arg; arg = arg->next) {
        if (!check(c, arg) || !expect_type(c, arg, query_type_of_letter(*letter), context))
            return false;
        if (letter[1])
            letter++;
    }
    return true;
}

static bool check_aggregate(const struct checker *c, struct query_node *node)
{
    node->type = QUERY_TYPE_VECTOR;
    const struct query_aggregate *const aggregate = &node->u.aggregate;
    if (!check(c, aggregate->inner) ||
        !expect_type(c, aggregate->inner, QUERY_TYPE_VECTOR, "aggregation expression"))
        return false;
    if (!aggregate->param)
        return true;
    const enum query_type want =
        aggregate->op == QUERY_TOKEN_COUNT_VALUES ? QUERY_TYPE_STRING : QUERY_TYPE_SCALAR;
    return check(c, aggregate->param) &&
           expect_type(c, aggregate->param, want, "aggregation parameter");
}

bool query_is_comparison(enum query_token_kind op)
{
    return op == QUERY_TOKEN_EQLC || op == QUERY_TOKEN_NEQ || op == QUERY_TOKEN_LTE ||
           op == QUERY_TOKEN_LSS || op == QUERY_TOKEN_GTE || op == QUERY_TOKEN_GTR;
}

static bool is_set(enum query_token_kind op)
{
    return op == QUERY_TOKEN_LAND || op == QUERY_TOKEN_LOR || op == QUERY_TOKEN_LUNLESS;
}

static bool holds(const struct query_name *names, struct weir_bytes name)
{
    for (; names; names = names->next) {
        if (names->name.len == name.len && memcmp(names->name.ptr, name.ptr, name.len) == 0)
            return true;
    }
    return false;
}

static bool check_modifiers(const struct checker *c, const struct query_binary *binary,
                            bool scalars)
{
    if (binary->returns_bool && !query_is_comparison(binary->op))
        return refuse(c, binary->op_at, "bool modifier can only be used on comparison operators");
    if (query_is_comparison(binary->op) && !binary->returns_bool && scalars)
        return refuse(c, binary->op_at, "comparisons between scalars must use BOOL modifier");
    if (binary->card == QUERY_CARD_ONE || !binary->on)
        return true;
    for (const struct query_name *n = binary->match_names; n; n = n->next) {
        if (holds(binary->include, n->name))
            return query_fail(c->error, QUERY_FAULT_PARSE, binary->op_at,
                              "label %s must not occur in ON and GROUP clause at once",
                              QUERY_QUOTE(n->name.ptr, n->name.len));
    }
    return true;
}

/* What holds of operands, once their types are known. */
static bool check_operands(const struct checker *c, const struct query_node *node, bool vectors)
{
    const struct query_binary *const binary = &node->u.binary;
    const bool fills = binary->fills[0] || binary->fills[1];
    if (!vectors && (binary->match_names || binary->card != QUERY_CARD_ONE || fills))
        return refuse(c, node->at, "vector matching only allowed between instant vectors");
    if (!is_set(binary->op))
        return true;
    const char *const op = query_token_text(binary->op);
    if (vectors && binary->card != QUERY_CARD_ONE)
        return query_fail(c->error, QUERY_FAULT_PARSE, node->at,
                          "no grouping allowed for \"%s\" operation", op);
    if (vectors && fills)
        return query_fail(c->error, QUERY_FAULT_PARSE, node->at,
                          "filling in missing series not allowed for set operators");
    if (!vectors)
        return query_fail(c->error, QUERY_FAULT_PARSE, node->at,
                          "set operator \"%s\" not allowed in binary scalar expression", op);
    return true;
}

static bool check_binary(const struct checker *c, struct query_node *node)
{
    const struct query_binary *const binary = &node->u.binary;
    if (!check(c, binary->left) || !check(c, binary->right))
        return false;
    const enum query_type left = binary->left->type;
    const enum query_type right = binary->right->type;
    const bool scalars = left == QUERY_TYPE_SCALAR && right == QUERY_TYPE_SCALAR;
    const bool vectors = left == QUERY_TYPE_VECTOR && right == QUERY_TYPE_VECTOR;
    node->type = scalars ? QUERY_TYPE_SCALAR : QUERY_TYPE_VECTOR;
    if (!check_modifiers(c, binary, scalars))
        return false;
    for (int side = 0; side < 2; side++) {
        const struct query_node *const operand = side ? binary->right : binary->left;
        if (operand->type != QUERY_TYPE_SCALAR && operand->type != QUERY_TYPE_VECTOR)
            return refuse(c, operand->at,
                          "binary expression must contain only scalar and instant vector types");
    }
    return check_operands(c, node, vectors);
}

static bool check_unary(const struct checker *c, struct query_node *node)
{
    const struct query_node *const inner = node->u.unary.inner;
    if (!check(c, node->u.unary.inner))
        return false;
    node->type = inner->type;
    if (inner->type == QUERY_TYPE_SCALAR || inner->type == QUERY_TYPE_VECTOR)
        return true;
    return query_fail(c->error, QUERY_FAULT_PARSE, node->at,
                      "unary expression only allowed on expressions of type scalar or instant "
                      "vector, got \"%s\"",
                      query_type_name(inner->type));
}

static bool check(const struct checker *c, struct query_node *node)
{
    switch (node->kind) {
    case QUERY_NODE_NUMBER:
        node->type = QUERY_TYPE_SCALAR;
        return true;
    case QUERY_NODE_STRING:
        node->type = QUERY_TYPE_STRING;
        return true;
    case QUERY_NODE_SELECTOR:
        return check_selector(c, node);
    case QUERY_NODE_RANGE:
        node->type = QUERY_TYPE_RANGE;
        return check(c, node->u.range.selector);
    case QUERY_NODE_SUBQUERY:
        return check_subquery(c, node);
    case QUERY_NODE_CALL:
        return check_call(c, node);
    case QUERY_NODE_AGGREGATE:
        return check_aggregate(c, node);
    case QUERY_NODE_BINARY:
        return check_binary(c, node);
    case QUERY_NODE_UNARY:
        return check_unary(c, node);
    case QUERY_NODE_PAREN:
        if (!check(c, node->u.paren))
            return false;
        node->type = node->u.paren->type;
        return true;
    }
    return false;
}

bool query_check(struct query_node *root, struct query_error *error)
{
    const struct checker checker = {.error = error};
    return check(&checker, root);
}
