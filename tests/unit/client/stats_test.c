/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Statistics on their way: what is sent, sent again, dropped; how they go off and on. Rows of the
 * case list by their numbers (J: the table of the Java tracer; S, T: transport, tracers).
 */
#include "fake.h"

static const char stats_path[] = "/v0.6/stats";

/* An open client that knows the agent. */
static void open_known(struct fake_rig *r)
{
    fake_open(r, true);
    fake_poll(r);
    T_TRUE(weir_client_stats_on(r->client));
}

TEST(a_sealed_batch_goes_to_the_agent_with_the_headers_of_its_sender)
{
    static struct fake_rig r;
    const struct weir_client_header more = {"X-Extra", "yes"};
    fake_init(&r);
    r.opts.lang = (struct weir_bytes){"c", 1};
    r.opts.tracer_version = (struct weir_bytes){"1.2", 3};
    r.opts.container_id = (struct weir_bytes){"abc", 3};
    r.opts.headers = &more;
    r.opts.header_count = 1;
    open_known(&r);
    fake_spans(&r, "GET /a", 3);
    fake_poll(&r);
    T_EQ_U64(fake_count(&r, stats_path), 1);
    const struct fake_seen *const s = fake_nth(&r, stats_path, 0);
    T_EQ_STR(s->method, "POST");
    T_EQ_STR(fake_header(s, "Content-Type"), "application/msgpack");
    T_EQ_STR(fake_header(s, "Datadog-Meta-Lang"), "c");
    T_EQ_STR(fake_header(s, "Datadog-Meta-Tracer-Version"), "1.2");
    T_EQ_STR(fake_header(s, "Datadog-Container-ID"), "abc");
    T_EQ_STR(fake_header(s, "X-Extra"), "yes");
    T_EQ_STR(fake_header(s, "Idempotency-Key"), "rid-0");
    T_TRUE(fake_header(s, "Datadog-Meta-Lang-Version") == NULL);
    T_TRUE(fake_has(s, "GET /a"));
    T_EQ_U64(fake_health(&r).stats_sent, 1);
    fake_close(&r);
    T_EQ_U64(r.agent.frees, 1);
}

TEST(an_engine_without_spans_sends_nothing)
{
    static struct fake_rig r;
    fake_init(&r);
    open_known(&r);
    for (int i = 0; i < 6; i++)
        fake_pass(&r, 10 * FAKE_S);
    T_EQ_U64(fake_count(&r, stats_path), 0);
    fake_close(&r);
}

/* T12, T17 */
TEST(a_body_that_was_not_taken_is_sent_again_with_the_same_sequence_key_and_bytes)
{
    static const uint32_t outcomes[] = {WEIR_CLIENT_UNREACHED, WEIR_CLIENT_UNKNOWN};
    for (size_t i = 0; i < 2; i++) {
        static struct fake_rig r;
        fake_init(&r);
        open_known(&r);
        r.agent.outcome = outcomes[i];
        fake_spans(&r, "GET /a", 3);
        fake_poll(&r);
        T_EQ_U64(fake_count(&r, stats_path), 1);
        fake_spans(&r, "GET /b", 2);
        for (int k = 0; k < 60; k++)
            fake_pass(&r, FAKE_S);
        T_TRUE(fake_count(&r, stats_path) >= 6); /* 10 s at most between two */
        T_TRUE(fake_count(&r, stats_path) <= 30);
        r.agent.outcome = WEIR_CLIENT_ANSWERED;
        fake_pass(&r, 10 * FAKE_S);
        const size_t n = fake_count(&r, stats_path);
        const struct fake_seen *const first = fake_nth(&r, stats_path, 0);
        for (size_t k = 1; k + 1 < n; k++) {
            const struct fake_seen *const again = fake_nth(&r, stats_path, k);
            T_EQ_BYTES(again->body, again->len, first->body, first->len);
            T_EQ_STR(fake_header(again, "Idempotency-Key"), "rid-0");
        }
        T_EQ_STR(fake_header(fake_nth(&r, stats_path, n - 1), "Idempotency-Key"), "rid-1");
        T_TRUE(fake_has(fake_nth(&r, stats_path, n - 1), "GET /b"));
        const struct weir_client_health h = fake_health(&r);
        T_EQ_U64(h.stats_sent, 2);
        T_EQ_U64(h.stats_retried, n - 2);
        T_EQ_U64(h.queued_stats, 0);
        T_EQ_U64(h.downgrades, 0);
        fake_close(&r);
    }
}

