/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WR_BASE_ALLOC_H
#define WR_BASE_ALLOC_H
/* alloc: the allocator hook, called in one place. Only alloc.c references the C heap. */
#include <weir/base.h>

/* The C library's heap, as struct weir_alloc wants it. */
void *wr_heap(void *ctx, void *ptr, size_t old_size, size_t new_size);
/* a with its default filled in: a NULL, or a->fn NULL, means the C library's heap. */
struct weir_alloc wr_alloc_or_default(const struct weir_alloc *a);
/* size > 0. NULL on failure. */
void *wr_alloc(const struct weir_alloc *a, size_t size);
/* As wr_alloc, zeroed. */
void *wr_alloc_zero(const struct weir_alloc *a, size_t size);
/* Grow or shrink; ptr stands when NULL is returned. new_size > 0. */
void *wr_realloc(const struct weir_alloc *a, void *ptr, size_t old_size, size_t new_size);
/* ptr may be NULL; size is what was asked for last. */
void wr_free(const struct weir_alloc *a, void *ptr, size_t size);
/* 64-byte aligned block of size bytes; *ret_block and *ret_block_size are what wr_free needs. */
void *wr_alloc_aligned64(const struct weir_alloc *a, size_t size, void **ret_block,
                         size_t *ret_block_size);
#endif
