/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_otlp_hist: the two histogram points of OpenTelemetry; both are written as exponential ones.
 *
 * Input: 1 byte the bin limit, 1 byte which point, then the point.
 */
#include "codec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fz_in in = fz_in(data, size);
    const uint32_t max_bins = fz_max_bins(&in);
    const uint32_t codec = fz_u8(&in) & 1 ? WEIR_CODEC_OTLP_HISTOGRAM : WEIR_CODEC_OTLP_EXP;
    fz_foreign(codec, WEIR_CODEC_OTLP_EXP, NULL, max_bins, in.at, in.left);
    return 0;
}