TEST(the_engine_seals_by_itself_and_an_outage_of_a_minute_loses_nothing)
{
    static struct fake_rig r;
    fake_init(&r);
    open_known(&r);
    size_t published = 0;
    for (int i = 0; i < 120; i++) {
        r.agent.outcome = i >= 30 && i < 90 ? WEIR_CLIENT_UNREACHED : WEIR_CLIENT_ANSWERED;
        if (r.agent.outcome == WEIR_CLIENT_ANSWERED && i == 90)
            fake_clear(&r.agent);
        fake_publish(&r, "GET /a", 1);
        published++;
        fake_pass(&r, FAKE_S);
    }
    fake_pass(&r, 10 * FAKE_S);
    const struct weir_client_health h = fake_health(&r);
    T_EQ_U64(h.queued_stats, 0);
    for (int i = 0; i < WEIR_CLIENT_DROP_COUNT; i++)
        T_EQ_U64(h.stats_dropped[i], 0);
    T_TRUE(h.stats_sent >= 12);
    struct weir_stats_health engine;
    weir_stats_get_health(r.engine, &engine);
    T_EQ_U64(engine.aggregated, published);
    fake_close(&r);
}

TEST(answers_of_4xx_and_3xx_drop_a_body_and_count_it)
{
    static const int statuses[] = {400, 403, 415, 301};
    for (size_t i = 0; i < 4; i++) {
        static struct fake_rig r;
        fake_init(&r);
        open_known(&r);
        r.agent.status_stats = statuses[i];
        fake_spans(&r, "GET /a", 1);
        for (int k = 0; k < 5; k++)
            fake_pass(&r, FAKE_S);
        T_EQ_U64(fake_count(&r, stats_path), 1);
        const struct weir_client_health h = fake_health(&r);
        T_EQ_U64(h.bad_payloads, 1);
        T_EQ_U64(h.stats_dropped[WEIR_CLIENT_DROP_REFUSED], 1);
        T_TRUE(weir_client_stats_on(r.client));
        fake_close(&r);
    }
}

/* S10 */
TEST(a_body_that_is_too_large_is_never_sent_again)
{
    static struct fake_rig r;
    fake_init(&r);
    open_known(&r);
    r.agent.status_stats = 413;
    fake_spans(&r, "GET /a", 1);
    for (int k = 0; k < 5; k++)
        fake_pass(&r, 10 * FAKE_S);
    T_EQ_U64(fake_count(&r, stats_path), 1);
    T_EQ_U64(fake_health(&r).stats_dropped[WEIR_CLIENT_DROP_TOO_LARGE], 1);
    fake_close(&r);
}

TEST(answers_of_5xx_408_and_429_are_tried_again_and_given_up_after_max_attempts)
{
    static const int statuses[] = {500, 503, 408, 429};
    for (size_t i = 0; i < 4; i++) {
        static struct fake_rig r;
        fake_init(&r);
        r.opts.max_attempts = 3;
        open_known(&r);
        r.agent.status_stats = statuses[i];
        fake_spans(&r, "GET /a", 1);
        for (int k = 0; k < 30; k++)
            fake_pass(&r, FAKE_S);
        T_EQ_U64(fake_count(&r, stats_path), 3);
        const struct weir_client_health h = fake_health(&r);
        T_EQ_U64(h.server_errors, 3);
        T_EQ_U64(h.stats_dropped[WEIR_CLIENT_DROP_ATTEMPTS], 1);
        fake_close(&r);
    }
}

TEST(retry_after_is_waited_for_up_to_the_longest_wait)
{
    static struct fake_rig r;
    fake_init(&r);
    open_known(&r);
    r.agent.status_stats = 429;
    r.agent.retry_after = "5";
    fake_spans(&r, "GET /a", 1);
    fake_poll(&r);
    fake_pass(&r, 5 * FAKE_S - 1);
    T_EQ_U64(fake_count(&r, stats_path), 1);
    r.agent.retry_after = "100000";
    fake_pass(&r, 1);
    T_EQ_U64(fake_count(&r, stats_path), 2);
    fake_pass(&r, 10 * FAKE_S - 1);
    T_EQ_U64(fake_count(&r, stats_path), 2);
    fake_pass(&r, 1);
    T_EQ_U64(fake_count(&r, stats_path), 3);
    fake_close(&r);
}

