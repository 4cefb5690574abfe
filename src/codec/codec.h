/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WR_CODEC_CODEC_H
#define WR_CODEC_CODEC_H
/*
 * codec, the inside: what one encoding is to the dispatch, and what all of them need: bins from
 * counts that are doubles, mappings, a writer into bytes that are there.
 *
 * Threads: any. Memory: none but the sketch's.
 */
#include "base/bits.h"
#include "sketch/bins.h"

#include <float.h>
#include <weir/codec.h>

/* ---- One encoding. opts and where are never NULL; sk of decode is an empty WEIR_GRID_VALUE one.
 * On failure decode may leave anything in sk. */
struct wr_codec_out;

typedef int wr_codec_decode_fn(const struct weir_codec_opts *opts, const uint8_t *src, size_t bytes,
                               struct weir_sketch *sk, struct weir_where *where);
/* What does not fit is noted in out; the result says everything else. */
typedef int wr_codec_encode_fn(const struct weir_codec_opts *opts, const struct weir_sketch *sk,
                               struct wr_codec_out *out);
typedef size_t wr_codec_bound_fn(const struct weir_codec_opts *opts, const struct weir_sketch *sk);

wr_codec_decode_fn wr_dd_proto_decode;
wr_codec_encode_fn wr_dd_proto_encode;
wr_codec_bound_fn wr_dd_proto_bound;
wr_codec_decode_fn wr_dd_compact_decode;
wr_codec_encode_fn wr_dd_compact_encode;
wr_codec_bound_fn wr_dd_compact_bound;
wr_codec_decode_fn wr_dogsketch_decode;
wr_codec_encode_fn wr_dogsketch_encode;
wr_codec_bound_fn wr_dogsketch_bound;
wr_codec_decode_fn wr_otlp_exp_decode;
wr_codec_encode_fn wr_otlp_exp_encode;
wr_codec_bound_fn wr_otlp_exp_bound;
wr_codec_decode_fn wr_otlp_hist_decode;
wr_codec_decode_fn wr_prometheus_decode;
wr_codec_encode_fn wr_prometheus_encode;
wr_codec_bound_fn wr_prometheus_bound;
wr_codec_decode_fn wr_sketchlib_decode;
wr_codec_encode_fn wr_sketchlib_encode;
wr_codec_bound_fn wr_sketchlib_bound;
wr_codec_decode_fn wr_sketchlib_delta_decode;
wr_codec_encode_fn wr_sketchlib_delta_encode;
wr_codec_bound_fn wr_sketchlib_delta_bound;
wr_codec_decode_fn wr_asapv1_decode;
wr_codec_encode_fn wr_asapv1_encode;
wr_codec_bound_fn wr_asapv1_bound;

/* Note where and why; returns err. */
int wr_codec_refuse(struct weir_where *where, size_t offset, const char *reason, int err);

/* ---- Building */

/* A mapping as bytes say it. */
struct wr_codec_mapping {
    uint32_t kind; /* enum weir_mapping_kind, not BASE2 */
    double gamma;
    double offset;
};

/* The same number but for the last bits; never when one is not finite. */
static inline bool wr_codec_near(double a, double b)
{
    return fabs(a) <= DBL_MAX && fabs(b) <= DBL_MAX &&
           fabs(a - b) <= 1e-12 * fmax(fabs(a), fabs(b));
}

/* Bins from counts. */
struct wr_codec_bins {
    struct weir_sketch *sk;
    int64_t minus; /* what to take from an index that is read */
    double carry;  /* of counts, in units of 2^-20, not yet given to a bin: [-1/2, 1/2] */
};

/*
 * Begin with the mapping that the bytes say; said NULL: they say none, opts->mapping is it. The
 * sketch's own is kept where it is the same, or BASE2 with the same bounds.
 * Errors: WEIR_EFORMAT (none, or no mapping at all), WEIR_EVERSION (not one that we have, or
 * WEIR_CODEC_CEIL with another than LOG), WEIR_ENOMEM.
 */
int wr_codec_begin(struct wr_codec_bins *b, struct weir_sketch *sk,
                   const struct weir_codec_opts *opts, const struct wr_codec_mapping *said);

