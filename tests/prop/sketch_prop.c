/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sketch against a model that keeps every sample: a sorted array with exact weights. Histories
 * are random, their shapes chosen to meet growth, widening, fractions, collapse and both signs.
 */
#include "sketch/state.h"
#include "t_sketch.h"

#include <math.h>
#include <string.h>

#define SAMPLES_MAX 3000

struct sample {
    double value; /* of WEIR_GRID_VALUE */
    int64_t ns;   /* of WEIR_GRID_NS */
    uint64_t weight;
};

struct history {
    uint32_t grid;
    uint32_t max_bins;
    const struct weir_mapping *mapping; /* NULL: the default */
    size_t n;
    struct sample s[SAMPLES_MAX];
};

static int64_t random_ns(struct t_rng *r, unsigned shape)
{
    switch (shape) {
    case 0: /* one latency */
        return 5000000;
    case 1: /* two modes */
        return (int64_t)(t_below(r, 10) ? 2000000 + t_below(r, 800000)
                                        : 400000000 + t_below(r, 90000000));
    case 2: /* every size there is, negatives among them */
        return (int64_t)(t_next(r) >> t_below(r, 64));
    default: /* log-normal, about */
        return (int64_t)(5e6 * exp(t_unit(r) + t_unit(r) + t_unit(r) - 1.5));
    }
}

static double random_value(struct t_rng *r, unsigned shape)
{
    switch (shape) {
    case 0:
        return (double)t_below(r, 101) - 50;
    case 1:
        return -exp(t_unit(r) * 8);
    case 2: /* four hundred octaves, both signs, zeros */
        return t_below(r, 8) ? ldexp(t_unit(r) - 0.5, (int)t_below(r, 440) - 220) : 0.0;
    default:
        return exp((t_unit(r) - 0.5) * 20);
    }
}

static void random_history(struct t_rng *r, struct history *h)
{
    static const uint32_t limits[4] = {32768, 2048, 300, 2};
    const unsigned shape = (unsigned)t_below(r, 4);
    const bool fractions = t_below(r, 3) == 0;
    const bool heavy = t_below(r, 4) == 0;
    h->n = t_below(r, t_below(r, 2) ? 40 : SAMPLES_MAX);
    for (size_t i = 0; i < h->n; i++) {
        struct sample *const s = &h->s[i];
        *s = (struct sample){.weight = ONE};
        if (h->grid == WEIR_GRID_NS)
            s->ns = random_ns(r, shape);
        else
            s->value = random_value(r, shape);
        if (heavy)
            s->weight = (t_below(r, 300) + 1) << (20 + t_below(r, 24));
        if (fractions)
            s->weight = t_below(r, 4 * ONE) + 1;
    }
    h->max_bins = limits[t_below(r, 4)];
}

static void record(struct weir_sketch *sk, const struct history *h, size_t from, size_t to)
{
    for (size_t i = from; i < to; i++)
        T_OK(h->grid == WEIR_GRID_NS ? weir_sketch_add_ns(sk, h->s[i].ns, h->s[i].weight)
                                     : weir_sketch_add(sk, h->s[i].value, h->s[i].weight));
    T_TRUE(wr_sketch_check(sk));
}

static struct weir_sketch *empty(const struct history *h)
{
    const struct weir_sketch_opts o = {
        .struct_size = sizeof o, .grid = h->grid, .max_bins = h->max_bins, .mapping = h->mapping};
    struct weir_sketch *sk;
    T_OK(weir_sketch_new(&o, &sk));
    return sk;
}

static struct weir_sketch *of(const struct history *h)
{
    struct weir_sketch *const sk = empty(h);
    record(sk, h, 0, h->n);
    return sk;
}

static double answer(const struct history *h, size_t i)
{
    if (h->grid == WEIR_GRID_NS)
        return h->s[i].ns > 0 ? (double)h->s[i].ns / 1e9 : 0;
    return h->s[i].value;
}

