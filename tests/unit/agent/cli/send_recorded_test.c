/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The whole verb against a recording HTTP server (tests/support/http_recorder.py): what arrives,
 * and what each way of not arriving does to the exit status.
 */
#include "cli/send.h"
#include "cli/send_run.h"
#include "send_canned.h"
#include "t.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct recorder {
    char folder[64];
    pid_t pid;
    int port;
};

static void nap(void)
{
    const struct timespec ts = {.tv_sec = 0, .tv_nsec = 20000000};
    (void)nanosleep(&ts, NULL);
}

static void write_file(const struct recorder *r, const char *name, const char *text)
{
    char path[128];
    (void)snprintf(path, sizeof path, "%s/%s", r->folder, name);
    FILE *const f = fopen(path, "wb");
    T_TRUE(f);
    T_TRUE(fputs(text, f) >= 0);
    T_EQ_I64(fclose(f), 0);
}

/* Freed by the caller; NULL: there is none. */
static char *read_file(const struct recorder *r, const char *name, size_t *ret_bytes)
{
    char path[128];
    (void)snprintf(path, sizeof path, "%s/%s", r->folder, name);
    return (char *)t_read_file(path, ret_bytes);
}

static void recorder_start(struct recorder *r)
{
    (void)snprintf(r->folder, sizeof r->folder, "/tmp/weir-send-XXXXXX");
    T_TRUE(mkdtemp(r->folder));
    if (system("python3 -c 'import http.server, socketserver' >/dev/null 2>&1") != 0)
        T_SKIP_MISSING("python3");
    r->pid = fork();
    T_TRUE(r->pid >= 0);
    if (r->pid == 0) {
        (void)execlp("python3", "python3", T_SOURCE_DIR "/tests/support/http_recorder.py",
                     r->folder, (char *)NULL);
        _exit(127);
    }
    char *port = NULL;
    for (int i = 0; i < 500 && !port; i++) {
        size_t n = 0;
        port = read_file(r, "port", &n);
        nap();
    }
    T_TRUE(port);
    r->port = (int)strtol(port, NULL, 10);
    free(port);
}

static void recorder_stop(struct recorder *r)
{
    (void)kill(r->pid, SIGTERM);
    (void)waitpid(r->pid, NULL, 0);
    char command[96];
    (void)snprintf(command, sizeof command, "rm -r %s", r->folder);
    T_EQ_I64(system(command), 0);
}

/* Run the verb with words split at blanks; %s in line is http://127.0.0.1:PORT. What it prints goes
 * to FOLDER/said. */
static int run(const struct recorder *r, const char *line)
{
    char url[64];
    char text[1024];
    (void)snprintf(url, sizeof url, "http://127.0.0.1:%d", r->port);
    size_t n = 0;
    for (const char *at = line; *at && n + sizeof url < sizeof text; at++) {
        if (at[0] == '@') {
            n += (size_t)snprintf(text + n, sizeof url, "%s", at[1] == 'F' ? r->folder : url);
            at++;
        } else {
            text[n++] = *at;
        }
    }
    text[n] = 0;
    char *argv[48] = {text};
    int argc = 0;
    for (char *at = text; at && argc < 48;) {
        argv[argc++] = at;
        at = strchr(at, ' ');
        if (at)
            *at++ = 0;
    }
    char path[128];
    (void)snprintf(path, sizeof path, "%s/said", r->folder);
    (void)fflush(stdout);
    const int saved = dup(STDOUT_FILENO);
    const int to = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    T_TRUE(saved >= 0 && to >= 0 && dup2(to, STDOUT_FILENO) >= 0);
    const int status = cli_send(argc, argv);
    (void)fflush(stdout);
    (void)dup2(saved, STDOUT_FILENO);
    (void)close(saved);
    (void)close(to);
    return status;
}

static void expect_said(const struct recorder *r, const char *what)
{
    size_t n = 0;
    char *const said = read_file(r, "said", &n);
    if (!said || !strstr(said, what))
        T_FAIL("\"%s\" is not in: %s", what, said ? said : "");
    free(said);
}

static void expect_head(const struct recorder *r, const char *name, const char *what)
{
    size_t n = 0;
    char *const head = read_file(r, name, &n);
    if (!head || !strstr(head, what))
        T_FAIL("\"%s\" is not in %s: %s", what, name, head ? head : "");
    free(head);
}

