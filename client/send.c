/* SPDX-License-Identifier: Apache-2.0 */
/*
 * send: one request, and what its answer means for the body that went with it.
 *
 *               statistics                          traces
 *   2xx         taken                               taken; the body holds rates
 *   404         /info now: still taken? again       the next lower version
 *   415         dropped, refused                    the next lower version
 *   413         dropped, too large                  dropped, and the next payloads are half as
 * large 408 429 5xx again, at most max_attempts         again, at most max_attempts other dropped,
 * refused                    dropped, refused unreached   again                               again
 *   unknown     again: the receiver knows a repeat  dropped: it would count twice
 *
 * Threads: the owner. Nothing is locked while a request is under way.
 */
#include "client.h"
#include "split.h"

#include <string.h>

static const struct weir_client_header content_type = {"Content-Type", "application/msgpack"};

void wr_client_call(struct weir_client *c, const struct wr_call *call,
                    struct weir_client_response *ret_answer)
{
    struct weir_client_header headers[WR_OWN_HEADERS + WR_HOST_HEADERS + WR_REQUEST_HEADERS];
    size_t n = 0;
    for (size_t i = 0; i < c->header_count; i++)
        headers[n++] = c->headers[i];
    for (size_t i = 0; i < call->more_count; i++)
        headers[n++] = call->more[i];
    int64_t timeout = c->opts.timeout_for_ns;
    if (c->deadline_ns != INT64_MAX) {
        const int64_t left = c->deadline_ns - wr_client_now(c);
        timeout = left < WR_MS_NS ? WR_MS_NS : left < timeout ? left : timeout;
    }
    const struct weir_client_request request = {.method = call->method,
                                                .path = call->path,
                                                .headers = headers,
                                                .header_count = n,
                                                .body = call->body,
                                                .timeout_for_ns = timeout,
                                                .max_answer_bytes = WR_ANSWER_MAX_BYTES};
    memset(ret_answer, 0, sizeof *ret_answer);
    c->transport.send(c->transport.ctx, &request, ret_answer);
    c->done_requests++;
    c->last_unreached = ret_answer->outcome == WEIR_CLIENT_UNREACHED;
    (void)pthread_mutex_lock(&c->lock);
    c->health.requests++;
    if (ret_answer->outcome == WEIR_CLIENT_ANSWERED)
        c->health.answered++;
    else if (ret_answer->outcome == WEIR_CLIENT_UNREACHED)
        c->health.unreached++;
    else
        c->health.unknown++;
    (void)pthread_mutex_unlock(&c->lock);
}

enum verdict { TAKEN, GONE, TOO_LARGE, LATER, REFUSED, UNREACHED, UNKNOWN };

static enum verdict judge(const struct weir_client_response *a, bool traces)
{
    if (a->outcome == WEIR_CLIENT_UNREACHED)
        return UNREACHED;
    if (a->outcome != WEIR_CLIENT_ANSWERED)
        return UNKNOWN;
    if (a->status >= 200 && a->status <= 299)
        return TAKEN;
    if (a->status == 404 || (traces && a->status == 415))
        return GONE;
    if (a->status == 413)
        return TOO_LARGE;
    if (a->status == 408 || a->status == 429 || a->status >= 500)
        return LATER;
    return REFUSED;
}

static int64_t retry_after_ns(const struct weir_client_response *a)
{
    uint32_t seconds;
    return wr_read_decimal(a->retry_after, &seconds) ? (int64_t)seconds * WR_S_NS : 0;
}

static void drop(struct weir_client *c, struct wr_item *item, enum weir_client_drop reason)
{
    (void)pthread_mutex_lock(&c->lock);
    if (reason == WEIR_CLIENT_DROP_REFUSED)
        c->health.bad_payloads++;
    wr_client_drop(c, item, reason);
    (void)pthread_mutex_unlock(&c->lock);
}

/* The agent answered "later", or that it has no such endpoint. */
static void again_or_drop(struct weir_client *c, struct wr_item *item, struct wr_retry *retry,
                          const struct weir_client_response *answer)
{
    wr_retry_failed(retry, wr_client_now(c), retry_after_ns(answer));
    (void)pthread_mutex_lock(&c->lock);
    c->health.server_errors += answer->status != 404;
    (void)pthread_mutex_unlock(&c->lock);
    if (++item->attempts >= c->opts.max_attempts)
        drop(c, item, WEIR_CLIENT_DROP_ATTEMPTS);
    else
        wr_client_requeue(c, item);
}

static void again(struct weir_client *c, struct wr_item *item, struct wr_retry *retry)
{
    wr_retry_failed(retry, wr_client_now(c), 0);
    wr_client_requeue(c, item);
}

