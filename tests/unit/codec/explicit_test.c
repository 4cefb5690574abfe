/* SPDX-License-Identifier: Apache-2.0 */
/* Histograms with bounds of their own, read: count, sum, minimum and maximum hold, every value
 * stays in its bucket, and what contradicts itself is refused. */
#include "base/bits.h"
#include "foreign.h"

#include <float.h>
#include <math.h>

#define HIST WEIR_CODEC_OTLP_HISTOGRAM
#define GOLDEN T_SOURCE_DIR "/tests/golden/histogram/otlp_hist.tsv"
#define BUCKETS_MAX 32
#define ALPHA 0.00542 /* of the default mapping, and a little */

struct point {
    size_t n; /* buckets; 0: none were sent */
    double bounds[BUCKETS_MAX];
    uint64_t counts[BUCKETS_MAX];
    uint64_t count;
    double sum; /* NaN: not sent */
    double min;
    double max;
};

static uint8_t *put_double(uint8_t *at, uint8_t number, double v)
{
    uint64_t bits;
    memcpy(&bits, &v, sizeof bits);
    *at = (uint8_t)(number << 3 | 1);
    wr_store64le(at + 1, bits);
    return at + 9;
}

/* Not packed, counts and bounds by turns: another order than that of the goldens. */
static size_t put_point(uint8_t *at, const struct point *p)
{
    uint8_t *const begin = at;
    for (size_t i = 0; i < p->n; i++) {
        *at = 6 << 3 | 1;
        wr_store64le(at + 1, p->counts[i]);
        at += 9;
        if (i + 1 < p->n)
            at = put_double(at, 7, p->bounds[i]);
    }
    *at = 4 << 3 | 1;
    wr_store64le(at + 1, p->count);
    at += 9;
    if (!isnan(p->sum))
        at = put_double(at, 5, p->sum);
    if (!isnan(p->min))
        at = put_double(at, 11, p->min);
    if (!isnan(p->max))
        at = put_double(at, 12, p->max);
    return (size_t)(at - begin);
}

static struct weir_sketch *decoded(const struct point *p)
{
    uint8_t bytes[BUCKETS_MAX * 18 + 64];
    struct weir_sketch *sk;
    T_OK(t_decode(HIST, NULL, bytes, put_point(bytes, p), &sk));
    return sk;
}

static double bins_sum;
static void add_bin(void *ctx, double lower, double upper, uint64_t weight)
{
    (void)ctx;
    bins_sum += (lower + upper) / 2 * ((double)weight / (double)ONE);
}

/* Σ value of the bins. */
static double sum_of_bins(const struct weir_sketch *sk)
{
    bins_sum = 0;
    weir_sketch_bins(sk, add_bin, NULL);
    return bins_sum;
}

/* The weight of values up to v, by bins that lie below it for sure. */
static double bound_at;
static uint64_t weight_below;
static void add_below(void *ctx, double lower, double upper, uint64_t weight)
{
    (void)ctx;
    (void)lower;
    if (upper <= bound_at)
        weight_below += weight;
}

static uint64_t below(const struct weir_sketch *sk, double v)
{
    bound_at = v;
    weight_below = 0;
    weir_sketch_bins(sk, add_below, NULL);
    return weight_below;
}

/* Every bucket's values lie within it, to a bin at either end. */
static void expect_buckets(const struct weir_sketch *sk, const struct point *p)
{
    uint64_t total = 0;
    for (size_t i = 0; i + 1 < p->n; i++) {
        const double b = p->bounds[i];
        const double slack = fabs(b) * 2.2 * ALPHA + 0x1p-1000;
        total += p->counts[i];
        T_TRUE(below(sk, b - slack) <= total * ONE);
        T_TRUE(below(sk, b + slack) >= total * ONE);
    }
}

/* Numbers with blanks between; "-" is one that was not sent, and alone none at all. */
static void read_numbers(const char *text, double *ret, size_t *ret_n)
{
    *ret_n = 0;
    while (*text && strcmp(text, "-") != 0) {
        const bool absent = *text == '-' && (text[1] == ' ' || !text[1]);
        char *end = (char *)(uintptr_t)text + 1;
        ret[(*ret_n)++] = absent ? (double)NAN : strtod(text, &end);
        text = *end ? end + 1 : end;
    }
}

