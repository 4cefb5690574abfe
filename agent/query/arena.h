/* SPDX-License-Identifier: Apache-2.0 */
#ifndef AGENT_QUERY_ARENA_H
#define AGENT_QUERY_ARENA_H
/*
 * arena: the memory of one query: taken piece by piece, given back at once, never past a ceiling.
 *
 * Everything that lives as long as one request (syntax tree, labels, results) comes from here, so
 * no path has to free it. Sketches are the exception: they get their memory through query_heap,
 * which counts against the same kind of ceiling, and are freed by the evaluator.
 *
 * Threads: one thread uses an arena. Memory: chunks of at least 16 KiB from the C library's heap.
 */
#include <stddef.h>
#include <weir/base.h>

struct query_chunk;

struct query_arena {
    struct query_chunk *chunks;
    size_t used_bytes; /* of all chunks */
    size_t max_bytes;
};

void query_arena_init(struct query_arena *arena, size_t max_bytes);
void query_arena_done(struct query_arena *arena);
/* Zeroed, aligned for anything; NULL at the ceiling or without memory. */
void *query_arena_take(struct query_arena *arena, size_t bytes);
/* count * size, overflow checked. */
void *query_arena_take_array(struct query_arena *arena, size_t count, size_t size);
/* A copy of bytes; NULL as above (an empty copy is not NULL). */
char *query_arena_copy(struct query_arena *arena, const char *bytes, size_t len);

/* An allocator for libweir that refuses to go past a ceiling. */
struct query_heap {
    size_t used_bytes;
    size_t max_bytes;
};
struct weir_alloc query_heap_alloc(struct query_heap *heap);
#endif
