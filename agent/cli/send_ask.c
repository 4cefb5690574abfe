/* SPDX-License-Identifier: Apache-2.0 */
/* send_ask: see send_ask.h. */
#include "cli/send_ask.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/send_transport.h"
#include "plat/plat.h"
#include "query/form.h"

#define FORM_BYTES_MAX 2048 /* three times a question, and what stands around it */
#define ROUND_PAUSE_NS 200000000
#define PAST_THE_RUN_S 60 /* the range reaches that much further back than the run */

static void set_error(struct send_check_result *r, const char *what, const char *why)
{
    (void)snprintf(r->error, sizeof r->error, "%.40s: %.200s", what, why);
}

static int ask(struct send_transport *t, const struct send_ask_opts *o, enum send_question q,
               struct send_answers *answers, struct send_check_result *result, bool *ret_ok)
{
    const int64_t now_ns = plat_wall_ns();
    char query[256];
    struct query_buf form;
    const uint64_t range_s = (uint64_t)((now_ns - o->begin_ns) / 1000000000) + PAST_THE_RUN_S;
    cli_send_question(q, o->env, range_s, query, sizeof query);
    query_buf_init(&form, FORM_BYTES_MAX);
    query_buf_put_text(&form, "query=");
    query_form_put(&form, (struct weir_bytes){.ptr = query, .len = strlen(query)});
    /* A second later than now, so that the window that is open now began before it. */
    query_buf_put_format(&form, "&include_open=1&time=%lld", (long long)(now_ns / 1000000000 + 1));
    if (form.err) {
        const int err = form.err;
        query_buf_done(&form);
        return err;
    }
    const struct send_request request = {
        .method = "POST",
        .path = "/api/v1/query",
        .content_type = "application/x-www-form-urlencoded",
        .body = {.ptr = form.ptr, .len = form.len},
    };
    struct send_answer answer;
    cli_send_transport_do(t, &request, &answer);
    query_buf_done(&form);
    if (answer.outcome != SEND_TAKEN) {
        set_error(result, "the query API", answer.error);
        return WEIR_OK;
    }
    const char *reason = "";
    const int err = cli_send_answers_add(answers, q, answer.body.ptr, answer.body.len, &reason);
    if (err == WEIR_EFORMAT)
        set_error(result, "the query API answered", reason);
    *ret_ok = err == WEIR_OK;
    return err == WEIR_ENOMEM ? err : WEIR_OK;
}

static int ask_reconcile(struct send_transport *t, struct send_check_result *result)
{
    const struct send_request request = {.method = "GET", .path = "/debug/reconcile"};
    struct send_answer answer;
    cli_send_transport_do(t, &request, &answer);
    if (answer.outcome != SEND_TAKEN || answer.status != 200) {
        set_error(result, "/debug/reconcile", answer.error);
        return WEIR_OK;
    }
    const int err = cli_send_reconcile(answer.body.ptr, answer.body.len, &result->balanced);
    if (err == WEIR_EFORMAT)
        set_error(result, "/debug/reconcile", "no \"balanced\" in the answer");
    else
        result->asked = err == WEIR_OK;
    return err == WEIR_ENOMEM ? err : WEIR_OK;
}

/* One round of all questions and the comparison. */
static int ask_all(struct send_transport *t, const struct send_ask_opts *o,
                   const struct send_workload *w, const struct send_ledger *ledger, FILE *list,
                   struct send_check_result *ret)
{
    *ret = (struct send_check_result){.asked = false};
    struct send_answers *answers = NULL;
    int err = cli_send_answers_new(w, ledger, &answers);
    bool ok = true;
    for (int q = 0; !err && ok && q < SEND_QUESTIONS; q++) {
        ok = false;
        err = ask(t, o, (enum send_question)q, answers, ret, &ok);
    }
    if (!err && ok) {
        ret->verdict = cli_send_compare(answers, list, o->max_listed);
        err = ask_reconcile(t, ret);
    }
    cli_send_answers_free(answers);
    return err;
}

static void pause_ns(int64_t ns)
{
    const struct timespec ts = {.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000};
    (void)nanosleep(&ts, NULL);
}

/* A round whose differences go to *ret_list, freed by the caller. */
static int round_of(struct send_transport *t, const struct send_ask_opts *o,
                    const struct send_workload *w, const struct send_ledger *ledger,
                    char **ret_list, struct send_check_result *ret)
{
    size_t size = 0;
    FILE *const list = open_memstream(ret_list, &size);
    if (!list)
        return WEIR_ENOMEM;
    const int err = ask_all(t, o, w, ledger, list, ret);
    return fclose(list) == 0 ? err : WEIR_ENOMEM;
}

int cli_send_check(const struct send_ask_opts *o, const struct send_workload *w,
                   struct send_ledger *ledger, FILE *list, struct send_check_result *ret_result)
{
    struct send_transport *t = NULL;
    const struct send_transport_opts to = {
        .base_url = o->query_url, .max_answer = SEND_ANSWER_MAX, .timeout_ns = o->timeout_ns};
    int err = cli_send_transport_new(&to, &t);
    if (err)
        return err;
    cli_send_ledger_sort(ledger);
    const int64_t deadline_ns = plat_mono_ns() + o->wait_ns;
    for (;;) {
        char *differences = NULL;
        err = round_of(t, o, w, ledger, &differences, ret_result);
        const bool last = err || cli_send_check_passed(ret_result) ||
                          plat_mono_ns() + ROUND_PAUSE_NS > deadline_ns;
        if (last && differences)
            (void)fputs(differences, list);
        free(differences);
        if (last)
            break;
        pause_ns(ROUND_PAUSE_NS);
    }
    cli_send_transport_free(t);
    return err;
}
