/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parser: a Pratt parser for all of PromQL as of Prometheus 3: one function a construct, operators
 * by precedence, postfix modifiers in a loop behind each primary.
 *
 * It looks one token ahead. Words that are keywords in one place and names in another are told
 * apart there. The wording of errors is Prometheus', so that a user can look them up.
 *
 * Bounds: text, nodes and depth (ast.h); the recursion is at most a few frames a level.
 *
 * Threads: none inside. Memory: the arena.
 */
#include "ast.h"
#include "literal.h"

#include <math.h>
#include <string.h>

enum precedence {
    PREC_OR = 1,
    PREC_AND,
    PREC_COMPARE,
    PREC_ADD,
    PREC_MUL,
    PREC_POW,
};

struct parser {
    struct query_arena *arena;
    struct weir_bytes text;
    struct query_lexer lexer;
    struct query_token token; /* looked at, not taken */
    struct query_error *error;
    uint32_t depth;
    uint32_t nodes;
};

static struct query_node *parse_binary(struct parser *p, int min);

static bool failed(const struct parser *p)
{
    return p->error->fault != QUERY_FAULT_NONE;
}

static void advance(struct parser *p)
{
    p->token = query_lexer_next(&p->lexer);
}

static struct query_token take(struct parser *p)
{
    const struct query_token t = p->token;
    advance(p);
    return t;
}

static bool accept(struct parser *p, enum query_token_kind kind)
{
    if (p->token.kind != kind)
        return false;
    advance(p);
    return true;
}

static struct weir_bytes token_bytes(const struct parser *p, struct query_token t)
{
    return (struct weir_bytes){.ptr = p->text.ptr + t.at, .len = t.len};
}

/* "unexpected X in CONTEXT, expected EXPECTED"; a lexer's error speaks for itself. */
static bool unexpected(struct parser *p, const char *context, const char *expected)
{
    if (p->token.kind == QUERY_TOKEN_ERROR)
        return query_fail(p->error, QUERY_FAULT_PARSE, p->token.at, "%s", p->lexer.error);
    struct query_quoted quoted;
    return query_fail(p->error, QUERY_FAULT_PARSE, p->token.at, "unexpected %s%s%s%s%s",
                      query_token_describe(p->text, p->token, &quoted), *context ? " in " : "",
                      context, *expected ? ", expected " : "", expected);
}

static bool expect(struct parser *p, enum query_token_kind kind, const char *context,
                   const char *expected)
{
    return accept(p, kind) || unexpected(p, context, expected);
}

static struct query_node *new_node(struct parser *p, enum query_node_kind kind, size_t at)
{
    if (++p->nodes > QUERY_NODES_MAX) {
        (void)query_fail(p->error, QUERY_FAULT_PARSE, at, "expression has more than %u parts",
                         QUERY_NODES_MAX);
        return NULL;
    }
    struct query_node *const node = query_arena_take(p->arena, sizeof *node);
    if (!node) {
        (void)query_fail_memory(p->error);
        return NULL;
    }
    node->kind = kind;
    node->at = at;
    node->depth = 1;
    return node;
}

/* parent gets a child: keeps the tree's depth under its bound. */
static bool adopt(struct parser *p, struct query_node *parent, const struct query_node *child)
{
    if (child->depth >= parent->depth)
        parent->depth = child->depth + 1;
    if (parent->depth > QUERY_DEPTH_MAX)
        return query_fail(p->error, QUERY_FAULT_PARSE, parent->at,
                          "expression is nested more than %u deep", QUERY_DEPTH_MAX);
    return true;
}

/* --- names ----------------------------------------------------------------------------------- */

static bool is_word(enum query_token_kind kind)
{
    switch (query_token_class(kind)) {
    case QUERY_CLASS_AGGREGATOR:
    case QUERY_CLASS_KEYWORD:
    case QUERY_CLASS_PREPROCESSOR:
        return true;
    case QUERY_CLASS_OPERATOR:
        return kind == QUERY_TOKEN_LAND || kind == QUERY_TOKEN_LOR || kind == QUERY_TOKEN_LUNLESS ||
               kind == QUERY_TOKEN_ATAN2;
    case QUERY_CLASS_END:
    case QUERY_CLASS_ERROR:
    case QUERY_CLASS_TEXT:
    case QUERY_CLASS_SYMBOL:
        break;
    }
    return kind == QUERY_TOKEN_IDENTIFIER;
}

/* May the token, at the place of an operand, be the name of a metric? */
static bool is_metric_word(enum query_token_kind kind)
{
    switch ((int)kind) {
    case QUERY_TOKEN_BOOL:
    case QUERY_TOKEN_ON:
    case QUERY_TOKEN_IGNORING:
    case QUERY_TOKEN_GROUP_LEFT:
    case QUERY_TOKEN_GROUP_RIGHT:
    case QUERY_TOKEN_ATAN2:
        return false;
    default:
        return kind == QUERY_TOKEN_METRIC_IDENTIFIER || is_word(kind);
    }
}

