/* SPDX-License-Identifier: Apache-2.0 */
/*
 * line: see line.h.
 *
 * Values come from anywhere, so everything that could end a line, a field or a JSON string is
 * escaped here: control bytes, quotes, backslashes, and bytes that are not UTF-8.
 *
 * Threads: none inside. Memory: the caller's buffer.
 */
#include "log/line.h"

#include "log/utf8.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

struct out {
    char *at;
    char *end; /* the room of the tail is kept back behind it */
    bool full;
};

/* ,"truncated":true}\n with the NUL of snprintf. */
#define TAIL_BYTES 32

static void put(struct out *o, const char *text, size_t n)
{
    if (o->full || (size_t)(o->end - o->at) < n) {
        o->full = true;
        return;
    }
    memcpy(o->at, text, n);
    o->at += n;
}

static void put_text(struct out *o, const char *text)
{
    put(o, text, strlen(text));
}

/* JSON's escapes serve logfmt too: its readers take Go's, of which these are a part. */
static void put_escaped(struct out *o, const char *text)
{
    const unsigned char *s = (const unsigned char *)text;
    const unsigned char *const end = s + strlen(text);
    while (s < end && !o->full) {
        const size_t n = log_utf8_length((const char *)s, (size_t)(end - s));
        if (n == 0) {
            put_text(o, "\\ufffd");
            s++;
            continue;
        }
        if (*s == '"' || *s == '\\') {
            const char pair[2] = {'\\', (char)*s};
            put(o, pair, 2);
        } else if (*s == '\n') {
            put_text(o, "\\n");
        } else if (*s == '\t') {
            put_text(o, "\\t");
        } else if (*s < 0x20 || *s == 0x7f) {
            char hex[8];
            (void)snprintf(hex, sizeof hex, "\\u%04x", *s);
            put_text(o, hex);
        } else {
            put(o, (const char *)s, n);
        }
        s += n;
    }
}

static void put_quoted(struct out *o, const char *text)
{
    put(o, "\"", 1);
    put_escaped(o, text);
    put(o, "\"", 1);
}

/* A bare logfmt value: printable ASCII without what its readers split on. */
static bool is_bare(const char *text)
{
    if (!*text)
        return false;
    for (const char *s = text; *s; s++) {
        if (*s <= ' ' || *s >= 0x7f || *s == '"' || *s == '=' || *s == '\\')
            return false;
    }
    return true;
}

/* All of the pair or nothing of it. */
static void put_pair(struct out *o, enum log_format format, const char *key, const char *value)
{
    char *const before = o->at;
    if (o->full)
        return;
    if (format == LOG_JSON) {
        put(o, ",", 1);
        put_quoted(o, key);
        put(o, ":", 1);
        put_quoted(o, value);
    } else {
        put(o, " ", 1);
        put_text(o, key);
        put(o, "=", 1);
        if (is_bare(value))
            put_text(o, value);
        else
            put_quoted(o, value);
    }
    if (o->full)
        o->at = before;
}

static const char *level_text(enum log_level level)
{
    switch (level) {
    case LOG_DEBUG_LEVEL:
        return "debug";
    case LOG_INFO_LEVEL:
        return "info";
    case LOG_WARN_LEVEL:
        return "warn";
    case LOG_ERROR_LEVEL:
        return "error";
    }
    return "error";
}

static void put_time(struct out *o, enum log_format format, int64_t wall_ns)
{
    const time_t seconds = (time_t)(wall_ns / 1000000000);
    struct tm tm;
    char text[64];
    memset(&tm, 0, sizeof tm);
    (void)gmtime_r(&seconds, &tm);
    (void)snprintf(text, sizeof text, "%04d-%02d-%02dT%02d:%02d:%02d.%03dZ", tm.tm_year + 1900,
                   tm.tm_mon + 1, tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec,
                   (int)(wall_ns / 1000000 % 1000));
    put_text(o, format == LOG_JSON ? "{\"ts\":\"" : "ts=");
    put_text(o, text);
    if (format == LOG_JSON)
        put(o, "\"", 1);
}

size_t log_line_build(char *buf, const struct log_event *event, va_list pairs)
{
    struct out o = {.at = buf, .end = buf + LOG_LINE_BYTES - TAIL_BYTES, .full = false};
    const bool json = event->format == LOG_JSON;
    put_time(&o, event->format, event->wall_ns);
    put_pair(&o, event->format, "level", level_text(event->level));
    put_pair(&o, event->format, "at", event->at);
    put_pair(&o, event->format, "event", event->event);
    if (event->suppressed > 0) {
        struct log_num n;
        put_pair(&o, event->format, "suppressed", log_u64(&n, event->suppressed));
    }
    for (;;) {
        const char *const key = va_arg(pairs, const char *);
        if (!key)
            break;
        const char *const value = va_arg(pairs, const char *);
        put_pair(&o, event->format, key, value ? value : "");
        if (!value)
            break; /* an odd list: its NULL was the end */
    }
    const char *const tail =
        json ? (o.full ? ",\"truncated\":true}\n" : "}\n") : (o.full ? " truncated=true\n" : "\n");
    const size_t tail_bytes = strlen(tail);
    memcpy(o.at, tail, tail_bytes);
    return (size_t)(o.at - buf) + tail_bytes;
}

bool log_site_admit(struct log_site *site, int64_t now, uint32_t *ret_suppressed)
{
    /* A bucket that leaks one a second; count is what is in it. */
    const int64_t passed = now - site->second;
    if (passed > 0) {
        site->count -= passed >= (int64_t)site->count ? site->count : (uint32_t)passed;
        site->second = now;
    }
    if (site->count >= LOG_SITE_BURST) {
        if (site->suppressed < UINT32_MAX)
            site->suppressed++;
        return false;
    }
    site->count++;
    *ret_suppressed = site->suppressed;
    site->suppressed = 0;
    return true;
}
