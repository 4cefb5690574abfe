/* SPDX-License-Identifier: Apache-2.0 */
/* bench: see bench.h. */
#include "bench.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void usage(const char *name, const char *about)
{
    printf("usage: bench_%s [--json] [--rounds N] [--seconds N]\n\n%s\n", name, about);
}

/* The number of an option, or the end of the program. */
static int number_of(const char *name, const char *option, const char *text, int most)
{
    char *end;
    const long n = strtol(text, &end, 10);
    if (*end || n < 1 || n > most) {
        fprintf(stderr, "bench_%s: %s takes 1 to %d\n", name, option, most);
        exit(2);
    }
    return (int)n;
}

void bench_begin(struct bench *b, const char *name, const char *about, int argc, char **argv)
{
    *b = (struct bench){.name = name, .rounds = 7};
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--json") == 0) {
            b->json = true;
        } else if (strcmp(argv[i], "--rounds") == 0 && i + 1 < argc) {
            b->rounds = number_of(name, "--rounds", argv[++i], 1000);
            b->rounds_given = true;
        } else if (strcmp(argv[i], "--seconds") == 0 && i + 1 < argc) {
            b->seconds = number_of(name, "--seconds", argv[++i], 3600);
        } else if (strcmp(argv[i], "--help") == 0) {
            usage(name, about);
            exit(0);
        } else {
            fprintf(stderr, "bench_%s: unknown option %s (try --help)\n", name, argv[i]);
            exit(2);
        }
    }
    if (!b->json)
        printf("%-12s %-28s %-15s %10s %10s %10s %-7s %-21s %6s %10s %10s %10s\n", "bench", "case",
               "metric", "median", "min", "max", "unit", "peer", "ratio", "its median", "min",
               "max");
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a;
    const double y = *(const double *)b;
    return (x > y) - (x < y);
}

struct spread {
    double median;
    double min;
    double max;
};

static struct spread spread_of(const double *values, size_t count)
{
    double sorted[1000];
    memcpy(sorted, values, count * sizeof *sorted);
    qsort(sorted, count, sizeof *sorted, by_value);
    return (struct spread){sorted[count / 2], sorted[0], sorted[count - 1]};
}

double bench_median(const double *values, size_t count)
{
    return spread_of(values, count).median;
}

static void json_peer(const struct bench_peer *peer, double peer_value, double ratio)
{
    if (!peer)
        printf("\"peer\":null,\"peer_value\":null,\"ratio\":null");
    else if (peer->why[0])
        printf("\"peer\":\"%s\",\"peer_value\":null,\"ratio\":null,\"why\":\"%s\"", peer->name,
               peer->why);
    else
        printf("\"peer\":\"%s\",\"peer_value\":%.6g,\"ratio\":%.4g", peer->name, peer_value, ratio);
    if (peer && peer->note)
        printf(",\"note\":\"%s\"", peer->note);
}

static void table_peer(const struct bench_peer *peer, double ratio, const struct spread *s)
{
    if (!peer)
        printf(" %61s", "");
    else if (peer->why[0])
        printf(" %-21s (%s)", peer->name, peer->why);
    else
        printf(" %-21s %6.4g %10.6g %10.6g %10.6g", peer->name, ratio, s->median, s->min, s->max);
    if (peer && peer->note)
        printf("  (%s)", peer->note);
}

/*
 * A line of goals.tsv: bench, case, mapping, metric, peer, form, goal; "-" where there is no
 * mapping or no peer. The form says what the goal bounds.
 */
enum goal_form { GOAL_NONE = 0, GOAL_RATIO, GOAL_LEAST, GOAL_MOST };

struct goal {
    enum goal_form form;
    double bound;
};

static bool goal_is_of(char **fields, const char *const *row)
{
    for (size_t i = 0; i < 5; i++) {
        if (strcmp(fields[i], "*") != 0 && strcmp(fields[i], row[i] ? row[i] : "-") != 0)
            return false;
    }
    return true;
}