static struct weir_bytes read_string(struct parser *p)
{
    struct weir_bytes value = {0};
    const struct query_token t = take(p);
    (void)query_read_string(p->arena, token_bytes(p, t), &value, p->error);
    return value;
}

/* After "(" of by(...): one label name. */
static bool parse_label_name(struct parser *p, struct weir_bytes *ret_name)
{
    if (p->token.kind == QUERY_TOKEN_STRING) {
        *ret_name = read_string(p);
        return !failed(p);
    }
    if (!is_word(p->token.kind))
        return unexpected(p, "grouping opts", "label");
    *ret_name = token_bytes(p, take(p));
    return true;
}

static bool parse_label_names(struct parser *p, struct query_name **ret_names)
{
    *ret_names = NULL;
    struct query_name **tail = ret_names;
    if (!expect(p, QUERY_TOKEN_LEFT_PAREN, "grouping opts", "\"(\""))
        return false;
    while (!accept(p, QUERY_TOKEN_RIGHT_PAREN)) {
        struct query_name *const name = query_arena_take(p->arena, sizeof *name);
        if (!name)
            return query_fail_memory(p->error);
        if (!parse_label_name(p, &name->name))
            return false;
        *tail = name;
        tail = &name->next;
        if (!accept(p, QUERY_TOKEN_COMMA) && p->token.kind != QUERY_TOKEN_RIGHT_PAREN)
            return unexpected(p, "grouping opts", "\",\" or \")\"");
    }
    return true;
}

/* --- selectors ------------------------------------------------------------------------------- */

static bool match_kind(enum query_token_kind kind, enum query_match_kind *ret_kind)
{
    switch ((int)kind) {
    case QUERY_TOKEN_EQL:
        *ret_kind = QUERY_MATCH_EQ;
        return true;
    case QUERY_TOKEN_NEQ:
        *ret_kind = QUERY_MATCH_NE;
        return true;
    case QUERY_TOKEN_EQL_REGEX:
        *ret_kind = QUERY_MATCH_RE;
        return true;
    case QUERY_TOKEN_NEQ_REGEX:
        *ret_kind = QUERY_MATCH_NRE;
        return true;
    default:
        return false;
    }
}

static struct query_matcher *add_matcher(struct parser *p, struct query_selector *selector,
                                         size_t at)
{
    struct query_matcher *const matcher = query_arena_take(p->arena, sizeof *matcher);
    if (!matcher) {
        (void)query_fail_memory(p->error);
        return NULL;
    }
    matcher->at = at;
    struct query_matcher **tail = &selector->matchers;
    while (*tail)
        tail = &(*tail)->next;
    *tail = matcher;
    return matcher;
}

static bool set_metric_name(struct parser *p, struct query_node *node, struct weir_bytes name)
{
    struct query_selector *const selector = &node->u.selector;
    if (selector->name.ptr)
        return query_fail(
            p->error, QUERY_FAULT_PARSE, node->at, "metric name must not be set twice: %s or %s",
            QUERY_QUOTE(selector->name.ptr, selector->name.len), QUERY_QUOTE(name.ptr, name.len));
    selector->name = name;
    struct query_matcher *const matcher = add_matcher(p, selector, node->at);
    if (!matcher)
        return false;
    matcher->kind = QUERY_MATCH_EQ;
    matcher->name = (struct weir_bytes){.ptr = "__name__", .len = 8};
    matcher->value = name;
    return true;
}

static bool parse_matcher(struct parser *p, struct query_node *node)
{
    const size_t at = p->token.at;
    struct weir_bytes name;
    const bool quoted = p->token.kind == QUERY_TOKEN_STRING;
    if (quoted) {
        name = read_string(p);
        if (failed(p))
            return false;
    } else if (p->token.kind == QUERY_TOKEN_IDENTIFIER) {
        name = token_bytes(p, take(p));
    } else {
        return unexpected(p, "label matching", "identifier or \"}\"");
    }
    enum query_match_kind kind;
    if (!match_kind(p->token.kind, &kind)) {
        if (quoted &&
            (p->token.kind == QUERY_TOKEN_COMMA || p->token.kind == QUERY_TOKEN_RIGHT_BRACE))
            return set_metric_name(p, node, name);
        return unexpected(p, "label matching", "label matching operator");
    }
    advance(p);
    if (p->token.kind != QUERY_TOKEN_STRING)
        return unexpected(p, "label matching", "string");
    struct query_matcher *const matcher = add_matcher(p, &node->u.selector, at);
    if (!matcher)
        return false;
    matcher->kind = kind;
    matcher->name = name;
    matcher->value = read_string(p);
    if (failed(p))
        return false;
    if (kind != QUERY_MATCH_RE && kind != QUERY_MATCH_NRE)
        return true;
    return query_regex_compile(p->arena, matcher->value, at, &matcher->regex, p->error);
}

