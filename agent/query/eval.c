/* SPDX-License-Identifier: Apache-2.0 */
/*
 * eval: what all constructs share: dispatch, vectors, sketches, notes.
 *
 * Threads: see the header. Memory: see the header. The recursion is as deep as the tree.
 */
#include "eval.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NOTES_MAX 10

void query_eval_init(struct query_eval *eval, struct query_arena *arena,
                     const struct query_source *source, struct weir_bytes text, int64_t time_ms)
{
    *eval = (struct query_eval){.arena = arena,
                                .source = source,
                                .text = text,
                                .time_ms = time_ms,
                                .lookback_ns = QUERY_LOOKBACK_NS,
                                .heap = {.max_bytes = QUERY_SKETCHES_MAX_BYTES},
                                .regex_steps = QUERY_REGEX_STEPS_MAX};
}

void query_eval_done(struct query_eval *eval)
{
    for (struct query_owned_sketch *s = eval->sketches; s; s = s->next)
        weir_sketch_free(s->sketch);
    eval->sketches = NULL;
}

bool query_eval_memory(struct query_eval *eval)
{
    return query_fail_memory(&eval->error);
}

struct weir_sketch *query_new_sketch(struct query_eval *eval)
{
    struct query_owned_sketch *const owned = query_arena_take(eval->arena, sizeof *owned);
    const struct weir_sketch_opts opts = {
        .struct_size = sizeof opts, .alloc = query_heap_alloc(&eval->heap), .grid = WEIR_GRID_NS};
    if (!owned || weir_sketch_new(&opts, &owned->sketch) != WEIR_OK) {
        (void)query_eval_memory(eval);
        return NULL;
    }
    owned->next = eval->sketches;
    eval->sketches = owned;
    return owned->sketch;
}

bool query_merge_sketch(struct query_eval *eval, struct weir_sketch *dst,
                        const struct weir_sketch *src)
{
    const int r = weir_sketch_merge(dst, src);
    if (r == WEIR_OK)
        return true;
    if (r == WEIR_ENOMEM)
        return query_eval_memory(eval);
    return query_fail(&eval->error, QUERY_FAULT_INTERNAL, QUERY_NOWHERE,
                      "sketches do not merge: %s", weir_strerror(r));
}

void query_eval_note(struct query_eval *eval, bool warning, size_t at, const char *format, ...)
{
    struct query_buf buf;
    query_buf_init(&buf, 1024);
    char text[512];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    query_buf_put_format(&buf, "PromQL %s: %s (", warning ? "warning" : "info", text);
    query_put_position(eval->text, at, &buf);
    query_buf_put_char(&buf, ')');
    struct query_note **tail = &eval->notes;
    bool known = buf.err != 0;
    for (; *tail; tail = &(*tail)->next)
        known = known ||
                ((*tail)->text.len == buf.len && memcmp((*tail)->text.ptr, buf.ptr, buf.len) == 0);
    if (!known && eval->note_count < NOTES_MAX) {
        struct query_note *const note = query_arena_take(eval->arena, sizeof *note);
        char *const copy = query_arena_copy(eval->arena, buf.ptr, buf.len);
        if (note && copy) {
            note->warning = warning;
            note->text = (struct weir_bytes){.ptr = copy, .len = buf.len};
            *tail = note;
            eval->note_count++;
        }
    }
    query_buf_done(&buf);
}

double query_divide(double a, double b)
{
    /* Spelt out: the sanitizer that finds divisions by zero means integers too. */
    if (b != 0)
        return a / b;
    if (a == 0 || isnan(a))
        return (double)NAN;
    return (signbit(a) != 0) == (signbit(b) != 0) ? HUGE_VAL : -HUGE_VAL;
}

double query_scaled(const struct query_sample *sample, double value)
{
    return query_divide(value * sample->times, sample->over);
}

double query_weight(uint64_t weight)
{
    return ldexp((double)weight, -20);
}

/* --- vectors --------------------------------------------------------------------------------- */

int query_bytes_compare(struct weir_bytes a, struct weir_bytes b)
{
    const size_t len = a.len < b.len ? a.len : b.len;
    const int order = len ? memcmp(a.ptr, b.ptr, len) : 0;
    return order ? order : (a.len > b.len) - (a.len < b.len);
}

const struct query_node *query_unwrap(const struct query_node *node)
{
    while (node->kind == QUERY_NODE_PAREN)
        node = node->u.paren;
    return node;
}

