/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sketchlib: DDSketch of sketchlib.v1, protobuf.
 *
 *   SketchEnvelope 1 format_version, 2 producer, 3 hash_spec, 4 sample_p, 10..18 one sketch;
 *   of DDSketchState (14): 1 alpha, 2 store_counts, 3 store_offset
 *   DDSketchDelta 1 buckets; of each: 1 index, 2 d_count
 *
 * Bins are those of a logarithm without offset, gamma (1 + alpha) / (1 - alpha). A delta stands
 * alone, without alpha: whoever reads it knows the mapping. Neither carries sum, minimum or maximum
 * (older writers put them at 4..7 of the state; newer readers do not look there, nor does this
 * one), nor zeros and negative values.
 *
 * A state may hold empty bins at both ends, those that its writer had room for; here they are not
 * written. The other sketches of the envelope are known by name and refused.
 *
 * Threads: any. Memory: the sketch's.
 * Source: contracts windows §2.3.
 */
#include "codec/counts.h"

#define LEN(number) WR_PB_TAG(number, WR_PB_LEN)
#define VARINT(number) WR_PB_TAG(number, WR_PB_VARINT)
#define FIXED64(number) WR_PB_TAG(number, WR_PB_FIXED64)

#define FORMAT_VERSION 1
#define SKETCH_FIRST 10u
#define SKETCH_DDSKETCH 14u
#define SKETCH_LAST 18u
#define STATE_KNOWN 7u /* fields past it are not of any version that is known here */

static const char *const other_sketches[] = {
    "a CountMin, not a DDSketch", "a CountSketch, not a DDSketch", "an HLL, not a DDSketch",
    "a KLL, not a DDSketch",      "more than one sketch",          "a UnivMon, not a DDSketch",
    "a Hydra, not a DDSketch",    "a CocoSketch, not a DDSketch",  "an Elastic, not a DDSketch",
};

struct state {
    struct wr_pb pb;
    uint64_t version;
    double sample_p;
    double alpha;
    int64_t offset;
    const uint8_t *at; /* NULL: there is none */
    const uint8_t *end;
};

static const uint8_t *read_state(struct state *s)
{
    for (const uint8_t *at = s->at; at < s->end;) {
        const uint8_t *const begin = at;
        struct wr_pb_field f;
        at = wr_pb_field(&s->pb, at, s->end, &f);
        if (!at)
            return NULL;
        if (f.tag == FIXED64(1))
            s->alpha = wr_counts_double(f.u);
        else if (f.tag == VARINT(3))
            s->offset = wr_codec_unzigzag(f.u);
        else if (f.tag >> 3 > STATE_KNOWN)
            return wr_pb_fail(&s->pb, begin, WEIR_EVERSION, "a DDSketch with unknown fields");
    }
    return s->end;
}

static const uint8_t *read_field(struct state *s, const struct wr_pb_field *f, const uint8_t *begin,
                                 const uint8_t *end)
{
    const uint32_t number = f->tag >> 3;
    if (f->tag == VARINT(1)) {
        s->version = f->u;
    } else if (f->tag == FIXED64(4)) {
        s->sample_p = wr_counts_double(f->u);
    } else if (f->tag == LEN(SKETCH_DDSKETCH) && !s->at) {
        s->at = f->ptr;
        s->end = end;
        return read_state(s);
    } else if (number >= SKETCH_FIRST && number <= SKETCH_LAST) {
        return wr_pb_fail(&s->pb, begin, WEIR_EVERSION, other_sketches[number - SKETCH_FIRST]);
    }
    return end;
}

static bool read_envelope(struct state *s)
{
    for (const uint8_t *at = s->pb.begin; at < s->pb.end;) {
        struct wr_pb_field f;
        const uint8_t *const next = wr_pb_field(&s->pb, at, s->pb.end, &f);
        if (!next || !read_field(s, &f, at, next))
            return false;
        at = next;
    }
    return true;
}

static int check_state(const struct state *s, struct weir_where *where)
{
    if (s->version != FORMAT_VERSION)
        return wr_codec_refuse(where, 0, "a format version other than 1", WEIR_EVERSION);
    if (!s->at)
        return wr_codec_refuse(where, 0, "no sketch", WEIR_EFORMAT);
    if (s->sample_p != 0 && s->sample_p != 1)
        return wr_codec_refuse(where, 0, "a sampled sketch", WEIR_EVERSION);
    if (!(s->alpha > 0 && s->alpha < 1))
        return wr_codec_refuse(where, 0, "alpha is not between 0 and 1", WEIR_EFORMAT);
    if (s->offset < INT32_MIN || s->offset > INT32_MAX)
        return wr_codec_refuse(where, 0, "an offset of more than 32 bits", WEIR_EFORMAT);
    return WEIR_OK;
}