static bool parse_matchers(struct parser *p, struct query_node *node)
{
    advance(p); /* { */
    while (!accept(p, QUERY_TOKEN_RIGHT_BRACE)) {
        if (!parse_matcher(p, node))
            return false;
        if (!accept(p, QUERY_TOKEN_COMMA) && p->token.kind != QUERY_TOKEN_RIGHT_BRACE)
            return unexpected(p, "label matching", "\",\" or \"}\"");
    }
    return true;
}

/* name is empty for a selector that begins with its braces. */
static struct query_node *parse_selector(struct parser *p, size_t at, struct weir_bytes name)
{
    struct query_node *const node = new_node(p, QUERY_NODE_SELECTOR, at);
    if (!node || (name.len && !set_metric_name(p, node, name)))
        return NULL;
    if (p->token.kind == QUERY_TOKEN_LEFT_BRACE && !parse_matchers(p, node))
        return NULL;
    return node;
}

/* --- durations ------------------------------------------------------------------------------- */

/* The value of a duration expression, folded as it is read. */
struct span {
    double seconds;
    bool dynamic;
};

#define DURATION_EXPECTED "number, duration, step(), or range()"

static bool parse_span(struct parser *p, int min, const char *context, struct span *ret);

static bool parse_span_number(struct parser *p, struct span *ret)
{
    const struct query_token t = take(p);
    if (t.kind == QUERY_TOKEN_DURATION)
        return query_read_duration(token_bytes(p, t), t.at, &ret->seconds, p->error);
    return query_read_number(token_bytes(p, t), t.at, &ret->seconds, p->error);
}

/* min_of(a, b) or max_of(a, b), the name already taken. */
static bool parse_span_choice(struct parser *p, bool smaller, const char *context, struct span *ret)
{
    struct span a = {0};
    struct span b = {0};
    if (!expect(p, QUERY_TOKEN_LEFT_PAREN, context, "\"(\"") ||
        !parse_span(p, PREC_ADD, context, &a) || !expect(p, QUERY_TOKEN_COMMA, context, "\",\"") ||
        !parse_span(p, PREC_ADD, context, &b) ||
        !expect(p, QUERY_TOKEN_RIGHT_PAREN, context, "\")\""))
        return false;
    const bool first = smaller ? a.seconds < b.seconds : a.seconds > b.seconds;
    ret->seconds = first ? a.seconds : b.seconds;
    ret->dynamic = a.dynamic || b.dynamic;
    return true;
}

static bool is_choice(const struct parser *p, const char *name)
{
    const struct weir_bytes word = token_bytes(p, p->token);
    return p->token.kind == QUERY_TOKEN_IDENTIFIER && word.len == 6 &&
           memcmp(word.ptr, name, 6) == 0;
}

static bool parse_span_primary(struct parser *p, const char *context, struct span *ret)
{
    switch ((int)p->token.kind) {
    case QUERY_TOKEN_NUMBER:
    case QUERY_TOKEN_DURATION:
        return parse_span_number(p, ret);
    case QUERY_TOKEN_LEFT_PAREN:
        advance(p);
        return parse_span(p, PREC_ADD, context, ret) &&
               expect(p, QUERY_TOKEN_RIGHT_PAREN, context, "\")\"");
    case QUERY_TOKEN_STEP:
    case QUERY_TOKEN_RANGE:
        advance(p);
        ret->dynamic = true;
        return expect(p, QUERY_TOKEN_LEFT_PAREN, context, "\"(\"") &&
               expect(p, QUERY_TOKEN_RIGHT_PAREN, context, "\")\"");
    default:
        break;
    }
    if (is_choice(p, "min_of") || is_choice(p, "max_of")) {
        const bool smaller = is_choice(p, "min_of");
        advance(p);
        return parse_span_choice(p, smaller, context, ret);
    }
    return unexpected(p, context, DURATION_EXPECTED);
}

static bool parse_span_unary(struct parser *p, const char *context, struct span *ret)
{
    if (p->token.kind != QUERY_TOKEN_ADD && p->token.kind != QUERY_TOKEN_SUB)
        return parse_span_primary(p, context, ret);
    const bool minus = take(p).kind == QUERY_TOKEN_SUB;
    if (!parse_span(p, PREC_POW, context, ret))
        return false;
    ret->seconds = minus ? -ret->seconds : ret->seconds;
    return true;
}

static int span_precedence(enum query_token_kind kind)
{
    switch ((int)kind) {
    case QUERY_TOKEN_ADD:
    case QUERY_TOKEN_SUB:
        return PREC_ADD;
    case QUERY_TOKEN_MUL:
    case QUERY_TOKEN_DIV:
    case QUERY_TOKEN_MOD:
        return PREC_MUL;
    case QUERY_TOKEN_POW:
        return PREC_POW;
    default:
        return 0;
    }
}

