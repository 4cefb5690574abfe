/* SPDX-License-Identifier: Apache-2.0 */
/*
 * encoder: the public face of trace/, and what both versions have in common: options, bounds,
 * undoing a trace that failed, putting the payload's head before the body. See weir/trace.h.
 *
 * The counts in a payload's head are known last. v0.4 keeps a gap before the body and writes the
 * head right-aligned into it. v0.5 keeps its gap before the dictionary and appends the traces
 * behind the strings when the payload is asked for; the next call cuts them off again.
 */
#include "trace/encoder.h"

#define DEFAULT_MAX_BYTES ((size_t)8 << 20)

/* The address differs between processes where the loader randomises it, and the output does not
 * depend on the seed: enough to keep strangers from choosing colliding strings. */
static WR_WRAPS uint64_t seed_of(const struct weir_trace_encoder *e)
{
    return (uint64_t)(uintptr_t)e * UINT64_C(0x9E3779B97F4A7C15);
}

static int read_opts(const struct weir_trace_opts *given, struct weir_trace_opts *ret)
{
    struct weir_trace_opts o = {.struct_size = sizeof o};
    if (given) {
        if (given->struct_size < sizeof given->struct_size)
            return WEIR_EINVAL;
        /* A caller built with an older, shorter struct left the rest at its default. */
        memcpy(&o, given, given->struct_size < sizeof o ? given->struct_size : sizeof o);
    }
    if (o.version == 0)
        o.version = WEIR_TRACE_V04;
    if (o.max_bytes == 0)
        o.max_bytes = DEFAULT_MAX_BYTES;
    if (o.version != WEIR_TRACE_V04 && o.version != WEIR_TRACE_V05)
        return WEIR_EINVAL;
    if (o.max_bytes > SIZE_MAX / 8) /* so that sums of a few lengths under it cannot overflow */
        return WEIR_EINVAL;
    *ret = o;
    return WEIR_OK;
}

int weir_trace_encoder_new(const struct weir_trace_opts *opts,
                           struct weir_trace_encoder **ret_encoder)
{
    if (!ret_encoder)
        return WEIR_EINVAL;
    struct weir_trace_opts o;
    const int err = read_opts(opts, &o);
    if (err)
        return err;
    const struct weir_alloc alloc = wr_alloc_or_default(&o.alloc);
    struct weir_trace_encoder *const e = wr_alloc_zero(&alloc, sizeof *e);
    if (!e)
        return WEIR_ENOMEM;
    e->alloc = alloc;
    e->version = o.version;
    e->max_bytes = o.max_bytes;
    wr_out_init(&e->body, &alloc, o.max_bytes + WR_TRACE_SLACK);
    wr_trace_dict_init(&e->dict, &alloc, o.max_bytes + WR_TRACE_SLACK, seed_of(e));
    wr_trace_unique_init(&e->unique, &alloc, seed_of(e));
    *ret_encoder = e;
    return WEIR_OK;
}

void weir_trace_encoder_free(struct weir_trace_encoder *e)
{
    if (!e)
        return;
    wr_out_done(&e->body);
    wr_trace_dict_done(&e->dict);
    wr_trace_unique_done(&e->unique);
    const struct weir_alloc alloc = e->alloc;
    wr_free(&alloc, e, sizeof *e);
}

char *wr_trace_raw_metric(char *at, const struct weir_trace_metric *m)
{
    if (!m->integral)
        return wr_mp_raw_double(at, m->value);
    if (m->value < 0x1p63)
        return wr_mp_raw_int(at, (int64_t)m->value);
    /* [2^63, 2^64): exact, as doubles here are multiples of 2^11 */
    return wr_mp_raw_uint(at,
                          (UINT64_C(1) << 63) + (uint64_t)wr_i64_from_double(m->value - 0x1p63));
}

static bool metric_is_valid(const struct weir_trace_metric *m)
{
    if (!m->integral)
        return true;
    if (m->value >= -0x1p63 && m->value < 0x1p63) /* nearly always; and no call of libm's trunc */
        return (double)(int64_t)m->value == m->value;
    return m->value >= 0x1p63 && m->value < 0x1p64; /* doubles there are integers */
}

static inline int check_string(const struct weir_trace_encoder *e, struct weir_bytes s)
{
    if (WR_UNLIKELY(s.len > 0 && !s.ptr))
        return WEIR_EINVAL;
    if (WR_LIKELY(s.len <= e->max_bytes && s.len <= UINT32_MAX))
        return WEIR_OK;
    return s.len > UINT32_MAX ? WEIR_ERANGE : WEIR_EFULL;
}

static int check_tags(const struct weir_trace_encoder *e, const struct weir_trace_span *s)
{
    for (size_t i = 0; i < s->meta_count; i++) {
        int err = check_string(e, s->meta[i].key);
        if (!err)
            err = check_string(e, s->meta[i].value);
        if (err)
            return err;
    }
    for (size_t i = 0; i < s->metric_count; i++) {
        const int err = check_string(e, s->metrics[i].key);
        if (err)
            return err;
        if (!metric_is_valid(&s->metrics[i]))
            return WEIR_EINVAL;
    }
    return WEIR_OK;
}

static int check_span(const struct weir_trace_encoder *e, const struct weir_trace_span *s)
{
    int err = check_string(e, s->service);
    if (!err)
        err = check_string(e, s->name);
    if (!err)
        err = check_string(e, s->resource);
    if (!err)
        err = check_string(e, s->type);
    if (err)
        return err;
    if ((s->meta_count && !s->meta) || (s->metric_count && !s->metrics))
        return WEIR_EINVAL;
    if (s->meta_count > UINT32_MAX || s->metric_count > UINT32_MAX)
        return WEIR_ERANGE;
    return check_tags(e, s);
}

