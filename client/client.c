/* SPDX-License-Identifier: Apache-2.0 */
/* client: see weir/client.h and client.h. Made, freed and asked here. */
#include "client.h"

#include <string.h>

const char *weir_client_drop_name(enum weir_client_drop reason)
{
    static const char *const names[] = {
#define DROP_NAME(name, text) text,
        WEIR_CLIENT_DROP_MAP(DROP_NAME)
#undef DROP_NAME
    };
    _Static_assert(WEIR_CLIENT_DROP_COUNT <= WEIR_CLIENT_DROP_SLOTS, "a slot a reason");
    return (size_t)reason < sizeof names / sizeof *names ? names[reason] : NULL;
}

static void init_fields(struct weir_client *c)
{
    const struct weir_client_opts *const o = &c->opts;
    const struct wr_retry retry = {.first_for_ns = o->retry_first_for_ns,
                                   .max_for_ns = o->retry_max_for_ns,
                                   .random = o->seed};
    c->info_retry = retry;
    c->stats_retry = retry;
    c->trace_retry = retry;
    c->info_retry.random = o->seed * 3 | 1; /* apart from each other */
    c->trace_retry.random = o->seed * 5 | 1;
    c->stats_queue = (struct wr_queue){
        .alloc = &c->alloc, .max_count = o->max_stats_payloads, .max_bytes = o->max_stats_bytes};
    c->trace_queue = (struct wr_queue){
        .alloc = &c->alloc, .max_count = o->max_trace_payloads, .max_bytes = o->max_trace_bytes};
    c->rates.alloc = &c->alloc;
    c->traces.version = WEIR_TRACE_V04;
    c->traces.opened_ns = INT64_MAX;
    atomic_init(&c->version, WEIR_TRACE_V04);
    atomic_init(&c->stats.on, false);
    atomic_init(&c->cut_ns, INT64_MAX);
    c->next_info_ns = INT64_MIN;
    c->last_info_ns = INT64_MIN;
    c->poll_mono_ns = INT64_MIN;
    c->poll_clock_ns = INT64_MAX;
    c->deadline_ns = INT64_MAX;
    wr_client_uuid(c->runtime_id);
}

static int open_spool(struct weir_client *c)
{
    size_t bad = 0;
    size_t count = 0;
    c->spool.max_bytes = c->opts.max_spool_bytes;
    if (!c->spool_path)
        return WEIR_OK;
    int err = wr_spool_open(&c->spool, c->spool_path);
    if (!err)
        err = wr_spool_load(&c->spool, &c->stats_queue, &count, &bad);
    c->health.spool_loaded = count;
    c->health.stats_dropped[WEIR_CLIENT_DROP_SPOOL] += bad;
    return err;
}

static int open_transport(struct weir_client *c)
{
    if (!c->opts.transport)
        return wr_client_curl_new(c, &c->transport);
    c->transport = *c->opts.transport;
    return WEIR_OK;
}

static int build(struct weir_client *c, const struct weir_client_opts *opts)
{
    int err = wr_client_take_options(c, opts);
    if (err)
        return err;
    init_fields(c);
    c->info = wr_client_alloc(&c->alloc, sizeof *c->info);
    c->fork_page = wr_fork_page_new();
    if (!c->info || !c->fork_page)
        return WEIR_ENOMEM;
    c->generation = 1;
    atomic_store(&c->fork_page->value, c->generation);
    err = wr_client_init_locks(c);
    if (err)
        return err;
    c->has_locks = true;
    err = open_spool(c);
    return err ? err : open_transport(c);
}

