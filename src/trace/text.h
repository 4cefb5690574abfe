/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WR_TRACE_TEXT_H
#define WR_TRACE_TEXT_H
/*
 * text: the inside of a struct weir_text, and the keys that the encoder knows.
 *
 *   framed   [MessagePack header][content][padding up to 32 bytes]
 *
 * The first 32 bytes can be copied without looking at the length; most texts are no longer.
 *
 * slot is where some dictionary last put this text. It proves nothing by itself: an encoder looks
 * whether its own dictionary has this very text at that place (dict.h), so that it needs no number
 * of an epoch, and neither emptying nor rewinding a dictionary has to touch a text.
 */
#include <stdatomic.h>
#include <weir/text.h>

#include "base/bits.h"

#define WR_TEXT_STEP 32

/*
 * Keys and values that the encoder writes itself or looks for among tags. Keys come first, ordered
 * by length: wr_known_find() relies on it.
 */
#define WR_KNOWN_MAP(X)                                                                            \
    X(NONE, "")                                                                                    \
    X(ENV, "env")                                                                                  \
    X(EVENTS, "events")                                                                            \
    X(VERSION, "version")                                                                          \
    X(P_DM, "_dd.p.dm")                                                                            \
    X(THREAD_ID, "thread.id")                                                                      \
    X(P_TID, "_dd.p.tid")                                                                          \
    X(SPAN_KIND, "span.kind")                                                                      \
    X(COMPONENT, "component")                                                                      \
    X(ORIGIN, "_dd.origin")                                                                        \
    X(THREAD_NAME, "thread.name")                                                                  \
    X(MEASURED, "_dd.measured")                                                                    \
    X(TOP_LEVEL, "_dd.top_level")                                                                  \
    X(LINKS, "_dd.span_links")                                                                     \
    X(HTTP_STATUS, "http.status_code")                                                             \
    X(PARTIAL, "_dd.partial_version")                                                              \
    X(WAS_LONG, "_dd.was_long_running")                                                            \
    X(PRIORITY, "_sampling_priority_v1")                                                           \
    X(SERVICE, "service")                                                                          \
    X(TRUE, "true")                                                                                \
    X(FALSE, "false")                                                                              \
    X(INTERNAL, "internal")                                                                        \
    X(SERVER, "server")                                                                            \
    X(CLIENT, "client")                                                                            \
    X(PRODUCER, "producer")                                                                        \
    X(CONSUMER, "consumer")

enum wr_known {
#define WR_KNOWN_ENUM(name, text) WR_KNOWN_##name,
    WR_KNOWN_MAP(WR_KNOWN_ENUM)
#undef WR_KNOWN_ENUM
        WR_KNOWN_COUNT
};
#define WR_KNOWN_KEYS WR_KNOWN_SERVICE /* what comes from here on is no key of a tag */
#define WR_KNOWN_BIT(name) (UINT32_C(1) << WR_KNOWN_##name)

struct weir_text {
    _Atomic uint32_t slot;
    uint32_t len;
    uint32_t framed_len;
    uint32_t known;     /* enum wr_known; 0: none */
    uint64_t mark;      /* wr_text_mark() of the content */
    uint64_t high;      /* of which two groups of bits say the place of the one that is set here, */
    uint64_t low;       /* and here */
    const char *framed; /* framed_len rounded up to WR_TEXT_STEP bytes can be read */
    size_t bytes;       /* of the allocation; 0: part of an encoder */
    struct weir_alloc alloc;
};

/* Which known key these bytes are; 0: none. */
uint32_t wr_known_find(const char *key, size_t len);

/* A text within an encoder: framed is WR_TEXT_STEP bytes of its own, the content is short ASCII. */
void wr_text_init(struct weir_text *t, char *framed, const char *content);

static inline const char *wr_text_content(const struct weir_text *t)
{
    return t->framed + (t->framed_len - t->len);
}

/* What s, whose kind is WEIR_STR_TEXT, points to. Only slot is ever written through it. */
static inline struct weir_text *wr_text_of(struct weir_str s)
{
    const union {
        const void *given;
        struct weir_text *text;
    } u = {.given = s.ptr};
    return u.text;
}

static inline uint64_t wr_mark_high(uint64_t mark)
{
    return UINT64_C(1) << (mark >> 58);
}
static inline uint64_t wr_mark_low(uint64_t mark)
{
    return UINT64_C(1) << (mark >> 52 & 63);
}

/* Equal contents give equal marks; length, first and last bytes, that is all. */
static inline WR_WRAPS uint64_t wr_text_mark(const char *s, size_t n)
{
    uint64_t head = 0;
    uint64_t tail = 0;
    if (n >= 8) {
        head = wr_load64le(s);
        tail = wr_load64le(s + n - 8);
    } else if (n >= 4) {
        head = wr_load32le(s);
        tail = wr_load32le(s + n - 4);
    } else {
        for (size_t i = 0; i < n; i++)
            head = head << 8 | (unsigned char)s[i];
    }
    return (head ^ (tail << 29 | tail >> 35) ^ n) * UINT64_C(0x9E3779B97F4A7C15);
}
#endif
