/* SPDX-License-Identifier: Apache-2.0 */
/* spans: see spans.h. */
#include "spans.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct weir_bytes text(const char *s)
{
    return (struct weir_bytes){.ptr = s, .len = strlen(s)};
}

static void set(struct bench_labels *l, size_t slot, const char *s)
{
    l->slots[slot] =
        (struct weir_value){.type = WEIR_VALUE_BYTES, .len = (uint32_t)strlen(s), .v = {.ptr = s}};
    l->present |= UINT64_C(1) << slot;
}

struct bench_labels *bench_labels_new(const struct weir_stats *st, size_t count)
{
    struct bench_labels *const l = calloc(count, sizeof *l);
    if (!l)
        exit(1);
    const struct weir_tag_match *const peer =
        weir_tags_find(weir_stats_tags(st), "peer.service", 12);
    for (size_t i = 0; i < count; i++) {
        (void)snprintf(l[i].service, sizeof l[i].service, "service-%02zu", i % 32);
        (void)snprintf(l[i].resource, sizeof l[i].resource, "GET /api/v1/items/%05zu/detail", i);
        (void)snprintf(l[i].route, sizeof l[i].route, "/api/v1/items/:id/detail");
        (void)snprintf(l[i].peer, sizeof l[i].peer, "peer-%02zu.internal", i % 16);
        (void)snprintf(l[i].env, sizeof l[i].env, "prod");
        set(&l[i], WEIR_TAG_ENV, l[i].env);
        set(&l[i], WEIR_TAG_HTTP_STATUS, "200");
        set(&l[i], WEIR_TAG_HTTP_METHOD, "GET");
        set(&l[i], WEIR_TAG_HTTP_ROUTE, l[i].route);
        set(&l[i], peer->slot, l[i].peer);
    }
    return l;
}

struct bench_draw bench_draw(struct bench_rng *rng, size_t sets)
{
    struct bench_draw d; /* an initializer would leave the order open */
    d.set = bench_next(rng) % sets;
    d.duration_ns = bench_latency_ns(rng);
    d.error = bench_next(rng) % 8 == 0;
    return d;
}

struct weir_span bench_span(const struct bench_labels *l, int64_t end_ns, int64_t duration_ns,
                            bool error)
{
    return (struct weir_span){.service = text(l->service),
                              .name = text("http.request"),
                              .resource = text(l->resource),
                              .type = text("http"),
                              .trace_id = 1,
                              .span_id = 2,
                              .parent_id = 1,
                              .start_ns = end_ns - duration_ns,
                              .duration_ns = duration_ns,
                              .kind = WEIR_KIND_CLIENT,
                              .flags = error ? WEIR_SPAN_ERROR : 0,
                              .present = l->present,
                              .slots = l->slots};
}
