/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_regex: the regular expressions of label matchers. The same expression and text give the
 * same answer, in a group too; a text that is escaped matches itself.
 *
 * Input: 1 byte the length of the expression, that, and the text to match.
 */
#include "fuzz.h"

#include "query/regex.h"

#include <stdlib.h>
#include <string.h>

enum { ARENA_BYTES = 16 * 1024 * 1024 };

/* 1 or 0; -1 refused, -2 the budget was used up. */
static int match(struct weir_bytes pattern, struct weir_bytes text)
{
    struct query_arena arena;
    query_arena_init(&arena, ARENA_BYTES);
    struct query_error error = {.fault = QUERY_FAULT_NONE};
    struct query_regex *regex = NULL;
    int r = -1;
    if (query_regex_compile(&arena, pattern, 0, &regex, &error)) {
        uint64_t budget = 2000000;
        r = query_regex_match(regex, text, &budget);
        FZ_CHECK(r >= -1 && r <= 1 && budget <= 2000000);
        r = r < 0 ? -2 : r;
    } else {
        FZ_CHECK(error.fault != QUERY_FAULT_NONE && strlen(error.text) > 0);
    }
    query_arena_done(&arena);
    return r;
}

static void expect_in_group(struct weir_bytes pattern, struct weir_bytes text, int want)
{
    char *const wrapped = fz_alloc(pattern.len + 5);
    memcpy(wrapped, "(?:", 3);
    if (pattern.len)
        memcpy(wrapped + 3, pattern.ptr, pattern.len);
    memcpy(wrapped + 3 + pattern.len, ")", 1);
    const int got = match((struct weir_bytes){wrapped, pattern.len + 4}, text);
    /* The group may be the one level too many, or the form that took the short cut before. */
    FZ_CHECK(got == want || got < 0 || want == -2);
    free(wrapped);
}

static bool is_plain(char c)
{
    return c <= ' ' || c == 0x7f || (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z');
}

/* Bytes that are not UTF-8 (below 0 here) cannot be written in a pattern: that is refused. */
static void expect_itself(struct weir_bytes text)
{
    char *const quoted = fz_alloc(2 * text.len);
    size_t n = 0;
    for (size_t i = 0; i < text.len; i++) {
        if (!is_plain(text.ptr[i]))
            quoted[n++] = '\\';
        quoted[n++] = text.ptr[i];
    }
    FZ_CHECK(match((struct weir_bytes){quoted, n}, text) != 0);
    free(quoted);
}

static void match_text(struct fz_in *in)
{
    size_t n = fz_u8(in);
    if (n > in->left)
        n = in->left;
    uint8_t *const pattern_copy = fz_copy(in->at, n);
    uint8_t *const text_copy = fz_copy(in->at + n, in->left - n);
    const struct weir_bytes pattern = {(const char *)pattern_copy, n};
    const struct weir_bytes text = {(const char *)text_copy, in->left - n};
    const int r = match(pattern, text);
    FZ_CHECK(match(pattern, text) == r);
    if (r != -1)
        expect_in_group(pattern, text, r);
    expect_itself(text);
    free(pattern_copy);
    free(text_copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fz_in in = fz_in(data, size);
    match_text(&in);
    return 0;
}
