/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Peer of the bench `sketch`: HdrHistogram_c, 2 digits.
 *
 *   hdr_c DIR      reads names of cases, a line each, and answers each by a line of JSON
 *                  {"CASE":number}, or {} where it has no such thing; ends with the input
 *
 * DIR holds values.f64, series30k.u32 and series1m.u32, as bench/sketch.c writes them. It takes
 * integers: thousandths of the values. It has no sum, and no room for a million: 27 KB a histogram.
 * CPU time of the thread; everything is done once before the clock starts.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "hdr_histogram.h"
/* Not in a public header of theirs. */
int hdr_encode_compressed(struct hdr_histogram *h, uint8_t **bytes, size_t *len);
int hdr_decode_compressed(uint8_t *bytes, size_t len, struct hdr_histogram **histogram);

enum { N = 1000000, PASS = N / 4, MANY = 30000, FILL_PASSES = 28 };
enum { CLEARED = 16, CLEARED_SAMPLES = 1000 };
#define HIGHEST INT64_C(3600000000)
#define LONG_ENOUGH_NS 5e6

struct run {
    int64_t *values;
    uint32_t *series;
    struct hdr_histogram *hot;
    struct hdr_histogram *a;  /* all values */
    struct hdr_histogram *to; /* merged into, again and again */
    struct hdr_histogram **many;
    size_t pass;
    uint8_t *bytes;
    size_t len;
    volatile int64_t sink;
};

static void fail(const char *what)
{
    fprintf(stderr, "hdr_c: %s\n", what);
    exit(1);
}

