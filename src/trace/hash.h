/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WR_TRACE_HASH_H
#define WR_TRACE_HASH_H
/* hash: the seeded content hash of dictionary and key sets: XXH3, 64 bits, header-only. */
#include <weir/base.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

static inline uint64_t wr_trace_hash(struct weir_bytes s, uint64_t seed)
{
    return XXH3_64bits_withSeed(s.len ? s.ptr : "", s.len, seed);
}
#endif
