/* SPDX-License-Identifier: Apache-2.0 */
#ifndef AGENT_QUERY_BUF_H
#define AGENT_QUERY_BUF_H
/*
 * buf: a growable text with a maximum and a sticky error, and the number and string forms of
 * Prometheus' JSON.
 *
 * Threads: one thread uses a buffer. Memory: at most max_bytes, from the heap.
 */
#include <stddef.h>
#include <stdint.h>
#include <weir/base.h>

struct query_buf {
    char *ptr; /* not NUL-terminated; NULL while empty */
    size_t len;
    size_t cap;
    size_t max_bytes;
    int err; /* 0, WEIR_ENOMEM or WEIR_EFULL; once set, puts do nothing */
};

void query_buf_init(struct query_buf *buf, size_t max_bytes);
void query_buf_done(struct query_buf *buf);
void query_buf_clear(struct query_buf *buf); /* empty, capacity kept, error forgotten */

void query_buf_put(struct query_buf *buf, const char *bytes, size_t len);
void query_buf_put_text(struct query_buf *buf, const char *text);
void query_buf_put_char(struct query_buf *buf, char c);
void query_buf_put_format(struct query_buf *buf, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* With the quotes. Bytes that are not UTF-8 become U+FFFD. */
void query_buf_put_json_string(struct query_buf *buf, const char *bytes, size_t len);
/* As Go's %q: what error texts quote a piece of a query with. */
void query_buf_put_quoted(struct query_buf *buf, const char *bytes, size_t len);
/* Shortest text that reads back the same: 0.25, 1e-07, 1e+21, NaN, +Inf, -Inf. */
void query_buf_put_double(struct query_buf *buf, double value);
/* The same without an exponent, whatever the size: the form of a scalar result. */
void query_buf_put_plain_double(struct query_buf *buf, double value);
/* Milliseconds as seconds, with three decimals where there are any. */
void query_buf_put_time(struct query_buf *buf, int64_t time_ms);

/* The code point at bytes (len > 0) and how many bytes it takes; -1 and 1 when not UTF-8. */
int32_t query_utf8_next(const char *bytes, size_t len, size_t *ret_bytes);
#endif