static int by_value(const void *a, const void *b)
{
    const struct sample *const x = a;
    const struct sample *const y = b;
    if (x->ns != y->ns)
        return x->ns < y->ns ? -1 : 1;
    return (x->value > y->value) - (x->value < y->value);
}

/* The sample whose weights, summed from the lowest, first pass the rank. */
static double model_quantile(const struct history *sorted, double q, uint64_t total)
{
    const long double rest = total > ONE ? (long double)(total - ONE) : 0;
    const uint64_t rank = (uint64_t)((long double)q * rest + 0.5L);
    uint64_t sum = 0;
    for (size_t i = 0; i < sorted->n; i++) {
        sum += sorted->s[i].weight;
        if (sum > rank)
            return answer(sorted, i);
    }
    return answer(sorted, sorted->n - 1);
}

static void expect_quantiles(const struct weir_sketch *sk, struct history *h, struct t_rng *r)
{
    const uint64_t total = weir_sketch_weight(sk);
    const double a = weir_sketch_accuracy(sk) * (1 + 1e-12);
    qsort(h->s, h->n, sizeof h->s[0], by_value);
    for (int k = 0; k < 40; k++) {
        const double q = k <= 20 ? k / 20.0 : t_unit(r);
        const double want = k == 0    ? answer(h, 0)
                            : k == 20 ? answer(h, h->n - 1)
                                      : model_quantile(h, q, total);
        const double got = t_sketch_q(sk, q);
        /* magnitudes up to 2^-1022 are zeros */
        if (!(fabs(got - want) <= a * fabs(want)) && !(got == 0 && fabs(want) <= 0x1p-1022))
            T_FAIL("q %.17g: got %.17g, the sample is %.17g", q, got, want);
    }
}

static void expect_exact(const struct weir_sketch *sk, const struct history *h)
{
    uint64_t weight = 0;
    wr_uint128 ns = 0;
    long double sum = 0;
    long double magnitude = 0;
    for (size_t i = 0; i < h->n; i++) {
        weight += h->s[i].weight;
        ns += (wr_uint128)(h->s[i].ns > 0 ? (uint64_t)h->s[i].ns : 0) * h->s[i].weight;
        const long double part = (long double)answer(h, i) * (long double)h->s[i].weight * 0x1p-20L;
        sum += part;
        magnitude += fabsl(part);
    }
    T_EQ_U64(weir_sketch_weight(sk), weight);
    T_EQ_U64(weir_sketch_bins_weight(sk), weight);
    if (h->grid == WEIR_GRID_NS) {
        T_EQ_U64(weir_sketch_sum_ns(sk).lo, (uint64_t)ns);
        T_EQ_U64(weir_sketch_sum_ns(sk).hi, (uint64_t)(ns >> 64));
    }
    T_TRUE(fabsl(sum - (long double)weir_sketch_sum(sk)) <= 1e-15L * magnitude);
}

#define ROUNDS 120
#define MAPPINGS 5

/* The default, coarser and finer, and those of others. */
static void make_mappings(struct weir_mapping **ret_mappings)
{
    ret_mappings[0] = NULL;
    T_OK(weir_mapping_base2(NULL, 1, &ret_mappings[1]));
    T_OK(weir_mapping_base2(NULL, 7, &ret_mappings[2]));
    T_OK(weir_mapping_log(NULL, 0.01, &ret_mappings[3]));
    T_OK(weir_mapping_new(NULL, WEIR_MAPPING_CUBIC, 1.02, 0.5, &ret_mappings[4]));
}

static void free_mappings(struct weir_mapping **mappings)
{
    for (size_t i = 0; i < MAPPINGS; i++)
        weir_mapping_unref(mappings[i]);
}

static void answers_round(struct t_rng *r, struct history *h)
{
    random_history(r, h);
    h->max_bins = 32768; /* collapsed bins have no bound on their error */
    struct weir_sketch *const sk = of(h);
    expect_exact(sk, h);
    const struct wr_store *const neg = wr_sketch_negative(sk);
    const bool collapsed = sk->flags & WR_SK_COLLAPSED || (neg && neg->collapsed);
    if (h->n && !collapsed)
        expect_quantiles(sk, h, r);
    weir_sketch_free(sk);
}

