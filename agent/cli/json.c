/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json: see json.h. Recursive descent, one function a kind of value; depth bounds the recursion.
 * Decoded text is never longer than its source, so that strings are decoded over their source.
 */
#include "cli/json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct cli_json {
    char *text; /* our copy, decoded in place */
    struct cli_json_value *values;
    size_t count;
    size_t cap;
};

struct reader {
    struct cli_json *json;
    char *at;
    char *end;
    int depth;
    const char *reason;
};

static int fail(struct reader *r, int err, const char *reason)
{
    r->reason = reason;
    return err;
}

static int bad(struct reader *r, const char *reason)
{
    return r->at >= r->end ? fail(r, WEIR_ETRUNCATED, "the text ends inside a value")
                           : fail(r, WEIR_EFORMAT, reason);
}

static void skip_blanks(struct reader *r)
{
    while (r->at < r->end && (*r->at == ' ' || *r->at == '\n' || *r->at == '\r' || *r->at == '\t'))
        r->at++;
}

static int add_value(struct reader *r, enum cli_json_type type, size_t *ret_index)
{
    struct cli_json *const j = r->json;
    if (j->count == j->cap) {
        const size_t cap = j->cap ? j->cap * 2 : 64;
        if (cap > UINT32_MAX)
            return fail(r, WEIR_EFULL, "more than 2^32 values");
        struct cli_json_value *const values = realloc(j->values, cap * sizeof *values);
        if (!values)
            return fail(r, WEIR_ENOMEM, "no memory");
        j->values = values;
        j->cap = cap;
    }
    j->values[j->count] = (struct cli_json_value){.type = type, .span = 1};
    *ret_index = j->count++;
    return WEIR_OK;
}

/* Four hexadecimal digits at r->at; they are left behind. -1: there are none. */
static int32_t hex4(struct reader *r)
{
    if (r->end - r->at < 4)
        return -1;
    int32_t v = 0;
    for (int i = 0; i < 4; i++) {
        const char c = r->at[i];
        int digit = -1;
        if (c >= '0' && c <= '9')
            digit = c - '0';
        else if (c >= 'a' && c <= 'f')
            digit = c - 'a' + 10;
        else if (c >= 'A' && c <= 'F')
            digit = c - 'A' + 10;
        if (digit < 0)
            return -1;
        v = v * 16 + digit;
    }
    r->at += 4;
    return v;
}

static char *put_utf8(char *to, uint32_t rune)
{
    if (rune < 0x80) {
        *to++ = (char)rune;
    } else if (rune < 0x800) {
        *to++ = (char)(0xc0 | rune >> 6);
        *to++ = (char)(0x80 | (rune & 0x3f));
    } else if (rune < 0x10000) {
        *to++ = (char)(0xe0 | rune >> 12);
        *to++ = (char)(0x80 | (rune >> 6 & 0x3f));
        *to++ = (char)(0x80 | (rune & 0x3f));
    } else {
        *to++ = (char)(0xf0 | rune >> 18);
        *to++ = (char)(0x80 | (rune >> 12 & 0x3f));
        *to++ = (char)(0x80 | (rune >> 6 & 0x3f));
        *to++ = (char)(0x80 | (rune & 0x3f));
    }
    return to;
}

/* Behind "\u": one rune, of one escape or of a surrogate pair. */
static int read_rune(struct reader *r, char **to)
{
    const int32_t first = hex4(r);
    if (first < 0)
        return bad(r, "\\u without four hexadecimal digits");
    uint32_t rune = (uint32_t)first;
    if (rune >= 0xdc00 && rune <= 0xdfff)
        return fail(r, WEIR_EUTF8, "a low surrogate alone");
    if (rune >= 0xd800 && rune <= 0xdbff) {
        if (r->end - r->at < 6 || r->at[0] != '\\' || r->at[1] != 'u')
            return fail(r, WEIR_EUTF8, "a high surrogate alone");
        r->at += 2;
        const int32_t second = hex4(r);
        if (second < 0xdc00 || second > 0xdfff)
            return fail(r, WEIR_EUTF8, "a high surrogate alone");
        rune = 0x10000 + ((rune - 0xd800) << 10) + ((uint32_t)second - 0xdc00);
    }
    *to = put_utf8(*to, rune);
    return WEIR_OK;
}

static int read_escape(struct reader *r, char **to)
{
    static const char from[] = "\"\\/bfnrt";
    static const char into[] = "\"\\/\b\f\n\r\t";
    if (r->at >= r->end)
        return bad(r, "");
    const char c = *r->at;
    if (c == 'u') {
        r->at++;
        return read_rune(r, to);
    }
    const char *const found = c ? strchr(from, c) : NULL;
    if (!found)
        return bad(r, "an unknown escape");
    r->at++;
    *(*to)++ = into[found - from];
    return WEIR_OK;
}

