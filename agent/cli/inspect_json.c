/* SPDX-License-Identifier: Apache-2.0 */
/* inspect_json: the JSON form of inspect_print.h: one object, a member a line at the top. */
#include "cli/inspect_print.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

static void put_text(struct query_buf *out, const char *name, const char *text)
{
    query_buf_put_format(out, "\"%s\":", name);
    if (text)
        query_buf_put_json_string(out, text, strlen(text));
    else
        query_buf_put_text(out, "null");
}

static void put_bytes(struct query_buf *out, const char *name, struct weir_bytes text)
{
    query_buf_put_format(out, ",\"%s\":", name);
    query_buf_put_json_string(out, text.ptr ? text.ptr : "", text.len);
}

static void put_u64(struct query_buf *out, const char *name, uint64_t value)
{
    query_buf_put_format(out, ",\"%s\":%" PRIu64, name, value);
}

static void put_double(struct query_buf *out, const char *name, double value)
{
    query_buf_put_format(out, ",\"%s\":", name);
    if (isfinite(value))
        query_buf_put_double(out, value);
    else
        query_buf_put_text(out, "null");
}

static void put_value(const struct weir_value *v, struct query_buf *out)
{
    if (v->type == WEIR_VALUE_BYTES)
        query_buf_put_json_string(out, v->len ? v->v.ptr : "", v->len);
    else if (v->type == WEIR_VALUE_INT)
        query_buf_put_format(out, "%" PRId64, v->v.i);
    else if (v->type == WEIR_VALUE_DOUBLE && isfinite(v->v.d))
        query_buf_put_double(out, v->v.d);
    else if (v->type == WEIR_VALUE_BOOL)
        query_buf_put_text(out, v->v.i ? "true" : "false");
    else
        query_buf_put_text(out, "null");
}

static void put_tags(const struct inspect *x, const struct weir_span *span, struct query_buf *out)
{
    query_buf_put_text(out, ",\"tags\":{");
    for (uint64_t left = span->present; left; left &= left - 1) {
        const unsigned slot = (unsigned)__builtin_ctzll(left);
        const struct weir_bytes name = cli_inspect_slot_name(x->config, slot);
        query_buf_put_text(out, left == span->present ? "" : ",");
        query_buf_put_json_string(out, name.ptr, name.len);
        query_buf_put_char(out, ':');
        put_value(&span->slots[slot], out);
    }
    query_buf_put_char(out, '}');
}

struct listing {
    const struct inspect *x;
    struct query_buf *out;
    uint64_t number;
};

static int list_span(void *ctx, const struct weir_span *span)
{
    struct listing *const l = ctx;
    struct query_buf *const out = l->out;
    if (l->x->opts->limit && l->number >= l->x->opts->limit)
        return WEIR_EEMPTY; /* ends the walk: enough was printed */
    query_buf_put_format(out, "%s{\"offset\":%zu", l->number ? ",\n " : "", span->raw_offset);
    put_u64(out, "bytes", span->raw_bytes);
    query_buf_put_format(out, ",\"trace_id\":\"%016" PRIx64 "%016" PRIx64 "\"", span->trace_id_hi,
                         span->trace_id);
    query_buf_put_format(out, ",\"span_id\":\"%016" PRIx64 "\",\"parent_id\":\"%016" PRIx64 "\"",
                         span->span_id, span->parent_id);
    put_bytes(out, "service", span->service);
    put_bytes(out, "name", span->name);
    put_bytes(out, "resource", span->resource);
    put_bytes(out, "type", span->type);
    put_u64(out, "kind", span->kind);
    query_buf_put_format(out, ",\"start_ns\":%" PRId64 ",\"duration_ns\":%" PRId64 ",\"error\":%s",
                         span->start_ns, span->duration_ns,
                         span->flags & WEIR_SPAN_ERROR ? "true" : "false");
    put_tags(l->x, span, out);
    query_buf_put_char(out, '}');
    l->number++;
    return out->err;
}

static int list_trace(void *ctx)
{
    (void)ctx;
    return WEIR_OK;
}

static void put_spans(const struct inspect *x, struct query_buf *out)
{
    struct listing l = {.x = x, .out = out};
    struct weir_where where;
    const struct weir_span_sink sink = {.ctx = &l, .span = list_span, .trace_end = list_trace};
    query_buf_put_text(out, ",\n\"span_list\":[");
    /* A payload that is refused was said to be, and out keeps its own error. */
    const int r = cli_inspect_decode(x, &sink, &where);
    query_buf_put_text(out, r == WEIR_ENOMEM ? "null]" : "]");
}

