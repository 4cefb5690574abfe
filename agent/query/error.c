/* SPDX-License-Identifier: Apache-2.0 */
/*
 * error: formats at the place of the fault, so that nothing of the query has to live on.
 *
 * Threads: see the header. Memory: see the header.
 */
#include "error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

bool query_fail(struct query_error *error, enum query_fault fault, size_t at, const char *format,
                ...)
{
    if (error->fault != QUERY_FAULT_NONE)
        return false;
    error->fault = fault;
    error->at = at;
    va_list args;
    va_start(args, format);
    (void)vsnprintf(error->text, sizeof error->text, format, args);
    va_end(args);
    return false;
}

bool query_fail_memory(struct query_error *error)
{
    return query_fail(error, QUERY_FAULT_EXECUTION, QUERY_NOWHERE,
                      "query processing would need too much memory");
}

void query_put_position(struct weir_bytes query, size_t at, struct query_buf *buf)
{
    size_t line = 1;
    size_t begin = 0;
    for (size_t i = 0; i < at && i < query.len; i++) {
        if (query.ptr[i] == '\n') {
            line++;
            begin = i + 1;
        }
    }
    query_buf_put_format(buf, "%zu:%zu", line, at - begin + 1);
}

void query_error_put(const struct query_error *error, struct weir_bytes query,
                     struct query_buf *buf)
{
    const bool parse = error->fault == QUERY_FAULT_PARSE;
    if (error->at != QUERY_NOWHERE) {
        query_put_position(query, error->at, buf);
        query_buf_put_text(buf, ": ");
    } else if (parse) {
        query_buf_put_text(buf, "unknown position: ");
    }
    if (parse)
        query_buf_put_text(buf, "parse error: ");
    query_buf_put_text(buf, error->text);
}

const char *query_quote(struct query_quoted *quoted, const char *bytes, size_t len)
{
    struct query_buf buf;
    query_buf_init(&buf, 4096);
    query_buf_put_quoted(&buf, bytes, len < 200 ? len : 200);
    const size_t room = sizeof quoted->text - 1;
    const size_t kept = buf.len < room ? buf.len : room;
    if (kept)
        memcpy(quoted->text, buf.ptr, kept);
    quoted->text[kept] = '\0';
    query_buf_done(&buf);
    return quoted->text;
}
