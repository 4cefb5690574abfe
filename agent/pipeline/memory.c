/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory: see memory.h. The store asks about each of its series first; those answers are kept for
 * the series that are in memory too, so that the visitor is asked once a series.
 */
#include "pipeline/memory.h"

#include "store/labels.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct series {
    struct query_series shown;
    struct weir_label *labels;
    int64_t created_ns; /* start of its first window in memory */
    bool is_stored;
    bool is_matched; /* by the scan in progress */
};

struct part {
    struct store_rows rows;
    enum memory_kind kind;
    uint32_t *series; /* of each row */
};

struct memory {
    struct store_map *map; /* canonical labels to series */
    struct series *series;
    size_t series_cap;
    struct part *parts;
    size_t part_count;
    size_t part_cap;
    struct store_buf form;
};

int memory_new(struct memory **ret_memory)
{
    struct memory *const m = calloc(1, sizeof *m);
    if (!m)
        return -ENOMEM;
    if (store_map_new(&m->map)) {
        free(m);
        return -ENOMEM;
    }
    *ret_memory = m;
    return 0;
}

void memory_free(struct memory *m)
{
    if (!m)
        return;
    for (size_t i = 0; i < store_map_count(m->map) && i < m->series_cap; i++)
        free(m->series[i].labels);
    for (size_t i = 0; i < m->part_count; i++)
        free(m->parts[i].series);
    store_map_free(m->map);
    store_buf_done(&m->form);
    free(m->series);
    free(m->parts);
    free(m);
}

static int grow_series(struct memory *m)
{
    const size_t cap = m->series_cap ? m->series_cap * 2 : 64;
    struct series *const series = realloc(m->series, cap * sizeof *series);
    if (!series)
        return -ENOMEM;
    memset(series + m->series_cap, 0, (cap - m->series_cap) * sizeof *series);
    m->series = series;
    m->series_cap = cap;
    return 0;
}

/* The series of the labels in m->form. */
static int64_t find_or_add(struct memory *m, int64_t start_ns)
{
    const size_t before = store_map_count(m->map);
    if (before == m->series_cap && grow_series(m))
        return -ENOMEM;
    const int64_t n = store_map_add(m->map, (struct weir_bytes){m->form.ptr, m->form.len});
    if (n < 0)
        return n;
    struct series *const s = &m->series[n];
    if ((size_t)n < before) {
        if (start_ns < s->created_ns)
            s->created_ns = start_ns;
        return n;
    }
    struct weir_label labels[WEIR_LABELS_MAX];
    size_t count = 0;
    if (store_labels_decode(store_map_get(m->map, (size_t)n), labels, WEIR_LABELS_MAX, &count))
        return -EIO;
    struct weir_label *const kept = malloc((count + 1) * sizeof *kept);
    if (!kept)
        return -ENOMEM;
    memcpy(kept, labels, count * sizeof *kept);
    *s = (struct series){
        .shown = {.id = STORE_SERIES_ID_END + (uint64_t)n, .labels = kept, .label_count = count},
        .labels = kept,
        .created_ns = start_ns,
    };
    return n;
}

static int find_series(struct memory *m, const struct store_rows *rows, uint32_t *series)
{
    struct weir_label labels[WEIR_LABELS_MAX];
    for (size_t i = 0; i < rows->info.rows; i++) {
        size_t count = rows->labels(rows->ctx, i, labels, WEIR_LABELS_MAX);
        if (count > WEIR_LABELS_MAX)
            count = WEIR_LABELS_MAX;
        const int r = store_labels_encode(&m->form, labels, count);
        if (r)
            return r;
        const int64_t n = find_or_add(m, rows->info.start_ns);
        if (n < 0)
            return (int)n;
        series[i] = (uint32_t)n;
    }
    return 0;
}

int memory_add(struct memory *m, const struct store_rows *rows, enum memory_kind kind)
{
    if (!rows->info.rows)
        return 0;
    if (m->part_count == m->part_cap) {
        const size_t cap = m->part_cap ? m->part_cap * 2 : 8;
        struct part *const parts = realloc(m->parts, cap * sizeof *parts);
        if (!parts)
            return -ENOMEM;
        m->parts = parts;
        m->part_cap = cap;
    }
    uint32_t *const series = calloc(rows->info.rows, sizeof *series);
    if (!series)
        return -ENOMEM;
    const int r = find_series(m, rows, series);
    if (r) {
        free(series);
        return r;
    }
    m->parts[m->part_count++] = (struct part){.rows = *rows, .kind = kind, .series = series};
    return 0;
}

