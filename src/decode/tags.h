/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WR_DECODE_TAGS_H
#define WR_DECODE_TAGS_H
/*
 * tags: the table of wanted attribute names, as decoders see it: one inlined look-up a name.
 *
 * Idea: a name is hashed by its length and its first and last eight bytes, so the cost does not
 * depend on the length; the table is four times as large as it can get names, and its multiplier
 * is chosen when it is made so that (nearly) every name lies at its own place. Then an unwanted
 * name costs one load, and a wanted one two to four compares of eight bytes; only names of more
 * than 32 bytes need a memcmp. A stranger cannot lengthen a probe: only wanted names are in the
 * table.
 *
 * Threads: immutable once made. Memory: one allocation.
 */
#include "base/bits.h"

#include <weir/span.h>

#define WR_TAG_NAMES_MAX 250u
#define WR_TAG_TABLE_BITS 10u

struct wr_tag_entry {
    uint64_t head; /* the first eight bytes, or what there is of them: see wr_tag_word */
    uint64_t tail; /* the last eight */
    const char *name;
    uint32_t len;
    uint8_t match; /* the first of its matches */
};

struct weir_tags {
    struct weir_alloc alloc;
    size_t block_bytes;
    uint64_t multiplier;
    size_t entry_count;
    size_t match_count;
    struct wr_tag_entry entries[WR_TAG_NAMES_MAX];
    struct weir_tag_match matches[WR_TAG_NAMES_MAX];
    uint8_t table[1u << WR_TAG_TABLE_BITS]; /* entry + 1; 0 is free */
};

/* Two words that, with the length, hold every byte of a name of up to 16. */
WR_INLINE void wr_tag_words(const char *name, size_t len, uint64_t *ret_head, uint64_t *ret_tail)
{
    if (WR_LIKELY(len >= 8)) {
        *ret_head = wr_load64le(name);
        *ret_tail = wr_load64le(name + len - 8);
    } else if (len >= 4) {
        *ret_head = wr_load32le(name);
        *ret_tail = wr_load32le(name + len - 4);
    } else {
        *ret_head = len ? (uint8_t)name[0] : 0;
        *ret_tail = len ? (uint64_t)(uint8_t)name[len / 2] << 8 | (uint8_t)name[len - 1] : 0;
    }
}

WR_INLINE WR_WRAPS size_t wr_tag_place(uint64_t multiplier, uint64_t head, uint64_t tail,
                                       size_t len)
{
    /* The rotation keeps a name whose head equals its tail from hashing to its length alone. */
    const uint64_t mixed = head ^ (tail << 23 | tail >> 41) ^ (uint64_t)len << 56;
    const uint64_t h = mixed * multiplier;
    return (size_t)((h ^ h >> 32) * multiplier >> (64 - WR_TAG_TABLE_BITS));
}

/* Are two names equal between their first and last eight bytes, which are known to be equal? */
WR_INLINE bool wr_same_middle(const void *a, const void *b, size_t len)
{
    const uint8_t *const pa = a;
    const uint8_t *const pb = b;
    if (len <= 16)
        return true;
    if (len <= 32)
        return wr_load64le(pa + 8) == wr_load64le(pb + 8) &&
               wr_load64le(pa + len - 16) == wr_load64le(pb + len - 16);
    return memcmp(pa + 8, pb + 8, len - 16) == 0;
}

/* The entry of a name, or NULL. */
WR_INLINE const struct wr_tag_entry *wr_tag_entry(const struct weir_tags *tags, const char *name,
                                                  size_t len)
{
    uint64_t head;
    uint64_t tail;
    wr_tag_words(name, len, &head, &tail);
    size_t place = wr_tag_place(tags->multiplier, head, tail, len);
    for (;;) {
        const unsigned index = tags->table[place];
        if (WR_LIKELY(index == 0))
            return NULL;
        const struct wr_tag_entry *const e = &tags->entries[index - 1];
        if (e->len == len && e->head == head && e->tail == tail &&
            wr_same_middle(e->name, name, len))
            return e;
        place = (place + 1) & ((1u << WR_TAG_TABLE_BITS) - 1);
    }
}

WR_INLINE const struct weir_tag_match *wr_tags_find(const struct weir_tags *tags, const char *name,
                                                    size_t len)
{
    const struct wr_tag_entry *const e = wr_tag_entry(tags, name, len);
    return e ? &tags->matches[e->match] : NULL;
}

#define WR_TAG_MATCH_END 0xffu

WR_INLINE const struct weir_tag_match *wr_tags_next(const struct weir_tags *tags,
                                                    const struct weir_tag_match *match)
{
    return match->next == WR_TAG_MATCH_END ? NULL : &tags->matches[match->next];
}
#endif