int query_labels_compare(const struct query_sample *a, const struct query_sample *b)
{
    const size_t count = a->label_count < b->label_count ? a->label_count : b->label_count;
    for (size_t i = 0; i < count; i++) {
        int order = query_bytes_compare(a->labels[i].name, b->labels[i].name);
        if (order == 0)
            order = query_bytes_compare(a->labels[i].value, b->labels[i].value);
        if (order)
            return order;
    }
    return (a->label_count > b->label_count) - (a->label_count < b->label_count);
}

static int compare_samples(const void *a, const void *b)
{
    return query_labels_compare(a, b);
}

void query_vector_sort(struct query_vector *vector)
{
    if (vector->count > 1)
        qsort(vector->samples, vector->count, sizeof *vector->samples, compare_samples);
}

static bool drop_name(struct query_eval *eval, struct query_sample *sample)
{
    size_t at = 0;
    const struct weir_bytes name = {.ptr = "__name__", .len = 8};
    while (at < sample->label_count && query_bytes_compare(sample->labels[at].name, name) != 0)
        at++;
    if (at == sample->label_count)
        return true;
    struct weir_label *const labels =
        query_arena_take_array(eval->arena, sample->label_count - 1, sizeof *labels);
    if (!labels)
        return query_eval_memory(eval);
    memcpy(labels, sample->labels, at * sizeof *labels);
    memcpy(labels + at, sample->labels + at + 1, (sample->label_count - 1 - at) * sizeof *labels);
    sample->labels = labels;
    sample->label_count--;
    return true;
}

bool query_vector_drop_names(struct query_eval *eval, struct query_vector *vector)
{
    for (size_t i = 0; i < vector->count; i++) {
        if (!drop_name(eval, &vector->samples[i]))
            return false;
    }
    query_vector_sort(vector);
    for (size_t i = 1; i < vector->count; i++) {
        if (query_labels_compare(&vector->samples[i - 1], &vector->samples[i]) == 0)
            return query_fail(&eval->error, QUERY_FAULT_EXECUTION, QUERY_NOWHERE,
                              "vector cannot contain metrics with the same labelset");
    }
    return true;
}

/* --- nodes ----------------------------------------------------------------------------------- */

static bool eval_unary(struct query_eval *eval, const struct query_node *node,
                       struct query_value *ret_value)
{
    if (!query_eval_node(eval, node->u.unary.inner, ret_value))
        return false;
    if (!node->u.unary.minus)
        return true;
    if (ret_value->type == QUERY_TYPE_SCALAR) {
        ret_value->scalar = -ret_value->scalar;
        return true;
    }
    for (size_t i = 0; i < ret_value->vector.count; i++) {
        struct query_sample *const sample = &ret_value->vector.samples[i];
        sample->value = -sample->value;
        sample->times = -sample->times;
    }
    return query_vector_drop_names(eval, &ret_value->vector);
}

bool query_eval_node(struct query_eval *eval, const struct query_node *node,
                     struct query_value *ret_value)
{
    *ret_value = (struct query_value){.type = node->type};
    switch (node->kind) {
    case QUERY_NODE_NUMBER:
        ret_value->scalar = node->u.number;
        return true;
    case QUERY_NODE_STRING:
        ret_value->string = node->u.string;
        return true;
    case QUERY_NODE_SELECTOR:
        return query_select_totals(eval, node, &ret_value->vector);
    case QUERY_NODE_CALL:
        return query_eval_call(eval, node, ret_value);
    case QUERY_NODE_AGGREGATE:
        return query_eval_aggregate(eval, node, ret_value);
    case QUERY_NODE_BINARY:
        return query_eval_binary(eval, node, ret_value);
    case QUERY_NODE_UNARY:
        return eval_unary(eval, node, ret_value);
    case QUERY_NODE_PAREN:
        return query_eval_node(eval, node->u.paren, ret_value);
    case QUERY_NODE_RANGE:
    case QUERY_NODE_SUBQUERY:
        break; /* query_supported let none through but as arguments */
    }
    return query_fail(&eval->error, QUERY_FAULT_INTERNAL, node->at, "unexpected range vector");
}

bool query_eval_run(struct query_eval *eval, const struct query_node *root,
                    struct query_value *ret_value)
{
    return query_supported(eval, root) && query_eval_node(eval, root, ret_value);
}
