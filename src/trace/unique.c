/* SPDX-License-Identifier: Apache-2.0 */
/* unique: see unique.h. */
#include "trace/unique.h"

#include "base/alloc.h"
#include "base/bits.h"
#include "base/hash.h"
#include "trace/text.h"

#define MARK_BITS 1024 /* 2 to the 10th: the top 10 bits of a mark choose one */
#define FEW_KEYS 6
/* Past it the bitmap says "perhaps" for nearly every span: half of 1,024 bits of 40 keys. */
#define BITMAP_MAX_KEYS 40

void wr_trace_unique_init(struct wr_trace_unique *u, const struct weir_alloc *alloc, uint64_t seed)
{
    *u = (struct wr_trace_unique){.alloc = *alloc, .seed = seed};
}

void wr_trace_unique_done(struct wr_trace_unique *u)
{
    wr_free(&u->alloc, u->slots, u->slot_count * sizeof *u->slots);
    wr_free(&u->alloc, u->drop, u->drop_cap);
    u->slots = NULL;
    u->slot_count = 0;
    u->drop = NULL;
    u->drop_cap = 0;
}

static inline struct weir_bytes key_of(const struct weir_trace_tag *tag)
{
    if (tag->key.kind == WEIR_STR_TEXT)
        return weir_text_get_bytes(tag->key.ptr);
    return (struct weir_bytes){.ptr = tag->key.ptr, .len = tag->key.len};
}

static inline uint64_t mark_of(const struct weir_trace_tag *tag)
{
    if (tag->key.kind == WEIR_STR_TEXT)
        return wr_text_of(tag->key)->mark;
    return wr_text_mark(tag->key.ptr, tag->key.len);
}

/* A few marks are compared with each other: cheaper than clearing the bitmap. */
static bool few_may_repeat(const struct weir_trace_tag *tags, size_t count)
{
    uint64_t marks[FEW_KEYS];
    for (size_t i = 0; i < count; i++) {
        marks[i] = mark_of(&tags[i]);
        for (size_t j = 0; j < i; j++) {
            if (marks[j] == marks[i])
                return true;
        }
    }
    return false;
}

static bool may_repeat(const struct weir_trace_tag *tags, size_t count)
{
    if (count <= FEW_KEYS)
        return few_may_repeat(tags, count);
    uint64_t marks[MARK_BITS / 64] = {0};
    for (size_t i = 0; i < count; i++) {
        const uint64_t m = mark_of(&tags[i]) >> 54; /* < MARK_BITS */
        const uint64_t bit = UINT64_C(1) << (m & 63);
        if (marks[m >> 6] & bit)
            return true;
        marks[m >> 6] |= bit;
    }
    return false;
}

static int make_room(struct wr_trace_unique *u, size_t count)
{
    if (count > SIZE_MAX / 16)
        return WEIR_ENOMEM;
    if (u->drop_cap < count) {
        unsigned char *const drop = wr_realloc(&u->alloc, u->drop, u->drop_cap, count);
        if (!drop)
            return WEIR_ENOMEM;
        u->drop = drop;
        u->drop_cap = count;
    }
    const size_t want = wr_pow2_ceil(2 * count);
    if (u->slot_count < want) {
        uint32_t *const slots = wr_realloc(&u->alloc, u->slots, u->slot_count * sizeof *u->slots,
                                           want * sizeof *u->slots);
        if (!slots)
            return WEIR_ENOMEM;
        u->slots = slots;
        u->slot_count = want;
    }
    return WEIR_OK;
}

/* true when tag i's key was not in the set, which it then is. mask + 1 slots, at most half full. */
static bool insert(struct wr_trace_unique *u, size_t mask, const struct weir_trace_tag *tags,
                   size_t i)
{
    const struct weir_bytes k = key_of(&tags[i]);
    for (size_t at = wr_hash(k.len ? k.ptr : "", k.len, u->seed) & mask;; at = (at + 1) & mask) {
        if (u->slots[at] == 0) {
            u->slots[at] = (uint32_t)i + 1;
            return true;
        }
        const struct weir_bytes other = key_of(&tags[u->slots[at] - 1]);
        if (other.len == k.len && (k.len == 0 || memcmp(other.ptr, k.ptr, k.len) == 0))
            return false;
    }
}

int wr_trace_unique_scan(struct wr_trace_unique *u, const struct weir_trace_tag *tags, size_t count,
                         const unsigned char **ret_drop)
{
    *ret_drop = NULL;
    if (count < 2 || (count <= BITMAP_MAX_KEYS && !may_repeat(tags, count)))
        return WEIR_OK;
    const int err = make_room(u, count);
    if (err)
        return err;
    /* Only as much of the table as this span needs: clearing is O(count) then. */
    const size_t slots = wr_pow2_ceil(2 * count);
    memset(u->slots, 0, slots * sizeof *u->slots);
    bool all_fresh = true;
    for (size_t i = count; i-- > 0;) {
        const bool fresh = insert(u, slots - 1, tags, i);
        u->drop[i] = fresh ? 0 : 1;
        all_fresh = all_fresh && fresh;
    }
    if (!all_fresh)
        *ret_drop = u->drop;
    return WEIR_OK;
}
