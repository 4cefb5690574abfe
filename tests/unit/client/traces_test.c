/* SPDX-License-Identifier: Apache-2.0 */
/* Traces on their way: payloads, priorities, headers, versions. */
#include "fake.h"

TEST(traces_wait_for_the_flush_and_go_in_one_payload_with_its_counts)
{
    static struct fake_rig r;
    fake_init(&r);
    fake_open(&r, false);
    fake_poll(&r);
    fake_trace(&r, 2, WEIR_CLIENT_KEEP);
    fake_trace(&r, 3, WEIR_CLIENT_KEEP);
    fake_pass(&r, FAKE_S - 1);
    T_EQ_U64(fake_count(&r, "/v0.4/traces"), 0);
    fake_pass(&r, 1);
    const struct fake_seen *const s = fake_nth(&r, "/v0.4/traces", 0);
    T_EQ_STR(s->method, "PUT");
    T_EQ_STR(fake_header(s, "X-Datadog-Trace-Count"), "2");
    T_EQ_STR(fake_header(s, "Datadog-Client-Computed-Top-Level"), "true");
    T_EQ_STR(fake_header(s, "Datadog-Client-Dropped-P0-Traces"), "0");
    T_TRUE(fake_header(s, "Datadog-Client-Computed-Stats") == NULL);
    T_EQ_U64(s->body[0], 0x92);
    const struct weir_client_health h = fake_health(&r);
    T_EQ_U64(h.traces_in, 2);
    T_EQ_U64(h.traces_sent, 2);
    T_EQ_U64(h.spans_sent, 5);
    fake_trace(&r, 1, WEIR_CLIENT_KEEP);
    weir_client_flush(r.client);
    fake_poll(&r);
    T_EQ_U64(fake_health(&r).traces_sent, 3);
    fake_close(&r);
}

TEST(a_payload_that_is_full_goes_before_its_time)
{
    static struct fake_rig r;
    fake_init(&r);
    r.opts.payload_bytes = 4096;
    fake_open(&r, false);
    fake_poll(&r);
    for (int i = 0; i < 60; i++)
        fake_trace(&r, 1, WEIR_CLIENT_KEEP);
    fake_poll(&r);
    T_TRUE(fake_count(&r, "/v0.4/traces") >= 1);
    T_TRUE(fake_nth(&r, "/v0.4/traces", 0)->len <= 4096);
    fake_pass(&r, FAKE_S);
    T_EQ_U64(fake_health(&r).traces_sent, 60);
    fake_close(&r);
}

TEST(a_trace_larger_than_a_payload_is_refused_and_counted)
{
    static struct fake_rig r;
    static char text[8192];
    fake_init(&r);
    r.opts.payload_bytes = 4096;
    fake_open(&r, false);
    memset(text, 'x', sizeof text - 1);
    const struct weir_trace_span span = {.resource = weir_str_c(text), .trace_id = 1, .span_id = 1};
    const struct weir_trace trace = {.spans = &span, .span_count = 1};
    T_ERR(weir_client_add_trace(r.client, &trace, WEIR_CLIENT_KEEP), WEIR_EFULL);
    T_ERR(weir_client_add_trace(r.client, NULL, 0), WEIR_EINVAL);
    const struct weir_trace none = {.spans = NULL, .span_count = 1};
    T_ERR(weir_client_add_trace(r.client, &none, 0), WEIR_EINVAL);
    T_EQ_U64(fake_health(&r).traces_dropped[WEIR_CLIENT_DROP_TOO_LARGE], 1);
    fake_close(&r);
}

static bool wants_third(void *ctx, const struct weir_trace_span *span)
{
    (void)ctx;
    return span->span_id == 3;
}

