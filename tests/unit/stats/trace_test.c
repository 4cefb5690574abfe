/* SPDX-License-Identifier: Apache-2.0 */
#include "fixture.h"

struct totals {
    uint64_t hits;
    uint64_t errors;
    uint64_t top_level;
    struct weir_window_counts counts;
};

static struct totals seal(struct fixture *f)
{
    f_seal(f);
    struct totals t = {0};
    struct weir_batch_info info;
    struct weir_batch *const b = f_take(f, &info);
    if (!b)
        return t;
    for (size_t i = 0; i < info.rows; i++) {
        struct weir_row r;
        weir_batch_get_row(b, i, &r);
        t.hits += r.hits / WEIR_WEIGHT_ONE;
        t.errors += r.errors / WEIR_WEIGHT_ONE;
        t.top_level += r.top_level / WEIR_WEIGHT_ONE;
    }
    t.counts = info.counts;
    weir_batch_release(b);
    return t;
}

static void ids(struct weir_span *s, uint64_t span_id, uint64_t parent_id)
{
    s->span_id = span_id;
    s->parent_id = parent_id;
}

static void open_profile(struct fixture *f, uint32_t profile)
{
    struct weir_stats_opts o = f_opts(f);
    o.profile = profile;
    f_open(f, &o);
}

TEST(a_root_and_a_service_entry_are_top_level)
{
    struct fixture f;
    open_profile(&f, WEIR_PROFILE_ALL);
    struct weir_span s[5];
    const char *const services[] = {"a", "a", "b", "b", "b"};
    const uint64_t parents[] = {0, 1, 2, 3, 99};
    for (size_t i = 0; i < 5; i++) {
        s[i] = f_span(services[i], "r", f.now, 10);
        ids(&s[i], i + 1, parents[i]);
    }
    f_publish(&f, s, 5);
    /* 1 by its parent 0, 3 by its parent's service; 5's parent is absent. */
    T_EQ_U64(seal(&f).top_level, 2);
    f_close(&f);
    open_profile(&f, WEIR_PROFILE_DATADOG);
    f_publish(&f, s, 5);
    const struct totals t = seal(&f);
    T_EQ_U64(t.top_level, 3);
    T_EQ_U64(t.hits, 3);
    T_EQ_U64(t.counts.ineligible, 2);
    f_close(&f);
}

TEST(the_trace_agents_profile_takes_top_level_measured_and_kinds)
{
    struct fixture f;
    open_profile(&f, WEIR_PROFILE_DATADOG);
    struct weir_value one[WEIR_TAG_SLOTS_MAX];
    one[WEIR_TAG_MEASURED] = (struct weir_value){.type = WEIR_VALUE_DOUBLE, .v = {.d = 1}};
    struct weir_span s[9];
    for (size_t i = 0; i < 9; i++) {
        s[i] = f_span("a", "r", f.now, 10);
        ids(&s[i], i + 1, i);
    }
    for (uint8_t kind = 1; kind <= 5; kind++)
        s[kind].kind = kind; /* internal is not among them */
    s[6].slots = one;
    s[6].present = 1u << WEIR_TAG_MEASURED;
    f_publish(&f, s, 9);
    const struct totals t = seal(&f);
    T_EQ_U64(t.hits, 6); /* the root, four kinds, one measured */
    T_EQ_U64(t.counts.ineligible, 3);
    T_EQ_U64(t.counts.received, 9);
    f_close(&f);
}

TEST(with_the_clients_header_flags_alone_make_top_level)
{
    struct fixture f;
    open_profile(&f, WEIR_PROFILE_ALL);
    struct weir_value one[WEIR_TAG_SLOTS_MAX];
    one[WEIR_TAG_TOP_LEVEL] = (struct weir_value){.type = WEIR_VALUE_INT, .v = {.i = 1}};
    struct weir_span s[2] = {f_span("a", "r", f.now, 10), f_span("b", "r", f.now, 10)};
    ids(&s[0], 1, 0);
    ids(&s[1], 2, 1);
    s[1].slots = one;
    s[1].present = 1u << WEIR_TAG_TOP_LEVEL;
    const struct weir_source source = {.flags = WEIR_SOURCE_TOP_LEVEL_COMPUTED, .now_ns = f.now};
    T_OK(weir_stats_publish(f.p, &source, s, 2));
    T_EQ_U64(seal(&f).top_level, 1);
    f_close(&f);
}

