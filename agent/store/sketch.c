/* SPDX-License-Identifier: Apache-2.0 */
/* sketch: a sketch as a blob. */
#include "store/internal.h"

#include <errno.h>
#include <limits.h>

/* Most sketches fit, and asking for the exact size costs half as much as encoding. */
#define FIRST_TRY_BYTES 4096

int store_sketch_encode(const struct weir_sketch *sk, struct store_buf *buf)
{
    if (store_buf_reserve(buf, FIRST_TRY_BYTES))
        return -ENOMEM;
    int r = weir_sketch_encode(sk, buf->ptr, buf->cap, &buf->len);
    if (r == WEIR_EFULL) {
        const size_t bytes = weir_sketch_encoded_bytes(sk);
        if (bytes > INT_MAX || store_buf_reserve(buf, bytes))
            return -ENOMEM;
        r = weir_sketch_encode(sk, buf->ptr, buf->cap, &buf->len);
    }
    return r == WEIR_OK ? 0 : -EIO;
}
