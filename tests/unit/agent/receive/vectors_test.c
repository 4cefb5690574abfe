/* SPDX-License-Identifier: Apache-2.0 */
/* vectors: the shared rows of hostile and raw requests, and recorded requests of stock clients. */
#include "world.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define VECTORS T_SHARED_DIR "/vectors"

TEST(every_row_of_raw_http_is_answered_as_it_says)
{
    struct world *const w = world_new(0);
    const struct http_replay replay =
        http_replay_raw(&w->loop, w->datadog_port, T_SOURCE_DIR "/tests/golden/http/raw-http.tsv");
    print_message("raw-http.tsv: %u rows, %u wrong\n", replay.rows, replay.wrong);
    T_EQ_U64(replay.wrong, 0);
    T_TRUE(replay.rows >= 99);
    const struct weir_stats_health health = world_health(w);
    T_EQ_U64(health.received, health.aggregated + health.ineligible + health.partial);
    world_free(w);
}

/* hostile.tsv */

struct hostile {
    const char *id;
    const char *endpoint;
    const char *type;
    const char *coding;
    const char *body;
    const char *status;
    const char *expect;
};

static bool is_served(const char *endpoint)
{
    static const char *const served[] = {"/v0.4/traces", "/v0.5/traces", "/v0.7/traces",
                                         "/v1.0/traces", "/v1/traces"};
    for (size_t i = 0; i < sizeof served / sizeof *served; i++)
        if (strcmp(endpoint, served[i]) == 0)
            return true;
    return false;
}

/* What the row says, but for routes and types that are not served yet. */
static const char *wanted(const struct hostile *h)
{
    if (!is_served(h->endpoint))
        return "404";
    return strncmp(h->type, "application/json", 16) == 0 ? "415" : h->status;
}

static struct http_answer ask(struct world *w, const struct hostile *h)
{
    char fields[512];
    int n = 0;
    fields[0] = 0;
    if (strcmp(h->type, "-") != 0)
        n = snprintf(fields, sizeof fields, "Content-Type: %s\r\n", h->type);
    if (strcmp(h->coding, "-") != 0)
        (void)snprintf(fields + n, sizeof fields - (size_t)n, "Content-Encoding: %s\r\n",
                       h->coding);
    size_t len = 0;
    uint8_t *const body = http_expand(h->body, VECTORS "/http", &len);
    const bool otlp = strncmp(h->endpoint, "/v1/", 4) == 0;
    struct http_client c = otlp ? world_otlp(w) : world_datadog(w);
    const struct http_answer a = world_post(&c, h->endpoint, fields, body, len);
    http_close(&c);
    free(body);
    return a;
}

static bool says(const struct hostile *h, const char *text)
{
    return strstr(h->expect, text) != NULL;
}

/* The answer, and whether the engine took in what it promised: all, or nothing. */
static bool replay_hostile(struct world *w, const struct hostile *h, char *seen, size_t cap)
{
    const uint64_t before = world_health(w).received;
    const struct receive_counts counts = world_counts(w);
    const struct http_answer a = ask(w, h);
    const uint64_t got = world_health(w).received - before;
    const uint64_t rejected = world_counts(w).rejected_spans[WEIR_REFUSED_TRACE_ID] +
                              world_counts(w).rejected_spans[WEIR_REFUSED_SPAN_ID] -
                              counts.rejected_spans[WEIR_REFUSED_TRACE_ID] -
                              counts.rejected_spans[WEIR_REFUSED_SPAN_ID];
    (void)snprintf(seen, cap, "%d, %llu spans, %llu rejected: %.80s", a.status,
                   (unsigned long long)got, (unsigned long long)rejected, a.body);
    if (!http_status_in(a.status, wanted(h)))
        return false;
    if (a.status != 200)
        return got == 0 && rejected == 0;
    if (says(h, "hits 1")) /* an OTLP row has a good neighbour besides */
        return got == (strcmp(h->endpoint, "/v1/traces") == 0 ? 2 : 1);
    return !says(h, "rejected_spans 1") || rejected == 1;
}

static bool still_serves(struct world *w)
{
    struct http_client c = world_datadog(w);
    struct pack p = pack_traces(1, 1, "r");
    const bool right = world_post(&c, "/v0.4/traces", MSGPACK, p.bytes, p.len).status == 200;
    free(p.bytes);
    http_close(&c);
    return right;
}

TEST(every_row_of_hostile_is_refused_or_counted_as_it_says)
{
    struct http_rows rows;
    if (!http_rows_open(&rows, VECTORS "/http/hostile.tsv"))
        T_SKIP_MISSING("vectors/http/hostile.tsv");
    struct world *const w = world_new(0);
    char *c[8];
    unsigned count = 0;
    unsigned wrong = 0;
    unsigned elsewhere = 0;
    while (http_rows_next(&rows, c)) {
        const struct hostile h = {c[0], c[1], c[2], c[3], c[4], c[5], c[6]};
        char seen[256];
        count++;
        elsewhere += wanted(&h) != h.status;
        if (!replay_hostile(w, &h, seen, sizeof seen) || !still_serves(w)) {
            wrong++;
            print_error("%s: want %s (%s), got %s\n", h.id, wanted(&h), h.expect, seen);
        }
    }
    http_rows_close(&rows);
    print_message("hostile.tsv: %u rows, %u of routes or types not served yet, %u wrong\n", count,
                  elsewhere, wrong);
    T_EQ_U64(wrong, 0);
    T_TRUE(count >= 366);
    world_free(w);
}

/* Recorded clients. */