TEST(a_large_trace_finds_its_parents_too)
{
    struct fixture f;
    open_profile(&f, WEIR_PROFILE_ALL);
    enum { SPANS = 500 };
    static struct weir_span s[SPANS];
    struct t_rng rng = t_rng(t_seed());
    uint64_t want = 0;
    for (size_t i = 0; i < SPANS; i++) {
        s[i] = f_span(t_below(&rng, 2) ? "a" : "b", "r", f.now, 10);
        const size_t parent = (size_t)t_below(&rng, SPANS);
        ids(&s[i], i + 1, parent == i ? 0 : parent + 1);
    }
    for (size_t i = 0; i < SPANS; i++) {
        const uint64_t parent = s[i].parent_id;
        want += parent == 0 || s[parent - 1].service.ptr[0] != s[i].service.ptr[0];
    }
    f_publish(&f, s, SPANS);
    T_EQ_U64(seal(&f).top_level, want);
    f_close(&f);
}

/* Case S22: both are counted; the first of them is the parent of their children. */
TEST(of_spans_with_one_id_each_counts_and_the_first_is_the_parent)
{
    static const size_t sizes[] = {4, 300};
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        struct fixture f;
        open_profile(&f, WEIR_PROFILE_ALL);
        static struct weir_span s[300];
        const size_t n = sizes[k];
        for (size_t i = 0; i < n; i++) {
            s[i] = f_span("b", "r", f.now, 10); /* the twins, but for the first and the last */
            ids(&s[i], 77, 99);
        }
        s[0].service = f_str("a");
        s[n - 1].service = f_str("a");
        ids(&s[n - 1], 5, 77);
        f_publish(&f, s, n);
        struct totals t = seal(&f);
        T_EQ_U64(t.hits, n);
        T_EQ_U64(t.top_level, 0); /* parent 99 is absent; the child's is of its own service */
        s[n - 1].service = f_str("b");
        f_publish(&f, s, n);
        t = seal(&f);
        T_EQ_U64(t.hits, n);
        T_EQ_U64(t.top_level, 1);
        struct weir_stats_health h;
        weir_stats_get_health(f.st, &h);
        T_EQ_U64(h.duplicate_ids, 2 * (n - 2));
        f_close(&f);
    }
}

TEST(ids_that_differ_are_not_called_duplicates)
{
    struct fixture f;
    open_profile(&f, WEIR_PROFILE_ALL);
    struct t_rng rng = t_rng(t_seed());
    struct weir_span s[40];
    for (size_t n = 1; n <= 40; n++) {
        for (size_t i = 0; i < n; i++) {
            s[i] = f_span("b", "r", f.now, 10);
            ids(&s[i], t_next(&rng) | 1, 0);
        }
        f_publish(&f, s, n);
    }
    struct weir_stats_health h;
    weir_stats_get_health(f.st, &h);
    T_EQ_U64(h.duplicate_ids, 0);
    f_close(&f);
}

TEST(loose_spans_find_parents_by_trace_and_span_id)
{
    struct fixture f;
    open_profile(&f, WEIR_PROFILE_ALL);
    struct weir_span s[3] = {f_span("a", "r", f.now, 10), f_span("b", "r", f.now, 10),
                             f_span("b", "r", f.now, 10)};
    ids(&s[0], 1, 0);
    ids(&s[1], 2, 1);
    ids(&s[2], 3, 1);
    s[2].trace_id = 1234; /* its parent 1 is of another trace: absent */
    for (size_t i = 0; i < 3; i++)
        s[i].flags |= WEIR_SPAN_LOOSE;
    f_publish(&f, s, 3);
    const struct totals t = seal(&f);
    T_EQ_U64(t.top_level, 2);
    T_EQ_U64(t.hits, 3);
    f_close(&f);
}

TEST(a_group_with_a_zero_id_or_a_foreign_span_goes_whole_and_counted)
{
    struct fixture f;
    open_profile(&f, WEIR_PROFILE_ALL);
    struct weir_span s[2] = {f_span("a", "r", f.now, 10), f_span("a", "r", f.now, 10)};
    ids(&s[0], 1, 0);
    ids(&s[1], 0, 1);
    f_publish(&f, s, 2);
    ids(&s[1], 2, 1);
    s[1].trace_id = 8;
    f_publish(&f, s, 2);
    s[1].trace_id = 7;
    f_publish(&f, s, 2);
    const struct totals t = seal(&f);
    T_EQ_U64(t.counts.dropped[WEIR_DROP_ID_ZERO], 2);
    T_EQ_U64(t.counts.dropped[WEIR_DROP_FOREIGN_TRACE], 2);
    T_EQ_U64(t.hits, 2);
    f_close(&f);
}