/* Statistics */

static void stats_taken(struct weir_client *c, struct wr_item *item)
{
    wr_retry_succeeded(&c->stats_retry);
    (void)pthread_mutex_lock(&c->lock);
    c->health.stats_sent++;
    wr_spool_remove(&c->spool, item);
    (void)pthread_mutex_unlock(&c->lock);
    wr_item_free(&c->alloc, item);
}

static void stats_answered(struct weir_client *c, struct wr_item *item,
                           const struct weir_client_response *answer)
{
    switch (judge(answer, false)) {
    case TAKEN:
        stats_taken(c, item);
        break;
    case GONE:
        c->downgrade = true;
        c->info_retry.failures = 0;
        again_or_drop(c, item, &c->stats_retry, answer);
        break;
    case LATER:
        again_or_drop(c, item, &c->stats_retry, answer);
        break;
    case TOO_LARGE:
        drop(c, item, WEIR_CLIENT_DROP_TOO_LARGE);
        break;
    case REFUSED:
        drop(c, item, WEIR_CLIENT_DROP_REFUSED);
        break;
    case UNREACHED:
    case UNKNOWN:
        again(c, item, &c->stats_retry);
        break;
    }
}

/* The oldest item with its body in memory, or NULL. */
static struct wr_item *take_stats(struct weir_client *c)
{
    struct wr_item *item;
    (void)pthread_mutex_lock(&c->lock);
    while ((item = wr_queue_pop(&c->stats_queue)) != NULL && !item->body &&
           !wr_spool_read(&c->spool, item))
        wr_client_drop(c, item, WEIR_CLIENT_DROP_SPOOL);
    if (item && item->tries++ > 0)
        c->health.stats_retried++;
    (void)pthread_mutex_unlock(&c->lock);
    return item;
}

bool wr_client_send_stats(struct weir_client *c)
{
    if (!wr_retry_is_due(&c->stats_retry, wr_client_now(c)))
        return false;
    struct wr_item *const item = take_stats(c);
    if (!item)
        return false;
    struct wr_call call = {.method = "POST",
                           .path = "/v0.6/stats",
                           .body = {.ptr = item->body, .len = item->len},
                           .more = {content_type, {"Idempotency-Key", item->key}},
                           .more_count = 2};
    struct weir_client_response answer;
    wr_client_call(c, &call, &answer);
    if (answer.outcome == WEIR_CLIENT_ANSWERED)
        wr_client_saw_state(c, answer.agent_state);
    stats_answered(c, item, &answer);
    return true;
}

/* Traces */

/* NULL: the agent does not take this version. */
static const char *path_of(struct weir_client *c, const struct wr_item *item)
{
    (void)pthread_mutex_lock(&c->lock);
    const struct weir_client_agent *const a = &c->agent;
    const bool unsure = !a->known && !a->v03;
    const char *path = NULL;
    if (item->version == WEIR_TRACE_V1)
        path = a->v1 || unsure ? "/v1.0/traces" : NULL;
    else if (item->version == WEIR_TRACE_V05)
        path = a->v05 || unsure ? "/v0.5/traces" : NULL;
    else
        path = a->v04 || unsure ? "/v0.4/traces" : "/v0.3/traces";
    (void)pthread_mutex_unlock(&c->lock);
    return path;
}

/* 404 or 415 of path: it is gone. What has the form of v0.4 goes to v0.3. */
static void fall_back(struct weir_client *c, struct wr_item *item, const char *path)
{
    const char digit = path[4];
    (void)pthread_mutex_lock(&c->lock);
    struct weir_client_agent *const a = &c->agent;
    c->health.fallbacks++;
    if (digit == '0')
        a->v1 = false;
    else if (digit == '5')
        a->v05 = false;
    else if (digit == '4')
        a->v04 = false;
    /* Of an agent that told nothing: the next lower may be there. */
    const bool told = a->known || a->v03;
    a->v03 = true;
    a->v04 = a->v04 || (!told && digit != '4');
    wr_client_settle_version(c);
    (void)pthread_mutex_unlock(&c->lock);
    if (digit == '4')
        wr_client_requeue(c, item);
    else
        drop(c, item, digit == '3' ? WEIR_CLIENT_DROP_REFUSED : WEIR_CLIENT_DROP_VERSION);
}

