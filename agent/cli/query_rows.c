/* SPDX-License-Identifier: Apache-2.0 */
/*
 * query_rows: see the header. Rows are found by their three names through a linear probe of a
 * table of hashes; there are as many as the agent has resources, thousands at most.
 *
 * Threads: one. Memory: heap; names are copied.
 */
#include "cli/query_rows.h"

#include "cli/show.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define NAME_COUNT 3

struct row {
    char *names[NAME_COUNT]; /* service, operation, resource; "" when absent */
    double values[QUERY_COLUMN_COUNT];
};

struct query_rows {
    struct row *rows;
    size_t count;
    size_t cap;
    uint32_t *slots; /* a row's number and 1; 0: free; at most half in use */
    size_t slot_count;
};

static const char *const labels[NAME_COUNT] = {"service_name", "operation_name", "span_name"};
static const char by[] = "by (service_name, operation_name, span_name)";

#define CALLS "traces_span_metrics_calls_total"
#define DURATION "traces_span_metrics_duration_seconds"

/* --- questions ------------------------------------------------------------------------------- */

static void put_matcher(struct query_buf *expr, const char *label, const char *value)
{
    if (!value)
        return;
    query_buf_put_text(expr, label);
    query_buf_put_char(expr, '=');
    query_buf_put_quoted(expr, value, strlen(value));
    query_buf_put_char(expr, ',');
}

/* metric{matchers}[last] */
static void put_range(struct query_buf *expr, const char *metric, const struct query_opts *opts,
                      const char *status)
{
    query_buf_put_text(expr, metric);
    query_buf_put_char(expr, '{');
    put_matcher(expr, "env", opts->env);
    put_matcher(expr, "service_name", opts->service);
    put_matcher(expr, "status_code", status);
    query_buf_put_format(expr, "}[%s]", opts->last);
}

static void put_quantile(struct query_buf *expr, const char *q, const struct query_opts *opts)
{
    query_buf_put_format(expr, "histogram_quantile(%s, sum %s (increase(", q, by);
    put_range(expr, DURATION, opts, NULL);
    query_buf_put_text(expr, ")))");
}

static void put_call(struct query_buf *expr, const char *aggregation, const char *function,
                     const char *metric, const struct query_opts *opts, const char *status)
{
    query_buf_put_format(expr, "%s %s (%s(", aggregation, by, function);
    put_range(expr, metric, opts, status);
    query_buf_put_text(expr, "))");
}

void cli_query_question(enum query_column column, const struct query_opts *opts,
                        struct query_buf *expr)
{
    switch (column) {
    case QUERY_COLUMN_CALLS:
        put_call(expr, "sum", "increase", CALLS, opts, NULL);
        break;
    case QUERY_COLUMN_RATE:
        put_call(expr, "sum", "rate", CALLS, opts, NULL);
        break;
    case QUERY_COLUMN_ERRORS:
        put_call(expr, "sum", "increase", CALLS, opts, "STATUS_CODE_ERROR");
        break;
    case QUERY_COLUMN_P50:
        put_quantile(expr, "0.5", opts);
        break;
    case QUERY_COLUMN_P95:
        put_quantile(expr, "0.95", opts);
        break;
    case QUERY_COLUMN_P99:
        put_quantile(expr, "0.99", opts);
        break;
    case QUERY_COLUMN_MAX:
        put_call(expr, "max", "max_over_time", DURATION, opts, NULL);
        break;
    case QUERY_COLUMN_COUNT:
        break;
    }
}

/* --- rows ------------------------------------------------------------------------------------ */

int cli_query_rows_new(struct query_rows **ret_rows)
{
    *ret_rows = calloc(1, sizeof **ret_rows);
    return *ret_rows ? WEIR_OK : WEIR_ENOMEM;
}

void cli_query_rows_free(struct query_rows *rows)
{
    if (!rows)
        return;
    for (size_t i = 0; i < rows->count; i++) {
        for (int k = 0; k < NAME_COUNT; k++)
            free(rows->rows[i].names[k]);
    }
    free(rows->rows);
    free(rows->slots);
    free(rows);
}

