/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FUZZ_CODEC_H
#define FUZZ_CODEC_H
/*
 * codec: what the targets of the DDSketch family share. What is refused leaves an empty sketch with
 * the mapping it had; what is accepted is sound, answers with finite numbers in order, and written,
 * read and written again gives the same bytes. No more memory is taken than the limit of bins
 * allows.
 *
 * Input: 1 byte of options (the bin limit, the sketch's mapping, that of the options, how to read
 * and write), then the bytes.
 */
#include "fuzz.h"

void fz_codec(uint32_t codec, const uint8_t *data, size_t size);
#endif
