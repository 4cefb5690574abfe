/* SPDX-License-Identifier: Apache-2.0 */
/* Limits of distinct values a field: first come, a cycle each, and what is kept warm. */
#include "fixture.h"

#include "base/hash.h"

#include <stdio.h>
#include <stdlib.h>

static struct weir_stats_opts client_opts(struct fixture *f)
{
    struct weir_stats_opts o = f_opts(f);
    o.profile = WEIR_PROFILE_CLIENT;
    return o;
}

static void one(struct fixture *f, const char *service, const char *resource)
{
    const struct weir_span s = f_span(service, resource, f->now, 100);
    f_publish(f, &s, 1);
}

static void many_services(struct fixture *f, int from, int to)
{
    char name[24];
    for (int i = from; i < to; i++) {
        (void)snprintf(name, sizeof name, "svc-%d", i);
        one(f, name, "r");
    }
}

static struct weir_stats_health health(const struct fixture *f)
{
    struct weir_stats_health h;
    weir_stats_get_health(f->st, &h);
    return h;
}

/* Rows in all, and how many have that value. */
static size_t sealed_rows(struct fixture *f, const char *label, const char *value,
                          uint64_t *ret_hits, size_t *ret_rows)
{
    size_t with = 0;
    struct weir_batch_info info = {0};
    f_seal(f);
    struct weir_batch *const b = f_take(f, &info);
    *ret_hits = 0;
    for (size_t i = 0; i < info.rows; i++) {
        if (!f_has(b, i, label, value))
            continue;
        struct weir_row r;
        weir_batch_get_row(b, i, &r);
        *ret_hits += r.hits / WEIR_WEIGHT_ONE;
        with++;
    }
    *ret_rows = info.rows;
    weir_batch_release(b);
    return with;
}

TEST(the_33rd_service_of_a_cycle_is_the_sentinel_and_in_the_next_has_its_name)
{
    struct fixture f;
    const struct weir_stats_opts o = client_opts(&f);
    f_open(&f, &o);
    many_services(&f, 0, 33);
    uint64_t hits;
    size_t rows;
    T_EQ_U64(sealed_rows(&f, "service_name", "tracer_blocked_value", &hits, &rows), 1);
    T_EQ_U64(rows, 33);
    T_EQ_U64(health(&f).collapsed[WEIR_LIMIT_SERVICE], 1);
    many_services(&f, 32, 33);
    T_EQ_U64(sealed_rows(&f, "service_name", "svc-32", &hits, &rows), 1);
    T_EQ_U64(rows, 1);
    T_EQ_U64(health(&f).collapsed[WEIR_LIMIT_SERVICE], 1);
    f_close(&f);
}

TEST(what_is_past_the_limit_is_one_row_and_nothing_is_lost)
{
    struct fixture f;
    struct weir_stats_opts o = client_opts(&f);
    o.limits[WEIR_LIMIT_SERVICE] = 2;
    f_open(&f, &o);
    for (int i = 0; i < 3; i++)
        many_services(&f, 0, 4);
    uint64_t hits;
    size_t rows;
    T_EQ_U64(sealed_rows(&f, "service_name", "tracer_blocked_value", &hits, &rows), 1);
    T_EQ_U64(rows, 3);
    T_EQ_U64(hits, 6);
    T_EQ_U64(health(&f).collapsed[WEIR_LIMIT_SERVICE], 6);
    T_EQ_U64(health(&f).aggregated, 12);
    /* The budget is of this cycle: what was first before is nothing now. */
    one(&f, "svc-3", "r");
    one(&f, "svc-0", "r");
    one(&f, "svc-1", "r");
    T_EQ_U64(sealed_rows(&f, "service_name", "tracer_blocked_value", &hits, &rows), 1);
    T_EQ_U64(hits, 1);
    f_close(&f);
}

