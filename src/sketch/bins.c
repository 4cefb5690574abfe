/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bins: see bins.h.
 *
 * Threads: see bins.h. Memory: that of the stores.
 */
#include "sketch/bins.h"

#include "sketch/state.h"

#include <float.h>
#include <math.h>

bool wr_bins_range(const struct weir_sketch *sk, enum wr_bins_sign sign, int32_t *ret_lo,
                   int32_t *ret_hi)
{
    if (sign == WR_BINS_NEGATIVE) {
        const struct wr_store *const neg = wr_sketch_negative(sk);
        return neg && wr_store_used(neg, ret_lo, ret_hi);
    }
    if (sk->flags & WR_SK_LIST)
        return wr_list_range(sk, ret_lo, ret_hi);
    const struct wr_store pos = wr_sketch_take(sk);
    return wr_store_used(&pos, ret_lo, ret_hi);
}

/* Compiled once for each width. */
WR_INLINE void read_loop(const uint8_t *bins, uint8_t width, unsigned shift, size_t n,
                         uint64_t *ret_weights)
{
    for (size_t i = 0; i < n; i++)
        ret_weights[i] = wr_counter_get(bins, width, i) << shift;
}

static void read_counters(const struct wr_store *st, int32_t lo, size_t n, uint64_t *ret_weights)
{
    /* before the array, in it, behind it */
    const int64_t start = (int64_t)st->base - lo;
    const size_t before = start <= 0 ? 0 : (uint64_t)start < n ? (size_t)start : n;
    memset(ret_weights, 0, before * sizeof ret_weights[0]);
    ret_weights += before;
    n -= before;
    const uint64_t at = (uint64_t)((int64_t)lo + (int64_t)before - st->base);
    const size_t inside = !n || at >= st->cap ? 0 : n < st->cap - at ? n : (size_t)(st->cap - at);
    memset(ret_weights + inside, 0, (n - inside) * sizeof ret_weights[0]);
    if (!inside)
        return;
    const uint8_t *const bins = st->bins + (at << st->width);
    if (st->width == 0)
        read_loop(bins, 0, st->shift, inside, ret_weights);
    else if (st->width == 1)
        read_loop(bins, 1, st->shift, inside, ret_weights);
    else if (st->width == 2)
        read_loop(bins, 2, st->shift, inside, ret_weights);
    else
        read_loop(bins, 3, st->shift, inside, ret_weights);
}

void wr_bins_read(const struct weir_sketch *sk, enum wr_bins_sign sign, int32_t lo, size_t n,
                  uint64_t *ret_weights)
{
    if (sign == WR_BINS_POSITIVE && sk->flags & WR_SK_LIST) {
        memset(ret_weights, 0, n * sizeof ret_weights[0]);
        for (size_t k = 0; k < sk->cap; k++) {
            const uint64_t at = (uint64_t)((int64_t)sk->base + wr_list_at(sk, k) - lo);
            if (at < n)
                ret_weights[at] += WEIR_WEIGHT_ONE;
        }
        return;
    }
    const struct wr_store pos = wr_sketch_take(sk);
    const struct wr_store *const st = sign == WR_BINS_POSITIVE ? &pos : wr_sketch_negative(sk);
    if (st)
        read_counters(st, lo, n, ret_weights);
    else
        memset(ret_weights, 0, n * sizeof ret_weights[0]);
}

/* false: a counter has a fraction, or may have more than 16 bits. */
static bool counters_are_small(const struct wr_store *st)
{
    return st->shift == WR_STORE_SHIFT && st->width <= 1;
}

/* All of [lo, lo + n) lies in the array, whose counters are small. */
static void read_small(const struct wr_store *st, int32_t lo, size_t n, uint16_t *ret_counts)
{
    const uint8_t *const bins =
        st->bins + ((size_t)((uint32_t)lo - (uint32_t)st->base) << st->width);
    if (st->width == 1)
        memcpy(ret_counts, bins, n * sizeof ret_counts[0]);
    else
        for (size_t i = 0; i < n; i++)
            ret_counts[i] = bins[i];
}

enum { SMALL_CHUNK = 64 };

