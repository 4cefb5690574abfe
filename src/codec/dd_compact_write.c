/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dd_compact_write: writing DDSketch's compact encoding in few bytes. See
 * docs/formats/ddsketch-compact.md.
 *
 * dd_compact_plan.c says what goes into which block. Where all counts are small, runs are written
 * several counts at a time, and what is outside of them without a branch on a count.
 *
 * Threads: any. Memory: none; bins are read a stretch at a time.
 */
#include "codec/dd_compact_plan.h"

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

static void put_run(struct wr_codec_out *out, struct plan *p, struct segment s)
{
    uint64_t weight = 0;
    put_flag(out, p->sign, BLOCK_RUN);
    put_uvarint(out, (uint64_t)(s.end - s.first));
    put_varint(out, s.first);
    put_varint(out, 1);
    if (p->small && !out->full && (out->end - out->at) / 4 >= s.end - s.first) {
        out->at =
            wr_varfloats_put(out->at, p->counts + (s.first - p->lo), (size_t)(s.end - s.first));
        return;
    }
    for (int64_t at = s.first; at < s.end && !out->full; at++) {
        const int64_t used = wr_compact_next_used(p, at, s.end, &weight);
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
            wr_store32le(out->at + 1, wr_varfloat_table[f.count]);
            out->at += taken ? 1 + (wr_varfloat_table[f.count] >> 24) : 0;
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
    while (!out->full && wr_compact_next_outside(p, &o, &bin)) {
        if (split == SPLIT && suits_pair(bin.weight) != (block == BLOCK_PAIRS))
            continue;
        put_bin(out, block, bin.index - last, bin.weight);
        last = bin.index;
    }
}

static void put_bins(struct wr_codec_out *out, struct plan *p)
{
    const enum split split = wr_compact_plan_blocks(p);
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
    uint64_t n = 0;
    uint64_t pairs = 0; /* bytes */
    uint64_t run = wr_uvarint9_bytes((uint64_t)(p->end - p->lo)) + varint_bytes(p->lo) + 1 +
                   (uint64_t)(p->end - p->lo); /* a byte for an empty bin */
    uint64_t weight = 0;
    int64_t last = 0;
    for (int64_t at = p->lo; (at = wr_compact_next_used(p, at, p->end, &weight)) < p->end; at++) {
        run += count_bytes(weight) - 1;
        pairs += varint_bytes(at - last) + count_bytes(weight);
        last = at;
        n++;
    }
    if (run <= wr_uvarint9_bytes(n) + pairs) {
        put_run(out, p, (struct segment){.first = p->lo, .end = p->end});
        return;
    }
    put_flag(out, p->sign, BLOCK_PAIRS);
    put_uvarint(out, n);
    put_outside(out, p, ALL_PAIRS, BLOCK_PAIRS);
}

static void put_sign(struct wr_codec_out *out, const struct weir_codec_opts *opts,
                     const struct weir_sketch *sk, enum wr_bins_sign sign, enum wr_compact_way way)
{
    const bool one_block = opts->flags & WEIR_CODEC_ONE_BLOCK;
    struct plan p;
    if (way == WR_COMPACT_GATHERED && sign == WR_BINS_POSITIVE && !one_block &&
        wr_compact_plan_list(&p, sk)) {
        put_bins(out, &p);
        return;
    }
    if (!wr_compact_plan_bins(&p, sk, sign, way))
        return;
    if (one_block)
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
