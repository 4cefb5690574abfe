/* SPDX-License-Identifier: Apache-2.0 */
/*
 * quantile: the rules, against what the implementations they are named after answer; many at once;
 * rank; the error bound. The walk under them, each way against a plain sum.
 */
#include "t_sketch.h"

#include <float.h>
#include <math.h>
#include <string.h>
#include "sketch/bins.h"
#include "sketch/walk.h"

/* A sketch of values, in a mapping; values ends where n says. */
static struct weir_sketch *make(struct weir_mapping *m, uint32_t max_bins)
{
    const struct weir_sketch_opts o = {.struct_size = sizeof o, .max_bins = max_bins, .mapping = m};
    struct weir_sketch *sk;
    T_OK(weir_sketch_new(&o, &sk));
    weir_mapping_unref(m); /* the sketch holds it */
    return sk;
}

static struct weir_mapping *log_mapping(double alpha)
{
    struct weir_mapping *m;
    T_OK(weir_mapping_log(NULL, alpha, &m));
    return m;
}

static struct weir_sketch *of(const double *values, size_t n)
{
    struct weir_sketch *const sk = make(log_mapping(0.01), 0);
    for (size_t i = 0; i < n; i++)
        T_OK(weir_sketch_add(sk, values[i], 0));
    return sk;
}
#define OF(...)                                                                                    \
    of((const double[]){__VA_ARGS__}, sizeof((const double[]){__VA_ARGS__}) / sizeof(double))

static double by(const struct weir_sketch *sk, uint32_t rule, double q)
{
    double v = nan("");
    T_OK(weir_sketch_quantile_by(sk, rule, q, &v));
    return v;
}

static double rank_of(const struct weir_sketch *sk, double v)
{
    double fraction = nan("");
    T_OK(weir_sketch_rank(sk, v, &fraction));
    return fraction;
}

static double bound_of(const struct weir_sketch *sk, double q)
{
    double bound = nan("");
    T_OK(weir_sketch_error_bound(sk, q, &bound));
    return bound;
}

/* --- rules.tsv --- */

static uint32_t rule_named(const char *name)
{
    static const char *const names[] = {[WEIR_QUANTILE_JAVA] = "java",
                                        [WEIR_QUANTILE_GO] = "go",
                                        [WEIR_QUANTILE_AGENT] = "agent",
                                        [WEIR_QUANTILE_PROMETHEUS] = "prometheus"};
    for (uint32_t i = 1; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(name, names[i]) == 0)
            return i;
    T_FAIL("no rule %s", name);
}

static struct weir_mapping *mapping_named(const char *name)
{
    struct weir_mapping *m;
    if (strncmp(name, "log ", 4) == 0)
        return log_mapping(strtod(name + 4, NULL));
    if (strncmp(name, "cubic", 5) == 0) /* as sketches-java rounds gamma */
        T_OK(weir_mapping_new(NULL, WEIR_MAPPING_CUBIC, 0x1.051ede9e7f1c2p+0, 0, &m));
    else if (strncmp(name, "base2 ", 6) == 0)
        T_OK(weir_mapping_base2(NULL, (int32_t)strtod(name + 6, NULL), &m));
    else if (strcmp(name, "agent") == 0)
        T_OK(weir_mapping_new(NULL, WEIR_MAPPING_LOG, 1.015625, 1338.5, &m));
    else
        T_FAIL("no mapping %s", name);
    return m;
}

/* value or value@weight, separated by blanks */
static void add_values(struct weir_sketch *sk, const char *values)
{
    while (*values) {
        char *end;
        const double v = strtod(values, &end);
        double weight = 1;
        if (*end == '@')
            weight = strtod(end + 1, &end);
        T_TRUE(end != values);
        T_OK(weir_sketch_add(sk, v, (uint64_t)(weight * 0x1p20)));
        values = end + (*end == ' ');
    }
}

/* The Agent goes past the extremes, which we do not. */
static double within(const struct weir_sketch *sk, double v)
{
    return fmin(fmax(v, t_sketch_min(sk)), t_sketch_max(sk));
}

static unsigned check_row(char *row)
{
    char *at = row;
    const char *const rule = strsep(&at, "\t");
    const char *const mapping = strsep(&at, "\t");
    const char *const values = strsep(&at, "\t");
    T_TRUE(at != NULL);
    const uint32_t number = rule_named(rule);
    struct weir_sketch *const sk = make(mapping_named(mapping), 0);
    add_values(sk, values);
    unsigned checked = 0;
    for (char *pair; (pair = strsep(&at, " ")); checked++) {
        char *end;
        const double q = strtod(pair, &end);
        T_TRUE(*end == '=');
        double want = strtod(end + 1, NULL);
        if (number == WEIR_QUANTILE_AGENT)
            want = within(sk, want);
        const double got = by(sk, number, q);
        if (!(fabs(got - want) <= 1e-9 * fabs(want)))
            T_FAIL("%s of %.60s: q %g: got %.17g, want %.17g", rule, values, q, got, want);
    }
    weir_sketch_free(sk);
    return checked;
}

