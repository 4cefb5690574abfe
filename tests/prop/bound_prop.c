/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The error bound against a model that keeps every sample: whatever was recorded, on the edges of
 * bins and between them, collapsed or not, in every mapping and both grids, an answer is as near
 * to its sample as weir_sketch_error_bound says. Ranks are turned round likewise.
 */
#include "t_sketch.h"

#include <float.h>
#include <math.h>
#include <string.h>

#define SAMPLES_MAX 1500

__extension__ typedef unsigned __int128 uint128;

struct sample {
    double value; /* in the unit of answers */
    uint64_t weight;
};

struct model {
    struct weir_sketch *sk;
    size_t n;
    struct sample s[SAMPLES_MAX];
};

static const struct weir_mapping *random_mapping(struct t_rng *r)
{
    struct weir_mapping *m = NULL;
    switch (t_below(r, 8)) {
    case 0:
        T_OK(weir_mapping_log(NULL, 0.01, &m));
        break;
    case 1:
        T_OK(weir_mapping_log(NULL, t_unit(r) * 0.4 + 1e-5, &m));
        break;
    case 2:
        T_OK(weir_mapping_new(NULL, WEIR_MAPPING_LOG, 1.015625, 1338.5, &m));
        break;
    case 3:
        T_OK(weir_mapping_base2(NULL, (int32_t)t_below(r, 11) - 4, &m));
        break;
    case 4: /* an interpolated one */
        T_OK(weir_mapping_new(NULL, WEIR_MAPPING_LINEAR + (uint32_t)t_below(r, 4),
                              1.001 + t_unit(r) * 0.1, 0, &m));
        break;
    default:
        break; /* the default one */
    }
    return m;
}

/* A bound of some bin, or a neighbour of it. */
static double near_an_edge(struct t_rng *r, const struct weir_mapping *m, double v)
{
    int32_t index;
    if (weir_mapping_index(m, v, &index) != WEIR_OK)
        return v;
    const double edge = weir_mapping_lower(m, index + (int32_t)t_below(r, 2));
    switch (t_below(r, 3)) {
    case 0:
        return nextafter(edge, 0);
    case 1:
        return fmin(nextafter(edge, HUGE_VAL), DBL_MAX);
    default:
        return edge;
    }
}

enum shape { NARROW, WIDE, EXTREME, SIGNED, FEW, SHAPES };

static double random_magnitude(struct t_rng *r, enum shape shape)
{
    switch (shape) {
    case WIDE:
        return exp((t_unit(r) - 0.5) * 60);
    case EXTREME:
        return t_below(r, 20) ? ldexp(1 + t_unit(r), (int)t_below(r, 2020) - 1001) : DBL_MAX;
    case FEW:
        return (double)t_below(r, 6);
    case NARROW:
    case SIGNED:
    case SHAPES:
        break;
    }
    return exp(t_unit(r) * 6);
}

static double random_value(struct t_rng *r, const struct weir_mapping *m, enum shape shape)
{
    double v = random_magnitude(r, shape);
    if (t_below(r, 2))
        v = near_an_edge(r, m, v);
    if (shape == SIGNED && t_below(r, 2))
        v = -v;
    return fabs(v) > 0x1p-1022 ? v : 0;
}

static int64_t random_ns(struct t_rng *r, const struct weir_mapping *m, enum shape shape)
{
    if (shape == EXTREME)
        return (int64_t)(t_next(r) >> (1 + t_below(r, 63)));
    if (shape == FEW)
        return (int64_t)t_below(r, 6);
    const double seconds = random_magnitude(r, shape) * 1e-3;
    const double v = t_below(r, 2) && weir_mapping_kind(m) == WEIR_MAPPING_BASE2
                         ? near_an_edge(r, m, seconds)
                         : seconds;
    return (int64_t)fmin(v * 1e9, 9e18);
}