/* ["Name", "value"] pairs of the recording as lines; framing and Host are made anew. */
static void fields_of(const char *json, char *dst, size_t cap)
{
    size_t n = 0;
    dst[0] = 0;
    for (const char *at = json; (at = strstr(at, "[\"")) != NULL;) {
        const char *const name = at + 2;
        const char *const name_end = strstr(name, "\", \"");
        const char *const value_end = name_end ? strstr(name_end + 4, "\"]") : NULL;
        if (!value_end)
            break;
        at = value_end;
        const int name_len = (int)(name_end - name);
        if (strncasecmp(name, "Host", 4) == 0 || strncasecmp(name, "Content-Length", 14) == 0 ||
            strncasecmp(name, "Transfer-Encoding", 17) == 0)
            continue;
        n += (size_t)snprintf(dst + n, cap - n, "%.*s: %.*s\r\n", name_len, name,
                              (int)(value_end - name_end - 4), name_end + 4);
    }
}

/* Chunks as recorded: "chunked [10, 646]". */
static void send_chunks(struct http_client *c, const char *framing, const uint8_t *body)
{
    const char *at = strchr(framing, '[');
    while (at && *at != ']') {
        char *end = NULL;
        const size_t size = strtoull(at + 1, &end, 10);
        char line[32];
        (void)snprintf(line, sizeof line, "%zx\r\n", size);
        http_send_text(c, line);
        http_send(c, body, size);
        http_send_text(c, "\r\n");
        http_wait(c, 1); /* a piece by itself */
        body += size;
        at = strchr(end, ',');
    }
    http_send_text(c, "0\r\n\r\n");
}

enum { LEFT_OUT = -1 };

/* The status of the answer. */
static int replay_recorded(struct http_client *c, char *columns[8])
{
    char path[512];
    (void)snprintf(path, sizeof path, VECTORS "/clients/%s/%s", columns[0], columns[1]);
    size_t len = 0;
    uint8_t *const body = t_read_file(path, &len);
    if (!body)
        T_FAIL("cannot read %s", path);
    if (len != strtoull(columns[5], NULL, 10)) {
        print_message("left out: %s/%s is not of its recorded size\n", columns[0], columns[1]);
        free(body);
        return LEFT_OUT;
    }
    char fields[3000];
    fields_of(columns[6], fields, sizeof fields);
    char head[4096];
    const bool chunked = strncmp(columns[3], "chunked", 7) == 0;
    (void)snprintf(head, sizeof head, "%s\r\nHost: a\r\n%s", columns[2], fields);
    http_send_text(c, head);
    if (chunked) {
        http_send_text(c, "Transfer-Encoding: chunked\r\n\r\n");
        send_chunks(c, columns[3], body);
    } else {
        (void)snprintf(head, sizeof head, "Content-Length: %zu\r\n\r\n", len);
        http_send_text(c, head);
        http_send(c, body, len);
    }
    free(body);
    const struct http_answer a = http_read(c, false);
    if (a.status != 200)
        print_error("%s: %d %s\n", columns[1], a.status, a.body);
    return a.status;
}

struct run {
    const char *name;
    uint64_t spans;
    uint64_t errors;
};

struct replayed {
    unsigned requests;
    unsigned left_out;
};

static struct replayed replay_run(struct world *w, const char *name)
{
    struct http_rows rows;
    if (!http_rows_open(&rows, VECTORS "/clients/requests.tsv"))
        T_SKIP_MISSING("vectors/clients/requests.tsv");
    struct http_client datadog = world_datadog(w);
    struct http_client otlp = world_otlp(w);
    char *columns[8];
    struct replayed done = {0};
    while (http_rows_next(&rows, columns)) {
        const size_t len = strlen(name);
        if (strncmp(columns[1], name, len) != 0 || columns[1][len] != '-' ||
            !strstr(columns[2], "traces HTTP/1.1"))
            continue;
        const bool is_otlp = strstr(columns[2], " /v1/") != NULL;
        const int status = replay_recorded(is_otlp ? &otlp : &datadog, columns);
        if (status == LEFT_OUT) {
            done.left_out++;
            continue;
        }
        T_EQ_I64(status, 200);
        done.requests++;
    }
    http_close(&datadog);
    http_close(&otlp);
    http_rows_close(&rows);
    return done;
}

TEST(recorded_requests_of_stock_clients_give_their_true_counts)
{
    static const struct run runs[] = {
        {"dd-v04-stats", 402, 10}, {"dd-v05", 402, 10},        {"py-stats", 1800, 10},
        {"py-v04", 1800, 10},      {"otel223-proto", 400, 20}, {"otel223-expo-delta-gzip", 400, 20},
        {"pyotel-proto", 200, 10}, {"rust-proto", 200, 10},    {"tg", 200, 200}};
    struct world *const w = world_new(0);
    for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
        const struct replayed done = replay_run(w, runs[i].name);
        const struct world_rows rows = world_seal(w);
        print_message("%s: %u requests, %llu spans, %llu errors, %zu rows\n", runs[i].name,
                      done.requests, (unsigned long long)rows.hits, (unsigned long long)rows.errors,
                      rows.rows);
        T_TRUE(done.requests > 0);
        /* Each of telemetrygen's two bodies holds 100 spans; of one copy of the recordings one
         * of them is overwritten. All others must be whole. */
        const bool tg = strcmp(runs[i].name, "tg") == 0;
        T_TRUE(done.left_out <= (tg ? 1u : 0u));
        T_EQ_U64(rows.hits, runs[i].spans - 100 * done.left_out);
        T_EQ_U64(rows.errors, runs[i].errors - (tg ? 100 * done.left_out : 0));
    }
    T_EQ_U64(world_counts(w).count_mismatches, 0);
    world_free(w);
}
