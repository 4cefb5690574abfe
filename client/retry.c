/* SPDX-License-Identifier: Apache-2.0 */
/* retry: see retry.h. */
#include "retry.h"

#include "base.h"

bool wr_retry_is_due(const struct wr_retry *r, int64_t mono_ns)
{
    return r->failures == 0 || mono_ns >= r->next_ns;
}

void wr_retry_succeeded(struct wr_retry *r)
{
    r->failures = 0;
}

static uint64_t next_random(struct wr_retry *r)
{
    r->random ^= r->random << 13; /* xorshift64, Marsaglia 2003 */
    r->random ^= r->random >> 7;
    r->random ^= r->random << 17;
    return r->random;
}

void wr_retry_failed(struct wr_retry *r, int64_t mono_ns, int64_t at_least_for_ns)
{
    int64_t wait = r->first_for_ns;
    for (uint32_t i = 0; i < r->failures && wait < r->max_for_ns; i++)
        wait = wr_sat_add(wait, wait);
    if (wait > r->max_for_ns)
        wait = r->max_for_ns;
    const int64_t half = wait / 2;
    wait = half + (int64_t)(next_random(r) % (uint64_t)(wait - half + 1));
    if (wait < at_least_for_ns)
        wait = at_least_for_ns < r->max_for_ns ? at_least_for_ns : r->max_for_ns;
    if (r->failures < UINT32_MAX)
        r->failures++;
    r->next_ns = wr_sat_add(mono_ns, wait);
}
