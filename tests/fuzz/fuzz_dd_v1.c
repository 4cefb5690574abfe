/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_dd_v1: the decoder of Datadog's v1.0 payloads. What is accepted is encoded as v0.4, v0.5
 * and v1.0, decoded, and the same.
 *
 * Input: 1 byte the span to stop at, 2 bytes where to cut, then the payload.
 */
#include "decode.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fz_in in = fz_in(data, size);
    const struct fz_walk walk = fz_decode_input(weir_decode_dd_v1, &in);
    if (walk.result != WEIR_OK)
        return 0;
    const uint8_t *const payload = data + (size - in.left);
    fz_decode_round_trip(weir_decode_dd_v1, weir_decode_dd_v04, WEIR_TRACE_V04, payload, in.left);
    fz_decode_round_trip(weir_decode_dd_v1, weir_decode_dd_v05, WEIR_TRACE_V05, payload, in.left);
    fz_decode_round_trip(weir_decode_dd_v1, weir_decode_dd_v1, WEIR_TRACE_V1, payload, in.left);
    return 0;
}