static void traces_taken(struct weir_client *c, struct wr_item *item, const char *path,
                         const struct weir_client_response *answer)
{
    wr_retry_succeeded(&c->trace_retry);
    enum wr_rates_result result = WR_RATES_SAME;
    if (path[4] != '3') /* whose answer is the word OK */
        result = wr_rates_take(&c->rates, answer, c->opts.rates, c->opts.ctx);
    (void)pthread_mutex_lock(&c->lock);
    c->health.trace_payloads_sent++;
    c->health.traces_sent += item->traces;
    c->health.spans_sent += item->spans;
    c->health.rates_changed += result == WR_RATES_CHANGED;
    c->health.rates_refused += result == WR_RATES_REFUSED;
    (void)pthread_mutex_unlock(&c->lock);
    wr_item_free(&c->alloc, item);
}

/* Never the same bytes again: two of half the traces, where that can be. */
static void traces_too_large(struct weir_client *c, struct wr_item *item)
{
    struct wr_item *halves[2];
    if (!wr_split(&c->alloc, item, halves)) {
        drop(c, item, WEIR_CLIENT_DROP_TOO_LARGE);
        return;
    }
    halves[0]->p0_taken = true;
    halves[0]->p0_traces = item->p0_traces;
    halves[0]->p0_spans = item->p0_spans;
    wr_item_free(&c->alloc, item);
    wr_client_requeue(c, halves[1]);
    wr_client_requeue(c, halves[0]);
}

static void traces_answered(struct weir_client *c, struct wr_item *item, const char *path,
                            const struct weir_client_response *answer)
{
    switch (judge(answer, true)) {
    case TAKEN:
        traces_taken(c, item, path, answer);
        break;
    case GONE:
        fall_back(c, item, path);
        break;
    case LATER:
        again_or_drop(c, item, &c->trace_retry, answer);
        break;
    case TOO_LARGE:
        wr_client_halve_payloads(c, item->len);
        traces_too_large(c, item);
        break;
    case REFUSED:
        drop(c, item, WEIR_CLIENT_DROP_REFUSED);
        break;
    case UNREACHED:
        again(c, item, &c->trace_retry);
        break;
    case UNKNOWN:
        wr_retry_failed(&c->trace_retry, wr_client_now(c), 0);
        drop(c, item, WEIR_CLIENT_DROP_UNKNOWN);
        break;
    }
}

static struct wr_item *take_traces(struct weir_client *c)
{
    (void)pthread_mutex_lock(&c->lock);
    struct wr_item *const item = wr_queue_pop(&c->trace_queue);
    if (item && item->tries++ > 0)
        c->health.trace_payloads_retried++;
    if (item && !item->p0_taken) {
        item->p0_taken = true;
        item->p0_traces = c->p0_traces;
        item->p0_spans = c->p0_spans;
        c->p0_traces = 0;
        c->p0_spans = 0;
    }
    (void)pthread_mutex_unlock(&c->lock);
    return item;
}

bool wr_client_send_traces(struct weir_client *c)
{
    if (!wr_retry_is_due(&c->trace_retry, wr_client_now(c)))
        return false;
    struct wr_item *const item = take_traces(c);
    if (!item)
        return false;
    const char *const path = path_of(c, item);
    if (!path) {
        drop(c, item, WEIR_CLIENT_DROP_VERSION);
        return true;
    }
    char traces[WR_DECIMAL_BYTES];
    char p0_traces[WR_DECIMAL_BYTES];
    char p0_spans[WR_DECIMAL_BYTES];
    (void)wr_decimal(item->traces, traces);
    (void)wr_decimal(item->p0_traces, p0_traces);
    (void)wr_decimal(item->p0_spans, p0_spans);
    struct wr_call call = {.method = "PUT",
                           .path = path,
                           .body = {.ptr = item->body, .len = item->len},
                           .more = {content_type,
                                    {"X-Datadog-Trace-Count", traces},
                                    {"Datadog-Client-Dropped-P0-Traces", p0_traces},
                                    {"Datadog-Client-Dropped-P0-Spans", p0_spans}},
                           .more_count = 4};
    if (!(c->opts.flags & WEIR_CLIENT_NO_TOP_LEVEL))
        call.more[call.more_count++] =
            (struct weir_client_header){"Datadog-Client-Computed-Top-Level", "true"};
    if (item->computed)
        call.more[call.more_count++] =
            (struct weir_client_header){"Datadog-Client-Computed-Stats", "true"};
    if (c->rates.version[0])
        call.more[call.more_count++] =
            (struct weir_client_header){"Datadog-Rates-Payload-Version", c->rates.version};
    struct weir_client_response answer;
    wr_client_call(c, &call, &answer);
    if (answer.outcome == WEIR_CLIENT_ANSWERED)
        wr_client_saw_state(c, answer.agent_state);
    traces_answered(c, item, path, &answer);
    return true;
}
