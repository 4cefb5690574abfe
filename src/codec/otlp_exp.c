/* SPDX-License-Identifier: Apache-2.0 */
/*
 * otlp_exp: ExponentialHistogramDataPoint of OpenTelemetry's metrics, protobuf.
 *
 *   4 count, 5 sum, 6 scale, 7 zero_count, 8 positive, 9 negative, 10 flags, 12 min, 13 max,
 *   14 zero_threshold; of buckets: 1 offset, 2 bucket_counts
 *
 * Its bins are those of BASE2, so nothing is lost but what is finer than a sketch goes: scales
 * above WEIR_SCALE_MAX are read at that one, index by index. Times, attributes and exemplars are
 * the business of whoever has the point; a writer appends their fields, protobuf does not mind
 * where.
 *
 * What lies within zero_threshold is a zero here: an answer of 0 is off by up to the threshold.
 *
 * Threads: any. Memory: the sketch's.
 * Source: opentelemetry-proto 1.7, metrics/v1.
 */
#include "codec/counts.h"

#include <float.h>

#define LEN(number) WR_PB_TAG(number, WR_PB_LEN)
#define VARINT(number) WR_PB_TAG(number, WR_PB_VARINT)
#define FIXED64(number) WR_PB_TAG(number, WR_PB_FIXED64)

#define FLAG_NO_RECORDED_VALUE 1u
/* Below 2^-1022 there are zeros in a sketch. */
#define ZERO_THRESHOLD 0x1p-1022

struct side {
    const uint8_t *at; /* NULL: there is none */
    const uint8_t *end;
    int64_t offset;
};

struct point {
    struct wr_pb pb;
    uint64_t count;
    uint64_t zero_count;
    uint64_t flags;
    int64_t scale;
    double zero_threshold;
    struct side side[2]; /* enum wr_bins_sign */
    struct wr_bins_stats stats;
};

static const uint8_t *read_side(struct point *p, struct side *side, const struct wr_pb_field *f,
                                const uint8_t *end)
{
    if (side->at)
        return wr_pb_fail(&p->pb, f->ptr, WEIR_EFORMAT, "the buckets of one sign twice");
    side->at = f->ptr;
    side->end = end;
    for (const uint8_t *at = f->ptr; at < end;) {
        struct wr_pb_field in;
        at = wr_pb_field(&p->pb, at, end, &in);
        if (!at)
            return NULL;
        if (in.tag == VARINT(1))
            side->offset = wr_codec_unzigzag(in.u);
    }
    return end;
}

static const uint8_t *read_field(struct point *p, const struct wr_pb_field *f, const uint8_t *end)
{
    switch (f->tag) {
    case FIXED64(4):
        p->count = f->u;
        break;
    case FIXED64(5):
        p->stats.has_sum = true;
        p->stats.sum = wr_counts_double(f->u);
        break;
    case VARINT(6):
        p->scale = wr_codec_unzigzag(f->u);
        break;
    case FIXED64(7):
        p->zero_count = f->u;
        break;
    case LEN(8):
        return read_side(p, &p->side[WR_BINS_POSITIVE], f, end);
    case LEN(9):
        return read_side(p, &p->side[WR_BINS_NEGATIVE], f, end);
    case VARINT(10):
        p->flags = f->u;
        break;
    case FIXED64(12):
        p->stats.has_min = true;
        p->stats.min = wr_counts_double(f->u);
        break;
    case FIXED64(13):
        p->stats.has_max = true;
        p->stats.max = wr_counts_double(f->u);
        break;
    case FIXED64(14):
        p->zero_threshold = wr_counts_double(f->u);
        break;
    default:
        break;
    }
    return end;
}

static bool read_point(struct point *p)
{
    for (const uint8_t *at = p->pb.begin; at < p->pb.end;) {
        struct wr_pb_field f;
        const uint8_t *const next = wr_pb_field(&p->pb, at, p->pb.end, &f);
        if (!next || !read_field(p, &f, next))
            return false;
        at = next;
    }
    return true;
}

static int walk_side(struct point *p, struct wr_counts *c, enum wr_bins_sign sign, unsigned shift)
{
    const struct side *const side = &p->side[sign];
    if (!side->at)
        return WEIR_OK;
    struct wr_values counts = wr_values(&p->pb, side->at, side->end, 2, WR_PB_VARINT);
    int64_t index = side->offset;
    uint64_t count;
    for (; wr_values_next(&counts, &count); index++) {
        uint64_t weight;
        if (!wr_counts_weight(count, &weight))
            return WEIR_ERANGE;
        const int r = wr_counts_take(c, sign, wr_counts_coarser(index, shift), weight);
        if (r != WEIR_OK)
            return r;
    }
    return p->pb.err;
}

static int walk(struct point *p, struct wr_counts *c, unsigned shift)
{
    const int r = walk_side(p, c, WR_BINS_POSITIVE, shift);
    return r == WEIR_OK ? walk_side(p, c, WR_BINS_NEGATIVE, shift) : r;
}

/* sint32 fields are of 32 bits, whatever their varints hold. */
static bool fits32(int64_t v)
{
    return v >= INT32_MIN && v <= INT32_MAX;
}

