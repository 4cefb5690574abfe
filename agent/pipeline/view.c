/* SPDX-License-Identifier: Apache-2.0 */
/*
 * view: what one query sees.
 *
 * The loop's thread takes, in one go: references to the batches that wait, a snapshot of the open
 * windows, and the highest number given to a batch so far. The read transaction begins later, at
 * the first scan, on whatever thread scans. Its highest number L tells which of the batches taken
 * along are in it already (number <= L: skipped); batches sealed after the view was opened have
 * numbers above the view's and are hidden from it, since the snapshot holds their rows.
 */
#include "pipeline/internal.h"
#include "pipeline/memory.h"

#include "log/log.h"
#include "plat/plat.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct pipeline_view {
    struct pipeline *p;
    struct query_source source;
    uint64_t max_number;
    struct sealed **waiting;
    size_t waiting_count;
    struct weir_batch **open;
    size_t open_count;
    int64_t opened_ns; /* wall clock; INT64_MAX without the open windows */
    /* From the first scan on. */
    struct store_reader *reader;
    struct memory *memory;
};

int readers_take(struct readers *r, struct store *store, struct store_reader **ret_reader)
{
    struct store_reader *reader = NULL;
    (void)pthread_mutex_lock(&r->lock);
    if (r->count)
        reader = r->spare[--r->count];
    (void)pthread_mutex_unlock(&r->lock);
    if (reader) {
        *ret_reader = reader;
        return 0;
    }
    struct store_error error = {0};
    const int code = store_reader_open(store, ret_reader, &error);
    if (code)
        LOG_ERROR("store", "read_failed", "err", error.text, "code", LOG_I64(code));
    return code;
}

void readers_give(struct readers *r, struct store_reader *reader)
{
    store_reader_end(reader);
    (void)pthread_mutex_lock(&r->lock);
    const bool is_kept = r->count < PIPELINE_READERS_MAX;
    if (is_kept)
        r->spare[r->count++] = reader;
    (void)pthread_mutex_unlock(&r->lock);
    if (!is_kept)
        store_reader_close(reader);
}

void readers_clear(struct readers *r)
{
    while (r->count)
        store_reader_close(r->spare[--r->count]);
}

static int fill_memory(const struct pipeline_view *v, struct memory *m, uint64_t last_number)
{
    int r = 0;
    for (size_t i = 0; i < v->waiting_count && r == 0; i++) {
        if (v->waiting[i]->number <= last_number)
            continue;
        const struct store_rows rows = store_rows_of(v->waiting[i]->batch);
        r = memory_add(m, &rows, MEMORY_SEALED);
    }
    for (size_t i = 0; i < v->open_count && r == 0; i++) {
        const struct store_rows rows = store_rows_of(v->open[i]);
        r = memory_add(m, &rows, MEMORY_OPEN);
    }
    return r;
}

static int begin(struct pipeline_view *v)
{
    struct store_reader *reader = NULL;
    int r = readers_take(&v->p->readers, v->p->store, &reader);
    if (r)
        return r;
    uint64_t last_number = 0;
    struct memory *m = NULL;
    r = store_reader_begin(reader, v->max_number, &last_number);
    if (r == 0)
        r = memory_new(&m);
    if (r == 0)
        r = fill_memory(v, m, last_number);
    if (r) {
        LOG_WARN("store", "read_failed", "code", LOG_I64(r));
        memory_free(m);
        readers_give(&v->p->readers, reader);
        return r;
    }
    v->reader = reader;
    v->memory = m;
    return 0;
}

/*
 * A window that is still running may be sealed in part: a stop seals it early, and after the start
 * it is open again. Then the store's part is shown as the open one is: as if it ended at until_ns.
 * So one window more is scanned, and those that begin past until_ns are left out here.
 */
struct running {
    const struct query_visitor *visitor;
    int64_t until_ns;
};

static bool running_match(void *ctx, const struct query_series *series)
{
    const struct running *const r = ctx;
    return r->visitor->match(r->visitor->ctx, series);
}