TEST(low_priority_is_dropped_where_statistics_count_it_and_told_to_the_agent)
{
    static struct fake_rig r;
    fake_init(&r);
    r.opts.keep_span = wants_third;
    fake_open(&r, true);
    fake_poll(&r);
    fake_trace(&r, 2, 0);
    fake_trace(&r, 4, 0); /* the third goes all the same */
    fake_trace(&r, 1, WEIR_CLIENT_KEEP);
    fake_pass(&r, FAKE_S);
    const struct fake_seen *const s = fake_nth(&r, "/v0.4/traces", 0);
    T_EQ_STR(fake_header(s, "X-Datadog-Trace-Count"), "2");
    T_EQ_STR(fake_header(s, "Datadog-Client-Dropped-P0-Traces"), "2");
    T_EQ_STR(fake_header(s, "Datadog-Client-Dropped-P0-Spans"), "5");
    T_EQ_STR(fake_header(s, "Datadog-Client-Computed-Stats"), "true");
    struct weir_client_health h = fake_health(&r);
    T_EQ_U64(h.traces_dropped[WEIR_CLIENT_DROP_P0], 2);
    T_EQ_U64(h.spans_dropped[WEIR_CLIENT_DROP_P0], 5);
    T_EQ_U64(h.spans_sampled, 1);
    fake_trace(&r, 1, WEIR_CLIENT_KEEP);
    fake_pass(&r, FAKE_S);
    T_EQ_STR(fake_header(fake_nth(&r, "/v0.4/traces", 1), "Datadog-Client-Dropped-P0-Traces"), "0");
    fake_close(&r);
}

TEST(what_was_dropped_as_p0_is_told_by_the_next_payload_when_the_first_is_lost)
{
    static struct fake_rig r;
    fake_init(&r);
    fake_open(&r, true);
    fake_poll(&r);
    fake_trace(&r, 2, 0);
    fake_trace(&r, 1, WEIR_CLIENT_KEEP);
    r.agent.status_traces = 400;
    fake_pass(&r, FAKE_S);
    r.agent.status_traces = 0;
    fake_trace(&r, 1, WEIR_CLIENT_KEEP);
    fake_pass(&r, FAKE_S);
    T_EQ_STR(fake_header(fake_nth(&r, "/v0.4/traces", 1), "Datadog-Client-Dropped-P0-Traces"), "1");
    T_EQ_U64(fake_health(&r).traces_dropped[WEIR_CLIENT_DROP_REFUSED], 1);
    fake_close(&r);
}

TEST(a_full_queue_drops_low_priority_first)
{
    static struct fake_rig r;
    fake_init(&r);
    r.opts.max_trace_payloads = 2;
    fake_open(&r, false);
    fake_poll(&r);
    r.agent.outcome = WEIR_CLIENT_UNREACHED;
    const struct weir_bytes kept = {"\x90", 1};
    T_OK(weir_client_add_payload(r.client, WEIR_TRACE_V04, kept, 1, 1, WEIR_CLIENT_KEEP));
    T_OK(weir_client_add_payload(r.client, WEIR_TRACE_V04, kept, 10, 10, 0));
    T_OK(weir_client_add_payload(r.client, WEIR_TRACE_V04, kept, 1, 1, WEIR_CLIENT_KEEP));
    T_EQ_U64(fake_health(&r).traces_dropped[WEIR_CLIENT_DROP_QUEUE_FULL], 10);
    T_ERR(weir_client_add_payload(r.client, WEIR_TRACE_V04, kept, 10, 10, 0), WEIR_EFULL);
    T_EQ_U64(fake_health(&r).traces_dropped[WEIR_CLIENT_DROP_QUEUE_FULL], 20);
    T_OK(weir_client_add_payload(r.client, WEIR_TRACE_V04, kept, 5, 5, WEIR_CLIENT_KEEP));
    T_EQ_U64(fake_health(&r).traces_dropped[WEIR_CLIENT_DROP_QUEUE_FULL], 21);
    T_ERR(weir_client_add_payload(r.client, 7, kept, 1, 1, 0), WEIR_EINVAL);
    T_ERR(weir_client_add_payload(r.client, 4, (struct weir_bytes){NULL, 0}, 1, 1, 0), WEIR_EINVAL);
    fake_close(&r);
}

TEST(traces_are_sent_again_where_they_surely_did_not_arrive_and_only_there)
{
    static struct fake_rig r;
    fake_init(&r);
    fake_open(&r, false);
    fake_poll(&r);
    r.agent.outcome = WEIR_CLIENT_UNREACHED;
    fake_trace(&r, 1, WEIR_CLIENT_KEEP);
    fake_pass(&r, FAKE_S);
    fake_pass(&r, FAKE_S);
    r.agent.outcome = WEIR_CLIENT_ANSWERED;
    r.agent.status_traces = 503;
    fake_pass(&r, 10 * FAKE_S);
    r.agent.status_traces = 0;
    fake_pass(&r, 10 * FAKE_S);
    T_EQ_U64(fake_health(&r).traces_sent, 1);
    T_TRUE(fake_health(&r).trace_payloads_retried >= 3);
    r.agent.outcome = WEIR_CLIENT_UNKNOWN;
    fake_trace(&r, 1, WEIR_CLIENT_KEEP);
    fake_pass(&r, FAKE_S);
    r.agent.outcome = WEIR_CLIENT_ANSWERED;
    fake_pass(&r, 10 * FAKE_S);
    T_EQ_U64(fake_health(&r).traces_sent, 1);
    T_EQ_U64(fake_health(&r).traces_dropped[WEIR_CLIENT_DROP_UNKNOWN], 1);
    fake_close(&r);
}

