/* SPDX-License-Identifier: Apache-2.0 */
/*
 * seal: from open windows to batches: sealing, which moves slots; clearing, which empties them;
 * snapshots, which copy them.
 */
#include "aggregate/window.h"

enum { AHEAD = 8 }; /* entries prefetched while a seal walks what a window touched */

static void counts_add(struct weir_window_counts *sum, const struct weir_window_counts *c)
{
    sum->received += c->received;
    sum->aggregated += c->aggregated;
    sum->ineligible += c->ineligible;
    sum->partial += c->partial;
    for (size_t i = 0; i < WEIR_DROP_COUNT; i++)
        sum->dropped[i] += c->dropped[i];
    sum->admitted_weight += c->admitted_weight;
    sum->late += c->late;
    sum->future += c->future;
    sum->overflow += c->overflow;
}

/* The right sides of the weight equation, counted from what is really in the rows. */
static void weigh_rows(struct weir_batch *b)
{
    uint64_t rows = 0;
    uint64_t sketches = 0;
    for (size_t i = 0; i < b->info.rows; i++) {
        const struct wr_row *const r = &b->rows[i];
        rows += r->hits;
        sketches += r->ok ? weir_sketch_bins_weight(r->ok) : 0;
        sketches += r->error ? weir_sketch_bins_weight(r->error) : 0;
    }
    b->info.counts.rows_weight = rows;
    b->info.counts.sketch_weight = sketches;
}

static void append_sealed(struct wr_shard *s, struct weir_batch *b)
{
    b->next = NULL;
    if (s->sealed_last)
        s->sealed_last->next = b;
    else
        s->sealed_first = b;
    s->sealed_last = b;
    s->totals.sealed_batches++;
}

static bool window_blank(const struct wr_window *w)
{
    static const struct weir_window_counts none;
    return w->touched_count == 0 && memcmp(&w->counts, &none, sizeof none) == 0;
}

/* A batch for the window; without memory for one, what a batch given back before has room for, from
 * *ret_from on: memory that is left is for those who take sealed batches away. */
static struct weir_batch *get_room(struct wr_shard *s, const struct wr_window *w, size_t *ret_from)
{
    *ret_from = 0;
    struct weir_batch *const b = wr_batch_get(s, w->touched_count, w->key_bytes);
    return b ? b : wr_batch_get_spare(s, w->touched, w->touched_count, ret_from);
}

/* The counts of a part: its spans are told by its weight, exact while each span weighs one. What is
 * left stays with the window, so both equations hold for every part and for their sum. */
static void take_counts(struct wr_window *w, struct weir_batch *b)
{
    const uint64_t weight = b->info.counts.rows_weight;
    const uint64_t spans =
        (weight >> 20) < w->counts.aggregated ? weight >> 20 : w->counts.aggregated;
    b->info.counts.admitted_weight = weight;
    b->info.counts.received = spans;
    b->info.counts.aggregated = spans;
    w->counts.admitted_weight -= weight;
    w->counts.received -= spans;
    w->counts.aggregated -= spans;
}

/* Move the last slots of a window into a batch. *ret_whole: that was all of them. */
static bool seal_part(struct wr_shard *s, struct wr_window *w, uint32_t flags, bool *ret_whole)
{
    size_t from = 0;
    struct weir_batch *const b = get_room(s, w, &from);
    if (!b) {
        s->totals.seal_failed++;
        return false;
    }
    b->info.start_ns = w->start_ns;
    b->info.flags = w->flags | flags;
    for (size_t k = from; k < w->touched_count; k++) {
        struct wr_entry *const e = w->touched[k];
        if (k + AHEAD < w->touched_count)
            WR_PREFETCH(w->touched[k + AHEAD]);
        const struct wr_slot *const slot = wr_slot_find(e, w->start_ns);
        if (slot->hits > 0) {
            e->ok_size = slot->ok ? weir_sketch_size(slot->ok) : 0;
            e->error_size = slot->error ? weir_sketch_size(slot->error) : 0;
            wr_batch_add(b, e, slot);
        } else { /* touched, and then no memory for its first span */
            weir_sketch_pool_put(s->pool, slot->ok);
            weir_sketch_pool_put(s->pool, slot->error);
        }
        w->key_bytes -= e->key_bytes;
        wr_slot_drop(s, e, w->start_ns);
    }
    w->touched_count = from;
    *ret_whole = from == 0;
    if (*ret_whole)
        b->info.counts = w->counts;
    weigh_rows(b);
    if (!*ret_whole)
        take_counts(w, b);
    counts_add(&s->totals.sum, &b->info.counts);
    append_sealed(s, b);
    return true;
}