TEST(each_rule_answers_as_the_implementation_it_is_named_after)
{
    size_t n;
    char *const text = (char *)t_read_file(T_SOURCE_DIR "/tests/golden/sketch/rules.tsv", &n);
    T_TRUE(text != NULL && n > 0 && text[n - 1] == '\n');
    text[n - 1] = 0;
    char *at = text;
    unsigned checked = 0;
    for (char *row; (row = strsep(&at, "\n"));)
        if (*row != '#')
            checked += check_row(row);
    T_EQ_U64(checked, 419);
    free(text);
}

TEST(rules_refuse_what_is_outside_0_to_1_and_a_rule_that_is_none)
{
    struct weir_sketch *const sk = OF(1, 2);
    struct weir_sketch *const empty = make(log_mapping(0.01), 0);
    double v = 7;
    for (uint32_t rule = 0; rule <= WEIR_QUANTILE_PROMETHEUS; rule++) {
        T_ERR(weir_sketch_quantile_by(sk, rule, -1e-300, &v), WEIR_EINVAL);
        T_ERR(weir_sketch_quantile_by(sk, rule, 1 + DBL_EPSILON, &v), WEIR_EINVAL);
        T_ERR(weir_sketch_quantile_by(sk, rule, nan(""), &v), WEIR_EINVAL);
        T_ERR(weir_sketch_quantile_by(empty, rule, 0.5, &v), WEIR_EEMPTY);
        T_ERR(weir_sketch_quantile_by(empty, rule, 2, &v), WEIR_EINVAL);
    }
    T_ERR(weir_sketch_quantile_by(sk, WEIR_QUANTILE_PROMETHEUS + 1, 0.5, &v), WEIR_EINVAL);
    T_ERR(weir_sketch_quantile_by(sk, UINT32_MAX, 0.5, &v), WEIR_EINVAL);
    T_EQ_DBL(v, 7.0);
    weir_sketch_free(sk);
    weir_sketch_free(empty);
}

TEST(a_total_below_one_has_rank_0)
{
    struct weir_sketch *const sk = make(log_mapping(0.01), 0);
    T_OK(weir_sketch_add(sk, 5, ONE / 4));
    T_OK(weir_sketch_add(sk, 6, ONE / 2));
    for (uint32_t rule = WEIR_QUANTILE_DEFAULT; rule <= WEIR_QUANTILE_GO; rule++)
        T_NEAR(by(sk, rule, 0.75), 5.0, 0.01);
    T_EQ_DBL(by(sk, WEIR_QUANTILE_AGENT, 0.75), 5.0);
    weir_sketch_free(sk);
}

TEST(the_greatest_total_has_its_quantiles_by_every_rule)
{
    struct weir_sketch *const sk = make(log_mapping(0.01), 0);
    T_OK(weir_sketch_add(sk, -3, UINT64_MAX / 2));
    T_OK(weir_sketch_add(sk, 8, UINT64_MAX - UINT64_MAX / 2));
    for (uint32_t rule = 0; rule <= WEIR_QUANTILE_PROMETHEUS; rule++) {
        T_NEAR(by(sk, rule, 0), -3.0, 0.03);
        T_NEAR(by(sk, rule, 0.25), -3.0, 0.03);
        T_NEAR(by(sk, rule, 0.75), 8.0, 0.03);
        T_NEAR(by(sk, rule, 1), 8.0, 0.03);
    }
    weir_sketch_free(sk);
}

/* A sketch of foreign bins, which may be any. */
static struct weir_sketch *of_bins(struct weir_mapping *m, const int32_t *indices, size_t n)
{
    const struct wr_bins_stats none = {0};
    struct weir_sketch *const sk = make(m, 0);
    T_OK(wr_bins_begin(sk, weir_sketch_mapping(sk)));
    for (size_t i = 0; i < n; i++) {
        T_OK(wr_bins_add(sk, WR_BINS_POSITIVE, indices[i], 2 * ONE));
        T_OK(wr_bins_add(sk, WR_BINS_NEGATIVE, indices[i], 3 * ONE));
    }
    T_OK(wr_bins_end(sk, &none));
    return sk;
}

static void count_bin(void *ctx, double lower, double upper, uint64_t weight)
{
    T_TRUE(lower <= upper && weight > 0);
    ++*(unsigned *)ctx;
}