TEST(a_cycle_ends_with_the_window_and_with_a_report)
{
    struct fixture f;
    struct weir_stats_opts o = client_opts(&f);
    o.limits[WEIR_LIMIT_SERVICE] = 1;
    f_open(&f, &o);
    one(&f, "a", "r");
    one(&f, "b", "r");
    T_EQ_U64(health(&f).collapsed[WEIR_LIMIT_SERVICE], 1);
    f.now += 10 * f_second;
    f_poll(&f);
    one(&f, "b", "r");
    T_EQ_U64(health(&f).collapsed[WEIR_LIMIT_SERVICE], 1);
    struct weir_signal_node report = {.kind = WEIR_SIGNAL_REPORT};
    weir_stats_signal(f.st, &report);
    f_poll(&f);
    one(&f, "c", "r");
    T_EQ_U64(health(&f).collapsed[WEIR_LIMIT_SERVICE], 1);
    /* CLEAR is no report. */
    struct weir_signal_node clear = {.kind = WEIR_SIGNAL_CLEAR};
    weir_stats_signal(f.st, &clear);
    f_poll(&f);
    one(&f, "d", "r");
    T_EQ_U64(health(&f).collapsed[WEIR_LIMIT_SERVICE], 2);
    f_close(&f);
}

TEST(a_value_stays_warm_for_exactly_one_cycle)
{
    struct fixture f;
    const struct weir_stats_opts o = client_opts(&f);
    f_open(&f, &o);
    struct wr_limits *const l = &f.st->limits;
    char key[64] = {0};
    static const char service[] = "a-service";
    wr_store64le(key, UINT64_C(1) << WR_FIELD_SERVICE);
    wr_store16le(key + 8, sizeof service - 1);
    memcpy(key + 10, service, sizeof service - 1);
    const size_t bytes = 10 + sizeof service - 1;
    struct wr_folded folded;
    T_EQ_I64(wr_limits_admit(l, key, bytes, WEIR_WEIGHT_ONE, &folded), 0);
    const long long live = f.heap.live;
    wr_limits_cycle(l);
    T_EQ_I64(f.heap.live, live); /* held */
    const long calls = f.heap.seen;
    T_EQ_I64(wr_limits_admit(l, key, bytes, WEIR_WEIGHT_ONE, &folded), 0);
    T_EQ_I64(f.heap.seen, calls); /* taken over */
    wr_limits_cycle(l);
    wr_limits_cycle(l);
    T_TRUE(f.heap.live < live); /* gone */
    T_EQ_I64(wr_limits_admit(l, key, bytes, WEIR_WEIGHT_ONE, &folded), 0);
    T_TRUE(f.heap.seen > calls);
    f_close(&f);
}

TEST(a_limited_key_costs_once_an_entry_and_window)
{
    struct fixture f;
    struct weir_stats_opts o = client_opts(&f);
    o.limits[WEIR_LIMIT_SERVICE] = 1;
    f_open(&f, &o);
    one(&f, "a", "r");
    struct wr_limits *const l = &f.st->limits;
    wr_limits_cycle(l);
    one(&f, "b", "r"); /* takes the budget */
    one(&f, "a", "r"); /* was admitted to this window before: not asked again */
    T_EQ_U64(health(&f).collapsed[WEIR_LIMIT_SERVICE], 0);
    one(&f, "c", "r");
    T_EQ_U64(health(&f).collapsed[WEIR_LIMIT_SERVICE], 1);
    f_close(&f);
}

