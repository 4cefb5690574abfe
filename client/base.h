/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WR_CLIENT_BASE_H
#define WR_CLIENT_BASE_H
/*
 * base: what the rooms of the client stand on: the allocator hook, a bounded growable buffer, the
 * system's clocks and random bytes, and the word that a forked child finds zero.
 *
 * The client sees of libweir what is exported, as any embedder does; so these few are its own.
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <weir/base.h>

#define WR_IGNORE(expr)                                                                            \
    do {                                                                                           \
        int ignored_ = (expr);                                                                     \
        (void)ignored_;                                                                            \
    } while (0)

enum { WR_MS_NS = 1000000 };
#define WR_S_NS INT64_C(1000000000)

struct weir_alloc wr_client_alloc_or_default(struct weir_alloc a);
/* size > 0; zeroed. NULL on failure. */
void *wr_client_alloc(const struct weir_alloc *a, size_t size);
void wr_client_free(const struct weir_alloc *a, void *ptr, size_t size);
/* A NUL-terminated copy of b; its size is b.len + 1. */
char *wr_client_copy(const struct weir_alloc *a, struct weir_bytes b);

/* Bytes that grow up to a maximum; the error is kept. */
struct wr_buf {
    const struct weir_alloc *alloc;
    char *ptr;
    size_t len;
    size_t cap;
    size_t max;
    int err; /* WEIR_OK, WEIR_ENOMEM, WEIR_EFULL */
};
void wr_buf_add(struct wr_buf *b, const void *bytes, size_t n);
void wr_buf_free(struct wr_buf *b);

/* n in decimal at dst, NUL-terminated; returns its length. */
#define WR_DECIMAL_BYTES 21
size_t wr_decimal(uint64_t n, char *dst);
bool wr_bytes_are(struct weir_bytes b, const char *text);
/* Digits and nothing else, below 2^32. */
bool wr_read_decimal(struct weir_bytes b, uint32_t *ret_number);

int64_t wr_sat_add(int64_t a, int64_t b);
void wr_client_clock(void *ctx, int64_t *ret_wall_ns, int64_t *ret_mono_ns);
/* Not for secrets: where the system has none to give, the clocks and an address. */
uint64_t wr_client_random(void);
/* A random UUID, version 4, as 36 characters and NUL. */
void wr_client_uuid(char dst[37]);

struct wr_fork_page {
    _Atomic uint64_t value;
};
struct wr_fork_page *wr_fork_page_new(void); /* NULL: no memory; the value is 0 */
void wr_fork_page_free(struct wr_fork_page *page);
#endif
