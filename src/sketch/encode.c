/* SPDX-License-Identifier: Apache-2.0 */
/*
 * encode: a sketch to its compact form. See form.h.
 *
 * The bins are walked twice: to measure both ways of writing them, and to write the shorter.
 *
 * Threads: any, while nobody writes to the sketch. Memory: none.
 */
#include "sketch/form.h"

/* What encoding needs to know before the first byte. */
struct plan {
    uint8_t flags;
    uint8_t more;
    bool plain;   /* version 1 */
    uint8_t unit; /* weights are shifted right by this */
    struct sizes pos;
    struct sizes neg;
};

/* A counter of st in units of the form: both are 2^-20 << 0 or 20. */
WR_INLINE uint64_t in_form(uint64_t counter, uint8_t shift, uint8_t unit)
{
    return counter << shift >> unit;
}

/* Empty counters of an array lie together in runs: whole words of them are passed at once. How many
 * from number i on. */
WR_INLINE size_t empty_word(const uint8_t *bins, uint8_t width, size_t i, size_t n)
{
    const size_t step = 8u >> width;
    uint64_t word;
    if (i + step > n)
        return 0;
    memcpy(&word, bins + (i << width), sizeof word);
    return word ? 0 : step;
}

/* Compiled once for each width: the loop is most of what encoding costs. */
WR_INLINE void measure_loop(const struct wr_store *st, uint8_t width, int32_t lo, int32_t hi,
                            uint8_t unit, struct sizes *ret_sizes)
{
    struct sizes s = {0};
    uint32_t empty_run = 0;
    const uint8_t shift = st->shift;
    const uint8_t *const bins = st->bins + ((size_t)(lo - st->base) << width);
    const size_t n = (size_t)(hi - lo) + 1;
    size_t i = 0;
    while (i < n && !wr_counter_get(bins, width, i))
        i++;
    s.first = lo + (int32_t)i;
    s.last = hi;
    while (i < n) {
        const size_t empty = width < 2 ? empty_word(bins, width, i, n) : 0;
        if (empty) {
            sizes_add_empty(&s, &empty_run, (uint32_t)empty);
            i += empty;
            continue;
        }
        const size_t end = i + (8u >> width) < n ? i + (8u >> width) : n;
        for (; i < end; i++)
            sizes_add_next(&s, &empty_run, in_form(wr_counter_get(bins, width, i), shift, unit));
    }
    sizes_end(&s);
    *ret_sizes = s;
}

