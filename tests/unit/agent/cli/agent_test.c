/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The whole agent, in a child process: where it listens, what it refuses, and that what it took in
 * is there after a stop and a start.
 */
#include "cli/cli.h"
#include "t.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ARGS_MAX 16

struct run {
    pid_t pid;
    int out;          /* its standard output and error */
    char text[16384]; /* what they said so far */
    size_t len;
    int ports[3]; /* datadog, otlp, web */
};

/* Start argv (argv[0] is "weir") in a child. */
static void run_start(struct run *r, const char *const *argv)
{
    int out[2];
    memset(r, 0, sizeof *r);
    T_EQ_I64(pipe(out), 0);
    (void)fflush(NULL);
    r->pid = fork();
    T_TRUE(r->pid >= 0);
    if (r->pid == 0) {
        char *args[ARGS_MAX + 1];
        int argc = 0;
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* a test that fails leaves no agent behind */
        for (; argv[argc] && argc < ARGS_MAX; argc++)
            args[argc] = strdup(argv[argc]);
        args[argc] = NULL;
        (void)dup2(out[1], STDOUT_FILENO);
        (void)dup2(out[1], STDERR_FILENO);
        (void)close(out[0]);
        (void)close(out[1]);
        const int status = cli_main(argc, args);
        for (int i = 0; i < argc; i++)
            free(args[i]);
        exit(status);
    }
    (void)close(out[1]);
    r->out = out[0];
}

/* Read on until part was said, or all was (part NULL). */
static void run_read(struct run *r, const char *part)
{
    for (;;) {
        r->text[r->len] = 0;
        if (part && strstr(r->text, part))
            return;
        struct pollfd p = {.fd = r->out, .events = POLLIN};
        if (poll(&p, 1, 20000) != 1)
            T_FAIL("nothing more within 20 s after: %s", r->text);
        const ssize_t n = read(r->out, r->text + r->len, sizeof r->text - 1 - r->len);
        if (n <= 0) {
            if (part)
                T_FAIL("ended without \"%s\": %s", part, r->text);
            return;
        }
        r->len += (size_t)n;
    }
}

static int port_after(const char *text, const char *what)
{
    const char *at = strstr(text, what);
    T_TRUE(at);
    at = strstr(at, "http://127.0.0.1:");
    T_TRUE(at);
    return atoi(at + strlen("http://127.0.0.1:"));
}

static void run_await_ready(struct run *r)
{
    run_read(r, "event=ready");
    r->ports[0] = port_after(r->text, "Datadog tracers");
    r->ports[1] = port_after(r->text, "OTLP over HTTP");
    r->ports[2] = port_after(r->text, "queries, metrics");
    for (size_t i = 0; i < 3; i++)
        T_TRUE(r->ports[i] > 0);
}

static int run_end(struct run *r)
{
    int status = 0;
    run_read(r, NULL);
    T_EQ_I64(waitpid(r->pid, &status, 0), r->pid);
    (void)close(r->out);
    if (!WIFEXITED(status))
        T_FAIL("ended by signal %d: %s", WTERMSIG(status), r->text);
    return WEXITSTATUS(status);
}

static int run_stop(struct run *r)
{
    T_EQ_I64(kill(r->pid, SIGTERM), 0);
    return run_end(r);
}

static char folder[64];

static void folder_new(void)
{
    (void)snprintf(folder, sizeof folder, "/tmp/weir-agent-XXXXXX");
    T_TRUE(mkdtemp(folder));
}

static void folder_remove(void)
{
    DIR *const d = opendir(folder);
    T_TRUE(d);
    for (struct dirent *e = readdir(d); e; e = readdir(d)) {
        char path[512];
        (void)snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        (void)unlink(path);
    }
    (void)closedir(d);
    T_EQ_I64(rmdir(folder), 0);
}

