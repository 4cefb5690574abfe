/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WR_CLIENT_RETRY_H
#define WR_CLIENT_RETRY_H
/* retry: when to try again: doubling waits up to a maximum, each from half of it to all of it at
 * random, so that the clients of an agent that comes back do not come all at once. */
#include <stdbool.h>
#include <stdint.h>

struct wr_retry {
    int64_t first_for_ns;
    int64_t max_for_ns;
    uint64_t random; /* state; not 0 */
    uint32_t failures;
    int64_t next_ns; /* monotonic; not before it */
};

bool wr_retry_is_due(const struct wr_retry *r, int64_t mono_ns);
void wr_retry_succeeded(struct wr_retry *r);
/* at_least_for_ns: what the other side asked for, 0 for nothing; bounded by the maximum. */
void wr_retry_failed(struct wr_retry *r, int64_t mono_ns, int64_t at_least_for_ns);
#endif