static int walk_state(struct state *s, struct wr_counts *c)
{
    struct wr_values counts = wr_values(&s->pb, s->at, s->end, 2, WR_PB_VARINT);
    int64_t index = s->offset;
    uint64_t count;
    for (; wr_values_next(&counts, &count); index++) {
        uint64_t weight;
        if (!wr_counts_weight(count, &weight))
            return WEIR_ERANGE;
        const int r = wr_counts_take(c, WR_BINS_POSITIVE, index, weight);
        if (r != WEIR_OK)
            return r;
    }
    return s->pb.err;
}

/* Say where a walk ended. */
static int refuse_walk(const struct wr_pb *pb, int r, struct weir_where *where)
{
    if (pb->err != WEIR_OK)
        return wr_counts_refused(pb, where);
    return wr_codec_refuse(where, 0, "a bin past the range of doubles, or counts past 2^44", r);
}

static const struct wr_bins_stats nothing_known;

int wr_sketchlib_decode(const struct weir_codec_opts *opts, const uint8_t *src, size_t bytes,
                        struct weir_sketch *sk, struct weir_where *where)
{
    struct state s;
    memset(&s, 0, sizeof s);
    s.pb = wr_pb_init(src, bytes);
    if (!read_envelope(&s))
        return wr_counts_refused(&s.pb, where);
    int r = check_state(&s, where);
    if (r != WEIR_OK)
        return r;
    struct wr_counts c;
    r = wr_counts_begin_log(&c, sk, opts, s.alpha);
    if (r != WEIR_OK)
        return wr_codec_refuse(where, 0, "an alpha that is not supported here", r);
    r = walk_state(&s, &c);
    if (r != WEIR_OK)
        return refuse_walk(&s.pb, r, where);
    r = wr_counts_load(&c);
    if (r == WEIR_OK)
        r = walk_state(&s, &c);
    return r == WEIR_OK ? wr_counts_end(&c, &nothing_known) : r;
}

/* Deltas */

static const uint8_t *read_bucket(struct wr_pb *pb, const struct wr_pb_field *f, const uint8_t *end,
                                  int64_t *ret_index, uint64_t *ret_count)
{
    *ret_index = 0;
    *ret_count = 0;
    for (const uint8_t *at = f->ptr; at < end;) {
        const uint8_t *const begin = at;
        struct wr_pb_field in;
        at = wr_pb_field(pb, at, end, &in);
        if (!at)
            return NULL;
        if (in.tag == VARINT(1))
            *ret_index = wr_codec_unzigzag(in.u);
        else if (in.tag == VARINT(2))
            *ret_count = in.u;
        else
            return wr_pb_fail(pb, begin, WEIR_EFORMAT, "not the delta of a DDSketch");
    }
    return end;
}

static int walk_delta(struct wr_pb *pb, struct wr_counts *c)
{
    for (const uint8_t *at = pb->begin; at < pb->end;) {
        const uint8_t *const begin = at;
        struct wr_pb_field f;
        int64_t index;
        uint64_t count;
        uint64_t weight;
        at = wr_pb_field(pb, at, pb->end, &f);
        if (!at)
            return pb->err;
        if (f.tag >> 3 > 1 && f.tag >> 3 <= STATE_KNOWN)
            continue; /* what older writers said of sum, minimum and maximum */
        if (f.tag != LEN(1)) {
            wr_pb_fail(pb, begin, WEIR_EFORMAT, "not the delta of a DDSketch");
            return pb->err;
        }
        if (!read_bucket(pb, &f, at, &index, &count))
            return pb->err;
        if (!wr_counts_weight(count, &weight))
            return WEIR_ERANGE;
        const int r = wr_counts_take(c, WR_BINS_POSITIVE, index, weight);
        if (r != WEIR_OK)
            return r;
    }
    return WEIR_OK;
}

