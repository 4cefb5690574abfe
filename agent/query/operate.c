/* SPDX-License-Identifier: Apache-2.0 */
/*
 * operate: operators between two scalars, and between a scalar and a vector.
 *
 * A comparison filters, and keeps names and values, unless it has bool; arithmetic drops names. Of
 * histograms a scalar makes multiples; what else meets one leaves the sample out with an info.
 *
 * Threads: see eval.h. Memory: see eval.h.
 */
#include "eval.h"

#include <math.h>

static bool compare(enum query_token_kind op, double a, double b)
{
    switch ((int)op) {
    case QUERY_TOKEN_EQLC:
        return a == b;
    case QUERY_TOKEN_NEQ:
        return a != b;
    case QUERY_TOKEN_LTE:
        return a <= b;
    case QUERY_TOKEN_LSS:
        return a < b;
    case QUERY_TOKEN_GTE:
        return a >= b;
    default:
        return a > b;
    }
}

static double calculate(enum query_token_kind op, double a, double b)
{
    switch ((int)op) {
    case QUERY_TOKEN_ADD:
        return a + b;
    case QUERY_TOKEN_SUB:
        return a - b;
    case QUERY_TOKEN_MUL:
        return a * b;
    case QUERY_TOKEN_DIV:
        return query_divide(a, b);
    case QUERY_TOKEN_MOD:
        return fmod(a, b);
    case QUERY_TOKEN_POW:
        return pow(a, b);
    default:
        return atan2(a, b);
    }
}

struct operation {
    const struct query_node *node;
    enum query_token_kind op;
    bool vector_left; /* the vector stands on the left */
    double scalar;
};

/* True when the sample stays. */
static bool apply_float(const struct operation *o, struct query_sample *sample)
{
    const double a = o->vector_left ? sample->value : o->scalar;
    const double b = o->vector_left ? o->scalar : sample->value;
    if (!query_is_comparison(o->op)) {
        sample->value = calculate(o->op, a, b);
        return true;
    }
    const bool holds = compare(o->op, a, b);
    if (!o->node->u.binary.returns_bool)
        return holds;
    sample->value = holds ? 1 : 0;
    return true;
}

static bool apply_histogram(struct query_eval *eval, const struct operation *o,
                            struct query_sample *sample)
{
    if (o->op == QUERY_TOKEN_MUL || (o->op == QUERY_TOKEN_DIV && o->vector_left)) {
        if (o->op == QUERY_TOKEN_MUL)
            sample->times *= o->scalar;
        else
            sample->over *= o->scalar;
        return true;
    }
    const char *const op = query_token_text(o->op);
    query_eval_note(eval, false, o->node->at,
                    "incompatible sample types encountered for binary operator \"%s\": %s %s %s",
                    op, o->vector_left ? "histogram" : "float", op,
                    o->vector_left ? "float" : "histogram");
    return false;
}

static bool apply_vector(struct query_eval *eval, const struct operation *o,
                         struct query_vector *vector)
{
    size_t kept = 0;
    for (size_t i = 0; i < vector->count; i++) {
        struct query_sample sample = vector->samples[i];
        if (sample.sketch ? apply_histogram(eval, o, &sample) : apply_float(o, &sample))
            vector->samples[kept++] = sample;
    }
    vector->count = kept;
    if (query_is_comparison(o->op) && !o->node->u.binary.returns_bool)
        return true;
    return query_vector_drop_names(eval, vector);
}

bool query_eval_binary(struct query_eval *eval, const struct query_node *node,
                       struct query_value *ret_value)
{
    const struct query_binary *const binary = &node->u.binary;
    struct query_value left;
    struct query_value right;
    if (!query_eval_node(eval, binary->left, &left) ||
        !query_eval_node(eval, binary->right, &right))
        return false;
    if (node->type == QUERY_TYPE_SCALAR) {
        ret_value->scalar = query_is_comparison(binary->op)
                                ? (compare(binary->op, left.scalar, right.scalar) ? 1 : 0)
                                : calculate(binary->op, left.scalar, right.scalar);
        return true;
    }
    const bool vector_left = left.type == QUERY_TYPE_VECTOR;
    const struct operation operation = {.node = node,
                                        .op = binary->op,
                                        .vector_left = vector_left,
                                        .scalar = vector_left ? right.scalar : left.scalar};
    ret_value->vector = vector_left ? left.vector : right.vector;
    return apply_vector(eval, &operation, &ret_value->vector);
}
