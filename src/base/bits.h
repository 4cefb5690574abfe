/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WR_BASE_BITS_H
#define WR_BASE_BITS_H
/*
 * bits: compiler extensions in one place: checked size arithmetic, loads and stores of unaligned
 * integers, clamped conversions, branch and prefetch hints, assertions.
 */
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define WR_LIKELY(x) __builtin_expect(!!(x), 1)
#define WR_UNLIKELY(x) __builtin_expect(!!(x), 0)
#define WR_PREFETCH(p) __builtin_prefetch((p), 0, 3)
#define WR_PREFETCH_W(p) __builtin_prefetch((p), 1, 3)
#define WR_NOINLINE __attribute__((noinline))
#define WR_INLINE static inline __attribute__((always_inline))
/* Data of another file of the library: reached without a detour through the table of symbols. */
#define WR_HIDDEN __attribute__((visibility("hidden")))
#if defined(__clang__)
#define WR_WRAPS __attribute__((no_sanitize("unsigned-integer-overflow")))
#else
#define WR_WRAPS
#endif
/* Ignoring a result on purpose; greps. */
#define WR_IGNORE(expr)                                                                            \
    do {                                                                                           \
        int ignored_ = (expr);                                                                     \
        (void)ignored_;                                                                            \
    } while (0)

/* A caller's bug inside the library; dropped outside WEIR_DEV. */
#if defined(WEIR_DEV)
#define WR_ASSERT(x)                                                                               \
    do {                                                                                           \
        if (!(x))                                                                                  \
            __builtin_trap();                                                                      \
    } while (0)
#else
#define WR_ASSERT(x)                                                                               \
    do {                                                                                           \
        (void)sizeof(x);                                                                           \
    } while (0)
#endif

/* true when it overflows; *ret is then unspecified. */
static inline bool wr_add_size(size_t a, size_t b, size_t *ret)
{
    return __builtin_add_overflow(a, b, ret);
}
static inline bool wr_mul_size(size_t a, size_t b, size_t *ret)
{
    return __builtin_mul_overflow(a, b, ret);
}
static inline bool wr_add_i64(int64_t a, int64_t b, int64_t *ret)
{
    return __builtin_add_overflow(a, b, ret);
}
static inline bool wr_sub_i64(int64_t a, int64_t b, int64_t *ret)
{
    return __builtin_sub_overflow(a, b, ret);
}
/* Saturating. */
static inline int64_t wr_sat_add_i64(int64_t a, int64_t b)
{
    int64_t r;
    if (__builtin_add_overflow(a, b, &r))
        return b < 0 ? INT64_MIN : INT64_MAX;
    return r;
}
static inline int64_t wr_sat_sub_i64(int64_t a, int64_t b)
{
    int64_t r;
    if (__builtin_sub_overflow(a, b, &r))
        return b < 0 ? INT64_MAX : INT64_MIN;
    return r;
}

static inline uint16_t wr_load16le(const void *p)
{
    uint16_t v;
    memcpy(&v, p, sizeof v);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    v = __builtin_bswap16(v);
#endif
    return v;
}
static inline uint32_t wr_load32le(const void *p)
{
    uint32_t v;
    memcpy(&v, p, sizeof v);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    v = __builtin_bswap32(v);
#endif
    return v;
}
static inline uint64_t wr_load64le(const void *p)
{
    uint64_t v;
    memcpy(&v, p, sizeof v);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    v = __builtin_bswap64(v);
#endif
    return v;
}
static inline uint16_t wr_load16be(const void *p)
{
    return __builtin_bswap16(wr_load16le(p));
}
static inline uint32_t wr_load32be(const void *p)
{
    return __builtin_bswap32(wr_load32le(p));
}
static inline uint64_t wr_load64be(const void *p)
{
    return __builtin_bswap64(wr_load64le(p));
}
static inline void wr_store16le(void *p, uint16_t v)
{
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    v = __builtin_bswap16(v);
#endif
    memcpy(p, &v, sizeof v);
}
static inline void wr_store32le(void *p, uint32_t v)
{
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    v = __builtin_bswap32(v);
#endif
    memcpy(p, &v, sizeof v);
}
static inline void wr_store64le(void *p, uint64_t v)
{
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    v = __builtin_bswap64(v);
#endif
    memcpy(p, &v, sizeof v);
}
static inline void wr_store16be(void *p, uint16_t v)
{
    wr_store16le(p, __builtin_bswap16(v));
}
static inline void wr_store32be(void *p, uint32_t v)
{
    wr_store32le(p, __builtin_bswap32(v));
}
static inline void wr_store64be(void *p, uint64_t v)
{
    wr_store64le(p, __builtin_bswap64(v));
}

/* double to integer, clamped: NaN gives 0. Out of range is undefined in C. */
static inline int64_t wr_i64_from_double(double v)
{
    if (!(v == v))
        return 0;
    if (v >= 9223372036854775808.0)
        return INT64_MAX;
    if (v <= -9223372036854775808.0)
        return INT64_MIN;
    return (int64_t)v;
}

/* The low half of a * b; the high one goes to *ret_high. */
static inline uint64_t wr_mul64(uint64_t a, uint64_t b, uint64_t *ret_high)
{
    __extension__ typedef unsigned __int128 wide;
    const wide product = (wide)a * b;
    *ret_high = (uint64_t)(product >> 64);
    return (uint64_t)product;
}

static inline unsigned wr_clz64(uint64_t v) /* v != 0 */
{
    return (unsigned)__builtin_clzll(v);
}
static inline unsigned wr_ctz64(uint64_t v) /* v != 0 */
{
    return (unsigned)__builtin_ctzll(v);
}
static inline size_t wr_pow2_ceil(size_t v) /* 1 <= v <= SIZE_MAX / 2 */
{
    return v <= 1 ? 1 : (size_t)1 << (64 - wr_clz64((uint64_t)v - 1));
}
#endif
