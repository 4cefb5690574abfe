/* SPDX-License-Identifier: Apache-2.0 */
/*
 * convert: adding a sketch to one of another mapping.
 *
 * Where each bin of the one lies within one bin of the other (a coarser scale; a base that is a
 * power of the other's, with bounds that meet) the index is divided, and nothing is lost but
 * resolution. Else a bin moves whole to the bin of its answer: what was within a of its answer is
 * then within (1 + a)(1 + b) - 1 of the new one's. That a is kept with the sketch, and every bound
 * it states from then on has it. Count, sum, minimum and maximum do not take part in this.
 *
 * The bins are gathered in a sketch of their own first, so that dst changes at once or not at all.
 *
 * Threads: owner of dst. Memory: the sketch in between, given back before the return.
 */
#include "sketch/bins.h"
#include "sketch/state.h"
#include "sketch/view.h"

#include <float.h>

/* How an index becomes another. */
struct route {
    const struct weir_mapping *from;
    const struct weir_mapping *to;
    double unit; /* of from's values, in that of to's: 1, 1e9 or 1e-9 */
    bool nests;  /* index (i + add) / times, rounded down */
    int64_t add;
    int64_t times;
    int32_t least; /* bins that to's grid may have */
    int32_t most;
};

/* Bins of nanoseconds, or of the unit of answers? */
static bool bins_nanoseconds(const struct weir_sketch *sk)
{
    return wr_sketch_grid(sk) == WEIR_GRID_NS && wr_sketch_mapping(sk)->kind != WEIR_MAPPING_BASE2;
}

static bool is_logarithmic(const struct weir_mapping *m)
{
    return m->kind == WEIR_MAPPING_LOG || m->kind == WEIR_MAPPING_BASE2;
}

static bool is_whole(double v, double tolerance)
{
    return fabs(v) < 0x1p31 && fabs(v - nearbyint(v)) <= tolerance;
}

/*
 * With r = l(v) * multiplier + offset the place of a value among from's bins, its place among
 * to's is (r + add) / times for both constants, when both have the same l and a change of the unit
 * is a constant (which it is to a logarithm alone). Tolerances are those of equal mappings: bounds
 * that differ by so little are the same.
 */
static bool find_nesting(struct route *r)
{
    const struct weir_mapping *const from = r->from;
    const struct weir_mapping *const to = r->to;
    const bool logarithms = is_logarithmic(from) && is_logarithmic(to);
    const bool same_unit = r->unit > 0.5 && r->unit < 2;
    if (!logarithms && (from->kind != to->kind || !same_unit))
        return false;
    const double times = from->multiplier / to->multiplier;
    if (times < 0.5 || !is_whole(times, 1e-12 * times))
        return false;
    const double whole = nearbyint(times);
    const double shift = same_unit ? 0 : log2(r->unit) * from->multiplier;
    const double add = whole * to->offset - from->offset + shift;
    if (!is_whole(add, 1e-9))
        return false;
    r->times = wr_i64_from_double(whole);
    r->add = wr_i64_from_double(nearbyint(add));
    return true;
}

static struct route route_between(const struct weir_sketch *dst, const struct weir_sketch *src)
{
    struct route r = {.from = wr_sketch_mapping(src),
                      .to = wr_sketch_mapping(dst),
                      .unit = 1,
                      .least = INT32_MIN + 1,
                      .most = INT32_MAX - 1};
    if (bins_nanoseconds(src) != bins_nanoseconds(dst))
        r.unit = bins_nanoseconds(dst) ? 1e9 : 1e-9;
    if (wr_sketch_grid(dst) == WEIR_GRID_NS)
        wr_mapping_limits(r.to, true, &r.least, &r.most);
    r.nests = find_nesting(&r);
    return r;
}

static int32_t clamp(const struct route *r, int64_t index)
{
    return (int32_t)(index < r->least ? r->least : index > r->most ? r->most : index);
}

/* The bin that bin i goes to; false: it is a zero there. */
static bool follow(const struct route *r, int32_t i, int32_t *ret_index)
{
    if (r->nests) {
        const int64_t at = i + r->add;
        int64_t index = at / r->times;
        if (index * r->times > at)
            index--;
        *ret_index = clamp(r, index);
        return true;
    }
    double v = weir_mapping_value(r->from, i);
    v = r->unit < 0.5 ? v / 1e9 : v * r->unit;
    if (v <= WR_MAPPING_ZERO_MAX)
        return false;
    *ret_index = clamp(r, wr_mapping_index(r->to, v <= DBL_MAX ? v : DBL_MAX));
    return true;
}

#define CHUNK 256

/* From the highest bin down, so that a limit of bins is met once. */
static int add_bins(struct weir_sketch *to, const struct weir_sketch *src, enum wr_bins_sign sign,
                    const struct route *route)
{
    int32_t lo;
    int32_t hi;
    if (!wr_bins_range(src, sign, &lo, &hi))
        return WEIR_OK;
    int r = WEIR_OK;
    for (size_t left = (size_t)((int64_t)hi - lo) + 1; left && r == WEIR_OK;) {
        uint64_t weights[CHUNK];
        const size_t n = left < CHUNK ? left : CHUNK;
        left -= n;
        wr_bins_read(src, sign, (int32_t)(lo + (int64_t)left), n, weights);
        for (size_t k = n; k-- && r == WEIR_OK;) {
            int32_t index;
            if (!weights[k])
                continue;
            if (follow(route, (int32_t)(lo + (int64_t)(left + k)), &index))
                r = wr_bins_add(to, sign, index, weights[k]);
            else
                r = wr_bins_add_zero(to, weights[k]);
        }
    }
    return r;
}