TEST(a_partial_snapshot_never_counts)
{
    struct fixture f;
    open_profile(&f, WEIR_PROFILE_ALL);
    struct weir_value v[3];
    struct weir_span s[3];
    struct weir_value slots[3][WEIR_TAG_SLOTS_MAX];
    const double versions[] = {0, 12345, -3}; /* two snapshots, then finished (case 6) */
    for (size_t i = 0; i < 3; i++) {
        v[i] = (struct weir_value){.type = WEIR_VALUE_DOUBLE, .v = {.d = versions[i]}};
        slots[i][WEIR_TAG_PARTIAL] = v[i];
        s[i] = f_span("a", "r", f.now, 10);
        s[i].slots = slots[i];
        s[i].present = 1u << WEIR_TAG_PARTIAL;
    }
    f_publish(&f, s, 3);
    const struct totals t = seal(&f);
    T_EQ_U64(t.hits, 1);
    T_EQ_U64(t.counts.partial, 2);
    f_close(&f);
}

TEST(an_error_is_a_hit_with_a_sketch_of_its_own)
{
    struct fixture f;
    open_profile(&f, WEIR_PROFILE_ALL);
    struct weir_span s[2] = {f_span("a", "r", f.now, 10), f_span("a", "r", f.now, 30)};
    s[1].flags |= WEIR_SPAN_ERROR;
    s[1].span_id = 9;
    f_publish(&f, s, 2);
    f_seal(&f);
    struct weir_batch_info info;
    struct weir_batch *const b = f_take(&f, &info);
    T_TRUE(b && info.rows == 1);
    struct weir_row r;
    weir_batch_get_row(b, 0, &r);
    T_EQ_U64(r.hits, 2 * WEIR_WEIGHT_ONE);
    T_EQ_U64(r.errors, WEIR_WEIGHT_ONE);
    double max = 0;
    T_OK(weir_sketch_max(r.error, &max));
    T_EQ_DBL(max, 30e-9);
    T_OK(weir_sketch_max(r.ok, &max));
    T_EQ_DBL(max, 10e-9);
    weir_batch_release(b);
    f_close(&f);
}

TEST(a_negative_duration_is_a_hit_of_zero_and_counted)
{
    struct fixture f;
    open_profile(&f, WEIR_PROFILE_ALL);
    struct weir_span s = f_span("a", "r", f.now, 10);
    s.duration_ns = -5;
    f_publish(&f, &s, 1);
    f_seal(&f);
    struct weir_batch_info info;
    struct weir_batch *const b = f_take(&f, &info);
    struct weir_row r;
    weir_batch_get_row(b, 0, &r);
    T_EQ_U64(r.hits, WEIR_WEIGHT_ONE);
    T_EQ_U64(weir_sketch_weight(r.ok), WEIR_WEIGHT_ONE);
    T_EQ_DBL(weir_sketch_sum(r.ok), 0.0);
    struct weir_stats_health h;
    weir_stats_get_health(f.st, &h);
    T_EQ_U64(h.negative_duration, 1);
    weir_batch_release(b);
    f_close(&f);
}

TEST(a_weight_counts_in_hits_and_sketch_alike_and_is_capped)
{
    struct fixture f;
    open_profile(&f, WEIR_PROFILE_ALL);
    struct weir_span s[2] = {f_span("a", "r", f.now, 10), f_span("a", "r", f.now, 20)};
    s[0].weight = WEIR_WEIGHT_ONE * 3 / 2;
    s[1].weight = UINT64_MAX;
    s[1].span_id = 9;
    f_publish(&f, s, 2);
    f_seal(&f);
    struct weir_batch_info info;
    struct weir_batch *const b = f_take(&f, &info);
    T_EQ_U64(info.counts.admitted_weight, WEIR_WEIGHT_ONE * 3 / 2 + (WEIR_WEIGHT_ONE << 20));
    struct weir_stats_health h;
    weir_stats_get_health(f.st, &h);
    T_EQ_U64(h.weight_capped, 1);
    weir_batch_release(b);
    f_close(&f);
}
