/* SPDX-License-Identifier: Apache-2.0 */
/* What the client learns of /info, when it asks, and what it makes of answers that are none. */
#include "fake.h"

#include "info.h"

struct tags {
    size_t calls;
    size_t count;
    char first[32];
};

static void on_tags(void *ctx, const char *const *names, size_t count)
{
    struct tags *const t = ctx;
    t->calls++;
    t->count = count;
    (void)snprintf(t->first, sizeof t->first, "%s", count ? names[0] : "");
}

TEST(info_says_what_the_agent_is)
{
    static struct fake_rig r;
    static struct tags tags;
    struct weir_client_agent a;
    fake_init(&r);
    tags = (struct tags){0};
    r.opts.ctx = &tags;
    r.opts.peer_tags = on_tags;
    fake_open(&r, true);
    weir_client_get_agent(r.client, &a);
    T_TRUE(!a.known);
    fake_poll(&r);
    weir_client_get_agent(r.client, &a);
    T_TRUE(a.known && a.stats && a.drop_p0s && a.v1 && a.v05 && a.v04 && a.v03);
    T_EQ_STR(a.version, "7.65.0");
    T_EQ_U64(a.obfuscation_version, 1);
    T_EQ_U64(a.peer_tag_count, 2);
    T_EQ_U64(a.span_kind_count, 1);
    T_EQ_U64(tags.calls, 1);
    T_EQ_U64(tags.count, 2);
    T_EQ_STR(tags.first, "peer.hostname");
    fake_pass(&r, 60 * FAKE_S);
    T_EQ_U64(fake_count(&r, "/info"), 2);
    T_EQ_U64(tags.calls, 1); /* they are the same */
    r.agent.info = "{\"endpoints\":[],\"peer_tags\":[\"x\"]}";
    weir_client_discover(r.client);
    fake_pass(&r, FAKE_S);
    T_EQ_U64(tags.calls, 2);
    T_EQ_STR(tags.first, "x");
    fake_close(&r);
}

static void publish_peer(struct fake_rig *r)
{
    const struct weir_tags *const tags = weir_producer_tags(r->producer);
    const struct weir_tag_match *const match = weir_tags_find(tags, "peer.hostname", 13);
    struct weir_value slots[WEIR_TAG_SLOTS_MAX];
    memset(slots, 0, sizeof slots);
    struct weir_span span = {.service = {"svc", 3},
                             .trace_id = 1,
                             .span_id = 2,
                             .kind = WEIR_KIND_CLIENT,
                             .start_ns = r->now - 100,
                             .duration_ns = 100,
                             .slots = slots};
    if (match) {
        slots[match->slot] =
            (struct weir_value){.type = WEIR_VALUE_BYTES, .len = 4, .v = {.ptr = "db-7"}};
        span.present = UINT64_C(1) << match->slot;
    }
    const struct weir_source source = {.now_ns = r->now};
    T_OK(weir_stats_publish(r->producer, &source, &span, 1));
    (void)weir_stats_poll(r->engine, r->now, r->now);
    weir_stats_seal_all(r->engine, r->now, r->now);
    fake_poll(r);
}

TEST(the_peer_tags_of_the_agent_are_those_of_the_engine_while_it_runs)
{
    static struct fake_rig r;
    fake_init(&r);
    r.agent.info =
        "{\"version\":\"7.65.0\",\"endpoints\":[\"/v0.6/stats\"],\"client_drop_p0s\":true}";
    fake_open(&r, true);
    fake_poll(&r);
    publish_peer(&r);
    T_TRUE(!fake_has(fake_nth(&r, "/v0.6/stats", 0), "peer.hostname:db-7"));
    r.agent.info = fake_info;
    fake_pass(&r, 60 * FAKE_S);
    publish_peer(&r);
    T_TRUE(fake_has(fake_nth(&r, "/v0.6/stats", 1), "peer.hostname:db-7"));
    T_EQ_U64(fake_health(&r).peer_tags_refused, 0);
    /* What the engine cannot have is counted, and leaves those of before. */
    r.agent.info = "{\"version\":\"7.65.0\",\"endpoints\":[\"/v0.6/stats\"],"
                   "\"client_drop_p0s\":true,\"peer_tags\":[\"a.b\",\"a_b\"]}";
    fake_pass(&r, 60 * FAKE_S);
    T_EQ_U64(fake_health(&r).peer_tags_refused, 1);
    publish_peer(&r);
    T_TRUE(fake_has(fake_nth(&r, "/v0.6/stats", 2), "peer.hostname:db-7"));
    fake_close(&r);
}

