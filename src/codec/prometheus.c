/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prometheus: native histograms, as io.prometheus.client.Histogram, protobuf.
 *
 *   1 sample_count, 2 sample_sum, 3 bucket (classic), 4 sample_count_float, 5 schema,
 *   6 zero_threshold, 7 zero_count, 8 zero_count_float, 9 negative_span, 10 negative_delta,
 *   11 negative_count, 12 positive_span, 13 positive_delta, 14 positive_count;
 *   of a span: 1 offset, 2 length
 *
 * Bucket k is bin k - 1 of BASE2 at scale schema. Spans say which buckets there are, deltas what is
 * in them, each as its difference from the one before; histograms of floats have counts instead.
 *
 * An observation of NaN counts in count and sum and in no bucket, an infinite one lies in a bucket
 * past DBL_MAX. A sketch knows neither: they are left out, and what remains is the count. The sum
 * is then not finite, and is derived from the bins.
 *
 * Threads: any. Memory: the sketch's.
 * Source: client_model 0.6.2, io/prometheus/client/metrics.proto; the native histograms
 * specification.
 */
#include "codec/counts.h"

#include <float.h>

#define LEN(number) WR_PB_TAG(number, WR_PB_LEN)
#define VARINT(number) WR_PB_TAG(number, WR_PB_VARINT)
#define FIXED64(number) WR_PB_TAG(number, WR_PB_FIXED64)

#define SCHEMA_MIN (-4)
#define SCHEMA_MAX 8
#define SCHEMA_CUSTOM (-53)
/* Below 2^-1022 there are zeros in a sketch. Never left out: it tells a native histogram without
 * buckets from a classic one. */
#define ZERO_THRESHOLD 0x1p-1022
/* Empty buckets that a span goes on over: a new span takes more bytes than they do. */
#define GAP_MAX 2

struct hist {
    struct wr_pb pb;
    uint64_t count;
    double count_float;
    double zero_float;
    double zero_threshold;
    uint64_t zero_count;
    int64_t schema;
    bool has_schema;
    bool classic;
    bool native;
    bool deltas[2]; /* enum wr_bins_sign */
    bool counts[2];
    bool floats;
    struct wr_bins_stats stats;
    double carry; /* of float counts, in units of 2^-20 */
    int64_t infinite;
};

/* Field numbers of one sign: spans, deltas, counts. */
static const uint32_t field_of[2][3] = {{12, 13, 14}, {9, 10, 11}};

static void see_buckets(struct hist *h, const struct wr_pb_field *f)
{
    const uint32_t number = f->tag >> 3;
    for (unsigned sign = 0; sign < 2; sign++) {
        h->native |= number == field_of[sign][0] && f->tag == LEN(number);
        h->deltas[sign] |= number == field_of[sign][1];
        h->counts[sign] |= number == field_of[sign][2];
    }
}

static void read_field(struct hist *h, const struct wr_pb_field *f)
{
    switch (f->tag) {
    case VARINT(1):
        h->count = f->u;
        break;
    case FIXED64(2):
        h->stats.sum = wr_counts_double(f->u);
        break;
    case LEN(3):
        h->classic = true;
        break;
    case FIXED64(4):
        h->count_float = wr_counts_double(f->u);
        break;
    case VARINT(5):
        h->schema = wr_codec_unzigzag(f->u);
        h->has_schema = true;
        break;
    case FIXED64(6):
        h->zero_threshold = wr_counts_double(f->u);
        break;
    case VARINT(7):
        h->zero_count = f->u;
        break;
    case FIXED64(8):
        h->zero_float = wr_counts_double(f->u);
        break;
    default:
        see_buckets(h, f);
        break;
    }
}

static bool read_hist(struct hist *h)
{
    for (const uint8_t *at = h->pb.begin; at < h->pb.end;) {
        struct wr_pb_field f;
        at = wr_pb_field(&h->pb, at, h->pb.end, &f);
        if (!at)
            return false;
        read_field(h, &f);
    }
    return true;
}

