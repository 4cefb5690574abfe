/* SPDX-License-Identifier: Apache-2.0 */
/* tags and decoders: every allocation refused in turn; the decoder reads on when there is memory.
 */
#include "t.h"

#include <string.h>
#include <weir/decode.h>

/* Own names, several for one slot, and one name for two slots. */
static int make_tags(const struct weir_alloc *alloc, struct weir_tags **ret_tags)
{
    const struct weir_tag_name names[] = {
        {.name = "peer.service", .where = WEIR_IN_DD_META, .slot = WEIR_TAG_FIXED, .rank = 0},
        {.name = "net.peer.name", .where = WEIR_IN_DD_META, .slot = WEIR_TAG_FIXED, .rank = 1},
        {.name = "version", .where = WEIR_IN_DD_META, .slot = WEIR_TAG_FIXED + 1, .rank = 0},
        {.name = "peer.service", .where = WEIR_IN_DD_META, .slot = WEIR_TAG_FIXED + 2, .rank = 0},
    };
    return weir_tags_new(alloc, names, sizeof names / sizeof *names, ret_tags);
}

static int count_span(void *ctx, const struct weir_span *span)
{
    (void)span;
    (*(size_t *)ctx)++;
    return WEIR_OK;
}

static int count_nothing(void *ctx)
{
    (void)ctx;
    return WEIR_OK;
}

/* A v0.5 body of one span whose dictionary has count strings, read from its last ones. */
static size_t put_v05(uint8_t *dst, uint32_t count)
{
    uint8_t *at = dst;
    *at++ = 0x92;
    *at++ = 0xdd;
    for (int shift = 24; shift >= 0; shift -= 8)
        *at++ = (uint8_t)(count >> shift);
    for (uint32_t i = 0; i < count; i++) {
        *at++ = 0xa2;
        *at++ = (uint8_t)('a' + i / 26 % 26);
        *at++ = (uint8_t)('a' + i % 26);
    }
    const uint8_t open[] = {0x91, 0x91, 0x9c};
    memcpy(at, open, sizeof open);
    at += sizeof open;
    for (uint32_t i = 1; i <= 3; i++) { /* service, name, resource */
        *at++ = 0xcd;
        *at++ = (uint8_t)((count - i) >> 8);
        *at++ = (uint8_t)(count - i);
    }
    const uint8_t rest[] = {1, 2, 0, 0, 5, 0, 0x80, 0x80, 0};
    memcpy(at, rest, sizeof rest);
    return (size_t)(at + sizeof rest - dst);
}

/* A v1.0 body of one span whose header has count strings, read by the numbers of the last ones. */
static size_t put_v1(uint8_t *dst, uint32_t count)
{
    uint8_t *at = dst;
    *at++ = 0x82;
    *at++ = 0x01;
    *at++ = 0xdd;
    for (int shift = 24; shift >= 0; shift -= 8)
        *at++ = (uint8_t)(count >> shift);
    for (uint32_t i = 0; i < count; i++) {
        *at++ = 0xa2;
        *at++ = (uint8_t)('a' + i / 26 % 26);
        *at++ = (uint8_t)('a' + i % 26);
    }
    const uint8_t open[] = {0x0b, 0x91, 0x81, 0x04, 0x91, 0x83};
    memcpy(at, open, sizeof open);
    at += sizeof open;
    for (uint32_t i = 1; i <= 3; i++) { /* service, name, resource */
        *at++ = (uint8_t)i;
        *at++ = 0xcd;
        *at++ = (uint8_t)((count + 1 - i) >> 8);
        *at++ = (uint8_t)(count + 1 - i);
    }
    return (size_t)(at - dst);
}

struct growing {
    size_t (*put)(uint8_t *dst, uint32_t count);
    int (*read)(struct weir_decoder *d, const uint8_t *body, size_t n,
                const struct weir_span_sink *sink, struct weir_where *ret_where);
    uint8_t *body;
};

static int read_v05(struct weir_decoder *d, const uint8_t *body, size_t n,
                    const struct weir_span_sink *sink, struct weir_where *ret_where)
{
    return weir_decode_dd_v05(d, body, n, sink, NULL, ret_where);
}

