/* SPDX-License-Identifier: Apache-2.0 */
/* Every function of the client that asks for memory, with each of its requests refused in turn. */
#include "fake.h"

#include <unistd.h>

enum step { STEP_NEW, STEP_ATTACH, STEP_BATCH, STEP_TRACE, STEP_PAYLOAD, STEP_STEPS };

struct body_ctx {
    struct fake_rig *rig;
    enum step step;
};

static int run_step(struct fake_rig *r, enum step step)
{
    if (step == STEP_PAYLOAD)
        return weir_client_add_payload(r->client, WEIR_TRACE_V04, (struct weir_bytes){"\x90", 1}, 1,
                                       1, 0);
    if (step == STEP_TRACE) {
        const struct weir_trace_span span = {
            .service = weir_str_c("s"), .trace_id = 1, .span_id = 1};
        const struct weir_trace trace = {.spans = &span, .span_count = 1};
        return weir_client_add_trace(r->client, &trace, WEIR_CLIENT_KEEP);
    }
    const struct weir_payload_opts identity = {.struct_size = sizeof identity,
                                               .service = {"svc", 3}};
    const int err = weir_client_attach_stats(r->client, r->engine, &identity);
    if (err || step != STEP_BATCH)
        return err;
    fake_spans(r, "a", 1);
    struct weir_batch *const batch = weir_stats_take_batch(r->engine);
    return weir_client_add_batch(r->client, batch, r->now);
}

/* The client's memory is refused; the engine has its own. */
static int body(const struct weir_alloc *alloc, void *ctx)
{
    const struct body_ctx *const b = ctx;
    struct fake_rig *const r = b->rig;
    fake_init(r);
    r->opts.alloc = *alloc;
    r->opts.flags = WEIR_CLIENT_OPTIMISTIC | WEIR_CLIENT_HOST_ENGINE;
    r->opts.lang = (struct weir_bytes){"c", 1};
    const struct weir_stats_opts o = {.struct_size = sizeof o, .profile = WEIR_PROFILE_CLIENT};
    T_OK(weir_stats_new(&o, &r->engine));
    T_OK(weir_producer_new(r->engine, 0, 0, &r->producer));
    r->client = NULL;
    int err = weir_client_new(&r->opts, &r->client);
    if (!err && b->step != STEP_NEW)
        err = run_step(r, b->step);
    /* What goes on must not fall over it either: it is counted or tried again. */
    for (int i = 0; i < 3 && r->client; i++) {
        r->now += FAKE_S;
        weir_client_flush(r->client);
        (void)weir_client_poll(r->client, r->now, r->now);
    }
    if (r->client)
        weir_client_stop(r->client, 1);
    weir_client_free(r->client);
    weir_producer_free(r->producer);
    weir_stats_free(r->engine);
    fake_clear(&r->agent);
    return err;
}

TEST(memory_that_is_refused_is_said_and_nothing_leaks)
{
    static struct fake_rig r;
    for (int step = STEP_NEW; step < STEP_STEPS; step++) {
        struct body_ctx ctx = {.rig = &r, .step = (enum step)step};
        t_each_oom(body, &ctx);
    }
}

static int default_transport(const struct weir_alloc *alloc, void *ctx)
{
    const struct weir_client_opts o = {.struct_size = sizeof o,
                                       .alloc = *alloc,
                                       .url = "http://127.0.0.1:9",
                                       .spool = ctx,
                                       .drain_for_ns = -1};
    struct weir_client *c = NULL;
    int err = weir_client_new(&o, &c);
    if (!err)
        err = weir_client_start(c);
    weir_client_free(c);
    return err;
}

TEST(so_it_is_with_libcurl_and_a_spool)
{
    char path[] = "/tmp/weir-oom-XXXXXX";
    char lock[64];
    T_TRUE(mkdtemp(path) != NULL);
    t_each_oom(default_transport, path);
    (void)snprintf(lock, sizeof lock, "%s/lock", path);
    T_EQ_I64(unlink(lock), 0);
    T_EQ_I64(rmdir(path), 0);
}
