/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that runs out anywhere: nothing leaks, both equations hold, what is lost is counted. */
#include "fixture.h"

enum { ROUNDS = 12 };

static int life(const struct weir_alloc *alloc, void *ctx)
{
    (void)ctx;
    const struct weir_stats_opts o = {
        .struct_size = sizeof o, .alloc = *alloc, .late = WEIR_LATE_CORRECT};
    struct weir_stats *st;
    int r = weir_stats_new(&o, &st);
    if (r != WEIR_OK)
        return r;
    struct weir_producer *p;
    r = weir_producer_new(st, 4096, WEIR_PRODUCER_OWNER, &p);
    if (r != WEIR_OK) {
        weir_stats_free(st);
        return r;
    }
    struct fixture f = {.st = st, .p = p, .now = f_t0, .wall_minus_mono = f_wall_minus_mono};
    f_poll(&f);
    const struct weir_source source = {.now_ns = f.now};
    for (int i = 0; i < ROUNDS; i++) {
        char name[8];
        (void)snprintf(name, sizeof name, "r%d", i % 7);
        struct weir_span s[12];
        for (size_t k = 0; k < 12; k++) {
            s[k] = f_span("a", name, f.now - (int64_t)(k % 5) * 15 * f_second, 1000 << (i % 20));
            s[k].span_id = k + 1;
            s[k].flags = k % 3 ? 0 : WEIR_SPAN_ERROR;
        }
        if (weir_stats_publish(p, &source, s, 12) != WEIR_OK)
            r = WEIR_ENOMEM; /* counted as dropped inbox_full */
        f_poll(&f);
        struct weir_batch *b[8];
        const size_t n = weir_stats_snapshot(st, b, 8);
        for (size_t k = 0; k < n; k++)
            weir_batch_release(b[k]);
        if (i % 4 == 3)
            f.now += 10 * f_second;
    }
    struct weir_batch_info info;
    f_seal(&f);
    for (struct weir_batch *b; (b = f_take(&f, &info));)
        weir_batch_release(b);
    struct weir_stats_health h;
    weir_stats_get_health(st, &h);
    uint64_t terms = h.aggregated + h.ineligible + h.partial;
    for (size_t i = 0; i < WEIR_DROP_COUNT; i++)
        terms += h.dropped[i];
    T_EQ_U64(h.received, ROUNDS * 12);
    T_EQ_U64(terms, h.received);
    if (h.dropped[WEIR_DROP_MEMORY] || h.snapshot_failed)
        r = WEIR_ENOMEM;
    weir_producer_free(p);
    weir_stats_free(st);
    return r;
}

/* A refusal here is not an error of a call, it is a count; so the sweep is written out. */
TEST(wherever_memory_runs_out_nothing_leaks_and_every_span_is_accounted_for)
{
    for (int sticky = 0; sticky < 2; sticky++) {
        for (long n = 0;; n++) {
            struct t_heap h = {.fail_at = n, .sticky = sticky};
            const struct weir_alloc a = {t_heap_fn, &h};
            (void)life(&a, NULL);
            T_EQ_I64(h.live, 0);
            if (h.seen <= n)
                break;
        }
    }
}

/* Refuses every block above a size, for as long as that is not 0. */
struct short_heap {
    struct t_heap heap;
    size_t most;
};

static void *short_heap_fn(void *ctx, void *ptr, size_t old_size, size_t new_size)
{
    struct short_heap *const h = ctx;
    if (h->most && new_size > h->most && new_size > old_size)
        return NULL;
    return t_heap_fn(&h->heap, ptr, old_size, new_size);
}

TEST(a_window_that_memory_is_too_short_for_is_sealed_in_parts_that_add_up)
{
    enum { KEYS = 1000 };
    struct short_heap heap = {.heap = {.fail_at = -1}};
    struct fixture f = {.heap = {.fail_at = -1}};
    const struct weir_stats_opts o = {
        .struct_size = sizeof o, .alloc = {short_heap_fn, &heap}, .lateness_for_ns = -1};
    f_open(&f, &o);
    for (int i = 0; i < KEYS; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "r%d", i);
        struct weir_span s = f_span("a", name, f.now, 1000 + i);
        s.flags = i % 2 ? WEIR_SPAN_ERROR : 0;
        f_publish(&f, &s, 1);
    }
    heap.most = 4096; /* a batch for all of them is more */
    f.now += 10 * f_second;
    uint64_t spans = 0;
    uint64_t received = 0;
    size_t rows = 0;
    unsigned batches = 0;
    for (int turn = 0; turn < KEYS && spans < KEYS; turn++) {
        f_poll(&f); /* not only the poll that turns the window tries */
        struct weir_batch_info info;
        for (struct weir_batch *b; (b = f_take(&f, &info));) {
            T_EQ_I64(info.start_ns, f_t0);
            spans += info.counts.aggregated;
            received += info.counts.received;
            rows += info.rows;
            batches++;
            weir_batch_release(b);
        }
    }
    T_EQ_U64(spans, KEYS);
    T_EQ_U64(received, KEYS);
    T_EQ_U64(rows, KEYS);
    T_TRUE(batches > 1);
    struct weir_stats_health h;
    weir_stats_get_health(f.st, &h);
    T_EQ_U64(h.open_windows, 0);
    T_EQ_U64(h.aggregated, KEYS);
    heap.most = 0;
    const struct weir_span again = f_span("a", "again", f.now, 1);
    f_publish(&f, &again, 1); /* and goes on as ever */
    f_seal(&f);
    struct weir_batch_info info;
    struct weir_batch *const b = f_take(&f, &info);
    T_EQ_U64(info.rows, 1);
    weir_batch_release(b);
    weir_producer_free(f.p);
    weir_stats_free(f.st);
    T_EQ_I64(heap.heap.live, 0);
}