TEST(bodies_of_every_protocol_and_framing_arrive_whole)
{
    struct recorder r;
    recorder_start(&r);
    T_EQ_I64(run(&r, "send --url @U --count 250 --batch 100 --rate 0 --quiet"), 0);
    expect_said(&r, "sent 250 spans");
    expect_said(&r, "3 requests");
    expect_head(&r, "0.head", "PUT /v0.4/traces HTTP/1.1\n");
    expect_head(&r, "0.head", "Content-Type: application/msgpack\n");
    expect_head(&r, "0.head", "X-Datadog-Trace-Count: ");
    T_EQ_I64(run(&r, "send --url @U/ --protocol v0.5 --count 9 --rate 0 --quiet"), 0);
    expect_head(&r, "3.head", "PUT /v0.5/traces HTTP/1.1\n");
    T_EQ_I64(run(&r, "send --unix-socket @F/socket --url @U --count 9 --rate 0 --quiet --gzip"), 0);
    expect_head(&r, "4.head", "Content-Encoding: gzip\n");
    T_EQ_I64(run(&r, "send --url @U --protocol otlp --count 5000 --batch 5000 --rate 0 --quiet "
                     "--chunked"),
             0);
    expect_head(&r, "5.head", "POST /v1/traces HTTP/1.1\n");
    expect_head(&r, "5.head", "Transfer-Encoding: chunked\n");
    size_t n = 0;
    char *const body = read_file(&r, "5.body", &n);
    T_TRUE(body && n > 5000u * 600 && body[0] == 0x0a);
    free(body);
    T_TRUE(!read_file(&r, "6.head", &n)); /* nothing was sent twice */
    recorder_stop(&r);
}

TEST(what_was_not_taken_ends_the_run_and_is_told_apart)
{
    struct recorder r;
    recorder_start(&r);
    write_file(&r, "behave", "500");
    T_EQ_I64(run(&r, "send --url @U --count 300 --batch 100 --rate 0"), 1);
    expect_said(&r, "refused: 100 spans in 1 requests");
    expect_said(&r, "/v0.4/traces answered 500: {\"error\":\"out of memory\"}");
    T_EQ_I64(run(&r, "send --url @U --count 300 --batch 100 --rate 0 --keep-going"), 1);
    expect_said(&r, "refused: 300 spans in 3 requests");
    write_file(&r, "behave", "drop");
    T_EQ_I64(run(&r, "send --url @U --count 300 --batch 100 --rate 0"), 1);
    expect_said(&r, "fate unknown: 100 spans in 1 requests");
    write_file(&r, "behave", "reject");
    T_EQ_I64(run(&r, "send --url @U --protocol otlp --count 10 --rate 0"), 1);
    expect_said(&r, "/v1/traces rejected 2 spans");
    T_EQ_I64(run(&r, "send --url http://127.0.0.1:1 --count 10 --rate 0"), 1);
    expect_said(&r, "not sent, no connection: 10 spans in 1 requests");
    T_EQ_I64(run(&r, "send --unix-socket @F/none --count 10 --rate 0 --json"), 1);
    expect_said(&r, "\"never_spans\":10");
    recorder_stop(&r);
}

TEST(a_rate_is_kept_and_the_count_is_exact)
{
    struct recorder r;
    recorder_start(&r);
    struct timespec a;
    struct timespec b;
    (void)clock_gettime(CLOCK_MONOTONIC, &a);
    T_EQ_I64(run(&r, "send --url @U --rate 2000 --for 500ms --json"), 0);
    (void)clock_gettime(CLOCK_MONOTONIC, &b);
    const double s = (double)(b.tv_sec - a.tv_sec) + (double)(b.tv_nsec - a.tv_nsec) * 1e-9;
    T_TRUE(s >= 0.45);
    expect_said(&r, "\"spans\":1000,");
    expect_said(&r, "\"behind_spans\":0,");
    expect_said(&r, "\"requests\":5,");
    recorder_stop(&r);
}

/* The ledger of "--seed 7 --count 3000 --batch 1000 --rate 0 --error-ratio 0.1". */
static struct send_ledger *ledger_of_seed(const struct send_workload_opts *o,
                                          struct send_workload **ret_workload)
{
    struct send_ledger *l = NULL;
    T_OK(cli_send_workload_new(o, ret_workload));
    T_OK(cli_send_ledger_new(cli_send_workload_endpoints(*ret_workload), 3000, &l));
    for (int batch = 0; batch < 3; batch++) {
        struct send_span spans[1000];
        for (size_t n = 0; n < 1000;)
            n += cli_send_workload_trace(*ret_workload, spans + n, 1000 - n);
        T_OK(cli_send_ledger_add(l, spans, 1000));
    }
    cli_send_ledger_sort(l);
    return l;
}