static void row(void *ctx, char *cells[T_CELLS])
{
    (void)ctx;
    struct point p = {.count = strtoull(cells[2], NULL, 10)};
    double counts[BUCKETS_MAX];
    double stats[3] = {(double)NAN, (double)NAN, (double)NAN};
    size_t n;
    read_numbers(cells[3], p.bounds, &n);
    read_numbers(cells[4], counts, &p.n);
    for (size_t i = 0; i < p.n; i++)
        p.counts[i] = (uint64_t)counts[i];
    read_numbers(cells[5], stats, &n);
    p.sum = stats[0];
    p.min = stats[1];
    p.max = stats[2];
    struct t_bytes b = t_bytes(cells[1]);
    struct weir_sketch *sk;
    T_OK(t_decode(HIST, NULL, b.at, b.n, &sk));
    struct weir_sketch *const mine = decoded(&p);
    t_same_bins(sk, mine);
    T_EQ_U64(weir_sketch_weight(sk), p.count * ONE);
    expect_buckets(sk, &p);
    if (p.count && !isnan(p.sum)) {
        T_EQ_DBL(weir_sketch_sum(sk), p.sum);
        T_NEAR(sum_of_bins(sk), p.sum, ALPHA);
    }
    if (p.count && !isnan(p.min)) {
        T_EQ_DBL(t_sketch_min(sk), p.min);
        T_EQ_DBL(t_sketch_max(sk), p.max);
        T_NEAR(t_sketch_q(sk, 0), p.min, ALPHA);
        T_NEAR(t_sketch_q(sk, 1), p.max, ALPHA);
    }
    t_expect_hardy(HIST, NULL, b.at, b.n);
    free(b.at);
    weir_sketch_free(sk);
    weir_sketch_free(mine);
}

TEST(points_of_opentelemetry_keep_count_sum_minimum_and_maximum)
{
    T_EQ_U64(t_rows(GOLDEN, row, NULL), 13);
}

static struct point point(size_t n, const double *bounds, const uint64_t *counts)
{
    struct point p = {.n = n, .sum = (double)NAN, .min = (double)NAN, .max = (double)NAN};
    for (size_t i = 0; i < n; i++) {
        p.counts[i] = counts[i];
        p.count += counts[i];
        if (i + 1 < n)
            p.bounds[i] = bounds[i];
    }
    return p;
}
#define POINT(counts, ...)                                                                         \
    point(sizeof(counts) / sizeof(counts)[0], (const double[]){__VA_ARGS__}, counts)

TEST(a_single_value_is_its_sum)
{
    /* H05 */
    static const uint64_t counts[] = {1, 0, 0};
    struct point p = POINT(counts, 5, 10);
    p.sum = 4;
    struct weir_sketch *const sk = decoded(&p);
    T_EQ_DBL(t_sketch_q(sk, 0.5), 4);
    T_EQ_DBL(t_sketch_min(sk), 4);
    T_TRUE(weir_sketch_is_exact(sk));
    weir_sketch_free(sk);
    p.sum = (double)NAN; /* within its bucket */
    struct weir_sketch *const unknown = decoded(&p);
    T_TRUE(t_sketch_q(unknown, 0.5) > 0 && t_sketch_q(unknown, 0.5) <= 5);
    weir_sketch_free(unknown);
    p.sum = 5.5; /* not of the bucket: as near as it can be */
    struct weir_sketch *const outside = decoded(&p);
    T_NEAR(t_sketch_q(outside, 0.5), 5, ALPHA);
    T_EQ_DBL(weir_sketch_sum(outside), 5.5);
    weir_sketch_free(outside);
}

TEST(bounds_belong_to_the_bucket_below_them)
{
    /* H15: 0.5, 1, 1.5, 3 */
    static const uint64_t counts[] = {2, 1, 1};
    struct point p = POINT(counts, 1, 2);
    p.sum = 6;
    struct weir_sketch *const sk = decoded(&p);
    T_EQ_U64(below(sk, 1.01), 2 * ONE);
    T_EQ_U64(below(sk, 2.02), 3 * ONE);
    T_EQ_U64(weir_sketch_weight(sk), 4 * ONE);
    T_NEAR(sum_of_bins(sk), 6, ALPHA);
    weir_sketch_free(sk);
}

