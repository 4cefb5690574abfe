/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/send_ledger.h"
#include "t.h"

#include <math.h>

static struct send_span span(uint32_t endpoint, bool error, int64_t duration_ns)
{
    return (struct send_span){.endpoint = endpoint, .error = error, .duration_ns = duration_ns};
}

TEST(counts_sums_and_extremes_are_kept_apart_by_endpoint_and_status)
{
    struct send_ledger *l = NULL;
    T_OK(cli_send_ledger_new(2, 0, &l));
    const struct send_span spans[] = {span(0, false, 5), span(0, false, 3), span(0, true, 9),
                                      span(1, false, 0)};
    T_OK(cli_send_ledger_add(l, spans, 4));
    const struct send_cell *c = cli_send_ledger_cell(l, 0, SEND_UNSET);
    T_EQ_U64(c->count, 2);
    T_EQ_I64(c->sum_ns, 8);
    T_EQ_I64(c->min_ns, 3);
    T_EQ_I64(c->max_ns, 5);
    T_TRUE(!c->samples);
    c = cli_send_ledger_cell(l, 0, SEND_ERROR);
    T_TRUE(c->count == 1 && c->max_ns == 9);
    c = cli_send_ledger_cell(l, 1, SEND_UNSET);
    T_TRUE(c->count == 1 && c->max_ns == 0 && c->min_ns == 0);
    T_EQ_U64(cli_send_ledger_cell(l, 1, SEND_ERROR)->count, 0);
    T_EQ_U64(cli_send_ledger_spans(l), 4);
    cli_send_ledger_free(l);
}

TEST(the_sample_of_a_rank_is_that_of_the_sorted_list)
{
    struct t_rng r = t_rng(t_seed());
    for (int round = 0; round < 200; round++) {
        struct send_ledger *l = NULL;
        T_OK(cli_send_ledger_new(1, 1000, &l));
        const size_t n = 1 + t_below(&r, 300);
        /* Durations are a shuffle of 0..n-1: the sample of a rank is the rank. */
        struct send_span spans[300];
        for (size_t i = 0; i < n; i++)
            spans[i] = span(0, false, (int64_t)i);
        for (size_t i = n; i > 1; i--) {
            const size_t j = t_below(&r, i);
            const struct send_span keep = spans[i - 1];
            spans[i - 1] = spans[j];
            spans[j] = keep;
        }
        T_OK(cli_send_ledger_add(l, spans, n));
        cli_send_ledger_sort(l);
        const struct send_cell *const c = cli_send_ledger_cell(l, 0, SEND_UNSET);
        for (uint64_t percent = 0; percent <= 100; percent++) {
            int64_t next = -1;
            const int64_t got = cli_send_cell_rank(c, (double)percent / 100, &next);
            const int64_t exact = (int64_t)(percent * (n - 1) / 100); /* in whole numbers */
            T_TRUE(got == exact || next == exact);
            T_TRUE(next - got <= 1 && next >= got);
            if (percent * (n - 1) % 100 != 0) /* not near a whole number: no second choice */
                T_TRUE(got == exact && next == exact);
        }
        cli_send_ledger_free(l);
    }
}

TEST(more_samples_than_the_bound_are_refused)
{
    struct send_ledger *l = NULL;
    T_OK(cli_send_ledger_new(1, 3, &l));
    const struct send_span spans[] = {span(0, false, 1), span(0, false, 2)};
    T_OK(cli_send_ledger_add(l, spans, 2));
    T_ERR(cli_send_ledger_add(l, spans, 2), WEIR_EFULL);
    T_OK(cli_send_ledger_add(l, spans, 1));
    T_EQ_U64(cli_send_ledger_spans(l), 3);
    cli_send_ledger_free(l);
    cli_send_ledger_free(NULL);
}
