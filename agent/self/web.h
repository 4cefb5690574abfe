/* SPDX-License-Identifier: Apache-2.0 */
#ifndef AGENT_SELF_WEB_H
#define AGENT_SELF_WEB_H
/*
 * web: the router of web.listen-address: /metrics, /-/healthy, /-/ready, /debug/reconcile, and
 * /api/v1/ for whoever answers queries.
 *
 * Requests that a browser marks as another site's (Sec-Fetch-Site: cross-site) are refused: what
 * listens on a loopback address is within reach of every page.
 *
 * Threads: loop.
 */
#include "net/http.h"
#include "self/figures.h"

enum web_phase { WEB_STARTING = 0, WEB_SERVING, WEB_STOPPING };

struct web_opts {
    struct pipeline *pipeline; /* borrowed */
    void *ctx;                 /* of the functions below */
    /* Answer a request of /api/v1/, now or later. NULL: 404. */
    void (*api)(void *ctx, struct net_request *req);
    /* Add what only the caller knows: the servers. */
    void (*fill)(void *ctx, struct self_figures *figures);
    /* Write further families of /metrics; may be NULL. */
    void (*more)(void *ctx, struct self_text *text);
};

struct web;

int web_new(const struct web_opts *opts, struct web **ret_web); /* opts is copied; 0 or -ENOMEM */
void web_free(struct web *web);                                 /* NULL is allowed */
void web_set_phase(struct web *web, enum web_phase phase);
/* For net_server_new; borrows web. */
struct net_service web_service(struct web *web);
#endif