TEST(answers_are_those_of_the_samples)
{
    struct t_rng r = t_rng(t_seed());
    struct history *const h = malloc(sizeof *h);
    struct weir_mapping *mappings[MAPPINGS];
    make_mappings(mappings);
    for (int round = 0; round < ROUNDS; round++) {
        h->grid = round % 2 ? WEIR_GRID_NS : WEIR_GRID_VALUE;
        h->mapping = mappings[round / 2 % MAPPINGS];
        answers_round(&r, h);
    }
    free_mappings(mappings);
    free(h);
}

/* Bins of a sketch, to compare those of doubles apart from their sum. */
struct bins {
    size_t n;
    uint64_t hash;
};
static void take_bin(void *ctx, double lower, double upper, uint64_t weight)
{
    struct bins *const b = ctx;
    uint64_t bits[2];
    memcpy(&bits[0], &lower, 8);
    memcpy(&bits[1], &upper, 8);
    b->hash = (b->hash ^ bits[0]) * UINT64_C(0x9E3779B97F4A7C15);
    b->hash = (b->hash ^ bits[1]) * UINT64_C(0x9E3779B97F4A7C15);
    b->hash = (b->hash ^ weight) * UINT64_C(0x9E3779B97F4A7C15);
    b->n++;
}

/* To the byte, but for a sum of doubles, which is to a part in 2^50 of what was added. */
static void expect_same(const struct weir_sketch *a, const struct weir_sketch *b)
{
    if (weir_sketch_grid(a) == WEIR_GRID_NS) {
        t_sketch_same(a, b);
        return;
    }
    T_TRUE(wr_sketch_check(a));
    T_TRUE(wr_sketch_check(b));
    struct bins x = {0};
    struct bins y = {0};
    weir_sketch_bins(a, take_bin, &x);
    weir_sketch_bins(b, take_bin, &y);
    T_EQ_U64(x.n, y.n);
    T_EQ_U64(x.hash, y.hash);
    T_EQ_U64(weir_sketch_weight(a), weir_sketch_weight(b));
    if (!weir_sketch_weight(a))
        return;
    T_EQ_DBL(t_sketch_min(a), t_sketch_min(b));
    T_EQ_DBL(t_sketch_max(a), t_sketch_max(b));
    const double most = fmax(fabs(t_sketch_min(a)), fabs(t_sketch_max(a)));
    const double scale = most * (double)weir_sketch_weight(a) * 0x1p-20;
    T_TRUE(fabs(weir_sketch_sum(a) - weir_sketch_sum(b)) <= scale * 0x1p-50);
}

static struct weir_sketch *merged(const struct weir_sketch *a, const struct weir_sketch *b,
                                  const struct history *h)
{
    struct weir_sketch *const sk = empty(h);
    T_OK(weir_sketch_merge(sk, a));
    T_OK(weir_sketch_merge(sk, b));
    T_TRUE(wr_sketch_check(sk));
    return sk;
}

static void merge_round(struct t_rng *r, struct history *h)
{
    struct weir_sketch *part[3];
    random_history(r, &h[0]);
    struct weir_sketch *const all = empty(&h[0]);
    for (int i = 0; i < 3; i++) {
        const uint32_t limit = h[0].max_bins;
        if (i)
            random_history(r, &h[i]);
        h[i].max_bins = limit;
        part[i] = of(&h[i]);
        record(all, &h[i], 0, h[i].n);
    }
    struct weir_sketch *const ab = merged(part[0], part[1], &h[0]);
    struct weir_sketch *const ba = merged(part[1], part[0], &h[0]);
    t_sketch_same(ab, ba); /* commutative: the sum too */
    T_TRUE(weir_sketch_equal(ab, ba));
    struct weir_sketch *const bc = merged(part[1], part[2], &h[0]);
    struct weir_sketch *const left = merged(ab, part[2], &h[0]);
    struct weir_sketch *const right = merged(part[0], bc, &h[0]);
    expect_same(left, right);
    expect_same(left, all);
    T_EQ_U64(weir_sketch_bins_weight(left), weir_sketch_weight(all));
    struct weir_sketch *const made[] = {ab, ba, bc, left, right, all, part[0], part[1], part[2]};
    for (size_t i = 0; i < sizeof made / sizeof made[0]; i++)
        weir_sketch_free(made[i]);
}

