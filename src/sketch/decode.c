/* SPDX-License-Identifier: Apache-2.0 */
/*
 * decode: a sketch from its compact form. See form.h.
 *
 * The bytes are a stranger's. They are read twice: first everything is checked, with no memory,
 * then one block is made for the bins that are there and they are put in. Only used bins and the
 * sketch's own limit decide its size, never a number that the bytes claim.
 *
 * Threads: owner. Memory: see wr_store_reserve.
 */
#include "sketch/form.h"

#include <float.h>

/* Reading: the first error stands, and everything read after it is 0. */
struct reader {
    const uint8_t *at;
    const uint8_t *end;
    int err;
};

static void refuse(struct reader *r, int err)
{
    if (!r->err)
        r->err = err;
    r->at = r->end;
}

static uint8_t read_byte(struct reader *r)
{
    if (r->at == r->end) {
        refuse(r, WEIR_ETRUNCATED);
        return 0;
    }
    return *r->at++;
}

static WR_NOINLINE uint64_t read_varint_slow(struct reader *r)
{
    uint64_t v = 0;
    for (unsigned shift = 0; shift < 70; shift += 7) {
        const uint8_t b = read_byte(r);
        if (r->err)
            return 0;
        if (shift == 63 && b > 1)
            break; /* past 64 bits */
        v |= (uint64_t)(b & 0x7f) << shift;
        if (b & 0x80)
            continue;
        if (b == 0 && shift)
            break; /* longer than it has to be */
        return v;
    }
    refuse(r, WEIR_EFORMAT);
    return 0;
}

WR_INLINE uint64_t read_varint(struct reader *r)
{
    const uint8_t *const at = r->at;
    if (WR_LIKELY(at < r->end && at[0] < 0x80)) {
        r->at = at + 1;
        return at[0];
    }
    if (r->end - at >= 2 && at[1] && at[1] < 0x80) {
        r->at = at + 2;
        return (uint64_t)(at[0] & 0x7f) | (uint64_t)at[1] << 7;
    }
    return read_varint_slow(r);
}

static uint64_t read_u64(struct reader *r)
{
    if (r->end - r->at < 8) {
        refuse(r, WEIR_ETRUNCATED);
        return 0;
    }
    const uint64_t v = wr_load64le(r->at);
    r->at += 8;
    return v;
}

static double read_double(struct reader *r)
{
    const uint64_t bits = read_u64(r);
    double v;
    memcpy(&v, &bits, sizeof v);
    return v;
}

/* A weight: not 0, and within 64 bits in units of 2^-20. */
WR_INLINE uint64_t read_weight(struct reader *r, uint8_t unit)
{
    const uint64_t v = read_varint(r);
    if (!r->err && (v == 0 || v > UINT64_MAX >> unit))
        refuse(r, WEIR_EFORMAT);
    return r->err ? 0 : v << unit;
}

/* What the first reading finds in the bins of one sign. Weights are in units of the form. */
struct bins {
    const uint8_t *at; /* where the counts start */
    uint64_t n;        /* how many of them */
    bool pairs;
    struct sizes sizes;
    uint64_t weight;
    uint64_t peak;
    uint64_t bits; /* of all weights */
};

struct decoded {
    uint8_t flags;
    uint8_t unit;
    uint64_t weight;
    uint64_t zero;
    struct wr_kind kind;       /* grid and mapping of it */
    struct weir_sketch totals; /* weight, sum, min and max of it; of that kind */
    struct bins pos;
    struct bins neg;
};

/* Totals over the counts; false: they pass 64 bits. */
WR_INLINE bool take_count(struct bins *b, uint64_t count)
{
    b->bits |= count;
    b->peak = count > b->peak ? count : b->peak;
    return !__builtin_add_overflow(b->weight, count, &b->weight);
}

/* Every bin from index on; none is empty at either end. */
static void scan_run(struct reader *r, struct bins *b, int32_t index)
{
    struct bins t = *b; /* a copy, so that it can live in registers */
    uint32_t empty_run = 0;
    bool fits = true;
    const bool starts = *r->at != 0;
    for (uint64_t k = 0; k < t.n && !r->err; k++) {
        const uint64_t count = read_varint(r);
        fits &= take_count(&t, count);
        sizes_add_next(&t.sizes, &empty_run, count);
    }
    sizes_end(&t.sizes);
    t.sizes.first = index;
    t.sizes.last = index + (int32_t)t.n - 1;
    if (!fits || !starts || empty_run)
        refuse(r, WEIR_EFORMAT);
    *b = t;
}

/* Bins that are not empty, each so many after the one before; none above most. */
static void scan_pairs(struct reader *r, struct bins *b, int32_t index, int32_t most)
{
    for (uint64_t k = 0; k < b->n && !r->err; k++) {
        if (k) {
            const uint64_t gap = read_varint(r);
            if (gap >= (uint64_t)(most - index)) {
                refuse(r, WEIR_EFORMAT);
                return;
            }
            index += 1 + (int32_t)gap;
        }
        const uint64_t count = read_varint(r);
        if (!count || !take_count(b, count))
            refuse(r, WEIR_EFORMAT);
        sizes_add(&b->sizes, index, count);
    }
}

