/* SPDX-License-Identifier: Apache-2.0 */
/* Prepared identities: the same rows as by labels, whatever happens around them. */
#include "fixture.h"

#include <stdlib.h>

enum { SETS = 40, STEPS = 10000 };

struct set {
    char resource[16];
    char service[256]; /* one in eight too long or not UTF-8 */
    struct weir_value slots[WEIR_TAG_SLOTS_MAX];
    struct weir_span span;
    struct weir_stats_identity *id;
};

/* Two engines of the same options: one takes labels, the other identities. */
struct pair {
    struct fixture by_labels;
    struct fixture by_id;
    struct set sets[SETS];
    struct t_rng rng;
    uint64_t rows;
    bool at_once; /* a span's window is the one in which it is published */
};

static void set_make(struct pair *pr, size_t i)
{
    struct set *const s = &pr->sets[i];
    *s = (struct set){.id = NULL};
    (void)snprintf(s->resource, sizeof s->resource, "res-%zu", i);
    (void)snprintf(s->service, sizeof s->service, "svc-%zu", i % 7);
    if (i % 8 == 3)
        memset(s->service, 'x', sizeof s->service - 1);
    if (i % 8 == 5)
        s->service[0] = (char)0xff;
    s->span = f_span(s->service, s->resource, f_t0, 0);
    s->span.kind = (uint8_t)(i % 6);
    s->span.slots = s->slots;
    s->slots[WEIR_TAG_HTTP_STATUS] =
        (struct weir_value){.type = WEIR_VALUE_INT, .v = {.i = i % 9 ? 200 : 9999}};
    s->slots[WEIR_TAG_PARTIAL] = (struct weir_value){.type = WEIR_VALUE_INT, .v = {.i = 1}};
    s->slots[WEIR_TAG_MEASURED] = (struct weir_value){.type = WEIR_VALUE_INT, .v = {.i = 1}};
    s->slots[WEIR_TAG_TOP_LEVEL] = s->slots[WEIR_TAG_MEASURED];
    s->span.present = 1u << WEIR_TAG_HTTP_STATUS;
    if (i % 13 == 7)
        s->span.present |= 1u << WEIR_TAG_PARTIAL;
    if (i % 5 == 2)
        s->span.present |= 1u << WEIR_TAG_MEASURED;
    const struct weir_source source = {.lang = f_str("go"), .now_ns = f_t0};
    T_OK(weir_stats_identity_new(pr->by_id.st, &source, &s->span, &s->id));
}

static void publish_both(struct pair *pr)
{
    static const int64_t ends_s[] = {0, 0, 0, 0, -3, -12, -25, -500, 7, 900};
    struct set *const s = &pr->sets[t_below(&pr->rng, t_below(&pr->rng, 2) ? SETS : 8)];
    int64_t end = pr->by_id.now + ends_s[t_below(&pr->rng, 10)] * f_second;
    if (pr->at_once)
        end = pr->by_id.now;
    int64_t duration = (int64_t)(t_next(&pr->rng) >> (25 + t_below(&pr->rng, 38)));
    if (t_below(&pr->rng, 50) == 0)
        duration = -5;
    uint64_t weight = t_below(&pr->rng, 3) ? 0 : t_next(&pr->rng) >> (24 + t_below(&pr->rng, 30));
    if (t_below(&pr->rng, 1000) == 0)
        weight = WR_WEIGHT_MAX + 1;
    if (t_below(&pr->rng, 1000) == 0)
        weight = WEIR_WEIGHT_UNKNOWN;
    const bool error = t_below(&pr->rng, 6) == 0;
    const bool top = t_below(&pr->rng, 3) == 0;
    struct weir_span span = s->span;
    span.start_ns = end - duration;
    span.duration_ns = duration;
    span.weight = weight;
    span.flags = error ? WEIR_SPAN_ERROR : 0;
    if (top)
        span.present |= 1u << WEIR_TAG_TOP_LEVEL;
    const struct weir_source source = {
        .lang = f_str("go"), .flags = WEIR_SOURCE_TOP_LEVEL_COMPUTED, .now_ns = pr->by_id.now};
    T_OK(weir_stats_publish(pr->by_labels.p, &source, &span, 1));
    T_OK(weir_stats_publish_identity(
        pr->by_id.p, s->id, end, duration,
        (error ? WEIR_IDENTITY_ERROR : 0u) | (top ? WEIR_IDENTITY_TOP_LEVEL : 0u), weight));
    T_EQ_U64(weir_stats_must_keep(pr->by_labels.p), weir_stats_must_keep(pr->by_id.p));
}

static void same_sketch(const struct weir_sketch *a, const struct weir_sketch *b)
{
    T_TRUE((a == NULL) == (b == NULL));
    if (a)
        T_TRUE(weir_sketch_equal(a, b));
}