static void record(struct model *m, struct t_rng *r, enum shape shape)
{
    const struct weir_mapping *const mapping = weir_sketch_mapping(m->sk);
    struct sample *const s = &m->s[m->n++];
    const bool odd = t_below(r, 10) == 0;
    s->weight = odd ? t_below(r, 3 * ONE) + 1 : (t_below(r, 3) + 1) * ONE;
    if (weir_sketch_grid(m->sk) == WEIR_GRID_NS) {
        const int64_t ns = random_ns(r, mapping, shape);
        s->value = (double)ns / 1e9;
        T_OK(weir_sketch_add_ns(m->sk, ns, s->weight));
    } else {
        s->value = random_value(r, mapping, shape);
        T_OK(weir_sketch_add(m->sk, s->value, s->weight));
    }
}

static int by_value(const void *a, const void *b)
{
    const double x = ((const struct sample *)a)->value;
    const double y = ((const struct sample *)b)->value;
    return (x > y) - (x < y);
}

static void fill(struct model *m, struct t_rng *r)
{
    static const uint32_t limits[5] = {32768, 2048, 100, 7, 2};
    const struct weir_mapping *const mapping = random_mapping(r);
    const struct weir_sketch_opts o = {.struct_size = sizeof o,
                                       .grid = (uint32_t)t_below(r, 2),
                                       .max_bins = limits[t_below(r, 5)],
                                       .mapping = mapping};
    T_OK(weir_sketch_new(&o, &m->sk));
    weir_mapping_unref(mapping);
    const enum shape shape = (enum shape)t_below(r, SHAPES);
    m->n = 0;
    for (size_t n = t_below(r, t_below(r, 2) ? 30 : SAMPLES_MAX) + 1; n > 0; n--)
        record(m, r, shape);
    qsort(m->s, m->n, sizeof m->s[0], by_value);
}

/* The sample of the rank that q means: q (n - 1) to the nearest unit. */
static double sample_of(const struct model *m, double q)
{
    const uint64_t total = weir_sketch_weight(m->sk);
    const long double last = total > ONE ? (long double)(total - ONE) : 0;
    const uint64_t rank = (uint64_t)((long double)q * last + 0.5L);
    uint64_t sum = 0;
    for (size_t i = 0; i < m->n; i++) {
        sum += m->s[i].weight;
        if (sum > rank)
            return m->s[i].value;
    }
    return m->s[m->n - 1].value;
}

struct seen {
    unsigned own;
    unsigned collapsed;
    unsigned infinite;
};

static void check_bounds(const struct model *m, struct t_rng *r, struct seen *seen)
{
    for (int k = 0; k < 40; k++) {
        const double q = k <= 20 ? k / 20.0 : t_unit(r);
        const double want = k == 0    ? m->s[0].value
                            : k == 20 ? m->s[m->n - 1].value
                                      : sample_of(m, q);
        const double got = t_sketch_q(m->sk, q);
        double bound;
        T_OK(weir_sketch_error_bound(m->sk, q, &bound));
        T_TRUE(bound >= 0);
        if (isinf(bound))
            seen->infinite++;
        else if (bound > weir_sketch_accuracy(m->sk) * 1.001)
            seen->collapsed++;
        else
            seen->own++;
        if (isfinite(bound) && !(fabs(got - want) <= bound * fabs(want)))
            T_FAIL("q %.17g: got %.17g, the sample is %.17g, the bound %.17g", q, got, want, bound);
    }
}

/* The rank of v is the exact fraction for something within a bin of v. */
static void check_ranks(const struct model *m, struct t_rng *r)
{
    const double a = weir_sketch_accuracy(m->sk) * (1 + 1e-6);
    const double wide = (1 + a) / (1 - a) - 1;
    const double total = (double)weir_sketch_weight(m->sk);
    double last = 0;
    for (size_t i = 0; i < m->n; i++) {
        const double v = m->s[i].value;
        const double off = fabs(v) * wide + fabs(v) * 1e-15;
        uint64_t surely = 0;
        uint64_t maybe = 0;
        for (size_t k = 0; k < m->n; k++) {
            surely += m->s[k].value <= v ? m->s[k].weight : 0;
            maybe += m->s[k].value <= v + off ? m->s[k].weight : 0;
        }
        double fraction;
        T_OK(weir_sketch_rank(m->sk, v, &fraction));
        T_TRUE(fraction >= last);
        last = fraction;
        if (!(fraction >= (double)surely / total * (1 - 1e-15) &&
              fraction <= (double)maybe / total * (1 + 1e-15)))
            T_FAIL("rank of %.17g is %.17g, not in [%.17g, %.17g]", v, fraction,
                   (double)surely / total, (double)maybe / total);
        i += t_below(r, m->n / 20 + 1);
    }
}

