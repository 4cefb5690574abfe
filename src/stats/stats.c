/* SPDX-License-Identifier: Apache-2.0 */
/* stats: life of an instance, and its health. The rest is the shard's and the producers'. */
#include "stats/stats.h"

#include "base/hash.h"
#include "stats/key.h"

enum {
    WINDOW_DEFAULT_S = 10,
    LATENESS_DEFAULT_S = 20,
    KEYS_DEFAULT = 100000,
    CORRECTIONS_DEFAULT = 512,
    IDLE_DEFAULT = 6,
    CLIENT_KEYS_DEFAULT = 2048, /* contracts: span-stats §1.5 */
    IDENTITIES_DEFAULT = 65536
};
static const int64_t second_ns = INT64_C(1000000000);
static const int64_t lateness_max_ns = INT64_C(7) * 24 * 3600 * 1000000000;

const char *weir_limit_name(enum weir_limit limit)
{
    static const char *const names[] = {
#define LIMIT_NAME(name, text) [WEIR_LIMIT_##name] = (text),
        WEIR_LIMIT_MAP(LIMIT_NAME)
#undef LIMIT_NAME
    };
    return (unsigned)limit < WEIR_LIMIT_COUNT ? names[limit] : "unknown";
}

/* Contracts: span-stats §1.5: the reference's, for a client. */
static int take_limits(struct weir_stats_opts *o)
{
    static const uint32_t client[WEIR_LIMIT_COUNT] = {
        [WEIR_LIMIT_RESOURCE] = 1024,  [WEIR_LIMIT_SERVICE] = 32,
        [WEIR_LIMIT_OPERATION] = 64,   [WEIR_LIMIT_SERVICE_SOURCE] = 16,
        [WEIR_LIMIT_TYPE] = 16,        [WEIR_LIMIT_KIND] = 8,
        [WEIR_LIMIT_HTTP_METHOD] = 16, [WEIR_LIMIT_HTTP_ENDPOINT] = 512,
        [WEIR_LIMIT_GRPC_STATUS] = 24, [WEIR_LIMIT_PEER_TAGS] = 512,
        [WEIR_LIMIT_ADDITIONAL] = 100,
    };
    for (size_t i = 0; i < WEIR_LIMIT_SLOTS; i++) {
        uint32_t *const l = &o->limits[i];
        if (*l == 0)
            *l = o->profile == WEIR_PROFILE_CLIENT && i < WEIR_LIMIT_COUNT ? client[i]
                                                                           : WEIR_LIMIT_OFF;
        else if (*l != WEIR_LIMIT_OFF && (*l > WEIR_LIMIT_MAX || i >= WEIR_LIMIT_COUNT))
            return WEIR_EINVAL;
    }
    return WEIR_OK;
}

/* Of the caller's struct what it knows; the rest are defaults. */
static int take_opts(const struct weir_stats_opts *from, struct weir_stats_opts *ret_opts)
{
    struct weir_stats_opts o = {0};
    if (from) {
        if (from->struct_size < sizeof from->struct_size || from->struct_size > 4096)
            return WEIR_EINVAL;
        memcpy(&o, from, from->struct_size < sizeof o ? from->struct_size : sizeof o);
    }
    if (o.window_for_ns == 0)
        o.window_for_ns = WINDOW_DEFAULT_S * second_ns;
    const bool client = o.profile == WEIR_PROFILE_CLIENT;
    if (o.lateness_for_ns == 0 && (!client || (o.flags & WEIR_STATS_ALIGN)))
        o.lateness_for_ns = LATENESS_DEFAULT_S * second_ns;
    if (o.lateness_for_ns == -1)
        o.lateness_for_ns = 0;
    if (o.max_keys == 0)
        o.max_keys = client ? CLIENT_KEYS_DEFAULT : KEYS_DEFAULT;
    if (o.max_corrections == 0)
        o.max_corrections = CORRECTIONS_DEFAULT;
    if (o.idle_windows == 0)
        o.idle_windows = IDLE_DEFAULT;
    if (o.max_identities == 0)
        o.max_identities = IDENTITIES_DEFAULT;
    if (o.window_for_ns < second_ns || o.window_for_ns > 24 * 3600 * second_ns ||
        o.lateness_for_ns < 0 || o.lateness_for_ns > lateness_max_ns ||
        o.profile > WEIR_PROFILE_CLIENT || o.late > WEIR_LATE_CORRECT || o.cap > WEIR_CAP_DROP ||
        o.flags >= WEIR_STATS_UNWEIGHTED_SKETCHES << 1 || take_limits(&o) != WEIR_OK)
        return WEIR_EINVAL;
    const int64_t over = o.lateness_for_ns % o.window_for_ns;
    if (over)
        o.lateness_for_ns += o.window_for_ns - over;
    *ret_opts = o;
    return WEIR_OK;
}

