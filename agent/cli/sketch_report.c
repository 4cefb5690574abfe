/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sketch_report: see the header.
 *
 * The rows of the histogram are equally wide on a logarithmic axis, negative values mirrored, and
 * never narrower than a bin; a row shows what lies in the bins whose middle it holds.
 */
#include "cli/sketch_report.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define BAR_WIDTH 40

struct bin {
    double lower;
    double upper;
    uint64_t weight;
};

struct bins {
    struct bin *at;
    size_t count;
    size_t cap;
    bool no_memory;
};

static void gather(void *ctx, double lower, double upper, uint64_t weight)
{
    struct bins *const b = ctx;
    if (b->count == b->cap) {
        const size_t cap = b->cap ? b->cap * 2 : 256;
        struct bin *const at = b->no_memory ? NULL : realloc(b->at, cap * sizeof *at);
        if (!at) {
            b->no_memory = true;
            return;
        }
        b->at = at;
        b->cap = cap;
    }
    b->at[b->count++] = (struct bin){lower, upper, weight};
}

/* Whole weights without a fraction; others with what it takes. */
static void put_weight(struct query_buf *out, uint64_t weight)
{
    if (weight % WEIR_WEIGHT_ONE == 0)
        query_buf_put_format(out, "%" PRIu64, weight / WEIR_WEIGHT_ONE);
    else
        query_buf_put_double(out, (double)weight / (double)WEIR_WEIGHT_ONE);
}

static void put_mapping(struct query_buf *out, const struct weir_mapping *m)
{
    static const char *const names[] = {"base 2", "log", "linear", "quadratic", "cubic", "quartic"};
    query_buf_put_text(out, names[weir_mapping_kind(m)]);
    if (weir_mapping_kind(m) == WEIR_MAPPING_BASE2) {
        query_buf_put_format(out, ", scale %" PRId32, weir_mapping_scale(m));
        return;
    }
    query_buf_put_text(out, ", gamma ");
    query_buf_put_double(out, weir_mapping_gamma(m));
    query_buf_put_text(out, ", offset ");
    query_buf_put_double(out, weir_mapping_offset(m));
}

static void put_bound(struct query_buf *out, double bound)
{
    if (isfinite(bound))
        query_buf_put_format(out, "%.4g %%", bound * 100);
    else
        query_buf_put_text(out, "unknown");
}

/* One side of zero: where it begins and ends on the axis, and its rows. */
struct side {
    double from; /* log2 of the least and greatest magnitude's bin bounds */
    double to;
    double finest; /* the narrowest bin */
    uint32_t rows;
    bool negative;
};

static double magnitude_low(const struct bin *b)
{
    return fmin(fabs(b->lower), fabs(b->upper));
}

static double magnitude_high(const struct bin *b)
{
    return fmax(fabs(b->lower), fabs(b->upper));
}

static bool is_of(const struct side *s, const struct bin *b)
{
    return s->negative ? b->lower < 0 : b->upper > 0;
}

static void side_measure(struct side *s, const struct bins *b)
{
    bool any = false;
    for (size_t i = 0; i < b->count; i++) {
        if (!is_of(s, &b->at[i]))
            continue;
        const double low = log2(magnitude_low(&b->at[i]));
        const double high = log2(magnitude_high(&b->at[i]));
        s->from = any ? fmin(s->from, low) : low;
        s->to = any ? fmax(s->to, high) : high;
        s->finest = any ? fmin(s->finest, high - low) : high - low;
        any = true;
    }
    s->rows = any ? 1 : 0;
}

static void side_divide(struct side *s, double all, uint32_t rows)
{
    if (!s->rows)
        return;
    const double width = s->to - s->from;
    s->rows = (uint32_t)fmax(1, floor(rows * (all > 0 ? width / all : 1)));
    const double most = s->finest > 0 ? floor(width / s->finest + 0.5) : 1;
    if (s->rows > most)
        s->rows = (uint32_t)fmax(1, most);
}

static uint32_t row_of(const struct side *s, const struct bin *b)
{
    const double middle = (log2(magnitude_low(b)) + log2(magnitude_high(b))) / 2;
    const double at = (middle - s->from) / (s->to - s->from) * s->rows;
    return at < 0 ? 0 : at >= s->rows ? s->rows - 1 : (uint32_t)at;
}

struct row {
    double lower;
    double upper;
    uint64_t weight;
};

