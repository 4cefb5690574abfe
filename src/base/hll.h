/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WR_BASE_HLL_H
#define WR_BASE_HLL_H
/*
 * hll: how many different 64-bit hashes there were (HyperLogLog): 2^bits registers of a byte, which
 * are all zero at first. 1,024 of them: 3 % standard error. Hashes of 64 bits need no correction
 * for large numbers.
 */
#include <math.h>
#include <stddef.h>
#include <stdint.h>

static inline void wr_hll_add(uint8_t *registers, unsigned bits, uint64_t hash)
{
    const size_t at = hash >> (64 - bits);
    /* The bit below the rest ends the run where all of it is zero. */
    const uint64_t rest = hash << bits | UINT64_C(1) << (bits - 1);
    const uint8_t rank = (uint8_t)(__builtin_clzll(rest) + 1);
    if (registers[at] < rank)
        registers[at] = rank;
}

static inline uint64_t wr_hll_estimate(const uint8_t *registers, unsigned bits)
{
    double sum = 0.0;
    unsigned zeros = 0;
    for (size_t i = 0; i < (size_t)1 << bits; i++) {
        sum += 1.0 / (double)(UINT64_C(1) << registers[i]);
        zeros += registers[i] == 0;
    }
    const double m = (double)((size_t)1 << bits);
    const double raw = 0.7213 / (1.0 + 1.079 / m) * m * m / sum;
    if (raw <= 2.5 * m && zeros > 0) /* few: by the registers that none has met */
        return (uint64_t)(m * log(m / zeros) + 0.5);
    return (uint64_t)(raw + 0.5);
}
#endif