static int shard_init(struct weir_stats *st, const struct weir_stats_opts *o)
{
    char key[WR_KEY_OVERFLOW_MAX];
    const size_t key_bytes = wr_key_overflow(&st->schema, key, sizeof key);
    const struct wr_shard_opts shard = {
        .alloc = st->alloc,
        .window_for_ns = o->window_for_ns,
        .lateness_for_ns = o->lateness_for_ns,
        .late = (enum weir_late)o->late,
        .cap = (enum weir_cap)o->cap,
        .max_keys = o->max_keys,
        .max_corrections = o->max_corrections,
        .idle_windows = o->idle_windows,
        .number = o->shard,
        .overflow_key = key, /* copied by the shard before this returns */
        .overflow_key_bytes = key_bytes,
        .overflow_hash = wr_hash_key(key, key_bytes, st->seed),
        .labels = wr_schemas_labels,
        .labels_ctx = &st->schemas,
        .admit = st->limits.limited ? wr_limits_admit : NULL,
        .cycle = st->limits.limited ? wr_limits_cycle : NULL,
        .admit_ctx = &st->limits,
        .mapping = o->mapping,
        .max_bins = o->max_bins,
        .unweighted = o->flags & WEIR_STATS_UNWEIGHTED_SKETCHES,
    };
    const int r = wr_shard_init(&st->shard, &shard);
    st->shard.opts.overflow_key = NULL;
    st->shard.generation = st->generation;
    return r;
}

int wr_stats_restart_shard(struct weir_stats *st, uint64_t generation)
{
    /* As the shard's own state: forgotten. */
    st->limits = (struct wr_limits){0};
    int r = wr_limits_init(&st->limits, &st->schemas, st->limit_opts, st->seed);
    if (r != WEIR_OK)
        return r;
    char key[WR_KEY_OVERFLOW_MAX];
    (void)wr_key_overflow(&st->schema, key, sizeof key);
    struct wr_shard_opts shard = st->shard.opts;
    shard.overflow_key = key;
    r = wr_shard_restart(&st->shard, &shard, generation);
    if (r != WEIR_OK)
        wr_limits_done(&st->limits);
    return r;
}

/* All but the shard, which refers to them; those not made yet are nothing. */
static void parts_done(struct weir_stats *st)
{
    wr_limits_done(&st->limits);
    wr_ignored_done(&st->ignored);
    wr_schemas_done(&st->schemas);
    wr_schema_done(&st->schema);
    wr_fork_word_free(st->fork_word);
}

/* What a failure leaves is undone by parts_done. */
static int stats_init(struct weir_stats *st, const struct weir_stats_opts *o)
{
    st->fork_word = wr_fork_word_new();
    if (!st->fork_word)
        return WEIR_ENOMEM;
    st->generation = 1;
    atomic_store_explicit(&st->fork_word->value, st->generation, memory_order_release);
    int r = wr_schema_init(&st->schema, o);
    if (r == WEIR_OK)
        r = wr_schemas_init(&st->schemas, &st->schema, o);
    if (r == WEIR_OK)
        r = wr_ignored_init(&st->ignored, &st->alloc, o->ignored_resources,
                            o->ignored_resource_count);
    if (r == WEIR_OK)
        r = wr_limits_init(&st->limits, &st->schemas, o->limits, o->seed);
    if (r == WEIR_OK)
        r = shard_init(st, o);
    return r;
}

int weir_stats_new(const struct weir_stats_opts *opts, struct weir_stats **ret_stats)
{
    struct weir_stats_opts o;
    int r = take_opts(opts, &o);
    if (r != WEIR_OK)
        return r;
    const struct weir_alloc alloc = wr_alloc_or_default(&o.alloc);
    void *block;
    size_t block_bytes;
    struct weir_stats *const st = wr_alloc_aligned64(&alloc, sizeof *st, &block, &block_bytes);
    if (!st)
        return WEIR_ENOMEM;
    memset(st, 0, sizeof *st);
    st->alloc = alloc;
    st->block = block;
    st->block_bytes = block_bytes;
    st->profile = (enum weir_profile)o.profile;
    st->seed = o.seed;
    st->max_identities = o.max_identities;
    st->max_bins = o.max_bins;
    memcpy(st->limit_opts, o.limits, sizeof st->limit_opts);
    r = stats_init(st, &o);
    if (r != WEIR_OK) {
        parts_done(st);
        wr_free(&alloc, block, block_bytes);
        return r;
    }
    st->mapping = weir_mapping_ref(o.mapping);
    wr_thread_producers_init(st);
    *ret_stats = st;
    return WEIR_OK;
}

