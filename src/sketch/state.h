/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WR_SKETCH_STATE_H
#define WR_SKETCH_STATE_H
/*
 * state: what is inside a struct weir_sketch; for the files of this folder.
 *
 * A sketch is one line of 64 bytes and one block of bins, so recording touches two lines. What all
 * sketches of a pool share (kind) and what few sketches need (rest) lie elsewhere.
 *
 * The positive bins are a list while there are few: the samples one by one, 16 bits each, in the
 * order they came. Then they are counters: see store.h. Functions that only read need not know:
 * wr_sketch_positive shows either as counters.
 *
 * Invariants (wr_sketch_check): weight = zero + sum of the bins of both signs; unless loose, the
 * highest used bin of the store that has the maximum is the maximum's own, and likewise the
 * minimum for negatives, and the used bins lie within those of min and max. A list is of whole
 * samples of weight one, within WR_LIST_SPAN bins; the bytes behind it are 0.
 */
#include "sketch/mapping.h"
#include "sketch/sketch.h"
#include "sketch/store.h"

/* A minimum or maximum: exact, in the unit recorded. */
union wr_extreme {
    int64_t ns;
    double value;
};

/* What is rare: zeros, negatives, a conversion behind it. Made on first need, then kept. */
struct wr_rest {
    struct wr_kind_head head;   /* that of the kind, so that recording need not ask which it is */
    const struct wr_kind *kind; /* that of the sketch, whose place this struct takes */
    uint64_t zero;              /* weight of the zero bin */
    struct wr_store neg;        /* of magnitudes; never a list */
    double error;               /* relative, that bins brought from another mapping */
};

/* struct weir_sketch, flags */
enum {
    WR_SK_WIDTH = 3,          /* log2 of the bytes of a counter */
    WR_SK_FINE = 1 << 2,      /* counters are of 2^-20; else of whole weights */
    WR_SK_LIST = 1 << 3,      /* the block is a list, cap its length */
    WR_SK_COLLAPSED = 1 << 4, /* positive bins were added to the lowest kept */
    WR_SK_REST = 1 << 5,      /* there is a struct wr_rest */
    /* the extremes came with foreign bins, and may lie outside them; what is collapsed may be so
     * by a limit that is not this sketch's */
    WR_SK_LOOSE = 1 << 6,
    WR_SK_DERIVED = 1 << 7, /* sum, minimum or maximum is derived from bins */
};
#define WR_SK_SHAPE (WR_SK_WIDTH | WR_SK_FINE | WR_SK_LIST)

struct weir_sketch {
    union {
        const struct wr_kind *kind;
        struct wr_rest *rest; /* WR_SK_REST */
        const struct wr_kind_head *head;
    } of;
    uint8_t *bins; /* the block; NULL only while size is 0 */
    int32_t base;  /* index of the first counter; what a list counts from */
    uint16_t cap;  /* counters; of a list: samples */
    uint8_t size;  /* of the block: wr_store_bytes */
    uint8_t flags;
    uint64_t weight; /* units of 2^-20 */
    union {
        wr_uint128 ns; /* sum of duration * weight, units of 2^-20 ns */
        struct {
            double sum;  /* of value * weight, in whole weights */
            double rest; /* what rounding took from sum (Neumaier) */
        } value;
    } sum;
    union wr_extreme min; /* the greatest of the type while empty, so that one compare is enough */
    union wr_extreme max;
};

_Static_assert(sizeof(struct weir_sketch) == 64, "one line");

#define WR_LIST_MAX 128u   /* samples: four lines */
#define WR_LIST_LINE 32u   /* samples a line */
#define WR_LIST_SPAN 2048u /* bins a list may reach over: what a reader spreads it out on */

WR_INLINE const struct wr_kind *wr_sketch_kind(const struct weir_sketch *sk)
{
    return sk->flags & WR_SK_REST ? sk->of.rest->kind : sk->of.kind;
}

WR_INLINE uint32_t wr_sketch_grid(const struct weir_sketch *sk)
{
    return sk->of.head->grid;
}

WR_INLINE const struct weir_mapping *wr_sketch_mapping(const struct weir_sketch *sk)
{
    return sk->of.head->mapping;
}

WR_INLINE uint64_t wr_sketch_zero(const struct weir_sketch *sk)
{
    return sk->flags & WR_SK_REST ? sk->of.rest->zero : 0;
}

/* Its rest, made on first need; NULL: no memory. */
struct wr_rest *wr_sketch_rest(struct weir_sketch *sk);

/* The relative error that bins brought here from another mapping, beside that of this one. */
double wr_sketch_inherited(const struct weir_sketch *sk);
/* It is at least this from now on. WEIR_OK or WEIR_ENOMEM. */
int wr_sketch_inherit(struct weir_sketch *sk, double error);

