/* SPDX-License-Identifier: Apache-2.0 */
/* inspect_walk: see inspect_walk.h. */
#include "cli/inspect_walk.h"

#include "wire/pb_read.h"

#include <stdlib.h>
#include <string.h>

/* The first walk: what is there. */

static int64_t end_of(const struct weir_span *span)
{
    int64_t end;
    const int64_t for_ns = span->duration_ns > 0 ? span->duration_ns : 0;
    return __builtin_add_overflow(span->start_ns, for_ns, &end) ? INT64_MAX : end;
}

struct look {
    struct inspect *x;
    uint64_t number; /* of the next span, refused ones counted */
    int64_t wall_ns;
};

static int look_at_span(void *ctx, const struct weir_span *span)
{
    struct look *const l = ctx;
    const int64_t end = end_of(span);
    l->number++;
    l->x->spans++;
    l->x->errors += span->flags & WEIR_SPAN_ERROR ? 1 : 0;
    /* A clock that is wrong must not carry all other spans' arrival with it. */
    if (end <= l->wall_ns && end > l->x->last_end_ns)
        l->x->last_end_ns = end;
    return WEIR_OK;
}

static int look_at_trace(void *ctx)
{
    struct look *const l = ctx;
    l->x->traces++;
    return WEIR_OK;
}

static void look_at_refusal(void *ctx, enum weir_refusal reason)
{
    struct look *const l = ctx;
    struct inspect *const x = l->x;
    if (x->refusal_count < INSPECT_REFUSALS_MAX)
        x->refusals[x->refusal_count++] =
            (struct inspect_refusal){.number = l->number, .reason = reason};
    x->refused[reason]++;
    l->number++;
}

/* Where the refused ones stand: the decoder says only that they were there, in the order of the
 * payload. Field numbers of opentelemetry.proto.collector.trace.v1 and trace.v1. */

enum { RESOURCE_SPANS = 1, SCOPE_SPANS = 2, SPANS = 2 };

struct place {
    struct inspect *x;
    struct wr_pb pb;
    uint64_t number;
    size_t next; /* the refusal to place */
};

typedef bool place_fn(struct place *p, const uint8_t *at, const uint8_t *end);

/* fn of each field of that number; false when the rest need not be looked at. */
static bool each(struct place *p, const uint8_t *at, const uint8_t *end, uint32_t number,
                 place_fn *fn)
{
    while (at < end) {
        struct wr_pb_field f;
        at = wr_pb_field(&p->pb, at, end, &f);
        if (!at || (f.tag == WR_PB_TAG(number, WR_PB_LEN) && !fn(p, f.ptr, at)))
            return false;
    }
    return true;
}

static bool place_span(struct place *p, const uint8_t *at, const uint8_t *end)
{
    struct inspect_refusal *const r = &p->x->refusals[p->next];
    if (r->number == p->number++) {
        r->offset = (size_t)(at - p->pb.begin);
        r->bytes = (size_t)(end - at);
        p->next++;
    }
    return p->next < p->x->refusal_count;
}

static bool place_scope(struct place *p, const uint8_t *at, const uint8_t *end)
{
    return each(p, at, end, SPANS, place_span);
}

static bool place_resource(struct place *p, const uint8_t *at, const uint8_t *end)
{
    return each(p, at, end, SCOPE_SPANS, place_scope);
}

static void place_refusals(struct inspect *x)
{
    struct place p = {.x = x, .pb = wr_pb_init(x->body.ptr, x->body.len)};
    if (x->refusal_count)
        (void)each(&p, p.pb.begin, p.pb.end, RESOURCE_SPANS, place_resource);
}

static void look(struct inspect *x, int64_t wall_ns)
{
    struct look l = {.x = x, .wall_ns = wall_ns};
    const struct weir_span_sink sink = {
        .ctx = &l, .span = look_at_span, .trace_end = look_at_trace, .refused = look_at_refusal};
    x->err = cli_inspect_decode(x, &sink, &x->where);
    if (x->format == INSPECT_OTLP)
        x->traces = 0; /* its spans are not grouped */
    place_refusals(x);
}

