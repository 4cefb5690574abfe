/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory: what a key costs, by the allocator hook: all that the instance holds, less what it held
 * before, by the number of keys. The bytes of the keys' strings are taken off, but of one_million.
 *   cold_key       one span each
 *   key_65_spans   65 spans each, of which none has an error
 *   one_million    1 M keys of one span each, strings included
 */
#include "spans.h"

#include <stdlib.h>
#include <string.h>

enum { KEYS = 100000, MILLION = 1000000, HIT = 65, BURST = 256 };

static const int64_t t0 = INT64_C(1800000000) * 1000000000;

static struct weir_bytes text(const char *s)
{
    return (struct weir_bytes){.ptr = s, .len = strlen(s)};
}

struct figures {
    double bytes;        /* held for the keys */
    double string_bytes; /* of their labels */
};

static struct figures fill(uint32_t keys, int hits)
{
    struct bench_heap heap = {0};
    const struct weir_stats_opts o = {
        .struct_size = sizeof o, .alloc = bench_alloc(&heap), .max_keys = keys};
    struct weir_stats *st;
    struct weir_producer *p;
    if (weir_stats_new(&o, &st) || weir_producer_new(st, 0, WEIR_PRODUCER_OWNER, &p))
        abort();
    const struct weir_source source = {.now_ns = t0};
    struct bench_rng rng = {.s = 7};
    struct figures f = {0};
    int64_t before = 0;
    for (int round = 0; round < hits; round++) {
        for (uint32_t i = 0; i <= keys; i++) {
            char service[24];
            char resource[40];
            (void)snprintf(service, sizeof service, "service-%02u", i % 32);
            (void)snprintf(resource, sizeof resource, "GET /api/v1/items/%07u", i);
            const struct weir_span s = {.service = text(service),
                                        .name = text("http.request"),
                                        .resource = text(resource),
                                        .type = text("http"),
                                        .trace_id = 1,
                                        .span_id = 1,
                                        .start_ns = t0,
                                        .duration_ns = bench_latency_ns(&rng)};
            if (i < keys && weir_stats_publish(p, &source, &s, 1))
                abort();
            if (round == 0 && i < keys)
                f.string_bytes +=
                    (double)(s.service.len + s.name.len + s.resource.len + s.type.len);
            if (i % BURST == BURST - 1 || i == keys)
                (void)weir_stats_poll(st, t0, 0);
            if (i == 0 && round == 0) {
                (void)weir_stats_poll(st, t0, 0);
                before = heap.live_bytes;
            }
        }
    }
    struct weir_stats_health h;
    weir_stats_get_health(st, &h);
    if (h.keys != keys || h.overflow)
        abort();
    f.bytes = (double)(heap.live_bytes - before);
    weir_producer_free(p);
    weir_stats_free(st);
    return f;
}

int main(int argc, char **argv)
{
    struct bench b;
    bench_begin(&b, "memory", "Bytes a key costs.", argc, argv);
    struct figures f = fill(KEYS, 1);
    bench_report_one(&b, "cold_key", "bytes", "B", (f.bytes - f.string_bytes) / KEYS);
    f = fill(KEYS, HIT);
    bench_report_one(&b, "key_65_spans", "bytes", "B", (f.bytes - f.string_bytes) / KEYS);
    f = fill(MILLION, 1);
    bench_report_one(&b, "one_million", "mebibytes", "MiB", f.bytes / (1 << 20));
    return 0;
}
