/* SPDX-License-Identifier: Apache-2.0 */
/* alloc: the allocator hook; the only object of libweir-client that references the C heap. */
#include "base.h"

#include <stdlib.h>
#include <string.h>

static void *heap(void *ctx, void *ptr, size_t old_size, size_t new_size)
{
    (void)ctx;
    (void)old_size;
    if (new_size == 0) {
        free(ptr);
        return NULL;
    }
    return realloc(ptr, new_size);
}

struct weir_alloc wr_client_alloc_or_default(struct weir_alloc a)
{
    return a.fn ? a : (struct weir_alloc){.fn = heap, .ctx = NULL};
}

void *wr_client_alloc(const struct weir_alloc *a, size_t size)
{
    void *const p = a->fn(a->ctx, NULL, 0, size);
    if (p)
        memset(p, 0, size);
    return p;
}

void wr_client_free(const struct weir_alloc *a, void *ptr, size_t size)
{
    if (ptr)
        (void)a->fn(a->ctx, ptr, size, 0);
}

char *wr_client_copy(const struct weir_alloc *a, struct weir_bytes b)
{
    if (b.len == SIZE_MAX)
        return NULL;
    char *const copy = a->fn(a->ctx, NULL, 0, b.len + 1);
    if (!copy)
        return NULL;
    if (b.len)
        memcpy(copy, b.ptr, b.len);
    copy[b.len] = 0;
    return copy;
}

enum { BUF_FIRST_BYTES = 512 };

void wr_buf_add(struct wr_buf *b, const void *bytes, size_t n)
{
    if (b->err || n == 0)
        return;
    if (n > b->max - b->len) {
        b->err = WEIR_EFULL;
        return;
    }
    if (n > b->cap - b->len) {
        size_t cap = b->cap ? b->cap : BUF_FIRST_BYTES;
        while (cap < b->len + n)
            cap = cap > b->max / 2 ? b->max : cap * 2;
        char *const grown = b->alloc->fn(b->alloc->ctx, b->ptr, b->cap, cap);
        if (!grown) {
            b->err = WEIR_ENOMEM;
            return;
        }
        b->ptr = grown;
        b->cap = cap;
    }
    memcpy(b->ptr + b->len, bytes, n);
    b->len += n;
}

void wr_buf_free(struct wr_buf *b)
{
    wr_client_free(b->alloc, b->ptr, b->cap);
    b->ptr = NULL;
    b->len = 0;
    b->cap = 0;
}
