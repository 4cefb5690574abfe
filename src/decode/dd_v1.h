/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WR_DECODE_DD_V1_H
#define WR_DECODE_DD_V1_H
/*
 * dd_v1: what the files of the v1.0 decoder share: one walk, its strings and plain values. See
 * dd_v1.c for the format.
 *
 *   dd_v1_strings.c     the streaming table, members nobody knows
 *   dd_v1_attributes.c  attributes, links, events
 *   dd_v1_kept.c        spans that wait
 *   dd_v1.c             spans, chunks, the payload
 *
 * Readers take and return the position, as wire/mp_read.h does; what passes reads only for the
 * numbers that strings take. depth: the containers around the item.
 */
#include "decode/dd.h"
#include "decode/dict.h"

/* Containers around a value: of the payload, of a chunk, of a span. */
enum { WR_V1_PAYLOAD_DEPTH = 1, WR_V1_CHUNK_DEPTH = 3, WR_V1_SPAN_DEPTH = 5 };

struct wr_v1 {
    struct wr_dd dd;
    struct weir_bytes env; /* of the payload */
    /* What the members of a span are as attributes. */
    const struct weir_tag_match *env_match;
    const struct weir_tag_match *version_match;
    const struct weir_tag_match *component_match;
    const struct weir_tag_match *kind_match;
    const struct weir_tag_match *origin_match;
    bool again;      /* read before: the table has all strings */
    bool hands_over; /* spans go to the sink */
    bool saw_chunks;
};

/* dd_v1_strings.c. Every form of a string; *ret_entry is NULL where it has no number. */
const uint8_t *wr_v1_string_any(struct wr_v1 *v, const uint8_t *at, struct weir_bytes *ret,
                                struct wr_dict_entry **ret_entry);
/* A text takes the next number; next is where it ends. */
const uint8_t *wr_v1_add_text(struct wr_v1 *v, const uint8_t *at, const uint8_t *next,
                              struct weir_bytes text);
const uint8_t *wr_v1_pass_string(struct wr_v1 *v, const uint8_t *at);
const uint8_t *wr_v1_pass_unknown(struct wr_v1 *v, const uint8_t *at, unsigned depth);
const uint8_t *wr_v1_bool_any(struct wr_v1 *v, const uint8_t *at, bool *ret);
const uint8_t *wr_v1_bytes(struct wr_v1 *v, const uint8_t *at, struct weir_bytes *ret);
const uint8_t *wr_v1_pass_u64(struct wr_v1 *v, const uint8_t *at);
const uint8_t *wr_v1_pass_bytes(struct wr_v1 *v, const uint8_t *at);

/*
 * dd_v1_kept.c. Spans that wait, in a row: keep adds one, false where there is no room; take gets
 * the one at *at and moves it to the next. clear forgets all and keeps the room.
 */
bool wr_v1_keep(struct weir_decoder *d, const struct wr_held *h);
void wr_v1_take_kept(const struct weir_decoder *d, size_t *at, struct wr_held *ret);
static inline void wr_v1_clear_kept(struct weir_decoder *d)
{
    d->kept_len = 0;
}

/* dd_v1_attributes.c. Into the slots that they fill; and read for their strings only. */
const uint8_t *wr_v1_attributes(struct wr_v1 *v, const uint8_t *at, struct wr_held *h);
const uint8_t *wr_v1_pass_attributes(struct wr_v1 *v, const uint8_t *at, unsigned depth);
const uint8_t *wr_v1_pass_links(struct wr_v1 *v, const uint8_t *at);
const uint8_t *wr_v1_pass_events(struct wr_v1 *v, const uint8_t *at);

WR_INLINE const uint8_t *wr_v1_string(struct wr_v1 *v, const uint8_t *at, struct weir_bytes *ret)
{
    const struct weir_decoder *const d = v->dd.walk.decoder;
    size_t number;
    const uint8_t *const next = wr_dict_number(&v->dd.m, at, &number);
    if (WR_LIKELY(next != at && number < d->dict_count)) {
        *ret = (struct weir_bytes){.ptr = d->dict[number].ptr, .len = d->dict[number].len};
        return next;
    }
    struct wr_dict_entry *e;
    return wr_v1_string_any(v, at, ret, &e);
}

/* The key of a member, or the type of an attribute: nearly always one byte. */
WR_INLINE const uint8_t *wr_v1_key(struct wr_v1 *v, const uint8_t *at, uint64_t *ret)
{
    if (WR_LIKELY(at < v->dd.m.end && at[0] < 0x80)) {
        *ret = at[0];
        return at + 1;
    }
    return wr_mp_u64_any(&v->dd.m, at, ret);
}

static inline bool wr_v1_is_nil(const struct wr_mp *m, const uint8_t *at)
{
    return at < m->end && at[0] == 0xc0;
}

/* nil is an array of nothing. */
WR_INLINE const uint8_t *wr_v1_array(struct wr_v1 *v, const uint8_t *at, uint32_t *ret)
{
    const size_t left = (size_t)(v->dd.m.end - at);
    if (left > 3 && at[0] == 0xdc) { /* more than five attributes */
        *ret = wr_load16be(at + 1);
        if (WR_LIKELY(*ret <= left - 3))
            return at + 3;
    }
    if (WR_UNLIKELY(wr_v1_is_nil(&v->dd.m, at))) {
        *ret = 0;
        return at + 1;
    }
    return wr_mp_array(&v->dd.m, at, ret);
}

/* Tracers write a span's 16 members in the wider form. */
WR_INLINE const uint8_t *wr_v1_map(struct wr_v1 *v, const uint8_t *at, uint32_t *ret)
{
    const size_t left = (size_t)(v->dd.m.end - at);
    if (left > 3 && at[0] == 0xde) {
        *ret = wr_load16be(at + 1);
        if (WR_LIKELY(2 * (size_t)*ret <= left - 3))
            return at + 3;
    }
    return wr_mp_map(&v->dd.m, at, ret);
}

WR_INLINE const uint8_t *wr_v1_bool(struct wr_v1 *v, const uint8_t *at, bool *ret)
{
    if (WR_LIKELY(at < v->dd.m.end && (at[0] & 0xfe) == 0xc2)) {
        *ret = at[0] & 1;
        return at + 1;
    }
    return wr_v1_bool_any(v, at, ret);
}

#endif
