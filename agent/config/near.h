/* SPDX-License-Identifier: Apache-2.0 */
#ifndef AGENT_CONFIG_NEAR_H
#define AGENT_CONFIG_NEAR_H
/* near: which known name was meant. Threads: any. */
#include <stddef.h>

/* Insertions, deletions, replacements and swaps of neighbours between a and b; names longer than
 * 64 bytes are far from everything. */
size_t near_distance(const char *a, const char *b);

/* Of names, the nearest to text; NULL where none is near enough to be meant. */
const char *near_find(const char *text, const char *const *names, size_t count);
#endif
