/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WR_AGGREGATE_TABLE_H
#define WR_AGGREGATE_TABLE_H
/*
 * table: key bytes to entry, for one owner.
 *
 * Open addressing with linear probing over buckets of (hash, entry), at most three quarters full,
 * so that a probe reads one line of buckets, seldom two, and then the entry it wants: 64-bit hash
 * first, then one memcmp of the whole key. An entry is a block of its own: 64 bytes with the hash
 * and the newest window's slot, 48 with the links, the key behind them. It lies where the allocator
 * puts it: whole lines would cost up to 48 bytes more, and all of its lines are prefetched anyway.
 * It lives across windows; each open window in which it has spans is a slot: the newest inline,
 * older ones in a list.
 *
 * Entries without a slot in any open window are idle and stand in a list, least recently used
 * first: at the cap the first of it makes room in O(1), and sweeps take from its head.
 *
 * Invariants (wr_table_check): size = entries reachable = live + idle; load <= 4/5; an entry is in
 * the idle list exactly when its live count is 0; live = slots with a window.
 */
#include "base/alloc.h"
#include "base/bits.h"
#include "sketch/sketch.h"

#define WR_NO_WINDOW INT64_MIN

/* What one window knows of one entry. */
struct wr_slot {
    int64_t start_ns; /* of the window; WR_NO_WINDOW: free */
    uint64_t hits;    /* units of 2^-20, as all below */
    uint64_t errors;
    uint64_t top_level;
    struct weir_sketch *ok;
    struct weir_sketch *error;
};

struct wr_old_slot {
    struct wr_slot slot;
    struct wr_old_slot *next; /* older */
    uint32_t touched_at;      /* of the window's touched, as in struct wr_entry */
};

struct wr_entry {
    /* All that a hit in the current window needs besides the key. */
    uint64_t hash;
    struct wr_slot slot; /* the newest window's */
    uint32_t key_bytes;
    uint32_t touched_at; /* where in the touched entries of the inline slot's window it stands */
    /* The rest. */
    struct wr_old_slot *older;
    union {
        struct wr_entry *idle_prev; /* while it is idle */
        uint64_t
            credit; /* while it is live: its hits of the newest window before it had its place */
    };
    struct wr_entry *idle_next;
    int64_t last_start_ns; /* newest window it ever had a span in */
    uint64_t prepared;     /* number of the identity that was last found to be its key; 0: none */
    uint32_t live;         /* slots with a window, inline one included */
    uint8_t ok_size;       /* of its last sketches (weir_sketch_size): what to ask the pool for */
    uint8_t error_size;
    /* key_bytes of key follow. */
};
_Static_assert(offsetof(struct wr_entry, older) == 64, "what a hit needs lies together");
_Static_assert(sizeof(struct wr_entry) == 112, "a cold key is to cost at most 300 bytes");

static inline char *wr_entry_key(struct wr_entry *e)
{
    return (char *)(e + 1);
}

/* An entry of its own, in no table, without slots. NULL: no memory. */
struct wr_entry *wr_entry_make(const struct weir_alloc *alloc, uint64_t hash, const void *key,
                               size_t key_bytes);
void wr_entry_free(const struct weir_alloc *alloc, struct wr_entry *e);

struct wr_bucket {
    uint64_t hash;
    struct wr_entry *entry; /* NULL: free */
};

struct wr_table {
    struct weir_alloc alloc;
    struct wr_bucket *buckets;
    size_t mask; /* buckets - 1 */
    size_t size;
    size_t max;
    struct wr_entry *idle_first; /* least recently used */
    struct wr_entry *idle_last;
    size_t idle;
    struct wr_entry *graveyard; /* by idle_next: freed at wr_table_bury, see wr_table_recycle */
    uint64_t bytes;             /* of buckets and entries */
};

/* WEIR_ENOMEM. max >= 1. */
int wr_table_init(struct wr_table *t, const struct weir_alloc *alloc, size_t max);
void wr_table_done(struct wr_table *t); /* entries must have no slots left */

static inline bool wr_entry_is(const struct wr_entry *e, uint64_t hash, const void *key,
                               size_t key_bytes)
{
    return e->hash == hash && e->key_bytes == key_bytes &&
           memcmp((const char *)(e + 1), key, key_bytes) == 0;
}
struct wr_entry *wr_table_find(const struct wr_table *t, uint64_t hash, const void *key,
                               size_t key_bytes);
/* The first entry on hash's way with that hash, its key not compared: to prefetch. NULL if none. */
static inline struct wr_entry *wr_table_peek(const struct wr_table *t, uint64_t hash)
{
    size_t i = hash & t->mask;
    while (t->buckets[i].entry) {
        if (t->buckets[i].hash == hash)
            return t->buckets[i].entry;
        i = (i + 1) & t->mask;
    }
    return NULL;
}
/* Is e an entry of the table? e itself is not looked at. */
bool wr_table_holds(const struct wr_table *t, uint64_t hash, const struct wr_entry *e);
/*
 * A new entry for a key that is not there; idle, so the caller touches it next. At the cap the
 * least recently used idle entry is recycled. WEIR_EFULL: the cap, and nothing is idle;
 * WEIR_ENOMEM. O(1) but for growth of the buckets.
 */
int wr_table_insert(struct wr_table *t, uint64_t hash, const void *key, size_t key_bytes,
                    struct wr_entry **ret_entry);
/* A slot was added to or taken from the entry: keep the idle list and the live count. */
void wr_table_slot_added(struct wr_table *t, struct wr_entry *e);
void wr_table_slot_gone(struct wr_table *t, struct wr_entry *e);
/* Remove idle entries whose last window began before before_ns. Returns how many. */
size_t wr_table_expunge(struct wr_table *t, int64_t before_ns);
/* Free what was recycled since the last call: no pointer from before a recycling is used after. */
void wr_table_bury(struct wr_table *t);
bool wr_table_check(const struct wr_table *t);
#endif