TEST(info_is_asked_again_when_an_answer_names_another_state)
{
    static struct fake_rig r;
    fake_init(&r);
    r.agent.state = "s1";
    fake_open(&r, true);
    fake_poll(&r);
    fake_spans(&r, "a", 1);
    fake_pass(&r, FAKE_S); /* the first state that is seen is that of /info */
    fake_spans(&r, "a", 1);
    fake_pass(&r, FAKE_S);
    T_EQ_U64(fake_count(&r, "/info"), 1);
    r.agent.state = "s2";
    r.agent.info_state = "s2";
    fake_spans(&r, "a", 1);
    fake_pass(&r, FAKE_S);
    fake_pass(&r, FAKE_S);
    T_EQ_U64(fake_count(&r, "/info"), 2);
    struct weir_client_agent a;
    weir_client_get_agent(r.client, &a);
    T_EQ_STR(a.state, "s2");
    T_EQ_U64(fake_health(&r).state_changes, 1);
    /* Two agents that take turns make it one question a second at most. */
    const size_t before = fake_count(&r, "/info");
    for (int i = 0; i < 10; i++) {
        r.agent.state = i & 1 ? "s2" : "s3";
        fake_spans(&r, "a", 1);
        fake_pass(&r, FAKE_S / 10);
    }
    T_TRUE(fake_count(&r, "/info") - before <= 2);
    fake_close(&r);
}

/* J13, S19 */
TEST(an_agent_that_does_not_take_statistics_gets_none)
{
    static const char *const infos[] = {
        "{\"endpoints\":[\"/v0.6/stats\"],\"client_drop_p0s\":false,\"version\":\"7.70.0\"}",
        "{\"endpoints\":[\"/v0.6/stats\"],\"version\":\"7.70.0\"}",
        "{\"endpoints\":[\"/v0.4/traces\"],\"client_drop_p0s\":true,\"version\":\"7.70.0\"}",
        "{\"endpoints\":[\"/v0.6/stats\"],\"client_drop_p0s\":true,\"version\":\"7.64.9\"}",
        "{\"endpoints\":[\"/v0.6/stats\"],\"client_drop_p0s\":true,\"version\":\"7.65.0-rc.1\"}",
        "{\"endpoints\":[\"/v0.6/stats\"],\"client_drop_p0s\":true}",
        "{}",
        "{\"endpoints\":null,\"client_drop_p0s\":true}",
        "<html>no</html>",
        "",
        "{\"endpoints\":[\"/v0.6/stats\"],\"client_drop_p0s\":true,\"version\":\"7.70.0\"",
    };
    for (size_t i = 0; i < sizeof infos / sizeof *infos; i++) {
        static struct fake_rig r;
        fake_init(&r);
        r.agent.info = infos[i];
        fake_open(&r, true);
        fake_poll(&r);
        T_TRUE(!weir_client_stats_on(r.client));
        fake_spans(&r, "a", 1);
        fake_trace(&r, 1, 0);
        fake_pass(&r, FAKE_S);
        T_EQ_U64(fake_count(&r, "/v0.6/stats"), 0);
        T_EQ_U64(fake_health(&r).traces_sent, 1); /* and traces are not dropped for it */
        fake_close(&r);
    }
}

TEST(client_drop_p0s_may_be_a_text_and_peer_tags_may_be_null)
{
    static struct fake_rig r;
    fake_init(&r);
    r.agent.info = "{\"endpoints\":[\"v0.6/stats\",7,null],\"client_drop_p0s\":\"true\","
                   "\"version\":\"8.0.0\",\"peer_tags\":null,\"obfuscation_version\":null}";
    fake_open(&r, true);
    fake_poll(&r);
    T_TRUE(weir_client_stats_on(r.client));
    fake_close(&r);
}

TEST(any_version_is_enough_where_the_host_says_so)
{
    static struct fake_rig r;
    fake_init(&r);
    r.opts.flags = WEIR_CLIENT_ANY_VERSION;
    r.agent.info = "{\"endpoints\":[\"/v0.6/stats\"],\"client_drop_p0s\":true}";
    fake_open(&r, true);
    fake_poll(&r);
    T_TRUE(weir_client_stats_on(r.client));
    fake_close(&r);
}

