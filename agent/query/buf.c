/* SPDX-License-Identifier: Apache-2.0 */
/*
 * buf: doubling growth up to the maximum; the first refusal sticks and is asked for at the end.
 *
 * Threads: see the header. Memory: see the header.
 */
#include "buf.h"

#include <float.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void query_buf_init(struct query_buf *buf, size_t max_bytes)
{
    *buf = (struct query_buf){.max_bytes = max_bytes};
}

void query_buf_done(struct query_buf *buf)
{
    free(buf->ptr);
    *buf = (struct query_buf){.max_bytes = buf->max_bytes};
}

void query_buf_clear(struct query_buf *buf)
{
    buf->len = 0;
    buf->err = 0;
}

static bool reserve(struct query_buf *buf, size_t more)
{
    if (buf->err)
        return false;
    if (more <= buf->cap - buf->len)
        return true;
    if (more > buf->max_bytes - buf->len) {
        buf->err = WEIR_EFULL;
        return false;
    }
    size_t cap = buf->cap ? buf->cap : 256;
    while (cap - buf->len < more)
        cap = cap > buf->max_bytes / 2 ? buf->max_bytes : cap * 2;
    char *const ptr = realloc(buf->ptr, cap);
    if (!ptr) {
        buf->err = WEIR_ENOMEM;
        return false;
    }
    buf->ptr = ptr;
    buf->cap = cap;
    return true;
}

void query_buf_put(struct query_buf *buf, const char *bytes, size_t len)
{
    if (len == 0 || !reserve(buf, len))
        return;
    memcpy(buf->ptr + buf->len, bytes, len);
    buf->len += len;
}

void query_buf_put_text(struct query_buf *buf, const char *text)
{
    query_buf_put(buf, text, strlen(text));
}

void query_buf_put_char(struct query_buf *buf, char c)
{
    query_buf_put(buf, &c, 1);
}

void query_buf_put_format(struct query_buf *buf, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    va_list again;
    va_copy(again, args);
    const int need = vsnprintf(NULL, 0, format, args);
    va_end(args);
    /* One byte more for the NUL that vsnprintf writes and the buffer does not count. */
    if (need > 0 && reserve(buf, (size_t)need + 1)) {
        (void)vsnprintf(buf->ptr + buf->len, (size_t)need + 1, format, again);
        buf->len += (size_t)need;
    }
    va_end(again);
}

static bool is_tail(char c)
{
    return ((unsigned char)c & 0xC0U) == 0x80U;
}

/* RFC 3629: how many bytes begin here, 0 when the first byte cannot begin a code point. */
static size_t utf8_length(unsigned char first)
{
    if (first < 0x80)
        return 1;
    if (first >= 0xC2 && first <= 0xDF)
        return 2;
    if (first >= 0xE0 && first <= 0xEF)
        return 3;
    if (first >= 0xF0 && first <= 0xF4)
        return 4;
    return 0;
}

int32_t query_utf8_next(const char *bytes, size_t len, size_t *ret_bytes)
{
    static const int32_t lowest[5] = {0, 0, 0x80, 0x800, 0x10000};
    const unsigned char first = (unsigned char)bytes[0];
    const size_t need = utf8_length(first);
    *ret_bytes = 1;
    if (need == 1)
        return first;
    if (need == 0 || need > len)
        return -1;
    int32_t rune = first & (0x7F >> need);
    for (size_t i = 1; i < need; i++) {
        if (!is_tail(bytes[i]))
            return -1;
        rune = rune * 64 + ((unsigned char)bytes[i] & 0x3F);
    }
    if (rune < lowest[need] || rune > 0x10FFFF || (rune >= 0xD800 && rune <= 0xDFFF))
        return -1;
    *ret_bytes = need;
    return rune;
}

static void put_json_rune(struct query_buf *buf, int32_t rune, const char *bytes, size_t len)
{
    static const char hex[] = "0123456789abcdef";
    if (rune < 0)
        query_buf_put_text(buf, "\xEF\xBF\xBD");
    else if (rune == '"' || rune == '\\')
        query_buf_put(buf, (const char[2]){'\\', (char)rune}, 2);
    else if (rune == '\n')
        query_buf_put_text(buf, "\\n");
    else if (rune == '\r')
        query_buf_put_text(buf, "\\r");
    else if (rune == '\t')
        query_buf_put_text(buf, "\\t");
    else if (rune < 0x20)
        query_buf_put(buf, (const char[6]){'\\', 'u', '0', '0', hex[rune >> 4], hex[rune & 15]}, 6);
    else
        query_buf_put(buf, bytes, len);
}

void query_buf_put_json_string(struct query_buf *buf, const char *bytes, size_t len)
{
    query_buf_put_char(buf, '"');
    size_t at = 0;
    while (at < len) {
        size_t step;
        const int32_t rune = query_utf8_next(bytes + at, len - at, &step);
        put_json_rune(buf, rune, bytes + at, step);
        at += step;
    }
    query_buf_put_char(buf, '"');
}

