/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stats: from the engine's sealed batches to bodies in the queue, and the engine's on and off.
 *
 * Off: hosts see it at once, and a CLEAR throws away what the engine has open: its spans went with
 * traces that the agent counts itself. On: a CLEAR first, and hosts see it when that is done, so
 * that nothing published in between is sent.
 *
 * Threads: batches from any, one at a time (stats_lock); the rest the owner.
 */
#include "client.h"

#include <string.h>

enum { IDENTITY_TEXTS = 7, IDENTITY_MAX_BYTES = 4096 };
enum { PEER_TAGS_SURE = 40 }; /* an engine with six dimensions has room for them */

/* Copy the texts of identity to ours. */
static int take_identity(struct weir_client *c, const struct weir_payload_opts *identity)
{
    struct wr_client_stats *const s = &c->stats;
    if (identity) {
        if (identity->struct_size < offsetof(struct weir_payload_opts, runtime_id) ||
            identity->struct_size > IDENTITY_MAX_BYTES)
            return WEIR_EINVAL;
        memcpy(&s->identity, identity,
               identity->struct_size < sizeof s->identity ? identity->struct_size
                                                          : sizeof s->identity);
    }
    s->identity.struct_size = sizeof s->identity;
    struct weir_bytes *const texts[IDENTITY_TEXTS] = {
        &s->identity.runtime_id,    &s->identity.hostname, &s->identity.service,
        &s->identity.env,           &s->identity.version,  &s->identity.process_tags,
        &s->identity.git_commit_sha};
    if (s->identity.runtime_id.len >= sizeof c->runtime_id)
        return WEIR_EINVAL;
    for (size_t i = 0; i < IDENTITY_TEXTS; i++) {
        s->texts[i] = wr_client_copy(&c->alloc, *texts[i]);
        if (!s->texts[i])
            return WEIR_ENOMEM;
        texts[i]->ptr = s->texts[i];
    }
    return WEIR_OK;
}

static void free_identity(struct weir_client *c)
{
    struct wr_client_stats *const s = &c->stats;
    const size_t lens[IDENTITY_TEXTS] = {
        s->identity.runtime_id.len,    s->identity.hostname.len, s->identity.service.len,
        s->identity.env.len,           s->identity.version.len,  s->identity.process_tags.len,
        s->identity.git_commit_sha.len};
    for (size_t i = 0; i < IDENTITY_TEXTS; i++)
        wr_client_free(&c->alloc, s->texts[i], lens[i] + 1);
    memset(s->texts, 0, sizeof s->texts);
    memset(&s->identity, 0, sizeof s->identity);
}

/* From here on bodies have the id by which they are known everywhere. */
static void settle_runtime_id(struct weir_client *c)
{
    struct wr_client_stats *const s = &c->stats;
    if (s->identity.runtime_id.len) {
        memcpy(c->runtime_id, s->texts[0], s->identity.runtime_id.len + 1);
    } else {
        wr_client_free(&c->alloc, s->texts[0], 1);
        s->texts[0] = NULL;
        s->identity.runtime_id =
            (struct weir_bytes){.ptr = c->runtime_id, .len = strlen(c->runtime_id)};
    }
}

int weir_client_attach_stats(struct weir_client *client, struct weir_stats *stats,
                             const struct weir_payload_opts *identity)
{
    wr_client_enter(client);
    struct wr_client_stats *const s = &client->stats;
    if (!stats)
        return WEIR_EINVAL;
    if (s->engine)
        return WEIR_EBUSY;
    int err = take_identity(client, identity);
    if (!err) {
        settle_runtime_id(client);
        err = weir_payload_new(stats, &s->identity, &s->payload);
    }
    if (err) {
        free_identity(client);
        return err;
    }
    s->sequence = s->identity.sequence;
    s->engine = stats;
    if (client->opts.flags & WEIR_CLIENT_OPTIMISTIC) {
        s->wanted = true;
        atomic_store(&s->on, true);
    }
    return WEIR_OK;
}