TEST(each_field_has_its_own_limit_and_counter)
{
    static const char *const peers[] = {"peer.hostname", "peer.service"};
    static const char *const dimensions[] = {"region", "zone"};
    static const struct {
        enum weir_limit limit;
        size_t slot; /* 0: by index below */
        const char *label;
    } cases[] = {
        {WEIR_LIMIT_RESOURCE, 0, "span_name"},
        {WEIR_LIMIT_OPERATION, 0, "operation_name"},
        {WEIR_LIMIT_TYPE, 0, "span_type"},
        {WEIR_LIMIT_KIND, WEIR_TAG_KIND, "span_kind"},
        {WEIR_LIMIT_SERVICE_SOURCE, WEIR_TAG_SERVICE_SOURCE, "service_source"},
        {WEIR_LIMIT_HTTP_METHOD, WEIR_TAG_HTTP_METHOD, "http_request_method"},
        {WEIR_LIMIT_HTTP_ENDPOINT, WEIR_TAG_HTTP_ENDPOINT, "http_endpoint"},
        {WEIR_LIMIT_GRPC_STATUS, WEIR_TAG_GRPC_STATUS, "rpc_grpc_status_code"},
        {WEIR_LIMIT_PEER_TAGS, WEIR_TAG_FIXED + 1, "peer_service"},
        {WEIR_LIMIT_ADDITIONAL, WEIR_TAG_FIXED + 3, "zone"},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        struct fixture f;
        struct weir_stats_opts o = client_opts(&f);
        o.flags = WEIR_STATS_ENDPOINTS;
        o.peer_tags = peers;
        o.peer_tag_count = 2;
        o.dimensions = dimensions;
        o.dimension_count = 2;
        o.limits[cases[k].limit] = 2;
        f_open(&f, &o);
        for (int i = 0; i < 5; i++) {
            static const char *const values[] = {"v0", "v1", "v2", "v3", "v1"};
            struct weir_value slots[WEIR_TAG_SLOTS_MAX] = {{0}};
            struct weir_span s = f_span("a", "r", f.now, 100);
            s.kind = WEIR_KIND_CLIENT;
            if (cases[k].limit == WEIR_LIMIT_RESOURCE)
                s.resource = f_str(values[i]);
            if (cases[k].limit == WEIR_LIMIT_OPERATION)
                s.name = f_str(values[i]);
            s.type = f_str(cases[k].limit == WEIR_LIMIT_TYPE ? values[i] : "rpc");
            slots[cases[k].slot] =
                (struct weir_value){.type = WEIR_VALUE_BYTES, .len = 2, .v = {.ptr = values[i]}};
            s.slots = slots;
            s.present = cases[k].slot ? UINT64_C(1) << cases[k].slot : 0;
            f_publish(&f, &s, 1);
        }
        T_EQ_U64(health(&f).collapsed[cases[k].limit], 2);
        uint64_t hits;
        size_t rows;
        T_EQ_U64(sealed_rows(&f, cases[k].label, "tracer_blocked_value", &hits, &rows), 1);
        T_EQ_U64(rows, 3);
        T_EQ_U64(hits, 2);
        uint64_t all = 0;
        const struct weir_stats_health h = health(&f);
        for (size_t i = 0; i < WEIR_LIMIT_SLOTS; i++)
            all += h.collapsed[i];
        T_EQ_U64(all, 2);
        T_TRUE(strcmp(weir_limit_name(cases[k].limit), "unknown") != 0);
        f_close(&f);
    }
    T_EQ_STR(weir_limit_name(WEIR_LIMIT_OPERATION), "name");
    T_EQ_STR(weir_limit_name(WEIR_LIMIT_COUNT), "unknown");
}

