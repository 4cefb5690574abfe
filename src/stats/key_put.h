/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WR_STATS_KEY_PUT_H
#define WR_STATS_KEY_PUT_H
/* key_put: how a field gets into a key, for key.c and key_client.c. Threads: any. */
#include "base/bytes.h"
#include "stats/key.h"
#include "stats/text.h"

/* Enough for any number as text. */
enum { WR_NUMBER_MAX = 24 };

struct wr_key_writer {
    char *at;
    uint64_t present;
    struct wr_key_notes *notes;
};

/* The fields that are present, and by which schema, where that matters: the fixed ones are the same
 * in all. */
static inline uint64_t wr_key_marked(const struct wr_schema *schema, uint64_t present)
{
    return present | (present >> WR_FIELD_FIXED ? schema->mark : 0);
}

/* Repaired or cut, at dst; returns how many bytes. */
size_t wr_key_put_slow(struct wr_key_notes *notes, char *dst, const char *text, size_t len,
                       size_t limit);
void wr_key_put_number(struct wr_key_writer *w, enum wr_field field, int64_t v);
/* Any value that is not text: whole doubles as integers, others not at all (no text is exact and
 * short at once, and no label of the table is a fraction). */
void wr_key_put_other(struct wr_key_writer *w, enum wr_field field, const struct weir_value *v);
/* A number in a slot, or what parse makes of its text; -1: neither. */
int wr_key_code(const struct weir_value *v, int (*parse)(const char *, size_t));
/* Of any spelling. */
void wr_key_put_http_status_slow(struct wr_key_writer *w, enum wr_field field,
                                 const struct weir_value *v);

WR_INLINE void wr_key_put(struct wr_key_writer *w, enum wr_field field, const char *text,
                          size_t len, size_t limit)
{
    if (len == 0)
        return;
    size_t written = len;
    if (WR_UNLIKELY(len > limit) || WR_UNLIKELY(wr_copy_ascii(w->at + 2, text, len) != 0)) {
        written = wr_key_put_slow(w->notes, w->at + 2, text, len, limit);
        if (written == 0)
            return;
    }
    wr_store16le(w->at, (uint16_t)written);
    w->at += 2 + written;
    w->present |= UINT64_C(1) << field;
}

WR_INLINE void wr_key_put_bytes(struct wr_key_writer *w, enum wr_field field, struct weir_bytes b,
                                size_t limit)
{
    wr_key_put(w, field, b.ptr, b.len, limit);
}

/* By a function that is called with a copy of the writer: its address is known to nobody then, and
 * it stays in registers. */
WR_INLINE void wr_key_put_aside(struct wr_key_writer *w, enum wr_field field,
                                const struct weir_value *v,
                                void (*put)(struct wr_key_writer *, enum wr_field,
                                            const struct weir_value *))
{
    struct wr_key_writer aside = *w;
    put(&aside, field, v);
    *w = aside;
}

WR_INLINE void wr_key_put_value(struct wr_key_writer *w, enum wr_field field,
                                const struct weir_value *v, size_t limit)
{
    if (WR_LIKELY(v->type == WEIR_VALUE_BYTES))
        wr_key_put(w, field, v->v.ptr, v->len, limit);
    else
        wr_key_put_aside(w, field, v, wr_key_put_other);
}

static inline const struct weir_value *wr_key_slot(const struct weir_span *span, size_t slot)
{
    return span->present >> slot & 1 ? &span->slots[slot] : NULL;
}

WR_INLINE void wr_key_put_slot(struct wr_key_writer *w, enum wr_field field,
                               const struct weir_span *span, size_t slot, size_t limit)
{
    const struct weir_value *const v = wr_key_slot(span, slot);
    if (v)
        wr_key_put_value(w, field, v, limit);
}

/* Three digits that are a status are their own one spelling. */
WR_INLINE void wr_key_put_http_status(struct wr_key_writer *w, const struct weir_span *span)
{
    const struct weir_value *const v = wr_key_slot(span, WEIR_TAG_HTTP_STATUS);
    if (!v)
        return;
    if (WR_LIKELY(v->type == WEIR_VALUE_BYTES && v->len == 3)) {
        const char *const text = v->v.ptr;
        const unsigned hundreds = (unsigned char)text[0] - (unsigned)'1';
        const unsigned tens = (unsigned char)text[1] - (unsigned)'0';
        const unsigned ones = (unsigned char)text[2] - (unsigned)'0';
        if (WR_LIKELY(hundreds < 5 && tens < 10 && ones < 10)) {
            wr_store16le(w->at, 3);
            memcpy(w->at + 2, text, 3);
            w->at += 2 + 3;
            w->present |= UINT64_C(1) << WR_FIELD_HTTP_STATUS;
            return;
        }
    }
    wr_key_put_aside(w, WR_FIELD_HTTP_STATUS, v, wr_key_put_http_status_slow);
}

#endif
