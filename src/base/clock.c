/* SPDX-License-Identifier: Apache-2.0 */
/* clock: see clock.h. The only object of libweir that references a clock. */
#include "base/clock.h"

#include <time.h>

static int64_t read_ns(clockid_t clock)
{
    struct timespec t = {0};
    (void)clock_gettime(clock, &t); /* both are always there */
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

void wr_clock_read(void *ctx, int64_t *ret_wall_ns, int64_t *ret_mono_ns)
{
    (void)ctx;
    *ret_wall_ns = read_ns(CLOCK_REALTIME);
    *ret_mono_ns = read_ns(CLOCK_MONOTONIC);
}