bool wr_bins_read_small(const struct weir_sketch *sk, enum wr_bins_sign sign, int32_t lo, size_t n,
                        uint16_t *ret_counts)
{
    const struct wr_store pos = wr_sketch_take(sk);
    const struct wr_store *const st = sign == WR_BINS_POSITIVE ? &pos : wr_sketch_negative(sk);
    const bool list = sign == WR_BINS_POSITIVE && sk->flags & WR_SK_LIST;
    if (!list && st && counters_are_small(st) && lo >= st->base &&
        (uint64_t)((int64_t)lo - st->base) + n <= st->cap) {
        read_small(st, lo, n, ret_counts);
        return true;
    }
    if (list) {
        memset(ret_counts, 0, n * sizeof ret_counts[0]);
        for (size_t k = 0; k < sk->cap; k++) {
            const uint64_t at = (uint64_t)((int64_t)sk->base + wr_list_at(sk, k) - lo);
            if (at < n)
                ret_counts[at]++;
        }
        return true;
    }
    uint64_t weights[SMALL_CHUNK];
    uint64_t bits = 0;
    for (size_t done = 0; done < n; done += SMALL_CHUNK) {
        const size_t m = n - done < SMALL_CHUNK ? n - done : SMALL_CHUNK;
        wr_bins_read(sk, sign, (int32_t)((uint32_t)lo + (uint32_t)done), m, weights);
        for (size_t i = 0; i < m; i++) {
            bits |= weights[i];
            ret_counts[done + i] = (uint16_t)(weights[i] >> 20);
        }
    }
    return (bits & (WEIR_WEIGHT_ONE - 1)) == 0 && bits >> 20 <= UINT16_MAX;
}

_Static_assert(WR_BINS_FEW_SPAN == WR_LIST_SPAN, "a bit a bin that a list can have");

size_t wr_bins_few(const struct weir_sketch *sk, int32_t *ret_base,
                   uint64_t ret_bits[WR_BINS_FEW_SPAN / 64], uint16_t ret_counts[WR_BINS_FEW_SPAN])
{
    if (!(sk->flags & WR_SK_LIST))
        return 0;
    memset(ret_bits, 0, WR_BINS_FEW_SPAN / 8);
    for (size_t k = 0; k < sk->cap; k++) {
        const uint32_t at = wr_list_at(sk, k);
        const uint64_t bit = UINT64_C(1) << (at & 63);
        const uint16_t before = ret_bits[at / 64] & bit ? ret_counts[at] : 0;
        ret_counts[at] = (uint16_t)(before + 1);
        ret_bits[at / 64] |= bit;
    }
    *ret_base = sk->base;
    return sk->cap;
}

uint64_t wr_bins_zero(const struct weir_sketch *sk)
{
    return wr_sketch_zero(sk);
}

int wr_bins_begin(struct weir_sketch *sk, const struct weir_mapping *mapping)
{
    WR_ASSERT(wr_sketch_grid(sk) == WEIR_GRID_VALUE);
    weir_sketch_clear(sk);
    sk->flags |= WR_SK_LOOSE; /* the extremes come last */
    return wr_sketch_set_mapping(sk, mapping);
}

int wr_bins_add_zero(struct weir_sketch *sk, uint64_t weight)
{
    uint64_t total;
    if (!weight)
        return WEIR_OK;
    if (__builtin_add_overflow(sk->weight, weight, &total))
        return WEIR_ERANGE;
    const int r = wr_sketch_count_zero(sk, weight);
    if (r == WEIR_OK)
        sk->weight = total;
    return r;
}

int wr_bins_add(struct weir_sketch *sk, enum wr_bins_sign sign, int32_t index, uint64_t weight)
{
    uint64_t total;
    if (!weight)
        return WEIR_OK;
    if (__builtin_add_overflow(sk->weight, weight, &total))
        return WEIR_ERANGE;
    const int r = sign == WR_BINS_POSITIVE ? wr_sketch_count(sk, index, weight)
                                           : wr_sketch_count_negative(sk, index, weight);
    if (r == WEIR_OK)
        sk->weight = total;
    return r;
}

/* The used part of a run, and what is in it. */
struct run {
    size_t first;
    size_t end;
    uint64_t total;
    uint64_t bits; /* of all weights: as many as the greatest has */
};

/* false: the total passes 64 bits. */
WR_WRAPS static bool measure_run(const uint64_t *weights, size_t n, struct run *ret_run)
{
    struct run r = {0};
    while (n && !weights[n - 1])
        n--;
    while (r.first < n && !weights[r.first])
        r.first++;
    r.end = n;
    for (size_t i = r.first; i < n; i++) {
        r.total += weights[i];
        r.bits |= weights[i];
    }
    bool fits = true;
    if (r.bits > UINT64_MAX / (n + 1)) { /* or no total is too big */
        r.total = 0;
        for (size_t i = r.first; i < n; i++)
            fits &= !__builtin_add_overflow(r.total, weights[i], &r.total);
    }
    *ret_run = r;
    return fits;
}