static double span_apply(enum query_token_kind op, double a, double b)
{
    switch ((int)op) {
    case QUERY_TOKEN_ADD:
        return a + b;
    case QUERY_TOKEN_SUB:
        return a - b;
    case QUERY_TOKEN_MUL:
        return a * b;
    case QUERY_TOKEN_DIV:
        return b == 0 ? (double)NAN : a / b;
    case QUERY_TOKEN_MOD:
        return b == 0 ? (double)NAN : fmod(a, b);
    default:
        return pow(a, b);
    }
}

static bool enter(struct parser *p)
{
    if (++p->depth > QUERY_DEPTH_MAX)
        return query_fail(p->error, QUERY_FAULT_PARSE, p->token.at,
                          "expression is nested more than %u deep", QUERY_DEPTH_MAX);
    return true;
}

static bool parse_span(struct parser *p, int min, const char *context, struct span *ret)
{
    if (!enter(p) || !parse_span_unary(p, context, ret))
        return false;
    for (;;) {
        const enum query_token_kind op = p->token.kind;
        const int precedence = span_precedence(op);
        if (precedence == 0 || precedence < min)
            break;
        advance(p);
        struct span right = {0};
        if (!parse_span(p, precedence == PREC_POW ? PREC_POW : precedence + 1, context, &right))
            return false;
        ret->seconds = span_apply(op, ret->seconds, right.seconds);
        ret->dynamic = ret->dynamic || right.dynamic;
    }
    p->depth--;
    return true;
}

/* Ten thousand years: beyond it nothing is meant, and nanoseconds would not fit. */
#define SPAN_MAX_SECONDS 9e9

static bool finish_duration(struct parser *p, size_t at, struct span span,
                            struct query_duration *ret)
{
    if (!span.dynamic && !(fabs(span.seconds) <= SPAN_MAX_SECONDS))
        return query_fail(p->error, QUERY_FAULT_PARSE, at, "duration out of range");
    *ret = (struct query_duration){
        .given = true, .at = at, .seconds = span.seconds, .dynamic = span.dynamic};
    return true;
}

static bool parse_bracket_duration(struct parser *p, const char *context,
                                   struct query_duration *ret)
{
    const size_t at = p->token.at;
    struct span span = {0};
    if (!parse_span(p, PREC_ADD, context, &span) || !finish_duration(p, at, span, ret))
        return false;
    if (!span.dynamic && llround(span.seconds * 1000) <= 0)
        return query_fail(p->error, QUERY_FAULT_PARSE, at, "duration must be greater than 0");
    return true;
}

/* --- postfix: [..], offset, @, anchored, smoothed -------------------------------------------- */

static struct query_shift *shift_of(struct query_node *node)
{
    if (node->kind == QUERY_NODE_SELECTOR)
        return &node->u.selector.shift;
    if (node->kind == QUERY_NODE_RANGE)
        return &node->u.range.selector->u.selector.shift;
    if (node->kind == QUERY_NODE_SUBQUERY)
        return &node->u.subquery.shift;
    return NULL;
}

static struct query_node *finish_range(struct parser *p, struct query_node *inner, size_t bracket,
                                       struct query_duration span)
{
    const char *why = NULL;
    if (inner->kind != QUERY_NODE_SELECTOR)
        why = "ranges only allowed for vector selectors";
    else if (inner->u.selector.shift.offset.given)
        why = "no offset modifiers allowed before range";
    else if (inner->u.selector.shift.at_kind != QUERY_AT_NONE)
        why = "no @ modifiers allowed before range";
    if (why) {
        (void)query_fail(p->error, QUERY_FAULT_PARSE, bracket, "%s", why);
        return NULL;
    }
    struct query_node *const node = new_node(p, QUERY_NODE_RANGE, inner->at);
    if (!node || !adopt(p, node, inner))
        return NULL;
    node->u.range = (struct query_range){.selector = inner, .span = span};
    return node;
}

/* expr [ ... ]: a range, or with a colon a subquery. */
static struct query_node *parse_bracket(struct parser *p, struct query_node *inner)
{
    const size_t bracket = take(p).at;
    struct query_duration span;
    if (!parse_bracket_duration(p, "subquery or range selector", &span))
        return NULL;
    if (accept(p, QUERY_TOKEN_RIGHT_BRACKET))
        return finish_range(p, inner, bracket, span);
    if (!expect(p, QUERY_TOKEN_COLON, "subquery or range", "\":\" or \"]\""))
        return NULL;
    struct query_duration step = {0};
    if (p->token.kind != QUERY_TOKEN_RIGHT_BRACKET &&
        !parse_bracket_duration(p, "subquery selector", &step))
        return NULL;
    if (!expect(p, QUERY_TOKEN_RIGHT_BRACKET, "subquery selector", "\"]\""))
        return NULL;
    struct query_node *const node = new_node(p, QUERY_NODE_SUBQUERY, inner->at);
    if (!node || !adopt(p, node, inner))
        return NULL;
    node->u.subquery = (struct query_subquery){.inner = inner, .span = span, .step = step};
    return node;
}