static void measure(const struct wr_store *st, bool any, int32_t lo, int32_t hi, uint8_t unit,
                    struct sizes *ret_sizes)
{
    *ret_sizes = (struct sizes){0};
    if (!any)
        return;
    if (st->width == 0)
        measure_loop(st, 0, lo, hi, unit, ret_sizes);
    else if (st->width == 1)
        measure_loop(st, 1, lo, hi, unit, ret_sizes);
    else
        measure_loop(st, st->width, lo, hi, unit, ret_sizes);
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

/* What version 1 has no word for, and whether it needs one. */
static void plan_more(const struct weir_sketch *sk, struct plan *p)
{
    const struct wr_store *const neg = wr_sketch_negative(sk);
    unsigned more = 0;
    if (wr_sketch_mapping(sk)->kind != WEIR_MAPPING_BASE2)
        more |= MORE_MAPPING;
    if (p->flags & FLAG_POS && sk->flags & WR_SK_COLLAPSED)
        more |= MORE_POS_COLLAPSED;
    if (p->flags & FLAG_NEG && neg->collapsed)
        more |= MORE_NEG_COLLAPSED;
    if (p->flags & FLAG_CONTENT) {
        if (sk->flags & WR_SK_LOOSE)
            more |= MORE_LOOSE;
        if (sk->flags & WR_SK_DERIVED)
            more |= MORE_DERIVED;
        if (wr_sketch_inherited(sk) > 0)
            more |= MORE_ERROR;
    }
    unsigned implied = 0;
    if (more & MORE_COLLAPSED) {
        const bool pos = p->flags & FLAG_POS;
        int32_t index = 0;
        const enum wr_sign place = wr_sketch_place(sk, pos ? &sk->min : &sk->max, &index);
        implied = form_implied(p->flags, place, index, pos ? p->pos.first : p->neg.first);
    }
    p->more = (uint8_t)more;
    p->plain = form_is_plain(more, implied);
}

static void make_plan(const struct weir_sketch *sk, const struct wr_store *store, struct plan *p)
{
    const struct wr_store *const other = wr_sketch_negative(sk);
    const uint64_t zero = wr_sketch_zero(sk);
    *p = (struct plan){.flags = wr_sketch_grid(sk) == WEIR_GRID_NS ? FLAG_NS : 0,
                       .unit = WR_STORE_SHIFT};
    if ((zero & (WEIR_WEIGHT_ONE - 1)) || !whole(store) || !whole(other)) {
        p->flags |= FLAG_FRACTION;
        p->unit = 0;
    }
    if (zero)
        p->flags |= FLAG_ZERO;
    int32_t lo = 0;
    int32_t hi = 0;
    const bool neg = wr_sketch_neg_range(sk, &lo, &hi);
    measure(other, neg, lo, hi, p->unit, &p->neg);
    if (neg)
        p->flags |=
            pairs_bytes(&p->neg) < run_bytes(&p->neg) ? FLAG_NEG | FLAG_NEG_SPARSE : FLAG_NEG;
    const bool pos = wr_sketch_pos_range(sk, store, &lo, &hi);
    measure(store, pos, lo, hi, p->unit, &p->pos);
    if (pos)
        p->flags |=
            pairs_bytes(&p->pos) < run_bytes(&p->pos) ? FLAG_POS | FLAG_POS_SPARSE : FLAG_POS;
    plan_more(sk, p);
}

static size_t extremes_bytes(const struct weir_sketch *sk)
{
    if (wr_sketch_grid(sk) != WEIR_GRID_NS)
        return 2 * sizeof(double);
    return varint_bytes((uint64_t)sk->min.ns) + varint_bytes((uint64_t)(sk->max.ns - sk->min.ns));
}

static size_t plan_bytes(const struct weir_sketch *sk, const struct plan *p)
{
    size_t n = 3;
    if (!p->plain)
        n += 1 + (p->more & MORE_MAPPING ? 2 * sizeof(double) : 0) +
             (p->more & MORE_ERROR ? sizeof(double) : 0);
    if (!(p->flags & FLAG_CONTENT))
        return n;
    n += varint_bytes(sk->weight >> p->unit) + SUM_BYTES + extremes_bytes(sk);
    if (p->flags & FLAG_ZERO)
        n += varint_bytes(wr_sketch_zero(sk) >> p->unit);
    if (p->flags & FLAG_NEG)
        n += p->flags & FLAG_NEG_SPARSE ? pairs_bytes(&p->neg) : run_bytes(&p->neg);
    if (p->flags & FLAG_POS)
        n += p->flags & FLAG_POS_SPARSE ? pairs_bytes(&p->pos) : run_bytes(&p->pos);
    return n;
}

size_t weir_sketch_encoded_bytes(const struct weir_sketch *sk)
{
    struct wr_spread spread;
    const struct wr_store *const pos = wr_sketch_positive(sk, &spread);
    struct plan p;
    make_plan(sk, pos, &p);
    return plan_bytes(sk, &p);
}

/* The size is known before the first byte is written: none of these checks for room. */
WR_INLINE uint8_t *put_varint(uint8_t *at, uint64_t v)
{
    if (WR_LIKELY(v < 0x80)) {
        *at = (uint8_t)v;
        return at + 1;
    }
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

WR_INLINE uint8_t *run_loop(uint8_t *at, const struct wr_store *st, uint8_t width,
                            const struct sizes *s, uint8_t unit)
{
    const uint8_t shift = st->shift;
    const uint8_t *const bins = st->bins + ((size_t)(s->first - st->base) << width);
    const size_t n = (size_t)(s->last - s->first) + 1;
    for (size_t i = 0; i < n; i++)
        at = put_varint(at, in_form(wr_counter_get(bins, width, i), shift, unit));
    return at;
}

static uint8_t *put_run(uint8_t *at, const struct wr_store *st, const struct sizes *s, uint8_t unit)
{
    at = put_varint(at, zigzag(s->first));
    at = put_varint(at, (uint64_t)(s->last - s->first) + 1);
    if (st->width == 0)
        return run_loop(at, st, 0, s, unit);
    if (st->width == 1)
        return run_loop(at, st, 1, s, unit);
    return run_loop(at, st, st->width, s, unit);
}

WR_INLINE uint8_t *pairs_loop(uint8_t *at, const struct wr_store *st, uint8_t width,
                              const struct sizes *s, uint8_t unit)
{
    const uint8_t shift = st->shift;
    const uint8_t *const bins = st->bins + ((size_t)(s->first - st->base) << width);
    const size_t n = (size_t)(s->last - s->first) + 1;
    size_t before = 0;
    for (size_t i = 0; i < n; i++) {
        const uint64_t c = wr_counter_get(bins, width, i);
        if (!c) {
            const size_t empty = empty_word(bins, width, i, n);
            i += empty ? empty - 1 : 0;
            continue;
        }
        if (i)
            at = put_varint(at, i - before - 1);
        at = put_varint(at, in_form(c, shift, unit));
        before = i;
    }
    return at;
}

static uint8_t *put_pairs(uint8_t *at, const struct wr_store *st, const struct sizes *s,
                          uint8_t unit)
{
    at = put_varint(at, zigzag(s->first));
    at = put_varint(at, s->used);
    if (st->width == 0)
        return pairs_loop(at, st, 0, s, unit);
    return pairs_loop(at, st, st->width, s, unit);
}

static uint8_t *put_totals(uint8_t *at, const struct weir_sketch *sk, const struct plan *p)
{
    at = put_varint(at, sk->weight >> p->unit);
    if (wr_sketch_grid(sk) == WEIR_GRID_NS) {
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

/* Up to the totals. */
static uint8_t *put_header(uint8_t *at, const struct weir_sketch *sk, const struct plan *p)
{
    const struct weir_mapping *const m = wr_sketch_mapping(sk);
    *at++ = p->plain ? VERSION : VERSION_MORE;
    *at++ = p->flags;
    if (!p->plain)
        *at++ = p->more;
    if (m->kind == WEIR_MAPPING_BASE2) {
        *at++ = (uint8_t)m->scale;
    } else {
        *at++ = (uint8_t)m->kind;
        at = put_double(at, m->gamma);
        at = put_double(at, m->offset);
    }
    if (!p->plain && p->more & MORE_ERROR)
        at = put_double(at, wr_sketch_inherited(sk));
    return at;
}

int weir_sketch_encode(const struct weir_sketch *sk, void *dst, size_t cap, size_t *ret_bytes)
{
    struct wr_spread spread;
    const struct wr_store *const pos = wr_sketch_positive(sk, &spread);
    struct plan p;
    make_plan(sk, pos, &p);
    const size_t bytes = plan_bytes(sk, &p);
    if (bytes > cap)
        return WEIR_EFULL;
    uint8_t *at = put_header(dst, sk, &p);
    if (p.flags & FLAG_CONTENT)
        at = put_totals(at, sk, &p);
    if (p.flags & FLAG_ZERO)
        at = put_varint(at, wr_sketch_zero(sk) >> p.unit);
    if (p.flags & FLAG_NEG)
        at = p.flags & FLAG_NEG_SPARSE ? put_pairs(at, wr_sketch_negative(sk), &p.neg, p.unit)
                                       : put_run(at, wr_sketch_negative(sk), &p.neg, p.unit);
    if (p.flags & FLAG_POS)
        at = p.flags & FLAG_POS_SPARSE ? put_pairs(at, pos, &p.pos, p.unit)
                                       : put_run(at, pos, &p.pos, p.unit);
    WR_ASSERT((size_t)(at - (uint8_t *)dst) == bytes);
    *ret_bytes = bytes;
    return WEIR_OK;
}
