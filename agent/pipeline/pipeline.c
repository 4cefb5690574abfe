/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pipeline: see pipeline.h. The loop's side: the engine, the timer, what is sealed, and its end.
 */
#include "pipeline/internal.h"

#include "log/log.h"
#include "plat/plat.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The engine is polled at least so often: that is how a step of the wall clock is seen. */
#define POLL_MOST_MS 1000
/* A row beside its sketches: counters, key, labels. */
#define ROW_BYTES 256
/* What a commit takes, and some answers beside it. */
#define RESERVE_PIECE_BYTES ((size_t)256 << 10)
#define RECENT_FOR_NS (INT64_C(3600) * 1000000000)
#define WINDOW_FOR_NS (INT64_C(10) * 1000000000) /* the default of weir/stats.h */

void pipeline_unref(struct sealed *s)
{
    if (--s->refs > 0)
        return;
    weir_batch_release(s->batch);
    free(s);
}

static void remember(struct pipeline *p, uint64_t number, const struct weir_batch_info *info,
                     bool is_stored)
{
    p->recent[p->recent_at] =
        (struct recent){.number = number, .window = {.info = *info, .stored = is_stored}};
    p->recent_at = (p->recent_at + 1) % PIPELINE_RECENT_MAX;
    if (p->recent_count < PIPELINE_RECENT_MAX)
        p->recent_count++;
}

/* i 0 is the newest. */
static size_t recent_index(const struct pipeline *p, size_t i)
{
    return (p->recent_at + 2 * PIPELINE_RECENT_MAX - 1 - i) % PIPELINE_RECENT_MAX;
}

/* NULL if the ring went past it. */
static struct pipeline_window *find_recent(struct pipeline *p, uint64_t number)
{
    for (size_t i = 0; i < p->recent_count; i++) {
        struct recent *const r = &p->recent[recent_index(p, i)];
        if (r->number == number)
            return &r->window;
    }
    return NULL;
}

static size_t batch_bytes(const struct weir_batch *batch, size_t rows)
{
    size_t bytes = sizeof(struct sealed) + rows * ROW_BYTES;
    for (size_t i = 0; i < rows; i++) {
        struct weir_row row;
        weir_batch_get_row(batch, i, &row);
        bytes += row.ok ? weir_sketch_bytes(row.ok) : 0;
        bytes += row.error ? weir_sketch_bytes(row.error) : 0;
    }
    return bytes;
}

static void count_lost(struct pipeline *p, const struct weir_batch *batch, uint64_t number,
                       const char *why)
{
    struct weir_batch_info info;
    weir_batch_get_info(batch, &info);
    p->batches_lost++;
    p->lost_spans += info.counts.aggregated;
    p->lost_weight += info.counts.rows_weight;
    struct pipeline_window *const w = find_recent(p, number);
    if (w)
        w->lost = true;
    LOG_ERROR("pipeline", "batch_lost", "why", why, "batch", LOG_U64(number), "start_ns",
              LOG_I64(info.start_ns), "spans", LOG_U64(info.counts.aggregated), "weight",
              LOG_U64(info.counts.rows_weight));
}

static size_t waiting_bytes(struct pipeline *p)
{
    (void)pthread_mutex_lock(&p->writer->lock);
    const size_t bytes = p->writer->waiting_bytes;
    (void)pthread_mutex_unlock(&p->writer->lock);
    return bytes;
}

static void keep_bound(struct pipeline *p)
{
    while (waiting_bytes(p) > p->pending_max_bytes) {
        struct sealed *const s = writer_evict(p->writer);
        if (!s)
            return;
        count_lost(p, s->batch, s->number, "the bound of waiting batches is reached");
        pipeline_unref(s);
    }
}

static void hand_over(struct pipeline *p, struct weir_batch *batch)
{
    struct weir_batch_info info;
    weir_batch_get_info(batch, &info);
    const uint64_t number = p->next_number++;
    p->batches_sealed++;
    remember(p, number, &info, false);
    struct sealed *const s = calloc(1, sizeof *s);
    if (!s) {
        count_lost(p, batch, number, "no memory");
        weir_batch_release(batch);
        return;
    }
    *s = (struct sealed){
        .batch = batch, .number = number, .bytes = batch_bytes(batch, info.rows), .refs = 1};
    writer_push(p->writer, s);
    keep_bound(p);
}

static void take_batches(struct pipeline *p)
{
    struct weir_batch *batch;
    while ((batch = weir_stats_take_batch(p->stats)))
        hand_over(p, batch);
}