static void put_quoted_rune(struct query_buf *buf, int32_t rune, const char *bytes, size_t len)
{
    static const char plain[] = "\a\b\f\n\r\t\v";
    static const char letter[] = "abfnrtv";
    if (rune < 0) {
        query_buf_put_format(buf, "\\x%02x", (unsigned)(unsigned char)bytes[0]);
        return;
    }
    const char *const found = rune > 0 && rune < 0x20 ? strchr(plain, rune) : NULL;
    if (found)
        query_buf_put(buf, (const char[2]){'\\', letter[found - plain]}, 2);
    else if (rune == '"' || rune == '\\')
        query_buf_put(buf, (const char[2]){'\\', (char)rune}, 2);
    else if (rune < 0x20 || rune == 0x7F)
        query_buf_put_format(buf, "\\x%02x", (unsigned)rune);
    else
        query_buf_put(buf, bytes, len);
}

void query_buf_put_quoted(struct query_buf *buf, const char *bytes, size_t len)
{
    query_buf_put_char(buf, '"');
    size_t at = 0;
    while (at < len) {
        size_t step;
        const int32_t rune = query_utf8_next(bytes + at, len - at, &step);
        put_quoted_rune(buf, rune, bytes + at, step);
        at += step;
    }
    query_buf_put_char(buf, '"');
}

/* The shortest text (zeros at its end aside) that reads back the same. */
static void shortest(double value, char text[32])
{
    /* A normal double that a shorter text stands for shows it in 15 digits, as zeros at the end;
     * a subnormal has fewer digits than that. */
    for (int digits = value < DBL_MIN ? 1 : 15; digits <= 17; digits++) {
        (void)snprintf(text, 32, "%.*e", digits - 1, value);
        if (strtod(text, NULL) == value) /* NOLINT(cert-err34-c): our own text */
            return;
    }
}

struct decimal {
    char digits[20]; /* without trailing zeros, at least one */
    size_t count;
    int exponent; /* of the first digit */
};

static struct decimal decimal_of(double magnitude)
{
    char text[32];
    shortest(magnitude, text);
    struct decimal d = {.count = 0};
    const char *p = text;
    for (; *p != 'e'; p++) {
        if (*p != '.' && d.count < sizeof d.digits)
            d.digits[d.count++] = *p;
    }
    while (d.count > 1 && d.digits[d.count - 1] == '0')
        d.count--;
    d.exponent = (int)strtol(p + 1, NULL, 10); /* NOLINT(cert-err34-c): our own text */
    return d;
}

static void put_zeros(struct query_buf *buf, int count)
{
    for (int i = 0; i < count; i++)
        query_buf_put_char(buf, '0');
}

/* Counts, mostly: digits as they are, no search for the shortest. */
static bool put_whole(struct query_buf *buf, double magnitude)
{
    if (!(magnitude < 1e15) || magnitude != floor(magnitude))
        return false;
    char digits[16];
    size_t n = sizeof digits;
    uint64_t rest = (uint64_t)magnitude;
    do {
        digits[--n] = (char)('0' + rest % 10);
        rest /= 10;
    } while (rest);
    query_buf_put(buf, digits + n, sizeof digits - n);
    return true;
}

static void put_plain(struct query_buf *buf, const struct decimal *d)
{
    if (d->exponent < 0) {
        query_buf_put_text(buf, "0.");
        put_zeros(buf, -d->exponent - 1);
        query_buf_put(buf, d->digits, d->count);
        return;
    }
    const size_t whole = (size_t)d->exponent + 1;
    if (d->count <= whole) {
        query_buf_put(buf, d->digits, d->count);
        put_zeros(buf, (int)(whole - d->count));
        return;
    }
    query_buf_put(buf, d->digits, whole);
    query_buf_put_char(buf, '.');
    query_buf_put(buf, d->digits + whole, d->count - whole);
}

/* What has no digits, and the sign of what has. False when all is said. */
static bool put_special(struct query_buf *buf, double value)
{
    if (isnan(value)) {
        query_buf_put_text(buf, "NaN");
        return false;
    }
    if (isinf(value)) {
        query_buf_put_text(buf, value > 0 ? "+Inf" : "-Inf");
        return false;
    }
    if (signbit(value))
        query_buf_put_char(buf, '-');
    return true;
}

void query_buf_put_double(struct query_buf *buf, double value)
{
    if (!put_special(buf, value))
        return;
    const double magnitude = fabs(value);
    if (put_whole(buf, magnitude))
        return;
    const struct decimal d = decimal_of(magnitude);
    if (magnitude >= 1e-6 && magnitude < 1e21) {
        put_plain(buf, &d);
        return;
    }
    query_buf_put(buf, d.digits, 1);
    if (d.count > 1) {
        query_buf_put_char(buf, '.');
        query_buf_put(buf, d.digits + 1, d.count - 1);
    }
    query_buf_put_format(buf, "e%c%02d", d.exponent < 0 ? '-' : '+', abs(d.exponent));
}

void query_buf_put_plain_double(struct query_buf *buf, double value)
{
    if (!put_special(buf, value) || put_whole(buf, fabs(value)))
        return;
    const struct decimal d = decimal_of(fabs(value));
    put_plain(buf, &d);
}

void query_buf_put_time(struct query_buf *buf, int64_t time_ms)
{
    const uint64_t magnitude = time_ms < 0 ? 0 - (uint64_t)time_ms : (uint64_t)time_ms;
    if (time_ms < 0)
        query_buf_put_char(buf, '-');
    query_buf_put_format(buf, "%llu", (unsigned long long)(magnitude / 1000));
    if (magnitude % 1000)
        query_buf_put_format(buf, ".%03u", (unsigned)(magnitude % 1000));
}