/* FNV-1a over the names and their ends. */
static size_t hash_names(const char *const names[NAME_COUNT])
{
    uint64_t h = UINT64_C(0xCBF29CE484222325);
    for (int k = 0; k < NAME_COUNT; k++) {
        for (const char *p = names[k]; *p; p++)
            h = (h ^ (unsigned char)*p) * UINT64_C(0x100000001B3);
        h = (h ^ 0xFF) * UINT64_C(0x100000001B3);
    }
    return (size_t)h;
}

static bool same_names(const struct row *row, const char *const names[NAME_COUNT])
{
    for (int k = 0; k < NAME_COUNT; k++) {
        if (strcmp(row->names[k], names[k]) != 0)
            return false;
    }
    return true;
}

/* The slot of the names, or the free one where they belong. */
static size_t find_slot(const struct query_rows *rows, const char *const names[NAME_COUNT])
{
    size_t slot = hash_names(names) & (rows->slot_count - 1);
    while (rows->slots[slot] && !same_names(&rows->rows[rows->slots[slot] - 1], names))
        slot = (slot + 1) & (rows->slot_count - 1);
    return slot;
}

static int grow(struct query_rows *rows)
{
    if (rows->count < rows->cap)
        return WEIR_OK;
    if (rows->cap >= UINT32_MAX / 4)
        return WEIR_EFULL;
    const size_t cap = rows->cap ? rows->cap * 2 : 64;
    struct row *const larger = realloc(rows->rows, cap * sizeof *larger);
    if (!larger)
        return WEIR_ENOMEM;
    rows->rows = larger;
    uint32_t *const slots = calloc(cap * 2, sizeof *slots);
    if (!slots)
        return WEIR_ENOMEM;
    free(rows->slots);
    rows->slots = slots;
    rows->slot_count = cap * 2;
    rows->cap = cap;
    for (size_t i = 0; i < rows->count; i++) {
        const char *const names[NAME_COUNT] = {larger[i].names[0], larger[i].names[1],
                                               larger[i].names[2]};
        slots[find_slot(rows, names)] = (uint32_t)i + 1;
    }
    return WEIR_OK;
}

static int add_row(struct query_rows *rows, const char *const names[NAME_COUNT],
                   struct row **ret_row)
{
    const int r = grow(rows);
    if (r)
        return r;
    const size_t slot = find_slot(rows, names);
    if (!rows->slots[slot]) {
        struct row row = {.names = {NULL}};
        for (int i = 0; i < QUERY_COLUMN_COUNT; i++)
            row.values[i] = i <= QUERY_COLUMN_ERRORS ? 0 : (double)NAN;
        bool ok = true;
        for (int k = 0; k < NAME_COUNT; k++) {
            row.names[k] = strdup(names[k]);
            ok = ok && row.names[k];
        }
        if (!ok) {
            for (int k = 0; k < NAME_COUNT; k++)
                free(row.names[k]);
            return WEIR_ENOMEM;
        }
        rows->rows[rows->count] = row;
        rows->slots[slot] = (uint32_t)++rows->count;
    }
    *ret_row = &rows->rows[rows->slots[slot] - 1];
    return WEIR_OK;
}

int cli_query_rows_add(struct query_rows *rows, enum query_column column,
                       const struct cli_json_value *data)
{
    const struct cli_json_value *const result = cli_json_get(data, "result");
    if (!cli_json_text_is(cli_json_get(data, "resultType"), "vector") || !result ||
        result->type != CLI_JSON_ARRAY)
        return WEIR_EFORMAT;
    for (const struct cli_json_value *s = cli_json_first(result); s; s = cli_json_next(result, s)) {
        const struct cli_json_value *const metric = cli_json_get(s, "metric");
        const struct cli_json_value *const pair = cli_json_get(s, "value");
        double value;
        if (!pair || pair->type != CLI_JSON_ARRAY || !cli_json_number(cli_json_at(pair, 1), &value))
            return WEIR_EFORMAT;
        const char *names[NAME_COUNT];
        for (int k = 0; k < NAME_COUNT; k++) {
            const struct weir_bytes text = cli_json_text(cli_json_get(metric, labels[k]));
            names[k] = text.ptr ? text.ptr : "";
        }
        struct row *row;
        const int r = add_row(rows, names, &row);
        if (r)
            return r;
        row->values[column] = value;
    }
    return WEIR_OK;
}

