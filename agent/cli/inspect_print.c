/* SPDX-License-Identifier: Apache-2.0 */
/* inspect_print: the text form, and what both forms share. See inspect_print.h. */
#include "cli/inspect_print.h"

#include "cli/show.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { DUMP_LINE = 16, DUMP_BYTES = 2 * DUMP_LINE };

/* Shared. */

const char *cli_inspect_refusal_name(enum weir_refusal reason)
{
    switch (reason) {
    case WEIR_REFUSED_TRACE_ID:
        return "trace_id";
    case WEIR_REFUSED_SPAN_ID:
        return "span_id";
    case WEIR_REFUSAL_COUNT:
        break;
    }
    return "unknown";
}

void cli_inspect_mended(const struct weir_stats_health *h,
                        struct inspect_count counts[INSPECT_MENDED_COUNT])
{
    const struct inspect_count all[INSPECT_MENDED_COUNT] = {
        {h->negative_duration, "negative_duration", "negative durations, taken for 0"},
        {h->time_missing, "time_missing", "spans without a start or an end"},
        {h->before_2000, "before_2000", "starts before 2000, taken to end on arrival"},
        {h->late, "late", "spans older than the open windows"},
        {h->future, "future", "spans that end after the window of their arrival"},
        {h->overflow, "overflow", "spans past aggregation.max-keys, in the overflow row"},
        {h->utf8_repaired, "utf8_repaired", "fields that were not UTF-8, repaired"},
        {h->truncated, "truncated", "fields that were too long, cut"},
        {h->weight_capped, "weight_capped", "weights that were too large"},
        {h->bad_status, "bad_status", "HTTP statuses outside 100 to 599, left out"},
    };
    memcpy(counts, all, sizeof all);
}

static struct weir_bytes first_name(const char *names)
{
    return (struct weir_bytes){.ptr = names, .len = strcspn(names, "|")};
}

struct weir_bytes cli_inspect_slot_name(const struct config *config, unsigned slot)
{
    static const char *const fixed[WEIR_TAG_FIXED] = {
        [WEIR_TAG_ENV] = "env",
        [WEIR_TAG_SERVICE] = "service",
        [WEIR_TAG_OPERATION] = "operation",
        [WEIR_TAG_RESOURCE] = "resource",
        [WEIR_TAG_TYPE] = "type",
        [WEIR_TAG_KIND] = "kind",
        [WEIR_TAG_HTTP_STATUS] = "http_status",
        [WEIR_TAG_HTTP_METHOD] = "http_method",
        [WEIR_TAG_HTTP_ROUTE] = "http_route",
        [WEIR_TAG_GRPC_STATUS] = "grpc_status",
        [WEIR_TAG_ORIGIN] = "origin",
        [WEIR_TAG_BASE_SERVICE] = "base_service",
        [WEIR_TAG_TOP_LEVEL] = "top_level",
        [WEIR_TAG_MEASURED] = "measured",
        [WEIR_TAG_PARTIAL] = "partial_version",
        [WEIR_TAG_SERVICE_SOURCE] = "service_source",
        [WEIR_TAG_HTTP_ENDPOINT] = "http_endpoint",
        [WEIR_TAG_HTTP_URL] = "http_url",
    };
    if (slot < WEIR_TAG_FIXED)
        return first_name(fixed[slot]);
    const size_t i = slot - WEIR_TAG_FIXED;
    const struct config_list *const peers = &config->aggregation_peer_tags;
    const struct config_list *const dimensions = &config->aggregation_dimensions;
    if (i < peers->count)
        return first_name(peers->items[i]);
    if (i - peers->count < dimensions->count)
        return first_name(dimensions->items[i - peers->count]);
    return first_name("unknown");
}

/* Both sketches as one; NULL when there is nothing in them, or no memory to add them up. */
static const struct weir_sketch *all_of(const struct weir_row *row, struct weir_sketch **ret_owned)
{
    *ret_owned = NULL;
    if (!row->ok || !row->error)
        return row->ok ? row->ok : row->error;
    const struct weir_sketch_opts o = {.struct_size = sizeof o, .grid = WEIR_GRID_NS};
    struct weir_sketch *sum;
    if (weir_sketch_new(&o, &sum) != WEIR_OK)
        return NULL;
    *ret_owned = sum;
    const bool ok =
        weir_sketch_merge(sum, row->ok) == WEIR_OK && weir_sketch_merge(sum, row->error) == WEIR_OK;
    return ok ? sum : NULL;
}

