/* SPDX-License-Identifier: Apache-2.0 */
/* fake: see fake.h. */
#include "fake.h"

const char fake_info[] =
    "{\"version\":\"7.65.0\",\"endpoints\":[\"/v0.3/traces\",\"/v0.4/traces\",\"/v0.5/traces\","
    "\"v1.0/traces\",\"/v0.6/stats\"],\"client_drop_p0s\":true,\"config\":{\"statsd_port\":8125},"
    "\"peer_tags\":[\"peer.hostname\",\"db.name\"],\"span_kinds_stats_computed\":[\"server\"],"
    "\"obfuscation_version\":1}";

static void keep(struct fake *a, const struct weir_client_request *q)
{
    if (a->seen_count == FAKE_SEEN_MAX)
        return;
    struct fake_seen *const s = &a->seen[a->seen_count++];
    memset(s, 0, sizeof *s);
    (void)snprintf(s->method, sizeof s->method, "%s", q->method);
    (void)snprintf(s->path, sizeof s->path, "%s", q->path);
    for (size_t i = 0; i < q->header_count && i < FAKE_HEADERS_MAX; i++, s->header_count++) {
        (void)snprintf(s->names[i], sizeof s->names[i], "%s", q->headers[i].name);
        (void)snprintf(s->values[i], sizeof s->values[i], "%s", q->headers[i].value);
    }
    s->len = q->body.len;
    s->body = malloc(q->body.len + 1);
    if (s->body && q->body.len)
        memcpy(s->body, q->body.ptr, q->body.len);
}

static struct weir_bytes text(const char *s)
{
    return (struct weir_bytes){.ptr = s, .len = s ? strlen(s) : 0};
}

static int traces_status(const struct fake *a, char digit)
{
    static const char digits[] = "0543";
    const char *const at = strchr(digits, digit);
    if (at && (a->gone >> (at - digits)) & 1)
        return a->gone_status ? a->gone_status : 404;
    return a->status_traces ? a->status_traces : 200;
}

static void on_send(void *ctx, const struct weir_client_request *q, struct weir_client_response *r)
{
    struct fake *const a = ctx;
    (void)pthread_mutex_lock(&a->lock);
    keep(a, q);
    r->outcome = a->outcome;
    if (a->outcome == WEIR_CLIENT_ANSWERED && strcmp(q->path, "/info") == 0) {
        r->status = a->status_info ? a->status_info : 200;
        r->body = text(a->info);
        r->agent_state = text(a->info_state);
    } else if (a->outcome == WEIR_CLIENT_ANSWERED) {
        const bool stats = strcmp(q->path, "/v0.6/stats") == 0;
        r->status = a->status_stats ? a->status_stats : 200;
        if (!stats) {
            r->status = traces_status(a, q->path[4]);
            if (a->max_body && q->body.len > a->max_body)
                r->status = 413;
            if (a->status_once)
                r->status = a->status_once;
            a->status_once = 0;
            r->body = text(a->answer);
            r->rates_version = text(a->rates_version);
        }
        r->agent_state = text(a->state);
        r->retry_after = text(a->retry_after);
    }
    (void)pthread_mutex_unlock(&a->lock);
}

static void on_forked(void *ctx)
{
    struct fake *const a = ctx;
    a->forks++;
    (void)pthread_mutex_init(&a->lock, NULL);
}

static void on_free(void *ctx)
{
    struct fake *const a = ctx;
    a->frees++;
}

static void on_clock(void *ctx, int64_t *ret_wall_ns, int64_t *ret_mono_ns)
{
    const struct fake_rig *const r = ctx;
    *ret_wall_ns = r->now;
    *ret_mono_ns = r->now;
}

void fake_init(struct fake_rig *r)
{
    memset(r, 0, sizeof *r);
    (void)pthread_mutex_init(&r->agent.lock, NULL);
    r->agent.info = fake_info;
    r->heap.fail_at = -1;
    r->now = INT64_C(1800000000) * FAKE_S;
    r->transport = (struct weir_client_transport){
        .ctx = &r->agent, .send = on_send, .forked = on_forked, .free = on_free};
    r->opts = (struct weir_client_opts){.struct_size = sizeof r->opts,
                                        .alloc = {t_heap_fn, &r->heap},
                                        .transport = &r->transport,
                                        .seed = 7,
                                        .clock = on_clock,
                                        .clock_ctx = r};
}

