/* SPDX-License-Identifier: Apache-2.0 */
/* grpc: see grpc.h. */
#include "net/grpc.h"

#include "net/text.h"

#include <string.h>

enum net_grpc_code net_grpc_code_of(int status)
{
    switch (status) {
    case 200:
        return NET_GRPC_OK;
    case 400:
        return NET_GRPC_INVALID_ARGUMENT;
    case 403:
        return NET_GRPC_PERMISSION_DENIED;
    case 404:
    case 405:
    case 415:
    case 501:
        return NET_GRPC_UNIMPLEMENTED;
    case 408:
        return NET_GRPC_DEADLINE_EXCEEDED;
    case 410:
        return NET_GRPC_NOT_FOUND;
    case 413:
    case 431:
        return NET_GRPC_RESOURCE_EXHAUSTED;
    case 500:
        return NET_GRPC_INTERNAL;
    case 503:
        return NET_GRPC_UNAVAILABLE;
    default:
        return NET_GRPC_UNKNOWN;
    }
}

bool net_grpc_is(struct weir_bytes content_type)
{
    const struct weir_bytes type = net_text_media_type(content_type);
    return net_text_is(type, "application/grpc") || net_text_is(type, "application/grpc+proto");
}

bool net_grpc_unframe(struct weir_bytes body, bool *ret_compressed, struct weir_bytes *ret_message)
{
    if (body.len < NET_GRPC_FRAME_BYTES)
        return false;
    const unsigned char *const b = (const unsigned char *)body.ptr;
    const size_t len = (size_t)b[1] << 24 | (size_t)b[2] << 16 | (size_t)b[3] << 8 | (size_t)b[4];
    if (b[0] > 1 || len != body.len - NET_GRPC_FRAME_BYTES)
        return false;
    *ret_compressed = b[0] == 1;
    *ret_message = (struct weir_bytes){body.ptr + NET_GRPC_FRAME_BYTES, len};
    return true;
}

void net_grpc_frame(char dst[NET_GRPC_FRAME_BYTES], size_t message_bytes)
{
    dst[0] = 0;
    for (int i = 0; i < 4; i++)
        dst[1 + i] = (char)(unsigned char)(message_bytes >> (24 - 8 * i));
}

static int64_t unit_ns(char unit)
{
    switch (unit) {
    case 'H':
        return INT64_C(3600000000000);
    case 'M':
        return INT64_C(60000000000);
    case 'S':
        return INT64_C(1000000000);
    case 'm':
        return INT64_C(1000000);
    case 'u':
        return INT64_C(1000);
    case 'n':
        return 1;
    default:
        return 0;
    }
}

bool net_grpc_timeout(struct weir_bytes value, int64_t *ret_timeout_for_ns)
{
    if (value.len < 2 || value.len > 9)
        return false;
    const int64_t unit = unit_ns(value.ptr[value.len - 1]);
    int64_t n = 0;
    for (size_t i = 0; i + 1 < value.len; i++) {
        if (value.ptr[i] < '0' || value.ptr[i] > '9')
            return false;
        n = 10 * n + (value.ptr[i] - '0');
    }
    const int64_t most = INT64_MAX / 2; /* so that it can be added to a time */
    *ret_timeout_for_ns = unit && n > most / unit ? most : n * unit;
    return unit != 0;
}

static bool is_plain(unsigned char c)
{
    return c >= 0x20 && c <= 0x7e && c != '%';
}

size_t net_grpc_message(struct weir_bytes text, char *dst, size_t cap)
{
    static const char digits[] = "0123456789ABCDEF";
    while (text.len && (text.ptr[text.len - 1] == '\n' || text.ptr[text.len - 1] == '\r'))
        text.len--;
    size_t n = 0;
    for (size_t i = 0; i < text.len && n + 4 <= cap; i++) {
        const unsigned char c = (unsigned char)text.ptr[i];
        if (is_plain(c)) {
            dst[n++] = (char)c;
            continue;
        }
        dst[n++] = '%';
        dst[n++] = digits[c >> 4];
        dst[n++] = digits[c & 15];
    }
    dst[n] = 0;
    return n;
}
