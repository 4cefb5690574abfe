/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dd_compact_plan: which blocks are the shortest. See dd_compact_plan.h.
 *
 * A bin of one sign can go into one of three kinds of block: ones (an index delta for each whole
 * weight: one byte a sample), pairs (a delta and a count: two bytes and more) or a run (a count and
 * no index: one byte and more, also for every empty bin in between). Where most bins hold several
 * samples a run is shorter, by a byte a bin; where most are empty it is longer, by a byte a bin; a
 * bin of one sample is the same in both. So the runs are the segments of greatest sum over scores
 * of +1, 0 and -1, each less the bytes that a block costs. That sum has one pass: a segment is
 * entered when its sum is better than none, and ends for good where a new one would be better than
 * going on. Where all counts are small, a bit a bin says which are 0 and which above 1: stretches
 * without an empty bin, the most of a full sketch, are added up at once.
 *
 * What is outside of runs goes into one block of ones, one of pairs, or both, whatever is shortest
 * by count. Deltas may jump over a run. Where all counts are small they are gathered first, and
 * counted without a branch on a count: those of few samples follow no pattern.
 *
 * Threads: any. Memory: none; bins are read a stretch at a time.
 */
#include "codec/dd_compact_plan.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

/* Bins that are scored at once, as bits. */
enum { GROUP = 8, GROUP_ALL = (1 << GROUP) - 1 };

/* What a run costs beside its counts: flag, how many, first index, step, and that the next delta
 * of the block around it is longer. */
#define RUN_COST 7

/* The next stretch of [at, end) is in p->weights; how many bins it has. Not when they are small. */
static size_t next_bins(struct plan *p, int64_t at, int64_t end)
{
    const size_t n = end - at < CHUNK ? (size_t)(end - at) : CHUNK;
    wr_bins_read(p->sk, p->sign, (int32_t)at, n, p->weights);
    return n;
}

/* The first bit from at on that is set, end when none below it is. */
static size_t next_bit(const uint64_t *bits, size_t at, size_t end)
{
    for (; at < end; at = (at | 63) + 1) {
        const uint64_t left = bits[at / 64] >> at % 64;
        if (!left)
            continue;
        at += (size_t)__builtin_ctzll(left);
        return at < end ? at : end;
    }
    return end;
}

int64_t wr_compact_next_used(struct plan *p, int64_t at, int64_t end, uint64_t *ret_weight)
{
    if (p->small) {
        const size_t i = next_bit(p->used, (size_t)(at - p->lo), (size_t)(end - p->lo));
        at = p->lo + (int64_t)i;
        if (at < end)
            *ret_weight = (uint64_t)p->counts[i] << 20;
        return at;
    }
    for (; at < end; at++) {
        if (at < p->read_at || at - p->read_at >= (int64_t)p->read_n) {
            p->read_at = at;
            p->read_n = next_bins(p, at, p->end);
        }
        *ret_weight = p->weights[at - p->read_at];
        if (*ret_weight)
            return at;
    }
    return end;
}

#if defined(__SSE2__)
/* Of 16 lanes those that are 0. */
static uint64_t zeros_of(__m128i low, __m128i high)
{
    const __m128i zero = _mm_setzero_si128();
    return (uint64_t)(unsigned)_mm_movemask_epi8(
        _mm_packs_epi16(_mm_cmpeq_epi16(low, zero), _mm_cmpeq_epi16(high, zero)));
}

static void mark(const uint16_t *counts, uint64_t *ret_used, uint64_t *ret_several)
{
    const __m128i one = _mm_set1_epi16(1);
    uint64_t zeros = 0;
    uint64_t at_most_one = 0;
    for (unsigned k = 0; k < 64; k += 16) {
        const __m128i low = _mm_loadu_si128((const __m128i *)(const void *)(counts + k));
        const __m128i high = _mm_loadu_si128((const __m128i *)(const void *)(counts + k + 8));
        zeros |= zeros_of(low, high) << k;
        at_most_one |= zeros_of(_mm_subs_epu16(low, one), _mm_subs_epu16(high, one)) << k;
    }
    *ret_used = ~zeros;
    *ret_several = ~at_most_one;
}
#else
static void mark(const uint16_t *counts, uint64_t *ret_used, uint64_t *ret_several)
{
    uint64_t used = 0;
    uint64_t several = 0;
    for (unsigned k = 0; k < 64; k++) {
        used |= (uint64_t)(counts[k] > 0) << k;
        several |= (uint64_t)(counts[k] > 1) << k;
    }
    *ret_used = used;
    *ret_several = several;
}
#endif

/* The runs */

