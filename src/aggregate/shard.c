/* SPDX-License-Identifier: Apache-2.0 */
/* shard: see shard.h: time, signals, polling, life. Booking is in drain.c, batches in seal.c. */
#include "aggregate/window.h"

enum { RESERVE_ROWS = 128, RESERVE_KEY_BYTES = 32768 }; /* in most cases; one row at least */

/* For want of memory windows may stay: then every poll tries again, not only one that turns. */
static void seal_due(struct wr_shard *s)
{
    const int64_t before_ns = wr_window_oldest_open(s);
    wr_shard_seal_list(s, &s->corrections, INT64_MAX, 0);
    wr_shard_seal_list(s, &s->open, before_ns, 0);
    s->overdue =
        s->corrections.count > 0 || (s->open.count > 0 && s->open.at[0]->start_ns < before_ns);
}

static void sweep(struct wr_shard *s)
{
    const int64_t keep = (int64_t)s->opts.idle_windows * s->opts.window_for_ns;
    s->totals.expunged += wr_table_expunge(&s->table, wr_sat_sub_i64(s->current_start_ns, keep));
    weir_sketch_pool_trim(s->pool);
}

static void set_current(struct wr_shard *s, int64_t now_ns)
{
    s->now_ns = now_ns;
    s->current_start_ns = wr_window_align(s, now_ns);
    s->current = NULL;
}

/* Take the time in. true when the current window has changed. */
static bool take_time(struct wr_shard *s, int64_t wall_ns, int64_t mono_ns)
{
    const int64_t offset = wr_sat_sub_i64(wall_ns, mono_ns);
    if (!s->started) {
        s->started = true;
        s->wall_minus_mono_ns = offset;
        set_current(s, wall_ns);
        return false;
    }
    const int64_t step = wr_sat_sub_i64(offset, s->wall_minus_mono_ns);
    s->wall_minus_mono_ns = offset;
    if (step > s->opts.window_for_ns || step < -s->opts.window_for_ns) {
        /* What is in the inbox belongs to the time before the step as much as to the one after. */
        s->totals.clock_steps++;
        (void)wr_shard_drain(s);
        wr_shard_seal_everything(s, WEIR_BATCH_EARLY);
        set_current(s, wall_ns);
        return true;
    }
    if (wall_ns <= s->now_ns)
        return false; /* a small step back: windows do not reopen */
    const int64_t was = s->current_start_ns;
    s->now_ns = wall_ns;
    if (wr_window_align(s, wall_ns) == was)
        return false;
    set_current(s, wall_ns);
    return true;
}

/* Limits on values begin anew. */
static void cycle(struct wr_shard *s)
{
    if (s->opts.cycle)
        s->opts.cycle(s->opts.admit_ctx);
}

static void report(struct wr_shard *s)
{
    wr_shard_seal_everything(s, WEIR_BATCH_EARLY);
    cycle(s);
}

static void handle_signals(struct wr_shard *s)
{
    struct weir_signal_node *node = wr_inbox_take_signals(&s->inbox);
    if (!node)
        return;
    /* Everything committed before the signals is visible now (inbox.h): it comes first. */
    (void)wr_shard_drain(s);
    while (node) {
        struct weir_signal_node *const next = node->next; /* done may reuse the node */
        switch (node->kind) {
        case WEIR_SIGNAL_REPORT:
            report(s);
            break;
        case WEIR_SIGNAL_CLEAR:
            wr_shard_clear(s);
            break;
        case WEIR_SIGNAL_STOP:
            report(s);
            s->stopped = true;
            break;
        }
        if (node->done)
            node->done(node);
        node = next;
    }
}

size_t wr_shard_poll(struct wr_shard *s, int64_t wall_ns, int64_t mono_ns)
{
    wr_batch_reap(s);
    const bool turned = take_time(s, wall_ns, mono_ns);
    if (turned)
        cycle(s);
    const size_t count = wr_shard_drain(s);
    handle_signals(s);
    if (turned || s->overdue) {
        seal_due(s);
        sweep(s);
    }
    return count;
}

void wr_shard_seal_all(struct wr_shard *s, int64_t wall_ns, int64_t mono_ns)
{
    (void)wr_shard_poll(s, wall_ns, mono_ns);
    report(s);
}

int64_t wr_shard_next_seal_for_ns(const struct wr_shard *s, int64_t mono_ns)
{
    if (!s->started)
        return 0;
    const int64_t now = wr_sat_add_i64(mono_ns, s->wall_minus_mono_ns);
    const int64_t turn = wr_sat_add_i64(s->current_start_ns, s->opts.window_for_ns);
    return now >= turn ? 0 : turn - now;
}

