/* SPDX-License-Identifier: Apache-2.0 */
/*
 * decode: a sketch from its compact form, or into one. See form.h.
 *
 * The bytes are a stranger's. They are read once, and everything in them is checked. Meanwhile the
 * positive bins are written down on the stack, if there are at most 2048 from the lowest to the
 * highest: then the form is a sketch that lies there, and merged like any other. What is larger, or
 * has negative bins, is read a second time, into a sketch that is there for it. Only used bins and
 * the sketch's own limit decide how much memory that takes, never a number that the bytes claim.
 *
 * Threads: owner. Memory: that of a merge; a mapping that the sketch has not.
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

#define NOTE_MAX WR_LIST_SPAN
#define NOTE_PAIRS (NOTE_MAX / 2) /* those of more bins are no shorter than a run of NOTE_MAX */

/* What the first reading finds in the bins of one sign. Weights are in units of the form. */
struct bins {
    const uint8_t *at; /* where the counts start */
    uint64_t n;        /* how many of them */
    bool pairs;
    struct sizes sizes;
    uint64_t weight;
    uint64_t peak;
    uint64_t bits;  /* of all weights */
    uint32_t *note; /* room for NOTE_MAX numbers, where bins are written down: the counts of a run
                       from sizes.first on; of pairs how far each is above that, and its count.
                       NULL: it is not wanted, or not enough */
};

struct decoded {
    uint8_t flags;
    uint8_t more;
    bool plain; /* version 1 */
    uint8_t unit;
    uint64_t zero;
    double error;
    struct weir_mapping *made; /* held; NULL: the sketch has it */
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
    if (t.n > NOTE_MAX)
        t.note = NULL;
    for (uint64_t k = 0; k < t.n && !r->err; k++) {
        const uint64_t count = read_varint(r);
        fits &= take_count(&t, count);
        sizes_add_next(&t.sizes, &empty_run, count);
        if (t.note)
            t.note[k] = (uint32_t)count; /* what does not fit is seen by the peak */
    }
    sizes_end(&t.sizes);
    t.sizes.first = index;
    t.sizes.last = (int32_t)(index + (int64_t)t.n - 1);
    if (!fits || !starts || empty_run)
        refuse(r, WEIR_EFORMAT);
    *b = t;
}

/* What scan_pairs keeps in registers. */
struct pairs_walk {
    const uint8_t *at;
    uint64_t above; /* the first index */
    uint64_t peak;
    uint64_t bits;
    uint64_t weight;
};

/*
 * From the k-th on, pairs of a gap and a count of one byte each, which are the most of all; how
 * many there are. Their weight cannot pass 64 bits unless it nearly had, which is the slow way's to
 * see.
 */
WR_INLINE uint64_t short_pairs(struct pairs_walk *w, const uint8_t *end, uint64_t k, uint64_t n,
                               uint32_t *note)
{
    struct pairs_walk t = *w;
    const uint64_t room = (uint64_t)(end - t.at) / 2;
    const uint64_t to = n - k < room ? n : k + room;
    for (; k < to; k++, t.at += 2) {
        const uint64_t gap = t.at[0];
        const uint64_t count = t.at[1];
        if (((gap | count) & 0x80) || !count)
            break;
        t.above += 1 + gap;
        t.bits |= count;
        t.weight += count;
        if (note) {
            note[2 * k] = (uint32_t)t.above;
            note[2 * k + 1] = (uint32_t)count;
        }
    }
    *w = t;
    return k;
}