struct inspect_figures cli_inspect_figures(const struct weir_row *row)
{
    const double one = (double)WEIR_WEIGHT_ONE;
    struct inspect_figures f = {.calls = (double)row->hits / one,
                                .errors = (double)row->errors / one,
                                .p50 = (double)NAN,
                                .p99 = (double)NAN,
                                .max = (double)NAN};
    struct weir_sketch *owned;
    const struct weir_sketch *const sk = all_of(row, &owned);
    if (sk && (weir_sketch_quantile(sk, 0.5, &f.p50) != WEIR_OK ||
               weir_sketch_quantile(sk, 0.99, &f.p99) != WEIR_OK ||
               weir_sketch_max(sk, &f.max) != WEIR_OK))
        f.p50 = f.p99 = f.max = (double)NAN;
    weir_sketch_free(owned);
    return f;
}

/* Text: spans. */

static void put_counted(struct query_buf *out, uint64_t count, const char *noun)
{
    query_buf_put_format(out, "%" PRIu64 " %s%s", count, noun, count == 1 ? "" : "s");
}

static const char *kind_name(uint8_t kind)
{
    static const char *const names[] = {
        [WEIR_KIND_NONE] = "none",         [WEIR_KIND_INTERNAL] = "internal",
        [WEIR_KIND_SERVER] = "server",     [WEIR_KIND_CLIENT] = "client",
        [WEIR_KIND_PRODUCER] = "producer", [WEIR_KIND_CONSUMER] = "consumer",
    };
    return kind < sizeof names / sizeof *names ? names[kind] : "none";
}

static void put_value(const struct weir_value *v, struct query_buf *out)
{
    switch ((enum weir_value_type)v->type) {
    case WEIR_VALUE_BYTES:
        cli_show_quoted(out, (struct weir_bytes){.ptr = v->v.ptr, .len = v->len});
        break;
    case WEIR_VALUE_INT:
        query_buf_put_format(out, "%" PRId64, v->v.i);
        break;
    case WEIR_VALUE_DOUBLE:
        query_buf_put_double(out, v->v.d);
        break;
    case WEIR_VALUE_BOOL:
        query_buf_put_text(out, v->v.i ? "true" : "false");
        break;
    case WEIR_VALUE_NONE:
        break;
    }
}

static void put_named(struct query_buf *out, const char *name, struct weir_bytes text)
{
    query_buf_put_format(out, "  %s ", name);
    cli_show_quoted(out, text);
}

struct listing {
    const struct inspect *x;
    struct query_buf *out;
    uint64_t number;
};

static void put_times(const struct weir_span *span, struct query_buf *out)
{
    char text[32];
    query_buf_put_text(out, "\n    start ");
    cli_show_time(out, span->start_ns);
    cli_show_seconds((double)span->duration_ns / 1e9, text);
    query_buf_put_format(out, "  duration %s", text);
    if (span->flags & WEIR_SPAN_ERROR)
        query_buf_put_text(out, "  error");
    if (span->flags & WEIR_SPAN_NO_START)
        query_buf_put_text(out, "  no start");
    if (span->flags & WEIR_SPAN_NO_END)
        query_buf_put_text(out, "  no end");
}

static void put_tags(const struct inspect *x, const struct weir_span *span, struct query_buf *out)
{
    if (!span->present)
        return;
    query_buf_put_text(out, "\n   ");
    for (uint64_t left = span->present; left; left &= left - 1) {
        const unsigned slot = (unsigned)__builtin_ctzll(left);
        const struct weir_bytes name = cli_inspect_slot_name(x->config, slot);
        query_buf_put_char(out, ' ');
        (void)cli_show_plain(out, name.ptr, name.len);
        query_buf_put_char(out, '=');
        put_value(&span->slots[slot], out);
    }
}

static int list_span(void *ctx, const struct weir_span *span)
{
    struct listing *const l = ctx;
    struct query_buf *const out = l->out;
    if (l->x->opts->limit && l->number >= l->x->opts->limit)
        return WEIR_EEMPTY; /* ends the walk: enough was printed */
    query_buf_put_format(out, "  byte %zu, %zu bytes: trace ", span->raw_offset, span->raw_bytes);
    if (span->trace_id_hi)
        query_buf_put_format(out, "%016" PRIx64, span->trace_id_hi);
    query_buf_put_format(out, "%016" PRIx64 " span %016" PRIx64 " parent %016" PRIx64 "\n  ",
                         span->trace_id, span->span_id, span->parent_id);
    put_named(out, "service", span->service);
    put_named(out, "name", span->name);
    put_named(out, "resource", span->resource);
    put_named(out, "type", span->type);
    query_buf_put_format(out, "  kind %s", kind_name(span->kind));
    put_times(span, out);
    put_tags(l->x, span, out);
    query_buf_put_char(out, '\n');
    l->number++;
    return out->err;
}

