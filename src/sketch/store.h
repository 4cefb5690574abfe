/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WR_SKETCH_STORE_H
#define WR_SKETCH_STORE_H
/*
 * store: the counters of one sign: one block of memory, seen as an array of 8, 16, 32 or 64-bit
 * counters for the bins [base, base + cap).
 *
 * A counter counts units of 2^-20 << shift: shift 20 is whole weights, shift 0 is what a
 * fractional weight turns it to. Widths only widen until the store is cleared.
 *
 * Invariants: cap <= max_bins; cap << width <= bytes; every byte of the block that is not part of
 * a used counter is 0, so an empty block can be read as any width. Since cap <= max_bins, adding
 * inside the array never needs a collapse: see wr_store_add.
 *
 * Changes of shape are made in two steps, prepare (may allocate, may fail, changes nothing) and
 * commit (cannot fail), so that an operation on two stores can be undone before it is done.
 *
 * Threads: owner. Memory: blocks of whole 64-byte lines.
 */
#include <weir/mapping.h>
#include "base/alloc.h"
#include "base/bits.h"

#define WR_STORE_LINE 64u
#define WR_STORE_SHIFT 20u        /* whole weights */
#define WR_STORE_BINS_MOST 32768u /* so that a capacity fits 16 bits */

/* The fast way to record into sketches of a kind; none: only the general one. */
enum wr_fast {
    WR_FAST_NONE,
    WR_FAST_VALUE, /* values, the default mapping */
    WR_FAST_TABLE, /* values, a mapping with a table */
    WR_FAST_NS,    /* durations, the default mapping */
};

/* What recording needs of a kind. */
struct wr_kind_head {
    const struct weir_mapping *mapping; /* held */
    uint32_t max_bins;                  /* 2..WR_STORE_BINS_MOST */
    uint8_t grid;
    uint8_t fast; /* enum wr_fast, of the two */
    /* The mapping's table, of WR_FAST_TABLE: at hand here, a load less away. */
    uint8_t cell_shift;
    uint32_t cell_count;
    int32_t index_first;
    const uint64_t *cells;
    uint64_t cell_first;
};

/* What sketches that are made alike share: those of a pool one, any other one of its own. */
struct wr_kind {
    struct wr_kind_head head;
    struct weir_alloc alloc;
    struct weir_sketch_pool *pool; /* that its sketches belong to; NULL: none */
    uint8_t home;                  /* enum wr_kind_home */
    /* Blocks grow by half and more, so that a store that is refilled window after window soon
     * allocates nothing although a new extreme comes now and then; else to what is needed. */
    bool roomy;
};

enum wr_kind_home {
    WR_KIND_FIXED,  /* static: all defaults */
    WR_KIND_BEHIND, /* in the sketch's own allocation */
    WR_KIND_APART,  /* in one of its own */
    WR_KIND_POOL,
};

/* Blocks of up to 192 lines have the number of their lines as their size, then one for 64 more. */
#define WR_STORE_SIZE_FINE 192u
WR_INLINE uint32_t wr_store_bytes(uint8_t size)
{
    const uint32_t lines =
        size <= WR_STORE_SIZE_FINE ? size : WR_STORE_SIZE_FINE + (size - WR_STORE_SIZE_FINE) * 64;
    return lines * WR_STORE_LINE;
}
/* The smallest size that holds bytes. bytes <= WR_STORE_BINS_MOST counters of 8. */
uint8_t wr_store_size(uint32_t bytes);
/* As wr_store_size, in the way of the kind. */
uint8_t wr_store_size_for(const struct wr_kind *kind, uint32_t bytes);

struct wr_store {
    uint8_t *bins;  /* the block; NULL only when bytes is 0 */
    int32_t base;   /* index of the first counter; base + cap - 1 is an int32 too */
    uint32_t cap;   /* counters */
    uint32_t bytes; /* of the block */
    uint8_t width;  /* log2 of the bytes of a counter: 0..3 */
    uint8_t shift;  /* 20 or 0 */
    bool collapsed; /* weight was added to the lowest bin kept */
};

/* A change of shape that is paid for. */
struct wr_store_change {
    uint8_t *block; /* new memory, or NULL: the block stays */
    uint32_t bytes;
    uint32_t cap;
    int32_t base;
    int32_t floor; /* what is below goes into this bin */
    uint8_t width;
    uint8_t shift;
    int32_t src_lo; /* of a merge: the used bins of src, if any */
    int32_t src_hi;
    bool any;
    bool none;      /* nothing to do */
    bool collapsed; /* something is below floor */
};

