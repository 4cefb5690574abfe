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
