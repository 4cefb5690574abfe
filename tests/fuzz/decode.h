/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FUZZ_DECODE_H
#define FUZZ_DECODE_H
/* decode: what the decoders' targets share. */
#include "fuzz.h"

#include <weir/decode.h>
#include <weir/trace.h>

typedef int fz_decode_fn(struct weir_decoder *, const void *, size_t, const struct weir_span_sink *,
                         struct weir_decode_result *, struct weir_where *);

/* What a walk gave: everything that is promised to be the same the next time. */
struct fz_walk {
    int result;
    struct weir_decode_result counts;
    struct weir_where where;
    uint64_t digest;  /* of all spans, places in the payload included */
    uint64_t content; /* of all spans, places left out */
    uint64_t spans;
    uint64_t traces;
    uint64_t refused;
};

struct weir_tags *fz_tags(void);
/* One walk; checks each span, and that results and errors are as decode.h says. */
struct fz_walk fz_decode(fz_decode_fn *decode, struct weir_decoder *decoder, const uint8_t *bytes,
                         size_t n);
/*
 * Options from the front of the input, the rest is the payload: the walk must be the same with a
 * fresh decoder, with a used one, and without a sink; stop where a sink says so; and no strict
 * prefix of a MessagePack payload that is accepted is accepted too.
 */
struct fz_walk fz_decode_input(fz_decode_fn *decode, struct fz_in *in);
/* Encode what the payload holds as version, decode that: the fields of every span are the same. */
void fz_decode_round_trip(fz_decode_fn *decode, fz_decode_fn *again,
                          enum weir_trace_version version, const uint8_t *bytes, size_t n);
#endif
