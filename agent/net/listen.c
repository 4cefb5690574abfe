/* SPDX-License-Identifier: Apache-2.0 */
/* listen: the sockets a server accepts on. See http.h. */
#include "net/conn.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { BACKLOG = 511 };

struct listener {
    union {
        uv_handle_t handle;
        uv_stream_t stream;
        uv_tcp_t tcp;
        uv_pipe_t pipe;
    } h;
    struct net_server *server;
    struct listener *next;
    bool is_tcp;
    bool waiting; /* a connection could not be taken for want of memory */
    char path[sizeof((struct sockaddr_un *)NULL)->sun_path]; /* of a unix socket */
};

static void on_connection(uv_stream_t *stream, int status)
{
    struct listener *const l = stream->data;
    if (status != 0)
        return;
    l->waiting = !conn_accept(l->server, stream, l->is_tcp);
    if (l->waiting)
        server_watch(l->server);
}

bool listeners_retry(struct net_server *server)
{
    bool all = true;
    for (struct listener *l = server->listeners; l; l = l->next) {
        if (l->waiting)
            l->waiting = !conn_accept(server, &l->h.stream, l->is_tcp);
        all &= !l->waiting;
    }
    return all;
}

static void on_listener_closed(uv_handle_t *handle)
{
    struct listener *const l = handle->data;
    struct net_server *const s = l->server;
    free(l);
    server_handle_closed(s);
}

static struct listener *listener_new(struct net_server *s, bool is_tcp, int *ret_err)
{
    struct listener *const l = calloc(1, sizeof *l);
    if (!l) {
        *ret_err = -ENOMEM;
        return NULL;
    }
    *ret_err = is_tcp ? uv_tcp_init(s->loop, &l->h.tcp) : uv_pipe_init(s->loop, &l->h.pipe, 0);
    if (*ret_err != 0) {
        free(l);
        return NULL;
    }
    l->h.handle.data = l;
    l->server = s;
    l->is_tcp = is_tcp;
    s->open_handles++;
    return l;
}

static int listener_go(struct listener *l, int err)
{
    struct net_server *const s = l->server;
    if (err == 0)
        err = uv_listen(&l->h.stream, BACKLOG, on_connection);
    if (err != 0) {
        uv_close(&l->h.handle, on_listener_closed);
        return err;
    }
    l->next = s->listeners;
    s->listeners = l;
    return 0;
}

void listeners_close(struct net_server *server)
{
    for (struct listener *l = server->listeners; l; l = l->next) {
        if (l->path[0])
            (void)unlink(l->path);
        uv_close(&l->h.handle, on_listener_closed);
    }
    server->listeners = NULL;
}

static int address_of(const char *host, int port, struct sockaddr_storage *ret_addr)
{
    if (port < 0 || port > 65535)
        return -EINVAL;
    if (strcmp(host, "localhost") == 0)
        host = "127.0.0.1"; /* not what a resolver says: never more than this machine */
    if (uv_ip4_addr(host, port, (struct sockaddr_in *)ret_addr) == 0)
        return 0;
    return uv_ip6_addr(host, port, (struct sockaddr_in6 *)ret_addr);
}

static int bound_port(const uv_tcp_t *tcp)
{
    struct sockaddr_storage addr;
    int len = (int)sizeof addr;
    if (uv_tcp_getsockname(tcp, (struct sockaddr *)&addr, &len) != 0)
        return 0;
    if (addr.ss_family == AF_INET6)
        return ntohs(((const struct sockaddr_in6 *)&addr)->sin6_port);
    return ntohs(((const struct sockaddr_in *)&addr)->sin_port);
}

int net_server_listen_tcp(struct net_server *server, const char *host, int port, int *ret_port)
{
    struct sockaddr_storage addr;
    memset(&addr, 0, sizeof addr);
    int err = address_of(host, port, &addr);
    if (err != 0)
        return err;
    struct listener *const l = listener_new(server, true, &err);
    if (!l)
        return err;
    const unsigned flags = addr.ss_family == AF_INET6 ? UV_TCP_IPV6ONLY : 0;
    err = uv_tcp_bind(&l->h.tcp, (const struct sockaddr *)&addr, flags);
    err = listener_go(l, err);
    if (err == 0 && ret_port)
        *ret_port = bound_port(&l->h.tcp);
    return err;
}

/* Somebody answers on the socket, or might: only a refused connect proves that nobody does. */
static bool is_alive(const struct sockaddr_un *addr)
{
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return true;
    const bool dead =
        connect(fd, (const struct sockaddr *)addr, sizeof *addr) != 0 && errno == ECONNREFUSED;
    (void)close(fd);
    return !dead;
}

static int bind_path(int fd, const struct sockaddr_un *addr)
{
    if (bind(fd, (const struct sockaddr *)addr, sizeof *addr) == 0)
        return 0;
    if (errno != EADDRINUSE)
        return -errno;
    struct stat st;
    if (lstat(addr->sun_path, &st) != 0 || !S_ISSOCK(st.st_mode) || is_alive(addr))
        return -EADDRINUSE;
    if (unlink(addr->sun_path) != 0)
        return -errno;
    return bind(fd, (const struct sockaddr *)addr, sizeof *addr) == 0 ? 0 : -errno;
}

/* A bound descriptor; or -errno. Nobody can connect before listen, so the mode is in time. */
static int open_path(const struct sockaddr_un *addr)
{
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -errno;
    int err = bind_path(fd, addr);
    if (err == 0 && chmod(addr->sun_path, 0722) != 0) {
        err = -errno;
        (void)unlink(addr->sun_path);
    }
    if (err == 0)
        return fd;
    (void)close(fd);
    return err;
}

int net_server_listen_unix(struct net_server *server, const char *path)
{
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    const size_t len = strlen(path);
    if (len == 0)
        return -EINVAL;
    if (len >= sizeof addr.sun_path)
        return -ENAMETOOLONG;
    memcpy(addr.sun_path, path, len);
    int err;
    struct listener *const l = listener_new(server, false, &err);
    if (!l)
        return err;
    const int fd = open_path(&addr);
    err = fd < 0 ? fd : uv_pipe_open(&l->h.pipe, fd);
    if (fd >= 0 && err != 0)
        (void)close(fd);
    err = listener_go(l, err);
    if (err == 0)
        memcpy(l->path, path, len);
    else if (fd >= 0)
        (void)unlink(path);
    return err;
}