int wr_sketchlib_delta_decode(const struct weir_codec_opts *opts, const uint8_t *src, size_t bytes,
                              struct weir_sketch *sk, struct weir_where *where)
{
    struct wr_pb pb = wr_pb_init(src, bytes);
    struct wr_counts c;
    if (!opts->mapping)
        return wr_codec_refuse(where, 0, "a delta says no mapping, and none was given",
                               WEIR_EFORMAT);
    int r = wr_bins_begin(sk, opts->mapping);
    if (r != WEIR_OK)
        return r;
    int64_t add;
    double gamma;
    if (!wr_counts_log(weir_sketch_mapping(sk), &gamma, &add))
        return wr_codec_refuse(where, 0, "a mapping that no delta is of", WEIR_EVERSION);
    wr_counts_init(&c, sk, add);
    r = walk_delta(&pb, &c);
    if (r != WEIR_OK)
        return refuse_walk(&pb, r, where);
    r = wr_counts_load(&c);
    if (r == WEIR_OK)
        r = walk_delta(&pb, &c);
    return r == WEIR_OK ? wr_counts_end(&c, &nothing_known) : r;
}

/* Writing */

/* The bins of sk, which are all that the format can say. */
static int positive_only(const struct weir_codec_opts *opts, const struct weir_sketch *sk,
                         double *ret_gamma, struct wr_whole *ret)
{
    struct wr_counts_stats stats;
    struct wr_whole neg;
    int64_t add;
    int64_t carry = 0;
    if (!wr_counts_log(weir_sketch_mapping(sk), ret_gamma, &add))
        return WEIR_EVERSION;
    const int r = wr_counts_unit(opts, sk, &stats);
    if (r != WEIR_OK)
        return r;
    wr_whole_init(ret, sk, WR_BINS_POSITIVE, add, 0, &carry);
    if (wr_counts_whole(wr_bins_zero(sk), &carry))
        return WEIR_ERANGE;
    wr_whole_init(&neg, sk, WR_BINS_NEGATIVE, add, 0, &carry);
    if (neg.total || ret->first < INT32_MIN || ret->last > INT32_MAX)
        return WEIR_ERANGE;
    return WEIR_OK;
}

int wr_sketchlib_encode(const struct weir_codec_opts *opts, const struct weir_sketch *sk,
                        struct wr_codec_out *out)
{
    struct wr_whole pos;
    double gamma;
    const int r = positive_only(opts, sk, &gamma, &pos);
    if (r != WEIR_OK)
        return r;
    const size_t packed = wr_whole_varint_bytes(&pos);
    const uint64_t offset = pos.total ? wr_codec_zigzag(pos.first) : 0;
    const size_t bytes = 9 + (packed ? 1 + wr_codec_varint_bytes(packed) + packed : 0) +
                         (offset ? 1 + wr_codec_varint_bytes(offset) : 0);
    wr_counts_put_uint(out, 1, FORMAT_VERSION);
    wr_counts_put_head(out, SKETCH_DDSKETCH, bytes);
    wr_counts_put_double(out, 1, wr_counts_alpha(gamma));
    if (packed)
        wr_counts_put_head(out, 2, packed);
    wr_whole_put_varints(out, &pos);
    if (offset)
        wr_counts_put_uint(out, 3, offset);
    return WEIR_OK;
}

size_t wr_sketchlib_bound(const struct weir_codec_opts *opts, const struct weir_sketch *sk)
{
    (void)opts;
    return 64 + WR_COUNTS_COUNT_MAX * wr_counts_spans(sk);
}

/* Every bin that is not empty: the delta to an empty sketch. */
int wr_sketchlib_delta_encode(const struct weir_codec_opts *opts, const struct weir_sketch *sk,
                              struct wr_codec_out *out)
{
    struct wr_whole pos;
    double gamma;
    const int r = positive_only(opts, sk, &gamma, &pos);
    if (r != WEIR_OK)
        return r;
    struct wr_whole_walk walk;
    uint64_t count;
    wr_whole_begin(&walk, &pos);
    while (wr_whole_next(&walk, &count)) {
        const uint64_t index = wr_codec_zigzag(walk.index - 1);
        if (!count)
            continue;
        wr_counts_put_head(out, 1,
                           (index ? 1 + wr_codec_varint_bytes(index) : 0) + 1 +
                               wr_codec_varint_bytes(count));
        if (index)
            wr_counts_put_uint(out, 1, index);
        wr_counts_put_uint(out, 2, count);
    }
    return WEIR_OK;
}

size_t wr_sketchlib_delta_bound(const struct weir_codec_opts *opts, const struct weir_sketch *sk)
{
    (void)opts;
    return (2 + 6 + 1 + WR_COUNTS_COUNT_MAX) * wr_counts_spans(sk);
}
