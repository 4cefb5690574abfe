/* SPDX-License-Identifier: Apache-2.0 */
/*
 * literal: numbers by Go's rules, since those are what PromQL documents: a leading 0 makes an
 * octal integer where all digits allow it, underscores may part digits.
 *
 * Threads: see the header. Memory: see the header.
 */
#include "literal.h"

#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define NUMBER_MAX_BYTES 400

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool bad_number(struct weir_bytes text, size_t at, const char *why,
                       struct query_error *error)
{
    return query_fail(error, QUERY_FAULT_PARSE, at,
                      "error parsing number: strconv.ParseFloat: parsing %s: %s",
                      QUERY_QUOTE(text.ptr, text.len), why);
}

/* Copy without underscores; each must stand between two digits (or after 0x). */
static bool copy_digits(struct weir_bytes text, char digits[NUMBER_MAX_BYTES])
{
    size_t n = 0;
    for (size_t i = 0; i < text.len; i++) {
        const char c = text.ptr[i];
        if (c != '_') {
            if (n + 1 >= NUMBER_MAX_BYTES)
                return false;
            digits[n++] = c;
            continue;
        }
        const bool before = i > 0 && text.ptr[i - 1] != '.' && text.ptr[i - 1] != '_';
        const bool after = i + 1 < text.len && text.ptr[i + 1] != '.' && text.ptr[i + 1] != '_';
        if (!before || !after)
            return false;
    }
    digits[n] = '\0';
    return n > 0;
}

static bool is_octal(const char *digits)
{
    return digits[0] == '0' && digits[1] != '\0' && strspn(digits, "01234567") == strlen(digits);
}

/* 0x.. or 0..; true when all of it was read. */
static bool read_integer(const char *digits, int base, double *ret_value)
{
    const char *const first = base == 16 ? digits + 2 : digits;
    if (*first == '\0' || *first == '-' || *first == '+')
        return false;
    char *end;
    errno = 0;
    const unsigned long long value = strtoull(first, &end, base);
    if (*end != '\0' || errno != 0 || value > INT64_MAX)
        return false;
    *ret_value = (double)(int64_t)value;
    return true;
}

static bool is_decimal(const char *digits)
{
    const char *p = digits;
    size_t count = 0;
    for (; is_digit(*p); p++)
        count++;
    if (*p == '.')
        p++;
    for (; is_digit(*p); p++)
        count++;
    if (count == 0)
        return false;
    if (*p == 'e' || *p == 'E') {
        p++;
        if (*p == '+' || *p == '-')
            p++;
        if (!is_digit(*p))
            return false;
        while (is_digit(*p))
            p++;
    }
    return *p == '\0';
}

bool query_read_number(struct weir_bytes text, size_t at, double *ret_value,
                       struct query_error *error)
{
    char digits[NUMBER_MAX_BYTES];
    if (!copy_digits(text, digits))
        return bad_number(text, at, "invalid syntax", error);
    if (strcasecmp(digits, "inf") == 0 || strcasecmp(digits, "nan") == 0) {
        *ret_value = (digits[0] | 0x20) == 'i' ? HUGE_VAL : (double)NAN;
        return true;
    }
    if (digits[0] == '0' && (digits[1] | 0x20) == 'x') {
        if (read_integer(digits, 16, ret_value))
            return true;
        return bad_number(text, at, "invalid syntax", error);
    }
    if (is_octal(digits) && read_integer(digits, 8, ret_value))
        return true;
    if (!is_decimal(digits))
        return bad_number(text, at, "invalid syntax", error);
    const double value = strtod(digits, NULL); /* NOLINT(cert-err34-c): checked above */
    if (isinf(value))
        return bad_number(text, at, "value out of range", error);
    *ret_value = value;
    return true;
}

struct unit {
    char name[3];
    int64_t ms;
};
static const struct unit units[] = {
    {"y", (int64_t)365 * 86400 * 1000},
    {"w", (int64_t)7 * 86400 * 1000},
    {"d", (int64_t)86400 * 1000},
    {"h", (int64_t)3600 * 1000},
    {"m", (int64_t)60 * 1000},
    {"s", 1000},
    {"ms", 1},
};
#define UNIT_COUNT (sizeof units / sizeof *units)

/* The unit that stands at p, at or after the first allowed; UNIT_COUNT when none does. */
static size_t unit_at(const char *p, size_t left, size_t first)
{
    const size_t len = left >= 2 && p[0] == 'm' && p[1] == 's' ? 2 : 1;
    for (size_t i = first; i < UNIT_COUNT; i++) {
        if (left >= len && strlen(units[i].name) == len && memcmp(units[i].name, p, len) == 0)
            return i;
    }
    return UNIT_COUNT;
}

