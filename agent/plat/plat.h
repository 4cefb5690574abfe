/* SPDX-License-Identifier: Apache-2.0 */
#ifndef AGENT_PLAT_PLAT_H
#define AGENT_PLAT_PLAT_H
/* plat: the OS surface of the agent: clocks, randomness, process figures. */
#include <stddef.h>
#include <stdint.h>

int64_t plat_wall_ns(void); /* CLOCK_REALTIME, since the Unix epoch */
int64_t plat_mono_ns(void); /* CLOCK_MONOTONIC */
/* Fill from the kernel's generator; ends the process with a message if there is none. */
void plat_random(void *dst, size_t bytes);
/* Of this process. */
int64_t plat_cpu_ns(void); /* user + system */
uint64_t plat_rss_bytes(void);
uint64_t plat_open_fds(void);
uint64_t plat_max_fds(void);
int64_t plat_start_wall_ns(void); /* when the process started */
/* What is freed in large pieces goes back to the system at once. Call it before threads start. */
void plat_heap_init(void);
/* English text of an errno; static. Unlike strerror, from any thread. */
const char *plat_strerror(int err);
#endif