TEST(the_version_is_the_best_that_is_wanted_and_listed)
{
    static const struct {
        uint32_t wanted;
        const char *info;
        uint32_t version;
        const char *path;
    } cases[] = {
        {WEIR_TRACE_V1, "v1.0/traces\",\"v0.4/traces", WEIR_TRACE_V1, "/v1.0/traces"},
        {WEIR_TRACE_V1, "v0.5/traces\",\"v0.4/traces", WEIR_TRACE_V04, "/v0.4/traces"},
        {WEIR_TRACE_V1, "v0.3/traces", WEIR_TRACE_V04, "/v0.3/traces"},
        {WEIR_TRACE_V05, "v0.5/traces\",\"v0.4/traces", WEIR_TRACE_V05, "/v0.5/traces"},
        {WEIR_TRACE_V05, "v0.4/traces\",\"v0.3/traces", WEIR_TRACE_V04, "/v0.4/traces"},
        {WEIR_TRACE_V04, "v1.0/traces\",\"v0.4/traces", WEIR_TRACE_V04, "/v0.4/traces"},
        {WEIR_TRACE_V04, "else", WEIR_TRACE_V04, "/v0.3/traces"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        static struct fake_rig r;
        char info[128];
        fake_init(&r);
        (void)snprintf(info, sizeof info, "{\"endpoints\":[\"%s\"]}", cases[i].info);
        r.agent.info = info;
        r.opts.trace_version = cases[i].wanted;
        fake_open(&r, false);
        T_EQ_U64(weir_client_trace_version(r.client), WEIR_TRACE_V04); /* which all take */
        fake_poll(&r);
        T_EQ_U64(weir_client_trace_version(r.client), cases[i].version);
        fake_trace(&r, 1, WEIR_CLIENT_KEEP);
        fake_pass(&r, FAKE_S);
        T_EQ_U64(fake_count(&r, cases[i].path), 1);
        T_EQ_U64(fake_health(&r).traces_sent, 1);
        fake_close(&r);
    }
}

TEST(traces_that_came_before_the_answer_go_as_v04)
{
    static struct fake_rig r;
    fake_init(&r);
    r.opts.trace_version = WEIR_TRACE_V1;
    fake_open(&r, false);
    fake_trace(&r, 1, WEIR_CLIENT_KEEP);
    fake_poll(&r);
    fake_trace(&r, 1, WEIR_CLIENT_KEEP);
    fake_pass(&r, FAKE_S);
    T_EQ_U64(fake_count(&r, "/v0.4/traces"), 1);
    T_EQ_U64(fake_count(&r, "/v1.0/traces"), 1);
    T_EQ_U64(fake_health(&r).traces_sent, 2);
    fake_close(&r);
}

TEST(answers_of_404_and_415_go_down_to_the_last_version)
{
    static const int statuses[] = {404, 415};
    for (size_t i = 0; i < 2; i++) {
        static struct fake_rig r;
        fake_init(&r);
        r.opts.trace_version = WEIR_TRACE_V05;
        r.agent.gone_status = statuses[i];
        fake_open(&r, false);
        fake_poll(&r);
        r.agent.gone = 2 | 4; /* v0.5 and v0.4 */
        fake_trace(&r, 1, WEIR_CLIENT_KEEP);
        fake_pass(&r, FAKE_S); /* v0.5 has a form of its own: that payload is lost */
        T_EQ_U64(fake_health(&r).traces_dropped[WEIR_CLIENT_DROP_VERSION], 1);
        fake_trace(&r, 2, WEIR_CLIENT_KEEP);
        fake_pass(&r, FAKE_S); /* that of v0.4 goes to v0.3 as it is */
        T_EQ_U64(fake_count(&r, "/v0.5/traces"), 1);
        T_EQ_U64(fake_count(&r, "/v0.4/traces"), 1);
        T_EQ_U64(fake_count(&r, "/v0.3/traces"), 1);
        const struct fake_seen *const v4 = fake_nth(&r, "/v0.4/traces", 0);
        const struct fake_seen *const v3 = fake_nth(&r, "/v0.3/traces", 0);
        T_EQ_BYTES(v3->body, v3->len, v4->body, v4->len);
        const struct weir_client_health h = fake_health(&r);
        T_EQ_U64(h.fallbacks, 2);
        T_EQ_U64(h.traces_sent, 1);
        r.agent.gone = 15;
        fake_trace(&r, 1, WEIR_CLIENT_KEEP);
        fake_pass(&r, FAKE_S);
        T_EQ_U64(fake_health(&r).traces_dropped[WEIR_CLIENT_DROP_REFUSED], 1);
        fake_close(&r);
    }
}

/* S10 */
TEST(after_413_a_payload_goes_as_two_halves_and_the_next_are_half_as_large)
{
    for (int version = WEIR_TRACE_V04; version <= WEIR_TRACE_V05; version++) {
        static struct fake_rig r;
        const char *const path = version == WEIR_TRACE_V04 ? "/v0.4/traces" : "/v0.5/traces";
        fake_init(&r);
        r.opts.trace_version = (uint32_t)version;
        r.opts.payload_bytes = 1 << 20;
        fake_open(&r, false);
        fake_poll(&r);
        r.agent.max_body = 40000;
        for (int i = 0; i < 1000; i++)
            fake_trace(&r, 4, WEIR_CLIENT_KEEP);
        fake_pass(&r, FAKE_S);
        T_EQ_U64(fake_health(&r).traces_sent, 1000);
        T_EQ_U64(fake_health(&r).spans_sent, 4000);
        T_EQ_U64(fake_health(&r).traces_dropped[WEIR_CLIENT_DROP_TOO_LARGE], 0);
        T_TRUE(fake_count(&r, path) >= 3);
        T_EQ_STR(fake_header(fake_nth(&r, path, 0), "X-Datadog-Trace-Count"), "1000");
        T_EQ_STR(fake_header(fake_nth(&r, path, 1), "X-Datadog-Trace-Count"), "500");
        /* The halves are in order, and no body came twice. */
        for (size_t i = 1; i < fake_count(&r, path); i++) {
            const struct fake_seen *const a = fake_nth(&r, path, i - 1);
            const struct fake_seen *const b = fake_nth(&r, path, i);
            T_TRUE(a->len != b->len || memcmp(a->body, b->body, a->len) != 0 || a->len <= 40000);
        }
        fake_close(&r);
    }
}

TEST(what_cannot_be_halved_is_dropped_as_too_large)
{
    static const struct {
        uint32_t version;
        const char *body;
        size_t len;
    } cases[] = {
        {WEIR_TRACE_V04, "\x91\x90", 2},         /* one trace */
        {WEIR_TRACE_V04, "\x92\x90", 2},         /* cut short */
        {WEIR_TRACE_V04, "\x92\x90\x90\x90", 4}, /* more behind */
        {WEIR_TRACE_V04, "\x92\x01\x02", 3},     /* no traces */
        {WEIR_TRACE_V04, "\x92\xdd\xff\xff\xff\xff\x90", 7},
        {WEIR_TRACE_V04, "\x82\x90\x90", 3},
        {WEIR_TRACE_V05, "\x92\x90\x91\x90", 4},
        {WEIR_TRACE_V05, "\x93\x90\x92\x90\x90", 5},
        {WEIR_TRACE_V1, "\x92\x90\x90", 3},
    };
    static struct fake_rig r;
    fake_init(&r);
    fake_open(&r, false);
    fake_poll(&r);
    r.agent.info = "{\"endpoints\":[\"v0.4/traces\",\"v0.5/traces\",\"v1.0/traces\"]}";
    r.agent.status_traces = 413;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct weir_bytes body = {cases[i].body, cases[i].len};
        T_OK(weir_client_add_payload(r.client, cases[i].version, body, 1, 1, WEIR_CLIENT_KEEP));
        fake_pass(&r, FAKE_S);
        T_EQ_U64(fake_health(&r).traces_dropped[WEIR_CLIENT_DROP_TOO_LARGE], i + 1);
    }
    fake_close(&r);
}