static bool parse_offset(struct parser *p, struct query_node *node)
{
    advance(p); /* offset */
    const size_t at = p->token.at;
    struct span span = {0};
    /* A sign binds to the duration; what comes behind is no part of it: offset -2 * 2. */
    const bool minus = p->token.kind == QUERY_TOKEN_SUB;
    if (minus || p->token.kind == QUERY_TOKEN_ADD)
        advance(p);
    if (!parse_span_primary(p, "offset", &span))
        return false;
    span.seconds = minus ? -span.seconds : span.seconds;
    struct query_shift *const shift = shift_of(node);
    if (!shift)
        return query_fail(p->error, QUERY_FAULT_PARSE, node->at,
                          "offset modifier must be preceded by an instant vector selector or "
                          "range vector selector or a subquery");
    if (shift->offset.given)
        return query_fail(p->error, QUERY_FAULT_PARSE, node->at,
                          "offset may not be set multiple times");
    return finish_duration(p, at, span, &shift->offset);
}

static bool parse_at_value(struct parser *p, enum query_at_kind *ret_kind, double *ret_seconds)
{
    if (p->token.kind == QUERY_TOKEN_START || p->token.kind == QUERY_TOKEN_END) {
        *ret_kind = take(p).kind == QUERY_TOKEN_START ? QUERY_AT_START : QUERY_AT_END;
        return expect(p, QUERY_TOKEN_LEFT_PAREN, "@", "timestamp") &&
               expect(p, QUERY_TOKEN_RIGHT_PAREN, "@", "timestamp");
    }
    const bool minus = p->token.kind == QUERY_TOKEN_SUB;
    if (minus || p->token.kind == QUERY_TOKEN_ADD)
        advance(p);
    if (p->token.kind != QUERY_TOKEN_NUMBER && p->token.kind != QUERY_TOKEN_DURATION)
        return unexpected(p, "@", "timestamp");
    struct span span = {0};
    const size_t at = p->token.at;
    if (!parse_span_number(p, &span))
        return false;
    if (!(fabs(span.seconds) <= SPAN_MAX_SECONDS))
        return query_fail(p->error, QUERY_FAULT_PARSE, at,
                          "timestamp out of bounds for @ modifier: %f", span.seconds);
    *ret_kind = QUERY_AT_TIME;
    *ret_seconds = minus ? -span.seconds : span.seconds;
    return true;
}

static bool parse_at(struct parser *p, struct query_node *node)
{
    const size_t at = take(p).at;
    enum query_at_kind kind = QUERY_AT_NONE;
    double seconds = 0;
    if (!parse_at_value(p, &kind, &seconds))
        return false;
    struct query_shift *const shift = shift_of(node);
    if (!shift)
        return query_fail(p->error, QUERY_FAULT_PARSE, node->at,
                          "@ modifier must be preceded by an instant vector selector or range "
                          "vector selector or a subquery");
    if (shift->at_kind != QUERY_AT_NONE)
        return query_fail(p->error, QUERY_FAULT_PARSE, node->at,
                          "@ <timestamp> may not be set multiple times");
    shift->at_kind = kind;
    shift->at_seconds = seconds;
    shift->at_at = at;
    return true;
}

static bool parse_extend(struct parser *p, struct query_node *node)
{
    const struct query_token t = take(p);
    const bool anchored = t.kind == QUERY_TOKEN_ANCHORED;
    struct query_node *const target =
        node->kind == QUERY_NODE_RANGE ? node->u.range.selector : node;
    if (target->kind != QUERY_NODE_SELECTOR)
        return query_fail(p->error, QUERY_FAULT_PARSE, node->at,
                          "%s modifier must be preceded by an instant vector selector or range "
                          "vector selector",
                          anchored ? "anchored" : "smoothed");
    if (target->u.selector.extend != QUERY_EXTEND_NONE)
        return query_fail(p->error, QUERY_FAULT_PARSE, node->at,
                          "anchored and smoothed may not be set multiple times");
    target->u.selector.extend = anchored ? QUERY_EXTEND_ANCHORED : QUERY_EXTEND_SMOOTHED;
    target->u.selector.extend_at = t.at;
    return true;
}

static struct query_node *parse_postfix(struct parser *p, struct query_node *node)
{
    while (node) {
        bool ok;
        switch ((int)p->token.kind) {
        case QUERY_TOKEN_LEFT_BRACKET:
            node = parse_bracket(p, node);
            continue;
        case QUERY_TOKEN_OFFSET:
            ok = parse_offset(p, node);
            break;
        case QUERY_TOKEN_AT:
            ok = parse_at(p, node);
            break;
        case QUERY_TOKEN_ANCHORED:
        case QUERY_TOKEN_SMOOTHED:
            ok = parse_extend(p, node);
            break;
        default:
            return node;
        }
        if (!ok)
            return NULL;
    }
    return NULL;
}

