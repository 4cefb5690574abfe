/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The engine against a naive model: random spans, late, future, partial, negative, floods of new
 * keys over the cap, with forced seals, snapshots, CLEAR and time that goes on, against plain
 * arrays of sums by (window, key). Both conservation equations hold exactly in every batch. One
 * run has weights that are no whole numbers, and a limit on the values of a field; another the same
 * in profile client with windows aligned, its reports as messages, its peer tags set anew.
 *
 * T_SPANS in the environment sets the number of spans of each run (./dev soak: 10^8 in all).
 */
#include "t.h"

#include <stdlib.h>
#include <string.h>
#include <weir/stats.h>

enum {
    NAMES = 60,
    BLOCKED = NAMES,
    KEYS = NAMES + 1,
    LIMIT = 20,
    MAX_KEYS = 40,
    WINDOWS = 1024,
    OPEN = 3,
    SPANS_DEFAULT = 500000,
    CLIENT_SPANS_DEFAULT = 1000000
};

static const int64_t w_ns = INT64_C(10) * 1000000000;
static const int64_t t0 = INT64_C(1800000000) * 1000000000;

struct cell {
    uint64_t hits; /* units of 2^-20, as are the others */
    uint64_t errors;
    uint64_t sum_ns; /* modulo 2^64 */
};

/* A window's cells stand at its number modulo WINDOWS; they are compared and emptied before that
 * place is needed again. In a capped run all keys share cell 0, since which key overflows
 * depends on more history than a naive model keeps. */
struct model {
    struct cell cells[WINDOWS][KEYS];
    uint64_t received;
    uint64_t late;
    uint64_t future;
    uint64_t partial;
    uint64_t ineligible;
    uint64_t cleared;
    uint64_t overflow;
    uint64_t collapsed;
};

struct run {
    struct weir_stats *st;
    struct weir_producer *p;
    struct t_rng rng;
    int64_t now;
    int64_t compared; /* windows before this number were compared */
    bool capped;
    bool limited;
    bool client;
    /* Of the cycle: names that have their place; of open windows: names with a row, and spans. */
    bool seen[KEYS];
    size_t seen_count;
    bool own[OPEN + 1][KEYS];
    uint64_t open_spans[OPEN + 1];
    struct cell open[OPEN + 1][KEYS]; /* of what is not sealed yet, by number modulo OPEN + 1 */
    struct model want;
    struct model got;
    uint64_t batches;
};

static int64_t number_of(int64_t t_ns)
{
    return (t_ns - t0 + WINDOWS * w_ns) / w_ns; /* spans reach back by less than WINDOWS windows */
}

static struct weir_bytes text(const char *s)
{
    return (struct weir_bytes){.ptr = s, .len = strlen(s)};
}

static void cell_add(struct cell *to, const struct cell *c)
{
    to->hits += c->hits;
    to->errors += c->errors;
    to->sum_ns += c->sum_ns;
}

/* ---- what the engine gives ---- */

/* "r17" is 17; anything else is the sentinel. */
static size_t key_number(struct weir_bytes name)
{
    size_t v = 0;
    if (name.ptr[0] != 'r')
        return BLOCKED;
    for (size_t i = 1; i < name.len; i++)
        v = v * 10 + (size_t)(name.ptr[i] - '0');
    return v;
}

static size_t key_of(const struct run *r, const struct weir_batch *b, size_t row)
{
    struct weir_label l[WEIR_LABELS_MAX];
    if (r->capped)
        return 0;
    const size_t n = weir_batch_get_labels(b, row, l, WEIR_LABELS_MAX);
    for (size_t i = 0; i < n; i++) {
        if (l[i].name.len == 9 && memcmp(l[i].name.ptr, "span_name", 9) == 0)
            return key_number(l[i].value);
    }
    T_FAIL("no span_name");
}

