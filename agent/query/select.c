/* SPDX-License-Identifier: Apache-2.0 */
/*
 * select: a selector over the source. One scan collects, for each row that matches, the weight and
 * the merged sketch of either status; then each becomes the samples of the metrics asked for.
 *
 * Matchers on __name__ and status_code are decided once a query, the others once a row: a row has
 * neither label of its own.
 *
 * A running total is shown while its row had a window within the look-back: Weir writes only the
 * windows a row was touched in, so that is when its counter was last seen. It is shown for a
 * status that ever had weight.
 *
 * Threads: see eval.h. Memory: rows in the arena, found by id in an open-addressed table.
 */
#include "eval.h"

#include <errno.h>
#include <math.h>
#include <string.h>

enum { METRIC_CALLS, METRIC_DURATION, METRIC_COUNT };
enum { STATUS_UNSET, STATUS_ERROR, STATUS_COUNT };

#define BYTES(literal)                                                                             \
    {                                                                                              \
        .ptr = (literal), .len = sizeof(literal) - 1                                               \
    }

static const struct weir_bytes metric_names[METRIC_COUNT] = {BYTES(QUERY_CALLS_NAME),
                                                             BYTES(QUERY_DURATION_NAME)};
static const struct weir_bytes status_names[STATUS_COUNT] = {BYTES("STATUS_CODE_UNSET"),
                                                             BYTES("STATUS_CODE_ERROR")};
static const struct weir_bytes name_label = BYTES("__name__");
static const struct weir_bytes status_label = BYTES("status_code");

struct part { /* one status of one row */
    struct weir_u128 weight;
    struct weir_sketch *sketch;
};

struct row {
    uint64_t id;
    const struct weir_label *labels;
    size_t label_count;
    bool seen; /* had a window within the look-back */
    struct part parts[STATUS_COUNT];
};

struct selection {
    struct query_eval *eval;
    const struct query_matcher *matchers;
    bool metric_ok[METRIC_COUNT];
    bool status_ok[STATUS_COUNT];
    int64_t seen_after_ns;
    struct row **slots; /* a power of two of them, at most half in use */
    size_t slot_count;
    size_t row_count;
    struct row *last; /* windows of one row mostly follow each other */
};

static bool bytes_equal(struct weir_bytes a, struct weir_bytes b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.ptr, b.ptr, a.len) == 0);
}

/* --- matching -------------------------------------------------------------------------------- */

static bool regex_matches(struct query_eval *eval, const struct query_matcher *m,
                          struct weir_bytes value)
{
    const int found = query_regex_match(m->regex, value, &eval->regex_steps);
    if (found < 0)
        return query_fail(&eval->error, QUERY_FAULT_EXECUTION, m->at,
                          "matching the regular expression takes too long");
    return found == 1;
}

static bool matches(struct query_eval *eval, const struct query_matcher *m, struct weir_bytes value)
{
    switch (m->kind) {
    case QUERY_MATCH_EQ:
        return bytes_equal(m->value, value);
    case QUERY_MATCH_NE:
        return !bytes_equal(m->value, value);
    case QUERY_MATCH_RE:
        return regex_matches(eval, m, value);
    case QUERY_MATCH_NRE:
        return !regex_matches(eval, m, value);
    }
    return false;
}

/* Do all matchers on this label take the value? */
static bool label_ok(struct query_eval *eval, const struct query_matcher *matchers,
                     struct weir_bytes label, struct weir_bytes value)
{
    for (const struct query_matcher *m = matchers; m; m = m->next) {
        if (bytes_equal(m->name, label) && !matches(eval, m, value))
            return false;
    }
    return true;
}

static struct weir_bytes label_value(const struct query_series *series, struct weir_bytes name)
{
    for (size_t i = 0; i < series->label_count; i++) {
        if (bytes_equal(series->labels[i].name, name))
            return series->labels[i].value;
    }
    return (struct weir_bytes){.ptr = "", .len = 0}; /* a missing label is an empty one */
}

static struct row *find(const struct selection *s, uint64_t id, size_t *ret_slot)
{
    /* Fibonacci hashing spreads ids that count up. */
    size_t slot = (size_t)((id * UINT64_C(0x9E3779B97F4A7C15)) >> 20) & (s->slot_count - 1);
    while (s->slots[slot] && s->slots[slot]->id != id)
        slot = (slot + 1) & (s->slot_count - 1);
    *ret_slot = slot;
    return s->slots[slot];
}