TEST(foreign_bins_past_all_doubles_have_finite_answers)
{
    static const int32_t indices[][2] = {{INT32_MIN, INT32_MIN + 1},
                                         {-2000000000, -1999999999},
                                         {-70000, -69999},
                                         {-200, 200},
                                         {70000, 70001},
                                         {INT32_MAX - 1, INT32_MAX}};
    static const char *const mappings[] = {"log 0.01", "base2 0", "base2 6", "agent", "cubic"};
    for (size_t k = 0; k < sizeof indices / sizeof indices[0]; k++)
        for (size_t j = 0; j < sizeof mappings / sizeof mappings[0]; j++) {
            struct weir_sketch *const sk = of_bins(mapping_named(mappings[j]), indices[k], 2);
            unsigned bins = 0;
            weir_sketch_bins(sk, count_bin, &bins);
            T_EQ_U64(bins, 4);
            for (int i = 0; i <= 20; i++) {
                for (uint32_t rule = 0; rule <= WEIR_QUANTILE_PROMETHEUS; rule++)
                    T_TRUE(isfinite(by(sk, rule, i / 20.0)));
                T_TRUE(bound_of(sk, i / 20.0) >= 0);
                const double fraction = rank_of(sk, by(sk, 0, i / 20.0));
                T_TRUE(fraction > 0 && fraction <= 1);
            }
            weir_sketch_free(sk);
        }
}

/* --- quantiles.tsv --- */

struct dataset {
    const char *name;
    int from; /* integers from..to; 0..0: values */
    int to;
    double values[8];
    size_t n;
};

static const struct dataset DATASETS[] = {
    {.name = "uniform 1..100", .from = 1, .to = 100},
    {.name = "integers -3..3", .from = -3, .to = 3},
    {.name = "{-2,-1}", .values = {-2, -1}, .n = 2},
    {.name = "exact-summary {-1} merged with {-2}", .values = {-1, -2}, .n = 2},
    {.name = "{1,2,3,4}", .from = 1, .to = 4},
    {.name = "{-1,-2,-3,-4}", .from = -4, .to = -1},
    {.name = "single value 1234", .from = 1234, .to = 1234},
    {.name = "{-20,-2,0,0,2,20}", .values = {-20, -2, 0, 0, 2, 20}, .n = 6},
};

static const struct dataset *dataset_named(const char *name)
{
    for (size_t i = 0; i < sizeof DATASETS / sizeof DATASETS[0]; i++)
        if (strcmp(DATASETS[i].name, name) == 0)
            return &DATASETS[i];
    return NULL;
}

static struct weir_sketch *of_dataset(const struct dataset *d, const char *mapping)
{
    struct weir_sketch *const sk =
        make(*mapping == 'c' ? mapping_named("cubic") : log_mapping(0.01), 0);
    for (size_t i = 0; i < d->n; i++)
        T_OK(weir_sketch_add(sk, d->values[i], 0));
    for (int i = d->from; d->to != 0 && i <= d->to; i++)
        T_OK(weir_sketch_add(sk, i, 0));
    if (d->from < 0 && d->to == -1)
        T_EQ_U64(weir_sketch_weight(sk), 4 * ONE);
    return sk;
}

/* The values of a distribution at n points in the middle of equal shares. */
static double lattice(const char *name, double share)
{
    if (strncmp(name, "exponential", 11) == 0)
        return -1000 * log1p(-share);
    if (strncmp(name, "Pareto", 6) == 0)
        return 1 / (1 - share);
    /* log-normal: the quantile of a normal, by bisection of its distribution */
    double lo = -9;
    double hi = 9;
    for (int i = 0; i < 80; i++) {
        const double mid = (lo + hi) / 2;
        if (erfc(-mid / sqrt(2)) / 2 < share)
            lo = mid;
        else
            hi = mid;
    }
    return 5e6 * exp(lo);
}

/* The sketch is within its bound of the sample of the rank, and that near the limit given. */
static void check_lattice(const char *name, double q, double want)
{
    const int n = 4000;
    struct weir_sketch *const sk = t_sketch(WEIR_GRID_VALUE, 0);
    for (int i = 0; i < n; i++) /* in an order that is not that of the values */
        T_OK(weir_sketch_add(sk, lattice(name, ((i * 1009) % n + 0.5) / n), 0));
    const double rank = q * (n - 1);
    const double low = lattice(name, (floor(rank) + 0.5) / n);
    const double high = lattice(name, (ceil(rank) + 0.5) / n);
    const double got = t_sketch_q(sk, q);
    const double bound = bound_of(sk, q);
    T_TRUE(got >= low * (1 - bound) && got <= high * (1 + bound));
    T_NEAR(got, want, 0.2);
    weir_sketch_free(sk);
}

enum checked { ELSEWHERE, ANSWER, LATTICE };

