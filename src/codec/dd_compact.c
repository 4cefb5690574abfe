/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dd_compact: reading DDSketch's compact encoding. See docs/formats/ddsketch-compact.md.
 *
 * The bytes are blocks in any order, any number of times: those that say the same thing add, so
 * that encodings one behind the other are a merge. The mapping may come after bins, or not at all.
 * Bins need it only to be told whose they are, so they are taken as they come when it is known, or
 * given by the options; else this walk only checks, and a second one takes them.
 *
 * Statistics that came along are believed when the total that came with them is that of the bins.
 *
 * Threads: any. Memory: none but the sketch's. A count of bins is believed as far as there are
 * bytes for them.
 * Source: sketches-go ddsketch/encoding, sketches-java ddsketch/encoding.
 */
#include "codec/dd_compact.h"

#include "codec/codec.h"
#include "codec/varfloats.h"

enum { RUN_MAX = 2048 };

/* Bins on their way to the sketch, where neighbours go together: [lo, hi) of counts are set, and
 * are bins base + lo and on. It grows at both ends, since tails may come behind what they are of.
 * From the first that is not a whole count of 16 bits on it is wide: weights are, instead. */
struct run {
    enum wr_bins_sign sign;
    int64_t base;
    size_t lo;
    size_t hi;
    bool wide;
    uint16_t counts[RUN_MAX];
    uint64_t weights[RUN_MAX];
};

struct reader {
    const uint8_t *begin;
    const uint8_t *at;
    const uint8_t *end;
    int err;
    const char *reason;
    const uint8_t *bad;

    const struct weir_codec_opts *opts;
    struct wr_codec_bins bins;
    struct wr_codec_mapping mapping;
    bool has_mapping;
    bool building; /* bins are taken */
    bool by_opts;  /* with the mapping of the options */
    bool again;    /* bins were passed over, or taken with another mapping: walk once more */

    double zeros;
    bool has_total;
    bool has_sum;
    double total;
    struct wr_bins_stats stats;
    struct run run;
};

/* Taking bytes: after the first refusal everything is 0. */

static void refuse(struct reader *r, int err, const char *reason)
{
    if (!r->err) {
        r->err = err;
        r->reason = reason;
        r->bad = r->at;
    }
    r->at = r->end;
}

static void cut(struct reader *r)
{
    refuse(r, WEIR_ETRUNCATED, "the bytes end inside a block");
}

static uint64_t take_uvarint(struct reader *r)
{
    uint64_t v = 0;
    const uint8_t *const at = wr_uvarint9_get(r->at, r->end, &v);
    if (!at) {
        cut(r);
        return 0;
    }
    r->at = at;
    return v;
}

static int64_t take_varint(struct reader *r)
{
    return wr_codec_unzigzag(take_uvarint(r));
}

static double take_varfloat(struct reader *r)
{
    double v = 0;
    const uint8_t *const at = wr_varfloat_get(r->at, r->end, &v);
    if (!at) {
        cut(r);
        return 0;
    }
    r->at = at;
    return v;
}

static double take_double(struct reader *r)
{
    if (r->end - r->at < 8) {
        cut(r);
        return 0;
    }
    const uint64_t bits = wr_load64le(r->at);
    double v;
    memcpy(&v, &bits, sizeof v);
    r->at += 8;
    return v;
}

/* A count that is no bin's. */
static double take_count(struct reader *r)
{
    const double v = take_varfloat(r);
    if (!(v >= 0 && v <= DBL_MAX)) {
        refuse(r, WEIR_EFORMAT, "a count that is not finite, or negative");
        return 0;
    }
    return v;
}

/* Bins */

static void check(struct reader *r, int err)
{
    if (err == WEIR_EFORMAT)
        refuse(r, err, "a count that is not finite or negative, or an index past 32 bits");
    else if (err != WEIR_OK)
        refuse(r, err, err == WEIR_ERANGE ? "counts of more than 64 bits" : "no memory");
}

static void flush(struct reader *r)
{
    struct run *const run = &r->run;
    const int64_t first = run->base + (int64_t)run->lo;
    const size_t n = run->hi - run->lo;
    if (r->building && !r->err && n && run->wide)
        check(r, wr_codec_add_run(&r->bins, run->sign, first, run->weights + run->lo, n));
    else if (r->building && !r->err && n)
        check(r, wr_codec_add_counts(&r->bins, run->sign, first, run->counts + run->lo, n));
    run->lo = 0;
    run->hi = 0;
    run->wide = false;
}

static void widen(struct run *run)
{
    for (size_t i = run->lo; i < run->hi && !run->wide; i++)
        run->weights[i] = (uint64_t)run->counts[i] << 20;
    run->wide = true;
}

/* Nothing is in [from, to) yet. */
static void set_zeros(struct run *run, size_t from, size_t to)
{
    if (run->wide)
        memset(run->weights + from, 0, (to - from) * sizeof run->weights[0]);
    else
        memset(run->counts + from, 0, (to - from) * sizeof run->counts[0]);
}

