/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WR_CLIENT_JSON_H
#define WR_CLIENT_JSON_H
/*
 * json: a cursor over JSON that an agent answered (RFC 8259): no tree and no memory; the reader of
 * a message asks for what it knows and skips the rest. Depth is bounded. An error sticks: every
 * later question is answered by false.
 *
 * A cursor of our own, for /info and rates are two flat objects; a library with a tree would
 * allocate by what a stranger sends.
 */
#include <stdbool.h>
#include <stddef.h>
#include <weir/base.h>

#define WR_JSON_DEPTH_MAX 32

struct wr_json {
    const char *at;
    const char *end;
    unsigned depth;
    bool bad;
};

struct wr_json wr_json_begin(struct weir_bytes text);
/* Nothing but blanks is left, and nothing was wrong. */
bool wr_json_done(struct wr_json *j);
/* The first character of the next value: '{' '[' '"' 't' 'f' 'n', a digit or '-'; 0 at the end. */
char wr_json_peek(struct wr_json *j);

/* Enter the container that begins with open ('{' or '['); false when there is another value. */
bool wr_json_enter(struct wr_json *j, char open);
/* Whether there is an element; the container is left behind its last. *first: true at first. */
bool wr_json_element(struct wr_json *j, bool *first);
/* Whether there is a member; its name goes to dst. */
bool wr_json_member(struct wr_json *j, bool *first, char *dst, size_t cap, size_t *ret_len);

/* A string to dst, decoded and NUL-terminated; one that has no room gives length 0. */
bool wr_json_string(struct wr_json *j, char *dst, size_t cap, size_t *ret_len);
bool wr_json_number(struct wr_json *j, double *ret_number);
bool wr_json_skip(struct wr_json *j);
/* true, "true", false or "false"; another value is skipped and is false. */
bool wr_json_truth(struct wr_json *j);
#endif