/* Rows of other mappings, of conversion, of ASAP's own rank and of bins are of other tests. */
static enum checked check_quantile_row(char *row)
{
    char *at = row;
    const char *const name = strsep(&at, "\t");
    const char *const mapping = strsep(&at, "\t");
    const char *const rule = strsep(&at, "\t");
    const char *const q_text = strsep(&at, "\t");
    const double want = strtod(strsep(&at, "\t"), NULL);
    const double q = strtod(q_text, NULL);
    if (strncmp(rule, "true quantile", 13) == 0) {
        check_lattice(name, q, want);
        return LATTICE;
    }
    const struct dataset *const d = dataset_named(name);
    if (!d)
        return ELSEWHERE;
    struct weir_sketch *const sk = of_dataset(d, mapping);
    if (strcmp(rule, "java") == 0)
        T_NEAR(by(sk, WEIR_QUANTILE_JAVA, q), want, 1e-9);
    else if (strncmp(rule, "sketches-go", 11) == 0)
        T_NEAR(by(sk, WEIR_QUANTILE_GO, q), want, 1e-9);
    else if (strncmp(rule, "rust", 4) == 0)
        T_NEAR(t_sketch_q(sk, q), want, 0.01);
    else
        T_EQ_DBL(t_sketch_q(sk, q), want);
    weir_sketch_free(sk);
    return ANSWER;
}

static void check_quantile_file(const char *path)
{
    size_t n;
    char *const text = (char *)t_read_file(path, &n);
    if (!text) {
        T_SKIP_MISSING(path);
        return;
    }
    T_TRUE(n > 0 && text[n - 1] == '\n');
    text[n - 1] = 0;
    unsigned counts[3] = {0};
    char *at = text;
    for (char *row; (row = strsep(&at, "\n"));)
        if (*row != '#')
            counts[check_quantile_row(row)]++;
    free(text);
    T_EQ_U64(counts[ANSWER], 48);
    T_EQ_U64(counts[LATTICE], 12);
}

TEST(published_quantiles_are_ours)
{
    check_quantile_file(T_SOURCE_DIR "/tests/golden/sketch/quantiles.tsv");
}

TEST(the_shared_quantiles_are_ours)
{
    check_quantile_file(T_SHARED_DIR "/vectors/sketches/ddsketch-quantiles.tsv");
}

/* --- cases that other libraries got wrong --- */

TEST(a_sampled_value_keeps_its_value_and_counts_as_often_as_it_stands_for)
{
    struct weir_sketch *const sk = make(log_mapping(0.01), 0);
    T_OK(weir_sketch_add(sk, 57, 10 * ONE)); /* 57|ms|@0.1 */
    T_EQ_U64(weir_sketch_weight(sk), 10 * ONE);
    T_EQ_DBL(t_sketch_q(sk, 0.5), 57.0);
    T_EQ_DBL(rank_of(sk, 57), 1.0);
    T_EQ_DBL(rank_of(sk, 56.999), 0.0);
    weir_sketch_free(sk);
}

TEST(a_bin_of_base_2_includes_its_upper_bound)
{
    struct weir_mapping *m;
    T_OK(weir_mapping_base2(NULL, 0, &m));
    struct weir_sketch *const sk = make(m, 0);
    add_values(sk, "0.5 1 1.5 3");
    T_EQ_DBL(rank_of(sk, 1), 0.5);
    T_EQ_DBL(rank_of(sk, 2), 0.75);
    T_EQ_DBL(rank_of(sk, HUGE_VAL), 1.0);
    weir_sketch_free(sk);
}

TEST(answers_stay_within_the_extremes)
{
    struct weir_sketch *const sk = make(mapping_named("agent"), 0);
    add_values(sk, "-10 -10 7 7 1000");
    for (int i = 0; i <= 100; i++) {
        const double agent = by(sk, WEIR_QUANTILE_AGENT, i / 100.0);
        T_TRUE(agent >= -10 && agent <= 1000);
        const double v = t_sketch_q(sk, i / 100.0);
        T_TRUE(v >= -10 && v <= 1000);
    }
    weir_sketch_free(sk);
}

TEST(the_agent_mirrors_a_mirrored_distribution_but_for_its_way_in_the_bin)
{
    struct weir_sketch *const sk = make(mapping_named("agent"), 0);
    for (int i = -50; i <= 50; i++)
        T_OK(weir_sketch_add(sk, i, 0));
    for (int i = 1; i < 50; i++) {
        const double q = i / 100.0;
        T_NEAR(by(sk, WEIR_QUANTILE_AGENT, 0.5 - q), -by(sk, WEIR_QUANTILE_AGENT, 0.5 + q),
               0.015625);
    }
    T_EQ_DBL(by(sk, WEIR_QUANTILE_AGENT, 0.5), 0.0);
    weir_sketch_free(sk);
}