static enum goal_form form_of(const char *text)
{
    if (strcmp(text, "ratio") == 0)
        return GOAL_RATIO;
    if (strcmp(text, "least") == 0)
        return GOAL_LEAST;
    return strcmp(text, "most") == 0 ? GOAL_MOST : GOAL_NONE;
}

/* row: bench, case, mapping, metric, peer. A bench reports some hundred rows: no need to keep it.
 */
static struct goal find_goal(const char *const *row)
{
    struct goal g = {GOAL_NONE, 0};
    FILE *const f = fopen(BENCH_GOALS, "re");
    char line[256];
    bool listed = !f;
    while (f && g.form == GOAL_NONE && fgets(line, sizeof line, f)) {
        char *fields[7];
        size_t n = 0;
        char *rest = NULL;
        for (char *at = strtok_r(line, "\t\n", &rest); at && n < 7;
             at = strtok_r(NULL, "\t\n", &rest))
            fields[n++] = at;
        if (n != 7 || fields[0][0] == '#')
            continue;
        listed |= strcmp(fields[0], row[0]) == 0 && strcmp(fields[1], row[1]) == 0;
        if (goal_is_of(fields, row))
            g = (struct goal){form_of(fields[5]), strtod(fields[6], NULL)};
    }
    if (f)
        (void)fclose(f);
    if (!listed)
        fprintf(stderr, "bench: %s %s is not in goals.tsv\n", row[0], row[1]);
    return g;
}

static void print_goal(const struct bench *b, const struct goal *g, double value, double ratio)
{
    static const char *const names[] = {
        [GOAL_NONE] = "", [GOAL_RATIO] = "ratio >=", [GOAL_LEAST] = ">=", [GOAL_MOST] = "<="};
    if (g->form == GOAL_NONE)
        return;
    const bool known = g->form != GOAL_RATIO || ratio > 0;
    const bool met = g->form == GOAL_MOST ? value <= g->bound
                                          : (g->form == GOAL_RATIO ? ratio : value) >= g->bound;
    if (b->json) {
        printf(",\"goal\":%g", g->bound);
        if (known)
            printf(",\"met\":%s", met ? "true" : "false");
    } else {
        printf("  goal %s %g%s", names[g->form], g->bound,
               known ? (met ? ": met" : ": NOT MET") : "");
    }
}

void bench_report_peer(const struct bench *b, const char *c, const char *metric, const char *unit,
                       enum bench_better better, const double *values, size_t count,
                       const struct bench_peer *peer)
{
    const struct spread ours = spread_of(values, count);
    struct spread theirs = {0};
    double ratio = 0;
    if (peer && !peer->why[0] && peer->count > 0) {
        theirs = spread_of(peer->values, peer->count);
        ratio = better == BENCH_LOWER ? theirs.median / ours.median : ours.median / theirs.median;
    }
    if (b->json) {
        printf("{\"bench\":\"%s\",\"case\":\"%s\",", b->name, c);
        if (b->mapping)
            printf("\"mapping\":\"%s\",", b->mapping);
        printf("\"metric\":\"%s\",\"value\":%.6g,\"unit\":\"%s\",", metric, ours.median, unit);
        json_peer(peer, theirs.median, ratio);
    } else {
        char name[32]; /* of the bench, and its mapping */
        (void)snprintf(name, sizeof name, "%s%s%s", b->name, b->mapping ? " " : "",
                       b->mapping ? b->mapping : "");
        printf("%-12s %-28s %-15s %10.6g %10.6g %10.6g %-7s", name, c, metric, ours.median,
               ours.min, ours.max, unit);
        table_peer(peer, ratio, &theirs);
    }
    const char *const row[] = {b->name, c, b->mapping, metric, peer ? peer->name : NULL};
    const struct goal goal = find_goal(row);
    print_goal(b, &goal, ours.median, ratio);
    printf(b->json ? "}\n" : "\n");
    (void)fflush(stdout);
}

