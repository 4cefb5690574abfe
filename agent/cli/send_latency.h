/* SPDX-License-Identifier: Apache-2.0 */
#ifndef AGENT_CLI_SEND_LATENCY_H
#define AGENT_CLI_SEND_LATENCY_H
/*
 * send_latency: random numbers, latency distributions, and the texts for durations. All
 * deterministic for a seed. Threads: one generator a thread.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* SplitMix64 (Steele, Lea, Flood, OOPSLA 2014). */
struct send_rng {
    uint64_t state;
};
uint64_t cli_send_rng_next(struct send_rng *rng);
double cli_send_rng_unit(struct send_rng *rng);                    /* [0, 1) */
uint64_t cli_send_rng_below(struct send_rng *rng, uint64_t bound); /* 0..bound-1; bound > 0 */

enum send_latency_kind { SEND_CONSTANT, SEND_UNIFORM, SEND_LOGNORMAL };

/* No span is longer: its start must stay plausible, and sums of a run in 64 bits. */
#define SEND_DURATION_MAX_NS ((int64_t)24 * 3600 * 1000000000)

struct send_latency {
    enum send_latency_kind kind;
    int64_t a_ns; /* the constant, the low end, the median; 0..SEND_DURATION_MAX_NS */
    int64_t b_ns; /* the high end of uniform, itself possible */
    double sigma; /* of lognormal: of the logarithm, 0..4 */
};

/* "lognormal:20ms:0.5", "uniform:1ms:30ms", "constant:5ms". false: no such distribution. */
bool cli_send_latency_parse(const char *text, struct send_latency *ret);
/* Clamped to 0..SEND_DURATION_MAX_NS; a lognormal one is at least 1 ns. */
int64_t cli_send_latency_draw(const struct send_latency *latency, struct send_rng *rng);

/* "1h30m", "60s", "1.5s", "250us", "10ns", "0"; n bytes. false: not one, negative or > 10 years. */
bool cli_send_duration_parse(const char *text, size_t n, int64_t *ret_ns);
/* In a readable unit, at most 15 bytes and the NUL; returns dst. */
#define SEND_DURATION_TEXT 16
const char *cli_send_duration_text(int64_t ns, char dst[SEND_DURATION_TEXT]);
#endif