/*
 * What collapsed in src lies below its highest bin, and is looked for there. Where it comes into
 * the same bin as the highest it would not be found, so its error becomes one of the whole sketch:
 * as of a quantile in the bin, up to answer / nearest - 1.
 */
static double hidden_collapse(const struct weir_sketch *src, enum wr_sign sign,
                              const struct route *route)
{
    int32_t floor;
    int32_t lo;
    int32_t hi;
    int32_t to_floor = 0;
    int32_t to_hi = 0;
    if (!wr_view_floor(src, sign, &floor) ||
        !wr_bins_range(src, sign == WR_POSITIVE ? WR_BINS_POSITIVE : WR_BINS_NEGATIVE, &lo, &hi) ||
        (follow(route, floor, &to_floor) && follow(route, hi, &to_hi) && to_floor < to_hi))
        return 0;
    const double nearest = sign == WR_POSITIVE ? wr_view_min(src) : -wr_view_max(src);
    if (!(nearest > 0) || !weir_sketch_is_exact(src))
        return HUGE_VAL;
    return fmax(0, wr_view_value(src, floor) / nearest - 1);
}

/* The lowest bin has what was below it in src, and so it has here. */
static int keep_collapse(struct weir_sketch *to, const struct weir_sketch *src)
{
    const struct wr_store *const neg = wr_sketch_negative(src);
    if (neg && neg->collapsed && wr_sketch_negative(to))
        to->of.rest->neg.collapsed = true;
    if (!(src->flags & WR_SK_COLLAPSED))
        return WEIR_OK;
    const int r = to->flags & WR_SK_LIST ? wr_list_spread(to) : WEIR_OK;
    if (r == WEIR_OK)
        to->flags |= WR_SK_COLLAPSED;
    return r;
}

/* What is exact, in the unit of to. */
static void copy_exact(struct weir_sketch *to, const struct weir_sketch *src)
{
    to->flags |= src->flags & WR_SK_DERIVED;
    if (wr_sketch_grid(to) == wr_sketch_grid(src)) {
        to->sum = src->sum;
        to->min = src->min;
        to->max = src->max;
        return;
    }
    to->sum.value.sum = weir_sketch_sum(src);
    to->sum.value.rest = 0;
    WR_IGNORE(weir_sketch_min(src, &to->min.value)); /* it is not empty */
    WR_IGNORE(weir_sketch_max(src, &to->max.value));
}

/* Fill to, which is empty, with src's contents. */
static int fill(struct weir_sketch *to, const struct weir_sketch *src)
{
    const struct route route = route_between(to, src);
    to->flags |= WR_SK_LOOSE; /* a moved bin need not hold the extreme any more */
    int r = add_bins(to, src, WR_BINS_POSITIVE, &route);
    if (r == WEIR_OK)
        r = add_bins(to, src, WR_BINS_NEGATIVE, &route);
    if (r == WEIR_OK)
        r = wr_bins_add_zero(to, wr_sketch_zero(src));
    if (r == WEIR_OK)
        r = keep_collapse(to, src);
    double error = wr_sketch_inherited(src);
    error = fmax(error, hidden_collapse(src, WR_POSITIVE, &route));
    error = fmax(error, hidden_collapse(src, WR_NEGATIVE, &route));
    if (!route.nests)
        error = (1 + error) * (1 + route.from->accuracy) - 1;
    if (r == WEIR_OK)
        r = wr_sketch_inherit(to, error);
    copy_exact(to, src);
    return r;
}

int weir_sketch_convert(struct weir_sketch *dst, const struct weir_sketch *src)
{
    const struct wr_kind *const kind = wr_sketch_kind(dst);
    uint64_t total;
    if (dst == src)
        return WEIR_EINVAL;
    if (kind->head.grid == WEIR_GRID_NS && wr_sketch_grid(src) != WEIR_GRID_NS)
        return WEIR_EVERSION;
    if (kind->head.grid == wr_sketch_grid(src) &&
        weir_mapping_equal(kind->head.mapping, wr_sketch_mapping(src)))
        return weir_sketch_merge(dst, src);
    if (__builtin_add_overflow(dst->weight, src->weight, &total))
        return WEIR_ERANGE;
    if (!src->weight)
        return WEIR_OK;
    const struct weir_sketch_opts opts = {.struct_size = sizeof opts,
                                          .alloc = kind->alloc,
                                          .grid = kind->head.grid,
                                          .max_bins = kind->head.max_bins,
                                          .mapping = kind->head.mapping};
    struct weir_sketch *between;
    int r = weir_sketch_new(&opts, &between);
    if (r != WEIR_OK)
        return r;
    r = fill(between, src);
    if (r == WEIR_OK)
        r = weir_sketch_merge(dst, between);
    weir_sketch_free(between);
    return r;
}
