/* SPDX-License-Identifier: Apache-2.0 */
/* answer: status line, fields and body of an answer as one block. Threads: any. */
#include "net/conn.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *answer_reason(int status)
{
    static const struct {
        int status;
        const char *reason;
    } known[] = {{200, "OK"},
                 {202, "Accepted"},
                 {204, "No Content"},
                 {301, "Moved Permanently"},
                 {302, "Found"},
                 {304, "Not Modified"},
                 {307, "Temporary Redirect"},
                 {308, "Permanent Redirect"},
                 {400, "Bad Request"},
                 {401, "Unauthorized"},
                 {403, "Forbidden"},
                 {404, "Not Found"},
                 {405, "Method Not Allowed"},
                 {406, "Not Acceptable"},
                 {408, "Request Timeout"},
                 {409, "Conflict"},
                 {411, "Length Required"},
                 {413, "Content Too Large"},
                 {414, "URI Too Long"},
                 {415, "Unsupported Media Type"},
                 {417, "Expectation Failed"},
                 {422, "Unprocessable Content"},
                 {429, "Too Many Requests"},
                 {431, "Request Header Fields Too Large"},
                 {500, "Internal Server Error"},
                 {501, "Not Implemented"},
                 {503, "Service Unavailable"},
                 {504, "Gateway Timeout"},
                 {505, "HTTP Version Not Supported"}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].status == status)
            return known[i].reason;
    return "Unknown"; /* RFC 9112 §4: clients ignore it */
}

struct answer answer_text(const struct net_server *server, int status, const char *text)
{
    return (struct answer){.status = status,
                           .content_type = "text/plain; charset=utf-8",
                           .body = text,
                           .body_bytes = strlen(text),
                           .headers = server->service.headers,
                           .header_count = server->service.header_count};
}

static size_t head_room(const struct answer *a)
{
    size_t room = 256 + (a->content_type ? strlen(a->content_type) : 0);
    for (size_t i = 0; i < a->header_count; i++)
        room += strlen(a->headers[i].name) + strlen(a->headers[i].value) + 4;
    return room;
}

/* 204 and 304 say nothing of a body: RFC 9110 §8.6. */
static bool has_length(int status)
{
    return status != 204 && status != 304;
}

/* head_room() is the bound of all that is put. */
static char *put(char *at, const char *text)
{
    return stpcpy(at, text);
}

static char *put_field(char *at, const char *name, const char *value)
{
    return put(put(put(put(at, name), ": "), value), "\r\n");
}

static size_t put_head(char *dst, const struct answer *a)
{
    char number[24];
    (void)snprintf(number, sizeof number, "%d ", a->status);
    char *at = put(put(put(put(dst, "HTTP/1.1 "), number), answer_reason(a->status)), "\r\n");
    if (a->content_type)
        at = put_field(at, "Content-Type", a->content_type);
    if (has_length(a->status)) {
        (void)snprintf(number, sizeof number, "%zu", a->body_bytes);
        at = put_field(at, "Content-Length", number);
    }
    for (size_t i = 0; i < a->header_count; i++)
        at = put_field(at, a->headers[i].name, a->headers[i].value);
    if (a->close)
        at = put_field(at, "Connection", "close");
    return (size_t)(put(at, "\r\n") - dst);
}

char *answer_new(const struct answer *a, size_t *ret_bytes)
{
    const size_t room = head_room(a);
    const size_t body_bytes = a->head_only || !has_length(a->status) ? 0 : a->body_bytes;
    char *const block = malloc(room + body_bytes);
    if (!block)
        return NULL;
    const size_t head_bytes = put_head(block, a);
    if (body_bytes)
        memcpy(block + head_bytes, a->body, body_bytes);
    *ret_bytes = head_bytes + body_bytes;
    return block;
}
