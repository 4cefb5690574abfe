/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dd_compact_write: writing DDSketch's compact encoding in few bytes. See
 * docs/formats/ddsketch-compact.md.
 *
 * A bin of one sign can go into one of three kinds of block: ones (an index delta for each whole
 * weight: one byte a sample), pairs (a delta and a count: two bytes and more) or a run (a count and
 * no index: one byte and more, also for every empty bin in between). Where most bins hold several
 * samples a run is shorter, by a byte a bin; where most are empty it is longer, by a byte a bin; a
 * bin of one sample is the same in both. So the runs are the segments of greatest sum over scores
 * of +1, 0 and -1, each less the bytes that a block costs. That sum has one pass: a segment is
 * entered when its sum is better than none, and ends for good where a new one would be better than
 * going on. Stretches without an empty bin, the most of a full sketch, are added up at once.
 *
 * What is outside of runs goes into one block of ones, one of pairs, or both, whatever is shortest
 * by count. Deltas may jump over a run. Where all counts are small they are gathered first, and
 * counted and written without a branch on a count: those of few samples follow no pattern.
 *
 * Threads: any. Memory: none; bins are read a stretch at a time.
 */
#include "codec/dd_compact.h"

#include "codec/varfloat.h"

enum {
    SMALL_MAX = 2048, /* bins that are read once, for good: the default limit of a sketch */
    CHUNK = 256,      /* else so many at a time */
    RUNS_MAX = 64,
    LIST_MAX = 256,
    SCAN = 8
};

/* Bytes of a whole count in the low three, how many they are in the high one. */
static const uint32_t table[8192] = {
#include "codec/varfloat.inc"
};

/* What a run costs beside its counts: flag, how many, first index, step, and that the next delta
 * of the block around it is longer. */
#define RUN_COST 7

/* Bins [first, end) of the sign that is written. */
struct segment {
    int64_t first;
    int64_t end;
};

/* A bin that is used. */
struct bin {
    int64_t index;
    uint64_t weight;
};

/* The same with a count below FEW_END. */
struct few {
    uint16_t at; /* above lo */
    uint16_t count;
};

struct plan {
    const struct weir_sketch *sk;
    enum wr_bins_sign sign;
    int64_t lo;
    int64_t end;
    bool small;     /* all counts are in counts */
    uint64_t ones;  /* outside of runs: deltas of the block of ones */
    uint64_t pairs; /* and bins of the block of pairs */
    bool listed;    /* what is outside of runs is in list */
    bool gathers;   /* small counts outside of runs go to fews */
    bool few;       /* what is outside of runs is there */
    size_t list_n;  /* how many are there */
    size_t n;
    struct segment runs[RUNS_MAX];
    struct bin list[LIST_MAX];
    uint64_t weights[CHUNK]; /* of the stretch that is worked on */
    int64_t read_at;         /* of which bin the first one is, and how many there are */
    size_t read_n;
    uint16_t counts[SMALL_MAX + SCAN]; /* and zeros behind them */
    struct few fews[SMALL_MAX];
};

/* Which bins outside of runs are pairs. */
enum split { ALL_ONES, ALL_PAIRS, SPLIT };

enum { FEW_END = sizeof table / sizeof table[0], PAIR_LEAST = 3 };
_Static_assert(SMALL_MAX >= WR_BINS_FEW_SPAN, "the bins of a list are more");

/* Most are of one byte. */
WR_INLINE bool is_near(int64_t delta)
{
    return delta >= -64 && delta < 64;
}

WR_INLINE size_t varint_bytes(int64_t v)
{
    return is_near(v) ? 1 : wr_uvarint9_bytes(wr_codec_zigzag(v));
}

static bool is_whole(uint64_t weight)
{
    return (weight & (WEIR_WEIGHT_ONE - 1)) == 0;
}

static size_t count_bytes(uint64_t weight)
{
    if (is_whole(weight) && weight >> 20 < WR_VARFLOAT_SHORT)
        return wr_varfloat_short((uint32_t)(weight >> 20)) >> 24;
    return wr_varfloat_bytes((double)weight * 0x1p-20);
}

/* The next stretch of [at, end) is in p->weights; how many bins it has. Not when they are small. */
static size_t next_bins(struct plan *p, int64_t at, int64_t end)
{
    const size_t n = end - at < CHUNK ? (size_t)(end - at) : CHUNK;
    wr_bins_read(p->sk, p->sign, (int32_t)at, n, p->weights);
    return n;
}

