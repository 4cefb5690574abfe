/* SPDX-License-Identifier: Apache-2.0 */
/*
 * evict: which connection makes room when there is no more.
 *
 * A connection that waits holds a place and does nothing with it; a newcomer has probably come to
 * ask something. So at the limit the newcomer is let in and one that waits is closed, in this
 * order: who has never asked, whoever waits longest; then who has begun a head, and then who
 * waits for another request, if that is since a second or more. Clients that are being served, or
 * were a moment ago, are never closed for strangers, however many of those come.
 *
 * The waiting stand in a list a kind, the longest first, so a choice costs nothing.
 *
 * Threads: the loop's. Memory: none of its own.
 */
#include "net/conn.h"

#include "plat/plat.h"

/* A client that keeps its connection asks again sooner, and one that sends a head in good faith
 * sends it in one go. */
#define WAITED_FOR_NS ((int64_t)1000000000)

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

bool conn_evict(struct net_server *server)
{
    const int64_t now_ns = plat_mono_ns();
    for (int kind = CONN_WAIT_FRESH; kind < CONN_WAIT_COUNT; kind++) {
        struct conn *const c = server->waits[kind].first;
        if (c && makes_room(c, now_ns)) {
            conn_refused(c, NET_REFUSED_EVICTED);
            conn_close(c);
            return true;
        }
    }
    return false;
}
