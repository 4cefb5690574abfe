/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WR_DECODE_DD_H
#define WR_DECODE_DD_H
/*
 * dd: what Datadog's formats have in common: one walk over MessagePack, metric values, the kind
 * that travels as a tag, traces of spans.
 *
 * Readers take and return the position, as wire/mp_read.h does; NULL is a refusal noted in m.
 */
#include "decode/decoder.h"
#include "wire/mp_read.h"

struct wr_dd {
    struct wr_mp m;
    struct wr_walk walk;
    unsigned span_depth; /* v0.4 and v0.7: containers around a value of a span map */
};

/* One span at `at`; the sink is not called by it. */
typedef const uint8_t *wr_dd_span_fn(struct wr_dd *dd, const uint8_t *at);

/* A trace, its end told to the sink: an array of spans. */
const uint8_t *wr_dd_trace(struct wr_dd *dd, const uint8_t *at, wr_dd_span_fn *read_span);

/* Array of traces, each an array of spans. */
const uint8_t *wr_dd_traces(struct wr_dd *dd, const uint8_t *at, wr_dd_span_fn *read_span);

/* A span map of v0.4, which v0.7 has too. Before the first of a payload: forget. */
const uint8_t *wr_dd_v04_span(struct wr_dd *dd, const uint8_t *at);
void wr_dd_v04_forget(struct weir_decoder *d);

/* The common end of all decoders: at is NULL or where the payload's message ended. */
int wr_dd_end(struct wr_dd *dd, const uint8_t *at, struct weir_decode_result *ret_result,
              struct weir_where *ret_where);

/* span.kind as a word, in any case. */
enum weir_kind wr_dd_kind(const struct weir_value *value);

/* A number of any form; nil gives WEIR_VALUE_NONE. Errors: WEIR_EFORMAT for another type. */
const uint8_t *wr_dd_number_any(struct wr_mp *m, const uint8_t *at, struct weir_value *ret);

WR_INLINE const uint8_t *wr_dd_number(struct wr_mp *m, const uint8_t *at, struct weir_value *ret)
{
    const size_t left = (size_t)(m->end - at);
    if (WR_LIKELY(left >= 9 && at[0] == 0xcb)) {
        const uint64_t bits = wr_load64be(at + 1);
        *ret = (struct weir_value){.type = WEIR_VALUE_DOUBLE};
        memcpy(&ret->v.d, &bits, sizeof bits);
        return at + 9;
    }
    if (left >= 1 && at[0] < 0x80) {
        *ret = (struct weir_value){.type = WEIR_VALUE_INT, .v.i = at[0]};
        return at + 1;
    }
    return wr_dd_number_any(m, at, ret);
}

/*
 * What stands beside the spans (a header's env, a trace's origin): it fills only what the span
 * itself left empty.
 */
WR_INLINE void wr_dd_put_absent(const struct weir_tags *tags, const struct weir_tag_match *match,
                                struct weir_bytes text, struct weir_value *slots, uint64_t *present)
{
    for (; match; match = wr_tags_next(tags, match)) {
        const uint64_t bit = (uint64_t)1 << match->slot;
        if (!(match->where & WEIR_IN_DD_META) || (*present & bit))
            continue;
        *present |= bit;
        slots[match->slot] = wr_value_bytes(text.ptr, text.len);
        slots[match->slot].rank = match->rank;
    }
}

WR_INLINE void wr_dd_put(struct wr_dd *dd, const struct weir_tag_match *match, unsigned where,
                         const struct weir_value *value)
{
    struct weir_decoder *const d = dd->walk.decoder;
    wr_put(d->tags, match, where, value, d->slots, &d->span.present);
}
#endif