static double now_ns(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void *file_of(const char *dir, const char *name, size_t bytes)
{
    char path[4096];
    (void)snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *const f = fopen(path, "rb");
    void *const to = malloc(bytes);
    if (!f || !to || fread(to, 1, bytes, f) != bytes)
        fail(path);
    (void)fclose(f);
    return to;
}

static struct hdr_histogram *histogram(void)
{
    struct hdr_histogram *h;
    if (hdr_init(1, HIGHEST, 2, &h) != 0)
        fail("no memory");
    return h;
}

static struct hdr_histogram *filled(const struct run *r, size_t count)
{
    struct hdr_histogram *const h = histogram();
    for (size_t i = 0; i < count; i++)
        (void)hdr_record_value(h, r->values[i]);
    return h;
}

typedef void body_fn(struct run *r);

/* ns a call: once untimed, then until it has taken long enough. */
static double time_calls(struct run *r, body_fn *body)
{
    body(r);
    for (size_t calls = 1;; calls *= 2) {
        const double from = now_ns();
        for (size_t i = 0; i < calls; i++)
            body(r);
        const double spent = now_ns() - from;
        if (spent >= LONG_ENOUGH_NS)
            return spent / (double)calls;
    }
}

static void record_all(struct run *r)
{
    for (size_t i = 0; i < N; i++)
        (void)hdr_record_value(r->hot, r->values[i]);
}

/* A quarter of the values, turned at each start over: no series gets the same ones again. */
static void record_many(struct run *r)
{
    const size_t from = r->pass * PASS % N;
    size_t k = (from + r->pass * PASS / N * 104729) % N;
    for (size_t i = from; i < from + PASS; i++) {
        (void)hdr_record_value(r->many[r->series[i]], r->values[k]);
        k = k + 1 < N ? k + 1 : 0;
    }
    r->pass++;
}

static double random_30k(struct run *r, bool emptied)
{
    if (!r->many) {
        r->many = calloc(MANY, sizeof(struct hdr_histogram *));
        if (!r->many)
            fail("no memory");
        for (size_t i = 0; i < MANY; i++)
            r->many[i] = histogram();
    }
    if (emptied || r->pass < FILL_PASSES) {
        for (size_t i = 0; i < MANY; i++)
            hdr_reset(r->many[i]);
        for (r->pass = 0; !emptied && r->pass < FILL_PASSES;)
            record_many(r);
    }
    const double from = now_ns();
    record_many(r);
    const double spent = now_ns() - from;
    if (emptied)
        r->pass = 0;
    return spent / PASS;
}

static void merge(struct run *r)
{
    r->sink += hdr_add(r->to, r->a);
}

static void p99(struct run *r)
{
    r->sink += hdr_value_at_percentile(r->a, 99);
}

static void quantiles_4(struct run *r)
{
    static const double percent[] = {50, 90, 95, 99};
    for (size_t i = 0; i < 4; i++)
        r->sink += hdr_value_at_percentile(r->a, percent[i]);
}

static void encode(struct run *r)
{
    free(r->bytes);
    if (hdr_encode_compressed(r->a, &r->bytes, &r->len) != 0)
        fail("does not encode");
}

static void decode(struct run *r)
{
    struct hdr_histogram *h = NULL;
    if (hdr_decode_compressed(r->bytes, r->len, &h) != 0 || h->total_count != r->a->total_count)
        fail("does not decode");
    hdr_close(h);
}

/* Few enough for the second-level cache: 27 KB each. */
static double clear(const struct run *r)
{
    struct hdr_histogram *h[CLEARED];
    double spent = 0;
    size_t rounds = 0;
    for (size_t i = 0; i < CLEARED; i++)
        h[i] = histogram();
    for (; spent < LONG_ENOUGH_NS / 5; rounds++) {
        for (size_t i = 0; i < CLEARED; i++) {
            for (size_t k = 0; k < CLEARED_SAMPLES; k++)
                (void)hdr_record_value(h[i], r->values[i * CLEARED_SAMPLES + k]);
        }
        const double from = now_ns();
        for (size_t i = 0; i < CLEARED; i++)
            hdr_reset(h[i]);
        spent += now_ns() - from;
    }
    for (size_t i = 0; i < CLEARED; i++)
        hdr_close(h[i]);
    return spent / (double)(rounds * CLEARED);
}

static void answer_bytes(struct run *r, const char *name, size_t samples)
{
    struct hdr_histogram *const h = filled(r, samples);
    uint8_t *bytes = NULL;
    size_t len = 0;
    if (hdr_encode_compressed(h, &bytes, &len) != 0)
        fail("does not encode");
    printf("{\"%s\":%zu,\"compact\":%zu}\n", name, hdr_get_memory_size(h), len);
    free(bytes);
    hdr_close(h);
}

static double time_case(struct run *r, const char *name)
{
    if (strcmp(name, "insert_hot") == 0)
        return time_calls(r, record_all) / N;
    if (strcmp(name, "insert_random_30k") == 0)
        return random_30k(r, false);
    if (strcmp(name, "insert_random_30k_list") == 0)
        return random_30k(r, true);
    if (strcmp(name, "merge") == 0)
        return time_calls(r, merge);
    if (strcmp(name, "p99") == 0)
        return time_calls(r, p99);
    if (strcmp(name, "quantiles_4") == 0)
        return time_calls(r, quantiles_4);
    if (strcmp(name, "clear") == 0)
        return clear(r);
    if (strcmp(name, "encode_compact") == 0)
        return time_calls(r, encode);
    if (strcmp(name, "decode_compact") == 0) {
        encode(r);
        return time_calls(r, decode);
    }
    return -1;
}

static void answer(struct run *r, const char *name)
{
    if (strcmp(name, "bytes_100") == 0)
        return answer_bytes(r, name, 100);
    if (strcmp(name, "bytes_1000") == 0)
        return answer_bytes(r, name, 1000);
    if (strcmp(name, "bytes_1m") == 0)
        return answer_bytes(r, name, N);
    const double value = time_case(r, name);
    if (value < 0)
        printf("{}\n");
    else
        printf("{\"%s\":%.3f}\n", name, value);
}

int main(int argc, char **argv)
{
    if (argc != 2)
        fail("usage: hdr_c DIR");
    struct run r = {.series = file_of(argv[1], "series30k.u32", N * sizeof(uint32_t))};
    double *const values = file_of(argv[1], "values.f64", N * sizeof(double));
    r.values = malloc(N * sizeof(int64_t));
    if (!r.values)
        fail("no memory");
    for (size_t i = 0; i < N; i++)
        r.values[i] = (int64_t)(values[i] * 1000 + 0.5);
    free(values);
    r.a = filled(&r, N);
    r.to = filled(&r, N);
    r.hot = histogram();
    char line[64];
    while (fgets(line, sizeof line, stdin)) {
        line[strcspn(line, "\n")] = 0;
        answer(&r, line);
        (void)fflush(stdout);
    }
    return 0;
}