static void put_row(const struct weir_batch *batch, size_t row, struct query_buf *out)
{
    struct weir_label labels[WEIR_LABELS_MAX];
    struct weir_row r;
    const size_t n = weir_batch_get_labels(batch, row, labels, WEIR_LABELS_MAX);
    query_buf_put_text(out, "{\"labels\":{");
    for (size_t i = 0; i < n && i < WEIR_LABELS_MAX; i++) {
        query_buf_put_text(out, i ? "," : "");
        query_buf_put_json_string(out, labels[i].name.ptr, labels[i].name.len);
        query_buf_put_char(out, ':');
        query_buf_put_json_string(out, labels[i].value.ptr, labels[i].value.len);
    }
    query_buf_put_char(out, '}');
    weir_batch_get_row(batch, row, &r);
    const struct inspect_figures f = cli_inspect_figures(&r);
    put_double(out, "calls", f.calls);
    put_double(out, "errors", f.errors);
    put_double(out, "p50", f.p50);
    put_double(out, "p99", f.p99);
    put_double(out, "max", f.max);
    query_buf_put_char(out, '}');
}

static void put_window(const struct inspect *x, const struct inspect_window *w,
                       struct query_buf *out)
{
    const size_t rows = w->info.rows;
    const size_t shown = x->opts->limit && x->opts->limit < rows ? (size_t)x->opts->limit : rows;
    query_buf_put_format(out, "{\"start_ns\":%" PRId64 ",\"for_ns\":%" PRId64, w->info.start_ns,
                         w->info.for_ns);
    put_u64(out, "spans", w->info.counts.aggregated);
    put_u64(out, "row_count", rows);
    query_buf_put_text(out, ",\"rows\":[");
    for (size_t i = 0; i < shown; i++) {
        query_buf_put_text(out, i ? ",\n " : "");
        put_row(w->batch, w->order[i], out);
    }
    query_buf_put_text(out, "]}");
}

static void put_counts(const struct inspect *x, struct query_buf *out)
{
    const struct weir_stats_health *const h = &x->health;
    struct inspect_count mended[INSPECT_MENDED_COUNT];
    query_buf_put_format(out, ",\n\"counts\":{\"received\":%" PRIu64, h->received);
    put_u64(out, "aggregated", h->aggregated);
    put_u64(out, "ineligible", h->ineligible);
    put_u64(out, "partial", h->partial);
    query_buf_put_text(out, "},\n\"dropped\":{");
    for (int i = 0; i < WEIR_DROP_COUNT; i++)
        query_buf_put_format(out, "%s\"%s\":%" PRIu64, i ? "," : "",
                             weir_drop_name((enum weir_drop)i), h->dropped[i]);
    query_buf_put_text(out, "},\n\"mended\":{");
    cli_inspect_mended(h, mended);
    for (int i = 0; i < INSPECT_MENDED_COUNT; i++)
        query_buf_put_format(out, "%s\"%s\":%" PRIu64, i ? "," : "", mended[i].name,
                             mended[i].value);
    query_buf_put_char(out, '}');
}

static void put_refusals(const struct inspect *x, struct query_buf *out)
{
    uint64_t all = 0;
    for (int i = 0; i < WEIR_REFUSAL_COUNT; i++)
        all += x->refused[i];
    put_u64(out, "refused", all);
    query_buf_put_text(out, ",\n\"refusals\":[");
    for (size_t i = 0; i < x->refusal_count; i++) {
        const struct inspect_refusal *const r = &x->refusals[i];
        query_buf_put_format(out, "%s{\"offset\":%zu,\"bytes\":%zu,\"reason\":\"%s\"}",
                             i ? ",\n " : "", r->offset, r->bytes,
                             cli_inspect_refusal_name(r->reason));
    }
    query_buf_put_char(out, ']');
}

void cli_inspect_print_json(const struct inspect *x, const struct inspect_title *title,
                            struct query_buf *out)
{
    query_buf_put_char(out, '{');
    put_text(out, "file", title->path);
    put_u64(out, "sent_bytes", title->body->sent_bytes);
    put_u64(out, "bytes", x->body.len);
    query_buf_put_text(out, ",");
    put_text(out, "format", cli_inspect_format_name(x->format));
    query_buf_put_text(out, ",");
    put_text(out, "known_by", title->how);
    put_u64(out, "traces", x->traces);
    put_u64(out, "spans", x->spans);
    put_u64(out, "span_errors", x->errors);
    put_refusals(x, out);
    query_buf_put_text(out, ",\n\"error\":");
    if (x->err) {
        query_buf_put_format(out, "{\"offset\":%zu,", x->where.offset);
        put_text(out, "reason", x->where.reason);
        query_buf_put_char(out, '}');
    } else {
        query_buf_put_format(out, "null,\n\"arrival_ns\":%" PRId64 ",\n\"windows\":[", x->now_ns);
        for (size_t i = 0; i < x->window_count; i++) {
            query_buf_put_text(out, i ? ",\n" : "");
            put_window(x, &x->windows[i], out);
        }
        query_buf_put_char(out, ']');
        put_counts(x, out);
    }
    if (x->opts->spans)
        put_spans(x, out);
    query_buf_put_text(out, "}\n");
}
