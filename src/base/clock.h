/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WR_BASE_CLOCK_H
#define WR_BASE_CLOCK_H
/* clock: the system's clocks, for a library thread whose starter gave no clock of its own; the only
 * place of the library that reads one. */
#include <stdint.h>

void wr_clock_read(void *ctx, int64_t *ret_wall_ns, int64_t *ret_mono_ns);
#endif
