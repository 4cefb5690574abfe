/* SPDX-License-Identifier: Apache-2.0 */
/* request: what a service may ask about an open request. See http.h. */
#include "net/conn.h"

#include <stdlib.h>

const char *net_refusal_name(enum net_refusal reason)
{
    static const char *const names[] = {
#define NET_REFUSAL_NAME(name, text) [NET_REFUSED_##name] = (text),
        NET_REFUSAL_MAP(NET_REFUSAL_NAME)
#undef NET_REFUSAL_NAME
    };
    return (unsigned)reason < NET_REFUSAL_COUNT ? names[reason] : "unknown";
}

struct net_request *request_new(struct conn *c, struct net_head *head)
{
    struct net_request *const req = calloc(1, sizeof *req);
    if (!req) {
        net_head_free(head);
        return NULL;
    }
    req->conn = c;
    req->head = head;
    net_collector_init(&req->body, &c->server->pool, NET_CODING_IDENTITY, UINT64_MAX, 0);
    return req;
}

void request_free(struct net_request *req)
{
    if (!req)
        return;
    net_collector_done(&req->body);
    net_head_free(req->head);
    free(req->kept);
    free(req);
}

enum net_method net_request_method(const struct net_request *req)
{
    return req->head->method;
}

struct weir_bytes net_request_path(const struct net_request *req)
{
    return req->head->path;
}

struct weir_bytes net_request_query(const struct net_request *req)
{
    return req->head->query;
}

struct weir_bytes net_request_header(const struct net_request *req, const char *name)
{
    const struct net_field *const f = net_head_find(req->head, name);
    if (!f)
        return (struct weir_bytes){NULL, 0};
    return (struct weir_bytes){req->head->bytes + f->value_at, f->value_len};
}

struct weir_bytes net_request_body(const struct net_request *req)
{
    return req->decoded;
}

uint64_t net_request_wire_bytes(const struct net_request *req)
{
    return req->wire_bytes;
}

void *net_request_data(const struct net_request *req)
{
    return req->route.data;
}