TEST(a_payload_with_every_kind_of_value_is_halved_where_its_traces_end)
{
    /* Two traces: of one span that is a map, and of none. */
    static const char values[] =
        "\x92\x91\x8a"
        "\xa1\x61\xc0\xa1\x62\xc3\xa1\x63\xca\x00\x00\x00\x00\xa1\x64\xcb\x00\x00\x00\x00\x00\x00"
        "\x00\x00"
        "\xa1\x65\xcf\x00\x00\x00\x00\x00\x00\x00\x01\xa1\x66\xd1\xff\x00\xa1\x67\xd9\x02\x68\x69"
        "\xa1\x68\xc4\x01\x00\xa1\x69\xc7\x01\x05\x00\xa1\x6a\xdc\x00\x02\xde\x00\x01\x01\x02\xd4"
        "\x01\x00"
        "\x90";
    static struct fake_rig r;
    fake_init(&r);
    fake_open(&r, false);
    fake_poll(&r);
    const struct weir_bytes body = {values, sizeof values - 1};
    T_OK(weir_client_add_payload(r.client, WEIR_TRACE_V04, body, 2, 1, WEIR_CLIENT_KEEP));
    r.agent.status_once = 413;
    fake_pass(&r, FAKE_S);
    T_EQ_U64(fake_health(&r).traces_sent, 2);
    T_EQ_U64(fake_health(&r).spans_sent, 1);
    const struct fake_seen *const first = fake_nth(&r, "/v0.4/traces", 1);
    const struct fake_seen *const second = fake_nth(&r, "/v0.4/traces", 2);
    T_EQ_BYTES(first->body + 5, first->len - 5, values + 1, sizeof values - 3);
    T_EQ_BYTES(second->body, second->len, "\xdd\x00\x00\x00\x01\x90", 6);
    fake_close(&r);
}