/* Bins that are not empty, each so many after the one before; none above most. */
static void scan_pairs(struct reader *r, struct bins *b, int32_t index, int32_t most)
{
    const uint64_t highest = (uint64_t)((int64_t)most - index);
    struct pairs_walk w = {.at = r->at};
    struct bins t = *b;
    uint64_t gap = 0;
    if (t.n > NOTE_PAIRS)
        t.note = NULL;
    for (uint64_t k = 0; k < t.n && !r->err;) {
        r->at = w.at;
        if (k)
            gap = read_varint(r);
        const uint64_t count = read_varint(r);
        if (gap > highest || !count || __builtin_add_overflow(w.weight, count, &w.weight))
            refuse(r, WEIR_EFORMAT);
        gap += k != 0;
        w.at = r->at;
        w.above += gap;
        w.bits |= count;
        w.peak = count > w.peak ? count : w.peak;
        t.sizes.gaps += k ? varint_bytes(gap - 1) : 0;
        t.sizes.counts += varint_bytes(count);
        if (t.note) {
            t.note[2 * k] = (uint32_t)w.above;
            t.note[2 * k + 1] = (uint32_t)count; /* what does not fit is seen by the peak */
        }
        k++;
        if (w.weight > UINT64_MAX / 2 || w.above > highest)
            continue; /* so that what follows cannot wrap */
        const uint64_t next = short_pairs(&w, r->end, k, t.n, t.note);
        t.sizes.gaps += next - k;
        t.sizes.counts += next - k;
        k = next;
    }
    if (!r->err && w.above > highest)
        refuse(r, WEIR_EFORMAT);
    if (r->err)
        return;
    r->at = w.at;
    if (w.above >= NOTE_MAX)
        t.note = NULL;
    t.peak = w.bits & ~UINT64_C(0x7f) ? w.peak : w.bits; /* enough to choose a width by */
    t.bits = w.bits;
    t.weight = w.weight;
    t.sizes.used = (uint32_t)t.n;
    t.sizes.first = index;
    t.sizes.last = (int32_t)(index + (int64_t)w.above);
    *b = t;
}

/* The least and the greatest index that a bin may have. */
static void limits_of(const struct decoded *d, int32_t *ret_least, int32_t *ret_most)
{
    *ret_least = INT32_MIN;
    *ret_most = INT32_MAX;
    if (!(d->more & MORE_LOOSE))
        wr_mapping_limits(d->kind.head.mapping, d->kind.head.grid == WEIR_GRID_NS, ret_least,
                          ret_most);
}

