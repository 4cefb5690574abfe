/* SPDX-License-Identifier: Apache-2.0 */
/* text: see text.h. */
#include "net/text.h"

#include <string.h>

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c + ('a' - 'A')) : c;
}

bool net_text_is(struct weir_bytes text, const char *want)
{
    if (strlen(want) != text.len)
        return false;
    for (size_t i = 0; i < text.len; i++)
        if (lower(text.ptr[i]) != lower(want[i]))
            return false;
    return true;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

struct weir_bytes net_text_trim(struct weir_bytes text)
{
    while (text.len && is_blank(text.ptr[0])) {
        text.ptr++;
        text.len--;
    }
    while (text.len && is_blank(text.ptr[text.len - 1]))
        text.len--;
    return text;
}

bool net_text_next(struct weir_bytes *list, struct weir_bytes *ret_element)
{
    if (!list->len)
        return false;
    const char *const comma = memchr(list->ptr, ',', list->len);
    const size_t len = comma ? (size_t)(comma - list->ptr) : list->len;
    *ret_element = net_text_trim((struct weir_bytes){list->ptr, len});
    const size_t step = comma ? len + 1 : len;
    list->ptr += step;
    list->len -= step;
    return true;
}

struct weir_bytes net_text_media_type(struct weir_bytes value)
{
    const char *const end = value.len ? memchr(value.ptr, ';', value.len) : NULL;
    if (end)
        value.len = (size_t)(end - value.ptr);
    return net_text_trim(value);
}
