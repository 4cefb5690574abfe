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

/* What wr_text_repair can write for len bytes under a limit: each bad byte becomes three. */
static inline size_t wr_text_bound(size_t len, size_t limit)
{
    return len >= limit ? limit : (len * 3 < limit ? len * 3 : limit);
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
/* Does an address begin with it? Host names mostly begin with what none does. */
static inline bool wr_text_may_be_ip(char c)
{
    const unsigned letter = ((unsigned char)c | 0x20u) - 'a';
    const unsigned digit = (unsigned char)c - (unsigned)'0'; /* or the colon, which is next */
    return digit <= 10 || letter < 6 || c == '[';
}
/* An IPv4 or IPv6 address, alone, in brackets, or with a port behind it. */
bool wr_text_is_ip(const char *text, size_t len);
#endif
