/* SPDX-License-Identifier: Apache-2.0 */
/* sketch_cases: see sketch_cases.h. */
#include "sketch_cases.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weir/codec.h>

#include "bench.h"

enum { PASS = BENCH_VALUES / 4, FILL_PASSES = 28, FULL_SAMPLES = 200, TEMPLATES = 64 };
enum { CLEARED_SAMPLES = 1000, CLEARED_TIMES = 15, BATCH = 4096 };

static const int64_t long_enough_ns = 5000000;

static void need(bool ok)
{
    if (!ok)
        abort();
}

static void *need_memory(size_t count, size_t size)
{
    void *const p = calloc(count, size);
    if (!p) {
        fprintf(stderr, "bench_sketch: no memory\n");
        exit(1);
    }
    return p;
}

static struct weir_sketch *sketch_new(const struct bench_ours *o)
{
    struct weir_sketch *sk;
    if (weir_sketch_new(&o->opts, &sk) != WEIR_OK) {
        fprintf(stderr, "bench_sketch: no sketch\n");
        exit(1);
    }
    return sk;
}

static void add_all(struct weir_sketch *sk, const double *values, size_t n)
{
    for (size_t i = 0; i < n; i++)
        need(weir_sketch_add(sk, values[i], 0) == WEIR_OK);
}

static struct weir_sketch *sketch_of(const struct bench_ours *o, size_t from, size_t samples)
{
    struct weir_sketch *const sk = sketch_new(o);
    add_all(sk, o->data->values + from, samples);
    return sk;
}

void bench_ours_begin(struct bench_ours *o, const struct bench_data *data, const char *mapping)
{
    *o = (struct bench_ours){.data = data, .mapping = mapping};
    struct weir_mapping *m = NULL; /* the default */
    if (strcmp(mapping, "log1") == 0)
        need(weir_mapping_log(NULL, 0.01, &m) == WEIR_OK);
    o->opts = (struct weir_sketch_opts){.struct_size = sizeof o->opts, .mapping = m};
    o->hot = sketch_new(o);
    o->full = sketch_of(o, 0, BENCH_VALUES);
    o->into = sketch_of(o, 0, BENCH_VALUES);
    o->back = sketch_new(o);
    for (size_t i = 0; i < BENCH_CLEARED; i++)
        o->cleared[i] = sketch_new(o);
    o->bytes = need_memory(BENCH_ENCODED_CAP, 1);
}

void bench_ours_end(struct bench_ours *o)
{
    bench_many_free(o);
    for (size_t i = 0; i < BENCH_CLEARED; i++)
        weir_sketch_free(o->cleared[i]);
    weir_sketch_free(o->hot);
    weir_sketch_free(o->full);
    weir_sketch_free(o->into);
    weir_sketch_free(o->back);
    weir_mapping_unref(o->opts.mapping);
    free(o->bytes);
}

/* ns a call: once untimed, then until it has taken long enough; as peers do. */
static double time_calls(struct bench_ours *o, void (*body)(struct bench_ours *o))
{
    body(o);
    for (size_t calls = 1;; calls *= 2) {
        const int64_t from = bench_thread_cpu_ns();
        for (size_t i = 0; i < calls; i++)
            body(o);
        const int64_t spent = bench_thread_cpu_ns() - from;
        if (spent >= long_enough_ns)
            return (double)spent / (double)calls;
    }
}

static void hot_pass(struct bench_ours *o)
{
    add_all(o->hot, o->data->values, BENCH_VALUES);
}

double bench_insert_hot(struct bench_ours *o)
{
    return time_calls(o, hot_pass) / BENCH_VALUES;
}

static void batch_pass(struct bench_ours *o)
{
    for (size_t at = 0; at < BENCH_VALUES; at += BATCH) {
        const size_t n = BENCH_VALUES - at < BATCH ? BENCH_VALUES - at : BATCH;
        need(weir_sketch_add_many(o->hot, o->data->values + at, n, NULL) == WEIR_OK);
    }
}