static void same_row(const struct weir_batch *a, const struct weir_batch *b, size_t row)
{
    struct weir_row x;
    struct weir_row y;
    weir_batch_get_row(a, row, &x);
    weir_batch_get_row(b, row, &y);
    T_EQ_U64(x.hits, y.hits);
    T_EQ_U64(x.errors, y.errors);
    T_EQ_U64(x.top_level, y.top_level);
    same_sketch(x.ok, y.ok);
    same_sketch(x.error, y.error);
    struct weir_label l[WEIR_LABELS_MAX];
    struct weir_label m[WEIR_LABELS_MAX];
    const size_t n = weir_batch_get_labels(a, row, l, WEIR_LABELS_MAX);
    T_EQ_U64(weir_batch_get_labels(b, row, m, WEIR_LABELS_MAX), n);
    for (size_t i = 0; i < n; i++) {
        T_EQ_BYTES(l[i].name.ptr, l[i].name.len, m[i].name.ptr, m[i].name.len);
        T_EQ_BYTES(l[i].value.ptr, l[i].value.len, m[i].value.ptr, m[i].value.len);
    }
}

static void same_batches(struct pair *pr)
{
    for (;;) {
        struct weir_batch_info x;
        struct weir_batch_info y;
        struct weir_batch *const a = f_take(&pr->by_labels, &x);
        struct weir_batch *const b = f_take(&pr->by_id, &y);
        T_TRUE((a == NULL) == (b == NULL));
        if (!a)
            return;
        T_TRUE(memcmp(&x, &y, sizeof x) == 0);
        for (size_t i = 0; i < x.rows; i++)
            same_row(a, b, i);
        pr->rows += x.rows;
        weir_batch_release(a);
        weir_batch_release(b);
    }
}

static void both(struct pair *pr, void (*what)(struct fixture *f))
{
    what(&pr->by_labels);
    what(&pr->by_id);
    same_batches(pr);
}

/* A holder gives its identity back, records of it still in the ring, and prepares another. */
static void renew(struct pair *pr)
{
    const size_t i = (size_t)t_below(&pr->rng, SETS);
    weir_stats_identity_free(pr->sets[i].id);
    set_make(pr, i);
}

static void compare(uint32_t profile, uint32_t max_keys, uint32_t flags)
{
    static const char *const ignored[] = {"res-3", "res-30"};
    const bool client = profile == WEIR_PROFILE_CLIENT;
    struct pair *const pr = calloc(1, sizeof *pr);
    T_TRUE(pr != NULL);
    pr->rng = t_rng(t_seed() + profile * 7 + max_keys);
    struct fixture *const f[] = {&pr->by_labels, &pr->by_id};
    for (size_t i = 0; i < 2; i++) {
        struct weir_stats_opts o = f_opts(f[i]);
        o.profile = profile;
        o.max_keys = max_keys;
        o.idle_windows = 2;
        o.flags = flags;
        if (client) {
            o.ignored_resources = ignored;
            o.ignored_resource_count = 2;
            o.limits[WEIR_LIMIT_RESOURCE] = 25;
        }
        f[i]->wall_minus_mono = f_wall_minus_mono;
        f[i]->unweighted = flags & WEIR_STATS_UNWEIGHTED_SKETCHES;
        f_open(f[i], &o);
    }
    pr->at_once = client && !(flags & WEIR_STATS_ALIGN);
    for (size_t i = 0; i < SETS; i++)
        set_make(pr, i);
    for (int i = 0; i < STEPS; i++) {
        publish_both(pr);
        if (t_below(&pr->rng, 20) == 0)
            both(pr, f_poll);
        if (t_below(&pr->rng, 60) == 0) {
            both(pr, f_poll); /* the time of what waits is the time it was published at */
            pr->by_labels.now += 4 * f_second;
            pr->by_id.now += 4 * f_second;
            both(pr, f_poll);
        }
        if (t_below(&pr->rng, 900) == 0)
            both(pr, f_seal);
        if (t_below(&pr->rng, 10) == 0)
            renew(pr);
    }
    both(pr, f_seal);
    struct weir_stats_health x;
    struct weir_stats_health y;
    weir_stats_get_health(pr->by_labels.st, &x);
    weir_stats_get_health(pr->by_id.st, &y);
    y.pool_sketches = x.pool_sketches;
    y.inbox_bytes = x.inbox_bytes;
    T_TRUE(memcmp(&x, &y, sizeof x) == 0);
    T_TRUE(pr->rows > 500 && x.truncated && x.utf8_repaired && x.bad_status && x.weight_capped &&
           x.bad_rate);
    T_TRUE(x.partial && (pr->at_once || (x.late && x.future)) && (max_keys == 0 || x.overflow));
    T_TRUE((x.ineligible > 0) == (profile != WEIR_PROFILE_ALL));
    T_TRUE(!client || (x.spans_in && x.dropped_p0_spans && x.collapsed[WEIR_LIMIT_RESOURCE]));
    f_close(&pr->by_labels);
    f_close(&pr->by_id);
    free(pr);
}