TEST(answers_stay_between_minimum_and_maximum)
{
    /* H27 */
    static const uint64_t counts[] = {0, 4, 0};
    struct point p = POINT(counts, 10, 1000);
    p.min = 90;
    p.max = 120;
    struct weir_sketch *const sk = decoded(&p);
    for (int i = 0; i <= 100; i++)
        T_TRUE(t_sketch_q(sk, i / 100.0) >= 90 && t_sketch_q(sk, i / 100.0) <= 120);
    weir_sketch_free(sk);
}

TEST(the_last_bucket_reaches_as_far_as_the_sum_says)
{
    static const uint64_t counts[] = {1, 3};
    struct point p = POINT(counts, 10);
    p.sum = 305; /* 5, and three of a mean of 100 */
    struct weir_sketch *sk = decoded(&p);
    T_NEAR(sum_of_bins(sk), 305, ALPHA);
    T_NEAR(t_sketch_q(sk, 0.667), 100, 2 * ALPHA);
    weir_sketch_free(sk);
    p.sum = (double)NAN; /* nothing says how far: at its bound */
    sk = decoded(&p);
    T_NEAR(t_sketch_q(sk, 1), 10, ALPHA);
    weir_sketch_free(sk);
    p.max = 50;
    sk = decoded(&p);
    T_EQ_DBL(t_sketch_max(sk) > 49 ? 1 : 0, 1);
    T_NEAR(t_sketch_q(sk, 1), 50, ALPHA);
    T_TRUE(t_sketch_q(sk, 0.667) > 20);
    weir_sketch_free(sk);
}

TEST(the_first_bucket_begins_at_zero_or_where_the_sum_says)
{
    static const uint64_t counts[] = {4, 0};
    struct point p = POINT(counts, 10);
    struct weir_sketch *sk = decoded(&p); /* 1.25 3.75 6.25 8.75 */
    T_NEAR(t_sketch_q(sk, 0), 1.25, ALPHA);
    T_NEAR(t_sketch_q(sk, 1), 8.75, ALPHA);
    weir_sketch_free(sk);
    p.sum = -60; /* from -40 to 10 */
    sk = decoded(&p);
    T_NEAR(sum_of_bins(sk), -60, 4 * ALPHA);
    T_NEAR(t_sketch_q(sk, 0), -33.75, ALPHA);
    weir_sketch_free(sk);
    static const uint64_t below_zero[] = {4, 0};
    struct point q = POINT(below_zero, -10);
    sk = decoded(&q);
    T_NEAR(t_sketch_q(sk, 0.5), -10, ALPHA);
    weir_sketch_free(sk);
}

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a;
    const double y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Every answer is within the bound that is told. */
static void expect_bound(const struct weir_sketch *sk, double *values, size_t n)
{
    qsort(values, n, sizeof *values, ascending);
    for (size_t i = 0; i < n; i += 1 + n / 64) {
        const double q = n > 1 ? fmin(1, (double)i / (double)(n - 1) + 1e-9) : 0.5;
        double bound;
        T_OK(weir_sketch_error_bound(sk, q, &bound));
        const double off = fabs(t_sketch_q(sk, q) - values[i]);
        if (!(off <= bound * fabs(values[i])))
            T_FAIL("q %g: %g for %g, bound %g", q, t_sketch_q(sk, q), values[i], bound);
    }
}

TEST(the_bound_is_that_of_the_widest_bucket)
{
    static const uint64_t counts[] = {0, 4, 0};
    struct point p = POINT(counts, 10, 1000);
    double bound;
    struct weir_sketch *sk = decoded(&p);
    T_OK(weir_sketch_error_bound(sk, 0.5, &bound));
    T_NEAR(bound, 99, 0.02); /* (1000 - 10) / 10 */
    weir_sketch_free(sk);
    p.min = 90;
    p.max = 120;
    sk = decoded(&p);
    T_OK(weir_sketch_error_bound(sk, 0.5, &bound));
    T_NEAR(bound, 1.0 / 3, 0.03);
    weir_sketch_free(sk);
    p.counts[0] = 1;
    p.count = 5;
    p.min = (double)NAN;
    sk = decoded(&p); /* the first bucket goes down to 0 */
    T_OK(weir_sketch_error_bound(sk, 0.5, &bound));
    T_TRUE(isinf(bound));
    weir_sketch_free(sk);
    static const uint64_t one[] = {1, 0};
    struct point single = POINT(one, 10);
    single.sum = 4;
    sk = decoded(&single);
    T_OK(weir_sketch_error_bound(sk, 0.5, &bound));
    T_TRUE(bound < ALPHA);
    weir_sketch_free(sk);
}

