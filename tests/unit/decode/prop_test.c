/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prop: golden bodies with random bytes changed, cut or moved, for a bounded number of runs from a
 * printed seed. A decoder may say anything, but: it stays within the bytes (guard page), says the
 * same each time, also through a decoder that has seen other payloads, and every string it hands
 * over lies in the payload or is one of v1.0's words.
 */
#include "support.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#define RUNS 4000u
#define SECONDS 2

struct within {
    const uint8_t *begin;
    const uint8_t *end;
    uint64_t digest;
};

/* What v1.0 has as a number or a boolean is static text. */
static bool is_word(const char *ptr, size_t len)
{
    static const char *const words[] = {"internal", "server", "client", "producer",
                                        "consumer", "true",   "false"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strlen(words[i]) == len && memcmp(words[i], ptr, len) == 0)
            return true;
    return false;
}

static void check_within(struct within *w, const char *ptr, size_t len)
{
    if (!ptr || len == 0)
        return;
    const uint8_t *const p = (const uint8_t *)ptr;
    if (!is_word(ptr, len))
        T_TRUE(p >= w->begin && p <= w->end && len <= (size_t)(w->end - p));
    for (size_t i = 0; i < len; i++)
        w->digest = (w->digest ^ p[i]) * UINT64_C(0x100000001b3);
}

static int see_span(void *ctx, const struct weir_span *s)
{
    struct within *const w = ctx;
    check_within(w, s->service.ptr, s->service.len);
    check_within(w, s->name.ptr, s->name.len);
    check_within(w, s->resource.ptr, s->resource.len);
    check_within(w, s->type.ptr, s->type.len);
    T_TRUE(s->kind <= WEIR_KIND_CONSUMER);
    T_TRUE(s->raw_offset + s->raw_bytes <= (size_t)(w->end - w->begin));
    for (unsigned i = 0; i < WEIR_TAG_SLOTS_MAX; i++) {
        if (!(s->present >> i & 1))
            continue;
        T_TRUE(s->slots[i].type > WEIR_VALUE_NONE && s->slots[i].type <= WEIR_VALUE_BOOL);
        if (s->slots[i].type == WEIR_VALUE_BYTES)
            check_within(w, s->slots[i].v.ptr, s->slots[i].len);
    }
    w->digest = (w->digest ^ s->present ^ s->trace_id ^ (uint64_t)s->start_ns) * 31;
    return WEIR_OK;
}

static int see_trace_end(void *ctx)
{
    struct within *const w = ctx;
    w->digest = w->digest * 31 + 7;
    return WEIR_OK;
}

static size_t mutate(struct t_rng *rng, uint8_t *bytes, size_t n)
{
    const uint64_t edits = 1 + t_below(rng, 4);
    for (uint64_t i = 0; i < edits && n > 1; i++) {
        const size_t at = t_below(rng, n);
        switch (t_below(rng, 5)) {
        case 0:
            bytes[at] = (uint8_t)t_next(rng);
            break;
        case 1:
            bytes[at] ^= (uint8_t)(1u << t_below(rng, 8));
            break;
        case 2:
            n = at + 1;
            break;
        case 3: /* remove a byte */
            memmove(bytes + at, bytes + at + 1, n - at - 1);
            n--;
            break;
        default: { /* copy a piece elsewhere */
            const size_t from = t_below(rng, n);
            const size_t most = n - (from > at ? from : at);
            memmove(bytes + at, bytes + from, t_below(rng, most < 64 ? most : 64));
            break;
        }
        }
    }
    return n;
}

static uint64_t digest_of(struct weir_decoder *decoder, t_decode_fn *decode, const uint8_t *bytes,
                          size_t n, int *ret_err)
{
    struct within w = {.begin = bytes, .end = bytes + n, .digest = 1};
    const struct weir_span_sink sink = {.ctx = &w, .span = see_span, .trace_end = see_trace_end};
    struct weir_where where = {.offset = 0, .reason = NULL};
    *ret_err = decode(decoder, bytes, n, &sink, NULL, &where);
    T_TRUE(*ret_err == WEIR_OK || *ret_err == WEIR_EFORMAT || *ret_err == WEIR_ETRUNCATED);
    T_TRUE((*ret_err == WEIR_OK) == (where.reason == NULL) && where.offset <= n);
    return w.digest * 31 + where.offset;
}

TEST(changed_bodies_are_read_within_their_bytes_and_the_same_each_time)
{
    static const struct {
        const char *name;
        t_decode_fn *decode;
    } seeds[] = {{"webflux.v04.hex", weir_decode_dd_v04},
                 {"greeting.v05.hex", weir_decode_dd_v05},
                 {"trace.otlp.hex", weir_decode_otlp_traces},
                 {"py-v04-12.v07.hex", weir_decode_dd_v07},
                 {"py-v04-12.v1.hex", weir_decode_dd_v1},
                 {"sample.v1.hex", weir_decode_dd_v1},
                 {"dd-go-01.v1.hex", weir_decode_dd_v1},
                 {"py-stats-20.v05.hex", weir_decode_dd_v05},
                 {"py-v04-12.v04.hex", weir_decode_dd_v04},
                 {"pyotel-proto-08.otlp.hex", weir_decode_otlp_traces}};
    struct t_rng rng = t_rng(t_seed());
    struct weir_tags *const tags = t_tags();
    struct weir_decoder *used = NULL;
    T_OK(weir_decoder_new(NULL, tags, &used));
    struct t_buf bodies[sizeof seeds / sizeof *seeds];
    for (size_t i = 0; i < sizeof seeds / sizeof *seeds; i++)
        bodies[i] = t_golden(seeds[i].name);
    const time_t stop = time(NULL) + SECONDS;
    size_t refused = 0;
    size_t runs = 0;
    for (; runs < RUNS && time(NULL) < stop; runs++) {
        const size_t which = t_below(&rng, sizeof seeds / sizeof *seeds);
        uint8_t *const bytes = malloc(bodies[which].len);
        T_TRUE(bytes != NULL);
        memcpy(bytes, bodies[which].at, bodies[which].len);
        const size_t n = mutate(&rng, bytes, bodies[which].len);
        struct t_guard g = t_guard_new(bytes, n);
        struct weir_decoder *fresh = NULL;
        int err[2];
        T_OK(weir_decoder_new(NULL, tags, &fresh));
        const uint64_t first = digest_of(used, seeds[which].decode, g.ptr, n, &err[0]);
        const uint64_t second = digest_of(fresh, seeds[which].decode, g.ptr, n, &err[1]);
        T_EQ_U64(first, second);
        T_EQ_I64(err[0], err[1]);
        refused += err[0] != WEIR_OK;
        weir_decoder_free(fresh);
        t_guard_free(&g);
        free(bytes);
    }
    for (size_t i = 0; i < sizeof seeds / sizeof *seeds; i++)
        t_buf_free(&bodies[i]);
    weir_decoder_free(used);
    weir_tags_free(tags);
    print_message("%zu runs, %zu refused\n", runs, refused);
    T_TRUE(refused > 0 && refused < runs);
}
