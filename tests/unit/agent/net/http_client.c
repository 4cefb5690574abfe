/* SPDX-License-Identifier: Apache-2.0 */
/* http_client: see http_client.h. */
#include "http_client.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum { PATIENCE_MS = 10000 };

static int64_t now_ms(void)
{
    struct timespec ts;
    (void)clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

static struct http_client client_of(uv_loop_t *loop, int fd, const struct sockaddr *addr,
                                    socklen_t len)
{
    if (fd < 0 || connect(fd, addr, len) != 0)
        T_FAIL("connect: %s", strerror(errno));
    (void)fcntl(fd, F_SETFL, O_NONBLOCK);
    return (struct http_client){.loop = loop, .fd = fd};
}

struct http_client http_tcp(uv_loop_t *loop, int port)
{
    struct sockaddr_in addr = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    addr.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const int one = 1;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    return client_of(loop, fd, (const struct sockaddr *)&addr, sizeof addr);
}

struct http_client http_unix(uv_loop_t *loop, const char *path)
{
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    (void)snprintf(addr.sun_path, sizeof addr.sun_path, "%s", path);
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    return client_of(loop, fd, (const struct sockaddr *)&addr, sizeof addr);
}

void http_close(struct http_client *c)
{
    (void)close(c->fd);
    free(c->in);
    for (int i = 0; i < 5; i++)
        (void)uv_run(c->loop, UV_RUN_NOWAIT);
}

static void receive(struct http_client *c)
{
    while (!c->ended) {
        if (c->len == c->cap) {
            c->cap = c->cap ? 2 * c->cap : 4096;
            c->in = realloc(c->in, c->cap);
        }
        const ssize_t got = recv(c->fd, c->in + c->len, c->cap - c->len, 0);
        if (got > 0) {
            c->len += (size_t)got;
        } else if (got == 0) {
            c->ended = true;
        } else {
            if (errno != EAGAIN)
                c->ended = c->reset = true;
            return;
        }
    }
}

/* One turn of the loop; sleeps a moment when nothing is ready on either side. */
static void turn(struct http_client *c)
{
    (void)uv_run(c->loop, UV_RUN_NOWAIT);
    struct pollfd fds[] = {{.fd = uv_backend_fd(c->loop), .events = POLLIN},
                           {.fd = c->fd, .events = POLLIN}};
    (void)poll(fds, c->ended ? 1 : 2, 1);
    receive(c);
}

void http_wait(struct http_client *c, int ms)
{
    const int64_t until = now_ms() + ms;
    while (now_ms() < until)
        turn(c);
}

void http_send(struct http_client *c, const void *bytes, size_t len)
{
    const char *at = bytes;
    const int64_t until = now_ms() + PATIENCE_MS;
    while (len && !c->reset && now_ms() < until) {
        const ssize_t sent = send(c->fd, at, len, MSG_NOSIGNAL);
        if (sent > 0) {
            at += sent;
            len -= (size_t)sent;
        } else if (errno != EAGAIN) {
            break;
        }
        if (len)
            turn(c);
    }
}

void http_send_text(struct http_client *c, const char *text)
{
    http_send(c, text, strlen(text));
}

void http_end(struct http_client *c)
{
    (void)shutdown(c->fd, SHUT_WR);
}

const char *http_field(const struct http_answer *a, const char *name)
{
    static char value[1024];
    const size_t len = strlen(name);
    for (const char *at = strstr(a->head, "\r\n"); at; at = strstr(at, "\r\n")) {
        at += 2;
        if (strncasecmp(at, name, len) == 0 && at[len] == ':') {
            const char *const from = at + len + 2;
            (void)snprintf(value, sizeof value, "%.*s", (int)strcspn(from, "\r"), from);
            return value;
        }
    }
    return NULL;
}

static bool take_answer(struct http_client *c, struct http_answer *a, bool head_only)
{
    const char *const end = c->len ? memmem(c->in, c->len, "\r\n\r\n", 4) : NULL;
    if (!end)
        return false;
    const size_t head_bytes = (size_t)(end - c->in) + 4;
    *a = (struct http_answer){0};
    (void)snprintf(a->head, sizeof a->head, "%.*s", (int)head_bytes, c->in);
    const char *const length = http_field(a, "Content-Length");
    const size_t body = length && !head_only ? strtoull(length, NULL, 10) : 0;
    if (c->len < head_bytes + body)
        return false;
    a->status = (int)strtol(c->in + 9, NULL, 10);
    a->body_bytes = body;
    const size_t kept = body < sizeof a->body - 1 ? body : sizeof a->body - 1;
    memcpy(a->body, c->in + head_bytes, kept);
    c->len -= head_bytes + body;
    memmove(c->in, c->in + head_bytes + body, c->len);
    return true;
}

struct http_answer http_read(struct http_client *c, bool head_only)
{
    struct http_answer a = {0};
    const int64_t until = now_ms() + PATIENCE_MS;
    while (!take_answer(c, &a, head_only)) {
        if (c->ended || now_ms() > until)
            return (struct http_answer){0};
        turn(c);
    }
    return a;
}

struct http_answer http_ask(struct http_client *c, const char *text)
{
    http_send_text(c, text);
    return http_read(c, strncmp(text, "HEAD ", 5) == 0);
}

bool http_closed(struct http_client *c, int ms)
{
    const int64_t until = now_ms() + ms;
    while (!c->ended && now_ms() < until)
        turn(c);
    return c->ended;
}

/* Vectors. */

struct bytes {
    uint8_t *ptr;
    size_t len;
    size_t cap;
};

static void push(struct bytes *b, const uint8_t *from, size_t len, size_t times)
{
    if (b->len + len * times + 1 > b->cap) {
        b->cap = 2 * (b->len + len * times + 1);
        b->ptr = realloc(b->ptr, b->cap);
    }
    for (size_t i = 0; i < times; i++, b->len += len)
        if (len)
            memcpy(b->ptr + b->len, from, len);
}

static void push_file(struct bytes *b, const char *folder, const char *name)
{
    char path[1024];
    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    size_t len = 0;
    uint8_t *const file = t_read_file(path, &len);
    if (!file)
        T_FAIL("cannot read %s", path);
    push(b, file, len, 1);
    free(file);
}

static void push_part(struct bytes *b, const char *folder, const char *part)
{
    if (strncmp(part, "file:", 5) == 0) {
        push_file(b, folder, part + 5);
        return;
    }
    char *star = NULL;
    size_t times = strtoull(part, &star, 10);
    if (*star == '*')
        part = star + 1;
    else
        times = 1;
    const size_t cap = strlen(part) / 2 + 1;
    uint8_t *const raw = malloc(cap);
    push(b, raw, t_unhex(part, raw, cap), times);
    free(raw);
}

uint8_t *http_expand(const char *expression, const char *folder, size_t *ret_bytes)
{
    struct bytes b = {0};
    push(&b, NULL, 0, 1);
    if (strcmp(expression, "-") != 0) {
        char *const copy = strdup(expression);
        char *rest = copy;
        for (char *part = strtok_r(rest, "+", &rest); part; part = strtok_r(NULL, "+", &rest))
            push_part(&b, folder, part);
        free(copy);
    }
    *ret_bytes = b.len;
    return b.ptr;
}

bool http_rows_open(struct http_rows *r, const char *path)
{
    size_t len = 0;
    r->text = (char *)t_read_file(path, &len);
    r->at = r->text;
    return r->text != NULL;
}

bool http_rows_next(struct http_rows *r, char *columns[8])
{
    char *line = NULL;
    do {
        line = r->at;
        if (!*line)
            return false;
        char *const end = strchr(line, '\n');
        r->at = end ? end + 1 : line + strlen(line);
        if (end)
            *end = 0;
    } while (line[0] == '#' || line[0] == 0);
    for (int i = 0; i < 8; i++) {
        columns[i] = line;
        char *const tab = strchr(line, '\t');
        if (tab)
            *tab = 0;
        line = tab ? tab + 1 : line + strlen(line);
    }
    return true;
}

void http_rows_close(struct http_rows *r)
{
    free(r->text);
}

bool http_status_in(int status, const char *alternatives)
{
    const char *const offered = strstr(alternatives, " or ");
    for (const char *at = offered ? offered + 4 : alternatives; *at;) {
        char *end = NULL;
        if (strtol(at, &end, 10) == status)
            return true;
        at = *end ? end + 1 : end;
        if (end == at) /* not a number */
            return false;
    }
    return false;
}

static const char info_request[] = "GET /info HTTP/1.1\r\nHost: a\r\n\r\n";

/* "100 x 200", "200 200", "100 200" (the interim answer may be left out), "200|400". */
static bool read_statuses(struct http_client *c, const char *want, bool head_only, char *seen,
                          size_t cap)
{
    char *after = NULL;
    size_t times = strtoull(want, &after, 10);
    const bool many = strncmp(after, " x ", 3) == 0;
    const bool pair = !many && *after == ' ' && strncmp(want, "h2", 2) != 0;
    const bool interim = pair && times == 100;
    const char *const one = many ? after + 3 : pair ? after + 1 : want;
    if (!many)
        times = pair && !interim ? 2 : 1;
    for (size_t i = 0; i < times; i++) {
        struct http_answer a = http_read(c, head_only);
        if (interim && a.status == 100)
            a = http_read(c, head_only);
        (void)snprintf(seen, cap, "%d", a.status);
        if (!http_status_in(a.status, one))
            return false;
    }
    return true;
}

static bool replay_row(uv_loop_t *loop, int port, char *columns[8], bool end, char *seen,
                       size_t cap)
{
    size_t len = 0;
    uint8_t *const bytes = http_expand(columns[1], ".", &len);
    const bool head_only = len > 4 && memcmp(bytes, "HEAD", 4) == 0;
    struct http_client c = http_tcp(loop, port);
    http_send(&c, bytes, len);
    if (end)
        http_end(&c);
    bool right = read_statuses(&c, columns[2], head_only, seen, cap);
    if (right && !end && strcmp(columns[3], "keep") == 0) {
        right = http_ask(&c, info_request).status == 200;
        (void)snprintf(seen, cap, "the connection cannot be used again");
    }
    if (right && strcmp(columns[3], "close") == 0) {
        right = http_closed(&c, 3000) && c.len == 0;
        (void)snprintf(seen, cap, "not closed, or more than one answer");
    }
    http_close(&c);
    free(bytes);
    struct http_client next = http_tcp(loop, port);
    if (right && http_ask(&next, info_request).status != 200) {
        right = false;
        (void)snprintf(seen, cap, "the next connection is not served");
    }
    http_close(&next);
    return right;
}

struct http_replay http_replay_raw(uv_loop_t *loop, int port, const char *tsv)
{
    struct http_replay replay = {0};
    struct http_rows rows;
    if (!http_rows_open(&rows, tsv))
        T_SKIP_MISSING(tsv);
    char *columns[8];
    while (http_rows_next(&rows, columns)) {
        const bool keep = strcmp(columns[3], "keep") == 0;
        char seen[128] = "";
        bool right = replay_row(loop, port, columns, true, seen, sizeof seen);
        if (right && keep)
            right = replay_row(loop, port, columns, false, seen, sizeof seen);
        replay.rows++;
        if (!right) {
            replay.wrong++;
            print_error("%s: want %s %s, got %s\n", columns[0], columns[2], columns[3], seen);
        }
    }
    http_rows_close(&rows);
    return replay;
}
