/* SPDX-License-Identifier: Apache-2.0 */
/* out: see out.h. Grows by doubling, never past max. */
#include "wire/out.h"

/* Small enough for a buffer that holds one span, large enough not to start with five doublings. */
#define OUT_FIRST_BYTES 512

void wr_out_init(struct wr_out *out, const struct weir_alloc *alloc, size_t max)
{
    *out = (struct wr_out){
        .ptr = NULL, .max = max, .err = WEIR_OK, .alloc = wr_alloc_or_default(alloc)};
}

void wr_out_done(struct wr_out *out)
{
    wr_free(&out->alloc, out->ptr, out->cap);
    out->ptr = NULL;
    out->len = 0;
    out->cap = 0;
}

bool wr_out_grow(struct wr_out *out, size_t bytes)
{
    if (out->err)
        return false;
    if (bytes > out->max - out->len) {
        out->err = WEIR_EFULL;
        return false;
    }
    const size_t need = out->len + bytes;
    size_t cap = out->cap ? out->cap : OUT_FIRST_BYTES;
    while (cap < need && cap <= out->max / 2)
        cap *= 2;
    if (cap < need || cap > out->max)
        cap = out->max;
    if (cap == 0) /* max 0 and nothing asked for: there is no byte to point at */
        cap = 1;
    char *const ptr = wr_realloc(&out->alloc, out->ptr, out->cap, cap);
    if (!ptr) {
        out->err = WEIR_ENOMEM;
        return false;
    }
    out->ptr = ptr;
    out->cap = cap;
    return true;
}

void wr_out_put(struct wr_out *out, const void *bytes, size_t n)
{
    if (n == 0)
        return;
    char *const at = wr_out_reserve(out, n);
    if (!at)
        return;
    memcpy(at, bytes, n);
    out->len += n;
}
