/* SPDX-License-Identifier: Apache-2.0 */
#ifndef AGENT_QUERY_REGEX_H
#define AGENT_QUERY_REGEX_H
/*
 * regex: label matchers' regular expressions, RE2's syntax and meaning, always anchored at both
 * ends, dot matching newline (as Prometheus 3).
 *
 * Compiled to a Thompson NFA and run over the set of its states: time is the product of program
 * and text, whatever the expression. Alternatives of plain words and .*word.* forms skip the
 * program. Bytes that are not UTF-8 match as U+FFFD. Not taken: Unicode classes (\p{..}), \C, and
 * ignoring the case of letters outside ASCII; RE2 refuses back-references and look-around alike.
 *
 * Threads: a compiled regex is constant; each match has its own state sets.
 * Memory:  the query's arena; at most QUERY_REGEX_PROGRAM_MAX instructions.
 */
#include "arena.h"
#include "error.h"

#include <stdbool.h>
#include <stdint.h>

#define QUERY_REGEX_PROGRAM_MAX 4096u
#define QUERY_REGEX_REPEAT_MAX 1000u /* RE2's limit */
#define QUERY_REGEX_DEPTH_MAX 100u

struct query_regex;

/*
 * at is where the text of the fault is said to be. False: error has RE2's wording.
 * The pattern is borrowed while the regex lives.
 */
bool query_regex_compile(struct query_arena *arena, struct weir_bytes pattern, size_t at,
                         struct query_regex **ret_regex, struct query_error *error);

/* 1 yes, 0 no, -1 when *budget (steps, counted down) is used up. */
int query_regex_match(const struct query_regex *regex, struct weir_bytes text, uint64_t *budget);
#endif