/* Compiled once for each width. The counters are empty. */
WR_INLINE void write_loop(uint8_t *bins, uint8_t width, unsigned shift, size_t n,
                          const uint64_t *weights)
{
    for (size_t i = 0; i < n; i++)
        wr_counter_put(bins, width, i, weights[i] >> shift);
}

static void write_counters(struct wr_store *st, int32_t index, size_t n, const uint64_t *weights)
{
    uint8_t *const bins = st->bins + ((size_t)((uint32_t)index - (uint32_t)st->base) << st->width);
    if (st->width == 0)
        write_loop(bins, 0, st->shift, n, weights);
    else if (st->width == 1)
        write_loop(bins, 1, st->shift, n, weights);
    else if (st->width == 2)
        write_loop(bins, 2, st->shift, n, weights);
    else
        write_loop(bins, 3, st->shift, n, weights);
}

/* The store of a sign with empty counters for a run that it has not been given yet; else NULL is in
 * *ret_store. WEIR_OK or WEIR_ENOMEM. */
static int load_begin(struct weir_sketch *sk, enum wr_bins_sign sign, int32_t index,
                      const struct run *run, struct wr_store *pos, struct wr_store **ret_store)
{
    const struct wr_kind *const kind = wr_sketch_kind(sk);
    const uint8_t shift = run->bits & (WEIR_WEIGHT_ONE - 1) ? 0 : WR_STORE_SHIFT;
    const size_t used = run->end - run->first;
    int32_t lo;
    int32_t hi;
    *ret_store = NULL;
    if (used <= 8 || used > kind->head.max_bins || wr_bins_range(sk, sign, &lo, &hi))
        return WEIR_OK;
    struct wr_store *st = pos;
    if (sign == WR_BINS_NEGATIVE) {
        struct wr_rest *const rest = wr_sketch_rest(sk);
        if (!rest)
            return WEIR_ENOMEM;
        st = &rest->neg;
    } else {
        if (sk->flags & WR_SK_LIST)
            (void)wr_list_spread(sk); /* of nothing: takes no memory */
        *pos = wr_sketch_take(sk);
    }
    const int r = wr_store_reserve(st, kind, index, (int32_t)((uint32_t)index + (uint32_t)used - 1),
                                   run->bits >> shift, shift);
    if (sign == WR_BINS_POSITIVE)
        wr_sketch_put(sk, st);
    if (r == WEIR_OK)
        *ret_store = st;
    return r;
}

int wr_bins_add_run(struct weir_sketch *sk, enum wr_bins_sign sign, int32_t first,
                    const uint64_t *weights, size_t n)
{
    struct run run;
    uint64_t total;
    if (!measure_run(weights, n, &run) || __builtin_add_overflow(sk->weight, run.total, &total))
        return WEIR_ERANGE;
    const int32_t index = (int32_t)((uint32_t)first + (uint32_t)run.first);
    struct wr_store pos;
    struct wr_store *st;
    int r = load_begin(sk, sign, index, &run, &pos, &st);
    if (st) {
        write_counters(st, index, run.end - run.first, weights + run.first);
        sk->weight = total;
        return WEIR_OK;
    }
    for (size_t i = run.first; i < run.end && r == WEIR_OK; i++)
        r = wr_bins_add(sk, sign, (int32_t)((uint32_t)first + (uint32_t)i), weights[i]);
    return r;
}

/* Eight counts at a time, in two words; n < 2^16. */
static struct run measure_counts(const uint16_t *counts, size_t n)
{
    const uint64_t even = UINT64_C(0x0000ffff0000ffff);
    struct run r = {0};
    while (n && !counts[n - 1])
        n--;
    while (r.first < n && !counts[r.first])
        r.first++;
    r.end = n;
    uint64_t sums[2] = {0, 0}; /* two of 32 bits each */
    uint64_t bits = 0;
    size_t i = r.first;
    for (; i + 8 <= n; i += 8) {
        uint64_t words[2];
        memcpy(words, counts + i, sizeof words);
        bits |= words[0] | words[1];
        sums[0] += (words[0] & even) + (words[1] & even);
        sums[1] += (words[0] >> 16 & even) + (words[1] >> 16 & even);
    }
    uint64_t total =
        (sums[0] & UINT32_MAX) + (sums[0] >> 32) + (sums[1] & UINT32_MAX) + (sums[1] >> 32);
    bits |= bits >> 32;
    bits = (bits | bits >> 16) & UINT16_MAX;
    for (; i < n; i++) {
        total += counts[i];
        bits |= counts[i];
    }
    r.total = total << 20;
    r.bits = bits << 20;
    return r;
}