static int list_trace(void *ctx)
{
    (void)ctx;
    return WEIR_OK;
}

static void print_spans(const struct inspect *x, struct query_buf *out)
{
    struct listing l = {.x = x, .out = out};
    struct weir_where where;
    const struct weir_span_sink sink = {.ctx = &l, .span = list_span, .trace_end = list_trace};
    query_buf_put_text(out, "\nspans\n");
    const int r = cli_inspect_decode(x, &sink, &where);
    if (r == WEIR_EEMPTY)
        query_buf_put_format(out, "  and %" PRIu64 " more\n", x->spans - l.number);
}

/* Text: rows. */

static void put_number(struct query_buf *out, double value)
{
    query_buf_put_format(out, value == floor(value) ? "%9.0f" : "%9.3f", value);
}

static void put_labels(const struct weir_batch *batch, size_t row, struct query_buf *out)
{
    struct weir_label labels[WEIR_LABELS_MAX];
    const size_t n = weir_batch_get_labels(batch, row, labels, WEIR_LABELS_MAX);
    query_buf_put_char(out, '{');
    for (size_t i = 0; i < n && i < WEIR_LABELS_MAX; i++) {
        query_buf_put_text(out, i ? ", " : "");
        (void)cli_show_plain(out, labels[i].name.ptr, labels[i].name.len);
        query_buf_put_char(out, '=');
        cli_show_quoted(out, labels[i].value);
    }
    query_buf_put_text(out, "}\n");
}

static void print_row(const struct weir_batch *batch, size_t row, struct query_buf *out)
{
    struct weir_row r;
    char text[32];
    weir_batch_get_row(batch, row, &r);
    const struct inspect_figures f = cli_inspect_figures(&r);
    put_number(out, f.calls);
    put_number(out, f.errors);
    const double times[] = {f.p50, f.p99, f.max};
    for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
        cli_show_seconds(times[i], text);
        query_buf_put_format(out, "%9s", text);
    }
    query_buf_put_text(out, "  ");
    put_labels(batch, row, out);
}

static void print_window(const struct inspect *x, const struct inspect_window *w,
                         struct query_buf *out)
{
    char text[32];
    const size_t rows = w->info.rows;
    const size_t shown = x->opts->limit && x->opts->limit < rows ? (size_t)x->opts->limit : rows;
    query_buf_put_text(out, "\nwindow ");
    cli_show_time(out, w->info.start_ns);
    cli_show_seconds((double)w->info.for_ns / 1e9, text);
    query_buf_put_format(out, ", %s: ", text);
    put_counted(out, w->info.counts.aggregated, "span");
    query_buf_put_text(out, " in ");
    put_counted(out, rows, "row");
    query_buf_put_text(out, w->info.flags & WEIR_BATCH_CORRECTION ? ", a correction\n" : "\n");
    if (rows)
        query_buf_put_format(out, "%9s%9s%9s%9s%9s  LABELS\n", "CALLS", "ERRORS", "P50", "P99",
                             "MAX");
    for (size_t i = 0; i < shown; i++)
        print_row(w->batch, w->order[i], out);
    if (shown < rows)
        query_buf_put_format(out, "  and %zu more\n", rows - shown);
}

/* Text: what is not in rows. */

static void print_counts(const struct inspect *x, struct query_buf *out)
{
    const struct weir_stats_health *const h = &x->health;
    struct inspect_count mended[INSPECT_MENDED_COUNT];
    uint64_t dropped = 0;
    for (int i = 0; i < WEIR_DROP_COUNT; i++)
        dropped += h->dropped[i];
    query_buf_put_text(out, "\ncounted   ");
    put_counted(out, h->received, "span");
    query_buf_put_format(out,
                         " = %" PRIu64 " in rows + %" PRIu64 " ineligible + %" PRIu64
                         " partial + %" PRIu64 " dropped\n",
                         h->aggregated, h->ineligible, h->partial, dropped);
    for (int i = 0; i < WEIR_DROP_COUNT; i++) {
        if (h->dropped[i])
            query_buf_put_format(out, "dropped   %" PRIu64 " %s\n", h->dropped[i],
                                 weir_drop_name((enum weir_drop)i));
    }
    cli_inspect_mended(h, mended);
    for (int i = 0; i < INSPECT_MENDED_COUNT; i++) {
        if (mended[i].value)
            query_buf_put_format(out, "mended    %" PRIu64 " %s: %s\n", mended[i].value,
                                 mended[i].name, mended[i].text);
    }
}