/* Collapsed bins hold more than what is near. */
static bool has_collapsed(const struct weir_sketch *sk)
{
    for (int k = 1; k < 200; k++) {
        double bound;
        T_OK(weir_sketch_error_bound(sk, k / 200.0, &bound));
        if (bound > weir_sketch_accuracy(sk) * 1.001)
            return true;
    }
    return false;
}

/* Put what sk holds into a sketch of another mapping, as values: it takes the place of m's. */
static void convert(struct model *m, struct t_rng *r, const struct weir_sketch *sk)
{
    const struct weir_mapping *const mapping = random_mapping(r);
    const struct weir_sketch_opts o = {
        .struct_size = sizeof o, .max_bins = t_below(r, 2) ? 32768 : 60, .mapping = mapping};
    T_OK(weir_sketch_new(&o, &m->sk));
    weir_mapping_unref(mapping);
    T_OK(weir_sketch_convert(m->sk, sk));
}

#define ROUNDS 600

TEST(an_answer_is_within_its_bound_and_a_rank_within_its_bin)
{
    struct t_rng r = t_rng(t_seed());
    struct model *const m = malloc(sizeof *m);
    struct seen seen = {0};
    for (int round = 0; round < ROUNDS; round++) {
        fill(m, &r);
        check_bounds(m, &r, &seen);
        if (!has_collapsed(m->sk))
            check_ranks(m, &r);
        weir_sketch_free(m->sk);
    }
    free(m);
    T_TRUE(seen.own > 1000 && seen.collapsed > 300 && seen.infinite > 300);
}

TEST(an_answer_is_within_its_bound_after_conversions)
{
    struct t_rng r = t_rng(t_seed() + 1);
    struct model *const m = malloc(sizeof *m);
    struct seen seen = {0};
    for (int round = 0; round < ROUNDS; round++) {
        fill(m, &r);
        for (uint64_t times = t_below(&r, 2) + 1; times > 0; times--) {
            struct weir_sketch *const old = m->sk;
            convert(m, &r, old);
            weir_sketch_free(old);
            check_bounds(m, &r, &seen);
        }
        weir_sketch_free(m->sk);
    }
    free(m);
    T_TRUE(seen.own > 1000 && seen.collapsed > 300 && seen.infinite > 300);
}

/* Merge another one, of fewer bins, with samples of its own. */
static void merge_another(struct model *m, struct t_rng *r)
{
    const struct weir_sketch_opts o = {.struct_size = sizeof o,
                                       .grid = weir_sketch_grid(m->sk),
                                       .max_bins = (uint32_t)t_below(r, 30) + 2,
                                       .mapping = weir_sketch_mapping(m->sk)};
    struct weir_sketch *const into = m->sk;
    T_OK(weir_sketch_new(&o, &m->sk));
    const enum shape shape = (enum shape)t_below(r, SHAPES);
    for (size_t n = t_below(r, SAMPLES_MAX - m->n + 1); n > 0; n--)
        record(m, r, shape);
    T_OK(weir_sketch_merge(into, m->sk));
    weir_sketch_free(m->sk);
    m->sk = into;
    qsort(m->s, m->n, sizeof m->s[0], by_value);
}

TEST(an_answer_is_within_its_bound_after_merging_what_collapsed)
{
    struct t_rng r = t_rng(t_seed() + 2);
    struct model *const m = malloc(sizeof *m);
    struct seen seen = {0};
    for (int round = 0; round < ROUNDS; round++) {
        fill(m, &r);
        merge_another(m, &r);
        check_bounds(m, &r, &seen);
        weir_sketch_free(m->sk);
    }
    free(m);
    T_TRUE(seen.own > 1000 && seen.collapsed > 300 && seen.infinite > 300);
}
