/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WR_BASE_HASH_H
#define WR_BASE_HASH_H
/* hash: seeded, 64 bits. Not on any wire and not stored: a seed is of one process. XXH3, and for
 * the keys of the record path one that takes a third of its instructions. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/bits.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

static inline uint64_t wr_hash(const void *bytes, size_t n, uint64_t seed)
{
    return XXH3_64bits_withSeed(bytes, n, seed);
}

/* Sixteen bytes, mixed by one full product whose halves are folded. What is taken off the bytes is
 * secret: nobody can choose bytes that make a factor 0. */
WR_INLINE uint64_t wr_hash_fold(const char *p, uint64_t secret, uint64_t state)
{
    uint64_t a;
    uint64_t b;
    memcpy(&a, p, sizeof a);
    memcpy(&b, p + 8, sizeof b);
    uint64_t high;
    const uint64_t low = wr_mul64(a ^ secret, b ^ state, &high);
    return low ^ high;
}

/* Of a key of the record path: two chains of products, 16 bytes a product, the last 16 bytes
 * once more where they overlap; the length tells apart what a tail would leave equal. */
static inline uint64_t wr_hash_key(const void *bytes, size_t n, uint64_t seed)
{
    if (WR_UNLIKELY(n < 16))
        return wr_hash(bytes, n, seed);
    const char *p = bytes;
    const char *const last = p + n - 16;
    const uint64_t one = seed ^ UINT64_C(0x9E3779B97F4A7C15); /* fractions of the golden ratio, */
    const uint64_t two = seed ^ UINT64_C(0xB7E151628AED2A6B); /* of e */
    uint64_t a = one ^ n;
    uint64_t b = two;
    for (; last - p >= 32; p += 32) {
        a = wr_hash_fold(p, one, a);
        b = wr_hash_fold(p + 16, two, b);
    }
    if (last - p >= 16) {
        a = wr_hash_fold(p, one, a);
        p += 16;
    }
    if (p < last)
        a = wr_hash_fold(p, two, a);
    b = wr_hash_fold(last, one, b);
    uint64_t high;
    const uint64_t low = wr_mul64(a ^ two, b ^ one, &high);
    return low ^ high;
}
#endif
