/* SPDX-License-Identifier: Apache-2.0 */
/* counters: every way of adding arrays of counters against one counter after the other. */
#include "sketch/counters.h"

#include <string.h>
#include "sketch/store.h"
#include "t.h"

#define N 300

/* Counters of that width below a limit, many of them 0. */
static void fill(struct t_rng *r, uint8_t *bins, uint8_t width, size_t n, uint64_t limit)
{
    for (size_t i = 0; i < n; i++)
        wr_counter_put(bins, width, i, t_below(r, 3) ? t_next(r) % limit : 0);
}

static uint64_t limit_of(struct t_rng *r, uint8_t width)
{
    const uint64_t all = width == 3 ? UINT64_MAX / 4 : UINT64_C(1) << (8u << width);
    return t_below(r, 2) ? all : all / 2;
}

typedef bool add_fn(const struct wr_counters_pair *p);
typedef bool fit_fn(const struct wr_counters_pair *p);

static void expect_way(add_fn *add, fit_fn *fit, const struct wr_counters_pair *of)
{
    uint8_t dst[N * 8 + 8];
    uint8_t want[N * 8 + 8];
    memset(dst, 0xee, sizeof dst);
    memcpy(dst + 1, of->dst, of->n << of->dst_width);
    memcpy(want, dst, sizeof want);
    bool fits = true;
    for (size_t i = 0; i < of->n; i++) {
        const uint64_t sum = wr_counter_get(want + 1, of->dst_width, i) +
                             (wr_counter_get(of->src, of->src_width, i) << of->scale);
        fits = fits && (of->dst_width == 3 || !(sum >> (8u << of->dst_width)));
        wr_counter_put(want + 1, of->dst_width, i, sum);
    }
    struct wr_counters_pair p = *of;
    p.dst = dst + 1;
    T_TRUE(fit(&p) == fits);
    if (!fits)
        memcpy(want + 1, of->dst, of->n << of->dst_width); /* nothing is changed */
    T_TRUE(add(&p) == fits);
    T_EQ_BYTES(dst, sizeof dst, want, sizeof want);
}

static void expect_ways(const struct wr_counters_pair *p)
{
    expect_way(wr_counters_add_words, wr_counters_fit_words, p);
    expect_way(wr_counters_add, wr_counters_fit, p);
#if defined(WR_COUNTERS_AVX2)
    if (!p->scale && wr_counters_has_avx2())
        expect_way(wr_counters_add_avx2, wr_counters_fit_avx2, p);
#endif
}

TEST(every_way_adds_the_same)
{
    struct t_rng r = t_rng(t_seed());
    uint8_t dst[N * 8];
    uint8_t src[N * 8];
    for (int round = 0; round < 20000; round++) {
        struct wr_counters_pair p = {.dst = dst, .src = src, .n = t_below(&r, N)};
        p.dst_width = (uint8_t)t_below(&r, 4);
        p.src_width = (uint8_t)t_below(&r, p.dst_width + 1u);
        fill(&r, dst, p.dst_width, p.n, limit_of(&r, p.dst_width));
        fill(&r, src, p.src_width, p.n, limit_of(&r, p.src_width));
        expect_ways(&p);
        if (p.dst_width == 3 && p.src_width < 3) {
            p.scale = 20;
            expect_ways(&p);
        }
    }
}

/* One sum too many, in each place in turn: that of a vector, of a word, of the rest. */
TEST(one_counter_that_overflows_is_seen_wherever_it_is)
{
    for (uint8_t width = 0; width < 3; width++) {
        const uint64_t most = (UINT64_C(1) << (8u << width)) - 1;
        for (size_t at = 0; at < 77; at++) {
            uint8_t dst[77 * 4] = {0};
            uint8_t src[77 * 4] = {0};
            wr_counter_put(dst, width, at, most - 4);
            wr_counter_put(src, width, at, 4);
            const struct wr_counters_pair p = {
                .dst = dst, .src = src, .n = 77, .dst_width = width, .src_width = width};
            T_TRUE(wr_counters_fit(&p) && wr_counters_fit_words(&p));
            wr_counter_put(src, width, at, 5);
            T_TRUE(!wr_counters_fit(&p) && !wr_counters_fit_words(&p));
            T_TRUE(!wr_counters_add(&p) && !wr_counters_add_words(&p));
            T_EQ_U64(wr_counter_get(dst, width, at), most - 4);
        }
    }
}
