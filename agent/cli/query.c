/* SPDX-License-Identifier: Apache-2.0 */
/*
 * query: asks an agent's /api/v1/query, one request after the other over one connection, all at
 * the same time of evaluation, and prints: once, or frame after frame (--watch), where an agent
 * that is away is said to be and asked again.
 *
 * Threads: one. Memory: heap; an answer is at most ANSWER_MAX_BYTES.
 */
#include "cli/query.h"

#include "cli/query_opts.h"
#include "cli/query_rows.h"
#include "cli/query_screen.h"
#include "cli/send_transport.h"
#include "cli/show.h"
#include "plat/plat.h"
#include "query/api.h"
#include "query/form.h"

#include <stdlib.h>
#include <string.h>

#define DEFAULT_URL "http://127.0.0.1:9099"
#define OUT_MAX_BYTES ((size_t)256 * 1024 * 1024)
#define TIMEOUT_NS ((int64_t)30 * 1000 * 1000 * 1000)
#define WATCH_TIMEOUT_NS ((int64_t)5 * 1000 * 1000 * 1000) /* or an interval, if that is longer */

struct session {
    const struct query_opts *opts;
    const char *url;
    struct send_transport *transport;
    int64_t time_ms;
    struct query_buf form;
    char error[700]; /* what was complained of last, a line without its end */
    bool is_wrong;   /* the agent says that the question itself is */
};

static bool complain(struct session *s, const char *what)
{
    (void)snprintf(s->error, sizeof s->error, "%.200s: %.400s", s->url, what);
    return false;
}

static void put_form(struct session *s, const char *expr, size_t len)
{
    query_buf_clear(&s->form);
    query_buf_put_text(&s->form, "include_open=1&time=");
    query_buf_put_time(&s->form, s->time_ms);
    query_buf_put_text(&s->form, "&query=");
    query_form_put(&s->form, (struct weir_bytes){.ptr = expr, .len = len});
}

/* What the agent says is wrong, where its answer is in the API's form. */
static bool complain_answer(struct session *s, const struct send_answer *answer)
{
    struct cli_json *json = NULL;
    bool said = false;
    if (answer->body.len &&
        cli_json_parse(answer->body.ptr, answer->body.len, &json, NULL) == WEIR_OK) {
        const struct weir_bytes text = cli_json_text(cli_json_get(cli_json_root(json), "error"));
        if (text.ptr) {
            /* It quotes what was asked for; nothing of it may steer the terminal. */
            char shown[400];
            const size_t len = text.len < sizeof shown ? text.len : sizeof shown - 1;
            for (size_t i = 0; i < len; i++)
                shown[i] =
                    (unsigned char)text.ptr[i] < 0x20 || text.ptr[i] == 0x7F ? '?' : text.ptr[i];
            shown[len] = '\0';
            (void)complain(s, shown);
            said = true;
        }
    }
    cli_json_free(json);
    /* What the transport says names the address itself. */
    if (!said)
        (void)snprintf(s->error, sizeof s->error, "%s",
                       *answer->error ? answer->error : "no answer");
    return false;
}

/* The answer's bytes, borrowed until the next request; false when it was complained of. */
static bool ask(struct session *s, const char *expr, size_t len, struct weir_bytes *ret_body)
{
    put_form(s, expr, len);
    if (s->form.err)
        return complain(s, weir_strerror(s->form.err));
    const struct send_request request = {
        .method = "POST",
        .path = "/api/v1/query",
        .content_type = "application/x-www-form-urlencoded",
        .body = {.ptr = s->form.ptr, .len = s->form.len},
    };
    struct send_answer answer;
    cli_send_transport_do(s->transport, &request, &answer);
    *ret_body = answer.body;
    s->is_wrong = answer.outcome == SEND_REFUSED && answer.status == 400;
    return answer.outcome == SEND_TAKEN || complain_answer(s, &answer);
}

/* The "data" of an answer; *ret_json is freed by the caller in any case. */
static const struct cli_json_value *read_data(struct session *s, struct weir_bytes body,
                                              struct cli_json **ret_json)
{
    struct weir_where where = {.reason = "not JSON"};
    *ret_json = NULL;
    if (cli_json_parse(body.ptr, body.len, ret_json, &where) != WEIR_OK) {
        (void)complain(s, where.reason);
        return NULL;
    }
    const struct cli_json_value *const data = cli_json_get(cli_json_root(*ret_json), "data");
    if (!data)
        (void)complain(s, "the answer has no data");
    return data;
}

