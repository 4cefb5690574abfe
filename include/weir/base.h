/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WEIR_BASE_H
#define WEIR_BASE_H
/*
 * base: what every other header of libweir stands on: version, visibility, errors, the allocator
 * hook and borrowed bytes.
 *
 * Ownership words used in every header: *owns* (frees it), *borrows* (valid until the named
 * event), *takes* (the caller must not touch it again, also on failure), *fills* (the caller's
 * storage). Threads: each function says any, owner or producer.
 */
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
#define WEIR_BEGIN_DECLS extern "C" {
#define WEIR_END_DECLS }
#else
#define WEIR_BEGIN_DECLS
#define WEIR_END_DECLS
#endif

#if defined(__GNUC__) || defined(__clang__)
#define WEIR_API __attribute__((visibility("default")))
#define WEIR_NODISCARD __attribute__((warn_unused_result))
#else
#define WEIR_API
#define WEIR_NODISCARD
#endif

WEIR_BEGIN_DECLS

#define WEIR_VERSION_MAJOR 0
#define WEIR_VERSION_MINOR 1
#define WEIR_VERSION_PATCH 0
#define WEIR_VERSION_STRING "0.1.0"

/* The version of the library that is linked, as "0.1.0". Static storage. Threads: any. */
WEIR_API const char *weir_version(void);

/*
 * Errors. Every function that can fail returns int: WEIR_OK, or one of these. Outputs come last,
 * are named ret_* and are untouched on failure. Numbers never change their meaning.
 */
#define WEIR_ERR_MAP(X)                                                                            \
    X(NOMEM, -1001, "allocation failed or the memory limit was reached")                           \
    X(INVAL, -1002, "argument outside its documented range")                                       \
    X(FULL, -1003, "a configured bound is reached")                                                \
    X(EMPTY, -1004, "nothing recorded")                                                            \
    X(RANGE, -1005, "value outside what the format or the type can carry")                         \
    X(UTF8, -1006, "not well-formed UTF-8")                                                        \
    X(FORMAT, -1007, "bytes that are not of the expected format")                                  \
    X(TRUNCATED, -1008, "the bytes end before the message does")                                   \
    X(VERSION, -1009, "a format version or mapping that is not supported here")                    \
    X(BUSY, -1010, "in use; try again")

enum weir_err {
    WEIR_OK = 0,
#define WEIR_ERR_ENUM(name, num, text) WEIR_E##name = (num),
    WEIR_ERR_MAP(WEIR_ERR_ENUM)
#undef WEIR_ERR_ENUM
};

/* English text for a code of enum weir_err; "unknown error" for another. Static. Threads: any. */
WEIR_API const char *weir_strerror(int err);

/*
 * The allocator hook. new_size 0 frees ptr and returns NULL; ptr NULL allocates. old_size is what
 * was asked for last. Memory must be aligned for max_align_t. NULL on failure, ptr then stands.
 * Each context copies the hook it was given; fn NULL means the C library's.
 */
typedef void *weir_realloc_fn(void *ctx, void *ptr, size_t old_size, size_t new_size);

struct weir_alloc {
    weir_realloc_fn *fn;
    void *ctx;
};

/* Borrowed bytes: not NUL-terminated; ptr may be NULL when len is 0. */
struct weir_bytes {
    const char *ptr;
    size_t len;
};

/* Where in the input a decoder stopped, and why: static text, never bytes of the input. */
struct weir_where {
    size_t offset; /* from the start of the payload */
    const char *reason;
};

/* A weight of one span or sample: weights are unsigned fixed point in units of 2^-20. */
#define WEIR_WEIGHT_ONE ((uint64_t)1 << 20)

/* Unsigned 128-bit total, for sums of weighted nanoseconds. */
struct weir_u128 {
    uint64_t lo;
    uint64_t hi;
};

WEIR_END_DECLS
#endif