struct weir_batch *wr_shard_take_batch(struct wr_shard *s)
{
    struct weir_batch *const b = s->sealed_first;
    if (!b)
        return NULL;
    s->sealed_first = b->next;
    if (!s->sealed_first)
        s->sealed_last = NULL;
    b->next = NULL;
    return b;
}

static int overflow_make(struct wr_shard *s)
{
    s->overflow = wr_entry_make(&s->opts.alloc, s->opts.overflow_hash, s->opts.overflow_key,
                                s->opts.overflow_key_bytes);
    return s->overflow ? WEIR_OK : WEIR_ENOMEM;
}

/* A seal has to get on where nothing is left: each part it writes gives memory back. */
static int reserve_make(struct wr_shard *s)
{
    struct weir_batch *const b = wr_batch_get(s, RESERVE_ROWS, RESERVE_KEY_BYTES);
    if (!b)
        return WEIR_ENOMEM;
    wr_batch_recycle(s, b);
    return WEIR_OK;
}

int wr_shard_init(struct wr_shard *s, const struct wr_shard_opts *opts)
{
    memset(s, 0, sizeof *s);
    s->opts = *opts;
    wr_inbox_init(&s->inbox, &opts->alloc);
    const struct weir_sketch_opts sketch = {.struct_size = sizeof sketch,
                                            .alloc = opts->alloc,
                                            .grid = WEIR_GRID_NS,
                                            .max_bins = opts->max_bins,
                                            .mapping = opts->mapping};
    int r = wr_table_init(&s->table, &opts->alloc, opts->max_keys);
    if (r == WEIR_OK)
        r = wr_sketch_pool_new(&sketch, opts->max_keys * 2 + 1024, true, &s->pool);
    if (r == WEIR_OK)
        r = overflow_make(s);
    if (r == WEIR_OK)
        r = reserve_make(s);
    if (r != WEIR_OK)
        wr_shard_done(s);
    return r;
}

static void slots_forget(struct wr_shard *s, struct wr_windows *list)
{
    for (size_t i = 0; i < list->count; i++)
        wr_shard_clear_window(s, list->at[i]);
}

void wr_shard_done(struct wr_shard *s)
{
    wr_batch_reap(s);
    slots_forget(s, &s->corrections);
    slots_forget(s, &s->open);
    for (struct weir_batch *b = wr_shard_take_batch(s); b; b = wr_shard_take_batch(s))
        wr_batch_recycle(s, b);
    while (s->spare_batches) {
        struct weir_batch *const b = s->spare_batches;
        s->spare_batches = b->next;
        wr_batch_free(s, b);
    }
    wr_windows_done(s, &s->corrections);
    wr_windows_done(s, &s->open);
    wr_windows_done(s, &s->spare_windows);
    wr_slots_done(s);
    if (s->overflow)
        wr_free(&s->opts.alloc, s->overflow->block, s->overflow->block_bytes);
    s->overflow = NULL;
    wr_table_done(&s->table);
    weir_sketch_pool_free(s->pool);
    s->pool = NULL;
    wr_inbox_done(&s->inbox);
}

static bool window_check(const struct wr_shard *s, const struct wr_window *w)
{
    size_t key_bytes = 0;
    uint64_t hits = 0;
    uint64_t weight = 0;
    for (size_t k = 0; k < w->touched_count; k++) {
        struct wr_entry *const e = w->touched[k];
        const struct wr_slot *const slot = wr_slot_find(e, w->start_ns);
        if (!slot)
            return false;
        key_bytes += e->key_bytes;
        hits += slot->hits;
        weight += slot->ok ? weir_sketch_bins_weight(slot->ok) : 0;
        weight += slot->error ? weir_sketch_bins_weight(slot->error) : 0;
    }
    const struct weir_window_counts *const c = &w->counts;
    uint64_t terms = c->aggregated + c->ineligible + c->partial;
    for (size_t i = 0; i < WEIR_DROP_COUNT; i++)
        terms += c->dropped[i];
    return key_bytes == w->key_bytes && hits == c->admitted_weight &&
           (weight == hits || s->opts.unweighted) && terms == c->received;
}

bool wr_shard_check(const struct wr_shard *s)
{
    const struct wr_windows *const lists[] = {&s->corrections, &s->open};
    for (size_t l = 0; l < 2; l++) {
        for (size_t i = 0; i < lists[l]->count; i++) {
            if (!window_check(s, lists[l]->at[i]) ||
                (i > 0 && lists[l]->at[i - 1]->start_ns >= lists[l]->at[i]->start_ns))
                return false;
        }
    }
    return wr_table_check(&s->table);
}