void weir_stats_free(struct weir_stats *stats)
{
    if (!stats)
        return;
    weir_stats_stop(stats);
    wr_thread_producers_done(stats);
    if (stats->shard.generation == stats->generation) {
        wr_shard_done(&stats->shard);
    } else { /* a child that never had an owner: its parent's state is not touched */
        wr_inbox_done(&stats->shard.inbox);
        stats->limits = (struct wr_limits){0};
    }
    wr_identities_done(stats);
    parts_done(stats);
    weir_mapping_unref(stats->mapping);
    const struct weir_alloc alloc = stats->alloc;
    wr_free(&alloc, stats->block, stats->block_bytes);
}

const struct weir_tags *weir_stats_tags(const struct weir_stats *stats)
{
    return stats->schema.tags;
}

size_t weir_stats_poll(struct weir_stats *stats, int64_t wall_ns, int64_t mono_ns)
{
    if (!wr_stats_owner_ready(stats))
        return 0;
    wr_thread_producers_sweep(stats);
    /* What was freed was last published by before that, so its records are drained here. */
    struct wr_listed *const dead = wr_identities_collect(stats);
    struct wr_idle_schemas idle;
    wr_schemas_find_idle(&stats->schemas, &idle);
    const size_t count = wr_shard_poll(&stats->shard, wall_ns, mono_ns);
    wr_identities_release(stats, dead);
    wr_stats_free_schemas(stats, &idle);
    return count;
}

/* false in a forked child that has not polled yet: the shard is the parent's. */
static bool is_own(const struct weir_stats *st)
{
    return st->shard.generation ==
           atomic_load_explicit(&st->fork_word->value, memory_order_acquire);
}

int64_t weir_stats_next_seal_for_ns(const struct weir_stats *stats, int64_t mono_ns)
{
    return is_own(stats) ? wr_shard_next_seal_for_ns(&stats->shard, mono_ns) : 0;
}

struct weir_batch *weir_stats_take_batch(struct weir_stats *stats)
{
    return wr_stats_owner_ready(stats) ? wr_shard_take_batch(&stats->shard) : NULL;
}

void weir_stats_seal_all(struct weir_stats *stats, int64_t wall_ns, int64_t mono_ns)
{
    if (wr_stats_owner_ready(stats))
        wr_shard_seal_all(&stats->shard, wall_ns, mono_ns);
}

size_t weir_stats_snapshot(struct weir_stats *stats, struct weir_batch **batches, size_t cap)
{
    return wr_stats_owner_ready(stats) ? wr_shard_snapshot(&stats->shard, batches, cap) : 0;
}

void weir_stats_signal(struct weir_stats *stats, struct weir_signal_node *node)
{
    (void)wr_stats_generation(stats);
    wr_inbox_push_signal(&stats->shard.inbox, node);
}

static void add_window(struct weir_stats_health *h, const struct weir_window_counts *c)
{
    h->aggregated += c->aggregated;
    h->ineligible += c->ineligible;
    h->partial += c->partial;
    for (size_t i = 0; i < WEIR_DROP_COUNT; i++)
        h->dropped[i] += c->dropped[i];
    h->late += c->late;
    h->future += c->future;
    h->overflow += c->overflow;
}

static void add_producer(struct weir_stats_health *h, const struct wr_producer_counts *c)
{
    h->received += atomic_load_explicit(&c->received, memory_order_relaxed);
    h->negative_duration += atomic_load_explicit(&c->negative_duration, memory_order_relaxed);
    h->time_missing += atomic_load_explicit(&c->time_missing, memory_order_relaxed);
    h->before_2000 += atomic_load_explicit(&c->before_2000, memory_order_relaxed);
    h->utf8_repaired += atomic_load_explicit(&c->utf8_repaired, memory_order_relaxed);
    h->truncated += atomic_load_explicit(&c->truncated, memory_order_relaxed);
    h->weight_capped += atomic_load_explicit(&c->weight_capped, memory_order_relaxed);
    h->duplicate_ids += atomic_load_explicit(&c->duplicate_ids, memory_order_relaxed);
    h->bad_status += atomic_load_explicit(&c->bad_status, memory_order_relaxed);
    h->bad_rate += atomic_load_explicit(&c->bad_rate, memory_order_relaxed);
    h->oversized += atomic_load_explicit(&c->oversized, memory_order_relaxed);
    h->traces_in += atomic_load_explicit(&c->traces_in, memory_order_relaxed);
    h->spans_in += atomic_load_explicit(&c->spans_in, memory_order_relaxed);
    h->dropped_p0_traces += atomic_load_explicit(&c->dropped_p0_traces, memory_order_relaxed);
    h->dropped_p0_spans += atomic_load_explicit(&c->dropped_p0_spans, memory_order_relaxed);
}

