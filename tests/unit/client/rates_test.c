/* SPDX-License-Identifier: Apache-2.0 */
/* The agent's sampling rates: given on when they changed, and only then. */
#include "fake.h"

struct got {
    size_t calls;
    size_t count;
    char key[64];
    double rate;
};

static void on_rates(void *ctx, const struct weir_client_rate *rates, size_t count)
{
    struct got *const g = ctx;
    g->calls++;
    g->count = count;
    if (count) {
        (void)snprintf(g->key, sizeof g->key, "%.*s", (int)rates[count - 1].key.len,
                       rates[count - 1].key.ptr);
        g->rate = rates[count - 1].rate;
    }
}

static void send_one(struct fake_rig *r)
{
    fake_trace(r, 1, WEIR_CLIENT_KEEP);
    fake_pass(r, FAKE_S);
}

static void open_rig(struct fake_rig *r, struct got *g)
{
    *g = (struct got){0};
    fake_init(r);
    r->opts.ctx = g;
    r->opts.rates = on_rates;
    fake_open(r, false);
    fake_poll(r);
}

TEST(rates_are_given_when_they_changed_by_text_where_there_is_no_version)
{
    static struct fake_rig r;
    struct got g;
    open_rig(&r, &g);
    r.agent.answer = "{\"rate_by_service\":{\"service:,env:\":1,\"service:a,env:b\":0.25}}";
    send_one(&r);
    T_EQ_U64(g.calls, 1);
    T_EQ_U64(g.count, 2);
    T_EQ_STR(g.key, "service:a,env:b");
    T_EQ_DBL(g.rate, 0.25);
    send_one(&r);
    T_EQ_U64(g.calls, 1);
    r.agent.answer = "{\"rate_by_service\":{\"service:,env:\":0.5}}";
    send_one(&r);
    T_EQ_U64(g.calls, 2);
    T_EQ_U64(fake_health(&r).rates_changed, 2);
    fake_close(&r);
}

TEST(a_version_of_rates_is_sent_back_and_the_same_one_is_not_read)
{
    static struct fake_rig r;
    struct got g;
    open_rig(&r, &g);
    r.agent.rates_version = "v1";
    r.agent.answer = "{\"rate_by_service\":{\"service:,env:\":0.5}}";
    send_one(&r);
    T_TRUE(!fake_header(fake_nth(&r, "/v0.4/traces", 0), "Datadog-Rates-Payload-Version"));
    r.agent.answer = "{}";
    send_one(&r);
    T_EQ_STR(fake_header(fake_nth(&r, "/v0.4/traces", 1), "Datadog-Rates-Payload-Version"), "v1");
    T_EQ_U64(g.calls, 1);
    r.agent.rates_version = "v2";
    r.agent.answer = "{\"rate_by_service\":{\"service:,env:\":0.75}}";
    send_one(&r);
    T_EQ_U64(g.calls, 2);
    T_EQ_DBL(g.rate, 0.75);
    fake_close(&r);
}

TEST(answers_that_are_no_rates_are_counted_or_passed_over)
{
    static const struct {
        const char *answer;
        uint64_t refused;
    } cases[] = {{"", 0},
                 {"{}", 0},
                 {"{\"rate_by_service\":null}", 0},
                 {"{\"rate_by_service\":[1]}", 0},
                 {"OK", 1},
                 {"{\"rate_by_service\":{\"a\":0.5}", 1},
                 {"{\"rate_by_service\":{\"a\"}}", 1},
                 {"<html>", 1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        static struct fake_rig r;
        struct got g;
        open_rig(&r, &g);
        r.agent.answer = cases[i].answer;
        send_one(&r);
        T_EQ_U64(g.calls, 0);
        T_EQ_U64(fake_health(&r).rates_refused, cases[i].refused);
        T_EQ_U64(fake_health(&r).traces_sent, 1);
        fake_close(&r);
    }
}

TEST(rates_out_of_range_and_of_other_types_are_left_out)
{
    static struct fake_rig r;
    struct got g;
    open_rig(&r, &g);
    r.agent.answer = "{\"x\":[1],\"rate_by_service\":{\"a\":2,\"b\":-1,\"c\":\"1\",\"d\":null,"
                     "\"\\u0065\":1e-3}}";
    send_one(&r);
    T_EQ_U64(g.count, 1);
    T_EQ_STR(g.key, "e");
    T_EQ_DBL(g.rate, 0.001);
    fake_close(&r);
}
