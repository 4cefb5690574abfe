/* SPDX-License-Identifier: Apache-2.0 */
/*
 * drain: from the inbox into the table: booking one record, and a rolling pipeline over them
 * (prefetch bucket, entry, sketch, bin, then book).
 */
#include "aggregate/window.h"

/* How far apart the stages of the drain are, in records (contracts: engine §2.1: 8 was best, and
 * what lies near it is as good). All records in flight fit FLIGHTS places. */
enum { STAGE = 7, STAGES = 4, FLIGHTS = 32, LINE = 64, WALK_PER_RECORD = 4 };
_Static_assert(STAGE *STAGES < FLIGHTS, "a place is free again before it is taken");

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

/* A record whose key found the table full of live ones: its place there by now, or NULL. */
static WR_NOINLINE struct wr_entry *newcomer(struct wr_shard *s, struct wr_window *w,
                                             const struct wr_folded *k, uint64_t weight)
{
    if (!s->newcomers)
        s->newcomers = wr_alloc_zero(&s->opts.alloc, sizeof *s->newcomers);
    if (!s->newcomers)
        return NULL; /* then it is one of many, unknown */
    s->cold.credit += WALK_PER_RECORD;
    const uint64_t bound = wr_newcomers_add(s->newcomers, k->hash, k->key, k->key_bytes, weight);
    struct wr_entry *e;
    if (s->opts.cap != WEIR_CAP_HEAVY || !wr_displace(s, bound) ||
        wr_table_insert(&s->table, k->hash, k->key, k->key_bytes, &e) != WEIR_OK)
        return NULL;
    wr_newcomers_forget(s->newcomers, k->hash);
    if (wr_slot_get(s, e, w))       /* else there is no memory for it, as the caller will see */
        e->credit = bound - weight; /* that much of it is in the overflow row */
    return e;
}

/* The entry of a key; the overflow entry when the table is full of live ones. NULL: no memory. */
static struct wr_entry *insert(struct wr_shard *s, struct wr_window *w, const struct wr_folded *k,
                               uint64_t weight)
{
    struct wr_entry *e;
    const int r = wr_table_insert(&s->table, k->hash, k->key, k->key_bytes, &e);
    if (r == WEIR_EFULL) {
        e = newcomer(s, w, k, weight);
        return e ? e : s->overflow;
    }
    return r == WEIR_OK ? e : NULL;
}

/* The entry that a record is booked under in w: its own, or that of its folded key. NULL: no
 * memory.
 */
static struct wr_entry *entry_of(struct wr_shard *s, struct wr_record *rec, struct wr_window *w)
{
    struct wr_folded k = {
        .key = wr_record_key_of(rec), .key_bytes = rec->key_bytes, .hash = rec->hash};
    struct wr_entry *e = wr_table_find(&s->table, k.hash, k.key, k.key_bytes);
    if (s->opts.admit && !(e && wr_slot_find(e, w->start_ns))) {
        const int r = s->opts.admit(s->opts.admit_ctx, k.key, k.key_bytes, rec->weight, &k);
        if (r < 0)
            return NULL;
        if (r > 0)
            e = wr_table_find(&s->table, k.hash, k.key, k.key_bytes);
    }
    return e ? e : insert(s, w, &k, rec->weight);
}

/* Strong: nothing has changed when it fails. once: in the bins, whatever it weighs. */
WR_INLINE int slot_add(struct wr_shard *s, const struct wr_entry *e, struct wr_slot *slot,
                       const struct wr_record *rec, bool once)
{
    const bool error = rec->flags & WR_RECORD_ERROR;
    struct weir_sketch **const which = error ? &slot->error : &slot->ok;
    if (WR_UNLIKELY(!*which)) {
        *which = weir_sketch_pool_get(s->pool, error ? e->error_size : e->ok_size);
        if (!*which)
            return WEIR_ENOMEM;
    }
    const int r = once ? wr_sketch_add_ns_once(*which, rec->duration_ns, rec->weight)
                       : wr_sketch_add_ns(*which, rec->duration_ns, rec->weight);
    if (WR_UNLIKELY(r != WEIR_OK)) {
        if (!weir_sketch_weight(*which)) { /* taken for this record */
            weir_sketch_pool_put(s->pool, *which);
            *which = NULL;
        }
        return r;
    }
    slot->hits += rec->weight;
    if (error)
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
    case WR_CLASS_UNWEIGHTED:
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
    if (rec->klass != WR_CLASS_COUNTED && rec->klass != WR_CLASS_UNWEIGHTED) {
        book_uncounted(w, rec);
        return;
    }
    if (late && s->opts.late == WEIR_LATE_DROP) {
        drop(w, WEIR_DROP_LATE);
        return;
    }
    struct wr_entry *const e = entry_of(s, rec, w);
    if (e == s->overflow && s->opts.cap == WEIR_CAP_DROP) {
        drop(w, WEIR_DROP_TABLE_FULL);
        return;
    }
    struct wr_slot *const slot = e ? wr_slot_get(s, e, w) : NULL;
    if (!slot || slot_add(s, e, slot, rec, rec->klass == WR_CLASS_UNWEIGHTED) != WEIR_OK) {
        drop(w, WEIR_DROP_MEMORY);
        return;
    }
    count_booked(s, w, e, rec);
    w->counts.late += late;
    w->counts.future += future;
}