void bench_report(const struct bench *b, const char *c, const char *metric, const char *unit,
                  enum bench_better better, const double *values, size_t count)
{
    bench_report_peer(b, c, metric, unit, better, values, count, NULL);
}

void bench_report_one(const struct bench *b, const char *c, const char *metric, const char *unit,
                      double value)
{
    bench_report(b, c, metric, unit, BENCH_LOWER, &value, 1);
}

static void die(const char *what)
{
    fprintf(stderr, "bench: %s: %s\n", what, strerror(errno));
    exit(1);
}

static void pin_to(int cpu)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET((size_t)cpu, &set);
    (void)pthread_setaffinity_np(pthread_self(), sizeof set, &set);
}

static _Noreturn void child(const char *program, char **argv, int cpu, int in, int out)
{
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* no peer outlives its bench */
    (void)signal(SIGPIPE, SIG_DFL);
    if (cpu >= 0)
        pin_to(cpu);
    if (dup2(out, STDOUT_FILENO) < 0 || (in >= 0 && dup2(in, STDIN_FILENO) < 0))
        _exit(126);
    (void)execv(program, argv);
    _exit(127);
}

static FILE *end_of(int fd, const char *mode)
{
    FILE *const f = fdopen(fd, mode);
    if (!f)
        die("fdopen");
    return f;
}

/* ret_in NULL: its input is that of the bench. */
static pid_t spawn(const char *program, char **argv, int cpu, FILE **ret_in, FILE **ret_out)
{
    int in[2] = {-1, -1};
    int out[2];
    if (pipe2(out, O_CLOEXEC) != 0 || (ret_in && pipe2(in, O_CLOEXEC) != 0))
        die("pipe");
    const pid_t pid = fork();
    if (pid < 0)
        die("fork");
    if (pid == 0)
        child(program, argv, cpu, in[0], out[1]);
    (void)close(out[1]);
    *ret_out = end_of(out[0], "r");
    if (ret_in) {
        (void)close(in[0]);
        *ret_in = end_of(in[1], "w");
    }
    return pid;
}

pid_t bench_spawn(const char *program, char **argv, int cpu, FILE **ret_out)
{
    return spawn(program, argv, cpu, NULL, ret_out);
}

double bench_json_number(const char *text, const char *key)
{
    const size_t len = strlen(key);
    for (const char *at = text; (at = strstr(at, key)) != NULL; at += len) {
        if (at > text && at[-1] == '"' && at[len] == '"' && at[len + 1] == ':')
            return strtod(at + len + 2, NULL);
    }
    return -1;
}

const char *bench_peers_dir(void)
{
    return BENCH_PEERS_DIR;
}

/* The path of a program, and why it cannot run, or nothing. */
static void locate(const char *program, char path[static 256], char why[static 96])
{
    why[0] = 0;
    (void)snprintf(path, 256, "%s/bin/%s", BENCH_PEERS_DIR, program);
    if (access(path, X_OK) == 0)
        return;
    (void)snprintf(why, 96, "not built: ./dev bench NAME --peers");
    char reason[256];
    (void)snprintf(reason, sizeof reason, "%s/%s.why", BENCH_PEERS_DIR, program);
    FILE *const f = fopen(reason, "re");
    if (f) { /* build.sh knows it better */
        if (fgets(why, 96, f))
            why[strcspn(why, "\n\"\\")] = 0;
        (void)fclose(f);
    }
}

void bench_peer_init(struct bench_peer *p, const char *name, const char *program)
{
    *p = (struct bench_peer){.name = name};
    locate(program, p->program, p->why);
}