TEST(publishing_by_identity_gives_the_rows_that_publishing_by_labels_gives)
{
    compare(WEIR_PROFILE_ALL, 0, 0);
    compare(WEIR_PROFILE_DATADOG, 0, WEIR_STATS_UNWEIGHTED_SKETCHES);
}

TEST(the_same_holds_over_the_cap)
{
    compare(WEIR_PROFILE_ALL, 10, 0);
    compare(WEIR_PROFILE_DATADOG, 25, 0);
}

TEST(the_same_holds_for_a_client_with_limits_ignored_resources_and_weights_kept_from_sketches)
{
    compare(WEIR_PROFILE_CLIENT, 0, 0);
    compare(WEIR_PROFILE_CLIENT, 12, WEIR_STATS_ALIGN | WEIR_STATS_UNWEIGHTED_SKETCHES);
}

TEST(past_max_identities_none_is_made_until_one_was_freed_and_its_records_drained)
{
    struct fixture f;
    struct weir_stats_opts o = f_opts(&f);
    o.max_identities = 2;
    f.wall_minus_mono = f_wall_minus_mono;
    f_open(&f, &o);
    const struct weir_source source = {.now_ns = f_t0};
    const struct weir_span s = f_span("a", "b", f_t0, 1);
    struct weir_stats_identity *id[3] = {NULL, NULL, NULL};
    T_OK(weir_stats_identity_new(f.st, &source, &s, &id[0]));
    T_OK(weir_stats_identity_new(f.st, &source, &s, &id[1]));
    T_ERR(weir_stats_identity_new(f.st, &source, &s, &id[2]), WEIR_EFULL);
    T_TRUE(id[2] == NULL);
    T_OK(weir_stats_publish_identity(f.p, id[0], f_t0, 5, 0, 0));
    weir_stats_identity_free(id[0]);
    T_ERR(weir_stats_identity_new(f.st, &source, &s, &id[2]), WEIR_EFULL);
    f_poll(&f);
    T_OK(weir_stats_identity_new(f.st, &source, &s, &id[2]));
    weir_stats_identity_free(NULL);
    f_seal(&f);
    struct weir_batch_info info;
    struct weir_batch *const b = f_take(&f, &info);
    T_EQ_U64(info.rows, 1);
    T_TRUE(f_has(b, 0, "span_name", "b"));
    weir_batch_release(b);
    f_close(&f); /* the two that are left go with the instance */
}

TEST(an_identity_that_finds_no_room_in_the_inbox_is_dropped_and_counted)
{
    struct fixture f;
    struct weir_stats_opts o = f_opts(&f);
    f.wall_minus_mono = f_wall_minus_mono;
    f_open(&f, &o);
    const struct weir_source source = {.now_ns = f_t0};
    const struct weir_span s = f_span("a", "b", f_t0, 1);
    struct weir_stats_identity *id;
    T_OK(weir_stats_identity_new(f.st, &source, &s, &id));
    uint64_t taken = 0;
    while (weir_stats_publish_identity(f.p, id, f_t0, 1, 0, 0) == WEIR_OK)
        taken++;
    f_seal(&f);
    struct weir_batch_info info;
    struct weir_batch *const b = f_take(&f, &info);
    T_EQ_U64(info.counts.aggregated, taken);
    T_EQ_U64(info.counts.dropped[WEIR_DROP_INBOX_FULL], 1);
    weir_batch_release(b);
    f_close(&f);
}

static int make_one(const struct weir_alloc *alloc, void *ctx)
{
    (void)ctx;
    const struct weir_stats_opts o = {.struct_size = sizeof o, .alloc = *alloc};
    struct weir_stats *st;
    int r = weir_stats_new(&o, &st);
    if (r != WEIR_OK)
        return r;
    const struct weir_source source = {.now_ns = f_t0};
    const struct weir_span s = f_span("a", "b", f_t0, 1);
    struct weir_stats_identity *id;
    r = weir_stats_identity_new(st, &source, &s, &id);
    weir_stats_free(st);
    return r;
}

TEST(an_identity_for_which_there_is_no_memory_is_refused_and_nothing_leaks)
{
    for (int sticky = 0; sticky < 2; sticky++) {
        for (long n = 0;; n++) {
            struct t_heap h = {.fail_at = n, .sticky = sticky};
            const struct weir_alloc a = {t_heap_fn, &h};
            const int r = make_one(&a, NULL);
            T_EQ_I64(h.live, 0);
            T_TRUE(r == WEIR_OK || r == WEIR_ENOMEM); /* a block that cannot shrink is kept */
            if (h.seen <= n) {
                T_OK(r);
                break;
            }
        }
    }
}