/* J5 */
TEST(a_404_and_an_info_without_statistics_turn_them_off_until_they_are_back)
{
    static struct fake_rig r;
    fake_init(&r);
    open_known(&r);
    r.agent.status_stats = 404;
    r.agent.info = "{\"version\":\"7.65.0\",\"endpoints\":[\"/v0.4/traces\"],"
                   "\"client_drop_p0s\":true}";
    fake_spans(&r, "before", 1);
    fake_publish(&r, "open", 1);
    fake_poll(&r);
    T_EQ_U64(fake_count(&r, stats_path), 1);
    T_TRUE(!weir_client_stats_on(r.client));
    fake_spans(&r, "while off", 1);
    fake_poll(&r);
    struct weir_client_health h = fake_health(&r);
    T_EQ_U64(h.downgrades, 1);
    T_EQ_U64(h.stats_dropped[WEIR_CLIENT_DROP_DOWNGRADED], 1);
    T_EQ_U64(h.stats_dropped[WEIR_CLIENT_DROP_OFF], 1);
    T_EQ_U64(h.stats_on, 0);

    fake_publish(&r, "while off too", 1);
    r.agent.status_stats = 0;
    r.agent.info = fake_info;
    fake_pass(&r, 60 * FAKE_S);
    T_TRUE(weir_client_stats_on(r.client));
    fake_clear(&r.agent);
    fake_spans(&r, "marker", 1);
    fake_poll(&r);
    T_EQ_U64(fake_count(&r, stats_path), 1);
    const struct fake_seen *const s = fake_nth(&r, stats_path, 0);
    T_TRUE(fake_has(s, "marker"));
    T_TRUE(!fake_has(s, "before") && !fake_has(s, "open") && !fake_has(s, "while off"));
    h = fake_health(&r);
    T_EQ_U64(h.upgrades, 2);
    fake_close(&r);
}

TEST(a_404_of_an_agent_that_still_lists_statistics_is_tried_again)
{
    static struct fake_rig r;
    fake_init(&r);
    open_known(&r);
    r.agent.status_stats = 404;
    fake_spans(&r, "GET /a", 1);
    fake_poll(&r);
    T_EQ_U64(fake_count(&r, "/info"), 2);
    T_TRUE(weir_client_stats_on(r.client));
    r.agent.status_stats = 0;
    fake_pass(&r, FAKE_S);
    T_EQ_U64(fake_health(&r).stats_sent, 1);
    T_EQ_U64(fake_health(&r).downgrades, 0);
    fake_close(&r);
}

TEST(the_queue_is_bounded_by_number_and_by_bytes_and_drops_the_oldest)
{
    for (int by_bytes = 0; by_bytes < 2; by_bytes++) {
        static struct fake_rig r;
        fake_init(&r);
        if (by_bytes)
            r.opts.max_stats_bytes = 1000; /* two bodies of some 350 bytes */
        else
            r.opts.max_stats_payloads = 2;
        open_known(&r);
        r.agent.outcome = WEIR_CLIENT_UNREACHED;
        for (int i = 0; i < 5; i++) {
            char name[8];
            (void)snprintf(name, sizeof name, "r%d", i);
            fake_spans(&r, name, 1);
            fake_poll(&r);
        }
        struct weir_client_health h = fake_health(&r);
        T_EQ_U64(h.queued_stats, 2);
        T_EQ_U64(h.stats_dropped[WEIR_CLIENT_DROP_QUEUE_FULL], 3);
        T_TRUE(!by_bytes || h.queued_stats_bytes <= 1000);
        r.agent.outcome = WEIR_CLIENT_ANSWERED;
        fake_clear(&r.agent);
        fake_pass(&r, 10 * FAKE_S);
        T_TRUE(fake_has(fake_nth(&r, stats_path, 0), "r3"));
        T_TRUE(fake_has(fake_nth(&r, stats_path, 1), "r4"));
        fake_close(&r);
    }
}

