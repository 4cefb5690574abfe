/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_promql: the lexer, the parser, the checker and the evaluator on a small source, and the form
 * parameters around them. The same text gives the same tree and the same answer; a text that is
 * accepted is accepted in parentheses, with the same type; every answer of the API is JSON.
 *
 * Input: 1 byte what the rest is: an expression, or a form's parameters.
 */
#include "fuzz.h"

#include "cli/json.h"
#include "query/api.h"
#include "query/ast.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ARENA_BYTES = 16 * 1024 * 1024 };

/* Lexer. */

static uint64_t lex(struct weir_bytes text)
{
    struct query_lexer *const lexer = fz_alloc(sizeof *lexer);
    query_lexer_init(lexer, text);
    uint64_t digest = FZ_DIGEST_EMPTY;
    size_t at = 0;
    for (;;) {
        const struct query_token t = query_lexer_next(lexer);
        digest = fz_digest_u64(fz_digest_u64(digest, (uint64_t)t.kind), t.at << 20 | t.len);
        struct query_quoted quoted;
        if (t.kind != QUERY_TOKEN_ERROR)
            FZ_CHECK(query_token_describe(text, t, &quoted) != NULL);
        if (t.kind == QUERY_TOKEN_EOF || t.kind == QUERY_TOKEN_ERROR) {
            const struct query_token again = query_lexer_next(lexer);
            FZ_CHECK(again.kind == t.kind);
            FZ_CHECK(t.kind != QUERY_TOKEN_ERROR || strlen(lexer->error) > 0);
            break;
        }
        FZ_CHECK(t.at >= at && t.len > 0 && t.at <= text.len && t.len <= text.len - t.at);
        at = t.at + t.len;
    }
    free(lexer);
    return digest;
}

/* Trees. */

struct walk {
    size_t text_bytes;
    uint64_t digest;
    size_t nodes;
    uint32_t depth;
    bool selects;
};

static void see_node(struct walk *w, const struct query_node *n);

static void see_matchers(struct walk *w, const struct query_selector *s)
{
    w->selects = true;
    for (const struct query_matcher *m = s->matchers; m; m = m->next) {
        w->digest = fz_digest(w->digest, m->name.ptr, m->name.len);
        w->digest = fz_digest(w->digest, m->value.ptr, m->value.len);
        w->digest = fz_digest_u64(w->digest, (uint64_t)m->kind);
        FZ_CHECK((m->regex != NULL) == (m->kind == QUERY_MATCH_RE || m->kind == QUERY_MATCH_NRE));
    }
}

static void see_children(struct walk *w, const struct query_node *n)
{
    switch (n->kind) {
    case QUERY_NODE_NUMBER:
    case QUERY_NODE_STRING:
        break;
    case QUERY_NODE_SELECTOR:
        see_matchers(w, &n->u.selector);
        break;
    case QUERY_NODE_RANGE:
        see_node(w, n->u.range.selector);
        break;
    case QUERY_NODE_SUBQUERY:
        see_node(w, n->u.subquery.inner);
        break;
    case QUERY_NODE_CALL:
        for (const struct query_node *a = n->u.call.args; a; a = a->next)
            see_node(w, a);
        break;
    case QUERY_NODE_AGGREGATE:
        if (n->u.aggregate.param)
            see_node(w, n->u.aggregate.param);
        see_node(w, n->u.aggregate.inner);
        break;
    case QUERY_NODE_BINARY:
        see_node(w, n->u.binary.left);
        see_node(w, n->u.binary.right);
        break;
    case QUERY_NODE_UNARY:
        see_node(w, n->u.unary.inner);
        break;
    case QUERY_NODE_PAREN:
        see_node(w, n->u.paren);
        break;
    }
}

static void see_node(struct walk *w, const struct query_node *n)
{
    w->nodes++;
    FZ_CHECK(n->depth <= QUERY_DEPTH_MAX && w->nodes <= QUERY_NODES_MAX);
    FZ_CHECK(n->at < w->text_bytes && n->type != QUERY_TYPE_NONE);
    w->digest = fz_digest_u64(w->digest, (uint64_t)n->kind << 32 | (uint64_t)n->type);
    w->digest = fz_digest_u64(w->digest, n->at);
    see_children(w, n);
}

struct parsed {
    bool ok;
    enum query_type type;
    uint32_t depth;
    size_t nodes;
    uint64_t digest; /* of the tree, or of the error's text */
};

static uint64_t see_error(const struct query_error *e, struct weir_bytes text)
{
    FZ_CHECK(e->fault != QUERY_FAULT_NONE && strlen(e->text) > 0);
    FZ_CHECK(e->at <= text.len || e->at == QUERY_NOWHERE);
    struct query_buf buf;
    query_buf_init(&buf, 8192);
    query_error_put(e, text, &buf);
    const uint64_t digest = fz_digest(FZ_DIGEST_EMPTY, buf.ptr, buf.len);
    query_buf_done(&buf);
    return digest;
}

static struct parsed parse(struct weir_bytes text)
{
    struct query_arena arena;
    query_arena_init(&arena, ARENA_BYTES);
    struct query_error error = {.fault = QUERY_FAULT_NONE};
    struct parsed p = {.ok = false};
    struct query_node *const root = query_parse(&arena, text, &error);
    if (root && query_check(root, &error)) {
        struct walk w = {.text_bytes = text.len, .digest = FZ_DIGEST_EMPTY};
        see_node(&w, root);
        p = (struct parsed){true, root->type, root->depth, w.nodes, w.digest};
        FZ_CHECK(error.fault == QUERY_FAULT_NONE);
    } else {
        p.digest = see_error(&error, text);
    }
    FZ_CHECK(arena.used_bytes <= ARENA_BYTES);
    query_arena_done(&arena);
    return p;
}