/* The bin of a magnitude: finite, above WR_MAPPING_ZERO_MAX. */
WR_INLINE int32_t wr_index_value(const struct weir_mapping *m, double magnitude)
{
    if (WR_LIKELY(m == &wr_mapping_default))
        return wr_mapping_index_value(magnitude);
    return wr_mapping_index(m, magnitude);
}

WR_INLINE uint8_t wr_fast_of(const struct weir_mapping *m, uint32_t grid)
{
    if (m == &wr_mapping_default)
        return grid == WEIR_GRID_NS ? WR_FAST_NS : WR_FAST_VALUE;
    return grid == WEIR_GRID_VALUE && m->cell_count ? WR_FAST_TABLE : WR_FAST_NONE;
}

WR_INLINE struct wr_kind_head wr_kind_head_of(const struct weir_mapping *m, uint32_t max_bins,
                                              uint32_t grid)
{
    return (struct wr_kind_head){.mapping = m,
                                 .max_bins = max_bins,
                                 .grid = (uint8_t)grid,
                                 .fast = wr_fast_of(m, grid),
                                 .cell_shift = (uint8_t)m->cell_shift,
                                 .cell_count = m->cell_count,
                                 .index_first = m->index_first,
                                 .cells = m->cells,
                                 .cell_first = m->cell_first};
}

/* The bin of a duration above 0. */
WR_INLINE int32_t wr_sketch_index_ns(const struct weir_sketch *sk, int64_t duration_ns)
{
    const struct weir_mapping *const m = wr_sketch_mapping(sk);
    if (WR_LIKELY(m == &wr_mapping_default))
        return wr_mapping_index_ns(duration_ns);
    return wr_mapping_index_duration(m, duration_ns);
}

/* The options with defaults filled in. WEIR_OK or WEIR_EINVAL. opts may be NULL. */
int wr_sketch_opts_read(const struct weir_sketch_opts *opts, struct weir_sketch_opts *ret_opts);
/* Take over another mapping; sk is empty. WEIR_OK, WEIR_ENOMEM, or WEIR_EVERSION (it is of a
 * pool). */
int wr_sketch_set_mapping(struct weir_sketch *sk, const struct weir_mapping *mapping);
/* A sketch in memory that is there, of a kind that outlives it. */
void wr_sketch_init(struct weir_sketch *sk, const struct wr_kind *kind);
/* Give back all but the header. */
void wr_sketch_strip(struct weir_sketch *sk);

/* The exact sum of a WEIR_GRID_VALUE sketch as hi + lo, |lo| at most half an ulp of hi. Equal sums
 * give equal bits. Finite: past DBL_MAX it stays there. */
void wr_sketch_sum_split(const struct weir_sketch *sk, double *ret_hi, double *ret_lo);

/* The positive bins as counters. A list is spread out in the memory given. */
struct wr_spread {
    struct wr_store store;
    uint64_t counters[WR_LIST_SPAN / 8];
};
const struct wr_store *wr_sketch_positive(const struct weir_sketch *sk, struct wr_spread *spread);
/* The negative bins, by magnitude; NULL: there never were any. */
WR_INLINE const struct wr_store *wr_sketch_negative(const struct weir_sketch *sk)
{
    return sk->flags & WR_SK_REST ? &sk->of.rest->neg : NULL;
}

/* The positive counters taken out of the header, and put back. Not of a list. */
struct wr_store wr_sketch_take(const struct weir_sketch *sk);
void wr_sketch_put(struct weir_sketch *sk, const struct wr_store *st);

/* Magnitude classes of an extreme: which store, which bin. */
enum wr_sign { WR_NEGATIVE, WR_ZERO, WR_POSITIVE };
enum wr_sign wr_sketch_place(const struct weir_sketch *sk, const union wr_extreme *x,
                             int32_t *ret_index);
/* An interval that holds every used bin of the store, which is one of sk's, and the highest is
 * used; false: none is. */
bool wr_sketch_pos_range(const struct weir_sketch *sk, const struct wr_store *pos, int32_t *ret_lo,
                         int32_t *ret_hi);
bool wr_sketch_neg_range(const struct weir_sketch *sk, int32_t *ret_lo, int32_t *ret_hi);

/* ---- list.c ---- */

/* The index of sample k of a list. */
WR_INLINE uint32_t wr_list_at(const struct weir_sketch *sk, size_t k)
{
    uint16_t offset;
    memcpy(&offset, sk->bins + k * 2, sizeof offset);
    return offset;
}

