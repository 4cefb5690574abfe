/* SPDX-License-Identifier: Apache-2.0 */
/* json: see json.h. */
#include "json.h"

#include <stdint.h>
#include <string.h>

struct wr_json wr_json_begin(struct weir_bytes text)
{
    return (struct wr_json){.at = text.ptr, .end = text.len ? text.ptr + text.len : text.ptr};
}

static bool fail(struct wr_json *j)
{
    j->bad = true;
    return false;
}

static void skip_blanks(struct wr_json *j)
{
    while (j->at < j->end && (*j->at == ' ' || *j->at == '\t' || *j->at == '\n' || *j->at == '\r'))
        j->at++;
}

char wr_json_peek(struct wr_json *j)
{
    skip_blanks(j);
    return !j->bad && j->at < j->end ? *j->at : 0;
}

bool wr_json_done(struct wr_json *j)
{
    skip_blanks(j);
    return !j->bad && j->at == j->end && j->depth == 0;
}

bool wr_json_enter(struct wr_json *j, char open)
{
    if (wr_json_peek(j) != open || j->depth == WR_JSON_DEPTH_MAX)
        return fail(j);
    j->depth++;
    j->at++;
    return true;
}

/* At an element or behind the container that close ends. */
static bool next_in(struct wr_json *j, bool *first, char close)
{
    const char c = wr_json_peek(j);
    if (c == close) {
        j->depth--;
        j->at++;
        return false;
    }
    if (!*first) {
        if (c != ',')
            return fail(j);
        j->at++;
    }
    *first = false;
    return wr_json_peek(j) != 0 || fail(j);
}

bool wr_json_element(struct wr_json *j, bool *first)
{
    return next_in(j, first, ']');
}

bool wr_json_member(struct wr_json *j, bool *first, char *dst, size_t cap, size_t *ret_len)
{
    if (!next_in(j, first, '}') || !wr_json_string(j, dst, cap, ret_len))
        return false;
    if (wr_json_peek(j) != ':')
        return fail(j);
    j->at++;
    return true;
}

static bool read_hex(struct wr_json *j, uint32_t *ret_unit)
{
    uint32_t unit = 0;
    if (j->end - j->at < 4)
        return fail(j);
    for (int i = 0; i < 4; i++) {
        const char c = *j->at++;
        uint32_t digit;
        if (c >= '0' && c <= '9')
            digit = (uint32_t)(c - '0');
        else if ((c | 0x20) >= 'a' && (c | 0x20) <= 'f')
            digit = (uint32_t)((c | 0x20) - 'a') + 10;
        else
            return fail(j);
        unit = unit << 4 | digit;
    }
    *ret_unit = unit;
    return true;
}

static size_t put_utf8(uint32_t code, char dst[4])
{
    if (code < 0x80) {
        dst[0] = (char)code;
        return 1;
    }
    size_t n = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    const uint32_t lead = n == 2 ? 0xc0 : n == 3 ? 0xe0 : 0xf0;
    for (size_t i = n - 1; i > 0; i--) {
        dst[i] = (char)(0x80 | (code & 0x3f));
        code >>= 6;
    }
    dst[0] = (char)(lead | code);
    return n;
}

/* Behind "\u": one code point, U+FFFD for half of a pair. */
static bool read_unicode(struct wr_json *j, uint32_t *ret_code)
{
    uint32_t high;
    if (!read_hex(j, &high))
        return false;
    *ret_code = high >= 0xd800 && high <= 0xdfff ? 0xfffd : high;
    if (high >= 0xd800 && high <= 0xdbff && j->end - j->at >= 6 && j->at[0] == '\\' &&
        j->at[1] == 'u') {
        const char *const back = j->at;
        uint32_t low;
        j->at += 2;
        if (!read_hex(j, &low))
            return false;
        if (low >= 0xdc00 && low <= 0xdfff)
            *ret_code = 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00);
        else
            j->at = back;
    }
    return true;
}

static bool read_escape(struct wr_json *j, char dst[4], size_t *ret_len)
{
    static const char names[] = "\"\\/bfnrt";
    static const char values[] = "\"\\/\b\f\n\r\t";
    if (j->at == j->end)
        return fail(j);
    const char c = *j->at++;
    if (c == 'u') {
        uint32_t code;
        if (!read_unicode(j, &code))
            return false;
        *ret_len = put_utf8(code, dst);
        return true;
    }
    const char *const found = c ? strchr(names, c) : NULL;
    if (!found)
        return fail(j);
    dst[0] = values[found - names];
    *ret_len = 1;
    return true;
}

