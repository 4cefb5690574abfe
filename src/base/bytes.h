/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WR_BASE_BYTES_H
#define WR_BASE_BYTES_H
/* bytes: copying short texts, which is most of what a record costs. */
#include "base/bits.h"

typedef uint64_t wr_v16 __attribute__((vector_size(16)));

/* wr_copy_ascii of more than 32 bytes. */
static WR_NOINLINE uint64_t wr_copy_ascii_long(char *dst, const char *src, size_t len)
{
    wr_v16 last;
    memcpy(&last, src + len - 16, 16);
    wr_v16 seen = last;
    for (size_t i = 0; i + 16 < len; i += 16) {
        wr_v16 v;
        memcpy(&v, src + i, 16);
        memcpy(dst + i, &v, 16);
        seen |= v;
    }
    memcpy(dst + len - 16, &last, 16);
    return (seen[0] | seen[1]) & UINT64_C(0x8080808080808080);
}

/*
 * Copy len bytes and say whether any had its high bit set (0: all ASCII). dst has room for len.
 * Every length is covered by a few loads that overlap, so nothing is read or written outside the
 * strings and short lengths take no loop. Inlined, since a call costs as much as a short text.
 */
WR_INLINE uint64_t wr_copy_ascii(char *dst, const char *src, size_t len)
{
    const uint64_t high = UINT64_C(0x8080808080808080);
    if (len > 32)
        return wr_copy_ascii_long(dst, src, len);
    if (len >= 16) {
        wr_v16 first;
        wr_v16 last;
        memcpy(&first, src, 16);
        memcpy(&last, src + len - 16, 16);
        memcpy(dst, &first, 16);
        memcpy(dst + len - 16, &last, 16);
        first |= last;
        return (first[0] | first[1]) & high;
    }
    if (len >= 8) {
        uint64_t a;
        uint64_t b;
        memcpy(&a, src, 8);
        memcpy(&b, src + len - 8, 8);
        memcpy(dst, &a, 8);
        memcpy(dst + len - 8, &b, 8);
        return (a | b) & high;
    }
    if (len >= 4) {
        uint32_t a;
        uint32_t b;
        memcpy(&a, src, 4);
        memcpy(&b, src + len - 4, 4);
        memcpy(dst, &a, 4);
        memcpy(dst + len - 4, &b, 4);
        return (a | b) & high;
    }
    if (len == 0)
        return 0;
    /* 1..3: first, middle and last may be one and the same byte. */
    const char first = src[0];
    const char middle = src[len / 2];
    const char end = src[len - 1];
    dst[0] = first;
    dst[len / 2] = middle;
    dst[len - 1] = end;
    return (uint64_t)((first | middle | end) & 0x80);
}
#endif