/* The lowest and highest index; false: the list is empty. */
bool wr_list_range(const struct weir_sketch *sk, int32_t *ret_lo, int32_t *ret_hi);
/* Make room for one sample of this index, or turn the list into counters. WEIR_OK or WEIR_ENOMEM
 * (unchanged). */
int wr_list_room(struct weir_sketch *sk, int32_t index);
/* Turn it into counters. WEIR_OK or WEIR_ENOMEM (unchanged). */
int wr_list_spread(struct weir_sketch *sk);
/* Append the samples of another list. false: they do not fit, nothing is changed. */
bool wr_list_join(struct weir_sketch *dst, const struct weir_sketch *src);
/* Add the samples of src, a list, to the counters of dst, if they are whole and have room for all
 * where they are; else nothing is changed. */
bool wr_list_merge_inside(struct weir_sketch *dst, const struct weir_sketch *src);
bool wr_list_check(const struct weir_sketch *sk);

/* Append a sample of weight one at this distance from the base, if that takes no other block. */
WR_INLINE bool wr_list_try_append(struct weir_sketch *sk, uint32_t at)
{
    const uint32_t n = sk->cap;
    if (WR_UNLIKELY(at >= WR_LIST_SPAN || n % WR_LIST_LINE == 0))
        return false; /* a line is there whole, so only its first sample may lack room */
    const uint16_t offset = (uint16_t)at;
    memcpy(sk->bins + (size_t)n * 2, &offset, sizeof offset);
    sk->cap = (uint16_t)(n + 1);
    return true;
}

/* Add n to a counter that lies at p, if it has room. */
#define WR_COUNTER_TRY_ADD(type, p, n)                                                             \
    type wr_c;                                                                                     \
    memcpy(&wr_c, (p), sizeof wr_c);                                                               \
    if (WR_UNLIKELY(__builtin_add_overflow(wr_c, (n), &wr_c)))                                     \
        return false;                                                                              \
    memcpy((p), &wr_c, sizeof wr_c);                                                               \
    return true

WR_INLINE bool wr_counter_try_add(uint8_t *bins, unsigned width, size_t at, uint64_t n)
{
    if (width == 0) {
        WR_COUNTER_TRY_ADD(uint8_t, bins + at, n);
    }
    if (width == 1) {
        WR_COUNTER_TRY_ADD(uint16_t, bins + at * 2, n);
    }
    if (width == 2) {
        WR_COUNTER_TRY_ADD(uint32_t, bins + at * 4, n);
    }
    WR_COUNTER_TRY_ADD(uint64_t, bins + at * 8, n);
}
#undef WR_COUNTER_TRY_ADD

/* In a block of this shape, of counters. */
WR_INLINE bool wr_counters_try_count(struct weir_sketch *sk, uint32_t shape, uint32_t at,
                                     uint64_t weight)
{
    const unsigned shift = shape & WR_SK_FINE ? 0 : WR_STORE_SHIFT;
    const uint64_t n = weight >> shift;
    if (WR_UNLIKELY(at >= sk->cap || n << shift != weight))
        return false;
    return wr_counter_try_add(sk->bins, shape & WR_SK_WIDTH, at, n);
}

/*
 * Add weight to positive bin index if that takes no change of shape; else change nothing and say
 * false. The caller has made sure that the total stays within 64 bits. Shapes are told apart before
 * anything else, so that each of the usual ones has its own few instructions.
 */
WR_INLINE bool wr_sketch_try_count(struct weir_sketch *sk, int32_t index, uint64_t weight)
{
    const uint32_t at = (uint32_t)index - (uint32_t)sk->base;
    const uint32_t shape = sk->flags & WR_SK_SHAPE;
    if (shape == 0)
        return wr_counters_try_count(sk, 0, at, weight);
    if (shape == WR_SK_LIST)
        return weight == WEIR_WEIGHT_ONE && wr_list_try_append(sk, at);
    if (shape == 1)
        return wr_counters_try_count(sk, 1, at, weight);
    if (shape == 2)
        return wr_counters_try_count(sk, 2, at, weight);
    return wr_counters_try_count(sk, shape, at, weight);
}

/* As wr_sketch_try_count, with whatever it takes. WEIR_OK or WEIR_ENOMEM (unchanged). */
int wr_sketch_count(struct weir_sketch *sk, int32_t index, uint64_t weight);
/* The same for a negative value's magnitude. */
int wr_sketch_count_negative(struct weir_sketch *sk, int32_t index, uint64_t weight);
int wr_sketch_count_zero(struct weir_sketch *sk, uint64_t weight);
/* The header of a sketch that has nothing any more, back to the pool it is of. */
void wr_sketch_pool_take_back(struct weir_sketch_pool *pool, struct weir_sketch *sk);
#endif
