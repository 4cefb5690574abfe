/* SPDX-License-Identifier: Apache-2.0 */
#ifndef AGENT_QUERY_EVAL_H
#define AGENT_QUERY_EVAL_H
/*
 * eval: a checked expression and a source to a value at one time.
 *
 * Every row of the source answers as series of two metrics, a counter of calls and a
 * histogram-valued counter of durations, once for STATUS_CODE_UNSET and once for
 * STATUS_CODE_ERROR. docs/internals/query.md has the meaning of each construct.
 *
 * First the tree is walked for what is not answered yet, so that a refusal depends on the text
 * alone; then it is evaluated bottom up. A vector is always sorted by its labels.
 *
 * Threads: one evaluation on one thread. Memory: the arena for labels and samples, a counted heap
 * for sketches, which query_eval_done frees; both under ceilings.
 */
#include "ast.h"
#include "source.h"

#include <stdbool.h>
#include <stdint.h>

#define QUERY_CALLS_NAME "traces_span_metrics_calls_total"
#define QUERY_DURATION_NAME "traces_span_metrics_duration_seconds"

#define QUERY_SERIES_MAX ((size_t)200 * 1000)               /* rows matched by one selector */
#define QUERY_WINDOWS_MAX ((uint64_t)50 * 1000 * 1000)      /* visited by one query */
#define QUERY_REGEX_STEPS_MAX ((uint64_t)500 * 1000 * 1000) /* of one query */
#define QUERY_ARENA_MAX_BYTES ((size_t)256 * 1024 * 1024)
#define QUERY_SKETCHES_MAX_BYTES ((size_t)256 * 1024 * 1024)
#define QUERY_LOOKBACK_NS ((int64_t)300 * 1000 * 1000 * 1000)

/*
 * A float, or (sketch not NULL) a histogram whose weights and sum count times / over each: two
 * numbers, so that rate's count is the count divided by the seconds, as rate of a counter is.
 */
struct query_sample {
    const struct weir_label *labels; /* sorted by name; __name__ among them if there is one */
    size_t label_count;
    double value;
    const struct weir_sketch *sketch;
    double times;
    double over;
};

struct query_vector {
    struct query_sample *samples; /* sorted by labels */
    size_t count;
};

struct query_value {
    enum query_type type; /* SCALAR, STRING or VECTOR */
    double scalar;
    struct weir_bytes string;
    struct query_vector vector;
};

/* "PromQL warning: ... (1:5)": beside the data of an answer. */
struct query_note {
    struct query_note *next;
    bool warning; /* else an info */
    struct weir_bytes text;
};

struct query_owned_sketch {
    struct query_owned_sketch *next;
    struct weir_sketch *sketch;
};

struct query_eval {
    struct query_arena *arena;
    const struct query_source *source;
    struct weir_bytes text; /* of the query, for positions */
    int64_t time_ms;
    int64_t lookback_ns;
    struct query_error error;
    struct query_note *notes;
    size_t note_count;
    struct query_heap heap;
    struct query_owned_sketch *sketches;
    uint64_t regex_steps;
    uint64_t windows;
};

/* source may be NULL for an expression without selectors. */
void query_eval_init(struct query_eval *eval, struct query_arena *arena,
                     const struct query_source *source, struct weir_bytes text, int64_t time_ms);
void query_eval_done(struct query_eval *eval); /* values lose their sketches */

/* False: eval->error says why. root was checked by query_check. */
bool query_eval_run(struct query_eval *eval, const struct query_node *root,
                    struct query_value *ret_value);

/* --- between the files of the evaluator ------------------------------------------------------- */

bool query_supported(struct query_eval *eval, const struct query_node *root);

bool query_eval_node(struct query_eval *eval, const struct query_node *node,
                     struct query_value *ret_value);
bool query_eval_call(struct query_eval *eval, const struct query_node *node,
                     struct query_value *ret_value);
bool query_eval_aggregate(struct query_eval *eval, const struct query_node *node,
                          struct query_value *ret_value);
bool query_eval_binary(struct query_eval *eval, const struct query_node *node,
                       struct query_value *ret_value);

/* The running totals of a selector at the time of evaluation. */
bool query_select_totals(struct query_eval *eval, const struct query_node *selector,
                         struct query_vector *ret_vector);
/* What came in the range's span. *ret_seconds is the span. */
bool query_select_range(struct query_eval *eval, const struct query_node *range,
                        struct query_vector *ret_vector, double *ret_seconds);
/* May the selector match this metric? */
bool query_selects_metric(struct query_eval *eval, const struct query_node *selector,
                          const char *metric);

/* An empty sketch that the evaluation frees; NULL with the error set. */
struct weir_sketch *query_new_sketch(struct query_eval *eval);
/* dst += src, faults in the error. */
bool query_merge_sketch(struct query_eval *eval, struct weir_sketch *dst,
                        const struct weir_sketch *src);

int query_bytes_compare(struct weir_bytes a, struct weir_bytes b);
/* Without the parentheses around it. */
const struct query_node *query_unwrap(const struct query_node *node);
/* Labels compared by name and value, in order; the shorter first. */
int query_labels_compare(const struct query_sample *a, const struct query_sample *b);
void query_vector_sort(struct query_vector *vector);
/* Take __name__ off every sample, sort, and refuse two of the same labels. */
bool query_vector_drop_names(struct query_eval *eval, struct query_vector *vector);

/* A weight or sum of the sample's sketch as it counts in the sample. */
double query_scaled(const struct query_sample *sample, double value);
/* IEEE 754 division, by zero too. */
double query_divide(double a, double b);
/* The whole of a sketch's weight. */
double query_weight(uint64_t weight);

/* Keep one note of each text, at most ten of all. */
void query_eval_note(struct query_eval *eval, bool warning, size_t at, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
bool query_eval_memory(struct query_eval *eval); /* false, with the error set */
#endif
