/* SPDX-License-Identifier: Apache-2.0 */
#ifndef AGENT_SELF_METRICS_H
#define AGENT_SELF_METRICS_H
/*
 * metrics: the Prometheus text format 0.0.4. Families are rows of tables: name, type, help, and
 * where in a struct of counters the value stands.
 * Threads: none inside.
 */
#include "self/text.h"

#define METRICS_CONTENT_TYPE "text/plain; version=0.0.4; charset=utf-8"

enum metrics_type { METRICS_COUNTER = 0, METRICS_GAUGE };

/* HELP and TYPE. The samples of a family must follow it, before the next family. */
void metrics_family(struct self_text *t, const char *name, enum metrics_type type,
                    const char *help);
/* Labels as alternating name and value, ended by NULL. */
void metrics_u64(struct self_text *t, const char *name, uint64_t v, ...) __attribute__((sentinel));
void metrics_double(struct self_text *t, const char *name, double v, ...) __attribute__((sentinel));

/* A family of one unlabelled sample: a uint64_t at offset in the struct of the table. */
struct metrics_row {
    const char *name;
    enum metrics_type type;
    const char *help;
    size_t offset;
};
void metrics_table(struct self_text *t, const struct metrics_row *rows, size_t count,
                   const void *from);
/* The same with one label: sample i of each family is from[i], an element of size bytes. */
struct metrics_set {
    const char *label;
    const char *const *values;
    const void *from;
    size_t stride;
    size_t count;
};
void metrics_table_set(struct self_text *t, const struct metrics_row *rows, size_t count,
                       const struct metrics_set *set);
#endif
