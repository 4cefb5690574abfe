/* SPDX-License-Identifier: Apache-2.0 */
/* The client's thread, its engine's, producers of many threads, and forks. */
#include "fake.h"

#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 4, TRACES = 500 };

static void real_rig(struct fake_rig *r)
{
    fake_init(r);
    r->opts.clock = NULL;
    r->opts.clock_ctx = NULL;
    r->opts.alloc = (struct weir_alloc){0};
    r->opts.flush_for_ns = FAKE_S / 100;
}

static bool wait_for_stats(struct fake_rig *r)
{
    for (int i = 0; i < 2000 && !weir_client_stats_on(r->client); i++)
        (void)usleep(1000);
    return weir_client_stats_on(r->client);
}

static void *add_traces(void *arg)
{
    struct fake_rig *const r = arg;
    for (int i = 0; i < TRACES; i++)
        fake_trace(r, 2, WEIR_CLIENT_KEEP);
    return NULL;
}

TEST(traces_of_many_threads_all_arrive_while_answers_come)
{
    static struct fake_rig r;
    pthread_t threads[THREADS];
    real_rig(&r);
    fake_open(&r, false);
    T_OK(weir_client_start(r.client));
    for (int i = 0; i < THREADS; i++)
        T_EQ_I64(pthread_create(&threads[i], NULL, add_traces, &r), 0);
    for (int i = 0; i < 50; i++) {
        weir_client_discover(r.client);
        weir_client_flush(r.client);
        (void)fake_health(&r);
        (void)usleep(200);
    }
    for (int i = 0; i < THREADS; i++)
        T_EQ_I64(pthread_join(threads[i], NULL), 0);
    weir_client_stop(r.client, 5 * FAKE_S);
    const struct weir_client_health h = fake_health(&r);
    T_EQ_U64(h.traces_in, THREADS * TRACES);
    T_EQ_U64(h.traces_sent, THREADS * TRACES);
    T_EQ_U64(h.spans_sent, 2 * THREADS * TRACES);
    fake_close(&r);
}

/* J7 */
TEST(discovery_over_and_over_loses_no_span)
{
    static struct fake_rig r;
    real_rig(&r);
    r.opts.flags = WEIR_CLIENT_OPTIMISTIC;
    fake_open(&r, true);
    T_OK(weir_client_start(r.client));
    for (int i = 0; i < 200; i++) {
        weir_client_discover(r.client);
        fake_publish(&r, "a", 5);
        T_TRUE(weir_client_stats_on(r.client));
    }
    T_OK(weir_stats_flush(r.engine));
    weir_client_stop(r.client, 5 * FAKE_S);
    struct weir_stats_health engine;
    weir_stats_get_health(r.engine, &engine);
    T_EQ_U64(engine.aggregated, 1000);
    T_EQ_U64(engine.dropped[WEIR_DROP_CLEARED], 0);
    const struct weir_client_health h = fake_health(&r);
    T_TRUE(h.stats_sent >= 1);
    for (int i = 0; i < WEIR_CLIENT_DROP_COUNT; i++)
        T_EQ_U64(h.stats_dropped[i], 0);
    fake_close(&r);
}

TEST(a_client_can_be_stopped_and_started_again)
{
    static struct fake_rig r;
    real_rig(&r);
    fake_open(&r, true);
    for (int i = 0; i < 3; i++) {
        T_OK(weir_client_start(r.client));
        T_TRUE(wait_for_stats(&r));
        fake_publish(&r, "a", 1);
        weir_client_stop(r.client, 5 * FAKE_S);
        T_EQ_U64(fake_health(&r).stats_sent, (uint64_t)i + 1);
    }
    fake_close(&r);
}

#ifndef __SANITIZE_THREAD__ /* which does not bear a thread after such a fork */
/* What a child does and finds; 0: all right. */
static int in_child(struct fake_rig *r, const char *parent_id)
{
    char id[WEIR_CLIENT_RUNTIME_ID];
    fake_clear(&r->agent);
    weir_client_get_runtime_id(r->client, id);
    struct weir_client_health h = fake_health(r);
    if (strcmp(id, parent_id) == 0 || strlen(id) != 36)
        return 1;
    if (h.queued_stats || h.queued_traces || h.requests || r->agent.forks != 1)
        return 2;
    if (weir_client_stats_on(r->client))
        return 3;
    if (weir_client_start(r->client) || !wait_for_stats(r))
        return 4;
    fake_publish(r, "child", 1);
    fake_trace(r, 1, WEIR_CLIENT_KEEP);
    weir_client_stop(r->client, 5 * FAKE_S);
    h = fake_health(r);
    if (h.stats_sent != 1 || h.traces_sent != 1)
        return 5;
    if (fake_count(r, "/v0.6/stats") != 1)
        return 6;
    const struct fake_seen *const s = fake_nth(r, "/v0.6/stats", 0);
    char key[WEIR_CLIENT_RUNTIME_ID + 8];
    (void)snprintf(key, sizeof key, "%s-0", id);
    if (!fake_has(s, id) || strcmp(fake_header(s, "Idempotency-Key"), key) != 0 ||
        fake_has(s, "parent"))
        return 7;
    weir_client_free(r->client);
    return 0;
}

TEST(a_child_starts_clean_with_a_name_of_its_own_and_the_parent_goes_on)
{
    static struct fake_rig r;
    real_rig(&r);
    fake_open(&r, true);
    T_OK(weir_client_start(r.client));
    T_TRUE(wait_for_stats(&r));
    (void)pthread_mutex_lock(&r.agent.lock);
    r.agent.status_stats = 503;
    (void)pthread_mutex_unlock(&r.agent.lock);
    fake_publish(&r, "parent", 1);
    T_OK(weir_stats_flush(r.engine));
    fake_trace(&r, 1, WEIR_CLIENT_KEEP);
    char id[WEIR_CLIENT_RUNTIME_ID];
    weir_client_get_runtime_id(r.client, id);
    T_EQ_STR(id, "rid");
    (void)usleep(20000);
    (void)pthread_mutex_lock(&r.agent.lock); /* nobody is inside the agent when it is copied */
    const pid_t child = fork();
    if (child == 0) {
        r.agent.status_stats = 0;
        r.agent.forks = 0;
        _exit(in_child(&r, id));
    }
    r.agent.status_stats = 0;
    (void)pthread_mutex_unlock(&r.agent.lock);
    int status;
    T_TRUE(waitpid(child, &status, 0) == child);
    T_TRUE(WIFEXITED(status));
    T_EQ_I64(WEXITSTATUS(status), 0);
    weir_client_stop(r.client, 5 * FAKE_S);
    const struct weir_client_health h = fake_health(&r);
    T_EQ_U64(h.stats_sent, 1);
    T_EQ_U64(h.traces_sent, 1);
    fake_close(&r);
}
#endif
