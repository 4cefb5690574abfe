/* SPDX-License-Identifier: Apache-2.0 */
/*
 * form: see the header. Calendar by days since the epoch, without the C library's tables: it has
 * no leap seconds and knows years 1 to 9999, which RFC 3339 is limited to.
 *
 * Threads: see the header. Memory: see the header.
 */
#include "form.h"
#include "literal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    const char lower = (char)(c | 0x20);
    return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

/* out has room for len bytes. False at a bad escape, *ret_len then being its offset. */
static bool decode(const char *p, size_t len, char *out, size_t *ret_len)
{
    size_t n = 0;
    for (size_t i = 0; i < len; i++) {
        if (p[i] == '%') {
            if (len - i < 3 || hex_value(p[i + 1]) < 0 || hex_value(p[i + 2]) < 0) {
                *ret_len = i;
                return false;
            }
            out[n++] = (char)(unsigned char)(hex_value(p[i + 1]) * 16 + hex_value(p[i + 2]));
            i += 2;
        } else {
            out[n++] = p[i] == '+' ? ' ' : p[i];
        }
    }
    *ret_len = n;
    return true;
}

static int decode_value(struct query_arena *arena, const char *p, size_t len,
                        struct weir_bytes *ret_value)
{
    char *const out = query_arena_take(arena, len);
    if (!out)
        return -2;
    size_t n;
    if (!decode(p, len, out, &n)) {
        *ret_value = (struct weir_bytes){.ptr = p + n, .len = len - n < 3 ? len - n : 3};
        return -1;
    }
    *ret_value = (struct weir_bytes){.ptr = out, .len = n};
    return 1;
}

int query_form_find(struct query_arena *arena, struct weir_bytes form, const char *name,
                    struct weir_bytes *ret_value)
{
    const size_t name_len = strlen(name);
    size_t at = 0;
    while (at < form.len) {
        const char *const pair = form.ptr + at;
        const char *const amp = memchr(pair, '&', form.len - at);
        const size_t pair_len = amp ? (size_t)(amp - pair) : form.len - at;
        const char *const equals = pair_len ? memchr(pair, '=', pair_len) : NULL;
        const size_t key_len = equals ? (size_t)(equals - pair) : pair_len;
        /* Names of parameters are plain letters: an escaped one is another name. */
        if (key_len == name_len && memcmp(pair, name, name_len) == 0) {
            const size_t skip = equals ? key_len + 1 : key_len;
            return decode_value(arena, pair + skip, pair_len - skip, ret_value);
        }
        at += pair_len + 1;
    }
    return 0;
}

/* A whole decimal number, sign and exponent allowed. */
static bool read_decimal(struct weir_bytes text, double *ret_value)
{
    char copy[64];
    if (text.len == 0 || text.len >= sizeof copy)
        return false;
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] == '\0' || !strchr("0123456789.eE+-", text.ptr[i]))
            return false;
    }
    memcpy(copy, text.ptr, text.len);
    copy[text.len] = '\0';
    char *end;
    *ret_value = strtod(copy, &end);
    return end == copy + text.len && isfinite(*ret_value);
}

/* count digits at *p; moves it. */
static bool take_digits(const char **p, const char *end, int count, int *ret_value)
{
    if (end - *p < count)
        return false;
    int value = 0;
    for (int i = 0; i < count; i++) {
        const char c = *(*p)++;
        if (c < '0' || c > '9')
            return false;
        value = value * 10 + (c - '0');
    }
    *ret_value = value;
    return true;
}

static bool take_char(const char **p, const char *end, const char *any)
{
    if (*p == end || **p == '\0' || !strchr(any, **p))
        return false;
    ++*p;
    return true;
}

static bool is_leap(int year)
{
    return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
}

static int days_in_month(int year, int month)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    return days[month - 1] + (month == 2 && is_leap(year) ? 1 : 0);
}