TEST(a_dimension_of_200_units_passes_and_201_are_blocked_before_the_budget)
{
    static const char *const dimensions[] = {"region"};
    char text[1000];
    static const struct {
        const char *unit;
        size_t count;
        bool passes;
    } cases[] = {
        {"x", 200, true},
        {"x", 201, false},
        {"\xe6\x97\xa5", 200, true},
        {"\xe6\x97\xa5", 201, false},
        {"\xf0\x9f\x98\x80", 100, true},
        {"\xf0\x9f\x98\x80", 101, false},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        struct fixture f;
        struct weir_stats_opts o = client_opts(&f);
        o.dimensions = dimensions;
        o.dimension_count = 1;
        o.limits[WEIR_LIMIT_ADDITIONAL] = 1;
        f_open(&f, &o);
        const size_t unit = strlen(cases[k].unit);
        for (size_t i = 0; i < cases[k].count; i++)
            memcpy(text + i * unit, cases[k].unit, unit);
        text[cases[k].count * unit] = 0;
        struct weir_value slots[WEIR_TAG_FIXED + 1];
        slots[WEIR_TAG_FIXED] = (struct weir_value){
            .type = WEIR_VALUE_BYTES, .len = (uint32_t)strlen(text), .v = {.ptr = text}};
        struct weir_span s = f_span("a", "r", f.now, 100);
        s.slots = slots;
        s.present = UINT64_C(1) << WEIR_TAG_FIXED;
        f_publish(&f, &s, 1);
        T_EQ_U64(health(&f).oversized, !cases[k].passes);
        T_EQ_U64(health(&f).collapsed[WEIR_LIMIT_ADDITIONAL], 0);
        uint64_t hits;
        size_t rows;
        T_EQ_U64(sealed_rows(&f, "region", cases[k].passes ? text : "tracer_blocked_value", &hits,
                             &rows),
                 1);
        T_TRUE(cases[k].passes || f.st->limits.of[0]->at[WR_FIELD_FIXED] != NULL);
        f_close(&f);
    }
}

TEST(limits_are_off_outside_of_profile_client_unless_they_are_given)
{
    struct fixture f;
    struct weir_stats_opts o = f_opts(&f);
    f_open(&f, &o);
    T_TRUE(!f.st->limits.limited);
    many_services(&f, 0, 100);
    uint64_t hits;
    size_t rows;
    T_EQ_U64(sealed_rows(&f, "service_name", "tracer_blocked_value", &hits, &rows), 0);
    T_EQ_U64(rows, 100);
    f_close(&f);
    o = f_opts(&f);
    o.limits[WEIR_LIMIT_SERVICE] = 10;
    f_open(&f, &o);
    many_services(&f, 0, 100);
    T_EQ_U64(sealed_rows(&f, "service_name", "tracer_blocked_value", &hits, &rows), 1);
    T_EQ_U64(rows, 11);
    T_EQ_U64(hits, 90);
    f_close(&f);
    o = client_opts(&f);
    o.limits[WEIR_LIMIT_SERVICE] = WEIR_LIMIT_OFF;
    f_open(&f, &o);
    many_services(&f, 0, 100);
    T_EQ_U64(sealed_rows(&f, "service_name", "tracer_blocked_value", &hits, &rows), 0);
    f_close(&f);
    o.limits[WEIR_LIMIT_SERVICE] = WEIR_LIMIT_MAX + 1;
    T_ERR(weir_stats_new(&o, &f.st), WEIR_EINVAL);
    o.limits[WEIR_LIMIT_SERVICE] = 0;
    o.limits[WEIR_LIMIT_COUNT] = 1;
    T_ERR(weir_stats_new(&o, &f.st), WEIR_EINVAL);
}

TEST(a_literal_sentinel_asks_for_no_room)
{
    struct fixture f;
    struct weir_stats_opts o = client_opts(&f);
    o.limits[WEIR_LIMIT_SERVICE] = 1;
    f_open(&f, &o);
    one(&f, "tracer_blocked_value", "r");
    one(&f, "a", "r");
    one(&f, "b", "r");
    T_EQ_U64(health(&f).collapsed[WEIR_LIMIT_SERVICE], 1);
    uint64_t hits;
    size_t rows;
    T_EQ_U64(sealed_rows(&f, "service_name", "tracer_blocked_value", &hits, &rows), 1);
    T_EQ_U64(hits, 2);
    f_close(&f);
}

