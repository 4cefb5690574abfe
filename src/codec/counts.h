/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WR_CODEC_COUNTS_H
#define WR_CODEC_COUNTS_H
/*
 * counts: what the encodings of whole counts share: bins from counts that a stranger wrote, the
 * values of a repeated protobuf field, and the bins of a sketch as whole counts.
 *
 * Reading: a decoder walks its counts twice. The first walk checks every index and adds up; the
 * second one fills the sketch, the highest bin first, so that a limit of bins costs one move and
 * not one for each bin that comes. Both are the same calls of wr_counts_take.
 *
 * Writing: weights are in units of 2^-20 and these encodings know whole ones, so what rounding
 * takes from one bin is given to the next: the total is that of the sketch, rounded once.
 *
 * Threads: any. Memory: that of the sketch that is read.
 */
#include "codec/codec.h"
#include "wire/pb_read.h"

/* ---- Reading */

struct wr_counts_top {
    uint64_t seen;   /* bins so far in this walk */
    uint64_t at;     /* the highest one's number */
    int64_t index;   /* its index */
    uint64_t weight; /* 0: there is none yet */
};

#define WR_COUNTS_RUN 64

struct wr_counts {
    struct weir_sketch *sk;
    int64_t minus;  /* what to take from an index that is read */
    int64_t least;  /* of the sketch's: below it there is no double at all */
    int64_t zero;   /* below it there are zeros: magnitudes up to 2^-1022 */
    int64_t most;   /* that of DBL_MAX */
    uint64_t total; /* units of 2^-20 */
    uint64_t zeros;
    struct wr_counts_top top[2]; /* enum wr_bins_sign */
    bool loading;                /* the second walk */
    /* of it, bins side by side that are not in the sketch yet */
    enum wr_bins_sign run_sign;
    int32_t run_first;
    size_t run;
    uint64_t run_weights[WR_COUNTS_RUN];
};

/* The first walk begins, over a sketch whose building has begun: wr_bins_begin, wr_codec_begin. */
void wr_counts_init(struct wr_counts *c, struct weir_sketch *sk, int64_t minus);
/* Begin to build sk with BASE2 of a scale of WEIR_SCALE_MIN..WEIR_SCALE_MAX. Errors: WEIR_ENOMEM.
 */
int wr_counts_begin_base2(struct weir_sketch *sk, int32_t scale);
/* The first walk begins over a sketch of a logarithm of that accuracy, without offset. Errors:
 * those of wr_codec_begin. */
int wr_counts_begin_log(struct wr_counts *c, struct weir_sketch *sk,
                        const struct weir_codec_opts *opts, double alpha);
/*
 * A bin, any number of times. Errors: WEIR_EFORMAT (a weight at an index that no double has),
 * WEIR_ERANGE (the total passes 64 bits), WEIR_ENOMEM (second walk).
 */
int wr_counts_take(struct wr_counts *c, enum wr_bins_sign sign, int64_t index, uint64_t weight);
/* First walk. Errors: WEIR_ERANGE. */
int wr_counts_take_zero(struct wr_counts *c, uint64_t weight);
/* The second walk begins: sk gets its zeros and its highest bins. */
int wr_counts_load(struct wr_counts *c);
/* After the second walk. As wr_codec_end. */
int wr_counts_end(struct wr_counts *c, const struct wr_bins_stats *stats);

/* A whole count in units of 2^-20; false: it passes 64 bits. */
static inline bool wr_counts_weight(uint64_t count, uint64_t *ret_weight)
{
    *ret_weight = count << 20;
    return count <= UINT64_MAX >> 20;
}

/* floor(v / 2^shift), shift <= 63. */
static inline int64_t wr_counts_coarser(int64_t v, unsigned shift)
{
    return v >= 0 ? v >> shift : ~(~v >> shift);
}

/* A varint in [at, end), which is inside the message of pb. NULL: refused. */
const uint8_t *wr_counts_varint(struct wr_pb *pb, const uint8_t *at, const uint8_t *end,
                                uint64_t *ret);

/* The values of a repeated field of the message [at, end), packed or not, in their order. */
struct wr_values {
    struct wr_pb *pb;
    const uint8_t *at;
    const uint8_t *end;
    const uint8_t *chunk; /* what is left of a packed run */
    const uint8_t *chunk_end;
    uint32_t number;
    enum wr_pb_wire wire; /* WR_PB_VARINT or WR_PB_FIXED64 */
};
struct wr_values wr_values(struct wr_pb *pb, const uint8_t *at, const uint8_t *end, uint32_t number,
                           enum wr_pb_wire wire);
/* false: there is no more, or pb->err says why not. */
bool wr_values_next(struct wr_values *it, uint64_t *ret);

/* Note what pb refused; returns its error. */
int wr_counts_refused(const struct wr_pb *pb, struct weir_where *where);

static inline double wr_counts_double(uint64_t bits)
{
    double v;
    memcpy(&v, &bits, sizeof v);
    return v;
}

