/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The engine against a naive model: random spans, late, future, partial, negative, over the cap,
 * with forced seals, snapshots, CLEAR and time that goes on, against plain arrays of sums by
 * (window, key). Both conservation equations hold exactly in every batch.
 */
#include "t.h"

#include <stdlib.h>
#include <string.h>
#include <weir/stats.h>

enum { KEYS = 60, MAX_KEYS = 40, WINDOWS = 4000, SPANS = 150000 };

static const int64_t w_ns = INT64_C(10) * 1000000000;
static const int64_t t0 = INT64_C(1800000000) * 1000000000;

/* By window (from t0 - 1000 windows on) and status; keys are summed, since which key overflows
 * depends on history the model does not keep. Sums per key are checked in a second run without
 * a cap. */
struct cell {
    uint64_t hits;
    uint64_t errors;
    uint64_t sum_ns;
};

struct model {
    struct cell (*cells)[KEYS]; /* [WINDOWS][KEYS] */
    uint64_t received;
    uint64_t late;
    uint64_t future;
    uint64_t partial;
    uint64_t negative;
    uint64_t cleared;
};

struct run {
    struct weir_stats *st;
    struct weir_producer *p;
    struct t_rng rng;
    int64_t now;
    struct model want;
    struct model got;
    uint64_t got_overflow;
    uint64_t batches;
    bool capped;
};

static size_t window_index(int64_t start_ns)
{
    const int64_t i = (start_ns - t0) / w_ns + 1000;
    T_TRUE(i >= 0 && i < WINDOWS);
    return (size_t)i;
}

static struct weir_bytes text(const char *s)
{
    return (struct weir_bytes){.ptr = s, .len = strlen(s)};
}

/* "r17" is 17; anything else is the overflow row. */
static size_t number_of(struct weir_bytes name)
{
    size_t v = 0;
    if (name.ptr[0] != 'r')
        return KEYS;
    for (size_t i = 1; i < name.len; i++)
        v = v * 10 + (size_t)(name.ptr[i] - '0');
    return v;
}

static size_t key_of(const struct weir_batch *b, size_t row)
{
    struct weir_label l[WEIR_LABELS_MAX];
    const size_t n = weir_batch_get_labels(b, row, l, WEIR_LABELS_MAX);
    for (size_t i = 0; i < n; i++) {
        if (l[i].name.len == 9 && memcmp(l[i].name.ptr, "span_name", 9) == 0)
            return number_of(l[i].value);
    }
    T_FAIL("no span_name");
}

static void take_row(struct run *r, const struct weir_batch *b, size_t row, size_t window)
{
    struct weir_row w;
    weir_batch_get_row(b, row, &w);
    const size_t key = key_of(b, row);
    struct cell *const c = &r->got.cells[window][key < KEYS ? key : 0];
    T_TRUE(key < KEYS || r->capped);
    c->hits += w.hits / WEIR_WEIGHT_ONE;
    c->errors += w.errors / WEIR_WEIGHT_ONE;
    const struct weir_sketch *const s[] = {w.ok, w.error};
    uint64_t weight = 0;
    for (size_t i = 0; i < 2; i++) {
        if (!s[i])
            continue;
        weight += weir_sketch_weight(s[i]);
        T_EQ_U64(weir_sketch_weight(s[i]), weir_sketch_bins_weight(s[i]));
        const struct weir_u128 sum = weir_sketch_sum_ns(s[i]);
        c->sum_ns += sum.lo >> 20 | sum.hi << 44;
    }
    T_EQ_U64(weight, w.hits);
    T_EQ_U64(w.error ? weir_sketch_weight(w.error) : 0, w.errors);
}

static void take_batches(struct run *r)
{
    for (struct weir_batch *b; (b = weir_stats_take_batch(r->st)) != NULL;) {
        struct weir_batch_info info;
        weir_batch_get_info(b, &info);
        const struct weir_window_counts *const c = &info.counts;
        uint64_t terms = c->aggregated + c->ineligible + c->partial;
        for (size_t i = 0; i < WEIR_DROP_COUNT; i++)
            terms += c->dropped[i];
        T_EQ_U64(terms, c->received);
        T_EQ_U64(c->rows_weight, c->admitted_weight);
        T_EQ_U64(c->sketch_weight, c->admitted_weight);
        for (size_t i = 0; i < info.rows; i++)
            take_row(r, b, i, window_index(info.start_ns));
        r->got.received += c->received;
        r->got.late += c->late;
        r->got.future += c->future;
        r->got.partial += c->partial;
        r->got.cleared += c->dropped[WEIR_DROP_CLEARED];
        r->got_overflow += c->overflow;
        r->batches++;
        weir_batch_release(b);
    }
}

static void poll(struct run *r)
{
    (void)weir_stats_poll(r->st, r->now, r->now - t0);
    take_batches(r);
}

static int64_t align(int64_t t)
{
    return t - t % w_ns;
}

/* A random end: mostly now, some late, later still, some in the future. */
static int64_t random_end(struct run *r)
{
    switch (t_below(&r->rng, 20)) {
    case 0:
        return r->now - (int64_t)t_below(&r->rng, 60) * 1000000000;
    case 1:
        return r->now - (int64_t)t_below(&r->rng, 600) * 1000000000;
    case 2:
        return r->now + (int64_t)t_below(&r->rng, 600) * 1000000000;
    default:
        return r->now - (int64_t)t_below(&r->rng, 12) * 1000000000;
    }
}

