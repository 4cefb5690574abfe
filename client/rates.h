/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WR_CLIENT_RATES_H
#define WR_CLIENT_RATES_H
/* rates: rate_by_service of an answer to traces, given on when it changed. */
#include <weir/client.h>

#include "base.h"

enum { WR_RATES_VERSION_BYTES = 64 };

struct wr_rates {
    const struct weir_alloc *alloc;
    char version[WR_RATES_VERSION_BYTES]; /* Datadog-Rates-Payload-Version of the last; "": none */
    char *last;                           /* the text of the last that was given on */
    size_t last_len;
};

enum wr_rates_result { WR_RATES_SAME, WR_RATES_CHANGED, WR_RATES_REFUSED };

/* Look at an answer; changed ones are given to fn, which may be NULL. */
enum wr_rates_result wr_rates_take(struct wr_rates *r, const struct weir_client_response *answer,
                                   void (*fn)(void *ctx, const struct weir_client_rate *rates,
                                              size_t count),
                                   void *ctx);
void wr_rates_done(struct wr_rates *r);
#endif