static void take_row(struct run *r, const struct weir_batch *b, size_t row, int64_t window)
{
    struct weir_row w;
    weir_batch_get_row(b, row, &w);
    struct cell c = {.hits = w.hits, .errors = w.errors};
    const struct weir_sketch *const s[] = {w.ok, w.error};
    uint64_t weight = 0;
    for (size_t i = 0; i < 2; i++) {
        if (!s[i])
            continue;
        weight += weir_sketch_weight(s[i]);
        const struct weir_u128 sum = weir_sketch_sum_ns(s[i]);
        c.sum_ns += sum.lo;
    }
    T_EQ_U64(weight, w.hits);
    T_EQ_U64(w.error ? weir_sketch_weight(w.error) : 0, w.errors);
    cell_add(&r->got.cells[window % WINDOWS][key_of(r, b, row)], &c);
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
            take_row(r, b, i, number_of(info.start_ns));
        r->got.received += c->received;
        r->got.late += c->late;
        r->got.future += c->future;
        r->got.partial += c->partial;
        r->got.ineligible += c->ineligible;
        r->got.cleared += c->dropped[WEIR_DROP_CLEARED];
        r->got.overflow += c->overflow;
        r->batches++;
        weir_batch_release(b);
    }
}

/* ---- what the model expects ---- */

static void seal_window(struct run *r, int64_t window)
{
    struct cell *const from = r->open[window % (OPEN + 1)];
    struct cell *const to = r->want.cells[window % WINDOWS];
    for (size_t k = 0; k < KEYS; k++)
        cell_add(&to[k], &from[k]);
    memset(from, 0, sizeof r->open[0]);
    memset(r->own[window % (OPEN + 1)], 0, sizeof r->own[0]);
    r->open_spans[window % (OPEN + 1)] = 0;
}

/* Limits begin anew. */
static void end_cycle(struct run *r)
{
    memset(r->seen, 0, sizeof r->seen);
    r->seen_count = 0;
}

/* The name that a span has in its row: its own while there is room, or where it has one already. */
static size_t admitted(struct run *r, int64_t window, size_t key)
{
    bool *const own = &r->own[window % (OPEN + 1)][key];
    if (!*own && !r->seen[key] && r->seen_count >= LIMIT) {
        r->want.collapsed++;
        return BLOCKED;
    }
    if (!*own && !r->seen[key]) {
        r->seen[key] = true;
        r->seen_count++;
    }
    *own = true;
    return key;
}

static void seal_open(struct run *r)
{
    const int64_t current = number_of(r->now);
    for (int64_t w = current - OPEN + 1; w <= current; w++)
        seal_window(r, w);
}

/* What was counted late or in the future and then cleared is cleared, no longer late. */
static void clear_open(struct run *r)
{
    for (size_t w = 0; w <= OPEN; w++)
        r->want.cleared += r->open_spans[w];
    memset(r->open, 0, sizeof r->open);
    memset(r->own, 0, sizeof r->own);
    memset(r->open_spans, 0, sizeof r->open_spans);
}

/* All windows that are sealed: equal, and emptied for those to come. */
static void compare_sealed(struct run *r, int64_t before)
{
    for (; r->compared < before; r->compared++) {
        struct cell *const a = r->want.cells[r->compared % WINDOWS];
        struct cell *const b = r->got.cells[r->compared % WINDOWS];
        if (memcmp(a, b, sizeof r->want.cells[0]) != 0) {
            size_t k = 0;
            while (memcmp(&a[k], &b[k], sizeof *a) == 0)
                k++;
            T_FAIL("window %lld key %zu: want hits %llu errors %llu sum %llu, got %llu %llu %llu",
                   (long long)r->compared, k, (unsigned long long)a[k].hits,
                   (unsigned long long)a[k].errors, (unsigned long long)a[k].sum_ns,
                   (unsigned long long)b[k].hits, (unsigned long long)b[k].errors,
                   (unsigned long long)b[k].sum_ns);
        }
        memset(a, 0, sizeof r->want.cells[0]);
        memset(b, 0, sizeof r->got.cells[0]);
    }
}

static void expect_span(struct run *r, int64_t end, size_t key, const struct cell *c, bool partial,
                        bool ineligible)
{
    const int64_t current = number_of(r->now);
    int64_t window = number_of(end);
    r->want.received++;
    if (partial) {
        r->want.partial++;
        return;
    }
    if (ineligible) {
        r->want.ineligible++;
        return;
    }
    if (window > current)
        window = current;
    if (window < current - OPEN + 1)
        window = current - OPEN + 1;
    if (r->capped)
        key = 0;
    else if (r->limited)
        key = admitted(r, window, key);
    r->open_spans[window % (OPEN + 1)]++;
    cell_add(&r->open[window % (OPEN + 1)][key], c);
}