/* Read and check one block of bins. Bounded by the range of indices. */
static void scan_bins(struct reader *r, const struct decoded *d, bool pairs, struct bins *bins)
{
    int32_t least;
    int32_t most;
    limits_of(d, &least, &most);
    const uint64_t first = read_varint(r);
    struct bins b = {.pairs = pairs, .n = read_varint(r), .note = bins->note};
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
    if (b.peak > UINT32_MAX)
        b.note = NULL;
    *bins = b;
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
            index = (int32_t)(index + 1 + (b->pairs ? (int64_t)read_varint(&r) : 0));
        const uint64_t count = read_varint(&r);
        if (covered)
            wr_counter_put(st->bins, st->width, (uint32_t)index - (uint32_t)st->base, count);
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

/* Which collapse a form of version 1 with these bins and extremes tells. */
static unsigned implied_by(const struct decoded *d)
{
    const bool pos = d->flags & FLAG_POS;
    int32_t index = 0;
    const enum wr_sign place =
        wr_sketch_place(&d->totals, pos ? &d->totals.min : &d->totals.max, &index);
    return form_implied(d->flags, place, index, pos ? d->pos.sizes.first : d->neg.sizes.first);
}

/* Version 1: what it tells without a word. Version 2: it was needed. */
static bool settle_more(struct decoded *d)
{
    const unsigned implied = implied_by(d);
    if (d->plain)
        d->more |= (uint8_t)implied;
    return d->plain || !form_is_plain(d->more, d->more & MORE_COLLAPSED ? implied : 0);
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

static bool flags_agree(const struct decoded *d, uint32_t grid)
{
    const unsigned flags = d->flags;
    if (flags & ~(unsigned)FLAG_ALL || d->more & ~(unsigned)MORE_ALL)
        return false;
    if ((flags & FLAG_POS_SPARSE && !(flags & FLAG_POS)) ||
        (flags & FLAG_NEG_SPARSE && !(flags & FLAG_NEG)) ||
        (flags & FLAG_NEG && grid == WEIR_GRID_NS) ||
        (flags & FLAG_FRACTION && !(flags & FLAG_CONTENT)))
        return false;
    return (!(d->more & MORE_POS_COLLAPSED) || flags & FLAG_POS) &&
           (!(d->more & MORE_NEG_COLLAPSED) || flags & FLAG_NEG) &&
           (!(d->more & (MORE_LOOSE | MORE_DERIVED | MORE_ERROR)) || flags & FLAG_CONTENT);
}

/* The mapping: that of sk, if it is the one that the bytes name, else one that is made. */
static int read_mapping(struct reader *r, const struct weir_sketch *sk, struct decoded *d)
{
    const struct weir_mapping *const own = wr_sketch_mapping(sk);
    const uint8_t kind = read_byte(r);
    int err = WEIR_OK;
    d->kind = (struct wr_kind){.head = {.mapping = own, .grid = (uint8_t)wr_sketch_grid(sk)}};
    d->totals.of.kind = &d->kind;
    if (d->more & MORE_MAPPING) {
        const double gamma = read_double(r);
        const double offset = read_double(r);
        if (r->err)
            return r->err;
        if (kind == WEIR_MAPPING_BASE2)
            return WEIR_EFORMAT;
        if (!wr_mapping_is(own, kind, gamma, offset))
            err = wr_mapping_read_only(&wr_sketch_kind(sk)->alloc, kind, gamma, offset, &d->made);
    } else {
        const int32_t scale = kind < 0x80 ? kind : kind - 0x100;
        if (r->err)
            return r->err;
        if (own->kind != WEIR_MAPPING_BASE2 || own->scale != scale)
            err = weir_mapping_base2(NULL, scale, &d->made);
    }
    if (d->made)
        d->kind.head.mapping = d->made;
    return err == WEIR_OK || err == WEIR_ENOMEM ? err : WEIR_EVERSION;
}

static int read_header(struct reader *r, const struct weir_sketch *sk, struct decoded *d)
{
    const uint32_t grid = wr_sketch_grid(sk);
    const uint8_t version = read_byte(r);
    d->flags = read_byte(r);
    if (r->err)
        return r->err;
    if (version != VERSION && version != VERSION_MORE)
        return WEIR_EVERSION;
    d->plain = version == VERSION;
    if (!d->plain)
        d->more = read_byte(r);
    if (r->err)
        return r->err;
    if (!(d->flags & ~(unsigned)FLAG_ALL) &&
        (d->flags & FLAG_NS ? WEIR_GRID_NS : WEIR_GRID_VALUE) != grid)
        return WEIR_EVERSION;
    const int err = read_mapping(r, sk, d);
    if (err != WEIR_OK)
        return err;
    if (!flags_agree(d, grid))
        return WEIR_EFORMAT;
    if (d->more & MORE_ERROR)
        d->error = read_double(r);
    if (d->more & MORE_ERROR && !r->err && !(d->error > 0 && d->error <= DBL_MAX))
        return WEIR_EFORMAT;
    d->unit = d->flags & FLAG_FRACTION ? 0 : WR_STORE_SHIFT;
    return r->err;
}

/* The first reading: everything is checked. What it made is the caller's to let go. */
static int scan(struct reader *r, const struct weir_sketch *sk, struct decoded *d)
{
    const int err = read_header(r, sk, d);
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
    if (r->at != r->end || !settle_more(d))
        return WEIR_EFORMAT;
    if (!(d->flags & FLAG_CONTENT))
        return WEIR_OK;
    if (!totals_match(d) || !spelled_well(&d->totals))
        return WEIR_EFORMAT;
    const bool match = d->more & MORE_LOOSE || (max_matches(d) && min_matches(d));
    return match ? WEIR_OK : WEIR_EFORMAT;
}

/* A form that lies on the stack as a sketch. */
struct noted {
    struct weir_sketch sketch;
    struct wr_rest rest;
    uint32_t counts[NOTE_MAX]; /* of struct bins, note */
    uint16_t list[WR_LIST_MAX];
    _Alignas(8) uint8_t spread[NOTE_MAX * sizeof(uint32_t)]; /* pairs as counters */
};

/* The bits of struct weir_sketch, flags that more stands for. */
static uint8_t flags_of(const struct decoded *d)
{
    return (uint8_t)((d->more & MORE_POS_COLLAPSED ? WR_SK_COLLAPSED : 0) |
                     (d->more & MORE_LOOSE ? WR_SK_LOOSE : 0) |
                     (d->more & MORE_DERIVED ? WR_SK_DERIVED : 0));
}

static size_t append(uint16_t *list, size_t n, uint32_t at, uint32_t count)
{
    for (; count; count--)
        list[n++] = (uint16_t)at;
    return n;
}

/* A few whole weights are a list. */
static void note_list(struct noted *n, const struct bins *b, size_t span)
{
    n->sketch.bins = (uint8_t *)n->list;
    n->sketch.flags |= WR_SK_LIST;
    size_t cap = 0;
    if (b->pairs)
        for (size_t k = 0; k < b->n; k++)
            cap = append(n->list, cap, n->counts[2 * k], n->counts[2 * k + 1]);
    else
        for (size_t i = 0; i < span; i++)
            cap = append(n->list, cap, (uint32_t)i, n->counts[i]);
    n->sketch.cap = (uint16_t)cap;
    WR_ASSERT(n->sketch.cap == b->weight);
}

/* Counters of the narrowest width; those of a run in their place. */
static void note_counters(struct noted *n, const struct bins *b, size_t span)
{
    const uint8_t width = b->peak <= UINT8_MAX ? 0 : b->peak <= UINT16_MAX ? 1 : 2;
    uint8_t *const bins = b->pairs ? n->spread : (uint8_t *)n->counts;
    n->sketch.bins = bins;
    n->sketch.cap = (uint16_t)span;
    n->sketch.size = wr_store_size((uint32_t)span << width);
    n->sketch.flags |= width;
    if (b->pairs) {
        memset(bins, 0, span << width);
        for (size_t k = 0; k < b->n; k++)
            wr_counter_put(bins, width, n->counts[2 * k], n->counts[2 * k + 1]);
        return;
    }
    for (size_t i = 0; i < span && width == 0; i++)
        bins[i] = (uint8_t)n->counts[i];
    for (size_t i = 0; i < span && width == 1; i++)
        wr_counter_put(bins, 1, i, n->counts[i]);
}

/* The sketch that the form is, if its bins are written down. */
static bool note(struct noted *n, const struct decoded *d, const struct wr_kind *kind)
{
    if (d->flags & FLAG_NEG || (d->flags & FLAG_POS && !d->pos.note))
        return false;
    n->sketch = d->totals;
    n->sketch.flags = flags_of(d);
    n->sketch.of.kind = kind;
    n->sketch.base = d->pos.sizes.first;
    if (d->zero || d->error > 0) {
        n->rest = (struct wr_rest){.head = kind->head, .kind = kind, .zero = d->zero};
        n->rest.neg.shift = WR_STORE_SHIFT;
        n->rest.error = d->error;
        n->sketch.of.rest = &n->rest;
        n->sketch.flags |= WR_SK_REST;
    }
    if (!(d->flags & FLAG_POS))
        return true; /* no bins, no counters */
    const size_t span = (uint32_t)d->pos.sizes.last - (uint32_t)d->pos.sizes.first + 1;
    if (d->unit && d->pos.weight <= WR_LIST_MAX && !(d->more & MORE_POS_COLLAPSED))
        note_list(n, &d->pos, span);
    else
        note_counters(n, &d->pos, span);
    if (!d->unit)
        n->sketch.flags |= WR_SK_FINE;
    return true;
}

/* The second reading, into an empty sketch. */
static int load(struct weir_sketch *sk, const struct decoded *d, const uint8_t *end)
{
    const struct wr_kind *const kind = wr_sketch_kind(sk);
    const bool rare = d->flags & (FLAG_NEG | FLAG_ZERO) || d->error > 0;
    int err = WEIR_OK;
    /* also for clearing it after a failure: the used bins are not found by the extremes then */
    sk->flags |= WR_SK_LOOSE;
    if (rare && !wr_sketch_rest(sk))
        return WEIR_ENOMEM;
    if (rare) {
        sk->of.rest->zero = d->zero;
        sk->of.rest->error = d->error;
    }
    if (d->flags & FLAG_NEG) {
        err = load_bins(kind, &sk->of.rest->neg, &d->neg, end, d->unit);
        sk->of.rest->neg.collapsed |= (d->more & MORE_NEG_COLLAPSED) != 0;
    }
    if (err == WEIR_OK && d->flags & FLAG_POS) {
        if (sk->flags & WR_SK_LIST)
            (void)wr_list_spread(sk); /* of nothing: takes no memory */
        struct wr_store pos = wr_sketch_take(sk);
        err = load_bins(kind, &pos, &d->pos, end, d->unit);
        wr_sketch_put(sk, &pos);
    }
    if (err != WEIR_OK)
        return err;
    sk->flags = (uint8_t)((sk->flags & ~WR_SK_LOOSE) | flags_of(d));
    sk->weight = d->totals.weight;
    sk->sum = d->totals.sum;
    sk->min = d->totals.min;
    sk->max = d->totals.max;
    return WEIR_OK;
}

/* Everything of a form, once it is read. */
struct form {
    struct decoded d;
    struct noted n;
    const uint8_t *end;
};

/* Read and check; sk says grid and mapping. What was made is let go by form_done. */
static int form_read(struct form *f, const struct weir_sketch *sk, const void *src, size_t bytes)
{
    struct reader r = {.at = src, .end = bytes ? (const uint8_t *)src + bytes : src};
    memset(&f->d, 0, sizeof f->d);
    f->d.pos.note = f->n.counts;
    f->end = r.end;
    return scan(&r, sk, &f->d);
}

static void form_done(struct form *f)
{
    weir_mapping_unref(f->d.made);
}

/* What was read and checked into sk, which is empty. */
static int replace(struct weir_sketch *sk, struct form *f)
{
    const int err = wr_sketch_set_mapping(sk, f->d.kind.head.mapping);
    if (err != WEIR_OK || !(f->d.flags & FLAG_CONTENT))
        return err;
    if (note(&f->n, &f->d, wr_sketch_kind(sk)))
        return weir_sketch_merge(sk, &f->n.sketch);
    return load(sk, &f->d, f->end);
}

int weir_sketch_decode(struct weir_sketch *sk, const void *src, size_t bytes)
{
    struct form f;
    weir_sketch_clear(sk);
    int err = form_read(&f, sk, src, bytes);
    if (err == WEIR_OK)
        err = replace(sk, &f);
    form_done(&f);
    if (err != WEIR_OK)
        weir_sketch_clear(sk);
    return err;
}

/* By way of a sketch in between: what is too large for the stack, or has negative bins. */
static int merge_large(struct weir_sketch *dst, struct form *f)
{
    const struct wr_kind *const kind = wr_sketch_kind(dst);
    const struct weir_sketch_opts opts = {.struct_size = sizeof opts,
                                          .alloc = kind->alloc,
                                          .grid = kind->head.grid,
                                          .max_bins = kind->head.max_bins,
                                          .mapping = kind->head.mapping};
    struct weir_sketch *between;
    int err = weir_sketch_new(&opts, &between);
    if (err != WEIR_OK)
        return err;
    err = load(between, &f->d, f->end);
    if (err == WEIR_OK)
        err = weir_sketch_merge(dst, between);
    weir_sketch_free(between);
    return err;
}

int weir_sketch_merge_encoded(struct weir_sketch *dst, const void *src, size_t bytes)
{
    struct form f;
    int err = form_read(&f, dst, src, bytes);
    if (err == WEIR_OK && f.d.made)
        err = WEIR_EVERSION;
    if (err == WEIR_OK && f.d.flags & FLAG_CONTENT)
        err = note(&f.n, &f.d, wr_sketch_kind(dst)) ? weir_sketch_merge(dst, &f.n.sketch)
                                                    : merge_large(dst, &f);
    form_done(&f);
    return err;
}
