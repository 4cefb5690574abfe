/* SPDX-License-Identifier: Apache-2.0 */
/* table: see table.h. */
#include "aggregate/table.h"

enum { FIRST_BUCKETS = 1024 };

/* The load that a number of buckets stands: 3 of them are looked at for a hit at the most, 13 for a
 * miss, on average. */
static size_t entries_most(size_t buckets)
{
    return buckets / 5 * 4;
}

int wr_table_init(struct wr_table *t, const struct weir_alloc *alloc, size_t max)
{
    memset(t, 0, sizeof *t);
    t->alloc = *alloc;
    t->max = max;
    t->mask = FIRST_BUCKETS - 1;
    t->buckets = wr_alloc_zero(alloc, FIRST_BUCKETS * sizeof *t->buckets);
    t->bytes = FIRST_BUCKETS * sizeof *t->buckets;
    return t->buckets ? WEIR_OK : WEIR_ENOMEM;
}

static size_t entry_bytes(const struct wr_entry *e)
{
    return sizeof *e + e->key_bytes;
}

static void entry_free(struct wr_table *t, struct wr_entry *e)
{
    t->bytes -= entry_bytes(e);
    wr_entry_free(&t->alloc, e);
}

void wr_table_done(struct wr_table *t)
{
    if (!t->buckets)
        return;
    for (size_t i = 0; i <= t->mask; i++) {
        if (t->buckets[i].entry)
            entry_free(t, t->buckets[i].entry);
    }
    wr_table_bury(t);
    wr_free(&t->alloc, t->buckets, (t->mask + 1) * sizeof *t->buckets);
    t->buckets = NULL;
}

struct wr_entry *wr_table_find(const struct wr_table *t, uint64_t hash, const void *key,
                               size_t key_bytes)
{
    size_t i = hash & t->mask;
    while (t->buckets[i].entry) {
        if (t->buckets[i].hash == hash && wr_entry_is(t->buckets[i].entry, hash, key, key_bytes))
            return t->buckets[i].entry;
        i = (i + 1) & t->mask;
    }
    return NULL;
}

static void place(struct wr_bucket *buckets, size_t mask, struct wr_entry *e)
{
    size_t i = e->hash & mask;
    while (buckets[i].entry)
        i = (i + 1) & mask;
    buckets[i] = (struct wr_bucket){.hash = e->hash, .entry = e};
}

static int grow(struct wr_table *t)
{
    const size_t count = (t->mask + 1) * 2;
    size_t bytes;
    if (wr_mul_size(count, sizeof *t->buckets, &bytes))
        return WEIR_ENOMEM;
    struct wr_bucket *const buckets = wr_alloc_zero(&t->alloc, bytes);
    if (!buckets)
        return WEIR_ENOMEM; /* t is unchanged */
    for (size_t i = 0; i <= t->mask; i++) {
        if (t->buckets[i].entry)
            place(buckets, count - 1, t->buckets[i].entry);
    }
    wr_free(&t->alloc, t->buckets, (t->mask + 1) * sizeof *t->buckets);
    t->buckets = buckets;
    t->mask = count - 1;
    t->bytes += bytes / 2;
    return WEIR_OK;
}

static void idle_unlink(struct wr_table *t, struct wr_entry *e)
{
    if (e->idle_prev)
        e->idle_prev->idle_next = e->idle_next;
    else
        t->idle_first = e->idle_next;
    if (e->idle_next)
        e->idle_next->idle_prev = e->idle_prev;
    else
        t->idle_last = e->idle_prev;
    e->idle_prev = NULL;
    e->idle_next = NULL;
    t->idle--;
}

static void idle_append(struct wr_table *t, struct wr_entry *e)
{
    e->idle_prev = t->idle_last;
    e->idle_next = NULL;
    if (t->idle_last)
        t->idle_last->idle_next = e;
    else
        t->idle_first = e;
    t->idle_last = e;
    t->idle++;
}

/* Close the gap so that every entry stays reachable from its home bucket (no tombstones). */
static void unplace(struct wr_table *t, const struct wr_entry *e)
{
    size_t hole = e->hash & t->mask;
    while (t->buckets[hole].entry != e)
        hole = (hole + 1) & t->mask;
    for (size_t i = (hole + 1) & t->mask; t->buckets[i].entry; i = (i + 1) & t->mask) {
        const size_t home = t->buckets[i].hash & t->mask;
        /* May it move to the hole? Only if its home is not after the hole on its way to i. */
        if (((i - home) & t->mask) >= ((i - hole) & t->mask)) {
            t->buckets[hole] = t->buckets[i];
            hole = i;
        }
    }
    t->buckets[hole] = (struct wr_bucket){0};
}