/* Values, their histogram, and what is read of it. */
static void expect_recorded(struct t_rng *rng)
{
    double bounds[BUCKETS_MAX - 1];
    uint64_t counts[BUCKETS_MAX];
    memset(counts, 0, sizeof counts);
    const size_t n = 1 + t_below(rng, BUCKETS_MAX);
    double b = t_below(rng, 3) ? exp(t_unit(rng) * 4 - 2) : -exp(t_unit(rng) * 4);
    for (size_t i = 0; i + 1 < n; i++) {
        bounds[i] = b;
        b += exp(t_unit(rng) * 6 - 3);
    }
    const size_t values = 1 + t_below(rng, t_below(rng, 2) ? 4 : 3000);
    struct weir_sketch *const seen = t_sketch_of(NULL, 0);
    static double all[4096];
    for (size_t i = 0; i < values; i++) {
        const double v = exp(t_unit(rng) * 8 - 4) * (t_below(rng, 20) ? 1 : -1);
        size_t k = 0;
        while (k + 1 < n && v > bounds[k])
            k++;
        counts[k]++;
        all[i] = v;
        T_OK(weir_sketch_add(seen, v, 0));
    }
    struct point p = point(n, bounds, counts);
    p.sum = t_below(rng, 4) ? weir_sketch_sum(seen) : (double)NAN;
    p.min = t_below(rng, 2) ? t_sketch_min(seen) : (double)NAN;
    p.max = t_below(rng, 2) ? t_sketch_max(seen) : (double)NAN;
    struct weir_sketch *const sk = decoded(&p);
    T_EQ_U64(weir_sketch_weight(sk), values * ONE);
    if (isnan(p.sum) || n > 1 || !isnan(p.min))
        expect_buckets(sk, &p);
    if (!isnan(p.sum)) {
        double magnitude = fabs(p.sum);
        for (int i = 0; i <= 20; i++)
            magnitude = fmax(magnitude, fabs(t_sketch_q(sk, i / 20.0)) * (double)values);
        T_EQ_DBL(weir_sketch_sum(sk), p.sum);
        T_TRUE(fabs(sum_of_bins(sk) - p.sum) <= 2 * ALPHA * magnitude);
    }
    expect_bound(sk, all, values);
    for (int i = 0; i <= 20; i++) {
        if (!isnan(p.min))
            T_TRUE(t_sketch_q(sk, i / 20.0) >= p.min);
        if (!isnan(p.max))
            T_TRUE(t_sketch_q(sk, i / 20.0) <= p.max);
    }
    weir_sketch_free(seen);
    weir_sketch_free(sk);
}

TEST(whatever_was_recorded_sum_and_buckets_hold)
{
    struct t_rng rng = t_rng(t_seed());
    for (int i = 0; i < 400; i++)
        expect_recorded(&rng);
}

TEST(huge_counts_take_no_more_steps_than_bins)
{
    static const uint64_t counts[] = {UINT64_C(1) << 43, (UINT64_C(1) << 42) - 3, 2};
    struct point p = POINT(counts, 1, 1.0000000001);
    struct weir_sketch *const sk = decoded(&p);
    T_EQ_U64(weir_sketch_weight(sk), p.count * ONE);
    expect_buckets(sk, &p);
    weir_sketch_free(sk);
    /* the same over a logarithm, whose bounds are rounded */
    struct weir_mapping *const log = t_mapping(WEIR_MAPPING_LOG, 1.01 / 0.99, 0);
    const struct weir_codec_opts opts = {.struct_size = sizeof opts, .mapping = log};
    uint8_t bytes[256];
    struct weir_sketch *other;
    T_OK(t_decode(HIST, &opts, bytes, put_point(bytes, &p), &other));
    T_TRUE(weir_mapping_equal(weir_sketch_mapping(other), log));
    T_EQ_U64(weir_sketch_weight(other), p.count * ONE);
    weir_sketch_free(other);
    weir_mapping_unref(log);
}