bool wr_json_string(struct wr_json *j, char *dst, size_t cap, size_t *ret_len)
{
    size_t len = 0;
    bool fits = cap > 0;
    if (wr_json_peek(j) != '"')
        return fail(j);
    j->at++;
    for (;;) {
        char piece[4];
        size_t n = 1;
        if (j->at == j->end || (unsigned char)*j->at < 0x20)
            return fail(j);
        piece[0] = *j->at++;
        if (piece[0] == '"')
            break;
        if (piece[0] == '\\' && !read_escape(j, piece, &n))
            return false;
        fits = fits && n < cap - len;
        if (fits) {
            memcpy(dst + len, piece, n);
            len += n;
        }
    }
    *ret_len = fits ? len : 0;
    if (cap > 0)
        dst[*ret_len] = 0;
    return true;
}

/* Digits into a mantissa of at most 19; *scale counts those that had no room, less decimals. */
static size_t read_digits(struct wr_json *j, uint64_t *mantissa, int *scale, bool decimals)
{
    size_t count = 0;
    for (; j->at < j->end && *j->at >= '0' && *j->at <= '9'; j->at++, count++) {
        const bool room = *mantissa < UINT64_C(1000000000000000000);
        if (room)
            *mantissa = *mantissa * 10 + (uint64_t)(*j->at - '0');
        if (room == decimals && *scale > -10000 && *scale < 10000)
            *scale += decimals ? -1 : 1;
    }
    return count;
}

static bool read_exponent(struct wr_json *j, int *scale)
{
    uint64_t exponent = 0;
    int ignored = 0;
    j->at++;
    const bool negative = j->at < j->end && *j->at == '-';
    if (j->at < j->end && (*j->at == '-' || *j->at == '+'))
        j->at++;
    if (read_digits(j, &exponent, &ignored, false) == 0)
        return fail(j);
    const int n = exponent > 10000 ? 10000 : (int)exponent;
    *scale += negative ? -n : n;
    return true;
}

/* Exact below 2^53 with up to 22 decimals, which rates are; else within a few ulp. */
static double scaled(uint64_t mantissa, int scale)
{
    double power = 1;
    double base = 10;
    for (int n = scale < 0 ? -scale : scale; n > 0; n >>= 1) {
        if (n & 1)
            power *= base;
        base *= base;
    }
    if (mantissa == 0)
        return 0;
    return scale < 0 ? (double)mantissa / power : (double)mantissa * power;
}

bool wr_json_number(struct wr_json *j, double *ret_number)
{
    uint64_t mantissa = 0;
    int scale = 0;
    const char first = wr_json_peek(j);
    if (first == '-')
        j->at++;
    const bool zero = j->at < j->end && *j->at == '0';
    const size_t digits = read_digits(j, &mantissa, &scale, false);
    if (digits == 0 || (zero && digits > 1))
        return fail(j);
    if (j->at < j->end && *j->at == '.') {
        j->at++;
        if (read_digits(j, &mantissa, &scale, true) == 0)
            return fail(j);
    }
    if (j->at < j->end && (*j->at == 'e' || *j->at == 'E') && !read_exponent(j, &scale))
        return false;
    const double number = scaled(mantissa, scale);
    *ret_number = first == '-' ? -number : number;
    return true;
}

static bool skip_word(struct wr_json *j, const char *word)
{
    const size_t n = strlen(word);
    if ((size_t)(j->end - j->at) < n || memcmp(j->at, word, n) != 0)
        return fail(j);
    j->at += n;
    return true;
}

static bool skip_container(struct wr_json *j, char open)
{
    bool first = true;
    size_t ignored;
    if (!wr_json_enter(j, open))
        return false;
    if (open == '[') {
        while (wr_json_element(j, &first) && wr_json_skip(j)) {
        }
    } else {
        while (wr_json_member(j, &first, NULL, 0, &ignored) && wr_json_skip(j)) {
        }
    }
    return !j->bad;
}

bool wr_json_skip(struct wr_json *j)
{
    size_t ignored;
    double number;
    const char c = wr_json_peek(j);
    switch (c) {
    case '{':
    case '[':
        return skip_container(j, c);
    case '"':
        return wr_json_string(j, NULL, 0, &ignored);
    case 't':
        return skip_word(j, "true");
    case 'f':
        return skip_word(j, "false");
    case 'n':
        return skip_word(j, "null");
    default: /* any byte may stand there */
        return wr_json_number(j, &number);
    }
}

bool wr_json_truth(struct wr_json *j)
{
    char text[8];
    size_t len;
    const char c = wr_json_peek(j);
    if (c == '"')
        return wr_json_string(j, text, sizeof text, &len) && len == 4 &&
               memcmp(text, "true", 4) == 0;
    return wr_json_skip(j) && c == 't';
}