static int check_hist(const struct hist *h, struct weir_where *where)
{
    if (h->has_schema && h->schema == SCHEMA_CUSTOM)
        return wr_codec_refuse(where, 0, "custom bounds (schema -53)", WEIR_EVERSION);
    if (!h->native && h->zero_threshold == 0 && !h->zero_count && h->zero_float == 0)
        return wr_codec_refuse(where, 0,
                               h->classic ? "a classic histogram" : "not a native histogram",
                               h->classic ? WEIR_EVERSION : WEIR_EFORMAT);
    if (h->schema < SCHEMA_MIN || h->schema > SCHEMA_MAX)
        return wr_codec_refuse(where, 0, "a schema outside -4..8", WEIR_EVERSION);
    if (!(h->zero_threshold >= 0 && h->zero_threshold <= DBL_MAX))
        return wr_codec_refuse(where, 0, "the zero threshold is no distance", WEIR_EFORMAT);
    if (!(h->count_float >= 0 && h->zero_float >= 0))
        return wr_codec_refuse(where, 0, "a count that is negative or no number", WEIR_EFORMAT);
    if ((h->deltas[0] || h->deltas[1]) && h->floats)
        return wr_codec_refuse(where, 0, "deltas in a histogram of floats", WEIR_EFORMAT);
    if ((h->counts[0] || h->counts[1]) && !h->floats)
        return wr_codec_refuse(where, 0, "float counts in a histogram of integers", WEIR_EFORMAT);
    return WEIR_OK;
}

/* A float count as a weight; what rounding takes is given to the next. */
static int weigh(struct hist *h, double count, uint64_t *ret_weight)
{
    struct wr_codec_bins b = {.carry = h->carry};
    const int r = wr_codec_weight(&b, count, ret_weight);
    h->carry = b.carry;
    return r;
}

/* Which buckets there are. */
struct spans {
    const uint8_t *at;
    uint32_t number;
    int64_t bucket; /* the next one */
    uint64_t left;  /* of the span */
    bool any;
};

static bool read_span(struct hist *h, const struct wr_pb_field *f, const uint8_t *end,
                      int64_t *ret_offset, uint64_t *ret_length)
{
    *ret_offset = 0;
    *ret_length = 0;
    for (const uint8_t *at = f->ptr; at < end;) {
        struct wr_pb_field in;
        at = wr_pb_field(&h->pb, at, end, &in);
        if (!at)
            return false;
        if (in.tag == VARINT(1))
            *ret_offset = wr_codec_unzigzag(in.u);
        else if (in.tag == VARINT(2))
            *ret_length = in.u;
    }
    if (*ret_offset < INT32_MIN || *ret_offset > INT32_MAX || *ret_length > UINT32_MAX) {
        wr_pb_fail(&h->pb, f->ptr, WEIR_EFORMAT, "a span of more than 32 bits");
        return false;
    }
    return true;
}

/* On to the next span that is not empty. false: there is none, or pb.err. */
static bool next_span(struct hist *h, struct spans *s)
{
    while (!s->left && s->at < h->pb.end) {
        struct wr_pb_field f;
        const uint8_t *const next = wr_pb_field(&h->pb, s->at, h->pb.end, &f);
        int64_t offset;
        s->at = next ? next : h->pb.end;
        if (!next)
            return false;
        if (f.tag != LEN(s->number))
            continue;
        if (!read_span(h, &f, next, &offset, &s->left))
            return false;
        if (s->any && offset < 0) {
            wr_pb_fail(&h->pb, f.ptr, WEIR_EFORMAT, "a span that goes back");
            return false;
        }
        s->any = true;
        s->bucket += offset; /* each at most 2^33 further: no more fit than the bytes have spans */
    }
    return s->left != 0;
}

/* The weight of the next bucket; *count is the integer one before it. */
static int bucket_weight(struct hist *h, uint64_t bits, int64_t *count, uint64_t *ret_weight)
{
    if (h->floats)
        return weigh(h, wr_counts_double(bits), ret_weight);
    if (wr_add_i64(*count, wr_codec_unzigzag(bits), count) || *count < 0)
        return WEIR_EFORMAT;
    return wr_counts_weight((uint64_t)*count, ret_weight) ? WEIR_OK : WEIR_ERANGE;
}

