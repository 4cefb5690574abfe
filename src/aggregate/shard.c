/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shard: see shard.h. Three parts: booking one record, draining the inbox in a rolling pipeline
 * (prefetch bucket, entry, sketch, bins, then book), and time: which windows are open, sealing.
 */
#include "aggregate/shard.h"

#include "aggregate/window.h"

/* How far apart the stages of the drain are, in records (contracts: engine §2.1: 8 was best). */
enum { STAGE = 8, FLIGHTS = 64 };

/* ---- one record ---- */

static void drop(struct wr_window *w, enum weir_drop reason)
{
    w->counts.dropped[reason]++;
}

/* The window of a record by its end, after the late and future policies. NULL: no memory. */
static struct wr_window *window_of(struct wr_shard *s, int64_t end_ns, bool *ret_late,
                                   bool *ret_future)
{
    int64_t start = wr_window_align(s, end_ns);
    if (start >= s->current_start_ns) {
        *ret_future = start > s->current_start_ns;
        start = s->current_start_ns;
        if (!s->current)
            s->current = wr_window_get(s, &s->open, start, 0);
        return s->current;
    }
    const int64_t oldest = wr_window_oldest_open(s);
    if (start >= oldest)
        return wr_window_get(s, &s->open, start, 0);
    /* Due, but not sealed yet: it is still the record's own, and a correction beside it would
     * share its slots. */
    struct wr_window *const due = wr_window_find(&s->open, start);
    if (due)
        return due;
    *ret_late = true;
    if (s->opts.late == WEIR_LATE_CORRECT) {
        const bool full = s->corrections.count >= s->opts.max_corrections;
        struct wr_window *const w =
            full ? NULL : wr_window_get(s, &s->corrections, start, WEIR_BATCH_CORRECTION);
        if (w)
            return w;
    }
    if (oldest == s->current_start_ns) {
        if (!s->current)
            s->current = wr_window_get(s, &s->open, oldest, 0);
        return s->current;
    }
    return wr_window_get(s, &s->open, oldest, 0);
}

/* The entry of a record; the overflow entry when the table is full of live ones. NULL: no memory.
 */
static struct wr_entry *entry_of(struct wr_shard *s, struct wr_record *rec)
{
    const char *const key = wr_record_key(rec);
    struct wr_entry *e = wr_table_find(&s->table, rec->hash, key, rec->key_bytes);
    if (e)
        return e;
    const int r = wr_table_insert(&s->table, rec->hash, key, rec->key_bytes, &e);
    if (r == WEIR_EFULL)
        return s->overflow;
    return r == WEIR_OK ? e : NULL;
}

/* Strong: nothing has changed when it fails. */
static int slot_add(struct wr_shard *s, struct wr_slot *slot, const struct wr_record *rec)
{
    struct weir_sketch **const which = rec->flags & WR_RECORD_ERROR ? &slot->error : &slot->ok;
    if (WR_UNLIKELY(!*which)) {
        *which = wr_sketch_pool_get(s->pool);
        if (!*which)
            return WEIR_ENOMEM;
    }
    const int r = wr_sketch_add_ns(*which, rec->duration_ns, rec->weight);
    if (WR_UNLIKELY(r != WEIR_OK))
        return r;
    slot->hits += rec->weight;
    if (rec->flags & WR_RECORD_ERROR)
        slot->errors += rec->weight;
    if (rec->flags & WR_RECORD_TOP_LEVEL)
        slot->top_level += rec->weight;
    return WEIR_OK;
}

static void book_uncounted(struct wr_window *w, const struct wr_record *rec)
{
    switch ((enum wr_class)rec->klass) {
    case WR_CLASS_INELIGIBLE:
        w->counts.ineligible++;
        break;
    case WR_CLASS_PARTIAL:
        w->counts.partial++;
        break;
    case WR_CLASS_DROPPED:
        drop(w, (enum weir_drop)rec->flags);
        break;
    case WR_CLASS_COUNTED:
    case WR_CLASS_PAD:
        WR_ASSERT(false);
        break;
    }
}

static void count_booked(struct wr_shard *s, struct wr_window *w, const struct wr_entry *e,
                         const struct wr_record *rec)
{
    w->counts.aggregated++;
    w->counts.admitted_weight += rec->weight;
    if (WR_UNLIKELY(e == s->overflow))
        w->counts.overflow++;
}