static int read_v1(struct weir_decoder *d, const uint8_t *body, size_t n,
                   const struct weir_span_sink *sink, struct weir_where *ret_where)
{
    return weir_decode_dd_v1(d, body, n, sink, NULL, ret_where);
}

/* The table of strings grows from call to call. A refused growth costs that body alone: the same
 * body is read whole once there is memory, and one that needs no growth is read meanwhile. */
static int grow_dictionary(const struct weir_alloc *alloc, void *ctx)
{
    const struct growing *const g = ctx;
    struct weir_tags *tags = NULL;
    struct weir_decoder *decoder = NULL;
    int r = make_tags(alloc, &tags);
    if (r == WEIR_OK)
        r = weir_decoder_new(alloc, tags, &decoder);
    int first = r;
    for (uint32_t count = 4; count <= 4096 && r == WEIR_OK; count *= 4) {
        const size_t n = g->put(g->body, count);
        size_t spans = 0;
        const struct weir_span_sink sink = {
            .ctx = &spans, .span = count_span, .trace_end = count_nothing};
        struct weir_where where = {.offset = 77};
        const int e = g->read(decoder, g->body, n, &sink, &where);
        if (e != WEIR_OK) {
            T_ERR(e, WEIR_ENOMEM);
            T_EQ_U64(where.offset, 77); /* the body is not to blame */
            T_EQ_U64(spans, 0);
            first = e;
            continue;
        }
        T_EQ_U64(spans, 1);
    }
    weir_decoder_free(decoder);
    weir_tags_free(tags);
    return first;
}

TEST(a_dictionary_that_cannot_grow_costs_its_body_alone)
{
    static uint8_t body[64 + 4096 * 3];
    struct growing g = {.put = put_v05, .read = read_v05, .body = body};
    t_each_oom(grow_dictionary, &g);
    g = (struct growing){.put = put_v1, .read = read_v1, .body = body};
    t_each_oom(grow_dictionary, &g);
}

/* Neither of these ever asks: the only allocations are those of the tags and the decoder. */
static int read_without_memory(const struct weir_alloc *alloc, void *ctx)
{
    static const uint8_t v04[] = {0x91, 0x91, 0x82, 0xa7, 's', 'e', 'r', 'v', 'i',  'c',
                                  'e',  0xa1, 'w',  0xa4, 'n', 'a', 'm', 'e', 0xa1, 'n'};
    static const uint8_t v07[] = {0x81, 0xa6, 'c', 'h', 'u', 'n',  'k', 's',  0x91,
                                  0x81, 0xa5, 's', 'p', 'a', 'n',  's', 0x91, 0x81,
                                  0xa4, 'n',  'a', 'm', 'e', 0xa1, 'n'};
    static const uint8_t otlp[] = {0x0a, 0x02, 0x12, 0x00}; /* a resource with an empty scope */
    struct weir_tags *tags = NULL;
    struct weir_decoder *decoder = NULL;
    (void)ctx;
    int r = make_tags(alloc, &tags);
    if (r == WEIR_OK)
        r = weir_decoder_new(alloc, tags, &decoder);
    if (r == WEIR_OK) {
        const struct t_heap *const heap = alloc->ctx;
        const long seen = heap->seen;
        size_t spans = 0;
        const struct weir_span_sink sink = {
            .ctx = &spans, .span = count_span, .trace_end = count_nothing};
        T_OK(weir_decode_dd_v04(decoder, v04, sizeof v04, &sink, NULL, NULL));
        T_EQ_U64(spans, 1);
        T_OK(weir_decode_dd_v07(decoder, v07, sizeof v07, &sink, NULL, NULL));
        T_EQ_U64(spans, 2);
        T_OK(weir_decode_otlp_traces(decoder, otlp, sizeof otlp, &sink, NULL, NULL));
        T_EQ_I64(heap->seen, seen);
    }
    weir_decoder_free(decoder);
    weir_tags_free(tags);
    return r;
}

TEST(maps_and_messages_are_read_without_memory)
{
    t_each_oom(read_without_memory, NULL);
}
