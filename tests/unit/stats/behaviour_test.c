/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows of the case list and vectors of the contract that concern statistics and are in no other
 * file beside; cases.tsv says which test is whose.
 */
#include "fixture.h"

#include <stdio.h>

static struct weir_stats_health health(const struct fixture *f)
{
    struct weir_stats_health h;
    weir_stats_get_health(f->st, &h);
    return h;
}

static uint64_t hits_of(const struct weir_batch *b, const struct weir_batch_info *info,
                        const char *name, const char *value)
{
    uint64_t hits = 0;
    for (size_t i = 0; i < info->rows; i++) {
        struct weir_row row;
        weir_batch_get_row(b, i, &row);
        hits += f_has(b, i, name, value) ? row.hits : 0;
    }
    return hits;
}

TEST(C08_a_users_attribute_of_the_name_of_an_overflow_mark_is_an_ordinary_label)
{
    static const char *const dimension[] = {"otel.metric.overflow"};
    struct fixture f;
    struct weir_stats_opts o = f_opts(&f);
    o.dimensions = dimension;
    o.dimension_count = 1;
    f_open(&f, &o);
    struct weir_value slots[WEIR_TAG_SLOTS_MAX];
    const struct weir_tag_match *const m =
        weir_tags_find(weir_stats_tags(f.st), dimension[0], strlen(dimension[0]));
    T_TRUE(m != NULL);
    slots[m->slot] = (struct weir_value){.type = WEIR_VALUE_BOOL, .v = {.i = 1}};
    struct weir_span s[3];
    for (size_t i = 0; i < 3; i++)
        s[i] = f_span("svc", i == 2 ? "other" : "marked", f.now, 10);
    s[0].slots = slots;
    s[0].present = UINT64_C(1) << m->slot;
    f_publish(&f, s, 3);
    T_EQ_U64(health(&f).overflow, 0);
    f_seal(&f);
    struct weir_batch_info info;
    struct weir_batch *const b = f_take(&f, &info);
    T_EQ_U64(info.rows, 3);
    T_EQ_U64(hits_of(b, &info, "otel_metric_overflow", "true"), WEIR_WEIGHT_ONE);
    T_EQ_U64(hits_of(b, &info, "span_name", "other"), WEIR_WEIGHT_ONE);
    weir_batch_release(b);
    f_close(&f);
}

TEST(T01_a_process_that_began_anew_goes_on_in_its_series)
{
    struct fixture f;
    const struct weir_stats_opts o = f_opts(&f);
    f_open(&f, &o);
    T_TRUE(!weir_tags_find(weir_stats_tags(f.st), "process.pid", 11)); /* so no key has it */
    uint64_t total = 0;
    for (int pid = 1; pid <= 2; pid++) {
        for (int i = 0; i < 10; i++) {
            const struct weir_span s = f_span("svc", "r", f.now, 10);
            f_publish(&f, &s, 1);
        }
        f_seal(&f);
        struct weir_batch_info info;
        struct weir_batch *const b = f_take(&f, &info);
        T_EQ_U64(info.rows, 1);
        total += info.counts.rows_weight;
        T_EQ_U64(total, (uint64_t)pid * 10 * WEIR_WEIGHT_ONE);
        T_EQ_U64(health(&f).keys, 1);
        weir_batch_release(b);
        f.now += 10 * f_second;
        f_poll(&f);
    }
    f_close(&f);
}

TEST(T21_a_rate_of_two_thirds_is_one_and_a_half_and_a_tiny_one_is_capped_in_one_step)
{
    struct fixture f;
    const struct weir_stats_opts o = f_opts(&f);
    f_open(&f, &o);
    struct weir_span s = f_span("half", "r", f.now, 10);
    s.weight = weir_weight_of_rate(2.0 / 3.0);
    T_EQ_U64(s.weight, WEIR_WEIGHT_ONE / 2 * 3);
    f_publish(&f, &s, 1);
    s = f_span("tiny", "r", f.now, 10);
    s.weight = weir_weight_of_rate(1e-9);
    f_publish(&f, &s, 1);
    T_EQ_U64(health(&f).weight_capped, 1);
    f_seal(&f);
    struct weir_batch_info info;
    struct weir_batch *const b = f_take(&f, &info);
    T_EQ_U64(hits_of(b, &info, "service_name", "half"), WEIR_WEIGHT_ONE / 2 * 3);
    T_EQ_U64(hits_of(b, &info, "service_name", "tiny"), WEIR_WEIGHT_ONE << 20);
    weir_batch_release(b);
    f_close(&f);
}

static void count(struct weir_signal_node *node)
{
    ++*(int *)node->ctx;
}

