/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kinds: every kind of mapping: indices and bounds of other makers, both edges of every bin, the
 * table against the formula, what is refused.
 */
#include "t.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "sketch/formula.h"
#include "sketch/mapping.h"

static double hex_double(const char *hex) /* of its little-endian bytes */
{
    uint8_t bytes[8];
    T_EQ_U64(t_unhex(hex, bytes, sizeof bytes), 8);
    const uint64_t bits = wr_load64le(bytes);
    double v;
    memcpy(&v, &bits, sizeof v);
    return v;
}

static struct weir_mapping *make(uint32_t kind, double gamma, double offset)
{
    struct weir_mapping *m;
    T_OK(weir_mapping_new(NULL, kind, gamma, offset, &m));
    return m;
}

/* As their makers write them, at an accuracy of 1 % (bitwise: 0.78 %). */
static const struct made {
    const char *name;
    uint32_t kind;
    const char *gamma;
    const char *offset;
} made[] = {
    {"log γ=1.0202020202020203", WEIR_MAPPING_LOG, "fd4a815abf52f03f", "0000000000000000"},
    {"log α=0.01 (ASAP)", WEIR_MAPPING_LOG, "fd4a815abf52f03f", "0000000000000000"},
    {"cubic (Java γ)", WEIR_MAPPING_CUBIC, "c2f1e7e9ed51f03f", "0000000000000000"},
    {"cubic (Go γ)", WEIR_MAPPING_CUBIC, "c3f1e7e9ed51f03f", "0000000000000000"},
    {"quadratic", WEIR_MAPPING_QUADRATIC, "fd0757b16a4cf03f", "0000000000000000"},
    {"quartic", WEIR_MAPPING_QUARTIC, "9749ad629752f03f", "0000000000000000"},
    {"bitwise-linear k=6", WEIR_MAPPING_LINEAR, "6180773e9a2cf03f", "0000000000000000"},
    {"linear (Java and Go)", WEIR_MAPPING_LINEAR, "180b1b112e39f03f", "50239d62c9ff4840"},
    {"linear (Java)", WEIR_MAPPING_LINEAR, "180b1b112e39f03f", "50239d62c9ff4840"},
    {"linear (Go)", WEIR_MAPPING_LINEAR, "180b1b112e39f03f", "45239d62c9ff4840"},
    {"agent γ=1.015625 bias 1338 (round half to even)", WEIR_MAPPING_LOG, "000000000040f03f",
     "0000000000ea9440"},
    {"agent, ns", WEIR_MAPPING_LOG, "000000000040f03f", "00d88afe9e04fe3f"},
};
#define MADE (sizeof made / sizeof made[0])

static struct weir_mapping *make_named(const char *name)
{
    for (size_t i = 0; i < MADE; i++)
        if (!strcmp(made[i].name, name))
            return make(made[i].kind, hex_double(made[i].gamma), hex_double(made[i].offset));
    T_FAIL("no mapping is called %s", name);
}

/* The agent's keys end at 32767 and start, above 0, at 1. Negative ones are of the magnitude. */
static bool is_beyond_agent(const char *name, double value, long index)
{
    return name[0] == 'a' && (index == 0 || labs(index) == 32767 || !(fabs(value) <= DBL_MAX));
}

static void check_row(const char *name, const char *value_text, long want, const char *answer)
{
    const double value = strtod(value_text, NULL);
    if (is_beyond_agent(name, value, want))
        return;
    struct weir_mapping *const m = make_named(name);
    int32_t index;
    T_OK(weir_mapping_index(m, fabs(value), &index));
    if (!strcmp(name, "linear (Go)")) {
        /* In Go offset and multiplier are the same double, 17 units in the last place below the
         * multiplier that its gamma says: the value is at a bound, by 1e-12. */
        T_EQ_I64(want, 0);
        T_NEAR(weir_mapping_lower(m, 0), value, 1e-12);
    } else if (index != labs(want) && index != want) {
        T_FAIL("%s: %s gives %" PRId32 ", want %ld", name, value_text, index, want);
    }
    if (*answer)
        T_NEAR(weir_mapping_value(m, index), strtod(answer, NULL), 1e-13);
    weir_mapping_unref(m);
}