/* Bytes of the well-formed UTF-8 sequence at p (Unicode 15, table 3-7); 0: there is none. */
static size_t utf8_bytes(const unsigned char *p, size_t n)
{
    if (p[0] < 0x80)
        return 1;
    const size_t len = p[0] >= 0xf0 ? 4 : p[0] >= 0xe0 ? 3 : 2;
    if (p[0] < 0xc2 || p[0] > 0xf4 || n < len)
        return 0;
    unsigned low = 0x80;
    unsigned high = 0xbf;
    if (p[0] == 0xe0)
        low = 0xa0;
    else if (p[0] == 0xed)
        high = 0x9f;
    else if (p[0] == 0xf0)
        low = 0x90;
    else if (p[0] == 0xf4)
        high = 0x8f;
    if (p[1] < low || p[1] > high)
        return 0;
    for (size_t i = 2; i < len; i++) {
        if (p[i] < 0x80 || p[i] > 0xbf)
            return 0;
    }
    return len;
}

/* At the opening quote. */
static int read_string(struct reader *r)
{
    size_t index = 0;
    int err = add_value(r, CLI_JSON_STRING, &index);
    if (err)
        return err;
    r->at++;
    char *const begin = r->at;
    char *to = begin;
    while (r->at < r->end && *r->at != '"') {
        if (*r->at == '\\') {
            r->at++;
            err = read_escape(r, &to);
            if (err)
                return err;
            continue;
        }
        if ((unsigned char)*r->at < 0x20)
            return fail(r, WEIR_EFORMAT, "a control character in a string");
        const size_t n = utf8_bytes((const unsigned char *)r->at, (size_t)(r->end - r->at));
        if (n == 0)
            return fail(r, WEIR_EUTF8, "not well-formed UTF-8");
        for (size_t i = 0; i < n; i++)
            *to++ = *r->at++;
    }
    if (r->at >= r->end)
        return bad(r, "");
    r->at++;
    *to = 0; /* over the closing quote, or before it */
    r->json->values[index].v.text = (struct weir_bytes){.ptr = begin, .len = (size_t)(to - begin)};
    return WEIR_OK;
}

static bool skip_digits(struct reader *r)
{
    const char *const begin = r->at;
    while (r->at < r->end && *r->at >= '0' && *r->at <= '9')
        r->at++;
    return r->at > begin;
}

static int read_number(struct reader *r)
{
    size_t index = 0;
    const int err = add_value(r, CLI_JSON_NUMBER, &index);
    if (err)
        return err;
    const char *const begin = r->at;
    if (*r->at == '-')
        r->at++;
    const bool zero = r->at < r->end && *r->at == '0';
    if (!skip_digits(r))
        return bad(r, "not a value");
    if (zero && r->at - begin > (*begin == '-' ? 2 : 1))
        return fail(r, WEIR_EFORMAT, "a number with a leading zero");
    if (r->at < r->end && *r->at == '.') {
        r->at++;
        if (!skip_digits(r))
            return bad(r, "no digit behind the point");
    }
    if (r->at < r->end && (*r->at == 'e' || *r->at == 'E')) {
        r->at++;
        if (r->at < r->end && (*r->at == '+' || *r->at == '-'))
            r->at++;
        if (!skip_digits(r))
            return bad(r, "no digit in the exponent");
    }
    /* The grammar was checked and the copy ends in NUL, which stops strtod. */
    r->json->values[index].v.number = strtod(begin, NULL);
    return WEIR_OK;
}

static int read_word(struct reader *r, const char *word, enum cli_json_type type)
{
    const size_t n = strlen(word);
    const size_t left = (size_t)(r->end - r->at);
    if (strncmp(r->at, word, left < n ? left : n) != 0)
        return fail(r, WEIR_EFORMAT, "not a value");
    if (left < n)
        return fail(r, WEIR_ETRUNCATED, "the text ends inside a value");
    r->at += n;
    size_t index;
    return add_value(r, type, &index);
}

static int read_value(struct reader *r);

/* name ':' value */
static int read_member(struct reader *r)
{
    skip_blanks(r);
    if (r->at >= r->end || *r->at != '"')
        return bad(r, "no name where a member begins");
    const int err = read_string(r);
    if (err)
        return err;
    skip_blanks(r);
    if (r->at >= r->end || *r->at != ':')
        return bad(r, "no ':' behind a name");
    r->at++;
    return read_value(r);
}

/* At the opening bracket. */
static int read_container(struct reader *r, enum cli_json_type type)
{
    if (r->depth == CLI_JSON_DEPTH_MAX)
        return fail(r, WEIR_EFULL, "nested too deep");
    const char close = type == CLI_JSON_ARRAY ? ']' : '}';
    size_t index = 0;
    int err = add_value(r, type, &index);
    if (err)
        return err;
    r->depth++;
    r->at++;
    size_t count = 0;
    skip_blanks(r);
    while (count > 0 || r->at >= r->end || *r->at != close) {
        err = type == CLI_JSON_ARRAY ? read_value(r) : read_member(r);
        if (err)
            return err;
        count++;
        skip_blanks(r);
        if (r->at < r->end && *r->at == close)
            break;
        if (r->at >= r->end || *r->at != ',')
            return bad(r, "neither ',' nor the end of the container");
        r->at++;
    }
    r->at++;
    r->depth--;
    r->json->values[index].v.count = count;
    r->json->values[index].span = (uint32_t)(r->json->count - index);
    return WEIR_OK;
}