TEST(merging_is_commutative_and_associative_and_equals_recording_all)
{
    struct t_rng r = t_rng(t_seed() + 1);
    struct history *const h = malloc(3 * sizeof *h);
    struct weir_mapping *mappings[MAPPINGS];
    make_mappings(mappings);
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < 3; i++) {
            h[i].grid = round % 2 ? WEIR_GRID_NS : WEIR_GRID_VALUE;
            h[i].mapping = mappings[round / 2 % MAPPINGS];
        }
        merge_round(&r, h);
    }
    free_mappings(mappings);
    free(h);
}

/* Whatever was collapsed: the answer is within the bound in force there of the sample. */
static void bound_round(struct t_rng *r, struct history *h)
{
    random_history(r, h);
    struct weir_sketch *const sk = of(h);
    const uint64_t total = weir_sketch_weight(sk);
    qsort(h->s, h->n, sizeof h->s[0], by_value);
    for (int k = 1; k < 40 && h->n; k++) {
        const double q = k / 40.0;
        const double want = model_quantile(h, q, total);
        double bound;
        T_OK(weir_sketch_error_bound(sk, q, &bound));
        const double got = t_sketch_q(sk, q);
        if (!(fabs(got - want) <= bound * (1 + 1e-12) * fabs(want)) &&
            !(got == 0 && fabs(want) <= 0x1p-1022))
            T_FAIL("q %.17g: got %.17g, the sample is %.17g, bound %.17g", q, got, want, bound);
    }
    weir_sketch_free(sk);
}

TEST(an_answer_is_within_the_bound_that_is_told)
{
    struct t_rng r = t_rng(t_seed() + 5);
    struct history *const h = malloc(sizeof *h);
    struct weir_mapping *mappings[MAPPINGS];
    make_mappings(mappings);
    for (int round = 0; round < 2 * ROUNDS; round++) {
        h->grid = round % 2 ? WEIR_GRID_NS : WEIR_GRID_VALUE;
        h->mapping = mappings[round / 2 % MAPPINGS];
        bound_round(&r, h);
    }
    free_mappings(mappings);
    free(h);
}

static double edge_of(const struct weir_mapping *m, int32_t index, int up)
{
    double v = weir_mapping_lower(m, index);
    for (; up > 0; up--)
        v = nextafter(v, HUGE_VAL);
    for (; up < 0; up++)
        v = nextafter(v, 0);
    return v;
}

/* Both sides of both edges of every bin of some octaves: alone, and clamped by others. */
TEST(values_at_the_edges_of_bins_are_answered_within_the_accuracy)
{
    struct weir_mapping *mappings[MAPPINGS];
    make_mappings(mappings);
    T_OK(weir_mapping_base2(NULL, 6, &mappings[0]));
    for (size_t which = 0; which < MAPPINGS; which++) {
        const struct weir_mapping *const m = mappings[which];
        const struct weir_sketch_opts o = {
            .struct_size = sizeof o, .mapping = m, .max_bins = 32768};
        struct weir_sketch *sk;
        T_OK(weir_sketch_new(&o, &sk));
        const double a = weir_mapping_accuracy(m) * (1 + 1e-12);
        int32_t first;
        int32_t last;
        T_OK(weir_mapping_index(m, 0.9, &first));
        T_OK(weir_mapping_index(m, 9.1, &last));
        for (int32_t i = first; i <= last; i++) {
            for (int up = -1; up <= 1; up++) {
                const double v = edge_of(m, i, up);
                weir_sketch_clear(sk);
                T_OK(weir_sketch_add(sk, v / 1e6, 0));
                T_OK(weir_sketch_add(sk, v, 0));
                T_OK(weir_sketch_add(sk, v * 1e6, 0));
                const double got = t_sketch_q(sk, 0.5);
                if (!(fabs(got - v) <= a * v))
                    T_FAIL("bin %d%+d of mapping %zu: %.17g for %.17g", i, up, which, got, v);
            }
        }
        weir_sketch_free(sk);
    }
    free_mappings(mappings);
}

