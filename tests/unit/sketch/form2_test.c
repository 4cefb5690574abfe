/* SPDX-License-Identifier: Apache-2.0 */
/* form2: the compact form beyond the default mapping, against bytes of an independent writer, and
 * forms merged without a sketch in between. */
#include "sketch/bins.h"
#include "sketch/state.h"
#include "t_sketch.h"

#include <math.h>
#include <string.h>

/* The next field of a line that tabs divide. */
static char *field(char **line)
{
    char *const start = *line;
    char *const end = strpbrk(start, "\t\n");
    *line = end + 1;
    *end = 0;
    return start;
}

static struct weir_sketch *sketch_of(const char *mapping, uint32_t max_bins, const char *samples)
{
    char *end;
    struct weir_mapping *m;
    if (strncmp(mapping, "base2 ", 6) == 0) {
        T_OK(weir_mapping_base2(NULL, (int32_t)strtol(mapping + 6, &end, 10), &m));
    } else {
        const double gamma = strtod(mapping + 4, &end);
        T_OK(weir_mapping_new(NULL, WEIR_MAPPING_LOG, gamma, strtod(end, NULL), &m));
    }
    const struct weir_sketch_opts o = {.struct_size = sizeof o, .mapping = m, .max_bins = max_bins};
    struct weir_sketch *sk;
    T_OK(weir_sketch_new(&o, &sk));
    weir_mapping_unref(m);
    for (const char *at = samples; *at; at += strspn(at, " ")) {
        const double v = strtod(at, &end);
        T_OK(weir_sketch_add(sk, v, strtoull(end + 1, &end, 10)));
        at = end;
    }
    return sk;
}

TEST(the_form_is_that_of_the_golden_file_and_brings_its_mapping)
{
    size_t n;
    char *const text = (char *)t_read_file(T_SOURCE_DIR "/tests/golden/sketch/form2.tsv", &n);
    T_TRUE(text != NULL);
    int rows = 0;
    for (char *line = strchr(text, '\n') + 1; *line; rows++) {
        print_message("%s\n", field(&line));
        const char *const mapping = field(&line);
        const uint32_t max_bins = (uint32_t)strtoul(field(&line), NULL, 10);
        struct weir_sketch *const sk = sketch_of(mapping, max_bins, field(&line));
        uint8_t want[512];
        const size_t bytes = t_unhex(field(&line), want, sizeof want);
        uint8_t *const form = t_sketch_form(sk, &n);
        T_EQ_BYTES(form, n, want, bytes);
        free(form);
        struct weir_sketch *const back = t_sketch(WEIR_GRID_VALUE, 0);
        T_OK(weir_sketch_decode(back, want, bytes));
        T_TRUE(weir_mapping_equal(weir_sketch_mapping(back), weir_sketch_mapping(sk)));
        T_TRUE(weir_sketch_equal(back, sk));
        t_sketch_same(back, sk);
        for (size_t cut = 0; cut < bytes; cut++) {
            struct t_guard g = t_guard_new(want, cut);
            T_ERR(weir_sketch_decode(back, g.ptr, cut), WEIR_ETRUNCATED);
            T_ERR(weir_sketch_merge_encoded(sk, g.ptr, cut), WEIR_ETRUNCATED);
            t_guard_free(&g);
        }
        T_EQ_U64(weir_sketch_weight(back), 0);
        weir_sketch_free(back);
        weir_sketch_free(sk);
    }
    T_EQ_U64(rows, 11);
    free(text);
}

/* Bins that came from elsewhere, with extremes that lie where they like, and an error. */
TEST(foreign_bins_say_in_the_form_what_they_are)
{
    struct weir_mapping *log1;
    T_OK(weir_mapping_log(NULL, 0.01, &log1));
    struct weir_sketch *const sk = t_sketch(WEIR_GRID_VALUE, 0);
    const struct wr_bins_stats stats[] = {
        {.has_sum = true, .has_min = true, .has_max = true, .sum = 55, .min = -3, .max = 1e9},
        {.has_sum = true, .sum = 7}};
    for (size_t i = 0; i < 4; i++) {
        T_OK(wr_bins_begin(sk, log1));
        T_OK(wr_bins_add(sk, WR_BINS_POSITIVE, 100, 3 * ONE));
        T_OK(wr_bins_add(sk, WR_BINS_POSITIVE, -2000000000, 2 * ONE)); /* collapses */
        if (i & 1)
            T_OK(wr_bins_add(sk, WR_BINS_NEGATIVE, 2000000000, ONE / 2));
        T_OK(wr_bins_add_zero(sk, ONE));
        T_OK(wr_bins_end(sk, &stats[i / 2]));
        T_OK(wr_sketch_inherit(sk, 0.0125));
        T_TRUE(weir_sketch_is_exact(sk) == (i / 2 == 0));
        struct weir_sketch *const back = t_sketch(WEIR_GRID_VALUE, 0);
        size_t n;
        uint8_t *const form = t_sketch_form(sk, &n);
        T_EQ_U64(form[0], 2);
        T_OK(weir_sketch_decode(back, form, n));
        T_TRUE(weir_sketch_equal(back, sk));
        t_sketch_same(back, sk);
        T_TRUE(weir_sketch_is_exact(back) == weir_sketch_is_exact(sk));
        T_EQ_DBL(wr_sketch_inherited(back), 0.0125);
        struct weir_sketch *const twice = t_sketch(WEIR_GRID_VALUE, 0);
        T_ERR(weir_sketch_merge_encoded(twice, form, n), WEIR_EVERSION);
        T_EQ_U64(weir_sketch_weight(twice), 0);
        T_OK(wr_sketch_set_mapping(twice, log1));
        T_OK(weir_sketch_merge_encoded(twice, form, n));
        t_sketch_same(twice, sk);
        free(form);
        weir_sketch_free(twice);
        weir_sketch_free(back);
    }
    weir_sketch_free(sk);
    weir_mapping_unref(log1);
}

