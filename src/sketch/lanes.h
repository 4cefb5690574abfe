/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WR_SKETCH_LANES_H
#define WR_SKETCH_LANES_H
/*
 * lanes: counters of 8, 16 or 32 bits, several at once in a 64-bit word.
 *
 * A word is loaded as it lies, so the order of its lanes differs between machines; nothing here
 * depends on that order. Adding keeps carries inside their lane by leaving out the top bits and
 * putting them back without carry; a lane that overflows is seen from its three top bits.
 *
 * Threads: any. Memory: none.
 */
#include "base/bits.h"

/*
 * For loops that are compiled once for each pair of widths: X(dst width, src width, what follows
 * X). Counters never narrow, so src is at most as wide.
 */
#define WR_EACH_WIDTHS(X, ...)                                                                     \
    X(0, 0, __VA_ARGS__)                                                                           \
    X(1, 0, __VA_ARGS__)                                                                           \
    X(1, 1, __VA_ARGS__)                                                                           \
    X(2, 0, __VA_ARGS__)                                                                           \
    X(2, 1, __VA_ARGS__)                                                                           \
    X(2, 2, __VA_ARGS__)                                                                           \
    X(3, 0, __VA_ARGS__)                                                                           \
    X(3, 1, __VA_ARGS__)                                                                           \
    X(3, 2, __VA_ARGS__)                                                                           \
    X(3, 3, __VA_ARGS__)
#define WR_WIDTHS(dst, src) ((unsigned)(dst)*4u + (unsigned)(src))

/* The top bit of each lane. */
WR_INLINE uint64_t wr_lanes_tops(uint8_t width)
{
    static const uint64_t tops[4] = {UINT64_C(0x8080808080808080), UINT64_C(0x8000800080008000),
                                     UINT64_C(0x8000000080000000), UINT64_C(0x8000000000000000)};
    return tops[width];
}

/* Lane by lane, each modulo its size. */
WR_INLINE uint64_t wr_lanes_add(uint64_t a, uint64_t b, uint64_t tops)
{
    return ((a & ~tops) + (b & ~tops)) ^ ((a ^ b) & tops);
}

/* Not 0 when a lane of a + b overflowed; sum is wr_lanes_add of them. */
WR_INLINE uint64_t wr_lanes_over(uint64_t a, uint64_t b, uint64_t sum, uint64_t tops)
{
    return ((a & b) | ((a | b) & ~sum)) & tops;
}

/* The sum of the lanes; of 64-bit ones there is one. */
WR_INLINE uint64_t wr_lanes_sum(uint64_t v, uint8_t width)
{
    const uint64_t even8 = UINT64_C(0x00ff00ff00ff00ff);
    const uint64_t even16 = UINT64_C(0x0000ffff0000ffff);
    if (width == 0)
        v = (v & even8) + ((v >> 8) & even8);
    if (width <= 1)
        v = (v & even16) + ((v >> 16) & even16);
    if (width <= 2)
        v = (v & UINT32_MAX) + (v >> 32);
    return v;
}
#endif
