/* SPDX-License-Identifier: Apache-2.0 */
/*
 * send: see send.h. Puts the parts together: options, workload, encoder, transport, ledger; runs;
 * checks; reports.
 */
#include "cli/send.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/send_report.h"
#include "plat/plat.h"

#define DEFAULT_QUERY_URL "http://127.0.0.1:9099"
#define MAX_LISTED 20
#define TRACE_ANSWER_MAX ((size_t)1 << 20) /* rates of services, or a partial success */

static volatile sig_atomic_t stop_asked;

static void on_signal(int number)
{
    (void)number;
    stop_asked = 1;
}

/* The first signal ends the run and still reports; the second one ends the process. */
static void catch_signals(void)
{
    struct sigaction sa;
    memset(&sa, 0, sizeof sa);
    sa.sa_handler = on_signal;
    sa.sa_flags = (int)SA_RESETHAND;
    (void)sigemptyset(&sa.sa_mask);
    (void)sigaction(SIGINT, &sa, NULL);
    (void)sigaction(SIGTERM, &sa, NULL);
}

/* What is of one run and not of its options. */
struct session {
    struct send_opts opts;
    char env[32];        /* "send-" and an id */
    char runtime_id[40]; /* a UUID */
    struct send_run run;
};

/* The id is from the kernel, not from the seed: equal seeds are different runs. */
static void make_identity(struct session *s)
{
    unsigned char id[16];
    plat_random(id, sizeof id);
    (void)snprintf(s->env, sizeof s->env, "send-%02x%02x%02x%02x%02x", id[0], id[1], id[2], id[3],
                   id[4]);
    id[6] = (unsigned char)((id[6] & 0x0f) | 0x40); /* RFC 9562, version 4 */
    id[8] = (unsigned char)((id[8] & 0x3f) | 0x80);
    (void)snprintf(s->runtime_id, sizeof s->runtime_id,
                   "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", id[0],
                   id[1], id[2], id[3], id[4], id[5], id[6], id[7], id[8], id[9], id[10], id[11],
                   id[12], id[13], id[14], id[15]);
    if (!s->opts.seed_given)
        plat_random(&s->opts.seed, sizeof s->opts.seed);
}

static int make_parts(struct session *s)
{
    const struct send_opts *const o = &s->opts;
    struct send_run *const r = &s->run;
    const struct send_workload_opts wo = {
        .preset = o->preset,
        .services = o->services,
        .resources = o->resources,
        .spans_per_trace = o->spans_per_trace,
        .error_ratio = o->error_ratio,
        .latency = o->latency_given ? &o->latency : NULL,
        .seed = o->seed,
    };
    int err = cli_send_workload_new(&wo, &r->workload);
    if (err)
        return err;
    err = cli_send_ledger_new(cli_send_workload_endpoints(r->workload),
                              o->check ? o->check_max_samples : 0, &r->ledger);
    if (err)
        return err;
    const struct send_encoder_opts eo = {
        .protocol = o->protocol, .env = s->env, .runtime_id = s->runtime_id, .gzip = o->gzip};
    err = cli_send_encoder_new(&eo, r->workload, &r->encoder);
    if (err)
        return err;
    const struct send_transport_opts to = {
        .base_url = o->url,
        .unix_socket = o->unix_socket,
        .chunked = o->chunked,
        .max_answer = TRACE_ANSWER_MAX,
        .timeout_ns = o->timeout_ns,
    };
    err = cli_send_transport_new(&to, &r->transport);
    if (err)
        return err;
    r->spans = calloc(SEND_BATCH_SPANS_MAX, sizeof *r->spans);
    return r->spans ? WEIR_OK : WEIR_ENOMEM;
}

static void free_parts(struct send_run *r)
{
    free(r->spans);
    cli_send_transport_free(r->transport);
    cli_send_encoder_free(r->encoder);
    cli_send_ledger_free(r->ledger);
    cli_send_workload_free(r->workload);
}

static const char *query_url(const struct send_opts *o)
{
    if (o->query_url)
        return o->query_url;
    const char *const env = getenv("WEIR_URL");
    return env && *env ? env : DEFAULT_QUERY_URL;
}

static int check(struct session *s, struct send_check_result *ret)
{
    const struct send_ask_opts o = {
        .query_url = query_url(&s->opts),
        .env = s->env,
        .begin_ns = s->run.totals.begin_ns,
        .wait_ns = s->opts.check_wait_ns,
        .timeout_ns = s->opts.timeout_ns,
        .max_listed = MAX_LISTED,
    };
    FILE *const list = s->opts.json ? stderr : stdout;
    return cli_send_check(&o, s->run.workload, s->run.ledger, list, ret);
}

/* All that was made was taken, and there was something. */
static bool all_taken(const struct send_totals *t)
{
    return t->spans > 0 && t->refused_requests == 0 && t->never_requests == 0 &&
           t->unknown_requests == 0;
}

static int run_and_report(struct session *s)
{
    struct send_run *const r = &s->run;
    r->opts = &s->opts;
    r->stop = &stop_asked;
    r->progress_is_terminal = isatty(STDERR_FILENO) == 1;
    const bool progress = s->opts.progress || (r->progress_is_terminal && !s->opts.quiet);
    r->progress = progress ? stderr : NULL;
    int err = cli_send_run(r);
    if (err)
        return err;
    struct send_check_result result = {.asked = false};
    bool passed = all_taken(&r->totals);
    if (s->opts.check) {
        err = check(s, &result);
        if (err)
            return err;
        passed = passed && cli_send_check_passed(&result);
    }
    const struct send_report report = {
        .run = r, .env = s->env, .check = s->opts.check ? &result : NULL, .passed = passed};
    if (s->opts.json)
        cli_send_report_json(&report, stdout);
    else
        cli_send_report_text(&report, stdout);
    if (fflush(stdout) != 0)
        passed = false;
    return passed ? WEIR_OK : WEIR_EEMPTY;
}

int cli_send(int argc, char **argv)
{
    struct session s;
    memset(&s, 0, sizeof s);
    if (!cli_send_opts_parse(argc, argv, &s.opts, stderr))
        return 2;
    if (s.opts.help) {
        cli_send_opts_help(stdout);
        return 0;
    }
    make_identity(&s);
    int err = cli_send_transport_global();
    if (!err)
        err = make_parts(&s);
    if (!err) {
        catch_signals();
        err = run_and_report(&s);
    }
    free_parts(&s.run);
    if (err && err != WEIR_EEMPTY) /* which means: reported, and not passed */
        (void)fprintf(stderr, "weir send: %s\n", weir_strerror(err));
    return err ? 1 : 0;
}