struct scan {
    struct plan *plan;
    int64_t in;       /* the best sum of a segment that is open here */
    int64_t best;     /* of it, and where it was */
    int64_t in_first; /* where it was entered */
    int64_t best_end;
    bool is_open;
};

static void close_run(struct scan *s)
{
    struct plan *const p = s->plan;
    if (s->is_open && s->best > 0 && p->n < RUNS_MAX)
        p->runs[p->n++] = (struct segment){.first = s->in_first, .end = s->best_end};
    s->is_open = false;
}

/* n bins from at on, none of which makes the sum smaller. */
static void score_up(struct scan *s, int64_t at, int64_t n, int64_t score)
{
    if (!s->is_open) {
        s->is_open = true;
        s->in_first = at;
        s->in = -RUN_COST;
        s->best = 0;
    }
    s->in += score;
    if (s->in > s->best) {
        s->best = s->in;
        s->best_end = at + n;
    }
}

WR_INLINE void score_down(struct scan *s)
{
    if (!s->is_open)
        return;
    s->in--;
    /* entering anew later is at least as good */
    if (s->in <= s->best - RUN_COST || s->in <= -RUN_COST)
        close_run(s);
}

/* Bins one by one, as many as there are bits in a group. */
static void score(struct scan *s, int64_t at, unsigned used, unsigned several)
{
    for (unsigned k = 0; k < GROUP; k++) {
        if (several >> k & 1)
            score_up(s, at + k, 1, 1);
        else if (!(used >> k & 1))
            score_down(s);
    }
}

/* The bins before end that all hold several, not yet scored. */
static void score_full(struct scan *s, int64_t end, int64_t *full)
{
    if (*full)
        score_up(s, end - *full, *full, *full);
    *full = 0;
}

/* One group that is not full. */
static void score_group(struct scan *s, int64_t at, unsigned used, unsigned several)
{
    if (!s->is_open && !several)
        return; /* nothing to enter for */
    if (used == GROUP_ALL)
        score_up(s, at, GROUP, __builtin_popcount(several));
    else
        score(s, at, used, several);
}

/* 64 bins, of which the most have all several; *full of those before them have. */
static void score_word(struct scan *s, int64_t at, uint64_t used, uint64_t several, int64_t *full)
{
    if (several == UINT64_MAX) {
        *full += 64;
        return;
    }
    if (!s->is_open && !*full && !several)
        return;
    for (unsigned k = 0; k < 64; k += GROUP) {
        const unsigned group = several >> k & GROUP_ALL;
        if (group == GROUP_ALL) {
            *full += GROUP;
            continue;
        }
        score_full(s, at + k, full);
        score_group(s, at + k, used >> k & GROUP_ALL, group);
    }
}

/* Zeros behind the last bin change nothing. */
static void scan_small(struct scan *s)
{
    const struct plan *const p = s->plan;
    const size_t words = (size_t)(p->end - p->lo + 63) / 64;
    int64_t full = 0;
    for (size_t w = 0; w < words; w++)
        score_word(s, p->lo + (int64_t)w * 64, p->used[w], p->several[w], &full);
    score_full(s, p->lo + (int64_t)words * 64, &full);
}

/* Any weights, as counts that are as good as they are: 0, 1, or more. */
static void scan_any(struct scan *s)
{
    struct plan *const p = s->plan;
    int64_t full = 0;
    for (int64_t at = p->lo; at < p->end; at += CHUNK) {
        uint16_t counts[CHUNK] = {0};
        const size_t n = next_bins(p, at, p->end);
        for (size_t i = 0; i < n; i++)
            counts[i] = (uint16_t)((p->weights[i] > 0) + (p->weights[i] > WEIR_WEIGHT_ONE));
        for (size_t i = 0; i < n; i += 64) {
            uint64_t used;
            uint64_t several;
            mark(counts + i, &used, &several);
            score_word(s, at + (int64_t)i, used, several, &full);
            if (i + 64 >= n)
                score_full(s, at + (int64_t)i + 64, &full);
        }
    }
}

static void find_runs(struct plan *p)
{
    struct scan s = {.plan = p};
    if (p->small)
        scan_small(&s);
    else
        scan_any(&s);
    close_run(&s);
}

/* The bins outside of runs */

static bool walk_outside(struct plan *p, struct outside *o, struct bin *ret_bin)
{
    while (o->is_open || o->run <= p->n) {
        if (!o->is_open) {
            o->at = o->run ? p->runs[o->run - 1].end : p->lo;
            o->end = o->run < p->n ? p->runs[o->run].first : p->end;
            o->is_open = true;
            o->run++;
        }
        ret_bin->index = wr_compact_next_used(p, o->at, o->end, &ret_bin->weight);
        o->at = ret_bin->index + 1;
        if (ret_bin->index < o->end)
            return true;
        o->is_open = false;
    }
    return false;
}

