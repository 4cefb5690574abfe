/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz: see fuzz.h. */
#include "fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void fz_fail(const char *file, int line, const char *what)
{
    (void)fprintf(stderr, "%s:%d: not true: %s\n", file, line, what);
    abort();
}

struct fz_in fz_in(const uint8_t *data, size_t size)
{
    return (struct fz_in){.at = data, .left = size};
}

uint8_t fz_u8(struct fz_in *in)
{
    if (in->left == 0)
        return 0;
    in->left--;
    return *in->at++;
}

uint16_t fz_u16(struct fz_in *in)
{
    const unsigned low = fz_u8(in);
    return (uint16_t)(low | (unsigned)fz_u8(in) << 8);
}

uint64_t fz_u64(struct fz_in *in)
{
    uint64_t v = 0;
    for (unsigned i = 0; i < 8; i++)
        v |= (uint64_t)fz_u8(in) << (8 * i);
    return v;
}

uint32_t fz_below(struct fz_in *in, uint32_t n)
{
    return (n > 256 ? fz_u16(in) : fz_u8(in)) % n;
}

uint64_t fz_any(struct fz_in *in)
{
    const unsigned bits = fz_u8(in) % 65;
    uint64_t v = 0;
    for (unsigned i = 0; i < (bits + 7) / 8; i++)
        v |= (uint64_t)fz_u8(in) << (8 * i);
    return bits == 64 ? v : v & ((UINT64_C(1) << bits) - 1);
}

void *fz_alloc(size_t bytes)
{
    void *const p = malloc(bytes ? bytes : 1);
    FZ_CHECK(p != NULL);
    return p;
}

uint8_t *fz_copy(const void *bytes, size_t n)
{
    uint8_t *const p = malloc(n); /* of 0 bytes too: no byte of it may be read */
    FZ_CHECK(p != NULL || n == 0);
    if (n)
        memcpy(p, bytes, n);
    return p;
}

uint64_t fz_digest(uint64_t digest, const void *bytes, size_t n)
{
    const uint8_t *const p = bytes;
    for (size_t i = 0; i < n; i++)
        digest = (digest ^ p[i]) * UINT64_C(0x100000001b3);
    return (digest ^ n) * UINT64_C(0x100000001b3);
}

uint64_t fz_digest_u64(uint64_t digest, uint64_t v)
{
    return fz_digest(digest, &v, sizeof v);
}

bool fz_same(const void *a, size_t na, const void *b, size_t nb)
{
    return na == nb && (na == 0 || memcmp(a, b, na) == 0);
}