static bool index_fits(struct reader *r, int64_t index)
{
    if (index >= INT32_MIN && index <= INT32_MAX)
        return true;
    refuse(r, WEIR_EFORMAT, "an index past 32 bits");
    return false;
}

/* Where [index, index + n), of 32 bits, lies in the run, n <= RUN_MAX. What was not there is 0;
 * *ret_fresh: that is all of it. */
static size_t room(struct reader *r, int64_t index, size_t n, bool *ret_fresh)
{
    struct run *const run = &r->run;
    if (run->hi == run->lo || index < run->base || index + (int64_t)n > run->base + RUN_MAX) {
        flush(r);
        run->base = index - (int64_t)(RUN_MAX - n) / 2;
        run->lo = (size_t)(index - run->base);
        run->hi = run->lo;
    }
    const size_t at = (size_t)(index - run->base);
    *ret_fresh = at >= run->hi || at + n <= run->lo;
    if (at < run->lo)
        set_zeros(run, at, run->lo);
    if (at + n > run->hi)
        set_zeros(run, run->hi, at + n);
    run->lo = at < run->lo ? at : run->lo;
    run->hi = at + n > run->hi ? at + n : run->hi;
    return at;
}

/* weight more at place at. */
static void put_at(struct reader *r, size_t at, uint64_t weight)
{
    struct run *const run = &r->run;
    const uint64_t count = (weight >> 20) + run->counts[at]; /* when it is not wide */
    if (WR_LIKELY(!run->wide && is_whole(weight) && count <= UINT16_MAX)) {
        run->counts[at] = (uint16_t)count;
        return;
    }
    widen(run);
    if (__builtin_add_overflow(run->weights[at], weight, &run->weights[at]))
        refuse(r, WEIR_ERANGE, "counts of more than 64 bits");
}

/* weight more at index, which is of 32 bits. */
static void put(struct reader *r, int64_t index, uint64_t weight)
{
    bool fresh;
    put_at(r, room(r, index, 1, &fresh), weight);
}

static void put_count(struct reader *r, int64_t index, double count)
{
    uint64_t weight = 0;
    check(r, wr_codec_weight(&r->bins, count, &weight));
    put(r, index, weight);
}

static void take_pairs(struct reader *r, uint64_t n)
{
    int64_t index = 0;
    while (n-- && !r->err) {
        if (wr_add_i64(index, take_varint(r), &index))
            index = INT64_MAX; /* refused next */
        const double count = take_varfloat(r);
        if (!r->err && index_fits(r, index))
            put_count(r, index, count);
    }
}

static void take_ones(struct reader *r, uint64_t n)
{
    int64_t index = 0;
    while (n-- && !r->err) {
        if (wr_add_i64(index, take_varint(r), &index))
            index = INT64_MAX;
        if (!r->err && index_fits(r, index))
            put(r, index, WEIR_WEIGHT_ONE);
    }
}

/* Counts of one bin behind the other, both ends of 32 bits. */
static void take_neighbours(struct reader *r, int64_t index, uint64_t n)
{
    struct run *const run = &r->run;
    while (n && !r->err) {
        const size_t m = n < RUN_MAX ? (size_t)n : RUN_MAX;
        bool fresh;
        const size_t at = room(r, index, m, &fresh);
        for (size_t i = 0; i < m && !r->err; i++) {
            if (fresh && !run->wide && r->bins.carry == 0)
                i += wr_varfloats_get(&r->at, r->end, run->counts + at + i, m - i);
            if (i == m)
                break;
            uint64_t weight = 0;
            check(r, wr_codec_weight(&r->bins, take_varfloat(r), &weight));
            put_at(r, at + i, weight);
        }
        index += (int64_t)m;
        n -= m;
    }
}

static void take_run(struct reader *r, uint64_t n)
{
    int64_t index = take_varint(r);
    const int64_t step = take_varint(r);
    if (r->err || !n || !index_fits(r, index))
        return;
    if (step == 1 && n - 1 <= (uint64_t)(INT32_MAX - index)) {
        take_neighbours(r, index, n);
        return;
    }
    while (n-- && !r->err) {
        const double count = take_varfloat(r);
        if (!r->err && index_fits(r, index))
            put_count(r, index, count);
        if (wr_add_i64(index, step, &index))
            index = INT64_MAX;
    }
}

static void begin(struct reader *r)
{
    const int err = wr_codec_begin(&r->bins, r->bins.sk, r->opts, r->by_opts ? NULL : &r->mapping);
    if (err != WEIR_OK)
        refuse(r, err, "no mapping, or one that is not supported");
    r->building = err == WEIR_OK;
}