void fake_open(struct fake_rig *r, bool with_engine)
{
    T_OK(weir_client_new(&r->opts, &r->client));
    if (!with_engine)
        return;
    const struct weir_stats_opts o = {.struct_size = sizeof o, .profile = WEIR_PROFILE_CLIENT};
    const struct weir_payload_opts identity = {
        .struct_size = sizeof identity, .runtime_id = {"rid", 3}, .service = {"svc", 3}};
    T_OK(weir_stats_new(&o, &r->engine));
    T_OK(weir_producer_new(r->engine, 0, 0, &r->producer));
    T_OK(weir_client_attach_stats(r->client, r->engine, &identity));
}

void fake_clear(struct fake *a)
{
    for (size_t i = 0; i < a->seen_count; i++)
        free(a->seen[i].body);
    a->seen_count = 0;
}

void fake_close(struct fake_rig *r)
{
    weir_client_free(r->client);
    r->client = NULL;
    weir_producer_free(r->producer);
    weir_stats_free(r->engine);
    fake_clear(&r->agent);
    T_EQ_I64(r->heap.live, 0);
}

void fake_poll(struct fake_rig *r)
{
    for (int i = 0; i < 100; i++) {
        if (weir_client_poll(r->client, r->now, r->now) > 0)
            return;
    }
    T_FAIL("the client is never done");
}

void fake_pass(struct fake_rig *r, int64_t for_ns)
{
    r->now += for_ns;
    fake_poll(r);
}

void fake_publish(struct fake_rig *r, const char *resource, size_t n)
{
    const struct weir_source source = {.now_ns = r->now};
    const struct weir_span span = {.service = {"svc", 3},
                                   .name = {"op", 2},
                                   .resource = {resource, strlen(resource)},
                                   .trace_id = 1,
                                   .span_id = 2,
                                   .kind = WEIR_KIND_SERVER,
                                   .start_ns = r->now - 100,
                                   .duration_ns = 100};
    for (size_t i = 0; i < n; i++)
        T_OK(weir_stats_publish(r->producer, &source, &span, 1));
}

void fake_spans(struct fake_rig *r, const char *resource, size_t n)
{
    fake_publish(r, resource, n);
    (void)weir_stats_poll(r->engine, r->now, r->now);
    weir_stats_seal_all(r->engine, r->now, r->now);
}

void fake_trace(struct fake_rig *r, size_t count, uint32_t flags)
{
    struct weir_trace_span spans[16];
    memset(spans, 0, sizeof spans);
    for (size_t i = 0; i < count && i < 16; i++) {
        spans[i].service = weir_str_c("svc");
        spans[i].name = weir_str_c("op");
        spans[i].resource = weir_str_c("res");
        spans[i].trace_id = 1;
        spans[i].span_id = i + 1;
        spans[i].start_ns = r->now;
        spans[i].duration_ns = 5;
    }
    const struct weir_trace trace = {.spans = spans, .span_count = count};
    T_OK(weir_client_add_trace(r->client, &trace, flags));
}

struct weir_client_health fake_health(struct fake_rig *r)
{
    struct weir_client_health h;
    weir_client_get_health(r->client, &h);
    return h;
}

size_t fake_count(const struct fake_rig *r, const char *path)
{
    size_t n = 0;
    for (size_t i = 0; i < r->agent.seen_count; i++)
        n += strcmp(r->agent.seen[i].path, path) == 0;
    return n;
}

const struct fake_seen *fake_nth(const struct fake_rig *r, const char *path, size_t i)
{
    for (size_t k = 0; k < r->agent.seen_count; k++) {
        if (strcmp(r->agent.seen[k].path, path) == 0 && i-- == 0)
            return &r->agent.seen[k];
    }
    T_FAIL("there is no such request of %s", path);
}

const char *fake_header(const struct fake_seen *s, const char *name)
{
    for (size_t i = 0; i < s->header_count; i++) {
        if (strcmp(s->names[i], name) == 0)
            return s->values[i];
    }
    return NULL;
}

bool fake_has(const struct fake_seen *s, const char *want)
{
    const size_t n = strlen(want);
    for (size_t i = 0; i + n <= s->len; i++) {
        if (memcmp(s->body + i, want, n) == 0)
            return true;
    }
    return false;
}