/* --- sorting --------------------------------------------------------------------------------- */

static int compare_names(const struct row *a, const struct row *b)
{
    for (int k = 0; k < NAME_COUNT; k++) {
        const int order = strcmp(a->names[k], b->names[k]);
        if (order)
            return order;
    }
    return 0;
}

/* NaN last. */
static int compare_falling(double a, double b)
{
    if (isnan(a) || isnan(b))
        return (isnan(a) ? 1 : 0) - (isnan(b) ? 1 : 0);
    return (a < b) - (a > b);
}

static double error_ratio(const struct row *row)
{
    const double calls = row->values[QUERY_COLUMN_CALLS];
    return calls > 0 ? row->values[QUERY_COLUMN_ERRORS] / calls : 0;
}

static double sort_value(const struct row *row, enum query_sort sort)
{
    switch (sort) {
    case QUERY_SORT_ERRORS:
        return error_ratio(row);
    case QUERY_SORT_P50:
        return row->values[QUERY_COLUMN_P50];
    case QUERY_SORT_P95:
        return row->values[QUERY_COLUMN_P95];
    case QUERY_SORT_P99:
        return row->values[QUERY_COLUMN_P99];
    case QUERY_SORT_MAX:
        return row->values[QUERY_COLUMN_MAX];
    case QUERY_SORT_RATE:
    case QUERY_SORT_SERVICE:
    case QUERY_SORT_OPERATION:
    case QUERY_SORT_RESOURCE:
        break;
    }
    return row->values[QUERY_COLUMN_RATE];
}

static int compare_rows(const void *a, const void *b, void *ctx)
{
    const struct row *const x = a;
    const struct row *const y = b;
    const enum query_sort sort = *(const enum query_sort *)ctx;
    int order = 0;
    if (sort == QUERY_SORT_OPERATION || sort == QUERY_SORT_RESOURCE) {
        const int k = sort == QUERY_SORT_OPERATION ? 1 : 2;
        order = strcmp(x->names[k], y->names[k]);
    } else if (sort != QUERY_SORT_SERVICE) {
        order = compare_falling(sort_value(x, sort), sort_value(y, sort));
    }
    return order ? order : compare_names(x, y);
}

/* --- printing -------------------------------------------------------------------------------- */

static size_t width_of(const char *text)
{
    const size_t len = strlen(text);
    size_t width = 0;
    for (size_t i = 0; i < len; width++) {
        size_t step;
        (void)query_utf8_next(text + i, len - i, &step);
        i += step;
    }
    return width;
}

static void put_spaces(struct query_buf *out, size_t count)
{
    for (size_t i = 0; i < count; i++)
        query_buf_put_char(out, ' ');
}

static void format_rate(double rate, char text[32])
{
    (void)snprintf(text, 32, "%.*f/s", rate >= 100 ? 0 : rate >= 1 ? 1 : 3, rate);
}

#define RIGHT_COUNT 6

static void format_right(const struct row *row, char texts[RIGHT_COUNT][32])
{
    format_rate(row->values[QUERY_COLUMN_RATE], texts[0]);
    (void)snprintf(texts[1], 32, "%.2f%%", error_ratio(row) * 100);
    for (int i = 0; i < 4; i++)
        cli_show_seconds(row->values[QUERY_COLUMN_P50 + i], texts[2 + i]);
}

/* Longer names push their line out rather than all others. */
#define LEFT_WIDTH_MAX 48

static size_t column_width(const struct query_rows *rows, size_t count, int name, const char *head)
{
    size_t widest = strlen(head);
    for (size_t i = 0; i < count; i++) {
        const size_t width = width_of(rows->rows[i].names[name]);
        if (width > widest)
            widest = width < LEFT_WIDTH_MAX ? width : LEFT_WIDTH_MAX;
    }
    return widest;
}