static void check_rows(const char *path)
{
    size_t n;
    char *const text = (char *)t_read_file(path, &n);
    if (!text)
        T_SKIP_MISSING(path);
    int rows = 0;
    char *rest = text;
    for (char *line = strtok_r(rest, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        if (line[0] == '#')
            continue;
        char *field[5];
        char *at = line;
        for (int i = 0; i < 5; i++) {
            field[i] = at;
            at += strcspn(at, "\t");
            if (*at)
                *at++ = '\0';
        }
        check_row(field[0], field[1], strtol(field[2], NULL, 10), field[3]);
        rows++;
    }
    free(text);
    T_EQ_U64(rows, 136);
}

TEST(indices_and_answers_are_those_of_other_makers)
{
    check_rows(T_SOURCE_DIR "/tests/golden/sketch/ddsketch-indices.tsv");
}

TEST(the_shared_vectors_are_the_ones_kept_here)
{
    check_rows(T_SHARED_DIR "/vectors/sketches/ddsketch-indices.tsv");
}

/* contracts/sketches.md 2a: bounds and values as Java prints them. */
TEST(bounds_and_answers_are_those_of_sketches_java)
{
    struct weir_mapping *m = make_named("log γ=1.0202020202020203");
    T_NEAR(weir_mapping_lower(m, 1), 1.0202020202020200, 1e-12);
    T_NEAR(weir_mapping_value(m, 0), 1.01, 1e-12);
    T_NEAR(weir_mapping_value(m, 1), 1.0304040404040402, 1e-12);
    T_NEAR(weir_mapping_lower(m, 100), 7.38954874865131, 1e-12);
    weir_mapping_unref(m);
    m = make_named("cubic (Java γ)");
    T_NEAR(weir_mapping_lower(m, 1), 1.0201705595545993, 1e-12);
    T_NEAR(weir_mapping_lower(m, 100), 7.253365910056468, 1e-12);
    T_NEAR(weir_mapping_accuracy(m), 0.01, 1e-12);
    weir_mapping_unref(m);
    m = make_named("bitwise-linear k=6");
    T_EQ_DBL(weir_mapping_lower(m, 50), 1.78125);
    T_NEAR(weir_mapping_accuracy(m), tanh(1.0 / 128), 1e-12); /* 0.78 % */
    weir_mapping_unref(m);
    m = make_named("quadratic");
    T_NEAR(weir_mapping_accuracy(m), 0.01, 1e-12);
    weir_mapping_unref(m);
    m = make_named("quartic");
    T_NEAR(weir_mapping_accuracy(m), 0.01, 1e-12);
    weir_mapping_unref(m);
    m = make_named("linear (Java)");
    T_NEAR(weir_mapping_accuracy(m), 0.01, 1e-12);
    weir_mapping_unref(m);
}

/* A change of the unit is a change of the offset: the keys of seconds come out of nanoseconds. */
TEST(the_two_offsets_of_the_agent_give_the_same_keys)
{
    struct weir_mapping *const s = make_named("agent γ=1.015625 bias 1338 (round half to even)");
    struct weir_mapping *const ns = make_named("agent, ns");
    static const double seconds[] = {1e-9, 1e-6, 1e-3, 0.5, 1, 10, 100, 1e3, 1e6, 1e9};
    for (size_t i = 0; i < sizeof seconds / sizeof seconds[0]; i++) {
        int32_t a;
        int32_t b;
        T_OK(weir_mapping_index(s, seconds[i], &a));
        T_OK(weir_mapping_index(ns, seconds[i] * 1e9, &b));
        T_EQ_I64(a, b);
    }
    T_NEAR(weir_mapping_accuracy(s), 1.0 / 129, 1e-14);
    weir_mapping_unref(s);
    weir_mapping_unref(ns);
}

/* Bin i is [lower(i), lower(i + 1)), answered within the accuracy of both edges. asap_sketchlib#70.
 */
static void expect_bins(const struct weir_mapping *m, int32_t from, int32_t to)
{
    const double a = weir_mapping_accuracy(m) + 4 * DBL_EPSILON;
    double upper = weir_mapping_lower(m, from);
    for (int32_t i = from; i < to; i++) {
        const double lower = upper;
        upper = weir_mapping_lower(m, i + 1);
        const double last = nextafter(upper, 0);
        const double v = weir_mapping_value(m, i);
        if (lower <= WR_MAPPING_ZERO_MAX || upper >= DBL_MAX)
            continue;
        T_TRUE(lower < upper);
        if (wr_mapping_index(m, lower) != i || wr_mapping_index(m, last) != i)
            T_FAIL("bin %" PRId32 " of kind %u has [%a, %a) in %" PRId32 " and %" PRId32, i,
                   m->kind, lower, upper, wr_mapping_index(m, lower), wr_mapping_index(m, last));
        if (!(fabs(v - lower) <= a * lower) || !(fabs(v - last) <= a * last))
            T_FAIL("bin %" PRId32 " of kind %u: %.17g answers [%.17g, %.17g)", i, m->kind, v, lower,
                   upper);
    }
}

TEST(both_edges_of_every_bin_are_in_it_and_within_the_accuracy)
{
    for (size_t k = 0; k < MADE; k++) {
        struct weir_mapping *const m = make_named(made[k].name);
        int32_t lo;
        int32_t hi;
        wr_mapping_limits(m, false, &lo, &hi);
        expect_bins(m, lo, hi);
        weir_mapping_unref(m);
    }
}

TEST(coarse_and_fine_bins_of_every_kind_keep_their_edges)
{
    static const double gammas[] = {1.00005, 1.0005, 1.3, 2, 7, 1e10, DBL_MAX};
    static const double offsets[] = {0, 0.5, -1e-20, -1338.25, 1e6};
    struct t_rng rng = t_rng(t_seed());
    for (uint32_t kind = WEIR_MAPPING_LOG; kind <= WEIR_MAPPING_QUARTIC; kind++) {
        for (size_t g = 0; g < 7; g++) {
            for (size_t o = 0; o < 5; o++) {
                struct weir_mapping *const m = make(kind, gammas[g], offsets[o]);
                int32_t lo;
                int32_t hi;
                wr_mapping_limits(m, false, &lo, &hi);
                for (int n = 0; n < 4; n++) {
                    const int32_t at =
                        lo + (int32_t)t_below(&rng, (uint64_t)((int64_t)hi - lo) + 1);
                    expect_bins(m, at, hi - at > 20 ? at + 20 : hi);
                }
                weir_mapping_unref(m);
            }
        }
    }
}

TEST(the_table_and_the_formula_give_the_same_bin)
{
    struct t_rng rng = t_rng(t_seed());
    for (size_t k = 0; k < MADE; k++) {
        struct weir_mapping *const m = make_named(made[k].name);
        struct weir_mapping *bare;
        T_OK(wr_mapping_read_only(NULL, m->kind, m->gamma, m->offset, &bare));
        T_TRUE(m->cell_count != 0);
        T_EQ_U64(bare->cell_count, 0);
        for (int n = 0; n < 20000; n++) {
            /* any double with an exponent around the table's, and the neighbours of a bound */
            double v = ldexp(1 + t_unit(&rng), (int)t_below(&rng, 110) - 40);
            if (n % 2)
                v = weir_mapping_lower(m, wr_mapping_index(m, v));
            if (n % 4 == 3)
                v = nextafter(v, 0);
            T_EQ_I64(wr_mapping_index(m, v), wr_mapping_index(bare, v));
            T_EQ_I64(wr_mapping_index(m, v), wr_formula_index(m, v));
        }
        weir_mapping_unref(bare);
        weir_mapping_unref(m);
    }
}

TEST(bounds_and_answers_of_the_table_have_the_bits_of_the_formula)
{
    for (size_t k = 0; k < MADE; k++) {
        struct weir_mapping *const m = make_named(made[k].name);
        struct weir_mapping *bare;
        T_OK(wr_mapping_read_only(NULL, m->kind, m->gamma, m->offset, &bare));
        T_TRUE(m->bound_count > 94 && !bare->bound_count);
        /* they reach over the values that the table is for */
        T_TRUE(m->bounds[0] <= 0x1p-30 && m->bounds[m->bound_count - 1] >= 0x1p64);
        const int64_t beyond = 8; /* of the table, on either side */
        for (int64_t i = -beyond; i < m->bound_count + beyond; i++) {
            const int32_t index = (int32_t)(m->index_first + i);
            T_EQ_U64(wr_mapping_bits(weir_mapping_lower(m, index)),
                     wr_mapping_bits(weir_mapping_lower(bare, index)));
            T_EQ_U64(wr_mapping_bits(weir_mapping_value(m, index)),
                     wr_mapping_bits(weir_mapping_value(bare, index)));
        }
        weir_mapping_unref(bare);
        weir_mapping_unref(m);
    }
}

/* Magnitudes of any exponent, and everything that has no bin, in every lane. */
static double some_value(struct t_rng *rng, const struct weir_mapping *m)
{
    static const double odd[] = {
        0,         -0.0, 5e-324, WR_MAPPING_ZERO_MAX,  DBL_MAX, (double)NAN, HUGE_VAL,
        -HUGE_VAL, -1,   2,      -WR_MAPPING_ZERO_MAX, -DBL_MAX};
    const uint64_t kind = t_below(rng, 8);
    if (kind == 0)
        return odd[t_below(rng, sizeof odd / sizeof odd[0])];
    const int range = kind < 6 ? 60 : 2000;
    const double v = ldexp(1 + t_unit(rng), (int)t_below(rng, (uint64_t)range) - range / 2);
    if (kind == 1)
        return weir_mapping_lower(m, wr_mapping_index(m, v));
    return kind == 2 ? -v : v;
}

static void expect_many(const struct weir_mapping *m, struct t_rng *rng)
{
    double values[67];
    int32_t got[68];
    int32_t scalar[68];
    const size_t n = (size_t)t_below(rng, 68);
    for (size_t i = 0; i < n; i++)
        values[i] = some_value(rng, m);
    got[n] = scalar[n] = 4711;
    wr_mapping_index_many(m, values, n, got);
    wr_mapping_index_many_scalar(m, values, n, scalar);
    for (size_t i = 0; i < n; i++) {
        int32_t want = WR_MAPPING_NO_BIN;
        (void)!weir_mapping_index(m, fabs(values[i]), &want);
        if (got[i] != want || scalar[i] != want)
            T_FAIL("%a of %zu: %" PRId32 ", scalar %" PRId32 ", alone %" PRId32, values[i], n,
                   got[i], scalar[i], want);
    }
    T_TRUE(got[n] == 4711 && scalar[n] == 4711);
}

TEST(many_at_once_get_the_bins_of_each_alone)
{
    struct t_rng rng = t_rng(t_seed());
    for (int32_t s = WEIR_SCALE_MIN; s <= WEIR_SCALE_MAX; s++)
        for (int n = 0; n < 200; n++)
            expect_many(&wr_mapping_base2s[s - WEIR_SCALE_MIN], &rng);
    for (size_t k = 0; k < MADE; k++) {
        struct weir_mapping *const m = make_named(made[k].name);
        for (int n = 0; n < 200; n++)
            expect_many(m, &rng);
        weir_mapping_unref(m);
    }
}

TEST(scales_7_and_8_are_exact_and_nest_in_scale_6)
{
    struct t_rng rng = t_rng(t_seed());
    struct weir_mapping *of[WEIR_SCALE_MAX + 1 - WEIR_SCALE_MIN];
    for (int32_t s = WEIR_SCALE_MIN; s <= WEIR_SCALE_MAX; s++)
        T_OK(weir_mapping_base2(NULL, s, &of[s - WEIR_SCALE_MIN]));
    const struct weir_mapping *const finest = of[WEIR_SCALE_MAX - WEIR_SCALE_MIN];
    for (int n = 0; n < 200000; n++) {
        const double v = n % 2 ? ldexp(1 + t_unit(&rng), (int)t_below(&rng, 2045) - 1022)
                               : exp2((double)(int)t_below(&rng, 5000) / 256);
        const int64_t ns = (int64_t)(t_next(&rng) >> (1 + t_below(&rng, 62))) | 1;
        const int32_t at = wr_mapping_index(finest, v);
        const int32_t at_ns = wr_mapping_index_duration(finest, ns);
        for (int32_t s = WEIR_SCALE_MIN; s < WEIR_SCALE_MAX; s++) {
            const struct weir_mapping *const m = of[s - WEIR_SCALE_MIN];
            const double sub = ldexp(1, WEIR_SCALE_MAX - s);
            T_EQ_I64(wr_mapping_index(m, v), (int64_t)floor(at / sub));
            T_EQ_I64(wr_mapping_index_duration(m, ns), (int64_t)floor(at_ns / sub));
        }
        T_EQ_I64(wr_mapping_index_duration(of[6 - WEIR_SCALE_MIN], ns), wr_mapping_index_ns(ns));
    }
}

TEST(bounds_of_base_2_lie_between_their_bins)
{
    for (int32_t s = WEIR_SCALE_MIN; s <= WEIR_SCALE_MAX; s++) {
        struct weir_mapping *m;
        T_OK(weir_mapping_base2(NULL, s, &m));
        T_EQ_I64(weir_mapping_scale(m), s);
        int32_t lo;
        int32_t hi;
        wr_mapping_limits(m, false, &lo, &hi);
        const double a = weir_mapping_accuracy(m) + 4 * DBL_EPSILON;
        for (int32_t i = lo; i <= hi; i++) {
            const double lower = weir_mapping_lower(m, i);
            const double upper = weir_mapping_lower(m, i + 1);
            const double v = weir_mapping_value(m, i);
            T_TRUE(lower < upper && v <= DBL_MAX);
            if (lower > WR_MAPPING_ZERO_MAX) {
                T_EQ_I64(wr_mapping_index(m, nextafter(lower, 0)), i - 1);
                T_EQ_I64(wr_mapping_index(m, nextafter(lower, DBL_MAX)), i);
                T_TRUE(fabs(v - lower) <= a * lower);
            }
            if (upper < DBL_MAX)
                T_TRUE(fabs(v - upper) <= a * upper + 0x1p-1073);
        }
        T_EQ_DBL(weir_mapping_lower(m, 0), 1.0);
        weir_mapping_unref(m);
    }
}

TEST(indices_far_out_have_finite_bounds)
{
    static const int32_t far[] = {INT32_MIN, INT32_MIN + 1, -100000000, 100000000, INT32_MAX};
    for (size_t k = 0; k < MADE; k++) {
        struct weir_mapping *const m = make_named(made[k].name);
        for (size_t i = 0; i < sizeof far / sizeof far[0]; i++) {
            T_EQ_DBL(weir_mapping_lower(m, far[i]), far[i] < 0 ? 0.0 : DBL_MAX);
            T_EQ_DBL(weir_mapping_value(m, far[i]), far[i] < 0 ? 0.0 : DBL_MAX);
        }
        weir_mapping_unref(m);
    }
    for (int32_t s = WEIR_SCALE_MIN; s <= WEIR_SCALE_MAX; s++) {
        struct weir_mapping *m;
        T_OK(weir_mapping_base2(NULL, s, &m));
        T_EQ_DBL(weir_mapping_lower(m, INT32_MAX), DBL_MAX);
        T_EQ_DBL(weir_mapping_value(m, INT32_MAX), DBL_MAX);
        T_EQ_DBL(weir_mapping_lower(m, INT32_MIN), 0.0);
    }
}

TEST(mappings_are_equal_within_1e_12_and_never_by_bits)
{
    struct weir_mapping *const java = make_named("cubic (Java γ)");
    struct weir_mapping *const go = make_named("cubic (Go γ)");
    T_TRUE(weir_mapping_gamma(java) < weir_mapping_gamma(go)); /* differ, in the last bit */
    T_TRUE(weir_mapping_equal(java, go));
    T_TRUE(wr_mapping_is(java, WEIR_MAPPING_CUBIC, weir_mapping_gamma(go), 0));
    T_TRUE(!wr_mapping_is(java, WEIR_MAPPING_QUARTIC, weir_mapping_gamma(go), 0));
    T_TRUE(!wr_mapping_is(java, WEIR_MAPPING_CUBIC, weir_mapping_gamma(go), 1));
    weir_mapping_unref(go);
    struct weir_mapping *const off = make(WEIR_MAPPING_CUBIC, java->gamma * (1 + 3e-12), 0);
    T_TRUE(!weir_mapping_equal(java, off));
    weir_mapping_unref(off);
    weir_mapping_unref(java);
    struct weir_mapping *const one = make_named("linear (Java)");
    struct weir_mapping *const two = make_named("linear (Go)");
    T_TRUE(one->offset > two->offset && weir_mapping_equal(one, two));
    weir_mapping_unref(one);
    weir_mapping_unref(two);
    struct weir_mapping *base2;
    T_OK(weir_mapping_base2(NULL, 6, &base2));
    T_TRUE(weir_mapping_equal(base2, &wr_mapping_default));
    struct weir_mapping *const log = make(WEIR_MAPPING_LOG, base2->gamma, 0);
    T_TRUE(!weir_mapping_equal(base2, log) && !weir_mapping_equal(log, base2));
    weir_mapping_unref(log);
}

TEST(a_mapping_that_says_nothing_is_refused)
{
    struct weir_mapping *m = NULL;
    static const double wrong[] = {1, 0, 0.5, -2, (double)NAN, HUGE_VAL, -HUGE_VAL};
    for (uint32_t kind = WEIR_MAPPING_LOG; kind <= WEIR_MAPPING_QUARTIC; kind++) {
        for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
            T_ERR(weir_mapping_new(NULL, kind, wrong[i], 0, &m), WEIR_EINVAL);
        T_ERR(weir_mapping_new(NULL, kind, 1.02, (double)NAN, &m), WEIR_EINVAL);
        T_ERR(weir_mapping_new(NULL, kind, 1.02, HUGE_VAL, &m), WEIR_EINVAL);
        T_ERR(weir_mapping_new(NULL, kind, 1.02, 1e10, &m), WEIR_ERANGE);
        T_ERR(weir_mapping_new(NULL, kind, 1.02, -1e300, &m), WEIR_ERANGE);
        /* timescale#115: so fine that indices would not fit; no table is made first */
        T_ERR(weir_mapping_new(NULL, kind, 1 + 2e-9, 0, &m), WEIR_ERANGE);
        T_ERR(weir_mapping_new(NULL, kind, 1 + DBL_EPSILON, 0, &m), WEIR_ERANGE);
    }
    T_ERR(weir_mapping_new(NULL, WEIR_MAPPING_BASE2, 2, 0, &m), WEIR_EINVAL);
    T_ERR(weir_mapping_new(NULL, WEIR_MAPPING_QUARTIC + 1, 2, 0, &m), WEIR_EINVAL);
    T_ERR(wr_mapping_read_only(NULL, WEIR_MAPPING_LOG, 1, 0, &m), WEIR_EINVAL);
    T_ERR(weir_mapping_log(NULL, 1e-9, &m), WEIR_EINVAL);
    T_ERR(weir_mapping_log(NULL, 0, &m), WEIR_EINVAL);
    T_ERR(weir_mapping_log(NULL, 1, &m), WEIR_EINVAL);
    T_ERR(weir_mapping_log(NULL, (double)NAN, &m), WEIR_EINVAL);
    T_ERR(weir_mapping_base2(NULL, WEIR_SCALE_MIN - 1, &m), WEIR_EINVAL);
    T_ERR(weir_mapping_base2(NULL, WEIR_SCALE_MAX + 1, &m), WEIR_EINVAL);
    T_TRUE(m == NULL);
}

TEST(what_has_no_bin_is_refused)
{
    static const double none[] = {0, -0.0, 5e-324, WR_MAPPING_ZERO_MAX, -1, (double)NAN, HUGE_VAL};
    struct weir_mapping *const m = make_named("cubic (Java γ)");
    int32_t index = 77;
    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++) {
        T_ERR(weir_mapping_index(m, none[i], &index), WEIR_ERANGE);
        T_ERR(weir_mapping_index(&wr_mapping_default, none[i], &index), WEIR_ERANGE);
    }
    T_EQ_I64(index, 77);
    T_OK(weir_mapping_index(m, DBL_MAX, &index));
    T_OK(weir_mapping_index(m, nextafter(WR_MAPPING_ZERO_MAX, 1), &index));
    weir_mapping_unref(m);
}
