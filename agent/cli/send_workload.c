/* SPDX-License-Identifier: Apache-2.0 */
/* send_workload: see send_workload.h. Everything random comes from one generator, in order. */
#include "cli/send_workload.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/send_shop.h"

#define NAME_BYTES 32 /* of a generated name */

struct send_workload {
    struct send_rng rng;
    enum send_preset preset;
    size_t spans_per_trace; /* 0: as the journey has it */
    struct send_endpoint *endpoints;
    size_t endpoint_count;
    uint32_t *by_name; /* endpoints sorted by service, then resource */
    char *names;       /* of generated endpoints */
    uint32_t journey_weight;
};

static int order_of(const struct send_endpoint *e, struct weir_bytes service,
                    struct weir_bytes resource)
{
    const struct weir_bytes want[] = {service, resource};
    const char *const have[] = {e->service, e->resource};
    for (int i = 0; i < 2; i++) {
        const size_t n = strlen(have[i]);
        const size_t common = n < want[i].len ? n : want[i].len;
        const int order = common ? memcmp(have[i], want[i].ptr, common) : 0;
        if (order != 0)
            return order;
        if (n != want[i].len)
            return n < want[i].len ? -1 : 1;
    }
    return 0;
}

static struct weir_bytes text(const char *s)
{
    return (struct weir_bytes){.ptr = s, .len = strlen(s)};
}

static int by_name_order(const void *a, const void *b, void *ctx)
{
    const struct send_workload *const w = ctx;
    const uint32_t *const ia = a;
    const uint32_t *const ib = b;
    const struct send_endpoint *const other = &w->endpoints[*ib];
    return order_of(&w->endpoints[*ia], text(other->service), text(other->resource));
}

static int make_shop(struct send_workload *w)
{
    w->endpoint_count = cli_send_shop_endpoint_count;
    w->endpoints = calloc(w->endpoint_count, sizeof *w->endpoints);
    if (!w->endpoints)
        return WEIR_ENOMEM;
    memcpy(w->endpoints, cli_send_shop_endpoints, w->endpoint_count * sizeof *w->endpoints);
    for (size_t i = 0; i < cli_send_shop_journey_count; i++)
        w->journey_weight += cli_send_shop_journeys[i].weight;
    return WEIR_OK;
}

static void make_simple_endpoint(struct send_workload *w, size_t service, size_t resource,
                                 size_t resources)
{
    const size_t i = service * resources + resource;
    char *const name = w->names + i * 2 * NAME_BYTES;
    char *const what = name + NAME_BYTES;
    (void)snprintf(name, NAME_BYTES, "service-%03zu", service);
    (void)snprintf(what, NAME_BYTES, "GET /resource-%03zu", resource);
    w->endpoints[i] = (struct send_endpoint){
        .service = name,
        .resource = what,
        .operation = "http.request",
        .type = "web",
        .component = "net/http",
        .method = "GET",
        .route = what + 4,
        .host = "localhost",
        .shape = SEND_HTTP,
        .kind = WEIR_KIND_SERVER,
        .ok_status = 200,
        .error_status = 500,
        .error_ratio = 0,
        .latency = {.kind = SEND_LOGNORMAL, .a_ns = 20000000, .sigma = 0.6},
    };
}

static int make_simple(struct send_workload *w, size_t services, size_t resources)
{
    w->endpoint_count = services * resources;
    w->endpoints = calloc(w->endpoint_count, sizeof *w->endpoints);
    w->names = calloc(w->endpoint_count, (size_t)2 * NAME_BYTES);
    if (!w->endpoints || !w->names)
        return WEIR_ENOMEM;
    for (size_t s = 0; s < services; s++) {
        for (size_t r = 0; r < resources; r++)
            make_simple_endpoint(w, s, r, resources);
    }
    if (w->spans_per_trace == 0)
        w->spans_per_trace = 1;
    return WEIR_OK;
}

static bool opts_are_valid(const struct send_workload_opts *o)
{
    if (o->spans_per_trace > SEND_TRACE_SPANS_MAX || o->error_ratio > 1)
        return false;
    if (o->preset == SEND_PRESET_SHOP)
        return true;
    return o->services >= 1 && o->resources >= 1 && o->services <= SEND_ENDPOINTS_MAX &&
           o->resources <= SEND_ENDPOINTS_MAX / o->services;
}

static int make_index(struct send_workload *w)
{
    w->by_name = calloc(w->endpoint_count, sizeof *w->by_name);
    if (!w->by_name)
        return WEIR_ENOMEM;
    for (size_t i = 0; i < w->endpoint_count; i++)
        w->by_name[i] = (uint32_t)i;
    qsort_r(w->by_name, w->endpoint_count, sizeof *w->by_name, by_name_order, w);
    return WEIR_OK;
}