/* The owner's drain holds pointers ahead of time (to prefetch), so the block stays until bury; its
 * hash is not that of its key any more, and its number is of no identity, so no record is of it. */
static void recycle(struct wr_table *t)
{
    struct wr_entry *const e = t->idle_first;
    unplace(t, e);
    idle_unlink(t, e);
    t->size--;
    e->hash = ~e->hash;
    e->prepared = 0;
    e->idle_next = t->graveyard;
    t->graveyard = e;
}

void wr_table_bury(struct wr_table *t)
{
    while (t->graveyard) {
        struct wr_entry *const e = t->graveyard;
        t->graveyard = e->idle_next;
        entry_free(t, e);
    }
}

struct wr_entry *wr_entry_make(const struct weir_alloc *alloc, uint64_t hash, const void *key,
                               size_t key_bytes)
{
    struct wr_entry *const e = wr_alloc(alloc, sizeof *e + key_bytes);
    if (!e)
        return NULL;
    *e = (struct wr_entry){.hash = hash,
                           .slot = {.start_ns = WR_NO_WINDOW},
                           .key_bytes = (uint32_t)key_bytes,
                           .last_start_ns = WR_NO_WINDOW};
    if (key_bytes)
        memcpy(wr_entry_key(e), key, key_bytes);
    return e;
}

void wr_entry_free(const struct weir_alloc *alloc, struct wr_entry *e)
{
    wr_free(alloc, e, entry_bytes(e));
}

bool wr_table_holds(const struct wr_table *t, uint64_t hash, const struct wr_entry *e)
{
    for (size_t i = hash & t->mask; t->buckets[i].entry; i = (i + 1) & t->mask) {
        if (t->buckets[i].entry == e)
            return true;
    }
    return false;
}

int wr_table_insert(struct wr_table *t, uint64_t hash, const void *key, size_t key_bytes,
                    struct wr_entry **ret_entry)
{
    WR_ASSERT(!wr_table_find(t, hash, key, key_bytes));
    if (t->size >= t->max && !t->idle_first)
        return WEIR_EFULL;
    if (t->size + 1 > entries_most(t->mask + 1) && grow(t) != WEIR_OK)
        return WEIR_ENOMEM;
    struct wr_entry *const e = wr_entry_make(&t->alloc, hash, key, key_bytes);
    if (!e)
        return WEIR_ENOMEM;
    t->bytes += entry_bytes(e);
    if (t->size >= t->max)
        recycle(t);
    place(t->buckets, t->mask, e);
    t->size++;
    idle_append(t, e);
    *ret_entry = e;
    return WEIR_OK;
}

void wr_table_slot_added(struct wr_table *t, struct wr_entry *e)
{
    if (e->live++ == 0) {
        idle_unlink(t, e);
        e->credit = 0;
    }
}

void wr_table_slot_gone(struct wr_table *t, struct wr_entry *e)
{
    WR_ASSERT(e->live > 0);
    if (--e->live == 0)
        idle_append(t, e);
}

size_t wr_table_expunge(struct wr_table *t, int64_t before_ns)
{
    size_t count = 0;
    struct wr_entry *e = t->idle_first;
    while (e && e->last_start_ns < before_ns) {
        struct wr_entry *const next = e->idle_next;
        unplace(t, e);
        idle_unlink(t, e);
        t->size--;
        entry_free(t, e);
        count++;
        e = next;
    }
    return count;
}

static bool entry_check(const struct wr_table *t, const struct wr_bucket *b, size_t *idle)
{
    const struct wr_entry *const e = b->entry;
    uint32_t live = e->slot.start_ns != WR_NO_WINDOW;
    for (const struct wr_old_slot *s = e->older; s; s = s->next) {
        live++;
        if (s->slot.start_ns == WR_NO_WINDOW || s->slot.start_ns == e->slot.start_ns)
            return false;
    }
    *idle += live == 0;
    return e->hash == b->hash && live == e->live &&
           wr_table_find(t, e->hash, (const char *)(e + 1), e->key_bytes) == e;
}

bool wr_table_check(const struct wr_table *t)
{
    size_t size = 0;
    size_t idle = 0;
    for (size_t i = 0; i <= t->mask; i++) {
        if (!t->buckets[i].entry)
            continue;
        size++;
        if (!entry_check(t, &t->buckets[i], &idle))
            return false;
    }
    size_t listed = 0;
    for (const struct wr_entry *e = t->idle_first; e; e = e->idle_next) {
        if (e->live != 0 || (e->idle_next ? e->idle_next->idle_prev != e : t->idle_last != e))
            return false;
        listed++;
    }
    return size == t->size && idle == t->idle && listed == idle && size <= t->max &&
           size <= entries_most(t->mask + 1);
}
