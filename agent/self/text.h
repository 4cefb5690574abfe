/* SPDX-License-Identifier: Apache-2.0 */
#ifndef AGENT_SELF_TEXT_H
#define AGENT_SELF_TEXT_H
/*
 * text: a bounded growing text with a sticky failure: callers look at it once, at the end.
 * Threads: none inside. Memory: the heap, at most SELF_TEXT_MAX_BYTES.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SELF_TEXT_MAX_BYTES ((size_t)16 << 20)

struct self_text {
    char *ptr; /* owned; NULL while empty. Not NUL-terminated. */
    size_t len;
    size_t cap;
    bool failed; /* no memory, or past the maximum: what came later is missing */
};

void self_text_put(struct self_text *t, const char *bytes, size_t n);
void self_text_puts(struct self_text *t, const char *text);
void self_text_putf(struct self_text *t, const char *format, ...)
    __attribute__((format(printf, 2, 3))); /* up to 255 bytes */
void self_text_u64(struct self_text *t, uint64_t v);
void self_text_i64(struct self_text *t, int64_t v);
void self_text_done(struct self_text *t); /* frees */
#endif