TEST(the_form_of_a_sketch_reads_back_as_the_sketch)
{
    struct t_rng r = t_rng(t_seed() + 2);
    struct history *const h = malloc(sizeof *h);
    h->mapping = NULL;
    struct weir_sketch *into[2] = {t_sketch(WEIR_GRID_VALUE, 32768), t_sketch(WEIR_GRID_NS, 32768)};
    for (int round = 0; round < ROUNDS; round++) {
        h->grid = (uint32_t)round % 2;
        random_history(&r, h);
        struct weir_sketch *const sk = of(h);
        size_t n;
        uint8_t *const form = t_sketch_form(sk, &n);
        T_OK(weir_sketch_decode(into[h->grid], form, n)); /* over what was in it before */
        t_sketch_same(into[h->grid], sk);
        struct weir_sketch *const fresh = t_sketch(h->grid, h->max_bins);
        T_OK(weir_sketch_decode(fresh, form, n));
        t_sketch_same(fresh, sk);
        /* and goes on as the sketch would; of doubles the order of a sum's parts differs */
        record(fresh, h, 0, h->n);
        record(sk, h, 0, h->n);
        expect_same(fresh, sk);
        free(form);
        weir_sketch_free(fresh);
        weir_sketch_free(sk);
    }
    weir_sketch_free(into[0]);
    weir_sketch_free(into[1]);
    free(h);
}

TEST(a_cleared_sketch_refills_as_a_fresh_one)
{
    struct t_rng r = t_rng(t_seed() + 3);
    struct history *const h = malloc(sizeof *h);
    h->mapping = NULL;
    struct weir_sketch *used[2] = {t_sketch(WEIR_GRID_VALUE, 2048), t_sketch(WEIR_GRID_NS, 2048)};
    for (int round = 0; round < ROUNDS; round++) {
        h->grid = (uint32_t)round % 2;
        random_history(&r, h);
        h->max_bins = 2048;
        weir_sketch_clear(used[h->grid]);
        T_TRUE(wr_sketch_check(used[h->grid]));
        record(used[h->grid], h, 0, h->n);
        struct weir_sketch *const fresh = of(h);
        t_sketch_same(used[h->grid], fresh);
        weir_sketch_free(fresh);
    }
    weir_sketch_free(used[0]);
    weir_sketch_free(used[1]);
    free(h);
}

TEST(random_bytes_are_refused_or_read_as_their_own_form)
{
    struct t_rng r = t_rng(t_seed() + 4);
    struct weir_sketch *into[2] = {t_sketch(WEIR_GRID_VALUE, 32768), t_sketch(WEIR_GRID_NS, 32768)};
    uint8_t bytes[80] = {0};
    for (int round = 0; round < 40000; round++) {
        const size_t n = t_below(&r, sizeof bytes);
        for (size_t i = 0; i < n; i++)
            bytes[i] = (uint8_t)(t_next(&r) >> t_below(&r, 64));
        const uint32_t grid = (uint32_t)round % 2;
        const uint8_t header[3] = {1, (uint8_t)((bytes[1] & 0x7e) | grid), 6};
        memcpy(bytes, header, sizeof header);
        struct weir_sketch *const sk = into[grid];
        if (weir_sketch_decode(sk, bytes, n) == WEIR_OK) {
            size_t m;
            uint8_t *const form = t_sketch_form(sk, &m);
            T_EQ_BYTES(form, m, bytes, n);
            free(form);
        } else {
            T_EQ_U64(weir_sketch_weight(sk), 0);
        }
        T_TRUE(wr_sketch_check(sk));
    }
    weir_sketch_free(into[0]);
    weir_sketch_free(into[1]);
}
