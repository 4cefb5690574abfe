/* SPDX-License-Identifier: Apache-2.0 */
/*
 * arena: chunks in a list, the newest first; a piece larger than a chunk gets a chunk of its own.
 *
 * Threads: see the header. Memory: see the header.
 */
#include "arena.h"

#include <stdalign.h>
#include <stdlib.h>
#include <string.h>

#define CHUNK_BYTES ((size_t)16 * 1024)

struct query_chunk {
    struct query_chunk *next;
    size_t used;
    size_t cap;
    alignas(max_align_t) unsigned char bytes[];
};

void query_arena_init(struct query_arena *arena, size_t max_bytes)
{
    *arena = (struct query_arena){.max_bytes = max_bytes};
}

void query_arena_done(struct query_arena *arena)
{
    struct query_chunk *chunk = arena->chunks;
    while (chunk) {
        struct query_chunk *const next = chunk->next;
        free(chunk);
        chunk = next;
    }
    *arena = (struct query_arena){.max_bytes = arena->max_bytes};
}

static struct query_chunk *add_chunk(struct query_arena *arena, size_t want)
{
    const size_t cap = want > CHUNK_BYTES ? want : CHUNK_BYTES;
    size_t bytes;
    if (__builtin_add_overflow(cap, sizeof(struct query_chunk), &bytes) ||
        bytes > arena->max_bytes - arena->used_bytes)
        return NULL;
    struct query_chunk *const chunk = calloc(1, bytes);
    if (!chunk)
        return NULL;
    chunk->cap = cap;
    chunk->next = arena->chunks;
    arena->chunks = chunk;
    arena->used_bytes += bytes;
    return chunk;
}

void *query_arena_take(struct query_arena *arena, size_t bytes)
{
    const size_t align = alignof(max_align_t);
    size_t want;
    if (__builtin_add_overflow(bytes, align - 1, &want))
        return NULL;
    want = want / align * align;
    if (want == 0)
        want = align;
    struct query_chunk *chunk = arena->chunks;
    if (!chunk || chunk->cap - chunk->used < want)
        chunk = add_chunk(arena, want);
    if (!chunk)
        return NULL;
    void *const piece = chunk->bytes + chunk->used;
    chunk->used += want;
    return piece;
}

void *query_arena_take_array(struct query_arena *arena, size_t count, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes))
        return NULL;
    return query_arena_take(arena, bytes);
}

char *query_arena_copy(struct query_arena *arena, const char *bytes, size_t len)
{
    char *const copy = query_arena_take(arena, len);
    if (copy && len)
        memcpy(copy, bytes, len);
    return copy;
}

static void *heap_fn(void *ctx, void *ptr, size_t old_size, size_t new_size)
{
    struct query_heap *const heap = ctx;
    const size_t before = ptr ? old_size : 0;
    if (new_size == 0) {
        heap->used_bytes -= before;
        free(ptr);
        return NULL;
    }
    if (new_size > before && new_size - before > heap->max_bytes - heap->used_bytes)
        return NULL;
    void *const moved = realloc(ptr, new_size);
    if (moved)
        heap->used_bytes = heap->used_bytes - before + new_size;
    return moved;
}

struct weir_alloc query_heap_alloc(struct query_heap *heap)
{
    return (struct weir_alloc){.fn = heap_fn, .ctx = heap};
}