TEST(bounds_at_the_ends_of_doubles_do_no_harm)
{
    static const uint64_t counts[] = {3, 5, 3};
    struct point p = POINT(counts, -DBL_MAX, DBL_MAX);
    struct weir_sketch *sk = decoded(&p);
    T_EQ_U64(weir_sketch_weight(sk), 11 * ONE);
    weir_sketch_free(sk);
    p.sum = DBL_MAX;
    p.min = -DBL_MAX;
    p.max = DBL_MAX;
    sk = decoded(&p);
    T_EQ_U64(weir_sketch_weight(sk), 11 * ONE);
    T_EQ_DBL(weir_sketch_sum(sk), DBL_MAX);
    weir_sketch_free(sk);
}

static void expect_refused(const struct point *p, int want, const char *reason)
{
    uint8_t bytes[BUCKETS_MAX * 18 + 64];
    struct weir_where where;
    T_ERR(t_decode_only(HIST, NULL, bytes, put_point(bytes, p), &where), want);
    T_EQ_STR(where.reason, reason);
}

TEST(points_that_contradict_themselves_are_refused)
{
    static const uint64_t counts[] = {1, 2, 1};
    const char *const ascend = "bounds that do not ascend, or are too many";
    struct point p = POINT(counts, 10, 5); /* H30 */
    expect_refused(&p, WEIR_EFORMAT, ascend);
    p = POINT(counts, 5, 5);
    expect_refused(&p, WEIR_EFORMAT, ascend);
    p = POINT(counts, 5, (double)NAN);
    expect_refused(&p, WEIR_EFORMAT, ascend);
    p = POINT(counts, (double)NAN, 5);
    expect_refused(&p, WEIR_EFORMAT, ascend);
    p = POINT(counts, -(double)INFINITY, 5);
    expect_refused(&p, WEIR_EFORMAT, ascend);
    p = POINT(counts, 5, (double)INFINITY);
    expect_refused(&p, WEIR_EFORMAT, ascend);
    p = POINT(counts, 5, 10);
    p.count = 5;
    expect_refused(&p, WEIR_EFORMAT, "count is not that of the buckets");
    p.count = (UINT64_C(1) << 44) + 4;
    expect_refused(&p, WEIR_ERANGE, "a count of more than 2^44");
    p = POINT(counts, 5, 10);
    p.min = 6;
    expect_refused(&p, WEIR_EFORMAT, "min or max is not of the buckets");
    p.min = (double)NAN;
    p.max = 9;
    expect_refused(&p, WEIR_EFORMAT, "min or max is not of the buckets");
    p = POINT(counts, 5, 10);
    p.n = 0;
    expect_refused(&p, WEIR_EEMPTY, "a count alone");
}

TEST(counts_and_bounds_have_to_belong_together)
{
    static const struct {
        const char *hex;
        const char *reason;
    } rows[] = {
        /* two counts and two bounds; three and one; one bound and no count */
        {"210200000000000000 3101000000000000003101000000000000003900000000000014403900000000000024"
         "40",
         "there is not one bucket more than bounds"},
        {"210300000000000000 "
         "310100000000000000310100000000000000310100000000000000390000000000001440",
         "bounds that do not ascend, or are too many"},
        {"210000000000000000 390000000000001440", "there is not one bucket more than bounds"},
        {"210100000000000000 3207010000000000 00", "a packed field of a broken length"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct weir_where where;
        T_ERR(t_decode_hex(HIST, NULL, rows[i].hex, &where), WEIR_EFORMAT);
        T_EQ_STR(where.reason, rows[i].reason);
    }
    T_ERR(t_decode_hex(HIST, NULL, "5001", NULL), WEIR_EEMPTY);
    T_OK(t_decode_hex(HIST, NULL, "-", NULL));
}

TEST(it_is_only_read)
{
    struct weir_sketch *const sk = t_sketch_of(NULL, 0);
    uint8_t bytes[64];
    size_t n;
    T_ERR(weir_codec_encode(HIST, NULL, sk, bytes, sizeof bytes, &n), WEIR_EINVAL);
    T_EQ_U64(weir_codec_encode_bound(HIST, NULL, sk), 0);
    T_EQ_STR(weir_codec_name(HIST), "otlp_histogram");
    weir_sketch_free(sk);
}
