/* SPDX-License-Identifier: Apache-2.0 */
/*
 * codec: the compact form, version 1: docs/formats/sketch.md.
 *
 * The form is canonical: equal contents give equal bytes, and the decoder refuses every other
 * spelling of them. So whatever is accepted and fits the bin limit is encoded to the same bytes.
 *
 * Decoding reads the bytes twice: first everything is checked, with no memory, then one block is
 * made for the bins that are there and they are added.
 *
 * Threads: owner. Memory: see wr_store_reserve.
 */
#include "sketch/state.h"

#include <float.h>

#define VERSION 1u
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

static uint64_t zigzag(int32_t v)
{
    return v < 0 ? (uint64_t)(-(int64_t)v) * 2 - 1 : (uint64_t)v * 2;
}

static size_t varint_bytes(uint64_t v)
{
    return v ? (size_t)(70 - wr_clz64(v)) / 7 : 1;
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

static void sizes_add(struct sizes *s, int32_t index, uint64_t count)
{
    if (!s->used)
        s->first = index;
    else
        s->gaps += varint_bytes((uint64_t)(index - s->last - 1));
    s->counts += varint_bytes(count);
    s->last = index;
    s->used++;
}

static size_t run_bytes(const struct sizes *s)
{
    const size_t span = (size_t)(s->last - s->first) + 1;
    return varint_bytes(zigzag(s->first)) + varint_bytes(span) + s->counts + (span - s->used);
}

static size_t pairs_bytes(const struct sizes *s)
{
    return varint_bytes(zigzag(s->first)) + varint_bytes(s->used) + s->counts + s->gaps;
}

/* What encoding needs to know before the first byte. */
struct plan {
    uint8_t flags;
    uint8_t unit; /* weights are shifted right by this */
    struct sizes pos;
    struct sizes neg;
};

static void measure(const struct wr_store *st, bool any, int32_t lo, int32_t hi, uint8_t unit,
                    struct sizes *ret_sizes)
{
    *ret_sizes = (struct sizes){0};
    for (int32_t i = lo; any && i <= hi; i++) {
        const uint64_t weight = wr_store_weight_at(st, i);
        if (weight)
            sizes_add(ret_sizes, i, weight >> unit);
    }
}

/* Every bin a multiple of one weight, whatever unit the counters have. */
static bool whole(const struct wr_store *st)
{
    uint64_t fraction = 0;
    if (st && st->shift == 0)
        for (uint32_t at = 0; at < st->cap; at++)
            fraction |= wr_counter_get(st->bins, st->width, at);
    return (fraction & (WEIR_WEIGHT_ONE - 1)) == 0;
}

static void make_plan(const struct weir_sketch *sk, struct plan *p)
{
    *p = (struct plan){.flags = sk->grid == WEIR_GRID_NS ? FLAG_NS : 0, .unit = WR_STORE_SHIFT};
    if ((sk->zero & (WEIR_WEIGHT_ONE - 1)) || !whole(&sk->pos) || !whole(sk->neg)) {
        p->flags |= FLAG_FRACTION;
        p->unit = 0;
    }
    if (sk->zero)
        p->flags |= FLAG_ZERO;
    int32_t lo = 0;
    int32_t hi = 0;
    const bool neg = wr_sketch_neg_range(sk, &lo, &hi);
    measure(sk->neg, neg, lo, hi, p->unit, &p->neg);
    if (neg)
        p->flags |=
            pairs_bytes(&p->neg) < run_bytes(&p->neg) ? FLAG_NEG | FLAG_NEG_SPARSE : FLAG_NEG;
    const bool pos = wr_sketch_pos_range(sk, &lo, &hi);
    measure(&sk->pos, pos, lo, hi, p->unit, &p->pos);
    if (pos)
        p->flags |=
            pairs_bytes(&p->pos) < run_bytes(&p->pos) ? FLAG_POS | FLAG_POS_SPARSE : FLAG_POS;
}

static size_t extremes_bytes(const struct weir_sketch *sk)
{
    if (sk->grid != WEIR_GRID_NS)
        return 2 * sizeof(double);
    return varint_bytes((uint64_t)sk->min.ns) + varint_bytes((uint64_t)(sk->max.ns - sk->min.ns));
}

static size_t plan_bytes(const struct weir_sketch *sk, const struct plan *p)
{
    size_t n = 3;
    if (!(p->flags & FLAG_CONTENT))
        return n;
    n += varint_bytes(sk->weight >> p->unit) + SUM_BYTES + extremes_bytes(sk);
    if (p->flags & FLAG_ZERO)
        n += varint_bytes(sk->zero >> p->unit);
    if (p->flags & FLAG_NEG)
        n += p->flags & FLAG_NEG_SPARSE ? pairs_bytes(&p->neg) : run_bytes(&p->neg);
    if (p->flags & FLAG_POS)
        n += p->flags & FLAG_POS_SPARSE ? pairs_bytes(&p->pos) : run_bytes(&p->pos);
    return n;
}

size_t weir_sketch_encoded_bytes(const struct weir_sketch *sk)
{
    struct plan p;
    make_plan(sk, &p);
    return plan_bytes(sk, &p);
}

/* The size is known before the first byte is written: none of these checks for room. */
static uint8_t *put_varint(uint8_t *at, uint64_t v)
{
    for (; v >= 0x80; v >>= 7)
        *at++ = (uint8_t)(v | 0x80);
    *at++ = (uint8_t)v;
    return at;
}

static uint8_t *put_u64(uint8_t *at, uint64_t v)
{
    wr_store64le(at, v);
    return at + 8;
}

static uint8_t *put_double(uint8_t *at, double v)
{
    uint64_t bits;
    memcpy(&bits, &v, sizeof bits);
    return put_u64(at, bits);
}

static uint8_t *put_run(uint8_t *at, const struct wr_store *st, const struct sizes *s, uint8_t unit)
{
    at = put_varint(at, zigzag(s->first));
    at = put_varint(at, (uint64_t)(s->last - s->first) + 1);
    for (int32_t i = s->first; i <= s->last; i++)
        at = put_varint(at, wr_store_weight_at(st, i) >> unit);
    return at;
}

static uint8_t *put_pairs(uint8_t *at, const struct wr_store *st, const struct sizes *s,
                          uint8_t unit)
{
    at = put_varint(at, zigzag(s->first));
    at = put_varint(at, s->used);
    int32_t before = s->first;
    for (int32_t i = s->first; i <= s->last; i++) {
        const uint64_t weight = wr_store_weight_at(st, i);
        if (!weight)
            continue;
        if (i != s->first)
            at = put_varint(at, (uint64_t)(i - before - 1));
        at = put_varint(at, weight >> unit);
        before = i;
    }
    return at;
}

static uint8_t *put_totals(uint8_t *at, const struct weir_sketch *sk, const struct plan *p)
{
    at = put_varint(at, sk->weight >> p->unit);
    if (sk->grid == WEIR_GRID_NS) {
        at = put_u64(at, (uint64_t)sk->sum.ns);
        at = put_u64(at, (uint64_t)(sk->sum.ns >> 64));
        at = put_varint(at, (uint64_t)sk->min.ns);
        return put_varint(at, (uint64_t)(sk->max.ns - sk->min.ns));
    }
    double hi;
    double lo;
    wr_sketch_sum_split(sk, &hi, &lo);
    at = put_double(at, hi);
    at = put_double(at, lo);
    at = put_double(at, sk->min.value);
    return put_double(at, sk->max.value);
}

int weir_sketch_encode(const struct weir_sketch *sk, void *dst, size_t cap, size_t *ret_bytes)
{
    struct plan p;
    make_plan(sk, &p);
    const size_t bytes = plan_bytes(sk, &p);
    if (bytes > cap)
        return WEIR_EFULL;
    uint8_t *at = dst;
    *at++ = VERSION;
    *at++ = p.flags;
    *at++ = WR_MAPPING_SCALE;
    if (p.flags & FLAG_CONTENT)
        at = put_totals(at, sk, &p);
    if (p.flags & FLAG_ZERO)
        at = put_varint(at, sk->zero >> p.unit);
    if (p.flags & FLAG_NEG)
        at = p.flags & FLAG_NEG_SPARSE ? put_pairs(at, sk->neg, &p.neg, p.unit)
                                       : put_run(at, sk->neg, &p.neg, p.unit);
    if (p.flags & FLAG_POS)
        at = p.flags & FLAG_POS_SPARSE ? put_pairs(at, &sk->pos, &p.pos, p.unit)
                                       : put_run(at, &sk->pos, &p.pos, p.unit);
    WR_ASSERT((size_t)(at - (uint8_t *)dst) == bytes);
    *ret_bytes = bytes;
    return WEIR_OK;
}

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

static uint64_t read_varint(struct reader *r)
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
static uint64_t read_weight(struct reader *r, uint8_t unit)
{
    const uint64_t v = read_varint(r);
    if (!r->err && (v == 0 || v > UINT64_MAX >> unit))
        refuse(r, WEIR_EFORMAT);
    return r->err ? 0 : v << unit;
}

/* What the first reading finds in the bins of one sign. */
struct bins {
    const uint8_t *at; /* where they start */
    bool pairs;
    struct sizes sizes;
    uint64_t weight;
    uint64_t peak;     /* the greatest, in units of the form */
    uint64_t fraction; /* the bits of all weights */
};

static void take_bin(struct reader *r, struct bins *b, int32_t index, uint64_t weight, uint8_t unit)
{
    if (__builtin_add_overflow(b->weight, weight, &b->weight)) {
        refuse(r, WEIR_EFORMAT);
        return;
    }
    sizes_add(&b->sizes, index, weight >> unit);
    b->fraction |= weight;
    if (weight >> unit > b->peak)
        b->peak = weight >> unit;
}

/* The first index of a block; the greatest there may be is *ret_most. */
static int32_t read_first(struct reader *r, uint8_t grid, int32_t *ret_most)
{
    const int32_t least = grid == WEIR_GRID_NS ? WR_MAPPING_NS_MIN : WR_MAPPING_VALUE_MIN;
    const int32_t most = grid == WEIR_GRID_NS ? WR_MAPPING_NS_MAX : WR_MAPPING_VALUE_MAX;
    const uint64_t v = read_varint(r);
    *ret_most = most;
    if (v > UINT32_MAX / 2) {
        refuse(r, WEIR_EFORMAT);
        return 0;
    }
    const int32_t index = v & 1 ? -(int32_t)(v / 2) - 1 : (int32_t)(v / 2);
    if (index < least || index > most)
        refuse(r, WEIR_EFORMAT);
    return index;
}

/* Read one block of bins, giving each to take_bin. Bounded by the range of indices. */
static void scan_bins(struct reader *r, uint8_t grid, uint8_t unit, bool pairs, struct bins *b)
{
    *b = (struct bins){.at = r->at, .pairs = pairs};
    int32_t most;
    int64_t index = read_first(r, grid, &most);
    const uint64_t n = read_varint(r);
    if (!r->err && (n == 0 || n > (uint64_t)(most - index) + 1))
        refuse(r, WEIR_EFORMAT);
    for (uint64_t k = 0; k < n && !r->err; k++) {
        if (pairs && k) {
            const uint64_t gap = read_varint(r);
            if (gap >= (uint64_t)(most - index)) {
                refuse(r, WEIR_EFORMAT);
                return;
            }
            index += 1 + (int64_t)gap;
        } else if (k) {
            index++;
        }
        /* an empty bin may stand inside a run, not at its ends */
        if (!pairs && k && k + 1 < n && r->at < r->end && *r->at == 0) {
            r->at++;
            continue;
        }
        const uint64_t weight = read_weight(r, unit);
        if (!r->err)
            take_bin(r, b, (int32_t)index, weight, unit);
    }
    if (!r->err && pairs != (pairs_bytes(&b->sizes) < run_bytes(&b->sizes)))
        refuse(r, WEIR_EFORMAT);
}

/* The second reading: what scan_bins has accepted goes into st, which has room for it. */
static int load_bins(struct weir_sketch *sk, struct wr_store *st, const struct bins *b,
                     const uint8_t *end, uint8_t unit)
{
    struct reader r = {.at = b->at, .end = end};
    int32_t most;
    int32_t index = read_first(&r, sk->grid, &most);
    const uint64_t n = read_varint(&r);
    int err = wr_store_reserve(st, &sk->alloc, sk->max_bins, b->sizes.first, b->sizes.last, b->peak,
                               unit);
    for (uint64_t k = 0; k < n && err == WEIR_OK; k++) {
        if (k)
            index += b->pairs ? 1 + (int32_t)read_varint(&r) : 1;
        const uint64_t weight = read_varint(&r) << unit;
        if (weight)
            err = wr_store_add(st, &sk->alloc, sk->max_bins, index, weight);
    }
    return err;
}

struct decoded {
    uint8_t flags;
    uint8_t unit;
    uint64_t weight;
    uint64_t zero;
    struct weir_sketch totals; /* grid, weight, sum, min and max of it */
    struct bins pos;
    struct bins neg;
};

static void read_totals(struct reader *r, struct decoded *d)
{
    struct weir_sketch *const t = &d->totals;
    t->weight = read_weight(r, d->unit);
    if (t->grid == WEIR_GRID_NS) {
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

/* The sum and the extremes are spelled as the encoder spells them. */
static bool spelled_well(const struct weir_sketch *t)
{
    if (t->grid == WEIR_GRID_NS)
        return true;
    double parts[4] = {0, 0, t->min.value + 0.0, t->max.value + 0.0};
    const double given[4] = {t->sum.value.sum, t->sum.value.rest, t->min.value, t->max.value};
    wr_sketch_sum_split(t, &parts[0], &parts[1]);
    /* NOLINTNEXTLINE(bugprone-suspicious-memory-comparison): the bytes are what is compared */
    return memcmp(parts, given, sizeof parts) == 0;
}

/* The extremes are of the bins that are there. */
static bool extremes_match(const struct decoded *d)
{
    const struct weir_sketch *const t = &d->totals;
    int32_t index = 0;
    const enum wr_sign max = wr_sketch_place(t, &t->max, &index);
    if (d->flags & FLAG_POS) {
        if (max != WR_POSITIVE || index != d->pos.sizes.last)
            return false;
    } else if (max != (d->flags & FLAG_ZERO ? WR_ZERO : WR_NEGATIVE)) {
        return false;
    } else if (max == WR_NEGATIVE && index > d->neg.sizes.first) {
        return false;
    }
    const enum wr_sign min = wr_sketch_place(t, &t->min, &index);
    if (d->flags & FLAG_NEG)
        return min == WR_NEGATIVE && index == d->neg.sizes.last;
    if (d->flags & FLAG_ZERO)
        return min == WR_ZERO;
    /* lower than the lowest bin: it was collapsed */
    return min == WR_POSITIVE && index <= d->pos.sizes.first;
}

static bool totals_match(const struct decoded *d)
{
    uint64_t sum;
    if (__builtin_add_overflow(d->pos.weight, d->neg.weight, &sum) ||
        __builtin_add_overflow(sum, d->zero, &sum) || sum != d->totals.weight)
        return false;
    const uint64_t bits = d->pos.fraction | d->neg.fraction | d->zero;
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
    d->totals.grid = grid;
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
        scan_bins(r, grid, d->unit, d->flags & FLAG_NEG_SPARSE, &d->neg);
    if (d->flags & FLAG_POS)
        scan_bins(r, grid, d->unit, d->flags & FLAG_POS_SPARSE, &d->pos);
    if (r->err)
        return r->err;
    if (r->at != r->end)
        return WEIR_EFORMAT;
    if (d->flags & FLAG_CONTENT &&
        !(totals_match(d) && spelled_well(&d->totals) && extremes_match(d)))
        return WEIR_EFORMAT;
    return WEIR_OK;
}

/* sk is empty. */
static int load(struct weir_sketch *sk, const struct decoded *d, const uint8_t *end)
{
    int err = WEIR_OK;
    if (d->flags & FLAG_NEG) {
        struct wr_store *const neg = wr_sketch_neg(sk);
        err = neg ? load_bins(sk, neg, &d->neg, end, d->unit) : WEIR_ENOMEM;
    }
    if (err == WEIR_OK && d->flags & FLAG_POS)
        err = load_bins(sk, &sk->pos, &d->pos, end, d->unit);
    return err;
}

int weir_sketch_decode(struct weir_sketch *sk, const void *src, size_t bytes)
{
    weir_sketch_clear(sk);
    struct reader r = {.at = src, .end = bytes ? (const uint8_t *)src + bytes : src};
    struct decoded d;
    memset(&d, 0, sizeof d);
    int err = scan(&r, sk->grid, &d);
    if (err != WEIR_OK || !(d.flags & FLAG_CONTENT))
        return err;
    err = load(sk, &d, r.end);
    /* also before clearing: it finds the used bins by the extremes */
    sk->weight = d.totals.weight;
    sk->zero = d.zero;
    sk->sum = d.totals.sum;
    sk->min = d.totals.min;
    sk->max = d.totals.max;
    if (err != WEIR_OK)
        weir_sketch_clear(sk);
    return err;
}
