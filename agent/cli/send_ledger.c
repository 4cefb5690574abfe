/* SPDX-License-Identifier: Apache-2.0 */
/* send_ledger: see send_ledger.h. */
#include "cli/send_ledger.h"

#include <math.h>
#include <stdlib.h>

struct send_ledger {
    struct send_cell *cells; /* endpoint * SEND_STATUSES + status */
    size_t endpoints;
    uint64_t max_samples;
    uint64_t spans;
};

int cli_send_ledger_new(size_t endpoints, uint64_t max_samples, struct send_ledger **ret_ledger)
{
    struct send_ledger *const l = calloc(1, sizeof *l);
    struct send_cell *const cells = calloc(endpoints, SEND_STATUSES * sizeof *cells);
    if (!l || !cells) {
        free(l);
        free(cells);
        return WEIR_ENOMEM;
    }
    l->cells = cells;
    l->endpoints = endpoints;
    l->max_samples = max_samples;
    *ret_ledger = l;
    return WEIR_OK;
}

void cli_send_ledger_free(struct send_ledger *l)
{
    if (!l)
        return;
    for (size_t i = 0; i < l->endpoints * SEND_STATUSES; i++)
        free(l->cells[i].samples);
    free(l->cells);
    free(l);
}

static int keep(struct send_cell *c, int64_t duration_ns)
{
    if (c->count == c->cap) {
        const size_t cap = c->cap ? c->cap * 2 : 64;
        int64_t *const samples = realloc(c->samples, cap * sizeof *samples);
        if (!samples)
            return WEIR_ENOMEM;
        c->samples = samples;
        c->cap = cap;
    }
    c->samples[c->count] = duration_ns;
    return WEIR_OK;
}

int cli_send_ledger_add(struct send_ledger *l, const struct send_span *spans, size_t count)
{
    if (l->max_samples && count > l->max_samples - l->spans)
        return WEIR_EFULL;
    for (size_t i = 0; i < count; i++) {
        const struct send_span *const s = &spans[i];
        const size_t status = s->error ? SEND_ERROR : SEND_UNSET;
        struct send_cell *const c = &l->cells[s->endpoint * SEND_STATUSES + status];
        if (l->max_samples) {
            const int err = keep(c, s->duration_ns);
            if (err)
                return err;
        }
        if (c->count == 0 || s->duration_ns < c->min_ns)
            c->min_ns = s->duration_ns;
        if (c->count == 0 || s->duration_ns > c->max_ns)
            c->max_ns = s->duration_ns;
        if (__builtin_add_overflow(c->sum_ns, s->duration_ns, &c->sum_ns))
            c->sum_ns = INT64_MAX;
        c->count++;
        l->spans++;
    }
    return WEIR_OK;
}

size_t cli_send_ledger_endpoints(const struct send_ledger *l)
{
    return l->endpoints;
}

uint64_t cli_send_ledger_spans(const struct send_ledger *l)
{
    return l->spans;
}

const struct send_cell *cli_send_ledger_cell(const struct send_ledger *l, size_t endpoint,
                                             enum send_status status)
{
    return &l->cells[endpoint * SEND_STATUSES + (size_t)status];
}

static int ascending(const void *a, const void *b)
{
    const int64_t *const x = a;
    const int64_t *const y = b;
    return (*x > *y) - (*x < *y);
}

void cli_send_ledger_sort(struct send_ledger *l)
{
    for (size_t i = 0; i < l->endpoints * SEND_STATUSES; i++) {
        struct send_cell *const c = &l->cells[i];
        if (c->samples && c->count > 1)
            qsort(c->samples, c->count, sizeof *c->samples, ascending);
    }
}

int64_t cli_send_cell_rank(const struct send_cell *c, double q, int64_t *ret_next_ns)
{
    const double rank = q * (double)(c->count - 1);
    const uint64_t low = (uint64_t)rank;
    /* 0.95 * 20 may come out as 18.999…: who computes it another way has 19. */
    const uint64_t next = (uint64_t)(rank * (1 + 4e-16) + 1e-12);
    *ret_next_ns = c->samples[next < c->count ? next : c->count - 1];
    return c->samples[low];
}