void wr_client_free_stats(struct weir_client *c)
{
    weir_payload_free(c->stats.payload);
    c->stats.payload = NULL;
    free_identity(c);
}

bool weir_client_stats_on(struct weir_client *client)
{
    wr_client_enter(client);
    return atomic_load(&client->stats.on);
}

/* On and off */

/* On the engine's owner. */
static void on_cleared(struct weir_signal_node *node)
{
    struct weir_client *const c = node->ctx;
    (void)pthread_mutex_lock(&c->lock);
    c->stats.clear_pending = false;
    if (c->stats.wanted) {
        atomic_store(&c->stats.on, true);
        c->health.upgrades++;
    }
    (void)pthread_mutex_unlock(&c->lock);
}

void wr_client_set_stats(struct weir_client *c, bool on)
{
    struct wr_client_stats *const s = &c->stats;
    if (!s->engine)
        return;
    (void)pthread_mutex_lock(&c->lock);
    const bool changed = on != s->wanted;
    s->wanted = on;
    if (changed && !on && atomic_load(&s->on)) {
        atomic_store(&s->on, false);
        c->health.downgrades++;
    }
    const bool clear = changed && !s->clear_pending;
    if (clear)
        s->clear_pending = true;
    (void)pthread_mutex_unlock(&c->lock);
    if (!clear)
        return;
    s->clear = (struct weir_signal_node){.kind = WEIR_SIGNAL_CLEAR, .done = on_cleared, .ctx = c};
    weir_stats_signal(s->engine, &s->clear);
}

bool wr_client_set_peer_tags(struct weir_client *c, const char *const *names, size_t count)
{
    if (!c->stats.engine)
        return true;
    int err = weir_stats_set_peer_tags(c->stats.engine, names, count);
    if (err == WEIR_EFULL && count > PEER_TAGS_SURE)
        err = weir_stats_set_peer_tags(c->stats.engine, names, PEER_TAGS_SURE);
    if (!err)
        return true;
    (void)pthread_mutex_lock(&c->lock);
    c->health.peer_tags_refused++;
    (void)pthread_mutex_unlock(&c->lock);
    return err != WEIR_EBUSY && err != WEIR_ENOMEM;
}

/* Batches */

static void drop_batch(struct weir_client *c, enum weir_client_drop reason)
{
    (void)pthread_mutex_lock(&c->lock);
    c->health.stats_dropped[reason]++;
    (void)pthread_mutex_unlock(&c->lock);
}

static void write_key(const struct weir_client *c, uint64_t sequence, char dst[WR_KEY_BYTES])
{
    const size_t n = strlen(c->runtime_id);
    memcpy(dst, c->runtime_id, n);
    dst[n] = '-';
    (void)wr_decimal(sequence, dst + n + 1);
}

/* stats_lock is held. EEMPTY: there is nothing to send. */
static int encode(struct weir_client *c, const struct weir_batch *batch, int64_t now_ns,
                  struct wr_item **ret_item)
{
    struct wr_client_stats *const s = &c->stats;
    struct weir_bytes body;
    int err = s->payload ? WEIR_OK : weir_payload_new(s->engine, &s->identity, &s->payload);
    if (!err)
        err = weir_payload_encode(s->payload, batch, now_ns, &body);
    if (err)
        return err;
    const uint64_t sequence = s->sequence++;
    struct wr_item *const item = wr_item_new(&c->alloc, body);
    if (!item)
        return WEIR_ENOMEM;
    write_key(c, sequence, item->key);
    *ret_item = item;
    return WEIR_OK;
}