double bench_insert_batch(struct bench_ours *o)
{
    return time_calls(o, batch_pass) / BENCH_VALUES;
}

static void merge(struct bench_ours *o)
{
    need(weir_sketch_merge(o->into, o->full) == WEIR_OK);
}

double bench_merge(struct bench_ours *o)
{
    return time_calls(o, merge);
}

static void p99(struct bench_ours *o)
{
    double q;
    need(weir_sketch_quantile(o->full, 0.99, &q) == WEIR_OK);
    o->sink += q;
}

double bench_p99(struct bench_ours *o)
{
    return time_calls(o, p99);
}

static void quantiles_4(struct bench_ours *o)
{
    static const double qs[] = {0.5, 0.9, 0.95, 0.99};
    double values[4];
    need(weir_sketch_quantiles(o->full, qs, 4, values) == WEIR_OK);
    o->sink += values[0];
}

double bench_quantiles_4(struct bench_ours *o)
{
    return time_calls(o, quantiles_4);
}

/* One by one they are shorter than the clock's own cost. The median leaves interruptions out. */
double bench_clear(struct bench_ours *o)
{
    double took[CLEARED_TIMES];
    for (size_t t = 0; t < CLEARED_TIMES; t++) {
        for (size_t i = 0; i < BENCH_CLEARED; i++)
            add_all(o->cleared[i], o->data->values + i * CLEARED_SAMPLES, CLEARED_SAMPLES);
        const int64_t from = bench_now_ns();
        for (size_t i = 0; i < BENCH_CLEARED; i++)
            weir_sketch_clear(o->cleared[i]);
        took[t] = (double)(bench_now_ns() - from) / BENCH_CLEARED;
    }
    return bench_median(took, CLEARED_TIMES);
}

static void encode_as(struct bench_ours *o, const struct weir_sketch *sk, uint32_t codec,
                      uint32_t flags)
{
    const struct weir_codec_opts opts = {.struct_size = sizeof opts, .flags = flags};
    need(weir_codec_encode(codec, &opts, sk, o->bytes, BENCH_ENCODED_CAP, &o->len) == WEIR_OK);
}

static void encode_compact(struct bench_ours *o)
{
    encode_as(o, o->full, WEIR_CODEC_DD_COMPACT, WEIR_CODEC_NO_STATS);
}

double bench_encode_compact(struct bench_ours *o)
{
    return time_calls(o, encode_compact);
}

static void decode_compact(struct bench_ours *o)
{
    need(weir_codec_decode(WEIR_CODEC_DD_COMPACT, NULL, o->bytes, o->len, o->back, NULL) ==
         WEIR_OK);
}

double bench_decode_compact(struct bench_ours *o)
{
    encode_compact(o);
    return time_calls(o, decode_compact);
}

static void encode_proto(struct bench_ours *o)
{
    encode_as(o, o->full, WEIR_CODEC_DD_PROTO, 0);
}

double bench_encode_proto(struct bench_ours *o)
{
    return time_calls(o, encode_proto);
}

/* A pass is a quarter of the values, turned at each start over: no series gets the same again. */
static size_t pass_from(const struct bench_ours *o)
{
    return o->pass * PASS % BENCH_VALUES;
}

static size_t pass_first(const struct bench_ours *o)
{
    return (pass_from(o) + o->pass * PASS / BENCH_VALUES * 104729) % BENCH_VALUES;
}

static size_t pass_next(size_t k)
{
    return k + 1 < BENCH_VALUES ? k + 1 : 0;
}

static void many_new(struct bench_ours *o, size_t count)
{
    bench_many_free(o);
    o->many = need_memory(count, sizeof *o->many);
    o->count = count;
    o->series = count == BENCH_MILLION ? o->data->series1m : o->data->series30k;
    o->pass = 0;
    need(weir_sketch_pool_new(&o->opts, count, &o->pool) == WEIR_OK);
    for (size_t i = 0; i < count; i++) {
        o->many[i] = weir_sketch_pool_get(o->pool, 0);
        need(o->many[i] != NULL);
    }
}