static size_t fill_side(const struct side *s, const struct bins *b, struct row *rows)
{
    for (uint32_t i = 0; i < s->rows; i++) {
        const double low = exp2(s->from + (s->to - s->from) * i / s->rows);
        const double high = exp2(s->from + (s->to - s->from) * (i + 1) / s->rows);
        struct row *const r = &rows[s->negative ? s->rows - 1 - i : i];
        *r = s->negative ? (struct row){-high, -low, 0} : (struct row){low, high, 0};
    }
    for (size_t i = 0; i < b->count; i++) {
        if (!is_of(s, &b->at[i]))
            continue;
        const uint32_t at = row_of(s, &b->at[i]);
        rows[s->negative ? s->rows - 1 - at : at].weight += b->at[i].weight;
    }
    return s->rows;
}

static void put_row(struct query_buf *out, const struct row *r, uint64_t most)
{
    static const char block[] = "\xe2\x96\x88";
    query_buf_put_format(out, "%12.6g .. %-12.6g %14.10g", r->lower, r->upper,
                         (double)r->weight / (double)WEIR_WEIGHT_ONE);
    const int bar = (int)ceil((double)r->weight / (double)most * BAR_WIDTH);
    for (int i = 0; i < bar; i++)
        query_buf_put_text(out, i ? block : " \xe2\x96\x88");
    query_buf_put_char(out, '\n');
}

static int put_histogram(struct query_buf *out, const struct bins *b, uint32_t rows)
{
    struct side neg = {.negative = true};
    struct side pos = {.negative = false};
    side_measure(&neg, b);
    side_measure(&pos, b);
    const double all = (neg.to - neg.from) + (pos.to - pos.from);
    side_divide(&neg, all, rows);
    side_divide(&pos, all, rows);
    struct row *const row = calloc((size_t)neg.rows + 1 + pos.rows, sizeof *row);
    if (!row)
        return WEIR_ENOMEM;
    size_t n = fill_side(&neg, b, row);
    for (size_t i = 0; i < b->count; i++) {
        if (b->at[i].lower == 0 && b->at[i].upper == 0)
            row[n++] = (struct row){0, 0, b->at[i].weight};
    }
    n += fill_side(&pos, b, row + n);
    uint64_t most = 1;
    for (size_t i = 0; i < n; i++)
        most = row[i].weight > most ? row[i].weight : most;
    query_buf_put_char(out, '\n');
    for (size_t i = 0; i < n; i++)
        put_row(out, &row[i], most);
    free(row);
    return WEIR_OK;
}

static void put_named(struct query_buf *out, const char *name, double value)
{
    query_buf_put_format(out, "%-9s ", name);
    query_buf_put_double(out, value);
}

static void put_quantiles(struct query_buf *out, const struct weir_sketch *sk,
                          const struct sketch_report *what)
{
    for (size_t i = 0; i < what->quantile_count; i++) {
        const double q = what->quantiles[i];
        char name[32];
        double value = 0;
        double bound = 0;
        if (weir_sketch_quantile(sk, q, &value) != WEIR_OK ||
            weir_sketch_error_bound(sk, q, &bound) != WEIR_OK)
            continue; /* empty: said above */
        (void)snprintf(name, sizeof name, "p%.10g", q * 100);
        query_buf_put_format(out, "%-9s %-12.6g within ", name, value);
        put_bound(out, bound);
        query_buf_put_char(out, '\n');
    }
}

static void put_bins(struct query_buf *out, const struct bins *b)
{
    query_buf_put_char(out, '\n');
    for (size_t i = 0; i < b->count; i++) {
        query_buf_put_text(out, "bin       ");
        query_buf_put_double(out, b->at[i].lower);
        query_buf_put_text(out, " .. ");
        query_buf_put_double(out, b->at[i].upper);
        query_buf_put_text(out, "  ");
        put_weight(out, b->at[i].weight);
        query_buf_put_char(out, '\n');
    }
}

static void put_totals(struct query_buf *out, const struct weir_sketch *sk, size_t bins)
{
    double min = 0;
    double max = 0;
    const bool any = weir_sketch_min(sk, &min) == WEIR_OK && weir_sketch_max(sk, &max) == WEIR_OK;
    query_buf_put_text(out, "count     ");
    put_weight(out, weir_sketch_weight(sk));
    query_buf_put_char(out, '\n');
    if (any) {
        put_named(out, "sum", weir_sketch_sum(sk));
        query_buf_put_text(out, weir_sketch_is_exact(sk) ? "\n" : "  of the bins\n");
        put_named(out, "min", min);
        query_buf_put_char(out, '\n');
        put_named(out, "max", max);
        query_buf_put_char(out, '\n');
    }
    query_buf_put_text(out, "mapping   ");
    put_mapping(out, weir_sketch_mapping(sk));
    query_buf_put_text(out, ", accuracy ");
    put_bound(out, weir_sketch_accuracy(sk));
    query_buf_put_format(out, ", %zu bins, %zu bytes\n", bins, weir_sketch_bytes(sk));
}

