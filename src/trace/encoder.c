/* SPDX-License-Identifier: Apache-2.0 */
/*
 * encoder: the public face of trace/, and what all versions have in common: options, bounds,
 * undoing a trace that failed, handing over, the payload's head. See weir/trace.h.
 *
 * The counts in a payload's head are known last. v0.4 and v1.0 keep a gap before the traces and
 * write the head right-aligned into it. v0.5 keeps its gap before the dictionary and appends the
 * traces behind the strings when the payload is asked for; the next call cuts them off again.
 *
 * Near its end a payload has less space than a span could take at most: there it is written aside
 * and copied if it fits after all, so that the bound holds to the byte. Text that must be mended
 * can grow threefold; a span that met such text is undone and written once more with room for it.
 */
#include "trace/encoder.h"

#define DEFAULT_MAX_BYTES ((size_t)8 << 20)
#define MIN_BUFFER_BYTES 64
/* A head may be up to so much shorter than its gap. */
#define GAP_SLACK 4
/* By how much a bound may exceed what is written: an index and a number of a byte each, of 5 and 9
 * at most, and a type; three times that where something is mended. */
#define BOUND_RATIO 24
#define MENDED_GROWTH 3

/* The address differs between processes where the loader randomises it, and the output does not
 * depend on the seed: enough to keep strangers from choosing colliding strings. */
static WR_WRAPS uint64_t seed_of(const struct weir_trace_encoder *e)
{
    return (uint64_t)(uintptr_t)e * UINT64_C(0x9E3779B97F4A7C15);
}

static bool version_is_known(uint32_t version)
{
    return version == WEIR_TRACE_V04 || version == WEIR_TRACE_V05 || version == WEIR_TRACE_V1;
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
    if (o.max_bytes == 0 && !o.buffer)
        o.max_bytes = DEFAULT_MAX_BYTES;
    if (!version_is_known(o.version) || (o.buffer && o.max_bytes < MIN_BUFFER_BYTES))
        return WEIR_EINVAL;
    /* So that no sum or product of a few lengths under it can overflow. */
    if (o.max_bytes > SIZE_MAX / 64)
        return WEIR_EINVAL;
    *ret = o;
    return WEIR_OK;
}

/* Payload space of the caller's: to the one that becomes the payload in this version. */
static void place_buffer(struct weir_trace_encoder *e)
{
    if (!e->buffer)
        return;
    struct wr_out *const outs[] = {&e->body, &e->dict.text};
    for (size_t i = 0; i < 2; i++) {
        if (outs[i]->ptr == e->buffer) {
            outs[i]->ptr = NULL;
            outs[i]->cap = 0;
        }
    }
    struct wr_out *const out = e->version == WEIR_TRACE_V05 ? &e->dict.text : &e->body;
    wr_free(&out->alloc, out->ptr, out->cap);
    out->ptr = e->buffer;
    out->cap = e->buffer_bytes;
    out->max = e->buffer_bytes;
}

static void start(struct weir_trace_encoder *e, uint32_t version)
{
    e->version = version;
    e->span_fn = version == WEIR_TRACE_V04   ? wr_trace_span_v04
                 : version == WEIR_TRACE_V05 ? wr_trace_span_v05
                                             : wr_trace_span_v1;
    wr_out_clear(&e->body);
    wr_out_clear(&e->head);
    e->body.max = e->max_bytes + GAP_SLACK;
    e->dict.text.max = e->max_bytes + WR_TRACE_DICT_GAP;
    place_buffer(e);
    wr_trace_dict_rewind(&e->dict, 0);
    e->counts.traces = 0;
    e->counts.spans = 0;
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
    e->buffer = o.buffer;
    e->buffer_bytes = o.max_bytes;
    e->max_bytes = o.buffer ? o.max_bytes - GAP_SLACK : o.max_bytes;
    e->header = o.header;
    e->full = o.full;
    e->full_ctx = o.full_ctx;
    const size_t most = e->max_bytes * BOUND_RATIO + 8 * WR_PIECE_FIXED;
    struct wr_out *const scratches[] = {&e->head,   &e->spill, &e->scratch, &e->json,
                                        &e->events, &e->tags,  &e->keys,    &e->body};
    for (size_t i = 0; i < sizeof scratches / sizeof *scratches; i++)
        wr_out_init(scratches[i], &alloc, most);
    wr_trace_dict_init(&e->dict, &alloc, most, seed_of(e));
    wr_trace_unique_init(&e->unique, &alloc, seed_of(e));
#define ROW(name, text) wr_text_init(&e->known[WR_KNOWN_##name], e->framed[WR_KNOWN_##name], text);
    WR_KNOWN_MAP(ROW)
#undef ROW
    start(e, o.version);
    *ret_encoder = e;
    return WEIR_OK;
}