/* ---- the run ---- */

static void poll(struct run *r)
{
    (void)weir_stats_poll(r->st, r->now, r->now - t0);
    take_batches(r);
}

static void advance(struct run *r, int64_t for_ns)
{
    const int64_t was = number_of(r->now);
    poll(r);
    r->now += for_ns;
    const int64_t current = number_of(r->now);
    for (int64_t w = was - OPEN + 1; w <= current - OPEN; w++)
        seal_window(r, w);
    if (current != was)
        end_cycle(r);
    poll(r);
    if (current - OPEN + 1 - r->compared > WINDOWS / 2)
        compare_sealed(r, current - OPEN + 1);
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

static void one_span(struct run *r)
{
    /* In a capped run a third of the names is never seen again. */
    const bool flood = r->capped && t_below(&r->rng, 3) == 0;
    const size_t key = flood ? (size_t)t_next(&r->rng) : (size_t)t_below(&r->rng, NAMES);
    char name[32];
    (void)snprintf(name, sizeof name, "r%zu", key);
    const bool error = t_below(&r->rng, 5) == 0;
    const bool partial = t_below(&r->rng, 30) == 0;
    const bool negative = t_below(&r->rng, 30) == 0;
    const int64_t duration = negative ? -1 - (int64_t)t_below(&r->rng, 1000)
                                      : (int64_t)(t_next(&r->rng) >> (24 + t_below(&r->rng, 40)));
    const int64_t end = random_end(r);
    struct weir_value slots[WEIR_TAG_SLOTS_MAX];
    slots[WEIR_TAG_PARTIAL] = (struct weir_value){.type = WEIR_VALUE_DOUBLE, .v = {.d = 1}};
    const uint64_t weight = r->limited && t_below(&r->rng, 2)
                                ? WEIR_WEIGHT_ONE + t_below(&r->rng, 3 * WEIR_WEIGHT_ONE)
                                : WEIR_WEIGHT_ONE;
    const struct weir_span s = {.service = text("svc"),
                                .name = text("op"),
                                .resource = text(name),
                                .trace_id = 1,
                                .span_id = 1,
                                .start_ns = end - duration,
                                .duration_ns = duration,
                                .flags = error ? WEIR_SPAN_ERROR : 0,
                                .weight = weight,
                                .present = partial ? 1u << WEIR_TAG_PARTIAL : 0,
                                .slots = slots};
    const struct cell c = {.hits = weight,
                           .errors = error ? weight : 0,
                           .sum_ns = negative ? 0 : (uint64_t)duration * weight};
    /* Of a tracer's own a span counts that lasted. */
    expect_span(r, end, key, &c, partial, r->client && duration <= 0);
    const struct weir_source source = {.now_ns = r->now};
    T_OK(weir_stats_publish(r->p, &source, &s, 1));
}

static void snapshot(struct run *r)
{
    struct weir_batch *b[8];
    const size_t n = weir_stats_snapshot(r->st, b, 8);
    uint64_t hits = 0;
    for (size_t i = 0; i < n; i++) {
        struct weir_batch_info info;
        weir_batch_get_info(b[i], &info);
        T_EQ_U64(info.counts.sketch_weight, info.counts.admitted_weight);
        T_EQ_U64(info.counts.rows_weight, info.counts.admitted_weight);
        hits += info.counts.rows_weight;
        weir_batch_release(b[i]);
    }
    uint64_t want = 0;
    for (size_t w = 0; w <= OPEN; w++) {
        for (size_t k = 0; k < KEYS; k++)
            want += r->open[w][k].hits;
    }
    T_EQ_U64(hits, want);
}

static void clear(struct run *r)
{
    struct weir_signal_node node = {.kind = WEIR_SIGNAL_CLEAR};
    weir_stats_signal(r->st, &node);
    poll(r);
    clear_open(r);
}

/* As a tracer's timer does it; now and then the agent asks for other peer tags. */
static void report(struct run *r)
{
    struct weir_signal_node node = {.kind = WEIR_SIGNAL_REPORT};
    if (!r->client) {
        weir_stats_seal_all(r->st, r->now, r->now - t0);
        return;
    }
    char name[16];
    (void)snprintf(name, sizeof name, "peer.%u", (unsigned)t_below(&r->rng, 20));
    const char *const names[] = {name};
    const int set = weir_stats_set_peer_tags(r->st, names, 1);
    T_TRUE(set == WEIR_OK || set == WEIR_EBUSY);
    (void)weir_producer_tags(r->p);
    weir_stats_signal(r->st, &node);
    (void)weir_stats_poll(r->st, r->now, r->now - t0);
}

static void one_step(struct run *r)
{
    one_span(r);
    /* Time stands still while records wait, so that the model's now is the engine's. */
    if (t_below(&r->rng, 10) == 0)
        poll(r);
    if (t_below(&r->rng, 60) == 0)
        advance(r, (int64_t)t_below(&r->rng, 8) * 1000000000);
    if (t_below(&r->rng, 500) == 0) {
        report(r);
        take_batches(r);
        seal_open(r);
        end_cycle(r);
    }
    if (t_below(&r->rng, 300) == 0)
        snapshot(r);
    if (t_below(&r->rng, 2000) == 0)
        clear(r);
}

static uint64_t span_count(bool client)
{
    const char *const set = getenv("T_SPANS");
    return set ? strtoull(set, NULL, 10) : client ? CLIENT_SPANS_DEFAULT : SPANS_DEFAULT;
}

static void run_model(bool capped, bool limited, bool client)
{
    struct run *const r = calloc(1, sizeof *r);
    T_TRUE(r != NULL);
    r->rng = t_rng(t_seed() + (capped ? 1 : 0) + (limited ? 2 : 0) + (client ? 4 : 0));
    r->now = t0;
    r->capped = capped;
    r->limited = limited;
    r->client = client;
    r->compared = 0;
    const struct weir_stats_opts o = {.struct_size = sizeof o,
                                      .max_keys = capped ? MAX_KEYS : 0,
                                      .seed = t_seed(),
                                      .profile = client ? WEIR_PROFILE_CLIENT : 0,
                                      .flags = client ? WEIR_STATS_ALIGN : 0,
                                      .limits = {[WEIR_LIMIT_RESOURCE] = limited ? LIMIT : 0}};
    T_OK(weir_stats_new(&o, &r->st));
    T_OK(weir_producer_new(r->st, 65536, WEIR_PRODUCER_OWNER, &r->p));
    poll(r);
    const uint64_t spans = span_count(client);
    for (uint64_t i = 0; i < spans; i++)
        one_step(r);
    weir_stats_seal_all(r->st, r->now, r->now - t0);
    take_batches(r);
    seal_open(r);
    compare_sealed(r, number_of(r->now) + 1);
    T_EQ_U64(r->got.received, spans);
    T_EQ_U64(r->want.received, spans);
    T_EQ_U64(r->got.partial, r->want.partial);
    T_EQ_U64(r->got.ineligible, r->want.ineligible);
    T_TRUE(!client || r->got.ineligible > 0);
    T_EQ_U64(r->got.cleared, r->want.cleared);
    struct weir_stats_health h;
    weir_stats_get_health(r->st, &h);
    T_EQ_U64(h.received, spans);
    T_TRUE(r->batches > 100 && r->got.late > 0 && r->got.future > 0 && r->got.cleared > 0);
    T_EQ_U64(h.collapsed[WEIR_LIMIT_RESOURCE], r->want.collapsed);
    T_TRUE(!limited || r->want.collapsed > spans / 100);
    T_TRUE(!capped || (r->got.overflow > spans / 100 && h.displaced > 0));
    weir_producer_free(r->p);
    weir_stats_free(r->st);
    free(r);
}

TEST(every_row_of_every_window_is_what_a_naive_sum_gives)
{
    run_model(false, false, false);
}

TEST(over_the_cap_every_window_still_adds_up)
{
    run_model(true, false, false);
}

TEST(with_weights_and_a_limit_every_row_is_still_what_a_naive_sum_gives)
{
    run_model(false, true, false);
}

TEST(so_it_is_in_profile_client_with_limits_weights_reports_clears_and_other_peer_tags)
{
    run_model(false, true, true);
}
