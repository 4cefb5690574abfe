/* SPDX-License-Identifier: Apache-2.0 */
/*
 * agent: what the running program pays for one span: user and system time of all its threads over
 * the spans it took in, socket and HTTP included. The agent is pinned to one core and `weir send`
 * loads it flat out from another. Sealing and storing happen while it runs, so they are in the
 * figure; the generator's cost is not.
 */
#include "bench.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { AGENT_CPU = 0, LOAD_CPU = 1, ARGS_MAX = 16 };

struct agent {
    pid_t pid;
    FILE *out;
    char dir[64];
    int port[3]; /* Datadog, OTLP, web */
};

static void die(const char *what)
{
    fprintf(stderr, "bench_agent: %s: %s\n", what, strerror(errno));
    exit(1);
}

static void program_path(char *dst, size_t cap)
{
    const ssize_t n = readlink("/proc/self/exe", dst, cap - 1);
    if (n < 0)
        die("readlink");
    dst[n] = 0;
    *strrchr(dst, '/') = 0; /* build/bench/bench */
    *strrchr(dst, '/') = 0;
    if (strlen(dst) + 6 > cap)
        die("path");
    memcpy(dst + strlen(dst), "/weir", 6);
}

static pid_t start(const char *path, char *const argv[], int cpu, int out)
{
    const pid_t pid = fork();
    if (pid < 0)
        die("fork");
    if (pid > 0)
        return pid;
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET((size_t)cpu, &set);
    (void)sched_setaffinity(0, sizeof set, &set);
    if (dup2(out, STDOUT_FILENO) < 0 || dup2(out, STDERR_FILENO) < 0)
        _exit(126);
    (void)execv(path, argv);
    _exit(127);
}

/* The agent says where it listens; ports are what it picked. */
static void read_ports(struct agent *a)
{
    static const char *const lines[] = {"Datadog tracers", "OTLP over HTTP", "queries, metrics"};
    char line[512];
    for (size_t found = 0; found < 3;) {
        if (!fgets(line, sizeof line, a->out))
            die("the agent did not start");
        for (size_t i = 0; i < 3; i++) {
            if (strstr(line, lines[i])) {
                char *end;
                a->port[i] = (int)strtol(strrchr(line, ':') + 1, &end, 10);
                found++;
            }
        }
    }
}

static void agent_start(struct agent *a, const char *path)
{
    (void)snprintf(a->dir, sizeof a->dir, "/tmp/weir-bench-XXXXXX");
    if (!mkdtemp(a->dir))
        die("mkdtemp");
    char store[96];
    (void)snprintf(store, sizeof store, "--store.path=%s", a->dir);
    char name[] = "weir";
    char verb[] = "agent";
    char dd[] = "--receivers.datadog.listen-address=127.0.0.1:0";
    char socket_off[] = "--receivers.datadog.socket=";
    char otlp[] = "--receivers.otlp.http-listen-address=127.0.0.1:0";
    char web[] = "--web.listen-address=127.0.0.1:0";
    char *const argv[] = {name, verb, store, dd, socket_off, otlp, web, NULL};
    int fds[2];
    if (pipe(fds) != 0)
        die("pipe");
    a->pid = start(path, argv, AGENT_CPU, fds[1]);
    (void)close(fds[1]);
    a->out = fdopen(fds[0], "r");
    if (!a->out)
        die("fdopen");
    read_ports(a);
}

static void agent_stop(struct agent *a)
{
    (void)kill(a->pid, SIGTERM);
    (void)waitpid(a->pid, NULL, 0);
    (void)fclose(a->out);
    DIR *const d = opendir(a->dir);
    for (const struct dirent *e; d && (e = readdir(d)) != NULL;)
        (void)unlinkat(dirfd(d), e->d_name, 0);
    if (d)
        (void)closedir(d);
    (void)rmdir(a->dir);
}

