/* SPDX-License-Identifier: Apache-2.0 */
/* split: see split.h. A reader of MessagePack that only knows where a value ends. */
#include "split.h"

#include <string.h>

struct cursor {
    const unsigned char *at;
    const unsigned char *end;
};

/* What follows the first byte of a value: bytes of a length (or of the value itself), then as many
 * bytes, or as many values. */
struct shape {
    uint8_t fixed;    /* bytes behind the first, when there is no length */
    uint8_t len_size; /* of a big-endian length */
    uint8_t values;   /* values a count: 1 array, 2 map, 0 bytes */
    uint8_t extra;    /* bytes besides the length: the type of an extension */
};

/* 0xc0 to 0xdf; 0xc1 is never used. */
static const struct shape shapes[32] = {
    [0x04] = {.len_size = 1},
    [0x05] = {.len_size = 2},
    [0x06] = {.len_size = 4},
    [0x07] = {.len_size = 1, .extra = 1},
    [0x08] = {.len_size = 2, .extra = 1},
    [0x09] = {.len_size = 4, .extra = 1},
    [0x0a] = {.fixed = 4},
    [0x0b] = {.fixed = 8},
    [0x0c] = {.fixed = 1},
    [0x0d] = {.fixed = 2},
    [0x0e] = {.fixed = 4},
    [0x0f] = {.fixed = 8},
    [0x10] = {.fixed = 1},
    [0x11] = {.fixed = 2},
    [0x12] = {.fixed = 4},
    [0x13] = {.fixed = 8},
    [0x14] = {.fixed = 2},
    [0x15] = {.fixed = 3},
    [0x16] = {.fixed = 5},
    [0x17] = {.fixed = 9},
    [0x18] = {.fixed = 17},
    [0x19] = {.len_size = 1},
    [0x1a] = {.len_size = 2},
    [0x1b] = {.len_size = 4},
    [0x1c] = {.len_size = 2, .values = 1},
    [0x1d] = {.len_size = 4, .values = 1},
    [0x1e] = {.len_size = 2, .values = 2},
    [0x1f] = {.len_size = 4, .values = 2},
};

static bool skip_bytes(struct cursor *c, uint64_t n)
{
    if (n > (uint64_t)(c->end - c->at))
        return false;
    c->at += n;
    return true;
}

/* Past the head of a value and its bytes; *ret_values: those that are inside it. */
static bool skip_head(struct cursor *c, uint64_t *ret_values)
{
    *ret_values = 0;
    if (c->at == c->end)
        return false;
    const unsigned char first = *c->at++;
    if (first < 0x80 || first >= 0xe0)
        return true;
    if (first < 0xa0) {
        *ret_values = (uint64_t)(first & 15u) << (first < 0x90);
        return true;
    }
    if (first < 0xc0)
        return skip_bytes(c, first & 31u);
    const struct shape s = shapes[first & 31u];
    uint64_t n = 0;
    if (first == 0xc1 || (size_t)(c->end - c->at) < s.len_size)
        return false;
    for (unsigned i = 0; i < s.len_size; i++)
        n = n << 8 | *c->at++;
    *ret_values = n * s.values;
    return skip_bytes(c, s.values ? 0 : n + s.extra + s.fixed);
}

static bool skip_value(struct cursor *c)
{
    uint64_t left = 1;
    while (left > 0) {
        uint64_t inside;
        if (!skip_head(c, &inside))
            return false;
        /* A value has a byte at least, so more of them than bytes cannot be; nor can it wrap. */
        left = left - 1 + inside;
        if (left > (uint64_t)(c->end - c->at))
            return false;
    }
    return true;
}

static bool enter_array(struct cursor *c, uint64_t *ret_count)
{
    const bool array =
        c->at < c->end && ((*c->at & 0xf0u) == 0x90 || *c->at == 0xdc || *c->at == 0xdd);
    return array && skip_head(c, ret_count);
}

/* Skip count traces and count their spans. */
static bool skip_traces(struct cursor *c, uint64_t count, uint64_t *ret_spans)
{
    *ret_spans = 0;
    for (uint64_t i = 0; i < count; i++) {
        struct cursor inside = *c;
        uint64_t spans;
        if (!enter_array(&inside, &spans) || !skip_value(c))
            return false;
        *ret_spans += spans;
    }
    return true;
}

static size_t put_array(unsigned char dst[5], uint64_t count)
{
    dst[0] = 0xdd;
    for (int i = 0; i < 4; i++)
        dst[1 + i] = (unsigned char)(count >> (8 * (3 - i)));
    return 5;
}

/* prefix, an array of count, and the bytes from begin to end. */
static struct wr_item *make(const struct weir_alloc *alloc, const struct wr_item *item,
                            struct weir_bytes prefix, uint64_t count, uint64_t spans,
                            const unsigned char *begin, const unsigned char *end)
{
    unsigned char head[5];
    const size_t head_len = put_array(head, count);
    const size_t body_len = (size_t)(end - begin);
    struct wr_buf b = {.alloc = alloc, .max = prefix.len + head_len + body_len};
    wr_buf_add(&b, prefix.ptr, prefix.len);
    wr_buf_add(&b, head, head_len);
    wr_buf_add(&b, begin, body_len);
    struct wr_item *const half =
        b.err ? NULL : wr_item_new(alloc, (struct weir_bytes){.ptr = b.ptr, .len = b.len});
    wr_buf_free(&b);
    if (!half)
        return NULL;
    half->version = item->version;
    half->low = item->low;
    half->computed = item->computed;
    half->traces = count;
    half->spans = spans;
    return half;
}

bool wr_split(const struct weir_alloc *alloc, const struct wr_item *item,
              struct wr_item *ret_halves[2])
{
    const unsigned char *const begin = (const unsigned char *)item->body;
    struct cursor c = {.at = begin, .end = begin + item->len};
    uint64_t count = 0;
    uint64_t spans[2];
    if (item->version == WEIR_TRACE_V05 &&
        (!enter_array(&c, &count) || count != 2 || !skip_value(&c)))
        return false;
    if (item->version == WEIR_TRACE_V1)
        return false;
    const struct weir_bytes prefix = {.ptr = item->body, .len = (size_t)(c.at - begin)};
    if (!enter_array(&c, &count) || count < 2)
        return false;
    const unsigned char *const first = c.at;
    if (!skip_traces(&c, count / 2, &spans[0]))
        return false;
    const unsigned char *const second = c.at;
    if (!skip_traces(&c, count - count / 2, &spans[1]) || c.at != c.end)
        return false;
    ret_halves[0] = make(alloc, item, prefix, count / 2, spans[0], first, second);
    ret_halves[1] = make(alloc, item, prefix, count - count / 2, spans[1], second, c.end);
    if (ret_halves[0] && ret_halves[1])
        return true;
    wr_item_free(alloc, ret_halves[0]);
    wr_item_free(alloc, ret_halves[1]);
    return false;
}
