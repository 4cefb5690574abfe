/* SPDX-License-Identifier: Apache-2.0 */
#ifndef AGENT_NET_HEAD_H
#define AGENT_NET_HEAD_H
/*
 * head: what came before the body of a request, of HTTP/1.1 or HTTP/2. It is made field by field by
 * whoever reads the protocol, which also bounds it.
 * Threads: none inside. Memory: from the heap.
 */
#include "net/http.h"

struct net_field {
    uint32_t name_at; /* offsets into net_head.bytes */
    uint32_t name_len;
    uint32_t value_at;
    uint32_t value_len;
};

enum net_expect { NET_EXPECT_NOTHING = 0, NET_EXPECT_CONTINUE, NET_EXPECT_OTHER };

struct net_head {
    char *bytes; /* method, target, then name and value of each field, with nothing between */
    uint32_t len;
    uint32_t cap;
    struct net_field *fields;
    uint32_t count;
    uint32_t field_cap;
    enum net_method method;
    struct weir_bytes path; /* into bytes */
    struct weir_bytes query;
    enum net_expect expect;
    bool keep_alive;
    bool chunked;
    uint64_t content_length; /* 0 without the field */
};
void net_head_free(struct net_head *head); /* NULL is allowed */
/* The first field of that name, in any case; NULL when there is none. */
const struct net_field *net_head_find(const struct net_head *head, const char *name);

struct weir_bytes net_head_name(const struct net_head *h, const struct net_field *f);
struct weir_bytes net_head_value(const struct net_head *h, const struct net_field *f);
/* For those who make one. False, NULL: no memory. */
bool net_head_append(struct net_head *h, const char *bytes, size_t len);
struct net_field *net_head_add(struct net_head *h); /* zeroed */
/* path and query, which point into what was appended: so after the last append. False for what no
 * server takes. */
bool net_head_settle_target(struct net_head *h, const char *at, size_t len);
enum net_method net_method_of(struct weir_bytes name);
#endif