static void put_right(struct query_buf *out, const char *text, bool last)
{
    query_buf_put_format(out, "%9s%c", text, last ? '\n' : ' ');
}

/* How much of text fits into columns. */
static size_t fitting(const char *text, size_t columns)
{
    const size_t len = strlen(text);
    size_t at = 0;
    for (size_t width = 0; at < len && width < columns; width++) {
        size_t step;
        (void)query_utf8_next(text + at, len - at, &step);
        at += step;
    }
    return at;
}

/* Names are cut only where widths were made to fit a window. */
static void print_row(const struct row *row, const size_t widths[NAME_COUNT], bool cut,
                      struct query_buf *out)
{
    for (int k = 0; k < NAME_COUNT; k++) {
        const char *const name = *row->names[k] ? row->names[k] : "-";
        const size_t len = cut ? fitting(name, widths[k]) : strlen(name);
        const size_t width = cli_show_plain(out, name, len);
        put_spaces(out, 2 + (width < widths[k] ? widths[k] - width : 0));
    }
    char texts[RIGHT_COUNT][32];
    format_right(row, texts);
    for (int k = 0; k < RIGHT_COUNT; k++)
        put_right(out, texts[k], k == RIGHT_COUNT - 1);
}

#define NAME_WIDTH_MIN 10
#define RIGHT_WIDTH 10 /* of a column of put_right */

/* Take from the widest names until the table is no wider than columns. */
static void fit_widths(size_t widths[NAME_COUNT], size_t columns)
{
    size_t all = RIGHT_COUNT * RIGHT_WIDTH;
    for (int k = 0; k < NAME_COUNT; k++)
        all += widths[k] + 2;
    while (all > columns) {
        int widest = 0;
        for (int k = 1; k < NAME_COUNT; k++)
            widest = widths[k] > widths[widest] ? k : widest;
        if (widths[widest] <= NAME_WIDTH_MIN)
            return;
        widths[widest]--;
        all--;
    }
}

static void print_table(const struct query_rows *rows, size_t count, size_t columns,
                        struct query_buf *out)
{
    static const char *const names[NAME_COUNT] = {"SERVICE", "OPERATION", "RESOURCE"};
    static const char *const heads[RIGHT_COUNT] = {"RATE", "ERRORS", "P50", "P95", "P99", "MAX"};
    size_t widths[NAME_COUNT];
    for (int k = 0; k < NAME_COUNT; k++)
        widths[k] = column_width(rows, count, k, names[k]);
    if (columns)
        fit_widths(widths, columns);
    for (int k = 0; k < NAME_COUNT; k++)
        query_buf_put_format(out, "%-*s  ", (int)widths[k], names[k]);
    for (int k = 0; k < RIGHT_COUNT; k++)
        put_right(out, heads[k], k == RIGHT_COUNT - 1);
    for (size_t i = 0; i < count; i++)
        print_row(&rows->rows[i], widths, columns != 0, out);
}

static void put_json_number(struct query_buf *out, const char *name, double value)
{
    query_buf_put_format(out, ",\"%s\":", name);
    if (isfinite(value))
        query_buf_put_double(out, value);
    else
        query_buf_put_text(out, "null");
}

static void print_json(const struct query_rows *rows, size_t count, struct query_buf *out)
{
    static const char *const names[NAME_COUNT] = {"service", "operation", "resource"};
    static const char *const columns[QUERY_COLUMN_COUNT] = {"calls", "rate", "errors", "p50",
                                                            "p95",   "p99",  "max"};
    query_buf_put_char(out, '[');
    for (size_t i = 0; i < count; i++) {
        const struct row *const row = &rows->rows[i];
        query_buf_put_text(out, i ? ",\n " : "");
        for (int k = 0; k < NAME_COUNT; k++) {
            query_buf_put_format(out, "%s\"%s\":", k ? "," : "{", names[k]);
            query_buf_put_json_string(out, row->names[k], strlen(row->names[k]));
        }
        for (int k = 0; k < QUERY_COLUMN_COUNT; k++)
            put_json_number(out, columns[k], row->values[k]);
        query_buf_put_char(out, '}');
    }
    query_buf_put_text(out, "]\n");
}