static void on_timer(uv_timer_t *timer);

static void arm(struct pipeline *p)
{
    const int64_t for_ns = weir_stats_next_seal_for_ns(p->stats, plat_mono_ns());
    const uint64_t ms = (uint64_t)(for_ns < 0 ? 0 : for_ns) / 1000000 + 1;
    (void)uv_timer_start(&p->handles->timer, on_timer, ms < POLL_MOST_MS ? ms : POLL_MOST_MS, 0);
}

static bool has_reserve(const struct pipeline *p)
{
    return p->reserve[0] != NULL;
}

static void free_pieces(void *pieces[PIPELINE_RESERVE_PIECES])
{
    for (size_t i = 0; i < PIPELINE_RESERVE_PIECES; i++) {
        free(pieces[i]);
        pieces[i] = NULL;
    }
}

/* All or none. Never written to, so they cost address space alone. */
static bool take_pieces(void *pieces[PIPELINE_RESERVE_PIECES])
{
    for (size_t i = 0; i < PIPELINE_RESERVE_PIECES; i++) {
        pieces[i] = malloc(RESERVE_PIECE_BYTES);
        if (!pieces[i]) {
            free_pieces(pieces);
            return false;
        }
    }
    return true;
}

static void take_reserve(struct pipeline *p)
{
    /* Twice that: taking it must not be what makes memory short again. */
    void *more[PIPELINE_RESERVE_PIECES] = {NULL};
    if (take_pieces(more))
        (void)take_pieces(p->reserve);
    free_pieces(more);
}

static void watch_memory(struct pipeline *p)
{
    struct pipeline_health h;
    pipeline_get_health(p, &h);
    const uint64_t drops = h.stats.dropped[WEIR_DROP_MEMORY];
    const bool refused = drops > p->seen_drops || h.store_code == -ENOMEM;
    p->seen_drops = drops;
    if (has_reserve(p) && refused) {
        free_pieces(p->reserve);
        LOG_ERROR("pipeline", "memory_short", "err",
                  "no memory for spans or for the store: payloads are refused until there is some");
    } else if (!has_reserve(p) && !refused) {
        take_reserve(p);
        if (has_reserve(p))
            LOG_INFO("pipeline", "memory_enough");
    }
}

bool pipeline_is_short(const struct pipeline *p)
{
    return !has_reserve(p);
}

static void on_timer(uv_timer_t *timer)
{
    struct pipeline *const p = timer->data;
    pipeline_poll(p);
    watch_memory(p);
    arm(p);
}

void pipeline_poll(struct pipeline *p)
{
    if (p->is_stopped)
        return;
    (void)weir_stats_poll(p->stats, plat_wall_ns(), plat_mono_ns());
    take_batches(p);
}

/* Let go of what the store has. */
static void settle(struct pipeline *p)
{
    for (struct sealed *s = writer_take_done(p->writer); s;) {
        struct sealed *const next = s->next;
        struct pipeline_window *const w = find_recent(p, s->number);
        if (w)
            w->stored = true;
        pipeline_unref(s);
        s = next;
    }
}

static void on_wake(uv_async_t *wake)
{
    settle(wake->data);
    pipeline_poll(wake->data); /* a seal may have waited for the room of what was given back */
}

static void on_closed(uv_handle_t *handle)
{
    struct handles *const h = handle->data;
    if (--h->open == 0)
        free(h);
}

static void close_handles(struct handles *h)
{
    h->timer.data = h;
    h->wake.data = h;
    uv_close((uv_handle_t *)&h->timer, on_closed);
    uv_close((uv_handle_t *)&h->wake, on_closed);
}

static int open_handles(struct pipeline *p)
{
    struct handles *const h = calloc(1, sizeof *h);
    if (!h)
        return -ENOMEM;
    const int r = uv_async_init(p->loop, &h->wake, on_wake);
    if (r) {
        free(h);
        return r;
    }
    (void)uv_timer_init(p->loop, &h->timer); /* always 0 */
    h->open = 2;
    h->timer.data = p;
    h->wake.data = p;
    p->handles = h;
    return 0;
}

