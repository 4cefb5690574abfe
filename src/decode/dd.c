/* SPDX-License-Identifier: Apache-2.0 */
/* dd: see dd.h. */
#include "decode/dd.h"

/* Compare with a lower-case word. The bit that makes a letter lower-case turns no other byte into
 * a letter. */
static bool is_word(const char *text, const char *word, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if ((text[i] | 0x20) != word[i])
            return false;
    return true;
}

enum weir_kind wr_dd_kind(const struct weir_value *value)
{
    static const struct {
        char word[9];
        uint8_t len;
        uint8_t kind;
    } kinds[] = {
        {"server", 6, WEIR_KIND_SERVER},     {"client", 6, WEIR_KIND_CLIENT},
        {"internal", 8, WEIR_KIND_INTERNAL}, {"producer", 8, WEIR_KIND_PRODUCER},
        {"consumer", 8, WEIR_KIND_CONSUMER},
    };
    if (value->type != WEIR_VALUE_BYTES)
        return WEIR_KIND_NONE;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (value->len == kinds[i].len && is_word(value->v.ptr, kinds[i].word, kinds[i].len))
            return (enum weir_kind)kinds[i].kind;
    return WEIR_KIND_NONE;
}

const uint8_t *wr_dd_number_any(struct wr_mp *m, const uint8_t *at, struct weir_value *ret)
{
    struct wr_mp_item item;
    const uint8_t *const next = wr_mp_item(m, at, &item);
    if (!next)
        return NULL;
    *ret = (struct weir_value){.type = WEIR_VALUE_NONE};
    switch ((enum wr_mp_type)item.type) {
    case WR_MP_NIL:
        return next;
    case WR_MP_UINT:
        if (item.v.u > INT64_MAX) {
            ret->type = WEIR_VALUE_DOUBLE;
            ret->v.d = (double)item.v.u;
            return next;
        }
        ret->type = WEIR_VALUE_INT;
        ret->v.i = (int64_t)item.v.u;
        return next;
    case WR_MP_INT:
        ret->type = WEIR_VALUE_INT;
        ret->v.i = item.v.i;
        return next;
    case WR_MP_FLOAT:
        ret->type = WEIR_VALUE_DOUBLE;
        ret->v.d = item.v.d;
        return next;
    case WR_MP_BOOL:
    case WR_MP_STR:
    case WR_MP_BIN:
    case WR_MP_EXT:
    case WR_MP_ARRAY:
    case WR_MP_MAP:
    case WR_MP_BAD:
        break;
    }
    return wr_mp_fail(m, at, WEIR_EFORMAT, "a metric that is not a number");
}

static const uint8_t *read_spans(struct wr_dd *dd, const uint8_t *at, wr_dd_span_fn *read_span)
{
    struct weir_decoder *const d = dd->walk.decoder;
    uint32_t spans;
    at = wr_mp_array(&dd->m, at, &spans);
    if (!at)
        return NULL;
    for (uint32_t i = 0; i < spans; i++) {
        const uint8_t *const begin = at;
        wr_span_begin(d);
        at = read_span(dd, at);
        if (!at)
            return NULL;
        d->span.flags |= WEIR_SPAN_DD;
        if (d->span.present & (uint64_t)1 << WEIR_TAG_KIND)
            d->span.kind = (uint8_t)wr_dd_kind(&d->slots[WEIR_TAG_KIND]);
        d->span.raw_offset = (size_t)(begin - dd->m.begin);
        d->span.raw_bytes = (size_t)(at - begin);
        const int r = wr_span_end(&dd->walk);
        if (r != WEIR_OK)
            return wr_mp_fail(&dd->m, begin, r, NULL);
    }
    return at;
}

const uint8_t *wr_dd_trace(struct wr_dd *dd, const uint8_t *at, wr_dd_span_fn *read_span)
{
    const uint8_t *const begin = at;
    at = read_spans(dd, at, read_span);
    if (!at)
        return NULL;
    dd->walk.result.traces++;
    const int r = wr_trace_end(&dd->walk);
    if (r != WEIR_OK)
        return wr_mp_fail(&dd->m, begin, r, NULL);
    return at;
}

const uint8_t *wr_dd_traces(struct wr_dd *dd, const uint8_t *at, wr_dd_span_fn *read_span)
{
    uint32_t traces;
    at = wr_mp_array(&dd->m, at, &traces);
    for (uint32_t i = 0; at && i < traces; i++)
        at = wr_dd_trace(dd, at, read_span);
    return at;
}

int wr_dd_end(struct wr_dd *dd, const uint8_t *at, struct weir_decode_result *ret_result,
              struct weir_where *ret_where)
{
    struct wr_mp *const m = &dd->m;
    if (at && at != m->end)
        WR_IGNORE(wr_mp_fail(m, at, WEIR_EFORMAT, "bytes after the payload") != NULL);
    const size_t bad = m->bad ? (size_t)(m->bad - m->begin) : 0;
    return wr_walk_end(&dd->walk, m->err, bad, m->reason, ret_result, ret_where);
}