void cli_query_rows_print(struct query_rows *rows, const struct query_opts *opts,
                          struct query_buf *out)
{
    enum query_sort sort = opts->sort;
    if (rows->count > 1)
        qsort_r(rows->rows, rows->count, sizeof *rows->rows, compare_rows, &sort);
    const size_t count =
        opts->limit && opts->limit < rows->count ? (size_t)opts->limit : rows->count;
    if (opts->json)
        print_json(rows, count, out);
    else if (count == 0)
        query_buf_put_format(out, "Nothing in the last %s.\n", opts->last);
    else
        print_table(rows, count, opts->columns, out);
}

/* --- an expression's answer ------------------------------------------------------------------ */

static void put_series(const struct cli_json_value *metric, struct query_buf *out)
{
    const struct weir_bytes name = cli_json_text(cli_json_get(metric, "__name__"));
    if (name.ptr)
        (void)cli_show_plain(out, name.ptr, name.len);
    query_buf_put_char(out, '{');
    bool some = false;
    const struct cli_json_value *key = cli_json_first(metric);
    while (key) {
        const struct cli_json_value *const value = cli_json_next(metric, key);
        const struct weir_bytes label = cli_json_text(key);
        if (!cli_json_text_is(key, "__name__") && label.ptr) {
            const struct weir_bytes text = cli_json_text(value);
            query_buf_put_text(out, some ? ", " : "");
            (void)cli_show_plain(out, label.ptr, label.len);
            query_buf_put_text(out, "=\"");
            (void)cli_show_plain(out, text.ptr ? text.ptr : "", text.len);
            query_buf_put_char(out, '"');
            some = true;
        }
        key = value ? cli_json_next(metric, value) : NULL;
    }
    query_buf_put_text(out, "} ");
}

static bool put_sample(const struct cli_json_value *sample, struct query_buf *out)
{
    const struct cli_json_value *const metric = cli_json_get(sample, "metric");
    if (!metric || metric->type != CLI_JSON_OBJECT)
        return false;
    put_series(metric, out);
    const struct weir_bytes value = cli_json_text(cli_json_at(cli_json_get(sample, "value"), 1));
    if (value.ptr) {
        (void)cli_show_plain(out, value.ptr, value.len);
        query_buf_put_char(out, '\n');
        return true;
    }
    const struct cli_json_value *const h = cli_json_at(cli_json_get(sample, "histogram"), 1);
    const struct weir_bytes count = cli_json_text(cli_json_get(h, "count"));
    const struct weir_bytes sum = cli_json_text(cli_json_get(h, "sum"));
    const struct cli_json_value *const buckets = cli_json_get(h, "buckets");
    if (!count.ptr || !sum.ptr || !buckets || buckets->type != CLI_JSON_ARRAY)
        return false;
    query_buf_put_text(out, "count=");
    (void)cli_show_plain(out, count.ptr, count.len);
    query_buf_put_text(out, " sum=");
    (void)cli_show_plain(out, sum.ptr, sum.len);
    query_buf_put_format(out, " buckets=%zu\n", buckets->v.count);
    return true;
}

int cli_query_print_data(const struct cli_json_value *data, struct query_buf *out)
{
    const struct cli_json_value *const result = cli_json_get(data, "result");
    if (!result || result->type != CLI_JSON_ARRAY)
        return WEIR_EFORMAT;
    if (!cli_json_text_is(cli_json_get(data, "resultType"), "vector")) {
        const struct weir_bytes text = cli_json_text(cli_json_at(result, 1));
        if (!text.ptr)
            return WEIR_EFORMAT;
        (void)cli_show_plain(out, text.ptr, text.len);
        query_buf_put_char(out, '\n');
        return WEIR_OK;
    }
    for (const struct cli_json_value *s = cli_json_first(result); s; s = cli_json_next(result, s)) {
        if (!put_sample(s, out))
            return WEIR_EFORMAT;
    }
    return WEIR_OK;
}
