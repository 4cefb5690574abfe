/* SPDX-License-Identifier: Apache-2.0 */
/*
 * writer: the store thread.
 *
 * It holds the lock only to look at the queue. A batch stays first in the queue while it is
 * written, so that a view opened meanwhile takes it along and finds by its number whether it is
 * in the store. Committed batches go to done and the loop is woken: references are the loop's.
 */
#include "pipeline/internal.h"

#include "log/log.h"
#include "plat/plat.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

#define BACK_OFF_FIRST_FOR_NS INT64_C(100000000)
#define BACK_OFF_MOST_FOR_NS INT64_C(30000000000)
#define HURRY_FOR_NS INT64_C(20000000)
#define CHORES_EVERY_FOR_NS INT64_C(60000000000)
#define RETAIN_ROWS 10000
#define ROLL_ROWS 50000

static struct timespec timespec_of(int64_t ns)
{
    return (struct timespec){.tv_sec = (time_t)(ns / 1000000000), .tv_nsec = ns % 1000000000};
}

static void wait_until(pthread_cond_t *cond, pthread_mutex_t *lock, int64_t mono_ns)
{
    const struct timespec at = timespec_of(mono_ns);
    (void)pthread_cond_timedwait(cond, lock, &at);
}

/* The caller's state between two attempts. */
struct attempts {
    int64_t back_off_for_ns; /* 0 after a success */
    int64_t again_ns;        /* do not write before */
    int64_t chores_ns;       /* retention and sums are due */
};

static void note_failure_locked(struct writer *w, struct attempts *a, int code)
{
    w->errors++;
    w->ok = false;
    w->code = code;
    a->back_off_for_ns = a->back_off_for_ns ? a->back_off_for_ns * 2 : BACK_OFF_FIRST_FOR_NS;
    if (a->back_off_for_ns > BACK_OFF_MOST_FOR_NS)
        a->back_off_for_ns = BACK_OFF_MOST_FOR_NS;
    a->again_ns = plat_mono_ns() + a->back_off_for_ns;
}

static void note_success_locked(struct writer *w, struct attempts *a)
{
    struct sealed *const s = w->first;
    w->first = s->next;
    if (!w->first)
        w->last = NULL;
    w->waiting_count--;
    w->waiting_bytes -= s->bytes;
    s->next = w->done;
    w->done = s;
    w->stored++;
    w->ok = true;
    w->code = 0;
    *a = (struct attempts){.chores_ns = a->chores_ns};
    (void)pthread_cond_broadcast(&w->progress);
    (void)uv_async_send(w->wake);
}

static void say_failure(const struct store_error *error, const char *event, uint64_t number)
{
    LOG_ERROR("store", event, "err", error->text, "batch", LOG_U64(number), "code",
              LOG_I64(error->code));
}

static void say_replaced(uint64_t before, const struct store_counts *counts)
{
    if (counts->replaced > before)
        LOG_ERROR("store", "corrupt_file_replaced", "err",
                  "weir.db was damaged: renamed to weir.db.corrupt-<time>, a fresh one made");
}

/* Replace a file that a reader found corrupt. Called and returns with the lock held. */
static void mend_locked(struct writer *w)
{
    const uint64_t replaced = w->counts.replaced;
    w->mend = false; /* if it fails, the next write tries again */
    (void)pthread_mutex_unlock(&w->lock);
    struct store_error error = {0};
    struct store_counts counts;
    const int r = store_mend(w->store, &error);
    store_get_counts(w->store, &counts);
    if (r)
        say_failure(&error, "replace_failed", 0);
    say_replaced(replaced, &counts);
    (void)pthread_mutex_lock(&w->lock);
    w->counts = counts;
    w->errors += r != 0;
}

/* Write the first batch. Called and returns with the lock held. */
static void write_first_locked(struct writer *w, struct attempts *a)
{
    struct sealed *const s = w->first;
    w->writing = s;
    const uint64_t replaced = w->counts.replaced;
    void (*const hook)(void *, enum writer_stage, uint64_t) = w->hook;
    void *const hook_ctx = w->hook_ctx;
    (void)pthread_mutex_unlock(&w->lock);

    struct store_error error = {0};
    struct store_counts counts;
    if (hook)
        hook(hook_ctx, WRITER_BEFORE_COMMIT, s->number);
    const int r = store_write(w->store, s->batch, s->number, &error);
    if (hook)
        hook(hook_ctx, WRITER_AFTER_COMMIT, s->number);
    store_get_counts(w->store, &counts);
    if (r)
        say_failure(&error, "write_failed", s->number);
    say_replaced(replaced, &counts);

    (void)pthread_mutex_lock(&w->lock);
    w->writing = NULL;
    w->counts = counts;
    if (r)
        note_failure_locked(w, a, r);
    else
        note_success_locked(w, a);
    if (counts.over_bytes) /* a store that fills fast does not wait for the minute */
        a->chores_ns = plat_mono_ns();
}

/* One step of retention, or of summing hours. Called and returns with the lock held. */
static void chore_step_locked(struct writer *w, struct attempts *a)
{
    const uint64_t replaced = w->counts.replaced;
    (void)pthread_mutex_unlock(&w->lock);
    struct store_error error = {0};
    struct store_counts counts;
    int64_t n = store_retain(w->store, plat_wall_ns(), RETAIN_ROWS, &error);
    if (n == 0)
        n = store_roll(w->store, plat_wall_ns(), ROLL_ROWS, &error);
    store_get_counts(w->store, &counts);
    if (n < 0)
        say_failure(&error, "upkeep_failed", 0);
    say_replaced(replaced, &counts);
    (void)pthread_mutex_lock(&w->lock);
    w->counts = counts;
    w->errors += n < 0;
    if (n <= 0) /* done for now; else the next step follows the next batch */
        a->chores_ns = plat_mono_ns() + w->chores_every_for_ns;
}

