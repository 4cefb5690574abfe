/* SPDX-License-Identifier: Apache-2.0 */
/*
 * discovery: what the agent takes, by GET /info, and what follows of it: statistics on or off, the
 * version of traces, the peer tags.
 *
 * No answer, or one that says "not now" (429, 502, 503, 504), leaves what is known as it is: an
 * agent that restarts is the same agent. Any other answer that cannot be used turns statistics off,
 * and the endpoints of traces are found by an empty payload to each (contract: span stats §1.14).
 *
 * Threads: the owner.
 */
#include "client.h"

#include <string.h>

enum { PROBES = 3 };
static const char *const trace_paths[] = {"/v1.0/traces", "/v0.5/traces", "/v0.4/traces",
                                          "/v0.3/traces"};

static bool *bit_of(struct weir_client_agent *a, const char *path)
{
    switch (path[4]) {
    case '0':
        return &a->v1;
    case '5':
        return &a->v05;
    case '4':
        return &a->v04;
    default: /* '3' */
        return &a->v03;
    }
}

/* The endpoints of the version that is wanted, best first. */
static size_t candidates(const struct weir_client *c, const char *ret_paths[PROBES])
{
    size_t n = 0;
    if (c->opts.trace_version == WEIR_TRACE_V1)
        ret_paths[n++] = trace_paths[0];
    if (c->opts.trace_version == WEIR_TRACE_V05)
        ret_paths[n++] = trace_paths[1];
    ret_paths[n++] = trace_paths[2];
    ret_paths[n++] = trace_paths[3];
    return n;
}

void wr_client_settle_version(struct weir_client *c)
{
    static const uint32_t versions[] = {['0'] = WEIR_TRACE_V1,
                                        ['3'] = WR_VERSION_V03,
                                        ['4'] = WEIR_TRACE_V04,
                                        ['5'] = WEIR_TRACE_V05};
    uint32_t version = c->agent.known || c->agent.v03 ? WR_VERSION_V03 : WEIR_TRACE_V04;
    const char *paths[PROBES];
    const size_t n = candidates(c, paths);
    for (size_t i = 0; i < n; i++) {
        if (*bit_of(&c->agent, paths[i])) {
            version = versions[(unsigned char)paths[i][4]];
            break;
        }
    }
    atomic_store(&c->version, version);
}

void wr_client_saw_state(struct weir_client *c, struct weir_bytes state)
{
    if (state.len == 0 || state.len >= sizeof c->agent.state)
        return;
    (void)pthread_mutex_lock(&c->lock);
    if (c->agent.state[0] == 0) {
        /* /info itself did not say its state: the first answer after it does. */
        memcpy(c->agent.state, state.ptr, state.len);
        c->agent.state[state.len] = 0;
    } else if (!wr_bytes_are(state, c->agent.state) && !c->want_info) {
        c->want_info = true;
        c->health.state_changes++;
    }
    (void)pthread_mutex_unlock(&c->lock);
}

static bool same_tags(const struct wr_info *a, const struct wr_info *b)
{
    return a->agent.peer_tag_count == b->agent.peer_tag_count &&
           memcmp(a->peer_tags, b->peer_tags, a->agent.peer_tag_count * sizeof a->peer_tags[0]) ==
               0;
}

static void give_tags(struct weir_client *c)
{
    const char *names[WEIR_CLIENT_PEER_TAGS_MAX];
    for (size_t i = 0; i < c->info->agent.peer_tag_count; i++)
        names[i] = c->info->peer_tags[i];
    c->tags_pending = !wr_client_set_peer_tags(c, names, c->info->agent.peer_tag_count);
    if (c->opts.peer_tags)
        c->opts.peer_tags(c->opts.ctx, names, c->info->agent.peer_tag_count);
}

/* next becomes what is known; all of it under one lock, so that nobody sees half of it. */
static void learn(struct weir_client *c, struct wr_info *next, struct weir_bytes state)
{
    const bool new_tags = next->agent.known && (c->tags_pending || !same_tags(c->info, next));
    (void)pthread_mutex_lock(&c->lock);
    if (state.len > 0 && state.len < sizeof next->agent.state)
        memcpy(next->agent.state, state.ptr, state.len);
    c->agent = next->agent;
    wr_client_settle_version(c);
    (void)pthread_mutex_unlock(&c->lock);
    if (next->agent.known)
        *c->info = *next;
    if (new_tags)
        give_tags(c);
}