static int walk_side(struct hist *h, struct wr_counts *c, enum wr_bins_sign sign)
{
    struct spans spans = {.at = h->pb.begin, .number = field_of[sign][0]};
    struct wr_values values =
        wr_values(&h->pb, h->pb.begin, h->pb.end, field_of[sign][h->floats ? 2 : 1],
                  h->floats ? WR_PB_FIXED64 : WR_PB_VARINT);
    int64_t count = 0;
    uint64_t bits;
    while (wr_values_next(&values, &bits)) {
        uint64_t weight = 0;
        if (!next_span(h, &spans))
            return h->pb.err != WEIR_OK ? h->pb.err : WEIR_EFORMAT;
        int r = bucket_weight(h, bits, &count, &weight);
        const int64_t index = spans.bucket - 1;
        const bool infinite = !h->stats.has_sum && index == h->infinite;
        if (r == WEIR_OK && !infinite)
            r = wr_counts_take(c, sign, index, weight);
        if (r != WEIR_OK)
            return r;
        spans.bucket++;
        spans.left--;
    }
    if (h->pb.err != WEIR_OK)
        return h->pb.err;
    return next_span(h, &spans) ? WEIR_EFORMAT : h->pb.err;
}

static int walk(struct hist *h, struct wr_counts *c)
{
    const int r = walk_side(h, c, WR_BINS_POSITIVE);
    return r == WEIR_OK ? walk_side(h, c, WR_BINS_NEGATIVE) : r;
}

/* Is the count that of the bins? Floats are so to a millionth, as rounding goes. */
static bool count_matches(const struct hist *h, const struct wr_counts *c)
{
    const double count = h->floats ? h->count_float : (double)h->count;
    const double bins = (double)c->total * 0x1p-20;
    if (!h->stats.has_sum)
        return count >= bins * (1 - 1e-6); /* what is left out counts too */
    if (h->floats)
        return fabs(count - bins) <= 1e-6 * fmax(count, 1);
    uint64_t weight;
    return wr_counts_weight(h->count, &weight) && weight == c->total;
}

static int zero_weight(struct hist *h, uint64_t *ret_weight)
{
    if (h->floats)
        return weigh(h, h->zero_float, ret_weight);
    return wr_counts_weight(h->zero_count, ret_weight) ? WEIR_OK : WEIR_ERANGE;
}

static int load_hist(struct hist *h, struct weir_sketch *sk, struct weir_where *where)
{
    struct wr_counts c;
    uint64_t zeros = 0;
    int r = wr_counts_begin_base2(sk, (int32_t)h->schema);
    if (r != WEIR_OK)
        return r;
    wr_counts_init(&c, sk, 0);
    h->infinite = c.most + 1;
    r = zero_weight(h, &zeros);
    if (r == WEIR_OK)
        r = wr_counts_take_zero(&c, zeros);
    const double carry = h->carry;
    if (r == WEIR_OK)
        r = walk(h, &c);
    if (h->pb.err != WEIR_OK)
        return wr_counts_refused(&h->pb, where);
    if (r != WEIR_OK)
        return wr_codec_refuse(where, 0, "buckets and counts that do not fit together", r);
    if (!count_matches(h, &c))
        return wr_codec_refuse(where, 0, "count is not that of the buckets", WEIR_EFORMAT);
    h->carry = carry; /* so that the second walk rounds as the first one did */
    r = wr_counts_load(&c);
    if (r == WEIR_OK)
        r = walk(h, &c);
    return r == WEIR_OK ? wr_counts_end(&c, &h->stats) : r;
}

int wr_prometheus_decode(const struct weir_codec_opts *opts, const uint8_t *src, size_t bytes,
                         struct weir_sketch *sk, struct weir_where *where)
{
    (void)opts;
    struct hist h;
    memset(&h, 0, sizeof h);
    h.pb = wr_pb_init(src, bytes);
    if (!read_hist(&h))
        return wr_counts_refused(&h.pb, where);
    h.floats = h.count_float > 0 || h.zero_float > 0;
    h.stats.has_sum = fabs(h.stats.sum) <= DBL_MAX;
    const int r = check_hist(&h, where);
    return r == WEIR_OK ? load_hist(&h, sk, where) : r;
}

/* Writing */