/* ---- Writing */

/*
 * Is m base 2 but for which bin is number 0, bins within 2^-1022..DBL_MAX being off by less than
 * 1e-6 of one? Index i of m is i + *ret_add at *ret_scale.
 */
bool wr_counts_base2(const struct weir_mapping *m, int32_t *ret_scale, int64_t *ret_add);

/* Is m a logarithm but for which bin is number 0? Index i of m is i + *ret_add without an offset.
 */
bool wr_counts_log(const struct weir_mapping *m, double *ret_gamma, int64_t *ret_add);

/* (gamma - 1) / (gamma + 1), or the double near it of which (1 + alpha) / (1 - alpha) is gamma. */
double wr_counts_alpha(double gamma);

/* Values of sk in the unit its bins are of, when that is the one asked for. */
struct wr_counts_stats {
    double sum;
    double min; /* 0 when empty */
    double max;
};
/* Errors: WEIR_EVERSION (its bins are of the other unit). */
int wr_counts_unit(const struct weir_codec_opts *opts, const struct weir_sketch *sk,
                   struct wr_counts_stats *ret_stats);

/* A weight rounded to a whole count; carry is in [-2^19, 2^19). */
static inline uint64_t wr_counts_whole(uint64_t weight, int64_t *carry)
{
    const int64_t part = (int64_t)(weight & (WEIR_WEIGHT_ONE - 1)) + *carry + (1 << 19);
    const int64_t up = wr_counts_coarser(part, 20);
    *carry = part - up * (1 << 20) - (1 << 19);
    return (weight >> 20) + (uint64_t)up; /* up is 0 or 1 */
}

/* The bins of one sign as whole counts. Index i of the sketch is (i + add) / 2^shift here. */
struct wr_whole {
    const struct weir_sketch *sk;
    enum wr_bins_sign sign;
    int64_t add;
    unsigned shift;
    uint64_t total; /* 0: there is no bin */
    int64_t first;  /* the first and the last bin whose count is not 0 */
    int64_t last;
    int64_t begin; /* the sketch's index where first begins */
    int64_t carry; /* before it */
};
/* carry goes from side to side. */
void wr_whole_init(struct wr_whole *w, const struct weir_sketch *sk, enum wr_bins_sign sign,
                   int64_t add, unsigned shift, int64_t *carry);

/* Bytes of a count: at most 2^44 as a varint. */
#define WR_COUNTS_COUNT_MAX 7

#define WR_WHOLE_CHUNK 64

/* Walks w->first to w->last. */
struct wr_whole_walk {
    const struct wr_whole *w;
    int64_t index; /* of the next count */
    int64_t last;
    int64_t carry;
    int64_t next; /* the sketch's index to read next */
    int64_t high;
    size_t at;
    size_t n;
    uint64_t weights[WR_WHOLE_CHUNK];
};
void wr_whole_begin(struct wr_whole_walk *walk, const struct wr_whole *w);
/* false: there is no more. The count is that of index - 1. */
bool wr_whole_next(struct wr_whole_walk *walk, uint64_t *ret_count);

/* Its counts as varints, one behind the other. */
size_t wr_whole_varint_bytes(const struct wr_whole *w);
void wr_whole_put_varints(struct wr_codec_out *out, const struct wr_whole *w);

/* How many bins there are from the lowest to the highest used one of both signs. */
size_t wr_counts_spans(const struct weir_sketch *sk);

static inline void wr_counts_put_bytes(struct wr_codec_out *out, const void *bytes, size_t n)
{
    if (wr_codec_room(out, n)) {
        memcpy(out->at, bytes, n);
        out->at += n;
    }
}
static inline void wr_counts_put_tag(struct wr_codec_out *out, uint32_t number, enum wr_pb_wire w)
{
    wr_codec_put_varint(out, WR_PB_TAG(number, w));
}
static inline void wr_counts_put_uint(struct wr_codec_out *out, uint32_t number, uint64_t v)
{
    wr_counts_put_tag(out, number, WR_PB_VARINT);
    wr_codec_put_varint(out, v);
}
static inline void wr_counts_put_sint(struct wr_codec_out *out, uint32_t number, int64_t v)
{
    wr_counts_put_uint(out, number, wr_codec_zigzag(v));
}
static inline void wr_counts_put_double(struct wr_codec_out *out, uint32_t number, double v)
{
    wr_counts_put_tag(out, number, WR_PB_FIXED64);
    wr_codec_put_double(out, v);
}
static inline void wr_counts_put_fixed64(struct wr_codec_out *out, uint32_t number, uint64_t v)
{
    wr_counts_put_tag(out, number, WR_PB_FIXED64);
    wr_codec_put_u64le(out, v);
}
static inline void wr_counts_put_head(struct wr_codec_out *out, uint32_t number, size_t bytes)
{
    wr_counts_put_tag(out, number, WR_PB_LEN);
    wr_codec_put_varint(out, bytes);
}
#endif