static bool takes_stats(const struct weir_client *c, const struct weir_client_agent *a)
{
    return a->known && a->stats && a->drop_p0s &&
           ((c->opts.flags & WEIR_CLIENT_ANY_VERSION) != 0 || wr_info_is_recent(a->version));
}

/* Which endpoint of traces is there, of an agent that does not tell. */
static void probe(struct weir_client *c, struct wr_info *next)
{
    static const char empty[] = {'\x92', '\x90', '\x90'};
    const char *paths[PROBES];
    const size_t n = candidates(c, paths);
    next->agent.v03 = true;
    for (size_t i = 0; i + 1 < n; i++) {
        const struct wr_call call = {
            .method = "PUT",
            .path = paths[i],
            .body = {.ptr = empty, .len = sizeof empty},
            .more = {{"Content-Type", "application/msgpack"}, {"X-Datadog-Trace-Count", "0"}},
            .more_count = 2};
        struct weir_client_response answer;
        wr_client_call(c, &call, &answer);
        if (answer.outcome != WEIR_CLIENT_ANSWERED)
            return;
        if (answer.status != 404) {
            *bit_of(&next->agent, paths[i]) = true;
            return;
        }
    }
}

static bool is_not_now(const struct weir_client_response *answer)
{
    return answer->outcome != WEIR_CLIENT_ANSWERED || answer->status == 429 ||
           answer->status == 502 || answer->status == 503 || answer->status == 504;
}

static void count(struct weir_client *c, bool taken)
{
    (void)pthread_mutex_lock(&c->lock);
    c->want_info = false;
    if (taken)
        c->health.info_taken++;
    else
        c->health.info_failed++;
    (void)pthread_mutex_unlock(&c->lock);
}

static void settle_downgrade(struct weir_client *c, bool on)
{
    if (!c->downgrade)
        return;
    c->downgrade = false;
    if (on)
        return;
    (void)pthread_mutex_lock(&c->lock);
    wr_client_drop_all(c, &c->stats_queue, WEIR_CLIENT_DROP_DOWNGRADED);
    (void)pthread_mutex_unlock(&c->lock);
}

void wr_client_discover_now(struct weir_client *c)
{
    const struct wr_call call = {.method = "GET", .path = "/info"};
    struct weir_client_response answer;
    struct wr_info *const next = wr_client_alloc(&c->alloc, sizeof *next);
    if (!next) {
        wr_retry_failed(&c->info_retry, wr_client_now(c), 0);
        return;
    }
    wr_client_call(c, &call, &answer);
    const bool ok = answer.outcome == WEIR_CLIENT_ANSWERED && answer.status >= 200 &&
                    answer.status <= 299 && wr_info_parse(answer.body, next);
    const int64_t now = wr_client_now(c);
    count(c, ok);
    c->last_info_ns = now;
    if (ok) {
        const bool on = takes_stats(c, &next->agent);
        wr_retry_succeeded(&c->info_retry);
        c->next_info_ns = wr_sat_add(now, c->opts.info_for_ns);
        learn(c, next, answer.agent_state);
        wr_client_set_stats(c, on);
        settle_downgrade(c, on);
    } else {
        wr_retry_failed(&c->info_retry, now, 0);
        if (!is_not_now(&answer)) {
            memset(next, 0, sizeof *next);
            probe(c, next);
            learn(c, next, (struct weir_bytes){.ptr = NULL, .len = 0});
            wr_client_set_stats(c, false);
            settle_downgrade(c, false);
        }
    }
    wr_client_free(&c->alloc, next, sizeof *next);
}

int64_t wr_client_next_discovery_ns(struct weir_client *c)
{
    if (c->info_retry.failures > 0)
        return c->info_retry.next_ns;
    (void)pthread_mutex_lock(&c->lock);
    const bool want = c->want_info;
    (void)pthread_mutex_unlock(&c->lock);
    /* Agents that take turns behind one address change the state with every answer. */
    const int64_t soonest = wr_sat_add(c->last_info_ns, WR_S_NS);
    return want && soonest < c->next_info_ns ? soonest : c->next_info_ns;
}

bool wr_client_discovery_is_due(struct weir_client *c)
{
    return (c->downgrade && c->info_retry.failures == 0) ||
           wr_client_now(c) >= wr_client_next_discovery_ns(c);
}
