/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WR_BASE_HASH_H
#define WR_BASE_HASH_H
/* hash: seeded XXH3, 64 bits. Not on any wire and not stored: a seed is of one process. */
#include <stddef.h>
#include <stdint.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

static inline uint64_t wr_hash(const void *bytes, size_t n, uint64_t seed)
{
    return XXH3_64bits_withSeed(bytes, n, seed);
}
#endif