/* A run of buckets without a gap that is worth a span. */
struct run {
    int64_t first;
    uint64_t length;
};

/* The run that begins at the walk's next bucket, past empty ones; false: there is none. */
static bool next_run(struct wr_whole_walk *walk, struct run *ret)
{
    uint64_t count;
    uint64_t gap = 0;
    ret->length = 0;
    while (wr_whole_next(walk, &count)) {
        gap = count ? 0 : gap + 1;
        if (count && !ret->length)
            ret->first = walk->index - 1;
        if (ret->length || count)
            ret->length++;
        if (ret->length && gap > GAP_MAX)
            break;
    }
    ret->length -= ret->length ? gap : 0;
    return ret->length != 0;
}

static void put_spans(struct wr_codec_out *out, uint32_t number, const struct wr_whole *w)
{
    struct wr_whole_walk walk;
    struct run run = {0};
    int64_t end = -1; /* so that the first offset is that of bucket index + 1 */
    wr_whole_begin(&walk, w);
    while (next_run(&walk, &run)) {
        const uint64_t offset = wr_codec_zigzag(run.first - end);
        wr_counts_put_head(out, number,
                           2 + wr_codec_varint_bytes(offset) + wr_codec_varint_bytes(run.length));
        wr_counts_put_uint(out, 1, offset);
        wr_counts_put_uint(out, 2, run.length);
        end = run.first + (int64_t)run.length;
    }
}

static void put_deltas(struct wr_codec_out *out, uint32_t number, const struct wr_whole *w)
{
    struct wr_whole_walk walk;
    uint64_t count;
    uint64_t before = 0;
    uint64_t gap = 0;
    wr_whole_begin(&walk, w);
    while (wr_whole_next(&walk, &count)) {
        if (!count) {
            gap++;
            continue;
        }
        for (; gap && gap <= GAP_MAX; gap--) {
            wr_counts_put_sint(out, number, -(int64_t)before);
            before = 0;
        }
        gap = 0;
        wr_counts_put_sint(out, number, (int64_t)(count - before));
        before = count;
    }
}

/*
 * As client_golang has it: every scalar is there, deltas are not packed. A scale above 8 is written
 * at 8, bucket by bucket.
 */
int wr_prometheus_encode(const struct weir_codec_opts *opts, const struct weir_sketch *sk,
                         struct wr_codec_out *out)
{
    int32_t scale;
    int64_t add;
    struct wr_counts_stats stats;
    if (!wr_counts_base2(weir_sketch_mapping(sk), &scale, &add) || scale < SCHEMA_MIN)
        return WEIR_EVERSION;
    const int r = wr_counts_unit(opts, sk, &stats);
    if (r != WEIR_OK)
        return r;
    const int32_t schema = scale > SCHEMA_MAX ? SCHEMA_MAX : scale;
    const unsigned shift = (unsigned)(scale - schema);
    struct wr_whole pos;
    struct wr_whole neg;
    int64_t carry = 0;
    wr_whole_init(&pos, sk, WR_BINS_POSITIVE, add, shift, &carry);
    const uint64_t zeros = wr_counts_whole(wr_bins_zero(sk), &carry);
    wr_whole_init(&neg, sk, WR_BINS_NEGATIVE, add, shift, &carry);
    const uint64_t count = pos.total + zeros + neg.total;
    wr_counts_put_uint(out, 1, count);
    wr_counts_put_double(out, 2, count ? stats.sum : 0);
    wr_counts_put_sint(out, 5, schema);
    wr_counts_put_double(out, 6, ZERO_THRESHOLD);
    wr_counts_put_uint(out, 7, zeros);
    put_spans(out, 9, &neg);
    put_deltas(out, 10, &neg);
    put_spans(out, 12, &pos);
    put_deltas(out, 13, &pos);
    return WEIR_OK;
}

/* A delta is a tag and a varint of 45 bits, a span a tag, a length and two fields. */
size_t wr_prometheus_bound(const struct weir_codec_opts *opts, const struct weir_sketch *sk)
{
    (void)opts;
    return 64 + (1 + WR_COUNTS_COUNT_MAX + 14) * wr_counts_spans(sk);
}
