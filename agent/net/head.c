/* SPDX-License-Identifier: Apache-2.0 */
/* head: the head of a request: its parts in one block. See head.h. */
#include "net/head.h"

#include "net/text.h"

#include <stdlib.h>
#include <string.h>

void net_head_free(struct net_head *head)
{
    if (!head)
        return;
    free(head->bytes);
    free(head->fields);
    free(head);
}

struct weir_bytes net_head_name(const struct net_head *h, const struct net_field *f)
{
    return (struct weir_bytes){h->bytes + f->name_at, f->name_len};
}

struct weir_bytes net_head_value(const struct net_head *h, const struct net_field *f)
{
    return (struct weir_bytes){h->bytes + f->value_at, f->value_len};
}

const struct net_field *net_head_find(const struct net_head *head, const char *name)
{
    for (uint32_t i = 0; i < head->count; i++)
        if (net_text_is(net_head_name(head, &head->fields[i]), name))
            return &head->fields[i];
    return NULL;
}

bool net_head_append(struct net_head *h, const char *bytes, size_t len)
{
    if (len > h->cap - h->len) {
        size_t cap = h->cap ? h->cap : 512;
        while (cap < h->len + len)
            cap *= 2; /* ends: the caller bounds a head by max_head_bytes */
        char *const grown = realloc(h->bytes, cap);
        if (!grown)
            return false;
        h->bytes = grown;
        h->cap = (uint32_t)cap;
    }
    memcpy(h->bytes + h->len, bytes, len);
    h->len += (uint32_t)len;
    return true;
}

struct net_field *net_head_add(struct net_head *h)
{
    if (h->count == h->field_cap) {
        const uint32_t cap = h->field_cap ? 2 * h->field_cap : 16;
        struct net_field *const grown = realloc(h->fields, cap * sizeof *grown);
        if (!grown)
            return NULL;
        h->fields = grown;
        h->field_cap = cap;
    }
    struct net_field *const f = &h->fields[h->count++];
    memset(f, 0, sizeof *f);
    return f;
}

static void set_path(struct net_head *h, const char *at, size_t len)
{
    const char *const mark = memchr(at, '?', len);
    const size_t path_len = mark ? (size_t)(mark - at) : len;
    h->path = (struct weir_bytes){at, path_len};
    if (mark)
        h->query = (struct weir_bytes){mark + 1, len - path_len - 1};
}

/* origin-form, absolute-form or "*"; authority-form is for proxies (RFC 9112 §3.2). */
bool net_head_settle_target(struct net_head *h, const char *at, size_t len)
{
    static const char scheme[] = "http://";
    const size_t scheme_len = sizeof scheme - 1;
    if (at[0] == '/') {
        set_path(h, at, len);
        return true;
    }
    if (len == 1 && at[0] == '*') {
        h->path = (struct weir_bytes){at, 1};
        return h->method == NET_OPTIONS;
    }
    if (len <= scheme_len || !net_text_is((struct weir_bytes){at, scheme_len}, scheme))
        return false;
    const char *const authority = at + scheme_len;
    const char *const path = memchr(authority, '/', len - scheme_len);
    if (path == authority)
        return false;
    if (path)
        set_path(h, path, len - (size_t)(path - at));
    else
        h->path = (struct weir_bytes){"/", 1};
    return true;
}

enum net_method net_method_of(struct weir_bytes name)
{
    static const struct {
        const char *name; /* methods are case-sensitive */
        enum net_method method;
    } known[] = {{"GET", NET_GET}, {"HEAD", NET_HEAD},     {"POST", NET_POST},
                 {"PUT", NET_PUT}, {"DELETE", NET_DELETE}, {"OPTIONS", NET_OPTIONS}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strlen(known[i].name) == name.len && memcmp(known[i].name, name.ptr, name.len) == 0)
            return known[i].method;
    return NET_OTHER;
}