static int read_value(struct reader *r)
{
    skip_blanks(r);
    if (r->at >= r->end)
        return bad(r, "");
    switch (*r->at) {
    case '{':
        return read_container(r, CLI_JSON_OBJECT);
    case '[':
        return read_container(r, CLI_JSON_ARRAY);
    case '"':
        return read_string(r);
    case 't':
        return read_word(r, "true", CLI_JSON_TRUE);
    case 'f':
        return read_word(r, "false", CLI_JSON_FALSE);
    case 'n':
        return read_word(r, "null", CLI_JSON_NULL);
    default: /* any byte may stand there */
        return read_number(r);
    }
}

int cli_json_parse(const char *text, size_t n, struct cli_json **ret_json,
                   struct weir_where *ret_where)
{
    struct cli_json *const j = calloc(1, sizeof *j);
    char *const copy = n < SIZE_MAX ? malloc(n + 1) : NULL;
    if (!j || !copy) {
        free(copy);
        free(j);
        return WEIR_ENOMEM;
    }
    if (n)
        memcpy(copy, text, n);
    copy[n] = 0;
    j->text = copy;
    struct reader r = {.json = j, .at = copy, .end = copy + n, .reason = ""};
    int err = read_value(&r);
    if (!err) {
        skip_blanks(&r);
        if (r.at != r.end)
            err = fail(&r, WEIR_EFORMAT, "more behind the value");
    }
    if (err) {
        if (ret_where)
            *ret_where = (struct weir_where){.offset = (size_t)(r.at - copy), .reason = r.reason};
        cli_json_free(j);
        return err;
    }
    *ret_json = j;
    return WEIR_OK;
}

void cli_json_free(struct cli_json *j)
{
    if (!j)
        return;
    free(j->text);
    free(j->values);
    free(j);
}

const struct cli_json_value *cli_json_root(const struct cli_json *j)
{
    return j->values;
}

const struct cli_json_value *cli_json_first(const struct cli_json_value *c)
{
    if (!c || (c->type != CLI_JSON_ARRAY && c->type != CLI_JSON_OBJECT) || c->v.count == 0)
        return NULL;
    return c + 1;
}

const struct cli_json_value *cli_json_next(const struct cli_json_value *c,
                                           const struct cli_json_value *value)
{
    const struct cli_json_value *const next = value + value->span;
    return next < c + c->span ? next : NULL;
}

const struct cli_json_value *cli_json_at(const struct cli_json_value *array, size_t i)
{
    if (!array || array->type != CLI_JSON_ARRAY || i >= array->v.count)
        return NULL;
    const struct cli_json_value *v = cli_json_first(array);
    while (v && i-- > 0)
        v = cli_json_next(array, v);
    return v;
}

const struct cli_json_value *cli_json_get(const struct cli_json_value *object, const char *name)
{
    if (!object || object->type != CLI_JSON_OBJECT)
        return NULL;
    const struct cli_json_value *key = cli_json_first(object);
    while (key) {
        const struct cli_json_value *const value = key + 1;
        if (cli_json_text_is(key, name))
            return value;
        key = cli_json_next(object, value);
    }
    return NULL;
}

struct weir_bytes cli_json_text(const struct cli_json_value *v)
{
    if (!v || v->type != CLI_JSON_STRING)
        return (struct weir_bytes){.ptr = NULL, .len = 0};
    return v->v.text;
}

bool cli_json_text_is(const struct cli_json_value *v, const char *text)
{
    const struct weir_bytes b = cli_json_text(v);
    return b.ptr && b.len == strlen(text) && memcmp(b.ptr, text, b.len) == 0;
}

bool cli_json_number(const struct cli_json_value *v, double *ret_number)
{
    if (!v)
        return false;
    if (v->type == CLI_JSON_NUMBER) {
        *ret_number = v->v.number;
        return true;
    }
    const struct weir_bytes b = cli_json_text(v);
    if (!b.ptr || b.len == 0)
        return false;
    /* strtod would also take blanks, hexadecimal and words of its own. */
    if (cli_json_text_is(v, "NaN"))
        *ret_number = (double)NAN;
    else if (cli_json_text_is(v, "+Inf"))
        *ret_number = (double)INFINITY;
    else if (cli_json_text_is(v, "-Inf"))
        *ret_number = -(double)INFINITY;
    else if (strspn(b.ptr, "0123456789+-.eE") != b.len)
        return false;
    else {
        char *end = NULL;
        const double number = strtod(b.ptr, &end);
        if (end != b.ptr + b.len)
            return false;
        *ret_number = number;
    }
    return true;
}
