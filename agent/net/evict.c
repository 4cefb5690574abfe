/* SPDX-License-Identifier: Apache-2.0 */
/*
 * evict: which connection makes room when there is no more.
 *
 * A connection that waits holds a place and does nothing with it; a newcomer has probably come to
 * ask something. So at the limit the newcomer is let in and one that waits is closed, in this
 * order: who has never asked, whoever waits longest; then who has begun a head, and then who
 * waits for another request, if that is since a second or more. Clients that are being served, or
 * were a moment ago, are never closed for strangers, however many of those come; nor is one whose
 * bytes have arrived and are only not read yet.
 *
 * The waiting stand in a list a kind, the longest first, so a choice costs little.
 *
 * Threads: the loop's. Memory: none of its own.
 */
#include "net/conn.h"

#include "plat/plat.h"

#include <sys/ioctl.h>

/* A client that keeps its connection asks again sooner, and one that sends a head in good faith
 * sends it in one go. */
#define WAITED_FOR_NS ((int64_t)1000000000)

enum { LOOK_AT_MAX = 16 }; /* of a kind: each is a call of the system */

static enum conn_wait wait_of(const struct conn *c)
{
    if (c->closing)
        return CONN_WAIT_NONE;
    switch (c->phase) {
    case CONN_IDLE:
        return c->served ? CONN_WAIT_NEXT : CONN_WAIT_FRESH;
    case CONN_HEAD:
        return CONN_WAIT_HEAD;
    case CONN_BODY:
    case CONN_HANDLING:
    case CONN_FLUSHING:
    case CONN_LINGERING:
        break;
    }
    return CONN_WAIT_NONE;
}

static void leave(struct conn *c)
{
    struct net_server *const s = c->server;
    if (c->wait_prev)
        c->wait_prev->wait_next = c->wait_next;
    else
        s->waits[c->wait].first = c->wait_next;
    if (c->wait_next)
        c->wait_next->wait_prev = c->wait_prev;
    else
        s->waits[c->wait].last = c->wait_prev;
    c->wait_prev = c->wait_next = NULL;
}

static void enter(struct conn *c)
{
    struct net_server *const s = c->server;
    c->wait_prev = s->waits[c->wait].last;
    if (c->wait_prev)
        c->wait_prev->wait_next = c;
    else
        s->waits[c->wait].first = c;
    s->waits[c->wait].last = c;
}

void conn_wait_follow(struct conn *c)
{
    const enum conn_wait wait = wait_of(c);
    if (c->wait != CONN_WAIT_NONE)
        leave(c);
    c->wait = wait;
    if (wait != CONN_WAIT_NONE)
        enter(c);
}

static bool makes_room(const struct conn *c, int64_t now_ns)
{
    return c->wait == CONN_WAIT_FRESH || now_ns - c->since_ns >= WAITED_FOR_NS;
}

static bool has_unread(const struct conn *c)
{
    uv_os_fd_t fd;
    int bytes = 0;
    return uv_fileno(&c->h.handle, &fd) == 0 && ioctl(fd, FIONREAD, &bytes) == 0 && bytes > 0;
}

static struct conn *longest(const struct net_server *server, int kind, int64_t now_ns)
{
    struct conn *c = server->waits[kind].first;
    for (int i = 0; i < LOOK_AT_MAX && c && makes_room(c, now_ns); i++) {
        if (!has_unread(c))
            return c;
        c = c->wait_next;
    }
    return NULL;
}

bool conn_evict(struct net_server *server)
{
    const int64_t now_ns = plat_mono_ns();
    for (int kind = CONN_WAIT_FRESH; kind < CONN_WAIT_COUNT; kind++) {
        struct conn *const c = longest(server, kind, now_ns);
        if (c) {
            conn_refused(c, NET_REFUSED_EVICTED);
            conn_close(c);
            return true;
        }
    }
    return false;
}