int cli_sketch_report_text(struct query_buf *out, const struct weir_sketch *sk,
                           const struct sketch_report *what)
{
    struct bins b = {0};
    weir_sketch_bins(sk, gather, &b);
    int r = b.no_memory ? WEIR_ENOMEM : WEIR_OK;
    if (r == WEIR_OK) {
        put_totals(out, sk, b.count);
        put_quantiles(out, sk, what);
        if (what->rows && b.count)
            r = put_histogram(out, &b, what->rows);
        if (what->bins)
            put_bins(out, &b);
    }
    free(b.at);
    return r;
}

/* JSON has no infinity. */
static void put_json_number(struct query_buf *out, double value)
{
    if (isfinite(value))
        query_buf_put_double(out, value);
    else
        query_buf_put_text(out, "null");
}

static void put_json_named(struct query_buf *out, const char *name, double value)
{
    query_buf_put_format(out, ",\"%s\":", name);
    put_json_number(out, value);
}

static void put_json_mapping(struct query_buf *out, const struct weir_sketch *sk)
{
    static const char *const names[] = {"base2", "log", "linear", "quadratic", "cubic", "quartic"};
    const struct weir_mapping *const m = weir_sketch_mapping(sk);
    query_buf_put_format(out, ",\"mapping\":{\"kind\":\"%s\"", names[weir_mapping_kind(m)]);
    if (weir_mapping_kind(m) == WEIR_MAPPING_BASE2)
        query_buf_put_format(out, ",\"scale\":%" PRId32, weir_mapping_scale(m));
    put_json_named(out, "gamma", weir_mapping_gamma(m));
    put_json_named(out, "offset", weir_mapping_offset(m));
    put_json_named(out, "accuracy", weir_mapping_accuracy(m));
    query_buf_put_char(out, '}');
}

static void put_json_quantiles(struct query_buf *out, const struct weir_sketch *sk,
                               const struct sketch_report *what)
{
    query_buf_put_text(out, ",\"quantiles\":[");
    bool first = true;
    for (size_t i = 0; i < what->quantile_count; i++) {
        double value = 0;
        double bound = 0;
        if (weir_sketch_quantile(sk, what->quantiles[i], &value) != WEIR_OK ||
            weir_sketch_error_bound(sk, what->quantiles[i], &bound) != WEIR_OK)
            continue;
        query_buf_put_text(out, first ? "{\"q\":" : ",{\"q\":");
        query_buf_put_double(out, what->quantiles[i]);
        put_json_named(out, "value", value);
        put_json_named(out, "bound", bound);
        query_buf_put_char(out, '}');
        first = false;
    }
    query_buf_put_char(out, ']');
}

static void put_json_bins(struct query_buf *out, const struct bins *b)
{
    query_buf_put_text(out, ",\"bins\":[");
    for (size_t i = 0; i < b->count; i++) {
        query_buf_put_text(out, i ? ",[" : "[");
        query_buf_put_double(out, b->at[i].lower);
        query_buf_put_char(out, ',');
        query_buf_put_double(out, b->at[i].upper);
        query_buf_put_char(out, ',');
        put_weight(out, b->at[i].weight);
        query_buf_put_char(out, ']');
    }
    query_buf_put_char(out, ']');
}

int cli_sketch_report_json(struct query_buf *out, const struct weir_sketch *sk,
                           const struct sketch_report *what)
{
    struct bins b = {0};
    weir_sketch_bins(sk, gather, &b);
    const int r = b.no_memory ? WEIR_ENOMEM : WEIR_OK;
    if (r == WEIR_OK) {
        double min = 0;
        double max = 0;
        query_buf_put_text(out, "\"count\":");
        put_weight(out, weir_sketch_weight(sk));
        put_json_named(out, "sum", weir_sketch_sum(sk));
        if (weir_sketch_min(sk, &min) == WEIR_OK && weir_sketch_max(sk, &max) == WEIR_OK) {
            put_json_named(out, "min", min);
            put_json_named(out, "max", max);
        } else {
            query_buf_put_text(out, ",\"min\":null,\"max\":null");
        }
        query_buf_put_format(out, ",\"exact\":%s", weir_sketch_is_exact(sk) ? "true" : "false");
        put_json_mapping(out, sk);
        query_buf_put_format(out, ",\"bytes\":%zu", weir_sketch_bytes(sk));
        put_json_quantiles(out, sk, what);
        put_json_bins(out, &b);
    }
    free(b.at);
    return r;
}
