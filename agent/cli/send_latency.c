/* SPDX-License-Identifier: Apache-2.0 */
/* send_latency: see send_latency.h. */
#include "cli/send_latency.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

uint64_t cli_send_rng_next(struct send_rng *rng)
{
    rng->state += UINT64_C(0x9E3779B97F4A7C15);
    uint64_t z = rng->state;
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return z ^ (z >> 31);
}

double cli_send_rng_unit(struct send_rng *rng)
{
    return (double)(cli_send_rng_next(rng) >> 11) * 0x1p-53;
}

/* The remainder's bias is below 2^-32 for the bounds used here, which are below 2^32. */
uint64_t cli_send_rng_below(struct send_rng *rng, uint64_t bound)
{
    return cli_send_rng_next(rng) % bound;
}

/* Box and Muller; the second value is thrown away, as keeping it would be state. */
static double normal(struct send_rng *rng)
{
    const double u = 1.0 - cli_send_rng_unit(rng); /* (0, 1] */
    const double v = cli_send_rng_unit(rng);
    return sqrt(-2.0 * log(u)) * cos(2.0 * 3.14159265358979323846 * v);
}

int64_t cli_send_latency_draw(const struct send_latency *l, struct send_rng *rng)
{
    switch (l->kind) {
    case SEND_CONSTANT:
        return l->a_ns;
    case SEND_UNIFORM:
        return l->a_ns + (int64_t)cli_send_rng_below(rng, (uint64_t)(l->b_ns - l->a_ns) + 1);
    case SEND_LOGNORMAL: {
        const double v = (double)l->a_ns * exp(l->sigma * normal(rng));
        if (v < 1.0)
            return 1;
        return v < (double)SEND_DURATION_MAX_NS ? (int64_t)v : SEND_DURATION_MAX_NS;
    }
    }
    return 0;
}

struct unit {
    const char *name;
    double ns;
};
static const struct unit units[] = {
    {.name = "ns", .ns = 1},      {.name = "us", .ns = 1e3}, {.name = "ms", .ns = 1e6},
    {.name = "s", .ns = 1e9},     {.name = "m", .ns = 60e9}, {.name = "h", .ns = 3600e9},
    {.name = "d", .ns = 86400e9},
};
#define DURATION_LIMIT_NS (10.0 * 365 * 86400e9)

/* Digits with at most one point at *at; its value. false: there are none. */
static bool parse_decimal(const char **at, const char *end, double *ret)
{
    const char *p = *at;
    double v = 0;
    double scale = 1;
    size_t digits = 0;
    bool point = false;
    for (; p < end && ((*p >= '0' && *p <= '9') || (*p == '.' && !point)); p++) {
        if (*p == '.') {
            point = true;
            continue;
        }
        if (++digits > 18)
            return false;
        v = v * 10 + (*p - '0');
        scale *= point ? 10 : 1;
    }
    if (digits == 0)
        return false;
    *at = p;
    *ret = v / scale;
    return true;
}

static const struct unit *parse_unit(const char **at, const char *end)
{
    const char *p = *at;
    while (p < end && *p >= 'a' && *p <= 'z')
        p++;
    const size_t n = (size_t)(p - *at);
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        if (strlen(units[i].name) == n && memcmp(units[i].name, *at, n) == 0) {
            *at = p;
            return &units[i];
        }
    }
    return NULL;
}

bool cli_send_duration_parse(const char *text, size_t n, int64_t *ret_ns)
{
    if (n == 1 && text[0] == '0') {
        *ret_ns = 0;
        return true;
    }
    const char *at = text;
    const char *const end = text + n;
    double total = 0;
    double last = (double)INFINITY; /* units must fall: "1h30m", not "30m1h" or "1s1s" */
    while (at < end) {
        double v = 0;
        if (!parse_decimal(&at, end, &v))
            return false;
        const struct unit *const unit = parse_unit(&at, end);
        if (!unit || unit->ns >= last)
            return false;
        last = unit->ns;
        total += v * unit->ns;
    }
    if (n == 0 || total > DURATION_LIMIT_NS)
        return false;
    *ret_ns = (int64_t)llround(total);
    return true;
}

const char *cli_send_duration_text(int64_t ns, char dst[SEND_DURATION_TEXT])
{
    size_t i = 3; /* seconds, unless it is less */
    while (i > 0 && (double)ns < units[i].ns)
        i--;
    if (snprintf(dst, SEND_DURATION_TEXT, "%.4g%s", (double)ns / units[i].ns, units[i].name) < 0)
        dst[0] = 0;
    return dst;
}

/* The place behind the ':' that ends the field at at; NULL: there is none. */
static const char *field_end(const char *at)
{
    return strchr(at, ':');
}

static bool parse_span_duration(const char *at, size_t n, int64_t *ret_ns)
{
    return cli_send_duration_parse(at, n, ret_ns) && *ret_ns <= SEND_DURATION_MAX_NS;
}

bool cli_send_latency_parse(const char *text, struct send_latency *ret)
{
    const char *const colon = field_end(text);
    if (!colon)
        return false;
    const size_t name = (size_t)(colon - text);
    const char *const first = colon + 1;
    struct send_latency l = {.kind = SEND_CONSTANT};
    if (name == 8 && memcmp(text, "constant", name) == 0) {
        if (!parse_span_duration(first, strlen(first), &l.a_ns))
            return false;
        *ret = l;
        return true;
    }
    const char *const second = field_end(first);
    if (!second || !parse_span_duration(first, (size_t)(second - first), &l.a_ns))
        return false;
    if (name == 7 && memcmp(text, "uniform", name) == 0) {
        l.kind = SEND_UNIFORM;
        if (!parse_span_duration(second + 1, strlen(second + 1), &l.b_ns) || l.b_ns < l.a_ns)
            return false;
    } else if (name == 9 && memcmp(text, "lognormal", name) == 0) {
        l.kind = SEND_LOGNORMAL;
        const char *at = second + 1;
        const char *const end = at + strlen(at);
        if (!parse_decimal(&at, end, &l.sigma) || at != end || l.sigma > 4)
            return false;
    } else {
        return false;
    }
    *ret = l;
    return true;
}
