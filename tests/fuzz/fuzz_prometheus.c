/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_prometheus: native histograms.
 *
 * Input: 1 byte the bin limit, then the histogram.
 */
#include "codec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fz_in in = fz_in(data, size);
    const uint32_t max_bins = fz_max_bins(&in);
    fz_foreign(WEIR_CODEC_PROMETHEUS, WEIR_CODEC_PROMETHEUS, NULL, max_bins, in.at, in.left);
    return 0;
}