TEST(an_agent_that_is_away_or_not_ready_is_the_one_it_was)
{
    static const int statuses[] = {0, 429, 502, 503, 504};
    for (size_t i = 0; i < 5; i++) {
        static struct fake_rig r;
        fake_init(&r);
        fake_open(&r, true);
        fake_poll(&r);
        r.agent.status_info = statuses[i];
        r.agent.outcome = statuses[i] ? WEIR_CLIENT_ANSWERED : WEIR_CLIENT_UNREACHED;
        fake_pass(&r, 60 * FAKE_S);
        T_EQ_U64(fake_health(&r).info_failed, 1);
        T_TRUE(weir_client_stats_on(r.client));
        r.agent.outcome = WEIR_CLIENT_ANSWERED;
        r.agent.status_info = 0;
        fake_pass(&r, FAKE_S); /* tried again long before the next minute */
        T_EQ_U64(fake_health(&r).info_taken, 2);
        fake_close(&r);
    }
}

/* S19 */
TEST(an_info_of_404_or_500_turns_statistics_off_and_finds_the_endpoint_of_traces)
{
    static const int statuses[] = {404, 500};
    for (size_t i = 0; i < 2; i++) {
        static struct fake_rig r;
        fake_init(&r);
        r.opts.trace_version = WEIR_TRACE_V05;
        fake_open(&r, true);
        fake_poll(&r);
        T_TRUE(weir_client_stats_on(r.client));
        T_EQ_U64(weir_client_trace_version(r.client), WEIR_TRACE_V05);
        r.agent.status_info = statuses[i];
        r.agent.gone = 2; /* v0.5 */
        fake_pass(&r, 60 * FAKE_S);
        T_TRUE(!weir_client_stats_on(r.client));
        T_EQ_U64(fake_health(&r).downgrades, 1);
        T_EQ_U64(fake_count(&r, "/v0.5/traces"), 1);
        const struct fake_seen *const probe = fake_nth(&r, "/v0.4/traces", 0);
        T_EQ_BYTES(probe->body, probe->len, "\x92\x90\x90", 3);
        T_EQ_U64(weir_client_trace_version(r.client), WEIR_TRACE_V04);
        r.agent.status_info = 0;
        fake_pass(&r, 10 * FAKE_S);
        fake_poll(&r);
        T_TRUE(weir_client_stats_on(r.client));
        fake_close(&r);
    }
}

TEST(an_answer_of_info_is_read_whatever_else_is_in_it)
{
    static struct wr_info info;
    const char text[] = "{\"a\":[{\"b\":[1,2.5e3,\"\\u00e9\\ud83d\\ude00\"]},null,true],"
                        "\"peer_tags\":[\"x\",\"x\",\"\",\"a,b\",1,\"\\u0000\",\"y\"],"
                        "\"version\":\"1234567890123456789012345678901234567890\","
                        "\"endpoints\":[\"/v0.5/traces\"]}";
    T_TRUE(wr_info_parse((struct weir_bytes){text, sizeof text - 1}, &info));
    T_TRUE(info.agent.v05 && !info.agent.v04);
    T_EQ_U64(info.agent.peer_tag_count, 2);
    T_EQ_STR(info.peer_tags[1], "y");
    T_EQ_STR(info.agent.version, "");
    for (size_t cut = 0; cut + 1 < sizeof text; cut++) {
        struct t_guard g = t_guard_new(text, cut);
        T_TRUE(!wr_info_parse((struct weir_bytes){(const char *)g.ptr, cut}, &info));
        t_guard_free(&g);
    }
}

TEST(peer_tags_are_bounded)
{
    static struct wr_info info;
    static char text[1 << 14];
    size_t n = (size_t)snprintf(text, sizeof text, "{\"endpoints\":[],\"peer_tags\":[\"t\"");
    for (int i = 0; i < 500; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, ",\"tag.%d\"", i);
    n += (size_t)snprintf(text + n, sizeof text - n, "]}");
    T_TRUE(wr_info_parse((struct weir_bytes){text, n}, &info));
    T_EQ_U64(info.agent.peer_tag_count, WEIR_CLIENT_PEER_TAGS_MAX);
}

TEST(versions_are_compared_by_their_numbers)
{
    T_TRUE(wr_info_is_recent("7.65.0"));
    T_TRUE(wr_info_is_recent("7.100.0"));
    T_TRUE(wr_info_is_recent("10.0.0"));
    T_TRUE(wr_info_is_recent("7.65.1"));
    T_TRUE(!wr_info_is_recent("7.9.9"));
    T_TRUE(!wr_info_is_recent("7.64.99"));
    T_TRUE(!wr_info_is_recent("7.65.0-rc.1"));
    T_TRUE(!wr_info_is_recent("7.65"));
    T_TRUE(!wr_info_is_recent(""));
    T_TRUE(!wr_info_is_recent("x"));
    T_TRUE(!wr_info_is_recent("7..0"));
}