static size_t count_bytes(uint64_t count)
{
    char b[WR_MP_HEAD_MAX];
    return (size_t)(wr_mp_raw_array(b, (uint32_t)count) - b);
}

/* Cut off what weir_trace_payload appended, and put the gap where none is. */
static void settle(struct weir_trace_encoder *e)
{
    if (e->version == WEIR_TRACE_V05) {
        wr_out_rewind(&e->dict.text, wr_trace_dict_text_end(&e->dict));
    } else if (e->body.len == 0) {
        static const char gap[WR_MP_HEAD_MAX] = {0};
        wr_out_put(&e->body, gap, sizeof gap);
    }
}

/* Of the payload as it stands, with traces as the count. */
static size_t payload_bytes(const struct weir_trace_encoder *e, uint64_t traces)
{
    if (e->version == WEIR_TRACE_V04)
        return count_bytes(traces) + e->body.len - WR_MP_HEAD_MAX;
    const size_t end = wr_trace_dict_text_end(&e->dict);
    const size_t strings = end > WR_TRACE_DICT_GAP ? end - WR_TRACE_DICT_GAP : 0;
    return 1 + count_bytes(e->dict.count) + strings + count_bytes(traces) + e->body.len;
}

static int add_spans(struct weir_trace_encoder *e, const struct weir_trace_span *spans,
                     size_t count)
{
    wr_mp_put_array(&e->body, count);
    for (size_t i = 0; i < count && !e->body.err; i++) {
        int err = check_span(e, &spans[i]);
        if (!err)
            err = e->version == WEIR_TRACE_V05 ? wr_trace_span_v05(e, &spans[i])
                                               : wr_trace_span_v04(e, &spans[i]);
        if (err)
            return err;
    }
    if (e->body.err)
        return e->body.err;
    return payload_bytes(e, e->traces + 1) > e->max_bytes ? WEIR_EFULL : WEIR_OK;
}

int weir_trace_add(struct weir_trace_encoder *e, const struct weir_trace_span *spans, size_t count)
{
    if (!e || (count && !spans))
        return WEIR_EINVAL;
    if (count > UINT32_MAX || e->traces >= UINT32_MAX)
        return WEIR_ERANGE;
    settle(e);
    const size_t body_mark = e->body.err ? 0 : e->body.len;
    const size_t dict_mark = e->dict.count;
    const int err = add_spans(e, spans, count);
    if (err) {
        wr_out_rewind(&e->body, body_mark);
        wr_trace_dict_rewind(&e->dict, dict_mark);
        return err;
    }
    e->traces++;
    e->spans += count;
    return WEIR_OK;
}

uint64_t weir_trace_count(const struct weir_trace_encoder *e)
{
    return e->traces;
}

uint64_t weir_trace_span_count(const struct weir_trace_encoder *e)
{
    return e->spans;
}

static struct weir_bytes payload_v04(struct weir_trace_encoder *e)
{
    char head[WR_MP_HEAD_MAX];
    const size_t n = (size_t)(wr_mp_raw_array(head, (uint32_t)e->traces) - head);
    char *const at = e->body.ptr + WR_MP_HEAD_MAX - n;
    memcpy(at, head, n);
    return (struct weir_bytes){.ptr = at, .len = e->body.len - WR_MP_HEAD_MAX + n};
}

static struct weir_bytes payload_v05(struct weir_trace_encoder *e)
{
    struct wr_out *const text = &e->dict.text;
    if (text->len == 0) {
        static const char gap[WR_TRACE_DICT_GAP] = {0};
        wr_out_put(text, gap, sizeof gap);
    }
    wr_mp_put_array(text, (size_t)e->traces);
    wr_out_put(text, e->body.ptr, e->body.len);
    if (text->err)
        return (struct weir_bytes){.ptr = NULL, .len = 0};
    char head[WR_TRACE_DICT_GAP];
    char *const from = wr_mp_raw_array(head, 2);
    const size_t n = (size_t)(wr_mp_raw_array(from, (uint32_t)e->dict.count) - head);
    char *const at = text->ptr + WR_TRACE_DICT_GAP - n;
    memcpy(at, head, n);
    return (struct weir_bytes){.ptr = at, .len = text->len - WR_TRACE_DICT_GAP + n};
}

int weir_trace_payload(struct weir_trace_encoder *e, struct weir_bytes *ret_payload)
{
    if (!e || !ret_payload)
        return WEIR_EINVAL;
    settle(e);
    struct wr_out *const out = e->version == WEIR_TRACE_V05 ? &e->dict.text : &e->body;
    const struct weir_bytes payload = e->body.err                    ? (struct weir_bytes){0}
                                      : e->version == WEIR_TRACE_V05 ? payload_v05(e)
                                                                     : payload_v04(e);
    if (out->err) {
        const int err = out->err;
        wr_out_rewind(out, out == &e->body ? out->len : wr_trace_dict_text_end(&e->dict));
        return err;
    }
    *ret_payload = payload;
    return WEIR_OK;
}

void weir_trace_clear(struct weir_trace_encoder *e)
{
    wr_out_clear(&e->body);
    wr_trace_dict_rewind(&e->dict, 0);
    e->traces = 0;
    e->spans = 0;
}
