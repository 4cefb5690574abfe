/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client_load URL SECONDS VERSION [SPOOL]: a program with the client in it, under load: a trace of
 * two spans every 5 ms, counted and sent, VERSION 4, 5 or 10. Ends with what is in the client's
 * health, a "name value" a line, beside what it published.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <weir/client.h>

static struct weir_client_health last;

static void on_health(void *ctx, const struct weir_client_health *health)
{
    (void)ctx;
    last = *health;
}

static int64_t now_ns(clockid_t clock)
{
    struct timespec t;
    (void)clock_gettime(clock, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void publish(struct weir_producer *producer, struct weir_client *client, uint64_t number)
{
    const int64_t now = now_ns(CLOCK_REALTIME);
    const struct weir_source source = {.now_ns = now};
    struct weir_span spans[2] = {{.service = {"load", 4},
                                  .name = {"op", 2},
                                  .resource = {"GET /a", 6},
                                  .trace_id = number,
                                  .span_id = 2 * number,
                                  .kind = WEIR_KIND_SERVER,
                                  .start_ns = now - 1000000,
                                  .duration_ns = 1000000}};
    spans[1] = spans[0];
    spans[1].span_id++;
    spans[1].parent_id = spans[0].span_id;
    spans[1].kind = WEIR_KIND_CLIENT;
    if (weir_stats_publish(producer, &source, spans, 2))
        exit(3);
    struct weir_trace_span sent[2];
    memset(sent, 0, sizeof sent);
    for (int i = 0; i < 2; i++) {
        sent[i].service = weir_str_c("load");
        sent[i].name = weir_str_c("op");
        sent[i].resource = weir_str_c("GET /a");
        sent[i].trace_id = number;
        sent[i].span_id = spans[i].span_id;
        sent[i].parent_id = spans[i].parent_id;
        sent[i].start_ns = spans[i].start_ns;
        sent[i].duration_ns = spans[i].duration_ns;
        sent[i].kind = spans[i].kind;
        sent[i].flags = i ? 0 : WEIR_TRACE_TOP_LEVEL;
    }
    const struct weir_trace trace = {.spans = sent, .span_count = 2};
    (void)!weir_client_add_trace(client, &trace, WEIR_CLIENT_KEEP); /* counted */
}

int main(int argc, char **argv)
{
    if (argc < 4)
        return 2;
    const struct weir_stats_opts stats_opts = {.struct_size = sizeof stats_opts,
                                               .profile = WEIR_PROFILE_CLIENT,
                                               .window_for_ns = 1000000000};
    const struct weir_payload_opts identity = {.struct_size = sizeof identity,
                                               .service = {"load", 4}};
    /* By which Datadog's test agent knows a session; for others it is any header. */
    const struct weir_client_header session = {"X-Datadog-Test-Session-Token", "t"};
    const struct weir_client_opts opts = {.struct_size = sizeof opts,
                                          .url = argv[1],
                                          .flags = WEIR_CLIENT_OPTIMISTIC | WEIR_CLIENT_ANY_VERSION,
                                          .trace_version = (uint32_t)atoi(argv[3]),
                                          .lang = {"c", 1},
                                          .tracer_version = {"1.0", 3},
                                          .headers = &session,
                                          .header_count = 1,
                                          .retry_max_for_ns = INT64_C(2000000000),
                                          .flush_for_ns = 100000000,
                                          .drain_for_ns = INT64_C(5000000000),
                                          .spool = argc > 4 ? argv[4] : NULL,
                                          .health = on_health};
    struct weir_stats *stats;
    struct weir_producer *producer;
    struct weir_client *client;
    if (weir_stats_new(&stats_opts, &stats) || weir_stats_producer(stats, &producer) ||
        weir_client_new(&opts, &client) || weir_client_attach_stats(client, stats, &identity) ||
        weir_client_start(client))
        return 1;
    const int64_t end = now_ns(CLOCK_MONOTONIC) + (int64_t)(strtod(argv[2], NULL) * 1e9);
    uint64_t traces = 0;
    while (now_ns(CLOCK_MONOTONIC) < end) {
        const struct timespec pause = {.tv_nsec = 5000000};
        publish(producer, client, ++traces);
        (void)nanosleep(&pause, NULL);
    }
    weir_client_free(client);
    weir_stats_free(stats);
    printf("published %" PRIu64 "\n", 2 * traces);
#define FIELD(name) printf(#name " %" PRIu64 "\n", last.name)
    FIELD(requests);
    FIELD(unreached);
    FIELD(unknown);
    FIELD(stats_sent);
    FIELD(stats_retried);
    FIELD(spans_in);
    FIELD(spans_sent);
    FIELD(trace_payloads_retried);
    FIELD(spool_written);
    FIELD(spool_loaded);
    FIELD(downgrades);
    FIELD(upgrades);
    for (int i = 0; i < WEIR_CLIENT_DROP_COUNT; i++)
        printf("%s %" PRIu64 " %" PRIu64 "\n", weir_client_drop_name((enum weir_client_drop)i),
               last.stats_dropped[i], last.spans_dropped[i]);
    return 0;
}
