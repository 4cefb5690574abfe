/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_dd_compact: bytes as the compact encoding of DDSketch; see codec.h. */
#include "codec.h"

#include <weir/codec.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fz_codec(WEIR_CODEC_DD_COMPACT, data, size);
    return 0;
}
