/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WR_SKETCH_COUNTERS_H
#define WR_SKETCH_COUNTERS_H
/*
 * counters: arrays of counters added to each other, the inner loops of a merge.
 *
 * Each in two ways, by words of 64 bits and by AVX2 where the CPU has it. They add integers, so
 * both give the same bits; a test runs one against the other.
 *
 * Threads: any. Memory: none.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* n counters of src, each shifted left by scale, for as many of dst, which are at least as wide. */
struct wr_counters_pair {
    uint8_t *dst;
    const uint8_t *src;
    size_t n;
    uint8_t dst_width; /* log2 of the bytes of a counter */
    uint8_t src_width;
    uint8_t scale;
};

/* dst[i] += src[i] << scale. false: a sum below 64 bits did not fit, and nothing is changed. */
bool wr_counters_add(const struct wr_counters_pair *p);
/* Whether every sum fits, before anything is paid for that would have to be undone. */
bool wr_counters_fit(const struct wr_counters_pair *p);

/* The ways. AVX2: only where wr_counters_has_avx2 says so; only without scale. */
bool wr_counters_add_words(const struct wr_counters_pair *p);
bool wr_counters_fit_words(const struct wr_counters_pair *p);
#if defined(__x86_64__)
#define WR_COUNTERS_AVX2 1
bool wr_counters_has_avx2(void);
bool wr_counters_add_avx2(const struct wr_counters_pair *p);
bool wr_counters_fit_avx2(const struct wr_counters_pair *p);
#endif
#endif
