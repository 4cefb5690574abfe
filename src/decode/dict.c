/* SPDX-License-Identifier: Apache-2.0 */
/* dict: see dict.h. */
#include "decode/dict.h"

#include "base/alloc.h"

#define DICT_MIN 256u
#define DICT_KEPT 32768u /* entries kept from payload to payload: 512 KiB */

int wr_dict_grow(struct weir_decoder *d)
{
    const size_t cap = d->dict_cap ? 2 * d->dict_cap : DICT_MIN;
    const size_t entry = sizeof *d->dict;
    struct wr_dict_entry *const dict =
        wr_realloc(&d->alloc, d->dict, d->dict_cap * entry, cap * entry);
    if (!dict)
        return WEIR_ENOMEM;
    d->dict = dict;
    d->dict_cap = cap;
    return WEIR_OK;
}

void wr_dict_trim(struct weir_decoder *d)
{
    if (d->dict_cap <= DICT_KEPT)
        return;
    wr_free(&d->alloc, d->dict, d->dict_cap * sizeof *d->dict);
    d->dict = NULL;
    d->dict_cap = 0;
}
