/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WR_CODEC_DD_PROTO_H
#define WR_CODEC_DD_PROTO_H
/*
 * dd_proto: counts as the doubles of the message, in their byte order. By AVX2 where the CPU has
 * it; whole numbers of 16 bits are exact in either way.
 *
 * Threads: any. Memory: the caller's: 8 n bytes at `at`.
 */
#include "codec/codec.h"

void wr_dd_proto_put_counts(uint8_t *at, const uint16_t *counts, size_t n);
/* The same without vector instructions, for comparison. */
void wr_dd_proto_put_counts_scalar(uint8_t *at, const uint16_t *counts, size_t n);
#endif
