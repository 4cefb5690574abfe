/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WR_TRACE_DICT_H
#define WR_TRACE_DICT_H
/*
 * dict: the string dictionary of one v0.5 payload, keyed by content.
 *
 *   text     [gap][framed string 0][framed string 1]...   what the payload will carry
 *   entries  index -> hash, place in text
 *   slots    hash -> index, open addressing, at most half full
 *
 * A string is hashed once, when it is looked up; growing uses the stored hashes. Entries are only
 * ever removed newest first, and nothing was placed after them then, so that a removed slot may
 * simply become free: no tombstones.
 *
 * The hash is seeded by the owner, as tag values come from strangers.
 *
 * Threads: one at a time. Memory: text is bounded; 24 bytes of entry and slots a string at most
 * twice that in growth.
 */
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
    size_t count;
    size_t entry_cap;
    struct wr_trace_dict_slot *slots;
    size_t slot_count; /* 0 or a power of two, >= 2 * count */
    uint64_t seed;
};

/* Allocates nothing. max_text bounds text, gap included. */
void wr_trace_dict_init(struct wr_trace_dict *d, const struct weir_alloc *alloc, size_t max_text,
                        uint64_t seed);
void wr_trace_dict_done(struct wr_trace_dict *d);

/*
 * The index of s, added if it is new. Errors: WEIR_EFULL, WEIR_ENOMEM, WEIR_ERANGE; then nothing
 * was added. s.len <= UINT32_MAX.
 */
int wr_trace_dict_index(struct wr_trace_dict *d, struct weir_bytes s, uint32_t *ret_index);

/* Forget the strings from index count on; capacity stays. */
void wr_trace_dict_rewind(struct wr_trace_dict *d, size_t count);

/* Where text ends without what was appended behind the strings. */
size_t wr_trace_dict_text_end(const struct wr_trace_dict *d);
#endif
