/* SPDX-License-Identifier: Apache-2.0 */
#ifndef AGENT_CLI_JSON_H
#define AGENT_CLI_JSON_H
/*
 * json: a strict reader of JSON answers (RFC 8259), for the verbs that ask the agent something.
 *
 * A text becomes one array of values in the order of the text; a container knows how many values
 * it spans, so walking needs no pointers between them. Texts are decoded in place into the
 * reader's own copy.
 *
 * Strict: one value and nothing behind it, UTF-8 well formed, no lone surrogates, no leading
 * zeros, no trailing commas. Bounded: depth CLI_JSON_DEPTH_MAX; at most 40 bytes a byte of text.
 * A name that occurs twice in an object is found at its first place.
 *
 * Threads: a parsed text is immutable. Memory: heap, until cli_json_free.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <weir/base.h>

#define CLI_JSON_DEPTH_MAX 32

enum cli_json_type {
    CLI_JSON_NULL,
    CLI_JSON_FALSE,
    CLI_JSON_TRUE,
    CLI_JSON_NUMBER,
    CLI_JSON_STRING,
    CLI_JSON_ARRAY,
    CLI_JSON_OBJECT
};

/* Borrowed from its struct cli_json. Read it through the functions below. */
struct cli_json_value {
    enum cli_json_type type;
    uint32_t span; /* values from this one on that belong to it, itself included */
    union {
        double number;
        struct weir_bytes text; /* decoded, NUL-terminated; may hold NUL itself */
        size_t count;           /* elements of an array, members of an object */
    } v;
};

struct cli_json;

/*
 * Parse text. ret_where may be NULL; on WEIR_EFORMAT, WEIR_EUTF8 or WEIR_ETRUNCATED it says where
 * and why. Cost: O(n). Errors: those, WEIR_EFULL (depth, or 2^32 values), WEIR_ENOMEM.
 */
WEIR_NODISCARD int cli_json_parse(const char *text, size_t n, struct cli_json **ret_json,
                                  struct weir_where *ret_where);
void cli_json_free(struct cli_json *json); /* NULL is allowed */
const struct cli_json_value *cli_json_root(const struct cli_json *json);

/* The member's value; NULL when object is NULL, no object, or has no such member. */
const struct cli_json_value *cli_json_get(const struct cli_json_value *object, const char *name);

/*
 * Walk: the first element of an array (or member name of an object), and the one behind value in
 * the same container. Both NULL at the end. An object's names and values alternate.
 */
const struct cli_json_value *cli_json_first(const struct cli_json_value *container);
const struct cli_json_value *cli_json_next(const struct cli_json_value *container,
                                           const struct cli_json_value *value);
/* The element of 0-based number i, by walking; NULL when there is none. */
const struct cli_json_value *cli_json_at(const struct cli_json_value *array, size_t i);

/* {NULL, 0} when value is NULL or no string. */
struct weir_bytes cli_json_text(const struct cli_json_value *value);
bool cli_json_text_is(const struct cli_json_value *value, const char *text);
/* A number, or a string that holds one as Prometheus writes samples ("NaN", "+Inf", "-Inf"). */
bool cli_json_number(const struct cli_json_value *value, double *ret_number);
#endif
