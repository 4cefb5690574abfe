/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_dogsketch: bytes as one Dogsketch message; see codec.h. */
#include "codec.h"

#include <weir/codec.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fz_codec(WEIR_CODEC_DOGSKETCH, data, size);
    return 0;
}