/* --- calls and aggregations ------------------------------------------------------------------ */

/* "(" args ")"; the list and its length. */
static bool parse_args(struct parser *p, struct query_node *parent, struct query_node **ret_args,
                       size_t *ret_count)
{
    *ret_args = NULL;
    *ret_count = 0;
    struct query_node **tail = ret_args;
    advance(p); /* ( */
    if (accept(p, QUERY_TOKEN_RIGHT_PAREN))
        return true;
    for (;;) {
        struct query_node *const arg = parse_binary(p, PREC_OR);
        if (!arg || !adopt(p, parent, arg))
            return false;
        *tail = arg;
        tail = &arg->next;
        ++*ret_count;
        if (accept(p, QUERY_TOKEN_RIGHT_PAREN))
            return true;
        const size_t comma = p->token.at;
        if (!expect(p, QUERY_TOKEN_COMMA, "", ""))
            return false;
        if (p->token.kind == QUERY_TOKEN_RIGHT_PAREN)
            return query_fail(p->error, QUERY_FAULT_PARSE, comma,
                              "trailing commas not allowed in function call args");
    }
}

static struct query_node *parse_call(struct parser *p, struct query_token name)
{
    const struct weir_bytes word = token_bytes(p, name);
    struct query_node *const node = new_node(p, QUERY_NODE_CALL, name.at);
    if (!node)
        return NULL;
    struct query_call *const call = &node->u.call;
    if (!parse_args(p, node, &call->args, &call->arg_count))
        return NULL;
    /* step(), range(), start() and end() are words of the grammar, hence in any case. */
    if (query_token_class(name.kind) == QUERY_CLASS_PREPROCESSOR) {
        const char *const text = query_token_text(name.kind);
        call->function = query_function_find(text, strlen(text));
    } else {
        call->function = query_function_find(word.ptr, word.len);
    }
    if (!call->function) {
        (void)query_fail(p->error, QUERY_FAULT_PARSE, name.at, "unknown function with name %s",
                         QUERY_QUOTE(word.ptr, word.len));
        return NULL;
    }
    return node;
}

static bool takes_param(enum query_token_kind op)
{
    switch ((int)op) {
    case QUERY_TOKEN_BOTTOMK:
    case QUERY_TOKEN_COUNT_VALUES:
    case QUERY_TOKEN_LIMITK:
    case QUERY_TOKEN_LIMIT_RATIO:
    case QUERY_TOKEN_QUANTILE:
    case QUERY_TOKEN_TOPK:
        return true;
    default:
        return false;
    }
}

static bool parse_grouping(struct parser *p, struct query_aggregate *aggregate)
{
    if (p->token.kind != QUERY_TOKEN_BY && p->token.kind != QUERY_TOKEN_WITHOUT)
        return true;
    aggregate->grouping = take(p).kind == QUERY_TOKEN_BY ? QUERY_GROUP_BY : QUERY_GROUP_WITHOUT;
    return parse_label_names(p, &aggregate->names);
}

static struct query_node *parse_aggregate(struct parser *p, struct query_token op)
{
    struct query_node *const node = new_node(p, QUERY_NODE_AGGREGATE, op.at);
    if (!node)
        return NULL;
    struct query_aggregate *const aggregate = &node->u.aggregate;
    aggregate->op = op.kind;
    if (!parse_grouping(p, aggregate))
        return NULL;
    if (p->token.kind != QUERY_TOKEN_LEFT_PAREN) {
        (void)unexpected(p, "aggregation", "");
        return NULL;
    }
    struct query_node *args;
    size_t count;
    if (!parse_args(p, node, &args, &count))
        return NULL;
    if (aggregate->grouping == QUERY_GROUP_NONE && !parse_grouping(p, aggregate))
        return NULL;
    const size_t want = takes_param(op.kind) ? 2 : 1;
    if (count == 0)
        (void)query_fail(p->error, QUERY_FAULT_PARSE, op.at,
                         "no arguments for aggregate expression provided");
    else if (count != want)
        (void)query_fail(p->error, QUERY_FAULT_PARSE, op.at,
                         "wrong number of arguments for aggregate expression provided, "
                         "expected %zu, got %zu",
                         want, count);
    if (failed(p))
        return NULL;
    aggregate->param = want == 2 ? args : NULL;
    aggregate->inner = want == 2 ? args->next : args;
    if (want == 2)
        args->next = NULL;
    return node;
}

/* A word at the place of an operand: aggregation, call or metric. */
static struct query_node *parse_word(struct parser *p)
{
    const struct query_token t = take(p);
    const enum query_token_kind next = p->token.kind;
    const enum query_token_class class = query_token_class(t.kind);
    if (class == QUERY_CLASS_AGGREGATOR &&
        (next == QUERY_TOKEN_LEFT_PAREN || next == QUERY_TOKEN_BY || next == QUERY_TOKEN_WITHOUT))
        return parse_aggregate(p, t);
    if (next == QUERY_TOKEN_LEFT_PAREN &&
        (t.kind == QUERY_TOKEN_IDENTIFIER || class == QUERY_CLASS_PREPROCESSOR))
        return parse_call(p, t);
    return parse_selector(p, t.at, token_bytes(p, t));
}