static void write_answers(const struct recorder *r)
{
    static const char *const names[] = {"answer-calls", "answer-max", "answer-0.5", "answer-0.95",
                                        "answer-0.99"};
    const struct send_workload_opts o = {.preset = SEND_PRESET_SHOP, .error_ratio = 0.1, .seed = 7};
    struct send_workload *w = NULL;
    struct send_ledger *const l = ledger_of_seed(&o, &w);
    for (int q = 0; q < SEND_QUESTIONS; q++) {
        char *const text = canned_answer(w, l, (enum send_question)q, 0.5);
        write_file(r, names[q], text);
        free(text);
    }
    cli_send_ledger_free(l);
    cli_send_workload_free(w);
}

#define CHECKED                                                                                    \
    "send --url @U --query-url @U --count 3000 --batch 1000 --rate 0 --seed 7 --error-ratio 0.1 "  \
    "--check --check-wait 0 --quiet"

TEST(a_check_passes_only_when_all_that_was_sent_is_answered_for)
{
    struct recorder r;
    recorder_start(&r);
    write_answers(&r);
    T_EQ_I64(run(&r, CHECKED), 0);
    expect_said(&r, "check: passed: ");
    expect_said(&r, "windows balanced");
    T_EQ_I64(run(&r, CHECKED " --json"), 0);
    expect_said(&r, "\"passed\":true");
    expect_said(&r, "\"differences\":0");
    write_file(&r, "reconcile", "{\"balanced\":true,\"windows\":[{\"balanced\":false}]}");
    T_EQ_I64(run(&r, CHECKED), 1);
    expect_said(&r, "windows NOT balanced");
    write_file(&r, "reconcile", "{\"balanced\":true}");
    T_EQ_I64(run(&r, CHECKED " --seed 8"), 1);
    expect_said(&r, "check: FAILED: ");
    expect_said(&r, "count");
    write_file(&r, "behave", "drop-after 13"); /* 12 requests were recorded by now */
    T_EQ_I64(run(&r, CHECKED), 1);
    expect_said(&r, "fate unknown: 1000 spans");
    write_file(&r, "behave", "ok");
    write_file(&r, "answer-0.95", "");
    T_EQ_I64(run(&r, CHECKED), 1);
    expect_said(&r, "check: FAILED: the query API: /api/v1/query answered 503");
    recorder_stop(&r);
}

TEST(a_signal_ends_the_run_early_and_it_is_reported)
{
    struct recorder r;
    recorder_start(&r);
    const pid_t child = fork();
    T_TRUE(child >= 0);
    if (child == 0) /* a process of its own: the signal is remembered for good */
        _exit(run(&r, "send --url @U --rate 1000 --for 60s --quiet"));
    size_t n = 0;
    char *head = NULL;
    for (int i = 0; i < 500 && !head; i++) {
        head = read_file(&r, "1.head", &n);
        nap();
    }
    T_TRUE(head);
    free(head);
    T_EQ_I64(kill(child, SIGINT), 0);
    int status = 0;
    T_EQ_I64(waitpid(child, &status, 0), child);
    T_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    expect_said(&r, "stopped by a signal\n");
    recorder_stop(&r);
}

TEST(a_wrong_line_exits_2_and_help_exits_0)
{
    struct recorder r;
    recorder_start(&r);
    T_EQ_I64(run(&r, "send --chek"), 2);
    T_EQ_I64(run(&r, "send --help"), 0);
    expect_said(&r, "--check-wait DURATION");
    recorder_stop(&r);
}

TEST(a_partial_success_is_read_and_anything_else_is_not)
{
    static const struct {
        const char *hex;
        uint64_t rejected;
    } rows[] = {
        {.hex = "", .rejected = 0},
        {.hex = "0a00", .rejected = 0},
        {.hex = "0a020805", .rejected = 5},
        {.hex = "0a0308ac02", .rejected = 300},
        {.hex = "0a0812047465787408 05", .rejected = 5},
        {.hex = "0a0412027878", .rejected = 0},
        {.hex = "12020805", .rejected = 0},
        {.hex = "0a0508", .rejected = 0},
        {.hex = "0a0208ff", .rejected = 0},
        {.hex = "0805", .rejected = 0},
        {.hex = "ffffffffffffffffffffffff", .rejected = 0},
        {.hex = "0affffffffffffffffff01", .rejected = 0},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        uint8_t body[32];
        const size_t n = t_unhex(rows[i].hex, body, sizeof body);
        struct t_guard g = t_guard_new(body, n);
        T_EQ_U64(cli_send_otlp_rejected((struct weir_bytes){.ptr = (const char *)g.ptr, .len = n}),
                 rows[i].rejected);
        t_guard_free(&g);
    }
}