int cli_inspect_decode(const struct inspect *x, const struct weir_span_sink *sink,
                       struct weir_where *ret_where)
{
    switch (x->format) {
    case INSPECT_V05:
        return weir_decode_dd_v05(x->decoder, x->body.ptr, x->body.len, sink, NULL, ret_where);
    case INSPECT_V07:
        return weir_decode_dd_v07(x->decoder, x->body.ptr, x->body.len, sink, NULL, ret_where);
    case INSPECT_V1:
        return weir_decode_dd_v1(x->decoder, x->body.ptr, x->body.len, sink, NULL, ret_where);
    case INSPECT_OTLP:
        return weir_decode_otlp_traces(x->decoder, x->body.ptr, x->body.len, sink, NULL, ret_where);
    case INSPECT_AUTO:
    case INSPECT_V03:
    case INSPECT_V04:
    case INSPECT_SKETCH: /* has no spans: never here */
        break;
    }
    return weir_decode_dd_v04(x->decoder, x->body.ptr, x->body.len, sink, NULL, ret_where);
}

/* The second walk: into the engine, as agent/receive does it. */

struct feed {
    struct inspect *x;
    struct weir_source source;
    uint64_t in_trace; /* spans of the open trace */
    bool skipping;     /* the open trace is larger than the ring */
};

static void drain(struct inspect *x)
{
    (void)weir_stats_poll(x->stats, x->now_ns, x->now_ns);
}

static void drop_open(struct feed *f)
{
    struct weir_producer *const p = f->x->producer;
    weir_stats_commit(p); /* what is complete before it stays */
    weir_stats_abandon(p);
    weir_stats_begin(p, &f->source);
    weir_stats_drop(p, f->in_trace);
    f->in_trace = 0;
}

static void make_room(struct feed *f)
{
    struct weir_producer *const p = f->x->producer;
    if (f->x->format == INSPECT_OTLP) { /* loose spans may be cut anywhere */
        if (weir_stats_trace_end(p) != WEIR_OK)
            drop_open(f);
        f->in_trace = 0;
    }
    weir_stats_commit(p);
    drain(f->x);
}

static int feed_span(void *ctx, const struct weir_span *span)
{
    struct feed *const f = ctx;
    struct weir_producer *const p = f->x->producer;
    bool added = !f->skipping && weir_stats_add(p, span) == WEIR_OK;
    if (!added && !f->skipping) {
        make_room(f);
        added = weir_stats_add(p, span) == WEIR_OK;
    }
    f->in_trace++;
    if (added)
        return WEIR_OK;
    if (f->x->format == INSPECT_OTLP)
        drop_open(f); /* this span alone */
    else
        f->skipping = true;
    return WEIR_OK;
}

static int feed_trace(void *ctx)
{
    struct feed *const f = ctx;
    if (f->skipping || weir_stats_trace_end(f->x->producer) != WEIR_OK)
        drop_open(f);
    f->skipping = false;
    f->in_trace = 0;
    return WEIR_OK;
}

static int feed(struct inspect *x)
{
    const char *const lang = x->opts->lang ? x->opts->lang : "";
    struct feed f = {.x = x, .source = {.lang = {.ptr = lang, .len = strlen(lang)}}};
    f.source.now_ns = x->now_ns;
    if (x->opts->computed_top_level)
        f.source.flags |= WEIR_SOURCE_TOP_LEVEL_COMPUTED;
    const struct weir_span_sink sink = {.ctx = &f, .span = feed_span, .trace_end = feed_trace};
    drain(x); /* the windows stand at now before the first span comes */
    weir_stats_begin(x->producer, &f.source);
    struct weir_where where;
    const int r = cli_inspect_decode(x, &sink, &where);
    weir_stats_commit(x->producer);
    weir_stats_seal_all(x->stats, x->now_ns, x->now_ns);
    return r;
}

/* What came out. */

static int compare_bytes(struct weir_bytes a, struct weir_bytes b)
{
    const size_t n = a.len < b.len ? a.len : b.len;
    const int order = n ? memcmp(a.ptr, b.ptr, n) : 0;
    return order ? order : (a.len > b.len) - (a.len < b.len);
}

static int compare_labels(const struct weir_batch *batch, size_t a, size_t b)
{
    struct weir_label la[WEIR_LABELS_MAX];
    struct weir_label lb[WEIR_LABELS_MAX];
    const size_t na = weir_batch_get_labels(batch, a, la, WEIR_LABELS_MAX);
    const size_t nb = weir_batch_get_labels(batch, b, lb, WEIR_LABELS_MAX);
    for (size_t i = 0; i < na && i < nb; i++) {
        int order = compare_bytes(la[i].name, lb[i].name);
        order = order ? order : compare_bytes(la[i].value, lb[i].value);
        if (order)
            return order;
    }
    return (na > nb) - (na < nb);
}