/* --- operands and operators ------------------------------------------------------------------ */

static struct query_node *parse_number(struct parser *p)
{
    struct query_node *const node = new_node(p, QUERY_NODE_NUMBER, p->token.at);
    struct span span = {0};
    if (!node || !parse_span_number(p, &span))
        return NULL;
    node->u.number = span.seconds;
    return node;
}

static struct query_node *parse_string(struct parser *p)
{
    struct query_node *const node = new_node(p, QUERY_NODE_STRING, p->token.at);
    if (!node)
        return NULL;
    node->u.string = read_string(p);
    return failed(p) ? NULL : node;
}

static struct query_node *parse_paren(struct parser *p)
{
    struct query_node *const node = new_node(p, QUERY_NODE_PAREN, p->token.at);
    if (!node)
        return NULL;
    advance(p); /* ( */
    node->u.paren = parse_binary(p, PREC_OR);
    if (!node->u.paren || !adopt(p, node, node->u.paren))
        return NULL;
    return expect(p, QUERY_TOKEN_RIGHT_PAREN, "", "") ? node : NULL;
}

static struct query_node *parse_primary(struct parser *p)
{
    switch ((int)p->token.kind) {
    case QUERY_TOKEN_NUMBER:
    case QUERY_TOKEN_DURATION:
        return parse_number(p);
    case QUERY_TOKEN_STRING:
        return parse_string(p);
    case QUERY_TOKEN_LEFT_PAREN:
        return parse_paren(p);
    case QUERY_TOKEN_LEFT_BRACE:
        return parse_selector(p, p->token.at, (struct weir_bytes){0});
    default:
        break;
    }
    if (is_metric_word(p->token.kind))
        return parse_word(p);
    (void)unexpected(p, "", "");
    return NULL;
}

static struct query_node *parse_unary(struct parser *p)
{
    if (p->token.kind != QUERY_TOKEN_ADD && p->token.kind != QUERY_TOKEN_SUB)
        return parse_postfix(p, parse_primary(p));
    const struct query_token sign = take(p);
    /* -1 ^ 2 is -(1 ^ 2), -1 * 2 is (-1) * 2. */
    struct query_node *const inner = parse_binary(p, PREC_POW);
    if (!inner)
        return NULL;
    if (inner->kind == QUERY_NODE_NUMBER) {
        inner->u.number = sign.kind == QUERY_TOKEN_SUB ? -inner->u.number : inner->u.number;
        inner->at = sign.at;
        return inner;
    }
    struct query_node *const node = new_node(p, QUERY_NODE_UNARY, sign.at);
    if (!node || !adopt(p, node, inner))
        return NULL;
    node->u.unary = (struct query_unary){.minus = sign.kind == QUERY_TOKEN_SUB, .inner = inner};
    return node;
}

static int precedence_of(enum query_token_kind kind)
{
    switch ((int)kind) {
    case QUERY_TOKEN_LOR:
        return PREC_OR;
    case QUERY_TOKEN_LAND:
    case QUERY_TOKEN_LUNLESS:
        return PREC_AND;
    case QUERY_TOKEN_EQLC:
    case QUERY_TOKEN_NEQ:
    case QUERY_TOKEN_LTE:
    case QUERY_TOKEN_LSS:
    case QUERY_TOKEN_GTE:
    case QUERY_TOKEN_GTR:
    case QUERY_TOKEN_TRIM_UPPER:
    case QUERY_TOKEN_TRIM_LOWER:
        return PREC_COMPARE;
    case QUERY_TOKEN_ATAN2:
        return PREC_MUL;
    default:
        return span_precedence(kind);
    }
}

/* group_left and group_right, behind on(...) or ignoring(...). */
static bool parse_group_side(struct parser *p, struct query_binary *binary)
{
    if (p->token.kind != QUERY_TOKEN_GROUP_LEFT && p->token.kind != QUERY_TOKEN_GROUP_RIGHT)
        return true;
    binary->card =
        take(p).kind == QUERY_TOKEN_GROUP_LEFT ? QUERY_CARD_MANY_LEFT : QUERY_CARD_MANY_RIGHT;
    return p->token.kind != QUERY_TOKEN_LEFT_PAREN || parse_label_names(p, &binary->include);
}