static bool grow(struct selection *s)
{
    struct selection larger = *s;
    larger.slot_count = s->slot_count ? s->slot_count * 2 : 64;
    larger.slots = query_arena_take_array(s->eval->arena, larger.slot_count, sizeof *larger.slots);
    if (!larger.slots)
        return query_eval_memory(s->eval);
    for (size_t i = 0; i < s->slot_count; i++) {
        if (s->slots[i]) {
            size_t slot;
            (void)find(&larger, s->slots[i]->id, &slot);
            larger.slots[slot] = s->slots[i];
        }
    }
    *s = larger;
    return true;
}

static bool add_row(struct selection *s, const struct query_series *series)
{
    if ((s->row_count + 1) * 2 > s->slot_count && !grow(s))
        return false;
    size_t slot;
    if (find(s, series->id, &slot))
        return true;
    if (s->row_count == QUERY_SERIES_MAX)
        return query_fail(&s->eval->error, QUERY_FAULT_EXECUTION, QUERY_NOWHERE,
                          "the selector matches more than %zu series", QUERY_SERIES_MAX);
    struct row *const row = query_arena_take(s->eval->arena, sizeof *row);
    if (!row)
        return query_eval_memory(s->eval);
    row->id = series->id;
    row->labels = series->labels;
    row->label_count = series->label_count;
    s->slots[slot] = row;
    s->row_count++;
    return true;
}

static bool on_match(void *ctx, const struct query_series *series)
{
    struct selection *const s = ctx;
    if (s->eval->error.fault != QUERY_FAULT_NONE)
        return false;
    for (const struct query_matcher *m = s->matchers; m; m = m->next) {
        if (bytes_equal(m->name, name_label) || bytes_equal(m->name, status_label))
            continue;
        if (!matches(s->eval, m, label_value(series, m->name)))
            return false;
    }
    return s->eval->error.fault == QUERY_FAULT_NONE && add_row(s, series);
}

/* --- collecting ------------------------------------------------------------------------------ */

static struct weir_u128 add_weight(struct weir_u128 a, struct weir_u128 b)
{
    struct weir_u128 sum = {.lo = 0, .hi = a.hi + b.hi};
    sum.hi += __builtin_add_overflow(a.lo, b.lo, &sum.lo) ? 1 : 0;
    return sum;
}

static struct weir_u128 subtract_weight(struct weir_u128 a, struct weir_u128 b)
{
    struct weir_u128 rest = {.lo = 0, .hi = 0};
    if (a.hi < b.hi || (a.hi == b.hi && a.lo < b.lo))
        return rest;
    rest.hi = a.hi - b.hi - (__builtin_sub_overflow(a.lo, b.lo, &rest.lo) ? 1 : 0);
    return rest;
}

/* Exact for whole weights up to 2^53. */
static double weight_value(struct weir_u128 weight)
{
    const double high = ldexp((double)weight.hi, 44);
    const double whole = (double)(weight.lo >> 20);
    const double part = (double)(weight.lo & (WEIR_WEIGHT_ONE - 1));
    return high + whole + ldexp(part, -20);
}

static struct part *add_part(struct row *row, int status, struct weir_u128 weight)
{
    struct part *const part = &row->parts[status];
    part->weight = add_weight(part->weight, weight);
    return part;
}

/* Where sketches of a part are merged; NULL: they are not asked for, or memory is out. */
static struct weir_sketch *sketch_of(struct selection *s, struct part *part, int status)
{
    if (!s->metric_ok[METRIC_DURATION] || !s->status_ok[status])
        return NULL;
    if (!part->sketch)
        part->sketch = query_new_sketch(s->eval);
    return part->sketch;
}

static bool failed(const struct selection *s)
{
    return s->eval->error.fault != QUERY_FAULT_NONE;
}

static bool add_sketch(struct selection *s, struct part *part, int status,
                       const struct weir_sketch *sketch)
{
    if (!sketch || weir_sketch_weight(sketch) == 0)
        return true;
    struct weir_sketch *const dst = sketch_of(s, part, status);
    return dst ? query_merge_sketch(s->eval, dst, sketch) : !failed(s);
}

static bool add_weights(struct selection *s, struct row *row, struct weir_u128 hits,
                        struct weir_u128 errors, const struct weir_row *from)
{
    struct part *const ok = add_part(row, STATUS_UNSET, subtract_weight(hits, errors));
    struct part *const error = add_part(row, STATUS_ERROR, errors);
    return add_sketch(s, ok, STATUS_UNSET, from->ok) &&
           add_sketch(s, error, STATUS_ERROR, from->error);
}

/* 0, -EIO (the bytes are damaged), -ECANCELED (the evaluation failed, and says why). */
static int add_form(struct selection *s, struct part *part, int status, struct weir_bytes form)
{
    struct weir_sketch *const dst = form.len ? sketch_of(s, part, status) : NULL;
    if (!dst)
        return failed(s) ? -ECANCELED : 0;
    const int r = weir_sketch_merge_encoded(dst, form.ptr, form.len);
    if (r == WEIR_OK)
        return 0;
    if (r == WEIR_ENOMEM) {
        (void)query_eval_memory(s->eval);
        return -ECANCELED;
    }
    if (r != WEIR_ERANGE)
        return -EIO;
    (void)query_fail(&s->eval->error, QUERY_FAULT_INTERNAL, QUERY_NOWHERE,
                     "sketches do not merge: %s", weir_strerror(r));
    return -ECANCELED;
}