int cli_send_workload_new(const struct send_workload_opts *o, struct send_workload **ret_workload)
{
    if (!opts_are_valid(o))
        return WEIR_EINVAL;
    struct send_workload *const w = calloc(1, sizeof *w);
    if (!w)
        return WEIR_ENOMEM;
    w->rng.state = o->seed;
    w->preset = o->preset;
    w->spans_per_trace = o->spans_per_trace;
    int err =
        o->preset == SEND_PRESET_SHOP ? make_shop(w) : make_simple(w, o->services, o->resources);
    if (!err)
        err = make_index(w);
    if (err) {
        cli_send_workload_free(w);
        return err;
    }
    for (size_t i = 0; i < w->endpoint_count; i++) {
        if (o->error_ratio >= 0)
            w->endpoints[i].error_ratio = o->error_ratio;
        if (o->latency)
            w->endpoints[i].latency = *o->latency;
    }
    *ret_workload = w;
    return WEIR_OK;
}

void cli_send_workload_free(struct send_workload *w)
{
    if (!w)
        return;
    free(w->endpoints);
    free(w->by_name);
    free(w->names);
    free(w);
}

size_t cli_send_workload_endpoints(const struct send_workload *w)
{
    return w->endpoint_count;
}

const struct send_endpoint *cli_send_workload_endpoint(const struct send_workload *w, size_t i)
{
    return &w->endpoints[i];
}

size_t cli_send_workload_find(const struct send_workload *w, struct weir_bytes service,
                              struct weir_bytes resource)
{
    size_t low = 0;
    size_t high = w->endpoint_count;
    while (low < high) {
        const size_t mid = low + (high - low) / 2;
        const int order = order_of(&w->endpoints[w->by_name[mid]], service, resource);
        if (order == 0)
            return w->by_name[mid];
        if (order < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return SIZE_MAX;
}

static uint64_t next_id(struct send_rng *rng)
{
    const uint64_t id = cli_send_rng_next(rng);
    return id ? id : 1; /* 0 means "none" on every wire */
}

/* parent NULL: a root. */
static void fill_span(struct send_workload *w, struct send_span *s, uint32_t endpoint,
                      uint64_t trace_id, const struct send_span *parent)
{
    const struct send_endpoint *const e = &w->endpoints[endpoint];
    *s = (struct send_span){
        .endpoint = endpoint,
        .error = cli_send_rng_unit(&w->rng) < e->error_ratio,
        .top_level = !parent || strcmp(e->service, w->endpoints[parent->endpoint].service) != 0,
        .duration_ns = cli_send_latency_draw(&e->latency, &w->rng),
        .trace_id = trace_id,
        .span_id = next_id(&w->rng),
        .parent_id = parent ? parent->span_id : 0,
        .salt = (uint32_t)cli_send_rng_next(&w->rng),
    };
}

static const struct send_journey *pick_journey(struct send_workload *w)
{
    uint64_t at = cli_send_rng_below(&w->rng, w->journey_weight);
    size_t i = 0;
    while (at >= cli_send_shop_journeys[i].weight) {
        at -= cli_send_shop_journeys[i].weight;
        i++;
    }
    return &cli_send_shop_journeys[i];
}

/* Journeys, one below the trace's root after the other, until there are enough spans. */
static size_t shop_trace(struct send_workload *w, struct send_span *spans, size_t max)
{
    const uint64_t trace_id = next_id(&w->rng);
    size_t count = 0;
    do {
        const struct send_journey *const j = pick_journey(w);
        const size_t base = count;
        for (size_t i = 0; i < j->count && count < max; i++, count++) {
            const struct send_span *const parent =
                i == 0 ? (base == 0 ? NULL : &spans[0]) : &spans[base + j->steps[i].parent];
            fill_span(w, &spans[count], j->steps[i].endpoint, trace_id, parent);
        }
    } while (w->spans_per_trace && count < max);
    return count;
}

static size_t simple_trace(struct send_workload *w, struct send_span *spans, size_t max)
{
    const uint64_t trace_id = next_id(&w->rng);
    for (size_t i = 0; i < max; i++) {
        const struct send_span *const parent =
            i == 0 ? NULL : &spans[cli_send_rng_below(&w->rng, i)];
        const uint64_t endpoint = cli_send_rng_below(&w->rng, w->endpoint_count);
        fill_span(w, &spans[i], (uint32_t)endpoint, trace_id, parent);
    }
    return max;
}

size_t cli_send_workload_trace(struct send_workload *w, struct send_span *spans, size_t max)
{
    if (w->spans_per_trace && max > w->spans_per_trace)
        max = w->spans_per_trace;
    return w->preset == SEND_PRESET_SHOP ? shop_trace(w, spans, max) : simple_trace(w, spans, max);
}
