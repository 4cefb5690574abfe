/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WR_STATS_SCHEMAS_H
#define WR_STATS_SCHEMAS_H
/*
 * schemas: the schemas of an instance, of which one is current. Peer tags may change while
 * producers publish (contracts: span-stats §1.11): each set of them is an immutable schema with a
 * number, keys carry the number, and a schema goes when nothing that could read a key by it is
 * left. The first is number 0 and stays. Keys without peer tags and dimensions are of number 0
 * whatever the schema, since the fixed fields are the same in all.
 *
 * A producer pins the schema by which it reads spans: it counts itself in, then looks whether the
 * schema is still current. Who frees one looks first that it is not current, which only the holder
 * of the lock can change, then that nobody is counted in; both are in one order (seq_cst), so
 * either the producer sees that it came too late, or it is seen. No lock is on that way: the lock
 * is for those that change the set, and for the owner, who does not wait for it.
 *
 * Records that a producer committed before it unpinned are drained before what the owner saw
 * unpinned is freed; uses tells whether it was current again in between.
 *
 * Threads: as each says. Memory: at most WR_EPOCHS schemas, some 8 KB each.
 */
#include "aggregate/epoch.h"
#include "stats/schema.h"

#include <stdatomic.h>

struct wr_schemas {
    struct weir_stats_opts opts; /* what all of them have: profile, flags, dimensions (own) */
    char *text;                  /* of opts.dimensions */
    size_t text_bytes;
    _Atomic(struct wr_schema *) at[WR_EPOCHS];
    _Atomic uint32_t pins[WR_EPOCHS];
    _Atomic uint32_t uses[WR_EPOCHS]; /* times it became current */
    _Atomic uint32_t current;
    _Atomic uint32_t count;
    _Atomic int locked;
};

/* first was made from opts. What it refers to stays until wr_schemas_done. WEIR_ENOMEM. */
int wr_schemas_init(struct wr_schemas *s, struct wr_schema *first,
                    const struct weir_stats_opts *opts);
void wr_schemas_done(struct wr_schemas *s); /* all but the first */
/* In a forked child: what was pinned in the parent stays, and nobody holds the lock. */
void wr_schemas_forget(struct wr_schemas *s);

/* Make the schema of these peer tags, a name each, the current one. Threads: any. */
int wr_schemas_set(struct wr_schemas *s, const char *const *names, size_t count);

/* The current schema, counted in once more. Threads: any. */
const struct wr_schema *wr_schemas_pin(struct wr_schemas *s);
void wr_schemas_pin_more(struct wr_schemas *s, const struct wr_schema *pinned);
void wr_schemas_unpin(struct wr_schemas *s, const struct wr_schema *pinned);

/* The schema of a key that is held. Threads: any. */
static inline const struct wr_schema *wr_schema_of(const struct wr_schemas *s, const char *key,
                                                   size_t key_bytes)
{
    /* acquire: who was handed a key may be the first to read by its schema. */
    return atomic_load_explicit(&s->at[wr_key_epoch(key, key_bytes)], memory_order_acquire);
}
/* wr_labels_fn; ctx is a struct wr_schemas. */
size_t wr_schemas_labels(const void *ctx, const char *key, size_t key_bytes,
                         struct weir_label *labels, size_t cap);

/* Owner: those that nobody has pinned now, before a drain, and may be freed after it unless keys of
 * theirs are held. */
struct wr_idle_schemas {
    uint32_t set; /* bit by number */
    uint32_t uses[WR_EPOCHS];
};
void wr_schemas_find_idle(struct wr_schemas *s, struct wr_idle_schemas *ret_idle);
/* Of those, free what is still idle and not in held. Returns what was freed. */
uint32_t wr_schemas_free_idle(struct wr_schemas *s, const struct wr_idle_schemas *idle,
                              uint32_t held);
#endif
