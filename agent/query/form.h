/* SPDX-License-Identifier: Apache-2.0 */
#ifndef AGENT_QUERY_FORM_H
#define AGENT_QUERY_FORM_H
/*
 * form: parameters of application/x-www-form-urlencoded text, and the times and durations the API
 * takes as parameters.
 *
 * Threads: none inside. Memory: decoded values from the arena.
 */
#include "arena.h"
#include "buf.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * The first value of a name, decoded. 1 found, 0 not there, -1 a bad escape (*ret_value is then the
 * three bytes of it), -2 no memory.
 */
int query_form_find(struct query_arena *arena, struct weir_bytes form, const char *name,
                    struct weir_bytes *ret_value);

/* The text as a value of such a form. */
void query_form_put(struct query_buf *form, struct weir_bytes text);

/* Seconds as a decimal number, or RFC 3339. Milliseconds, rounded. */
bool query_form_time(struct weir_bytes text, int64_t *ret_time_ms);
/* Seconds as a decimal number, or 1h30m. */
bool query_form_duration(struct weir_bytes text, double *ret_seconds);
#endif
