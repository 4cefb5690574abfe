/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WR_WIRE_OUT_H
#define WR_WIRE_OUT_H
/*
 * out: a growable byte buffer with a maximum and a sticky error, under every writer of wire/.
 *
 * Writers append and do not look at results; whoever asked for the message looks at err once, at
 * the end. After an error nothing is appended any more. A mark (the length) taken before a message
 * and wr_out_rewind() after a failure give the strong guarantee.
 *
 * A writer that knows an upper bound of what it will write reserves it once and stores through a
 * bare pointer: the check is per record then, not per byte.
 *
 * Threads: one at a time. Memory: at most max bytes from the given allocator; capacity is kept by
 * clear and rewind.
 */
#include "base/alloc.h"
#include "base/bits.h"

struct wr_out {
    char *ptr; /* NULL until something was reserved */
    size_t len;
    size_t cap; /* len <= cap <= max */
    size_t max;
    int err; /* WEIR_OK, WEIR_EFULL, WEIR_ENOMEM, WEIR_ERANGE */
    struct weir_alloc alloc;
};

/* alloc NULL or without fn: the C library's heap. Allocates nothing yet. */
void wr_out_init(struct wr_out *out, const struct weir_alloc *alloc, size_t max);
void wr_out_done(struct wr_out *out);

/* Make room past len for bytes more. false: out->err is set. */
bool wr_out_grow(struct wr_out *out, size_t bytes);

/* Where bytes more may be stored; NULL when out->err is, or becomes, set. */
static inline char *wr_out_reserve(struct wr_out *out, size_t bytes)
{
    if (WR_UNLIKELY(out->err))
        return NULL;
    if (WR_UNLIKELY(out->cap - out->len < bytes || !out->ptr) && !wr_out_grow(out, bytes))
        return NULL;
    return out->ptr + out->len;
}

/* end: one past the last byte stored in what reserve gave. */
static inline void wr_out_commit(struct wr_out *out, const char *end)
{
    WR_ASSERT(end >= out->ptr + out->len && end <= out->ptr + out->cap);
    out->len = (size_t)(end - out->ptr);
}

void wr_out_put(struct wr_out *out, const void *bytes, size_t n);

/* Back to a length seen before; forgets the error. */
static inline void wr_out_rewind(struct wr_out *out, size_t mark)
{
    WR_ASSERT(mark <= out->len);
    out->len = mark;
    out->err = WEIR_OK;
}

static inline void wr_out_clear(struct wr_out *out)
{
    wr_out_rewind(out, 0);
}
#endif