/* No window could be made: the total still knows of the record. */
static void count_homeless(struct wr_shard *s)
{
    s->totals.sum.received++;
    s->totals.sum.dropped[WEIR_DROP_MEMORY]++;
}

static WR_NOINLINE void book_slow(struct wr_shard *s, struct wr_record *rec)
{
    bool late = false;
    bool future = false;
    struct wr_window *const w = window_of(s, rec->end_ns, &late, &future);
    if (!w) {
        count_homeless(s);
        return;
    }
    w->counts.received++;
    if (s->stopped) {
        drop(w, WEIR_DROP_INBOX_FULL);
        return;
    }
    if (rec->klass != WR_CLASS_COUNTED) {
        book_uncounted(w, rec);
        return;
    }
    if (late && s->opts.late == WEIR_LATE_DROP) {
        drop(w, WEIR_DROP_LATE);
        return;
    }
    struct wr_entry *const e = entry_of(s, rec);
    struct wr_slot *const slot = e ? wr_slot_get(s, e, w) : NULL;
    if (!slot || slot_add(s, slot, rec) != WEIR_OK) {
        drop(w, WEIR_DROP_MEMORY);
        return;
    }
    count_booked(s, w, e, rec);
    w->counts.late += late;
    w->counts.future += future;
}

/* The common case: a counted record of the current window whose entry has its slot already. */
static void book(struct wr_shard *s, struct wr_record *rec, struct wr_entry *e)
{
    struct wr_window *const w = s->current;
    const bool here =
        w && (uint64_t)rec->end_ns - (uint64_t)w->start_ns < (uint64_t)s->opts.window_for_ns;
    if (!here || rec->klass != WR_CLASS_COUNTED || !e || e->slot.start_ns != w->start_ns ||
        s->stopped || !wr_entry_is(e, rec->hash, wr_record_key(rec), rec->key_bytes)) {
        book_slow(s, rec);
        return;
    }
    w->counts.received++;
    if (WR_UNLIKELY(slot_add(s, &e->slot, rec) != WEIR_OK)) {
        drop(w, WEIR_DROP_MEMORY);
        return;
    }
    count_booked(s, w, e, rec);
}

/* ---- draining ---- */

struct flight {
    struct wr_record *rec;
    struct wr_entry *entry;
    struct weir_sketch *sketch;
};

static void stage_entry(struct wr_shard *s, struct flight *f)
{
    f->entry = f->rec->klass == WR_CLASS_COUNTED ? wr_table_peek(&s->table, f->rec->hash) : NULL;
    if (f->entry) {
        WR_PREFETCH_W(f->entry);
        WR_PREFETCH((const char *)f->entry + 64);
        WR_PREFETCH((const char *)f->entry + 128);
    }
}

static void stage_sketch(struct flight *f)
{
    f->sketch = NULL;
    if (f->entry) {
        f->sketch = f->rec->flags & WR_RECORD_ERROR ? f->entry->slot.error : f->entry->slot.ok;
        if (f->sketch)
            WR_PREFETCH_W(f->sketch);
    }
}

/*
 * A pointer taken in an early stage may be stale at a later one, never dangling: while a drain
 * runs, entries go only to the graveyard, and sketches only out of the pool.
 */
static size_t drain_ring(struct wr_shard *s, struct wr_ring *ring)
{
    struct wr_reader r;
    if (!wr_reader_begin(&r, ring))
        return 0;
    struct flight f[FLIGHTS];
    size_t read = 0;   /* records taken from the ring */
    size_t booked = 0; /* of those, through the last stage */
    bool more = true;
    /* Stage k works on the record k * STAGE behind the newest. */
    for (size_t i = 0; more || booked < read; i++) {
        if (more) {
            struct wr_record *const rec = wr_reader_next(&r);
            more = rec != NULL;
            if (rec) {
                f[i % FLIGHTS] = (struct flight){.rec = rec};
                WR_PREFETCH(&s->table.buckets[rec->hash & s->table.mask]);
                read++;
            }
        }
        if (i >= STAGE && i - STAGE < read)
            stage_entry(s, &f[(i - STAGE) % FLIGHTS]);
        if (i >= 2 * STAGE && i - 2 * STAGE < read)
            stage_sketch(&f[(i - 2 * STAGE) % FLIGHTS]);
        if (i >= 3 * STAGE && i - 3 * STAGE < read) {
            const struct flight *const g = &f[(i - 3 * STAGE) % FLIGHTS];
            if (g->sketch)
                wr_sketch_prefetch_ns(g->sketch, g->rec->duration_ns);
        }
        if (i >= 4 * STAGE && i - 4 * STAGE < read) {
            const struct flight *const g = &f[(i - 4 * STAGE) % FLIGHTS];
            book(s, g->rec, g->entry);
            booked++;
        }
    }
    wr_reader_end(&r);
    wr_table_bury(&s->table);
    return read;
}

