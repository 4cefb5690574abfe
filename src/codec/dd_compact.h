/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WR_CODEC_DD_COMPACT_H
#define WR_CODEC_DD_COMPACT_H
#include "codec/codec.h"

/* dd_compact: the flag bytes of DDSketch's compact encoding; docs/formats/ddsketch-compact.md.
 * The low two bits are the type of a block, the rest what it is in that type. */
enum {
    TYPE_FEATURE = 0,
    TYPE_POSITIVE = 1,
    TYPE_MAPPING = 2,
    TYPE_NEGATIVE = 3,
    TYPE_MASK = 3,

    FLAG_ZEROS = 0x04,
    FLAG_SUM = 0x84,
    FLAG_MIN = 0x88,
    FLAG_MAX = 0x8c,
    FLAG_TOTAL = 0xa0,

    /* of both signs */
    BLOCK_PAIRS = 0x04, /* index deltas and counts */
    BLOCK_ONES = 0x08,  /* index deltas, every count is 1 */
    BLOCK_RUN = 0x0c    /* counts one behind the other */
};

static inline bool is_whole(uint64_t weight)
{
    return (weight & (WEIR_WEIGHT_ONE - 1)) == 0;
}

/* Small counts outside of runs are gathered; the bytes are those of the way for any weights. */
enum wr_compact_way { WR_COMPACT_GATHERED, WR_COMPACT_ANY };
/* As wr_dd_compact_encode, for tests. */
int wr_dd_compact_encode_by(enum wr_compact_way way, const struct weir_codec_opts *opts,
                            const struct weir_sketch *sk, struct wr_codec_out *out);
#endif