TEST(the_lowest_bins_collapse_and_the_top_stays_true)
{
    struct weir_sketch *const sk = make(log_mapping(1.0 / 1024), 2048);
    T_OK(weir_sketch_add(sk, 1, 100 * ONE));
    T_OK(weir_sketch_add(sk, 1073741823, 0));
    T_EQ_U64(weir_sketch_bins_weight(sk), 101 * ONE);
    T_EQ_DBL(t_sketch_q(sk, 1), 1073741823.0);
    T_NEAR(by(sk, WEIR_QUANTILE_JAVA, 1), 1073741823.0, 1.0 / 1024);
    int32_t top;
    T_OK(weir_mapping_index(weir_sketch_mapping(sk), 1073741823, &top));
    T_EQ_DBL(by(sk, WEIR_QUANTILE_JAVA, 0.5),
             weir_mapping_value(weir_sketch_mapping(sk), top - 2047));
    weir_sketch_free(sk);
}

struct bins {
    size_t n;
    uint64_t weights[16];
    double lowers[16];
};

static void take_bin(void *ctx, double lower, double upper, uint64_t weight)
{
    struct bins *const b = ctx;
    T_TRUE(lower < upper && b->n < 16);
    b->lowers[b->n] = lower;
    b->weights[b->n++] = weight;
}

TEST(a_limit_of_8_holds_each_count_at_the_highest_8_bins_in_any_order)
{
    struct t_rng r = t_rng(t_seed() + 3);
    int32_t order[41];
    for (int i = 0; i < 41; i++)
        order[i] = i - 20;
    for (int round = 0; round < 20; round++) {
        struct weir_sketch *const sk = make(log_mapping(0.01), 8);
        const struct weir_mapping *const m = weir_sketch_mapping(sk);
        for (size_t i = 41; i > 0; i--) {
            const size_t at = t_below(&r, i);
            const int32_t index = order[at];
            order[at] = order[i - 1];
            order[i - 1] = index;
            T_OK(weir_sketch_add(sk, weir_mapping_value(m, index), 0));
        }
        struct bins b = {0};
        weir_sketch_bins(sk, take_bin, &b);
        T_EQ_U64(b.n, 8);
        for (int i = 0; i < 8; i++) {
            T_EQ_U64(b.weights[i], (i ? 1 : 34) * ONE);
            T_EQ_DBL(b.lowers[i], weir_mapping_lower(m, 13 + i));
        }
        T_TRUE(bound_of(sk, 0.4) > 0.5);
        T_NEAR(bound_of(sk, 0.95), 0.01, 1e-6);
        weir_sketch_free(sk);
    }
}

TEST(a_conversion_adds_what_was_off_before_to_the_bound)
{
    struct weir_sketch *const from = OF(1, 2, 3, 4, 5);
    struct weir_sketch *const to = t_sketch(WEIR_GRID_VALUE, 0);
    T_OK(weir_sketch_convert(to, from));
    const double both = (1 + 0.01) * (1 + weir_sketch_accuracy(to)) - 1;
    T_NEAR(bound_of(to, 0.5), both, 1e-5);
    T_EQ_DBL(bound_of(to, 0), 0.0);
    struct weir_sketch *const merged = t_sketch(WEIR_GRID_VALUE, 0);
    T_OK(weir_sketch_add(merged, 7, 0));
    T_OK(weir_sketch_merge(merged, to)); /* and goes on with it */
    T_NEAR(bound_of(merged, 0.9), both, 1e-5);
    weir_sketch_clear(merged);
    T_OK(weir_sketch_add(merged, 7, 0));
    T_OK(weir_sketch_add(merged, 8, 0));
    T_NEAR(bound_of(merged, 0.5), weir_sketch_accuracy(merged), 1e-5);
    weir_sketch_free(from);
    weir_sketch_free(to);
    weir_sketch_free(merged);
}

/* --- many at once --- */

static uint64_t bits_of(double v)
{
    uint64_t bits;
    memcpy(&bits, &v, sizeof bits);
    return bits;
}

static void expect_one_by_one(const struct weir_sketch *sk, const double *qs, size_t n)
{
    double *const got = calloc(n ? n : 1, sizeof *got);
    T_OK(weir_sketch_quantiles(sk, qs, n, got));
    for (size_t i = 0; i < n; i++)
        if (bits_of(got[i]) != bits_of(t_sketch_q(sk, qs[i])))
            T_FAIL("q %.17g: %.17g at once, %.17g alone", qs[i], got[i], t_sketch_q(sk, qs[i]));
    free(got);
}

TEST(many_quantiles_are_those_of_one_each_to_the_bit)
{
    struct t_rng r = t_rng(t_seed());
    static const uint64_t weights[4] = {ONE, 300 * ONE, 70000 * ONE, ONE / 3};
    for (int round = 0; round < 60; round++) {
        struct weir_sketch *const sk = t_sketch(WEIR_GRID_VALUE, round % 7 ? 2048 : 40);
        const size_t values = t_below(&r, 800) + 1;
        for (size_t i = 0; i < values; i++) {
            double v = exp(t_unit(&r) * 12 - 4);
            if (round % 3 == 0)
                v = t_below(&r, 5) ? (t_below(&r, 2) ? v : -v) : 0;
            T_OK(weir_sketch_add(sk, v, weights[round % 4]));
        }
        double qs[200];
        const size_t n = t_below(&r, 200);
        for (size_t i = 0; i < n; i++)
            qs[i] = t_below(&r, 10) ? t_unit(&r) : (double)t_below(&r, 5) / 4;
        expect_one_by_one(sk, qs, n);
        weir_sketch_free(sk);
    }
}