static void expect_span(struct run *r, int64_t end, size_t key, bool error, bool partial,
                        int64_t duration)
{
    struct model *const m = &r->want;
    const int64_t current = align(r->now);
    const int64_t oldest = current - 2 * w_ns;
    int64_t start = align(end);
    m->received++;
    if (partial) {
        m->partial++;
        return;
    }
    if (start > current) {
        start = current;
        m->future++;
    } else if (start < oldest) {
        start = oldest;
        m->late++;
    }
    struct cell *const c = &m->cells[window_index(start)][r->capped ? 0 : key];
    c->hits++;
    c->errors += error;
    c->sum_ns += duration > 0 ? (uint64_t)duration : 0;
    m->negative += duration < 0;
}

static void one_span(struct run *r)
{
    const size_t key = (size_t)t_below(&r->rng, KEYS);
    char name[8];
    (void)snprintf(name, sizeof name, "r%zu", key);
    const bool error = t_below(&r->rng, 5) == 0;
    const bool partial = t_below(&r->rng, 30) == 0;
    const bool negative = t_below(&r->rng, 30) == 0;
    const int64_t duration = negative ? -1 - (int64_t)t_below(&r->rng, 1000)
                                      : (int64_t)(t_next(&r->rng) >> (24 + t_below(&r->rng, 40)));
    const int64_t end = random_end(r);
    struct weir_value slots[WEIR_TAG_SLOTS_MAX];
    slots[WEIR_TAG_PARTIAL] = (struct weir_value){.type = WEIR_VALUE_DOUBLE, .v = {.d = 1}};
    const struct weir_span s = {.service = text("svc"),
                                .name = text("op"),
                                .resource = text(name),
                                .trace_id = 1,
                                .span_id = 1,
                                .start_ns = end - duration,
                                .duration_ns = duration,
                                .flags = error ? WEIR_SPAN_ERROR : 0,
                                .present = partial ? 1u << WEIR_TAG_PARTIAL : 0,
                                .slots = slots};
    expect_span(r, end, key, error, partial, duration);
    const struct weir_source source = {.now_ns = r->now};
    T_OK(weir_stats_publish(r->p, &source, &s, 1));
}

static void snapshot(struct run *r)
{
    struct weir_batch *b[8];
    const size_t n = weir_stats_snapshot(r->st, b, 8);
    for (size_t i = 0; i < n; i++) {
        struct weir_batch_info info;
        weir_batch_get_info(b[i], &info);
        T_EQ_U64(info.counts.sketch_weight, info.counts.admitted_weight);
        weir_batch_release(b[i]);
    }
}

static void compare(const struct run *r)
{
    for (size_t w = 0; w < WINDOWS; w++) {
        for (size_t k = 0; k < KEYS; k++) {
            const struct cell *const a = &r->want.cells[w][k];
            struct cell b = r->got.cells[w][k];
            if (r->capped && k == 0) {
                for (size_t j = 1; j < KEYS; j++) {
                    b.hits += r->got.cells[w][j].hits;
                    b.errors += r->got.cells[w][j].errors;
                    b.sum_ns += r->got.cells[w][j].sum_ns;
                }
            } else if (r->capped) {
                continue;
            }
            if (a->hits != b.hits || a->errors != b.errors || a->sum_ns != b.sum_ns)
                T_FAIL("window %zu key %zu: hits %llu/%llu errors %llu/%llu sum %llu/%llu", w, k,
                       (unsigned long long)b.hits, (unsigned long long)a->hits,
                       (unsigned long long)b.errors, (unsigned long long)a->errors,
                       (unsigned long long)b.sum_ns, (unsigned long long)a->sum_ns);
        }
    }
    T_EQ_U64(r->got.received, r->want.received);
    T_EQ_U64(r->got.late, r->want.late);
    T_EQ_U64(r->got.future, r->want.future);
    T_EQ_U64(r->got.partial, r->want.partial);
    T_EQ_U64(r->got.cleared, 0);
    struct weir_stats_health h;
    weir_stats_get_health(r->st, &h);
    T_EQ_U64(h.received, r->want.received);
    T_EQ_U64(h.negative_duration >= r->want.negative, 1);
    T_TRUE(r->batches > 100);
    T_TRUE(!r->capped || r->got_overflow > 1000);
}

static void run_model(bool capped)
{
    struct run r = {.rng = t_rng(t_seed() + capped), .now = t0, .capped = capped};
    r.want.cells = calloc(WINDOWS, sizeof *r.want.cells);
    r.got.cells = calloc(WINDOWS, sizeof *r.got.cells);
    const struct weir_stats_opts o = {
        .struct_size = sizeof o, .max_keys = capped ? MAX_KEYS : 0, .seed = t_seed()};
    T_OK(weir_stats_new(&o, &r.st));
    T_OK(weir_producer_new(r.st, 8192, WEIR_PRODUCER_OWNER, &r.p));
    poll(&r);
    for (int i = 0; i < SPANS; i++) {
        one_span(&r);
        /* Time stands still while records wait, so that the model's now is the engine's. */
        if (t_below(&r.rng, 10) == 0)
            poll(&r);
        if (t_below(&r.rng, 60) == 0) {
            poll(&r);
            r.now += (int64_t)t_below(&r.rng, 8) * 1000000000;
            poll(&r);
        }
        if (t_below(&r.rng, 500) == 0)
            weir_stats_seal_all(r.st, r.now, r.now - t0);
        if (t_below(&r.rng, 300) == 0)
            snapshot(&r);
    }
    weir_stats_seal_all(r.st, r.now, r.now - t0);
    take_batches(&r);
    compare(&r);
    weir_producer_free(r.p);
    weir_stats_free(r.st);
    free(r.want.cells);
    free(r.got.cells);
}

TEST(every_row_of_every_window_is_what_a_naive_sum_gives)
{
    run_model(false);
}

TEST(over_the_cap_every_window_still_adds_up)
{
    run_model(true);
}