TEST(before_the_first_answer_statistics_are_off_or_with_optimism_wait)
{
    static struct fake_rig r;
    fake_init(&r);
    r.agent.outcome = WEIR_CLIENT_UNREACHED;
    fake_open(&r, true);
    T_TRUE(!weir_client_stats_on(r.client));
    fake_spans(&r, "early", 1);
    fake_poll(&r);
    T_EQ_U64(fake_health(&r).stats_dropped[WEIR_CLIENT_DROP_OFF], 1);
    fake_close(&r);

    fake_init(&r);
    r.opts.flags = WEIR_CLIENT_OPTIMISTIC;
    r.agent.outcome = WEIR_CLIENT_UNREACHED;
    fake_open(&r, true);
    T_TRUE(weir_client_stats_on(r.client));
    fake_spans(&r, "early", 1);
    fake_poll(&r);
    T_EQ_U64(fake_count(&r, stats_path), 0);
    T_EQ_U64(fake_health(&r).queued_stats, 1);
    r.agent.outcome = WEIR_CLIENT_ANSWERED;
    fake_pass(&r, 60 * FAKE_S);
    T_EQ_U64(fake_health(&r).stats_sent, 1);
    T_TRUE(fake_has(fake_nth(&r, stats_path, 0), "early"));
    fake_close(&r);
}

TEST(free_sends_what_it_can_and_counts_the_rest)
{
    static struct fake_rig r;
    fake_init(&r);
    open_known(&r);
    fake_publish(&r, "last", 1); /* not sealed yet */
    weir_client_stop(r.client, FAKE_S);
    T_EQ_U64(fake_health(&r).stats_sent, 1);
    r.agent.outcome = WEIR_CLIENT_UNREACHED;
    fake_spans(&r, "lost", 1);
    fake_clear(&r.agent);
    weir_client_stop(r.client, FAKE_S);
    T_EQ_U64(fake_count(&r, stats_path), 1); /* once, not until the time is over */
    T_EQ_U64(fake_health(&r).queued_stats, 1);
    r.opts.ctx = NULL;
    fake_close(&r);
}

TEST(an_engine_is_attached_once_and_batches_need_one)
{
    static struct fake_rig r;
    fake_init(&r);
    fake_open(&r, true);
    T_ERR(weir_client_attach_stats(r.client, r.engine, NULL), WEIR_EBUSY);
    T_ERR(weir_client_attach_stats(r.client, NULL, NULL), WEIR_EINVAL);
    T_ERR(weir_client_add_batch(r.client, NULL, 0), WEIR_EINVAL);
    fake_close(&r);
    fake_init(&r);
    fake_open(&r, false);
    T_ERR(weir_client_add_batch(r.client, NULL, 0), WEIR_EINVAL);
    const struct weir_stats_opts o = {.struct_size = sizeof o, .profile = WEIR_PROFILE_CLIENT};
    T_OK(weir_stats_new(&o, &r.engine));
    char long_id[70];
    memset(long_id, 'x', sizeof long_id);
    struct weir_payload_opts identity = {.struct_size = sizeof identity,
                                         .runtime_id = {long_id, 64}};
    T_ERR(weir_client_attach_stats(r.client, r.engine, &identity), WEIR_EINVAL);
    identity.runtime_id.len = 63;
    T_OK(weir_client_attach_stats(r.client, r.engine, &identity));
    char id[WEIR_CLIENT_RUNTIME_ID];
    weir_client_get_runtime_id(r.client, id);
    T_EQ_U64(strlen(id), 63);
    fake_close(&r);
}

TEST(a_client_without_a_given_runtime_id_makes_a_uuid)
{
    static struct fake_rig r;
    fake_init(&r);
    fake_open(&r, false);
    char id[WEIR_CLIENT_RUNTIME_ID];
    weir_client_get_runtime_id(r.client, id);
    T_EQ_U64(strlen(id), 36);
    T_TRUE(id[14] == '4' && id[8] == '-' && strchr("89ab", id[19]));
    fake_close(&r);
}

TEST(a_host_that_runs_the_engine_gives_its_batches)
{
    static struct fake_rig r;
    fake_init(&r);
    r.opts.flags = WEIR_CLIENT_HOST_ENGINE | WEIR_CLIENT_OPTIMISTIC;
    fake_open(&r, true);
    fake_spans(&r, "mine", 1);
    fake_poll(&r);
    T_EQ_U64(fake_count(&r, stats_path), 0);
    struct weir_batch *const batch = weir_stats_take_batch(r.engine);
    T_TRUE(batch != NULL);
    T_OK(weir_client_add_batch(r.client, batch, r.now));
    fake_poll(&r);
    T_EQ_U64(fake_count(&r, stats_path), 1);
    fake_close(&r);
}