TEST(many_quantiles_are_refused_together_and_may_replace_what_asks)
{
    struct weir_sketch *const sk = OF(1, 2, 3);
    struct weir_sketch *const empty = make(log_mapping(0.01), 0);
    double v[3] = {0.5, 1.5, 0.5};
    T_ERR(weir_sketch_quantiles(sk, v, 3, v), WEIR_EINVAL);
    v[1] = nan("");
    T_ERR(weir_sketch_quantiles(sk, v, 3, v), WEIR_EINVAL);
    T_EQ_DBL(v[0], 0.5);
    v[1] = 1;
    T_ERR(weir_sketch_quantiles(empty, v, 3, v), WEIR_EEMPTY);
    T_EQ_DBL(v[0], 0.5);
    T_OK(weir_sketch_quantiles(sk, v, 3, v));
    T_NEAR(v[0], 2.0, 0.01);
    T_EQ_DBL(v[1], 3.0);
    T_EQ_DBL(v[2], v[0]);
    T_OK(weir_sketch_quantiles(sk, NULL, 0, NULL));
    weir_sketch_free(sk);
    weir_sketch_free(empty);
}

/* --- the walk --- */

#define LINES 6u
#define BYTES (LINES * WR_WALK_LINE)

static uint64_t counter_at(const struct wr_run *run, uint32_t at)
{
    uint64_t v = 0;
    for (uint32_t i = 0; i < 1u << run->width; i++) /* as stored by a machine of this order */
        memcpy((uint8_t *)&v + i, run->bins + at + i, 1);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    v >>= 64 - (8u << run->width);
#endif
    return v;
}

/* One counter after the other. */
static bool plain_walk(const struct wr_run *run, bool up, uint64_t need, struct wr_hit *ret)
{
    const uint32_t size = 1u << run->width;
    ret->before = 0;
    for (uint32_t i = 0; i < (run->end - run->begin) / size; i++) {
        const uint32_t at = up ? run->begin + i * size : run->end - (i + 1) * size;
        ret->index = run->base + (int32_t)(at / size);
        ret->weight = counter_at(run, at) << run->shift;
        if (ret->before + ret->weight >= need)
            return true;
        ret->before += ret->weight;
    }
    return false;
}

static void random_run(struct t_rng *r, uint8_t *bytes, struct wr_run *run)
{
    memset(bytes, 0, BYTES);
    run->width = (uint8_t)t_below(r, 4);
    run->shift = run->width < 3 && t_below(r, 2) ? 20 : 0;
    run->bins = bytes;
    run->base = (int32_t)t_below(r, 5000) - 2500;
    run->begin = (uint32_t)t_below(r, LINES) * WR_WALK_LINE;
    run->end =
        run->begin + (uint32_t)t_below(r, LINES + 1 - run->begin / WR_WALK_LINE) * WR_WALK_LINE;
    if (t_below(r, 4) == 0 && run->end < BYTES) /* words that are no line */
        run->end += 8 * (uint32_t)t_below(r, 8);
    const uint64_t sparse = t_below(r, 9) + 1;
    for (uint32_t i = run->begin; i < run->end; i++)
        if (t_below(r, sparse) == 0)
            bytes[i] = t_below(r, 3) ? (uint8_t)t_next(r) : 255;
    if (run->width == 3) /* the sum is to fit 64 bits */
        for (uint32_t i = 0; i < BYTES; i += 8) {
            uint64_t v;
            memcpy(&v, bytes + i, 8);
            v >>= 6;
            memcpy(bytes + i, &v, 8);
        }
}

static void expect_walk(const struct wr_run *run, bool up, wr_walk_fn *walk, uint64_t total,
                        struct t_rng *r)
{
    struct wr_walk w = {.run = *run};
    if (up)
        wr_walk_from_low(&w);
    else
        wr_walk_from_high(&w);
    uint64_t need = 0;
    for (int i = 0; i < 8; i++) {
        need += t_below(r, total / 4 + 2) + 1;
        struct wr_hit want;
        struct wr_hit got = {0};
        const bool found = plain_walk(run, up, need, &want);
        T_EQ_U64(walk(&w, need, &got), found);
        T_EQ_U64(got.before, want.before);
        if (!found)
            continue;
        T_EQ_I64(got.index, want.index);
        T_EQ_U64(got.weight, want.weight);
    }
}