void weir_trace_encoder_free(struct weir_trace_encoder *e)
{
    if (!e)
        return;
    if (e->buffer) {
        struct wr_out *const out = e->version == WEIR_TRACE_V05 ? &e->dict.text : &e->body;
        out->ptr = NULL;
        out->cap = 0;
    }
    struct wr_out *const outs[] = {&e->head,   &e->spill, &e->scratch, &e->json,
                                   &e->events, &e->tags,  &e->keys,    &e->body};
    for (size_t i = 0; i < sizeof outs / sizeof *outs; i++)
        wr_out_done(outs[i]);
    wr_trace_dict_done(&e->dict);
    wr_trace_unique_done(&e->unique);
    const struct weir_alloc alloc = e->alloc;
    wr_free(&alloc, e, sizeof *e);
}

static size_t count_bytes(uint64_t count)
{
    char b[WR_MP_HEAD_MAX];
    return (size_t)(wr_mp_raw_array(b, (uint32_t)count) - b);
}

/* Where a piece that failed has to go back to. */
struct mark {
    size_t body;
    size_t dict;
    struct weir_trace_counts counts;
};

static struct mark mark_of(const struct weir_trace_encoder *e)
{
    return (struct mark){.body = e->body.len, .dict = e->dict.count, .counts = e->counts};
}

static void rewind_to(struct weir_trace_encoder *e, const struct mark *m)
{
    wr_out_rewind(&e->body, m->body);
    wr_trace_dict_rewind(&e->dict, m->dict);
    e->counts = m->counts;
}

/* The whole bound is there: nothing is short of space. */
static char *begin_piece(struct weir_trace_encoder *e, struct wr_out *out, size_t bound)
{
    e->extra = SIZE_MAX;
    return wr_out_reserve(out, bound);
}

/*
 * A piece of a known bound. Where that much is not left, as the bound may only be generous, it is
 * written aside and copied.
 */
static int put_bounded(struct weir_trace_encoder *e, struct wr_out *out, wr_piece_fn *fn,
                       const struct wr_trace_plan *p)
{
    char *at = begin_piece(e, out, p->bound);
    if (!at && out->err != WEIR_EFULL)
        return out->err;
    struct wr_out *const to = at ? out : &e->spill;
    if (!at) {
        wr_out_rewind(out, out->len); /* forget that it was full */
        wr_out_clear(&e->spill);
        at = begin_piece(e, &e->spill, p->bound);
        if (!at)
            return e->spill.err;
    }
    const char *const end = fn(e, p, at);
    if (e->err || e->narrow)
        return e->err;
    if (to == out)
        wr_out_commit(out, end);
    else
        wr_out_put(out, at, (size_t)(end - at));
    return out->err;
}

static void undo_piece(struct weir_trace_encoder *e, size_t dict, uint64_t mended)
{
    wr_trace_dict_rewind(&e->dict, dict);
    e->counts.texts_mended = mended;
    e->narrow = false;
}

/* What v1.0 has around spans; out is the body, but for the header. Their bound was computed. */
static int put_frame(struct weir_trace_encoder *e, struct wr_out *out, wr_piece_fn *fn,
                     struct wr_trace_plan *p)
{
    const size_t dict = e->dict.count;
    const uint64_t mended = e->counts.texts_mended;
    int err = put_bounded(e, out, fn, p);
    if (e->narrow && !err) {
        undo_piece(e, dict, mended);
        p->bound *= MENDED_GROWTH;
        e->wide = true;
        err = put_bounded(e, out, fn, p);
        e->wide = false;
    }
    e->narrow = false;
    if (WR_UNLIKELY(e->spill.cap > 2 * e->max_bytes))
        wr_out_done(&e->spill); /* one span that was far too large leaves no such buffer */
    return err;
}

