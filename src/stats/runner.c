/* SPDX-License-Identifier: Apache-2.0 */
/*
 * runner: the shard on a thread of its own. It polls, hands each sealed batch on, and sleeps: not
 * at all while much is coming, and longer the longer nothing comes (an owner that spins on an empty
 * ring slows its producers: contracts: engine §2.7). No lock and no condition: a fork in the middle
 * leaves nothing held.
 *
 * Threads: start, stop any, one at a time; flush any; the callbacks run on the runner's thread.
 */
#include "base/clock.h"
#include "stats/stats.h"

#include <signal.h>
#include <time.h>

enum { BUSY_RECORDS = 512, NAP_MIN_NS = 200 * 1000, POLL_DEFAULT_NS = 10 * 1000 * 1000 };

static void nap(int64_t for_ns)
{
    const struct timespec t = {.tv_sec = for_ns / 1000000000, .tv_nsec = for_ns % 1000000000};
    (void)nanosleep(&t, NULL); /* cut short is as good */
}

static void report_health(struct weir_stats *st)
{
    const struct weir_stats_start_opts *const o = &st->runner.opts;
    if (!o->health)
        return;
    struct weir_stats_health h;
    weir_stats_get_health(st, &h);
    o->health(o->ctx, &h);
}

static bool hand_over(struct weir_stats *st)
{
    bool any = false;
    for (struct weir_batch *b; (b = weir_stats_take_batch(st)) != NULL; any = true)
        st->runner.opts.batch(st->runner.opts.ctx, b);
    return any;
}

static void *run(void *arg)
{
    struct weir_stats *const st = arg;
    struct wr_runner *const r = &st->runner;
    int64_t pause_ns = NAP_MIN_NS;
    for (;;) {
        /* Both read first (acquire): what was committed before is drained below. */
        const bool stop = atomic_load_explicit(&r->stop, memory_order_acquire);
        const uint64_t wanted = atomic_load_explicit(&r->flush_wanted, memory_order_acquire);
        const bool flush = wanted != atomic_load_explicit(&r->flush_done, memory_order_relaxed);
        int64_t wall_ns;
        int64_t mono_ns;
        r->opts.clock(r->opts.clock_ctx, &wall_ns, &mono_ns);
        const size_t count = weir_stats_poll(st, wall_ns, mono_ns);
        if (stop || flush)
            weir_stats_seal_all(st, wall_ns, mono_ns);
        if (hand_over(st) || stop)
            report_health(st);
        /* release: the batches are with their taker. */
        atomic_store_explicit(&r->flush_done, wanted, memory_order_release);
        if (stop)
            return NULL;
        if (count > 0)
            pause_ns = NAP_MIN_NS;
        else if (pause_ns < r->opts.poll_for_ns)
            pause_ns *= 2;
        if (count < BUSY_RECORDS)
            nap(pause_ns < r->opts.poll_for_ns ? pause_ns : r->opts.poll_for_ns);
    }
}

static int take_opts(const struct weir_stats_start_opts *from, struct weir_stats_start_opts *ret)
{
    struct weir_stats_start_opts o = {0};
    if (!from || from->struct_size < sizeof from->struct_size || from->struct_size > 4096)
        return WEIR_EINVAL;
    memcpy(&o, from, from->struct_size < sizeof o ? from->struct_size : sizeof o);
    if (!o.clock)
        o.clock = wr_clock_read;
    if (o.poll_for_ns == 0)
        o.poll_for_ns = POLL_DEFAULT_NS;
    if (!o.batch || o.poll_for_ns < NAP_MIN_NS || o.poll_for_ns > 60 * INT64_C(1000000000))
        return WEIR_EINVAL;
    *ret = o;
    return WEIR_OK;
}

/* The host's signals are the host's: its handlers do not run on this thread. */
static int start_thread(struct weir_stats *st)
{
    sigset_t all;
    sigset_t before;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    const int error = pthread_create(&st->runner.thread, NULL, run, st);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error ? WEIR_ENOMEM : WEIR_OK;
}

int weir_stats_start(struct weir_stats *stats, const struct weir_stats_start_opts *opts)
{
    struct wr_runner *const r = &stats->runner;
    if (!wr_stats_owner_ready(stats))
        return WEIR_ENOMEM;
    if (atomic_load_explicit(&r->running, memory_order_acquire))
        return WEIR_EBUSY;
    const int e = take_opts(opts, &r->opts);
    if (e != WEIR_OK)
        return e;
    atomic_store_explicit(&r->stop, false, memory_order_relaxed);
    const int started = start_thread(stats);
    if (started == WEIR_OK)
        atomic_store_explicit(&r->running, true, memory_order_release);
    return started;
}

static bool is_runner(const struct wr_runner *r)
{
    return pthread_equal(pthread_self(), r->thread);
}

void weir_stats_stop(struct weir_stats *stats)
{
    struct wr_runner *const r = &stats->runner;
    (void)wr_stats_generation(stats); /* a child finds no thread */
    if (!atomic_load_explicit(&r->running, memory_order_acquire) || is_runner(r))
        return;
    /* release: what this thread committed before comes first. */
    atomic_store_explicit(&r->stop, true, memory_order_release);
    (void)pthread_join(r->thread, NULL);
    atomic_store_explicit(&r->running, false, memory_order_release);
}

int weir_stats_flush(struct weir_stats *stats)
{
    struct wr_runner *const r = &stats->runner;
    (void)wr_stats_generation(stats);
    if (!atomic_load_explicit(&r->running, memory_order_acquire) || is_runner(r))
        return WEIR_EINVAL;
    /* release: what this thread committed before comes first. */
    const uint64_t ticket =
        atomic_fetch_add_explicit(&r->flush_wanted, 1, memory_order_release) + 1;
    while (atomic_load_explicit(&r->flush_done, memory_order_acquire) < ticket) {
        if (!atomic_load_explicit(&r->running, memory_order_acquire))
            return WEIR_EINVAL; /* stopped meanwhile; what was there is sealed all the same */
        nap(NAP_MIN_NS);
    }
    return WEIR_OK;
}

void wr_runner_forget(struct wr_runner *r)
{
    atomic_store_explicit(&r->running, false, memory_order_relaxed);
    atomic_store_explicit(&r->stop, false, memory_order_relaxed);
    atomic_store_explicit(&r->flush_done,
                          atomic_load_explicit(&r->flush_wanted, memory_order_relaxed),
                          memory_order_relaxed);
}
