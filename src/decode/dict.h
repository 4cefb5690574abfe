/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WR_DECODE_DICT_H
#define WR_DECODE_DICT_H
/*
 * dict: the strings of one payload by number, v0.5's dictionary and v1.0's streaming table.
 *
 * Idea: a key is a number, so its name is looked up among the wanted tags once a payload, when it
 * is first used as a key, and the result is kept beside the string.
 *
 * It grows as strings are really read, never by a claimed count, and has a bound: strings of one
 * byte would otherwise make 16 bytes of memory each. What a large payload left is given back at its
 * end.
 *
 * Threads: the decoder's. Memory: one array in the decoder, doubled, reused from call to call.
 */
#include "decode/decoder.h"
#include "wire/mp_read.h"

#define WR_DICT_MAX ((size_t)1 << 20) /* entries: 16 MiB */

/* Twice the room. Errors: WEIR_ENOMEM, the array as it was. */
int wr_dict_grow(struct weir_decoder *d);
/* At the end of a payload. */
void wr_dict_trim(struct weir_decoder *d);

/* The caller has seen to WR_DICT_MAX. Errors: WEIR_ENOMEM. */
WR_INLINE int wr_dict_add(struct weir_decoder *d, struct weir_bytes text)
{
    if (WR_UNLIKELY(d->dict_count == d->dict_cap) && wr_dict_grow(d) != WEIR_OK)
        return WEIR_ENOMEM;
    d->dict[d->dict_count++] = (struct wr_dict_entry){
        .ptr = text.ptr, .len = (uint32_t)text.len, .match = WR_DICT_UNKNOWN};
    return WEIR_OK;
}

/*
 * The number of a string in one of its frequent forms: one byte, 0xcc and one, 0xcd and two. Or at
 * itself. Which of them it is cannot be foreseen from span to span, so nothing branches on it.
 */
WR_INLINE const uint8_t *wr_dict_number(const struct wr_mp *m, const uint8_t *at, size_t *ret)
{
    if (WR_UNLIKELY((size_t)(m->end - at) < 4))
        return at;
    const uint32_t word = wr_load32be(at);
    const unsigned first = at[0];
    if (WR_UNLIKELY(first >= 0x80 && (first & 0xfe) != 0xcc))
        return at;
    const unsigned two = first == 0xcd;
    const unsigned more = (first >= 0x80) + two;
    *ret = word >> (24 - 8 * more) & (two ? 0xffffu : 0xffu);
    return at + 1 + more;
}

/* What a string means as the name of a tag; NULL: nothing. */
WR_INLINE const struct weir_tag_match *wr_dict_match(const struct weir_tags *tags,
                                                     struct wr_dict_entry *e)
{
    if (e->match == WR_DICT_UNKNOWN) {
        const struct weir_tag_match *const found = wr_tags_find(tags, e->ptr, e->len);
        e->match = found ? (uint32_t)(found - tags->matches) + WR_DICT_MATCH : WR_DICT_UNWANTED;
    }
    return e->match == WR_DICT_UNWANTED ? NULL : &tags->matches[e->match - WR_DICT_MATCH];
}
#endif