static void take_bins(struct reader *r, uint8_t flag)
{
    const enum wr_bins_sign sign =
        (flag & TYPE_MASK) == TYPE_POSITIVE ? WR_BINS_POSITIVE : WR_BINS_NEGATIVE;
    if (sign != r->run.sign)
        flush(r);
    r->run.sign = sign;
    if (!r->building && !r->again && (r->has_mapping || r->opts->mapping)) {
        r->by_opts = !r->has_mapping;
        begin(r);
    }
    r->again |= !r->building;
    const uint64_t n = take_uvarint(r);
    if (n > (uint64_t)(r->end - r->at)) {
        cut(r); /* each takes a byte at least */
        return;
    }
    switch (flag - (flag & TYPE_MASK)) {
    case BLOCK_PAIRS:
        take_pairs(r, n);
        break;
    case BLOCK_ONES:
        take_ones(r, n);
        break;
    case BLOCK_RUN:
        take_run(r, n);
        break;
    default:
        refuse(r, WEIR_EFORMAT, "a block of bins that is not known");
        break;
    }
}

/* The rest */

static void take_mapping(struct reader *r, uint8_t flag)
{
    /* 0x02, 0x06, ... are LOG, LINEAR, ... */
    struct wr_codec_mapping m = {.kind = (uint32_t)WEIR_MAPPING_LOG + (uint32_t)(flag >> 2)};
    m.gamma = take_double(r);
    m.offset = take_double(r);
    if (r->err)
        return;
    if (m.kind > WEIR_MAPPING_QUARTIC) {
        refuse(r, WEIR_EVERSION, "a mapping that is not known");
        return;
    }
    if (!r->has_mapping) {
        r->mapping = m;
        r->has_mapping = true;
        r->again |= r->building;
    } else if (m.kind != r->mapping.kind || !wr_codec_near(m.gamma, r->mapping.gamma) ||
               !wr_codec_near(m.offset, r->mapping.offset)) {
        refuse(r, WEIR_EFORMAT, "two mappings that differ");
    }
}

static void take_feature(struct reader *r, uint8_t flag)
{
    struct wr_bins_stats *const s = &r->stats;
    double v;
    switch (flag) {
    case FLAG_ZEROS:
        r->zeros += take_count(r);
        break;
    case FLAG_TOTAL:
        r->total += take_count(r);
        r->has_total = true;
        break;
    case FLAG_SUM:
        s->sum += take_double(r);
        break;
    case FLAG_MIN:
        v = take_double(r);
        s->min = s->has_min && s->min <= v ? s->min : v;
        s->has_min = true;
        break;
    case FLAG_MAX:
        v = take_double(r);
        s->max = s->has_max && s->max >= v ? s->max : v;
        s->has_max = true;
        break;
    default:
        refuse(r, WEIR_EFORMAT, "a block that is not known");
        break;
    }
}

static void walk(struct reader *r)
{
    r->at = r->begin;
    while (r->at != r->end) {
        const uint8_t flag = *r->at++;
        switch (flag & TYPE_MASK) {
        case TYPE_FEATURE:
            take_feature(r, flag);
            break;
        case TYPE_MAPPING:
            take_mapping(r, flag);
            break;
        default:
            take_bins(r, flag);
            break;
        }
    }
    flush(r);
}

/* What was read so far is forgotten, but for the mapping. */
static void walk_again(struct reader *r)
{
    r->building = false;
    r->by_opts = false;
    r->again = false;
    r->zeros = 0;
    r->total = 0;
    r->stats = (struct wr_bins_stats){.has_sum = false};
    begin(r);
    if (!r->err)
        walk(r);
}

static void finish(struct reader *r)
{
    if (!r->building && !r->err) { /* not one bin */
        r->by_opts = !r->has_mapping;
        begin(r);
    }
    if (!r->err)
        check(r, wr_codec_add_zero(&r->bins, r->zeros));
    if (r->err)
        return;
    /* A sum of 0 is left out by sketches-java. */
    const double weight = (double)weir_sketch_weight(r->bins.sk) * 0x1p-20;
    const bool believed = r->has_total && fabs(r->total - weight) <= 1e-9 * weight + 0x1p-20;
    r->stats.has_sum = believed;
    r->stats.has_min &= believed;
    r->stats.has_max &= believed;
    check(r, wr_codec_end(&r->bins, &r->stats));
}

int wr_dd_compact_decode(const struct weir_codec_opts *opts, const uint8_t *src, size_t bytes,
                         struct weir_sketch *sk, struct weir_where *where)
{
    struct reader r; /* the run's bins are not set */
    memset(&r, 0, offsetof(struct reader, run.weights));
    r.begin = src;
    r.end = src + bytes;
    r.opts = opts;
    r.bins.sk = sk;
    walk(&r);
    if (!r.err && r.again && r.has_mapping)
        walk_again(&r);
    finish(&r);
    if (r.err)
        wr_codec_refuse(where, (size_t)(r.bad - r.begin), r.reason, r.err);
    return r.err;
}
