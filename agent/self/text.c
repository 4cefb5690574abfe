/* SPDX-License-Identifier: Apache-2.0 */
/* text: see text.h. */
#include "self/text.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool grow(struct self_text *t, size_t n)
{
    if (n > SELF_TEXT_MAX_BYTES - t->len)
        return false;
    size_t cap = t->cap ? t->cap : 4096;
    while (cap < t->len + n)
        cap *= 2;
    char *const ptr = realloc(t->ptr, cap);
    if (!ptr)
        return false;
    t->ptr = ptr;
    t->cap = cap;
    return true;
}

void self_text_put(struct self_text *t, const char *bytes, size_t n)
{
    if (t->failed || n == 0)
        return;
    if (n > t->cap - t->len && !grow(t, n)) {
        t->failed = true;
        return;
    }
    memcpy(t->ptr + t->len, bytes, n);
    t->len += n;
}

void self_text_puts(struct self_text *t, const char *text)
{
    self_text_put(t, text, strlen(text));
}

void self_text_putf(struct self_text *t, const char *format, ...)
{
    char buf[256];
    va_list args;
    va_start(args, format);
    const int n = vsnprintf(buf, sizeof buf, format, args);
    va_end(args);
    if (n < 0 || (size_t)n >= sizeof buf)
        t->failed = true;
    else
        self_text_put(t, buf, (size_t)n);
}

void self_text_u64(struct self_text *t, uint64_t v)
{
    self_text_putf(t, "%" PRIu64, v);
}

void self_text_i64(struct self_text *t, int64_t v)
{
    self_text_putf(t, "%" PRId64, v);
}

void self_text_done(struct self_text *t)
{
    free(t->ptr);
    *t = (struct self_text){.ptr = NULL, .len = 0, .cap = 0, .failed = false};
}