/* Stands between the store and the visitor. */
struct between {
    struct memory *m;
    const struct query_visitor *visitor;
    int code; /* no memory to look a series up */
};

static struct series *find_shown(struct between *b, const struct query_series *shown)
{
    struct weir_label labels[WEIR_LABELS_MAX];
    const size_t count =
        shown->label_count < WEIR_LABELS_MAX ? shown->label_count : WEIR_LABELS_MAX;
    memcpy(labels, shown->labels, count * sizeof *labels);
    const int r = store_labels_encode(&b->m->form, labels, count);
    if (r) {
        b->code = r;
        return NULL;
    }
    const int64_t n =
        store_map_find(b->m->map, (struct weir_bytes){b->m->form.ptr, b->m->form.len});
    return n < 0 ? NULL : &b->m->series[n];
}

static bool between_match(void *ctx, const struct query_series *shown)
{
    struct between *const b = ctx;
    const bool is_matched = b->visitor->match(b->visitor->ctx, shown);
    struct series *const s = find_shown(b, shown);
    if (s) {
        s->shown.id = shown->id;
        s->is_stored = true;
        s->is_matched = is_matched;
    }
    return is_matched;
}

static int between_base(void *ctx, const struct query_series *shown, const struct query_base *base)
{
    struct between *const b = ctx;
    const struct series *const s = find_shown(b, shown);
    struct query_base earlier = *base;
    if (s && s->created_ns < base->created_ns)
        earlier.created_ns = s->created_ns;
    return b->visitor->base(b->visitor->ctx, shown, &earlier);
}

static int between_window(void *ctx, const struct query_series *shown,
                          const struct query_window *window)
{
    const struct between *const b = ctx;
    return b->code ? b->code : b->visitor->window(b->visitor->ctx, shown, window);
}

/* The series that the store does not have. */
static int show_new(struct memory *m, const struct query_select *select,
                    const struct query_visitor *visitor)
{
    const size_t count = store_map_count(m->map);
    for (size_t i = 0; i < count; i++) {
        struct series *const s = &m->series[i];
        if (s->is_stored)
            continue;
        s->is_matched = visitor->match(visitor->ctx, &s->shown);
        if (!s->is_matched || !select->totals)
            continue;
        const struct query_base base = {.created_ns = s->created_ns};
        const int r = visitor->base(visitor->ctx, &s->shown, &base);
        if (r)
            return r;
    }
    return 0;
}

static int show_part(const struct memory *m, const struct part *part,
                     const struct query_select *select, const struct query_visitor *visitor)
{
    const struct weir_batch_info *const info = &part->rows.info;
    struct query_window w = {.start_ns = info->start_ns, .end_ns = info->start_ns + info->for_ns};
    if (part->kind == MEMORY_OPEN && w.end_ns > select->until_ns && w.start_ns < select->until_ns)
        w.end_ns = select->until_ns; /* its end lies ahead */
    if (w.end_ns <= select->after_ns || w.end_ns > select->until_ns)
        return 0;
    for (size_t i = 0; i < info->rows; i++) {
        const struct series *const s = &m->series[part->series[i]];
        if (!s->is_matched)
            continue;
        part->rows.row(part->rows.ctx, i, &w.row);
        const int r = visitor->window(visitor->ctx, &s->shown, &w);
        if (r)
            return r;
    }
    return 0;
}

int memory_scan(struct memory *m, struct store_reader *reader, const struct query_select *select,
                const struct query_visitor *visitor)
{
    if (!m->part_count)
        return store_reader_scan(reader, select, visitor);
    struct between b = {.m = m, .visitor = visitor};
    const struct query_visitor wrapped = {
        .ctx = &b, .match = between_match, .base = between_base, .window = between_window};
    int r = store_reader_scan(reader, select, &wrapped);
    if (r == 0)
        r = b.code;
    if (r == 0)
        r = show_new(m, select, visitor);
    for (size_t i = 0; i < m->part_count && r == 0; i++)
        r = show_part(m, &m->parts[i], select, visitor);
    return r;
}
