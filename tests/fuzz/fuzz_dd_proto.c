/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_dd_proto: bytes as the protobuf message DDSketch; see codec.h. */
#include "codec.h"

#include <weir/codec.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fz_codec(WEIR_CODEC_DD_PROTO, data, size);
    return 0;
}
