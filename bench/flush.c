/* SPDX-License-Identifier: Apache-2.0 */
/*
 * flush: a sealed window as the body of a POST to /v0.6/stats: 2,048 rows of some 20 spans, one in
 * eight with an error, so nearly all have both sketches.
 *   encode_2048         our mapping
 *   encode_2048_linear  the Java tracer's, as long runs of doubles
 */
#include "spans.h"

#include <math.h>
#include <stdlib.h>
#include <weir/payload.h>

enum { KEYS = 2048, SPANS_A_KEY = 20, TRACE = 8, SEED = 3 };

static const int64_t t0 = INT64_C(1800000000) * 1000000000;

static struct weir_stats *open_stats(struct bench_heap *heap, const struct weir_mapping *mapping)
{
    static const char *const peers[] = {"peer.service"};
    const struct weir_stats_opts o = {.struct_size = sizeof o,
                                      .alloc = bench_alloc(heap),
                                      .profile = WEIR_PROFILE_CLIENT,
                                      .peer_tags = peers,
                                      .peer_tag_count = 1,
                                      .flags = WEIR_STATS_ENDPOINTS,
                                      .limits = {[WEIR_LIMIT_RESOURCE] = WEIR_LIMIT_OFF},
                                      .mapping = mapping,
                                      .max_bins = mapping ? 1024 : 0};
    struct weir_stats *st;
    if (weir_stats_new(&o, &st))
        abort();
    return st;
}

/* One window of the load. */
static struct weir_batch *fill(struct weir_stats *st)
{
    struct weir_producer *p;
    if (weir_producer_new(st, 0, WEIR_PRODUCER_OWNER, &p))
        abort();
    struct bench_labels *const labels = bench_labels_new(st, KEYS);
    struct bench_rng rng = {.s = SEED};
    const struct weir_source source = {.now_ns = t0 + 1};
    (void)weir_stats_poll(st, t0 + 1, 1);
    for (size_t i = 0; i < KEYS * SPANS_A_KEY; i += TRACE) {
        struct weir_span spans[TRACE];
        for (size_t k = 0; k < TRACE; k++) {
            const struct bench_draw d = bench_draw(&rng, KEYS);
            spans[k] = bench_span(&labels[(i + k) % KEYS], t0 + 1, d.duration_ns, d.error);
        }
        if (weir_stats_publish(p, &source, spans, TRACE) != WEIR_OK)
            abort();
        (void)weir_stats_poll(st, t0 + 1, 1);
    }
    weir_stats_seal_all(st, t0 + 1, 1);
    weir_producer_free(p);
    free(labels);
    return weir_stats_take_batch(st);
}

static void encode(const struct bench *b, const char *name, const struct weir_mapping *mapping)
{
    struct bench_heap heap = {0};
    struct weir_stats *const st = open_stats(&heap, mapping);
    struct weir_batch *const batch = fill(st);
    struct weir_payload *p;
    struct weir_bytes body;
    if (!batch || weir_payload_new(st, NULL, &p) ||
        weir_payload_encode(p, batch, t0, &body)) /* the buffer has grown */
        abort();
    struct weir_batch_info info;
    weir_batch_get_info(batch, &info);
    double values[1000];
    const uint64_t before = heap.allocations;
    for (int i = 0; i < b->rounds; i++) {
        const int64_t from = bench_now_ns();
        if (weir_payload_encode(p, batch, t0, &body))
            abort();
        values[i] = (double)(bench_now_ns() - from) / 1e6;
    }
    const uint64_t allocations = heap.allocations - before;
    bench_report(b, name, "ms", "ms", BENCH_LOWER, values, (size_t)b->rounds);
    bench_report_one(b, name, "rows", "count", (double)info.rows);
    bench_report_one(b, name, "bytes_per_row", "B", (double)body.len / (double)info.rows);
    bench_report_one(b, name, "allocations", "count", (double)allocations);
    weir_payload_free(p);
    weir_batch_release(batch);
    weir_stats_free(st);
}

int main(int argc, char **argv)
{
    struct bench b;
    struct weir_mapping *linear;
    bench_begin(&b, "flush", "Milliseconds from a sealed window to the bytes of a body.", argc,
                argv);
    bench_pin(0);
    if (weir_mapping_new(NULL, WEIR_MAPPING_LINEAR, exp2(1.0 / 64), 0, &linear))
        abort();
    encode(&b, "encode_2048", NULL);
    encode(&b, "encode_2048_linear", linear);
    weir_mapping_unref(linear);
    return 0;
}