static int check_point(const struct point *p, struct weir_where *where)
{
    if (p->flags & FLAG_NO_RECORDED_VALUE)
        return wr_codec_refuse(where, 0, "a point without a recorded value", WEIR_EEMPTY);
    if (!fits32(p->scale) || !fits32(p->side[0].offset) || !fits32(p->side[1].offset))
        return wr_codec_refuse(where, 0, "a scale or offset of more than 32 bits", WEIR_EFORMAT);
    if (p->scale < WEIR_SCALE_MIN)
        return wr_codec_refuse(where, 0, "a scale below -10", WEIR_EVERSION);
    if (!(p->zero_threshold >= 0 && p->zero_threshold <= DBL_MAX))
        return wr_codec_refuse(where, 0, "the zero threshold is no distance", WEIR_EFORMAT);
    return WEIR_OK;
}

static int load_point(struct point *p, struct weir_sketch *sk, struct weir_where *where)
{
    const int32_t scale = p->scale > WEIR_SCALE_MAX ? WEIR_SCALE_MAX : (int32_t)p->scale;
    const int64_t finer = p->scale - scale;
    const unsigned shift = finer > 63 ? 63 : (unsigned)finer;
    struct wr_counts c;
    uint64_t zeros;
    uint64_t count;
    int r = wr_counts_begin_base2(sk, scale);
    if (r != WEIR_OK)
        return r;
    wr_counts_init(&c, sk, 0);
    if (!wr_counts_weight(p->zero_count, &zeros) || !wr_counts_weight(p->count, &count) ||
        wr_counts_take_zero(&c, zeros) != WEIR_OK)
        return wr_codec_refuse(where, 0, "counts of more than 2^44", WEIR_ERANGE);
    r = walk(p, &c, shift);
    if (p->pb.err != WEIR_OK)
        return wr_counts_refused(&p->pb, where);
    if (r != WEIR_OK)
        return wr_codec_refuse(where, 0, "a bin past the range of doubles, or counts past 2^44", r);
    if (c.total != count)
        return wr_codec_refuse(where, 0, "count is not that of the bins", WEIR_EFORMAT);
    r = wr_counts_load(&c);
    if (r == WEIR_OK)
        r = walk(p, &c, shift);
    return r == WEIR_OK ? wr_counts_end(&c, &p->stats) : r;
}

int wr_otlp_exp_decode(const struct weir_codec_opts *opts, const uint8_t *src, size_t bytes,
                       struct weir_sketch *sk, struct weir_where *where)
{
    (void)opts;
    struct point p;
    memset(&p, 0, sizeof p);
    p.pb = wr_pb_init(src, bytes);
    if (!read_point(&p))
        return wr_counts_refused(&p.pb, where);
    const int r = check_point(&p, where);
    return r == WEIR_OK ? load_point(&p, sk, where) : r;
}

/* Writing */

static void put_side(struct wr_codec_out *out, uint32_t number, const struct wr_whole *w)
{
    if (!w->total)
        return;
    const size_t packed = wr_whole_varint_bytes(w);
    const uint64_t offset = wr_codec_zigzag(w->first);
    const size_t bytes = 1 + wr_codec_varint_bytes(packed) + packed +
                         (offset ? 1 + wr_codec_varint_bytes(offset) : 0);
    wr_counts_put_head(out, number, bytes);
    if (offset)
        wr_counts_put_uint(out, 1, offset);
    wr_counts_put_head(out, 2, packed);
    wr_whole_put_varints(out, w);
}

/*
 * Fields in the order of their numbers, and none at its default, as the encoders of protobuf have
 * it. With negative values there is no sum: the metrics data model wants it so.
 */
int wr_otlp_exp_encode(const struct weir_codec_opts *opts, const struct weir_sketch *sk,
                       struct wr_codec_out *out)
{
    int32_t scale;
    int64_t add;
    struct wr_counts_stats stats;
    if (!wr_counts_base2(weir_sketch_mapping(sk), &scale, &add))
        return WEIR_EVERSION;
    const int r = wr_counts_unit(opts, sk, &stats);
    if (r != WEIR_OK)
        return r;
    struct wr_whole pos;
    struct wr_whole neg;
    int64_t carry = 0;
    wr_whole_init(&pos, sk, WR_BINS_POSITIVE, add, 0, &carry);
    const uint64_t zeros = wr_counts_whole(wr_bins_zero(sk), &carry);
    wr_whole_init(&neg, sk, WR_BINS_NEGATIVE, add, 0, &carry);
    const uint64_t count = pos.total + zeros + neg.total;
    if (count)
        wr_counts_put_fixed64(out, 4, count);
    if (count && !neg.total)
        wr_counts_put_double(out, 5, stats.sum);
    if (scale)
        wr_counts_put_sint(out, 6, scale);
    if (zeros)
        wr_counts_put_fixed64(out, 7, zeros);
    put_side(out, 8, &pos);
    put_side(out, 9, &neg);
    if (count && weir_sketch_is_exact(sk)) {
        wr_counts_put_double(out, 12, stats.min);
        wr_counts_put_double(out, 13, stats.max);
    }
    if (zeros)
        wr_counts_put_double(out, 14, ZERO_THRESHOLD);
    return WEIR_OK;
}

size_t wr_otlp_exp_bound(const struct weir_codec_opts *opts, const struct weir_sketch *sk)
{
    (void)opts;
    return 128 + WR_COUNTS_COUNT_MAX * wr_counts_spans(sk);
}