static int add_forms(struct selection *s, struct row *row, const struct query_window *window)
{
    const int r = add_form(s, &row->parts[STATUS_UNSET], STATUS_UNSET, window->ok_form);
    return r ? r : add_form(s, &row->parts[STATUS_ERROR], STATUS_ERROR, window->error_form);
}

static struct row *row_of(struct selection *s, const struct query_series *series)
{
    if (!s->last || s->last->id != series->id) {
        size_t slot;
        s->last = s->slot_count ? find(s, series->id, &slot) : NULL;
    }
    return s->last;
}

static int on_base(void *ctx, const struct query_series *series, const struct query_base *base)
{
    struct selection *const s = ctx;
    struct row *const row = row_of(s, series);
    if (!row)
        return 0;
    return add_weights(s, row, base->hits, base->errors, &base->row) ? 0 : -ECANCELED;
}

static int on_window(void *ctx, const struct query_series *series,
                     const struct query_window *window)
{
    struct selection *const s = ctx;
    if (++s->eval->windows > QUERY_WINDOWS_MAX) {
        (void)query_fail(&s->eval->error, QUERY_FAULT_EXECUTION, QUERY_NOWHERE,
                         "query processing would load too many windows: more than %llu",
                         (unsigned long long)QUERY_WINDOWS_MAX);
        return -ECANCELED;
    }
    struct row *const row = row_of(s, series);
    if (!row)
        return 0;
    row->seen = row->seen || window->end_ns > s->seen_after_ns;
    const struct weir_u128 hits = {.lo = window->row.hits};
    const struct weir_u128 errors = {.lo = window->row.errors};
    return add_weights(s, row, hits, errors, &window->row) ? add_forms(s, row, window) : -ECANCELED;
}

static bool scan(struct selection *s, const struct query_select *select)
{
    const struct query_visitor visitor = {
        .ctx = s, .match = on_match, .base = on_base, .window = on_window};
    const struct query_source *const source = s->eval->source;
    const int r = source ? source->scan(source->ctx, select, &visitor) : 0;
    if (s->eval->error.fault != QUERY_FAULT_NONE)
        return false;
    if (r != 0) {
        const char *const why = r < -1000 ? weir_strerror(r) : strerrordesc_np(-r);
        return query_fail(&s->eval->error, QUERY_FAULT_INTERNAL, QUERY_NOWHERE,
                          "reading the store failed: %s", why ? why : "unknown error");
    }
    return true;
}

/* --- samples --------------------------------------------------------------------------------- */

/* The row's labels with the two more, sorted. */
static const struct weir_label *sample_labels(struct query_eval *eval, const struct row *row,
                                              int metric, int status)
{
    struct weir_label *const labels =
        query_arena_take_array(eval->arena, row->label_count + 2, sizeof *labels);
    if (!labels) {
        (void)query_eval_memory(eval);
        return NULL;
    }
    const struct weir_label more[2] = {{.name = name_label, .value = metric_names[metric]},
                                       {.name = status_label, .value = status_names[status]}};
    size_t taken = 0;
    size_t n = 0;
    for (size_t i = 0; i < row->label_count; i++) {
        while (taken < 2 && query_bytes_compare(more[taken].name, row->labels[i].name) < 0)
            labels[n++] = more[taken++];
        labels[n++] = row->labels[i];
    }
    while (taken < 2)
        labels[n++] = more[taken++];
    return labels;
}

static bool add_sample(struct selection *s, const struct row *row, int metric, int status,
                       struct query_vector *vector)
{
    const struct part *const part = &row->parts[status];
    if (!s->metric_ok[metric] || !s->status_ok[status])
        return true;
    if (part->weight.lo == 0 && part->weight.hi == 0)
        return true;
    if (metric == METRIC_DURATION && !part->sketch)
        return true;
    const struct weir_label *const labels = sample_labels(s->eval, row, metric, status);
    if (!labels)
        return false;
    vector->samples[vector->count++] =
        (struct query_sample){.labels = labels,
                              .label_count = row->label_count + 2,
                              .value = metric == METRIC_CALLS ? weight_value(part->weight) : 0,
                              .sketch = metric == METRIC_DURATION ? part->sketch : NULL,
                              .times = 1,
                              .over = 1};
    return true;
}

