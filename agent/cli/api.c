/* SPDX-License-Identifier: Apache-2.0 */
/*
 * api: see api.h.
 *
 * As many requests are under way as libuv has workers; the rest wait in a list, without a view,
 * since a view holds a copy of the open windows. How many can wait is bounded by the server's
 * connections.
 *
 * Threads: loop, but for work(), which runs on a worker with a job of its own. Memory: a job a
 * request, the view and the answer of those under way.
 */
#include "cli/api.h"

#include "pipeline/pipeline.h"
#include "plat/plat.h"
#include "query/api.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define WORKERS 4 /* libuv's default */

struct job {
    uv_work_t work;
    struct api *api;
    struct net_request *req; /* lives until it was answered; so does what http borrows of it */
    struct query_api_request http;
    struct pipeline_view *view;
    struct query_buf body;
    int status;
    int result;
    struct job *next; /* in the list of those that wait */
};

struct api {
    struct api_opts opts;
    size_t working;
    size_t waiting;
    struct job *first;
    struct job **last;
};

static void respond_error(struct net_request *req, const char *text)
{
    net_respond(req, 503, "application/json", text, strlen(text), NULL, 0);
}

static void respond_no_memory(struct net_request *req)
{
    respond_error(req, "{\"status\":\"error\",\"errorType\":\"unavailable\","
                       "\"error\":\"no memory for the answer\"}");
}

static void work(uv_work_t *w)
{
    struct job *const job = w->data;
    const struct query_source *const source = job->view ? pipeline_view_source(job->view) : NULL;
    job->result = query_api_handle(&job->http, source, &job->body, &job->status);
}

static void start_waiting(struct api *api);

static void job_free(struct job *job)
{
    pipeline_view_close(job->view);
    free(job);
}

static void after_work(uv_work_t *w, int status)
{
    struct job *const job = w->data;
    struct api *const api = job->api;
    if (status != 0 || job->result != WEIR_OK)
        respond_no_memory(job->req);
    else
        net_respond(job->req, job->status, query_api_content_type(job->status), job->body.ptr,
                    job->body.len, NULL, 0);
    if (status == 0)
        query_buf_done(&job->body);
    job_free(job);
    api->working--;
    start_waiting(api);
    if (api_pending(api) == 0)
        api->opts.idle(api->opts.ctx);
}

/* Takes the job. */
static void job_start(struct job *job)
{
    struct api *const api = job->api;
    if (query_api_needs_source(&job->http)) {
        job->view = pipeline_view_open(api->opts.pipeline, query_api_wants_open(&job->http));
        if (!job->view) {
            respond_no_memory(job->req);
            job_free(job);
            return;
        }
    }
    job->work.data = job;
    if (uv_queue_work(api->opts.loop, &job->work, work, after_work) != 0) {
        respond_no_memory(job->req);
        job_free(job);
        return;
    }
    api->working++;
}

static void start_waiting(struct api *api)
{
    while (api->first && api->working < WORKERS) {
        struct job *const job = api->first;
        api->first = job->next;
        if (!api->first)
            api->last = &api->first;
        api->waiting--;
        job_start(job);
    }
}

void api_answer(struct api *api, struct net_request *req)
{
    struct job *const job = calloc(1, sizeof *job);
    if (!job) {
        respond_no_memory(req);
        return;
    }
    job->api = api;
    job->req = req;
    job->http =
        (struct query_api_request){/* HEAD is answered as GET; the server leaves the body out. */
                                   .method = net_request_method(req) == NET_POST ? "POST" : "GET",
                                   .path = net_request_path(req),
                                   .query = net_request_query(req),
                                   .body = net_request_body(req),
                                   .content_type = net_request_header(req, "Content-Type"),
                                   .now_ns = plat_wall_ns(),
                                   .lookback_ns = api->opts.config->query_lookback_delta};
    *api->last = job;
    api->last = &job->next;
    api->waiting++;
    start_waiting(api);
}

size_t api_pending(const struct api *api)
{
    return api->working + api->waiting;
}

int api_new(const struct api_opts *opts, struct api **ret_api)
{
    struct api *const api = calloc(1, sizeof *api);
    if (!api)
        return -ENOMEM;
    api->opts = *opts;
    api->last = &api->first;
    *ret_api = api;
    return 0;
}

void api_free(struct api *api)
{
    free(api);
}