/* Of four counts that are not all 0, how many are before the first that is not. */
WR_INLINE int64_t lanes_before(uint64_t word)
{
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    return wr_clz64(word) / 16;
#else
    return __builtin_ctzll(word) / 16;
#endif
}

/* The first bin of [at, end) that is not empty, end when all are, and its weight. */
static int64_t next_used(struct plan *p, int64_t at, int64_t end, uint64_t *ret_weight)
{
    if (p->small) {
        for (uint64_t word; at < end; at += 4) {
            memcpy(&word, p->counts + (at - p->lo), sizeof word);
            if (!word)
                continue;
            at += lanes_before(word);
            *ret_weight = (uint64_t)p->counts[at - p->lo] << 20;
            return at < end ? at : end;
        }
        return end;
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

/* m bins, one by one. */
static void score(struct scan *s, int64_t at, const uint16_t *counts, size_t m)
{
    for (size_t k = 0; k < m; k++) {
        if (counts[k] > 1)
            score_up(s, at + (int64_t)k, 1, 1);
        else if (!counts[k])
            score_down(s);
    }
}

/* Lanes of 16 bits that are at least least (1 or 2): their top bits. */
WR_INLINE uint64_t lanes_of(uint64_t word, uint64_t least)
{
    const uint64_t low = UINT64_C(0x7fff7fff7fff7fff);
    const uint64_t carry = UINT64_C(0x8000800080008000) - UINT64_C(0x0001000100010001) * least;
    return (((word & low) + carry) | word) & ~low;
}

static void score_full(struct scan *s, int64_t end, size_t *eights)
{
    const int64_t bins = (int64_t)(*eights * SCAN);
    if (bins)
        score_up(s, end - bins, bins, bins);
    *eights = 0;
}

/* All bins of small counts: eight at a time, in two words; the most have no bin below two. */
static void scan_small(struct scan *s)
{
    const struct plan *const p = s->plan;
    const uint64_t all = UINT64_C(0x8000800080008000);
    const size_t n = (size_t)(p->end - p->lo);
    size_t full = 0; /* eights before i, not yet scored, without a bin below two */
    size_t i = 0;
    for (; i + SCAN <= n; i += SCAN) {
        uint64_t words[2];
        memcpy(words, p->counts + i, sizeof words);
        const uint64_t several[2] = {lanes_of(words[0], 2), lanes_of(words[1], 2)};
        if (WR_LIKELY((several[0] & several[1]) == all)) {
            full++;
            continue;
        }
        score_full(s, p->lo + (int64_t)i, &full);
        if (!s->is_open && !(several[0] | several[1]))
            continue; /* nothing to enter for */
        if ((lanes_of(words[0], 1) & lanes_of(words[1], 1)) == all) {
            const int up = __builtin_popcountll(several[0]) + __builtin_popcountll(several[1]);
            score_up(s, p->lo + (int64_t)i, SCAN, up);
        } else {
            score(s, p->lo + (int64_t)i, p->counts + i, SCAN);
        }
    }
    score_full(s, p->lo + (int64_t)i, &full);
    score(s, p->lo + (int64_t)i, p->counts + i, n - i);
}

/* Any weights, as counts that are as good as they are: 0, 1, or more. */
static void scan_any(struct scan *s)
{
    struct plan *const p = s->plan;
    size_t n;
    for (int64_t at = p->lo; at < p->end; at += (int64_t)n) {
        uint16_t counts[CHUNK];
        n = next_bins(p, at, p->end);
        for (size_t i = 0; i < n; i++)
            counts[i] = (uint16_t)((p->weights[i] > 0) + (p->weights[i] > WEIR_WEIGHT_ONE));
        score(s, at, counts, n);
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

/* The bins outside of runs, one after the other. Begin with zero. */
struct outside {
    size_t run;   /* before which it is */
    bool is_open; /* at and end are set */
    int64_t at;
    int64_t end;
    size_t next; /* of the list */
};

static bool walk_outside(struct plan *p, struct outside *o, struct bin *ret_bin)
{
    while (o->is_open || o->run <= p->n) {
        if (!o->is_open) {
            o->at = o->run ? p->runs[o->run - 1].end : p->lo;
            o->end = o->run < p->n ? p->runs[o->run].first : p->end;
            o->is_open = true;
            o->run++;
        }
        ret_bin->index = next_used(p, o->at, o->end, &ret_bin->weight);
        o->at = ret_bin->index + 1;
        if (ret_bin->index < o->end)
            return true;
        o->is_open = false;
    }
    return false;
}

static bool next_outside(struct plan *p, struct outside *o, struct bin *ret_bin)
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
    size_t n = p->list_n;
    uint32_t bits = 0;
    for (size_t i = (size_t)(first - p->lo); i < (size_t)(end - p->lo); i++) {
        const uint16_t count = p->counts[i];
        p->fews[n] = (struct few){.at = (uint16_t)i, .count = count};
        n += count != 0;
        bits |= count;
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

/* A bin that a pair says in fewer bytes than ones do, or that ones cannot say. */
static bool suits_pair(uint64_t weight)
{
    return weight >= PAIR_LEAST * WEIR_WEIGHT_ONE || !is_whole(weight);
}

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
        const uint64_t count = table[f.count] >> 24;
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
    while (next_outside(p, &o, &bin)) {
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
        while (next_outside(p, &o, &bin))
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

/* Writing */

static void put_uvarint(struct wr_codec_out *out, uint64_t v)
{
    if (wr_codec_room(out, wr_uvarint9_bytes(v)))
        out->at = wr_uvarint9_put(out->at, v);
}

static void put_varint(struct wr_codec_out *out, int64_t v)
{
    put_uvarint(out, wr_codec_zigzag(v));
}

static void put_varfloat(struct wr_codec_out *out, double v)
{
    if (wr_codec_room(out, wr_varfloat_bytes(v)))
        out->at = wr_varfloat_put(out->at, v);
}

static void put_flag(struct wr_codec_out *out, enum wr_bins_sign sign, uint8_t block)
{
    wr_codec_put_u8(out, block | (sign == WR_BINS_POSITIVE ? TYPE_POSITIVE : TYPE_NEGATIVE));
}

/* One count at `at`, where there are four bytes: all are stored, as many are kept as it has. */
WR_INLINE uint8_t *put_short(uint8_t *at, uint32_t bytes)
{
    wr_store32le(at, bytes);
    return at + (bytes >> 24);
}

/* n counts, four bytes of room for each. */
static uint8_t *put_small(uint8_t *at, const uint16_t *counts, size_t n)
{
    const uint32_t end = sizeof table / sizeof table[0];
    size_t i = 0;
    while (i < n) {
        while (i + 1 < n && (counts[i] | counts[i + 1]) < end) {
            at = put_short(at, table[counts[i]]);
            at = put_short(at, table[counts[i + 1]]);
            i += 2;
        }
        if (i == n)
            break;
        at = counts[i] < WR_VARFLOAT_SHORT ? put_short(at, wr_varfloat_short(counts[i]))
                                           : wr_varfloat_put(at, counts[i]); /* one byte */
        i++;
    }
    return at;
}

static void put_run(struct wr_codec_out *out, struct plan *p, struct segment s)
{
    uint64_t weight = 0;
    put_flag(out, p->sign, BLOCK_RUN);
    put_uvarint(out, (uint64_t)(s.end - s.first));
    put_varint(out, s.first);
    put_varint(out, 1);
    if (p->small && !out->full && (out->end - out->at) / 4 >= s.end - s.first) {
        out->at = put_small(out->at, p->counts + (s.first - p->lo), (size_t)(s.end - s.first));
        return;
    }
    for (int64_t at = s.first; at < s.end && !out->full; at++) {
        const int64_t used = next_used(p, at, s.end, &weight);
        for (; at < used; at++)
            wr_codec_put_u8(out, 0);
        if (at < s.end)
            put_varfloat(out, (double)weight * 0x1p-20);
    }
}

static void put_delta(struct wr_codec_out *out, int64_t delta)
{
    if (is_near(delta))
        wr_codec_put_u8(out, (uint8_t)wr_codec_zigzag(delta));
    else
        put_varint(out, delta);
}

/* A bin that is not empty. */
static void put_bin(struct wr_codec_out *out, uint8_t block, int64_t delta, uint64_t weight)
{
    put_delta(out, delta);
    if (block == BLOCK_PAIRS) {
        put_varfloat(out, (double)weight * 0x1p-20);
        return;
    }
    for (uint64_t n = weight >> 20; n > 1; n--)
        wr_codec_put_u8(out, 0);
}

/* A bin that is not taken is stored as well, and the next one over it. */
static void put_few_ones(struct wr_codec_out *out, const struct plan *p, enum split split)
{
    const uint32_t end = split == SPLIT ? PAIR_LEAST : FEW_END;
    int64_t last = -p->lo;
    for (size_t k = 0; k < p->list_n && !out->full; k++) {
        const struct few f = p->fews[k];
        const uint32_t count = f.count < end ? f.count : 0;
        const int64_t delta = f.at - last;
        if (WR_LIKELY(is_near(delta) && count <= 4 && out->end - out->at >= 4)) {
            wr_store32le(out->at, (uint32_t)wr_codec_zigzag(delta)); /* and three zeros */
            out->at += count;
        } else if (count) {
            put_bin(out, BLOCK_ONES, delta, (uint64_t)count << 20);
        }
        last = count ? f.at : last;
    }
}

static void put_few_pairs(struct wr_codec_out *out, const struct plan *p, enum split split)
{
    const uint32_t least = split == SPLIT ? PAIR_LEAST : 1;
    int64_t last = -p->lo;
    for (size_t k = 0; k < p->list_n && !out->full; k++) {
        const struct few f = p->fews[k];
        const bool taken = f.count >= least;
        const int64_t delta = f.at - last;
        if (WR_LIKELY(is_near(delta) && out->end - out->at >= 5)) {
            out->at[0] = (uint8_t)wr_codec_zigzag(delta);
            wr_store32le(out->at + 1, table[f.count]);
            out->at += taken ? 1 + (table[f.count] >> 24) : 0;
        } else if (taken) {
            put_bin(out, BLOCK_PAIRS, delta, (uint64_t)f.count << 20);
        }
        last = taken ? f.at : last;
    }
}

/* The bins outside of runs that belong into this block. */
static void put_outside(struct wr_codec_out *out, struct plan *p, enum split split, uint8_t block)
{
    struct outside o = {.run = 0};
    struct bin bin;
    int64_t last = 0;
    if (p->few) {
        if (block == BLOCK_ONES)
            put_few_ones(out, p, split);
        else
            put_few_pairs(out, p, split);
        return;
    }
    while (!out->full && next_outside(p, &o, &bin)) {
        if (split == SPLIT && suits_pair(bin.weight) != (block == BLOCK_PAIRS))
            continue;
        put_bin(out, block, bin.index - last, bin.weight);
        last = bin.index;
    }
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

/* The bins of a list are at hand, in order, without a look at what lies between them. false: it is
 * none, or some are worth a run: where the sum of scores can pass what it costs. */
static bool take_list(struct plan *p)
{
    int32_t base;
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

static void put_bins(struct wr_codec_out *out, struct plan *p)
{
    if (!p->few)
        find_runs(p);
    const enum split split = choose(p);
    for (size_t i = 0; i < p->n; i++)
        put_run(out, p, p->runs[i]);
    if (p->ones) {
        put_flag(out, p->sign, BLOCK_ONES);
        put_uvarint(out, p->ones);
        put_outside(out, p, split, BLOCK_ONES);
    }
    if (p->pairs) {
        put_flag(out, p->sign, BLOCK_PAIRS);
        put_uvarint(out, p->pairs);
        put_outside(out, p, split, BLOCK_PAIRS);
    }
}

/* One block: a run when it is not longer than pairs. */
static void put_one_block(struct wr_codec_out *out, struct plan *p)
{
    struct block pairs = {.n = 0};
    uint64_t run = wr_uvarint9_bytes((uint64_t)(p->end - p->lo)) + varint_bytes(p->lo) + 1 +
                   (uint64_t)(p->end - p->lo); /* a byte for an empty bin */
    uint64_t weight = 0;
    for (int64_t at = p->lo; (at = next_used(p, at, p->end, &weight)) < p->end; at++) {
        run += count_bytes(weight) - 1;
        count_pair(&pairs, at, weight);
    }
    if (run <= wr_uvarint9_bytes(pairs.n) + pairs.bytes) {
        put_run(out, p, (struct segment){.first = p->lo, .end = p->end});
        return;
    }
    put_flag(out, p->sign, BLOCK_PAIRS);
    put_uvarint(out, pairs.n);
    put_outside(out, p, ALL_PAIRS, BLOCK_PAIRS);
}

static void put_sign(struct wr_codec_out *out, const struct weir_codec_opts *opts,
                     const struct weir_sketch *sk, enum wr_bins_sign sign, enum wr_compact_way way)
{
    struct plan p; /* the arrays are not set */
    memset(&p, 0, offsetof(struct plan, runs));
    p.sk = sk;
    p.sign = sign;
    p.gathers = way == WR_COMPACT_GATHERED;
    if (p.gathers && sign == WR_BINS_POSITIVE && !(opts->flags & WEIR_CODEC_ONE_BLOCK) &&
        take_list(&p)) {
        put_bins(out, &p);
        return;
    }
    int32_t lo;
    const size_t span = wr_codec_span(sk, sign, &lo);
    if (!span)
        return;
    p.lo = lo;
    p.end = lo + (int64_t)span;
    p.read_at = 0;
    p.read_n = 0;
    p.small = span <= SMALL_MAX && wr_bins_read_small(sk, sign, lo, span, p.counts);
    if (p.small)
        memset(p.counts + span, 0, SCAN * sizeof p.counts[0]);
    if (opts->flags & WEIR_CODEC_ONE_BLOCK)
        put_one_block(out, &p);
    else
        put_bins(out, &p);
}

static void put_feature(struct wr_codec_out *out, uint8_t flag, double v)
{
    wr_codec_put_u8(out, flag);
    wr_codec_put_double(out, v);
}

/* Nothing is said of an empty sketch, or of a sum of 0: so does sketches-java. */
static void put_stats(struct wr_codec_out *out, const struct weir_sketch *sk, double factor)
{
    double min;
    double max;
    if (weir_sketch_min(sk, &min) != WEIR_OK || weir_sketch_max(sk, &max) != WEIR_OK)
        return;
    wr_codec_put_u8(out, FLAG_TOTAL);
    put_varfloat(out, (double)weir_sketch_weight(sk) * 0x1p-20);
    put_feature(out, FLAG_MIN, min * factor);
    put_feature(out, FLAG_MAX, max * factor);
    if (weir_sketch_sum(sk) != 0)
        put_feature(out, FLAG_SUM, weir_sketch_sum(sk) * factor);
}

int wr_dd_compact_encode_by(enum wr_compact_way way, const struct weir_codec_opts *opts,
                            const struct weir_sketch *sk, struct wr_codec_out *out)
{
    struct wr_codec_unit unit;
    const int r = wr_codec_unit(opts, sk, &unit);
    if (r != WEIR_OK)
        return r;
    if (!(opts->flags & WEIR_CODEC_NO_STATS) && weir_sketch_is_exact(sk))
        put_stats(out, sk, unit.factor);
    if (!(opts->flags & WEIR_CODEC_NO_MAPPING)) {
        wr_codec_put_u8(out, (uint8_t)(TYPE_MAPPING | (unit.mapping.kind - WEIR_MAPPING_LOG) << 2));
        wr_codec_put_double(out, unit.mapping.gamma);
        wr_codec_put_double(out, unit.mapping.offset);
    }
    if (wr_bins_zero(sk)) {
        wr_codec_put_u8(out, FLAG_ZEROS);
        put_varfloat(out, (double)wr_bins_zero(sk) * 0x1p-20);
    }
    put_sign(out, opts, sk, WR_BINS_POSITIVE, way);
    put_sign(out, opts, sk, WR_BINS_NEGATIVE, way);
    return WEIR_OK;
}

int wr_dd_compact_encode(const struct weir_codec_opts *opts, const struct weir_sketch *sk,
                         struct wr_codec_out *out)
{
    return wr_dd_compact_encode_by(WR_COMPACT_GATHERED, opts, sk, out);
}

size_t wr_dd_compact_bound(const struct weir_codec_opts *opts, const struct weir_sketch *sk)
{
    (void)opts;
    int32_t lo;
    const size_t bins =
        wr_codec_span(sk, WR_BINS_POSITIVE, &lo) + wr_codec_span(sk, WR_BINS_NEGATIVE, &lo);
    /* statistics 37, mapping 17, zeros 10; a sign 3 blocks of flag, count, index and step; a bin at
     * most an index and a count */
    return 37 + 17 + 10 + 2 * (RUNS_MAX + 2) * 15 + bins * (5 + WR_VARFLOAT_MAX);
}