static void admit_or_drop(struct fixture *f)
{
    for (int i = 0; i < 8; i++) {
        char name[24];
        (void)snprintf(name, sizeof name, "svc-%d", i);
        const struct weir_span s = f_span(name, "r", f->now, 100);
        const struct weir_source source = {.now_ns = f->now};
        const int r = weir_stats_publish(f->p, &source, &s, 1);
        T_TRUE(r == WEIR_OK || r == WEIR_EFULL);
        (void)weir_stats_poll(f->st, f->now, f->now - f->wall_minus_mono);
    }
}

TEST(a_value_for_which_there_is_no_memory_drops_its_span_counted)
{
    for (long at = 0; at < 64; at++) {
        struct fixture f;
        struct weir_stats_opts o = client_opts(&f);
        o.limits[WEIR_LIMIT_SERVICE] = 4;
        f_open(&f, &o);
        f.heap.fail_at = f.heap.seen + at;
        admit_or_drop(&f);
        f.heap.fail_at = -1;
        f_poll(&f);
        const struct weir_stats_health h = health(&f);
        uint64_t dropped = 0;
        for (size_t i = 0; i < WEIR_DROP_COUNT; i++)
            dropped += h.dropped[i];
        T_EQ_U64(h.received, 8);
        T_EQ_U64(h.aggregated + dropped, 8);
        T_TRUE(wr_shard_check(&f.st->shard));
        f_close(&f);
    }
}

static bool folded_is(const struct weir_folded *v, const char *name, const char *value)
{
    return v->name.len == strlen(name) && memcmp(v->name.ptr, name, v->name.len) == 0 &&
           v->value.len == strlen(value) && memcmp(v->value.ptr, value, v->value.len) == 0;
}

/* One span of each of n resources, and times of one. */
static void flood(struct fixture *f, const char *heavy, int times, int n)
{
    char text[24];
    for (int i = 0; i < n; i++) {
        (void)snprintf(text, sizeof text, "noise-%d", i);
        const struct weir_span s = f_span("svc", text, f->now, 100);
        f_publish(f, &s, 1);
    }
    for (int i = 0; i < times; i++) {
        const struct weir_span s = f_span("svc", heavy, f->now, 100);
        f_publish(f, &s, 1);
    }
}

TEST(an_operator_sees_which_values_were_folded_and_how_much_room_they_wanted)
{
    struct fixture f;
    struct weir_stats_opts o = f_opts(&f);
    o.limits[WEIR_LIMIT_RESOURCE] = 10;
    o.limits[WEIR_LIMIT_SERVICE] = 5;
    f_open(&f, &o);
    struct weir_folded v;
    T_TRUE(!weir_stats_get_folded(f.st, WEIR_LIMIT_RESOURCE, 0, &v));
    flood(&f, "heavy", 200, 1010); /* 1,000 of them and heavy find no room */
    T_TRUE(weir_stats_get_folded(f.st, WEIR_LIMIT_RESOURCE, 0, &v));
    T_TRUE(folded_is(&v, "span_name", "heavy"));
    T_EQ_U64(v.hits_at_least, 200 * WEIR_WEIGHT_ONE);
    T_TRUE(v.hits_at_most >= v.hits_at_least);
    T_TRUE(v.hits_at_most <= 220 * WEIR_WEIGHT_ONE); /* 1,200 hits by 64 counters are 19 over */
    T_TRUE(weir_stats_get_folded(f.st, WEIR_LIMIT_RESOURCE, WEIR_FOLDED_TOP - 1, &v));
    T_TRUE(!weir_stats_get_folded(f.st, WEIR_LIMIT_RESOURCE, WEIR_FOLDED_TOP, &v));
    T_TRUE(!weir_stats_get_folded(f.st, WEIR_LIMIT_SERVICE, 0, &v));
    T_TRUE(!weir_stats_get_folded(f.st, WEIR_LIMIT_COUNT, 0, &v));
    struct weir_stats_health h;
    weir_stats_get_health(f.st, &h);
    T_TRUE(h.folded[WEIR_LIMIT_RESOURCE] >= 900 && h.folded[WEIR_LIMIT_RESOURCE] <= 1100);
    T_EQ_U64(h.folded[WEIR_LIMIT_SERVICE], 0);
    T_EQ_U64(h.limits[WEIR_LIMIT_RESOURCE], 10);
    T_EQ_U64(h.limits[WEIR_LIMIT_TYPE], WEIR_LIMIT_OFF);
    T_EQ_U64(h.collapsed[WEIR_LIMIT_RESOURCE], 1200);
    f_close(&f);
}

