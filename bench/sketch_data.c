/* SPDX-License-Identifier: Apache-2.0 */
/* sketch_data: see sketch_data.h. */
#include "sketch_data.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "bench.h"

enum { SEED = 42 };
static const double median = 18.7;

/* xoshiro256** (Blackman, Vigna), its state from SplitMix64. */
struct xoshiro {
    uint64_t s[4];
};

static uint64_t rotated(uint64_t x, int k)
{
    return (x << k) | (x >> (64 - k));
}

static uint64_t next(struct xoshiro *x)
{
    uint64_t *const s = x->s;
    const uint64_t drawn = rotated(s[1] * 5, 7) * 9;
    const uint64_t t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotated(s[3], 45);
    return drawn;
}

/* Inside (0, 1): its logarithm is finite. */
static double uniform(struct xoshiro *x)
{
    return ((double)(next(x) >> 11) + 0.5) * 0x1p-53;
}

static void *need_memory(size_t bytes)
{
    void *const p = malloc(bytes);
    if (!p) {
        fprintf(stderr, "bench_sketch: no memory\n");
        exit(1);
    }
    return p;
}

/* Box and Muller: two normal numbers of two uniform ones. */
static double *draw_values(struct xoshiro *x)
{
    double *const values = need_memory(BENCH_VALUES * sizeof *values);
    for (size_t i = 0; i < BENCH_VALUES; i += 2) {
        const double radius = sqrt(-2.0 * log(uniform(x)));
        const double angle = 6.283185307179586 * uniform(x);
        values[i] = median * exp(radius * cos(angle));
        values[i + 1] = median * exp(radius * sin(angle));
    }
    return values;
}

static uint32_t *draw_series(struct xoshiro *x, uint64_t below)
{
    uint32_t *const series = need_memory(BENCH_VALUES * sizeof *series);
    for (size_t i = 0; i < BENCH_VALUES; i++)
        series[i] = (uint32_t)(((next(x) >> 32) * below) >> 32);
    return series;
}

void bench_data_make(struct bench_data *d)
{
    struct bench_rng seed = {.s = SEED};
    struct xoshiro x;
    for (size_t i = 0; i < 4; i++)
        x.s[i] = bench_next(&seed);
    d->values = draw_values(&x);
    d->series30k = draw_series(&x, BENCH_MANY);
    d->series1m = draw_series(&x, BENCH_MILLION);
}

static void write_file(const char *dir, const char *name, const void *from, size_t bytes)
{
    char path[512];
    (void)snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *const f = fopen(path, "we");
    if (f && fwrite(from, 1, bytes, f) == bytes && fclose(f) == 0)
        return;
    fprintf(stderr, "bench_sketch: %s: %s\n", path, strerror(errno));
    exit(1);
}

void bench_data_write(const struct bench_data *d, const char *dir)
{
    (void)mkdir(dir, 0777); /* files tell what is wrong */
    write_file(dir, "values.f64", d->values, BENCH_VALUES * sizeof *d->values);
    write_file(dir, "series30k.u32", d->series30k, BENCH_VALUES * sizeof *d->series30k);
    write_file(dir, "series1m.u32", d->series1m, BENCH_VALUES * sizeof *d->series1m);
}
