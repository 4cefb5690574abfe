/* SPDX-License-Identifier: Apache-2.0 */
#ifndef AGENT_LOG_UTF8_H
#define AGENT_LOG_UTF8_H
/* utf8: the length of one well-formed sequence (RFC 3629, table of section 4). Threads: any. */
#include <stdbool.h>
#include <stddef.h>

static inline bool log_utf8_in(unsigned char c, unsigned char low, unsigned char high)
{
    return c >= low && c <= high;
}

/* Bytes of the sequence at s, of which n are there; 0 if it is not well formed. */
static inline size_t log_utf8_length(const char *text, size_t n)
{
    const unsigned char *const s = (const unsigned char *)text;
    if (n == 0)
        return 0;
    if (s[0] < 0x80)
        return 1;
    const size_t length = log_utf8_in(s[0], 0xc2, 0xdf)   ? 2
                          : log_utf8_in(s[0], 0xe0, 0xef) ? 3
                          : log_utf8_in(s[0], 0xf0, 0xf4) ? 4
                                                          : 0;
    if (length == 0 || length > n)
        return 0;
    /* Over-long forms, surrogates and what lies past U+10FFFF show in the second byte. */
    const unsigned char low = s[0] == 0xe0 ? 0xa0 : s[0] == 0xf0 ? 0x90 : 0x80;
    const unsigned char high = s[0] == 0xed ? 0x9f : s[0] == 0xf4 ? 0x8f : 0xbf;
    if (!log_utf8_in(s[1], low, high))
        return 0;
    for (size_t i = 2; i < length; i++) {
        if (!log_utf8_in(s[i], 0x80, 0xbf))
            return 0;
    }
    return length;
}
#endif