/* An agent on free ports with its store in folder, and one more flag. */
static void agent_start(struct run *r, const char *more)
{
    char store[96];
    (void)snprintf(store, sizeof store, "--store.path=%s", folder);
    const char *const socket_flag = more && strncmp(more, "--receivers.datadog.socket=", 27) == 0
                                        ? "--log.level=info"
                                        : "--receivers.datadog.socket=";
    const char *const argv[] = {"weir",
                                "agent",
                                store,
                                socket_flag,
                                "--receivers.datadog.listen-address=127.0.0.1:0",
                                "--receivers.otlp.http-listen-address=127.0.0.1:0",
                                "--receivers.otlp.grpc-listen-address=127.0.0.1:0",
                                "--web.listen-address=127.0.0.1:0",
                                more,
                                NULL};
    run_start(r, argv);
}

static int dial_unix(const char *path)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    T_TRUE(fd >= 0);
    (void)snprintf(to.sun_path, sizeof to.sun_path, "%s", path);
    T_EQ_I64(connect(fd, (const struct sockaddr *)(const void *)&to, sizeof to), 0);
    return fd;
}

static int dial(int port)
{
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    T_TRUE(fd >= 0);
    const struct sockaddr_in to = {.sin_family = AF_INET,
                                   .sin_port = htons((uint16_t)port),
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    T_EQ_I64(connect(fd, (const struct sockaddr *)(const void *)&to, sizeof to), 0);
    return fd;
}

/* The status, and the whole answer in text; fd is closed. */
static int exchange(int fd, const char *head, const void *body, size_t body_bytes, char *text,
                    size_t cap)
{
    size_t n = 0;
    T_EQ_I64(send(fd, head, strlen(head), MSG_NOSIGNAL), (int64_t)strlen(head));
    if (body_bytes)
        T_EQ_I64(send(fd, body, body_bytes, MSG_NOSIGNAL), (int64_t)body_bytes);
    for (;;) {
        const ssize_t got = recv(fd, text + n, cap - 1 - n, 0);
        if (got <= 0)
            break;
        n += (size_t)got;
    }
    text[n] = 0;
    (void)close(fd);
    if (strncmp(text, "HTTP/1.1 ", 9) != 0)
        T_FAIL("no answer: %s", text);
    return atoi(text + 9);
}

static int request(int port, const char *head, const void *body, size_t body_bytes, char *text,
                   size_t cap)
{
    return exchange(dial(port), head, body, body_bytes, text, cap);
}

static int get(int port, const char *path, char *text, size_t cap)
{
    char head[512];
    (void)snprintf(head, sizeof head, "GET %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
                   path);
    return request(port, head, NULL, 0, text, cap);
}

/* One trace of spans spans in v0.4, each 2 ms long, ended now. */
static size_t payload(uint8_t *at, size_t spans)
{
    uint8_t *const begin = at;
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    const uint64_t start_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec - 2000000u;
    T_TRUE(spans < 16);
    *at++ = 0x91;
    *at++ = (uint8_t)(0x90 | spans);
    for (size_t i = 0; i < spans; i++) {
        static const char strings[] = "\xa7service\xa3web\xa4name\xa7request\xa8resource\xa4/pay";
        static const char ids[] = "\xa8trace_id\x07\xa7span_id";
        static const char times[] = "\xa8"
                                    "duration\xce\x00\x1e\x84\x80\xa5start\xcf";
        *at++ = 0x87;
        memcpy(at, strings, sizeof strings - 1);
        at += sizeof strings - 1;
        memcpy(at, ids, sizeof ids - 1);
        at += sizeof ids - 1;
        *at++ = (uint8_t)(i + 1);
        memcpy(at, times, sizeof times - 1);
        at += sizeof times - 1;
        for (int shift = 56; shift >= 0; shift -= 8)
            *at++ = (uint8_t)(start_ns >> shift);
    }
    return (size_t)(at - begin);
}

static void send_spans(const struct run *r, size_t spans)
{
    uint8_t body[2048];
    char head[512];
    char text[4096];
    const size_t n = payload(body, spans);
    (void)snprintf(head, sizeof head,
                   "POST /v0.4/traces HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
                   "Content-Type: application/msgpack\r\nContent-Length: %zu\r\n\r\n",
                   n);
    const int status = request(r->ports[0], head, body, n, text, sizeof text);
    if (status != 200)
        T_FAIL("refused: %s", text);
}

TEST(an_agent_serves_its_pages_and_stops_by_a_signal)
{
    struct run r;
    static char text[1 << 20];
    folder_new();
    agent_start(&r, NULL);
    run_await_ready(&r);
    T_TRUE(strstr(r.text, "Datadog socket   off"));
    T_EQ_I64(get(r.ports[2], "/-/healthy", text, sizeof text), 200);
    T_EQ_I64(get(r.ports[2], "/-/ready", text, sizeof text), 200);
    T_EQ_I64(get(r.ports[2], "/metrics", text, sizeof text), 200);
    T_TRUE(strstr(text, "\nweir_receive_payloads_total{route=\"/v0.4/traces\"} 0\n"));
    T_TRUE(strstr(text, "\nweir_http_requests_total{server=\"otlp\"} 0\n"));
    T_EQ_I64(get(r.ports[2], "/nowhere", text, sizeof text), 404);
    T_EQ_I64(request(r.ports[2],
                     "GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
                     "sec-fetch-site: cross-site\r\n\r\n",
                     NULL, 0, text, sizeof text),
             403);
    T_EQ_I64(request(r.ports[2], "HEAD /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
                     NULL, 0, text, sizeof text),
             200);
    T_TRUE(!strstr(text, "# HELP"));
    T_EQ_I64(run_stop(&r), 0);
    T_TRUE(strstr(r.text, "event=stopping signal=SIGTERM"));
    folder_remove();
}

/* Ask until want is in the answer: a window that the stop sealed early counts from its end on. */
static void check_answer(const struct run *r, const char *expression, const char *want)
{
    char text[8192];
    char path[512];
    (void)snprintf(path, sizeof path, "/api/v1/query?include_open=1&query=%s", expression);
    for (int i = 0; i < 100; i++) {
        T_EQ_I64(get(r->ports[2], path, text, sizeof text), 200);
        if (strstr(text, want))
            return;
        (void)usleep(50000);
    }
    T_FAIL("%s answered %s, want %s in it", expression, text, want);
}

TEST(what_was_received_is_balanced_and_survives_a_restart)
{
    struct run r;
    static char text[1 << 20];
    folder_new();
    agent_start(&r, "--aggregation.window=1s");
    run_await_ready(&r);
    send_spans(&r, 7);
    send_spans(&r, 4);
    T_EQ_I64(get(r.ports[2], "/debug/reconcile", text, sizeof text), 200);
    T_TRUE(strstr(text, "{\"balanced\":true,"));
    T_TRUE(strstr(text, "\"process\":{\"received\":11,\"aggregated\":11,"));
    T_TRUE(strstr(text, "\"state\":\"open\""));
    T_EQ_I64(get(r.ports[2], "/metrics", text, sizeof text), 200);
    T_TRUE(strstr(text, "\nweir_receive_spans_total{route=\"/v0.4/traces\"} 11\n"));
    check_answer(&r, "sum(traces_span_metrics_calls_total)", ",\"11\"]");
    T_EQ_I64(run_stop(&r), 0);

    agent_start(&r, "--aggregation.window=1s");
    run_await_ready(&r);
    send_spans(&r, 2);
    check_answer(&r, "sum(traces_span_metrics_calls_total)", ",\"13\"]");
    check_answer(&r, "traces_span_metrics_calls_total", "\"span_name\":\"/pay\"");
    T_EQ_I64(get(r.ports[2], "/debug/reconcile", text, sizeof text), 200);
    T_TRUE(strstr(text, "{\"balanced\":true,"));
    T_TRUE(strstr(text, "\"state\":\"stored\""));
    T_EQ_I64(run_stop(&r), 0);
    folder_remove();
}

/* Ask /-/ready until it answers status. */
static void await_ready_status(const struct run *r, int status, char *text, size_t cap)
{
    for (int i = 0; i < 400; i++) {
        if (get(r->ports[2], "/-/ready", text, cap) == status)
            return;
        (void)usleep(50000);
    }
    T_FAIL("no %d from /-/ready within 20 s: %s", status, text);
}

static void limit_files(const struct run *r, rlim_t bytes)
{
    const struct rlimit limit = {.rlim_cur = bytes, .rlim_max = RLIM_INFINITY};
    T_EQ_I64(prlimit(r->pid, RLIMIT_FSIZE, &limit, NULL), 0);
}

TEST(a_store_that_cannot_be_written_makes_the_agent_not_ready_and_loses_nothing)
{
    struct run r;
    static char text[1 << 20];
    const char *const argv[] = {"weir",
                                "agent",
                                NULL,
                                "--receivers.datadog.socket=",
                                "--receivers.datadog.listen-address=127.0.0.1:0",
                                "--receivers.otlp.http-listen-address=127.0.0.1:0",
                                "--receivers.otlp.grpc-listen-address=127.0.0.1:0",
                                "--web.listen-address=127.0.0.1:0",
                                "--aggregation.window=1s",
                                "--aggregation.lateness=0s",
                                NULL};
    const char *args[11];
    char store[96];
    folder_new();
    (void)snprintf(store, sizeof store, "--store.path=%s", folder);
    memcpy(args, argv, sizeof args);
    args[2] = store;
    run_start(&r, args);
    run_await_ready(&r);
    limit_files(&r, 4096); /* the log of the database is larger after its first page */
    send_spans(&r, 9);
    await_ready_status(&r, 503, text, sizeof text);
    T_TRUE(strstr(text, "sealed windows wait for the store"));
    T_EQ_I64(get(r.ports[2], "/-/healthy", text, sizeof text), 200);
    T_EQ_I64(get(r.ports[2], "/metrics", text, sizeof text), 200);
    T_TRUE(strstr(text, "\nweir_store_up 0\n"));
    T_TRUE(strstr(text, "\nweir_batches_pending 1\n"));
    limit_files(&r, RLIM_INFINITY);
    await_ready_status(&r, 200, text, sizeof text);
    T_EQ_I64(get(r.ports[2], "/debug/reconcile", text, sizeof text), 200);
    T_TRUE(strstr(text, "{\"balanced\":true,"));
    T_TRUE(strstr(text, "\"pending\":0,\"lost\":0,"));
    T_TRUE(strstr(text, "\"state\":\"stored\""));
    T_EQ_I64(run_stop(&r), 0);
    folder_remove();
}

TEST(a_socket_serves_tracers_and_is_gone_after_the_stop)
{
    struct run r;
    char flag[128];
    char text[8192];
    folder_new();
    (void)snprintf(flag, sizeof flag, "--receivers.datadog.socket=%s/apm.socket", folder);
    const char *const path = strchr(flag, '=') + 1;
    agent_start(&r, flag);
    run_await_ready(&r);
    T_TRUE(strstr(r.text, path));
    T_EQ_I64(exchange(dial_unix(path),
                      "GET /info HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", NULL, 0,
                      text, sizeof text),
             200);
    T_TRUE(strstr(text, "/v0.4/traces"));
    T_EQ_I64(run_stop(&r), 0);
    T_TRUE(access(path, F_OK) != 0);
    (void)snprintf(flag, sizeof flag, "--receivers.datadog.socket=%s/no/apm.socket", folder);
    agent_start(&r, flag);
    T_EQ_I64(run_end(&r), 1);
    T_TRUE(strstr(r.text, "weir agent: --receivers.datadog.socket: cannot listen on "));
    folder_remove();
}

TEST(many_queries_at_once_are_all_answered_while_spans_arrive)
{
    enum { CONNECTIONS = 40 };
    static const char head[] = "POST /api/v1/query HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
                               "Content-Type: application/x-www-form-urlencoded\r\n"
                               "Content-Length: ";
    static const char body[] = "include_open=1&query=sum(increase(traces_span_metrics_calls_total";
    static const char rest[] = "[1m]))"; /* of a second write */
    struct run r;
    char text[8192];
    char sized[sizeof head + 8];
    int fds[CONNECTIONS];
    folder_new();
    agent_start(&r, NULL);
    run_await_ready(&r);
    send_spans(&r, 5);
    (void)snprintf(sized, sizeof sized, "%s%zu\r\n\r\n", head, sizeof body + sizeof rest - 2);
    for (size_t i = 0; i < CONNECTIONS; i++) {
        fds[i] = dial(r.ports[2]);
        T_EQ_I64(send(fds[i], sized, strlen(sized), MSG_NOSIGNAL), (int64_t)strlen(sized));
        T_EQ_I64(send(fds[i], body, sizeof body - 1, MSG_NOSIGNAL), (int64_t)sizeof body - 1);
    }
    for (size_t i = 0; i < CONNECTIONS; i++) {
        T_EQ_I64(send(fds[i], rest, sizeof rest - 1, MSG_NOSIGNAL), (int64_t)sizeof rest - 1);
        send_spans(&r, 1);
        if (i % 4 == 3) { /* a client that does not wait for its answer */
            (void)close(fds[i]);
            fds[i] = -1;
        }
    }
    for (size_t i = 0; i < CONNECTIONS; i++) {
        if (fds[i] < 0)
            continue;
        T_EQ_I64(exchange(fds[i], "", NULL, 0, text, sizeof text), 200);
        T_TRUE(strstr(text, "\"resultType\":\"vector\""));
    }
    check_answer(&r, "sum(increase(traces_span_metrics_calls_total%5B1m%5D))", ",\"45\"]");
    T_EQ_I64(run_stop(&r), 0);
    folder_remove();
}

TEST(the_look_back_of_the_configuration_is_that_of_queries)
{
    struct run r;
    char text[8192];
    char path[128];
    struct timespec now;
    folder_new();
    agent_start(&r, "--query.lookback-delta=1s");
    run_await_ready(&r);
    send_spans(&r, 5);
    check_answer(&r, "traces_span_metrics_calls_total", ",\"5\"]");
    T_EQ_I64(run_stop(&r), 0);
    agent_start(&r, "--query.lookback-delta=1s");
    run_await_ready(&r);
    /* The window ended at most ten seconds from now: half a minute later it is out of reach. */
    (void)clock_gettime(CLOCK_REALTIME, &now);
    (void)snprintf(path, sizeof path,
                   "/api/v1/query?query=traces_span_metrics_calls_total&time=%lld",
                   (long long)now.tv_sec + 30);
    T_EQ_I64(get(r.ports[2], path, text, sizeof text), 200);
    T_TRUE(strstr(text, "\"result\":[]"));
    (void)strncat(path, "&lookback_delta=1m", sizeof path - strlen(path) - 1);
    T_EQ_I64(get(r.ports[2], path, text, sizeof text), 200);
    T_TRUE(strstr(text, ",\"5\"]"));
    T_EQ_I64(run_stop(&r), 0);
    folder_remove();
}

TEST(a_port_that_is_taken_ends_the_start_with_option_and_port)
{
    struct run r;
    char flag[96];
    char want[128];
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof at;
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    T_EQ_I64(bind(fd, (const struct sockaddr *)(const void *)&at, sizeof at), 0);
    T_EQ_I64(listen(fd, 1), 0);
    T_EQ_I64(getsockname(fd, (struct sockaddr *)(void *)&at, &n), 0);
    const int port = ntohs(at.sin_port);
    folder_new();
    char store[96];
    (void)snprintf(store, sizeof store, "--store.path=%s", folder);
    (void)snprintf(flag, sizeof flag, "--receivers.otlp.http-listen-address=127.0.0.1:%d", port);
    const char *const argv[] = {"weir",
                                "agent",
                                store,
                                flag,
                                "--receivers.otlp.grpc-listen-address=127.0.0.1:0",
                                "--web.listen-address=127.0.0.1:0",
                                "--receivers.datadog.listen-address=127.0.0.1:0",
                                "--receivers.datadog.socket=",
                                NULL};
    run_start(&r, argv);
    T_EQ_I64(run_end(&r), 1);
    (void)snprintf(want, sizeof want,
                   "weir agent: --receivers.otlp.http-listen-address: port %d of 127.0.0.1 is "
                   "taken\n",
                   port);
    if (!strstr(r.text, want))
        T_FAIL("said %s, want %s", r.text, want);
    T_TRUE(!strstr(r.text, "event=ready"));
    (void)close(fd);
    folder_remove();
}

TEST(a_store_that_another_agent_holds_ends_the_start)
{
    struct run first;
    struct run second;
    folder_new();
    agent_start(&first, NULL);
    run_await_ready(&first);
    agent_start(&second, NULL);
    T_EQ_I64(run_end(&second), 1);
    T_TRUE(strstr(second.text, "weir agent: store.path: "));
    T_TRUE(strstr(second.text, folder));
    T_EQ_I64(run_stop(&first), 0);
    folder_remove();
}

TEST(a_second_agent_may_take_the_ports_of_one_that_stopped)
{
    struct run r;
    char flag[96];
    folder_new();
    agent_start(&r, NULL);
    run_await_ready(&r);
    send_spans(&r, 1); /* leaves a connection in TIME_WAIT */
    const int port = r.ports[0];
    T_EQ_I64(run_stop(&r), 0);
    (void)snprintf(flag, sizeof flag, "--receivers.datadog.listen-address=127.0.0.1:%d", port);
    char store[96];
    (void)snprintf(store, sizeof store, "--store.path=%s", folder);
    const char *const argv[] = {"weir",
                                "agent",
                                store,
                                flag,
                                "--receivers.otlp.grpc-listen-address=127.0.0.1:0",
                                "--web.listen-address=127.0.0.1:0",
                                "--receivers.otlp.http-listen-address=127.0.0.1:0",
                                "--receivers.datadog.socket=",
                                NULL};
    run_start(&r, argv);
    run_await_ready(&r);
    T_EQ_I64(r.ports[0], port);
    T_EQ_I64(run_stop(&r), 0);
    folder_remove();
}

/* A request that never ends holds the stop for its grace. */
static int open_request(int port)
{
    static const char head[] =
        "POST /v0.4/traces HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n";
    const int fd = dial(port);
    T_EQ_I64(send(fd, head, sizeof head - 1, MSG_NOSIGNAL), (int64_t)sizeof head - 1);
    return fd;
}

static int64_t mono_ms(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

TEST(a_request_that_never_ends_holds_the_stop_no_longer_than_its_grace)
{
    struct run r;
    char text[4096];
    folder_new();
    agent_start(&r, NULL);
    run_await_ready(&r);
    const int fd = open_request(r.ports[0]);
    T_EQ_I64(get(r.ports[2], "/-/ready", text, sizeof text), 200); /* by now it was read */
    const int64_t begin = mono_ms();
    T_EQ_I64(kill(r.pid, SIGTERM), 0);
    run_read(&r, "event=stopping");
    T_EQ_I64(get(r.ports[2], "/-/ready", text, sizeof text), 503);
    T_TRUE(strstr(text, "not ready: stopping"));
    T_EQ_I64(run_end(&r), 0);
    T_TRUE(mono_ms() - begin < 9000);
    (void)close(fd);
    folder_remove();
}

TEST(a_second_signal_ends_the_process_at_once)
{
    struct run r;
    char text[4096];
    folder_new();
    agent_start(&r, NULL);
    run_await_ready(&r);
    const int fd = open_request(r.ports[0]);
    T_EQ_I64(get(r.ports[2], "/-/ready", text, sizeof text), 200);
    T_EQ_I64(kill(r.pid, SIGINT), 0);
    run_read(&r, "event=stopping signal=SIGINT");
    T_EQ_I64(kill(r.pid, SIGTERM), 0);
    T_EQ_I64(run_end(&r), 1);
    T_TRUE(!strstr(r.text, "event=stopped"));
    (void)close(fd);
    folder_remove();
}

/* Status, and what was said, of a command that ends by itself. */
static int said(const char *const *argv, char text[16384])
{
    struct run r;
    run_start(&r, argv);
    const int status = run_end(&r);
    memcpy(text, r.text, sizeof r.text);
    return status;
}

#define SAID(text, ...) said((const char *const[]){"weir", __VA_ARGS__, NULL}, (text))

TEST(wrong_arguments_end_with_status_two_and_say_what_was_meant)
{
    static char text[16384];
    T_EQ_I64(SAID(text, "agnet"), 2);
    T_EQ_STR(text, "weir: unknown verb \"agnet\": did you mean \"weir agent\"?\n");
    T_EQ_I64(SAID(text, "frobnicate"), 2);
    T_EQ_STR(text, "weir: unknown verb \"frobnicate\": \"weir help\" lists them\n");
    T_EQ_I64(SAID(text, "--config.file=x"), 2);
    T_TRUE(strstr(text, "flags come after the verb"));
    T_EQ_I64(SAID(text, "agent", "--web.listn-address=x"), 2);
    T_TRUE(strstr(text, "did you mean --web.listen-address?\n"));
    T_EQ_I64(SAID(text, "agent", "--aggregation.window=1ms"), 2);
    T_TRUE(strstr(text, "weir agent: --aggregation.window: \"1ms\" is out of range: 1s is"));
    T_EQ_I64(SAID(text, "version", "x"), 2);
    T_EQ_I64(SAID(text, "help", "agnet"), 2);
    const char *const none[] = {"weir", NULL};
    T_EQ_I64(said(none, text), 2);
    T_TRUE(strncmp(text, "usage: weir VERB", 16) == 0);
}

TEST(help_and_version_are_answered_and_end_with_status_zero)
{
    static char text[16384];
    T_EQ_I64(SAID(text, "--version"), 0);
    T_EQ_STR(text, "weir 0.1.0\n");
    T_EQ_I64(SAID(text, "version"), 0);
    T_EQ_STR(text, "weir 0.1.0\n");
    T_EQ_I64(SAID(text, "--help"), 0);
    T_TRUE(strstr(text, "  agent     take in spans"));
    T_EQ_I64(SAID(text, "help", "agent"), 0);
    T_TRUE(strstr(text, "--web.listen-address=127.0.0.1:9099\n"));
    T_EQ_I64(SAID(text, "agent", "--help"), 0);
    T_TRUE(strstr(text, "--web.listen-address=127.0.0.1:9099\n"));
}

TEST(the_configuration_can_be_checked_and_printed_without_a_start)
{
    static char text[16384];
    T_EQ_I64(SAID(text, "agent", "--check-config", "--aggregation.window=30s"), 0);
    T_TRUE(strncmp(text, "The configuration is valid. File: ", 34) == 0);
    T_TRUE(strstr(text, "  aggregation.window = \"30s\"  (flag)\n"));
    T_TRUE(!strstr(text, "aggregation.lateness"));
    T_EQ_I64(SAID(text, "agent", "--print-config", "--aggregation.window=30s"), 0);
    T_TRUE(strstr(text, "  window: 30s  # --aggregation.window\n"));
    T_TRUE(strstr(text, "  lateness: 20s  # default\n"));
    /* More names than the library has slots for. */
    char peers[600] = "--aggregation.peer-tags=";
    char dimensions[600] = "--aggregation.dimensions=";
    for (int i = 0; i < 40; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "%sp%d", i ? "," : "", i);
        strncat(peers, name, sizeof peers - strlen(peers) - 1);
        name[i ? 1 : 0] = 'd';
        strncat(dimensions, name, sizeof dimensions - strlen(dimensions) - 1);
    }
    T_EQ_I64(SAID(text, "agent", "--check-config", peers, dimensions), 2);
    T_TRUE(strstr(text, "aggregation.peer-tags and aggregation.dimensions: "));
}