static bool fill_column(struct session *s, enum query_column column, struct query_rows *rows)
{
    struct query_buf expr;
    query_buf_init(&expr, (size_t)1024 * 1024);
    cli_query_question(column, s->opts, &expr);
    struct weir_bytes body;
    bool ok = expr.err ? complain(s, weir_strerror(expr.err)) : ask(s, expr.ptr, expr.len, &body);
    query_buf_done(&expr);
    if (!ok)
        return false;
    struct cli_json *json;
    const struct cli_json_value *const data = read_data(s, body, &json);
    const int r = data ? cli_query_rows_add(rows, column, data) : WEIR_EFORMAT;
    if (data && r)
        (void)complain(s, weir_strerror(r));
    cli_json_free(json);
    return r == WEIR_OK;
}

/* Ask all that the table needs; *ret_rows is the caller's to free, where there is an answer. */
static bool ask_table(struct session *s, struct query_rows **ret_rows)
{
    struct query_rows *rows = NULL;
    bool ok = cli_query_rows_new(&rows) == WEIR_OK || complain(s, "no memory");
    for (int c = 0; ok && c < QUERY_COLUMN_COUNT; c++)
        ok = fill_column(s, (enum query_column)c, rows);
    if (ok)
        *ret_rows = rows;
    else
        cli_query_rows_free(rows);
    return ok;
}

static bool answer_expr(struct session *s, struct query_buf *out)
{
    struct weir_bytes body;
    if (!ask(s, s->opts->expr, strlen(s->opts->expr), &body))
        return false;
    if (s->opts->json) {
        query_buf_put(out, body.ptr, body.len);
        query_buf_put_char(out, '\n');
        return true;
    }
    struct cli_json *json;
    const struct cli_json_value *const data = read_data(s, body, &json);
    bool ok = data != NULL;
    if (ok && cli_query_print_data(data, out) != WEIR_OK)
        ok = complain(s, "the answer is not in the API's form");
    cli_json_free(json);
    return ok;
}

static bool answer_table(struct session *s, struct query_buf *out)
{
    struct query_rows *rows = NULL;
    const bool ok = ask_table(s, &rows);
    if (ok)
        cli_query_rows_print(rows, s->opts, out);
    cli_query_rows_free(rows);
    return ok;
}

static int run(struct session *s)
{
    struct query_buf out;
    query_buf_init(&out, OUT_MAX_BYTES);
    s->time_ms = plat_wall_ns() / 1000000;
    bool ok = s->opts->expr ? answer_expr(s, &out) : answer_table(s, &out);
    if (ok && out.err)
        ok = complain(s, weir_strerror(out.err));
    if (ok && out.len && (fwrite(out.ptr, 1, out.len, stdout) != out.len || fflush(stdout) != 0))
        ok = complain(s, "standard output cannot be written");
    query_buf_done(&out);
    return ok ? 0 : 1;
}

/* --- again and again ------------------------------------------------------------------------- */

struct watch {
    struct query_screen screen;
    struct query_rows *rows; /* the last answer: of the table, or */
    struct query_buf text;   /* of an expression */
    bool is_answered;        /* there was one */
    bool is_away;            /* but not this time */
    struct query_buf frame;
};

/* The last answer stands until there is another. */
static void refresh(struct session *s, struct watch *w)
{
    struct query_rows *rows = NULL;
    struct query_buf text;
    s->time_ms = plat_wall_ns() / 1000000;
    query_buf_init(&text, OUT_MAX_BYTES);
    bool ok = s->opts->expr ? answer_expr(s, &text) : ask_table(s, &rows);
    if (ok && text.err)
        ok = complain(s, weir_strerror(text.err));
    w->is_away = !ok;
    if (!ok) {
        query_buf_done(&text);
        return;
    }
    cli_query_rows_free(w->rows);
    query_buf_done(&w->text);
    w->rows = rows;
    w->text = text;
    w->is_answered = true;
}

static void put_head(const struct session *s, const struct watch *w, struct query_buf *out)
{
    char every[32];
    cli_show_seconds((double)s->opts->watch_ns / 1e9, every);
    cli_show_time(out, s->time_ms / 1000 * 1000000000);
    query_buf_put_format(out, "  every %s  ", every);
    (void)cli_show_plain(out, s->url, strlen(s->url));
    if (!s->opts->expr)
        query_buf_put_format(out, "  last %s", s->opts->last);
    query_buf_put_char(out, '\n');
    if (w->is_away) { /* what matters first: the line may be cut */
        query_buf_put_format(
            out, "no answer, asking again%s: ", w->is_answered ? "; below is the last one" : "");
        (void)cli_show_plain(out, s->error, strlen(s->error));
        query_buf_put_char(out, '\n');
    }
}

