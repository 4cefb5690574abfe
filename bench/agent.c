/* SPDX-License-Identifier: Apache-2.0 */
/*
 * agent: what the running program pays for one span: user and system time of all its threads over
 * the spans it took in, socket and HTTP included. The agent is pinned to one core and `weir send`
 * loads it flat out from another. Sealing and storing happen while it runs, so they are in the
 * figure; the generator's cost is not. Peers are whole programs too, loaded by the same generator.
 */
#include "bench.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { AGENT_CPU = 0, LOAD_CPU = 1, CASES = 3, ROUNDS_MAX = 1000 };

static const char seconds[] = "--for=3s"; /* a round */

/* A program that takes spans: ours, or a peer. */
struct server {
    pid_t pid; /* 0: it does not run */
    FILE *out;
    int port[2]; /* Datadog, OTLP over HTTP */
    double sent; /* spans it has taken in */
};

/* A peer is one program for all the cases it takes part in. */
struct rival {
    struct bench_peer peer;
    struct server server;
};

struct result {
    double cpu_ns[ROUNDS_MAX];
    double per_s[ROUNDS_MAX];
};

struct agent_case {
    const char *name;
    const char *protocol;
    size_t port;
    struct rival *rival;
    struct result ours;
    struct result theirs;
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

/* The agent says where it listens; ports are what it picked. */
static void read_ports(struct server *s)
{
    static const char *const lines[] = {"Datadog tracers", "OTLP over HTTP"};
    char line[512];
    for (size_t found = 0; found < 2;) {
        if (!fgets(line, sizeof line, s->out))
            die("the agent did not start");
        for (size_t i = 0; i < 2; i++) {
            if (strstr(line, lines[i])) {
                char *end;
                s->port[i] = (int)strtol(strrchr(line, ':') + 1, &end, 10);
                found++;
            }
        }
    }
}

static void ours_start(struct server *s, const char *program, const char *dir)
{
    char store[96];
    (void)snprintf(store, sizeof store, "--store.path=%s", dir);
    char name[] = "weir";
    char verb[] = "agent";
    char dd[] = "--receivers.datadog.listen-address=127.0.0.1:0";
    char socket_off[] = "--receivers.datadog.socket=";
    char otlp[] = "--receivers.otlp.http-listen-address=127.0.0.1:0";
    char grpc[] = "--receivers.otlp.grpc-listen-address=";
    char web[] = "--web.listen-address=127.0.0.1:0";
    char quiet[] = "--log.level=warn";
    char *argv[] = {name, verb, store, dd, socket_off, otlp, grpc, web, quiet, NULL};
    s->pid = bench_spawn(program, argv, AGENT_CPU, &s->out);
    read_ports(s);
}

static void remove_dir(const char *path)
{
    DIR *const d = opendir(path);
    for (const struct dirent *e; d && (e = readdir(d)) != NULL;)
        (void)unlinkat(dirfd(d), e->d_name, 0);
    if (d)
        (void)closedir(d);
    (void)rmdir(path);
}

static int loopback(int port, struct sockaddr_in *to)
{
    *to = (struct sockaddr_in){.sin_family = AF_INET,
                               .sin_port = htons((uint16_t)port),
                               .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const int s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (s < 0)
        die("socket");
    return s;
}

/* Peers want to be told their port: one that was free a moment ago. */
static int free_port(void)
{
    struct sockaddr_in at;
    socklen_t len = sizeof at;
    const int s = loopback(0, &at);
    if (bind(s, (const struct sockaddr *)&at, sizeof at) != 0 ||
        getsockname(s, (struct sockaddr *)&at, &len) != 0)
        die("bind");
    (void)close(s);
    return ntohs(at.sin_port);
}

static bool listens(int port)
{
    struct sockaddr_in to;
    const int s = loopback(port, &to);
    const bool taken = connect(s, (const struct sockaddr *)&to, sizeof to) == 0;
    (void)close(s);
    return taken;
}

static void rival_start(struct rival *r, const char *name, const char *program)
{
    bench_peer_init(&r->peer, name, program);
    r->server = (struct server){0};
    if (r->peer.why[0])
        return;
    struct server *const s = &r->server;
    s->port[0] = s->port[1] = free_port();
    char port[16];
    (void)snprintf(port, sizeof port, "%d", s->port[0]);
    char *argv[] = {r->peer.program, port, NULL};
    s->pid = bench_spawn(r->peer.program, argv, AGENT_CPU, &s->out);
    bool runs = true;
    for (int i = 0; i < 600 && runs; i++) {
        if (listens(s->port[0]))
            return;
        (void)nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
        runs = waitpid(s->pid, NULL, WNOHANG) == 0;
    }
    if (runs) {
        (void)kill(s->pid, SIGKILL);
        (void)waitpid(s->pid, NULL, 0);
    }
    (void)fclose(s->out);
    s->pid = 0;
    (void)snprintf(r->peer.why, sizeof r->peer.why, "it did not start");
}

/* It had everything that was sent to it, if it counts. */
static void server_stop(struct server *s, const char *name)
{
    if (!s->pid)
        return;
    char line[512] = "";
    (void)kill(s->pid, SIGTERM);
    double counted = -1;
    while (fgets(line, sizeof line, s->out)) {
        if (counted < 0)
            counted = bench_json_number(line, "spans");
    }
    (void)fclose(s->out);
    (void)waitpid(s->pid, NULL, 0);
    if (counted >= 0 && counted != s->sent)
        fprintf(stderr, "bench_agent: %s was sent %.0f spans and counted %.0f\n", name, s->sent,
                counted);
}

/* Nanoseconds on a processor, all threads (proc(5), schedstat's first field). */
static double server_cpu_ns(const struct server *s)
{
    char path[64];
    (void)snprintf(path, sizeof path, "/proc/%d/task", (int)s->pid);
    DIR *const d = opendir(path);
    if (!d)
        die(path);
    double sum = 0;
    for (const struct dirent *e; (e = readdir(d)) != NULL;) {
        char file[PATH_MAX];
        (void)snprintf(file, sizeof file, "%s/%s/schedstat", path, e->d_name);
        FILE *const f = e->d_name[0] == '.' ? NULL : fopen(file, "re");
        double ns;
        if (f && fscanf(f, "%lf", &ns) == 1)
            sum += ns;
        if (f)
            (void)fclose(f);
    }
    (void)closedir(d);
    return sum;
}

/* Spans that the server took. */
static double load(const char *program, const char *protocol, int port)
{
    char url[64];
    (void)snprintf(url, sizeof url, "--url=http://127.0.0.1:%d", port);
    char name[] = "weir";
    char verb[] = "send";
    char proto[32];
    (void)snprintf(proto, sizeof proto, "--protocol=%s", protocol);
    char duration[sizeof seconds];
    memcpy(duration, seconds, sizeof seconds);
    char rate[] = "--rate=0";
    char batch[] = "--batch=500";
    char quiet[] = "--quiet";
    char json[] = "--json";
    char *argv[] = {name, verb, url, proto, rate, batch, duration, quiet, json, NULL};
    FILE *out;
    const pid_t pid = bench_spawn(program, argv, LOAD_CPU, &out);
    static char answer[1 << 20];
    const size_t n = fread(answer, 1, sizeof answer - 1, out);
    answer[n] = 0;
    (void)fclose(out);
    int status;
    if (waitpid(pid, &status, 0) < 0 || status != 0)
        die("weir send failed");
    return bench_json_number(answer, "spans");
}

static void one_round(struct server *s, const char *program, const struct agent_case *c,
                      struct result *to, size_t at)
{
    const double cpu = server_cpu_ns(s);
    const int64_t from = bench_now_ns();
    const double took = load(program, c->protocol, s->port[c->port]);
    if (took < 1)
        die("no span was taken in");
    s->sent += took;
    to->per_s[at] = took / ((double)(bench_now_ns() - from) / 1e9);
    to->cpu_ns[at] = (server_cpu_ns(s) - cpu) / took;
}

static void report(const struct bench *b, struct agent_case *c)
{
    const size_t n = (size_t)b->rounds;
    struct bench_peer *const peer = &c->rival->peer;
    peer->count = n;
    memcpy(peer->values, c->theirs.cpu_ns, sizeof peer->values);
    bench_report_peer(b, c->name, "cpu_ns_per_span", "ns", BENCH_LOWER, c->ours.cpu_ns, n, peer);
    memcpy(peer->values, c->theirs.per_s, sizeof peer->values);
    bench_report_peer(b, c->name, "spans_per_s", "spans/s", BENCH_HIGHER, c->ours.per_s, n, peer);
}

int main(int argc, char **argv)
{
    static struct rival trace_agent;
    static struct rival otelcol;
    static struct agent_case cases[CASES] = {
        {.name = "dd_v04", .protocol = "v0.4", .port = 0, .rival = &trace_agent},
        {.name = "dd_v05", .protocol = "v0.5", .port = 0, .rival = &trace_agent},
        {.name = "otlp_http", .protocol = "otlp", .port = 1, .rival = &otelcol},
    };
    struct bench b;
    bench_begin(&b, "agent", "CPU time of the whole agent a span, over a socket.", argc, argv);
    if (b.rounds == 7)
        b.rounds = 3; /* each takes seconds */
    char program[PATH_MAX];
    program_path(program, sizeof program);
    char dir[] = "/tmp/weir-bench-XXXXXX";
    if (!mkdtemp(dir))
        die("mkdtemp");
    struct server ours = {0};
    ours_start(&ours, program, dir);
    rival_start(&trace_agent, "trace_agent", "trace_agent");
    rival_start(&otelcol, "otelcol_spanmetrics", "otelcol");
    for (int r = -1; r < b.rounds; r++) {
        const size_t at = r < 0 ? 0 : (size_t)r; /* the first round warms up and is overwritten */
        for (size_t i = 0; i < CASES; i++) {
            struct agent_case *const c = &cases[i];
            one_round(&ours, program, c, &c->ours, at);
            if (c->rival->server.pid)
                one_round(&c->rival->server, program, c, &c->theirs, at);
        }
    }
    for (size_t i = 0; i < CASES; i++)
        report(&b, &cases[i]);
    server_stop(&ours, "weir");
    server_stop(&trace_agent.server, trace_agent.peer.name);
    server_stop(&otelcol.server, otelcol.peer.name);
    remove_dir(dir);
    return 0;
}
