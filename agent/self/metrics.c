/* SPDX-License-Identifier: Apache-2.0 */
/* metrics: see metrics.h. Escapes: \ and newline in help, and " besides in label values. */
#include "self/metrics.h"

#include <math.h>
#include <stdarg.h>
#include <string.h>

static void put_escaped(struct self_text *t, const char *text, bool quotes)
{
    for (; *text; text++) {
        if (*text == '\\')
            self_text_puts(t, "\\\\");
        else if (*text == '\n')
            self_text_puts(t, "\\n");
        else if (*text == '"' && quotes)
            self_text_puts(t, "\\\"");
        else
            self_text_put(t, text, 1);
    }
}

void metrics_family(struct self_text *t, const char *name, enum metrics_type type, const char *help)
{
    self_text_puts(t, "# HELP ");
    self_text_puts(t, name);
    self_text_puts(t, " ");
    put_escaped(t, help, false);
    self_text_puts(t, "\n# TYPE ");
    self_text_puts(t, name);
    self_text_puts(t, type == METRICS_COUNTER ? " counter\n" : " gauge\n");
}

static void put_series(struct self_text *t, const char *name, va_list labels)
{
    const char *separator = "{";
    self_text_puts(t, name);
    for (;;) {
        const char *const label = va_arg(labels, const char *);
        const char *const value = label ? va_arg(labels, const char *) : NULL;
        if (!value)
            break;
        self_text_puts(t, separator);
        self_text_puts(t, label);
        self_text_puts(t, "=\"");
        put_escaped(t, value, true);
        self_text_puts(t, "\"");
        separator = ",";
    }
    self_text_puts(t, *separator == ',' ? "} " : " ");
}

void metrics_u64(struct self_text *t, const char *name, uint64_t v, ...)
{
    va_list labels;
    va_start(labels, v);
    put_series(t, name, labels);
    va_end(labels);
    self_text_u64(t, v);
    self_text_puts(t, "\n");
}

void metrics_double(struct self_text *t, const char *name, double v, ...)
{
    va_list labels;
    va_start(labels, v);
    put_series(t, name, labels);
    va_end(labels);
    if (isnan(v))
        self_text_puts(t, "NaN\n");
    else if (isinf(v))
        self_text_puts(t, v > 0 ? "+Inf\n" : "-Inf\n");
    else
        self_text_putf(t, "%.17g\n", v);
}

static uint64_t value_at(const void *from, size_t offset)
{
    uint64_t v;
    memcpy(&v, (const char *)from + offset, sizeof v);
    return v;
}

void metrics_table(struct self_text *t, const struct metrics_row *rows, size_t count,
                   const void *from)
{
    for (size_t i = 0; i < count; i++) {
        metrics_family(t, rows[i].name, rows[i].type, rows[i].help);
        metrics_u64(t, rows[i].name, value_at(from, rows[i].offset), (const char *)NULL);
    }
}

void metrics_table_set(struct self_text *t, const struct metrics_row *rows, size_t count,
                       const struct metrics_set *set)
{
    for (size_t i = 0; i < count; i++) {
        metrics_family(t, rows[i].name, rows[i].type, rows[i].help);
        for (size_t k = 0; k < set->count; k++) {
            const char *const from = (const char *)set->from + k * set->stride;
            metrics_u64(t, rows[i].name, value_at(from, rows[i].offset), set->label, set->values[k],
                        (const char *)NULL);
        }
    }
}