TEST(a_sketch_of_a_pool_keeps_the_mapping_of_the_pool)
{
    struct weir_mapping *log1;
    T_OK(weir_mapping_log(NULL, 0.01, &log1));
    struct weir_sketch_opts o = {.struct_size = sizeof o, .mapping = log1};
    struct weir_sketch *sk;
    T_OK(weir_sketch_new(&o, &sk));
    T_OK(weir_sketch_add(sk, 5, 0));
    size_t n;
    uint8_t *const form = t_sketch_form(sk, &n);
    struct weir_sketch_pool *pool;
    T_OK(weir_sketch_pool_new(NULL, 4, &pool));
    struct weir_sketch *const other = weir_sketch_pool_get(pool, 0);
    T_OK(weir_sketch_add(other, 1, 0));
    T_ERR(weir_sketch_decode(other, form, n), WEIR_EVERSION);
    T_EQ_U64(weir_sketch_weight(other), 0);
    T_TRUE(weir_sketch_mapping(other) != log1);
    T_ERR(wr_bins_begin(other, log1), WEIR_EVERSION);
    weir_sketch_pool_put(pool, other);
    weir_sketch_pool_free(pool);
    free(form);
    weir_sketch_free(sk);
    weir_mapping_unref(log1);
}

static double value_of(struct t_rng *r, unsigned shape)
{
    const double v = exp((t_unit(r) - 0.5) * (shape == 2 ? 200 : 10));
    return shape == 1 && t_below(r, 5) == 0 ? -v : t_below(r, 50) ? v : 0;
}

static struct weir_sketch *random_sketch(struct t_rng *r, uint32_t max_bins)
{
    struct weir_sketch *const sk = t_sketch(WEIR_GRID_VALUE, max_bins);
    const unsigned shape = (unsigned)t_below(r, 3);
    const size_t n = t_below(r, t_below(r, 2) ? 150 : 3000);
    const bool heavy = t_below(r, 5) == 0;
    for (size_t i = 0; i < n; i++)
        T_OK(weir_sketch_add(sk, value_of(r, shape),
                             heavy ? t_next(r) >> (20 + t_below(r, 30)) : 0));
    return sk;
}

TEST(merging_a_form_is_decoding_and_merging_it)
{
    struct t_rng r = t_rng(t_seed());
    static const uint32_t limits[] = {2048, 2048, 32768, 40};
    for (int round = 0; round < 400; round++) {
        const uint32_t limit = limits[t_below(&r, 4)];
        struct weir_sketch *const src = random_sketch(&r, limit);
        struct weir_sketch *const dst = random_sketch(&r, limit);
        struct weir_sketch *const want = t_sketch(WEIR_GRID_VALUE, limit);
        struct weir_sketch *const between = t_sketch(WEIR_GRID_VALUE, limit);
        size_t n;
        uint8_t *const form = t_sketch_form(src, &n);
        T_OK(weir_sketch_merge(want, dst));
        T_OK(weir_sketch_decode(between, form, n));
        T_OK(weir_sketch_merge(want, between));
        T_OK(weir_sketch_merge_encoded(dst, form, n));
        t_sketch_same(dst, want);
        T_TRUE(weir_sketch_equal(dst, want));
        free(form);
        weir_sketch_free(src);
        weir_sketch_free(dst);
        weir_sketch_free(want);
        weir_sketch_free(between);
    }
}

TEST(a_form_past_64_bits_of_weight_is_not_merged)
{
    struct weir_sketch *const sk = t_sketch(WEIR_GRID_VALUE, 0);
    struct weir_sketch *const want = t_sketch(WEIR_GRID_VALUE, 0);
    T_OK(weir_sketch_add(sk, 3, UINT64_MAX / 2 + 1));
    T_OK(weir_sketch_add(want, 3, UINT64_MAX / 2 + 1));
    size_t n;
    uint8_t *const form = t_sketch_form(sk, &n);
    T_ERR(weir_sketch_merge_encoded(sk, form, n), WEIR_ERANGE);
    t_sketch_same(sk, want);
    struct weir_sketch *const ns = t_sketch(WEIR_GRID_NS, 0);
    T_ERR(weir_sketch_merge_encoded(ns, form, n), WEIR_EVERSION);
    T_EQ_U64(weir_sketch_weight(ns), 0);
    free(form);
    weir_sketch_free(ns);
    weir_sketch_free(sk);
    weir_sketch_free(want);
}
