/* SPDX-License-Identifier: Apache-2.0 */
/*
 * value: see value.h. Numbers are read by hand: a digit at a time under an overflow check, so that
 * nothing is skipped, rounded or wrapped. Threads: none inside. Memory: the heap, small.
 */
#include "config/value.h"

#include "log/utf8.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

struct unit {
    const char *name;
    int64_t scale;
};
static const struct unit duration_units[] = {
    {"y", 365 * INT64_C(86400000000000)},
    {"w", 7 * INT64_C(86400000000000)},
    {"d", INT64_C(86400000000000)},
    {"h", INT64_C(3600000000000)},
    {"m", INT64_C(60000000000)},
    {"s", INT64_C(1000000000)},
    {"ms", INT64_C(1000000)},
};
static const struct unit byte_units[] = {
    {"", 1},
    {"B", 1},
    {"KiB", INT64_C(1) << 10},
    {"MiB", INT64_C(1) << 20},
    {"GiB", INT64_C(1) << 30},
    {"TiB", INT64_C(1) << 40},
    {"KB", 1000},
    {"MB", 1000000},
    {"GB", 1000000000},
    {"TB", 1000000000000},
};
#define COUNT_OF(a) (sizeof(a) / sizeof *(a))
/* So that the most items of a list fit 8 KiB of text. */
#define ITEM_MAX_BYTES 200

const char *config_quote(const char *text, char buf[80])
{
    size_t n = 0;
    buf[n++] = '"';
    for (; *text && n < 72; text++)
        buf[n++] = (unsigned char)*text < 0x20 || *text == 0x7f ? '?' : *text;
    if (*text) {
        memcpy(buf + n, "...", 3);
        n += 3;
    }
    buf[n++] = '"';
    buf[n] = 0;
    return buf;
}

__attribute__((format(printf, 2, 3))) static int refuse(char why[CONFIG_WHY_BYTES],
                                                        const char *format, ...)
{
    va_list args;
    va_start(args, format);
    (void)vsnprintf(why, CONFIG_WHY_BYTES, format, args);
    va_end(args);
    return -1;
}

/* Digits at *text to *ret, and past them; -1 for none or too many. */
static int take_number(const char **text, int64_t *ret)
{
    const char *s = *text;
    int64_t v = 0;
    if (*s < '0' || *s > '9')
        return -1;
    for (; *s >= '0' && *s <= '9'; s++) {
        if (__builtin_mul_overflow(v, 10, &v) || __builtin_add_overflow(v, *s - '0', &v))
            return -1;
    }
    *text = s;
    *ret = v;
    return 0;
}

static int parse_duration(const char *text, int64_t *ret)
{
    int64_t sum = 0;
    size_t next_unit = 0;
    if (strcmp(text, "0") == 0) {
        *ret = 0;
        return 0;
    }
    while (*text || next_unit == 0) {
        int64_t v;
        if (take_number(&text, &v) != 0)
            return -1;
        const size_t letters = strspn(text, "abcdefghijklmnopqrstuvwxyz");
        size_t u = next_unit;
        while (u < COUNT_OF(duration_units) && (strlen(duration_units[u].name) != letters ||
                                                memcmp(duration_units[u].name, text, letters) != 0))
            u++;
        if (u == COUNT_OF(duration_units) ||
            __builtin_mul_overflow(v, duration_units[u].scale, &v) ||
            __builtin_add_overflow(sum, v, &sum))
            return -1;
        text += letters;
        next_unit = u + 1;
    }
    *ret = sum;
    return 0;
}

static int parse_bytes(const char *text, int64_t *ret)
{
    int64_t v;
    if (take_number(&text, &v) != 0)
        return -1;
    for (size_t u = 0; u < COUNT_OF(byte_units); u++) {
        if (strcmp(text, byte_units[u].name) == 0)
            return __builtin_mul_overflow(v, byte_units[u].scale, ret) ? -1 : 0;
    }
    return -1;
}

static int parse_count(const char *text, int64_t *ret)
{
    return take_number(&text, ret) != 0 || *text ? -1 : 0;
}

static void put(char *buf, size_t bytes, size_t *n, const char *text)
{
    const size_t len = strlen(text);
    for (size_t i = 0; i < len && *n + 1 < bytes; i++)
        buf[(*n)++] = text[i];
    buf[*n] = 0;
}

static void format_duration(int64_t v, char *buf, size_t bytes)
{
    size_t n = 0;
    char part[32];
    put(buf, bytes, &n, v == 0 ? "0s" : "");
    /* Not in weeks or years: 15d reads better than 2w1d. */
    for (size_t u = 2; u < COUNT_OF(duration_units); u++) {
        const int64_t count = v / duration_units[u].scale;
        v %= duration_units[u].scale;
        (void)snprintf(part, sizeof part, "%" PRId64 "%s", count, duration_units[u].name);
        put(buf, bytes, &n, count ? part : "");
    }
}

/* In the unit that divides it and leaves the least number: 2GB and 2GiB each as they were written.
 */