static void *run(void *arg)
{
    struct writer *const w = arg;
    struct attempts a = {.chores_ns = plat_mono_ns() + w->chores_every_for_ns};
    (void)pthread_mutex_lock(&w->lock);
    while (!w->stop) {
        const int64_t now = plat_mono_ns();
        if (w->hurry && a.again_ns > now + HURRY_FOR_NS)
            a.again_ns = now + HURRY_FOR_NS;
        if (w->mend)
            mend_locked(w);
        else if (w->first && a.again_ns <= now)
            write_first_locked(w, &a);
        else if (a.chores_ns <= now && !w->hurry)
            chore_step_locked(w, &a);
        else if (w->first && a.again_ns < a.chores_ns)
            wait_until(&w->work, &w->lock, a.again_ns);
        else
            wait_until(&w->work, &w->lock, w->hurry ? now + HURRY_FOR_NS : a.chores_ns);
    }
    (void)pthread_mutex_unlock(&w->lock);
    return NULL;
}

static int init_cond(pthread_cond_t *cond)
{
    pthread_condattr_t attr;
    int r = pthread_condattr_init(&attr);
    if (r)
        return r;
    r = pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    if (r == 0)
        r = pthread_cond_init(cond, &attr);
    (void)pthread_condattr_destroy(&attr);
    return r;
}

int writer_new(struct store *store, uv_async_t *wake, struct writer **ret_writer)
{
    struct writer *const w = calloc(1, sizeof *w);
    if (!w)
        return -ENOMEM;
    w->store = store;
    w->wake = wake;
    w->ok = true;
    w->chores_every_for_ns = CHORES_EVERY_FOR_NS;
    store_get_counts(store, &w->counts);
    int r = pthread_mutex_init(&w->lock, NULL);
    if (r)
        goto no_lock;
    r = init_cond(&w->work);
    if (r)
        goto no_work;
    r = init_cond(&w->progress);
    if (r)
        goto no_progress;
    r = pthread_create(&w->thread, NULL, run, w);
    if (r)
        goto no_thread;
    w->is_running = true;
    *ret_writer = w;
    return 0;

no_thread:
    (void)pthread_cond_destroy(&w->progress);
no_progress:
    (void)pthread_cond_destroy(&w->work);
no_work:
    (void)pthread_mutex_destroy(&w->lock);
no_lock:
    free(w);
    return -r;
}

void writer_stop(struct writer *w)
{
    if (!w->is_running)
        return;
    (void)pthread_mutex_lock(&w->lock);
    w->stop = true;
    (void)pthread_cond_signal(&w->work);
    (void)pthread_mutex_unlock(&w->lock);
    (void)pthread_join(w->thread, NULL);
    w->is_running = false;
}

void writer_free(struct writer *w)
{
    if (!w)
        return;
    (void)pthread_cond_destroy(&w->progress);
    (void)pthread_cond_destroy(&w->work);
    (void)pthread_mutex_destroy(&w->lock);
    free(w);
}

void writer_push(struct writer *w, struct sealed *s)
{
    (void)pthread_mutex_lock(&w->lock);
    s->next = NULL;
    if (w->last)
        w->last->next = s;
    else
        w->first = s;
    w->last = s;
    w->waiting_count++;
    w->waiting_bytes += s->bytes;
    (void)pthread_cond_signal(&w->work);
    (void)pthread_mutex_unlock(&w->lock);
}

struct sealed *writer_evict(struct writer *w)
{
    (void)pthread_mutex_lock(&w->lock);
    struct sealed *before = w->writing; /* NULL or the first */
    struct sealed *const s = before ? before->next : w->first;
    const bool found = s && s != w->last;
    if (found) {
        if (before)
            before->next = s->next;
        else
            w->first = s->next;
        w->waiting_count--;
        w->waiting_bytes -= s->bytes;
        s->next = NULL;
    }
    (void)pthread_mutex_unlock(&w->lock);
    return found ? s : NULL;
}

void writer_mend(struct writer *w)
{
    (void)pthread_mutex_lock(&w->lock);
    w->mend = true;
    (void)pthread_cond_signal(&w->work);
    (void)pthread_mutex_unlock(&w->lock);
}

bool writer_drain(struct writer *w, int64_t deadline_ns)
{
    (void)pthread_mutex_lock(&w->lock);
    w->hurry = true;
    (void)pthread_cond_signal(&w->work);
    while (w->first && plat_mono_ns() < deadline_ns)
        wait_until(&w->progress, &w->lock, deadline_ns);
    const bool is_empty = !w->first;
    (void)pthread_mutex_unlock(&w->lock);
    return is_empty;
}

struct sealed *writer_take_done(struct writer *w)
{
    (void)pthread_mutex_lock(&w->lock);
    struct sealed *const s = w->done;
    w->done = NULL;
    (void)pthread_mutex_unlock(&w->lock);
    return s;
}

struct sealed *writer_take_rest(struct writer *w)
{
    (void)pthread_mutex_lock(&w->lock);
    struct sealed *const s = w->first;
    w->first = NULL;
    w->last = NULL;
    w->waiting_count = 0;
    w->waiting_bytes = 0;
    (void)pthread_mutex_unlock(&w->lock);
    return s;
}