TEST(J9_a_full_inbox_neither_keeps_a_report_out_nor_makes_it_wait)
{
    struct fixture f;
    struct weir_stats_opts o = f_opts(&f);
    o.profile = WEIR_PROFILE_CLIENT;
    f_open(&f, &o);
    struct weir_producer *p;
    T_OK(weir_producer_new(f.st, 4096, 0, &p));
    const struct weir_source source = {.now_ns = f.now};
    const struct weir_span s = f_span("svc", "r", f.now, 100);
    uint64_t taken = 0;
    while (weir_stats_publish(p, &source, &s, 1) == WEIR_OK)
        taken++;
    int done = 0;
    struct weir_signal_node report[20];
    for (size_t i = 0; i < 20; i++) { /* as many as come, while nobody drains */
        report[i] =
            (struct weir_signal_node){.kind = WEIR_SIGNAL_REPORT, .done = count, .ctx = &done};
        weir_stats_signal(f.st, &report[i]);
    }
    T_EQ_I64(done, 0);
    f_poll(&f);
    T_EQ_I64(done, 20);
    struct weir_batch_info info;
    struct weir_batch *const b = f_take(&f, &info);
    T_EQ_U64(info.counts.aggregated, taken);
    T_EQ_U64(info.counts.dropped[WEIR_DROP_INBOX_FULL], 1);
    weir_batch_release(b);
    T_TRUE(f_take(&f, &info) == NULL); /* nothing since: nothing sent */
    weir_producer_free(p);
    f_close(&f);
}

TEST(V3_of_eleven_services_at_a_cap_of_ten_the_first_ten_are_sent_and_one_drop_is_counted)
{
    struct fixture f;
    struct weir_stats_opts o = f_opts(&f);
    o.profile = WEIR_PROFILE_CLIENT;
    o.max_keys = 10;
    o.cap = WEIR_CAP_DROP;
    f_open(&f, &o);
    char name[16];
    for (int i = 0; i < 11; i++) {
        (void)snprintf(name, sizeof name, "service%d", i);
        const struct weir_span s = f_span(name, "r", f.now, 100);
        f_publish(&f, &s, 1);
    }
    f_seal(&f);
    struct weir_batch_info info;
    struct weir_batch *const b = f_take(&f, &info);
    T_EQ_U64(info.rows, 10);
    for (int i = 0; i < 10; i++) {
        (void)snprintf(name, sizeof name, "service%d", i);
        T_EQ_U64(hits_of(b, &info, "service_name", name), WEIR_WEIGHT_ONE);
    }
    T_EQ_U64(info.counts.dropped[WEIR_DROP_TABLE_FULL], 1);
    weir_batch_release(b);
    f_close(&f);
}

TEST(V9_three_groups_of_grpc_codes_0_and_5_and_none)
{
    struct fixture f;
    struct weir_stats_opts o = f_opts(&f);
    o.profile = WEIR_PROFILE_CLIENT;
    f_open(&f, &o);
    static const char *const codes[] = {"0", "5", NULL};
    for (size_t i = 0; i < 3; i++) {
        struct weir_value slots[WEIR_TAG_SLOTS_MAX];
        struct weir_span s = f_span("svc", "r", f.now, 100);
        s.slots = slots;
        if (codes[i]) {
            s.type = f_str("rpc");
            slots[WEIR_TAG_GRPC_STATUS] =
                (struct weir_value){.type = WEIR_VALUE_BYTES, .len = 1, .v = {.ptr = codes[i]}};
            s.present = UINT64_C(1) << WEIR_TAG_GRPC_STATUS;
        }
        f_publish(&f, &s, 1);
    }
    f_seal(&f);
    struct weir_batch_info info;
    struct weir_batch *const b = f_take(&f, &info);
    T_EQ_U64(info.rows, 3);
    for (size_t i = 0; i < 3; i++)
        T_EQ_U64(hits_of(b, &info, "rpc_grpc_status_code", codes[i]), WEIR_WEIGHT_ONE);
    weir_batch_release(b);
    f_close(&f);
}

TEST(V14_durations_with_and_without_error_add_up_and_are_counted_apart)
{
    struct fixture f;
    struct weir_stats_opts o = f_opts(&f);
    o.profile = WEIR_PROFILE_CLIENT;
    f_open(&f, &o);
    static const int64_t ok[] = {2, 1, 2, 250, 4};
    static const int64_t bad[] = {1, 1, 200, 2, 8};
    for (size_t i = 0; i < 5; i++) {
        struct weir_span s[2] = {f_span("svc", "r", f.now, ok[i]),
                                 f_span("svc", "r", f.now, bad[i])};
        s[1].flags = WEIR_SPAN_ERROR;
        f_publish(&f, &s[0], 1);
        f_publish(&f, &s[1], 1);
    }
    f_seal(&f);
    struct weir_batch_info info;
    struct weir_batch *const b = f_take(&f, &info);
    T_EQ_U64(info.rows, 1);
    struct weir_row row;
    weir_batch_get_row(b, 0, &row);
    T_EQ_U64(row.hits, 10 * WEIR_WEIGHT_ONE);
    T_EQ_U64(row.errors, 5 * WEIR_WEIGHT_ONE);
    T_EQ_U64(weir_sketch_sum_ns(row.ok).lo, 259 * WEIR_WEIGHT_ONE);
    T_EQ_U64(weir_sketch_sum_ns(row.error).lo, 212 * WEIR_WEIGHT_ONE);
    T_EQ_U64(weir_sketch_weight(row.ok), 5 * WEIR_WEIGHT_ONE);
    T_EQ_U64(weir_sketch_weight(row.error), 5 * WEIR_WEIGHT_ONE);
    weir_batch_release(b);
    f_close(&f);
}
