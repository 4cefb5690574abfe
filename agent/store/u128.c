/* SPDX-License-Identifier: Apache-2.0 */
/* u128: totals that may pass 64 bits, as 16 bytes, least significant first. */
#include "store/internal.h"

struct weir_u128 store_u128_add(struct weir_u128 a, struct weir_u128 b)
{
    struct weir_u128 r;
    const bool carry = __builtin_add_overflow(a.lo, b.lo, &r.lo);
    bool over = __builtin_add_overflow(a.hi, b.hi, &r.hi);
    over |= __builtin_add_overflow(r.hi, (uint64_t)carry, &r.hi);
    return over ? (struct weir_u128){UINT64_MAX, UINT64_MAX} : r;
}

uint64_t store_u128_clamp(struct weir_u128 v)
{
    return v.hi ? UINT64_MAX : v.lo;
}

void store_u128_put(struct weir_u128 v, uint8_t dst[16])
{
    for (unsigned i = 0; i < 8; i++) {
        dst[i] = (uint8_t)(v.lo >> (8 * i));
        dst[8 + i] = (uint8_t)(v.hi >> (8 * i));
    }
}

struct weir_u128 store_u128_get(const void *src, size_t bytes)
{
    struct weir_u128 v = {0, 0};
    const uint8_t *const p = src;
    for (unsigned i = 0; bytes == 16 && i < 8; i++) {
        v.lo |= (uint64_t)p[i] << (8 * i);
        v.hi |= (uint64_t)p[8 + i] << (8 * i);
    }
    return v;
}