static bool make_vector(struct selection *s, struct query_vector *vector)
{
    *vector = (struct query_vector){.count = 0};
    if (s->row_count == 0)
        return true;
    vector->samples = query_arena_take_array(
        s->eval->arena, s->row_count * METRIC_COUNT * STATUS_COUNT, sizeof *vector->samples);
    if (!vector->samples)
        return query_eval_memory(s->eval);
    for (size_t i = 0; i < s->slot_count; i++) {
        const struct row *const row = s->slots[i];
        if (!row || !row->seen)
            continue;
        for (int k = 0; k < METRIC_COUNT * STATUS_COUNT; k++) {
            if (!add_sample(s, row, k / STATUS_COUNT, k % STATUS_COUNT, vector))
                return false;
        }
    }
    query_vector_sort(vector);
    return true;
}

/* --- times ----------------------------------------------------------------------------------- */

#define MS_NS ((int64_t)1000 * 1000)

/* Spans are at most 9e9 s, so neither conversion can leave int64. */
static int64_t span_ns(double seconds)
{
    return (int64_t)llround(seconds * 1000) * MS_NS;
}

/* The time a selector looks at: evaluation time or @, less offset; clamped. */
static int64_t look_at_ns(const struct query_eval *eval, const struct query_shift *shift)
{
    int64_t at;
    if (shift->at_kind == QUERY_AT_TIME)
        at = span_ns(shift->at_seconds);
    else if (__builtin_mul_overflow(eval->time_ms, MS_NS, &at))
        at = eval->time_ms < 0 ? INT64_MIN : INT64_MAX;
    const int64_t offset = shift->offset.given ? span_ns(shift->offset.seconds) : 0;
    int64_t moved;
    if (__builtin_sub_overflow(at, offset, &moved))
        moved = offset > 0 ? INT64_MIN : INT64_MAX;
    return moved;
}

static int64_t before_ns(int64_t at, int64_t span)
{
    int64_t before;
    return __builtin_sub_overflow(at, span, &before) ? INT64_MIN : before;
}

static void selection_init(struct selection *s, struct query_eval *eval,
                           const struct query_selector *selector)
{
    *s = (struct selection){.eval = eval, .matchers = selector->matchers};
    for (int i = 0; i < METRIC_COUNT; i++)
        s->metric_ok[i] = label_ok(eval, selector->matchers, name_label, metric_names[i]);
    for (int i = 0; i < STATUS_COUNT; i++)
        s->status_ok[i] = label_ok(eval, selector->matchers, status_label, status_names[i]);
}

static bool collect(struct selection *s, const struct query_select *select,
                    struct query_vector *ret_vector)
{
    *ret_vector = (struct query_vector){.count = 0};
    const bool some = (s->metric_ok[METRIC_CALLS] || s->metric_ok[METRIC_DURATION]) &&
                      (s->status_ok[STATUS_UNSET] || s->status_ok[STATUS_ERROR]);
    if (s->eval->error.fault != QUERY_FAULT_NONE)
        return false;
    return !some || (scan(s, select) && make_vector(s, ret_vector));
}

bool query_select_totals(struct query_eval *eval, const struct query_node *selector,
                         struct query_vector *ret_vector)
{
    struct selection s;
    selection_init(&s, eval, &selector->u.selector);
    const int64_t at = look_at_ns(eval, &selector->u.selector.shift);
    s.seen_after_ns = before_ns(at, eval->lookback_ns);
    const struct query_select select = {.after_ns = INT64_MIN,
                                        .until_ns = at,
                                        .totals = true,
                                        .coarse_until_ns = s.seen_after_ns,
                                        .counts_only = !s.metric_ok[METRIC_DURATION]};
    return collect(&s, &select, ret_vector);
}

bool query_select_range(struct query_eval *eval, const struct query_node *range,
                        struct query_vector *ret_vector, double *ret_seconds)
{
    const struct query_selector *const selector = &range->u.range.selector->u.selector;
    struct selection s;
    selection_init(&s, eval, selector);
    const int64_t at = look_at_ns(eval, &selector->shift);
    const int64_t span = span_ns(range->u.range.span.seconds);
    const struct query_select select = {.after_ns = before_ns(at, span),
                                        .until_ns = at,
                                        .coarse_until_ns = at,
                                        .counts_only = !s.metric_ok[METRIC_DURATION]};
    s.seen_after_ns = INT64_MIN;
    *ret_seconds = (double)llround(range->u.range.span.seconds * 1000) / 1000;
    return collect(&s, &select, ret_vector);
}

bool query_selects_metric(struct query_eval *eval, const struct query_node *selector,
                          const char *metric)
{
    const struct weir_bytes name = {.ptr = metric, .len = strlen(metric)};
    return label_ok(eval, selector->u.selector.matchers, name_label, name);
}