/* The usual space was not enough for a span, or was not there. */
static WR_NOINLINE int put_span_again(struct weir_trace_encoder *e, struct wr_trace_plan *p,
                                      size_t dict, uint64_t mended)
{
    undo_piece(e, dict, mended);
    wr_out_rewind(&e->body, e->body.len); /* forget that it was full */
    const int err = wr_trace_bound_span(p);
    return err ? err : put_frame(e, &e->body, e->span_fn, p);
}

static inline int put_span(struct weir_trace_encoder *e, struct wr_trace_plan *p)
{
    struct wr_out *const out = &e->body;
    const size_t dict = e->dict.count;
    const uint64_t mended = e->counts.texts_mended;
    const size_t room = WR_PIECE_FIXED + p->tag_count * WR_TAG_FIXED;
    char *const at = WR_LIKELY(!p->more) ? wr_out_reserve(out, room) : NULL;
    if (WR_UNLIKELY(!at))
        return !p->more && out->err != WEIR_EFULL ? out->err : put_span_again(e, p, dict, mended);
    e->extra = out->cap - out->len - room;
    const char *const end = e->span_fn(e, p, at);
    if (WR_UNLIKELY(e->err || e->narrow))
        return e->err ? e->err : put_span_again(e, p, dict, mended);
    wr_out_commit(out, end);
    return WEIR_OK;
}

static size_t gap_of(const struct weir_trace_encoder *e)
{
    return e->version == WEIR_TRACE_V05 ? 0 : e->head.len + WR_MP_HEAD_MAX;
}

/*
 * Cut off what weir_trace_payload appended, and put what stands before the first trace where it is
 * missing: v1.0's header, whose strings are the first of the dictionary, and the gap.
 */
static int settle(struct weir_trace_encoder *e)
{
    e->err = WEIR_OK;
    if (e->version == WEIR_TRACE_V05) {
        wr_out_rewind(&e->dict.text, wr_trace_dict_text_end(&e->dict));
        return WEIR_OK;
    }
    if (e->body.len)
        return WEIR_OK;
    struct wr_trace_plan p;
    int err = WEIR_OK;
    if (e->version == WEIR_TRACE_V1) {
        bool fresh;
        wr_out_clear(&e->head);
        wr_trace_dict_rewind(&e->dict, 0);
        (void)wr_trace_index(e, weir_str_utf8("", 0), &fresh); /* 0 is the empty string */
        err = e->err ? e->err : wr_trace_plan_header(e, &p);
        if (!err)
            err = put_frame(e, &e->head, wr_trace_header_v1, &p);
    }
    const size_t gap = gap_of(e);
    if (!e->buffer)
        e->body.max = e->max_bytes + gap;
    char *const at = err ? NULL : wr_out_reserve(&e->body, gap);
    if (!at) {
        err = err ? err : e->body.err;
        wr_out_clear(&e->body);
        return err;
    }
    wr_out_commit(&e->body, at + gap);
    return WEIR_OK;
}

/* Of the payload as it stands, with traces as the count. */
static size_t payload_bytes(const struct weir_trace_encoder *e, uint64_t traces)
{
    if (e->version != WEIR_TRACE_V05)
        return e->body.len - WR_MP_HEAD_MAX + count_bytes(traces);
    const size_t end = wr_trace_dict_text_end(&e->dict);
    const size_t strings = end > WR_TRACE_DICT_GAP ? end - WR_TRACE_DICT_GAP : 0;
    return 1 + count_bytes(e->dict.count) + strings + count_bytes(traces) + e->body.len;
}

static int add_spans(struct weir_trace_encoder *e, const struct weir_trace *t)
{
    struct wr_trace_plan p;
    for (size_t i = 0; i < t->span_count; i++) {
        int err = wr_trace_plan_span(e, t, i, &p);
        if (WR_LIKELY(!err))
            err = put_span(e, &p);
        if (WR_UNLIKELY(err))
            return err;
        e->counts.spans++;
    }
    return WEIR_OK;
}

static int add_trace(struct weir_trace_encoder *e, const struct weir_trace *t)
{
    struct wr_trace_plan chunk = {.trace = t};
    int err = WEIR_OK;
    if (e->version == WEIR_TRACE_V1) {
        if (!t->span_count)
            return WEIR_OK; /* there is nothing to say which trace it is of */
        err = wr_trace_plan_chunk(e, t, &chunk);
        if (!err)
            err = put_frame(e, &e->body, wr_trace_chunk_begin_v1, &chunk);
    } else {
        wr_mp_put_array(&e->body, t->span_count);
        err = e->body.err;
    }
    if (!err)
        err = add_spans(e, t);
    if (!err && e->version == WEIR_TRACE_V1)
        err = put_frame(e, &e->body, wr_trace_chunk_end_v1, &chunk);
    if (err)
        return err;
    e->counts.traces++;
    return payload_bytes(e, e->counts.traces) > e->max_bytes ? WEIR_EFULL : WEIR_OK;
}