TEST(every_way_to_walk_finds_the_bin_that_counting_finds)
{
    struct t_rng r = t_rng(t_seed() + 1);
    uint8_t bytes[BYTES];
    struct wr_run run;
    for (int round = 0; round < 20000; round++) {
        random_run(&r, bytes, &run);
        uint64_t total = 0;
        for (uint32_t at = run.begin; at < run.end; at += 1u << run.width)
            total += counter_at(&run, at) << run.shift;
        T_EQ_U64(wr_run_weight(&run), total);
        expect_walk(&run, true, wr_walk_up, total, &r);
        expect_walk(&run, false, wr_walk_down, total, &r);
        expect_walk(&run, true, wr_walk_up_words, total, &r);
        expect_walk(&run, false, wr_walk_down_words, total, &r);
#if defined(WR_WALK_AVX2)
        if (__builtin_cpu_supports("avx2")) {
            expect_walk(&run, true, wr_walk_up_avx2, total, &r);
            expect_walk(&run, false, wr_walk_down_avx2, total, &r);
        }
#endif
    }
}

TEST(the_weight_up_to_a_bin_is_that_of_the_bins_up_to_it)
{
    struct t_rng r = t_rng(t_seed() + 2);
    uint8_t bytes[BYTES];
    struct wr_run run;
    for (int round = 0; round < 4000; round++) {
        random_run(&r, bytes, &run);
        const int32_t n = (int32_t)(BYTES >> run.width);
        const int32_t index = run.base + (int32_t)t_below(&r, (uint64_t)n + 20) - 10;
        uint64_t want = 0;
        for (uint32_t at = run.begin; at < run.end; at += 1u << run.width)
            if (run.base + (int32_t)(at >> run.width) <= index)
                want += counter_at(&run, at) << run.shift;
        T_EQ_U64(wr_run_weight_upto(&run, index), want);
    }
    T_EQ_U64(wr_run_weight_upto(&run, INT32_MIN), 0);
    T_EQ_U64(wr_run_weight_upto(&run, INT32_MAX), wr_run_weight(&run));
}

/* --- rank --- */

TEST(the_rank_of_a_value_counts_its_bin_whole_and_the_ends_exactly)
{
    struct weir_sketch *const sk = OF(-4, -2, -2, 0, 1, 3, 3, 9);
    T_EQ_DBL(rank_of(sk, -HUGE_VAL), 0.0);
    T_EQ_DBL(rank_of(sk, -4.0000001), 0.0);
    T_EQ_DBL(rank_of(sk, -4), 0.125);
    T_EQ_DBL(rank_of(sk, -3), 0.125);
    T_EQ_DBL(rank_of(sk, -2.001), 0.375); /* the bin of -2 */
    T_EQ_DBL(rank_of(sk, -1), 0.375);
    T_EQ_DBL(rank_of(sk, -1e-310), 0.5);
    T_EQ_DBL(rank_of(sk, 0), 0.5);
    T_EQ_DBL(rank_of(sk, 0.5), 0.5);
    T_EQ_DBL(rank_of(sk, 1), 0.625);
    T_EQ_DBL(rank_of(sk, 3), 0.875);
    T_EQ_DBL(rank_of(sk, 8), 0.875);
    T_EQ_DBL(rank_of(sk, 9), 1.0);
    T_EQ_DBL(rank_of(sk, HUGE_VAL), 1.0);
    double fraction = 7;
    T_ERR(weir_sketch_rank(sk, nan(""), &fraction), WEIR_EINVAL);
    struct weir_sketch *const empty = make(log_mapping(0.01), 0);
    T_ERR(weir_sketch_rank(empty, 1, &fraction), WEIR_EEMPTY);
    T_ERR(weir_sketch_rank(empty, nan(""), &fraction), WEIR_EINVAL);
    T_EQ_DBL(fraction, 7.0);
    weir_sketch_free(sk);
    weir_sketch_free(empty);
}

TEST(the_rank_of_a_duration_is_to_the_nanosecond)
{
    struct weir_mapping *m;
    T_OK(weir_mapping_log(NULL, 0.01, &m));
    for (int i = 0; i < 2; i++) {
        const struct weir_sketch_opts o = {
            .struct_size = sizeof o, .grid = WEIR_GRID_NS, .mapping = i ? m : NULL};
        struct weir_sketch *sk;
        T_OK(weir_sketch_new(&o, &sk));
        for (int64_t ns = 1; ns <= 10; ns++)
            T_OK(weir_sketch_add_ns(sk, ns, 0));
        T_OK(weir_sketch_add_ns(sk, 0, 0));
        for (int64_t ns = 0; ns <= 10; ns++) /* so few have a bin each */
            T_EQ_DBL(rank_of(sk, (double)ns / 1e9), (double)(ns + 1) / 11);
        T_EQ_DBL(rank_of(sk, 0.5e-9), 1.0 / 11);
        T_EQ_DBL(rank_of(sk, -1e-9), 0.0);
        weir_sketch_free(sk);
    }
    weir_mapping_unref(m);
}