/* Move the slots of window i of list into batches: one, unless memory is short. false: there was
 * none, and what is left of the window stays open. */
static bool seal(struct wr_shard *s, struct wr_windows *list, size_t i, uint32_t flags)
{
    struct wr_window *const w = list->at[i];
    bool whole = window_blank(w);
    while (!whole) {
        if (!seal_part(s, w, flags, &whole))
            return false;
    }
    wr_window_retire(s, list, i);
    return true;
}

void wr_shard_seal_list(struct wr_shard *s, struct wr_windows *list, int64_t before_ns,
                        uint32_t flags)
{
    size_t i = 0;
    while (i < list->count && list->at[i]->start_ns < before_ns) {
        if (!seal(s, list, i, flags))
            i++;
    }
}

void wr_shard_seal_everything(struct wr_shard *s, uint32_t flags)
{
    wr_shard_seal_list(s, &s->corrections, INT64_MAX, flags);
    wr_shard_seal_list(s, &s->open, INT64_MAX, flags);
}

/* What the open windows held is dropped, counted; the counts leave as a batch without rows. */
void wr_shard_clear_window(struct wr_shard *s, struct wr_window *w)
{
    for (size_t k = 0; k < w->touched_count; k++) {
        struct wr_entry *const e = w->touched[k];
        const struct wr_slot *const slot = wr_slot_find(e, w->start_ns);
        weir_sketch_pool_put(s->pool, slot->ok);
        weir_sketch_pool_put(s->pool, slot->error);
        wr_slot_drop(s, e, w->start_ns);
    }
    w->touched_count = 0;
    w->key_bytes = 0;
    w->flags |= WEIR_BATCH_CLEARED;
    w->counts.dropped[WEIR_DROP_CLEARED] += w->counts.aggregated;
    w->counts.aggregated = 0;
    w->counts.admitted_weight = 0;
    w->counts.late = 0;
    w->counts.future = 0;
    w->counts.overflow = 0;
}

void wr_shard_clear(struct wr_shard *s)
{
    for (size_t i = 0; i < s->corrections.count; i++)
        wr_shard_clear_window(s, s->corrections.at[i]);
    for (size_t i = 0; i < s->open.count; i++)
        wr_shard_clear_window(s, s->open.at[i]);
    /* They are sealed at once, so that what comes next has a batch without the mark. */
    wr_shard_seal_everything(s, WEIR_BATCH_EARLY);
}

static bool slot_copy(struct wr_shard *s, const struct wr_slot *slot, struct wr_slot *ret_copy)
{
    *ret_copy = *slot;
    ret_copy->ok = NULL;
    ret_copy->error = NULL;
    if (slot->ok) {
        ret_copy->ok = wr_sketch_pool_copy(s->pool, slot->ok);
        if (!ret_copy->ok)
            return false;
    }
    if (slot->error) {
        ret_copy->error = wr_sketch_pool_copy(s->pool, slot->error);
        if (!ret_copy->error) {
            weir_sketch_pool_put(s->pool, ret_copy->ok);
            return false;
        }
    }
    return true;
}

static struct weir_batch *window_copy(struct wr_shard *s, const struct wr_window *w)
{
    struct weir_batch *const b = wr_batch_get(s, w->touched_count, w->key_bytes);
    if (!b)
        return NULL;
    b->info.start_ns = w->start_ns;
    b->info.flags = w->flags | WEIR_BATCH_OPEN;
    b->info.counts = w->counts;
    for (size_t k = 0; k < w->touched_count; k++) {
        const struct wr_slot *const slot = wr_slot_find(w->touched[k], w->start_ns);
        struct wr_slot copy;
        if (slot->hits == 0)
            continue;
        if (!slot_copy(s, slot, &copy)) {
            wr_batch_recycle(s, b);
            return NULL;
        }
        wr_batch_add(b, w->touched[k], &copy);
    }
    weigh_rows(b);
    return b;
}

size_t wr_shard_snapshot(struct wr_shard *s, struct weir_batch **batches, size_t cap)
{
    wr_batch_reap(s);
    (void)wr_shard_drain(s);
    size_t count = 0;
    const struct wr_windows *const lists[] = {&s->corrections, &s->open};
    for (size_t l = 0; l < 2; l++) {
        for (size_t i = 0; i < lists[l]->count && count < cap; i++) {
            struct weir_batch *const b = window_copy(s, lists[l]->at[i]);
            if (b)
                batches[count++] = b;
            else
                s->totals.snapshot_failed++;
        }
    }
    return count;
}
