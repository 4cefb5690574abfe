/* SPDX-License-Identifier: Apache-2.0 */
/* libcurl's transport against sockets of the test's: TCP and unix, and each way to fail. */
#include "fake.h"

#include <arpa/inet.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* A server on a thread: answers each connection by what `answer` says, one request each. */
struct server {
    pthread_t thread;
    int listener;
    char url[128];
    char path[64];
    const char *answer; /* NULL: read the request and close */
    char request[8192];
    size_t len;
    bool silent; /* never answers, keeps the connection */
    int kept;
};

static void *serve(void *arg)
{
    struct server *const s = arg;
    const int fd = accept(s->listener, NULL, NULL);
    if (fd < 0)
        return NULL;
    while (s->len + 1 < sizeof s->request) {
        const ssize_t n = read(fd, s->request + s->len, sizeof s->request - 1 - s->len);
        if (n <= 0)
            break;
        s->len += (size_t)n;
        s->request[s->len] = 0;
        if (strstr(s->request, "\r\n\r\n"))
            break;
    }
    if (s->silent) {
        s->kept = fd;
        return NULL;
    }
    if (s->answer)
        (void)!write(fd, s->answer, strlen(s->answer));
    (void)close(fd);
    return NULL;
}

static void server_open(struct server *s, bool by_unix)
{
    s->kept = -1;
    if (by_unix) {
        struct sockaddr_un a = {.sun_family = AF_UNIX};
        (void)snprintf(s->path, sizeof s->path, "/tmp/weir-client-%d.socket", (int)getpid());
        memcpy(a.sun_path, s->path, strlen(s->path) + 1);
        (void)unlink(s->path);
        s->listener = socket(AF_UNIX, SOCK_STREAM, 0);
        T_EQ_I64(bind(s->listener, (struct sockaddr *)&a, sizeof a), 0);
        (void)snprintf(s->url, sizeof s->url, "unix://%s", s->path);
    } else {
        struct sockaddr_in a = {.sin_family = AF_INET,
                                .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
        socklen_t n = sizeof a;
        s->listener = socket(AF_INET, SOCK_STREAM, 0);
        T_EQ_I64(bind(s->listener, (struct sockaddr *)&a, sizeof a), 0);
        T_EQ_I64(getsockname(s->listener, (struct sockaddr *)&a, &n), 0);
        (void)snprintf(s->url, sizeof s->url, "http://127.0.0.1:%d", ntohs(a.sin_port));
    }
    T_EQ_I64(listen(s->listener, 4), 0);
    T_EQ_I64(pthread_create(&s->thread, NULL, serve, s), 0);
}

static void server_close(struct server *s)
{
    (void)shutdown(s->listener, SHUT_RDWR);
    (void)close(s->listener);
    T_EQ_I64(pthread_join(s->thread, NULL), 0);
    if (s->kept >= 0)
        (void)close(s->kept);
    if (s->path[0])
        (void)unlink(s->path);
}

static struct weir_client *client_of(const char *url, int64_t timeout_for_ns)
{
    const struct weir_client_opts o = {.struct_size = sizeof o,
                                       .url = url,
                                       .lang = {"c", 1},
                                       .timeout_for_ns = timeout_for_ns,
                                       .drain_for_ns = -1};
    struct weir_client *c;
    T_OK(weir_client_new(&o, &c));
    return c;
}

static const char taken[] =
    "HTTP/1.1 200 OK\r\nContent-Length: 32\r\nDATADOG-AGENT-STATE:  abc \r\n"
    "\r\n{\"endpoints\":[\"/v0.5/traces\"] } ";

TEST(requests_go_by_tcp_and_by_unix_socket_and_headers_come_back)
{
    for (int by_unix = 0; by_unix < 2; by_unix++) {
        struct server s = {.answer = taken};
        struct weir_client_agent a;
        server_open(&s, by_unix);
        struct weir_client *const c = client_of(s.url, 5 * FAKE_S);
        (void)weir_client_poll(c, 1, 1);
        weir_client_get_agent(c, &a);
        T_TRUE(a.known && a.v05);
        T_EQ_STR(a.state, "abc");
        server_close(&s);
        T_TRUE(strncmp(s.request, "GET /info HTTP/1.1\r\n", 20) == 0);
        T_TRUE(strstr(s.request, "\r\nDatadog-Meta-Lang: c\r\n") != NULL);
        weir_client_free(c);
    }
}

static struct weir_client_health poll_health(struct weir_client *c)
{
    struct weir_client_health h;
    (void)weir_client_poll(c, 1, 1);
    weir_client_get_health(c, &h);
    return h;
}

TEST(a_port_nobody_listens_on_is_unreached)
{
    struct server s = {.answer = taken};
    server_open(&s, false);
    server_close(&s);
    struct weir_client *const c = client_of(s.url, FAKE_S);
    const struct weir_client_health h = poll_health(c);
    T_EQ_U64(h.unreached, 1);
    T_EQ_U64(h.info_failed, 1);
    weir_client_free(c);
    struct weir_client *const u = client_of("unix:///tmp/weir-nobody.socket", FAKE_S);
    T_EQ_U64(poll_health(u).unreached, 1);
    weir_client_free(u);
}

TEST(an_answer_that_breaks_off_is_no_answer_or_never_comes_is_unknown)
{
    static const char *const answers[] = {
        NULL, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf", "what is this"};
    for (size_t i = 0; i < 3; i++) {
        struct server s = {.answer = answers[i]};
        server_open(&s, false);
        struct weir_client *const c = client_of(s.url, 5 * FAKE_S);
        T_EQ_U64(poll_health(c).unknown, 1);
        server_close(&s);
        weir_client_free(c);
    }
    struct server s = {.silent = true};
    server_open(&s, false);
    struct weir_client *const c = client_of(s.url, FAKE_S / 10);
    T_EQ_U64(poll_health(c).unknown, 1);
    server_close(&s);
    weir_client_free(c);
}

TEST(an_answer_larger_than_the_bound_is_not_kept)
{
    static char answer[(2 << 20) + 200];
    const int head =
        snprintf(answer, sizeof answer, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n", 2 << 20);
    memset(answer + head, ' ', 2 << 20);
    struct server s = {.answer = answer};
    server_open(&s, false);
    struct weir_client *const c = client_of(s.url, 5 * FAKE_S);
    T_EQ_U64(poll_health(c).unknown, 1);
    server_close(&s);
    weir_client_free(c);
}

TEST(stop_does_not_wait_for_an_agent_that_never_answers)
{
    struct server s = {.silent = true};
    struct timespec begun;
    struct timespec ended;
    server_open(&s, false);
    struct weir_client *const c = client_of(s.url, 60 * FAKE_S);
    T_OK(weir_client_start(c));
    T_ERR(weir_client_start(c), WEIR_EBUSY);
    (void)usleep(100000);
    (void)clock_gettime(CLOCK_MONOTONIC, &begun);
    weir_client_stop(c, FAKE_S / 10);
    (void)clock_gettime(CLOCK_MONOTONIC, &ended);
    T_TRUE(ended.tv_sec - begun.tv_sec <= 4);
    weir_client_free(c);
    server_close(&s);
}

/* A server that keeps its connections, and counts them and the requests on each. */
struct keeper {
    int listener;
    pthread_t thread;
    pthread_t connections[4];
    atomic_int count;
    atomic_int requests[4];
};

struct kept {
    struct keeper *keeper;
    int number;
    int fd;
};

static void *keep_connection(void *arg)
{
    struct kept k = *(struct kept *)arg;
    char bytes[4096];
    free(arg);
    while (read(k.fd, bytes, sizeof bytes) > 0) {
        atomic_fetch_add(&k.keeper->requests[k.number], 1);
        (void)!write(k.fd, taken, sizeof taken - 1);
    }
    (void)close(k.fd);
    return NULL;
}

static void *keep(void *arg)
{
    struct keeper *const s = arg;
    int fd;
    while ((fd = accept(s->listener, NULL, NULL)) >= 0) {
        struct kept *const k = malloc(sizeof *k);
        *k = (struct kept){.keeper = s, .number = atomic_fetch_add(&s->count, 1), .fd = fd};
        (void)pthread_create(&s->connections[k->number], NULL, keep_connection, k);
    }
    return NULL;
}

static void ask(struct weir_client *c, int64_t now)
{
    weir_client_discover(c);
    (void)weir_client_poll(c, now, now);
}

TEST(a_child_has_a_connection_of_its_own_and_the_parent_keeps_its_own)
{
    struct keeper s = {.listener = socket(AF_INET, SOCK_STREAM, 0)};
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
    socklen_t n = sizeof a;
    char url[64];
    T_EQ_I64(bind(s.listener, (struct sockaddr *)&a, sizeof a), 0);
    T_EQ_I64(getsockname(s.listener, (struct sockaddr *)&a, &n), 0);
    T_EQ_I64(listen(s.listener, 4), 0);
    (void)snprintf(url, sizeof url, "http://127.0.0.1:%d", ntohs(a.sin_port));
    struct weir_client *const c = client_of(url, 5 * FAKE_S);
    T_EQ_I64(pthread_create(&s.thread, NULL, keep, &s), 0);
    ask(c, 1);
    ask(c, 10 * FAKE_S);
    T_EQ_I64(atomic_load(&s.count), 1);
    const pid_t child = fork();
    if (child == 0) {
        struct weir_client_health h;
        ask(c, 20 * FAKE_S);
        weir_client_get_health(c, &h);
        weir_client_free(c);
        _exit(h.info_taken == 1 ? 0 : 1);
    }
    int status;
    T_TRUE(waitpid(child, &status, 0) == child);
    T_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    ask(c, 30 * FAKE_S);
    T_EQ_I64(atomic_load(&s.count), 2);
    T_EQ_I64(atomic_load(&s.requests[0]), 3);
    T_EQ_I64(atomic_load(&s.requests[1]), 1);
    weir_client_free(c);
    (void)shutdown(s.listener, SHUT_RDWR);
    T_EQ_I64(pthread_join(s.thread, NULL), 0);
    for (int i = 0; i < 2; i++)
        T_EQ_I64(pthread_join(s.connections[i], NULL), 0);
    (void)close(s.listener);
}
