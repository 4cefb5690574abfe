/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WR_TRACE_DICT_H
#define WR_TRACE_DICT_H
/*
 * dict: the strings of one payload, keyed by content: the dictionary of v0.5, and the strings seen
 * of v1.0, which a payload of that version carries where they came first.
 *
 *   text     [gap][framed string 0][framed string 1]...   v0.5: what the payload will carry
 *   entries  index -> hash, place in text
 *   owners   index -> the struct weir_text that it was first written from
 *   slots    hash -> index, open addressing, at most half full
 *
 * A struct weir_text remembers the index that it had last; if the entry there is owned by that very
 * text, the index holds and nothing is hashed. Entries past count own nothing, so that emptying and
 * rewinding need not look at texts. It takes that a text outlives the payload.
 *
 * Other strings are hashed once, when they are looked up; growing uses the stored hashes. Entries
 * are only ever removed newest first, and nothing was placed after them then, so that a removed
 * slot may simply become free: no tombstones.
 *
 * The hash is seeded by the owner, as tag values come from strangers.
 *
 * Threads: one at a time. Memory: text is bounded; 40 bytes of entry and slots a string, at most
 * twice that in growth.
 */
#include "trace/text.h"
#include "wire/mp_write.h"

#define WR_TRACE_DICT_GAP 6 /* for the payload's own head: array of two, array of strings */

struct wr_trace_dict_entry {
    size_t offset; /* of the content in text */
    uint32_t len;
    uint32_t hash;
};
struct wr_trace_dict_slot {
    uint32_t hash;
    uint32_t index1; /* index + 1; 0: free */
};

struct wr_trace_dict {
    struct weir_alloc alloc;
    struct wr_out text;
    struct wr_trace_dict_entry *entries;
    const struct weir_text **owners; /* by index; NULL: none. Apart: this is what has() reads */
    size_t count;
    size_t entry_cap;
    size_t owner_cap;
    struct wr_trace_dict_slot *slots;
    size_t slot_count; /* 0 or a power of two, >= 2 * count */
    uint64_t seed;
};

/* Allocates nothing. max_text bounds text, gap included. */
void wr_trace_dict_init(struct wr_trace_dict *d, const struct weir_alloc *alloc, size_t max_text,
                        uint64_t seed);
void wr_trace_dict_done(struct wr_trace_dict *d);

/* The index of s, where it is in. *ret_hash is what adding it needs. */
bool wr_trace_dict_find(const struct wr_trace_dict *d, struct weir_bytes s, uint32_t *ret_hash,
                        uint32_t *ret_index);
/*
 * Add s, which is not in. Errors: WEIR_EFULL, WEIR_ENOMEM, WEIR_ERANGE; then nothing was added.
 * s.len <= UINT32_MAX.
 */
int wr_trace_dict_add(struct wr_trace_dict *d, struct weir_bytes s, uint32_t hash,
                      uint32_t *ret_index);

/* The index of a text, when it was written from that text before. */
static inline bool wr_trace_dict_has(const struct wr_trace_dict *d, struct weir_text *t,
                                     uint32_t *ret_index)
{
    /* Another thread may store its own index meanwhile; any value is checked. */
    const uint32_t index = atomic_load_explicit(&t->slot, memory_order_relaxed);
    *ret_index = index;
    return WR_LIKELY(index < d->count && d->owners[index] == t);
}
/* After find or add: the next has() answers. */
static inline void wr_trace_dict_own(struct wr_trace_dict *d, struct weir_text *t, uint32_t index)
{
    d->owners[index] = t;
    atomic_store_explicit(&t->slot, index, memory_order_relaxed);
}

/* Forget the strings from index count on; capacity stays. */
void wr_trace_dict_rewind(struct wr_trace_dict *d, size_t count);

/* Where text ends without what was appended behind the strings. */
size_t wr_trace_dict_text_end(const struct wr_trace_dict *d);
#endif
