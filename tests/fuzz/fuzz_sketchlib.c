/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_sketchlib: states and deltas of sketchlib.v1; deltas are of alpha = 1 %.
 *
 * Input: 1 byte the bin limit, 1 byte which of the two, then the bytes.
 */
#include "codec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fz_in in = fz_in(data, size);
    const uint32_t max_bins = fz_max_bins(&in);
    const uint32_t codec = fz_u8(&in) & 1 ? WEIR_CODEC_SKETCHLIB_DELTA : WEIR_CODEC_SKETCHLIB;
    struct weir_mapping *log = NULL; /* for states it would be work for nothing */
    if (codec == WEIR_CODEC_SKETCHLIB_DELTA)
        FZ_CHECK(weir_mapping_log(NULL, 0.01, &log) == WEIR_OK);
    const struct weir_codec_opts opts = {.struct_size = sizeof opts, .mapping = log};
    fz_foreign(codec, codec, &opts, max_bins, in.at, in.left);
    weir_mapping_unref(log);
    return 0;
}