/* --- the error bound --- */

TEST(the_bound_is_the_mapping_s_and_0_where_the_answer_is_exact)
{
    struct weir_sketch *const sk = OF(-2, 0, 0, 5, 6);
    T_EQ_DBL(bound_of(sk, 0), 0.0);
    T_EQ_DBL(bound_of(sk, 1), 0.0);
    T_EQ_DBL(bound_of(sk, 0.5), 0.0); /* the zero bin */
    T_NEAR(bound_of(sk, 0.1), 0.01, 1e-6);
    T_NEAR(bound_of(sk, 0.75), 0.01, 1e-6);
    T_TRUE(bound_of(sk, 0.75) >= 0.01);
    double bound = 7;
    T_ERR(weir_sketch_error_bound(sk, -0.1, &bound), WEIR_EINVAL);
    T_ERR(weir_sketch_error_bound(sk, nan(""), &bound), WEIR_EINVAL);
    struct weir_sketch *const empty = make(log_mapping(0.01), 0);
    T_ERR(weir_sketch_error_bound(empty, 0.5, &bound), WEIR_EEMPTY);
    T_EQ_DBL(bound, 7.0);
    weir_sketch_free(sk);
    weir_sketch_free(empty);
}

TEST(after_a_collapse_the_bound_is_what_the_minimum_leaves)
{
    struct weir_sketch *const sk = make(log_mapping(0.01), 10);
    add_values(sk, "1 2 3 1000 1000 1000 1000");
    const double floor = t_sketch_q(sk, 0.2);
    T_TRUE(floor > 800 && floor < 1000); /* ten bins below that of 1000 */
    T_NEAR(bound_of(sk, 0.2), floor / 1 - 1, 1e-6);
    T_NEAR(bound_of(sk, 0.9), 0.01, 1e-6);
    T_EQ_DBL(bound_of(sk, 0), 0.0);
    T_EQ_DBL(rank_of(sk, 1.5), 3.0 / 7); /* where it would have been counted */
    T_EQ_DBL(rank_of(sk, 999), 1.0);
    T_OK(weir_sketch_add(sk, -1, 0));
    T_TRUE(isinf(bound_of(sk, 0.2))); /* the least positive sample is not known any more */
    T_NEAR(bound_of(sk, 0.9), 0.01, 1e-6);
    weir_sketch_free(sk);
}

TEST(a_collapse_is_seen_in_decoded_bytes_too)
{
    struct weir_sketch *const sk = t_sketch(WEIR_GRID_NS, 10);
    struct weir_sketch *const read = t_sketch(WEIR_GRID_NS, 0);
    for (int64_t ns = 1; ns <= 1000000000; ns *= 10)
        T_OK(weir_sketch_add_ns(sk, ns, 0));
    size_t n;
    uint8_t *const form = t_sketch_form(sk, &n);
    T_OK(weir_sketch_decode(read, form, n));
    T_NEAR(bound_of(read, 0.3), t_sketch_q(read, 0.3) / 1e-9 - 1, 1e-5);
    T_EQ_DBL(bound_of(read, 0.3), bound_of(sk, 0.3));
    free(form);
    weir_sketch_free(sk);
    weir_sketch_free(read);
}

TEST(negatives_collapse_towards_zero_and_their_bound_comes_from_the_maximum)
{
    struct weir_sketch *const sk = make(log_mapping(0.01), 10);
    add_values(sk, "-1000 -1000 -1000 -1000 -3 -2 -1");
    const double floor = t_sketch_q(sk, 0.9);
    T_TRUE(floor < -800 && floor > -1000);
    T_NEAR(bound_of(sk, 0.9), -floor - 1, 1e-6);
    T_NEAR(bound_of(sk, 0.2), 0.01, 1e-6);
    T_EQ_DBL(rank_of(sk, -2.5), 1.0);
    T_OK(weir_sketch_add(sk, 0, 0));
    T_TRUE(isinf(bound_of(sk, 0.8)));
    weir_sketch_free(sk);
}

TEST(a_duration_that_is_not_0_is_a_nanosecond_at_least)
{
    struct weir_sketch *const sk = t_sketch(WEIR_GRID_NS, 10);
    T_OK(weir_sketch_add_ns(sk, 0, 0));
    for (int i = 0; i < 3; i++)
        T_OK(weir_sketch_add_ns(sk, 1000, 0));
    for (int i = 0; i < 6; i++)
        T_OK(weir_sketch_add_ns(sk, 1000000000, 0));
    T_NEAR(bound_of(sk, 0.3), t_sketch_q(sk, 0.3) / 1e-9 - 1, 1e-5);
    T_EQ_DBL(bound_of(sk, 0.01), 0.0);
    T_NEAR(bound_of(sk, 0.9), weir_sketch_accuracy(sk), 1e-5);
    weir_sketch_free(sk);
}
