/* SPDX-License-Identifier: Apache-2.0 */
/*
 * owner: the one who sends: a thread of the client's, or the host that polls. Each round looks at
 * what is due: the engine, /info, payloads that are old, a few requests.
 */
#include "client.h"

#include <errno.h>
#include <signal.h>
#include <time.h>

enum { REQUESTS_A_POLL = 4 };

/* Monotonic: what poll was given, and what has passed since. */
int64_t wr_client_now(const struct weir_client *c)
{
    int64_t wall_ns;
    int64_t mono_ns;
    c->opts.clock(c->opts.clock_ctx, &wall_ns, &mono_ns);
    const int64_t passed = mono_ns > c->poll_clock_ns ? mono_ns - c->poll_clock_ns : 0;
    return wr_sat_add(c->poll_mono_ns, passed);
}

static void set_time(struct weir_client *c, int64_t wall_ns, int64_t mono_ns)
{
    int64_t ignored;
    c->poll_wall_ns = wall_ns;
    c->poll_mono_ns = mono_ns;
    c->opts.clock(c->opts.clock_ctx, &ignored, &c->poll_clock_ns);
}

static void report(struct weir_client *c)
{
    struct weir_client_health health;
    if (c->done_requests == 0 || !c->opts.health)
        return;
    c->done_requests = 0;
    weir_client_get_health(c, &health);
    c->opts.health(c->opts.ctx, &health);
}

static int64_t earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Statistics wait until it is known that the agent takes them. */
static bool may_send_stats(struct weir_client *c)
{
    (void)pthread_mutex_lock(&c->lock);
    const bool may = c->agent.known && c->stats.wanted && !c->downgrade;
    (void)pthread_mutex_unlock(&c->lock);
    return may;
}

/* The host polls, and the engine with the client. */
static bool runs_engine(const struct weir_client *c)
{
    return c->hosted && c->stats.engine && !(c->opts.flags & WEIR_CLIENT_HOST_ENGINE);
}

/* When something is due next. */
static int64_t next_ns(struct weir_client *c)
{
    int64_t next = wr_client_next_discovery_ns(c);
    if (!wr_client_traces_wait(c))
        next = earlier(next, wr_client_next_flush_ns(c));
    const bool may_send = may_send_stats(c);
    (void)pthread_mutex_lock(&c->lock);
    if (runs_engine(c) && c->stats.clear_pending)
        next = INT64_MIN;
    if (may_send && !wr_queue_is_empty(&c->stats_queue))
        next = earlier(next, c->stats_retry.failures ? c->stats_retry.next_ns : INT64_MIN);
    if (!wr_queue_is_empty(&c->trace_queue))
        next = earlier(next, c->trace_retry.failures ? c->trace_retry.next_ns : INT64_MIN);
    (void)pthread_mutex_unlock(&c->lock);
    if (c->downgrade && c->info_retry.failures == 0)
        next = INT64_MIN;
    return next;
}

static int64_t poll_once(struct weir_client *c, int64_t wall_ns, int64_t mono_ns)
{
    set_time(c, wall_ns, mono_ns);
    if (runs_engine(c))
        wr_client_poll_engine(c, wall_ns, mono_ns);
    if (wr_client_discovery_is_due(c))
        wr_client_discover_now(c);
    wr_client_flush_due(c, false);
    bool more = true;
    for (int i = 0; i < REQUESTS_A_POLL && more; i++) {
        more = may_send_stats(c) && wr_client_send_stats(c);
        if (c->downgrade && wr_client_discovery_is_due(c))
            wr_client_discover_now(c);
        more = wr_client_send_traces(c) || more;
    }
    report(c);
    const int64_t now = wr_client_now(c);
    int64_t next = next_ns(c);
    if (runs_engine(c))
        next = earlier(next, wr_sat_add(now, weir_stats_next_seal_for_ns(c->stats.engine, now)));
    return next <= now ? 0 : next - now;
}

int64_t weir_client_poll(struct weir_client *client, int64_t wall_ns, int64_t mono_ns)
{
    wr_client_enter(client);
    client->hosted = true;
    return poll_once(client, wall_ns, mono_ns);
}

static void sleep_until_woken(struct weir_client *c, int64_t for_ns)
{
    struct timespec until;
    /* A custom clock may run otherwise than the system's: look at it now and then. */
    if (for_ns > WR_S_NS && c->opts.clock != wr_client_clock)
        for_ns = WR_S_NS;
    if (for_ns > 3600 * WR_S_NS)
        for_ns = 3600 * WR_S_NS;
    int64_t wall_ns;
    int64_t mono_ns;
    wr_client_clock(NULL, &wall_ns, &mono_ns);
    const int64_t at = wr_sat_add(mono_ns, for_ns);
    until.tv_sec = (time_t)(at / WR_S_NS);
    until.tv_nsec = (long)(at % WR_S_NS);
    (void)pthread_mutex_lock(&c->lock);
    while (!c->woken && !c->stop &&
           pthread_cond_timedwait(&c->wake, &c->lock, &until) != ETIMEDOUT) {
    }
    c->woken = false;
    (void)pthread_mutex_unlock(&c->lock);
}

