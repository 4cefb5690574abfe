/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FUZZ_FUZZ_H
#define FUZZ_FUZZ_H
/*
 * fuzz: what the targets share: taking options and operations from the input, checks that end the
 * process, digests of results.
 *
 * A target is LLVMFuzzerTestOneInput over one input. It keeps nothing from one input to the next,
 * so that an input that fails once fails alone. Copies have exact sizes: ASan sees an overread.
 *
 * Threads: one. Memory: the C heap; a target frees what it made.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <weir/base.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define FZ_CHECK(x)                                                                                \
    do {                                                                                           \
        if (!(x))                                                                                  \
            fz_fail(__FILE__, __LINE__, #x);                                                       \
    } while (0)
void fz_fail(const char *file, int line, const char *what) __attribute__((noreturn));

/* The rest of an input; past its end it gives zeros. */
struct fz_in {
    const uint8_t *at;
    size_t left;
};
struct fz_in fz_in(const uint8_t *data, size_t size);
uint8_t fz_u8(struct fz_in *in);
uint16_t fz_u16(struct fz_in *in); /* little end first, as the next */
uint64_t fz_u64(struct fz_in *in);
uint32_t fz_below(struct fz_in *in, uint32_t n); /* 0..n-1 from one byte, or two when n > 256 */
/* A number of any magnitude: a byte of how many bits, then those. */
uint64_t fz_any(struct fz_in *in);

/* Freed with free(). The copy is of exactly n bytes. */
void *fz_alloc(size_t bytes);
uint8_t *fz_copy(const void *bytes, size_t n);

/* FNV-1a of parts, each with its length. */
#define FZ_DIGEST_EMPTY UINT64_C(0xcbf29ce484222325)
uint64_t fz_digest(uint64_t digest, const void *bytes, size_t n);
uint64_t fz_digest_u64(uint64_t digest, uint64_t v);

bool fz_same(const void *a, size_t na, const void *b, size_t nb);
#endif
