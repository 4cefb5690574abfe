/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WR_SKETCH_FORM_H
#define WR_SKETCH_FORM_H
/*
 * form: the compact form, versions 1 and 2, as encode.c and decode.c share it:
 * docs/formats/sketch.md. Version 2 is for what 1 cannot say.
 *
 * The form is canonical: equal contents give equal bytes, and the decoder refuses every other
 * spelling of them. So whatever is accepted and fits the bin limit is encoded to the same bytes.
 */
#include "sketch/state.h"

#define VERSION 1u
#define VERSION_MORE 2u
#define SUM_BYTES 16u

enum {
    FLAG_NS = 1 << 0,         /* grid */
    FLAG_FRACTION = 1 << 1,   /* weights are in units of 2^-20 */
    FLAG_ZERO = 1 << 2,       /* there is a zero bin */
    FLAG_POS = 1 << 3,        /* there are positive bins */
    FLAG_NEG = 1 << 4,        /* there are negative bins */
    FLAG_POS_SPARSE = 1 << 5, /* and they are pairs, not a run */
    FLAG_NEG_SPARSE = 1 << 6,
    FLAG_ALL = (1 << 7) - 1,
};
#define FLAG_CONTENT (FLAG_ZERO | FLAG_POS | FLAG_NEG)

/* The second byte of flags, of version 2. */
enum {
    MORE_MAPPING = 1 << 0,       /* of another kind than base 2: spelled out */
    MORE_POS_COLLAPSED = 1 << 1, /* low positive bins were added to the lowest */
    MORE_NEG_COLLAPSED = 1 << 2,
    MORE_LOOSE = 1 << 3,   /* the extremes need not be in the outermost bins */
    MORE_DERIVED = 1 << 4, /* sum, minimum or maximum is derived from bins */
    MORE_ERROR = 1 << 5,   /* bins came from another mapping, with this relative error */
    MORE_ALL = (1 << 6) - 1,
};
#define MORE_COLLAPSED (MORE_POS_COLLAPSED | MORE_NEG_COLLAPSED)

/* Which collapse version 1 tells without a flag: with one sign alone, and no zeros, the extreme
 * nearest zero lies below the lowest bin. place and index: of that extreme. */
static inline unsigned form_implied(unsigned flags, enum wr_sign place, int32_t index,
                                    int32_t first)
{
    const unsigned content = flags & FLAG_CONTENT;
    if (content == FLAG_POS && place == WR_POSITIVE && index < first)
        return MORE_POS_COLLAPSED;
    if (content == FLAG_NEG && place == WR_NEGATIVE && index < first)
        return MORE_NEG_COLLAPSED;
    return 0;
}

/* Version 1 says it: more is what a form of version 2 would say, implied what one of version 1
 * implies. */
static inline bool form_is_plain(unsigned more, unsigned implied)
{
    return more == implied;
}

static inline uint64_t zigzag(int32_t v)
{
    return v < 0 ? (uint64_t)(-(int64_t)v) * 2 - 1 : (uint64_t)v * 2;
}

static inline size_t varint_bytes(uint64_t v)
{
    return (size_t)(70 - wr_clz64(v | 1)) / 7;
}

/*
 * The bytes a store's bins take, in both ways of writing them. A run is the first index, how many
 * bins, and every count from the lowest to the highest used; pairs are how many, and for each
 * used bin how many unused ones it is away from the one before, and its count.
 */
struct sizes {
    uint32_t used;
    int32_t first;
    int32_t last;
    size_t counts; /* bytes of the counts of the used bins */
    size_t gaps;   /* bytes of the distances */
};

WR_INLINE void sizes_add(struct sizes *s, int32_t index, uint64_t count)
{
    if (!s->used)
        s->first = index;
    else
        s->gaps += varint_bytes((uint64_t)(index - s->last - 1));
    s->counts += varint_bytes(count);
    s->last = index;
    s->used++;
}

/*
 * The same for each bin of a run in turn, empty ones too, without a branch on which are: that is
 * what a run costs. The caller sets first and last, and neither is empty. A distance takes one
 * byte, and one more when it reaches 2^7, and 2^14.
 */
WR_INLINE void sizes_add_next(struct sizes *s, uint32_t *empty_run, uint64_t count)
{
    const uint32_t used = count != 0;
    s->counts += used;
    if (count >= 0x80) /* in one place of a distribution, so well predicted */
        s->counts += varint_bytes(count) - 1;
    s->used += used;
    *empty_run = used ? 0 : *empty_run + 1;
    s->gaps += used + (*empty_run == 1u << 7) + (*empty_run == 1u << 14);
}

/* So many empty bins of a run. */
WR_INLINE void sizes_add_empty(struct sizes *s, uint32_t *empty_run, uint32_t n)
{
    const uint32_t before = *empty_run;
    *empty_run += n;
    s->gaps += before < 1u << 7 && *empty_run >= 1u << 7;
    s->gaps += before < 1u << 14 && *empty_run >= 1u << 14;
}

/* The first used bin has no distance. */
WR_INLINE void sizes_end(struct sizes *s)
{
    s->gaps -= s->used != 0;
}

static inline size_t run_bytes(const struct sizes *s)
{
    const size_t span = (size_t)(s->last - s->first) + 1;
    return varint_bytes(zigzag(s->first)) + varint_bytes(span) + s->counts + (span - s->used);
}

static inline size_t pairs_bytes(const struct sizes *s)
{
    return varint_bytes(zigzag(s->first)) + varint_bytes(s->used) + s->counts + s->gaps;
}
#endif