/* Read and check one block of bins. Bounded by the range of indices. */
static void scan_bins(struct reader *r, const struct decoded *d, bool pairs, struct bins *ret_bins)
{
    const bool ns = d->kind.head.grid == WEIR_GRID_NS;
    const int32_t least = ns ? WR_MAPPING_NS_MIN : WR_MAPPING_VALUE_MIN;
    const int32_t most = ns ? WR_MAPPING_NS_MAX : WR_MAPPING_VALUE_MAX;
    const uint64_t first = read_varint(r);
    struct bins b = {.pairs = pairs, .n = read_varint(r)};
    if (!r->err && r->at == r->end)
        refuse(r, WEIR_ETRUNCATED);
    if (r->err)
        return;
    b.at = r->at;
    const int64_t index = first & 1 ? -(int64_t)(first / 2) - 1 : (int64_t)(first / 2);
    if (index < least || index > most || b.n == 0 || b.n > (uint64_t)(most - index) + 1) {
        refuse(r, WEIR_EFORMAT);
        return;
    }
    if (pairs)
        scan_pairs(r, &b, (int32_t)index, most);
    else
        scan_run(r, &b, (int32_t)index);
    if (r->err)
        return;
    if (b.weight > UINT64_MAX >> d->unit || pairs != (pairs_bytes(&b.sizes) < run_bytes(&b.sizes)))
        refuse(r, WEIR_EFORMAT);
    *ret_bins = b;
}

/* The second reading: what scan_bins has accepted goes into st, which is empty. */
static int load_bins(const struct wr_kind *kind, struct wr_store *st, const struct bins *b,
                     const uint8_t *end, uint8_t unit)
{
    struct reader r = {.at = b->at, .end = end};
    int32_t index = b->sizes.first;
    int err = wr_store_reserve(st, kind, index, b->sizes.last, b->peak, unit);
    const bool covered = err == WEIR_OK && index >= st->base;
    for (uint64_t k = 0; k < b->n && err == WEIR_OK; k++) {
        if (k)
            index += b->pairs ? 1 + (int32_t)read_varint(&r) : 1;
        const uint64_t count = read_varint(&r);
        if (covered)
            wr_counter_put(st->bins, st->width, (size_t)(index - st->base), count);
        else if (count) /* more bins than this sketch may have */
            err = wr_store_add(st, kind, index, count << unit);
    }
    return err;
}

static void read_totals(struct reader *r, struct decoded *d)
{
    struct weir_sketch *const t = &d->totals;
    t->weight = read_weight(r, d->unit);
    if (wr_sketch_grid(t) == WEIR_GRID_NS) {
        const uint64_t lo = read_u64(r);
        t->sum.ns = (wr_uint128)read_u64(r) << 64 | lo;
        const uint64_t min = read_varint(r);
        const uint64_t span = read_varint(r);
        if (min > INT64_MAX || span > INT64_MAX - min) {
            refuse(r, WEIR_EFORMAT);
            return;
        }
        t->min.ns = (int64_t)min;
        t->max.ns = (int64_t)(min + span);
        if (t->sum.ns < (wr_uint128)min * t->weight ||
            t->sum.ns > (wr_uint128)(min + span) * t->weight)
            refuse(r, WEIR_EFORMAT);
        return;
    }
    t->sum.value.sum = read_double(r);
    t->sum.value.rest = read_double(r);
    t->min.value = read_double(r);
    t->max.value = read_double(r);
    if (!(fabs(t->min.value) <= DBL_MAX && fabs(t->max.value) <= DBL_MAX &&
          t->min.value <= t->max.value && fabs(t->sum.value.sum) <= DBL_MAX &&
          fabs(t->sum.value.rest) <= DBL_MAX))
        refuse(r, WEIR_EFORMAT);
}

static bool same_bits(double a, double b)
{
    uint64_t bits[2];
    memcpy(&bits[0], &a, sizeof a);
    memcpy(&bits[1], &b, sizeof b);
    return bits[0] == bits[1];
}

/* The sum and the extremes are spelled as the encoder spells them. */
static bool spelled_well(const struct weir_sketch *t)
{
    if (wr_sketch_grid(t) == WEIR_GRID_NS)
        return true;
    double hi;
    double lo;
    wr_sketch_sum_split(t, &hi, &lo);
    return same_bits(hi, t->sum.value.sum) && same_bits(lo, t->sum.value.rest) &&
           same_bits(t->min.value + 0.0, t->min.value) &&
           same_bits(t->max.value + 0.0, t->max.value);
}

/* The maximum is of the bins that are there. */
static bool max_matches(const struct decoded *d)
{
    int32_t index = 0;
    const enum wr_sign place = wr_sketch_place(&d->totals, &d->totals.max, &index);
    if (d->flags & FLAG_POS)
        return place == WR_POSITIVE && index == d->pos.sizes.last;
    if (d->flags & FLAG_ZERO)
        return place == WR_ZERO;
    /* nearer zero than the lowest bin: that one was collapsed */
    return place == WR_NEGATIVE && index <= d->neg.sizes.first;
}

