/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FUZZ_FOREIGN_H
#define FUZZ_FOREIGN_H
/* foreign: what targets of sketches' encodings share. */
#include "fuzz.h"

#include "sketch/sketch.h"

#include <weir/codec.h>

/*
 * Bytes as a sketch of one encoding, with room for max_bins. What is refused leaves it empty and
 * says where and why; what is accepted is sound, answers in order, and is read again the same from
 * the same bytes. If written is an encoding that can say it: what that writes is read back with the
 * same bins, and written again as the same bytes; a byte less of room is refused.
 */
void fz_foreign(uint32_t codec, uint32_t written, const struct weir_codec_opts *opts,
                uint32_t max_bins, const uint8_t *bytes, size_t n);
/* 32768, 2048, 100 or 2. */
uint32_t fz_max_bins(struct fz_in *in);
#endif