/* A restart shows the last hour's windows. A store that cannot give them costs only that. */
static void load_recent(struct pipeline *p)
{
    struct store_recent *const found = calloc(PIPELINE_RECENT_MAX, sizeof *found);
    if (!found)
        return;
    const int64_t n =
        store_get_recent(p->store, plat_wall_ns() - RECENT_FOR_NS, found, PIPELINE_RECENT_MAX);
    for (int64_t i = n - 1; i >= 0; i--)
        remember(p, found[i].number, &found[i].info, true);
    free(found);
}

int pipeline_new(const struct pipeline_opts *opts, struct pipeline **ret_pipeline)
{
    struct pipeline *const p = calloc(1, sizeof *p);
    if (!p)
        return WEIR_ENOMEM;
    p->loop = opts->loop;
    p->store = opts->store;
    p->pending_max_bytes =
        opts->pending_max_bytes ? opts->pending_max_bytes : PIPELINE_PENDING_BYTES_DEFAULT;
    p->window_for_ns = opts->stats.window_for_ns > 0 ? opts->stats.window_for_ns : WINDOW_FOR_NS;
    p->next_number = store_last_number(opts->store) + 1;
    int r = pthread_mutex_init(&p->readers.lock, NULL);
    if (r) {
        free(p);
        return -r;
    }
    r = weir_stats_new(&opts->stats, &p->stats);
    if (r == WEIR_OK)
        r = weir_producer_new(p->stats, PIPELINE_RING_BYTES, WEIR_PRODUCER_OWNER, &p->producer);
    if (r == WEIR_OK)
        r = open_handles(p);
    if (r == 0) {
        load_recent(p);
        r = writer_new(p->store, &p->handles->wake, &p->writer);
    }
    if (r) {
        p->is_stopped = true;
        pipeline_free(p);
        return r;
    }
    take_reserve(p);
    arm(p);
    *ret_pipeline = p;
    return 0;
}

static void lose_rest(struct pipeline *p)
{
    for (struct sealed *s = writer_take_rest(p->writer); s;) {
        struct sealed *const next = s->next;
        count_lost(p, s->batch, s->number, "the store did not take it before the end");
        pipeline_unref(s);
        s = next;
    }
}

int pipeline_stop(struct pipeline *p, int64_t deadline_for_ns)
{
    if (p->is_stopped)
        return 0;
    const int64_t now = plat_mono_ns();
    int64_t deadline_ns;
    if (__builtin_add_overflow(now, deadline_for_ns, &deadline_ns))
        deadline_ns = INT64_MAX;
    (void)uv_timer_stop(&p->handles->timer);
    weir_stats_seal_all(p->stats, plat_wall_ns(), now);
    take_batches(p);
    p->is_stopped = true;
    const bool is_written = writer_drain(p->writer, deadline_ns);
    writer_stop(p->writer);
    settle(p);
    if (!is_written)
        lose_rest(p);
    return is_written ? 0 : -ETIMEDOUT;
}

void pipeline_free(struct pipeline *p)
{
    if (!p)
        return;
    if (!p->is_stopped)
        (void)pipeline_stop(p, 0);
    writer_free(p->writer);
    readers_clear(&p->readers);
    (void)pthread_mutex_destroy(&p->readers.lock);
    if (p->handles)
        close_handles(p->handles);
    weir_producer_free(p->producer);
    weir_stats_free(p->stats);
    free_pieces(p->reserve);
    free(p);
}

struct weir_stats *pipeline_stats(struct pipeline *p)
{
    return p->stats;
}

struct weir_producer *pipeline_producer(struct pipeline *p)
{
    return p->producer;
}

size_t pipeline_recent(const struct pipeline *p, struct pipeline_window *windows, size_t cap)
{
    size_t n = 0;
    for (; n < cap && n < p->recent_count; n++)
        windows[n] = p->recent[recent_index(p, n)].window;
    return n;
}

void pipeline_get_health(const struct pipeline *p, struct pipeline_health *ret_health)
{
    struct pipeline_health h = {
        .batches_sealed = p->batches_sealed,
        .batches_lost = p->batches_lost,
        .lost_spans = p->lost_spans,
        .lost_weight = p->lost_weight,
    };
    weir_stats_get_health(p->stats, &h.stats);
    struct writer *const w = p->writer;
    (void)pthread_mutex_lock(&w->lock);
    h.store = w->counts;
    h.batches_stored = w->stored;
    h.batches_pending = w->waiting_count;
    h.pending_bytes = w->waiting_bytes;
    h.store_errors = w->errors;
    h.store_ok = w->ok;
    h.store_code = w->code;
    (void)pthread_mutex_unlock(&w->lock);
    *ret_health = h;
}
