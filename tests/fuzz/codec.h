/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FUZZ_CODEC_H
#define FUZZ_CODEC_H
/*
 * codec: what the targets of sketches' encodings share. What is refused leaves an empty sketch and
 * says where and why; what is accepted is sound and answers with finite numbers in order; a byte
 * less of room than an encoding takes is refused.
 */
#include "fuzz.h"

#include "sketch/sketch.h"

#include <weir/codec.h>

/*
 * The DDSketch family. What is refused leaves the mapping that the sketch had; what is accepted,
 * written, read and written again gives the same bytes. No more memory is taken than the limit of
 * bins allows.
 *
 * Input: 1 byte of options (the bin limit, the sketch's mapping, that of the options, how to read
 * and write), then the bytes.
 */
void fz_codec(uint32_t codec, const uint8_t *data, size_t size);

/*
 * Bytes as a sketch of one encoding, with room for max_bins. What is accepted is read again the
 * same from the same bytes. If written is an encoding that can say it: what that writes is read
 * back with the same bins, and written again as the same bytes.
 */
void fz_foreign(uint32_t codec, uint32_t written, const struct weir_codec_opts *opts,
                uint32_t max_bins, const uint8_t *bytes, size_t n);
/* 32768, 2048, 100 or 2. */
uint32_t fz_max_bins(struct fz_in *in);
#endif
