/* SPDX-License-Identifier: Apache-2.0 */
/* alloc: see alloc.h. The only object of libweir that references the C heap. */
#include "base/alloc.h"

#include <stdlib.h>
#include <string.h>

void *wr_heap(void *ctx, void *ptr, size_t old_size, size_t new_size)
{
    (void)ctx;
    (void)old_size;
    if (new_size == 0) {
        free(ptr);
        return NULL;
    }
    return realloc(ptr, new_size);
}

struct weir_alloc wr_alloc_or_default(const struct weir_alloc *a)
{
    if (a && a->fn)
        return *a;
    return (struct weir_alloc){.fn = wr_heap, .ctx = NULL};
}

void *wr_alloc(const struct weir_alloc *a, size_t size)
{
    return a->fn(a->ctx, NULL, 0, size);
}

void *wr_alloc_zero(const struct weir_alloc *a, size_t size)
{
    void *const p = wr_alloc(a, size);
    if (p)
        memset(p, 0, size);
    return p;
}

void *wr_realloc(const struct weir_alloc *a, void *ptr, size_t old_size, size_t new_size)
{
    return a->fn(a->ctx, ptr, ptr ? old_size : 0, new_size);
}

void wr_free(const struct weir_alloc *a, void *ptr, size_t size)
{
    if (ptr)
        (void)a->fn(a->ctx, ptr, size, 0);
}

void *wr_alloc_aligned64(const struct weir_alloc *a, size_t size, void **ret_block,
                         size_t *ret_block_size)
{
    /* The hook aligns for max_align_t, so the next line is never further off than this. */
    const size_t slack = 64 - _Alignof(max_align_t);
    if (size > SIZE_MAX - slack)
        return NULL;
    char *const block = wr_alloc(a, size + slack);
    if (!block)
        return NULL;
    *ret_block = block;
    *ret_block_size = size + slack;
    const size_t past = (uintptr_t)block & 63u;
    return past ? block + (64 - past) : block;
}
