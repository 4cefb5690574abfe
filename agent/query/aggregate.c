/* SPDX-License-Identifier: Apache-2.0 */
/*
 * aggregate: sum and max, by or without labels. Each sample gets its group's labels, the samples
 * are sorted by them (and by their first order, so that sums are added in the same order each
 * time), and each run of equal labels becomes one sample.
 *
 * Histograms are summed by merging their sketches; max leaves them out, as Prometheus does.
 *
 * Threads: see eval.h. Memory: see eval.h.
 */
#include "eval.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct member {
    struct query_sample key; /* the group's labels, the sample's value */
    size_t order;
};

static bool is_named(const struct query_aggregate *aggregate, struct weir_bytes label)
{
    for (const struct query_name *n = aggregate->names; n; n = n->next) {
        if (n->name.len == label.len && memcmp(n->name.ptr, label.ptr, label.len) == 0)
            return true;
    }
    return false;
}

static bool keeps(const struct query_aggregate *aggregate, struct weir_bytes label)
{
    switch (aggregate->grouping) {
    case QUERY_GROUP_NONE:
        return false;
    case QUERY_GROUP_BY:
        return is_named(aggregate, label);
    case QUERY_GROUP_WITHOUT:
        return !is_named(aggregate, label) &&
               !(label.len == 8 && memcmp(label.ptr, "__name__", 8) == 0);
    }
    return false;
}

static bool group_labels(struct query_eval *eval, const struct query_aggregate *aggregate,
                         struct query_sample *sample)
{
    struct weir_label *const labels =
        query_arena_take_array(eval->arena, sample->label_count, sizeof *labels);
    if (!labels)
        return query_eval_memory(eval);
    size_t n = 0;
    for (size_t i = 0; i < sample->label_count; i++) {
        if (keeps(aggregate, sample->labels[i].name))
            labels[n++] = sample->labels[i];
    }
    sample->labels = labels;
    sample->label_count = n;
    return true;
}

static int compare_members(const void *a, const void *b)
{
    const struct member *const x = a;
    const struct member *const y = b;
    const int order = query_labels_compare(&x->key, &y->key);
    return order ? order : (x->order > y->order) - (x->order < y->order);
}

/* Neumaier's sum: the rounding of each addition is kept beside the sum. */
static double sum_floats(const struct member *members, size_t count)
{
    double sum = 0;
    double rest = 0;
    for (size_t i = 0; i < count; i++) {
        const double v = members[i].key.value;
        const double next = sum + v;
        rest += fabs(sum) >= fabs(v) ? (sum - next) + v : (v - next) + sum;
        sum = next;
    }
    return isfinite(sum) && isfinite(rest) ? sum + rest : sum;
}

/* NaN only where there is nothing else. */
static double max_floats(const struct member *members, size_t count)
{
    double max = members[0].key.value;
    for (size_t i = 1; i < count; i++) {
        const double v = members[i].key.value;
        if (v > max || isnan(max))
            max = v;
    }
    return max;
}

static bool sum_histograms(struct query_eval *eval, const struct query_node *node,
                           const struct member *members, size_t count, struct query_sample *ret)
{
    *ret = members[0].key;
    if (count == 1)
        return true;
    struct weir_sketch *const all = query_new_sketch(eval);
    if (!all)
        return false;
    for (size_t i = 0; i < count; i++) {
        /* One selector gives all samples of a vector, hence one scale. */
        if (members[i].key.times != ret->times || members[i].key.over != ret->over)
            return query_fail(&eval->error, QUERY_FAULT_UNSUPPORTED, node->at,
                              "sum of histograms of different scales is not supported yet");
        if (!query_merge_sketch(eval, all, members[i].key.sketch))
            return false;
    }
    ret->sketch = all;
    return true;
}

static size_t count_histograms(const struct member *members, size_t count)
{
    size_t n = 0;
    for (size_t i = 0; i < count; i++)
        n += members[i].key.sketch ? 1 : 0;
    return n;
}

/* One group to one sample; *ret_some is false for a group that gives none. */
static bool fold(struct query_eval *eval, const struct query_node *node,
                 const struct member *members, size_t count, struct query_sample *ret,
                 bool *ret_some)
{
    const size_t histograms = count_histograms(members, count);
    *ret = members[0].key;
    *ret_some = true;
    if (histograms == 0) {
        ret->value = node->u.aggregate.op == QUERY_TOKEN_SUM ? sum_floats(members, count)
                                                             : max_floats(members, count);
        return true;
    }
    if (histograms == count)
        return sum_histograms(eval, node, members, count, ret);
    *ret_some = false;
    query_eval_note(eval, true, node->u.aggregate.inner->at,
                    "encountered a mix of histograms and floats for aggregation");
    return true;
}

/* max leaves histograms out before it groups. */
static void leave_out_histograms(struct query_eval *eval, const struct query_node *node,
                                 struct query_vector *vector)
{
    size_t kept = 0;
    for (size_t i = 0; i < vector->count; i++) {
        if (vector->samples[i].sketch)
            query_eval_note(eval, false, node->u.aggregate.inner->at,
                            "ignored histogram in %s aggregation",
                            query_token_text(node->u.aggregate.op));
        else
            vector->samples[kept++] = vector->samples[i];
    }
    vector->count = kept;
}

static bool fold_groups(struct query_eval *eval, const struct query_node *node,
                        const struct member *members, struct query_vector *vector)
{
    size_t groups = 0;
    for (size_t from = 0; from < vector->count;) {
        size_t to = from + 1;
        while (to < vector->count &&
               query_labels_compare(&members[from].key, &members[to].key) == 0)
            to++;
        bool some;
        struct query_sample folded;
        if (!fold(eval, node, members + from, to - from, &folded, &some))
            return false;
        if (some)
            vector->samples[groups++] = folded;
        from = to;
    }
    vector->count = groups;
    return true;
}

bool query_eval_aggregate(struct query_eval *eval, const struct query_node *node,
                          struct query_value *ret_value)
{
    const struct query_aggregate *const aggregate = &node->u.aggregate;
    struct query_vector *const vector = &ret_value->vector;
    if (!query_eval_node(eval, aggregate->inner, ret_value))
        return false;
    if (aggregate->op == QUERY_TOKEN_MAX)
        leave_out_histograms(eval, node, vector);
    if (vector->count == 0)
        return true;
    struct member *const members =
        query_arena_take_array(eval->arena, vector->count, sizeof *members);
    if (!members)
        return query_eval_memory(eval);
    for (size_t i = 0; i < vector->count; i++) {
        members[i] = (struct member){.key = vector->samples[i], .order = i};
        if (!group_labels(eval, aggregate, &members[i].key))
            return false;
    }
    qsort(members, vector->count, sizeof *members, compare_members);
    return fold_groups(eval, node, members, vector);
}
