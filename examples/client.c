/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that counts its spans and sends statistics and traces to a Datadog agent.
 *
 *   cc client.c $(pkg-config --cflags --libs weir-client) -o client && ./client [URL]
 *
 * URL is http://HOST:PORT or unix:///PATH. With --offline the example brings an agent of its own:
 * a transport in place of libcurl, which answers as an agent would.
 */
#include <stdio.h>
#include <string.h>
#include <weir/client.h>

/* An agent in a function. */
static void answer(void *ctx, const struct weir_client_request *request,
                   struct weir_client_response *response)
{
    static const char info[] = "{\"version\":\"7.65.0\",\"client_drop_p0s\":true,"
                               "\"endpoints\":[\"/v0.4/traces\",\"/v0.6/stats\"]}";
    static const char rates[] = "{\"rate_by_service\":{\"service:shop,env:\":0.5}}";
    (void)ctx;
    response->outcome = WEIR_CLIENT_ANSWERED;
    response->status = 200;
    if (strcmp(request->path, "/info") == 0) {
        response->body.ptr = info;
        response->body.len = sizeof info - 1;
    } else if (strcmp(request->path, "/v0.4/traces") == 0) {
        response->body.ptr = rates;
        response->body.len = sizeof rates - 1;
    }
}

/* By the client's thread: what a sampler would take over. */
static void on_rates(void *ctx, const struct weir_client_rate *rates, size_t count)
{
    size_t i;
    (void)ctx;
    for (i = 0; i < count; i++)
        printf("rate of %.*s: %g\n", (int)rates[i].key.len, rates[i].key.ptr, rates[i].rate);
}

static void on_health(void *ctx, const struct weir_client_health *health)
{
    struct weir_client_health *const last = ctx;
    *last = *health;
}

static int publish(struct weir_producer *producer, struct weir_client *client)
{
    const int64_t start = INT64_C(1800000000) * 1000000000;
    struct weir_source source;
    struct weir_span span;
    struct weir_trace_span sent;
    struct weir_trace trace;

    memset(&source, 0, sizeof source);
    memset(&span, 0, sizeof span);
    source.now_ns = start;
    span.service.ptr = "shop";
    span.service.len = 4;
    span.resource.ptr = "GET /users";
    span.resource.len = 10;
    span.trace_id = 1;
    span.span_id = 2;
    span.kind = WEIR_KIND_SERVER;
    span.start_ns = start;
    span.duration_ns = 3000000;
    if (weir_stats_publish(producer, &source, &span, 1))
        return 1;

    memset(&sent, 0, sizeof sent);
    memset(&trace, 0, sizeof trace);
    sent.service = weir_str_c("shop");
    sent.resource = weir_str_c("GET /users");
    sent.trace_id = 1;
    sent.span_id = 2;
    sent.start_ns = start;
    sent.duration_ns = 3000000;
    sent.flags = WEIR_TRACE_TOP_LEVEL;
    trace.spans = &sent;
    trace.span_count = 1;
    /* Without WEIR_CLIENT_KEEP it would be dropped: it is counted. */
    return weir_client_add_trace(client, &trace, WEIR_CLIENT_KEEP);
}

int main(int argc, char **argv)
{
    struct weir_client_transport transport;
    struct weir_stats_opts stats_opts = {sizeof stats_opts};
    struct weir_payload_opts identity = {sizeof identity};
    struct weir_client_opts opts = {sizeof opts};
    struct weir_client_health health;
    struct weir_producer *producer;
    struct weir_client *client;
    struct weir_stats *stats;
    int i;

    memset(&transport, 0, sizeof transport);
    memset(&health, 0, sizeof health);
    transport.send = answer;
    if (argc > 1 && strcmp(argv[1], "--offline") == 0)
        opts.transport = &transport;
    else if (argc > 1)
        opts.url = argv[1];
    opts.flags = WEIR_CLIENT_OPTIMISTIC; /* a short program: count before the agent has answered */
    opts.ctx = &health;
    opts.rates = on_rates;
    opts.health = on_health;
    stats_opts.profile = WEIR_PROFILE_CLIENT;
    identity.service.ptr = "shop";
    identity.service.len = 4;

    if (weir_stats_new(&stats_opts, &stats) || weir_stats_producer(stats, &producer) ||
        weir_client_new(&opts, &client) || weir_client_attach_stats(client, stats, &identity) ||
        weir_client_start(client))
        return 1;
    for (i = 0; i < 3; i++) {
        if (publish(producer, client))
            return 1;
    }
    weir_client_free(client); /* seals, sends, and gives up after two seconds */
    weir_stats_free(stats);
    printf("%u of statistics sent, %u spans sent, %u left\n", (unsigned)health.stats_sent,
           (unsigned)health.spans_sent, (unsigned)(health.queued_stats + health.queued_traces));
    return 0;
}