static void free_parts(struct weir_client *c)
{
    const struct weir_alloc alloc = c->alloc;
    struct wr_item *item;
    while ((item = wr_queue_pop(&c->stats_queue)) != NULL)
        wr_item_free(&c->alloc, item);
    while ((item = wr_queue_pop(&c->trace_queue)) != NULL)
        wr_item_free(&c->alloc, item);
    wr_spool_close(&c->spool);
    if (c->transport.free)
        c->transport.free(c->transport.ctx);
    wr_client_free_traces(c);
    wr_client_free_stats(c);
    if (c->rates.alloc)
        wr_rates_done(&c->rates);
    wr_client_free_options(c);
    wr_client_free(&c->alloc, c->info, sizeof *c->info);
    wr_fork_page_free(c->fork_page);
    if (c->has_locks) {
        (void)pthread_cond_destroy(&c->wake);
        (void)pthread_mutex_destroy(&c->lock);
        (void)pthread_mutex_destroy(&c->stats_lock);
        (void)pthread_mutex_destroy(&c->trace_lock);
    }
    wr_client_free(&alloc, c, sizeof *c);
}

int weir_client_new(const struct weir_client_opts *opts, struct weir_client **ret_client)
{
    const struct weir_alloc none = {.fn = NULL, .ctx = NULL};
    const struct weir_alloc alloc = wr_client_alloc_or_default(opts ? opts->alloc : none);
    struct weir_client *const c = wr_client_alloc(&alloc, sizeof *c);
    if (!c)
        return WEIR_ENOMEM;
    c->alloc = alloc;
    c->spool.alloc = &c->alloc;
    c->spool.folder = -1;
    c->spool.lock_fd = -1;
    const int err = build(c, opts);
    if (err) {
        free_parts(c);
        return err;
    }
    *ret_client = c;
    return WEIR_OK;
}

/* Spool what is left, and count the rest. */
static void give_up(struct weir_client *c)
{
    (void)pthread_mutex_lock(&c->lock);
    wr_client_spool_all(c);
    struct wr_item *item;
    while ((item = wr_queue_pop(&c->stats_queue)) != NULL) {
        if (item->spool_id)
            wr_item_free(&c->alloc, item); /* the next process sends it */
        else
            wr_client_drop(c, item, WEIR_CLIENT_DROP_STOPPED);
    }
    wr_client_drop_all(c, &c->trace_queue, WEIR_CLIENT_DROP_STOPPED);
    (void)pthread_mutex_unlock(&c->lock);
}

void weir_client_free(struct weir_client *client)
{
    if (!client)
        return;
    weir_client_stop(client, client->opts.drain_for_ns);
    wr_client_release_engine(client);
    give_up(client);
    if (client->opts.health) {
        struct weir_client_health health;
        weir_client_get_health(client, &health);
        client->opts.health(client->opts.ctx, &health);
    }
    free_parts(client);
}

void weir_client_discover(struct weir_client *client)
{
    wr_client_enter(client);
    (void)pthread_mutex_lock(&client->lock);
    client->want_info = true;
    wr_client_wake(client);
    (void)pthread_mutex_unlock(&client->lock);
}

void weir_client_get_agent(struct weir_client *client, struct weir_client_agent *ret_agent)
{
    wr_client_enter(client);
    (void)pthread_mutex_lock(&client->lock);
    *ret_agent = client->agent;
    (void)pthread_mutex_unlock(&client->lock);
}

void weir_client_get_health(struct weir_client *client, struct weir_client_health *ret_health)
{
    wr_client_enter(client);
    (void)pthread_mutex_lock(&client->lock);
    struct weir_client_health *const h = &client->health;
    h->stats_on = atomic_load(&client->stats.on);
    h->queued_stats = client->stats_queue.count + client->stats_queue.stored;
    h->queued_stats_bytes = client->stats_queue.bytes;
    h->queued_traces = client->trace_queue.count;
    h->queued_trace_bytes = client->trace_queue.bytes;
    h->spool_bytes = client->spool.bytes;
    *ret_health = *h;
    (void)pthread_mutex_unlock(&client->lock);
}

void weir_client_get_runtime_id(struct weir_client *client, char ret_id[WEIR_CLIENT_RUNTIME_ID])
{
    wr_client_enter(client);
    memcpy(ret_id, client->runtime_id, WEIR_CLIENT_RUNTIME_ID);
}