TEST(what_was_folded_is_told_until_the_next_cycle_that_folds_any)
{
    struct fixture f;
    struct weir_stats_opts o = f_opts(&f);
    o.limits[WEIR_LIMIT_RESOURCE] = 1;
    f_open(&f, &o);
    struct weir_folded v;
    flood(&f, "first", 3, 1);
    f.now += 10 * f_second;
    f_poll(&f);
    T_TRUE(weir_stats_get_folded(f.st, WEIR_LIMIT_RESOURCE, 0, &v) &&
           folded_is(&v, "span_name", "first"));
    flood(&f, "second", 1, 1);
    T_TRUE(weir_stats_get_folded(f.st, WEIR_LIMIT_RESOURCE, 0, &v) &&
           folded_is(&v, "span_name", "second"));
    T_EQ_U64(v.hits_at_least, WEIR_WEIGHT_ONE);
    T_TRUE(!weir_stats_get_folded(f.st, WEIR_LIMIT_RESOURCE, 1, &v));
    struct weir_stats_health h;
    weir_stats_get_health(f.st, &h);
    T_EQ_U64(h.folded[WEIR_LIMIT_RESOURCE], 1);
    f_close(&f);
}

/* Against exact counts: what is told is within its bounds, and all that are frequent are told. */
TEST(bounds_of_folded_values_hold_against_exact_counts)
{
    enum { VALUES = 500, HITS = 20000 };
    struct wr_folded_values *const v = calloc(1, sizeof *v);
    T_TRUE(v != NULL);
    uint64_t exact[VALUES] = {0};
    struct t_rng rng = t_rng(t_seed());
    for (int i = 0; i < HITS; i++) {
        /* Skewed: half of all on the first twenty. */
        const uint64_t k = t_below(&rng, 2) ? t_below(&rng, 20) : t_below(&rng, VALUES);
        const uint64_t weight = 1 + t_below(&rng, 3);
        exact[k] += weight;
        char text[8];
        const int len = snprintf(text, sizeof text, "%u", (unsigned)k);
        wr_folded_add(v, wr_hash(text, (size_t)len, 1), 0, 3, text, (size_t)len, weight);
    }
    uint64_t total = 0;
    for (size_t k = 0; k < VALUES; k++)
        total += exact[k];
    size_t told[VALUES] = {0};
    for (size_t r = 0; r < WR_FOLDED_SLOTS; r++) {
        const struct wr_folded_value *const f = wr_folded_top(v, r);
        T_TRUE(f != NULL);
        unsigned k = 0;
        for (size_t i = 0; i < f->bytes; i++)
            k = k * 10 + (unsigned)(f->text[i] - '0');
        T_TRUE(k < VALUES);
        told[k]++;
        T_TRUE(f->count >= exact[k] && f->count - f->over <= exact[k]);
        T_TRUE(f->over <= total / WR_FOLDED_SLOTS);
    }
    for (size_t k = 0; k < VALUES; k++) {
        T_TRUE(told[k] <= 1);
        T_TRUE(told[k] == 1 || exact[k] <= total / WR_FOLDED_SLOTS);
    }
    T_TRUE(wr_folded_top(v, WR_FOLDED_SLOTS) == NULL);
    T_TRUE(wr_folded_distinct(v) >= VALUES * 9 / 10 && wr_folded_distinct(v) <= VALUES * 11 / 10);
    free(v);
}
