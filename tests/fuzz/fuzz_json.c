/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_json: the reader of JSON answers. What is accepted is written out again, and that reads as
 * the same values.
 *
 * Input: the text.
 */
#include "fuzz.h"

#include "cli/json.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct text {
    char *ptr;
    size_t len;
    size_t cap;
};

static void put(struct text *t, const char *bytes, size_t n)
{
    if (t->cap - t->len < n) {
        t->cap = 2 * t->cap + n;
        char *const grown = realloc(t->ptr, t->cap);
        FZ_CHECK(grown != NULL);
        t->ptr = grown;
    }
    if (n)
        memcpy(t->ptr + t->len, bytes, n);
    t->len += n;
}

static void put_string(struct text *t, struct weir_bytes s)
{
    FZ_CHECK(s.ptr != NULL && s.ptr[s.len] == '\0');
    put(t, "\"", 1);
    for (size_t i = 0; i < s.len; i++) {
        const unsigned char c = (unsigned char)s.ptr[i];
        char escape[8];
        if (c < 0x20 || c == '"' || c == '\\') {
            (void)snprintf(escape, sizeof escape, "\\u%04x", c);
            put(t, escape, 6);
        } else {
            put(t, s.ptr + i, 1);
        }
    }
    put(t, "\"", 1);
}

static void put_number(struct text *t, const struct cli_json_value *v)
{
    double number;
    FZ_CHECK(cli_json_number(v, &number));
    FZ_CHECK(!isnan(number));
    /* 1e400 is a number of the grammar, and reads as infinity. */
    char digits[40] = "1e999";
    if (isfinite(number))
        (void)snprintf(digits, sizeof digits, "%.17g", number);
    else if (number < 0)
        put(t, "-", 1);
    put(t, digits, strlen(digits));
}

static void put_value(struct text *t, const struct cli_json_value *v, int depth);

static void put_container(struct text *t, const struct cli_json_value *v, int depth)
{
    const bool object = v->type == CLI_JSON_OBJECT;
    put(t, object ? "{" : "[", 1);
    size_t count = 0;
    const struct cli_json_value *next;
    for (const struct cli_json_value *e = cli_json_first(v); e; e = next) {
        next = cli_json_next(v, e);
        if (count > 0)
            put(t, object && count % 2 ? ":" : ",", 1);
        if (!object)
            FZ_CHECK(cli_json_at(v, count) == e);
        put_value(t, e, depth + 1);
        count++;
    }
    FZ_CHECK(count == (object ? 2 * v->v.count : v->v.count));
    FZ_CHECK(object || cli_json_at(v, count) == NULL);
    put(t, object ? "}" : "]", 1);
}

static void put_value(struct text *t, const struct cli_json_value *v, int depth)
{
    FZ_CHECK(depth <= CLI_JSON_DEPTH_MAX && v->span > 0);
    double ignored;
    switch (v->type) {
    case CLI_JSON_NULL:
        put(t, "null", 4);
        break;
    case CLI_JSON_FALSE:
        put(t, "false", 5);
        break;
    case CLI_JSON_TRUE:
        put(t, "true", 4);
        break;
    case CLI_JSON_NUMBER:
        put_number(t, v);
        break;
    case CLI_JSON_STRING:
        (void)cli_json_number(v, &ignored);
        put_string(t, cli_json_text(v));
        break;
    case CLI_JSON_ARRAY:
    case CLI_JSON_OBJECT:
        put_container(t, v, depth);
        break;
    }
}

static bool is_error(int r)
{
    return r == WEIR_EFORMAT || r == WEIR_EUTF8 || r == WEIR_ETRUNCATED || r == WEIR_EFULL;
}

static int parse(const char *bytes, size_t n, struct text *ret_text)
{
    struct cli_json *json = NULL;
    struct weir_where where = {0};
    const int r = cli_json_parse(bytes, n, &json, &where);
    if (r != WEIR_OK) {
        FZ_CHECK(is_error(r) && where.offset <= n && json == NULL);
        FZ_CHECK(where.reason != NULL);
        return r;
    }
    put_value(ret_text, cli_json_root(json), 0);
    cli_json_free(json);
    return r;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *const exact = fz_copy(data, size);
    struct text first = {0};
    struct text second = {0};
    struct text third = {0};
    const int r = parse((const char *)exact, size, &first);
    FZ_CHECK(parse((const char *)exact, size, &second) == r);
    FZ_CHECK(fz_same(first.ptr, first.len, second.ptr, second.len));
    if (r == WEIR_OK) {
        FZ_CHECK(parse(first.ptr, first.len, &third) == WEIR_OK);
        FZ_CHECK(fz_same(first.ptr, first.len, third.ptr, third.len));
    }
    free(first.ptr);
    free(second.ptr);
    free(third.ptr);
    free(exact);
    return 0;
}