static bool has_waiting(struct weir_client *c)
{
    const bool may_send = may_send_stats(c);
    (void)pthread_mutex_lock(&c->lock);
    const bool waiting =
        !wr_queue_is_empty(&c->trace_queue) || (may_send && !wr_queue_is_empty(&c->stats_queue));
    (void)pthread_mutex_unlock(&c->lock);
    return waiting;
}

/* Until the next try or the deadline; whether there is one. A clock of the host's may stand still:
 * then there is not. */
static bool wait_for_next_try(struct weir_client *c, int64_t deadline)
{
    if (c->last_unreached || !has_waiting(c) || c->opts.clock != wr_client_clock)
        return false;
    const int64_t now = wr_client_now(c);
    const int64_t for_ns = earlier(next_ns(c), deadline) - now;
    if (for_ns > 0) {
        const struct timespec t = {.tv_sec = (time_t)(for_ns / WR_S_NS),
                                   .tv_nsec = (long)(for_ns % WR_S_NS)};
        (void)nanosleep(&t, NULL); /* cut short is as good */
    }
    return wr_client_now(c) < deadline;
}

static void discover_for_drain(struct weir_client *c)
{
    (void)pthread_mutex_lock(&c->lock);
    const bool known = c->agent.known || c->agent.v03;
    const bool waiting = !wr_queue_is_empty(&c->stats_queue);
    (void)pthread_mutex_unlock(&c->lock);
    if (c->downgrade || (!known && waiting))
        wr_client_discover_now(c);
}

/* Send what waits until it is sent, the agent is not reached, or the time is over. */
static void drain(struct weir_client *c, int64_t for_ns)
{
    const int64_t deadline = wr_sat_add(wr_client_now(c), for_ns < 0 ? 0 : for_ns);
    wr_client_flush_due(c, true);
    if (for_ns <= 0)
        return;
    c->deadline_ns = deadline;
    c->stats_retry.failures = 0; /* once more, now or never */
    c->trace_retry.failures = 0;
    c->last_unreached = false;
    bool more = true;
    while (more && wr_client_now(c) < deadline) {
        discover_for_drain(c);
        more = may_send_stats(c) && wr_client_send_stats(c);
        if (wr_client_now(c) < deadline)
            more = wr_client_send_traces(c) || more;
        more = more || wait_for_next_try(c, deadline);
    }
    c->deadline_ns = INT64_MAX;
    report(c);
}

static bool is_stopping(struct weir_client *c, int64_t *ret_for_ns)
{
    (void)pthread_mutex_lock(&c->lock);
    const bool stop = c->stop;
    *ret_for_ns = c->stop_for_ns;
    (void)pthread_mutex_unlock(&c->lock);
    return stop;
}

static void *run(void *arg)
{
    struct weir_client *const c = arg;
    int64_t drain_for_ns;
    while (!is_stopping(c, &drain_for_ns)) {
        int64_t wall_ns;
        int64_t mono_ns;
        c->opts.clock(c->opts.clock_ctx, &wall_ns, &mono_ns);
        const int64_t for_ns = poll_once(c, wall_ns, mono_ns);
        if (for_ns > 0)
            sleep_until_woken(c, for_ns);
    }
    drain(c, drain_for_ns);
    return NULL;
}

/* The host's signals are the host's: its handlers do not run on this thread. */
static int start_thread(struct weir_client *c)
{
    sigset_t all;
    sigset_t before;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    const int error = pthread_create(&c->thread, NULL, run, c);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error ? WEIR_ENOMEM : WEIR_OK;
}

int weir_client_start(struct weir_client *client)
{
    wr_client_enter(client);
    if (client->running)
        return WEIR_EBUSY;
    int64_t wall_ns;
    int64_t mono_ns;
    client->opts.clock(client->opts.clock_ctx, &wall_ns, &mono_ns);
    set_time(client, wall_ns, mono_ns);
    atomic_store(&client->cut_ns, INT64_MAX);
    client->stop = false;
    client->hosted = false;
    int err = wr_client_start_engine(client);
    if (err)
        return err;
    err = start_thread(client);
    if (err)
        wr_client_seal_engine(client);
    client->running = err == WEIR_OK;
    return err;
}

void weir_client_stop(struct weir_client *client, int64_t drain_for_ns)
{
    wr_client_enter(client);
    wr_client_seal_engine(client);
    if (!client->running) {
        drain(client, drain_for_ns);
        return;
    }
    int64_t wall_ns;
    int64_t mono_ns;
    client->opts.clock(client->opts.clock_ctx, &wall_ns, &mono_ns);
    atomic_store(&client->cut_ns, wr_sat_add(mono_ns, drain_for_ns < 0 ? 0 : drain_for_ns));
    (void)pthread_mutex_lock(&client->lock);
    client->stop = true;
    client->stop_for_ns = drain_for_ns;
    wr_client_wake(client);
    (void)pthread_mutex_unlock(&client->lock);
    (void)pthread_join(client->thread, NULL);
    client->running = false;
    client->stop = false;
    atomic_store(&client->cut_ns, INT64_MAX);
}
