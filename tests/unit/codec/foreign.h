/* SPDX-License-Identifier: Apache-2.0 */
#ifndef T_CODEC_FOREIGN_H
#define T_CODEC_FOREIGN_H
/* foreign: what tests of the histograms of others and of ASAP's sketches share. */
#include "support.h"

/* The bins of one sign are those of text, "index:count index:count" or "-"; shift: its indices
 * are so many times halved first. */
void t_expect_bins(const struct weir_sketch *sk, enum wr_bins_sign sign, const char *text,
                   unsigned shift);
/* "1 - 3": sum, minimum, maximum; "-" is not checked. Blanks between. */
void t_expect_stats(const struct weir_sketch *sk, const char *text);

/* Decode into a fresh sketch; what fails leaves it empty, and where says why. */
int t_decode(uint32_t codec, const struct weir_codec_opts *opts, const void *bytes, size_t n,
             struct weir_sketch **ret);
/* The same; what it gave, freed. */
int t_decode_only(uint32_t codec, const struct weir_codec_opts *opts, const void *bytes, size_t n,
                  struct weir_where *ret_where);
int t_decode_hex(uint32_t codec, const struct weir_codec_opts *opts, const char *hex,
                 struct weir_where *ret_where);
/* No prefix, no byte set to any of some values, no byte doubled or left out makes a reader leave
 * its bytes, or a sketch that is not sound. */
void t_expect_hardy(uint32_t codec, const struct weir_codec_opts *opts, const uint8_t *bytes,
                    size_t n);
/* What is decoded encodes, and decodes again to the same bins. */
void t_expect_round(uint32_t codec, const struct weir_codec_opts *opts,
                    const struct weir_sketch *sk);
/* A sketch of some hundred random values of BASE2 at a scale, of both signs and with zeros if
 * signs. */
struct weir_sketch *t_random_sketch(struct t_rng *rng, int32_t scale, bool with_signs);
#endif
