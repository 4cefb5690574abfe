/* SPDX-License-Identifier: Apache-2.0 */
/* show: see show.h. */
#include "cli/show.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <time.h>

#define SECOND_NS INT64_C(1000000000)

static bool is_control(int32_t rune)
{
    return rune < 0x20 || (rune >= 0x7F && rune < 0xA0);
}

size_t cli_show_plain(struct query_buf *out, const char *text, size_t len)
{
    size_t width = 0;
    for (size_t i = 0; i < len; width++) {
        size_t step;
        if (is_control(query_utf8_next(text + i, len - i, &step)))
            query_buf_put_char(out, '?');
        else
            query_buf_put(out, text + i, step);
        i += step;
    }
    return width;
}

void cli_show_quoted(struct query_buf *out, struct weir_bytes text)
{
    query_buf_put_char(out, '"');
    for (size_t i = 0; i < text.len;) {
        size_t step;
        const int32_t rune = query_utf8_next(text.ptr + i, text.len - i, &step);
        if (rune < 0)
            query_buf_put_format(out, "\\x%02x", (unsigned)(unsigned char)text.ptr[i]);
        else if (is_control(rune))
            query_buf_put_format(out, "\\u%04x", (unsigned)rune);
        else if (rune == '"' || rune == '\\')
            query_buf_put(out, (const char[2]){'\\', (char)rune}, 2);
        else
            query_buf_put(out, text.ptr + i, step);
        i += step;
    }
    query_buf_put_char(out, '"');
}

void cli_show_seconds(double seconds, char text[32])
{
    static const struct {
        double scale;
        const char *unit;
    } units[] = {{1e9, "ns"}, {1e6, "us"}, {1e3, "ms"}, {1, "s"}};
    if (isnan(seconds)) {
        (void)snprintf(text, 32, "-");
        return;
    }
    size_t i = 0;
    while (i < 3 && fabs(seconds) * units[i].scale >= 999.5)
        i++;
    const double v = seconds * units[i].scale;
    const double size = fabs(v);
    const int decimals = size >= 99.95 || v == 0 ? 0 : size >= 9.995 ? 1 : 2;
    (void)snprintf(text, 32, "%.*f%s", decimals, v, units[i].unit);
}

void cli_show_time(struct query_buf *out, int64_t since_epoch_ns)
{
    int64_t fraction = since_epoch_ns % SECOND_NS;
    const time_t seconds =
        (time_t)(since_epoch_ns / SECOND_NS - (fraction < 0)); /* down, not towards 0 */
    struct tm tm;
    char text[40];
    fraction += fraction < 0 ? SECOND_NS : 0;
    if (!gmtime_r(&seconds, &tm) || strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &tm) == 0) {
        query_buf_put_format(out, "%lldns", (long long)since_epoch_ns);
        return;
    }
    query_buf_put_text(out, text);
    if (fraction)
        query_buf_put_format(out, ".%09lld", (long long)fraction);
    query_buf_put_char(out, 'Z');
}