int weir_client_add_batch(struct weir_client *client, struct weir_batch *batch, int64_t now_ns)
{
    wr_client_enter(client);
    struct wr_client_stats *const s = &client->stats;
    struct weir_batch_info info;
    struct wr_item *item = NULL;
    if (!s->engine || !batch) {
        weir_batch_release(batch);
        return WEIR_EINVAL;
    }
    weir_batch_get_info(batch, &info);
    int err = WEIR_EEMPTY;
    if (info.rows > 0 && !atomic_load(&s->on)) {
        drop_batch(client, WEIR_CLIENT_DROP_OFF);
    } else if (info.rows > 0) {
        (void)pthread_mutex_lock(&client->stats_lock);
        err = encode(client, batch, now_ns, &item);
        (void)pthread_mutex_unlock(&client->stats_lock);
    }
    weir_batch_release(batch);
    if (err == WEIR_EEMPTY)
        return WEIR_OK;
    if (err) {
        drop_batch(client,
                   err == WEIR_EFULL ? WEIR_CLIENT_DROP_TOO_LARGE : WEIR_CLIENT_DROP_MEMORY);
        return err;
    }
    return wr_client_queue(client, item);
}

/* The engine, when it is ours to run */

static void on_batch(void *ctx, struct weir_batch *batch)
{
    struct weir_client *const c = ctx;
    int64_t wall_ns;
    int64_t mono_ns;
    c->opts.clock(c->opts.clock_ctx, &wall_ns, &mono_ns);
    WR_IGNORE(weir_client_add_batch(c, batch, wall_ns)); /* counted */
}

static void on_health(void *ctx, const struct weir_stats_health *health)
{
    struct weir_client *const c = ctx;
    if (c->opts.stats_health)
        c->opts.stats_health(c->opts.ctx, health);
}

static bool is_ours(const struct weir_client *c)
{
    return c->stats.engine && !(c->opts.flags & WEIR_CLIENT_HOST_ENGINE);
}

int wr_client_start_engine(struct weir_client *c)
{
    if (!is_ours(c))
        return WEIR_OK;
    const struct weir_stats_start_opts start = {.struct_size = sizeof start,
                                                .ctx = c,
                                                .batch = on_batch,
                                                .health = on_health,
                                                .clock = c->opts.clock,
                                                .clock_ctx = c->opts.clock_ctx};
    const int err = weir_stats_start(c->stats.engine, &start);
    c->stats.started = err == WEIR_OK;
    return err;
}

static void take_batches(struct weir_client *c, int64_t wall_ns)
{
    struct weir_batch *batch;
    while ((batch = weir_stats_take_batch(c->stats.engine)) != NULL)
        WR_IGNORE(weir_client_add_batch(c, batch, wall_ns)); /* counted */
}

void wr_client_poll_engine(struct weir_client *c, int64_t wall_ns, int64_t mono_ns)
{
    (void)weir_stats_poll(c->stats.engine, wall_ns, mono_ns);
    take_batches(c, wall_ns);
}

void wr_client_seal_engine(struct weir_client *c)
{
    if (!is_ours(c))
        return;
    if (c->stats.started) {
        weir_stats_stop(c->stats.engine);
        c->stats.started = false;
        return;
    }
    int64_t wall_ns = c->poll_wall_ns;
    int64_t mono_ns = c->poll_mono_ns;
    if (mono_ns == INT64_MIN) /* it was never polled */
        c->opts.clock(c->opts.clock_ctx, &wall_ns, &mono_ns);
    weir_stats_seal_all(c->stats.engine, wall_ns, mono_ns);
    take_batches(c, wall_ns);
}

void wr_client_release_engine(struct weir_client *c)
{
    (void)pthread_mutex_lock(&c->lock);
    c->stats.wanted = false;
    const bool pending = c->stats.clear_pending;
    (void)pthread_mutex_unlock(&c->lock);
    /* Where no thread runs the engine, nobody is inside now: its owner is whoever frees. */
    if (pending && weir_stats_flush(c->stats.engine) == WEIR_EINVAL) {
        int64_t wall_ns;
        int64_t mono_ns;
        c->opts.clock(c->opts.clock_ctx, &wall_ns, &mono_ns);
        (void)weir_stats_poll(c->stats.engine, wall_ns, mono_ns);
    }
}
