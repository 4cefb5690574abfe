/* SPDX-License-Identifier: Apache-2.0 */
#ifndef T_CODEC_SUPPORT_H
#define T_CODEC_SUPPORT_H
/* support: what tests of the codecs share: rows of golden files, sketches of any mapping, answers
 * by the rules of others. */
#include <string.h>
#include <weir/codec.h>

#include "sketch/bins.h"
#include "t_sketch.h"

#define CODEC_GOLDEN T_SOURCE_DIR "/tests/golden/codec/"

/* A row of a tab-separated file: cells[0], ...; more than there are are "". */
enum { T_CELLS = 8 };
typedef void t_row_fn(void *ctx, char *cells[T_CELLS]);
/* fn for every row but those that begin with '#'; how many. */
size_t t_rows(const char *path, t_row_fn *fn, void *ctx);

/* Bytes from hex ("-": none), in memory that ends where they end. */
struct t_bytes {
    uint8_t *at;
    size_t n;
};
struct t_bytes t_bytes(const char *hex);

/* A sketch of WEIR_GRID_VALUE. mapping may be NULL. */
struct weir_sketch *t_sketch_of(const struct weir_mapping *mapping, uint32_t max_bins);
struct weir_mapping *t_mapping(uint32_t kind, double gamma, double offset);

/* By sketches-java: the first bin in order of value with more than q (n - 1) up to it, what it
 * answers. */
double t_java_quantile(const struct weir_sketch *sk, double q);

/* Encode in memory of the bound's size, then again in what that took, and in a byte less. */
struct t_bytes t_encode(uint32_t codec, const struct weir_codec_opts *opts,
                        const struct weir_sketch *sk);
/* Same mapping, same bins, same zeros. */
void t_same_bins(const struct weir_sketch *a, const struct weir_sketch *b);
#endif