static int running_base(void *ctx, const struct query_series *series, const struct query_base *base)
{
    const struct running *const r = ctx;
    return r->visitor->base(r->visitor->ctx, series, base);
}

static int running_window(void *ctx, const struct query_series *series,
                          const struct query_window *window)
{
    const struct running *const r = ctx;
    if (window->end_ns <= r->until_ns)
        return r->visitor->window(r->visitor->ctx, series, window);
    if (window->start_ns >= r->until_ns)
        return 0;
    struct query_window cut = *window;
    cut.end_ns = r->until_ns;
    return r->visitor->window(r->visitor->ctx, series, &cut);
}

static int scan_all(struct pipeline_view *v, const struct query_select *select,
                    const struct query_visitor *visitor)
{
    const int64_t for_ns = v->p->window_for_ns;
    const int r = v->reader ? 0 : begin(v);
    if (r)
        return r;
    /* Of a time further back no window was running when the view was opened. */
    if (v->opened_ns == INT64_MAX || select->until_ns <= v->opened_ns - for_ns)
        return memory_scan(v->memory, v->reader, select, visitor);
    struct running running = {.visitor = visitor, .until_ns = select->until_ns};
    const struct query_visitor wrapped = {
        .ctx = &running, .match = running_match, .base = running_base, .window = running_window};
    struct query_select wide = *select;
    if (__builtin_add_overflow(wide.until_ns, for_ns, &wide.until_ns))
        wide.until_ns = INT64_MAX;
    return memory_scan(v->memory, v->reader, &wide, &wrapped);
}

static int scan(void *ctx, const struct query_select *select, const struct query_visitor *visitor)
{
    struct pipeline_view *const v = ctx;
    const int r = scan_all(v, select, visitor);
    if (r == -EUCLEAN)
        writer_mend(v->p->writer);
    return r;
}

static int take_waiting(struct pipeline_view *v)
{
    struct writer *const w = v->p->writer;
    int r = 0;
    (void)pthread_mutex_lock(&w->lock);
    if (w->waiting_count) {
        v->waiting = calloc(w->waiting_count, sizeof(struct sealed *));
        r = v->waiting ? 0 : -ENOMEM;
    }
    for (struct sealed *s = w->first; s && v->waiting; s = s->next) {
        s->refs++;
        v->waiting[v->waiting_count++] = s;
    }
    (void)pthread_mutex_unlock(&w->lock);
    return r;
}

static int take_open(struct pipeline_view *v)
{
    struct weir_stats_health h;
    weir_stats_get_health(v->p->stats, &h);
    /* The snapshot drains the inbox first, which may open windows: room for those as well. */
    const size_t cap = (size_t)h.open_windows + 1024;
    v->open = calloc(cap, sizeof(struct weir_batch *));
    if (!v->open)
        return -ENOMEM;
    v->open_count = weir_stats_snapshot(v->p->stats, v->open, cap);
    return 0;
}

struct pipeline_view *pipeline_view_open(struct pipeline *p, bool include_open)
{
    struct pipeline_view *const v = calloc(1, sizeof *v);
    if (!v)
        return NULL;
    v->p = p;
    v->source = (struct query_source){.ctx = v, .scan = scan};
    v->max_number = p->next_number - 1;
    v->opened_ns = include_open ? plat_wall_ns() : INT64_MAX;
    p->views++;
    if (take_waiting(v) || (include_open && !p->is_stopped && take_open(v))) {
        pipeline_view_close(v);
        return NULL;
    }
    return v;
}

const struct query_source *pipeline_view_source(const struct pipeline_view *v)
{
    return &v->source;
}

void pipeline_view_close(struct pipeline_view *v)
{
    if (!v)
        return;
    memory_free(v->memory);
    if (v->reader)
        readers_give(&v->p->readers, v->reader);
    for (size_t i = 0; i < v->waiting_count; i++)
        pipeline_unref(v->waiting[i]);
    for (size_t i = 0; i < v->open_count; i++)
        weir_batch_release(v->open[i]);
    v->p->views--;
    free(v->waiting);
    free(v->open);
    free(v);
}