/* ( number ) behind fill, fill_left or fill_right. */
static bool parse_fill_value(struct parser *p, double *ret_value)
{
    advance(p); /* ( */
    const bool minus = p->token.kind == QUERY_TOKEN_SUB;
    if (minus || p->token.kind == QUERY_TOKEN_ADD)
        advance(p);
    struct span span = {0};
    if (p->token.kind != QUERY_TOKEN_NUMBER && p->token.kind != QUERY_TOKEN_DURATION)
        return unexpected(p, "fill modifier", "number");
    if (!parse_span_number(p, &span))
        return false;
    *ret_value = minus ? -span.seconds : span.seconds;
    return expect(p, QUERY_TOKEN_RIGHT_PAREN, "fill modifier", "\")\"");
}

/*
 * Zero or more fills. "fill" may be a metric too: it is the modifier when "(" follows, which needs
 * one token more of sight; the word is handed back in *ret_word when it is not.
 */
static bool parse_fills(struct parser *p, struct query_binary *binary, struct query_token *ret_word)
{
    ret_word->kind = QUERY_TOKEN_EOF;
    for (;;) {
        const enum query_token_kind kind = p->token.kind;
        if (kind != QUERY_TOKEN_FILL && kind != QUERY_TOKEN_FILL_LEFT &&
            kind != QUERY_TOKEN_FILL_RIGHT)
            return true;
        const struct query_token word = take(p);
        if (p->token.kind != QUERY_TOKEN_LEFT_PAREN) {
            *ret_word = word;
            return true;
        }
        double value = 0;
        if (!parse_fill_value(p, &value))
            return false;
        for (int side = 0; side < 2; side++) {
            if (kind == QUERY_TOKEN_FILL ||
                kind == (side ? QUERY_TOKEN_FILL_RIGHT : QUERY_TOKEN_FILL_LEFT)) {
                binary->fills[side] = true;
                binary->fill[side] = value;
            }
        }
    }
}

static bool parse_matching(struct parser *p, struct query_binary *binary)
{
    binary->returns_bool = accept(p, QUERY_TOKEN_BOOL);
    if (p->token.kind != QUERY_TOKEN_ON && p->token.kind != QUERY_TOKEN_IGNORING)
        return true;
    binary->matching = true;
    binary->on = take(p).kind == QUERY_TOKEN_ON;
    return parse_label_names(p, &binary->match_names) && parse_group_side(p, binary);
}

/* The right side begins with a metric whose name was taken by parse_fills. */
static struct query_node *parse_right_of_word(struct parser *p, struct query_token word, int min);

static struct query_node *parse_operator(struct parser *p, struct query_node *left, int precedence)
{
    struct query_node *const node = new_node(p, QUERY_NODE_BINARY, left->at);
    if (!node)
        return NULL;
    struct query_binary *const binary = &node->u.binary;
    const struct query_token op = take(p);
    binary->op = op.kind;
    binary->op_at = op.at;
    binary->left = left;
    struct query_token word;
    if (!parse_matching(p, binary) || !parse_fills(p, binary, &word))
        return NULL;
    const int min = op.kind == QUERY_TOKEN_POW ? PREC_POW : precedence + 1;
    binary->right =
        word.kind == QUERY_TOKEN_EOF ? parse_binary(p, min) : parse_right_of_word(p, word, min);
    if (!binary->right || !adopt(p, node, left) || !adopt(p, node, binary->right))
        return NULL;
    return node;
}

static struct query_node *parse_operators(struct parser *p, struct query_node *left, int min)
{
    while (left) {
        const int precedence = precedence_of(p->token.kind);
        if (precedence == 0 || precedence < min)
            break;
        left = parse_operator(p, left, precedence);
    }
    return left;
}

static struct query_node *parse_right_of_word(struct parser *p, struct query_token word, int min)
{
    if (!enter(p))
        return NULL;
    struct query_node *const metric = parse_selector(p, word.at, token_bytes(p, word));
    struct query_node *const node = parse_operators(p, parse_postfix(p, metric), min);
    p->depth--;
    return node;
}

static struct query_node *parse_binary(struct parser *p, int min)
{
    if (!enter(p))
        return NULL;
    struct query_node *const node = parse_operators(p, parse_unary(p), min);
    p->depth--;
    return node;
}

struct query_node *query_parse(struct query_arena *arena, struct weir_bytes text,
                               struct query_error *error)
{
    if (text.len > QUERY_TEXT_MAX_BYTES) {
        (void)query_fail(error, QUERY_FAULT_PARSE, QUERY_NOWHERE,
                         "the query is longer than %zu bytes", QUERY_TEXT_MAX_BYTES);
        return NULL;
    }
    struct parser p = {.arena = arena, .text = text, .error = error};
    query_lexer_init(&p.lexer, text);
    advance(&p);
    if (p.token.kind == QUERY_TOKEN_EOF) {
        (void)query_fail(error, QUERY_FAULT_PARSE, 0, "no expression found in input");
        return NULL;
    }
    struct query_node *const root = parse_binary(&p, PREC_OR);
    if (!root || failed(&p))
        return NULL;
    if (p.token.kind != QUERY_TOKEN_EOF) {
        (void)unexpected(&p, "", "");
        return NULL;
    }
    return root;
}
