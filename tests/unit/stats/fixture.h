/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STATS_FIXTURE_H
#define STATS_FIXTURE_H
/* fixture: an engine with one owner producer, spans made in a line, rows found by their labels. */
#include "stats/stats.h"
#include "t.h"

#include <string.h>

static const int64_t f_second = 1000000000;
/* A wall clock on a window's edge, and a monotonic one far from it. */
static const int64_t f_t0 = INT64_C(1800000000) * 1000000000;
static const int64_t f_wall_minus_mono = INT64_C(1799990000) * 1000000000;

struct fixture {
    struct t_heap heap;
    struct weir_stats *st;
    struct weir_producer *p;
    int64_t now; /* wall */
    int64_t wall_minus_mono;
    bool unweighted; /* sketches do not take the weight of spans: the second equation is not theirs
                      */
};

static inline struct weir_stats_opts f_opts(struct fixture *f)
{
    f->heap = (struct t_heap){.fail_at = -1};
    f->unweighted = false;
    return (struct weir_stats_opts){
        .struct_size = sizeof(struct weir_stats_opts), .alloc = {t_heap_fn, &f->heap}, .seed = 1};
}

static inline void f_poll(struct fixture *f)
{
    (void)weir_stats_poll(f->st, f->now, f->now - f->wall_minus_mono);
    T_TRUE(wr_shard_check(&f->st->shard));
}

static inline void f_open(struct fixture *f, const struct weir_stats_opts *opts)
{
    T_OK(weir_stats_new(opts, &f->st));
    T_OK(weir_producer_new(f->st, 0, WEIR_PRODUCER_OWNER, &f->p));
    f->now = f_t0;
    f->wall_minus_mono = f_wall_minus_mono;
    f_poll(f);
}

/* Report: seal every open window now. */
static inline void f_seal(struct fixture *f)
{
    weir_stats_seal_all(f->st, f->now, f->now - f->wall_minus_mono);
}

static inline void f_close(struct fixture *f)
{
    weir_producer_free(f->p);
    weir_stats_free(f->st);
    T_EQ_I64(f->heap.live, 0);
}

static inline struct weir_bytes f_str(const char *s)
{
    return (struct weir_bytes){.ptr = s, .len = strlen(s)};
}

/* A span that ends at end_ns. */
static inline struct weir_span f_span(const char *service, const char *resource, int64_t end_ns,
                                      int64_t duration_ns)
{
    return (struct weir_span){.service = f_str(service),
                              .name = f_str("op"),
                              .resource = f_str(resource),
                              .type = f_str("web"),
                              .trace_id = 7,
                              .span_id = 8,
                              .start_ns = end_ns - duration_ns,
                              .duration_ns = duration_ns};
}

static inline void f_publish(struct fixture *f, const struct weir_span *spans, size_t count)
{
    const struct weir_source source = {.now_ns = f->now};
    T_OK(weir_stats_publish(f->p, &source, spans, count));
    f_poll(f);
}

/* Checks both equations, then returns the batch, which the caller releases. NULL when none. */
static inline struct weir_batch *f_take(struct fixture *f, struct weir_batch_info *info)
{
    struct weir_batch *const b = weir_stats_take_batch(f->st);
    if (!b)
        return NULL;
    weir_batch_get_info(b, info);
    const struct weir_window_counts *const c = &info->counts;
    uint64_t terms = c->aggregated + c->ineligible + c->partial;
    for (size_t i = 0; i < WEIR_DROP_COUNT; i++)
        terms += c->dropped[i];
    T_EQ_U64(c->received, terms);
    T_EQ_U64(c->rows_weight, c->admitted_weight);
    if (!f->unweighted)
        T_EQ_U64(c->sketch_weight, c->admitted_weight);
    return b;
}

static inline bool f_has(const struct weir_batch *b, size_t row, const char *name,
                         const char *value)
{
    struct weir_label l[WEIR_LABELS_MAX];
    const size_t n = weir_batch_get_labels(b, row, l, WEIR_LABELS_MAX);
    for (size_t i = 0; i < n; i++) {
        if (l[i].name.len == strlen(name) && memcmp(l[i].name.ptr, name, l[i].name.len) == 0)
            return value && l[i].value.len == strlen(value) &&
                   memcmp(l[i].value.ptr, value, l[i].value.len) == 0;
    }
    return value == NULL;
}
#endif