static void print_refusals(const struct inspect *x, struct query_buf *out)
{
    uint64_t all = 0;
    for (int i = 0; i < WEIR_REFUSAL_COUNT; i++)
        all += x->refused[i];
    for (size_t i = 0; i < x->refusal_count; i++) {
        const struct inspect_refusal *const r = &x->refusals[i];
        query_buf_put_format(out, "refused   the span at byte %zu, %zu bytes: %s\n", r->offset,
                             r->bytes, cli_inspect_refusal_name(r->reason));
    }
    if (all > x->refusal_count)
        query_buf_put_format(out, "refused   %" PRIu64 " spans more\n", all - x->refusal_count);
    if (all && x->spans == 0)
        query_buf_put_text(out, "          Every span is refused: these may be OTLP metrics or "
                                "logs, whose messages begin alike.\n");
}

static char dump_char(char c)
{
    return c >= 0x20 && c < 0x7F ? c : '.';
}

/* Bytes at..at+16 of body, as far as they are there. */
static void dump_line(struct weir_bytes body, size_t at, struct query_buf *out)
{
    query_buf_put_format(out, "%08zx ", at);
    for (size_t i = at; i < at + DUMP_LINE; i++) {
        if (i < body.len)
            query_buf_put_format(out, " %02x", (unsigned)(unsigned char)body.ptr[i]);
        else
            query_buf_put_text(out, "   ");
    }
    query_buf_put_text(out, "  |");
    for (size_t i = at; i < at + DUMP_LINE && i < body.len; i++)
        query_buf_put_char(out, dump_char(body.ptr[i]));
    query_buf_put_text(out, "|\n");
}

void cli_inspect_print_dump(struct weir_bytes body, size_t offset, struct query_buf *out)
{
    const size_t before = offset - offset % DUMP_LINE; /* the line that offset is on */
    const size_t begin = before >= DUMP_LINE ? before - DUMP_LINE : 0;
    for (size_t at = begin; at < begin + DUMP_BYTES; at += DUMP_LINE) {
        if (at < body.len || at == before)
            dump_line(body, at, out);
        if (at == before)
            query_buf_put_format(out, "%*s^\n", (int)(10 + 3 * (offset - at)), "");
    }
}

static void print_failure(const struct inspect *x, struct query_buf *out)
{
    query_buf_put_format(out, "\nREFUSED at byte %zu: %s (%s)\n", x->where.offset,
                         x->where.reason ? x->where.reason : "no reason is known",
                         weir_strerror(x->err));
    query_buf_put_text(out, "An agent counts nothing of this payload and answers 400.\n\n");
    cli_inspect_print_dump(x->body, x->where.offset, out);
}

/* Text: the whole. */

static const char *coding_name(enum net_coding coding)
{
    switch (coding) {
    case NET_CODING_GZIP:
        return "gzip";
    case NET_CODING_DEFLATE:
        return "deflate";
    case NET_CODING_IDENTITY:
    case NET_CODING_UNKNOWN:
        break;
    }
    return NULL;
}

static void print_title(const struct inspect *x, const struct inspect_title *title,
                        struct query_buf *out)
{
    const char *const coding = coding_name(title->body->coding);
    const char *const path = strcmp(title->path, "-") == 0 ? "standard input" : title->path;
    (void)cli_show_plain(out, path, strlen(path));
    query_buf_put_format(out, ": %zu bytes", title->body->sent_bytes);
    if (coding)
        query_buf_put_format(out, " of %s, %zu bytes decompressed", coding, x->body.len);
    query_buf_put_format(out, "\nformat    %s (%s)\nread      ", cli_inspect_format_name(x->format),
                         title->how ? title->how : "as --format says");
    if (x->format != INSPECT_OTLP) {
        put_counted(out, x->traces, "trace");
        query_buf_put_text(out, ", ");
    }
    put_counted(out, x->spans, "span");
    query_buf_put_format(out, ", %" PRIu64 " with an error\n", x->errors);
}

void cli_inspect_print_text(const struct inspect *x, const struct inspect_title *title,
                            struct query_buf *out)
{
    print_title(x, title, out);
    if (!x->err) {
        query_buf_put_text(out, "arrival   ");
        cli_show_time(out, x->now_ns);
        query_buf_put_char(out, '\n');
    }
    print_refusals(x, out);
    if (x->opts->spans && x->spans)
        print_spans(x, out);
    if (x->err) {
        print_failure(x, out);
        return;
    }
    for (size_t i = 0; i < x->window_count; i++)
        print_window(x, &x->windows[i], out);
    print_counts(x, out);
}