/* Counters of whole weights, empty and wide enough. */
static void write_counts(struct wr_store *st, int32_t index, size_t n, const uint16_t *counts)
{
    uint8_t *const bins = st->bins + ((size_t)((uint32_t)index - (uint32_t)st->base) << st->width);
    if (st->width == 1)
        memcpy(bins, counts, n * sizeof counts[0]);
    else
        for (size_t i = 0; i < n; i++)
            wr_counter_put(bins, st->width, i, counts[i]);
}

int wr_bins_add_counts(struct weir_sketch *sk, enum wr_bins_sign sign, int32_t first,
                       const uint16_t *counts, size_t n)
{
    if (n > UINT16_MAX)
        return WEIR_ERANGE;
    const struct run run = measure_counts(counts, n);
    uint64_t total;
    if (__builtin_add_overflow(sk->weight, run.total, &total))
        return WEIR_ERANGE;
    const int32_t index = (int32_t)((uint32_t)first + (uint32_t)run.first);
    struct wr_store pos;
    struct wr_store *st;
    int r = load_begin(sk, sign, index, &run, &pos, &st);
    if (st) {
        write_counts(st, index, run.end - run.first, counts + run.first);
        sk->weight = total;
        return WEIR_OK;
    }
    for (size_t i = run.first; i < run.end && r == WEIR_OK; i++)
        r = wr_bins_add(sk, sign, (int32_t)((uint32_t)first + (uint32_t)i),
                        (uint64_t)counts[i] << 20);
    return r;
}

enum { SUM_CHUNK = 256 };

enum { SUM_LANES = 8 };

/* Of bins from index on, whose answers grow by g: eight at a time, so that no product waits for
 * another. */
static double sum_growing_small(const struct weir_mapping *m, int32_t index, const uint16_t *counts,
                                size_t n)
{
    const double g = weir_mapping_gamma(m);
    const double step = (g * g) * (g * g) * ((g * g) * (g * g));
    double answers[SUM_LANES];
    double sums[SUM_LANES] = {0};
    answers[0] = weir_mapping_value(m, index);
    for (size_t k = 1; k < SUM_LANES; k++)
        answers[k] = answers[k - 1] * g;
    size_t i = 0;
    for (; i + SUM_LANES <= n; i += SUM_LANES) {
        for (size_t k = 0; k < SUM_LANES; k++)
            sums[k] += answers[k] * counts[i + k];
        for (size_t k = 0; k < SUM_LANES; k++)
            answers[k] *= step;
    }
    for (size_t k = 0; i + k < n; k++)
        sums[k] += answers[k] * counts[i + k];
    return ((sums[0] + sums[1]) + (sums[2] + sums[3])) +
           ((sums[4] + sums[5]) + (sums[6] + sums[7]));
}

static double sum_growing(const struct weir_mapping *m, int32_t index, const uint64_t *weights,
                          size_t n)
{
    const double g = weir_mapping_gamma(m);
    double even = weir_mapping_value(m, index);
    double odd = even * g;
    double even_sum = 0;
    double odd_sum = 0;
    for (size_t k = 0; k + 1 < n; k += 2) {
        even_sum += even * (double)weights[k];
        odd_sum += odd * (double)weights[k + 1];
        even *= g * g;
        odd *= g * g;
    }
    if (n % 2)
        even_sum += even * (double)weights[n - 1];
    return (even_sum + odd_sum) * 0x1p-20;
}

static double sum_any(const struct weir_mapping *m, int32_t index, const uint64_t *weights,
                      size_t n)
{
    double sum = 0;
    for (size_t k = 0; k < n; k++)
        if (weights[k])
            sum += weir_mapping_value(m, (int32_t)((uint32_t)index + (uint32_t)k)) *
                   ((double)weights[k] * 0x1p-20);
    return sum;
}