static int try_add(struct weir_trace_encoder *e, const struct weir_trace *t)
{
    const int err = settle(e);
    if (err)
        return err;
    const struct mark before = mark_of(e);
    const int add_err = add_trace(e, t);
    if (add_err)
        rewind_to(e, &before);
    return add_err;
}

static int hand_over(struct weir_trace_encoder *e)
{
    struct weir_bytes payload;
    const int err = weir_trace_payload(e, &payload);
    if (err)
        return err;
    e->counts.payloads_full++;
    e->full(e->full_ctx, e->version, payload, e->counts.traces, e->counts.spans);
    weir_trace_clear(e);
    return WEIR_OK;
}

int weir_trace_add(struct weir_trace_encoder *e, const struct weir_trace *t)
{
    if (!e || !t || (t->span_count && !t->spans))
        return WEIR_EINVAL;
    if (t->span_count > UINT32_MAX || e->counts.traces >= UINT32_MAX)
        return WEIR_ERANGE;
    int err = try_add(e, t);
    if (err == WEIR_EFULL && e->counts.traces && e->full) {
        err = hand_over(e);
        if (!err)
            err = try_add(e, t);
    }
    if (err == WEIR_EFULL && !e->counts.traces) {
        e->counts.traces_refused++;
        e->counts.spans_refused += t->span_count;
    }
    return err;
}

static struct weir_bytes payload_behind_head(struct weir_trace_encoder *e)
{
    char count[WR_MP_HEAD_MAX];
    const size_t n = (size_t)(wr_mp_raw_array(count, (uint32_t)e->counts.traces) - count);
    char *const body = e->body.ptr + gap_of(e);
    char *const at = body - n - e->head.len;
    if (e->head.len)
        memcpy(at, e->head.ptr, e->head.len);
    memcpy(body - n, count, n);
    return (struct weir_bytes){.ptr = at, .len = (size_t)(e->body.ptr + e->body.len - at)};
}

static int payload_v05(struct weir_trace_encoder *e, struct weir_bytes *ret_payload)
{
    struct wr_out *const text = &e->dict.text;
    if (text->len == 0) {
        static const char gap[WR_TRACE_DICT_GAP] = {0};
        wr_out_put(text, gap, sizeof gap);
    }
    wr_mp_put_array(text, (size_t)e->counts.traces);
    wr_out_put(text, e->body.ptr, e->body.len);
    if (text->err) {
        const int err = text->err;
        wr_out_rewind(text, wr_trace_dict_text_end(&e->dict));
        return err;
    }
    char head[WR_TRACE_DICT_GAP];
    char *const from = wr_mp_raw_array(head, 2);
    const size_t n = (size_t)(wr_mp_raw_array(from, (uint32_t)e->dict.count) - head);
    char *const at = text->ptr + WR_TRACE_DICT_GAP - n;
    memcpy(at, head, n);
    *ret_payload = (struct weir_bytes){.ptr = at, .len = text->len - WR_TRACE_DICT_GAP + n};
    return WEIR_OK;
}

int weir_trace_payload(struct weir_trace_encoder *e, struct weir_bytes *ret_payload)
{
    if (!e || !ret_payload)
        return WEIR_EINVAL;
    const int err = settle(e);
    if (err)
        return err;
    if (e->version == WEIR_TRACE_V05)
        return payload_v05(e, ret_payload);
    *ret_payload = payload_behind_head(e);
    return WEIR_OK;
}

int weir_trace_begin(struct weir_trace_encoder *e, uint32_t version)
{
    if (!e || !version_is_known(version))
        return WEIR_EINVAL;
    start(e, version);
    return WEIR_OK;
}

void weir_trace_clear(struct weir_trace_encoder *e)
{
    start(e, e->version);
}

void weir_trace_get_counts(const struct weir_trace_encoder *e, struct weir_trace_counts *ret_counts)
{
    *ret_counts = e->counts;
}
