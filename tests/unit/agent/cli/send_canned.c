/* SPDX-License-Identifier: Apache-2.0 */
#include "send_canned.h"

#include <stdio.h>
#include <stdlib.h>
#include "t.h"

static double value_of(const struct send_cell *c, enum send_question q, double off)
{
    static const double quantiles[] = {
        [SEND_ASK_P50] = 0.5, [SEND_ASK_P95] = 0.95, [SEND_ASK_P99] = 0.99};
    if (q == SEND_ASK_CALLS)
        return (double)c->count;
    if (q == SEND_ASK_MAX)
        return (double)c->max_ns / 1e9;
    int64_t next = 0;
    return (double)cli_send_cell_rank(c, quantiles[q], &next) / 1e9 * (1 + off * SEND_ALPHA);
}

char *canned_answer(const struct send_workload *w, const struct send_ledger *l,
                    enum send_question q, double off)
{
    char *text = NULL;
    size_t n = 0;
    FILE *const f = open_memstream(&text, &n);
    T_TRUE(f);
    (void)fputs("{\"status\":\"success\",\"data\":{\"resultType\":\"vector\",\"result\":[", f);
    const char *between = "";
    for (size_t i = 0; i < cli_send_workload_endpoints(w); i++) {
        const struct send_endpoint *const e = cli_send_workload_endpoint(w, i);
        for (int s = 0; s < SEND_STATUSES; s++) {
            const struct send_cell *const c = cli_send_ledger_cell(l, i, (enum send_status)s);
            if (c->count == 0)
                continue;
            (void)fprintf(f,
                          "%s{\"metric\":{\"service_name\":\"%s\",\"span_name\":\"%s\","
                          "\"status_code\":\"STATUS_CODE_%s\"},\"value\":[1796051777.183,"
                          "\"%.17g\"]}",
                          between, e->service, e->resource, s == SEND_ERROR ? "ERROR" : "UNSET",
                          value_of(c, q, off));
            between = ",";
        }
    }
    (void)fputs("]}}", f);
    T_EQ_I64(fclose(f), 0);
    return text;
}