/* [first, first + n), n <= SUM_CHUNK. */
static double chunk_sum(const struct weir_sketch *sk, enum wr_bins_sign sign, int32_t first,
                        size_t n)
{
    const struct weir_mapping *const m = wr_sketch_mapping(sk);
    const double last = weir_mapping_value(m, (int32_t)((uint32_t)first + (uint32_t)n - 1));
    /* 256 bins of 64 bits; at the end of doubles bins stop growing */
    const bool grows = weir_mapping_kind(m) <= WEIR_MAPPING_LOG && last < DBL_MAX / 0x1p76 &&
                       weir_mapping_gamma(m) < 0x1p64; /* so is its eighth power a double */
    uint16_t counts[SUM_CHUNK];
    uint64_t weights[SUM_CHUNK];
    if (grows && wr_bins_read_small(sk, sign, first, n, counts))
        return sum_growing_small(m, first, counts, n);
    wr_bins_read(sk, sign, first, n, weights);
    return grows ? sum_growing(m, first, weights, n) : sum_any(m, first, weights, n);
}

static double derived_sum(const struct weir_sketch *sk, enum wr_bins_sign sign)
{
    double sum = 0;
    int32_t lo;
    int32_t hi;
    if (!wr_bins_range(sk, sign, &lo, &hi))
        return 0;
    const size_t n = (size_t)((uint32_t)hi - (uint32_t)lo) + 1;
    for (size_t i = 0; i < n; i += SUM_CHUNK)
        sum += chunk_sum(sk, sign, (int32_t)((uint32_t)lo + (uint32_t)i),
                         n - i < SUM_CHUNK ? n - i : SUM_CHUNK);
    return fmin(sum, DBL_MAX);
}

/* The least or greatest bin's answer. */
static double derived_min(const struct weir_sketch *sk)
{
    int32_t lo;
    int32_t hi;
    if (wr_bins_range(sk, WR_BINS_NEGATIVE, &lo, &hi))
        return -weir_mapping_value(wr_sketch_mapping(sk), hi);
    if (wr_sketch_zero(sk) || !wr_bins_range(sk, WR_BINS_POSITIVE, &lo, &hi))
        return 0;
    return weir_mapping_value(wr_sketch_mapping(sk), lo);
}

static double derived_max(const struct weir_sketch *sk)
{
    int32_t lo;
    int32_t hi;
    if (wr_bins_range(sk, WR_BINS_POSITIVE, &lo, &hi))
        return weir_mapping_value(wr_sketch_mapping(sk), hi);
    if (wr_sketch_zero(sk) || !wr_bins_range(sk, WR_BINS_NEGATIVE, &lo, &hi))
        return 0;
    return -weir_mapping_value(wr_sketch_mapping(sk), lo);
}

int wr_bins_inherit(struct weir_sketch *sk, double error)
{
    return wr_sketch_inherit(sk, error);
}

int wr_bins_end(struct weir_sketch *sk, const struct wr_bins_stats *stats)
{
    if (!sk->weight) { /* empty says no extremes */
        sk->flags &= (uint8_t)~WR_SK_LOOSE;
        return WEIR_OK;
    }
    /* what is derived does not contradict what is known */
    const double min = stats->has_min   ? stats->min
                       : stats->has_max ? fmin(derived_min(sk), stats->max)
                                        : derived_min(sk);
    const double max = stats->has_max   ? stats->max
                       : stats->has_min ? fmax(derived_max(sk), stats->min)
                                        : derived_max(sk);
    const double sum = stats->has_sum
                           ? stats->sum
                           : derived_sum(sk, WR_BINS_POSITIVE) - derived_sum(sk, WR_BINS_NEGATIVE);
    if (!(fabs(sum) <= DBL_MAX && fabs(min) <= DBL_MAX && fabs(max) <= DBL_MAX && min <= max))
        return WEIR_EFORMAT;
    sk->min.value = min;
    sk->max.value = max;
    sk->sum.value.sum = sum;
    sk->sum.value.rest = 0;
    sk->flags |= WR_SK_LOOSE;
    if (!stats->has_sum || !stats->has_min || !stats->has_max)
        sk->flags |= WR_SK_DERIVED;
    return WEIR_OK;
}

const struct weir_alloc *wr_bins_alloc(const struct weir_sketch *sk)
{
    return &wr_sketch_kind(sk)->alloc;
}