/* Spans that found no room in the inbox belong to the window that is current when that is seen. */
static void book_inbox_full(struct wr_shard *s, struct wr_ring *ring)
{
    const uint64_t full = atomic_load_explicit(&ring->counts.inbox_full, memory_order_relaxed);
    const uint64_t fresh = full - ring->full_seen;
    if (fresh == 0)
        return;
    if (!s->current)
        s->current = wr_window_get(s, &s->open, s->current_start_ns, 0);
    if (!s->current)
        return; /* no memory: seen at the next poll */
    ring->full_seen = full;
    s->current->counts.received += fresh;
    s->current->counts.dropped[WEIR_DROP_INBOX_FULL] += fresh;
}

static size_t drain(struct wr_shard *s)
{
    size_t count = 0;
    for (size_t i = 0; i < WR_RINGS_MAX; i++) {
        struct wr_ring *const ring = atomic_load_explicit(&s->inbox.rings[i], memory_order_acquire);
        if (!ring)
            continue;
        count += drain_ring(s, ring);
        book_inbox_full(s, ring);
        (void)wr_inbox_reap(&s->inbox, i);
    }
    return count;
}

/* ---- sealing ---- */

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

/* Move the slots of window i of list into a batch. false: no memory, the window stays open. */
static bool seal(struct wr_shard *s, struct wr_windows *list, size_t i, uint32_t flags)
{
    struct wr_window *const w = list->at[i];
    if (window_blank(w)) {
        wr_window_retire(s, list, i);
        return true;
    }
    struct weir_batch *const b = wr_batch_get(s, w->touched_count, w->key_bytes);
    if (!b) {
        s->totals.seal_failed++;
        return false;
    }
    b->info.start_ns = w->start_ns;
    b->info.flags = w->flags | flags;
    b->info.counts = w->counts;
    for (size_t k = 0; k < w->touched_count; k++) {
        struct wr_entry *const e = w->touched[k];
        if (k + STAGE < w->touched_count)
            WR_PREFETCH(w->touched[k + STAGE]);
        const struct wr_slot *const slot = wr_slot_find(e, w->start_ns);
        if (slot->hits > 0) {
            wr_batch_add(b, e, slot);
        } else { /* touched, and then no memory for its first span */
            wr_sketch_pool_put(s->pool, slot->ok);
            wr_sketch_pool_put(s->pool, slot->error);
        }
        wr_slot_drop(s, e, w->start_ns);
    }
    weigh_rows(b);
    counts_add(&s->totals.sum, &b->info.counts);
    append_sealed(s, b);
    wr_window_retire(s, list, i);
    return true;
}

static void seal_list(struct wr_shard *s, struct wr_windows *list, int64_t before_ns,
                      uint32_t flags)
{
    size_t i = 0;
    while (i < list->count && list->at[i]->start_ns < before_ns) {
        if (!seal(s, list, i, flags))
            i++;
    }
}

static void seal_everything(struct wr_shard *s, uint32_t flags)
{
    seal_list(s, &s->corrections, INT64_MAX, flags);
    seal_list(s, &s->open, INT64_MAX, flags);
}

static void seal_due(struct wr_shard *s)
{
    seal_list(s, &s->open, wr_window_oldest_open(s), 0);
}

static void sweep(struct wr_shard *s)
{
    const int64_t keep = (int64_t)s->opts.idle_windows * s->opts.window_for_ns;
    s->totals.expunged += wr_table_expunge(&s->table, wr_sat_sub_i64(s->current_start_ns, keep));
    wr_sketch_pool_trim(s->pool);
}

/* ---- CLEAR ---- */