static void format_bytes(int64_t v, char *buf, size_t bytes)
{
    const struct unit *best = &byte_units[0];
    for (size_t u = 2; v > 0 && u < COUNT_OF(byte_units); u++) {
        if (v % byte_units[u].scale == 0 && byte_units[u].scale > best->scale)
            best = &byte_units[u];
    }
    (void)snprintf(buf, bytes, "%" PRId64 "%s", v / best->scale, best->name);
}

static void format_number(const struct config_option *o, int64_t v, char *buf, size_t bytes)
{
    if (o->type == CONFIG_DURATION)
        format_duration(v, buf, bytes);
    else if (o->type == CONFIG_BYTES)
        format_bytes(v, buf, bytes);
    else
        (void)snprintf(buf, bytes, "%" PRId64, v);
}

static int set_number(const struct config_option *o, int64_t *field, const char *text, char *why)
{
    char quoted[80];
    char bound[64];
    int64_t v;
    int r;
    const char *like;
    if (o->type == CONFIG_DURATION) {
        r = parse_duration(text, &v);
        like = "a duration like 10s, 1h30m or 15d";
    } else if (o->type == CONFIG_BYTES) {
        r = parse_bytes(text, &v);
        like = "a size like 25MiB or 2GiB";
    } else {
        r = parse_count(text, &v);
        like = "a whole number";
    }
    if (r != 0)
        return refuse(why, "%s is not %s", config_quote(text, quoted), like);
    if (v < o->min || v > o->max) {
        format_number(o, v < o->min ? o->min : o->max, bound, sizeof bound);
        return refuse(why, "%s is out of range: %s is %s", config_quote(text, quoted), bound,
                      v < o->min ? "the least" : "the most");
    }
    *field = v;
    return 0;
}

static int set_enum(const struct config_option *o, int *field, const char *text, char *why)
{
    char quoted[80];
    const size_t n = strlen(text);
    int index = 0;
    for (const char *word = o->unit; *word; index++) {
        const size_t len = strcspn(word, "|");
        if (len == n && memcmp(word, text, n) == 0) {
            *field = index;
            return 0;
        }
        word += len + (word[len] == '|');
    }
    return refuse(why, "%s is not one of %s", config_quote(text, quoted), o->unit);
}

static int set_string(const struct config_option *o, char **field, const char *text, char *why)
{
    const size_t n = strlen(text);
    for (const char *s = text; *s; s++) {
        if ((unsigned char)*s < 0x20 || *s == 0x7f)
            return refuse(why, "a control byte is in the value");
    }
    if (n < (size_t)o->min)
        return refuse(why, "the value is empty");
    if (n > (size_t)o->max)
        return refuse(why, "the value has %zu bytes: %" PRId64 " is the most", n, o->max);
    char *const copy = strdup(text);
    if (!copy)
        return refuse(why, "out of memory");
    free(*field);
    *field = copy;
    return 0;
}

static bool is_host(const char *host, bool bracketed)
{
    unsigned char address[16];
    if (bracketed)
        return inet_pton(AF_INET6, host, address) == 1;
    return inet_pton(AF_INET, host, address) == 1 || strcmp(host, "localhost") == 0;
}

static int set_address(const struct config_option *o, struct config_address *field,
                       const char *text, char *why)
{
    char quoted[80];
    char host[64] = "";
    int64_t port = 0;
    const bool bracketed = text[0] == '[';
    const char *const start = text + bracketed;
    const char *colon = strrchr(text, ':');
    if (!*text) {
        free(field->host);
        *field = (struct config_address){.host = NULL, .port = 0};
        return 0;
    }
    if (!colon || (bracketed && (colon == text || colon[-1] != ']')))
        return refuse(why, "%s has no port: write host:port", config_quote(text, quoted));
    const size_t n = (size_t)(colon - start) - bracketed;
    const char *digits = colon + 1;
    if (colon == text)
        return refuse(why,
                      "%s has no host: write 127.0.0.1:port, or 0.0.0.0:port for every network",
                      config_quote(text, quoted));
    if (n < sizeof host) {
        memcpy(host, start, n);
        host[n] = 0;
    }
    if (!is_host(host, bracketed))
        return refuse(why,
                      "%s has no address before its port: write an IPv4 address, an IPv6 "
                      "address in brackets, or localhost",
                      config_quote(text, quoted));
    if (take_number(&digits, &port) != 0 || *digits || port < o->min || port > o->max)
        return refuse(why, "%s has no port from %" PRId64 " to %" PRId64,
                      config_quote(text, quoted), o->min, o->max);
    char *const copy = strdup(host);
    if (!copy)
        return refuse(why, "out of memory");
    free(field->host);
    *field = (struct config_address){.host = copy, .port = (int)port};
    return 0;
}

static void list_free(struct config_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        free(list->items[i]);
    free(list->items);
    *list = (struct config_list){.items = NULL, .count = 0};
}