bool wr_compact_next_outside(struct plan *p, struct outside *o, struct bin *ret_bin)
{
    if (!p->listed)
        return walk_outside(p, o, ret_bin);
    if (o->next == p->list_n)
        return false;
    *ret_bin = p->list[o->next++];
    return true;
}

/* Small counts of [first, end); the bits of all. */
static uint32_t gather(struct plan *p, int64_t first, int64_t end)
{
    const size_t from = (size_t)(first - p->lo);
    const size_t to = (size_t)(end - p->lo);
    size_t n = p->list_n;
    uint32_t bits = 0;
    for (size_t w = from / 64; w * 64 < to; w++) {
        uint64_t left = p->used[w];
        if (w == from / 64)
            left &= UINT64_MAX << from % 64;
        if (to - w * 64 < 64)
            left &= (UINT64_C(1) << (to - w * 64)) - 1;
        for (; left; left &= left - 1) {
            const size_t at = w * 64 + (size_t)__builtin_ctzll(left);
            p->fews[n++] = (struct few){.at = (uint16_t)at, .count = p->counts[at]};
            bits |= p->counts[at];
        }
    }
    p->list_n = n;
    return bits;
}

/* false: there are counts from FEW_END on. */
static bool gather_outside(struct plan *p)
{
    uint32_t bits = 0;
    int64_t at = p->lo;
    p->list_n = 0;
    for (size_t i = 0; i < p->n; i++) {
        bits |= gather(p, at, p->runs[i].first);
        at = p->runs[i].end;
    }
    bits |= gather(p, at, p->end);
    return bits < FEW_END;
}

/* They are looked for once, if they are not too many. */
static void list_outside(struct plan *p)
{
    if (p->few)
        return; /* of a list */
    p->few = p->small && p->gathers && gather_outside(p);
    if (p->few)
        return;
    struct outside o = {.run = 0};
    struct bin bin;
    p->listed = false;
    for (p->list_n = 0; walk_outside(p, &o, &bin); p->list_n++) {
        if (p->list_n == LIST_MAX)
            return;
        p->list[p->list_n] = bin;
    }
    p->listed = true;
}

/* Ones and pairs */

struct block {
    uint64_t n; /* deltas */
    uint64_t bytes;
    int64_t last;
};

static void count_one(struct block *b, int64_t index, uint64_t weight)
{
    b->n += weight >> 20;
    b->bytes += varint_bytes(index - b->last) + (weight >> 20) - 1;
    b->last = index;
}

static void count_pair(struct block *b, int64_t index, uint64_t weight)
{
    b->n++;
    b->bytes += varint_bytes(index - b->last) + count_bytes(weight);
    b->last = index;
}

static uint64_t block_bytes(const struct block *b)
{
    return b->n ? 1 + wr_uvarint9_bytes(b->n) + b->bytes : 0;
}

/* All ways that what is outside of runs can go, counted side by side. */
struct ways {
    bool fraction;
    struct block all_ones;
    struct block all_pairs;
    struct block ones;
    struct block pairs;
};

static void count_bin(struct ways *w, int64_t index, uint64_t weight)
{
    count_pair(&w->all_pairs, index, weight);
    w->fraction |= !is_whole(weight);
    if (is_whole(weight))
        count_one(&w->all_ones, index, weight);
    if (suits_pair(weight))
        count_pair(&w->pairs, index, weight);
    else
        count_one(&w->ones, index, weight);
}

static void count_few(const struct plan *p, struct ways *w)
{
    struct block all = {.last = -p->lo}; /* pairs */
    struct block own[2] = {all, all};    /* ones, pairs */
    uint64_t samples = 0;
    uint64_t deltas = 0;
    for (size_t k = 0; k < p->list_n; k++) {
        const struct few f = p->fews[k];
        const bool pair = f.count >= PAIR_LEAST;
        struct block *const b = &own[pair];
        const uint64_t count = wr_varfloat_table[f.count] >> 24;
        const uint64_t delta = varint_bytes(f.at - all.last);
        samples += f.count;
        deltas += delta;
        all.bytes += delta + count;
        all.last = f.at;
        b->bytes += varint_bytes(f.at - b->last) + (pair ? count : f.count - UINT64_C(1));
        b->n += pair ? 1 : f.count;
        b->last = f.at;
    }
    all.n = p->list_n;
    w->all_ones = (struct block){.n = samples, .bytes = deltas + samples - all.n};
    w->all_pairs = all;
    w->ones = own[0];
    w->pairs = own[1];
}