bool query_read_duration(struct weir_bytes text, size_t at, double *ret_seconds,
                         struct query_error *error)
{
    int64_t total_ms = 0;
    size_t next_unit = 0;
    size_t i = 0;
    while (i < text.len) {
        int64_t count = 0;
        const size_t digits_at = i;
        bool over = false;
        for (; i < text.len && is_digit(text.ptr[i]); i++)
            over = over || __builtin_mul_overflow(count, 10, &count) ||
                   __builtin_add_overflow(count, text.ptr[i] - '0', &count);
        const size_t unit =
            i < text.len ? unit_at(text.ptr + i, text.len - i, next_unit) : UNIT_COUNT;
        if (i == digits_at || unit == UNIT_COUNT)
            return query_fail(error, QUERY_FAULT_PARSE, at, "not a valid duration string: %s",
                              QUERY_QUOTE(text.ptr, text.len));
        over = over || __builtin_mul_overflow(count, units[unit].ms, &count) ||
               __builtin_add_overflow(total_ms, count, &total_ms);
        /* Prometheus keeps durations in int64 nanoseconds. */
        if (over || total_ms > INT64_MAX / 1000000)
            return query_fail(error, QUERY_FAULT_PARSE, at, "duration out of range");
        i += strlen(units[unit].name);
        next_unit = unit + 1;
    }
    if (text.len == 0)
        return query_fail(error, QUERY_FAULT_PARSE, at, "empty duration string");
    *ret_seconds = (double)total_ms / 1000;
    return true;
}

static size_t put_utf8(char *out, uint32_t rune)
{
    if (rune < 0x80) {
        out[0] = (char)rune;
        return 1;
    }
    size_t n = 0;
    if (rune < 0x800) {
        out[n++] = (char)(0xC0U | (rune >> 6));
    } else if (rune < 0x10000) {
        out[n++] = (char)(0xE0U | (rune >> 12));
        out[n++] = (char)(0x80U | ((rune >> 6) & 0x3FU));
    } else {
        out[n++] = (char)(0xF0U | (rune >> 18));
        out[n++] = (char)(0x80U | ((rune >> 12) & 0x3FU));
        out[n++] = (char)(0x80U | ((rune >> 6) & 0x3FU));
    }
    out[n++] = (char)(0x80U | (rune & 0x3FU));
    return n;
}

static uint32_t digits_value(const char *p, size_t count, uint32_t base)
{
    uint32_t value = 0;
    for (size_t i = 0; i < count; i++) {
        const char c = p[i];
        value = value * base + (uint32_t)(is_digit(c) ? c - '0' : (c | 0x20) - 'a' + 10);
    }
    return value;
}

/* One escape after its backslash; returns how many bytes of p it took. Bytes given as \x and
 * octal stay bytes, \u and \U become UTF-8. */
static size_t unescape(const char *p, char *out, size_t *ret_out)
{
    static const char letters[] = "abfnrtv";
    static const char values[] = "\a\b\f\n\r\t\v";
    *ret_out = 1;
    if (*p >= '0' && *p <= '7') {
        out[0] = (char)(unsigned char)digits_value(p, 3, 8);
        return 3;
    }
    if (*p == 'x') {
        out[0] = (char)(unsigned char)digits_value(p + 1, 2, 16);
        return 3;
    }
    if (*p == 'u' || *p == 'U') {
        const size_t count = *p == 'u' ? 4 : 8;
        *ret_out = put_utf8(out, digits_value(p + 1, count, 16));
        return count + 1;
    }
    const char *const letter = strchr(letters, *p);
    out[0] = letter && *p ? values[letter - letters] : *p;
    return 1;
}

bool query_read_string(struct query_arena *arena, struct weir_bytes text,
                       struct weir_bytes *ret_value, struct query_error *error)
{
    const char *const p = text.ptr + 1;
    const size_t len = text.len - 2;
    char *const out = query_arena_take(arena, len);
    if (!out)
        return query_fail_memory(error);
    const bool raw = text.ptr[0] == '`';
    size_t n = 0;
    for (size_t i = 0; i < len;) {
        if (!raw && p[i] == '\\') {
            size_t step;
            i += 1 + unescape(p + i + 1, out + n, &step);
            n += step;
        } else {
            out[n++] = p[i++];
        }
    }
    *ret_value = (struct weir_bytes){.ptr = out, .len = n};
    return true;
}