static int compare_rows(const void *a, const void *b, void *ctx)
{
    const struct weir_batch *const batch = ctx;
    const size_t x = *(const size_t *)a;
    const size_t y = *(const size_t *)b;
    struct weir_row rx;
    struct weir_row ry;
    weir_batch_get_row(batch, x, &rx);
    weir_batch_get_row(batch, y, &ry);
    if (rx.hits != ry.hits)
        return rx.hits < ry.hits ? 1 : -1;
    return compare_labels(batch, x, y);
}

static int add_window(struct inspect *x, struct weir_batch *batch)
{
    struct inspect_window *const grown =
        realloc(x->windows, (x->window_count + 1) * sizeof *x->windows);
    if (!grown) {
        weir_batch_release(batch);
        return WEIR_ENOMEM;
    }
    x->windows = grown;
    struct inspect_window *const w = &x->windows[x->window_count++];
    *w = (struct inspect_window){.batch = batch};
    weir_batch_get_info(batch, &w->info);
    w->order = calloc(w->info.rows + 1, sizeof *w->order);
    if (!w->order)
        return WEIR_ENOMEM;
    for (size_t i = 0; i < w->info.rows; i++)
        w->order[i] = i;
    qsort_r(w->order, w->info.rows, sizeof *w->order, compare_rows, batch);
    return WEIR_OK;
}

static int compare_windows(const void *a, const void *b)
{
    const int64_t x = ((const struct inspect_window *)a)->info.start_ns;
    const int64_t y = ((const struct inspect_window *)b)->info.start_ns;
    return (x > y) - (x < y);
}

static int collect(struct inspect *x)
{
    int r = WEIR_OK;
    for (struct weir_batch *b; r == WEIR_OK && (b = weir_stats_take_batch(x->stats));)
        r = add_window(x, b);
    if (x->window_count > 1)
        qsort(x->windows, x->window_count, sizeof *x->windows, compare_windows);
    weir_stats_get_health(x->stats, &x->health);
    return r;
}

static int64_t arrival(const struct inspect *x, int64_t wall_ns)
{
    switch (x->opts->at) {
    case INSPECT_AT_TIME:
        return x->opts->at_ns;
    case INSPECT_AT_END:
        return x->last_end_ns ? x->last_end_ns : wall_ns;
    case INSPECT_AT_NOW:
        break;
    }
    return wall_ns;
}

static int open_engine(struct inspect *x)
{
    int r = cli_stats_opts_init(x->config, &x->stats_opts) == 0 ? WEIR_OK : WEIR_ENOMEM;
    if (r == WEIR_OK)
        r = weir_stats_new(&x->stats_opts.opts, &x->stats);
    if (r == WEIR_OK)
        r = weir_producer_new(x->stats, 0, WEIR_PRODUCER_OWNER, &x->producer);
    if (r == WEIR_OK)
        r = weir_decoder_new(&x->stats_opts.opts.alloc, weir_stats_tags(x->stats), &x->decoder);
    return r;
}

int cli_inspect_walk(struct inspect *x, const struct inspect_opts *opts,
                     const struct config *config, enum inspect_format format,
                     struct weir_bytes body, int64_t wall_ns)
{
    *x = (struct inspect){.opts = opts, .config = config, .format = format, .body = body};
    int r = open_engine(x);
    if (r != WEIR_OK)
        return r;
    look(x, wall_ns);
    x->now_ns = arrival(x, wall_ns);
    if (x->err == WEIR_ENOMEM)
        return WEIR_ENOMEM;
    if (x->err == WEIR_OK)
        r = feed(x);
    return r == WEIR_OK ? collect(x) : r;
}

void cli_inspect_done(struct inspect *x)
{
    for (size_t i = 0; i < x->window_count; i++) {
        weir_batch_release(x->windows[i].batch);
        free(x->windows[i].order);
    }
    free(x->windows);
    weir_decoder_free(x->decoder);
    weir_producer_free(x->producer);
    weir_stats_free(x->stats);
    cli_stats_opts_done(&x->stats_opts);
    x->windows = NULL;
    x->window_count = 0;
}
