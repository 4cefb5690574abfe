/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WR_CODEC_VARFLOATS_H
#define WR_CODEC_VARFLOATS_H
/*
 * varfloats: many small counts to and from the bytes of varfloat.h. On x86-64 with AVX2, which is
 * asked for at run time, eight or four at a time; the bytes are the same without.
 *
 * Threads: any. Memory: none.
 */
#include "codec/varfloat.h"

/* Bytes of a whole count in the low three, how many they are in the high one. */
#define WR_VARFLOAT_TABLED 8192u
extern const uint32_t wr_varfloat_table[WR_VARFLOAT_TABLED];

/* One such count at `at`, where there are four bytes: all are stored, as many are kept as it has.
 */
WR_INLINE uint8_t *wr_varfloat_put_short(uint8_t *at, uint32_t bytes)
{
    wr_store32le(at, bytes);
    return at + (bytes >> 24);
}

/* n counts at `at`, where there are four bytes for each; one past the last byte is returned. What
 * is behind it, within those four, may be written as well. */
uint8_t *wr_varfloats_put(uint8_t *at, const uint16_t *counts, size_t n);
/* Up to n counts from *at on, which moves behind them: until one is not whole, or has more than 16
 * bits or 3 bytes, or the bytes end. How many; the others stay as they are. */
size_t wr_varfloats_get(const uint8_t **at, const uint8_t *end, uint16_t *counts, size_t n);

/* Without AVX2: for tests. */
uint8_t *wr_varfloats_put_scalar(uint8_t *at, const uint16_t *counts, size_t n);
size_t wr_varfloats_get_scalar(const uint8_t **at, const uint8_t *end, uint16_t *counts, size_t n);
#endif
