/* SPDX-License-Identifier: Apache-2.0 */
#ifndef AGENT_CLI_API_H
#define AGENT_CLI_API_H
/*
 * api: /api/v1/ between the HTTP server, the pipeline and the query room: a view is opened on the
 * loop, the answer is worked out on one of libuv's workers, and sent from the loop again.
 *
 * Threads: loop.
 */
#include "config/config.h"
#include "net/http.h"

#include <uv.h>

struct pipeline;
struct api;

struct api_opts {
    uv_loop_t *loop;
    struct pipeline *pipeline;   /* borrowed */
    const struct config *config; /* borrowed */
    void (*idle)(void *ctx);     /* the last request under way was answered */
    void *ctx;
};

int api_new(const struct api_opts *opts, struct api **ret_api); /* 0 or -ENOMEM */
void api_free(struct api *api);                                 /* none pending; NULL is allowed */
/* Answers req, now or later. */
void api_answer(struct api *api, struct net_request *req);
size_t api_pending(const struct api *api);
#endif
