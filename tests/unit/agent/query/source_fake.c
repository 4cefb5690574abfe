/* SPDX-License-Identifier: Apache-2.0 */
/* source_fake: see the header. */
#include "source_fake.h"

#include "t.h"

#include <string.h>

static int scan(void *ctx, const struct query_select *select, const struct query_visitor *visitor)
{
    struct fake *const f = ctx;
    if (f->fail_with)
        return f->fail_with;
    for (size_t s = 0; s < f->series_count; s++) {
        struct fake_series *const from = &f->series[s];
        const struct query_series series = {
            .id = 1000 + s * 7, .labels = from->labels, .label_count = from->label_count};
        if (!visitor->match(visitor->ctx, &series))
            continue;
        int r = 0;
        if (select->totals && from->has_base)
            r = visitor->base(visitor->ctx, &series, &from->base);
        for (size_t i = 0; i < f->window_count && r == 0; i++) {
            const struct fake_window *const w = &f->windows[i];
            const int64_t end = w->open ? select->until_ns : w->end_ns;
            if (w->series != s || end <= select->after_ns || end > select->until_ns)
                continue;
            if (w->open && (!f->include_open || w->start_ns >= select->until_ns))
                continue;
            const struct query_window window = {
                .start_ns = w->start_ns, .end_ns = w->end_ns, .row = w->row};
            r = visitor->window(visitor->ctx, &series, &window);
        }
        if (r)
            return r;
    }
    return 0;
}

void fake_init(struct fake *f)
{
    *f = (struct fake){.series_count = 0};
    f->source = (struct query_source){.ctx = f, .scan = scan};
}

static void free_row(const struct weir_row *row)
{
    /* The row borrows; here the fake is who owns. */
    union {
        const struct weir_sketch *borrowed;
        struct weir_sketch *owned;
    } u;
    u.borrowed = row->ok;
    weir_sketch_free(u.owned);
    u.borrowed = row->error;
    weir_sketch_free(u.owned);
}

void fake_done(struct fake *f)
{
    for (size_t i = 0; i < f->window_count; i++)
        free_row(&f->windows[i].row);
    for (size_t i = 0; i < f->series_count; i++)
        free_row(&f->series[i].base.row);
}

size_t fake_add_series(struct fake *f, const char *labels)
{
    T_TRUE(f->series_count < FAKE_SERIES_MAX);
    struct fake_series *const s = &f->series[f->series_count];
    while (*labels) {
        const char *const equals = strchr(labels, '=');
        const size_t len = strcspn(equals + 1, ",");
        T_TRUE(s->label_count < FAKE_LABELS_MAX);
        s->labels[s->label_count++] =
            (struct weir_label){.name = {.ptr = labels, .len = (size_t)(equals - labels)},
                                .value = {.ptr = equals + 1, .len = len}};
        labels = equals + 1 + len;
        labels += *labels == ',' ? 1 : 0;
    }
    return f->series_count++;
}

struct fake_window *fake_add_window(struct fake *f, size_t series, int64_t start_s, int64_t end_s)
{
    T_TRUE(f->window_count < FAKE_WINDOWS_MAX);
    struct fake_window *const w = &f->windows[f->window_count++];
    *w = (struct fake_window){
        .series = series, .start_ns = start_s * 1000000000, .end_ns = end_s * 1000000000};
    return w;
}

static const struct weir_sketch *with(const struct weir_sketch *sketch, int64_t duration_ns,
                                      uint64_t weight)
{
    union {
        const struct weir_sketch *borrowed;
        struct weir_sketch *owned;
    } u = {.borrowed = sketch};
    if (!u.owned) {
        const struct weir_sketch_opts opts = {.struct_size = sizeof opts, .grid = WEIR_GRID_NS};
        T_OK(weir_sketch_new(&opts, &u.owned));
    }
    T_OK(weir_sketch_add_ns(u.owned, duration_ns, weight));
    return u.borrowed;
}

void fake_hit(struct fake_window *w, int64_t duration_ns, bool error, uint64_t weight)
{
    w->row.hits += weight;
    if (error) {
        w->row.errors += weight;
        w->row.error = with(w->row.error, duration_ns, weight);
    } else {
        w->row.ok = with(w->row.ok, duration_ns, weight);
    }
}

void fake_set_base(struct fake *f, size_t series, int64_t duration_ns, uint64_t count)
{
    struct fake_series *const s = &f->series[series];
    s->has_base = true;
    s->base.row.ok = with(s->base.row.ok, duration_ns, count * WEIR_WEIGHT_ONE);
    s->base.row.hits = count * WEIR_WEIGHT_ONE;
    s->base.hits.lo += count * WEIR_WEIGHT_ONE;
}