/* Counter number at of an array of this width. */
WR_INLINE uint64_t wr_counter_get(const uint8_t *bins, uint8_t width, size_t at)
{
    uint64_t v = 0;
    if (width == 0)
        return bins[at];
    if (width == 1) {
        uint16_t c;
        memcpy(&c, bins + at * 2, sizeof c);
        v = c;
    } else if (width == 2) {
        uint32_t c;
        memcpy(&c, bins + at * 4, sizeof c);
        v = c;
    } else {
        memcpy(&v, bins + at * 8, sizeof v);
    }
    return v;
}

/* v must fit. */
WR_INLINE void wr_counter_put(uint8_t *bins, uint8_t width, size_t at, uint64_t v)
{
    if (width == 0) {
        bins[at] = (uint8_t)v;
    } else if (width == 1) {
        const uint16_t c = (uint16_t)v;
        memcpy(bins + at * 2, &c, sizeof c);
    } else if (width == 2) {
        const uint32_t c = (uint32_t)v;
        memcpy(bins + at * 4, &c, sizeof c);
    } else {
        memcpy(bins + at * 8, &v, sizeof v);
    }
}

/* Add weight to bin index if the array covers it and the counter can hold it; else change nothing
 * and say false. The caller has made sure that the total of the store stays within 64 bits. */
WR_INLINE bool wr_store_try_add(struct wr_store *st, int32_t index, uint64_t weight)
{
    const uint32_t at = (uint32_t)index - (uint32_t)st->base;
    const uint64_t n = weight >> st->shift;
    if (WR_UNLIKELY(at >= st->cap || n << st->shift != weight))
        return false;
    if (WR_LIKELY(st->width == 0)) {
        const uint64_t sum = st->bins[at] + n;
        if (WR_UNLIKELY(sum > UINT8_MAX))
            return false;
        st->bins[at] = (uint8_t)sum;
        return true;
    }
    const uint64_t sum = wr_counter_get(st->bins, st->width, at) + n;
    if (WR_UNLIKELY(st->width < 3 && sum >> (8u << st->width)))
        return false;
    wr_counter_put(st->bins, st->width, at, sum);
    return true;
}

/* As wr_store_try_add, growing, widening or collapsing as it must. WEIR_OK or WEIR_ENOMEM
 * (unchanged). */
int wr_store_add(struct wr_store *st, const struct wr_kind *kind, int32_t index, uint64_t weight);
/* Make room for counters of at most peak (in units of 2^-20 << shift) in [lo, hi] of an empty
 * store; what is below hi - max_bins + 1 will not be covered. WEIR_OK or WEIR_ENOMEM. */
int wr_store_reserve(struct wr_store *st, const struct wr_kind *kind, int32_t lo, int32_t hi,
                     uint64_t peak, uint8_t shift);
/* The lowest and highest bin that is not empty; false when all are. O(cap). */
bool wr_store_used(const struct wr_store *st, int32_t *ret_lo, int32_t *ret_hi);
/* Weight of the bin, 0 when it is not covered. */
uint64_t wr_store_weight_at(const struct wr_store *st, int32_t index);
/* Sum over the counters. */
uint64_t wr_store_weight(const struct wr_store *st);

/* Add src to dst at once if that takes no change of shape: one pass. false: nothing is changed.
 * Whether anything collapsed is left to the caller. */
bool wr_store_merge_inside(const struct wr_store *dst, const struct wr_store *src);
/* src may be NULL: nothing to add. total is at least the weight of both, in units of 2^-20.
 * WEIR_OK or WEIR_ENOMEM. */
int wr_store_merge_prepare(const struct wr_store *dst, const struct wr_kind *kind,
                           const struct wr_store *src, uint64_t total,
                           struct wr_store_change *ret_change);
void wr_store_merge_commit(struct wr_store *dst, const struct wr_kind *kind,
                           const struct wr_store *src, const struct wr_store_change *change);
/* Instead of commit. */
void wr_store_change_drop(const struct wr_kind *kind, struct wr_store_change *change);

/* Empty it; [lo, hi] is known to hold every bin that is not empty. The block stays. */
void wr_store_clear(struct wr_store *st, const struct wr_kind *kind, int32_t lo, int32_t hi);
void wr_store_done(struct wr_store *st, const struct wr_kind *kind);
bool wr_store_check(const struct wr_store *st, const struct wr_kind *kind);
#endif