/* On a line of its own, as a comment may end the text. */
static void expect_in_parens(struct weir_bytes text, const struct parsed *p)
{
    if (!p->ok || p->depth + 4 > QUERY_DEPTH_MAX || p->nodes + 4 > QUERY_NODES_MAX)
        return;
    char *const wrapped = fz_alloc(text.len + 3);
    wrapped[0] = '(';
    memcpy(wrapped + 1, text.ptr, text.len);
    memcpy(wrapped + 1 + text.len, "\n)", 2);
    const struct parsed q = parse((struct weir_bytes){wrapped, text.len + 3});
    FZ_CHECK(q.ok && q.type == p->type);
    free(wrapped);
}

static void parse_text(struct weir_bytes text)
{
    FZ_CHECK(lex(text) == lex(text));
    const struct parsed a = parse(text);
    const struct parsed b = parse(text);
    FZ_CHECK(a.ok == b.ok && a.digest == b.digest);
    expect_in_parens(text, &a);
}

/* The API over two series with one window each. */

static const struct weir_label labels[2][2] = {
    {{{"service_name", 12}, {"shop", 4}}, {{"span_name", 9}, {"GET /a", 6}}},
    {{{"service_name", 12}, {"bank", 4}}, {{"span_name", 9}, {"GET /b", 6}}},
};

struct source {
    struct weir_sketch *sketch;
};

static int scan(void *ctx, const struct query_select *select, const struct query_visitor *visitor)
{
    const struct source *const s = ctx;
    const int64_t end = INT64_C(1000) * 1000000000;
    for (uint64_t i = 0; i < 2; i++) {
        const struct query_series series = {.id = i, .labels = labels[i], .label_count = 2};
        if (!visitor->match(visitor->ctx, &series))
            continue;
        const struct query_window window = {.start_ns = end - INT64_C(10000000000),
                                            .end_ns = end,
                                            .row = {.hits = 7 * WEIR_WEIGHT_ONE,
                                                    .errors = i * 2 * WEIR_WEIGHT_ONE,
                                                    .ok = s->sketch,
                                                    .error = i ? s->sketch : NULL}};
        if (end <= select->after_ns || end > select->until_ns)
            continue;
        const int r = visitor->window(visitor->ctx, &series, &window);
        if (r)
            return r;
    }
    return 0;
}

static struct weir_sketch *some_sketch(void)
{
    const struct weir_sketch_opts o = {.struct_size = sizeof o, .grid = WEIR_GRID_NS};
    struct weir_sketch *sk = NULL;
    FZ_CHECK(weir_sketch_new(&o, &sk) == WEIR_OK);
    for (int64_t i = 1; i < 8; i++)
        FZ_CHECK(weir_sketch_add_ns(sk, i * 3000000, 0) == WEIR_OK);
    return sk;
}

static void ask(const struct query_source *source, struct weir_bytes form, struct query_buf *body)
{
    const struct query_api_request request = {
        .method = "POST",
        .path = {"/api/v1/query", 13},
        .body = form,
        .content_type = {"application/x-www-form-urlencoded", 33},
        .now_ns = INT64_C(1005) * 1000000000};
    (void)query_api_wants_open(&request);
    int status = 0;
    FZ_CHECK(query_api_handle(&request, source, body, &status) == WEIR_OK);
    FZ_CHECK(status == 200 || status == 400 || status == 422);
    struct cli_json *json = NULL;
    FZ_CHECK(cli_json_parse(body->ptr, body->len, &json, NULL) == WEIR_OK);
    const struct cli_json_value *const word = cli_json_get(cli_json_root(json), "status");
    FZ_CHECK(cli_json_text_is(word, status == 200 ? "success" : "error"));
    cli_json_free(json);
}

static void ask_form(struct weir_bytes form)
{
    struct source world = {some_sketch()};
    const struct query_source source = {.ctx = &world, .scan = scan};
    struct query_buf a;
    struct query_buf b;
    ask(&source, form, &a);
    ask(&source, form, &b);
    FZ_CHECK(fz_same(a.ptr, a.len, b.ptr, b.len));
    query_buf_done(&a);
    query_buf_done(&b);
    weir_sketch_free(world.sketch);
}

static void ask_text(struct weir_bytes text)
{
    static const char digits[] = "0123456789ABCDEF";
    char *const form = fz_alloc(6 + 3 * text.len);
    memcpy(form, "query=", 6);
    size_t n = 6;
    for (size_t i = 0; i < text.len; i++) {
        const unsigned char c = (unsigned char)text.ptr[i];
        form[n++] = '%';
        form[n++] = digits[c >> 4];
        form[n++] = digits[c & 15];
    }
    ask_form((struct weir_bytes){form, n});
    free(form);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fz_in in = fz_in(data, size);
    const uint8_t what = fz_u8(&in);
    uint8_t *const exact = fz_copy(in.at, in.left);
    const struct weir_bytes text = {(const char *)exact, in.left};
    if (what & 2) {
        ask_form(text);
    } else {
        parse_text(text);
        ask_text(text);
    }
    free(exact);
    return 0;
}