/* Nanoseconds on a processor, all threads (proc(5), schedstat's first field). */
static double agent_cpu_ns(const struct agent *a)
{
    char path[64];
    (void)snprintf(path, sizeof path, "/proc/%d/task", (int)a->pid);
    DIR *const d = opendir(path);
    if (!d)
        die(path);
    double sum = 0;
    for (const struct dirent *e; (e = readdir(d)) != NULL;) {
        char file[PATH_MAX];
        (void)snprintf(file, sizeof file, "%s/%s/schedstat", path, e->d_name);
        FILE *const f = e->d_name[0] == '.' ? NULL : fopen(file, "r");
        double ns;
        if (f && fscanf(f, "%lf", &ns) == 1)
            sum += ns;
        if (f)
            (void)fclose(f);
    }
    (void)closedir(d);
    return sum;
}

/* GET path; the number behind key in the answer, or -1. */
static double ask(const struct agent *a, const char *path, const char *key)
{
    const int s = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)a->port[2]),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    if (s < 0 || connect(s, (const struct sockaddr *)&to, sizeof to) != 0)
        die("connect");
    char head[256];
    const int n = snprintf(head, sizeof head,
                           "GET %s HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", path);
    if (write(s, head, (size_t)n) != n)
        die("write");
    static char answer[4 << 20];
    size_t len = 0;
    for (ssize_t got; (got = read(s, answer + len, sizeof answer - 1 - len)) > 0;)
        len += (size_t)got;
    answer[len] = 0;
    (void)close(s);
    const char *const at = strstr(answer, key);
    return at ? strtod(at + strlen(key), NULL) : -1;
}

static void load(const struct agent *a, const char *path, const char *protocol, int port,
                 const char *seconds)
{
    char url[64];
    (void)snprintf(url, sizeof url, "--url=http://127.0.0.1:%d", port);
    char name[] = "weir";
    char verb[] = "send";
    char proto[32];
    (void)snprintf(proto, sizeof proto, "--protocol=%s", protocol);
    char duration[32];
    (void)snprintf(duration, sizeof duration, "--for=%s", seconds);
    char rate[] = "--rate=0";
    char batch[] = "--batch=500";
    char quiet[] = "--quiet";
    char *const argv[] = {name, verb, url, proto, rate, batch, duration, quiet, NULL};
    const int null = open("/dev/null", O_WRONLY);
    const pid_t pid = start(path, argv, LOAD_CPU, null);
    (void)close(null);
    int status;
    (void)a;
    if (waitpid(pid, &status, 0) < 0 || status != 0)
        die("weir send failed");
}

static double one_round(const struct agent *a, const char *path, const char *protocol, int port,
                        double *ret_rate)
{
    const double cpu = agent_cpu_ns(a);
    const double spans = ask(a, "/debug/reconcile", "\"received\":");
    const int64_t from = bench_now_ns();
    load(a, path, protocol, port, "3s");
    const double took = ask(a, "/debug/reconcile", "\"received\":") - spans;
    if (took < 1)
        die("no span was taken in");
    *ret_rate = took / ((double)(bench_now_ns() - from) / 1e9);
    return (agent_cpu_ns(a) - cpu) / took;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        const char *protocol;
        size_t port;
    } cases[] = {{"dd_v04", "v0.4", 0}, {"dd_v05", "v0.5", 0}, {"otlp_http", "otlp", 1}};
    struct bench b;
    bench_begin(&b, "agent", "CPU time of the whole agent a span, over a socket.", argc, argv);
    char path[PATH_MAX];
    program_path(path, sizeof path);
    if (b.rounds == 7)
        b.rounds = 3; /* each takes seconds */
    struct agent a;
    agent_start(&a, path);
    double values[3][1000];
    double rates[3][1000];
    for (int r = -1; r < b.rounds; r++) {
        for (size_t i = 0; i < 3; i++) {
            const size_t at = r < 0 ? 999 : (size_t)r; /* the first round warms up */
            values[i][at] =
                one_round(&a, path, cases[i].protocol, a.port[cases[i].port], &rates[i][at]);
        }
    }
    for (size_t i = 0; i < 3; i++) {
        bench_report(&b, cases[i].name, "cpu_ns_per_span", "ns", BENCH_LOWER, values[i],
                     (size_t)b.rounds);
        bench_report(&b, cases[i].name, "spans_per_s", "spans/s", BENCH_HIGHER, rates[i],
                     (size_t)b.rounds);
    }
    agent_stop(&a);
    return 0;
}