void bench_peer_run(struct bench_peer *p, char **argv, const char *key)
{
    if (p->why[0])
        return;
    argv[0] = p->program;
    FILE *out;
    const pid_t pid = bench_spawn(p->program, argv, -1, &out);
    char line[4096] = "";
    (void)!fgets(line, sizeof line, out);
    (void)fclose(out);
    int status = -1;
    (void)waitpid(pid, &status, 0);
    const double value = status == 0 ? bench_json_number(line, key) : -1;
    if (value < 0)
        fprintf(stderr, "bench: the peer %s failed\n", p->name);
    bench_peer_add(p, value);
}

void bench_peer_add(struct bench_peer *p, double value)
{
    if (p->why[0])
        return;
    if (value < 0)
        (void)snprintf(p->why, sizeof p->why, "it failed");
    else if (p->count < sizeof p->values / sizeof *p->values)
        p->values[p->count++] = value;
}

void bench_answerer_start(struct bench_answerer *a, const char *program, char **argv)
{
    *a = (struct bench_answerer){.pid = -1};
    locate(program, a->program, a->why);
    if (a->why[0])
        return;
    (void)signal(SIGPIPE, SIG_IGN); /* one that ended is found out by its missing answer */
    argv[0] = a->program;
    a->pid = spawn(a->program, argv, -1, &a->in, &a->out);
}

bool bench_answerer_ask(struct bench_answerer *a, const char *question)
{
    if (a->why[0])
        return false;
    a->answer[0] = 0;
    if (fprintf(a->in, "%s\n", question) > 0 && fflush(a->in) == 0 &&
        fgets(a->answer, sizeof a->answer, a->out))
        return true;
    fprintf(stderr, "bench: the peer %s failed at %s\n", a->program, question);
    (void)snprintf(a->why, sizeof a->why, "it failed");
    return false;
}

void bench_peer_ask(struct bench_peer *p, struct bench_answerer *a, const char *question,
                    const char *key)
{
    if (bench_answerer_ask(a, question))
        bench_peer_add(p, bench_json_number(a->answer, key));
    else if (!p->why[0])
        memcpy(p->why, a->why, sizeof p->why);
}

void bench_answerer_stop(struct bench_answerer *a)
{
    if (a->pid < 0)
        return;
    (void)fclose(a->in);
    (void)fclose(a->out);
    (void)waitpid(a->pid, NULL, 0);
    a->pid = -1;
}

static int64_t clock_ns(clockid_t id)
{
    struct timespec ts;
    (void)clock_gettime(id, &ts);
    return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

int64_t bench_now_ns(void)
{
    return clock_ns(CLOCK_MONOTONIC);
}

int64_t bench_thread_cpu_ns(void)
{
    return clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

void bench_pin(int cpu)
{
    pin_to(cpu);
}

void bench_pin_to_first(int cores)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    for (int i = 0; i < cores; i++)
        CPU_SET((size_t)i, &set);
    (void)pthread_setaffinity_np(pthread_self(), sizeof set, &set);
}

static void *heap_fn(void *ctx, void *ptr, size_t old_size, size_t new_size)
{
    struct bench_heap *const h = ctx;
    atomic_fetch_add_explicit(&h->live_bytes, (int64_t)new_size - (int64_t)old_size,
                              memory_order_relaxed);
    if (new_size == 0) {
        free(ptr);
        return NULL;
    }
    atomic_fetch_add_explicit(&h->allocations, 1, memory_order_relaxed);
    return realloc(ptr, new_size);
}

struct weir_alloc bench_alloc(struct bench_heap *h)
{
    return (struct weir_alloc){.fn = heap_fn, .ctx = h};
}

uint64_t bench_next(struct bench_rng *r)
{
    r->s += UINT64_C(0x9E3779B97F4A7C15);
    uint64_t z = r->s;
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return z ^ (z >> 31);
}

int64_t bench_latency_ns(struct bench_rng *r)
{
    double normal = -6.0;
    for (int i = 0; i < 12; i++)
        normal += (double)(bench_next(r) >> 11) * 0x1p-53;
    return (int64_t)(5e6 * exp(normal));
}
