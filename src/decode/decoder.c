/* SPDX-License-Identifier: Apache-2.0 */
/* decoder: see decoder.h and weir/decode.h. */
#include "decode/decoder.h"

#include "base/alloc.h"

int weir_decoder_new(const struct weir_alloc *alloc, const struct weir_tags *tags,
                     struct weir_decoder **ret_decoder)
{
    const struct weir_alloc a = wr_alloc_or_default(alloc);
    struct weir_decoder *const d = wr_alloc_zero(&a, sizeof *d);
    if (!d)
        return WEIR_ENOMEM;
    d->alloc = a;
    d->tags = tags;
    *ret_decoder = d;
    return WEIR_OK;
}

void weir_decoder_free(struct weir_decoder *decoder)
{
    if (!decoder)
        return;
    const struct weir_alloc a = decoder->alloc;
    wr_free(&a, decoder->dict, decoder->dict_cap * sizeof *decoder->dict);
    wr_free(&a, decoder->kept, decoder->kept_cap);
    wr_free(&a, decoder, sizeof *decoder);
}

int wr_walk_end(const struct wr_walk *walk, int err, size_t bad_offset, const char *reason,
                struct weir_decode_result *ret_result, struct weir_where *ret_where)
{
    if (err == WEIR_OK) {
        if (ret_result)
            *ret_result = walk->result;
    } else if (reason && ret_where) {
        /* Without a reason the error is the sink's or the allocator's, not the payload's. */
        *ret_where = (struct weir_where){.offset = bad_offset, .reason = reason};
    }
    return err;
}
