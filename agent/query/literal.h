/* SPDX-License-Identifier: Apache-2.0 */
#ifndef AGENT_QUERY_LITERAL_H
#define AGENT_QUERY_LITERAL_H
/*
 * literal: what number, duration and string tokens stand for.
 *
 * Threads: none inside. Memory: strings from the arena.
 */
#include "arena.h"
#include "error.h"

#include <stdbool.h>
#include <weir/base.h>

/* 1.5, .5, 1e3, 0x1F, 017 (octal), 1_000, Inf, NaN. */
bool query_read_number(struct weir_bytes text, size_t at, double *ret_value,
                       struct query_error *error);
/* 1h30m, units from years down to milliseconds, each at most once, zero parts allowed. Seconds. */
bool query_read_duration(struct weir_bytes text, size_t at, double *ret_seconds,
                         struct query_error *error);
/* With its quotes; escapes were checked by the lexer. */
bool query_read_string(struct query_arena *arena, struct weir_bytes text,
                       struct weir_bytes *ret_value, struct query_error *error);
#endif
