/* SPDX-License-Identifier: Apache-2.0 */
/* unique: see unique.h. */
#include "trace/unique.h"

#include "base/alloc.h"
#include "base/bits.h"
#include "base/hash.h"

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

static const struct weir_bytes *key_at(const struct weir_bytes *first, size_t stride, size_t i)
{
    const void *const at = (const char *)first + i * stride;
    return at;
}

/* Length, first and last bytes: equal keys give equal marks, that is all it must do. */
static WR_WRAPS uint64_t cheap_mark(struct weir_bytes k)
{
    uint64_t head = 0;
    uint64_t tail = 0;
    if (k.len >= 8) {
        head = wr_load64le(k.ptr);
        tail = wr_load64le(k.ptr + k.len - 8);
    } else if (k.len >= 4) {
        head = wr_load32le(k.ptr);
        tail = wr_load32le(k.ptr + k.len - 4);
    } else {
        for (size_t i = 0; i < k.len; i++)
            head = head << 8 | (unsigned char)k.ptr[i];
    }
    return (head ^ (tail << 29 | tail >> 35) ^ k.len) * UINT64_C(0x9E3779B97F4A7C15);
}

/* A few marks are compared with each other: cheaper than clearing the bitmap. */
static bool few_may_repeat(const struct weir_bytes *first, size_t stride, size_t count)
{
    uint64_t marks[FEW_KEYS];
    for (size_t i = 0; i < count; i++) {
        marks[i] = cheap_mark(*key_at(first, stride, i));
        for (size_t j = 0; j < i; j++) {
            if (marks[j] == marks[i])
                return true;
        }
    }
    return false;
}

static bool may_repeat(const struct weir_bytes *first, size_t stride, size_t count)
{
    if (count <= FEW_KEYS)
        return few_may_repeat(first, stride, count);
    uint64_t marks[MARK_BITS / 64] = {0};
    for (size_t i = 0; i < count; i++) {
        const uint64_t m = cheap_mark(*key_at(first, stride, i)) >> 54; /* < MARK_BITS */
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

/* true when k was not in the set, which it then is. mask + 1 slots, at most half full. */
static bool insert(struct wr_trace_unique *u, size_t mask, const struct weir_bytes *first,
                   size_t stride, size_t i)
{
    const struct weir_bytes k = *key_at(first, stride, i);
    for (size_t at = wr_hash(k.len ? k.ptr : "", k.len, u->seed) & mask;; at = (at + 1) & mask) {
        if (u->slots[at] == 0) {
            u->slots[at] = (uint32_t)i + 1;
            return true;
        }
        const struct weir_bytes other = *key_at(first, stride, u->slots[at] - 1);
        if (other.len == k.len && (k.len == 0 || memcmp(other.ptr, k.ptr, k.len) == 0))
            return false;
    }
}

int wr_trace_unique_scan(struct wr_trace_unique *u, const struct weir_bytes *first, size_t stride,
                         size_t count, const unsigned char **ret_drop, size_t *ret_kept)
{
    *ret_drop = NULL;
    *ret_kept = count;
    if (count < 2 || (count <= BITMAP_MAX_KEYS && !may_repeat(first, stride, count)))
        return WEIR_OK;
    const int err = make_room(u, count);
    if (err)
        return err;
    /* Only as much of the table as this span needs: clearing is O(count) then. */
    const size_t slots = wr_pow2_ceil(2 * count);
    memset(u->slots, 0, slots * sizeof *u->slots);
    size_t kept = 0;
    for (size_t i = count; i-- > 0;) {
        const bool fresh = insert(u, slots - 1, first, stride, i);
        u->drop[i] = fresh ? 0 : 1;
        kept += fresh ? 1 : 0;
    }
    *ret_kept = kept;
    if (kept < count)
        *ret_drop = u->drop;
    return WEIR_OK;
}
