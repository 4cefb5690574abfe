/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WR_STATS_TEXT_H
#define WR_STATS_TEXT_H
/*
 * text: field bytes as they go into a key: UTF-8 repaired, cut at a limit on a character's edge,
 * codes and addresses recognised. Pure functions.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* What wr_text_repair can write for len bytes under a limit: each bad byte becomes three. */
static inline size_t wr_text_bound(size_t len, size_t limit)
{
    return len >= limit ? limit : (len * 3 < limit ? len * 3 : limit);
}

/*
 * Copy len bytes and say whether any had its high bit set. dst has room for len.
 * Short strings are the rule: two overlapping loads cover 8..16 bytes, two more 17..32, and so on
 * down; nothing is read or written outside the string.
 */
static inline uint64_t wr_text_copy(char *dst, const char *src, size_t len)
{
    if (len >= 8) {
        uint64_t seen = 0;
        uint64_t v;
        for (size_t i = 0; i + 8 < len; i += 8) {
            memcpy(&v, src + i, 8);
            memcpy(dst + i, &v, 8);
            seen |= v;
        }
        memcpy(&v, src + len - 8, 8);
        memcpy(dst + len - 8, &v, 8);
        return (seen | v) & UINT64_C(0x8080808080808080);
    }
    if (len >= 4) {
        uint32_t a;
        uint32_t b;
        memcpy(&a, src, 4);
        memcpy(&b, src + len - 4, 4);
        memcpy(dst, &a, 4);
        memcpy(dst + len - 4, &b, 4);
        return (a | b) & 0x80808080u;
    }
    if (len == 0)
        return 0;
    /* 1..3: first, middle, last may be one and the same byte. */
    const char first = src[0];
    const char middle = src[len / 2];
    const char last = src[len - 1];
    dst[0] = first;
    dst[len / 2] = middle;
    dst[len - 1] = last;
    return (uint64_t)((first | middle | last) & 0x80);
}

/*
 * Copy src as well-formed UTF-8, at most limit bytes, cut between characters. Each maximal part
 * that is no character becomes one U+FFFD (Unicode 15 §3.9, the substitution the WHATWG decoder
 * uses). *ret_bad and *ret_cut say what happened. Returns the bytes written. dst has room for
 * wr_text_bound(len, limit).
 */
size_t wr_text_repair(char *dst, const char *src, size_t len, size_t limit, bool *ret_bad,
                      bool *ret_cut);

/* Decimal 100..599, else -1. */
int wr_text_http_status(const char *text, size_t len);
/* 0..16 from a number or a name, "StatusCode." before it, any case, with or without "_"; else -1
 * (contracts: wire §2.9; names and numbers of gRPC's status codes). */
int wr_text_grpc_status(const char *text, size_t len);
/* An IPv4 or IPv6 address, alone, in brackets, or with a port behind it. */
bool wr_text_is_ip(const char *text, size_t len);
#endif
