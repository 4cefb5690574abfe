/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_otlp_traces: the decoder of ExportTraceServiceRequest. A request is one repeated field, so
 * two requests, one behind the other, are one with the spans of both.
 *
 * Input: 1 byte the span to stop at, 2 bytes where to cut, then the payload.
 */
#include "decode.h"

#include <stdlib.h>
#include <string.h>

static void expect_twice(const struct fz_walk *once, const uint8_t *bytes, size_t n)
{
    uint8_t *const both = fz_alloc(2 * n);
    if (n) {
        memcpy(both, bytes, n);
        memcpy(both + n, bytes, n);
    }
    struct weir_tags *const tags = fz_tags();
    struct weir_decoder *decoder = NULL;
    FZ_CHECK(weir_decoder_new(NULL, tags, &decoder) == WEIR_OK);
    const struct fz_walk twice = fz_decode(weir_decode_otlp_traces, decoder, both, 2 * n);
    FZ_CHECK(twice.result == WEIR_OK && twice.traces == once->traces);
    FZ_CHECK(twice.spans == 2 * once->spans && twice.refused == 2 * once->refused);
    weir_decoder_free(decoder);
    weir_tags_free(tags);
    free(both);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fz_in in = fz_in(data, size);
    const struct fz_walk walk = fz_decode_input(weir_decode_otlp_traces, &in);
    FZ_CHECK(walk.result != WEIR_OK || walk.traces <= 1);
    if (walk.result == WEIR_OK)
        expect_twice(&walk, data + (size - in.left), in.left);
    return 0;
}