/* What the open windows held is dropped, counted; the counts leave as a batch without rows. */
static void clear_window(struct wr_shard *s, struct wr_window *w)
{
    for (size_t k = 0; k < w->touched_count; k++) {
        struct wr_entry *const e = w->touched[k];
        const struct wr_slot *const slot = wr_slot_find(e, w->start_ns);
        wr_sketch_pool_put(s->pool, slot->ok);
        wr_sketch_pool_put(s->pool, slot->error);
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

static void clear_all(struct wr_shard *s)
{
    for (size_t i = 0; i < s->corrections.count; i++)
        clear_window(s, s->corrections.at[i]);
    for (size_t i = 0; i < s->open.count; i++)
        clear_window(s, s->open.at[i]);
    /* They are sealed at once, so that what comes next has a batch without the mark. */
    seal_everything(s, WEIR_BATCH_EARLY);
}

/* ---- time ---- */

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
        (void)drain(s);
        seal_everything(s, WEIR_BATCH_EARLY);
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

static void handle_signals(struct wr_shard *s)
{
    struct weir_signal_node *node = wr_inbox_take_signals(&s->inbox);
    if (!node)
        return;
    /* Everything committed before the signals is visible now (inbox.h): it comes first. */
    (void)drain(s);
    while (node) {
        struct weir_signal_node *const next = node->next; /* done may reuse the node */
        switch (node->kind) {
        case WEIR_SIGNAL_REPORT:
            seal_everything(s, WEIR_BATCH_EARLY);
            break;
        case WEIR_SIGNAL_CLEAR:
            clear_all(s);
            break;
        case WEIR_SIGNAL_STOP:
            seal_everything(s, WEIR_BATCH_EARLY);
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
    const size_t count = drain(s);
    handle_signals(s);
    if (turned) {
        seal_list(s, &s->corrections, INT64_MAX, 0);
        seal_due(s);
        sweep(s);
    }
    return count;
}

void wr_shard_seal_all(struct wr_shard *s, int64_t wall_ns, int64_t mono_ns)
{
    (void)wr_shard_poll(s, wall_ns, mono_ns);
    seal_everything(s, WEIR_BATCH_EARLY);
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

/* ---- snapshots ---- */

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
            wr_sketch_pool_put(s->pool, ret_copy->ok);
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
    (void)drain(s);
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

/* ---- life ---- */

static int overflow_make(struct wr_shard *s)
{
    void *block;
    size_t block_bytes;
    struct wr_entry *const e = wr_alloc_aligned64(
        &s->opts.alloc, sizeof *e + s->opts.overflow_key_bytes, &block, &block_bytes);
    if (!e)
        return WEIR_ENOMEM;
    *e = (struct wr_entry){.hash = s->opts.overflow_hash,
                           .slot = {.start_ns = WR_NO_WINDOW},
                           .key_bytes = (uint32_t)s->opts.overflow_key_bytes,
                           .last_start_ns = WR_NO_WINDOW,
                           .block = block,
                           .block_bytes = block_bytes};
    memcpy(wr_entry_key(e), s->opts.overflow_key, s->opts.overflow_key_bytes);
    s->overflow = e;
    return WEIR_OK;
}

int wr_shard_init(struct wr_shard *s, const struct wr_shard_opts *opts)
{
    memset(s, 0, sizeof *s);
    s->opts = *opts;
    wr_inbox_init(&s->inbox, &opts->alloc);
    const struct weir_sketch_opts sketch = {
        .struct_size = sizeof sketch, .alloc = opts->alloc, .grid = WEIR_GRID_NS};
    int r = wr_table_init(&s->table, &opts->alloc, opts->max_keys);
    if (r == WEIR_OK)
        r = wr_sketch_pool_new(&sketch, opts->max_keys * 2 + 1024, &s->pool);
    if (r == WEIR_OK)
        r = overflow_make(s);
    if (r != WEIR_OK)
        wr_shard_done(s);
    return r;
}

static void slots_forget(struct wr_shard *s, struct wr_windows *list)
{
    for (size_t i = 0; i < list->count; i++)
        clear_window(s, list->at[i]);
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
    wr_sketch_pool_free(s->pool);
    s->pool = NULL;
    wr_inbox_done(&s->inbox);
}

static bool window_check(const struct wr_window *w)
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
    return key_bytes == w->key_bytes && hits == c->admitted_weight && weight == hits &&
           terms == c->received;
}

bool wr_shard_check(const struct wr_shard *s)
{
    const struct wr_windows *const lists[] = {&s->corrections, &s->open};
    for (size_t l = 0; l < 2; l++) {
        for (size_t i = 0; i < lists[l]->count; i++) {
            if (!window_check(lists[l]->at[i]) ||
                (i > 0 && lists[l]->at[i - 1]->start_ns >= lists[l]->at[i]->start_ns))
                return false;
        }
    }
    return wr_table_check(&s->table);
}