/* An item is printable and without blanks; none of the names it joins is empty. */
static bool is_item(const char *s, size_t n)
{
    if (n == 0 || n > ITEM_MAX_BYTES || s[0] == '|' || s[n - 1] == '|')
        return false;
    for (size_t i = 0; i < n; i++) {
        if ((unsigned char)s[i] <= ' ' || s[i] == 0x7f || (s[i] == '|' && s[i + 1] == '|'))
            return false;
    }
    return true;
}

static int list_add(const struct config_option *o, struct config_list *list, const char *s,
                    size_t n, char *why)
{
    char quoted[80];
    char item[256];
    (void)snprintf(item, sizeof item, "%.*s", (int)(n < sizeof item ? n : sizeof item - 1), s);
    if (!is_item(s, n))
        return refuse(why, "%s is not a name, or names joined by |", config_quote(item, quoted));
    if (list->count >= (size_t)o->max)
        return refuse(why, "more than %" PRId64 " %s", o->max, o->unit);
    for (size_t i = 0; i < list->count; i++) {
        if (strcmp(list->items[i], item) == 0)
            return refuse(why, "%s is there twice", config_quote(item, quoted));
    }
    char **const items = realloc(list->items, (list->count + 1) * sizeof *items);
    if (!items)
        return refuse(why, "out of memory");
    list->items = items;
    items[list->count] = strdup(item);
    if (!items[list->count])
        return refuse(why, "out of memory");
    list->count++;
    return 0;
}

static int set_list(const struct config_option *o, struct config_list *field, const char *text,
                    char *why)
{
    struct config_list list = {.items = NULL, .count = 0};
    const char *s = text + strspn(text, " ");
    while (*s) {
        const size_t len = strcspn(s, ",");
        size_t n = len;
        while (n > 0 && s[n - 1] == ' ')
            n--;
        if (list_add(o, &list, s, n, why) != 0) {
            list_free(&list);
            return -1;
        }
        if (!s[len])
            break;
        s += len + 1;
        s += strspn(s, " ");
        if (!*s) {
            list_free(&list);
            return refuse(why, "a comma is at the end");
        }
    }
    if (list.count < (size_t)o->min) {
        list_free(&list);
        return refuse(why, "fewer than %" PRId64 " %s", o->min, o->unit);
    }
    list_free(field);
    *field = list;
    return 0;
}

/* The file cannot hold anything else, and what is printed must be a file. */
static bool is_utf8(const char *text)
{
    size_t left = strlen(text);
    while (left) {
        const size_t n = log_utf8_length(text, left);
        if (n == 0)
            return false;
        text += n;
        left -= n;
    }
    return true;
}

int config_value_set(struct config *config, size_t option, const char *text,
                     char why[CONFIG_WHY_BYTES])
{
    const struct config_option *const o = &config_options[option];
    void *const field = (char *)config + o->offset;
    if (!is_utf8(text))
        return refuse(why, "a byte that is not UTF-8 text");
    switch (o->type) {
    case CONFIG_STRING:
        return set_string(o, field, text, why);
    case CONFIG_ENUM:
        return set_enum(o, field, text, why);
    case CONFIG_DURATION:
    case CONFIG_BYTES:
    case CONFIG_COUNT:
        return set_number(o, field, text, why);
    case CONFIG_ADDRESS:
        return set_address(o, field, text, why);
    case CONFIG_LIST:
        return set_list(o, field, text, why);
    }
    return refuse(why, "no such type");
}

void config_value_clear(struct config *config, size_t option)
{
    const struct config_option *const o = &config_options[option];
    void *const field = (char *)config + o->offset;
    if (o->type == CONFIG_STRING) {
        char **const text = field;
        free(*text);
        *text = NULL;
    } else if (o->type == CONFIG_ADDRESS) {
        struct config_address *const address = field;
        free(address->host);
        address->host = NULL;
    } else if (o->type == CONFIG_LIST) {
        list_free(field);
    }
}

void config_format(const struct config *config, size_t option, char *buf, size_t bytes)
{
    const struct config_option *const o = &config_options[option];
    const void *const field = (const char *)config + o->offset;
    size_t n = 0;
    buf[0] = 0;
    switch (o->type) {
    case CONFIG_STRING:
        put(buf, bytes, &n, *(char *const *)field);
        break;
    case CONFIG_ENUM: {
        const char *word = o->unit;
        for (int i = *(const int *)field; i > 0; i--)
            word = strchr(word, '|') + 1;
        (void)snprintf(buf, bytes, "%.*s", (int)strcspn(word, "|"), word);
        break;
    }
    case CONFIG_DURATION:
    case CONFIG_BYTES:
    case CONFIG_COUNT:
        format_number(o, *(const int64_t *)field, buf, bytes);
        break;
    case CONFIG_ADDRESS: {
        const struct config_address *const a = field;
        if (a->host)
            (void)snprintf(buf, bytes, strchr(a->host, ':') ? "[%s]:%d" : "%s:%d", a->host,
                           a->port);
        break;
    }
    case CONFIG_LIST: {
        const struct config_list *const list = field;
        for (size_t i = 0; i < list->count; i++) {
            put(buf, bytes, &n, i ? "," : "");
            put(buf, bytes, &n, list->items[i]);
        }
        break;
    }
    }
}
