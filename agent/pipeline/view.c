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

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct pipeline_view {
    struct pipeline *p;
    struct query_source source;
    uint64_t max_number;
    struct sealed **waiting;
    size_t waiting_count;
    bool is_open_included;
    struct weir_batch **open;
    size_t open_count;
    /* From the first scan on. */
    struct store_reader *reader;
    struct memory *memory;
};

int readers_take(struct readers *r, const struct store *store, struct store_reader **ret_reader)
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

static int scan(void *ctx, const struct query_select *select, const struct query_visitor *visitor)
{
    struct pipeline_view *const v = ctx;
    const int r = v->reader ? 0 : begin(v);
    struct query_select with_open = *select;
    with_open.is_open_included = v->is_open_included;
    return r ? r : memory_scan(v->memory, v->reader, &with_open, visitor);
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
    v->is_open_included = include_open;
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