/* Days from 1970-01-01 to the date, years 1 to 9999. */
static int64_t days_from_epoch(int year, int month, int day)
{
    const int64_t before = year - 1;
    int64_t days = before * 365 + before / 4 - before / 100 + before / 400 - 719162;
    for (int m = 1; m < month; m++)
        days += days_in_month(year, m);
    return days + day - 1;
}

static bool take_date(const char **p, const char *end, int64_t *ret_days)
{
    int year;
    int month;
    int day;
    if (!take_digits(p, end, 4, &year) || !take_char(p, end, "-") ||
        !take_digits(p, end, 2, &month) || !take_char(p, end, "-") || !take_digits(p, end, 2, &day))
        return false;
    if (year < 1 || month < 1 || month > 12 || day < 1 || day > days_in_month(year, month))
        return false;
    *ret_days = days_from_epoch(year, month, day);
    return true;
}

/* Any number of digits behind the dot; milliseconds, rounded. */
static bool take_fraction(const char **p, const char *end, int64_t *ret_ms)
{
    *ret_ms = 0;
    if (!take_char(p, end, "."))
        return true;
    int64_t value = 0;
    int digits = 0;
    for (; *p < end && **p >= '0' && **p <= '9'; ++*p, digits++) {
        if (digits < 4)
            value = value * 10 + (**p - '0');
    }
    for (int i = digits; i < 4; i++)
        value *= 10;
    *ret_ms = (value + 5) / 10;
    return digits > 0;
}

/* Z or +hh:mm; minutes east of UTC. */
static bool take_zone(const char **p, const char *end, int *ret_minutes)
{
    *ret_minutes = 0;
    if (take_char(p, end, "Zz"))
        return true;
    const bool west = *p < end && **p == '-';
    int hours;
    int minutes;
    if (!take_char(p, end, "+-") || !take_digits(p, end, 2, &hours) || !take_char(p, end, ":") ||
        !take_digits(p, end, 2, &minutes) || hours > 23 || minutes > 59)
        return false;
    *ret_minutes = (hours * 60 + minutes) * (west ? -1 : 1);
    return true;
}

static bool read_rfc3339(struct weir_bytes text, int64_t *ret_time_ms)
{
    const char *p = text.ptr;
    const char *const end = text.ptr + text.len;
    int64_t days;
    int hour;
    int minute;
    int second;
    int64_t ms;
    int zone;
    if (!take_date(&p, end, &days) || !take_char(&p, end, "Tt") ||
        !take_digits(&p, end, 2, &hour) || !take_char(&p, end, ":") ||
        !take_digits(&p, end, 2, &minute) || !take_char(&p, end, ":") ||
        !take_digits(&p, end, 2, &second) || !take_fraction(&p, end, &ms) ||
        !take_zone(&p, end, &zone) || p != end)
        return false;
    if (hour > 23 || minute > 59 || second > 59)
        return false;
    const int64_t seconds = days * 86400 + hour * 3600 + (minute - zone) * 60 + second;
    *ret_time_ms = seconds * 1000 + ms;
    return true;
}

bool query_form_time(struct weir_bytes text, int64_t *ret_time_ms)
{
    double seconds;
    if (read_decimal(text, &seconds)) {
        if (!(fabs(seconds) <= 9e12))
            return false;
        *ret_time_ms = (int64_t)llround(seconds * 1000);
        return true;
    }
    return text.len > 0 && read_rfc3339(text, ret_time_ms);
}

bool query_form_duration(struct weir_bytes text, double *ret_seconds)
{
    struct query_error error = {.fault = QUERY_FAULT_NONE};
    if (read_decimal(text, ret_seconds))
        return fabs(*ret_seconds) <= 9e9;
    return query_read_duration(text, 0, ret_seconds, &error);
}

void query_form_put(struct query_buf *form, struct weir_bytes text)
{
    for (size_t i = 0; i < text.len; i++) {
        const unsigned char c = (unsigned char)text.ptr[i];
        const bool plain =
            (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
        if (plain)
            query_buf_put_char(form, (char)c);
        else
            query_buf_put_format(form, "%%%02X", c);
    }
}