/*
 * One bin, and the zero bin. index is that of the bytes. 0 does nothing.
 * Errors: WEIR_EFORMAT (count not finite or negative; index outside 32 bits), WEIR_ERANGE (count),
 * WEIR_ENOMEM.
 */
int wr_codec_add(struct wr_codec_bins *b, enum wr_bins_sign sign, int64_t index, double count);
int wr_codec_add_zero(struct wr_codec_bins *b, double count);
/* The bins [first, first + n), weights as they are. The same errors. */
int wr_codec_add_run(struct wr_codec_bins *b, enum wr_bins_sign sign, int64_t first,
                     const uint64_t *weights, size_t n);
/* The same with whole counts. */
int wr_codec_add_counts(struct wr_codec_bins *b, enum wr_bins_sign sign, int64_t first,
                        const uint16_t *counts, size_t n);
/* wr_codec_weight for any count. */
int wr_codec_weight_any(struct wr_codec_bins *b, double count, uint64_t *ret_weight);
/* A count in units of 2^-20, with what was carried. Errors: those of a count. */
WR_INLINE int wr_codec_weight(struct wr_codec_bins *b, double count, uint64_t *ret_weight)
{
    if (WR_LIKELY(count >= 0 && count < 0x1p43 && b->carry == 0)) {
        const int64_t whole = (int64_t)count;
        if (WR_LIKELY((double)whole == count)) {
            *ret_weight = (uint64_t)whole << 20;
            return WEIR_OK;
        }
    }
    return wr_codec_weight_any(b, count, ret_weight);
}

/* Leave out of stats what is not finite or cannot be; then wr_bins_end. */
int wr_codec_end(struct wr_codec_bins *b, const struct wr_bins_stats *stats);

/* ---- Writing */

/* Bytes of the caller. What does not fit is noted, and nothing written any more. */
struct wr_codec_out {
    uint8_t *at;
    uint8_t *end;
    bool full;
};

/* Whether n bytes more fit; notes it when not. */
WR_INLINE bool wr_codec_room(struct wr_codec_out *out, size_t n)
{
    if (WR_LIKELY(!out->full && (size_t)(out->end - out->at) >= n))
        return true;
    out->full = true;
    return false;
}

static inline void wr_codec_put_u8(struct wr_codec_out *out, uint8_t v)
{
    if (wr_codec_room(out, 1))
        *out->at++ = v;
}

static inline void wr_codec_put_u64le(struct wr_codec_out *out, uint64_t v)
{
    if (wr_codec_room(out, 8)) {
        wr_store64le(out->at, v);
        out->at += 8;
    }
}

static inline void wr_codec_put_double(struct wr_codec_out *out, double v)
{
    uint64_t bits;
    memcpy(&bits, &v, sizeof bits);
    wr_codec_put_u64le(out, bits);
}

/* Of protobuf: at most 10 bytes. */
static inline size_t wr_codec_varint_bytes(uint64_t v)
{
    return v ? (70 - wr_clz64(v)) / 7 : 1;
}

static inline void wr_codec_put_varint(struct wr_codec_out *out, uint64_t v)
{
    if (!wr_codec_room(out, wr_codec_varint_bytes(v)))
        return;
    while (v >= 0x80) {
        *out->at++ = (uint8_t)(v | 0x80);
        v >>= 7;
    }
    *out->at++ = (uint8_t)v;
}

static inline uint64_t wr_codec_zigzag(int64_t v)
{
    return v < 0 ? 2 * (uint64_t)(-(v + 1)) + 1 : 2 * (uint64_t)v;
}

static inline int64_t wr_codec_unzigzag(uint64_t v)
{
    return (int64_t)(v >> 1) ^ -(int64_t)(v & 1);
}

/* The mapping that the bins of sk have in the unit that is written, and whether values of sk,
 * which are in the unit of answers, are to be multiplied by 10^9 for it. */
struct wr_codec_unit {
    struct wr_codec_mapping mapping; /* LOG for BASE2 */
    double factor;
};
/* Errors: WEIR_EVERSION (no such mapping in that unit). */
int wr_codec_unit(const struct weir_codec_opts *opts, const struct weir_sketch *sk,
                  struct wr_codec_unit *ret_unit);

/* How many bins there are from the lowest to the highest used one; 0: none. */
size_t wr_codec_span(const struct weir_sketch *sk, enum wr_bins_sign sign, int32_t *ret_lo);
#endif