void weir_stats_get_health(const struct weir_stats *stats, struct weir_stats_health *ret_health)
{
    const struct wr_shard *const s = &stats->shard;
    struct weir_stats_health h = {0};
    if (!is_own(stats)) {
        *ret_health = h;
        return;
    }
    add_window(&h, &s->totals.sum);
    for (size_t i = 0; i < s->open.count; i++)
        add_window(&h, &s->open.at[i]->counts);
    for (size_t i = 0; i < s->corrections.count; i++)
        add_window(&h, &s->corrections.at[i]->counts);
    add_producer(&h, &s->inbox.gone);
    for (size_t i = 0; i < WR_RINGS_MAX; i++) {
        const struct wr_ring *const ring =
            atomic_load_explicit(&s->inbox.rings[i], memory_order_acquire);
        if (!ring)
            continue;
        add_producer(&h, &ring->counts);
        /* Not booked in a window yet: the owner has not polled, or had no memory for a window. */
        h.dropped[WEIR_DROP_INBOX_FULL] +=
            atomic_load_explicit(&ring->counts.inbox_full, memory_order_relaxed) - ring->full_seen;
        h.inbox_bytes += wr_ring_waiting_bytes(ring);
    }
    h.clock_steps = s->totals.clock_steps;
    h.snapshot_failed = s->totals.snapshot_failed;
    h.sealed_batches = s->totals.sealed_batches;
    h.expunged = s->totals.expunged;
    h.keys = s->table.size;
    h.max_keys = s->table.max;
    h.open_windows = s->open.count + s->corrections.count;
    h.table_bytes = s->table.bytes;
    h.dimensions_ignored = stats->schema.ignored;
    memcpy(h.collapsed, stats->limits.collapsed, sizeof h.collapsed);
    memcpy(h.limits, stats->limits.limits, sizeof h.limits);
    for (size_t i = 0; i < WEIR_LIMIT_COUNT; i++)
        h.folded[i] = stats->limits.folded[i] ? wr_folded_distinct(stats->limits.folded[i]) : 0;
    h.displaced = s->totals.displaced;
    h.newcomers = s->newcomers ? wr_newcomers_distinct(s->newcomers) : 0;
    h.pool_sketches = weir_sketch_pool_spares(s->pool);
    *ret_health = h;
}

_Static_assert(WEIR_NEWCOMERS_TOP == WR_TOP_MAX, "what is kept is what is told");
size_t weir_stats_get_newcomer(const struct weir_stats *stats, size_t rank, uint64_t *ret_hits,
                               struct weir_label *labels, size_t cap)
{
    const struct wr_shard *const s = &stats->shard;
    if (!is_own(stats) || !s->newcomers)
        return 0;
    const struct wr_top *const t = wr_newcomers_top(s->newcomers, rank);
    if (!t)
        return 0;
    *ret_hits = t->weight;
    return wr_schemas_labels(&stats->schemas, t->key, t->key_bytes, labels, cap);
}

bool weir_stats_get_folded(const struct weir_stats *stats, enum weir_limit limit, size_t rank,
                           struct weir_folded *ret_folded)
{
    if (!is_own(stats) || (unsigned)limit >= WEIR_LIMIT_COUNT || rank >= WEIR_FOLDED_TOP)
        return false;
    const struct wr_folded_values *const v = stats->limits.folded[limit];
    const struct wr_folded_value *const f = v ? wr_folded_top(v, rank) : NULL;
    if (!f)
        return false;
    const struct wr_schema *const schema =
        atomic_load_explicit(&stats->schemas.at[f->epoch], memory_order_acquire);
    const bool named = f->field < WR_FIELDS_MAX && schema;
    *ret_folded = (struct weir_folded){
        .name = named ? (struct weir_bytes){.ptr = schema->names[f->field],
                                            .len = schema->name_bytes[f->field]}
                      : (struct weir_bytes){0},
        .value = {.ptr = f->text, .len = f->bytes},
        .hits_at_least = f->count - f->over,
        .hits_at_most = f->count};
    return true;
}