static bool min_matches(const struct decoded *d)
{
    int32_t index = 0;
    const enum wr_sign place = wr_sketch_place(&d->totals, &d->totals.min, &index);
    if (d->flags & FLAG_NEG)
        return place == WR_NEGATIVE && index == d->neg.sizes.last;
    if (d->flags & FLAG_ZERO)
        return place == WR_ZERO;
    return place == WR_POSITIVE && index <= d->pos.sizes.first;
}

static bool totals_match(const struct decoded *d)
{
    uint64_t sum;
    if (__builtin_add_overflow(d->pos.weight << d->unit, d->neg.weight << d->unit, &sum) ||
        __builtin_add_overflow(sum, d->zero, &sum) || sum != d->totals.weight)
        return false;
    const uint64_t bits = (d->pos.bits | d->neg.bits) << d->unit | d->zero;
    const bool fraction = (bits & (WEIR_WEIGHT_ONE - 1)) != 0;
    return fraction == ((d->flags & FLAG_FRACTION) != 0);
}

static int read_header(struct reader *r, uint8_t grid, struct decoded *d)
{
    const uint8_t version = read_byte(r);
    d->flags = read_byte(r);
    const uint8_t scale = read_byte(r);
    if (r->err)
        return r->err;
    if (version != VERSION || scale != WR_MAPPING_SCALE)
        return WEIR_EVERSION;
    if (d->flags & ~FLAG_ALL)
        return WEIR_EFORMAT;
    if ((d->flags & FLAG_NS ? WEIR_GRID_NS : WEIR_GRID_VALUE) != grid)
        return WEIR_EVERSION;
    if ((d->flags & FLAG_POS_SPARSE && !(d->flags & FLAG_POS)) ||
        (d->flags & FLAG_NEG_SPARSE && !(d->flags & FLAG_NEG)) ||
        (d->flags & FLAG_NEG && grid == WEIR_GRID_NS) ||
        (d->flags & FLAG_FRACTION && !(d->flags & FLAG_CONTENT)))
        return WEIR_EFORMAT;
    d->unit = d->flags & FLAG_FRACTION ? 0 : WR_STORE_SHIFT;
    d->kind = (struct wr_kind){.head = {.mapping = &wr_mapping_default, .grid = grid}};
    d->totals.of.kind = &d->kind;
    return WEIR_OK;
}

/* The first reading: everything is checked. */
static int scan(struct reader *r, uint8_t grid, struct decoded *d)
{
    const int err = read_header(r, grid, d);
    if (err != WEIR_OK)
        return err;
    if (d->flags & FLAG_CONTENT)
        read_totals(r, d);
    if (d->flags & FLAG_ZERO)
        d->zero = read_weight(r, d->unit);
    if (d->flags & FLAG_NEG)
        scan_bins(r, d, d->flags & FLAG_NEG_SPARSE, &d->neg);
    if (d->flags & FLAG_POS)
        scan_bins(r, d, d->flags & FLAG_POS_SPARSE, &d->pos);
    if (r->err)
        return r->err;
    if (r->at != r->end)
        return WEIR_EFORMAT;
    if (d->flags & FLAG_CONTENT &&
        !(totals_match(d) && spelled_well(&d->totals) && max_matches(d) && min_matches(d)))
        return WEIR_EFORMAT;
    return WEIR_OK;
}

/* sk is empty. */
static int load(struct weir_sketch *sk, const struct decoded *d, const uint8_t *end)
{
    const struct wr_kind *const kind = wr_sketch_kind(sk);
    int err = WEIR_OK;
    if (d->flags & (FLAG_NEG | FLAG_ZERO) && !wr_sketch_rest(sk))
        return WEIR_ENOMEM;
    if (d->flags & FLAG_NEG)
        err = load_bins(kind, &sk->of.rest->neg, &d->neg, end, d->unit);
    if (d->flags & FLAG_ZERO)
        sk->of.rest->zero = d->zero;
    if (err == WEIR_OK && d->flags & FLAG_POS) {
        if (sk->flags & WR_SK_LIST)
            (void)wr_list_spread(sk); /* of nothing: takes no memory */
        struct wr_store pos = wr_sketch_take(sk);
        err = load_bins(kind, &pos, &d->pos, end, d->unit);
        wr_sketch_put(sk, &pos);
    }
    return err;
}

int weir_sketch_decode(struct weir_sketch *sk, const void *src, size_t bytes)
{
    weir_sketch_clear(sk);
    struct reader r = {.at = src, .end = bytes ? (const uint8_t *)src + bytes : src};
    struct decoded d;
    memset(&d, 0, sizeof d);
    int err = scan(&r, (uint8_t)wr_sketch_grid(sk), &d);
    if (err != WEIR_OK || !(d.flags & FLAG_CONTENT))
        return err;
    err = load(sk, &d, r.end);
    /* also before clearing: it finds the used bins by the extremes */
    sk->weight = d.totals.weight;
    sk->sum = d.totals.sum;
    sk->min = d.totals.min;
    sk->max = d.totals.max;
    if (err != WEIR_OK)
        weir_sketch_clear(sk);
    return err;
}