/* 30,000 by some passes over the values; a million from templates, or it would take a minute. */
void bench_many_full(struct bench_ours *o, size_t count)
{
    many_new(o, count);
    if (count == BENCH_MANY) {
        for (size_t i = 0; i < FILL_PASSES; i++)
            (void)bench_insert_random(o);
        return;
    }
    struct weir_sketch *of[TEMPLATES];
    for (size_t i = 0; i < TEMPLATES; i++)
        of[i] = sketch_of(o, i * FULL_SAMPLES, FULL_SAMPLES);
    for (size_t i = 0; i < count; i++)
        need(weir_sketch_merge(o->many[i], of[i % TEMPLATES]) == WEIR_OK);
    for (size_t i = 0; i < TEMPLATES; i++)
        weir_sketch_free(of[i]);
}

/* Having been of use once, as in a pool; their capacity is that of a list. */
void bench_many_fresh(struct bench_ours *o, size_t count)
{
    many_new(o, count);
    for (size_t i = 0; i < 4; i++)
        (void)bench_insert_random(o);
    bench_many_clear(o);
}

void bench_many_clear(struct bench_ours *o)
{
    for (size_t i = 0; i < o->count; i++)
        weir_sketch_clear(o->many[i]);
}

void bench_many_free(struct bench_ours *o)
{
    for (size_t i = 0; i < o->count; i++)
        weir_sketch_free(o->many[i]);
    free(o->many);
    weir_sketch_pool_free(o->pool);
    o->many = NULL;
    o->pool = NULL;
    o->count = 0;
}

double bench_many_bytes(const struct bench_ours *o)
{
    double sum = 0;
    for (size_t i = 0; i < o->count; i++)
        sum += (double)weir_sketch_bytes(o->many[i]);
    return sum / (double)o->count;
}

double bench_insert_random(struct bench_ours *o)
{
    const uint32_t *const series = o->series + pass_from(o);
    size_t k = pass_first(o);
    const int64_t from = bench_thread_cpu_ns();
    for (size_t i = 0; i < PASS; i++) {
        need(weir_sketch_add(o->many[series[i]], o->data->values[k], 0) == WEIR_OK);
        k = pass_next(k);
    }
    const int64_t spent = bench_thread_cpu_ns() - from;
    o->pass++;
    return (double)spent / PASS;
}

/* Pairs are made before the clock starts, as many as stay in the second-level cache. */
double bench_insert_random_batch(struct bench_ours *o)
{
    static struct weir_sketch_pair pairs[BATCH];
    const uint32_t *const series = o->series + pass_from(o);
    size_t k = pass_first(o);
    int64_t spent = 0;
    for (size_t at = 0; at < PASS; at += BATCH) {
        const size_t n = PASS - at < BATCH ? PASS - at : BATCH;
        for (size_t i = 0; i < n; i++) {
            pairs[i] = (struct weir_sketch_pair){o->many[series[at + i]], o->data->values[k]};
            k = pass_next(k);
        }
        const int64_t from = bench_thread_cpu_ns();
        need(weir_sketch_add_pairs(pairs, n, NULL) == WEIR_OK);
        spent += bench_thread_cpu_ns() - from;
    }
    o->pass++;
    return (double)spent / PASS;
}

void bench_sizes_of(struct bench_ours *o, size_t samples, struct bench_sizes *ret_sizes)
{
    struct weir_sketch *const sk = sketch_of(o, 0, samples);
    ret_sizes->held = (double)weir_sketch_bytes(sk);
    encode_as(o, sk, WEIR_CODEC_DD_COMPACT, WEIR_CODEC_NO_STATS | WEIR_CODEC_NO_MAPPING);
    ret_sizes->compact = (double)o->len;
    encode_as(o, sk, WEIR_CODEC_DD_PROTO, 0);
    ret_sizes->proto = (double)o->len;
    weir_sketch_free(sk);
}