TEST(a_payload_says_statistics_only_for_what_came_while_they_were_on)
{
    static struct fake_rig r;
    fake_init(&r);
    fake_open(&r, true);
    fake_trace(&r, 1, WEIR_CLIENT_KEEP); /* before */
    fake_poll(&r);
    fake_poll(&r);
    fake_trace(&r, 1, WEIR_CLIENT_KEEP);
    fake_pass(&r, FAKE_S);
    T_EQ_U64(fake_count(&r, "/v0.4/traces"), 2);
    T_TRUE(!fake_header(fake_nth(&r, "/v0.4/traces", 0), "Datadog-Client-Computed-Stats"));
    T_EQ_STR(fake_header(fake_nth(&r, "/v0.4/traces", 1), "Datadog-Client-Computed-Stats"), "true");
    fake_close(&r);
}

TEST(v1_payloads_name_the_runtime_id_of_the_client)
{
    static struct fake_rig r;
    const struct weir_trace_header header = {.env = weir_str_c("prod")};
    fake_init(&r);
    r.opts.trace_version = WEIR_TRACE_V1;
    r.opts.header = &header;
    fake_open(&r, false);
    fake_poll(&r);
    fake_trace(&r, 1, WEIR_CLIENT_KEEP);
    fake_pass(&r, FAKE_S);
    char id[WEIR_CLIENT_RUNTIME_ID];
    weir_client_get_runtime_id(r.client, id);
    T_TRUE(fake_has(fake_nth(&r, "/v1.0/traces", 0), id));
    T_TRUE(fake_has(fake_nth(&r, "/v1.0/traces", 0), "prod"));
    fake_close(&r);
}

TEST(while_the_agent_is_away_payloads_fill_up_rather_than_age)
{
    static struct fake_rig r;
    fake_init(&r);
    fake_open(&r, false);
    fake_poll(&r);
    r.agent.outcome = WEIR_CLIENT_UNREACHED;
    for (int i = 0; i < 120; i++) {
        fake_trace(&r, 1, WEIR_CLIENT_KEEP);
        fake_pass(&r, FAKE_S);
    }
    T_TRUE(fake_health(&r).queued_traces <= 2);
    r.agent.outcome = WEIR_CLIENT_ANSWERED;
    fake_pass(&r, 10 * FAKE_S);
    fake_pass(&r, FAKE_S);
    T_EQ_U64(fake_health(&r).traces_sent, 120);
    fake_close(&r);
}
