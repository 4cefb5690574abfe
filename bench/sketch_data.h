/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BENCH_SKETCH_DATA_H
#define BENCH_SKETCH_DATA_H
/*
 * sketch_data: the values of the bench `sketch`, and which of many sketches each goes to. The same
 * bytes on every run, with one C library; peers read them from files.
 */
#include <stddef.h>
#include <stdint.h>

enum { BENCH_VALUES = 1000000, BENCH_MANY = 30000, BENCH_MILLION = 1000000 };

struct bench_data {
    double *values;      /* log-normal, median 18.7, sigma 1 */
    uint32_t *series30k; /* uniform below BENCH_MANY, one a value */
    uint32_t *series1m;  /* uniform below BENCH_MILLION, one a value */
};

/* Exits without memory. */
void bench_data_make(struct bench_data *d);
/* values.f64, series30k.u32 and series1m.u32 in dir, which is made; exits where it cannot. */
void bench_data_write(const struct bench_data *d, const char *dir);
#endif