/* A prepared key that was compared once is known by its number: that, and not the key, is what the
 * record and the entry have in the cache. */
static bool is_prepared_entry(struct wr_entry *e, const struct wr_record *rec)
{
    const struct wr_prepared *const p = wr_record_prepared(rec);
    if (e->prepared == p->number)
        return true;
    if (!wr_entry_is(e, rec->hash, p->key, rec->key_bytes))
        return false;
    e->prepared = p->number;
    return true;
}

static bool is_entry_of(struct wr_entry *e, struct wr_record *rec)
{
    if (WR_UNLIKELY(rec->flags & WR_RECORD_PREPARED))
        return is_prepared_entry(e, rec);
    return wr_entry_is(e, rec->hash, wr_record_key(rec), rec->key_bytes);
}

/* The common case: a counted record of the current window whose entry has its slot already. */
static void book(struct wr_shard *s, struct wr_record *rec, struct wr_entry *e)
{
    struct wr_window *const w = s->current;
    const bool here =
        w && (uint64_t)rec->end_ns - (uint64_t)w->start_ns < (uint64_t)s->opts.window_for_ns;
    if (!here || rec->klass != WR_CLASS_COUNTED || !e || e->slot.start_ns != w->start_ns ||
        s->stopped || !is_entry_of(e, rec)) {
        book_slow(s, rec);
        return;
    }
    w->counts.received++;
    if (WR_UNLIKELY(slot_add(s, e, &e->slot, rec, false) != WEIR_OK)) {
        drop(w, WEIR_DROP_MEMORY);
        return;
    }
    count_booked(s, w, e, rec);
}

/* The stages are inlined by order: GCC 12 takes a function that does no more than prefetch for one
 * without effect, and leaves out its calls. */
struct flight {
    struct wr_record *rec;  /* NULL: a place that no record has had yet, or has any more */
    struct wr_entry *entry; /* NULL: none, or not known yet */
};

WR_INLINE void stage_entry(struct wr_shard *s, struct flight *f)
{
    if (!f->rec || f->rec->klass != WR_CLASS_COUNTED)
        return;
    struct wr_entry *const e = wr_table_peek(&s->table, f->rec->hash);
    f->entry = e;
    if (!e)
        return;
    /* The two lines that counting touches; and the key is compared whole, so all of its lines, but
     * for one that the entry is known to have: a very long one fetches the rest itself. */
    WR_PREFETCH_W(e);
    WR_PREFETCH((const char *)e + LINE);
    if (f->rec->flags & WR_RECORD_PREPARED)
        return;
    const size_t end = sizeof *e + f->rec->key_bytes;
    for (size_t at = 2 * LINE; at < end && at < 6 * LINE; at += LINE)
        WR_PREFETCH((const char *)e + at);
    WR_PREFETCH((const char *)e + end - 1); /* it begins anywhere in a line */
}

/* Asked anew at each stage: a sketch may have gone back to the pool with a displaced entry. */
WR_INLINE struct weir_sketch *sketch_of(const struct flight *f)
{
    return f->rec->flags & WR_RECORD_ERROR ? f->entry->slot.error : f->entry->slot.ok;
}

WR_INLINE void stage_sketch(const struct flight *f)
{
    if (f->entry)
        WR_PREFETCH_W(sketch_of(f));
}

WR_INLINE void stage_bin(const struct flight *f)
{
    const struct weir_sketch *const sk = f->entry ? sketch_of(f) : NULL;
    if (sk)
        wr_sketch_prefetch_ns(sk, f->rec->duration_ns);
}

/* One turn of the pipeline: rec (NULL: there are no more) enters, and each stage works on the
 * record that entered STAGE turns before that of the stage before it. */
WR_INLINE void turn(struct wr_shard *s, struct flight f[FLIGHTS], size_t i, struct wr_record *rec)
{
    f[i % FLIGHTS] = (struct flight){.rec = rec};
    stage_entry(s, &f[(i - STAGE) % FLIGHTS]);
    stage_sketch(&f[(i - 2 * STAGE) % FLIGHTS]);
    stage_bin(&f[(i - 3 * STAGE) % FLIGHTS]);
    const struct flight *const last = &f[(i - 4 * STAGE) % FLIGHTS];
    if (last->rec)
        book(s, last->rec, last->entry);
}

/*
 * An entry found in an early stage may be stale at a later one, never dangling: while a drain
 * runs, entries go only to the graveyard.
 */
static size_t drain_ring(struct wr_shard *s, struct wr_ring *ring)
{
    struct wr_reader r;
    if (!wr_reader_begin(&r, ring))
        return 0;
    struct flight f[FLIGHTS] = {{0}};
    size_t i = 0;
    for (struct wr_record *rec; (rec = wr_reader_next(&r)) != NULL; i++) {
        WR_PREFETCH(&s->table.buckets[rec->hash & s->table.mask]);
        turn(s, f, i, rec);
    }
    for (size_t k = 0; k < STAGE * STAGES; k++)
        turn(s, f, i + k, NULL);
    wr_reader_end(&r);
    wr_table_bury(&s->table);
    return i;
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

size_t wr_shard_drain(struct wr_shard *s)
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
