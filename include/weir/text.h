/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_TEXT_H
#define WEIR_TEXT_H
/*
 * text: strings for the trace encoder, as a host has them.
 *
 * A struct weir_str says where a string lies and what it is: UTF-8 bytes, UTF-16 units as JVM, .NET
 * and JavaScript keep them, or a struct weir_text: an immutable string whose MessagePack form was
 * made once, so that writing it is one copy, and which finds its place in a payload's dictionary
 * without being hashed. Names and tag keys, of which a program has few, are best held as texts.
 *
 * A struct weir_texts makes texts of what recurs: a bounded table that takes a string in when it
 * sees it for the second time.
 *
 * What is not well-formed is mended, never refused: each bad byte, and each unpaired surrogate,
 * becomes U+FFFD.
 *
 * Threads: a text may be read, and given to encoders, by any number of threads; two that encode it
 * at the same time are right, but slower. One thread may use a struct weir_texts at a time.
 */
#include <string.h>
#include <weir/base.h>

WEIR_BEGIN_DECLS

enum weir_str_kind { WEIR_STR_UTF8 = 0, WEIR_STR_TEXT = 1, WEIR_STR_UTF16 = 2 };

/* Borrowed. ptr NULL: there is no string, whatever len says; where one must be, it is empty. */
struct weir_str {
    const void
        *ptr;      /* const char *, const struct weir_text *, or const uint16_t * (any alignment) */
    uint32_t len;  /* UTF-8: bytes; UTF-16: units, in this machine's order; text: not read */
    uint32_t kind; /* enum weir_str_kind */
};

struct weir_text;

static inline struct weir_str weir_str_utf8(const char *ptr, uint32_t len)
{
    struct weir_str s;
    s.ptr = ptr;
    s.len = len;
    s.kind = WEIR_STR_UTF8;
    return s;
}
static inline struct weir_str weir_str_utf16(const uint16_t *ptr, uint32_t units)
{
    struct weir_str s;
    s.ptr = ptr;
    s.len = units;
    s.kind = WEIR_STR_UTF16;
    return s;
}
static inline struct weir_str weir_str_text(const struct weir_text *text)
{
    struct weir_str s;
    s.ptr = text;
    s.len = 0;
    s.kind = WEIR_STR_TEXT;
    return s;
}
/* NUL-terminated, shorter than 4 GiB; NULL gives no string. */
static inline struct weir_str weir_str_c(const char *ptr)
{
    return weir_str_utf8(ptr, ptr ? (uint32_t)strlen(ptr) : 0);
}

/*
 * Make a text of UTF-8 bytes, or of UTF-16 units. len and count are at most 2^30.
 * Cost: O(len). Allocates once. Errors: WEIR_EINVAL, WEIR_ERANGE (too long), WEIR_ENOMEM.
 */
WEIR_API WEIR_NODISCARD int weir_text_new(const struct weir_alloc *alloc, const char *utf8,
                                          size_t len, struct weir_text **ret_text);
WEIR_API WEIR_NODISCARD int weir_text_from_utf16(const struct weir_alloc *alloc,
                                                 const uint16_t *units, size_t count,
                                                 struct weir_text **ret_text);
/* No payload that it was written into may be open: see weir_trace_clear(). NULL is allowed. */
WEIR_API void weir_text_free(struct weir_text *text);
/* The text as UTF-8; borrowed from it. */
WEIR_API struct weir_bytes weir_text_get_bytes(const struct weir_text *text);

struct weir_texts;

struct weir_texts_opts {
    size_t struct_size;
    struct weir_alloc alloc;
    uint32_t max_texts;     /* 1 to 2^20; default 1024 */
    uint32_t max_len_bytes; /* of a string that is taken in; default 256 */
};

/* opts NULL means all defaults. Errors: WEIR_EINVAL, WEIR_ENOMEM. */
WEIR_API WEIR_NODISCARD int weir_texts_new(const struct weir_texts_opts *opts,
                                           struct weir_texts **ret_texts);
WEIR_API void weir_texts_free(struct weir_texts *texts); /* frees its texts; NULL is allowed */

/*
 * The text of s where the table has one, else s itself. A string that was seen before is taken in
 * while there is room and memory; the rest stays what it was.
 *
 * Cost: one hash and one comparison; for UTF-16 the transcoding before. Allocates for a string that
 * is taken in, and to transcode one that is longer than any before. Cannot fail.
 * The result is borrowed: until the second weir_texts_age() after it was last asked for.
 */
WEIR_API struct weir_str weir_texts_intern(struct weir_texts *texts, struct weir_str s);

/*
 * Forget the texts that were not asked for since the last call: so the table follows what recurs
 * now. Call it between two payloads, when no encoder holds one. Cost: O(max_texts). Never
 * allocates.
 */
WEIR_API void weir_texts_age(struct weir_texts *texts);
/* Texts in the table. */
WEIR_API uint32_t weir_texts_count(const struct weir_texts *texts);

WEIR_END_DECLS
#endif