static bool only_few_ones(struct plan *p)
{
    uint64_t samples = 0;
    uint32_t pairs = 0;
    for (size_t k = 0; k < p->list_n; k++) {
        samples += p->fews[k].count;
        pairs += p->fews[k].count >= PAIR_LEAST;
    }
    p->ones = samples;
    return pairs == 0;
}

/* What is outside of runs are ones and twos: ones are as short as anything. */
static bool only_ones(struct plan *p)
{
    if (p->few)
        return only_few_ones(p);
    struct outside o = {.run = 0};
    struct bin bin;
    p->ones = 0;
    while (wr_compact_next_outside(p, &o, &bin)) {
        if (suits_pair(bin.weight))
            return false;
        p->ones += bin.weight >> 20;
    }
    return true;
}

static enum split choose(struct plan *p)
{
    list_outside(p);
    if (only_ones(p))
        return ALL_ONES;
    struct ways w;
    memset(&w, 0, sizeof w);
    struct outside o = {.run = 0};
    struct bin bin;
    if (p->few)
        count_few(p, &w);
    else
        while (wr_compact_next_outside(p, &o, &bin))
            count_bin(&w, bin.index, bin.weight);
    const uint64_t both = block_bytes(&w.ones) + block_bytes(&w.pairs);
    const uint64_t pairs = block_bytes(&w.all_pairs);
    const uint64_t ones = w.fraction ? UINT64_MAX : block_bytes(&w.all_ones);
    const enum split split = ones <= both && ones <= pairs ? ALL_ONES
                             : pairs <= both               ? ALL_PAIRS
                                                           : SPLIT;
    p->ones = split == ALL_ONES ? w.all_ones.n : split == SPLIT ? w.ones.n : 0;
    p->pairs = split == ALL_PAIRS ? w.all_pairs.n : split == SPLIT ? w.pairs.n : 0;
    return split;
}

/* Making a plan */

static void begin_plan(struct plan *p, const struct weir_sketch *sk, enum wr_bins_sign sign,
                       enum wr_compact_way way)
{
    memset(p, 0, offsetof(struct plan, runs)); /* the arrays are not set */
    p->sk = sk;
    p->sign = sign;
    p->gathers = way == WR_COMPACT_GATHERED;
}

/* The used bins of a list, in order, above *ret_base. */
static void gather_list(struct plan *p, int32_t *ret_base)
{
    uint64_t bits[WR_BINS_FEW_SPAN / 64];
    size_t n = 0;
    *ret_base = 0;
    if (wr_bins_few(p->sk, ret_base, bits, p->counts)) {
        for (size_t word = 0; word < WR_BINS_FEW_SPAN / 64; word++) {
            for (uint64_t left = bits[word]; left; left &= left - 1) {
                const size_t at = word * 64 + (size_t)__builtin_ctzll(left);
                p->fews[n++] = (struct few){.at = (uint16_t)at, .count = p->counts[at]};
            }
        }
    }
    p->list_n = n;
}

/* Some are worth a run where the sum of scores can pass what it costs. */
bool wr_compact_plan_list(struct plan *p, const struct weir_sketch *sk)
{
    int32_t base;
    begin_plan(p, sk, WR_BINS_POSITIVE, WR_COMPACT_GATHERED);
    gather_list(p, &base);
    int32_t best = 0;
    int32_t sum = 0;
    for (size_t k = 0; k < p->list_n; k++) {
        const int32_t gap = k ? p->fews[k].at - p->fews[k - 1].at - 1 : 0;
        sum = (sum > gap ? sum - gap : 0) + (p->fews[k].count > 1);
        best = sum > best ? sum : best;
    }
    if (!p->list_n || best > RUN_COST)
        return false;
    p->lo = base;
    p->few = true;
    return true;
}

bool wr_compact_plan_bins(struct plan *p, const struct weir_sketch *sk, enum wr_bins_sign sign,
                          enum wr_compact_way way)
{
    int32_t lo;
    const size_t span = wr_codec_span(sk, sign, &lo);
    if (!span)
        return false;
    begin_plan(p, sk, sign, way);
    p->lo = lo;
    p->end = lo + (int64_t)span;
    p->read_at = 0;
    p->read_n = 0;
    p->small = span <= SMALL_MAX && wr_bins_read_small(sk, sign, lo, span, p->counts);
    if (!p->small)
        return true;
    const size_t words = (span + 63) / 64;
    memset(p->counts + span, 0, (words * 64 - span) * sizeof p->counts[0]);
    for (size_t w = 0; w < words; w++)
        mark(p->counts + w * 64, &p->used[w], &p->several[w]);
    return true;
}

enum split wr_compact_plan_blocks(struct plan *p)
{
    if (!p->few)
        find_runs(p);
    return choose(p);
}