static size_t count_lines(const struct query_buf *text)
{
    size_t lines = 0;
    for (size_t i = 0; i < text->len; i++)
        lines += text->ptr[i] == '\n' ? 1 : 0;
    return lines;
}

/* All of body, or as many lines as fit and how many do not. */
static void put_fitting(struct query_buf *out, const struct query_buf *body, size_t rows)
{
    const size_t used = count_lines(out);
    const size_t lines = count_lines(body);
    if (rows == 0 || used + lines <= rows || used + 1 >= rows) {
        query_buf_put(out, body->ptr, body->len);
        return;
    }
    const size_t shown = rows - used - 1;
    size_t at = 0;
    for (size_t i = 0; i < shown; at++)
        i += body->ptr[at] == '\n' ? 1 : 0;
    query_buf_put(out, body->ptr, at);
    query_buf_put_format(out, "and %zu more\n", lines - shown);
}

static bool put_frame(const struct session *s, struct watch *w)
{
    struct query_opts opts = *s->opts;
    struct query_buf table;
    query_buf_clear(&w->frame);
    cli_query_screen_measure(&w->screen);
    if (opts.json) { /* nothing but answers: somebody reads them */
        if (w->is_away)
            (void)fprintf(stderr, "weir query: %s; asking again\n", s->error);
    } else {
        put_head(s, w, &w->frame);
    }
    opts.columns = w->screen.columns;
    query_buf_init(&table, OUT_MAX_BYTES);
    if (w->rows)
        cli_query_rows_print(w->rows, &opts, &table);
    /* Frames that follow each other do not say the same twice. */
    if (w->is_answered && (w->screen.is_terminal || !w->is_away))
        put_fitting(&w->frame, w->rows ? &table : &w->text, w->screen.rows);
    query_buf_done(&table);
    if (w->frame.err)
        return false;
    return w->frame.len == 0 || cli_query_screen_put(&w->screen, w->frame.ptr, w->frame.len);
}

/* Ends by a signal, when nothing can be put any more, or at a question that is wrong: it stays so.
 */
static int watch(struct session *s)
{
    struct watch w = {.is_answered = false};
    query_buf_init(&w.text, OUT_MAX_BYTES);
    query_buf_init(&w.frame, OUT_MAX_BYTES);
    cli_query_screen_open(&w.screen, s->opts->json);
    bool ok = true;
    while (ok) {
        const int64_t until = plat_mono_ns() + s->opts->watch_ns;
        refresh(s, &w);
        if (w.is_away && s->is_wrong)
            break;
        do
            ok = put_frame(s, &w);
        while (ok && cli_query_screen_wait(until) == QUERY_WAKE_SIZE);
    }
    if (!ok)
        (void)complain(s, "standard output cannot be written");
    cli_query_screen_close(&w.screen);
    cli_query_rows_free(w.rows);
    query_buf_done(&w.text);
    query_buf_done(&w.frame);
    return 1;
}

static const char *agent_url(const struct query_opts *opts)
{
    if (opts->url)
        return opts->url;
    const char *const env = getenv("WEIR_URL"); /* NOLINT(concurrency-mt-unsafe) */
    return env && *env ? env : DEFAULT_URL;
}

int cli_query(int argc, char **argv)
{
    struct query_opts opts;
    if (!cli_query_opts_parse(argc, argv, &opts, stderr)) {
        (void)fputs("weir query --help says more.\n", stderr);
        return 2;
    }
    if (opts.help) {
        cli_query_opts_help(stdout);
        return 0;
    }
    const char *const url = agent_url(&opts);
    struct session s = {.opts = &opts, .url = url};
    query_buf_init(&s.form, (size_t)4 * 1024 * 1024);
    struct send_transport_opts to = {
        .base_url = url, .max_answer = QUERY_ANSWER_MAX_BYTES, .timeout_ns = TIMEOUT_NS};
    if (opts.watch_ns)
        to.timeout_ns = opts.watch_ns > WATCH_TIMEOUT_NS ? opts.watch_ns : WATCH_TIMEOUT_NS;
    int r = 1;
    if (cli_send_transport_global() || cli_send_transport_new(&to, &s.transport))
        (void)complain(&s, "no memory");
    else
        r = opts.watch_ns ? watch(&s) : run(&s);
    if (r != 0)
        (void)fprintf(stderr, "weir query: %s\n", s.error);
    cli_send_transport_free(s.transport);
    query_buf_done(&s.form);
    return r;
}
